/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/attached.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "live/complaint.h"
#include "live/device.h"
#include "live/host.h"
#include "live/refusal.h"
#include "live/site.h"

static void *map_memory(struct attached *a, int fd, size_t len)
{
	void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		a->unread = errno;
	return at == MAP_FAILED ? NULL : at;
}

/* The inner map of a map of maps. NULL: it has none, or another kind. */
static void *map_inner(struct attached *a, int outer_fd, size_t value_size, uint32_t *entries,
		       size_t *len)
{
	struct bpf_map_info info = {0};
	uint32_t info_len = sizeof(info);
	int fd = samples_inner(outer_fd);
	void *at = NULL;

	if (fd < 0 && errno != ENOENT)
		a->unread = errno;
	if (fd < 0)
		return NULL;
	if (bpf_obj_get_info_by_fd(fd, &info, &info_len)) {
		a->unread = errno;
	} else if (info.value_size == value_size) {
		*entries = info.max_entries;
		*len = value_size * info.max_entries;
		at = map_memory(a, fd, *len);
	}
	close(fd);
	return at;
}

static void map_samplers(struct attached *a)
{
	a->sampler = map_inner(a, a->samples.samplers_fd, sizeof(*a->sampler), &a->n_samplers,
			       &a->mapped[ATTACHED_SAMPLERS]);
}

static void map_heads(struct attached *a)
{
	uint32_t cpus;

	a->heads =
	    map_inner(a, a->samples.heads_fd, sizeof(*a->heads), &cpus, &a->mapped[ATTACHED_HEADS]);
}

/* As take_map, of what a pacer with a shadow has more, and of what the shadow has more. */
static bool take_map_of_shadow(struct attached *a, int fd, const struct bpf_map_info *info)
{
	size_t len = (size_t)info->value_size * info->max_entries;
	uint32_t first = 0;

	if (!strcmp(info->name, "pacer_next") && a->next_fd < 0) {
		a->next_fd = fd;
		if (bpf_map_lookup_elem(fd, &first, &a->shadow_id)) {
			a->shadow_id = 0;
			a->unread = errno == ENOENT ? a->unread : errno;
		}
		return true;
	} else if (!strcmp(info->name, "pacer_changes") && a->changes_fd < 0 &&
		   info->value_size == sizeof(struct pacer_changes)) {
		a->changes_fd = fd;
		return true;
	} else if (!strcmp(info->name, ".data.shadow") && !a->shadowed &&
		   len == sizeof(struct pacer_shadow)) {
		a->shadowed = map_memory(a, fd, a->mapped[ATTACHED_SHADOWED] = len);
	} else if (!strcmp(info->name, "pacer_differ") && !a->differ &&
		   info->value_size == sizeof(struct pacer_sampler)) {
		a->n_differ = info->max_entries;
		a->differ = map_memory(a, fd, a->mapped[ATTACHED_DIFFER] = len);
	}
	return false;
}

/* As take_map, of the maps that are there for other tools. */
static bool take_tools(struct attached *a, int fd, const struct bpf_map_info *info)
{
	if (!strcmp(info->name, "pacer_banned4") && a->tools4_fd < 0 &&
	    info->key_size == sizeof(struct pacer_tools4))
		return (a->tools4_fd = fd) >= 0;
	if (!strcmp(info->name, "pacer_banned6") && a->tools6_fd < 0 &&
	    info->key_size == sizeof(struct pacer_tools6))
		return (a->tools6_fd = fd) >= 0;
	return false;
}

/* Keeps the map if it is one of ours by name. Otherwise the caller closes fd. */
static bool take_map(struct attached *a, int fd, const struct bpf_map_info *info)
{
	size_t len = (size_t)info->value_size * info->max_entries;

	if (!strcmp(info->name, ".data.control") && !a->control) {
		a->control = map_memory(a, fd, a->mapped[ATTACHED_CONTROL] = len);
		a->control_id = info->id;
	} else if (!strcmp(info->name, ".data.policy") && !a->copy &&
		   len == 2 * sizeof(struct pacer_copy)) {
		a->copy = map_memory(a, fd, a->mapped[ATTACHED_COPIES] = len);
	} else if (!strcmp(info->name, "pacer_lines") && !a->lines) {
		a->n_lines = info->max_entries;
		a->lines = map_memory(a, fd, a->mapped[ATTACHED_LINES] = len);
	} else if (!strcmp(info->name, "pacer_throttles") && !a->throttle &&
		   len == PACER_THROTTLES * sizeof(struct pacer_throttle_state)) {
		a->throttle = map_memory(a, fd, a->mapped[ATTACHED_THROTTLES] = len);
	} else if (!strcmp(info->name, "pacer_log") && !a->log && len == sizeof(struct pacer_log)) {
		a->log = map_memory(a, fd, a->mapped[ATTACHED_LOG] = len);
	} else if (!strcmp(info->name, "pacer_samples") && a->samples.samplers_fd < 0) {
		a->samples.samplers_fd = fd;
		map_samplers(a);
		return true;
	} else if (!strcmp(info->name, "pacer_heads") && a->samples.heads_fd < 0) {
		a->samples.heads_fd = fd;
		map_heads(a);
		return true;
	} else if (!strcmp(info->name, "pacer_leases") && a->leases_fd < 0 &&
		   info->value_size == sizeof(struct pacer_throttle_lease)) {
		a->leases_fd = fd;
		return true;
	} else if (!strcmp(info->name, "pacer_devices") && a->targets.devices_fd < 0) {
		a->targets.devices_fd = fd;
		return true;
	} else if (!strcmp(info->name, "pacer_cpus") && a->targets.cpus_fd < 0) {
		a->targets.cpus_fd = fd;
		a->targets.cpus_max = info->max_entries;
		return true;
	} else if (!strncmp(info->name, "pacer_pool_leases", BPF_OBJ_NAME_LEN - 1) &&
		   a->targets.leases_fd < 0 &&
		   info->value_size == sizeof(struct pacer_pool_lease)) {
		a->targets.leases_fd = fd;
		return true;
	} else if (!strcmp(info->name, "pacer_counts") && a->counts_fd < 0 &&
		   info->value_size == sizeof(struct pacer_counters)) {
		a->counts_fd = fd;
		return true;
	} else if (!strcmp(info->name, "pacer_sets") && a->sets_fd < 0 &&
		   info->max_entries == PACER_SET_PLACES) {
		a->sets_fd = fd;
		return true;
	} else if (!strcmp(info->name, "pacer_set_hits") && a->set_hits_fd < 0 &&
		   info->value_size == sizeof(struct pacer_set_count)) {
		a->set_hits_fd = fd;
		return true;
	} else if (!strcmp(info->name, "pacer_allow4") && a->allow4_fd < 0) {
		a->allow4_fd = fd;
		return true;
	} else if (!strcmp(info->name, "pacer_allow6") && a->allow6_fd < 0) {
		a->allow6_fd = fd;
		return true;
	}
	return take_tools(a, fd, info) || take_map_of_shadow(a, fd, info);
}

static int open_maps(struct attached *a, struct policy_error *error)
{
	struct bpf_prog_info info = {0};
	uint32_t ids[32], len = sizeof(info);

	info.nr_map_ids = sizeof(ids) / sizeof(*ids);
	info.map_ids = (uintptr_t)ids;
	if (bpf_obj_get_info_by_fd(a->prog_fd, &info, &len))
		return policy_fail(error, 0, "%s: its program cannot be read: %s", a->ifname,
				   strerror(errno));
	a->prog_id = info.id;
	for (uint32_t i = 0; i < info.nr_map_ids && i < sizeof(ids) / sizeof(*ids); i++) {
		struct bpf_map_info map = {0};
		uint32_t map_len = sizeof(map);
		int fd = bpf_map_get_fd_by_id(ids[i]);

		if (fd < 0)
			return policy_fail(error, 0, "%s: its maps cannot be opened: %s%s",
					   a->ifname, strerror(errno),
					   errno == EPERM ? ": run as root" : "");
		if (bpf_obj_get_info_by_fd(fd, &map, &map_len)) {
			a->unread = errno;
			close(fd);
		} else if (!take_map(a, fd, &map)) {
			close(fd);
		}
	}
	return a->unread ? policy_fail(error, 0, "%s: its maps cannot be read: %s", a->ifname,
				       strerror(a->unread))
			 : 0;
}

static int check_abi(const struct attached *a, struct policy_error *error)
{
	if (!a->control || a->mapped[ATTACHED_CONTROL] < 2 * sizeof(uint32_t) ||
	    a->control->magic != PACER_MAGIC)
		return refusal_not_a_pacer(a->ifname, error);
	if (a->control->abi_version != PACER_ABI_VERSION ||
	    a->mapped[ATTACHED_CONTROL] != sizeof(struct pacer_control))
		return policy_fail(
		    error, 0,
		    "%s: its pacer has ABI version %u, this tool %u: `xdp-pacer load %s "
		    "--replace -c POLICY` takes over, `xdp-pacer unload %s` takes it off",
		    a->ifname, a->control->abi_version, PACER_ABI_VERSION, a->ifname, a->ifname);
	if (!a->copy || !a->lines || !a->throttle || !a->log || a->counts_fd < 0 ||
	    a->allow4_fd < 0 || a->allow6_fd < 0 || a->leases_fd < 0 || a->targets.devices_fd < 0 ||
	    a->targets.cpus_fd < 0 || a->targets.leases_fd < 0 || a->samples.samplers_fd < 0 ||
	    a->samples.heads_fd < 0 || a->sets_fd < 0 || a->set_hits_fd < 0 || a->tools4_fd < 0 ||
	    a->tools6_fd < 0)
		return policy_fail(error, 0,
				   "%s: its pacer lacks a map: `xdp-pacer load %s --replace -c "
				   "POLICY` puts a new one in its place",
				   a->ifname, a->ifname);
	return 0;
}

void attached_close_files(struct attached *a)
{
	int *fds[] = {&a->prog_fd,	    &a->counts_fd,	   &a->allow4_fd,
		      &a->allow6_fd,	    &a->leases_fd,	   &a->targets.devices_fd,
		      &a->targets.cpus_fd,  &a->targets.leases_fd, &a->samples.samplers_fd,
		      &a->samples.heads_fd, &a->sets_fd,	   &a->next_fd,
		      &a->changes_fd,	    &a->set_hits_fd,	   &a->tools4_fd,
		      &a->tools6_fd};

	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

void attached_release(struct attached *a)
{
	void *at[ATTACHED_MAPPINGS] = {a->control, a->copy, a->lines,  a->throttle, a->sampler,
				       a->heads,   a->log,  a->differ, a->shadowed};

	for (size_t i = 0; i < ATTACHED_MAPPINGS; i++)
		if (at[i])
			munmap(at[i], a->mapped[i]);
	attached_close_files(a);
	memset(a, 0, sizeof(*a));
}

static const struct attached nothing = {.prog_fd = -1,
					.counts_fd = -1,
					.allow4_fd = -1,
					.allow6_fd = -1,
					.leases_fd = -1,
					.sets_fd = -1,
					.set_hits_fd = -1,
					.tools4_fd = -1,
					.tools6_fd = -1,
					.next_fd = -1,
					.changes_fd = -1,
					.targets = {-1, -1, -1, 0},
					.samples = {-1, -1}};

int attached_open(const char *ifname, int ifindex, int prog_fd, struct attached *a,
		  struct policy_error *error)
{
	*a = nothing;
	snprintf(a->ifname, sizeof(a->ifname), "%s", ifname);
	a->ifindex = ifindex;
	a->prog_fd = fcntl(prog_fd, F_DUPFD_CLOEXEC, 3);
	if (a->prog_fd < 0)
		policy_explain(error, 0, "%s: its program cannot be opened: %s", ifname,
			       strerror(errno));
	else if (!open_maps(a, error) && !check_abi(a, error))
		return 0;
	attached_release(a);
	return -1;
}

void attached_at(struct attached *a, const struct site *site)
{
	a->dispatcher = site->dispatched;
	a->mode = site_mode_name(site->mode);
	a->site_id = site->id;
	a->second_id = site->second_id;
}

int attached_find(const char *ifname, struct attached *a, struct policy_error *error)
{
	struct site site;
	int ifindex, result = -1;

	complaint_begin();
	ifindex = device_index(ifname, error);
	if (ifindex < 0 || host_cpus(error) < 0 || site_open(ifname, ifindex, &site, error))
		return -1;
	if (!site.named)
		refusal_no_pacer(ifname, &site, error);
	else
		result = attached_open(ifname, ifindex, site.pacer_fd, a, error);
	if (!result)
		attached_at(a, &site);
	site_close(&site);
	return result;
}

int attached_any(const char *ifname, struct policy_error *error)
{
	int ifindex, result = 0;
	struct site site;

	complaint_begin();
	ifindex = device_index(ifname, error);
	if (ifindex < 0 || site_open(ifname, ifindex, &site, error))
		return -1;
	if (!site.pacer)
		result = site.named ? refusal_not_a_pacer(ifname, error)
				    : refusal_no_pacer(ifname, &site, error);
	site_close(&site);
	return result;
}

/* errno says why its program could not be had, if there was one. */
static int shadow_lost(const struct attached *a, struct policy_error *error)
{
	if (a->shadow_id && errno != ENOENT)
		return policy_fail(error, 0, "%s: its shadow cannot be opened: %s%s", a->ifname,
				   strerror(errno), errno == EPERM ? ": run as root" : "");
	policy_explain(error, 0,
		       "%s: its shadow was lost, as what is pinned under "
		       "/sys/fs/bpf/xdp-pacer was removed: `xdp-pacer shadow %s --stop`",
		       a->ifname, a->ifname);
	return 1;
}

int attached_shadow(const struct attached *a, struct attached *s, struct policy_error *error)
{
	if (a->next_fd < 0) {
		policy_explain(error, 0,
			       "%s: no shadow runs beside its policy: `xdp-pacer shadow %s -c "
			       "POLICY` begins one",
			       a->ifname, a->ifname);
		return 1;
	}
	*s = nothing;
	memcpy(s->ifname, a->ifname, sizeof(s->ifname));
	s->ifindex = a->ifindex;
	s->mode = a->mode;
	s->dispatcher = a->dispatcher;
	s->site_id = a->site_id;
	s->prog_fd = a->shadow_id ? bpf_prog_get_fd_by_id(a->shadow_id) : -1;
	if (s->prog_fd < 0)
		return shadow_lost(a, error);
	if (open_maps(s, error)) {
		attached_release(s);
		return -1;
	}
	if (!check_abi(s, error) && s->shadowed && s->differ && s->changes_fd >= 0)
		return 0;
	attached_release(s);
	return policy_fail(
	    error, 0,
	    "%s: its shadow is of another version: `xdp-pacer shadow %s --stop` ends "
	    "it",
	    a->ifname, a->ifname);
}

void attached_sampled(struct attached *a)
{
	uint64_t word = __atomic_load_n(&a->control->in_force, __ATOMIC_ACQUIRE);
	uint32_t copy = pacer_in_force(word, host_now_ns());
	const struct pacer_sampling *by = &a->copy[copy].policy.sampling;

	if (by->reasons && !a->sampler)
		map_samplers(a);
	if (by->reasons && by->snap && !a->heads)
		map_heads(a);
}

bool attached_same(const char *ifname, const struct attached *a)
{
	int64_t now = a->ifindex ? site_id(a->ifindex) : 0;

	return a->ifindex && (now < 0 || now == a->site_id) &&
	       if_nametoindex(ifname) == (unsigned int)a->ifindex;
}

int attached_follow(const char *ifname, struct attached *a, struct policy_error *error)
{
	if (attached_same(ifname, a)) {
		attached_sampled(a);
		return 0;
	}
	if (a->ifindex)
		attached_release(a);
	return attached_find(ifname, a, error);
}

/* No, where it cannot be told. */
static bool is_paced_by_none(const char *ifname)
{
	int ifindex = (int)if_nametoindex(ifname);
	struct policy_error unused;
	struct site site;
	bool none;

	if (!ifindex)
		return errno == ENODEV;
	if (site_open(ifname, ifindex, &site, &unused))
		return false;
	none = !site.named || site.abi != PACER_ABI_VERSION;
	site_close(&site);
	return none;
}

/*
 * Does its interface have another name by now, and its state under that? No, where that cannot be
 * told.
 */
static bool goes_on_elsewhere(const struct attached *a, char name[IF_NAMESIZE])
{
	struct policy_error unused;
	struct attached there;
	bool is;

	if (!if_indextoname((unsigned int)a->ifindex, name) || !strcmp(name, a->ifname) ||
	    attached_find(name, &there, &unused))
		return false;
	is = there.ifindex == a->ifindex && there.control_id == a->control_id;
	attached_release(&there);
	return is;
}

int attached_next(const char *ifname, struct attached *a, struct policy_error *error)
{
	char name[IF_NAMESIZE];
	struct attached now;

	if (attached_find(ifname, &now, error))
		return is_paced_by_none(ifname) ? 1 : -1;
	if (goes_on_elsewhere(a, name)) {
		attached_release(&now);
		policy_explain(error, 0, "%s: its name is %s now", ifname, name);
		return 1;
	}
	attached_release(a);
	*a = now;
	return 0;
}

/*
 * Is its state on its interface, under this program or another? Then *now is that. -1: it cannot be
 * told, and *error says why.
 */
static int find_again(const struct attached *a, struct attached *now, struct policy_error *error)
{
	struct policy_error unused;
	struct site site;
	int there;

	if (!attached_find(a->ifname, now, error)) {
		there = now->control_id == a->control_id;
		if (!there)
			attached_release(now);
		return there;
	}
	if (site_open(a->ifname, a->ifindex, &site, &unused))
		return -1;
	there =
	    site.pacer_id == a->prog_id || (site.named && site.abi == PACER_ABI_VERSION) ? -1 : 0;
	site_close(&site);
	return there;
}

/* As find_again; *a is what it finds. */
static int go_on(struct attached *a, struct policy_error *error)
{
	struct attached now;
	int there = find_again(a, &now, error);

	if (there > 0) {
		attached_release(a);
		*a = now;
	}
	return there;
}

int attached_still(struct attached *a, struct policy_error *error)
{
	int there = go_on(a, error);

	if (there)
		return there < 0 ? -1 : 0;
	return policy_fail(error, 0, "%s: its pacer was taken off or replaced meanwhile: try again",
			   a->ifname);
}

/* Is it gone, or has another its name? */
static bool lost_interface(const struct attached *a)
{
	unsigned int now = if_nametoindex(a->ifname);

	return now ? now != (unsigned int)a->ifindex : errno == ENODEV;
}

bool attached_gone(const struct attached *a)
{
	struct policy_error unused;
	struct attached now;
	int there = find_again(a, &now, &unused);

	if (there > 0)
		attached_release(&now);
	return !there || (there < 0 && lost_interface(a));
}

bool attached_goes_on(struct attached *a)
{
	struct policy_error unused;
	int there;

	if (attached_same(a->ifname, a))
		return true;
	there = go_on(a, &unused);
	return there > 0 || (there < 0 && !lost_interface(a));
}

int attached_site(const char *ifname, int ifindex, struct site *site, struct policy_error *error)
{
	if (ifindex < 0 || site_open(ifname, ifindex, site, error))
		return if_nametoindex(ifname) || errno != ENODEV ? -1 : 0;
	if (site->named)
		return 1;
	site_close(site);
	return 0;
}

int attached_each(int (*each)(const char *ifname, void *arg), void *arg, struct policy_error *error)
{
	struct if_nameindex *all = if_nameindex();
	int result = 0;

	complaint_begin();
	if (!all)
		return policy_fail(error, 0, "the interfaces cannot be listed: %s",
				   strerror(errno));
	for (struct if_nameindex *i = all; i->if_index && !result; i++) {
		struct site site;

		result = attached_site(i->if_name, (int)i->if_index, &site, error);
		if (result <= 0)
			continue;
		site_close(&site);
		result = each(i->if_name, arg);
	}
	if_freenameindex(all);
	return result;
}
