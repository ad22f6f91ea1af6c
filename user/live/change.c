/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/change.h"
#include "live/ban_notes.h"
#include "live/rotate.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "live/grace.h"
#include "plan/throttles.h"

#define LOCK_FILE "/run/xdp-pacer.lock"

static int lock(struct policy_error *error)
{
	int fd = open(LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || flock(fd, LOCK_EX)) {
		policy_explain(error, 0, "%s: %s", LOCK_FILE, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

int change_lock(const struct attached *a, struct policy_error *error)
{
	int fd = lock(error);

	if (fd >= 0 && loader_gone(a)) {
		close(fd);
		return policy_fail(error, 0, "%s: its pacer was taken off or replaced meanwhile",
				   a->ifname);
	}
	return fd;
}

static uint64_t word_of(const struct attached *a)
{
	return __atomic_load_n(&a->control->in_force, __ATOMIC_ACQUIRE);
}

static void set_word(struct attached *a, uint64_t until_ns, uint32_t copy)
{
	__atomic_store_n(&a->control->in_force, until_ns << 1 | copy, __ATOMIC_RELEASE);
}

uint32_t change_in_force(const struct attached *a)
{
	return pacer_in_force(word_of(a), loader_now());
}

struct policy *change_policy_of(const struct attached *a, uint32_t copy)
{
	const char *text = a->copy[copy].text;
	struct policy_error error;

	return policy_parse(text, strnlen(text, PACER_DOC_MAX), &error);
}

struct policy *change_policy(const struct attached *a)
{
	return change_policy_of(a, change_in_force(a));
}

uint64_t change_pending(const struct attached *a)
{
	uint64_t until_ns = word_of(a) >> 1, now_ns = loader_now();

	return until_ns > now_ns ? until_ns - now_ns : 0;
}

static void tidy(struct attached *a);

/* --- the allow-list ------------------------------------------------------------------------- */

static int no_memory(const struct attached *a, struct policy_error *error)
{
	return policy_fail(error, 0, "%s: no memory", a->ifname);
}

static int trie_of(const struct attached *a, int family)
{
	return family == 4 ? a->allow4_fd : a->allow6_fd;
}

/* Of either family: the address comes last. */
static struct pacer_allow6 key_of(const struct prefix *p, uint32_t copy)
{
	struct pacer_allow6 key = {PACER_ALLOW_COPY_BITS + p->len, copy, {0}};

	memcpy(key.addr, p->addr, p->family == 4 ? 4 : 16);
	return key;
}

static struct allow_entry entry_of(int family, const struct pacer_allow6 *key,
				   const struct pacer_allow_value *value)
{
	struct allow_entry entry = {
	    {family, key->prefixlen - PACER_ALLOW_COPY_BITS, {0}},
	    value->of_policy,
	    value->by_hand,
	    value->hand_until_ns,
	};

	memcpy(entry.prefix.addr, key->addr, family == 4 ? 4 : 16);
	return entry;
}

static int read_family(const struct attached *a, int family, uint32_t copy, struct allowlist *list)
{
	struct pacer_allow6 key, next = {0}, *at = NULL;
	struct pacer_allow_value value;

	while (!bpf_map_get_next_key(trie_of(a, family), at, &next)) {
		struct allow_entry entry;

		key = next;
		at = &key;
		if (key.copy != copy)
			continue;
		if (bpf_map_lookup_elem(trie_of(a, family), &key, &value))
			return -1;
		entry = entry_of(family, &key, &value);
		if (!allowlist_append(list, &entry))
			return -1;
	}
	return errno == ENOENT ? 0 : -1;
}

/* The copy's list, sorted, lapsed entries included; to be freed. The lock is held: a trie that is
 * written to meanwhile is not read to its end.
 */
static int read_list(const struct attached *a, uint32_t copy, struct allowlist *list,
		     struct policy_error *error)
{
	if (allowlist_init(list))
		return no_memory(a, error);
	if (read_family(a, 4, copy, list) || read_family(a, 6, copy, list)) {
		allowlist_free(list);
		return policy_fail(error, 0, "%s: its allow-list cannot be read: %s", a->ifname,
				   strerror(errno));
	}
	allowlist_sort(list);
	return 0;
}

static int put_entry(struct attached *a, uint32_t copy, const struct allow_entry *entry)
{
	struct pacer_allow6 key = key_of(&entry->prefix, copy);
	struct pacer_allow_value value = {allow_until_ns(entry), entry->hand_until_ns,
					  entry->of_policy, entry->by_hand};

	return bpf_map_update_elem(trie_of(a, entry->prefix.family), &key, &value, BPF_ANY);
}

static int remove_entry(struct attached *a, uint32_t copy, const struct prefix *prefix)
{
	struct pacer_allow6 key = key_of(prefix, copy);

	return bpf_map_delete_elem(trie_of(a, prefix->family), &key);
}

/* The datapath looks at a list that has entries by the count. */
static void set_counts(struct attached *a, uint32_t copy, size_t n4, size_t n6)
{
	union pacer_allowed counts = {{n4, n6}};

	__atomic_store_n(&a->control->allowed[copy].any, counts.any, __ATOMIC_RELEASE);
}

static void count_list(struct attached *a, uint32_t copy, const struct allowlist *list)
{
	set_counts(a, copy, allowlist_count(list, 4), allowlist_count(list, 6));
}

uint32_t change_allowed(const struct attached *a)
{
	const union pacer_allowed *counts = &a->control->allowed[change_in_force(a)];

	return counts->v4 + counts->v6;
}

static int allow_failed(const struct attached *a, struct policy_error *error)
{
	return policy_fail(error, 0, "%s: its allow-list cannot be written: %s", a->ifname,
			   strerror(errno));
}

static int allow_full(const struct attached *a, int family, struct policy_error *error)
{
	return policy_fail(error, 0,
			   "%s: the allow-list is full: it holds %u IPv%d prefixes, those of the "
			   "policy and those by hand: delete some or merge them",
			   a->ifname, PACER_ALLOW_MAX, family);
}

/* The list that `policy` is to have in the place of the one in force, to be freed. */
static int next_list(const struct attached *a, const struct policy *policy, struct allowlist *next,
		     struct policy_error *error)
{
	struct allowlist now;
	int family;

	if (allowlist_init(next))
		return no_memory(a, error);
	if (read_list(a, change_in_force(a), &now, error))
		return -1;
	family = allowlist_next(policy, &now, loader_now(), next);
	allowlist_free(&now);
	return family ? allow_full(a, family, error) : 0;
}

static bool same_entry(const struct allow_entry *a, const struct allow_entry *b)
{
	return a->of_policy == b->of_policy && a->by_hand == b->by_hand &&
	       a->hand_until_ns == b->hand_until_ns;
}

/* Make the list of the copy that is not in force this one. */
static int write_list(struct attached *a, uint32_t copy, const struct allowlist *list,
		      struct policy_error *error)
{
	struct allowlist was;
	int err = 0;

	if (read_list(a, copy, &was, error))
		return -1;
	for (size_t i = 0; i < was.n && !err; i++)
		if (!allowlist_find(list, &was.entry[i].prefix))
			err = remove_entry(a, copy, &was.entry[i].prefix);
	for (size_t i = 0; i < list->n && !err; i++) {
		const struct allow_entry *old = allowlist_find(&was, &list->entry[i].prefix);

		if (!old || !same_entry(old, &list->entry[i]))
			err = put_entry(a, copy, &list->entry[i]);
	}
	if (err)
		allow_failed(a, error);
	else
		count_list(a, copy, list);
	allowlist_free(&was);
	return err ? -1 : 0;
}

int change_allow_each(const struct attached *a,
		      void (*each)(const struct allow_entry *, uint64_t now_ns, void *), void *arg,
		      struct policy_error *error)
{
	struct allowlist list;
	int fd = lock(error), result;
	uint64_t now_ns;

	if (fd < 0)
		return -1;
	result = read_list(a, change_in_force(a), &list, error);
	close(fd);
	if (result)
		return -1;
	now_ns = loader_now();
	for (size_t i = 0; i < list.n; i++)
		if (!allow_has_lapsed(&list.entry[i], now_ns))
			each(&list.entry[i], now_ns, arg);
	allowlist_free(&list);
	return 0;
}

int change_allow_find(const struct attached *a, const struct prefix *address,
		      struct allow_entry *found, struct policy_error *error)
{
	const struct allow_entry *longest = NULL;
	int fd = lock(error), result;
	struct allowlist list;

	if (fd < 0)
		return -1;
	result = read_list(a, change_in_force(a), &list, error);
	close(fd);
	if (result)
		return -1;
	for (size_t i = 0; i < list.n; i++)
		if (allow_holds(&list.entry[i].prefix, address) &&
		    (!longest || list.entry[i].prefix.len > longest->prefix.len))
			longest = &list.entry[i];
	if (longest)
		*found = *longest;
	result = longest && !allow_has_lapsed(longest, loader_now());
	allowlist_free(&list);
	return result;
}

/*
 * The lists that a change by hand is made to: the one in force, and, while a policy is on trial,
 * first the one that it would give way to. What comes back is never the narrower one.
 */
struct lists {
	uint32_t n, copy[2];
	struct allowlist list[2];
};

static void free_lists(struct lists *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		allowlist_free(&l->list[i]);
}

static int read_lists(const struct attached *a, struct lists *l, struct policy_error *error)
{
	uint32_t trial = word_of(a) & 1, n = 1;

	*l = (struct lists){.copy = {change_in_force(a)}};
	if (change_pending(a)) {
		l->copy[0] = trial ^ 1;
		l->copy[1] = trial;
		n = 2;
	}
	for (; l->n < n; l->n++)
		if (read_list(a, l->copy[l->n], &l->list[l->n], error)) {
			free_lists(l);
			return -1;
		}
	return 0;
}

/* What has lapsed makes room. */
static int drop_lapsed(struct attached *a, uint32_t copy, struct allowlist *list,
		       struct policy_error *error)
{
	uint64_t now_ns = loader_now();
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++) {
		if (!allow_has_lapsed(&list->entry[i], now_ns))
			list->entry[n++] = list->entry[i];
		else if (remove_entry(a, copy, &list->entry[i].prefix))
			return allow_failed(a, error);
	}
	list->n = n;
	count_list(a, copy, list);
	return 0;
}

static int make_room(struct attached *a, uint32_t copy, struct allowlist *list,
		     const struct prefix *prefix, struct policy_error *error)
{
	if (drop_lapsed(a, copy, list, error))
		return -1;
	if (!allowlist_find(list, prefix) &&
	    allowlist_count(list, prefix->family) >= PACER_ALLOW_MAX)
		return allow_full(a, prefix->family, error);
	return 0;
}

/* As it was read. */
static void restore(struct attached *a, uint32_t copy, const struct allowlist *list,
		    const struct prefix *prefix)
{
	const struct allow_entry *old = allowlist_find(list, prefix);

	if (old)
		(void)put_entry(a, copy, old);
	else
		(void)remove_entry(a, copy, prefix);
	count_list(a, copy, list);
}

/* The count goes up first, so that the entry is never passed over. */
static int add_to(struct attached *a, uint32_t copy, const struct allowlist *list,
		  const struct allow_entry *entry)
{
	const struct allow_entry *old = allowlist_find(list, &entry->prefix);
	struct allow_entry new = allow_by_hand(entry, old);
	bool four = entry->prefix.family == 4;

	if (!old)
		set_counts(a, copy, allowlist_count(list, 4) + four,
			   allowlist_count(list, 6) + !four);
	return put_entry(a, copy, &new);
}

static int add_to_lists(struct attached *a, struct lists *l, const struct allow_entry *entry,
			struct policy_error *error)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (make_room(a, l->copy[i], &l->list[i], &entry->prefix, error))
			return -1;
	for (uint32_t i = 0; i < l->n; i++) {
		if (!add_to(a, l->copy[i], &l->list[i], entry))
			continue;
		allow_failed(a, error);
		for (uint32_t k = 0; k <= i; k++)
			restore(a, l->copy[k], &l->list[k], &entry->prefix);
		return -1;
	}
	return 0;
}

int change_allow_add(struct attached *a, const struct allow_entry *entry,
		     struct policy_error *error)
{
	int fd = change_lock(a, error), result;
	struct lists lists;

	if (fd < 0)
		return -1;
	result = read_lists(a, &lists, error);
	if (!result) {
		result = add_to_lists(a, &lists, entry, error);
		free_lists(&lists);
	}
	if (!result)
		tidy(a);
	close(fd);
	return result;
}

static int remove_from(struct attached *a, uint32_t copy, const struct allowlist *list,
		       const struct prefix *prefix)
{
	size_t n4 = allowlist_count(list, 4), n6 = allowlist_count(list, 6);

	if (!allowlist_find(list, prefix))
		return 0;
	if (remove_entry(a, copy, prefix))
		return -1;
	set_counts(a, copy, n4 - (prefix->family == 4), n6 - (prefix->family == 6));
	return 0;
}

static int remove_from_lists(struct attached *a, const struct lists *l, const struct prefix *prefix,
			     struct policy_error *error)
{
	bool found = false;
	char text[64];

	for (uint32_t i = 0; i < l->n; i++)
		found |= !!allowlist_find(&l->list[i], prefix);
	if (!found)
		return policy_fail(
		    error, 0, "%s: %s: is not on the allow-list: see `xdp-pacer allow %s list`",
		    a->ifname, units_prefix_text(prefix, text, sizeof(text)), a->ifname);
	for (uint32_t i = l->n; i-- > 0;) {
		if (!remove_from(a, l->copy[i], &l->list[i], prefix))
			continue;
		allow_failed(a, error);
		for (uint32_t k = i; k < l->n; k++)
			restore(a, l->copy[k], &l->list[k], prefix);
		return -1;
	}
	return 0;
}

int change_allow_del(struct attached *a, const struct prefix *prefix, struct policy_error *error)
{
	int fd = change_lock(a, error), result;
	struct lists lists;

	if (fd < 0)
		return -1;
	result = read_lists(a, &lists, error);
	if (!result) {
		result = remove_from_lists(a, &lists, prefix, error);
		free_lists(&lists);
	}
	if (!result)
		tidy(a);
	close(fd);
	return result;
}

/* --- the policy ----------------------------------------------------------------------------- */

static bool counter_in(const struct pacer_policy *p, uint32_t id)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		if (p->rule[r].counter == id)
			return true;
	return false;
}

static bool same_bans(const struct pacer_bans *a, const struct pacer_bans *b)
{
	return a->base == b->base && a->sets == b->sets && a->filter == b->filter &&
	       a->filter_mask == b->filter_mask;
}

static void clear_bans(struct attached *a, const struct pacer_bans *bans)
{
	memset(&a->lines[bans->base], 0, (size_t)bans->sets * PACER_BAN_WAYS * sizeof(*a->lines));
	memset(&a->lines[bans->filter], 0, (bans->filter_mask + 1ull) * sizeof(*a->lines));
}

static int clear_counters(struct attached *a, const struct pacer_policy *old,
			  const struct pacer_policy *new, struct policy_error *error)
{
	int cpus = loader_cpus(error), result = 0;
	struct pacer_counters *zero = cpus < 1 ? NULL : calloc(cpus, sizeof(*zero));

	if (!zero)
		return cpus < 1 ? -1 : no_memory(a, error);
	for (size_t r = 0; r < PACER_RULES_MAX && !result; r++) {
		uint32_t id = new->rule[r].counter;

		if (id && !counter_in(old, id) && bpf_map_update_elem(a->counts_fd, &id, zero, 0))
			result =
			    policy_fail(error, 0, "%s: its counters cannot be written", a->ifname);
	}
	free(zero);
	return result;
}

/* A throttle that nobody asks: its state, and what CPUs had leased of it. */
static int clear_throttle(struct attached *a, uint32_t index, struct policy_error *error)
{
	int cpus = loader_cpus(error), result = 0;
	struct pacer_throttle_lease *zero = cpus < 1 ? NULL : calloc(cpus, sizeof(*zero));

	if (!zero)
		return cpus < 1 ? -1 : no_memory(a, error);
	memset(&a->throttle[index], 0, sizeof(a->throttle[index]));
	if (bpf_map_update_elem(a->leases_fd, &index, zero, 0))
		result = policy_fail(error, 0, "%s: its leases cannot be written", a->ifname);
	free(zero);
	return result;
}

/* What the new policy uses and the present one does not begins at zero. */
static int clear_new(struct attached *a, const struct pacer_policy *old,
		     const struct pacer_policy *new, const struct plan *plan,
		     struct policy_error *error)
{
	int result = clear_counters(a, old, new, error);

	for (size_t i = 0; i < plan->n_limits && !result; i++) {
		const struct plan_limit *l = &plan->limit[i];
		const struct pacer_limiter *t = &new->rule[l->rule].limiter[l->limiter];

		if (l->state != PLAN_NEW)
			continue;
		if (!compile_in_lines(t))
			result = clear_throttle(a, t->base, error);
		else
			memset(&a->lines[t->base], 0, compile_limiter_lines(t) * sizeof(*a->lines));
	}
	for (size_t i = 0; i < plan->n_pools && !result; i++)
		for (size_t k = 0; k < plan->pool[i].n && !result; k++)
			if (plan->pool[i].state[k] == PLAN_NEW)
				result = clear_throttle(a, new->pool[i].state[k], error);
	if (!result && new->bans.sets && !same_bans(&old->bans, &new->bans))
		clear_bans(a, &new->bans);
	return result;
}

/* Is it draining, and nothing that it counted matters any more, by whatever clock? */
static bool has_expired(const struct attached *a, const struct pacer_limiter *t)
{
	return t->until_ns && t->until_ns != COMPILE_UNTIL_SET &&
	       t->until_ns + a->control->resolution_ns < loader_now();
}

static bool any_expired(const struct attached *a, const struct pacer_policy *p)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < p->rule[r].n_limiters; k++)
			if (has_expired(a, &p->rule[r].limiter[k]))
				return true;
	return false;
}

/* The rule's limit with the state of that one; NULL: it has none. The state of one that has expired
 * may be another's by now.
 */
static struct pacer_limiter *limiter_in(const struct attached *a, struct pacer_rule *rule,
					const struct pacer_limiter *t)
{
	bool lines = compile_in_lines(t);

	for (size_t k = 0; k < rule->n_limiters; k++)
		if (rule->limiter[k].base == t->base && !has_expired(a, &rule->limiter[k]) &&
		    compile_in_lines(&rule->limiter[k]) == lines &&
		    (rule->limiter[k].secret == t->secret || !compile_hashed(t)))
			return &rule->limiter[k];
	return NULL;
}

static struct pacer_rule *rule_of_counter(struct pacer_policy *p, uint32_t id)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		if (id && p->rule[r].counter == id)
			return &p->rule[r];
	return NULL;
}

/*
 * Should the new policy give way at until_ns, then its limits are draining beside those of the old
 * one, which have not counted what was admitted meanwhile. They are put behind the limits that
 * packets are being judged by; to make them count is the caller's last step.
 */
static int retire_in_old(const struct attached *a, struct pacer_policy *old,
			 const struct pacer_policy *new, uint64_t until_ns,
			 uint8_t n_limiters[PACER_RULES_MAX])
{
	memset(n_limiters, 0, PACER_RULES_MAX);
	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		struct pacer_rule *rule = rule_of_counter(old, new->rule[r].counter);
		uint8_t *n = rule ? &n_limiters[rule - old->rule] : NULL;

		if (rule)
			*n = rule->n_limiters;
		for (size_t k = 0; rule && k < new->rule[r].n_limiters; k++) {
			const struct pacer_limiter *t = &new->rule[r].limiter[k];

			if (t->until_ns || limiter_in(a, rule, t))
				continue;
			if (*n == PACER_LIMITERS_MAX)
				return -1;
			rule->limiter[*n] = *t;
			rule->limiter[(*n)++].until_ns = until_ns + compile_limiter_memory_ns(t);
		}
	}
	return 0;
}

/* A limit of the new policy that was draining in the old one already has to last as long. */
static void extend_in_old(const struct attached *a, struct pacer_policy *old,
			  const struct pacer_policy *new, uint64_t until_ns)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		struct pacer_rule *rule = rule_of_counter(old, new->rule[r].counter);

		for (size_t k = 0; rule && k < new->rule[r].n_limiters; k++) {
			const struct pacer_limiter *t = &new->rule[r].limiter[k];
			struct pacer_limiter *was = t->until_ns ? NULL : limiter_in(a, rule, t);
			uint64_t end_ns = until_ns + compile_limiter_memory_ns(t);

			if (was && was->until_ns && was->until_ns < end_ns)
				__atomic_store_n(&was->until_ns, end_ns, __ATOMIC_RELEASE);
		}
	}
}

static bool retires(const struct pacer_policy *p)
{
	bool found = false;

	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < p->rule[r].n_limiters; k++)
			found |= p->rule[r].limiter[k].until_ns == COMPILE_UNTIL_SET;
	for (size_t i = 0; i < PACER_THROTTLES; i++)
		found |= p->draining[i].until_ns == COMPILE_UNTIL_SET;
	return found;
}

/*
 * The new policy is in force: what drains is needed for as long as its state can matter. Where
 * it is not known since when, it stays until the next change, which denies more than it has to.
 */
static int time_draining(const struct attached *a, struct pacer_policy *p,
			 struct policy_error *error)
{
	struct policy_error why;
	uint64_t now_ns;

	if (!retires(p))
		return 0;
	if (grace(a->ifname, &why)) {
		policy_explain(error, 0,
			       "%.300s: the policy is in force, but the limits that it retired "
			       "hold until the next change",
			       why.text);
		return CHANGE_LASTS;
	}
	now_ns = loader_now();
	compile_time_targets(p, now_ns);
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		compile_begin_rates(&p->rule[r], now_ns);
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < p->rule[r].n_limiters; k++) {
			struct pacer_limiter *t = &p->rule[r].limiter[k];

			if (t->until_ns == COMPILE_UNTIL_SET)
				__atomic_store_n(&t->until_ns,
						 now_ns + compile_limiter_memory_ns(t),
						 __ATOMIC_RELEASE);
		}
	return 0;
}

/*
 * A limit that comes back after the trial has not counted what its stand-in of the trial let
 * through. It begins when that is over, if it has done with what it waited for before; else -1.
 * `try`: nothing is written.
 */
static int begin_in_old(const struct attached *a, struct pacer_policy *old,
			const struct pacer_policy *new, uint64_t until_ns, bool try)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		struct pacer_rule *rule = rule_of_counter(old, new->rule[r].counter);

		for (size_t k = 0; rule && k < new->rule[r].n_limiters; k++) {
			struct pacer_limiter t = new->rule[r].limiter[k], *was;
			const struct limit_kind *kind = kind_of_limiter(&t);

			was = t.until_ns ? NULL : limiter_in(a, rule, &t);
			if (t.until_ns || (was && !was->until_ns) || !kind || !kind->beside)
				continue;
			t.until_ns = until_ns + compile_limiter_memory_ns(&t);
			for (size_t i = 0; i < rule->n_limiters; i++) {
				struct pacer_limiter *at = &rule->limiter[i];

				if (at->until_ns || at->kind != t.kind || !keymask_same(at, &t))
					continue;
				if (try && !kind->has_waited(at, until_ns))
					return -1;
				if (!try)
					kind->beside(at, &t);
			}
		}
	}
	return 0;
}

/*
 * Put what lies complete in the other copy in force. A trial's limits count in the policy before
 * already when it comes into force: else it could give way, its tool being dead, to a policy that
 * does not know what it has admitted. A tool that is killed in between leaves the policy before
 * stricter than it says, by those limits, until they expire; never the other way round.
 */
static int switch_to(struct attached *a, uint32_t next, uint64_t until_ns,
		     struct policy_error *error)
{
	struct pacer_policy *old = &a->copy[next ^ 1].policy, *new = &a->copy[next].policy;
	uint8_t n_limiters[PACER_RULES_MAX];

	if (until_ns && begin_in_old(a, old, new, until_ns, true))
		return policy_fail(
		    error, 0,
		    "%s: a rate that has just been changed still builds its bursts when the "
		    "trial ends: try it for longer, or later",
		    a->ifname);
	if (until_ns && retire_in_old(a, old, new, until_ns, n_limiters))
		return policy_fail(
		    error, 0,
		    "%s: a rule would hold more than 8 limits after the new ones gave way, "
		    "those just retired included: apply without --confirm-within, or later",
		    a->ifname);
	if (until_ns) {
		(void)begin_in_old(a, old, new, until_ns, false);
		extend_in_old(a, old, new, until_ns);
		compile_keep_targets(old, new, until_ns);
	}
	for (size_t r = 0; until_ns && r < PACER_RULES_MAX; r++)
		if (n_limiters[r]) {
			old->rule[r].plain &= n_limiters[r] == 1;
			__atomic_store_n(&old->rule[r].n_limiters, n_limiters[r], __ATOMIC_RELEASE);
		}
	set_word(a, until_ns, next);
	return 0;
}

static int put_targets(struct attached *a, uint32_t copy, const struct plan *plan,
		       struct policy_error *error)
{
	struct policy_error why = {0};

	if (!targets_put(&a->targets, copy, plan, &why))
		return 0;
	return policy_fail(error, 0, "%s: %.300s", a->ifname, why.text);
}

static int make_samples(struct attached *a, const struct pacer_sampling *sampling, int cpus,
			struct samples_made *made, struct policy_error *error)
{
	struct policy_error why = {0};

	if (!samples_make(&a->samples, sampling, cpus, made, &why))
		return 0;
	return policy_fail(error, 0, "%s: %.300s", a->ifname, why.text);
}

/* --- the secret ----------------------------------------------------------------------------- */

bool change_weak_secret(const struct attached *a)
{
	return !a->copy[change_in_force(a)].policy.secret &&
	       a->control->secret_ready != PACER_SECRET_OF_TOOLS;
}

/* A new one, in the place that no packet asks for. */
static int draw_secret(struct attached *a, uint32_t which, struct policy_error *error)
{
	if (getrandom(a->control->secret[which], sizeof(a->control->secret[which]), 0) !=
	    sizeof(a->control->secret[which]))
		return policy_fail(error, 0, "%s: no random numbers for a secret: %s", a->ifname,
				   strerror(errno));
	if (!which)
		__atomic_store_n(&a->control->secret_ready, PACER_SECRET_OF_TOOLS,
				 __ATOMIC_RELEASE);
	return 0;
}

/* Bans go to where the policy's secret has them. What was cut off is taken up by the next change.
 */
static int move_bans(struct attached *a, struct pacer_policy *p, struct policy_error *error)
{
	struct pacer_table table = {a->lines, a->n_lines};

	if (!p->bans.moving)
		return 0;
	if (grace(a->ifname, error))
		return -1;
	if (!p->bans.sets ||
	    !rotate_bans(&table, &p->bans, (const __u64(*)[PACER_SECRETS])a->control->secret,
			 p->secret, loader_now()))
		__atomic_store_n(&p->bans.moving, 0, __ATOMIC_RELEASE);
	return 0;
}

/* With another secret where that is asked for, or where the present one is weak and it can be. */
static int compile(struct attached *a, const struct policy *new, struct compile_previous *previous,
		   bool rotate, bool trial, struct pacer_policy *bin, struct plan *plan,
		   struct policy_error *error)
{
	int cpus = loader_cpus(error);
	struct compile_host host = {a->control->resolution_ns, loader_now(), cpus};
	struct policy_error why;

	if (cpus < 1)
		return -1;
	if (!host.resolution_ns)
		host.resolution_ns = loader_resolution();
	previous->rotate = rotate || (!trial && change_weak_secret(a));
	if (!compile_policy(new, previous, &host, bin, plan, rotate ? error : &why))
		return 0;
	previous->rotate = false;
	return rotate ? -1 : compile_policy(new, previous, &host, bin, plan, error);
}

enum replace_how { REPLACE, REPLACE_ROTATED, REPLACE_BY_ITSELF };

static int replace(struct attached *a, const char *text, uint64_t confirm_ns, enum replace_how how,
		   struct plan *plan, struct policy_error *error)
{
	uint32_t now = change_in_force(a), next = now ^ 1;
	struct policy *old, *new = NULL;
	struct compile_previous previous;
	struct pacer_policy *bin = NULL;
	struct allowlist list = {0};
	struct samples_made made;
	int cpus = loader_cpus(error), result = -1;
	uint64_t until_ns = 0;

	if (cpus < 1)
		return -1;
	if (move_bans(a, &a->copy[now].policy, error))
		return -1;
	bin = malloc(sizeof(*bin));
	old = policy_parse(a->copy[now].text, strnlen(a->copy[now].text, PACER_DOC_MAX), error);
	if (!bin)
		no_memory(a, error);
	if (!bin || !old)
		goto out;
	previous = (struct compile_previous){old, &a->copy[now].policy, a->n_lines, false};
	new = policy_parse(text, strlen(text), error);
	if (!new ||
	    compile(a, new, &previous, how == REPLACE_ROTATED, confirm_ns, bin, plan, error))
		goto out;
	if (plan->bans == PLAN_KEPT)
		ban_notes_write(a->lines, bin, loader_now());
	if (how == REPLACE_BY_ITSELF)
		bin->serial = a->copy[now].policy.serial;
	/* By itself: what was taken off the list by hand stays off. */
	if (how == REPLACE_BY_ITSELF ? read_list(a, now, &list, error)
				     : next_list(a, new, &list, error))
		goto out;
	if (grace(a->ifname, error))
		goto out;
	if (plan->rotated && draw_secret(a, bin->secret, error))
		goto out;
	if (clear_new(a, &a->copy[now].policy, bin, plan, error))
		goto out;
	if (put_targets(a, next, plan, error))
		goto out;
	if (write_list(a, next, &list, error))
		goto out;
	if (make_samples(a, &bin->sampling, cpus, &made, error))
		goto out;
	a->copy[next].policy = *bin;
	memset(a->copy[next].text, 0, PACER_DOC_MAX);
	memcpy(a->copy[next].text, text, strlen(text));
	if (confirm_ns)
		until_ns = loader_now() + confirm_ns;
	if (switch_to(a, next, until_ns, error)) {
		samples_undo(&a->samples, &made);
		goto out;
	}
	result = time_draining(a, &a->copy[next].policy, error);
	if (move_bans(a, &a->copy[next].policy, error) && !result)
		result = CHANGE_LASTS;
out:
	allowlist_free(&list);
	policy_free(old);
	policy_free(new);
	free(bin);
	return result;
}

/*
 * The same policy again, without the limits that have expired: they cost every packet of their rule
 * a look and a place among the 8. Not in place, as packets are being judged by them. Another secret
 * is another matter.
 */
static int drop_expired(struct attached *a, struct policy_error *error)
{
	static struct plan plan;
	const struct pacer_copy *copy = &a->copy[change_in_force(a)];
	int result = -1;
	char *text;

	if (change_weak_secret(a) || !any_expired(a, &copy->policy))
		return 0;
	text = strndup(copy->text, PACER_DOC_MAX);
	if (text)
		result = replace(a, text, 0, REPLACE_BY_ITSELF, &plan, error);
	else
		no_memory(a, error);
	free(text);
	return result;
}

/* After a change by hand. What does not work out waits for the next. */
static void tidy(struct attached *a)
{
	struct policy_error why;

	if (!change_pending(a))
		(void)drop_expired(a, &why);
}

/* The lock, with nothing pending; -1 if not. */
static int lock_settled(struct attached *a, struct policy_error *error)
{
	int fd = change_lock(a, error);

	if (fd >= 0 && change_pending(a)) {
		close(fd);
		return policy_fail(
		    error, 0,
		    "%s: a policy waits to be confirmed: `xdp-pacer confirm` it, or let it "
		    "roll back, first",
		    a->ifname);
	}
	if (fd >= 0)
		set_word(a, 0, change_in_force(a));
	return fd;
}

int change_apply(struct attached *a, const char *text, uint64_t confirm_ns, struct plan *plan,
		 struct policy_error *error)
{
	int fd = lock_settled(a, error), result;

	if (fd < 0)
		return -1;
	/* A trial's limits have to find room in the policy before. */
	result = confirm_ns ? drop_expired(a, error) : 0;
	if (result >= 0)
		result = replace(a, text, confirm_ns, REPLACE, plan, error);
	close(fd);
	return result;
}

int change_rotate(struct attached *a, struct plan *plan, struct policy_error *error)
{
	int fd = lock_settled(a, error), result = -1;
	char *text;

	if (fd < 0)
		return -1;
	/* Of a change that was cut off. */
	if (time_draining(a, &a->copy[change_in_force(a)].policy, error)) {
		close(fd);
		return -1;
	}
	text = strndup(a->copy[change_in_force(a)].text, PACER_DOC_MAX);
	if (text)
		result = replace(a, text, 0, REPLACE_ROTATED, plan, error);
	else
		no_memory(a, error);
	free(text);
	close(fd);
	return result;
}

/* The text with one more "PATH=VALUE" written into it; frees the text given. */
static char *assign(char *text, const char *assignment, struct policy_error *error)
{
	const char *equals = strchr(assignment, '=');
	char path[128], *next = NULL;

	if (!equals || (size_t)(equals - assignment) >= sizeof(path)) {
		policy_explain(error, 0, "%s: is not RULE.FIELD=VALUE, such as dns.packets=300",
			       assignment);
	} else {
		memcpy(path, assignment, equals - assignment);
		path[equals - assignment] = 0;
		next = policy_set(text, strlen(text), path, equals + 1, error);
	}
	free(text);
	return next;
}

int change_set(struct attached *a, char *const *assignments, int n, struct plan *plan,
	       struct policy_error *error)
{
	int fd = lock_settled(a, error), result = -1;
	struct policy *valid = NULL;
	char *text;

	if (fd < 0)
		return -1;
	text = strndup(a->copy[change_in_force(a)].text, PACER_DOC_MAX);
	for (int i = 0; i < n && text; i++)
		text = assign(text, assignments[i], error);
	if (text)
		valid = policy_parse(text, strlen(text), error);
	if (!valid)
		result = CHANGE_WRONG;
	else
		result = replace(a, text, 0, REPLACE, plan, error);
	policy_free(valid);
	free(text);
	close(fd);
	return result;
}

/* 0 where its time passed before it was kept: it has given way then, and stays so. */
static int keep_pending(struct attached *a, uint64_t until_ns, uint32_t copy)
{
	if (!change_pending(a))
		return 0;
	set_word(a, 0, copy);
	if (loader_now() < until_ns)
		return 1;
	set_word(a, until_ns, copy);
	return 0;
}

int change_confirm(struct attached *a, struct policy_error *error)
{
	int fd = change_lock(a, error), result = -1;
	uint64_t until_ns;
	uint32_t copy;

	if (fd < 0)
		return -1;
	until_ns = word_of(a) >> 1;
	copy = word_of(a) & 1;
	if (!until_ns) {
		policy_explain(error, 0, "%s: no policy waits to be confirmed", a->ifname);
	} else if (!keep_pending(a, until_ns, copy)) {
		policy_explain(error, 0,
			       "%s: the time to confirm has passed and the policy before is in "
			       "force again: apply "
			       "the new one once more",
			       a->ifname);
	} else {
		result = 0;
	}
	close(fd);
	return result;
}
