/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: how one limit is divided among the members of a fleet, as the store holds it: what each
 * member may admit, and what it may have admitted before. Pure: no clock, no socket, no memory of
 * its own.
 *
 * Source: docs/fleet.md. A limit admits at most `limit` units within memory_ns. The record divides
 * the units. A member's cell says what it may admit within memory_ns (held), and what it may have
 * admitted beyond that under a larger share (cool), which counts for left_ns more.
 *
 * Lanes. Lane 0 is for every key. A key that needs other shares than those gets a lane of its own.
 * A member that takes part in such a lane has a cell there, which says what it may admit of that
 * key; for the others their cell of lane 0 does. So in each lane every member counts once.
 *
 * Why no window holds more than the limit. A member that has admitted under no share above S since
 * t - memory_ns has admitted at most S within (t - memory_ns, t]: the last packet in it was
 * admitted under some share, and that counts all before it. So the fleet admits at most the sum
 * over all members of the largest share that each had within the window. A cell never counts for
 * less than that (member.h), and fleet_sum of a lane is never raised above fleet_limit
 * (fleet_raise).
 *
 * Time. A record holds no time of day, since members share no clock. It holds times left, from when
 * it was written. Whoever has known it for a time subtracts no more than that (fleet_age), and he
 * came to know it after it was written: nothing counts for too short a time. He has known what
 * cools for as long as he has known it by its name (`since`), in whichever record, and goes by that
 * (fleet_take). Else what many members write would hardly cool: each has just read what the one
 * before wrote, and nobody would count the time between.
 *
 *   A name is the revision that the write followed by which the cell began to cool, or began to
 * cool anew. One write alone follows a revision, so within a slot all that cools by one name began
 * at one time. Of a record that is begun nothing is followed: its cell gets its name by the write
 * after.
 *
 * Error: what is held or cools is denied to the others. A time left is too long by the time between
 * a member's writing and another's first reading, and by the bound on clocks.
 *
 * Concurrency: functions of their arguments alone.
 *
 * Memory: 40 bytes a member, and 48 for each of its lanes; the struct has room for all (472 KiB).
 */
#ifndef PACER_FLEET_RECORD_H
#define PACER_FLEET_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The model has fewer. */
#ifndef FLEET_MEMBERS_MAX
#define FLEET_MEMBERS_MAX 1024
#endif
#ifndef FLEET_LANES_MAX
#define FLEET_LANES_MAX 9
#endif
#define FLEET_UNITS_MAX	 (1ull << 47) /* of a limit: sums of all cells stay below 2^63 */
#define FLEET_MEMORY_MAX (1ull << 56) /* ns: 2.28 years */
#ifndef FLEET_KEY_TEXT
#define FLEET_KEY_TEXT 96 /* a key as `why` and `top` write it, with its NUL */
#endif

/*
 * The bound on clocks. Of two clocks of the fleet (those of the hosts that run since boot, and the
 * one by which the store ends leases) and of true time, none gains or loses more than one part in
 * 2^FLEET_DRIFT_SHIFT (977 ppm) on another. A crystal is off by 100 ppm at most, and clocks are
 * slewed by 500 ppm at most.
 */
#ifndef FLEET_DRIFT_SHIFT
#define FLEET_DRIFT_SHIFT 10
#endif

/* Of what those who are gone leave of a limit, which part the reserves of all others are at most:
 * the model's limits are small. */
#ifndef FLEET_RESERVES_DEN
#define FLEET_RESERVES_DEN 2
#endif

struct fleet_cell {
	uint64_t held;	  /* units that the member may admit within memory_ns */
	uint64_t cool;	  /* units beyond, that it may have admitted before */
	uint64_t left_ns; /* and for how long they still count: true time, from the writing */
	uint64_t since;	  /* the name of what cools; 0: it has none yet, or nothing cools */
	uint64_t want;	  /* units that it has use for */
	bool own;	  /* of a lane above 0: the member takes part in it */
};

struct fleet_slot {
	uint64_t id;	  /* of the member: 1 and more; 0: of nobody (fleet_begin) */
	uint64_t session; /* for which it holds its cells; 0: it has none, and holds its reserve */
	uint64_t limit;	  /* of its own policy */
	uint64_t reserve; /* of each `held`: what it keeps without a session */
	uint64_t due;	  /* the reserve that it is to have, as long as it lacks units for that */
	struct fleet_cell cell[FLEET_LANES_MAX];
};

struct fleet_record {
	uint64_t memory_ns;
	uint32_t slots;
	char key[FLEET_LANES_MAX][FLEET_KEY_TEXT]; /* of a lane above 0; "": not in use */
	struct fleet_slot slot[FLEET_MEMBERS_MAX];
};

/* True time that has passed for certain while a member's clock ran for `ns`. */
static inline uint64_t fleet_surely(uint64_t ns)
{
	return ns - (ns >> FLEET_DRIFT_SHIFT) - !!(ns & ((1ull << FLEET_DRIFT_SHIFT) - 1));
}

/* For how long a member's clock may run while the store's runs for `ns`, in any case. */
static inline uint64_t fleet_within(uint64_t ns)
{
	return fleet_surely(fleet_surely(ns));
}

/* After how long by a member's clock `ns` of true time are over for certain. */
static inline uint64_t fleet_over(uint64_t ns)
{
	return ns + (ns >> (FLEET_DRIFT_SHIFT - 1)) + 2;
}

/*
 * Begins a record where none was found. Somebody may have taken it away, and members may go on by
 * what it said: any number of units cool, as nobody's, for memory_ns + 2 * ttl_ns, by when their
 * shares are over.
 */
void fleet_begin(struct fleet_record *record, uint64_t memory_ns, uint64_t ttl_ns);

/*
 * What is wrong with a record that was read, in a few words; NULL: nothing. Whatever its numbers,
 * no function here does harm.
 */
const char *fleet_unsound(const struct fleet_record *record);

/* `to` becomes what `from` is, without the room that neither uses; it was a record, or all 0. */
void fleet_copy(struct fleet_record *to, const struct fleet_record *from);

/*
 * `to`, which has been known for `ns` of true time at least, becomes what `from` is; but what cools
 * in both, by one name, has no longer left than by `to`.
 */
void fleet_take(struct fleet_record *to, const struct fleet_record *from, uint64_t ns);

/* Brings the times left from one moment to a later one: `ns` of true time are over for certain. */
void fleet_age(struct fleet_record *record, uint64_t ns);

/* The slot of a member; NULL: it has none. */
struct fleet_slot *fleet_slot_of(struct fleet_record *record, uint64_t id);
/* Makes one for a member that has none: they are in the order of ids. There is room. */
struct fleet_slot *fleet_add_slot(struct fleet_record *record, uint64_t id);

/* The smallest limit of those that have a session; 0: nobody has one. */
uint64_t fleet_limit(const struct fleet_record *record);

/* The reserves of all members together, or of those without a session. */
uint64_t fleet_reserves(const struct fleet_record *record, bool absent);

/*
 * The largest reserve that a member may have: a half, a quarter and so on of the limit, so that
 * those of all who have a session are not above half of what those leave who have none. So a member
 * that is to have it gets it, and what is left is divided by demand. UINT64_MAX: nobody has a
 * session.
 */
uint64_t fleet_reserve_most(const struct fleet_record *record);

/* What the member may have admitted in this lane within memory_ns. */
uint64_t fleet_charge(const struct fleet_slot *slot, uint32_t lane);
/* The same of all together. */
uint64_t fleet_sum(const struct fleet_record *record, uint32_t lane);
/* Units that can be given to the slot in this lane: in lane 0, as many as every lane has. */
uint64_t fleet_free(const struct fleet_record *record, const struct fleet_slot *slot,
		    uint32_t lane);

/*
 * What the slot is to hold in this lane once all have settled: its reserve, or the one that it is
 * to have, and, of the rest, max-min fair shares of what the members want. What nobody wants is
 * divided equally. All members come to the same from the same record, and the goals of a lane are
 * never above the limit in all.
 */
uint64_t fleet_goal(const struct fleet_record *record, const struct fleet_slot *slot,
		    uint32_t lane);
/* How many of its units the slot is to give up now, for others who lack them. */
uint64_t fleet_surplus(const struct fleet_record *record, const struct fleet_slot *slot,
		       uint32_t lane);

/*
 * Gives up `held` down to `to`. The member admits no more than `to` by now, and has admitted `hot`
 * at most within memory_ns: what is above `to` cools.
 */
void fleet_lower(struct fleet_record *record, struct fleet_slot *slot, uint32_t lane, uint64_t to,
		 uint64_t hot);
/* Takes `units` that are free (fleet_free). */
void fleet_raise(struct fleet_slot *slot, uint32_t lane, uint64_t units);

/* Names all that cools without a name; it is to be written, following this revision. */
void fleet_name(struct fleet_record *record, uint64_t follows);

/* The slot's session is over, for certain: all but its reserve cools from now on. */
void fleet_end_session(struct fleet_record *record, struct fleet_slot *slot);
/* Takes away slots that count for nothing, and keys that nobody takes part in. */
void fleet_tidy(struct fleet_record *record);

#endif
