/* SPDX-License-Identifier: GPL-2.0-only */
/* What `estimate` says about a capture. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "cli/captured.h"
#include "cli/cmd.h"
#include "cli/emit.h"
#include "cli/estimate_show.h"
#include "config/text.h"
#include "config/units.h"

#define UNTIL_WIDTH    10
#define PACKETS_WIDTH  10
#define ESTIMATE_WIDTH 32 /* "1.265e+04 (1.051e+04..1.479e+04)" */
#define EXACT_WIDTH    12 /* " = 1.262e+04" */

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

/* The mean, moved into the bounds where it lies outside them. */
static double shown(const struct estimate *e)
{
	return fmax(e->low, fmin(e->high, e->value));
}

/* "6.52 (6.21..6.83)", and the exact value. */
static const char *estimate_text(const struct estimate_run *run, const struct estimate_reading *r,
				 enum quantity q, char *buf, size_t size)
{
	const struct estimate *e = &r->of[q];
	int len = snprintf(buf, size, "%.4g (%.4g..%.4g)", shown(e), e->low, e->high);

	if (run->exact)
		snprintf(buf + len, size - len, " = %.4g", r->exact[q]);
	return buf;
}

static void emit_estimate(const struct estimate_run *run, const struct estimate_reading *r,
			  enum quantity q)
{
	const struct estimate *e = &r->of[q];
	char text[96];

	emit_object(quantity_name(run, q));
	emit_real("value", shown(e), "%s", estimate_text(run, r, q, text, sizeof(text)));
	emit_real("low", e->low, NULL);
	emit_real("high", e->high, NULL);
	emit_flag("vacuous", e->vacuous, NULL);
	emit_real("prior", e->prior, NULL);
	if (run->exact)
		emit_real("exact", r->exact[q], NULL);
	if (q == TRIANGLES)
		emit_uint("dropped", r->dropped, NULL);
	emit_close();
}

/* A row in the text; in the JSON, an object of that name. */
static void emit_reading(const struct estimate_run *run, const struct estimate_reading *r,
			 const char *name)
{
	emit_row();
	emit_object(name);
	emit_uint("time_ns", r->at_ns, "%.3fs", (double)(r->at_ns - run->first_ns) / 1e9);
	emit_uint("packets", r->n, "%" PRIu64, r->n);
	if (run->exact)
		emit_uint("distinct", r->distinct, NULL);
	for (int q = 0; q < QUANTITIES; q++)
		if (is_wanted(run, q))
			emit_estimate(run, r, q);
	emit_close();
}

/* The next reading may take long, so each is written at once. */
static void open_readings(const struct estimate_run *run)
{
	static struct emit_column columns[QUANTITIES + 3];
	static size_t widths[QUANTITIES + 2];
	size_t n = 2;

	columns[0] = (struct emit_column){"until", true};
	columns[1] = (struct emit_column){"packets", true};
	widths[0] = UNTIL_WIDTH;
	widths[1] = PACKETS_WIDTH;
	for (int q = 0; q < QUANTITIES; q++) {
		if (!is_wanted(run, q))
			continue;
		widths[n] = ESTIMATE_WIDTH + (run->exact ? EXACT_WIDTH : 0);
		columns[n++] = (struct emit_column){quantity_name(run, q), false};
	}
	columns[n] = (struct emit_column){0};
	emit_table_at_once(columns, widths, 0);
}

/* --- all of it ------------------------------------------------------------------------------ */

static void emit_prior(const struct estimate_run *run, const struct estimate_reading *r,
		       enum quantity q)
{
	const struct estimate *e = &r->of[q];

	emit_text("  %-10s", quantity_name(run, q));
	if (q == ENTROPY)
		emit_text("%.3g bits%s", e->prior,
			  e->prior >= log2((double)r->n) ? ": nothing, no entropy is greater" : "");
	else if (e->prior < 1)
		emit_text("%.3g%%", 100 * e->prior);
	else
		emit_text("nothing: these samples are too few");
	emit_text("; measured: %s\n", e->vacuous
					  ? "nothing either, the interval is wider than the value"
					  : "the interval above");
}

static void emit_priors(const struct estimate_run *run, const struct estimate_reading *r)
{
	emit_text(
	    "promised before a packet was seen, with a chance of %g to be wrong, for %u samples:\n",
	    ESTIMATE_DELTA, run->want->samples);
	for (int q = 0; q < QUANTITIES; q++)
		if (is_wanted(run, q))
			emit_prior(run, r, q);
	if (r->dropped)
		emit_text("  there are more triangles than this: %u samples saw more vertices than "
			  "they can keep\n",
			  r->dropped);
}

static void emit_head(const struct estimate_run *run)
{
	const struct estimate_want *want = run->want;
	uint64_t window = track_window(run->track), bytes = track_bytes(run->track);
	char text[32];

	if (want->by_time)
		units_duration_text(window, text, sizeof(text));
	else
		snprintf(text, sizeof(text), "%" PRIu64 " packets", window);
	emit_string("file", want->name, "%s: ", printable(want->name).text);
	emit_uint("packets", run->packets, "%" PRIu64 " packets in %.6g s ", run->packets,
		  (double)(run->last_ns - run->first_ns) / 1e9);
	emit_string("key", want->key.text, "by %s, ", want->key.text);
	emit_uint("others", run->others, "%" PRIu64 " frames without an address; ", run->others);
	emit_uint(want->by_time ? "window_ns" : "window_packets", window, "window %s; ", text);
	emit_uint("samples", want->samples, "%u samples ", want->samples);
	emit_uint("memory_bytes", bytes, "in %s; ", units_size_round(bytes, text, sizeof(text)));
	emit_real("delta", ESTIMATE_DELTA, "low..high hold at %g%%\n", 100 * (1 - ESTIMATE_DELTA));
}

/* --- the capture ---------------------------------------------------------------------------- */

static void take_reading(const struct estimate_run *run, const struct estimate_reading *r,
			 void *arg)
{
	(void)arg;
	emit_reading(run, r, "");
}

static int read_and_show(struct estimate_run *run, bool json)
{
	struct policy_error error = {0};
	struct estimate_reading last;
	int code;

	emit_begin(json);
	emit_object("");
	emit_array("intervals");
	open_readings(run);
	if (estimate_run_read(run, &last, &error)) {
		emit_drop();
		return capture_is_lost(&run->capture) ? EXIT_FAILED : complain(NULL, &error);
	}
	emit_close();
	emit_reading(run, &last, "last");
	emit_table_end();
	emit_head(run);
	emit_priors(run, &last);
	if (run->want->steps)
		estimate_show_steps(run);
	emit_close();
	code = emit_end();
	return run->capture.damaged ? EXIT_FAILED : code;
}

int estimate_show_file(const struct estimate_want *want, bool json)
{
	struct estimate_listener listener = {take_reading, stdout_failed, NULL};
	struct policy_error error = {0};
	struct estimate_run run = {0};
	int code = start_capture(&run.capture, want->name);

	if (!code && estimate_run_open(&run, want, &listener, &error))
		code = complain(NULL, &error);
	if (!code)
		code = read_and_show(&run, json);
	estimate_run_close(&run);
	return code;
}
