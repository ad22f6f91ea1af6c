/* SPDX-License-Identifier: GPL-2.0-only */
#include "estimate/estimate_key.h"

#include <stdio.h>
#include <string.h>

#include "estimate.h"
#include "key.h"
#include "sampler.h"
#include "inspect/tally.h"
#include "plan/keymask.h"

int estimate_key_open(const char *key, struct estimate_key *out, struct policy_error *error)
{
	const char *why;
	char text[POLICY_KEY_TEXT + 64];

	if (strlen(key) >= POLICY_KEY_TEXT ||
	    strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789+/,") != strlen(key))
		return policy_fail(error, 0,
				   "--key %s is none: src, dst, src/24,56, flow, src+dport", key);
	snprintf(text, sizeof(text), "rules: [{name: k, limits: [{key: \"%s\", gap: 1ms}]}]", key);
	*out = (struct estimate_key){.text = key};
	out->policy = policy_parse(text, strlen(text), error);
	if (!out->policy) {
		struct policy_error found = *error;

		if (found.line == POLICY_NO_MEMORY)
			return policy_fail(error, found.line, "no memory");
		why = strstr(found.text, "key: ");
		return policy_fail(error, 0, "--key: %.300s", why ? why + 5 : found.text);
	}
	out->key = &out->policy->rule[0].limit[0].key;
	if (out->key->parts & KEY_PART_TTL) {
		estimate_key_close(out);
		return policy_fail(error, 0,
				   "--key %s: a sample does not keep a packet's TTL: leave ttl out",
				   key);
	}
	return 0;
}

void estimate_key_close(struct estimate_key *key)
{
	policy_free(key->policy);
	key->policy = NULL;
}

/* --- packets -------------------------------------------------------------------------------- */

static uint64_t hash_word(uint64_t sum, uint32_t word)
{
	return pacer_estimate_mix(sum + word);
}

static uint64_t hash_address(const struct pacer_packet *pkt, uint32_t word, uint8_t len4,
			     uint8_t len6)
{
	bool four = pkt->family == PACER_FAMILY_4;
	uint32_t len = four ? len4 : len6;
	uint64_t sum = four ? 4 : 6;

	for (uint32_t i = 0; i < 4; i++) {
		uint32_t bits = len > 32 * i ? len - 32 * i : 0;
		uint32_t mask = bits >= 32 ? UINT32_MAX : bits ? ~(UINT32_MAX >> bits) : 0;

		sum = hash_word(sum, pkt->key[word + i] & mask);
	}
	return sum;
}

uint64_t estimate_key_hash(const struct estimate_key *by, const struct pacer_packet *pkt)
{
	const struct policy_key *key = by->key;
	struct pacer_limiter masks;
	uint64_t sum = key->parts ? pkt->family : 0; /* "all" is one for both */

	key_masks(key, &masks);
	if (key->parts & KEY_PART_SRC)
		sum = hash_address(pkt, PACER_WORD_SADDR, key->src4, key->src6);
	if (key->parts & KEY_PART_DST)
		sum ^= hash_word(hash_address(pkt, PACER_WORD_DADDR, key->dst4, key->dst6), 1);
	if (key->parts & ~(KEY_PART_SRC | KEY_PART_DST))
		sum = hash_word(
		    hash_word(sum, pkt->key[PACER_WORD_PORTS] & masks.mask6[PACER_WORD_PORTS]),
		    pkt->key[PACER_WORD_META] & masks.mask6[PACER_WORD_META]);
	return sum;
}

uint64_t estimate_key_address(const struct pacer_packet *pkt, uint32_t word)
{
	return hash_address(pkt, word, 32, 128);
}

const char *estimate_key_text(const struct estimate_key *key, const struct pacer_packet *pkt,
			      char *buf)
{
	return tally_key_text(key->key, pkt, buf, TALLY_TEXT);
}

struct pacer_packet estimate_packet(const struct pacer_sample_item *item)
{
	struct pacer_packet pkt = {.len_bytes = item->len_bytes,
				   .vlan = item->vlan ? item->vlan : PACER_VLAN_NONE,
				   .family = item->family & ~PACER_SAMPLER_LATER,
				   .proto = item->proto};

	for (int i = 0; i < 4; i++) {
		pkt.key[PACER_WORD_SADDR + i] = item->saddr[i];
		pkt.key[PACER_WORD_DADDR + i] = item->daddr[i];
	}
	pkt.key[PACER_WORD_PORTS] = (uint32_t)item->sport << 16 | item->dport;
	pkt.key[PACER_WORD_META] = pacer_meta_vlan(item->vlan) | item->proto;
	if (item->family & PACER_SAMPLER_LATER) {
		pkt.fragment = PACER_FRAG_LATER;
		pkt.key[PACER_WORD_META] |= PACER_META_FRAGMENT;
	}
	return pkt;
}

struct pacer_sample_item estimate_item(const struct pacer_packet *pkt, uint64_t time_ns)
{
	uint8_t later = pkt->key[PACER_WORD_META] & PACER_META_FRAGMENT ? PACER_SAMPLER_LATER : 0;
	struct pacer_sample_item item = {.time_ns = time_ns,
					 .sport = pkt->key[PACER_WORD_PORTS] >> 16,
					 .dport = pkt->key[PACER_WORD_PORTS],
					 .len_bytes = pkt->len_bytes,
					 .family = pkt->family | later,
					 .proto = pkt->proto,
					 .vlan = pkt->key[PACER_WORD_META] >> PACER_META_VLAN_AT};

	for (int i = 0; i < 4; i++) {
		item.saddr[i] = pkt->key[PACER_WORD_SADDR + i];
		item.daddr[i] = pkt->key[PACER_WORD_DADDR + i];
	}
	return item;
}

/* --- the rule ------------------------------------------------------------------------------- */

size_t estimate_rule_of(const struct pacer_policy *bin, size_t n_rules,
			const struct pacer_sample_item *item)
{
	for (size_t r = 0; r < n_rules; r++)
		if (item->rule && bin->rule[r].counter == item->rule)
			return r;
	return PACER_RULES_MAX;
}
