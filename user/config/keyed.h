/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: places in a table whose keys strangers choose, such as addresses that send. The hash has
 * a secret of the process, so that nobody can choose keys that fall on one place.
 *
 * Source: the family of common/hash.h, with as many words as the longest key has.
 *
 * Error: two keys share their first place with a probability of 1 in `places` over the secret, or
 * little more, and their step with 2^-31.
 *
 * Concurrency: pure, but for keyed_begin.
 */
#ifndef PACER_KEYED_H
#define PACER_KEYED_H

#include <stddef.h>
#include <stdint.h>

#define KEYED_BYTES 128 /* of a key, at most */

struct keyed {
	uint64_t secret[2][KEYED_BYTES / sizeof(uint32_t) + 1];
};

/* A key's first place in a table of a power of two, and the step to the next, which is odd. */
struct keyed_probe {
	uint32_t place, step;
};

/* Draws the secret. -1: there are no random numbers (errno). */
int keyed_begin(struct keyed *k);

/* Of a table of so many places. Keys differ in their bytes: zeros at the end count for nothing. */
struct keyed_probe keyed_probe(const struct keyed *k, const void *key, size_t bytes,
			       uint32_t places);

#endif
