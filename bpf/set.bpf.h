/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: sets of prefixes (set.h) as the program finds them: a map of maps, a place for each set
 * of each of the two copies of the policy. A set is an array of its lines. The tool makes it as
 * large as it has to be, fills it, and then puts it in its place at once.
 *
 * Concurrency: a packet asks for a set once, and then has the old one or the new one until it is
 * done with it. The kernel keeps the old one for as long as a packet may have it.
 */
#ifndef PACER_SET_BPF_H
#define PACER_SET_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "abi.h"

#define PACER_SET	       void
#define PACER_SET_LINE(set, i) ((const union pacer_set_line *)pacer_map_set_line(set, i))

static __always_inline void *pacer_map_set_line(void *set, __u32 i)
{
	return bpf_map_lookup_elem(set, &i);
}

#include "set.h"

/* It can be mapped, so that its lines are cache lines. */
struct pacer_set_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(union pacer_set_line));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, PACER_SET_PLACES);
	__type(key, __u32);
	__array(values, struct pacer_set_map);
} pacer_sets SEC(".maps");

/* NULL: the policy has no such set. */
static __always_inline void *pacer_map_set(__u32 copy, __u32 number)
{
	__u32 place = (copy & 1) * PACER_SETS_MAX + (number & (PACER_SETS_MAX - 1));

	return bpf_map_lookup_elem(&pacer_sets, &place);
}

/* What was added to it by hand. NULL: nothing was. */
static __always_inline void *pacer_map_set_hand(__u32 copy, __u32 number)
{
	__u32 place =
	    PACER_SET_HANDS + (copy & 1) * PACER_SETS_MAX + (number & (PACER_SETS_MAX - 1));

	return bpf_map_lookup_elem(&pacer_sets, &place);
}

#endif
