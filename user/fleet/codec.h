/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: records and sessions as text in the store, and back. Pure.
 *
 * Every value is a JSON object with "is" (what it is) and "v" (its version). A reader takes no
 * version but its own: what a later one means by a field, it cannot know. Fields that it does not
 * know are an error too. Numbers are integers of at most 63 bits. A record of a limit is short,
 * since every member has a part in it: {"is":"limit","v":1,"memory_ns":N,"keys":[[LANE,KEY],...],
 * "members":[[ID,SESSION,LIMIT,RESERVE,DUE,[LANE,HELD,COOL,LEFT_NS,WANT,SINCE],...],...]}. DUE and
 * SINCE are left out where they are 0.
 *
 * Error: fleet_read_record says FLEET_OTHER_VERSION, FLEET_STRANGE or FLEET_UNSOUND, with *why one
 * line of a few words; nothing of the record is used then.
 */
#ifndef PACER_FLEET_CODEC_H
#define PACER_FLEET_CODEC_H

#include "fleet/member.h"
#include "fleet/shared.h"

#define FLEET_VERSION 1
#define FLEET_WHY     128
#define FLEET_NAME    64

/* Who a session is of: the same only for the same datapath of the same boot of the same host. */
struct fleet_token {
	uint64_t id;	       /* of the member */
	char boot[FLEET_NAME]; /* the kernel's boot id */
	uint64_t datapath;     /* the kernel's id of its control map, which is new where it is */
};

/* Text to be freed; NULL: no memory. */
char *fleet_write_record(const struct fleet_record *record);
enum fleet_trouble fleet_read_record(const char *text, size_t len, struct fleet_record *record,
				     char why[FLEET_WHY]);

char *fleet_write_session(const struct fleet_token *token);
/* Is the session this one's? What cannot be read is somebody else's. */
bool fleet_is_session_of(const char *text, size_t len, const struct fleet_token *token);

/*
 * An item that is shared (shared.h), as it is when it is written. What is to be heard for longer
 * than it runs, or has ended, has "lies_ms" in addition; what runs of a set with values has "value"
 * and "by", one of "file", "change" and "hand".
 */
char *fleet_write_item(const struct shared_word *word);
/* NULL; else why it is no item of this version, in a few words, and nothing of it is used. */
const char *fleet_read_item(const char *text, size_t len, struct shared_word *word);
/*
 * Can an item have this value? JSON is UTF-8, and control characters are nobody's value, nor blanks
 * at an end (names.h).
 */
bool fleet_fits(const char *value);

#endif
