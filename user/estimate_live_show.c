/* SPDX-License-Identifier: GPL-2.0-only */
/* What `estimate` says of a pacer at work. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "cmd.h"
#include "estimate_live.h"
#include "estimator.h"
#include "sampling.h"
#include "tally.h"
#include "text.h"
#include "units.h"

/* Where the bounds know more than the value, what they leave of it. */
static double shown(const struct pooled_value *v)
{
	return isnan(v->value) ? v->value : fmax(v->low, fmin(v->high, v->value));
}

static const char *key_text(const struct estimate_live *live, uint32_t i, char *buf)
{
	const struct pooled_key *key = &live->key[i];
	struct pacer_packet pkt =
	    estimate_packet(&live->item[(size_t)key->part * PACER_SAMPLE_K + key->item]);

	return estimate_key_text(&live->want->key, &pkt, buf);
}

/* --- JSON ----------------------------------------------------------------------------------- */

static json_t *real(double x)
{
	return isfinite(x) ? json_real(x) : json_null();
}

static json_t *value_json(const struct pooled_value *v)
{
	return json_pack("{s:o, s:o, s:o}", "value", real(shown(v)), "low", real(v->low), "high",
			 real(v->high));
}

static json_t *keys_json(const struct estimate_live *live)
{
	json_t *all = json_array();
	char text[TALLY_TEXT];

	for (uint32_t i = 0; i < live->keys; i++)
		json_array_append_new(all,
				      json_pack("{s:s, s:i, s:o}", "key", key_text(live, i, text),
						"samples", (int)live->key[i].times, "share",
						value_json(&live->key[i].share)));
	return all;
}

static json_t *cpus_json(const struct estimate_live *live)
{
	json_t *cpus = json_array();

	for (uint32_t cpu = 0; cpu < live->cpus; cpu++)
		json_array_append_new(cpus, json_integer((json_int_t)live->part[cpu].n));
	return cpus;
}

static void add_values(const struct estimate_live *live, json_t *all)
{
	const struct pooled_values *v = &live->values;
	char moment[8];

	snprintf(moment, sizeof(moment), "F%u", live->want->moment);
	json_object_set_new(all, "entropy", value_json(&v->entropy));
	json_object_set_new(all, "H2", value_json(&v->h2));
	json_object_set_new(all, moment, value_json(&v->moment));
	json_object_set_new(all, "single", value_json(&v->single));
	json_object_set_new(all, "keys", keys_json(live));
}

json_t *estimate_live_json(const struct estimate_live *live)
{
	const struct policy_sample *s = live->sample;
	const struct pooled_values *v = &live->values;
	json_t *all = json_pack(
	    "{s:o, s:I, s:s, s:s, s:I, s:I, s:i, s:s, s:I, s:o, s:i, s:f, s:i, s:f, s:I, s:i, s:I}",
	    "interface", json_text(live->a->ifname), "time_ns", (json_int_t)live->now_ns, "of",
	    sampling_of_text(s->of), "replacement", s->without_replacement ? "without" : "with",
	    "window_packets", (json_int_t)s->packets, "window_ns", (json_int_t)s->window_ns, "k",
	    (int)s->k, "key", live->want->key.text, "packets", (json_int_t)v->n, "by_cpu",
	    cpus_json(live), "samples", (int)v->samples, "worth", v->worth, "distinct",
	    (int)v->distinct, "delta", ESTIMATE_DELTA, "read_ns", (json_int_t)live->read_ns,
	    "cpus_behind", (int)live->behind, "sampler_bytes", (json_int_t)live->bytes);

	add_values(live, all);
	return all;
}

/* --- text ----------------------------------------------------------------------------------- */

static void print_window(const struct estimate_live *live)
{
	const struct policy_sample *s = live->sample;
	char window[64];

	printf("%s: %" PRIu64 " packets (%s", printable(live->a->ifname).text, live->values.n,
	       sampling_of_text(s->of));
	if (s->packets)
		printf(", the last %" PRIu32 " of each CPU)", s->packets);
	else
		printf(", of the last %s)",
		       units_duration_text(s->window_ns, window, sizeof(window)));
	printf(" by %s, from %" PRIu32 " samples %s replacement\n", live->want->key.text,
	       live->values.samples, s->without_replacement ? "without" : "with");
}

/* low..high alone where there is no value. */
static void print_value(const char *name, const struct pooled_value *v, double unit,
			const char *unit_text)
{
	char text[64];

	if (isnan(v->value))
		snprintf(text, sizeof(text), "%.3g..%.3g", unit * v->low, unit * v->high);
	else
		snprintf(text, sizeof(text), "%.3g (%.3g..%.3g)", unit * shown(v), unit * v->low,
			 unit * v->high);
	printf("  %-10s %s%s\n", name, text, unit_text);
}

static void print_values(const struct estimate_live *live)
{
	const struct pooled_values *v = &live->values;
	char text[96];

	snprintf(text, sizeof(text), " bits, of at most %.3g", log2((double)v->n));
	print_value("entropy", &v->entropy, 1, text);
	snprintf(text, sizeof(text), " bits: by coincidences, as of %.3g..%.3g equal keys",
		 exp2(v->h2.low), exp2(v->h2.high));
	print_value("H2", &v->h2, 1, text);
	snprintf(text, sizeof(text), "F%u", live->want->moment);
	print_value(text, &v->moment, 1, "");
	print_value("seen once", &v->single, 100, " % of the sample");
}

static void print_keys(const struct estimate_live *live)
{
	char text[TALLY_TEXT];
	uint32_t i;

	for (i = 0; i < live->keys && live->key[i].times > 1; i++) {
		const struct pooled_value *share = &live->key[i].share;

		printf("  %-10s %.3g (%.3g..%.3g) %%  %s\n", i ? "" : "keys", 100 * shown(share),
		       100 * share->low, 100 * share->high, key_text(live, i, text));
	}
	if (!i)
		printf("  %-10s none is in the sample twice: none has more than %.3g %%\n", "keys",
		       100 * live->key[0].share.high);
}

static void print_costs(const struct estimate_live *live)
{
	char text[64];

	if (live->behind)
		printf("  %" PRIu32
		       " of the CPUs changed while read: without the current tick of %s\n",
		       live->behind,
		       units_duration_text(1ull << live->by.tick_shift, text, sizeof(text)));
	printf("  low..high hold at %g%%, all keys' together; the samples are worth %.3g of one "
	       "stream\n",
	       100 * (1 - ESTIMATE_DELTA), live->values.worth);
	printf("  cost: the sampler's, %s and what it takes a packet; this reading %.3f ms, and "
	       "packets nothing\n",
	       units_size_round(live->bytes, text, sizeof(text)), live->read_ns / 1e6);
}

void estimate_live_print(const struct estimate_live *live)
{
	print_window(live);
	if (!live->values.n)
		return;
	print_values(live);
	print_keys(live);
	print_costs(live);
}

/* --- a row ---------------------------------------------------------------------------------- */

static const char *range_text(const struct pooled_value *v, char *buf, size_t size)
{
	if (isnan(v->value))
		snprintf(buf, size, "%.3g..%.3g", v->low, v->high);
	else
		snprintf(buf, size, "%.3g (%.3g..%.3g)", shown(v), v->low, v->high);
	return buf;
}

void estimate_live_print_row(const struct estimate_live *live, bool first)
{
	const struct pooled_values *v = &live->values;
	char entropy[64], h2[64], key[TALLY_TEXT];

	if (first) {
		print_window(live);
		printf("%10s  %-14s %-22s %9s  %s\n", "packets", "entropy", "H2", "seen once",
		       "most frequent");
	}
	printf("%10" PRIu64 "  %-14s %-22s %8.0f%%", v->n,
	       range_text(&v->entropy, entropy, sizeof(entropy)),
	       range_text(&v->h2, h2, sizeof(h2)), 100 * v->single.value);
	if (live->keys)
		printf("  %.0f%% %s", 100 * live->key[0].share.value, key_text(live, 0, key));
	putchar('\n');
}
