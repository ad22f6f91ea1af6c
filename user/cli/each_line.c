/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/each_line.h"
#include "config/text.h"

_Static_assert(EACH_LINE_MAX == 65535, "a line that is too long is told so");
_Static_assert(EACH_LINES_MAX == 16777216, "lines that are too many are told so");

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
		return wrong_line(line, units_duration_wrong(time), time);
	return take(to, trimmed(element), for_ns, line);
}

/* The next line with its end, or as much of it as there is room for: its length; 0: no more. */
static size_t next_line(char *text, size_t room)
{
	size_t len = 0;
	int c = 0;

	while (len + 1 < room && c != '\n' && (c = getc(stdin)) != EOF)
		text[len++] = (char)c;
	text[len] = 0;
	return ferror(stdin) ? 0 : len;
}

int each_line(bool timed, uint64_t for_ns, line_taker take, void *to)
{
	static char text[EACH_LINE_MAX + 2];
	int line = 0, code = EXIT_DONE;
	size_t len;

	while (!code && (len = next_line(text, sizeof(text)))) {
		line++;
		if (line > EACH_LINES_MAX)
			code = wrong_line(line, "is a line too many: give 16777216 lines at a time",
					  "this");
		else if (strlen(text) != len)
			code = wrong_line(line, "is no line of text", text);
		else if (len > EACH_LINE_MAX && text[len - 1] != '\n')
			code =
			    wrong_line(line, "is too long: a line has at most 65535 bytes", text);
		else
			code = read_line(text, line, timed, for_ns, take, to);
	}
	if (!code && !feof(stdin)) {
		complaint("-: %s", strerror(errno));
		code = EXIT_FAILED;
	}
	return code;
}
