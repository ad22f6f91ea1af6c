/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: an event as a line for people, as JSON, and as the fields that other programs take. */
#ifndef PACER_EVENTS_SHOW_H
#define PACER_EVENTS_SHOW_H

#include "episodes/detector.h"

/* Where it happened, and what makes the time of day of its times. */
struct event_place {
	const char *ifname; /* of a capture: its file */
	int64_t day_ns;	    /* added to a time of the event, but for its began_ns: since 1970 */
};

/* "2026-11-22T04:37:28.123Z". Returns buf. */
#define EVENT_TIME 40
const char *event_time(const struct event_place *place, uint64_t time_ns, char *buf);

/* A line without its end, cut where buf is too small. Returns buf. */
#define EVENT_TEXT 1024
const char *event_text(const struct event *event, const struct event_place *place, char *buf,
		       size_t size);
/* One object on one line, to be freed; NULL: no memory. */
char *event_json(const struct event *event, const struct event_place *place);
/* Its fields, into the object that is open. */
void event_emit(const struct event *event, const struct event_place *place);

#endif
