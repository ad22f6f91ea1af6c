/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/object.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "pacer.skel.h"
#include "live/host.h"
#include "live/restore.h"
#include "live/samples.h"
#include "sets/set_maps.h"
#include "live/targets.h"
#include "short.h"

#define MAPS_MAX 64

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

static int fill_tries(struct pacer_bpf *skel, const struct policy *policy,
		      struct pacer_control *control, struct policy_error *error)
{
	if (fill_trie(skel->maps.pacer_allow4, policy, 4, &control->allowed[0].v4, error))
		return -1;
	return fill_trie(skel->maps.pacer_allow6, policy, 6, &control->allowed[0].v6, error);
}

/* If the policy samples: makes the memory for each CPU, in maps that replace the object's. */
static int make_samplers(struct pacer_bpf *skel, const struct pacer_sampling *sampling,
			 struct policy_error *error)
{
	struct sample_maps maps;
	struct samples_made made;
	int cpus = host_cpus(error), result;

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
static int make_targets(struct pacer_bpf *skel, const struct object_begin *begin,
			struct policy_error *error)
{
	int cpus = host_cpus(error);
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

/* Makes and fills the map of sets before the first packet. */
static int make_sets(struct pacer_bpf *skel, const struct object_begin *begin,
		     struct policy_error *error)
{
	struct bpf_map *map = skel->maps.pacer_sets;
	int fd, result = 0;

	if (!begin->sets->n)
		return 0;
	fd = set_maps_make(bpf_map__max_entries(map));
	for (uint32_t i = 0; i < begin->sets->n && fd >= 0 && !result; i++)
		result = set_maps_put(fd, i, &begin->sets->text[i].list);
	if (fd < 0 || result || bpf_map__reuse_fd(map, fd))
		result = policy_fail(error, 0, "the sets cannot be made: %s%s", strerror(errno),
				     errno == EPERM ? ": run as root"
				     : errno == ENOMEM
					 ? ": `xdp-pacer check` says what they take: divide them"
					 : "");
	if (fd >= 0)
		close(fd);
	return result;
}

static void put_copy(struct pacer_copy *copy, const struct pacer_policy *bin, const char *text)
{
	copy->policy = *bin;
	memset(copy->text, 0, sizeof(copy->text));
	memcpy(copy->text, text, strlen(text));
}

static int prepare(struct pacer_bpf *skel, const struct object_begin *begin,
		   struct policy_error *error)
{
	struct pacer_control *control = &skel->data_control->pacer_control;

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
	control->in_force = begin->confirm_ns ? (host_now_ns() + begin->confirm_ns) << 1 : 0;
	control->resolution_ns = begin->resolution_ns;
	put_copy(&skel->data_policy->pacer_copies[0], begin->bin, begin->text);
	if (begin->confirm_ns)
		put_copy(&skel->data_policy->pacer_copies[1], begin->other, begin->other_text);
	if (make_samplers(skel, &begin->bin->sampling, error) || make_targets(skel, begin, error) ||
	    make_sets(skel, begin, error))
		return -1;
	if (begin->restored ? restore_fill(begin->restored,
					   &(struct restore_maps){
					       skel->maps.pacer_lines, skel->maps.pacer_throttles,
					       skel->maps.pacer_counts, skel->maps.pacer_allow4,
					       skel->maps.pacer_allow6},
					   control, error)
			    : fill_tries(skel, begin->policy, control, error))
		return -1;
	/* The secret may be that of what is restored. */
	for (uint32_t i = 0; i < 2; i++)
		pacer_short_arm(&skel->data_policy->pacer_copies[i].policy, control, i);
	return 0;
}

static struct pacer_bpf *open_for(bool raw_ip, struct policy_error *error)
{
	struct pacer_bpf *skel = pacer_bpf__open();

	if (!skel) {
		policy_explain(error, 0, "the built-in object cannot be opened: %s",
			       strerror(errno));
		return NULL;
	}
	skel->rodata_built->pacer_built.raw_ip = raw_ip;
	skel->data_control->pacer_control.raw_ip = raw_ip;
	return skel;
}

struct pacer_bpf *object_open(const char *ifname, const struct object_begin *begin, bool raw_ip,
			      struct policy_error *error)
{
	struct pacer_bpf *skel = open_for(raw_ip, error);
	struct policy_error why = {0};

	if (!skel || !prepare(skel, begin, &why))
		return skel;
	policy_explain(error, 0, "%s: %s", ifname, why.text);
	pacer_bpf__destroy(skel);
	return NULL;
}

/* --- over the maps of another ---------------------------------------------------------------- */

/* What is known at load and is the new program's own. */
static bool is_constant(const struct bpf_map *map)
{
	return strstr(bpf_map__name(map), ".rodata") != NULL;
}

/* All but the constants of the program, which are its own. */
static int share_maps(struct pacer_bpf *skel, const struct pacer_bpf *like)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, skel->obj)
	{
		const struct bpf_map *other =
		    bpf_object__find_map_by_name(like->obj, bpf_map__name(map));

		if (is_constant(map))
			continue;
		if (!other || bpf_map__reuse_fd(map, bpf_map__fd(other)))
			return -1;
	}
	return 0;
}

struct pacer_bpf *object_open_shared(const char *ifname, const struct pacer_bpf *like,
				     struct policy_error *error)
{
	struct pacer_bpf *skel = pacer_bpf__open();

	if (skel)
		skel->rodata_built->pacer_built.raw_ip = like->rodata_built->pacer_built.raw_ip;
	if (skel && !share_maps(skel, like))
		return skel;
	policy_explain(error, 0, "%s: the maps of the first interface cannot be shared: %s", ifname,
		       strerror(errno));
	pacer_bpf__destroy(skel);
	return NULL;
}

/* May the new program have this map in the place of its own? Sizes that a load chooses may differ.
 */
static bool takes(const struct bpf_map *map, const struct bpf_map_info *info)
{
	return !strncmp(info->name, bpf_map__name(map), sizeof(info->name) - 1) &&
	       info->type == bpf_map__type(map) && info->key_size == bpf_map__key_size(map) &&
	       info->value_size == bpf_map__value_size(map);
}

/* 1 where it took the map, 0 where that is none of its own. */
static int take_over(struct pacer_bpf *skel, uint32_t id)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	int fd = bpf_map_get_fd_by_id(id), result = 0;
	struct bpf_map *map;

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len)) {
		result = -1;
	} else {
		bpf_object__for_each_map(map, skel->obj)
		{
			if (!is_constant(map) && takes(map, &info))
				result = bpf_map__reuse_fd(map, fd) ? -1 : 1;
		}
	}
	if (fd >= 0)
		close(fd);
	return result;
}

static int take_all_over(struct pacer_bpf *skel, int prog_fd)
{
	struct bpf_prog_info info = {0};
	uint32_t ids[MAPS_MAX], len = sizeof(info), n = 0, wanted = 0;
	struct bpf_map *map;

	info.nr_map_ids = MAPS_MAX;
	info.map_ids = (uintptr_t)ids;
	if (bpf_obj_get_info_by_fd(prog_fd, &info, &len) || info.nr_map_ids > MAPS_MAX)
		return -1;
	for (uint32_t i = 0; i < info.nr_map_ids; i++) {
		int took = take_over(skel, ids[i]);

		if (took < 0)
			return -1;
		n += took;
	}
	bpf_object__for_each_map(map, skel->obj)
	{
		wanted += !is_constant(map);
	}
	return n == wanted ? 0 : -1;
}

struct pacer_bpf *object_open_over(const char *ifname, int prog_fd, bool raw_ip,
				   struct policy_error *error)
{
	struct pacer_bpf *skel = open_for(raw_ip, error);

	if (!skel || !take_all_over(skel, prog_fd))
		return skel;
	policy_explain(error, 0,
		       "%s: its pacer's maps are not those of this program: `xdp-pacer load %s "
		       "--replace -c POLICY` takes over, with new state",
		       ifname, ifname);
	pacer_bpf__destroy(skel);
	return NULL;
}

void object_close(struct pacer_bpf *skel)
{
	pacer_bpf__destroy(skel);
}

struct bpf_object *object_of(const struct pacer_bpf *skel)
{
	return skel->obj;
}

int object_program_fd(const struct pacer_bpf *skel)
{
	return bpf_program__fd(skel->progs.pacer);
}
