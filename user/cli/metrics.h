/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: figures as text for Prometheus, in either of its two forms: OpenMetrics 1.0, for who
 * asks for it, and the older text format, which all tools read. Families are whole, whatever the
 * number of interfaces. Pure.
 */
#ifndef PACER_METRICS_H
#define PACER_METRICS_H

#include "live/reading.h"
#include "live/shadow_reading.h"

enum metrics_form {
	METRICS_PLAIN,
	METRICS_OPEN,
	METRICS_SEEN, /* the plain one for a terminal, whose labels do nothing to it */
};

struct metrics_interface {
	const char *ifname;
	const struct reading *reading;	     /* NULL: no pacer could be read */
	const struct shadow_reading *shadow; /* NULL: it has none */
	const char *mode;		     /* "native", "skb", "hw" */
	bool dispatcher;
	uint64_t read_ns; /* how long that took */
};

/* To be freed; *len is without the NUL. NULL: no memory. */
char *metrics_text(enum metrics_form form, const struct metrics_interface *interfaces, size_t n,
		   size_t *len);

/* What an HTTP header says of it. */
const char *metrics_type(enum metrics_form form);
/* The form that an Accept header (NULL: none) asks for. */
enum metrics_form metrics_wanted(const char *accept);

#endif
