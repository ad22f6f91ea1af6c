/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: what the verbs show, as text and as JSON. */
#ifndef PACER_OUTPUT_H
#define PACER_OUTPUT_H

#include "live/attached.h"
#include "live/trend.h"
#include "plan/plan.h"

/* Emits the fields of status into the open object. */
void output_status(const struct attached *a);

/*
 * Emits the bans that run, as an array, and a table of `shown` rows at most, indented. Returns how
 * many there are.
 */
size_t output_bans(const struct attached *a, const char *name, size_t indent, size_t shown);

/* Emits an object of that name: what was counted and, of a trend whose newest reading it is, rates;
 * and what the pacer's shadow has found. a NULL: not that.
 */
void output_stats(const char *ifname, const char *name, const struct reading *reading,
		  const struct trend *trend, const struct attached *a, bool watched);

#define OUTPUT_MINUTE_NS 60000000000ull

/*
 * Emits an object of rates of a row of the trend, or null where there are none: `now`, since the
 * reading before, and `minute`, over as much of the last minute as was watched.
 */
void output_rates(const char *name, const struct trend *trend, size_t row);

/* What each of a policy's sets takes. */
struct output_values {
	uint32_t n;		 /* that keys have */
	char one[64], other[64]; /* two that count together; "": none do */
};

struct output_sets {
	struct output_values values[PACER_SETS_MAX];
	uint64_t prefixes[PACER_SETS_MAX], bytes[PACER_SETS_MAX], all_bytes;
};

/* Counts what the sets take. 0, or -1 with *error filled. */
/* A verdict as policies write it: "drop", "pass", or "pool NAME". In buf, of size bytes. */
const char *output_says(enum pacer_says says, enum pacer_over over, const char *pool, char *buf,
			size_t size);

struct set_texts;
int output_sets(const struct policy *policy, const struct set_texts *texts,
		struct output_sets *sets, struct policy_error *error);

/* Emits the fields of check into the open object: what a policy takes and promises. */
void output_check(const struct policy *policy, const struct output_sets *sets,
		  const struct pacer_policy *bin, const struct plan *plan);

/* Emits an object: what a pacer went on with that was loaded with saved state. */
struct restored;
void output_restored(const struct restored *restored);

/* The memory that the pacer takes at load, with so many lines of state. */
uint64_t output_memory_bytes(uint64_t lines);

/*
 * -1 with *error filled if the policy and its sets, so many times, want more memory than this
 * machine has free.
 */
int output_memory_error(const struct policy *policy, uint64_t times, uint64_t set_bytes,
			struct policy_error *error);
/* The interfaces that share its state, as "shared_with"; where there are some, as text, too. */
void output_partners(const struct attached *a, const char *before, const char *after);
/* The same of a pacer that was there; map_id 0: not known. */
void output_partners_of(const char *ifname, uint32_t map_id, const char *before, const char *after);
/* Of a change that is done: on whom else. */
void output_also(const struct attached *a);

#endif
