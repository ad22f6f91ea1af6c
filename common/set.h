/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: the value of an address in a set of prefixes, by the longest prefix that holds it, in
 * work that does not grow with the set: mostly one cold read. IPv4 and IPv6, up to millions.
 *
 * Source: DXR (Zec, Rizzo, Mikuc: "DXR: Towards a Billion Routing Lookups per Second in Software",
 * 2012): the prefixes are cut into ranges without overlaps; a table by the first 16 bits leads to
 * the few ranges of the rest, and is small enough to stay in a cache. Here the ranges are not
 * searched by halves: the next bits select one cache line of them, whose bounds are all compared at
 * once. Where too many fall into one line, that line leads to lines for the bits after it.
 *
 * The first 32 bits of an IPv6 address are found the same way. What is longer is in cells of 16
 * bits, found by hash in one of two lines (cuckoo hashing): of /32, /48, ... /112, those of these
 * levels that the set has. A cell has its one range in itself, or leads to lines of ranges. All
 * levels are read, the longest first; the reads do not wait for each other.
 *
 * Values are 1 to 65535; 0 is "not in the set". A plain set has the value 1 alone, and twice as
 * many bounds in a line.
 *
 * Elements with an end (`sets add --for`) are a set of their own beside, whose values are their
 * numbers, and lead to the ends. It has the serial of the set that it belongs to: when that is
 * replaced, what was beside it counts no more, from the same moment.
 *
 * Keys of limits have words in the place of values: a hash of the set's name and the value's text,
 * so that a key is the same whatever numbers the next file gives. A set that keys name has the
 * words of its values by number, and that of "not in the set" at 0; an element that was added by
 * hand has its own. Behind them are the texts, for the tools.
 *
 * Concurrency: a set is not written once it can be found. Any number of readers.
 *
 * Error: exact. A set whose lines lead out of it gives PACER_SET_BROKEN, on which its reader
 * denies.
 *
 * Memory: 256 KiB a family that the set has; then, of prefixes at random, about 13 bytes for each
 * IPv4 prefix of a plain set and 40 for each IPv6 prefix (user/sets/build.h counts them exactly).
 */
#ifndef PACER_SET_H
#define PACER_SET_H

#include "port.h"

#define PACER_SET_FORMAT 0x32544553u /* "SET2" */
#define PACER_SET_BROKEN (-1)
#define PACER_SET_PLAIN	 1u /* a flag: no values but 1 */
#define PACER_SET_NAMED	 2u /* `ends` are the words of its values; of one by hand: it has values */

#define PACER_SET_FRONT	 4096u /* lines by the first 16 bits */
#define PACER_SET_STARTS 16u   /* in a line of ranges */
#define PACER_SET_BOUNDS 32u   /* the same of a plain set */
#define PACER_SET_DEPTH	 4     /* lines that lead to lines, and the last */
#define PACER_SET_LEVELS 6u    /* of cells: /32, /48, ... /112 */
#define PACER_SET_CELLS	 3u    /* in a line */
#define PACER_SET_INNER	 0x8000u

/*
 * Where something lies: the number of a line << 4 | how many bits select one of those that follow.
 * With 0 bits it is a value << 16 instead.
 */
typedef __u32 pacer_set_link;

/* Line 0. */
struct pacer_set_head {
	__u32 format;
	__u16 flags;
	__u16 levels;	   /* a bit for each that has cells */
	__u32 lines;	   /* that packets read, this one included */
	__u32 front[2];	   /* the first line by 16 bits, of IPv4 and of IPv6; 0: it has none */
	__u32 cells;	   /* the first line of cells */
	__u32 cell_lines;  /* how many */
	__u32 ends;	   /* the first line of its values' ends, or words; 0: they have none */
	__u64 secret[2];   /* of the hash, odd */
	__u32 prefixes[2]; /* of IPv4 and of IPv6 */
	__u32 list_bytes;  /* of what follows the lines: the prefixes, for the tools */
	__u32 serial;	   /* of the set; what is added by hand has that of the set it belongs to */
};

/* An element that was added by hand, and when it is out of the set: monotonic ns; ~0: never. */
struct pacer_set_end {
	__u64 until_ns; /* of it and all wider ones */
	__u64 own_until_ns;
	__u32 word;   /* of its value; 0: it has none */
	__u16 number; /* of its value, as rules name it; 0: they do not */
	__u16 wider;  /* the next wider element that lasts longer; 0: none */
	__u32 text;   /* its value's text: a place among the texts; for the tools */
	__u32 unused;
};

#define PACER_SET_ENDS	2u   /* in a line; that of value i is number i - 1 */
#define PACER_SET_WORDS 16u  /* in a line; that of value i is number i */
#define PACER_SET_WIDER 129u /* that hold an address, each wider than the one before, at most */

/*
 * Cells of up to 3 keys, each the first bits of an address, as many as its level has. The kind is
 * the level + 1; 0: no cell.
 */
struct pacer_set_cells {
	__u64 high[PACER_SET_CELLS];   /* the key's first 64 bits */
	__u32 range[PACER_SET_CELLS];  /* first << 16 | last, both included; or a pacer_set_link */
	__u32 low[PACER_SET_CELLS];    /* the key's next 32 bits */
	__u16 lowest[PACER_SET_CELLS]; /* and its last 16 */
	__u16 value[PACER_SET_CELLS];  /* of the range; 0: `range` is a pacer_set_link */
	__u8 kind[PACER_SET_CELLS];
	__u8 more; /* some that belong here are in the other of their two lines */
};

/*
 * A line of ranges. start[i] is the lowest 15 bits of a range's first address, ascending; start[0]
 * is 0, that of the line's first range, wherever that begins. Unused ones are PACER_SET_INNER,
 * which is above all. value[i] is that of range i. In a plain set bounds are where membership ends
 * or begins; before the first bound there is none.
 *
 * Where start[0] is PACER_SET_INNER, the line only leads to others, at inner[1].
 */
union pacer_set_line {
	__u64 word[8];
	__u32 front[16]; /* a pacer_set_link each */
	__u16 bound[PACER_SET_BOUNDS];
	struct {
		__u16 start[PACER_SET_STARTS], value[PACER_SET_STARTS];
	};
	pacer_set_link inner[16];
	struct pacer_set_head head;
	struct pacer_set_cells cells;
	struct pacer_set_end end[PACER_SET_ENDS];
	__u32 name[PACER_SET_WORDS];
} __attribute__((aligned(64)));

_Static_assert(sizeof(union pacer_set_line) == 64, "a set's line is a cache line");
_Static_assert(sizeof(struct pacer_set_head) == 64, "its head is a line");

/* Where the host keeps a set: in memory, but for one that defines this before. */
#ifndef PACER_SET_LINE
struct pacer_set {
	const union pacer_set_line *line;
	__u32 lines;
};

#define PACER_SET	       const struct pacer_set
#define PACER_SET_LINE(set, i) ((i) < (set)->lines ? &(set)->line[i] : 0)
#endif

#define PACER_SET_TOPS 0x8000800080008000ull
#define PACER_SET_ONES 0x0001000100010001ull

/*
 * How many of the line's first `words` * 4 bounds are x or less; x has 15 bits. Four at a time: the
 * top bit of x + 2^15 - bound is set where the bound is not above x, and no difference borrows from
 * its neighbour.
 */
PACER_INLINE __u32 pacer_set_count(const union pacer_set_line *line, __u32 x, __u32 words)
{
	__u64 four = x * PACER_SET_ONES | PACER_SET_TOPS, sum = 0;
	__u32 i;

	for (i = 0; i < words; i++)
		sum += (four - line->word[i]) >> 15 & PACER_SET_ONES;
	return sum * PACER_SET_ONES >> 48;
}

/* The value of the range that x lies in; `flags` are the set's. */
PACER_INLINE int pacer_set_range(const union pacer_set_line *line, __u32 flags, __u32 x)
{
	x &= 0x7fff;
	if (flags & PACER_SET_PLAIN)
		return !(pacer_set_count(line, x, 8) & 1);
	return line->value[pacer_opaque(pacer_set_count(line, x, 4) - 1) & (PACER_SET_STARTS - 1)];
}

/* The value of the 16 bits x at `at`. */
PACER_INLINE int pacer_set_at_value(PACER_SET *set, __u32 flags, pacer_set_link at, __u32 x)
{
	__u32 left = 16, depth;

	if (!(at & 15))
		return at >> 16;
	for (depth = 0; depth < PACER_SET_DEPTH && left >= (at & 15); depth++) {
		const union pacer_set_line *line;

		left -= at & 15;
		line = PACER_SET_LINE(set, (at >> 4) + (x >> left & ((1u << (at & 15)) - 1)));
		if (!line)
			break;
		if (line->bound[0] != PACER_SET_INNER)
			return pacer_set_range(line, flags, x);
		at = line->inner[1];
	}
	return PACER_SET_BROKEN;
}

/* The value by the first 32 bits. */
PACER_INLINE int pacer_set_front(PACER_SET *set, __u32 flags, __u32 front, __u32 addr)
{
	const union pacer_set_line *line;

	if (!front)
		return 0;
	line = PACER_SET_LINE(set, front + (addr >> 20));
	if (!line)
		return PACER_SET_BROKEN;
	return pacer_set_at_value(set, flags, line->front[addr >> 16 & 15], addr & 0xffff);
}

/* The bits of an IPv6 address that are the key of its cell at a level, and the 16 after them. */
struct pacer_set_key {
	__u64 high, low;
	__u32 next;
};

PACER_INLINE struct pacer_set_key pacer_set_key(__u64 high, __u64 low, __u32 level)
{
	__u32 bits = 16 * (level & 3); /* of the half in which the key ends */

	if (level < 2) /* /32, /48 */
		return (struct pacer_set_key){high & ~0ull << (32 - bits), 0,
					      high >> (16 - bits) & 0xffff};
	bits = 16 * ((level - 2) & 3); /* /64 to /112 */
	return (struct pacer_set_key){high, bits ? low & ~0ull << (64 - bits) : 0,
				      low >> (48 - bits) & 0xffff};
}

/* The hash of a key: its first half selects one line of cells, and pacer_set_other another. */
PACER_INLINE __u64 pacer_set_hash(const struct pacer_set_head *head, const struct pacer_set_key *k,
				  __u32 level)
{
	__u64 h = (k->high + level) * head->secret[0];

	h = ((h ^ h >> 32) + k->low) * head->secret[1];
	return (h ^ h >> 29) * head->secret[0];
}

PACER_INLINE __u64 pacer_set_other(const struct pacer_set_head *head, __u64 hash)
{
	return (hash ^ hash >> 32) * head->secret[1];
}

PACER_INLINE __u32 pacer_set_home(const struct pacer_set_head *head, __u64 hash)
{
	return head->cells + ((hash >> 32) * head->cell_lines >> 32);
}

PACER_INLINE int pacer_set_is_cell(const struct pacer_set_cells *c, __u32 i,
				   const struct pacer_set_key *k, __u32 level)
{
	return c->high[i] == k->high && c->kind[i] == level + 1 && c->low[i] == k->low >> 32 &&
	       c->lowest[i] == (k->low >> 16 & 0xffff);
}

/* What a cell says; a key without a cell has one of no range and no value. */
struct pacer_set_found {
	__u32 range, value;
};

/* A cell is in one of two lines. 0; PACER_SET_BROKEN. */
PACER_INLINE int pacer_set_cell(PACER_SET *set, const struct pacer_set_head *head,
				const struct pacer_set_key *k, __u32 level,
				struct pacer_set_found *found)
{
	__u64 hash = pacer_set_hash(head, k, level);
	__u32 choice, i;

	found->range = found->value = 0;
	PACER_ROLLED
	for (choice = 0; choice < 2; choice++) {
		const union pacer_set_line *line = PACER_SET_LINE(set, pacer_set_home(head, hash));

		if (!line)
			return PACER_SET_BROKEN;
		for (i = 0; i < PACER_SET_CELLS; i++)
			if (pacer_set_is_cell(&line->cells, i, k, level)) {
				found->range = line->cells.range[i];
				found->value = line->cells.value[i];
				return 0;
			}
		if (!line->cells.more)
			return 0;
		hash = pacer_set_other(head, hash);
	}
	return 0;
}

/* The value by the cells of one level; 0: a shorter prefix is to say. */
PACER_INLINE int pacer_set_level(PACER_SET *set, const struct pacer_set_head *head, __u64 high,
				 __u64 low, __u32 level)
{
	struct pacer_set_key k = pacer_set_key(high, low, level);
	struct pacer_set_found found;

	if (pacer_set_cell(set, head, &k, level, &found))
		return PACER_SET_BROKEN;
	if (!found.value)
		return pacer_set_at_value(set, head->flags, found.range, k.next);
	return k.next >= found.range >> 16 && k.next <= (found.range & 0xffff) ? (int)found.value
									       : 0;
}

/*
 * The value of an address. `addr` is in host order; of IPv4 its first word alone counts. Returns 0
 * (not in the set), 1 to 65535, or PACER_SET_BROKEN.
 */
PACER_INLINE int pacer_set_value4(PACER_SET *set, __u32 addr)
{
	const union pacer_set_line *head = PACER_SET_LINE(set, 0);

	if (!head || head->head.format != PACER_SET_FORMAT)
		return PACER_SET_BROKEN;
	return pacer_set_front(set, head->head.flags, head->head.front[0], addr);
}

PACER_SUBPROG int pacer_set_find4(PACER_SET *set, __u32 addr)
{
	return pacer_set_value4(set, addr);
}

PACER_SUBPROG int pacer_set_find6(PACER_SET *set, const __u32 addr[4])
{
	const union pacer_set_line *head = PACER_SET_LINE(set, 0);
	__u64 high = (__u64)addr[0] << 32 | addr[1], low = (__u64)addr[2] << 32 | addr[3];
	__u32 level, levels;

	if (!head || head->head.format != PACER_SET_FORMAT)
		return PACER_SET_BROKEN;
	levels = head->head.levels;
	PACER_ROLLED
	for (level = PACER_SET_LEVELS; levels && level; level--) {
		int value;

		if (!(levels & 1u << (level - 1)))
			continue;
		value = pacer_set_level(set, &head->head, high, low, level - 1);
		if (value)
			return value;
	}
	return pacer_set_front(set, head->head.flags, head->head.front[1], addr[0]);
}

/* Is what has this value in the set at now_ns? 0, 1, or PACER_SET_BROKEN. */
PACER_INLINE int pacer_set_lasts(PACER_SET *set, __u32 value, __u64 now_ns)
{
	const union pacer_set_line *line = PACER_SET_LINE(set, 0);

	if (!line || !line->head.ends || !value)
		return PACER_SET_BROKEN;
	line = PACER_SET_LINE(set, line->head.ends + (value - 1) / PACER_SET_ENDS);
	return line ? now_ns < line->end[(value - 1) % PACER_SET_ENDS].until_ns : PACER_SET_BROKEN;
}

/* The word of a value, 0 for "not in the set", of a set that keys name. 0: it has none. */
PACER_INLINE __u32 pacer_set_word(PACER_SET *set, __u32 value)
{
	const union pacer_set_line *line = PACER_SET_LINE(set, 0);

	if (!line || !(line->head.flags & PACER_SET_NAMED))
		return 0;
	line = PACER_SET_LINE(set, line->head.ends + value / PACER_SET_WORDS);
	return line ? line->name[value % PACER_SET_WORDS] : 0;
}

/* Of what was added by hand: there is an element; its value is word << 16 | number, 0: it has none.
 */
#define PACER_SET_GIVEN	     (1ull << 48)
#define PACER_SET_UNREADABLE (~0ull) /* as PACER_SET_BROKEN: on this, too, its reader denies */

/*
 * What an element that was added by hand gives at now_ns, by its number in the set: its own value
 * or, when its end has come, that of the next wider one. 0: all have ended. PACER_SET_UNREADABLE.
 */
PACER_INLINE __u64 pacer_set_given(PACER_SET *hand, __u32 value, __u64 now_ns)
{
	const union pacer_set_line *line = PACER_SET_LINE(hand, 0);
	const struct pacer_set_end *end;
	__u32 i, first;

	if (!line || !line->head.ends)
		return PACER_SET_UNREADABLE;
	first = line->head.ends;
	PACER_ROLLED
	for (i = 0; i < PACER_SET_WIDER && value; i++) {
		line = PACER_SET_LINE(hand, first + (value - 1) / PACER_SET_ENDS);
		if (!line)
			return PACER_SET_UNREADABLE;
		end = &line->end[(value - 1) % PACER_SET_ENDS];
		if (now_ns < end->own_until_ns)
			return PACER_SET_GIVEN | (__u64)end->word << 16 | end->number;
		value = end->wider;
	}
	return 0;
}

/* Of the apply that wrote it; what was added by hand has that of the set it belongs to. */
PACER_INLINE __u32 pacer_set_serial(PACER_SET *set)
{
	const union pacer_set_line *line = PACER_SET_LINE(set, 0);

	return line ? line->head.serial : 0;
}

/* Does it belong to the set of that serial? */
PACER_INLINE int pacer_set_has_serial(PACER_SET *hand, __u32 serial)
{
	const union pacer_set_line *line = PACER_SET_LINE(hand, 0);

	return line && line->head.serial == serial;
}

/* Do the two belong together? */
PACER_INLINE int pacer_set_is_of(PACER_SET *hand, PACER_SET *set)
{
	const union pacer_set_line *a = PACER_SET_LINE(hand, 0), *b = PACER_SET_LINE(set, 0);

	return a && b && a->head.serial == b->head.serial;
}

#endif
