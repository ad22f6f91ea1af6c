/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what the core is measured against. Everything here is exact and keeps every event: the
 * source's multimap and its deque with a running total, its slots with aligned edges, and the last
 * time of each key. And a random number that is the same on every run.
 */
#ifndef ORACLE_H
#define ORACLE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ARRAY(a) (sizeof(a) / sizeof((a)[0]))

/* ---- chance ---- */

static uint64_t oracle_seed_state;

static inline void oracle_seed(uint64_t seed)
{
	oracle_seed_state = seed;
}

/* SplitMix64, as pacer_sample_random; a test may define the headers' hooks after this file. */
static inline uint64_t draw(void)
{
	uint64_t z = oracle_seed_state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* low to high, both included; not all of 64 bits */
static inline uint64_t between(uint64_t low, uint64_t high)
{
	return low + draw() % (high - low + 1);
}

/* low to high, every magnitude as likely */
static inline uint64_t magnitude(uint64_t low, uint64_t high)
{
	uint64_t v = draw() >> (draw() & 63);

	return v < low || v > high ? between(low, low + (high - low) / (1 + (draw() & 255))) : v;
}

/* ---- events ---- */

struct oracle_event {
	uint64_t time, cost;
};

static inline struct oracle_event *oracle_room(struct oracle_event *events, size_t n)
{
	struct oracle_event *more = events;

	if (!(n & (n - 1)) && (!n || n >= 16))
		more = realloc(events, (n ? 2 * n : 16) * sizeof(*events));
	assert_non_null(more);
	return more;
}

/* The source's better solution: a deque and a running total. The window is closed. */
struct oracle_deque {
	uint64_t interval, total;
	struct oracle_event *event;
	size_t first, end;
};

static inline void deque_expire(struct oracle_deque *d, uint64_t now)
{
	while (d->first < d->end && now - d->event[d->first].time > d->interval)
		d->total -= d->event[d->first++].cost;
}

static inline uint64_t deque_total(struct oracle_deque *d, uint64_t now)
{
	deque_expire(d, now);
	return d->total;
}

static inline uint64_t deque_add(struct oracle_deque *d, uint64_t now, uint64_t cost)
{
	assert_true(!d->end || d->event[d->end - 1].time <= now);
	d->event = oracle_room(d->event, d->end);
	d->event[d->end++] = (struct oracle_event){now, cost};
	d->total += cost;
	return deque_total(d, now);
}

static inline void deque_free(struct oracle_deque *d)
{
	free(d->event);
	*d = (struct oracle_deque){.interval = d->interval};
}

/* The source's trivial solution: sorted by time, erased where expired, summed each time. */
struct oracle_multimap {
	uint64_t interval;
	struct oracle_event *event;
	size_t n;
};

static inline uint64_t multimap_total(struct oracle_multimap *m, uint64_t now)
{
	uint64_t total = 0;
	size_t i, kept = 0;

	for (i = 0; i < m->n; i++)
		if (now - m->event[i].time <= m->interval)
			m->event[kept++] = m->event[i];
	m->n = kept;
	for (i = 0; i < kept; i++)
		total += m->event[i].cost;
	return total;
}

static inline uint64_t multimap_add(struct oracle_multimap *m, uint64_t now, uint64_t cost)
{
	size_t at = m->n;

	m->event = realloc(m->event, (m->n + 1) * sizeof(*m->event));
	assert_non_null(m->event);
	for (; at && m->event[at - 1].time > now; at--)
		m->event[at] = m->event[at - 1];
	m->event[at] = (struct oracle_event){now, cost};
	m->n++;
	return multimap_total(m, now);
}

/* The source's slots: edges at the multiples of the width, a count a slot, a running total. */
#define ORACLE_SLOTS_MAX 64

struct oracle_slots {
	uint64_t width, n, last;
	uint64_t total, slot[ORACLE_SLOTS_MAX];
};

static inline uint64_t slots_total(struct oracle_slots *s, uint64_t now)
{
	uint64_t index = now / s->width;

	if (index - s->last > s->n)
		s->last = index - s->n;
	while (s->last < index) {
		s->last++;
		s->total -= s->slot[s->last % s->n];
		s->slot[s->last % s->n] = 0;
	}
	return s->total;
}

static inline uint64_t slots_add(struct oracle_slots *s, uint64_t now, uint64_t cost)
{
	slots_total(s, now);
	s->slot[now / s->width % s->n] += cost;
	s->total += cost;
	return s->total;
}

/* ---- last seen ---- */

#define ORACLE_KEYS 4096

/* 0: never */
struct oracle_seen {
	uint64_t last[ORACLE_KEYS];
};

#endif
