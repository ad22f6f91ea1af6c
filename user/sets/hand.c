/* SPDX-License-Identifier: GPL-2.0-only */
#include "sets/hand.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int set_hand_add(struct set_hand *hand, const struct set_entry *entry, uint64_t until_ns)
{
	if (hand->n == hand->room) {
		size_t room = hand->room ? 2 * hand->room : 64;
		struct set_hand_entry *more = realloc(hand->entry, room * sizeof(*more));

		if (!more)
			return -1;
		hand->entry = more;
		hand->room = room;
	}
	hand->entry[hand->n++] = (struct set_hand_entry){*entry, until_ns};
	return 0;
}

void set_hand_free(struct set_hand *hand)
{
	free(hand->entry);
	*hand = (struct set_hand){NULL, 0, 0};
}

static int by_prefix(const void *a, const void *b)
{
	return set_entry_order(&((const struct set_hand_entry *)a)->e,
			       &((const struct set_hand_entry *)b)->e);
}

/* What was added later comes first among equals: its number is in `line`. */
static int by_prefix_and_time(const void *a, const void *b)
{
	uint32_t one = ((const struct set_hand_entry *)a)->e.line;
	uint32_t other = ((const struct set_hand_entry *)b)->e.line;
	int order = by_prefix(a, b);

	return order ? order : (one < other) - (one > other);
}

void set_hand_settle(struct set_hand *hand, uint64_t now_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < hand->n; i++)
		hand->entry[i].e.line = (uint32_t)i;
	if (hand->n)
		qsort(hand->entry, hand->n, sizeof(*hand->entry), by_prefix_and_time);
	for (size_t i = 1; i < hand->n; i++)
		if (!by_prefix(&hand->entry[i], &hand->entry[i - 1]))
			hand->entry[i].until_ns = 0;
	for (size_t i = 0; i < hand->n; i++)
		if (hand->entry[i].until_ns > now_ns)
			hand->entry[n++] = hand->entry[i];
	hand->n = n;
}

struct set_hand_entry *set_hand_find(const struct set_hand *hand, const struct set_entry *prefix)
{
	struct set_hand_entry key = {*prefix, 0};

	return hand->n ? bsearch(&key, hand->entry, hand->n, sizeof(key), by_prefix) : NULL;
}

int set_hand_list(const struct set_hand *hand, struct set_list *list)
{
	*list = (struct set_list){NULL, 0, 0, 0};
	if (hand->n > SET_HAND_MAX) {
		errno = EFBIG;
		return -1;
	}
	for (size_t i = 0; i < hand->n; i++) {
		struct set_entry e = hand->entry[i].e;

		e.value = (uint16_t)(i + 1);
		if (set_list_add(list, &e)) {
			set_list_free(list);
			return -1;
		}
	}
	return 0;
}

static bool holds(const struct set_entry *wide, const struct set_entry *e)
{
	uint64_t high, low;

	set_entry_last(wide, &high, &low);
	return wide->family == e->family && (e->high < high || (e->high == high && e->low <= low));
}

/* Those before it in the order that hold it are open when its turn comes. */
static void fill_ends(const struct set_hand *hand, struct pacer_set_end *end)
{
	const struct set_entry *open[129];
	uint64_t until_ns[129];
	size_t n = 0;

	for (size_t i = 0; i < hand->n; i++) {
		const struct set_hand_entry *h = &hand->entry[i];

		while (n && !holds(open[n - 1], &h->e))
			n--;
		until_ns[n] = h->until_ns;
		if (n && until_ns[n - 1] > until_ns[n])
			until_ns[n] = until_ns[n - 1];
		end[i] = (struct pacer_set_end){until_ns[n], h->until_ns};
		open[n++] = &h->e;
	}
}

int set_hand_build(const struct set_hand *hand, const struct set_list *list, uint64_t seed,
		   struct set_lines *lines)
{
	uint32_t first;

	if (set_build(list, seed, lines))
		return -1;
	first = set_lines_more(lines, (hand->n + PACER_SET_ENDS - 1) / PACER_SET_ENDS);
	if (!first) {
		set_lines_free(lines);
		return -1;
	}
	lines->line->head.ends = first;
	lines->line->head.lines = lines->n;
	fill_ends(hand, lines->line[first].end);
	return 0;
}

int set_hand_take(const struct set_lines *lines, const struct set_list *list, struct set_hand *hand)
{
	uint32_t first = lines->line->head.ends;

	for (size_t i = 0; i < list->n; i++) {
		uint32_t at = list->entry[i].value - 1u;
		struct set_entry e = list->entry[i];

		if (!first || at / PACER_SET_ENDS >= lines->n - first || first > lines->n) {
			errno = EBADMSG;
			return -1;
		}
		e.value = 1;
		if (set_hand_add(hand, &e,
				 lines->line[first + at / PACER_SET_ENDS]
				     .end[at % PACER_SET_ENDS]
				     .own_until_ns))
			return -1;
	}
	return 0;
}
