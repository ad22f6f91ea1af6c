/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The time of a trial is over: the policy that nobody confirmed gives way now, as it would by
 * itself. So a test has all the time that it needs before, and waits for nothing.
 *
 *   lapse PROGRAM_ID
 *
 * It writes the time in the pacer's word, and nothing else. Exit code: 1 where no policy waits.
 */
#include <err.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "abi.h"
#include "maps.h"

#define TICK_NS 10000000 /* the coarse clock is behind by no more */

static struct pacer_control *find(uint32_t prog_id)
{
	struct pacer_control *control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE,
					     MAP_SHARED, map_of(prog_id, ".data.control"), 0);

	if (control == MAP_FAILED)
		err(1, "program %u", prog_id);
	return control;
}

int main(int argc, char **argv)
{
	struct pacer_control *control;
	struct timespec t;
	uint64_t word, now_ns;

	if (argc != 2)
		errx(2, "usage: lapse PROGRAM_ID");
	control = find((uint32_t)strtoul(argv[1], NULL, 10));
	clock_gettime(CLOCK_MONOTONIC, &t);
	now_ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	word = __atomic_load_n(&control->in_force, __ATOMIC_ACQUIRE);
	if (word >> 1 <= now_ns)
		errx(1, "no policy waits to be confirmed");
	word = (now_ns - TICK_NS) << 1 | (word & 1);
	__atomic_store_n(&control->in_force, word, __ATOMIC_RELEASE);
	return 0;
}
