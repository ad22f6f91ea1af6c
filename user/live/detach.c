/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/detach.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <xdp/libxdp.h>

#include "live/complaint.h"
#include "live/device.h"
#include "live/pinned.h"
#include "live/refusal.h"

#define PACERS_MAX 10 /* on one interface; a killed replacement leaves two */

int detach_program(const struct site *site, uint32_t id)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, this_one, .old_prog_fd = site->fd);
	struct xdp_program *p = site_program(site, id);

	if (p)
		return xdp_program__detach(p, site->ifindex,
					   xdp_multiprog__attach_mode(site->dispatched), 0);
	return bpf_xdp_detach(site->ifindex, site_mode_flag(site->mode), &this_one);
}

/* A pacer that is taken off, and whose its pins are; unread: why that is not known, an -errno. */
struct leaving {
	uint32_t prog_id;
	struct pinned_ids pinned;
	int unread;
	bool tools, shadowed; /* it may have pins; a shadow */
};

/*
 * Removes the pins of a pacer that is off. Where it cannot be seen whether they are gone, only
 * those that it may have had are left.
 */
static void forget(const char *ifname, int ifindex, const struct leaving *of,
		   struct pins_left *left)
{
	pins_drop_shadow(ifindex, of->prog_id, of->shadowed ? left : NULL);
	left = of->tools ? left : NULL;
	if (of->unread)
		pinned_remove_unread(ifname, of->unread, of->prog_id, left);
	else
		pinned_remove(ifname, &of->pinned, of->prog_id, left);
}

/* Looks again whether it is detached: a call that failed may have worked all the same. */
static int detach_all(const char *ifname, int ifindex, struct pins_left *left,
		      struct policy_error *error)
{
	struct leaving last = {0};
	int err = 0;

	for (int i = 0; i <= PACERS_MAX; i++) {
		struct site site;
		int result;

		if (site_open(ifname, ifindex, &site, error)) {
			if (!last.prog_id || err)
				return -1;
			forget(ifname, ifindex, &last, left);
			return 0; /* what it has detached is off */
		}
		if (last.prog_id && site.pacer_id == last.prog_id) {
			site_close(&site);
			break;
		}
		if (last.prog_id)
			forget(ifname, ifindex, &last, left);
		if (!site.pacer) {
			result = last.prog_id ? 0
				 : site.named ? refusal_not_a_pacer(ifname, error)
					      : refusal_no_pacer(ifname, &site, error);
			site_close(&site);
			return result;
		}
		last.prog_id = site.pacer_id;
		last.unread = pinned_ids_of(site.pacer_fd, &last.pinned);
		last.tools = site.tools;
		last.shadowed = site_has_shadow(site.pacer_fd) != 0; /* unread: it may */
		err = detach_program(&site, last.prog_id);
		site_close(&site);
	}
	return policy_fail(error, 0, "%s: the pacer was not detached: %s%s", ifname,
			   strerror(err ? -err : EBUSY),
			   err == -EPERM || err == -EACCES ? ": run as root" : complaint_cause());
}

int detach_pacer(const char *ifname, struct pins_left *left, struct policy_error *error)
{
	int ifindex, result;

	complaint_begin();
	*left = (struct pins_left){.cause = 0};
	ifindex = device_index(ifname, error);
	if (ifindex < 0)
		return -1;
	result = detach_all(ifname, ifindex, left, error);
	if (!result)
		pins_sweep(ifindex, left);
	return result;
}

/* A call that failed may have worked all the same. */
int detach_others(const char *ifname, int ifindex, struct policy_error *error)
{
	uint32_t last = 0;
	int err = 0;

	complaint_begin();
	for (int i = 0; i <= PACERS_MAX; i++) {
		struct site site;
		uint32_t second;

		if (site_open(ifname, ifindex, &site, error))
			return -1;
		second = site.second_id;
		if (second && second != last)
			err = detach_program(&site, second);
		site_close(&site);
		if (last && second != last) {
			pins_drop_shadow(ifindex, last, NULL);
			pinned_sweep(ifname, last);
		}
		if (!second)
			return 0;
		if (second == last)
			break;
		last = second;
	}
	return policy_fail(error, 0, "%s: its second pacer (program %u) was not detached: %s%s",
			   ifname, last, strerror(err ? -err : EBUSY), complaint_cause());
}

int detach_left(const char *ifname, const struct pins_left *left, struct policy_error *error)
{
	const char *advice = pins_advice(left->cause);

	if (left->cause == EMEDIUMTYPE)
		return policy_fail(error, 0,
				   "%s: the pacer is off, but whether %s is there still cannot be "
				   "seen, as %s is hidden here, or not mounted: `xdp-pacer clean` "
				   "outside `ip netns exec`",
				   ifname, left->path, pins_bpffs());
	return left->cause ? policy_fail(error, 0,
					 "%s: the pacer is off, but %s, which holds its memory, "
					 "cannot be removed: %s%s%s `xdp-pacer clean`",
					 ifname, left->path, strerror(left->cause), advice,
					 *advice ? ", then" : ":")
			   : 0;
}

/* Whoever calls need not have the pacer open any more, where it is still on. */
int detach_this(const struct attached *a, struct policy_error *error)
{
	struct leaving of = {.prog_id = a->prog_id};
	struct site site;
	int err = 0;

	of.unread = pinned_ids_of(a->prog_fd, &of.pinned);
	complaint_begin();
	if (site_open(a->ifname, a->ifindex, &site, error))
		return -1;
	if (site.pacer && site.pacer_id == a->prog_id) {
		if (of.unread)
			of.unread = pinned_ids_of(site.pacer_fd, &of.pinned);
		err = detach_program(&site, a->prog_id);
	}
	site_close(&site);
	if (err && !attached_gone(a))
		return policy_fail(error, 0, "%s: the pacer was not detached: %s", a->ifname,
				   strerror(-err));
	forget(a->ifname, a->ifindex, &of, NULL);
	pins_sweep(a->ifindex, NULL);
	return 0;
}
