/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/restore.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "ban.h"
#include "live/ban_notes.h"
#include "live/ban_tables.h"
#include "live/host.h"
#include "plan/carry.h"
#include "plan/keymask.h"
#include "plan/kinds.h"
#include "plan/throttles.h"
#include "short.h"

/* --- what the policy goes on with ------------------------------------------------------------ */

/* Of a table of so many lines, new ones empty. */
static int grow(struct state *s, uint64_t n_lines, struct policy_error *error)
{
	void *at;

	if (n_lines <= s->n_lines)
		return 0;
	at = mremap(s->lines, s->room * sizeof(*s->lines), n_lines * sizeof(*s->lines),
		    MREMAP_MAYMOVE);
	if (at == MAP_FAILED)
		return policy_fail(error, 0, "no memory for %llu lines of state",
				   (unsigned long long)n_lines);
	s->lines = at;
	s->n_lines = s->room = n_lines;
	return 0;
}

/* The lines of a table that a policy begins with. */
static int begins_with(const struct policy *policy, const struct compile_host *host,
		       uint64_t *n_lines, struct policy_error *error)
{
	uint64_t bytes;

	if (compile_memory(policy, host, &bytes, error))
		return -1;
	*n_lines = bytes / sizeof(struct pacer_line);
	if (*n_lines > PACER_LINES_MAX)
		*n_lines = PACER_LINES_MAX;
	return 0;
}

/* What it retires is needed from now on for as long as it remembers: no packet is judged yet. */
static void time_draining(struct pacer_policy *bin, uint64_t now_ns)
{
	compile_time_targets(bin, now_ns);
	throttle_time_leases(bin, now_ns); /* no CPU has one: it is no longer than needed */
	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		struct pacer_rule *rule = &bin->rule[r];

		compile_begin_rates(rule, now_ns);
		for (size_t k = 0; k < rule->n_limiters; k++)
			if (rule->limiter[k].until_ns == COMPILE_UNTIL_SET)
				rule->limiter[k].until_ns =
				    now_ns + compile_limiter_memory_ns(&rule->limiter[k]);
	}
}

/*
 * What cooled down after the save leaves its throttle to others, with its uses in it. Lines that a
 * new limit gets were nobody's, or of tables that were emptied (move_bans; of flows none is saved).
 */
static void begin_at_zero(struct state *s, const struct pacer_policy *bin, const struct plan *plan,
			  uint64_t now_ns)
{
	for (size_t i = 0; i < plan->n_limits; i++) {
		const struct plan_limit *l = &plan->limit[i];
		const struct pacer_limiter *t = &bin->rule[l->rule].limiter[l->limiter];

		if (l->state == PLAN_NEW && !compile_in_lines(t))
			memset(&s->throttle[t->base], 0, sizeof(*s->throttle));
	}
	for (size_t i = 0; i < plan->n_pools; i++)
		for (size_t k = 0; k < plan->pool[i].n; k++) {
			struct pacer_throttle_state *state = &s->throttle[bin->pool[i].state[k]];

			if (plan->pool[i].state[k] == PLAN_NEW)
				memset(state, 0, sizeof(*state));
			if (plan->pool[i].spent[k])
				throttle_spend(state, &bin->pool[i].throttle, now_ns);
		}
}

static void count_limits(const struct plan *plan, struct restored *what)
{
	for (size_t i = 0; i < plan->n_limits; i++) {
		what->limits_kept += plan->limit[i].state == PLAN_KEPT;
		what->limits_new += plan->limit[i].state == PLAN_NEW;
	}
	what->limits_draining = plan_retired(plan);
}

/* --- bans ------------------------------------------------------------------------------------ */

static size_t count_bans(const struct pacer_line *entry, size_t n, uint64_t now_ns)
{
	struct pacer_line unused;
	size_t bans = 0;

	for (size_t i = 0; i < n; i++)
		bans += ban_notes_read(&entry[i], now_ns, &unused);
	return bans;
}

/*
 * A table of another size may lie in the lines of the one before, and so may new limits: what is
 * banned is taken out of them first. Of flows nothing is saved (state.c).
 */
static int move_bans(struct state *s, const struct pacer_policy *bin, uint64_t now_ns,
		     struct restored *what, struct policy_error *error)
{
	const struct pacer_bans *old = &s->bin->bans;
	size_t n = (size_t)old->sets * PACER_BAN_WAYS, bytes = n * sizeof(*s->lines);
	struct pacer_line *entry = aligned_alloc(sizeof(*entry), bytes + sizeof(*entry));
	struct pacer_table table = {s->lines, (uint32_t)s->n_lines};

	if (!entry)
		return policy_fail(error, 0, "no memory for %zu bans", n);
	memcpy(entry, &s->lines[old->base], bytes);
	memset(&s->lines[old->base], 0, bytes);
	if (n)
		memset(&s->lines[old->filter], 0, (old->filter_mask + 2ull) * sizeof(*s->lines));
	what->bans_left_out = ban_tables_carry(
	    entry, n, &table, bin, (const __u64 *)s->secret[bin->secret & 1], now_ns, &what->bans);
	free(entry);
	return 0;
}

static int go_on_banning(struct state *s, struct pacer_policy *bin, bool kept, uint64_t now_ns,
			 struct restored *what, struct policy_error *error)
{
	const struct pacer_bans *old = &s->bin->bans;

	if (kept)
		what->bans =
		    count_bans(&s->lines[old->base], (size_t)old->sets * PACER_BAN_WAYS, now_ns);
	else if (move_bans(s, bin, now_ns, what, error))
		return -1;
	ban_notes_write(s->lines, bin, now_ns);
	return 0;
}

/* --- counters and the allow-list ------------------------------------------------------------- */

static bool counts_on(const struct pacer_policy *bin, size_t n_rules, uint32_t slot)
{
	for (size_t r = 0; r < n_rules; r++)
		if (bin->rule[r].counter == slot)
			return true;
	return false;
}

/*
 * Of rules that are no more, now or before: a new one may have the slot. Slot 0 is of no rule.
 */
static void leave_counters(struct state *s, const struct policy *policy,
			   const struct pacer_policy *bin, struct restored *what)
{
	for (uint32_t slot = 1; slot < PACER_COUNTERS_MAX; slot++) {
		bool was = counts_on(s->bin, s->policy->n_rules, slot);

		if (was && counts_on(bin, policy->n_rules, slot))
			continue;
		memset(&s->counter[slot], 0, sizeof(s->counter[slot]));
		what->counters_left_out += was;
	}
}

static bool counts_set(const struct pacer_policy *bin, size_t n_sets, uint32_t id)
{
	for (size_t i = 0; i < n_sets; i++)
		if (bin->set_counter[i] == id)
			return true;
	return false;
}

/* The same of sets. */
static void leave_set_counts(struct state *s, const struct policy *policy,
			     const struct pacer_policy *bin)
{
	for (uint32_t id = 0; id < PACER_SET_COUNTERS; id++)
		if (!counts_set(s->bin, s->policy->n_sets, id) ||
		    !counts_set(bin, policy->n_sets, id))
			s->set_count[id] = (struct pacer_set_count){0};
}

/* For how long it lets packets through: what may have passed since has passed. False: over. */
static bool still_allowed(struct allow_entry *e, const struct state *s, const struct absence *away,
			  uint64_t now_ns)
{
	uint64_t left_ns;

	if (!e->hand_until_ns)
		return true;
	if (e->hand_until_ns <= s->clocks.mono_ns)
		return false;
	left_ns = e->hand_until_ns - s->clocks.mono_ns;
	if (away->at_most_ns >= left_ns)
		return false;
	e->hand_until_ns = now_ns + (left_ns - away->at_most_ns);
	return true;
}

/* *s->allow is then the whole list. */
static int go_on_allowing(struct state *s, const struct policy *policy, uint64_t now_ns,
			  struct restored *what, struct policy_error *error)
{
	struct allowlist next;
	size_t n = 0;
	int family;

	for (size_t i = 0; i < s->allow.n; i++)
		if (still_allowed(&s->allow.entry[i], s, &what->absence, now_ns)) {
			s->allow.entry[n] = s->allow.entry[i];
			s->allow.entry[n++].of_policy = false;
		}
	what->allowed = n;
	what->allowed_left_out = s->allow.n - n;
	s->allow.n = n;
	allowlist_sort(&s->allow);
	if (allowlist_init(&next))
		return policy_fail(error, 0, "no memory");
	family = allowlist_next(policy, &s->allow, now_ns, &next);
	allowlist_free(&s->allow);
	s->allow = next;
	return family ? policy_fail(error, 0,
				    "the allow-list holds %u IPv%d prefixes, and those of the "
				    "policy and those saved are more",
				    PACER_ALLOW_MAX, family)
		      : 0;
}

/*
 * The table grows by what saved limits keep from those of the policy, and not beyond what its
 * `memory` has room for without them: so what is restored can be loaded anew, too.
 */
static int fits_alone(const struct policy *policy, const struct compile_host *host,
		      struct policy_error *error)
{
	static struct plan unused;
	struct pacer_policy *bin = malloc(sizeof(*bin));
	int result = bin ? compile_policy(policy, NULL, host, bin, &unused, error)
			 : policy_fail(error, 0, "no memory for the policy");

	free(bin);
	return result;
}

int restore_plan(struct state *s, const struct policy *policy, const struct clocks *now,
		 const struct compile_host *host, struct pacer_policy *bin, struct plan *plan,
		 struct restored *what, struct policy_error *error)
{
	uint64_t n_lines;
	struct compile_previous previous = {s->policy, s->bin, 0, false, false, true};
	int lost;

	memset(what, 0, sizeof(*what));
	what->absence = absence_between(&s->clocks, now);
	if (begins_with(policy, host, &n_lines, error) || grow(s, n_lines, error))
		return -1;
	carry(s->bin, s->lines, s->n_lines, s->throttle, what->absence.shift_ns, host->now_ns);
	previous.lines = s->n_lines;
	if (compile_policy(policy, &previous, host, bin, plan, error) ||
	    (plan->lines > s->n_lines && fits_alone(policy, host, error)))
		return -1;
	lost = keymask_lost_values(policy, bin);
	if (lost >= 0)
		return policy_fail(error, 0,
				   "set %s was read without its values, by which limits of the "
				   "saved state count: try again",
				   policy->set[lost].name);
	if (grow(s, plan->lines, error) ||
	    go_on_banning(s, bin, plan->bans == PLAN_KEPT, host->now_ns, what, error))
		return -1;
	begin_at_zero(s, bin, plan, host->now_ns);
	time_draining(bin, host->now_ns);
	count_limits(plan, what);
	leave_counters(s, policy, bin, what);
	leave_set_counts(s, policy, bin);
	return go_on_allowing(s, policy, host->now_ns, what, error);
}

/* --- limits that cannot be gone on with ------------------------------------------------------- */

static bool has_values(const struct policy *policy, uint32_t name_id)
{
	for (size_t i = 0; i < policy->n_sets; i++)
		if (policy->set[i].value && compile_name_id(policy->set[i].name) == name_id)
			return true;
	return !name_id; /* it counts by none */
}

/* Others of a rule may count in the same lines. */
static bool has_lines(const struct pacer_rule *rule, uint32_t base)
{
	for (uint32_t k = 0; k < rule->n_limiters; k++)
		if (compile_in_lines(&rule->limiter[k]) && rule->limiter[k].base == base)
			return true;
	return false;
}

/* Whoever gets its lines next finds them as nobody's. */
static void clear(struct state *s, const struct pacer_rule *rule, const struct pacer_limiter *t)
{
	if (compile_in_lines(t) && !has_lines(rule, t->base))
		memset(&s->lines[t->base], 0, compile_limiter_lines(t) * sizeof(*s->lines));
}

static size_t forget(struct state *s, struct pacer_rule *rule, const struct policy *policy)
{
	struct pacer_rule was = *rule;
	bool goes[PACER_LIMITERS_MAX];
	size_t n = 0;

	rule->n_limiters = 0;
	for (uint32_t k = 0; k < was.n_limiters; k++) {
		const struct pacer_limiter *t = &was.limiter[k];

		goes[k] = !policy || !has_values(policy, t->value_set[0]) ||
			  !has_values(policy, t->value_set[1]);
		if (!goes[k])
			rule->limiter[rule->n_limiters++] = *t;
		n += goes[k];
	}
	for (uint32_t k = 0; k < was.n_limiters; k++)
		if (goes[k])
			clear(s, rule, &was.limiter[k]);
	return n;
}

size_t restore_forget(struct state *s, const struct policy *policy)
{
	size_t forgotten = 0;

	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		forgotten += forget(s, &s->bin->rule[r], policy);
	return forgotten;
}

/* Can the policy go on from these limits? As they were when they were saved. */
static bool fits(const struct state *s, const struct pacer_policy *saved,
		 const struct policy *policy, const struct compile_host *host)
{
	static struct pacer_policy bin;
	static struct plan plan;
	const struct compile_host then = {host->resolution_ns, s->clocks.mono_ns, host->cpus};
	struct compile_previous previous = {s->policy, saved, s->n_lines, false, false, true};
	struct policy_error unused;
	uint64_t n_lines;

	if (begins_with(policy, host, &n_lines, &unused))
		return false;
	if (previous.lines < n_lines)
		previous.lines = n_lines;
	return !compile_policy(policy, &previous, &then, &bin, &plan, &unused) &&
	       keymask_lost_values(policy, &bin) < 0;
}

size_t restore_forget_unfit(struct state *s, const struct policy *policy,
			    const struct compile_host *host)
{
	static struct pacer_policy kept;
	size_t forgotten = 0;

	kept = *s->bin;
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		kept.rule[r].n_limiters = 0;
	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		kept.rule[r].n_limiters = s->bin->rule[r].n_limiters;
		if (!kept.rule[r].n_limiters || fits(s, &kept, policy, host))
			continue;
		kept.rule[r].n_limiters = 0;
		forgotten += forget(s, &s->bin->rule[r], NULL);
	}
	return forgotten;
}

/* --- the maps -------------------------------------------------------------------------------- */

static int no_map(const char *what, struct policy_error *error)
{
	return policy_fail(error, 0, "the map of %s cannot be made: %s%s", what, strerror(errno),
			   errno == EPERM ? ": run as root" : "");
}

/* One that holds `bytes` at `from`, in the place of the object's. */
static int make_array(struct bpf_map *map, uint64_t entries, const void *from, uint64_t bytes,
		      const char *what, struct policy_error *error)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, bpf_map__name(map), bpf_map__key_size(map),
				bpf_map__value_size(map), (uint32_t)entries, &options);
	void *at =
	    fd < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	int result = 0;

	if (at == MAP_FAILED || bpf_map__reuse_fd(map, fd))
		result = no_map(what, error);
	else
		memcpy(at, from, bytes);
	if (at != MAP_FAILED)
		munmap(at, bytes);
	if (fd >= 0)
		close(fd);
	return result;
}

/* Sums, `bytes` each: whose CPU they were nobody asks. */
static int put_sums(int fd, const void *sums, uint32_t n, size_t bytes, struct policy_error *error)
{
	int cpus = host_cpus(error), result = 0;
	void *each = cpus < 1 ? NULL : calloc(cpus, bytes);

	if (!each)
		result = cpus < 1 ? -1 : no_map("counters", error);
	for (uint32_t i = 0; i < n && !result; i++) {
		memcpy(each, (const char *)sums + i * bytes, bytes);
		if (bpf_map_update_elem(fd, &i, each, BPF_ANY))
			result = policy_fail(error, 0, "the counters cannot be carried over: %s",
					     strerror(errno));
	}
	free(each);
	return result;
}

static int put_counts(const struct state *s, int counts_fd, int set_counts_fd,
		      struct policy_error *error)
{
	if (put_sums(counts_fd, s->counter, PACER_COUNTERS_MAX, sizeof(*s->counter), error))
		return -1;
	return put_sums(set_counts_fd, s->set_count, PACER_SET_COUNTERS, sizeof(*s->set_count),
			error);
}

/* One for each CPU in the place of the object's map: its descriptor, or -1. */
static int make_sums(struct bpf_map *map)
{
	int fd =
	    bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, bpf_map__name(map), bpf_map__key_size(map),
			   bpf_map__value_size(map), bpf_map__max_entries(map), NULL);

	if (fd < 0 || !bpf_map__reuse_fd(map, fd))
		return fd;
	close(fd);
	return -1;
}

static int fill_counts(const struct state *s, const struct restore_maps *maps,
		       struct policy_error *error)
{
	int counts_fd = make_sums(maps->counts), set_counts_fd = make_sums(maps->set_counts);
	int result = counts_fd < 0 || set_counts_fd < 0
			 ? no_map("counters", error)
			 : put_counts(s, counts_fd, set_counts_fd, error);

	if (counts_fd >= 0)
		close(counts_fd);
	if (set_counts_fd >= 0)
		close(set_counts_fd);
	return result;
}

/* The secret that was never drawn nobody has used. */
static void put_secret(const struct state *s, struct pacer_control *control)
{
	if (s->secret_ready == PACER_SECRET_NONE)
		return;
	memcpy(control->secret, s->secret, sizeof(control->secret));
	control->secret_ready = s->secret_ready;
}

static int fill_trie(struct bpf_map *map, const struct state *s, int family,
		     struct policy_error *error)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_NO_PREALLOC);
	int fd = bpf_map_create(BPF_MAP_TYPE_LPM_TRIE, bpf_map__name(map), bpf_map__key_size(map),
				bpf_map__value_size(map), PACER_ALLOW_ENTRIES, &options);
	int result = fd < 0 ? no_map("the allow-list", error) : 0;

	for (size_t i = 0; i < s->allow.n && !result; i++) {
		const struct allow_entry *e = &s->allow.entry[i];
		struct pacer_allow6 key = {PACER_ALLOW_COPY_BITS + e->prefix.len, 0, {0}};
		struct pacer_allow_value value = {allowlist_until_ns(&s->allow, &e->prefix),
						  e->hand_until_ns, e->of_policy, e->by_hand};

		memcpy(key.addr, e->prefix.addr, family == 4 ? 4 : 16);
		if (e->prefix.family == family && bpf_map_update_elem(fd, &key, &value, BPF_ANY))
			result = no_map("the allow-list", error);
	}
	if (!result && bpf_map__reuse_fd(map, fd))
		result = no_map("the allow-list", error);
	if (fd >= 0)
		close(fd);
	return result;
}

int restore_fill(const struct state *s, const struct restore_maps *maps,
		 struct pacer_control *control, struct policy_error *error)
{
	control->allowed[0].v4 = (uint32_t)allowlist_count(&s->allow, 4);
	control->allowed[0].v6 = (uint32_t)allowlist_count(&s->allow, 6);
	put_secret(s, control);
	if (make_array(maps->lines, s->n_lines, s->lines, s->n_lines * sizeof(*s->lines), "state",
		       error) ||
	    make_array(maps->throttles, PACER_THROTTLES, s->throttle,
		       PACER_THROTTLES * sizeof(*s->throttle), "throttles", error) ||
	    fill_counts(s, maps, error))
		return -1;
	return fill_trie(maps->allow4, s, 4, error) || fill_trie(maps->allow6, s, 6, error) ? -1
											    : 0;
}

int restore_again(const struct state *s, const struct pacer_policy *bin, struct attached *a,
		  struct policy_error *error)
{
	/* Since a limit that drained has ended, tables may lie elsewhere, beyond the maps' end. */
	if (s->n_lines > a->n_lines)
		return policy_fail(error, 0,
				   "%s: a limit of the policy before has just ended: try again",
				   a->ifname);
	if (put_counts(s, a->counts_fd, a->set_hits_fd, error))
		return -1;
	memcpy(a->lines, s->lines, s->n_lines * sizeof(*s->lines));
	memcpy(a->throttle, s->throttle, PACER_THROTTLES * sizeof(*s->throttle));
	put_secret(s, a->control);
	a->copy[0].policy = *bin;
	pacer_short_arm(&a->copy[0].policy, a->control, 0);
	return 0;
}
