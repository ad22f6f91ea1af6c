/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: `limit` uses for a whole rule or a pool. Each use is free again
 * `cooldown` after it was made. The memory does not grow with the limit.
 *
 * Source: "Key usage coding challenge" and its "Key usage throttler": sections
 * "Buckets", "Generalizing", "The code". Uses are gathered in an active bucket,
 * which is set aside once it has been open for max_cooldown - cooldown or holds
 * `threshold` uses; uses come back by the bucket.
 *
 *   A   threshold == limit          a denial may be false only if every use lies
 *                                   within max_cooldown
 *   B   max_cooldown == UINT64_MAX  ... only if fewer than threshold are free
 *   AB  neither                     ... only if both hold
 *
 * What differs from the source. Its code leaves the close time of a full bucket
 * where it was: after a burst, 500 free uses can be told as none for the whole
 * of the slack, against its own requirement B. Setting a full bucket aside at
 * once mends that. Here a bucket comes back `cooldown` after its last use,
 * which mends it too, is never later, and with B leaves nothing behind: a
 * bucket that never fills would otherwise never be set aside.
 *
 * Why AB holds. Write O for max_cooldown - cooldown, C for cooldown, and let a
 * use be denied at t, all uses being in buckets that are not back. Buckets are
 * in order of time. A bucket takes uses for less than O, and one that is not
 * back had its last use after t - C: all uses are after t - C - O. The uses of
 * every bucket but the oldest come after the oldest's last, so after t - C: what
 * is really free is in the oldest, and that has at least one use that is not.
 * So fewer than threshold are free. (Of n uses at once, at most threshold: all but
 * n - 1 lie within max_cooldown, and fewer than threshold + n - 1 are free.)
 *
 * How many buckets: at most ceil(C / O) + ceil(limit / threshold), which the
 * source supposed. Let m buckets not be back at t, just after one of them was
 * opened. Each but the newest was set aside either full or after O.
 * - Let k of them have been set aside after O without being full. From the
 *   opening of each to the next opening is O or more, so from the oldest's to
 *   the newest's k * O or more. But the oldest's last use is less than O after
 *   its opening, and t less than C after that: k * O < C + O, k <= ceil(C / O).
 * - Let f have been set aside full. They hold f * threshold uses, the newest
 *   holds one or more: f * threshold < limit, f <= ceil(limit / threshold) - 1.
 * With the newest, m = k + f + 1 <= ceil(C / O) + ceil(limit / threshold).
 * The k hold a use each as well. So it is one less at least, as the source's
 * author had expected, unless (limit - 1) % threshold is ceil(C / O) or more. His
 * own example (500 uses, 10 min, 11 min, 50) is such, and takes all of its 20.
 *
 * Leases. Sharing a bucket use by use would put one hot line under every CPU. A
 * CPU instead takes up to `lease` uses at a time (pacer_throttle_take). They
 * count as used from then on, and a bucket cools from the last moment at which
 * a lease out of it can still be used: until the lease has lasted lease_ns, or
 * the bucket has been open for O, whichever is first. A CPU that comes back
 * after that first hands back what it has left, to the very bucket (buckets are
 * numbered and no number comes twice); if that is back already there is nothing
 * to hand back. So of every CPU at most lease - 1 uses are held and not made.
 *
 * Buckets with leases: a bucket that was full when it was set aside can be handed
 * back at most lease - 1 uses by each CPU but the one that set it aside. It keeps
 * threshold - (cpus - 1) * (lease - 1) at least: that takes the place of threshold
 * in the bound, and has to be above 0. (C there includes resolution_ns.)
 *
 * Time. A time that runs back counts as the latest seen. The time of a use is the
 * greatest of the time passed in, the latest that this CPU has seen and, if the
 * CPU went to the shared state for it, the latest seen there; afterwards it is in
 * lease->seen_ns. On that clock G1 is exact in any interleaving. Take the uses
 * within some (t - C, t], and of their leases the one that was taken last, at
 * s <= t. The others can be used after t - C, so their buckets are not back
 * before t: at s all were counted together, and were at most `limit`.
 * On the real clock: count the clock that is furthest ahead as true. If no CPU's
 * time is behind that by more than resolution_ns when a use is made (the tick of
 * a coarse clock, what CPUs disagree by, the time since the clock was read), uses
 * are made at most resolution_ns after their lease's end. A bucket cools longer
 * by as much, so that G1 holds; leases need not be shorter.
 *
 * Error: nothing is ever admitted above the limit. Let h = (cpus - 1) * (lease -
 * 1): other CPUs hold at most h uses that they have not made. One use is denied
 * (FULL) only if
 *   - limit - h uses or more lie within max_cooldown + 2 * resolution, and
 *   - fewer than threshold + h are free, with uses counted as free when they are
 *     cooldown + min(lease_ns, O) + 2 * resolution old.
 * (n uses at once: n - 1 fewer, n - 1 more.) h is less than threshold, so leases
 * at most double the error of B; for one CPU, and with a lease of one, h is 0.
 * Beside that a use is denied (BUSY) if the lock was not had within PACER_SPINS
 * looks. A CPU whose clock leaps ahead stops the state's clock until the others
 * have caught up: what cools meanwhile comes back late. On a machine that
 * reorders loads a refusal may rest on two different moments' state.
 *
 * A change of policy may put another profile over the same state. Buckets keep
 * the times of their uses, not those of their coming back, so the new cooldown
 * and limit hold at once, for what was used before as well. If the new profile
 * needs more buckets than are left, further uses share the newest and come back
 * later; none is forgotten.
 *
 * A pool of K resources, max_count uses each, is a throttle of limit K *
 * max_count with a lease of one. Uses are then numbered in the order in which
 * they are counted, from 0 to limit - 1 and round again; number i is not given
 * out again before it has cooled down, so any fixed division of the numbers
 * among the resources (i / max_count, i % K) keeps each within its own limit:
 * as long as the limit stays and no use is taken back. Otherwise a number may
 * come again that is hot (test_pool.c); a pool that leases, that is changed or
 * whose uses are undone needs a throttle for each resource, as pool.h has it.
 *
 * Concurrency: pacer_throttle_use has one caller at a time. pacer_throttle_take
 * is for any number of CPUs, each with its own lease. If something may
 * interrupt a taker on its CPU and take as well, it needs a lease of its own
 * and counts as another CPU in `cpus`. pacer_throttle_undo and _refuses are for
 * the same taker. Uses out of a lease touch only the caller's memory. Refusals
 * write nothing shared, unless something has to be handed back or taken back
 * first. pacer_throttle_free only reads; beside writers it is an estimate.
 * State and leases begin zeroed, and are zeroed together.
 *
 * Memory: 6,248 bytes of state and 32 for each CPU, whatever the limit.
 */
#ifndef PACER_THROTTLE_H
#define PACER_THROTTLE_H

#include "abi.h"
#include "lock.h"

#define PACER_THROTTLE_LOOKS (PACER_SPINS < 32 ? PACER_SPINS : 32)

enum pacer_throttle_result {
	PACER_THROTTLE_ADMIT,
	PACER_THROTTLE_FULL, /* too few uses have cooled down */
	PACER_THROTTLE_MANY, /* more at once than the threshold */
	PACER_THROTTLE_BUSY  /* the state was held by other CPUs for too long */
};

enum pacer_throttle_error {
	PACER_THROTTLE_OK,
	PACER_THROTTLE_BAD_LIMIT,	 /* 0 */
	PACER_THROTTLE_BAD_THRESHOLD,	 /* 0, or above limit */
	PACER_THROTTLE_BAD_COOLDOWN,	 /* 0, or too long with resolution added */
	PACER_THROTTLE_BAD_MAX_COOLDOWN, /* not above cooldown */
	PACER_THROTTLE_BAD_CPUS,	 /* 0 */
	PACER_THROTTLE_BAD_LEASE,  /* 0, above threshold, or (cpus-1) * (lease-1) not below it */
	PACER_THROTTLE_BAD_BUCKETS /* more than PACER_THROTTLE_BUCKETS would be needed */
};

/* In the operator's units. For one caller at a time, cpus and lease are 1 and lease_ns is 0. */
struct pacer_throttle_params {
	__u32 limit;
	__u32 threshold;
	__u32 cpus; /* CPUs, and other takers with a lease of their own */
	__u32 lease;
	__u64 cooldown_ns;
	__u64 max_cooldown_ns; /* UINT64_MAX: no requirement A */
	__u64 lease_ns;	       /* 0: a lease lasts for one reading of the clock */
	__u64 resolution_ns;
};

PACER_INLINE __u64 pacer_throttle_sum(__u64 a, __u64 b)
{
	return a + b < a ? ~0ull : a + b;
}

PACER_INLINE __u64 pacer_throttle_div_up(__u64 a, __u64 b)
{
	return a / b + !!(a % b);
}

/* The uses that other CPUs can hold at most without having made them: h of the header. */
PACER_INLINE __u64 pacer_throttle_elsewhere(const struct pacer_throttle_params *params)
{
	return (__u64)(params->cpus - 1) * (params->lease - 1);
}

/*
 * The bound on buckets, of params that are sound otherwise. For the loader: it divides.
 */
PACER_INLINE __u64 pacer_throttle_buckets(const struct pacer_throttle_params *params)
{
	__u64 cooldown_ns = params->cooldown_ns + params->resolution_ns;
	__u64 open_ns = params->max_cooldown_ns - params->cooldown_ns;
	__u64 full = params->threshold - pacer_throttle_elsewhere(params);

	return pacer_throttle_sum(pacer_throttle_div_up(cooldown_ns, open_ns),
				  pacer_throttle_div_up(params->limit, full));
}

/* Fills *profile, or returns why not and leaves it unchanged. For the loader: it divides. */
PACER_INLINE PACER_MUST_USE enum pacer_throttle_error
pacer_throttle_configure(struct pacer_throttle_profile *profile,
			 const struct pacer_throttle_params *params)
{
	if (!params->limit)
		return PACER_THROTTLE_BAD_LIMIT;
	if (!params->threshold || params->threshold > params->limit)
		return PACER_THROTTLE_BAD_THRESHOLD;
	if (!params->cooldown_ns || params->cooldown_ns > ~0ull - params->resolution_ns)
		return PACER_THROTTLE_BAD_COOLDOWN;
	if (params->max_cooldown_ns <= params->cooldown_ns)
		return PACER_THROTTLE_BAD_MAX_COOLDOWN;
	if (!params->cpus)
		return PACER_THROTTLE_BAD_CPUS;
	if (!params->lease || params->lease > params->threshold ||
	    pacer_throttle_elsewhere(params) >= params->threshold)
		return PACER_THROTTLE_BAD_LEASE;
	if (pacer_throttle_buckets(params) > PACER_THROTTLE_BUCKETS)
		return PACER_THROTTLE_BAD_BUCKETS;
	profile->limit = params->limit;
	profile->threshold = params->threshold;
	profile->lease = params->lease;
	profile->buckets = pacer_throttle_buckets(params);
	profile->cooldown_ns = params->cooldown_ns + params->resolution_ns;
	profile->open_ns = params->max_cooldown_ns - params->cooldown_ns - 1;
	profile->lease_ns = params->lease_ns;
	return PACER_THROTTLE_OK;
}

/*
 * The largest lease that pacer_throttle_configure accepts with the other params; 0: it refuses them
 * with any lease. For the loader: it divides.
 */
PACER_INLINE __u32 pacer_throttle_lease_max(struct pacer_throttle_params params)
{
	struct pacer_throttle_profile profile;
	__u64 room, full, lease;

	params.lease = 1;
	if (pacer_throttle_configure(&profile, &params) != PACER_THROTTLE_OK)
		return 0;
	if (params.cpus == 1)
		return params.threshold;
	room = PACER_THROTTLE_BUCKETS -
	       (profile.buckets - pacer_throttle_div_up(params.limit, params.threshold));
	full = pacer_throttle_div_up(params.limit, room);
	lease = 1 + (params.threshold - full) / (params.cpus - 1);
	return lease < params.threshold ? lease : params.threshold;
}

PACER_INLINE __u32 pacer_throttle_ring_index(__u64 number)
{
	return number & (PACER_THROTTLE_RING - 1);
}

PACER_INLINE __u32 pacer_throttle_block(__u64 number)
{
	return (number / PACER_THROTTLE_BLOCK) & (PACER_THROTTLE_BLOCKS - 1);
}

/* Does bucket `number` exist, and has it cooled down, and so all before it? */
PACER_INLINE int pacer_throttle_cooled(const struct pacer_throttle_profile *profile,
				       const struct pacer_throttle_state *state, __u64 number,
				       __u64 now_ns)
{
	__u64 until_ns = pacer_load64(&state->bucket[pacer_throttle_ring_index(number)].until_ns);

	return number < pacer_load64(&state->tail) && now_ns > until_ns &&
	       now_ns - until_ns >= profile->cooldown_ns;
}

PACER_INLINE __u32 pacer_throttle_room(__u32 limit, __u32 held)
{
	return held < limit ? limit - held : 0;
}

/*
 * Some functions below are told a limit, of the profile's at most. It may be another one at every
 * call: while it is below what is held, nothing is free.
 */

/* Are fewer than n uses free, and has nothing cooled down? Read only. */
PACER_INLINE int pacer_throttle_bare_of(const struct pacer_throttle_profile *profile, __u32 limit,
					const struct pacer_throttle_state *state, __u64 now_ns,
					__u32 n)
{
	if (pacer_throttle_room(limit, pacer_load(&state->held)) >= n)
		return 0;
	now_ns = pacer_later(now_ns, pacer_load64(&state->seen_ns));
	return !pacer_throttle_cooled(profile, state, pacer_load64(&state->head), now_ns);
}

PACER_INLINE int pacer_throttle_bare(const struct pacer_throttle_profile *profile,
				     const struct pacer_throttle_state *state, __u64 now_ns,
				     __u32 n)
{
	return pacer_throttle_bare_of(profile, profile->limit, state, now_ns, n);
}

/*
 * Looks once, beside writers. Returns 1 if they are (pacer_throttle_bare_of), 0 if not, -1 if the
 * look was disturbed.
 */
PACER_INLINE int pacer_throttle_look(const struct pacer_throttle_profile *profile, __u32 limit,
				     const struct pacer_throttle_state *state, __u64 now_ns,
				     __u32 n)
{
	__u32 lock = pacer_load(&state->lock);

	if (lock & PACER_LOCK_HELD)
		return -1;
	if (!pacer_throttle_bare_of(profile, limit, state, now_ns, n))
		return 0;
	return PACER_FAULT(THROTTLE_TORN_LOOK) || pacer_load(&state->lock) == lock ? 1 : -1;
}

/*
 * Looks up to PACER_THROTTLE_LOOKS - 1 times more; 0 also if every look was disturbed. `uses` is n,
 * and the limit from bit 32 on. A function of its own, which the verifier checks once for all
 * callers.
 */
PACER_GLOBAL PACER_MUST_USE int
pacer_throttle_look_again(const struct pacer_throttle_profile *profile,
			  const struct pacer_throttle_state *state, __u64 now_ns, __u64 uses)
{
	int i;

	if (!profile || !state)
		return 0;
	for (i = 1; i < PACER_THROTTLE_LOOKS; i++) {
		int result = pacer_throttle_look(profile, uses >> 32, state, now_ns, (__u32)uses);

		if (result >= 0)
			return result;
	}
	return 0;
}

/*
 * The same as pacer_throttle_bare_of beside writers; 0 also if every look was disturbed. It looks
 * again instead of locking at once: a CPU that locks and is refused disturbs the next one's look,
 * and so on.
 */
PACER_INLINE int pacer_throttle_exhausted_of(const struct pacer_throttle_profile *profile,
					     __u32 limit, const struct pacer_throttle_state *state,
					     __u64 now_ns, __u32 n)
{
	int result = pacer_throttle_look(profile, limit, state, now_ns, n);

	if (result >= 0)
		return result;
	return pacer_throttle_look_again(profile, state, now_ns, (__u64)limit << 32 | n) > 0;
}

PACER_INLINE int pacer_throttle_exhausted(const struct pacer_throttle_profile *profile,
					  const struct pacer_throttle_state *state, __u64 now_ns,
					  __u32 n)
{
	return pacer_throttle_exhausted_of(profile, profile->limit, state, now_ns, n);
}

/*
 * Adds n uses to bucket `number`; a negative n hands uses back. Only for the state's holder, as is
 * all that follows up to pacer_throttle_grant.
 */
PACER_INLINE void pacer_throttle_count(struct pacer_throttle_state *state, __u64 number, __u32 n)
{
	__u32 *count = &state->bucket[pacer_throttle_ring_index(number)].count;
	__u32 *block = &state->block[pacer_throttle_block(number)];

	pacer_store(count, pacer_load(count) + n);
	pacer_store(block, pacer_load(block) + n);
	pacer_store(&state->held, pacer_load(&state->held) + n);
}

/*
 * Takes back every bucket that has cooled down, first whole blocks, then buckets. Returns how many
 * uses are free then.
 */
PACER_INLINE __u32 pacer_throttle_release(const struct pacer_throttle_profile *profile,
					  struct pacer_throttle_state *state, __u64 now_ns)
{
	__u64 head, last;
	__u32 i, *block;

	for (i = 0; i < PACER_THROTTLE_BLOCKS; i++) {
		last = pacer_load64(&state->head) | (PACER_THROTTLE_BLOCK - 1);
		if (!pacer_throttle_cooled(profile, state, last, now_ns))
			break;
		block = &state->block[pacer_throttle_block(last)];
		pacer_store(&state->held, pacer_load(&state->held) - pacer_load(block));
		pacer_store(block, 0);
		pacer_store64(&state->head, last + 1);
	}
	for (i = 0; i < PACER_THROTTLE_BLOCK; i++) {
		head = pacer_load64(&state->head);
		if (!pacer_throttle_cooled(profile, state, head, now_ns))
			break;
		pacer_throttle_count(
		    state, head,
		    -pacer_load(&state->bucket[pacer_throttle_ring_index(head)].count));
		pacer_store64(&state->head, head + 1);
	}
	pacer_store64(&state->seen_ns, now_ns);
	return pacer_throttle_room(profile->limit, pacer_load(&state->held));
}

/* Opens a new bucket if the newest takes no more uses. Returns how many it takes. */
PACER_INLINE __u32 pacer_throttle_open(const struct pacer_throttle_profile *profile,
				       struct pacer_throttle_state *state, __u64 now_ns)
{
	__u64 tail = pacer_load64(&state->tail);
	struct pacer_throttle_bucket *newest = &state->bucket[pacer_throttle_ring_index(tail - 1)];
	struct pacer_throttle_bucket *bucket = &state->bucket[pacer_throttle_ring_index(tail)];
	__u32 count = pacer_load(&newest->count);
	__u64 there = tail - pacer_load64(&state->head);

	if (there && count < profile->threshold && now_ns <= pacer_load64(&newest->close_ns))
		return profile->threshold - count;
	if (there >= PACER_THROTTLE_BUCKETS)
		return ~0u; /* only after a change of policy: uses share a bucket */
	pacer_store64(&bucket->close_ns, pacer_throttle_sum(now_ns, profile->open_ns));
	pacer_store64(&bucket->until_ns, there ? pacer_load64(&newest->until_ns) : 0);
	pacer_store(&bucket->count, 0);
	pacer_store64(&state->tail, tail + 1);
	return profile->threshold;
}

/* Counts n uses in the newest bucket. They are made at until_ns at the latest. */
PACER_INLINE void pacer_throttle_put(struct pacer_throttle_state *state, __u64 until_ns, __u32 n)
{
	__u64 number = pacer_load64(&state->tail) - 1;
	__u64 *until = &state->bucket[pacer_throttle_ring_index(number)].until_ns;

	pacer_store64(until, pacer_later(pacer_load64(until), until_ns));
	pacer_throttle_count(state, number, n);
}

/*
 * Makes n uses now, at most threshold. The caller has checked that they are free. Returns the
 * number of the first.
 */
PACER_INLINE __u32 pacer_throttle_make(const struct pacer_throttle_profile *profile,
				       struct pacer_throttle_state *state, __u64 now_ns, __u32 n)
{
	__u32 room = pacer_throttle_open(profile, state, now_ns);
	__u32 number = pacer_load(&state->next);
	__u32 to_end;

	pacer_throttle_put(state, now_ns, n < room ? n : room);
	if (n > room) {
		(void)pacer_throttle_open(profile, state, now_ns);
		pacer_throttle_put(state, now_ns, n - room);
	}
	if (number >= profile->limit) /* the limit was lowered */
		number = 0;
	to_end = profile->limit - number;
	pacer_store(&state->next, n < to_end ? number + n : n - to_end);
	return number;
}

/* Hands back what is left of a lease. */
PACER_INLINE void pacer_throttle_book(struct pacer_throttle_state *state,
				      struct pacer_throttle_lease *lease)
{
	__u64 head = pacer_load64(&state->head);
	__u64 tail = pacer_load64(&state->tail);

	if (PACER_FAULT(LEASE_FORFEIT))
		lease->left = 0;
	if (PACER_FAULT(LEASE_TO_NEWEST))
		lease->bucket = tail - 1;
	if (PACER_FAULT(LEASE_TO_BUCKET_GONE))
		head = lease->bucket;
	if (lease->left && lease->bucket - head < tail - head)
		pacer_throttle_count(state, lease->bucket, -lease->left);
	if (!PACER_FAULT(LEASE_TWICE))
		lease->left = 0;
}

/*
 * After n uses: leases the rest of profile->lease, as far as the newest bucket and `room` have it.
 */
PACER_INLINE void pacer_throttle_grant(const struct pacer_throttle_profile *profile,
				       struct pacer_throttle_state *state,
				       struct pacer_throttle_lease *lease, __u64 now_ns, __u32 n,
				       __u32 room)
{
	__u64 number = pacer_load64(&state->tail) - 1;
	struct pacer_throttle_bucket *bucket = &state->bucket[pacer_throttle_ring_index(number)];
	__u32 count = pacer_load(&bucket->count);
	__u64 until_ns = pacer_throttle_sum(now_ns, profile->lease_ns);
	__u64 close_ns = pacer_load64(&bucket->close_ns);
	__u32 left = n < profile->lease ? profile->lease - n : 0;

	if (count >= profile->threshold || now_ns > close_ns)
		return;
	if (left > profile->threshold - count)
		left = profile->threshold - count;
	if (left > room)
		left = room;
	if (!left)
		return;
	if (until_ns > close_ns)
		until_ns = close_ns;
	pacer_throttle_put(state, PACER_FAULT(BUCKET_COOLS_EARLY) ? now_ns : until_ns, left);
	lease->left = left;
	lease->until_ns = until_ns;
	lease->bucket = number;
}

/*
 * pacer_throttle_take_of if it has to change the shared state. `uses` is n, and the limit from bit
 * 32 on: functions in the kernel have five arguments.
 */
PACER_GLOBAL PACER_MUST_USE int
pacer_throttle_refill_of(const struct pacer_throttle_profile *profile,
			 struct pacer_throttle_state *state, struct pacer_throttle_lease *lease,
			 __u64 now_ns, __u64 uses)
{
	enum pacer_throttle_result result = PACER_THROTTLE_FULL;
	__u32 lock = 0, room, n = (__u32)uses;

	if (!profile || !state || !lease)
		return PACER_THROTTLE_BUSY;
	if (pacer_lock_take(&state->lock, PACER_LOCK_ANY, &lock) != PACER_LOCK_TAKEN)
		return PACER_THROTTLE_BUSY;
	now_ns = pacer_later(now_ns, pacer_load64(&state->seen_ns));
	lease->seen_ns = now_ns;
	pacer_throttle_book(state, lease);
	(void)pacer_throttle_release(profile, state, now_ns);
	room = pacer_throttle_room(uses >> 32, pacer_load(&state->held));
	if (PACER_FAULT(THROTTLE_JUDGED_ONCE))
		room = n;
	if (n <= room) {
		lease->number = pacer_throttle_make(profile, state, now_ns, n);
		lease->bucket = pacer_load64(&state->tail) - 1;
		lease->until_ns = now_ns;
		if (PACER_FAULT(THROTTLE_LET_GO_EARLY))
			pacer_lock_release(&state->lock, lock);
		pacer_throttle_grant(profile, state, lease, now_ns, n, room - n);
		result = PACER_THROTTLE_ADMIT;
	}
	if (!PACER_FAULT(THROTTLE_LET_GO_EARLY) || result != PACER_THROTTLE_ADMIT)
		pacer_lock_release(&state->lock, lock);
	return result;
}

PACER_INLINE PACER_MUST_USE enum pacer_throttle_result
pacer_throttle_refill(const struct pacer_throttle_profile *profile,
		      struct pacer_throttle_state *state, struct pacer_throttle_lease *lease,
		      __u64 now_ns, __u32 n)
{
	return pacer_throttle_refill_of(profile, state, lease, now_ns,
					(__u64)profile->limit << 32 | n);
}

/*
 * Would pacer_throttle_take refuse one use? Read only. A refusal is right at the moment of the
 * look; 0 is provisional.
 */
PACER_INLINE int pacer_throttle_refuses_of(const struct pacer_throttle_profile *profile,
					   __u32 limit, const struct pacer_throttle_state *state,
					   const struct pacer_throttle_lease *lease, __u64 now_ns)
{
	now_ns = pacer_later(now_ns, lease->seen_ns);
	if (lease->left) /* usable, or to be handed back first */
		return 0;
	return pacer_throttle_exhausted_of(profile, limit, state, now_ns, 1);
}

PACER_INLINE int pacer_throttle_refuses(const struct pacer_throttle_profile *profile,
					const struct pacer_throttle_state *state,
					const struct pacer_throttle_lease *lease, __u64 now_ns)
{
	return pacer_throttle_refuses_of(profile, profile->limit, state, lease, now_ns);
}

/* Makes n uses, at most threshold, all or none. For one of several CPUs. */
PACER_INLINE PACER_MUST_USE enum pacer_throttle_result
pacer_throttle_take_of(const struct pacer_throttle_profile *profile, __u32 limit,
		       struct pacer_throttle_state *state, struct pacer_throttle_lease *lease,
		       __u64 now_ns, __u32 n)
{
	int live;

	now_ns = pacer_later(now_ns, lease->seen_ns);
	lease->seen_ns = now_ns;
	live = now_ns <= lease->until_ns || PACER_FAULT(LEASE_NO_END);
	if (!n)
		return PACER_THROTTLE_ADMIT;
	if (live && n <= lease->left) {
		lease->left -= n;
		return PACER_THROTTLE_ADMIT;
	}
	if (n > profile->threshold)
		return PACER_THROTTLE_MANY;
	if ((live || !lease->left) &&
	    pacer_throttle_exhausted_of(profile, limit, state, now_ns, n - lease->left))
		return PACER_THROTTLE_FULL;
	return pacer_throttle_refill_of(profile, state, lease, now_ns, (__u64)limit << 32 | n);
}

PACER_INLINE PACER_MUST_USE enum pacer_throttle_result
pacer_throttle_take(const struct pacer_throttle_profile *profile,
		    struct pacer_throttle_state *state, struct pacer_throttle_lease *lease,
		    __u64 now_ns, __u32 n)
{
	return pacer_throttle_take_of(profile, profile->limit, state, lease, now_ns, n);
}

/*
 * Takes back the one use that pacer_throttle_take has just made for this CPU, at the same reading
 * of the clock. The use goes back to its lease, or without one to its bucket. If the bucket cannot
 * be locked, the CPU holds one use more than the bounds above allow for, until it comes again. If
 * another CPU opened a bucket since, an empty bucket may stay behind, which the bound on buckets
 * does not count. With thresholds of a few uses, and many uses undone within a cooldown, uses may
 * then share the newest bucket and come back later. The number of a use is not taken back.
 */
PACER_SUBPROG void pacer_throttle_undo(const struct pacer_throttle_profile *profile,
				       struct pacer_throttle_state *state,
				       struct pacer_throttle_lease *lease)
{
	__u32 lock = 0;

	if (PACER_FAULT(UNDO_FORGETS))
		return;
	lease->left++;
	if (PACER_FAULT(UNDO_UNLOCKED))
		pacer_throttle_book(state, lease);
	if (lease->left < profile->lease ||
	    pacer_lock_take(&state->lock, PACER_LOCK_ANY, &lock) != PACER_LOCK_TAKEN)
		return;
	pacer_throttle_book(state, lease);
	pacer_lock_release(&state->lock, lock);
}

/*
 * Makes n uses, at most threshold, all or none. For the only caller. If not one is free it writes
 * nothing. It does not note the time then, which is harmless: no use can be made before a later
 * one.
 */
PACER_INLINE PACER_MUST_USE enum pacer_throttle_result
pacer_throttle_use(const struct pacer_throttle_profile *profile, struct pacer_throttle_state *state,
		   __u64 now_ns, __u32 n)
{
	if (!n)
		return PACER_THROTTLE_ADMIT;
	if (n > profile->threshold)
		return PACER_THROTTLE_MANY;
	now_ns = pacer_later(now_ns, pacer_load64(&state->seen_ns));
	if (pacer_throttle_bare(profile, state, now_ns, 1))
		return PACER_THROTTLE_FULL;
	if (pacer_throttle_release(profile, state, now_ns) < n)
		return PACER_THROTTLE_FULL;
	(void)pacer_throttle_make(profile, state, now_ns, n);
	return PACER_THROTTLE_ADMIT;
}

/* The uses that can be made at now_ns, without those on lease. */
PACER_INLINE __u32 pacer_throttle_free(const struct pacer_throttle_profile *profile,
				       const struct pacer_throttle_state *state, __u64 now_ns)
{
	__u64 head = pacer_load64(&state->head);
	__u32 held = pacer_load(&state->held);
	__u32 back = 0, i;

	now_ns = pacer_later(now_ns, pacer_load64(&state->seen_ns));
	for (i = 0; i < PACER_THROTTLE_BLOCKS; i++) {
		__u64 last = head | (PACER_THROTTLE_BLOCK - 1);

		if (!pacer_throttle_cooled(profile, state, last, now_ns))
			break;
		back += pacer_load(&state->block[pacer_throttle_block(last)]);
		head = last + 1;
	}
	for (i = 0; i < PACER_THROTTLE_BLOCK; i++, head++) {
		if (!pacer_throttle_cooled(profile, state, head, now_ns))
			break;
		back += pacer_load(&state->bucket[pacer_throttle_ring_index(head)].count);
	}
	return pacer_throttle_room(profile->limit, back < held ? held - back : 0);
}

/*
 * The earliest time from now_ns on at which the lease's CPU has a use if nothing else comes: exact
 * but for what other CPUs hold on lease, which they may hand back before. What is left of its own
 * lease it uses until that ends, and hands back from then on. 0: at any time. PACER_NEVER: never.
 * Not for the packet path: it looks at every bucket.
 */
PACER_INLINE __u64 pacer_throttle_when_of(const struct pacer_throttle_profile *profile, __u32 limit,
					  const struct pacer_throttle_state *state,
					  const struct pacer_throttle_lease *lease, __u64 now_ns)
{
	__u64 number = pacer_load64(&state->head), tail = pacer_load64(&state->tail), when_ns = 0;
	__u64 span_ns = profile->cooldown_ns ? profile->cooldown_ns : 1;
	__u32 held = pacer_load(&state->held), back = lease->left;

	if (!limit)
		return PACER_NEVER;
	if (back && now_ns <= lease->until_ns)
		return 0;
	if (lease->bucket - number >= tail - number) /* that bucket is gone */
		back = 0;
	for (held -= back; held >= limit && number < tail; number++) {
		const struct pacer_throttle_bucket *bucket =
		    &state->bucket[pacer_throttle_ring_index(number)];

		when_ns = pacer_later(when_ns,
				      pacer_throttle_sum(pacer_load64(&bucket->until_ns), span_ns));
		held -= pacer_load(&bucket->count) - (number == lease->bucket ? back : 0);
	}
	return when_ns;
}

/* The same of a caller without a lease. */
PACER_INLINE __u64 pacer_throttle_when(const struct pacer_throttle_profile *profile,
				       const struct pacer_throttle_state *state)
{
	const struct pacer_throttle_lease none = {0};

	return pacer_throttle_when_of(profile, profile->limit, state, &none, 0);
}

#endif
