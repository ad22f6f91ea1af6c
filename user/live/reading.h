/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what a pacer at work has counted and holds, as numbers of one moment: for whoever
 * watches it. Nothing is changed by looking.
 *
 * Concurrency: one thread. Packets go on meanwhile, so each number is right, and two may be a
 * packet apart. All are of one policy: where another came into force meanwhile, whose rules may
 * have got the counters of others, they are read again, FIGURES_TRIES times.
 *
 * Error: of entries in use, what occupancy.h says. Bans are exact, or not counted where there is
 * room for more than READING_BANS.
 *
 * Memory: a parsed policy, and a CPU's counters each.
 */
#ifndef PACER_READING_H
#define PACER_READING_H

#include "live/attached.h"

#define FIGURES_TRIES 8
#define READING_BANS  (1u << 18)

/* Of a limit whose keys have entries: a window or a rate. */
struct reading_table {
	size_t rule, limit; /* in the policy */
	uint64_t used, capacity;
	uint64_t shared, shared_capacity; /* of keys that found no entry; 0: the limit has none */
};

/* Of a set: its prefixes, and packets with an address in it. */
struct reading_set {
	uint64_t prefixes;
	bool counted; /* else keys alone ask for it */
	struct pacer_set_count count;
};

/* Of a limit that a fleet divides, in units (plan/shares.h). */
struct reading_share {
	size_t rule, limit;   /* in the policy */
	uint64_t units, all;  /* what this host may use now, and what all may */
	uint32_t lanes;	      /* keys with shares of their own */
	uint32_t members;     /* of the fleet, as its agent said */
	uint64_t answered_ns; /* when the store answered the agent last; 0: never */
};

/* Of the bans and sets that a fleet shares, as its agent said. */
struct reading_items {
	bool any;
	uint64_t known, told, taken, late, left_out;
	uint64_t answered_ns; /* as above */
};

struct reading {
	struct policy *policy; /* the one in force */
	uint64_t serial;
	uint32_t control_id; /* of the pacer's state, whichever program is over it */
	uint64_t now_ns;     /* monotonic, when its counters were read */
	uint64_t pending_ns; /* until it gives way, unless confirmed; 0: it stays */
	bool monitor, exact;
	struct pacer_counters none; /* of packets that no rule judged */
	struct pacer_counters rule[PACER_RULES_MAX];
	struct reading_set set[PACER_SETS_MAX]; /* as in the policy */
	struct reading_table table[PACER_RULES_MAX * PACER_LIMITERS_MAX];
	size_t n_tables;
	struct reading_share share[PACER_SHARES];
	size_t n_shares;
	struct reading_items items;
	uint64_t ban_room; /* 0: there is no table */
	bool bans_counted;
	uint64_t bans_of_sources;		      /* from outside, whatever the rule */
	uint64_t bans[PACER_RULES_MAX], bans_of_gone; /* of rules that are in the policy no more */
};

/* 0 and figures to be freed with reading_free, or -1 with *error filled. */
int reading_take(const struct attached *a, struct reading *reading, struct policy_error *error);
/* The same of counters alone: no tables, and no room for bans. */
int reading_count(const struct attached *a, struct reading *reading, struct policy_error *error);
void reading_free(struct reading *reading);

/* The sum over all CPUs of the counters of a pacer_rule.counter (0: no rule). -1: see errno. */
int reading_counters(const struct attached *a, uint32_t slot, struct pacer_counters *sum);

/* The sum over the reasons of a verdict. */
struct pacer_count reading_of_verdict(const struct pacer_counters *c, enum pacer_verdict verdict);

#endif
