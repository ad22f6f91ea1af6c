/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a command says of its result, and of what it could not begin with, where a call fails that
 * no machine lets fail when it is asked to: the calls are said here.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/cmd.h"
#include "config/policy.h"
#include "live/attached.h"
#include "live/ends.h"

static int holds; /* errno of holding the signals; 0: they are held */
static int blind; /* errno of waiting for them */
static FILE *own_out, *own_err;
static char *said;
static size_t said_len;

int __wrap_ends_hold(enum ends_of of);
FILE *__wrap_ends_stream(int fd);

int __wrap_ends_hold(enum ends_of of)
{
	assert_int_equal(of, ENDS_OF_SERVICE);
	errno = holds;
	return holds ? -1 : 0;
}

/* There is no memory for it. */
FILE *__wrap_ends_stream(int fd)
{
	(void)fd;
	return NULL;
}

int __wrap_ends_blind(void);
int __wrap_ends_blind(void)
{
	return blind;
}

static int begin(void **unused)
{
	static char verb[] = "events", *const arguments[] = {verb, NULL};

	(void)unused;
	own_out = stdout;
	own_err = stderr;
	stderr = open_memstream(&said, &said_len);
	blind = 0;
	say_begin(verb, arguments);
	return 0;
}

static int end(void **unused)
{
	(void)unused;
	if (stderr != own_err)
		fclose(stderr);
	free(said);
	stdout = own_out;
	stderr = own_err;
	return 0;
}

static const char *what_was_said(void)
{
	fflush(stderr);
	return said;
}

static void test_signals_that_cannot_be_held(void **unused)
{
	(void)unused;
	holds = EMFILE;
	assert_int_equal(until_ended(ENDS_OF_SERVICE), EXIT_FAILED);
	assert_string_equal(
	    what_was_said(),
	    "xdp-pacer: events: signals cannot be waited for: Too many open files\n");
}

/* Its output does not give way to signals then, and is there all the same. */
static void test_no_memory_to_give_way(void **unused)
{
	FILE *out = stdout, *err = stderr;

	(void)unused;
	holds = 0;
	assert_int_equal(until_ended(ENDS_OF_SERVICE), EXIT_DONE);
	assert_ptr_equal(stdout, out);
	assert_ptr_equal(stderr, err);
}

/* Of several interfaces the same would be said of each. */
static void test_what_is_unsure_is_said_once(void **unused)
{
	const struct policy_error first = {.text = "v0: not known"}, second = {.text = "v1: nor"};

	(void)unused;
	result_unsure(&first);
	result_unsure(&second);
	assert_string_equal(what_was_said(), "xdp-pacer: v0: not known\n");
}

/* After a change, what cannot be read of its result does not say that there was none. */
static void test_read_after_a_change(void **unused)
{
	const struct policy_error why = {.text = "v0: its bans cannot be read"};

	(void)unused;
	change_made();
	result_failed(&why);
	result_failed(&why);
	assert_string_equal(
	    what_was_said(),
	    "xdp-pacer: v0: its bans cannot be read: the change was made all the same\n");
}

/* It has ended, and nobody has ended it. */
static void test_cannot_wait(void **unused)
{
	char *out = NULL;
	size_t len;

	(void)unused;
	blind = EINVAL;
	stdout = open_memstream(&out, &len);
	assert_int_equal(written(EXIT_DONE), EXIT_FAILED);
	free(out);
	assert_string_equal(
	    what_was_said(),
	    "xdp-pacer: events: it ends, as it cannot wait any more: Invalid argument\n");
	out = NULL;
	stdout = open_memstream(&out, &len);
	assert_int_equal(written(EXIT_WRONG), EXIT_WRONG); /* which was said */
	free(out);
	assert_null(strstr(strchr(what_was_said(), '\n'), "wait"));
}

static ssize_t is_ended(void *unused, const char *bytes, size_t len)
{
	(void)unused;
	(void)bytes;
	(void)len;
	errno = EINTR;
	return 0;
}

/* As ends_stream() has it, when a signal comes while its pipe is full. */
static void test_ended_while_nobody_reads(void **unused)
{
	(void)unused;
	stdout = fopencookie(NULL, "w", (cookie_io_functions_t){.write = is_ended});
	assert_true(fputs("a result\n", stdout) >= 0);
	assert_int_equal(written(EXIT_DONE), EXIT_FAILED);
	assert_string_equal(what_was_said(),
			    "xdp-pacer: events: the result cannot be written: it was ended while "
			    "nobody read it\n");
}

#define MI_LINES ((1 << 20) / sizeof(struct pacer_line))

/* The advice is of what helps: what is restored never shrinks. */
static void test_another_size(void **unused)
{
	static const struct {
		const char *policy, *file;
		uint64_t mi; /* that the state has */
		bool restored;
		const char *said;
	} rows[] = {
	    {"memory: 2Mi", "s0.state", 2, false, ""},
	    {"memory: 2Mi", "s0.state", 2, true, ""},
	    {"memory: 3Mi", "s0.state", 2, false,
	     "xdp-pacer: s0: memory: the state stays as large as it was at load: unload and load "
	     "to change it\n"},
	    {"memory: 1Mi", NULL, 2, false,
	     "xdp-pacer: s0: memory: the state stays as large as it was at load: to make it "
	     "smaller, unload, remove the file that a service saves it in (what it has counted "
	     "and banned goes with it), and load\n"},
	    {"memory: 1Mi", "s0.state", 2, false,
	     "xdp-pacer: s0: memory: the state stays as large as it was at load: to make it "
	     "smaller, unload, remove s0.state (what it has counted and banned goes with it), and "
	     "load\n"},
	    {"memory: 1Mi", "s0.state", 2, true,
	     "xdp-pacer: s0: memory: the state is as large as what was saved needs: to make it "
	     "smaller, unload, remove s0.state (what it has counted and banned goes with it), and "
	     "load\n"},
	    {"memory: 1Mi", NULL, 2, true,
	     "xdp-pacer: s0: memory: the state is as large as what was saved needs: to make it "
	     "smaller, unload, and load without --restore (what it has counted and banned "
	     "goes)\n"},
	    {"bans: 8", "s0.state", 65, false, ""}, /* which asks for no size */
	    {"bans: 8", NULL, 65, true,
	     "xdp-pacer: s0: memory: the state is as large as what was saved needs: to make it "
	     "smaller, unload, and load without --restore (what it has counted and banned "
	     "goes)\n"},
	    {"bans: 8", NULL, 64, true, ""},
	    {"withstand: 1kpps", "s0.state", 4096, false, ""}, /* it does */
	    {"withstand: 1kpps", "s0.state", 4096, true, ""},
	    {"withstand: 1Mpps", "s0.state", 0, false,
	     "xdp-pacer: s0: withstand: the state stays as large as it was at load: unload and "
	     "load to change it\n"},
	};
	char text[200];

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct attached a = {.ifname = "s0", .n_lines = rows[i].mi * MI_LINES};
		struct policy_error error = {0};
		struct policy *policy;

		snprintf(text, sizeof(text),
			 "%s\nrules: [{name: a, limits: [{key: src, packets: 9, window: 1s}]}]\n",
			 rows[i].policy);
		policy = policy_parse(text, strlen(text), &error);
		if (!policy)
			fail_msg("%s", error.text);
		memory_noted(&a, policy, rows[i].file, rows[i].restored);
		policy_free(policy);
		assert_string_equal(what_was_said(), rows[i].said);
		end(unused);
		begin(unused);
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_signals_that_cannot_be_held),
	    CASE(test_no_memory_to_give_way),
	    CASE(test_what_is_unsure_is_said_once),
	    CASE(test_cannot_wait),
	    CASE(test_ended_while_nobody_reads),
	    CASE(test_read_after_a_change),
	    CASE(test_another_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
