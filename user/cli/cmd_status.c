/* SPDX-License-Identifier: GPL-2.0-only */
/* status, stats: what is attached where, and what it has counted. */
#include <stdlib.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/emit.h"
#include "cli/output.h"
#include "live/attached.h"

struct listing {
	int n, failed;
};

static int list(const char *ifname, void *arg)
{
	struct listing *l = arg;
	struct policy_error error;
	struct attached a;

	if (attached_find(ifname, &a, &error)) {
		complain(NULL, &error);
		l->failed++; /* those that can be read are listed all the same */
		return 0;
	}
	l->n++;
	emit_object("");
	output_status(&a);
	emit_close();
	attached_release(&a);
	return 0;
}

static int status_all(const struct options *o)
{
	struct listing l = {0, 0};
	struct policy_error error = {0};
	int result;

	emit_begin(o->json);
	emit_array("");
	result = attached_each(list, &l, &error);
	emit_close();
	if (result)
		complain(NULL, &error);
	if (result || (l.failed && !l.n)) {
		emit_drop();
		return EXIT_FAILED;
	}
	if (!l.n)
		emit_text("no interface of this network namespace has a pacer\n");
	result = emit_end();
	return l.failed ? EXIT_FAILED : result;
}

int show_status(struct attached *a, const struct options *o)
{
	emit_begin(o->json);
	emit_object("");
	output_status(a);
	emit_close();
	return emit_end();
}

static int run_status(struct options *o)
{
	if (o->n_args > 1)
		return misused("status", "it wants interfaces, or none for all");
	if (!o->n_args)
		return status_all(o);
	return with_pacer(o, show_status);
}

const struct verb verb_status = {"status",
				 "[IFACE...]",
				 "what is attached where, and by which policy",
				 NULL,
				 run_status,
				 .group = VERBS_LOOK,
				 .interfaces = INTERFACES_ONLY,
				 .example = "xdp-pacer status"};

/* A round: of several interfaces one result. */
static int show_stats(const struct options *o, struct attached *a, struct output_round *rounds)
{
	struct policy_error error = {0};
	int n = o->n_args;

	if (n == 1)
		emit_begin(o->json);
	else
		emit_many_begin(o->json);
	if (o->watch)
		emit_screen();
	for (int i = 0; i < n; i++) {
		if (attached_follow(o->args[i], &a[i], &error)) {
			emit_drop();
			return complain(NULL, &error);
		}
		if (n > 1)
			emit_many_next(o->args[i], false);
		rounds[i].watched = o->watch;
		output_stats(&a[i], "", &rounds[i]);
	}
	return n == 1 ? emit_end() : emit_many_end();
}

/* The pacers are searched once. Each search leaks a descriptor in libxdp. */
static int run_stats(struct options *o)
{
	struct attached *a;
	struct output_round *rounds;
	int code = EXIT_FAILED;

	if (o->n_args < 1)
		return misused("stats", "it wants one interface or more");
	a = calloc((size_t)o->n_args, sizeof(*a));
	rounds = calloc((size_t)o->n_args, sizeof(*rounds));
	if (!a || !rounds)
		code = gave_up("stats", "no memory");
	while (a && rounds) {
		code = show_stats(o, a, rounds);
		if (!flushed() || code || !o->watch)
			break;
		sleep(1);
	}
	for (int i = 0; a && i < o->n_args; i++)
		if (a[i].ifindex)
			attached_release(&a[i]);
	free(rounds);
	free(a);
	return code;
}

static const struct option_row stats_options[] = {
    {"watch", 'w', NULL, "again every second", OPTION_FLAG(watch)},
    {0},
};

const struct verb verb_stats = {"stats",
				"IFACE...",
				"counters by rule and reason",
				stats_options,
				run_stats,
				.group = VERBS_LOOK,
				.interfaces = INTERFACES_ONLY,
				.watches_all = true,
				.example = "xdp-pacer stats eth0 -w"};
