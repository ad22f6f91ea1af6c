/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: when a key was denied last, as far as the policy's sample of packets tells: it costs no
 * packet anything beyond that.
 *
 * Error: a sample has some of the packets. So the last denial may be later than the one that is
 * found, and that none is found does not say that there was none.
 */
#ifndef PACER_DENIED_H
#define PACER_DENIED_H

#include "live/snapshot.h"
#include "inspect/why.h"

struct denied {
	bool found;
	uint64_t time_ns;
	enum pacer_reason reason;
};

/* Does the policy sample packets that are denied? */
bool denied_is_sampled(const struct pacer_policy *policy);

/* The latest denial in the sample, under the rule, of one of the keys that `why` names. */
struct denied denied_of_keys(const struct attached *a, const struct sample *sample, uint32_t rule,
			     const struct why *why);
/* The same of a source, denied as banned whatever its rule. */
struct denied denied_of_source(const struct sample *sample, const struct prefix *source);

#endif
