/* SPDX-License-Identifier: GPL-2.0-only */
/* Banning from outside, for bans.h and ban_enter.h. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ban.h"
#include "key.h"
#include "live/ban_enter.h"
#include "live/ban_notes.h"
#include "live/ban_tables.h"
#include "live/bans.h"
#include "live/copies.h"
#include "live/host.h"
#include "live/in_shadow.h"
#include "live/secret.h"
#include "parse.h"
#include "plan/compile.h"

/* The keys that a wish is for: under a rule there may be limits by several kinds of keys. */
struct wished {
	struct pacer_ban_key key[2 * PACER_LIMITERS_MAX];
	size_t n;
};

static int read_source(const char *text, struct wished *wished, struct policy_error *error)
{
	uint32_t word[4] = {0};
	struct prefix prefix, four;
	char meant[64];

	if (units_prefix(text, &prefix))
		return policy_fail(error, 0,
				   "%.200s is no source, such as 192.0.2.1, 192.0.2.0/24 or "
				   "2001:db8::/64 with its host bits 0; for a key of a rule's "
				   "limit name the --rule",
				   text);
	if (units_prefix_mapped(&prefix, &four))
		return policy_fail(
		    error, 0,
		    "%.200s is an IPv4 address in the form of IPv6, and no packet has it: write %s",
		    text, units_prefix_text(&four, meant, sizeof(meant)));
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
		    const struct pacer_packet *pkt, enum pacer_family family, struct wished *wished)
{
	struct pacer_ban_key key = {rule->id, t->key_id, {0}};

	if (family == PACER_FAMILY_4) {
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

		if (!(kind.parts & KEY_PART_SRC) != dst || tally_key_read(&kind, text, &pkt) ||
		    !tally_key_fits(&rule->limiter[k], &pkt))
			continue;
		if (pkt.family != PACER_FAMILY_6) /* one without an address is a key of both */
			put_key(rule, &rule->limiter[k], &pkt, PACER_FAMILY_4, wished);
		if (pkt.family != PACER_FAMILY_4)
			put_key(rule, &rule->limiter[k], &pkt, PACER_FAMILY_6, wished);
	}
}

static int read_key(const struct policy_rule *named, const struct pacer_rule *rule,
		    const char *text, struct wished *wished, struct policy_error *error)
{
	char keys[2 * POLICY_KEY_TEXT] = "", one[POLICY_KEY_TEXT];

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

/* -1 without a word where that table's policy has no such rule. */
static int read_wish(const struct attached *a, const struct ban_tables *t, uint32_t i,
		     const char *rule, const char *text, struct wished *wished,
		     struct policy_error *error)
{
	int r;

	if (!rule)
		return read_source(text, wished, error);
	r = find_rule(t->policy[i], rule);
	return r < 0 ? -1
		     : read_key(&t->policy[i]->rule[r], &a->copy[t->copy[i]].policy.rule[r], text,
				wished, error);
}

static uint8_t length_of(const struct pacer_ban_key *key)
{
	struct policy_key kind = compile_key_of(key->key_id);

	return key->key_id & PACER_KEY_V6 ? kind.src6 : kind.src4;
}

/* All of them, before the first is banned. */
static int check_wishes(const struct attached *a, const struct ban_tables *t, const char *rule,
			const struct ban_wish *wish, size_t n, struct bans_done *done,
			struct policy_error *error)
{
	const struct pacer_policy *p = &a->copy[t->copy[0]].policy;
	uint8_t len4[PACER_BAN_LENGTHS] = {0}, len6[PACER_BAN_LENGTHS] = {0};
	struct wished wished;

	done->which = n;
	if (rule && find_rule(t->policy[0], rule) < 0) {
		policy_explain(error, 0, "%s: its policy has no rule %.100s", a->ifname, rule);
		return BANS_WRONG;
	}
	ban_notes_lengths(a->lines, p, host_now_ns(), len4, len6);
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
	q->note = copy.ban_note;
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

bool ban_enter(struct attached *a, uint32_t copy, const struct pacer_ban_key *key,
	       uint64_t until_ns)
{
	const struct pacer_policy *p = &a->copy[copy].policy;
	struct pacer_table table = {a->lines, a->n_lines};
	const __u64 *secret = a->control->secret[p->secret & 1];
	struct pacer_ban_ask q = {&table, &p->bans, host_now_ns(), {0, 0}, *key, 1};

	q.hash = pacer_ban_hash(key, secret);
	return pacer_ban_add(&q, until_ns) == PACER_BANNED ||
	       (make_room(&q, secret) && pacer_ban_add(&q, until_ns) == PACER_BANNED);
}

static bool enter_all(struct attached *a, const struct ban_tables *t, const char *rule,
		      const struct ban_wish *wish)
{
	uint64_t until_ns = wish->until_ns ? wish->until_ns
			    : wish->for_ns ? host_now_ns() + wish->for_ns
					   : PACER_NEVER;
	bool entered = true;

	for (uint32_t i = 0; i < t->n; i++) {
		struct policy_error unused;
		struct wished wished;

		/* Under the policy before, the rule may be another one. */
		if (ban_tables_shared(a, t, i) ||
		    read_wish(a, t, i, rule, wish->key, &wished, &unused))
			continue;
		for (size_t k = 0; k < wished.n; k++)
			entered &= ban_enter(a, t->copy[i], &wished.key[k], until_ns) || i;
	}
	return entered;
}

static int add_all(struct attached *a, const struct ban_tables *t, const char *rule,
		   const struct ban_wish *wish, size_t n, struct bans_done *done,
		   struct policy_error *error)
{
	int result = check_wishes(a, t, rule, wish, n, done, error);

	if (result)
		return result;
	if (!bans_room(a))
		return policy_fail(error, 0,
				   "%s: its policy keeps no table of bans: `xdp-pacer set %s "
				   "bans=%u` makes one",
				   a->ifname, a->ifname, POLICY_BANS_DEFAULT);
	if (secret_ready(a, error))
		return -1;
	for (size_t i = 0; i < n; i++) {
		bool entered = enter_all(a, t, rule, &wish[i]);

		if (entered)
			done->done++;
		else if (!done->left_out++)
			done->which = i;
		if (wish[i].left_out && !done->in_shadow)
			*wish[i].left_out = !entered;
	}
	ban_tables_note(a, t);
	return 0;
}

static int add_to(struct attached *a, const char *rule, const struct ban_wish *wish, size_t n,
		  struct bans_done *done, struct policy_error *error)
{
	struct ban_tables tables;
	int result;

	if (ban_tables_open(a, &tables, error))
		return -1;
	result = add_all(a, &tables, rule, wish, n, done, error);
	ban_tables_close(&tables);
	return result;
}

/* As far as a shadow has that rule and room for bans. */
static int add_in_shadow(const struct attached *a, const char *rule, const struct ban_wish *wish,
			 size_t n, struct policy_error *error)
{
	struct policy_error why = {0};
	struct attached shadow;
	struct bans_done also = {.in_shadow = true};
	int result = in_shadow_open(a, &shadow, error);

	if (result)
		return result < 0 ? -1 : 0;
	if (bans_room(&shadow))
		result = add_to(&shadow, rule, wish, n, &also, &why);
	attached_release(&shadow);
	return result && result != BANS_WRONG ? in_shadow_fail(&why, error) : 0;
}

int bans_add(struct attached *a, const char *rule, const struct ban_wish *wish, size_t n,
	     struct bans_done *done, struct policy_error *error)
{
	int fd = copies_lock_of(a, error), result;

	*done = (struct bans_done){0};
	if (fd < 0)
		return -1;
	result = add_to(a, rule, wish, n, done, error);
	if (!result)
		result = add_in_shadow(a, rule, wish, n, error);
	close(fd);
	return result;
}
