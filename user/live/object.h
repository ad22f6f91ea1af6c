/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the program built into the tool, opened, with its constants set and its maps sized and
 * filled: ready to be loaded. Only object.c uses the skeleton. One thread.
 */
#ifndef PACER_OBJECT_H
#define PACER_OBJECT_H

#include "plan/plan.h"
#include "sets/texts.h"

struct bpf_object;
struct pacer_bpf;

struct state;

/* What a new pacer begins with. */
struct object_begin {
	const struct policy *policy; /* its allow-list is in place before the first packet */
	const struct pacer_policy *bin;
	const struct plan *plan;
	const struct set_texts *sets; /* the policy's */
	const char *text;
	uint64_t lines;
	uint64_t resolution_ns;
	const struct state *restored; /* NULL: with no state; else as restore_plan left it */
	/* On trial: unless it is confirmed within that time, the other policy is in force. 0: for
	 * ever.
	 */
	uint64_t confirm_ns;
	const struct pacer_policy *other;
	const char *other_text;
};

/*
 * Opened and prepared for an interface whose frames begin with the IP header, or not. To be closed
 * with object_close. NULL: with *error filled.
 */
struct pacer_bpf *object_open(const char *ifname, const struct object_begin *begin, bool raw_ip,
			      struct policy_error *error);
/* The same, on the maps of `like`, which is loaded: one state for both. */
struct pacer_bpf *object_open_shared(const char *ifname, const struct pacer_bpf *like,
				     struct policy_error *error);
/*
 * The same, with the very maps of a pacer that runs: it takes over that one's policy and all that
 * it holds. NULL also where a map of that one is missing or of another size.
 */
struct pacer_bpf *object_open_over(const char *ifname, int prog_fd, bool raw_ip,
				   struct policy_error *error);
void object_close(struct pacer_bpf *skel);

struct bpf_object *object_of(const struct pacer_bpf *skel);
/* Its program; negative: it is not loaded. */
int object_program_fd(const struct pacer_bpf *skel);

#endif
