/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/denied.h"

#include <string.h>

#include "estimate/estimate_key.h"
#include "key.h"

static bool is_denial(uint32_t reason)
{
	return reason < PACER_REASON_COUNT && pacer_verdict_of(reason) == PACER_VERDICT_DENY;
}

bool denied_is_sampled(const struct pacer_policy *policy)
{
	for (uint32_t reason = 0; reason < PACER_REASON_COUNT; reason++)
		if (is_denial(reason) && policy->sampling.reasons >> reason & 1)
			return true;
	return false;
}

/* Was the packet judged by this limiter, with a key that `why` names? The sample has its hash. */
static bool is_judged_by(const struct attached *a, const struct pacer_limiter *t,
			 const struct pacer_sample_item *item, const struct why *why)
{
	struct pacer_packet pkt = estimate_packet(item);
	struct policy_key by = compile_key_of(t->key_id);
	char key[TALLY_TEXT];

	if (pacer_limiter_hash(t, &pkt, a->control->secret[t->secret & 1]).home != item->key)
		return false;
	tally_key_text(&by, &pkt, key, sizeof(key));
	for (size_t i = 0; i < why->n; i++)
		if (!strcmp(why->limit[i].key, key))
			return true;
	return false;
}

static struct denied denied_as(const struct pacer_sample_item *item)
{
	return (struct denied){true, item->time_ns, item->reason};
}

struct denied denied_of_keys(const struct attached *a, const struct sample *sample, uint32_t rule,
			     const struct why *why)
{
	const struct pacer_rule *judged = &sample->copy->policy.rule[rule];

	for (uint32_t i = 0; i < sample->rows; i++) { /* the newest first */
		const struct pacer_sample_item *item = &sample->row[i].item;

		if (!is_denial(item->reason) || item->rule != judged->counter)
			continue;
		for (size_t k = 0; k < judged->n_limiters; k++)
			if (is_judged_by(a, &judged->limiter[k], item, why))
				return denied_as(item);
	}
	return (struct denied){0};
}

/* Does the address begin with the prefix? */
static bool is_from(const struct pacer_sample_item *item, const struct prefix *source)
{
	bool four = (item->family & ~PACER_SAMPLER_LATER) == PACER_FAMILY_4;

	if (four != (source->family == 4))
		return false;
	for (uint32_t bit = 0; bit < source->len; bit++)
		if ((source->addr[bit / 8] >> (7 - bit % 8) & 1) !=
		    (item->saddr[bit / 32] >> (31 - bit % 32) & 1))
			return false;
	return true;
}

struct denied denied_of_source(const struct sample *sample, const struct prefix *source)
{
	for (uint32_t i = 0; i < sample->rows; i++) {
		const struct pacer_sample_item *item = &sample->row[i].item;

		if (item->reason == PACER_DENY_BAN && !item->rule && is_from(item, source))
			return denied_as(item);
	}
	return (struct denied){0};
}
