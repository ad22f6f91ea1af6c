/* SPDX-License-Identifier: GPL-2.0-only */
/* What `top` shows of a reading. */
#include <stdio.h>
#include <string.h>

#include "cli/emit.h"
#include "cli/output.h"
#include "cli/top.h"
#include "config/text.h"

#define ALL_REASONS ((1u << PACER_REASON_COUNT) - 1)

static uint32_t reasons_of(enum pacer_verdict verdict)
{
	uint32_t reasons = 0;

	for (int r = 0; r < PACER_REASON_COUNT; r++)
		if (pacer_verdict_of(r) == verdict)
			reasons |= 1u << r;
	return reasons;
}

static struct pacer_count picked(const struct pacer_counters *c, uint32_t reasons)
{
	struct pacer_count sum = {0, 0};

	for (int r = 0; r < PACER_REASON_COUNT; r++)
		if (reasons >> r & 1) {
			sum.packets += c->by[r].packets;
			sum.bytes += c->by[r].bytes;
		}
	return sum;
}

/* --- lines ---------------------------------------------------------------------------------- */

/* What a line counts. */
struct share {
	const char *name;
	uint32_t reasons;
	enum top_colour colour;
};

static enum top_colour colour_of(enum pacer_verdict verdict)
{
	switch (verdict) {
	case PACER_VERDICT_ADMIT:
		return TOP_ADMIT;
	case PACER_VERDICT_DENY:
	case PACER_VERDICT_UNPARSED:
		return TOP_DENY;
	case PACER_VERDICT_PASS:
		break;
	}
	return TOP_PASS;
}

/* The rates of a line of this row of the trend. */
static void fill_line(struct top_line *line, const struct trend *t, size_t row, uint32_t reasons)
{
	struct trend_grown minute = trend_over(t, row, OUTPUT_MINUTE_NS);

	line->minute_packets = trend_rate(&minute, picked(&minute.by, reasons).packets);
	line->known = minute.span_ns;
	for (line->steps = 0; line->steps < TOP_STEPS; line->steps++) {
		struct trend_grown g = trend_step(t, row, line->steps);
		struct pacer_count grown = picked(&g.by, reasons);

		if (!g.span_ns)
			break;
		line->packets[line->steps] = (float)trend_rate(&g, grown.packets);
		line->bits[line->steps] = (float)trend_rate(&g, 8 * grown.bytes);
	}
	line->now_packets = line->known ? line->packets[0] : 0;
	line->now_bits = line->known ? line->bits[0] : 0;
}

static void add_line(struct top_view *v, const struct share *share, const struct trend *t,
		     size_t row, const struct pacer_counters *total)
{
	struct top_line *line = &v->line[v->n_lines++];

	memset(line, 0, offsetof(struct top_line, packets));
	snprintf(line->name, sizeof(line->name), "%s", share->name);
	line->colour = share->colour;
	line->total = picked(total, share->reasons).packets;
	fill_line(line, t, row, share->reasons);
}

static struct top_group *add_group(struct top_view *v, const char *rule)
{
	struct top_group *group = &v->group[v->n_groups++];

	*group = (struct top_group){.first = v->n_lines};
	snprintf(group->rule, sizeof(group->rule), "%s", rule);
	return group;
}

static void add_reasons(struct top_view *v, uint32_t reasons, const struct trend *t, size_t row,
			const struct pacer_counters *total)
{
	for (int r = 0; r < PACER_REASON_COUNT; r++) {
		struct share one = {pacer_reason_name(r), 1u << r, colour_of(pacer_verdict_of(r))};

		if (reasons >> r & 1 && total->by[r].packets)
			add_line(v, &one, t, row, total);
	}
}

/* --- groups --------------------------------------------------------------------------------- */

static void add_all(struct top_view *v, const struct trend *t, const struct reading *f)
{
	struct share parts[] = {
	    {"(all)", ALL_REASONS, TOP_PLAIN},
	    {"admitted", reasons_of(PACER_VERDICT_ADMIT), TOP_ADMIT},
	    {"denied", reasons_of(PACER_VERDICT_DENY), TOP_DENY},
	    {"no limit", reasons_of(PACER_VERDICT_PASS) | reasons_of(PACER_VERDICT_UNPARSED),
	     TOP_PASS},
	};
	struct top_group *group = add_group(v, "");
	struct pacer_counters total = f->none;

	for (size_t i = 0; i < f->policy->n_rules; i++)
		for (int r = 0; r < PACER_REASON_COUNT; r++)
			total.by[r].packets += f->rule[i].by[r].packets;
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		add_line(v, &parts[i], t, TREND_ALL, &total);
	group->n = v->n_lines - group->first;
}

static void add_rule(struct top_view *v, const struct trend *t, const struct reading *f,
		     size_t rule)
{
	struct share whole = {f->policy->rule[rule].name, ALL_REASONS, TOP_PLAIN};
	struct trend_grown now = trend_step(t, rule, 0);
	struct top_group *group = add_group(v, whole.name);

	add_line(v, &whole, t, rule, &f->rule[rule]);
	add_reasons(v, ALL_REASONS, t, rule, &f->rule[rule]);
	group->n = v->n_lines - group->first;
	group->denied = trend_rate(&now, picked(&now.by, reasons_of(PACER_VERDICT_DENY)).packets);
}

/* Of packets that no rule judged: those that are let through or broken, and banned sources. */
static void add_others(struct top_view *v, const struct trend *t, const struct reading *f)
{
	uint32_t denied = reasons_of(PACER_VERDICT_DENY), others = ALL_REASONS & ~denied;
	struct share whole = {"(no limit)", others, TOP_PASS};
	struct share banned = {"(banned sources)", denied, TOP_DENY};
	size_t row = f->policy->n_rules;
	struct top_group *group;

	if (picked(&f->none, others).packets) {
		group = add_group(v, "");
		add_line(v, &whole, t, row, &f->none);
		add_reasons(v, others, t, row, &f->none);
		group->n = v->n_lines - group->first;
	}
	if (picked(&f->none, denied).packets) {
		group = add_group(v, "");
		add_line(v, &banned, t, row, &f->none);
		group->n = 1;
	}
}

/* --- what is held --------------------------------------------------------------------------- */

static void add_tables(struct top_view *v, const struct reading *f)
{
	for (size_t i = 0; i < f->n_tables; i++) {
		const struct reading_table *from = &f->table[i];
		const struct policy_rule *rule = &f->policy->rule[from->rule];
		struct top_table *to = &v->table[i];
		char key[POLICY_KEY_TEXT];

		snprintf(to->rule, sizeof(to->rule), "%s", rule->name);
		snprintf(to->name, sizeof(to->name), "%s.limits[%u]", rule->name,
			 rule->limit[from->limit].item);
		policy_key_text(&rule->limit[from->limit].key, key, sizeof(key));
		snprintf(to->name + strlen(to->name), sizeof(to->name) - strlen(to->name), " %s",
			 key);
		to->used = from->used;
		to->capacity = from->capacity;
		to->shared = from->shared;
		to->shared_capacity = from->shared_capacity;
	}
	v->n_tables = f->n_tables;
}

static void add_part(struct top_view *v, const char *whose, uint64_t n)
{
	size_t len = strlen(v->bans);

	v->banned += n;
	if (n)
		snprintf(v->bans + len, sizeof(v->bans) - len, "%s%s %s", len ? ", " : "", whose,
			 thousands(n).text);
}

static void add_bans(struct top_view *v, const struct reading *f)
{
	v->ban_room = f->ban_room;
	v->bans_counted = f->bans_counted;
	if (!f->bans_counted)
		return;
	add_part(v, "sources", f->bans_of_sources);
	for (size_t r = 0; r < f->policy->n_rules; r++)
		add_part(v, f->policy->rule[r].name, f->bans[r]);
	add_part(v, "rules that are gone", f->bans_of_gone);
}

/* --- all of it ------------------------------------------------------------------------------ */

void top_view(const struct top_reading *r, struct top_view *v)
{
	const struct reading *f = &r->reading;
	struct trend_grown step = trend_step(&r->trend, TREND_ALL, 0);
	struct trend_grown minute = trend_over(&r->trend, TREND_ALL, OUTPUT_MINUTE_NS);

	snprintf(v->ifname, sizeof(v->ifname), "%s", r->ifname);
	v->paced = r->paced;
	snprintf(v->missing, sizeof(v->missing), "%s", r->paced ? "" : r->missing.text);
	if (!r->paced)
		return; /* what is shown is what was read last */
	v->monitor = f->monitor;
	v->attach_mode = r->attach_mode;
	v->shadowed = r->shadowed;
	memcpy(v->changes, r->changes, sizeof(v->changes));
	v->serial = f->serial;
	v->pending_ns = f->pending_ns;
	v->step_ns = step.span_ns;
	v->minute_ns = minute.span_ns > step.span_ns ? minute.span_ns : 0;
	v->n_lines = v->n_groups = 0;
	v->banned = 0;
	v->bans[0] = 0;
	add_all(v, &r->trend, f);
	for (size_t i = 0; i < f->policy->n_rules; i++)
		add_rule(v, &r->trend, f, i);
	add_others(v, &r->trend, f);
	add_tables(v, f);
	add_bans(v, f);
	v->busiest = r->busiest;
	snprintf(v->unsampled, sizeof(v->unsampled), "%s",
		 *r->unsampled.text   ? r->unsampled.text
		 : v->busiest.sampled ? ""
				      : "the policy samples nothing: apply one with sample: {of: "
					"all, k: 64, window: 60s}");
}
