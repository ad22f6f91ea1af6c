/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/reading.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "live/bans.h"
#include "live/copies.h"
#include "live/fleet_shares.h"
#include "live/host.h"
#include "live/sets_maps.h"
#include "inspect/occupancy.h"
#include "plan/kinds.h"
#include "plan/shares.h"

/* --- counters ------------------------------------------------------------------------------- */

static void add_counters(struct pacer_counters *sum, const struct pacer_counters *c)
{
	for (int r = 0; r < PACER_REASON_COUNT; r++) {
		sum->by[r].packets += c->by[r].packets;
		sum->by[r].bytes += c->by[r].bytes;
	}
	for (int e = 0; e < PACER_EVENT_COUNT; e++)
		sum->events[e] += c->events[e];
}

int reading_counters(const struct attached *a, uint32_t slot, struct pacer_counters *sum)
{
	struct policy_error unused;
	int cpus = host_cpus(&unused), result = -1;
	struct pacer_counters *each = cpus > 0 ? calloc(cpus, sizeof(*each)) : NULL;

	memset(sum, 0, sizeof(*sum));
	if (each)
		result = bpf_map_lookup_elem(a->counts_fd, &slot, each) ? -1 : 0;
	for (int cpu = 0; cpu < cpus && !result; cpu++)
		add_counters(sum, &each[cpu]);
	free(each);
	return result;
}

static int read_sets(const struct attached *a, uint32_t copy, struct reading *f)
{
	struct policy_error unused;
	int cpus = host_cpus(&unused), result = cpus > 0 ? 0 : -1;

	for (uint32_t i = 0; i < f->policy->n_sets && !result; i++) {
		f->set[i].counted = sets_maps_counted(a, copy, i, f->policy);
		result = sets_maps_count(a, copy, i, cpus, &f->set[i].count) ||
				 sets_maps_prefixes(a, copy, i, &f->set[i].prefixes)
			     ? -1
			     : 0;
	}
	return result;
}

/* --- what is held --------------------------------------------------------------------------- */

static void read_tables(const struct attached *a, const struct pacer_policy *p, struct reading *f)
{
	uint64_t now_ns = host_now_ns();

	f->n_tables = 0;
	for (size_t r = 0; r < f->policy->n_rules; r++)
		for (size_t l = 0; l < f->policy->rule[r].n_limits; l++) {
			const struct pacer_limiter *t = occupancy_limiter(
			    &p->rule[r], &f->policy->rule[r].limit[l], copies_resolution_ns(a));
			struct reading_table *table = &f->table[f->n_tables];

			/* One record for all keys is no table. */
			if (!t || !t->sets)
				continue;
			table->rule = r;
			table->limit = l;
			table->used = occupancy_used(t, a->lines, a->n_lines, now_ns, false,
						     &table->capacity);
			table->shared = occupancy_used(t, a->lines, a->n_lines, now_ns, true,
						       &table->shared_capacity);
			f->n_tables++;
		}
}

static void read_share(const struct attached *a, const struct policy_rule *rule,
		       const struct fleet_limit *limit, struct reading *f)
{
	const struct fleet_held held = fleet_held(a, limit);
	struct reading_share *share = &f->share[f->n_shares];
	bool lasts = f->now_ns < held.until_ns;
	size_t l = 0;

	while (l < rule->n_limits &&
	       !limit_is(&rule->limit[l], &limit->limiter, copies_resolution_ns(a)))
		l++;
	if (l == rule->n_limits)
		return;
	*share = (struct reading_share){
	    .rule = limit->rule, .limit = l, .all = shares_units(&limit->limiter)};
	if (held.is) {
		share->units = lasts ? held.units : held.floor;
		for (size_t i = 0; i < PACER_LANES; i++)
			share->lanes += lasts && held.lane[i].is;
		share->members = held.members;
		share->answered_ns = held.answered_ns;
	}
	f->n_shares++;
}

static void read_shares(const struct attached *a, struct reading *f)
{
	struct fleet_limit limit[PACER_SHARES];
	size_t n = fleet_limits(a, limit);

	f->n_shares = 0;
	for (size_t i = 0; i < n; i++)
		if (!limit[i].draining && limit[i].rule < f->policy->n_rules)
			read_share(a, &f->policy->rule[limit[i].rule], &limit[i], f);
}

static void read_items(const struct attached *a, struct reading *f)
{
	const struct pacer_fleet_items *i = &a->control->fleet_items;

	f->items = (struct reading_items){
	    .any = pacer_load64(&i->begun_ns),
	    .known = pacer_load64(&i->known),
	    .told = pacer_load64(&i->told),
	    .taken = pacer_load64(&i->taken),
	    .late = pacer_load64(&i->late),
	    .left_out = pacer_load64(&i->left_out),
	    .answered_ns = pacer_load64(&i->answered_ns),
	};
}

static void add_ban(uint32_t rule_id, void *arg)
{
	struct reading *f = arg;

	if (rule_id == PACER_BAN_SOURCE) {
		f->bans_of_sources++;
		return;
	}
	for (size_t r = 0; r < f->policy->n_rules; r++)
		if (compile_name_id(f->policy->rule[r].name) == rule_id) {
			f->bans[r]++;
			return;
		}
	f->bans_of_gone++;
}

static void read_bans(const struct attached *a, struct reading *f)
{
	memset(f->bans, 0, sizeof(f->bans));
	f->bans_of_sources = 0;
	f->bans_of_gone = 0;
	f->ban_room = bans_room(a);
	f->bans_counted = f->ban_room && f->ban_room <= READING_BANS;
	if (f->bans_counted)
		bans_count(a, add_ban, f);
}

/* --- all of it ------------------------------------------------------------------------------ */

static uint64_t serial_of(const struct attached *a, uint32_t copy)
{
	return pacer_load64((const __u64 *)&a->copy[copy].policy.serial);
}

enum parts { COUNTERS_ALONE, ALL_PARTS };

static int read_once(const struct attached *a, uint32_t copy, enum parts parts, struct reading *f,
		     struct policy_error *error)
{
	const struct pacer_policy *p = &a->copy[copy].policy;
	const char *text = a->copy[copy].text;
	struct policy_error why = {0};
	int result;

	f->policy = policy_parse(text, strnlen(text, PACER_DOC_MAX), &why);
	if (!f->policy)
		return policy_fail(error, 0, "its policy cannot be read: %s", why.text);
	f->pending_ns = copies_pending_ns(a);
	f->monitor = p->flags & PACER_MONITOR;
	f->exact = p->flags & PACER_CLOCK_EXACT;
	f->now_ns = host_now_ns();
	result = reading_counters(a, 0, &f->none);
	for (size_t r = 0; r < f->policy->n_rules && !result; r++)
		result = reading_counters(a, p->rule[r].counter, &f->rule[r]);
	if (!result)
		result = read_sets(a, copy, f);
	if (result)
		return policy_fail(error, 0, "its counters cannot be read: %s", strerror(errno));
	f->n_tables = 0;
	f->n_shares = 0;
	read_items(a, f);
	f->ban_room = 0;
	f->bans_counted = false;
	if (parts == COUNTERS_ALONE)
		return 0;
	read_tables(a, p, f);
	read_shares(a, f);
	read_bans(a, f);
	return 0;
}

static int read_parts(const struct attached *a, enum parts parts, struct reading *f,
		      struct policy_error *error)
{
	struct policy_error why = {0};

	f->policy = NULL;
	f->control_id = a->control_id;
	for (int i = 0; i < FIGURES_TRIES; i++) {
		uint32_t copy = copies_in_force(a);
		int result;

		f->serial = serial_of(a, copy);
		result = read_once(a, copy, parts, f, &why);
		if (copy == copies_in_force(a) && f->serial == serial_of(a, copy)) {
			if (!result)
				return 0;
			reading_free(f);
			return policy_fail(error, 0, "%s: %s", a->ifname, why.text);
		}
		reading_free(f);
	}
	return policy_fail(error, 0,
			   "%s: its policy changes faster than its counters can be read: try again",
			   a->ifname);
}

int reading_take(const struct attached *a, struct reading *f, struct policy_error *error)
{
	return read_parts(a, ALL_PARTS, f, error);
}

int reading_count(const struct attached *a, struct reading *f, struct policy_error *error)
{
	return read_parts(a, COUNTERS_ALONE, f, error);
}

struct pacer_count reading_of_verdict(const struct pacer_counters *c, enum pacer_verdict verdict)
{
	struct pacer_count sum = {0, 0};

	for (int r = 0; r < PACER_REASON_COUNT; r++)
		if (pacer_verdict_of(r) == verdict) {
			sum.packets += c->by[r].packets;
			sum.bytes += c->by[r].bytes;
		}
	return sum;
}

void reading_free(struct reading *f)
{
	if (f->policy)
		policy_free(f->policy);
	f->policy = NULL;
}
