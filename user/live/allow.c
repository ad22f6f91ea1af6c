/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/allow.h"

#include <errno.h>
#include <unistd.h>

#include "live/allow_maps.h"
#include "live/change.h"
#include "live/copies.h"
#include "live/host.h"
#include "live/in_shadow.h"

/* The list in force, to be freed. */
static int read_in_force(const struct attached *a, struct allowlist *list,
			 struct policy_error *error)
{
	for (;;) {
		int fd = copies_lock_to_read(error), result;

		if (fd == -1)
			return -1;
		result = allow_maps_read(a, copies_in_force(a), list, error);
		if (copies_were_still(fd))
			return result;
		if (!result)
			allowlist_free(list);
	}
}

int allow_each(const struct attached *a,
	       void (*each)(const struct allow_entry *, uint64_t now_ns, void *), void *arg,
	       struct policy_error *error)
{
	struct allowlist list;
	uint64_t now_ns;

	if (read_in_force(a, &list, error))
		return -1;
	now_ns = host_now_ns();
	for (size_t i = 0; i < list.n; i++)
		if (!allow_has_lapsed(&list.entry[i], now_ns))
			each(&list.entry[i], now_ns, arg);
	allowlist_free(&list);
	return 0;
}

static bool lasts_as_long(const struct allow_entry *a, const struct allow_entry *b)
{
	return !allow_until_ns(a) || (allow_until_ns(b) && allow_until_ns(a) >= allow_until_ns(b));
}

int allow_find(const struct attached *a, const struct prefix *address, struct allow_entry *found,
	       struct policy_error *error)
{
	const struct allow_entry *last = NULL;
	struct allowlist list;
	uint64_t now_ns;

	if (read_in_force(a, &list, error))
		return -1;
	now_ns = host_now_ns();
	for (size_t i = 0; i < list.n; i++) /* they are in order: of equals the longest */
		if (units_prefix_holds(&list.entry[i].prefix, address) &&
		    !allow_has_lapsed(&list.entry[i], now_ns) &&
		    (!last || lasts_as_long(&list.entry[i], last)))
			last = &list.entry[i];
	if (last)
		*found = *last;
	allowlist_free(&list);
	return last != NULL;
}

uint32_t allow_count(const struct attached *a)
{
	const union pacer_allowed *counts = &a->control->allowed[copies_in_force(a)];

	return counts->v4 + counts->v6;
}

/* Of the copies to change, in their order: what comes back is never the narrower one. */
struct lists {
	uint32_t n, copy[2];
	struct allowlist list[2];
};

static void free_lists(struct lists *l)
{
	for (uint32_t i = 0; i < l->n; i++)
		allowlist_free(&l->list[i]);
}

static int read_lists(const struct attached *a, struct lists *l, struct policy_error *error)
{
	uint32_t n;

	*l = (struct lists){.n = 0};
	n = copies_to_change(a, l->copy);
	for (; l->n < n; l->n++)
		if (allow_maps_read(a, l->copy[l->n], &l->list[l->n], error)) {
			free_lists(l);
			return -1;
		}
	return 0;
}

/* What has lapsed makes room. */
static int drop_lapsed(struct attached *a, uint32_t copy, struct allowlist *list,
		       struct policy_error *error)
{
	uint64_t now_ns = host_now_ns();
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++) {
		if (!allow_has_lapsed(&list->entry[i], now_ns))
			list->entry[n++] = list->entry[i];
		else if (allow_maps_remove(a, copy, &list->entry[i].prefix))
			return allow_maps_failed(a, error);
	}
	list->n = n;
	allow_maps_count(a, copy, list);
	return 0;
}

static int make_room(struct attached *a, uint32_t copy, struct allowlist *list,
		     const struct prefix *prefix, struct policy_error *error)
{
	if (drop_lapsed(a, copy, list, error))
		return -1;
	if (!allowlist_find(list, prefix) &&
	    allowlist_count(list, prefix->family) >= PACER_ALLOW_MAX)
		return allow_maps_full(a, prefix->family, error);
	return 0;
}

/* As it was read: `was` is the entry of the prefix then, of no family where there was none. */
static void restore(struct attached *a, uint32_t copy, struct allowlist *list,
		    const struct prefix *prefix, const struct allow_entry *was)
{
	if (was->prefix.family) {
		(void)allowlist_put(list, was);
		(void)allow_maps_put(a, copy, list, was);
	} else {
		allowlist_take(list, prefix);
		(void)allow_maps_remove(a, copy, prefix);
	}
	(void)allow_maps_put_within(a, copy, list, prefix);
	allow_maps_count(a, copy, list);
}

static struct allow_entry entry_of(const struct allowlist *list, const struct prefix *prefix)
{
	const struct allow_entry *entry = allowlist_find(list, prefix);

	return entry ? *entry : (struct allow_entry){.prefix.family = 0};
}

/*
 * The count goes up first, so that the entry is never passed over. What it holds is let through for
 * as long, from then on.
 */
static int add_to(struct attached *a, uint32_t copy, struct allowlist *list,
		  const struct allow_entry *entry)
{
	struct allow_entry new = allow_by_hand(entry, allowlist_find(list, &entry->prefix));

	if (!allowlist_put(list, &new)) {
		errno = ENOSPC;
		return -1;
	}
	allow_maps_count(a, copy, list);
	return allow_maps_put(a, copy, list, &new) ||
		       allow_maps_put_within(a, copy, list, &new.prefix)
		   ? -1
		   : 0;
}

static int add_to_lists(struct attached *a, struct lists *l, const struct allow_entry *entry,
			struct policy_error *error)
{
	struct allow_entry was[2];

	for (uint32_t i = 0; i < l->n; i++)
		if (make_room(a, l->copy[i], &l->list[i], &entry->prefix, error))
			return -1;
	for (uint32_t i = 0; i < l->n; i++) {
		was[i] = entry_of(&l->list[i], &entry->prefix);
		if (!add_to(a, l->copy[i], &l->list[i], entry))
			continue;
		allow_maps_failed(a, error);
		for (uint32_t k = 0; k <= i; k++)
			restore(a, l->copy[k], &l->list[k], &entry->prefix, &was[k]);
		return -1;
	}
	return 0;
}

/* What it holds goes back to its own end first: no entry says more than the list at any time. */
static int remove_from(struct attached *a, uint32_t copy, struct allowlist *list,
		       const struct prefix *prefix)
{
	if (!allowlist_find(list, prefix))
		return 0;
	allowlist_take(list, prefix);
	if (allow_maps_put_within(a, copy, list, prefix) || allow_maps_remove(a, copy, prefix))
		return -1;
	allow_maps_count(a, copy, list);
	return 0;
}

static int remove_from_lists(struct attached *a, struct lists *l, const struct allow_entry *entry,
			     struct policy_error *error)
{
	const struct prefix *prefix = &entry->prefix;
	struct allow_entry was[2];

	for (uint32_t i = l->n; i-- > 0;) {
		was[i] = entry_of(&l->list[i], prefix);
		if (!remove_from(a, l->copy[i], &l->list[i], prefix))
			continue;
		allow_maps_failed(a, error);
		for (uint32_t k = i; k < l->n; k++)
			restore(a, l->copy[k], &l->list[k], prefix, &was[k]);
		return -1;
	}
	return 0;
}

#define NOT_THERE 1 /* and *error says so */

/* The same of what has to be there. */
static int remove_what_is_there(struct attached *a, struct lists *l,
				const struct allow_entry *entry, struct policy_error *error)
{
	bool found = false;
	char text[64];

	for (uint32_t i = 0; i < l->n; i++)
		found |= !!allowlist_find(&l->list[i], &entry->prefix);
	if (found)
		return remove_from_lists(a, l, entry, error);
	policy_explain(error, 0, "%s: %s: is not on the allow-list: see `xdp-pacer allow %s list`",
		       a->ifname, units_prefix_text(&entry->prefix, text, sizeof(text)), a->ifname);
	return NOT_THERE;
}

static int change_lists(struct attached *a,
			int (*change)(struct attached *, struct lists *, const struct allow_entry *,
				      struct policy_error *),
			const struct allow_entry *entry, struct policy_error *error)
{
	struct lists lists;
	int result;

	if (read_lists(a, &lists, error))
		return -1;
	result = change(a, &lists, entry, error);
	free_lists(&lists);
	if (!result)
		change_tidy(a);
	return result;
}

/* What is said by hand is of the pacer, whatever policy it will have: of a shadow's, too. */
static int change_shadow(const struct attached *a,
			 int (*change)(struct attached *, struct lists *,
				       const struct allow_entry *, struct policy_error *),
			 const struct allow_entry *entry, struct policy_error *error)
{
	struct policy_error why = {0};
	struct attached shadow;
	int result = in_shadow_open(a, &shadow, error);

	if (result)
		return result < 0 ? result : 0;
	result = change_lists(&shadow, change, entry, &why);
	attached_release(&shadow);
	return result ? in_shadow_fail(&why, error) : 0;
}

int allow_add(struct attached *a, const struct allow_entry *entry, struct policy_error *error)
{
	int fd = copies_lock_of(a, error), result;

	if (fd < 0)
		return -1;
	result = change_lists(a, add_to_lists, entry, error);
	if (!result)
		result = change_shadow(a, add_to_lists, entry, error);
	close(fd);
	return result;
}

/* What is on a shadow's list alone, as where it could not be taken off that before. */
static int remove_from_shadow(const struct attached *a, const struct allow_entry *entry,
			      struct policy_error *error)
{
	struct policy_error why;
	struct attached shadow;
	int result = in_shadow_open(a, &shadow, &why);

	if (!result) {
		result = change_lists(&shadow, remove_what_is_there, entry, &why);
		attached_release(&shadow);
		if (result < 0)
			(void)in_shadow_fail(&why, error);
	} else if (result < 0) {
		*error = why;
	}
	return result ? -1 : 0;
}

int allow_del(struct attached *a, const struct prefix *prefix, struct policy_error *error)
{
	struct allow_entry entry = {.prefix = *prefix};
	int fd = copies_lock_of(a, error), result;

	if (fd < 0)
		return -1;
	result = change_lists(a, remove_what_is_there, &entry, error);
	if (result == NOT_THERE)
		result = remove_from_shadow(a, &entry, error);
	else if (!result) /* It may not be on that of a shadow. */
		result = change_shadow(a, remove_from_lists, &entry, error);
	close(fd);
	return result;
}
