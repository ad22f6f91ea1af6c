/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lock.h"
#include "live/allow_maps.h"
#include "live/ban_tables.h"
#include "live/copies.h"
#include "live/freeze.h"
#include "live/host.h"
#include "live/reading.h"
#include "live/sets_maps.h"
#include "live/still.h"
#include "plan/carry.h"
#include "plan/compile.h"
#include "plan/throttles.h"
#include "record.h"

int state_init(struct state *s, uint64_t n_lines)
{
	void *at;

	memset(s, 0, sizeof(*s));
	s->bin = calloc(1, sizeof(*s->bin));
	s->throttle = calloc(PACER_THROTTLES, sizeof(*s->throttle));
	s->counter = calloc(PACER_COUNTERS_MAX, sizeof(*s->counter));
	s->n_lines = s->room = n_lines;
	/* Pages that nobody writes to take no memory. */
	at = n_lines && n_lines <= PACER_LINES_MAX
		 ? mmap(NULL, n_lines * sizeof(*s->lines), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
		 : MAP_FAILED;
	s->lines = at == MAP_FAILED ? NULL : at;
	if (s->bin && s->throttle && s->counter && s->lines && !allowlist_init(&s->allow))
		return 0;
	state_free(s);
	return -1;
}

void state_free(struct state *s)
{
	if (s->lines)
		munmap(s->lines, s->room * sizeof(*s->lines));
	policy_free(s->policy);
	allowlist_free(&s->allow);
	explicit_bzero(s->secret, sizeof(s->secret));
	free(s->text);
	free(s->bin);
	free(s->throttle);
	free(s->counter);
	memset(s, 0, sizeof(*s));
}

/* --- a copy beside packets ------------------------------------------------------------------- */

/* What has never been written to is not read twice, nor does it take memory in the copy. */
static bool is_empty(const void *from, size_t bytes)
{
	const __u64 *a = from;

	for (size_t i = 0; i < bytes / sizeof(*a); i++)
		if (pacer_load64(&a[i]))
			return false;
	return true;
}

struct copying {
	const struct attached *a;
	struct state *s;
	bool failed;
};

static void copy_at(struct copying *c, uint64_t unit, size_t units)
{
	const union pacer_unit *from = &c->a->lines[0].unit[0] + unit;
	union pacer_unit *to = &c->s->lines[0].unit[0] + unit;
	size_t bytes = units * sizeof(*from);

	if ((unit + units + PACER_LINE_UNITS - 1) / PACER_LINE_UNITS > c->a->n_lines)
		c->failed = true;
	else if (!is_empty(from, bytes) && !still_copy(from, to, bytes))
		c->failed = true;
}

/* Entries of keys come before those that keys share. */
static void copy_region(const struct pacer_limiter *t, void *arg)
{
	uint64_t each = pacer_limiter_kind_of(t) == PACER_LIMITER_GAP ? PACER_LINE_UNITS : t->units;
	uint64_t n =
	    pacer_limiter_kind_of(t) == PACER_LIMITER_GAP ? t->sets : 2ull * t->sets + t->shared;
	struct copying *c = arg;

	for (uint64_t i = 0; i < n && !c->failed; i++)
		copy_at(c, (uint64_t)t->base * PACER_LINE_UNITS + i * each, each);
}

/* The filter later, and the end of the last ban after that: whoever is in the table is in them. */
static void copy_bans(struct copying *c, const struct pacer_bans *bans)
{
	uint64_t n = bans->sets ? (uint64_t)bans->sets * PACER_BAN_WAYS : 0;

	for (uint64_t i = 0; i < n && !c->failed; i++)
		copy_at(c, (bans->base + i) * PACER_LINE_UNITS, PACER_LINE_UNITS);
	for (uint64_t i = 0; n && i <= bans->filter_mask + 1ull; i++)
		if (!is_empty(&c->a->lines[bans->filter + i], sizeof(struct pacer_line)))
			still_words(&c->a->lines[bans->filter + i], &c->s->lines[bans->filter + i],
				    sizeof(struct pacer_line));
}

static void copy_throttles(struct copying *c)
{
	struct throttle_states used;

	throttle_survey(c->s->bin, host_now_ns(), &used);
	for (size_t i = 0; i < PACER_THROTTLES && !c->failed; i++)
		if (used.taken[i] &&
		    !still_copy(&c->a->throttle[i], &c->s->throttle[i], sizeof(c->s->throttle[i])))
			c->failed = true;
}

/* Limits that have done with draining: their lines may be another's by now. */
static void leave_out_expired(struct pacer_policy *p, uint64_t at_ns, uint64_t resolution_ns)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		struct pacer_rule *rule = &p->rule[r];
		uint8_t n = 0;

		for (size_t k = 0; k < rule->n_limiters; k++)
			if (!rule->limiter[k].until_ns ||
			    rule->limiter[k].until_ns == COMPILE_UNTIL_SET ||
			    rule->limiter[k].until_ns + resolution_ns >= at_ns)
				rule->limiter[n++] = rule->limiter[k];
		memset(&rule->limiter[n], 0, (rule->n_limiters - n) * sizeof(*rule->limiter));
		rule->n_limiters = n;
	}
}

static int copy_policy(const struct attached *a, uint32_t copy, struct state *s,
		       struct policy_error *error)
{
	struct policy_error why = {0};

	*s->bin = a->copy[copy].policy;
	s->text = strndup(a->copy[copy].text, PACER_DOC_MAX - 1);
	if (!s->text)
		return policy_fail(error, 0, "%s: no memory", a->ifname);
	s->policy = policy_parse(s->text, strlen(s->text), &why);
	if (!s->policy)
		return policy_fail(error, 0, "%s: its policy cannot be read: %.300s", a->ifname,
				   why.text);
	leave_out_expired(s->bin, host_now_ns(), a->control->resolution_ns);
	return 0;
}

static int copy_counters(const struct attached *a, struct state *s, struct policy_error *error)
{
	int cpus = host_cpus(error), result = 0;

	if (cpus < 1)
		return -1;
	for (uint32_t i = 0; i < PACER_COUNTERS_MAX && !result; i++)
		result = reading_counters(a, i, &s->counter[i]);
	for (uint32_t i = 0; i < PACER_SET_COUNTERS && !result; i++)
		result = sets_maps_counter(a, i, cpus, &s->set_count[i]);
	return result ? policy_fail(error, 0, "%s: its counters cannot be read: %s", a->ifname,
				    strerror(errno))
		      : 0;
}

int state_take_allowed(const struct attached *a, uint32_t copy, struct state *s,
		       struct policy_error *error)
{
	uint64_t now_ns = host_now_ns();
	struct allowlist list;

	if (allow_maps_read(a, copy, &list, error))
		return -1;
	for (size_t i = 0; i < list.n; i++)
		if (list.entry[i].by_hand && !allow_has_lapsed(&list.entry[i], now_ns))
			(void)allowlist_append(&s->allow, &list.entry[i]);
	allowlist_free(&list);
	return 0;
}

/* A policy that was on trial, or that a save had frozen (freeze.h), which has no serial. */
static int gave_way(const struct attached *a, struct policy_error *error)
{
	uint64_t until_ns;

	if (!a->copy[copies_put_last(a, &until_ns)].policy.serial)
		return policy_fail(error, 0,
				   "%s: it was frozen for too long, and packets are let through "
				   "again: try again",
				   a->ifname);
	return policy_fail(error, 0, "%s: a policy on trial gave way just now: try again",
			   a->ifname);
}

int state_take(const struct attached *a, uint32_t copy, struct state *s, struct policy_error *error)
{
	uint32_t in_force = copies_in_force(a);
	struct copying c = {a, s, false};

	if (copy_policy(a, copy, s, error) || copy_counters(a, s, error))
		return -1;
	s->secret_ready = a->control->secret_ready;
	memcpy(s->secret, a->control->secret, sizeof(s->secret));
	carry_each_region(s->bin, copy_region, &c);
	ban_tables_free_held(a, &s->bin->bans);
	copy_bans(&c, &s->bin->bans);
	copy_throttles(&c);
	s->clocks = clocks_read();
	if (c.failed)
		return policy_fail(
		    error, 0,
		    "%s: an entry of its state is being written to all the time: try "
		    "again",
		    a->ifname);
	if (!s->clocks.boot_id[0])
		return policy_fail(error, 0,
				   "%s: the kernel does not say which boot this is: is /proc "
				   "mounted?",
				   a->ifname);
	return in_force != copies_in_force(a) ? gave_way(a, error) : 0;
}

int state_take_all(const struct attached *a, struct state *s, struct policy_error *error)
{
	uint32_t now = copies_in_force(a), copy = copies_frozen(a) ? now ^ 1 : now;

	if (state_take_allowed(a, copy, s, error) || state_take(a, copy, s, error))
		return -1;
	return now != copies_in_force(a) ? gave_way(a, error) : 0;
}

/* --- of a file ------------------------------------------------------------------------------- */

static bool within(const struct state *s, uint64_t base, uint64_t lines)
{
	return base <= s->n_lines && lines <= s->n_lines - base;
}

/* A change that was cut off has not said when it begins. */
static bool begin_is_sound(const struct pacer_rate *rate)
{
	return rate->begin_ns == COMPILE_UNTIL_SET || !(rate->begin_ns >> 63);
}

static bool limiter_is_sound(const struct state *s, const struct pacer_limiter *t)
{
	const struct pacer_window *w = &t->window;

	if (t->secret > 1 || t->rows > PACER_ROWS_MAX || t->last_shift > 63 ||
	    t->generation >= PACER_GENERATIONS || t->share >= PACER_SHARES ||
	    (t->kind & ~PACER_LIMITER_NEW) > (PACER_LIMITER_FLEET | PACER_LIMITER_THROTTLE))
		return false;
	switch (pacer_limiter_kind_of(t)) {
	case PACER_LIMITER_THROTTLE:
		return t->base < PACER_THROTTLES;
	case PACER_LIMITER_WINDOW:
		if (w->ring < 2 || w->ring > PACER_RING_MAX || !w->slot_ns || !t->units ||
		    w->shift > 63 || w->cost_shift > PACER_COST_SHIFT_MAX || t->units != w->units ||
		    t->units > PACER_LINE_UNITS * (1 + PACER_EXTRA_MAX) ||
		    (!pacer_window_narrow(w) && t->units % PACER_LINE_UNITS))
			return false;
		break;
	case PACER_LIMITER_RATE:
		if (t->units != 1 || t->rate.burst_ns >> 63 || !begin_is_sound(&t->rate))
			return false;
		break;
	case PACER_LIMITER_GAP:
		break;
	default:
		return false;
	}
	return within(s, t->base, compile_limiter_lines(t));
}

static bool bans_are_sound(const struct state *s, const struct pacer_bans *bans)
{
	if (!bans->sets)
		return true;
	return !(bans->filter_mask & (bans->filter_mask + 1ull)) && bans->sets < INT32_MAX / 4 &&
	       within(s, bans->base, (uint64_t)bans->sets * PACER_BAN_WAYS) &&
	       within(s, bans->filter, bans->filter_mask + 2ull);
}

static bool flows_are_sound(const struct state *s, const struct pacer_flows *flows)
{
	return flows->sets < INT32_MAX / 4 && within(s, flows->base, compile_flow_lines(flows));
}

static bool pools_are_sound(const struct pacer_policy *p)
{
	for (size_t i = 0; i < PACER_POOLS_MAX; i++) {
		if (p->pool[i].n > PACER_TARGETS_MAX)
			return false;
		for (size_t k = 0; k < p->pool[i].n; k++)
			if (p->pool[i].state[k] >= PACER_THROTTLES)
				return false;
	}
	for (size_t i = 0; i < PACER_THROTTLES; i++)
		if (p->draining[i].state >= PACER_THROTTLES)
			return false;
	return true;
}

/* What is in the lines lies where a secret says. */
static bool secret_is_sound(const struct state *s)
{
	const uint64_t *word = (const uint64_t *)s->lines;
	uint64_t n = s->secret_ready == PACER_SECRET_NONE
			 ? s->n_lines * sizeof(*s->lines) / sizeof(*word)
			 : 0;

	if (s->secret_ready > PACER_SECRET_OF_TOOLS)
		return false;
	while (n && !*word) {
		word++;
		n--;
	}
	return !n;
}

bool state_is_sound(const struct state *s)
{
	const struct pacer_policy *p = s->bin;

	if (p->secret > 1 || !secret_is_sound(s) || !bans_are_sound(s, &p->bans) ||
	    !flows_are_sound(s, &p->flows) || !pools_are_sound(p))
		return false;
	for (size_t i = 0; i < PACER_SETS_MAX; i++)
		if (p->set_counter[i] >= PACER_SET_COUNTERS)
			return false;
	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		const struct pacer_rule *rule = &p->rule[r];

		if (rule->n_limiters > PACER_LIMITERS_MAX || rule->counter >= PACER_COUNTERS_MAX)
			return false;
		for (size_t k = 0; k < rule->n_limiters; k++)
			if (!limiter_is_sound(s, &rule->limiter[k]))
				return false;
	}
	return true;
}
