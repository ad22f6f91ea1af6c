/* SPDX-License-Identifier: GPL-2.0-only */
#include "config/limits.h"

#include "config/ladder.h"
#include "config/writers.h"

#include <stdio.h>
#include <string.h>

#include "rate.h"
#include "window.h"

#define SLOTS_DEFAULT 10
#define KEY_LEN6      64 /* of an address without lengths */
#define ROWS_DEFAULT  2

enum limit_field {
	FIELD_KEY,
	FIELD_GAP,
	FIELD_PACKETS,
	FIELD_BYTES,
	FIELD_WINDOW,
	FIELD_SLOTS,
	FIELD_RATE,
	FIELD_BURST,
	FIELD_ENTRIES,
	FIELD_ROWS,
	FIELD_CEILING,
	FIELD_USES,
	FIELD_COOLDOWN,
	FIELD_MAX_COOLDOWN,
	FIELD_THRESHOLD,
	FIELD_OF,
	FIELD_FLEET,
	FIELD_WIDER,
	LIMIT_FIELDS
};

#define KEY_TEXT POLICY_KEY_TEXT

static int not_a_key(struct source *s, int line, const struct place *at, const char *text)
{
	return doc_fail(s, line, at,
			"\"%s\" is not a key: write flow, all, or parts such as src, src/24,56 or "
			"src+dport: src, dst, proto, sport, dport, vlan, ttl and value(SET, src)",
			doc_shown(text).text);
}

/*
 * "24,56": of IPv4 and of IPv6. One alone would say nothing of the other. `part` is the address's
 * name.
 */
static int MUST_USE read_lengths(struct source *s, int line, const struct place *at, char *text,
				 const char *part, uint8_t *len4, uint8_t *len6)
{
	char *comma = strchr(text, ',');
	struct range len;

	if (comma)
		*comma = 0;
	if (units_range(text, 128, &len) || len.low != len.high)
		return doc_fail(s, line, at, "\"%s\" is no prefix length: write %s/24,56, say",
				doc_shown(text).text, part);
	if (len.low > 32)
		return doc_fail(s, line, at,
				"%u is too long for IPv4, whose length stands first: write /32,%u",
				len.low, len.low);
	if (!comma)
		return doc_fail(s, line, at,
				"/%u is the length for IPv4, and that for IPv6 is missing: write "
				"/%u,56, say",
				len.low, len.low);
	*len4 = (uint8_t)len.low;
	if (units_range(comma + 1, 128, &len) || len.low != len.high)
		return doc_fail(s, line, at, "\"%s\" is no prefix length of IPv6: write 0 to 128",
				doc_shown(comma + 1).text);
	*len6 = (uint8_t)len.low;
	if (!*len4 && !*len6)
		return doc_fail(s, line, at,
				"with no bit of the address all have one key: leave %s out, or "
				"write all",
				part);
	return 0;
}

/* value(SET, src): the value of the source in that set, in the place of its address. */
static int MUST_USE read_value(struct source *s, int line, const struct place *at, char *text,
			       struct policy_key *key)
{
	char *set = text + strlen("value("), *comma = strchr(set, ','), *end = strchr(set, ')');
	char *of = comma ? comma + 1 + strspn(comma + 1, " ") : NULL;
	bool dst = of && !strncmp(of, "dst", 3);
	enum policy_key_part part = dst ? KEY_PART_DST_VALUE : KEY_PART_SRC_VALUE;

	if (!of || !end || end[1] || end != of + 3 || (!dst && strncmp(of, "src", 3) != 0))
		return doc_fail(s, line, at,
				"\"%s\" is no value: write value(SET, src) or value(SET, dst)",
				doc_shown(text).text);
	*comma = 0;
	if (!*set || strlen(set) >= POLICY_NAME_MAX)
		return doc_fail(s, line, at, "value(%s, ...) names no set", doc_shown(set).text);
	if (key->parts & (part | (dst ? KEY_PART_DST : KEY_PART_SRC)))
		return doc_fail(s, line, at,
				"%s stands twice in the key: its value stands in its place",
				dst ? "dst" : "src");
	key->parts |= part;
	snprintf(key->set[dst], POLICY_NAME_MAX, "%s", set);
	return 0;
}

/* The part of the address stands beside its value. */
static bool has_value(const struct policy_key *key, enum policy_key_part part)
{
	return (part == KEY_PART_SRC && key->parts & KEY_PART_SRC_VALUE) ||
	       (part == KEY_PART_DST && key->parts & KEY_PART_DST_VALUE);
}

/*
 * value(SET, src) | src[/L4,L6] | dst[/L4,L6] | proto | sport | dport | vlan | ttl, of which none
 * stands twice. In place of a length there may be a list, as [32,24].
 *
 * Without lengths an address is a host's of IPv4 and a /64 of IPv6: of that a host has all
 * addresses at will, and would have as many allowances.
 */
static int MUST_USE parse_part(struct source *s, int line, const struct place *at, char *text,
			       const char *whole, struct policy_limit *limit)
{
	struct policy_key *key = &limit->key;
	char *slash = strchr(text, '/');
	uint8_t len4 = 32, len6 = KEY_LEN6;
	const struct policy_key_part_name *part;

	if (!strncmp(text, "value(", 6))
		return read_value(s, line, at, text, key);
	if (slash)
		*slash = 0;
	part = policy_key_part_named(text);
	if (!part)
		return not_a_key(s, line, at, whole);
	if (key->parts & part->part || has_value(key, part->part))
		return doc_fail(s, line, at, "\"%s\" stands twice in the key: write it once", text);
	key->parts |= part->part;
	if (!(part->part & (KEY_PART_SRC | KEY_PART_DST)))
		return slash ? not_a_key(s, line, at, whole) : 0;
	if (slash && ladder_has(slash + 1)) {
		if (ladder_lengths(s, line, at, slash + 1, part, &limit->ladder))
			return -1;
		len4 = limit->ladder.len4[0];
		len6 = limit->ladder.len6[0];
	} else if (slash && read_lengths(s, line, at, slash + 1, part->name, &len4, &len6)) {
		return -1;
	}
	*(part->part == KEY_PART_SRC ? &key->src4 : &key->dst4) = len4;
	*(part->part == KEY_PART_SRC ? &key->src6 : &key->dst6) = len6;
	return 0;
}

/* flow | all | parts, with + between them. Of a ladder, the first rung's. */
static int MUST_USE parse_key(struct source *s, int line, const struct place *at, const char *text,
			      struct policy_limit *limit)
{
	char parts[KEY_TEXT], *part = parts, *plus;

	limit->key = strcmp(text, "flow") ? KEY_ALL : KEY_FLOW;
	if (!strcmp(text, "flow") || !strcmp(text, "all"))
		return 0;
	snprintf(parts, sizeof(parts), "%s", text);
	for (; part; part = plus) {
		plus = strchr(part, '+');
		if (plus)
			*plus++ = 0;
		if (parse_part(s, line, at, part, text, limit))
			return -1;
	}
	return 0;
}

static int read_key(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy_limit *limit = into;
	const char *text;
	char whole[KEY_TEXT];
	int len;

	if (doc_scalar(s, at, node, &text))
		return -1;
	len = snprintf(whole, sizeof(whole), "%s%s", text, s->key_tail);
	if (len < 0 || (size_t)len >= sizeof(whole))
		return not_a_key(s, doc_line(node), at, text);
	return parse_key(s, doc_line(node), at, whole, limit);
}

static int read_packets(struct source *s, const struct place *at, const yaml_node_t *node,
			void *into)
{
	struct policy_limit *limit = into;
	const char *text;

	limit->cost = PACER_COST_PACKETS;
	if (doc_scalar(s, at, node, &text))
		return -1;
	limit->per_second = !units_rate(text, &limit->limit);
	return limit->per_second ? doc_more_than_zero(s, at, node, limit->limit)
				 : doc_count(s, at, node, &limit->limit);
}

static int read_bytes(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy_limit *limit = into;
	const char *text;

	limit->cost = PACER_COST_BYTES;
	if (doc_unsigned(s, at, node, &text))
		return -1;
	limit->per_second = !units_bytes_rate(text, &limit->limit);
	if (!limit->per_second && units_bytes(text, &limit->limit))
		return doc_fail(
		    s, doc_line(node), at,
		    "\"%s\" is no number of bytes: write 4096, 20M, 64Ki or 10Mbit, or a "
		    "rate as 10Mbit/s",
		    doc_shown(text).text);
	return doc_more_than_zero(s, at, node, limit->limit);
}

#define RATE_BYTES_MAX	 125000000000ull /* a second: 1 Tbit/s */
#define RATE_DIVIDED_MAX 39000000000ull	 /* in an hour fewer than FLEET_UNITS_MAX */
#define RATE_PACKETS_MAX 2000000000ull	 /* the smallest frames of RATE_BYTES_MAX */

static int read_rate(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy_limit *limit = into;
	const char *text;

	if (doc_unsigned(s, at, node, &text))
		return -1;
	if (units_rate_over(text, &limit->rate))
		return doc_fail(
		    s, doc_line(node), at,
		    "\"%s\" is not a rate: write 1000/s, 10Mbit/s or 20MB/s, with /s, /m "
		    "or /h",
		    doc_shown(text).text);
	limit->cost = limit->rate.bytes ? PACER_COST_BYTES : PACER_COST_PACKETS;
	return doc_more_than_zero(s, at, node, limit->rate.amount);
}

/* Packets or bytes: the rate says which, and may stand behind it. */
static int read_burst(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy_limit *limit = into;
	const char *text;

	if (doc_unsigned(s, at, node, &text))
		return -1;
	if (units_bytes(text, &limit->burst))
		return doc_fail(
		    s, doc_line(node), at,
		    "\"%s\" is no burst: write a number of packets, as 50, or of bytes, as "
		    "64K",
		    doc_shown(text).text);
	limit->burst_bytes = units_count(text, &limit->burst) != 0;
	return doc_more_than_zero(s, at, node, limit->burst);
}

static int read_ceiling(struct source *s, const struct place *at, const yaml_node_t *node,
			void *into)
{
	struct policy_limit *limit = into;
	const char *text;

	if (doc_scalar(s, at, node, &text))
		return -1;
	if (units_rate(text, &limit->ceiling))
		return doc_fail(s, doc_line(node), at,
				"\"%s\" is not a rate: write 500kpps or 2Mpps",
				doc_shown(text).text);
	return doc_more_than_zero(s, at, node, limit->ceiling);
}

/* throttles: of limits and of pools */

int limits_uses(struct source *s, const struct place *at, const yaml_node_t *node, uint64_t *uses)
{
	if (doc_count(s, at, node, uses))
		return -1;
	if (*uses > POLICY_USES_MAX)
		return doc_fail(s, doc_line(node), at,
				"%llu is more than can be counted: at most %llu",
				(unsigned long long)*uses, POLICY_USES_MAX);
	return 0;
}

static uint64_t tenth_more(uint64_t cooldown_ns)
{
	return cooldown_ns + cooldown_ns / 10 + !(cooldown_ns / 10);
}

/* What was not written, see policy.h. */
void limits_complete_throttle(struct policy_throttle *t)
{
	bool bare = !t->threshold && !t->max_cooldown_ns;

	if (!t->threshold)
		t->threshold_is = bare ? THRESHOLD_HUNDREDTH : THRESHOLD_USES;
	policy_fill_threshold(t);
	if (!t->max_cooldown_ns)
		t->max_cooldown_ns = bare ? tenth_more(t->cooldown_ns) : UINT64_MAX;
}

/* The lines are those of the fields, if these are written. */
int limits_check_throttle(struct source *s, const struct place *at, const struct policy_throttle *t,
			  int threshold, int max_cooldown)
{
	struct place place = {at, "threshold", 0};
	char cooldown[32], most[32], more[32];

	if (threshold && t->threshold > t->uses)
		return doc_fail(s, threshold, &place, "%llu is above the limit: write 1 to %llu",
				(unsigned long long)t->threshold, (unsigned long long)t->uses);
	place.name = "max_cooldown";
	if (max_cooldown && t->max_cooldown_ns <= t->cooldown_ns)
		return doc_fail(
		    s, max_cooldown, &place, "%s is not above the cooldown of %s: write %s, say",
		    units_duration_text(t->max_cooldown_ns, most, sizeof(most)),
		    units_duration_text(t->cooldown_ns, cooldown, sizeof(cooldown)),
		    units_duration_text(tenth_more(t->cooldown_ns), more, sizeof(more)));
	return 0;
}

static int read_fleet(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	static const struct choice choices[] = {{"yes", 1}, {"no", 0}, {NULL, 0}};
	struct policy_limit *limit = into;
	int yes;

	if (doc_choose(s, at, node, choices, &yes))
		return -1;
	limit->fleet = yes;
	return 0;
}

static int read_of(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	static const struct choice choices[] = {{"new", 1}, {"all", 0}, {NULL, 0}};
	struct policy_limit *limit = into;
	int of_new;

	if (doc_choose(s, at, node, choices, &of_new))
		return -1;
	limit->of_new = of_new;
	return 0;
}

#define READER(name, read)                                                                        \
	static int read_##name(struct source *s, const struct place *at, const yaml_node_t *node, \
			       void *into)                                                        \
	{                                                                                         \
		struct policy_limit *l = into;                                                    \
                                                                                                  \
		return read;                                                                      \
	}

READER(gap, doc_duration(s, at, node, &l->gap_ns))
READER(window, doc_duration(s, at, node, &l->window_ns))
READER(slots, doc_whole(s, at, node, 1, PACER_SLOTS_MAX, &l->slots))
READER(rows, doc_whole(s, at, node, 1, PACER_ROWS_MAX, &l->rows))
READER(entries, doc_count(s, at, node, &l->entries))
READER(uses, limits_uses(s, at, node, &l->throttle.uses))
READER(threshold, limits_uses(s, at, node, &l->throttle.threshold))
READER(cooldown, doc_duration(s, at, node, &l->throttle.cooldown_ns))
READER(max_cooldown, doc_duration(s, at, node, &l->throttle.max_cooldown_ns))

/* --- their text ------------------------------------------------------------------------------ */

/* The same text for the same rate, however it was written: 60/m is 1/s, and 1KB/s is 8Kbit/s. */
static const char *rate_in_one_form(const struct units_rate *rate, char *buf, size_t size)
{
	uint64_t per_ns = rate->bytes ? 8000000000 : 1000000000; /* a bit is an eighth of a byte */
	unsigned __int128 amount;

	for (;; per_ns *= 60) { /* by the hour it is whole, since no unit is longer */
		amount = (unsigned __int128)rate->amount * per_ns;
		if (amount % rate->per_ns == 0)
			break;
	}
	return units_rate_text(&(struct units_rate){amount / rate->per_ns, per_ns, rate->bytes},
			       buf, size);
}

WRITER(key, policy_limit, true, "%s", policy_line_key_text(p, (char[FIELD_TEXT]){0}, FIELD_TEXT))
WRITE_NUMBER(entries, policy_limit, p->entries, p->entries)
WRITE_TIME(gap, policy_limit, p->kind == LIMIT_GAP, p->gap_ns)
WRITE_NUMBER(rows, policy_limit, p->kind == LIMIT_GAP, p->rows)
WRITER(ceiling, policy_limit, p->ceiling, "%llupps", (unsigned long long)p->ceiling)
WRITE_NUMBER(packets, policy_limit, p->kind == LIMIT_WINDOW && p->cost == PACER_COST_PACKETS,
	     p->limit)
WRITE_NUMBER(bytes, policy_limit, p->kind == LIMIT_WINDOW && p->cost == PACER_COST_BYTES, p->limit)
WRITE_TIME(window, policy_limit, p->kind == LIMIT_WINDOW, p->window_ns)
WRITE_NUMBER(slots, policy_limit, p->kind == LIMIT_WINDOW, p->slots)
WRITER(rate, policy_limit, p->kind == LIMIT_RATE, "%s",
       rate_in_one_form(&p->rate, (char[FIELD_TEXT]){0}, FIELD_TEXT))
WRITE_NUMBER(burst, policy_limit, p->kind == LIMIT_RATE, p->burst)
WRITE_NUMBER(uses, policy_limit, p->kind == LIMIT_THROTTLE, p->throttle.uses)
WRITE_TIME(cooldown, policy_limit, p->kind == LIMIT_THROTTLE, p->throttle.cooldown_ns)
WRITE_TIME(max_cooldown, policy_limit,
	   p->kind == LIMIT_THROTTLE && p->throttle.max_cooldown_ns != UINT64_MAX,
	   p->throttle.max_cooldown_ns)
WRITE_NUMBER(threshold, policy_limit, p->kind == LIMIT_THROTTLE, p->throttle.threshold)

WRITER(of, policy_limit, p->of_new, "%s", "new")
WRITER(fleet, policy_limit, p->fleet, "%s", "yes")

/* --- the table ------------------------------------------------------------------------------ */

#define OF_ALL_KINDS POLICY_LIMIT_KINDS
#define LEADS	     1 /* whose limit it is, the others of its kind belong to */
#define KEYED	     2 /* not of the key all, which has one entry */

static const struct field limit_field[LIMIT_FIELDS] = {
    [FIELD_KEY] = {"key", read_key, "KEY",
		   "whose packets count together: flow, all, or parts with + between: src, "
		   "src/24,56, dst, dst/24,56, proto, sport, dport, vlan, ttl, value(SET, src), "
		   "value(SET, dst); src/[32,24],[64,56] is a ladder, a limit a length",
		   OF_ALL_KINDS, FIELD_NEEDED, write_key},
    [FIELD_GAP] = {"gap", read_gap, "TIME", "two packets of a key are that far apart, at least",
		   LIMIT_GAP, LEADS, write_gap},
    [FIELD_PACKETS] = {"packets", read_packets, "N|N/s", "that many in any window, at most",
		       LIMIT_WINDOW, LEADS, write_packets},
    [FIELD_BYTES] = {"bytes", read_bytes, "BYTES|BITS/s", "that many in any window, at most",
		     LIMIT_WINDOW, LEADS, write_bytes},
    [FIELD_WINDOW] = {"window", read_window, "TIME", "what packets or bytes are counted in",
		      LIMIT_WINDOW, FIELD_NEEDED, write_window},
    [FIELD_SLOTS] = {"slots", read_slots, "1-58", "that the window is cut into; 10 unless said",
		     LIMIT_WINDOW, 0, write_slots},
    [FIELD_RATE] = {"rate", read_rate, "N/s|BITS/s", "of packets or of bits, by s, m or h",
		    LIMIT_RATE, LEADS | FIELD_NEEDED, write_rate},
    [FIELD_BURST] = {"burst", read_burst, "N|BYTES", "that may come at once, in the rate's unit",
		     LIMIT_RATE, FIELD_NEEDED, write_burst},
    [FIELD_ENTRIES] = {"entries", read_entries, "N",
		       "keys to hold state for; a share of the memory unless said", OF_ALL_KINDS,
		       KEYED, write_entries},
    [FIELD_ROWS] = {"rows", read_rows, "1-2", "cells of a key in the gap's sketch; 2 unless said",
		    LIMIT_GAP, KEYED, write_rows},
    [FIELD_CEILING] = {"ceiling", read_ceiling, "Npps",
		       "that all keys of the gap together may reach: sizes its sketch", LIMIT_GAP,
		       KEYED, write_ceiling},
    [FIELD_USES] = {"uses", read_uses, "N", "each of which is free again a cooldown after it",
		    LIMIT_THROTTLE, LEADS | FIELD_NEEDED, write_uses},
    [FIELD_COOLDOWN] = {"cooldown", read_cooldown, "TIME", "after which a use is free again",
			LIMIT_THROTTLE, FIELD_NEEDED, write_cooldown},
    [FIELD_MAX_COOLDOWN] = {"max_cooldown", read_max_cooldown, "TIME",
			    "it denies wrongly only while all uses lie within that", LIMIT_THROTTLE,
			    0, write_max_cooldown},
    [FIELD_THRESHOLD] = {"threshold", read_threshold, "N",
			 "it denies wrongly only while fewer uses are free", LIMIT_THROTTLE, 0,
			 write_threshold},
    [FIELD_OF] = {"of", read_of, "new|all",
		  "new counts packets that open a flow alone: of TCP a SYN without ACK, else the "
		  "flow's first; all unless said",
		  OF_ALL_KINDS, 0, write_of},
    [FIELD_FLEET] = {"fleet", read_fleet, "yes|no",
		     "it is one limit of all hosts of the fleet; no unless said; not of a gap",
		     OF_ALL_KINDS, 0, write_fleet},
    [FIELD_WIDER] = {"wider", ladder_read_wider, "xN...",
		     "of a ladder: how much more each wider length has than the one before; of a "
		     "list, than the first; not of a gap",
		     OF_ALL_KINDS, 0, ladder_write_wider},
};

const struct fields limits_fields = {"a limit", limit_field, LIMIT_FIELDS};

const char *limits_field_to_set(size_t i)
{
	return i + 1 < LIMIT_FIELDS ? limit_field[i + 1].name : NULL;
}

/* The field, if it was written, is wrong for the reason given. */
static int MUST_USE refuse(struct source *s, const struct place *at, const yaml_node_t **seen,
			   enum limit_field field, const char *reason)
{
	struct place place = {at, limit_field[field].name, 0};

	return seen[field] ? doc_fail(s, doc_line(seen[field]), &place, "%s", reason) : 0;
}

/* A rate is what it comes to in the window, rounded down. */
static int MUST_USE settle_rate(struct source *s, const struct place *at, const yaml_node_t *field,
				struct policy_limit *limit)
{
	unsigned __int128 in_window = (unsigned __int128)limit->limit * limit->window_ns;

	if (!limit->per_second)
		return 0;
	in_window /= 1000000000;
	limit->limit = in_window > UINT64_MAX ? UINT64_MAX : (uint64_t)in_window;
	if (!limit->limit)
		return doc_fail(
		    s, doc_line(field), at,
		    "this rate comes to less than 1 in the window: write a longer window");
	return 0;
}

static int MUST_USE check_window(struct source *s, const struct place *at, const yaml_node_t **seen,
				 struct policy_limit *limit)
{
	int packets = limit->cost == PACER_COST_PACKETS;
	enum limit_field field = packets ? FIELD_PACKETS : FIELD_BYTES;
	struct place place = {at, limit_field[field].name, 0};
	struct pacer_window window;

	if (!seen[FIELD_WINDOW])
		return doc_fail(s, limit->line, at,
				"%s is written, but not the window that it counts "
				"in: write window: 1s",
				place.name);
	if (settle_rate(s, &place, seen[field], limit))
		return -1;
	switch (pacer_window_profile(&window, limit->cost, limit->limit, limit->window_ns,
				     limit->slots, 0)) {
	case PACER_WINDOW_OK:
		return 0;
	case PACER_WINDOW_BAD_LIMIT:
		return doc_fail(s, doc_line(seen[field]), &place,
				"%llu is more than can be counted: "
				"at most %llu",
				(unsigned long long)limit->limit,
				packets ? PACER_LIMIT_MAX : PACER_LIMIT_BYTES);
	case PACER_WINDOW_BAD_TIME:
	case PACER_WINDOW_BAD_SLOTS:
		break;
	}
	place.name = limit_field[FIELD_WINDOW].name;
	return doc_fail(s, doc_line(seen[FIELD_WINDOW]), &place,
			"%lluns cannot be divided into %u slots of 1ns or more",
			(unsigned long long)limit->window_ns, limit->slots);
}

static int MUST_USE check_burst(struct source *s, const struct place *at, const yaml_node_t **seen,
				const struct policy_limit *limit)
{
	struct place place = {at, "burst", 0};

	if (!seen[FIELD_BURST])
		return doc_fail(
		    s, limit->line, at,
		    "rate is written, but not the burst that may come at once: write %s",
		    limit->rate.bytes ? "burst: 64K" : "burst: 50");
	if (limit->burst_bytes && !limit->rate.bytes)
		return doc_fail(s, doc_line(seen[FIELD_BURST]), &place,
				"it is in bytes, and the rate is in packets: write burst: 50, say");
	if (limit->rate.bytes && limit->burst < POLICY_FRAME_MAX)
		return doc_fail(s, doc_line(seen[FIELD_BURST]), &place,
				"%llu bytes are less than one frame of %u: write %u or more",
				(unsigned long long)limit->burst, POLICY_FRAME_MAX,
				POLICY_FRAME_MAX);
	return 0;
}

static int MUST_USE check_rate(struct source *s, const struct place *at, const yaml_node_t **seen,
			       struct policy_limit *limit)
{
	unsigned __int128 most = limit->rate.bytes ? RATE_BYTES_MAX : RATE_PACKETS_MAX;
	struct place place = {at, "rate", 0};
	struct pacer_rate rate;

	if (limit->rate.amount > most * limit->rate.per_ns / 1000000000)
		return doc_fail(s, doc_line(seen[FIELD_RATE]), &place,
				"no line carries so much: write %s or less",
				limit->rate.bytes ? "1000Gbit/s" : "2000Mpps");
	if (limit->fleet && limit->rate.bytes &&
	    limit->rate.amount >
		(unsigned __int128)RATE_DIVIDED_MAX * limit->rate.per_ns / 1000000000)
		return doc_fail(s, doc_line(seen[FIELD_RATE]), &place,
				"a fleet divides no rate that is so high: write 312Gbit/s or less, "
				"or leave fleet: yes out");
	if (check_burst(s, at, seen, limit))
		return -1;
	switch (pacer_rate_profile(&rate, limit->cost, limit->rate.amount, limit->rate.per_ns,
				   limit->burst, 0)) {
	case PACER_RATE_OK:
	case PACER_RATE_BAD_CLOCK:
		return 0;
	case PACER_RATE_BAD_RATE:
		return doc_fail(
		    s, doc_line(seen[FIELD_RATE]), &place,
		    "slower than one in 73 minutes: use a throttle of uses and cooldown");
	case PACER_RATE_BAD_BURST:
		break;
	}
	place.name = "burst";
	return doc_fail(s, doc_line(seen[FIELD_BURST]), &place,
			"%llu are more than can be kept at this rate: write less",
			(unsigned long long)limit->burst);
}

static int MUST_USE check_uses(struct source *s, const struct place *at, const yaml_node_t **seen,
			       struct policy_limit *limit)
{
	if (limit->key.parts &&
	    refuse(s, at, seen, FIELD_KEY,
		   "uses are of all packets of the rule together: write key: all"))
		return -1;
	if (!seen[FIELD_COOLDOWN])
		return doc_fail(s, limit->line, at,
				"uses is written, but not after how long each is free again: write "
				"cooldown: 10s");
	limits_complete_throttle(&limit->throttle);
	return limits_check_throttle(s, at, &limit->throttle, doc_line(seen[FIELD_THRESHOLD]),
				     doc_line(seen[FIELD_MAX_COOLDOWN]));
}

typedef int checker(struct source *s, const struct place *at, const yaml_node_t **seen,
		    struct policy_limit *limit);

/* What a limit of each kind is called, whose its fields are, and what they have to agree in. */
static const struct {
	const char *name, *is, *owner;
	checker *check; /* NULL: nothing */
} kinds[POLICY_LIMIT_KINDS] = {
    [LIMIT_GAP] = {"gap", "a gap", "a gap", NULL},
    [LIMIT_WINDOW] = {"window", "a window", "packets or bytes", check_window},
    [LIMIT_RATE] = {"rate", "a rate", "a rate", check_rate},
    [LIMIT_THROTTLE] = {"throttle", "a throttle", "uses", check_uses},
};

const char *policy_limit_kind_name(enum policy_limit_kind kind)
{
	return kinds[kind].name;
}

const char *limits_kind_of(const struct field *field)
{
	return field->kind == OF_ALL_KINDS ? "any" : kinds[field->kind].name;
}

/* Fields of a limit of another kind than the leading one's. */
static int MUST_USE check_kinds(struct source *s, const struct place *at, const yaml_node_t **seen,
				size_t leading)
{
	uint8_t kind = limit_field[leading].kind;
	char why[80];

	for (size_t f = 0; f < LIMIT_FIELDS; f++) {
		const struct field *field = &limit_field[f];

		if (f == leading || field->kind == OF_ALL_KINDS)
			continue;
		if (field->flags & LEADS)
			snprintf(why, sizeof(why), "beside %s: write it as a limit of its own",
				 limit_field[leading].name);
		else if (field->kind != kind)
			snprintf(why, sizeof(why), "belongs to %s, and this limit is %s",
				 kinds[field->kind].owner, kinds[kind].is);
		else
			continue;
		if (refuse(s, at, seen, f, why))
			return -1;
	}
	return 0;
}

static int MUST_USE no_limit(struct source *s, const struct place *at, int line)
{
	char names[64] = "";
	size_t left = 0;

	for (size_t f = 0; f < LIMIT_FIELDS; f++)
		left += limit_field[f].flags & LEADS;
	for (size_t f = 0; f < LIMIT_FIELDS; f++)
		if (limit_field[f].flags & LEADS)
			doc_append(names, sizeof(names), "%s%s", limit_field[f].name,
				   --left > 1 ? ", "
				   : left     ? " or "
					      : "");
	return doc_fail(s, line, at, "nothing is limited: write %s", names);
}

/* Fields that contradict each other, or are missing. */
static int MUST_USE check_limit(struct source *s, const struct place *at, const yaml_node_t **seen,
				struct policy_limit *limit)
{
	size_t leading = 0;

	if (!seen[FIELD_KEY])
		return doc_fail(s, limit->line, at,
				"the key is missing: write key: src, for example");
	while (leading < LIMIT_FIELDS && !(seen[leading] && limit_field[leading].flags & LEADS))
		leading++;
	if (leading == LIMIT_FIELDS)
		return no_limit(s, at, limit->line);
	limit->kind = (enum policy_limit_kind)limit_field[leading].kind;
	if (check_kinds(s, at, seen, leading))
		return -1;
	for (size_t f = 0; f < LIMIT_FIELDS; f++)
		if (!limit->key.parts && limit_field[f].flags & KEYED &&
		    refuse(s, at, seen, f, "the key \"all\" has one entry: leave the field out"))
			return -1;
	if (limit->fleet && limit->kind == LIMIT_GAP)
		return refuse(
		    s, at, seen, FIELD_FLEET,
		    "a gap cannot be divided: two hosts would let two packets through "
		    "within it, each being the first of its own: write a window or a rate");
	if (ladder_settle(s, at, doc_line(seen[FIELD_WIDER]), limit))
		return -1;
	return kinds[limit->kind].check ? kinds[limit->kind].check(s, at, seen, limit) : 0;
}

/* Can the widest rung of the line be counted? It has the largest value. */
static int MUST_USE check_widest(struct source *s, const struct place *at, const yaml_node_t **seen,
				 const struct policy_limit *line)
{
	struct place place = {at, limit_field[FIELD_WIDER].name, 0};
	uint32_t last = line->ladder.rungs - 1u;
	struct policy_limit rung;

	if (!line->ladder.rungs)
		return 0;
	if (!ladder_rung(line, last, &rung)) {
		rung.per_second = false; /* it is of the window already */
		if (!kinds[rung.kind].check(s, at, seen, &rung))
			return 0;
	}
	return doc_fail(s, doc_line(seen[FIELD_WIDER]), &place,
			"x%llu of it, for the widest, is more than can be counted: write less",
			(unsigned long long)line->ladder.times[last]);
}

static int MUST_USE read_limit(struct source *s, const struct place *at, const yaml_node_t *node,
			       struct policy_limit *limit)
{
	const yaml_node_t *seen[LIMIT_FIELDS] = {0};

	limit->line = doc_line(node);
	limit->slots = SLOTS_DEFAULT;
	limit->rows = ROWS_DEFAULT;
	if (doc_fields(s, at, node, &limits_fields, limit, seen) ||
	    check_limit(s, at, seen, limit) || check_widest(s, at, seen, limit))
		return -1;
	return 0;
}

/* One item: the limits that it makes go behind those of the items before. */
static int read_item(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy_rule *rule = into;
	struct policy_limit line = {.item = (uint8_t)at->index};
	uint32_t n;

	if (read_limit(s, at, node, &line))
		return -1;
	n = line.ladder.rungs ? line.ladder.rungs : 1;
	if (rule->n_limits + n > POLICY_LIMITS_MAX)
		return doc_fail(s, line.line, at,
				"its lengths make %zu limits of the rule: at most %d: write fewer",
				rule->n_limits + n, POLICY_LIMITS_MAX);
	for (uint32_t i = 0; i < n; i++)
		if (ladder_rung(&line, i, &rule->limit[rule->n_limits++]))
			return -1; /* not reached: the widest one was checked */
	return 0;
}

int limits_read(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct policy_rule *rule = into;
	size_t items;
	struct list list = {read_item, rule, 0, POLICY_LIMITS_MAX, &items};

	if (node->type != YAML_SEQUENCE_NODE)
		return doc_fail(s, doc_line(node), at,
				"expected a list of limits: - {key: src, gap: 1ms}");
	if (doc_list(s, at, node, &list))
		return -1;
	if (!rule->n_limits)
		return doc_fail(s, doc_line(node), at,
				"the list is empty: a rule has 1 to %d limits", POLICY_LIMITS_MAX);
	return 0;
}
