/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/tool_bans.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "live/allow.h"
#include "live/host.h"

static int trie_of(const struct attached *a, int family)
{
	return family == 4 ? a->tools4_fd : a->tools6_fd;
}

static struct tool_ban ban_of(int family, const struct pacer_tools6 *key,
			      const struct pacer_tools_value *value)
{
	struct tool_ban ban = {{.family = family, .len = (uint8_t)key->prefixlen},
			       value->until_ns ? value->until_ns : PACER_NEVER};

	memcpy(ban.prefix.addr, key->addr, family == 4 ? 4 : 16);
	return ban;
}

/* Every entry, also of those that have run out, until `each` says true. -1: one cannot be read. */
static int each_entry(const struct attached *a, bool (*each)(const struct tool_ban *, void *),
		      void *arg, struct policy_error *error)
{
	for (int family = 4; a->control->tools && family <= 6; family += 2) {
		struct pacer_tools6 key, next = {0}, *at = NULL;
		struct pacer_tools_value value;

		while (!bpf_map_get_next_key(trie_of(a, family), at, &next)) {
			struct tool_ban ban;

			key = next;
			at = &key;
			if (bpf_map_lookup_elem(trie_of(a, family), &key, &value)) {
				if (errno == ENOENT) /* deleted meanwhile */
					continue;
				break;
			}
			ban = ban_of(family, &key, &value);
			if (each(&ban, arg))
				return 0;
		}
		if (errno != ENOENT)
			return policy_fail(error, 0,
					   "%s: the bans of other tools cannot be read: %s",
					   a->ifname, strerror(errno));
	}
	return 0;
}

struct running {
	uint64_t now_ns;
	void (*each)(const struct tool_ban *ban, uint64_t now_ns, void *arg);
	void *arg;
};

static bool if_running(const struct tool_ban *ban, void *arg)
{
	struct running *r = arg;

	if (ban->until_ns > r->now_ns)
		r->each(ban, r->now_ns, r->arg);
	return false;
}

int tool_bans_each(const struct attached *a,
		   void (*each)(const struct tool_ban *ban, uint64_t now_ns, void *arg), void *arg,
		   struct policy_error *error)
{
	struct running running = {host_now_ns(), each, arg};

	return each_entry(a, if_running, &running, error);
}

struct longest {
	const struct prefix *source;
	struct tool_ban ban;
	bool found;
};

static bool if_longer(const struct tool_ban *ban, void *arg)
{
	struct longest *l = arg;

	if (allow_holds(&ban->prefix, l->source) &&
	    (!l->found || ban->prefix.len > l->ban.prefix.len)) {
		l->ban = *ban;
		l->found = true;
	}
	return false;
}

int tool_bans_find(const struct attached *a, const struct prefix *source, uint64_t now_ns,
		   struct tool_ban *ban, struct policy_error *error)
{
	struct longest longest = {.source = source};

	if (each_entry(a, if_longer, &longest, error))
		return -1;
	*ban = longest.ban;
	return longest.found && ban->until_ns > now_ns;
}

/* Counts it in *n, if it is there. */
static int delete (const struct attached *a, const struct prefix *prefix, size_t *n,
		   struct policy_error *error)
{
	struct pacer_tools6 key = {.prefixlen = prefix->len};

	memcpy(key.addr, prefix->addr, prefix->family == 4 ? 4 : 16);
	if (!bpf_map_delete_elem(trie_of(a, prefix->family), &key))
		++*n;
	else if (errno != ENOENT)
		return policy_fail(error, 0, "%s: a ban of another tool cannot be lifted: %s",
				   a->ifname, strerror(errno));
	return 0;
}

static bool take_first(const struct tool_ban *ban, void *arg)
{
	*(struct tool_ban *)arg = *ban;
	return true;
}

int tool_bans_lift(const struct attached *a, const struct prefix *prefix, size_t *n,
		   struct policy_error *error)
{
	*n = 0;
	if (!a->control->tools)
		return 0;
	if (prefix)
		return delete (a, prefix, n, error);
	/* It ends even where somebody writes as fast, or deletes what is looked for. */
	for (uint32_t i = 0; i < 2 * PACER_TOOLS_ENTRIES; i++) {
		struct tool_ban ban = {.prefix = {.family = 0}};

		if (each_entry(a, take_first, &ban, error))
			return -1;
		if (!ban.prefix.family)
			break;
		if (delete (a, &ban.prefix, n, error))
			return -1;
	}
	return 0;
}
