/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * First all prefixes of up to 32 bits, in the order of their addresses, become bounds: where a
 * value begins. Bounds of the same first 16 bits make a block, whose lines are laid and whose place
 * is written into the front. Then the same is done for each level of IPv6: its blocks are cells.
 */
#include "sets/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCK	  65536u
#define LINES_MAX (1u << 28)
#define DEEPER	  4u   /* bits that a line leads on by, at least */
#define TRIES	  64   /* of a secret */
#define MOVES	  1000 /* of cells, to make room for one */

struct bound {
	uint32_t start; /* within its block */
	uint16_t value;
};

/* Prefixes that hold the one that is read, the longest last. */
struct open {
	uint32_t last;
	uint16_t value;
};

/* What is found by hash, until it is placed. */
struct cell {
	struct pacer_set_key key;
	uint32_t range;
	uint16_t value;
	uint8_t level;
};

struct build {
	struct set_lines *out;
	struct bound bound[BLOCK]; /* of the block that is open */
	size_t n_bounds;
	uint32_t block; /* its number */
	uint16_t base;	/* the value at its begin */
	uint16_t value; /* that the last bound began */
	uint32_t front; /* the front's first line, or 0: blocks are cells */
	struct open open[34];
	size_t n_open;
	struct cell *cell;
	size_t n_cells;
	bool plain;
};

static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* --- lines ---------------------------------------------------------------------------------- */

/* The number of the first of n new lines, all 0; 0: errno says why not. */
static uint32_t new_lines(struct set_lines *out, uint32_t n)
{
	size_t need = ((size_t)out->n + n) * sizeof(*out->line), size = out->mapped;
	void *at;

	if (out->n + (uint64_t)n > LINES_MAX) {
		errno = EFBIG;
		return 0;
	}
	if (need > size) {
		while (size < need)
			size = size ? size + size / 2 + (1u << 20) : 1u << 20;
		size &= ~(size_t)4095;
		at = out->line ? mremap(out->line, out->mapped, size, MREMAP_MAYMOVE)
			       : mmap(NULL, size, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at == MAP_FAILED)
			return 0;
		out->line = at;
		out->mapped = size;
	}
	out->n += n;
	return out->n - n;
}

uint32_t set_lines_more(struct set_lines *lines, size_t n)
{
	return new_lines(lines, (uint32_t)n);
}

void set_lines_free(struct set_lines *lines)
{
	if (lines->line)
		munmap(lines->line, lines->mapped);
	*lines = (struct set_lines){NULL, 0, 0};
}

/* Is there room for a line's bounds? Where the value at its begin is not 0, a plain one takes one
 * more.
 */
static bool one_line(const struct build *b, size_t n, uint16_t base)
{
	return b->plain ? 1 + !!base + n <= PACER_SET_BOUNDS : 1 + n <= PACER_SET_STARTS;
}

static void fill_line(const struct build *b, union pacer_set_line *line, uint32_t begin,
		      const struct bound *bound, size_t n, uint16_t base)
{
	size_t at = 1, slots = b->plain ? PACER_SET_BOUNDS : PACER_SET_STARTS;

	for (size_t i = 1; i < slots; i++)
		line->bound[i] = PACER_SET_INNER;
	line->bound[0] = 0;
	if (!b->plain)
		line->value[0] = base;
	else if (base)
		line->bound[at++] = begin & 0x7fff;
	for (size_t i = 0; i < n; i++, at++) {
		line->bound[at] = bound[i].start & 0x7fff;
		if (!b->plain)
			line->value[at] = bound[i].value;
	}
}

static uint32_t bits_for(const struct build *b, size_t n, uint32_t left)
{
	size_t few = b->plain ? 12 : 6;
	uint32_t bits = left < 16 ? DEEPER : 1;

	while (n >> bits > few)
		bits++;
	return bits < left ? bits : left;
}

/*
 * Lays the lines for the bounds of the `left` last bits, from `begin` on. Returns where they are,
 * or 0. Each line that leads on takes at least DEEPER bits off, so no more than PACER_SET_DEPTH
 * follow each other.
 */
static pacer_set_link lay(struct build *b, uint32_t begin, uint32_t left, const struct bound *bound,
			  size_t n, uint16_t base)
{
	uint32_t bits = bits_for(b, n, left), first = new_lines(b->out, 1u << bits);
	uint32_t size = 1u << (left - bits);

	if (!first)
		return 0;
	for (uint32_t i = 0; i < 1u << bits; i++, begin += size) {
		pacer_set_link deeper;
		size_t here = 0;

		if (n && bound->start == begin) {
			base = bound->value;
			bound++;
			n--;
		}
		while (here < n && bound[here].start < begin + size)
			here++;
		if (one_line(b, here, base)) {
			fill_line(b, &b->out->line[first + i], begin, bound, here, base);
		} else {
			deeper = lay(b, begin, left - bits, bound, here, base);
			if (!deeper)
				return 0;
			b->out->line[first + i].bound[0] = PACER_SET_INNER;
			b->out->line[first + i].inner[1] = deeper;
		}
		if (here)
			base = bound[here - 1].value;
		bound += here;
		n -= here;
	}
	return first << 4 | bits;
}

/* --- blocks --------------------------------------------------------------------------------- */

static pacer_set_link *front_of(struct build *b, uint32_t block)
{
	return &b->out->line[b->front + block / 16].front[block % 16];
}

/* A cell of one range has it in itself. */
static bool one_range(const struct build *b, struct cell *cell)
{
	const struct bound *bound = b->bound;
	size_t n = b->n_bounds;

	if (b->base && (!n || (n == 1 && !bound[0].value))) {
		cell->value = b->base;
		cell->range = n ? bound[0].start - 1 : BLOCK - 1;
		return true;
	}
	if (!b->base && (n == 1 || (n == 2 && !bound[1].value))) {
		cell->value = bound[0].value;
		cell->range = bound[0].start << 16 | (n == 2 ? bound[1].start - 1 : BLOCK - 1);
		return true;
	}
	return false;
}

/* Lays the block that is open, and opens the next. 0, or -1. */
static int end_block(struct build *b, uint32_t next)
{
	struct cell *cell = b->front ? NULL : &b->cell[b->n_cells - 1];
	pacer_set_link at = 0;

	if (cell ? !one_range(b, cell) : b->n_bounds) {
		at = lay(b, 0, 16, b->bound, b->n_bounds, b->base);
		if (!at)
			return -1;
		if (cell)
			cell->range = at;
	} else if (!cell) {
		at = (uint32_t)b->base << 16;
	}
	if (b->front) {
		*front_of(b, b->block) = at;
		for (uint32_t i = b->block + 1; i < next && b->value; i++)
			*front_of(b, i) = (uint32_t)b->value << 16;
	}
	b->block = next;
	b->base = b->value;
	b->n_bounds = 0;
	return 0;
}

/* From `start` on the value is this. Starts ascend; of equal ones the last counts. */
static int begin_value(struct build *b, uint32_t start, uint16_t value)
{
	struct bound *last;

	if (start / BLOCK != b->block && end_block(b, start / BLOCK))
		return -1;
	start %= BLOCK;
	b->value = value;
	if (!start) {
		b->base = value;
		return 0;
	}
	last = b->n_bounds ? &b->bound[b->n_bounds - 1] : NULL;
	if (last && last->start == start) {
		uint16_t before = b->n_bounds > 1 ? last[-1].value : b->base;

		last->value = value;
		b->n_bounds -= value == before;
	} else if (value != (last ? last->value : b->base)) {
		b->bound[b->n_bounds++] = (struct bound){start, value};
	}
	return 0;
}

/* Ends the prefixes that end before `first`; with ~0, all. */
static int end_before(struct build *b, uint64_t first)
{
	while (b->n_open && b->open[b->n_open - 1].last < first) {
		uint32_t last = b->open[--b->n_open].last;
		uint16_t under = b->n_open ? b->open[b->n_open - 1].value : 0;

		if (last != (b->front ? UINT32_MAX : BLOCK - 1) && begin_value(b, last + 1, under))
			return -1;
	}
	return 0;
}

static int add_prefix(struct build *b, uint32_t first, uint32_t last, uint16_t value)
{
	if (end_before(b, first))
		return -1;
	b->open[b->n_open++] = (struct open){last, value};
	return begin_value(b, first, value);
}

static void begin_blocks(struct build *b, uint32_t front)
{
	b->front = front;
	b->block = 0;
	b->base = b->value = 0;
	b->n_bounds = b->n_open = 0;
}

static int build_front(struct build *b, const struct set_list *list, int family, uint32_t front)
{
	begin_blocks(b, front);
	for (size_t i = 0; i < list->n; i++) {
		const struct set_entry *e = &list->entry[i];
		uint32_t first = e->high >> 32;

		if (e->family == family && e->len <= 32 &&
		    add_prefix(b, first, first | (uint32_t)(0xffffffffull >> e->len), e->value))
			return -1;
	}
	if (end_before(b, UINT64_MAX))
		return -1;
	return end_block(b, BLOCK);
}

/* --- cells ---------------------------------------------------------------------------------- */

/* The level of a prefix; -1: the front's. */
static int level_of(const struct set_entry *e)
{
	return e->family == 4 || e->len <= 32 ? -1 : (e->len - 33) / 16;
}

static bool same_key(const struct pacer_set_key *a, const struct pacer_set_key *b)
{
	return a->high == b->high && a->low == b->low;
}

/* The last block, if there is one, is ready. */
static int end_cell(struct build *b)
{
	return end_before(b, UINT64_MAX) || end_block(b, 0) ? -1 : 0;
}

static int build_level(struct build *b, const struct set_list *list, int level)
{
	bool any = false;

	for (size_t i = 0; i < list->n; i++) {
		const struct set_entry *e = &list->entry[i];
		struct pacer_set_key key;

		if (level_of(e) != level)
			continue;
		key = pacer_set_key(e->high, e->low, level);
		if (!any || !same_key(&key, &b->cell[b->n_cells - 1].key)) {
			if (any && end_cell(b))
				return -1;
			any = true;
			b->cell[b->n_cells++] = (struct cell){.key = key, .level = level};
			begin_blocks(b, 0);
		}
		if (add_prefix(b, key.next, key.next | (0xffffu >> (e->len - 32 - 16 * level)),
			       e->value))
			return -1;
	}
	return end_cell(b); /* the level has one */
}

/* How many cells there will be, and of which levels. */
static size_t count_cells(const struct set_list *list, uint32_t *levels)
{
	struct pacer_set_key last[PACER_SET_LEVELS] = {{0}};
	size_t n = 0;

	*levels = 0;
	for (size_t i = 0; i < list->n; i++) {
		const struct set_entry *e = &list->entry[i];
		int level = level_of(e);
		struct pacer_set_key key;

		if (level < 0)
			continue;
		key = pacer_set_key(e->high, e->low, level);
		n += !(*levels & 1u << level) || !same_key(&key, &last[level]);
		*levels |= 1u << level;
		last[level] = key;
	}
	return n;
}

/* A free place in the line, or PACER_SET_CELLS. */
static uint32_t free_place(const struct pacer_set_cells *line)
{
	uint32_t i = 0;

	while (i < PACER_SET_CELLS && line->kind[i])
		i++;
	return i;
}

static void put_cell(struct pacer_set_cells *line, uint32_t i, const struct cell *cell)
{
	line->high[i] = cell->key.high;
	line->low[i] = cell->key.low >> 32;
	line->lowest[i] = cell->key.low >> 16;
	line->range[i] = cell->range;
	line->value[i] = cell->value;
	line->kind[i] = cell->level + 1;
}

static struct cell cell_at(const struct pacer_set_cells *line, uint32_t i)
{
	return (struct cell){
	    .key = {line->high[i], (uint64_t)line->low[i] << 32 | (uint64_t)line->lowest[i] << 16,
		    0},
	    .range = line->range[i],
	    .value = line->value[i],
	    .level = line->kind[i] - 1,
	};
}

/*
 * Places a cell in its first line or, if that is full, in its other one, from which another cell
 * moves to its own other line, and so on.
 */
static bool place(const struct build *b, struct cell cell, uint64_t *chance)
{
	const struct pacer_set_head *head = &b->out->line->head;
	uint32_t from = 0;

	for (int move = 0; move < MOVES; move++) {
		uint64_t hash = pacer_set_hash(head, &cell.key, cell.level);
		uint32_t first = pacer_set_home(head, hash), at = first, i;
		struct cell out;

		if (from == first || free_place(&b->out->line[first].cells) == PACER_SET_CELLS) {
			b->out->line[first].cells.more = 1;
			at = pacer_set_home(head, pacer_set_other(head, hash));
			/* It makes room in the first, if it was in the other. */
			at = from && from == at ? first : at;
		}
		i = free_place(&b->out->line[at].cells);
		if (i < PACER_SET_CELLS) {
			put_cell(&b->out->line[at].cells, i, &cell);
			return true;
		}
		*chance = mix(*chance);
		i = *chance % PACER_SET_CELLS;
		out = cell_at(&b->out->line[at].cells, i);
		put_cell(&b->out->line[at].cells, i, &cell);
		cell = out;
		from = at;
	}
	return false;
}

/* Under another secret until all cells find a place. */
static int place_cells(struct build *b, uint64_t seed)
{
	for (int try = 0; try < TRIES; try++) {
		struct pacer_set_head *head = &b->out->line->head;
		uint64_t chance = seed + try;
		size_t i = 0;

		head->secret[0] = mix(seed + 2 * try) | 1;
		head->secret[1] = mix(seed + 2 * try + 1) | 1;
		memset(&b->out->line[head->cells], 0,
		       (size_t)head->cell_lines * sizeof(*b->out->line));
		while (i < b->n_cells && place(b, b->cell[i], &chance))
			i++;
		if (i == b->n_cells)
			return 0;
	}
	errno = EFBIG;
	return -1;
}

/* --- all of it ------------------------------------------------------------------------------ */

static void count_families(const struct set_list *list, uint32_t n[2], bool front[2], bool *plain)
{
	*plain = true;
	for (size_t i = 0; i < list->n; i++) {
		const struct set_entry *e = &list->entry[i];

		n[e->family == 6]++;
		front[e->family == 6] |= e->len <= 32;
		*plain &= e->value == 1;
	}
}

/* The head, and the lines whose number is known at once. */
static int begin(struct build *b, const struct set_list *list)
{
	struct pacer_set_head head = {.format = PACER_SET_FORMAT};
	bool front[2] = {false, false};
	uint32_t levels;
	size_t cells;

	count_families(list, head.prefixes, front, &b->plain);
	head.flags = b->plain ? PACER_SET_PLAIN : 0;
	cells = count_cells(list, &levels);
	head.levels = (uint16_t)levels;
	(void)new_lines(b->out, 1);
	for (int i = 0; i < 2; i++)
		if (front[i] && !(head.front[i] = new_lines(b->out, PACER_SET_FRONT)))
			return -1;
	/* 1.8 cells a line: then one of ten or so is in its other line. */
	head.cell_lines = cells ? cells * 5 / 9 + 1 : 0;
	if (cells && !(head.cells = new_lines(b->out, head.cell_lines)))
		return -1;
	b->cell = calloc(cells + 1, sizeof(*b->cell));
	if (!b->out->line || !b->cell) {
		errno = ENOMEM;
		return -1;
	}
	b->out->line->head = head;
	return 0;
}

static int build(struct build *b, const struct set_list *list, uint64_t seed)
{
	if (begin(b, list))
		return -1;
	for (int i = 0; i < 2; i++) {
		uint32_t front = b->out->line->head.front[i];

		if (front && build_front(b, list, i ? 6 : 4, front))
			return -1;
	}
	for (uint32_t level = 0; level < PACER_SET_LEVELS; level++)
		if (b->out->line->head.levels & 1u << level && build_level(b, list, (int)level))
			return -1;
	if (b->n_cells && place_cells(b, seed))
		return -1;
	b->out->line->head.lines = b->out->n;
	return 0;
}

int set_build(const struct set_list *list, uint64_t seed, struct set_lines *lines)
{
	struct build *b = calloc(1, sizeof(*b));
	int result = -1, cause;

	*lines = (struct set_lines){NULL, 0, 0};
	if (b) {
		b->out = lines;
		result = build(b, list, seed);
		free(b->cell);
	}
	cause = errno;
	free(b);
	if (result)
		set_lines_free(lines);
	errno = cause;
	return result;
}
