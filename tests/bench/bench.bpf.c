/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Programs that measure. `draw` draws a source inside the kernel, so that caches see as many keys
 * as wanted, and hands the packet by a tail call to what is measured: a layer of the packet path
 * below, or the production program itself, unchanged. So every figure contains the same draw and
 * call. `generate` makes frames for a real interface out of one frame.
 */
#include <linux/bpf.h>
#include <stddef.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "bench.h"
#include "clock.bpf.h"
#include "hash.h"
#include "parse.h"
#include "set.bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct bench_config config;
struct bench_cpu cpus[BENCH_CPUS];
struct bench_flow flow;
__u64 secret[PACER_SECRETS];

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} subject SEC(".maps");

/* As large as the pacers' tables. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BENCH_LINES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pacer_line);
} lines SEC(".maps");

/* Of the floor that counts. */
struct bench_count {
	__u64 packets, bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bench_count);
} count SEC(".maps");

/* Keep a value that nobody reads. */
#define KEEP(value) __asm__ __volatile__("" ::"r"(value) : "memory")

static __always_inline __u32 next_source(void)
{
	struct bench_cpu *cpu = &cpus[bpf_get_smp_processor_id() & (BENCH_CPUS - 1)];
	__u64 x = cpu->state;

	if (config.sweep)
		return BENCH_SOURCES + (cpu->next++ & config.mask);
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	cpu->state = x;
	return BENCH_SOURCES + ((x >> 24) & config.mask);
}

/*
 * In one store: a load of what lies in several is kept waiting until all of them have left the
 * store buffer, hence until all before them is done, a cache miss of the packet before included. No
 * frame of a NIC's is in that buffer.
 */
static __always_inline void put_source(struct bench_frame *frame, __u32 source)
{
	pacer_alias32 *saddr = (void *)frame + offsetof(struct bench_frame, ip.saddr);

	*saddr = bpf_htonl(source);
}

SEC("xdp.frags") int draw(struct xdp_md *ctx)
{
	struct bench_frame *frame = (void *)(long)ctx->data;

	if ((void *)(frame + 1) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	put_source(frame, next_source());
	bpf_tail_call_static(ctx, &subject, 0); /* which the JIT makes a jump */
	return XDP_ABORTED;
}

/* --- the layers ----------------------------------------------------------------------------- */

/* As the pacer's own: a function that the kernel verifies by itself. */
__attribute__((noinline)) int parse_frame(struct xdp_md *ctx, struct pacer_packet *pkt)
{
	if (!pkt)
		return PACER_PARSE_TRUNCATED;
	return pacer_parse((void *)(long)ctx->data, (void *)(long)ctx->data_end,
			   bpf_xdp_get_buff_len(ctx), pkt);
}

SEC("xdp.frags") int drop(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_DROP;
}

SEC("xdp.frags") int layer_parse(struct xdp_md *ctx)
{
	struct pacer_packet pkt;

	return parse_frame(ctx, &pkt) == PACER_PARSED ? XDP_DROP : XDP_PASS;
}

SEC("xdp.frags") int layer_hash(struct xdp_md *ctx)
{
	struct pacer_packet pkt;
	struct pacer_hash hash;
	__u32 w[1];

	if (parse_frame(ctx, &pkt) != PACER_PARSED)
		return XDP_PASS;
	w[0] = pkt.key[PACER_WORD_SADDR];
	hash = pacer_hash_words(secret, PACER_HASH_FAMILY4, w, 1);
	KEEP(hash.home);
	KEEP(hash.mark);
	return XDP_DROP;
}

SEC("xdp.frags") int layer_coarse(struct xdp_md *ctx)
{
	struct pacer_packet pkt;

	if (parse_frame(ctx, &pkt) != PACER_PARSED)
		return XDP_PASS;
	KEEP(pacer_clock(0));
	return XDP_DROP;
}

SEC("xdp.frags") int layer_exact(struct xdp_md *ctx)
{
	struct pacer_packet pkt;

	if (parse_frame(ctx, &pkt) != PACER_PARSED)
		return XDP_PASS;
	KEEP(bpf_ktime_get_ns());
	return XDP_DROP;
}

/* The least that packets of one key can cost on several CPUs, if any of them is counted at once. */
struct {
	__u64 n;
} shared __attribute__((aligned(64)));

SEC("xdp.frags") int layer_add(struct xdp_md *ctx)
{
	struct pacer_packet pkt;

	if (parse_frame(ctx, &pkt) != PACER_PARSED)
		return XDP_PASS;
	(void)pacer_add64(&shared.n, 1);
	return XDP_DROP;
}

/* The least that a table of this size can cost: where the source stands is read, and that is all.
 */
SEC("xdp.frags") int layer_read(struct xdp_md *ctx)
{
	struct pacer_packet pkt;
	struct pacer_line *line;
	struct pacer_hash hash;
	__u32 w[1], place;

	if (parse_frame(ctx, &pkt) != PACER_PARSED)
		return XDP_PASS;
	KEEP(pacer_clock(0));
	w[0] = pkt.key[PACER_WORD_SADDR];
	hash = pacer_hash_words(secret, PACER_HASH_FAMILY4, w, 1);
	place = pacer_reduce(hash.home, BENCH_LINES);
	line = bpf_map_lookup_elem(&lines, &place);
	return line && !pacer_load64(&line->word64[0]) ? XDP_DROP : XDP_PASS;
}

/* --- the floor: what a limit by source cannot do without ------------------------------------- */

/* Reads the addresses, and hashes the source. 0: it is no IPv4. */
static __always_inline int hash_source(struct xdp_md *ctx, struct pacer_hash *hash)
{
	const struct bench_frame *frame = (void *)(long)ctx->data;
	__u32 w[1];

	if ((const void *)(frame + 1) > (void *)(long)ctx->data_end ||
	    frame->eth.h_proto != bpf_htons(ETH_P_IP))
		return 0;
	KEEP(frame->ip.daddr);
	w[0] = bpf_ntohl(frame->ip.saddr);
	*hash = pacer_hash_words(secret, PACER_HASH_FAMILY4, w, 1);
	KEEP(hash->mark);
	return 1;
}

/*
 * Reads the source's line, and branches on it. No line was ever written, so the branch goes one way
 * always.
 */
static __always_inline int read_line(struct pacer_hash hash)
{
	__u32 place = pacer_reduce(hash.home, BENCH_LINES);
	struct pacer_line *line = bpf_map_lookup_elem(&lines, &place);

	return line && !pacer_load64(&line->word64[0]) ? XDP_DROP : XDP_PASS;
}

SEC("xdp.frags") int hashed(struct xdp_md *ctx)
{
	struct pacer_hash hash;

	if (!hash_source(ctx, &hash))
		return XDP_PASS;
	KEEP(hash.home);
	return XDP_DROP;
}

SEC("xdp.frags") int floor_read(struct xdp_md *ctx)
{
	struct pacer_hash hash;

	return hash_source(ctx, &hash) ? read_line(hash) : XDP_PASS;
}

SEC("xdp.frags") int floor_clock(struct xdp_md *ctx)
{
	struct pacer_hash hash;

	if (!hash_source(ctx, &hash))
		return XDP_PASS;
	KEEP(pacer_clock(0));
	return read_line(hash);
}

SEC("xdp.frags") int floor_count(struct xdp_md *ctx)
{
	struct bench_count *own;
	struct pacer_hash hash;
	__u32 first = 0;
	int action;

	if (!hash_source(ctx, &hash))
		return XDP_PASS;
	KEEP(pacer_clock(0));
	action = read_line(hash);
	own = bpf_map_lookup_elem(&count, &first);
	if (own) {
		own->packets++;
		own->bytes += bpf_xdp_get_buff_len(ctx);
	}
	return action;
}

/* --- sets, and one read of as much memory ------------------------------------------------------
 */

/* The address of the frame's source, in another way for each of the two families. 0: no IPv4. */
static __always_inline int source_of(struct xdp_md *ctx, __u32 *source)
{
	const struct bench_frame *frame = (void *)(long)ctx->data;

	if ((const void *)(frame + 1) > (void *)(long)ctx->data_end ||
	    frame->eth.h_proto != bpf_htons(ETH_P_IP))
		return 0;
	*source = bpf_ntohl(frame->ip.saddr) - BENCH_SOURCES;
	return 1;
}

/* A line of the set's, by hash, and a branch that goes one way always. */
static __always_inline int read_set(__u32 hash)
{
	void *set = pacer_map_set(0, 0);
	const union pacer_set_line *line;
	__u32 place = pacer_reduce(hash, config.set_lines);

	if (!set)
		return XDP_PASS;
	line = bpf_map_lookup_elem(set, &place);
	return line && pacer_load64(&line->word[0]) != 1 ? XDP_DROP : XDP_PASS;
}

static __always_inline int found(int value)
{
	KEEP(value);
	return value == PACER_SET_BROKEN ? XDP_PASS : XDP_DROP;
}

SEC("xdp.frags") int set4_none(struct xdp_md *ctx)
{
	__u32 source;

	if (!source_of(ctx, &source))
		return XDP_PASS;
	KEEP(bench_mixed(source));
	return XDP_DROP;
}

SEC("xdp.frags") int set4_read(struct xdp_md *ctx)
{
	__u32 source;

	return source_of(ctx, &source) ? read_set(bench_mixed(source)) : XDP_PASS;
}

SEC("xdp.frags") int set4_find(struct xdp_md *ctx)
{
	void *set = pacer_map_set(0, 0);
	__u32 source;

	if (!set || !source_of(ctx, &source))
		return XDP_PASS;
	return found(pacer_set_value4(set, bench_mixed(source)));
}

SEC("xdp.frags") int set6_none(struct xdp_md *ctx)
{
	struct bench_addr6 addr;
	__u32 source;

	if (!source_of(ctx, &source))
		return XDP_PASS;
	addr = bench_mixed6(source);
	KEEP(addr.word[0] ^ addr.word[1] ^ addr.word[2] ^ addr.word[3]);
	return XDP_DROP;
}

SEC("xdp.frags") int set6_read(struct xdp_md *ctx)
{
	struct bench_addr6 addr;
	__u32 source;

	if (!source_of(ctx, &source))
		return XDP_PASS;
	addr = bench_mixed6(source);
	return read_set(addr.word[0] ^ addr.word[1] ^ addr.word[2] ^ addr.word[3]);
}

SEC("xdp.frags") int set6_find(struct xdp_md *ctx)
{
	void *set = pacer_map_set(0, 0);
	struct bench_addr6 addr;
	__u32 source;

	if (!set || !source_of(ctx, &source))
		return XDP_PASS;
	addr = bench_mixed6(source);
	return found(pacer_set_find6(set, addr.word));
}

/* --- live frames ---------------------------------------------------------------------------- */

static __always_inline void look_at_clock(void)
{
	flow.due = (bpf_ktime_get_ns() - flow.begin_ns) / flow.honest_ns;
	if (flow.due > flow.sent_honest && flow.due - flow.sent_honest > flow.behind)
		flow.behind = flow.due - flow.sent_honest;
}

/* Count what is sent: one CPU generates. Returns 1 and the source, or 0 where nothing is due. */
static __always_inline int next_frame(__u32 *source)
{
	if (flow.honest && !(flow.drawn++ & 15))
		look_at_clock();
	if (flow.honest && flow.sent_honest < flow.due) {
		*source = BENCH_HONEST + flow.sent_honest++ % flow.honest;
		return 1;
	}
	if (flow.late && flow.late_from + flow.sent_late < flow.due) {
		*source = BENCH_LATE + flow.sent_late++ % flow.honest;
		return 1;
	}
	if (!flow.flood)
		return 0;
	*source = next_source();
	flow.sent_flood++;
	return 1;
}

static __always_inline void set_source(struct bench_frame *frame, __u32 source)
{
	__u32 sum = flow.ip_sum + (source >> 16) + (source & 0xffff);

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	frame->ip.check = bpf_htons(~sum & 0xffff);
	put_source(frame, source);
}

SEC("xdp") int generate(struct xdp_md *ctx)
{
	struct bench_frame *frame = (void *)(long)ctx->data;
	__u32 source;

	if ((void *)(frame + 1) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	if (!next_frame(&source))
		return XDP_DROP;
	set_source(frame, source);
	frame->udp.dest = flow.port_be;
	if (flow.stamp)
		frame->sent_ns = bpf_ktime_get_ns();
	return XDP_TX;
}
