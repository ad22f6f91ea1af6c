/* SPDX-License-Identifier: GPL-2.0-only */
#include "members.h"

#include <bpf/libbpf.h>
#include <stdlib.h>
#include <string.h>

#include "sets/set_maps.h"
#include "tool.h"

static const struct kind {
	const char *name;
	uint8_t family, len[8]; /* of one prefix after the other */
} kinds[] = {
    {"hosts4", 4, {32, 32, 32, 32, 32, 32, 32, 32}},
    {"routes4", 4, {24, 24, 24, 24, 22, 23, 20, 19}},
    {"hosts6", 6, {128, 128, 128, 128, 128, 128, 128, 128}},
    {"nets6", 6, {64, 64, 64, 64, 64, 64, 64, 64}},
    {"feed6", 6, {128, 64, 128, 64, 48, 128, 64, 32}},
};

static uint64_t ones(unsigned int n)
{
	return n >= 64 ? ~0ull : (1ull << n) - 1;
}

/* Of every second source, the prefix of this length that it lies in. */
static struct set_entry member(const struct kind *kind, uint32_t i)
{
	struct bench_addr6 a = bench_mixed6(2 * i);
	uint8_t len = kind->len[i & 7];
	struct set_entry e = {.value = 1, .family = kind->family, .len = len};

	e.high = (uint64_t)a.word[0] << 32 | a.word[1];
	e.low = (uint64_t)a.word[2] << 32 | a.word[3];
	if (kind->family == 4) {
		e.high = (uint64_t)bench_mixed(2 * i) << 32;
		e.low = 0;
	}
	e.high &= len >= 64 ? ~0ull : ~ones(64 - len);
	e.low &= len >= 128 ? ~0ull : len <= 64 ? 0 : ~ones(128 - len);
	return e;
}

void members_fill(struct bench_bpf *skel, const char *name)
{
	int fd = bpf_map__fd(skel->maps.pacer_sets);
	struct set_entry one, other;
	struct set_list list = {0};
	struct pacer_set_head head;
	const struct kind *kind = NULL;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name))
			kind = &kinds[i];
	if (!kind)
		die("there is no set %s", name);
	for (uint32_t i = 0; i < BENCH_MEMBERS; i++) {
		struct set_entry e = member(kind, i);

		if (set_list_add(&list, &e))
			die("a set");
	}
	if (set_list_sort(&list, &one, &other) || set_maps_put(fd, 0, &list) ||
	    set_maps_head(fd, 0, &head))
		die("a set of %zu prefixes", list.n);
	skel->bss->config.set_lines = head.lines;
	set_list_free(&list);
}
