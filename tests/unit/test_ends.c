/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The signals that end what goes on: whatever else is ready, and whoever does not read. A process
 * of its own is told to end while it waits, which it has said, and an alarm ends a test that hangs.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "live/ends.h"

static struct {
	int refused; /* so many writes, before the next one is what it is */
	int why;     /* their errno */
	bool ends;   /* an end comes with the last of them */
	bool no_memory;
} befalls;

ssize_t __real_write(int fd, const void *bytes, size_t len);
ssize_t __wrap_write(int fd, const void *bytes, size_t len);
FILE *__real_fopencookie(void *cookie, const char *how, cookie_io_functions_t calls);
FILE *__wrap_fopencookie(void *cookie, const char *how, cookie_io_functions_t calls);

ssize_t __wrap_write(int fd, const void *bytes, size_t len)
{
	if (!befalls.refused)
		return __real_write(fd, bytes, len);
	if (!--befalls.refused && befalls.ends)
		raise(SIGTERM);
	errno = befalls.why;
	return -1;
}

FILE *__wrap_fopencookie(void *cookie, const char *how, cookie_io_functions_t calls)
{
	return befalls.no_memory ? NULL : __real_fopencookie(cookie, how, calls);
}

#define HANGS_S 60 /* no machine is that slow */
#define LINE	"a line of what somebody may read\n"

static sigset_t ends_mask(void)
{
	sigset_t mask;

	sigprocmask(SIG_BLOCK, NULL, &mask);
	return mask;
}

/* In a process of its own. Returns how it ended, as waitpid() has it. */
static int ended(void (*is)(void))
{
	pid_t child = fork();
	int status;

	if (!child) {
		alarm(HANGS_S);
		/* Ignored under nohup, and of what a shell runs in the background. */
		signal(SIGHUP, SIG_DFL);
		signal(SIGINT, SIG_DFL);
		signal(SIGQUIT, SIG_DFL);
		is();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

/* There: nobody hears what cmocka says of it. */
static void be(bool is, int line)
{
	if (is)
		return;
	fprintf(stderr, "%s:%d: it is not so\n", __FILE__, line);
	_exit(1);
}
#define BE(it) be(it, __LINE__)

/* --- the signals */

static void held_until_released(void)
{
	BE(ends_fd() < 0 && !ends_came() && !ends_wait(1));
	BE(!ends_hold(ENDS_OF_COMMAND));
	BE(ends_fd() >= 0 && !ends_came() && !ends_wait(1));
	raise(SIGHUP);
	BE(ends_came() && ends_came() && ends_wait(UINT64_MAX / 2));
	BE(!ends_hold(ENDS_OF_COMMAND)); /* as a part of it may, too */
	BE(ends_came());
	ends_release();
}

static void not_held(void)
{
	BE(!ends_hold(ENDS_OF_SERVICE));
	raise(SIGHUP);
}

static void nohup(void)
{
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	BE(!ends_hold(ENDS_OF_COMMAND));
	raise(SIGHUP);
	raise(SIGINT);
	BE(!ends_came());
	BE(!ends_hold(ENDS_OF_SERVICE));
	raise(SIGINT);
	BE(ends_came());
}

static void as_before(void)
{
	sigset_t mask;

	BE(!ends_hold(ENDS_OF_COMMAND));
	BE(!ends_hold(ENDS_OF_COMMAND));
	mask = ends_mask();
	BE(sigismember(&mask, SIGTERM) && sigismember(&mask, SIGQUIT));
	ends_release();
	ends_release();
	mask = ends_mask();
	BE(!sigismember(&mask, SIGTERM) && !sigismember(&mask, SIGQUIT) && ends_fd() < 0);
}

static void without_descriptors(void)
{
	struct rlimit none = {3, 3};
	sigset_t mask;

	BE(!setrlimit(RLIMIT_NOFILE, &none));
	while (dup(0) >= 0)
		;
	BE(ends_hold(ENDS_OF_SERVICE) == -1 && errno == EMFILE);
	mask = ends_mask();
	BE(!sigismember(&mask, SIGTERM));
	ends_release();
}

static void test_signals(void **unused)
{
	(void)unused;
	assert_int_equal(ended(held_until_released), SIGHUP);
	assert_int_equal(ended(not_held), SIGHUP);
	assert_int_equal(ended(nohup), 0);
	assert_int_equal(ended(as_before), 0);
	assert_int_equal(ended(without_descriptors), 0);
}

/* --- what is written */

/* Nobody reads, so that it is full at some time, or has been so from the beginning. */
struct stalled {
	int reader, writer;
	bool terminal;
	bool partly; /* poll() may find room for ever, and a write none */
};

static bool is_full(int fd)
{
	struct pollfd room = {fd, POLLOUT, 0};

	return poll(&room, 1, 0) == 0;
}

static struct stalled a_pipe(void)
{
	int fd[2];

	assert_int_equal(pipe(fd), 0);
	assert_true(fcntl(fd[1], F_SETPIPE_SZ, 4096) > 0);
	return (struct stalled){.reader = fd[0], .writer = fd[1]};
}

static struct stalled a_socket(void)
{
	int fd[2], size = 4096;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	assert_int_equal(setsockopt(fd[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	return (struct stalled){.reader = fd[0], .writer = fd[1]};
}

/* Somebody has typed ctrl-S. */
static struct stalled a_terminal(void)
{
	struct stalled s = {.terminal = true};

	assert_int_equal(openpty(&s.reader, &s.writer, NULL, NULL, NULL), 0);
	assert_int_equal(tcflow(s.writer, TCOOFF), 0);
	return s;
}

/* Of which poll() says that there is room, though it is too little for all of a write. */
static struct stalled an_unread_terminal(void)
{
	struct stalled s = {.terminal = true, .partly = true};
	struct termios raw;

	assert_int_equal(openpty(&s.reader, &s.writer, NULL, NULL, NULL), 0);
	assert_int_equal(tcgetattr(s.writer, &raw), 0);
	cfmakeraw(&raw); /* a line's end would want two places, of which one may be left for good */
	assert_int_equal(tcsetattr(s.writer, TCSANOW, &raw), 0);
	return s;
}

/* A pipe that cannot be opened by its name, as it is somebody else's. */
static struct stalled anothers_pipe(void)
{
	struct stalled s = a_pipe();

	assert_int_equal(fchmod(s.writer, 0), 0);
	if (!geteuid()) {
		assert_int_equal(fchown(s.writer, 65534, 65534), 0);
	}
	return s;
}

/* Fills it, and goes on until an end comes; then nothing more is written, nor waited for.
 */
static void fill(struct stalled s, bool unprivileged, int ready)
{
	FILE *stream;

	alarm(HANGS_S);
	close(s.reader);
	BE(!unprivileged || geteuid() || !setuid(65533));
	stream = ends_stream(s.writer);
	BE(stream && !ends_hold(ENDS_OF_SERVICE) && write(ready, "", 1) == 1);
	while (fputs(LINE, stream) >= 0)
		;
	BE(errno == EINTR && ends_came());
	BE(!(fcntl(s.writer, F_GETFL) & O_NONBLOCK)); /* others have it, too */
	clearerr(stream);
	while (fputs(LINE, stream) >= 0 && !fflush(stream))
		; /* of a terminal, the kernel may take some as late as now */
	BE(errno == EINTR);
}

static void ends_while_nobody_reads(struct stalled s, bool unprivileged)
{
	int ready[2], status;
	pid_t child;
	char byte;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (!child) {
		fill(s, unprivileged, ready[1]);
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	while (!s.partly && !is_full(s.writer))
		assert_int_equal(waitpid(child, &status, WNOHANG), 0);
	assert_int_equal(kill(child, SIGTERM), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(s.reader);
	close(s.writer);
}

static void test_nobody_reads(void **unused)
{
	(void)unused;
	ends_while_nobody_reads(a_pipe(), false);
	ends_while_nobody_reads(a_socket(), false);
	ends_while_nobody_reads(a_terminal(), false);
	ends_while_nobody_reads(an_unread_terminal(), false);
	ends_while_nobody_reads(anothers_pipe(), true);
}

/* All of it, in its order, whoever reads late and whatever has come. */
static void all_is_read(struct stalled s)
{
	static char text[8192];
	size_t lines = 0, at = 0;
	pid_t child = fork();
	FILE *from;
	int status;

	if (!child) {
		FILE *stream = ends_stream(s.writer);

		alarm(HANGS_S);
		close(s.reader);
		BE(stream && !ends_hold(ENDS_OF_SERVICE));
		for (int i = 0; i < 5000; i++)
			BE(fprintf(stream, "%d " LINE, i) > 0);
		BE(!fclose(stream));
		_exit(0);
	}
	while (!is_full(s.writer))
		assert_int_equal(waitpid(child, &status, WNOHANG), 0);
	if (s.terminal)
		assert_int_equal(tcflow(s.writer, TCOON), 0);
	else
		close(s.writer);
	from = fdopen(s.reader, "r");
	for (; lines < 5000 && fgets(text, sizeof(text), from); lines++) {
		assert_int_equal(strtoul(text, NULL, 10), lines);
		at = strcspn(text, " ") + 1;
		assert_memory_equal(text + at, LINE, strlen(LINE) - 1);
	}
	assert_int_equal(lines, 5000);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	fclose(from);
	if (s.terminal) /* of which the rest would be lost */
		close(s.writer);
}

static void test_somebody_reads(void **unused)
{
	(void)unused;
	all_is_read(a_pipe());
	all_is_read(a_socket());
	all_is_read(a_terminal());
}

/* What there is room for is written, though an end has come. */
static void writes_at_the_end(void)
{
	struct stalled s = a_pipe();
	FILE *stream = ends_stream(s.writer);
	char text[64] = "";

	BE(stream && !ends_hold(ENDS_OF_SERVICE));
	raise(SIGTERM);
	BE(fputs(LINE, stream) >= 0 && !fflush(stream));
	BE(read(s.reader, text, sizeof(text)) == (ssize_t)strlen(LINE) && !strcmp(text, LINE));
}

static void a_reader_that_goes(void)
{
	struct stalled s = a_pipe();
	FILE *stream = ends_stream(s.writer);

	signal(SIGPIPE, SIG_IGN);
	BE(stream && !ends_hold(ENDS_OF_SERVICE));
	close(s.reader);
	BE(fputs(LINE, stream) >= 0 && fflush(stream) && errno == EPIPE);
	BE(fclose(stream) == 0 || errno == EPIPE);
	BE(fcntl(s.writer, F_GETFD) < 0);
}

static void no_disk(void)
{
	FILE *stream = ends_stream(open("/dev/full", O_WRONLY));

	BE(stream && fputs(LINE, stream) >= 0 && fflush(stream) && errno == ENOSPC);
}

/* Of which poll() never says that there is room: such as stderr, begun with `2<FIFO`. */
static void open_for_reading(void)
{
	struct stalled s = a_pipe();
	FILE *stream = ends_stream(s.reader);

	BE(stream && !ends_hold(ENDS_OF_SERVICE));
	BE(fputs(LINE, stream) >= 0 && fflush(stream) && errno == EBADF && !ends_came());
	BE(fclose(stream) == 0 || errno == EBADF);
	BE(fcntl(s.reader, F_GETFD) < 0);
}

static void a_socket_that_is_left(void)
{
	struct stalled s = a_socket();
	FILE *stream = ends_stream(s.writer);

	signal(SIGPIPE, SIG_IGN);
	BE(stream && !ends_hold(ENDS_OF_SERVICE));
	close(s.reader);
	BE(fputs(LINE, stream) >= 0 && fflush(stream) && errno == EPIPE);
}

/* What is written to one that is closed fails, and waits for nobody. */
static void of_no_descriptor(void)
{
	FILE *stream = ends_stream(1000);

	BE(stream && fputs(LINE, stream) >= 0 && fflush(stream) && errno == EBADF);
}

/* There is room, and yet too little, as of a serial line; or a signal that ends nothing comes. */
static void is_tried_again(int why)
{
	struct stalled s = a_pipe();
	FILE *stream = ends_stream(s.writer);
	char text[64] = "";

	BE(stream && !ends_hold(ENDS_OF_SERVICE));
	befalls.refused = 2;
	befalls.why = why;
	BE(fputs(LINE, stream) >= 0 && !fflush(stream) && !befalls.refused);
	BE(read(s.reader, text, sizeof(text)) == (ssize_t)strlen(LINE) && !strcmp(text, LINE));
}

static void too_little_room(void)
{
	is_tried_again(EAGAIN);
}

static void an_interruption(void)
{
	is_tried_again(EINTR);
}

static void too_little_room_at_the_end(void)
{
	struct stalled s = a_pipe();
	FILE *stream = ends_stream(s.writer);

	BE(stream && !ends_hold(ENDS_OF_SERVICE));
	befalls.refused = 1;
	befalls.why = EAGAIN;
	befalls.ends = true;
	BE(fputs(LINE, stream) >= 0 && fflush(stream) && errno == EINTR && ends_came());
}

/* So many at once and no more; one that could not be made takes no place. */
static void no_more_streams(void)
{
	FILE *stream[ENDS_STREAMS];

	befalls.no_memory = true;
	BE(!ends_stream(open("/dev/null", O_WRONLY)));
	befalls.no_memory = false;
	for (int i = 0; i < ENDS_STREAMS; i++) {
		stream[i] = ends_stream(open("/dev/null", O_WRONLY));
		BE(stream[i]);
	}
	BE(!ends_stream(open("/dev/null", O_WRONLY)));
	BE(!fclose(stream[0]) && ends_stream(open("/dev/null", O_WRONLY)));
}

/* No descriptor may be waited for any more: that is an end, since none could be seen. What there is
 * room for is written. */
static void no_descriptors(void)
{
	const struct rlimit none = {0, 0};
	struct stalled s = a_pipe();
	FILE *stream = ends_stream(s.writer);
	char text[64] = "";

	BE(stream && !ends_hold(ENDS_OF_SERVICE));
	BE(!ends_came() && !ends_blind() && !setrlimit(RLIMIT_NOFILE, &none));
	BE(ends_came() && ends_wait(3600000000000) && ends_blind() == EINVAL);
	BE(fputs(LINE, stream) >= 0 && !fflush(stream));
	BE(read(s.reader, text, sizeof(text)) == (ssize_t)strlen(LINE) && !strcmp(text, LINE));
	while (fputs(LINE, stream) >= 0)
		;
	BE(errno == EINTR);
}

static void test_blind(void **unused)
{
	(void)unused;
	assert_int_equal(ended(no_descriptors), 0);
}

static void test_writes(void **unused)
{
	(void)unused;
	assert_int_equal(ended(writes_at_the_end), 0);
	assert_int_equal(ended(a_reader_that_goes), 0);
	assert_int_equal(ended(no_disk), 0);
	assert_int_equal(ended(open_for_reading), 0);
	assert_int_equal(ended(a_socket_that_is_left), 0);
	assert_int_equal(ended(of_no_descriptor), 0);
	assert_int_equal(ended(too_little_room), 0);
	assert_int_equal(ended(an_interruption), 0);
	assert_int_equal(ended(too_little_room_at_the_end), 0);
	assert_int_equal(ended(no_more_streams), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_signals),	   cmocka_unit_test(test_nobody_reads),
	    cmocka_unit_test(test_somebody_reads), cmocka_unit_test(test_writes),
	    cmocka_unit_test(test_blind),
	};

	alarm(10 * HANGS_S);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
