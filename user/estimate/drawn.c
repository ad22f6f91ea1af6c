/* SPDX-License-Identifier: GPL-2.0-only */
#include "estimate/drawn.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "live/host.h"
#include "live/snapshot.h"

struct reader {
	const struct attached *a;
	struct drawn *to;
	struct pacer_sampler *copy;
	struct pacer_sample_rng rng;
	drawn_key *key;
	const void *arg;
};

/* Without replacement, a drawing is in the order of places. The halves need a random order. */
static void shuffle(struct pacer_sample_rng *rng, struct pacer_sample_item *item, uint32_t k)
{
	for (uint32_t j = k; j > 1; j--) {
		uint32_t i = pacer_sample_below(rng, j);
		struct pacer_sample_item swap = item[i];

		item[i] = item[j - 1];
		item[j - 1] = swap;
	}
}

static int read_cpu(struct reader *r, uint32_t cpu)
{
	struct drawn *to = r->to;
	size_t first = (size_t)cpu * PACER_SAMPLE_K;
	struct pacer_sample_item *item = &to->item[first];
	enum sample_copied copied = sample_copy(&r->a->sampler[cpu], NULL, &to->by, r->copy, NULL);
	uint64_t tick = pacer_sampler_tick_of(&to->by, host_now_ns());
	uint64_t n = copied == SAMPLE_TORN ? 0 : pacer_sampler_n(r->copy, &to->by, tick);
	uint32_t k = n ? pacer_sampler_draw(r->copy, &to->by, &r->rng, tick, item) : 0;

	shuffle(&r->rng, item, k);
	for (uint32_t j = 0; j < k; j++)
		to->key[first + j] = r->key(&item[j], r->arg);
	to->part[cpu] = (struct pooled_part){n, k, &to->key[first]};
	to->behind += copied == SAMPLE_BEHIND;
	return copied == SAMPLE_TORN ? -1 : 0;
}

static int read_cpus(struct reader *r, struct policy_error *error)
{
	uint64_t begin_ns = host_now_ns();

	for (uint32_t cpu = 0; cpu < r->to->cpus; cpu++)
		if (read_cpu(r, cpu))
			return policy_fail(
			    error, 0,
			    "%s: the sample changes faster than it can be read: give it a "
			    "longer window or a smaller k",
			    r->a->ifname);
	r->to->now_ns = host_now_ns();
	r->to->read_ns = r->to->now_ns - begin_ns;
	return 0;
}

int drawn_take(const struct attached *a, const struct pacer_sampling *by, drawn_key *key,
	       const void *arg, struct drawn *drawn, struct policy_error *error)
{
	size_t places = (size_t)a->n_samplers * PACER_SAMPLE_K;
	struct reader r = {.a = a, .to = drawn, .key = key, .arg = arg};
	int code;

	*drawn = (struct drawn){.by = *by, .cpus = a->n_samplers};
	if (getrandom(&r.rng.state, sizeof(r.rng.state), 0) != sizeof(r.rng.state))
		return policy_fail(error, 0, "%s: no random numbers to draw with", a->ifname);
	r.copy = aligned_alloc(64, sizeof(*r.copy));
	drawn->key = calloc(places, sizeof(*drawn->key));
	drawn->item = calloc(places, sizeof(*drawn->item));
	drawn->part = calloc(drawn->cpus, sizeof(*drawn->part));
	code = r.copy && drawn->key && drawn->item && drawn->part
		   ? read_cpus(&r, error)
		   : policy_fail(error, 0, "%s: no memory", a->ifname);
	free(r.copy);
	if (code)
		drawn_free(drawn);
	return code;
}

void drawn_free(struct drawn *drawn)
{
	free(drawn->key);
	free(drawn->item);
	free(drawn->part);
	*drawn = (struct drawn){0};
}

const struct pacer_sample_item *drawn_item(const struct drawn *drawn, const struct pooled_key *key)
{
	return &drawn->item[(size_t)key->part * PACER_SAMPLE_K + key->item];
}
