/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: JSON as text, whole or not at all: jansson's json_dumps goes on after an allocation
 * failed, and leaves a name out of what it returns. And whether what was read lacks anything: a
 * value that there was no memory for looks like one that is not there.
 */
#ifndef PACER_JSON_H
#define PACER_JSON_H

#include <jansson.h>
#include <stdbool.h>

/*
 * The text of the value, to be freed, by jansson's flags. NULL: no memory, a text that is not
 * UTF-8, or no value.
 */
char *json_whole(const json_t *value, size_t flags);

/* From now on jansson's allocations are counted that fail, in this process. */
void json_count_failures(void);
/* Whether one has failed since this was asked last. */
bool json_lacked(void);
/*
 * The value; NULL: it is no JSON, or would take over 16 times its length of memory and 1 MiB, as
 * *why says (of no line: -1); or, as json_lacked() says, there is no memory for it. After
 * json_count_failures().
 */
json_t *json_read(const char *text, size_t len, size_t flags, json_error_t *why);

#endif
