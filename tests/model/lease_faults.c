/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The throttle's functions as they are in the header but for one fault each, for the explorer to
 * find.
 */
#include "lease.h"

enum lease_fault {
	TORN_LOOK,	  /* a refusal by reading does not look at the claim again */
	FORFEIT,	  /* what is left of a lease is not handed back */
	HAND_BACK_TWICE,  /* it is handed back, and stays on lease */
	UNTIL_NOT_RAISED, /* a bucket cools from when it was leased from */
	UNDO_FORGETS,	  /* the use that is undone is not given back */
	SETTLE_LATE,	  /* a lease is handed back to a bucket that is back already */
	NO_END,		  /* a lease is used after its end */
	RELEASE_EARLY,	  /* the claim is given back before the lease is counted */
	UNDO_UNCLAIMED,	  /* a use is undone in the shared state without its claim */
	NOT_JUDGED_AGAIN, /* what was seen free is taken without a look under the claim */
	NEWEST_BUCKET	  /* a lease is handed back to the newest bucket, not to its own */
};

static int spent_torn(const struct pacer_throttle_profile *profile,
		      const struct pacer_throttle_state *state, __u64 now_ns, __u32 n)
{
	__u32 claim = pacer_load(&state->claim);

	return !(claim & PACER_CLAIM_HELD) && pacer_throttle_bare(profile, state, now_ns, n);
}

static void settle_with(enum lease_fault fault, struct pacer_throttle_state *state,
			struct pacer_throttle_lease *lease)
{
	__u64 head = pacer_load64(&state->head);
	__u64 tail = pacer_load64(&state->tail);
	__u32 left = lease->left;

	if (fault == FORFEIT)
		left = 0;
	if (fault == NEWEST_BUCKET)
		lease->bucket = tail - 1;
	if (left && (fault == SETTLE_LATE || lease->bucket - head < tail - head))
		pacer_throttle_count(state, lease->bucket, -left);
	if (fault != HAND_BACK_TWICE)
		lease->left = 0;
}

static void grant_with(enum lease_fault fault, const struct pacer_throttle_profile *profile,
		       struct pacer_throttle_state *state, struct pacer_throttle_lease *lease,
		       __u64 now_ns, __u32 n, __u32 room)
{
	__u64 *until =
	    &state->bucket[pacer_throttle_place(pacer_load64(&state->tail) - 1)].until_ns;
	__u64 until_ns = pacer_load64(until);
	__u32 left = lease->left;

	lease->left = 0;
	pacer_throttle_grant(profile, state, lease, now_ns, n, room);
	if (fault == UNTIL_NOT_RAISED)
		pacer_store64(until, until_ns);
	if (fault == HAND_BACK_TWICE)
		lease->left += left;
}

static enum pacer_throttle_result refill_with(enum lease_fault fault,
					      const struct pacer_throttle_profile *profile,
					      struct pacer_throttle_state *state,
					      struct pacer_throttle_lease *lease, __u64 now_ns,
					      __u32 n)
{
	enum pacer_throttle_result result = PACER_THROTTLE_FULL;
	__u32 seen = profile->limit - pacer_load(&state->held), claim = 0, room;

	if (pacer_claim_take(&state->claim, PACER_CLAIM_ANY, &claim) != PACER_CLAIM_TAKEN)
		return PACER_THROTTLE_BUSY;
	now_ns = pacer_throttle_later(now_ns, pacer_load64(&state->seen_ns));
	lease->seen_ns = now_ns;
	settle_with(fault, state, lease);
	room = pacer_throttle_release(profile, state, now_ns);
	if (fault == NOT_JUDGED_AGAIN)
		room = seen;
	if (n <= room) {
		lease->number = pacer_throttle_make(profile, state, now_ns, n);
		lease->bucket = pacer_load64(&state->tail) - 1;
		lease->until_ns = now_ns;
		if (fault == RELEASE_EARLY)
			pacer_claim_release(&state->claim, claim);
		grant_with(fault, profile, state, lease, now_ns, n, room - n);
		result = PACER_THROTTLE_ADMIT;
	}
	if (fault != RELEASE_EARLY || result != PACER_THROTTLE_ADMIT)
		pacer_claim_release(&state->claim, claim);
	return result;
}

static enum pacer_throttle_result take_with(enum lease_fault fault,
					    const struct pacer_throttle_profile *profile,
					    struct pacer_throttle_state *state,
					    struct pacer_throttle_lease *lease, __u64 now_ns,
					    __u32 n)
{
	int live, spent;

	now_ns = pacer_throttle_later(now_ns, lease->seen_ns);
	lease->seen_ns = now_ns;
	live = now_ns <= lease->until_ns || fault == NO_END;
	if (live && n <= lease->left) {
		lease->left -= n;
		return PACER_THROTTLE_ADMIT;
	}
	if (live || !lease->left) {
		spent = fault == TORN_LOOK
			    ? spent_torn(profile, state, now_ns, n - lease->left)
			    : pacer_throttle_spent(profile, state, now_ns, n - lease->left);
		if (spent)
			return PACER_THROTTLE_FULL;
	}
	return refill_with(fault, profile, state, lease, now_ns, n);
}

static void undo_with(enum lease_fault fault, const struct pacer_throttle_profile *profile,
		      struct pacer_throttle_state *state, struct pacer_throttle_lease *lease)
{
	__u32 claim = 0;

	if (fault == UNDO_FORGETS)
		return;
	lease->left++;
	if (lease->left < profile->lease)
		return;
	if (fault != UNDO_UNCLAIMED &&
	    pacer_claim_take(&state->claim, PACER_CLAIM_ANY, &claim) != PACER_CLAIM_TAKEN)
		return;
	settle_with(fault, state, lease);
	if (fault != UNDO_UNCLAIMED)
		pacer_claim_release(&state->claim, claim);
}

#define FAULTY(name, fault)                                                                   \
	static enum pacer_throttle_result take_##name(                                        \
	    const struct pacer_throttle_profile *profile, struct pacer_throttle_state *state, \
	    struct pacer_throttle_lease *lease, __u64 now_ns, __u32 n)                        \
	{                                                                                     \
		return take_with(fault, profile, state, lease, now_ns, n);                    \
	}                                                                                     \
	static void undo_##name(const struct pacer_throttle_profile *profile,                 \
				struct pacer_throttle_state *state,                           \
				struct pacer_throttle_lease *lease)                           \
	{                                                                                     \
		undo_with(fault, profile, state, lease);                                      \
	}                                                                                     \
	const struct lease_ops lease_fault_##name = {take_##name, undo_##name}

FAULTY(torn_look, TORN_LOOK);
FAULTY(forfeit, FORFEIT);
FAULTY(hand_back_twice, HAND_BACK_TWICE);
FAULTY(until_not_raised, UNTIL_NOT_RAISED);
FAULTY(undo_forgets, UNDO_FORGETS);
FAULTY(settle_late, SETTLE_LATE);
FAULTY(no_end, NO_END);
FAULTY(release_early, RELEASE_EARLY);
FAULTY(undo_unclaimed, UNDO_UNCLAIMED);
FAULTY(not_judged_again, NOT_JUDGED_AGAIN);
FAULTY(newest_bucket, NEWEST_BUCKET);
