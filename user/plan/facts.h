/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what `check` says of a limit, as data: names and values, and their text. Whoever knows a
 * kind of limit writes them, and user/cli prints them as text or as JSON.
 *
 * A fact has a name and a value for the JSON, and a format with arguments for the text; of NULL it
 * is left out there (emit.h). Text that is too long is cut.
 *
 * Memory: FACTS_MAX facts of a limit; what is more is left out, and the list says so.
 */
#ifndef PACER_FACTS_H
#define PACER_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FACTS_MAX 48
#define FACT_TEXT 160

enum fact_is { FACT_UINT, FACT_REAL, FACT_STRING, FACT_NULL, FACT_ARRAY, FACT_OBJECT, FACT_CLOSE };

struct fact {
	enum fact_is is;
	const char *name; /* NULL: text alone */
	uint64_t value;
	double real;
	char string[64];
	char text[FACT_TEXT]; /* "": none */
};

struct facts {
	struct fact at[FACTS_MAX];
	size_t n;
	bool full; /* some were left out */
};

#define FACT_FORMAT(n) __attribute__((format(printf, n, (n) + 1)))

void facts_uint(struct facts *to, const char *name, uint64_t value, const char *format, ...)
    FACT_FORMAT(4);
void facts_real(struct facts *to, const char *name, double value, const char *format, ...)
    FACT_FORMAT(4);
void facts_string(struct facts *to, const char *name, const char *value, const char *format, ...)
    FACT_FORMAT(4);
void facts_null(struct facts *to, const char *name);
void facts_text(struct facts *to, const char *format, ...) FACT_FORMAT(2);
/* For the JSON only. In an array, names are ignored: pass "". */
void facts_array(struct facts *to, const char *name);
void facts_object(struct facts *to, const char *name);
void facts_close(struct facts *to);

#endif
