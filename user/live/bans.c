/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/bans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ban.h"
#include "key.h"
#include "live/ban_notes.h"
#include "live/ban_tables.h"
#include "live/copies.h"
#include "live/host.h"
#include "live/in_shadow.h"
#include "live/tool_bans.h"
#include "plan/compile.h"
#include "parse.h"

static const struct pacer_bans *table_of(const struct attached *a)
{
	return &a->copy[copies_in_force(a)].policy.bans;
}

size_t bans_room(const struct attached *a)
{
	return (size_t)table_of(a)->sets * PACER_BAN_WAYS;
}

uint32_t bans_begun(const struct attached *a)
{
	return table_of(a)->begun;
}

/* Makes a packet that has the key. */
static struct pacer_packet packet_of(uint32_t key_id, const uint32_t words[PACER_KEY_WORDS])
{
	struct pacer_packet pkt = {.family = PACER_FAMILY_6};
	uint32_t meta;

	if (key_id & PACER_KEY_V6) {
		memcpy(pkt.key, words, sizeof(pkt.key));
	} else {
		pkt.family = PACER_FAMILY_4;
		pkt.key[PACER_WORD_SADDR] = words[0];
		pkt.key[PACER_WORD_DADDR] = words[1];
		pkt.key[PACER_WORD_PORTS] = words[2];
		pkt.key[PACER_WORD_META] = words[3];
	}
	meta = pkt.key[PACER_WORD_META];
	pkt.proto = meta & PACER_META_PROTO;
	pkt.vlan = pacer_vlan_of(meta);
	pkt.fragment = meta & PACER_META_FRAGMENT ? PACER_FRAG_LATER : PACER_FRAG_NONE;
	if (meta & PACER_META_PART)
		pkt.ports = pkt.proto ? PACER_PORTS_UNKNOWN : PACER_PORTS_ANY;
	return pkt;
}

void bans_key_text(uint32_t key_id, const uint32_t words[PACER_KEY_WORDS], char *buf, size_t size)
{
	struct policy_key kind = compile_key_of(key_id);
	struct pacer_packet pkt = packet_of(key_id, words);

	tally_key_text(&kind, &pkt, buf, size);
}

static bool has_key(const struct pacer_rule *rule, uint32_t key_id)
{
	for (size_t k = 0; k < rule->n_limiters; k++)
		if (rule->limiter[k].key_id == key_id)
			return true;
	return false;
}

/* Packets ask for the bans of their keys, by the limits of their rule (common/rule.h). */
static bool is_asked_for(const struct pacer_policy *p, const struct pacer_line *entry)
{
	if (entry->ban_rule == PACER_BAN_SOURCE)
		return true;
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		if (p->rule[r].id == entry->ban_rule)
			return (p->rule[r].ban_ns || p->rule[r].outside) &&
			       has_key(&p->rule[r], entry->ban_key_id & ~PACER_KEY_V6);
	return false;
}

static void describe(const struct pacer_line *entry, const struct pacer_policy *p,
		     const struct policy *policy, uint64_t now_ns, struct ban *ban)
{
	snprintf(ban->rule, sizeof(ban->rule), "?");
	for (size_t i = 0; policy && i < policy->n_rules; i++)
		if (compile_name_id(policy->rule[i].name) == entry->ban_rule)
			snprintf(ban->rule, sizeof(ban->rule), "%s", policy->rule[i].name);
	if (entry->ban_rule == PACER_BAN_SOURCE)
		*ban->rule = 0;
	bans_key_text(entry->ban_key_id, entry->ban_key, ban->key, sizeof(ban->key));
	ban->in_force = is_asked_for(p, entry);
	ban->outside = entry->ban_note & PACER_BAN_OUTSIDE;
	ban->tool = false;
	ban->row = entry->ban_note >> PACER_BAN_ROW;
	ban->left_ns =
	    entry->ban_until_ns == PACER_NEVER ? PACER_NEVER : entry->ban_until_ns - now_ns;
}

size_t bans_each(const struct attached *a, const struct policy *policy,
		 void (*each)(const struct ban *, void *), void *arg)
{
	const struct pacer_policy *p = &a->copy[copies_in_force(a)].policy;
	uint64_t now_ns = host_now_ns();
	size_t n = 0;

	for (size_t i = 0; i < (size_t)p->bans.sets * PACER_BAN_WAYS; i++) {
		struct pacer_line copy;
		struct ban ban;

		if (!ban_notes_read(&a->lines[p->bans.base + i], now_ns, &copy))
			continue;
		n++;
		if (!each)
			continue;
		describe(&copy, p, policy, now_ns, &ban);
		each(&ban, arg);
	}
	return n;
}

void bans_count(const struct attached *a, void (*each)(uint32_t rule_id, void *), void *arg)
{
	const struct pacer_bans *table = table_of(a);
	uint64_t now_ns = host_now_ns();

	for (size_t i = 0; i < bans_room(a); i++) {
		struct pacer_line copy;

		if (ban_notes_read(&a->lines[table->base + i], now_ns, &copy))
			each(copy.ban_rule, arg);
	}
}

/* --- lifting -------------------------------------------------------------------------------- */

/* A wish by the text that a ban's key has, and whether it came up. */
struct wanted {
	char *key;
	size_t which;
	uint64_t until_ns; /* it is for what ends by then; PACER_NEVER: for any */
	bool found;
};

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct wanted *)a)->key, ((const struct wanted *)b)->key);
}

/* 2001:DB8:0::1 is 2001:db8::1. */
static char *canonical(const char *text)
{
	struct prefix prefix;
	char buf[64];

	return strdup(units_prefix(text, &prefix) ? text
						  : units_prefix_text(&prefix, buf, sizeof(buf)));
}

static void free_wanted(struct wanted *wanted, size_t n)
{
	for (size_t i = 0; wanted && i < n; i++)
		free(wanted[i].key);
	free(wanted);
}

/* Sorted; NULL: no memory. */
static struct wanted *sort_wishes(const struct ban_wish *wish, size_t n)
{
	struct wanted *wanted = calloc(n + 1, sizeof(*wanted));

	for (size_t i = 0; wanted && i < n; i++) {
		wanted[i] =
		    (struct wanted){canonical(wish[i].key), i,
				    wish[i].until_ns ? wish[i].until_ns : PACER_NEVER, false};
		if (!wanted[i].key) {
			free_wanted(wanted, n);
			return NULL;
		}
	}
	if (wanted)
		qsort(wanted, n, sizeof(*wanted), by_key);
	return wanted;
}

/* The first of those that are the ban's, NULL where it is none's. One key may be wished twice. */
static struct wanted *find_wanted(struct wanted *wanted, size_t n, char *key)
{
	struct wanted text = {.key = key}, *at = bsearch(&text, wanted, n, sizeof(*at), by_key);

	while (at && at > wanted && !by_key(&text, at - 1))
		at--;
	return at;
}

/* The first of a key, if it or another of that key is for a ban with this end; else NULL. */
static struct wanted *find_for(struct wanted *first, const struct wanted *end, uint64_t until_ns)
{
	for (struct wanted *at = first; at && at < end && !by_key(at, first); at++)
		if (until_ns <= at->until_ns)
			return first;
	return NULL;
}

/* Returns how many bans were lifted. wanted NULL: all are. */
static size_t lift_table(struct attached *a, const struct pacer_policy *p,
			 const struct policy *policy, const char *rule, struct wanted *wanted,
			 size_t n)
{
	uint64_t now_ns = host_now_ns();
	size_t lifted = 0;

	for (size_t i = 0; i < (size_t)p->bans.sets * PACER_BAN_WAYS; i++) {
		struct pacer_line *line = &a->lines[p->bans.base + i], copy;
		struct wanted *at = NULL;
		struct pacer_ban_key key;
		struct ban ban;

		if (!ban_notes_read(line, now_ns, &copy))
			continue;
		describe(&copy, p, policy, now_ns, &ban);
		if (wanted)
			at = find_for(find_wanted(wanted, n, ban.key), wanted + n,
				      copy.ban_until_ns);
		if ((rule && strcmp(rule, ban.rule)) || (wanted && !at))
			continue;
		key = (struct pacer_ban_key){copy.ban_rule, copy.ban_key_id, {0}};
		memcpy(key.word, copy.ban_key, sizeof(key.word));
		if (!pacer_ban_lift(line, &key, now_ns))
			continue;
		lifted++;
		for (; at && at < wanted + n && !strcmp(at->key, ban.key); at++)
			at->found = true;
	}
	return lifted;
}

/* Those that other tools wrote, too; or *error has why not all of them. */
static int lift_of_tools(const struct attached *a, struct wanted *wanted, size_t n,
			 struct bans_done *done, struct policy_error *error)
{
	struct policy_error why = {0};
	struct prefix prefix;
	size_t lifted = 0;
	int result = wanted ? 0 : tool_bans_lift(a, NULL, &lifted, &why);

	done->done += lifted;
	for (size_t i = 0; wanted && i < n && !result; i++) {
		if (units_prefix(wanted[i].key, &prefix))
			continue;
		result = tool_bans_lift(a, &prefix, &lifted, &why);
		wanted[i].found |= lifted > 0;
		done->done += lifted;
	}
	return result ? policy_fail(error, 0, "%.300s: its own bans are lifted alone: try again",
				    why.text)
		      : 0;
}

static int lift_all(struct attached *a, const struct ban_tables *t, const char *rule,
		    struct wanted *wanted, size_t n, struct bans_done *done,
		    struct policy_error *error)
{
	int result = 0;

	for (uint32_t i = 0; i < t->n; i++)
		if (!ban_tables_shared(a, t, i))
			done->done += lift_table(a, &a->copy[t->copy[i]].policy, t->policy[i], rule,
						 wanted, n);
	if (!rule)
		result = lift_of_tools(a, wanted, n, done, error);
	for (size_t i = 0; wanted && i < n; i++) {
		if (wanted[i].found)
			continue;
		if (!done->left_out++ || wanted[i].which < done->which)
			done->which = wanted[i].which;
	}
	ban_tables_note(a, t);
	return result;
}

static int lift_locked(struct attached *a, const char *rule, const struct ban_wish *wish, size_t n,
		       struct bans_done *done, struct policy_error *error)
{
	struct wanted *wanted = wish ? sort_wishes(wish, n) : NULL;
	int fd, result = -1;
	struct ban_tables tables;

	*done = (struct bans_done){0};
	if (wish && !wanted)
		return policy_fail(error, 0, "%s: no memory", a->ifname);
	fd = copies_lock_of(a, error);
	if (fd >= 0 && !ban_tables_open(a, &tables, error)) {
		result = lift_all(a, &tables, rule, wanted, n, done, error);
		ban_tables_close(&tables);
	}
	if (fd >= 0)
		close(fd);
	free_wanted(wanted, n);
	return result;
}

/* Those of a shadow, which may have others. */
static int lift_in_shadow(const struct attached *a, const char *rule, const struct ban_wish *wish,
			  size_t n, struct policy_error *error)
{
	struct policy_error why = {0};
	struct attached shadow;
	struct bans_done also;
	int result = in_shadow_open(a, &shadow, error);

	if (result)
		return result < 0 ? -1 : 0;
	result = lift_locked(&shadow, rule, wish, n, &also, &why);
	attached_release(&shadow);
	return result ? in_shadow_fail(&why, error) : 0;
}

int bans_lift(struct attached *a, const char *rule, const struct ban_wish *wish, size_t n,
	      struct bans_done *done, struct policy_error *error)
{
	return lift_locked(a, rule, wish, n, done, error) || lift_in_shadow(a, rule, wish, n, error)
		   ? -1
		   : 0;
}
