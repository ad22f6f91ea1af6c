/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/look.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "live/change.h"
#include "live/copies.h"
#include "live/host.h"
#include "sets/set_maps.h"

static int read_leases(const struct attached *a, struct look *look)
{
	struct pacer_throttle_lease *each = calloc(look->cpus, sizeof(*each));

	for (uint32_t i = 0; each && i < PACER_THROTTLES; i++) {
		if (bpf_map_lookup_elem(a->leases_fd, &i, each)) {
			free(each);
			return -1;
		}
		for (uint32_t cpu = 0; cpu < look->cpus; cpu++)
			look->lease[cpu * PACER_THROTTLES + i] = each[cpu];
	}
	free(each);
	return each ? 0 : -1;
}

/* A set that is not there, or broken, counts as packets count it: as one that cannot be read. */
static int map_place(const struct attached *a, uint32_t place, struct set_lines *lines,
		     struct pacer_set *set)
{
	int result = set_maps_lines_of(a->sets_fd, place, lines);

	*set = set_lines_set(lines);
	return result && errno != ENOENT && errno != EBADMSG ? -1 : 0;
}

static int map_sets(const struct attached *a, struct look *look)
{
	uint32_t first = look->copy * PACER_SETS_MAX;
	int result = 0;

	for (uint32_t i = 0; i < look->policy->sets && i < PACER_SETS_MAX && !result; i++)
		result = map_place(a, first + i, &look->lines[i], &look->set[i]) ||
				 map_place(a, PACER_SET_HANDS + first + i, &look->hand_lines[i],
					   &look->hand[i])
			     ? -1
			     : 0;
	return result;
}

int look_open(const struct attached *a, struct look *look, struct policy_error *error)
{
	int cpus = host_cpus(error);

	if (cpus < 1)
		return -1;
	*look = (struct look){.copy = copies_in_force(a), .cpus = cpus, .a = a};
	look->policy = &a->copy[look->copy].policy;
	look->now_ns = host_now_ns();
	if (map_sets(a, look)) {
		policy_explain(error, 0, "%s: its sets cannot be read: %s", a->ifname,
			       strerror(errno));
		look_close(look);
		return -1;
	}
	look->lease = calloc((size_t)cpus * PACER_THROTTLES, sizeof(*look->lease));
	if (look->lease && !read_leases(a, look))
		return 0;
	policy_explain(error, 0, "%s: its leases cannot be read: %s", a->ifname, strerror(errno));
	look_close(look);
	return -1;
}

void look_close(struct look *look)
{
	for (size_t i = 0; i < PACER_SETS_MAX; i++) {
		set_lines_free(&look->lines[i]);
		set_lines_free(&look->hand_lines[i]);
	}
	free(look->lease);
	look->lease = NULL;
}

struct pacer_state look_state(const struct look *look, uint32_t cpu)
{
	const struct attached *a = look->a;

	return (struct pacer_state){.table = {a->lines, a->n_lines},
				    .policy = look->policy,
				    .secret = a->control->secret[0],
				    .throttle = a->throttle,
				    .set = look->set,
				    .hand = look->hand,
				    .share = a->control->share,
				    .lanes = a->control->lanes,
				    .lease = look->lease + (size_t)cpu * PACER_THROTTLES};
}
