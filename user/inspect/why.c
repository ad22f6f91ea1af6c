/* SPDX-License-Identifier: GPL-2.0-only */
#include "inspect/why.h"

#include <stdio.h>
#include <string.h>

#include "config/units.h"
#include "frame.h"

static bool is_allowed(const struct pacer_frame *frame, const struct pacer_walk *w);
static bool hides_inner(const struct pacer_frame *frame, const struct pacer_walk *w);

/* Of a packet in a tunnel: the one around it is known not to be. */
#define PACER_IS_ALLOWED(frame, walk, exact) ((void)(exact), is_allowed(frame, walk))
#define PACER_HIDES_INNER(frame, walk)	     hides_inner(frame, walk)

#include "path.h"
#include "plan/shares.h"

/* A frame, and who is on the allow-list. */
struct looking {
	struct pacer_frame frame; /* the first member: it leads here */
	why_allows *allows;
	void *arg;
	bool behind; /* a ban of the source */
};

static bool is_allowed(const struct pacer_frame *frame, const struct pacer_walk *w)
{
	const struct looking *looking = (const void *)frame;

	return looking->allows && looking->allows(&w->pkt, looking->arg);
}

static bool hides_inner(const struct pacer_frame *frame, const struct pacer_walk *w)
{
	const struct looking *looking = (const void *)frame;

	return !looking->behind && pacer_walk_source_denied(w);
}

/* Which of the policy's limits it is, by this; -1: none. */
static int limit_of(const struct policy_rule *rule, const struct pacer_limiter *t,
		    uint64_t resolution_ns,
		    bool (*is)(const struct policy_limit *, const struct pacer_limiter *, uint64_t))
{
	for (size_t i = 0; i < rule->n_limits; i++)
		if (is(&rule->limit[i], t, resolution_ns))
			return (int)i;
	return -1;
}

/* --- what a limit holds for the packet ---------------------------------------------------------
 */

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

/* Which one in a row the longest ban of the limit's key is, by this secret, if one lasts beyond
 * *until_ns. */
static void row_by(const struct pacer_walk *w, const struct pacer_limiter *t, uint32_t secret,
		   __u64 *until_ns, __u32 *row)
{
	struct pacer_ban_ask q = pacer_walk_ban_ask(w, t, secret);
	struct pacer_ban_places at = pacer_ban_places(q.bans, q.hash);

	for (uint32_t i = 0; i < at.n; i++) {
		struct pacer_line *line = PACER_LINE_AT(q.table, pacer_ban_place(&at, i));

		if (line)
			pacer_ban_note(line, &q, until_ns, row);
	}
}

/* Of a ban that runs, of a rule whose bans grow: which one in a row it is, and the next one's
 * length. */
static void fill_row(const struct pacer_walk *w, const struct pacer_limiter *t, struct why_limit *l)
{
	const struct pacer_policy *p = PACER_POLICY_OF(w);
	const struct pacer_rule *rule = PACER_RULE_OF(w);
	__u64 until_ns = w->now_ns;

	if (!rule->ban_grow || !l->banned_ns)
		return;
	row_by(w, t, p->secret, &until_ns, &l->ban_row);
	if (p->bans.moving)
		row_by(w, t, p->secret ^ 1, &until_ns, &l->ban_row);
	if (l->ban_row)
		l->ban_next_ns = pacer_ban_length(rule, l->ban_row) - rule->ban_tick_ns;
}

static void fill_limit(const struct pacer_walk *w, const struct policy_rule *rule,
		       uint64_t resolution_ns, size_t k, struct why_limit *l)
{
	const struct pacer_rule *bin = PACER_RULE_OF(w);
	const struct pacer_limiter *t = &bin->limiter[k];
	struct pacer_packet seen = w->pkt;
	uint32_t part;

	*l = (struct why_limit){.draining_ns = t->until_ns};
	l->by = compile_key_of(t->key_id);
	l->limit = limit_of(rule, t, resolution_ns, limit_is);
	l->guest = limit_of(rule, t, resolution_ns, limit_is_guest);
	if (l->limit >= 0)
		l->by = rule->limit[l->limit].key; /* with the names of its sets */
	if (pacer_limiter_valued(t))
		seen = pacer_limiter_sees(t, &w->pkt, w->value);
	tally_key_text(&l->by, &seen, l->key, sizeof(l->key));
	l->banned_ns = ban_of(w, t);
	fill_row(w, t, l);
	l->unasked = pacer_limiter_asked(t, w->now_ns) && !pacer_walk_asks(w, t);
	if (!pacer_walk_asks(w, t))
		return;
	kind_of_limiter(t)->held(w, t, &l->held);
	part = pacer_walk_part(w, t);
	l->unshared = !part;
	if (t->kind & PACER_LIMITER_FLEET && pacer_limiter_kind_of(t) != PACER_LIMITER_RATE)
		l->held.max = shares_units_of(t, part); /* of the key, here */
	l->when_ns = pacer_limit_when(w, t);
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
	    pacer_throttle_take_of(&t->throttle, pacer_throttle_part(t, pacer_walk_part(w, t)),
				   &trial[i].state, &trial[i].lease, w->now_ns, 1));
}

/*
 * Asked, then, of throttles, tried, in the order of the limits: the first that denies is the one.
 * Entries are not locked: of one that is held by then, or that two limits want, it is not told.
 */
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

		if (l->held.leases && l->reason == PACER_ADMIT)
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
	if (w->pkt.family == PACER_FAMILY_NONE)
		return 0;
	for (size_t i = 0; p->flags & PACER_SOURCES_BANNED && i < PACER_BAN_LENGTHS; i++) {
		uint8_t len = four ? p->bans.len4[i] : p->bans.len6[i];
		struct policy_key by = KEY_SRC(len, len);
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
	*why = (struct why){.reason = PACER_NO_RULE,
			    .rule = PACER_RULES_MAX,
			    .denied = -1,
			    .opens = !(w->pkt.key[PACER_WORD_META] & PACER_META_KNOWN)};
	why->source_ns = why_source(w, 128, why->source, sizeof(why->source));
	why->when_ns = pacer_later(w->now_ns, why->source_ns);
}

static enum pacer_reason find(struct pacer_walk *w, struct looking *looking, enum pacer_reason read)
{
	uint32_t outcome = read == PACER_ADMIT ? PACER_UNDECIDED : (uint32_t)read;

	w->pkt.found = PACER_RULES_MAX;
	w->pkt.sought = !!(PACER_POLICY_OF(w)->dims & PACER_DIMS_MORE);
	outcome = pacer_path_rule(&looking->frame, w, outcome);
	if (pacer_outcome_undecided(outcome) ||
	    pacer_outcome_reason(outcome) == PACER_DENY_NO_STATE) /* its limits will say so */
		return PACER_ADMIT;
	return pacer_outcome_reason(outcome);
}

enum pacer_reason why_find(struct pacer_walk *w, const struct packet_head *head,
			   enum pacer_reason read, why_allows *allows, void *arg)
{
	struct looking looking = {
	    {head->data, head->data + head->n, w->pkt.len_bytes, w->now_ns}, allows, arg, false};

	return find(w, &looking, read);
}

enum pacer_reason why_find_behind(struct pacer_walk *w, const struct packet_head *head,
				  enum pacer_reason read, why_allows *allows, void *arg)
{
	struct looking looking = {
	    {head->data, head->data + head->n, w->pkt.len_bytes, w->now_ns}, allows, arg, true};

	return find(w, &looking, read);
}

/* Does its rule only count? Then its limits keep nothing waiting. */
static bool passes(const struct pacer_walk *w)
{
	return PACER_RULE_OF(w)->over == PACER_OVER_PASS;
}

void why_packet_banned(const struct pacer_walk *w, const struct policy *policy,
		       uint64_t resolution_ns, uint64_t banned_ns, struct why *why)
{
	struct pacer_walk walk = *w;
	uint64_t source_ns, when_ns;
	bool unknown; /* the value that it counts by */

	begin(w, why);
	source_ns = pacer_later(why->source_ns, banned_ns);
	when_ns = source_ns;
	walk.rule = pacer_walk_rule(&walk, PACER_POLICY_OF(&walk));
	if (walk.rule == PACER_RULE_ALLOWED)
		why->source_ns = 0;
	unknown = pacer_walk_values(&walk, walk.rule);
	why->rule = walk.rule < PACER_RULES_MAX ? walk.rule : PACER_RULES_MAX;
	if (walk.rule >= PACER_RULES_MAX) {
		why->reason = pacer_outcome_reason(pacer_walk_no_rule(&walk));
		if (why->reason == PACER_DENY_VERDICT)
			when_ns = PACER_NEVER;
	} else if (PACER_RULE_OF(&walk)->says) {
		why->reason = pacer_outcome_reason(pacer_rule_reason(PACER_RULE_OF(&walk)));
		if (why->reason == PACER_DENY_VERDICT)
			when_ns = PACER_NEVER;
	} else if (unknown) {
		why->reason = PACER_DENY_NO_STATE;
		when_ns = PACER_NEVER;
	} else {
		why->n = PACER_RULE_OF(&walk)->n_limiters;
		for (size_t k = 0; k < why->n; k++)
			fill_limit(&walk, &policy->rule[walk.rule], resolution_ns, k,
				   &why->limit[k]);
		judge(&walk, why);
	}
	for (size_t k = 0; k < why->n; k++)
		when_ns = pacer_later(when_ns, why->limit[k].banned_ns);
	if (why->n)
		when_ns = pacer_limits_when(&walk, when_ns);
	for (size_t k = why->n; k-- > 0;)
		if (why->limit[k].banned_ns) {
			why->reason = PACER_DENY_BAN;
			why->denied = (int)k;
		}
	if (why->source_ns || banned_ns) {
		why->reason = PACER_DENY_BAN;
		why->denied = -1;
		if (why->n && passes(&walk))
			when_ns = source_ns;
	}
	why->when_ns = pacer_verdict_of(why->reason) == PACER_VERDICT_DENY
			   ? pacer_later(when_ns, w->now_ns)
			   : w->now_ns;
}

void why_packet(const struct pacer_walk *w, const struct policy *policy, uint64_t resolution_ns,
		struct why *why)
{
	why_packet_banned(w, policy, resolution_ns, 0, why);
}

int why_key_read(const struct policy_key *kind, const char *text, struct pacer_packet *pkt)
{
	if (kind->parts)
		return tally_key_read(kind, text, pkt);
	*pkt = (struct pacer_packet){.family = PACER_FAMILY_4, .vlan = PACER_VLAN_NONE};
	return strcmp(text, "all") ? -1 : 0;
}

/* The key as the limit counts it: as it is written, or the prefix that a source is counted by. */
static bool read_key(const struct policy_key *by, const char *key, uint8_t source_bits,
		     const struct pacer_packet *source, struct pacer_packet *pkt)
{
	uint8_t len = source->family == PACER_FAMILY_4 ? by->src4 : by->src6;
	char text[TALLY_TEXT];

	if (!why_key_read(by, key, pkt))
		return true;
	if (by->parts != KEY_PART_SRC || len > source_bits)
		return false;
	tally_key_text(by, source, text, sizeof(text));
	return !tally_key_read(by, text, pkt);
}

/* Does the limit count by the value that the source has in a set, and is the whole source known? */
static bool is_of_value(const struct policy_key *by, uint8_t source_bits,
			const struct pacer_packet *source)
{
	return by->parts == KEY_PART_SRC_VALUE &&
	       source_bits == (source->family == PACER_FAMILY_4 ? 32 : 128);
}

static void add_key(const struct pacer_walk *w, const struct policy *policy, uint64_t resolution_ns,
		    size_t k, struct why *why)
{
	struct why_limit *l = &why->limit[why->n++];
	struct pacer_hold hold = {0};

	fill_limit(w, &policy->rule[w->rule], resolution_ns, k, l);
	l->reason =
	    l->banned_ns ? PACER_DENY_BAN : pacer_outcome_reason(pacer_walk_check(w, k, &hold));
}

/* One without an address is a key of each family. */
static void add_keys(struct pacer_walk *w, const struct policy *policy, uint64_t resolution_ns,
		     size_t k, struct why *why)
{
	static const enum pacer_family families[] = {PACER_FAMILY_4, PACER_FAMILY_6};

	if (w->pkt.family != PACER_FAMILY_NONE) {
		add_key(w, policy, resolution_ns, k, why);
		return;
	}
	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++) {
		w->pkt.family = families[i];
		add_key(w, policy, resolution_ns, k, why);
		why->limit[why->n - 1].family = families[i];
	}
}

void why_key(const struct pacer_walk *w, const struct policy *policy, uint64_t resolution_ns,
	     const char *key, uint8_t source_bits, struct why *why)
{
	const struct pacer_rule *rule = PACER_RULE_OF(w);
	struct pacer_walk walk = *w;

	*why = (struct why){.reason = PACER_ADMIT, .rule = w->rule, .denied = -1};
	for (size_t k = 0; k < rule->n_limiters; k++) {
		struct policy_key by = compile_key_of(rule->limiter[k].key_id);

		if (is_of_value(&by, source_bits, &w->pkt)) {
			walk = *w;
			if (pacer_walk_values(&walk, w->rule))
				continue;
		} else {
			if (!read_key(&by, key, source_bits, &w->pkt, &walk.pkt) ||
			    !tally_key_fits(&rule->limiter[k], &walk.pkt))
				continue;
			walk.pkt.len_bytes = w->pkt.len_bytes;
			pacer_limiter_saw(&rule->limiter[k], &walk.pkt, walk.value);
		}
		add_keys(&walk, policy, resolution_ns, k, why);
	}
}
