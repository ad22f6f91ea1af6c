/* SPDX-License-Identifier: GPL-2.0-only */
/* What a service tells its manager: to a socket that has room and to one that has none, at once. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/cmd.h"
#include "cli/notify.h"

#define WAITED_S 20 /* a call that waits ends the test */

static char folder[] = "/tmp/test_notify.XXXXXX";
static char name[108]; /* of the manager's socket */
static char said[2000];
static int manager = -1;

void complaint(const char *format, ...)
{
	size_t n = strlen(said);
	va_list args;

	va_start(args, format);
	vsnprintf(said + n, sizeof(said) - n, format, args);
	va_end(args);
}

/* A path, or '@' and a name. */
static void listen_at(const char *at)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t n = strlen(at);

	memcpy(to.sun_path, at, n);
	if (*at == '@')
		*to.sun_path = 0;
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(manager >= 0);
	assert_int_equal(bind(manager, (struct sockaddr *)&to,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)),
			 0);
	setenv("NOTIFY_SOCKET", at, 1);
}

static int begin(void **unused)
{
	(void)unused;
	*said = 0;
	assert_non_null(strcpy(folder + sizeof(folder) - 7, "XXXXXX"));
	assert_non_null(mkdtemp(folder));
	snprintf(name, sizeof(name), "%s/notify", folder);
	listen_at(name);
	alarm(WAITED_S);
	return 0;
}

static int end(void **unused)
{
	(void)unused;
	alarm(0);
	close(manager);
	unlink(name);
	rmdir(folder);
	return 0;
}

/* What the manager has got next; "": nothing. */
static const char *heard(void)
{
	static char text[4096];
	ssize_t n = recv(manager, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = 0;
	return n ? text : "an empty one";
}

/* Until there is no room. */
static void fill(void)
{
	while (!notify_status("full"))
		;
	assert_int_equal(errno, EAGAIN);
}

static void drain(void)
{
	while (*heard())
		;
}

static void test_told(void **unused)
{
	(void)unused;
	assert_int_equal(notify_again(), 0); /* nothing is due */
	assert_string_equal(heard(), "");
	assert_int_equal(notify_ready("pacing"), 0);
	assert_string_equal(heard(), "READY=1\nSTATUS=pacing\n");
	assert_int_equal(notify_ready(NULL), 0);
	assert_string_equal(heard(), "READY=1\n");
	assert_int_equal(notify_status("%d bytes", 7), 0);
	assert_string_equal(heard(), "STATUS=7 bytes\n");
	assert_int_equal(notify_stopping("saving"), 0);
	assert_string_equal(heard(), "STOPPING=1\nSTATUS=saving\n");
	assert_int_equal(notify_again(), 0); /* each is told once */
	assert_string_equal(heard(), "");
	assert_string_equal(said, "");
}

/* Its reader stands still: nothing waits, and what was not taken is told later, of each the last.
 */
static void test_full(void **unused)
{
	(void)unused;
	fill();
	assert_int_equal(notify_ready("pacing"), EAGAIN);
	assert_string_equal(said, "systemd cannot be told that it is ready, and may end it: nobody "
				  "reads its socket; it is told again until it hears");
	assert_int_equal(notify_again(), EAGAIN);
	assert_int_equal(notify_status("saved"), EAGAIN);
	drain();
	assert_int_equal(notify_again(), 0);
	assert_string_equal(heard(), "READY=1\nSTATUS=saved\n");
	fill();
	assert_int_equal(notify_stopping(NULL), EAGAIN);
	drain();
	assert_int_equal(notify_again(), 0);
	assert_string_equal(heard(), "STOPPING=1\nSTATUS=full\n");
	assert_int_equal(notify_again(), 0);
	assert_string_equal(heard(), "");
}

static void test_a_name_of_no_file(void **unused)
{
	char at[64];

	(void)unused;
	close(manager);
	snprintf(at, sizeof(at), "@test_notify-%d", (int)getpid());
	listen_at(at);
	assert_int_equal(notify_ready(NULL), 0);
	assert_string_equal(heard(), "READY=1\n");
}

/* Nobody wants to know: what was due is due no more by the time that somebody does. */
static void test_no_manager(void **unused)
{
	(void)unused;
	unsetenv("NOTIFY_SOCKET");
	assert_int_equal(notify_ready("pacing"), 0);
	assert_int_equal(notify_stopping(NULL), 0);
	assert_int_equal(notify_status("saved"), 0);
	assert_string_equal(heard(), "");
	assert_string_equal(said, "");
	setenv("NOTIFY_SOCKET", name, 1);
	assert_int_equal(notify_again(), 0);
	assert_string_equal(heard(), "");
}

static void test_wrong_names(void **unused)
{
	char longest[128];

	(void)unused;
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	*longest = '/';
	setenv("NOTIFY_SOCKET", longest, 1);
	assert_int_equal(notify_ready(NULL), EINVAL);
	longest[108] = 0; /* its end would have no room */
	setenv("NOTIFY_SOCKET", longest, 1);
	assert_int_equal(notify_again(), EINVAL);
	longest[107] = 0;
	setenv("NOTIFY_SOCKET", longest, 1);
	assert_int_equal(notify_again(), ENOENT);
	setenv("NOTIFY_SOCKET", "@", 1);
	assert_int_equal(notify_again(), EINVAL);
	setenv("NOTIFY_SOCKET", "vsock:2:1", 1);
	assert_int_equal(notify_again(), EINVAL);
	assert_non_null(strstr(said, "may end it: Invalid argument; it is told again"));
	setenv("NOTIFY_SOCKET", name, 1);
	assert_int_equal(notify_again(), 0);
	assert_string_equal(heard(), "READY=1\n");
}

/* No descriptor is to be had for a while; and none is kept. */
static void test_no_descriptor(void **unused)
{
	struct rlimit was, none;
	int next = dup(0);

	(void)unused;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = 0;
	close(next);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(notify_ready(NULL), EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(notify_again(), 0);
	assert_string_equal(heard(), "READY=1\n");
	assert_int_equal(dup(0), next);
	close(next);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_told),	   CASE(test_full),	   CASE(test_a_name_of_no_file),
	    CASE(test_no_manager), CASE(test_wrong_names), CASE(test_no_descriptor),
	};

	return cmocka_run_group_tests_name("notify", tests, NULL, NULL);
}
