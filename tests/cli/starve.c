/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * To be preloaded: of what the program asks for from the beginning of its main, the STARVE_AT-th
 * allocation fails, and with STARVE_ON all that come after it. STARVE_COUNT names a file that their
 * number is written to at the end.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *at, size_t size);
void *__libc_memalign(size_t align, size_t size);

static int (*real_main)(int argc, char **argv, char **env);
static unsigned long at, count;
static int begun, on;

static int fails(void)
{
	if (!begun || ++count < at || !at || (count > at && !on))
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
