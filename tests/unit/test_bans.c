/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bans that people and their tools make, list and lift, in a kernel made of memory: what was banned
 * is listed by the text that it was banned by, and lifted by it; a full table loses none; and where
 * memory runs out, all of it is done, or none.
 */
#include "banning.h"
#include "starved.h"

#include <sys/random.h>

#include "ban.h"
#include "live/ban_enter.h"
#include "live/bans.h"
#include "live/change.h"
#include "live/copies.h"
#include "live/in_shadow.h"
#include "live/trial.h"
#include "parse.h"
#include "short.h"

#define SMALL	"memory: 1M\nclock: exact\n"
#define ENTRIES "window: 1s, entries: 64, packets: 9}"
#define RULE_A	"- name: a\n  limits: [{key: src, " ENTRIES ", {key: 'src/24,56', " ENTRIES "]\n"
#define POLICY	"bans: 64\n" SMALL "rules:\n" RULE_A

static bool no_chance; /* no random numbers */

ssize_t getrandom(void *buf, size_t n, unsigned int flags)
{
	(void)flags;
	memset(buf, 0x5a, n);
	return no_chance ? -1 : (ssize_t)n;
}

static struct {
	char key[4][TALLY_TEXT], rule[4][POLICY_NAME_MAX];
	bool in_force[4];
	size_t n;
} listed;

static void note_ban(const struct ban *ban, void *unused)
{
	(void)unused;
	assert_true(ban->left_ns > 0);
	if (listed.n < ARRAY(listed.key)) {
		snprintf(listed.key[listed.n], TALLY_TEXT, "%s", ban->key);
		snprintf(listed.rule[listed.n], POLICY_NAME_MAX, "%s", ban->rule);
		listed.in_force[listed.n] = ban->in_force;
	}
	listed.n++;
}

static size_t list(void)
{
	struct policy *policy = parse(copies[copies_in_force(&pacer)].text);
	size_t n;

	listed.n = 0;
	n = bans_each(&pacer, policy, note_ban, NULL);
	policy_free(policy);
	assert_int_equal(n, listed.n);
	assert_int_equal(bans_each(&pacer, NULL, NULL, NULL), n);
	return n;
}

static struct bans_done done;

static int add(const char *rule, const char *key)
{
	bool left_out = false;
	const struct ban_wish wish = {.key = key, .for_ns = 60 * SECOND, .left_out = &left_out};
	int result;

	error = (struct policy_error){.line = -1};
	result = bans_add(&pacer, rule, &wish, 1, &done, &error);
	assert_int_equal(left_out, done.left_out);
	return result;
}

static int lift(const char *rule, const char *key)
{
	const struct ban_wish wish = {.key = key};

	error = (struct policy_error){.line = -1};
	return bans_lift(&pacer, rule, &wish, 1, &done, &error);
}

/* --- keys --------------------------------------------------------------------------------------
 */

/* What is written for a limit by this key; what is listed, if that is another text; so many keys.
 */
static const struct {
	const char *limit, *key, *as;
	size_t n;
} keys[] = {
    {"src", "192.0.2.1", NULL, 1},
    {"src", "2001:db8:1:2::/64", NULL, 1},
    {"src", "2001:DB8:1:2:0::/64", "2001:db8:1:2::/64", 1},
    {"src/24,56", "192.0.2.0/24", NULL, 1},
    {"src/24,56", "2001:db8:1:200::/56", NULL, 1},
    {"dst", "198.51.100.7", NULL, 1},
    {"dst", "2001:db8::/64", NULL, 1},
    {"src+dport", "192.0.2.1 53", NULL, 1},
    {"dport", "53", NULL, 2}, /* of either family */
    {"flow", "192.0.2.1>198.51.100.7 udp 4000 53", NULL, 1},
    {"flow", "2001:db8::1>2001:db8::2 tcp 4000 443", NULL, 1},
    {"flow", "2001:db8::1>2001:db8::2 ? fragment 7", NULL, 1},
    {"flow", "2001:db8::1>2001:db8::2 ? ? ?", NULL, 1},
    {"src+proto", "2001:db8::/64 ?", NULL, 1},
    {"src+proto", "2001:db8::/64 0", "2001:db8::/64 ?", 1},
    {"src+proto", "192.0.2.1 0", NULL, 1},
    {"src+proto", "192.0.2.1 17", "192.0.2.1 udp", 1},
    {"src+dst+proto", "2001:db8::/64>2001:db8:1::/64 ?", NULL, 1},
    {"src+dst+proto+vlan", "2001:db8::/64>2001:db8:1::/64 ? vlan 7", NULL, 1},
    {"proto", "?", NULL, 1}, /* of IPv6 alone; so is 0 of IPv4 */
    {"proto", "0", NULL, 1},
    {"proto", "17", "udp", 2},
    {"src+dport", "192.0.2.1 053", "192.0.2.1 53", 1},
};

static void test_keys(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < ARRAY(keys); i++) {
		const char *as = keys[i].as ? keys[i].as : keys[i].key;
		const struct ban_wish both[] = {{.key = as}, {.key = keys[i].key}};

		say_again();
		say("bans: 64\n" SMALL "rules:\n- name: r\n  match: {proto: %s}\n"
		    "  limits: [{key: '%s', " ENTRIES "]\n",
		    strstr(keys[i].key, "tcp") ? "tcp" : "udp", keys[i].limit);
		begin_with(doc.s);
		assert_int_equal(add("r", keys[i].key), 0);
		assert_true(done.done == 1 && !done.left_out);
		if (list() != keys[i].n || strcmp(listed.key[0], as) != 0 ||
		    strcmp(listed.rule[0], "r") != 0)
			fail_msg("%s of %s: %zu, %s of %s", keys[i].key, keys[i].limit, listed.n,
				 listed.key[0], listed.rule[0]);
		assert_int_equal(lift("r", keys[i].key), 0);
		if (done.done != keys[i].n || done.left_out)
			fail_msg("%s of %s: %zu lifted", keys[i].key, keys[i].limit, done.done);
		assert_int_equal(list(), 0);
		assert_int_equal(add("r", as), 0); /* and as it is written, beside that */
		assert_int_equal(bans_lift(&pacer, NULL, both, 2, &done, &error), 0);
		assert_true(done.done == keys[i].n && !done.left_out);
		end(NULL);
	}
}

/* A key of two limits is one of each kind; of two that count alike it is one. */
static void test_key_of_several_limits(void **unused)
{
	(void)unused;
	begin_with("bans: 64\n" SMALL "rules:\n- name: a\n  limits: [{key: src, " ENTRIES
		   ", {key: src, gap: 1ms, entries: 64}, {key: 'src/24,56', " ENTRIES "]\n");
	assert_int_equal(add("a", "192.0.2.1"), 0);
	assert_int_equal(list(), 1);
	assert_int_equal(add("a", "192.0.2.0/24"), 0);
	assert_int_equal(list(), 2);
	assert_int_equal(add("a", "everybody"), BANS_WRONG);
	assert_string_equal(
	    error.text, "everybody is no key of rule a, which counts by src/32,64 and src/24,56: "
			"write it as `status` does, or leave out --rule to ban a source");
	assert_int_equal(add("b", "192.0.2.1"), BANS_WRONG);
	assert_string_equal(error.text, "eth0: its policy has no rule b");
}

/* Keys of several kinds, each in a way that is not how it is listed. */
static void test_keys_in_other_words(void **unused)
{
	static const struct ban_wish wishes[] = {
	    {.key = "2001:DB8::1"}, {.key = "192.0.2.1 17"}, {.key = "192.0.2.1 05300"}};

	(void)unused;
	begin_with("bans: 64\n" SMALL "rules:\n- name: a\n  limits: [{key: src+proto, " ENTRIES
		   ", {key: src+dport, " ENTRIES "]\n");
	assert_int_equal(add("a", "192.0.2.1 udp"), 0);
	assert_int_equal(add("a", "192.0.2.1 5300"), 0);
	assert_int_equal(add(NULL, "2001:db8::1"), 0);
	assert_int_equal(bans_lift(&pacer, NULL, wishes, ARRAY(wishes), &done, &error), 0);
	assert_true(done.done == 3 && !done.left_out);
	assert_int_equal(list(), 0);
}

/* An address is a source's where the rule counts by sources, and then no destination's. */
static void test_key_of_source_and_destination(void **unused)
{
	(void)unused;
	begin_with("bans: 64\n" SMALL "rules:\n- name: a\n  limits: [{key: dst, " ENTRIES
		   ", {key: src, " ENTRIES "]\n");
	assert_int_equal(add("a", "192.0.2.1"), 0);
	assert_int_equal(list(), 1);
}

/* A rule that bans by itself bans what it cannot read whole, too; such a key is lifted by its text.
 */
static void test_key_of_unknown_ports(void **unused)
{
	struct pacer_ban_key key = {0};
	struct ban_tables tables;

	(void)unused;
	begin_with("bans: 64\n" SMALL
		   "rules:\n- name: f\n  ban: 9s\n  limits: [{key: flow, " ENTRIES "]\n");
	for (uint32_t proto = 0; proto < 18; proto += 17) {
		key.rule = copies[0].policy.rule[0].id;
		key.key_id = copies[0].policy.rule[0].limiter[0].key_id;
		key.word[0] = 0xc0000201;
		key.word[1] = 0xc6336407;
		key.word[3] = proto | PACER_META_PART;
		assert_int_equal(ban_tables_open(&pacer, &tables, &error), 0);
		assert_int_equal(ban_enter(&pacer, &tables, 0, &key, kernel_now_ns + SECOND),
				 BAN_ENTERED);
		ban_tables_close(&tables);
		assert_int_equal(list(), 1);
		assert_non_null(strchr(listed.key[0], '?'));
		assert_int_equal(lift(NULL, listed.key[0]), 0);
		assert_int_equal(list(), 0);
	}
}

/* The policy has the rule no more: its bans are still listed, and go with all. */
static void test_rule_that_is_gone(void **unused)
{
	struct policy *policy;

	(void)unused;
	begin_with(POLICY);
	assert_int_equal(add("a", "192.0.2.1"), 0);
	policy = parse(SMALL "rules: []\n");
	listed.n = 0;
	bans_each(&pacer, policy, note_ban, NULL);
	policy_free(policy);
	assert_string_equal(listed.rule[0], "?");
	assert_int_equal(bans_lift(&pacer, NULL, NULL, 0, &done, &error), 0);
	assert_int_equal(done.done, 1);
	assert_int_equal(list(), 0);
}

#define ONE_KEY(name, key, more)                                                            \
	"bans: 64\n" SMALL "rules:\n- name: " name "\n  limits: [{key: '" key "', " ENTRIES \
	"]\n" more

static size_t in_force_of(const char *policy)
{
	size_t n = 0;

	if (policy && change_apply(&pacer, policy, NULL, 0, &plan, &error))
		fail_msg("%s", error.text);
	list();
	for (size_t i = 0; i < listed.n; i++)
		n += listed.in_force[i];
	return n;
}

/*
 * Nobody asks for a ban whose key no limit of its rule has. It is listed all the same: where a
 * limit has the key again before the ban ends, it is asked for.
 */
static void test_bans_that_nobody_asks_for(void **unused)
{
	(void)unused;
	begin_with(ONE_KEY("a", "src/32,64", ""));
	assert_int_equal(add("a", "192.0.2.1"), 0);
	assert_int_equal(add("a", "2001:db8:1:2::/64"), 0);
	assert_int_equal(add(NULL, "192.0.2.7"), 0);
	assert_int_equal(in_force_of(NULL), 3);
	assert_int_equal(in_force_of(ONE_KEY("a", "src/24,56", "")), 3); /* the old one drains */
	kernel_now_ns += 5 * SECOND;
	change_tidy(&pacer);
	assert_int_equal(in_force_of(NULL), 1);
	assert_int_equal(listed.n, 3);
	assert_int_equal(in_force_of(ONE_KEY("a", "src/32,64", "")), 3);
	assert_int_equal(in_force_of(ONE_KEY("b", "src/32,64", "")), 1);
	assert_int_equal(in_force_of(ONE_KEY("a", "src/32,64", "")), 3);
	copies[copies_in_force(&pacer)].policy.rule[0].outside = 0; /* and it bans nobody itself */
	assert_int_equal(in_force_of(NULL), 1);
	assert_int_equal(in_force_of(ONE_KEY("a", "src/32,64", "  ban: 1s\n")), 3);
	copies[copies_in_force(&pacer)].policy.rule[0].outside = 0;
	assert_int_equal(in_force_of(NULL), 3);
	for (size_t r = 0; r < PACER_RULES_MAX; r++) /* and nothing is left of the rule */
		copies[copies_in_force(&pacer)].policy.rule[r].id = 0;
	assert_int_equal(in_force_of(NULL), 1);
	memset(copies[copies_in_force(&pacer)].policy.bans.len4, 0, PACER_BAN_LENGTHS);
	assert_int_equal(in_force_of(NULL), 0);
}

/* --- sources -----------------------------------------------------------------------------------
 */

static void test_wrong_sources(void **unused)
{
	static const char *const wrong[] = {"0.0.0.0/0", "::/0", "192.0.2.1/24", "host", ""};

	(void)unused;
	begin_with(POLICY);
	for (size_t i = 0; i < ARRAY(wrong); i++)
		assert_int_equal(add(NULL, wrong[i]), BANS_WRONG);
	assert_int_equal(list(), 0);
}

/* Of so many lengths and no more, of each family; what is not banned leaves the others. */
static void test_lengths(void **unused)
{
	char text[64];

	(void)unused;
	begin_with(POLICY);
	for (uint32_t i = 0; i <= PACER_BAN_LENGTHS; i++)
		for (int six = 0; six < 2; six++) {
			int expected = i < PACER_BAN_LENGTHS ? 0 : BANS_WRONG;

			snprintf(text, sizeof(text), six ? "2001:db8::/%u" : "192.0.0.0/%u",
				 (six ? 128 : 24) - i);
			assert_int_equal(add(NULL, text), expected);
		}
	assert_non_null(strstr(error.text, "prefixes of 4 other lengths are banned"));
	assert_int_equal(list(), 2 * PACER_BAN_LENGTHS);
	assert_int_equal(lift(NULL, "192.0.0.0/24"), 0);
	assert_int_equal(add(NULL, "192.0.0.0/20"), 0); /* there is room for another one again */
	assert_int_equal(add("a", "192.0.2.1"), 0);	/* a rule's keys have no length */
}

/* Do packets look whether a source of that length is banned, by that copy of the policy? */
static bool is_looked_for(uint32_t copy, uint8_t len)
{
	const struct pacer_policy *p = &copies[copy].policy;

	return p->flags & PACER_SOURCES_BANNED && memchr(p->bans.len4, len, PACER_BAN_LENGTHS);
}

/* Each in turn alone: what is lifted makes room for the next, and in the end none is looked for. */
static void test_lengths_are_looked_for(void **unused)
{
	char text[64];

	(void)unused;
	begin_with(POLICY);
	for (uint8_t len = 32; len > 24; len--) {
		snprintf(text, sizeof(text), "192.0.2.0/%u", len);
		assert_int_equal(add(NULL, text), 0);
		assert_true(is_looked_for(0, len));
		assert_int_equal(lift(NULL, text), 0);
		assert_false(is_looked_for(0, len));
		assert_false(copies[0].policy.flags & PACER_SOURCES_BANNED);
	}
}

/* No packet goes a short way, which looks for no source that is banned, until that is lifted. */
static void test_short_ways(void **unused)
{
	uint32_t shape;

	(void)unused;
	begin_with("bans: 64\n" SMALL "rules:\n- {name: a, limits: [{key: src, " ENTRIES "]}\n");
	pacer_short_arm(&copies[0].policy, control, 0);
	shape = copies[0].policy.shape;
	assert_int_not_equal(shape, PACER_SHORT_NONE);
	assert_int_equal(add(NULL, "192.0.2.1"), 0);
	assert_int_equal(copies[0].policy.shape, PACER_SHORT_NONE);
	assert_int_equal(lift(NULL, "192.0.2.1"), 0);
	assert_int_equal(copies[0].policy.shape, shape);
}

static void test_lifted_twice(void **unused)
{
	const struct ban_wish wishes[] = {
	    {.key = "nobody"}, {.key = "192.0.2.1"}, {.key = "192.0.2.1"}, {.key = "192.0.2.7"}};

	(void)unused;
	begin_with(POLICY);
	assert_int_equal(add(NULL, "192.0.2.1"), 0);
	assert_int_equal(bans_lift(&pacer, NULL, wishes, ARRAY(wishes), &done, &error), 0);
	assert_true(done.done == 1 && done.left_out == 2 && done.which == 0);
}

/* By an end that is given: what lasts longer stays, and counts as one that was not banned. */
static void test_lifted_by_its_end(void **unused)
{
	struct ban_wish wishes[] = {{.key = "192.0.2.1"}, {.key = "192.0.2.2"}};

	(void)unused;
	begin_with(POLICY);
	wishes[0].until_ns = kernel_now_ns + 10 * SECOND;
	assert_int_equal(bans_add(&pacer, NULL, wishes, 2, &done, &error), 0);
	wishes[0].until_ns--;
	wishes[1].until_ns = wishes[0].until_ns;
	assert_int_equal(bans_lift(&pacer, "", wishes, 2, &done, &error), 0);
	assert_true(!done.done && done.left_out == 2);
	assert_int_equal(list(), 2);
	wishes[0].until_ns++;
	assert_int_equal(bans_lift(&pacer, "", wishes, 2, &done, &error), 0);
	assert_true(done.done == 1 && done.left_out == 1 && done.which == 1);
	assert_int_equal(list(), 1);
	wishes[0] = (struct ban_wish){.key = "192.0.2.2"}; /* twice: whichever lets it off */
	assert_int_equal(bans_lift(&pacer, "", wishes, 2, &done, &error), 0);
	assert_true(done.done == 1 && !done.left_out);
	assert_int_equal(list(), 0);
}

/* Its row ends, also where that is kept in its other set, from when it was banned there. */
static void test_lifted_with_its_row(void **unused)
{
	const struct pacer_policy *p;
	struct pacer_table table;
	struct pacer_ban_ask q;

	(void)unused;
	begin_with("bans: 64\n" SMALL "rules:\n- name: a\n  ban: {for: 1s, grow: x2, up_to: 1h, "
		   "forget: 1h}\n  limits: [{key: src, " ENTRIES "]\n");
	p = &copies[0].policy;
	table = (struct pacer_table){pacer.lines, pacer.n_lines};
	q = (struct pacer_ban_ask){.table = &table, .bans = &p->bans, .now_ns = kernel_now_ns};
	q.key = (struct pacer_ban_key){p->rule[0].id, p->rule[0].limiter[0].key_id, {0xc0000201}};
	q.hash = pacer_ban_hash(&q.key, control->secret[p->secret & 1]);
	assert_int_equal(pacer_ban_places(q.bans, q.hash).n, 2 * PACER_BAN_WAYS);
	for (uint32_t set = 0; set < 2; set++) { /* the row is in this one */
		struct pacer_ban_places at = pacer_ban_places(q.bans, q.hash);

		q.now_ns = kernel_now_ns;
		q.note = 3 << PACER_BAN_ROW;
		assert_true(pacer_ban_enter(&pacer.lines[at.set[set]], &q, q.now_ns + SECOND));
		kernel_now_ns += 2 * SECOND;
		q.now_ns = kernel_now_ns;
		q.note = 4 << PACER_BAN_ROW;
		assert_true(pacer_ban_enter(&pacer.lines[at.set[!set] + 1], &q, q.now_ns + SECOND));
		assert_int_equal(lift(NULL, "192.0.2.1"), 0);
		assert_int_equal(done.done, 1);
		assert_int_equal(pacer_ban_row(&q, &p->rule[0]), 0);
	}
}

/* --- a full table ------------------------------------------------------------------------------
 */

/* It is three quarters full before one of these finds no room, and what was banned stays so: a ban
 * may move over to its other set, and none is lost by that. */
static void test_full(void **unused)
{
	char text[64];
	size_t entered = 0, room;

	(void)unused;
	begin_with("bans: 256\n" SMALL "rules:\n" RULE_A);
	room = bans_room(&pacer);
	for (uint32_t i = 0; i < 2 * room; i++) {
		snprintf(text, sizeof(text), "10.%u.%u.1", i >> 8, i & 255);
		assert_int_equal(add(NULL, text), 0);
		entered += done.done;
		if (done.left_out)
			assert_true(4 * entered >= 3 * room);
		assert_int_equal(list(), entered);
	}
	assert_in_range(entered, room - room / 8, room);
	for (uint32_t i = 0; i < 2 * room; i++) {
		snprintf(text, sizeof(text), "10.%u.%u.1", i >> 8, i & 255);
		assert_int_equal(lift(NULL, text), 0);
		entered -= done.done;
		assert_int_equal(list(), entered);
	}
	assert_int_equal(entered, 0);
}

/* What makes room for another keeps what is noted of it. */
static void test_moved_with_their_notes(void **unused)
{
	const uint32_t note = 2u << PACER_BAN_ROW | PACER_BAN_OUTSIDE;
	size_t before = 0, noted = 0;
	char text[64];

	(void)unused;
	begin_with("bans: 64\n" SMALL "rules:\n" RULE_A);
	for (uint32_t i = 0; i < 512; i++) {
		snprintf(text, sizeof(text), "10.1.%u.%u", i >> 8, i & 255);
		assert_int_equal(add(NULL, text), 0);
		for (size_t k = 0; i == 31 && k < bans_room(&pacer); k++)
			pacer.lines[copies[0].policy.bans.base + k].ban_note = note;
		if (i == 31)
			before = list();
	}
	for (size_t k = 0; k < bans_room(&pacer); k++)
		noted += pacer.lines[copies[0].policy.bans.base + k].ban_note == note;
	assert_int_equal(noted, before);
}

/* A port is a key of either family. With one place left, one of both would have room: it is
 * neither. */
static void test_half_a_wish(void **unused)
{
	const struct pacer_bans *bans;
	struct pacer_line was[64];
	size_t all;
	char text[64];

	(void)unused;
	begin_with("bans: 64\n" SMALL "rules:\n- name: a\n  match: {proto: udp}\n"
		   "  limits: [{key: dport, " ENTRIES ", {key: src, " ENTRIES "]\n");
	bans = &copies[0].policy.bans;
	for (uint32_t i = 0; i < 512; i++) {
		snprintf(text, sizeof(text), "10.1.%u.%u", i >> 8, i & 255);
		assert_int_equal(add("a", text), 0);
	}
	for (uint32_t i = 0; i < bans_room(&pacer); i++)
		if (!pacer.lines[bans->base + i].ban_until_ns)
			pacer.lines[bans->base + i].ban_until_ns = PACER_NEVER;
	all = list();
	assert_true(all == bans_room(&pacer) && all == ARRAY(was));
	for (uint32_t i = 0; i < bans_room(&pacer); i++) {
		memcpy(was, &pacer.lines[bans->base], sizeof(was));
		pacer.lines[bans->base + i].ban_until_ns = 0;
		snprintf(text, sizeof(text), "%u", 1000 + i);
		assert_int_equal(add("a", text), 0);
		assert_int_equal(done.left_out, 1);
		assert_int_equal(list(), all - 1);
		memcpy(&pacer.lines[bans->base], was, sizeof(was));
	}
}

/* Where one of a wish's keys was banned already, its end is what it was. */
static void test_half_a_wish_made_longer(void **unused)
{
	const struct ban_wish longer = {.key = "5300", .for_ns = 90 * SECOND};
	const struct pacer_bans *bans;
	uint64_t ends_ns = 0;

	(void)unused;
	begin_with("bans: 64\n" SMALL "rules:\n- name: a\n  match: {proto: udp}\n"
		   "  limits: [{key: dport, " ENTRIES "]\n");
	bans = &copies[0].policy.bans;
	assert_int_equal(add("a", "5300"), 0);
	assert_int_equal(list(), 2);
	for (uint32_t i = 0; i < bans_room(&pacer); i++) { /* no room for the key of IPv6 */
		struct pacer_line *line = &pacer.lines[bans->base + i];

		if (!line->ban_until_ns || line->ban_key_id & PACER_KEY_V6)
			*line = (struct pacer_line){.ban_until_ns = PACER_NEVER, .ban_rule = 7};
		else
			ends_ns = line->ban_until_ns;
	}
	assert_int_equal(bans_add(&pacer, "a", &longer, 1, &done, &error), 0);
	assert_int_equal(done.left_out, 1);
	for (uint32_t i = 0; i < bans_room(&pacer); i++)
		if (pacer.lines[bans->base + i].ban_rule != 7)
			assert_true(pacer.lines[bans->base + i].ban_until_ns == ends_ns);
	assert_true(ends_ns > 0);
}

static void apply_text(const char *text)
{
	if (change_apply(&pacer, text, NULL, 0, &plan, &error))
		fail_msg("%s", error.text);
}

static uint32_t banned_sources(void)
{
	uint32_t n = 0;

	list();
	for (size_t i = 0; i < listed.n && i < ARRAY(listed.rule); i++)
		assert_true(*listed.rule[i] || listed.in_force[i]);
	for (uint32_t i = 0; i < 512; i++) {
		char text[64];

		snprintf(text, sizeof(text), "10.1.%u.%u", i >> 8, i & 255);
		if (!lift(NULL, text))
			n += done.done == 1;
	}
	return n;
}

/* A table of another size that they fill to three quarters has room for all of these. */
static void test_room_in_another_size(void **unused)
{
	char text[64];

	(void)unused;
	for (uint32_t round = 0; round < 40; round++) {
		begin_with("bans: 128\n" SMALL "rules:\n" RULE_A);
		for (uint32_t i = 0; i < 48; i++) {
			snprintf(text, sizeof(text), "10.1.%u.%u", round, i);
			assert_int_equal(add(NULL, text), 0);
		}
		apply_text("bans: 64\n" SMALL "rules:\n" RULE_A);
		assert_int_equal(plan.bans_left_out, 0);
		assert_int_equal(list(), 48);
		if (round < 39)
			end(NULL);
	}
}

#define RULE_B "- name: b\n  match: {proto: tcp}\n  limits: [{key: src, " ENTRIES "]\n"
#define A_BY_PORT                                                                   \
	"- name: a\n  limits: [{key: src, " ENTRIES ", {key: 'src/24,56', " ENTRIES \
	", {key: dport, " ENTRIES "]\n"

/*
 * Those of a rule that is gone, or by a key that no limit of theirs has any more, refuse nobody:
 * they take no room of those that do, and are no loss.
 */
static void test_room_for_those_that_refuse(void **unused)
{
	static const struct {
		const char *none_rule, *none, *rule, *key;
	} rows[] = {
	    {"b", "10.2.0.%u", NULL, "10.1.0.%u"},
	    {"b", "10.2.0.%u", "a", "2001:db8:1:%x::/64"},
	    {"b", "10.2.0.%u", "a", "10.3.%u.0/24"}, /* of its second limit */
	    {"a", "%u", "a", "10.1.0.%u"},	     /* of either family */
	};
	char text[64];

	(void)unused;
	for (size_t row = 0; row < ARRAY(rows); row++) {
		uint32_t n = 0;

		begin_with("bans: 256\n" SMALL "rules:\n" A_BY_PORT RULE_B);
		for (uint32_t i = 1; i <= (row < 3 ? 120 : 60); i++) {
			snprintf(text, sizeof(text), rows[row].none, i);
			assert_int_equal(add(rows[row].none_rule, text), 0);
		}
		for (uint32_t i = 1; i <= 40; i++) {
			snprintf(text, sizeof(text), rows[row].key, i);
			assert_int_equal(add(rows[row].rule, text), 0);
		}
		apply_text("bans: 256\n" SMALL "rules:\n" RULE_A RULE_B);
		kernel_now_ns += 10 * SECOND; /* what drains is over */
		apply_text("bans: 64\n" SMALL "rules:\n" RULE_A);
		assert_int_equal(plan.bans_left_out, 0);
		for (uint32_t i = 1; i <= 40 && rows[row].rule; i++) {
			snprintf(text, sizeof(text), rows[row].key, i);
			n += !lift(rows[row].rule, text) && done.done == 1;
		}
		assert_int_equal(rows[row].rule ? n : banned_sources(), 40);
		if (row + 1 < ARRAY(rows))
			end(NULL);
	}
}

/* While they move to another secret, a ban is found by either, and lasts as long by both. */
static void test_until_while_they_move(void **unused)
{
	const uint32_t address[4] = {0xc0000201};
	const struct pacer_ban_key key = pacer_ban_source(PACER_FAMILY_4, address, 32);
	struct pacer_policy *p;

	(void)unused;
	begin_with(POLICY);
	p = &copies[0].policy;
	assert_int_equal(add(NULL, "192.0.2.1"), 0);
	p->bans.moving = 1;
	for (uint32_t i = 0; i < 2; i++, p->secret ^= 1)
		assert_true(ban_tables_until(&pacer, p, &key, kernel_now_ns) ==
			    kernel_now_ns + 60 * SECOND);
}

/* Before a load on trial nothing was there that could ban. */
static void test_during_the_trial_of_a_load(void **unused)
{
	(void)unused;
	begin_with(POLICY);
	memset(&copies[1], 0, sizeof(copies[1]));
	strcpy(copies[1].text, LOAD_NOTHING);
	copies_put_in_force(&pacer, 0, kernel_now_ns + TRIAL_NS);
	assert_true(load_trial_pending(&pacer));
	assert_int_equal(add(NULL, "192.0.2.1"), 0);
	assert_true(done.done == 1 && !done.before.n);
	assert_int_equal(list(), 1);
	assert_int_equal(lift(NULL, "192.0.2.1"), 0);
	assert_int_equal(done.done, 1);
}

/* An entry that a CPU is writing is not moved; one that has ended gives way. */
static void test_full_of_held_entries(void **unused)
{
	size_t before;
	char text[64];

	(void)unused;
	begin_with("bans: 64\n" SMALL "rules:\n" RULE_A);
	for (uint32_t i = 0; i < 512; i++) {
		snprintf(text, sizeof(text), "10.1.%u.%u", i >> 8, i & 255);
		assert_int_equal(add(NULL, text), 0);
	}
	before = list();
	for (size_t i = 0; i < bans_room(&pacer); i++)
		pacer.lines[copies[0].policy.bans.base + i].ban_lock |= PACER_LOCK_HELD;
	assert_int_equal(add(NULL, "192.0.2.1"), 0);
	assert_int_equal(done.left_out, 1);
	assert_int_equal(list(), before); /* packets go by them, too */
	for (size_t i = 0; i < bans_room(&pacer); i++)
		pacer.lines[copies[0].policy.bans.base + i].ban_lock &= ~PACER_LOCK_HELD;
	assert_int_equal(list(), before);
	kernel_now_ns += 61 * SECOND;
	assert_int_equal(list(), 0);
	assert_int_equal(add(NULL, "192.0.2.1"), 0);
	assert_int_equal(list(), 1);
}

/* --- a trial, and what is not there ------------------------------------------------------------
 */

/* The policy that may come back has the same table. */
static void test_during_a_trial(void **unused)
{
	(void)unused;
	begin_with(POLICY);
	assert_int_equal(change_apply(&pacer, POLICY "# on trial\n", NULL, TRIAL_NS, &plan, &error),
			 0);
	assert_int_equal(add(NULL, "192.0.2.1"), 0);
	assert_int_equal(add("a", "192.0.2.2"), 0);
	assert_int_equal(list(), 2);
	assert_true(is_looked_for(0, 32) && is_looked_for(1, 32));
	assert_int_equal(lift(NULL, "192.0.2.1"), 0);
	assert_int_equal(done.done, 1);
	assert_int_equal(list(), 1);
	assert_false(is_looked_for(0, 32) || is_looked_for(1, 32));
	kernel_now_ns += TRIAL_NS;
	assert_int_equal(copies_in_force(&pacer), 0);
	assert_int_equal(list(), 1);
	assert_string_equal(listed.key[0], "192.0.2.2");
}

/* There is one that comes back, and has no more then than was left of it. */
static void test_during_a_trial_without_a_table(void **unused)
{
	(void)unused;
	begin_with(POLICY);
	assert_int_equal(add(NULL, "192.0.2.1"), 0);
	assert_int_equal(add("a", "192.0.2.2"), 0);
	assert_int_equal(
	    change_apply(&pacer, SMALL "rules:\n" RULE_A, NULL, TRIAL_NS, &plan, &error), 0);
	assert_int_equal(add(NULL, "192.0.2.3"), -1);
	assert_non_null(strstr(error.text, "the policy on trial keeps no table of bans"));
	assert_int_equal(lift(NULL, "192.0.2.1"), 0);
	assert_int_equal(done.done, 1);
	assert_int_equal(list(), 0);
	kernel_now_ns += TRIAL_NS;
	assert_int_equal(copies_in_force(&pacer), 0);
	assert_int_equal(list(), 1);
	assert_string_equal(listed.key[0], "192.0.2.2");
}

static size_t in_force_of(const char *policy);

/* Cut off at once, what is banned is asked for by each policy that has the table. */
static void test_asked_for_as_soon_as_banned(void **unused)
{
	static const uint32_t word[4] = {0xc0000201};

	(void)unused;
	for (int trial = 0; trial < 2; trial++) {
		struct ban_tables tables;
		struct pacer_ban_key source, key;

		begin_with(POLICY);
		if (trial)
			assert_int_equal(change_apply(&pacer, POLICY "# the same table\n", NULL,
						      TRIAL_NS, &plan, &error),
					 0);
		assert_int_equal(ban_tables_open(&pacer, &tables, &error), 0);
		source = pacer_ban_source(PACER_FAMILY_4, word, 32);
		key = (struct pacer_ban_key){copies[0].policy.rule[0].id,
					     copies[0].policy.rule[0].limiter[0].key_id,
					     {0xc0000202}};
		for (uint32_t i = 0; i < 2; i++)
			assert_int_equal(ban_enter(&pacer, &tables, 0, i ? &key : &source,
						   kernel_now_ns + 3600 * SECOND),
					 BAN_ENTERED);
		ban_tables_close(&tables);
		assert_int_equal(in_force_of(NULL), 2);
		kernel_now_ns += TRIAL_NS;
		assert_int_equal(copies_in_force(&pacer), 0);
		assert_int_equal(in_force_of(NULL), 2);
		end(NULL);
	}
}

#define BY(key) "bans: 64\n" SMALL "rules:\n- name: a\n  limits: [{key: " key ", " ENTRIES "]\n"

/* The two policies count by other keys: what is the key of one is said not to be banned under the
 * other. */
static void test_keys_of_one_policy(void **unused)
{
	(void)unused;
	begin_with(BY("src/32,128"));
	assert_int_equal(change_apply(&pacer, BY("dst"), NULL, TRIAL_NS, &plan, &error), 0);
	assert_int_equal(add("a", "192.0.2.1"), 0);
	assert_true(done.done == 1 && done.before.n == 1);
	assert_string_equal(done.before.why.text, "rule a counts by other keys there");
	assert_int_equal(list(), 1);
	assert_int_equal(add(NULL, "192.0.2.2"), 0);
	assert_int_equal(done.before.n, 0);
	kernel_now_ns += TRIAL_NS;
	assert_int_equal(copies_in_force(&pacer), 0);
	kernel_now_ns += 5 * SECOND; /* what the policy on trial counted by drains */
	change_tidy(&pacer);
	assert_int_equal(in_force_of(NULL), 1); /* the source: no destination that nobody named */
}

/* It ends between one look at the clock and the next: the ban is in the table that comes back. */
static void test_as_a_trial_ends(void **unused)
{
	(void)unused;
	for (uint64_t looks = 0; looks < 8; looks++) {
		begin_with(POLICY);
		assert_int_equal(
		    change_apply(&pacer, POLICY "# on trial\n", NULL, TRIAL_NS, &plan, &error), 0);
		kernel_now_ns += TRIAL_NS - looks;
		clock_step_ns = 1;
		assert_int_equal(add(NULL, "192.0.2.1"), 0);
		clock_step_ns = 0;
		kernel_now_ns += looks;
		assert_int_equal(copies_in_force(&pacer), 0);
		assert_int_equal(list(), 1);
		end(NULL);
	}
}

/* The policy before has neither a table nor the rule. */
static void test_trial_of_the_first_bans(void **unused)
{
	(void)unused;
	begin_with(SMALL "rules:\n- name: b\n  limits: [{key: src, " ENTRIES "]\n");
	assert_int_equal(change_apply(&pacer, POLICY, NULL, TRIAL_NS, &plan, &error), 0);
	assert_int_equal(add(NULL, "192.0.2.1"), 0);
	assert_int_equal(done.before.n, 1);
	assert_string_equal(done.before.why.text, "that policy keeps no table of bans");
	assert_int_equal(add("a", "192.0.2.2"), 0); /* a rule that is nobody's there */
	assert_int_equal(done.done, 1);
	assert_int_equal(done.before.n, 0);
	assert_int_equal(list(), 2);
}

/* No line of the policy before is taken for one of bans, as it has none: its rates stand there. */
static void test_lines_of_the_policy_before(void **unused)
{
	static struct pacer_line before[4]; /* where a table of no sets would be */

	(void)unused;
	begin_with(SMALL
		   "rules:\n- name: b\n  limits: [{key: src, rate: 1/h, burst: 1, entries: 64}]\n");
	for (size_t i = 0; i < ARRAY(before); i++) {
		struct pacer_line *line = &pacer.lines[i];

		memset(line, 0, sizeof(*line));
		if (i < 2) /* where an arrival time may be */
			line->ban_until_ns = kernel_now_ns + 3600 * SECOND;
		line->ban_key[0] = (uint32_t)i;
	}
	assert_int_equal(change_apply(&pacer, POLICY, NULL, TRIAL_NS, &plan, &error), 0);
	assert_true(copies[1].policy.bans.base >= ARRAY(before));
	memcpy(before, pacer.lines, sizeof(before));
	for (unsigned int i = 1; i < 20; i++) {
		char text[32];

		snprintf(text, sizeof(text), "192.0.2.%u", i);
		assert_int_equal(add(NULL, text), 0);
		assert_int_equal(done.done, 1);
	}
	assert_memory_equal(pacer.lines, before, sizeof(before));
}

/* Both tables ask for few lengths: none is banned that one of them would not ask for. */
static void test_lengths_during_a_trial(void **unused)
{
	static const char *const first[] = {"192.0.2.1", "198.51.100.0/24", "10.1.0.0/16",
					    "10.2.0.0/31"};

	(void)unused;
	begin_with(POLICY);
	for (size_t i = 0; i < ARRAY(first); i++)
		assert_int_equal(add(NULL, first[i]), 0);
	assert_int_equal(change_apply(&pacer, POLICY "# on trial\n", NULL, TRIAL_NS, &plan, &error),
			 0);
	assert_int_equal(lift(NULL, "10.1.0.0/16"), 0);
	assert_int_equal(add(NULL, "12.0.0.0/8"), 0);
	assert_int_equal(add(NULL, "13.0.0.0/12"), BANS_WRONG);
	kernel_now_ns += TRIAL_NS;
	assert_int_equal(copies_in_force(&pacer), 0);
	assert_int_equal(list(), ARRAY(first));
	assert_true(is_looked_for(0, 32) && is_looked_for(0, 8));
	assert_false(is_looked_for(0, 16));
}

/* Of a policy on trial that has no table: what the one before bans is lifted there. */
static void test_lifted_before_a_trial_without_bans(void **unused)
{
	(void)unused;
	for (int all = 0; all < 2; all++) {
		begin_with(POLICY);
		assert_int_equal(add(NULL, "192.0.2.1"), 0);
		assert_int_equal(
		    change_apply(&pacer, SMALL "rules:\n" RULE_A, NULL, TRIAL_NS, &plan, &error),
		    0);
		assert_int_equal(add(NULL, "192.0.2.2"), -1);
		assert_string_equal(error.text, "eth0: the policy on trial keeps no table of bans: "
						"let it roll back, or confirm it and set bans");
		if (all)
			assert_int_equal(bans_lift(&pacer, NULL, NULL, 0, &done, &error), 0);
		else
			assert_int_equal(lift(NULL, "192.0.2.1"), 0);
		assert_true(done.done == 1 && !done.left_out);
		kernel_now_ns += TRIAL_NS;
		assert_int_equal(copies_in_force(&pacer), 0);
		assert_int_equal(list(), 0);
		end(NULL);
	}
}

/* A rule that the policy before alone has. */
static void test_lifted_of_a_rule_before(void **unused)
{
	(void)unused;
	begin_with(POLICY "- name: z\n  limits: [{key: src, " ENTRIES "]\n");
	assert_int_equal(add("z", "192.0.2.1"), 0);
	assert_int_equal(add("a", "192.0.2.1"), 0);
	assert_int_equal(change_apply(&pacer, POLICY, NULL, TRIAL_NS, &plan, &error), 0);
	assert_int_equal(lift("z", "192.0.2.1"), 0);
	assert_int_equal(done.done, 1);
	kernel_now_ns += TRIAL_NS;
	assert_int_equal(copies_in_force(&pacer), 0);
	assert_int_equal(list(), 1);
	assert_string_equal(listed.rule[0], "a");
}

/* What a rule counts by now goes before what a limit of its last policy does that still drains. */
static void test_not_by_what_drains(void **unused)
{
	(void)unused;
	begin_with("bans: 64\n" SMALL "rules:\n- name: a\n  limits: [{key: src, " ENTRIES "]\n");
	assert_int_equal(change_apply(&pacer,
				      "bans: 64\n" SMALL
				      "rules:\n- name: a\n  limits: [{key: dst, " ENTRIES "]\n",
				      NULL, 0, &plan, &error),
			 0);
	assert_int_equal(copies[copies_in_force(&pacer)].policy.rule[0].n_limiters, 2);
	assert_int_equal(add("a", "192.0.2.1"), 0);
	assert_int_equal(list(), 1);
	for (size_t i = 0; i < pacer.n_lines; i++)
		if (pacer.lines[i].ban_until_ns == kernel_now_ns + 60 * SECOND &&
		    pacer.lines[i].ban_key[0] == 0xc0000201)
			assert_false(compile_key_of(pacer.lines[i].ban_key_id).parts &
				     KEY_PART_SRC);
}

static void test_no_table(void **unused)
{
	static const struct ban_wish of_many_lengths[] = {{.key = "192.0.2.1"},
							  {.key = "192.0.2.0/24"},
							  {.key = "192.0.0.0/16"},
							  {.key = "192.0.0.0/8"},
							  {.key = "192.0.0.0/12"}};

	(void)unused;
	begin_with(SMALL "rules:\n" RULE_A);
	assert_int_equal(
	    bans_add(&pacer, NULL, of_many_lengths, ARRAY(of_many_lengths), &done, &error), -1);
	assert_string_equal(error.text,
			    "eth0: its policy keeps no table of bans: `xdp-pacer set eth0 "
			    "bans=16384` makes one");
}

/* A load that nobody confirmed has no policy that could get one. */
static void test_a_load_that_lapsed(void **unused)
{
	(void)unused;
	begin_with(LOAD_NOTHING);
	assert_int_equal(add(NULL, "192.0.2.1"), -1);
	assert_string_equal(error.text,
			    "eth0: its load was not confirmed in time, so that everything passes: "
			    "`xdp-pacer load eth0 -c POLICY` begins anew, `xdp-pacer unload eth0` "
			    "takes it off");
	assert_int_equal(add("a", "192.0.2.1"), -1); /* nor one that could have the rule */
	assert_non_null(strstr(error.text, "its load was not confirmed in time"));
}

static void test_no_secret(void **unused)
{
	(void)unused;
	begin_with(POLICY);
	control->secret_ready = 0;
	no_chance = true;
	assert_int_equal(add(NULL, "192.0.2.1"), -1);
	no_chance = false;
	assert_string_equal(error.text, "eth0: no random numbers for a secret");
	assert_int_equal(list(), 0);
	assert_int_equal(add(NULL, "192.0.2.1"), 0);
	assert_int_equal(list(), 1);
}

/* Who cannot have the lock changes nothing. */
static void test_no_lock(void **unused)
{
	(void)unused;
	begin_with(POLICY);
	kernel_no_lock = EMFILE;
	assert_int_equal(add(NULL, "192.0.2.1"), -1);
	assert_string_equal(error.text, "/run/xdp-pacer.lock: Too many open files");
	kernel_no_lock = EACCES;
	assert_int_equal(lift(NULL, "192.0.2.1"), -1);
	kernel_no_lock = 0;
	assert_string_equal(error.text,
			    "/run/xdp-pacer.lock: Permission denied: be root, or of the "
			    "group xdp-pacer (docs/rights.md)");
	assert_int_equal(list(), 0);
}

static void count_sources(uint32_t rule_id, void *n)
{
	*(size_t *)n += rule_id == PACER_BAN_SOURCE;
}

static size_t sources(const struct attached *a)
{
	size_t n = 0;

	bans_count(a, count_sources, &n);
	return n;
}

/* It has them, too, where it has room and the rule; where it cannot be told, that is said. */
static void test_shadow(void **unused)
{
	struct pacer_control said;
	struct attached shadow;
	uint32_t limiters;

	(void)unused;
	begin_with(POLICY);
	shadow = pacer;
	said = *control;
	shadow.control = &said;
	shadow.copy = calloc(2, sizeof(*shadow.copy));
	shadow.lines = aligned_alloc(64, plan.lines * sizeof(struct pacer_line));
	assert_true(shadow.copy && shadow.lines);
	memcpy(shadow.copy, copies, 2 * sizeof(*shadow.copy));
	memset(shadow.lines, 0, plan.lines * sizeof(struct pacer_line));
	pacer.shadow_id = 1;
	stays_shadow = &shadow;
	kernel_one_turn();
	assert_int_equal(add(NULL, "192.0.2.1"), 0);
	kernel_one_turn_ends();
	assert_int_equal(sources(&shadow), 1);
	kernel_one_turn();
	assert_int_equal(lift(NULL, "192.0.2.1"), 0);
	kernel_one_turn_ends();
	assert_int_equal(sources(&shadow), 0);
	kernel_one_turn();
	assert_int_equal(add(NULL, "192.0.2.9"), 0);
	kernel_one_turn_ends();
	kernel_one_turn();
	shadow.copy[0].policy.bans.sets = 0; /* for a moment, so that it alone keeps one */
	assert_int_equal(lift(NULL, "192.0.2.9"), 0);
	shadow.copy[0].policy.bans.sets = copies[0].policy.bans.sets;
	kernel_one_turn_ends();
	assert_int_equal(list(), 0);
	assert_int_equal(sources(&shadow), 1);
	kernel_one_turn();
	assert_int_equal(lift(NULL, "192.0.2.9"), 0);
	kernel_one_turn_ends();
	assert_true(!done.done && done.of_shadow == 1 && !done.left_out);
	assert_int_equal(sources(&shadow), 0);
	limiters = shadow.copy[0].policy.rule[0].n_limiters;
	shadow.copy[0].policy.rule[0].n_limiters = 0; /* it has other keys */
	assert_int_equal(add("a", "192.0.2.8"), 0);
	assert_true(done.done == 1 && done.in_shadow.n == 1 && !done.before.n);
	assert_string_equal(done.in_shadow.why.text, "rule a counts by other keys there");
	assert_int_equal(lift("a", "192.0.2.8"), 0);
	shadow.copy[0].policy.rule[0].n_limiters = limiters;
	shadow.copy[0].policy.rule[0].id = 0; /* rules of its own */
	memcpy(strstr(shadow.copy[0].text, "name: a"), "name: b", 7);
	assert_int_equal(add("a", "192.0.2.1"), 0);
	assert_int_equal(done.in_shadow.n, 0);
	shadow.copy[0].policy.bans.sets = 0;
	assert_int_equal(add(NULL, "192.0.2.2"), 0);
	assert_int_equal(done.in_shadow.n, 1);
	assert_string_equal(done.in_shadow.why.text, "that policy keeps no table of bans");
	assert_int_equal(sources(&shadow), 0);
	assert_int_equal(list(), 2);
	stays_unread = true;
	assert_int_equal(add(NULL, "192.0.2.3"), IN_SHADOW_FAILED);
	assert_string_equal(error.text, "it is done in force, and not in the shadow: eth0: its "
					"maps cannot be read: no reason");
	assert_int_equal(lift(NULL, "192.0.2.2"), IN_SHADOW_FAILED);
	assert_int_equal(list(), 2);
	stays_unread = false;
	shadow.copy[0].text[0] = '[';
	assert_int_equal(lift(NULL, "192.0.2.3"), IN_SHADOW_FAILED);
	assert_non_null(strstr(error.text, "not in the shadow: eth0: no memory for its policy"));
	stays_shadow = NULL;
	free(shadow.copy);
	free(shadow.lines);
}

static void test_no_memory(void **unused)
{
	static const struct ban_wish wishes[] = {{.key = "192.0.2.1"}, {.key = "2001:DB8::1"}};
	uint32_t n;
	int result;

	(void)unused;
	begin_with(POLICY);
	for (int lifting = 0; lifting < 2; lifting++) {
		uint32_t refused = 0;

		for (n = 1; refused == n - 1; n++) {
			starved_from(n, true);
			memory.on = true;
			result = (lifting ? bans_lift : bans_add)(&pacer, NULL, wishes, 2, &done,
								  &error);
			memory.on = false;
			starved_from(0, false);
			refused += result != 0;
			if (result)
				assert_non_null(strstr(error.text, "eth0: no memory"));
			assert_int_equal(list(), lifting == (result != 0) ? 2 : 0);
		}
		assert_true(n > 3);
	}
}

static void tool_bans(const char *text)
{
	struct pacer_tools_value value = {0};
	struct pacer_tools6 key = {0};
	struct prefix prefix;

	assert_int_equal(units_prefix(text, &prefix), 0);
	key.prefixlen = prefix.len;
	memcpy(key.addr, prefix.addr, sizeof(prefix.addr));
	bpf_map_update_elem(prefix.family == 4 ? pacer.tools4_fd : pacer.tools6_fd, &key, &value,
			    BPF_ANY);
}

/* What other tools banned is lifted as well. Where it cannot be, that is said, and of one's own not
 * taken back. */
static void test_of_tools(void **unused)
{
	(void)unused;
	for (int all = 0; all < 2; all++)
		for (unsigned int fails = 0; fails < 2; fails++) {
			int result;

			begin_with(POLICY);
			control->tools = 1;
			pacer.tools4_fd = KERNEL_SHADOW4;
			pacer.tools6_fd = KERNEL_SHADOW6;
			kernel_map_new(KERNEL_SHADOW4, sizeof(struct pacer_tools4),
				       sizeof(struct pacer_tools_value));
			kernel_map_new(KERNEL_SHADOW6, sizeof(struct pacer_tools6),
				       sizeof(struct pacer_tools_value));
			assert_int_equal(add(NULL, "192.0.2.1"), 0);
			tool_bans("192.0.2.1");
			tool_bans("192.0.2.2");
			tool_bans("2001:db8::/32");
			kernel_changes = 0;
			kernel_fails_at = fails;
			result = all ? bans_lift(&pacer, NULL, NULL, 0, &done, &error)
				     : lift(NULL, "192.0.2.1");
			kernel_fails_at = 0;
			assert_int_equal(result, fails ? -1 : 0);
			if (fails)
				assert_string_equal(error.text,
						    "eth0: a ban of another tool cannot be lifted: "
						    "Input/output error: its own bans are lifted "
						    "alone: try again");
			else
				assert_int_equal(done.done, all ? 4 : 2);
			assert_int_equal(
			    kernel_maps[KERNEL_SHADOW4].n + kernel_maps[KERNEL_SHADOW6].n, fails ? 3
											   : all
											       ? 0
											       : 2);
			assert_int_equal(list(), 0);
			kernel_map_new(KERNEL_SHADOW4, 4, 4);
			kernel_map_new(KERNEL_SHADOW6, 4, 4);
			end(NULL);
		}
}

#define CASE(f) cmocka_unit_test_teardown(f, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_keys),
	    CASE(test_key_of_several_limits),
	    CASE(test_keys_in_other_words),
	    CASE(test_key_of_source_and_destination),
	    CASE(test_key_of_unknown_ports),
	    CASE(test_rule_that_is_gone),
	    CASE(test_bans_that_nobody_asks_for),
	    CASE(test_wrong_sources),
	    CASE(test_lengths),
	    CASE(test_lengths_are_looked_for),
	    CASE(test_short_ways),
	    CASE(test_lifted_twice),
	    CASE(test_lifted_by_its_end),
	    CASE(test_lifted_with_its_row),
	    CASE(test_full),
	    CASE(test_moved_with_their_notes),
	    CASE(test_half_a_wish),
	    CASE(test_half_a_wish_made_longer),
	    CASE(test_room_in_another_size),
	    CASE(test_room_for_those_that_refuse),
	    CASE(test_until_while_they_move),
	    CASE(test_during_the_trial_of_a_load),
	    CASE(test_full_of_held_entries),
	    CASE(test_during_a_trial),
	    CASE(test_during_a_trial_without_a_table),
	    CASE(test_as_a_trial_ends),
	    CASE(test_asked_for_as_soon_as_banned),
	    CASE(test_keys_of_one_policy),
	    CASE(test_trial_of_the_first_bans),
	    CASE(test_lines_of_the_policy_before),
	    CASE(test_lengths_during_a_trial),
	    CASE(test_lifted_before_a_trial_without_bans),
	    CASE(test_lifted_of_a_rule_before),
	    CASE(test_not_by_what_drains),
	    CASE(test_no_table),
	    CASE(test_a_load_that_lapsed),
	    CASE(test_no_secret),
	    CASE(test_no_lock),
	    CASE(test_shadow),
	    CASE(test_of_tools),
	    CASE(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
