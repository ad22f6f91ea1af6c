/* SPDX-License-Identifier: GPL-2.0-only */
#include "estimate/differing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "estimate.h"
#include "estimate/estimate_key.h"
#include "estimate/estimator.h"
#include "estimate/judged.h"
#include "live/copies.h"
#include "live/object.h"
#include "live/shadow_reading.h"

struct words {
	const struct attached *shadow;
	const struct policy *policy;
	const struct pacer_policy *bin;
	struct judged_by by;
};

/* Which way it fares differently: as the packet did, a key may do both. */
static enum pacer_change change_of(const struct words *w, const struct pacer_sample_item *item)
{
	size_t rule = estimate_rule_of(w->bin, w->policy->n_rules, item);

	return shadow_passes(w->bin, rule, item->reason) ? PACER_CHANGE_ADMIT : PACER_CHANGE_DENY;
}

static uint64_t number_of(const struct pacer_sample_item *item, const void *arg)
{
	const struct words *w = arg;
	struct pacer_packet pkt = estimate_packet(item);
	uint64_t judged = change_of(w, item);

	judged = judged << 40 | (uint64_t)item->rule << 32 | item->key;
	if (!item->rule)
		judged ^= estimate_key_address(&pkt, PACER_WORD_SADDR);
	return pacer_estimate_mix(judged);
}

static void fill_key(const struct words *w, const struct pacer_sample_item *item,
		     struct differing_key *to)
{
	struct policy_key key = KEY_SRC(32, 128);
	struct pacer_packet seen = estimate_packet(item);
	size_t rule = estimate_rule_of(w->bin, w->policy->n_rules, item);

	(void)judged_key(&w->by, rule, item, &key, &seen);
	snprintf(to->rule, sizeof(to->rule), "%s",
		 rule < PACER_RULES_MAX ? w->policy->rule[rule].name : "");
	to->change = change_of(w, item);
	to->reason = item->reason;
	tally_key_text(&key, &seen, to->key, sizeof(to->key));
}

static int find_keys(const struct words *w, const struct drawn *drawn, struct differing *d)
{
	struct pooled *p = pooled_open(drawn->part, drawn->cpus, false);
	uint32_t most = drawn->cpus * PACER_SAMPLE_K, n;
	struct pooled_key *found = calloc(most, sizeof(*found));
	struct pooled_values values;

	if (p && found) {
		values = pooled_read(p, 2, ESTIMATE_DELTA);
		d->n = values.n;
		d->samples = values.samples;
		n = pooled_keys(p, ESTIMATE_DELTA, found, most);
		for (; d->n_keys < n && d->n_keys < DIFFERING_MAX; d->n_keys++) {
			struct differing_key *to = &d->key[d->n_keys];

			fill_key(w, drawn_item(drawn, &found[d->n_keys]), to);
			to->times = found[d->n_keys].times;
			to->share = found[d->n_keys].share;
		}
	}
	pooled_close(p);
	free(found);
	return p && found ? 0 : -1;
}

int differing_read(const struct attached *shadow, struct differing *d, struct policy_error *error)
{
	uint32_t copy = copies_in_force(shadow);
	struct attached view = *shadow; /* with that sample in the place of its policy's */
	struct policy *policy = copies_policy(shadow, copy, error);
	struct words w = {.shadow = shadow, .policy = policy, .bin = &shadow->copy[copy].policy};
	struct drawn drawn;
	int code;

	*d = (struct differing){.window_ns = OBJECT_DIFFER_NS};
	if (!policy)
		return -1;
	judged_open(shadow, w.bin, &w.by);
	view.sampler = shadow->differ;
	view.n_samplers = shadow->n_differ;
	code = drawn_take(&view, &shadow->shadowed->of, number_of, &w, &drawn, error);
	if (!code) {
		code = find_keys(&w, &drawn, d);
		drawn_free(&drawn);
		if (code)
			policy_explain(error, POLICY_NO_MEMORY, "%s: no memory", shadow->ifname);
	}
	judged_close(&w.by);
	policy_free(policy);
	return code;
}
