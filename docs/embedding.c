/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Pass on at most N lines of standard input in any second, and drop the rest: ./embedding N
 *
 * The throttle is the one that the kernel program and `xdp-pacer keys` use.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "throttle.h"

static __u64 now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

int main(int argc, char **argv)
{
	static struct pacer_throttle_state state; /* zeroes: nothing was used yet */
	struct pacer_throttle_profile profile;
	struct pacer_throttle_params params = {
	    .limit = argc > 1 ? strtoul(argv[1], NULL, 10) : 0,
	    .threshold = 1, /* no line is dropped while one could pass ... */
	    .cpus = 1,	    /* ... and nobody else uses the state */
	    .lease = 1,
	    .cooldown_ns = 1000000000ull,
	    .max_cooldown_ns = 1100000000ull,
	};
	unsigned long passed = 0, dropped = 0;
	char line[4096];

	if (pacer_throttle_configure(&profile, &params) != PACER_THROTTLE_OK) {
		fprintf(stderr, "usage: embedding N, from 1 to 230\n");
		return 2;
	}
	while (fgets(line, sizeof(line), stdin)) {
		if (pacer_throttle_use(&profile, &state, now_ns(), 1) == PACER_THROTTLE_ADMIT) {
			fputs(line, stdout);
			passed++;
		} else {
			dropped++;
		}
	}
	fprintf(stderr, "%lu passed, %lu dropped\n", passed, dropped);
	return 0;
}
