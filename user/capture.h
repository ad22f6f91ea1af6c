/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the frames of a capture, classic or pcapng, of Ethernet or raw IP, in their order, with
 * their times. Raw IP gets the Ethernet header that XDP would have seen before it.
 *
 * Error: what cannot be read is said in one line on stderr; the frames before a damage count. So is
 * the first frame that is before another which came earlier: all such count as of the latest time.
 *
 * Concurrency: one capture at a time. Memory: libpcap's, and of one frame.
 */
#ifndef PACER_CAPTURE_H
#define PACER_CAPTURE_H

#include <stdbool.h>
#include <time.h>
#include <pcap/pcap.h>

#include "replay.h"

/* All zero is closed. */
struct capture {
	const char *file;
	pcap_t *pcap;
	int link;
	int pass;	 /* how often it was opened */
	uint64_t frames; /* read in this pass */
	bool damaged;	 /* and said so */
	bool classic;	 /* a classic file, whose 32 bits of seconds last until 2106 */
	bool ran_back;	 /* its clock, and said so */
	uint64_t now_ns; /* the latest time read in this pass */
	time_t shown;	 /* when progress was, last */
};

/* "-" is stdin. 0, or the exit code to leave with, the error said. */
int capture_open(struct capture *c, const char *file);
/* Whether capture_again can read it once more: a file can be, stdin and a pipe cannot. */
bool capture_repeats(const struct capture *c);
/* From the start, as capture_open. */
int capture_again(struct capture *c);
/* 1 and a frame, which lasts until the next call; 0 at the end, or where the capture is damaged. */
int capture_next(struct capture *c, struct replay_frame *frame);
void capture_close(struct capture *c);

#endif
