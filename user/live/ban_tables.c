/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/ban_mark.h"

#include "live/ban_tables.h"

#include <string.h>

#include "live/ban_notes.h"
#include "live/copies.h"
#include "live/host.h"
#include "live/trial.h"
#include "short.h"

void ban_tables_close(struct ban_tables *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		policy_free(t->policy[i]);
}

void ban_tables_free_held(const struct attached *a, const struct pacer_bans *bans)
{
	for (size_t i = 0; i < (size_t)bans->sets * PACER_BAN_WAYS; i++)
		pacer_ban_free(&a->lines[bans->base + i]);
}

int ban_tables_open(const struct attached *a, struct ban_tables *t, struct policy_error *error)
{
	struct policy_error why;
	uint32_t copy[2], n = copies_to_change(a, copy);

	*t = (struct ban_tables){.copy = {copy[n - 1], copy[0]}};
	if (load_trial_pending(a)) /* nothing that could ban was there before */
		n = 1;
	for (; t->n < n; t->n++) {
		t->policy[t->n] = copies_policy(a, t->copy[t->n], &why);
		if (!t->policy[t->n]) {
			ban_tables_close(t);
			return policy_fail(error, 0, "%s: no memory for its policy", a->ifname);
		}
		ban_tables_free_held(a, &a->copy[t->copy[t->n]].policy.bans);
	}
	return 0;
}

uint32_t ban_tables_owner(const struct attached *a, const struct ban_tables *t)
{
	return t->n > 1 && !a->copy[t->copy[0]].policy.bans.sets;
}

void ban_tables_empty(struct attached *a, const struct pacer_policy *p,
		      const struct pacer_ban_key *key, uint64_t latest_ns)
{
	for (uint32_t s = 0; s < 2; s++) {
		const __u64 *secret = a->control->secret[(p->secret + s) & 1];
		struct pacer_ban_places at =
		    pacer_ban_places(&p->bans, pacer_ban_hash(key, secret));

		for (uint32_t i = 0; i < at.n && (!s || p->bans.moving); i++)
			pacer_ban_empty(&a->lines[pacer_ban_place(&at, i)], key, latest_ns);
	}
}

uint64_t ban_tables_until(const struct attached *a, const struct pacer_policy *p,
			  const struct pacer_ban_key *key, uint64_t now_ns)
{
	struct pacer_table table = {a->lines, a->n_lines};
	struct pacer_ban_ask q = {&table, &p->bans, now_ns, {0, 0}, *key, 0};
	uint64_t until_ns = 0;

	for (uint32_t s = 0; s < 2 && p->bans.sets; s++) {
		q.hash = pacer_ban_hash(key, a->control->secret[(p->secret + s) & 1]);
		if (!s || p->bans.moving)
			until_ns = pacer_later(until_ns, pacer_ban_until(&q));
	}
	return until_ns;
}

/*
 * The entry's key moves over to its other set, if that has room. What stands before the table may
 * not tell of it by this secret yet: a rotation that was cut off has not come to it.
 */
static bool move_over(struct pacer_ban_ask *q, const __u64 secret[PACER_SECRETS], uint32_t index)
{
	struct pacer_line *from = PACER_LINE_AT(q->table, index), copy;
	struct pacer_ban_places at;

	if (!from || !ban_notes_read(from, q->now_ns, &copy))
		return false;
	q->key = (struct pacer_ban_key){copy.ban_rule, copy.ban_key_id, {0}};
	memcpy(q->key.word, copy.ban_key, sizeof(q->key.word));
	q->note = copy.ban_note;
	q->hash = pacer_ban_hash(&q->key, secret);
	at = pacer_ban_places(q->bans, q->hash);
	for (uint32_t i = 0; i < at.n; i++) {
		struct pacer_line *to = PACER_LINE_AT(q->table, pacer_ban_place(&at, i));

		if (to && !pacer_ban_runs(to, q->now_ns) && pacer_ban_raise(q, copy.ban_until_ns) &&
		    pacer_ban_enter(to, q, copy.ban_until_ns))
			return pacer_ban_lift(from, &q->key, q->now_ns);
	}
	return false;
}

/*
 * Both sets of the key are full: one of those that stand there may have room in its other set. A
 * packet may miss that one's ban if it looks just then. So in a table that is three quarters full
 * hardly a key finds no room.
 */
static bool make_room(const struct pacer_ban_ask *q, const __u64 secret[PACER_SECRETS])
{
	struct pacer_ban_places at = pacer_ban_places(q->bans, q->hash);
	struct pacer_ban_ask other = *q;

	for (uint32_t i = 0; i < at.n; i++)
		if (move_over(&other, secret, pacer_ban_place(&at, i)))
			return true;
	return false;
}

bool ban_tables_put(struct pacer_ban_ask *q, const __u64 secret[PACER_SECRETS], uint64_t until_ns)
{
	return pacer_ban_add(q, until_ns) == PACER_BANNED ||
	       (make_room(q, secret) && pacer_ban_add(q, until_ns) == PACER_BANNED);
}

static bool carry_ban(struct pacer_table *table, const struct pacer_bans *to,
		      const __u64 secret[PACER_SECRETS], const struct pacer_line *from,
		      uint64_t now_ns)
{
	struct pacer_ban_ask q = {
	    table, to, now_ns, {0, 0}, {from->ban_rule, from->ban_key_id, {0}}, from->ban_note};

	memcpy(q.key.word, from->ban_key, sizeof(q.key.word));
	q.hash = pacer_ban_hash(&q.key, secret);
	return to->sets && ban_tables_put(&q, secret, from->ban_until_ns);
}

static bool counts_by(const struct pacer_rule *rule, uint32_t key_id)
{
	for (size_t k = 0; k < rule->n_limiters; k++)
		if (rule->limiter[k].key_id == key_id)
			return true;
	return false;
}

/* Has the policy a limit by such keys under the ban's rule? What rests (resting.h) has no counter.
 */
static bool is_of(const struct pacer_policy *p, const struct pacer_line *ban)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		if (p->rule[r].counter && p->rule[r].id == ban->ban_rule &&
		    counts_by(&p->rule[r], ban->ban_key_id & ~PACER_KEY_V6))
			return true;
	return ban->ban_rule == PACER_BAN_SOURCE;
}

size_t ban_tables_carry(const struct pacer_line *from, size_t n, struct pacer_table *table,
			const struct pacer_policy *to, const __u64 secret[PACER_SECRETS],
			uint64_t now_ns, size_t *carried)
{
	size_t left_out = 0, done = 0;

	for (int others = 0; others < 2; others++)
		for (size_t i = 0; i < n; i++) {
			struct pacer_line copy;

			if (!ban_notes_read(&from[i], now_ns, &copy) || is_of(to, &copy) == others)
				continue;
			if (carry_ban(table, &to->bans, secret, &copy, now_ns))
				done++;
			else if (!others)
				left_out++;
		}
	if (carried)
		*carried = done;
	return left_out;
}

void ban_tables_note(struct attached *a, const struct ban_tables *t)
{
	for (uint32_t i = 0; i < t->n; i++) {
		struct pacer_policy *policy = &a->copy[t->copy[i]].policy;

		ban_notes_write(a->lines, policy, host_now_ns());
		pacer_short_reshape(policy, a->control, t->copy[i]);
	}
}
