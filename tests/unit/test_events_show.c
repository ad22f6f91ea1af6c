/* SPDX-License-Identifier: GPL-2.0-only */
/* Events as lines and as JSON, of which little is known: as when nothing is sampled, or no time has
 * passed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/events_show.h"

static const struct event_place place = {"eth0", 0};

/* A start of which nothing more is known: no time has passed, and there is no sample. */
static void test_lines(void **unused)
{
	struct event one = {.kind = EVENT_START,
			    .rule = "dns",
			    .told_ns = 1500000000,
			    .so_far = {.matched = 10, .denied = 7, .denied_bytes = 70}};
	struct event change = {.kind = EVENT_CHANGE};
	struct event lost = {.kind = EVENT_LOST, .what = "runs of --exec", .n = 1234};
	const struct event rung = {.kind = EVENT_SHARING, .limit = 1, .rung = 3};
	char text[EVENT_TEXT], *json;

	(void)unused;
	event_text(&one, &place, text, sizeof(text));
	assert_non_null(strstr(text,
			       "1970-01-01T00:00:01.500Z eth0 start dns: 7 of 10 packets denied "
			       "since 1970-01-01T00:00:00.000Z, 0 pps, 0 bit/s, most by "));
	json = event_json(&one, &place);
	assert_non_null(strstr(json, "\"sources\":null"));
	assert_null(strstr(json, "needed"));
	free(json);
	for (size_t size = 1; size < 200; size++) { /* cut where there is no more room */
		memset(text, 'x', sizeof(text));
		event_text(&one, &place, text, size);
		assert_true(strlen(text) < size && text[size] == 'x');
	}
	assert_string_equal(
	    event_text(&lost, &place, text, sizeof(text)),
	    "1970-01-01T00:00:00.000Z eth0 lost 1,234 runs of --exec could not be told");
	assert_string_equal(event_text(&change, &place, text, sizeof(text)),
			    "1970-01-01T00:00:00.000Z eth0 change ");
	json =
	    event_json(&(struct event){.kind = EVENT_SHARING_END, .limit = 2, .used = 3}, &place);
	assert_non_null(
	    strstr(json, "\"limit\":2,\"rung\":null,\"used\":3,\"capacity\":0,\"shared\":0"));
	free(json);
	json = event_json(&rung, &place);
	assert_non_null(strstr(json, "\"limit\":1,\"rung\":3,\"used\":0"));
	free(json);
	assert_non_null(strstr(event_text(&rung, &place, text, sizeof(text)),
			       " limits[1], rung 3: 0 keys have an entry of 0, and about "));
}

/* Where what is denied is let through, a line says what lets it. */
static void test_lets_through(void **unused)
{
	static const char *const after[][2] = {
	    {NULL, "300 of 600 packets denied since "},
	    {"over: pass", "300 of 600 packets denied (over: pass lets them through) since "},
	    {"mode: monitor",
	     "300 of 600 packets denied (mode: monitor lets them through) since "}};
	struct event event = {.kind = EVENT_START,
			      .rule = "dns",
			      .so_far = {.matched = 600, .denied = 300, .denied_bytes = 30000}};
	char text[EVENT_TEXT], *json;

	(void)unused;
	for (size_t i = 0; i < sizeof(after) / sizeof(*after); i++)
		for (event.kind = EVENT_START; event.kind <= EVENT_END; event.kind++) {
			event.lets_through = after[i][0];
			event_text(&event, &place, text, sizeof(text));
			assert_non_null(strstr(text, after[i][1]));
			json = event_json(&event, &place);
			assert_non_null(strstr(json, i ? "\"packets\":300,\"let_through\":true,"
						       : "\"packets\":300,\"let_through\":false,"));
			free(json);
		}
}

/* The clock of the day was set since it began, which is not told anew. */
static void test_begin(void **unused)
{
	const struct event_place later = {"eth0", 7000000000};
	struct event end = {.kind = EVENT_END,
			    .rule = "dns",
			    .began_ns = 2000000000,
			    .began_day_ns = 1000000000,
			    .ended_ns = 4000000000,
			    .told_ns = 5000000000};
	char text[EVENT_TEXT], *json;

	(void)unused;
	event_text(&end, &later, text, sizeof(text));
	assert_non_null(strstr(text, "1970-01-01T00:00:12.000Z eth0 end dns: "));
	assert_non_null(strstr(text, " since 1970-01-01T00:00:03.000Z, for 2.0 s, "));
	json = event_json(&end, &later);
	assert_non_null(strstr(json, "\"time_ns\":12000000000,"));
	assert_non_null(strstr(json, "\"began_ns\":3000000000,\"ended_ns\":11000000000,"));
	free(json);
}

/* No rate of an episode is above its greatest in a second, though it was shorter. */
static void test_a_short_one(void **unused)
{
	struct event start = {.kind = EVENT_START,
			      .rule = "dns",
			      .peak_pps = 297,
			      .lately = {.denied = 297, .denied_bytes = 29700, .ns = 100000000}};
	struct event end = {.kind = EVENT_END,
			    .rule = "dns",
			    .ended_ns = 100000000,
			    .peak_pps = 297,
			    .so_far = {.matched = 300, .denied = 297, .denied_bytes = 29700}};
	char text[EVENT_TEXT], *json;

	(void)unused;
	json = event_json(&start, &place);
	assert_non_null(strstr(json, "\"pps\":297.0,\"bps\":237600.0,\"peak_pps\":297.0"));
	free(json);
	start.lately.ns = 1500000000;
	assert_non_null(strstr(event_text(&start, &place, text, sizeof(text)), " 198 pps, "));
	assert_non_null(strstr(event_text(&end, &place, text, sizeof(text)),
			       "for 0.1 s, 297 pps, 238 kbit/s, 297 pps at most, "));
	json = event_json(&end, &place);
	assert_non_null(strstr(json, "\"pps\":297.0,\"bps\":237600.0,\"peak_pps\":297.0"));
	free(json);
	end.ended_ns = 3000000000;
	assert_non_null(strstr(event_text(&end, &place, text, sizeof(text)),
			       "for 3.0 s, 99 pps, 79.2 kbit/s, 297 pps at most, "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lines),
	    cmocka_unit_test(test_lets_through),
	    cmocka_unit_test(test_begin),
	    cmocka_unit_test(test_a_short_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
