/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What `check` says of throttles, pools and bans, against the policy; its figures of memory, which
 * have to add up; and for how long a silent key has its record.
 */
#include <inttypes.h>
#include <math.h>
#include <unistd.h>

#include "applied.h"
#include "cli/cmd.h"
#include "cli/emit.h"
#include "cli/output.h"
#include "table.h"

#define BESIDE_BYTES 123457u

/* Of the verbs' memory, which is told elsewhere: the table, throttles for two CPUs, and more. */
uint64_t output_memory_bytes(uint64_t lines)
{
	return lines * 64 + PACER_THROTTLES * (6248 + 2 * 32) + BESIDE_BYTES;
}

static const char policy[] =
    "clock: exact\n"
    "rules:\n"
    "- name: dns\n"
    "  limits:\n"
    "  - {key: src, gap: 1ms}\n"
    "  - {key: all, uses: 1000, cooldown: 10s, max_cooldown: 11s, threshold: 100}\n"
    "  - {key: all, uses: 50, cooldown: 1s, threshold: 7}\n"
    "  over: pool scrub\n"
    "  ban: 30s\n"
    "bans: 1000\n"
    "pools:\n"
    "- {name: scrub, targets: [veth1, veth2], each: 500, cooldown: 10m, max_cooldown: 11m,"
    " threshold: 50}\n";

/* What `check` says of the policy in `now`, to be freed. */
static char *check_with(bool json, const struct output_sets *sets)
{
	FILE *out = stdout;
	char *text = NULL;
	size_t n;

	stdout = open_memstream(&text, &n);
	assert_non_null(stdout);
	emit_begin(json);
	emit_object("");
	output_check(now.policy, sets, &now.bin, &now.plan);
	emit_close();
	assert_int_equal(emit_end(), EXIT_DONE);
	fclose(stdout);
	stdout = out;
	return text;
}

static char *check_as(bool json)
{
	return check_with(json, &(struct output_sets){.all_bytes = 0});
}

static char *check_text(void)
{
	return check_as(false);
}

static json_t *check_json(void)
{
	char *text = check_as(true);
	json_t *all = json_loads(text, 0, NULL);

	assert_non_null(all);
	free(text);
	return all;
}

static json_int_t number(const json_t *of, const char *name)
{
	const json_t *value = json_object_get(of, name);

	if (!json_is_integer(value))
		fail_msg("%s is no number", name);
	return json_integer_value(value);
}

static void test_json(void **unused)
{
	json_t *all, *throttle, *only_b, *pool, *bans;

	(void)unused;
	assert_int_equal(load(policy), 0);
	all = check_json();
	throttle = json_array_get(json_object_get(all, "limits"), 1);
	assert_string_equal(json_string_value(json_object_get(throttle, "kind")), "throttle");
	assert_int_equal(number(throttle, "uses"), 1000);
	assert_int_equal(number(throttle, "cooldown_ns"), 10 * SECOND);
	assert_int_equal(number(throttle, "max_cooldown_ns"), 11 * SECOND);
	assert_int_equal(number(throttle, "threshold"), 100);
	assert_int_equal(number(throttle, "buckets"), 24);
	assert_int_equal(number(throttle, "buckets_max"), 240);
	assert_int_equal(number(throttle, "lease"), 26);
	assert_int_equal(number(throttle, "lease_ns"), 100 * MS);
	assert_int_equal(number(throttle, "leased_elsewhere"), 25);
	assert_int_equal(number(throttle, "false_denial_free_below"), 125);
	assert_int_equal(number(throttle, "state_bytes"), 6248 + 2 * 32);
	only_b = json_array_get(json_object_get(all, "limits"), 2);
	assert_true(json_is_null(json_object_get(only_b, "max_cooldown_ns")));
	pool = json_array_get(json_object_get(all, "pools"), 0);
	assert_string_equal(json_string_value(json_object_get(pool, "name")), "scrub");
	assert_int_equal(json_array_size(json_object_get(pool, "targets")), 2);
	assert_int_equal(number(pool, "uses"), 500);
	assert_int_equal(number(pool, "threshold"), 25);
	assert_int_equal(number(pool, "effective_cooldown_ns"), 600 * SECOND + RESOLUTION);
	bans = json_object_get(all, "bans");
	assert_int_equal(number(bans, "entries"), 1000);
	assert_int_equal(number(bans, "filter_cells"), 8 * 1024);
	assert_int_equal(number(bans, "state_bytes"), 64 * (1000 + 1024 + 1));
	assert_int_equal(number(json_object_get(bans, "rules_ns"), "dns"), 30 * SECOND);
	assert_int_equal(number(all, "state_used_bytes"),
			 64 * (compile_limiter_lines(&now.bin.rule[0].limiter[0]) + 2025));
	json_decref(all);
	assert_int_equal(load("rules: []\n"), 0);
	all = check_json();
	assert_true(json_is_null(json_object_get(all, "bans")));
	assert_int_equal(json_array_size(json_object_get(all, "pools")), 0);
	json_decref(all);
}

/* As the text has them, and as `top` and `export` do: those that keys share are none of them. */
static void test_records(void **unused)
{
	static const char *const name[] = {"records", "entries"};
	char line[80], *text;
	json_t *all;

	(void)unused;
	assert_int_equal(
	    load("rules: [{name: a, limits: [{key: src, packets: 9, window: 1s}, {key: "
		 "src, rate: 9/s, burst: 9}, {key: all, packets: 9, window: 1s}]}]\n"),
	    0);
	all = check_json();
	text = check_text();
	for (size_t i = 0; i < 3; i++) {
		const struct pacer_limiter *t = &now.bin.rule[0].limiter[i];
		const json_t *limit = json_array_get(json_object_get(all, "limits"), i);

		assert_true(i == 2 ? !t->sets : t->sets > 0);
		assert_int_equal(number(limit, name[i % 2]), 2 * t->sets);
		assert_int_equal(number(limit, "shared"), t->shared);
		snprintf(line, sizeof(line), "    %u %s of ", 2 * t->sets, name[i % 2]);
		assert_int_equal(strstr(text, line) != NULL, i < 2);
	}
	json_decref(all);
	free(text);
}

/* The service runs in another folder than who tries a policy: of what it would not find. */
static void test_files_of_a_folder(void **unused)
{
	static const char *const names[] = {"set near: near.txt is looked for in ",
					    "fleet.cert: c.pem is ", "fleet.key: sub/k.pem is "};
	json_t *all, *warnings;
	char *text;

	(void)unused;
	assert_int_equal(
	    load("sets: [{name: near, file: near.txt}, {name: far, file: /far.txt}, {name: of, of: "
		 "[192.0.2.1]}]\nfleet: {store: 'https://a', name: edge, cert: c.pem, key: "
		 "sub/k.pem, ca: /ca.pem}\nrules: []\n"),
	    0);
	all = check_json();
	text = check_text();
	warnings = json_object_get(all, "warnings");
	assert_int_equal(json_array_size(warnings), ARRAY(names));
	for (size_t i = 0; i < ARRAY(names); i++) {
		const char *said = json_string_value(json_array_get(warnings, i));

		assert_ptr_equal(strstr(said, names[i]), said);
		assert_non_null(strstr(said, "the service runs in /: name the whole path"));
		assert_non_null(strstr(text, said));
	}
	json_decref(all);
	free(text);
}

/* Bans that a fleet shares want a table of them, which a rule that bans makes, or `bans`. */
static void test_a_fleet_without_a_table(void **unused)
{
	static const struct {
		const char *fleet, *rest;
		bool warned;
	} rows[] = {
	    {", bans: yes", "rules: []\n", true},
	    {", bans: yes", "rules: [{name: a, match: {proto: udp}, verdict: drop}]\n", true},
	    {", bans: yes", "rules: []\nbans: 100\n", false},
	    {", bans: yes",
	     "rules: [{name: a, limits: [{key: src, packets: 9, window: 1s}], ban: 1s}]\n", false},
	    {", bans: no", "rules: []\n", false},
	    {"", "rules: []\n", false},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		json_t *all, *warnings;
		char file[300], *text;

		snprintf(file, sizeof(file), "fleet: {store: 'https://a', name: edge%s}\n%s",
			 rows[i].fleet, rows[i].rest);
		assert_int_equal(load(file), 0);
		all = check_json();
		text = check_text();
		warnings = json_object_get(all, "warnings");
		assert_int_equal(strstr(text, "  warning: fleet: bans: yes shares nothing") != NULL,
				 rows[i].warned);
		assert_int_equal(json_array_size(warnings), rows[i].warned);
		if (rows[i].warned)
			assert_non_null(strstr(json_string_value(json_array_get(warnings, 0)),
					       "bans: N makes one"));
		json_decref(all);
		free(text);
	}
}

/* As etcdctl takes them: here that is the name of one host. */
static void test_stores_in_one_string(void **unused)
{
	json_t *all, *warnings;

	(void)unused;
	assert_int_equal(
	    load("fleet: {store: ['http://a:1,http://b:1', 'http://c:1'], name: edge}\n"
		 "rules: []\n"),
	    0);
	all = check_json();
	warnings = json_object_get(all, "warnings");
	assert_int_equal(json_array_size(warnings), 1);
	assert_string_equal(
	    json_string_value(json_array_get(warnings, 0)),
	    "fleet.store: http://a:1,http://b:1 is taken for one address: of several "
	    "write a list, as [https://10.0.0.1:2379, https://10.0.0.2:2379]");
	json_decref(all);
}

/* ---- limits of bytes ---- */

/*
 * Of so many units the longest packet leaves all but one of its own unused, and the packet that
 * fills its last unit least has that part alone.
 */
static const struct {
	const char *limit;
	const char *unit, *steady; /* NULL: nothing is said */
	double sustains;
	bool warned;
	const char *match;
} of_bytes[] = {
    {"bytes: 1513, window: 1s", NULL, "s; no packet of 1514 bytes fits\n", 0, true, ""},
    {"bytes: 1514, window: 1s", NULL,
     "s; a steady flow of packets of 60 to 1514 bytes gets at least 0.1%\n", 1 / 1514. * 10 / 11,
     false, ""},
    {"bytes: 2000, window: 1s", NULL, "gets at least 22.1%\n", 487 / 2000. * 10 / 11, false, ""},
    {"bytes: 20M, window: 10s, slots: 16", NULL, "gets at least 94.1%\n",
     (20e6 - 1513) / 20e6 * 16 / 17, false, ""},
    {"bytes: 2G, window: 1h", NULL, "gets at least 90.9%\n", (2e9 - 1513) / 2e9 * 10 / 11, false,
     ""},
    {"bytes: 8G, window: 1h", "    counted in units of 4 bytes, rounded up for each packet\n",
     "m, so counted; a steady flow of packets of 60 to 1514 bytes gets at least 86.6%\n",
     61 / 64. * (2e9 - 378) / 2e9 * 10 / 11, false, ""},
    {"bytes: 1T, window: 720h", "    counted in units of 512 bytes, rounded up for each packet\n",
     "d, so counted; a steady flow of packets of 60 to 1514 bytes gets at least 10.7%\n",
     60 / 512. * (1953125000. - 2) / 1953125000. * 10 / 11, false, ""},
    {"packets: 1, window: 1s", NULL, "s; a steady flow gets at least 90.9%\n", 10 / 11., false, ""},
    /* whose packets are no longer; opening ones are short, and the others are not counted */
    {"bytes: 1513, window: 1s", NULL, "no packet of 1514 bytes fits\n", 0, false, "len: 0-1513"},
    {"bytes: 1513, window: 1s", NULL, "no packet of 1514 bytes fits\n", 0, true,
     "len: [9, 0-1514]"},
    {"bytes: 1513, window: 1s", NULL, "no packet of 1514 bytes fits\n", 0, false, "payload_len: 9"},
    {"bytes: 100, window: 1s, of: new", NULL, "s; a steady flow gets at least 90.9%\n", 10 / 11.,
     false, ""},
};

/* Else who has a quota of a month for small packets takes a tenth of it for nine. */
static void test_what_a_flow_has_of_bytes(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < ARRAY(of_bytes); i++) {
		json_t *all, *limit, *warnings;
		char file[300], *text;

		snprintf(
		    file, sizeof(file),
		    "clock: exact\nrules: [{name: a, match: {%s}, limits: [{key: src, gap: 1s}, "
		    "{key: src, %s}]}]\n",
		    of_bytes[i].match, of_bytes[i].limit);
		assert_int_equal(load(file), 0);
		all = check_json();
		text = check_text();
		limit = json_array_get(json_object_get(all, "limits"), 1);
		assert_float_equal(json_real_value(json_object_get(limit, "sustains")),
				   of_bytes[i].sustains, 1e-6);
		assert_non_null(strstr(text, of_bytes[i].steady));
		if (of_bytes[i].unit)
			assert_non_null(strstr(text, of_bytes[i].unit));
		else
			assert_null(strstr(text, "in units"));
		warnings = json_object_get(all, "warnings");
		assert_int_equal(json_array_size(warnings), of_bytes[i].warned);
		if (of_bytes[i].warned)
			assert_string_equal(json_string_value(json_array_get(warnings, 0)),
					    "rule a, limit 1: no packet of more than 1513 bytes "
					    "fits, and those of Ethernet have up to 1514: make "
					    "bytes and window larger");
		json_decref(all);
		free(text);
	}
}

/* ---- memory ---- */

static const char *const memory_of[] = {
    policy,
    "rules: []\n",
    "memory: 64M\nclock: coarse\nrules:\n"
    "- {name: a, limits: [{key: src, gap: 1s}, {key: src, packets: 9, window: 1s}]}\n"
    "- {name: b, limits: [{key: src, gap: 1s, rows: 1}, {key: dst, bytes: 1G, window: 1h}]}\n"
    "- {name: c, limits: [{key: all, packets: 9, window: 1s}, {key: src, gap: 1s}], ban: 1s}\n"
    "- {name: d, limits: [{key: flow, gap: 1ms}, {key: flow, packets: 9, window: 800d}]}\n"
    "sample: {of: all, k: 64, window: 1s, snap: 128}\n",
    "rules:\n"
    "- {name: a, limits: [{key: src, rate: 1000/s, burst: 50}, {key: src, gap: 1us}]}\n"
    "- {name: b, limits: [{key: \"src/24,56\", rate: 10Mbit/s, burst: 64K, entries: 1000}]}\n"
    "- {name: c, limits: [{key: all, rate: 3/h, burst: 3}, {key: src, rate: 3/h, burst: 3}]}\n",
    "flows: 5000\nrules: [{name: a, limits: [{key: src, packets: 9, window: 1s, of: new}], ban: "
    "1s}]\n",
};

static void assert_parts(const json_t *all)
{
	const json_t *parts = json_object_get(all, "memory_parts_bytes"), *limit;
	json_int_t sum = 0, of_limits = 0;
	const char *name;
	json_t *part;
	size_t i;

	json_object_foreach((json_t *)parts, name, part) sum += number(parts, name);
	assert_int_equal(sum, number(all, "memory_bytes"));
	assert_int_equal(number(parts, "limits") + number(parts, "bans") + number(parts, "flows") +
			     number(parts, "free"),
			 number(all, "state_bytes"));
	assert_int_equal(number(parts, "limits") + number(parts, "bans") + number(parts, "flows"),
			 number(all, "state_used_bytes"));
	assert_int_equal(number(parts, "rest"), BESIDE_BYTES);
	json_array_foreach(
	    json_object_get(all, "limits"), i,
	    limit) if (strcmp(json_string_value(json_object_get(limit, "kind")), "throttle") != 0)
	    of_limits += number(limit, "state_bytes");
	assert_int_equal(number(parts, "limits"), of_limits);
	if (!json_is_null(json_object_get(all, "sample")))
		assert_int_equal(number(parts, "samples"),
				 number(json_object_get(all, "sample"), "memory_bytes"));
	if (!json_is_null(json_object_get(all, "bans")))
		assert_int_equal(number(parts, "bans"),
				 number(json_object_get(all, "bans"), "state_bytes"));
	assert_int_equal(number(parts, "flows"),
			 json_is_null(json_object_get(all, "flows")) ? 0 : 5000 * 64);
}

/* The number of the first line of memory is the sum of the numbers of the lines that follow. */
static void assert_text_adds_up(const char *text)
{
	const char *at = strstr(text, "memory    ");
	uint64_t all, sum = 0, part;
	int lines = 0;

	assert_non_null(at);
	all = strtoull(at + 10, NULL, 10);
	for (at = strchr(at, '\n') + 1; *at == ' '; at = strchr(at, '\n') + 1, lines++) {
		assert_int_equal(sscanf(at, " %" SCNu64, &part), 1);
		sum += part;
	}
	assert_true(lines > 2 && all > 0);
	assert_int_equal(sum, all);
}

static void test_memory_adds_up(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < ARRAY(memory_of); i++) {
		json_t *all;
		char *text;

		assert_int_equal(load(memory_of[i]), 0);
		all = check_json();
		assert_parts(all);
		json_decref(all);
		text = check_text();
		assert_text_adds_up(text);
		free(text);
	}
}

/* A rate's lines, and its fields. */
static void test_rate(void **unused)
{
	static const char limits[] = "{key: src, rate: 10Mbit/s, burst: 64k, entries: 4000}, "
				     "{key: all, rate: 6000/m, burst: 1}";
	json_t *all, *one;
	char said[200];
	char *text;

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", limits)), 0);
	all = check_json();
	one = json_array_get(json_object_get(all, "limits"), 0);
	assert_string_equal(json_string_value(json_object_get(one, "kind")), "rate");
	assert_string_equal(json_string_value(json_object_get(one, "rate")), "10Mbit/s");
	assert_string_equal(json_string_value(json_object_get(one, "unit")), "bytes");
	assert_int_equal(number(one, "amount"), 10000000);
	assert_int_equal(number(one, "per_ns"), 8 * SECOND);
	assert_int_equal(number(one, "burst"), 64000);
	assert_int_equal(number(one, "effective_burst_ns"), 51200000);
	assert_true(number(one, "entries") >= 4000);
	assert_int_equal(number(one, "state_bytes"),
			 64 * ((number(one, "entries") + number(one, "shared") + 3) / 4));
	one = json_array_get(json_object_get(all, "limits"), 1);
	assert_string_equal(json_string_value(json_object_get(one, "unit")), "packets");
	assert_int_equal(number(one, "entries"), 0);
	assert_int_equal(number(one, "shared"), 1);
	assert_int_equal(number(one, "state_bytes"), 64);
	json_decref(all);
	text = check_text();
	assert_non_null(
	    strstr(text, "    never more than 64000 bytes, and 10Mbit/s, in any time\n    40"));
	snprintf(
	    said, sizeof(said),
	    "\n    %u entries of 16 bytes: exact for that many sources less collisions; beyond, "
	    "the rest share %u\n",
	    2 * now.bin.rule[0].limiter[0].sets, now.bin.rule[0].limiter[0].shared);
	assert_non_null(strstr(text, said));
	assert_non_null(strstr(text, "    never more than 1 packet, and 6K/m, in any time\n"));
	free(text);
	assert_int_equal(load(rule_of("clock: coarse", "{key: src, rate: 1/s, burst: 2}")), 0);
	all = check_json();
	one = json_array_get(json_object_get(all, "limits"), 0);
	assert_int_equal(number(one, "effective_burst_ns"), 2 * SECOND - RESOLUTION);
	json_decref(all);
}

/* ---- silence ---- */

static bool is_idle(const struct pacer_limiter *t, uint64_t silent_ns, uint64_t since_head_ns)
{
	struct pacer_entry head = {.head_ns = SECOND};

	return pacer_record_idle(t, &head, SECOND + since_head_ns + silent_ns);
}

/* An admission is at the slot's beginning or at its end: what is said holds of both. */
static void test_silence(void **unused)
{
	static const char limits[] = "{key: src, packets: 9, window: 1s}, {key: src, gap: 1ms}";
	const struct pacer_limiter *t;
	json_t *all, *window;
	uint64_t kept, after;
	char *text;

	(void)unused;
	assert_int_equal(load(rule_of("clock: exact", limits)), 0);
	t = &now.bin.rule[0].limiter[0];
	all = check_json();
	window = json_array_get(json_object_get(all, "limits"), 1); /* of a limit, behind the gap */
	assert_string_equal(json_string_value(json_object_get(window, "kind")), "window");
	kept = number(window, "kept_ns");
	after = number(window, "newcomer_after_ns");
	json_decref(all);
	assert_int_equal(after, 1350 * MS);
	assert_int_equal(kept, 1250 * MS);
	assert_false(is_idle(t, kept, t->window.slot_ns - 1));
	assert_true(is_idle(t, kept + 1, t->window.slot_ns - 1));
	assert_false(is_idle(t, after - 1, 0));
	assert_true(is_idle(t, after, 0));
	text = check_text();
	assert_non_null(strstr(text, "a key silent for longer than 1350ms is a newcomer again: its "
				     "record is its own for 1250ms after its last admitted"));
	free(text);
	assert_int_equal(load(rule_of("clock: coarse", limits)), 0);
	text = check_text();
	assert_non_null(
	    strstr(text, "silent for longer than 1.3584s is")); /* slots 400 us longer */
	free(text);
	assert_int_equal(load(rule_of("", "{key: all, packets: 9, window: 1s}")), 0);
	text = check_text();
	assert_null(strstr(text, "newcomer"));
	free(text);
}

/* A gap in units is said to be prolonged, one in a sketch of its own is not. */
static void test_gap_more(void **unused)
{
	static const struct {
		const char *gap, *said;
		uint64_t more_ns;
	} row[] = {
	    {"10s", "(kept as 10s, and for up to 536.870911ms more)", (1 << 29) - 1},
	    {"1ms", "(kept as 1ms)\n", 0},
	};
	char limits[128];

	(void)unused;
	for (size_t i = 0; i < ARRAY(row); i++) {
		json_t *all, *gap;
		char *text;

		snprintf(limits, sizeof(limits),
			 "{key: src, packets: 9, window: 800d}, {key: src, gap: %s}", row[i].gap);
		assert_int_equal(load(rule_of("clock: exact", limits)), 0);
		text = check_text();
		assert_non_null(strstr(text, row[i].said));
		free(text);
		all = check_json();
		gap =
		    json_array_get(json_object_get(all, "limits"), i); /* behind the other limit */
		assert_int_equal(number(gap, "prolonged_by_ns"), row[i].more_ns);
		json_decref(all);
	}
}

/* A coarse clock makes a gap longer, and so fewer packets of all keys can pass. */
static void test_gap_of_a_coarse_clock(void **unused)
{
	static const char *const rows[] = {" cells, 2 a key;", " cells, 1 a key;"};
	const uint64_t kept_ns = 10 * SECOND + RESOLUTION;

	(void)unused;
	for (int of_all = 0; of_all < 2; of_all++) {
		json_t *all, *gap;
		double most;
		char *text;

		assert_int_equal(
		    load(rule_of("", of_all ? "{key: all, gap: 10s}" : "{key: src, gap: 10s}")), 0);
		text = check_text();
		assert_non_null(strstr(text, rows[of_all]));
		free(text);
		all = check_json();
		gap = json_array_get(json_object_get(all, "limits"), 0);
		most = (double)number(gap, "cells") * 1e9 / (double)kept_ns;
		assert_int_equal(number(gap, "gap_ns"), 10 * SECOND);
		assert_int_equal(number(gap, "effective_gap_ns"), kept_ns);
		assert_true(fabs(json_real_value(json_object_get(gap, "ceiling_pps")) / most - 1) <
			    1e-5);
		json_decref(all);
	}
}

/* What is said of a key's silence has the clock's resolution on either side. */
static void test_silence_by_a_coarse_clock(void **unused)
{
	const char *text = "{key: src, packets: 9, window: 1s}";
	const struct pacer_limiter *t = &now.bin.rule[0].limiter[0];
	json_t *all, *window;

	(void)unused;
	assert_int_equal(load(rule_of("", text)), 0);
	all = check_json();
	window = json_array_get(json_object_get(all, "limits"), 0);
	assert_int_equal(number(window, "newcomer_after_ns"), t->idle_ns + RESOLUTION);
	assert_int_equal(number(window, "kept_ns"), t->idle_ns - t->window.slot_ns - RESOLUTION);
	json_decref(all);
}

/* One use is not "1 uses". */
static void test_one_use(void **unused)
{
	char *text;

	(void)unused;
	assert_int_equal(load(rule_of("", "{key: all, uses: 3, cooldown: 1s, threshold: 1}")), 0);
	text = check_text();
	assert_non_null(strstr(text, "denied wrongly only while fewer than 1 use is free\n"));
	free(text);
	assert_int_equal(load(rule_of("", "{key: all, uses: 9, cooldown: 1s, threshold: 2}")), 0);
	text = check_text();
	assert_non_null(strstr(text, "denied wrongly only while fewer than 2 uses are free\n"));
	free(text);
}

/* What a fleet adds: who has how much of a limit, and when. */
static void test_fleet(void **unused)
{
	static const char shared[] =
	    "fleet: {store: 'http://a', name: edge, cut_off: local}\n"
	    "rules:\n"
	    "- name: dns\n"
	    "  limits:\n"
	    "  - {key: src, packets: 5000, window: 1s, fleet: yes}\n"
	    "  - {key: all, uses: 3, cooldown: 1s, threshold: 1, fleet: yes}\n"
	    "  - {key: src, gap: 1ms}\n";
	json_t *all, *window, *few, *gap;
	char *text;

	(void)unused;
	assert_int_equal(load(shared), 0);
	all = check_json();
	window = json_array_get(json_object_get(all, "limits"), 0);
	gap = json_array_get(json_object_get(all, "limits"), 1); /* those of one key come first */
	few = json_array_get(json_object_get(all, "limits"), 2);
	assert_string_equal(json_string_value(json_object_get(window, "fleet")), "edge");
	assert_string_equal(json_string_value(json_object_get(window, "cut_off")), "local");
	assert_int_equal(number(window, "fleet_hosts_max"), 1024);
	assert_int_equal(number(few, "fleet_hosts_max"), 3);
	assert_in_range(number(window, "fleet_moves_ns"), SECOND, 2 * SECOND);
	assert_true(json_is_false(json_object_get(window, "fleet_keys_by_demand")));
	assert_true(json_is_null(json_object_get(gap, "fleet")));
	json_decref(all);
	text = check_text();
	assert_non_null(strstr(text, "one limit of all hosts of fleet edge: a host of n has the "
				     "nth part of it at least\n"));
	assert_non_null(strstr(text, "divided among 3 hosts at most: one more has none of it\n"));
	assert_non_null(strstr(text, "a host that cannot reach the store keeps a sixteenth"));
	assert_non_null(strstr(text, "nothing is sampled: write sample\n"));
	free(text);
}

/* Among how many hosts each has enough for a packet, and whether a reserve has. */
static void test_fleet_parts(void **unused)
{
	static const struct {
		const char *limit;
		uint64_t hosts;
		const char *text;
		bool denies;
	} rows[] = {
	    {"{key: all, rate: 100/s, burst: 3, fleet: yes}", 2,
	     "divided among 2 hosts at most: of one more, none has enough of its burst for a "
	     "packet\n",
	     true},
	    {"{key: all, rate: 100/s, burst: 18, fleet: yes}", 17,
	     "divided among 17 hosts at most: of one more, none has enough of its burst for a "
	     "packet\n",
	     false},
	    {"{key: all, rate: 9k/s, burst: 9000, fleet: yes}", 1024, NULL, false},
	    {"{key: all, bytes: 4000, window: 1s, fleet: yes}", 2,
	     "divided among 2 hosts at most: of one more, none has enough for a packet of 1514 "
	     "bytes\n",
	     true},
	    {"{key: all, bytes: 4M, window: 1s, fleet: yes}", 1024, NULL, false},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		json_t *all;
		char *text;

		assert_int_equal(load(rule_of("fleet: {store: 'http://a', name: f, cut_off: "
					      "local}\n",
					      rows[i].limit)),
				 0);
		all = check_json();
		assert_int_equal(
		    number(json_array_get(json_object_get(all, "limits"), 0), "fleet_hosts_max"),
		    rows[i].hosts);
		json_decref(all);
		text = check_text();
		if (rows[i].text)
			assert_non_null(strstr(text, rows[i].text));
		else
			assert_null(strstr(text, "hosts at most"));
		assert_int_equal(strstr(text,
					"keeps a sixteenth of it at most, which is less than a "
					"packet: it denies\n") != NULL,
				 rows[i].denies);
		free(text);
	}
}

/* Of which keys a fleet cannot know how much comes to each host, and why. */
static void test_equal_parts(void **unused)
{
	static const struct {
		const char *limit, *hidden;
	} rows[] = {
	    {"{key: src, packets: 50, window: 1s, of: new, fleet: yes}",
	     "equal part of each key: samples do not show which packets open a flow\n"},
	    {"{key: src+ttl, packets: 50, window: 1s, fleet: yes}",
	     "equal part of each key: samples do not show the TTL\n"},
	    {"{key: src, packets: 50, window: 1s, fleet: yes}", NULL},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char policy[512], *text;
		json_t *all, *limit;

		snprintf(policy, sizeof(policy),
			 "fleet: {store: 'http://a', name: edge}\n"
			 "sample: {of: all, k: 64, window: 10s}\n"
			 "rules:\n- name: dns\n  match: {proto: tcp}\n  limits:\n  - %s\n",
			 rows[i].limit);
		assert_int_equal(load(policy), 0);
		all = check_json();
		limit = json_array_get(json_object_get(all, "limits"), 0);
		assert_int_equal(json_is_false(json_object_get(limit, "fleet_keys_by_demand")),
				 rows[i].hidden != NULL);
		json_decref(all);
		text = check_text();
		assert_non_null(strstr(text, rows[i].hidden ? rows[i].hidden
							    : "up to 8 keys of which more comes"));
		free(text);
	}
}

/* Sets with values that keys have, of which two have the same hash; a rule whose verdict is a pool.
 */
static void test_sets_and_verdicts(void **unused)
{
	static char path[] = "/tmp/xdp-pacer-test.XXXXXX";
	static const char lines[] =
	    "net,who\n192.0.2.0/25,AS25104\n192.0.2.128/25,AS77930\n198.51.100.0/24,XY\n";
	struct policy_error error = {0};
	struct set_texts texts;
	struct output_sets sets;
	char policy[1024], *text;
	json_t *all, *in;
	int fd = mkstemp(path);

	(void)unused;
	assert_int_equal(write(fd, lines, strlen(lines)), strlen(lines));
	close(fd);
	snprintf(
	    policy, sizeof(policy),
	    "sets:\n- {name: geo, file: %s, value: 2}\n- {name: ok, of: [192.0.2.1]}\n"
	    "fleet: {store: 'http://a', name: edge}\n"
	    "rules:\n"
	    "- {name: scrubbed, match: {proto: icmp}, verdict: pool scrub}\n"
	    "- {name: a, match: {src: '@ok'}, limits: [{key: src, gap: 1ms}], ban: 30s}\n"
	    "- {name: b, limits: [{key: 'value(geo, src)', packets: 5000, window: 1s, fleet: "
	    "yes}], ban: 1h}\n"
	    "bans: 1000\n"
	    "pools:\n"
	    "- {name: scrub, targets: [veth1, veth2], each: 500, cooldown: 10m, threshold: 50}\n",
	    path);
	assert_int_equal(load(policy), 0);
	assert_int_equal(set_texts_read(now.policy, &texts, &error), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(output_sets(now.policy, &texts, &sets, &error), 0);
	text = check_with(false, &sets);
	assert_non_null(strstr(text, "samples do not show values of sets\n"));
	assert_non_null(strstr(text, "scrubbed, without limits: pool scrub\n"));
	assert_non_null(strstr(text, "bans: a for 30s, b for 1h\n"));
	assert_non_null(strstr(text, "set ok: 1 prefixes\n"));
	assert_non_null(strstr(text,
			       "    3 values that keys have; what is in no prefix has the "
			       "value none\n"
			       "    AS25104 and AS77930 of set geo count together: their names "
			       "have the same hash\n"));
	free(text);
	text = check_with(true, &sets);
	all = json_loads(text, 0, NULL);
	free(text);
	assert_non_null(all);
	in = json_object_get(all, "sets");
	assert_int_equal(json_array_size(in), 2);
	for (size_t i = 0; i < 2; i++)
		assert_string_equal(
		    json_string_value(json_object_get(json_array_get(in, i), "name")),
		    now.policy->set[i].name);
	json_decref(all);
	set_texts_free(&texts);
}

/* More than the machine has: which of the policy's words it is about. */
static void test_more_than_there_is(void **unused)
{
	static const struct {
		const char *policy, *said;
		uint64_t times, set_bytes;
	} rows[] = {
	    {"memory: 1Mi\n", NULL, 1, 0},
	    {"memory: 1Mi\n", "memory: ", 1ull << 40, 0},
	    {"withstand: 1Mpps\n", "withstand: ", 1ull << 40, 0},
	    {"memory: 1Mi\n", "sets: ", 1, 1ull << 60},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct policy_error error = {0};
		char policy[256];

		snprintf(policy, sizeof(policy),
			 "%srules:\n- {name: a, limits: [{key: src, gap: 1ms}]}\n", rows[i].policy);
		assert_int_equal(load(policy), 0);
		assert_int_equal(
		    output_memory_error(now.policy, rows[i].times, rows[i].set_bytes, &error),
		    rows[i].said ? -1 : 0);
		if (rows[i].said) {
			assert_memory_equal(error.text, rows[i].said, strlen(rows[i].said));
			assert_non_null(strstr(error.text, "that this machine has free: "));
		}
	}
}

/* What a list of facts has no room for is left out, and it says so. */
static void test_more_facts_than_there_is_room_for(void **unused)
{
	struct facts facts = {0};

	(void)unused;
	for (uint64_t i = 0; i < FACTS_MAX; i++)
		facts_uint(&facts, "n", i, NULL);
	assert_int_equal(facts.n, FACTS_MAX);
	assert_false(facts.full);
	facts_uint(&facts, "n", FACTS_MAX, NULL);
	assert_int_equal(facts.n, FACTS_MAX);
	assert_true(facts.full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_json),
	    TEST(test_records),
	    TEST(test_files_of_a_folder),
	    TEST(test_a_fleet_without_a_table),
	    TEST(test_stores_in_one_string),
	    TEST(test_what_a_flow_has_of_bytes),
	    TEST(test_memory_adds_up),
	    TEST(test_silence),
	    TEST(test_gap_more),
	    TEST(test_gap_of_a_coarse_clock),
	    TEST(test_silence_by_a_coarse_clock),
	    TEST(test_rate),
	    TEST(test_one_use),
	    TEST(test_fleet),
	    TEST(test_fleet_parts),
	    TEST(test_equal_parts),
	    TEST(test_sets_and_verdicts),
	    TEST(test_more_than_there_is),
	    TEST(test_more_facts_than_there_is_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
