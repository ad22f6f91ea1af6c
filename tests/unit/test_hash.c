/* SPDX-License-Identifier: GPL-2.0-only */
/* The keyed hash: its value, its universality on keys that have structure, and places. */
#include "oracle.h"

#include "hash.h"

#define SECRETS 65536u

/* Cells are 8 by 8; 63 degrees of freedom: above 130 with a chance of 2e-6. */
#define CHI_63 130.0

static __u64 secret[PACER_SECRETS];

static void draw_secret(void)
{
	uint32_t i;

	for (i = 0; i < PACER_SECRETS; i++)
		secret[i] = draw();
}

static uint32_t hash(int family, unsigned int which, const __u32 *w)
{
	struct pacer_hash h = family == 4 ? pacer_hash_words(secret, PACER_HASH_FAMILY4, w, 4)
					  : pacer_hash_words(secret, PACER_HASH_FAMILY6, w, 10);

	return which ? h.mark : h.home;
}

/* ---- the value ---- */

/* Upper half upon lower, and a place is multiplied. */
static uint32_t folded(uint32_t which, uint32_t half)
{
	uint32_t low = (half & 0xffff) ^ (half >> 16), upon = half / 65536 * 65536 + low;

	return which ? upon : (uint64_t)upon * 2654435761u % ((uint64_t)1 << 32);
}

/* Secret of word i: of member `which`, the first that is added last. */
static uint32_t by_hand(int family, uint32_t which, const __u32 *w)
{
	uint32_t base = which * 12, n = family == 4 ? 4 : 10, i;
	unsigned __int128 sum = secret[base + (family == 4 ? 10 : 11)];

	for (i = 0; i < n; i++)
		sum += (unsigned __int128)secret[base + i] * w[i];
	return folded(which, sum % ((unsigned __int128)1 << 64) / ((uint64_t)1 << 32));
}

static void test_value(void **unused)
{
	__u32 w[PACER_KEY_WORDS];
	uint32_t i, k, which;

	(void)unused;
	oracle_seed(41);
	assert_int_equal(PACER_SECRETS, 24);
	for (i = 0; i < 20000; i++) {
		draw_secret();
		for (k = 0; k < PACER_KEY_WORDS; k++)
			w[k] = i % 3 ? draw() : i % 3 - 1u;
		for (which = 0; which < 2; which++) {
			assert_int_equal(hash(4, which, w), by_hand(4, which, w));
			assert_int_equal(hash(6, which, w), by_hand(6, which, w));
		}
	}
}

/* Small numbers, to be seen by eye. */
static void test_known(void **unused)
{
	__u32 w[PACER_KEY_WORDS] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
	uint32_t i;

	(void)unused;
	for (i = 0; i < PACER_SECRETS; i++)
		secret[i] = (uint64_t)(i + 1) << 32;
	assert_int_equal(hash(4, 0, w), (11 + 1 * 1 + 2 * 2 + 3 * 3 + 4 * 4) * 2654435761u);
	assert_int_equal(hash(4, 1, w), 23 + 13 * 1 + 14 * 2 + 15 * 3 + 16 * 4);
	assert_int_equal(hash(6, 0, w), (12 + 385) * 2654435761u);
	assert_int_equal(hash(6, 1, w), 24 + 12 * 55 + 385);
}

/* Both are bijections: of 2^16 halves that differ in one of their halves, no two become one. */
static void test_bijections(void **unused)
{
	static uint8_t seen[1 << 16];
	uint32_t i, shift;

	(void)unused;
	for (shift = 0; shift <= 16; shift += 16) {
		memset(seen, 0, sizeof(seen));
		for (i = 0; i < 1 << 16; i++) {
			uint32_t v = pacer_hash_fold(i << shift) >> shift & 0xffff;

			assert_false(seen[v]++);
			assert_int_equal(pacer_hash_fold(pacer_hash_fold(i << shift)), i << shift);
		}
	}
	assert_int_equal(PACER_HASH_ODD % 2, 1);
}

/*
 * 65,536 sources that follow one another, in 32,768 places of two: under no secret do many more
 * find theirs taken than under hashes drawn at random, which are 27% (those of a Poisson
 * distribution of mean 2 beyond two); before they were folded, up to 97% did.
 */
static void test_sequences(void **unused)
{
	static uint8_t count[32768];
	double mean = 0;
	uint32_t s, i;

	(void)unused;
	oracle_seed(47);
	for (s = 0; s < 300; s++) {
		__u32 w[4] = {0x0a000000};
		uint32_t beyond = 0;

		draw_secret();
		memset(count, 0, sizeof(count));
		for (i = 0; i < 65536; i++, w[0]++)
			beyond += count[pacer_reduce(hash(4, 0, w), ARRAY(count))]++ >= 2;
		assert_in_range(beyond, 0, 65536 * 55 / 100);
		mean += beyond / 300.0;
	}
	assert_true(mean > 65536 * 0.26 && mean < 65536 * 0.28);
}

/* ---- universality, over the secret ---- */

/* Pairs as an attacker would pick them: neighbours, powers of two, swaps, single bits. */
static const struct {
	__u32 a[PACER_KEY_WORDS], b[PACER_KEY_WORDS];
} pairs[] = {
    {{0}, {1}},
    {{0}, {0x80000000}},
    {{0xffffffff}, {0}},
    {{0x0a000001}, {0x0a000002}},
    {{0x0a000001, 5}, {5, 0x0a000001}},
    {{1, 0, 0, 0}, {0, 0, 0, 1}},
    {{1, 1, 1, 17}, {1, 1, 1, 6}},
    {{0, 0, 0x10000}, {0, 0, 0x20000}},
    {{0x55555555, 0xaaaaaaaa}, {0xaaaaaaaa, 0x55555555}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xfffffffe, 0xffffffff, 0xffffffff, 0xffffffff}},
};

/* Chi-square of two three-bit numbers against each other, and how often they are the same. */
struct table {
	uint32_t n[8][8], trials;
};

static void tally(struct table *t, uint32_t a, uint32_t b)
{
	t->n[a >> 29][b >> 29]++;
	t->trials++;
}

static void is_independent(const struct table *t)
{
	double expected = t->trials / 64.0, chi = 0, same = 0, bound;
	uint32_t i, k;

	for (i = 0; i < 8; i++) {
		same += t->n[i][i];
		for (k = 0; k < 8; k++)
			chi += (t->n[i][k] - expected) * (t->n[i][k] - expected) / expected;
	}
	assert_true(chi < CHI_63);
	bound = t->trials / 8.0 * (7 / 8.0) * 25; /* five standard deviations, squared */
	assert_true((same - t->trials / 8.0) * (same - t->trials / 8.0) < bound);
}

static void test_universal(void **unused)
{
	static const int family[] = {4, 6};
	uint32_t i, f, s;

	(void)unused;
	oracle_seed(42);
	for (i = 0; i < ARRAY(pairs); i++)
		for (f = 0; f < 2; f++) {
			struct table first = {0}, second = {0}, members = {0};

			for (s = 0; s < SECRETS / 2; s++) {
				draw_secret();
				tally(&first, hash(family[f], 0, pairs[i].a),
				      hash(family[f], 0, pairs[i].b));
				tally(&second, hash(family[f], 1, pairs[i].a),
				      hash(family[f], 1, pairs[i].b));
				tally(&members, hash(family[f], 0, pairs[i].a),
				      hash(family[f], 1, pairs[i].a));
			}
			is_independent(&first);
			is_independent(&second);
			is_independent(&members);
		}
}

/* The last word of an IPv6 key counts as the first does. */
static void test_every_word(void **unused)
{
	__u32 zero[PACER_KEY_WORDS] = {0}, one[PACER_KEY_WORDS];
	uint32_t i, s;

	(void)unused;
	oracle_seed(43);
	for (i = 0; i < PACER_KEY_WORDS; i++) {
		struct table t6 = {0}, t4 = {0};

		memset(one, 0, sizeof(one));
		one[i] = 1;
		for (s = 0; s < SECRETS / 4; s++) {
			draw_secret();
			tally(&t6, hash(6, 0, zero), hash(6, 0, one));
			tally(&t4, hash(4, 0, zero), hash(4, 0, one));
		}
		is_independent(&t6);
		if (i < 4)
			is_independent(&t4);
		else /* and of the six beyond an IPv4 key's none does */
			assert_int_equal(t4.n[0][0] + t4.n[1][1] + t4.n[2][2] + t4.n[3][3] +
					     t4.n[4][4] + t4.n[5][5] + t4.n[6][6] + t4.n[7][7],
					 t4.trials);
	}
}

static void test_families(void **unused)
{
	uint32_t i, s;

	(void)unused;
	oracle_seed(44);
	for (i = 0; i < ARRAY(pairs); i++) {
		struct table t = {0};

		for (s = 0; s < SECRETS; s++) {
			draw_secret();
			tally(&t, hash(4, 0, pairs[i].a), hash(6, 0, pairs[i].a));
		}
		is_independent(&t);
	}
}

/* Structured sets of keys: pairs that share one of 1024 places, over secrets. */
static void test_collisions(void **unused)
{
	uint32_t kind, s, i, n = 256, rounds = 400;

	(void)unused;
	oracle_seed(45);
	for (kind = 0; kind < 4; kind++) {
		double mean = 0, square = 0, expected = n * (n - 1) / 2.0 / 1024, error;

		for (s = 0; s < rounds; s++) {
			uint32_t count[1024] = {0}, collisions = 0;

			draw_secret();
			for (i = 0; i < n; i++) {
				__u32 w[4] = {0xc0a80000, 0x0a000001, 53, 17};

				w[0] += kind == 0 ? i : kind == 1 ? i << 24 : 0;
				w[2] += kind == 2 ? i << 16 : 0;
				w[0] ^= kind == 3 ? i << 4 : 0;
				w[1] ^= kind == 3 ? i << 4 : 0;
				collisions += count[pacer_reduce(hash(4, 0, w), 1024)]++;
			}
			mean += collisions / (double)rounds;
			square += (double)collisions * collisions / rounds;
		}
		error = (mean - expected) * (mean - expected);
		assert_true(error < 25 * (square - mean * mean) / rounds);
	}
}

/* ---- places ---- */

/* Place i begins at the hash ceil(i * 2^32 / n) and nowhere else, so all are of one size. */
static void test_place(void **unused)
{
	static const uint32_t sizes[] = {1, 2, 3, 7, 1000, 65536, 0x7fffffff, 0x80000000, ~0u};
	uint64_t n, i, k, edge;

	(void)unused;
	oracle_seed(46);
	for (k = 0; k < 1000; k++) {
		n = k < ARRAY(sizes) ? sizes[k] : magnitude(1, ~0u);
		assert_int_equal(pacer_reduce(0, n), 0);
		assert_int_equal(pacer_reduce(~0u, n), n - 1);
		for (i = 0; i < 100 && n > 1; i++) {
			uint64_t place = n < 100 ? 1 + i % (n - 1) : between(1, n - 1);

			edge = ((place << 32) + n - 1) / n;
			assert_int_equal(pacer_reduce(edge, n), place);
			assert_int_equal(pacer_reduce(edge - 1, n), place - 1);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_value),     cmocka_unit_test(test_known),
	    cmocka_unit_test(test_universal), cmocka_unit_test(test_every_word),
	    cmocka_unit_test(test_families),  cmocka_unit_test(test_collisions),
	    cmocka_unit_test(test_place),     cmocka_unit_test(test_bijections),
	    cmocka_unit_test(test_sequences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
