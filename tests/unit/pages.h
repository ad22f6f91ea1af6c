/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: zeroed memory of many pages. They come as they are touched, in large ones where the
 * kernel has such: a page that comes can take longer than what a test does with it. The page behind
 * them is not to be touched.
 */
#ifndef PACER_TEST_PAGES_H
#define PACER_TEST_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define PAGE_BYTES ((size_t)4096)
#define PAGE_LARGE ((size_t)1 << 21)

static inline size_t pages_bytes(size_t bytes)
{
	return (bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
}

static inline void *pages_new(size_t bytes)
{
	size_t whole = pages_bytes(bytes), room = PAGE_LARGE + whole + PAGE_BYTES;
	uint8_t *at = mmap(NULL, room, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t before = PAGE_LARGE - (uintptr_t)at % PAGE_LARGE;

	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(munmap(at, before), 0);
	at += before;
	if (before < PAGE_LARGE)
		assert_int_equal(munmap(at + whole + PAGE_BYTES, PAGE_LARGE - before), 0);
	assert_int_equal(mprotect(at + whole, PAGE_BYTES, PROT_NONE), 0);
	(void)madvise(at, whole, MADV_HUGEPAGE);
	return at;
}

/* NULL: there are none. */
static inline void pages_free(void *at, size_t bytes)
{
	if (at)
		assert_int_equal(munmap(at, pages_bytes(bytes) + PAGE_BYTES), 0);
}

#endif
