/* SPDX-License-Identifier: GPL-2.0-only */
/* `estimate` of a capture: its packets into samples of their sliding window, and readings of them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd.h"
#include "estimate_run.h"

#define CLASSES 64 /* of third vertices of a triangle */

/* --- readings ------------------------------------------------------------------------------- */

static int take_reading(struct estimate_run *run, uint64_t now_ns, struct estimate_reading *r)
{
	const struct estimate_view *v = track_view(run->track, now_ns);
	struct exact_values truth = {0};

	*r = (struct estimate_reading){.at_ns = now_ns, .n = v->n, .dropped = v->beta_dropped};
	r->of[ENTROPY] = estimate_entropy(v, ESTIMATE_DELTA);
	r->of[NORM] = estimate_norm(v, ESTIMATE_DELTA);
	r->of[MOMENT] = estimate_moment(v, run->want->moment, ESTIMATE_DELTA);
	r->of[TRIANGLES] = estimate_triangles(v, ESTIMATE_DELTA);
	if (!run->exact)
		return EXIT_DONE;
	if (!exact_read(run->exact, now_ns, run->want->moment, run->want->triangles, &truth))
		return estimate_failed("no memory for the exact values");
	r->distinct = truth.distinct;
	r->exact[ENTROPY] = truth.entropy;
	r->exact[NORM] = truth.norm;
	r->exact[MOMENT] = truth.moment;
	r->exact[TRIANGLES] = truth.triangles;
	return EXIT_DONE;
}

/* Of the window that ends before at_ns. */
static int report(struct estimate_run *run, uint64_t at_ns)
{
	struct estimate_reading r;
	int code = take_reading(run, at_ns - 1, &r);

	r.at_ns = at_ns;
	run->since = 0;
	if (code)
		return code;
	if (run->want->json)
		json_array_append_new(run->intervals, estimate_reading_json(run, &r));
	else
		estimate_print_row(run, &r);
	return EXIT_DONE;
}

/* Reports at every interval's end up to now; empty windows and those that have not changed are
 * passed over.
 */
static int report_until(struct estimate_run *run, uint64_t now_ns)
{
	uint64_t every = run->every_ns;
	int code = EXIT_DONE;

	while (every && !code && now_ns >= run->next_ns) {
		bool new = run->want->by_time ? track_n(run->track, run->next_ns - 1) : run->since;

		if (new)
			code = report(run, run->next_ns);
		else
			run->next_ns += (now_ns - run->next_ns) / every * every;
		run->next_ns += every;
	}
	return code;
}

/* --- packets -------------------------------------------------------------------------------- */

static int add(struct estimate_run *run, const struct pacer_packet *pkt)
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
		return EXIT_DONE;
	complaint(ESTIMATE_VERB ": --exact keeps every packet of the window, and has no room for "
				"more than %u: choose a shorter window",
		  EXACT_MAX);
	return EXIT_FAILED;
}

static int take_frame(struct estimate_run *run, const struct replay_frame *frame)
{
	uint32_t head = frame->captured < REPLAY_HEAD_BYTES ? frame->captured : REPLAY_HEAD_BYTES;
	struct pacer_packet pkt;
	int code;

	if (pacer_parse(frame->data, frame->data + head, frame->len_bytes, &pkt) != PACER_PARSED) {
		run->others++;
		return EXIT_DONE;
	}
	if (!run->packets) {
		run->first_ns = run->last_ns = frame->time_ns;
		run->next_ns = frame->time_ns + run->every_ns;
	}
	if (frame->time_ns > run->last_ns)
		run->last_ns = frame->time_ns;
	code = report_until(run, run->last_ns);
	return code ? code : add(run, &pkt);
}

static int finish(struct estimate_run *run)
{
	struct estimate_reading r;
	int code;

	if (!run->packets) {
		complaint("%s: it has no packet with an address", run->want->name);
		return EXIT_FAILED;
	}
	code = take_reading(run, run->last_ns, &r);
	if (code)
		return code;
	if (run->want->json)
		return print_json(estimate_whole_json(run, &r));
	estimate_print_whole(run, &r);
	return EXIT_DONE;
}

/* --- the capture ---------------------------------------------------------------------------- */

static struct track *open_track(const struct estimate_want *w, uint64_t window, uint32_t samples,
				uint32_t classes)
{
	return track_open(
	    &(struct track_config){w->by_time, window, samples, classes, w->seed + window});
}

static int open_all(struct estimate_run *run)
{
	const struct estimate_want *w = run->want;
	bool good;
	uint64_t tick;

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
		return estimate_failed("no memory for the samples: ask for fewer");
	tick = track_tick_ns(run->track);
	run->every_ns = !w->every_ns && w->by_time ? track_window(run->track) : w->every_ns;
	run->every_ns = (run->every_ns + tick - 1) / tick * tick;
	return EXIT_DONE;
}

static void close_all(struct estimate_run *run)
{
	for (uint32_t i = 0; i < run->want->steps; i++)
		track_close(run->step[i]);
	track_close(run->track);
	exact_close(run->exact);
	json_decref(run->intervals);
	capture_close(&run->capture);
}

static int read_all(struct estimate_run *run)
{
	struct replay_frame frame;
	int code = EXIT_DONE;

	while (!code && !stdout_failed() && capture_next(&run->capture, &frame))
		code = take_frame(run, &frame);
	if (code)
		return code;
	code = finish(run);
	return run->capture.damaged ? EXIT_FAILED : code;
}

int estimate_file(const struct estimate_want *want)
{
	struct estimate_run run = {.want = want, .intervals = json_array()};
	int code = capture_open(&run.capture, want->name);

	if (!code)
		code = open_all(&run);
	if (!code)
		code = read_all(&run);
	close_all(&run);
	return code;
}
