/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * To be preloaded: of what the program asks for from the beginning of its main, the STARVE_AT-th
 * allocation fails, and with STARVE_ON all that come after it. STARVE_COUNT names a file that their
 * number is written to at the end. STARVE_STACKS names one that gets the numbers of those that
 * are the first to be asked for by the same calls, of which the last STARVE_DEPTH count.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *at, size_t size);
void *__libc_memalign(size_t align, size_t size);

static int (*real_main)(int argc, char **argv, char **env);
static unsigned long at, count;
static int begun, on;

#define DEPTH_MAX 64
#define STACKS	  (1 << 14) /* a program that has more is not told apart */

static FILE *stacks;
static int depth = DEPTH_MAX;
static uint64_t seen[STACKS];

/* Whether it is there; from now on it is. */
static int saw(uint64_t hash)
{
	size_t i = hash % STACKS;

	while (seen[i] && seen[i] != hash)
		i = (i + 1) % STACKS;
	if (seen[i])
		return 1;
	seen[i] = hash;
	return 0;
}

static void note_stack(void)
{
	uint64_t hash = 1469598103934665603u;
	void *stack[DEPTH_MAX];
	int n, was = begun;

	begun = 0; /* what is asked for meanwhile is not the program's */
	n = backtrace(stack, depth);
	for (int i = 0; i < n; i++)
		hash = (hash ^ (uintptr_t)stack[i]) * 1099511628211u;
	if (!saw(hash))
		fprintf(stacks, "%lu\n", count);
	begun = was;
}

static int fails(void)
{
	if (!begun)
		return 0;
	count++;
	if (stacks)
		note_stack();
	if (count < at || !at || (count > at && !on))
		return 0;
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
	return fails() ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t align, size_t size)
{
	return fails() ? NULL : __libc_memalign(align, size);
}

static void tell(void)
{
	const char *name = getenv("STARVE_COUNT");
	FILE *f;

	begun = 0;
	if (stacks)
		fclose(stacks);
	f = name ? fopen(name, "w") : NULL;
	if (f) {
		fprintf(f, "%lu\n", count);
		fclose(f);
	}
}

static int starved_main(int argc, char **argv, char **env)
{
	const char *text = getenv("STARVE_AT");

	at = text ? strtoul(text, NULL, 10) : 0;
	on = getenv("STARVE_ON") != NULL;
	text = getenv("STARVE_DEPTH");
	if (text && atoi(text) > 0 && atoi(text) < DEPTH_MAX)
		depth = atoi(text);
	text = getenv("STARVE_STACKS");
	stacks = text ? fopen(text, "w") : NULL;
	if (stacks)
		note_stack(); /* backtrace() asks for memory once; this counts as none */
	atexit(tell);
	begun = 1;
	return real_main(argc, argv, env);
}

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
		      void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
	int (*start)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
		     void (*)(void), void *) = dlsym(RTLD_NEXT, "__libc_start_main");

	real_main = main;
	return start(starved_main, argc, argv, init, fini, rtld_fini, stack_end);
}
