/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: what throttle.h is measured against: every use with its time, and the
 * source article's own rule, with its fault; and what random runs are made of.
 */
#ifndef THROTTLE_ORACLE_H
#define THROTTLE_ORACLE_H

#include "oracle.h"
#include "throttle.h"

#define ORACLE_USES_MAX 65536
#define START		(1ull << 40)
#define FOREVER		UINT64_MAX
#define CPUS		4

typedef struct pacer_throttle_params params_t;
typedef struct pacer_throttle_profile profile_t;

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

/* ---- runs ---- */

static inline uint64_t smallest(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline params_t alone(uint32_t limit, uint32_t threshold, uint64_t cooldown,
			     uint64_t max_cooldown)
{
	return (params_t){limit, threshold, 1, 1, cooldown, max_cooldown, 0, 0};
}

static inline profile_t configured(params_t params)
{
	profile_t profile;

	assert_int_equal(pacer_throttle_configure(&profile, &params), PACER_THROTTLE_OK);
	return profile;
}

/* A time to the next call, often just at one of the throttle's own times. */
static inline uint64_t step(const params_t *p)
{
	uint64_t open = smallest(p->max_cooldown_ns - p->cooldown_ns, p->cooldown_ns);

	switch (draw() % 16) {
	case 0:
		return between(0, 2 * p->cooldown_ns + open);
	case 1:
		return open - draw() % 2;
	case 2:
		return p->cooldown_ns - draw() % 2;
	case 3:
	case 4:
		return between(0, open);
	case 5:
	case 6:
		return between(0, p->cooldown_ns / p->limit + 1);
	default:
		return 0;
	}
}

/* For qsort. */
static inline int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

#endif
