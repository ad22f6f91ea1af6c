/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A CPU holds uses of a throttle on lease, and for longer than any lease lasts. So a test has all
 * the time that it needs.
 *
 *   lease PROGRAM_ID CPU THROTTLE USES      THROTTLE: its place, 0 for the first of the policy
 *
 * It writes that CPU's lease, and nothing else.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <stdint.h>
#include <stdlib.h>

#include "abi.h"
#include "maps.h"

#define CPUS_MAX 1024

static uint32_t number(const char *text)
{
	return (uint32_t)strtoul(text, NULL, 10);
}

int main(int argc, char **argv)
{
	static struct pacer_throttle_lease each[CPUS_MAX];
	int fd, cpus = libbpf_num_possible_cpus();
	uint32_t place;

	if (argc != 5)
		errx(2, "usage: lease PROGRAM_ID CPU THROTTLE USES");
	if (cpus < 1 || cpus > CPUS_MAX || number(argv[2]) >= (uint32_t)cpus)
		errx(1, "there are %d CPUs", cpus);
	fd = map_of(number(argv[1]), "pacer_leases");
	place = number(argv[3]);
	if (bpf_map_lookup_elem(fd, &place, each))
		err(1, "throttle %u", place);
	each[number(argv[2])].left = number(argv[4]);
	each[number(argv[2])].until_ns = UINT64_MAX;
	if (bpf_map_update_elem(fd, &place, each, BPF_EXIST))
		err(1, "throttle %u", place);
	return 0;
}
