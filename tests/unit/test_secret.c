/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The secrets that keys are hashed with: who draws the first of them, where two tools do at once,
 * and bans that move from one to the other. The kernel's random numbers are the test's.
 */
#include "oracle.h"

#include <errno.h>
#include <sys/random.h>

#include "live/grace.h"
#include "live/secret.h"

static struct pacer_copy copies[2];
static struct pacer_control control;
static struct attached pacer = {.ifname = "eth0", .control = &control, .copy = copies};
static struct policy_error error;

static struct {
	bool none;
	uint64_t first;	       /* numbers are this one, and the next; 0 among them */
	void (*befalls)(void); /* while they are drawn */
	unsigned int drawings;
} random_numbers;
static int grace_result;
static unsigned int graces;

ssize_t getrandom(void *to, size_t n, unsigned int flags)
{
	uint64_t *word = to;
	size_t i;

	(void)flags;
	random_numbers.drawings++;
	if (random_numbers.befalls)
		random_numbers.befalls();
	errno = EAGAIN;
	if (random_numbers.none)
		return -1;
	for (i = 0; i < n / sizeof(*word); i++)
		word[i] = random_numbers.first + i;
	return (ssize_t)n;
}

int grace(const char *ifname, struct policy_error *why)
{
	graces++;
	return grace_result ? policy_fail(why, 0, "%s: no grace", ifname) : 0;
}

static void begin(void)
{
	memset(copies, 0, sizeof(copies));
	memset(&control, 0, sizeof(control));
	memset(&random_numbers, 0, sizeof(random_numbers));
	memset(&error, 0, sizeof(error));
	grace_result = 0;
	graces = 0;
}

/* Who comes first draws it. No word is 0, which is what has not been drawn. */
static void test_drawn_once(void **unused)
{
	size_t i;

	(void)unused;
	begin();
	random_numbers.first = -2ull;
	assert_true(secret_is_weak(&pacer));
	assert_int_equal(secret_ready(&pacer, &error), 0);
	assert_int_equal(control.secret_ready, PACER_SECRET_OF_TOOLS);
	assert_false(secret_is_weak(&pacer));
	for (i = 0; i < PACER_SECRETS; i++)
		assert_int_equal(control.secret[0][i], i == 2 ? 1 : i - 2);
	random_numbers.first = 77;
	assert_int_equal(secret_ready(&pacer, &error), 0);
	assert_int_equal(random_numbers.drawings, 1);
	assert_int_equal(control.secret[0][0], -2ull);
}

static void another_draws(void)
{
	random_numbers.befalls = NULL;
	random_numbers.first = 1000;
	assert_int_equal(secret_ready(&pacer, &error), 0);
	random_numbers.first = 5000;
}

static void another_draws_half(void)
{
	size_t i;

	for (i = 0; i < PACER_SECRETS / 2; i++)
		control.secret[0][i] = 1000 + i;
}

/* Of two who draw at once, the first one's words stay: keys may have been hashed with them. */
static void test_drawn_by_two(void **unused)
{
	size_t i;

	(void)unused;
	begin();
	random_numbers.befalls = another_draws;
	assert_int_equal(secret_ready(&pacer, &error), 0);
	assert_int_equal(random_numbers.drawings, 2);
	for (i = 0; i < PACER_SECRETS; i++)
		assert_int_equal(control.secret[0][i], 1000 + i);
	begin();
	random_numbers.first = 5000;
	random_numbers.befalls = another_draws_half;
	assert_int_equal(secret_ready(&pacer, &error), 0);
	for (i = 0; i < PACER_SECRETS; i++)
		assert_int_equal(control.secret[0][i], (i < PACER_SECRETS / 2 ? 1000 : 5000) + i);
}

/* The program's own, of fewer bits, is weak as long as keys are hashed with it. */
static void test_of_the_program(void **unused)
{
	(void)unused;
	begin();
	control.secret_ready = PACER_SECRET_OF_PROGRAM;
	assert_int_equal(secret_ready(&pacer, &error), 0);
	assert_int_equal(random_numbers.drawings, 0);
	assert_true(secret_is_weak(&pacer));
	copies[0].policy.secret = 1;
	assert_false(secret_is_weak(&pacer));
	random_numbers.first = 9;
	assert_int_equal(secret_draw(&pacer, 1, &error), 0);
	assert_int_equal(control.secret[1][0], 9);
	assert_int_equal(control.secret_ready, PACER_SECRET_OF_PROGRAM);
	assert_int_equal(secret_draw(&pacer, 0, &error), 0);
	assert_int_equal(control.secret_ready, PACER_SECRET_OF_TOOLS);
}

static void test_no_random_numbers(void **unused)
{
	(void)unused;
	begin();
	random_numbers.none = true;
	assert_int_equal(secret_ready(&pacer, &error), -1);
	assert_string_equal(error.text, "eth0: no random numbers for a secret");
	assert_int_equal(control.secret_ready, 0);
	assert_int_equal(secret_draw(&pacer, 0, &error), -1);
	assert_non_null(strstr(error.text, "eth0: no random numbers for a secret: "));
	assert_int_equal(control.secret_ready, 0);
}

/* Bans move once every packet has the new policy: where that is not known, they go on moving. */
static void test_bans(void **unused)
{
	struct pacer_policy *p = &copies[0].policy;

	(void)unused;
	begin();
	assert_int_equal(secret_move_bans(&pacer, p, &error), 0);
	assert_int_equal(graces, 0);
	p->bans.moving = 1;
	grace_result = -1;
	assert_int_equal(secret_move_bans(&pacer, p, &error), -1);
	assert_int_equal(p->bans.moving, 1);
	grace_result = 0;
	assert_int_equal(secret_move_bans(&pacer, p, &error), 0);
	assert_int_equal(p->bans.moving, 0);
	assert_int_equal(graces, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_drawn_once),	   cmocka_unit_test(test_drawn_by_two),
	    cmocka_unit_test(test_of_the_program), cmocka_unit_test(test_no_random_numbers),
	    cmocka_unit_test(test_bans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
