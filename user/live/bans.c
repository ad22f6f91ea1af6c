/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/bans.h"

#include <stdio.h>
#include <string.h>

#include "ban.h"
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
	tally_key_text(&kind, &pkt, ban->key, sizeof(ban->key));
	ban->left_ns = entry->ban_until_ns - now_ns;
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

		if (!read_entry(&a->lines[table->base + i], now_ns, &copy))
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

static bool is_meant(const struct ban *ban, const char *key, const char *rule)
{
	return (!key || !strcmp(ban->key, key)) && (!rule || !strcmp(ban->rule, rule));
}

size_t bans_lift(const struct attached *a, const struct policy *policy, const char *key,
		 const char *rule)
{
	const struct pacer_bans *table = table_of(a);
	uint64_t now_ns = loader_now();
	size_t n = 0;

	for (size_t i = 0; i < bans_room(a); i++) {
		struct pacer_line *line = &a->lines[table->base + i], copy;
		struct pacer_ban_key whole;
		struct ban ban;

		if (!read_entry(line, now_ns, &copy))
			continue;
		describe(&copy, policy, now_ns, &ban);
		if (!is_meant(&ban, key, rule))
			continue;
		whole = (struct pacer_ban_key){copy.ban_rule, copy.ban_key_id, {0}};
		memcpy(whole.word, copy.ban_key, sizeof(whole.word));
		n += pacer_ban_lift(line, &whole, now_ns);
	}
	return n;
}
