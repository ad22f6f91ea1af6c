/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/ban_notes.h"

#include "live/still.h"
#include "lock.h"
#include "plan/compile.h"
#include "rules.h"
#include "short.h"

bool ban_notes_read(const struct pacer_line *line, uint64_t now_ns, struct pacer_line *copy)
{
	uint32_t before = pacer_acquire((__u32 *)&line->ban_lock), after;

	still_words(line, copy, sizeof(*copy));
	PACER_BARRIER();
	after = pacer_load(&line->ban_lock);
	/* Held by who was killed it may be for long: as pacer_ban_holds, which packets go by. */
	return !((before ^ after) & ~(PACER_LOCK_HELD | PACER_BAN_BY_TOOL)) &&
	       copy->ban_until_ns > now_ns &&
	       pacer_load64(&line->ban_until_ns) == copy->ban_until_ns;
}

static bool has_length(const uint8_t len[PACER_BAN_LENGTHS], uint8_t wanted)
{
	for (size_t i = 0; i < PACER_BAN_LENGTHS; i++)
		if (len[i] == wanted)
			return true;
	return false;
}

bool ban_notes_put(uint8_t len[PACER_BAN_LENGTHS], uint8_t wanted)
{
	for (size_t i = 0; i < PACER_BAN_LENGTHS && !has_length(len, wanted); i++)
		if (!len[i])
			__atomic_store_n(&len[i], wanted, __ATOMIC_RELEASE);
	return has_length(len, wanted);
}

static uint8_t length_of(uint32_t key_id, bool six)
{
	struct policy_key kind = compile_key_of(key_id);

	return six ? kind.src6 : kind.src4;
}

bool ban_notes_asked_for(const struct pacer_policy *p, const struct pacer_line *entry)
{
	bool six = entry->ban_key_id & PACER_KEY_V6;

	return p->flags & PACER_SOURCES_BANNED &&
	       has_length(six ? p->bans.len6 : p->bans.len4, length_of(entry->ban_key_id, six));
}

/* Of each prefix length of a family: is a source of it banned? Of each rule, is a key? */
struct noted {
	bool len4[33], len6[129];
	bool rule[PACER_RULES_MAX];
};

static void note_entry(const struct pacer_line *entry, const struct pacer_policy *p,
		       struct noted *noted)
{
	bool six = entry->ban_key_id & PACER_KEY_V6;
	uint8_t len = length_of(entry->ban_key_id, six);

	if (entry->ban_rule == PACER_BAN_SOURCE && len <= (six ? 128 : 32))
		*(six ? &noted->len6[len] : &noted->len4[len]) = true;
	for (size_t r = 0; r < PACER_RULES_MAX && entry->ban_note & PACER_BAN_OUTSIDE; r++)
		noted->rule[r] |= pacer_rules_has(&p->rules, r) && p->rule[r].id == entry->ban_rule;
}

static void note(const struct pacer_line *lines, const struct pacer_policy *p, uint64_t now_ns,
		 struct noted *noted)
{
	*noted = (struct noted){0};
	for (size_t i = 0; i < (size_t)p->bans.sets * PACER_BAN_WAYS; i++) {
		struct pacer_line copy;

		if (ban_notes_read(&lines[p->bans.base + i], now_ns, &copy))
			note_entry(&copy, p, noted);
	}
}

/* What is not there any more goes first, so that there is room. */
static bool put_lengths(uint8_t len[PACER_BAN_LENGTHS], const bool *wanted, uint32_t max)
{
	bool any = false;

	for (size_t i = 0; i < PACER_BAN_LENGTHS; i++)
		if (!wanted[len[i]])
			__atomic_store_n(&len[i], 0, __ATOMIC_RELEASE);
	for (uint32_t l = 1; l <= max; l++)
		any |= wanted[l] && ban_notes_put(len, l);
	return any;
}

/* A rule that has stopped being plain is that again with the next policy. */
void ban_notes_write(const struct pacer_line *lines, struct pacer_policy *p, uint64_t now_ns)
{
	struct noted noted;
	bool any;

	note(lines, p, now_ns, &noted);
	any = put_lengths(p->bans.len4, noted.len4, 32);
	any |= put_lengths(p->bans.len6, noted.len6, 128);
	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		__atomic_store_n(&p->rule[r].outside, noted.rule[r], __ATOMIC_RELEASE);
		if (noted.rule[r] && p->rule[r].plain)
			__atomic_store_n(&p->rule[r].plain, PACER_PLAIN_BANNING, __ATOMIC_RELEASE);
	}
	if (any)
		__atomic_or_fetch(&p->flags, PACER_SOURCES_BANNED, __ATOMIC_RELEASE);
	else
		__atomic_and_fetch(&p->flags, ~PACER_SOURCES_BANNED, __ATOMIC_RELEASE);
}

/* Of rules: a plain one is that again with the next policy. */
static bool expect_rule(struct pacer_policy *p, uint32_t id)
{
	bool news = false;

	for (size_t r = 0; r < PACER_RULES_MAX; r++) {
		struct pacer_rule *rule = &p->rule[r];

		if (!pacer_rules_has(&p->rules, r) || rule->id != id || rule->outside)
			continue;
		__atomic_store_n(&rule->outside, true, __ATOMIC_RELEASE);
		if (rule->plain)
			__atomic_store_n(&rule->plain, PACER_PLAIN_BANNING, __ATOMIC_RELEASE);
		news = true;
	}
	return news;
}

int ban_notes_expect(const struct pacer_line *lines, struct pacer_policy *p,
		     const struct pacer_ban_key *key, uint64_t now_ns)
{
	bool six = key->key_id & PACER_KEY_V6;
	uint8_t *at = six ? p->bans.len6 : p->bans.len4, len = length_of(key->key_id, six);

	if (key->rule != PACER_BAN_SOURCE)
		return expect_rule(p, key->rule);
	if (has_length(at, len) && p->flags & PACER_SOURCES_BANNED)
		return 0;
	if (!ban_notes_put(at, len)) { /* some may be of bans that have ended */
		ban_notes_write(lines, p, now_ns);
		if (!ban_notes_put(at, len))
			return -1;
	}
	__atomic_or_fetch(&p->flags, PACER_SOURCES_BANNED, __ATOMIC_RELEASE);
	return 1;
}

void ban_notes_lengths(const struct pacer_line *lines, const struct pacer_policy *p,
		       uint64_t now_ns, uint8_t len4[PACER_BAN_LENGTHS],
		       uint8_t len6[PACER_BAN_LENGTHS])
{
	struct noted noted;

	note(lines, p, now_ns, &noted);
	put_lengths(len4, noted.len4, 32);
	put_lengths(len6, noted.len6, 128);
}
