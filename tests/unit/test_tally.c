/* SPDX-License-Identifier: GPL-2.0-only */
/* The text of a key, whatever the kind of key locks: a kind may come from a damaged table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "inspect/tally.h"

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

/* What is written is read again, as the same key; and no kind reads what another writes. */
static void test_read(void **state)
{
	static const struct policy_key kinds[] = {
	    {KEY_FLOW, 32, 128},     {KEY_SRC, 32, 64},	 {KEY_SRC, 24, 56},
	    {KEY_DST, 32, 128},	     {KEY_ALL, 32, 128}, {KEY_SRC_DPORT, 32, 128},
	    {KEY_SRC_DPORT, 20, 48},
	};
	static const uint8_t protos[] = {17, 6, 1, 58, 132, 47, 255};
	char text[TALLY_TEXT], again[TALLY_TEXT];
	struct pacer_packet read;

	(void)state;
	for (size_t i = 0; i < 2 * 7 * sizeof(kinds) / sizeof(*kinds); i++) {
		const struct policy_key *kind = &kinds[i / 14];
		struct pacer_packet pkt = packet(i & 1 ? PACER_FAMILY_4 : PACER_FAMILY_6);

		pkt.proto = pkt.key[PACER_WORD_META] = protos[i / 2 % 7];
		tally_key_text(kind, &pkt, text, sizeof(text));
		if (kind->kind == KEY_ALL) {
			assert_int_equal(tally_key_read(kind, text, &read), -1);
			continue;
		}
		assert_int_equal(tally_key_read(kind, text, &read), 0);
		assert_string_equal(tally_key_text(kind, &read, again, sizeof(again)), text);
		assert_int_equal(read.family, pkt.family);
		for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
			if ((kinds[k].kind == KEY_FLOW) != (kind->kind == KEY_FLOW) ||
			    (kinds[k].kind == KEY_SRC_DPORT) != (kind->kind == KEY_SRC_DPORT))
				assert_int_equal(tally_key_read(&kinds[k], text, &read), -1);
	}
}

static void test_read_wrong(void **state)
{
	static const struct policy_key flow = {KEY_FLOW, 32, 128}, src = {KEY_SRC, 24, 56},
				       dport = {KEY_SRC_DPORT, 32, 128};
	static const char *const flows[] = {
	    "",
	    "192.0.2.1",
	    "192.0.2.1>192.0.2.2",
	    "192.0.2.1>192.0.2.2 udp",
	    "192.0.2.1>192.0.2.2 udp 1",
	    "192.0.2.1>192.0.2.2 udp 1 65536",
	    "192.0.2.1>192.0.2.2 udp 1 2 3",
	    "192.0.2.1>192.0.2.2 upd 1 2",
	    "192.0.2.1>192.0.2.2 256 1 2",
	    "192.0.2.1>2001:db8::1 udp 1 2",
	    "192.0.2.1 192.0.2.2 udp 1 2",
	    "192.0.2.1>192.0.2.2  udp 1 2",
	    "192.0.2.1>192.0.2.2 udp 1-2 2",
	    "192.0.2.0/24>192.0.2.2 udp 1 2",
	    "192.0.2.1>192.0.2.2 udp fragment 7",
	    "192.0.2.1>192.0.2.2 udp ? ?",
	};
	static const char *const others[] = {
	    "192.0.2.1", "192.0.2.0/25", "192.0.2.1/24", "2001:db8::/64", "x", "192.0.2.0/24 "};
	char address[300];
	struct pacer_packet read;

	(void)state;
	for (size_t i = 0; i < sizeof(flows) / sizeof(*flows); i++)
		assert_int_equal(tally_key_read(&flow, flows[i], &read), -1);
	assert_int_equal(tally_key_read(&flow, "192.0.2.1>192.0.2.2 17 1 2", &read), 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_int_equal(tally_key_read(&src, others[i], &read), -1);
	assert_int_equal(tally_key_read(&dport, "192.0.2.1 ", &read), -1);
	assert_int_equal(tally_key_read(&dport, "192.0.2.1", &read), -1);
	memset(address, '1', sizeof(address) - 4);
	memcpy(address + sizeof(address) - 4, " 53", 4);
	assert_int_equal(tally_key_read(&dport, address, &read), -1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_prefix_lengths), cmocka_unit_test(test_prefix_lengths_too_long),
	    cmocka_unit_test(test_fragments),	   cmocka_unit_test(test_read),
	    cmocka_unit_test(test_read_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
