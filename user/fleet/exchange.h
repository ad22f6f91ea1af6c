/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: carries the items that hosts share (shared.h) to the store, and back.
 *
 * Error: what failed last is store->why, unless memory did (starved). What lies under our prefix
 * and is no item, or not one as this host has them, is passed over and counted (strange); the last
 * one is in `odd`, in one line. Where this host has something to tell of it, that is left out
 * (shared_barred). A store whose revision is before what was read has forgotten that, or said a
 * wrong one (back). Nothing is heard of it then: what is not there is not lifted by that.
 *
 * Concurrency: one caller at a time. A call takes two of the store. What is much is read by pages,
 * one a call, that are all of one moment, and then what has changed since. The first time, and
 * where what is new may be older than two seconds (nothing was answered, or this host stood still),
 * a call takes one more for each lease, as far as a second goes: the next goes on there. So the
 * caller can renew its session meanwhile.
 *
 * Memory: what a page has, while it is read; and 32 bytes a lease until all are asked.
 */
#ifndef PACER_FLEET_EXCHANGE_H
#define PACER_FLEET_EXCHANGE_H

#include "fleet/shared.h"
#include "fleet/store.h"

#define EXCHANGE_ITEMS "item/"

#define EXCHANGE_ODD 320 /* bytes of what is said of one that is passed over */

/* Does a host have such an item? */
enum exchange_is {
	EXCHANGE_OURS,
	EXCHANGE_OTHERS, /* its policy has nothing of the kind */
	EXCHANGE_ODD_ONE /* it has, but not with such a value */
};

struct exchange_age; /* of a lease */

struct exchange {
	const struct store_kind *kind;
	struct store *store;
	struct shared items;
	uint64_t (*now_ns)(void); /* the host's clock */
	/* Of what runs; value->by is SHARED_PLAIN where it has none. */
	enum exchange_is (*is_ours)(const char *key, const struct shared_value *value, void *arg);
	/* Does it lie here through a change of the policy, as long as it is ours? */
	bool (*stays)(const struct shared_item *item, void *arg);
	void *arg;
	uint64_t revision;	    /* up to which all was read; 0: nothing was */
	uint64_t read_ns;	    /* when; 0: never */
	uint64_t quiet_ns;	    /* when there was nothing that was not read, last */
	bool stale;		    /* something has changed since */
	bool away;		    /* that may be long ago: changes were not watched meanwhile */
	bool starved;		    /* the last call had no memory: the store is not to blame */
	bool back;		    /* the store has gone back: the caller frees this, and begins */
	struct store_snapshot page; /* of what is being read; revision 0: there is none */
	uint64_t at;		    /* of which revision all of that is; 0: nothing is being read */
	uint64_t at_ns;		    /* when that was so, or before */
	char *behind;		    /* the last key of the page before */
	size_t behind_len;
	bool again;		   /* more may have changed since */
	struct exchange_age *ages; /* that were asked, of what could not be asked as a whole */
	size_t n_ages;
	uint64_t term; /* of the store: see store.h */
	uint64_t calls, strange;
	char odd[EXCHANGE_ODD]; /* "": there is none, or it was said */
};

/*
 * Another policy is in force: reads all items anew. What is to be lifted on all hosts is told yet,
 * and what `stays` says is known yet; the rest may be missing for another reason.
 */
void exchange_begin(struct exchange *x);
void exchange_free(struct exchange *x);
/* Changes are not, or were not, seen as they come. */
void exchange_missed(struct exchange *x);
/*
 * A watch saw none up to at_ns, unless there is something to be read already: it has told since of
 * what was written after that, so that it was not only silent. Where this is long ago when
 * something is read, the caller stood still, or it or the watch was cut off: how old that is has to
 * be asked.
 */
void exchange_quiet(struct exchange *x, uint64_t at_ns);
/* Takes note of whether the store's leases began anew. To be called now and then. */
void exchange_look(struct exchange *x);
/* Is there something to be read or written? */
bool exchange_waits(const struct exchange *x);
/*
 * Reads what is new, or writes what is to be told, as far as guard's session `created` lasts.
 * False: the store did not answer, or memory ran out.
 */
bool exchange_step(struct exchange *x, const char *guard, uint64_t created);

#endif
