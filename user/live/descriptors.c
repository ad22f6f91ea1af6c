/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/descriptors.h"

#include <stdbool.h>
#include <sys/resource.h>

static struct rlimit before;
static bool raised;

void descriptors_raise(void)
{
	struct rlimit all;

	if (getrlimit(RLIMIT_NOFILE, &before))
		return;
	all = (struct rlimit){before.rlim_max, before.rlim_max};
	raised = !setrlimit(RLIMIT_NOFILE, &all);
}

void descriptors_restore(void)
{
	if (raised)
		(void)setrlimit(RLIMIT_NOFILE, &before);
}
