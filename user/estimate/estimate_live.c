/* SPDX-License-Identifier: GPL-2.0-only */
/* `estimate` of live traffic: reads the samples of the packet path, once or repeatedly. */
#include "estimate/estimate_live.h"

#include <string.h>

#include "estimate/estimator.h"
#include "live/attached.h"
#include "plan/sampling.h"
#include "live/copies.h"
#include "live/host.h"

static int fail(const struct estimate_live *live, struct policy_error *error, const char *what)
{
	return policy_fail(error, 0, "%s: %s", live->a->ifname, what);
}

/* --- one reading ---------------------------------------------------------------------------- */

/* Who shows the readings. */
struct shower {
	bool (*show)(const struct estimate_live *live, void *arg);
	void *arg;
	bool more; /* another reading is wanted */
};

static uint64_t key_of(const struct pacer_sample_item *item, const void *arg)
{
	struct pacer_packet pkt = estimate_packet(item);

	return estimate_key_hash(arg, &pkt);
}

static int make_numbers(struct estimate_live *live, struct policy_error *error)
{
	struct pooled *p = pooled_open(live->drawn.part, live->drawn.cpus,
				       live->drawn.by.form == PACER_SAMPLE_LAST);

	if (!p)
		return fail(live, error, "no memory");
	live->values = pooled_read(p, live->want->moment, ESTIMATE_DELTA);
	live->keys = pooled_keys(p, ESTIMATE_DELTA, live->key, LIVE_KEYS);
	pooled_close(p);
	return 0;
}

/* Reads and shows the sample, which the policy's text describes. */
static int read_and_show(struct estimate_live *live, const struct pacer_copy *copy,
			 struct shower *to, struct policy_error *error)
{
	const struct pacer_sampling *by = &copy->policy.sampling;
	struct policy *policy;
	int code;

	policy = policy_parse(copy->text, strnlen(copy->text, PACER_DOC_MAX), error);
	if (!policy)
		return -1;
	live->sample = &policy->sample;
	code = drawn_take(live->a, by, key_of, &live->want->key, &live->drawn, error);
	if (!code) {
		live->bytes = sampling_bytes(by, live->drawn.cpus);
		code = make_numbers(live, error);
		if (!code)
			to->more = to->show(live, to->arg);
		drawn_free(&live->drawn);
	}
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
	live = (struct estimate_live){.want = want, .a = a};
	if (copy->policy.sampling.reasons && a->sampler)
		return read_and_show(&live, copy, to, error);
	return fail(&live, error,
		    "its policy samples nothing: apply one with sample: {of: all, k: 64, "
		    "window: 60s}");
}

/* --- again and again ------------------------------------------------------------------------ */

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
		host_wait_until(next_ns);
	}
	if (a.ifindex)
		attached_release(&a);
	return failed;
}
