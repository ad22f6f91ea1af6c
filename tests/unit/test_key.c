/* SPDX-License-Identifier: GPL-2.0-only */
/* What a key is made of: the words under a limit's mask, and no others. */
#include <stdbool.h>

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

/* The same words are another key of the other family. */
static void test_families(void **unused)
{
	(void)unused;
	oracle_seed(34);
	for (uint32_t i = 0; i < PACER_SECRETS; i++)
		secret[i] = draw();
	for (uint8_t src_only = 0; src_only < 2; src_only++) {
		struct pacer_limiter t = {.src_only = src_only, .mask4 = {~0u, ~0u, ~0u, ~0u}};
		struct pacer_packet four = {.family = PACER_FAMILY_4},
				    six = {.family = PACER_FAMILY_6};

		memset(t.mask6, 0xff, sizeof(t.mask6));
		four.key[PACER_WORD_SADDR] = six.key[0] = 0xc0000201;
		four.key[PACER_WORD_DADDR] = src_only ? 0 : 2;
		six.key[1] = src_only ? 0 : 2;
		assert_int_not_equal(pacer_limiter_hash(&t, &four, secret).home,
				     pacer_limiter_hash(&t, &six, secret).home);
	}
}

/* Every pair of lengths, and every value, has a number of its own: the next one, in their order. */
static void test_numbers(void **unused)
{
	uint32_t src4, src6, dst4, dst6, n = 0;

	(void)unused;
	for (src4 = 0; src4 <= PACER_KEY_VALUE; src4++)
		for (src6 = 0; src6 <= (src4 <= 32 ? 128 : 0); src6++)
			for (dst4 = 0; dst4 <= PACER_KEY_VALUE; dst4++)
				for (dst6 = 0; dst6 <= (dst4 <= 32 ? 128 : 0); dst6++)
					assert_int_equal(PACER_KEY_LENGTHS(src4, src6, dst4, dst6),
							 n++);
	assert_true(n - 1 <= UINT32_MAX >> PACER_KEY_PARTS);
	assert_int_equal(PACER_KEY_SPORT | PACER_KEY_DPORT | PACER_KEY_PROTO | PACER_KEY_V6 |
			     PACER_KEY_VLAN | PACER_KEY_TTL,
			 63);
	for (uint32_t parts = 0; parts < 64; parts++)
		assert_int_equal(PACER_KEY_ID(parts, 24, 56, 0, 0),
				 PACER_KEY_LENGTHS(24, 56, 0, 0) * 64 + parts);
}

/* Which keys with values count IPv4 and IPv6 together: those without an address. */
static void test_of_both(void **unused)
{
	static const struct {
		uint8_t value[2];
		bool src, dst; /* has it that address? */
		bool both;
	} keys[] = {
	    {{0, 0}, false, false, true}, {{0, 0}, true, false, false},
	    {{0, 0}, false, true, false}, {{1, 0}, false, false, true},
	    {{1, 0}, false, true, false}, {{0, 1}, false, false, true},
	    {{0, 1}, true, false, false}, {{1, 2}, true, true, true},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		struct pacer_limiter t = {.value = {keys[i].value[0], keys[i].value[1]}};

		t.mask6[PACER_WORD_SADDR] = keys[i].src ? ~0u : 0;
		t.mask6[PACER_WORD_DADDR] = keys[i].dst ? ~0u : 0;
		assert_int_equal(pacer_limiter_of_both(&t), keys[i].both);
		assert_int_equal(!!pacer_limiter_valued(&t), t.value[0] || t.value[1]);
	}
}

/* A value of the rule stands in the place of all of an address, and is found there again. */
static void test_values(void **unused)
{
	(void)unused;
	oracle_seed(33);
	for (uint32_t i = 0; i < 9; i++) {
		struct pacer_limiter t = {.value = {i % 3, i / 3}, .mask6 = {~0u, 0, 0, 0, ~0u}};
		struct pacer_packet pkt = {.family = PACER_FAMILY_6}, seen;
		uint32_t of_rule[2] = {draw() | 1, draw() & ~1u}, found[2] = {7, 7};

		for (uint32_t k = 0; k < PACER_KEY_WORDS; k++)
			pkt.key[k] = draw();
		seen = pacer_limiter_sees(&t, &pkt, of_rule);
		assert_int_equal(seen.family,
				 t.value[0] && t.value[1] ? PACER_FAMILY_4 : PACER_FAMILY_6);
		for (uint32_t k = 0; k < PACER_KEY_WORDS; k++) {
			uint32_t value = k < 8 ? t.value[k / 4] : 0;

			assert_int_equal(seen.key[k], !value  ? pkt.key[k]
						      : k % 4 ? 0
							      : of_rule[value - 1]);
		}
		pacer_limiter_saw(&t, &seen, found);
		for (uint32_t k = 0; k < 2; k++) {
			bool has = t.value[0] == k + 1 || t.value[1] == k + 1;

			assert_int_equal(found[k], has ? of_rule[k] : 7);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_hash_words), cmocka_unit_test(test_src_only),
	    cmocka_unit_test(test_families),   cmocka_unit_test(test_numbers),
	    cmocka_unit_test(test_of_both),    cmocka_unit_test(test_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
