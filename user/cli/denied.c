/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/denied.h"

#include <string.h>

#include "estimate/judged.h"

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

/* Was the packet judged by this limit of the rule, with a key that `why` names? */
static bool is_judged_by(const struct judged_by *by, uint32_t rule, size_t limit,
			 const struct pacer_sample_item *item, const struct why *why)
{
	struct policy_key kind = compile_key_of(by->bin->rule[rule].limiter[limit].key_id);
	struct pacer_packet seen;
	char key[TALLY_TEXT];

	if (!judged_limit(by, rule, limit, item, &seen))
		return false;
	tally_key_text(&kind, &seen, key, sizeof(key));
	for (size_t i = 0; i < why->n; i++)
		if (!strcmp(why->limit[i].key, key))
			return true;
	return false;
}

static struct denied denied_as(const struct pacer_sample_item *item)
{
	return (struct denied){true, item->time_ns, item->reason};
}

static struct denied find_key(const struct judged_by *by, const struct sample *sample,
			      uint32_t rule, const struct why *why)
{
	const struct pacer_rule *judged = &by->bin->rule[rule];

	for (uint32_t i = 0; i < sample->rows; i++) { /* the newest first */
		const struct pacer_sample_item *item = &sample->row[i].item;

		if (!is_denial(item->reason) || item->rule != judged->counter)
			continue;
		for (size_t k = 0; k < judged->n_limiters; k++)
			if (is_judged_by(by, rule, k, item, why))
				return denied_as(item);
	}
	return (struct denied){0};
}

struct denied denied_of_keys(const struct attached *a, const struct sample *sample, uint32_t rule,
			     const struct why *why)
{
	struct judged_by by;
	struct denied d;

	judged_open(a, &sample->copy->policy, &by);
	d = find_key(&by, sample, rule, why);
	judged_close(&by);
	return d;
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
