/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: names that others chose (files, interfaces, keys) as a terminal, a picture or JSON can
 * take them. Pure.
 *
 * What is written: characters as they are; \xHH for each byte of a control character (C0, DEL, C1),
 * of one that turns the direction of writing or ends a line, and for each byte that is no UTF-8.
 * A backslash stays as it is: the text is for eyes, and is not read back (but text_name()).
 */
#ifndef PACER_TEXT_H
#define PACER_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#define TEXT_PRINTABLE 1024 /* of a name that stands in a table */

struct printable {
	char text[TEXT_PRINTABLE];
};

/* At most size - 1 bytes, cut between characters with "..." where that is too little. Returns buf.
 */
char *text_escape(const char *text, char *buf, size_t size);
/* The same for an argument of printf: printable(name).text. */
struct printable printable(const char *text);

/*
 * A name as labels and JSON have it, which are UTF-8: the name, or, where it is none, "bytes:" and
 * what text_escape() writes of it, its backslashes as \x5c. So no two names have the same text, but
 * for such as have a ':', which no interface has. It wants TEXT_NAME(strlen(name)) bytes.
 */
#define TEXT_NAME(len) (4 * (len) + sizeof("bytes:"))
const char *text_name(const char *name, char *buf, size_t size);

bool text_is_utf8(const char *text);

/* Those of n names that are not `but`: "a", "a and b", "a, b and c"; "": there are none. */
char *text_others(const char *const *names, size_t n, const char *but, char *buf, size_t size);

#endif
