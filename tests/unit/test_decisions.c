/* SPDX-License-Identifier: GPL-2.0-only */
/* What a bouncer makes of the answers of CrowdSec's API. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bouncer/decisions.h"
#include "bouncer/settings.h"
#include "fleet/json.h"
#include "starved.h"

#define NOW 1000000000000ull
#define S   1000000000ull

static void test_durations(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} right[] = {
	    {"0", 0},
	    {"0s", 0},
	    {"1s", S},
	    {"3h59m59.5s", 14399 * S + S / 2},
	    {"87600h0m0s", 87600 * 3600 * S},
	    {"1m2s", 62 * S},
	    {"250ms", S / 4},
	    {"1.5h", 5400 * S},
	    {"1.25s", S + S / 4},
	    {"10us", 10000},
	    {"10\u00b5s", 10000},
	    {"10\u03bcs", 10000},
	    {"7ns", 7},
	    {".5s", S / 2},
	    {"+1s", S},
	    {"-3h2m", 0},
	    {"99999999999h", 1ull << 60},
	};
	static const char *const wrong[] = {"",	  "-",	 "1",  "h",	"1h1",	"1 h",	"soon",
					    "1d", "1h ", ".s", "1h-1m", "0x1s", "1e3s", "s1"};
	uint64_t ns;

	(void)state;
	for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++) {
		assert_int_equal(decisions_duration(right[i].text, &ns), 0);
		assert_int_equal(ns, right[i].ns);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(decisions_duration(wrong[i], &ns), -1);
}

static int take(struct decisions *d, const char *json, bool whole, struct decisions_told *told,
		struct policy_error *error)
{
	struct decisions_told unused;
	struct policy_error ignored;

	return decisions_take(d, json, strlen(json), whole, NOW, told ? told : &unused,
			      error ? error : &ignored);
}

/* The bans at a time: "PREFIX SECONDS" each, those of IPv4 and short prefixes first. */
static void bans_are(const struct decisions *d, uint64_t now_ns, const char *wanted)
{
	struct ban_pieces bans;
	char text[1000] = "", prefix[64];

	assert_int_equal(decisions_bans(d, now_ns, &bans), 0);
	for (size_t i = 0; i < bans.n && i < 10; i++)
		sprintf(text + strlen(text), "%s%s %llu", i ? ", " : "",
			units_prefix_text(&bans.at[i].prefix, prefix, sizeof(prefix)),
			(unsigned long long)((bans.at[i].until_ns - NOW) / S));
	assert_string_equal(text, wanted);
	free(bans.at);
}

#define BAN(id, scope, value, duration)                                                  \
	"{\"id\": " #id ", \"origin\": \"CAPI\", \"type\": \"ban\", \"scope\": \"" scope \
	"\", \"value\": \"" value "\", \"scenario\": \"x\", \"duration\": \"" duration "\"}"

static void test_answers(void **state)
{
	struct decisions d = {0};

	(void)state;
	assert_int_equal(take(&d, "{\"new\": null, \"deleted\": null}", true, NULL, NULL), 0);
	bans_are(&d, NOW, "");
	assert_int_equal(take(&d,
			      "{\"new\": [" BAN(2, "Ip", "192.0.2.1", "10s") "," BAN(
				  1, "ip", "2001:db8::1", "20s") "], \"deleted\": null}",
			      true, NULL, NULL),
			 0);
	bans_are(&d, NOW, "192.0.2.1 10, 2001:db8::1 20");
	bans_are(&d, NOW + 15 * S, "2001:db8::1 20");
	/* Another of the same source: until the later of both ends, and then the earlier. */
	assert_int_equal(
	    take(&d, "{\"new\": [" BAN(3, "Ip", "192.0.2.1", "40s") "]}", false, NULL, NULL), 0);
	bans_are(&d, NOW, "192.0.2.1 40, 2001:db8::1 20");
	assert_int_equal(take(&d,
			      "{\"deleted\": [" BAN(3, "Ip", "192.0.2.1", "-1s") "," BAN(
				  77, "Ip", "192.0.2.9", "-1s") "]}",
			      false, NULL, NULL),
			 0);
	bans_are(&d, NOW, "192.0.2.1 10, 2001:db8::1 20");
	/* The same id again replaces it; an id that ends and comes in one answer, too. */
	assert_int_equal(take(&d,
			      "{\"new\": [" BAN(2, "Ip", "192.0.2.1", "5s") "], \"deleted\": [" BAN(
				  2, "Ip", "192.0.2.1", "-1s") "]}",
			      false, NULL, NULL),
			 0);
	bans_are(&d, NOW, "192.0.2.1 5, 2001:db8::1 20");
	/* An IPv4 address in the form of IPv6 is the IPv4 address, which packets have. */
	assert_int_equal(
	    take(&d, "{\"new\": [" BAN(4, "Ip", "::ffff:192.0.2.7", "1s") "]}", true, NULL, NULL),
	    0);
	bans_are(&d, NOW, "192.0.2.7 1");
	/* Two prefixes of one length with the same bytes are two. */
	assert_int_equal(take(&d,
			      "{\"new\": [" BAN(5, "Ip", "32.1.13.184", "2s") "," BAN(
				  6, "Range", "2001:db8::/32", "3s") "]}",
			      true, NULL, NULL),
			 0);
	bans_are(&d, NOW, "32.1.13.184 2, 2001:db8::/32 3");
	/* Whatever case its words are in. */
	assert_int_equal(take(&d,
			      "{\"new\": [{\"id\": 8, \"type\": \"Ban\", \"scope\": \"RANGE\", "
			      "\"value\": \"192.0.2.0/24\", \"duration\": \"4s\"}]}",
			      true, NULL, NULL),
			 0);
	bans_are(&d, NOW, "192.0.2.0/24 4");
	/* A whole answer has all there are. */
	assert_int_equal(
	    take(&d, "{\"new\": [" BAN(9, "Ip", "192.0.2.3", "1s") "]}", true, NULL, NULL), 0);
	bans_are(&d, NOW, "192.0.2.3 1");
	decisions_free(&d);
}

/* What is for others is not told of; what cannot be read is. */
static void test_left_out(void **state)
{
	static const struct {
		const char *decision, *why;
	} out[] = {
	    {"{\"id\": 1, \"type\": \"captcha\", \"scope\": \"Ip\", \"value\": \"192.0.2.1\", "
	     "\"duration\": \"1s\"}",
	     NULL},
	    {"{\"id\": 1, \"type\": \"ban\", \"scope\": \"Ip\", \"value\": \"192.0.2.1\", "
	     "\"duration\": \"1s\", \"simulated\": true}",
	     NULL},
	    {BAN(1, "Country", "DE", "1s"), NULL},
	    {BAN(1, "AS", "64496", "1s"), NULL},
	    {BAN(1, "Ip", "somebody", "1s"), "decision 1: no address or range: somebody"},
	    {BAN(1, "Ip", "", "1s"), "decision 1: no address or range: "},
	    {BAN(1, "Range", "192.0.2.0/33", "1s"),
	     "decision 1: no address or range: 192.0.2.0/33"},
	    {BAN(1, "Ip", "192.0.2.1", "1 day"), "decision 1: no duration: 1 day"},
	    {BAN(1, "Range", "0.0.0.0/0", "1s"),
	     "decision 1: the range is too wide to be banned: 0.0.0.0/0"},
	    {BAN(1, "Range", "::/0", "1s"), "decision 1: the range is too wide to be banned: ::/0"},
	    {BAN(1, "Range", "2000::/23", "1s"),
	     "decision 1: the range is too wide to be banned: 2000::/23"},
	    {"{\"id\": 5}", "decision 5: no id, type or scope: it"},
	    {BAN("x", "Ip", "192.0.2.1", "1s"), "decision 0: no id, type or scope: 192.0.2.1"},
	    {"7", "decision 0: no id, type or scope: it"},
	    {"{\"id\": 1, \"type\": \"ban\", \"scope\": \"Ip\", \"duration\": \"1s\"}",
	     "decision 1: no address or range: is missing"},
	    {"{\"id\": 1, \"type\": \"ban\", \"scope\": \"Ip\", \"value\": \"192.0.2.1\"}",
	     "decision 1: no duration: is missing"},
	    {"{\"id\": 1, \"type\": \"ban\"}", "decision 1: no id, type or scope: it"},
	    {"null", "decision 0: no id, type or scope: it"},
	    {"[]", "decision 0: no id, type or scope: it"},
	};
	static const char not_simulated[] = "{\"new\": [{\"id\": 1, \"type\": \"ban\", \"scope\": "
					    "\"Ip\", \"value\": \"192.0.2.1\", "
					    "\"duration\": \"1s\", \"simulated\": false}]}";
	struct decisions_told none;
	struct decisions one = {0};

	(void)state;
	assert_int_equal(take(&one, not_simulated, true, &none, NULL), 0);
	bans_are(&one, NOW, "192.0.2.1 1");
	decisions_free(&one);
	for (size_t i = 0; i < sizeof(out) / sizeof(*out); i++) {
		struct decisions_told told;
		struct decisions d = {0};
		char json[1000];

		/* the second is left out, too, and the first is told of */
		snprintf(json, sizeof(json), "{\"new\": [%s, %s, %s]}", out[i].decision,
			 BAN(3, "Ip", "nobody", "9s"), BAN(2, "Ip", "192.0.2.2", "9s"));
		assert_int_equal(take(&d, json, true, &told, NULL), 0);
		assert_int_equal(told.left_out, 1 + !!out[i].why);
		if (out[i].why)
			assert_string_equal(told.why, out[i].why);
		bans_are(&d, NOW, "192.0.2.2 9");
		decisions_free(&d);
	}
}

/* Nothing is changed by what is no answer. */
static void test_garbage(void **state)
{
	static const char *const garbage[] = {
	    "",
	    "garbage",
	    "[]",
	    "7",
	    "{}",
	    "{\"message\": \"access forbidden\"}",
	    "{\"new\": 7}",
	    "{\"new\": {}}",
	    "{\"new\": null, \"deleted\": \"all\"}",
	    "{\"new\": [" BAN(1, "Ip", "192.0.2.1", "1s"),
	    "{\"new\": []} more",
	    "{\"new\": [\"\xff\"]}",
	};
	struct decisions d = {0};

	(void)state;
	assert_int_equal(
	    take(&d, "{\"new\": [" BAN(9, "Ip", "192.0.2.3", "1s") "]}", true, NULL, NULL), 0);
	for (size_t i = 0; i < sizeof(garbage) / sizeof(*garbage); i++) {
		struct policy_error error = {0};

		assert_int_equal(take(&d, garbage[i], true, NULL, &error), -1);
		assert_true(strstr(error.text, "its ") == error.text);
		assert_null(strchr(error.text, '\n'));
		bans_are(&d, NOW, "192.0.2.3 1");
	}
	decisions_free(&d);
}

/* It is JSON, and would take 80 times its length of memory. */
static void test_more_values_than_text(void **state)
{
	const size_t n = 200000;
	char *json = malloc(3 * n + 3);
	struct policy_error error = {0};
	struct decisions d = {0};

	(void)state;
	assert_non_null(json);
	json_count_failures();
	json[0] = '[';
	for (size_t i = 0; i < n; i++)
		memcpy(json + 1 + 3 * i, "[],", 3);
	memcpy(json + 3 * n, "]", 2);
	assert_int_equal(take(&d, json, true, NULL, &error), -1);
	assert_string_equal(error.text, "its answer has more values than text, and no list of "
					"decisions has: is CrowdSec there?");
	free(json);
	decisions_free(&d);
}

/* As prefixes of the lengths that bans have. */
static void test_ranges(void **state)
{
	static const struct {
		const char *range, *pieces;
	} ranges[] = {
	    {"192.0.2.0/24", "192.0.2.0/24 1"},
	    {"192.0.2.77/24", "192.0.2.0/24 1"},
	    {"10.0.0.0/8", "10.0.0.0/8 1"},
	    {"192.0.2.7/32", "192.0.2.7 1"},
	    {"192.0.2.4/30", "192.0.2.4 1, 192.0.2.5 1, 192.0.2.6 1, 192.0.2.7 1"},
	    {"192.0.2.0/23", "192.0.2.0/24 1, 192.0.3.0/24 1"},
	    {"192.0.0.0/15", "192.0.0.0/16 1, 192.1.0.0/16 1"},
	    {"2.0.0.0/7", "2.0.0.0/8 1, 3.0.0.0/8 1"},
	    {"2001:db8::/64", "2001:db8::/64 1"},
	    {"2001:db8::/127", "2001:db8:: 1, 2001:db8::1 1"},
	    {"2001:db8:0:2::/63", "2001:db8:0:2::/64 1, 2001:db8:0:3::/64 1"},
	    {"2001:db8::/47", "2001:db8::/48 1, 2001:db8:1::/48 1"},
	    {"2001:db8::/31", "2001:db8::/32 1, 2001:db9::/32 1"},
	};
	struct decisions d = {0};
	struct ban_pieces bans;
	char json[500];

	(void)state;
	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++) {
		snprintf(json, sizeof(json),
			 "{\"new\": [{\"id\": 1, \"type\": \"ban\", \"scope\": \"Range\", "
			 "\"value\": \"%s\", \"duration\": \"1s\"}]}",
			 ranges[i].range);
		assert_int_equal(take(&d, json, true, NULL, NULL), 0);
		bans_are(&d, NOW, ranges[i].pieces);
	}
	assert_int_equal(
	    take(&d, "{\"new\": [" BAN(1, "Range", "2001:db8::/40", "1s") "]}", true, NULL, NULL),
	    0);
	assert_int_equal(decisions_bans(&d, NOW, &bans), 0);
	assert_int_equal(bans.n, DECISIONS_PIECES);
	free(bans.at);
	decisions_free(&d);
}

/* What an answer says of a decision that is there replaces it, and leaves the others. */
static void test_said_again(void **state)
{
	struct decisions d = {0};

	(void)state;
	assert_int_equal(
	    take(&d,
		 "{\"new\": [" BAN(1, "Ip", "192.0.2.1", "100s") ", " BAN(
		     2, "Range", "198.51.0.0/16", "100s") ", " BAN(3, "Country", "DE", "100s") "]}",
		 true, NULL, NULL),
	    0);
	bans_are(&d, NOW, "198.51.0.0/16 100, 192.0.2.1 100");
	assert_int_equal(
	    take(&d, "{\"new\": [" BAN(1, "Ip", "192.0.2.1", "300s") "]}", false, NULL, NULL), 0);
	bans_are(&d, NOW, "198.51.0.0/16 100, 192.0.2.1 300");
	assert_int_equal(/* sooner, too */
			 take(&d, "{\"new\": [" BAN(1, "Ip", "192.0.2.1", "50s") "]}", false, NULL,
			      NULL),
			 0);
	bans_are(&d, NOW, "198.51.0.0/16 100, 192.0.2.1 50");
	assert_int_equal(d.n, 2);
	decisions_free(&d);
}

/* What an answer should not have: an id twice, and one that is none. */
static void test_odd_ids(void **state)
{
	struct decisions d = {0};

	(void)state;
	assert_int_equal(take(&d,
			      "{\"new\": [" BAN(0, "Ip", "192.0.2.1", "9s") "," BAN(
				  1, "Ip", "192.0.2.1",
				  "9s") "," BAN(1, "Ip", "192.0.2.1",
						"9s") "," BAN(3, "Ip", "192.0.2.1", "5s") "]}",
			      true, NULL, NULL),
			 0);
	assert_int_equal(d.n, 3);
	bans_are(&d, NOW, "192.0.2.1 9");
	assert_int_equal(
	    take(&d, "{\"deleted\": [{\"id\": null}, {\"id\": \"1\"}, 7]}", false, NULL, NULL), 0);
	assert_int_equal(d.n, 3);
	/* what is over is forgotten */
	assert_int_equal(decisions_take(&d, "{\"new\": []}", 11, false, NOW + 6 * S,
					&(struct decisions_told){0}, &(struct policy_error){0}),
			 0);
	assert_int_equal(d.n, 2);
	decisions_free(&d);
}

/* So many ranges, from that number on, each of 256 prefixes. */
static char *ranges(unsigned int from, unsigned int n)
{
	char *json = malloc(50 + n * 120ul), *to = json;

	assert_non_null(json);
	to += sprintf(to, "{\"new\": [");
	for (unsigned int i = from; i < from + n; i++)
		to += sprintf(to,
			      "%s{\"id\": %u, \"type\": \"ban\", \"scope\": \"Range\", "
			      "\"value\": \"2001:db8:%x:%x00::/56\", \"duration\": \"9s\"}",
			      i > from ? ", " : "", i, i >> 8, i & 0xff);
	sprintf(to, "]}");
	return json;
}

/* A short answer of wide ranges does not take all memory, nor do many answers. */
static void test_too_many_bans(void **state)
{
	const unsigned int most = DECISIONS_BANS / DECISIONS_PIECES;
	struct decisions d = {0};
	struct decisions_told told;
	struct ban_pieces bans;
	char *json;

	(void)state;
	json = ranges(1, most - 1);
	assert_int_equal(take(&d, json, true, &told, NULL), 0);
	assert_int_equal(told.left_out, 0);
	free(json);
	json = ranges(most, 3);
	assert_int_equal(take(&d, json, false, &told, NULL), 0);
	assert_int_equal(told.left_out, 2);
	assert_string_equal(told.why, "decision 4097: it would be too many bans, more than "
				      "1048576: 2001:db8:10:100::/56");
	free(json);
	assert_int_equal(decisions_bans(&d, NOW, &bans), 0);
	assert_int_equal(bans.n, DECISIONS_BANS);
	free(bans.at);
	/* One that ends makes room for the next. */
	assert_int_equal(take(&d,
			      "{\"deleted\": [{\"id\": 7}], \"new\": [{\"id\": 9000, "
			      "\"type\": \"ban\", \"scope\": \"Ip\", \"value\": "
			      "\"192.0.2.1\", \"duration\": \"9s\"}]}",
			      false, &told, NULL),
			 0);
	assert_int_equal(told.left_out, 0);
	assert_int_equal(d.n, most);
	decisions_free(&d);
}

/* No memory is no answer, and what was there stays. */
static void test_no_memory(void **state)
{
	static const char more[] =
	    "{\"new\": [" BAN(2, "Range", "192.0.2.0/30", "9s") "], \"deleted\": []}";
	struct ban_pieces none = {0}, bans, lift, add;
	struct decisions d = {0};
	int result = -1;

	(void)state;
	json_count_failures();
	assert_int_equal(
	    take(&d, "{\"new\": [" BAN(1, "Ip", "192.0.2.9", "9s") "]}", true, NULL, NULL), 0);
	for (uint32_t i = 1; result; i++) {
		struct policy_error error = {0};

		assert_true(i < 1000);
		starved_from(i, false);
		memory.on = true;
		result = take(&d, more, false, NULL, &error);
		memory.on = false;
		if (result) {
			assert_string_equal(error.text, "no memory for its decisions");
			bans_are(&d, NOW, "192.0.2.9 9");
		}
	}
	assert_int_equal(d.n, 2);
	starved_from(1, false);
	memory.on = true;
	assert_int_equal(decisions_bans(&d, NOW, &bans), -1);
	assert_int_equal(decisions_bans(&d, NOW, &bans), 0);
	for (uint32_t i = 1; i <= 2; i++) {
		starved_from(i, false);
		assert_int_equal(decisions_change(&bans, &none, NOW, S, &lift, &add), -1);
	}
	starved_from(1, false);
	assert_int_equal(decisions_either(&bans, &none, &lift), -1);
	starved_from(1, false);
	assert_int_equal(decisions_both(&bans, &none, &lift), -1);
	memory.on = false;
	free(bans.at);
	decisions_free(&d);
}

/* Random lists of bans: after the change that is told, the bans are those that are wanted, and what
 * differs by little is not told. */
static uint64_t model[64];

static void random_pieces(struct ban_pieces *p, unsigned int *seed)
{
	*p = (struct ban_pieces){calloc(64, sizeof(*p->at)), 0};
	for (size_t i = 0; i < 64; i++)
		if (rand_r(seed) % 3)
			p->at[p->n++] = (struct ban_piece){{4, 32, {192, 0, 2, i}},
							   NOW + rand_r(seed) % 40 * S};
}

static void test_changes(void **state)
{
	unsigned int seed = 1;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		struct ban_pieces was, is, lift, add;
		uint64_t slack_ns = 5 * S;

		random_pieces(&was, &seed);
		random_pieces(&is, &seed);
		memset(model, 0, sizeof(model));
		for (size_t i = 0; i < was.n; i++)
			model[was.at[i].prefix.addr[3]] = was.at[i].until_ns;
		assert_int_equal(decisions_change(&was, &is, NOW, slack_ns, &lift, &add), 0);
		for (size_t i = 0; i < add.n; i++) {
			uint64_t had = model[add.at[i].prefix.addr[3]];

			assert_true(!had || had + slack_ns < add.at[i].until_ns ||
				    add.at[i].until_ns + slack_ns < had);
		}
		for (size_t i = 0; i < lift.n; i++) {
			assert_true(model[lift.at[i].prefix.addr[3]] > NOW);
			model[lift.at[i].prefix.addr[3]] = 0;
		}
		for (size_t i = 0; i < add.n; i++) /* as a ban is: the later end counts */
			if (model[add.at[i].prefix.addr[3]] < add.at[i].until_ns)
				model[add.at[i].prefix.addr[3]] = add.at[i].until_ns;
		for (size_t i = 0; i < is.n; i++) {
			uint64_t has = model[is.at[i].prefix.addr[3]], wants = is.at[i].until_ns;

			assert_true(has + slack_ns >= wants && wants + slack_ns >= has);
			model[is.at[i].prefix.addr[3]] = 0;
		}
		for (size_t i = 0; i < 64; i++)
			assert_true(model[i] <= NOW);
		free(was.at);
		free(is.at);
		free(lift.at);
		free(add.at);
	}
}

/* An end that differs by little is the one that was told; any other is the new one. */
static void test_settled(void **state)
{
	static const struct {
		uint64_t was_s, is_s, settled_s;
	} rows[] = {{10, 15, 10}, {15, 10, 15}, {10, 16, 16}, {16, 10, 10}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct ban_piece one = {{4, 32, {192, 0, 2, 1}}, NOW + rows[i].was_s * S};
		struct ban_piece other = {{4, 32, {192, 0, 2, 1}}, NOW + rows[i].is_s * S};
		struct ban_pieces was = {&one, 1}, is = {&other, 1};

		decisions_settle(&was, &is, 5 * S);
		assert_int_equal(other.until_ns, NOW + rows[i].settled_s * S);
	}
}

/* Half of a change was done, and which half is not known: what is told next lifts either. */
static void test_half_of_a_change(void **state)
{
	struct ban_pieces none = {0}, both, lift, add;
	unsigned int seed = 1;

	(void)state;
	for (int round = 0; round < 200; round++) {
		struct ban_pieces was, is;
		size_t all;

		random_pieces(&was, &seed);
		random_pieces(&is, &seed);
		memset(model, 0, sizeof(model));
		for (size_t i = 0; i < was.n; i++)
			model[was.at[i].prefix.addr[3]] = was.at[i].until_ns;
		for (size_t i = 0; i < is.n; i++)
			if (model[is.at[i].prefix.addr[3]] < is.at[i].until_ns)
				model[is.at[i].prefix.addr[3]] = is.at[i].until_ns;
		assert_int_equal(decisions_either(&was, &is, &both), 0);
		for (size_t i = 0; i < both.n; i++) {
			const struct ban_piece *it = decisions_find(&is, &both.at[i].prefix);
			size_t k = 0;

			while (k < is.n &&
			       memcmp(&is.at[k].prefix, &both.at[i].prefix, sizeof(struct prefix)))
				k++;
			assert_ptr_equal(it, k < is.n ? &is.at[k] : NULL);
		}
		assert_int_equal(decisions_change(&both, &none, 0, 0, &lift, &add), 0);
		for (size_t i = 0; i < lift.n; i++) {
			assert_int_equal(model[lift.at[i].prefix.addr[3]], lift.at[i].until_ns);
			model[lift.at[i].prefix.addr[3]] = 0;
		}
		for (size_t i = 0; i < 64; i++)
			assert_int_equal(model[i], 0);
		all = both.n;
		free(both.at);
		assert_int_equal(decisions_both(&was, &is, &both), 0);
		assert_int_equal(both.n, was.n + is.n - all);
		free(was.at);
		free(is.at);
		free(both.at);
		free(lift.at);
		free(add.at);
	}
}

#define URL    "api_url: http://127.0.0.1/\n"
#define KEY    "api_key: abc\n"
#define IFACES "interfaces: [eth0]\n"

static void test_settings(void **state)
{
	static const char text[] = "api_url: https://127.0.0.1:8080/\napi_key: abc\n"
				   "interfaces: [eth0, eth1]\norigins: [CAPI, cscli]\n"
				   "ca_cert_path: /etc/ca.pem\n";
	struct settings s;
	struct policy_error error;

	(void)state;
	assert_int_equal(settings_read(&s, text, strlen(text), &error), 0);
	assert_string_equal(s.url, "https://127.0.0.1:8080/");
	assert_string_equal(s.key, "abc");
	assert_string_equal(s.origins, "CAPI,cscli");
	assert_string_equal(s.ca_file, "/etc/ca.pem");
	assert_int_equal(s.n, 2);
	assert_string_equal(s.ifname[1], "eth1");
	assert_int_equal(s.every_ns, 10 * S);
	assert_int_equal(s.timeout_ns, 60 * S);
}

/* Hosts of each form: a name, numbers, and who asks before it. */
static void test_hosts(void **state)
{
	static const struct {
		const char *url, *shown;
	} rows[] = {{"http://a", "http://a"},
		    {"http://[::1]:8080/", "http://[::1]:8080/"},
		    {"https://me:x@b:1/c%40d", "https://b:1/c%40d"}};
	struct policy_error error;
	struct settings s;
	char text[200];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		snprintf(text, sizeof(text), "api_url: \"%s\"\n" KEY IFACES, rows[i].url);
		assert_int_equal(settings_read(&s, text, strlen(text), &error), 0);
		assert_string_equal(s.url, rows[i].url);
		assert_string_equal(s.shown, rows[i].shown);
	}
}

/* A file that cannot be used: in which line, and why. */
static void test_wrong_settings(void **state)
{
	static const struct {
		const char *text;
		int line;
		const char *says;
	} wrong[] = {
	    {KEY IFACES, 1, "api_url, such as http://127.0.0.1:8080/, is missing"},
	    {URL IFACES, 1, "api_key, as `cscli bouncers add NAME` prints it, is missing"},
	    {URL KEY, 1, "interfaces, such as [eth0], is missing"},
	    {URL KEY "interfaces: []\n", 3, "name at least one: [eth0]"},
	    {URL KEY "interfaces: [a23456789012345x]\n", 3, "it is longer than 15 characters"},
	    {URL KEY "interfaces: [[eth0]]\n", 3, "interfaces[0]"},
	    {URL KEY "interfaces: [\"eth 0\"]\n", 3, "it has a blank or a control character in it"},
	    {URL KEY "interfaces: [eth0, .]\n", 3, "interfaces[1]: no interface can have"},
	    {URL KEY "interfaces: [eth0, ..]\n", 3, "interfaces[1]: no interface can have"},
	    {URL KEY "interfaces: [eth0, a/b]\n", 3, "interfaces[1]: no interface can have"},
	    {URL KEY "interfaces: [eth0, \"a:1\"]\n", 3, "interfaces[1]: no interface can have"},
	    {URL KEY "interfaces: [eth0, all]\n", 3, "interfaces[1]: no interface can have"},
	    {URL KEY "interfaces: [eth0, default]\n", 3, "interfaces[1]: no interface can have"},
	    {URL KEY "interfaces: [\"\"]\n", 3, "interfaces[0]"},
	    {KEY IFACES "api_url: 127.0.0.1\n", 3, "api_url: it is no address: write http"},
	    {KEY IFACES "api_url: https:127.0.0.1\n", 3, "it is no address: write http"},
	    {KEY IFACES "api_url: http:///\n", 3, "api_url: it names no host: write http"},
	    {KEY IFACES "api_url: https://\n", 3, "it names no host"},
	    {KEY IFACES "api_url: http://:8080/\n", 3, "it names no host"},
	    {KEY IFACES "api_url: http://me@/v1@x\n", 3, "it names no host"},
	    {KEY IFACES "api_url: http://?a\n", 3, "it names no host"},
	    {KEY IFACES "api_url: http://a/?b\n", 3, "it goes on after its path: leave out"},
	    {KEY IFACES "api_url: http://a/#b\n", 3, "it goes on after its path: leave out"},
	    {KEY IFACES "api_url: http://a:99999/\n", 3, "api_url: it is no address: "},
	    {KEY IFACES "api_url: http://a;b/\n", 3, "api_url: it is no address: "},
	    {KEY IFACES "api_url: http://a:p/w@b/\n", 3, "it has an @ in its path: write %40"},
	    {KEY IFACES "api_url: http://a:1/w@b/\n", 3, "it has an @ in its path: write %40"},
	    {KEY IFACES "api_url: http://[::1/\n", 3, "api_url: it is no address: "},
	    {KEY IFACES "api_url: [a]\n", 3, "api_url"},
	    {URL IFACES "api_key: \"a\\x7fb\"\n", 3, "it has a blank or a control character in it"},
	    {URL IFACES "api_key: ~\n", 3, "api_key: the value is missing"},
	    {URL KEY "interfaces: [null]\n", 3, "interfaces[0]: the value is missing"},
	    {URL KEY IFACES "ca_cert_path: ~\n", 4, "ca_cert_path: the value is missing"},
	    {URL KEY IFACES "update_frequency: 9ms\n", 4, "it is less than 10ms"},
	    {URL KEY IFACES "update_frequency: often\n", 4, "update_frequency"},
	    {URL KEY IFACES "timeout: never\n", 4, "timeout"},
	    {URL KEY IFACES "timeout: 999ms\n", 4, "it is less than 1s"},
	    {URL KEY IFACES "origins: [[a]]\n", 4, "origins"},
	    {URL KEY IFACES "origins: []\n", 4,
	     "origins: name at least one, [crowdsec], or leave it out for all"},
	    {URL KEY IFACES "origins: ~\n", 4, "origins: name at least one, [crowdsec], or"},
	    {URL KEY IFACES "origins: [a, Null]\n", 4, "origins[1]: name at least one"},
	    {URL KEY IFACES "origins: [\"a,b\"]\n", 4, "it has a comma or a blank: write a list"},
	    {URL KEY IFACES "origins: [a b]\n", 4, "it has a comma or a blank: write a list"},
	    {URL KEY IFACES "colour: red\n", 4, "colour"},
	    {"a: [\n", 1, "not YAML"},
	    {"", 1, "the settings are empty: write api_url, api_key and interfaces"},
	    {URL KEY IFACES "---\n" URL, 5, "a second document: a file of settings is one"},
	    {URL "api_key: !abc d\n" IFACES, 2, "says nothing in a file of settings: quote a text"},
	    {URL KEY IFACES "update_frequency: 0s\n", 4,
	     "update_frequency: 0 is no time: it must be more"},
	    {URL KEY IFACES "timeout: 0s\n", 4, "timeout: 0 is no time: it must be more"},
	};
	struct policy_error error;
	struct settings s;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		error = (struct policy_error){.line = -1};
		assert_int_equal(settings_read(&s, wrong[i].text, strlen(wrong[i].text), &error),
				 -1);
		if (error.line != wrong[i].line || !strstr(error.text, wrong[i].says))
			fail_msg("%s%d: %s", wrong[i].text, error.line, error.text);
	}
}

/* All origins together are one text of the API's address. */
static void test_long_origins(void **state)
{
	char text[2 * SETTINGS_TEXT + 200];
	struct policy_error error;
	struct settings s;
	int n;

	(void)state;
	for (int more = 0; more < 2; more++) {
		n = snprintf(text, sizeof(text),
			     URL KEY IFACES "update_frequency: 3s\ntimeout: 7s\norigins: [");
		for (unsigned int i = 0; i < (SETTINGS_TEXT - 1) / 8; i++)
			n += snprintf(text + n, sizeof(text) - n, "%so%06u", i ? ", " : "", i);
		snprintf(text + n, sizeof(text) - n, "%s]\n", more ? ", eightmor" : ", seven-m");
		assert_int_equal(settings_read(&s, text, strlen(text), &error), -more);
		assert_int_equal(s.every_ns, 3 * S);
		assert_int_equal(s.timeout_ns, 7 * S);
	}
	assert_int_equal(error.line, 6);
	assert_non_null(strstr(error.text, "together they are longer than"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_durations),	 cmocka_unit_test(test_answers),
	    cmocka_unit_test(test_left_out),	 cmocka_unit_test(test_garbage),
	    cmocka_unit_test(test_ranges),	 cmocka_unit_test(test_said_again),
	    cmocka_unit_test(test_odd_ids),	 cmocka_unit_test(test_half_of_a_change),
	    cmocka_unit_test(test_no_memory),	 cmocka_unit_test(test_changes),
	    cmocka_unit_test(test_settings),	 cmocka_unit_test(test_wrong_settings),
	    cmocka_unit_test(test_long_origins), cmocka_unit_test(test_too_many_bans),
	    cmocka_unit_test(test_settled),	 cmocka_unit_test(test_more_values_than_text),
	    cmocka_unit_test(test_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
