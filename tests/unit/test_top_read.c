/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What `top` reads of a pacer that is made up: a sample that cannot be read for once leaves nothing
 * of it, and an interface that gets another name leaves nothing open.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "cli/top_read.h"
#include "live/device.h"

static struct top_reader reader;
static struct policy_error error;
static const char *name; /* of the interface, now */
static int watches;	 /* begun and not ended */
static bool torn;	 /* what cannot be read is the sample */

int __wrap_device_index(const char *ifname, struct policy_error *why);
int __wrap_device_index(const char *ifname, struct policy_error *why)
{
	return !strcmp(ifname, name) ? 7 : policy_fail(why, 0, "%s: none", ifname);
}

char *__wrap_if_indextoname(unsigned int ifindex, char *ifname);
char *__wrap_if_indextoname(unsigned int ifindex, char *ifname)
{
	assert_int_equal(ifindex, 7);
	return strcpy(ifname, name);
}

int __real_watch_begin(struct watch *watch, char *const *ifnames, size_t n);
int __wrap_watch_begin(struct watch *watch, char *const *ifnames, size_t n);
int __wrap_watch_begin(struct watch *watch, char *const *ifnames, size_t n)
{
	watches++;
	return __real_watch_begin(watch, ifnames, n);
}

void __real_watch_end(struct watch *watch);
void __wrap_watch_end(struct watch *watch);
void __wrap_watch_end(struct watch *watch)
{
	watches--;
	for (size_t i = 0; i < watch->n; i++)
		watch->at[i].found = false; /* there is no pacer that could be let go of */
	__real_watch_end(watch);
}

int __wrap_watch_look(struct watch *watch, struct policy_error *why);
int __wrap_watch_look(struct watch *watch, struct policy_error *why)
{
	(void)why;
	watch->at[0].found = !strcmp(watch->at[0].ifname, name);
	return 0;
}

int __wrap_reading_take(const struct attached *a, struct reading *reading,
			struct policy_error *why);
int __wrap_reading_take(const struct attached *a, struct reading *reading, struct policy_error *why)
{
	static const char text[] = "rules: [{name: a, limits: [{key: src, gap: 1ms}]}]";
	static uint64_t now_ns;

	(void)a;
	memset(reading, 0, sizeof(*reading));
	reading->now_ns = ++now_ns;
	reading->policy = policy_parse(text, strlen(text), why);
	return reading->policy ? 0 : -1;
}

int __wrap_busiest_read(const struct attached *a, struct busiest *busiest,
			struct policy_error *why);
int __wrap_busiest_read(const struct attached *a, struct busiest *busiest, struct policy_error *why)
{
	(void)a;
	busiest->sampled = true;
	busiest->n_keys = 1;
	return torn ? policy_fail(why, 0, "it changes too fast") : 0;
}

static void next(void)
{
	assert_int_equal(top_read_next(&reader, &error), 0);
	assert_true(reader.now.paced);
}

static int begin(void **unused)
{
	(void)unused;
	name = "eth0";
	torn = false;
	assert_int_equal(top_read_begin(&reader, name, &error), 0);
	return 0;
}

static int end(void **unused)
{
	(void)unused;
	top_read_end(&reader);
	assert_int_equal(watches, 0);
	return 0;
}

/* It is said why there are no keys, and for as long as that is so. */
static void test_sample_that_is_torn_for_once(void **unused)
{
	(void)unused;
	for (int i = 0; i < 2; i++) {
		torn = false;
		next();
		assert_true(reader.now.busiest.sampled);
		assert_string_equal(reader.now.unsampled.text, "");
		torn = true;
		next();
		assert_false(reader.now.busiest.sampled);
		assert_int_equal(reader.now.busiest.n_keys, 0);
		assert_string_equal(reader.now.unsampled.text, "it changes too fast");
	}
}

static void test_another_name(void **unused)
{
	(void)unused;
	next();
	name = "eth1";
	next();
	assert_string_equal(reader.ifname, "eth1");
	assert_string_equal(reader.now.ifname, "eth1");
	assert_int_equal(watches, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_sample_that_is_torn_for_once),
	    TEST(test_another_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
