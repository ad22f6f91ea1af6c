/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/object.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "beside.h" /* whose structs are in the skeleton */

#include "pacer.skel.h"
#include "shadow.skel.h"
#include "live/host.h"
#include "live/prog_maps.h"
#include "live/restore.h"
#include "live/samples.h"
#include "sets/set_maps.h"
#include "live/targets.h"
#include "plan/sampling.h"
#include "sampler.h"
#include "short.h"

struct object {
	enum object_kind kind;
	struct pacer_bpf *pacer;   /* ALONE; else NULL */
	struct shadow_bpf *shadow; /* else */
	struct bpf_object *obj;	   /* of either */
	struct bpf_program *program;
};

static struct bpf_map *map_of(const struct object *o, const char *name)
{
	return bpf_object__find_map_by_name(o->obj, name);
}

/* What a map of data begins with. */
static void *data_of(const struct object *o, const char *name)
{
	size_t size;

	return (void *)bpf_map__initial_value(map_of(o, name), &size);
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

static int fill_tries(struct object *o, const struct policy *policy, struct pacer_control *control,
		      struct policy_error *error)
{
	if (fill_trie(map_of(o, "pacer_allow4"), policy, 4, &control->allowed[0].v4, error))
		return -1;
	return fill_trie(map_of(o, "pacer_allow6"), policy, 6, &control->allowed[0].v6, error);
}

/* If the policy samples: makes the memory for each CPU, in maps that replace the object's. */
static int make_samplers(struct object *o, const struct pacer_sampling *sampling,
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
	    bpf_map__reuse_fd(map_of(o, "pacer_samples"), maps.samplers_fd) ||
	    bpf_map__reuse_fd(map_of(o, "pacer_heads"), maps.heads_fd))
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
static int make_targets(struct object *o, const struct object_begin *begin,
			struct policy_error *error)
{
	int cpus = host_cpus(error);
	struct target_maps maps = {
	    .devices_fd = make_map(map_of(o, "pacer_devices"), BPF_MAP_TYPE_DEVMAP,
				   bpf_map__max_entries(map_of(o, "pacer_devices"))),
	    .cpus_fd = make_map(map_of(o, "pacer_cpus"), BPF_MAP_TYPE_CPUMAP, cpus),
	    .leases_fd = make_map(map_of(o, "pacer_pool_leases"), BPF_MAP_TYPE_PERCPU_ARRAY,
				  bpf_map__max_entries(map_of(o, "pacer_pool_leases"))),
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
static int make_sets(struct object *o, const struct object_begin *begin, struct policy_error *error)
{
	struct bpf_map *map = map_of(o, "pacer_sets");
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

static int prepare(struct object *o, const struct object_begin *begin, struct policy_error *error)
{
	struct pacer_control *control = data_of(o, ".data.control");
	struct pacer_copy *copies = data_of(o, ".data.policy");

	if (begin->lines > PACER_LINES_MAX ||
	    bpf_map__set_max_entries(map_of(o, "pacer_lines"), begin->lines))
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
	control->tools = begin->tools;
	control->shared = begin->shared;
	put_copy(&copies[0], begin->bin, begin->text);
	if (begin->confirm_ns)
		put_copy(&copies[1], begin->other, begin->other_text);
	if (make_samplers(o, &begin->bin->sampling, error) || make_targets(o, begin, error) ||
	    make_sets(o, begin, error))
		return -1;
	if (begin->restored
		? restore_fill(
		      begin->restored,
		      &(struct restore_maps){map_of(o, "pacer_lines"), map_of(o, "pacer_throttles"),
					     map_of(o, "pacer_counts"), map_of(o, "pacer_set_hits"),
					     map_of(o, "pacer_allow4"), map_of(o, "pacer_allow6")},
		      control, error)
		: fill_tries(o, begin->policy, control, error))
		return -1;
	/* The secret may be that of what is restored. */
	for (uint32_t i = 0; i < 2; i++)
		pacer_short_arm(&copies[i].policy, control, i);
	return 0;
}

/* Which of its two programs, and the maps that this one has. */
static int choose(struct object *o)
{
	bool first = o->kind == OBJECT_FIRST;

	o->program = first ? o->shadow->progs.pacer : o->shadow->progs.pacer_shadow;
	if (bpf_program__set_autoload(
		first ? o->shadow->progs.pacer_shadow : o->shadow->progs.pacer, false))
		return -1;
	if (!first)
		return bpf_map__set_autocreate(o->shadow->maps.pacer_next, false);
	return bpf_map__set_autocreate(o->shadow->maps.pacer_changes, false) ||
		       bpf_map__set_autocreate(o->shadow->maps.pacer_differ, false) ||
		       bpf_map__set_autocreate(o->shadow->maps.data_shadow, false)
		   ? -1
		   : 0;
}

static int open_skeleton(struct object *o)
{
	if (o->kind == OBJECT_ALONE) {
		o->pacer = pacer_bpf__open();
		if (!o->pacer)
			return -1;
		o->obj = o->pacer->obj;
		o->program = o->pacer->progs.pacer;
		return 0;
	}
	o->shadow = shadow_bpf__open();
	if (!o->shadow)
		return -1;
	o->obj = o->shadow->obj;
	return choose(o);
}

static struct object *open_for(const char *ifname, enum object_kind kind, bool raw_ip,
			       struct policy_error *error)
{
	struct object *o = calloc(1, sizeof(*o));
	struct pacer_control *control;
	struct pacer_built *built;

	if (o)
		o->kind = kind;
	if (!o || open_skeleton(o)) {
		policy_explain(error, 0, "%s: the built-in object cannot be opened: %s", ifname,
			       strerror(errno));
		object_close(o);
		return NULL;
	}
	built = data_of(o, ".rodata.built");
	control = data_of(o, ".data.control");
	built->raw_ip = raw_ip;
	built->beside = kind == OBJECT_SHADOW;
	control->raw_ip = raw_ip;
	return o;
}

/* What only a shadow has: how packets that fare differently are sampled. */
static int prepare_shadow(struct object *o, const struct object_begin *begin,
			  struct policy_error *error)
{
	const struct policy_sample all = {
	    .on = true, .of = SAMPLE_ALL, .k = PACER_SAMPLE_K, .window_ns = OBJECT_DIFFER_NS};
	struct pacer_shadow *shadow = data_of(o, ".data.shadow");
	int cpus = host_cpus(error);

	if (cpus < 1)
		return -1;
	/*
	 * The kernel lets one program go over to another where the same was said of both. Of one
	 * that a dispatcher calls neither is said, whatever frames come to it.
	 */
	if (begin->dispatcher)
		bpf_program__set_expected_attach_type(o->program, 0);
	if (bpf_program__set_flags(o->program, begin->dispatcher ? 0 : BPF_F_XDP_HAS_FRAGS))
		return policy_fail(error, 0, "the shadow's program cannot be prepared: %s",
				   strerror(errno));
	if (bpf_map__reuse_fd(map_of(o, "pacer_banned4"), begin->tools4_fd) ||
	    bpf_map__reuse_fd(map_of(o, "pacer_banned6"), begin->tools6_fd))
		return policy_fail(error, 0, "the maps of tools' bans cannot be shared: %s",
				   strerror(errno));
	shadow->since_ns = host_now_ns();
	shadow->of =
	    sampling_compile(&all, begin->bin, NULL, begin->resolution_ns, shadow->since_ns);
	if (samples_replace(map_of(o, "pacer_differ"), cpus))
		return policy_fail(error, 0, "the map of samples cannot be made: %s%s",
				   strerror(errno), errno == EPERM ? ": run as root" : "");
	return 0;
}

struct object *object_open(const char *ifname, enum object_kind kind,
			   const struct object_begin *begin, bool raw_ip,
			   struct policy_error *error)
{
	struct object *o = open_for(ifname, kind, raw_ip, error);
	struct policy_error why = {0};

	if (!o)
		return NULL;
	if (!prepare(o, begin, &why) && (kind != OBJECT_SHADOW || !prepare_shadow(o, begin, &why)))
		return o;
	policy_explain(error, 0, "%s: %s", ifname, why.text);
	object_close(o);
	return NULL;
}

/* --- over the maps of another ---------------------------------------------------------------- */

/* What is known at load and is the new program's own. */
static bool is_constant(const struct bpf_map *map)
{
	return strstr(bpf_map__name(map), ".rodata") != NULL;
}

/* All but the constants of the program, which are its own. */
static int share_maps(struct object *o, const struct object *like)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, o->obj)
	{
		const struct bpf_map *other = map_of(like, bpf_map__name(map));

		if (is_constant(map))
			continue;
		if (!other || bpf_map__reuse_fd(map, bpf_map__fd(other)))
			return -1;
	}
	return 0;
}

struct object *object_open_shared(const char *ifname, const struct object *like,
				  struct policy_error *error)
{
	const struct pacer_built *built = data_of(like, ".rodata.built");
	struct object *o = open_for(ifname, OBJECT_ALONE, built->raw_ip, error);

	if (!o || !share_maps(o, like))
		return o;
	policy_explain(error, 0, "%s: the maps of the first interface cannot be shared: %s", ifname,
		       strerror(errno));
	object_close(o);
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

/* Only a first program has these, and makes them where the one before had none. */
static bool is_of_first(const struct bpf_map *map)
{
	return !strcmp(bpf_map__name(map), "pacer_next") ||
	       !strcmp(bpf_map__name(map), "pacer_told");
}

/* A map that this program has, and another may have made. */
static bool is_shared(const struct bpf_map *map)
{
	return !is_constant(map) && bpf_map__autocreate(map);
}

/* 1 where it took a map that it cannot be without, 0 where that is none of its own; -1 where it
 * could not, with errno. */
static int take_over(struct object *o, uint32_t id)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	int fd = bpf_map_get_fd_by_id(id), result = 0;
	struct bpf_map *map;

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len)) {
		result = -1;
	} else {
		bpf_object__for_each_map(map, o->obj)
		{
			if (is_shared(map) && takes(map, &info))
				result = bpf_map__reuse_fd(map, fd) ? -1 : !is_of_first(map);
		}
	}
	if (fd >= 0) {
		int cause = errno;

		close(fd);
		errno = cause;
	}
	return result;
}

/* 0; -1 with errno, which is EINVAL where the program's maps are others. */
static int take_all_over(struct object *o, int prog_fd)
{
	uint32_t ids[PROG_MAPS_MAX], n = 0, wanted = 0;
	int maps = prog_maps_read(prog_fd, ids);
	struct bpf_map *map;

	if (maps < 0) {
		errno = -maps;
		return -1;
	}
	for (int i = 0; i < maps; i++) {
		int took = take_over(o, ids[i]);

		if (took < 0)
			return -1;
		n += took;
	}
	bpf_object__for_each_map(map, o->obj)
	{
		wanted += is_shared(map) && !is_of_first(map);
	}
	errno = EINVAL;
	return n == wanted ? 0 : -1;
}

struct object *object_open_over(const char *ifname, enum object_kind kind, int prog_fd, bool raw_ip,
				struct policy_error *error)
{
	struct object *o = open_for(ifname, kind, raw_ip, error);

	if (!o || !take_all_over(o, prog_fd))
		return o;
	if (errno == EINVAL)
		policy_explain(
		    error, 0,
		    "%s: its pacer's maps are not those of this program: `xdp-pacer save %s FILE`, "
		    "then `xdp-pacer load %s --replace --restore FILE -c POLICY` takes over",
		    ifname, ifname, ifname);
	else
		policy_explain(error, 0, "%s: its pacer's maps cannot be taken over: %s%s", ifname,
			       strerror(errno), errno == EPERM ? ": run as root" : "");
	object_close(o);
	return NULL;
}

int object_tell(struct object *first, const struct object *shadow)
{
	return bpf_map__reuse_fd(map_of(first, "pacer_told"), object_map_fd(shadow, "pacer_told"));
}

void object_close(struct object *o)
{
	if (!o)
		return;
	pacer_bpf__destroy(o->pacer);
	shadow_bpf__destroy(o->shadow);
	free(o);
}

struct bpf_object *object_of(const struct object *o)
{
	return o->obj;
}

int object_program_fd(const struct object *o)
{
	return bpf_program__fd(o->program);
}

int object_map_fd(const struct object *o, const char *name)
{
	const struct bpf_map *map = map_of(o, name);

	return map ? bpf_map__fd(map) : -1;
}
