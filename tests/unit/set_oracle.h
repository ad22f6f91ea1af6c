/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: random sets of prefixes, and which addresses to ask of them: for the tests of sets in
 * user space and in the kernel. The oracle is set_list_value, which looks at every prefix.
 */
#ifndef SET_ORACLE_H
#define SET_ORACLE_H

#include "oracle.h"
#include "sets/build.h"

/* How a random set is drawn. */
struct set_drawn {
	size_t n;
	int family;	     /* 4, 6, or 0: both */
	uint32_t clumps;     /* addresses are near one of so many; 0: they are anywhere */
	unsigned int near;   /* their last bits, in which those of a clump differ */
	uint8_t least, most; /* lengths; those of IPv4 are 32 at most */
	uint16_t values;     /* 1 to this */
};

struct set_asked {
	uint64_t high, low;
	int family;
};

static inline uint64_t set_ones(unsigned int n)
{
	return n >= 64 ? ~0ull : (1ull << n) - 1;
}

static inline void set_mask(struct set_entry *e)
{
	e->high &= e->len >= 64 ? ~0ull : ~set_ones(64 - e->len);
	e->low &= e->len >= 128 ? ~0ull : e->len <= 64 ? 0 : ~set_ones(128 - e->len);
}

/* A clump's address is a function of its number alone. */
static inline uint64_t set_clump(uint64_t number)
{
	uint64_t z = (number + 1) * 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	return z ^ z >> 27;
}

static inline struct set_asked set_address(const struct set_drawn *d)
{
	struct set_asked a = {draw(), draw(), d->family ? d->family : draw() & 1 ? 4 : 6};
	uint64_t clump;

	if (d->clumps) {
		unsigned int bits = a.family == 4 ? 32 : 128;
		unsigned int near = d->near < bits ? d->near : bits;

		clump = draw() % d->clumps;
		if (a.family == 4) {
			a.high = set_clump(clump) & ~set_ones(32 + near);
			a.high |= (draw() & set_ones(near)) << 32;
		} else {
			a.high = set_clump(clump) & ~set_ones(near > 64 ? near - 64 : 0);
			a.low = set_clump(~clump) & ~set_ones(near);
			a.high |= near > 64 ? draw() & set_ones(near - 64) : 0;
			a.low |= draw() & set_ones(near);
		}
	}
	if (a.family == 4) {
		a.high &= ~0ull << 32;
		a.low = 0;
	}
	return a;
}

static inline void set_draw(const struct set_drawn *d, struct set_list *list)
{
	while (list->n < d->n) {
		struct set_asked a = set_address(d);
		uint8_t most = a.family == 4 && d->most > 32 ? 32 : d->most;
		uint8_t least = d->least > most ? most : d->least;
		struct set_entry e = {a.high, a.low, 0, 0, a.family, between(least, most)};

		set_mask(&e);
		/* Equal prefixes have equal values. */
		e.value = 1 + set_clump(e.high ^ e.low * 3 ^ e.len) % d->values;
		assert_int_equal(set_list_add(list, &e), 0);
	}
}

/* One more or less, over both halves; of IPv4 in its 32 bits. */
static inline struct set_asked set_step(struct set_asked a, int by)
{
	if (a.family == 4) {
		a.high += (uint64_t)(int64_t)by << 32;
		a.high &= ~0ull << 32;
		return a;
	}
	a.high += by < 0 ? -(uint64_t)!a.low : (uint64_t) !~a.low;
	a.low += (uint64_t)(int64_t)by;
	return a;
}

/* The addresses at an entry's edges, just within and just outside. */
static inline void set_edges(const struct set_entry *e, struct set_asked edge[4])
{
	struct set_asked first = {e->high, e->low, e->family}, last = first;

	set_entry_last(e, &last.high, &last.low);
	if (e->family == 4) {
		last.high &= ~0ull << 32;
		last.low = 0;
	}
	edge[0] = first;
	edge[1] = last;
	edge[2] = set_step(first, -1);
	edge[3] = set_step(last, 1);
}

static inline void set_words(const struct set_asked *a, uint32_t addr[4])
{
	addr[0] = a->high >> 32;
	addr[1] = a->high;
	addr[2] = a->low >> 32;
	addr[3] = a->low;
}

static inline void set_sorted(struct set_list *list)
{
	struct set_entry one, other;

	assert_int_equal(set_list_sort(list, &one, &other), 0);
}

#endif
