/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: an interface and the pacer on it: open, size, load, attach, find, detach. The only user
 * of the skeleton. Nothing is pinned by a path of ours: a pacer is found by its
 * interface's program and that program's maps, whoever attached it.
 *
 * Functions return 0, or -1 with *error filled with one line: what, where, what to do. One thread.
 */
#ifndef PACER_LOADER_H
#define PACER_LOADER_H

#include <net/if.h>

#include "compile.h"
#include "samples.h"
#include "targets.h"

enum loader_mode { LOADER_NATIVE, LOADER_SKB, LOADER_HW };

struct loader_options {
	enum loader_mode mode;
	bool direct;  /* not through the libxdp dispatcher, even where the kernel has it */
	bool replace; /* a pacer that is there already, of any version */
};

/* The pacer whose place another took; program_id 0: there was none. */
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

/* A pacer at work. The maps are mapped: what is written here is what the next packet sees. */
struct attached {
	char ifname[IF_NAMESIZE];
	int ifindex;
	const char *mode; /* "native", "skb", "hw" */
	bool dispatcher;
	uint32_t prog_id;
	uint32_t site_id; /* of the program that the driver calls: the dispatcher, or this one */
	int prog_fd, counts_fd, allow4_fd, allow6_fd, leases_fd;
	struct target_maps targets;
	struct pacer_control *control;
	struct pacer_copy *copy; /* two */
	struct pacer_line *lines;
	uint64_t n_lines;
	struct pacer_throttle_state *throttle; /* PACER_THROTTLES of them */
	struct sample_maps samples;
	struct pacer_sampler *sampler; /* one a CPU; NULL: no policy has sampled yet */
	struct pacer_heads *heads;     /* the same, of packets' heads */
	uint32_t n_samplers;
	size_t mapped[LOADER_MAPPINGS]; /* lengths of the mappings, in their order above */
};

/* What a new pacer begins with. */
struct loader_policy {
	const struct policy *policy; /* whose allow-list is in place before the first packet */
	const struct pacer_policy *bin;
	const struct plan *plan;
	const char *text;
	uint64_t lines;
	uint64_t resolution_ns;
};

/*
 * Attach a pacer to an interface that has none, or whose pacer is to be replaced, and find it.
 * Where this fails, the interface carries what it did before.
 */
int loader_load(const char *ifname, const struct loader_options *options,
		const struct loader_policy *begin, struct attached *attached,
		struct loader_replaced *replaced, struct policy_error *error);
/* Find the pacer of an interface. */
int loader_find(const char *ifname, struct attached *attached, struct policy_error *error);
void loader_release(struct attached *attached);
/* Find it again only where something else may be there now. The first time all of it is 0. */
int loader_follow(const char *ifname, struct attached *attached, struct policy_error *error);
/* Is it no more on its interface, or another in its place? */
bool loader_gone(const struct attached *attached);
/* Detach the pacer, of whichever version, and take away what was pinned for it. */
int loader_unload(const char *ifname, struct policy_error *error);
/* Call `each` for every interface of this network namespace that has a pacer. */
int loader_each(int (*each)(const char *ifname, void *arg), void *arg, struct policy_error *error);

/* CPUs that packets may be judged on, or -1 with *error filled. Once known, it stays known. */
int loader_cpus(struct policy_error *error);
/* Resolution of the coarse clock, and the time of the exact one, in ns. */
uint64_t loader_resolution(void);
uint64_t loader_now(void);

#endif
