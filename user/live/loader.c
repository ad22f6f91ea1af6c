/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/loader.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <xdp/libxdp.h>

#include "pacer.skel.h"
#include "live/pins.h"
#include "live/site.h"

#define SECTION	     "xdp.frags"
#define KERNEL_MAJOR 6 /* the oldest kernel known to load the program */
#define KERNEL_MINOR 1
#define PACERS_MAX   10 /* on one interface; a killed replacement leaves two */

/* The last message of the libraries. It becomes the cause in our error line. */
static char complaint[300];
/* Whether the verifier refused the program, and its reason. */
static bool refused;
static char verdict[200];

/* The reason is the line of the verifier's log before its statistics. */
static void keep_verdict(char *log)
{
	char *rest = NULL;

	for (char *line = strtok_r(log, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (!strstr(line, "PROG LOAD LOG --") && strncmp(line, "processed ", 10))
			snprintf(verdict, sizeof(verdict), "%s", line);
}

static int keep_complaint(const char *format, va_list args)
{
	char *text;
	size_t n;

	if (vasprintf(&text, format, args) < 0)
		return 0;
	if (strstr(text, "prog 'pacer': BPF program load failed"))
		refused = true;
	if (strstr(text, "prog 'pacer': -- BEGIN PROG LOAD LOG --")) {
		keep_verdict(text);
	} else {
		n = strcspn(text, "\n");
		text[n] = 0;
		if (n)
			snprintf(complaint, sizeof(complaint), "%s", text);
	}
	free(text);
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
	verdict[0] = 0;
	refused = false;
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

int loader_cpus(struct policy_error *error)
{
	int cpus;

	libbpf_set_print(print_libbpf);
	cpus = libbpf_num_possible_cpus();
	if (cpus < 1)
		return policy_fail(error, 0,
				   "the number of CPUs is not known: %s: is /sys mounted, with "
				   "/sys/devices/system/cpu/possible?",
				   strerror(cpus ? -cpus : ENODATA));
	return cpus;
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

/*
 * How the interface's frames begin: 0: with the Ethernet header, 1: with the IP header. Other
 * interfaces are refused: their packets would be parsed wrongly and pass.
 */
static int interface_is_raw_ip(const char *ifname, struct policy_error *error)
{
	struct ifreq request = {0}, flags;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int failed;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", ifname);
	flags = request;
	failed = fd < 0 || ioctl(fd, SIOCGIFHWADDR, &request) || ioctl(fd, SIOCGIFFLAGS, &flags);
	if (fd >= 0)
		close(fd);
	if (failed)
		return policy_fail(error, 0, "%s: its link type cannot be read: %s", ifname,
				   strerror(errno));
	switch (request.ifr_hwaddr.sa_family) {
	case ARPHRD_ETHER:
	case ARPHRD_LOOPBACK:
		return 0;
	case ARPHRD_NONE:
	case ARPHRD_PPP:
	case ARPHRD_TUNNEL:
	case ARPHRD_TUNNEL6:
	case ARPHRD_SIT:
	case ARPHRD_IP6GRE:
	case ARPHRD_RAWIP:
		return 1;
	case ARPHRD_IPGRE: /* with many peers XDP sees the outer header */
		if (flags.ifr_flags & IFF_POINTOPOINT)
			return 1;
	}
	return policy_fail(error, 0,
			   "%s: its link type (ARPHRD %d) is neither Ethernet nor raw IP: pace the "
			   "interface below it",
			   ifname, request.ifr_hwaddr.sa_family);
}

/* --- attach --------------------------------------------------------------------------------- */

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

static bool lost_its_pins(const struct site *site)
{
	return !strcmp(site->name, "xdp_dispatcher") && !site->dispatched;
}

/* The interface has another program, and the pacer cannot run beside it. */
static int stands_alone(const char *ifname, const struct site *site, struct policy_error *error)
{
	if (lost_its_pins(site))
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

static int not_a_pacer(const char *ifname, struct policy_error *error)
{
	return policy_fail(error, 0, "%s: its program is named pacer, but is not one: not touched",
			   ifname);
}

static const char *asked_mode(enum loader_mode mode)
{
	return mode == LOADER_SKB ? "skb" : mode == LOADER_HW ? "hw" : "native";
}

static int may_replace(const char *ifname, const struct loader_options *options,
		       const struct site *site, struct policy_error *error)
{
	if (strcmp(site->mode, asked_mode(options->mode)))
		return policy_fail(error, 0,
				   "%s: its pacer is attached in %s mode, and only in that can it "
				   "be replaced in one step: say --mode %s, or unload it first",
				   ifname, site->mode, site->mode);
	if (site->dispatched && options->direct)
		return policy_fail(error, 0,
				   "%s: its pacer is under the libxdp dispatcher: replace it "
				   "without --direct, or unload it first",
				   ifname);
	return 0;
}

static int may_attach(const char *ifname, const struct loader_options *options,
		      const struct site *site, struct policy_error *error)
{
	if (!site->id)
		return 0;
	if (site->named && !site->pacer)
		return not_a_pacer(ifname, error);
	if (site->pacer && options->replace)
		return may_replace(ifname, options, site, error);
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
	if (options->direct)
		return policy_fail(
		    error, 0, "%s: already carries the libxdp dispatcher: load without --direct",
		    ifname);
	return 0;
}

/* Makes a trie with the policy's prefixes of one family. */
static int fill_trie(struct bpf_map *map, const struct policy *policy, int family, uint32_t *count,
		     struct policy_error *error)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_NO_PREALLOC);
	int fd = bpf_map_create(BPF_MAP_TYPE_LPM_TRIE, bpf_map__name(map), bpf_map__key_size(map),
				bpf_map__value_size(map), PACER_ALLOW_ENTRIES, &options);
	struct pacer_allow_value value = {.of_policy = 1};
	int err = fd < 0 ? -1 : 0;

	for (size_t i = 0; i < policy->n_allow && !err; i++) {
		struct pacer_allow6 key = {PACER_ALLOW_COPY_BITS + policy->allow[i].len, 0, {0}};

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

/* If the policy samples: makes the memory for each CPU, in maps that replace the object's. */
static int make_samplers(struct pacer_bpf *skel, const struct pacer_sampling *sampling,
			 struct policy_error *error)
{
	struct sample_maps maps;
	struct samples_made made;
	int cpus = loader_cpus(error), result;

	if (!sampling->reasons)
		return 0;
	if (cpus < 1)
		return -1;
	maps.samplers_fd = samples_outer("pacer_samples", sizeof(struct pacer_sampler));
	maps.heads_fd = samples_outer("pacer_heads", sizeof(struct pacer_heads));
	if (maps.samplers_fd < 0 || maps.heads_fd < 0 ||
	    bpf_map__reuse_fd(skel->maps.pacer_samples, maps.samplers_fd) ||
	    bpf_map__reuse_fd(skel->maps.pacer_heads, maps.heads_fd))
		result = policy_fail(error, 0, "the maps of samples cannot be made: %s%s",
				     strerror(errno), errno == EPERM ? ": run as root" : "");
	else
		result = samples_make(&maps, sampling, cpus, &made, error);
	if (maps.samplers_fd >= 0)
		close(maps.samplers_fd);
	if (maps.heads_fd >= 0)
		close(maps.heads_fd);
	return result;
}

/*
 * Makes a map with so many entries instead of one of the object, so that it can be filled before
 * the load.
 */
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

/* Makes and fills the maps for redirection before the first packet. */
static int make_targets(struct pacer_bpf *skel, const struct loader_policy *begin,
			struct policy_error *error)
{
	int cpus = loader_cpus(error);
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

	if (cpus < 1)
		result = -1;
	else if (maps.devices_fd < 0 || maps.cpus_fd < 0 || maps.leases_fd < 0)
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
	if (fill_trie(skel->maps.pacer_allow4, begin->policy, 4, &control->allowed[0].v4, error))
		return -1;
	return fill_trie(skel->maps.pacer_allow6, begin->policy, 6, &control->allowed[0].v6, error);
}

struct loading {
	const char *ifname;
	const struct loader_options *options;
	int raw_ip; /* frames begin with the IP header */
	struct site before;
	struct pacer_bpf *skel;
	struct policy_error *error;
};

static int program_fd(const struct loading *l)
{
	return bpf_program__fd(l->skel->progs.pacer);
}

static uint32_t id_of(int prog_fd)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);

	return prog_fd < 0 || bpf_obj_get_info_by_fd(prog_fd, &info, &len) ? 0 : info.id;
}

/* Says why the kernel did not load the object. */
static int load_failed(const struct loading *l, int err)
{
	if (err == -EPERM)
		return policy_fail(l->error, 0,
				   "%s: no privilege to load the program (%s): run as root",
				   l->ifname, strerror(-err));
	if (err == -ENOMEM)
		return policy_fail(l->error, 0,
				   "%s: the kernel has no memory for the state: lower memory",
				   l->ifname);
	if (refused)
		return policy_fail(
		    l->error, 0,
		    "%s: this kernel's verifier refuses the program (%s%s%s): KERNELS in "
		    "xdp-pacer(8) says which kernels are known to take it",
		    l->ifname, strerror(-err), *verdict ? ": " : "", verdict);
	return policy_fail(l->error, 0, "%s: the program was not loaded: %s%s%s", l->ifname,
			   strerror(-err), *complaint ? ": " : "", complaint);
}

/* Says why the loaded program could not be attached. */
static int attach_failed(const struct loading *l, int err)
{
	enum loader_mode mode = l->options->mode;

	if (err == -EPERM || err == -EACCES)
		return policy_fail(l->error, 0,
				   "%s: no privilege to attach the program (%s): run as root",
				   l->ifname, strerror(-err));
	if (mode == LOADER_HW)
		return policy_fail(
		    l->error, 0,
		    "%s: its driver does not take the program into hardware (%s): use "
		    "--mode native",
		    l->ifname, strerror(-err));
	if ((err == -EOPNOTSUPP || err == -EINVAL) && mode == LOADER_NATIVE)
		return policy_fail(
		    l->error, 0,
		    "%s: its driver takes no native XDP program (%s%s%s): use --mode skb, "
		    "slower, on purpose",
		    l->ifname, strerror(-err), *complaint ? ": " : "", complaint);
	if (err == -EBUSY || err == -EEXIST)
		return policy_fail(l->error, 0,
				   "%s: another XDP program holds it: see `xdp-loader status`",
				   l->ifname);
	return policy_fail(l->error, 0, "%s: the program was not attached: %s%s%s", l->ifname,
			   strerror(-err), *complaint ? ": " : "", complaint);
}

/* Attaches without a dispatcher. A pacer that is attached so is replaced in one step. */
static int attach_direct(const struct loading *l)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, instead, .old_prog_fd = l->before.fd);
	enum loader_mode mode = l->options->mode;
	uint32_t flags = mode == LOADER_SKB  ? XDP_FLAGS_SKB_MODE
			 : mode == LOADER_HW ? XDP_FLAGS_HW_MODE
					     : XDP_FLAGS_DRV_MODE;
	int err = bpf_object__load(l->skel->obj);

	if (err)
		return err;
	if (l->before.id)
		return bpf_xdp_attach(l->before.ifindex, program_fd(l), flags, &instead);
	return bpf_xdp_attach(l->before.ifindex, program_fd(l), flags | XDP_FLAGS_UPDATE_IF_NOEXIST,
			      NULL);
}

static int attach_libxdp(const struct loading *l)
{
	struct xdp_program *p = xdp_program__from_bpf_obj(l->skel->obj, SECTION);
	enum loader_mode mode = l->options->mode;
	int err = libxdp_get_error(p);

	if (err)
		return err;
	err = xdp_program__set_xdp_frags_support(p, true);
	if (!err)
		err = xdp_program__attach(p, l->before.ifindex,
					  mode == LOADER_SKB  ? XDP_MODE_SKB
					  : mode == LOADER_HW ? XDP_MODE_HW
							      : XDP_MODE_NATIVE,
					  0);
	xdp_program__close(p);
	return err;
}

static int detach(const struct site *site, uint32_t id)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, this_one, .old_prog_fd = site->fd);
	struct xdp_program *p = site_program(site, id);

	if (p)
		return xdp_program__detach(p, site->ifindex,
					   xdp_multiprog__attach_mode(site->dispatched), 0);
	return bpf_xdp_detach(site->ifindex, site->flags, &this_one);
}

/*
 * After a failure: restores what was on the interface before. A call that reports a failure may
 * have worked all the same, so it looks. Not 0: the new program is still there.
 */
static int take_back(const struct loading *l)
{
	struct policy_error unused;
	uint32_t id = id_of(program_fd(l));
	struct site now;
	int err = 0;

	if (site_open(l->ifname, l->before.ifindex, &now, &unused))
		return -1;
	if (now.id == l->before.id) {
		/* nothing was done */
	} else if (site_program(&now, id)) {
		err = detach(&now, id);
	} else if (now.id && (now.id == id || lost_its_pins(&now))) {
		LIBBPF_OPTS(bpf_xdp_attach_opts, instead, .old_prog_fd = now.fd);

		err = bpf_xdp_attach(now.ifindex, l->before.id ? l->before.fd : -1, now.flags,
				     &instead);
	}
	site_close(&now);
	pins_sweep(l->before.ifindex);
	return err;
}

/* The dispatcher calls both pacers now. Detaches the old one. */
static int detach_before(const struct loading *l)
{
	struct site now;
	int err;

	if (site_open(l->ifname, l->before.ifindex, &now, l->error))
		return -1;
	err = site_program(&now, l->before.pacer_id) ? detach(&now, l->before.pacer_id) : 0;
	site_close(&now);
	return err ? policy_fail(l->error, 0, "%s: the pacer before was not detached and stays: %s",
				 l->ifname, strerror(-err))
		   : 0;
}

/* Finds the new pacer as every other verb will. If it cannot be found, it is not left attached. */
static int settle(const struct loading *l, struct attached *a)
{
	if (l->before.dispatched && l->before.pacer && detach_before(l))
		return -1;
	if (loader_find(l->ifname, a, l->error))
		return -1;
	if (a->prog_id == id_of(program_fd(l)))
		return 0;
	loader_release(a);
	return policy_fail(l->error, 0,
			   "%s: another pacer has taken its place: see `xdp-pacer status %s`",
			   l->ifname, l->ifname);
}

static int put_on(const struct loading *l, struct attached *a)
{
	bool direct = l->options->direct || (l->before.pacer && !l->before.dispatched);
	struct policy_error why;
	int err, result;

	complaint[0] = 0;
	err = direct ? attach_direct(l) : attach_libxdp(l);
	if (!err)
		result = settle(l, a);
	else
		result = program_fd(l) < 0 ? load_failed(l, err) : attach_failed(l, err);
	if (!result || !take_back(l))
		return result;
	why = *l->error;
	return policy_fail(l->error, 0,
			   "%s; and it is still attached: take it off with `xdp-pacer unload %s`",
			   why.text, l->ifname);
}

static int load_with(struct loading *l, const struct loader_policy *begin, struct attached *a)
{
	struct policy_error why = {0};
	int result;

	l->skel = pacer_bpf__open();
	if (!l->skel)
		return policy_fail(l->error, 0, "the built-in object cannot be opened: %s",
				   strerror(errno));
	l->skel->rodata_built->pacer_built.raw_ip = l->raw_ip;
	l->skel->data_control->pacer_control.raw_ip = l->raw_ip;
	if (prepare(l->skel, begin, &why))
		result = policy_fail(l->error, 0, "%s: %s", l->ifname, why.text);
	else
		result = put_on(l, a);
	pacer_bpf__destroy(l->skel);
	return result;
}

int loader_load(const char *ifname, const struct loader_options *options,
		const struct loader_policy *begin, struct attached *a,
		struct loader_replaced *replaced, struct policy_error *error)
{
	struct loading l = {.ifname = ifname, .options = options, .error = error};
	int ifindex, result = -1;

	quiet();
	ifindex = interface_index(ifname, error);
	if (ifindex < 0 || kernel_is_known(error) || interface_is_up(ifname, error) ||
	    may_use_bpf(ifname, error))
		return -1;
	l.raw_ip = interface_is_raw_ip(ifname, error);
	if (l.raw_ip < 0)
		return -1;
	pins_sweep(ifindex);
	if (site_open(ifname, ifindex, &l.before, error))
		return -1;
	if (!may_attach(ifname, options, &l.before, error))
		result = load_with(&l, begin, a);
	*replaced = (struct loader_replaced){l.before.pacer_id, l.before.abi};
	site_close(&l.before);
	return result;
}

/* --- find ----------------------------------------------------------------------------------- */

/* The inner map of a map of maps. NULL: it has none, or another kind. */
static void *map_inner(int outer_fd, size_t value_size, uint32_t *entries, size_t *len)
{
	struct bpf_map_info info = {0};
	uint32_t info_len = sizeof(info);
	int fd = samples_inner(outer_fd);
	void *at = NULL;

	if (fd < 0)
		return NULL;
	if (!bpf_obj_get_info_by_fd(fd, &info, &info_len) && info.value_size == value_size) {
		*entries = info.max_entries;
		*len = value_size * info.max_entries;
		at = map_memory(fd, *len);
	}
	close(fd);
	return at;
}

/* Keeps the map if it is one of ours by name. Otherwise the caller closes fd. */
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
	} else if (!strcmp(info->name, "pacer_samples") && a->samples.samplers_fd < 0) {
		a->samples.samplers_fd = fd;
		a->sampler =
		    map_inner(fd, sizeof(*a->sampler), &a->n_samplers, &a->mapped[LOADER_SAMPLERS]);
		return true;
	} else if (!strcmp(info->name, "pacer_heads") && a->samples.heads_fd < 0) {
		uint32_t cpus;

		a->samples.heads_fd = fd;
		a->heads = map_inner(fd, sizeof(*a->heads), &cpus, &a->mapped[LOADER_HEADS]);
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
		return not_a_pacer(a->ifname, error);
	if (a->control->abi_version != PACER_ABI_VERSION ||
	    a->mapped[LOADER_CONTROL] != sizeof(struct pacer_control))
		return policy_fail(
		    error, 0,
		    "%s: its pacer has ABI version %u, this tool %u: `xdp-pacer load %s "
		    "--replace -c POLICY` takes over, `xdp-pacer unload %s` takes it off",
		    a->ifname, a->control->abi_version, PACER_ABI_VERSION, a->ifname, a->ifname);
	if (!a->copy || !a->lines || !a->throttle || a->counts_fd < 0 || a->allow4_fd < 0 ||
	    a->allow6_fd < 0 || a->leases_fd < 0 || a->targets.devices_fd < 0 ||
	    a->targets.cpus_fd < 0 || a->targets.leases_fd < 0 || a->samples.samplers_fd < 0 ||
	    a->samples.heads_fd < 0)
		return policy_fail(error, 0,
				   "%s: its pacer lacks a map: `xdp-pacer load %s --replace -c "
				   "POLICY` puts a new one in its place",
				   a->ifname, a->ifname);
	return 0;
}

void loader_release(struct attached *a)
{
	void *at[LOADER_MAPPINGS] = {a->control,  a->copy,    a->lines,
				     a->throttle, a->sampler, a->heads};
	int fds[] = {a->prog_fd,	 a->counts_fd,	       a->allow4_fd,
		     a->allow6_fd,	 a->leases_fd,	       a->targets.devices_fd,
		     a->targets.cpus_fd, a->targets.leases_fd, a->samples.samplers_fd,
		     a->samples.heads_fd};

	for (size_t i = 0; i < LOADER_MAPPINGS; i++)
		if (at[i])
			munmap(at[i], a->mapped[i]);
	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	memset(a, 0, sizeof(*a));
}

static int no_pacer(const char *ifname, const struct site *site, struct policy_error *error)
{
	if (!site->id || (site->dispatched && !site->named))
		return policy_fail(
		    error, 0, "%s: has no pacer: attach one with `xdp-pacer load %s -c POLICY`",
		    ifname, ifname);
	if (lost_its_pins(site))
		return stands_alone(ifname, site, error);
	return policy_fail(error, 0, "%s: its XDP program is not the pacer", ifname);
}

int loader_find(const char *ifname, struct attached *a, struct policy_error *error)
{
	struct site site;

	quiet();
	*a = (struct attached){.prog_fd = -1,
			       .counts_fd = -1,
			       .allow4_fd = -1,
			       .allow6_fd = -1,
			       .leases_fd = -1,
			       .targets = {-1, -1, -1, 0},
			       .samples = {-1, -1}};
	a->ifindex = interface_index(ifname, error);
	if (a->ifindex < 0 || loader_cpus(error) < 0)
		return -1;
	snprintf(a->ifname, sizeof(a->ifname), "%s", ifname);
	if (site_open(ifname, a->ifindex, &site, error))
		return -1;
	if (!site.named) {
		no_pacer(ifname, &site, error);
		site_close(&site);
		return -1;
	}
	a->dispatcher = site.dispatched;
	a->mode = site.mode;
	a->site_id = site.id;
	a->prog_fd = fcntl(site.pacer_fd, F_DUPFD_CLOEXEC, 3);
	site_close(&site);
	if (a->prog_fd < 0)
		policy_explain(error, 0, "%s: its program cannot be opened: %s", ifname,
			       strerror(errno));
	else if (!open_maps(a, error) && !check_abi(a, error))
		return 0;
	loader_release(a);
	return -1;
}

int loader_follow(const char *ifname, struct attached *a, struct policy_error *error)
{
	if (a->ifindex && site_id(a->ifindex) == a->site_id &&
	    if_nametoindex(ifname) == (unsigned int)a->ifindex)
		return 0;
	if (a->ifindex)
		loader_release(a);
	return loader_find(ifname, a, error);
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

/* Looks again whether it is detached: a call that failed may have worked all the same. */
static int unload_all(const char *ifname, int ifindex, struct policy_error *error)
{
	uint32_t last = 0;
	int err = 0;

	for (int i = 0; i < PACERS_MAX; i++) {
		struct site site;
		int result;

		if (site_open(ifname, ifindex, &site, error))
			return -1;
		if (!site.pacer) {
			result = last	      ? 0
				 : site.named ? not_a_pacer(ifname, error)
					      : no_pacer(ifname, &site, error);
			site_close(&site);
			return result;
		}
		if (site.pacer_id == last) {
			site_close(&site);
			break;
		}
		last = site.pacer_id;
		err = detach(&site, last);
		site_close(&site);
	}
	return policy_fail(error, 0, "%s: the pacer was not detached: %s%s%s", ifname,
			   strerror(-err), *complaint ? ": " : "", complaint);
}

int loader_unload(const char *ifname, struct policy_error *error)
{
	int ifindex, result;

	quiet();
	ifindex = interface_index(ifname, error);
	if (ifindex < 0)
		return -1;
	result = unload_all(ifname, ifindex, error);
	if (!result)
		pins_sweep(ifindex);
	return result;
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
		struct site site;
		bool named;

		if (site_open(i->if_name, i->if_index, &site, error)) {
			result = -1;
			break;
		}
		named = site.named;
		site_close(&site);
		if (named)
			result = each(i->if_name, arg);
	}
	if_freenameindex(all);
	return result;
}
