/* SPDX-License-Identifier: GPL-2.0-only */
#include "faults.h"

static __u32 because(enum pacer_reason reason, uint32_t limiter)
{
	return pacer_outcome_under(pacer_outcome(reason, limiter), 0);
}

/* The question to the rule's limit i. */
static struct pacer_ask ask(struct pacer_walk *w, uint32_t i)
{
	const struct pacer_limiter *t = &w->state->policy->rule[0].limiter[i];

	return pacer_ask_of(&w->state->table, t, w->now_ns,
			    pacer_limiter_hash(t, &w->pkt, w->state->secret), w->pkt.len_bytes);
}

__u32 fault_cas_oldest(struct pacer_walk *w)
{
	struct pacer_ask q = ask(w, 0);
	struct pacer_line *line = &q.table->lines[pacer_sketch_index(q.limiter, q.hash)];
	__u64 *older = (__u64 *)&line->cell[pacer_recency_cell(q.hash.mark, 0)];
	__u64 *newer = (__u64 *)&line->cell[pacer_recency_cell(q.hash.mark, 1)];
	__u64 old_ns = pacer_load64(older), new_ns = pacer_load64(newer);

	if (new_ns < old_ns) {
		__u64 *cell = older;
		__u64 ns = old_ns;

		older = newer;
		old_ns = new_ns;
		newer = cell;
		new_ns = ns;
	}
	if (!pacer_gap_open(old_ns, q.now_ns, q.limiter->gap_ns))
		return because(PACER_DENY_GAP, 0);
	if (pacer_cas64(older, old_ns, q.now_ns) != old_ns)
		return because(PACER_DENY_CONTENDED, 0);
	while (new_ns < q.now_ns) {
		__u64 seen = pacer_cas64(newer, new_ns, q.now_ns);

		if (seen == new_ns)
			break;
		new_ns = seen;
	}
	return because(PACER_ADMIT, 0);
}

/* Judge what is at hold, and count it there. */
static enum pacer_reason judge_and_commit(const struct pacer_ask *q, const struct pacer_hold *hold)
{
	enum pacer_reason reason;
	struct pacer_seen seen;
	struct pacer_ring r;

	if (!pacer_ring_at(q->table, q->limiter, hold->index, &r))
		return PACER_DENY_NO_STATE;
	reason = pacer_entry_judge(q, &r, hold->word, &seen);
	if (reason == PACER_ADMIT)
		pacer_entry_commit(q, hold);
	return reason;
}

__u32 fault_no_lock(struct pacer_walk *w)
{
	struct pacer_ask q = ask(w, 0);
	struct pacer_hold hold = {0};

	hold.index = q.limiter->kind == PACER_LIMITER_GAP ? pacer_sketch_index(q.limiter, q.hash)
							  : pacer_shared_index(q.limiter, q.hash);
	hold.word = pacer_load(&pacer_entry_at(q.table, hold.index)->lock);
	return because(judge_and_commit(&q, &hold), 0);
}

/* As pacer_entry_reserve and pacer_entry_commit of records, once the record is locked. */
static __u32 taken(const struct pacer_ask *q, const struct pacer_hold *hold,
		   enum pacer_lock_result result)
{
	enum pacer_reason reason;

	if (result != PACER_LOCK_TAKEN)
		return because(
		    result == PACER_LOCK_BUSY ? PACER_DENY_CONTENDED : PACER_DENY_NO_STATE, 0);
	reason = judge_and_commit(q, hold);
	if (reason != PACER_ADMIT)
		pacer_entry_cancel(q, hold);
	return because(reason, 0);
}

/* pacer_record_enter, which gives up the first record before it goes further. */
static enum pacer_lock_result enter_unlocked(const struct pacer_ask *q, struct pacer_hold *hold)
{
	const struct pacer_limiter *t = q->limiter;
	__u32 index = pacer_set_index(t, q->hash), tag = pacer_tag(q->hash), word;
	struct pacer_entry *first = pacer_entry_at(q->table, index);
	struct pacer_entry *second = pacer_entry_at(q->table, index + pacer_stride(t));
	enum pacer_lock_result result;

	result = pacer_lock_take(&first->lock, PACER_LOCK_ANY, &word);
	if (result != PACER_LOCK_TAKEN)
		return result;
	*hold = (struct pacer_hold){index, {word}, q->hash.mark};
	if (pacer_lock_tag(word) == tag)
		return PACER_LOCK_TAKEN;
	hold->index = index + pacer_stride(t);
	result = pacer_lock_take(&second->lock, tag, &hold->word);
	if (result == PACER_LOCK_OTHER && pacer_record_idle(t, first, q->now_ns)) {
		*hold = (struct pacer_hold){index, {word}, q->hash.mark};
		return pacer_record_adopt(q, first, hold);
	}
	pacer_lock_cancel(&first->lock, word); /* the fault: not yet */
	if (result == PACER_LOCK_OTHER)
		result = pacer_second_adopt(q, second, hold);
	if (result == PACER_LOCK_OTHER)
		result = pacer_shared_take(q, hold);
	return result;
}

__u32 fault_inherit_unlocked(struct pacer_walk *w)
{
	struct pacer_ask q = ask(w, 0);
	struct pacer_hold hold = {0};

	enum pacer_lock_result result = enter_unlocked(&q, &hold);

	return taken(&q, &hold, result);
}

/* The set's first record if it is idle, begun anew; else as it should be. */
static enum pacer_lock_result enter_afresh(const struct pacer_ask *q, struct pacer_hold *hold)
{
	__u32 index = pacer_set_index(q->limiter, q->hash), word;
	struct pacer_entry *first = pacer_entry_at(q->table, index);
	enum pacer_lock_result result;
	struct pacer_found found;

	result = pacer_lock_take(&first->lock, PACER_LOCK_ANY, &word);
	if (result != PACER_LOCK_TAKEN)
		return result;
	if (!pacer_record_idle(q->limiter, first, q->now_ns)) {
		pacer_lock_cancel(&first->lock, word);
		pacer_record_locate(q, &found);
		hold->index = found.ring.index;
		return pacer_record_take(q, hold);
	}
	*hold =
	    (struct pacer_hold){index, {pacer_lock_set(word, pacer_tag(q->hash), 0)}, q->hash.mark};
	pacer_store64(&first->head_ns, 0);
	pacer_store(&first->last, 0);
	return PACER_LOCK_TAKEN;
}

__u32 fault_inherit_nothing(struct pacer_walk *w)
{
	struct pacer_ask q = ask(w, 0);
	struct pacer_hold hold = {0};

	enum pacer_lock_result result = enter_afresh(&q, &hold);

	return taken(&q, &hold, result);
}

/* Whichever record is idle and free is adopted, by what was seen of the set before. */
static enum pacer_lock_result enter_unseen(const struct pacer_ask *q, struct pacer_hold *hold)
{
	__u32 first = pacer_set_index(q->limiter, q->hash), tag = pacer_tag(q->hash), i;
	struct pacer_entry *head;

	for (i = 0; i < 2; i++) {
		hold->index = first + i * pacer_stride(q->limiter);
		head = pacer_entry_at(q->table, hold->index);
		if (pacer_lock_tag(pacer_load(&head->lock)) == tag)
			return pacer_lock_take(&head->lock, tag, &hold->word);
	}
	for (i = 0; i < 2; i++) {
		hold->index = first + i * pacer_stride(q->limiter);
		head = pacer_entry_at(q->table, hold->index);
		if (pacer_second_adopt(q, head, hold) == PACER_LOCK_TAKEN)
			return PACER_LOCK_TAKEN;
	}
	return pacer_shared_take(q, hold);
}

__u32 fault_adopt_unseen(struct pacer_walk *w)
{
	struct pacer_ask q = ask(w, 0);
	struct pacer_hold hold = {0};

	enum pacer_lock_result result = enter_unseen(&q, &hold);

	return taken(&q, &hold, result);
}

__u32 fault_release_early(struct pacer_walk *w)
{
	struct pacer_ask q = ask(w, 0);
	struct pacer_hold hold = {0};
	enum pacer_reason reason = pacer_entry_reserve(&q, &hold);
	struct pacer_seen seen = {0};
	struct pacer_ring r;

	if (reason != PACER_ADMIT || !pacer_ring_at(q.table, q.limiter, hold.index, &r))
		return because(reason, 0);
	if (q.limiter->kind != PACER_LIMITER_GAP)
		(void)pacer_entry_judge(&q, &r, hold.word, &seen);
	pacer_lock_release(&r.head->lock, hold.word);
	if (q.limiter->kind == PACER_LIMITER_GAP)
		pacer_recency_raise(r.line, q.hash.mark, q.limiter->rows, q.now_ns);
	else
		hold.word = pacer_entry_admit(&q, &r, &seen, hold.word);
	return because(PACER_ADMIT, 0);
}

__u32 fault_torn_denial(struct pacer_walk *w)
{
	struct pacer_ask q = ask(w, 0);
	enum pacer_reason reason;
	struct pacer_seen seen;
	struct pacer_ring r;

	if (!pacer_ring_at(q.table, q.limiter, pacer_shared_index(q.limiter, q.hash), &r))
		return because(PACER_DENY_NO_STATE, 0);
	reason = pacer_record_judge(&q, &r, pacer_load(&r.head->lock), &seen);
	return reason == PACER_ADMIT ? judge_parsed(w) : because(reason, 0);
}

/* Both limits are taken; the first counts at once, or stays as it is when the second denies. */
static __u32 two_limiters(struct pacer_walk *w, bool at_once)
{
	struct pacer_ask q[2] = {ask(w, 0), ask(w, 1)};
	struct pacer_hold hold[2] = {0};
	enum pacer_reason reason;

	for (int i = 0; i < 2; i++) {
		reason = pacer_entry_check(&q[i], &hold[i]);
		if (reason != PACER_ADMIT)
			return because(reason, i);
	}
	reason = pacer_entry_reserve(&q[0], &hold[0]);

	if (reason != PACER_ADMIT)
		return because(reason, 0);
	if (at_once)
		pacer_entry_commit(&q[0], &hold[0]);
	reason = pacer_entry_reserve(&q[1], &hold[1]);
	if (reason != PACER_ADMIT)
		return because(reason, 1);
	if (!at_once)
		pacer_entry_commit(&q[0], &hold[0]);
	pacer_entry_commit(&q[1], &hold[1]);
	return because(PACER_ADMIT, 0);
}

__u32 fault_charge_early(struct pacer_walk *w)
{
	return two_limiters(w, true);
}

__u32 fault_left_held(struct pacer_walk *w)
{
	return two_limiters(w, false);
}

__u32 fault_frac_late(struct pacer_walk *w)
{
	struct pacer_ask q = ask(w, 0);
	const struct pacer_rate *rate = &q.limiter->rate;
	struct pacer_hold hold = {0};
	enum pacer_reason reason = pacer_entry_reserve(&q, &hold);
	struct pacer_fine next;
	struct pacer_ring r;

	if (reason != PACER_ADMIT || !pacer_ring_at(q.table, q.limiter, hold.index, &r))
		return because(reason, 0);
	next = pacer_rate_next(rate, pacer_rate_read(&r), q.now_ns,
			       pacer_rate_cost(rate, q.len_bytes));
	pacer_store64(&r.head->tat_ns, next.ns);
	pacer_lock_release(&r.head->lock, hold.word);
	pacer_store(&r.head->tat_frac, next.frac);
	return because(PACER_ADMIT, 0);
}

__u32 fault_same_unseen(struct pacer_walk *w)
{
	struct pacer_ask q = ask(w, 0);
	struct pacer_seen seen = {0};
	struct pacer_found f;
	__u32 outcome;

	pacer_record_locate(&q, &f);
	outcome = pacer_entry_read(&q, &f, &seen);
	if (outcome != PACER_ADMIT)
		return outcome == PACER_UNDECIDED ? judge_parsed(w)
						  : because(pacer_outcome_reason(outcome), 0);
	if (pacer_lock_take(&f.ring.head->lock, PACER_LOCK_ANY, &f.word) != PACER_LOCK_TAKEN)
		return because(PACER_DENY_CONTENDED, 0);
	pacer_lock_release(&f.ring.head->lock, pacer_entry_admit(&q, &f.ring, &seen, f.word));
	return because(PACER_ADMIT, 0);
}

__u32 fault_tat_kept(struct pacer_walk *w)
{
	struct pacer_ask q = ask(w, 0);
	const struct pacer_rate *rate = &q.limiter->rate;
	struct pacer_hold hold = {0};
	struct pacer_fine next;
	struct pacer_ring r;

	if (pacer_record_take(&q, &hold) != PACER_LOCK_TAKEN ||
	    !pacer_ring_at(q.table, q.limiter, hold.index, &r))
		return because(PACER_DENY_CONTENDED, 0);
	next = pacer_fine_sum(pacer_rate_read(&r), pacer_rate_time(rate, pacer_rate_cost(rate, 1)));
	if (next.ns > q.now_ns + rate->burst_ns) {
		pacer_lock_cancel(&r.head->lock, hold.word);
		return because(PACER_DENY_RATE, 0);
	}
	pacer_store64(&r.head->tat_ns, next.ns);
	pacer_lock_release(&r.head->lock, hold.word);
	return because(PACER_ADMIT, 0);
}

void fault_short_ring(struct pacer_rule *r)
{
	struct pacer_limiter *t = &r->limiter[0];

	t->window.ring--;
	t->window.ring_ns -= t->window.slot_ns;
	t->idle_ns -= t->window.slot_ns;
}
