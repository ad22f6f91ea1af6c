/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/ban_notes.h"

#include "lock.h"
#include "plan/compile.h"
#include "rules.h"
#include "short.h"

bool ban_notes_read(const struct pacer_line *line, uint64_t now_ns, struct pacer_line *copy)
{
	uint32_t before = pacer_acquire((__u32 *)&line->ban_lock);

	*copy = *line;
	PACER_BARRIER();
	return !(before & PACER_LOCK_HELD) && pacer_load(&line->ban_lock) == before &&
	       copy->ban_until_ns > now_ns;
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

void ban_notes_lengths(const struct pacer_line *lines, const struct pacer_policy *p,
		       uint64_t now_ns, uint8_t len4[PACER_BAN_LENGTHS],
		       uint8_t len6[PACER_BAN_LENGTHS])
{
	struct noted noted;

	note(lines, p, now_ns, &noted);
	put_lengths(len4, noted.len4, 32);
	put_lengths(len6, noted.len6, 128);
}
