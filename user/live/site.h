/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what XDP programs an interface has, and whether one is a pacer of any version. A pacer
 * is recognised by its program's name and the magic word of its control map. A later version
 * changes neither.
 *
 * libxdp is asked only if its dispatcher is there, since each query leaks a descriptor.
 *
 * Functions return 0, or -1 with *error filled with one line: what, where, what to do. One thread.
 */
#ifndef PACER_SITE_H
#define PACER_SITE_H

#include <stdbool.h>

#include "config/policy.h"

struct xdp_multiprog;
struct xdp_program;

#define SITE_NAME 16 /* of a program, as the kernel cuts it */

enum site_mode { SITE_NATIVE, SITE_SKB, SITE_HW };

struct site {
	int ifindex;
	enum site_mode mode;
	uint32_t id; /* of the program that the driver calls; 0: none */
	int fd;
	char name[SITE_NAME];
	struct xdp_multiprog *dispatched; /* what the dispatcher calls; NULL: no dispatcher */
	struct xdp_program *entry;	  /* the pacer among them */
	bool named;			  /* a program has the pacer's name */
	bool pacer;			  /* and it is a pacer */
	/* It may have pins (pinned.h): other tools are heeded, or it is of another version. */
	bool tools;
	uint32_t pacer_id, abi;
	uint32_t second_id; /* of another pacer, which was loaded later; 0: none */
	int pacer_fd;	    /* -1: none of that name */
};

/* An interface without XDP is no error: its id is 0. */
int site_open(const char *ifname, int ifindex, struct site *site, struct policy_error *error);
void site_close(struct site *site);

/* The program with that id among those that the dispatcher calls; NULL: none. */
struct xdp_program *site_program(const struct site *site, uint32_t id);
/* Does the dispatcher call another program of the pacer's name than that one? */
bool site_has_other(const struct site *site, uint32_t id);

/* Does it carry a dispatcher whose pins are gone? What that calls is not known then. */
bool site_lost_its_pins(const struct site *site);

/* The id of the program that the driver calls; 0: none; -1: unknown. */
int64_t site_id(int ifindex);

/* Is the program the first of two: does it go over to a shadow? 1, 0, or -errno: unknown. */
int site_has_shadow(int prog_fd);

/* "native", "skb", "hw"; and the kernel's flag of the mode. */
const char *site_mode_name(enum site_mode mode);
uint32_t site_mode_flag(enum site_mode mode);

/* The mode as `ip link` names it: `ip link set dev IFACE WORD off` detaches the program. */
const char *site_ip_word(const struct site *site);

#endif
