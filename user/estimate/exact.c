/* SPDX-License-Identifier: GPL-2.0-only */
#include "estimate/exact.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct element {
	uint64_t tick, key, ends[2];
};

_Static_assert(sizeof(struct element) == 32, "as the header says");
_Static_assert(EXACT_MAX * sizeof(struct element) == 128 << 20, "128 MiB, as the header says");

struct exact {
	uint64_t window, tick_ns, base_ns, last_ns, seen;
	struct element *at; /* a ring of `room`, a power of two */
	uint64_t first, end, room;
};

struct edge {
	uint64_t a, b; /* a < b */
};

struct exact *exact_open(uint64_t window, uint64_t tick_ns)
{
	struct exact *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->window = window;
	e->tick_ns = tick_ns;
	e->room = 1024;
	e->at = calloc(e->room, sizeof(*e->at));
	if (e->at)
		return e;
	free(e);
	return NULL;
}

void exact_close(struct exact *e)
{
	if (!e)
		return;
	free(e->at);
	free(e);
}

static struct element *nth(const struct exact *e, uint64_t i)
{
	return &e->at[i & (e->room - 1)];
}

static bool grow(struct exact *e)
{
	struct element *at;

	if (e->end - e->first < e->room)
		return true;
	if (e->room >= EXACT_MAX) {
		errno = EFBIG;
		return false;
	}
	at = calloc(2 * e->room, sizeof(*at));
	if (!at)
		return false;
	for (uint64_t i = e->first; i < e->end; i++)
		at[i & (2 * e->room - 1)] = *nth(e, i);
	free(e->at);
	e->at = at;
	e->room *= 2;
	return true;
}

static uint64_t tick_of(const struct exact *e, uint64_t time_ns)
{
	return e->tick_ns ? (time_ns - e->base_ns) / e->tick_ns : 0;
}

static void expire(struct exact *e, uint64_t now_ns)
{
	uint64_t now = tick_of(e, now_ns > e->last_ns ? now_ns : e->last_ns);

	while (e->first < e->end) {
		if (e->tick_ns ? now - nth(e, e->first)->tick < e->window / e->tick_ns
			       : e->end - e->first <= e->window)
			break;
		e->first++;
	}
}

bool exact_add(struct exact *e, uint64_t time_ns, uint64_t key, const uint64_t ends[2])
{
	if (!e->seen++)
		e->base_ns = e->last_ns = time_ns;
	if (time_ns > e->last_ns)
		e->last_ns = time_ns;
	expire(e, e->last_ns);
	if (!e->tick_ns && e->end - e->first == e->window)
		e->first++;
	if (!grow(e))
		return false;
	*nth(e, e->end++) = (struct element){tick_of(e, e->last_ns), key, {ends[0], ends[1]}};
	return true;
}

/* ---- Keys -------------------------------------------------------------------------------------
 */

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void sum_key(struct exact_values *out, double x, uint32_t moment)
{
	double share = x / (double)out->n;

	out->distinct++;
	out->moment += pow(x, moment);
	out->entropy -= share * log2(share);
	out->norm += x * log2(x);
}

static bool read_keys(const struct exact *e, uint32_t moment, struct exact_values *out)
{
	uint64_t *key = calloc(out->n + 1, sizeof(*key)), run = 0;

	if (!key)
		return false;
	for (uint64_t i = 0; i < out->n; i++)
		key[i] = nth(e, e->first + i)->key;
	qsort(key, out->n, sizeof(*key), by_value);
	for (uint64_t i = 0; i < out->n; i++) {
		run++;
		if (i + 1 < out->n && key[i + 1] == key[i])
			continue;
		sum_key(out, (double)run, moment);
		run = 0;
	}
	free(key);
	return true;
}

/* ---- Triangles --------------------------------------------------------------------------------
 */

static int by_ends(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->a != y->a)
		return x->a < y->a ? -1 : 1;
	return (x->b > y->b) - (x->b < y->b);
}

/* Collects the different edges of the window, sorted. */
static uint64_t edges_of(const struct exact *e, struct edge *edge)
{
	uint64_t n = 0, kept = 0;

	for (uint64_t i = e->first; i < e->end; i++) {
		const uint64_t *ends = nth(e, i)->ends;

		if (ends[0] != ends[1])
			edge[n++] = ends[0] < ends[1] ? (struct edge){ends[0], ends[1]}
						      : (struct edge){ends[1], ends[0]};
	}
	qsort(edge, n, sizeof(*edge), by_ends);
	for (uint64_t i = 0; i < n; i++)
		if (!kept || by_ends(&edge[i], &edge[kept - 1]))
			edge[kept++] = edge[i];
	return kept;
}

static uint64_t degree_of(const uint64_t *ends, uint64_t n, uint64_t vertex)
{
	uint64_t low[2];

	for (int upper = 0; upper < 2; upper++) {
		uint64_t from = 0, to = n;

		while (from < to) {
			uint64_t middle = (from + to) / 2;

			if (ends[middle] < vertex || (upper && ends[middle] == vertex))
				from = middle + 1;
			else
				to = middle;
		}
		low[upper] = from;
	}
	return low[1] - low[0];
}

/* Directs each edge to the end of higher degree. Then at most sqrt(2 n) edges leave a vertex. */
static bool direct(struct edge *edge, uint64_t n)
{
	uint64_t *ends = calloc(2 * n + 1, sizeof(*ends));

	if (!ends)
		return false;
	for (uint64_t i = 0; i < n; i++) {
		ends[2 * i] = edge[i].a;
		ends[2 * i + 1] = edge[i].b;
	}
	qsort(ends, 2 * n, sizeof(*ends), by_value);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t a = degree_of(ends, 2 * n, edge[i].a);
		uint64_t b = degree_of(ends, 2 * n, edge[i].b);

		if (a > b)
			edge[i] = (struct edge){edge[i].b, edge[i].a};
	}
	free(ends);
	qsort(edge, n, sizeof(*edge), by_ends);
	return true;
}

/* The first edge of the vertex, or the next edge if it has none. */
static uint64_t edges_from(const struct edge *edge, uint64_t n, uint64_t vertex)
{
	uint64_t from = 0, to = n;

	while (from < to) {
		uint64_t middle = (from + to) / 2;

		if (edge[middle].a < vertex)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* Counts the vertices that both ends of edge i lead to. */
static uint64_t common_ends(const struct edge *edge, uint64_t n, uint64_t i)
{
	uint64_t x = edges_from(edge, n, edge[i].a), y = edges_from(edge, n, edge[i].b), both = 0;

	while (x < n && y < n && edge[x].a == edge[i].a && edge[y].a == edge[i].b) {
		uint64_t to_x = edge[x].b, to_y = edge[y].b;

		both += to_x == to_y;
		x += to_x <= to_y;
		y += to_y <= to_x;
	}
	return both;
}

static bool read_triangles(const struct exact *e, struct exact_values *out)
{
	struct edge *edge = calloc(out->n + 1, sizeof(*edge));
	uint64_t n, triangles = 0;
	bool good;

	if (!edge)
		return false;
	n = edges_of(e, edge);
	good = direct(edge, n);
	for (uint64_t i = 0; good && i < n; i++)
		triangles += common_ends(edge, n, i);
	out->triangles = (double)triangles;
	free(edge);
	return good;
}

bool exact_read(struct exact *e, uint64_t now_ns, uint32_t moment, bool triangles,
		struct exact_values *out)
{
	*out = (struct exact_values){0};
	expire(e, now_ns);
	out->n = e->end - e->first;
	if (!read_keys(e, moment, out))
		return false;
	return !triangles || read_triangles(e, out);
}
