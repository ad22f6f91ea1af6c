/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a pacer with a policy in force, in a kernel made of memory, to ban sources and keys in
 * and to lift bans.
 *
 * To be linked as kernel.h says.
 */
#ifndef PACER_TEST_BANNING_H
#define PACER_TEST_BANNING_H

#include "paced.h"

#define TRIAL_NS (10 * SECOND)

static inline void begin_with(const char *text)
{
	put_on(text);
	for (uint32_t k = 0; k < 2 * PACER_SECRETS; k++) /* else all keys had the same places */
		control->secret[k / PACER_SECRETS][k % PACER_SECRETS] =
		    0x9e3779b97f4a7c15ull * (k + 1);
}

#endif
