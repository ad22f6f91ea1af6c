/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the words that keys of limits have in the place of a set's values (set.h): from set and
 * value to the word, and back to what people read. Pure, but for what is remembered.
 *
 * A word is the same for the same two names, wherever it is made: in a file that is read, in a
 * pacer at work, in a replay. So what is remembered belongs to no pacer and no policy: all words
 * whose texts this process has met.
 *
 * Error: two values of a set have the same word with a chance of 2^-32, and then count together;
 * set_words_clash finds them.
 *
 * Memory: 32 bytes and the texts for each word remembered, until the process ends. One thread.
 */
#ifndef PACER_SET_WORDS_H
#define PACER_SET_WORDS_H

#include "set.h"
#include "sets/build.h"
#include "sets/names.h"

#define SET_WORD_NONE "none" /* the value of what is not in the set, or has no value there */
#define SET_WORD_TEXT 112    /* "value(SET, VALUE)" and its end */

/* What the values of a set that keys name stand for; nobody's to free. */
struct set_about {
	const char *set;	       /* its name */
	const struct set_names *names; /* value i + 1 is name[i] */
	uint32_t known; /* the first ones: those that rules and the allow-list name */
};

/* The word, never 0. */
uint32_t set_word_of(const char *set, const char *value);
/* The first two of a set's values that have the same word; false: no two have. */
bool set_words_clash(const struct set_about *about, const char **one, const char **other);

/* Remembers a word, if there is memory. */
void set_words_learn(const char *set, const char *value);
/* "value(geo, XY)"; of a word that is not remembered "value(#1a2b3c4d)". Returns buf. */
const char *set_word_text(uint32_t word, char *buf, size_t size);
/* The set of a word that is remembered, or NULL. */
const char *set_word_set(uint32_t word);
/*
 * The word of such a text, from "value(" to a ")" behind its first *n characters, *n then. A value
 * may have a ")" in it, so who knows what follows begins with *n = 0, and asks again with what *n
 * was until it fits. 0, and *n 0: there is no (other) one. A set's name without a value is none.
 * Of two values in one key, a name with ")>value(" in it may be read as the other's.
 */
uint32_t set_word_read(const char *text, size_t *n);

/*
 * Append to the lines of a set the words of its values, and their texts. 0; -1: errno, and the
 * lines are still the caller's to free.
 */
int set_words_put(struct set_lines *lines, const struct set_about *about);
/* Append texts alone. */
int set_words_put_texts(struct set_lines *lines, const struct set_names *names);
/* The texts of either, appended to *names. 0, also where there are none; -1: ENOMEM, EBADMSG. */
int set_words_take(const struct set_lines *lines, struct set_names *names);

#endif
