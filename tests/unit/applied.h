/* SPDX-License-Identifier: GPL-2.0-only */
/* Policies applied one upon the other, as the CLI does it, without a kernel. */
#ifndef PACER_TEST_APPLIED_H
#define PACER_TEST_APPLIED_H

#include "oracle.h"

#include "plan/compile.h"
#include "plan/throttles.h"

#define MS	   1000000ull
#define SECOND	   (1000 * MS)
#define RESOLUTION (4 * MS)

/* A policy in force, as its three forms. */
struct applied {
	struct policy *policy;
	struct pacer_policy bin;
	struct plan plan;
};

static struct applied before, now, next;
static struct compile_host host;
static struct policy_error error;

struct doc {
	char s[PACER_DOC_MAX];
	size_t n;
};

static struct doc doc;

__attribute__((format(printf, 1, 2))) static inline void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	doc.n += vsnprintf(doc.s + doc.n, sizeof(doc.s) - doc.n, format, args);
	va_end(args);
	assert_true(doc.n < sizeof(doc.s));
}

static inline void say_again(void)
{
	doc.n = 0;
	doc.s[0] = 0;
}

static inline struct policy *parse(const char *text)
{
	struct policy_error wrong = {.line = -1};
	struct policy *policy = policy_parse(text, strlen(text), &wrong);

	if (!policy)
		fail_msg("%d: %s\n%s", wrong.line, wrong.text, text);
	return policy;
}

static inline void promote(void)
{
	policy_free(before.policy);
	before = now;
	now = next;
	next.policy = NULL;
}

static inline int apply_after(const char *text, const struct compile_previous *previous)
{
	int result;

	error = (struct policy_error){.line = -1};
	next.policy = parse(text);
	result = compile_policy(next.policy, previous, &host, &next.bin, &next.plan, &error);
	if (!result) {
		promote();
		return 0;
	}
	assert_int_equal(result, -1);
	assert_true(error.line >= 0);
	assert_true(strlen(error.text) > 20);
	policy_free(next.policy);
	next.policy = NULL;
	return -1;
}

/* What is in `now` is what was loaded. */
static inline int load(const char *text)
{
	return apply_after(text, NULL);
}

/* ... and what was applied upon it, its draining limits not yet timed. */
static inline int apply(const char *text)
{
	struct compile_previous previous = {now.policy, &now.bin, now.plan.lines,
					    false,	false,	  false};

	return apply_after(text, &previous);
}

/* The same text again, under the other secret. */
static inline int rotate(void)
{
	struct compile_previous previous = {now.policy, &now.bin, now.plan.lines,
					    true,	false,	  false};

	return apply_after(doc.s, &previous);
}

/* The change is in force: as the CLI does then. */
static inline void time_draining(void)
{
	compile_time_targets(&now.bin, host.now_ns);
	throttle_time_leases(&now.bin, host.now_ns);
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		compile_begin_rates(&now.bin.rule[r], host.now_ns);
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < now.bin.rule[r].n_limiters; k++) {
			struct pacer_limiter *t = &now.bin.rule[r].limiter[k];

			if (t->until_ns == COMPILE_UNTIL_SET)
				t->until_ns = host.now_ns + compile_limiter_memory_ns(t);
		}
}

/* A policy of one rule with these limits. */
static inline const char *rule_of(const char *head, const char *limits)
{
	say_again();
	say("%s\nrules:\n- name: a\n  limits: [%s]\n", head, limits);
	return doc.s;
}

static inline int setup(void **unused)
{
	(void)unused;
	host = (struct compile_host){RESOLUTION, SECOND, 2};
	oracle_seed(81);
	return 0;
}

static inline int teardown(void **unused)
{
	(void)unused;
	policy_free(before.policy);
	policy_free(now.policy);
	before.policy = now.policy = NULL;
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static inline char plan_mark(const struct applied *a, uint32_t rule, uint32_t limiter)
{
	size_t i;

	for (i = 0; i < a->plan.n_limits; i++) {
		const struct plan_limit *l = &a->plan.limit[i];

		if (l->rule == rule && l->limiter == limiter)
			return l->state == PLAN_NEW ? '+' : l->state == PLAN_MOVED ? '~' : '=';
	}
	return '-';
}

/* "Rgw+ Sg= T-": a new record with gap and window, a sketch that is kept, a throttle draining. */
static inline const char *limiters_text(uint32_t rule)
{
	static char text[PACER_LIMITERS_MAX * 8];
	uint32_t k, n = 0;

	text[0] = 0;
	for (k = 0; k < now.bin.rule[rule].n_limiters; k++) {
		const struct pacer_limiter *t = &now.bin.rule[rule].limiter[k];

		n += snprintf(text + n, sizeof(text) - n, "%s%c%s%s%c", k ? " " : "",
			      " SRGT"[t->kind], t -> gap_ns ? "g" : "",
			      t->kind == PACER_LIMITER_WINDOW && t->window.ring ? "w" : "",
			      plan_mark(&now, rule, k));
	}
	return text;
}

#endif
