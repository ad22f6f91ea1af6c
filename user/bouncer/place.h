/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what the pacer of an interface was told to ban, and what it has to be told by what is
 * decided now: the difference. What it did not take is a part of that each time. Where it could not
 * be told, it is told all.
 *
 * A pacer is known by its state: `upgrade` and `shadow` put another program over the same one, and
 * what was lifted by hand there stays lifted. Another state is told all, and what the one before
 * had is lifted there, where it is no longer decided: a state that is restored has it, too.
 *
 * What was lifted may come back: a fleet's agent that begins later takes it from the store, and a
 * state that is restored may have been saved before. So it is remembered until its end, and lifted
 * again where the pacer has it until then, less or more 5 s. What ends at another time was banned
 * by somebody else since.
 *
 * Error: where memory or the pacer fails, it may have a part. What it may have is remembered, so
 * that what is no longer decided is lifted all the same. So is what was left out of a trial's
 * table: the one before, which has it, may come back. A ban's end is its decision's, less or
 * more 5 s, since an answer is as old as it was under way. A source's ban that ends later than that
 * is somebody else's: it is not lifted. One that ends sooner was lost in the decision's, and goes
 * with it.
 *
 * Memory: 32 bytes a ban, and as much for each that was lifted before its end; as much again for
 * each while it is told.
 */
#ifndef PACER_PLACE_H
#define PACER_PLACE_H

#include "bouncer/decisions.h"
#include "live/attached.h"

/* All zero: its pacer was told nothing. */
struct place {
	uint32_t control_id;	  /* of the state that has `has`, whichever program is over it */
	struct ban_pieces has;	  /* what it took */
	struct ban_pieces may;	  /* what it, or the state before, may have besides */
	struct ban_pieces lifted; /* what may come back */
	bool again;		  /* it has another table: tell it all */
	size_t room;		  /* of its table, */
	uint32_t begun;		  /* and when that began */
	size_t no_room;		  /* for so many, as was said last */
	/* By family, IPv6 second, and length: it was said that the pacer bans none such. */
	bool refused[2][129];
};

/*
 * The pacer has `is` from now on, and the place remembers that: `is` is the place's, whatever comes
 * of it. 0, or -1 with *error filled.
 */
int place_bring(struct attached *a, struct place *place, struct ban_pieces *is,
		struct policy_error *error);
/* Is something of what was told last not banned: for want of room, or as its length cannot be? */
bool place_lacks(const struct place *place);
void place_free(struct place *place);

#endif
