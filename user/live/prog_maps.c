/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/prog_maps.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

int prog_maps_read(int prog_fd, uint32_t ids[PROG_MAPS_MAX])
{
	struct bpf_prog_info info = {.nr_map_ids = PROG_MAPS_MAX, .map_ids = (uintptr_t)ids};
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(prog_fd, &info, &len))
		return -errno;
	return info.nr_map_ids < PROG_MAPS_MAX ? (int)info.nr_map_ids : PROG_MAPS_MAX;
}

static bool is_among(uint32_t id, const uint32_t *map_id, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (map_id[i] == id)
			return true;
	return false;
}

int prog_maps_has(int prog_fd, const uint32_t *map_id, size_t n)
{
	uint32_t ids[PROG_MAPS_MAX];
	int maps = prog_maps_read(prog_fd, ids);

	for (int i = 0; i < maps; i++)
		if (is_among(ids[i], map_id, n))
			return 1;
	return maps < 0 && maps != -ENODEV ? maps : 0;
}

int prog_maps_id_has(uint32_t prog_id, const uint32_t *map_id, size_t n)
{
	int fd = bpf_prog_get_fd_by_id(prog_id), has;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	has = prog_maps_has(fd, map_id, n);
	close(fd);
	return has;
}
