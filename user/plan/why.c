/* SPDX-License-Identifier: GPL-2.0-only */
#include "plan/why.h"

#include <stdio.h>
#include <string.h>

#include "config/units.h"

/* --- which of the policy's limits a limit is -------------------------------------------------- */

static bool same_key(const struct policy_key *a, const struct policy_key *b)
{
	return a->kind == b->kind &&
	       ((a->len4 == b->len4 && a->len6 == b->len6) || a->kind == KEY_ALL);
}

static bool kind_is(enum policy_limit_kind kind, const struct pacer_limiter *t)
{
	switch ((enum pacer_limiter_kind)t->kind) {
	case PACER_LIMITER_WINDOW:
		return kind == LIMIT_WINDOW;
	case PACER_LIMITER_RATE:
		return kind == LIMIT_RATE;
	case PACER_LIMITER_THROTTLE:
		return kind == LIMIT_THROTTLE;
	case PACER_LIMITER_GAP:
		return kind == LIMIT_GAP;
	case PACER_LIMITER_NONE:
		break;
	}
	return false;
}

/* The n-th limit of the kind and key, from 0; -1: there is none. */
static int nth_limit(const struct policy_rule *rule, const struct pacer_limiter *t,
		     const struct policy_key *by, int n)
{
	for (size_t i = 0; i < rule->n_limits; i++)
		if (kind_is(rule->limit[i].kind, t) && same_key(&rule->limit[i].key, by) && !n--)
			return (int)i;
	return -1;
}

/* Limits of one kind and key stand in the order of their limits. */
static int limit_of(const struct policy_rule *rule, const struct pacer_rule *bin, size_t k,
		    const struct policy_key *by)
{
	const struct pacer_limiter *t = &bin->limiter[k];
	int before = 0;

	if (t->until_ns)
		return -1;
	for (size_t i = 0; i < k; i++)
		before += bin->limiter[i].kind == t->kind && bin->limiter[i].key_id == t->key_id &&
			  !bin->limiter[i].until_ns &&
			  (t->kind != PACER_LIMITER_WINDOW || bin->limiter[i].window.limit);
	return nth_limit(rule, t, by, before);
}

/* Of a record with a gap beside its window. */
static int gap_of(const struct policy_rule *rule, const struct pacer_limiter *t,
		  const struct policy_key *by)
{
	if (t->kind != PACER_LIMITER_WINDOW || !t->gap_ns || t->until_ns)
		return -1;
	for (size_t i = 0; i < rule->n_limits; i++)
		if (rule->limit[i].kind == LIMIT_GAP && same_key(&rule->limit[i].key, by))
			return (int)i;
	return -1;
}

/* --- what a limit holds for the packet ---------------------------------------------------------
 */

static bool looks_own(const struct pacer_ask *q, uint32_t index)
{
	struct pacer_found f = {0};

	return pacer_record_look(q, index, &f) && pacer_lock_tag(f.word) == pacer_tag(q->hash);
}

static bool is_idle(const struct pacer_ask *q, uint32_t index)
{
	const struct pacer_entry *head = pacer_entry_at(q->table, index);

	return head && pacer_record_idle(q->limiter, head, q->now_ns);
}

static enum why_entry entry_of(const struct pacer_ask *q)
{
	const struct pacer_limiter *t = q->limiter;
	uint32_t first = pacer_set_index(t, q->hash), second = first + pacer_stride(t);

	if (!t->sets)
		return t->key_id ? WHY_SHARED : WHY_ONE;
	if (looks_own(q, first))
		return is_idle(q, first) ? WHY_NO_ENTRY : WHY_OWN;
	if (looks_own(q, second))
		return is_idle(q, second) ? WHY_NO_ENTRY : WHY_OWN;
	return is_idle(q, pacer_shared_index(t, q->hash)) &&
		       (is_idle(q, first) || is_idle(q, second))
		   ? WHY_NO_ENTRY
		   : WHY_SHARED;
}

static void fill_window(const struct pacer_ask *q, const struct pacer_found *f, struct why_limit *l)
{
	const struct pacer_limiter *t = q->limiter;
	const struct pacer_window *w = &t->window;
	uint64_t head_ns = pacer_load64(&f->ring.head->head_ns), last_ns = head_ns;
	uint32_t passed;

	if (head_ns && t->gap_ns) {
		last_ns = pacer_record_last(t, last_ns, pacer_load(&f->ring.head->last));
		l->last_ns = last_ns;
	}
	if (!pacer_ring_whole(t, &f->ring))
		return;
	passed = pacer_window_passed(w, head_ns, pacer_later(q->now_ns, last_ns));
	l->cost = w->cost;
	l->used = (uint64_t)pacer_window_since(w, &f->ring, pacer_ring_running(&f->ring),
					       pacer_lock_cursor(f->word), passed)
		  << w->cost_shift;
	l->max = (uint64_t)w->limit << w->cost_shift;
	l->asked = (uint64_t)pacer_window_cost(w, q->len_bytes) << w->cost_shift;
}

static unsigned __int128 fine(struct pacer_fine t)
{
	return (unsigned __int128)t.ns << 32 | t.frac;
}

static void fill_rate(const struct pacer_ask *q, const struct pacer_found *f, struct why_limit *l)
{
	const struct pacer_rate *r = &q->limiter->rate;
	unsigned __int128 burst = fine((struct pacer_fine){r->burst_ns, r->burst_frac});
	unsigned __int128 unit = fine((struct pacer_fine){r->unit_ns, r->unit_frac});
	unsigned __int128 tat = fine(pacer_rate_read(&f->ring));
	unsigned __int128 now = fine((struct pacer_fine){q->now_ns, 0});
	unsigned __int128 ahead = tat > now ? tat - now : 0;

	l->cost = r->cost;
	l->max = (uint64_t)(burst / unit);
	l->used = ahead < burst ? l->max - (uint64_t)((burst - ahead) / unit) : l->max;
	l->asked = pacer_rate_cost(r, q->len_bytes);
}

static void fill_throttle(const struct pacer_walk *w, const struct pacer_limiter *t,
			  struct why_limit *l)
{
	const struct pacer_throttle_state *state = PACER_THROTTLE_AT(w, t->base);
	const struct pacer_throttle_lease *lease = PACER_LEASE_AT(w, t->base);
	uint32_t left;

	if (w->now_ns <= lease->until_ns)
		l->leased = lease->left;
	left = pacer_throttle_free(&t->throttle, state, w->now_ns) + l->leased;
	l->cost = PACER_COST_PACKETS;
	l->max = t->throttle.limit;
	l->used = left < l->max ? l->max - left : 0;
	l->asked = 1;
	l->entry = WHY_ONE;
}

static void fill_state(const struct pacer_walk *w, const struct pacer_limiter *t,
		       struct why_limit *l)
{
	struct pacer_ask q =
	    pacer_walk_ask(w, t, pacer_limiter_hash(t, &w->pkt, PACER_SECRET_AT(w, t->secret)));
	struct pacer_line *line;
	struct pacer_found f = {0};

	switch ((enum pacer_limiter_kind)t->kind) {
	case PACER_LIMITER_GAP:
		l->entry = t->key_id ? WHY_CELLS : WHY_ONE;
		line = PACER_LINE_AT(q.table, pacer_sketch_index(t, q.hash) / PACER_LINE_UNITS);
		if (line)
			l->last_ns = pacer_recency_estimate(line, pacer_sketch_mark(&q), t->rows);
		break;
	case PACER_LIMITER_WINDOW:
	case PACER_LIMITER_RATE:
		pacer_record_locate(&q, &f);
		l->entry = entry_of(&q);
		if (f.ring.line && t->kind == PACER_LIMITER_WINDOW)
			fill_window(&q, &f, l);
		else if (f.ring.line)
			fill_rate(&q, &f, l);
		break;
	case PACER_LIMITER_THROTTLE:
		fill_throttle(w, t, l);
		break;
	case PACER_LIMITER_NONE:
		break;
	}
}

/* Until when the limit's key is banned under the rule, by this secret. As the packet path asks. */
static uint64_t ban_by(const struct pacer_walk *w, const struct pacer_limiter *t, uint32_t secret)
{
	struct pacer_ban_ask q = pacer_walk_ban_ask(w, t, secret);

	return pacer_ban_maybe(q.table, q.bans, q.hash, q.now_ns) ? pacer_ban_until(&q) : 0;
}

static uint64_t ban_of(const struct pacer_walk *w, const struct pacer_limiter *t)
{
	const struct pacer_policy *p = PACER_POLICY_OF(w);
	const struct pacer_rule *rule = PACER_RULE_OF(w);

	if (!t->key_id || !p->bans.sets || (!rule->ban_ns && !rule->outside))
		return 0;
	return pacer_later(ban_by(w, t, p->secret),
			   p->bans.moving ? ban_by(w, t, p->secret ^ 1) : 0);
}

static void fill_limit(const struct pacer_walk *w, const struct policy_rule *rule, size_t k,
		       struct why_limit *l)
{
	const struct pacer_rule *bin = PACER_RULE_OF(w);
	const struct pacer_limiter *t = &bin->limiter[k];

	*l = (struct why_limit){.kind = t->kind, .draining_ns = t->until_ns};
	l->by = compile_key_of(t->key_id);
	l->limit = limit_of(rule, bin, k, &l->by);
	l->gap = gap_of(rule, t, &l->by);
	if (l->limit < 0 && l->gap >= 0)
		l->limit = l->gap;
	tally_key_text(&l->by, &w->pkt, l->key, sizeof(l->key));
	l->banned_ns = ban_of(w, t);
	if (!pacer_limiter_asked(t, w->now_ns))
		return;
	fill_state(w, t, l);
	l->when_ns = pacer_limit_when(w, t);
	if (t->until_ns && l->when_ns > t->until_ns)
		l->when_ns = t->until_ns;
	if (l->leased)
		l->when_ns = 0;
}

/* --- what the rule's limits say now ---------------------------------------------------------- */

/* A throttle takes what it gives at once: so on a copy. Two limits may have one state. */
struct trial {
	uint32_t base;
	struct pacer_throttle_state state;
	struct pacer_throttle_lease lease;
};

static enum pacer_reason try_throttle(const struct pacer_walk *w, const struct pacer_limiter *t,
				      struct trial *trial, size_t *n)
{
	size_t i;

	for (i = 0; i < *n && trial[i].base != t->base; i++)
		;
	if (i == *n) {
		trial[(*n)++] = (struct trial){t->base, *PACER_THROTTLE_AT(w, t->base),
					       *PACER_LEASE_AT(w, t->base)};
		/* Another CPU may hold it, but will have let go. */
		trial[i].state.lock &= ~PACER_LOCK_HELD;
	}
	return pacer_throttle_reason(
	    pacer_throttle_take(&t->throttle, &trial[i].state, &trial[i].lease, w->now_ns, 1));
}

/* Asked, then locked, in the order of the limits: the first that denies is the one. */
static void judge(const struct pacer_walk *w, struct why *why)
{
	const struct pacer_rule *rule = PACER_RULE_OF(w);
	struct trial trial[PACER_LIMITERS_MAX];
	size_t n = 0;

	for (size_t k = 0; k < why->n; k++) {
		struct pacer_hold hold = {0};

		why->limit[k].reason = pacer_outcome_reason(pacer_walk_check(w, k, &hold));
		if (why->denied < 0 && why->limit[k].reason != PACER_ADMIT)
			why->denied = (int)k;
	}
	for (size_t k = 0; k < why->n; k++) {
		struct why_limit *l = &why->limit[k];

		if (l->kind == PACER_LIMITER_THROTTLE && l->reason == PACER_ADMIT &&
		    pacer_limiter_asked(&rule->limiter[k], w->now_ns))
			l->reason = try_throttle(w, &rule->limiter[k], trial, &n);
		if (why->denied < 0 && l->reason != PACER_ADMIT)
			why->denied = (int)k;
	}
	why->reason = why->denied < 0 ? PACER_ADMIT : why->limit[why->denied].reason;
}

/* --- all together ----------------------------------------------------------------------------- */

static uint64_t source_by(const struct pacer_walk *w, uint32_t secret, uint32_t len)
{
	struct pacer_ban_ask q = {PACER_TABLE_OF(w),
				  &PACER_POLICY_OF(w)->bans,
				  w->now_ns,
				  {0, 0},
				  pacer_ban_source(w->pkt.family, w->pkt.key, len),
				  0};

	q.hash = pacer_ban_hash(&q.key, PACER_SECRET_AT(w, secret));
	return pacer_ban_maybe(q.table, q.bans, q.hash, q.now_ns) ? pacer_ban_until(&q) : 0;
}

uint64_t why_source(const struct pacer_walk *w, uint8_t most, char *prefix, size_t size)
{
	const struct pacer_policy *p = PACER_POLICY_OF(w);
	bool four = w->pkt.family == PACER_FAMILY_4;
	uint64_t until_ns = 0;

	*prefix = 0;
	for (size_t i = 0; p->flags & PACER_SOURCES_BANNED && i < PACER_BAN_LENGTHS; i++) {
		uint8_t len = four ? p->bans.len4[i] : p->bans.len6[i];
		struct policy_key by = {KEY_SRC, len, len};
		uint64_t end_ns;

		if (!len || len > most || !p->bans.sets)
			continue;
		end_ns = pacer_later(source_by(w, p->secret, len),
				     p->bans.moving ? source_by(w, p->secret ^ 1, len) : 0);
		if (end_ns > until_ns) {
			until_ns = end_ns;
			tally_key_text(&by, &w->pkt, prefix, size);
		}
	}
	return until_ns;
}

static void begin(const struct pacer_walk *w, struct why *why)
{
	*why = (struct why){.reason = PACER_NO_RULE, .rule = PACER_RULES_MAX, .denied = -1};
	why->source_ns = why_source(w, 128, why->source, sizeof(why->source));
	why->when_ns = pacer_later(w->now_ns, why->source_ns);
}

void why_packet(const struct pacer_walk *w, const struct policy *policy, struct why *why)
{
	struct pacer_walk walk = *w;
	uint64_t when_ns;

	begin(w, why);
	when_ns = why->source_ns;
	walk.rule = pacer_walk_rule(&walk, PACER_POLICY_OF(&walk));
	why->rule = walk.rule;
	if (walk.rule < PACER_RULES_MAX) {
		why->n = PACER_RULE_OF(&walk)->n_limiters;
		for (size_t k = 0; k < why->n; k++)
			fill_limit(&walk, &policy->rule[walk.rule], k, &why->limit[k]);
		judge(&walk, why);
	}
	for (size_t k = 0; k < why->n; k++)
		when_ns = pacer_later(when_ns,
				      pacer_later(why->limit[k].when_ns, why->limit[k].banned_ns));
	for (size_t k = why->n; k-- > 0;)
		if (why->limit[k].banned_ns) {
			why->reason = PACER_DENY_BAN;
			why->denied = (int)k;
		}
	if (why->source_ns) {
		why->reason = PACER_DENY_BAN;
		why->denied = -1;
	}
	why->when_ns = pacer_verdict_of(why->reason) == PACER_VERDICT_DENY
			   ? pacer_later(when_ns, w->now_ns)
			   : w->now_ns;
}

void why_key(const struct pacer_walk *w, const struct policy *policy, const char *key,
	     struct why *why)
{
	const struct pacer_rule *rule = PACER_RULE_OF(w);
	struct pacer_walk walk = *w;

	*why = (struct why){.reason = PACER_ADMIT, .rule = w->rule, .denied = -1};
	for (size_t k = 0; k < rule->n_limiters; k++) {
		struct policy_key by = compile_key_of(rule->limiter[k].key_id);
		struct pacer_hold hold = {0};
		struct why_limit *l = &why->limit[why->n];

		if (tally_key_read(&by, key, &walk.pkt))
			continue;
		walk.pkt.len_bytes = w->pkt.len_bytes;
		fill_limit(&walk, &policy->rule[w->rule], k, l);
		l->reason = l->banned_ns ? PACER_DENY_BAN
					 : pacer_outcome_reason(pacer_walk_check(&walk, k, &hold));
		why->n++;
	}
}
