/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what libbpf and libxdp complain of is kept, not printed: it becomes the cause in an
 * error line of ours. One thread.
 *
 * Memory: the last complaint and the verifier's last reason, cut to a line each.
 */
#ifndef PACER_COMPLAINT_H
#define PACER_COMPLAINT_H

#include <stdbool.h>

/* Forgets what was kept. From here on the libraries print nothing. */
void complaint_begin(void);
/* The last complaint since then, as ": TEXT", or what to do about it; "": there was none. */
const char *complaint_cause(void);
/* Does it say that the interface's program is attached by a BPF link? No other call changes it. */
bool complaint_of_link(void);
/* Did the verifier refuse the program? Then its reason, as ": TEXT" or "". */
bool complaint_refused(void);
const char *complaint_verifier(void);

#endif
