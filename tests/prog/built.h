/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: an opened object made to be loaded with memory for samples, as user/live/object.c does.
 */
#ifndef BUILT_H
#define BUILT_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sampler.h"

/* In place of the object's map of maps of that name, one with a map of so many values; mapped.
 * NULL: failed.
 */
static inline void *built_array(struct bpf_object *obj, const char *name, size_t value_size,
				uint32_t entries)
{
	LIBBPF_OPTS(bpf_map_create_opts, inner, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, name, 4, value_size, entries, &inner);
	LIBBPF_OPTS(bpf_map_create_opts, outer, .inner_map_fd = fd);
	int outer_fd =
	    fd < 0 ? -1 : bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, name, 4, 4, 1, &outer);
	struct bpf_map *map = bpf_object__find_map_by_name(obj, name);
	uint32_t first = 0;
	void *at = MAP_FAILED;

	if (map && outer_fd >= 0 && !bpf_map_update_elem(outer_fd, &first, &fd, BPF_ANY) &&
	    !bpf_map__reuse_fd(map, outer_fd))
		at = mmap(NULL, value_size * entries, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (outer_fd >= 0)
		close(outer_fd);
	if (fd >= 0)
		close(fd);
	return at == MAP_FAILED ? NULL : at;
}

/* What the object is told of itself before it is loaded. */
static inline struct pacer_built *built_of(struct bpf_object *obj)
{
	struct bpf_map *map;
	size_t size;

	bpf_object__for_each_map(map, obj)
	{
		if (strstr(bpf_map__name(map), ".rodata.built"))
			return (struct pacer_built *)bpf_map__initial_value(map, &size);
	}
	return NULL;
}

/* Both of them for every CPU. 0, or -1. */
static inline int built_samples(struct bpf_object *obj, uint32_t cpus,
				struct pacer_sampler **sampler, struct pacer_heads **heads)
{
	*sampler = built_array(obj, "pacer_samples", sizeof(**sampler), cpus);
	*heads = built_array(obj, "pacer_heads", sizeof(**heads), cpus);
	if (!*sampler || !*heads)
		return -1;
	for (uint32_t cpu = 0; cpu < cpus; cpu++)
		pacer_sampler_init(&(*sampler)[cpu], 1000 + cpu);
	return 0;
}

#endif
