/* SPDX-License-Identifier: GPL-2.0-only */
/* The text of a key, whatever the kind of key locks: a kind may come from a damaged table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plan/tally.h"

static struct pacer_packet packet(uint8_t family)
{
	struct pacer_packet pkt = {.family = family, .proto = 17};

	for (uint32_t i = 0; i < PACER_KEY_WORDS; i++)
		pkt.key[i] = 0x01020304;
	return pkt;
}

static const char *text_of(uint8_t family, uint8_t len4, uint8_t len6)
{
	static char buf[TALLY_TEXT];
	struct policy_key kind = {KEY_SRC, len4, len6};
	struct pacer_packet pkt = packet(family);

	return tally_key_text(&kind, &pkt, buf, sizeof(buf));
}

static void test_prefix_lengths(void **state)
{
	(void)state;
	assert_string_equal(text_of(PACER_FAMILY_4, 32, 128), "1.2.3.4");
	assert_string_equal(text_of(PACER_FAMILY_4, 24, 56), "1.2.3.0/24");
	assert_string_equal(text_of(PACER_FAMILY_6, 24, 56), "102:304:102:300::/56");
	assert_string_equal(text_of(PACER_FAMILY_6, 24, 128), "102:304:102:304:102:304:102:304");
}

/* No address has so many bits: as long as one is, and nothing beside the buffer is written. */
static void test_prefix_lengths_too_long(void **state)
{
	(void)state;
	for (uint32_t len = 33; len <= UINT8_MAX; len++)
		assert_string_equal(text_of(PACER_FAMILY_4, (uint8_t)len, 128), "1.2.3.4");
	for (uint32_t len = 129; len <= UINT8_MAX; len++)
		assert_string_equal(text_of(PACER_FAMILY_6, 32, (uint8_t)len),
				    "102:304:102:304:102:304:102:304");
}

static const char *flow_of(uint8_t family, uint8_t fragment, uint8_t proto)
{
	static char buf[TALLY_TEXT];
	struct policy_key kind = {KEY_FLOW, 32, 128};
	struct pacer_packet pkt = packet(family);

	pkt.key[PACER_WORD_META] = proto | (fragment == PACER_FRAG_LATER ? PACER_META_FRAGMENT : 0);
	pkt.fragment = fragment;
	pkt.proto = proto;
	return strchr(tally_key_text(&kind, &pkt, buf, sizeof(buf)), ' ');
}

/* What a later fragment of IPv6 is of, only the first one says. */
static void test_fragments(void **state)
{
	(void)state;
	assert_string_equal(flow_of(PACER_FAMILY_6, PACER_FRAG_LATER, 0), " ? fragment 16909060");
	assert_string_equal(flow_of(PACER_FAMILY_4, PACER_FRAG_LATER, 17),
			    " udp fragment 16909060");
	assert_string_equal(flow_of(PACER_FAMILY_4, PACER_FRAG_LATER, 0), " 0 fragment 16909060");
	assert_string_equal(flow_of(PACER_FAMILY_6, PACER_FRAG_FIRST, 17), " udp 258 772");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_prefix_lengths),
	    cmocka_unit_test(test_prefix_lengths_too_long),
	    cmocka_unit_test(test_fragments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
