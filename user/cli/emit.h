/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a result, said once, that comes out as text or as JSON.
 *
 * A field has a name and a value for the JSON, and a format with arguments for the text. If one of
 * them is NULL, the field is left out there. Text is written as it comes. JSON is written at the
 * end, and only if there was memory for all of it.
 *
 * Between emit_table() and emit_table_end() the text of a field is a cell of a table. Cells are
 * never cut. If the table is wider than the terminal (COLUMNS, or what the terminal says), all rows
 * are broken at the same columns. A file has no width. An empty column without a title takes no
 * room.
 */
#ifndef PACER_EMIT_H
#define PACER_EMIT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void emit_begin(bool json);
/* Returns the exit code. */
int emit_end(void);
int emit_end_line(void); /* the JSON without a line break in it */
/* Its JSON on one line, to be freed, instead of printing it; NULL: there was no memory. */
char *emit_end_text(void);
/* Ends without a result, instead of emit_end(). */
void emit_drop(void);
bool emit_is_json(void);

/* For the JSON only. In an array, names are ignored: pass "". */
void emit_object(const char *name);
void emit_array(const char *name);
void emit_close(void);

/*
 * Several results as one: an array of objects, each with the interface's name and what is then
 * said between emit_begin() and emit_end(), or null if that was dropped, as "result". `headed`: as
 * text, the name stands above it.
 */
void emit_many_begin(bool json);
void emit_many_next(const char *ifname, bool headed);
/* Returns the exit code. */
int emit_many_end(void);
int emit_many_end_line(void); /* the JSON without a line break in it */

#define EMIT_FORMAT(n) __attribute__((format(printf, n, (n) + 1)))

void emit_uint(const char *name, uint64_t value, const char *format, ...) EMIT_FORMAT(3);
/* NaN and infinity become null. */
void emit_real(const char *name, double value, const char *format, ...) EMIT_FORMAT(3);
void emit_flag(const char *name, bool value, const char *format, ...) EMIT_FORMAT(3);
void emit_null(const char *name, const char *format, ...) EMIT_FORMAT(2);
/* The JSON has text_name() of what is not UTF-8. The caller escapes the text. */
void emit_string(const char *name, const char *value, const char *format, ...) EMIT_FORMAT(3);
/* For the text only. */
void emit_text(const char *format, ...) EMIT_FORMAT(1);

/* --- tables ------------------------------------------------------------------------------------
 */

struct emit_column {
	const char *title; /* NULL: the table's end; "": none */
	bool right;	   /* right-aligned, for numbers */
};

/* `columns` must stay valid until emit_table_end(). Each line begins with `indent` blanks. */
void emit_table(const struct emit_column *columns, size_t indent);
/*
 * The same for results that come bit by bit: a row is written as soon as its last cell is set.
 * `widths` gives the width of each column. A wider cell moves what follows it in its row.
 */
void emit_table_at_once(const struct emit_column *columns, const size_t *widths, size_t indent);
void emit_row(void);
/* Leaves n cells empty. */
void emit_skip(size_t n);
void emit_table_end(void);

/* --- what it looks like ------------------------------------------------------------------------
 */

enum emit_style { EMIT_PLAIN, EMIT_BOLD, EMIT_ALARM, EMIT_STYLES };

/*
 * The escape sequence that turns a style on; EMIT_PLAIN turns it off. It is empty unless stdout is
 * a terminal, NO_COLOR is unset or empty, and TERM is not dumb.
 */
const char *emit_style(enum emit_style style);

/*
 * On a terminal that can do so, the text that follows takes the place of what is on the screen,
 * when it is whole (emit_end). What is longer or wider than the screen is cut, and that is said in
 * its last line, which ends without a line feed. hint: what else it says, or NULL. False: it is as
 * ever.
 */
bool emit_screen(const char *hint);

struct emit_number {
	char text[32];
};

/* For printf: thousands(n).text is "1,234,567". */
struct emit_number thousands(uint64_t n);
/* Three digits and a prefix of the unit: "12.3 kpps". */
struct emit_number per_second(double n, const char *unit);

#endif
