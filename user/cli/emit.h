/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a result, said once, that comes out as text or as JSON.
 *
 * A field has a name and a value, for the JSON, and a format with its arguments, for the text; NULL
 * for either leaves it out there. Text is written as it comes. JSON is built and written at the
 * end, whole or not at all.
 *
 * Between emit_table() and emit_table_end() the text of a field is a cell of a table. No cell is
 * ever cut: where a row is wider than the terminal (COLUMNS, or what the terminal says; elsewhere
 * there is no limit), it is broken between columns, in every row at the same. A column without a
 * title and without a cell takes no room.
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
/* Instead of emit_end() where there is no result after all. */
void emit_drop(void);
bool emit_is_json(void);

/* For the JSON alone. In an array no name counts: "" will do, as for its fields. */
void emit_object(const char *name);
void emit_array(const char *name);
void emit_close(void);

#define EMIT_FORMAT(n) __attribute__((format(printf, n, (n) + 1)))

void emit_uint(const char *name, uint64_t value, const char *format, ...) EMIT_FORMAT(3);
/* Null, where the value is no number or has no end. */
void emit_real(const char *name, double value, const char *format, ...) EMIT_FORMAT(3);
void emit_flag(const char *name, bool value, const char *format, ...) EMIT_FORMAT(3);
void emit_null(const char *name, const char *format, ...) EMIT_FORMAT(2);
/* Of what others chose the JSON gets what characters it has; the text is the caller's to escape. */
void emit_string(const char *name, const char *value, const char *format, ...) EMIT_FORMAT(3);
/* For the text alone. */
void emit_text(const char *format, ...) EMIT_FORMAT(1);

/* --- tables ------------------------------------------------------------------------------------
 */

struct emit_column {
	const char *title; /* NULL: the table's end; "": none */
	bool right;	   /* as numbers stand */
};

/* The columns have to last until emit_table_end(); before the first of them are `indent` blanks. */
void emit_table(const struct emit_column *columns, size_t indent);
/*
 * The same, for results that come bit by bit: each row is written with its last cell. Each column
 * is as wide as `widths` says, and only a cell that is wider moves what follows it.
 */
void emit_table_at_once(const struct emit_column *columns, const size_t *widths, size_t indent);
void emit_row(void);
/* So many cells stay empty. */
void emit_skip(size_t n);
void emit_table_end(void);

/* --- what it looks like ------------------------------------------------------------------------
 */

enum emit_style { EMIT_PLAIN, EMIT_BOLD, EMIT_ALARM, EMIT_STYLES };

/*
 * What turns a style on, EMIT_PLAIN off. Nothing but on a terminal, where NO_COLOR is unset or
 * empty and TERM is not dumb.
 */
const char *emit_style(enum emit_style style);

struct emit_number {
	char text[32];
};

/* As an argument of printf: thousands(n).text, such as 1,234,567. */
struct emit_number thousands(uint64_t n);
/* Three digits and a unit of thousands: "12.3 kpps". */
struct emit_number per_second(double n, const char *unit);

#endif
