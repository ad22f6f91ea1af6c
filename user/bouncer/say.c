/* SPDX-License-Identifier: GPL-2.0-only */
#include "bouncer/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "config/text.h"
#include "live/ends.h"

void bouncer_say(const char *format, ...)
{
	char text[1024], line[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, BOUNCER_NAME ": %s\n", text_escape(text, line, sizeof(line)));
}

void bouncer_gives_way(void)
{
	FILE *stream = ends_stream(STDERR_FILENO);

	if (!stream)
		return;
	setvbuf(stream, NULL, _IONBF, 0);
	stderr = stream;
}
