/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/bans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "ban.h"
#include "key.h"
#include "live/ban_notes.h"
#include "live/change.h"
#include "plan/compile.h"
#include "parse.h"

static const struct pacer_bans *table_of(const struct attached *a)
{
	return &a->copy[change_in_force(a)].policy.bans;
}

size_t bans_room(const struct attached *a)
{
	return (size_t)table_of(a)->sets * PACER_BAN_WAYS;
}

/* Takes a consistent copy of the entry, if it holds a ban that has not ended. */
static bool read_entry(const struct pacer_line *line, uint64_t now_ns, struct pacer_line *copy)
{
	uint32_t before = pacer_acquire((__u32 *)&line->ban_lock);

	*copy = *line;
	PACER_BARRIER();
	return !(before & PACER_LOCK_HELD) && pacer_load(&line->ban_lock) == before &&
	       copy->ban_until_ns > now_ns;
}

/* Makes a packet that has the entry's key. */
static struct pacer_packet packet_of(const struct pacer_line *entry)
{
	struct pacer_packet pkt = {.family = PACER_FAMILY_6};
	uint32_t meta;

	if (entry->ban_key_id & PACER_KEY_V6) {
		memcpy(pkt.key, entry->ban_key, sizeof(pkt.key));
	} else {
		pkt.family = PACER_FAMILY_4;
		pkt.key[PACER_WORD_SADDR] = entry->ban_key[0];
		pkt.key[PACER_WORD_DADDR] = entry->ban_key[1];
		pkt.key[PACER_WORD_PORTS] = entry->ban_key[2];
		pkt.key[PACER_WORD_META] = entry->ban_key[3];
	}
	meta = pkt.key[PACER_WORD_META];
	pkt.proto = meta & PACER_META_PROTO;
	pkt.fragment = meta & PACER_META_FRAGMENT ? PACER_FRAG_LATER : PACER_FRAG_NONE;
	if (meta & PACER_META_PART)
		pkt.ports = pkt.proto ? PACER_PORTS_UNKNOWN : PACER_PORTS_ANY;
	return pkt;
}

static void describe(const struct pacer_line *entry, const struct policy *policy, uint64_t now_ns,
		     struct ban *ban)
{
	struct policy_key kind = compile_key_of(entry->ban_key_id);
	struct pacer_packet pkt = packet_of(entry);

	snprintf(ban->rule, sizeof(ban->rule), "?");
	for (size_t i = 0; policy && i < policy->n_rules; i++)
		if (compile_name_id(policy->rule[i].name) == entry->ban_rule)
			snprintf(ban->rule, sizeof(ban->rule), "%s", policy->rule[i].name);
	if (entry->ban_rule == PACER_BAN_SOURCE)
		*ban->rule = 0;
	tally_key_text(&kind, &pkt, ban->key, sizeof(ban->key));
	ban->outside = entry->ban_outside;
	ban->left_ns =
	    entry->ban_until_ns == PACER_NEVER ? PACER_NEVER : entry->ban_until_ns - now_ns;
}

size_t bans_each(const struct attached *a, const struct policy *policy,
		 void (*each)(const struct ban *, void *), void *arg)
{
	const struct pacer_bans *table = table_of(a);
	uint64_t now_ns = loader_now();
	size_t n = 0;

	for (size_t i = 0; i < bans_room(a); i++) {
		struct pacer_line copy;
		struct ban ban;

		if (!ban_notes_read(&a->lines[table->base + i], now_ns, &copy))
			continue;
		n++;
		if (!each)
			continue;
		describe(&copy, policy, now_ns, &ban);
		each(&ban, arg);
	}
	return n;
}

void bans_count(const struct attached *a, void (*each)(uint32_t rule_id, void *), void *arg)
{
	const struct pacer_bans *table = table_of(a);
	uint64_t now_ns = loader_now();

	for (size_t i = 0; i < bans_room(a); i++) {
		struct pacer_line copy;

		if (read_entry(&a->lines[table->base + i], now_ns, &copy))
			each(copy.ban_rule, arg);
	}
}

/* --- the tables that a change by hand is made to -------------------------------------------- */

/* Of the policy in force and, on trial, of the one before. */
struct tables {
	uint32_t n, copy[2];
	struct policy *policy[2];
};

static void close_tables(struct tables *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		policy_free(t->policy[i]);
}

static int open_tables(const struct attached *a, struct tables *t, struct policy_error *error)
{
	uint32_t in_force = change_in_force(a), n = change_pending(a) ? 2 : 1;

	*t = (struct tables){.copy = {in_force, in_force ^ 1}};
	for (; t->n < n; t->n++) {
		t->policy[t->n] = change_policy_of(a, t->copy[t->n]);
		if (!t->policy[t->n]) {
			close_tables(t);
			return policy_fail(error, 0, "%s: no memory for its policy", a->ifname);
		}
	}
	return 0;
}

/* Is it the same table as that of a copy before? */
static bool is_shared(const struct attached *a, const struct tables *t, uint32_t i)
{
	const struct pacer_bans *bans = &a->copy[t->copy[i]].policy.bans;

	return i && bans->sets && a->copy[t->copy[0]].policy.bans.base == bans->base;
}

static void note_tables(struct attached *a, const struct tables *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		ban_notes_write(a->lines, &a->copy[t->copy[i]].policy, loader_now());
}

/* --- banning -------------------------------------------------------------------------------- */

/* The keys that a wish is for: under a rule there may be limits by several kinds of keys. */
struct wished {
	struct pacer_ban_key key[PACER_LIMITERS_MAX];
	size_t n;
};

static int read_source(const char *text, struct wished *wished, struct policy_error *error)
{
	uint32_t word[4] = {0};
	struct prefix prefix;

	if (units_prefix(text, &prefix))
		return policy_fail(error, 0,
				   "%.200s is no source, such as 192.0.2.1, 192.0.2.0/24 or "
				   "2001:db8::/64 with its host bits 0; for a key of a rule's "
				   "limit name the --rule",
				   text);
	if (!prefix.len)
		return policy_fail(error, 0, "%.200s is everybody: ban a longer prefix", text);
	for (size_t i = 0; i < (prefix.family == 4 ? 1 : 4); i++)
		word[i] = pacer_be32(&prefix.addr[4 * i]);
	wished->key[0] = pacer_ban_source(prefix.family == 4 ? PACER_FAMILY_4 : PACER_FAMILY_6,
					  word, prefix.len);
	wished->n = 1;
	return 0;
}

static bool has_key(const struct wished *wished, const struct pacer_ban_key *key)
{
	for (size_t i = 0; i < wished->n; i++)
		if (!memcmp(&wished->key[i], key, sizeof(*key)))
			return true;
	return false;
}

static void put_key(const struct pacer_rule *rule, const struct pacer_limiter *t,
		    const struct pacer_packet *pkt, struct wished *wished)
{
	struct pacer_ban_key key = {rule->id, t->key_id, {0}};

	if (pkt->family == PACER_FAMILY_4) {
		pacer_limiter_words4(t, pkt, key.word, 4);
	} else {
		key.key_id |= PACER_KEY_V6;
		pacer_limiter_words6(t, pkt, key.word, PACER_KEY_WORDS);
	}
	if (!has_key(wished, &key))
		wished->key[wished->n++] = key;
}

/* An address is the source's where the rule has a limit by sources, else the destination's. */
static void read_by(const struct pacer_rule *rule, const char *text, bool dst,
		    struct wished *wished)
{
	struct pacer_packet pkt;

	for (size_t k = 0; k < rule->n_limiters; k++) {
		struct policy_key kind = compile_key_of(rule->limiter[k].key_id);

		if ((kind.kind == KEY_DST) == dst && !tally_key_read(&kind, text, &pkt))
			put_key(rule, &rule->limiter[k], &pkt, wished);
	}
}

static int read_key(const struct policy_rule *named, const struct pacer_rule *rule,
		    const char *text, struct wished *wished, struct policy_error *error)
{
	char keys[160] = "", one[40];

	wished->n = 0;
	read_by(rule, text, false, wished);
	if (!wished->n)
		read_by(rule, text, true, wished);
	if (wished->n)
		return 0;
	for (size_t i = 0; i < named->n_limits; i++) {
		size_t len = strlen(keys);

		policy_key_text(&named->limit[i].key, one, sizeof(one));
		if (!strstr(keys, one))
			snprintf(keys + len, sizeof(keys) - len, "%s%s", len ? " and " : "", one);
	}
	return policy_fail(error, 0,
			   "%.100s is no key of rule %s, which counts by %s: write it as `status` "
			   "does, or leave out --rule to ban a source",
			   text, named->name, keys);
}

/* The rule's number, -1 where there is none of the name. */
static int find_rule(const struct policy *policy, const char *name)
{
	for (size_t r = 0; r < policy->n_rules; r++)
		if (!strcmp(policy->rule[r].name, name))
			return (int)r;
	return -1;
}

static int read_wish(const struct attached *a, const struct tables *t, uint32_t i, const char *rule,
		     const char *text, struct wished *wished, struct policy_error *error)
{
	int r;

	if (!rule)
		return read_source(text, wished, error);
	r = find_rule(t->policy[i], rule);
	if (r < 0)
		return policy_fail(error, 0, "%s: its policy has no rule %.100s", a->ifname, rule);
	return read_key(&t->policy[i]->rule[r], &a->copy[t->copy[i]].policy.rule[r], text, wished,
			error);
}

static uint8_t length_of(const struct pacer_ban_key *key)
{
	struct policy_key kind = compile_key_of(key->key_id);

	return key->key_id & PACER_KEY_V6 ? kind.len6 : kind.len4;
}

/* All of them, before the first is banned. */
static int check_wishes(const struct attached *a, const struct tables *t, const char *rule,
			const struct ban_wish *wish, size_t n, struct bans_done *done,
			struct policy_error *error)
{
	const struct pacer_policy *p = &a->copy[t->copy[0]].policy;
	uint8_t len4[PACER_BAN_LENGTHS] = {0}, len6[PACER_BAN_LENGTHS] = {0};
	struct wished wished;

	ban_notes_lengths(a->lines, p, loader_now(), len4, len6);
	for (done->which = 0; done->which < n; done->which++) {
		const char *text = wish[done->which].key;
		bool six;

		if (read_wish(a, t, 0, rule, text, &wished, error))
			return BANS_WRONG;
		six = wished.key[0].key_id & PACER_KEY_V6;
		if (!rule && !ban_notes_put(six ? len6 : len4, length_of(&wished.key[0]))) {
			policy_explain(error, 0,
				       "%.100s: prefixes of %u other lengths are banned, and more "
				       "kinds would cost every packet a look: write it as longer "
				       "or shorter ones",
				       text, PACER_BAN_LENGTHS);
			return BANS_WRONG;
		}
	}
	return 0;
}

/* The entry's key moves over to its other set, if that has room. */
static bool move_over(struct pacer_ban_ask *q, const __u64 secret[PACER_SECRETS], uint32_t index)
{
	struct pacer_line *from = PACER_LINE_AT(q->table, index), copy;
	struct pacer_ban_places at;

	if (!from || !ban_notes_read(from, q->now_ns, &copy))
		return false;
	q->key = (struct pacer_ban_key){copy.ban_rule, copy.ban_key_id, {0}};
	memcpy(q->key.word, copy.ban_key, sizeof(q->key.word));
	q->outside = copy.ban_outside;
	q->hash = pacer_ban_hash(&q->key, secret);
	at = pacer_ban_places(q->bans, q->hash);
	for (uint32_t i = 0; i < at.n; i++) {
		struct pacer_line *to = PACER_LINE_AT(q->table, pacer_ban_place(&at, i));

		if (to && !pacer_ban_runs(to, q->now_ns) &&
		    pacer_ban_enter(to, q, copy.ban_until_ns))
			return pacer_ban_lift(from, &q->key, q->now_ns);
	}
	return false;
}

/*
 * Both sets of the key are full: one of those that stand there may have room in its other set. A
 * packet may miss that one's ban if it looks just then. So a table that is three quarters full
 * still has room for every key.
 */
static bool make_room(const struct pacer_ban_ask *q, const __u64 secret[PACER_SECRETS])
{
	struct pacer_ban_places at = pacer_ban_places(q->bans, q->hash);
	struct pacer_ban_ask other = *q;

	for (uint32_t i = 0; i < at.n; i++)
		if (move_over(&other, secret, pacer_ban_place(&at, i)))
			return true;
	return false;
}

static bool enter(struct attached *a, uint32_t copy, const struct pacer_ban_key *key,
		  uint64_t for_ns)
{
	const struct pacer_policy *p = &a->copy[copy].policy;
	struct pacer_table table = {a->lines, a->n_lines};
	const __u64 *secret = a->control->secret[p->secret & 1];
	struct pacer_ban_ask q = {&table, &p->bans, loader_now(), {0, 0}, *key, 1};
	uint64_t until_ns = for_ns ? q.now_ns + for_ns : PACER_NEVER;

	q.hash = pacer_ban_hash(key, secret);
	return pacer_ban_add(&q, until_ns) == PACER_BANNED ||
	       (make_room(&q, secret) && pacer_ban_add(&q, until_ns) == PACER_BANNED);
}

static bool enter_all(struct attached *a, const struct tables *t, const char *rule,
		      const struct ban_wish *wish)
{
	bool entered = true;

	for (uint32_t i = 0; i < t->n; i++) {
		struct policy_error unused;
		struct wished wished;

		/* Under the policy before, the rule may be another one. */
		if (is_shared(a, t, i) || read_wish(a, t, i, rule, wish->key, &wished, &unused))
			continue;
		for (size_t k = 0; k < wished.n; k++)
			entered &= enter(a, t->copy[i], &wished.key[k], wish->for_ns) || i;
	}
	return entered;
}

/* Where the first packet would draw it. As that does: a word that is there already stays. */
static int ready_secret(struct attached *a, struct policy_error *error)
{
	__u64 *word = a->control->secret[0], drawn[PACER_SECRETS];

	if (__atomic_load_n(&a->control->secret_ready, __ATOMIC_ACQUIRE))
		return 0;
	if (getrandom(drawn, sizeof(drawn), 0) != sizeof(drawn))
		return policy_fail(error, 0, "%s: no random numbers for a secret", a->ifname);
	for (size_t i = 0; i < PACER_SECRETS; i++)
		__sync_bool_compare_and_swap(&word[i], 0, drawn[i] ? drawn[i] : 1);
	__atomic_store_n(&a->control->secret_ready, PACER_SECRET_OF_TOOLS, __ATOMIC_RELEASE);
	return 0;
}

static int add_all(struct attached *a, const struct tables *t, const char *rule,
		   const struct ban_wish *wish, size_t n, struct bans_done *done,
		   struct policy_error *error)
{
	int result = check_wishes(a, t, rule, wish, n, done, error);

	if (result)
		return result;
	if (!table_of(a)->sets)
		return policy_fail(error, 0,
				   "%s: its policy keeps no table of bans: `xdp-pacer set %s "
				   "bans=%u` makes one",
				   a->ifname, a->ifname, POLICY_BANS_DEFAULT);
	if (ready_secret(a, error))
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (enter_all(a, t, rule, &wish[i]))
			done->done++;
		else if (!done->left_out++)
			done->which = i;
	}
	note_tables(a, t);
	return 0;
}

int bans_add(struct attached *a, const char *rule, const struct ban_wish *wish, size_t n,
	     struct bans_done *done, struct policy_error *error)
{
	int fd = change_lock(a, error), result = -1;
	struct tables tables;

	*done = (struct bans_done){0};
	if (fd < 0)
		return -1;
	if (!open_tables(a, &tables, error)) {
		result = add_all(a, &tables, rule, wish, n, done, error);
		close_tables(&tables);
	}
	close(fd);
	return result;
}

/* --- lifting -------------------------------------------------------------------------------- */

/* A wish by the text that a ban's key has, and whether it came up. */
struct wanted {
	char *key;
	size_t which;
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
		wanted[i] = (struct wanted){canonical(wish[i].key), i, false};
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

/* Returns how many bans were lifted. wanted NULL: all are. */
static size_t lift_table(struct attached *a, const struct pacer_policy *p,
			 const struct policy *policy, const char *rule, struct wanted *wanted,
			 size_t n)
{
	uint64_t now_ns = loader_now();
	size_t lifted = 0;

	for (size_t i = 0; i < (size_t)p->bans.sets * PACER_BAN_WAYS; i++) {
		struct pacer_line *line = &a->lines[p->bans.base + i], copy;
		struct wanted *at = NULL;
		struct pacer_ban_key key;
		struct ban ban;

		if (!ban_notes_read(line, now_ns, &copy))
			continue;
		describe(&copy, policy, now_ns, &ban);
		if (wanted)
			at = find_wanted(wanted, n, ban.key);
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

static void lift_all(struct attached *a, const struct tables *t, const char *rule,
		     struct wanted *wanted, size_t n, struct bans_done *done)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (!is_shared(a, t, i))
			done->done += lift_table(a, &a->copy[t->copy[i]].policy, t->policy[i], rule,
						 wanted, n);
	for (size_t i = 0; wanted && i < n; i++) {
		if (wanted[i].found)
			continue;
		if (!done->left_out++ || wanted[i].which < done->which)
			done->which = wanted[i].which;
	}
	note_tables(a, t);
}

int bans_lift(struct attached *a, const char *rule, const struct ban_wish *wish, size_t n,
	      struct bans_done *done, struct policy_error *error)
{
	struct wanted *wanted = wish ? sort_wishes(wish, n) : NULL;
	int fd, result = -1;
	struct tables tables;

	*done = (struct bans_done){0};
	if (wish && !wanted)
		return policy_fail(error, 0, "%s: no memory", a->ifname);
	fd = change_lock(a, error);
	if (fd >= 0 && !open_tables(a, &tables, error)) {
		lift_all(a, &tables, rule, wanted, n, done);
		close_tables(&tables);
		result = 0;
	}
	if (fd >= 0)
		close(fd);
	free_wanted(wanted, n);
	return result;
}
