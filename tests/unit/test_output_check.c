/* SPDX-License-Identifier: GPL-2.0-only */
/* What `check` says of throttles, pools and bans, against the policy and against the filter itself.
 */
#include "applied.h"
#include "ban.h"
#include "output.h"

/* Of the verbs' memory, which is told elsewhere. */
uint64_t output_memory_bytes(uint64_t lines)
{
	return lines;
}

static const char policy[] =
    "clock: exact\n"
    "rules:\n"
    "- name: dns\n"
    "  limits:\n"
    "  - {key: src, gap: 1ms}\n"
    "  - {key: all, uses: 1000, cooldown: 10s, max_cooldown: 11s, threshold: 100}\n"
    "  - {key: all, uses: 50, cooldown: 1s, threshold: 7}\n"
    "  over: pool scrub\n"
    "  ban: 30s\n"
    "bans: 1000\n"
    "pools:\n"
    "- {name: scrub, targets: [veth1, veth2], each: 500, cooldown: 10m, max_cooldown: 11m,"
    " threshold: 50}\n";

static json_int_t number(const json_t *of, const char *name)
{
	const json_t *value = json_object_get(of, name);

	if (!json_is_integer(value))
		fail_msg("%s is no number", name);
	return json_integer_value(value);
}

static void test_json(void **unused)
{
	json_t *all, *throttle, *only_b, *pool, *bans;

	(void)unused;
	assert_int_equal(load(policy), 0);
	all = output_check_json(now.policy, &now.bin, &now.plan);
	throttle = json_array_get(json_object_get(all, "limits"), 1);
	assert_string_equal(json_string_value(json_object_get(throttle, "kind")), "throttle");
	assert_int_equal(number(throttle, "uses"), 1000);
	assert_int_equal(number(throttle, "cooldown_ns"), 10 * SECOND);
	assert_int_equal(number(throttle, "max_cooldown_ns"), 11 * SECOND);
	assert_int_equal(number(throttle, "threshold"), 100);
	assert_int_equal(number(throttle, "buckets"), 24);
	assert_int_equal(number(throttle, "buckets_max"), 240);
	assert_int_equal(number(throttle, "lease"), 26);
	assert_int_equal(number(throttle, "lease_ns"), 100 * MS);
	assert_int_equal(number(throttle, "leased_elsewhere"), 25);
	assert_int_equal(number(throttle, "false_denial_free_below"), 125);
	assert_int_equal(number(throttle, "state_bytes"), 6248 + 2 * 32);
	only_b = json_array_get(json_object_get(all, "limits"), 2);
	assert_true(json_is_null(json_object_get(only_b, "max_cooldown_ns")));
	pool = json_array_get(json_object_get(all, "pools"), 0);
	assert_string_equal(json_string_value(json_object_get(pool, "name")), "scrub");
	assert_int_equal(json_array_size(json_object_get(pool, "targets")), 2);
	assert_int_equal(number(pool, "uses"), 500);
	assert_int_equal(number(pool, "threshold"), 25);
	assert_int_equal(number(pool, "effective_cooldown_ns"), 600 * SECOND + RESOLUTION);
	bans = json_object_get(all, "bans");
	assert_int_equal(number(bans, "entries"), 1000);
	assert_int_equal(number(bans, "filter_cells"), 8 * 1024);
	assert_int_equal(number(bans, "state_bytes"), 64 * (1000 + 1024));
	assert_int_equal(number(json_object_get(bans, "rules_ns"), "dns"), 30 * SECOND);
	assert_int_equal(number(all, "state_used_bytes"),
			 64 * (compile_tier_lines(&now.bin.rule[0].tier[0]) + 2024));
	json_decref(all);
	assert_int_equal(load("rules: []\n"), 0);
	all = output_check_json(now.policy, &now.bin, &now.plan);
	assert_true(json_is_null(json_object_get(all, "bans")));
	assert_int_equal(json_array_size(json_object_get(all, "pools")), 0);
	json_decref(all);
}

/* The chance of a maybe, beside how often the filter says it. */
static void test_ban_maybe(void **unused)
{
	enum { LINES = 256, RUNS = 40, ASKED = 4000 };
	static struct pacer_line lines[LINES];
	static const uint32_t keys[] = {1, 30, 128, 256, 600, 2000};
	const struct pacer_bans bans = {.sets = 1, .filter_mask = LINES - 1};
	struct pacer_table table = {lines, LINES};

	(void)unused;
	for (size_t i = 0; i < ARRAY(keys); i++) {
		double maybe = 0, chance = output_ban_maybe(&bans, keys[i]);

		for (uint32_t run = 0; run < RUNS; run++) {
			memset(lines, 0, sizeof(lines));
			for (uint32_t k = 0; k < keys[i]; k++) {
				struct pacer_hash hash = {draw(), draw()};

				assert_true(
				    pacer_ttl_raise(pacer_ban_filter(&table, &bans, hash)->word64,
						    7, pacer_ban_cells(hash), SECOND));
			}
			for (uint32_t k = 0; k < ASKED; k++) {
				struct pacer_hash hash = {draw(), draw()};

				maybe += pacer_ban_maybe(&table, &bans, hash, 1);
			}
		}
		maybe /= RUNS * ASKED;
		if (maybe > chance + 0.01 || maybe < chance - 0.01)
			fail_msg("%u keys: %f, and said is %f", keys[i], maybe, chance);
	}
	assert_true(output_ban_maybe(&bans, 0) < 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_json),
	    TEST(test_ban_maybe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
