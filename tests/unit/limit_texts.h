/* SPDX-License-Identifier: GPL-2.0-only */
/* Limits as a policy has them, for tests that compile and change policies. */
#ifndef PACER_TEST_LIMIT_TEXTS_H
#define PACER_TEST_LIMIT_TEXTS_H

#define GAP    "{key: src, gap: 1ms}"
#define GAP5   "{key: src, gap: 5ms}"
#define WIN    "{key: src, packets: 9, window: 1s}"
#define WIN2   "{key: src, packets: 9, window: 2s}"
#define NET    "{key: \"src/24,56\", packets: 9, window: 1s}"
#define USES   "{key: all, uses: 100, cooldown: 1s}"
#define USES10 "{key: all, uses: 1000, cooldown: 10s}"
#define RATE   "{key: src, rate: 100/s, burst: 20}"
#define RATE2  "{key: src, rate: 5/m, burst: 5}"

/* A policy with that rate in one rule, and a window in another. */
#define RATE_AND(clock)                                                                  \
	"clock: " clock "\nrules:\n- {name: a, match: {dport: 7}, limits: [" RATE "]}\n" \
	"- {name: b, limits: [{key: src, packets: 9, window: 1s, slots: 5}]}\n"

#endif
