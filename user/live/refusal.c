/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/refusal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define KERNEL_MAJOR 6 /* the oldest kernel known to load the program */
#define KERNEL_MINOR 1

static int kernel_is_known(struct policy_error *error)
{
	struct utsname name;
	int major, minor;

	if (!uname(&name) && sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
	    (major < KERNEL_MAJOR || (major == KERNEL_MAJOR && minor < KERNEL_MINOR)))
		return policy_fail(error, 0,
				   "this kernel is %s, and the pacer wants %d.%d or a later one: "
				   "its verifier would refuse the program",
				   name.release, KERNEL_MAJOR, KERNEL_MINOR);
	return 0;
}

/*
 * Some privileges are enough to load and attach a program, but not to find it again. No verb could
 * change or detach it then, so it is not attached either.
 */
static int may_use_bpf(const char *ifname, struct policy_error *error)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "pacer_trial", sizeof(uint32_t),
				sizeof(uint32_t), 1, NULL);
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	int again = -1, err = 0;

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len))
		err = errno;
	if (!err && (again = bpf_map_get_fd_by_id(info.id)) < 0)
		err = errno;
	if (again >= 0)
		close(again);
	if (fd >= 0)
		close(fd);
	if (err == EPERM && fd >= 0)
		return policy_fail(error, 0,
				   "%s: no privilege to find the pacer again once it is attached "
				   "(CAP_SYS_ADMIN): run as root",
				   ifname);
	if (err == EPERM)
		return policy_fail(error, 0, "%s: no privilege to make a BPF map: run as root",
				   ifname);
	return err ? policy_fail(error, 0, "%s: no BPF map can be made here: %s", ifname,
				 strerror(err))
		   : 0;
}

int refusal_by_host(const char *ifname, struct policy_error *error)
{
	return kernel_is_known(error) || may_use_bpf(ifname, error) ? -1 : 0;
}

/* The interface has another program, and the pacer cannot run beside it. */
static int stands_alone(const char *ifname, const struct site *site, struct policy_error *error)
{
	if (site_lost_its_pins(site))
		return policy_fail(
		    error, 0,
		    "%s: the programs of its libxdp dispatcher (id %u) cannot be read: its pins "
		    "are "
		    "gone, or /sys/fs/bpf is hidden here: look from outside `ip netns exec`, or "
		    "take it off with `ip link set dev %s %s off`",
		    ifname, site->id, ifname, site_ip_word(site));
	return policy_fail(error, 0,
			   "%s: already carries the XDP program %s (id %u), which stands alone: "
			   "take it off with `ip link set dev %s %s off`, or load it through "
			   "xdp-loader",
			   ifname, site->name, site->id, ifname, site_ip_word(site));
}

int refusal_not_a_pacer(const char *ifname, struct policy_error *error)
{
	return policy_fail(error, 0, "%s: its program is named pacer, but is not one: not touched",
			   ifname);
}

static int may_replace(const char *ifname, const struct site *site, enum site_mode mode,
		       bool direct, struct policy_error *error)
{
	if (site->mode != mode)
		return policy_fail(error, 0,
				   "%s: its pacer is attached in %s mode, and only in that can it "
				   "be replaced in one step: say --mode %s, or unload it first",
				   ifname, site_mode_name(site->mode), site_mode_name(site->mode));
	if (site->dispatched && direct)
		return policy_fail(error, 0,
				   "%s: its pacer is under the libxdp dispatcher: replace it "
				   "without --direct, or unload it first",
				   ifname);
	return 0;
}

int refusal_by_site(const char *ifname, const struct site *site, enum site_mode mode, bool direct,
		    bool replace, struct policy_error *error)
{
	if (!site->id)
		return 0;
	if (site->named && !site->pacer)
		return refusal_not_a_pacer(ifname, error);
	if (site->pacer && replace)
		return may_replace(ifname, site, mode, direct, error);
	if (site->pacer && site->abi != PACER_ABI_VERSION)
		return policy_fail(error, 0,
				   "%s: is paced already, by ABI version %u, this tool has %u: "
				   "`xdp-pacer load %s --replace -c POLICY` takes over",
				   ifname, site->abi, PACER_ABI_VERSION, ifname);
	if (site->pacer)
		return policy_fail(error, 0,
				   "%s: is paced already: change it with `xdp-pacer apply %s`",
				   ifname, ifname);
	if (!site->dispatched)
		return stands_alone(ifname, site, error);
	if (direct)
		return policy_fail(
		    error, 0, "%s: already carries the libxdp dispatcher: load without --direct",
		    ifname);
	return 0;
}

int refusal_no_pacer(const char *ifname, const struct site *site, struct policy_error *error)
{
	if (!site->id || (site->dispatched && !site->named))
		return policy_fail(
		    error, 0, "%s: has no pacer: attach one with `xdp-pacer load %s -c POLICY`",
		    ifname, ifname);
	if (site_lost_its_pins(site))
		return stands_alone(ifname, site, error);
	return policy_fail(error, 0, "%s: its XDP program is not the pacer", ifname);
}
