/* SPDX-License-Identifier: GPL-2.0-only */
/* What `estimate` says of a capture. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "cmd.h"
#include "estimate_run.h"
#include "text.h"
#include "units.h"

/* --- a reading ------------------------------------------------------------------------------ */

static const char *quantity_name(const struct estimate_run *run, enum quantity q)
{
	static const char *const names[] = {"entropy", "norm", NULL, "triangles"};
	static char moment[8];

	if (q != MOMENT)
		return names[q];
	snprintf(moment, sizeof(moment), "F%u", run->want->moment);
	return moment;
}

static bool is_wanted(const struct estimate_run *run, enum quantity q)
{
	return q != TRIANGLES || run->want->triangles;
}

/* Where the bounds know more than the mean, what they leave of it. */
static double shown(const struct estimate *e)
{
	return fmax(e->low, fmin(e->high, e->value));
}

static json_t *real(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

json_t *estimate_reading_json(const struct estimate_run *run, const struct estimate_reading *r)
{
	json_t *all = json_object();

	json_object_set_new(all, "time_ns", json_integer((json_int_t)r->at_ns));
	json_object_set_new(all, "packets", json_integer((json_int_t)r->n));
	if (run->exact)
		json_object_set_new(all, "distinct", json_integer((json_int_t)r->distinct));
	for (int q = 0; q < QUANTITIES; q++) {
		const struct estimate *e = &r->of[q];
		json_t *one;

		if (!is_wanted(run, q))
			continue;
		one = json_pack("{s:o, s:o, s:o, s:b, s:o}", "value", real(shown(e)), "low",
				real(e->low), "high", real(e->high), "vacuous", e->vacuous, "prior",
				real(e->prior));
		if (run->exact)
			json_object_set_new(one, "exact", real(r->exact[q]));
		if (q == TRIANGLES)
			json_object_set_new(one, "dropped", json_integer(r->dropped));
		json_object_set_new(all, quantity_name(run, q), one);
	}
	return all;
}

/* "6.52 (6.21..6.83)", and the exact value. */
static void print_estimate(const struct estimate_run *run, const struct estimate_reading *r,
			   enum quantity q)
{
	const struct estimate *e = &r->of[q];
	char text[96];
	int len = snprintf(text, sizeof(text), "%.4g (%.4g..%.4g)", shown(e), e->low, e->high);

	if (run->exact)
		snprintf(text + len, sizeof(text) - len, " = %.4g", r->exact[q]);
	printf("  %-*s", run->exact ? 40 : 30, text);
}

void estimate_print_row(struct estimate_run *run, const struct estimate_reading *r)
{
	if (!run->headed) {
		printf("%10s %10s", "until", "packets");
		for (int q = 0; q < QUANTITIES; q++)
			if (is_wanted(run, q))
				printf("  %-*s", run->exact ? 40 : 30, quantity_name(run, q));
		putchar('\n');
	}
	run->headed = true;
	printf("%9.3fs %10" PRIu64, (double)(r->at_ns - run->first_ns) / 1e9, r->n);
	for (int q = 0; q < QUANTITIES; q++)
		if (is_wanted(run, q))
			print_estimate(run, r, q);
	putchar('\n');
}

/* --- all of it ------------------------------------------------------------------------------ */

static void print_priors(const struct estimate_run *run, const struct estimate_reading *r)
{
	printf("promised before a packet was seen, but for a chance of %g, of %u samples:\n",
	       ESTIMATE_DELTA, run->want->samples);
	for (int q = 0; q < QUANTITIES; q++) {
		const struct estimate *e = &r->of[q];

		if (!is_wanted(run, q))
			continue;
		printf("  %-10s", quantity_name(run, q));
		if (q == ENTROPY)
			printf("%.3g bits%s", e->prior,
			       e->prior >= log2((double)r->n) ? ": nothing, no entropy is greater"
							      : "");
		else if (e->prior < 1)
			printf("%.3g%%", 100 * e->prior);
		else
			printf("nothing: these samples are too few");
		printf("; measured: %s\n",
		       e->vacuous ? "nothing either, the interval is wider than the value"
				  : "the interval above");
	}
	if (r->dropped)
		printf(
		    "  triangles are more than said: %u samples saw more vertices than they keep\n",
		    r->dropped);
}

static void print_head(const struct estimate_run *run)
{
	char window[32], memory[32];

	if (run->want->by_time)
		units_duration_text(track_window(run->track), window, sizeof(window));
	else
		snprintf(window, sizeof(window), "%" PRIu64 " packets", run->want->window);
	printf("%s: %" PRIu64 " packets in %.6g s by %s, %" PRIu64
	       " frames of no address; window %s; %u samples in %s; low..high hold at %g%%\n",
	       printable(run->want->name).text, run->packets,
	       (double)(run->last_ns - run->first_ns) / 1e9, run->want->key.text, run->others,
	       window, run->want->samples,
	       units_size_round(track_bytes(run->track), memory, sizeof(memory)),
	       100 * (1 - ESTIMATE_DELTA));
}

json_t *estimate_whole_json(struct estimate_run *run, const struct estimate_reading *r)
{
	json_t *all = json_pack("{s:o, s:I, s:I, s:s, s:i, s:f, s:I, s:I, s:O, s:o}", "file",
				json_text(run->want->name), "packets", (json_int_t)run->packets,
				"others", (json_int_t)run->others, "key", run->want->key.text,
				"samples", (int)run->want->samples, "delta", ESTIMATE_DELTA,
				"memory_bytes", (json_int_t)track_bytes(run->track),
				run->want->by_time ? "window_ns" : "window_packets",
				(json_int_t)track_window(run->track), "intervals", run->intervals,
				"last", estimate_reading_json(run, r));

	if (run->want->steps)
		json_object_set_new(all, "step_biased", estimate_steps_json(run));
	return all;
}

void estimate_print_whole(struct estimate_run *run, const struct estimate_reading *r)
{
	estimate_print_row(run, r);
	print_head(run);
	print_priors(run, r);
	if (run->want->steps)
		estimate_print_steps(run);
}
