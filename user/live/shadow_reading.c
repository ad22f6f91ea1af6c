/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/shadow_reading.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "live/copies.h"
#include "live/host.h"

static int read_counter(const struct attached *s, uint32_t slot, struct pacer_changes *each,
			int cpus, struct pacer_changes *sum)
{
	memset(sum, 0, sizeof(*sum));
	if (bpf_map_lookup_elem(s->changes_fd, &slot, each))
		return -1;
	for (int cpu = 0; cpu < cpus; cpu++)
		for (size_t c = 0; c < PACER_CHANGE_COUNT; c++)
			for (size_t r = 0; r < PACER_CHANGE_REASONS; r++) {
				sum->by[c][r].packets += each[cpu].by[c][r].packets;
				sum->by[c][r].bytes += each[cpu].by[c][r].bytes;
			}
	return 0;
}

int shadow_read(const struct attached *s, struct shadow_reading *r, struct policy_error *error)
{
	uint32_t copy = copies_in_force(s);
	const struct pacer_policy *bin = &s->copy[copy].policy;
	int cpus = host_cpus(error), result;
	struct pacer_changes *each;

	r->policy = cpus < 1 ? NULL : copies_policy(s, copy, error);
	if (!r->policy)
		return -1;
	r->since_ns = s->shadowed->since_ns;
	r->monitor = bin->flags & PACER_MONITOR;
	each = calloc((size_t)cpus, sizeof(*each));
	result = each ? read_counter(s, 0, each, cpus, &r->none) : -1;
	for (size_t i = 0; i < r->policy->n_rules && !result; i++)
		result = read_counter(s, bin->rule[i].counter, each, cpus, &r->rule[i]);
	r->now_ns = host_now_ns();
	free(each);
	if (!result)
		return 0;
	shadow_reading_free(r);
	return policy_fail(error, 0, "%s: what its shadow has counted cannot be read: %s",
			   s->ifname, strerror(errno));
}

void shadow_reading_free(struct shadow_reading *r)
{
	policy_free(r->policy);
	r->policy = NULL;
}

struct pacer_count shadow_sum_of(const struct pacer_changes *changes, enum pacer_change change)
{
	struct pacer_count sum = {0, 0};

	for (size_t r = 0; r < PACER_CHANGE_REASONS; r++) {
		sum.packets += changes->by[change][r].packets;
		sum.bytes += changes->by[change][r].bytes;
	}
	return sum;
}

struct pacer_count shadow_sum(const struct shadow_reading *r, enum pacer_change change)
{
	struct pacer_count sum = shadow_sum_of(&r->none, change);

	for (size_t i = 0; i < r->policy->n_rules; i++) {
		struct pacer_count of = shadow_sum_of(&r->rule[i], change);

		sum.packets += of.packets;
		sum.bytes += of.bytes;
	}
	return sum;
}

const char *shadow_change_name(enum pacer_change change)
{
	static const char *const names[] = {
#define CHANGE_NAME(name, id, text) [PACER_##name] = id,
	    PACER_CHANGES(CHANGE_NAME)
#undef CHANGE_NAME
	};

	return names[change];
}

bool shadow_passes(const struct pacer_policy *bin, size_t rule, enum pacer_reason reason)
{
	uint8_t over = PACER_OVER_DROP;

	if (pacer_verdict_of(reason) != PACER_VERDICT_DENY || bin->flags & PACER_MONITOR)
		return true;
	if (rule < PACER_RULES_MAX)
		over = bin->rule[rule].over;
	else if (reason == PACER_DENY_VERDICT)
		over = (uint8_t)bin->else_over;
	return over == PACER_OVER_PASS;
}
