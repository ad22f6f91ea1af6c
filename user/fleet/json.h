/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: JSON as text, whole or not at all: jansson's json_dumps goes on after an allocation
 * failed, and leaves a name out of what it returns.
 */
#ifndef PACER_JSON_H
#define PACER_JSON_H

#include <jansson.h>

/*
 * The text of the value, to be freed, by jansson's flags. NULL: no memory, a text that is not
 * UTF-8, or no value.
 */
char *json_whole(const json_t *value, size_t flags);

#endif
