/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Each CPU is a stack of its own. Jumps change from one to another: swapcontext() asks the kernel
 * for the signal mask each time, which took half of the explorer's time. It only makes the stacks.
 */
#undef _FORTIFY_SOURCE /* which takes a jump to another stack for an error */
#include <assert.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "explore.h"

#define STACK_BYTES (64 * 1024)
#define NOBODY	    (-1)

struct digest {
	uint64_t a, b;
};

struct cpu {
	bool made;		 /* its stack, with `fresh`, where each run begins */
	jmp_buf fresh, left;	 /* left: where it stands while another runs */
	const volatile void *at; /* the access it stands before */
	uint64_t steps;		 /* since the start */
	uint64_t since;		 /* it last forgot: steps, and how often */
	uint64_t forgot;
	struct digest found;
	bool done;
	_Alignas(16) unsigned char stack[STACK_BYTES];
};

/* A choice on the way from the start to the state that is looked at. */
struct choice {
	struct digest state;
	double interleavings;
	unsigned int todo; /* CPUs not tried yet, a bit each */
	int cpu;
};

/* Visited states by digest, open addressing; interleavings is 0 where the slot is free. */
struct seen {
	struct digest state;
	double interleavings;
};

static struct {
	const struct explore_model *model;
	struct explore_result *result;
	unsigned char *initial;
	struct cpu cpu[EXPLORE_CPUS_MAX];
	jmp_buf main;
	int now; /* the CPU that runs, or NOBODY */
	struct choice path[EXPLORE_STEPS_MAX];
	int chosen; /* choices of the path that are to be replayed */
	int depth;
	double leaf; /* interleavings that the run's end stands for */
	struct seen *seen;
	uint64_t slots;
	struct explore_trace trace;
	struct digest notes, unordered;
} x;

static void mix(struct digest *d, uint64_t word)
{
	d->a = (d->a ^ word) * 0x9fb21c651e98df25ull;
	d->a ^= d->a >> 32;
	d->b = (d->b + word) * 0xd6e8feb86659fd93ull;
	d->b ^= d->b >> 29;
}

static struct seen *lookup(struct digest state)
{
	uint64_t i = state.a & (x.slots - 1);

	while (x.seen[i].interleavings != 0 &&
	       (x.seen[i].state.a != state.a || x.seen[i].state.b != state.b))
		i = (i + 1) & (x.slots - 1);
	return &x.seen[i];
}

static void enter(struct digest state, double interleavings)
{
	if (2 * (x.result->states + 1) > x.slots) {
		struct seen *old = x.seen;
		uint64_t i, n = x.slots;

		x.slots = n ? 2 * n : 1 << 12;
		x.seen = calloc(x.slots, sizeof(*x.seen));
		assert(x.seen);
		for (i = 0; i < n; i++)
			if (old[i].interleavings != 0)
				*lookup(old[i].state) = old[i];
		free(old);
	}
	*lookup(state) = (struct seen){state, interleavings};
}

/* Is the access to what a state is told by? */
static bool told(size_t offset)
{
	const struct explore_span *span = x.model->spans;

	while (span && span->bytes && offset - span->offset >= span->bytes)
		span++;
	return !span || span->bytes;
}

static struct digest state_now(void)
{
	const uint64_t *word = x.model->memory;
	struct digest d = x.notes;
	const struct explore_span all[] = {{0, x.model->bytes}, {0, 0}};
	const struct explore_span *span = x.model->spans ? x.model->spans : all;
	size_t i;
	int k;

	mix(&d, x.unordered.a);
	mix(&d, x.unordered.b);
	for (; span->bytes; span++)
		for (i = 0; i < span->bytes / sizeof(*word); i++)
			mix(&d, word[span->offset / sizeof(*word) + i]);
	for (k = 0; k < x.model->cpus; k++) {
		mix(&d, x.cpu[k].forgot);
		mix(&d, x.cpu[k].since);
		mix(&d, x.cpu[k].found.a);
		mix(&d, x.cpu[k].found.b);
	}
	return d;
}

static int switches(const struct explore_trace *t)
{
	int i, n = 0;

	for (i = 1; i < t->steps; i++)
		n += t->cpu[i] != t->cpu[i - 1];
	return n;
}

static void judge(const char *fault)
{
	struct explore_result *r = x.result;

	if (!fault)
		return;
	x.trace.switches = switches(&x.trace);
	if (!r->faults++ || x.trace.steps < r->shortest.steps ||
	    (x.trace.steps == r->shortest.steps && x.trace.switches < r->shortest.switches)) {
		snprintf(r->fault, sizeof(r->fault), "%s", fault);
		r->shortest = x.trace;
	}
}

static const char *end_of_run(void)
{
	const struct explore_model *m = x.model;

	return m->check ? m->check(m->arg, x.trace.note, x.trace.n_notes) : NULL;
}

/* Whose access is next. NOBODY: the run is over, and x.leaf is what it stands for. */
static int choose(void)
{
	unsigned int ready = 0;
	struct digest state;
	struct seen *seen;
	int k;

	if (x.depth < x.chosen)
		return x.path[x.depth++].cpu;
	for (k = 0; k < x.model->cpus; k++)
		ready |= (unsigned int)!x.cpu[k].done << k;
	state = state_now();
	seen = x.slots ? lookup(state) : NULL;
	if (seen && seen->interleavings != 0) {
		x.leaf = seen->interleavings;
		return NOBODY;
	}
	x.result->states++;
	assert(x.result->states <= EXPLORE_STATES_MAX);
	if (x.model->invariant)
		judge(x.model->invariant(x.model->arg));
	if (!ready) {
		x.leaf = 1;
		x.result->ends++;
		enter(state, 1);
		x.now = NOBODY;
		judge(end_of_run());
		return NOBODY;
	}
	assert(x.depth < EXPLORE_STEPS_MAX);
	k = x.trace.steps ? x.trace.cpu[x.trace.steps - 1] : 0; /* switches cost the most time */
	if (!(ready >> k & 1))
		k = __builtin_ctz(ready);
	x.path[x.depth++] = (struct choice){state, 0, ready & ~(1u << k), k};
	x.chosen = x.depth;
	return k;
}

/* Leave what runs, to be gone on with by `from`. */
__attribute__((noinline)) static void go_to(jmp_buf from, int next, jmp_buf to)
{
	x.now = next;
	if (!_setjmp(from))
		_longjmp(to, 1);
}

static void leave(struct cpu *me, int next)
{
	go_to(me->left, next, next == NOBODY ? x.main : x.cpu[next].left);
}

/* The CPU whose turn it is will make its access as soon as it runs: it finds what is there now. */
static void account(struct cpu *me)
{
	size_t offset = (const volatile unsigned char *)me->at -
			(const volatile unsigned char *)x.model->memory;
	int width = offset % 8 ? 4 : 8;
	uint64_t word = 0;

	if (x.model->width)
		width = x.model->width(x.model->arg, offset);
	if (x.model->access)
		x.model->access(x.model->arg, me - x.cpu, offset);
	assert(offset + width <= x.model->bytes && told(offset));
	memcpy(&word, (unsigned char *)x.model->memory + offset, width);
	mix(&me->found, offset);
	mix(&me->found, word);
	me->steps++;
	me->since++;
	assert(x.trace.steps < EXPLORE_STEPS_MAX);
	x.trace.cpu[x.trace.steps] = me - x.cpu;
	x.trace.offset[x.trace.steps++] = offset;
}

void pacer_step(const volatile void *p)
{
	struct cpu *me;
	int mine = x.now, next;

	if (mine == NOBODY || !x.model)
		return;
	me = &x.cpu[mine];
	me->at = p;
	if (x.depth < 0) /* all are first brought before their first access */
		next = NOBODY;
	else
		next = choose();
	if (next != mine)
		leave(me, next);
	account(me);
}

static void coroutine(void)
{
	int mine = x.now;

	if (!_setjmp(x.cpu[mine].fresh))
		_longjmp(x.main, 1);
	x.model->run(x.model->arg, mine);
	x.cpu[mine].done = true;
	leave(&x.cpu[mine], x.depth < 0 ? NOBODY : choose());
	abort(); /* not reached: who is done is not chosen */
}

static void make_stack(int k)
{
	struct cpu *c = &x.cpu[k];
	ucontext_t context;

	if (c->made)
		return;
	c->made = true;
	if (getcontext(&context))
		abort();
	context.uc_stack.ss_sp = c->stack;
	context.uc_stack.ss_size = sizeof(c->stack);
	makecontext(&context, coroutine, 0);
	x.now = k;
	if (!_setjmp(x.main))
		setcontext(&context);
}

void explore_note(const uint64_t word[EXPLORE_NOTE_WORDS], int ordered)
{
	struct explore_note *note;
	struct digest d = {1, 1};
	int i;

	assert(x.trace.n_notes < EXPLORE_NOTES_MAX);
	note = &x.trace.note[x.trace.n_notes++];
	note->cpu = x.now;
	mix(&d, note->cpu);
	for (i = 0; i < EXPLORE_NOTE_WORDS; i++) {
		note->word[i] = word[i];
		mix(&d, word[i]);
	}
	if (ordered) {
		mix(&x.notes, d.a);
		mix(&x.notes, d.b);
	} else {
		x.unordered.a += d.a;
		x.unordered.b += d.b;
	}
}

static void forget(struct cpu *c, int k)
{
	c->since = 0;
	c->found = (struct digest){k, k};
}

void explore_forget(void)
{
	x.cpu[x.now].forgot++;
	forget(&x.cpu[x.now], x.now);
}

uint64_t explore_steps(int cpu)
{
	return x.cpu[cpu].steps;
}

static void run_once(void)
{
	int k;

	memcpy(x.model->memory, x.initial, x.model->bytes);
	x.trace.steps = x.trace.n_notes = 0;
	x.notes = x.unordered = (struct digest){0x51ed270b, 0x2545f491};
	x.result->runs++;
	if (x.model->start)
		x.model->start(x.model->arg);
	x.depth = -1;
	for (k = 0; k < x.model->cpus; k++) {
		struct cpu *c = &x.cpu[k];

		c->done = false;
		c->steps = c->forgot = 0;
		forget(c, k);
		go_to(x.main, k, c->fresh);
	}
	x.depth = 0;
	k = choose();
	if (k != NOBODY)
		go_to(x.main, k, x.cpu[k].left);
	x.now = NOBODY;
}

/* Give the run's end to the choices that led to it; 0 when none of them is left to change. */
static int backtrack(void)
{
	double leaf = x.leaf;

	while (x.chosen) {
		struct choice *c = &x.path[x.chosen - 1];

		c->interleavings += leaf;
		if (c->todo) {
			c->cpu = __builtin_ctz(c->todo);
			c->todo &= c->todo - 1;
			return 1;
		}
		leaf = c->interleavings;
		enter(c->state, leaf);
		x.chosen--;
	}
	x.result->interleavings = leaf;
	return 0;
}

void explore(const struct explore_model *model, struct explore_result *result)
{
	int k;

	assert(model->cpus > 0 && model->cpus <= EXPLORE_CPUS_MAX && model->bytes % 8 == 0);
	memset(result, 0, sizeof(*result));
	x.model = model;
	x.result = result;
	x.chosen = 0;
	x.now = NOBODY;
	x.initial = malloc(model->bytes);
	assert(x.initial);
	memcpy(x.initial, model->memory, model->bytes);
	for (k = 0; k < model->cpus; k++)
		make_stack(k);
	x.now = NOBODY;
	do {
		run_once();
	} while (backtrack());
	memcpy(model->memory, x.initial, model->bytes);
	free(x.initial);
	free(x.seen);
	x.seen = NULL;
	x.slots = 0;
	x.model = NULL;
}

void explore_print(FILE *to, const struct explore_trace *t)
{
	int i, k, j;

	fprintf(to, "  %d accesses, %d switches\n", t->steps, t->switches);
	for (i = 0; i < t->steps; i = j) {
		fprintf(to, "  cpu %u:", t->cpu[i]);
		for (j = i; j < t->steps && t->cpu[j] == t->cpu[i]; j++)
			fprintf(to, " %u+%u", t->offset[j] / 64, t->offset[j] % 64);
		fprintf(to, "\n");
	}
	for (i = 0; i < t->n_notes; i++) {
		fprintf(to, "  note of cpu %" PRIu64 ":", t->note[i].cpu);
		for (k = 0; k < EXPLORE_NOTE_WORDS; k++)
			fprintf(to, " %" PRIu64, t->note[i].word[k]);
		fprintf(to, "\n");
	}
}
