/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: every struct and enum that crosses between the kernel's side and
 * user space, once. What changes here changes PACER_ABI_VERSION.
 *
 * The policy in force is one of two copies; one word, control.in_force, says
 * which. A writer fills the other copy and then stores the word, so that no
 * packet is judged by half a policy.
 *
 * Memory: a line is 64 bytes and 64-byte aligned; all of a key's state under one
 * tier lies in one line (a window of more than PACER_SLOTS_LINE slots: in the
 * lines that follow it).
 */
#ifndef PACER_ABI_H
#define PACER_ABI_H

#include "port.h"

#define PACER_MAGIC	   0x52434150u /* "PACR" */
#define PACER_ABI_VERSION  1u
#define PACER_RULES_MAX	   64u
#define PACER_TIERS_MAX	   8u	/* of a rule; those that a change of policy retires included */
#define PACER_COUNTERS_MAX 129u /* those of two copies of the rules, and 0: no rule */
#define PACER_STARTS_LINE  11u	/* ring words in a record's first line */
#define PACER_LINE_WORDS   16u	/* and in each line that follows */
#define PACER_EXTRA_MAX	   3u
#define PACER_RING_MAX	   (PACER_STARTS_LINE + PACER_EXTRA_MAX * PACER_LINE_WORDS)
#define PACER_SLOTS_MAX	   (PACER_RING_MAX - 1)
#define PACER_SLOTS_LINE   (PACER_STARTS_LINE - 1)
#define PACER_CELLS	   7u /* of a sketch's line; prime, see recency.h */
#define PACER_ROWS_MAX	   2u
#define PACER_BOUNDS_MAX   255u /* values at which one field's set of matching rules changes */
#define PACER_DOC_MAX	   65536u
#define PACER_ALLOW_MAX	   4096u
#define PACER_VLAN_NONE	   4096u
#define PACER_KEY_WORDS	   10u

enum pacer_verdict {
	PACER_VERDICT_PASS,
	PACER_VERDICT_ADMIT,
	PACER_VERDICT_DENY,
	PACER_VERDICT_UNPARSED
};

/*
 * Why a packet fared as it did: the one list behind the enum, the verdict, the counters, the CLI's
 * words and the names of the metrics. X(NAME, verdict, name, text)
 */
#define PACER_REASONS(X)                                                                         \
	X(ADMIT, ADMIT, "admit", "within every limit of its rule")                               \
	X(NO_RULE, PASS, "no_rule", "no rule matches")                                           \
	X(ALLOWED, PASS, "allowed", "its source is on the allow-list")                           \
	X(NOT_IP, PASS, "not_ip", "neither IPv4 nor IPv6")                                       \
	X(TRUNCATED, UNPARSED, "truncated", "a header is cut short")                             \
	X(BAD_HEADER, UNPARSED, "bad_header", "a header contradicts itself or the frame")        \
	X(TOO_DEEP, UNPARSED, "too_deep", "more tags or extension headers than are followed")    \
	X(DENY_GAP, DENY, "gap", "too soon after its key's last packet")                         \
	X(DENY_WINDOW, DENY, "window", "the window's limit would be passed")                     \
	X(DENY_THROTTLE, DENY, "throttle", "no use has cooled down")                             \
	X(DENY_BAN, DENY, "ban", "its key is banned")                                            \
	X(DENY_CONTENDED, DENY, "contended", "its key's state was held by another CPU too long") \
	X(DENY_NO_STATE, DENY, "no_state", "its key's state is missing")

enum pacer_reason {
#define PACER_REASON_ENUM(name, verdict, id, text) PACER_##name,
	PACER_REASONS(PACER_REASON_ENUM)
#undef PACER_REASON_ENUM
	    PACER_REASON_COUNT
};

struct pacer_count {
	__u64 packets, bytes;
};

struct pacer_counters {
	struct pacer_count by[PACER_REASON_COUNT];
};

/* One cache line of state. What it holds depends on its tier's kind. */
struct pacer_line {
	union {
		struct { /* record: a key's last admission and its window (recency.h, window.h) */
			__u32 claim;	/* claim.h; the first word of every claimed line */
			__u32 last_off; /* last admission, after head_ns, in units of the tier's */
			__u64 head_ns;	/* when the current slot began; 0: never used */
			__u32 cum;	/* cost admitted so far, modulo 2^32 */
			__u32 start[PACER_STARTS_LINE]; /* cum when each slot began */
		};
		struct { /* sketch: last-seen times of whoever hashes here */
			__u32 sketch_claim;
			__u32 sketch_unused;
			__u64 cell[PACER_CELLS];
		};
		__u64 word64[PACER_CELLS + 1]; /* of a sketch: its cells are all but the first */
		__u32 word[PACER_LINE_WORDS];  /* of a wide record's further lines: start words */
	};
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct pacer_line) == 64, "a line is a cache line");
_Static_assert(PACER_RING_MAX < 64, "a cursor has six bits");

/* All lines, contiguous. */
struct pacer_table {
	struct pacer_line *lines;
	__u32 n;
};

enum pacer_cost { PACER_COST_PACKETS, PACER_COST_BYTES };

/* A window's profile, computed by the loader (window.h says how from the operator's units). */
struct pacer_window {
	__u64 slot_ns;	  /* T, at least 1 */
	__u64 ring_ns;	  /* ring * slot_ns; after it nothing is remembered */
	__u32 limit;	  /* of cost units */
	__u32 mul;	  /* floor(2^32 / (slot_ns >> shift)) or less */
	__u8 shift;	  /* of time before the multiplication */
	__u8 ring;	  /* slots: m + 1; 0: no window */
	__u8 cost;	  /* enum pacer_cost */
	__u8 cost_shift;  /* a unit is 2^cost_shift bytes, rounded up a packet */
	__u8 extra_lines; /* lines of a record beside its first */
	__u8 unused[3];
};

enum pacer_tier_kind { PACER_TIER_NONE, PACER_TIER_SKETCH, PACER_TIER_RECORD };

/*
 * A tier is the limits of one rule that share a key: at most one gap and one window. Its state is
 * `lines` lines of the table from `base` on: of a sketch, `sets` lines; of records, `sets` sets of
 * two records and then `shared` records (table.h).
 */
struct pacer_tier {
	__u8 kind;	 /* enum pacer_tier_kind */
	__u8 rows;	 /* cells of a key in a sketch's line, 1 to PACER_ROWS_MAX */
	__u8 last_shift; /* unit of last_off: 2^last_shift ns */
	__u8 unused;
	__u32 base;
	__u32 sets;
	__u32 shared;
	__u64 gap_ns;	/* 0: none */
	__u64 idle_ns;	/* after head_ns, from when on a record holds nothing */
	__u64 until_ns; /* 0: in force; else it is asked until then (a retired tier) */
	struct pacer_window window;
	__u32 mask4[4];		      /* key: source, destination, ports, meta of IPv4 */
	__u32 mask6[PACER_KEY_WORDS]; /* the same of IPv6, addresses in four words */
};

enum pacer_over { PACER_OVER_DROP, PACER_OVER_PASS };

struct pacer_rule {
	__u32 counter; /* index into the counters; kept across changes of policy */
	__u8 over;     /* enum pacer_over */
	__u8 n_tiers;
	__u8 unused[2];
	struct pacer_tier tier[PACER_TIERS_MAX];
};

/* Fields that rules match on by 32-bit value; a bit of pacer_policy.dims each. */
enum pacer_dim_id {
	PACER_DIM_SADDR4,
	PACER_DIM_DADDR4,
	PACER_DIM_SPORT,
	PACER_DIM_DPORT,
	PACER_DIM_PROTO,
	PACER_DIM_VLAN,
	PACER_DIM_COUNT
};

#define PACER_DIM_SADDR6 PACER_DIM_COUNT
#define PACER_DIM_DADDR6 (PACER_DIM_COUNT + 1)

/* Elementary intervals of one field: value v lies in interval i, the number of bounds <= v, and
 * matches the rules of mask[i]. `top` is the highest power of two not above the number of bounds.
 */
struct pacer_dim {
	__u64 mask[PACER_BOUNDS_MAX + 1];
	__u32 bound[PACER_BOUNDS_MAX + 1];
	__u32 top;
	__u32 unused;
};

struct pacer_dim6 {
	__u64 mask[PACER_BOUNDS_MAX + 1];
	__u64 hi[PACER_BOUNDS_MAX + 1], lo[PACER_BOUNDS_MAX + 1];
	__u32 top;
	__u32 unused;
};

enum pacer_policy_flags {
	PACER_MONITOR = 1,	 /* judge, count, pass */
	PACER_UNPARSED_DROP = 2, /* else such frames pass */
	PACER_CLOCK_EXACT = 4,	 /* else the coarse clock, whose resolution the limits include */
};

struct pacer_policy {
	__u64 rules;  /* a bit for each rule in force */
	__u32 flags;  /* enum pacer_policy_flags */
	__u32 dims;   /* fields that any rule matches on */
	__u64 serial; /* of the apply that wrote it */
	struct pacer_dim dim[PACER_DIM_COUNT];
	struct pacer_dim6 dim6[2]; /* source, destination */
	struct pacer_rule rule[PACER_RULES_MAX];
};

/* One copy: the policy (or its bytes, as the built-in one is given in) and the text it is from. */
struct pacer_copy {
	union {
		__u8 bytes[sizeof(struct pacer_policy)];
		struct pacer_policy policy;
	};
	char text[PACER_DOC_MAX];
};

#define PACER_SECRETS (2 * (PACER_KEY_WORDS + 2))

struct pacer_control {
	__u32 magic;
	__u32 abi_version;
	__u64 in_force;	    /* see pacer_in_force */
	__u32 secret_ready; /* the hash's secret is drawn */
	__u32 unused;
	__u32 allowed4,
	    allowed6; /* prefixes on the allow-list, so that an empty one costs nothing */
	__u64 secret[PACER_SECRETS];
	__u64 resolution_ns; /* of the coarse clock, as the loader found it */
};

/*
 * The copy in force, 0 or 1, at now_ns. The word is the copy, and above its lowest bit a time: not
 * 0, it is when an unconfirmed policy gives way to the copy beside it, with no tool's help.
 */
PACER_INLINE __u32 pacer_in_force(__u64 word, __u64 now_ns)
{
	__u32 copy = word & 1;

	return word >> 1 && now_ns >= word >> 1 ? copy ^ 1 : copy;
}

/* The allow-list's trie: prefix length, then the address, big-endian. */
struct pacer_allow4 {
	__u32 prefixlen;
	__u8 addr[4];
};

struct pacer_allow6 {
	__u32 prefixlen;
	__u8 addr[16];
};

struct pacer_allow_value {
	__u64 until_ns;	 /* monotonic; 0: for ever */
	__u64 of_policy; /* stands in the policy's list: goes when the policy does */
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

#endif
