/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The benchmark's tool: one measurement a call, its result as lines of JSON on stdout.
 * tests/bench/run calls it, takes the medians and prints the tables.
 */
#ifndef BENCH_TOOL_H
#define BENCH_TOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "bench.h"
#include "bench.skel.h"

#define BENCH_PORT 9000
#define BENCH_DEST 0xc6120001u /* 198.18.0.1 */

int layers_main(int argc, char **argv);
int dearest_main(int argc, char **argv);
int flood_main(int argc, char **argv);
int stamp_main(int argc, char **argv);
int mix_main(int argc, char **argv);
int attach_main(int argc, char **argv);
int receive_main(int argc, char **argv);

/* Print what went wrong, and errno's text, and leave with 1. */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
uint64_t clock_ns(int clock);
void pin(int cpu);
/*
 * And nobody else gets it, but for a twentieth that the kernel keeps for others; where the caller
 * may. Not for what sends frames: softirqs that have to wait for it lose them.
 */
void pin_alone(int cpu);
/* The programs, loaded: all, or only the one, as the parser takes the verifier a while. */
struct bench_bpf *open_bench(const char *only);
void seed(struct bench_bpf *skel);
/* A frame from 0.0.0.0 to the port of BENCH_DEST; ip_sum as in struct bench_flow. */
void make_frame(struct bench_frame *frame, uint16_t port, uint32_t *ip_sum);

#endif
