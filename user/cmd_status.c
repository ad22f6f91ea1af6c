/* SPDX-License-Identifier: GPL-2.0-only */
/* status, stats: what is attached where, and what it has counted. */
#include <stdio.h>
#include <unistd.h>

#include "cmd.h"
#include "output.h"

struct listing {
	json_t *array; /* NULL: text */
	int n, failed;
};

static int list(const char *ifname, void *arg)
{
	struct listing *l = arg;
	struct policy_error error;
	struct attached a;

	if (loader_find(ifname, &a, &error)) {
		complain(NULL, &error);
		l->failed++; /* those that can be read are listed all the same */
		return 0;
	}
	l->n++;
	if (l->array)
		json_array_append_new(l->array, output_status_json(&a));
	else
		output_status(&a);
	loader_release(&a);
	return 0;
}

static int status_all(const struct options *o)
{
	struct listing l = {o->json ? json_array() : NULL, 0, 0};
	struct policy_error error = {0};
	int result = loader_each(list, &l, &error);

	if (result)
		complain(NULL, &error);
	if (result || (l.failed && !l.n)) {
		json_decref(l.array);
		return EXIT_FAILED;
	}
	if (l.array)
		result = print_json(l.array);
	else if (!l.n)
		printf("no interface of this network namespace has a pacer\n");
	return l.failed ? EXIT_FAILED : result;
}

int show_status(struct attached *a, const struct options *o)
{
	return o->json ? print_json(output_status_json(a)) : output_status(a);
}

static int run_status(struct options *o)
{
	if (o->n_args > 1)
		return misused("status", "it wants one interface, or none for all");
	if (!o->n_args)
		return status_all(o);
	return with_pacer(o, show_status);
}

const struct verb verb_status = {"status", "[IFACE]", "what is attached where, and by which policy",
				 NULL, run_status};

static int show_stats(const struct attached *a, const struct options *o)
{
	if (o->watch && !o->json && isatty(STDOUT_FILENO))
		printf("\033[H\033[J");
	return o->json ? print_json(output_stats_json(a)) : output_stats(a);
}

/* Found once: to look for it again every second would take descriptors that libxdp keeps. */
static int run_stats(struct options *o)
{
	struct policy_error error = {0};
	struct attached a = {0};
	int code;

	if (o->n_args != 1)
		return misused("stats", "it wants one interface");
	for (;;) {
		if (loader_follow(o->args[0], &a, &error))
			return complain(NULL, &error);
		code = show_stats(&a, o);
		if (!flushed() || code || !o->watch)
			break;
		sleep(1);
	}
	loader_release(&a);
	return code;
}

static const struct option_row stats_options[] = {
    {"watch", 'w', NULL, "again every second", OPTION_FLAG(watch)},
    {0},
};

const struct verb verb_stats = {"stats", "IFACE", "counters by rule and reason", stats_options,
				run_stats};
