/* SPDX-License-Identifier: GPL-2.0-only */
#include "compile.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"
#include "recency.h"
#include "table.h"
#include "window.h"

/* A coarse clock is good enough where a gap or a slot is at least this many of its ticks. */
#define COARSE_TICKS 16

/* Of a table's lines that limits without a size share; the rest is for later changes of policy. */
#define SHARE_NUM      3
#define SHARE_DEN      4
#define TIER_LINES_MIN 32
#define LINES_NEVER    (1ull << 40)

#define NS_PER_S 1000000000u

__attribute__((format(printf, 3, 4))) static int fail(struct policy_error *error, int line,
						      const char *format, ...)
{
	va_list args;

	error->line = line;
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return -1;
}

uint64_t compile_tier_lines(const struct pacer_tier *t)
{
	if (t->kind == PACER_TIER_NONE)
		return 0;
	if (t->kind == PACER_TIER_SKETCH)
		return t->sets;
	return (2ull * t->sets + t->shared) * (1u + t->window.extra_lines);
}

uint64_t compile_tier_memory_ns(const struct pacer_tier *t)
{
	return t->kind == PACER_TIER_SKETCH ? t->gap_ns : t->idle_ns;
}

/* --- classification ------------------------------------------------------------------------- */

typedef unsigned __int128 wide;

struct interval {
	wide low, high;
};

struct field {
	const char *name;
	wide max;
	size_t n[PACER_RULES_MAX]; /* of intervals */
	bool any[PACER_RULES_MAX]; /* the rule does not look at the field */
	struct interval at[PACER_RULES_MAX][POLICY_LIST_MAX];
};

struct field_out {
	wide bound[PACER_BOUNDS_MAX];
	uint64_t mask[PACER_BOUNDS_MAX + 1];
	size_t n;
	bool used;
};

static int compare_wide(const void *a, const void *b)
{
	wide x = *(const wide *)a, y = *(const wide *)b;

	return x < y ? -1 : x > y;
}

static uint64_t rules_at(const struct field *f, size_t n_rules, wide value)
{
	uint64_t mask = 0;

	for (size_t r = 0; r < n_rules; r++) {
		bool hit = f->any[r];

		for (size_t i = 0; i < f->n[r] && !hit; i++)
			hit = f->at[r][i].low <= value && value <= f->at[r][i].high;
		mask |= (uint64_t)hit << r;
	}
	return mask;
}

static int cut(const struct field *f, const struct policy *policy, struct field_out *out,
	       struct policy_error *error)
{
	static wide bounds[2 * PACER_RULES_MAX * POLICY_LIST_MAX];
	size_t n = 0;

	memset(out, 0, sizeof(*out));
	for (size_t r = 0; r < policy->n_rules; r++) {
		out->used |= !f->any[r];
		for (size_t i = 0; i < f->n[r]; i++) {
			if (f->at[r][i].low)
				bounds[n++] = f->at[r][i].low;
			if (f->at[r][i].high < f->max)
				bounds[n++] = f->at[r][i].high + 1;
		}
	}
	qsort(bounds, n, sizeof(*bounds), compare_wide);
	out->mask[0] = rules_at(f, policy->n_rules, 0);
	for (size_t i = 0; i < n; i++) {
		uint64_t mask;

		if (i && bounds[i] == bounds[i - 1])
			continue;
		mask = rules_at(f, policy->n_rules, bounds[i]);
		if (mask == out->mask[out->n])
			continue;
		if (out->n == PACER_BOUNDS_MAX)
			return fail(error, 0,
				    "rules: their %s cut the values into more than %u ranges: use "
				    "fewer or adjacent ones",
				    f->name, PACER_BOUNDS_MAX + 1);
		out->bound[out->n++] = bounds[i];
		out->mask[out->n] = mask;
	}
	for (size_t i = out->n + 1; i <= PACER_BOUNDS_MAX; i++)
		out->mask[i] = out->mask[out->n];
	return 0;
}

static uint32_t top_of(size_t n)
{
	uint32_t top = 1;

	while (2 * top <= n)
		top *= 2;
	return n ? top : 0;
}

static void put_dim(const struct field_out *o, struct pacer_dim *d)
{
	memcpy(d->mask, o->mask, sizeof(d->mask));
	for (size_t i = 0; i <= PACER_BOUNDS_MAX; i++)
		d->bound[i] = i < o->n ? (uint32_t)o->bound[i] : UINT32_MAX;
	d->top = top_of(o->n);
}

static void put_dim6(const struct field_out *o, struct pacer_dim6 *d)
{
	memcpy(d->mask, o->mask, sizeof(d->mask));
	for (size_t i = 0; i <= PACER_BOUNDS_MAX; i++) {
		d->hi[i] = i < o->n ? (uint64_t)(o->bound[i] >> 64) : UINT64_MAX;
		d->lo[i] = i < o->n ? (uint64_t)o->bound[i] : UINT64_MAX;
	}
	d->top = top_of(o->n);
}

static wide prefix_address(const struct prefix *p)
{
	size_t bytes = p->family == 4 ? 4 : 16;
	wide value = 0;

	for (size_t i = 0; i < bytes; i++)
		value = value << 8 | p->addr[i];
	return value;
}

static void prefixes_of(struct field *f, const struct policy *policy, bool source, int family)
{
	unsigned int bits = family == 4 ? 32 : 128;

	f->max = family == 4 ? (wide)UINT32_MAX : ~(wide)0;
	f->name = source ? "source prefixes" : "destination prefixes";
	for (size_t r = 0; r < policy->n_rules; r++) {
		const struct policy_match *m = &policy->rule[r].match;
		const struct prefix *list = source ? m->src : m->dst;
		size_t n = source ? m->n_src : m->n_dst;

		f->any[r] = !n;
		f->n[r] = 0;
		for (size_t i = 0; i < n; i++) {
			wide low = prefix_address(&list[i]);
			wide host = list[i].len >= bits ? 0 : f->max >> list[i].len;

			if (list[i].family == family)
				f->at[r][f->n[r]++] = (struct interval){low, low | host};
		}
	}
}

static void ranges_of(struct field *f, const struct policy *policy, enum pacer_dim_id dim)
{
	static const char *const names[] = {
	    [PACER_DIM_SPORT] = "source ports",
	    [PACER_DIM_DPORT] = "destination ports",
	    [PACER_DIM_PROTO] = "protocols",
	    [PACER_DIM_VLAN] = "VLANs",
	};

	f->max = dim == PACER_DIM_PROTO ? 255 : dim == PACER_DIM_VLAN ? PACER_VLAN_NONE : 65535;
	f->name = names[dim];
	for (size_t r = 0; r < policy->n_rules; r++) {
		const struct policy_match *m = &policy->rule[r].match;
		const struct range *list = dim == PACER_DIM_SPORT   ? m->sport
					   : dim == PACER_DIM_DPORT ? m->dport
					   : dim == PACER_DIM_PROTO ? m->proto
								    : m->vlan;
		size_t n = dim == PACER_DIM_SPORT   ? m->n_sport
			   : dim == PACER_DIM_DPORT ? m->n_dport
			   : dim == PACER_DIM_PROTO ? m->n_proto
						    : m->n_vlan;

		f->any[r] = !n;
		f->n[r] = n;
		for (size_t i = 0; i < n; i++)
			f->at[r][i] = (struct interval){list[i].low, list[i].high};
	}
}

static int compile_classifier(const struct policy *policy, struct pacer_policy *bin,
			      struct policy_error *error)
{
	static struct field f;
	static struct field_out o;

	bin->rules = policy->n_rules >= 64 ? ~0ull : (1ull << policy->n_rules) - 1;
	for (int dim = 0; dim < PACER_DIM_COUNT + 2; dim++) {
		memset(&f, 0, sizeof(f));
		if (dim == PACER_DIM_SADDR4 || dim == PACER_DIM_DADDR4)
			prefixes_of(&f, policy, dim == PACER_DIM_SADDR4, 4);
		else if (dim >= PACER_DIM_COUNT)
			prefixes_of(&f, policy, dim == PACER_DIM_SADDR6, 6);
		else
			ranges_of(&f, policy, dim);
		if (cut(&f, policy, &o, error))
			return -1;
		bin->dims |= (uint32_t)o.used << dim;
		if (dim < PACER_DIM_COUNT)
			put_dim(&o, &bin->dim[dim]);
		else
			put_dim6(&o, &bin->dim6[dim - PACER_DIM_COUNT]);
	}
	return 0;
}

/* --- tiers ---------------------------------------------------------------------------------- */

static uint32_t mask_of(unsigned int len)
{
	return len ? UINT32_MAX << (32 - len) : 0;
}

static void mask_address(uint32_t mask6[4], uint8_t len6)
{
	for (unsigned int i = 0; i < 4; i++) {
		unsigned int bits = len6 > 32 * i ? len6 - 32 * i : 0;

		mask6[i] = mask_of(bits > 32 ? 32 : bits);
	}
}

/* A fragment's identification stands for both ports; dport alone keeps its lower half. */
static void key_masks(const struct policy_key *key, struct pacer_tier *t)
{
	bool src = key->kind == KEY_SRC || key->kind == KEY_SRC_DPORT || key->kind == KEY_FLOW;
	bool dst = key->kind == KEY_DST || key->kind == KEY_FLOW;
	uint32_t ports = 0, meta = 0;

	if (key->kind == KEY_FLOW) {
		ports = UINT32_MAX;
		meta = PACER_META_PROTO | PACER_META_FRAGMENT;
	} else if (key->kind == KEY_SRC_DPORT) {
		ports = 0xffff;
		meta = PACER_META_FRAGMENT;
	}
	t->mask4[0] = src ? mask_of(key->len4) : 0;
	t->mask4[1] = dst ? mask_of(key->len4) : 0;
	t->mask4[2] = ports;
	t->mask4[3] = meta;
	if (src)
		mask_address(&t->mask6[PACER_WORD_SADDR], key->len6);
	if (dst)
		mask_address(&t->mask6[PACER_WORD_DADDR], key->len6);
	t->mask6[PACER_WORD_PORTS] = ports;
	t->mask6[PACER_WORD_META] = meta;
}

static bool same_key(const struct pacer_tier *a, const struct pacer_tier *b)
{
	return !memcmp(a->mask4, b->mask4, sizeof(a->mask4)) &&
	       !memcmp(a->mask6, b->mask6, sizeof(a->mask6));
}

static int window_of(const struct policy_limit *limit, uint64_t resolution_ns, size_t rule,
		     size_t index, struct pacer_window *w, struct policy_error *error)
{
	enum pacer_window_error bad = pacer_window_profile(
	    w, limit->cost, limit->limit, limit->window_ns, limit->slots, resolution_ns);
	static const char *const what[] = {
	    [PACER_WINDOW_BAD_LIMIT] = "its limit cannot be counted: use 1 to 2147483647 "
				       "packets, or 1 to 140737488289792 bytes",
	    [PACER_WINDOW_BAD_TIME] = "its window cannot be represented: use 1ns to 834d",
	    [PACER_WINDOW_BAD_SLOTS] = "its window cannot be cut into these slots: use 1 to 58, "
				       "of 1ns or more each",
	};

	if (bad != PACER_WINDOW_OK)
		return fail(error, limit->line, "rules[%zu].limits[%zu]: %s", rule, index,
			    what[bad]);
	return 0;
}

/* Cells that admit no more than the ceiling: as many a gap, without the clock's resolution. */
static wide ceiling_cells(const struct policy_limit *limit)
{
	return (wide)limit->ceiling * limit->gap_ns / NS_PER_S;
}

static int check_ceiling(const struct policy_limit *limit, size_t rule, size_t index,
			 struct policy_error *error)
{
	wide least = ((wide)PACER_CELLS * NS_PER_S + limit->gap_ns - 1) / limit->gap_ns;

	if (!limit->ceiling || ceiling_cells(limit) >= PACER_CELLS)
		return 0;
	return fail(error, limit->line,
		    "rules[%zu].limits[%zu].ceiling: a sketch of this gap admits up to %llupps: "
		    "write that or more, or limit the key \"all\"",
		    rule, index, (unsigned long long)least);
}

/* Explicit sizes, in lines; 0: a share of the memory. What no table holds is LINES_NEVER. */
static uint64_t wanted_lines(const struct policy_limit *limit, const struct pacer_tier *t)
{
	wide n = limit->entries;

	if (limit->key.kind == KEY_ALL)
		return 1 + t->window.extra_lines;
	if (limit->kind == LIMIT_GAP && limit->ceiling) {
		n = ceiling_cells(limit) / PACER_CELLS;
	} else if (limit->kind == LIMIT_GAP) {
		n = (n + PACER_CELLS - 1) / PACER_CELLS;
	} else {
		n = (n + 1) / 2; /* sets */
		n = (2 * n + (n + 3) / 4) * (1 + t->window.extra_lines);
	}
	return n < LINES_NEVER ? n : LINES_NEVER;
}

static void size_tier(struct pacer_tier *t, uint64_t lines)
{
	uint64_t records = lines / (1 + t->window.extra_lines);

	if (t->kind == PACER_TIER_SKETCH) {
		t->sets = lines;
		return;
	}
	t->sets = records < 3 ? 0 : records * 4 / 9;
	t->shared = records - 2ull * t->sets;
}

/* A tier on its way: with the limits it was made from. */
struct draft {
	struct pacer_tier tier;
	uint64_t lines;	 /* wanted; 0: a share */
	int gap, window; /* index of the limit, -1: none */
	int line;
	enum plan_state state;
	bool own; /* a gap that asked for a sketch */
};

struct draft_rule {
	struct draft at[PACER_TIERS_MAX];
	size_t n;
};

static void finish_times(struct pacer_tier *t)
{
	uint64_t unit;

	while (t->window.slot_ns >> t->last_shift >= UINT32_MAX)
		t->last_shift++;
	unit = 1ull << t->last_shift;
	t->idle_ns = t->window.ring_ns;
	if (t->gap_ns && t->gap_ns + t->window.slot_ns + unit > t->idle_ns)
		t->idle_ns = t->gap_ns + t->window.slot_ns + unit;
	t->idle_ns += PACER_IDLE_SLACK_NS;
}

/* The tier of this rule that the gap may join: a record of the same key without one. */
static struct draft *joinable(struct draft_rule *d, const struct pacer_tier *t, bool gap)
{
	for (size_t i = 0; i < d->n; i++) {
		struct draft *at = &d->at[i];

		if (same_key(&at->tier, t) && (gap ? at->gap < 0 && at->window >= 0
						   : at->window < 0 && at->gap >= 0 && !at->own))
			return at;
	}
	return NULL;
}

static int add_limit(struct draft_rule *d, const struct policy_limit *limit, size_t rule,
		     size_t index, uint64_t resolution_ns, struct policy_error *error)
{
	bool gap = limit->kind == LIMIT_GAP;
	bool own = gap && (limit->ceiling || limit->entries || limit->rows != PACER_ROWS_MAX);
	struct pacer_tier t = {.kind = gap ? PACER_TIER_SKETCH : PACER_TIER_RECORD};
	struct draft *at;

	key_masks(&limit->key, &t);
	at = own ? NULL : joinable(d, &t, gap);
	if (!at) {
		if (d->n == PACER_TIERS_MAX)
			return fail(error, limit->line,
				    "rules[%zu].limits[%zu]: a rule holds up to %u limits, those "
				    "just retired included: apply again when they have passed",
				    rule, index, PACER_TIERS_MAX);
		at = &d->at[d->n++];
		*at = (struct draft){t, 0, -1, -1, limit->line, PLAN_NEW, own};
	}
	if (gap) {
		if (check_ceiling(limit, rule, index, error))
			return -1;
		at->gap = index;
		at->tier.gap_ns = limit->gap_ns + resolution_ns;
		at->tier.rows = limit->key.kind == KEY_ALL ? 1 : limit->rows;
	} else {
		at->window = index;
		at->tier.kind = PACER_TIER_RECORD;
		if (window_of(limit, resolution_ns, rule, index, &at->tier.window, error))
			return -1;
	}
	if (own || !gap || limit->key.kind == KEY_ALL)
		at->lines = wanted_lines(limit, &at->tier);
	return 0;
}

/* --- keeping state -------------------------------------------------------------------------- */

/* A change of policy: what decides which limit goes on with which state. */
struct succession {
	const struct compile_previous *previous;
	bool exact; /* the new policy's clock */
	uint64_t now_ns;
};

/*
 * The coarse clock's times lie up to its resolution before the truth. An exact policy can go on
 * with them only under a gap that is larger than the old one, which included that.
 */
static bool clock_differs(const struct succession *change, const struct draft *d,
			  const struct pacer_tier *old)
{
	bool coarse = old->until_ns || !(change->previous->bin->flags & PACER_CLOCK_EXACT);

	return change->exact && coarse && d->tier.gap_ns && d->tier.gap_ns < old->gap_ns;
}

static bool same_shape(const struct succession *change, const struct draft *d,
		       const struct pacer_tier *old)
{
	const struct pacer_window *a = &d->tier.window, *b = &old->window;

	return d->tier.kind == old->kind && same_key(&d->tier, old) &&
	       (old->kind == PACER_TIER_RECORD || d->tier.rows == old->rows) &&
	       a->slot_ns == b->slot_ns && a->ring == b->ring && a->cost == b->cost &&
	       a->cost_shift == b->cost_shift && !clock_differs(change, d, old) &&
	       (!d->lines || d->lines == compile_tier_lines(old));
}

static const struct pacer_rule *previous_rule(const struct compile_previous *previous,
					      const char *name)
{
	for (size_t r = 0; previous && r < previous->policy->n_rules; r++)
		if (!strcmp(previous->policy->rule[r].name, name))
			return &previous->bin->rule[r];
	return NULL;
}

/* Does the record go on without the gap that it had? */
static bool loses_gap(const struct draft *d, const struct pacer_tier *old)
{
	return old->kind == PACER_TIER_RECORD && old->gap_ns && d->gap < 0;
}

static bool loosened(const struct draft *d, const struct pacer_tier *old)
{
	return d->tier.gap_ns < old->gap_ns || d->tier.window.limit > old->window.limit;
}

/* The gap of a key may join any of its windows: the one that it was with knows its past. */
static void bring_gap(const struct succession *change, struct draft_rule *d, struct draft *to,
		      const struct pacer_tier *old)
{
	for (size_t k = 0; k < d->n; k++) {
		struct draft *from = &d->at[k], joined = *to;

		if (from->state != PLAN_NEW || from->gap < 0 || from->window < 0 ||
		    !same_key(&from->tier, old))
			continue;
		joined.gap = from->gap;
		joined.tier.gap_ns = from->tier.gap_ns;
		joined.tier.rows = from->tier.rows;
		if (!same_shape(change, &joined, old))
			continue;
		finish_times(&joined.tier);
		*to = joined;
		from->gap = -1;
		from->tier.gap_ns = 0;
		from->tier.rows = 0;
		finish_times(&from->tier);
		return;
	}
}

/* Does the old tier still count? */
static bool counts(const struct succession *change, const struct pacer_tier *t)
{
	return t->kind != PACER_TIER_NONE && (!t->until_ns || t->until_ns > change->now_ns);
}

/* Who chooses first among the new limits: those with a gap to bring, and those in force. */
static int turn_of(const struct pacer_tier *t)
{
	return t->until_ns ? 2 : t->gap_ns ? 0 : 1;
}

/* Is the limit's value nearer to the old one's than the other's, a looser one being the farthest?
 */
static bool nearer(const struct draft *d, const struct draft *other, const struct pacer_tier *old)
{
	const struct pacer_tier *a = &d->tier, *b = &other->tier;
	bool looser = loosened(d, old);

	if (looser != loosened(other, old))
		return !looser;
	if (a->gap_ns != b->gap_ns)
		return (a->gap_ns > b->gap_ns) == looser;
	return a->window.limit != b->window.limit && (a->window.limit < b->window.limit) == looser;
}

static struct draft *find_heir(const struct succession *change, struct draft_rule *d,
			       const struct pacer_tier *old)
{
	struct draft *best = NULL;

	for (size_t k = 0; k < d->n; k++) {
		struct draft *at = &d->at[k];

		if (at->state == PLAN_NEW && same_shape(change, at, old) &&
		    (!best || nearer(at, best, old)))
			best = at;
	}
	return best;
}

/* The heir of each old tier that still counts, NULL: none. */
static void find_heirs(const struct succession *change, struct draft_rule *d,
		       const struct pacer_rule *old, struct draft *heir[PACER_TIERS_MAX])
{
	for (size_t n = 0; n < 3 * PACER_TIERS_MAX; n++) {
		size_t i = n % PACER_TIERS_MAX, turn = n / PACER_TIERS_MAX;
		const struct pacer_tier *t = &old->tier[i];

		if (!turn)
			heir[i] = NULL;
		if (i >= old->n_tiers || !counts(change, t) || turn_of(t) != (int)turn)
			continue;
		heir[i] = find_heir(change, d, t);
		if (!heir[i])
			continue;
		if (loses_gap(heir[i], t))
			bring_gap(change, d, heir[i], t);
		heir[i]->state = PLAN_KEPT;
	}
}

/* Does the limit go on with less of its past than it asks for? */
static bool forgets(const struct draft *d, const struct pacer_tier *old)
{
	return !old || (d->gap >= 0 && !old->gap_ns && d->tier.idle_ns > old->idle_ns);
}

/* The two windows are as long, but for what their slots round up. */
static bool same_span(const struct pacer_window *a, const struct pacer_window *b)
{
	uint64_t x = a->slot_ns * (a->ring - 1), y = b->slot_ns * (b->ring - 1);

	return a->ring && b->ring && a->cost == b->cost &&
	       (x > y ? x - y : y - x) < PACER_SLOTS_MAX;
}

/* May the other limit ask for what this one has ceased to: is it the tighter of the same key? */
static bool stands_in(const struct draft *other, const struct draft *d)
{
	const struct pacer_tier *a = &other->tier, *b = &d->tier;

	return other != d && same_key(a, b) &&
	       (a->gap_ns > b->gap_ns || (same_span(&a->window, &b->window) &&
					  (uint64_t)a->window.limit << a->window.cost_shift <
					      (uint64_t)b->window.limit << b->window.cost_shift));
}

/*
 * Does the rule have a limit that has not the past of this one, the heir of `old`, and may need it:
 * of the same key, or, where a gap goes, of any? One that stands in may be young itself.
 */
static bool is_needed(const struct draft_rule *d, const struct draft *heir,
		      const struct pacer_tier *old,
		      const struct pacer_tier *const past[PACER_TIERS_MAX])
{
	for (size_t k = 0; k < d->n; k++) {
		const struct draft *at = &d->at[k];

		if (stands_in(at, heir) ||
		    (forgets(at, past[k]) && (loses_gap(heir, old) || same_key(&at->tier, old))))
			return true;
	}
	return false;
}

/*
 * State goes on under a looser limit, or without its gap, only where no other limit may be the same
 * one in another place or shape, with less of its past: else the old one has to stay in force
 * beside it, or neither would count what was admitted just before the change. A retired one stays
 * for the sake of such a limit, and is not loosened before its end.
 */
static void part(struct draft_rule *d, const struct pacer_rule *old,
		 struct draft *heir[PACER_TIERS_MAX])
{
	const struct pacer_tier *past[PACER_TIERS_MAX] = {0};
	bool again = true;

	for (size_t i = 0; i < old->n_tiers; i++)
		if (heir[i])
			past[heir[i] - d->at] = &old->tier[i];
	while (again) {
		again = false;
		for (size_t i = 0; i < old->n_tiers; i++) {
			const struct pacer_tier *t = &old->tier[i];

			if (!heir[i] || !loosened(heir[i], t) ||
			    (!t->until_ns && !is_needed(d, heir[i], t, past)))
				continue;
			past[heir[i] - d->at] = NULL;
			heir[i]->state = PLAN_NEW;
			heir[i] = NULL;
			again = true;
		}
	}
}

static int retire(struct draft_rule *d, const struct pacer_tier *t, const struct policy_rule *rule,
		  struct policy_error *error)
{
	struct draft *at = &d->at[d->n];

	if (d->n == PACER_TIERS_MAX)
		return fail(error, rule->line,
			    "rule %s: a rule holds up to %u limits, and those that this change "
			    "retires stay until their windows have passed: apply again later, or "
			    "in steps",
			    rule->name, PACER_TIERS_MAX);
	*at = (struct draft){*t, 0, -1, -1, rule->line, PLAN_RETIRED, false};
	if (!t->until_ns)
		at->tier.until_ns = COMPILE_UNTIL_SET;
	d->n++;
	return 0;
}

static int inherit(const struct succession *change, struct draft_rule *d,
		   const struct policy_rule *rule, struct plan *plan, struct policy_error *error)
{
	const struct pacer_rule *old = previous_rule(change->previous, rule->name);
	struct draft *heir[PACER_TIERS_MAX];

	if (!old)
		return 0;
	find_heirs(change, d, old, heir);
	part(d, old, heir);
	for (size_t i = 0; i < old->n_tiers; i++) {
		const struct pacer_tier *t = &old->tier[i];

		if (heir[i]) {
			heir[i]->tier.base = t->base;
			heir[i]->tier.sets = t->sets;
			heir[i]->tier.shared = t->shared;
			continue;
		}
		if (!counts(change, t))
			continue;
		if (retire(d, t, rule, error))
			return -1;
		plan->n_retired++;
	}
	return 0;
}

/* --- room in the table ---------------------------------------------------------------------- */

struct region {
	uint64_t base, lines;
};

struct regions {
	struct region at[2 * PACER_RULES_MAX * PACER_TIERS_MAX + 1];
	size_t n;
	uint64_t total;
};

static void occupy(struct regions *r, uint64_t base, uint64_t lines)
{
	size_t i = r->n++;

	for (; i && r->at[i - 1].base > base; i--)
		r->at[i] = r->at[i - 1];
	r->at[i] = (struct region){base, lines};
}

/* The first free run of at least `lines`; with 0, the longest one. */
static struct region find_free(const struct regions *r, uint64_t lines)
{
	struct region best = {0, 0};
	uint64_t at = 0;

	for (size_t i = 0; i <= r->n; i++) {
		uint64_t end = i < r->n ? r->at[i].base : r->total;
		uint64_t next = i < r->n ? r->at[i].base + r->at[i].lines : r->total;

		if (end > at && end - at > best.lines)
			best = (struct region){at, end - at};
		if (lines && best.lines >= lines)
			break;
		at = next > at ? next : at;
	}
	return best;
}

static int place(struct regions *r, struct draft *d, uint64_t lines, const char *rule,
		 struct policy_error *error)
{
	struct region free = find_free(r, lines);

	if (free.lines < lines || !lines)
		return fail(
		    error, d->line,
		    "rule %s: no room for its state: %llu bytes wanted, %llu free together: "
		    "give it fewer entries or raise memory and load again",
		    rule, (unsigned long long)lines * 64, (unsigned long long)free.lines * 64);
	d->tier.base = free.base;
	size_tier(&d->tier, lines);
	occupy(r, free.base, lines);
	return 0;
}

static int place_all(struct draft_rule *drafts, const struct policy *policy, struct regions *r,
		     struct policy_error *error)
{
	uint64_t share, taken = 0, autos = 0, left = 0;

	for (size_t i = 0; i < policy->n_rules; i++)
		for (size_t k = 0; k < drafts[i].n; k++) {
			struct draft *d = &drafts[i].at[k];

			if (d->state == PLAN_RETIRED)
				continue;
			autos += !d->lines;
			left += !d->lines && d->state == PLAN_NEW;
			if (d->state == PLAN_NEW && d->lines) {
				if (place(r, d, d->lines, policy->rule[i].name, error))
					return -1;
			}
			taken += d->lines;
		}
	share = autos && r->total > taken ? (r->total - taken) / SHARE_DEN * SHARE_NUM / autos : 0;
	for (size_t i = 0; i < policy->n_rules; i++)
		for (size_t k = 0; k < drafts[i].n; k++) {
			struct draft *d = &drafts[i].at[k];
			uint64_t most = find_free(r, 0).lines / SHARE_DEN * SHARE_NUM;
			uint64_t lines = share;

			if (d->state != PLAN_NEW || d->lines)
				continue;
			if (lines > most / left)
				lines = most / left;
			left--;
			if (lines < TIER_LINES_MIN)
				lines = TIER_LINES_MIN;
			if (place(r, d, lines, policy->rule[i].name, error))
				return -1;
		}
	return 0;
}

/* --- all together --------------------------------------------------------------------------- */

static bool coarse_enough(const struct policy *policy, uint64_t resolution_ns)
{
	for (size_t r = 0; r < policy->n_rules; r++)
		for (size_t i = 0; i < policy->rule[r].n_limits; i++) {
			const struct policy_limit *l = &policy->rule[r].limit[i];
			uint64_t fine = l->kind == LIMIT_GAP
					    ? l->gap_ns
					    : l->window_ns / (l->slots ? l->slots : 1);

			if (fine / COARSE_TICKS < resolution_ns)
				return false;
		}
	return true;
}

static uint32_t free_counter(const struct pacer_policy *bin, const struct pacer_policy *old)
{
	for (uint32_t id = 1; id < PACER_COUNTERS_MAX; id++) {
		bool used = false;

		for (size_t r = 0; r < PACER_RULES_MAX && !used; r++)
			used = bin->rule[r].counter == id || (old && old->rule[r].counter == id);
		if (!used)
			return id;
	}
	return 0;
}

static int number_counters(const struct policy *policy, const struct compile_previous *previous,
			   struct pacer_policy *bin, struct policy_error *error)
{
	for (size_t r = 0; r < policy->n_rules; r++) {
		const struct pacer_rule *old = previous_rule(previous, policy->rule[r].name);

		bin->rule[r].counter = old ? old->counter : 0;
	}
	for (size_t r = 0; r < policy->n_rules; r++) {
		if (!bin->rule[r].counter)
			bin->rule[r].counter = free_counter(bin, previous ? previous->bin : NULL);
		if (!bin->rule[r].counter)
			return fail(error, policy->rule[r].line,
				    "rule %s: no counter is left beside those of the rules in "
				    "force: apply first with some of the new rules, then with all",
				    policy->rule[r].name);
	}
	return 0;
}

static void emit(const struct policy *policy, const struct draft_rule *drafts,
		 struct pacer_policy *bin, struct plan *plan)
{
	for (size_t r = 0; r < policy->n_rules; r++) {
		bin->rule[r].over = policy->rule[r].over;
		bin->rule[r].n_tiers = drafts[r].n;
		for (size_t k = 0; k < drafts[r].n; k++) {
			const struct draft *d = &drafts[r].at[k];
			struct plan_limit at = {r, 0, k, d->state};

			bin->rule[r].tier[k] = d->tier;
			plan->lines_used += compile_tier_lines(&d->tier);
			at.limit = d->gap;
			if (d->gap >= 0)
				plan->limit[plan->n_limits++] = at;
			at.limit = d->window;
			if (d->window >= 0)
				plan->limit[plan->n_limits++] = at;
		}
	}
}

/* The table as the previous policy, if there is one, leaves it. */
static int survey(const struct policy *policy, const struct compile_previous *previous,
		  struct regions *regions, struct policy_error *error)
{
	memset(regions, 0, sizeof(*regions));
	if (!previous) {
		regions->total = policy->memory_bytes / sizeof(struct pacer_line);
		if (!regions->total)
			return fail(error, 0,
				    "memory: %llu bytes are less than a line of state: "
				    "write %zu or more",
				    (unsigned long long)policy->memory_bytes,
				    sizeof(struct pacer_line));
		return 0;
	}
	regions->total = previous->lines;
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < previous->bin->rule[r].n_tiers; k++) {
			const struct pacer_tier *t = &previous->bin->rule[r].tier[k];

			occupy(regions, t->base, compile_tier_lines(t));
		}
	return 0;
}

static int draft_all(const struct policy *policy, const struct succession *change,
		     uint64_t resolution_ns, struct draft_rule *drafts, struct plan *plan,
		     struct policy_error *error)
{
	for (size_t r = 0; r < policy->n_rules; r++) {
		const struct policy_rule *rule = &policy->rule[r];

		drafts[r].n = 0;
		for (size_t i = 0; i < rule->n_limits; i++)
			if (add_limit(&drafts[r], &rule->limit[i], r, i, resolution_ns, error))
				return -1;
		for (size_t k = 0; k < drafts[r].n; k++)
			finish_times(&drafts[r].at[k].tier);
		if (inherit(change, &drafts[r], rule, plan, error))
			return -1;
	}
	return 0;
}

int compile_policy(const struct policy *policy, const struct compile_previous *previous,
		   const struct compile_host *host, struct pacer_policy *bin, struct plan *plan,
		   struct policy_error *error)
{
	static struct draft_rule drafts[PACER_RULES_MAX];
	static struct regions regions;
	bool exact = policy->clock == CLOCK_EXACT ||
		     (policy->clock == CLOCK_AUTO && !coarse_enough(policy, host->resolution_ns));
	uint64_t resolution_ns = exact ? 0 : host->resolution_ns;
	struct succession change = {previous, exact, host->now_ns};

	memset(bin, 0, sizeof(*bin));
	memset(plan, 0, sizeof(*plan));
	if (compile_classifier(policy, bin, error) ||
	    number_counters(policy, previous, bin, error) ||
	    survey(policy, previous, &regions, error) ||
	    draft_all(policy, &change, resolution_ns, drafts, plan, error) ||
	    place_all(drafts, policy, &regions, error))
		return -1;
	/* A retired limit of an exact policy does not include the coarse clock's resolution. */
	exact |= plan->n_retired && previous->bin->flags & PACER_CLOCK_EXACT;
	bin->flags = (policy->monitor ? PACER_MONITOR : 0) |
		     (policy->unparsed_drop ? PACER_UNPARSED_DROP : 0) |
		     (exact ? PACER_CLOCK_EXACT : 0);
	bin->serial = previous ? previous->bin->serial + 1 : 1;
	plan->lines = regions.total;
	plan->resolution_ns = resolution_ns;
	emit(policy, drafts, bin, plan);
	return 0;
}

/* A denial that is neither the gap's nor the window's is of the first limit in the tier. */
int compile_limit_of(const struct plan *plan, const struct policy *policy, size_t rule,
		     uint32_t tier, enum pacer_reason reason)
{
	int found = -1;

	for (size_t i = 0; i < plan->n_limits; i++) {
		const struct plan_limit *at = &plan->limit[i];
		enum policy_limit_kind kind = policy->rule[rule].limit[at->limit].kind;

		if (at->rule != rule || at->tier != tier ||
		    (reason == PACER_DENY_GAP && kind != LIMIT_GAP) ||
		    (reason == PACER_DENY_WINDOW && kind != LIMIT_WINDOW))
			continue;
		if (found < 0 || (int)at->limit < found)
			found = at->limit;
	}
	return found;
}
