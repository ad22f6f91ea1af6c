/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: every struct and enum that crosses between the kernel's side and
 * user space, once. What changes here changes PACER_ABI_VERSION.
 *
 * The policy in force is one of two copies; one word, control.in_force, says
 * which. A writer fills the other copy and then stores the word, so that no
 * packet is judged by half a policy. An allow-list belongs to each copy and
 * changes with it.
 *
 * Memory: a line is 64 bytes and 64-byte aligned; all of a key's state under one
 * limit lies in one line, half of one or a quarter (a window of PACER_STARTS_LINE
 * slots or more that does not fit there: in the lines that follow it, too).
 */
#ifndef PACER_ABI_H
#define PACER_ABI_H

#include "port.h"

#define PACER_MAGIC	   0x52434150u /* "PACR" */
#define PACER_ABI_VERSION  11u
#define PACER_RULES_MAX	   256u
#define PACER_RULE_WORDS   (PACER_RULES_MAX / 64)
#define PACER_LIMITERS_MAX 8u /* of a rule, with those that a change of policy draining */
/* For the rules of both copies, and 0 for no rule. */
#define PACER_COUNTERS_MAX (2 * PACER_RULES_MAX + 1)
#define PACER_STARTS_LINE  11u /* ring words in a record's first line */
#define PACER_LINE_WORDS   16u /* and in each line that follows */
#define PACER_EXTRA_MAX	   3u
#define PACER_UNIT_CELLS   16u /* of a narrow record: its running total, and ring words */
#define PACER_LINE_UNITS   4u  /* units, quarters of a line, at which entries begin */
/* Of a table: so each unit has a number of 32 bits, and one number is of none. */
#define PACER_LINES_MAX	  ((1u << 30) - 1)
#define PACER_RING_MAX	  (PACER_STARTS_LINE + PACER_EXTRA_MAX * PACER_LINE_WORDS)
#define PACER_SLOTS_MAX	  (PACER_RING_MAX - 1)
#define PACER_CELLS	  7u /* of a sketch's line; prime, see recency.h */
#define PACER_ROWS_MAX	  2u
#define PACER_BOUND_STEPS 10
/* Values at which one field's set of matching rules changes. */
#define PACER_BOUNDS_MAX   ((1u << PACER_BOUND_STEPS) - 1)
#define PACER_BUCKETS	   256u
#define PACER_DOC_MAX	   65536u
#define PACER_ALLOW_MAX	   4096u /* prefixes of one family on the allow-list of a copy */
#define PACER_VLAN_NONE	   4096u
#define PACER_KEY_WORDS	   10u
#define PACER_THROTTLES	   128u /* states, of limits (draining ones too) and of targets */
#define PACER_POOLS_MAX	   8u
#define PACER_TARGETS_MAX  32u /* of a pool */
#define PACER_CPUS_MAX	   8u  /* that can be targets if no loader sized the map */
#define PACER_SOCKETS_MAX  64u /* numbers of sockets that can be targets */
#define PACER_BAN_WAYS	   4u  /* entries of a set of the ban table */
#define PACER_FLOW_WAYS	   4u  /* entries of a set of the table of flows; a power of two */
#define PACER_BAN_SOURCE   0u  /* for a rule's id: none has it */
#define PACER_BAN_LENGTHS  4u  /* of banned prefixes, of a family */
#define PACER_BAN_OUTSIDE  1u  /* in a ban's note: somebody said so, and not the rule */
#define PACER_BAN_ROW	   8u  /* ... shifted by this: its number in a row, of a rule that grows */
#define PACER_BAN_GROW_MAX 100u
#define PACER_BAN_ROW_MAX  63u	 /* later ones count as this one; no length grows for longer */
#define PACER_NOTES	   1024u /* of bans that are kept; a power of two */
#define PACER_SAID	   256u	 /* of what tools did; a power of two */
#define PACER_SAID_TEXT	   208u
#define PACER_SHARES	   64u /* of limits that a fleet divides; a power of two */
#define PACER_LANES	   8u  /* keys of such a limit with shares of their own */

enum pacer_verdict {
	PACER_VERDICT_PASS,
	PACER_VERDICT_ADMIT,
	PACER_VERDICT_DENY,
	PACER_VERDICT_UNPARSED
};

/*
 * The reasons of verdicts. The enum, the counters, the CLI's words and the metrics come from this
 * one list. X(NAME, verdict, name, text)
 */
#define PACER_REASONS(X)                                                                          \
	X(ADMIT, ADMIT, "admit", "within every limit of its rule")                                \
	X(NO_RULE, PASS, "no_rule", "no rule matches")                                            \
	X(ALLOWED, PASS, "allowed", "its source is on the allow-list")                            \
	X(NOT_IP, PASS, "not_ip", "neither IPv4 nor IPv6")                                        \
	X(TRUNCATED, UNPARSED, "truncated", "a header is cut short")                              \
	X(BAD_HEADER, UNPARSED, "bad_header", "a header contradicts itself or the frame")         \
	X(TOO_DEEP, UNPARSED, "too_deep",                                                         \
	  "its addresses, or those in its tunnel that a rule asks for, are out of reach")         \
	X(DENY_GAP, DENY, "gap", "too soon after its key's last packet")                          \
	X(DENY_WINDOW, DENY, "window", "the window's limit would be passed")                      \
	X(DENY_RATE, DENY, "rate", "the rate and its burst would be passed")                      \
	X(DENY_THROTTLE, DENY, "throttle", "no use has cooled down")                              \
	X(DENY_BAN, DENY, "ban", "its key is banned")                                             \
	X(DENY_CONTENDED, DENY, "contended", "its key's state was held by another CPU too long")  \
	X(DENY_NO_STATE, DENY, "no_state", "its key's state is missing")                          \
	X(DENY_VERDICT, DENY, "verdict", "the verdict of its rule, or of else where it has none") \
	X(DENY_SHARE, DENY, "share", "this host has no share of the fleet's limit now")

enum pacer_reason {
#define PACER_REASON_ENUM(name, verdict, id, text) PACER_##name,
	PACER_REASONS(PACER_REASON_ENUM)
#undef PACER_REASON_ENUM
	    PACER_REASON_COUNT
};

struct pacer_count {
	__u64 packets, bytes;
};

/* Events of a rule's packets, counted beside their reasons. X(NAME, name, text) */
#define PACER_EVENTS(X)                                                                         \
	X(BANNED, "banned", "a key was banned")                                                 \
	X(BANS_FULL, "bans_full", "a key was not banned: the table of bans had no room for it") \
	X(REDIRECTED, "redirected", "sent to a target of the pool")                             \
	X(POOL_SPENT, "pool_spent", "no target of the pool could take it")                      \
	X(TARGET_GONE, "target_gone", "the pool's target cannot be redirected to")              \
	X(READ_IN_PART, "read_in_part", "its ports lie beyond what is read, or its end")

enum pacer_event {
#define PACER_EVENT_ENUM(name, id, text) PACER_##name,
	PACER_EVENTS(PACER_EVENT_ENUM)
#undef PACER_EVENT_ENUM
	    PACER_EVENT_COUNT
};

struct pacer_counters {
	struct pacer_count by[PACER_REASON_COUNT];
	__u64 events[PACER_EVENT_COUNT];
};

/*
 * The beginning of every entry of the table. An entry of a rate (rate.h) is this alone, and four
 * share a line. A record has a key's last admission and its window (recency.h, window.h), and is
 * longer. A narrow record has one more unit of cells, so two share a line. A wide record has words.
 */
struct pacer_entry {
	union {
		struct {
			__u32 lock; /* lock.h; the first word of whatever is locked */
			union {
				__u32 last;	/* record: its last admission (record.h) */
				__u32 tat_frac; /* rate: 2^-32 ns, beside tat_ns */
			};
		};
		__u64 words; /* both at once */
	};
	union {
		__u64 head_ns; /* record: when the current slot began; 0: never used */
		__u64 tat_ns;  /* rate: theoretical arrival time; 0: never used */
	};
};

/* A unit: a quarter of a line. */
union pacer_unit {
	struct pacer_entry entry;
	__u8 cell[PACER_UNIT_CELLS]; /* cum modulo 2^8, then what it was at each start */
	__u64 cell64[PACER_UNIT_CELLS / 8];
};

/* One cache line of state. What it holds depends on its limit's kind. */
struct pacer_line {
	union {
		union pacer_unit unit[PACER_LINE_UNITS];
		struct { /* a wide record */
			__u32 lock, last;
			__u64 head_ns;
			__u32 running;			/* cost admitted so far, modulo 2^32 */
			__u32 start[PACER_STARTS_LINE]; /* cum when each slot began */
		};
		struct { /* sketch: last-seen times of the keys that hash here */
			__u32 sketch_lock;
			__u32 sketch_unused;
			__u64 cell[PACER_CELLS];
		};
		struct { /* ban: a key that is banned under a rule until a time (ban.h) */
			__u32 ban_lock; /* its tag is not used */
			__u32 ban_rule; /* pacer_rule.id */
			__u64 ban_until_ns;
			__u32 ban_key_id;		/* pacer_limiter.key_id, and the family */
			__u32 ban_note;			/* PACER_BAN_OUTSIDE, PACER_BAN_ROW */
			__u32 ban_key[PACER_KEY_WORDS]; /* masked; of IPv4 the first four */
		};
		struct {		    /* flow: one that is known under a rule (flow.h) */
			__u32 flow_lock;    /* its tag is not used */
			__u32 flow_rule;    /* pacer_rule.id */
			__u64 flow_seen_ns; /* of its last packet that was let through; 0: none */
			__u32 flow_family;
			__u32 flow_unused;
			__u32 flow_key[PACER_KEY_WORDS];
		};
		__u64 word64[PACER_CELLS + 1]; /* of a sketch: its cells are all but the first */
		__u32 word[PACER_LINE_WORDS];  /* of a wide record's further lines: start words */
	};
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct pacer_line) == 64, "a line is a cache line");
_Static_assert(sizeof(union pacer_unit) * PACER_LINE_UNITS == 64, "and four entries of a rate");
_Static_assert(sizeof(struct pacer_entry) == 16, "which are a unit each");
_Static_assert((PACER_LINES_MAX + 1ull) * PACER_LINE_UNITS == 1ull << 32,
	       "and are fewer than that");
_Static_assert(PACER_RING_MAX < 64, "a cursor has six bits");

/* All lines, contiguous. */
struct pacer_table {
	struct pacer_line *lines;
	__u32 n;
};

PACER_INLINE struct pacer_line *pacer_line_at(const struct pacer_table *table, __u32 index)
{
	return index < table->n ? &table->lines[index] : 0;
}

enum pacer_cost { PACER_COST_PACKETS, PACER_COST_BYTES };

/* A window's profile. The loader computes it from the operator's units (window.h says how). */
struct pacer_window {
	__u64 slot_ns;	  /* T, at least 1 */
	__u64 ring_ns;	  /* ring * slot_ns; the ring remembers nothing older */
	__u32 limit;	  /* of cost units */
	__u32 mul;	  /* floor(2^32 / (slot_ns >> shift)) or less */
	__u8 shift;	  /* of time before the multiplication */
	__u8 ring;	  /* slots: m + 1; 0: no window */
	__u8 cost;	  /* enum pacer_cost */
	__u8 cost_shift;  /* a unit is 2^cost_shift bytes, rounded up a packet */
	__u8 extra_lines; /* lines of a record beside its first */
	__u8 units;	  /* of a record: 2: a narrow one; else 4 a line */
	__u8 unused[2];
};

/* A rate with a burst, computed by the loader (rate.h). Spans are ns and fractions of 2^-32 ns. */
struct pacer_rate {
	__u64 unit_ns;	  /* the time of one unit of cost, rounded up */
	__u64 burst_ns;	  /* how far ahead of now a key's theoretical arrival time may be */
	__u32 unit_frac;  /* 2^-32 ns, beside unit_ns */
	__u32 burst_frac; /* and beside burst_ns */
	__u64 begin_ns;	  /* not 0: at which no key has any of its burst */
	__u8 cost;	  /* enum pacer_cost */
	__u8 unused[7];
};

/* Buckets are grouped in blocks, so that after a long silence they are freed in a few steps. */
#define PACER_THROTTLE_BLOCK   16u /* buckets; a power of two, as the next */
#define PACER_THROTTLE_BLOCKS  16u
#define PACER_THROTTLE_RING    (PACER_THROTTLE_BLOCK * PACER_THROTTLE_BLOCKS)
#define PACER_THROTTLE_BUCKETS (PACER_THROTTLE_RING - PACER_THROTTLE_BLOCK) /* the most at once */

/* What the packet path needs of the params. All zero means not configured: everything is denied. */
struct pacer_throttle_profile {
	__u32 limit;
	__u32 threshold;
	__u32 lease;
	__u32 buckets;	   /* the most that can be needed */
	__u64 cooldown_ns; /* resolution included */
	__u64 open_ns;	   /* from a bucket's first moment to its last */
	__u64 lease_ns;
};

struct pacer_throttle_bucket {
	__u64 close_ns; /* the last moment at which uses are put in */
	__u64 until_ns; /* the last moment at which a use out of it can be made */
	__u32 count;
	__u32 unused;
};

/*
 * The buckets have the numbers head to tail - 1. The place of a bucket is its number modulo the
 * size of the ring. One block is always free, so that no block has both the oldest and the newest
 * bucket.
 */
struct pacer_throttle_state {
	__u32 lock; /* lock.h; no tag, no cursor */
	__u32 held; /* uses in buckets */
	__u32 next; /* number of the next use, below limit */
	__u32 unused;
	__u64 seen_ns; /* latest time seen */
	__u64 head;
	__u64 tail;
	__u32 block[PACER_THROTTLE_BLOCKS]; /* uses in the buckets of each */
	struct pacer_throttle_bucket bucket[PACER_THROTTLE_RING];
};

/* One for each CPU. */
struct pacer_throttle_lease {
	__u64 seen_ns;	/* latest time seen; after a use, its time */
	__u64 until_ns; /* the last moment at which `left` can be used */
	__u64 bucket;	/* number of the bucket that `left` is counted in */
	__u32 left;
	__u32 number; /* of the last use; with a lease of one */
};

_Static_assert(sizeof(struct pacer_throttle_state) == 6248, "as throttle.h says");
_Static_assert(sizeof(struct pacer_throttle_lease) == 32, "as throttle.h says");

/* One for each CPU and pool (pool.h). */
struct pacer_pool_lease {
	struct pacer_throttle_lease lease;
	__u32 target;	   /* of the lease; after a use, of the use */
	__u32 targets;	   /* resume_ns holds while the profile has these three values */
	__u64 cooldown_ns; /* the second */
	__u32 limit;	   /* the third */
	__u32 unused;
	__u64 resume_ns; /* every target is spent until then */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct pacer_pool_lease) == 64, "as pool.h says");

enum pacer_limiter_kind {
	PACER_LIMITER_NONE,
	PACER_LIMITER_GAP,
	PACER_LIMITER_WINDOW,
	PACER_LIMITER_RATE,
	PACER_LIMITER_THROTTLE
};

/*
 * Beside its kind: a fleet divides the limit, and this host has a share of it (share.h). So it is
 * no window or rate to what looks for those alone: plain limits pay nothing for it.
 */
#define PACER_LIMITER_FLEET 16u

/* Beside its kind, too: the limit counts packets that open a flow (flow.h), and asks no others. */
#define PACER_LIMITER_NEW 32u

/*
 * A limit has the limits of one rule that share a key: at most one gap and one window. Its state is
 * in the table, from line `base` on. A sketch has `sets` lines. Records and rates have `sets` sets
 * of two entries each, and then `shared` entries (table.h).
 */
struct pacer_limiter {
	__u8 kind;	 /* enum pacer_limiter_kind, PACER_LIMITER_FLEET, PACER_LIMITER_NEW */
	__u8 rows;	 /* cells of a key in a sketch's line, 1 to PACER_ROWS_MAX */
	__u8 last_shift; /* unit of a record's last admission: 2^last_shift ns */
	__u8 src_only;	 /* only the source address counts in the key */
	__u32 base;	 /* of a throttle: which state */
	__u32 sets;
	__u32 shared;
	__u32 key_id;	 /* which masks these are (PACER_KEY_ID); 0: the key is the same for all */
	__u8 units;	 /* of an entry; of a sketch: a line */
	__u8 secret;	 /* which of the two secrets of the control hashes its keys */
	__u8 generation; /* of its value; 0 to PACER_GENERATIONS - 1 (record.h) */
	__u8 share;	 /* of a fleet's limit: its place among the shares */
	__u64 gap_ns;	 /* 0: none */
	__u64 idle_ns;	 /* this long after head_ns a record holds nothing any more */
	__u64 until_ns;	 /* 0: in force; else draining, and asked until then */
	union {
		struct pacer_window window;
		struct pacer_rate rate;
		struct pacer_throttle_profile throttle;
	};
	__u32 mask4[4];		      /* key: source, destination, ports, meta of IPv4 */
	__u32 mask6[PACER_KEY_WORDS]; /* the same of IPv6, addresses in four words */
	__u8 value[2];		      /* in the place of source and destination: 1 + which of
					 the rule's values; 0: the address */
	__u8 unused[6];
	__u32 value_set[2]; /* ... of the set of this name, as compile_name_id; 0: none */
	__u64 share_id;	    /* of a fleet's limit: that of its share */
	__u64 share_ns;	    /* for how long what it lets through counts, in true time */
};

/*
 * pacer_limiter.key_id: two limits of a rule with the same key have the same, but for the sets of
 * which they have values. `parts` says what the key has beside addresses. The lengths are those of
 * the addresses, for IPv4 and IPv6: 0 to 32 and 0 to 128; or PACER_KEY_VALUE and 0, where the value
 * of the address in a set stands in its place. They are digits of one number.
 */
#define PACER_KEY_SPORT 1u
#define PACER_KEY_DPORT 2u
#define PACER_KEY_PROTO 4u
#define PACER_KEY_V6	8u /* beside it, in a ban: an IPv6 key */
#define PACER_KEY_VLAN	16u
#define PACER_KEY_TTL	32u
#define PACER_KEY_PARTS 6u /* bits before the lengths */
#define PACER_KEY_VALUE 33u
#define PACER_KEY_LEN6	129u
#define PACER_KEY_ONE	(PACER_KEY_VALUE * PACER_KEY_LEN6 + 1) /* what one address can have */
#define PACER_KEY_LENGTHS(src4, src6, dst4, dst6)                         \
	(((__u32)(src4)*PACER_KEY_LEN6 + (__u32)(src6)) * PACER_KEY_ONE + \
	 (__u32)(dst4)*PACER_KEY_LEN6 + (__u32)(dst6))
#define PACER_KEY_ID(parts, src4, src6, dst4, dst6) \
	(PACER_KEY_LENGTHS(src4, src6, dst4, dst6) << PACER_KEY_PARTS | (__u32)(parts))

#define PACER_VALUE_DST 0x80u /* of the destination; else of the source */

enum pacer_over { PACER_OVER_DROP, PACER_OVER_PASS, PACER_OVER_POOL };

/* Does a rule have one limit, of no fleet, is that enforced, and does a denial drop? */
enum pacer_plain {
	PACER_PLAIN_NOT,
	PACER_PLAIN,	     /* and no key is banned under it */
	PACER_PLAIN_BANNING, /* but keys may be */
	PACER_PLAIN_VERDICT  /* or it has a verdict, that needs no more */
};

/* What a rule says of all its packets, or `else` of those of no rule, where no limit is asked. */
enum pacer_says {
	PACER_SAYS_LIMITS, /* nothing: it is for the limits */
	PACER_SAYS_PASS,
	PACER_SAYS_DENY /* and then `over` says what is done */
};

/* What the short way of a packet is for (path.h): a limit of this kind, or a verdict. */
enum pacer_short_kind {
	PACER_SHORT_NONE,
	PACER_SHORT_NARROW,	/* a window, in narrow records */
	PACER_SHORT_NARROW_GAP, /* with a gap */
	PACER_SHORT_WIDE,	/* a window, with or without a gap, in records of a line each */
	PACER_SHORT_RATE,
	PACER_SHORT_SKETCH, /* a gap alone */
	PACER_SHORT_THROTTLE,
	PACER_SHORT_VERDICT, /* no limit is asked */
	/* Of limits that a fleet divides: these and all behind. */
	PACER_SHORT_PART_NARROW,
	PACER_SHORT_PART_WIDE,
	PACER_SHORT_PART_RATE
};

/* Beside it, in one word, what else a packet has to be asked: most have none of these. */
#define PACER_SHORT_KIND    0xffu
#define PACER_SHORT_WATCH   0x100u  /* of a rule: its packets may fall under a ban */
#define PACER_SHORT_BANS    0x200u  /* ... and a refusal bans */
#define PACER_SHORT_EXACT   0x400u  /* the clock is the exact one */
#define PACER_SHORT_RULED   0x800u  /* of a policy: a packet's rule says what it has to be asked */
#define PACER_SHORT_ALLOWS  0x1000u /* ... and sources are on an allow-list */
#define PACER_SHORT_SAMPLES 0x2000u /* ... and packets are sampled */
#define PACER_SHORT_OVER    0x4000u /* of either: not all that is denied is dropped */
#define PACER_SHORT_MORE    (PACER_SHORT_ALLOWS | PACER_SHORT_SAMPLES | PACER_SHORT_OVER)
#define PACER_SHORT_FIRST   0x8000u    /* ... and there is one rule alone */
#define PACER_SHORT_PART    0x10000u   /* ... whose limit a fleet divides */
#define PACER_SHORT_MANY    0x20000u   /* one rule alone, which has several limits */
#define PACER_SHORT_ALONE   (1u << 31) /* ... or its one rule does, whose shape is beside this */

/*
 * What the short way needs of a rule, side by side. It is made of the rule, its limit and the
 * secret (pacer_short_arm), and says nothing that is not in them.
 */
struct pacer_short {
	__u32 shape; /* of the rule, as above; tools change it while packets are judged */
	__u32 mask;  /* of the source's address */
	__u32 base;  /* the first line of the limit's sets */
	__u32 sets;
	__u64 home_factor, home_first; /* of the key's hash, as hash.h has them of one word */
	__u64 mark_factor, mark_first;
	__u64 key;     /* pacer_closed_of */
	__u64 slot_ns; /* of a window */
	__u64 gap_ns;  /* 0: none */
	__u32 counter; /* the rule's */
	__u8 last_shift;
	__u8 rows;     /* of a sketch */
	__u8 src_only; /* only the source address counts in the key */
	__u8 unused;
};

struct pacer_rule {
	struct pacer_short brief;
	__u32 counter;	 /* index into the counters; kept across changes of policy */
	__u8 over;	 /* enum pacer_over */
	__u8 n_limiters; /* throttles last, but for what a roll-back adds */
	__u8 pool;	 /* over == PACER_OVER_POOL */
	__u8 plain;	 /* enum pacer_plain */
	__u32 id;	 /* of its name; a ban remembers the rule by it; not 0 */
	__u32 outside;	 /* 1: keys are banned under it from outside; it need not ban itself */
	__u64 ban_ns;	 /* 0: a denial bans nobody */
	/* A ban that begins within ban_forget_ns of the key's last lasts ban_grow times as long. */
	__u64 ban_max_ns, ban_forget_ns;
	__u32 ban_grow;	   /* 0: all last for ban_ns; else 2 to PACER_BAN_GROW_MAX */
	__u32 ban_tick_ns; /* of ban_ns: what is for the clock, and does not grow */
	__u8 says;	   /* enum pacer_says */
	/* Values that its limits count by: 1 + the set's number, and PACER_VALUE_DST; 0: none. */
	__u8 value[2];
	__u8 opens; /* 1: it has limits of new flows */
	__u8 unused[4];
	struct pacer_limiter limiter[PACER_LIMITERS_MAX];
};

/* The kinds of targets of a pool. Each kind has a map of its own. */
enum pacer_target { PACER_TARGET_INTERFACE, PACER_TARGET_CPU, PACER_TARGET_SOCKET };

/*
 * Packets over a limit are sent to the targets of a pool, in turns (pool.h). Each target has a
 * throttle of its own. Its state stays with the target from policy to policy, so no target gets
 * more than `each` across a change of pools.
 */
struct pacer_pool {
	struct pacer_throttle_profile throttle; /* of each target */
	__u8 kind;				/* enum pacer_target, of all its targets */
	__u8 n;					/* targets */
	__u8 unused[2];
	__u32 turn;			 /* the target to be asked first: the packet path's */
	__u16 state[PACER_TARGETS_MAX];	 /* of each target: which of the throttles */
	__u32 target[PACER_TARGETS_MAX]; /* for the tools: its number, of an interface a hash of its
					    name */
};

/*
 * The place of a pool's target in the map of interfaces. Each copy of the policy has its own part.
 */
PACER_INLINE __u32 pacer_target_index(__u32 copy, __u32 pool, __u32 target)
{
	return (copy * PACER_POOLS_MAX + pool) * PACER_TARGETS_MAX + target;
}

/*
 * A target that left its pool, while its uses still count. If it comes back, it keeps its state.
 * Only for the tools.
 */
struct pacer_draining {
	__u64 until_ns;	 /* 0: none */
	__u64 memory_ns; /* how long after a use it can matter */
	__u32 target;
	__u16 state;
	__u8 kind;
	__u8 unused;
};

/* The table of bans and the filter before it (ban.h), in lines of the table. A line follows. */
struct pacer_bans {
	__u32 base;	   /* the entries: sets of PACER_BAN_WAYS lines */
	__u32 sets;	   /* 0: there is no table */
	__u32 filter;	   /* the filter's first line, of 8 cells each */
	__u32 filter_mask; /* its lines, a power of two, less 1 */
	__u32 moving;	   /* 1: bans may still be in their places under the other secret */
	/* Lengths of the prefixes of which sources are banned from outside; 0: none. They are
	 * looked at if the policy has PACER_SOURCES_BANNED.
	 */
	__u8 len4[PACER_BAN_LENGTHS], len6[PACER_BAN_LENGTHS];
	__u32 begun; /* when it began, empty, for tools: of two tables in one place another */
};

/* The table of flows that are known (flow.h), in lines of the table. */
struct pacer_flows {
	__u32 base;    /* sets of PACER_FLOW_WAYS lines */
	__u32 sets;    /* 0: there is no table, and no flow is known */
	__u64 idle_ns; /* after such a silence it is known no more */
};

/* How packets are sampled (sampler.h). */
enum pacer_sample_form {
	PACER_SAMPLE_LAST, /* the last `window` packets, without replacement */
	PACER_SAMPLE_TIME  /* those of the last `window` ticks, with replacement */
};

#define PACER_SNAP_MAX 128u /* bytes kept of a frame's head */

struct pacer_sampling {
	__u64 id;	 /* a sampler with another id begins anew */
	__u64 window;	 /* packets, or ticks of 2^tick_shift ns */
	__u32 reasons;	 /* whose packets are sampled: 1 << enum pacer_reason; 0: off */
	__u32 k;	 /* 1 to PACER_SAMPLE_K */
	__u8 form;	 /* enum pacer_sample_form */
	__u8 tick_shift; /* below 64 */
	__u8 snap;	 /* bytes kept of a frame's head, PACER_SNAP_MAX at most */
	__u8 unused[5];
};

/* Fields that rules match on by 32-bit value; a bit of pacer_policy.dims each. */
enum pacer_dim_id {
	PACER_DIM_SADDR4,
	PACER_DIM_DADDR4,
	PACER_DIM_SPORT,
	PACER_DIM_DPORT, /* the next of it: see pacer_classify_index */
	PACER_DIM_PROTO,
	PACER_DIM_VLAN,
	PACER_DIM_COUNT
};

#define PACER_DIM_SADDR6 PACER_DIM_COUNT
#define PACER_DIM_DADDR6 (PACER_DIM_COUNT + 1)

/* A set of rules, a bit each (rules.h). */
struct pacer_rules {
	__u64 word[PACER_RULE_WORDS];
};

/*
 * The elementary intervals of one field. Value v is in interval i, the number of bounds <= v, and
 * matches the rules of mask[i]. Values are grouped in buckets (classify.h): first[b] is the
 * interval of the first value of bucket b, and more[b] is the number of bounds after it in the
 * bucket.
 */
struct pacer_dim {
	struct pacer_rules mask[PACER_BOUNDS_MAX + 1];
	__u32 bound[PACER_BOUNDS_MAX + 1];
	__u16 first[PACER_BUCKETS], more[PACER_BUCKETS];
};

/* The same for a wide field, with one bucket. */
struct pacer_dim6 {
	struct pacer_rules mask[PACER_BOUNDS_MAX + 1];
	__u64 hi[PACER_BOUNDS_MAX + 1], lo[PACER_BOUNDS_MAX + 1];
	__u32 top;
	__u32 unused;
};

enum pacer_policy_flags {
	PACER_MONITOR = 1,	  /* judge, count, pass */
	PACER_UNPARSED_DROP = 2,  /* else such frames pass, except those that are too deep */
	PACER_CLOCK_EXACT = 4,	  /* else the coarse clock, whose resolution the limits include */
	PACER_SOURCES_BANNED = 8, /* from outside, whatever their rule */
	PACER_TOOLS = 16,	  /* sources are looked for in the tries of other tools, below */
	PACER_KEYS_MORE = 32	  /* limits have keys that need more than was read (path.h) */
};

/*
 * The rules of one word whose src, or dst, has a set: a bit for each that it is in, and that it
 * must not be.
 */
struct pacer_set_use {
	__u64 src_in, src_not, dst_in, dst_not;
};

#define PACER_SETS_MAX	  16u	     /* of a policy, a power of two */
#define PACER_DIMS_SETS	  (1u << 31) /* beside dims: there are sets */
#define PACER_DIMS_MORE	  (1u << 30) /* ... and rules that ask for more (more.h) */
#define PACER_DIMS_FRAMES (1u << 29) /* ... of frames that are not IP, too */
#define PACER_DIMS_MANY	  (1u << 28) /* ... and more than 64 rules (rules.h) */

/* What more rules may ask for, each by a table of its own. */
enum pacer_more_id {
	PACER_MORE_FLAGS,
	PACER_MORE_ICMP_TYPE,
	PACER_MORE_ICMP_CODE,
	PACER_MORE_ICMPV6_TYPE,
	PACER_MORE_ICMPV6_CODE,
	PACER_MORE_TTL,
	PACER_MORE_DSCP,
	PACER_MORE_SHAPE, /* enum pacer_fragment, and options, see PACER_SHAPE_OPTIONS */
	PACER_MORE_LEN,	  /* this one and the next have spans; those before have bytes */
	PACER_MORE_PAYLOAD_LEN,
	PACER_MORE_ETHER_TYPE,
	PACER_MORE_ETHER_SRC,
	PACER_MORE_ETHER_DST,
	PACER_MORE_COUNT
};

/* Those with more than 256 values, in the order of enum pacer_more_id. */
enum pacer_span_id {
	PACER_SPAN_LEN,
	PACER_SPAN_PAYLOAD_LEN,
	PACER_SPAN_ETHER_TYPE,
	PACER_SPAN_ETHER_SRC,
	PACER_SPAN_ETHER_DST,
	PACER_SPANS
};

#define PACER_MORE_OF_HEADERS ((1u << PACER_MORE_LEN) - 1)
#define PACER_MORE_OF_FRAME                                                                \
	(1u << PACER_MORE_LEN | 1u << PACER_MORE_ETHER_TYPE | 1u << PACER_MORE_ETHER_SRC | \
	 1u << PACER_MORE_ETHER_DST)
#define PACER_SHAPE_OPTIONS 2	 /* the bit of options in a shape */
#define PACER_MORE_ABSENT   256u /* the row of packets that have no such field */
#define PACER_MORE_UNKNOWN  257u /* ... of which nobody knows */
#define PACER_BYTE_ROWS	    258u /* of a field of 256 values */
/* Of a wide field: a row for each range of values. Those from 256 on are two further on. */
#define PACER_SPAN_ROWS	   (PACER_BOUNDS_MAX + 3)
#define PACER_PROBES_MAX   16u
#define PACER_PROBE_AT_MAX 1500u

#define PACER_SPAN_END (1ull << 62)

/* The bounds of a wide field: a value's row is how many of them are not above it. */
struct pacer_span {
	__u64 bound[PACER_BOUNDS_MAX + 1]; /* those that are not used are PACER_SPAN_END */
	__u32 top;			   /* the largest power of two of them; 0: there are none */
	__u32 unused;
};

/* Bytes of the payload that rules ask for. */
struct pacer_probe {
	__u32 value, mask; /* of n bytes, as a number; value has no bits beyond mask */
	__u16 at;	   /* bytes into the payload */
	__u8 n;		   /* 1 to 4 */
	__u8 unused[5];
	struct pacer_rules rules;
};

#define PACER_MORE_FIELDS ((1u << PACER_MORE_COUNT) - 1) /* 1 << enum pacer_more_id, of each */
/* Beside these. */
#define PACER_MORE_PROBED (1u << 30) /* bytes of the payload */
#define PACER_MORE_INNER  (1u << 31) /* what is in tunnels */

struct pacer_more {
	__u32 used; /* as above */
	__u32 probes;
	struct pacer_rules frames;     /* rules for frames that are not IP */
	struct pacer_rules of_payload; /* rules that ask for its length or bytes */
	struct pacer_rules probed;     /* ... for bytes */
	/* Rules that pass all of their packets: what is not known does not match them. */
	struct pacer_rules passing;
	struct pacer_rules inner; /* rules for what is in tunnels (inner.h) */
	struct pacer_probe probe[PACER_PROBES_MAX];
	struct pacer_span span[PACER_SPANS];
	struct pacer_rules byte_rules[PACER_MORE_LEN][PACER_BYTE_ROWS];
	struct pacer_rules span_rules[PACER_SPANS][PACER_SPAN_ROWS];
};

#define PACER_SET_VALUES_MAX 64u /* that a policy names, of all sets */
#define PACER_ASKS_SRC	     1u
#define PACER_ASKS_DST	     2u

/* Places of sets: those of both copies, and as many for what was added to each by hand. */
#define PACER_SET_HANDS	 (2 * PACER_SETS_MAX)
#define PACER_SET_PLACES (2 * PACER_SET_HANDS)
/* Counters of sets: so that a change need not take one that the copy in force has. */
#define PACER_SET_COUNTERS (2 * PACER_SETS_MAX)

/* Packets that had an address in a set, and their bytes. */
struct pacer_set_count {
	__u64 packets, bytes;
};

struct pacer_policy {
	struct pacer_rules rules; /* in force */
	/* Those that a packet cannot fall under, by its enum pacer_ports. */
	struct pacer_rules ruled_out[4];
	__u32 flags;  /* enum pacer_policy_flags */
	__u32 dims;   /* fields that any rule matches on */
	__u64 serial; /* of the apply that wrote it */
	__u32 shape;  /* pacer_short_shape_of; tools change it while packets are judged */
	__u32 unused_shape;
	struct pacer_dim dim[PACER_DIM_COUNT];
	struct pacer_dim6 dim6[2]; /* source, destination */
	struct pacer_set_use set[PACER_SETS_MAX][PACER_RULE_WORDS];
	__u64 sets; /* that there are, the first ones */
	__u8 set_counter[PACER_SETS_MAX];
	__u8
	    set_asks[PACER_SETS_MAX]; /* PACER_ASKS_SRC and so on: whether it is looked up at all */
	__u32 allow_sets;	      /* a bit for each whose sources no rule limits */
	__u32 sets_valued;	      /* ... that has values */
	__u32 unused_sets;
	__u8 first_value[PACER_SETS_MAX], n_values[PACER_SETS_MAX]; /* of each, in set_value */
	__u64 allow_values;					    /* as allow_sets, of those */
	struct pacer_set_use set_value[PACER_SET_VALUES_MAX][PACER_RULE_WORDS];
	/* If it cannot be read: all its values'. */
	struct pacer_set_use set_unknown[PACER_SETS_MAX][PACER_RULE_WORDS];
	struct pacer_bans bans;
	struct pacer_flows flows;
	__u32 secret;	/* of new limits, of bans and of flows */
	__u8 else_says; /* enum pacer_says: of packets of no rule, which pass by no limit */
	__u8 else_over, else_pool; /* of such that are denied: enum pacer_over */
	__u8 unused;
	struct pacer_pool pool[PACER_POOLS_MAX];
	struct pacer_draining draining[PACER_THROTTLES];
	struct pacer_sampling sampling;
	struct pacer_rule rule[PACER_RULES_MAX];
	struct pacer_more more;
	__u16 port_at[2][65536]; /* of each source and destination port: its interval in dim[] */
};

/* One copy: the policy and its text. The built-in policy is given as bytes. */
struct pacer_copy {
	union {
		__u8 bytes[sizeof(struct pacer_policy)];
		struct pacer_policy policy;
	};
	char text[PACER_DOC_MAX];
};

/* What has to be known at load and cannot be found out later. */
struct pacer_built {
	__u32 raw_ip; /* the interface's frames begin with the IP header */
	__u32 beside; /* it judges beside another program, and redirects nothing */
};

#define PACER_SECRETS (2 * (PACER_KEY_WORDS + 2))

/* How many prefixes an allow-list has, so that an empty one costs nothing. */
union pacer_allowed {
	struct {
		__u32 v4, v6;
	};
	__u64 any; /* not 0: there are some */
};

/*
 * What this host may use of a limit that a fleet divides (share.h). Whoever writes `word` and
 * `floor` stores each as a whole: packets are judged by them meanwhile.
 */
struct pacer_share {
	__u64 id;    /* of the limit; 0: of none */
	__u64 word;  /* until when, and how much until then (pacer_share_word) */
	__u64 floor; /* how much from then on, and of whose (pacer_share_floor); 0: nothing */
	__u64 said;  /* by the agent, for the tools: pacer_share_said */
};

/*
 * Keys of such a limit that have shares of their own: their lanes. Bit i of `used` says that lane i
 * has a key, which does not change while it is set. Words of the key are as pacer_walk_key_word
 * has them; the last is its family.
 */
struct pacer_lanes {
	__u32 used;
	__u32 unused;
	__u64 word[PACER_LANES]; /* in the place of the share's */
	__u32 key[PACER_KEY_WORDS + 1][PACER_LANES];
};

/* What the agent of a fleet says of the bans and sets that it shares, for the tools. */
struct pacer_fleet_items {
	__u64 begun_ns;	   /* 0: it shares none */
	__u64 answered_ns; /* when the store said last what there is; 0: never */
	__u64 known;	   /* items */
	__u64 told, taken; /* by this host, from others */
	__u64 late, left_out;
	__u64 unused;
};

/* Who drew the first of the two secrets: the second is always drawn by the tools. */
enum pacer_secret_of { PACER_SECRET_NONE, PACER_SECRET_OF_PROGRAM, PACER_SECRET_OF_TOOLS };

struct pacer_control {
	__u32 magic;
	__u32 abi_version;
	__u64 in_force;			/* see pacer_in_force */
	__u32 secret_ready;		/* enum pacer_secret_of */
	__u8 raw_ip;			/* pacer_built.raw_ip, for the command */
	__u8 shared;			/* it was loaded for several interfaces */
	__u16 tools;			/* its policies have PACER_TOOLS */
	union pacer_allowed allowed[2]; /* of each copy */
	__u64 secret[2][PACER_SECRETS]; /* the hash's; two, so that one can follow the other */
	__u64 resolution_ns;		/* of the coarse clock, as the loader found it */
	struct pacer_share share[PACER_SHARES];
	struct pacer_lanes lanes[PACER_SHARES];
	struct pacer_fleet_items fleet_items;
};

/* A note of a ban that a rule made (log.h). */
struct pacer_note {
	__u32 number; /* 1 + how many came before it, modulo 2^32; 0: it is being written */
	__u32 rule;   /* pacer_rule.id */
	__u64 time_ns, until_ns;
	__u32 key_id; /* pacer_limiter.key_id, and the family */
	__u32 key[PACER_KEY_WORDS];
	__u32 unused;
};

/* What a tool did, and who had it do so. */
struct pacer_said {
	__u32 number; /* as above */
	__u32 pid;
	__u64 time_ns;
	__u32 uid; /* of the login, where that is known */
	__u32 what;
	char text[PACER_SAID_TEXT]; /* and its end */
	__u64 unused[3];
};

struct pacer_log {
	__u64 noted, said;		   /* how many there were, ever */
	__u64 open_ns[PACER_COUNTERS_MAX]; /* of each rule: log.h */
	__u64 lost[PACER_COUNTERS_MAX];	   /* bans of each rule that were not noted */
	struct pacer_note note[PACER_NOTES];
	struct pacer_said saying[PACER_SAID];
};

_Static_assert(sizeof(struct pacer_note) == 72 && sizeof(struct pacer_said) == 256,
	       "as tools read them");

PACER_INLINE enum pacer_limiter_kind pacer_limiter_kind_of(const struct pacer_limiter *t)
{
	return (enum pacer_limiter_kind)(t->kind & (PACER_LIMITER_FLEET - 1));
}

PACER_INLINE __u64 pacer_later(__u64 a_ns, __u64 b_ns)
{
	return a_ns > b_ns ? a_ns : b_ns;
}

/*
 * The copy in force at now_ns, 0 or 1. The lowest bit of the word is the copy, the rest is a time.
 * If the time is not 0, the policy is unconfirmed, and at that time the other copy takes over. No
 * tool has to help.
 */
PACER_INLINE __u32 pacer_in_force(__u64 word, __u64 now_ns)
{
	__u32 copy = word & 1;

	return word >> 1 && now_ns >= word >> 1 ? copy ^ 1 : copy;
}

/*
 * A key in the tries of the allow-lists, one trie for each family: the prefix length, the copy that
 * the list belongs to, and the address, big-endian. The length includes the copy's bits, so a
 * look-up sees only one list.
 */
#define PACER_ALLOW_COPY_BITS 32u
/* Room for both lists, and one more: some kernels cannot change an entry of a full trie. */
#define PACER_ALLOW_ENTRIES (2 * PACER_ALLOW_MAX + 1)

struct pacer_allow4 {
	__u32 prefixlen;
	__u32 copy;
	__u8 addr[4];
};

struct pacer_allow6 {
	__u32 prefixlen;
	__u32 copy;
	__u8 addr[16];
};

/* Why a prefix is on the list: because of the policy, the operator, or both. */
struct pacer_allow_value {
	__u64 until_ns;	     /* packets pass until then: monotonic; 0: for ever */
	__u64 hand_until_ns; /* the operator's part of it */
	__u32 of_policy;
	__u32 by_hand;
};

/*
 * Sources that other tools ban: a trie for each family, which they write themselves. Its keys are a
 * prefix length and an address, big-endian; the longest prefix that holds a source counts.
 */
#define PACER_TOOLS_ENTRIES 262144u /* of a family */

struct pacer_tools4 {
	__u32 prefixlen;
	__u8 addr[4];
};

struct pacer_tools6 {
	__u32 prefixlen;
	__u8 addr[16];
};

struct pacer_tools_value {
	__u64 until_ns; /* packets are denied until then: monotonic; 0: until it is deleted */
};

PACER_INLINE enum pacer_verdict pacer_verdict_of(enum pacer_reason reason)
{
	switch (reason) {
#define PACER_REASON_VERDICT(name, verdict, id, text) \
	case PACER_##name:                            \
		return PACER_VERDICT_##verdict;
		PACER_REASONS(PACER_REASON_VERDICT)
#undef PACER_REASON_VERDICT
	case PACER_REASON_COUNT:
		break;
	}
	return PACER_VERDICT_DENY;
}

/* Its name in results and metrics, such as "window"; "?" if it is no reason. */
PACER_INLINE const char *pacer_reason_name(__u32 reason)
{
	switch (reason) {
#define PACER_REASON_NAME(name, verdict, id, text) \
	case PACER_##name:                         \
		return id;
		PACER_REASONS(PACER_REASON_NAME)
#undef PACER_REASON_NAME
	}
	return "?";
}

#endif
