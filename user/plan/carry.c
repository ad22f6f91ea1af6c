/* SPDX-License-Identifier: GPL-2.0-only */
#include "plan/carry.h"

#include "ban.h"
#include "plan/compile.h"
#include "plan/throttles.h"
#include "rate.h"
#include "record.h"
#include "throttle.h"

typedef __int128 i128;

struct shift {
	struct pacer_table table;
	int64_t by_ns;
};

static i128 moved(uint64_t t, int64_t by_ns)
{
	return (i128)t + by_ns;
}

uint64_t carry_time(uint64_t t, int64_t by_ns)
{
	i128 to = moved(t, by_ns);

	if (!t || t == UINT64_MAX)
		return t;
	return to < 1 ? 1 : to >= (i128)UINT64_MAX ? UINT64_MAX - 1 : (uint64_t)to;
}

/*
 * Of a time until which something is: 0 where it has passed before the clock begins, as what has no
 * end never does.
 */
static uint64_t carry_until(uint64_t t, int64_t by_ns)
{
	return moved(t, by_ns) < 1 ? 0 : carry_time(t, by_ns);
}

/* --- entries --------------------------------------------------------------------------------- */

/*
 * The current slot began before the new clock does: the ring advances up to the beginning. Slots
 * are whole, so what is left of them counts as up to a slot younger than it is.
 */
static void carry_record(const struct pacer_limiter *t, const struct pacer_ring *r, int64_t by_ns)
{
	const struct pacer_window *w = &t->window;
	uint64_t head_ns = r->head->head_ns, off_ns = pacer_record_last(t, 0, r->head->last);
	uint64_t unit = (1ull << t->last_shift) - 1, before_ns, passed, off;
	i128 head = moved(head_ns, by_ns), last = head + (i128)off_ns;
	uint32_t cursor = pacer_lock_cursor(r->head->lock);

	if (!head_ns)
		return;
	if (head >= 1) {
		r->head->head_ns = (uint64_t)head;
		return;
	}
	before_ns = (uint64_t)(1 - head);
	passed = before_ns / w->slot_ns;
	if (passed >= w->ring && (!t->gap_ns || last + (i128)t->gap_ns <= 1)) {
		r->head->head_ns = 0;
		r->head->last = 0;
		return;
	}
	passed = passed < w->ring ? passed : w->ring;
	cursor = pacer_window_advance(w, r, cursor, head_ns, pacer_ring_running(r),
				      (uint32_t)passed, head_ns + before_ns);
	r->head->lock = pacer_lock_set(r->head->lock, pacer_lock_tag(r->head->lock), cursor);
	r->head->head_ns = 1;
	off = last > 1 ? ((uint64_t)(last - 1) + unit) >> t->last_shift : 0;
	r->head->last = (uint32_t)(off < PACER_LAST_OFF_MAX ? off : PACER_LAST_OFF_MAX)
			<< PACER_LAST_OFF;
}

/* The latest that a rate's time is: its arithmetic is for times below 2^63 ns (rate.h). */
#define TAT_MAX (1ull << 62)

/* A theoretical arrival time that has passed leaves its key the whole burst, like none. */
static void carry_rate(struct pacer_entry *entry, int64_t by_ns)
{
	if (!entry->tat_ns)
		return;
	if (moved(entry->tat_ns, by_ns) < 1) {
		entry->tat_ns = 0;
		entry->tat_frac = 0;
	} else {
		entry->tat_ns = carry_time(entry->tat_ns, by_ns);
		if (entry->tat_ns > TAT_MAX)
			entry->tat_ns = TAT_MAX;
	}
}

static void carry_sketch(const struct pacer_limiter *t, struct pacer_line *line, int64_t by_ns)
{
	for (uint32_t i = 0; i < PACER_CELLS; i++) {
		uint64_t *cell = (uint64_t *)pacer_line_cell(line, i);

		if (!*cell)
			continue;
		if (moved(*cell, by_ns) + (i128)t->gap_ns <= 1)
			*cell = 0;
		else
			*cell = carry_time(*cell, by_ns);
	}
}

/*
 * What an entry's word says of its window was true of a generation of its limit. Which one the
 * limit gets next is not known here: so it says nothing, but when the key was last admitted.
 */
static void forget_full(struct pacer_entry *entry)
{
	uint32_t last = entry->last & ~((1u << PACER_LAST_OFF) - 1);

	if (entry->last != last)
		entry->last = last;
}

/* What nobody has used is not written to: in a copy it takes no memory, and no time to get some. */
static void carry_region(const struct pacer_limiter *t, void *arg)
{
	struct shift *s = arg;
	uint64_t n = 2ull * t->sets + t->shared;

	if (pacer_limiter_kind_of(t) == PACER_LIMITER_GAP) {
		for (uint64_t i = 0; i < t->sets; i++)
			carry_sketch(t, &s->table.lines[t->base + i], s->by_ns);
		return;
	}
	for (uint64_t i = 0; i < n; i++) {
		struct pacer_ring r;

		if (!pacer_ring_at(&s->table, t,
				   (uint32_t)(t->base * PACER_LINE_UNITS + i * t->units), &r))
			continue;
		if (pacer_limiter_kind_of(t) == PACER_LIMITER_RATE)
			carry_rate(r.head, s->by_ns);
		else
			carry_record(t, &r, s->by_ns);
		if (pacer_limiter_kind_of(t) == PACER_LIMITER_WINDOW)
			forget_full(r.head);
	}
}

void carry_each_region(const struct pacer_policy *p,
		       void (*each)(const struct pacer_limiter *t, void *arg), void *arg)
{
	const struct pacer_limiter *done[PACER_RULES_MAX * PACER_LIMITERS_MAX];
	size_t n = 0, i;

	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < p->rule[r].n_limiters && k < PACER_LIMITERS_MAX; k++) {
			const struct pacer_limiter *t = &p->rule[r].limiter[k];

			if (!compile_in_lines(t))
				continue;
			for (i = 0; i < n && done[i]->base != t->base; i++)
				;
			if (i < n)
				continue;
			done[n++] = t;
			each(t, arg);
		}
}

/* --- the rest -------------------------------------------------------------------------------- */

/* How long after the end of a ban its row goes on; 0: the rule's bans do not grow. */
static uint64_t forget_ns_of(const struct pacer_policy *p, uint32_t rule_id)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		if (p->rule[r].id == rule_id)
			return p->rule[r].ban_grow ? p->rule[r].ban_forget_ns : 0;
	return 0;
}

/* One that has ended tells how the key's row goes on: it ended when the clock began, if need be. */
static uint64_t carry_ban(const struct pacer_policy *p, const struct pacer_line *line,
			  int64_t by_ns, uint64_t now_ns)
{
	i128 end = moved(line->ban_until_ns, by_ns);

	if (end < 1 && end + forget_ns_of(p, line->ban_rule) <= (i128)now_ns)
		return 0;
	return carry_time(line->ban_until_ns, by_ns);
}

static void carry_bans(const struct pacer_policy *p, struct pacer_table *table, int64_t by_ns,
		       uint64_t now_ns)
{
	const struct pacer_bans *bans = &p->bans;
	struct pacer_line *lines = table->lines;
	__u64 *last_ns = pacer_ban_last(table, bans);

	if (!bans->sets)
		return;
	for (uint64_t i = 0; i < (uint64_t)bans->sets * PACER_BAN_WAYS; i++) {
		struct pacer_line *line = &lines[bans->base + i];

		if (line->ban_until_ns) /* else it stays a page that takes no memory */
			line->ban_until_ns = carry_ban(p, line, by_ns, now_ns);
	}
	for (uint64_t i = 0; i <= bans->filter_mask; i++)
		for (uint32_t k = 0; k <= PACER_CELLS; k++) {
			__u64 *cell = &lines[bans->filter + i].word64[k];

			if (*cell)
				*cell = carry_until(*cell, by_ns);
		}
	if (last_ns && *last_ns)
		*last_ns = carry_until(*last_ns, by_ns);
}

/*
 * profile NULL: of a target that left its pool. Where all that has cooled down before the new clock
 * begins is taken back first, only the rest cools from there.
 */
static void carry_throttle(struct pacer_throttle_state *state,
			   const struct pacer_throttle_profile *profile, int64_t by_ns)
{
	i128 beginning = 1 - (i128)by_ns;

	if (profile && beginning > 1)
		(void)pacer_throttle_release(profile, state,
					     pacer_later((uint64_t)beginning, state->seen_ns));
	state->seen_ns = carry_time(state->seen_ns, by_ns);
	for (size_t i = 0; i < PACER_THROTTLE_RING; i++) {
		struct pacer_throttle_bucket *bucket = &state->bucket[i];

		bucket->close_ns = carry_until(bucket->close_ns, by_ns);
		bucket->until_ns = carry_until(bucket->until_ns, by_ns);
	}
}

static const struct pacer_throttle_profile *profile_of(const struct pacer_policy *p, uint32_t state)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < p->rule[r].n_limiters && k < PACER_LIMITERS_MAX; k++) {
			const struct pacer_limiter *t = &p->rule[r].limiter[k];

			if (pacer_limiter_kind_of(t) == PACER_LIMITER_THROTTLE &&
			    t->base == state && !t->until_ns)
				return &t->throttle;
		}
	for (size_t i = 0; i < PACER_POOLS_MAX; i++)
		for (size_t k = 0; k < p->pool[i].n && k < PACER_TARGETS_MAX; k++)
			if (p->pool[i].state[k] == state)
				return &p->pool[i].throttle;
	return NULL;
}

static void carry_policy(struct pacer_policy *p, int64_t by_ns, uint64_t now_ns)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < p->rule[r].n_limiters && k < PACER_LIMITERS_MAX; k++) {
			struct pacer_limiter *t = &p->rule[r].limiter[k];

			t->until_ns = carry_time(t->until_ns, by_ns);
			if (pacer_limiter_kind_of(t) == PACER_LIMITER_THROTTLE)
				throttle_lease_over(t);
			if (pacer_limiter_kind_of(t) == PACER_LIMITER_RATE)
				compile_carry_rate(t, by_ns, now_ns);
		}
	for (size_t i = 0; i < PACER_THROTTLES; i++)
		p->draining[i].until_ns = carry_until(p->draining[i].until_ns, by_ns);
}

void carry(struct pacer_policy *p, struct pacer_line *lines, uint64_t n_lines,
	   struct pacer_throttle_state *throttle, int64_t by_ns, uint64_t now_ns)
{
	struct shift s = {{lines, (uint32_t)n_lines}, by_ns};

	carry_each_region(p, carry_region, &s);
	if (!by_ns)
		return;
	carry_bans(p, &s.table, by_ns, now_ns);
	for (uint32_t i = 0; i < PACER_THROTTLES; i++)
		carry_throttle(&throttle[i], profile_of(p, i), by_ns);
	carry_policy(p, by_ns, now_ns);
}
