/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: events out of counters and samples with their times: the episodes of all rules of a
 * policy and of their heavy keys, and tables that begin to share. Pure: whoever feeds it, a pacer
 * at work or a capture, brings the time, and gets the events by a function of his own.
 *
 * 	detector_policy		at first, and when another policy is in force
 * 	detector_read		the counters of all rules at a time, each time later than the last;
 * 				it says whether a sample would serve
 * 	detector_tell		with that sample or none: tells what there is to be told
 * 	detector_table		how full a table is
 *
 * Error: of episode.h, heavy.h, crowd.h and needed.h. Concurrency: one thread. Memory: fixed.
 */
#ifndef PACER_DETECTOR_H
#define PACER_DETECTOR_H

#include "episodes/crowd.h"
#include "episodes/episode.h"
#include "episodes/heavy.h"
#include "episodes/needed.h"

/* Keys that share are told of when of those with an entry more than one in so many share. */
#define DETECTOR_SHARING 100u

/* X(NAME, name, what it says) */
#define EVENTS(X)                                                                  \
	X(START, start, "a rule begins to deny more than is ordinary")             \
	X(GOES_ON, goes_on, "and goes on")                                         \
	X(END, end, "and no longer does")                                          \
	X(KEY_START, key_start, "a key has a tenth or more of what a rule denies") \
	X(KEY_END, key_end, "and no longer has")                                   \
	X(SHARING, sharing, "keys that found no entry of their own share")         \
	X(SHARING_END, sharing_end, "and no longer do")                            \
	X(BAN, ban, "a key is banned by its rule")                                 \
	X(BANS_FULL, bans_full, "keys were not banned: the table has no room")     \
	X(CHANGE, change, "somebody changed something")                            \
	X(ROLLED_BACK, rolled_back, "a policy that nobody confirmed gave way")     \
	X(LOST, lost, "something could not be told")                               \
	X(GONE, gone, "the pacer is gone")                                         \
	X(BACK, back, "a pacer is there")

enum event_kind {
#define EVENT_ENUM(name, id, text) EVENT_##name,
	EVENTS(EVENT_ENUM)
#undef EVENT_ENUM
	    EVENT_KINDS
};

/* What is not its kind's is 0. Pointers are valid while it is told. Times are the feeder's. */
struct event {
	enum event_kind kind;
	uint64_t told_ns;
	const char *rule; /* NULL: of none */
	/* of an episode, or of a heavy key: from when, until when */
	uint64_t began_ns, ended_ns;
	int64_t began_day_ns;		   /* struct detector's day_ns when it began */
	struct episode_sum so_far, lately; /* since it began; since it was last told of */
	double peak_pps;
	const char *lets_through;    /* all that is denied, as "over: pass"; NULL: it is stopped */
	const struct crowd *crowd;   /* NULL: there is no sample */
	const struct needed *needed; /* NULL: that is not known */
	const char *key;	     /* of a heavy key, of a ban */
	struct heavy_share share;    /* a heavy key's */
	/* of a table */
	size_t limit;
	unsigned int rung; /* of its ladder, from 1; 0: it is none of a ladder */
	uint64_t used, shared, capacity;
	/* of a ban */
	uint64_t until_ns;
	/* of a change */
	const char *what, *who;
	uint32_t pid;
	uint64_t n; /* of what was lost, or not banned */
};

const char *event_name(enum event_kind kind);

typedef void event_tell(const struct event *event, void *arg);

/* Of a rule: its episode and its heavy keys. */
struct detector_rule {
	char name[POLICY_NAME_MAX];
	uint32_t counter;	/* pacer_rule.counter: another one begins from zero */
	enum episode_step step; /* to be told */
	struct episode episode;
	struct heavy heavy;
	int64_t day_ns;	    /* the detector's when the episode began */
	struct crowd crowd; /* as it last was while more was denied than is ordinary */
};

/* Of a limit's table. */
struct detector_table {
	bool on;
	uint64_t shared_ns; /* when keys last shared */
};

struct detector {
	struct episode_settings by;
	event_tell *tell;
	void *arg;
	const struct policy *policy;
	struct detector_rule rule[PACER_RULES_MAX];
	struct detector_table table[PACER_RULES_MAX][POLICY_LIMITS_MAX];
	uint64_t now_ns;
	uint64_t sampled_ns; /* when the last sample was wanted */
	/* A packet's clock is behind that of readings by so much at most. From detector_open on 0;
	 * whoever feeds it may set it. */
	uint64_t behind_ns;
	/* Added to a time, the time of day, for whom the clock of the day may be set meanwhile. As
	 * behind_ns. */
	int64_t day_ns;
};

void detector_open(struct detector *d, const struct episode_settings *by, event_tell *tell,
		   void *arg);
/*
 * This policy is in force; it has to stay until the next. A rule goes on if it keeps its name and
 * its counter, which are in the order of the policy's rules; the episodes of others end.
 */
void detector_policy(struct detector *d, const struct policy *policy, const uint32_t *counter);
/* One of each rule, in their order. */
bool detector_read(struct detector *d, const struct pacer_counters *counters, uint64_t now_ns);
/* The sample is of n denied packets, or of all that came; NULL: there is none. */
void detector_tell(struct detector *d, const struct crowd_packet *sample, uint32_t samples,
		   uint64_t n);
void detector_table(struct detector *d, size_t rule, size_t limit, uint64_t used, uint64_t shared,
		    uint64_t capacity, uint64_t now_ns);
/* Ends every episode, as at the end of a capture. It has a policy. */
void detector_stop(struct detector *d);

#endif
