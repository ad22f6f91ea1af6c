/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the pacer on an interface, found by the interface's program and that program's maps,
 * whoever attached it, and never by a path.
 *
 * Functions return 0, or -1 with *error filled with one line: what, where, what to do. One thread.
 */
#ifndef PACER_ATTACHED_H
#define PACER_ATTACHED_H

#include <net/if.h>

#include "config/policy.h"
#include "live/samples.h"
#include "live/targets.h"
#include "beside.h"

struct site;

enum attached_mapping {
	ATTACHED_CONTROL,
	ATTACHED_COPIES,
	ATTACHED_LINES,
	ATTACHED_THROTTLES,
	ATTACHED_SAMPLERS,
	ATTACHED_HEADS,
	ATTACHED_LOG,
	ATTACHED_DIFFER,
	ATTACHED_SHADOWED,
	ATTACHED_MAPPINGS
};

/* A pacer on an interface. Its maps are mapped: the next packet sees what is written here. */
struct attached {
	char ifname[IF_NAMESIZE];
	int ifindex;
	const char *mode; /* "native", "skb", "hw" */
	bool dispatcher;
	uint32_t prog_id;
	uint32_t control_id; /* of the control map: the same where the state is shared */
	uint32_t site_id;    /* of the program that the driver calls: the dispatcher or the pacer */
	uint32_t second_id;  /* of another pacer, which was loaded later; 0: none */
	int prog_fd, counts_fd, allow4_fd, allow6_fd, leases_fd, sets_fd, set_hits_fd;
	int tools4_fd, tools6_fd; /* whom other tools ban: looked at if control->tools */
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
	struct pacer_log *log;
	/* Of a pacer with a shadow. */
	int next_fd;	    /* -1: it has none */
	uint32_t shadow_id; /* the shadow's program; 0: none, or it was lost */
	/* Of a shadow, which is found as if it were a pacer (attached_shadow). */
	int changes_fd;
	struct pacer_shadow *shadowed;
	struct pacer_sampler *differ; /* one per CPU */
	uint32_t n_differ;
	int unread;			  /* errno of a map that could not be read; 0: none */
	size_t mapped[ATTACHED_MAPPINGS]; /* lengths of the mappings above, in their order */
};

/* Finds the pacer of an interface. */
int attached_find(const char *ifname, struct attached *attached, struct policy_error *error);
/* The same of a program that is loaded, and is to be attached there; where it is, attached_at(). */
int attached_open(const char *ifname, int ifindex, int prog_fd, struct attached *attached,
		  struct policy_error *error);
/* Notes how the interface has it. */
void attached_at(struct attached *attached, const struct site *site);
void attached_release(struct attached *attached);
/* Closes its files; what is mapped stays so. */
void attached_close_files(struct attached *attached);
/*
 * Finds the shadow of a pacer: its program, its policy and what it holds. 1: there is none, or it
 * was lost; -1: it cannot be read. *error says which.
 */
int attached_shadow(const struct attached *attached, struct attached *shadow,
		    struct policy_error *error);
/* Is it as it was found? Yes, where that cannot be told: it is looked again later. */
bool attached_same(const char *ifname, const struct attached *attached);
/* 0: the interface carries a pacer, of any version. */
int attached_any(const char *ifname, struct policy_error *error);
/* Finds it again only if something else may be attached by now. Begin with all of it 0. */
int attached_follow(const char *ifname, struct attached *attached, struct policy_error *error);
/*
 * Finds what paces the interface by now, in place of *attached. 1: nobody does, or a pacer of
 * another version, or *attached goes on under another name of its interface; -1: it cannot be told.
 * Then *error says why, and *attached is as it was.
 */
int attached_next(const char *ifname, struct attached *attached, struct policy_error *error);
/* Maps the samples of the policy in force, where it is the first that samples, and came since. */
void attached_sampled(struct attached *attached);
/* Is its state no longer on its interface? No, where that cannot be told. */
bool attached_gone(const struct attached *attached);
/*
 * Is it there, or another program over the same state, as `upgrade` and `shadow` put one? Then *a
 * is that from here on. Yes, where that cannot be told. No: it is gone, or has another state; *a
 * stays.
 */
bool attached_goes_on(struct attached *attached);
/*
 * The same for who may not go on where it cannot be told, and finds it again in any case: what was
 * taken from *a before is not there any more. -1: *error says which.
 */
int attached_still(struct attached *attached, struct policy_error *error);
/* 1: it carries a program of a pacer's name: close *site; 0: none, or it has just gone; -1. */
int attached_site(const char *ifname, int ifindex, struct site *site, struct policy_error *error);
/* Calls `each` for every interface of this network namespace that has a pacer. */
int attached_each(int (*each)(const char *ifname, void *arg), void *arg,
		  struct policy_error *error);

#endif
