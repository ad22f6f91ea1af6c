/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: whom a policy's verdicts would lock out, told before it is in force. Pure. */
#ifndef PACER_LOCKOUT_H
#define PACER_LOCKOUT_H

#include "config/policy.h"

/*
 * What number i, from 0, of the things to be warned of says: a line without its end. NULL: there
 * are no more. *bin is what *policy was compiled to. The packets that are tried are in no set. One
 * caller at a time.
 */
const char *lockout_warning(const struct policy *policy, const struct pacer_policy *bin, size_t i);

#endif
