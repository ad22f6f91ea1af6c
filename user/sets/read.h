/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: files of prefixes, as people and feeds write them, to a list. It is read whole or not at
 * all; what is wrong is said with its line.
 *
 * A line is an address, a prefix, or a range (192.0.2.1-192.0.2.9), of either family. '#' or ';'
 * begins a comment. Read as they are, too: fields between commas or tabs (CSV), of which the first
 * is an address or a prefix, or the first two are an address and its length; what `ipset save NAME`
 * prints, whose netmask is the length of each element; elements of an nft set, in braces.
 *
 * Memory: the text while it is read, and the list. One thread.
 */
#ifndef PACER_SET_READ_H
#define PACER_SET_READ_H

#include "config/policy.h"
#include "sets/names.h"
#include "sets/words.h"

struct set_source {
	const char *name;	       /* of the file, for errors */
	uint32_t value_field;	       /* the field that is the value, 2 or more; 0: none */
	const struct set_names *known; /* whose values have their numbers already; NULL: none */
};

struct set_text {
	struct set_list list; /* sorted */
	struct set_names names;
	uint64_t timeouts;	   /* elements whose time is not kept */
	char set[POLICY_NAME_MAX]; /* its name, which outlasts its policy */
	struct set_about
	    about; /* of a set with values; list.about, where keys have them (texts.h) */
};

/*
 * Read a text. 0, or -1 with *error filled (its file is source->name); then there is nothing to
 * free. A text without a prefix is an error, as half a download is.
 */
int set_read(const char *text, size_t len, const struct set_source *source, struct set_text *out,
	     struct policy_error *error);
/*
 * The same of a file; "-" is stdin. Pipes and devices are refused, since they may have no end, but
 * for /dev/stdin and /dev/fd/N, which somebody gave the command to read.
 */
int set_read_file(const char *path, const struct set_source *source, struct set_text *out,
		  struct policy_error *error);
void set_text_free(struct set_text *text);

/* Append one address, prefix or range. 0, or -1 with *error filled, which has the line. */
int set_read_element(const char *text, uint16_t value, uint32_t line, struct set_list *list,
		     struct policy_error *error);

#endif
