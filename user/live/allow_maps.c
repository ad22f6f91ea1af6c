/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/allow_maps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "live/copies.h"
#include "live/host.h"
#include "short.h"

static int trie_of(const struct attached *a, int family)
{
	return family == 4 ? a->allow4_fd : a->allow6_fd;
}

/* Of either family: the address comes last. */
static struct pacer_allow6 key_of(const struct prefix *p, uint32_t copy)
{
	struct pacer_allow6 key = {PACER_ALLOW_COPY_BITS + p->len, copy, {0}};

	memcpy(key.addr, p->addr, p->family == 4 ? 4 : 16);
	return key;
}

static struct allow_entry entry_of(int family, const struct pacer_allow6 *key,
				   const struct pacer_allow_value *value)
{
	struct allow_entry entry = {
	    {family, key->prefixlen - PACER_ALLOW_COPY_BITS, {0}},
	    value->of_policy,
	    value->by_hand,
	    value->hand_until_ns,
	};

	memcpy(entry.prefix.addr, key->addr, family == 4 ? 4 : 16);
	return entry;
}

static int read_family(const struct attached *a, int family, uint32_t copy, struct allowlist *list)
{
	struct pacer_allow6 key, next = {0}, *at = NULL;
	struct pacer_allow_value value;

	while (!bpf_map_get_next_key(trie_of(a, family), at, &next)) {
		struct allow_entry entry;

		key = next;
		at = &key;
		if (key.copy != copy)
			continue;
		if (bpf_map_lookup_elem(trie_of(a, family), &key, &value))
			return -1;
		entry = entry_of(family, &key, &value);
		if (!allowlist_append(list, &entry))
			return -1;
	}
	return errno == ENOENT ? 0 : -1;
}

int allow_maps_read(const struct attached *a, uint32_t copy, struct allowlist *list,
		    struct policy_error *error)
{
	if (allowlist_init(list))
		return policy_fail(error, 0, "%s: no memory", a->ifname);
	if (read_family(a, 4, copy, list) || read_family(a, 6, copy, list)) {
		allowlist_free(list);
		return policy_fail(error, 0, "%s: its allow-list cannot be read: %s", a->ifname,
				   strerror(errno));
	}
	allowlist_sort(list);
	return 0;
}

static struct pacer_allow_value value_of(const struct allowlist *list,
					 const struct allow_entry *entry)
{
	return (struct pacer_allow_value){allowlist_until_ns(list, &entry->prefix),
					  entry->hand_until_ns, entry->of_policy, entry->by_hand};
}

int allow_maps_put(struct attached *a, uint32_t copy, const struct allowlist *list,
		   const struct allow_entry *entry)
{
	struct pacer_allow6 key = key_of(&entry->prefix, copy);
	struct pacer_allow_value value = value_of(list, entry);

	return bpf_map_update_elem(trie_of(a, entry->prefix.family), &key, &value, BPF_ANY);
}

/* The same of one that is there, and may be as it is to be. */
static int put_again(struct attached *a, uint32_t copy, const struct allowlist *list,
		     const struct allow_entry *entry)
{
	struct pacer_allow6 key = key_of(&entry->prefix, copy);
	struct pacer_allow_value value = value_of(list, entry), there;

	if (!bpf_map_lookup_elem(trie_of(a, entry->prefix.family), &key, &there) &&
	    !memcmp(&there, &value, sizeof(value)))
		return 0;
	return allow_maps_put(a, copy, list, entry);
}

int allow_maps_put_within(struct attached *a, uint32_t copy, const struct allowlist *list,
			  const struct prefix *prefix)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->entry[i].prefix.len > prefix->len &&
		    units_prefix_holds(prefix, &list->entry[i].prefix) &&
		    put_again(a, copy, list, &list->entry[i]))
			return -1;
	return 0;
}

int allow_maps_remove(struct attached *a, uint32_t copy, const struct prefix *prefix)
{
	struct pacer_allow6 key = key_of(prefix, copy);

	return bpf_map_delete_elem(trie_of(a, prefix->family), &key);
}

void allow_maps_set_counts(struct attached *a, uint32_t copy, size_t n4, size_t n6)
{
	union pacer_allowed counts = {{n4, n6}};

	__atomic_store_n(&a->control->allowed[copy].any, counts.any, __ATOMIC_RELEASE);
	pacer_short_reshape(&a->copy[copy].policy, a->control, copy);
}

void allow_maps_count(struct attached *a, uint32_t copy, const struct allowlist *list)
{
	allow_maps_set_counts(a, copy, allowlist_count(list, 4), allowlist_count(list, 6));
}

int allow_maps_failed(const struct attached *a, struct policy_error *error)
{
	return policy_fail(error, 0, "%s: its allow-list cannot be written: %s", a->ifname,
			   strerror(errno));
}

int allow_maps_full(const struct attached *a, int family, struct policy_error *error)
{
	return policy_fail(error, 0,
			   "%s: the allow-list is full: it holds %u IPv%d prefixes, those of the "
			   "policy and those by hand: delete some or merge them",
			   a->ifname, PACER_ALLOW_MAX, family);
}

int allow_maps_next(const struct attached *a, const struct policy *policy, struct allowlist *next,
		    struct policy_error *error)
{
	struct allowlist now;
	int family;

	if (allowlist_init(next))
		return policy_fail(error, 0, "%s: no memory", a->ifname);
	if (allow_maps_read(a, copies_in_force(a), &now, error))
		return -1;
	family = allowlist_next(policy, &now, host_now_ns(), next);
	allowlist_free(&now);
	return family ? allow_maps_full(a, family, error) : 0;
}

int allow_maps_write(struct attached *a, uint32_t copy, const struct allowlist *list,
		     struct policy_error *error)
{
	struct allowlist was;
	int err = 0;

	if (allow_maps_read(a, copy, &was, error))
		return -1;
	for (size_t i = 0; i < was.n && !err; i++)
		if (!allowlist_find(list, &was.entry[i].prefix))
			err = allow_maps_remove(a, copy, &was.entry[i].prefix);
	for (size_t i = 0; i < list->n && !err; i++) {
		const struct allow_entry *e = &list->entry[i];

		err = allowlist_find(&was, &e->prefix) ? put_again(a, copy, list, e)
						       : allow_maps_put(a, copy, list, e);
	}
	if (err)
		allow_maps_failed(a, error);
	else
		allow_maps_count(a, copy, list);
	allowlist_free(&was);
	return err ? -1 : 0;
}
