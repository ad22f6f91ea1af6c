/* SPDX-License-Identifier: GPL-2.0-only */
#include "estimate/judged.h"

#include "estimate/estimate_key.h"
#include "plan/keymask.h"
#include "plan/kinds.h"
#include "rule.h"

/* A rule's first value comes first. */
static bool is_valued(const struct pacer_policy *bin)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		if (bin->rule[r].value[0])
			return true;
	return false;
}

void judged_open(const struct attached *a, const struct pacer_policy *bin, struct judged_by *by)
{
	struct policy_error unused;

	*by = (struct judged_by){.a = a, .bin = bin};
	if (!is_valued(bin) || look_open(a, &by->look, &unused))
		return;
	by->looked = by->look.policy == bin;
	if (!by->looked)
		look_close(&by->look);
}

void judged_close(struct judged_by *by)
{
	if (by->looked)
		look_close(&by->look);
	by->looked = false;
}

/* The packet with the values of its addresses, as far as the limit has them. */
static bool take_values(const struct judged_by *by, size_t rule, const struct pacer_limiter *t,
			uint64_t now_ns, struct pacer_packet *pkt)
{
	struct pacer_walk walk = {.now_ns = now_ns, .pkt = *pkt};
	struct pacer_state state;

	if (!pacer_limiter_valued(t))
		return true;
	if (!by->looked)
		return false;
	state = look_state(&by->look, 0);
	walk.state = &state;
	if (pacer_walk_values(&walk, rule))
		return false;
	*pkt = pacer_limiter_sees(t, pkt, walk.value);
	return true;
}

bool judged_limit(const struct judged_by *by, size_t rule, size_t limit,
		  const struct pacer_sample_item *item, struct pacer_packet *seen)
{
	const struct pacer_limiter *t = &by->bin->rule[rule].limiter[limit];
	const __u64 *secret = by->a->control->secret[t->secret & 1];
	uint32_t ttls = t->mask6[PACER_WORD_META] & PACER_META_TTL ? 256 : 1;
	struct pacer_packet pkt = estimate_packet(item);

	if (!take_values(by, rule, t, item->time_ns, &pkt))
		return false;
	for (uint32_t ttl = 0; ttl < ttls; ttl++) {
		*seen = pkt;
		seen->key[PACER_WORD_META] |= ttl << PACER_META_TTL_AT;
		if (pacer_limiter_hash(t, seen, secret).home == item->key)
			return true;
	}
	return false;
}

/*
 * How likely is it that this limit has judged it, of those whose hash fits? A TTL of 0 adds nothing
 * to a hash, and is no packet's that comes from another host.
 */
static int fits(const struct pacer_limiter *t, const struct pacer_sample_item *item,
		const struct pacer_packet *seen)
{
	const struct limit_kind *kind = kind_of_limiter(t);
	bool by_ttl = t->mask6[PACER_WORD_META] & PACER_META_TTL;
	bool by_reason = item->reason == PACER_DENY_GAP ? t->gap_ns > 0 /* beside a window, too */
							: kind && kind->reason == item->reason;

	return 1 + (!by_ttl || seen->key[PACER_WORD_META] & PACER_META_TTL) + 2 * by_reason;
}

int judged_limiter(const struct judged_by *by, size_t rule, const struct pacer_sample_item *item,
		   struct pacer_packet *seen)
{
	struct pacer_packet pkt;
	int best = 0, found = -1;

	for (size_t k = 0; rule < PACER_RULES_MAX && k < by->bin->rule[rule].n_limiters; k++) {
		const struct pacer_limiter *t = &by->bin->rule[rule].limiter[k];

		if (!judged_limit(by, rule, k, item, &pkt) || fits(t, item, &pkt) <= best)
			continue;
		best = fits(t, item, &pkt);
		*seen = pkt;
		found = (int)k;
	}
	return found;
}

bool judged_key(const struct judged_by *by, size_t rule, const struct pacer_sample_item *item,
		struct policy_key *key, struct pacer_packet *seen)
{
	int limiter = judged_limiter(by, rule, item, seen);

	if (limiter < 0)
		return false;
	*key = compile_key_of(by->bin->rule[rule].limiter[limiter].key_id);
	return true;
}
