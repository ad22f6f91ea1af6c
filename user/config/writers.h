/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what a field's value is as text, for a field with one value and for a list: macros that
 * make the writer write_NAME of a part's struct. For the sources of this wing that have a table of
 * fields.
 */
#ifndef PACER_WRITERS_H
#define PACER_WRITERS_H

#include <stdio.h>

#include "config/document.h"
#include "config/units.h"

/* The text of a field with one value. */
#define WRITER(name, struct_name, is_there, format, ...)                             \
	static bool write_##name(const void *from, size_t i, char *buf, size_t size) \
	{                                                                            \
		const struct struct_name *p = from;                                  \
                                                                                     \
		if (i || !(is_there))                                                \
			return false;                                                \
		snprintf(buf, size, format, __VA_ARGS__);                            \
		return true;                                                         \
	}

#define WRITE_NUMBER(name, struct_name, is_there, value) \
	WRITER(name, struct_name, is_there, "%llu", (unsigned long long)(value))
#define WRITE_TIME(name, struct_name, is_there, ns) \
	WRITER(name, struct_name, is_there, "%s",   \
	       units_duration_text(ns, (char[FIELD_TEXT]){0}, FIELD_TEXT))

/* A list's items, each by `text`. */
#define WRITE_LIST(name, struct_name, list, text)                                    \
	static bool write_##name(const void *from, size_t i, char *buf, size_t size) \
	{                                                                            \
		const struct struct_name *p = from;                                  \
                                                                                     \
		if (i < p->n_##list)                                                 \
			text(&p->list[i], buf, size);                                \
		return i < p->n_##list;                                              \
	}

#endif
