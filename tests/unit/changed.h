/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: a pacer that is changed, in a kernel made of memory: what is cleared, and what stays. */
#ifndef PACER_TEST_CHANGED_H
#define PACER_TEST_CHANGED_H

#include "paced.h"

#include "live/allow.h"
#include "live/change.h"
#include "live/copies.h"

#define JUDGING_NS (5 * SECOND) /* how long a packet may be judged by what was in force */
#define DIRT	   0xa4
#define TRIAL_NS   (30 * SECOND)

#define SMALL	 "memory: 1M\nclock: exact\n"
#define WINDOW	 "{key: src, packets: 9, window: 1s, entries: 64}"
#define TO_DST	 "{key: dst, packets: 5, window: 2s, entries: 64}"
#define USES	 "{key: all, uses: 9, cooldown: 1s, max_cooldown: 2s, threshold: 9}"
#define RULE(of) "rules:\n- name: a\n  limits: [" of "]\n"
#define LARGE	 "{key: src, packets: 9, window: 1s}" /* its lines go on under either secret */
#define POOL(of)                                                                         \
	"  over: pool p\npools:\n- {name: p, targets: [" of "], each: 9, cooldown: 1s, " \
	"max_cooldown: 2s, threshold: 9}\n"
#define ROUGHLY "memory: 1M\nclock: coarse\n"

static inline struct pacer_policy *in_force(void)
{
	return &copies[copies_in_force(&pacer)].policy;
}

/* Loaded with this policy, all that it does not use being as a pacer before left it. */
static inline void begin(const char *text)
{
	graces = 0;
	grace_hook = NULL;
	kernel_refuses = 0;
	kernel_map_of_maps = -1;
	put_on(text);
}

/* As `apply` reads them. */
static const struct set_texts no_sets;

static inline void change_to(const char *text)
{
	if (change_apply(&pacer, text, &no_sets, 0, &plan, &error))
		fail_msg("%d: %s", error.line, error.text);
}

/* All memory of limits, throttles and leases, whoever uses it. */
static inline void soil(void)
{
	uint8_t lease[KERNEL_CPUS * sizeof(struct pacer_throttle_lease)];
	uint8_t count[KERNEL_CPUS * sizeof(struct pacer_counters)];

	memset(lease, DIRT, sizeof(lease));
	memset(count, DIRT, sizeof(count));
	memset(pacer.lines, DIRT, pacer.n_lines * sizeof(struct pacer_line));
	memset(throttles, DIRT, PACER_THROTTLES * sizeof(*throttles));
	for (uint32_t i = 0; i < PACER_THROTTLES; i++)
		assert_int_equal(bpf_map_update_elem(KERNEL_LEASES, &i, lease, 0), 0);
	for (uint32_t i = 0; i < PACER_COUNTERS_MAX; i++)
		assert_int_equal(bpf_map_update_elem(KERNEL_COUNTS, &i, count, 0), 0);
}

/* Every byte is this. */
static inline void assert_bytes(const void *from, size_t n, uint8_t byte)
{
	const uint8_t *p = from;

	for (size_t i = 0; i < n; i++)
		assert_int_equal(p[i], byte);
}

static inline void assert_lines(uint64_t base, uint64_t lines, uint8_t byte)
{
	assert_true(lines > 0 && base + lines <= pacer.n_lines);
	assert_bytes(&pacer.lines[base], lines * sizeof(*pacer.lines), byte);
}

static inline void assert_limiter(const struct pacer_limiter *t, uint8_t byte)
{
	assert_lines(t->base, compile_limiter_lines(t), byte);
}

/* A throttle's state, and what each CPU has leased of it. */
static inline void assert_throttle(uint32_t index, uint8_t byte)
{
	assert_bytes(&throttles[index], sizeof(*throttles), byte);
	assert_bytes(kernel_value(KERNEL_LEASES, &index),
		     KERNEL_CPUS * sizeof(struct pacer_throttle_lease), byte);
}

static inline const struct pacer_limiter *draining(void)
{
	for (size_t k = 0; k < in_force()->rule[0].n_limiters; k++)
		if (in_force()->rule[0].limiter[k].until_ns)
			return &in_force()->rule[0].limiter[k];
	fail_msg("nothing is retired");
	return NULL;
}

static inline void try_out(const char *text)
{
	if (change_apply(&pacer, text, &no_sets, TRIAL_NS, &plan, &error))
		fail_msg("%d: %s", error.line, error.text);
	assert_true(copies_pending_ns(&pacer) == TRIAL_NS);
}

static inline const struct pacer_rule *rule_before(void)
{
	return &copies[copies_in_force(&pacer) ^ 1].policy.rule[0];
}

/* Its time passes between one look at the clock and the next. */
static inline void begin_to_end(uint64_t looks)
{
	begin(SMALL RULE(WINDOW));
	try_out(SMALL RULE(TO_DST));
	kernel_now_ns += TRIAL_NS - looks;
	clock_step_ns = 1;
}

static inline void refuse_after_it(void)
{
	if (graces == 1)
		kernel_refuses = 2;
}

static inline const struct pacer_allow_value *allowed_in(uint32_t copy, uint32_t addr)
{
	struct pacer_allow4 key = {PACER_ALLOW_COPY_BITS + 32, copy, {192, 0, 2, addr}};
	static struct pacer_allow_value value;

	return bpf_map_lookup_elem(KERNEL_ALLOW4, &key, &value) ? NULL : &value;
}

static inline struct allow_entry entry(uint32_t addr, uint64_t until_ns)
{
	return (struct allow_entry){.prefix = {4, 32, {192, 0, 2, addr}},
				    .hand_until_ns = until_ns};
}

#endif
