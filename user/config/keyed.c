/* SPDX-License-Identifier: GPL-2.0-only */
#include "config/keyed.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "hash.h"

int keyed_begin(struct keyed *k)
{
	unsigned char *at = (unsigned char *)k->secret;
	size_t got = 0;

	while (got < sizeof(k->secret)) { /* more than 256 bytes may come in parts */
		ssize_t n = getrandom(at + got, sizeof(k->secret) - got, 0);

		if (n < 0 && errno != EINTR)
			return -1;
		got += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

struct keyed_probe keyed_probe(const struct keyed *k, const void *key, size_t bytes,
			       uint32_t places)
{
	const uint64_t *a = k->secret[0], *b = k->secret[1];
	uint64_t place = *a++, step = *b++;
	const unsigned char *from = key;

	for (size_t n; bytes; from += n, bytes -= n) {
		uint32_t word = 0;

		n = bytes < sizeof(word) ? bytes : sizeof(word);
		memcpy(&word, from, n);
		place += *a++ * word;
		step += *b++ * word;
	}
	return (struct keyed_probe){
	    pacer_reduce(pacer_hash_fold(place >> 32) * PACER_HASH_ODD, places),
	    pacer_hash_fold(step >> 32) | 1};
}
