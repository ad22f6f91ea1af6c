/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every map, and nowhere else. The two .data maps are addressed without a look-up and are mapped by
 * the CLI, which finds them by their names among the maps of an interface's program.
 */
#ifndef PACER_MAPS_BPF_H
#define PACER_MAPS_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "abi.h"
#include "builtin.h"

struct pacer_control pacer_control SEC(".data.control") = {
    .magic = PACER_MAGIC,
    .abi_version = PACER_ABI_VERSION,
};

struct pacer_copy pacer_copies[2] SEC(".data.policy") = {
    {.bytes = {PACER_BUILTIN_POLICY}, .text = {PACER_BUILTIN_TEXT}},
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PACER_BUILTIN_LINES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pacer_line);
} pacer_lines SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PACER_COUNTERS_MAX);
	__type(key, __u32);
	__type(value, struct pacer_counters);
} pacer_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, PACER_ALLOW_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct pacer_allow4);
	__type(value, struct pacer_allow_value);
} pacer_allow4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, PACER_ALLOW_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct pacer_allow6);
	__type(value, struct pacer_allow_value);
} pacer_allow6 SEC(".maps");

static __always_inline struct pacer_line *pacer_map_line(__u32 index)
{
	return bpf_map_lookup_elem(&pacer_lines, &index);
}

/* The core's hooks: where this host keeps what a packet is judged by. */
#define PACER_LINE_AT(table, index) pacer_map_line(index)
#define PACER_POLICY_OF(walk)	    (&pacer_copies[(walk)->copy & 1].policy)
#define PACER_RULE_OF(walk)	    (&PACER_POLICY_OF(walk)->rule[(walk)->rule & (PACER_RULES_MAX - 1)])
#define PACER_SECRET_OF(walk)	    pacer_control.secret
#define PACER_TABLE_OF(walk)	    ((struct pacer_table *)0)

#endif
