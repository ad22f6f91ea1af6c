/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: judge frames at times that are given, by the core in user space or by the same core in
 * the kernel (BPF_PROG_TEST_RUN of the object on a fake clock, which needs root). The two agree
 * frame by frame: the hash's secret is the same in every run, so that a replay can be repeated.
 *
 * Memory: the policy's table; nothing grows with the frames. One thread.
 */
#ifndef PACER_REPLAY_H
#define PACER_REPLAY_H

#include "plan/compile.h"
#include "outcome.h"
#include "parse.h"

/* What of a frame is read: headers behind it count as cut short, as behind a driver's first buffer.
 */
#define REPLAY_HEAD_BYTES 3072u

struct replay_frame {
	const uint8_t *data; /* from the Ethernet header on */
	uint32_t captured;   /* bytes of it */
	uint32_t len_bytes;  /* that it had on the wire */
	uint64_t time_ns;    /* as the capture has it */
	uint64_t now_ns;     /* at which it counts: the latest time seen */
};

struct replay_judged {
	uint32_t outcome; /* outcome.h; the kernel's is without an event */
	uint64_t open_ns; /* of a denial: when the packet would pass if nothing else came; else 0 */
	struct pacer_packet pkt;
	uint32_t
	    value[2]; /* by which its rule's limits counted it, where they do by values of sets */
};

struct replay;

/* NULL with *error filled. `bin` and `policy` have to stay. */
struct replay *replay_open(const struct policy *policy, const struct pacer_policy *bin,
			   uint64_t lines, bool kernel, struct policy_error *error);
/* 0, or -1 with *error filled: only the kernel can fail to judge. */
int replay_judge(struct replay *r, const struct replay_frame *frame, struct replay_judged *judged,
		 struct policy_error *error);
/*
 * Says that this frame will be judged soon: in user space, its limits' lines of the table are asked
 * for, so that it need not wait for memory then. Nothing is changed.
 */
void replay_ahead(struct replay *r, const struct replay_frame *frame);
void replay_close(struct replay *r);

/* What stands before any limit: an outcome, undecided where *pkt is for a rule's limits to judge.
 */
uint32_t replay_begin(struct replay *r, const struct replay_frame *frame, struct pacer_packet *pkt);

/*
 * What one limit of a rule would say to the packet at this time. Nothing is changed, so it may be
 * asked under one value of a limit after another; only in user space.
 */
enum pacer_reason replay_peek(struct replay *r, const struct pacer_packet *pkt, uint32_t rule,
			      uint32_t limiter, uint64_t time_ns);

/* What a packet at this time would be judged by, in user space; to be read alone. */
struct pacer_walk replay_walk(struct replay *r, const struct pacer_packet *pkt, uint64_t time_ns);

/* Uses that a throttle counts as free at this time. */
uint32_t replay_throttle_free(const struct replay *r, uint32_t rule, uint32_t limiter,
			      uint64_t time_ns);

#endif
