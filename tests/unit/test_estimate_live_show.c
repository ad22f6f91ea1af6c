/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What `estimate` says of readings of live traffic that are made up: values outside their bounds,
 * keys that are there once, a window that is empty, CPUs that changed meanwhile.
 */
#include "oracle.h"

#include <jansson.h>
#include <math.h>

#include "cli/cmd.h"
#include "cli/estimate_show.h"

static struct attached pacer = {.ifname = "eth0"};
static struct policy_sample sample = {.of = SAMPLE_DENIED, .k = 8, .window_ns = 60000000000ull};
static struct pooled_part part = {.n = 1000, .k = 8};
static struct pacer_sample_item item[PACER_SAMPLE_K];
static struct estimate_want want = {.name = "eth0", .moment = 2};
static struct estimate_live live;
static int readings; /* that are shown */

int estimate_live(const struct estimate_want *wanted,
		  bool (*show)(const struct estimate_live *live, void *arg), void *arg,
		  struct policy_error *error)
{
	(void)error;
	live.want = wanted;
	for (int i = 0; i < readings; i++)
		assert_true(show(&live, arg));
	return 0;
}

/* Two keys: the share of one is beyond its bound, as of few packets that are drawn again and again.
 */
static int begin(void **unused)
{
	struct policy_error error = {0};

	(void)unused;
	for (uint32_t i = 0; i < 2; i++)
		item[i] =
		    (struct pacer_sample_item){.family = PACER_FAMILY_4, .saddr = {0xc0000201 + i}};
	live = (struct estimate_live){
	    .a = &pacer,
	    .sample = &sample,
	    .drawn = {.cpus = 1, .part = &part, .item = item, .by = {.tick_shift = 20}},
	    .bytes = 1 << 20,
	    .values = {.n = 1000,
		       .samples = 8,
		       .distinct = 2,
		       .worth = 7,
		       .moment = {NAN, 1000, 9000},
		       .h2 = {9, 1, 3},
		       .entropy = {0.5, 2, 4},
		       .single = {0.25, 0.125, 0.5}},
	    .key = {{.item = 0, .times = 6, .share = {0.625, 0.25, 0.75}},
		    {.item = 1, .times = 2, .share = {0.125, 0.25, 0.5}}},
	    .keys = 2};
	readings = 1;
	want.watch = false;
	assert_int_equal(estimate_key_open("src", &want.key, &error), 0);
	return 0;
}

static int end(void **unused)
{
	(void)unused;
	estimate_key_close(&want.key);
	return 0;
}

/* To be freed. */
static char *said(bool json)
{
	FILE *out = stdout;
	char *text = NULL;
	size_t n;

	stdout = open_memstream(&text, &n);
	assert_non_null(stdout);
	assert_int_equal(estimate_show_live(&want, json), EXIT_DONE);
	fclose(stdout);
	stdout = out;
	return text;
}

static void assert_said(const char *text)
{
	char *is = said(false);

	assert_string_equal(is, text);
	free(is);
}

static void assert_field(const json_t *of, double value, double low, double high)
{
	const json_t *is = json_object_get(of, "value");

	assert_int_equal(json_is_null(is), isnan(value));
	assert_true(isnan(value) || json_real_value(is) == value);
	assert_true(json_real_value(json_object_get(of, "low")) == low);
	assert_true(json_real_value(json_object_get(of, "high")) == high);
}

#define FIRST \
	"eth0: 1000 packets (denied, of the last 1m) by src, from 8 samples with replacement\n"
#define COST                                                                                   \
	"  low..high hold at 95%, for all keys together; the samples are worth 7 of a single " \
	"stream\n"                                                                             \
	"  cost: the sampler, with 1.0 MiB and its time for each packet; this reading, with "  \
	"0.000 "                                                                               \
	"ms and no time of any packet\n"

/* A value is moved to the bound that it is beyond; none is made up. */
static void test_values_outside_their_bounds(void **unused)
{
	json_t *all, *keys;
	char *text;

	(void)unused;
	assert_said(FIRST "  entropy    2 (2..4) bits, of at most 9.97\n"
			  "  H2         3 (1..3) bits: by coincidences, as of 2..8 equal keys\n"
			  "  F2         1e+03..9e+03\n"
			  "  seen once  25 (12.5..50) % of the sample\n"
			  "  keys       62.5 (25..75) %  192.0.2.1\n"
			  "             25 (25..50) %  192.0.2.2\n" COST);
	text = said(true);
	all = json_loads(text, 0, NULL);
	assert_non_null(all);
	free(text);
	assert_field(json_object_get(all, "entropy"), 2, 2, 4);
	assert_field(json_object_get(all, "H2"), 3, 1, 3);
	assert_field(json_object_get(all, "F2"), NAN, 1000, 9000);
	assert_field(json_object_get(all, "single"), 0.25, 0.125, 0.5);
	keys = json_object_get(all, "keys");
	assert_int_equal(json_array_size(keys), 2);
	assert_field(json_object_get(json_array_get(keys, 0), "share"), 0.625, 0.25, 0.75);
	assert_field(json_object_get(json_array_get(keys, 1), "share"), 0.25, 0.25, 0.5);
	json_decref(all);
}

/* Of keys that are all there once, only the most that one may have is known. */
static void test_no_key_is_there_twice(void **unused)
{
	(void)unused;
	live.key[0].times = live.key[1].times = 1;
	live.drawn.behind = 2;
	assert_said(FIRST "  entropy    2 (2..4) bits, of at most 9.97\n"
			  "  H2         3 (1..3) bits: by coincidences, as of 2..8 equal keys\n"
			  "  F2         1e+03..9e+03\n"
			  "  seen once  25 (12.5..50) % of the sample\n"
			  "  keys       no key is in the sample twice: none has more than 75 %\n"
			  "  2 of the CPUs changed while they were read: their current tick of "
			  "1.048576ms is left out\n" COST);
}

/* Rows have one heading; where there is no key, none is named. */
static void test_rows(void **unused)
{
	(void)unused;
	want.watch = true;
	assert_said(
	    FIRST "   packets  entropy         H2                      seen once  most frequent\n"
		  "      1000  2 (2..4)        3 (1..3)                      25%  62% 192.0.2.1\n");
	live.keys = 0;
	readings = 2;
	assert_said(FIRST
		    "   packets  entropy         H2                      seen once  most frequent\n"
		    "      1000  2 (2..4)        3 (1..3)                      25%\n"
		    "      1000  2 (2..4)        3 (1..3)                      25%\n");
}

static void test_empty_window(void **unused)
{
	json_t *all;
	char *text;

	(void)unused;
	live.values = (struct pooled_values){.n = 0};
	live.keys = 0;
	assert_said("eth0: 0 packets (denied, of the last 1m) by src, from 0 samples with "
		    "replacement\n");
	text = said(true);
	all = json_loads(text, 0, NULL);
	assert_non_null(all);
	free(text);
	assert_field(json_object_get(all, "entropy"), 0, 0, 0);
	assert_int_equal(json_array_size(json_object_get(all, "keys")), 0);
	json_decref(all);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_values_outside_their_bounds),
	    TEST(test_no_key_is_there_twice),
	    TEST(test_rows),
	    TEST(test_empty_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
