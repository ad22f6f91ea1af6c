/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the limit that would have to be set so that a key is denied nothing: from the rate at
 * which it is denied now, beside what its limit lets through. Of a limit of all, so that nobody is.
 * Pure.
 *
 * Error: the key's rate is its share of the rule's, so it has that interval; `enough` is of the
 * upper end. It supposes that the key uses all that its limit allows, and that the limit alone
 * denies it: where more than one may have, it is not known. Bursts that are shorter than the
 * episode may want more.
 */
#ifndef PACER_NEEDED_H
#define PACER_NEEDED_H

#include <stddef.h>

#include "episodes/crowd.h"

struct needed {
	int limit;	      /* of the rule; -1: that is not known */
	const char *field;    /* "packets", "bytes", "gap", "rate", "uses" */
	double value, enough; /* packets, bytes, ns, or packets or bytes a second */
	const struct policy_limit *of;
};

/*
 * The limits of the rule, a bit each, that count by the key of *t and deny for this reason. A
 * sample of a pacer at work does not tell these apart.
 */
uint32_t needed_limits(const struct policy_rule *rule, const struct pacer_limiter *t,
		       enum pacer_reason reason);

/* pps: packets of all keys that the rule denies for this reason a second. */
void needed_find(struct needed *needed, const struct policy_rule *rule, enum pacer_reason reason,
		 const struct crowd_key *key, double pps);

/* "packets=1234", as `set` takes it, of the value that is enough. Returns buf. */
const char *needed_text(const struct needed *needed, char *buf, size_t size);

#endif
