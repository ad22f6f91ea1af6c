/* SPDX-License-Identifier: GPL-2.0-only */
/* A gap: in a sketch of its own, or in the record of a window of its key. */
#include <inttypes.h>
#include <stdio.h>

#include "config/units.h"
#include "plan/figures.h"
#include "plan/flood.h"
#include "plan/kinds.h"
#include "rule.h"

#define NS_PER_S 1000000000u

/* Cells that admit no more than the ceiling: as many a gap, without the clock's resolution. */
static u128 ceiling_cells(const struct policy_limit *limit)
{
	return (u128)limit->ceiling * limit->gap_ns / NS_PER_S;
}

static int profile(const struct policy_limit *limit, const struct terms *terms, const char *path,
		   struct pacer_limiter *t, struct policy_error *error)
{
	u128 smallest = ((u128)PACER_CELLS * NS_PER_S + limit->gap_ns - 1) / limit->gap_ns;

	t->gap_ns = limit->gap_ns + terms->resolution_ns;
	t->rows = !limit->key.parts ? 1 : limit->rows;
	t->units = PACER_LINE_UNITS;
	if (!limit->ceiling || ceiling_cells(limit) >= PACER_CELLS)
		return 0;
	return policy_fail(error, limit->line,
			   "%s.ceiling: a sketch of this gap admits up to %llupps: write that or "
			   "more, or limit the key \"all\"",
			   path, (unsigned long long)smallest);
}

static uint64_t fine_ns(const struct policy_limit *limit)
{
	return limit->gap_ns;
}

/*
 * Not one that asked for a sketch. The unit of the last admission grows with the window, and the
 * gap is prolonged by less than one: it has to be a small share of the gap.
 */
static bool join(const struct policy_limit *limit, const struct pacer_limiter *t,
		 struct pacer_limiter *host, bool try)
{
	if ((host->kind & ~PACER_LIMITER_NEW) != PACER_LIMITER_WINDOW || host->gap_ns ||
	    limit->ceiling || limit->entries || limit->rows != PACER_ROWS_MAX ||
	    (host->last_shift && !(limit->gap_ns / COMPILE_GAP_SHARE >> host->last_shift)))
		return false;
	if (!try) {
		host->gap_ns = t->gap_ns;
		host->rows = t->rows;
	}
	return true;
}

uint64_t compile_gap_more_ns(const struct pacer_limiter *t)
{
	return pacer_limiter_kind_of(t) == PACER_LIMITER_WINDOW ? (1ull << t->last_shift) - 1 : 0;
}

static uint64_t *value_of(struct policy_limit *limit)
{
	return &limit->gap_ns;
}

static uint64_t lines(const struct pacer_limiter *t)
{
	return t->sets;
}

static uint64_t wanted(const struct policy_limit *limit, const struct pacer_limiter *t)
{
	u128 n = ((u128)limit->entries + PACER_CELLS - 1) / PACER_CELLS;

	if (limit->ceiling)
		n = ceiling_cells(limit) / PACER_CELLS;
	if (!t->key_id)
		n = 1;
	return (uint64_t)(n < LINES_NEVER ? n : LINES_NEVER);
}

static double delayed(double keys, const void *arg)
{
	return figures_false_delay(arg, keys);
}

static uint64_t flood(const struct pacer_limiter *t, uint64_t pps)
{
	struct pacer_limiter line = *t;

	line.sets = 1;
	return t->key_id ? flood_lines_of((double)pps * (double)t->gap_ns / 1e9 /
					  flood_solve(delayed, &line, 1, FLOOD_DENIED))
			 : 1;
}

static void size(struct pacer_limiter *t, uint64_t n)
{
	t->sets = n;
}

static bool hashed(const struct pacer_limiter *t)
{
	(void)t;
	return true;
}

static uint64_t gap_ns(const struct pacer_limiter *t)
{
	return t->gap_ns;
}

static bool same_shape(struct pacer_limiter *t, const struct pacer_limiter *old,
		       const struct compile_host *host)
{
	(void)host;
	return t->rows == old->rows;
}

/* Gaps are compared apart, as they may be guests. */
static u128 allowance(const struct pacer_limiter *t)
{
	(void)t;
	return 0;
}

static bool same_time(const struct pacer_limiter *a, const struct pacer_limiter *b)
{
	(void)a;
	(void)b;
	return false;
}

static void tune(struct pacer_limiter *t, uint64_t value)
{
	t->gap_ns = value;
}

static uint64_t most(const struct pacer_limiter *t)
{
	(void)t;
	return 1ull << 62; /* longer than any capture */
}

static uint64_t enough(const struct pacer_limiter *t, uint32_t len_bytes)
{
	(void)t;
	(void)len_bytes;
	return 0;
}

static bool is(const struct policy_limit *limit, const struct pacer_limiter *t,
	       uint64_t resolution_ns)
{
	return t->gap_ns == limit->gap_ns || t->gap_ns == limit->gap_ns + resolution_ns;
}

static void text(const struct policy_limit *limit, char *buf, size_t size)
{
	char gap[32];

	snprintf(buf, size, "gap %s", units_duration_text(limit->gap_ns, gap, sizeof(gap)));
}

/* The chance that others delay a key, for several numbers of keys. */
static void false_delay(const struct pacer_limiter *t, struct facts *to)
{
	static const uint32_t keys[] = {1000, 65536, 1048576};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		double chance = figures_false_delay(t, keys[i]);

		facts_object(to, "");
		facts_uint(to, "keys", keys[i], "%s with %u%s", i ? "," : "", keys[i],
			   i ? "" : " keys a gap");
		facts_real(to, "chance", chance, " %.2g", chance);
		facts_close(to);
	}
}

static void facts(const struct kind_subject *of, struct facts *to)
{
	const struct pacer_limiter *t = of->limiter;
	bool sketch = pacer_limiter_kind_of(t) == PACER_LIMITER_GAP;
	uint64_t gap_ns = of->limit->gap_ns, more = compile_gap_more_ns(t);
	uint64_t cells = sketch ? t->sets * (uint64_t)PACER_CELLS : entries_number(t);
	double ceiling = cells * 1e9 / t->gap_ns; /* one for each cell or record in each gap */
	char text[32];

	facts_uint(to, "gap_ns", gap_ns, "    at least %s between two packets of a key ",
		   units_duration_text(gap_ns, text, sizeof(text)));
	facts_uint(to, "effective_gap_ns", t->gap_ns, "(kept as %s",
		   units_duration_text(t->gap_ns, text, sizeof(text)));
	facts_uint(to, "prolonged_by_ns", more, more ? ", and for up to %s more" : NULL,
		   units_duration_text(more, text, sizeof(text)));
	facts_real(to, "ceiling_pps", ceiling,
		   ")\n    ceiling of all keys together: %.0f packets a second\n", ceiling);
	facts_string(to, "state", sketch ? "sketch" : "record",
		     sketch ? NULL : "    in the window's record: no memory of its own");
	facts_uint(to, "cells", cells,
		   sketch ? "    %" PRIu64 " cells, %u a key; chance of a false delay" : NULL,
		   cells, t->rows);
	facts_array(to, "false_delay");
	if (sketch)
		false_delay(t, to);
	facts_close(to);
	facts_text(to, "\n");
}

static void held(const struct pacer_walk *w, const struct pacer_limiter *t, struct limit_held *held)
{
	struct pacer_ask q = pacer_walk_ask(w, t, pacer_walk_hash(w, t, t->secret));
	struct pacer_line *line =
	    PACER_LINE_AT(q.table, pacer_sketch_index(t, q.hash) / PACER_LINE_UNITS);

	held->by = t->key_id ? HELD_BY_CELLS : HELD_BY_ONE;
	if (line)
		held->last_ns = pacer_recency_estimate(line, pacer_sketch_mark(&q), t->rows);
}

const struct limit_kind kind_gap = {
    .name = "gap",
    .limit = LIMIT_GAP,
    .limiter = PACER_LIMITER_GAP,
    .reason = PACER_DENY_GAP,
    .by_time = true,
    .profile = profile,
    .fine_ns = fine_ns,
    .join = join,
    .value_of = value_of,
    .span_ns = fine_ns,
    .is = is,
    .text = text,
    .facts = facts,
    .held = held,
    .lines = lines,
    .wanted = wanted,
    .flood = flood,
    .size = size,
    .hashed = hashed,
    .memory_ns = gap_ns,
    .same_shape = same_shape,
    .allowance = allowance,
    .same_time = same_time,
    .value = gap_ns,
    .tune = tune,
    .most = most,
    .enough = enough,
};
