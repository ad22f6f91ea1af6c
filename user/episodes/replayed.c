/* SPDX-License-Identifier: GPL-2.0-only */
#include "episodes/replayed.h"

#include <stdlib.h>
#include <string.h>

#include "estimate/estimate_key.h"
#include "key.h"
#include "plan/kinds.h"
#include "plan/sampling.h"
#include "sampler.h"

#define SAMPLE_WINDOW_NS 10000000000ull
#define SEED		 0x6576656e7473 /* the same in every run */

/* How a packet of the sample was denied: the key, the limit as a bit, and the packet as that limit
 * saw it. */
struct denied_by {
	uint32_t key_id;
	uint32_t limits;
	struct pacer_packet seen;
};

struct run {
	struct judge *judge;
	struct detector detector;
	struct pacer_counters counters[PACER_RULES_MAX];
	struct pacer_sampler *sampler;
	struct pacer_sampling by;
	struct pacer_sample_rng rng;
	struct denied_by by_what[PACER_SAMPLER_PLACES]; /* of the packets in the sampler's places */
	uint64_t next_ns;
};

/* --- the sample ------------------------------------------------------------------------------- */

static struct pacer_sampling sampling_of(const struct judge *j)
{
	const struct policy_sample usual = {
	    .on = true, .of = SAMPLE_DENIED, .k = PACER_SAMPLE_K, .window_ns = SAMPLE_WINDOW_NS};
	const struct policy_sample *of = &j->policy->sample;

	return sampling_compile(of->on && of->of != SAMPLE_ADMITTED ? of : &usual, j->bin, NULL, 0,
				1);
}

/* As a bit. 0: no limit of the policy denied it, but a ban, say. */
static uint32_t limit_of(const struct judge *j, const struct replay_judged *judged)
{
	const struct policy_rule *rule = &j->policy->rule[pacer_outcome_rule(judged->outcome)];
	uint32_t limit = judge_limit_of(j, judged);

	return limit_kind_of(&rule->limit[limit])->reason == pacer_outcome_reason(judged->outcome)
		   ? 1u << limit
		   : 0;
}

/* What a packet was denied by. */
static struct denied_by denied_by(const struct run *r, const struct replay_judged *judged)
{
	uint32_t rule = pacer_outcome_rule(judged->outcome);
	const struct pacer_limiter *t =
	    &r->judge->bin->rule[rule].limiter[pacer_outcome_limiter(judged->outcome)];

	return (struct denied_by){t->key_id, limit_of(r->judge, judged),
				  pacer_limiter_valued(t)
				      ? pacer_limiter_sees(t, &judged->pkt, judged->value)
				      : judged->pkt};
}

/* Kept for every sample that took the packet. The item names its place by what is else a hash. */
static void keep_by(struct run *r, const struct denied_by *by)
{
	for (uint64_t left = r->sampler->took; left; left &= left - 1) {
		uint32_t place = pacer_sampler_place(r->sampler, pacer_sampler_lowest(left));

		r->by_what[place] = *by;
		pacer_sampler_item(r->sampler, &r->by, place)->key = place;
	}
}

static void sample(struct run *r, const struct replay_judged *judged, uint64_t now_ns)
{
	const struct pacer_rule *rule = &r->judge->bin->rule[pacer_outcome_rule(judged->outcome)];
	struct denied_by by;
	struct pacer_sample_item item;

	if (!(r->by.reasons >> pacer_outcome_reason(judged->outcome) & 1) ||
	    !pacer_sampler_due(r->sampler, &r->by, now_ns))
		return;
	by = denied_by(r, judged);
	item = estimate_item(&judged->pkt, now_ns);
	item.rule = rule->counter;
	item.reason = pacer_outcome_reason(judged->outcome);
	pacer_sample_write_begin(&r->sampler->seq);
	pacer_sampler_take(r->sampler, &r->by, &item);
	keep_by(r, &by);
	pacer_sample_write_end(&r->sampler->seq);
}

static uint32_t rule_of(const struct run *r, const struct pacer_sample_item *item)
{
	uint32_t i = 0;

	while (i < r->judge->policy->n_rules && r->judge->bin->rule[i].counter != item->rule)
		i++;
	return i;
}

static void tell(struct run *r)
{
	struct pacer_sample_item item[PACER_SAMPLE_K];
	struct crowd_packet packet[PACER_SAMPLE_K];
	uint64_t tick = pacer_sampler_tick_of(&r->by, r->detector.now_ns);
	uint64_t n = pacer_sampler_n(r->sampler, &r->by, tick);
	uint32_t k = n ? pacer_sampler_draw(r->sampler, &r->by, &r->rng, tick, item) : 0;

	for (uint32_t i = 0; i < k; i++) {
		bool denied = pacer_verdict_of(item[i].reason) == PACER_VERDICT_DENY;
		const struct denied_by *by = &r->by_what[item[i].key];

		packet[i] =
		    (struct crowd_packet){.time_ns = item[i].time_ns,
					  .rule = denied ? rule_of(r, &item[i]) : PACER_RULES_MAX,
					  .reason = item[i].reason,
					  .by = compile_key_of(by->key_id),
					  .limits = by->limits,
					  .pkt = estimate_packet(&item[i]),
					  .seen = by->seen};
	}
	detector_tell(&r->detector, packet, k, n);
}

/* --- time ------------------------------------------------------------------------------------- */

static void read_at(struct run *r, uint64_t now_ns)
{
	if (detector_read(&r->detector, r->counters, now_ns))
		tell(r);
}

static bool is_on(const struct run *r)
{
	for (size_t i = 0; i < r->judge->policy->n_rules; i++)
		if (r->detector.rule[i].episode.on)
			return true;
	return false;
}

/*
 * All readings up to this time. Where nothing goes on, a pause is passed over in one step, up to
 * its last reading: what comes after the pause is counted from there.
 */
static void read_until(struct run *r, uint64_t now_ns)
{
	while (r->next_ns <= now_ns) {
		uint64_t steps = (now_ns - r->next_ns) / REPLAYED_EVERY_NS;

		read_at(r, r->next_ns);
		if (!is_on(r) && steps)
			r->next_ns += (steps - 1) * REPLAYED_EVERY_NS;
		r->next_ns += REPLAYED_EVERY_NS;
	}
}

/* --- packets ---------------------------------------------------------------------------------- */

static void count(struct run *r, const struct replay_judged *judged, uint32_t len_bytes)
{
	uint32_t rule = pacer_outcome_rule(judged->outcome);
	struct pacer_count *at;

	if (rule >= PACER_RULES_MAX)
		return;
	at = &r->counters[rule].by[pacer_outcome_reason(judged->outcome)];
	at->packets++;
	at->bytes += len_bytes;
}

static int read_frames(struct run *r, struct capture *c, struct replayed *sum,
		       struct policy_error *error)
{
	struct replay_frame frame;

	capture_tell(c, r->judge->replay);
	while (capture_next(c, &frame)) {
		struct replay_judged judged;

		if (!sum->packets++) {
			sum->first_ns = frame.now_ns;
			read_at(r, frame.now_ns);
			r->next_ns = frame.now_ns + REPLAYED_EVERY_NS;
		}
		read_until(r, frame.now_ns);
		sum->last_ns = frame.now_ns;
		if (replay_judge(r->judge->replay, &frame, &judged, error))
			return -1;
		count(r, &judged, frame.len_bytes);
		if (pacer_outcome_rule(judged.outcome) < PACER_RULES_MAX)
			sample(r, &judged, frame.now_ns);
		sum->denied += judge_denied(&judged);
	}
	if (sum->packets)
		read_at(r, pacer_later(sum->last_ns, r->detector.now_ns) + 1);
	detector_stop(&r->detector);
	return 0;
}

int replayed_run(struct judge *judge, struct capture *capture, const struct episode_settings *by,
		 event_tell *told, void *arg, struct replayed *sum, struct policy_error *error)
{
	struct run *r = calloc(1, sizeof(*r));
	uint32_t counter[PACER_RULES_MAX];
	int result;

	*sum = (struct replayed){0};
	if (r)
		r->sampler = aligned_alloc(64, sizeof(*r->sampler));
	if (!r || !r->sampler) {
		free(r);
		return policy_fail(error, POLICY_NO_MEMORY, "events: no memory");
	}
	memset(r->sampler, 0, sizeof(*r->sampler));
	pacer_sampler_init(r->sampler, SEED);
	r->judge = judge;
	r->by = sampling_of(judge);
	r->rng.state = SEED;
	for (size_t i = 0; i < judge->policy->n_rules; i++)
		counter[i] = judge->bin->rule[i].counter;
	detector_open(&r->detector, by, told, arg);
	detector_policy(&r->detector, judge->policy, counter);
	result = read_frames(r, capture, sum, error);
	free(r->sampler);
	free(r);
	return result;
}
