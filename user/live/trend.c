/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/trend.h"

#include <stdlib.h>
#include <string.h>

/* --- readings ------------------------------------------------------------------------------- */

static const char *name_of(const struct reading *f, size_t row)
{
	return row < f->policy->n_rules ? f->policy->rule[row].name : "";
}

static const struct pacer_counters *counters_of(const struct reading *f, size_t row)
{
	return row < f->policy->n_rules ? &f->rule[row] : &f->none;
}

static bool is_less(const struct pacer_counters *a, const struct pacer_counters *b)
{
	for (int r = 0; r < PACER_REASON_COUNT; r++)
		if (a->by[r].packets < b->by[r].packets || a->by[r].bytes < b->by[r].bytes)
			return true;
	for (int e = 0; e < PACER_EVENT_COUNT; e++)
		if (a->events[e] < b->events[e])
			return true;
	return false;
}

/* The row of that name in what was before, which loses it. */
static struct trend_row take(struct trend *before, const char *name)
{
	struct trend_row found = {.at = NULL};

	for (size_t i = 0; i < before->rows; i++)
		if (before->row[i].at && !strcmp(before->row[i].name, name)) {
			found = before->row[i];
			before->row[i].at = NULL;
			break;
		}
	return found;
}

static void free_rows(struct trend *t)
{
	for (size_t i = 0; i < t->rows; i++)
		free(t->row[i].at);
	t->rows = 0;
}

/* The rows of the reading's policy, with what is known of each. -1: no memory, and none is left. */
static int follow(struct trend *t, const struct reading *f)
{
	struct trend before = {.rows = t->rows};
	int result = 0;

	memcpy(before.row, t->row, t->rows * sizeof(*t->row));
	t->rows = f->policy->n_rules + 1;
	for (size_t i = 0; i < t->rows; i++) {
		const char *name = name_of(f, i);
		struct trend_row *row = &t->row[i];

		*row = take(&before, name);
		if (row->at)
			continue;
		snprintf(row->name, sizeof(row->name), "%s", name);
		row->first = t->n;
		row->at = calloc(TREND_POINTS, sizeof(*row->at));
		if (!row->at)
			result = -1;
	}
	free_rows(&before);
	return result;
}

int trend_add(struct trend *t, const struct reading *f)
{
	size_t place = t->n % TREND_POINTS, last = (t->n + TREND_POINTS - 1) % TREND_POINTS;

	if (t->control_id != f->control_id || (t->n && f->now_ns <= t->at_ns[last]))
		trend_free(t);
	if (!t->n)
		place = 0;
	t->control_id = f->control_id;
	if (follow(t, f)) {
		trend_free(t);
		return -1;
	}
	for (size_t i = 0; i < t->rows; i++) {
		struct trend_row *row = &t->row[i];
		const struct pacer_counters *c = counters_of(f, i);

		if (t->n > row->first && is_less(c, &row->at[last]))
			row->first = t->n;
		row->at[place] = *c;
	}
	t->at_ns[place] = f->now_ns;
	t->n++;
	return 0;
}

void trend_free(struct trend *t)
{
	free_rows(t);
	t->n = 0;
}

/* --- what grew ------------------------------------------------------------------------------ */

size_t trend_kept(const struct trend *t)
{
	return t->n < TREND_POINTS ? t->n : TREND_POINTS;
}

static void add_grown(const struct trend_row *row, uint64_t from, uint64_t to,
		      struct pacer_counters *sum)
{
	const struct pacer_counters *b = &row->at[to % TREND_POINTS], *a;

	if (from < row->first)
		from = row->first;
	if (from >= to)
		return;
	a = &row->at[from % TREND_POINTS];
	for (int r = 0; r < PACER_REASON_COUNT; r++) {
		sum->by[r].packets += b->by[r].packets - a->by[r].packets;
		sum->by[r].bytes += b->by[r].bytes - a->by[r].bytes;
	}
	for (int e = 0; e < PACER_EVENT_COUNT; e++)
		sum->events[e] += b->events[e] - a->events[e];
}

/* Between the readings of these numbers, which are kept. A rule that is younger has a shorter span.
 */
static struct trend_grown between(const struct trend *t, size_t row, uint64_t from, uint64_t to)
{
	struct trend_grown g = {0};

	if (row < t->rows && from < t->row[row].first)
		from = t->row[row].first;
	if (from >= to)
		return g;
	g.span_ns = t->at_ns[to % TREND_POINTS] - t->at_ns[from % TREND_POINTS];
	for (size_t i = 0; i < t->rows; i++)
		if (row == TREND_ALL || row == i)
			add_grown(&t->row[i], from, to, &g.by);
	return g;
}

struct trend_grown trend_step(const struct trend *t, size_t row, size_t ago)
{
	struct trend_grown none = {0};

	if (ago + 1 >= trend_kept(t))
		return none;
	return between(t, row, t->n - 2 - ago, t->n - 1 - ago);
}

struct trend_grown trend_over(const struct trend *t, size_t row, uint64_t span_ns)
{
	struct trend_grown none = {0};
	uint64_t newest = t->n - 1, oldest = t->n - trend_kept(t), at = newest;

	if (!t->n)
		return none;
	while (at > oldest &&
	       t->at_ns[newest % TREND_POINTS] - t->at_ns[(at - 1) % TREND_POINTS] <= span_ns)
		at--;
	if (at == newest && at > oldest)
		at--;
	return between(t, row, at, newest);
}

double trend_rate(const struct trend_grown *g, uint64_t n)
{
	return g->span_ns ? n * 1e9 / g->span_ns : 0;
}
