/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/still.h"

#include <sched.h>
#include <stdint.h>
#include <time.h>

#include "lock.h"
#include "port.h"

#define TRIES 10000
/* 512 changes, which the lock's sequence cannot tell from none, take longer. */
#define LOOK_NS(bytes) (4000 + 2 * (bytes))

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void still_words(const void *from, void *to, size_t bytes)
{
	const __u64 *a = from;
	__u64 *b = to;

	for (size_t i = 0; i < bytes / sizeof(*a); i++)
		b[i] = pacer_load64(&a[i]);
}

bool still_copy(const void *from, void *to, size_t bytes)
{
	__u32 *lock = (__u32 *)(uintptr_t)from, before;

	for (int i = 0; i < TRIES; i++) {
		uint64_t began_ns = now_ns();

		before = pacer_acquire(lock);
		if (!(before & PACER_LOCK_HELD)) {
			still_words(from, to, bytes);
			PACER_BARRIER();
			if (pacer_load(lock) == before && now_ns() - began_ns < LOOK_NS(bytes)) {
				*(__u32 *)to = before;
				return true;
			}
		}
		if (i % 100 == 99)
			sched_yield();
	}
	return false;
}
