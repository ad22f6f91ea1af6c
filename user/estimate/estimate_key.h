/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what `estimate` counts by: a policy's key, of packets and of what is kept of them.
 *
 * Concurrency: none. Error: keys are 64-bit hashes; two of one hash count as one.
 * Memory: that of a policy of one rule.
 */
#ifndef PACER_ESTIMATE_KEY_H
#define PACER_ESTIMATE_KEY_H

#include "parse.h"
#include "config/policy.h"
#include "sample.h"

struct estimate_key {
	struct policy *policy; /* that has it */
	const struct policy_key *key;
	const char *text;
};

/* As a policy's limit has it: src, dst, src/24,56, flow, src+dport, all. 0 and a key to be closed,
 * or -1 with *error filled.
 */
int estimate_key_open(const char *text, struct estimate_key *key, struct policy_error *error);
void estimate_key_close(struct estimate_key *key);

uint64_t estimate_key_hash(const struct estimate_key *key, const struct pacer_packet *pkt);
/* Of a whole address: word is PACER_WORD_SADDR or PACER_WORD_DADDR. */
uint64_t estimate_key_address(const struct pacer_packet *pkt, uint32_t word);
/* buf: TALLY_TEXT bytes. Returns it. */
const char *estimate_key_text(const struct estimate_key *key, const struct pacer_packet *pkt,
			      char *buf);

/* The packet that an item of a sample was, as far as keys and their text go. */
struct pacer_packet estimate_packet(const struct pacer_sample_item *item);
struct pacer_sample_item estimate_item(const struct pacer_packet *pkt, uint64_t time_ns);

#endif
