/* SPDX-License-Identifier: GPL-2.0-only */
/* What `load --restore` says of what it went on with: each way to know how long it was away, and
 * what was left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

#include "cli/cmd.h"
#include "cli/emit.h"
#include "cli/output.h"
#include "live/restore.h"

#define ARRAY(a) (sizeof(a) / sizeof((a)[0]))

static char *said(const struct restored *r, bool json)
{
	FILE *out = stdout;
	char *text = NULL;
	size_t n;

	stdout = open_memstream(&text, &n);
	assert_non_null(stdout);
	emit_begin(json);
	emit_object("");
	output_restored(r);
	emit_close();
	assert_int_equal(emit_end(), EXIT_DONE);
	fclose(stdout);
	stdout = out;
	return text;
}

static void assert_said(const struct restored *r, const char *text, const char *json)
{
	json_t *want = json_loads(json, 0, NULL), *got;
	char *is = said(r, false);

	assert_string_equal(is, text);
	free(is);
	is = said(r, true);
	got = json_loads(is, 0, NULL);
	assert_non_null(want);
	if (!json_equal(json_object_get(got, "restored"), want))
		fail_msg("%s", is);
	free(is);
	json_decref(got);
	json_decref(want);
}

static void test_all_kept(void **unused)
{
	struct restored r = {.absence = {ABSENCE_SAME_BOOT, 1500999999, UINT64_MAX, 0},
			     .limits_kept = 1,
			     .bans = 1,
			     .allowed = 2};

	(void)unused;
	assert_said(&r,
		    "restored: 1 limit kept its state, 0 new, 0 retired; 1 ban, 2 by hand on the "
		    "allow-list\n"
		    "away for 1500ms, exactly, as it was saved in this boot\n",
		    "{\"limits\":{\"kept\":1,\"new\":0,\"retired\":0},\"bans\":1,\"allowed\":2,"
		    "\"away_ns\":1500999999,\"away_by\":\"same_boot\","
		    "\"left_out\":{\"limits\":0,\"bans\":0,\"allowed\":0,\"counters\":0}}");
}

static void assert_left_out(const struct restored *r, const char *text, const char *json)
{
	char all[1024], all_json[1024];

	snprintf(all, sizeof(all),
		 "restored: 2 limits kept their state, 3 new, 4 retired; 0 bans, 0 by hand on the "
		 "allow-list\n"
		 "away for 1m, by the clock of the day, which a time server had set\n"
		 "left out:\n%s",
		 text);
	snprintf(all_json, sizeof(all_json),
		 "{\"limits\":{\"kept\":2,\"new\":3,\"retired\":4},\"bans\":0,\"allowed\":0,"
		 "\"away_ns\":60000000000,\"away_by\":\"clock_of_day\",\"left_out\":{%s}}",
		 json);
	assert_said(r, all, all_json);
}

static void test_left_out(void **unused)
{
	struct restored r = {.absence = {ABSENCE_BY_DAY, 60000000000, 61000000000, 0},
			     .limits_kept = 2,
			     .limits_new = 3,
			     .limits_draining = 4,
			     .bans = 0,
			     .limits_left_out = 1,
			     .bans_left_out = 1,
			     .allowed_left_out = 1,
			     .counters_left_out = 1};

	(void)unused;
	assert_left_out(&r,
			"  1 limit that the policy cannot go on with\n"
			"  1 ban found no room in the policy's table of bans\n"
			"  1 allow-list entry: the time may be over\n"
			"  the counters of 1 rule that the policy does not have\n",
			"\"limits\":1,\"bans\":1,\"allowed\":1,\"counters\":1");
	r.limits_left_out = r.bans_left_out = r.counters_left_out = 0;
	r.allowed_left_out = 2;
	assert_left_out(&r, "  2 allow-list entries: the time may be over\n",
			"\"limits\":0,\"bans\":0,\"allowed\":2,\"counters\":0");
}

/* What is not exact says what is not counted. */
static void test_how_known(void **unused)
{
	static const struct {
		enum absence_by by;
		const char *name, *text;
	} ways[] = {
	    {ABSENCE_SINCE_BOOT, "since_boot",
	     "away for 0, since the boot; what the machine was off counts as none: its clock of "
	     "the "
	     "day was not set by a time server, or is behind\n"},
	    {ABSENCE_ANY_BOOT, "any_boot",
	     "away for 0, at least; the kernel does not say whether this is the boot of the save: "
	     "is "
	     "/proc mounted?\n"},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(ways); i++) {
		struct restored r = {.absence = {.by = ways[i].by}};
		char text[512], json[256];

		snprintf(
		    text, sizeof(text),
		    "restored: 0 limits kept their state, 0 new, 0 retired; 0 bans, 0 by hand on "
		    "the allow-list\n%s",
		    ways[i].text);
		snprintf(
		    json, sizeof(json),
		    "{\"limits\":{\"kept\":0,\"new\":0,\"retired\":0},\"bans\":0,\"allowed\":0,"
		    "\"away_ns\":0,\"away_by\":\"%s\","
		    "\"left_out\":{\"limits\":0,\"bans\":0,\"allowed\":0,\"counters\":0}}",
		    ways[i].name);
		assert_said(&r, text, json);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_all_kept),
	    cmocka_unit_test(test_left_out),
	    cmocka_unit_test(test_how_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
