/* SPDX-License-Identifier: GPL-2.0-only */
#include "estimate/busiest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "estimate.h"
#include "estimate/estimate_key.h"
#include "estimate/estimator.h"
#include "estimate/judged.h"
#include "live/attached.h"
#include "live/copies.h"

/* The verdict, the rule and the key that was judged; of what no rule judged, the source. */
static uint64_t number_of(const struct pacer_sample_item *item, const void *unused)
{
	struct pacer_packet pkt = estimate_packet(item);
	uint64_t judged = pacer_verdict_of(item->reason);

	(void)unused;
	judged = judged << 40 | (uint64_t)item->rule << 32 | item->key;
	if (!item->rule)
		judged ^= estimate_key_address(&pkt, PACER_WORD_SADDR);
	return pacer_estimate_mix(judged);
}

/* --- a key in words ------------------------------------------------------------------------- */

struct words {
	const struct attached *a;
	const struct policy *policy;
	const struct pacer_policy *bin;
	struct judged_by by;
};

static void fill_key(const struct words *w, const struct pacer_sample_item *item,
		     struct busy_key *to)
{
	static const struct policy_key source = KEY_SRC(32, 128);
	struct pacer_packet pkt = estimate_packet(item);
	size_t rule = estimate_rule_of(w->bin, w->policy->n_rules, item);
	struct pacer_packet seen = pkt;
	struct policy_key key = source;

	(void)judged_key(&w->by, rule, item, &key, &seen); /* else its source */

	snprintf(to->rule, sizeof(to->rule), "%s",
		 rule < PACER_RULES_MAX ? w->policy->rule[rule].name
		 : item->rule		? "?"
					: "");
	to->parts = key.parts;
	to->verdict = pacer_verdict_of(item->reason);
	to->reason = item->reason;
	tally_key_text(&key, &seen, to->key, sizeof(to->key));
	tally_key_text(key.parts == KEY_PART_SRC ? &key : &source, &pkt, to->source,
		       sizeof(to->source));
}

/* Those of a verdict, from the most frequent on. */
static void take_keys(const struct words *w, const struct drawn *drawn, enum pacer_verdict verdict,
		      const struct pooled_key *found, uint32_t n, struct busiest *b)
{
	size_t most = b->n_keys + BUSIEST_MAX;

	for (uint32_t i = 0; i < n && b->n_keys < most; i++) {
		const struct pacer_sample_item *item = drawn_item(drawn, &found[i]);

		if (pacer_verdict_of(item->reason) != verdict)
			continue;
		fill_key(w, item, &b->key[b->n_keys]);
		b->key[b->n_keys].times = found[i].times;
		b->key[b->n_keys].share = found[i].share;
		b->n_keys++;
	}
}

/* --- all of them ---------------------------------------------------------------------------- */

static int find_keys(const struct words *w, const struct drawn *drawn, struct busiest *b)
{
	bool without = drawn->by.form == PACER_SAMPLE_LAST;
	struct pooled *p = pooled_open(drawn->part, drawn->cpus, without);
	uint32_t most = drawn->cpus * PACER_SAMPLE_K, n;
	struct pooled_key *found = calloc(most, sizeof(*found));
	struct pooled_values values;

	if (p && found) {
		values = pooled_read(p, 2, ESTIMATE_DELTA);
		b->n = values.n;
		b->samples = values.samples;
		n = pooled_keys(p, ESTIMATE_DELTA, found, most);
		take_keys(w, drawn, PACER_VERDICT_DENY, found, n, b);
		take_keys(w, drawn, PACER_VERDICT_ADMIT, found, n, b);
	}
	pooled_close(p);
	free(found);
	return p && found ? 0 : -1;
}

static int read_sampled(const struct words *w, struct busiest *b, struct policy_error *error)
{
	const struct policy_sample *sample = &w->policy->sample;
	struct drawn drawn;
	int code = drawn_take(w->a, &w->bin->sampling, number_of, NULL, &drawn, error);

	if (code)
		return code;
	b->sampled = true;
	b->of = sample->of;
	b->window_ns = sample->packets ? 0 : sample->window_ns;
	b->window_packets = sample->packets;
	b->behind = drawn.behind;
	code = find_keys(w, &drawn, b);
	drawn_free(&drawn);
	return code ? policy_fail(error, POLICY_NO_MEMORY, "%s: no memory", w->a->ifname) : 0;
}

int busiest_read(const struct attached *a, struct busiest *b, struct policy_error *error)
{
	uint32_t in_force = copies_in_force(a);
	const struct pacer_copy *copy = &a->copy[in_force];
	struct words w = {.a = a, .bin = &copy->policy};
	struct policy *policy;
	int code;

	memset(b, 0, offsetof(struct busiest, key));
	if (!copy->policy.sampling.reasons || !a->sampler)
		return 0;
	policy = copies_policy(a, in_force, error);
	if (!policy)
		return -1;
	w.policy = policy;
	judged_open(a, w.bin, &w.by);
	code = read_sampled(&w, b, error);
	judged_close(&w.by);
	policy_free(policy);
	return code;
}
