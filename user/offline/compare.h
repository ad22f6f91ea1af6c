/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: judges a capture under two policies and finds the packets and keys that fare
 * differently. A packet counts under the key of the limit that denied it. Limits of the two
 * policies count as one if their rules have the same name and their keys are the same.
 *
 * A packet fares differently where one of the two lets it through and the other stops it, as of a
 * shadow (beside.h): what monitor and over: pass let through is denied, and not stopped.
 *
 * Concurrency: one thread.
 *
 * Error: a key is counted exactly from its first denial by either policy on, as long as the table
 * has room. Denials of further keys are one number.
 *
 * Memory: the state of both policies and the table of keys; nothing grows with the capture.
 */
#ifndef PACER_COMPARE_H
#define PACER_COMPARE_H

#include "offline/capture.h"
#include "offline/judge.h"
#include "inspect/tally.h"

#define COMPARE_KINDS_MAX (2 * PACER_RULES_MAX * POLICY_LIMITS_MAX)

/* Limits of the two policies count as one if these are the same. */
struct compare_kind {
	const char *rule;
	struct policy_key key;
};

/* Counted for one key. */
struct compare_note {
	uint64_t denied[2], only[2]; /* by each policy; stopped by it alone */
	struct pacer_packet pkt;
};

/* All zero before it is opened. */
struct comparison {
	struct judge *judge;
	struct compare_kind kind[COMPARE_KINDS_MAX];
	uint32_t n_kinds;
	struct tally keys;
	uint64_t packets, first_ns, last_ns;
	uint64_t denied[2], stopped[2], only[2];
};

/* 0, or -1 with *error filled. The judges have to stay. */
int compare_open(struct comparison *c, struct judge judge[2], struct policy_error *error);
int compare_read(struct comparison *c, struct capture *capture, struct policy_error *error);
void compare_close(struct comparison *c);

/* After reading: sorts the keys, the greatest difference first. Returns how many differ. */
uint32_t compare_sort(struct comparison *c);
const struct compare_kind *compare_kind_at(const struct comparison *c, uint32_t i);

#endif
