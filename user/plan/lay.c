/* SPDX-License-Identifier: GPL-2.0-only */
/* Where state lies: in the first free run of lines, beside all that is in use. */
#include <string.h>

#include "config/units.h"
#include "plan/compile.h"
#include "plan/draft.h"
#include "plan/flood.h"
#include "plan/throttles.h"

/* Of a table's lines that limits without a size share; the rest is for later changes of policy. */
#define SHARE_NUM	  3
#define SHARE_DEN	  4
#define FLOOD_LINES_MAX	  ((PACER_LINES_MAX + 1) / SHARE_DEN * SHARE_NUM)
#define LIMITER_LINES_MIN 32

struct region {
	uint64_t base, lines;
};

struct regions {
	struct region at[2 * PACER_RULES_MAX * PACER_LIMITERS_MAX + 4];
	size_t n;
	uint64_t total;
	bool grows; /* the table is not made yet */
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

	if (free.lines < lines)
		return policy_fail(
		    error, d->line,
		    "rule %s: no room for its state: %llu bytes wanted, %llu free together: "
		    "give it fewer entries or raise memory and load again",
		    rule, (unsigned long long)lines * 64, (unsigned long long)free.lines * 64);
	d->limiter.base = free.base;
	kind_of_limiter(&d->limiter)->size(&d->limiter, lines);
	occupy(r, free.base, lines);
	return 0;
}

uint64_t compile_ban_lines(const struct pacer_bans *bans)
{
	return bans->sets ? (uint64_t)bans->sets * PACER_BAN_WAYS + bans->filter_mask + 2 : 0;
}

/* The filter has a line, which is eight cells, an entry at least. */
static void size_bans(const struct policy *policy, struct pacer_bans *bans)
{
	uint32_t filter = 1;

	bans->sets = (policy->bans + PACER_BAN_WAYS - 1) / PACER_BAN_WAYS;
	while (filter < bans->sets * PACER_BAN_WAYS)
		filter *= 2;
	bans->filter_mask = filter - 1;
}

/* Behind all that is in use, in lines that the table gets for it. */
static struct region find_behind(struct regions *r, uint64_t lines)
{
	uint64_t end = 0;

	for (size_t i = 0; i < r->n; i++)
		if (r->at[i].base + r->at[i].lines > end)
			end = r->at[i].base + r->at[i].lines;
	if (lines > PACER_LINES_MAX - end)
		return (struct region){end, PACER_LINES_MAX - end};
	if (r->total < end + lines)
		r->total = end + lines;
	return (struct region){end, lines};
}

/* Lines of a table of `n`, which the policy's `field` asks for; *base is the first. */
static int claim(struct regions *r, uint64_t lines, const char *field, uint64_t n, uint32_t *base,
		 struct policy_error *error)
{
	struct region free = find_free(r, lines);

	if (free.lines < lines && r->grows)
		free = find_behind(r, lines);
	if (free.lines < lines)
		return policy_fail(error, 0,
				   "%s: no room for the table of %llu: %llu bytes wanted, %llu "
				   "free together: write fewer or raise memory and load again",
				   field, (unsigned long long)n, (unsigned long long)lines * 64,
				   (unsigned long long)free.lines * 64);
	*base = free.base;
	occupy(r, free.base, lines);
	return 0;
}

/* In the place that it has, if its size is the same. */
static void size_bans_after(const struct policy *policy, const struct compile_previous *previous,
			    struct pacer_bans *bans, struct plan *plan)
{
	const struct pacer_bans *old = previous ? &previous->bin->bans : NULL;

	if (!policy_bans(policy))
		return;
	size_bans(policy, bans);
	plan->lines_used += compile_ban_lines(bans);
	if (!old || old->sets != bans->sets)
		return;
	*bans = *old;
	memset(bans->len4, 0, sizeof(bans->len4)); /* the tools say anew (ban_notes.h) */
	memset(bans->len6, 0, sizeof(bans->len6));
	bans->moving |= previous->rotate;
	plan->bans = PLAN_KEPT;
}

static int place_bans(const struct policy *policy, const struct compile_previous *previous,
		      struct regions *r, struct pacer_bans *bans, const struct plan *plan,
		      struct policy_error *error)
{
	if (!bans->sets || plan->bans == PLAN_KEPT)
		return 0;
	if (previous && previous->bin->bans.sets && previous->trial)
		return policy_fail(error, 0,
				   "bans: on trial the table keeps its size, as it goes on if "
				   "nobody confirms: apply another size without a trial");
	if (claim(r, compile_ban_lines(bans), "bans", policy->bans, &bans->base, error))
		return -1;
	bans->filter = bans->base + bans->sets * PACER_BAN_WAYS;
	return 0;
}

uint64_t compile_flow_lines(const struct pacer_flows *flows)
{
	return (uint64_t)flows->sets * PACER_FLOW_WAYS;
}

/* Is there a limit of new flows that is draining? What it counts is known by the table before. */
static bool flows_drain(const struct policy *policy, const struct draft_rule *drafts)
{
	for (size_t r = 0; r < policy->n_rules; r++)
		for (size_t k = 0; k < drafts[r].n; k++)
			if (drafts[r].at[k].state == PLAN_DRAINING &&
			    drafts[r].at[k].limiter.kind & PACER_LIMITER_NEW)
				return true;
	return false;
}

static struct pacer_flows flows_of(const struct policy *policy, uint64_t resolution_ns)
{
	uint64_t idle_ns = policy->flow_idle_ns;

	if (!policy_flows(policy))
		return (struct pacer_flows){0};
	/* Not longer by what the coarse clock may be behind. */
	return (struct pacer_flows){
	    .sets = (uint32_t)((policy->flows + PACER_FLOW_WAYS - 1) / PACER_FLOW_WAYS),
	    .idle_ns = idle_ns > resolution_ns ? idle_ns - resolution_ns : 0,
	};
}

/* As of bans. */
static void size_flows_after(const struct policy *policy, const struct compile_previous *previous,
			     const struct draft_rule *drafts, struct pacer_flows *flows,
			     struct plan *plan)
{
	const struct pacer_flows *old = previous ? &previous->bin->flows : NULL;

	*flows = flows_of(policy, plan->resolution_ns);
	if (!flows->sets && old && old->sets && flows_drain(policy, drafts))
		*flows = *old;
	if (!flows->sets)
		return;
	plan->lines_used += compile_flow_lines(flows);
	if (!old || old->sets != flows->sets)
		return;
	flows->base = old->base;
	plan->flows = PLAN_KEPT;
}

static int place_tables(const struct policy *policy, const struct compile_previous *previous,
			struct regions *r, struct pacer_policy *bin, const struct plan *plan,
			struct policy_error *error)
{
	if (place_bans(policy, previous, r, &bin->bans, plan, error))
		return -1;
	if (!bin->flows.sets || plan->flows == PLAN_KEPT)
		return 0;
	return claim(r, compile_flow_lines(&bin->flows), "flows", policy->flows, &bin->flows.base,
		     error);
}

/* Who asks for a size gets it; the others share what is left alike, in what runs there are.
 * `taken`: lines of other tables. */
static int place_all(struct draft_rule *drafts, const struct policy *policy, struct regions *r,
		     uint64_t taken, struct policy_error *error)
{
	uint64_t share, autos = 0, left = 0;

	for (size_t i = 0; i < policy->n_rules; i++)
		for (size_t k = 0; k < drafts[i].n; k++) {
			struct draft *d = &drafts[i].at[k];

			if (d->state == PLAN_DRAINING || !compile_in_lines(&d->limiter))
				continue;
			autos += !d->lines;
			left += !d->lines && d->state == PLAN_NEW;
			if (d->state == PLAN_NEW && d->lines &&
			    place(r, d, d->lines, policy->rule[i].name, error))
				return -1;
			taken += d->lines;
		}
	share = autos ? (r->total - taken) / SHARE_DEN * SHARE_NUM / autos : 0;
	for (size_t i = 0; i < policy->n_rules; i++)
		for (size_t k = 0; k < drafts[i].n; k++) {
			struct draft *d = &drafts[i].at[k];
			uint64_t most = find_free(r, 0).lines / SHARE_DEN * SHARE_NUM;
			uint64_t lines = share;

			if (d->state != PLAN_NEW || d->lines || !compile_in_lines(&d->limiter))
				continue;
			if (left && lines > most / left)
				lines = most / left;
			left--;
			if (lines < LIMITER_LINES_MIN)
				lines = LIMITER_LINES_MIN;
			if (place(r, d, lines, policy->rule[i].name, error))
				return -1;
		}
	return 0;
}

/* --- a flood ------------------------------------------------------------------------------- */

static bool asks(const struct draft *d)
{
	return d->state == PLAN_NEW && !d->lines && compile_in_lines(&d->limiter);
}

static uint64_t count_asking(const struct policy *policy, const struct draft_rule *drafts)
{
	uint64_t n = 0;

	for (size_t i = 0; i < policy->n_rules; i++)
		for (size_t k = 0; k < drafts[i].n; k++)
			n += asks(&drafts[i].at[k]);
	return n;
}

/*
 * Each limit that asks is to withstand it, and has `least` lines; one without a key has said what
 * it wants. Returns the lines of all limits.
 */
static uint64_t ask_for_flood(const struct policy *policy, struct draft_rule *drafts,
			      uint64_t least)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < policy->n_rules; i++)
		for (size_t k = 0; k < drafts[i].n; k++) {
			struct draft *d = &drafts[i].at[k];

			if (asks(d)) {
				d->lines = flood_lines(&d->limiter, policy->withstand);
				if (d->lines < least)
					d->lines = least;
			}
			sum += d->lines;
		}
	return sum;
}

static int too_much(const struct policy *policy, const struct draft_rule *drafts,
		    struct policy_error *error)
{
	size_t most = 0, of = 0;
	char text[32];

	for (size_t i = 0; i < policy->n_rules; i++)
		for (size_t k = 0; k < drafts[i].n; k++)
			if (drafts[i].at[k].lines > drafts[most].at[of].lines) {
				most = i;
				of = k;
			}
	return policy_fail(
	    error, drafts[most].at[of].line,
	    "withstand: against such a flood this limit of rule %s takes %llu GiB of "
	    "state, and all limits and bans together may take %s: give it entries of its own, a "
	    "shorter time or a higher limit",
	    policy->rule[most].name, (unsigned long long)(drafts[most].at[of].lines >> 24),
	    units_size_text(FLOOD_LINES_MAX * sizeof(struct pacer_line), text, sizeof(text)));
}

_Static_assert(POLICY_MEMORY_MAX / sizeof(struct pacer_line) == PACER_LINES_MAX + 1ull,
	       "the most memory is one line more than a table may have");

static uint64_t at_most(uint64_t lines)
{
	return lines < PACER_LINES_MAX ? lines : PACER_LINES_MAX;
}

/*
 * The table of a policy that begins anew and is to withstand a flood. No limit has less of it than
 * of a table of the usual size.
 */
static int make_for_flood(const struct policy *policy, struct draft_rule *drafts, uint64_t *total,
			  struct policy_error *error)
{
	const uint64_t usual = POLICY_MEMORY_DEFAULT / sizeof(struct pacer_line);
	uint64_t asking = count_asking(policy, drafts), least = 0, sum;
	struct pacer_bans bans = {0};
	struct pacer_flows flows;

	if (policy_bans(policy))
		size_bans(policy, &bans);
	flows = flows_of(policy, 0);
	sum = compile_ban_lines(&bans) + compile_flow_lines(&flows);
	if (asking && usual > sum)
		least = (usual - sum) / SHARE_DEN * SHARE_NUM / asking;
	sum += ask_for_flood(policy, drafts, least);
	if (sum >= FLOOD_LINES_MAX)
		return too_much(policy, drafts, error);
	*total = at_most((sum / SHARE_NUM + 1) * SHARE_DEN); /* the rest as without a flood */
	return 0;
}

/* What the previous policy has in use, or of a saved one, what goes on. */
static void occupy_previous(const struct compile_previous *previous, const struct plan *plan,
			    struct regions *regions)
{
	const struct pacer_policy *bin = previous->bin;

	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < bin->rule[r].n_limiters; k++) {
			const struct pacer_limiter *t = &bin->rule[r].limiter[k];

			if (compile_in_lines(t))
				occupy(regions, t->base, compile_limiter_lines(t));
		}
	if (bin->bans.sets && (!previous->saved || plan->bans == PLAN_KEPT))
		occupy(regions, bin->bans.base, compile_ban_lines(&bin->bans));
	if (bin->flows.sets && (!previous->saved || plan->flows == PLAN_KEPT))
		occupy(regions, bin->flows.base, compile_flow_lines(&bin->flows));
}

/* The table as the previous policy, if there is one, leaves it. */
static int survey(const struct policy *policy, const struct compile_previous *previous,
		  struct draft_rule *drafts, const struct plan *plan, struct regions *regions,
		  struct policy_error *error)
{
	memset(regions, 0, sizeof(*regions));
	if (!previous && policy->withstand)
		return make_for_flood(policy, drafts, &regions->total, error);
	if (policy->withstand)
		ask_for_flood(policy, drafts, 0);
	if (!previous) {
		regions->total = at_most(policy->memory_bytes / sizeof(struct pacer_line));
		if (!regions->total)
			return policy_fail(error, 0,
					   "memory: %llu bytes are less than a line of state: "
					   "write %zu or more",
					   (unsigned long long)policy->memory_bytes,
					   sizeof(struct pacer_line));
		return 0;
	}
	regions->total = previous->lines;
	regions->grows = previous->saved;
	occupy_previous(previous, plan, regions);
	return 0;
}

/* Of tables that have their lines before limits get theirs. */
static uint64_t lines_of_tables(const struct pacer_policy *bin, const struct plan *plan, bool saved)
{
	return (saved && plan->bans != PLAN_KEPT ? 0 : compile_ban_lines(&bin->bans)) +
	       (saved && plan->flows != PLAN_KEPT ? 0 : compile_flow_lines(&bin->flows));
}

/*
 * After a saved policy limits come first: tables of another size take none of their lines, since
 * the table grows by what these lack.
 */
int lay(const struct policy *policy, const struct compile_previous *previous,
	struct draft_rule *drafts, struct pacer_policy *bin, struct plan *plan,
	struct policy_error *error)
{
	static struct regions regions;
	bool saved = previous && previous->saved;
	uint64_t taken;

	size_bans_after(policy, previous, &bin->bans, plan);
	size_flows_after(policy, previous, drafts, &bin->flows, plan);
	taken = lines_of_tables(bin, plan, saved);
	if (survey(policy, previous, drafts, plan, &regions, error) ||
	    (saved && place_all(drafts, policy, &regions, taken, error)) ||
	    place_tables(policy, previous, &regions, bin, plan, error) ||
	    (!saved && place_all(drafts, policy, &regions, taken, error)))
		return -1;
	plan->lines = regions.total;
	return 0;
}
