/* SPDX-License-Identifier: GPL-2.0-only */
/* What is served where memory or files run out: it is said, and nothing is left open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/http.h"

static struct policy_error error;
static char bound[HTTP_TEXT];

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

/* Its socket is closed, too. */
static void test_no_files(void **unused)
{
	const struct http_page page = {none, idle, NULL};
	int first = next_fd(), fd = http_listen("127.0.0.1:0", bound, &error);
	struct rlimit had = no_files_from(next_fd());

	(void)unused;
	assert_int_equal(http_serve(fd, &page, &error), -1);
	files_again(had);
	assert_string_equal(error.text, "the server does not run: Too many open files");
	assert_int_equal(next_fd(), first);
}

/* Who asks is told to ask again; then it is told to end. */
static void ask(uint16_t port, pid_t server)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
	static const char get[] = "GET /metrics HTTP/1.0\r\n\r\n";
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char said[1000] = "";
	size_t n = 0;
	ssize_t got;

	inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) ||
	    write(fd, get, sizeof(get) - 1) != sizeof(get) - 1)
		_exit(2);
	while (n < sizeof(said) - 1 && (got = read(fd, said + n, sizeof(said) - 1 - n)) > 0)
		n += (size_t)got;
	kill(server, SIGTERM);
	_exit(strstr(said, " 503 ") && strstr(said, "Retry-After: 10") &&
		      strstr(said, "no memory: try again")
		  ? 0
		  : 1);
}

static void test_no_page(void **unused)
{
	int made = 0, first = next_fd(), fd = http_listen("127.0.0.1:0", bound, &error), status;
	const struct http_page page = {none, idle, &made};
	uint16_t port = (uint16_t)atoi(strrchr(bound, ':') + 1);
	pid_t server = getpid(), child;
	sigset_t ends;

	(void)unused;
	assert_true(fd >= 0);
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	child = fork();
	if (!child)
		ask(port, server);
	assert_int_equal(http_serve(fd, &page, &error), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(made, 1);
	assert_int_equal(next_fd(), first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_addresses),
	    cmocka_unit_test(test_no_files),
	    cmocka_unit_test(test_no_page),
	};

	return cmocka_run_group_tests_name("http", tests, NULL, NULL);
}
