/* SPDX-License-Identifier: GPL-2.0-only */
#include "plan/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "classify.h"
#include "parse.h"
#include "rate.h"
#include "recency.h"
#include "plan/sampling.h"
#include "table.h"
#include "plan/throttles.h"
#include "window.h"

/* A coarse clock is good enough where a gap or a slot is at least this many of its ticks. */
#define COARSE_TICKS 16

/* Of a table's lines that limits without a size share; the rest is for later changes of policy. */
#define SHARE_NUM      3
#define SHARE_DEN      4
#define TIER_LINES_MIN 32
#define LINES_NEVER    (1ull << 40)

#define NS_PER_S 1000000000u

uint64_t compile_tier_lines(const struct pacer_tier *t)
{
	if (t->kind == PACER_TIER_NONE || t->kind == PACER_TIER_THROTTLE)
		return 0;
	if (t->kind == PACER_TIER_SKETCH)
		return t->sets;
	return ((2ull * t->sets + t->shared) * t->units + PACER_LINE_UNITS - 1) / PACER_LINE_UNITS;
}

uint64_t compile_tier_memory_ns(const struct pacer_tier *t)
{
	switch ((enum pacer_tier_kind)t->kind) {
	case PACER_TIER_THROTTLE:
		return throttle_memory_ns(&t->throttle);
	case PACER_TIER_SKETCH:
		return t->gap_ns;
	case PACER_TIER_RATE: /* so far ahead a TAT may be, and its fraction */
		return t->rate.burst_ns + 1 + t->idle_ns;
	case PACER_TIER_RECORD:
	case PACER_TIER_NONE:
		break;
	}
	return t->idle_ns;
}

/* One record for all, and throttles, are found without it. */
bool compile_hashed(const struct pacer_tier *t)
{
	if (t->kind == PACER_TIER_RECORD || t->kind == PACER_TIER_RATE)
		return t->sets || t->shared != 1;
	return t->kind == PACER_TIER_SKETCH;
}

uint64_t compile_drained_ns(const struct pacer_policy *bin)
{
	uint64_t until_ns = 0;

	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < bin->rule[r].n_tiers; k++) {
			const struct pacer_tier *t = &bin->rule[r].tier[k];

			if (compile_hashed(t) && t->secret != bin->secret && t->until_ns > until_ns)
				until_ns = t->until_ns;
		}
	return until_ns;
}

void compile_begin_rates(struct pacer_rule *rule)
{
	uint64_t end_ns = 0;

	for (size_t k = 0; k < rule->n_tiers; k++) {
		const struct pacer_tier *t = &rule->tier[k];

		if (t->kind == PACER_TIER_RATE && t->until_ns > end_ns)
			end_ns = t->until_ns;
	}
	for (size_t k = 0; k < rule->n_tiers; k++) {
		struct pacer_tier *t = &rule->tier[k];

		if (t->kind == PACER_TIER_RATE && t->rate.begin_ns == COMPILE_UNTIL_SET)
			__atomic_store_n(&t->rate.begin_ns, end_ns, __ATOMIC_RELEASE);
	}
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
			return policy_fail(
			    error, 0,
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
	for (size_t r = 0; r < policy->n_rules; r++)
		if (!policy->rule[r].match.n_sport && !policy->rule[r].match.n_dport)
			bin->portless |= 1ull << r;
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
	pacer_classify_index(bin);
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

static uint32_t key_id(const struct policy_key *key)
{
	uint32_t len4 = key->len4, len6 = key->len6;

	switch (key->kind) {
	case KEY_SRC:
		return PACER_KEY_ID(0, len4, len6, 0, 0);
	case KEY_DST:
		return PACER_KEY_ID(0, 0, 0, len4, len6);
	case KEY_SRC_DPORT:
		return PACER_KEY_ID(PACER_KEY_DPORT, len4, len6, 0, 0);
	case KEY_FLOW:
		return PACER_KEY_ID(PACER_KEY_SPORT | PACER_KEY_DPORT | PACER_KEY_PROTO, len4, len6,
				    len4, len6);
	case KEY_ALL:
		break;
	}
	return 0;
}

/* Its inverse. */
struct policy_key compile_key_of(uint32_t key_id)
{
	uint32_t src4 = key_id >> 4 & 63, src6 = key_id >> 10 & 255;
	uint32_t dst4 = key_id >> 18 & 63, dst6 = key_id >> 24;

	if (key_id & PACER_KEY_PROTO)
		return (struct policy_key){KEY_FLOW, src4, src6};
	if (key_id & PACER_KEY_DPORT)
		return (struct policy_key){KEY_SRC_DPORT, src4, src6};
	if (dst4 || dst6)
		return (struct policy_key){KEY_DST, dst4, dst6};
	if (src4 || src6)
		return (struct policy_key){KEY_SRC, src4, src6};
	return (struct policy_key){KEY_ALL, 32, 128};
}

/* A fragment's identification stands for both ports; dport alone keeps its lower half. */
static void key_masks(const struct policy_key *key, struct pacer_tier *t)
{
	bool src = key->kind == KEY_SRC || key->kind == KEY_SRC_DPORT || key->kind == KEY_FLOW;
	bool dst = key->kind == KEY_DST || key->kind == KEY_FLOW;
	uint32_t ports = 0, meta = 0;

	if (key->kind == KEY_FLOW) {
		ports = UINT32_MAX;
		meta = PACER_META_PROTO | PACER_META_MARKS;
	} else if (key->kind == KEY_SRC_DPORT) {
		ports = 0xffff;
		meta = PACER_META_MARKS;
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
	t->key_id = key_id(key);
	t->src_only = !dst && !ports && !meta;
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
	char where[64];

	snprintf(where, sizeof(where), "rules[%zu].limits[%zu]", rule, index);
	switch (bad) {
	case PACER_WINDOW_OK:
		return 0;
	case PACER_WINDOW_BAD_LIMIT:
		return policy_fail(error, limit->line,
				   "%s: its limit cannot be counted: use 1 to %u packets, or 1 to "
				   "%llu bytes",
				   where, PACER_LIMIT_MAX, PACER_LIMIT_BYTES);
	case PACER_WINDOW_BAD_TIME:
		return policy_fail(error, limit->line,
				   "%s: its window cannot be represented: use 1ns to %lluh", where,
				   PACER_WINDOW_NS_MAX / 3600000000000ull);
	case PACER_WINDOW_BAD_SLOTS:
		return policy_fail(error, limit->line,
				   "%s: its window cannot be cut into these slots: use 1 to %u, of "
				   "1ns or more each",
				   where, PACER_SLOTS_MAX);
	}
	return -1;
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
	return policy_fail(
	    error, limit->line,
	    "rules[%zu].limits[%zu].ceiling: a sketch of this gap admits up to %llupps: "
	    "write that or more, or limit the key \"all\"",
	    rule, index, (unsigned long long)least);
}

static wide units_lines(wide units)
{
	return (units + PACER_LINE_UNITS - 1) / PACER_LINE_UNITS;
}

/* Explicit sizes, in lines; 0: a share of the memory. What no table holds is LINES_NEVER. */
static uint64_t wanted_lines(const struct policy_limit *limit, const struct pacer_tier *t)
{
	wide n = limit->entries;

	if (limit->key.kind == KEY_ALL)
		return units_lines(t->units);
	if (limit->kind == LIMIT_GAP && limit->ceiling) {
		n = ceiling_cells(limit) / PACER_CELLS;
	} else if (limit->kind == LIMIT_GAP) {
		n = (n + PACER_CELLS - 1) / PACER_CELLS;
	} else {
		n = (n + 1) / 2;		   /* sets */
		n = units_lines(3 * n * t->units); /* and a shared entry for each */
	}
	return n < LINES_NEVER ? n : LINES_NEVER;
}

/*
 * A shared record for each set. In a flood of more sources than there are records, who comes new
 * shares at first, and the fewer others have been counted in his, the more of his packets pass.
 */
static void size_tier(struct pacer_tier *t, uint64_t lines)
{
	uint64_t records;

	if (t->kind == PACER_TIER_SKETCH) {
		t->sets = lines;
		return;
	}
	if (!t->key_id) { /* of all packets: the rest of the line is left over */
		t->sets = 0;
		t->shared = 1;
		return;
	}
	records = PACER_LINE_UNITS * lines / t->units;
	t->sets = records / 3;
	t->shared = records - 2ull * t->sets;
}

/* A tier on its way: with the limits it was made from. */
struct draft {
	struct pacer_tier tier;
	const struct policy_limit *sized; /* who says how large; NULL: a share of the memory */
	uint64_t lines;			  /* then this is what it says; else 0 */
	int gap, window;		  /* index of the limit, -1: none */
	int line;
	enum plan_state state;
	bool own; /* a gap that asked for a sketch */
};

/* The same of a throttle. */
struct draft_throttle {
	struct pacer_tier tier;
	int limit; /* -1: a retired one */
	enum plan_state state;
	bool same; /* it goes on with the values that it had */
};

struct draft_rule {
	struct draft at[PACER_TIERS_MAX];
	struct draft_throttle throttle[PACER_TIERS_MAX];
	size_t n, n_throttles; /* together PACER_TIERS_MAX at most */
};

/* What the new limits are made for. */
struct terms {
	uint64_t resolution_ns;
	uint32_t cpus;
};

/* Of the offset of the last admission in a record of this window: its unit is 2^this ns. */
static uint8_t last_shift(const struct pacer_window *w)
{
	uint8_t shift = 0;

	while (w->slot_ns >> shift >= UINT32_MAX)
		shift++;
	return shift;
}

/*
 * May a gap be kept in a record of this window? The unit of its last admission grows with the
 * window, and the gap is prolonged by less than one: it has to be a small share of the gap.
 */
static bool holds_gap(const struct pacer_window *w, uint64_t gap_ns)
{
	uint8_t shift = last_shift(w);

	return !shift || gap_ns / COMPILE_GAP_SHARE >> shift;
}

uint64_t compile_gap_more_ns(const struct pacer_tier *t)
{
	return t->kind == PACER_TIER_RECORD ? (1ull << t->last_shift) - 1 : 0;
}

static void finish_times(struct pacer_tier *t)
{
	uint64_t unit;

	t->idle_ns = PACER_IDLE_SLACK_NS;
	if (t->kind == PACER_TIER_RATE) /* after its TAT, an entry holds nothing */
		return;
	t->last_shift = last_shift(&t->window);
	unit = 1ull << t->last_shift;
	t->idle_ns = t->window.ring_ns;
	if (t->gap_ns && t->gap_ns + t->window.slot_ns + unit > t->idle_ns)
		t->idle_ns = t->gap_ns + t->window.slot_ns + unit;
	t->idle_ns += PACER_IDLE_SLACK_NS;
}

/* The tier of this rule that the gap or the window may join: one of the same key without. */
static struct draft *joinable(struct draft_rule *d, const struct pacer_tier *t, bool gap,
			      uint64_t resolution_ns)
{
	for (size_t i = 0; i < d->n; i++) {
		struct draft *at = &d->at[i];
		const struct pacer_tier *with = gap ? &at->tier : t, *of = gap ? t : &at->tier;

		if (at->tier.kind != PACER_TIER_RATE && same_key(&at->tier, t) &&
		    (gap ? at->gap < 0 && at->window >= 0
			 : at->window < 0 && at->gap >= 0 && !at->own) &&
		    holds_gap(&with->window, of->gap_ns - resolution_ns))
			return at;
	}
	return NULL;
}

static int no_tier(const struct draft_rule *d, size_t rule, const struct policy_limit *limit,
		   size_t index, struct policy_error *error)
{
	if (d->n + d->n_throttles < PACER_TIERS_MAX)
		return 0;
	return policy_fail(
	    error, limit->line,
	    "rules[%zu].limits[%zu]: a rule holds up to %u limits, those just retired "
	    "included: apply again when they have passed",
	    rule, index, PACER_TIERS_MAX);
}

static int add_throttle(struct draft_rule *d, const struct policy_limit *limit, size_t rule,
			size_t index, const struct terms *terms, struct policy_error *error)
{
	struct throttle_place at = {limit->line, "", 1};
	struct draft_throttle *draft = &d->throttle[d->n_throttles];

	if (no_tier(d, rule, limit, index, error))
		return -1;
	snprintf(at.path, sizeof(at.path), "rules[%zu].limits[%zu]", rule, index);
	*draft = (struct draft_throttle){{.kind = PACER_TIER_THROTTLE}, index, PLAN_NEW, false};
	key_masks(&limit->key, &draft->tier);
	d->n_throttles++;
	return throttle_profile(&limit->throttle, &at, terms->cpus, terms->resolution_ns,
				&draft->tier.throttle, error);
}

/* Does the rate let a packet through, the burst being a tick of the clock shorter? */
static bool opens(const struct pacer_rate *rate)
{
	uint32_t cost = rate->cost == PACER_COST_BYTES ? POLICY_FRAME_MAX : 1;

	return pacer_rate_check(rate, (struct pacer_fine){0, 0}, 1, cost);
}

static int add_rate(struct draft_rule *d, const struct policy_limit *limit, size_t rule,
		    size_t index, const struct terms *terms, struct policy_error *error)
{
	struct draft *at = &d->at[d->n];

	if (no_tier(d, rule, limit, index, error))
		return -1;
	*at = (struct draft){{.kind = PACER_TIER_RATE, .units = 1},
			     NULL,
			     0,
			     -1,
			     (int)index,
			     limit->line,
			     PLAN_NEW,
			     false};
	key_masks(&limit->key, &at->tier);
	d->n++;
	if (pacer_rate_profile(&at->tier.rate, limit->cost, limit->rate.amount, limit->rate.per_ns,
			       limit->burst, terms->resolution_ns) != PACER_RATE_OK ||
	    !opens(&at->tier.rate))
		return policy_fail(
		    error, limit->line,
		    "rules[%zu].limits[%zu].burst: a tick of the coarse clock "
		    "shorter, it lets no packet through: write more, or clock: exact",
		    rule, index);
	at->lines = wanted_lines(limit, &at->tier);
	at->sized = at->lines ? limit : NULL;
	return 0;
}

static int add_limit(struct draft_rule *d, const struct policy_limit *limit, size_t rule,
		     size_t index, const struct terms *terms, struct policy_error *error)
{
	bool gap = limit->kind == LIMIT_GAP;
	bool own = gap && (limit->ceiling || limit->entries || limit->rows != PACER_ROWS_MAX);
	struct pacer_tier t = {.kind = gap ? PACER_TIER_SKETCH : PACER_TIER_RECORD,
			       .units = PACER_LINE_UNITS};
	struct draft *at;

	key_masks(&limit->key, &t);
	if (gap)
		t.gap_ns = limit->gap_ns + terms->resolution_ns;
	else if (window_of(limit, terms->resolution_ns, rule, index, &t.window, error))
		return -1;
	at = own ? NULL : joinable(d, &t, gap, terms->resolution_ns);
	if (!at) {
		if (no_tier(d, rule, limit, index, error))
			return -1;
		at = &d->at[d->n++];
		*at = (struct draft){t, NULL, 0, -1, -1, limit->line, PLAN_NEW, own};
	}
	if (gap) {
		if (check_ceiling(limit, rule, index, error))
			return -1;
		at->gap = index;
		at->tier.gap_ns = t.gap_ns;
		at->tier.rows = limit->key.kind == KEY_ALL ? 1 : limit->rows;
	} else {
		at->window = index;
		at->tier.kind = PACER_TIER_RECORD;
		at->tier.window = t.window;
		at->tier.units = t.window.units;
	}
	if (own || !gap || limit->key.kind == KEY_ALL) {
		at->lines = wanted_lines(limit, &at->tier);
		at->sized = at->lines ? limit : NULL;
	}
	return 0;
}

/* --- keeping state -------------------------------------------------------------------------- */

/* A change of policy: what decides which limit goes on with which state. */
struct succession {
	const struct compile_previous *previous;
	bool exact; /* the new policy's clock */
	uint64_t now_ns, resolution_ns;
	uint64_t added_ns; /* the resolution that the new limits include */
	uint32_t cpus;
	uint8_t secret; /* the previous policy's */
	bool rotate;
};

/*
 * The coarse clock's times lie up to its resolution before the truth. An exact policy can go on
 * with them only under a gap that is larger than the old one, which included that.
 */
static bool clock_differs(const struct succession *change, const struct draft *d,
			  const struct pacer_tier *old)
{
	bool coarse = old->until_ns || !(change->previous->bin->flags & PACER_CLOCK_EXACT);

	if (old->kind == PACER_TIER_RATE)
		return change->exact && coarse;
	return change->exact && coarse && d->tier.gap_ns && d->tier.gap_ns < old->gap_ns;
}

/* What the two count, and how: alike but for the value that is not to be passed. */
static bool same_meter(const struct pacer_tier *a, const struct pacer_tier *b)
{
	const struct pacer_window *w = &a->window, *v = &b->window;

	switch ((enum pacer_tier_kind)a->kind) {
	case PACER_TIER_SKETCH:
		return a->rows == b->rows;
	case PACER_TIER_RECORD:
		return w->slot_ns == v->slot_ns && w->ring == v->ring && w->cost == v->cost &&
		       w->cost_shift == v->cost_shift;
	case PACER_TIER_RATE: /* a TAT is a time at one rate */
		return a->rate.unit_ns == b->rate.unit_ns &&
		       a->rate.unit_frac == b->rate.unit_frac && a->rate.cost == b->rate.cost;
	case PACER_TIER_THROTTLE:
	case PACER_TIER_NONE:
		break;
	}
	return false;
}

/* The same limit on the same key, whatever its values and the width of its records. */
static bool same_limit(const struct succession *change, const struct draft *d,
		       const struct pacer_tier *old)
{
	return d->tier.kind == old->kind && same_key(&d->tier, old) &&
	       (old->secret == change->secret || !compile_hashed(old)) &&
	       same_meter(&d->tier, old) && !clock_differs(change, d, old);
}

/* What of the limit may not be passed, in units of its own: more is looser. */
static wide allowance(const struct pacer_tier *t)
{
	switch ((enum pacer_tier_kind)t->kind) {
	case PACER_TIER_RECORD:
		return t->window.limit;
	case PACER_TIER_RATE:
		return (wide)t->rate.burst_ns << 32 | t->rate.burst_frac;
	case PACER_TIER_SKETCH:
	case PACER_TIER_THROTTLE:
	case PACER_TIER_NONE:
		break;
	}
	return 0;
}

/* Wide records serve limits that narrow ones would be enough for, too. */
static void widen(struct draft *d, const struct pacer_tier *old)
{
	if (d->tier.kind == PACER_TIER_RECORD && old->units > d->tier.units) {
		pacer_window_widen(&d->tier.window);
		d->tier.units = d->tier.window.units;
	}
	if (d->sized)
		d->lines = wanted_lines(d->sized, &d->tier);
}

static bool same_shape(const struct succession *change, const struct draft *d,
		       const struct pacer_tier *old)
{
	struct draft wide = *d;

	if (!same_limit(change, d, old) || d->tier.units > old->units)
		return false;
	widen(&wide, old);
	return !wide.lines || wide.lines == compile_tier_lines(old);
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
	return d->tier.gap_ns < old->gap_ns || allowance(&d->tier) > allowance(old);
}

/* The gap of a key may join any of its windows: the one that it was with knows its past. */
static void bring_gap(const struct succession *change, struct draft_rule *d, struct draft *to,
		      const struct pacer_tier *old)
{
	for (size_t k = 0; k < d->n; k++) {
		struct draft *from = &d->at[k], joined = *to;

		if (from->state != PLAN_NEW || from->gap < 0 || from->window < 0 ||
		    !same_key(&from->tier, old) ||
		    !holds_gap(&to->tier.window, from->tier.gap_ns - change->added_ns))
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
	return allowance(a) != allowance(b) && (allowance(a) < allowance(b)) == looser;
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
		if (i >= old->n_tiers || t->kind == PACER_TIER_THROTTLE || !counts(change, t) ||
		    turn_of(t) != (int)turn)
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
	       (a->gap_ns > b->gap_ns || (a->kind == PACER_TIER_RECORD && b->kind == a->kind &&
					  same_span(&a->window, &b->window) &&
					  (uint64_t)a->window.limit << a->window.cost_shift <
					      (uint64_t)b->window.limit << b->window.cost_shift));
}

static bool alike(const struct succession *change, uint64_t a_ns, uint64_t b_ns)
{
	return (a_ns > b_ns ? a_ns - b_ns : b_ns - a_ns) <= change->resolution_ns + PACER_SLOTS_MAX;
}

/* The throttle's uses cool for as long as the window is, but for what the clock adds. */
static bool like_window(const struct succession *change, const struct pacer_throttle_profile *t,
			const struct pacer_window *w)
{
	return w->ring && w->cost == PACER_COST_PACKETS &&
	       alike(change, t->cooldown_ns, w->slot_ns * (w->ring - 1));
}

/*
 * Does the rule have a limit that has not the past of this one, the heir of `old`, and may need it:
 * of the same key, or, where a gap goes, of any? One that stands in may be young itself.
 */
static bool is_needed(const struct succession *change, const struct draft_rule *d,
		      const struct draft *heir, const struct pacer_tier *old,
		      const struct pacer_tier *const past[PACER_TIERS_MAX])
{
	for (size_t k = 0; k < d->n_throttles && !old->key_id; k++) {
		const struct draft_throttle *at = &d->throttle[k];

		if (at->state == PLAN_NEW ||
		    (heir->tier.kind == PACER_TIER_RECORD &&
		     like_window(change, &at->tier.throttle, &heir->tier.window) &&
		     at->tier.throttle.limit < heir->tier.window.limit))
			return true;
	}
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
static bool part(const struct succession *change, struct draft_rule *d,
		 const struct pacer_rule *old, struct draft *heir[PACER_TIERS_MAX])
{
	const struct pacer_tier *past[PACER_TIERS_MAX] = {0};
	bool again = true, any = false;

	for (size_t i = 0; i < old->n_tiers; i++)
		if (heir[i])
			past[heir[i] - d->at] = &old->tier[i];
	while (again) {
		again = false;
		for (size_t i = 0; i < old->n_tiers; i++) {
			const struct pacer_tier *t = &old->tier[i];

			if (!heir[i] || !loosened(heir[i], t) ||
			    (!t->until_ns && !is_needed(change, d, heir[i], t, past)))
				continue;
			past[heir[i] - d->at] = NULL;
			heir[i]->state = PLAN_NEW;
			heir[i] = NULL;
			again = any = true;
		}
	}
	return any;
}

/* --- the same of throttles ------------------------------------------------------------------ */

/*
 * Who goes on with an old throttle's state: first one with its values, then one of its cooldown
 * that is tighter, then any of its cooldown, and last the only throttle of the rule if the old one
 * was that, too: a value that was set.
 */
enum likeness { LIKE_SAME, LIKE_TIGHTER, LIKE_COOLDOWN, LIKE_ONLY, LIKE_COUNT };

static bool throttle_loosened(const struct draft_throttle *d, const struct pacer_tier *old)
{
	return d->tier.throttle.limit > old->throttle.limit ||
	       d->tier.throttle.cooldown_ns < old->throttle.cooldown_ns;
}

/*
 * Not for a throttle that is loosened but was retired, as above; nor where the coarse clock's times
 * lie before the truth, as for a gap; nor where CPUs may still hold more uses than the new limit.
 */
static bool may_succeed(const struct succession *change, const struct draft_throttle *d,
			const struct pacer_tier *old)
{
	const struct pacer_throttle_profile *a = &d->tier.throttle, *b = &old->throttle;
	bool coarse = old->until_ns || !(change->previous->bin->flags & PACER_CLOCK_EXACT);

	return d->state == PLAN_NEW && !(old->until_ns && throttle_loosened(d, old)) &&
	       !(change->exact && coarse && a->cooldown_ns < b->cooldown_ns) &&
	       (uint64_t)change->cpus * (b->lease - 1) <= a->limit;
}

static size_t throttles_in_force(const struct pacer_rule *rule)
{
	size_t n = 0;

	for (size_t i = 0; i < rule->n_tiers; i++)
		n += rule->tier[i].kind == PACER_TIER_THROTTLE && !rule->tier[i].until_ns;
	return n;
}

static bool is_like(const struct succession *change, const struct draft_throttle *d,
		    const struct pacer_tier *old, enum likeness like)
{
	const struct pacer_throttle_profile *a = &d->tier.throttle, *b = &old->throttle;

	if (like == LIKE_ONLY)
		return !old->until_ns;
	return alike(change, a->cooldown_ns, b->cooldown_ns) &&
	       (like == LIKE_COOLDOWN || (like == LIKE_SAME && a->limit == b->limit) ||
		(like == LIKE_TIGHTER && a->limit <= b->limit));
}

/* Of those that are as like, the one with the largest limit that is tighter, or the least that is
 * looser.
 */
static struct draft_throttle *find_throttle(const struct succession *change, struct draft_rule *d,
					    const struct pacer_tier *old, enum likeness like)
{
	struct draft_throttle *best = NULL;

	for (size_t k = 0; k < d->n_throttles; k++) {
		struct draft_throttle *at = &d->throttle[k];

		if (may_succeed(change, at, old) && is_like(change, at, old, like) &&
		    (!best || (at->tier.throttle.limit > best->tier.throttle.limit) ==
				  (like == LIKE_TIGHTER)))
			best = at;
	}
	return best;
}

/* The tightest of the old throttles that count and have no heir yet: it chooses first. */
static size_t next_throttle(const struct succession *change, const struct pacer_rule *old,
			    struct draft_throttle *const heir[PACER_TIERS_MAX],
			    const bool asked[PACER_TIERS_MAX])
{
	size_t best = old->n_tiers;

	for (size_t i = 0; i < old->n_tiers; i++) {
		const struct pacer_tier *t = &old->tier[i];

		if (t->kind == PACER_TIER_THROTTLE && !heir[i] && !asked[i] && counts(change, t) &&
		    (best == old->n_tiers || t->throttle.limit < old->tier[best].throttle.limit))
			best = i;
	}
	return best;
}

static void find_throttles(const struct succession *change, struct draft_rule *d,
			   const struct pacer_rule *old,
			   struct draft_throttle *heir[PACER_TIERS_MAX])
{
	bool only = d->n_throttles == 1 && throttles_in_force(old) == 1;
	size_t i;

	for (enum likeness like = LIKE_SAME; like < (only ? LIKE_COUNT : LIKE_ONLY); like++) {
		bool asked[PACER_TIERS_MAX] = {false};

		while ((i = next_throttle(change, old, heir, asked)) < old->n_tiers) {
			asked[i] = true;
			heir[i] = find_throttle(change, d, &old->tier[i], like);
			if (!heir[i])
				continue;
			heir[i]->state = PLAN_KEPT;
			heir[i]->same = like == LIKE_SAME;
		}
	}
}

/* May the throttle ask for what `heir` has ceased to, as above? It may be young itself. */
static bool throttle_stands_in(const struct succession *change, const struct draft_throttle *at,
			       const struct draft_throttle *heir)
{
	const struct pacer_throttle_profile *a = &at->tier.throttle, *b = &heir->tier.throttle;

	return at != heir && (!at->same || (alike(change, a->cooldown_ns, b->cooldown_ns) &&
					    a->limit < b->limit));
}

/* Does the rule have a limit of all packets that has not the past of this one, and may need it? */
static bool throttle_needed(const struct succession *change, const struct draft_rule *d,
			    const struct draft_throttle *heir)
{
	for (size_t k = 0; k < d->n_throttles; k++)
		if (throttle_stands_in(change, &d->throttle[k], heir))
			return true;
	for (size_t k = 0; k < d->n; k++) {
		const struct draft *at = &d->at[k];

		if (!at->tier.key_id &&
		    (at->state == PLAN_NEW ||
		     (at->tier.kind == PACER_TIER_RECORD &&
		      like_window(change, &heir->tier.throttle, &at->tier.window) &&
		      at->tier.window.limit < heir->tier.throttle.limit)))
			return true;
	}
	return false;
}

static bool part_throttles(const struct succession *change, struct draft_rule *d,
			   const struct pacer_rule *old,
			   struct draft_throttle *heir[PACER_TIERS_MAX])
{
	bool any = false;

	for (size_t i = 0; i < old->n_tiers; i++) {
		if (!heir[i] || !throttle_loosened(heir[i], &old->tier[i]) ||
		    !throttle_needed(change, d, heir[i]))
			continue;
		heir[i]->state = PLAN_NEW;
		heir[i]->same = false;
		heir[i] = NULL;
		any = true;
	}
	return any;
}

/*
 * A limit that is raised beyond what its narrow records count to gets new ones. The old ones stay
 * until their window has passed, and under as much of the new limit as they can count to, if state
 * could have gone on under it: what they have counted keeps the new limit, too.
 */
static void raise_narrow(const struct succession *change, const struct draft_rule *d,
			 struct draft *const heir[PACER_TIERS_MAX], const struct pacer_rule *rule,
			 struct pacer_tier *old)
{
	const struct pacer_tier *past[PACER_TIERS_MAX] = {0};

	if (old->kind != PACER_TIER_RECORD || !pacer_window_narrow(&old->window) || old->until_ns)
		return;
	for (size_t i = 0; i < rule->n_tiers; i++)
		if (heir[i])
			past[heir[i] - d->at] = &rule->tier[i];
	for (size_t k = 0; k < d->n; k++) {
		const struct draft *at = &d->at[k];

		if (at->state != PLAN_NEW || !same_limit(change, at, old) ||
		    pacer_window_narrow(&at->tier.window))
			continue;
		past[k] = old;
		if (!is_needed(change, d, at, old, past))
			old->window.limit = PACER_NARROW_LIMIT;
		return;
	}
}

static int retire(struct draft_rule *d, const struct pacer_tier *t, const struct policy_rule *rule,
		  struct plan *plan, struct policy_error *error)
{
	struct pacer_tier old = *t;

	if (d->n + d->n_throttles == PACER_TIERS_MAX)
		return policy_fail(
		    error, rule->line,
		    "rule %s: a rule holds up to %u limits, and those that this change "
		    "retires stay until their windows have passed: apply again later, or "
		    "in steps",
		    rule->name, PACER_TIERS_MAX);
	if (!t->until_ns)
		old.until_ns = COMPILE_UNTIL_SET;
	if (t->kind == PACER_TIER_THROTTLE)
		d->throttle[d->n_throttles++] =
		    (struct draft_throttle){old, -1, PLAN_RETIRED, false};
	else
		d->at[d->n++] =
		    (struct draft){old, NULL, 0, -1, -1, rule->line, PLAN_RETIRED, false};
	plan->n_retired++;
	return 0;
}

/* What goes on with its state goes on retired, under the secret before, and a new one beside it. */
static int turn_over(struct draft_rule *d, struct draft *heir, const struct policy_rule *rule,
		     struct plan *plan, struct policy_error *error)
{
	if (d->n + d->n_throttles == PACER_TIERS_MAX)
		return policy_fail(
		    error, rule->line,
		    "rule %s: a rule holds up to %u limits, and a new secret wants two places "
		    "for each, those just retired included: use fewer, or unload and load, "
		    "which draws a secret, too",
		    rule->name, PACER_TIERS_MAX);
	if (retire(d, &heir->tier, rule, plan, error))
		return -1;
	heir->state = heir->tier.sets < COMPILE_MOVE_SETS ? PLAN_NEW : PLAN_MOVED;
	if (heir->state == PLAN_NEW)
		heir->lines = compile_tier_lines(&heir->tier);
	return 0;
}

/* Tiers in the same lines have to agree on when a record is idle. */
static void agree(struct draft_rule *d)
{
	for (size_t i = 0; i < d->n; i++)
		for (size_t k = 0; k < d->n; k++) {
			struct draft *a = &d->at[i], *b = &d->at[k];

			if (a->state != PLAN_NEW && b->state != PLAN_NEW &&
			    a->tier.base == b->tier.base && a->tier.idle_ns < b->tier.idle_ns)
				a->tier.idle_ns = b->tier.idle_ns;
		}
}

/* The limits of another secret: of all that begin anew, and of what does not depend on it. */
static int rotate(const struct succession *change, struct draft_rule *d,
		  const struct policy_rule *rule, struct plan *plan, struct policy_error *error)
{
	size_t n = d->n;

	for (size_t k = 0; k < n; k++) {
		struct draft *at = &d->at[k];

		if (at->state == PLAN_RETIRED)
			continue;
		if (at->state == PLAN_KEPT && compile_hashed(&at->tier) &&
		    turn_over(d, at, rule, plan, error))
			return -1;
		at->tier.secret = change->secret ^ 1;
	}
	return 0;
}

static int inherit(const struct succession *change, struct draft_rule *d,
		   const struct policy_rule *rule, struct plan *plan, struct policy_error *error)
{
	const struct pacer_rule *old = previous_rule(change->previous, rule->name);
	struct draft *heir[PACER_TIERS_MAX];
	struct draft_throttle *throttle[PACER_TIERS_MAX] = {NULL};

	if (!old)
		return 0;
	find_heirs(change, d, old, heir);
	find_throttles(change, d, old, throttle);
	while (part(change, d, old, heir) || part_throttles(change, d, old, throttle))
		;
	for (size_t i = 0; i < old->n_tiers; i++) {
		struct pacer_tier t = old->tier[i];

		if (heir[i]) {
			widen(heir[i], &t);
			heir[i]->tier.base = t.base;
			heir[i]->tier.sets = t.sets;
			heir[i]->tier.shared = t.shared;
			if (t.kind == PACER_TIER_RATE)
				heir[i]->tier.rate.begin_ns = t.rate.begin_ns;
		} else if (throttle[i]) {
			throttle[i]->tier.base = t.base;
		} else if (counts(change, &t)) {
			raise_narrow(change, d, heir, old, &t);
			if (retire(d, &t, rule, plan, error))
				return -1;
		}
	}
	agree(d);
	return 0;
}

/* --- room in the table ---------------------------------------------------------------------- */

struct region {
	uint64_t base, lines;
};

struct regions {
	struct region at[2 * PACER_RULES_MAX * PACER_TIERS_MAX + 4];
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
		return policy_fail(
		    error, d->line,
		    "rule %s: no room for its state: %llu bytes wanted, %llu free together: "
		    "give it fewer entries or raise memory and load again",
		    rule, (unsigned long long)lines * 64, (unsigned long long)free.lines * 64);
	d->tier.base = free.base;
	size_tier(&d->tier, lines);
	occupy(r, free.base, lines);
	return 0;
}

/* --- bans ----------------------------------------------------------------------------------- */

uint64_t compile_ban_lines(const struct pacer_bans *bans)
{
	return bans->sets ? (uint64_t)bans->sets * PACER_BAN_WAYS + bans->filter_mask + 1 : 0;
}

/* The filter has a line, which is eight cells, an entry at least. */
static int place_bans(const struct policy *policy, const struct compile_previous *previous,
		      struct regions *r, struct pacer_bans *bans, struct plan *plan,
		      struct policy_error *error)
{
	const struct pacer_bans *old = previous ? &previous->bin->bans : NULL;
	uint32_t filter = 1;
	struct region free;

	if (!policy_bans(policy))
		return 0;
	bans->sets = (policy->bans + PACER_BAN_WAYS - 1) / PACER_BAN_WAYS;
	while (filter < bans->sets * PACER_BAN_WAYS)
		filter *= 2;
	bans->filter_mask = filter - 1;
	plan->lines_used += compile_ban_lines(bans);
	if (old && old->sets == bans->sets) {
		*bans = *old;
		bans->moving |= previous->rotate;
		plan->bans = PLAN_KEPT;
		return 0;
	}
	free = find_free(r, compile_ban_lines(bans));
	if (free.lines < compile_ban_lines(bans))
		return policy_fail(
		    error, 0,
		    "bans: no room for the table of %llu: %llu bytes wanted, %llu free "
		    "together: write fewer or raise memory and load again",
		    (unsigned long long)policy->bans,
		    (unsigned long long)compile_ban_lines(bans) * 64,
		    (unsigned long long)free.lines * 64);
	bans->base = free.base;
	bans->filter = free.base + bans->sets * PACER_BAN_WAYS;
	occupy(r, free.base, compile_ban_lines(bans));
	return 0;
}

/* --- the limits' room ----------------------------------------------------------------------- */

static int place_all(struct draft_rule *drafts, const struct policy *policy, struct regions *r,
		     uint64_t taken, struct policy_error *error)
{
	uint64_t share, autos = 0, left = 0;

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

/* How long a bucket is open, or cools: what is shorter. */
static uint64_t fine_of(const struct policy_throttle *t)
{
	uint64_t open_ns = t->max_cooldown_ns - t->cooldown_ns;

	return open_ns < t->cooldown_ns ? open_ns : t->cooldown_ns;
}

/* The shortest time that the limit tells apart. */
static uint64_t fine_ns(const struct policy_limit *l)
{
	switch (l->kind) {
	case LIMIT_GAP:
		return l->gap_ns;
	case LIMIT_WINDOW:
		return l->window_ns / (l->slots ? l->slots : 1);
	case LIMIT_RATE: /* a burst that is a tick shorter is a packet shorter, at the least */
		return 0;
	case LIMIT_THROTTLE:
		break;
	}
	return fine_of(&l->throttle);
}

static bool coarse_enough(const struct policy *policy, uint64_t resolution_ns)
{
	for (size_t r = 0; r < policy->n_rules; r++)
		for (size_t i = 0; i < policy->rule[r].n_limits; i++) {
			const struct policy_limit *l = &policy->rule[r].limit[i];
			uint64_t fine = fine_ns(l);

			if (fine / COARSE_TICKS < resolution_ns)
				return false;
		}
	for (size_t i = 0; i < policy->n_pools; i++)
		if (fine_of(&policy->pool[i].throttle) / COARSE_TICKS < resolution_ns)
			return false;
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
			return policy_fail(
			    error, policy->rule[r].line,
			    "rule %s: no counter is left beside those of the rules in "
			    "force: apply first with some of the new rules, then with all",
			    policy->rule[r].name);
	}
	return 0;
}

static void emit_throttles(const struct draft_rule *d, size_t r, struct pacer_rule *rule,
			   struct plan *plan)
{
	for (size_t k = 0; k < d->n_throttles; k++) {
		const struct draft_throttle *t = &d->throttle[k];

		rule->tier[d->n + k] = t->tier;
		if (t->limit >= 0)
			plan->limit[plan->n_limits++] =
			    (struct plan_limit){r, t->limit, d->n + k, t->state};
	}
}

static void emit_rule(const struct policy_rule *rule, uint64_t resolution_ns,
		      struct pacer_rule *out)
{
	out->over = rule->over;
	out->pool = rule->over == PACER_OVER_POOL ? rule->pool : 0;
	out->ban_ns = rule->ban_ns ? rule->ban_ns + resolution_ns : 0;
}

static bool is_plain(const struct pacer_policy *bin, const struct pacer_rule *rule)
{
	return rule->n_tiers == 1 && rule->over == PACER_OVER_DROP && !rule->ban_ns &&
	       !(bin->flags & PACER_MONITOR);
}

/* Are its lines those of a tier before it? */
static bool lines_are_shared(const struct draft_rule *d, size_t k)
{
	for (size_t i = 0; i < k; i++)
		if (d->at[i].tier.base == d->at[k].tier.base)
			return true;
	return false;
}

/* A rate that begins anew while another of its key is still asked. */
static void begin_rates(struct draft_rule *d)
{
	for (size_t k = 0; k < d->n; k++)
		for (size_t i = 0; i < d->n; i++) {
			struct pacer_tier *t = &d->at[k].tier;
			const struct draft *old = &d->at[i];

			if (t->kind == PACER_TIER_RATE && old->tier.kind == PACER_TIER_RATE &&
			    old->state == PLAN_RETIRED && same_key(&old->tier, t) &&
			    (d->at[k].state == PLAN_NEW || d->at[k].state == PLAN_MOVED))
				t->rate.begin_ns = COMPILE_UNTIL_SET;
		}
}

static void emit(const struct policy *policy, struct draft_rule *drafts, struct pacer_policy *bin,
		 struct plan *plan)
{
	for (size_t r = 0; r < policy->n_rules; r++) {
		begin_rates(&drafts[r]);
		emit_rule(&policy->rule[r], plan->resolution_ns, &bin->rule[r]);
		bin->rule[r].n_tiers = drafts[r].n + drafts[r].n_throttles;
		for (size_t k = 0; k < drafts[r].n; k++) {
			const struct draft *d = &drafts[r].at[k];
			struct plan_limit at = {r, 0, k, d->state};

			bin->rule[r].tier[k] = d->tier;
			if (!lines_are_shared(&drafts[r], k))
				plan->lines_used += compile_tier_lines(&d->tier);
			at.limit = d->gap;
			if (d->gap >= 0)
				plan->limit[plan->n_limits++] = at;
			at.limit = d->window;
			if (d->window >= 0)
				plan->limit[plan->n_limits++] = at;
		}
		emit_throttles(&drafts[r], r, &bin->rule[r], plan);
		bin->rule[r].plain = is_plain(bin, &bin->rule[r]);
	}
}

/* A ban is remembered by its rule's name, as a number. */
static int number_rules(const struct policy *policy, struct pacer_policy *bin,
			struct policy_error *error)
{
	for (size_t r = 0; r < policy->n_rules; r++) {
		bin->rule[r].id = compile_name_id(policy->rule[r].name);
		for (size_t k = 0; k < r; k++)
			if (bin->rule[k].id == bin->rule[r].id)
				return policy_fail(
				    error, policy->rule[r].line,
				    "rule %s: its name and %s have the same hash: give one "
				    "of them another name",
				    policy->rule[r].name, policy->rule[k].name);
	}
	return 0;
}

/* The table as the previous policy, if there is one, leaves it. */
static int survey(const struct policy *policy, const struct compile_previous *previous,
		  struct regions *regions, struct policy_error *error)
{
	const struct pacer_bans *bans = previous ? &previous->bin->bans : NULL;

	memset(regions, 0, sizeof(*regions));
	if (!previous) {
		regions->total = policy->memory_bytes / sizeof(struct pacer_line);
		if (!regions->total)
			return policy_fail(error, 0,
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

			if (t->kind != PACER_TIER_THROTTLE)
				occupy(regions, t->base, compile_tier_lines(t));
		}
	if (bans->sets)
		occupy(regions, bans->base, compile_ban_lines(bans));
	return 0;
}

static int add(struct draft_rule *d, const struct policy_limit *limit, size_t rule, size_t index,
	       const struct terms *terms, struct policy_error *error)
{
	switch (limit->kind) {
	case LIMIT_GAP:
	case LIMIT_WINDOW:
		break;
	case LIMIT_RATE:
		return add_rate(d, limit, rule, index, terms, error);
	case LIMIT_THROTTLE:
		return add_throttle(d, limit, rule, index, terms, error);
	}
	return add_limit(d, limit, rule, index, terms, error);
}

static int draft_all(const struct policy *policy, const struct succession *change,
		     const struct terms *terms, struct draft_rule *drafts, struct plan *plan,
		     struct policy_error *error)
{
	for (size_t r = 0; r < policy->n_rules; r++) {
		const struct policy_rule *rule = &policy->rule[r];

		drafts[r].n = drafts[r].n_throttles = 0;
		for (size_t i = 0; i < rule->n_limits; i++)
			if (add(&drafts[r], &rule->limit[i], r, i, terms, error))
				return -1;
		for (size_t k = 0; k < drafts[r].n; k++) {
			finish_times(&drafts[r].at[k].tier);
			drafts[r].at[k].tier.secret = change->secret;
		}
		if (inherit(change, &drafts[r], rule, plan, error) ||
		    (change->rotate && rotate(change, &drafts[r], rule, plan, error)))
			return -1;
	}
	return 0;
}

/* States for the throttles of limits that have none yet. */
static int take_states(const struct policy *policy, struct draft_rule *drafts,
		       struct throttle_states *states, struct policy_error *error)
{
	for (size_t r = 0; r < policy->n_rules; r++)
		for (size_t k = 0; k < drafts[r].n_throttles; k++) {
			struct draft_throttle *t = &drafts[r].throttle[k];
			int state;

			if (t->state != PLAN_NEW)
				continue;
			state = throttle_take(states, policy->rule[r].limit[t->limit].line, error);
			if (state < 0)
				return -1;
			t->tier.base = state;
		}
	return 0;
}

static int place_throttles(const struct policy *policy, const struct compile_previous *previous,
			   const struct compile_host *host, struct draft_rule *drafts,
			   struct pacer_policy *bin, struct plan *plan, struct policy_error *error)
{
	struct throttle_states states;

	throttle_survey(previous ? previous->bin : NULL, host->now_ns, &states);
	if (take_states(policy, drafts, &states, error))
		return -1;
	return throttle_pools(policy, previous, host, &states, bin, plan, error);
}

static int place_lines(const struct policy *policy, const struct compile_previous *previous,
		       struct draft_rule *drafts, struct pacer_policy *bin, struct plan *plan,
		       struct policy_error *error)
{
	static struct regions regions;

	if (survey(policy, previous, &regions, error) ||
	    place_bans(policy, previous, &regions, &bin->bans, plan, error) ||
	    place_all(drafts, policy, &regions, compile_ban_lines(&bin->bans), error))
		return -1;
	plan->lines = regions.total;
	return 0;
}

/* Is the secret that is to be the next one still that of the last rotation? */
static int may_rotate(const struct compile_previous *previous, const struct compile_host *host,
		      struct policy_error *error)
{
	uint64_t until_ns, now_ns = host->now_ns;

	if (!previous || !previous->rotate)
		return 0;
	if (previous->bin->bans.moving)
		return policy_fail(error, 0,
				   "bans of the last rotation wait for room in their table: "
				   "rotate when some have run out, or unban some");
	until_ns = compile_drained_ns(previous->bin);
	/* What the coarse clock reads as before the end may be later. */
	if (!until_ns || (until_ns != COMPILE_UNTIL_SET && until_ns + host->resolution_ns < now_ns))
		return 0;
	if (until_ns == COMPILE_UNTIL_SET)
		return policy_fail(error, 0,
				   "the last rotation was cut off: apply the policy again first");
	return policy_fail(error, 0,
			   "the secret before the last rotation is needed for another %.1f s: "
			   "rotate then",
			   (until_ns + host->resolution_ns - now_ns) / 1e9 + 0.1);
}

int compile_policy(const struct policy *policy, const struct compile_previous *previous,
		   const struct compile_host *host, struct pacer_policy *bin, struct plan *plan,
		   struct policy_error *error)
{
	static struct draft_rule drafts[PACER_RULES_MAX];
	bool exact = policy->clock == CLOCK_EXACT ||
		     (policy->clock == CLOCK_AUTO && !coarse_enough(policy, host->resolution_ns));
	struct terms terms = {exact ? 0 : host->resolution_ns, host->cpus};
	struct succession change = {.previous = previous,
				    .exact = exact,
				    .now_ns = host->now_ns,
				    .resolution_ns = host->resolution_ns,
				    .added_ns = terms.resolution_ns,
				    .cpus = host->cpus};

	memset(bin, 0, sizeof(*bin));
	memset(plan, 0, sizeof(*plan));
	if (may_rotate(previous, host, error))
		return -1;
	change.secret = previous ? previous->bin->secret : 0;
	change.rotate = plan->rotated = previous && previous->rotate;
	bin->secret = change.secret ^ change.rotate;
	plan->resolution_ns = terms.resolution_ns;
	plan->cpus = host->cpus;
	if (compile_classifier(policy, bin, error) ||
	    number_counters(policy, previous, bin, error) || number_rules(policy, bin, error) ||
	    draft_all(policy, &change, &terms, drafts, plan, error) ||
	    place_throttles(policy, previous, host, drafts, bin, plan, error) ||
	    place_lines(policy, previous, drafts, bin, plan, error))
		return -1;
	/* A retired limit of an exact policy does not include the coarse clock's resolution. */
	exact |= plan->n_retired && previous->bin->flags & PACER_CLOCK_EXACT;
	bin->flags = (policy->monitor ? PACER_MONITOR : 0) |
		     (policy->unparsed_drop ? PACER_UNPARSED_DROP : 0) |
		     (exact ? PACER_CLOCK_EXACT : 0);
	bin->serial = previous ? previous->bin->serial + 1 : 1;
	bin->sampling = sampling_compile(&policy->sample, bin, previous ? previous->bin : NULL,
					 terms.resolution_ns, host->now_ns);
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
		    (reason == PACER_DENY_WINDOW && kind != LIMIT_WINDOW) ||
		    (reason == PACER_DENY_RATE && kind != LIMIT_RATE) ||
		    (reason == PACER_DENY_THROTTLE && kind != LIMIT_THROTTLE))
			continue;
		if (found < 0 || (int)at->limit < found)
			found = at->limit;
	}
	return found;
}
