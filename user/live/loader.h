/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the pacer on an interface: load, attach, find, detach. Only this file uses the skeleton.
 * We pin nothing under a path of our own. Whoever attached it, a pacer is found by the interface's
 * program and that program's maps.
 *
 * Functions return 0, or -1 with *error filled with one line: what, where, what to do. One thread.
 */
#ifndef PACER_LOADER_H
#define PACER_LOADER_H

#include <net/if.h>

#include "plan/compile.h"
#include "live/samples.h"
#include "live/targets.h"

enum loader_mode { LOADER_NATIVE, LOADER_SKB, LOADER_HW };

struct loader_options {
	enum loader_mode mode;
	bool direct;  /* not through the libxdp dispatcher, even where the kernel has it */
	bool replace; /* replace a pacer of any version */
};

/* The pacer that was replaced; program_id 0: none. */
struct loader_replaced {
	uint32_t program_id, abi;
};

enum loader_mapping {
	LOADER_CONTROL,
	LOADER_COPIES,
	LOADER_LINES,
	LOADER_THROTTLES,
	LOADER_SAMPLERS,
	LOADER_HEADS,
	LOADER_MAPPINGS
};

/* A pacer on an interface. Its maps are mapped: the next packet sees what is written here. */
struct attached {
	char ifname[IF_NAMESIZE];
	int ifindex;
	const char *mode; /* "native", "skb", "hw" */
	bool dispatcher;
	uint32_t prog_id;
	uint32_t site_id; /* of the program that the driver calls: the dispatcher or the pacer */
	int prog_fd, counts_fd, allow4_fd, allow6_fd, leases_fd;
	struct target_maps targets;
	struct pacer_control *control;
	struct pacer_copy *copy; /* two */
	struct pacer_line *lines;
	uint64_t n_lines;
	struct pacer_throttle_state *throttle; /* PACER_THROTTLES of them */
	struct sample_maps samples;
	struct pacer_sampler *sampler; /* one per CPU; NULL: no policy has sampled yet */
	struct pacer_heads *heads;     /* the same for packet heads */
	uint32_t n_samplers;
	size_t mapped[LOADER_MAPPINGS]; /* lengths of the mappings above, in their order */
};

/* What a new pacer begins with. */
struct loader_policy {
	const struct policy *policy; /* its allow-list is in place before the first packet */
	const struct pacer_policy *bin;
	const struct plan *plan;
	const char *text;
	uint64_t lines;
	uint64_t resolution_ns;
};

/*
 * Attaches a pacer to an interface, or replaces the one there, and finds it. If it fails, the
 * interface is as it was before.
 */
int loader_load(const char *ifname, const struct loader_options *options,
		const struct loader_policy *begin, struct attached *attached,
		struct loader_replaced *replaced, struct policy_error *error);
/* Finds the pacer of an interface. */
int loader_find(const char *ifname, struct attached *attached, struct policy_error *error);
void loader_release(struct attached *attached);
/* Finds it again only if something else may be attached by now. Begin with all of it 0. */
int loader_follow(const char *ifname, struct attached *attached, struct policy_error *error);
/* Is it no longer on its interface, or replaced? */
bool loader_gone(const struct attached *attached);
/* Detaches a pacer of any version and removes its pins. */
int loader_unload(const char *ifname, struct policy_error *error);
/* Calls `each` for every interface of this network namespace that has a pacer. */
int loader_each(int (*each)(const char *ifname, void *arg), void *arg, struct policy_error *error);

/* The number of CPUs that may judge packets, or -1 with *error filled. It is read once. */
int loader_cpus(struct policy_error *error);
/* The resolution of the coarse clock, and the time of the exact clock, in ns. */
uint64_t loader_resolution(void);
uint64_t loader_now(void);

#endif
