/* SPDX-License-Identifier: GPL-2.0-only */
/* What crosses between the benchmark's programs and its user space. */
#ifndef BENCH_H
#define BENCH_H

#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/types.h>
#include <linux/udp.h>

#define BENCH_CPUS    64u
#define BENCH_LINES   (1u << 20)  /* of 64 bytes: 64 MiB */
#define BENCH_SOURCES 0x0a000000u /* 10.0.0.0: drawn sources are this + 0 .. mask */
#define BENCH_HONEST  0xac100000u /* 172.16.0.0: sources that keep their limit, from the start */
#define BENCH_LATE    0xac110000u /* 172.17.0.0: and those that come during the flood */

/* Set by user space before a run, read by every packet. */
struct bench_config {
	__u32 mask;	 /* sources - 1; sources is a power of two */
	__u32 sweep;	 /* one source after the other, instead of at random */
	__u32 set_lines; /* that packets read of the set */
};

/* One CPU's source of randomness. */
struct bench_cpu {
	__u64 state; /* not 0 */
	__u64 next;  /* of the sweep */
} __attribute__((aligned(64)));

/*
 * What the generator of live frames sends: the flood as fast as it can be sent, if any, and in
 * between those honest packets that are due, at `honest_ns` from one to the next, in turn of their
 * sources. Where nothing is due, the frame is not sent.
 */
struct bench_flow {
	__u32 flood;	 /* send the flood */
	__u32 stamp;	 /* write the time into the payload */
	__u32 honest;	 /* honest sources of each of the two kinds; 0: none */
	__u32 late;	 /* those that come late are there */
	__u32 ip_sum;	 /* of the IPv4 header's words but for source and checksum */
	__u16 port_be;	 /* where to: what is sent in which phase is told apart by it */
	__u64 honest_ns; /* between two honest packets of one kind, not 0 */
	__u64 begin_ns;	 /* of the honest ones' schedule */
	__u64 late_from; /* the honest packet at which the late ones begin */
	__u64 sent_flood, sent_honest, sent_late;
	__u64 behind;	  /* honest packets that were overdue at once, at the most */
	__u64 due, drawn; /* the generator's own */
};

/*
 * Of the sets that are measured. Drawn source i has an address of its own anywhere, by bench_mixed;
 * sources 2 i are in the set, with as many others as it takes.
 */
#define BENCH_MEMBERS 1000000u /* prefixes */
#define BENCH_NETS    20000u   /* /32 that the addresses of IPv6 lie in */

struct bench_addr6 {
	__u32 word[4];
};

/* A permutation of the numbers of 32 bits. */
static inline __u32 bench_mixed(__u32 x)
{
	x = (x ^ x >> 16) * 0x7feb352du;
	x = (x ^ x >> 15) * 0x846ca68bu;
	return x ^ x >> 16;
}

static inline struct bench_addr6 bench_mixed6(__u32 source)
{
	__u32 x = bench_mixed(source);

	return (struct bench_addr6){
	    {0x20000000u | bench_mixed((__u32)((__u64)bench_mixed(x + 1) * BENCH_NETS >> 32)) >> 3,
	     x, bench_mixed(~x), x ^ source}};
}

/* A stamped frame, 64 bytes. */
struct bench_frame {
	struct ethhdr eth;
	struct iphdr ip;
	struct udphdr udp;
	__u64 sent_ns; /* CLOCK_MONOTONIC */
	__u8 rest[14];
} __attribute__((packed));

#endif
