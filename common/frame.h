/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: what a frame is to its host, which may define the macros below. Here it is in memory and
 * has its time.
 *
 * Concurrency: a frame is one CPU's. Memory: none.
 */
#ifndef PACER_FRAME_H
#define PACER_FRAME_H

#include "parse.h"

#ifndef PACER_FRAME
struct pacer_frame {
	const __u8 *data, *end; /* what of it is there */
	__u32 len_bytes;	/* the whole frame's */
	__u64 now_ns;		/* at which it is judged; not 0 */
};

PACER_INLINE int pacer_frame_load(const struct pacer_frame *frame, void *to, __u32 len)
{
	__u8 *byte = to;
	__u32 i;

	for (i = 0; i < len && frame->data + i < frame->end; i++)
		byte[i] = frame->data[i];
	return 0;
}

#define PACER_FRAME const struct pacer_frame
#define PACER_FRAME_PARSE(frame, pkt) \
	pacer_parse((frame)->data, (frame)->end, (frame)->len_bytes, pkt)
#define PACER_FRAME_DATA(frame)		 ((frame)->data)
#define PACER_FRAME_END(frame)		 ((frame)->end)
#define PACER_FRAME_LEN(frame)		 ((frame)->len_bytes)
#define PACER_FRAME_LOAD(frame, to, len) pacer_frame_load(frame, to, len)
#define PACER_FRAME_NOW(frame, exact)	 ((void)(exact), (frame)->now_ns)
#endif

#endif
