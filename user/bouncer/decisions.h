/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the decisions of a CrowdSec local API, from the JSON of its stream, and the bans that
 * follow from them. Pure: who asks has the clock.
 *
 * Source: /v1/decisions/stream of CrowdSec's API: {"new": [DECISION...], "deleted": [DECISION...]},
 * each list null where it is empty. Of a decision these count: id, type, scope, value, duration
 * (Go's: "3h59m1.5s") and simulated. Several decisions may be of one source, each with an end of
 * its own: the source is banned while one of them lasts.
 *
 * Only decisions of type ban and of the scopes Ip and Range are taken. A pacer looks for few
 * lengths of prefixes (PACER_BAN_LENGTHS), so a range is banned as prefixes of the next length of
 * 8, 16, 24, 32 or, of IPv6, 32, 48, 64, 128 bits.
 *
 * Error: an answer that is no such object changes nothing. A decision that cannot be read is left
 * out, and told of; so is one with which there would be more than DECISIONS_BANS bans, the latest
 * first. Memory: 48 bytes a decision, 32 a ban: 32 MiB a list of bans at most.
 */
#ifndef PACER_DECISIONS_H
#define PACER_DECISIONS_H

#include <stdbool.h>

#include "config/policy.h"
#include "config/units.h"

#define DECISIONS_PIECES 256	    /* prefixes that a range may be banned as */
#define DECISIONS_BANS	 (1u << 20) /* and all decisions together */

struct decision {
	int64_t id;
	uint64_t until_ns;
	struct prefix prefix;
};

struct decisions {
	struct decision *at; /* by id */
	size_t n;
};

/* What of an answer was not taken: how many decisions, and why not the first. */
struct decisions_told {
	size_t left_out;
	char why[200];
};

/*
 * Takes over the decisions of an answer that was made at now_ns. `whole`: it has all there are, and
 * the others are gone. 0, or -1 with *error filled and nothing changed.
 */
int decisions_take(struct decisions *d, const char *json, size_t len, bool whole, uint64_t now_ns,
		   struct decisions_told *told, struct policy_error *error);
void decisions_free(struct decisions *d);

struct ban_piece {
	struct prefix prefix;
	uint64_t until_ns;
};

struct ban_pieces {
	struct ban_piece *at; /* by prefix, each once */
	size_t n;
};

/* The bans that follow from the decisions that last at now_ns. 0, or -1: no memory. */
int decisions_bans(const struct decisions *d, uint64_t now_ns, struct ban_pieces *bans);

/*
 * Gives those of `is` the end that they have in `was`, where both differ by slack_ns or less: they
 * were told as what was left of them. So small differences do not add up.
 */
void decisions_settle(const struct ban_pieces *was, struct ban_pieces *is, uint64_t slack_ns);

/*
 * What makes `was` into `is` at now_ns: bans to be lifted, and then others to be made. Ends that
 * differ by slack_ns or less count as the same: they were told as what was left of them, and by
 * whom is not known when. 0, or -1: no memory.
 */
int decisions_change(const struct ban_pieces *was, const struct ban_pieces *is, uint64_t now_ns,
		     uint64_t slack_ns, struct ban_pieces *lift, struct ban_pieces *add);

/* The piece of that prefix; NULL: there is none. */
const struct ban_piece *decisions_find(const struct ban_pieces *pieces,
				       const struct prefix *prefix);

/* What is in one of them or both, with the later end. 0, or -1: no memory. */
int decisions_either(const struct ban_pieces *a, const struct ban_pieces *b,
		     struct ban_pieces *both);
/* The same of what is in both. */
int decisions_both(const struct ban_pieces *a, const struct ban_pieces *b, struct ban_pieces *both);

/* "3h59m1.5s", "-10m", "250ms" in ns; what is negative is 0. 0, or -1: it is none. */
int decisions_duration(const char *text, uint64_t *ns);

#endif
