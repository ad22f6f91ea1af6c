/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: which member of a fleet this host is by an interface: a number that is drawn once and
 * kept in a file. Who has the file has it alone, until he ends: two agents of one number would
 * count as one member, and each would go by what the other was given.
 *
 * After its first line the file says which datapath had the number last. Interfaces of one name, in
 * several network namespaces, have one file unless --state says otherwise; and a datapath goes on
 * with its reserve when its agent has ended.
 *
 * Error: what failed is said, in a line.
 */
#ifndef PACER_FLEET_NUMBER_H
#define PACER_FLEET_NUMBER_H

#include <limits.h>
#include <stdint.h>
#include <stdio.h>

#define FLEET_STATE_DIR "/var/lib/xdp-pacer"

struct fleet_number {
	uint64_t id;
	FILE *file; /* locked; NULL: there is none */
	char name[PATH_MAX];
};

/*
 * state: a file, or a folder for IFNAME.member; NULL: FLEET_STATE_DIR. EXIT_FAILED: there is no
 * number, or another agent has it.
 */
int fleet_number(const char *state, const char *ifname, struct fleet_number *number);
/*
 * The datapath whose control map has this number of the kernel's goes by it from now on.
 * EXIT_FAILED: another one of this boot did, and is there yet; for a moment, that is waited for.
 */
int fleet_number_use(struct fleet_number *number, const char *ifname, const char *boot_id,
		     uint32_t control_id);
void fleet_number_free(struct fleet_number *number);

#endif
