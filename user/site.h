/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what an interface carries of XDP, and whether a pacer is in it: of this version or of
 * any other. A pacer is known by its program's name and the magic word of its control map, and by
 * nothing that a later version may change.
 *
 * libxdp is asked only where its dispatcher is there: each of its queries loses a descriptor.
 *
 * Functions return 0, or -1 with *error filled with one line: what, where, what to do. One thread.
 */
#ifndef PACER_SITE_H
#define PACER_SITE_H

#include <linux/bpf.h>
#include <stdbool.h>

#include "policy.h"

struct xdp_multiprog;
struct xdp_program;

struct site {
	int ifindex;
	const char *mode; /* "native", "skb", "hw" */
	uint32_t flags;	  /* the kernel's flag of that mode */
	uint32_t id;	  /* of the program that the driver calls; 0: none */
	int fd;
	char name[BPF_OBJ_NAME_LEN];
	struct xdp_multiprog *dispatched; /* what the dispatcher calls; NULL: no dispatcher */
	struct xdp_program *entry;	  /* the pacer among it */
	bool named;			  /* there is a program of the pacer's name */
	bool pacer;			  /* and it is one */
	uint32_t pacer_id, abi;
	int pacer_fd; /* -1: none of that name */
};

/* An interface that carries nothing is no error: its id is 0. */
int site_open(const char *ifname, int ifindex, struct site *site, struct policy_error *error);
void site_close(struct site *site);

/* Of the programs that the dispatcher calls, the one of that id; NULL: none. */
struct xdp_program *site_program(const struct site *site, uint32_t id);

/* Of the program that the driver calls: 0 where there is none, -1 where that cannot be told. */
int64_t site_id(int ifindex);

/* The program is a pacer; of which ABI version. */
bool site_is_pacer(int prog_fd, uint32_t *abi);

/* How `ip link` calls the mode: `ip link set dev IFACE WORD off` takes off what is there. */
const char *site_ip_word(const struct site *site);

#endif
