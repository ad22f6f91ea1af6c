/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: an opened object made to be loaded with memory for samples, as user/loader.c does. */
#ifndef BUILT_H
#define BUILT_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sampler.h"

/* In place of the object's map of that name, one of another size; mapped. NULL: failed. */
static inline void *built_array(struct bpf_object *obj, const char *name, size_t value_size,
				uint32_t entries)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	struct bpf_map *map = bpf_object__find_map_by_name(obj, name);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, name, 4, value_size, entries, &options);
	void *at;

	if (!map || fd < 0 || bpf_map__reuse_fd(map, fd))
		return NULL;
	at = mmap(NULL, value_size * entries, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
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
	struct pacer_built *built = built_of(obj);

	*sampler = built_array(obj, "pacer_samples", sizeof(**sampler), cpus);
	*heads = built_array(obj, "pacer_heads", sizeof(**heads), cpus);
	if (!*sampler || !*heads || !built)
		return -1;
	for (uint32_t cpu = 0; cpu < cpus; cpu++)
		pacer_sampler_init(&(*sampler)[cpu], 1000 + cpu);
	built->samples = built->heads = 1;
	return 0;
}

#endif
