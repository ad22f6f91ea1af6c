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
	__u32 mask;  /* sources - 1; sources is a power of two */
	__u32 sweep; /* one source after the other, instead of at random */
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

/* A stamped frame, 64 bytes. */
struct bench_frame {
	struct ethhdr eth;
	struct iphdr ip;
	struct udphdr udp;
	__u64 sent_ns; /* CLOCK_MONOTONIC */
	__u8 rest[14];
} __attribute__((packed));

#endif
