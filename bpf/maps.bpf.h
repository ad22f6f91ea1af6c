/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All maps are here, but for what a CPU keeps of the clock (clock.bpf.h) and of the packet's walk
 * (judge.bpf.h). The two .data maps are addressed without a look-up. The CLI finds them by their
 * names among the maps of an interface's program, and maps them.
 */
#ifndef PACER_MAPS_BPF_H
#define PACER_MAPS_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "abi.h"
#include "builtin.h"
#include "rules.h"
#include "sampler.h"
#include "set.bpf.h"

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
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PACER_THROTTLES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pacer_throttle_state);
} pacer_throttles SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PACER_THROTTLES);
	__type(key, __u32);
	__type(value, struct pacer_throttle_lease);
} pacer_leases SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PACER_COUNTERS_MAX);
	__type(key, __u32);
	__type(value, struct pacer_counters);
} pacer_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, PACER_ALLOW_ENTRIES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct pacer_allow4);
	__type(value, struct pacer_allow_value);
} pacer_allow4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, PACER_ALLOW_ENTRIES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct pacer_allow6);
	__type(value, struct pacer_allow_value);
} pacer_allow6 SEC(".maps");

/* Sources that other tools ban (abi.h). The CLI pins them where that is asked for. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, PACER_TOOLS_ENTRIES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct pacer_tools4);
	__type(value, struct pacer_tools_value);
} pacer_banned4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, PACER_TOOLS_ENTRIES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct pacer_tools6);
	__type(value, struct pacer_tools_value);
} pacer_banned6 SEC(".maps");

/*
 * Samples (sampler.h): maps of maps with one entry. The inner map is an array with a value for each
 * CPU. The tool puts it in for the first policy that samples, since the object does not know how
 * many CPUs there are.
 */
struct pacer_sampler_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct pacer_sampler));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct pacer_sampler_map);
} pacer_samples SEC(".maps");

struct pacer_heads_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct pacer_heads));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct pacer_heads_map);
} pacer_heads SEC(".maps");

const volatile struct pacer_built pacer_built SEC(".rodata.built") = {0};

/*
 * Targets of pools: interfaces (pacer_target_index), CPUs by number, and AF_XDP sockets by number.
 * The owner of a socket puts it in.
 */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 2 * PACER_POOLS_MAX * PACER_TARGETS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} pacer_devices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(max_entries, PACER_CPUS_MAX);
	__type(key, __u32);
	__type(value, struct bpf_cpumap_val);
} pacer_cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, PACER_SOCKETS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} pacer_sockets SEC(".maps");

/* What this CPU has leased from the pools of each copy. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2 * PACER_POOLS_MAX);
	__type(key, __u32);
	__type(value, struct pacer_pool_lease);
} pacer_pool_leases SEC(".maps");

/* Packets with an address in a set, by its counter. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PACER_SET_COUNTERS);
	__type(key, __u32);
	__type(value, struct pacer_set_count);
} pacer_set_hits SEC(".maps");

/* What is known of the packet that is looked at (rules.h). */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pacer_scratch);
} pacer_scratch SEC(".maps");

/* Notes of bans, and of what tools did. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pacer_log);
} pacer_log SEC(".maps");

/* The key of what maps of one entry have: not on the stack, of which there is little. */
static const __u32 pacer_first = 0;

static __always_inline struct pacer_log *pacer_map_log(void)
{
	return bpf_map_lookup_elem(&pacer_log, &pacer_first);
}

static __always_inline struct pacer_line *pacer_map_line(__u32 index)
{
	return bpf_map_lookup_elem(&pacer_lines, &index);
}

static __always_inline struct pacer_throttle_state *pacer_map_throttle(__u32 index)
{
	return bpf_map_lookup_elem(&pacer_throttles, &index);
}

static __always_inline struct pacer_throttle_lease *pacer_map_lease(__u32 index)
{
	return bpf_map_lookup_elem(&pacer_leases, &index);
}

static __always_inline struct pacer_counters *pacer_map_counters(__u32 slot)
{
	return bpf_map_lookup_elem(&pacer_counts, &slot);
}

static __always_inline struct pacer_set_count *pacer_map_set_count(__u32 number)
{
	return bpf_map_lookup_elem(&pacer_set_hits, &number);
}

static __always_inline struct pacer_scratch *pacer_map_scratch(void)
{
	return bpf_map_lookup_elem(&pacer_scratch, &pacer_first);
}

static __always_inline struct pacer_sampler *pacer_map_sampler(__u32 cpu)
{
	void *of_cpus = bpf_map_lookup_elem(&pacer_samples, &pacer_first);

	return of_cpus ? bpf_map_lookup_elem(of_cpus, &cpu) : 0;
}

static __always_inline struct pacer_heads *pacer_map_heads(__u32 cpu)
{
	void *of_cpus = bpf_map_lookup_elem(&pacer_heads, &pacer_first);

	return of_cpus ? bpf_map_lookup_elem(of_cpus, &cpu) : 0;
}

/* The core's hooks: where this host keeps what a packet is judged by. */
#define PACER_WALK_STATE	       /* the maps are the state */
#define PACER_LINE_AT(table, index)    ((void)(table), pacer_map_line(index))
#define PACER_POLICY_OF(walk)	       (&pacer_copies[(walk)->copy & 1].policy)
#define PACER_RULE_OF(walk)	       (&PACER_POLICY_OF(walk)->rule[(walk)->rule & (PACER_RULES_MAX - 1)])
#define PACER_SECRET_AT(walk, which)   pacer_control.secret[(which)&1]
#define PACER_TABLE_OF(walk)	       ((struct pacer_table *)0)
#define PACER_THROTTLE_AT(walk, index) ((void)(walk), pacer_map_throttle(index))
#define PACER_POOL_STATE	       struct pacer_pool
#define PACER_POOL_TURN(pool)	       (&(pool)->turn)
#define PACER_POOL_THROTTLE(pool, at) \
	pacer_map_throttle((pool)->state[(at) & (PACER_TARGETS_MAX - 1)])
#define PACER_LEASE_AT(walk, index)	 ((void)(walk), pacer_map_lease(index))
#define PACER_SET_OF(walk, number)	 pacer_map_set((walk)->copy, number)
#define PACER_SET_HAND_OF(walk, number)	 pacer_map_set_hand((walk)->copy, number)
#define PACER_SET_COUNT_AT(walk, number) ((void)(walk), pacer_map_set_count(number))
#define PACER_SCRATCH_OF(walk)		 ((void)(walk), pacer_map_scratch())
#define PACER_SHARE_AT(walk, number) \
	((void)(walk), &pacer_control.share[(number) & (PACER_SHARES - 1)])
#define PACER_LANES_AT(walk, number) \
	((void)(walk), &pacer_control.lanes[(number) & (PACER_SHARES - 1)])

#endif
