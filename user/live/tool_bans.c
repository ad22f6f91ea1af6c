/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/tool_bans.h"

#include <bpf/bpf.h>
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

/* Every entry, also of those that have run out, until `each` says true. */
static void each_entry(const struct attached *a, bool (*each)(const struct tool_ban *, void *),
		       void *arg)
{
	for (int family = 4; a->control->tools && family <= 6; family += 2) {
		struct pacer_tools6 key, next = {0}, *at = NULL;
		struct pacer_tools_value value;

		while (!bpf_map_get_next_key(trie_of(a, family), at, &next)) {
			struct tool_ban ban;

			key = next;
			at = &key;
			if (bpf_map_lookup_elem(trie_of(a, family), &key, &value))
				continue;
			ban = ban_of(family, &key, &value);
			if (each(&ban, arg))
				return;
		}
	}
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

void tool_bans_each(const struct attached *a,
		    void (*each)(const struct tool_ban *ban, uint64_t now_ns, void *arg), void *arg)
{
	struct running running = {host_now_ns(), each, arg};

	each_entry(a, if_running, &running);
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

bool tool_bans_find(const struct attached *a, const struct prefix *source, uint64_t now_ns,
		    struct tool_ban *ban)
{
	struct longest longest = {.source = source};

	each_entry(a, if_longer, &longest);
	*ban = longest.ban;
	return longest.found && ban->until_ns > now_ns;
}

static bool delete (const struct attached *a, const struct prefix *prefix)
{
	struct pacer_tools6 key = {.prefixlen = prefix->len};

	memcpy(key.addr, prefix->addr, prefix->family == 4 ? 4 : 16);
	return !bpf_map_delete_elem(trie_of(a, prefix->family), &key);
}

static bool take_first(const struct tool_ban *ban, void *arg)
{
	*(struct tool_ban *)arg = *ban;
	return true;
}

size_t tool_bans_lift(const struct attached *a, const struct prefix *prefix)
{
	size_t n = 0;

	if (!a->control->tools)
		return 0;
	if (prefix)
		return delete (a, prefix);
	/* It ends even where somebody writes as fast, or an entry cannot be removed. */
	for (uint32_t i = 0; i < 2 * PACER_TOOLS_ENTRIES; i++) {
		struct tool_ban ban = {.prefix = {.family = 0}};

		each_entry(a, take_first, &ban);
		if (!ban.prefix.family)
			break;
		n += delete (a, &ban.prefix);
	}
	return n;
}
