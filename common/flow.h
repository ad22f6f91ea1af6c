/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: which packets open a flow, for limits that count these alone (`of: new`).
 *
 * A flow is source, destination, ports and protocol, with the VLAN. Of TCP a SYN without ACK opens
 * one: the packet says so itself, and nothing is kept. Of all others it is the first packet that
 * the rule let through, as the table of flows remembers it. ICMP and others without ports have one
 * flow for two addresses.
 *
 * A packet of which it cannot be told opens a flow, each time: a later fragment, one whose ports or
 * flags were not read, a frame that is not IP.
 *
 * A flow is entered only when every limit of its rule has admitted a packet of it. So one that was
 * denied is new again with its next packet. It is known under that rule until it has been silent
 * for idle_ns. An entry is a line with the whole flow in it. It lies in one of the four lines of a
 * set, by a keyed hash. A flow that finds no line empty takes the one that was silent longest.
 *
 * Error: a flow that is known may be taken for a new one, and is counted once more: when another
 * flow took its line, when another CPU has its line in hand, after another secret, and up to a
 * sixteenth of idle_ns too early. A new flow is never taken for a known one: all of it is compared.
 * Whoever opens many flows makes those forgotten that send seldom, no others: with n new flows a
 * second, a table of e entries forgets who is silent for about e/n seconds. That denies more, and
 * never less.
 *
 * Concurrency: any number of CPUs. A line is written under its lock; readers take none, and
 * believe only what was not changed meanwhile (lock.h). Two CPUs that have a flow's first two
 * packets at once count both.
 *
 * Memory: 64 bytes a flow. None for rules of TCP alone.
 */
#ifndef PACER_FLOW_H
#define PACER_FLOW_H

#include "abi.h"
#include "hash.h"
#include "limit.h"
#include "lock.h"
#include "parse.h"

/* A known flow's time is written again after idle_ns shifted by this. */
#define PACER_FLOW_AGAIN 4

/* Clocks of two CPUs may differ by so much. What lies further ahead is no time of a packet. */
#define PACER_FLOW_AHEAD_NS 250000000u

/* Is it known which flow the packet belongs to? */
PACER_INLINE int pacer_flow_told(const struct pacer_packet *pkt)
{
	return pkt->family != PACER_FAMILY_NONE && pkt->fragment != PACER_FRAG_LATER &&
	       pkt->ports <= PACER_PORTS_NONE;
}

/* Word i of the flow, 0 to PACER_KEY_WORDS - 1. */
PACER_INLINE __u32 pacer_flow_word(const struct pacer_packet *pkt, __u32 i)
{
	return i == PACER_WORD_META ? pkt->key[i] & (PACER_META_PROTO | PACER_META_VLAN)
				    : pkt->key[i];
}

/* The first line of the flow's set. There are some. */
PACER_GLOBAL __u32 pacer_flow_set(const struct pacer_walk *w)
{
	const struct pacer_flows *flows;
	const __u64 *of;
	__u64 home;
	__u32 i;

	if (!w)
		return 0;
	flows = &PACER_POLICY_OF(w)->flows;
	of = PACER_SECRET_AT(w, PACER_POLICY_OF(w)->secret);
	home = of[w->pkt.family == PACER_FAMILY_6 ? PACER_HASH_FAMILY6 : PACER_HASH_FAMILY4];
	PACER_ROLLED
	for (i = 0; i < PACER_KEY_WORDS; i++)
		home += of[i] * pacer_flow_word(&w->pkt, i);
	return flows->base +
	       pacer_reduce(pacer_hash_fold(home >> 32) * PACER_HASH_ODD, flows->sets) *
		   PACER_FLOW_WAYS;
}

/* Mostly the ports tell. The rest is opaque, as in pacer_ban_is. */
PACER_INLINE int pacer_flow_is(struct pacer_line *line, const struct pacer_packet *pkt,
			       __u32 rule_id)
{
	__u32 differs = (pacer_load(&line->flow_rule) ^ rule_id) |
			(pacer_load(&line->flow_family) ^ pkt->family);
	__u32 i;

	if (pacer_load(&line->flow_key[PACER_WORD_PORTS]) != pkt->key[PACER_WORD_PORTS])
		return 0;
	for (i = 0; i < PACER_KEY_WORDS; i++)
		differs |= pacer_load(&line->flow_key[i]) ^ pacer_flow_word(pkt, i);
	return !pacer_opaque(differs);
}

/*
 * When a packet of the flow was let through last, as this line has it. 0: it is not the flow's, or
 * it is just being changed.
 */
PACER_GLOBAL __u64 pacer_flow_seen(const struct pacer_walk *w, __u32 rule_id, __u32 index)
{
	struct pacer_line *line;
	__u64 seen_ns;
	__u32 word;

	if (!w)
		return 0;
	line = PACER_LINE_AT(PACER_TABLE_OF(w), index);
	if (!line)
		return 0;
	word = pacer_load(&line->flow_lock);
	PACER_BARRIER();
	seen_ns = pacer_load64(&line->flow_seen_ns);
	PACER_BARRIER();
	if (!pacer_flow_is(line, &w->pkt, rule_id))
		return 0;
	if (PACER_FAULT(FLOW_READ_ONCE))
		return seen_ns;
	PACER_BARRIER();
	/* Both, as the word is the same again after 512 changes. */
	if (word & PACER_LOCK_HELD || pacer_load64(&line->flow_seen_ns) != seen_ns)
		return 0;
	PACER_BARRIER();
	return pacer_load(&line->flow_lock) == word ? seen_ns : 0;
}

/* When a packet of the flow was let through last, as its set has it; 0: it is in none. */
PACER_INLINE __u64 pacer_flow_last(const struct pacer_walk *w, __u32 rule_id)
{
	__u64 seen_ns = 0;
	__u32 i, at = pacer_flow_set(w);

	PACER_ROLLED
	for (i = 0; i < PACER_FLOW_WAYS && !seen_ns; i++)
		seen_ns = pacer_flow_seen(w, rule_id, at + i);
	return seen_ns;
}

/*
 * Is the packet's flow, which was told, known under the rule of this id? PACER_META_KNOWN then,
 * with PACER_META_FRESH where it was noted just now. Read only.
 */
PACER_GLOBAL __u32 pacer_flow_known(const struct pacer_walk *w, __u32 rule_id)
{
	const struct pacer_flows *flows;
	__u64 seen_ns;

	if (!w)
		return 0;
	flows = &PACER_POLICY_OF(w)->flows;
	if (!flows->sets)
		return 0;
	seen_ns = pacer_flow_last(w, rule_id);
	if (!seen_ns)
		return 0;
	if (w->now_ns < seen_ns)
		return seen_ns - w->now_ns < PACER_FLOW_AHEAD_NS
			   ? PACER_META_KNOWN | PACER_META_FRESH
			   : 0;
	seen_ns = w->now_ns - seen_ns;
	if (seen_ns >= flows->idle_ns)
		return 0;
	return seen_ns < flows->idle_ns >> PACER_FLOW_AGAIN ? PACER_META_KNOWN | PACER_META_FRESH
							    : PACER_META_KNOWN;
}

/*
 * From when on the packet, which opens no flow now, opens one again, if none of its flow is let
 * through until then: it is forgotten. PACER_NEVER: of TCP, whose packets say so themselves. Next
 * to writers it may be that it is forgotten already. Not for the packet path.
 */
PACER_INLINE __u64 pacer_flow_ends(const struct pacer_walk *w, __u32 rule_id)
{
	__u64 seen_ns;

	if (w->pkt.proto == PACER_IPPROTO_TCP)
		return PACER_NEVER;
	seen_ns = pacer_flow_last(w, rule_id);
	return seen_ns ? seen_ns + PACER_POLICY_OF(w)->flows.idle_ns : w->now_ns;
}

/* Writes the flow into this line, unless another CPU has it in hand. */
PACER_GLOBAL int pacer_flow_enter(const struct pacer_walk *w, __u32 rule_id, __u32 index)
{
	struct pacer_line *line;
	__u32 word, i;

	if (!w)
		return 0;
	line = PACER_LINE_AT(PACER_TABLE_OF(w), index);
	if (!line)
		return 0;
	if (PACER_FAULT(FLOW_UNLOCKED))
		word = pacer_load(&line->flow_lock);
	else if (pacer_lock_try(&line->flow_lock, PACER_LOCK_ANY, &word) != PACER_LOCK_TAKEN)
		return 0;
	word = pacer_lock_next(word);
	pacer_store(&line->flow_lock, word);
	PACER_BARRIER();
	pacer_store64(&line->flow_seen_ns, 0);
	pacer_store(&line->flow_rule, rule_id);
	pacer_store(&line->flow_family, w->pkt.family);
	for (i = 0; i < PACER_KEY_WORDS; i++)
		pacer_store(&line->flow_key[i], pacer_flow_word(&w->pkt, i));
	pacer_store64(&line->flow_seen_ns, w->now_ns);
	pacer_lock_release(&line->flow_lock, word);
	return 1;
}

/* Is this line the flow's? Then its time is that of the packet, if the last one is long ago. */
PACER_INLINE int pacer_flow_again(const struct pacer_walk *w, struct pacer_line *line,
				  __u32 rule_id, __u64 seen_ns)
{
	if (!seen_ns || !pacer_flow_is(line, &w->pkt, rule_id))
		return 0;
	if (w->now_ns <= seen_ns ||
	    w->now_ns - seen_ns < PACER_POLICY_OF(w)->flows.idle_ns >> PACER_FLOW_AGAIN)
		return 1;
	if (PACER_FAULT(FLOW_PLAIN_AGAIN))
		pacer_store64(&line->flow_seen_ns, w->now_ns);
	else /* unless it is another flow's by now */
		(void)!pacer_cas64(&line->flow_seen_ns, seen_ns, w->now_ns);
	return 1;
}

/*
 * Remembers the flow of a packet that all limits of its rule, w->rule, have admitted. If another
 * CPU is in the way it does not, and the flow's next packet opens it again.
 */
PACER_GLOBAL int pacer_flow_keep(const struct pacer_walk *w)
{
	__u32 i, at, rule_id, oldest = 0;
	__u64 seen_ns, oldest_ns = ~0ull;

	if (!w || !PACER_POLICY_OF(w)->flows.sets || !pacer_flow_told(&w->pkt) ||
	    w->pkt.proto == PACER_IPPROTO_TCP || w->pkt.key[PACER_WORD_META] & PACER_META_FRESH)
		return 0;
	rule_id = PACER_RULE_OF(w)->id;
	at = pacer_flow_set(w);
	PACER_ROLLED
	for (i = 0; i < PACER_FLOW_WAYS; i++) {
		struct pacer_line *line = PACER_LINE_AT(PACER_TABLE_OF(w), at + i);

		if (!line)
			continue;
		seen_ns = pacer_load64(&line->flow_seen_ns);
		if (pacer_flow_again(w, line, rule_id, seen_ns))
			return 0;
		if (seen_ns < oldest_ns) {
			oldest_ns = seen_ns;
			oldest = at + i;
		}
	}
	return oldest_ns != ~0ull && pacer_flow_enter(w, rule_id, oldest);
}

#endif
