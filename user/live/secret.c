/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/secret.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "live/copies.h"
#include "live/grace.h"
#include "live/host.h"
#include "live/rotate.h"

bool secret_is_weak(const struct attached *a)
{
	return !a->copy[copies_in_force(a)].policy.secret &&
	       a->control->secret_ready != PACER_SECRET_OF_TOOLS;
}

int secret_ready(struct attached *a, struct policy_error *error)
{
	__u64 *word = a->control->secret[0], drawn[PACER_SECRETS];

	if (__atomic_load_n(&a->control->secret_ready, __ATOMIC_ACQUIRE))
		return 0;
	if (getrandom(drawn, sizeof(drawn), 0) != sizeof(drawn))
		return policy_fail(error, 0, "%s: no random numbers for a secret", a->ifname);
	for (size_t i = 0; i < PACER_SECRETS; i++)
		__sync_bool_compare_and_swap(&word[i], 0, drawn[i] ? drawn[i] : 1);
	__atomic_store_n(&a->control->secret_ready, PACER_SECRET_OF_TOOLS, __ATOMIC_RELEASE);
	return 0;
}

int secret_draw(struct attached *a, uint32_t which, struct policy_error *error)
{
	if (getrandom(a->control->secret[which], sizeof(a->control->secret[which]), 0) !=
	    sizeof(a->control->secret[which]))
		return policy_fail(error, 0, "%s: no random numbers for a secret: %s", a->ifname,
				   strerror(errno));
	if (!which)
		__atomic_store_n(&a->control->secret_ready, PACER_SECRET_OF_TOOLS,
				 __ATOMIC_RELEASE);
	return 0;
}

int secret_move_bans(struct attached *a, struct pacer_policy *p, struct policy_error *error)
{
	struct pacer_table table = {a->lines, a->n_lines};

	if (!p->bans.moving)
		return 0;
	if (grace(a->ifname, error))
		return -1;
	if (!p->bans.sets ||
	    !rotate_bans(&table, &p->bans, (const __u64(*)[PACER_SECRETS])a->control->secret,
			 p->secret, host_now_ns()))
		__atomic_store_n(&p->bans.moving, 0, __ATOMIC_RELEASE);
	return 0;
}
