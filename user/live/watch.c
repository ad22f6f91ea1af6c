/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "live/attached.h"
#include "live/site.h"

static struct watched *find(const struct watch *w, const char *ifname)
{
	for (size_t i = 0; i < w->n; i++)
		if (!strcmp(w->at[i].ifname, ifname))
			return &w->at[i];
	return NULL;
}

static struct watched *add(struct watch *w, const char *ifname)
{
	struct watched *more = reallocarray(w->at, w->n + 1, sizeof(*more));

	if (!more)
		return NULL;
	w->at = more;
	more[w->n] = (struct watched){0};
	snprintf(more[w->n].ifname, sizeof(more->ifname), "%s", ifname);
	return &more[w->n++];
}

int watch_begin(struct watch *w, char *const *ifnames, size_t n)
{
	*w = (struct watch){.all = !n};
	for (size_t i = 0; i < n; i++)
		if (!find(w, ifnames[i]) && !add(w, ifnames[i])) {
			watch_end(w);
			return -1;
		}
	for (size_t i = 0; i < w->n; i++)
		w->at[i].shown = true;
	return 0;
}

static void let_go(struct watched *at)
{
	if (at->found)
		attached_release(&at->a);
	if (at->has_last)
		attached_release(&at->last);
	at->found = at->has_last = false;
}

/* The tool that took it off has said so by now. */
static void let_go_of_last(const struct watch *w, struct watched *at)
{
	if (!at->has_last)
		return;
	w->left(at, w->arg);
	attached_release(&at->last);
	at->has_last = false;
}

static void leave(const struct watch *w, struct watched *at)
{
	let_go_of_last(w, at);
	if (!at->found)
		return;
	if (w->leaving) {
		w->leaving(at, w->arg);
		at->last = at->a;
		attached_close_files(&at->last);
		at->has_last = true;
	} else {
		attached_release(&at->a);
	}
	at->found = false;
}

void watch_end(struct watch *w)
{
	for (size_t i = 0; i < w->n; i++)
		let_go(&w->at[i]);
	free(w->at);
	*w = (struct watch){0};
}

static bool still_there(const struct watched *at)
{
	return if_nametoindex(at->ifname) == (unsigned int)at->a.ifindex &&
	       site_id(at->a.ifindex) == at->a.site_id;
}

/* The id of the interface's program, if that is not a pacer that can be read: nor will it be. */
static int64_t passed_by(struct watched *at, int ifindex)
{
	struct policy_error unused;
	struct site site;
	int64_t id = 0;

	if (site_open(at->ifname, ifindex, &site, &unused)) {
		at->shown = at->unopened = true; /* for all that is known */
		return 0;
	}
	at->shown |= site.pacer;
	at->unopened = site.pacer;
	if (!site.pacer || site.abi != PACER_ABI_VERSION)
		id = site.id;
	site_close(&site);
	return id;
}

static void look(const struct watch *w, struct watched *at)
{
	unsigned int ifindex = if_nametoindex(at->ifname);
	int64_t id;

	let_go_of_last(w, at);
	if (at->found && still_there(at)) {
		attached_sampled(&at->a);
		return;
	}
	leave(w, at);
	id = ifindex ? site_id((int)ifindex) : 0;
	if (id > 0 && id == at->passed)
		return;
	at->unopened = id < 0 || (!ifindex && errno != ENODEV); /* for all that is known */
	at->shown |= at->unopened;
	at->passed = id > 0 ? passed_by(at, (int)ifindex) : 0;
	at->found = !attached_find(at->ifname, &at->a, &at->error);
	if (at->found || (ifindex && site_id((int)ifindex) != id)) /* it has just gone, or come */
		at->unopened = false;
}

/* Interfaces that carry something and are not watched yet. */
static int add_new(struct watch *w, struct policy_error *error)
{
	struct if_nameindex *all = if_nameindex();
	int result = 0;

	if (!all)
		return policy_fail(error, 0, "the interfaces cannot be listed: %s",
				   strerror(errno));
	for (struct if_nameindex *i = all; i->if_index && !result; i++) {
		int64_t id = find(w, i->if_name) ? 0 : site_id((int)i->if_index);

		if (id > 0 && !add(w, i->if_name))
			result = policy_fail(error, POLICY_NO_MEMORY, "no memory");
		else if (id < 0 && if_nametoindex(i->if_name)) /* it is there still */
			result = policy_fail(error, 0, "%s: its XDP programs cannot be read",
					     i->if_name);
	}
	if_freenameindex(all);
	return result;
}

static void forget(const struct watch *w, struct watched *at)
{
	leave(w, at);
	let_go(at);
}

/* Those that are there no more. */
static void forget_gone(struct watch *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++) {
		if (if_nametoindex(w->at[i].ifname))
			w->at[n++] = w->at[i];
		else
			forget(w, &w->at[i]);
	}
	w->n = n;
}

int watch_look(struct watch *w, struct policy_error *error)
{
	int result = 0;

	if (w->all) {
		forget_gone(w);
		result = add_new(w, error);
	}
	for (size_t i = 0; i < w->n; i++)
		look(w, &w->at[i]);
	return result;
}

void watch_tidy(struct watch *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->at[i].found && !still_there(&w->at[i]))
			leave(w, &w->at[i]);
}
