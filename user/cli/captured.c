/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/captured.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli/cmd.h"

static time_t shown; /* when progress was last shown; 0: none is on the terminal */

/* Once a second, on a terminal only. */
static void show_progress(const struct capture *c)
{
	time_t now = time(NULL);

	if (now == shown || !isatty(STDERR_FILENO))
		return;
	shown = now;
	fprintf(stderr, "\r%" PRIu64 " packets\033[K", c->frames);
	if (c->pass > 1)
		fprintf(stderr, ", reading %d", c->pass);
}

static void clear_progress(const struct capture *c)
{
	(void)c;
	if (shown)
		fprintf(stderr, "\r\033[K");
	shown = 0;
}

static void warn(const struct capture *c, const char *text)
{
	clear_progress(c);
	complaint("%s: %s", c->file, text);
}

static const struct capture_listener listener = {warn, show_progress, clear_progress};

int start_capture(struct capture *c, const char *file)
{
	struct policy_error error = {0};

	return capture_open(c, file, &listener, &error) ? complain(NULL, &error) : EXIT_DONE;
}

int restart_capture(struct capture *c)
{
	struct policy_error error = {0};

	return capture_again(c, &error) ? complain(NULL, &error) : EXIT_DONE;
}

int start_judge(struct judge *j, const char *name, const struct policy *policy, bool kernel)
{
	struct policy_error error = {0};

	return judge_open(j, name, policy, kernel, &error) ? complain(NULL, &error) : EXIT_DONE;
}
