/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The policy that is to follow the one in force, as it lies in the other copy: its sets by their
 * names, its secret, its short way; and what fails is said. The places of sets are noted here, and
 * written nowhere.
 */
#include "paced.h"

#include "ban.h"
#include "live/bans.h"
#include "live/change.h"
#include "live/copies.h"
#include "live/sets_maps.h"
#include "live/successor.h"
#include "record.h"

#define SMALL	   "memory: 1M\nclock: exact\n"
#define WINDOW	   "{key: src, packets: 9, window: 1s, entries: 64}"
#define TO_DST	   "{key: dst, packets: 5, window: 2s, entries: 64}"
#define USES	   "{key: all, uses: 9, cooldown: 1s, max_cooldown: 2s, threshold: 9}"
#define RULE(of)   "rules:\n- name: a\n  limits: [" of "]\n"
#define RULE_A(of) "- name: a\n  limits: [" of "]\n"
#define BESIDE	   "rules:\n- name: u\n  limits: [" USES ", " TO_DST "]\n"
#define NARROW(n)  "{key: src, packets: " n ", window: 60s, entries: 64}"

/* --- the places of sets --------------------------------------------------------------------- */

static char done[256]; /* to each place of the other copy, in turn */
static uint32_t done_in;

__attribute__((format(printf, 3, 4))) static int note(uint32_t copy, uint32_t number,
						      const char *format, ...)
{
	size_t n = strlen(done);
	va_list args;

	done_in = copy;
	n += snprintf(done + n, sizeof(done) - n, "%s%u ", n ? ", " : "", number);
	va_start(args, format);
	n += vsnprintf(done + n, sizeof(done) - n, format, args);
	va_end(args);
	assert_true(n < sizeof(done));
	return 0;
}

int __wrap_sets_maps_clear(const struct attached *a, uint32_t copy, uint32_t number);
int __wrap_sets_maps_share(const struct attached *a, uint32_t copy, uint32_t number, uint32_t from);
int __wrap_sets_maps_renew(const struct attached *a, uint32_t copy, uint32_t number, int from,
			   const struct set_list *list, const struct set_about *about);

int __wrap_sets_maps_clear(const struct attached *a, uint32_t copy, uint32_t number)
{
	(void)a;
	return note(copy, number, "cleared");
}

int __wrap_sets_maps_share(const struct attached *a, uint32_t copy, uint32_t number, uint32_t from)
{
	(void)a;
	return note(copy, number, "is %u", from);
}

int __wrap_sets_maps_renew(const struct attached *a, uint32_t copy, uint32_t number, int from,
			   const struct set_list *list, const struct set_about *about)
{
	(void)a;
	(void)list;
	(void)about;
	return note(copy, number, "of %d", from);
}

/* --- a pacer at work ------------------------------------------------------------------------ */

static struct pacer_policy *in_force(void)
{
	return &copies[copies_in_force(&pacer)].policy;
}

/* Where sets are: nothing can be read there. */
static int no_set(int fd, const void *key, void *value)
{
	(void)fd;
	(void)key;
	(void)value;
	errno = ENOENT;
	return -ENOENT;
}

static void begin(const char *text)
{
	put_on(text);
	kernel_other_lookup = no_set;
	kernel_counters_new(KERNEL_SET_HITS, KERNEL_CPUS * sizeof(struct pacer_set_count),
			    PACER_SET_COUNTERS);
	pacer.set_hits_fd = KERNEL_SET_HITS;
	samples_fail = false;
	samples_undone = 0;
	*done = 0;
}

static void change_to(const char *text)
{
	if (change_apply(&pacer, text, NULL, 0, &plan, &error))
		fail_msg("%d: %s", error.line, error.text);
}

/* --- sets ----------------------------------------------------------------------------------- */

#define SET(name)    "{name: " name ", of: [192.0.2.9]}"
#define VALUES(name) "{name: " name ", file: /no/such.csv, value: 2}"
#define ASKS(what, key)                                                                           \
	SMALL "rules:\n- {name: a, match: {src: \"" what "\"}, limits: [{key: " key ", packets: " \
	      "9, window: 1s, entries: 64}]}\n"
#define OF(sets, asks) "sets: [" sets "]\n" asks
#define ONE	       ASKS("@one", "src")
#define ONE_AA	       ASKS("@one=AA", "src")
#define ONE_KEYED      ASKS("@one=AA", "\"value(one, src)\"")

/* Written as it follows what is in force; with sets that were read anew. */
static void write_after(const char *text, bool read)
{
	static struct set_texts texts;
	struct successor s = {.plan = &plan, .sets = read ? &texts : NULL};

	*done = 0;
	if (successor_plan(&pacer, text, SUCCESSOR, false, &s, &error) ||
	    successor_write(&pacer, text, &s, &error))
		fail_msg("%d: %s", error.line, error.text);
	successor_free(&s);
	assert_int_equal(done_in, copies_in_force(&pacer) ^ 1);
}

static void assert_done(const char *what)
{
	assert_string_equal(done, what);
}

/* A set goes on by its name, wherever it stands; what was beyond the last of them is cleared. */
static void test_sets_go_by_their_names(void **unused)
{
	(void)unused;
	begin(OF(SET("two") ", " SET("one"), ONE));
	write_after(OF(SET("one") ", " SET("two"), ONE), false);
	assert_done("0 is 1, 1 is 0");
	write_after(OF(SET("one") ", " SET("new") ", " SET("two"), ONE), true);
	assert_done("0 of 1, 1 of -1, 2 of 0");
	write_after(OF(SET("one"), ONE), false);
	assert_done("0 is 1, 1 cleared, 2 cleared");
}

/* A set that comes counts from zero, and one that stays goes on. */
static void test_sets_that_come_count_from_zero(void **unused)
{
	struct pacer_set_count hits[KERNEL_CPUS], *is;

	(void)unused;
	begin(OF(SET("one"), ONE));
	memset(hits, 0xa5, sizeof(hits));
	for (uint32_t i = 0; i < PACER_SET_COUNTERS; i++)
		assert_int_equal(bpf_map_update_elem(KERNEL_SET_HITS, &i, hits, 0), 0);
	write_after(OF(SET("new") ", " SET("one"), ONE), true);
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t id = copies[1].policy.set_counter[i];

		is = kernel_value(KERNEL_SET_HITS, &id);
		assert_int_equal(is[KERNEL_CPUS - 1].packets, i ? hits[0].packets : 0);
	}
}

/* What wants sets that are not read has none of it, and says so; nothing is written. */
static void refused(const char *before, const char *text, const char *says)
{
	struct successor s = {.plan = &plan};

	begin(before);
	assert_int_equal(successor_plan(&pacer, text, SUCCESSOR, false, &s, &error), -1);
	assert_string_equal(error.text, says);
	assert_null(s.bin);
	assert_done("");
	end(NULL);
}

static void test_sets_that_were_not_read(void **unused)
{
	(void)unused;
	refused(OF(SET("one"), ONE), OF(SET("one") ", " SET("new"), ONE),
		"eth0: the policy in force has no set new: apply a policy");
	refused(OF(VALUES("one"), ONE_AA), OF(VALUES("one"), ONE_KEYED),
		"eth0: set one was read without its values, as neither a key nor a fleet had them: "
		"apply a policy");
	begin(OF(VALUES("one"), ONE_KEYED));
	write_after(OF(VALUES("one"), ONE_KEYED), false);
	assert_done("0 is 0");
}

/* A trial counts a key of a set's values in the policy before, where that has them. */
static void test_sets_whose_values_keys_had(void **unused)
{
	static struct set_texts texts;

	(void)unused;
	for (int keyed = 0; keyed < 2; keyed++) {
		struct successor s = {.plan = &plan, .sets = &texts};

		begin(keyed ? OF(SET("two") ", " VALUES("one"), ONE_KEYED)
			    : OF(SET("two") ", " VALUES("one"), ONE_AA));
		texts.text[0].list.about = NULL; /* read without values, as none counted by them */
		assert_int_equal(successor_plan(&pacer, OF(VALUES("one"), ONE_KEYED), SUCCESSOR,
						true, &s, &error),
				 -1);
		assert_string_equal(error.text, "eth0: set one was read while another change came, "
						"which counts by its values: try again");
		texts.text[0].list.about = &texts.text[0].about;
		if (successor_plan(&pacer, OF(VALUES("one"), ONE_KEYED), SUCCESSOR, true, &s,
				   &error))
			fail_msg("%d: %s", error.line, error.text);
		assert_int_equal(s.old_set[0], 1);
		assert_int_equal(s.valued[0], keyed ? 1 : -1);
		successor_free(&s);
		end(NULL);
	}
}

/* --- all else ------------------------------------------------------------------------------- */

/* A secret that the program drew itself is replaced, unless on trial. */
static void test_a_weak_secret_is_replaced(void **unused)
{
	(void)unused;
	begin(SMALL RULE(WINDOW));
	control->secret_ready = PACER_SECRET_OF_PROGRAM;
	change_to(SMALL RULE(WINDOW ", " TO_DST));
	assert_int_equal(in_force()->secret, 1);
	assert_true(control->secret[1][0] | control->secret[1][1]);
	change_to(SMALL RULE(WINDOW));
	assert_int_equal(in_force()->secret, 1);
}

#define EACH(s)	 "{key: src, packets: 9, window: " #s "s, entries: 64}"
#define TOO_MANY EACH(1) ", " EACH(2) ", " EACH(3) ", " EACH(4) ", " EACH(5)

/* Where there is no room for each limit twice, it stays, and the change comes. */
static void test_a_weak_secret_without_room(void **unused)
{
	(void)unused;
	begin(SMALL RULE(TOO_MANY));
	control->secret_ready = PACER_SECRET_OF_PROGRAM;
	change_to("else: drop\n" SMALL RULE(TOO_MANY));
	assert_int_equal(in_force()->secret, 0);
	assert_int_equal(in_force()->rule[0].n_limiters, 5);
}

/* Of the prefix lengths that are banned: the new policy asks for them, too. */
static void test_bans_are_asked_for(void **unused)
{
	const struct ban_wish wish = {.key = "192.0.2.0/24"};
	struct bans_done banned;

	(void)unused;
	begin("bans: 64\n" SMALL RULE(WINDOW));
	assert_int_equal(bans_add(&pacer, NULL, &wish, 1, &banned, &error), 0);
	assert_int_equal(in_force()->bans.len4[0], 24);
	change_to("bans: 64\n" SMALL RULE(WINDOW ", " TO_DST));
	assert_int_equal(in_force()->bans.len4[0], 24);
	assert_true(in_force()->flags & PACER_SOURCES_BANNED);
}

/* Bans for ever of so many sources, each a /24. */
static void ban_sources(uint32_t n)
{
	struct bans_done banned;
	char text[32];

	for (uint32_t i = 0; i < n; i++) {
		const struct ban_wish wish = {.key = text};

		snprintf(text, sizeof(text), "192.0.%u.0/24", i);
		assert_int_equal(bans_add(&pacer, NULL, &wish, 1, &banned, &error), 0);
		assert_int_equal(banned.done, 1);
	}
}

/* Somebody is banned after the policy was written, and before it is in force. */
static void ban_meanwhile(const char *text, uint32_t n)
{
	struct successor s = {.plan = &plan};

	if (successor_plan(&pacer, text, SUCCESSOR, false, &s, &error) ||
	    successor_write(&pacer, text, &s, &error))
		fail_msg("%d: %s", error.line, error.text);
	ban_sources(n);
	copies_put_in_force(&pacer, copies_in_force(&pacer) ^ 1, 0);
	successor_settle(&pacer, &plan);
	successor_free(&s);
}

/* The new table has such bans, too, and is asked; it is as good as the one before. */
static void test_bans_of_meanwhile(void **unused)
{
	uint32_t begun;

	(void)unused;
	begin("bans: 64\n" SMALL RULE(WINDOW));
	begun = in_force()->bans.begun;
	kernel_now_ns += 1000 * SECOND;
	ban_meanwhile("bans: 128\n" SMALL RULE(WINDOW), 1);
	assert_int_equal(plan.bans_left_out, 0);
	assert_int_equal(in_force()->bans.len4[0], 24);
	assert_true(in_force()->flags & PACER_SOURCES_BANNED);
	assert_int_equal(in_force()->bans.begun, begun);
}

/* One that has not all of them is another, however soon it follows. */
static void test_a_table_without_all_bans(void **unused)
{
	uint32_t begun;

	(void)unused;
	begin("bans: 64\n" SMALL RULE(WINDOW));
	for (uint32_t i = 0; i < PACER_SECRETS; i++)
		control->secret[0][i] = 0x9e3779b97f4a7c15ull * (i + 1);
	begun = in_force()->bans.begun;
	ban_meanwhile("bans: 16\n" SMALL RULE(WINDOW), 40);
	assert_true(plan.bans_left_out > 0);
	assert_int_equal(in_force()->bans.begun, begun + 1);
}

/* The short way looks at the allow-list of its own copy. */
static void test_the_short_way_is_of_its_copy(void **unused)
{
	(void)unused;
	begin(SMALL RULE(NARROW("5")));
	change_to("allow: [192.0.2.1]\n" SMALL RULE(NARROW("5")));
	assert_true(in_force()->shape & PACER_SHORT_ALLOWS);
	change_to(SMALL RULE(NARROW("5")));
	assert_true(in_force()->shape && !(in_force()->shape & PACER_SHORT_ALLOWS));
}

/* Samples that cannot be made are an error; those of a policy that stays out are given back. */
static void test_samples(void **unused)
{
	(void)unused;
	begin(SMALL RULE(WINDOW));
	samples_fail = true;
	assert_int_equal(change_apply(&pacer, SMALL RULE(TO_DST), NULL, 0, &plan, &error), -1);
	assert_string_equal(error.text, "eth0: no memory for the samples");
	assert_int_equal(in_force()->serial, 1);
	samples_fail = false;
	for (int i = 0; i < 2; i++) {
		struct successor s = {.plan = &plan};

		assert_int_equal(
		    successor_plan(&pacer, SMALL RULE(TO_DST), SUCCESSOR, false, &s, &error), 0);
		assert_int_equal(successor_write(&pacer, SMALL RULE(TO_DST), &s, &error), 0);
		assert_int_equal(samples_undone, i);
		successor_undo(&pacer, &s);
		assert_int_equal(samples_undone, i + 1);
		successor_free(&s);
	}
}

/* Of rules that are not, there is no counter: the first one is of packets that none had. */
static void test_no_counter_of_no_rule(void **unused)
{
	struct pacer_counters count[KERNEL_CPUS], *is;
	const uint32_t first = 0;

	(void)unused;
	say_again();
	say(SMALL "rules:\n");
	for (unsigned int i = 0; i < PACER_RULES_MAX; i++)
		say("- {name: r%u, match: {proto: udp}, verdict: pass}\n", i);
	begin(doc.s);
	memset(count, 0xa5, sizeof(count));
	assert_int_equal(bpf_map_update_elem(KERNEL_COUNTS, &first, count, 0), 0);
	change_to(SMALL RULE(WINDOW));
	is = kernel_value(KERNEL_COUNTS, &first);
	assert_memory_equal(is, count, sizeof(count));
}

/* A limit whose value stays keeps its entries' words, whatever others there are beside it: of
 * another kind at the same place, or of its kind elsewhere. */
static void test_a_value_that_stays(void **unused)
{
	const struct pacer_limiter *t;
	struct pacer_entry *entry;

	(void)unused;
	begin(SMALL RULE(NARROW("5")));
	t = &in_force()->rule[0].limiter[0];
	say_again();
	say(SMALL "rules:\n");
	for (uint32_t i = 0; i <= t->base; i++) { /* the last one's number is that place */
		if (i % 7)
			say(", " USES);
		else
			say("%s- {name: u%u, limits: [" USES, i ? "]}\n" : "", i);
	}
	say(", " TO_DST "]}\n" RULE_A(NARROW("7")));
	change_to(doc.s);
	t = &in_force()->rule[t->base / 7 + 1].limiter[0];
	assert_int_equal(t->generation, 1);
	entry = &pacer.lines[t->base].unit[0].entry;
	entry->lock = 1 << 16;
	entry->last = 5u << PACER_LAST_FULL | 2;
	say("- {name: b, verdict: pass}\n");
	change_to(doc.s);
	assert_int_equal(entry->last, 5u << PACER_LAST_FULL | 2);
}

#define CASE(f) cmocka_unit_test_teardown(f, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_sets_go_by_their_names),
	    CASE(test_sets_that_come_count_from_zero),
	    CASE(test_sets_that_were_not_read),
	    CASE(test_sets_whose_values_keys_had),
	    CASE(test_a_weak_secret_is_replaced),
	    CASE(test_bans_are_asked_for),
	    CASE(test_a_weak_secret_without_room),
	    CASE(test_bans_of_meanwhile),
	    CASE(test_a_table_without_all_bans),
	    CASE(test_the_short_way_is_of_its_copy),
	    CASE(test_samples),
	    CASE(test_no_counter_of_no_rule),
	    CASE(test_a_value_that_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
