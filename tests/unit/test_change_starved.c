/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Changes of a pacer at work of which a part fails: memory, a map, the lock, the wait for the CPUs.
 * The policy before stays in force, whole, and that is said; or the new one is.
 */
#include "banning.h"
#include "starved.h"

#include "live/allow_maps.h"
#include "live/change.h"
#include "live/copies.h"
#include "live/freeze.h"
#include "live/sets_maps.h"

#define SMALL  "memory: 1M\nclock: exact\nbans: 64\n"
#define TABLE  "key: src, window: 1s, entries: 64"
#define SET(n) "{name: s" #n ", of: [203.0.113." #n "]}"
#define POOL                                                                               \
	"  over: pool p\npools:\n- {name: p, targets: [veth1, veth2], each: 9, cooldown: " \
	"1s, max_cooldown: 2s, threshold: 9}\n"
#define NEW_RULE "- {name: b, match: {proto: udp}, limits: [{" TABLE ", packets: 3}]}\n"
#define BEFORE                                                                        \
	SMALL "allow: [192.0.2.0/24, '@s1']\nsets: [" SET(1) "]\nrules:\n- name: a\n" \
							     "  limits: [{" TABLE     \
							     ", packets: 9}]\n"
#define AFTER                                                                  \
	SMALL                                                                  \
	"allow: [198.51.100.0/24, 2001:db8::/32, '@s1', '@s2', '@s3']\nsets: " \
	"[" SET(2) ", " SET(1) ", " SET(                                       \
	    3) "]\nrules:\n- name: a\n  limits: [{" TABLE                      \
	       ", packets: 8}, {key: all, uses: 9, cooldown: 10s, max_cooldown: 11s}]\n" POOL

/* --- the places of sets: whether there is something ------------------------------------------ */

static bool places[2][PACER_SETS_MAX];
static const struct set_texts texts; /* what is in the sets is no matter here */

static int put_place(uint32_t copy, uint32_t number, bool is)
{
	if (kernel_fails())
		return -1;
	places[copy][number] = is;
	return 0;
}

int sets_maps_clear(const struct attached *a, uint32_t copy, uint32_t number)
{
	(void)a;
	return put_place(copy, number, false);
}

int sets_maps_share(const struct attached *a, uint32_t copy, uint32_t number, uint32_t from)
{
	(void)a;
	assert_true(places[copy ^ 1][from]);
	return put_place(copy, number, true);
}

int sets_maps_renew(const struct attached *a, uint32_t copy, uint32_t number, int from,
		    const struct set_list *list, const struct set_about *about)
{
	(void)a;
	(void)list;
	(void)about;
	assert_true(from < 0 || places[copy ^ 1][from]);
	return put_place(copy, number, true);
}

void sets_maps_learn(const struct attached *a, uint32_t copy, uint32_t number, const char *name)
{
	(void)a;
	(void)copy;
	(void)number;
	(void)name;
}

const char *sets_maps_why(void)
{
	return strerror(errno);
}

/* libyaml loses a few bytes where memory runs out within it; test_alloc.c looks for ours. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

static int apply_it(void)
{
	return change_apply(&pacer, AFTER, &texts, 0, &plan, &error);
}

static int try_out(void)
{
	return change_apply(&pacer, AFTER, &texts, TRIAL_NS, &plan, &error);
}

static int set(void)
{
	char one[] = "a.packets=8", other[] = "bans=128", *both[] = {one, other};

	return change_set(&pacer, both, 2, 0, NULL, &plan, &error);
}

static int rotate_it(void)
{
	return change_rotate(&pacer, &plan, &error);
}

static int stop(void)
{
	return freeze(&pacer, &error);
}

static const struct {
	const char *name;
	int (*change)(void);
	bool same_text; /* of the policy, once it is done */
} changes[] = {
    {"apply", apply_it, false}, {"apply --confirm-within", try_out, false},
    {"set", set, false},	{"rotate", rotate_it, true},
    {"freeze", stop, true},
};

static struct pacer_copy was;

/* What has failed has left it as it was. */
static void begin(int result)
{
	if (copies && result < 0)
		return;
	end(NULL);
	begin_with(BEFORE);
	kernel_map_new(KERNEL_SHADOW4, sizeof(uint32_t),
		       KERNEL_CPUS * sizeof(struct pacer_set_count));
	pacer.set_hits_fd = KERNEL_SHADOW4;
	memset(places, 0, sizeof(places));
	places[0][0] = true;
	was = copies[0];
	error = (struct policy_error){.line = -1};
}

/* What has failed left what was there. */
static void assert_as_before(size_t i, const char *what, uint32_t n)
{
	uint32_t in_force = copies_in_force(&pacer);
	struct pacer_copy *now = &copies[in_force];

	if (!error.text[0])
		fail_msg("%s, %s %u: it says nothing", changes[i].name, what, n);
	if (in_force || copies_pending_ns(&pacer) || memcmp(now, &was, sizeof(was)) != 0)
		fail_msg("%s, %s %u: the policy is not that of before: %s", changes[i].name, what,
			 n, error.text);
	assert_true(places[0][0] && !places[0][1]);
}

static void test_no_memory(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < ARRAY(changes); i++) {
		int result = 0;

		for (uint32_t n = 1, done = 0; !done; n++) {
			begin(result);
			starved_from(n, true);
			if (__lsan_disable)
				__lsan_disable();
			memory.on = true;
			result = changes[i].change();
			memory.on = false;
			if (__lsan_enable)
				__lsan_enable();
			done = memory.n < n;
			starved_from(0, false);
			assert_int_not_equal(result, CHANGE_WRONG);
			if (result < 0)
				assert_as_before(i, "allocation", n);
		}
	}
	end(NULL);
}

static void test_no_map(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < ARRAY(changes); i++) {
		int result = 0;

		for (uint32_t n = 1, done = 0; !done; n++) {
			begin(result);
			kernel_changes = 0;
			kernel_fails_at = n;
			result = changes[i].change();
			kernel_fails_at = 0;
			done = kernel_changes < n;
			if (result < 0)
				assert_as_before(i, "map", n);
		}
	}
	end(NULL);
}

static void test_no_lock_and_no_wait(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < ARRAY(changes); i++)
		for (int wait = 0; wait < 2; wait++) {
			int result;

			begin(0);
			kernel_no_lock = wait ? 0 : EMFILE;
			kernel_refuses = wait ? 2 : 0;
			result = changes[i].change();
			kernel_no_lock = 0;
			kernel_refuses = 0;
			if (result < 0)
				assert_as_before(i, wait ? "wait" : "lock", 0);
			else if (!wait && changes[i].change != stop) /* its caller has that lock */
				fail_msg("%s: done without the lock", changes[i].name);
		}
	end(NULL);
}

/* What else is asked on the way. */
static void test_nothing_else(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < ARRAY(changes); i++) {
		int result = 0;

		for (uint32_t n = 1, done = 0; !done; n++) {
			begin(result);
			cpus_asked = 0;
			cpus_fail_at = n;
			result = changes[i].change();
			cpus_fail_at = 0;
			done = cpus_asked < n;
			if (result < 0)
				assert_as_before(i, "number of CPUs", n);
		}
		for (int targets = 0; targets < 2; targets++) {
			begin(0);
			targets_fail = targets;
			samples_fail = !targets;
			result = changes[i].change();
			targets_fail = samples_fail = false;
			if (result < 0)
				assert_as_before(i, targets ? "targets" : "samples", 0);
			else if (changes[i].change != stop)
				fail_msg("%s: done without samples or targets", changes[i].name);
		}
	}
	end(NULL);
}

/* Of the sets of a change, or of a freeze, that failed the next change leaves none. */
static void test_sets_of_what_failed(void **unused)
{
	uint32_t left = 0;

	(void)unused;
	for (int frozen = 0; frozen < 2; frozen++)
		for (uint32_t n = 1;; n++) {
			uint32_t next;

			kernel_fails_at = 0;
			begin(0);
			if (frozen)
				assert_int_equal(apply_it(), 0);
			next = copies_in_force(&pacer) ^ 1;
			kernel_changes = 0;
			kernel_fails_at = n;
			if (!(frozen ? stop() : apply_it()))
				break;
			kernel_fails_at = 0;
			left += places[next][1];
			assert_int_equal(change_apply(&pacer, BEFORE, &texts, 0, &plan, &error), 0);
			assert_int_equal(copies_in_force(&pacer), next);
			for (uint32_t i = 0; i < PACER_SETS_MAX; i++)
				assert_int_equal(places[next][i], i == 0);
		}
	kernel_fails_at = 0;
	assert_true(left > 2);
	end(NULL);
}

#define GEO(key)                                                                                   \
	SMALL "sets: [{name: g, file: /no/such.csv, value: 2}]\nrules:\n- {name: a, match: {src: " \
	      "'@g=AA'}, limits: [{key: " key ", packets: 9, window: 1s, entries: 64}]}\n"

/* Only who applies a policy has read the files of its sets. */
static void test_sets_that_were_not_read(void **unused)
{
	(void)unused;
	begin(0);
	assert_int_equal(change_apply(&pacer, AFTER, NULL, 0, &plan, &error), -1);
	assert_string_equal(error.text, "eth0: the policy in force has no set s2: apply a policy");
	assert_as_before(0, "set", 0);
	end(NULL);
	begin_with(GEO("src"));
	assert_int_equal(change_apply(&pacer, GEO("'value(g, src)'"), NULL, 0, &plan, &error), -1);
	assert_string_equal(error.text, "eth0: set g was read without its values, as neither a key "
					"nor a fleet had them: apply a policy");
	assert_int_equal(copies_in_force(&pacer), 0);
	end(NULL);
	begin_with(GEO("'value(g, src)'"));
	places[0][0] = true;
	assert_int_equal(change_apply(&pacer, GEO("'value(g, src)'"), NULL, 0, &plan, &error), 0);
	end(NULL);
}

/* Who cannot have the lock confirms nothing; and limits of a change that was cut off before they
 * were timed are timed before there are others, or there are none. */
static void test_what_was_begun(void **unused)
{
	struct pacer_limiter *t;

	(void)unused;
	begin(0);
	assert_int_equal(try_out(), 0);
	kernel_no_lock = true;
	assert_int_equal(change_confirm(&pacer, &error), -1);
	kernel_no_lock = false;
	assert_true(copies_pending_ns(&pacer) > 0);
	assert_int_equal(change_confirm(&pacer, &error), 0);
	assert_int_equal(copies_pending_ns(&pacer), 0);
	begin(0);
	t = &copies[0].policy.rule[0].limiter[0];
	t->until_ns = COMPILE_UNTIL_SET;
	kernel_refuses = 2;
	assert_int_equal(rotate_it(), -1);
	kernel_refuses = 0;
	assert_non_null(strstr(error.text, "hold until the next change"));
	assert_true(copies_in_force(&pacer) == 0 && t->until_ns == COMPILE_UNTIL_SET);
	assert_int_equal(rotate_it(), 0);
	assert_true(t->until_ns > kernel_now_ns && t->until_ns != COMPILE_UNTIL_SET);
	end(NULL);
}

static void stale(const char *text, bool of_policy, bool by_hand, uint64_t until_ns)
{
	struct allow_entry entry = {
	    .of_policy = of_policy, .by_hand = by_hand, .hand_until_ns = until_ns};
	struct allowlist list = {&entry, 1, 1};

	assert_int_equal(units_prefix(text, &entry.prefix), 0);
	assert_int_equal(allow_maps_put(&pacer, 1, &list, &entry), 0);
}

static void stale_lists(uint32_t i)
{
	begin(0);
	stale("198.51.100.0/24", i & 1, i & 2, i & 4 ? kernel_now_ns + SECOND : 0);
	stale("192.0.2.1", true, false, 0);
	stale("192.0.2.2", false, true, 0);
	kernel_changes = 0;
}

/* What the other copy's list has of a policy long gone is gone, or as the new one has it. */
static void test_stale_lists(void **unused)
{
	uint32_t unwritten = 0;

	(void)unused;
	for (uint32_t i = 0; i < 8; i++) {
		struct allowlist list;

		stale_lists(i);
		assert_int_equal(apply_it(), 0);
		assert_int_equal(allow_maps_read(&pacer, 1, &list, &error), 0);
		assert_int_equal(list.n, 2);
		for (size_t k = 0; k < list.n; k++)
			assert_true(list.entry[k].of_policy && !list.entry[k].by_hand &&
				    !list.entry[k].hand_until_ns);
		allowlist_free(&list);
	}
	for (uint32_t n = 1, done = 0; !done; n++) {
		stale_lists(0);
		kernel_fails_at = n;
		done = !apply_it();
		kernel_fails_at = 0;
		unwritten += !done && strstr(error.text, "eth0: its allow-list cannot be written");
		assert_int_equal(copies_in_force(&pacer), done);
	}
	assert_true(unwritten >= 4); /* two are taken off, one is changed and one added */
	end(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_no_memory),
	    cmocka_unit_test(test_no_map),
	    cmocka_unit_test(test_no_lock_and_no_wait),
	    cmocka_unit_test(test_what_was_begun),
	    cmocka_unit_test(test_stale_lists),
	    cmocka_unit_test(test_nothing_else),
	    cmocka_unit_test(test_sets_of_what_failed),
	    cmocka_unit_test(test_sets_that_were_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
