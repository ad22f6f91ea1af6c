/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sets: what a look-up in a set of prefixes costs (common/set.h), beside one cold read of the same
 * memory and beside others' ways: a table by the first 24 bits and the last 8 (DIR-24-8), a trie of
 * 6 bits a step with bit vectors (poptrie, here from the first 18 bits on), a hash table for each
 * length that the set has.
 *
 *	sets [LOOKUPS [PREFIXES]...]
 *
 * LOOKUPS: how many each figure is the mean of [4000000]; PREFIXES: sizes [50000 1000000]. With 10
 *M it takes minutes and 8 GiB, most of it for the others.
 *
 * A look-up's address depends on what the one before gave, as nothing of the next packet is there
 * while one is judged. Printed is a JSON line for each set and way: ns, and the bytes of memory.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "sets/build.h"
#include "sets/read.h"

#define ARRAY(a) (sizeof(a) / sizeof((a)[0]))
#define ROUNDS	 5

static uint64_t draw_state = 1;

static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static uint64_t draw(void)
{
	return mix(draw_state += 0x9e3779b97f4a7c15ull);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void *get(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (at == MAP_FAILED) {
		perror("sets: memory");
		exit(1);
	}
	return at;
}

/* --- what is asked -------------------------------------------------------------------------- */

struct ask {
	uint64_t high, low;
};

#define ASKS (1u << 20)

struct way {
	const char *name;
	/* NULL: it cannot hold such a set. */
	void *(*build)(const struct set_list *list, size_t *bytes);
	int (*find)(const void *of, const struct ask *ask, int family);
	void (*end)(void *of, size_t bytes);
};

static void unmap(void *of, size_t bytes)
{
	munmap(of, bytes);
}

/* --- one cold read of so much memory -------------------------------------------------------- */

static size_t floor_bytes;

static void *floor_build(const struct set_list *list, size_t *bytes)
{
	(void)list;
	*bytes = floor_bytes;
	return get(floor_bytes);
}

static int floor_find(const void *of, const struct ask *ask, int family)
{
	uint64_t h = (ask->high * 0x9e3779b97f4a7c15ull) ^ ask->low;

	(void)family;
	h = (h ^ h >> 32) * 0xbf58476d1ce4e5b9ull;
	return *(const volatile int *)((const char *)of +
				       ((h >> 32) * (floor_bytes / 64) >> 32) * 64);
}

/* --- ours ----------------------------------------------------------------------------------- */

struct ours {
	struct set_lines lines;
	struct pacer_set set;
};

static void *ours_build(const struct set_list *list, size_t *bytes)
{
	struct ours *o = calloc(1, sizeof(*o));

	if (!o || set_build(list, 1, &o->lines)) {
		perror("sets: ours");
		exit(1);
	}
	o->set = set_lines_set(&o->lines);
	*bytes = (size_t)o->lines.n * 64;
	return o;
}

static int ours_find(const void *of, const struct ask *ask, int family)
{
	const struct ours *o = of;
	uint32_t addr[4] = {ask->high >> 32, ask->high, ask->low >> 32, ask->low};

	return family == 4 ? pacer_set_find4(&o->set, addr[0]) : pacer_set_find6(&o->set, addr);
}

static void ours_end(void *of, size_t bytes)
{
	struct ours *o = of;

	(void)bytes;
	set_lines_free(&o->lines);
	free(o);
}

/* --- DIR-24-8 ------------------------------------------------------------------------------- */

/* 2^24 words: a value, or the number of 256 values | 2^31. Prefixes come before longer ones. */
struct dir {
	uint32_t *by24;
	uint16_t (*by8)[256];
	uint32_t groups, room;
};

#define DIR_ROOM (1u << 23) /* groups: 4 GiB, touched as far as they are used */

static void *dir_build(const struct set_list *list, size_t *bytes)
{
	struct dir *d = calloc(1, sizeof(*d));

	if (!d || list->entry[0].family == 6) {
		free(d);
		return NULL;
	}
	d->by24 = get(4u << 24);
	d->by8 = mmap(NULL, (size_t)DIR_ROOM * 512, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	for (size_t i = 0; i < list->n; i++) {
		const struct set_entry *e = &list->entry[i];
		uint32_t first = e->high >> 32, last = first | (uint32_t)(0xffffffffull >> e->len);

		if (e->len <= 24) {
			for (uint32_t k = first >> 8; k <= last >> 8; k++)
				d->by24[k] = e->value;
			continue;
		}
		if (!(d->by24[first >> 8] >> 31)) {
			for (int k = 0; k < 256; k++)
				d->by8[d->groups][k] = d->by24[first >> 8];
			d->by24[first >> 8] = d->groups++ | 1u << 31;
		}
		for (uint32_t k = first; k <= last; k++) {
			d->by8[d->by24[first >> 8] & 0x7fffffff][k & 255] = e->value;
			if (k == UINT32_MAX)
				break;
		}
	}
	*bytes = (4u << 24) + (size_t)d->groups * 512;
	return d;
}

static int dir_find(const void *of, const struct ask *ask, int family)
{
	const struct dir *d = of;
	uint32_t addr = ask->high >> 32, at = d->by24[addr >> 8];

	(void)family;
	return at >> 31 ? d->by8[at & 0x7fffffff][addr & 255] : at;
}

static void dir_end(void *of, size_t bytes)
{
	struct dir *d = of;

	(void)bytes;
	munmap(d->by24, 4u << 24);
	munmap(d->by8, (size_t)DIR_ROOM * 512);
	free(d);
}

/* --- poptrie -------------------------------------------------------------------------------- */

/*
 * Nodes of 64 children: a bit for each that is a node (they lie together), and one where the leaves
 * before it differ. The first 18 bits are a table.
 */
struct node {
	uint64_t inner, leaves;
	uint32_t first_node, first_leaf;
};

struct pop {
	uint32_t *direct; /* a node, or a value | 2^31 */
	struct node *node;
	uint16_t *leaf;
	size_t nodes, node_room, leaves, leaf_room;
};

/* Bits `at` to at + 6 of an address. */
static uint32_t six(uint64_t high, uint64_t low, unsigned int at)
{
	if (at >= 64)
		return low << (at - 64) >> 58;
	return (high << at | (at > 58 ? low >> (64 - at) : 0)) >> 58;
}

static size_t pop_nodes(struct pop *p, size_t n)
{
	if (p->nodes + n > p->node_room) {
		p->node_room = 2 * p->node_room + n + 1024;
		p->node = realloc(p->node, p->node_room * sizeof(*p->node));
	}
	p->nodes += n;
	return p->nodes - n;
}

static void pop_leaf(struct pop *p, uint16_t value)
{
	if (p->leaves == p->leaf_room) {
		p->leaf_room = 2 * p->leaf_room + 1024;
		p->leaf = realloc(p->leaf, p->leaf_room * sizeof(*p->leaf));
	}
	p->leaf[p->leaves++] = value;
}

/* The node at `number` of the sorted entries from `e` to `end`, which all begin with its `at` bits.
 */
static void pop_fill(struct pop *p, size_t number, const struct set_entry *e,
		     const struct set_entry *end, unsigned int at, uint16_t base)
{
	struct node node = {0, 0, 0, p->leaves};
	const struct set_entry *from[65];
	uint16_t value[64];
	int children = 0, last = -1;

	for (int i = 0; i < 64; i++)
		value[i] = base;
	for (const struct set_entry *s = e; s < end; s++)
		if (s->len <= at + 6) {
			uint32_t first = six(s->high, s->low, at);

			for (uint32_t i = first; i < first + (1u << (at + 6 - s->len)); i++)
				value[i] = s->value;
		}
	for (int i = 0; i < 64; i++) {
		from[i] = e;
		while (e < end && six(e->high, e->low, at) == (uint32_t)i) {
			if (e->len > at + 6)
				node.inner |= 1ull << i;
			e++;
		}
	}
	from[64] = end;
	for (int i = 0; i < 64; i++) {
		if (node.inner >> i & 1) {
			children++;
		} else if (value[i] != last) {
			node.leaves |= 1ull << i;
			pop_leaf(p, value[i]);
			last = value[i];
		}
	}
	node.first_node = pop_nodes(p, children);
	p->node[number] = node;
	children = 0;
	for (int i = 0; i < 64; i++)
		if (node.inner >> i & 1) {
			const struct set_entry *s = from[i];

			while (s < from[i + 1] && s->len <= at + 6)
				s++;
			pop_fill(p, node.first_node + children++, s, from[i + 1], at + 6, value[i]);
		}
}

static void *pop_build(const struct set_list *list, size_t *bytes)
{
	struct pop *p = calloc(1, sizeof(*p));
	const struct set_entry *e = list->entry, *end = e + list->n;
	uint16_t *value = calloc(1 << 18, sizeof(*value));

	p->direct = get(4u << 18);
	for (const struct set_entry *s = e; s < end; s++)
		if (s->len <= 18)
			for (uint32_t i = s->high >> 46, n = 1u << (18 - s->len); n; n--)
				value[i++] = s->value;
	for (uint32_t i = 0; i < 1 << 18; i++) {
		const struct set_entry *from;

		while (e < end && e->len <= 18 && e->high >> 46 == i)
			e++;
		from = e;
		while (e < end && e->high >> 46 == i)
			e++;
		p->direct[i] = value[i] | 1u << 31;
		if (from < e) {
			p->direct[i] = pop_nodes(p, 1);
			pop_fill(p, p->direct[i], from, e, 18, value[i]);
		}
	}
	free(value);
	*bytes = (4u << 18) + p->nodes * sizeof(*p->node) + p->leaves * 2;
	return p;
}

static int pop_find(const void *of, const struct ask *ask, int family)
{
	const struct pop *p = of;
	uint32_t at = p->direct[ask->high >> 46], i;
	const struct node *node;

	(void)family;
	if (at >> 31)
		return at & 0xffff;
	for (unsigned int bit = 18;; bit += 6) {
		node = &p->node[at];
		i = six(ask->high, ask->low, bit);
		if (!(node->inner >> i & 1))
			break;
		at = node->first_node + __builtin_popcountll(node->inner & ((2ull << i) - 1)) - 1;
	}
	return p
	    ->leaf[node->first_leaf + __builtin_popcountll(node->leaves & ((2ull << i) - 1)) - 1];
}

static void pop_end(void *of, size_t bytes)
{
	struct pop *p = of;

	(void)bytes;
	munmap(p->direct, 4u << 18);
	free(p->node);
	free(p->leaf);
	free(p);
}

/* --- a hash table for each length ----------------------------------------------------------- */

struct slot {
	uint64_t high, low;
	uint16_t value, used;
};

struct hashed {
	struct slot *slot[129];
	uint64_t mask[129];
};

static uint64_t hashed_place(uint64_t high, uint64_t low)
{
	return mix(high * 0x9e3779b97f4a7c15ull + low);
}

static void *hashed_build(const struct set_list *list, size_t *bytes)
{
	struct hashed *h = calloc(1, sizeof(*h));
	size_t n[129] = {0};

	*bytes = 0;
	for (size_t i = 0; i < list->n; i++)
		n[list->entry[i].len]++;
	for (int len = 0; len <= 128; len++)
		if (n[len]) {
			h->mask[len] = 1;
			while (h->mask[len] < 2 * n[len])
				h->mask[len] *= 2;
			h->slot[len] = get(h->mask[len] * sizeof(struct slot));
			*bytes += h->mask[len] * sizeof(struct slot);
			h->mask[len]--;
		}
	for (size_t i = 0; i < list->n; i++) {
		const struct set_entry *e = &list->entry[i];
		uint64_t at = hashed_place(e->high, e->low);

		while (h->slot[e->len][at & h->mask[e->len]].used)
			at++;
		h->slot[e->len][at & h->mask[e->len]] = (struct slot){e->high, e->low, e->value, 1};
	}
	return h;
}

static int hashed_find(const void *of, const struct ask *ask, int family)
{
	const struct hashed *h = of;

	for (int len = family == 4 ? 32 : 128; len >= 0; len--) {
		uint64_t high, low, at;
		const struct slot *s;

		if (!h->slot[len])
			continue;
		high = len >= 64 ? ask->high : len ? ask->high & ~0ull << (64 - len) : 0;
		low = len >= 128 ? ask->low : len > 64 ? ask->low & ~0ull << (128 - len) : 0;
		for (at = hashed_place(high, low);; at++) {
			s = &h->slot[len][at & h->mask[len]];
			if (!s->used || (s->high == high && s->low == low))
				break;
		}
		if (s->used)
			return s->value;
	}
	return 0;
}

static void hashed_end(void *of, size_t bytes)
{
	struct hashed *h = of;

	(void)bytes;
	for (int len = 0; len <= 128; len++)
		if (h->slot[len])
			munmap(h->slot[len], (h->mask[len] + 1) * sizeof(struct slot));
	free(h);
}

static const struct way ways[] = {
    {"ours", ours_build, ours_find, ours_end},
    {"cold read", floor_build, floor_find, unmap},
    {"DIR-24-8", dir_build, dir_find, dir_end},
    {"poptrie", pop_build, pop_find, pop_end},
    {"hash a length", hashed_build, hashed_find, hashed_end},
};

/* --- the sets ------------------------------------------------------------------------------- */

/* Prefixes of these lengths, the first the most likely, below `nets` networks of net_len bits. */
struct kind {
	const char *name;
	int family;
	uint8_t len[8];
	uint32_t nets; /* 0: anywhere */
	uint8_t net_len;
	uint16_t values;
};

static const struct kind kinds[] = {
    {"IPv4 hosts", 4, {32}, 0, 0, 1},
    {"IPv4 feed", 4, {32, 32, 32, 24, 32, 32, 20, 16}, 60000, 20, 1},
    {"IPv4 routes", 4, {24, 24, 24, 24, 22, 23, 20, 19}, 0, 0, 250},
    {"IPv6 hosts", 6, {128}, 50000, 48, 1},
    {"IPv6 nets", 6, {64}, 100000, 36, 1},
    {"IPv6 feed", 6, {128, 64, 128, 64, 48, 128, 64, 32}, 20000, 32, 1},
    {"IPv6 routes", 6, {48, 48, 44, 40, 48, 32, 36, 46}, 60000, 29, 250},
};

static uint64_t ones(unsigned int n)
{
	return n >= 64 ? ~0ull : (1ull << n) - 1;
}

static struct ask address(const struct kind *kind)
{
	struct ask a = {draw(), draw()};

	if (kind->nets) {
		uint64_t net = mix(draw() % kind->nets + 77), host = ones(64 - kind->net_len);

		a.high = (net & ~host) | (a.high & host);
	}
	if (kind->family == 6)
		a.high = (a.high >> 3) | 1ull << 61;
	else
		a = (struct ask){a.high & ~0ull << 32, 0};
	return a;
}

static struct set_entry entry(const struct kind *kind)
{
	struct ask a = address(kind);
	unsigned int of = kind->len[1] ? 8 : 1;
	uint8_t len = kind->len[draw() % of];
	struct set_entry e = {a.high, a.low, 0, 0, kind->family, len};

	e.high &= len >= 64 ? ~0ull : ~ones(64 - len);
	e.low &= len >= 128 ? ~0ull : len <= 64 ? 0 : ~ones(128 - len);
	e.value = 1 + mix(e.high + e.low + len) % kind->values;
	return e;
}

static void fill(const struct kind *kind, size_t n, struct set_list *list)
{
	struct set_entry one, other;

	*list = (struct set_list){0};
	for (size_t i = 0; i < n; i++) {
		struct set_entry e = entry(kind);

		if (set_list_add(list, &e))
			exit(1);
	}
	if (set_list_sort(list, &one, &other))
		exit(1);
}

/* Half of the addresses are in the set, the others where its networks are. */
static void fill_asks(const struct kind *kind, const struct set_list *list, struct ask *asks)
{
	for (size_t i = 0; i < ASKS; i++) {
		const struct set_entry *e = &list->entry[draw() % list->n];
		uint64_t high, low;

		set_entry_last(e, &high, &low);
		asks[i] = i & 1 ? address(kind)
				: (struct ask){e->high | (draw() & (high ^ e->high)),
					       e->low | (draw() & (low ^ e->low))};
		if (kind->family == 4)
			asks[i] = (struct ask){asks[i].high & ~0ull << 32, 0};
	}
}

/* The list of addresses is walked, so its reads are not cold; which it is depends on the last find.
 */
static double measure(const struct way *way, const void *of, const struct ask *asks, int family,
		      size_t lookups, uint64_t *sum)
{
	double from = now_s();
	uint32_t last = 0;

	*sum = 0;
	for (size_t i = 0; i < lookups; i++) {
		const struct ask *a = &asks[(i + (last >> 24)) & (ASKS - 1)];
		struct ask ask = {a->high + (last >> 20), a->low};

		last = (uint32_t)way->find(of, &ask, family);
		*sum += last;
	}
	return (now_s() - from) / (double)lookups * 1e9;
}

static void run(const struct kind *kind, size_t n, size_t lookups, struct ask *asks)
{
	uint64_t want = 0, sum;
	struct set_list list;

	fill(kind, n, &list);
	fill_asks(kind, &list, asks);
	for (size_t w = 0; w < ARRAY(ways); w++) {
		double best = 1e9, from = now_s(), build;
		size_t bytes = 0;
		void *of = ways[w].build(&list, &bytes);

		if (!of)
			continue;
		build = now_s() - from;
		if (!w)
			floor_bytes = bytes;
		for (int round = 0; round < ROUNDS; round++) {
			double ns = measure(&ways[w], of, asks, kind->family, lookups, &sum);

			best = ns < best ? ns : best;
		}
		if (!w)
			want = sum;
		else if (w > 1 && sum != want) {
			fprintf(stderr, "sets: %s: %s does not agree\n", kind->name, ways[w].name);
			exit(1);
		}
		printf("{\"part\": \"sets\", \"set\": \"%s\", \"prefixes\": %zu, \"way\": \"%s\", "
		       "\"ns\": %.1f, \"bytes\": %zu, \"build_s\": %.3f}\n",
		       kind->name, list.n, ways[w].name, best, bytes, build);
		fflush(stdout);
		ways[w].end(of, bytes);
	}
	set_list_free(&list);
}

/* A file of that many prefixes of both families, to the lines that packets read. */
static void load(size_t n)
{
	struct set_source source = {.name = "file"};
	struct policy_error error;
	struct set_lines lines;
	struct set_text text;
	char *file = get(n * 48);
	double from, read_s;
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		struct set_entry e = entry(&kinds[i % 4 ? 1 : 5]);
		struct prefix prefix = set_entry_prefix(&e);

		units_prefix_text(&prefix, file + len, 48);
		len += strlen(file + len);
		file[len++] = '\n';
	}
	from = now_s();
	if (set_read(file, len, &source, &text, &error)) {
		fprintf(stderr, "sets: line %d: %s\n", error.line, error.text);
		exit(1);
	}
	read_s = now_s() - from;
	if (set_build(&text.list, 1, &lines))
		exit(1);
	printf("{\"part\": \"sets\", \"set\": \"a file\", \"prefixes\": %zu, \"read_s\": %.3f, "
	       "\"build_s\": %.3f, \"file_bytes\": %zu}\n",
	       n, read_s, now_s() - from - read_s, len);
	set_lines_free(&lines);
	set_text_free(&text);
	munmap(file, n * 48);
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = {50000, 1000000};
	size_t lookups = argc > 1 ? strtoul(argv[1], NULL, 10) : 4000000;
	struct ask *asks = get(ASKS * sizeof(*asks));

	if (!lookups) {
		fprintf(stderr, "usage: sets [LOOKUPS [PREFIXES]...]\n");
		return 2;
	}
	load(1000000);
	for (size_t s = 0; s < (argc > 2 ? (size_t)argc - 2 : ARRAY(sizes)); s++)
		for (size_t k = 0; k < ARRAY(kinds); k++)
			run(&kinds[k], argc > 2 ? strtoul(argv[s + 2], NULL, 10) : sizes[s],
			    lookups, asks);
	return 0;
}
