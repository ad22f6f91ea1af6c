/* SPDX-License-Identifier: GPL-2.0-only */
#include "sets/words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/policy.h"

#define LINE sizeof(union pacer_set_line)

uint32_t set_word_of(const char *set, const char *value)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (; *set; set++)
		h = (h ^ (unsigned char)*set) * 0x100000001b3ull;
	h *= 0x100000001b3ull; /* the end of the first */
	for (; *value; value++)
		h = (h ^ (unsigned char)*value) * 0x100000001b3ull;
	h = (h ^ h >> 32) * 0x9e3779b97f4a7c15ull;
	return h >> 32 ? (uint32_t)(h >> 32) : 1;
}

/* --- two of one word ------------------------------------------------------------------------ */

struct named {
	uint32_t word;
	const char *name;
};

static int by_word(const void *a, const void *b)
{
	const struct named *one = a, *other = b;

	return (one->word > other->word) - (one->word < other->word);
}

bool set_words_clash(const struct set_about *about, const char **one, const char **other)
{
	uint32_t n = about->names->n;
	struct named *all = calloc(n + 1, sizeof(*all));
	bool found = false;

	for (uint32_t i = 0; all && i < n; i++)
		all[i] = (struct named){set_word_of(about->set, about->names->name[i]),
					about->names->name[i]};
	if (all)
		qsort(all, n, sizeof(*all), by_word);
	for (uint32_t i = 1; all && i < n && !found; i++)
		if (all[i].word == all[i - 1].word) {
			*one = all[i - 1].name;
			*other = all[i].name;
			found = true;
		}
	free(all);
	return found;
}

/* --- what is remembered --------------------------------------------------------------------- */

struct known {
	uint32_t word; /* 0: a free place */
	char *set, *value;
};

static struct known *known;
static size_t places, n_known;

static struct known *place_of(struct known *in, size_t size, uint32_t word)
{
	size_t at = word & (size - 1);

	while (in[at].word && in[at].word != word)
		at = (at + 1) & (size - 1);
	return &in[at];
}

static int grow(void)
{
	size_t size = places ? 2 * places : 256;
	struct known *more = calloc(size, sizeof(*more));

	if (!more)
		return -1;
	for (size_t i = 0; i < places; i++)
		if (known[i].word)
			*place_of(more, size, known[i].word) = known[i];
	free(known);
	known = more;
	places = size;
	return 0;
}

void set_words_learn(const char *set, const char *value)
{
	uint32_t word = set_word_of(set, value);
	struct known *at;

	if (2 * n_known >= places && grow())
		return;
	at = place_of(known, places, word);
	if (at->word)
		return;
	at->set = strdup(set);
	at->value = strdup(value);
	if (!at->set || !at->value) {
		free(at->set);
		free(at->value);
		*at = (struct known){0, NULL, NULL};
		return;
	}
	at->word = word;
	n_known++;
}

/* --- as text -------------------------------------------------------------------------------- */

const char *set_word_text(uint32_t word, char *buf, size_t size)
{
	const struct known *at = places && word ? place_of(known, places, word) : NULL;

	if (at && at->word)
		snprintf(buf, size, "value(%s, %s)", at->set, at->value);
	else
		snprintf(buf, size, "value(#%08x)", word);
	return buf;
}

const char *set_word_set(uint32_t word)
{
	const struct known *at = places && word ? place_of(known, places, word) : NULL;

	return at && at->word ? at->set : NULL;
}

/* "#1a2b3c4d)"; 0: it is no such number. */
static uint32_t read_number(const char *text)
{
	return strspn(text + 1, "0123456789abcdef") == 8 && text[9] == ')'
		   ? (uint32_t)strtoul(text + 1, NULL, 16)
		   : 0;
}

uint32_t set_word_read(const char *text, size_t *n)
{
	char set[POLICY_NAME_MAX], value[SET_NAME_MAX + 1];
	const char *end, *name = text + 6;
	size_t from = *n, len;
	uint32_t word;

	*n = 0;
	if (strncmp(text, "value(", 6) != 0)
		return 0;
	if (*name == '#') {
		word = from ? 0 : read_number(name);
		*n = word ? 6 + 9 + 1 : 0;
		return word;
	}
	len = strcspn(name, ",)");
	if (name[len] != ',' || !len || len >= sizeof(set))
		return 0;
	snprintf(set, sizeof(set), "%.*s", (int)len, name);
	name += len + 1;
	for (end = from ? text + from : name; (end = strchr(end, ')')); end++) {
		struct set_word trimmed = set_trim((struct set_word){name, (size_t)(end - name)});

		if (!trimmed.n || trimmed.n >= sizeof(value))
			continue;
		snprintf(value, sizeof(value), "%.*s", (int)trimmed.n, trimmed.at);
		*n = (size_t)(end + 1 - text);
		set_words_learn(set, value);
		return set_word_of(set, value);
	}
	return 0;
}

/* --- in the lines of a set ------------------------------------------------------------------ */

/*
 * The texts begin on a line of their own: how many there are, each with its end. The last four
 * bytes of all lines say on which.
 */
int set_words_put_texts(struct set_lines *lines, const struct set_names *names)
{
	size_t bytes = 2 * sizeof(uint32_t);
	uint32_t first;
	char *at;

	for (uint32_t i = 0; i < names->n; i++)
		bytes += strlen(names->name[i]) + 1;
	first = set_lines_more(lines, (bytes + LINE - 1) / LINE);
	if (!first)
		return -1;
	at = (char *)&lines->line[first];
	memcpy(at, &names->n, sizeof(names->n));
	at += sizeof(names->n);
	for (uint32_t i = 0; i < names->n; i++) {
		size_t len = strlen(names->name[i]) + 1;

		memcpy(at, names->name[i], len);
		at += len;
	}
	memcpy((char *)&lines->line[lines->n] - sizeof(first), &first, sizeof(first));
	lines->line->head.flags |= PACER_SET_NAMED;
	lines->line->head.lines = lines->n;
	return 0;
}

int set_words_put(struct set_lines *lines, const struct set_about *about)
{
	uint32_t n = about->names->n, first;

	first = set_lines_more(lines, n / PACER_SET_WORDS + 1);
	if (!first)
		return -1;
	lines->line[first].name[0] = set_word_of(about->set, SET_WORD_NONE);
	for (uint32_t i = 1; i <= n; i++)
		lines->line[first + i / PACER_SET_WORDS].name[i % PACER_SET_WORDS] =
		    set_word_of(about->set, about->names->name[i - 1]);
	lines->line->head.ends = first;
	return set_words_put_texts(lines, about->names);
}

static int broken(void)
{
	errno = EBADMSG;
	return -1;
}

int set_words_take(const struct set_lines *lines, struct set_names *names)
{
	const char *at, *end = (const char *)&lines->line[lines->n];
	uint32_t first, n;

	if (!lines->n || !(lines->line->head.flags & PACER_SET_NAMED))
		return 0;
	memcpy(&first, end - sizeof(first), sizeof(first));
	if (!first || first >= lines->n)
		return broken();
	end -= sizeof(first);
	at = (const char *)&lines->line[first];
	memcpy(&n, at, sizeof(n));
	at += sizeof(n);
	for (uint32_t i = 0; i < n; i++) {
		size_t len = strnlen(at, (size_t)(end - at));

		if (!len || len > SET_NAME_MAX || at + len == end)
			return broken();
		if (set_names_add(names, (struct set_word){at, len}) < 0)
			return -1;
		at += len + 1;
	}
	return 0;
}
