/* SPDX-License-Identifier: GPL-2.0-only */
#include "loader.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <xdp/libxdp.h>

#include "pacer.skel.h"

#define SECTION "xdp.frags"
#define PROGRAM "pacer"

/* The last complaint of the libraries: the cause in our own one line. */
static char complaint[300];

static int keep_complaint(const char *format, va_list args)
{
	char line[sizeof(complaint)];
	size_t n;

	vsnprintf(line, sizeof(line), format, args);
	n = strcspn(line, "\n");
	line[n] = 0;
	if (n)
		memcpy(complaint, line, n + 1);
	return 0;
}

static int print_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN ? keep_complaint(format, args) : 0;
}

static int print_libxdp(enum libxdp_print_level level, const char *format, va_list args)
{
	return level == LIBXDP_WARN ? keep_complaint(format, args) : 0;
}

static void quiet(void)
{
	complaint[0] = 0;
	libbpf_set_print(print_libbpf);
	libxdp_set_print(print_libxdp);
}

uint64_t loader_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

uint64_t loader_resolution(void)
{
	struct timespec ts;

	clock_getres(CLOCK_MONOTONIC_COARSE, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* --- the interface -------------------------------------------------------------------------- */

static int interface_index(const char *ifname, struct policy_error *error)
{
	int index = if_nametoindex(ifname);

	if (!index)
		return policy_fail(error, 0, "%s: there is no such interface here: see `ip link`",
				   ifname);
	return index;
}

static int interface_is_up(const char *ifname, struct policy_error *error)
{
	struct ifreq request = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int failed;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", ifname);
	failed = fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request);
	if (fd >= 0)
		close(fd);
	if (failed)
		return policy_fail(error, 0, "%s: its state cannot be read: %s", ifname,
				   strerror(errno));
	if (!(request.ifr_flags & IFF_UP))
		return policy_fail(error, 0, "%s: the interface is down: `ip link set %s up` first",
				   ifname, ifname);
	return 0;
}

/* The programs of an interface; NULL with *error empty where there is none. */
static struct xdp_multiprog *programs_of(const char *ifname, int ifindex,
					 struct policy_error *error)
{
	struct xdp_multiprog *mp = xdp_multiprog__get_from_ifindex(ifindex);
	long err = libxdp_get_error(mp);

	error->text[0] = 0;
	if (!err)
		return mp;
	if (err == -EPERM)
		policy_explain(error, 0,
			       "%s: no privilege to look at its XDP programs: run as root", ifname);
	else if (err != -ENOENT)
		policy_explain(error, 0, "%s: its XDP programs cannot be read: %s%s%s", ifname,
			       strerror(-err), *complaint ? ": " : "", complaint);
	return NULL;
}

/* Of the programs on an interface, the pacer. */
static struct xdp_program *pacer_of(struct xdp_multiprog *mp)
{
	struct xdp_program *p = NULL;

	if (xdp_multiprog__is_legacy(mp)) {
		p = xdp_multiprog__main_prog(mp);
		return p && !strcmp(xdp_program__name(p), PROGRAM) ? p : NULL;
	}
	while ((p = xdp_multiprog__next_prog(p, mp)))
		if (!strcmp(xdp_program__name(p), PROGRAM))
			return p;
	return NULL;
}

static const char *mode_name(enum xdp_attach_mode mode)
{
	return mode == XDP_MODE_SKB ? "skb" : mode == XDP_MODE_HW ? "hw" : "native";
}

/* --- attach --------------------------------------------------------------------------------- */

static int may_attach(const char *ifname, int ifindex, bool direct, struct policy_error *error)
{
	struct xdp_multiprog *mp = programs_of(ifname, ifindex, error);
	struct xdp_program *other;
	int result = 0;

	if (!mp)
		return error->text[0] ? -1 : 0;
	other = xdp_multiprog__main_prog(mp);
	if (pacer_of(mp))
		result = policy_fail(error, 0,
				     "%s: is paced already: change it with `xdp-pacer apply %s`",
				     ifname, ifname);
	else if (xdp_multiprog__is_legacy(mp))
		result = policy_fail(
		    error, 0,
		    "%s: already carries the XDP program %s (id %u), which stands alone: "
		    "take it off with `ip link set dev %s xdp off`, or load it through "
		    "xdp-loader",
		    ifname, other ? xdp_program__name(other) : "?",
		    other ? xdp_program__id(other) : 0, ifname);
	else if (direct)
		result = policy_fail(
		    error, 0, "%s: already carries the libxdp dispatcher: load without --direct",
		    ifname);
	xdp_multiprog__close(mp);
	return result;
}

/* A trie that holds the policy's prefixes of one family already. */
static int fill_trie(struct bpf_map *map, const struct policy *policy, int family, uint32_t *count,
		     struct policy_error *error)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_NO_PREALLOC);
	int fd = bpf_map_create(BPF_MAP_TYPE_LPM_TRIE, bpf_map__name(map), bpf_map__key_size(map),
				bpf_map__value_size(map), PACER_ALLOW_MAX, &options);
	struct pacer_allow_value value = {.of_policy = 1};
	int err = fd < 0 ? -1 : 0;

	for (size_t i = 0; i < policy->n_allow && !err; i++) {
		struct pacer_allow6 key = {.prefixlen = policy->allow[i].len};

		if (policy->allow[i].family != family)
			continue;
		memcpy(key.addr, policy->allow[i].addr, family == 4 ? 4 : 16);
		err = bpf_map_update_elem(fd, &key, &value, BPF_ANY);
		++*count;
	}
	if (!err)
		err = bpf_map__reuse_fd(map, fd);
	if (err && errno == EPERM)
		policy_explain(error, 0, "no privilege to make a BPF map: run as root");
	else if (err)
		policy_explain(error, 0, "the allow-list cannot be made: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return err ? -1 : 0;
}

static void *map_memory(int fd, size_t len)
{
	void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* In place of a map of the object, one of another size, mapped; the caller unmaps it. */
static void *make_array(struct bpf_map *map, uint32_t value_size, uint32_t entries)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, bpf_map__name(map), sizeof(uint32_t),
				value_size, entries, &options);
	void *at = fd < 0 ? NULL : map_memory(fd, (size_t)value_size * entries);

	if (at && bpf_map__reuse_fd(map, fd)) {
		munmap(at, (size_t)value_size * entries);
		at = NULL;
	}
	if (fd >= 0)
		close(fd);
	return at;
}

static int draw_seeds(struct pacer_sampler *sampler, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t seed;

		if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
			return -1;
		pacer_sampler_init(&sampler[i], seed);
	}
	return 0;
}

/* Where the policy samples: the memory for it, a CPU's each. */
static int make_samplers(struct pacer_bpf *skel, const struct pacer_sampling *sampling,
			 struct policy_error *error)
{
	int cpus = libbpf_num_possible_cpus();
	struct pacer_sampler *sampler;
	void *heads = NULL;
	int result;

	if (!sampling->reasons)
		return 0;
	if (cpus < 1)
		return policy_fail(error, 0, "the number of CPUs is not known");
	sampler = make_array(skel->maps.pacer_samples, sizeof(*sampler), cpus);
	if (sampling->snap)
		heads = make_array(skel->maps.pacer_heads, sizeof(struct pacer_heads), cpus);
	result = !sampler || draw_seeds(sampler, cpus) || (sampling->snap && !heads);
	skel->rodata_built->pacer_built.samples = 1;
	skel->rodata_built->pacer_built.heads = !!sampling->snap;
	if (sampler)
		munmap(sampler, cpus * sizeof(*sampler));
	if (heads)
		munmap(heads, cpus * sizeof(struct pacer_heads));
	return result ? policy_fail(error, 0,
				    "no memory for the samples of %d CPUs: %s: leave sample out",
				    cpus, strerror(errno))
		      : 0;
}

/* In place of a map of the object, an equal one of so many entries, which can be filled already. */
static int make_map(struct bpf_map *map, enum bpf_map_type type, uint32_t entries)
{
	int fd = bpf_map_create(type, bpf_map__name(map), bpf_map__key_size(map),
				bpf_map__value_size(map), entries, NULL);

	if (fd >= 0 && bpf_map__reuse_fd(map, fd)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* The maps that packets are redirected through, filled before the first packet. */
static int make_targets(struct pacer_bpf *skel, const struct loader_policy *begin,
			struct policy_error *error)
{
	uint32_t cpus = libbpf_num_possible_cpus();
	struct target_maps maps = {
	    .devices_fd = make_map(skel->maps.pacer_devices, BPF_MAP_TYPE_DEVMAP,
				   bpf_map__max_entries(skel->maps.pacer_devices)),
	    .cpus_fd = make_map(skel->maps.pacer_cpus, BPF_MAP_TYPE_CPUMAP, cpus),
	    .leases_fd = make_map(skel->maps.pacer_pool_leases, BPF_MAP_TYPE_PERCPU_ARRAY,
				  bpf_map__max_entries(skel->maps.pacer_pool_leases)),
	    .cpus_max = cpus,
	};
	int fds[] = {maps.devices_fd, maps.cpus_fd, maps.leases_fd};
	int result = 0;

	if (maps.devices_fd < 0 || maps.cpus_fd < 0 || maps.leases_fd < 0)
		result = policy_fail(error, 0, "the maps of targets cannot be made: %s%s",
				     strerror(errno), errno == EPERM ? ": run as root" : "");
	else
		result = targets_put(&maps, 0, begin->plan, error);
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return result;
}

static int prepare(struct pacer_bpf *skel, const struct loader_policy *begin,
		   struct policy_error *error)
{
	struct pacer_control *control = &skel->data_control->pacer_control;
	struct pacer_copy *copy = &skel->data_policy->pacer_copies[0];

	if (begin->lines > INT32_MAX ||
	    bpf_map__set_max_entries(skel->maps.pacer_lines, begin->lines))
		return policy_fail(error, 0,
				   "memory: %llu lines are more than a map can hold: use less",
				   (unsigned long long)begin->lines);
	if (strlen(begin->text) >= PACER_DOC_MAX)
		return policy_fail(error, 0, "the policy's text is longer than %u bytes",
				   PACER_DOC_MAX - 1);
	if (getrandom(control->secret, sizeof(control->secret), 0) != sizeof(control->secret))
		return policy_fail(error, 0, "no random numbers for the hash's secret: %s",
				   strerror(errno));
	control->secret_ready = PACER_SECRET_OF_TOOLS;
	control->in_force = 0;
	control->resolution_ns = begin->resolution_ns;
	copy->policy = *begin->bin;
	memset(copy->text, 0, sizeof(copy->text));
	memcpy(copy->text, begin->text, strlen(begin->text));
	if (make_samplers(skel, &begin->bin->sampling, error) || make_targets(skel, begin, error))
		return -1;
	if (fill_trie(skel->maps.pacer_allow4, begin->policy, 4, &control->allowed4, error))
		return -1;
	return fill_trie(skel->maps.pacer_allow6, begin->policy, 6, &control->allowed6, error);
}

static int attach_failed(const char *ifname, enum loader_mode mode, int err,
			 struct policy_error *error)
{
	if (err == -EPERM)
		return policy_fail(error, 0,
				   "%s: no privilege to load and attach (%s): run as root", ifname,
				   strerror(-err));
	if (mode == LOADER_HW)
		return policy_fail(
		    error, 0,
		    "%s: its driver does not take the program into hardware (%s): use "
		    "--mode native",
		    ifname, strerror(-err));
	if (err == -EACCES || err == -E2BIG)
		return policy_fail(
		    error, 0,
		    "%s: this kernel's verifier refuses the program (%s): the README's "
		    "limits say which kernels are known to take it",
		    ifname, *complaint ? complaint : strerror(-err));
	if (err == -ENOMEM)
		return policy_fail(
		    error, 0, "%s: the kernel has no memory for the state: lower memory", ifname);
	if ((err == -EOPNOTSUPP || err == -EINVAL) && mode == LOADER_NATIVE)
		return policy_fail(
		    error, 0,
		    "%s: its driver takes no native XDP program (%s%s%s): use --mode skb, "
		    "slower, on purpose",
		    ifname, strerror(-err), *complaint ? ": " : "", complaint);
	if (err == -EBUSY || err == -EEXIST)
		return policy_fail(
		    error, 0, "%s: another XDP program holds it: see `xdp-loader status`", ifname);
	return policy_fail(error, 0, "%s: the program was not attached: %s%s%s", ifname,
			   strerror(-err), *complaint ? ": " : "", complaint);
}

static int attach_direct(struct pacer_bpf *skel, int ifindex, enum loader_mode mode)
{
	unsigned int flags = XDP_FLAGS_UPDATE_IF_NOEXIST;
	int err;

	flags |= mode == LOADER_SKB  ? XDP_FLAGS_SKB_MODE
		 : mode == LOADER_HW ? XDP_FLAGS_HW_MODE
				     : XDP_FLAGS_DRV_MODE;
	err = bpf_object__load(skel->obj);
	if (err)
		return err;
	return bpf_xdp_attach(ifindex, bpf_program__fd(skel->progs.pacer), flags, NULL);
}

static int attach_libxdp(struct pacer_bpf *skel, int ifindex, enum loader_mode mode)
{
	struct xdp_program *p = xdp_program__from_bpf_obj(skel->obj, SECTION);
	int err = libxdp_get_error(p);

	if (err)
		return err;
	err = xdp_program__set_xdp_frags_support(p, true);
	if (!err)
		err = xdp_program__attach(p, ifindex,
					  mode == LOADER_SKB  ? XDP_MODE_SKB
					  : mode == LOADER_HW ? XDP_MODE_HW
							      : XDP_MODE_NATIVE,
					  0);
	xdp_program__close(p);
	return err;
}

int loader_load(const char *ifname, const struct loader_options *options,
		const struct loader_policy *begin, struct policy_error *error)
{
	struct policy_error why = {0};
	struct pacer_bpf *skel;
	int ifindex, err;

	quiet();
	ifindex = interface_index(ifname, error);
	if (ifindex < 0 || interface_is_up(ifname, error) ||
	    may_attach(ifname, ifindex, options->direct, error))
		return -1;
	skel = pacer_bpf__open();
	if (!skel)
		return policy_fail(error, 0, "the built-in object cannot be opened: %s",
				   strerror(errno));
	if (prepare(skel, begin, &why)) {
		pacer_bpf__destroy(skel);
		return policy_fail(error, 0, "%s: %s", ifname, why.text);
	}
	complaint[0] = 0;
	err = options->direct ? attach_direct(skel, ifindex, options->mode)
			      : attach_libxdp(skel, ifindex, options->mode);
	pacer_bpf__destroy(skel);
	return err ? attach_failed(ifname, options->mode, err, error) : 0;
}

/* --- find ----------------------------------------------------------------------------------- */

/* Keep the map if it is one of ours, under its name; the caller closes fd otherwise. */
static bool take_map(struct attached *a, int fd, const struct bpf_map_info *info)
{
	size_t len = (size_t)info->value_size * info->max_entries;

	if (!strcmp(info->name, ".data.control") && !a->control) {
		a->control = map_memory(fd, a->mapped[LOADER_CONTROL] = len);
	} else if (!strcmp(info->name, ".data.policy") && !a->copy &&
		   len == 2 * sizeof(struct pacer_copy)) {
		a->copy = map_memory(fd, a->mapped[LOADER_COPIES] = len);
	} else if (!strcmp(info->name, "pacer_lines") && !a->lines) {
		a->n_lines = info->max_entries;
		a->lines = map_memory(fd, a->mapped[LOADER_LINES] = len);
	} else if (!strcmp(info->name, "pacer_throttles") && !a->throttle &&
		   len == PACER_THROTTLES * sizeof(struct pacer_throttle_state)) {
		a->throttle = map_memory(fd, a->mapped[LOADER_THROTTLES] = len);
	} else if (!strcmp(info->name, "pacer_samples") && !a->sampler &&
		   info->value_size == sizeof(struct pacer_sampler)) {
		a->n_samplers = info->max_entries;
		a->sampler = map_memory(fd, a->mapped[LOADER_SAMPLERS] = len);
	} else if (!strcmp(info->name, "pacer_heads") && !a->heads &&
		   info->value_size == sizeof(struct pacer_heads)) {
		a->heads = map_memory(fd, a->mapped[LOADER_HEADS] = len);
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
	} else if (!strcmp(info->name, "pacer_allow4") && a->allow4_fd < 0) {
		a->allow4_fd = fd;
		return true;
	} else if (!strcmp(info->name, "pacer_allow6") && a->allow6_fd < 0) {
		a->allow6_fd = fd;
		return true;
	}
	return false;
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
			return policy_fail(error, 0,
					   "%s: its maps cannot be opened: %s: run as root",
					   a->ifname, strerror(errno));
		if (bpf_obj_get_info_by_fd(fd, &map, &map_len) || !take_map(a, fd, &map))
			close(fd);
	}
	return 0;
}

static int check_abi(const struct attached *a, struct policy_error *error)
{
	if (!a->control || a->mapped[LOADER_CONTROL] < 2 * sizeof(uint32_t) ||
	    a->control->magic != PACER_MAGIC)
		return policy_fail(error, 0,
				   "%s: its program is named pacer, but is not one: not touched",
				   a->ifname);
	if (a->control->abi_version != PACER_ABI_VERSION ||
	    a->mapped[LOADER_CONTROL] != sizeof(struct pacer_control))
		return policy_fail(
		    error, 0,
		    "%s: its pacer has ABI version %u, this tool %u: use the tool that it "
		    "came with, or take it off with `ip link set dev %s xdp off`",
		    a->ifname, a->control->abi_version, PACER_ABI_VERSION, a->ifname);
	if (!a->copy || !a->lines || !a->throttle || a->counts_fd < 0 || a->allow4_fd < 0 ||
	    a->allow6_fd < 0 || a->leases_fd < 0 || a->targets.devices_fd < 0 ||
	    a->targets.cpus_fd < 0 || a->targets.leases_fd < 0)
		return policy_fail(error, 0,
				   "%s: its pacer lacks a map: take it off and load it again",
				   a->ifname);
	return 0;
}

void loader_release(struct attached *a)
{
	void *at[LOADER_MAPPINGS] = {a->control,  a->copy,    a->lines,
				     a->throttle, a->sampler, a->heads};
	int fds[] = {a->prog_fd,   a->counts_fd,	  a->allow4_fd,	      a->allow6_fd,
		     a->leases_fd, a->targets.devices_fd, a->targets.cpus_fd, a->targets.leases_fd};

	for (size_t i = 0; i < LOADER_MAPPINGS; i++)
		if (at[i])
			munmap(at[i], a->mapped[i]);
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	memset(a, 0, sizeof(*a));
}

int loader_find(const char *ifname, struct attached *a, struct policy_error *error)
{
	struct xdp_multiprog *mp;
	struct xdp_program *p;

	quiet();
	*a = (struct attached){.prog_fd = -1,
			       .counts_fd = -1,
			       .allow4_fd = -1,
			       .allow6_fd = -1,
			       .leases_fd = -1,
			       .targets = {-1, -1, -1, 0}};
	a->ifindex = interface_index(ifname, error);
	if (a->ifindex < 0)
		return -1;
	snprintf(a->ifname, sizeof(a->ifname), "%s", ifname);
	mp = programs_of(ifname, a->ifindex, error);
	if (!mp)
		return error->text[0]
			   ? -1
			   : policy_fail(error, 0,
					 "%s: has no pacer: attach one with `xdp-pacer load %s "
					 "-c POLICY`",
					 ifname, ifname);
	p = pacer_of(mp);
	if (!p) {
		xdp_multiprog__close(mp);
		return policy_fail(error, 0, "%s: its XDP program is not the pacer", ifname);
	}
	a->dispatcher = !xdp_multiprog__is_legacy(mp);
	a->mode = mode_name(xdp_multiprog__attach_mode(mp));
	a->prog_fd = fcntl(xdp_program__fd(p), F_DUPFD_CLOEXEC, 3);
	xdp_multiprog__close(mp);
	if (a->prog_fd < 0)
		policy_explain(error, 0, "%s: its program cannot be opened: run as root", ifname);
	else if (!open_maps(a, error) && !check_abi(a, error))
		return 0;
	loader_release(a);
	return -1;
}

/* --- detach --------------------------------------------------------------------------------- */

bool loader_gone(const struct attached *a)
{
	struct policy_error error;
	struct attached other;
	bool gone;

	if (loader_find(a->ifname, &other, &error))
		return true;
	gone = other.prog_id != a->prog_id;
	loader_release(&other);
	return gone;
}

int loader_unload(const struct attached *a, struct policy_error *error)
{
	struct xdp_multiprog *mp;
	int err;

	quiet();
	mp = programs_of(a->ifname, a->ifindex, error);
	if (!mp)
		return error->text[0] ? -1 : policy_fail(error, 0, "%s: has no pacer", a->ifname);
	if (xdp_multiprog__is_legacy(mp)) {
		LIBBPF_OPTS(bpf_xdp_attach_opts, options, .old_prog_fd = a->prog_fd);

		err = bpf_xdp_detach(a->ifindex,
				     !strcmp(a->mode, "skb")  ? XDP_FLAGS_SKB_MODE
				     : !strcmp(a->mode, "hw") ? XDP_FLAGS_HW_MODE
							      : XDP_FLAGS_DRV_MODE,
				     &options);
	} else {
		err = xdp_program__detach(pacer_of(mp), a->ifindex, xdp_multiprog__attach_mode(mp),
					  0);
	}
	xdp_multiprog__close(mp);
	if (err)
		return policy_fail(error, 0, "%s: the pacer was not detached: %s%s%s", a->ifname,
				   strerror(-err), *complaint ? ": " : "", complaint);
	return 0;
}

int loader_each(int (*each)(const char *ifname, void *arg), void *arg, struct policy_error *error)
{
	struct if_nameindex *all = if_nameindex();
	int result = 0;

	quiet();
	if (!all)
		return policy_fail(error, 0, "the interfaces cannot be listed: %s",
				   strerror(errno));
	for (struct if_nameindex *i = all; i->if_index && !result; i++) {
		struct xdp_multiprog *mp = programs_of(i->if_name, i->if_index, error);

		if (!mp && error->text[0])
			result = -1;
		if (!mp)
			continue;
		if (pacer_of(mp))
			result = each(i->if_name, arg);
		xdp_multiprog__close(mp);
	}
	if_freenameindex(all);
	return result;
}
