/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what a member of a fleet does, as a state machine: answers of the store and the time
 * come in, requests to the store and changes of the datapath come out. Pure: no clock, no socket,
 * no memory of its own. What runs is what tests/model/fleet explores.
 *
 * Source: docs/fleet.md; leases as in Gray and Cheriton, "Leases: an efficient fault-tolerant
 * mechanism for distributed file cache consistency" (1989); cool-down as in common/throttle.h.
 *
 * The store keeps of each member a session: a key that goes away unless it is renewed within ttl_ns
 * by the store's clock. A session is known by the revision at which its key was made: no two are
 * alike. Of each limit it keeps a record (record.h). Every write names the revision that it follows
 * and the session for which it is made, and is done only if both are still so.
 *
 * Why no window holds more than the limit. What the datapath has is never above the member's cell
 * of the record in the store (S), while the member's session is in the store; once that has gone,
 * the datapath has its reserve at most (E). So all that members may admit is in the record, with
 * what cools in it, and the record is never above the limit: see record.h for the sums.
 *
 *   S, down: the datapath is lowered first, and the cell after. Up: the cell first, and the
 * datapath after. A write whose outcome is not known may yet be done, or never. One that lowers a
 * cell would come upon a datapath that was raised again meanwhile. So the datapath is raised only
 *     after the record has been seen at a revision above the one that the write follows (doubt): it
 *     has been done by then or never will be.
 *   A reserve is a part of each cell that outlasts the session. The datapath's floor is never above
 * it: it is lowered before and raised after, as a value is. What it was is a part of the cell yet,
 * and is given up like all else. Who leaves keeps none.
 *
 *   E: a session lasts for ttl_ns after its last renewal was done, by the store's clock. The member
 *     counts from when it sent the request, which is before, and by fleet_within, so that it is
 *     done before whatever the two clocks do. The datapath has the end with it (until_ns) and falls
 *     back by itself: it needs no agent. A renewal names the revision of the one before. So one
 * that is done late, and ends early, is not done after one that was sent later. A session that is
 * gone ends the member's cells but for its reserve: they cool for memory_ns from then on, which is
 * after the datapath fell back. A member that begins anew does not know which writes of its
 * forerunner are on their way. It raises nothing before a write of its own is done. A datapath that
 * begins anew has forgotten what it has admitted. It is another member's as far as sessions go (its
 * token is another), so all that it held cools; and it uses its reserve only when it has been there
 * for memory_ns (begun_ns): of each share its own, also of one that comes later.
 *
 *   A store that has gone back: nothing that is known of it can be relied on. The member has no
 * share any more, and writes no record. Its datapath has fallen back, so its session can be ended:
 * others get what it had. It begins another one, which no record has, for what needs a session, and
 * not a share.
 *
 * Error: a member that cannot reach the store denies all but its reserve from the end of its
 * session on. What changes hands cools for memory_ns before. Units that a member lost with its
 * session are free for others after ttl_ns and memory_ns at most, by the store's clock. Where the
 * store is so slow that a renewal is due again as it is answered, shares change late: one write
 * goes between two renewals, and none where a write and two renewals take longer than the session
 * lasts.
 *
 * Concurrency: one caller at a time. Requests are made one after the other.
 *
 * Memory: the structs; a record and a request each have a struct fleet_record.
 */
#ifndef PACER_FLEET_MEMBER_H
#define PACER_FLEET_MEMBER_H

#include "fleet/record.h"

/* Of one limit, as the policy says. */
struct fleet_params {
	uint64_t limit;	    /* units: 1 to FLEET_UNITS_MAX */
	uint64_t memory_ns; /* for how long a unit counts after it was admitted */
	uint64_t reserve;   /* for `cut_off: local`: what it keeps when it is cut off, at most */
	bool counts_hot;    /* the datapath says how much it has admitted within memory_ns */
};

/* What the datapath is to have, as a whole and at once. */
struct fleet_picture {
	uint64_t until_ns; /* of the member's clock: from then on every value is `floor` */
	uint64_t floor;
	uint64_t value[FLEET_LANES_MAX];	   /* units */
	bool own[FLEET_LANES_MAX];		   /* there is a value for the key of this lane */
	char key[FLEET_LANES_MAX][FLEET_KEY_TEXT]; /* where it is own; else "" */
};

enum fleet_trouble {
	FLEET_WELL,
	FLEET_SMALLER,	     /* another member's policy has a smaller limit, which holds */
	FLEET_CROWDED,	     /* no more members fit */
	FLEET_OTHER_VERSION, /* from here on it has no share: the record is of another version */
	FLEET_STRANGE,	     /* what is there is no record */
	FLEET_UNSOUND,	     /* its numbers are not possible */
	FLEET_OTHER_WINDOW,  /* the fleet's limit counts for another time */
	FLEET_WENT_BACK	     /* the store has forgotten revisions that it had */
};

struct fleet_share {
	struct fleet_params params;
	struct fleet_record record; /* as it was read or written last */
	uint64_t revision;	    /* of it; 0: there is none in the store */
	uint64_t got_ns;	    /* of the member's clock: it was there by then */
	uint64_t doubt;		    /* writes that follow a revision up to this may yet be done */
	bool sure;	/* its cells were there when the session was renewed last, or after */
	uint64_t dead;	/* a session that has cells and is gone, for ever; 0: none */
	uint64_t floor; /* the reserve that is in the record for good, or less */
	struct fleet_picture applied; /* what the datapath has */
	uint64_t hot[FLEET_LANES_MAX];
	bool give[FLEET_LANES_MAX]; /* the datapath was lowered, for the cell to follow */
	bool read;		    /* since the beginning */
	bool leaving; /* the policy has its limit no more: the rest gets all that it has */
	enum fleet_trouble trouble;
	uint64_t want[FLEET_LANES_MAX];			/* by the lanes below; of all keys: [0] */
	char want_key[FLEET_LANES_MAX][FLEET_KEY_TEXT]; /* keys that need a lane; "": none */
};

#ifndef FLEET_READ_NS
#define FLEET_READ_NS 4000000ull /* for each member: between two times that all read a record */
#endif

enum fleet_op { FLEET_IDLE, FLEET_RENEW, FLEET_FETCH, FLEET_WRITE, FLEET_LEAVE };

/* What is asked of the store: all of it or nothing, and only if it is as the request says. */
struct fleet_request {
	enum fleet_op op;
	uint64_t number; /* of the request */
	/* RENEW: writes the session's key with a ttl that begins not before the request is sent,
	 * and then reads all as FETCH does. LEAVE: deletes it. */
	uint64_t follows; /* the key's revision, or that of the record; 0: it is not there */
	/* WRITE: of the record of this share. */
	uint32_t share;
	uint64_t session; /* the member's session is this */
	struct fleet_record record;
};

/* What was found of a record. */
struct fleet_read {
	uint64_t revision; /* 0: it is not there */
	const struct fleet_record *record;
	enum fleet_trouble trouble; /* FLEET_OTHER_VERSION or FLEET_STRANGE: there is no `record` */
};

struct fleet_answer {
	uint64_t number; /* of the request */
	bool done;	 /* else: the store is not as the request says */
	/* RENEW and LEAVE, done or not: the session's key as it is now. */
	uint64_t session;  /* 0: it is not there */
	uint64_t revision; /* of it; of a WRITE that was done: of the record */
	bool mine;	   /* it is of this host and datapath */
	/* FETCH and RENEW: all of one moment, the session, too. */
	const struct fleet_read *read; /* one for each share */
	const uint64_t *live;	       /* sessions that are there */
	uint32_t lives;
	bool back; /* the store has forgotten revisions that it had */
	/* WRITE that was done: what was written. */
	const struct fleet_record *record;
};

struct fleet_member {
	uint64_t id; /* 1 and more; not another's, and the same for ever */
	uint64_t ttl_ns;
	uint64_t begun_ns;   /* another datapath of this host admitted nothing after that */
	uint64_t session;    /* 0: none */
	uint64_t revision;   /* of its key */
	uint64_t renewed_ns; /* when the last renewal that was done was sent */
	uint64_t retry_ns;   /* when to ask again for a name that is taken */
	bool hurry;	     /* renew it now */
	bool turn;	     /* the store is slow, and this due again: something goes before it, */
	uint8_t turns;	     /* ... a write; or each fourth time what is of no limit */
	bool stale;	     /* the records are to be read ... */
	uint64_t read_ns;    /* ... by then, or as soon as there is something to write */
	uint64_t number;     /* of the last request */
	enum fleet_op flight;
	uint64_t flight_ns, flight_follows;
	uint32_t flight_share;
	bool taken, went_back, leaving, left;
	bool afresh;   /* the session was begun since the store went back */
	bool answered; /* the store has, since the beginning */
	struct fleet_share *share;
	uint32_t shares;
};

enum fleet_next {
	FLEET_WAIT, /* until *wake_ns, or until something comes in */
	FLEET_APPLY,
	FLEET_SEND
};

/*
 * Begins. m->id, ttl_ns, begun_ns, share and shares are filled in; of each share its params, what
 * the datapath has (applied) and the floor that it was told last (0: none). The rest is 0.
 */
void fleet_start(struct fleet_member *m);

/*
 * What is to be done at now_ns: nothing, a change of a share's datapath (*share, *picture; then
 * fleet_applied is called, if it could be made), or a request (*request).
 */
enum fleet_next fleet_next(struct fleet_member *m, uint64_t now_ns, uint32_t *share,
			   struct fleet_picture *picture, struct fleet_request *request,
			   uint64_t *wake_ns);

/*
 * The datapath has the picture. `hot`: what it has admitted in each lane within memory_ns, as
 * looked up after the change; NULL: not known.
 */
void fleet_applied(struct fleet_member *m, uint32_t share, const struct fleet_picture *picture,
		   const uint64_t *hot);

/* The answer to a request; one that is no more waited for changes nothing. */
void fleet_answered(struct fleet_member *m, uint64_t now_ns, const struct fleet_answer *answer);
/* No answer is waited for any more. The request may have been done, or may yet be. */
void fleet_lost(struct fleet_member *m);
/*
 * Something has changed in the store: records are read again, the later the more members there are,
 * since all of them do. Who has something to write reads at once.
 */
void fleet_nudge(struct fleet_member *m);
/*
 * How long to wait before the next request where members want to write the same record at once and
 * another's was done: so long that most of them come one after the other. chance: any number.
 */
uint64_t fleet_pause_ns(uint32_t members, uint32_t chance);
/* Gives everything up and ends the session; fleet_gone says when. */
void fleet_leave(struct fleet_member *m);
/*
 * Is there nothing that could be given back? So where it has left, and where the store says that it
 * has no session, nor a reserve of one before; or that another has its number.
 */
bool fleet_gone(const struct fleet_member *m);
/* Units of the share that it is to keep when it is cut off; 0: none, also where they are too few.
 */
uint64_t fleet_reserve(const struct fleet_member *m, const struct fleet_share *s);
/* Units of the share that stay its own without a session; before the first answer, at most. */
uint64_t fleet_kept(const struct fleet_member *m, struct fleet_share *s);

/* Has it given all up of this share, which was to be left? It does nothing any more. */
bool fleet_left(const struct fleet_member *m, struct fleet_share *s);

/* Until when the member's session lasts for certain; 0: it has none. */
uint64_t fleet_end_ns(const struct fleet_member *m);
/* Has the share its cells at now_ns? */
bool fleet_holds(const struct fleet_member *m, const struct fleet_share *s, uint64_t now_ns);

#endif
