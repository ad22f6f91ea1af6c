/* SPDX-License-Identifier: GPL-2.0-only */
#include "estimate/track.h"

#include <stdlib.h>

#include "estimate.h"

/* One sampler of 64 samples, for a window of packets or of time. */
union sampler {
	struct pacer_sample_skip skip;
	struct pacer_sample_burst burst;
};

struct track {
	struct track_config config;
	uint32_t samplers, places; /* places in one sampler */
	uint64_t tick_ns, t0, base_ns, last_ns, seen, bytes;
	size_t each; /* bytes of one sampler */
	char *sampler;
	struct pacer_sample_rng rng;
	struct pacer_estimate_counts counts;
	struct pacer_estimate_ref *ref; /* one for each place of all samplers */
	struct pacer_estimate_watches watches;
	struct pacer_estimate_ticks ticks;
	struct estimate_view view;
	uint32_t *drawn; /* the places of the view's samples */
	uint32_t *r, *beta;
	uint64_t *key;
	struct pacer_sample_item *item;
};

static union sampler *sampler(const struct track *t, uint32_t i)
{
	return (union sampler *)(t->sampler + i * t->each);
}

/* ---- Opening and closing ----------------------------------------------------------------------
 */

/* NULL: no memory. */
static void *take(struct track *t, uint64_t n, size_t size)
{
	t->bytes += n * size;
	return calloc(n, size);
}

static uint32_t heads_for(uint32_t n)
{
	uint32_t heads = 1;

	while (heads < n)
		heads *= 2;
	return heads;
}

static bool open_samplers(struct track *t)
{
	bool good = true;

	t->each = t->config.by_time ? sizeof(struct pacer_sample_burst)
				    : sizeof(struct pacer_sample_skip);
	t->sampler = take(t, t->samplers, t->each);
	for (uint32_t i = 0; t->sampler && i < t->samplers; i++) {
		union sampler *s = sampler(t, i);

		if (t->config.by_time)
			good &= pacer_sample_burst_init(&s->burst, t->t0, PACER_SAMPLE_K);
		else
			good &= pacer_sample_skip_init(&s->skip, t->config.window, PACER_SAMPLE_K);
	}
	return t->sampler && good;
}

static bool open_counts(struct track *t, uint32_t places)
{
	uint32_t heads = heads_for(places);
	struct pacer_estimate_key *entry = take(t, places + 1ull, sizeof(*entry));
	uint32_t *head = take(t, heads, sizeof(*head));

	t->ref = take(t, places, sizeof(*t->ref));
	t->counts.entry = entry;
	t->counts.head = head;
	if (!entry || !head || !t->ref)
		return false;
	pacer_estimate_counts_init(&t->counts, entry, places, head, heads,
				   pacer_sample_random(&t->rng));
	return true;
}

static bool open_watches(struct track *t, uint32_t places)
{
	struct pacer_estimate_watches *w = &t->watches;
	uint32_t heads = heads_for(2 * places);

	if (!t->config.classes)
		return true;
	w->watch = take(t, places, sizeof(*w->watch));
	w->link = take(t, 3ull * places + 1, sizeof(*w->link));
	w->head = take(t, heads, sizeof(*w->head));
	w->mask = heads - 1;
	w->classes = t->config.classes;
	w->seed = pacer_sample_random(&t->rng);
	return w->watch && w->link && w->head;
}

static bool open_view(struct track *t)
{
	uint32_t k = t->samplers * PACER_SAMPLE_K;

	t->drawn = take(t, k, sizeof(*t->drawn));
	t->r = take(t, k, sizeof(*t->r));
	t->beta = take(t, k, sizeof(*t->beta));
	t->key = take(t, k, sizeof(*t->key));
	t->item = take(t, k, sizeof(*t->item));
	return t->drawn && t->r && t->beta && t->key && t->item;
}

struct track *track_open(const struct track_config *config)
{
	struct track *t = calloc(1, sizeof(*t));
	uint32_t places;

	if (!t)
		return NULL;
	t->config = *config;
	t->bytes = sizeof(*t);
	t->rng.state = config->seed;
	t->samplers = (config->samples + PACER_SAMPLE_K - 1) / PACER_SAMPLE_K;
	t->places = config->by_time ? PACER_SAMPLE_BURST_PLACES : PACER_ESTIMATE_SEQ_PLACES;
	t->tick_ns =
	    config->by_time && config->window > TRACK_TICKS ? config->window / TRACK_TICKS : 1;
	t->t0 = config->by_time ? (config->window + t->tick_ns - 1) / t->tick_ns : 1;
	t->ticks.t0 = t->t0;
	places = t->samplers * t->places;
	if (open_samplers(t) && open_counts(t, places) && open_watches(t, places) && open_view(t))
		return t;
	track_close(t);
	return NULL;
}

void track_close(struct track *t)
{
	if (!t)
		return;
	free(t->sampler);
	free(t->counts.entry);
	free(t->counts.head);
	free(t->ref);
	free(t->watches.watch);
	free(t->watches.link);
	free(t->watches.head);
	free(t->drawn);
	free(t->r);
	free(t->beta);
	free(t->key);
	free(t->item);
	free(t);
}

/* ---- Elements ---------------------------------------------------------------------------------
 */

/* Ticks begin at 1; 0 is before all of them. */
static uint64_t tick_of(const struct track *t, uint64_t time_ns)
{
	return (time_ns - t->base_ns) / t->tick_ns + 1;
}

/* Takes the element into sampler i if that draws it. */
static uint32_t offer(struct track *t, uint32_t i, uint64_t tick,
		      const struct pacer_sample_item *item, uint16_t stored[PACER_SAMPLE_K])
{
	union sampler *s = sampler(t, i);

	if (t->config.by_time)
		return pacer_sample_burst_due(&s->burst, tick)
			   ? pacer_estimate_time_take(&s->burst, &t->rng, tick, item, stored)
			   : 0;
	return pacer_sample_skip_due(&s->skip)
		   ? pacer_estimate_seq_take(&s->skip, &t->rng, item, stored)
		   : 0;
}

static void count_in(struct track *t, const struct track_element *element)
{
	if (!t->seen++)
		t->base_ns = t->last_ns = element->time_ns;
	if (element->time_ns > t->last_ns)
		t->last_ns = element->time_ns;
	pacer_estimate_seen(&t->counts, element->key);
	if (t->config.classes)
		pacer_estimate_edge_seen(&t->watches, element->ends[0], element->ends[1]);
	if (t->config.by_time)
		pacer_estimate_ticks_add(&t->ticks, tick_of(t, t->last_ns));
}

void track_add(struct track *t, const struct track_element *element)
{
	uint16_t stored[PACER_SAMPLE_K];

	count_in(t, element);
	for (uint32_t i = 0; i < t->samplers; i++) {
		uint32_t got = offer(t, i, tick_of(t, t->last_ns), element->item, stored);

		for (uint32_t j = 0; j < got; j++) {
			uint32_t place = i * t->places + stored[j];

			pacer_estimate_hold(&t->counts, &t->ref[place], element->key);
			if (t->config.classes)
				pacer_estimate_watch_edge(&t->watches, &t->rng, place,
							  element->ends[0], element->ends[1]);
		}
	}
}

/* ---- Reading ----------------------------------------------------------------------------------
 */

uint64_t track_n(struct track *t, uint64_t now_ns)
{
	if (!t->config.by_time)
		return t->seen < t->config.window ? t->seen : t->config.window;
	if (!t->seen)
		return 0;
	pacer_estimate_ticks_to(&t->ticks, tick_of(t, now_ns > t->last_ns ? now_ns : t->last_ns));
	return t->ticks.n;
}

/* Draws from all samplers, or from none. */
static uint32_t draw(struct track *t, uint64_t now_ns)
{
	uint16_t place[PACER_SAMPLE_K];
	uint32_t k = 0;

	for (uint32_t i = 0; i < t->samplers; i++) {
		union sampler *s = sampler(t, i);
		uint32_t got =
		    t->config.by_time
			? pacer_sample_burst_places(&s->burst, &t->rng, tick_of(t, now_ns), place)
			: pacer_estimate_seq_draw(&s->skip, place);

		for (uint32_t j = 0; j < got; j++)
			t->drawn[k++] = i * t->places + place[j];
	}
	return k;
}

const struct estimate_view *track_view(struct track *t, uint64_t now_ns)
{
	struct estimate_view *v = &t->view;

	now_ns = now_ns > t->last_ns ? now_ns : t->last_ns;
	*v = (struct estimate_view){.n = track_n(t, now_ns), .r = t->r};
	v->k = v->n ? draw(t, now_ns) : 0;
	for (uint32_t j = 0; j < v->k; j++) {
		const struct pacer_estimate_ref *ref = &t->ref[t->drawn[j]];

		t->r[j] = pacer_estimate_r(&t->counts, ref);
		t->key[j] = t->counts.entry[ref->entry].key;
	}
	v->most = estimate_most(t->key, v->k);
	if (!t->config.classes)
		return v;
	v->beta = t->beta;
	v->classes = t->config.classes;
	v->beta_max = PACER_ESTIMATE_SLOTS;
	for (uint32_t j = 0; j < v->k; j++) {
		const struct pacer_estimate_watch *p = &t->watches.watch[t->drawn[j]];

		t->beta[j] = pacer_estimate_closed(p);
		v->beta_dropped += p->on && p->more;
	}
	return v;
}

const struct pacer_sample_item *track_items(struct track *t, uint64_t now_ns)
{
	const struct estimate_view *v = track_view(t, now_ns);

	for (uint32_t j = 0; j < v->k; j++) {
		uint32_t i = t->drawn[j] / t->places, place = t->drawn[j] % t->places;
		const union sampler *s = sampler(t, i);

		t->item[j] =
		    t->config.by_time
			? s->burst.place[place].item
			: s->skip.seq.X[place / PACER_SAMPLE_K][place % PACER_SAMPLE_K].item;
	}
	return t->item;
}

uint64_t track_window(const struct track *t)
{
	return t->config.by_time ? t->t0 * t->tick_ns : t->config.window;
}

uint64_t track_tick_ns(const struct track *t)
{
	return t->tick_ns;
}

uint64_t track_bytes(const struct track *t)
{
	return t->bytes;
}
