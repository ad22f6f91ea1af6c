/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The text for Prometheus, read back line by line: each family in one piece with its head, each
 * series once, labels that come out as they went in, and values in base units.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/metrics.h"

#define ODD_NAME "a\"b\\c\nd"

static struct reading one, two;
static struct shadow_reading beside;
static char *text;
static size_t len;

static struct policy *parse(const char *yaml)
{
	struct policy_error error = {0};
	struct policy *policy = policy_parse(yaml, strlen(yaml), &error);

	if (!policy)
		fail_msg("%d: %s", error.line, error.text);
	return policy;
}

/* Every counter another number. */
static void count(struct pacer_counters *c, uint64_t from)
{
	for (int r = 0; r < PACER_REASON_COUNT; r++)
		c->by[r] = (struct pacer_count){from + r, 1000 * (from + r)};
	for (int e = 0; e < PACER_EVENT_COUNT; e++)
		c->events[e] = from + 100 + e;
}

static int setup(void **unused)
{
	(void)unused;
	one =
	    (struct reading){.serial = 7, .pending_ns = 1500000000, .monitor = true, .n_tables = 1};
	one.policy = parse("sets: [{name: drop, of: [10.0.0.0/8]}, {name: gold, of: []}]\n"
			   "rules:\n"
			   "- name: dns\n"
			   "  ban: 30s\n"
			   "  limits:\n"
			   "  - {key: src, packets: 300, window: 250ms}\n"
			   "  - {key: 'src/24,56', bytes: 20M, window: 10s}\n"
			   "  - {key: src, gap: 1ms}\n"
			   "  - {key: flow, rate: 10Mbit/s, burst: 64K}\n"
			   "  - {key: dst, rate: 5/m, burst: 50}\n"
			   "  - {key: all, uses: 1000, cooldown: 10s}\n"
			   "- name: other\n"
			   "  limits: [{key: src, packets: 5, window: 1s}]\n");
	one.table[0] = (struct reading_table){0, 1, 12, 2000, 3, 1000};
	one.now_ns = 90000000000;
	one.share[0] = (struct reading_share){0, 1, 5000000, 20000000, 2, 4, 88500000000};
	one.share[1] = (struct reading_share){1, 0, 0, 5, 0, 0, 0};
	one.n_shares = 2;
	one.items = (struct reading_items){true, 12, 34, 56, 7, 8, 0};
	one.set[0] = (struct reading_set){1000000, true, {12, 3456}};
	one.ban_room = 16384;
	one.bans_counted = true;
	one.bans_of_sources = 3;
	one.bans[0] = 4;
	one.bans_of_gone = 2;
	count(&one.none, 100);
	count(&one.rule[0], 200);
	count(&one.rule[1], 18446744073709550000ull);
	beside = (struct shadow_reading){.policy = parse("rules:\n"
							 "- name: tight\n"
							 "  limits: [{key: src, gap: 1s}]\n")};
	for (int c = 0; c < PACER_CHANGE_COUNT; c++)
		for (int r = 0; r < PACER_REASON_COUNT; r++) {
			uint64_t n = 1000 + 100 * (uint64_t)c + (uint64_t)r;

			beside.rule[0].by[c][r] = (struct pacer_count){n, 60 * n};
			beside.none.by[c][r] = (struct pacer_count){n + 50, 60 * n};
		}
	two = (struct reading){.exact = true, .policy = parse("rules: []\n")};
	return 0;
}

static int teardown(void **unused)
{
	(void)unused;
	reading_free(&one);
	reading_free(&two);
	policy_free(beside.policy);
	free(text);
	text = NULL;
	return 0;
}

/* reading.c has it, among what needs a kernel. */
void reading_free(struct reading *f)
{
	policy_free(f->policy);
	f->policy = NULL;
}

static void make(enum metrics_form form, const char *ifname)
{
	const struct metrics_interface at[] = {
	    {.ifname = ifname,
	     .reading = &one,
	     .shadow = &beside,
	     .mode = "native",
	     .read_ns = 1234567},
	    {.ifname = "gone"},
	    {.ifname = "eth1", .reading = &two, .mode = "skb", .dispatcher = true},
	};

	free(text);
	text = metrics_text(form, at, 3, &len);
	assert_non_null(text);
	assert_int_equal(strlen(text), len);
}

static void has(const char *line)
{
	char whole[512];

	snprintf(whole, sizeof(whole), "\n%s\n", line);
	if (!strstr(text, whole))
		fail_msg("no line %s in:\n%s", line, text);
}

static void lacks(const char *part)
{
	if (strstr(text, part))
		fail_msg("%s is in:\n%s", part, text);
}

/* ---- the text as its readers take it ---- */

struct reader {
	char family[64], kind[16], seen[64][64]; /* families that have been */
	size_t n_seen, series;
	bool helped, typed;
};

static void begin_family(struct reader *r, const char *name)
{
	for (size_t i = 0; i < r->n_seen; i++)
		if (!strcmp(r->seen[i], name))
			fail_msg("the family %s comes twice", name);
	assert_true(r->n_seen < 64);
	snprintf(r->seen[r->n_seen++], 64, "%s", name);
	snprintf(r->family, sizeof(r->family), "%s", name);
	r->typed = false;
}

static void read_head(struct reader *r, const char *line, bool open)
{
	char what[8], name[64], rest[256];

	assert_int_equal(sscanf(line, "# %7s %63s %255[^\n]", what, name, rest), 3);
	if (!strcmp(what, "HELP")) {
		begin_family(r, name);
		return;
	}
	assert_string_equal(name, r->family);
	if (!strcmp(what, "TYPE")) {
		assert_false(r->typed);
		r->typed = true;
		snprintf(r->kind, sizeof(r->kind), "%.15s", rest);
		return;
	}
	assert_string_equal(what, "UNIT");
	assert_true(open && r->typed);
	assert_true(strlen(name) > strlen(rest) + 1);
	assert_string_equal(name + strlen(name) - strlen(rest), rest);
}

/* What stands between the braces; returns what is behind them. */
static const char *read_labels(const char *at)
{
	do {
		size_t n = strspn(++at, "abcdefghijklmnopqrstuvwxyz_");

		assert_true(n > 0);
		at += n;
		assert_memory_equal(at, "=\"", 2);
		for (at += 2; *at != '"'; at++) {
			assert_true(*at && *at != '\n');
			if (*at == '\\')
				assert_non_null(strchr("\\\"n", *++at));
		}
		at++;
	} while (*at == ',');
	assert_int_equal(*at, '}');
	return at + 1;
}

static void read_series(struct reader *r, const char *line, bool open)
{
	const char *suffix = "", *value;
	char name[80], *end;

	if (open && !strcmp(r->kind, "counter"))
		suffix = "_total";
	if (open && !strcmp(r->kind, "info"))
		suffix = "_info";
	snprintf(name, sizeof(name), "%s%s", r->family, suffix);
	assert_true(r->typed);
	if (strncmp(line, name, strlen(name)) != 0 || line[strlen(name)] != '{')
		fail_msg("not of the family %s: %.80s", name, line);
	assert_int_equal(!strcmp(r->kind, "counter"),
			 strlen(name) > 6 && !strcmp(name + strlen(name) - 6, "_total"));
	value = read_labels(line + strlen(name));
	assert_int_equal(*value, ' ');
	(void)strtod(value + 1, &end);
	assert_int_equal(*end, '\n');
	assert_true(end > value + 1);
	r->series++;
}

/* The labels of each series are all that tells it from others. */
static void assert_each_once(void)
{
	for (char *a = text; *a; a = strchr(a, '\n') + 1)
		for (char *b = strchr(a, '\n') + 1; *a != '#' && *b; b = strchr(b, '\n') + 1) {
			size_t n = (size_t)(strchr(a, '\n') - a);

			while (a[n - 1] != '}')
				n--;
			if (!strncmp(a, b, n))
				fail_msg("twice: %.*s", (int)n, a);
		}
}

static size_t read_back(enum metrics_form form)
{
	bool open = form == METRICS_OPEN;
	struct reader r = {0};
	char *line;

	for (line = text; *line; line = strchr(line, '\n') + 1) {
		assert_non_null(strchr(line, '\n'));
		if (open && !strcmp(line, "# EOF\n"))
			break;
		if (*line == '#')
			read_head(&r, line, open);
		else
			read_series(&r, line, open);
	}
	assert_int_equal(strcmp(line, "# EOF\n") == 0, open);
	assert_each_once();
	return r.series;
}

/* ---- */

static void test_both_forms_are_whole(void **unused)
{
	size_t plain;

	(void)unused;
	make(METRICS_PLAIN, "eth0");
	plain = read_back(METRICS_PLAIN);
	make(METRICS_OPEN, "eth0");
	assert_int_equal(read_back(METRICS_OPEN), plain);
	make(METRICS_OPEN, ODD_NAME);
	assert_int_equal(read_back(METRICS_OPEN), plain);
}

static void test_shadow(void **unused)
{
	(void)unused;
	make(METRICS_PLAIN, "eth0");
	has("xdp_pacer_shadow{interface=\"eth0\"} 1");
	has("xdp_pacer_shadow{interface=\"eth1\"} 0");
	has("xdp_pacer_shadow_packets_total{interface=\"eth0\",rule=\"tight\",reason=\"admit\","
	    "change=\"none\"} 1000");
	has("xdp_pacer_shadow_packets_total{interface=\"eth0\",rule=\"tight\",reason=\"gap\","
	    "change=\"deny\"} 1107");
	has("xdp_pacer_shadow_bytes_total{interface=\"eth0\",rule=\"tight\",reason=\"gap\","
	    "change=\"admit\"} 72420");
	has("xdp_pacer_shadow_packets_total{interface=\"eth0\",rule=\"\",reason=\"no_rule\","
	    "change=\"admit\"} 1251");
	lacks("xdp_pacer_shadow_packets_total{interface=\"eth1\"");
	lacks("shadow{interface=\"gone\"}");
}

static void test_labels_are_escaped(void **unused)
{
	(void)unused;
	make(METRICS_OPEN, ODD_NAME);
	has("xdp_pacer_up{interface=\"a\\\"b\\\\c\\nd\"} 1");
	make(METRICS_OPEN, "\xff{}");
	has("xdp_pacer_up{interface=\"bytes:\\\\xff{}\"} 1");
	make(METRICS_OPEN, "\xc3\xa4");
	has("xdp_pacer_up{interface=\"\xc3\xa4\"} 1");
	make(METRICS_PLAIN, "\\xff{}"); /* another interface than that of the byte */
	has("xdp_pacer_up{interface=\"\\\\xff{}\"} 1");
	make(METRICS_PLAIN, "\033[31mRED\a");
	has("xdp_pacer_up{interface=\"\033[31mRED\a\"} 1");
	make(METRICS_SEEN, "\033[31mRED\a");
	has("xdp_pacer_up{interface=\"\\\\x1b[31mRED\\\\x07\"} 1");
	has("xdp_pacer_policy_info{interface=\"\\\\x1b[31mRED\\\\x07\",serial=\"7\",clock="
	    "\"coarse\","
	    "attach=\"direct\",attach_mode=\"native\"} 1");
}

static void test_heads(void **unused)
{
	(void)unused;
	make(METRICS_OPEN, "eth0");
	has("# TYPE xdp_pacer_packets counter\n# UNIT xdp_pacer_packets packets");
	has("# TYPE xdp_pacer_policy info");
	make(METRICS_PLAIN, "eth0");
	has("# TYPE xdp_pacer_packets_total counter");
	has("# TYPE xdp_pacer_policy_info gauge");
	lacks("# UNIT");
	assert_string_equal(metrics_type(METRICS_OPEN),
			    "application/openmetrics-text; version=1.0.0; charset=utf-8");
	assert_string_equal(metrics_type(METRICS_PLAIN),
			    "text/plain; version=0.0.4; charset=utf-8");
}

static void test_counters(void **unused)
{
	(void)unused;
	make(METRICS_PLAIN, "eth0");
	has("xdp_pacer_packets_total{interface=\"eth0\",rule=\"dns\",verdict=\"admit\",reason="
	    "\"admit\"} "
	    "200");
	has("xdp_pacer_packets_total{interface=\"eth0\",rule=\"dns\",verdict=\"deny\",reason="
	    "\"window\"}"
	    " 208");
	has("xdp_pacer_bytes_total{interface=\"eth0\",rule=\"dns\",verdict=\"deny\",reason="
	    "\"window\"}"
	    " 208000");
	has("xdp_pacer_packets_total{interface=\"eth0\",rule=\"\",verdict=\"deny\",reason=\"ban\"}"
	    " 111");
	has("xdp_pacer_packets_total{interface=\"eth0\",rule=\"\",verdict=\"pass\",reason=\"no_"
	    "rule\"} "
	    "101");
	has("xdp_pacer_packets_total{interface=\"eth0\",rule=\"\",verdict=\"unparsed\","
	    "reason=\"truncated\"} 104");
	has("xdp_pacer_packets_total{interface=\"eth0\",rule=\"other\",verdict=\"admit\","
	    "reason=\"admit\"} 18446744073709550000");
	has("xdp_pacer_events_total{interface=\"eth0\",rule=\"dns\",event=\"banned\"} 300");
	has("xdp_pacer_events_total{interface=\"eth0\",rule=\"\",event=\"read_in_part\"} 205");
	lacks("rule=\"\",verdict=\"admit\"");
	lacks("rule=\"dns\",verdict=\"pass\"");
	lacks("rule=\"\",event=\"banned\"");
}

static void test_state(void **unused)
{
	(void)unused;
	make(METRICS_PLAIN, "eth0");
	has("xdp_pacer_up{interface=\"gone\"} 0");
	has("xdp_pacer_entries{interface=\"eth0\",rule=\"dns\",limit=\"1\",key=\"src/24,56\"} 12");
	has("xdp_pacer_entries_capacity{interface=\"eth0\",rule=\"dns\",limit=\"1\",key=\"src/"
	    "24,56\"} "
	    "2000");
	has("xdp_pacer_entries_shared{interface=\"eth0\",rule=\"dns\",limit=\"1\",key=\"src/"
	    "24,56\"} 3");
	has("xdp_pacer_fleet_share{interface=\"eth0\",rule=\"dns\",limit=\"1\",key=\"src/24,56\"} "
	    "5000000");
	has("xdp_pacer_fleet_limit{interface=\"eth0\",rule=\"dns\",limit=\"1\",key=\"src/24,56\"} "
	    "20000000");
	has("xdp_pacer_fleet_keys{interface=\"eth0\",rule=\"dns\",limit=\"1\",key=\"src/24,56\"} "
	    "2");
	has("xdp_pacer_fleet_members{interface=\"eth0\",rule=\"dns\",limit=\"1\",key=\"src/"
	    "24,56\"} 4");
	has("xdp_pacer_fleet_answer_age_seconds{interface=\"eth0\",rule=\"dns\",limit=\"1\",key="
	    "\"src/24,56\"} 1.5");
	has("xdp_pacer_fleet_share{interface=\"eth0\",rule=\"other\",limit=\"0\",key=\"src/"
	    "32,64\"} 0");
	lacks("xdp_pacer_fleet_answer_age_seconds{interface=\"eth0\",rule=\"other\"");
	lacks("xdp_pacer_fleet_share{interface=\"eth1\"");
	has("xdp_pacer_fleet_items{interface=\"eth0\"} 12");
	has("xdp_pacer_fleet_items_told_total{interface=\"eth0\"} 34");
	has("xdp_pacer_fleet_items_taken_total{interface=\"eth0\"} 56");
	has("xdp_pacer_fleet_items_late_total{interface=\"eth0\"} 7");
	has("xdp_pacer_fleet_items_left_out_total{interface=\"eth0\"} 8");
	lacks("xdp_pacer_fleet_items{interface=\"eth1\"");
	has("xdp_pacer_set_packets_total{interface=\"eth0\",set=\"drop\"} 12");
	has("xdp_pacer_set_bytes_total{interface=\"eth0\",set=\"drop\"} 3456");
	has("xdp_pacer_set_elements{interface=\"eth0\",set=\"drop\"} 1000000");
	lacks("xdp_pacer_set_packets_total{interface=\"eth0\",set=\"gold\"}"); /* keys alone ask */
	has("xdp_pacer_set_elements{interface=\"eth0\",set=\"gold\"} 0");
	lacks("xdp_pacer_set_packets_total{interface=\"eth1\"");
	has("xdp_pacer_bans{interface=\"eth0\",rule=\"\"} 3");
	has("xdp_pacer_bans{interface=\"eth0\",rule=\"dns\"} 4");
	has("xdp_pacer_bans{interface=\"eth0\",rule=\"?\"} 2");
	has("xdp_pacer_bans_capacity{interface=\"eth0\"} 16384");
	has("xdp_pacer_policy_info{interface=\"eth0\",serial=\"7\",clock=\"coarse\",attach="
	    "\"direct\","
	    "attach_mode=\"native\"} 1");
	has("xdp_pacer_policy_info{interface=\"eth1\",serial=\"0\",clock=\"exact\","
	    "attach=\"dispatcher\",attach_mode=\"skb\"} 1");
	has("xdp_pacer_policy_unconfirmed_seconds{interface=\"eth0\"} 1.5");
	has("xdp_pacer_policy_unconfirmed_seconds{interface=\"eth1\"} 0");
	has("xdp_pacer_monitor{interface=\"eth0\"} 1");
	has("xdp_pacer_monitor{interface=\"eth1\"} 0");
	has("xdp_pacer_scrape_duration_seconds{interface=\"eth0\"} 0.001234567");
	lacks("bans{interface=\"eth0\",rule=\"other\"");
	lacks("bans_capacity{interface=\"eth1\"");
	lacks("monitor{interface=\"gone\"");
	one.bans[1] = 6; /* by hand, of a rule that bans nobody itself */
	make(METRICS_PLAIN, "eth0");
	has("xdp_pacer_bans{interface=\"eth0\",rule=\"other\"} 6");
	one.bans[1] = 0;
	one.bans_counted = false;
	make(METRICS_PLAIN, "eth0");
	lacks("xdp_pacer_bans{");
	has("xdp_pacer_bans_capacity{interface=\"eth0\"} 16384");
}

/* The store may answer the agent after the clock was read: no row may go missing, or say 584 years.
 */
static void test_answered_just_now(void **unused)
{
	(void)unused;
	one.share[0].answered_ns = one.now_ns + 1;
	make(METRICS_PLAIN, "eth0");
	has("xdp_pacer_fleet_answer_age_seconds{interface=\"eth0\",rule=\"dns\",limit=\"1\",key="
	    "\"src/24,56\"} 0");
}

static void limit(const char *name, const char *labels, const char *value)
{
	char line[256];

	snprintf(line, sizeof(line), "xdp_pacer_limit_%s{interface=\"eth0\",rule=\"dns\",%s} %s",
		 name, labels, value);
	has(line);
}

static void test_limits(void **unused)
{
	(void)unused;
	make(METRICS_PLAIN, "eth0");
	limit("packets", "limit=\"0\",key=\"src/32,64\"", "300");
	limit("window_seconds", "limit=\"0\",key=\"src/32,64\"", "0.25");
	limit("bytes", "limit=\"1\",key=\"src/24,56\"", "20000000");
	limit("window_seconds", "limit=\"1\",key=\"src/24,56\"", "10");
	limit("gap_seconds", "limit=\"2\",key=\"src/32,64\"", "0.001");
	limit("rate_bytes_per_second", "limit=\"3\",key=\"flow\"", "1250000");
	limit("burst_bytes", "limit=\"3\",key=\"flow\"", "64000");
	limit("rate_packets_per_second", "limit=\"4\",key=\"dst/32,64\"", "0.0833333333333333");
	limit("burst_packets", "limit=\"4\",key=\"dst/32,64\"", "50");
	limit("uses", "limit=\"5\",key=\"all\"", "1000");
	limit("cooldown_seconds", "limit=\"5\",key=\"all\"", "10");
}

static void test_nothing(void **unused)
{
	(void)unused;
	free(text);
	text = metrics_text(METRICS_OPEN, NULL, 0, &len);
	assert_non_null(text);
	assert_int_equal(read_back(METRICS_OPEN), 1);
}

static void test_what_is_asked_for(void **unused)
{
	static const struct {
		const char *accept;
		enum metrics_form form;
	} weights[] = {
	    {"text/plain, application/openmetrics-text;q=0", METRICS_PLAIN},
	    {"application/openmetrics-text;version=1.0.0; Q=0.000, text/plain", METRICS_PLAIN},
	    {"application/openmetrics-text;q=0;x=y", METRICS_PLAIN},
	    {"application/openmetrics-text;q=0.1", METRICS_OPEN},
	    {"application/openmetrics-text, text/plain;q=0", METRICS_OPEN},
	    {"application/openmetrics-text;x=q=0", METRICS_OPEN},
	    {"application/openmetrics-text;q=0,application/openmetrics-text;q=1", METRICS_OPEN},
	};

	(void)unused;
	assert_int_equal(metrics_wanted(NULL), METRICS_PLAIN);
	assert_int_equal(metrics_wanted("*/*"), METRICS_PLAIN);
	assert_int_equal(metrics_wanted("text/plain;version=0.0.4"), METRICS_PLAIN);
	assert_int_equal(metrics_wanted("application/openmetrics-text;version=1.0.0,text/plain;"
					"q=0.5"),
			 METRICS_OPEN);
	for (size_t i = 0; i < sizeof(weights) / sizeof(*weights); i++)
		assert_int_equal(metrics_wanted(weights[i].accept), weights[i].form);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_both_forms_are_whole),
	    TEST(test_shadow),
	    TEST(test_labels_are_escaped),
	    TEST(test_heads),
	    TEST(test_counters),
	    TEST(test_state),
	    TEST(test_answered_just_now),
	    TEST(test_limits),
	    TEST(test_nothing),
	    TEST(test_what_is_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
