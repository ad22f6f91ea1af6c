/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: the matches of rules as the packet path looks them up (classify.h). Pure. */
#ifndef PACER_CLASSIFIER_H
#define PACER_CLASSIFIER_H

#include "config/policy.h"

/* Fill rules, ruled_out, dims, dim, dim6 and port_at, or *error where a field has too many ranges.
 */
int compile_classifier(const struct policy *policy, struct pacer_policy *bin,
		       struct policy_error *error);

#endif
