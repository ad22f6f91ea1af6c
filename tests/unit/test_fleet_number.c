/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The number of a fleet's member: the same for ever, and one agent at a time has it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/fleet_number.h"
#include "live/fleet_reserve.h"

static char folder[] = "/tmp/pacer-number-XXXXXX", said[2000];

/* The datapath that goes on with this member's reserve, for so many looks. */
static uint64_t reserve_of;
static uint32_t looks;

uint32_t fleet_reserve_elsewhere(uint64_t member, uint32_t but)
{
	assert_int_equal(but, 12345);
	return member == reserve_of && looks && looks-- ? 7 : 0;
}

static uint64_t waited_ms;

int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
	(void)fds;
	(void)n;
	waited_ms += (uint64_t)ms;
	return 0;
}

static int listen_to(int (*what)(void *), void *arg)
{
	FILE *f = tmpfile();
	int before = dup(STDERR_FILENO), code;
	size_t n;

	assert_non_null(f);
	fflush(NULL);
	assert_true(dup2(fileno(f), STDERR_FILENO) >= 0);
	code = what(arg);
	fflush(stderr);
	assert_true(dup2(before, STDERR_FILENO) >= 0);
	close(before);
	rewind(f);
	n = fread(said, 1, sizeof(said) - 1, f);
	said[n] = 0;
	fclose(f);
	return code;
}

struct asked {
	const char *state, *ifname;
	struct fleet_number *number;
};

static int ask(void *arg)
{
	struct asked *a = arg;

	return fleet_number(a->state, a->ifname, a->number);
}

static int ask_alone(void *arg)
{
	return fleet_number_alone(arg, "a", 12345);
}

static int number_of(const char *state, const char *ifname, struct fleet_number *number)
{
	return listen_to(ask, &(struct asked){state, ifname, number});
}

static const char *in_folder(const char *name)
{
	static char path[200];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void test_one_agent_at_a_time(void **unused)
{
	struct fleet_number first, other, second;

	(void)unused;
	assert_int_equal(number_of(folder, "a", &first), EXIT_DONE);
	assert_int_equal(number_of(folder, "a", &second), EXIT_FAILED);
	assert_non_null(strstr(said, "/a.member: another agent runs by the number in it"));
	assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
	assert_int_equal(number_of(in_folder("a.member"), "b", &second), EXIT_FAILED);
	assert_int_equal(number_of(folder, "b", &other), EXIT_DONE);
	assert_int_not_equal(first.id, other.id);
	fleet_number_free(&first);
	assert_int_equal(number_of(folder, "a", &second), EXIT_DONE);
	assert_int_equal(first.id, second.id);
	fleet_number_free(&second);
	fleet_number_free(&other);
}

/* By its reserve a datapath may go on without its agent. */
static void test_one_datapath_at_a_time(void **unused)
{
	struct fleet_number number;

	(void)unused;
	assert_int_equal(number_of(folder, "a", &number), EXIT_DONE);
	assert_int_equal(listen_to(ask_alone, &number), EXIT_DONE);
	assert_int_equal(waited_ms, 0);
	reserve_of = number.id;
	looks = 1000;
	assert_int_equal(listen_to(ask_alone, &number), EXIT_FAILED);
	assert_in_range(waited_ms, 3000, 3100);
	assert_non_null(strstr(said,
			       "/a.member: another pacer of this host goes on with the reserve "
			       "of the number in it (control map 7)"));
	assert_non_null(strstr(said, "if its policy is of no fleet, apply that once more"));
	assert_non_null(strstr(said, "--state with a file of its own for a\n"));
	assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
	looks = 60; /* it goes a moment later */
	assert_int_equal(listen_to(ask_alone, &number), EXIT_DONE);
	assert_string_equal(said, "");
	reserve_of = number.id + 1;
	looks = 1000;
	assert_int_equal(listen_to(ask_alone, &number), EXIT_DONE);
	fleet_number_free(&number);
}

static void test_no_number(void **unused)
{
	static const char *const texts[] = {"", "0\n", "12", "x\n", "8000000000000000\n"};
	struct fleet_number number;

	(void)unused;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		FILE *f = fopen(in_folder("odd"), "w");

		assert_non_null(f);
		fputs(texts[i], f);
		fclose(f);
		assert_int_equal(number_of(in_folder("odd"), "a", &number), EXIT_FAILED);
		assert_non_null(strstr(said, "/odd: it holds no member's number"));
		assert_null(number.file);
	}
	assert_int_equal(number_of(in_folder("none/at/all"), "a", &number), EXIT_FAILED);
	assert_non_null(strstr(said, "cannot be kept there: No such file or directory: make that "
				     "folder for the user who runs this, or say --state FOLDER"));
	assert_int_equal(number_of(in_folder("odd/file"), "a", &number), EXIT_FAILED);
	assert_non_null(strstr(said, "Not a directory: see that it can be written to, or say"));
}

/* It is not waited for: the agent's signals wait for what it does. */
static void test_a_pipe(void **unused)
{
	struct fleet_number number;

	(void)unused;
	assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
	alarm(60);
	assert_int_equal(number_of(in_folder("pipe"), "a", &number), EXIT_FAILED);
	alarm(0);
	assert_non_null(strstr(said, "/pipe: is no regular file: name one"));
	assert_null(number.file);
}

static int begin(void **unused)
{
	(void)unused;
	return mkdtemp(folder) ? 0 : -1;
}

static int end(void **unused)
{
	static const char *const names[] = {"a.member", "b.member", "odd", "pipe"};

	(void)unused;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		unlink(in_folder(names[i]));
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_one_agent_at_a_time),
	    cmocka_unit_test(test_one_datapath_at_a_time),
	    cmocka_unit_test(test_no_number),
	    cmocka_unit_test(test_a_pipe),
	};

	return cmocka_run_group_tests_name("fleet_number", tests, begin, end);
}
