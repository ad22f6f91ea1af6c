/* SPDX-License-Identifier: GPL-2.0-only */
#include "brief.h"

#include "short.h"

static struct pacer_ask ask(struct pacer_walk *w)
{
	const struct pacer_limiter *t = &w->state->policy->rule[0].limiter[0];

	return pacer_walk_ask(w, t, pacer_limiter_hash(t, &w->pkt, w->state->secret));
}

/* What pacer_short_arm makes of the limit, as far as a refusal asks. */
static struct pacer_short brief_of(const struct pacer_limiter *t)
{
	return (struct pacer_short){
	    .key = pacer_closed_of(t),
	    .slot_ns = t->window.slot_ns,
	    .gap_ns = t->gap_ns,
	    .last_shift = t->last_shift,
	    .rows = t->rows,
	};
}

static struct pacer_line *line_of(const struct pacer_ask *q, __u32 index)
{
	return &q->table->lines[index / PACER_LINE_UNITS];
}

static __u32 finish(struct pacer_walk *w, __u32 outcome)
{
	return outcome == PACER_UNDECIDED ? pacer_limit_finish_one(w) : outcome;
}

__u32 brief_sketch(struct pacer_walk *w)
{
	struct pacer_ask q = ask(w);
	struct pacer_short s = brief_of(q.limiter);
	struct pacer_line *line = line_of(&q, pacer_sketch_index(q.limiter, q.hash));

	if (pacer_short_sketch_closed(&s, line, q.hash.mark, q.now_ns) != PACER_ADMIT)
		return PACER_DENY_GAP;
	return finish(w, pacer_short_own_sketch(q.limiter, line, q.now_ns, q.hash.mark));
}

__u32 fault_brief_unjudged(struct pacer_walk *w)
{
	struct pacer_ask q = ask(w);
	struct pacer_short s = brief_of(q.limiter);
	struct pacer_line *line = line_of(&q, pacer_sketch_index(q.limiter, q.hash));
	__u32 word;

	if (pacer_short_sketch_closed(&s, line, q.hash.mark, q.now_ns) != PACER_ADMIT)
		return PACER_DENY_GAP;
	if (pacer_lock_take(&line->lock, PACER_LOCK_ANY, &word) != PACER_LOCK_TAKEN)
		return PACER_DENY_CONTENDED;
	pacer_recency_raise(line, q.hash.mark, q.limiter->rows, q.now_ns);
	pacer_lock_release(&line->lock, word);
	return PACER_ADMIT;
}

static enum pacer_reason record_closed(const struct pacer_ask *q, struct pacer_entry *first)
{
	struct pacer_brief b = {.now_ns = q->now_ns, .len_bytes = q->len_bytes};
	struct pacer_short s = brief_of(q->limiter);
	__u64 key = s.key | pacer_tag(q->hash) << 16;

	if (q->kind == PACER_LIMITER_RATE)
		return pacer_short_rate_closed(q->limiter, first, key, &b);
	return pacer_short_record_closed(&s, q->limiter->gap_ns != 0, pacer_ask_narrow(q), first,
					 key, q->now_ns);
}

__u32 brief_record(struct pacer_walk *w)
{
	struct pacer_ask q = ask(w);
	__u32 index = pacer_set_index(q.limiter, q.hash), tag = pacer_tag(q.hash), outcome;
	struct pacer_entry *first = &line_of(&q, index)->unit[index & (PACER_LINE_UNITS - 1)].entry;
	enum pacer_reason reason = record_closed(&q, first);

	if (reason != PACER_ADMIT)
		return reason;
	if (q.kind == PACER_LIMITER_RATE)
		outcome = pacer_short_own_rate(q.limiter, first, q.now_ns, q.len_bytes, tag);
	else if (pacer_ask_narrow(&q))
		outcome = pacer_short_own_narrow(q.limiter, first, q.now_ns, q.len_bytes, tag);
	else
		outcome = pacer_short_own_wide(q.limiter, first, q.now_ns, q.len_bytes, tag);
	return finish(w, outcome == PACER_ELSEWHERE ? pacer_entry_pass(&q) : outcome);
}
