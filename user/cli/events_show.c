/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/events_show.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/emit.h"
#include "config/text.h"

#define KEYS_SHOWN 3u

/* --- as a line -------------------------------------------------------------------------------- */

const char *event_time(const struct event_place *place, uint64_t time_ns, char *buf)
{
	int64_t ns = (int64_t)time_ns + place->day_ns;
	time_t s = ns / 1000000000;
	struct tm tm;
	size_t len;

	gmtime_r(&s, &tm);
	len = strftime(buf, EVENT_TIME, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buf + len, EVENT_TIME - len, ".%03dZ", (int)(ns / 1000000 % 1000));
	return buf;
}

struct line {
	char *buf;
	size_t size, len;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *l, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(l->buf + l->len, l->size - l->len, format, args);
	va_end(args);
	if (n > 0)
		l->len = l->len + n < l->size ? l->len + n : l->size - 1;
}

static double each_second(uint64_t n, uint64_t ns)
{
	return ns ? (double)n * 1e9 / ns : 0;
}

static void add_span(struct line *l, uint64_t ns)
{
	if (ns < 10000000000)
		add(l, "%.1f s", ns / 1e9);
	else
		add(l, "%" PRIu64 " s", ns / 1000000000);
}

static void add_share(struct line *l, const struct heavy_share *s)
{
	add(l, "%.0f..%.0f %%", s->low * 100, s->high * 100);
}

static void add_crowd(struct line *l, const struct crowd *c)
{
	add(l, "; sources: %s (%.1f..%.1f bits)", crowd_kind_name(c->kind), c->entropy.low,
	    c->entropy.high);
	for (uint32_t i = 0; i < c->keys && i < KEYS_SHOWN && c->key[i].share.low >= 0.01; i++) {
		add(l, "%s %s ", i ? "," : "; most:", c->key[i].key);
		add_share(l, &c->key[i].share);
	}
}

static const char *needed_key(const struct event *e)
{
	const struct crowd_key *key = e->crowd ? &e->crowd->key[0] : NULL;

	if (!key)
		return "";
	return key->by.parts ? key->key : "all";
}

static void add_needed(struct line *l, const struct event *e)
{
	char text[64];

	if (e->needed)
		add(l, "; %s would take %s.limits[%d].%s", needed_key(e), e->rule, e->needed->limit,
		    needed_text(e->needed, text, sizeof(text)));
}

/* By what its rate is told: since the last time, and of what is over, all of it. It is over a
 * second at least, so that it is not above the greatest in a second. */
static struct episode_sum rate_of(const struct event *e)
{
	struct episode_sum sum = e->lately;

	if (e->kind == EVENT_END) {
		sum = e->so_far;
		sum.ns = e->ended_ns - e->began_ns;
	}
	if (sum.ns < EPISODE_BLOCK_NS)
		sum.ns = EPISODE_BLOCK_NS;
	return sum;
}

/* When it began, as the clock of the day was then: in each of its events the same. */
static struct event_place place_of_begin(const struct event *e, const struct event_place *place)
{
	return (struct event_place){place->ifname, e->began_day_ns};
}

static void add_episode(struct line *l, const struct event *e, const struct event_place *place)
{
	struct event_place begin = place_of_begin(e, place);
	struct episode_sum lately = rate_of(e);
	uint64_t end_ns = e->ended_ns ? e->ended_ns : e->began_ns + e->so_far.ns;
	char time[EVENT_TIME];

	add(l, "%s of %s packets denied", thousands(e->so_far.denied).text,
	    thousands(e->so_far.matched).text);
	if (e->lets_through)
		add(l, " (%s lets them through)", e->lets_through);
	add(l, " since %s, ", event_time(&begin, e->began_ns, time));
	if (e->kind != EVENT_START) {
		add(l, "for ");
		add_span(l, end_ns - e->began_ns);
		add(l, ", ");
	}
	add(l, "%s, ", per_second(each_second(lately.denied, lately.ns), "pps").text);
	add(l, "%s, ", per_second(each_second(lately.denied_bytes * 8, lately.ns), "bit/s").text);
	if (e->kind == EVENT_END)
		add(l, "%s at most, ", per_second(e->peak_pps, "pps").text);
	add(l, "most by %s", pacer_reason_name(e->so_far.most));
	if (e->crowd)
		add_crowd(l, e->crowd);
	add_needed(l, e);
}

static void add_key(struct line *l, const struct event *e)
{
	add(l, "%s: ", e->key);
	add_share(l, &e->share);
	add(l, " of what is denied");
	if (e->kind == EVENT_KEY_END) {
		add(l, ", for ");
		add_span(l, e->ended_ns - e->began_ns);
	}
}

static void add_who(struct line *l, const struct event *e)
{
	if (e->who)
		add(l, ", by %s", e->who);
	if (e->pid)
		add(l, " (process %" PRIu32 ")", e->pid);
}

static void add_rest(struct line *l, const struct event *e, const struct event_place *place)
{
	char time[EVENT_TIME];

	switch (e->kind) {
	case EVENT_SHARING:
	case EVENT_SHARING_END:
		add(l, "limits[%zu]", e->limit);
		if (e->rung)
			add(l, ", rung %u", e->rung);
		add(l, ": %s keys have an entry of %s, and about %s entries are shared",
		    thousands(e->used).text, thousands(e->capacity).text,
		    thousands(e->shared).text);
		break;
	case EVENT_BAN:
		add(l, "%s until %s", e->key, event_time(place, e->until_ns, time));
		break;
	case EVENT_BANS_FULL:
		add(l, "%s keys were not banned: raise bans in the policy", thousands(e->n).text);
		break;
	case EVENT_LOST:
		add(l, "%s %s could not be told", thousands(e->n).text, e->what);
		break;
	default:
		add(l, "%s", e->what ? e->what : "");
		add_who(l, e);
	}
}

const char *event_text(const struct event *e, const struct event_place *place, char *buf,
		       size_t size)
{
	struct line l = {buf, size, 0};
	char time[EVENT_TIME];

	*buf = 0;
	add(&l, "%s %s %s ", event_time(place, e->told_ns, time), printable(place->ifname).text,
	    event_name(e->kind));
	if (e->rule)
		add(&l, "%s: ", e->rule);
	if (e->kind <= EVENT_END && !e->what) /* else it was noted, and is told as it was */
		add_episode(&l, e, place);
	else if (e->kind == EVENT_KEY_START || e->kind == EVENT_KEY_END)
		add_key(&l, e);
	else
		add_rest(&l, e, place);
	return buf;
}

/* --- as JSON ---------------------------------------------------------------------------------- */

static void emit_time(const char *name, const struct event_place *place, uint64_t time_ns)
{
	if (time_ns)
		emit_uint(name, time_ns + place->day_ns, NULL);
}

static void emit_between(const char *name, const struct heavy_share *s)
{
	emit_object(name);
	emit_real("value", s->value, NULL);
	emit_real("low", s->low, NULL);
	emit_real("high", s->high, NULL);
	emit_close();
}

static void emit_crowd(const struct crowd *c)
{
	emit_object("sources");
	emit_string("kind", crowd_kind_name(c->kind), NULL);
	emit_uint("samples", c->samples, NULL);
	emit_between("entropy", &c->entropy);
	emit_between("seen_once", &c->single);
	emit_close();
	emit_array("keys");
	for (uint32_t i = 0; i < c->keys; i++) {
		emit_object("");
		emit_string("key", c->key[i].key, NULL);
		emit_between("share", &c->key[i].share);
		emit_close();
	}
	emit_close();
}

static void emit_needed(const struct event *e)
{
	char path[POLICY_NAME_MAX + 64], text[64];

	emit_object("needed");
	emit_string("key", needed_key(e), NULL);
	emit_uint("limit", e->needed->limit, NULL);
	emit_string("field", e->needed->field, NULL);
	emit_real("value", e->needed->value, NULL);
	emit_real("enough", e->needed->enough, NULL);
	snprintf(path, sizeof(path), "%s.limits[%d].%s", e->rule, e->needed->limit,
		 needed_text(e->needed, text, sizeof(text)));
	emit_string("set", path, NULL);
	emit_close();
}

static void emit_episode(const struct event *e)
{
	struct episode_sum lately = rate_of(e);

	emit_uint("matched", e->so_far.matched, NULL);
	emit_uint("packets", e->so_far.denied, NULL);
	emit_flag("let_through", e->lets_through, NULL);
	emit_uint("bytes", e->so_far.denied_bytes, NULL);
	emit_real("pps", each_second(lately.denied, lately.ns), NULL);
	emit_real("bps", each_second(lately.denied_bytes * 8, lately.ns), NULL);
	emit_real("peak_pps", e->peak_pps, NULL);
	emit_string("reason", pacer_reason_name(e->so_far.most), NULL);
	if (e->crowd)
		emit_crowd(e->crowd);
	else
		emit_null("sources", NULL);
	if (e->needed)
		emit_needed(e);
}

static void emit_table_fields(const struct event *e)
{
	emit_uint("limit", e->limit, NULL);
	if (e->rung)
		emit_uint("rung", e->rung, NULL);
	else
		emit_null("rung", NULL);
	emit_uint("used", e->used, NULL);
	emit_uint("capacity", e->capacity, NULL);
	emit_uint("shared", e->shared, NULL);
}

static void emit_rest(const struct event *e, const struct event_place *place)
{
	if (e->kind == EVENT_SHARING || e->kind == EVENT_SHARING_END)
		emit_table_fields(e);
	if (e->key)
		emit_string("key", e->key, NULL);
	emit_time("until_ns", place, e->until_ns);
	if (e->what)
		emit_string("what", e->what, NULL);
	if (e->who)
		emit_string("who", e->who, NULL);
	if (e->pid)
		emit_uint("pid", e->pid, NULL);
	if (e->n)
		emit_uint("n", e->n, NULL);
}

void event_emit(const struct event *e, const struct event_place *place)
{
	struct event_place begin = place_of_begin(e, place);
	char time[EVENT_TIME];

	emit_string("event", event_name(e->kind), NULL);
	emit_string("interface", place->ifname, NULL);
	emit_string("time", event_time(place, e->told_ns, time), NULL);
	emit_time("time_ns", place, e->told_ns);
	if (e->rule)
		emit_string("rule", e->rule, NULL);
	emit_time("began_ns", &begin, e->began_ns);
	emit_time("ended_ns", place, e->ended_ns);
	if (e->kind <= EVENT_END && !e->what)
		emit_episode(e);
	else if (e->kind == EVENT_KEY_START || e->kind == EVENT_KEY_END)
		emit_between("share", &e->share);
	emit_rest(e, place);
}

char *event_json(const struct event *e, const struct event_place *place)
{
	emit_begin(true);
	emit_object("");
	event_emit(e, place);
	emit_close();
	return emit_end_text();
}
