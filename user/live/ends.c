/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/ends.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_MS 20 /* where there is room, and yet too little */

static struct {
	bool on;
	sigset_t ends, before;
	int fd;
	int blind; /* an errno */
} held = {.fd = -1};

/* --- the signals ------------------------------------------------------------------------------ */

static bool is_ignored(int number)
{
	struct sigaction is;

	return !sigaction(number, NULL, &is) && is.sa_handler == SIG_IGN;
}

static sigset_t set_of(enum ends_of of)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
	size_t n = of == ENDS_OF_SERVICE ? 2 : sizeof(signals) / sizeof(*signals);
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < n; i++)
		if (of == ENDS_OF_SERVICE || !is_ignored(signals[i]))
			sigaddset(&set, signals[i]);
	return set;
}

int ends_hold(enum ends_of of)
{
	sigset_t ends = set_of(of), before;
	int fd = signalfd(held.fd, &ends, SFD_CLOEXEC | SFD_NONBLOCK);

	if (fd < 0)
		return -1;
	sigprocmask(SIG_BLOCK, &ends, &before);
	if (!held.on)
		held.before = before;
	held.on = true;
	held.ends = ends;
	held.fd = fd;
	return 0;
}

void ends_release(void)
{
	if (!held.on)
		return;
	held.on = false;
	close(held.fd);
	held.fd = -1;
	sigprocmask(SIG_SETMASK, &held.before, NULL);
}

int ends_fd(void)
{
	return held.fd;
}

/*
 * Of a poll(): it failed, and will again, as where a process may have no descriptors any more. No
 * end could be seen from now on, so this is one.
 */
static bool is_blind(int n)
{
	if (n >= 0 || errno == EINTR || errno == ENOMEM)
		return false;
	held.blind = errno;
	return true;
}

int ends_blind(void)
{
	return held.blind;
}

static bool came_within(const struct timespec *left)
{
	struct pollfd come = {held.fd, POLLIN, 0};
	int n = ppoll(&come, 1, left, NULL);

	return n > 0 || is_blind(n);
}

bool ends_came(void)
{
	return came_within(&(struct timespec){0, 0});
}

bool ends_wait(uint64_t ns)
{
	return came_within(&(struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)});
}

/* --- what is written -------------------------------------------------------------------------- */

struct outlet {
	bool used;
	bool refuses; /* each write, as it is open for reading alone: there is never room */
	int fd;
	int own; /* the same pipe or terminal, of which a write does not block; or fd */
};

static bool is_for_reading(int fd)
{
	return (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
}

/*
 * That fd itself does not block would be so for all who have it, such as the shell. A pipe of
 * somebody else's cannot be opened: a page fits where poll() found room, unless others write, too.
 */
static int open_own(int fd)
{
	struct termios unused;
	struct stat st;
	char path[32];
	int own = -1;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!fstat(fd, &st) && (S_ISFIFO(st.st_mode) || !tcgetattr(fd, &unused)))
		own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return own < 0 ? fd : own;
}

/* False: an end came before. Of what is broken the write says so. */
static bool has_room(const struct outlet *o)
{
	struct pollfd at[] = {{o->fd, POLLOUT, 0}, {held.fd, POLLIN, 0}};

	while (!o->refuses && !at[0].revents) {
		if (at[1].revents)
			return false;
		if (is_blind(poll(at, 2, -1)))
			return true; /* perhaps */
	}
	return true;
}

static ssize_t write_some(const struct outlet *o, const char *bytes, size_t len)
{
	ssize_t n = send(o->fd, bytes, len, MSG_DONTWAIT);

	if (n >= 0 || errno != ENOTSOCK)
		return n;
	return write(o->own, bytes, len < PIPE_BUF ? len : PIPE_BUF);
}

static ssize_t write_all(void *outlet, const char *bytes, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n;

		if (!has_room(outlet)) {
			errno = EINTR;
			break;
		}
		n = write_some(outlet, bytes + done, len - done);
		done += n > 0 ? (size_t)n : 0;
		if (n >= 0 || errno == EINTR)
			continue;
		if (errno != EAGAIN)
			break;
		if (ends_wait(PAUSE_MS *
			      1000000ull)) { /* a terminal wants two places for a line's end */
			errno = EINTR;
			break;
		}
	}
	return (ssize_t)done;
}

static int close_both(void *outlet)
{
	struct outlet *o = outlet;
	int fd = o->fd;

	if (o->own != fd)
		close(o->own);
	o->used = false;
	return close(fd);
}

FILE *ends_stream(int fd)
{
	static struct outlet outlets[ENDS_STREAMS];
	struct outlet *o = outlets;
	FILE *stream;

	while (o < outlets + ENDS_STREAMS && o->used)
		o++;
	if (o == outlets + ENDS_STREAMS)
		return NULL;
	stream =
	    fopencookie(o, "w", (cookie_io_functions_t){.write = write_all, .close = close_both});
	if (stream) {
		bool refuses = is_for_reading(fd);

		*o = (struct outlet){true, refuses, fd, refuses ? fd : open_own(fd)};
	}
	return stream;
}
