/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: carries a member's requests to the store, and the answers back (member.h, store.h).
 *
 * Error: a call whose answer is not known is told to the member as lost; talk_why says what failed
 * last. Of the records of this host that cannot be read, the last one is in `why`, in one line.
 *
 * Only what is new is read. A member that has gone leaves no news, but members are counted: they
 * are all read anew then, in a large fleet by one host after the other, since it does not matter
 * when it is noticed. A record that has gone is noticed at once. One by which there is no share is
 * read anew at each look: the answer may have been wrong, and not the record.
 *
 * Concurrency: one caller at a time. A request takes four calls of the store at most.
 *
 * Memory: a record for each share, and what the store has of limits and members.
 */
#ifndef PACER_FLEET_TALK_H
#define PACER_FLEET_TALK_H

#include "fleet/codec.h"
#include "fleet/store.h"

#define TALK_KEY   32
#define TALK_FIRST "limit/" /* what a snapshot has to have (store.h) */
#define TALK_LAST  "member/"

/* A limit that this host has no more, as the record has it. */
struct talk_lost {
	uint64_t id; /* 0: none */
	uint64_t memory_ns;
};

struct talk {
	const struct store_kind *kind;
	struct store *store;
	struct fleet_member *member;
	struct fleet_token token;
	uint32_t ttl_s;
	uint64_t (*now_ns)(void); /* the member's clock */
	const uint64_t *share_id; /* of each share of the member */
	/* What is known of the store. */
	struct store_snapshot all; /* what was read; it may have members that are gone */
	uint64_t recount_ns;	   /* when they are to be read anew, if so; 0: none is gone */
	uint64_t revision;	   /* of the last look at it */
	uint64_t answered_ns;	   /* when it answered last; 0: never */
	uint64_t took_ns;	   /* and how long that took */
	uint64_t calls;		   /* requests that were sent, ever */
	bool refused;		   /* the last was a write that another came before */
	/* Where it follows what is known still, after another look, that may have come wrong. */
	uint64_t refused_id, refused_at; /* whose record it was, and the revision that it follows */
	bool doubtful;			 /* so it is: all is asked for at the next look */
	bool back; /* the store has forgotten what it had; the caller says so, and clears it */
	uint32_t members;   /* sessions that were there at the last look, gone or not */
	uint32_t strangers; /* records of limits that this host has not, in use by others */
	/*
	 * In one of them this host has units: an agent before this one was killed before it gave
	 * them back. Its session goes on, so nobody else can.
	 */
	struct talk_lost lost;
	char why[FLEET_WHY]; /* of the last record that could not be read; "": all could */
	/* Of a store that cannot be watched: since when in a row, when last, and when it is tried.
	 */
	uint64_t unwatched_ns, missed_ns, watch_ns;
	bool unwatched_told;
	/*
	 * What is watched tells of this host's own renewals, too, so that its silence is none that
	 * is not noticed. Of one that it has not told: when that was answered (0: it has told of
	 * all since it began), and when it was sent. All before heard_ns was told.
	 */
	bool watching;
	uint64_t untold_ns, untold_sent_ns, heard_ns;
	/* For talk_send alone. */
	struct fleet_record *record; /* one for each share */
	struct fleet_read *read;
	uint32_t room;
};

/* Sends it, waits for the answer, and tells the member. False: it is lost, or there is no memory.
 */
bool talk_send(struct talk *talk, const struct fleet_request *request);
/*
 * Waits up to wait_ms for changes, TALK_ of them; -1: the store cannot be watched, and nothing was
 * waited for. `items`: what exchange.h has is watched, too, from that revision on; 0: it is not.
 * One that says nothing of this host's renewals for some seconds counts as one that cannot be
 * watched, and is asked anew: its connection may be dead while calls go by others. One that cannot
 * be watched again and again is asked once a second: until then TALK_LATER, and nothing was waited
 * for either.
 */
#define TALK_RECORDS 3
#define TALK_ITEMS   4
#define TALK_LATER   (-2)
int talk_watch(struct talk *talk, uint64_t items, uint32_t wait_ms);
/* After a -1: is it to be said by talk_why? Once in a row, where the store has answered meanwhile.
 */
bool talk_unwatched(struct talk *talk);
/* The key of this host's session, for writes that need it. */
void talk_guard(const struct talk *talk, char key[TALK_KEY]);
const char *talk_why(const struct talk *talk);
void talk_free(struct talk *talk); /* not the store */

#endif
