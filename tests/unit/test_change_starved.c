/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Changes of a pacer at work of which a part fails: memory, a map, the lock, the wait for the CPUs.
 * The policy before stays in force, whole, and that is said; or the new one is.
 */
#include "banning.h"
#include "starved.h"

#include "live/change.h"
#include "live/copies.h"
#include "live/freeze.h"

#define SMALL "memory: 1M\nclock: exact\nbans: 64\n"
#define BEFORE                                                                            \
	SMALL "allow: [192.0.2.0/24]\nrules:\n- name: a\n  limits: [{key: src, packets: " \
	      "9, window: 1s, entries: 64}]\n"
#define AFTER                                                                          \
	SMALL "allow: [198.51.100.0/24, 2001:db8::/32]\nrules:\n- name: a\n  limits: " \
	      "[{key: src, packets: 8, window: 1s, entries: 64}, {key: all, uses: 9, " \
	      "cooldown: 10s, max_cooldown: 11s}]\n"

/* libyaml loses a few bytes where memory runs out within it; test_alloc.c looks for ours. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

static int apply_it(void)
{
	return change_apply(&pacer, AFTER, NULL, 0, &plan, &error);
}

static int try_out(void)
{
	return change_apply(&pacer, AFTER, NULL, TRIAL_NS, &plan, &error);
}

static int set(void)
{
	char one[] = "a.packets=8", other[] = "bans=128", *both[] = {one, other};

	return change_set(&pacer, both, 2, 0, &plan, &error);
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
			kernel_no_lock = !wait;
			kernel_refuses = wait ? 2 : 0;
			result = changes[i].change();
			kernel_no_lock = false;
			kernel_refuses = 0;
			if (result < 0)
				assert_as_before(i, wait ? "wait" : "lock", 0);
			else if (!wait && changes[i].change != stop) /* its caller has that lock */
				fail_msg("%s: done without the lock", changes[i].name);
		}
	end(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_no_memory),
	    cmocka_unit_test(test_no_map),
	    cmocka_unit_test(test_no_lock_and_no_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
