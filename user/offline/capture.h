/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: reads the frames of a capture in order, with their times. A capture is classic pcap or
 * pcapng, of Ethernet or raw IP. Raw IP gets an Ethernet header, as XDP would have seen it.
 *
 * Error: if the capture is damaged, the frames before the damage count, and the listener is told.
 * The listener is also told of the first frame with a time before an earlier frame. Such frames
 * count at the latest time seen.
 *
 * Concurrency: one capture at a time. Memory: libpcap's, and of one frame.
 */
#ifndef PACER_CAPTURE_H
#define PACER_CAPTURE_H

#include <stdbool.h>
#include <pcap/pcap.h>

#include "offline/replay.h"

struct capture;

/* Shows warnings and progress. */
struct capture_listener {
	void (*warn)(const struct capture *c, const char *text); /* one line about the file */
	void (*progress)(const struct capture *c);		 /* each 65,536 frames */
	void (*end)(const struct capture *c);			 /* of progress */
};

/* All zero is closed. */
struct capture {
	const char *file;
	const struct capture_listener *listener;
	pcap_t *pcap;
	int link;
	int pass;	 /* how often it was read from the start */
	uint64_t frames; /* in this pass */
	bool damaged;	 /* and said so */
	bool classic;	 /* a classic file, whose 32 bits of seconds last until 2106 */
	bool ran_back;	 /* its clock ran backwards, and the listener was told */
	uint64_t now_ns; /* the latest time seen in this pass */
};

/* "-" is stdin. The listener has to stay. 0, or -1 with *error filled. */
int capture_open(struct capture *c, const char *file, const struct capture_listener *listener,
		 struct policy_error *error);
/* Can capture_again read it once more? A file yes, stdin and a pipe no. */
bool capture_repeats(const struct capture *c);
/* Reads it from the start again; returns like capture_open. */
int capture_again(struct capture *c, struct policy_error *error);
/* 1 and a frame, valid until the next call; 0 at the end or at a damage. */
int capture_next(struct capture *c, struct replay_frame *frame);
void capture_close(struct capture *c);

#endif
