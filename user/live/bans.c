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
#include "sets/words.h"
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
	return pkt;
}

void bans_key_text(uint32_t key_id, const uint32_t words[PACER_KEY_WORDS], char *buf, size_t size)
{
	struct policy_key kind = compile_key_of(key_id);
	struct pacer_packet pkt = packet_of(key_id, words);

	tally_key_text(&kind, &pkt, buf, size);
}

/*
 * Are the key's values some that the sets of the limit have? One that no set has is no packet's.
 * What sets had is not known of those that only a limit which drains counts by.
 */
static bool are_values(const struct pacer_limiter *t, const struct pacer_packet *pkt)
{
	for (uint32_t i = 0; i < 2; i++)
		if (t->value[i] && !t->until_ns && !set_word_set(pkt->key[4 * i]))
			return false;
	return tally_key_fits(t, pkt);
}

static bool has_key(const struct pacer_rule *rule, const struct pacer_line *entry)
{
	struct pacer_packet pkt = packet_of(entry->ban_key_id, entry->ban_key);

	for (size_t k = 0; k < rule->n_limiters; k++)
		if (rule->limiter[k].key_id == (entry->ban_key_id & ~PACER_KEY_V6) &&
		    are_values(&rule->limiter[k], &pkt))
			return true;
	return false;
}

static const struct pacer_rule *rule_of(const struct pacer_policy *p, uint32_t id)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		if (p->rule[r].id == id)
			return &p->rule[r];
	return NULL;
}

/*
 * Limits whose kinds of keys differ in the other family alone, as src and src/32,128 do, have the
 * same keys in this one. Packets look a ban up by its kind, so that each kind has an entry; for
 * people that is one ban.
 */
static bool are_alike(uint32_t key_id, uint32_t other_id)
{
	struct policy_key key = compile_key_of(key_id & ~PACER_KEY_V6);
	struct policy_key other = compile_key_of(other_id & ~PACER_KEY_V6);

	if (key.parts != other.parts)
		return false;
	return key_id & PACER_KEY_V6 ? key.src6 == other.src6 && key.dst6 == other.dst6
				     : key.src4 == other.src4 && key.dst4 == other.dst4;
}

/* When the ban of the rule's next limiter from *k on that has the key, as another kind, ends; 0:
 * none has one. */
static uint64_t alike_until(const struct attached *a, const struct pacer_policy *p, size_t *k,
			    const struct pacer_ban_key *key, uint64_t now_ns, uint32_t *key_id)
{
	const struct pacer_rule *rule = rule_of(p, key->rule);
	struct pacer_ban_key alike = *key;

	for (; rule && *k < rule->n_limiters; ++*k) {
		uint64_t until_ns;

		*key_id = rule->limiter[*k].key_id | (key->key_id & PACER_KEY_V6);
		if (*key_id == key->key_id || !are_alike(key->key_id, *key_id))
			continue;
		alike.key_id = *key_id;
		until_ns = ban_tables_until(a, p, &alike, now_ns);
		if (until_ns)
			return ++*k, until_ns;
	}
	return 0;
}

static struct pacer_ban_key key_of(const struct pacer_line *entry)
{
	struct pacer_ban_key key = {entry->ban_rule, entry->ban_key_id, {0}};

	memcpy(key.word, entry->ban_key, sizeof(key.word));
	return key;
}

/* Packets ask for the bans of their keys, by the limits of their rule (common/rule.h). */
static bool is_asked_for(const struct pacer_policy *p, const struct pacer_line *entry)
{
	const struct pacer_rule *rule;

	if (entry->ban_rule == PACER_BAN_SOURCE)
		return ban_notes_asked_for(p, entry);
	rule = rule_of(p, entry->ban_rule);
	return rule && (rule->ban_ns || rule->outside) && has_key(rule, entry);
}

/* Of entries that are one ban, that which a limit has the kind of and ends last is told. */
static bool is_told(const struct attached *a, const struct pacer_policy *p,
		    const struct pacer_line *entry, uint64_t now_ns)
{
	struct pacer_ban_key key = key_of(entry);
	uint64_t until_ns;
	uint32_t key_id;

	for (size_t k = 0; (until_ns = alike_until(a, p, &k, &key, now_ns, &key_id));)
		if (!has_key(rule_of(p, entry->ban_rule), entry) ||
		    until_ns > entry->ban_until_ns ||
		    (until_ns == entry->ban_until_ns && key_id < key.key_id))
			return false;
	return true;
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

		if (!ban_notes_read(&a->lines[p->bans.base + i], now_ns, &copy) ||
		    !is_told(a, p, &copy, now_ns))
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
	const struct pacer_policy *p = &a->copy[copies_in_force(a)].policy;
	uint64_t now_ns = host_now_ns();

	for (size_t i = 0; i < bans_room(a); i++) {
		struct pacer_line copy;

		if (ban_notes_read(&a->lines[p->bans.base + i], now_ns, &copy) &&
		    is_told(a, p, &copy, now_ns))
			each(copy.ban_rule, arg);
	}
}

/* --- lifting -------------------------------------------------------------------------------- */

/* The text that a ban's key has, if it is the one that a wish names. */
struct wanted {
	char *key;
	size_t which;	   /* the wish */
	uint64_t until_ns; /* it is for what ends by then; PACER_NEVER: for any */
};

/* What is to be lifted: of each wish its text, and what that is as a key of each kind. */
struct wants {
	const struct ban_wish *wish; /* NULL: all that there is, and the rest is unused */
	size_t n_wishes;
	bool *found;	   /* of each wish; the caller's */
	struct wanted *at; /* sorted */
	size_t n, room;
	uint32_t *kind;
	size_t n_kinds, room_kinds;
};

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct wanted *)a)->key, ((const struct wanted *)b)->key);
}

static void wants_free(struct wants *w)
{
	while (w->n)
		free(w->at[--w->n].key);
	free(w->at);
	free(w->kind);
}

/* The array with room for one more than n; NULL: no memory, and it is as it was. */
static void *with_room(void *array, size_t n, size_t *room, size_t size)
{
	size_t more = *room ? 2 * *room : 64;

	if (n < *room)
		return array;
	array = realloc(array, more * size);
	if (array)
		*room = more;
	return array;
}

static int want(struct wants *w, const char *key, size_t which, uint64_t until_ns)
{
	struct wanted *at = with_room(w->at, w->n, &w->room, sizeof(*at));

	if (!at)
		return -1;
	w->at = at;
	at[w->n] = (struct wanted){strdup(key), which, until_ns ? until_ns : PACER_NEVER};
	return at[w->n].key ? (w->n++, 0) : -1;
}

static int note_kind(struct wants *w, uint32_t key_id)
{
	uint32_t *kind;

	for (size_t i = 0; i < w->n_kinds; i++)
		if (w->kind[i] == key_id)
			return 0;
	kind = with_room(w->kind, w->n_kinds, &w->room_kinds, sizeof(*kind));
	if (!kind)
		return -1;
	w->kind = kind;
	kind[w->n_kinds++] = key_id;
	return 0;
}

/* The kinds of keys that are banned. */
static int note_kinds(struct wants *w, const struct attached *a, const struct pacer_bans *table)
{
	uint64_t now_ns = host_now_ns();

	for (size_t i = 0; i < (size_t)table->sets * PACER_BAN_WAYS; i++) {
		struct pacer_line copy;

		if (ban_notes_read(&a->lines[table->base + i], now_ns, &copy) &&
		    note_kind(w, copy.ban_key_id & ~PACER_KEY_V6))
			return -1;
	}
	return 0;
}

/* One key may be written in several ways, and one text be a key of several kinds. */
static int want_as_keys(struct wants *w, const struct ban_wish *wish, size_t which)
{
	char key[TALLY_TEXT];
	struct pacer_packet pkt;

	for (size_t k = 0; k < w->n_kinds; k++) {
		struct policy_key kind = compile_key_of(w->kind[k]);

		if (tally_key_read(&kind, wish->key, &pkt))
			continue;
		tally_key_text(&kind, &pkt, key, sizeof(key));
		if (strcmp(key, wish->key) != 0 && want(w, key, which, wish->until_ns))
			return -1;
	}
	return 0;
}

/* w->wish is filled in. -1: no memory. wants_free() in either case. */
static int wants_read(struct wants *w, const struct attached *a, const struct ban_tables *t)
{
	const struct ban_wish *wish = w->wish;

	if (!wish)
		return 0;
	if (note_kinds(w, a, &a->copy[t->copy[ban_tables_owner(a, t)]].policy.bans))
		return -1;
	for (size_t i = 0; i < w->n_wishes; i++)
		if (want(w, wish[i].key, i, wish[i].until_ns) || want_as_keys(w, &wish[i], i))
			return -1;
	if (w->n)
		qsort(w->at, w->n, sizeof(*w->at), by_key);
	return 0;
}

/* The first of those that are the ban's, NULL where it is none's. One key may be wished twice. */
static struct wanted *find_wanted(const struct wants *w, char *key)
{
	struct wanted text = {.key = key}, *at = NULL;

	if (w->n)
		at = bsearch(&text, w->at, w->n, sizeof(*at), by_key);
	while (at && at > w->at && !by_key(&text, at - 1))
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

/* NULL: whatever the rule. During a trial it may be one that the other policy alone has. */
static bool is_under(const char *rule, const struct pacer_line *entry, const struct ban *ban)
{
	return !rule || !strcmp(rule, ban->rule) || compile_name_id(rule) == entry->ban_rule;
}

/* Is the key banned, as any kind that it is? */
static bool is_banned(const struct attached *a, const struct pacer_policy *p,
		      const struct pacer_ban_key *key, uint64_t now_ns)
{
	uint32_t unused;

	return ban_tables_until(a, p, key, now_ns) ||
	       alike_until(a, p, &(size_t){0}, key, now_ns, &unused);
}

/* Returns how many bans were lifted. */
static size_t lift_table(struct attached *a, const struct pacer_policy *p,
			 const struct policy *policy, const char *rule, struct wants *wants)
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
		if (wants->wish)
			at = find_for(find_wanted(wants, ban.key), wants->at + wants->n,
				      copy.ban_until_ns);
		if (!is_under(rule, &copy, &ban) || (wants->wish && !at))
			continue;
		key = key_of(&copy);
		if (!pacer_ban_lift(line, &key, now_ns))
			continue;
		ban_tables_empty(a, p, &key, now_ns); /* its row */
		lifted += !is_banned(a, p, &key, now_ns);
		for (; at && at < wants->at + wants->n && !strcmp(at->key, ban.key); at++)
			wants->found[at->which] = true;
	}
	return lifted;
}

/* Those that other tools wrote, too; or *error has why not all of them. */
static int lift_of_tools(const struct attached *a, const struct wants *wants,
			 struct bans_done *done, struct policy_error *error)
{
	const struct ban_wish *wish = wants->wish;
	struct policy_error why = {0};
	struct prefix prefix;
	size_t lifted = 0;
	int result = wish ? 0 : tool_bans_lift(a, NULL, &lifted, &why);

	done->done += lifted;
	for (size_t i = 0; wish && i < wants->n_wishes && !result; i++) {
		if (units_prefix(wish[i].key, &prefix))
			continue;
		result = tool_bans_lift(a, &prefix, &lifted, &why);
		wants->found[i] |= lifted > 0;
		done->done += lifted;
	}
	return result ? policy_fail(error, 0, "%.300s: its own bans are lifted alone: try again",
				    why.text)
		      : 0;
}

static int lift_all(struct attached *a, const struct ban_tables *t, const char *rule,
		    struct wants *wants, struct bans_done *done, struct policy_error *error)
{
	uint32_t i = ban_tables_owner(a, t);
	int result = 0;

	done->done += lift_table(a, &a->copy[t->copy[i]].policy, t->policy[i], rule, wants);
	if (!rule)
		result = lift_of_tools(a, wants, done, error);
	ban_tables_note(a, t);
	return result;
}

static int lift_from(struct attached *a, const char *rule, const struct ban_wish *wish, size_t n,
		     bool *found, struct bans_done *done, struct policy_error *error)
{
	struct ban_tables tables;
	struct wants wants = {.wish = wish, .n_wishes = n, .found = found};
	int result;

	if (ban_tables_open(a, &tables, error))
		return -1;
	result = wants_read(&wants, a, &tables) ? policy_fail(error, 0, "%s: no memory", a->ifname)
						: lift_all(a, &tables, rule, &wants, done, error);
	ban_tables_close(&tables);
	wants_free(&wants);
	return result;
}

/* Those of a shadow, which may have others. */
static int lift_in_shadow(const struct attached *a, const char *rule, const struct ban_wish *wish,
			  size_t n, bool *found, struct bans_done *done, struct policy_error *error)
{
	struct policy_error why = {0};
	struct attached shadow;
	struct bans_done also = {0};
	int result = in_shadow_open(a, &shadow, error);

	if (result)
		return result < 0 ? result : 0;
	result = lift_from(&shadow, rule, wish, n, found, &also, &why);
	done->of_shadow = also.done;
	attached_release(&shadow);
	return result ? in_shadow_fail(&why, error) : 0;
}

int bans_lift(struct attached *a, const char *rule, const struct ban_wish *wish, size_t n,
	      struct bans_done *done, struct policy_error *error)
{
	int fd = copies_lock_of(a, error), result;
	bool *found;

	*done = (struct bans_done){0};
	if (fd < 0)
		return -1;
	found = calloc(n + 1, sizeof(*found));
	result = found ? lift_from(a, rule, wish, n, found, done, error)
		       : policy_fail(error, 0, "%s: no memory", a->ifname);
	if (!result)
		result = lift_in_shadow(a, rule, wish, n, found, done, error);
	for (size_t i = 0; found && wish && i < n; i++)
		if (!found[i] && !done->left_out++)
			done->which = i;
	free(found);
	close(fd);
	return result;
}
