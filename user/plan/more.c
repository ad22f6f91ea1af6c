/* SPDX-License-Identifier: GPL-2.0-only */
/* What more matches ask for, to a row of rules for each value or range of values. */
#include "plan/more.h"

#include <stdlib.h>
#include <string.h>

#include "config/headers.h"
#include "parse.h"
#include "rules.h"

#define VALUES 256

/* Where a match has its ranges of each field. */
#define RANGES(field) offsetof(struct policy_match, field), offsetof(struct policy_match, n_##field)

static const struct {
	const char *name;
	size_t list, n;
} field[PACER_MORE_COUNT] = {
    [PACER_MORE_FLAGS] = {"flags", RANGES(flags)},
    [PACER_MORE_ICMP_TYPE] = {"icmp_type", RANGES(icmp_type)},
    [PACER_MORE_ICMP_CODE] = {"icmp_code", RANGES(icmp_code)},
    [PACER_MORE_ICMPV6_TYPE] = {"icmpv6_type", RANGES(icmpv6_type)},
    [PACER_MORE_ICMPV6_CODE] = {"icmpv6_code", RANGES(icmpv6_code)},
    [PACER_MORE_TTL] = {"ttl", RANGES(ttl)},
    [PACER_MORE_DSCP] = {"dscp", RANGES(dscp)},
    [PACER_MORE_SHAPE] = {"fragment", RANGES(fragment)}, /* and options */
    [PACER_MORE_LEN] = {"len", RANGES(len)},
    [PACER_MORE_PAYLOAD_LEN] = {"payload_len", RANGES(payload_len)},
    [PACER_MORE_ETHER_TYPE] = {"ether_type", RANGES(ether_type)},
    [PACER_MORE_ETHER_SRC] = {"ether_src", RANGES(ether_src)},
    [PACER_MORE_ETHER_DST] = {"ether_dst", RANGES(ether_dst)},
};

static size_t count_of(const struct policy_match *m, int id)
{
	return *(const size_t *)(const void *)((const char *)m + field[id].n);
}

static const void *list_of(const struct policy_match *m, int id)
{
	return (const char *)m + field[id].list;
}

static bool asks(const struct policy_match *m, int id)
{
	return count_of(m, id) || (id == PACER_MORE_SHAPE && m->n_options);
}

/* The values of item i, both included. */
static void span_of(const struct policy_match *m, int id, size_t i, uint64_t *low, uint64_t *high)
{
	const struct policy_mac *mac = list_of(m, id);
	const struct range *range = list_of(m, id);

	if (id == PACER_MORE_ETHER_SRC || id == PACER_MORE_ETHER_DST) {
		*low = mac[i].value;
		*high = mac[i].value | ((1ull << (48 - mac[i].len)) - 1);
		return;
	}
	*low = range[i].low;
	*high = range[i].high;
}

static bool in_ranges(const struct policy_match *m, int id, uint64_t value)
{
	uint64_t low, high;

	for (size_t i = 0; i < count_of(m, id); i++) {
		span_of(m, id, i, &low, &high);
		if (low <= value && value <= high)
			return true;
	}
	return !count_of(m, id);
}

static bool has_flags(const struct policy_match *m, uint64_t flags)
{
	for (size_t i = 0; i < m->n_flags; i++)
		if ((flags & m->flags[i].mask) == m->flags[i].value)
			return true;
	return !m->n_flags;
}

static bool has_shape(const struct policy_match *m, uint64_t shape)
{
	bool options = shape >> PACER_SHAPE_OPTIONS & 1;

	return in_ranges(m, PACER_MORE_SHAPE, shape & ((1u << PACER_SHAPE_OPTIONS) - 1)) &&
	       (!m->n_options || m->options[0].low == options);
}

static bool matches(const struct policy_match *m, int id, uint64_t value)
{
	if (id == PACER_MORE_FLAGS)
		return has_flags(m, value);
	return id == PACER_MORE_SHAPE ? has_shape(m, value) : in_ranges(m, id, value);
}

static struct pacer_rules rules_at(const struct policy *policy, int id, uint64_t value)
{
	struct pacer_rules rules = {{0}};

	for (size_t r = 0; r < policy->n_rules; r++)
		pacer_rules_put(&rules, r, matches(&policy->rule[r].match, id, value));
	return rules;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Where the rules of a wide field may change. */
static size_t bounds_of(const struct policy *policy, int id, uint64_t *bound)
{
	uint64_t low, high;
	size_t n = 0;

	for (size_t r = 0; r < policy->n_rules; r++)
		for (size_t i = 0; i < count_of(&policy->rule[r].match, id); i++) {
			span_of(&policy->rule[r].match, id, i, &low, &high);
			bound[n++] = low;
			bound[n++] = high + 1;
		}
	if (n)
		qsort(bound, n, sizeof(*bound), by_value);
	return n;
}

static struct pacer_rules *rows_of(struct pacer_more *more, int id)
{
	return id < PACER_MORE_LEN ? more->byte_rules[id] : more->span_rules[id - PACER_MORE_LEN];
}

static uint32_t top_of(size_t n)
{
	uint32_t top = 1;

	while (2 * top <= n)
		top *= 2;
	return n ? top : 0;
}

static int put_span(const struct policy *policy, int id, struct pacer_more *more,
		    struct policy_error *error)
{
	static uint64_t bound[2 * PACER_RULES_MAX * POLICY_LIST_MAX];
	struct pacer_span *span = &more->span[id - PACER_MORE_LEN];
	struct pacer_rules *rows = rows_of(more, id);
	size_t n = bounds_of(policy, id, bound), kept = 0;

	for (size_t i = 0; i <= PACER_BOUNDS_MAX; i++)
		span->bound[i] = PACER_SPAN_END;
	rows[0] = rules_at(policy, id, 0);
	for (size_t i = 0; i < n; i++) {
		struct pacer_rules rules = rules_at(policy, id, bound[i]);

		if (pacer_rules_same(&rules, &rows[pacer_span_row(kept)]))
			continue;
		if (kept == PACER_BOUNDS_MAX)
			return policy_fail(error, 0,
					   "rules: their %s cut the values into more than %u "
					   "ranges: use fewer or adjacent ones",
					   field[id].name, PACER_BOUNDS_MAX + 1);
		span->bound[kept++] = bound[i];
		rows[pacer_span_row(kept)] = rules;
	}
	span->top = top_of(kept);
	return 0;
}

/* Of packets without the field, and of those of which it is not known. */
static void put_rest(const struct policy *policy, int id, struct pacer_more *more)
{
	struct pacer_rules *rules = rows_of(more, id);

	for (size_t r = 0; r < policy->n_rules; r++) {
		bool asked = asks(&policy->rule[r].match, id);
		bool pass = policy_passes(&policy->rule[r]);

		pacer_rules_put(&rules[PACER_MORE_ABSENT], r, !asked);
		pacer_rules_put(&rules[PACER_MORE_UNKNOWN], r, !(asked && pass));
		more->used |= (uint32_t)asked << id;
	}
}

static int put_field(const struct policy *policy, int id, struct pacer_more *more,
		     struct policy_error *error)
{
	put_rest(policy, id, more);
	if (id >= PACER_MORE_LEN)
		return put_span(policy, id, more, error);
	for (uint32_t value = 0; value < VALUES; value++)
		more->byte_rules[id][value] = rules_at(policy, id, value);
	return 0;
}

/* Bytes that several rules ask for are looked at once. */
static int put_probe(const struct policy_bytes *bytes, size_t r, int line, struct pacer_more *more,
		     struct policy_error *error)
{
	struct pacer_probe probe = {bytes->value, bytes->mask, bytes->at, bytes->n, {0}, {{0}}};
	size_t i = 0;

	while (i < more->probes &&
	       (more->probe[i].value != probe.value || more->probe[i].mask != probe.mask ||
		more->probe[i].at != probe.at || more->probe[i].n != probe.n))
		i++;
	if (i == PACER_PROBES_MAX)
		return policy_fail(
		    error, line,
		    "rules[%zu].match.payload: the rules have more than %u different items of "
		    "it: use fewer",
		    r, PACER_PROBES_MAX);
	if (i == more->probes) {
		more->probe[i] = probe;
		more->probes++;
	}
	pacer_rules_put(&more->probe[i].rules, r, 1);
	return 0;
}

static int put_probes(const struct policy *policy, struct pacer_policy *bin,
		      struct policy_error *error)
{
	struct pacer_more *more = &bin->more;

	for (size_t r = 0; r < policy->n_rules; r++) {
		const struct policy_rule *rule = &policy->rule[r];
		const struct policy_match *m = &rule->match;

		pacer_rules_put(&more->passing, r, policy_passes(rule));
		pacer_rules_put(&more->probed, r, m->n_payload > 0);
		pacer_rules_put(&more->of_payload, r, m->n_payload || m->n_payload_len);
		pacer_rules_put(&more->frames, r, headers_of_frames(m));
		pacer_rules_put(&more->inner, r, m->n_inner > 0);
		more->used |= m->n_payload ? PACER_MORE_PROBED : 0;
		more->used |= m->n_inner ? PACER_MORE_INNER : 0;
		if (headers_of_frames(m))
			bin->dims |= PACER_DIMS_FRAMES;
		for (size_t i = 0; i < rule->match.n_payload; i++)
			if (put_probe(&rule->match.payload[i], r, rule->line, more, error))
				return -1;
	}
	return 0;
}

int compile_more(const struct policy *policy, struct pacer_policy *bin, struct policy_error *error)
{
	for (int id = 0; id < PACER_MORE_COUNT; id++)
		if (put_field(policy, id, &bin->more, error))
			return -1;
	if (put_probes(policy, bin, error))
		return -1;
	if (bin->more.used)
		bin->dims |= PACER_DIMS_MORE;
	return 0;
}
