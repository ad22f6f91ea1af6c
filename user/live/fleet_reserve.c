/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/fleet_reserve.h"

#include <bpf/bpf.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "live/partners.h"
#include "share.h"

/* In a place that is nobody's, no packet goes by what an agent may still have put there. */
static bool has_some(const struct pacer_control *control, uint64_t member)
{
	for (uint32_t i = 0; i < PACER_SHARES; i++) {
		const struct pacer_share *s = &control->share[i];

		if (s->id && pacer_share_floor_of(s->floor) == pacer_share_mark(member))
			return true;
	}
	return false;
}

static bool is_control(int fd, const struct bpf_map_info *info, struct pacer_control *control)
{
	const uint32_t first = 0;

	return !strcmp(info->name, ".data.control") && info->type == BPF_MAP_TYPE_ARRAY &&
	       info->value_size == sizeof(*control) && !bpf_map_lookup_elem(fd, &first, control) &&
	       control->magic == PACER_MAGIC && control->abi_version == PACER_ABI_VERSION;
}

/* Of the map of this number. */
static bool says_so(uint32_t id, uint64_t member)
{
	static struct pacer_control control;
	int fd = bpf_map_get_fd_by_id(id);
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);
	bool so;

	if (fd < 0)
		return false;
	so = !bpf_obj_get_info_by_fd(fd, &info, &len) && is_control(fd, &info, &control) &&
	     has_some(&control, member);
	close(fd);
	return so;
}

uint32_t fleet_reserve_elsewhere(uint64_t member, uint32_t but)
{
	uint32_t id = 0;

	while (!bpf_map_get_next_id(id, &id))
		if (id != but && says_so(id, member) && partners_carried(id) > 0)
			return id;
	return 0;
}
