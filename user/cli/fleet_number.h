/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: which member of a fleet this host is by an interface: a number that is drawn once and
 * kept in a file. Who has the file has it alone, until he ends: two agents of one number would
 * count as one member, and each would go by what the other was given. A datapath goes on with its
 * reserve when its agent has ended; and interfaces of one name, in several network namespaces, have
 * one file unless --state says otherwise.
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
 * EXIT_FAILED: another datapath of this host than that of the control map of this number goes on
 * with the member's reserve. For 3 s that is waited for: programs outlast their interfaces for a
 * moment.
 */
int fleet_number_alone(const struct fleet_number *number, const char *ifname, uint32_t control_id);
void fleet_number_free(struct fleet_number *number);

#endif
