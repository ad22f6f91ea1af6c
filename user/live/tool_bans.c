/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/tool_bans.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "live/allow.h"
#include "live/host.h"

/* Reading and lifting end even where somebody writes as fast, or deletes what is looked for. */
#define STEPS (2 * PACER_TOOLS_ENTRIES)

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
	units_prefix_clear(&ban.prefix);
	return ban;
}

/* 0, 1 where `each` said so, or -1: one cannot be read. */
static int each_of_trie(int fd, int family, bool (*each)(const struct tool_ban *, void *),
			void *arg)
{
	struct pacer_tools6 key, next = {0}, *at = NULL;
	struct pacer_tools_value value;

	for (uint32_t steps = 0; steps < STEPS; steps++) {
		struct tool_ban ban;

		if (bpf_map_get_next_key(fd, at, &next))
			return errno == ENOENT ? 0 : -1;
		key = next;
		at = &key;
		if (bpf_map_lookup_elem(fd, &key, &value)) {
			if (errno == ENOENT) /* deleted meanwhile */
				continue;
			return -1;
		}
		ban = ban_of(family, &key, &value);
		if (each(&ban, arg))
			return 1;
	}
	return 0;
}

/*
 * Every entry, also of those that have run out, until `each` says true. Where one is deleted as it
 * is read, the kernel begins anew: `each` may have some twice. -1: one cannot be read.
 */
static int each_entry(const struct attached *a, bool (*each)(const struct tool_ban *, void *),
		      void *arg, struct policy_error *error)
{
	int result = 0;

	for (int family = 4; a->control->tools && family <= 6 && !result; family += 2)
		result = each_of_trie(trie_of(a, family), family, each, arg);
	return result < 0 ? policy_fail(error, 0, "%s: the bans of other tools cannot be read: %s",
					a->ifname, strerror(errno))
			  : 0;
}

struct list {
	struct tool_ban *ban;
	size_t n, room;
	bool failed;
};

static bool add(const struct tool_ban *ban, void *arg)
{
	struct list *list = arg;
	size_t room = list->room ? 2 * list->room : 64;
	struct tool_ban *more;

	if (list->n == list->room) {
		more = realloc(list->ban, room * sizeof(*more));
		list->failed = !more;
		if (!more)
			return true;
		list->ban = more;
		list->room = room;
	}
	list->ban[list->n++] = *ban;
	return false;
}

static int by_prefix(const void *one, const void *other)
{
	const struct prefix *a = &((const struct tool_ban *)one)->prefix;
	const struct prefix *b = &((const struct tool_ban *)other)->prefix;
	int order = memcmp(a->addr, b->addr, sizeof(a->addr));

	if (a->family != b->family)
		return a->family - b->family;
	return order ? order : a->len - b->len;
}

int tool_bans_each(const struct attached *a,
		   void (*each)(const struct tool_ban *ban, uint64_t now_ns, void *arg), void *arg,
		   struct policy_error *error)
{
	uint64_t now_ns = host_now_ns();
	struct list list = {0};
	int result = each_entry(a, add, &list, error);

	if (list.failed)
		result = policy_fail(error, 0, "%s: no memory", a->ifname);
	if (list.n)
		qsort(list.ban, list.n, sizeof(*list.ban), by_prefix);
	for (size_t i = 0; i < list.n; i++)
		if (list.ban[i].until_ns > now_ns &&
		    (!i || by_prefix(&list.ban[i - 1], &list.ban[i])))
			each(&list.ban[i], now_ns, arg);
	free(list.ban);
	return result;
}

struct longest {
	const struct prefix *source;
	struct tool_ban ban;
	bool found;
};

static bool if_longer(const struct tool_ban *ban, void *arg)
{
	struct longest *l = arg;

	if (units_prefix_holds(&ban->prefix, l->source) &&
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

static int unlifted(const struct attached *a, struct policy_error *error)
{
	return policy_fail(error, 0, "%s: a ban of another tool cannot be lifted: %s", a->ifname,
			   strerror(errno));
}

static struct pacer_tools6 key_of(const struct prefix *prefix)
{
	struct pacer_tools6 key = {.prefixlen = prefix->len};

	memcpy(key.addr, prefix->addr, prefix->family == 4 ? 4 : 16);
	return key;
}

/* Counts it in *n, if it is there, and a ban that runs: what has run out denies nobody. */
static int delete (const struct attached *a, const struct tool_ban *ban, size_t *n,
		   struct policy_error *error)
{
	struct pacer_tools6 key = key_of(&ban->prefix);

	if (!bpf_map_delete_elem(trie_of(a, ban->prefix.family), &key))
		*n += ban->until_ns > host_now_ns();
	else if (errno != ENOENT)
		return unlifted(a, error);
	return 0;
}

/* If the prefix has an entry, the trie finds none that is longer. */
static int delete_one(const struct attached *a, const struct prefix *prefix, size_t *n,
		      struct policy_error *error)
{
	struct pacer_tools6 key = key_of(prefix);
	struct pacer_tools_value value;
	struct tool_ban ban;

	if (bpf_map_lookup_elem(trie_of(a, prefix->family), &key, &value))
		return errno == ENOENT ? 0 : unlifted(a, error);
	ban = ban_of(prefix->family, &key, &value);
	return delete (a, &ban, n, error);
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
		return delete_one(a, prefix, n, error);
	for (uint32_t i = 0; i < STEPS; i++) {
		struct tool_ban ban = {.prefix = {.family = 0}};

		if (each_entry(a, take_first, &ban, error))
			return -1;
		if (!ban.prefix.family)
			break;
		if (delete (a, &ban, n, error))
			return -1;
	}
	return 0;
}
