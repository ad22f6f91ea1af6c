/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the events of a pacer at work, as they happen. Somebody calls it again and again, every
 * FOLLOW_EVERY_NS as near as he can; it reads the counters of each CPU, and the samples only while
 * a rule denies more than is ordinary. What counters cannot tell comes out of the notes (whose key
 * was banned, who changed what).
 *
 * Concurrency: one thread, beside packets and other tools. It changes nothing that packets are
 * judged by. What it tells of episodes, it notes beside what tools did, once, however many follow:
 * but for one that is stopped while it writes its note, beside which another may write the same.
 *
 * Error: that of detector.h. What it could not read or was too late for is told as lost. Of notes
 * that were written over before they were asked for (follow_since) it is not known of when they
 * were: all of them are.
 *
 * Memory: the policy in force, parsed, and while a sample is read, a copy of one CPU's.
 */
#ifndef PACER_FOLLOW_H
#define PACER_FOLLOW_H

#include "episodes/detector.h"
#include "live/notes.h"

#define FOLLOW_EVERY_NS	 100000000ull
#define FOLLOW_TABLES_NS 1000000000ull /* tables are looked at as often */

/* What was told of a state's notes. */
struct follow_reach {
	uint64_t noted, said;		   /* the numbers of the next */
	uint64_t lost[PACER_COUNTERS_MAX]; /* by counter: bans that were not noted, as they were */
};

/*
 * The bans of a rule that found no room. The first is told at once, the others while it goes on
 * after EPISODE_NEWS_NS, and then after twice as long each time, up to EPISODE_NEWS_MOST_NS.
 */
struct follow_full {
	bool known;		    /* its counter was read */
	uint64_t read, told;	    /* of the counter: what it was, and how much of it is told */
	uint64_t grew_ns;	    /* 0: it has not */
	uint64_t news_ns, apart_ns; /* when the next is told, and how long after the last */
};

struct follow {
	struct detector detector;
	struct attached *a;
	event_tell *tell;
	void *arg;
	struct policy *policy;
	uint64_t word; /* control.in_force, as it was */
	uint64_t serial;
	uint32_t copy;
	uint32_t counter[PACER_RULES_MAX];
	struct follow_reach reach;
	struct follow_full full[PACER_COUNTERS_MAX];
	uint64_t changed_ns;		    /* since a change of policy of which nobody spoke; 0 */
	uint64_t last_ns, slow_ns, torn_ns; /* of the last round, look at tables, torn sample */
	uint64_t unread_ns;		    /* since when a note is being written; 0: none is */
};

/*
 * From now on. 0, or -1 with *error filled. `a` has to stay until it is closed; where another
 * program is over the same state, its `attached` may take the place of f->a.
 */
int follow_open(struct follow *f, struct attached *a, const struct episode_settings *by,
		event_tell *tell, void *arg, struct policy_error *error);
/*
 * What was noted after since_ns, too: of a pacer whose notes begin with it, as it took the place of
 * another at about that time. Bans that were not noted have no time: they are told of one that has
 * no older notes.
 */
void follow_since(struct follow *f, uint64_t since_ns);
/*
 * The states that somebody follows, or did, by an id that is not 0, and how far each was told: so
 * that of one that is gone and comes back, be it on another interface, nothing is told twice and
 * nothing is left out. Of those that are remembered, the first gives way to one too many.
 */
#define FOLLOW_STATES 64

struct follow_states {
	struct follow_state {
		uint32_t id;
		struct follow_reach reach;
	} at[FOLLOW_STATES];
	size_t n; /* remembered so far */
};

/* Remembers what f has told of this state, beside what others have. */
void follow_remember(struct follow_states *states, uint32_t id, const struct follow *f);
/* After follow_open: tells what was not told yet. False: of this state it is not known. */
bool follow_go_on(struct follow *f, struct follow_states *states, uint32_t id);
/* Tells what was noted or counted so far and was not told, and no more: before the pacer is let go.
 */
void follow_notes(struct follow *f);
/* The same of changes alone, and of a state that was remembered and that nobody follows now. */
void follow_changes_since(struct attached *a, struct follow_states *states, event_tell *tell,
			  void *arg);
/* One round. 0, or -1 with *error filled. */
int follow_round(struct follow *f, struct policy_error *error);
/* The pacer is gone, or nobody follows any more. Ends every episode. */
void follow_close(struct follow *f);

/* Tells all that the notes still have, the oldest first. 0, or -1 with *error filled. */
struct follow_past {
	uint64_t bans, bans_lost; /* that are told, and that were written over or never noted */
	uint64_t said, said_lost;
	uint64_t bans_since_ns, said_since_ns; /* the oldest that is told; 0: none */
};
int follow_past(struct attached *a, event_tell *tell, void *arg, struct follow_past *past,
		struct policy_error *error);

#endif
