/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the interfaces of this network namespace, what is below each, and how they are set.
 *
 * Source: rtnetlink and ethtool, by sockets that the services' units allow (no AF_INET).
 *
 * Error: what cannot be looked up is not there. One thread.
 */
#ifndef PACER_LINKS_H
#define PACER_LINKS_H

#include <net/if.h> /* first: the kernel's headers leave out what it has */
#include <linux/ethtool.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct link {
	int index, below, master; /* below a veth: its peer */
	bool elsewhere;		  /* what is below it is in another network namespace */
	bool types_told; /* of a tun or tap: by who writes, with each packet (no IFF_NO_PI) */
	char name[IF_NAMESIZE], kind[IF_NAMESIZE];
};

struct links {
	struct link *at; /* to be freed */
	size_t n;
	bool failed;
};

/* All; none where they cannot be read. */
struct links links_read(void);
/*
 * The own name of the interface that has this other one. For names that if_nametoindex cannot ask
 * for, of IF_NAMESIZE characters and more. False: there is none, or it cannot be asked for.
 */
bool link_of_altname(const char *altname, char own[IF_NAMESIZE]);
bool link_is_kind(const struct link *l, const char *kind);
/* Does it only hand on what is below it, as a bridge or a VLAN? */
bool link_hands_on(const struct link *l);
/* Has what ethtool says for this command one of these bits? */
bool link_has(const struct link *l, uint32_t command, uint32_t bits);

#endif
