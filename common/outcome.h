/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: what became of a packet, in one word: the reason, the limit that denied it, the rule
 *that it fell under, and what happened to it beside. The packet path, replay, the counters, the
 *samples and the tests all speak of it in this word.
 *
 *	bits 0 to 7	enum pacer_reason, or PACER_UNDECIDED
 *	bits 8 to 15	the limit that denied; 0 where none did
 *	bits 16 to 24	1 + the rule's number; 0: none
 *	bits 25 to 31	1 + enum pacer_event; 0: none
 *
 * So a reason alone is an outcome: of a packet without a rule. The reason and the limit together
 * tell the limit, since a limit has at most one of each kind.
 *
 * Error: what is no reason reads as a denial. Concurrency: pure. Memory: none.
 */
#ifndef PACER_OUTCOME_H
#define PACER_OUTCOME_H

#include "abi.h"

/* In the reason's place: no reason yet, more steps have to be taken. */
#define PACER_UNDECIDED PACER_REASON_COUNT

#define PACER_OUTCOME_RULE  16
#define PACER_OUTCOME_EVENT 25
#define PACER_OUTCOME_RULES ((1u << (PACER_OUTCOME_EVENT - PACER_OUTCOME_RULE)) - 1)

_Static_assert(PACER_UNDECIDED <= 0xff && PACER_LIMITERS_MAX <= 0x100 &&
		   PACER_RULES_MAX <= PACER_OUTCOME_RULES && PACER_EVENT_COUNT < 0x3f,
	       "each has room, and an int is enough");

PACER_INLINE __u32 pacer_outcome(__u32 reason, __u32 limiter)
{
	return reason | limiter << 8;
}

/* The outcome, which has no rule yet, of a packet under a rule. */
PACER_INLINE __u32 pacer_outcome_under(__u32 outcome, __u32 rule)
{
	return outcome | (rule + 1) << PACER_OUTCOME_RULE;
}

/* The outcome with this event; with none if it is PACER_EVENT_COUNT. */
PACER_INLINE __u32 pacer_outcome_with(__u32 outcome, __u32 event)
{
	outcome &= (1u << PACER_OUTCOME_EVENT) - 1;
	return event < PACER_EVENT_COUNT ? outcome | (event + 1) << PACER_OUTCOME_EVENT : outcome;
}

PACER_INLINE int pacer_outcome_undecided(__u32 outcome)
{
	return (outcome & 0xff) == PACER_UNDECIDED;
}

PACER_INLINE enum pacer_reason pacer_outcome_reason(__u32 outcome)
{
	__u32 reason = outcome & 0xff;

	return reason < PACER_REASON_COUNT ? (enum pacer_reason)reason : PACER_DENY_NO_STATE;
}

PACER_INLINE __u32 pacer_outcome_limiter(__u32 outcome)
{
	return (outcome >> 8) & (PACER_LIMITERS_MAX - 1);
}

/* The rule's number; PACER_RULES_MAX: none. */
PACER_INLINE __u32 pacer_outcome_rule(__u32 outcome)
{
	__u32 rule = outcome >> PACER_OUTCOME_RULE & PACER_OUTCOME_RULES;

	return rule ? rule - 1 : PACER_RULES_MAX;
}

/* An enum pacer_event; PACER_EVENT_COUNT: none. */
PACER_INLINE __u32 pacer_outcome_event(__u32 outcome)
{
	__u32 event = outcome >> PACER_OUTCOME_EVENT;

	return event ? event - 1 : PACER_EVENT_COUNT;
}

PACER_INLINE int pacer_outcome_denied(__u32 outcome)
{
	return pacer_verdict_of(pacer_outcome_reason(outcome)) == PACER_VERDICT_DENY;
}

#endif
