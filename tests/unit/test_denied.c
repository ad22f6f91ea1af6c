/* SPDX-License-Identifier: GPL-2.0-only */
/* When a source was denied last as banned, or a key by its rule, by a sample that is given; and
 * which samples have such packets. */
#include "applied.h"

#include "cli/denied.h"
#include "estimate/estimate_key.h"

static struct sample sample;

static void row(uint32_t i, uint64_t time_ns, enum pacer_reason reason, uint32_t rule,
		const char *source)
{
	struct pacer_sample_item *item = &sample.row[i].item;
	struct prefix from;

	assert_int_equal(units_prefix(source, &from), 0);
	*item =
	    (struct pacer_sample_item){.time_ns = time_ns,
				       .family = from.family == 4 ? PACER_FAMILY_4 : PACER_FAMILY_6,
				       .rule = rule & 1023,
				       .reason = reason & 63};
	for (int b = 0; b < 16; b++)
		item->saddr[b / 4] |= (uint32_t)from.addr[b] << (24 - 8 * (b % 4));
	sample.rows = i + 1;
}

/* When packets of the prefix were denied last; 0: none was. */
static uint64_t last(const char *text)
{
	struct prefix source;
	struct denied d;

	assert_int_equal(units_prefix(text, &source), 0);
	d = denied_of_source(&sample, &source);
	assert_true(!d.found || d.reason == PACER_DENY_BAN);
	assert_true(d.found || !d.time_ns);
	return d.time_ns;
}

/* The newest first: of the source, under no rule, and as banned. */
static void test_of_a_source(void **unused)
{
	(void)unused;
	row(0, 90, PACER_DENY_WINDOW, 0, "192.0.2.1");
	row(1, 80, PACER_DENY_BAN, 3, "192.0.2.1");
	row(2, 70, PACER_DENY_BAN, 0, "192.0.2.128");
	row(3, 60, PACER_DENY_BAN, 0, "2001:db8::1");
	row(4, 50, PACER_DENY_BAN, 0, "192.0.2.1");
	row(5, 40, PACER_DENY_BAN, 0, "192.0.2.1");
	assert_int_equal(last("192.0.2.1"), 50);
	assert_int_equal(last("192.0.2.0/25"), 50);
	assert_int_equal(last("192.0.2.0/24"), 70);
	assert_int_equal(last("192.0.2.2"), 0);
	assert_int_equal(last("0.0.0.0/0"), 70); /* of its own family */
	assert_int_equal(last("2001:db8::1"), 60);
	assert_int_equal(last("2001:db8::/127"), 60);
	assert_int_equal(last("2001:db8::"), 0);
	assert_int_equal(last("::/0"), 60);
	sample.rows = 4;
	assert_int_equal(last("192.0.2.1"), 0);
}

/* A later fragment is of its family, too. */
static void test_of_a_later_fragment(void **unused)
{
	(void)unused;
	row(0, 90, PACER_DENY_BAN, 0, "192.0.2.1");
	sample.row[0].item.family |= PACER_SAMPLER_LATER;
	assert_int_equal(last("192.0.2.1"), 90);
	assert_int_equal(last("::/0"), 0);
	row(0, 90, PACER_DENY_BAN, 0, "2001:db8::1");
	sample.row[0].item.family |= PACER_SAMPLER_LATER;
	assert_int_equal(last("2001:db8::1"), 90);
	assert_int_equal(last("0.0.0.0/0"), 0);
}

/* --- keys --- */

#define RULES                                                      \
	"rules:\n"                                                 \
	"- {name: a, limits: [{key: src, packets: 9, window: 1s}," \
	" {key: dst, packets: 9, window: 1s}]}\n"                  \
	"- {name: b, limits: [{key: src, packets: 9, window: 1s}]}\n"

static struct pacer_control control;
static struct pacer_copy copy;
static const struct attached pacer = {.control = &control};

/* 192.0.2.`source` sent it to 198.51.100.`to`, and a limit of the rule said this of it. */
static void of_key(uint32_t i, uint64_t time_ns, enum pacer_reason reason, size_t rule,
		   size_t limit, uint32_t source, uint32_t to)
{
	const struct pacer_rule *by = &copy.policy.rule[rule];
	const struct pacer_limiter *t = &by->limiter[limit];
	struct pacer_packet pkt = {.family = PACER_FAMILY_4, .proto = 17, .len_bytes = 60};

	pkt.key[PACER_WORD_SADDR] = 0xc0000200 | source;
	pkt.key[PACER_WORD_DADDR] = 0xc6336400 | to;
	pkt.key[PACER_WORD_META] = pacer_meta_vlan(0) | 17;
	sample.row[i].item = estimate_item(&pkt, time_ns);
	sample.row[i].item.rule = by->counter & 1023;
	sample.row[i].item.reason = reason & 63;
	sample.row[i].item.key = pacer_limiter_hash(t, &pkt, control.secret[t->secret & 1]).home;
	sample.rows = i + 1;
}

static struct denied of_keys(uint32_t rule, const char *first, const char *second)
{
	static struct why why;

	why.n = second ? 2 : 1;
	snprintf(why.limit[0].key, sizeof(why.limit[0].key), "%s", first);
	snprintf(why.limit[1].key, sizeof(why.limit[1].key), "%s", second ? second : "");
	return denied_of_keys(&pacer, &sample, rule, &why);
}

/* The newest that was denied, under the rule, whichever of its limits and of the keys it is. */
static void test_of_keys(void **unused)
{
	struct denied d;

	(void)unused;
	for (size_t i = 0; i < 2 * PACER_SECRETS; i++)
		control.secret[i / PACER_SECRETS][i % PACER_SECRETS] = draw();
	assert_int_equal(load(RULES), 0);
	copy.policy = now.bin;
	sample.copy = &copy;
	of_key(0, 90, PACER_ADMIT, 0, 0, 1, 1);
	of_key(1, 80, PACER_DENY_WINDOW, 1, 0, 1, 1);
	of_key(2, 70, PACER_DENY_CONTENDED, 0, 0, 2, 1);
	of_key(3, 60, PACER_DENY_WINDOW, 0, 0, 1, 1);
	of_key(4, 50, PACER_DENY_BAN, 0, 1, 3, 9);
	of_key(5, 40, PACER_DENY_WINDOW, 0, 0, 1, 1);
	d = of_keys(0, "192.0.2.1", NULL);
	assert_true(d.found && d.time_ns == 60 && d.reason == PACER_DENY_WINDOW);
	d = of_keys(0, "192.0.2.2", NULL);
	assert_true(d.found && d.time_ns == 70 && d.reason == PACER_DENY_CONTENDED);
	d = of_keys(0, "192.0.2.1", "192.0.2.2");
	assert_true(d.found && d.time_ns == 70);
	d = of_keys(0, "192.0.2.7", "198.51.100.9");
	assert_true(d.found && d.time_ns == 50 && d.reason == PACER_DENY_BAN);
	d = of_keys(1, "192.0.2.1", NULL);
	assert_true(d.found && d.time_ns == 80);
	assert_false(of_keys(1, "192.0.2.2", NULL).found);
	assert_false(of_keys(0, "192.0.2.3", NULL).found); /* its other limit denied */
	assert_false(of_keys(0, "198.51.100.1", NULL).found);
	sample.rows = 3;
	assert_false(of_keys(0, "192.0.2.1", NULL).found);
}

static void test_is_sampled(void **unused)
{
	static struct pacer_policy bin;

	(void)unused;
	assert_false(denied_is_sampled(&bin));
	for (uint32_t reason = 0; reason < PACER_REASON_COUNT; reason++) {
		bin.sampling.reasons = 1u << reason;
		assert_int_equal(denied_is_sampled(&bin),
				 pacer_verdict_of(reason) == PACER_VERDICT_DENY);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_of_a_source),
	    cmocka_unit_test(test_of_a_later_fragment),
	    TEST(test_of_keys),
	    cmocka_unit_test(test_is_sampled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
