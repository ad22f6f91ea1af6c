/* SPDX-License-Identifier: GPL-2.0-only */
/* `estimate` of live traffic: reads the samples of the packet path, once or repeatedly. */
#include "estimate/estimate_live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "estimate/estimator.h"
#include "live/attached.h"
#include "plan/sampling.h"
#include "live/copies.h"
#include "live/host.h"
#include "live/snapshot.h"

static int fail(const struct estimate_live *live, struct policy_error *error, const char *what)
{
	return policy_fail(error, 0, "%s: %s", live->a->ifname, what);
}

/* --- the CPUs' samples ---------------------------------------------------------------------- */

struct reader {
	struct estimate_live *live;
	struct pacer_sampler *copy;
	struct pacer_sample_rng rng;
	uint64_t *key; /* PACER_SAMPLE_K per CPU */
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

static int read_cpu(struct reader *r, uint32_t cpu, struct policy_error *error)
{
	struct estimate_live *live = r->live;
	const struct pacer_sampling *by = &live->by;
	struct pacer_sample_item *item = &live->item[(size_t)cpu * PACER_SAMPLE_K];
	enum sample_copied copied = sample_copy(&live->a->sampler[cpu], NULL, by, r->copy, NULL);
	uint64_t tick = pacer_sampler_tick_of(by, host_now_ns());
	uint64_t *key = &r->key[(size_t)cpu * PACER_SAMPLE_K];
	uint64_t n = copied == SAMPLE_TORN ? 0 : pacer_sampler_n(r->copy, by, tick);
	uint32_t k = n ? pacer_sampler_draw(r->copy, by, &r->rng, tick, item) : 0;

	shuffle(&r->rng, item, k);
	for (uint32_t j = 0; j < k; j++) {
		struct pacer_packet pkt = estimate_packet(&item[j]);

		key[j] = estimate_key_hash(&live->want->key, &pkt);
	}
	live->part[cpu] = (struct pooled_part){n, k, key};
	live->behind += copied == SAMPLE_BEHIND;
	if (copied == SAMPLE_TORN)
		return fail(live, error,
			    "the sample changes faster than it can be read: give it a longer "
			    "window or a smaller k");
	return 0;
}

static int read_cpus(struct reader *r, struct policy_error *error)
{
	struct estimate_live *live = r->live;
	uint64_t begin_ns = host_now_ns();
	struct pooled *p;
	int code = 0;

	for (uint32_t cpu = 0; cpu < live->cpus && !code; cpu++)
		code = read_cpu(r, cpu, error);
	if (code)
		return code;
	live->now_ns = host_now_ns();
	live->read_ns = live->now_ns - begin_ns;
	p = pooled_open(live->part, live->cpus, live->by.form == PACER_SAMPLE_LAST);
	if (!p)
		return fail(live, error, "no memory");
	live->values = pooled_read(p, live->want->moment, ESTIMATE_DELTA);
	live->keys = pooled_keys(p, ESTIMATE_DELTA, live->key, LIVE_KEYS);
	pooled_close(p);
	return 0;
}

static int read_all(struct reader *r, struct policy_error *error)
{
	struct estimate_live *live = r->live;
	size_t places = (size_t)live->cpus * PACER_SAMPLE_K;
	int code;

	r->copy = aligned_alloc(64, sizeof(*r->copy));
	r->key = calloc(places, sizeof(*r->key));
	live->item = calloc(places, sizeof(*live->item));
	live->part = calloc(live->cpus, sizeof(*live->part));
	code = r->copy && r->key && live->item && live->part ? read_cpus(r, error)
							     : fail(live, error, "no memory");
	free(r->copy);
	return code;
}

/* --- one reading ---------------------------------------------------------------------------- */

/* Who shows the readings. */
struct shower {
	bool (*show)(const struct estimate_live *live, void *arg);
	void *arg;
	bool more; /* another reading is wanted */
};

/* Reads and shows the sample, which the policy's text describes. */
static int read_and_show(struct estimate_live *live, const char *text, struct shower *to,
			 struct policy_error *error)
{
	struct reader r = {.live = live};
	struct policy *policy;
	int code;

	if (getrandom(&r.rng.state, sizeof(r.rng.state), 0) != sizeof(r.rng.state))
		return fail(live, error, "no random numbers to draw with");
	policy = policy_parse(text, strnlen(text, PACER_DOC_MAX), error);
	if (!policy)
		return -1;
	live->sample = &policy->sample;
	live->bytes = sampling_bytes(&live->by, live->cpus);
	code = read_all(&r, error);
	if (!code)
		to->more = to->show(live, to->arg);
	free(r.key);
	free(live->item);
	free(live->part);
	policy_free(policy);
	return code;
}

static int read_once(const struct estimate_want *want, struct attached *a, struct shower *to,
		     struct policy_error *error)
{
	const struct pacer_copy *copy;
	struct estimate_live live;

	if (attached_follow(want->name, a, error))
		return -1;
	copy = &a->copy[copies_in_force(a)];
	live = (struct estimate_live){
	    .want = want, .a = a, .by = copy->policy.sampling, .cpus = a->n_samplers};
	if (live.by.reasons && a->sampler)
		return read_and_show(&live, copy->text, to, error);
	return fail(&live, error,
		    "its policy samples nothing: apply one with sample: {of: all, k: 64, "
		    "window: 60s}");
}

/* --- again and again ------------------------------------------------------------------------ */

static void wait_until(uint64_t at_ns)
{
	struct timespec at = {at_ns / 1000000000, at_ns % 1000000000};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

int estimate_live(const struct estimate_want *want,
		  bool (*show)(const struct estimate_live *live, void *arg), void *arg,
		  struct policy_error *error)
{
	struct shower to = {.show = show, .arg = arg};
	uint64_t next_ns = host_now_ns();
	struct attached a = {0};
	int failed;

	for (;;) {
		failed = read_once(want, &a, &to, error);
		if (failed || !to.more || !want->watch)
			break;
		next_ns += want->every_ns;
		wait_until(next_ns);
	}
	if (a.ifindex)
		attached_release(&a);
	return failed;
}
