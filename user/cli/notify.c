/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "config/text.h"

static struct {
	bool ready, stopping;
	char status[TEXT_PRINTABLE]; /* "": none */
} due;

/* Returns its length; 0: it is no name of a socket. */
static socklen_t address(const char *name, struct sockaddr_un *to)
{
	size_t n = strlen(name);

	if ((*name != '/' && *name != '@') || !name[1] || n >= sizeof(to->sun_path))
		return 0;
	*to = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(to->sun_path, name, n);
	if (*name == '/')
		return sizeof(*to);
	*to->sun_path = 0;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
}

static int send_text(const char *name, const char *text)
{
	struct sockaddr_un to;
	socklen_t n = address(name, &to);
	int fd, err = 0;

	if (!n)
		return EINVAL;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	if (sendto(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&to, n) <
	    0)
		err = errno;
	close(fd);
	return err;
}

int notify_again(void)
{
	const char *name = getenv("NOTIFY_SOCKET");
	char text[sizeof(due.status) + 64];
	int err = 0;

	if (!due.ready && !due.stopping && !*due.status)
		return 0;
	snprintf(text, sizeof(text), "%s%s%s%s%s", due.ready ? "READY=1\n" : "",
		 due.stopping ? "STOPPING=1\n" : "", *due.status ? "STATUS=" : "", due.status,
		 *due.status ? "\n" : "");
	if (name)
		err = send_text(name, text);
	if (!err)
		memset(&due, 0, sizeof(due));
	return err;
}

static void set_status(const char *status)
{
	if (status)
		snprintf(due.status, sizeof(due.status), "%s", status);
}

int notify_ready(const char *status)
{
	int err;

	due.ready = true;
	set_status(status);
	err = notify_again();
	if (err)
		complaint("systemd cannot be told that it is ready, and may end it: %s; it is "
			  "told again until it hears",
			  err == EAGAIN ? "nobody reads its socket" : strerror(err));
	return err;
}

int notify_stopping(const char *status)
{
	due.stopping = true;
	set_status(status);
	return notify_again();
}

int notify_status(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(due.status, sizeof(due.status), format, args);
	va_end(args);
	return notify_again();
}
