/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: by how much the clocks of this process's time namespace are ahead of the machine's,
 * which the packet path reads (time_namespaces(7)).
 *
 * One thread.
 */
#ifndef PACER_TIMENS_H
#define PACER_TIMENS_H

#include <stdint.h>

#include "config/policy.h"

struct timens {
	int64_t monotonic_ns, boottime_ns;
};

/*
 * Of this process and of the children that it will have: 0 where the kernel has no such namespaces.
 * -1 with *error filled where it cannot be told, as without /proc, or where the children's would be
 * others.
 */
int timens_read(struct timens *ahead, struct policy_error *error);
/* What /proc/PID/timens_offsets says. -1: it is not that. */
int timens_parse(const char *text, struct timens *ahead);

#endif
