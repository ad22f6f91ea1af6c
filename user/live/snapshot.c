/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "live/change.h"
#include "live/copies.h"
#include "live/host.h"
#include "sample_merge.h"

/* --- a copy --------------------------------------------------------------------------------- */

static uint32_t acquire(const uint32_t *word)
{
	return pacer_acquire((__u32 *)(uintptr_t)word);
}

/* They are read before and after a copy. If they are equal, the copy is consistent. */
struct marks {
	uint64_t id;
	uint32_t seq, wor_seq, ticks;
};

static struct marks marks_before(const struct pacer_sampler *live)
{
	struct marks m;

	m.id = __atomic_load_n(&live->id, __ATOMIC_ACQUIRE);
	m.seq = acquire(&live->seq);
	m.wor_seq = acquire(&live->wor.seq);
	m.ticks = acquire(&live->burst.ticks);
	return m;
}

static struct marks marks_after(const struct pacer_sampler *live)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return marks_before(live);
}

static void copy_sampler(const struct pacer_sampler *live, const struct pacer_sampling *by,
			 struct pacer_sampler *copy)
{
	memcpy(copy, live, offsetof(struct pacer_sampler, burst));
	if (by->form == PACER_SAMPLE_TIME) {
		memcpy(&copy->burst, &live->burst, sizeof(copy->burst));
		memcpy(copy->tick, live->tick, sizeof(copy->tick));
	} else {
		copy->wor = live->wor;
	}
}

static uint32_t places_of(const struct pacer_sampling *by)
{
	return by->form == PACER_SAMPLE_TIME ? PACER_SAMPLER_PLACES : 2 * PACER_SAMPLE_K;
}

static void copy_heads(const struct pacer_heads *live, const struct pacer_sampling *by,
		       struct pacer_heads *copy)
{
	memcpy(copy->at, live->at, places_of(by) * sizeof(*copy->at));
}

enum sample_copied sample_copy(const struct pacer_sampler *live, const struct pacer_heads *heads,
			       const struct pacer_sampling *by, struct pacer_sampler *copy,
			       struct pacer_heads *heads_copy)
{
	static const struct timespec pause = {0, SNAPSHOT_PAUSE_NS};

	for (int i = 0; i < 2 * SNAPSHOT_TRIES; i++, nanosleep(&pause, NULL)) {
		struct marks m = marks_before(live), after;
		bool whole = !(m.seq & 1) && !(m.wor_seq & 1);
		bool tick = by->form == PACER_SAMPLE_TIME && i >= SNAPSHOT_TRIES && !(m.ticks & 1);

		if (!whole && !tick)
			continue;
		copy_sampler(live, by, copy);
		if (heads)
			copy_heads(heads, by, heads_copy);
		after = marks_after(live);
		copy->id = m.id;
		if (after.id != m.id)
			continue;
		if (whole && after.seq == m.seq && after.wor_seq == m.wor_seq)
			return SAMPLE_WHOLE;
		if (!tick || after.ticks != m.ticks)
			continue;
		copy->burst.count = 0;
		return SAMPLE_BEHIND;
	}
	return SAMPLE_TORN;
}

/* --- of one CPU ----------------------------------------------------------------------------- */

/* Reads all CPUs in turn. Items stand for rows until the final sample is drawn. */
struct reading {
	const struct attached *a;
	struct sample *out;
	struct pacer_sampler *copy;
	struct pacer_heads *heads; /* NULL: none are kept */
	struct pacer_sample_part *part;
	struct pacer_sample_item *item; /* PACER_SAMPLE_K a CPU, as are the rows */
	struct sample_row *row;
	uint64_t *time; /* the times of the items, while the items hold their places instead */
	struct pacer_sample_rng rng;
};

/* Drawing gives items without their places. So each item holds its place instead of its time. */
static void bear_places(struct reading *r)
{
	const struct pacer_sampling *by = &r->out->by;

	for (uint32_t p = 0; p < places_of(by); p++) {
		struct pacer_sample_item *item = pacer_sampler_item(r->copy, by, p);

		r->time[p] = item->time_ns;
		item->time_ns = p;
	}
}

static void fill_row(const struct reading *r, uint32_t cpu, const struct pacer_sample_item *item,
		     struct sample_row *row)
{
	uint32_t place = item->time_ns & (PACER_SAMPLER_PLACES - 1), snap = r->out->by.snap;

	*row = (struct sample_row){.item = *item, .cpu = cpu};
	row->item.time_ns = r->time[place];
	if (!r->heads)
		return;
	row->head_len = item->len_bytes < snap ? item->len_bytes : snap;
	memcpy(row->head, r->heads->at[place], row->head_len);
}

/* Reads the sample of one CPU. Its items hold the numbers of their rows instead of times. */
static int read_cpu(struct reading *r, uint32_t cpu)
{
	const struct pacer_heads *live = r->heads ? &r->a->heads[cpu] : NULL;
	struct pacer_sample_part *part = &r->part[cpu];
	const struct pacer_sampling *by = &r->out->by;
	enum sample_copied copied = sample_copy(&r->a->sampler[cpu], live, by, r->copy, r->heads);
	uint64_t tick = pacer_sampler_tick_of(by, host_now_ns());

	if (copied == SAMPLE_TORN)
		return -1;
	r->out->behind += copied == SAMPLE_BEHIND;
	bear_places(r);
	part->item = &r->item[(size_t)cpu * PACER_SAMPLE_K];
	part->n = pacer_sampler_n(r->copy, by, tick);
	part->k = part->n ? pacer_sampler_draw(r->copy, by, &r->rng, tick, part->item) : 0;
	for (uint32_t j = 0; j < part->k; j++) {
		size_t row = (size_t)cpu * PACER_SAMPLE_K + j;

		fill_row(r, cpu, &part->item[j], &r->row[row]);
		part->item[j].time_ns = row;
	}
	r->out->window[cpu] = part->n;
	r->out->n += part->n;
	return 0;
}

/* --- of all --------------------------------------------------------------------------------- */

static int newest_first(const void *a, const void *b)
{
	uint64_t x = ((const struct sample_row *)a)->item.time_ns;
	uint64_t y = ((const struct sample_row *)b)->item.time_ns;

	return (x < y) - (x > y);
}

static void merge(struct reading *r)
{
	struct pacer_sample_item chosen[PACER_SAMPLE_K];
	struct sample *out = r->out;

	if (out->by.form == PACER_SAMPLE_LAST)
		out->rows = pacer_sample_merge_wor(r->part, out->cpus, &r->rng, out->by.k, chosen);
	else
		out->rows = pacer_sample_merge(r->part, out->cpus, &r->rng, out->by.k, chosen);
	for (uint32_t j = 0; j < out->rows; j++)
		out->row[j] = r->row[chosen[j].time_ns];
	qsort(out->row, out->rows, sizeof(*out->row), newest_first);
}

static bool take_memory(struct reading *r, bool heads)
{
	size_t cpus = r->out->cpus;

	r->copy = aligned_alloc(64, sizeof(*r->copy));
	r->heads = heads ? malloc(sizeof(*r->heads)) : NULL;
	r->part = calloc(cpus, sizeof(*r->part));
	r->item = calloc(cpus * PACER_SAMPLE_K, sizeof(*r->item));
	r->row = calloc(cpus * PACER_SAMPLE_K, sizeof(*r->row));
	r->time = calloc(PACER_SAMPLER_PLACES, sizeof(*r->time));
	r->out->window = calloc(cpus, sizeof(*r->out->window));
	return r->copy && (r->heads || !heads) && r->part && r->item && r->row && r->time &&
	       r->out->window;
}

static void give_memory(struct reading *r)
{
	free(r->copy);
	free(r->heads);
	free(r->part);
	free(r->item);
	free(r->row);
	free(r->time);
}

static int read_all(struct reading *r, struct policy_error *error)
{
	struct sample *out = r->out;
	uint64_t begin_ns = host_now_ns();

	for (uint32_t cpu = 0; cpu < out->cpus; cpu++)
		if (read_cpu(r, cpu))
			return policy_fail(
			    error, 0,
			    "%s: the sample changes faster than it can be read: give it a "
			    "longer window or a smaller k",
			    r->a->ifname);
	out->now_ns = host_now_ns();
	out->read_ns = out->now_ns - begin_ns;
	merge(r);
	return 0;
}

int sample_read(const struct attached *a, uint64_t seed, struct sample *sample,
		struct policy_error *error)
{
	struct reading r = {.a = a, .out = sample, .rng = {seed}};
	int result;

	*sample = (struct sample){.copy = &a->copy[copies_in_force(a)], .cpus = a->n_samplers};
	sample->by = sample->copy->policy.sampling;
	if (!sample->by.reasons)
		return policy_fail(error, 0,
				   "%s: its policy samples nothing: apply one with sample: {of: "
				   "denied, k: 64, window: 60s}",
				   a->ifname);
	if (!a->sampler || (sample->by.snap && !a->heads))
		return policy_fail(error, 0,
				   "%s: it has no memory for samples: apply its policy again",
				   a->ifname);
	result = take_memory(&r, sample->by.snap)
		     ? read_all(&r, error)
		     : policy_fail(error, POLICY_NO_MEMORY, "%s: no memory", a->ifname);
	give_memory(&r);
	if (result)
		sample_free(sample);
	return result;
}

void sample_free(struct sample *sample)
{
	free(sample->window);
	sample->window = NULL;
}
