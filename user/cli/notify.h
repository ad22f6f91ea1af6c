/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what a service tells its manager, by systemd's protocol: datagrams to the socket that
 * $NOTIFY_SOCKET names, a path or, behind an '@', a name of no file. Where there is none, nothing
 * is told. It never waits: a manager that stands still keeps no service from its work or its end.
 *
 * What was not taken stays due, in one datagram, of the status the last: whoever goes on calls
 * notify_again() each round. At its end what is still due is lost.
 *
 * Source: sd_notify(3), whose own call waits for room in the socket.
 * Concurrency: one thread. What is forked begins with what was due.
 * Error: functions return 0, or an errno: EAGAIN, there was no room. Memory: one status.
 */
#ifndef PACER_NOTIFY_H
#define PACER_NOTIFY_H

/* status NULL: as before. Where it was not taken one line is said on stderr. */
int notify_ready(const char *status);
int notify_stopping(const char *status);
__attribute__((format(printf, 1, 2))) int notify_status(const char *format, ...);
/* What is due. */
int notify_again(void);

#endif
