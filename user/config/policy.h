/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the policy as its operator wrote it: text (YAML) to struct, pure, so that it can be
 * tested and fuzzed without a kernel. compile.h turns the struct into what the kernel reads.
 */
#ifndef PACER_POLICY_H
#define PACER_POLICY_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "abi.h"
#include "config/units.h"

#define POLICY_NAME_MAX	      32	       /* a rule's name: letters, digits, '_' and '-' */
#define POLICY_LIST_MAX	      64	       /* prefixes or ranges in one field of one match */
#define POLICY_MEMORY_MAX     (64ull << 30)    /* PACER_LINES_MAX lines and one */
#define POLICY_WITHSTAND_MAX  1000000000000ull /* packets a second */
#define POLICY_FRAME_MIN      60   /* the smallest frame of an Ethernet, without its checksum */
#define POLICY_FRAME_MAX      1514 /* the largest frame of an Ethernet without jumbo frames */
#define POLICY_LIMITS_MAX     8	   /* limits of a rule */
#define POLICY_ALLOW_MAX      PACER_ALLOW_MAX
#define POLICY_MEMORY_DEFAULT (64ull << 20)
#define POLICY_USES_MAX	      ((1ull << 31) - 1)
#define POLICY_BANS_DEFAULT   16384
#define POLICY_BANS_MAX	      (1u << 24)
#define POLICY_FLOWS_DEFAULT  65536
#define POLICY_FLOWS_MAX      (1u << 26)
#define POLICY_FLOW_IDLE_NS \
	120000000000ull		 /* RFC 4787, REQ-5: UDP is kept for 2 minutes at least */
#define POLICY_TARGET_NAME  16	 /* of an interface, with its NUL */
#define POLICY_TARGET_MAX   4095 /* number of a CPU or a socket */
#define POLICY_SNAP_MAX	    128	 /* bytes of a frame's head that a sample keeps */
#define POLICY_SET_USES_MAX 32	 /* sets in a match, and values of them */
#define POLICY_VALUE_MAX    64	 /* bytes of a value of a set, with its end */
#define POLICY_PATH_MAX	    256	 /* a file's name, with its NUL */
#define POLICY_STORES_MAX   16	 /* endpoints of a fleet's store */

/* What of a packet is in its key. */
enum policy_key_part {
	KEY_PART_SRC = 1,
	KEY_PART_DST = 2,
	KEY_PART_PROTO = 4,
	KEY_PART_SPORT = 8,
	KEY_PART_DPORT = 16,
	KEY_PART_VLAN = 32,
	KEY_PART_TTL = 64,
	KEY_PART_SRC_VALUE = 128, /* the value of the address in a set, in its place */
	KEY_PART_DST_VALUE = 256,
};

#define KEY_VALUES (KEY_PART_SRC_VALUE | KEY_PART_DST_VALUE)

struct policy_key {
	uint16_t parts;	    /* enum policy_key_part, any of them; 0: all packets have one key */
	uint8_t src4, src6; /* how much of the addresses counts; 0 of one that is no part */
	uint8_t dst4, dst6;
	char set[2][POLICY_NAME_MAX]; /* of the values of source and destination; "": none, or not
					 known: the rest are zeros */
};

_Static_assert(sizeof(struct policy_key) == 6 + 2 * POLICY_NAME_MAX,
	       "keys are compared byte by byte");

#define KEY_ALL ((struct policy_key){0})
#define KEY_SRC(len4, len6) \
	((struct policy_key){.parts = KEY_PART_SRC, .src4 = (len4), .src6 = (len6)})
#define KEY_DST(len4, len6) \
	((struct policy_key){.parts = KEY_PART_DST, .dst4 = (len4), .dst6 = (len6)})
#define KEY_FLOW                                                                     \
	((struct policy_key){.parts = KEY_PART_SRC | KEY_PART_DST | KEY_PART_PROTO | \
				      KEY_PART_SPORT | KEY_PART_DPORT,               \
			     .src4 = 32,                                             \
			     .src6 = 128,                                            \
			     .dst4 = 32,                                             \
			     .dst6 = 128})

struct policy_key_part_name {
	enum policy_key_part part;
	const char *name; /* in a policy */
};

/* NULL: there is no part of that name. Any thread. */
const struct policy_key_part_name *policy_key_part_named(const char *name);

#define POLICY_KEY_TEXT	 160 /* the longest text of a key in a policy, with its NUL */
#define POLICY_LINE_TEXT 224 /* ... of one with several lengths */

static inline bool policy_key_same(const struct policy_key *a, const struct policy_key *b)
{
	return !memcmp(a, b, sizeof(*a));
}

enum policy_threshold { THRESHOLD_WRITTEN, THRESHOLD_USES, THRESHOLD_HUNDREDTH };

/*
 * Uses, each free again `cooldown` after it was made (throttle.h). Where only the threshold was
 * written, max_cooldown_ns is UINT64_MAX; where only max_cooldown, threshold is `uses`; where
 * neither, they are a hundredth of the uses, rounded up, and a tenth more than the cooldown.
 */
struct policy_throttle {
	uint64_t uses;
	uint64_t threshold; /* 1 to uses */
	enum policy_threshold threshold_is;
	uint64_t cooldown_ns, max_cooldown_ns;
};

/* The threshold of so many uses, where it was not written. */
static inline void policy_fill_threshold(struct policy_throttle *t)
{
	if (t->threshold_is == THRESHOLD_HUNDREDTH)
		t->threshold = (t->uses + 99) / 100;
	else if (t->threshold_is == THRESHOLD_USES)
		t->threshold = t->uses;
}

enum policy_limit_kind { LIMIT_GAP, LIMIT_WINDOW, LIMIT_RATE, LIMIT_THROTTLE };
#define POLICY_LIMIT_KINDS (LIMIT_THROTTLE + 1)

/*
 * What makes several limits of one item: "src/[32,24],[64,56]" and "wider". rung i has length i of
 * each family, or the last there is.
 */
struct policy_ladder {
	uint8_t rungs; /* 0: the item is one limit */
	uint8_t part;  /* KEY_PART_SRC or KEY_PART_DST: whose lengths these are */
	uint8_t n4, n6;
	uint8_t len4[POLICY_LIMITS_MAX], len6[POLICY_LIMITS_MAX]; /* the longest first */
	bool each;	/* one value was written: of each rung to the one before */
	size_t n_times; /* values that were written */
	uint64_t times[POLICY_LIMITS_MAX]; /* of each rung's value to the first one's, which is 1 */
};

/*
 * A limit: an item of `limits`, or a rung of one that is a ladder; these follow each other, the
 * narrowest first. What was not written is 0, but for slots (10) and rows (2).
 */
struct policy_limit {
	uint64_t gap_ns;
	uint64_t ceiling; /* of a gap: packets a second that all keys together may reach */
	uint64_t limit;	  /* of a window: packets or bytes */
	uint64_t window_ns;
	uint64_t entries; /* keys to hold state for; 0: a share of the memory */
	uint64_t burst;
	struct units_rate rate; /* of `cost`s */
	struct policy_throttle throttle;
	struct policy_ladder ladder;
	int line;
	enum policy_limit_kind kind;
	uint32_t rows; /* of a gap's sketch: 1 or 2 */
	enum pacer_cost cost;
	uint32_t slots;
	struct policy_key key;
	uint8_t item;	  /* its place in `limits` */
	uint8_t rung;	  /* of the ladder, from 0 */
	bool per_second;  /* it was written as a rate */
	bool burst_bytes; /* it was written in bytes */
	bool fleet;	  /* it is divided among the hosts of the fleet */
	bool of_new;	  /* it counts packets that open a flow alone */
};

/* "@drop", "@geo=XY" or "!@drop" in src or dst. */
struct policy_set_use {
	int line;
	char name[POLICY_NAME_MAX];
	char value[POLICY_VALUE_MAX]; /* "": any */
	size_t set;		      /* its index */
	uint32_t number;	      /* of the value among those of its set, from 1; 0: any */
	bool not, dst;
};

/* "syn / syn,ack": of the flags in `mask` those of `value` are set, and no others. */
struct policy_flags {
	uint8_t value, mask;
};

/* "02:00:5e": an Ethernet address, or how it begins. */
struct policy_mac {
	uint64_t value; /* of 48 bits */
	uint8_t len;	/* bits of it that count: 8 to 48 */
};

/* "3=0x2a/0xff": n bytes of the payload, from byte `at` on, as a number. */
struct policy_bytes {
	uint32_t value, mask;
	uint16_t at;
	uint8_t n;
};

#define POLICY_PAYLOADS_MAX 8 /* alternatives of a match's payload */

/*
 * An address matches a field where one of its prefixes or sets has it, or where it lists neither;
 * and where no set has it that it excludes.
 */
struct policy_match {
	struct prefix src[POLICY_LIST_MAX], dst[POLICY_LIST_MAX];
	struct policy_set_use set[POLICY_SET_USES_MAX];
	size_t n_sets;
	struct range proto[POLICY_LIST_MAX], sport[POLICY_LIST_MAX], dport[POLICY_LIST_MAX];
	struct range vlan[POLICY_LIST_MAX];			/* "none" is PACER_VLAN_NONE */
	size_t n_src, n_dst, n_proto, n_sport, n_dport, n_vlan; /* 0: any */
	struct policy_flags flags[POLICY_LIST_MAX];
	struct range icmp_type[POLICY_LIST_MAX], icmp_code[POLICY_LIST_MAX];
	struct range icmpv6_type[POLICY_LIST_MAX], icmpv6_code[POLICY_LIST_MAX];
	struct range ttl[POLICY_LIST_MAX], dscp[POLICY_LIST_MAX], fragment[POLICY_LIST_MAX];
	struct range options[1]; /* 1: has some */
	struct range inner[1];	 /* there is one only where it says yes */
	struct range len[POLICY_LIST_MAX], payload_len[POLICY_LIST_MAX];
	struct range ether_type[POLICY_LIST_MAX];
	struct policy_mac ether_src[POLICY_LIST_MAX], ether_dst[POLICY_LIST_MAX];
	struct policy_bytes payload[POLICY_PAYLOADS_MAX];
	size_t n_flags, n_icmp_type, n_icmp_code, n_icmpv6_type, n_icmpv6_code, n_ttl, n_dscp;
	size_t n_fragment, n_options, n_len, n_payload_len, n_ether_type, n_ether_src, n_ether_dst;
	size_t n_payload, n_inner;
};

struct policy_rule {
	int line;
	char name[POLICY_NAME_MAX];
	struct policy_match match;
	struct policy_limit limit[POLICY_LIMITS_MAX];
	size_t n_limits; /* 0: it has a verdict, and limit[0].key is how its packets are told */
	enum pacer_says says; /* SAYS_DENY: to drop, or to the pool */
	enum pacer_over over;
	int over_line;			 /* of over, or of the verdict */
	char pool_name[POLICY_NAME_MAX]; /* of PACER_OVER_POOL */
	size_t pool;			 /* its index */
	uint64_t ban_ns;		 /* 0: it bans nobody */
	uint32_t ban_grow;		 /* 0: its bans do not grow */
	uint64_t ban_max_ns, ban_forget_ns;
	bool ban_fleet; /* the hosts of the fleet share its bans */
};

/* Does it pass each of its packets, by a verdict, or since it only counts? */
static inline bool policy_passes(const struct policy_rule *rule)
{
	return rule->says == PACER_SAYS_PASS || rule->over == PACER_OVER_PASS;
}

/* "veth1", "cpu:1", "xsk:0" */
struct policy_target {
	enum pacer_target kind;
	char name[POLICY_TARGET_NAME]; /* of an interface */
	uint32_t number;	       /* of a CPU or a socket */
};

/* One item of `pools`: no target is in two of them, nor twice in one. */
struct policy_pool {
	int line;
	char name[POLICY_NAME_MAX];
	struct policy_target target[PACER_TARGETS_MAX]; /* all of one kind */
	size_t n;
	uint64_t each;
	struct policy_throttle throttle; /* of all targets together: uses is n * each */
};

/* One item of `sets`: of a file, or of a list. */
struct policy_set {
	int line;
	char name[POLICY_NAME_MAX];
	char file[POLICY_PATH_MAX]; /* "": there is none */
	uint32_t value;		    /* the field of the file that is the value, from 2; 0: none */
	struct prefix of[POLICY_LIST_MAX];
	size_t n_of;
	bool fleet;   /* the hosts of the fleet share its elements */
	bool counted; /* not of the text: limits that drain have keys by its values */
};

/* A value that matches or the allow-list name: those of a set are numbered as they come. */
struct policy_set_value {
	int line;
	size_t set;
	char name[POLICY_VALUE_MAX];
};

enum policy_clock { CLOCK_AUTO, CLOCK_EXACT, CLOCK_COARSE };

/* Which packets are sampled: those that a rule denied, those that it admitted, or all. */
enum policy_sampled { SAMPLE_DENIED, SAMPLE_ADMITTED, SAMPLE_ALL };

/* `sample`: of the last `packets` packets or, if that is 0, of those of the last window_ns. */
struct policy_sample {
	bool on;
	int line;
	enum policy_sampled of;
	bool without_replacement; /* by packets; those of a window are with */
	uint32_t k;
	uint32_t packets; /* below PACER_SAMPLE_BURST_C_MAX */
	uint64_t window_ns;
	uint32_t snap_bytes; /* of each frame's head; 0: none */
};

/* `fleet`: the store by which limits are divided among hosts. */
struct policy_fleet {
	bool on;
	int line;
	char store[POLICY_STORES_MAX][POLICY_PATH_MAX]; /* "https://10.0.0.1:2379" */
	size_t n_stores;				/* at least 1 */
	char name[POLICY_NAME_MAX];
	char cert[POLICY_PATH_MAX], key[POLICY_PATH_MAX], ca[POLICY_PATH_MAX]; /* "": none */
	bool local; /* a host that is cut off keeps a reserve */
	bool bans;  /* bans of sources are shared */
};

struct policy {
	bool monitor;
	bool unparsed_drop;
	enum policy_clock clock;
	uint64_t memory_bytes; /* of state; default 64Mi */
	uint64_t withstand;    /* packets a second that size the state instead; 0: it is not said */
	struct prefix *allow;
	size_t n_allow;
	struct policy_set_use allow_set[PACER_SETS_MAX]; /* "@office" in allow */
	size_t n_allow_sets;
	struct policy_rule *rule;
	size_t n_rules; /* 0 to PACER_RULES_MAX */
	struct policy_pool pool[PACER_POOLS_MAX];
	size_t n_pools;
	struct policy_set *set;
	size_t n_sets;
	struct policy_set_value set_value[PACER_SET_VALUES_MAX];
	size_t n_set_values;
	enum pacer_says else_says; /* PACER_SAYS_LIMITS: not written, and they pass */
	enum pacer_over else_over;
	int else_line;
	char else_pool_name[POLICY_NAME_MAX];
	size_t else_pool;
	uint64_t bans;	/* entries of the table of bans */
	bool bans_said; /* so it is made, even where no rule bans */
	uint64_t flows; /* entries of the table of flows, for limits of new ones */
	uint64_t flow_idle_ns;
	struct policy_sample sample;
	struct policy_fleet fleet;
};

/* What is wrong, where, and what to do: "FILE:LINE: WHERE: WHAT". line 0: no line. */
#define POLICY_NO_MEMORY (-2) /* for a line: the machine is to blame, and no policy */
#define POLICY_BLAMELESS (-3) /* the same, of a file that it could not read or write */

struct policy_error {
	int line;
	char text[400];
	const char *file; /* that it is about, where its reader does not know; NULL: he does */
};

__attribute__((format(printf, 3, 4))) static inline void
policy_explain(struct policy_error *error, int line, const char *format, ...)
{
	va_list args;

	error->line = line;
	error->file = NULL;
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
}

/* More, behind what it says. Where both are too long, what it says is cut. */
__attribute__((format(printf, 2, 3))) static inline void policy_append(struct policy_error *error,
								       const char *format, ...)
{
	char more[sizeof(error->text) / 2];
	size_t len = strlen(error->text), room;
	va_list args;

	va_start(args, format);
	vsnprintf(more, sizeof(more), format, args);
	va_end(args);
	room = sizeof(error->text) - 1 - strlen(more);
	memcpy(error->text + (len < room ? len : room), more, strlen(more) + 1);
}

/* The same, and -1 for the caller to return, which all who read the code can see. */
#define policy_fail(...) (policy_explain(__VA_ARGS__), -1)

/*
 * Parse `len` bytes of YAML. Returns a policy to be freed with policy_free, or NULL with *error
 * filled: unknown fields, wrong units, zero limits, duplicate rule names, prefixes out of range,
 * windows that cannot be represented, missing or contradictory fields are all errors of the line
 * they stand in, and the text says the path of the field ("rules[0].limits[1].window"), what was
 * found and what would do.
 */
struct policy *policy_parse(const char *text, size_t len, struct policy_error *error);
void policy_free(struct policy *policy);

/*
 * The text with one value replaced: `path` is "RULE.FIELD" ("dns.packets"), "RULE.limits[N].FIELD"
 * (N from 0), "pools.NAME.FIELD", or a top-level "mode", "unparsed", "clock", "bans", "flows",
 * "flow_idle". Comments and
 * layout stay. Returns a string to be freed, or NULL with *error filled (no such rule; no such
 * field, with the fields there are; a field that several limits have, with the paths to choose
 * from). The result is not validated: parse it.
 */
char *policy_set(const char *text, size_t len, const char *path, const char *value,
		 struct policy_error *error);

/* The same of "PATH=VALUE". */
char *policy_assign(const char *text, const char *assignment, struct policy_error *error);

/*
 * The text with the `n` prefixes as its allow-list, beside the sets that it lists. Comments and
 * layout of the rest stay. Returns a policy's text to be freed, which may be too long to be loaded;
 * or NULL with *error filled (an alias shares the list).
 */
char *policy_set_allow(const char *text, size_t len, const struct prefix *prefix, size_t n,
		       struct policy_error *error);

/* "src/24,56", "flow", "all", as in a policy. Returns buf. */
const char *policy_key_text(const struct policy_key *key, char *buf, size_t size);
/* The same of the item that the limit is of: with all lengths of a ladder. Returns buf. */
const char *policy_line_key_text(const struct policy_limit *limit, char *buf, size_t size);
/* Which rung of its ladder the limit is: ", rung 2 of 5"; "" of one that is none. Returns buf. */
const char *policy_rung_text(const struct policy_limit *limit, char *buf, size_t size);
/* "veth1", "cpu:1", "xsk:0", as in a policy. Returns buf. */
const char *policy_target_text(const struct policy_target *target, char *buf, size_t size);

/* Do keys of limits have the values of this set? */
bool policy_set_keyed(const struct policy *policy, const char *set);
/* Are the texts of its values kept? For keys, those of limits that drain too, and for the hosts of
 * a fleet. */
bool policy_set_named(const struct policy *policy, const struct policy_set *set);

/* Is there a table of bans? Where a rule bans, or the policy says how large it is. */
bool policy_bans(const struct policy *policy);

/* Has the rule limits of new flows? And of such that it takes a table to tell: not of TCP alone. */
bool policy_rule_opens(const struct policy_rule *rule);
bool policy_rule_keeps_flows(const struct policy_rule *rule);
/* Has one of the policy? */
bool policy_flows(const struct policy *policy);

const char *policy_limit_kind_name(enum policy_limit_kind kind); /* "gap" */

/* What a policy is made of: mappings, each with a table of its fields. */
enum policy_part {
	POLICY_WHOLE,
	POLICY_RULE,
	POLICY_MATCH,
	POLICY_LIMIT,
	POLICY_POOL,
	POLICY_SET,
	POLICY_SAMPLE,
	POLICY_FLEET,
	POLICY_PARTS
};

/*
 * A field as help, the man page and the schema tell it: what it is called, what it takes ("TIME";
 * "PORT..." is one or a list, "[RULE...]" is a list), what that says, in which kind of limit
 * ("gap"; "any"), and whether it has to be written.
 */
struct policy_field {
	const char *name, *value, *help, *kind;
	bool needed;
};

/* The field of that number, in the order of the table; false: no more. */
bool policy_field(enum policy_part part, size_t i, struct policy_field *field);
const char *policy_part_name(enum policy_part part); /* "a limit" */

/* What a field is in one policy and in another; NULL: it is not there. Of a list, an item. */
struct policy_difference {
	const char *field; /* as `set` names it: "dns.limits[0].packets"; "rules", "rules' order" */
	const char *one, *other;
};

/*
 * Calls `each` for every difference, in the order of the first policy. What means the same (1s and
 * 1000ms, what was not written and its default) is the same. Of a rule or a pool that the other has
 * not, its name is the difference. Returns 0, or -1 without memory.
 */
int policy_diff(const struct policy *one, const struct policy *other,
		void (*each)(const struct policy_difference *difference, void *arg), void *arg);

/* What a wrong name was meant to be: offer the names that there are; `name` is the nearest of them,
 * or NULL where none is near.
 */
struct policy_nearest {
	const char *wrong, *name;
	size_t best; /* 0: none has been offered */
};

void policy_nearest(struct policy_nearest *nearest, const char *name);

#endif
