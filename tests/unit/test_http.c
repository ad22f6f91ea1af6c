/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is served where memory or files run out: it is said, and nothing is left open. And who takes
 * long to ask, on a clock of the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/http.h"
#include "live/ends.h"

static struct policy_error error;
static char bound[HTTP_TEXT];

/* --- the clock: it stands, but for what a test lets pass ----------------------------------------
 */

static uint64_t now_ms;
static bool waits; /* each wait takes as long as it may, and no time of the machine's */

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __real_poll(struct pollfd *at, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *at, nfds_t n, int timeout_ms);

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	(void)clock;
	*t = (struct timespec){(time_t)(now_ms / 1000), (long)(now_ms % 1000) * 1000000};
	return 0;
}

int __wrap_poll(struct pollfd *at, nfds_t n, int timeout_ms)
{
	if (!waits)
		return __real_poll(at, n, timeout_ms);
	now_ms += (uint64_t)timeout_ms;
	return __real_poll(at, n, 0);
}

/* --- what is served --------------------------------------------------------------------------- */

/* The number that the next open file would have. */
static int next_fd(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

/* Files from that number on cannot be opened. */
static struct rlimit no_files_from(int fd)
{
	struct rlimit had, few;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &had), 0);
	few = (struct rlimit){(rlim_t)fd, had.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	return had;
}

static void files_again(struct rlimit had)
{
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &had), 0);
}

static void test_addresses(void **unused)
{
	static const char *const wrong[] = {"",	       ":",
					    "[]:80",   "[x]:1",
					    "[:1",     "x]:1",
					    "[1:1",    "::1:1",
					    "1.2.3.4", "1:",
					    "1:65536", "1:1x",
					    "[::1:80", "1:0000000000000000000000000000000080"};
	int fd = http_listen("127.0.0.1:0", bound, &error), own = next_fd();
	struct rlimit had;

	(void)unused;
	assert_true(fd >= 0);
	assert_ptr_equal(strstr(bound, "127.0.0.1:"), bound);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(http_listen(wrong[i], bound, &error), -1);
		assert_int_equal(error.line, 1);
	}
	assert_int_equal(http_listen(bound, bound, &error), -1);
	assert_non_null(strstr(error.text, "the port is taken"));
	assert_int_equal(next_fd(), own);
	close(fd);
	had = no_files_from(next_fd());
	assert_int_equal(http_listen("127.0.0.1:0", bound, &error), -1);
	files_again(had);
	assert_string_equal(error.text,
			    "127.0.0.1:0: nothing can listen there: Too many open files");
}

static char *none(const char *accept, size_t *len, const char **type, void *arg)
{
	(void)accept;
	(void)len;
	(void)type;
	++*(int *)arg;
	return NULL;
}

static void idle(void *arg)
{
	(void)arg;
}

/* Its socket is closed, too. In a process of its own, whose limit can be raised no more. */
static void test_no_files(void **unused)
{
	const struct http_page page = {none, idle, NULL};
	int first = next_fd(), fd = http_listen("127.0.0.1:0", bound, &error), status;
	struct rlimit few = {(rlim_t)next_fd(), (rlim_t)next_fd()};
	pid_t child = fork();

	(void)unused;
	if (!child)
		_exit(setrlimit(RLIMIT_NOFILE, &few) || http_serve(fd, &page, &error) != -1 ||
		      strcmp(error.text, "the server does not run: Too many open files") != 0 ||
		      next_fd() != first);
	close(fd);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static int connected(uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
	return connect(fd, (struct sockaddr *)&at, sizeof(at)) ? -1 : fd;
}

static bool sends(int fd, const char *text)
{
	return write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* Reads until the end, or until what was read ends as said. */
static bool reads(int fd, char said[1000], const char *until)
{
	size_t n = 0;
	ssize_t got;

	memset(said, 0, 1000);
	while (n < 999 && (got = read(fd, said + n, 999 - n)) > 0) {
		n += (size_t)got;
		if (until && n >= strlen(until) && !strcmp(said + n - strlen(until), until))
			return true;
	}
	return !until;
}

static char said[1000];

/* Who asks is told to ask again. */
static bool ask(int fd)
{
	return sends(fd, "GET /metrics HTTP/1.0\r\n\r\n") && reads(fd, said, NULL) &&
	       strstr(said, " 503 ") && strstr(said, "Retry-After: 10") &&
	       strstr(said, "no memory: try again");
}

/* It is cut off before its request is whole, and before the library's own ten seconds are over. */
static bool ask_in_part(int fd)
{
	static const struct timeval patience = {.tv_sec = 5};

	return !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) &&
	       sends(fd, "GET /metr") && !read(fd, said, sizeof(said));
}

/* One connection for many requests, whatever time they take together. */
static bool ask_often(int fd)
{
	for (int i = 0; i < 9; i++)
		if (!sends(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n") ||
		    !reads(fd, said, "a page") || !strstr(said, " 200 "))
			return false;
	return true;
}

/* An escaped NUL ends no path. */
static bool ask_beyond(int fd)
{
	return sends(fd, "GET /metrics%00x HTTP/1.0\r\n\r\n") && reads(fd, said, NULL) &&
	       strstr(said, " 404 ");
}

static bool ask_escaped(int fd)
{
	return sends(fd, "GET /%6detrics HTTP/1.0\r\n\r\n") && reads(fd, said, "a page") &&
	       strstr(said, " 200 ");
}

static sigset_t sigterm(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	return set;
}

/* Serves a client in a process of its own, which then tells it to end. Returns how often the page
 * was made. */
static int serve(bool (*client)(int fd),
		 char *(*page_of)(const char *accept, size_t *len, const char **type, void *arg))
{
	int made = 0, first = next_fd(), fd = http_listen("127.0.0.1:0", bound, &error), status;
	const struct http_page page = {page_of, idle, &made};
	uint16_t port = (uint16_t)atoi(strrchr(bound, ':') + 1);
	pid_t server = getpid(), child;
	sigset_t ends = sigterm();

	assert_true(fd >= 0);
	child = fork();
	if (!child) {
		bool right;

		close(fd); /* or nobody would be told that the server has gone */
		right = client(connected(port));
		kill(server, SIGTERM);
		_exit(!right);
	}
	assert_int_equal(http_serve(fd, &page, &error), 0);
	assert_int_equal(sigwait(&ends, &status), 0); /* the next one is not to see it */
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(next_fd(), first);
	return made;
}

static void test_no_page(void **unused)
{
	(void)unused;
	assert_int_equal(serve(ask, none), 1);
}

/* Each takes long to make, but not too long. */
static char *long_page(const char *accept, size_t *len, const char **type, void *arg)
{
	(void)accept;
	*type = "text/plain";
	*len = strlen("a page");
	now_ms += (HTTP_REQUEST_S - 1) * 1000;
	++*(int *)arg;
	return strdup("a page");
}

static void test_slow(void **unused)
{
	(void)unused;
	waits = true;
	assert_int_equal(serve(ask_in_part, none), 0);
	waits = false;
	assert_int_equal(serve(ask_often, long_page), 9);
}

static void test_paths(void **unused)
{
	(void)unused;
	assert_int_equal(serve(ask_beyond, long_page), 0);
	assert_int_equal(serve(ask_escaped, long_page), 1);
}

/* Who was told where it listens, and ends it before it serves. */
static void test_ended_early(void **unused)
{
	const struct http_page page = {none, idle, NULL};
	sigset_t ends = sigterm();
	int first = next_fd(), fd, signal;

	(void)unused;
	sigprocmask(SIG_UNBLOCK, &ends, NULL);
	fd = http_listen("127.0.0.1:0", bound, &error);
	assert_int_equal(kill(getpid(), SIGTERM), 0);
	assert_int_equal(http_serve(fd, &page, &error), 0);
	assert_int_equal(sigwait(&ends, &signal), 0);
	assert_int_equal(next_fd(), first);
}

/* So that its descriptor is there before the first that is counted. */
static int hold(void **unused)
{
	(void)unused;
	return ends_hold(ENDS_OF_SERVICE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_addresses), cmocka_unit_test(test_no_files),
	    cmocka_unit_test(test_no_page),   cmocka_unit_test(test_slow),
	    cmocka_unit_test(test_paths),     cmocka_unit_test(test_ended_early),
	};

	return cmocka_run_group_tests_name("http", tests, hold, NULL);
}
