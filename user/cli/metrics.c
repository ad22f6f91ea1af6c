/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/text.h"
#include "inspect/occupancy.h"

#define PREFIX	     "xdp_pacer_"
#define NUMBER_TEXT  64
#define NS_PER_S     1000000000ul
#define OPEN_METRICS "application/openmetrics-text"

enum family_kind { FAMILY_COUNTER, FAMILY_GAUGE, FAMILY_INFO };

/* Where one metric of one interface is written. */
struct row {
	FILE *to;
	const struct family *family;
	const struct metrics_interface *of;
	const struct reading *f; /* of->reading */
	bool seen;		 /* on a terminal */
};

struct family {
	const char *name; /* without its prefix, and without the suffix of its kind */
	const char *unit; /* that the name ends with; NULL: none */
	const char *help;
	void (*rows)(const struct row *row);
	bool (*value)(const struct policy_limit *limit, char *text); /* of limit_rows */
	enum family_kind kind;
	bool of_missing; /* an interface without a pacer has it, too */
};

/* --- a line --------------------------------------------------------------------------------- */

static const char *suffix_of(const struct family *family)
{
	return family->kind == FAMILY_COUNTER ? "_total"
	       : family->kind == FAMILY_INFO  ? "_info"
					      : "";
}

/* A label's value may hold any character but these three. */
static void put_escaped(const struct row *row, const char *value)
{
	const struct printable seen = printable(value);

	for (const char *text = row->seen ? seen.text : value; *text; text++) {
		if (*text == '\\' || *text == '"')
			fputc('\\', row->to);
		if (*text == '\n')
			fputs("\\n", row->to);
		else
			fputc(*text, row->to);
	}
}

static void put_label(const struct row *row, const char *name, const char *value)
{
	fprintf(row->to, ",%s=\"", name);
	put_escaped(row, value);
	fputc('"', row->to);
}

/* Up to the interface's label, whose bytes may be none that make characters. */
static void begin(const struct row *row)
{
	char text[TEXT_NAME(IF_NAMESIZE)];

	fprintf(row->to, PREFIX "%s%s{interface=\"", row->family->name, suffix_of(row->family));
	put_escaped(row, text_name(row->of->ifname, text, sizeof(text)));
	fputc('"', row->to);
}

static void end_with(const struct row *row, const char *value)
{
	fprintf(row->to, "} %s\n", value);
}

static void end(const struct row *row, uint64_t value)
{
	fprintf(row->to, "} %" PRIu64 "\n", value);
}

static const char *seconds_text(uint64_t ns, char *text)
{
	size_t len = (size_t)snprintf(text, NUMBER_TEXT, "%" PRIu64 ".%09" PRIu64, ns / NS_PER_S,
				      ns % NS_PER_S);

	while (text[len - 1] == '0')
		text[--len] = 0;
	if (text[len - 1] == '.')
		text[len - 1] = 0;
	return text;
}

/* --- of an interface ------------------------------------------------------------------------ */

static void up_rows(const struct row *row)
{
	begin(row);
	end(row, row->f != NULL);
}

static void policy_rows(const struct row *row)
{
	char serial[NUMBER_TEXT];

	snprintf(serial, sizeof(serial), "%" PRIu64, row->f->serial);
	begin(row);
	put_label(row, "serial", serial);
	put_label(row, "clock", row->f->exact ? "exact" : "coarse");
	put_label(row, "attach", row->of->dispatcher ? "dispatcher" : "direct");
	put_label(row, "attach_mode", row->of->mode);
	end(row, 1);
}

static void unconfirmed_rows(const struct row *row)
{
	char text[NUMBER_TEXT];

	begin(row);
	end_with(row, seconds_text(row->f->pending_ns, text));
}

static void monitor_rows(const struct row *row)
{
	begin(row);
	end(row, row->f->monitor);
}

static void duration_rows(const struct row *row)
{
	char text[NUMBER_TEXT];

	begin(row);
	end_with(row, seconds_text(row->of->read_ns, text));
}

static void ban_row(const struct row *row, const char *rule, uint64_t bans)
{
	begin(row);
	put_label(row, "rule", rule);
	end(row, bans);
}

static void bans_rows(const struct row *row)
{
	const struct reading *f = row->f;

	if (f->bans_counted)
		ban_row(row, "", f->bans_of_sources);
	for (size_t r = 0; f->bans_counted && r < f->policy->n_rules; r++)
		if (f->policy->rule[r].ban_ns || f->bans[r])
			ban_row(row, f->policy->rule[r].name, f->bans[r]);
	if (f->bans_counted && f->bans_of_gone)
		ban_row(row, "?", f->bans_of_gone);
}

static void ban_room_rows(const struct row *row)
{
	if (!row->f->ban_room)
		return;
	begin(row);
	end(row, row->f->ban_room);
}

/* --- of a set -------------------------------------------------------------------------------- */

static void set_row(const struct row *row, size_t set, uint64_t value)
{
	begin(row);
	put_label(row, "set", row->f->policy->set[set].name);
	end(row, value);
}

static void set_packets_rows(const struct row *row)
{
	for (size_t i = 0; i < row->f->policy->n_sets; i++)
		if (row->f->set[i].counted)
			set_row(row, i, row->f->set[i].count.packets);
}

static void set_bytes_rows(const struct row *row)
{
	for (size_t i = 0; i < row->f->policy->n_sets; i++)
		if (row->f->set[i].counted)
			set_row(row, i, row->f->set[i].count.bytes);
}

static void set_elements_rows(const struct row *row)
{
	for (size_t i = 0; i < row->f->policy->n_sets; i++)
		set_row(row, i, row->f->set[i].prefixes);
}

/* --- counters ------------------------------------------------------------------------------- */

static const char *const verdict_names[] = {
    [PACER_VERDICT_PASS] = "pass",
    [PACER_VERDICT_ADMIT] = "admit",
    [PACER_VERDICT_DENY] = "deny",
    [PACER_VERDICT_UNPARSED] = "unparsed",
};

/* Each that may come up is there from the beginning, so that its first packet is an increase. */
static bool may_befall(enum pacer_reason reason, bool ruled)
{
	switch (pacer_verdict_of(reason)) {
	case PACER_VERDICT_ADMIT:
		return ruled;
	case PACER_VERDICT_DENY: /* without a rule: a source is banned, else drops, or all is amiss
				  */
		return ruled || reason == PACER_DENY_NO_STATE || reason == PACER_DENY_BAN ||
		       reason == PACER_DENY_VERDICT;
	case PACER_VERDICT_PASS:
	case PACER_VERDICT_UNPARSED:
		break;
	}
	return !ruled;
}

static void count_rows(const struct row *row, const char *rule, const struct pacer_counters *c,
		       bool bytes)
{
	for (int r = 0; r < PACER_REASON_COUNT; r++) {
		if (!may_befall(r, *rule))
			continue;
		begin(row);
		put_label(row, "rule", rule);
		put_label(row, "verdict", verdict_names[pacer_verdict_of(r)]);
		put_label(row, "reason", pacer_reason_name(r));
		end(row, bytes ? c->by[r].bytes : c->by[r].packets);
	}
}

static void each_count(const struct row *row, bool bytes)
{
	for (size_t r = 0; r < row->f->policy->n_rules; r++)
		count_rows(row, row->f->policy->rule[r].name, &row->f->rule[r], bytes);
	count_rows(row, "", &row->f->none, bytes);
}

static void packets_rows(const struct row *row)
{
	each_count(row, false);
}

static void bytes_rows(const struct row *row)
{
	each_count(row, true);
}

static void event_rows(const struct row *row, const char *rule, const struct pacer_counters *c)
{
	static const char *const names[] = {
#define EVENT_NAME(name, id, text) [PACER_##name] = id,
	    PACER_EVENTS(EVENT_NAME)
#undef EVENT_NAME
	};

	for (int e = 0; e < PACER_EVENT_COUNT; e++) {
		if (!*rule && e != PACER_READ_IN_PART)
			continue;
		begin(row);
		put_label(row, "rule", rule);
		put_label(row, "event", names[e]);
		end(row, c->events[e]);
	}
}

static void events_rows(const struct row *row)
{
	for (size_t r = 0; r < row->f->policy->n_rules; r++)
		event_rows(row, row->f->policy->rule[r].name, &row->f->rule[r]);
	event_rows(row, "", &row->f->none);
}

/* --- a shadow ------------------------------------------------------------------------------- */

static void shadow_rows(const struct row *row)
{
	begin(row);
	end(row, row->of->shadow != NULL);
}

/* Each that may come up is there from the beginning, as above. */
static void change_rows(const struct row *row, const char *rule, const struct pacer_changes *c,
			int reason, bool bytes)
{
	static const char *const names[] = {
#define CHANGE_NAME(name, id, text) [PACER_##name] = id,
	    PACER_CHANGES(CHANGE_NAME)
#undef CHANGE_NAME
	};

	for (int change = 0; change < PACER_CHANGE_COUNT; change++) {
		const struct pacer_count *count = &c->by[change][reason];

		begin(row);
		put_label(row, "rule", rule);
		put_label(row, "reason", pacer_reason_name(reason));
		put_label(row, "change", names[change]);
		end(row, bytes ? count->bytes : count->packets);
	}
}

static void each_change(const struct row *row, bool bytes)
{
	const struct shadow_reading *s = row->of->shadow;

	for (size_t r = 0; s && r <= s->policy->n_rules; r++) {
		bool ruled = r < s->policy->n_rules;

		for (int reason = 0; reason < PACER_REASON_COUNT; reason++)
			if (may_befall(reason, ruled))
				change_rows(row, ruled ? s->policy->rule[r].name : "",
					    ruled ? &s->rule[r] : &s->none, reason, bytes);
	}
}

static void shadow_packets_rows(const struct row *row)
{
	each_change(row, false);
}

static void shadow_bytes_rows(const struct row *row)
{
	each_change(row, true);
}

/* --- limits --------------------------------------------------------------------------------- */

static void begin_limit(const struct row *row, size_t rule, size_t limit)
{
	const struct policy_rule *of = &row->f->policy->rule[rule];
	char index[NUMBER_TEXT], key[POLICY_KEY_TEXT];

	snprintf(index, sizeof(index), "%u", of->limit[limit].item);
	begin(row);
	put_label(row, "rule", of->name);
	put_label(row, "limit", index);
	put_label(row, "key", policy_key_text(&of->limit[limit].key, key, sizeof(key)));
}

static uint64_t used_of(const struct reading_table *t)
{
	return t->used;
}

static uint64_t capacity_of(const struct reading_table *t)
{
	return t->capacity;
}

static uint64_t shared_of(const struct reading_table *t)
{
	return t->shared;
}

static uint64_t shared_capacity_of(const struct reading_table *t)
{
	return t->shared_capacity;
}

static void table_rows(const struct row *row, uint64_t (*value)(const struct reading_table *))
{
	for (size_t i = 0; i < row->f->n_tables; i++) {
		begin_limit(row, row->f->table[i].rule, row->f->table[i].limit);
		end(row, value(&row->f->table[i]));
	}
}

static void used_rows(const struct row *row)
{
	table_rows(row, used_of);
}

static void capacity_rows(const struct row *row)
{
	table_rows(row, capacity_of);
}

static void shared_rows(const struct row *row)
{
	table_rows(row, shared_of);
}

static void shared_capacity_rows(const struct row *row)
{
	table_rows(row, shared_capacity_of);
}

static void share_rows(const struct row *row, uint64_t (*value)(const struct reading_share *))
{
	for (size_t i = 0; i < row->f->n_shares; i++) {
		begin_limit(row, row->f->share[i].rule, row->f->share[i].limit);
		end(row, value(&row->f->share[i]));
	}
}

static uint64_t units_of(const struct reading_share *s)
{
	return s->units;
}

static uint64_t all_of(const struct reading_share *s)
{
	return s->all;
}

static uint64_t lanes_of(const struct reading_share *s)
{
	return s->lanes;
}

static uint64_t members_of(const struct reading_share *s)
{
	return s->members;
}

static void fleet_share_rows(const struct row *row)
{
	share_rows(row, units_of);
}

static void fleet_limit_rows(const struct row *row)
{
	share_rows(row, all_of);
}

static void fleet_members_rows(const struct row *row)
{
	share_rows(row, members_of);
}

static void fleet_keys_rows(const struct row *row)
{
	share_rows(row, lanes_of);
}

static void fleet_answer_rows(const struct row *row)
{
	uint64_t now_ns = row->f->now_ns;
	char text[NUMBER_TEXT];

	for (size_t i = 0; i < row->f->n_shares; i++) {
		const struct reading_share *s = &row->f->share[i];
		uint64_t age_ns = now_ns - s->answered_ns;

		if (!s->answered_ns)
			continue;
		if (s->answered_ns > now_ns)
			age_ns = 0; /* after the clock was read */
		begin_limit(row, s->rule, s->limit);
		end_with(row, seconds_text(age_ns, text));
	}
}

static void items_rows(const struct row *row)
{
	const struct reading_items *items = &row->f->items;
	const struct {
		const char *name;
		uint64_t value;
	} of[] = {{"fleet_items", items->known},
		  {"fleet_items_told", items->told},
		  {"fleet_items_taken", items->taken},
		  {"fleet_items_late", items->late},
		  {"fleet_items_left_out", items->left_out}};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of) && items->any; i++)
		if (!strcmp(of[i].name, row->family->name)) {
			begin(row);
			end(row, of[i].value);
		}
}

static void limit_rows(const struct row *row)
{
	char text[NUMBER_TEXT];

	for (size_t r = 0; r < row->f->policy->n_rules; r++)
		for (size_t l = 0; l < row->f->policy->rule[r].n_limits; l++)
			if (row->family->value(&row->f->policy->rule[r].limit[l], text)) {
				begin_limit(row, r, l);
				end_with(row, text);
			}
}

static bool count_if(bool is, uint64_t value, char *text)
{
	if (is)
		snprintf(text, NUMBER_TEXT, "%" PRIu64, value);
	return is;
}

static bool seconds_if(bool is, uint64_t ns, char *text)
{
	if (is)
		seconds_text(ns, text);
	return is;
}

static bool is_window(const struct policy_limit *l, enum pacer_cost cost)
{
	return l->kind == LIMIT_WINDOW && l->cost == cost;
}

static bool is_rate(const struct policy_limit *l, enum pacer_cost cost)
{
	return l->kind == LIMIT_RATE && l->cost == cost;
}

static bool limit_packets(const struct policy_limit *l, char *text)
{
	return count_if(is_window(l, PACER_COST_PACKETS), l->limit, text);
}

static bool limit_bytes(const struct policy_limit *l, char *text)
{
	return count_if(is_window(l, PACER_COST_BYTES), l->limit, text);
}

static bool limit_window(const struct policy_limit *l, char *text)
{
	return seconds_if(l->kind == LIMIT_WINDOW, l->window_ns, text);
}

static bool limit_gap(const struct policy_limit *l, char *text)
{
	return seconds_if(l->kind == LIMIT_GAP, l->gap_ns, text);
}

static bool rate_if(bool is, const struct units_rate *rate, char *text)
{
	if (is)
		snprintf(text, NUMBER_TEXT, "%.15g",
			 (double)rate->amount * NS_PER_S / (double)rate->per_ns);
	return is;
}

static bool limit_packet_rate(const struct policy_limit *l, char *text)
{
	return rate_if(is_rate(l, PACER_COST_PACKETS), &l->rate, text);
}

static bool limit_byte_rate(const struct policy_limit *l, char *text)
{
	return rate_if(is_rate(l, PACER_COST_BYTES), &l->rate, text);
}

static bool limit_packet_burst(const struct policy_limit *l, char *text)
{
	return count_if(is_rate(l, PACER_COST_PACKETS), l->burst, text);
}

static bool limit_byte_burst(const struct policy_limit *l, char *text)
{
	return count_if(is_rate(l, PACER_COST_BYTES), l->burst, text);
}

static bool limit_uses(const struct policy_limit *l, char *text)
{
	return count_if(l->kind == LIMIT_THROTTLE, l->throttle.uses, text);
}

static bool limit_cooldown(const struct policy_limit *l, char *text)
{
	return seconds_if(l->kind == LIMIT_THROTTLE, l->throttle.cooldown_ns, text);
}

/* --- all of it ------------------------------------------------------------------------------ */

_Static_assert(2 * OCCUPANCY_SETS == 32768 && READING_BANS == 262144, "as the help texts say");

#define FAMILY(name, unit, help, rows, value, kind)        \
	{                                                  \
		name, unit, help, rows, value, kind, false \
	}
#define COUNTER(name, unit, help, rows) FAMILY(name, unit, help, rows, NULL, FAMILY_COUNTER)
#define GAUGE(name, unit, help, rows)	FAMILY(name, unit, help, rows, NULL, FAMILY_GAUGE)
#define LIMIT(name, unit, help, value)	FAMILY(name, unit, help, limit_rows, value, FAMILY_GAUGE)

static const struct family families[] = {
    {"up", NULL, "Whether the interface's pacer could be read.", up_rows, NULL, FAMILY_GAUGE, true},
    COUNTER("packets", "packets",
	    "Packets by rule (none where no rule judged them), verdict and reason. In monitor mode "
	    "and with over: pass, what is denied passes all the same.",
	    packets_rows),
    COUNTER("bytes", "bytes", "Bytes of those packets, as frames.", bytes_rows),
    GAUGE("shadow", NULL, "Whether a shadow judges beside the policy in force.", shadow_rows),
    COUNTER(
	"shadow_packets", "packets",
	"Packets that a shadow has judged, by its rule and reason. Change: none, they fare alike; "
	"deny, they were let through and would not be; admit, the other way round.",
	shadow_packets_rows),
    COUNTER("shadow_bytes", "bytes", "Bytes of those packets, as frames.", shadow_bytes_rows),
    COUNTER("events", "events", "What befell packets of a rule beside their reason.", events_rows),
    COUNTER("set_packets", "packets",
	    "Packets with an address in a set, where a rule or the allow-list asks for it.",
	    set_packets_rows),
    COUNTER("set_bytes", "bytes", "Bytes of those packets, as frames.", set_bytes_rows),
    GAUGE("set_elements", NULL,
	  "Prefixes of a set. What was added for a time counts until the next change of the set.",
	  set_elements_rows),
    GAUGE("entries", NULL,
	  "Entries of keys in use. Of more than 32768 an estimate, within 1.5 % of the capacity.",
	  used_rows),
    GAUGE("entries_capacity", NULL, "Entries for keys.", capacity_rows),
    GAUGE("entries_shared", NULL,
	  "Entries in use that keys without one of their own share. Estimated as entries are.",
	  shared_rows),
    GAUGE("entries_shared_capacity", NULL, "Entries for keys to share.", shared_capacity_rows),
    GAUGE("fleet_share", NULL,
	  "What this host may use now of a limit that a fleet divides: packets, bytes or uses; of "
	  "a rate, those of an hour.",
	  fleet_share_rows),
    GAUGE("fleet_limit", NULL, "All of that limit, in the same.", fleet_limit_rows),
    GAUGE("fleet_keys", NULL, "Keys with shares of their own, by demand.", fleet_keys_rows),
    GAUGE("fleet_members", NULL, "Members of the fleet, as the agent saw them last.",
	  fleet_members_rows),
    GAUGE("fleet_answer_age_seconds", "seconds",
	  "Time since the store answered the agent. Absent until it has.", fleet_answer_rows),
    GAUGE(
	"fleet_items", NULL,
	"Bans and elements of sets that the fleet shares, as this host's agent knows them. Absent "
	"where it shares none.",
	items_rows),
    COUNTER("fleet_items_told", NULL, "Of those, words that this host had for the others.",
	    items_rows),
    COUNTER("fleet_items_taken", NULL, "Words of other hosts that this one took.", items_rows),
    COUNTER("fleet_items_late", NULL, "Items that had to wait, since too many came in a second.",
	    items_rows),
    COUNTER("fleet_items_left_out", NULL, "Items for which there was no room here.", items_rows),
    GAUGE("bans", NULL, "Keys that are banned. Absent where there is room for more than 262144.",
	  bans_rows),
    GAUGE("bans_capacity", NULL, "Keys that can be banned at once.", ban_room_rows),
    {"policy", NULL, "The policy in force, and how its program is attached.", policy_rows, NULL,
     FAMILY_INFO, false},
    GAUGE("policy_unconfirmed_seconds", "seconds",
	  "Time until the policy gives way unless it is confirmed. 0: it stays.", unconfirmed_rows),
    GAUGE("monitor", NULL, "Whether what is denied passes all the same.", monitor_rows),
    LIMIT("limit_packets", "packets", "Packets of a key that a window admits.", limit_packets),
    LIMIT("limit_bytes", "bytes", "Bytes of a key that a window admits.", limit_bytes),
    LIMIT("limit_window_seconds", "seconds", "Length of that window.", limit_window),
    LIMIT("limit_gap_seconds", "seconds", "Least time between two packets of a key.", limit_gap),
    LIMIT("limit_rate_packets_per_second", "packets_per_second", "Rate of a key.",
	  limit_packet_rate),
    LIMIT("limit_rate_bytes_per_second", "bytes_per_second", "Rate of a key.", limit_byte_rate),
    LIMIT("limit_burst_packets", "packets", "Burst of that rate.", limit_packet_burst),
    LIMIT("limit_burst_bytes", "bytes", "Burst of that rate.", limit_byte_burst),
    LIMIT("limit_uses", NULL, "Uses of a throttle.", limit_uses),
    LIMIT("limit_cooldown_seconds", "seconds", "Time until a use of the throttle is free again.",
	  limit_cooldown),
    GAUGE("scrape_duration_seconds", "seconds", "Time that reading the interface's pacer took.",
	  duration_rows),
};

/* The two forms differ in whether a family's name has its suffix. */
static void put_head(FILE *to, enum metrics_form form, const struct family *family)
{
	static const char *const kinds[] = {
	    [FAMILY_COUNTER] = "counter", [FAMILY_GAUGE] = "gauge", [FAMILY_INFO] = "info"};
	bool open = form == METRICS_OPEN, info = family->kind == FAMILY_INFO;
	const char *suffix = open ? "" : suffix_of(family);

	fprintf(to, "# HELP " PREFIX "%s%s %s\n", family->name, suffix, family->help);
	fprintf(to, "# TYPE " PREFIX "%s%s %s\n", family->name, suffix,
		info && !open ? "gauge" : kinds[family->kind]);
	if (open && family->unit)
		fprintf(to, "# UNIT " PREFIX "%s %s\n", family->name, family->unit);
}

/* --- text in memory, which says when there is no room; open_memstream(3) drops what has none ---
 */

struct grown {
	char *text;
	size_t len, room;
	bool failed;
};

static ssize_t grow(void *cookie, const char *from, size_t n)
{
	struct grown *g = cookie;

	if (g->len + n + 1 > g->room) {
		size_t room = 2 * (g->room + n + 1);
		char *more = realloc(g->text, room);

		if (!more) {
			g->failed = true;
			return 0;
		}
		g->text = more;
		g->room = room;
	}
	memcpy(g->text + g->len, from, n);
	g->len += n;
	g->text[g->len] = 0;
	return (ssize_t)n;
}

static FILE *grow_open(struct grown *g)
{
	*g = (struct grown){0};
	return fopencookie(g, "w", (cookie_io_functions_t){.write = grow});
}

/* 0, or -1: it lacks something, and is freed. */
static int grow_close(struct grown *g, FILE *f)
{
	if (!f || fclose(f) || g->failed) {
		free(g->text);
		return -1;
	}
	return 0;
}

/* A family that has no metrics is left out. */
static int put_family(FILE *to, enum metrics_form form, const struct family *family,
		      const struct metrics_interface *interfaces, size_t n)
{
	struct row row = {.family = family, .seen = form == METRICS_SEEN};
	struct grown rows;

	row.to = grow_open(&rows);
	for (size_t i = 0; row.to && i < n; i++) {
		row.of = &interfaces[i];
		row.f = row.of->reading;
		if (row.f || family->of_missing)
			family->rows(&row);
	}
	if (grow_close(&rows, row.to))
		return -1;
	if (rows.len) {
		put_head(to, form, family);
		fwrite(rows.text, 1, rows.len, to);
	}
	free(rows.text);
	return 0;
}

static void put_build(FILE *to, enum metrics_form form)
{
	static const struct family build = {.name = "build",
					    .kind = FAMILY_INFO,
					    .help =
						"The version of this tool, and the ABI that its "
						"pacers have."};

	put_head(to, form, &build);
	fprintf(to, PREFIX "build_info{version=\"" PACER_VERSION "\",abi=\"%u\"} 1\n",
		PACER_ABI_VERSION);
}

char *metrics_text(enum metrics_form form, const struct metrics_interface *interfaces, size_t n,
		   size_t *len)
{
	struct grown all;
	FILE *to = grow_open(&all);

	if (!to)
		return NULL;
	put_build(to, form);
	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
		all.failed |= put_family(to, form, &families[i], interfaces, n) != 0;
	if (form == METRICS_OPEN)
		fputs("# EOF\n", to);
	if (grow_close(&all, to))
		return NULL;
	*len = all.len;
	return all.text;
}

const char *metrics_type(enum metrics_form form)
{
	return form == METRICS_OPEN ? OPEN_METRICS "; version=1.0.0; charset=utf-8"
				    : "text/plain; version=0.0.4; charset=utf-8";
}

/* Of a range in an Accept header: has it the weight 0, so that it is not wanted? */
static bool is_refused(const char *range)
{
	const char *end = range + strcspn(range, ","), *weight = range;

	while ((weight = memchr(weight, ';', (size_t)(end - weight)))) {
		weight++;
		weight += strspn(weight, " \t");
		if (strncasecmp(weight, "q=0", 3) != 0)
			continue;
		weight += 2;
		return strchr(" \t,;", weight[strspn(weight, "0.")]);
	}
	return false;
}

enum metrics_form metrics_wanted(const char *accept)
{
	for (; accept && (accept = strcasestr(accept, OPEN_METRICS)); accept++)
		if (!is_refused(accept))
			return METRICS_OPEN;
	return METRICS_PLAIN;
}
