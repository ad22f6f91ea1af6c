/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a program begins with that finds its first three descriptors closed. In a process of its
 * own, which has nobody whom it could tell more than its exit status.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "live/descriptors.h"

/* As if it were closed, and nothing else gets its number. */
static bool is_of_no_use(int fd)
{
	char byte = 0;
	ssize_t n = fd ? write(fd, &byte, 1) : read(fd, &byte, 1);

	return n < 0 && errno == EBADF && fcntl(fd, F_GETFD) >= 0;
}

static int without(int closed)
{
	int status;
	pid_t child = fork();

	if (!child) {
		for (int fd = 0; fd < 3; fd++)
			if (closed & 1 << fd)
				close(fd);
		if (!descriptors_open_standard())
			_exit(1);
		for (int fd = 0; fd < 3; fd++)
			if (closed & 1 << fd && !is_of_no_use(fd))
				_exit(2 + fd);
		_exit(open("/dev/null", O_RDONLY) > 2 ? 0 : 5);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void test_closed(void **unused)
{
	(void)unused;
	for (int closed = 0; closed < 8; closed++)
		assert_int_equal(without(closed), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
