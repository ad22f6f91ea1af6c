/* SPDX-License-Identifier: GPL-2.0-only */
#include "sampling.h"

#include "sampler.h"

/* Bits of a window's length that its ticks keep: 32 to 64 ticks. */
#define TICK_BITS 5

_Static_assert((2u << TICK_BITS) + 2 <= PACER_SAMPLER_TICKS, "a window's ticks have room");
_Static_assert(POLICY_SNAP_MAX == PACER_SNAP_MAX, "what a policy may say is kept");
_Static_assert(PACER_REASON_COUNT <= 32, "a reason is a bit");

/* Of all: those that were parsed, also where no rule or limit was asked. */
static bool samples(enum policy_sampled of, enum pacer_verdict verdict, enum pacer_reason reason)
{
	switch (of) {
	case SAMPLE_DENIED:
		return verdict == PACER_VERDICT_DENY;
	case SAMPLE_ADMITTED:
		return verdict == PACER_VERDICT_ADMIT;
	case SAMPLE_ALL:
		return verdict != PACER_VERDICT_UNPARSED && reason != PACER_NOT_IP;
	}
	return false;
}

const char *sampling_of_text(enum policy_sampled of)
{
	static const char *const text[] = {
	    [SAMPLE_DENIED] = "denied", [SAMPLE_ADMITTED] = "admitted", [SAMPLE_ALL] = "all"};

	return text[of];
}

static uint32_t reasons_of(enum policy_sampled of)
{
	uint32_t reasons = 0;

	for (int r = 0; r < PACER_REASON_COUNT; r++)
		if (samples(of, pacer_verdict_of(r), r))
			reasons |= 1u << r;
	return reasons;
}

static void set_ticks(struct pacer_sampling *s, uint64_t window_ns)
{
	while (window_ns >> s->tick_shift >= 2u << TICK_BITS)
		s->tick_shift++;
	/* The part of a tick that is left over, and of the current one what is not yet. */
	s->window = (window_ns >> s->tick_shift) + 2;
}

static bool same(const struct pacer_sampling *a, const struct pacer_sampling *b)
{
	return a->window == b->window && a->reasons == b->reasons && a->k == b->k &&
	       a->form == b->form && a->tick_shift == b->tick_shift && a->snap == b->snap;
}

static bool has_rule(const struct pacer_policy *p, uint32_t counter)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		if (p->rule[r].counter == counter)
			return true;
	return false;
}

static bool brings_rule(const struct pacer_policy *bin, const struct pacer_policy *previous)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		if (bin->rule[r].counter && !has_rule(previous, bin->rule[r].counter))
			return true;
	return false;
}

struct pacer_sampling sampling_compile(const struct policy_sample *sample,
				       const struct pacer_policy *bin,
				       const struct pacer_policy *previous, uint64_t resolution_ns,
				       uint64_t now_ns)
{
	struct pacer_sampling s = {.id = now_ns, .k = sample->k, .snap = sample->snap_bytes};

	if (!sample->on)
		return (struct pacer_sampling){0};
	s.reasons = reasons_of(sample->of);
	s.form = sample->packets ? PACER_SAMPLE_LAST : PACER_SAMPLE_TIME;
	s.window = sample->packets;
	if (s.form == PACER_SAMPLE_TIME)
		set_ticks(&s, sample->window_ns + resolution_ns);
	if (previous && same(&previous->sampling, &s) && !brings_rule(bin, previous))
		s.id = previous->sampling.id;
	return s;
}

uint64_t sampling_bytes(const struct pacer_sampling *s, unsigned int cpus)
{
	if (!s->reasons)
		return 0;
	return cpus * (sizeof(struct pacer_sampler) + (s->snap ? sizeof(struct pacer_heads) : 0));
}
