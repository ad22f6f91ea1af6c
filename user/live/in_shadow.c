/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/in_shadow.h"

int in_shadow_fail(const struct policy_error *why, struct policy_error *error)
{
	policy_explain(error, 0, "it is done in force, and not in the shadow: %.300s", why->text);
	return IN_SHADOW_FAILED;
}

int in_shadow_open(const struct attached *a, struct attached *shadow, struct policy_error *error)
{
	struct policy_error why = {0};
	int result = a->shadow_id ? attached_shadow(a, shadow, &why) : 1;

	return result < 0 ? in_shadow_fail(&why, error) : result;
}
