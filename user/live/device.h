/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: whether an interface is there, and can be paced.
 *
 * Functions return what they say, or -1 with *error filled with one line. One thread.
 */
#ifndef PACER_DEVICE_H
#define PACER_DEVICE_H

#include "config/policy.h"

/*
 * Its index, by its own name. Another that it has (an altname, as `ip link property` and udev give)
 * is refused: by that what is kept under names would not be found, and one would count as two. So
 * is what is longer than any own name.
 */
int device_index(const char *ifname, struct policy_error *error);
/* Has an interface that name, be it its own or another? */
bool device_named(const char *name);
/* 0: it is up. */
int device_is_up(const char *ifname, struct policy_error *error);
/*
 * How its frames begin: 0: with the Ethernet header, 1: with the IP header. Other interfaces are
 * refused: their packets would be parsed wrongly and pass.
 */
int device_is_raw_ip(const char *ifname, struct policy_error *error);

/*
 * What takes no native XDP program here, and what to do in place of it: of a bridge, a bond, a VLAN
 * and their like by their kind, of others by the driver alone. To be put behind "IFACE: ".
 */
const char *device_advice(const char *ifname, char *buf, size_t size);

#endif
