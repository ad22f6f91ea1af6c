/* SPDX-License-Identifier: GPL-2.0-only */
/* stats: what pacers have counted, and how fast. */
#include <errno.h>
#include <stdlib.h>

#include "cli/cmd.h"
#include "cli/emit.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "config/text.h"
#include "live/attached.h"
#include "live/host.h"

#define SECOND_NS 1000000000ull

/* An interface. */
struct stats_of {
	struct attached a;
	struct reading reading; /* the newest */
	struct trend trend;
	bool failed; /* it could not be read */
};

struct stats_run {
	const struct options *o;
	uint64_t over_ns; /* between two readings */
	struct stats_of *of;
	int n;
	bool on_screen; /* what was shown last ends without a line feed */
};

/* What is said next begins a line. */
static void leave_screen(struct stats_run *run)
{
	if (run->on_screen)
		putchar('\n');
	run->on_screen = false;
	flushed();
}

/* The pacer is searched once. Each search leaks a descriptor in libxdp. */
static int read_one(struct stats_run *run, int i)
{
	struct stats_of *of = &run->of[i];
	struct policy_error error = {0};
	int failed;

	reading_free(&of->reading);
	failed = attached_follow(run->o->args[i], &of->a, &error) ||
		 reading_count(&of->a, &of->reading, &error);
	if (!failed && !trend_add(&of->trend, &of->reading))
		return EXIT_DONE;
	leave_screen(run);
	of->failed = true;
	return failed ? complain(NULL, &error) : gave_up("stats", "no memory");
}

/* Those that could be read so far. */
static int read_next(struct stats_run *run)
{
	int code = EXIT_DONE;

	for (int i = 0; i < run->n; i++)
		if (!run->of[i].failed && read_one(run, i))
			code = EXIT_FAILED;
	return code;
}

static void show_one(const struct stats_run *run, int i)
{
	const struct stats_of *of = &run->of[i];

	if (run->o->many)
		emit_many_next(run->o->args[i], false);
	if (!of->failed)
		output_stats(of->a.ifname, "", &of->reading, of->trend.n > 1 ? &of->trend : NULL,
			     &of->a, run->o->watch);
	else if (run->o->watch) /* the screen does not keep what was said of it */
		emit_text("%s: cannot be read any more\n", printable(run->o->args[i]).text);
}

/* What could not be read is null among several. */
static int show(struct stats_run *run, const char *hint)
{
	const struct options *o = run->o;

	if (o->many)
		emit_many_begin(o->json);
	else
		emit_begin(o->json);
	run->on_screen = o->watch && emit_screen(hint);
	for (int i = 0; i < run->n; i++)
		show_one(run, i);
	if (o->many)
		return o->watch ? emit_many_end_line() : emit_many_end();
	return o->watch ? emit_end_line() : emit_end();
}

static bool all_failed(const struct stats_run *run)
{
	bool all = true;

	for (int i = 0; i < run->n; i++)
		all &= run->of[i].failed;
	return all;
}

/* Rates want two readings. For a script they are left out unless it says that it will wait. */
static int once(struct stats_run *run)
{
	int code = read_next(run), shown = EXIT_DONE;

	if (!all_failed(run) && (!run->o->json || run->o->over_ns)) {
		(void)terminal_wait(host_now_ns() + run->over_ns);
		code |= read_next(run);
	}
	if (run->o->many || !code)
		shown = show(run, NULL);
	return code ? code : shown;
}

/* Until it is time for the next reading, or the end: then false. */
static bool wait_for(struct stats_run *run, const char *hint, uint64_t until_ns)
{
	for (;;)
		switch (terminal_wait(until_ns)) {
		case TERMINAL_TIME:
			return true;
		case TERMINAL_KEY:
			switch (terminal_key()) {
			case 'q':
			case 'Q':
			case -1:
				return false;
			default:
				break;
			}
			break;
		case TERMINAL_RESIZED:
			if (show(run, hint) || !flushed())
				return false;
			break;
		case TERMINAL_ENDED:
			return false;
		}
}

static int watch(struct stats_run *run)
{
	bool used = !run->o->json && terminal_is_used();
	const char *hint = used ? "q ends it" : NULL;
	uint64_t next_ns = host_now_ns();
	int code = EXIT_DONE, shown = EXIT_DONE;

	if (used && terminal_begin(false))
		return gave_up("stats", strerror(errno));
	if (used)
		output_gives_way();
	for (;;) {
		code |= read_next(run);
		if (!all_failed(run))
			shown = show(run, hint);
		if (all_failed(run) || shown || !flushed())
			break;
		next_ns += run->over_ns;
		if (next_ns <= host_now_ns()) /* it was stopped meanwhile */
			next_ns = host_now_ns() + run->over_ns;
		if (!wait_for(run, hint, next_ns))
			break;
	}
	leave_screen(run);
	terminal_end();
	return code ? code : shown;
}

static void forget(struct stats_of *of)
{
	reading_free(&of->reading);
	trend_free(&of->trend);
	if (of->a.ifindex)
		attached_release(&of->a);
}

static int run_stats(struct options *o)
{
	struct stats_run run = {
	    .o = o, .over_ns = o->over_ns ? o->over_ns : SECOND_NS, .n = o->n_args};
	int code;

	if (o->n_args < 1)
		return misused("stats", "it wants one interface or more");
	run.of = calloc((size_t)run.n, sizeof(*run.of));
	if (!run.of)
		return gave_up("stats", "no memory");
	code = o->watch ? watch(&run) : once(&run);
	for (int i = 0; i < run.n; i++)
		forget(&run.of[i]);
	free(run.of);
	return code;
}

static const struct option_row stats_options[] = {
    {"watch", 'w', NULL, "again every second, until q or a signal", OPTION_FLAG(watch)},
    {"over", 0, "TIME", "rates are over so long: 1s unless said; with --json alone, only if said",
     OPTION_TIME(over_ns)},
    {0},
};

const struct verb verb_stats = {"stats",
				"IFACE...",
				"counters by rule and reason, and rates",
				stats_options,
				run_stats,
				.group = VERBS_LOOK,
				.interfaces = INTERFACES_ONLY,
				.takes_several = true,
				.example = "xdp-pacer stats eth0 -w"};
