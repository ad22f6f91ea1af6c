/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Places by a secret. What is asserted of many keys holds for each of many secrets, so that it is
 * no matter of luck: keys that lie close together, in steps of a power of two, or that FNV-1a puts
 * on one place, are found with few steps in a table that is half full.
 */
#include "oracle.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "config/keyed.h"

#define PLACES	(1u << 14)
#define KEYS	(PLACES / 2)
#define SECRETS 20
#define PROBES	4 /* on average: 2 are what double hashing takes for the last of them, half full */

/* --- random numbers --------------------------------------------------------------------------- */

static uint64_t state;
static size_t at_most;		 /* a call gives so many bytes; 0: it fails */
static unsigned int interrupted; /* so many calls are, first */

static uint64_t next(void)
{
	state += 0x9e3779b97f4a7c15;
	return (state ^ state >> 31) * 0xbf58476d1ce4e5b9;
}

ssize_t __wrap_getrandom(void *to, size_t n, unsigned int flags);

ssize_t __wrap_getrandom(void *to, size_t n, unsigned int flags)
{
	unsigned char *byte = to;

	assert_int_equal(flags, 0);
	errno = interrupted ? EINTR : ENOSYS;
	if (interrupted ? interrupted-- : !at_most)
		return -1;
	n = n < at_most ? n : at_most;
	for (size_t i = 0; i < n; i++)
		byte[i] = (unsigned char)(next() >> 24);
	return (ssize_t)n;
}

static struct keyed drawn(uint64_t seed)
{
	struct keyed k;

	state = seed;
	at_most = SIZE_MAX;
	assert_int_equal(keyed_begin(&k), 0);
	return k;
}

/* All of it is drawn, in however many parts. */
static void test_secret(void **unused)
{
	struct keyed whole = drawn(1), parts;

	(void)unused;
	state = 1;
	at_most = 7;
	interrupted = 3;
	assert_int_equal(keyed_begin(&parts), 0);
	assert_memory_equal(&parts, &whole, sizeof(whole));
	parts = drawn(2);
	for (int which = 0; which < 2; which++)
		for (size_t i = 0; i < ARRAY(whole.secret[0]); i++)
			assert_true(whole.secret[which][i] != parts.secret[which][i]);
	at_most = 0;
	assert_int_equal(keyed_begin(&parts), -1);
	assert_int_equal(errno, ENOSYS);
}

/* --- places ----------------------------------------------------------------------------------- */

/* The family's definition, in wider numbers. */
static uint32_t upper(const uint64_t *secret, const uint32_t *word, size_t n)
{
	unsigned __int128 sum = secret[0];

	for (size_t i = 0; i < n; i++)
		sum += (unsigned __int128)secret[i + 1] * word[i];
	return (uint32_t)((uint64_t)sum >> 32);
}

static void test_definition(void **unused)
{
	uint32_t word[KEYED_BYTES / 4];
	struct keyed k = drawn(3);

	(void)unused;
	for (int i = 0; i < 1000; i++) {
		uint32_t place, step;
		struct keyed_probe is;

		for (size_t w = 0; w < ARRAY(word); w++)
			word[w] = (uint32_t)next();
		place = upper(k.secret[0], word, ARRAY(word));
		step = upper(k.secret[1], word, ARRAY(word));
		is = keyed_probe(&k, word, sizeof(word), PLACES);
		assert_int_equal(is.place,
				 (place ^ place >> 16) * 0x9e3779b1u / (UINT32_MAX / PLACES + 1));
		assert_int_equal(is.step, (step ^ step >> 16) | 1);
	}
}

/* A key that ends within a word is as if zeros followed; what follows in memory is not read. */
static void test_any_length(void **unused)
{
	struct keyed k = drawn(4);
	char key[KEYED_BYTES];

	(void)unused;
	for (size_t n = 0; n <= sizeof(key); n++) {
		struct keyed_probe whole, part;

		memset(key, 0, sizeof(key));
		for (size_t i = 0; i < n; i++)
			key[i] = (char)next();
		whole = keyed_probe(&k, key, sizeof(key), PLACES);
		memset(key + n, 'x', sizeof(key) - n);
		part = keyed_probe(&k, key, n, PLACES);
		assert_memory_equal(&part, &whole, sizeof(whole));
	}
}

/* --- tables ----------------------------------------------------------------------------------- */

typedef void key_of(uint32_t i, char key[64]);

static void consecutive(uint32_t i, char key[64])
{
	snprintf(key, 64, "ban/12345678:src/10.%u.%u.%u", i >> 16, i >> 8 & 0xff, i & 0xff);
}

static void in_steps(uint32_t i, char key[64])
{
	uint32_t word = i << 14;

	memset(key, 0, 64);
	memcpy(key + 12, &word, sizeof(word));
}

/* Addresses whose FNV-1a falls into a hundredth of the places. */
static void aimed(uint32_t i, char key[64])
{
	static uint32_t from;
	uint64_t hash;

	from = i ? from : 0;
	do {
		consecutive(from++, key);
		hash = 0xcbf29ce484222325;
		for (const char *c = key; *c; c++)
			hash = (hash ^ (unsigned char)*c) * 0x100000001b3;
	} while (((hash ^ hash >> 29) & (PLACES - 1)) > PLACES / 100);
}

static char keys[KEYS][64];

static unsigned int probes_to_put_all(const struct keyed *k)
{
	static bool taken[PLACES];
	unsigned int n = 0;

	memset(taken, 0, sizeof(taken));
	for (uint32_t i = 0; i < KEYS; i++) {
		struct keyed_probe probe = keyed_probe(k, keys[i], sizeof(keys[i]), PLACES);
		uint32_t at = probe.place;

		for (n++; taken[at]; n++)
			at = (at + probe.step) & (PLACES - 1);
		taken[at] = true;
	}
	return n;
}

static void test_few_steps(void **unused)
{
	static key_of *const kinds[] = {consecutive, in_steps, aimed};

	(void)unused;
	for (size_t kind = 0; kind < ARRAY(kinds); kind++) {
		memset(keys, 0, sizeof(keys));
		for (uint32_t i = 0; i < KEYS; i++)
			kinds[kind](i, keys[i]);
		for (uint64_t seed = 1; seed <= SECRETS; seed++) {
			struct keyed k = drawn(seed);
			unsigned int n = probes_to_put_all(&k);

			if (n > PROBES * KEYS)
				fail_msg("kind %zu, secret %u: %u probes of %u keys", kind,
					 (unsigned int)seed, n, KEYS);
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_secret),
	    cmocka_unit_test(test_definition),
	    cmocka_unit_test(test_any_length),
	    cmocka_unit_test(test_few_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
