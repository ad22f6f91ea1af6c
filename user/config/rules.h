/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the tables of fields that a policy is made of. For the sources of this wing.
 */
#ifndef PACER_RULES_H
#define PACER_RULES_H

#include "config/document.h"

/* The fields of a part, in the order in which they are told. Valid for ever. */
const struct fields *rules_part(enum policy_part part);

#endif
