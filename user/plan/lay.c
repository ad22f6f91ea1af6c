/* SPDX-License-Identifier: GPL-2.0-only */
/* Where state lies: in the first free run of lines, beside all that is in use. */
#include <string.h>

#include "plan/compile.h"
#include "plan/draft.h"
#include "plan/throttles.h"

/* Of a table's lines that limits without a size share; the rest is for later changes of policy. */
#define SHARE_NUM	  3
#define SHARE_DEN	  4
#define LIMITER_LINES_MIN 32

struct region {
	uint64_t base, lines;
};

struct regions {
	struct region at[2 * PACER_RULES_MAX * PACER_LIMITERS_MAX + 4];
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
		memset(bans->len4, 0, sizeof(bans->len4)); /* the tools say anew (ban_notes.h) */
		memset(bans->len6, 0, sizeof(bans->len6));
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

/* Who asks for a size gets it; the others share what is left alike, in what runs there are. */
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
	share = autos && r->total > taken ? (r->total - taken) / SHARE_DEN * SHARE_NUM / autos : 0;
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

/* The table as the previous policy, if there is one, leaves it. */
static int survey(const struct policy *policy, const struct compile_previous *previous,
		  struct regions *regions, struct policy_error *error)
{
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
		for (size_t k = 0; k < previous->bin->rule[r].n_limiters; k++) {
			const struct pacer_limiter *t = &previous->bin->rule[r].limiter[k];

			if (compile_in_lines(t))
				occupy(regions, t->base, compile_limiter_lines(t));
		}
	if (previous->bin->bans.sets)
		occupy(regions, previous->bin->bans.base, compile_ban_lines(&previous->bin->bans));
	return 0;
}

int lay(const struct policy *policy, const struct compile_previous *previous,
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
