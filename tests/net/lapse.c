/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The time of a trial is over: the policy that nobody confirmed gives way now, as it would by
 * itself. So a test has all the time that it needs before, and waits for nothing.
 *
 *   lapse PROGRAM_ID
 *
 * It writes the time in the pacer's word, and nothing else. Exit code: 1 where no policy waits.
 */
#include <bpf/bpf.h>
#include <err.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "abi.h"

#define TICK_NS 10000000 /* the coarse clock is behind by no more */

static struct pacer_control *control_of(uint32_t map_id)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	int fd = bpf_map_get_fd_by_id(map_id);
	struct pacer_control *control;

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len))
		err(1, "map %u", map_id);
	if (strcmp(info.name, ".data.control"))
		return NULL;
	control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (control == MAP_FAILED)
		err(1, "map %u", map_id);
	return control;
}

static struct pacer_control *find(uint32_t prog_id)
{
	struct bpf_prog_info info = {0};
	uint32_t ids[64], len = sizeof(info);
	int fd = bpf_prog_get_fd_by_id(prog_id);

	info.nr_map_ids = sizeof(ids) / sizeof(*ids);
	info.map_ids = (uintptr_t)ids;
	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len))
		err(1, "program %u", prog_id);
	for (uint32_t i = 0; i < info.nr_map_ids && i < sizeof(ids) / sizeof(*ids); i++) {
		struct pacer_control *control = control_of(ids[i]);

		if (control)
			return control;
	}
	errx(1, "program %u has no control map", prog_id);
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
