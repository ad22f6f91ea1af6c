/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/partners.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "live/carried.h"
#include "live/device.h"
#include "live/pins.h"
#include "live/prog_maps.h"
#include "live/site.h"

struct partners {
	const char *but;
	uint32_t map_id;
	int (*each)(const char *ifname, void *arg); /* NULL: they are noted alone */
	void *arg;
	int ended;	/* what `each` returned; 0: it was to go on */
	uint32_t *here; /* the programs of this network namespace's interfaces that have the map */
	size_t n;
	struct policy_error *error;
};

/* --- of this network namespace ---------------------------------------------------------------- */

static int note_here(struct partners *p, uint32_t prog_id)
{
	uint32_t *more = reallocarray(p->here, p->n + 1, sizeof(*p->here));

	if (!more)
		return policy_fail(p->error, 0, "no memory");
	p->here = more;
	p->here[p->n++] = prog_id;
	return 0;
}

static int each_here(const char *ifname, void *arg)
{
	struct partners *p = arg;
	struct site site;
	int has;

	if (p->each && !strcmp(ifname, p->but))
		return 0;
	has = attached_site(ifname, device_index(ifname, p->error), &site, p->error);
	if (has <= 0)
		return has;
	has = prog_maps_has(site.pacer_fd, &p->map_id, 1);
	if (!has && site.second_id)
		has = prog_maps_id_has(site.second_id, &p->map_id, 1);
	if (has < 0)
		has = policy_fail(p->error, 0, "%s: its program cannot be read: %s", ifname,
				  strerror(-has));
	else if (has && (note_here(p, site.pacer_id) || note_here(p, site.second_id)))
		has = -1;
	site_close(&site);
	if (has <= 0 || !p->each)
		return has < 0 ? -1 : 0;
	p->ended = p->each(ifname, p->arg);
	return p->ended;
}

/* --- of another ------------------------------------------------------------------------------- */

static bool is_here(const struct partners *p, uint32_t prog_id)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->here[i] == prog_id)
			return true;
	return false;
}

/* Does an interface carry it, or the dispatcher that calls it? 1, 0, or -1: it cannot be told. */
static int is_carried(uint32_t prog_id)
{
	int carried = carried_by_any(prog_id);

	if (carried)
		return carried;
	return pins_hidden() ? -1 : !pins_called_by_none(prog_id);
}

/*
 * One that is only open is nobody's: a process looks at what was there before an `upgrade`. One
 * that has come since the interfaces here were looked at is none of another's.
 */
static int look_elsewhere(struct partners *p, uint32_t prog_id)
{
	int carried = is_carried(prog_id);

	if (!carried)
		return 0;
	p->each = NULL;
	if (attached_each(each_here, p, p->error))
		return -1;
	if (is_here(p, prog_id))
		return 0;
	return policy_fail(p->error, 0,
			   carried < 0
			       ? "program %u has it, and not every network namespace can be looked "
				 "into: run as root, outside of containers and of `ip netns exec`"
			       : "program %u has it, of an interface of another network namespace: "
				 "move that back, or `xdp-pacer unload` it there",
			   prog_id);
}

/* Programs with the map that no interface here has. Its own may be off by now, and open. */
static int each_elsewhere(struct partners *p, const struct attached *own)
{
	uint32_t id = 0;

	while (!bpf_prog_get_next_id(id, &id)) {
		bool known = id == own->prog_id || id == own->second_id || is_here(p, id);
		int has = known ? 0 : prog_maps_id_has(id, &p->map_id, 1);

		if (has < 0)
			return policy_fail(p->error, 0, "program %u cannot be read: %s", id,
					   strerror(-has));
		if (has && look_elsewhere(p, id))
			return -1;
	}
	return errno == ENOENT
		   ? 0
		   : policy_fail(p->error, 0, "programs cannot be listed: %s", strerror(errno));
}

static int each_partner(struct partners p, const struct attached *whole, struct policy_error *error)
{
	struct policy_error why = {0};
	int result;

	p.error = &why;
	result = p.map_id ? attached_each(each_here, &p, &why) : 0;
	if (!result && whole && whole->control->shared)
		result = each_elsewhere(&p, whole);
	free(p.here);
	if (!result || p.ended)
		return result;
	return policy_fail(error, 0, "%s: which interfaces share its state cannot be told: %.250s",
			   p.but, why.text);
}

int partners_here(const char *but, uint32_t map_id, int (*each)(const char *ifname, void *arg),
		  void *arg, struct policy_error *error)
{
	struct partners p = {.but = but, .map_id = map_id, .each = each, .arg = arg};

	return each_partner(p, NULL, error);
}

int partners_each(const struct attached *a, int (*each)(const char *ifname, void *arg), void *arg,
		  struct policy_error *error)
{
	struct partners p = {.but = a->ifname, .map_id = a->control_id, .each = each, .arg = arg};

	return each_partner(p, a, error);
}

/* Those of this network namespace are seen also by who may not look into others. */
static int is_on_one_here(uint32_t map_id)
{
	struct policy_error unsaid;
	struct partners p = {.but = "", .map_id = map_id, .error = &unsaid};
	int result = attached_each(each_here, &p, &unsaid);

	free(p.here);
	return p.n ? 1 : result;
}

int partners_carried(uint32_t map_id)
{
	int here = is_on_one_here(map_id);
	bool untold = here < 0;
	uint32_t id = 0;

	if (here > 0)
		return 1;
	while (!bpf_prog_get_next_id(id, &id)) {
		int carried = prog_maps_id_has(id, &map_id, 1);

		if (carried > 0)
			carried = is_carried(id);
		if (carried > 0)
			return 1;
		untold |= carried < 0;
	}
	return untold || errno != ENOENT ? -1 : 0;
}
