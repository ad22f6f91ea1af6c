/* SPDX-License-Identifier: GPL-2.0-only */
/* The sets that are measured: BENCH_MEMBERS prefixes, of which half of the drawn sources are in
 * one. */
#ifndef BENCH_MEMBERS_H
#define BENCH_MEMBERS_H

#include "tool.h"

/* Put the set of this name where the programs find it. */
void members_fill(struct bench_bpf *skel, const char *name);

#endif
