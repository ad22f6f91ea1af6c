/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: items that all hosts of a fleet are to have, each until its end: bans, and elements of
 * sets, which may have a value. A state machine: what is here (in the packets' tables) and what the
 * store says come in, with the time; changes of both come out. No clock, no socket.
 *
 * An item has a key, an end on this host's clock, and in the store a value with the time that was
 * left when it was written. Who reads it counts from then on, less the age of it that the store
 * knows. So hosts need no common time, and an item ends on another host as much later as its
 * writing and reading took.
 *
 * Which word counts. Every write names the revision of the item that it follows, and is done only
 * if that is still so: all hosts see the same words on an item in the same order, and go by the
 * last. A host whose own item ends later than the store's says so; else it takes the store's. What
 * is lifted leaves a word for SHARED_LIFTED_S, so that who was away meanwhile does not say it
 * again. A word that follows lies there for as long and says so, whoever writes it: who was away
 * has what was there before all of it. So a host that begins takes such a word though its own item
 * ends later. Its end is told, too, which is no lifting: who has the item by an earlier word, or
 * since its agent began, lifts it; what was made here since follows it, and is told. So does what
 * was made here after a lifting that had been read, or would have been if reading took no time:
 * that goes by the store's revision that was known at the look that found it first. And what was
 * changed here after a word that had been heard counts over that word, also if it ends before, and
 * if the word was not taken yet; but what ends no later and says the same gives way to it. What a
 * policy on trial brought is not told before it is confirmed. What the first look under another
 * policy finds was there before: so it goes by what was heard when that policy came. A write
 * without an answer is made again, following the same revision: one of the two is done. An item
 * that is gone here counts as lifted if it was missed in two looks at all: one look can miss what
 * is being moved.
 *
 * Which value. A value is a part of the word, so all hosts have that of the last. A host whose
 * change (SHARED_BY_CHANGE, SHARED_BY_HAND) met another's, neither having known of the other,
 * compares the two, and so does one that begins: by hand counts over a file that came while its
 * agent ran, and that over a file with which a host began; of two of a kind the one that lasts
 * longer; of two that last as long the one whose bytes come first. So it is the same whichever of
 * them is said first. Only what lay beside a file when the agent began gives way to all but files:
 * it may be of before.
 *
 * Bounds: SHARED_PER_S items a second are told, and SHARED_BURST at once; what has to wait for that
 * is counted (late). SHARED_MAX are known; beyond, and where the packets' table has no room, they
 * are counted (left_out).
 *
 * Error: of two hosts that change an item within the same moment, one wins over the other. An
 * item with less than SHARED_LEAST_NS to go is not told. Ends that differ by SHARED_SLACK_NS at
 * most are the same.
 *
 * Concurrency: one caller at a time.
 *
 * Memory: 416 bytes an item.
 */
#ifndef PACER_FLEET_SHARED_H
#define PACER_FLEET_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/keyed.h"

#define SHARED_KEY	128 /* of an item, with its NUL */
#define SHARED_VALUE	64  /* of its value, with its NUL */
#define SHARED_NEVER	UINT64_MAX
#define SHARED_OVER	(UINT64_MAX - 1)
#define SHARED_BATCH	120u /* items of one write */
#define SHARED_PER_S	500u
#define SHARED_BURST	1000u
#define SHARED_LIFTED_S 3600u
#define SHARED_SLACK_NS 2000000000ull
#define SHARED_LEAST_NS 500000000ull
#ifndef SHARED_MAX
#define SHARED_MAX 65536u
#endif

enum shared_todo {
	SHARED_NOTHING,
	SHARED_TELL, /* the store does not know what is here */
	SHARED_TAKE  /* this host has not what the store says */
};

/* Who gave it its value: the later counts over the earlier. */
enum shared_by {
	SHARED_PLAIN,	  /* it is of those that have none */
	SHARED_BY_FILE,	  /* a file with which its host began */
	SHARED_BY_CHANGE, /* a file that came while the agent ran; none that is here is so */
	SHARED_BY_HAND	  /* beside the file, so it counts before what the file has within it */
};

struct shared_value {
	char text[SHARED_VALUE]; /* "": by hand and without one */
	enum shared_by by;
};

/* What the store says of an item, or is to be told. */
struct shared_word {
	struct shared_value value;
	uint64_t left_ns; /* to go; 0: it is lifted; SHARED_NEVER: it ends when it is lifted */
	uint64_t lies_ns; /* for so long it is to be heard, which is long after its end (left_ns
			   * 0: it has ended, and is not lifted); 0: until its end, or for
			   * SHARED_LIFTED_S if it is lifted */
};

struct shared_item {
	char key[SHARED_KEY];
	struct shared_value here, there;
	struct shared_value tried; /* what a write in doubt said */
	uint64_t here_ns;	   /* its end, as packets have it; 0: it is not here */
	uint64_t there_ns;	   /* its end by the store; 0: it is not there, or lifted */
	uint64_t tried_ns;	   /* its end by that; 0: it was lifted */
	uint64_t revision;	   /* of the store's word; 0: none is known */
	uint64_t lies_ns; /* until when that is to be heard, as far as is known; 0: its end */
	uint64_t since;	  /* it was made here after all words up to that revision */
	uint64_t after;	  /* all words up to that one had been heard when it was changed here */
	enum shared_todo todo;
	uint8_t missed; /* looks in a row that did not find it here */
	bool seen;	/* by the look that goes on */
	bool listed;	/* by the reading of all that goes on */
	bool doubt;	/* a write of it had no answer */
	bool late;	/* it had to wait, and that was counted */
	bool left;	/* there was no room for it here yet, and that was counted */
	bool begun;	/* what is here was so when the agent, or its policy, began */
	bool lifted;	/* the store's word lifts it */
	bool own;	/* it is this host's */
	bool lasts;	/* ... and may be there for long after its end */
	bool over;	/* so its end is to be told */
	bool half;	/* it was here under the policy before, and is to be looked for yet */
	bool filed;	/* what is here came with the policy */
};

/* Of what a look finds, and is not known yet. */
enum shared_found {
	SHARED_MADE,  /* it was made since the look before, if there was one */
	SHARED_STAYS, /* or it was there before the policy */
	SHARED_FILED  /* the policy brought it */
};

struct shared_counts {
	uint64_t told, taken, late, left_out;
};

struct shared {
	struct shared_item *at;
	size_t n, room;
	uint32_t *place; /* by hash: 1 + the item's number */
	uint32_t places;
	struct keyed keyed;	 /* for keys have addresses that strangers choose */
	size_t next;		 /* where the next batch begins to look */
	bool whole;		 /* all that the store has was read; nothing is told before */
	enum shared_found found; /* what the look that goes on comes to; set by who looks */
	bool first; /* ... and nothing of that kind was looked at since the policy is in force */
	uint64_t known;	 /* up to this revision of the store nothing is new; 0: nothing was read */
	uint64_t heard;	 /* up to this one all was heard; `known` is ahead while that is read */
	uint64_t before; /* what was heard when the policy came into force */
	bool starved;	 /* there was no memory for the last item */
	bool on_trial;	 /* the policy may go again: what it brought is not told yet */
	uint64_t tokens_ns; /* SHARED_PER_S: the time at which all of the burst is free */
	uint64_t lacking;   /* of what is looked at: how many cannot be told */
	struct shared_counts count;
};

/* Items to be written as a whole. */
struct shared_batch {
	size_t n;
	uint32_t ttl_s; /* for which the store has to keep them; 0: for ever */
	struct {
		uint32_t item;
		uint64_t follows;
		uint64_t until_ns;
		uint64_t lies_ns;
		struct shared_word word;
	} at[SHARED_BATCH];
};

void shared_free(struct shared *s);
/*
 * Another policy is in force: reads all anew. Forgets all items but those that `keeps` says (NULL:
 * none). Of others that are here it remembers, until they are looked for, which words they are
 * later than: of those that are to be told, or whose word was not heard yet. It keeps the counts,
 * and up to where the store was known: what is made here from now on is later than that.
 */
void shared_begin(struct shared *s, bool (*keeps)(const struct shared_item *item, void *arg),
		  void *arg);

/* --- what is here ---------------------------------------------------------------------------- */

/*
 * A look at all that is here: each item, and then shared_looked. now_ns is above 0. value NULL: it
 * is of those that have none.
 */
void shared_here(struct shared *s, const char *key, const struct shared_value *value,
		 uint64_t until_ns, uint64_t now_ns);
void shared_looked(struct shared *s, uint64_t now_ns);
/* One that is here, and that cannot be told. */
void shared_unfit(struct shared *s);
/*
 * A part of all has been looked at. Of its items that cannot be told, or that there was no room
 * for, those are counted that are more than at the look before: *lacked, 0 at first.
 */
void shared_counted(struct shared *s, uint64_t *lacked);
/* In place of those whose keys begin so: they are as they were at the last look. */
void shared_same(struct shared *s, const char *begin);

/*
 * The next item at or after *i that this host is to take or to lift (there_ns 0), NULL: none. Then
 * shared_taken is called: done, or there is no room for it.
 */
struct shared_item *shared_take(struct shared *s, size_t *i);
void shared_taken(struct shared *s, struct shared_item *item, bool done);
/* Or this: there is no room for it now. That is counted, once, and it stays to be taken. */
void shared_put_off(struct shared *s, struct shared_item *item);
/* Another policy may have a place for what the one before had none for: that is to be taken, too.
 */
void shared_again(struct shared *s, uint64_t now_ns);

/* --- what the store says ----------------------------------------------------------------------
 */

/*
 * The store's word: its times are from now on, and left_ns SHARED_OVER says that it is there, and
 * has ended. Of what runs all have a value, or none has.
 */
void shared_there(struct shared *s, const char *key, const struct shared_word *word,
		  uint64_t revision, uint64_t now_ns);
/* A word that was written age_ns ago, as it is now. */
void shared_age(struct shared_word *word, uint64_t age_ns);
/* The store keeps its word of that revision until then. No matter, if it is not to be heard so
 * long.
 */
void shared_lies(struct shared *s, const char *key, uint64_t revision, uint64_t until_ns);
/* Is the store's word of that revision known, or a later one? */
bool shared_knows(const struct shared *s, const char *key, uint64_t revision);
/* It is not there. */
void shared_absent(struct shared *s, const char *key, uint64_t now_ns);
/* The store has said what there was at that revision: all that is new of it is told from now on. */
void shared_asked(struct shared *s, uint64_t revision);
/* All of it has been told. */
void shared_heard(struct shared *s);
/* shared_there was called for all that there is, beginning with shared_list. */
void shared_list(struct shared *s);
void shared_listed(struct shared *s, uint64_t now_ns);

/*
 * The store may keep all for as long again as it was told to. So the end of what this host told is
 * told: who joins after that would have it once more.
 */
void shared_renewed(struct shared *s);

/* Is it to be told? Not what a policy on trial brought: it may go with that. */
bool shared_tells(const struct shared *s, const struct shared_item *item);
/* What is to be written now; n 0: nothing. */
void shared_batch(struct shared *s, uint64_t now_ns, struct shared_batch *batch);
/* It was done, at this revision. */
void shared_told(struct shared *s, const struct shared_batch *batch, uint64_t revision);
/* There was no answer. Where it was refused, shared_there or shared_absent says of each why. */
void shared_lost(struct shared *s, const struct shared_batch *batch);
/*
 * In its place is what this host cannot read. It is told no more until it changes here, and is
 * counted as left out.
 */
void shared_barred(struct shared *s, const char *key);

#endif
