/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: what throttle.h is measured against: every use with its time, and the
 * source article's own rule, with its fault.
 */
#ifndef THROTTLE_ORACLE_H
#define THROTTLE_ORACLE_H

#include <stdint.h>

#define ORACLE_USES_MAX 65536

/* Uses in order of time. */
struct oracle {
	uint64_t time[ORACLE_USES_MAX];
	uint32_t uses;
};

/* Uses within (t - width, t], t being no earlier than the latest use. */
static inline uint32_t oracle_within(const struct oracle *o, uint64_t t, uint64_t width)
{
	uint32_t low = 0, high = o->uses;

	if (width > t)
		return o->uses;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (o->time[mid] > t - width)
			high = mid;
		else
			low = mid + 1;
	}
	return o->uses - low;
}

/* The article's class Throttler: a full bucket's close time stays where it was. */
struct article {
	uint32_t limit, threshold, free;
	uint64_t cooldown, open;
	uint32_t head, tail;
	struct {
		uint64_t close;
		uint32_t count;
	} bucket[1024];
};

static inline void article_release(struct article *a, uint64_t now)
{
	while (a->head != a->tail && a->bucket[a->head % 1024].close + a->cooldown <= now)
		a->free += a->bucket[a->head++ % 1024].count;
}

static inline int article_use(struct article *a, uint64_t now)
{
	uint32_t newest = (a->tail - 1) % 1024;

	article_release(a, now);
	if (!a->free)
		return 0;
	if (a->head == a->tail || a->bucket[newest].count == a->threshold ||
	    now >= a->bucket[newest].close) {
		newest = a->tail++ % 1024;
		a->bucket[newest].close = now + a->open;
		a->bucket[newest].count = 0;
	}
	a->bucket[newest].count++;
	a->free--;
	return 1;
}

#endif
