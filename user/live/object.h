/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the programs built into the tool, opened, with their constants set and their maps sized
 * and filled: ready to be loaded. Only object.c uses the skeletons. One thread.
 */
#ifndef PACER_OBJECT_H
#define PACER_OBJECT_H

#include "plan/plan.h"
#include "sets/texts.h"

struct bpf_object;

struct state;

/* Which program: the pacer; or, of two, the one that goes over to a shadow, or that shadow. */
enum object_kind { OBJECT_ALONE, OBJECT_FIRST, OBJECT_SHADOW };

#define OBJECT_DIFFER_NS 60000000000ull /* so far back a shadow's sample goes */

struct object;

/* What a new pacer begins with. */
struct object_begin {
	const struct policy *policy; /* its allow-list is in place before the first packet */
	const struct pacer_policy *bin;
	const struct plan *plan;
	const struct set_texts *sets; /* the policy's */
	const char *text;
	uint64_t lines;
	uint64_t resolution_ns;
	bool shared;		      /* its state is to be that of several interfaces */
	bool tools;		      /* other tools may ban sources */
	int tools4_fd, tools6_fd;     /* of a shadow: those of the pacer, whom tools ban */
	bool dispatcher;	      /* of a shadow: the pacer is under libxdp's dispatcher */
	const struct state *restored; /* NULL: with no state; else as restore_plan left it */
	/* On trial: unless it is confirmed within that time, the other policy is in force. 0: for
	 * ever.
	 */
	uint64_t confirm_ns;
	const struct pacer_policy *other;
	const char *other_text;
};

/*
 * Opened and prepared for an interface whose frames begin with the IP header, or not. ALONE or
 * SHADOW. To be closed with object_close. NULL: with *error filled.
 */
struct object *object_open(const char *ifname, enum object_kind kind,
			   const struct object_begin *begin, bool raw_ip,
			   struct policy_error *error);
/* The same, on the maps of `like`, which is loaded: one state for both. */
struct object *object_open_shared(const char *ifname, const struct object *like,
				  struct policy_error *error);
/*
 * The same, with the very maps of a pacer that runs: it takes over that one's policy and all that
 * it holds. ALONE or FIRST; what a first program has more is taken, too, where that one has it.
 * NULL also where a map of that one is missing or of another size.
 */
struct object *object_open_over(const char *ifname, enum object_kind kind, int prog_fd, bool raw_ip,
				struct policy_error *error);
/* A shadow that is loaded will be told this first program's verdicts. 0, or -1: see errno. */
int object_tell(struct object *first, const struct object *shadow);
void object_close(struct object *object);

struct bpf_object *object_of(const struct object *object);
/* Its program; negative: it is not loaded. */
int object_program_fd(const struct object *object);
/* Its map of that name; negative: it is not loaded, or has none. */
int object_map_fd(const struct object *object, const char *name);

#endif
