/* SPDX-License-Identifier: GPL-2.0-only */
/* `estimate` of a capture: samples the sliding window of its packets, and reads the samples. */

#include "estimate/estimate_run.h"

#include <errno.h>

#define CLASSES 64 /* for third vertices of triangles */

/* --- readings ------------------------------------------------------------------------------- */

static int take_reading(struct estimate_run *run, uint64_t now_ns, struct estimate_reading *r,
			struct policy_error *error)
{
	const struct estimate_view *v = track_view(run->track, now_ns);
	struct exact_values truth = {0};

	*r = (struct estimate_reading){.at_ns = now_ns, .n = v->n, .dropped = v->beta_dropped};
	r->of[ENTROPY] = estimate_entropy(v, ESTIMATE_DELTA);
	r->of[NORM] = estimate_norm(v, ESTIMATE_DELTA);
	r->of[MOMENT] = estimate_moment(v, run->want->moment, ESTIMATE_DELTA);
	r->of[TRIANGLES] = estimate_triangles(v, ESTIMATE_DELTA);
	if (!run->exact)
		return 0;
	if (!exact_read(run->exact, now_ns, run->want->moment, run->want->triangles, &truth))
		return policy_fail(error, 0, "estimate: no memory for the exact values");
	r->distinct = truth.distinct;
	r->exact[ENTROPY] = truth.entropy;
	r->exact[NORM] = truth.norm;
	r->exact[MOMENT] = truth.moment;
	r->exact[TRIANGLES] = truth.triangles;
	return 0;
}

/* Reports the window that ends before at_ns. */
static int report(struct estimate_run *run, uint64_t at_ns, struct policy_error *error)
{
	struct estimate_reading r;

	run->since = 0;
	if (take_reading(run, at_ns - 1, &r, error))
		return -1;
	r.at_ns = at_ns;
	run->listener->reading(run, &r, run->listener->arg);
	return 0;
}

/* Reports at the end of every interval up to now, but no window that is empty or unchanged. */
static int report_until(struct estimate_run *run, uint64_t now_ns, struct policy_error *error)
{
	uint64_t every = run->every_ns;

	while (every && now_ns >= run->next_ns) {
		bool new = run->want->by_time ? track_n(run->track, run->next_ns - 1) : run->since;

		if (new &&report(run, run->next_ns, error))
			return -1;
		if (!new)
			run->next_ns += (now_ns - run->next_ns) / every * every;
		run->next_ns += every;
	}
	return 0;
}

/* --- packets -------------------------------------------------------------------------------- */

static int add(struct estimate_run *run, const struct pacer_packet *pkt, struct policy_error *error)
{
	struct pacer_sample_item item = estimate_item(pkt, run->last_ns);
	struct track_element e = {run->last_ns,
				  estimate_key_hash(&run->want->key, pkt),
				  {estimate_key_address(pkt, PACER_WORD_SADDR),
				   estimate_key_address(pkt, PACER_WORD_DADDR)},
				  &item};

	run->packets++;
	run->since++;
	track_add(run->track, &e);
	for (uint32_t i = 0; i < run->want->steps; i++)
		track_add(run->step[i], &e);
	if (!run->exact || exact_add(run->exact, e.time_ns, e.key, e.ends))
		return 0;
	if (errno != EFBIG)
		return policy_fail(error, 0, "estimate: no memory for the exact values");
	return policy_fail(error, 0,
			   "estimate: --exact keeps every packet of the window, and has no room "
			   "for more than %u: choose a shorter window",
			   EXACT_MAX);
}

static int take_frame(struct estimate_run *run, const struct replay_frame *frame,
		      struct policy_error *error)
{
	uint32_t head = frame->captured < REPLAY_HEAD_BYTES ? frame->captured : REPLAY_HEAD_BYTES;
	struct pacer_packet pkt;

	if (pacer_parse(frame->data, frame->data + head, frame->len_bytes, &pkt) != PACER_PARSED) {
		run->others++;
		return 0;
	}
	if (!run->packets) {
		run->first_ns = run->last_ns = frame->time_ns;
		run->next_ns = frame->time_ns + run->every_ns;
	}
	if (frame->time_ns > run->last_ns)
		run->last_ns = frame->time_ns;
	return report_until(run, run->last_ns, error) ? -1 : add(run, &pkt, error);
}

/* --- the capture ---------------------------------------------------------------------------- */

static struct track *open_track(const struct estimate_want *w, uint64_t window, uint32_t samples,
				uint32_t classes)
{
	return track_open(
	    &(struct track_config){w->by_time, window, samples, classes, w->seed + window});
}

int estimate_run_open(struct estimate_run *run, const struct estimate_want *w,
		      const struct estimate_listener *listener, struct policy_error *error)
{
	bool good;
	uint64_t tick;

	run->want = w;
	run->listener = listener;
	run->track = open_track(w, w->window, w->samples, w->triangles ? CLASSES : 0);
	good = run->track;
	for (uint32_t i = 0; i < w->steps; i++) {
		run->step[i] = open_track(w, w->step[i].window, ESTIMATE_STEP_SAMPLES, 0);
		good &= run->step[i] != NULL;
	}
	if (good && w->exact) {
		run->exact = exact_open(track_window(run->track),
					w->by_time ? track_tick_ns(run->track) : 0);
		good = run->exact;
	}
	if (!good)
		return policy_fail(error, 0, "estimate: no memory for the samples: ask for fewer");
	tick = track_tick_ns(run->track);
	run->every_ns = !w->every_ns && w->by_time ? track_window(run->track) : w->every_ns;
	run->every_ns = (run->every_ns + tick - 1) / tick * tick;
	return 0;
}

void estimate_run_close(struct estimate_run *run)
{
	for (uint32_t i = 0; i < PACER_ESTIMATE_STEPS; i++)
		track_close(run->step[i]);
	track_close(run->track);
	exact_close(run->exact);
	capture_close(&run->capture);
}

int estimate_run_read(struct estimate_run *run, struct estimate_reading *last,
		      struct policy_error *error)
{
	struct replay_frame frame;

	while (!run->listener->enough() && capture_next(&run->capture, &frame))
		if (take_frame(run, &frame, error))
			return -1;
	if (run->packets)
		return take_reading(run, run->last_ns, last, error);
	policy_explain(error, POLICY_BLAMELESS, "it has no packet with an address");
	error->file = run->want->name;
	return -1;
}

/* --- the step-biased sample ----------------------------------------------------------------- */

uint32_t estimate_run_steps(struct estimate_run *run, struct pacer_sample_item *out)
{
	const struct pacer_sample_item *of[PACER_ESTIMATE_STEPS];
	struct pacer_estimate_step step[PACER_ESTIMATE_STEPS];
	struct pacer_sample_rng rng = {run->want->seed};
	uint32_t n = run->want->steps;

	for (uint32_t i = 0; i < n; i++) {
		step[i] = (struct pacer_estimate_step){run->want->step[i].weight,
						       track_n(run->step[i], run->last_ns)};
		of[i] = track_items(run->step[i], run->last_ns);
	}
	for (uint32_t j = 0; j < ESTIMATE_STEP_SAMPLES; j++) {
		uint32_t i = pacer_estimate_step(step, n, &rng);

		if (i == n)
			return 0;
		out[j] = of[i][j];
	}
	return ESTIMATE_STEP_SAMPLES;
}
