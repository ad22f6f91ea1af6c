/* SPDX-License-Identifier: GPL-2.0-only */
/* What a key is made of: the words under a limit's mask, and no others. */
#include "oracle.h"

#include "key.h"

static __u64 secret[PACER_SECRETS];

/* Every word of the key is in the hash, and under the mask none is. */
static void test_hash_words(void **unused)
{
	struct pacer_packet a = {0}, b;
	struct pacer_limiter t;
	struct pacer_hash h, g;
	uint32_t family, i, k;

	(void)unused;
	oracle_seed(31);
	for (i = 0; i < PACER_SECRETS; i++)
		secret[i] = draw();
	for (family = PACER_FAMILY_4; family <= PACER_FAMILY_6; family++)
		for (i = 0; i < PACER_KEY_WORDS; i++) {
			uint32_t in4 = i == PACER_WORD_SADDR   ? 1
				       : i == PACER_WORD_DADDR ? 2
				       : i == PACER_WORD_PORTS ? 3
				       : i == PACER_WORD_META  ? 4
							       : 0;

			t = (struct pacer_limiter){0};
			if (in4)
				t.mask4[in4 - 1] = 0xf0;
			t.mask6[i] = 0xf0;
			a.family = family;
			for (k = 0; k < 32; k++) {
				int in = k >= 4 && k < 8 && (in4 || family == PACER_FAMILY_6);

				b = a;
				b.key[i] ^= 1u << k;
				h = pacer_limiter_hash(&t, &a, secret);
				g = pacer_limiter_hash(&t, &b, secret);
				assert_int_equal(h.home != g.home, in);
				assert_int_equal(h.mark != g.mark, in);
				assert_int_not_equal(h.home, h.mark); /* of two members */
			}
		}
}

/* The short way of a key of sources alone: other words and families count as without it. */
static void test_src_only(void **unused)
{
	struct pacer_limiter t = {.src_only = 1, .mask4 = {~0u}, .mask6 = {~0u, ~0u, ~0u, ~0u}};
	struct pacer_hash h[2], g;
	uint32_t i;

	(void)unused;
	oracle_seed(32);
	for (i = 0; i < PACER_SECRETS; i++)
		secret[i] = draw();
	for (uint32_t family = PACER_FAMILY_4; family <= PACER_FAMILY_6; family++) {
		struct pacer_packet a = {.family = family}, b;
		uint32_t words = family == PACER_FAMILY_4 ? 1 : 4;

		for (i = 0; i < PACER_KEY_WORDS; i++)
			a.key[i] = draw();
		h[family == PACER_FAMILY_6] = pacer_limiter_hash(&t, &a, secret);
		for (i = 0; i < PACER_KEY_WORDS; i++) {
			b = a;
			b.key[i]++;
			g = pacer_limiter_hash(&t, &b, secret);
			assert_int_equal(g.home != h[family == PACER_FAMILY_6].home, i < words);
		}
	}
	assert_int_not_equal(h[0].home, h[1].home);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_hash_words),
	    cmocka_unit_test(test_src_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
