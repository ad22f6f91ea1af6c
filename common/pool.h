/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: hands out K targets in a fixed rotation. Each target is used at most
 * `each` times in any `cooldown`. If all are spent, it hands out none. It is
 * the source's get_next_key, for redirect targets.
 *
 * Source: "Key usage coding challenge" and its "Key usage throttler": the
 * problem (500 times every 10 minutes), the first observation ("we need never
 * re-order our keys"), class SlidingWindowMap.
 *
 * How. Every target has a throttle of its own (throttle.h). A CPU leases up to
 * `lease` uses of the target whose turn it is, and makes them in its own
 * memory. When the lease has ended, it hands back what is left and goes on to
 * the next target whose turn it is. Spent targets are skipped. Each lease moves
 * the turn on by one. So two CPUs are nearly always at different targets, and
 * meet only at the turn, once for each lease. With a lease of one this is the
 * source's rotation: 0, 1, ... K - 1, 0, ...
 *
 * Why it is the source's. He keeps one throttle of K * each uses and cycles
 * through the keys. Let there be one taker with a lease of one, and let both
 * kinds of throttle be exact (threshold 1). Then both answer alike at every
 * call. Let them have answered alike so far, with n uses: use i was of target i
 * % K, and the turn is at n % K, whose uses were n - K, n - 2K, ... So that
 * target is spent if and only if the use `each` before its next, use n - K *
 * each, was made and has not cooled down; and that is when the one throttle is
 * spent. Where it is not, both give target n % K. Where it is, the K * each
 * uses since are hot too, `each` of every target: all are spent, and both give
 * none. Passing over spent targets therefore changes nothing as long as the
 * targets' pasts are alike; it matters with leases, with coarser thresholds and
 * after a change of targets.
 *
 * Why not the one throttle, which is smaller. Its numbers divide the uses among
 * the targets only while none is taken back and the limit stays. After one was
 * taken back (a lease's rest, an undone use), and after the limit was raised, a
 * number comes round again that is still hot (test_pool.c shows both). Leases
 * that are forfeited instead cost `lease` uses a packet where packets are rare;
 * and with a target more or less every number would have to be dealt anew.
 *
 * Error: no target gets more than `each` in any (t - cooldown, t], on any
 * number of CPUs. That is throttle.h's proof, of each target's state and the
 * leases on it: a pool lease is of one target at a time, it is handed back to
 * that before it is of another, and all it carries over is the latest time
 * seen. With h and O as in throttle.h, none (FULL) is given only if of every
 * target
 *   - each - h uses or more lie within max_cooldown + 2 * resolution, and
 *   - fewer than threshold + h are free, with uses counted as free when they
 *     are cooldown + min(lease_ns, O) + 2 * resolution old.
 *
 * A CPU has one lease, so h is of all targets together: in all, at most K *
 * (threshold - 1) + h are free. For the source's bound (fewer than T free in
 * all, and h with leases) take pacer_pool_threshold(T, K). BUSY is given where
 * no target that was asked had a use and one was held by others for too long.
 *
 * Refusals. A CPU that found every target spent notes when the first bucket
 * comes back. Until then it refuses without a look. Only uses that other CPUs
 * hand back could be free earlier, and h counts them already. If the limit, the
 * cooldown or the number of targets changes, it looks again at once.
 *
 * Work: the CPU's own line for a use out of a lease and for a refusal of the
 * kind above; else at most PACER_POOL_TARGETS looks and, but for a race, one
 * lock beside the hand-back. At most PACER_POOL_BUSY_MAX targets are waited
 * for.
 *
 * A change of policy may put another profile over the same state, as in
 * throttle.h, and `targets` may grow and shrink at its end. What is put in a
 * target's place begins with the uses of what was there: it gets less for a
 * time, never more.
 *
 * Concurrency: any number of CPUs, each with its own pool lease. If something
 * may interrupt a taker on its CPU and take as well, it counts as another CPU,
 * in `cpus`, too. The turn is stored without order. Two CPUs may begin at the
 * same target, which costs them one look at each other's line. State and leases
 * begin zeroed, and are zeroed together.
 *
 * The packet path asks enum pacer_throttle_result pacer_pool_next(each,
 * targets, state, lease, now_ns): ADMIT, redirect to lease->target; FULL, none
 * is free; BUSY, contended. If a packet cannot be redirected after all, its use
 * is lost, so the target gets less.
 *
 * Memory: 6,272 bytes of state for each target, 64 for the turn, and 64 for
 * each CPU, whatever the limits.
 */
#ifndef PACER_POOL_H
#define PACER_POOL_H

#include "throttle.h"

#define PACER_POOL_TARGETS  64u /* a power of two */
#define PACER_POOL_BUSY_MAX 2u

/*
 * Where the turn and the targets' throttles are kept. A host that keeps them in another way defines
 * all three macros. PACER_POOL_THROTTLE is the throttle of a target below PACER_POOL_TARGETS, or
 * NULL.
 */
#ifndef PACER_POOL_STATE
struct pacer_pool_target {
	struct pacer_throttle_state throttle;
} __attribute__((aligned(64)));

struct pacer_pool_state {
	__u32 turn; /* the target to be asked first */
	__u32 unused[15];
	struct pacer_pool_target target[];
};

_Static_assert(sizeof(struct pacer_pool_state) == 64, "the turn has a line");
_Static_assert(sizeof(struct pacer_pool_target) == 6272, "as the header says");

#define PACER_POOL_STATE	       struct pacer_pool_state
#define PACER_POOL_TURN(state)	       (&(state)->turn)
#define PACER_POOL_THROTTLE(state, at) (&(state)->target[at].throttle)
#endif

/*
 * Each target's threshold. With it, none is given only if fewer than `total` uses are free in all.
 */
PACER_INLINE __u32 pacer_pool_threshold(__u32 total, __u32 targets)
{
	return total / targets ? total / targets : 1;
}

/*
 * pacer_throttle_exhausted for one use. If it is spent, *back_ns is when its first bucket comes
 * back; 0: unknown.
 */
PACER_INLINE int pacer_pool_spent(const struct pacer_throttle_profile *each,
				  const struct pacer_throttle_state *state, __u64 now_ns,
				  __u64 *back_ns)
{
	__u32 lock, i;
	__u64 head, until_ns;

	for (i = 0; i < PACER_THROTTLE_LOOKS; i++) {
		lock = pacer_load(&state->lock);
		if (lock & PACER_LOCK_HELD)
			continue;
		if (!pacer_throttle_bare(each, state, now_ns, 1))
			return 0;
		head = pacer_load64(&state->head);
		until_ns = pacer_load64(&state->bucket[pacer_throttle_ring_index(head)].until_ns);
		if (head >= pacer_load64(&state->tail))
			until_ns = 0;
		if (pacer_load(&state->lock) != lock)
			continue;
		*back_ns = until_ns ? pacer_throttle_sum(until_ns, each->cooldown_ns) : 0;
		return 1;
	}
	return 0;
}

/* One call's way through the targets. */
struct pacer_pool_round {
	__u64 now_ns;
	__u64 resume_ns; /* when the first bucket of the targets asked so far comes back */
	__u32 targets;
	__u32 target; /* whose turn it is */
	__u32 busy;   /* targets that were held for too long */
	__u32 unused;
};

/*
 * Makes a use of the round's target, and leases more if it can. The caller's lease is empty.
 * Otherwise the round goes on. Returns an enum pacer_throttle_result.
 */
PACER_GLOBAL PACER_MUST_USE int pacer_pool_try(const struct pacer_throttle_profile *each,
					       struct pacer_throttle_state *state,
					       struct pacer_throttle_lease *lease,
					       struct pacer_pool_round *round)
{
	int result = PACER_THROTTLE_FULL;
	__u64 back_ns = 0;

	if (!each || !lease || !round)
		return PACER_THROTTLE_BUSY;
	if (!state)
		result = PACER_THROTTLE_BUSY;
	else if (!pacer_pool_spent(each, state, round->now_ns, &back_ns))
		result = pacer_throttle_refill(each, state, lease, round->now_ns, 1);
	if (result == PACER_THROTTLE_ADMIT)
		return result;
	round->busy += result == PACER_THROTTLE_BUSY;
	if (back_ns < round->resume_ns)
		round->resume_ns = back_ns;
	round->target = round->target + 1 < round->targets ? round->target + 1 : 0;
	return result;
}

PACER_INLINE struct pacer_throttle_state *pacer_pool_at(PACER_POOL_STATE *state, __u32 target)
{
	target = pacer_opaque(target) & (PACER_POOL_TARGETS - 1); /* for the kernel's verifier */
	return PACER_POOL_THROTTLE(state, target);
}

/* Hands back the rest of the lease to its target. 0: other CPUs held that for too long. */
PACER_INLINE int pacer_pool_hand_back(PACER_POOL_STATE *state, struct pacer_pool_lease *lease)
{
	struct pacer_throttle_state *throttle;
	__u32 lock = 0;

	if (!lease->lease.left)
		return 1;
	if (PACER_FAULT(POOL_TO_OTHER))
		lease->target = !lease->target;
	throttle = pacer_pool_at(state, lease->target);
	if (PACER_FAULT(POOL_UNLOCKED) && throttle)
		pacer_throttle_book(throttle, &lease->lease);
	if (!throttle ||
	    pacer_lock_take(&throttle->lock, PACER_LOCK_ANY, &lock) != PACER_LOCK_TAKEN)
		return 0;
	pacer_throttle_book(throttle, &lease->lease);
	pacer_lock_release(&throttle->lock, lock);
	return 1;
}

/* Is every target known to be spent, and is that still valid? */
PACER_INLINE int pacer_pool_resting(const struct pacer_throttle_profile *each, __u32 targets,
				    const struct pacer_pool_lease *lease, __u64 now_ns)
{
	return now_ns < lease->resume_ns && lease->targets == targets &&
	       lease->limit == each->limit && lease->cooldown_ns == each->cooldown_ns;
}

PACER_INLINE void pacer_pool_rest(const struct pacer_throttle_profile *each, __u32 targets,
				  struct pacer_pool_lease *lease, __u64 resume_ns)
{
	lease->targets = targets;
	lease->limit = each->limit;
	lease->cooldown_ns = each->cooldown_ns;
	lease->resume_ns = resume_ns;
}

/* pacer_pool_next after the lease has ended: asks the targets, from the turn on. */
PACER_SUBPROG PACER_MUST_USE enum pacer_throttle_result
pacer_pool_rotate(const struct pacer_throttle_profile *each, __u32 targets, PACER_POOL_STATE *state,
		  struct pacer_pool_lease *lease, __u64 now_ns)
{
	struct pacer_pool_round round = {now_ns, ~0ull, targets, pacer_load(PACER_POOL_TURN(state)),
					 0,	 0};
	__u32 i;

	if (!pacer_pool_hand_back(state, lease))
		return PACER_THROTTLE_BUSY;
	if (round.target >= targets)
		round.target = 0;
	PACER_ROLLED
	for (i = 0; i < PACER_POOL_TARGETS; i++) {
		if (i >= targets || round.busy >= PACER_POOL_BUSY_MAX)
			break;
		if (pacer_pool_try(each, pacer_pool_at(state, round.target), &lease->lease,
				   &round) != PACER_THROTTLE_ADMIT)
			continue;
		lease->target = round.target;
		pacer_store(PACER_POOL_TURN(state),
			    round.target + 1 < targets ? round.target + 1 : 0);
		return PACER_THROTTLE_ADMIT;
	}
	if (round.busy)
		return PACER_THROTTLE_BUSY;
	pacer_pool_rest(each, targets, lease, round.resume_ns);
	return PACER_THROTTLE_FULL;
}

/*
 * Makes one use. If it is admitted, it is of lease->target. `each` is the profile of one target's
 * throttle. `targets` is at most PACER_POOL_TARGETS.
 */
PACER_INLINE PACER_MUST_USE enum pacer_throttle_result
pacer_pool_next(const struct pacer_throttle_profile *each, __u32 targets, PACER_POOL_STATE *state,
		struct pacer_pool_lease *lease, __u64 now_ns)
{
	now_ns = pacer_later(now_ns, lease->lease.seen_ns);
	lease->lease.seen_ns = now_ns;
	if (PACER_FAULT(POOL_NO_END))
		lease->lease.until_ns = ~0ull;
	if (lease->lease.left && now_ns <= lease->lease.until_ns && lease->target < targets) {
		lease->lease.left--;
		return PACER_THROTTLE_ADMIT;
	}
	if (!lease->lease.left && pacer_pool_resting(each, targets, lease, now_ns))
		return PACER_THROTTLE_FULL;
	return pacer_pool_rotate(each, targets, state, lease, now_ns);
}

#endif
