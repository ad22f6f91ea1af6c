/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/day.h"

#include <time.h>

#include "live/host.h"

int64_t day_minus_now_ns(void)
{
	struct timespec day;

	clock_gettime(CLOCK_REALTIME, &day);
	return (int64_t)(day.tv_sec * 1000000000ll + day.tv_nsec - (int64_t)host_now_ns());
}
