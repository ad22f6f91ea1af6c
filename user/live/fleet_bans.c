/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/fleet_bans.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "live/ban_enter.h"
#include "live/ban_notes.h"
#include "live/ban_tables.h"
#include "live/copies.h"
#include "live/host.h"
#include "live/secret.h"
#include "plan/compile.h"
#include "rules.h"

struct fleet_bans fleet_bans_of(const struct policy *policy)
{
	struct fleet_bans which = {.n = 0, .sources = policy->fleet.bans};

	for (size_t i = 0; i < policy->n_rules; i++)
		if (policy->rule[i].ban_fleet)
			which.rule[which.n++] = compile_name_id(policy->rule[i].name);
	return which;
}

static bool is_shared(const struct fleet_bans *which, uint32_t rule)
{
	if (rule == PACER_BAN_SOURCE)
		return which->sources;
	for (size_t i = 0; i < which->n; i++)
		if (which->rule[i] == rule)
			return true;
	return false;
}

/* --- text --------------------------------------------------------------------------------------
 */

static size_t words_of(uint32_t key_id)
{
	return key_id & PACER_KEY_V6 ? PACER_KEY_WORDS : 4;
}

void fleet_bans_text(const struct pacer_ban_key *key, char text[FLEET_BAN_TEXT])
{
	int at = snprintf(text, FLEET_BAN_TEXT, "%08" PRIx32 "%08" PRIx32, key->rule, key->key_id);

	for (size_t i = 0; i < words_of(key->key_id); i++)
		at += snprintf(text + at, FLEET_BAN_TEXT - at, "%08" PRIx32, key->word[i]);
}

/* Eight digits, as they are written. */
static bool read_word(const char *text, uint32_t *word)
{
	*word = 0;
	for (size_t i = 0; i < 8; i++) {
		static const char digits[] = "0123456789abcdef";
		const char *digit = text[i] ? strchr(digits, text[i]) : NULL;

		if (!digit)
			return false;
		*word = *word << 4 | (uint32_t)(digit - digits);
	}
	return true;
}

/* One of everybody is none. */
static bool is_source(const struct pacer_ban_key *key)
{
	struct policy_key kind = compile_key_of(key->key_id);
	bool six = key->key_id & PACER_KEY_V6;
	uint32_t len = six ? kind.src6 : kind.src4;
	struct pacer_ban_key made =
	    pacer_ban_source(six ? PACER_FAMILY_6 : PACER_FAMILY_4, key->word, len);

	return len && len <= (six ? 128 : 32) && !memcmp(&made, key, sizeof(made));
}

bool fleet_bans_read(const struct fleet_bans *which, const char *text, struct pacer_ban_key *key)
{
	size_t len = strlen(text);

	memset(key, 0, sizeof(*key));
	if (len < 16 || !read_word(text, &key->rule) || !read_word(text + 8, &key->key_id) ||
	    len != 16 + 8 * words_of(key->key_id))
		return false;
	for (size_t i = 0; i < words_of(key->key_id); i++)
		if (!read_word(text + 16 + 8 * i, &key->word[i]))
			return false;
	return is_shared(which, key->rule) && (key->rule != PACER_BAN_SOURCE || is_source(key));
}

/* --- those there are ---------------------------------------------------------------------------
 */

void fleet_bans_each(const struct attached *a, const struct fleet_bans *which,
		     void (*each)(const struct pacer_ban_key *key, uint64_t until_ns, void *arg),
		     void *arg)
{
	const struct pacer_policy *p = &a->copy[copies_in_force(a)].policy;
	const struct pacer_bans *bans = &p->bans;
	struct pacer_table table = {a->lines, a->n_lines};
	uint64_t now_ns = host_now_ns();

	if (pacer_ban_none(&table, bans, now_ns))
		return;
	for (size_t i = 0; i < (size_t)bans->sets * PACER_BAN_WAYS; i++) {
		struct pacer_ban_key key;
		struct pacer_line copy;

		if (!ban_notes_read(&a->lines[bans->base + i], now_ns, &copy) ||
		    !is_shared(which, copy.ban_rule))
			continue;
		key = (struct pacer_ban_key){copy.ban_rule, copy.ban_key_id, {0}};
		memcpy(key.word, copy.ban_key, words_of(key.key_id) * sizeof(*key.word));
		/* Two CPUs may have entered it twice. */
		each(&key, pacer_later(copy.ban_until_ns, ban_tables_until(a, p, &key, now_ns)),
		     arg);
	}
}

/* --- changes -----------------------------------------------------------------------------------
 */

/* Does the policy's rule count by such keys? */
static bool has_kind(const struct pacer_policy *p, const struct pacer_ban_key *key)
{
	if (key->rule == PACER_BAN_SOURCE)
		return true;
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; pacer_rules_has(&p->rules, r) && k < p->rule[r].n_limiters; k++)
			if (p->rule[r].id == key->rule &&
			    p->rule[r].limiter[k].key_id == (key->key_id & ~PACER_KEY_V6))
				return true;
	return false;
}

/*
 * A source's prefix may be of a length for which there is no place. The table is walked only where
 * packets do not ask for that length yet: there may be hundreds to take at once, under the lock.
 */
static bool has_length(const struct attached *a, const struct pacer_policy *p,
		       const struct pacer_ban_key *key, uint64_t now_ns)
{
	uint8_t len4[PACER_BAN_LENGTHS] = {0}, len6[PACER_BAN_LENGTHS] = {0};
	const struct pacer_line like = {.ban_key_id = key->key_id};
	struct policy_key kind = compile_key_of(key->key_id);

	if (key->rule != PACER_BAN_SOURCE || ban_notes_asked_for(p, &like))
		return true;
	ban_notes_lengths(a->lines, p, now_ns, len4, len6);
	return key->key_id & PACER_KEY_V6 ? ban_notes_put(len6, kind.src6)
					  : ban_notes_put(len4, kind.src4);
}

/* In one table. The one that a trial would give way to has it if it can. */
static bool set_one(struct attached *a, const struct ban_tables *t, uint32_t i,
		    const struct fleet_ban *ban)
{
	const struct pacer_policy *p = &a->copy[t->copy[i]].policy;
	uint64_t now_ns = host_now_ns();

	if (!p->bans.sets)
		return !ban->until_ns;
	if (!ban->until_ns) {
		ban_tables_empty(a, p, &ban->key, UINT64_MAX);
		return true;
	}
	if (!has_kind(p, &ban->key) || ban->until_ns <= now_ns ||
	    !has_length(a, p, &ban->key, now_ns))
		return false;
	if (ban_tables_until(a, p, &ban->key, now_ns) > ban->until_ns) /* its row would not go on */
		ban_tables_empty(a, p, &ban->key, UINT64_MAX);
	return ban_enter(a, t, i, &ban->key, ban->until_ns) == BAN_ENTERED;
}

/* Lifted, or made to end after what is to be put in: of two ends the later one counts. */
static bool has_changed(const struct attached *a, const struct ban_tables *t,
			const struct fleet_ban *ban)
{
	uint64_t now_ns = host_now_ns(), was_ns = ban->was_ns > now_ns ? ban->was_ns : 0;
	uint64_t is_ns = ban_tables_until(a, &a->copy[t->copy[0]].policy, &ban->key, now_ns);

	return is_ns != was_ns && (!is_ns || is_ns > ban->until_ns);
}

int fleet_bans_set(struct attached *a, struct fleet_ban *ban, size_t n, struct policy_error *error)
{
	int fd = copies_lock_of(a, error), result = -1;
	struct ban_tables t;

	if (fd < 0)
		return -1;
	if (!secret_ready(a, error) && !ban_tables_open(a, &t, error)) {
		for (size_t k = 0; k < n; k++) {
			ban[k].changed = has_changed(a, &t, &ban[k]);
			ban[k].done = !ban[k].changed && set_one(a, &t, 0, &ban[k]);
			if (ban[k].changed)
				continue;
			if (ban_tables_owner(a, &t)) /* it may come back */
				(void)set_one(a, &t, 1, &ban[k]);
		}
		ban_tables_note(a, &t);
		ban_tables_close(&t);
		result = 0;
	}
	close(fd);
	return result;
}
