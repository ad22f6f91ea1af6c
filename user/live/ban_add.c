/* SPDX-License-Identifier: GPL-2.0-only */
/* Banning from outside, for bans.h and ban_enter.h. */
#include "live/ban_mark.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "key.h"
#include "live/ban_enter.h"
#include "live/ban_notes.h"
#include "live/ban_tables.h"
#include "live/bans.h"
#include "live/copies.h"
#include "live/host.h"
#include "live/in_shadow.h"
#include "live/secret.h"
#include "live/trial.h"
#include "parse.h"
#include "plan/compile.h"
#include "short.h"

#define WISHED_KEYS (2 * PACER_LIMITERS_MAX)

/* The keys that a wish is for: under a rule there may be limits by several kinds of keys. */
struct wished {
	struct pacer_ban_key key[WISHED_KEYS];
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

/*
 * An address is the source's where the rule has a limit by sources, else the destination's. Limits
 * that are there for a time alone are another policy's, and so are their keys.
 */
static void read_by(const struct pacer_rule *rule, const char *text, bool dst,
		    struct wished *wished)
{
	struct pacer_packet pkt;

	for (size_t k = 0; k < rule->n_limiters; k++) {
		struct policy_key kind = compile_key_of(rule->limiter[k].key_id);

		if (rule->limiter[k].until_ns || !(kind.parts & KEY_PART_SRC) != dst ||
		    tally_key_read(&kind, text, &pkt) || !tally_key_fits(&rule->limiter[k], &pkt))
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
	for (int dst = 0; dst < 2 && !wished->n; dst++)
		read_by(rule, text, dst, wished);
	if (wished->n)
		return 0;
	if (!named->n_limits)
		return policy_fail(
		    error, 0,
		    "rule %s has no limit, and so no keys: leave out --rule to ban a "
		    "source",
		    named->name);
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

/* By the i-th policy, which has the rule. */
static int read_wish(const struct attached *a, const struct ban_tables *t, uint32_t i,
		     const char *rule, const char *text, struct wished *wished,
		     struct policy_error *error)
{
	int r;

	if (!rule)
		return read_source(text, wished, error);
	r = find_rule(t->policy[i], rule);
	return read_key(&t->policy[i]->rule[r], &a->copy[t->copy[i]].policy.rule[r], text, wished,
			error);
}

static uint8_t length_of(const struct pacer_ban_key *key)
{
	struct policy_key kind = compile_key_of(key->key_id);

	return key->key_id & PACER_KEY_V6 ? kind.src6 : kind.src4;
}

/* The lengths of the sources that are banned, which are few. */
struct lengths {
	uint8_t len4[PACER_BAN_LENGTHS], len6[PACER_BAN_LENGTHS];
};

static bool put_length(struct lengths *of, const struct pacer_ban_key *key)
{
	return ban_notes_put(key->key_id & PACER_KEY_V6 ? of->len6 : of->len4, length_of(key));
}

/* All of them, before the first is banned. */
static int check_wishes(const struct attached *a, const struct ban_tables *t, const char *rule,
			const struct ban_wish *wish, size_t n, struct bans_done *done,
			struct policy_error *error)
{
	const struct pacer_policy *p = &a->copy[t->copy[0]].policy;
	struct lengths lengths = {0};
	struct wished wished;

	done->which = n;
	if (rule && find_rule(t->policy[0], rule) < 0) {
		policy_explain(error, 0, "%s: its policy has no rule %.100s", a->ifname, rule);
		return BANS_WRONG;
	}
	ban_notes_lengths(a->lines, p, host_now_ns(), lengths.len4, lengths.len6);
	for (done->which = 0; done->which < n; done->which++) {
		const char *text = wish[done->which].key;

		if (read_wish(a, t, 0, rule, text, &wished, error))
			return BANS_WRONG;
		if (!rule && p->bans.sets && !put_length(&lengths, &wished.key[0])) {
			policy_explain(error, 0,
				       "%.100s: prefixes of %u other lengths are banned, and "
				       "more kinds would cost every packet a look: write it as "
				       "longer or shorter ones",
				       text, PACER_BAN_LENGTHS);
			return BANS_WRONG;
		}
	}
	return 0;
}

/* The policies that have the table say before that it holds the ban, lest a kill leaves one for
 * which nobody asks. */
static bool expect(struct attached *a, const struct ban_tables *t, const struct pacer_ban_key *key,
		   uint64_t now_ns)
{
	for (uint32_t k = 0; k < t->n; k++) {
		struct pacer_policy *p = &a->copy[t->copy[k]].policy;
		int news = p->bans.sets ? ban_notes_expect(a->lines, p, key, now_ns) : 0;

		if (news < 0)
			return false;
		if (news)
			pacer_short_reshape(p, a->control, t->copy[k]);
	}
	return true;
}

enum ban_entered ban_enter(struct attached *a, const struct ban_tables *t, uint32_t i,
			   const struct pacer_ban_key *key, uint64_t until_ns)
{
	const struct pacer_policy *p = &a->copy[t->copy[i]].policy;
	struct pacer_table table = {a->lines, a->n_lines};
	const __u64 *secret = a->control->secret[p->secret & 1];
	struct pacer_ban_ask q = {&table, &p->bans, host_now_ns(), {0, 0}, *key, 1};

	if (!p->bans.sets) /* no lines are its own: those at its base are another's */
		return BAN_NO_ROOM;
	if (!expect(a, t, key, q.now_ns))
		return BAN_NO_LENGTH;
	q.hash = pacer_ban_hash(key, secret);
	return ban_tables_put(&q, secret, until_ns) ? BAN_ENTERED : BAN_NO_ROOM;
}

/* --- all of them ---------------------------------------------------------------------------- */

static int lacks(enum ban_entered entered, struct policy_error *why)
{
	if (entered == BAN_NO_LENGTH)
		return policy_fail(why, 0, "prefixes of %u other lengths are banned there",
				   PACER_BAN_LENGTHS);
	return policy_fail(why, 0, "there is no room: raise bans in that policy");
}

static uint64_t end_so_far(const struct attached *a, const struct ban_tables *t, uint32_t i,
			   const struct pacer_ban_key *key)
{
	const struct pacer_policy *p = &a->copy[t->copy[i]].policy;
	struct pacer_table table = {a->lines, a->n_lines};
	struct pacer_ban_ask q = {&table, &p->bans, host_now_ns(), {0, 0}, *key, 0};

	q.hash = pacer_ban_hash(key, a->control->secret[p->secret & 1]);
	return p->bans.sets ? pacer_ban_until(&q) : 0;
}

/* The key's ban ends when it did before: was_ns, 0 for a key that was not banned. */
static void take_back(struct attached *a, const struct ban_tables *t, uint32_t i,
		      const struct pacer_ban_key *key, uint64_t until_ns, uint64_t was_ns)
{
	const struct pacer_policy *p = &a->copy[t->copy[i]].policy;
	struct pacer_ban_places at =
	    pacer_ban_places(&p->bans, pacer_ban_hash(key, a->control->secret[p->secret & 1]));

	for (uint32_t k = 0; k < at.n && was_ns < until_ns; k++) {
		struct pacer_line *line = &a->lines[pacer_ban_place(&at, k)];

		if (pacer_ban_is(line, key))
			(void)!pacer_cas64(&line->ban_until_ns, until_ns, was_ns);
	}
}

/* Into the i-th table, all that the wish stands for. 0, or -1: none, and *why says why not. */
static int enter_in(struct attached *a, const struct ban_tables *t, uint32_t i,
		    const struct wished *wished, uint64_t until_ns, struct policy_error *why)
{
	uint64_t was_ns[WISHED_KEYS];

	for (size_t n = 0; n < wished->n; n++) {
		enum ban_entered entered;

		was_ns[n] = end_so_far(a, t, i, &wished->key[n]);
		entered = ban_enter(a, t, i, &wished->key[n], until_ns);
		if (entered == BAN_ENTERED)
			continue;
		while (n-- > 0)
			take_back(a, t, i, &wished->key[n], until_ns, was_ns[n]);
		return lacks(entered, why);
	}
	return 0;
}

/* Are these keys of the i-th policy's rule, too? The same text may be another key there. */
static bool are_keys(const struct attached *a, const struct ban_tables *t, uint32_t i,
		     const char *rule, const char *text, const struct wished *wished)
{
	struct policy_error unused;
	struct wished there;

	if (!rule)
		return true;
	if (read_wish(a, t, i, rule, text, &there, &unused))
		return false;
	for (size_t n = 0; n < wished->n; n++)
		if (!has_key(&there, &wished->key[n]))
			return false;
	return true;
}

/* Bans of a rule that the i-th policy does not have are nobody's there. */
static bool is_concerned(const struct ban_tables *t, uint32_t i, const char *rule)
{
	return !rule || find_rule(t->policy[i], rule) >= 0;
}

/*
 * Is what is banned in force banned under the i-th policy as well, if it stands in the table of
 * that? Else *why says why not.
 */
static bool holds_there(const struct attached *a, const struct ban_tables *t, uint32_t i,
			const char *rule, const char *text, const struct wished *wished,
			struct policy_error *why)
{
	if (!a->copy[t->copy[i]].policy.bans.sets)
		policy_explain(why, 0, "that policy keeps no table of bans");
	else if (!are_keys(a, t, i, rule, text, wished))
		policy_explain(why, 0, "rule %.100s counts by other keys there", rule);
	else
		return true;
	return false;
}

static void note_lack(struct bans_lack *lack, size_t which, const struct policy_error *why)
{
	if (!lack->n++) {
		lack->which = which;
		lack->why = *why;
	}
}

/* A shadow. */
struct beside {
	bool is;
	struct attached a;
	struct ban_tables t;
};

static int open_beside(const struct attached *a, struct beside *b, struct policy_error *error)
{
	struct policy_error why = {0};
	int result = in_shadow_open(a, &b->a, error);

	b->is = false;
	if (result)
		return result < 0 ? result : 0;
	b->is = !secret_ready(&b->a, &why) && !ban_tables_open(&b->a, &b->t, &why);
	if (b->is)
		return 0;
	attached_release(&b->a);
	return in_shadow_fail(&why, error);
}

static void close_beside(struct beside *b)
{
	if (!b->is)
		return;
	ban_tables_note(&b->a, &b->t);
	ban_tables_close(&b->t);
	attached_release(&b->a);
}

/* What is not banned in force is not banned elsewhere either: it would come into force later. */
static void add_one(struct attached *a, const struct ban_tables *t, struct beside *beside,
		    const char *rule, const struct ban_wish *wish, size_t which,
		    struct bans_done *done)
{
	struct policy_error why = {0};
	uint64_t until_ns = wish->until_ns ? wish->until_ns
			    : wish->for_ns ? host_now_ns() + wish->for_ns
					   : PACER_NEVER;
	struct wished wished;
	bool out = read_wish(a, t, 0, rule, wish->key, &wished, &why) ||
		   enter_in(a, t, 0, &wished, until_ns, &why);

	if (wish->left_out)
		*wish->left_out = out;
	if (out) {
		if (!done->left_out++)
			done->which = which;
		return;
	}
	done->done++;
	if (t->n > 1 && is_concerned(t, 1, rule) &&
	    !holds_there(a, t, 1, rule, wish->key, &wished, &why))
		note_lack(&done->before, which, &why);
	if (beside->is && is_concerned(&beside->t, 0, rule) &&
	    (!holds_there(&beside->a, &beside->t, 0, rule, wish->key, &wished, &why) ||
	     enter_in(&beside->a, &beside->t, 0, &wished, until_ns, &why)))
		note_lack(&done->in_shadow, which, &why);
}

static int check_table(const struct attached *a, const struct ban_tables *t,
		       struct policy_error *error)
{
	if (bans_room(a))
		return 0;
	if (t->n > 1)
		return policy_fail(error, 0,
				   "%s: the policy on trial keeps no table of bans: let it roll "
				   "back, or confirm it and set bans",
				   a->ifname);
	return policy_fail(error, 0,
			   "%s: its policy keeps no table of bans: `xdp-pacer set %s bans=%u` "
			   "makes one",
			   a->ifname, a->ifname, POLICY_BANS_DEFAULT);
}

static int add_all(struct attached *a, const struct ban_tables *t, const char *rule,
		   const struct ban_wish *wish, size_t n, struct bans_done *done,
		   struct policy_error *error)
{
	int result = check_wishes(a, t, rule, wish, n, done, error);
	struct beside beside;

	if (result)
		return result;
	if (check_table(a, t, error) || secret_ready(a, error))
		return -1;
	result = open_beside(a, &beside, error);
	for (size_t i = 0; i < n; i++)
		add_one(a, t, &beside, rule, &wish[i], i, done);
	ban_tables_note(a, t);
	close_beside(&beside);
	return result;
}

int bans_add(struct attached *a, const char *rule, const struct ban_wish *wish, size_t n,
	     struct bans_done *done, struct policy_error *error)
{
	int fd = copies_lock_of(a, error), result;
	struct ban_tables tables;

	*done = (struct bans_done){0};
	if (fd < 0)
		return -1;
	result = load_trial_stands(a, error) || ban_tables_open(a, &tables, error) ? -1 : 0;
	if (!result) {
		result = add_all(a, &tables, rule, wish, n, done, error);
		ban_tables_close(&tables);
	}
	close(fd);
	return result;
}
