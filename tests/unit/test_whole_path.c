/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The whole path of a name, as messages have it: from where the process is, or as it was given.
 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/whole_path.h"

static char folder[PATH_MAX], buf[PATH_MAX];

static int begin(void **unused)
{
	char made[] = "/tmp/test_whole_path.XXXXXX";

	(void)unused;
	return !mkdtemp(made) || chdir(made) || !getcwd(folder, sizeof(folder));
}

static int end(void **unused)
{
	(void)unused;
	(void)rmdir(folder);
	return chdir("/");
}

static void test_from_where_it_is(void **unused)
{
	char whole[PATH_MAX + 16];

	(void)unused;
	snprintf(whole, sizeof(whole), "%s/ca.pem", folder);
	assert_string_equal(whole_path("ca.pem", buf, sizeof(buf)), whole);
	assert_string_equal(whole_path("/etc/ca.pem", buf, sizeof(buf)), "/etc/ca.pem");
	assert_int_equal(chdir("/"), 0);
	assert_string_equal(whole_path("ca.pem", buf, sizeof(buf)), "/ca.pem");
}

/* A path that is cut off would name another file. */
static void test_where_it_does_not_fit(void **unused)
{
	const size_t len = strlen(folder) + strlen("/ca.pem");

	(void)unused;
	assert_int_equal(strlen(whole_path("ca.pem", buf, len + 1)), len);
	assert_string_equal(whole_path("ca.pem", buf, len), "ca.pem");
	assert_string_equal(whole_path("ca.pem", buf, 2), "ca.pem"); /* nor the folder */
}

/* Nobody can say where it is. */
static void test_of_a_folder_that_is_gone(void **unused)
{
	(void)unused;
	assert_int_equal(rmdir(folder), 0);
	assert_string_equal(whole_path("ca.pem", buf, sizeof(buf)), "ca.pem");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_from_where_it_is),
	    CASE(test_where_it_does_not_fit),
	    CASE(test_of_a_folder_that_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
