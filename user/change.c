/* SPDX-License-Identifier: GPL-2.0-only */
#include "change.h"
#include "rotate.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/*
 * Wait until no CPU still judges by what it read before now: an RCU grace period, or, where the
 * kernel does not offer one, a turn on every CPU.
 */
static void grace(void)
{
	cpu_set_t before, one;
	long n = sysconf(_SC_NPROCESSORS_CONF);

	if (!syscall(__NR_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		return;
	sched_getaffinity(0, sizeof(before), &before);
	for (long cpu = 0; cpu < n && cpu < CPU_SETSIZE; cpu++) {
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
	}
	sched_setaffinity(0, sizeof(before), &before);
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

struct policy *change_policy(const struct attached *a)
{
	const char *text = a->copy[change_in_force(a)].text;
	struct policy_error error;

	return policy_parse(text, strnlen(text, PACER_DOC_MAX), &error);
}

uint64_t change_pending(const struct attached *a)
{
	uint64_t until_ns = word_of(a) >> 1, now_ns = loader_now();

	return until_ns > now_ns ? until_ns - now_ns : 0;
}

/* --- the allow-list ------------------------------------------------------------------------- */

struct trie_key {
	uint32_t prefixlen;
	uint8_t addr[16];
};

static int trie_of(const struct attached *a, int family)
{
	return family == 4 ? a->allow4_fd : a->allow6_fd;
}

static struct trie_key key_of(const struct prefix *p)
{
	struct trie_key key = {.prefixlen = p->len};

	memcpy(key.addr, p->addr, p->family == 4 ? 4 : 16);
	return key;
}

static int each_of(const struct attached *a, int family,
		   void (*each)(const struct allow_entry *, void *), void *arg)
{
	struct trie_key key, next, *at = NULL;
	struct pacer_allow_value value;
	int n = 0;

	while (!bpf_map_get_next_key(trie_of(a, family), at, &next)) {
		key = next;
		at = &key;
		if (bpf_map_lookup_elem(trie_of(a, family), &key, &value))
			continue;
		n++;
		if (each) {
			struct allow_entry entry = {
			    {family, key.prefixlen, {0}}, value.until_ns, value.of_policy};

			memcpy(entry.prefix.addr, key.addr, family == 4 ? 4 : 16);
			each(&entry, arg);
		}
	}
	return n;
}

static void recount(struct attached *a)
{
	a->control->allowed4 = each_of(a, 4, NULL, NULL);
	a->control->allowed6 = each_of(a, 6, NULL, NULL);
}

static int allow_full(const struct prefix *prefix, int err, struct policy_error *error)
{
	char text[64];

	return policy_fail(error, 0, "%s: %s", units_prefix_text(prefix, text, sizeof(text)),
			   err == ENOSPC ? "the allow-list is full: it holds 4096 prefixes of each "
					   "family: delete some or merge them"
					 : strerror(err));
}

/* The datapath looks at a list that has entries by the count: so that goes up first. */
static int allow_put(struct attached *a, const struct allow_entry *entry,
		     struct policy_error *error)
{
	uint32_t *count = entry->prefix.family == 4 ? &a->control->allowed4 : &a->control->allowed6;
	struct trie_key key = key_of(&entry->prefix);
	struct pacer_allow_value value = {entry->until_ns, entry->of_policy};

	__atomic_store_n(count, *count + 1, __ATOMIC_RELEASE);
	if (bpf_map_update_elem(trie_of(a, entry->prefix.family), &key, &value, BPF_ANY))
		return allow_full(&entry->prefix, errno, error);
	return 0;
}

static int allow_remove(struct attached *a, const struct prefix *prefix, struct policy_error *error)
{
	struct trie_key key = key_of(prefix);
	char text[64];

	if (bpf_map_delete_elem(trie_of(a, prefix->family), &key))
		return policy_fail(
		    error, 0, "%s: %s", units_prefix_text(prefix, text, sizeof(text)),
		    errno == ENOENT ? "is not on the allow-list: see `allow IFACE list`"
				    : strerror(errno));
	return 0;
}

struct live {
	void (*each)(const struct allow_entry *, void *);
	void *arg;
	uint64_t now_ns;
};

static void each_live(const struct allow_entry *entry, void *arg)
{
	struct live *live = arg;

	if (!entry->until_ns || entry->until_ns > live->now_ns)
		live->each(entry, live->arg);
}

void change_allow_each(const struct attached *a, void (*each)(const struct allow_entry *, void *),
		       void *arg)
{
	struct live live = {each, arg, loader_now()};

	each_of(a, 4, each_live, &live);
	each_of(a, 6, each_live, &live);
}

/* The allow-list as it is, lapsed entries included. */
struct allow_copy {
	struct allow_entry *entry;
	size_t n;
};

static void copy_one(const struct allow_entry *entry, void *arg)
{
	struct allow_copy *copy = arg;

	if (copy->n < 2 * PACER_ALLOW_MAX)
		copy->entry[copy->n++] = *entry;
}

static int allow_copy(const struct attached *a, struct allow_copy *copy, struct policy_error *error)
{
	*copy = (struct allow_copy){calloc(2 * PACER_ALLOW_MAX, sizeof(*copy->entry)), 0};
	if (!copy->entry)
		return policy_fail(error, 0, "%s: no memory", a->ifname);
	each_of(a, 4, copy_one, copy);
	each_of(a, 6, copy_one, copy);
	return 0;
}

static bool has_lapsed(const struct allow_entry *entry)
{
	return entry->until_ns && entry->until_ns <= loader_now();
}

/* The entry of just this prefix; NULL if there is none, or it has lapsed. */
static const struct allow_entry *find_entry(const struct allow_copy *copy,
					    const struct prefix *prefix)
{
	for (size_t i = 0; i < copy->n; i++)
		if (!memcmp(&copy->entry[i].prefix, prefix, sizeof(*prefix)))
			return has_lapsed(&copy->entry[i]) ? NULL : &copy->entry[i];
	return NULL;
}

/*
 * Put the policy's own entries on the list: until_ns not 0, for a policy that gives way then unless
 * it is confirmed. An entry that is there for ever, whoever made it, is left as it is.
 */
static int allow_policy(struct attached *a, const struct policy *policy, uint64_t until_ns,
			struct policy_error *error)
{
	struct allow_copy copy;
	int result = allow_copy(a, &copy, error);

	for (size_t i = 0; i < policy->n_allow && !result; i++) {
		struct allow_entry entry = {policy->allow[i], until_ns, true};
		const struct allow_entry *old = find_entry(&copy, &entry.prefix);

		if (old && (!old->until_ns || (until_ns && old->until_ns >= until_ns)))
			continue;
		entry.of_policy = !(old && until_ns && !old->of_policy);
		result = allow_put(a, &entry, error);
	}
	recount(a);
	free(copy.entry);
	return result;
}

static bool lists(const struct policy *policy, const struct prefix *prefix)
{
	for (size_t i = 0; i < policy->n_allow; i++)
		if (!memcmp(&policy->allow[i], prefix, sizeof(*prefix)))
			return true;
	return false;
}

/* Take off the entries of policies before this one, and those that have lapsed. */
static int allow_sweep(struct attached *a, const struct policy *policy, struct policy_error *error)
{
	struct allow_copy copy;
	int result = allow_copy(a, &copy, error);

	for (size_t i = 0; i < copy.n && !result; i++) {
		const struct allow_entry *entry = &copy.entry[i];

		if (has_lapsed(entry) || (entry->of_policy && !lists(policy, &entry->prefix)))
			result = allow_remove(a, &entry->prefix, error);
	}
	recount(a);
	free(copy.entry);
	return result;
}

int change_allow_add(struct attached *a, const struct allow_entry *entry,
		     struct policy_error *error)
{
	const struct allow_entry *old;
	struct allow_copy copy;
	int fd = lock(error), result;

	if (fd < 0)
		return -1;
	result = allow_copy(a, &copy, error);
	old = result ? NULL : find_entry(&copy, &entry->prefix);
	/* What the policy lists for ever does not come to an end by hand. */
	if (!result && !(old && old->of_policy && !old->until_ns && entry->until_ns))
		result = allow_put(a, entry, error);
	recount(a);
	free(copy.entry);
	close(fd);
	return result;
}

int change_allow_del(struct attached *a, const struct prefix *prefix, struct policy_error *error)
{
	int fd = lock(error), result;

	if (fd < 0)
		return -1;
	result = allow_remove(a, prefix, error);
	recount(a);
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

static int no_memory(const struct attached *a, struct policy_error *error)
{
	return policy_fail(error, 0, "%s: no memory", a->ifname);
}

static int clear_counters(struct attached *a, const struct pacer_policy *old,
			  const struct pacer_policy *new, struct policy_error *error)
{
	int cpus = libbpf_num_possible_cpus(), result = 0;
	struct pacer_counters *zero = calloc(cpus > 0 ? cpus : 1, sizeof(*zero));

	if (!zero)
		return no_memory(a, error);
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
	int cpus = libbpf_num_possible_cpus(), result = 0;
	struct pacer_throttle_lease *zero = calloc(cpus > 0 ? cpus : 1, sizeof(*zero));

	if (!zero)
		return no_memory(a, error);
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
		const struct pacer_tier *t = &new->rule[l->rule].tier[l->tier];

		if (l->state != PLAN_NEW)
			continue;
		if (t->kind == PACER_TIER_THROTTLE)
			result = clear_throttle(a, t->base, error);
		else
			memset(&a->lines[t->base], 0, compile_tier_lines(t) * sizeof(*a->lines));
	}
	for (size_t i = 0; i < plan->n_pools && !result; i++)
		for (size_t k = 0; k < plan->pool[i].n && !result; k++)
			if (plan->pool[i].state[k] == PLAN_NEW)
				result = clear_throttle(a, new->pool[i].state[k], error);
	if (!result && new->bans.sets && !same_bans(&old->bans, &new->bans))
		clear_bans(a, &new->bans);
	return result;
}

/* The rule's tier with the state of that one; NULL: it has none. */
static struct pacer_tier *tier_in(struct pacer_rule *rule, const struct pacer_tier *t)
{
	bool throttle = t->kind == PACER_TIER_THROTTLE;

	for (size_t k = 0; k < rule->n_tiers; k++)
		if (rule->tier[k].base == t->base &&
		    (rule->tier[k].kind == PACER_TIER_THROTTLE) == throttle &&
		    (rule->tier[k].secret == t->secret || !compile_hashed(t)))
			return &rule->tier[k];
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
 * Should the new policy give way at until_ns, then its limits are retired beside those of the old
 * one, which have not counted what was admitted meanwhile. They are put behind the tiers that
 * packets are being judged by; to make them count is the caller's last step.
 */
static int retire_in_old(struct pacer_policy *old, const struct pacer_policy *new,
			 uint64_t until_ns, uint8_t n_tiers[PACER_RULES_MAX])
{
	memset(n_tiers, 0, PACER_RULES_MAX);
	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		struct pacer_rule *rule = rule_of_counter(old, new->rule[r].counter);
		uint8_t *n = rule ? &n_tiers[rule - old->rule] : NULL;

		if (rule)
			*n = rule->n_tiers;
		for (size_t k = 0; rule && k < new->rule[r].n_tiers; k++) {
			const struct pacer_tier *t = &new->rule[r].tier[k];

			if (t->until_ns || tier_in(rule, t))
				continue;
			if (*n == PACER_TIERS_MAX)
				return -1;
			rule->tier[*n] = *t;
			rule->tier[(*n)++].until_ns = until_ns + compile_tier_memory_ns(t);
		}
	}
	return 0;
}

/* A limit of the new policy that was retired in the old one already has to last as long. */
static void extend_in_old(struct pacer_policy *old, const struct pacer_policy *new,
			  uint64_t until_ns)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		struct pacer_rule *rule = rule_of_counter(old, new->rule[r].counter);

		for (size_t k = 0; rule && k < new->rule[r].n_tiers; k++) {
			const struct pacer_tier *t = &new->rule[r].tier[k];
			struct pacer_tier *was = t->until_ns ? NULL : tier_in(rule, t);
			uint64_t end_ns = until_ns + compile_tier_memory_ns(t);

			if (was && was->until_ns && was->until_ns < end_ns)
				__atomic_store_n(&was->until_ns, end_ns, __ATOMIC_RELEASE);
		}
	}
}

static bool retires(const struct pacer_policy *p)
{
	bool found = false;

	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < p->rule[r].n_tiers; k++)
			found |= p->rule[r].tier[k].until_ns == COMPILE_UNTIL_SET;
	for (size_t i = 0; i < PACER_THROTTLES; i++)
		found |= p->former[i].until_ns == COMPILE_UNTIL_SET;
	return found;
}

/* The new policy is in force: what it retired is needed for as long as its state can matter. */
static void time_retired(struct pacer_policy *p)
{
	uint64_t now_ns;

	if (!retires(p))
		return;
	grace();
	now_ns = loader_now();
	compile_time_targets(p, now_ns);
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < p->rule[r].n_tiers; k++) {
			struct pacer_tier *t = &p->rule[r].tier[k];

			if (t->until_ns == COMPILE_UNTIL_SET)
				__atomic_store_n(&t->until_ns, now_ns + compile_tier_memory_ns(t),
						 __ATOMIC_RELEASE);
		}
}

/* Put what lies complete in the other copy in force. */
static int switch_to(struct attached *a, uint32_t next, uint64_t until_ns,
		     struct policy_error *error)
{
	struct pacer_policy *old = &a->copy[next ^ 1].policy, *new = &a->copy[next].policy;
	uint8_t n_tiers[PACER_RULES_MAX];

	if (until_ns && retire_in_old(old, new, until_ns, n_tiers))
		return policy_fail(
		    error, 0,
		    "%s: a rule would hold more than 8 limits after the new ones gave way, "
		    "those just retired included: apply without --confirm-within, or later",
		    a->ifname);
	if (until_ns) {
		extend_in_old(old, new, until_ns);
		compile_keep_targets(old, new, until_ns);
	}
	for (size_t r = 0; until_ns && r < PACER_RULES_MAX; r++)
		if (n_tiers[r]) {
			old->rule[r].plain &= n_tiers[r] == 1;
			__atomic_store_n(&old->rule[r].n_tiers, n_tiers[r], __ATOMIC_RELEASE);
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

/* Memory for samples is taken at load or never. */
static int may_sample(const struct attached *a, const struct pacer_sampling *sampling,
		      struct policy_error *error)
{
	if (sampling->reasons && !a->sampler)
		return policy_fail(
		    error, 0,
		    "%s: the policy samples, but the pacer was loaded by one that does not, "
		    "without memory for it: leave sample out, or unload and load",
		    a->ifname);
	if (sampling->reasons && sampling->snap && !a->heads)
		return policy_fail(
		    error, 0,
		    "%s: the sample keeps packets' heads, but the pacer was loaded without "
		    "memory for them: leave snap out, or unload and load",
		    a->ifname);
	return 0;
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
static void move_bans(struct attached *a, struct pacer_policy *p)
{
	struct pacer_table table = {a->lines, a->n_lines};

	if (!p->bans.moving)
		return;
	grace();
	if (!p->bans.sets ||
	    !rotate_bans(&table, &p->bans, (const __u64(*)[PACER_SECRETS])a->control->secret,
			 p->secret, loader_now()))
		__atomic_store_n(&p->bans.moving, 0, __ATOMIC_RELEASE);
}

/* With another secret where that is asked for, or where the present one is weak and it can be. */
static int compile(struct attached *a, const struct policy *new, struct compile_previous *previous,
		   bool rotate, bool trial, struct pacer_policy *bin, struct plan *plan,
		   struct policy_error *error)
{
	struct compile_host host = {a->control->resolution_ns, loader_now(),
				    libbpf_num_possible_cpus()};
	struct policy_error why;

	if (!host.resolution_ns)
		host.resolution_ns = loader_resolution();
	previous->rotate = rotate || (!trial && change_weak_secret(a));
	if (!compile_policy(new, previous, &host, bin, plan, rotate ? error : &why))
		return 0;
	previous->rotate = false;
	return rotate ? -1 : compile_policy(new, previous, &host, bin, plan, error);
}

static int replace(struct attached *a, const char *text, uint64_t confirm_ns, bool rotate,
		   struct plan *plan, struct policy_error *error)
{
	uint32_t now = change_in_force(a), next = now ^ 1;
	struct policy *old, *new = NULL;
	struct compile_previous previous;
	struct pacer_policy *bin = malloc(sizeof(*bin));
	uint64_t until_ns = 0;
	int result = -1;

	move_bans(a, &a->copy[now].policy);
	old = policy_parse(a->copy[now].text, strnlen(a->copy[now].text, PACER_DOC_MAX), error);
	if (!bin || !old)
		goto out;
	previous = (struct compile_previous){old, &a->copy[now].policy, a->n_lines, false};
	new = policy_parse(text, strlen(text), error);
	if (!new || compile(a, new, &previous, rotate, confirm_ns, bin, plan, error))
		goto out;
	if (may_sample(a, &bin->sampling, error))
		goto out;
	grace();
	if (plan->rotated && draw_secret(a, bin->secret, error))
		goto out;
	if (clear_new(a, &a->copy[now].policy, bin, plan, error))
		goto out;
	if (put_targets(a, next, plan, error))
		goto out;
	if (confirm_ns)
		until_ns = loader_now() + confirm_ns;
	if (allow_policy(a, new, until_ns, error))
		goto out;
	a->copy[next].policy = *bin;
	memset(a->copy[next].text, 0, PACER_DOC_MAX);
	memcpy(a->copy[next].text, text, strlen(text));
	if (switch_to(a, next, until_ns, error))
		goto out;
	time_retired(&a->copy[next].policy);
	move_bans(a, &a->copy[next].policy);
	result = confirm_ns ? 0 : allow_sweep(a, new, error);
out:
	policy_free(old);
	policy_free(new);
	free(bin);
	return result;
}

/* The lock, with nothing pending; -1 if not. */
static int lock_settled(struct attached *a, struct policy_error *error)
{
	int fd = lock(error);

	if (fd >= 0 && loader_gone(a)) {
		close(fd);
		return policy_fail(error, 0, "%s: its pacer was taken off or replaced meanwhile",
				   a->ifname);
	}
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
	result = replace(a, text, confirm_ns, false, plan, error);
	close(fd);
	return result;
}

int change_rotate(struct attached *a, struct plan *plan, struct policy_error *error)
{
	int fd = lock_settled(a, error), result = -1;
	char *text;

	if (fd < 0)
		return -1;
	time_retired(&a->copy[change_in_force(a)].policy); /* of a change that was cut off */
	text = strndup(a->copy[change_in_force(a)].text, PACER_DOC_MAX);
	if (text)
		result = replace(a, text, 0, true, plan, error);
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
		result = replace(a, text, 0, false, plan, error);
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
	int fd = lock(error), result = -1;
	struct policy *policy = NULL;
	uint64_t until_ns = word_of(a) >> 1;
	uint32_t copy = word_of(a) & 1;

	if (fd < 0)
		return -1;
	if (!until_ns) {
		policy_explain(error, 0, "%s: no policy waits to be confirmed", a->ifname);
	} else if (!keep_pending(a, until_ns, copy)) {
		policy_explain(error, 0,
			       "%s: the time to confirm has passed and the policy before is in "
			       "force again: apply "
			       "the new one once more",
			       a->ifname);
	} else {
		policy = policy_parse(a->copy[copy].text,
				      strnlen(a->copy[copy].text, PACER_DOC_MAX), error);
		result = policy && !allow_policy(a, policy, 0, error)
			     ? allow_sweep(a, policy, error)
			     : -1;
	}
	policy_free(policy);
	close(fd);
	return result;
}
