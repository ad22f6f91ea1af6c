/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * `top` without a terminal and without a kernel: of readings that are made up, what is shown, what
 * it looks like on screens of all sizes, and what keys do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/top.h"

#define SECOND 1000000000ull

static struct top_reading reading;
static struct top_view view;
static struct top_hand hand;
static struct top_picture picture;

/* --- made up -------------------------------------------------------------------------------- */

static const char policy[] = "rules:\n"
			     "- name: dns\n"
			     "  limits: [{key: 'src/32,64', packets: 300, window: 1s}]\n"
			     "- name: web\n"
			     "  limits: [{key: flow, rate: 1000/s, burst: 50}]\n"
			     "- name: dns-tcp\n"
			     "  limits: [{key: dst, gap: 1ms}]\n";

static void count(struct pacer_counters *c, enum pacer_reason r, uint64_t packets)
{
	c->by[r].packets += packets;
	c->by[r].bytes += 125 * packets; /* 1000 bits each */
}

/* The next reading, a second later: so many more packets. */
static void take(uint64_t admitted, uint64_t denied, uint64_t web)
{
	struct reading *f = &reading.reading;

	f->now_ns += SECOND;
	count(&f->rule[0], PACER_ADMIT, admitted);
	count(&f->rule[0], PACER_DENY_WINDOW, denied);
	count(&f->rule[1], PACER_ADMIT, web);
	count(&f->none, PACER_NOT_IP, 2);
	assert_int_equal(trend_add(&reading.trend, f), 0);
	top_view(&reading, &view);
	top_arrange(&view, &hand);
}

static void add_key(enum pacer_verdict verdict, const char *key, const char *source,
		    const char *rule, uint8_t parts, double share)
{
	struct busy_key *k = &reading.busiest.key[reading.busiest.n_keys++];

	*k = (struct busy_key){.verdict = verdict,
			       .parts = parts,
			       .reason =
				   verdict == PACER_VERDICT_ADMIT ? PACER_ADMIT : PACER_DENY_WINDOW,
			       .share = {share, share / 2, share * 1.5}};
	snprintf(k->key, sizeof(k->key), "%s", key);
	snprintf(k->source, sizeof(k->source), "%s", source);
	snprintf(k->rule, sizeof(k->rule), "%s", rule);
}

static void make_keys(void)
{
	reading.busiest = (struct busiest){
	    .sampled = true, .of = SAMPLE_ALL, .window_ns = 60 * SECOND, .n = 12345, .samples = 64};
	add_key(PACER_VERDICT_DENY, "192.0.2.1", "192.0.2.1", "dns", KEY_PART_SRC, 0.4);
	add_key(PACER_VERDICT_DENY, "192.0.2.0/24", "192.0.2.0/24", "dns", KEY_PART_SRC, 0.2);
	add_key(PACER_VERDICT_DENY, "all", "192.0.2.7", "web", 0, 0.1);
	add_key(PACER_VERDICT_DENY, "198.51.100.1", "192.0.2.8", "dns-tcp", KEY_PART_DST, 0.05);
	add_key(PACER_VERDICT_DENY, "192.0.2.9", "192.0.2.9", "", KEY_PART_SRC, 0.05);
	add_key(PACER_VERDICT_ADMIT, "192.0.2.5>198.51.100.1 udp 4000 53", "192.0.2.5", "web",
		KEY_FLOW.parts, 0.04);
}

static int begin(void **unused)
{
	struct policy_error error = {0};

	(void)unused;
	snprintf(reading.ifname, sizeof(reading.ifname), "eth0");
	reading.paced = true;
	reading.attach_mode = "native";
	reading.reading.serial = 7;
	reading.reading.control_id = 1;
	reading.reading.now_ns = 100 * SECOND;
	reading.reading.policy = policy_parse(policy, strlen(policy), &error);
	if (!reading.reading.policy)
		fail_msg("%s", error.text);
	reading.reading.table[0] = (struct reading_table){0, 0, 500, 1000, 3, 100};
	reading.reading.table[1] = (struct reading_table){1, 0, 1, 3000, 0, 300};
	reading.reading.n_tables = 2;
	reading.reading.ban_room = 1000;
	reading.reading.bans_counted = true;
	reading.reading.bans_of_sources = 2;
	reading.reading.bans[0] = 5;
	make_keys();
	take(0, 0, 0);
	take(1000, 500, 40);
	return 0;
}

static int end(void **unused)
{
	(void)unused;
	policy_free(reading.reading.policy);
	trend_free(&reading.trend);
	free(picture.cell);
	memset(&reading, 0, sizeof(reading));
	memset(&hand, 0, sizeof(hand));
	memset(&view, 0, sizeof(view));
	picture = (struct top_picture){0};
	return 0;
}

/* Just as many cells as it has: what is drawn beside them is found by the sanitizer. */
static void draw(int rows, int columns)
{
	free(picture.cell);
	picture = (struct top_picture){.rows = rows, .columns = columns, .blocks = false};
	picture.cell = calloc((size_t)rows * (size_t)columns, sizeof(*picture.cell));
	assert_non_null(picture.cell);
	top_draw(&view, &hand, false, &picture);
}

/* A row of the picture without blanks at its end; 0 is the first, -1 the last. */
static const char *row(int at)
{
	static char text[TOP_COLUMNS_MAX + 1];
	int n = picture.columns;
	const struct top_cell *cell = &picture.cell[(at < 0 ? at + picture.rows : at) * n];

	while (n && cell[n - 1].character == ' ')
		n--;
	for (int i = 0; i < n; i++)
		text[i] = (char)cell[i].character;
	text[n] = 0;
	return text;
}

static int row_with(const char *text)
{
	for (int i = 0; i < picture.rows; i++)
		if (strstr(row(i), text))
			return i;
	return -1;
}

static enum top_act press(const char *keys)
{
	enum top_act act = TOP_NOTHING;

	for (; *keys; keys++)
		act = top_press(&view, &hand, (unsigned char)*keys, 24);
	return act;
}

/* The words of the command, with blanks between them. */
static const char *command(void)
{
	static char text[1024];

	text[0] = 0;
	for (size_t i = 0; *hand.word[i]; i++) {
		strcat(text, i ? " " : "");
		strcat(text, hand.word[i]);
	}
	return text;
}

static void choose(const char *key)
{
	hand.pane = TOP_KEYS;
	for (size_t i = 0; i < hand.keys; i++)
		if (!strcmp(view.busiest.key[hand.key[i]].key, key)) {
			hand.at[TOP_KEYS] = i;
			hand.chosen = view.busiest.key[hand.key[i]];
			return;
		}
	fail_msg("there is no key %s", key);
}

/* --- what is shown -------------------------------------------------------------------------- */

static void rates_are_of_readings(void **unused)
{
	const struct top_line *dns = &view.line[view.group[1].first];

	(void)unused;
	assert_int_equal(view.minute_ns, 0); /* no more of it was seen than the last step */
	take(2000, 100, 0);
	assert_string_equal(view.group[1].rule, "dns");
	assert_int_equal(view.group[1].n, 3);
	assert_true(dns->known && dns->now_packets == 2100 && dns->now_bits == 2100e3);
	assert_true(dns->minute_packets == 1800);
	assert_int_equal(dns->total, 3600);
	assert_int_equal(dns->steps, 2);
	assert_true(dns->packets[0] == 2100 && dns->packets[1] == 1500);
	assert_string_equal(dns[1].name, "admit");
	assert_string_equal(dns[2].name, "window");
	assert_true(dns[2].now_packets == 100 && dns[2].colour == TOP_DENY);
	assert_true(view.group[1].denied == 100);
	assert_true(view.line[0].now_packets == 2102 && view.line[0].total == 3646);
	assert_int_equal(view.minute_ns, 2 * SECOND);
	assert_string_equal(view.bans, "sources 2, dns 5");
	assert_int_equal(view.banned, 7);
	reading.reading.bans_of_gone = 3;
	take(0, 0, 0);
	assert_string_equal(view.bans, "sources 2, dns 5, rules that are gone 3");
	assert_int_equal(view.banned, 10);
	reading.reading.bans_counted = false;
	take(0, 0, 0);
	assert_string_equal(view.bans, "");
	assert_int_equal(view.banned, 0);
}

/* A minute is one: what came before it is of no rate any more. */
static void the_minute_is_the_last_one(void **unused)
{
	const struct top_line *dns = &view.line[view.group[1].first];

	(void)unused;
	take(6000, 0, 0);
	for (int i = 0; i < 59; i++)
		take(0, 0, 0);
	assert_true(dns->minute_packets == 100 && dns[1].minute_packets == 100);
	assert_int_equal(view.minute_ns, 60 * SECOND);
	take(0, 0, 0);
	assert_true(dns->minute_packets == 0);
	assert_int_equal(dns->total, 7500);
	assert_int_equal(view.minute_ns, 60 * SECOND);
}

/* Of all packets, what was let through unjudged, broken packets with it, and colours of each. */
static void the_whole_has_its_parts(void **unused)
{
	const struct top_line *all = view.line;
	const struct top_group *others;

	(void)unused;
	count(&reading.reading.none, PACER_TRUNCATED, 5);
	take(10, 20, 0);
	assert_string_equal(all[0].name, "(all)");
	assert_string_equal(all[1].name, "admitted");
	assert_string_equal(all[2].name, "denied");
	assert_string_equal(all[3].name, "no limit");
	assert_int_equal(view.group[0].n, 4);
	assert_true(all[0].colour == TOP_PLAIN && all[1].colour == TOP_ADMIT);
	assert_true(all[2].colour == TOP_DENY && all[3].colour == TOP_PASS);
	assert_true(all[1].total == 1050 && all[2].total == 520);
	assert_true(all[3].total == 11 && all[3].now_packets == 7); /* two a reading are no IP */
	others = &view.group[view.n_groups - 1];
	assert_string_equal(view.line[others->first].name, "(no limit)");
	assert_string_equal(view.line[others->first + 1].name, "not_ip");
	assert_true(view.line[others->first + 1].colour == TOP_PASS);
	assert_string_equal(view.line[others->first + 2].name, "truncated");
	assert_true(view.line[others->first + 2].colour == TOP_DENY);
}

static void a_screen_of_80(void **unused)
{
	(void)unused;
	take(2000, 100, 0);
	draw(24, 80);
	assert_string_equal(row(0), "eth0: enforced, serial 7, native");
	assert_string_equal(row(1), "RULE                     NOW               LAST 2s  "
				    "PACKETS A SECOND, BY READING");
	assert_string_equal(row(2), "(all)              2.10 kpps 2.10 Mbit/s 1.82 kpps"
				    "                            *@");
	assert_string_equal(row(6), "dns                2.10 kpps 2.10 Mbit/s 1.80 kpps"
				    "                            *@");
	assert_string_equal(row(8), "  window             100 pps  100 kbit/s   300 pps"
				    "                            @:");
	assert_string_equal(row(9), "web                    0 pps     0 bit/s    20 pps"
				    "                            @");
	assert_string_equal(row(row_with("DENIED")),
			    "DENIED                               RULE         REASON"
			    "                   SHARE");
	assert_string_equal(row(row_with("DENIED") + 1),
			    "192.0.2.1                            dns          window"
			    "            40% (20..60)");
	assert_true(row_with("ADMITTED") > row_with("DENIED"));
	assert_true(row_with("busiest keys of 12,345 packets (all) of the last 1m, by 64 samples, "
			     "at 95%") > 0);
	assert_string_equal(row(-2), "bans: 7 of 1,000: sources 2, dns 5");
	assert_true(row_with("dns.limits[0] src/32,64") > 0);
	assert_non_null(strstr(row(row_with("dns.limits[0]")), "50% of 1,000 3 shared"));
	assert_string_equal(row(-1), "q end  ? help  Tab next  p pause  s sort  f filter  r reasons"
				     "  u bits");
}

static void a_screen_of_200(void **unused)
{
	const char *titles;

	(void)unused;
	draw(50, 200);
	titles = row(1);
	assert_non_null(strstr(titles, "TOTAL"));
	assert_non_null(strstr(titles, "PEAK"));
	assert_int_equal(row_with("DENIED"), row_with("ADMITTED"));
	assert_true(row_with("192.0.2.5>198.51.100.1 udp 4000 53") > 0);
	/* Everything has room. */
	for (size_t i = 0; i < hand.tables; i++)
		assert_true(row_with(view.table[i].name) > 0);
	assert_true(row_with("not_ip") > 0);
}

static void a_screen_of_20_by_5(void **unused)
{
	(void)unused;
	draw(5, 20);
	assert_string_equal(row(0), "eth0: enforced, seri");
	assert_string_equal(row(1), "RULE             NOW");
	assert_string_equal(row(2), "(all)      1.54 kpps");
	assert_string_equal(row(4), "q end  ? help  Tab n");
	press("\t");
	draw(5, 20);
	assert_string_equal(row(1), "DENIED         SHARE");
	assert_string_equal(row(2), "192.0.2.1        40%");
	press("b");
	draw(5, 20);
	assert_string_equal(row(4), "y/n: ban 192.0.2.1 u");
}

/* Whatever its size and mode, nothing is drawn beside it, and a question is seen. */
static void screens_of_all_sizes(void **unused)
{
	static const char *const before[] = {"",  "\t",	 "\t\t",  "?",	      "f",	  "\tb",
					     "s", "pru", "fzz\r", "\tfzz\rj", "\t\tfzz\r"};

	(void)unused;
	for (size_t i = 0; i < sizeof(before) / sizeof(*before); i++) {
		memset(&hand, 0, sizeof(hand));
		top_arrange(&view, &hand);
		press(before[i]);
		for (int rows = 1; rows <= 40; rows++)
			for (int columns = 1; columns <= 210; columns += columns < 24 ? 1 : 31) {
				draw(rows, columns);
				if (hand.mode == TOP_ASKED && rows > 1)
					assert_int_equal(row(-1)[0], 'y');
			}
	}
}

static void a_graph_shows_what_is_not_nothing(void **unused)
{
	const char *graph;

	(void)unused;
	take(0, 0, 0);
	take(1, 0, 100000);
	take(100000, 0, 1);
	draw(24, 80);
	graph = row(6);
	assert_string_equal(graph + strlen(graph) - 4, ". .@"); /* dns: 1500, 0, 1, 100000 */
	graph = row(row_with("web"));
	assert_string_equal(graph + strlen(graph) - 4, ". @."); /* 40, 0, 100000, 1 */
	picture.blocks = true;
	top_draw(&view, &hand, false, &picture);
	assert_int_equal(picture.cell[6 * 80 + 79].character, 0x2587);
	assert_int_equal(picture.cell[6 * 80 + 78].character, 0x2581);
}

static void all_of_it_printed(void **unused)
{
	(void)unused;
	hand.paused = true; /* of no meaning here */
	free(picture.cell);
	picture = (struct top_picture){.rows = top_rows(&view, &hand, 100), .columns = 100};
	picture.cell = calloc((size_t)picture.rows * 100, sizeof(*picture.cell));
	top_draw(&view, &hand, true, &picture);
	assert_string_equal(row(0), "eth0: enforced, serial 7, native");
	for (size_t i = 0; i < hand.keys; i++)
		assert_true(row_with(view.busiest.key[i].key) > 0);
	for (size_t i = 0; i < hand.lines; i++)
		assert_true(row_with(view.line[i].name) > 0);
	assert_string_equal(row(-1), "bans: 7 of 1,000: sources 2, dns 5");
	for (int i = 0; i < picture.rows * picture.columns; i++)
		assert_false(picture.cell[i].chosen);
}

static void what_is_wrong_is_said(void **unused)
{
	(void)unused;
	reading.reading.monitor = true;
	reading.shadowed = true;
	reading.changes[PACER_CHANGE_DENY] = 1234;
	reading.reading.pending_ns = 12 * SECOND;
	hand.paused = true;
	take(0, 0, 0);
	draw(24, 120);
	assert_non_null(strstr(row(0), "monitor"));
	assert_non_null(strstr(row(0), "shadow: deny 1,234, admit 0"));
	reading.shadowed = false;
	assert_non_null(strstr(row(0), " PAUSED NOTHING IS DROPPED ROLLS BACK in 12 s"));
	reading.paced = false;
	policy_explain(&reading.missing, 0, "eth0: has no pacer");
	top_view(&reading, &view);
	draw(24, 80);
	assert_non_null(strstr(row(0), "eth0: has no pacer"));
	assert_true(row_with("dns") > 0); /* what was seen last */
	reading.paced = true;
	reading.busiest = (struct busiest){0};
	top_view(&reading, &view);
	top_arrange(&view, &hand);
	draw(24, 80);
	assert_true(row_with("the policy samples nothing: apply one with sample:") > 0);
	press("w");
	assert_string_equal(hand.said, "there is no key");
}

/* --- what keys do --------------------------------------------------------------------------- */

static const char *rule_at(size_t place)
{
	return view.group[hand.order[place]].rule;
}

static void rules_are_sorted(void **unused)
{
	(void)unused;
	take(10, 5, 5000);
	assert_string_equal(rule_at(1), "dns");
	press("s");
	assert_int_equal(hand.sort, TOP_BY_PACKETS);
	assert_string_equal(rule_at(1), "web");
	assert_string_equal(rule_at(2), "dns");
	press("ss");
	assert_int_equal(hand.sort, TOP_BY_DENIED);
	assert_string_equal(rule_at(1), "dns");
	assert_string_equal(rule_at(2), "web");
	assert_string_equal(rule_at(4), ""); /* of no rule: the last */
	press("s");
	assert_int_equal(hand.sort, TOP_BY_POLICY);
}

static void rules_are_filtered(void **unused)
{
	(void)unused;
	press("f");
	press("DNS%");
	assert_string_equal(hand.filter, "DNS"); /* no rule's name has the last */
	assert_int_equal(hand.groups, 3);	 /* (all), dns, dns-tcp */
	assert_int_equal(hand.keys, 3);
	assert_int_equal(hand.tables, 1);
	draw(24, 80);
	assert_string_equal(row(-1), "rules whose name has: DNS_");
	press("-\r");
	assert_int_equal(hand.mode, TOP_WATCHED);
	assert_int_equal(hand.groups, 2);
	assert_string_equal(rule_at(1), "dns-tcp");
	press("\033");
	assert_int_equal(hand.groups, 5);
	press("fx\177\177\r");
	assert_int_equal(hand.groups, 5);
	hand.at[TOP_RULES] = 4; /* dns, behind (all) and its parts */
	press("\r");
	assert_string_equal(hand.filter, "dns");
	press("rr");
	hand.at[TOP_RULES] = 5;
	press("\r");
	assert_string_equal(hand.filter, "");
}

static void rules_alone_or_with_reasons(void **unused)
{
	size_t lines = hand.lines;

	(void)unused;
	press("r");
	assert_int_equal(hand.lines, 4 + 4); /* (all) keeps its parts */
	press("r");
	assert_int_equal(hand.lines, lines);
	assert_int_equal(press("q"), TOP_QUIT);
}

/* It stays on its key when others come before it. */
static void the_cursor_stays_on_its_key(void **unused)
{
	struct busy_key swap;

	(void)unused;
	press("\t");
	top_press(&view, &hand, TOP_DOWN, 24);
	assert_string_equal(hand.chosen.key, "192.0.2.0/24");
	swap = reading.busiest.key[0];
	reading.busiest.key[0] = reading.busiest.key[1];
	reading.busiest.key[1] = swap;
	take(0, 0, 0);
	assert_int_equal(hand.at[TOP_KEYS], 0);
	assert_int_equal(press("w"), TOP_RUN);
	assert_string_equal(command(), "why eth0 192.0.2.0/24");
	top_press(&view, &hand, TOP_END, 24);
	assert_int_equal(hand.at[TOP_KEYS], 5);
	top_press(&view, &hand, TOP_PAGE_DOWN, 24);
	assert_int_equal(hand.at[TOP_KEYS], 5);
	top_press(&view, &hand, TOP_HOME, 24);
	top_press(&view, &hand, TOP_UP, 24);
	assert_int_equal(hand.at[TOP_KEYS], 0);
	reading.busiest.n_keys = 0;
	take(0, 0, 0);
	assert_int_equal(press("w"), TOP_NOTHING);
}

static void a_ban_is_asked_back(void **unused)
{
	char question[TOP_TEXT];

	(void)unused;
	assert_int_equal(press("b"), TOP_NOTHING); /* none was chosen yet */
	assert_int_equal(hand.pane, TOP_KEYS);
	assert_int_equal(hand.mode, TOP_WATCHED);
	choose("192.0.2.1");
	assert_int_equal(press("b"), TOP_NOTHING);
	top_question(&hand, question, sizeof(question));
	assert_string_equal(question, "y/n: ban 192.0.2.1 under dns for 10m?  +/- how long, r "
				      "whatever the rule");
	assert_int_equal(press("xY\r"), TOP_NOTHING); /* no key but y is a yes */
	assert_int_equal(hand.mode, TOP_ASKED);
	assert_int_equal(press("n"), TOP_NOTHING);
	assert_string_equal(hand.said, "nothing was changed");
	assert_int_equal(press("by"), TOP_RUN);
	assert_string_equal(command(), "ban --for 10m --rule dns eth0 add 192.0.2.1");
	assert_int_equal(hand.mode, TOP_WATCHED);
	assert_int_equal(press("b+r"), TOP_NOTHING);
	top_question(&hand, question, sizeof(question));
	assert_string_equal(question, "y/n: ban 192.0.2.1, whatever the rule, for 1h?  +/- how "
				      "long, r under the rule");
	assert_int_equal(press("y"), TOP_RUN);
	assert_string_equal(command(), "ban --for 1h eth0 add 192.0.2.1");
	assert_int_equal(press("b++++++y"), TOP_RUN);
	assert_string_equal(command(), "ban --rule dns eth0 add 192.0.2.1");
	assert_int_equal(press("b-----y"), TOP_RUN);
	assert_string_equal(command(), "ban --for 1m --rule dns eth0 add 192.0.2.1");
}

/* The list may change between the question and the answer: the key is the one that was asked about.
 */
static void the_answer_is_to_the_question(void **unused)
{
	(void)unused;
	choose("192.0.2.1");
	press("b");
	reading.busiest.key[0] = reading.busiest.key[1];
	take(0, 0, 0);
	assert_int_equal(press("y"), TOP_RUN);
	assert_string_equal(command(), "ban --for 10m --rule dns eth0 add 192.0.2.1");
}

static void a_key_of_each_kind(void **unused)
{
	(void)unused;
	choose("192.0.2.0/24");
	assert_int_equal(press("ay"), TOP_RUN);
	assert_string_equal(command(), "allow --for 10m eth0 add 192.0.2.0/24");
	choose("192.0.2.5>198.51.100.1 udp 4000 53");
	assert_int_equal(press("by"), TOP_RUN);
	assert_string_equal(command(),
			    "ban --for 10m --rule web eth0 add 192.0.2.5>198.51.100.1 udp 4000 53");
	assert_int_equal(press("a++++y"), TOP_RUN);
	assert_string_equal(command(), "allow eth0 add 192.0.2.5");
	choose("all"); /* it is everybody's */
	assert_int_equal(press("by"), TOP_NOTHING);
	choose("all");
	assert_int_equal(press("ay"), TOP_NOTHING);
	assert_int_equal(press("w"), TOP_RUN);
	assert_string_equal(command(), "why eth0 192.0.2.7");
	choose("198.51.100.1");
	assert_int_equal(press("ay"), TOP_NOTHING);
	assert_int_equal(press("bry"), TOP_RUN); /* a destination is banned under its rule alone */
	assert_string_equal(command(), "ban --for 10m --rule dns-tcp eth0 add 198.51.100.1");
	choose("192.0.2.9"); /* that is banned without a rule */
	assert_int_equal(press("bry"), TOP_RUN);
	assert_string_equal(command(), "ban --for 10m eth0 add 192.0.2.9");
	snprintf(view.ifname, sizeof(view.ifname), "-x");
	assert_int_equal(press("w"), TOP_RUN);
	assert_string_equal(command(), "why -- -x 192.0.2.9");
}

static void pages_are_turned(void **unused)
{
	(void)unused;
	press("?");
	assert_int_equal(hand.mode, TOP_PAGED);
	draw(40, 80);
	assert_true(row_with("pause: the picture stays") > 0);
	for (size_t i = 0; i < hand.page_rows; i++)
		assert_true(strlen(hand.page[i]) < 60);
	top_press(&view, &hand, TOP_END, 12);
	assert_int_equal(hand.page_at, hand.page_rows - 10);
	top_press(&view, &hand, TOP_DOWN, 12);
	assert_int_equal(hand.page_at, hand.page_rows - 10);
	top_press(&view, &hand, TOP_PAGE_UP, 12);
	assert_int_equal(hand.page_at, hand.page_rows - 20);
	top_press(&view, &hand, TOP_HOME, 12);
	assert_int_equal(hand.page_at, 0);
	assert_int_equal(press("q"), TOP_NOTHING);
	assert_int_equal(hand.mode, TOP_WATCHED);
	top_page(&hand, "t", "one\033[31m\n\nthree");
	assert_int_equal(hand.page_rows, 3);
	assert_string_equal(hand.page[0], "one\\x1b[31m");
	assert_string_equal(hand.page[2], "three");
}

/* What a policy brings has no rate until it was read twice; what it drops is forgotten. */
static void a_rule_that_has_just_come(void **unused)
{
	static const char other[] = "rules:\n"
				    "- name: new\n"
				    "  limits: [{key: src, gap: 1ms}]\n";
	struct policy_error error = {0};
	struct reading *f = &reading.reading;

	(void)unused;
	policy_free(f->policy);
	f->policy = policy_parse(other, strlen(other), &error);
	assert_non_null(f->policy);
	f->n_tables = 0;
	f->table[0].limit = 0;
	memset(f->rule, 0, sizeof(f->rule));
	take(7, 0, 0);
	assert_string_equal(view.group[1].rule, "new");
	assert_false(view.line[view.group[1].first].known);
	assert_int_equal(view.line[view.group[1].first].steps, 0);
	draw(24, 80);
	assert_string_equal(row(row_with("new")), "new");
	assert_string_equal(row(row_with("new") + 1), "  admit");
	assert_int_equal(row_with("TABLE"), -1); /* it has none */
	take(3, 0, 0);
	assert_true(view.line[view.group[1].first].known);
	assert_true(view.line[view.group[1].first].now_packets == 3);
}

/* As the policy counts its limits: of a ladder each rung has a table, and all are one limit. */
static void a_table_is_of_its_limit(void **unused)
{
	static const char ladder[] = "rules:\n"
				     "- name: dns\n"
				     "  limits:\n"
				     "  - {key: 'src/[32,28],[128,64]', packets: 9, window: 1s, "
				     "wider: x2}\n"
				     "  - {key: dst, gap: 1ms}\n";
	struct policy_error error = {0};
	struct reading *f = &reading.reading;

	(void)unused;
	policy_free(f->policy);
	f->policy = policy_parse(ladder, strlen(ladder), &error);
	assert_non_null(f->policy);
	for (uint32_t i = 0; i < 3; i++)
		f->table[i] = (struct reading_table){0, i, 1, 1000, 0, 100};
	f->n_tables = 3;
	take(0, 0, 0);
	assert_string_equal(view.table[0].name, "dns.limits[0] src/32,128");
	assert_string_equal(view.table[1].name, "dns.limits[0] src/28,64");
	assert_string_equal(view.table[2].name, "dns.limits[1] dst/32,64");
}

/* Of sources that another tool banned no rule is asked: they stand by themselves, in red. */
static void banned_sources_have_no_rule(void **unused)
{
	struct top_line *line;

	(void)unused;
	count(&reading.reading.none, PACER_DENY_BAN, 30);
	take(0, 0, 0);
	line = &view.line[view.group[view.n_groups - 1].first];
	assert_string_equal(line->name, "(banned sources)");
	assert_true(line->total == 30 && line->now_packets == 30 && line->colour == TOP_DENY);
	assert_int_equal(view.group[view.n_groups - 1].n, 1);
	assert_true(view.line[2].total == 530); /* denied, of all */
}

/* A graph has no more columns than it has room for, and the view no more steps. */
static void more_readings_than_a_graph_has(void **unused)
{
	const char *graph;

	(void)unused;
	for (int i = 0; i < TOP_STEPS + 20; i++)
		take(10, 0, i == TOP_STEPS + 19);
	assert_int_equal(view.line[0].steps, TOP_STEPS);
	draw(24, 80);
	graph = row(row_with("web"));
	assert_string_equal(graph + strlen(graph) - 2, " @"); /* nothing but the newest */
	assert_non_null(strstr(row(row_with("dns")), "@@@@@@@@@@"));
	assert_int_equal(strlen(row(row_with("dns"))), 80);
}

/* A share that was estimated beside its bounds is shown within them. */
static void shares_are_within_their_bounds(void **unused)
{
	(void)unused;
	reading.busiest.key[0].share = (struct pooled_value){0.3, 0.35, 0.5};
	reading.busiest.key[1].share = (struct pooled_value){0.3, 0.1, 0.2};
	take(0, 0, 0);
	draw(24, 80);
	assert_non_null(strstr(row(row_with("192.0.2.1 ")), "35% (35..50)"));
	assert_non_null(strstr(row(row_with("192.0.2.0/24")), "20% (10..20)"));
}

/* Values of sets have names of any language. */
static void characters_of_more_bytes(void **unused)
{
	int at;

	(void)unused;
	snprintf(reading.busiest.key[0].key, sizeof(reading.busiest.key[0].key),
		 "value(geo, \xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80)");
	take(0, 0, 0);
	draw(24, 80);
	at = row_with("value(geo, ");
	assert_true(at > 0);
	assert_int_equal(picture.cell[at * 80 + 11].character, 0xfc);
	assert_int_equal(picture.cell[at * 80 + 12].character, 0x20ac);
	assert_int_equal(picture.cell[at * 80 + 13].character, 0x1f600);
	assert_int_equal(picture.cell[at * 80 + 14].character, ')');
	for (int i = 0; i < 6; i++) /* its share is in its column: "20..60)" */
		assert_int_equal(picture.cell[at * 80 + 74 + i].character, "0..60)"[i]);
}

/* What is not known, or not sampled, is said in place of nothing. */
static void what_is_not_known_is_said(void **unused)
{
	(void)unused;
	reading.reading.bans_counted = false;
	reading.reading.table[0].capacity = reading.reading.table[0].used = 0;
	reading.busiest.of = SAMPLE_ADMITTED;
	reading.busiest.key[0] = reading.busiest.key[5]; /* the admitted one */
	reading.busiest.n_keys = 1;
	take(0, 0, 0);
	draw(24, 80);
	assert_true(row_with("bans: room for 1,000, too many to be counted here") > 0);
	assert_non_null(strstr(row(row_with("dns.limits[0]")), "0.0% of 0"));
	assert_true(row_with("the policy does not sample these") == row_with("DENIED") + 1);
	policy_explain(&reading.unsampled, 0, "the sample changes faster than it can be read");
	take(0, 0, 0);
	draw(24, 80);
	assert_true(row_with("the sample changes faster") > 0);
	assert_int_equal(row_with("DENIED"), -1);
	reading.reading.ban_room = 0;
	take(0, 0, 0);
	draw(24, 80);
	assert_true(row_with("bans: none can be made") > 0);
}

/* A picture that is printed is of now, whatever the hand has. */
static void nothing_was_read_yet(void **unused)
{
	(void)unused;
	policy_explain(&reading.missing, 0, "eth0: has no pacer");
	reading.paced = false;
	memset(&view, 0, sizeof(view));
	top_view(&reading, &view);
	top_arrange(&view, &hand);
	assert_int_equal(hand.lines, 0);
	press("\r\t\tjk\r");
	top_press(&view, &hand, TOP_END, 1);
	assert_int_equal(hand.at[TOP_TABLES], 0);
	draw(24, 80);
	assert_string_equal(row(0), "eth0: has no pacer");
	assert_string_equal(row(1), "");
}

/* Keys of one name under two rules are two. */
static void the_same_key_under_two_rules(void **unused)
{
	(void)unused;
	add_key(PACER_VERDICT_DENY, "192.0.2.1", "192.0.2.1", "web", KEY_PART_SRC, 0.01);
	take(0, 0, 0);
	press("\t");
	assert_int_equal(hand.at[TOP_KEYS], 0);
	top_press(&view, &hand, TOP_DOWN, 24);
	top_press(&view, &hand, TOP_UP, 24);
	assert_string_equal(hand.chosen.rule, "dns");
	take(0, 0, 0);
	assert_int_equal(hand.at[TOP_KEYS], 0);
	assert_int_equal(press("\r"), TOP_RUN); /* as w does */
	assert_string_equal(command(), "why eth0 192.0.2.1");
}

static void the_cursor_on_a_small_screen(void **unused)
{
	(void)unused;
	for (int rows = 1; rows < 6; rows++) {
		hand.at[TOP_RULES] = 0;
		top_press(&view, &hand, TOP_PAGE_DOWN, rows);
		assert_int_equal(hand.at[TOP_RULES], rows > 3 ? rows - 2 : 1);
		top_press(&view, &hand, TOP_PAGE_UP, rows);
		assert_int_equal(hand.at[TOP_RULES], 0);
	}
	press("jjk");
	assert_int_equal(hand.at[TOP_RULES], 1);
	top_press(&view, &hand, TOP_END, 24);
	top_press(&view, &hand, TOP_PAGE_UP, 5);
	assert_int_equal(hand.at[TOP_RULES], hand.lines - 1 - 3);
	press("\t\tjjjj"); /* tables */
	assert_int_equal(hand.at[TOP_TABLES], 1);
	press("fw\177zz");
	assert_int_equal(hand.tables, 0);
	assert_int_equal(hand.at[TOP_TABLES], 0); /* and not before the first */
	draw(24, 80);
	assert_true(row_with("bans: 7 of") > 0);
}

static void a_filter_has_the_letters_of_a_name(void **unused)
{
	char long_one[2 * POLICY_NAME_MAX];

	(void)unused;
	press("f_-9 .\303");
	assert_string_equal(hand.filter, "_-9");
	top_press(&view, &hand, TOP_UP, 24);
	assert_string_equal(hand.filter, "_-9");
	press("\033");
	assert_int_equal(hand.mode, TOP_WATCHED);
	assert_string_equal(hand.filter, "");
	memset(long_one, 'a', sizeof(long_one) - 1);
	long_one[sizeof(long_one) - 1] = 0;
	press("/");
	press(long_one);
	assert_int_equal(strlen(hand.filter), POLICY_NAME_MAX - 1);
}

/* Addresses are named without their whole length; of a rule that is gone there is only the source.
 */
static void what_is_asked_of_other_keys(void **unused)
{
	char question[TOP_TEXT];

	(void)unused;
	reading.busiest.n_keys = 0;
	add_key(PACER_VERDICT_DENY, "a", "192.0.2.1/32", "?", KEY_PART_SRC, 0.4);
	add_key(PACER_VERDICT_DENY, "b", "2001:db8::1/128", "dns", 0, 0.3);
	add_key(PACER_VERDICT_DENY, "c", "2001:db8::/64", "dns", KEY_PART_SRC, 0.2);
	take(0, 0, 0);
	choose("a");
	press("b");
	top_question(&hand, question, sizeof(question));
	assert_string_equal(question,
			    "y/n: ban 192.0.2.1, whatever the rule, for 10m?  +/- how long");
	press("++");
	top_question(&hand, question, sizeof(question));
	assert_string_equal(question,
			    "y/n: ban 192.0.2.1, whatever the rule, for 1d?  +/- how long");
	press("+");
	top_question(&hand, question, sizeof(question));
	assert_string_equal(question, "y/n: ban 192.0.2.1, whatever the rule, until it is taken "
				      "back?  +/- how long");
	assert_int_equal(press("y"), TOP_RUN);
	assert_string_equal(command(), "ban eth0 add 192.0.2.1");
	choose("b");
	assert_int_equal(press("w"), TOP_RUN);
	assert_string_equal(command(), "why eth0 2001:db8::1");
	choose("c");
	press("a");
	press("r"); /* of the allow-list there is no rule */
	top_question(&hand, question, sizeof(question));
	assert_string_equal(question, "y/n: allow 2001:db8::/64 for 10m?  +/- how long");
	assert_int_equal(press("q"), TOP_NOTHING);
	assert_string_equal(hand.said, "nothing was changed");
	reading.busiest.key[0].share.value = 1;
	snprintf(reading.busiest.key[0].rule, sizeof(reading.busiest.key[0].rule), "dns-tcp");
	reading.busiest.key[0].parts = KEY_PART_DST;
	take(0, 0, 0);
	choose("a");
	press("br"); /* of a destination there is no source */
	top_question(&hand, question, sizeof(question));
	assert_string_equal(question, "y/n: ban a under dns-tcp for 10m?  +/- how long");
}

/* A text of more lines than a page has is cut; keys that mean nothing there turn nothing. */
static void a_page_too_long(void **unused)
{
	static char text[3 * TOP_PAGE_ROWS];

	(void)unused;
	memset(text, '\n', sizeof(text) - 1);
	top_page(&hand, "t", text);
	assert_int_equal(hand.page_rows, TOP_PAGE_ROWS);
	press("x j");
	assert_int_equal(hand.page_at, 23);
	press("k");
	assert_int_equal(hand.page_at, 22);
	top_press(&view, &hand, TOP_PAGE_UP, 26);
	assert_int_equal(hand.page_at, 0);
	draw(24, 80);
	assert_string_equal(row(-1), "q back  arrows for more");
	top_page(&hand, "t", "one");
	draw(24, 80);
	assert_string_equal(row(-1), "q back");
	press("?");
	assert_int_equal(hand.mode, TOP_WATCHED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(rates_are_of_readings),
	    TEST(the_minute_is_the_last_one),
	    TEST(the_whole_has_its_parts),
	    TEST(a_screen_of_80),
	    TEST(a_screen_of_200),
	    TEST(a_screen_of_20_by_5),
	    TEST(screens_of_all_sizes),
	    TEST(a_graph_shows_what_is_not_nothing),
	    TEST(all_of_it_printed),
	    TEST(what_is_wrong_is_said),
	    TEST(rules_are_sorted),
	    TEST(rules_are_filtered),
	    TEST(rules_alone_or_with_reasons),
	    TEST(the_cursor_stays_on_its_key),
	    TEST(a_ban_is_asked_back),
	    TEST(the_answer_is_to_the_question),
	    TEST(a_key_of_each_kind),
	    TEST(pages_are_turned),
	    TEST(a_rule_that_has_just_come),
	    TEST(a_table_is_of_its_limit),
	    TEST(banned_sources_have_no_rule),
	    TEST(more_readings_than_a_graph_has),
	    TEST(shares_are_within_their_bounds),
	    TEST(characters_of_more_bytes),
	    TEST(what_is_not_known_is_said),
	    TEST(nothing_was_read_yet),
	    TEST(the_same_key_under_two_rules),
	    TEST(the_cursor_on_a_small_screen),
	    TEST(a_filter_has_the_letters_of_a_name),
	    TEST(what_is_asked_of_other_keys),
	    TEST(a_page_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
