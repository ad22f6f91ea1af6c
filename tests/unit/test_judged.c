/* SPDX-License-Identifier: GPL-2.0-only */
/* Which limit judged a sampled packet: that which gives its hash, whatever its key has beyond the
 * sample. */
#include "oracle.h"

#include "estimate/estimate_key.h"
#include "estimate/judged.h"
#include "plan/compile.h"

#define POLICY                                                        \
	"rules:\n"                                                    \
	"  - name: r\n"                                               \
	"    limits:\n"                                               \
	"      - {key: \"src/32,128+ttl\", packets: 9, window: 1s}\n" \
	"      - {key: \"dst/32,128\", packets: 9, window: 1s}\n"

enum { TTL_LIMIT, DST_LIMIT };

static struct pacer_control control;
static struct attached pacer = {.control = &control};
static struct pacer_policy bin;
static struct judged_by by;

static void begin_by(const char *text)
{
	const struct compile_host host = {1 << 20, 1, 2};
	struct policy_error error = {0};
	static struct plan plan;
	struct policy *policy = policy_parse(text, strlen(text), &error);

	if (!policy || compile_policy(policy, NULL, &host, &bin, &plan, &error))
		fail_msg("policy:%d: %s", error.line, error.text);
	policy_free(policy);
	for (size_t i = 0; i < 2 * PACER_SECRETS; i++)
		control.secret[i / PACER_SECRETS][i % PACER_SECRETS] =
		    0x9e3779b97f4a7c15ull * (i + 1);
	judged_open(&pacer, &bin, &by);
}

static void begin(void)
{
	begin_by(POLICY);
}

static struct pacer_packet packet(uint32_t source)
{
	struct pacer_packet pkt = {.family = PACER_FAMILY_4, .proto = 17, .len_bytes = 60};

	pkt.key[PACER_WORD_SADDR] = source;
	pkt.key[PACER_WORD_DADDR] = 0x0a000001;
	pkt.key[PACER_WORD_META] = pacer_meta_vlan(0) | 17;
	return pkt;
}

/* A sample of the packet, which this limit judged: with that TTL, where its key has it. */
static struct pacer_sample_item judged_by_limit(size_t limit, uint32_t source, uint32_t ttl)
{
	const struct pacer_limiter *t = &bin.rule[0].limiter[limit];
	struct pacer_packet pkt = packet(source);
	struct pacer_sample_item item = estimate_item(&pkt, 1);

	pkt.key[PACER_WORD_META] |= ttl << PACER_META_TTL_AT;
	item.key = pacer_limiter_hash(t, &pkt, control.secret[t->secret & 1]).home;
	return item;
}

static void test_each_ttl_is_found(void **unused)
{
	(void)unused;
	begin();
	for (uint32_t ttl = 0; ttl < 256; ttl++) {
		struct pacer_sample_item item = judged_by_limit(TTL_LIMIT, 7, ttl);
		struct pacer_packet seen = {0};
		struct policy_key key;

		assert_int_equal(judged_limiter(&by, 0, &item, &seen), TTL_LIMIT);
		assert_int_equal(seen.key[PACER_WORD_META] >> PACER_META_TTL_AT & 0xff, ttl);
		assert_int_equal(seen.key[PACER_WORD_META] & ~PACER_META_TTL,
				 pacer_meta_vlan(0) | 17);
		assert_int_equal(seen.key[PACER_WORD_SADDR], 7);
		assert_true(judged_key(&by, 0, &item, &key, &seen));
		assert_true(judged_limit(&by, 0, TTL_LIMIT, &item, &seen));
		assert_false(judged_limit(&by, 0, DST_LIMIT, &item, &seen));
	}
	judged_close(&by);
}

static void test_a_key_without_ttl_has_none(void **unused)
{
	struct pacer_packet seen = {0};
	struct pacer_sample_item item;

	(void)unused;
	begin();
	item = judged_by_limit(DST_LIMIT, 8, 0);
	assert_int_equal(judged_limiter(&by, 0, &item, &seen), DST_LIMIT);
	assert_int_equal(seen.key[PACER_WORD_META] & PACER_META_TTL, 0);
	judged_close(&by);
}

/* Of keys with the same hash: what is 0 adds nothing to it. */
static void test_of_limits_alike(void **unused)
{
	static const struct {
		size_t by;
		uint32_t ttl;
		enum pacer_reason reason;
		int found;
	} rows[] = {
	    {1, 0, PACER_DENY_GAP, 1}, {0, 0, PACER_DENY_WINDOW, 0}, {0, 64, PACER_DENY_WINDOW, 0},
	    {1, 0, PACER_ADMIT, 1},    {2, 0, PACER_DENY_RATE, 2},   {0, 64, PACER_DENY_RATE, 0},
	};

	(void)unused;
	begin_by("memory: 1M\nrules:\n- name: a\n  limits:\n"
		 "  - {key: src, packets: 9, window: 1s}\n  - {key: src, gap: 100ms}\n"
		 "  - {key: src+vlan, gap: 1ms}\n");
	for (int limit = 0; limit < 2; limit++) { /* the gap is in the window's limiter */
		struct pacer_sample_item item = judged_by_limit(0, 7, 0);
		struct pacer_packet seen;

		item.reason = limit ? PACER_DENY_GAP : PACER_DENY_WINDOW;
		assert_int_equal(bin.rule[0].n_limiters, 2);
		assert_int_equal(judged_limiter(&by, 0, &item, &seen), 0);
	}
	judged_close(&by);
	begin_by("memory: 1M\nrules:\n- name: a\n  limits:\n"
		 "  - {key: src+ttl, packets: 9, window: 1s}\n  - {key: src, gap: 1ms}\n"
		 "  - {key: src, rate: 9/s, burst: 5}\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct pacer_sample_item item = judged_by_limit(rows[i].by, 7, rows[i].ttl);
		struct pacer_packet seen = {0};

		item.reason = rows[i].reason;
		assert_int_equal(judged_limiter(&by, 0, &item, &seen), rows[i].found);
		assert_int_equal(seen.key[PACER_WORD_META] >> PACER_META_TTL_AT & 0xff,
				 rows[i].ttl);
	}
	judged_close(&by);
}

static void test_of_no_limit(void **unused)
{
	struct pacer_sample_item item;
	struct pacer_packet seen = {.len_bytes = 1};
	struct policy_key key;

	(void)unused;
	begin();
	item = judged_by_limit(TTL_LIMIT, 9, 64);
	item.key ^= 1;
	assert_int_equal(judged_limiter(&by, 0, &item, &seen), -1);
	assert_int_equal(judged_limiter(&by, 1, &item, &seen), -1);
	assert_int_equal(judged_limiter(&by, PACER_RULES_MAX, &item, &seen), -1);
	assert_false(judged_key(&by, 0, &item, &key, &seen));
	assert_int_equal(seen.len_bytes, 1);
	judged_close(&by);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_each_ttl_is_found),
	    cmocka_unit_test(test_a_key_without_ttl_has_none),
	    cmocka_unit_test(test_of_limits_alike),
	    cmocka_unit_test(test_of_no_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
