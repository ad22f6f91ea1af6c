/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a host of path.h whose frames are parsed already, so that tests give packets as the
 * parser leaves them and run all of the way from there on.
 */
#ifndef PARSED_H
#define PARSED_H

#include <stdint.h>

#include "parse.h"

struct parsed {
	struct pacer_packet pkt;
	uint64_t now_ns;
};

/* No byte of a frame is there: what the compiler must not know, since it would warn of each read.
 */
static const __u8 *volatile parsed_nothing = (const __u8 *)"";

#define PACER_FRAME			 const struct parsed
#define PACER_FRAME_DATA(frame)		 ((void)(frame), parsed_nothing) /* no short way */
#define PACER_FRAME_END(frame)		 ((void)(frame), parsed_nothing)
#define PACER_FRAME_LEN(frame)		 ((void)(frame), 0)
#define PACER_FRAME_PARSE(frame, to)	 (*(to) = (frame)->pkt, PACER_PARSED)
#define PACER_FRAME_LOAD(frame, to, len) ((void)(frame), (void)(to), (void)(len))
#define PACER_FRAME_NOW(frame, exact)	 ((void)(exact), (frame)->now_ns)
#include "path.h"

/* What becomes of w->pkt at w->now_ns. */
static inline uint32_t judge_parsed(struct pacer_walk *w)
{
	struct parsed frame = {w->pkt, w->now_ns};
	uint32_t outcome;

	(void)pacer_path(&frame, w, &outcome);
	return outcome;
}

#endif
