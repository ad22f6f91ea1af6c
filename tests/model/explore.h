/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: every interleaving of a few virtual CPUs over a block of shared
 * memory. A CPU is a coroutine that stops before each access to the block, which
 * port.h announces through pacer_step(); the explorer then chooses whose access is
 * next. All choices are tried, depth first, each schedule being replayed from the
 * start.
 *
 * What was seen before is not followed again. A state is the block's bytes, the
 * notes made so far, and for each CPU the number of its accesses and the words that
 * they found (since it last called explore_forget(), and how often it did), which
 * its local state is a function of: the CPUs' code must depend on nothing else, keep no memory that
 * outlives a run but what start() resets, and read nothing of the block except by way of port.h.
 * Counting makes every path grow, so there are no cycles and every schedule ends.
 *
 * Error: states are told apart by 128-bit digests, not by whole keys. Among a
 * million states two agree by accident with a chance below 2^-88. Memory is
 * sequentially consistent: an access is done when the next one starts. Where the model
 * does not tell an access's width, 8 bytes are digested if they are so aligned:
 * states that differ only in a neighbour of the word that was read are then told
 * apart needlessly, which costs time alone.
 *
 * Concurrency: one exploration at a time. Memory: at most 144 bytes a state.
 */
#ifndef PACER_EXPLORE_H
#define PACER_EXPLORE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define EXPLORE_CPUS_MAX   4
#define EXPLORE_NOTES_MAX  16
#define EXPLORE_NOTE_WORDS 8
#define EXPLORE_STEPS_MAX  4096
#define EXPLORE_FAULT_MAX  160
#define EXPLORE_STATES_MAX (1u << 23)

/* port.h's hook. Outside of an exploration it does nothing. */
void pacer_step(const volatile void *p);

/* What a CPU told of what it did, in the order in which it was done. */
struct explore_note {
	uint64_t cpu;
	uint64_t word[EXPLORE_NOTE_WORDS];
};

/* A part of the memory, in bytes: multiples of 8. */
struct explore_span {
	size_t offset, bytes;
};

/* The callbacks return a fault's description, or NULL; it need not outlive the next call. */
struct explore_model {
	const char *name;
	int cpus;
	void *memory; /* as it stands when explore() is called, so does every run begin */
	size_t bytes; /* a multiple of 8, aligned to 8 */
	const struct explore_span
	    *spans; /* all that is ever touched, ended by 0 bytes; NULL: all */
	int (*width)(void *arg, size_t offset); /* of an access, 4 or 8 bytes; may be NULL */
	void (*access)(void *arg, int cpu, size_t offset); /* is being made; may be NULL */
	void (*start)(void *arg);			   /* before each run; may be NULL */
	void (*run)(void *arg, int cpu);		   /* the whole work of one CPU */
	const char *(*invariant)(
	    void *arg); /* at every state, nothing may be changed; may be NULL */
	/* At the end of every schedule. It may go on with the memory, by one CPU. */
	const char *(*check)(void *arg, const struct explore_note *notes, int n);
	void *arg;
};

struct explore_trace {
	int steps, switches, n_notes;
	uint8_t cpu[EXPLORE_STEPS_MAX];
	uint32_t offset[EXPLORE_STEPS_MAX]; /* of the access, in the memory */
	struct explore_note note[EXPLORE_NOTES_MAX];
};

struct explore_result {
	uint64_t states;      /* different ones, ends included */
	uint64_t ends;	      /* different states in which every CPU is done */
	uint64_t runs;	      /* schedules replayed */
	double interleavings; /* schedules that these stand for */
	uint64_t faults;      /* states and ends that are faulty */
	char fault[EXPLORE_FAULT_MAX];
	struct explore_trace shortest; /* to a fault; of equals the one with the fewest switches */
};

void explore(const struct explore_model *model, struct explore_result *result);

/*
 * For the CPUs: note what was done. Of notes that are not `ordered` the check must not care at
 * which place among the others they stand: schedules that differ in that alone are not told apart.
 */
void explore_note(const uint64_t word[EXPLORE_NOTE_WORDS], int ordered);

/*
 * For the CPUs: what this CPU will do depends from here on no more on what it has read, but only on
 * how often it has called this, and on the notes. There are far fewer states then; the shortest
 * faulty interleaving may be missed for a longer one.
 */
void explore_forget(void);

uint64_t explore_steps(int cpu); /* accesses that it has made so far */

/* Print the interleaving as runs of accesses of one CPU, and its notes. */
void explore_print(FILE *to, const struct explore_trace *trace);

#endif
