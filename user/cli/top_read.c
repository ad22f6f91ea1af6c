/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/top_read.h"

#include <stdio.h>
#include <string.h>

#include "live/device.h"
#include "live/shadow_reading.h"

/* 0: there is none of that name. */
static unsigned int index_of(const char *ifname)
{
	struct policy_error unused;
	int index = device_index(ifname, &unused);

	return index > 0 ? (unsigned int)index : 0;
}

static int watch_name(struct top_reader *r, const char *ifname, struct policy_error *error)
{
	char *names[1] = {r->ifname};

	snprintf(r->ifname, sizeof(r->ifname), "%s", ifname);
	r->ifindex = index_of(ifname);
	return watch_begin(&r->watch, names, 1) ? policy_fail(error, POLICY_NO_MEMORY, "no memory")
						: 0;
}

int top_read_begin(struct top_reader *r, const char *ifname, struct policy_error *error)
{
	memset(r, 0, sizeof(*r));
	return watch_name(r, ifname, error);
}

/* The interface keeps its number when it gets another name. */
static int follow_name(struct top_reader *r, struct policy_error *error)
{
	char ifname[IF_NAMESIZE];

	if (!r->ifindex || !if_indextoname(r->ifindex, ifname)) {
		r->ifindex = index_of(r->ifname);
		return 0;
	}
	if (!strcmp(ifname, r->ifname))
		return 0;
	watch_end(&r->watch);
	return watch_name(r, ifname, error);
}

/* One that cannot be read has just ended. */
static void read_shadow(const struct attached *a, struct top_reading *now)
{
	static struct shadow_reading counted;
	struct policy_error unused;
	struct attached shadow;

	now->shadowed = false;
	if (!a->shadow_id || attached_shadow(a, &shadow, &unused))
		return;
	if (!shadow_read(&shadow, &counted, &unused)) {
		now->shadowed = true;
		for (int c = 0; c < PACER_CHANGE_COUNT; c++)
			now->changes[c] = shadow_sum(&counted, c).packets;
		shadow_reading_free(&counted);
	}
	attached_release(&shadow);
}

static int read_pacer(struct top_reader *r, const struct attached *a, struct policy_error *error)
{
	struct top_reading *now = &r->now;
	static struct reading next;

	if (reading_take(a, &next, &now->missing))
		return 0;
	reading_free(&now->reading);
	now->reading = next;
	now->attach_mode = a->mode;
	now->unsampled.text[0] = 0;
	if (busiest_read(a, &now->busiest, &now->unsampled))
		now->busiest = (struct busiest){.sampled = false};
	read_shadow(a, now);
	if (trend_add(&now->trend, &now->reading))
		return policy_fail(error, POLICY_NO_MEMORY, "no memory");
	now->paced = true;
	return 0;
}

int top_read_next(struct top_reader *r, struct policy_error *error)
{
	const struct watched *at;

	if (follow_name(r, error) || watch_look(&r->watch, error))
		return -1;
	at = &r->watch.at[0];
	r->now.paced = false;
	snprintf(r->now.ifname, sizeof(r->now.ifname), "%s", r->ifname);
	if (at->found)
		return read_pacer(r, &at->a, error);
	r->now.missing = at->error;
	return 0;
}

void top_read_end(struct top_reader *r)
{
	watch_end(&r->watch);
	reading_free(&r->now.reading);
	trend_free(&r->now.trend);
}
