/* SPDX-License-Identifier: GPL-2.0-only */
/* What test_set.c and set.bpf.c share. */
#ifndef SET_TEST_H
#define SET_TEST_H

#include <linux/types.h>

/* A packet's data: which set, and what is asked of it. */
struct set_question {
	__u32 copy, set;
	__u32 family; /* 4 or 6; 0: both, addr[0] as IPv4 and addr as IPv6 */
	__u32 addr[4];
};

#define SET_PAIR 16u /* of both: a value of IPv4 * this + one of IPv6 */
#define SET_NONE 0xffffffffu

/* Answers of both: that were of the first set, of the second, and of neither. */
struct set_seen {
	__u64 one, two, other;
};

#endif
