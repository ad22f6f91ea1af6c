/* SPDX-License-Identifier: GPL-2.0-only */
#include "sets/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/text.h"

static uint32_t hash_of(struct set_word word)
{
	uint32_t h = 0x811c9dc5;

	for (size_t i = 0; i < word.n; i++)
		h = (h ^ (unsigned char)word.at[i]) * 0x01000193;
	return h ^ h >> 15;
}

/* Where the name is, or would be. */
static uint32_t place_of(const struct set_names *names, struct set_word word)
{
	uint32_t at = hash_of(word) & (names->places - 1);

	for (; names->place[at]; at = (at + 1) & (names->places - 1)) {
		const char *name = names->name[names->place[at] - 1];

		if (!strncmp(name, word.at, word.n) && !name[word.n])
			break;
	}
	return at;
}

/* Twice the places, or the first ones. */
static int grow(struct set_names *names)
{
	struct set_names more = *names;

	more.places = names->places ? 2 * names->places : 64;
	more.name = realloc(names->name, more.places / 2 * sizeof(*more.name));
	if (!more.name)
		return -1;
	names->name = more.name;
	more.place = calloc(more.places, sizeof(*more.place));
	if (!more.place)
		return -1;
	for (uint32_t i = 0; i < more.n; i++) {
		struct set_word word = {more.name[i], strlen(more.name[i])};

		more.place[place_of(&more, word)] = i + 1;
	}
	free(names->place);
	*names = more;
	return 0;
}

bool set_name_fits(struct set_word name)
{
	char text[SET_NAME_MAX + 1], shown[4 * SET_NAME_MAX + 1];

	if (!name.n || name.n > SET_NAME_MAX || memchr(name.at, 0, name.n) ||
	    memchr(name.at, '"', name.n))
		return false;
	memcpy(text, name.at, name.n);
	text[name.n] = 0;
	return !strcmp(text_escape(text, shown, sizeof(shown)), text);
}

int set_names_add(struct set_names *names, struct set_word word)
{
	uint32_t at;

	if (names->n >= names->places / 2 && grow(names))
		return -1;
	at = place_of(names, word);
	if (names->place[at])
		return (int)names->place[at];
	if (names->n == SET_VALUE_MAX) {
		errno = EFBIG;
		return -1;
	}
	names->name[names->n] = strndup(word.at, word.n);
	if (!names->name[names->n])
		return -1;
	names->place[at] = ++names->n;
	return (int)names->n;
}

uint16_t set_names_find(const struct set_names *names, const char *name)
{
	struct set_word word = {name, strlen(name)};

	return names->places ? (uint16_t)names->place[place_of(names, word)] : 0;
}

void set_names_free(struct set_names *names)
{
	for (uint32_t i = 0; i < names->n; i++)
		free(names->name[i]);
	free(names->name);
	free(names->place);
	*names = (struct set_names){NULL, 0, NULL, 0};
}
