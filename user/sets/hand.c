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
	hand->entry[hand->n++] = (struct set_hand_entry){*entry, until_ns, 0};
	return 0;
}

int set_hand_add_named(struct set_hand *hand, const struct set_entry *entry, uint64_t until_ns,
		       const char *value)
{
	int named = 0;

	if (value && *value)
		named = set_names_add(&hand->names, (struct set_word){value, strlen(value)});
	if (named < 0 || set_hand_add(hand, entry, until_ns))
		return -1;
	hand->entry[hand->n - 1].named = (uint16_t)named;
	return 0;
}

const char *set_hand_value(const struct set_hand *hand, const struct set_hand_entry *entry)
{
	return entry->named ? hand->names.name[entry->named - 1] : NULL;
}

void set_hand_free(struct set_hand *hand)
{
	free(hand->entry);
	set_names_free(&hand->names);
	*hand = (struct set_hand){.n = 0};
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
	struct set_hand_entry key = {*prefix, 0, 0};

	return hand->n ? bsearch(&key, hand->entry, hand->n, sizeof(key), by_prefix) : NULL;
}

int set_hand_list(const struct set_hand *hand, struct set_list *list)
{
	*list = (struct set_list){.n = 0};
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

/* The word and the number of its value; of a set without values none. */
static void fill_value(const struct set_hand *hand, const struct set_hand_entry *h,
		       struct pacer_set_end *end)
{
	const char *value = hand->about ? set_hand_value(hand, h) : NULL;
	uint16_t number;

	end->text = h->named;
	if (!value)
		return;
	number = set_names_find(hand->about->names, value);
	end->word = set_word_of(hand->about->set, value);
	end->number = number <= hand->about->known ? number : 0;
}

/* Those before it in the order that hold it are open when its turn comes. */
static void fill_ends(const struct set_hand *hand, struct pacer_set_end *end)
{
	const struct set_entry *open[PACER_SET_WIDER];
	uint64_t until_ns[PACER_SET_WIDER];
	size_t at[PACER_SET_WIDER];
	size_t n = 0, k;

	for (size_t i = 0; i < hand->n; i++) {
		const struct set_hand_entry *h = &hand->entry[i];

		while (n && !holds(open[n - 1], &h->e))
			n--;
		until_ns[n] = h->until_ns;
		if (n && until_ns[n - 1] > until_ns[n])
			until_ns[n] = until_ns[n - 1];
		end[i] =
		    (struct pacer_set_end){.until_ns = until_ns[n], .own_until_ns = h->until_ns};
		fill_value(hand, h, &end[i]);
		for (k = n; k && hand->entry[at[k - 1]].until_ns <= h->until_ns; k--)
			;
		end[i].wider = k ? (uint16_t)(at[k - 1] + 1) : 0;
		at[n] = i;
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
	if (!hand->names.n || !set_words_put_texts(lines, &hand->names))
		return 0;
	set_lines_free(lines);
	return -1;
}

int set_hand_take(const struct set_lines *lines, const struct set_list *list, struct set_hand *hand)
{
	uint32_t first = lines->line->head.ends;
	struct set_names names = {NULL, 0, NULL, 0};
	int result = set_words_take(lines, &names);

	for (size_t i = 0; i < list->n && !result; i++) {
		uint32_t at = list->entry[i].value - 1u;
		struct set_entry e = list->entry[i];
		const struct pacer_set_end *end;

		if (!first || at / PACER_SET_ENDS >= lines->n - first || first > lines->n) {
			errno = EBADMSG;
			result = -1;
			break;
		}
		e.value = 1;
		end = &lines->line[first + at / PACER_SET_ENDS].end[at % PACER_SET_ENDS];
		result = set_hand_add_named(
		    hand, &e, end->own_until_ns,
		    end->text && end->text <= names.n ? names.name[end->text - 1] : NULL);
	}
	set_names_free(&names);
	return result;
}
