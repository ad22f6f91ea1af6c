/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what the tools know of each kind of limit: one row a kind, and its functions in a file
 * of its own (kind_NAME.c). Whoever asks a limit or a limit something asks its row. Its fields, and
 * what these have to agree in, are a table of the policy's (config/limits.c). Pure.
 *
 * A row is of a kind of limit (policy.h) and of the kind of limit that such a limit is kept in
 * (abi.h). A gap may be a guest in the limit of a window of its key; then both rows have a say.
 */
#ifndef PACER_KINDS_H
#define PACER_KINDS_H

#include "plan/facts.h"
#include "plan/plan.h"

struct pacer_walk;

typedef unsigned __int128 u128;

/* What new limits are made for. */
struct terms {
	uint64_t resolution_ns; /* that they include; 0: the exact clock */
	uint32_t cpus;
	uint64_t fleet; /* shares_fleet */
};

/* A limit of a policy with what it was compiled to, for `check`. */
struct kind_subject {
	const struct policy_limit *limit;
	const struct pacer_limiter *limiter;
	const struct plan *plan;
};

/* Where the state of a packet's key is. */
enum held_by {
	HELD_BY_NONE, /* its next packet is a newcomer's */
	HELD_BY_OWN,
	HELD_BY_SHARED, /* with others, whose packets count */
	HELD_BY_CELLS,	/* of a gap's sketch, that others may have raised */
	HELD_BY_ONE	/* one for all keys */
};

/* What a limit holds of a packet's key. */
struct limit_held {
	enum held_by by;
	const char *unit;   /* of the next three; NULL: they are not known */
	uint64_t used, max; /* of a window, a rate's burst or a throttle */
	uint64_t asked;	    /* what the packet costs */
	uint64_t last_ns;   /* of a gap: when the key was seen last; 0: never, or long ago */
	bool leases;	    /* a throttle, which takes what it gives at once */
	uint64_t leased;    /* uses that the CPU holds, among the free ones */
};

struct limit_kind {
	const char *name;
	enum policy_limit_kind limit;
	enum pacer_limiter_kind limiter;
	enum pacer_reason reason; /* of its denials */
	bool counts_bytes;	  /* where its cost says so */
	bool by_time;		  /* its value is a time, and more of it is stricter */
	bool keeps_times;	  /* the state is the clock's times as they were read */
	bool closed;		  /* what it let through its whole span ago counts still */
	bool refills;		  /* what was used comes back bit by bit, not use by use */
	bool shaped_by_value;	  /* how its state lies depends on its value */
	const char *unit;	  /* what it counts, where that is no packets or bytes */

	/* --- of the policy's limit ---------------------------------------------------------- */

	/* Fill *t, but for its key and where it lies. `path` is that of the limit in the policy. */
	int (*profile)(const struct policy_limit *limit, const struct terms *terms,
		       const char *path, struct pacer_limiter *t, struct policy_error *error);
	uint64_t (*fine_ns)(
	    const struct policy_limit *limit); /* the shortest time it tells apart */
	/* NULL, or: may it be a guest in the limit of another limit of its key? It is made one. */
	bool (*join)(const struct policy_limit *limit, const struct pacer_limiter *t,
		     struct pacer_limiter *host, bool try);
	/* The value that is tuned, and for how long each of what it lets through counts. */
	uint64_t *(*value_of)(struct policy_limit *limit);
	uint64_t (*span_ns)(const struct policy_limit *limit);
	/* NULL, or: what the next reading of a capture is under (least.h), where the last one has
	 * found this value; `beyond`: and more than the limit can be tuned to, else NULL.
	 */
	void (*retune)(struct policy_limit *limit, const struct policy_limit *from, uint64_t value,
		       const struct pacer_limiter *beyond);

	/*
	 * Is *t, of this kind or with a guest of it, made from the limit? It may include the coarse
	 * clock's resolution, or not.
	 */
	bool (*is)(const struct policy_limit *limit, const struct pacer_limiter *t,
		   uint64_t resolution_ns);

	/* --- what is said of it ------------------------------------------------------------- */

	/* "300 packets in 1s" */
	void (*text)(const struct policy_limit *limit, char *buf, size_t size);
	/* "412 packets in 1s": what stands before the value ("burst of "; NULL: nothing), and what
	 * stands behind (NULL: " in " and the span)
	 */
	const char *value_is;
	void (*per)(const struct policy_limit *limit, char *buf, size_t size);
	/* What `check` says: facts for the JSON, and lines of text. */
	void (*facts)(const struct kind_subject *of, struct facts *to);
	/* What it holds of w->pkt's key, read alone. */
	void (*held)(const struct pacer_walk *w, const struct pacer_limiter *t,
		     struct limit_held *held);

	/* --- of the limit -------------------------------------------------------------------- */

	void (*finish)(struct pacer_limiter *t); /* NULL, or: when all of its guests are there */
	/* Lines, or none where its state lies elsewhere; how many are wanted, 0: a share. */
	uint64_t (*lines)(const struct pacer_limiter *t);
	uint64_t (*wanted)(const struct policy_limit *limit, const struct pacer_limiter *t);
	/* Lines that withstand a flood of so many packets a second (flood.h). */
	uint64_t (*flood)(const struct pacer_limiter *t, uint64_t pps);
	void (*size)(struct pacer_limiter *t, uint64_t lines);
	bool (*hashed)(
	    const struct pacer_limiter *t); /* does where it lies depend on the secret? */
	uint64_t (*memory_ns)(const struct pacer_limiter *t); /* after a packet it can matter */
	/* Has it the shape of the old one? Then *t is what it is in the entries of that. */
	bool (*same_shape)(struct pacer_limiter *t, const struct pacer_limiter *old,
			   const struct compile_host *host);
	u128 (*allowance)(const struct pacer_limiter *t); /* more is looser */
	/* Of one shape: it gets the value of the other, while packets are judged by it. */
	void (*take_value)(struct pacer_limiter *t, const struct pacer_limiter *from);
	bool (*same_time)(const struct pacer_limiter *a, const struct pacer_limiter *b);
	/* With beside: the limit counts from the change on that is being made. */
	void (*begins)(struct pacer_limiter *t);
	/* May this one, which goes on, not have counted what a draining one let through? */
	bool (*is_younger)(const struct pacer_limiter *t, const struct pacer_limiter *draining,
			   uint64_t now_ns);
	/* NULL, or: this one has to wait for others that drain, up to that time. */
	void (*beside)(struct pacer_limiter *t, uint64_t end_ns);
	bool (*has_waited)(const struct pacer_limiter *t,
			   uint64_t at_ns); /* is that over by then? */
	/*
	 * With beside: t begins after `before`, and notes whether a key may have had more by that
	 * than t lets through at once. One that has noted so begins anew before it gets looser.
	 */
	void (*owe)(struct pacer_limiter *t, const struct pacer_limiter *before);
	bool (*owes)(const struct pacer_limiter *t);

	/* --- the smallest value that denies nothing (least.h) ------------------------------- */

	uint64_t (*value)(const struct pacer_limiter *t);
	void (*tune)(struct pacer_limiter *t, uint64_t value);
	uint64_t (*most)(const struct pacer_limiter *t); /* that it can be tuned to */
	/* A value at which a packet that is denied now is let through. */
	uint64_t (*enough)(const struct pacer_limiter *t, uint32_t len_bytes);
	/* Is a's time no shorter than b's, but for a fleet's drift? NULL: of a rate, of a gap. */
	bool (*no_shorter)(const struct pacer_limiter *a, const struct pacer_limiter *b);
};

extern const struct limit_kind kind_gap, kind_window, kind_rate, kind_throttle;

/* What it counts in: "packets", "bytes", "uses". */
const char *limit_unit(const struct policy_limit *limit);

/*
 * Is the limiter, or the guest that is with it, what this limit of its rule was compiled to? On a
 * host whose coarse clock has this resolution.
 */
bool limit_is(const struct policy_limit *limit, const struct pacer_limiter *t,
	      uint64_t resolution_ns);
bool limit_is_guest(const struct policy_limit *limit, const struct pacer_limiter *t,
		    uint64_t resolution_ns);

const struct limit_kind *limit_kind_of(const struct policy_limit *limit);
const struct limit_kind *kind_of_limiter(const struct pacer_limiter *t); /* NULL of none */
const struct limit_kind *kind_of_reason(enum pacer_reason reason);	 /* NULL of any other */

/* What several kinds have in common: entries of the table, in sets of two and shared ones. */
uint64_t entries_lines(const struct pacer_limiter *t);
uint64_t entries_wanted(const struct policy_limit *limit, const struct pacer_limiter *t);
void entries_size(struct pacer_limiter *t, uint64_t lines);
bool entries_hashed(const struct pacer_limiter *t);

/* How many, those that keys share included. */
uint64_t entries_number(const struct pacer_limiter *t);

/* The entry of the walk's packet, and where it stands. False: there is none to be read. */
struct pacer_ask;
struct pacer_found;
bool entries_find(const struct pacer_ask *q, struct pacer_found *found, struct limit_held *held);

/* What no table holds. */
#define LINES_NEVER (1ull << 40)

/* Lines of state of a limit, and for how long after an admission they can matter. */
uint64_t compile_limiter_lines(const struct pacer_limiter *limiter);
uint64_t compile_limiter_memory_ns(const struct pacer_limiter *limiter);
/* Does where the limit's state lies depend on the secret? */
bool compile_hashed(const struct pacer_limiter *limiter);
/* Does its state lie in the table's lines? Else it is one of the throttles'. */
bool compile_in_lines(const struct pacer_limiter *limiter);

/*
 * A gap is kept in the record of a window of the same key only where what that adds to it is below
 * this share of it; else it has a sketch of its own. And by how much at most it is prolonged.
 */
#define COMPILE_GAP_SHARE 16u
uint64_t compile_gap_more_ns(const struct pacer_limiter *limiter);

#endif
