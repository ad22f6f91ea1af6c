/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/samples.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

static const uint32_t first;

int samples_inner(int outer_fd)
{
	uint32_t id;

	if (bpf_map_lookup_elem(outer_fd, &first, &id))
		return -1;
	return bpf_map_get_fd_by_id(id);
}

static int make_inner(const char *name, size_t value_size, int cpus)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY, name, sizeof(uint32_t), value_size, cpus,
			      &options);
}

int samples_outer(const char *name, size_t value_size)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .inner_map_fd = make_inner(name, value_size, 1));
	int fd = (int)options.inner_map_fd < 0
		     ? -1
		     : bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, name, sizeof(first),
				      sizeof(uint32_t), 1, &options);
	int cause = errno;

	if ((int)options.inner_map_fd >= 0)
		close(options.inner_map_fd);
	errno = cause;
	return fd;
}

static int draw_seeds(int fd, int cpus)
{
	size_t len = (size_t)cpus * sizeof(struct pacer_sampler);
	struct pacer_sampler *sampler = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	int err = 0;

	if (sampler == MAP_FAILED)
		return -1;
	for (int i = 0; i < cpus && !err; i++) {
		uint64_t seed;

		if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
			err = -1;
		else
			pacer_sampler_init(&sampler[i], seed);
	}
	munmap(sampler, len);
	return err;
}

/* The map is complete before it is put in, since packets may use it from then on. */
static int put_inner(int outer_fd, int inner_fd, int seeded_cpus)
{
	int err = inner_fd < 0 ? -1 : 0;

	if (!err && seeded_cpus)
		err = draw_seeds(inner_fd, seeded_cpus);
	if (!err)
		err = bpf_map_update_elem(outer_fd, &first, &inner_fd, BPF_ANY);
	if (inner_fd >= 0) {
		int cause = errno;

		close(inner_fd);
		errno = cause;
	}
	return err;
}

static bool is_empty(int outer_fd)
{
	uint32_t id;

	return bpf_map_lookup_elem(outer_fd, &first, &id);
}

int samples_make(const struct sample_maps *maps, const struct pacer_sampling *sampling, int cpus,
		 struct samples_made *made, struct policy_error *error)
{
	int err = 0;

	*made = (struct samples_made){false, false};
	if (sampling->reasons && is_empty(maps->samplers_fd)) {
		err = put_inner(maps->samplers_fd,
				make_inner("pacer_sampler", sizeof(struct pacer_sampler), cpus),
				cpus);
		made->samplers = !err;
	}
	if (!err && sampling->reasons && sampling->snap && is_empty(maps->heads_fd)) {
		err = put_inner(maps->heads_fd,
				make_inner("pacer_head", sizeof(struct pacer_heads), cpus), 0);
		made->heads = !err;
	}
	if (!err)
		return 0;
	policy_explain(error, 0, "the samples of %d CPUs cannot be made: %s%s", cpus,
		       strerror(errno), errno == ENOMEM ? ": leave sample out" : "");
	samples_undo(maps, made);
	return -1;
}

void samples_undo(const struct sample_maps *maps, const struct samples_made *made)
{
	if (made->samplers)
		(void)bpf_map_delete_elem(maps->samplers_fd, &first);
	if (made->heads)
		(void)bpf_map_delete_elem(maps->heads_fd, &first);
}

int samples_replace(struct bpf_map *map, int cpus)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, bpf_map__name(map), sizeof(uint32_t),
				sizeof(struct pacer_sampler), (uint32_t)cpus, &options);
	int err = fd < 0 || draw_seeds(fd, cpus) || bpf_map__reuse_fd(map, fd) ? -1 : 0;
	int cause = errno;

	if (fd >= 0)
		close(fd);
	errno = cause;
	return err;
}
