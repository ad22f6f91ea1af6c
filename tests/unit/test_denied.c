/* SPDX-License-Identifier: GPL-2.0-only */
/* When a source was denied last as banned, by a sample that is given; and which samples have such
 * packets. */
#include "oracle.h"

#include "cli/denied.h"

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
	    cmocka_unit_test(test_is_sampled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
