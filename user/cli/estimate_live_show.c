/* SPDX-License-Identifier: GPL-2.0-only */
/* What `estimate` says about live traffic. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "cli/cmd.h"
#include "cli/emit.h"
#include "cli/estimate_show.h"
#include "estimate/estimator.h"
#include "plan/sampling.h"
#include "inspect/tally.h"
#include "config/text.h"
#include "config/units.h"

/* The value, moved into the bounds where it lies outside them. */
static double shown(const struct pooled_value *v)
{
	return isnan(v->value) ? v->value : fmax(v->low, fmin(v->high, v->value));
}

static const char *key_text(const struct estimate_live *live, uint32_t i, char *buf)
{
	struct pacer_packet pkt = estimate_packet(drawn_item(&live->drawn, &live->key[i]));

	return estimate_key_text(&live->want->key, &pkt, buf);
}

/* --- a value -------------------------------------------------------------------------------- */

/* "6.52 (6.21..6.83)", times `unit`; without a value, "6.21..6.83". */
static const char *value_text(const struct pooled_value *v, double unit, char *buf, size_t size)
{
	int len = isnan(v->value) ? 0 : snprintf(buf, size, "%.3g (", unit * shown(v));

	snprintf(buf + len, size - len, "%.3g..%.3g%s", unit * v->low, unit * v->high,
		 len ? ")" : "");
	return buf;
}

static void emit_fields(const struct pooled_value *v)
{
	emit_real("value", shown(v), NULL);
	emit_real("low", v->low, NULL);
	emit_real("high", v->high, NULL);
}

/* --- a whole reading ------------------------------------------------------------------------ */

static void emit_window(const struct estimate_live *live)
{
	const struct policy_sample *s = live->sample;
	const char *replacement = s->without_replacement ? "without" : "with";
	const char *of = sampling_of_text(s->of), *key = live->want->key.text;
	const struct pooled_values *v = &live->values;
	char window[64];

	emit_string("interface", live->a->ifname, "%s: ", printable(live->a->ifname).text);
	emit_uint("packets", v->n, "%" PRIu64 " packets ", v->n);
	emit_string("of", of, "(%s, ", of);
	emit_uint("window_packets", s->packets,
		  s->packets ? "the last %" PRIu32 " of each CPU) " : NULL, s->packets);
	emit_uint("window_ns", s->window_ns, s->packets ? NULL : "of the last %s) ",
		  units_duration_text(s->window_ns, window, sizeof(window)));
	emit_string("key", key, "by %s, ", key);
	emit_uint("samples", v->samples, "from %" PRIu32 " samples ", v->samples);
	emit_string("replacement", replacement, "%s replacement\n", replacement);
}

/* For the JSON only. */
static void emit_counts(const struct estimate_live *live)
{
	emit_uint("time_ns", live->drawn.now_ns, NULL);
	emit_uint("k", live->sample->k, NULL);
	emit_uint("distinct", live->values.distinct, NULL);
	emit_array("by_cpu");
	for (uint32_t cpu = 0; cpu < live->drawn.cpus; cpu++)
		emit_uint("", live->drawn.part[cpu].n, NULL);
	emit_close();
}

static void emit_value(const char *name, const char *title, const struct pooled_value *v,
		       double unit, const char *unit_text)
{
	char text[64];

	emit_row();
	emit_text("%s", title);
	emit_text("%s%s", value_text(v, unit, text, sizeof(text)), unit_text);
	emit_object(name);
	emit_fields(v);
	emit_close();
}

static void emit_values(const struct estimate_live *live)
{
	const struct pooled_values *v = &live->values;
	char text[96];

	snprintf(text, sizeof(text), " bits, of at most %.3g", log2((double)v->n));
	emit_value("entropy", "entropy", &v->entropy, 1, text);
	snprintf(text, sizeof(text), " bits: by coincidences, as of %.3g..%.3g equal keys",
		 exp2(v->h2.low), exp2(v->h2.high));
	emit_value("H2", "H2", &v->h2, 1, text);
	snprintf(text, sizeof(text), "F%u", live->want->moment);
	emit_value(text, text, &v->moment, 1, "");
	emit_value("single", "seen once", &v->single, 100, " % of the sample");
}

/* The text leaves out keys that are in the sample once. */
static void emit_keys(const struct estimate_live *live)
{
	char text[TALLY_TEXT], value[64];

	emit_array("keys");
	for (uint32_t i = 0; i < live->keys; i++) {
		const struct pooled_key *key = &live->key[i];

		key_text(live, i, text);
		if (key->times > 1) {
			emit_row();
			emit_text("%s", i ? "" : "keys");
			emit_text("%s %%  %s", value_text(&key->share, 100, value, sizeof(value)),
				  text);
		}
		emit_object("");
		emit_string("key", text, NULL);
		emit_uint("samples", key->times, NULL);
		emit_object("share");
		emit_fields(&key->share);
		emit_close();
		emit_close();
	}
	emit_close();
	if (live->keys && live->key[0].times == 1) {
		emit_row();
		emit_text("keys");
		emit_text("no key is in the sample twice: none has more than %.3g %%",
			  100 * live->key[0].share.high);
	}
}

static void emit_costs(const struct estimate_live *live)
{
	uint64_t tick_ns = 1ull << live->drawn.by.tick_shift;
	char text[64];

	emit_uint("cpus_behind", live->drawn.behind,
		  live->drawn.behind ? "  %" PRIu32
				       " of the CPUs changed while they were read: their "
				       "current tick of %s is left out\n"
				     : NULL,
		  live->drawn.behind, units_duration_text(tick_ns, text, sizeof(text)));
	emit_real("delta", ESTIMATE_DELTA, "  low..high hold at %g%%, for all keys together; ",
		  100 * (1 - ESTIMATE_DELTA));
	emit_real("worth", live->values.worth, "the samples are worth %.3g of a single stream\n",
		  live->values.worth);
	emit_uint("sampler_bytes", live->bytes,
		  "  cost: the sampler, with %s and its time for each packet; ",
		  units_size_round(live->bytes, text, sizeof(text)));
	emit_uint("read_ns", live->drawn.read_ns,
		  "this reading, with %.3f ms and no time of any packet\n",
		  live->drawn.read_ns / 1e6);
}

/* The text says nothing more about an empty window. */
static int show_whole(const struct estimate_live *live, bool json)
{
	static const struct emit_column columns[] = {{"", false}, {"", false}, {0}};

	emit_begin(json);
	emit_object("");
	emit_window(live);
	emit_counts(live);
	if (live->values.n || json) {
		emit_table(columns, 2);
		emit_values(live);
		emit_keys(live);
		emit_table_end();
		emit_costs(live);
	}
	emit_close();
	return emit_end();
}

/* --- a row ---------------------------------------------------------------------------------- */

static void open_rows(const struct estimate_live *live)
{
	static const struct emit_column columns[] = {
	    {"packets", true},	 {"entropy", false},	   {"H2", false},
	    {"seen once", true}, {"most frequent", false}, {0}};
	static const size_t widths[] = {10, 14, 22, 9, 0};

	emit_begin(false);
	emit_window(live);
	emit_table_at_once(columns, widths, 0);
}

static void show_row(const struct estimate_live *live)
{
	const struct pooled_values *v = &live->values;
	char text[64], key[TALLY_TEXT];

	emit_row();
	emit_text("%" PRIu64, v->n);
	emit_text("%s", value_text(&v->entropy, 1, text, sizeof(text)));
	emit_text("%s", value_text(&v->h2, 1, text, sizeof(text)));
	emit_text("%.0f%%", 100 * v->single.value);
	if (live->keys)
		emit_text("%.0f%% %s", 100 * live->key[0].share.value, key_text(live, 0, key));
	else
		emit_skip(1);
}

/* --- the verb's half ------------------------------------------------------------------------ */

struct shown_to {
	bool json, headed;
	int code;
};

/* Returns whether somebody still reads the output. */
static bool show(const struct estimate_live *live, void *arg)
{
	struct shown_to *to = arg;
	bool rows = live->want->watch && !to->json;

	if (rows && !to->headed)
		open_rows(live);
	to->headed = true;
	if (rows)
		show_row(live);
	else
		to->code = show_whole(live, to->json);
	return flushed() && !to->code;
}

int estimate_show_live(const struct estimate_want *want, bool json)
{
	struct shown_to to = {.json = json};
	struct policy_error error = {0};
	int failed = estimate_live(want, show, &to, &error);

	emit_table_end();
	return failed ? complain(NULL, &error) : to.code;
}
