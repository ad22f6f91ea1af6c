/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/output.h"

#include <bpf/libbpf.h>
#include <inttypes.h>
#include <math.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/emit.h"
#include "cli/shadow_show.h"
#include "config/text.h"
#include "inspect/tally.h"
#include "live/allow.h"
#include "live/bans.h"
#include "live/pinned.h"
#include "live/tool_bans.h"
#include "live/copies.h"
#include "live/fleet_shares.h"
#include "live/load_trial.h"
#include "live/host.h"
#include "live/partners.h"
#include "live/reading.h"
#include "live/secret.h"
#include "live/sole_agent.h"
#include "plan/compile.h"
#include "plan/shares.h"
#include "window.h"

#define TEXT	   64
#define BANS_SHOWN 32 /* at most, in the text of status */
#define SECOND_NS  1e9

static const char *const reason_texts[] = {
#define REASON_TEXT(name, verdict, id, text) [PACER_##name] = text,
    PACER_REASONS(REASON_TEXT)
#undef REASON_TEXT
};

static const char *const event_names[] = {
#define EVENT_NAME(name, id, text) [PACER_##name] = id,
    PACER_EVENTS(EVENT_NAME)
#undef EVENT_NAME
};

static const char *const event_texts[] = {
#define EVENT_TEXT(name, id, text) [PACER_##name] = text,
    PACER_EVENTS(EVENT_TEXT)
#undef EVENT_TEXT
};

/* --- status --------------------------------------------------------------------------------- */

/* The caller frees it. */
static struct policy *policy_of(const struct attached *a)
{
	struct policy_error error = {0};
	struct policy *policy = copies_policy(a, copies_in_force(a), &error);

	if (!policy)
		result_lacks();
	return policy;
}

uint64_t output_memory_bytes(uint64_t lines)
{
	long cpus = libbpf_num_possible_cpus();
	uint64_t of_cpu = PACER_COUNTERS_MAX * sizeof(struct pacer_counters) +
			  PACER_THROTTLES * sizeof(struct pacer_throttle_lease);

	return lines * sizeof(struct pacer_line) + 2 * sizeof(struct pacer_copy) +
	       sizeof(struct pacer_control) + sizeof(struct pacer_log) +
	       PACER_THROTTLES * sizeof(struct pacer_throttle_state) +
	       (cpus > 0 ? cpus : 1) * of_cpu;
}

static size_t draining(const struct pacer_policy *p)
{
	uint64_t now_ns = host_now_ns();
	size_t n = 0;

	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < p->rule[r].n_limiters; k++)
			n += p->rule[r].limiter[k].until_ns > now_ns;
	return n;
}

static uint64_t memory_of(const struct attached *a)
{
	return output_memory_bytes(a->n_lines) + a->mapped[ATTACHED_SAMPLERS] +
	       a->mapped[ATTACHED_HEADS];
}

/* The bans are collected first, so that their number agrees with the list. */
struct ban_list {
	struct ban *ban;
	size_t n, room, of_tools;
};

static void add_ban(const struct ban *ban, void *arg)
{
	struct ban_list *list = arg;
	size_t room = list->room ? 2 * list->room : 64;
	struct ban *more;

	if (list->n == list->room) {
		more = realloc(list->ban, room * sizeof(*more));
		if (!more) {
			result_lacks();
			return;
		}
		list->ban = more;
		list->room = room;
	}
	list->ban[list->n++] = *ban;
	list->of_tools += ban->tool;
}

static void add_tool_ban(const struct tool_ban *of, uint64_t now_ns, void *arg)
{
	struct ban ban = {.in_force = true, .outside = true, .tool = true};

	units_prefix_text(&of->prefix, ban.key, sizeof(ban.key));
	ban.left_ns = of->until_ns == PACER_NEVER ? PACER_NEVER : of->until_ns - now_ns;
	add_ban(&ban, arg);
}

static void list_bans(const struct attached *a, const struct policy *policy, struct ban_list *list)
{
	struct policy_error error = {0};

	*list = (struct ban_list){0};
	bans_each(a, policy, add_ban, list);
	if (tool_bans_each(a, add_tool_ban, list, &error))
		result_failed(&error);
}

static void emit_left(uint64_t left_ns)
{
	char text[TEXT];

	if (left_ns == PACER_NEVER)
		emit_null("left_ns", "until it is lifted");
	else if (left_ns < 100 * SECOND_NS)
		emit_uint("left_ns", left_ns, "%.1f s left", left_ns / SECOND_NS);
	else
		emit_uint("left_ns", left_ns, "%s left",
			  allow_left_text(left_ns, text, sizeof(text)));
}

static void emit_bans(const char *name, const struct ban_list *list, size_t indent, size_t shown)
{
	static const struct emit_column columns[] = {
	    {"", false}, {"", false}, {"", false}, {"", false}, {"", true}, {"", false}, {0}};

	emit_array(name);
	emit_table(columns, indent);
	for (size_t i = 0; i < list->n && (emit_is_json() || i < shown); i++) {
		const struct ban *ban = &list->ban[i];
		const char *in_a_row = ban->row > 1 ? "no. %u in a row" : "";

		emit_row();
		emit_object("");
		emit_string("key", ban->key, "%s", ban->key);
		if (*ban->rule)
			emit_string("rule", ban->rule, "%s", ban->rule);
		else
			emit_null("rule", "(source)");
		emit_flag("by_hand", ban->outside && !ban->tool, "%s",
			  ban->tool	 ? "by a tool"
			  : ban->outside ? "by hand"
					 : "");
		emit_flag("by_tool", ban->tool, NULL);
		emit_uint("row", ban->row, in_a_row, ban->row);
		emit_left(ban->left_ns);
		emit_flag("in_force", ban->in_force, "%s", ban->in_force ? "" : "refuses nobody");
		emit_close();
	}
	emit_table_end();
	emit_close();
	if (list->n > shown)
		emit_text("%*sand %zu more: see --json\n", (int)indent, "", list->n - shown);
}

size_t output_bans(const struct attached *a, const char *name, size_t indent, size_t shown)
{
	struct policy *policy = policy_of(a);
	struct ban_list list;

	list_bans(a, policy, &list);
	emit_bans(name, &list, indent, shown);
	free(list.ban);
	policy_free(policy);
	return list.n;
}

static void emit_banned(const struct attached *a, const struct policy *policy)
{
	size_t room = bans_room(a);
	struct ban_list list;
	size_t in_table;

	list_bans(a, policy, &list);
	in_table = list.n - list.of_tools;
	emit_object("bans");
	emit_uint("banned", list.n, room ? "  banned    %zu key%s" : NULL, in_table,
		  units_plural(in_table));
	emit_uint("room", room, room ? " of %zu at most" : NULL, room);
	emit_uint("by_tools", list.of_tools, list.of_tools ? "%s%zu by tools" : NULL,
		  room ? ", and " : "  banned    ", list.of_tools);
	if (room || list.of_tools)
		emit_text("\n");
	emit_bans("keys", &list, 12, BANS_SHOWN);
	emit_close();
	free(list.ban);
}

static void emit_policy(const struct pacer_policy *p, const struct policy *policy)
{
	size_t n = policy ? policy->n_rules : 0;
	bool monitor = p->flags & PACER_MONITOR;
	bool exact = p->flags & PACER_CLOCK_EXACT;

	emit_string("mode", monitor ? "monitor" : "enforce", "  policy    %s%s%s, ",
		    emit_style(monitor ? EMIT_ALARM : EMIT_PLAIN),
		    monitor ? "monitor (nothing is dropped)" : "enforced", emit_style(EMIT_PLAIN));
	emit_string("clock", exact ? "exact" : "coarse", "%s clock, ", exact ? "exact" : "coarse");
	emit_uint("serial", p->serial, "serial %llu, %zu rule%s\n", p->serial, n, units_plural(n));
	emit_array("rules");
	emit_text("  rules    ");
	for (size_t i = 0; i < n; i++)
		emit_string("", policy->rule[i].name, " %s", policy->rule[i].name);
	emit_close();
}

static void emit_allowed_set(const struct policy_set_use *set)
{
	char text[POLICY_NAME_MAX + POLICY_VALUE_MAX + 2];

	snprintf(text, sizeof(text), "@%s%s%s", set->name, *set->value ? "=" : "", set->value);
	emit_string("", text, ", %s", text);
}

static void emit_state(const struct attached *a, const struct pacer_policy *p,
		       const struct policy *policy)
{
	uint64_t memory = memory_of(a), state = a->n_lines * sizeof(struct pacer_line);
	unsigned int allowed = allow_count(a);
	size_t old = draining(p);
	char text[TEXT];

	emit_uint("memory_bytes", memory, "\n  memory    %s",
		  units_size_round(memory, text, sizeof(text)));
	emit_uint("state_bytes", state, ", %s of it for keys\n",
		  units_size_round(state, text, sizeof(text)));
	emit_uint("allowed", allowed, "  allowed   %u prefix%s", allowed, allowed == 1 ? "" : "es");
	emit_array("allowed_sets");
	for (size_t i = 0; policy && i < policy->n_allow_sets; i++)
		emit_allowed_set(&policy->allow_set[i]);
	emit_close();
	emit_text("\n");
	emit_uint("retired_limits", old,
		  old ? "  retired   %zu limit%s of the policy before, kept until their windows "
			"have passed\n"
		      : NULL,
		  old, units_plural(old));
}

/* They are collected first, so that none is told where not all can be. */
struct partner_list {
	char (*name)[IF_NAMESIZE];
	size_t n;
};

static int add_partner(const char *ifname, void *arg)
{
	struct partner_list *list = arg;
	void *more = realloc(list->name, (list->n + 1) * sizeof(*list->name));

	if (!more) {
		result_lacks();
		return 0;
	}
	list->name = more;
	snprintf(list->name[list->n++], sizeof(*list->name), "%s", ifname);
	return 0;
}

static void emit_partners(const struct partner_list *list, const char *before, const char *after)
{
	emit_array("shared_with");
	for (size_t i = 0; i < list->n; i++)
		emit_string("", list->name[i], "%s%s", i ? ", " : before,
			    printable(list->name[i]).text);
	emit_close();
	if (list->n)
		emit_text("%s", after);
}

/* `failed`: they could not all be told. */
static void emit_found(bool failed, struct partner_list *list, const struct policy_error *error,
		       const char *before, const char *after)
{
	if (failed) {
		emit_null("shared_with", NULL);
		result_unsure(error);
	} else {
		emit_partners(list, before, after);
	}
	free(list->name);
}

void output_partners_of(const char *ifname, uint32_t map_id, const char *before, const char *after)
{
	struct partner_list list = {NULL, 0};
	struct policy_error error = {0};

	emit_found(partners_here(ifname, map_id, add_partner, &list, &error), &list, &error, before,
		   after);
}

void output_partners(const struct attached *a, const char *before, const char *after)
{
	struct partner_list list = {NULL, 0};
	struct policy_error error = {0};

	emit_found(partners_each(a, add_partner, &list, &error), &list, &error, before, after);
}

void output_also(const struct attached *a)
{
	output_partners(a, "the same is done on ", ", which shares this state\n");
}

static void emit_pins(const struct attached *a)
{
	enum pinned_there there = PINNED_GONE;
	char path[PINNED_PATH];

	if (a->control->tools)
		there = pinned_where(a, path);
	if (!a->control->tools) {
		emit_null("pins", NULL);
	} else if (there == PINNED_GONE && pins_hidden()) {
		emit_null("pins",
			  "  pins      for tools that ban sources cannot be seen: %s is hidden "
			  "here, or not mounted\n",
			  printable(pins_bpffs()).text);
	} else if (there == PINNED_GONE) {
		emit_null("pins",
			  "  pins      for tools that ban sources are gone: `xdp-pacer upgrade %s "
			  "--pin` makes some\n",
			  printable(a->ifname).text);
	} else if (there == PINNED_IN_PART) {
		emit_null(
		    "pins",
		    "  pins      for tools that ban sources, in %s: one is missing, or not its "
		    "own: `xdp-pacer upgrade %s --pin` makes both\n",
		    printable(path).text, printable(a->ifname).text);
	} else {
		emit_string("pins", path, "  pins      for tools that ban sources, in %s\n",
			    printable(path).text);
		if (there == PINNED_RENAMED)
			emit_text(
			    "            by its name before: `xdp-pacer upgrade %s --pin` makes "
			    "some by this one\n",
			    printable(a->ifname).text);
	}
}

/* Keys with shares of their own, where `lasts`. */
static void emit_lanes(const struct fleet_limit *limit, const struct fleet_held *held, bool lasts)
{
	struct policy_key kind = compile_key_of(limit->limiter.key_id);
	char text[TALLY_TEXT];

	emit_array("keys");
	for (size_t i = 0; i < PACER_LANES && lasts; i++) {
		const struct fleet_lane *lane = &held->lane[i];

		if (!lane->is)
			continue;
		tally_key_text(&kind, &lane->key, text, sizeof(text));
		emit_object("");
		emit_string("key", printable(text).text, "            of %s", printable(text).text);
		emit_uint("units", lane->units, ": %" PRIu64 "\n", lane->units);
		emit_close();
	}
	emit_close();
}

/* Beside when the store answered last: nobody asks it any more. */
static const char *asked_no_more(const struct attached *a)
{
	return sole_agent_seen(a) == SOLE_AGENT_NONE ? ": no agent runs: xdp-pacer fleet" : "";
}

/* Why the store has answered nobody; `yet`: an agent is at it. */
static const char *never_answered(const struct attached *a, const char *yet)
{
	switch (sole_agent_seen(a)) {
	case SOLE_AGENT_RUNS:
		return yet;
	case SOLE_AGENT_NONE:
		return ": no agent runs: xdp-pacer fleet\n";
	default:
		return ": no agent has said anything: does xdp-pacer fleet run?\n";
	}
}

/* Of one limit: what this host may use of it, as packets are told. */
static void emit_share(const struct attached *a, const struct policy *policy,
		       const struct fleet_limit *limit)
{
	const struct fleet_held held = fleet_held(a, limit);
	uint64_t now_ns = host_now_ns(); /* after the answer, which may come meanwhile */
	uint64_t all = shares_units(&limit->limiter);
	bool lasts = held.is && now_ns < held.until_ns;
	uint64_t units = lasts ? held.units : held.is ? held.floor : 0;
	const char *rule =
	    policy && limit->rule < policy->n_rules ? policy->rule[limit->rule].name : "?";

	emit_object("");
	emit_string("rule", rule, "  share     %s: ", rule);
	emit_uint("units", units, "%" PRIu64, units);
	emit_uint("of", all, " of %" PRIu64, all);
	if (lasts)
		emit_uint("left_ns", held.until_ns - now_ns, " for another %.1f s",
			  (held.until_ns - now_ns) / SECOND_NS);
	else
		emit_null("left_ns", units ? ", cut off" : ", and so it denies");
	emit_uint("members", held.members, ", %" PRIu32 " members", held.members);
	if (held.answered_ns && held.answered_ns <= now_ns)
		emit_uint("answered_ago_ns", now_ns - held.answered_ns,
			  ", the store answered %.1f s ago%s\n",
			  (now_ns - held.answered_ns) / SECOND_NS, asked_no_more(a));
	else
		emit_null("answered_ago_ns", "%s",
			  never_answered(a, ": the agent has no share of it yet\n"));
	emit_lanes(limit, &held, lasts);
	emit_close();
}

static void emit_shares(const struct attached *a, const struct policy *policy)
{
	struct fleet_limit limit[PACER_SHARES];
	size_t n = fleet_limits(a, limit);

	emit_array("shares");
	for (size_t i = 0; i < n; i++)
		emit_share(a, policy, &limit[i]);
	emit_close();
}

/* What the agent shares beside limits. */
static void emit_items(const struct attached *a)
{
	const struct pacer_fleet_items *i = &a->control->fleet_items;
	uint64_t answered_ns = pacer_load64(&i->answered_ns), now_ns = host_now_ns();

	if (!pacer_load64(&i->begun_ns)) {
		emit_null("fleet_items", NULL);
		return;
	}
	emit_object("fleet_items");
	emit_uint("known", i->known,
		  "  shared    %" PRIu64 " bans and elements of the fleet:", (uint64_t)i->known);
	emit_uint("told", i->told, " %" PRIu64 " told,", (uint64_t)i->told);
	emit_uint("taken", i->taken, " %" PRIu64 " taken,", (uint64_t)i->taken);
	emit_uint("late", i->late, " %" PRIu64 " late,", (uint64_t)i->late);
	emit_uint("left_out", i->left_out, " %" PRIu64 " left out", (uint64_t)i->left_out);
	if (answered_ns && answered_ns <= now_ns)
		emit_uint("answered_ago_ns", now_ns - answered_ns,
			  ", the store answered %.1f s ago%s\n", (now_ns - answered_ns) / SECOND_NS,
			  asked_no_more(a));
	else
		emit_null("answered_ago_ns", "%s",
			  never_answered(a, ": the store has not answered the agent yet\n"));
	emit_close();
}

static void emit_second(const struct attached *a)
{
	if (a->second_id)
		emit_uint(
		    "second_program_id", a->second_id,
		    "  %sTWICE%s     a second pacer (program %u) judges its packets, too, as a "
		    "replacement was killed: `xdp-pacer upgrade %s` takes it off\n",
		    emit_style(EMIT_ALARM), emit_style(EMIT_PLAIN), a->second_id,
		    printable(a->ifname).text);
	else
		emit_null("second_program_id", NULL);
}

void output_status(const struct attached *a)
{
	const struct pacer_policy *p = &a->copy[copies_in_force(a)].policy;
	struct policy *policy = policy_of(a);
	uint64_t pending_ns = copies_pending_ns(a);
	bool weak = secret_is_weak(a), lapsed = load_trial_lapsed(a), frozen = copies_frozen(a);

	emit_string("interface", a->ifname, "%s%s%s: paced ", emit_style(EMIT_BOLD),
		    printable(a->ifname).text, emit_style(EMIT_PLAIN));
	emit_string("attach", a->dispatcher ? "dispatcher" : "direct", "%s, ",
		    a->dispatcher ? "under the libxdp dispatcher" : "directly");
	emit_string("attach_mode", a->mode, "%s mode, ", a->mode);
	emit_uint("program_id", a->prog_id, "program %u, ", a->prog_id);
	emit_uint("abi", a->control->abi_version, "ABI %u\n", a->control->abi_version);
	output_partners(a, "  shared    with ", ": one state and one policy\n");
	emit_second(a);
	emit_policy(p, policy);
	emit_state(a, p, policy);
	emit_banned(a, policy);
	emit_pins(a);
	emit_shares(a, policy);
	emit_items(a);
	emit_uint("confirm_within_ns", pending_ns,
		  pending_ns && !frozen ? "  %sPENDING%s   %s in %.1f s unless confirmed\n" : NULL,
		  emit_style(EMIT_ALARM), emit_style(EMIT_PLAIN),
		  load_trial_pending(a) ? "is taken off" : "rolls back", pending_ns / SECOND_NS);
	emit_flag("frozen", frozen,
		  frozen
		      ? "  %sFROZEN%s    all that it limits is denied for %.1f s more: a save that "
			"takes it off is at work, or was killed\n"
		      : NULL,
		  emit_style(EMIT_ALARM), emit_style(EMIT_PLAIN), pending_ns / SECOND_NS);
	emit_flag("lapsed", lapsed,
		  lapsed
		      ? "  %sLAPSED%s    not confirmed in time: lets everything pass until it is "
			"loaded anew, or a policy is applied\n"
		      : NULL,
		  emit_style(EMIT_ALARM), emit_style(EMIT_PLAIN));
	emit_string(
	    "secret_of", weak ? "program" : "tools",
	    weak ? "  secret    drawn without a tool: `xdp-pacer rotate %s` draws a better one\n"
		 : NULL,
	    printable(a->ifname).text);
	shadow_show_of(a, SHADOW_LINE);
	policy_free(policy);
}

/* --- stats ---------------------------------------------------------------------------------- */

enum {
	STATS_RULE,
	STATS_MATCHED,
	STATS_ADMITTED,
	STATS_DENIED,
	STATS_PPS,
	STATS_BITS,
	STATS_MINUTE,
	STATS_TEXT,
	STATS_COLUMNS
};

/* What a row of the trend grew by: now, and over the last minute if that is longer. */
struct paces {
	struct trend_grown now, minute;
};

static struct paces paces_of(const struct trend *trend, size_t row)
{
	struct paces p = {0};

	if (!trend)
		return p;
	p.now = trend_step(trend, row, 0);
	p.minute = trend_over(trend, row, OUTPUT_MINUTE_NS);
	if (p.minute.span_ns <= p.now.span_ns)
		p.minute.span_ns = 0;
	return p;
}

static struct pacer_count of_all(const struct pacer_counters *c)
{
	struct pacer_count sum = {0, 0};

	for (int r = 0; r < PACER_REASON_COUNT; r++) {
		sum.packets += c->by[r].packets;
		sum.bytes += c->by[r].bytes;
	}
	return sum;
}

static void emit_grown(const char *name, const struct trend_grown *g)
{
	struct pacer_count all = of_all(&g->by);

	if (!g->span_ns) {
		emit_null(name, NULL);
		return;
	}
	emit_object(name);
	emit_uint("span_ns", g->span_ns, NULL);
	emit_real("packets_per_s", trend_rate(g, all.packets), NULL);
	emit_real("bits_per_s", trend_rate(g, 8 * all.bytes), NULL);
	emit_real("admitted_per_s",
		  trend_rate(g, reading_of_verdict(&g->by, PACER_VERDICT_ADMIT).packets), NULL);
	emit_real("denied_per_s",
		  trend_rate(g, reading_of_verdict(&g->by, PACER_VERDICT_DENY).packets), NULL);
	emit_close();
}

void output_rates(const char *name, const struct trend *trend, size_t row)
{
	struct paces p = paces_of(trend, row);

	if (!p.now.span_ns) {
		emit_null(name, NULL);
		return;
	}
	emit_object(name);
	emit_grown("now", &p.now);
	emit_grown("minute", &p.minute);
	emit_close();
}

/* The cells of rates, of what these numbers grew by. */
static void emit_paces(const struct paces *p, struct pacer_count now, uint64_t minute_packets)
{
	if (p->now.span_ns) {
		emit_text("%s", per_second(trend_rate(&p->now, now.packets), "pps").text);
		emit_text("%s", per_second(trend_rate(&p->now, 8 * now.bytes), "bit/s").text);
	} else {
		emit_skip(2);
	}
	if (p->minute.span_ns)
		emit_text("%s", per_second(trend_rate(&p->minute, minute_packets), "pps").text);
	else
		emit_skip(1);
}

struct totals {
	uint64_t packets, admitted, denied, unparsed, passed;
};

static void add_totals(struct totals *t, const struct pacer_counters *c)
{
	t->admitted += reading_of_verdict(c, PACER_VERDICT_ADMIT).packets;
	t->denied += reading_of_verdict(c, PACER_VERDICT_DENY).packets;
	t->unparsed += reading_of_verdict(c, PACER_VERDICT_UNPARSED).packets;
	t->passed += reading_of_verdict(c, PACER_VERDICT_PASS).packets;
	t->packets = t->admitted + t->denied + t->unparsed + t->passed;
}

/* What is shown, and how. */
struct stats {
	const struct reading *f;
	const struct trend *trend; /* NULL: no rates */
	bool watched;		   /* explanations are left out */
};

/* The row of a reason that has occurred, with its count in that column. */
static void emit_reason(const struct stats *s, enum pacer_reason r, const struct pacer_counters *c,
			const struct paces *p, size_t column)
{
	uint64_t count = c->by[r].packets;

	if (count) {
		emit_row();
		emit_text("  %s", pacer_reason_name(r));
		emit_skip(column - 1);
	}
	emit_uint(pacer_reason_name(r), count, count ? "%s" : NULL, thousands(count).text);
	if (!count)
		return;
	emit_skip(STATS_PPS - column - 1);
	emit_paces(p, p->now.by.by[r], p->minute.by.by[r].packets);
	if (!s->watched)
		emit_text("%s", reason_texts[r]);
}

static void emit_reasons(const struct stats *s, const struct pacer_counters *c,
			 const struct paces *p, bool of_rule, size_t column)
{
	for (int r = 0; r < PACER_REASON_COUNT; r++) {
		enum pacer_verdict verdict = pacer_verdict_of(r);

		if (of_rule ? verdict == PACER_VERDICT_DENY
			    : verdict == PACER_VERDICT_PASS || verdict == PACER_VERDICT_UNPARSED ||
				  r == PACER_DENY_VERDICT)
			emit_reason(s, r, c, p, column);
	}
}

static void emit_event(const struct stats *s, int e, uint64_t count)
{
	if (count) {
		emit_row();
		emit_text("  %s", event_names[e]);
	}
	emit_uint(event_names[e], count, count ? "%s" : NULL, thousands(count).text);
	if (count && !s->watched) {
		emit_skip(STATS_TEXT - STATS_MATCHED - 1);
		emit_text("%s", event_texts[e]);
	}
}

static void emit_rule(const struct stats *s, size_t row)
{
	const char *name = s->f->policy->rule[row].name;
	const struct pacer_counters *c = &s->f->rule[row];
	struct pacer_count admit = reading_of_verdict(c, PACER_VERDICT_ADMIT);
	struct pacer_count deny = reading_of_verdict(c, PACER_VERDICT_DENY);
	uint64_t matched = admit.packets + deny.packets;
	struct paces p = paces_of(s->trend, row);

	emit_row();
	emit_object("");
	emit_string("name", name, "%s", name);
	emit_uint("matched", matched, "%s", thousands(matched).text);
	emit_uint("admitted", admit.packets, "%s", thousands(admit.packets).text);
	emit_text("%s", thousands(deny.packets).text);
	emit_paces(&p, of_all(&p.now.by), of_all(&p.minute.by).packets);
	emit_object("denied");
	emit_reasons(s, c, &p, true, STATS_DENIED);
	emit_close();
	emit_object("events");
	for (int e = 0; e < PACER_EVENT_COUNT; e++)
		emit_event(s, e, c->events[e]);
	emit_close();
	emit_object("bytes");
	emit_uint("admitted", admit.bytes, NULL);
	emit_uint("denied", deny.bytes, NULL);
	emit_close();
	output_rates("rates", s->trend, row);
	emit_close();
}

/* Of sources that are banned whatever their rule, which is not looked for. */
static void emit_sources(const struct pacer_counters *none, const struct paces *p)
{
	uint64_t denied = none->by[PACER_DENY_BAN].packets;

	if (denied) {
		emit_row();
		emit_text("(banned sources)");
		emit_skip(STATS_DENIED - 1);
	}
	emit_uint("banned_sources", denied, denied ? "%s" : NULL, thousands(denied).text);
	if (denied)
		emit_paces(p, p->now.by.by[PACER_DENY_BAN],
			   p->minute.by.by[PACER_DENY_BAN].packets);
}

static void emit_totals(const struct stats *s)
{
	struct paces all = paces_of(s->trend, TREND_ALL);
	struct paces none = paces_of(s->trend, s->f->policy->n_rules);
	struct totals t = {0};

	for (size_t r = 0; r < s->f->policy->n_rules; r++)
		add_totals(&t, &s->f->rule[r]);
	add_totals(&t, &s->f->none);
	emit_row();
	emit_text("(all)");
	emit_uint("packets", t.packets, "%s", thousands(t.packets).text);
	emit_uint("admitted", t.admitted, "%s", thousands(t.admitted).text);
	emit_uint("denied", t.denied, "%s", thousands(t.denied).text);
	emit_paces(&all, of_all(&all.now.by), of_all(&all.minute.by).packets);
	emit_uint("unparsed", t.unparsed, NULL);
	emit_uint("passed", t.passed, NULL);
	output_rates("rates", s->trend, TREND_ALL);
	emit_row();
	emit_text("(no limit)");
	emit_text(
	    "%s",
	    thousands(t.unparsed + t.passed + s->f->none.by[PACER_DENY_VERDICT].packets).text);
	emit_object("no_limit");
	emit_reasons(s, &s->f->none, &none, false, STATS_MATCHED);
	emit_close();
	emit_sources(&s->f->none, &none);
}

/* "LAST 12 S": as much of the last minute as was watched. */
static const char *minute_title(const struct trend *trend)
{
	static char title[32];
	struct paces p = paces_of(trend, TREND_ALL);

	snprintf(title, sizeof(title), "LAST %.0f S", p.minute.span_ns / SECOND_NS);
	return p.minute.span_ns ? title : "";
}

/* What had an address in it, whatever became of the packet. */
static void emit_set_count(const struct policy_set *set, const struct reading_set *reading)
{
	emit_row();
	emit_object("");
	emit_string("name", set->name, "@%s", set->name);
	if (reading->counted) {
		emit_uint("packets", reading->count.packets, "%s",
			  thousands(reading->count.packets).text);
		emit_uint("bytes", reading->count.bytes, NULL);
	} else {
		emit_null("packets", "-");
		emit_null("bytes", NULL);
	}
	emit_uint("prefixes", reading->prefixes, NULL);
	emit_close();
}

void output_stats(const char *ifname, const char *name, const struct reading *f,
		  const struct trend *trend, const struct attached *a, bool watched)
{
	struct stats s = {f, trend, watched};
	const struct emit_column columns[STATS_COLUMNS + 1] = {
	    [STATS_RULE] = {"RULE", false},
	    [STATS_MATCHED] = {"MATCHED", true},
	    [STATS_ADMITTED] = {"ADMITTED", true},
	    [STATS_DENIED] = {"DENIED", true},
	    [STATS_PPS] = {trend ? "NOW" : "", true},
	    [STATS_BITS] = {"", true},
	    [STATS_MINUTE] = {minute_title(trend), true},
	    [STATS_TEXT] = {"", false},
	};

	emit_object(name);
	emit_string("interface", ifname, "%s: ", printable(ifname).text);
	emit_uint("time_ns", f->now_ns, NULL);
	emit_string("mode", f->monitor ? "monitor" : "enforce", "%s%s%s\n",
		    emit_style(f->monitor ? EMIT_ALARM : EMIT_PLAIN),
		    f->monitor ? "monitor: what is denied passes all the same" : "enforced",
		    emit_style(EMIT_PLAIN));
	emit_table(columns, 2);
	emit_totals(&s);
	emit_array("rules");
	for (size_t r = 0; r < f->policy->n_rules; r++)
		emit_rule(&s, r);
	emit_close();
	emit_array("sets");
	for (size_t i = 0; i < f->policy->n_sets; i++)
		emit_set_count(&f->policy->set[i], &f->set[i]);
	emit_close();
	emit_table_end();
	if (a)
		shadow_show_of(a, SHADOW_LINE);
	emit_close();
}
