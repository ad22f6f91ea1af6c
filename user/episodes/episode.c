/* SPDX-License-Identifier: GPL-2.0-only */
#include "episodes/episode.h"

#include <string.h>

static const uint64_t second_ns = 1000000000;

struct episode_sum episode_between(const struct pacer_counters *from, uint64_t from_ns,
				   const struct pacer_counters *to, uint64_t to_ns)
{
	struct episode_sum sum = {.ns = to_ns > from_ns ? to_ns - from_ns : 0};
	uint64_t most = 0;

	for (int r = 0; r < PACER_REASON_COUNT; r++) {
		uint64_t packets = to->by[r].packets - from->by[r].packets;

		sum.matched += packets;
		if (pacer_verdict_of(r) != PACER_VERDICT_DENY)
			continue;
		sum.denied += packets;
		sum.denied_bytes += to->by[r].bytes - from->by[r].bytes;
		if (packets > most) {
			most = packets;
			sum.most = r;
		}
	}
	return sum;
}

static uint64_t denied_of(const struct pacer_counters *c)
{
	uint64_t denied = 0;

	for (int r = 0; r < PACER_REASON_COUNT; r++)
		if (pacer_verdict_of(r) == PACER_VERDICT_DENY)
			denied += c->by[r].packets;
	return denied;
}

/* Denials beyond the ordinary; below 0 where there were fewer. */
static double excess(const struct episode_sum *sum)
{
	return (double)sum->denied - (double)EPISODE_ORDINARY_PPS * sum->ns / second_ns -
	       (double)sum->matched / EPISODE_ORDINARY_SHARE;
}

static bool have_fallen(const struct pacer_counters *from, const struct pacer_counters *to)
{
	for (int r = 0; r < PACER_REASON_COUNT; r++)
		if (to->by[r].packets < from->by[r].packets)
			return true;
	return false;
}

/* --- the greatest rate ------------------------------------------------------------------------ */

static void peak_keep(struct episode_peak *p, uint64_t denied, uint64_t now_ns)
{
	p->recent[p->end % EPISODE_RECENT].ns = now_ns;
	p->recent[p->end++ % EPISODE_RECENT].denied = denied;
}

static void peak_begin(struct episode_peak *p, const struct pacer_counters *now, uint64_t now_ns)
{
	p->pps = 0;
	p->first = p->end = 0;
	peak_keep(p, denied_of(now), now_ns);
}

/* Is the reading after the first kept one a second old, too? */
static bool peak_is_past(const struct episode_peak *p, uint64_t now_ns)
{
	return p->end - p->first > 1 &&
	       now_ns - p->recent[(p->first + 1) % EPISODE_RECENT].ns >= second_ns;
}

static void peak_read(struct episode_peak *p, const struct pacer_counters *now, uint64_t now_ns)
{
	uint64_t denied = denied_of(now), span_ns, n;
	double pps;

	while (peak_is_past(p, now_ns))
		p->first++;
	span_ns = now_ns - p->recent[p->first % EPISODE_RECENT].ns;
	n = denied - p->recent[p->first % EPISODE_RECENT].denied;
	pps = (double)n * second_ns / (span_ns > second_ns ? span_ns : second_ns);
	if (pps > p->pps)
		p->pps = pps;
	if (now_ns - p->recent[(p->end - 1) % EPISODE_RECENT].ns >= EPISODE_APART_NS)
		peak_keep(p, denied, now_ns);
}

/* --- its course ------------------------------------------------------------------------------- */

static void begin(struct episode *e, const struct pacer_counters *now, uint64_t now_ns)
{
	*e = (struct episode){.known = true, .was = *now, .was_ns = now_ns};
	e->began = e->block = *now;
	e->began_ns = e->block_ns = now_ns;
	peak_begin(&e->peak, now, now_ns);
}

static enum episode_step start(struct episode *e, const struct pacer_counters *now, uint64_t now_ns)
{
	e->on = true;
	e->excess_ns = now_ns;
	e->block = *now;
	e->block_ns = now_ns;
	e->told = e->began;
	e->told_ns = e->began_ns;
	e->news_ns = EPISODE_NEWS_NS;
	return EPISODE_STARTS;
}

/* What it was can still be asked, until the next reading. */
static enum episode_step end(struct episode *e)
{
	e->on = false;
	e->over = true;
	e->sum = 0;
	return EPISODE_ENDS;
}

static enum episode_step go_on(struct episode *e, const struct episode_settings *by,
			       const struct pacer_counters *now, uint64_t now_ns)
{
	struct episode_sum sum = episode_between(&e->block, e->block_ns, now, now_ns);

	if (sum.ns >= EPISODE_BLOCK_NS) {
		if (excess(&sum) > 0)
			e->excess_ns = now_ns;
		e->block = *now;
		e->block_ns = now_ns;
	}
	if (e->block_ns == now_ns && now_ns - e->excess_ns >= by->quiet_ns)
		return end(e);
	return e->excess_ns == now_ns && now_ns - e->told_ns >= e->news_ns ? EPISODE_GOES_ON
									   : EPISODE_NOTHING;
}

static enum episode_step wait(struct episode *e, const struct episode_settings *by,
			      const struct pacer_counters *now, uint64_t now_ns)
{
	struct episode_sum sum = episode_between(&e->was, e->was_ns, now, now_ns);

	e->sum += excess(&sum);
	if (e->sum <= 0) {
		e->sum = 0;
		e->began = *now;
		e->began_ns = now_ns;
		peak_begin(&e->peak, now, now_ns);
	}
	return e->sum >= by->least ? start(e, now, now_ns) : EPISODE_NOTHING;
}

enum episode_step episode_feed(struct episode *e, const struct episode_settings *by,
			       const struct pacer_counters *now, uint64_t now_ns)
{
	enum episode_step step;

	if (e->known && have_fallen(&e->was, now)) {
		e->known = false;
		return episode_stop(e);
	}
	if (!e->known) {
		begin(e, now, now_ns);
		return EPISODE_NOTHING;
	}
	if (e->over) { /* the next one is waited for from here on */
		e->began = e->was;
		e->began_ns = e->was_ns;
		peak_begin(&e->peak, &e->was, e->was_ns);
		e->over = false;
	}
	peak_read(&e->peak, now, now_ns);
	step = e->on ? go_on(e, by, now, now_ns) : wait(e, by, now, now_ns);
	e->was = *now;
	e->was_ns = now_ns;
	return step;
}

enum episode_step episode_stop(struct episode *e)
{
	if (!e->on)
		return EPISODE_NOTHING;
	e->excess_ns = e->was_ns;
	return end(e);
}

struct episode_sum episode_so_far(const struct episode *e)
{
	return episode_between(&e->began, e->began_ns, &e->was, e->was_ns);
}

struct episode_sum episode_lately(const struct episode *e)
{
	return episode_between(&e->told, e->told_ns, &e->was, e->was_ns);
}

void episode_told(struct episode *e)
{
	bool first = e->told_ns == e->began_ns;

	if (!e->on)
		return;
	if (!first && e->news_ns < EPISODE_NEWS_MOST_NS)
		e->news_ns *= 2;
	e->told = e->was;
	e->told_ns = e->was_ns;
}
