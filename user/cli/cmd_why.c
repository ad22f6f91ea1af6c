/* SPDX-License-Identifier: GPL-2.0-only */
/* why: how a packet or a key would fare, and why; of a pacer at work, or of a
 * policy at a moment of a capture.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/captured.h"
#include "cli/cmd.h"
#include "cli/denied.h"
#include "cli/emit.h"
#include "cli/output.h"
#include "cli/reach.h"
#include "config/text.h"
#include "live/allow.h"
#include "live/copies.h"
#include "live/host.h"
#include "live/look.h"
#include "live/tool_bans.h"
#include "inspect/packet_text.h"
#include "inspect/why.h"

#define SECOND_NS 1e9
#define TEXT	  64
#define ETHERNET  14u /* bytes of its header */

/* What is asked, and of what. */
struct question {
	const struct options *o;
	const char *of;		   /* the interface, or the policy's file */
	char *key;		   /* NULL: a packet */
	struct pacer_packet pkt;   /* of a key: with its source's address, if it has one */
	struct pacer_packet outer; /* around it, where it is judged as what is in a tunnel */
	uint64_t outer_ns;	   /* until then that one's source is banned; 0: it is not */
	char outer_source[TEXT];   /* as this prefix */
	enum pacer_reason read;	   /* ADMIT, or why no rule is looked for */
	bool of_frame, raw_ip;
	bool sourceless; /* the key has no source's address */
	struct packet_head head;
	const struct policy *policy;
	const struct pacer_policy *bin;
	uint64_t now_ns;
	uint64_t resolution_ns; /* of the coarse clock; of a capture 0 */
	bool allowed;
	struct prefix by;   /* allowed by */
	const char *by_set; /* the same; NULL: by a prefix */
	uint64_t lapses_ns;
	uint64_t trial_ns;    /* until an unconfirmed policy gives way; 0: none is on trial */
	uint32_t cpus, admit; /* CPUs, and how many of them would let it pass */
	const struct attached *a;
	const struct sample *sample; /* of packets, denied ones among them; NULL: there is none */
	bool sampled;		     /* ... that could be read */
	struct prefix source;
	bool by_tool; /* banned so */
	struct tool_ban tool;
};

/* --- what is asked ---------------------------------------------------------------------------- */

/* The words behind the interface as one text: NULL where there is no memory. */
static char *joined(const struct options *o, int from)
{
	size_t size = 1, n = 0;
	char *text;

	for (int i = from; i < o->n_args; i++)
		size += strlen(o->args[i]) + 1;
	text = calloc(1, size);
	for (int i = from; text && i < o->n_args; i++)
		n += snprintf(text + n, size - n, "%s%s", i > from ? " " : "", o->args[i]);
	return text;
}

static int read_number(const char *text, uint64_t *n)
{
	if (!units_count(text, n) && *n)
		return EXIT_DONE;
	return misused("why", "--frame %s is not a number of a frame, from 1", text);
}

/* Where the interface has no Ethernet, the header that a capture is read with is taken off. */
static void parse_frame(struct question *q, const struct replay_frame *frame)
{
	uint32_t head = frame->captured < REPLAY_HEAD_BYTES ? frame->captured : REPLAY_HEAD_BYTES;
	uint32_t off = !q->raw_ip ? 0 : head < ETHERNET ? head : ETHERNET;
	const uint8_t *data = frame->data + off, *end = frame->data + head;
	uint32_t len_bytes = frame->len_bytes - off;
	int result = q->raw_ip ? pacer_parse_raw(data, end, len_bytes, &q->pkt)
			       : pacer_parse(data, end, len_bytes, &q->pkt);

	q->head.n = head - off;
	memcpy(q->head.data, data, q->head.n);
	q->read = result == PACER_PARSED ? PACER_ADMIT : pacer_parse_reason(result);
}

static int no_frame(const struct capture *c, uint64_t wanted)
{
	if (!c->damaged) /* else that was said, and at which frame */
		complaint("%s: there is no frame %llu: it has %llu", c->file,
			  (unsigned long long)wanted, (unsigned long long)c->frames);
	return EXIT_FAILED;
}

static int read_frame(struct question *q, const char *file, uint64_t number)
{
	struct replay_frame frame = {0};
	struct capture c = {0};
	int code = start_capture(&c, file);

	while (!code && c.frames < number)
		if (!capture_next(&c, &frame))
			code = no_frame(&c, number);
	if (!code && frame.data)
		parse_frame(q, &frame);
	capture_close(&c);
	return code;
}

/* A key that is an address, or begins with one, has a source to be looked up by. */
static void read_source(struct question *q)
{
	static const uint8_t parts[] = {KEY_PART_SRC, KEY_PART_SRC | KEY_PART_DPORT};
	struct pacer_packet pkt;

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		for (uint8_t len = 1; len <= 128; len++) {
			struct policy_key kind = {.parts = parts[i], .src4 = len, .src6 = len};

			if (tally_key_read(&kind, q->key, &pkt))
				continue;
			q->pkt = pkt;
			q->by = (struct prefix){.len = len}; /* for how much of it there is */
			return;
		}
}

/* "value(geo, XY)" needs no limit that counts so. */
static void read_value(struct question *q)
{
	static const uint16_t parts[] = {KEY_PART_SRC_VALUE, KEY_PART_DST_VALUE};
	struct pacer_packet unused;

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		struct policy_key kind = {.parts = parts[i]};

		q->sourceless |= !tally_key_read(&kind, q->key, &unused);
	}
}

/* A key as a limit of the policy has it, whatever its parts. One with a source goes before. */
static void read_as_limit(struct question *q, const struct policy_key *kind)
{
	struct pacer_packet pkt;

	if (q->pkt.family != PACER_FAMILY_NONE || why_key_read(kind, q->key, &pkt))
		return;
	q->sourceless = !(kind->parts & KEY_PART_SRC);
	if (q->sourceless)
		return;
	q->pkt = pkt;
	q->by = (struct prefix){.len = pkt.family == PACER_FAMILY_4 ? kind->src4 : kind->src6};
}

/* Is it a key? */
static bool read_key(struct question *q)
{
	read_source(q);
	read_value(q);
	for (size_t r = 0; r < q->policy->n_rules; r++)
		for (size_t i = 0; i < q->policy->rule[r].n_limits; i++)
			read_as_limit(q, &q->policy->rule[r].limit[i].key);
	if (q->sourceless)
		q->read = PACER_NOT_IP; /* no source is looked for */
	q->pkt.len_bytes = PACKET_LEN_SMALLEST;
	return q->sourceless || q->pkt.family != PACER_FAMILY_NONE;
}

/* A flow's text is a key's and a packet's: it is taken for the packet, which has that key. */
static int read_text(struct question *q, int from)
{
	struct policy_error error;
	char *text = joined(q->o, from);

	if (!text)
		return gave_up("why", "no memory");
	if (packet_text_is(text) && !packet_text_read(text, q->raw_ip, &q->pkt, &q->head, &error)) {
		if (q->pkt.family == PACER_FAMILY_NONE)
			q->read = PACER_NOT_IP;
		free(text);
		return EXIT_DONE;
	}
	q->key = text;
	q->pkt = (struct pacer_packet){.family = PACER_FAMILY_NONE};
	if (read_key(q))
		return EXIT_DONE;
	return packet_text_is(text)
		   ? misused("why", "%s", error.text)
		   : misused("why",
			     "%s is no key, such as 192.0.2.1 or 192.0.2.0/24, nor a packet, such "
			     "as \"udp 192.0.2.1:4000 > 192.0.2.2:53\"",
			     text);
}

static struct prefix source_of(const struct pacer_packet *pkt, uint8_t len)
{
	bool four = pkt->family == PACER_FAMILY_4;
	struct prefix p = {.family = four ? 4 : 6, .len = len ? len : four ? 32 : 128};

	for (int i = 0; i < (four ? 4 : 16); i++)
		p.addr[i] = pkt->key[PACER_WORD_SADDR + i / 4] >> (24 - i % 4 * 8);
	return p;
}

/* --- the answer ------------------------------------------------------------------------------- */

static const char *span_text(uint64_t ns, char *buf, size_t size)
{
	if (ns < 1000000)
		snprintf(buf, size, "%llu ns", (unsigned long long)ns);
	else if (ns < 100 * (uint64_t)SECOND_NS)
		snprintf(buf, size, "%.3f s", ns / SECOND_NS);
	else
		allow_left_text(ns, buf, size);
	return buf;
}

/* As a field, and as " in 1.5 s", "never" or "now". */
static void emit_wait(const char *name, const struct question *q, uint64_t when_ns)
{
	uint64_t wait_ns = when_ns > q->now_ns ? when_ns - q->now_ns : 0;
	char text[TEXT];

	if (when_ns == PACER_NEVER)
		emit_null(name, "never");
	else if (!wait_ns)
		emit_uint(name, 0, "now");
	else
		emit_uint(name, wait_ns, "in %s", span_text(wait_ns, text, sizeof(text)));
}

static void emit_limit_name(const struct policy_rule *rule, const struct why_limit *l)
{
	const struct policy_limit *limit;
	char text[3 * TEXT], with[2 * TEXT] = "", rung[TEXT];

	if (l->limit < 0) {
		emit_null("limit", "a limit of the policy before");
		emit_null("rung", NULL);
		return;
	}
	limit = &rule->limit[l->limit];
	policy_rung_text(limit, rung, sizeof(rung));
	limit_kind_of(limit)->text(limit, text, sizeof(text));
	if (l->guest >= 0) {
		limit = &rule->limit[l->guest];
		limit_kind_of(limit)->text(limit, with, sizeof(with));
	}
	limit = &rule->limit[l->limit];
	emit_uint("limit", limit->item, "%s.limits[%u]%s: %s%s%s", rule->name, limit->item, rung,
		  text, *with ? ", " : "", with);
	if (limit->ladder.rungs)
		emit_uint("rung", limit->rung + 1u, NULL);
	else
		emit_null("rung", NULL);
}

static const char *const entry_names[] = {[HELD_BY_NONE] = "none",
					  [HELD_BY_OWN] = "own",
					  [HELD_BY_SHARED] = "shared",
					  [HELD_BY_CELLS] = "cells",
					  [HELD_BY_ONE] = "one"};
static const char *const entry_texts[] = {[HELD_BY_NONE] = "no entry yet",
					  [HELD_BY_OWN] = "its own entry",
					  [HELD_BY_SHARED] = "an entry shared with others",
					  [HELD_BY_CELLS] = "cells of a sketch",
					  [HELD_BY_ONE] = "one for all"};

/* Of a key without an address. */
static const char *const family_texts[] = {
    [PACER_FAMILY_NONE] = "", [PACER_FAMILY_4] = ", IPv4", [PACER_FAMILY_6] = ", IPv6"};

static void emit_held(const struct question *q, const struct limit_held *h)
{
	uint64_t ago_ns = h->last_ns && q->now_ns > h->last_ns ? q->now_ns - h->last_ns : 0;
	char text[TEXT];

	if (h->unit) {
		emit_string("unit", h->unit, NULL);
		emit_uint("used", h->used, NULL);
		emit_uint("max", h->max, NULL);
		emit_uint("asked", h->asked, NULL);
	}
	if (h->leases)
		emit_uint("leased", h->leased, NULL);
	if (h->last_ns)
		emit_uint("last_ago_ns", ago_ns, NULL);
	if (h->last_ns && !h->unit)
		emit_text("seen %s ago", span_text(ago_ns, text, sizeof(text)));
	else if (h->unit)
		emit_text("%s of %s %s", thousands(h->used).text, thousands(h->max).text, h->unit);
	else
		emit_text("nothing");
}

/* When the ban ends; of one that grows, which in a row it is, and how long the next one lasts. */
static void emit_ban(const struct question *q, const struct why_limit *l)
{
	uint64_t left_ns = l->banned_ns - q->now_ns;
	char text[TEXT], next[TEXT];

	if (!l->ban_row) {
		emit_wait("banned_ns", q, l->banned_ns);
		return;
	}
	emit_uint("banned_ns", left_ns, "in %s, no. %u in a row, the next for %s",
		  span_text(left_ns, text, sizeof(text)), l->ban_row,
		  span_text(l->ban_next_ns, next, sizeof(next)));
	emit_uint("ban_row", l->ban_row, NULL);
	emit_uint("ban_next_ns", l->ban_next_ns, NULL);
}

/* No time says when a host gets a share. A ban without an end lasts beyond that. */
static void emit_passes(const struct question *q, const struct why_limit *l)
{
	if (l->unshared && l->when_ns == PACER_NEVER && l->banned_ns != PACER_NEVER)
		emit_null("wait_ns", "when this host has a share");
	else
		emit_wait("wait_ns", q, pacer_later(l->when_ns, l->banned_ns));
}

static void emit_limit(const struct question *q, const struct policy_rule *rule,
		       const struct why_limit *l)
{
	emit_row();
	emit_object("");
	emit_limit_name(rule, l);
	emit_string("key", l->key, "%s%s", l->key, family_texts[l->family]);
	if (l->family == PACER_FAMILY_NONE)
		emit_null("family", NULL);
	else
		emit_uint("family", l->family == PACER_FAMILY_4 ? 4 : 6, NULL);
	emit_string("entry", entry_names[l->held.by], "%s",
		    l->unasked ? "not asked" : entry_texts[l->held.by]);
	emit_flag("counted", !l->unasked, NULL);
	emit_held(q, &l->held);
	emit_string("reason", pacer_reason_name(l->reason), NULL);
	emit_passes(q, l);
	if (l->banned_ns)
		emit_ban(q, l);
	else
		emit_skip(1);
	emit_close();
}

static void emit_limits(const struct question *q, const struct why *why)
{
	static const struct emit_column columns[] = {{"LIMIT", false},
						     {"KEY", false},
						     {"STATE", false},
						     {"HOLDS", false},
						     {"PASSES", false},
						     {"BAN ENDS", false},
						     {0}};

	emit_array("limits");
	emit_table(columns, 2);
	for (size_t i = 0; i < why->n; i++)
		emit_limit(q, &q->policy->rule[why->rule], &why->limit[i]);
	emit_table_end();
	emit_close();
}

static void emit_allowed(const struct question *q)
{
	char text[TEXT];

	if (!q->allowed) {
		emit_null("allowed", NULL);
		return;
	}
	if (q->by_set)
		snprintf(text, sizeof(text), "@%s", q->by_set);
	else
		units_prefix_text(&q->by, text, sizeof(text));
	emit_object("allowed");
	emit_string("prefix", text, "  allowed   by %s of the allow-list: no limit is asked", text);
	if (q->lapses_ns)
		emit_uint("left_ns", q->lapses_ns - q->now_ns, ", for another %s\n",
			  span_text(q->lapses_ns - q->now_ns, text, sizeof(text)));
	else
		emit_null("left_ns", "\n");
	emit_close();
}

static void emit_source(const struct question *q, const char *source, uint64_t source_ns)
{
	uint64_t left_ns = source_ns > q->now_ns ? source_ns - q->now_ns : 0;
	char text[TEXT];

	if (!source_ns) {
		emit_null("banned_source", NULL);
		return;
	}
	emit_object("banned_source");
	emit_string("prefix", source, "  banned    as %s, %swhatever the rule, ", source,
		    q->by_tool ? "by another tool, " : "");
	emit_flag("by_tool", q->by_tool, NULL);
	if (source_ns == PACER_NEVER)
		emit_null("left_ns", "until it is lifted\n");
	else
		emit_uint("left_ns", left_ns, "for another %s\n",
			  span_text(left_ns, text, sizeof(text)));
	emit_close();
}

/* The last denial, as far as it is known: `what` is what was looked for. */
static void emit_denied(const struct question *q, const struct denied *d, const char *what)
{
	uint64_t ago_ns = q->now_ns > d->time_ns ? q->now_ns - d->time_ns : 0;
	char text[TEXT];

	if (!q->a) { /* a capture */
		emit_null("last_denied", NULL);
		return;
	}
	if (!d->found) {
		emit_text("  denied    not known when last: ");
		if (q->sample)
			emit_null("last_denied", "the sample has no denial of %s\n", what);
		else
			emit_null("last_denied", "%s\n",
				  q->sampled ? "the sample changes faster than it can be read"
					     : "the policy samples no denied packets");
		return;
	}
	emit_object("last_denied");
	emit_uint("ago_ns", ago_ns, "  denied    %s ago at the latest that the sample has",
		  span_text(ago_ns, text, sizeof(text)));
	emit_string("reason", pacer_reason_name(d->reason), " (%s)\n",
		    pacer_reason_name(d->reason));
	emit_close();
}

static void emit_denied_keys(const struct question *q, const struct why *why)
{
	struct denied d = {0};

	if (q->sample && why->rule < PACER_RULES_MAX)
		d = denied_of_keys(q->a, q->sample, why->rule, why);
	if (q->sample && why->source_ns)
		d = denied_of_source(q->sample, &q->source);
	emit_denied(q, &d, why->source_ns ? "its source" : "its keys");
}

/* Of what cannot be read: it is for no limit, so that no time lets it pass. */
static bool drops_unparsed(const struct question *q, enum pacer_reason reason)
{
	return pacer_verdict_of(reason) == PACER_VERDICT_UNPARSED &&
	       !(q->bin->flags & PACER_MONITOR) &&
	       (q->bin->flags & PACER_UNPARSED_DROP || reason == PACER_TOO_DEEP);
}

/* What becomes of what is denied so. */
static enum pacer_over over_of(const struct question *q, const struct why *why,
			       enum pacer_reason reason)
{
	if (why->rule < PACER_RULES_MAX && !why->source_ns)
		return q->bin->rule[why->rule].over;
	return reason == PACER_DENY_VERDICT ? q->bin->else_over : PACER_OVER_DROP;
}

/* Is it denied, and not let through all the same? So it has to wait. */
static bool has_to_wait(const struct question *q, const struct why *why, enum pacer_reason reason)
{
	return pacer_verdict_of(reason) == PACER_VERDICT_DENY && !(q->bin->flags & PACER_MONITOR) &&
	       over_of(q, why, reason) != PACER_OVER_PASS;
}

/* What becomes of it: not what is denied where the policy only looks on. */
static const char *judged(const struct question *q, const struct why *why, enum pacer_reason reason)
{
	enum pacer_over over = over_of(q, why, reason);

	switch (pacer_verdict_of(reason)) {
	case PACER_VERDICT_PASS:
	case PACER_VERDICT_ADMIT:
		return "passes";
	case PACER_VERDICT_UNPARSED:
		return drops_unparsed(q, reason) ? "is dropped" : "passes";
	case PACER_VERDICT_DENY:
		break;
	}
	if (q->bin->flags & PACER_MONITOR)
		return "passes, since the policy only looks on";
	return over == PACER_OVER_PASS	 ? "passes, since its rule only counts"
	       : over == PACER_OVER_POOL ? "is sent to the pool, if that has room"
					 : "is dropped";
}

static const char *const reason_texts[] = {
#define REASON_TEXT(name, verdict, id, text) [PACER_##name] = text,
    PACER_REASONS(REASON_TEXT)
#undef REASON_TEXT
};

static const char *reason_text(enum pacer_reason reason)
{
	return reason < PACER_REASON_COUNT ? reason_texts[reason] : "?";
}

static const char *verdict_name(enum pacer_reason reason)
{
	switch (pacer_verdict_of(reason)) {
	case PACER_VERDICT_ADMIT:
		return "admit";
	case PACER_VERDICT_DENY:
		return "deny";
	case PACER_VERDICT_PASS:
	case PACER_VERDICT_UNPARSED:
		break;
	}
	return "pass";
}

static void flow_text(const struct pacer_packet *pkt, char text[TALLY_TEXT])
{
	static const struct policy_key flow = KEY_FLOW;

	if (pkt->family == PACER_FAMILY_NONE)
		snprintf(text, TALLY_TEXT, "a frame without addresses");
	else
		tally_key_text(&flow, pkt, text, TALLY_TEXT);
}

/* Of what is in a tunnel: the packet around it. */
static void emit_outer(const struct question *q)
{
	char text[TALLY_TEXT];

	if (!q->pkt.inner) {
		emit_null("outer", NULL);
		return;
	}
	flow_text(&q->outer, text);
	emit_string("outer", text, ", in %s", text);
}

static void emit_packet(const struct question *q)
{
	char text[TALLY_TEXT];

	flow_text(&q->pkt, text);
	emit_string("packet", text, "%s", text);
	emit_outer(q);
	emit_uint("len_bytes", q->pkt.len_bytes, ", %u bytes: ", q->pkt.len_bytes);
}

/* Which rung of a ladder denies the packet: the narrowest that does. */
static void emit_rung(const struct question *q, const struct why *why)
{
	const struct why_limit *by = why->denied >= 0 ? &why->limit[why->denied] : NULL;
	const struct policy_limit *limit;
	char rung[TEXT];

	if (!by || by->limit < 0)
		return;
	limit = &q->policy->rule[why->rule].limit[by->limit];
	if (limit->ladder.rungs)
		emit_text("  denied by %s.limits[%u]%s: %s\n", q->policy->rule[why->rule].name,
			  limit->item, policy_rung_text(limit, rung, sizeof(rung)), by->key);
}

/* Where the rule has limits of new flows. */
static void emit_opens(const struct question *q, const struct why *why)
{
	if (why->rule >= PACER_RULES_MAX || !q->bin->rule[why->rule].opens)
		emit_null("opens_flow", NULL);
	else
		emit_flag("opens_flow", why->opens, "  flow      %s\n",
			  why->opens ? "it opens one"
				     : "it opens none: limits of new flows do not count it");
}

/* Before what is denied would pass, the policy may give way to another, which was not asked. */
static void emit_trial(const struct question *q, uint64_t when_ns)
{
	char text[TEXT];

	if (q->trial_ns && when_ns > q->now_ns + q->trial_ns)
		emit_uint("trial_ns", q->trial_ns,
			  "  trial     this policy is on trial for another %s: unless it is "
			  "confirmed, ask again then\n",
			  span_text(q->trial_ns, text, sizeof(text)));
	else
		emit_null("trial_ns", NULL);
}

static void emit_answer(const struct question *q, const struct why *why, enum pacer_reason reason)
{
	bool waits = has_to_wait(q, why, reason);
	const char *of = q->of;

	emit_string("of", of, "%s: ", printable(of).text);
	emit_packet(q);
	emit_string("fate", judged(q, why, reason), "%s", judged(q, why, reason));
	emit_string("verdict", verdict_name(reason), NULL);
	emit_string("reason", pacer_reason_name(reason), " (%s: %s)\n", pacer_reason_name(reason),
		    reason_text(reason));
	emit_allowed(q);
	emit_source(q, why->source, why->source_ns);
	if (why->rule < PACER_RULES_MAX)
		emit_string("rule", q->policy->rule[why->rule].name, "  rule      %s\n",
			    q->policy->rule[why->rule].name);
	else
		emit_null("rule", NULL);
	emit_opens(q, why);
	if (q->cpus && q->admit && q->admit < q->cpus)
		emit_text("  leases    %u of %u CPUs would let it pass, the others have no use of "
			  "the throttle left\n",
			  q->admit, q->cpus);
	emit_uint("cpus_admit", q->admit, NULL);
	if (why->denied >= 0)
		emit_uint("denied_by", why->denied, NULL);
	else
		emit_null("denied_by", NULL);
	emit_rung(q, why);
	emit_text(waits ? "  passes    " : "");
	if (waits) {
		emit_wait("wait_ns", q, why->when_ns);
		emit_text(reason == PACER_DENY_VERDICT ? "\n" : ", if nothing else comes\n");
	} else if (drops_unparsed(q, reason)) {
		emit_null("wait_ns", NULL);
	} else {
		emit_uint("wait_ns", 0, NULL);
	}
	emit_trial(q, waits ? why->when_ns : q->now_ns);
	if (why->rule < PACER_RULES_MAX || why->source_ns)
		emit_denied_keys(q, why);
	else
		emit_null("last_denied", NULL);
	emit_limits(q, why);
}

/* Does the rule count by more than sources? Then the key may be that of packets of others. */
static bool counts_others(const struct why *why)
{
	for (size_t i = 0; i < why->n; i++)
		if (!(why->limit[i].by.parts & (KEY_PART_SRC | KEY_PART_SRC_VALUE)))
			return true;
	return false;
}

/* The sets that have the source, of those that the policy asks for sources. */
static void emit_sets(const struct question *q, const struct pacer_walk *walk,
		      const struct prefix *source)
{
	size_t n = 0;

	emit_array("sets");
	for (uint32_t i = 0; i < q->policy->n_sets && !q->sourceless; i++) {
		const struct policy_set_use use = {.set = i};

		if (reach_of_set(&use, walk, source) != REACH_ALL)
			continue;
		emit_string("", q->policy->set[i].name, "%s%s", n++ ? " " : "  sets      ",
			    q->policy->set[i].name);
	}
	emit_text(n ? "\n" : "");
	emit_close();
}

/* A rule that counts nothing. */
static void emit_verdict(const struct policy_rule *rule, enum reach reach)
{
	bool all = reach == REACH_ALL && !rule->match.n_inner; /* which its own are not */
	char buf[2 * TEXT];
	const char *text = output_says(rule->says, rule->over, rule->pool_name, buf, sizeof(buf));

	emit_object("");
	emit_string("name", rule->name, "  rule      %s\n", rule->name);
	emit_string("verdict", text, "  verdict   %s: %s\n", text,
		    all ? "all that it sends" : "what the rule matches");
	emit_flag("all", all, NULL);
	emit_null("last_denied", NULL);
	emit_array("limits");
	emit_close();
	emit_close();
}

static void emit_key_limits(const struct question *q, struct why *why)
{
	const struct policy_rule *rule = &q->policy->rule[why->rule];
	bool passes = rule->over == PACER_OVER_PASS;
	char buf[2 * TEXT];
	const char *over = output_says(passes ? PACER_SAYS_PASS : PACER_SAYS_DENY, rule->over,
				       rule->pool_name, buf, sizeof(buf));

	emit_object("");
	emit_string("name", rule->name, "  rule      %s%s\n", rule->name,
		    passes ? " (over: pass: its limits stop nothing)" : "");
	emit_string("over", over, NULL);
	why->source_ns = 0;
	emit_denied_keys(q, why);
	emit_limits(q, why);
	emit_close();
}

/* When the last of the limits would admit it. */
static uint64_t last_admits_ns(const struct why *why)
{
	uint64_t when_ns = 0;

	for (size_t i = 0; i < why->n; i++)
		when_ns = pacer_later(when_ns,
				      pacer_later(why->limit[i].when_ns, why->limit[i].banned_ns));
	return when_ns;
}

/*
 * The rules that its packets can fall under, up to one that all of them do. Those in a tunnel count
 * apart: the packet around them is another source's, and where that is none, as of PPPoE, not even
 * a rule for all has it before. Returns the last time that is told.
 */
static uint64_t emit_rules(const struct question *q, struct pacer_walk *walk,
			   const struct prefix *source)
{
	bool before[2] = {false}; /* all of its own, or in tunnels, fall under an earlier one */
	uint64_t last_ns = 0;
	size_t n = 0;

	emit_array("rules");
	for (size_t r = 0; r < q->policy->n_rules; r++) {
		const struct policy_rule *rule = &q->policy->rule[r];
		bool *had = &before[rule->match.n_inner > 0];
		enum reach reach =
		    *had || q->sourceless ? REACH_NONE : reach_of_rule(rule, walk, source);
		struct why why = {.n = 0};
		bool counts;

		walk->rule = r;
		if (rule->n_limits)
			why_key(walk, q->policy, q->resolution_ns, q->key,
				q->sourceless ? 0 : source->len, &why);
		else if (reach)
			emit_verdict(rule, reach);
		counts = why.n && (reach || q->sourceless || counts_others(&why));
		if (counts) {
			emit_key_limits(q, &why);
			last_ns = pacer_later(last_ns, last_admits_ns(&why));
		} else if (reach && rule->says == PACER_SAYS_DENY)
			last_ns = PACER_NEVER;
		n += counts || (!rule->n_limits && reach);
		*had |= reach == REACH_ALL;
	}
	emit_close();
	if (!n)
		emit_text("  no rule counts by such a key: ask for a packet, such as \"udp "
			  "192.0.2.1:4000 > 192.0.2.2:53\"\n");
	if (before[0] || q->policy->else_says != PACER_SAYS_DENY)
		return last_ns;
	emit_string("else", "drop", "  else      drop: what no rule matches\n");
	return PACER_NEVER;
}

/*
 * Another tool and the pacer itself may ban one source: the ban that ends last is told. Until when
 * it is, with prefix[TEXT], which has the pacer's own (own_ns, 0: there is none); and whose.
 */
static uint64_t later_ban(struct question *q, uint64_t own_ns, char *prefix)
{
	q->by_tool = q->by_tool && q->tool.until_ns >= own_ns;
	if (!q->by_tool)
		return own_ns;
	units_prefix_text(&q->tool.prefix, prefix, TEXT);
	return q->tool.until_ns;
}

static void emit_key(struct question *q, struct pacer_walk *walk, const struct prefix *source)
{
	char prefix[TEXT];
	uint64_t source_ns = why_source(walk, source->len, prefix, sizeof(prefix));
	bool monitor = q->bin->flags & PACER_MONITOR;

	source_ns = later_ban(q, source_ns, prefix);
	emit_string("of", q->of, "%s: ", printable(q->of).text);
	emit_string("key", q->key, "%s\n", q->key);
	emit_string("mode", monitor ? "monitor" : "enforce",
		    monitor ? "  mode      monitor: what is denied passes all the same\n" : NULL);
	emit_allowed(q);
	emit_source(q, prefix, source_ns);
	if (source_ns) {
		struct denied d = {0};

		if (q->sample)
			d = denied_of_source(q->sample, source);
		emit_denied(q, &d, "its source");
	} else {
		emit_null("last_denied", NULL);
	}
	emit_sets(q, walk, source);
	emit_trial(q, pacer_later(source_ns, emit_rules(q, walk, source)));
}

static int show_key(struct question *q, struct pacer_walk *walk, const struct prefix *source)
{
	emit_begin(q->o->json);
	emit_object("");
	emit_key(q, walk, source);
	emit_close();
	return emit_end();
}

static int show_packet(const struct question *q, const struct why *why)
{
	struct why none = {.rule = PACER_RULES_MAX, .denied = -1};
	enum pacer_reason reason = q->read != PACER_ADMIT ? q->read
				   : q->allowed		  ? PACER_ALLOWED
							  : why->reason;

	emit_begin(q->o->json);
	emit_object("");
	emit_answer(q, reason == why->reason ? why : &none, reason);
	emit_close();
	return emit_end();
}

/* Does a set of the allow-list have the source? Of a key, where that is a whole address. */
static void allow_by_set(struct question *q, const struct pacer_walk *walk)
{
	uint32_t whole = q->pkt.family == PACER_FAMILY_4 ? 32 : 128;

	if (q->read != PACER_ADMIT || (q->key && q->by.len != whole))
		return;
	for (uint32_t i = 0; i < q->policy->n_sets && !q->allowed; i++)
		if (pacer_set_allows(PACER_POLICY_OF(walk), i, pacer_walk_in(walk, i))) {
			q->allowed = true;
			q->by_set = q->policy->set[i].name;
		}
}

/* --- of a pacer at work ----------------------------------------------------------------------- */

/* On the CPU that would let it pass, or does first. */
static void ask_cpus(struct question *q, const struct look *look, struct why *why)
{
	uint64_t banned_ns = pacer_later(q->by_tool ? q->tool.until_ns : 0, q->outer_ns);

	for (uint32_t cpu = 0; cpu < look->cpus; cpu++) {
		struct pacer_state state = look_state(look, cpu);
		struct pacer_walk walk = {.state = &state, .now_ns = look->now_ns, .pkt = q->pkt};
		struct why one;

		why_packet_banned(&walk, q->policy, q->resolution_ns, banned_ns, &one);
		q->admit += one.reason == PACER_ADMIT;
		if (!cpu || (why->reason != PACER_ADMIT &&
			     (one.reason == PACER_ADMIT || one.when_ns < why->when_ns)))
			*why = one;
	}
	q->cpus = look->cpus;
}

/* Who is on the allow-list: of a pacer at work, or of the policy alone. */
struct allowed_by {
	const struct question *q;
	struct policy_error error;
};

static bool allows_inner(const struct pacer_packet *inner, void *arg)
{
	struct prefix source = source_of(inner, 0);
	struct allowed_by *by = arg;
	struct allow_entry entry;
	bool allowed = false;

	if (by->q->a)
		return allow_find(by->q->a, &source, &entry, &by->error) > 0;
	for (size_t i = 0; i < by->q->policy->n_allow && !allowed; i++)
		allowed = units_prefix_holds(&by->q->policy->allow[i], &source);
	return allowed;
}

/* Nothing is looked for behind a source that is banned, but what is there counts after the ban. */
static void look_behind(struct question *q, struct pacer_walk *walk, struct allowed_by *by)
{
	struct pacer_walk behind = *walk;

	behind.pkt = q->outer;
	q->outer_ns = why_source(&behind, 128, q->outer_source, sizeof(q->outer_source));
	if ((q->outer_ns || q->by_tool) &&
	    why_find_behind(&behind, &q->head, q->read, allows_inner, by) == PACER_ADMIT)
		*walk = behind;
}

/*
 * What the frame says of the rule: one that is not IP may fall under one, too, and one for what is
 * in a tunnel makes that the packet. 0, or -1 with *error filled.
 */
static int look_for_rule(struct question *q, struct pacer_walk *walk, struct policy_error *error)
{
	struct allowed_by by = {q, {0}};

	if (q->allowed || (q->read != PACER_ADMIT && q->read != PACER_NOT_IP))
		return 0;
	q->outer = q->pkt;
	if (!q->by_tool)
		q->read = why_find(walk, &q->head, q->read, allows_inner, &by);
	if (q->read == PACER_ADMIT)
		look_behind(q, walk, &by);
	q->pkt = walk->pkt;
	*error = by.error;
	return *by.error.text ? -1 : 0;
}

/* A ban of another tool comes before rules: what these say counts for the time alone. */
static void deny_by_tool(struct question *q, struct why *why)
{
	why->rule = PACER_RULES_MAX;
	why->n = 0;
	why->source_ns = later_ban(q, why->source_ns, why->source);
}

static int ask_tools(struct question *q, const struct attached *a, const struct prefix *source,
		     struct policy_error *error)
{
	int found = tool_bans_find(a, source, q->now_ns, &q->tool, error);

	q->by_tool = found > 0;
	return found < 0 ? -1 : 0;
}

/*
 * The source in the tunnel may be banned, too: the longer ban of tools counts. 0, or -1 with *error
 * filled.
 */
static int ask_inner_tools(struct question *q, const struct attached *a, struct policy_error *error)
{
	struct prefix inner = source_of(&q->pkt, 0);
	struct tool_ban around = q->tool;
	bool by_tool = q->by_tool;

	if (ask_tools(q, a, &inner, error))
		return -1;
	if (by_tool && (!q->by_tool || around.until_ns > q->tool.until_ns)) {
		q->by_tool = true;
		q->tool = around;
	} else if (q->by_tool || !q->outer_ns) {
		q->source = inner;
	}
	return 0;
}

/* The pacer's own ban of the source around it, where that is what denies it. */
static void deny_by_outer(struct question *q, struct why *why)
{
	if (!q->pkt.inner || !q->outer_ns || q->outer_ns < why->source_ns)
		return;
	why->source_ns = q->outer_ns;
	snprintf(why->source, sizeof(why->source), "%s", q->outer_source);
	q->source = source_of(&q->outer, 0);
}

static int ask_look(struct question *q, const struct attached *a, const struct look *look)
{
	struct prefix source = source_of(&q->pkt, q->key ? q->by.len : 0);
	struct pacer_state state = look_state(look, 0);
	struct pacer_walk walk = {.state = &state, .now_ns = look->now_ns, .pkt = q->pkt};
	struct policy_error error = {0};
	struct allow_entry entry;
	struct why why = {.reason = PACER_REASON_COUNT};
	int found = q->read != PACER_ADMIT ? 0 : allow_find(a, &source, &entry, &error);

	if (found < 0)
		return complain(NULL, &error);
	q->bin = look->policy;
	q->now_ns = look->now_ns;
	q->trial_ns = copies_pending_ns(a);
	q->source = source;
	q->allowed = found;
	if (found) {
		q->by = entry.prefix;
		q->lapses_ns = allow_until_ns(&entry);
	} else {
		allow_by_set(q, &walk);
	}
	if (q->read == PACER_ADMIT && !q->allowed && ask_tools(q, a, &source, &error))
		return complain(NULL, &error);
	if (!q->key && look_for_rule(q, &walk, &error))
		return complain(NULL, &error);
	if (q->pkt.inner && ask_inner_tools(q, a, &error))
		return complain(NULL, &error);
	if (q->key)
		return show_key(q, &walk, &source);
	if (q->read == PACER_ADMIT)
		ask_cpus(q, look, &why);
	deny_by_outer(q, &why);
	if (q->by_tool)
		deny_by_tool(q, &why);
	return show_packet(q, &why);
}

/*
 * Where there is none of denied packets, or one that changes too fast, nothing is known of it. 0,
 * or the exit code.
 */
static int read_sample(struct question *q, const struct attached *a,
		       const struct pacer_policy *policy, struct sample *sample)
{
	struct policy_error error = {0};

	q->sampled = denied_is_sampled(policy);
	if (q->sampled && !sample_read(a, host_now_ns(), sample, &error))
		q->sample = sample;
	return error.line == POLICY_NO_MEMORY ? complain(NULL, &error) : EXIT_DONE;
}

static int ask_live(struct attached *a, const struct options *o)
{
	struct question q = {.o = o,
			     .of = a->ifname,
			     .raw_ip = a->control->raw_ip,
			     .resolution_ns = copies_resolution_ns(a)};
	struct policy_error error = {0};
	struct sample sample = {0};
	struct policy *policy;
	struct look look;
	uint64_t number = 0;
	int code = o->pcap ? read_number(o->frame, &number) : EXIT_DONE;

	if (!code && o->pcap)
		code = read_frame(&q, o->pcap, number);
	policy = code ? NULL : copies_policy(a, copies_in_force(a), &error);
	if (!code && !policy)
		code = gave_up("why", "no memory for the policy");
	q.policy = policy;
	if (!code && !o->pcap)
		code = read_text(&q, 1);
	if (!code && look_open(a, &look, &error))
		code = complain(NULL, &error);
	else if (!code) {
		q.a = a;
		code = read_sample(&q, a, look.policy, &sample);
		if (!code)
			code = ask_look(&q, a, &look);
		look_close(&look);
		sample_free(&sample);
	}
	policy_free(policy);
	free(q.key);
	return code;
}

/* --- at a moment of a capture ------------------------------------------------------------------
 */

static void allow_by_policy(struct question *q, const struct prefix *source)
{
	for (size_t i = 0; i < q->policy->n_allow; i++) {
		const struct prefix *p = &q->policy->allow[i];

		if (units_prefix_holds(p, source) && (!q->allowed || p->len > q->by.len)) {
			q->allowed = true;
			q->by = *p;
		}
	}
}

/* Judge what comes until the moment. Returns the exit code. */
static int replay_until(struct question *q, struct capture *c, struct judge *j, uint64_t number,
			uint64_t at_ns)
{
	uint64_t first_ns = 0;
	struct replay_frame frame;
	struct replay_judged unused;
	struct policy_error error = {0};

	while (capture_next(c, &frame)) {
		if (c->frames == 1)
			first_ns = frame.now_ns;
		if (number ? c->frames == number : frame.now_ns - first_ns > at_ns) {
			if (number)
				q->now_ns = frame.now_ns;
			if (q->of_frame)
				parse_frame(q, &frame);
			number = 0;
			break;
		}
		q->now_ns = frame.now_ns;
		if (replay_judge(j->replay, &frame, &unused, &error))
			return complain(NULL, &error);
	}
	if (number)
		return no_frame(c, number);
	if (q->o->at)
		q->now_ns = first_ns + at_ns;
	return EXIT_DONE;
}

static int ask_replay(struct question *q, struct judge *j)
{
	struct pacer_walk walk = replay_walk(j->replay, &q->pkt, q->now_ns);
	struct prefix source = source_of(&q->pkt, q->key ? q->by.len : 0);
	struct why why = {.reason = PACER_REASON_COUNT};
	struct policy_error error = {0};

	q->bin = j->bin;
	q->now_ns = walk.now_ns;
	if (q->read == PACER_ADMIT)
		allow_by_policy(q, &source);
	if (!q->allowed)
		allow_by_set(q, &walk);
	if (!q->key && look_for_rule(q, &walk, &error))
		return complain(NULL, &error);
	if (q->key)
		return show_key(q, &walk, &source);
	if (q->read == PACER_ADMIT)
		why_packet(&walk, q->policy, q->resolution_ns, &why);
	q->admit = why.reason == PACER_ADMIT;
	return show_packet(q, &why);
}

static int replay_and_ask(struct question *q, uint64_t number, uint64_t at_ns)
{
	struct judge judge = {0};
	struct capture c = {0};
	int code = start_judge(&judge, q->of, q->policy, false);

	if (!code)
		code = start_capture(&c, q->o->replay);
	if (!code)
		code = replay_until(q, &c, &judge, number, at_ns);
	if (!code)
		code = ask_replay(q, &judge);
	if (!code && c.damaged) /* it is not known what came until then */
		code = EXIT_FAILED;
	capture_close(&c);
	judge_close(&judge);
	return code;
}

static int ask_capture(const struct options *o)
{
	struct question q = {.o = o, .of = o->policy, .of_frame = !o->n_args};
	uint64_t number = 0, at_ns = UINT64_MAX;
	struct policy *policy = NULL;
	char *text = NULL;
	int code = EXIT_DONE;

	if (o->frame)
		code = read_number(o->frame, &number);
	if (!code && o->at && units_duration(o->at, &at_ns))
		code = misused("why", "--at %s is not a time since the first frame, such as 12.5s",
			       o->at);
	if (!code)
		code = read_policy(o->policy, &text, &policy);
	q.policy = policy;
	if (!code && o->n_args)
		code = read_text(&q, 0);
	if (!code)
		code = replay_and_ask(&q, number, at_ns);
	policy_free(policy);
	free(text);
	free(q.key);
	return code;
}

static int run_why(struct options *o)
{
	bool frame = o->pcap && o->frame;

	if (o->policy || o->replay) {
		if (!o->policy || !o->replay || o->pcap || (o->at && o->frame) ||
		    (!o->n_args && !o->frame))
			return misused("why", "with --replay it wants -c POLICY, and a KEY or a "
					      "PACKET with --at TIME, or --frame N");
		return ask_capture(o);
	}
	if (o->at || (!frame && (o->pcap || o->frame)) || o->n_args < 1 ||
	    (o->n_args == 1) != frame)
		return misused("why", "it wants IFACE KEY, IFACE PACKET, or IFACE --pcap FILE "
				      "--frame N");
	return with_pacer(o, ask_live);
}

static const struct option_row why_options[] = {
    {"pcap", 0, "FILE", "ask for a frame of this capture", OPTION_TEXT(pcap)},
    {"frame", 0, "N", "which one, from 1; of --replay just before it is judged",
     OPTION_TEXT(frame)},
    {"policy", 'c', "POLICY", "ask under this policy, beside --replay", OPTION_TEXT(policy)},
    {"replay", 0, "FILE", "at a moment of this capture, in place of a pacer at work",
     OPTION_TEXT(replay)},
    {"at", 0, "TIME", "so long after its first frame; else at its end", OPTION_TEXT(at)},
    {0},
};

const struct verb verb_why = {"why",
			      "[IFACE...] [KEY|PACKET]",
			      "how a packet would fare, and why, and when it would pass",
			      why_options,
			      run_why,
			      .group = VERBS_LOOK,
			      .interfaces = INTERFACES_LEAD,
			      .example = "xdp-pacer why eth0 203.0.113.9"};
