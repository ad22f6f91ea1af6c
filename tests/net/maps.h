/* SPDX-License-Identifier: GPL-2.0-only */
/* The maps of a program at work, for tools that write what no packet brings about in time. */
#ifndef NET_MAPS_H
#define NET_MAPS_H

#include <bpf/bpf.h>
#include <err.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* The program's map of that name, as a file. Ends the process where there is none. */
static int map_of(uint32_t prog_id, const char *name)
{
	struct bpf_prog_info info = {0};
	uint32_t ids[64], len = sizeof(info);
	int fd = bpf_prog_get_fd_by_id(prog_id);

	info.nr_map_ids = sizeof(ids) / sizeof(*ids);
	info.map_ids = (uintptr_t)ids;
	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len))
		err(1, "program %u", prog_id);
	for (uint32_t i = 0; i < info.nr_map_ids && i < sizeof(ids) / sizeof(*ids); i++) {
		struct bpf_map_info map = {0};
		uint32_t map_len = sizeof(map);
		int map_fd = bpf_map_get_fd_by_id(ids[i]);

		if (map_fd < 0 || bpf_obj_get_info_by_fd(map_fd, &map, &map_len))
			err(1, "map %u", ids[i]);
		if (!strcmp(map.name, name))
			return map_fd;
		close(map_fd);
	}
	errx(1, "program %u has no map %s", prog_id, name);
}

#endif
