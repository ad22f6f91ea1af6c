/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: reads the frames of a capture in order, with their times. A capture is classic pcap or
 * pcapng, of Ethernet or raw IP. Raw IP gets an Ethernet header, as XDP would have seen it.
 *
 * Error: if the capture is damaged, the frames before the damage count, and the listener is told.
 * So it is of a pcapng from the first interface on that has another link type or snapshot length.
 * The listener is also told of the first frame with a time before an earlier frame. Such frames
 * count at the latest time seen. Times end an hour before 2^63 ns: later ones are that one, and
 * those before 1970 are 0. The listener is told of the first one that pcapng has of each.
 * Where no frame has a time, as in pcapng's simple packet blocks, the listener is told at the end.
 *
 * A file's frames are read ahead of the one that is returned, and told to whoever wants to know
 * early what comes: replay_ahead. Of a pipe no frame is held back.
 *
 * Concurrency: one capture at a time. Memory: libpcap's, and of the frames read ahead.
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

#define CAPTURE_AHEAD 16u /* frames read ahead, a power of two */

/* A frame, with its bytes. */
struct capture_slot {
	struct replay_frame frame;
	int beyond; /* its time: -1 before 1970, 1 beyond the last one */
	uint8_t data[REPLAY_HEAD_BYTES];
};

/* All zero is closed. */
struct capture {
	const char *file;
	const struct capture_listener *listener;
	pcap_t *pcap;
	int link;
	int pass;		   /* how often it was read from the start */
	uint64_t frames;	   /* returned in this pass */
	uint64_t read;		   /* read in this pass, from 0 to CAPTURE_AHEAD more */
	uint32_t ahead;		   /* how many are to be read ahead */
	int got;		   /* what libpcap last said: 1, or why there is no more */
	bool damaged;		   /* or of interfaces that differ, and said so */
	bool classic;		   /* a classic file, whose 32 bits of seconds last until 2106 */
	bool ran_back;		   /* its clock ran backwards, and the listener was told */
	bool timeless;		   /* no frame had a time, and the listener was told */
	bool early, late;	   /* one had a time before 1970, or beyond, and so on */
	uint64_t now_ns;	   /* the latest time seen in this pass */
	struct replay *replays[2]; /* told of frames that are read ahead */
	struct capture_slot *slot; /* CAPTURE_AHEAD of them, by number of frame */
};

/* "-" is stdin. The listener has to stay. 0, or -1 with *error filled. */
int capture_open(struct capture *c, const char *file, const struct capture_listener *listener,
		 struct policy_error *error);
/* Can capture_again read it once more? A file yes, stdin and a pipe no. */
bool capture_repeats(const struct capture *c);
/* Reads it from the start again; returns like capture_open. */
int capture_again(struct capture *c, struct policy_error *error);
/*
 * Tells a replay, of two at most, of the frames that are read ahead from now on. It has to stay
 * until the capture is read again or closed, or no frame is asked for.
 */
void capture_tell(struct capture *c, struct replay *replay);
/* 1 and a frame, of at most REPLAY_HEAD_BYTES captured, valid until the next call; 0 at the end or
 * at a damage. */
int capture_next(struct capture *c, struct replay_frame *frame);
/* Is it damaged before its first frame? The listener was told so, and there is nothing to add. */
bool capture_is_lost(const struct capture *c);
void capture_close(struct capture *c);

#endif
