/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: why a packet would fare as it would: what its rule's limits hold for it, its bans, the
 * verdict now, and the time at which it would pass. Read alone: nothing is charged, and the state
 * is what it was.
 *
 * Error: the verdict is that of the very next packet on the CPU whose leases are given, if that
 * comes at that time, no other CPU is at the same entries just then, and no two limits of the rule
 * want one entry (table.h: then it is contended). The time is exact, if nothing else comes; uses
 * that other CPUs hold on lease may come back before.
 *
 * Concurrency: beside packets that are judged; then what is read may be of two moments.
 * Memory: of a call, a copy of each throttle of the rule.
 */
#ifndef PACER_WHY_H
#define PACER_WHY_H

#include <stdbool.h>

#include "rule.h"
#include "plan/compile.h"
#include "inspect/packet_text.h"
#include "inspect/tally.h"

/* A limit of the rule: limits that share a key. */
struct why_limit {
	int limit, guest; /* which of the rule's in the policy, and which is with it; -1: none */
	uint64_t draining_ns;	  /* asked until then, since a policy before had it; 0: in force */
	struct policy_key by;	  /* how keys are told apart */
	char key[TALLY_TEXT];	  /* the packet's */
	enum pacer_family family; /* whose key it is, of one that each has; else NONE */
	struct limit_held held;
	bool unshared;	      /* a fleet divides it, and this host has no share now */
	bool unasked;	      /* it counts packets that open a flow, and this one does not */
	uint64_t banned_ns;   /* until then the key is banned under the rule; 0: it is not */
	uint32_t ban_row;     /* that ban's number in a row, of a rule whose bans grow; else 0 */
	uint64_t ban_next_ns; /* then: how long the next in the row lasts */
	uint64_t when_ns;     /* when the limit would admit the packet; 0: at any time */
	enum pacer_reason reason; /* what it says now */
};

struct why {
	enum pacer_reason reason;
	uint32_t rule;	    /* that the packet falls under; PACER_RULES_MAX: none */
	int denied;	    /* which of `limit`, or whose ban; -1: none */
	uint64_t source_ns; /* until then its source is banned, whatever the rule; 0: it is not */
	char source[64];    /* as this prefix */
	uint64_t when_ns;   /* of a denial: when the packet would pass; else now */
	bool opens;	    /* a flow, where the rule has limits of new ones; else true */
	size_t n;
	struct why_limit limit[2 * PACER_LIMITERS_MAX]; /* of keys, one of each family */
};

/* Is the source of the packet in a tunnel on the allow-list? */
typedef bool why_allows(const struct pacer_packet *inner, void *arg);

/*
 * Looks for w->pkt's rule in its frame's first bytes, which it was parsed of, where the policy's
 * rules ask for more than the packet says; `read` is PACER_ADMIT, or PACER_NOT_IP. To be done
 * before why_packet. If its rule is one for packets in tunnels, w->pkt is the inner packet then.
 * `allows`, which gets `arg`, may be NULL: nobody is. Returns PACER_ADMIT where the packet has to
 * be judged; or why it is not: PACER_NOT_IP, PACER_TOO_DEEP.
 */
enum pacer_reason why_find(struct pacer_walk *w, const struct packet_head *head,
			   enum pacer_reason read, why_allows *allows, void *arg);
/*
 * The same as if the packet's source were not banned: nothing is looked for in the tunnel of one
 * that is.
 */
enum pacer_reason why_find_behind(struct pacer_walk *w, const struct packet_head *head,
				  enum pacer_reason read, why_allows *allows, void *arg);

/*
 * Of w->pkt, which was parsed and is not on the allow-list, at w->now_ns. `policy` has the names;
 * resolution_ns is the host's coarse clock's.
 */
void why_packet(const struct pacer_walk *w, const struct policy *policy, uint64_t resolution_ns,
		struct why *why);
/* The same of one that something not in w's state bans until banned_ns; 0: nothing does. */
void why_packet_banned(const struct pacer_walk *w, const struct policy *policy,
		       uint64_t resolution_ns, uint64_t banned_ns, struct why *why);

/*
 * As tally_key_read, and the key `all` of a limit without parts, which is one of both families: a
 * packet of IPv4 stands for it. Bans have no such key.
 */
int why_key_read(const struct policy_key *kind, const char *text, struct pacer_packet *pkt);
/*
 * Of a key, as tally_key_text writes it, under rule w->rule: the limits that count by such keys, or
 * by a prefix of the source that it is, of which source_bits bits are known (w->pkt has them; 0:
 * it is none), or by the source's value in a set; and until when the key is banned. A key without
 * an address is one of IPv4 and one of IPv6. Without a reason: it needs a packet to fall under a
 * rule. w->pkt's length is that of its packets.
 */
void why_key(const struct pacer_walk *w, const struct policy *policy, uint64_t resolution_ns,
	     const char *key, uint8_t source_bits, struct why *why);

/*
 * Until when w->pkt's source is banned, whatever the rule, and as which prefix, of `most` bits at
 * most; 0: it is not.
 */
uint64_t why_source(const struct pacer_walk *w, uint8_t most, char *prefix, size_t size);

#endif
