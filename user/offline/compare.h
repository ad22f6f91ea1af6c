/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a capture under two policies: which packets and which keys fare differently. A packet's
 * key is that of the limit that denied it; limits of both policies with the same key in rules of
 * the same name count as one. Compared is what was judged, whatever monitor and over: pass make of
 * it.
 *
 * Concurrency: one thread.
 *
 * Error: keys are counted from their first denial by either policy on, exactly, up to the table's
 * room; what came of further keys is told as one number.
 *
 * Memory: the tables of both policies and that of the keys; nothing grows with the capture.
 */
#ifndef PACER_COMPARE_H
#define PACER_COMPARE_H

#include "offline/capture.h"
#include "offline/judge.h"
#include "plan/tally.h"

#define COMPARE_KINDS_MAX (2 * PACER_RULES_MAX * POLICY_LIMITS_MAX)

/* What keys of limits of the two policies have in common: a rule's name and the kind of key. */
struct compare_kind {
	const char *rule;
	struct policy_key key;
};

/* Of a key. */
struct compare_note {
	uint64_t denied[2], only[2]; /* by each policy, and by it alone */
	struct pacer_packet pkt;
};

/* All zero before it is opened. */
struct comparison {
	struct judge *judge;
	struct compare_kind kind[COMPARE_KINDS_MAX];
	uint32_t n_kinds;
	struct tally keys;
	uint64_t packets, first_ns, last_ns;
	uint64_t denied[2], only[2];
};

/* 0, or -1 with *error filled. The judges have to stay. */
int compare_open(struct comparison *c, struct judge judge[2], struct policy_error *error);
int compare_read(struct comparison *c, struct capture *capture, struct policy_error *error);
void compare_close(struct comparison *c);

/* After reading: sorts the keys, which differ most first, and returns how many differ. */
uint32_t compare_sort(struct comparison *c);
const struct compare_kind *compare_kind_at(const struct comparison *c, uint32_t i);

#endif
