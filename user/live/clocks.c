/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/clocks.h"

#include <stdio.h>
#include <string.h>
#include <sys/timex.h>
#include <time.h>

#include "live/host.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

static uint64_t day_ns(void)
{
	struct timespec ts = {0, 0};

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void read_boot_id(char id[CLOCKS_BOOT_ID])
{
	FILE *f = fopen(BOOT_ID, "re");

	memset(id, 0, CLOCKS_BOOT_ID);
	if (f && !fgets(id, CLOCKS_BOOT_ID, f))
		id[0] = 0;
	id[strcspn(id, "\n")] = 0;
	if (f)
		fclose(f);
}

struct clocks clocks_read(void)
{
	struct timex t = {.modes = 0};
	int state = adjtimex(&t);
	struct clocks c;

	memset(&c, 0, sizeof(c));
	read_boot_id(c.boot_id);
	c.mono_ns = host_now_ns();
	c.boot_ns = host_boot_ns();
	c.real_ns = day_ns();
	c.believed = state >= 0 && state != TIME_ERROR && !(t.status & STA_UNSYNC);
	c.error_ns = c.believed ? (uint64_t)t.maxerror * 1000 : 0;
	return c;
}
