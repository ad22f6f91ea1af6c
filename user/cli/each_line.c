/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/each_line.h"
#include "config/text.h"

/* Cut the blanks around it away. */
static char *trimmed(char *text)
{
	size_t len;

	text += strspn(text, " \t\r\n");
	for (len = strlen(text); len && strchr(" \t\r\n", text[len - 1]);)
		text[--len] = 0;
	return text;
}

static int wrong_line(int line, const char *what, const char *text)
{
	struct policy_error error = {0};

	policy_explain(&error, line, "%.200s %s", text, what);
	return complain("-", &error);
}

/* The word --for, cut off what stands before it: what follows it. NULL: there is none. */
static char *cut_for(char *element)
{
	for (char *at = element; (at = strstr(at, "--for")); at++) {
		char *behind = at + strlen("--for");

		if (at > element && strchr(" \t", at[-1]) &&
		    (!*behind || strchr("= \t", *behind))) {
			at[-1] = 0;
			return trimmed(behind + (*behind == '='));
		}
	}
	return NULL;
}

static int read_line(char *text, int line, bool timed, uint64_t for_ns, line_taker take, void *to)
{
	char *element = trimmed(text), *time;

	if (!*element || *element == '#')
		return EXIT_DONE;
	time = timed ? cut_for(element) : NULL;
	if (time && !*time)
		return wrong_line(line, "wants a duration such as 90s or 10m", "--for");
	if (time && (units_duration(time, &for_ns) || !for_ns))
		return wrong_line(line, "is not a duration such as 90s or 10m", time);
	return take(to, trimmed(element), for_ns, line);
}

int each_line(bool timed, uint64_t for_ns, line_taker take, void *to)
{
	char *text = NULL;
	size_t room = 0;
	int line = 0, code = EXIT_DONE;
	ssize_t len;

	while (!code && (len = getline(&text, &room, stdin)) > 0) {
		line++;
		code = strlen(text) == (size_t)len ? read_line(text, line, timed, for_ns, take, to)
						   : wrong_line(line, "is no line of text", text);
	}
	if (!code && !feof(stdin)) {
		complaint("-: %s", strerror(errno));
		code = EXIT_FAILED;
	}
	free(text);
	return code;
}
