/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the two copies of a pacer's policy: which is in force, for how long, and its text. Who
 * writes to a pacer holds the lock (a file in /run), so changes of several processes wait for each
 * other.
 */
#ifndef PACER_COPIES_H
#define PACER_COPIES_H

#include "live/attached.h"

/* The lock, to be closed; -1: with *error filled. */
int copies_lock(struct policy_error *error);
/* Could it be taken by the rights that it wants? 0, or -1 with *error filled. It does not wait. */
int copies_may_lock(struct policy_error *error);
/*
 * The same, of a pacer that is still there, or has another program by now over the same state
 * (attached_still): what was begun while that came is done to what is in force since. Not of one
 * that judges beside a second one, which a change would not reach.
 */
int copies_lock_of(struct attached *a, struct policy_error *error);
/* The same of one beside a second one, too: for what changes nothing of its policy. */
int copies_lock_still(struct attached *a, struct policy_error *error);
/*
 * That of saves, to be closed; -1: with *error filled. Those to one file come one at a time, from
 * what they take until the file has its name, so that the later stays, be it of another state: one
 * that followed by `shadow --promote` or `load`. Nothing else waits for it. It is taken before
 * copies_lock.
 */
int copies_lock_saves(const char *file, struct policy_error *error);
/*
 * For who only looks, and needs no right to write there: shared with others who do. COPIES_NO_LOCK:
 * there is no such file, and so nobody who holds it; -1: with *error filled.
 */
#define COPIES_NO_LOCK (-2)
int copies_lock_to_read(struct policy_error *error);
/* The file alone, without its lock, to be closed; COPIES_NO_LOCK; -1: it cannot be read. */
int copies_lock_look(void);
/*
 * Gives that back. False: there was none, and somebody has made one meanwhile, as who changes
 * something does first: what was read may be of two policies, and has to be read again.
 */
bool copies_were_still(int fd);

/* The copy in force now: 0 or 1. */
uint32_t copies_in_force(const struct attached *a);
/* The copy that was put in force last, on trial until until_ns; 0: it stays. */
uint32_t copies_put_last(const struct attached *a, uint64_t *until_ns);
/* Puts a copy in force; until_ns, if not 0, is when it gives way to the other. */
void copies_put_in_force(struct attached *a, uint32_t copy, uint64_t until_ns);
/*
 * The copies that a change by hand is made to: the one in force, and, while a policy is on trial,
 * first the one that it would give way to. Returns how many.
 */
uint32_t copies_to_change(const struct attached *a, uint32_t copy[2]);
/*
 * The one in force stays; in place of one that is frozen, by whoever died with the lock, the one
 * before it. Where one on trial has just given way, it waits until a tick is over since. -1: it is
 * on trial, and *error says so. The lock is held.
 */
int copies_settle(struct attached *a, struct policy_error *error);
/* Is what is in force frozen (freeze.h)? By who was killed since, if nobody else has the lock. */
bool copies_frozen(const struct attached *a);
/* Nanoseconds until an unconfirmed policy gives way; 0: nothing is pending. */
uint64_t copies_pending_ns(const struct attached *a);

/* The larger serial of both: each policy is to have one that no other had. */
uint64_t copies_last_serial(const struct attached *a);

/* Of the coarse clock that its policies are compiled for. */
uint64_t copies_resolution_ns(const struct attached *a);

/* The policy of a copy, parsed again: to be freed with policy_free. NULL: with *error filled. */
struct policy *copies_policy(const struct attached *a, uint32_t copy, struct policy_error *error);
/* As keymask_keep_values, of a policy that is to follow the one in force. */
void copies_keep_values(const struct attached *a, struct policy *policy);

#endif
