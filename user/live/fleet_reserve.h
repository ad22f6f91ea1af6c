/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: whether the packets of another pacer of this host go on with the reserve of a member of
 * a fleet (`cut_off: local`), for which they need no agent.
 *
 * Concurrency: one thread: it looks into other network namespaces.
 */
#ifndef PACER_FLEET_RESERVE_H
#define PACER_FLEET_RESERVE_H

#include <stdint.h>

/*
 * member: an id. but: the kernel's number of the control map of the pacer that is to have it.
 * Returns the number of another's that has some of that reserve, and a program with it is on an
 * interface of the machine. 0: none is seen: who asks may have to be root, with /proc and the bpffs
 * of the machine. Pacers of another version are not known, nor what an agent left there that was
 * built before floors had a mark.
 */
uint32_t fleet_reserve_elsewhere(uint64_t member, uint32_t but);

#endif
