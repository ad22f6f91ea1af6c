/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the policy as its operator wrote it: text (YAML) to struct, pure, so that it can be
 * tested and fuzzed without a kernel. compile.h turns the struct into what the kernel reads.
 */
#ifndef PACER_POLICY_H
#define PACER_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "units.h"

#define POLICY_NAME_MAX	      32 /* a rule's name: letters, digits, '_' and '-' */
#define POLICY_LIST_MAX	      64 /* prefixes or ranges in one field of one match */
#define POLICY_LIMITS_MAX     8	 /* limits of a rule */
#define POLICY_ALLOW_MAX      PACER_ALLOW_MAX
#define POLICY_MEMORY_DEFAULT (64ull << 20)

enum policy_key_kind { KEY_FLOW, KEY_SRC, KEY_DST, KEY_SRC_DPORT, KEY_ALL };

struct policy_key {
	enum policy_key_kind kind;
	uint8_t len4, len6; /* of the address of KEY_SRC, KEY_DST, KEY_SRC_DPORT; else 32 and 128 */
};

enum policy_limit_kind { LIMIT_GAP, LIMIT_WINDOW };

/* One item of `limits`. What was not written is 0, but for slots (10) and rows (2). */
struct policy_limit {
	int line;
	struct policy_key key;
	enum policy_limit_kind kind;
	uint64_t gap_ns;
	uint32_t rows;	  /* of a gap's sketch: 1 or 2 */
	uint64_t ceiling; /* of a gap: packets a second that all keys together may reach */
	uint64_t limit;	  /* of a window: packets or bytes */
	enum pacer_cost cost;
	uint64_t window_ns;
	uint32_t slots;
	uint64_t entries; /* keys to hold state for; 0: a share of the memory */
};

struct policy_match {
	struct prefix src[POLICY_LIST_MAX], dst[POLICY_LIST_MAX];
	struct range proto[POLICY_LIST_MAX], sport[POLICY_LIST_MAX], dport[POLICY_LIST_MAX];
	struct range vlan[POLICY_LIST_MAX];			/* "none" is PACER_VLAN_NONE */
	size_t n_src, n_dst, n_proto, n_sport, n_dport, n_vlan; /* 0: any */
};

struct policy_rule {
	int line;
	char name[POLICY_NAME_MAX];
	struct policy_match match;
	struct policy_limit limit[POLICY_LIMITS_MAX];
	size_t n_limits; /* at least 1 */
	enum pacer_over over;
};

enum policy_clock { CLOCK_AUTO, CLOCK_EXACT, CLOCK_COARSE };

struct policy {
	bool monitor;
	bool unparsed_drop;
	enum policy_clock clock;
	uint64_t memory_bytes; /* of state; default 64 MiB */
	struct prefix *allow;
	size_t n_allow;
	struct policy_rule *rule;
	size_t n_rules; /* 0 to PACER_RULES_MAX */
};

/* What is wrong, where, and what to do: "FILE:LINE: WHERE: WHAT". line 0: no line. */
struct policy_error {
	int line;
	char text[400];
};

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
 * (N from 0), or a top-level "mode", "unparsed", "clock". Comments and layout stay. Returns a
 * string to be freed, or NULL with *error filled (no such rule; no such field, with the fields
 * there are; a field that several limits have, with the paths to choose from). The result is not
 * validated: parse it.
 */
char *policy_set(const char *text, size_t len, const char *path, const char *value,
		 struct policy_error *error);

/* "src/24,56", "flow", "all", as in a policy. Returns buf. */
const char *policy_key_text(const struct policy_key *key, char *buf, size_t size);

#endif
