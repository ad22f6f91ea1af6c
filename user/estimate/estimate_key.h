/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the key that `estimate` counts by, as in a policy, of packets and of sampled items.
 *
 * Concurrency: none. Error: keys are 64-bit hashes; two of one hash count as one.
 * Memory: that of a policy of one rule.
 */
#ifndef PACER_ESTIMATE_KEY_H
#define PACER_ESTIMATE_KEY_H

#include "parse.h"
#include "config/policy.h"
#include "plan/compile.h"
#include "sample.h"

struct estimate_key {
	struct policy *policy; /* the policy that has the key */
	const struct policy_key *key;
	const char *text;
};

/*
 * Reads a key as a policy's limit has it: src, dst, src/24,56, flow, src+dport, all. 0, and the key
 * is to be closed; or -1 with *error filled.
 */
int estimate_key_open(const char *text, struct estimate_key *key, struct policy_error *error);
void estimate_key_close(struct estimate_key *key);

uint64_t estimate_key_hash(const struct estimate_key *key, const struct pacer_packet *pkt);
/* The hash of a whole address; word is PACER_WORD_SADDR or PACER_WORD_DADDR. */
uint64_t estimate_key_address(const struct pacer_packet *pkt, uint32_t word);
/* buf has TALLY_TEXT bytes. Returns buf. */
const char *estimate_key_text(const struct estimate_key *key, const struct pacer_packet *pkt,
			      char *buf);

/* The packet of a sampled item, with all that keys and their text need. */
struct pacer_packet estimate_packet(const struct pacer_sample_item *item);
struct pacer_sample_item estimate_item(const struct pacer_packet *pkt, uint64_t time_ns);

/* The rule of n_rules that a sampled packet fell under, by its number; PACER_RULES_MAX: none of
 * them. */
size_t estimate_rule_of(const struct pacer_policy *bin, size_t n_rules,
			const struct pacer_sample_item *item);

#endif
