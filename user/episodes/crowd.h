/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: who sends what a rule denies: the keys with the greatest shares, the entropy of the
 * sources, and whether the sources look spoofed; from a sample of denied packets. Pure.
 *
 * Source: the estimators of user/estimate/pooled.h, of one part.
 *
 * 	spoofed		of the sampled sources, two or more are addresses that no host sends from
 * 			(0/8, 127/8, 224/3; multicast, ::, ::1), and half of the packets or more
 * 			are of sources that are in the sample once
 * 	many		the latter alone: spoofed within some networks, or truly many hosts
 * 	one		one source has half of the packets or more
 * 	few		half of the packets or more are of sources that are in the sample more than
 * 			once: some tens at most
 * 	unclear		the sample does not tell
 *
 * Each is said where the interval leaves nothing else: it is wrong once in 20 at most. Sources that
 * are drawn from all of IPv4 are of addresses that no host sends from with 13 %, so that a sample
 * of 64 has fewer than two once in 900.
 *
 * Error: that of the sample, whose packets are drawn independently: which rule a packet falls under
 * does not matter to the draw, so those of one rule are a sample of its packets.
 *
 * Concurrency: none. Memory: that of pooled.h while it is asked.
 */
#ifndef PACER_CROWD_H
#define PACER_CROWD_H

#include "config/policy.h"
#include "episodes/heavy.h"
#include "parse.h"

#define CROWD_MAX  64u /* packets of a sample */
#define CROWD_KEYS 10u

/* X(NAME, name): */
#define CROWD_KINDS(X)      \
	X(UNKNOWN, unknown) \
	X(UNCLEAR, unclear) \
	X(ONE, one)         \
	X(FEW, few)         \
	X(MANY, many)       \
	X(SPOOFED, spoofed)

enum crowd_kind {
#define CROWD_ENUM(name, text) CROWD_##name,
	CROWD_KINDS(CROWD_ENUM)
#undef CROWD_ENUM
};

/* A denied packet of a sample. */
struct crowd_packet {
	uint64_t time_ns;
	uint32_t rule; /* its number in the policy */
	enum pacer_reason reason;
	struct policy_key by; /* how keys are told apart by the limit that denied it */
	uint32_t limits;      /* of its rule, a bit each, that may have denied it */
	struct pacer_packet pkt;
	struct pacer_packet seen; /* as that limit sees it */
};

struct crowd_key {
	char key[TALLY_TEXT]; /* of a limit of all: the source */
	struct policy_key by;
	uint32_t limits;	  /* that may have denied it, as above */
	struct heavy_share share; /* of the denied packets */
	double len_bytes;	  /* a packet's, on average */
};

struct crowd {
	enum crowd_kind kind; /* UNKNOWN: there is no sample */
	uint32_t samples;
	struct heavy_share entropy, single; /* of sources; bits, and the share seen once */
	uint32_t keys;			    /* the greatest first */
	struct crowd_key key[CROWD_KEYS];
};

const char *crowd_kind_name(enum crowd_kind kind);

/*
 * Of the packets of this rule since from_ns, out of a sample (CROWD_MAX packets at most) of n
 * packets. Where there is no memory, it is as if there were no sample.
 */
void crowd_read(struct crowd *c, const struct crowd_packet *packet, uint32_t samples, uint64_t n,
		uint32_t rule, uint64_t from_ns);

#endif
