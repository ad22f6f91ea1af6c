/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: memory that runs out for a test's program, at the allocation that it chooses, libraries'
 * included: for once, or for good. While memory.on.
 */
#ifndef PACER_STARVED_H
#define PACER_STARVED_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Under the sanitizer its own, which this program's stand before; else the library's. */
void *__interceptor_malloc(size_t n) __attribute__((weak));
void *__interceptor_calloc(size_t n, size_t size) __attribute__((weak));
void *__interceptor_realloc(void *p, size_t n) __attribute__((weak));
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

static struct {
	bool on, for_good;
	uint32_t n, fail_at; /* allocations so far; from 1, 0: never */
} memory;

static bool runs_out(void)
{
	if (!memory.on)
		return false;
	memory.n++;
	if (!memory.fail_at ||
	    (memory.for_good ? memory.n < memory.fail_at : memory.n != memory.fail_at))
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t n)
{
	if (runs_out())
		return NULL;
	return __interceptor_malloc ? __interceptor_malloc(n) : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	if (runs_out())
		return NULL;
	return __interceptor_calloc ? __interceptor_calloc(n, size) : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	if (runs_out())
		return NULL;
	return __interceptor_realloc ? __interceptor_realloc(p, n) : __libc_realloc(p, n);
}

static inline void starved_from(uint32_t fail_at, bool for_good)
{
	memory.n = 0;
	memory.fail_at = fail_at;
	memory.for_good = for_good;
}

#endif
