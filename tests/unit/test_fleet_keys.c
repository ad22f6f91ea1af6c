/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Single keys of a fleet's limit as the store has them: a text is of one key, or there is none, and
 * what somebody else wrote in its place gives no packet more.
 */
#include "applied.h"

#include "cli/fleet_keys.h"

static struct fleet_limit limit_by(const char *key)
{
	say_again();
	say("clock: exact\nmemory: 64Ki\nfleet: {store: 'http://a', name: f}\nrules:\n- name: a\n  "
	    "limits: [{key: '%s', packets: 100, window: 1s, fleet: yes}]\n",
	    key);
	if (load(doc.s))
		fail_msg("%s: %s", key, error.text);
	return (struct fleet_limit){.limiter = now.bin.rule[0].limiter[0]};
}

/* From fd00:...:1 or 10.0.0.1, port 40000, to port 53000. */
static struct pacer_packet packet(uint16_t family, uint8_t proto, uint32_t word)
{
	struct pacer_packet pkt = {.family = family, .proto = proto};
	bool six = family == PACER_FAMILY_6;

	for (uint32_t i = 0; i < 4 && six; i++) {
		pkt.key[PACER_WORD_SADDR + i] = i ? word : 0xfd000000 | (word & 0xffffff);
		pkt.key[PACER_WORD_DADDR + i] = i ? word : 0x20010db8;
	}
	if (!six) {
		pkt.key[PACER_WORD_SADDR] = 0x0a000000 | (word & 0xffffff);
		pkt.key[PACER_WORD_DADDR] = 0xc6336401;
	}
	pkt.key[PACER_WORD_PORTS] = 40000u << 16 | 53000;
	pkt.key[PACER_WORD_META] = proto;
	return pkt;
}

static void a_text_is_of_one_key(void **unused)
{
	static const struct {
		const char *key;
		uint16_t family;
		uint8_t proto;
		uint32_t word;
		const char *text; /* NULL: it has none */
	} rows[] = {
	    {"src", PACER_FAMILY_4, 17, 7, "10.0.0.7"},
	    {"src", PACER_FAMILY_6, 17, 7, "fd00:7:0:7::/64"},
	    {"src/24,48+dport", PACER_FAMILY_4, 17, 7, "10.0.0.0/24 53000"},
	    {"src+dst+proto+sport+dport", PACER_FAMILY_4, 17, 7,
	     "10.0.0.7>198.51.100.1 udp 40000 53000"},
	    {"src/32,128+dst/32,128+proto+sport+dport", PACER_FAMILY_6, 17, 7,
	     "fd00:7:0:7:0:7:0:7>2001:db8:0:7:0:7:0:7 udp 40000 53000"},
	    {"src/32,128+dst/32,128+proto+sport+dport", PACER_FAMILY_6, 17, 0x12345678,
	     "fd34:5678:1234:5678:1234:5678:1234:5678>2001:db8:1234:5678:1234:5678:1234:5678 udp "
	     "40000 53000"},
	    {"src/32,128+dst/32,128+proto+sport+dport+ttl", PACER_FAMILY_6, 136, 0x12345678,
	     NULL}, /* too long */
	    {"dport", PACER_FAMILY_4, 17, 7, "53000"},
	    {"dport", PACER_FAMILY_6, 17, 7, NULL}, /* that of IPv4 has the same text */
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		struct fleet_limit limit = limit_by(rows[i].key);
		struct pacer_packet pkt = packet(rows[i].family, rows[i].proto, rows[i].word);
		struct fleet_picture picture = {.value = {100}};
		char text[FLEET_KEY_TEXT];
		bool is = fleet_key_text(&limit, &pkt, text);
		struct fleet_held held;

		if (is != !!rows[i].text || (is && strcmp(text, rows[i].text) != 0))
			fail_msg("%zu: %s", i, text);
		picture.own[3] = is;
		picture.value[3] = 9;
		memcpy(picture.key[3], text, sizeof(text));
		held = fleet_keys_held(&limit, &picture);
		assert_int_equal(held.lane[2].is, is);
		assert_int_equal(fleet_judged_by(&limit, &held, &pkt), is ? 9 : 100);
		pkt.key[PACER_WORD_SADDR] ^= 1 << 20;
		pkt.key[PACER_WORD_PORTS] ^= 1;
		assert_int_equal(fleet_judged_by(&limit, &held, &pkt), 100);
	}
}

/* Where a packet has no ports, what its text has instead is no key: not that of port 0 either. */
static void a_part_has_no_text(void **unused)
{
	struct fleet_limit limit = limit_by("src+dport");
	struct pacer_packet pkt = packet(PACER_FAMILY_4, 17, 7);
	char text[FLEET_KEY_TEXT];

	(void)unused;
	pkt.key[PACER_WORD_PORTS] = 0;
	assert_true(fleet_key_text(&limit, &pkt, text));
	assert_string_equal(text, "10.0.0.7 0");
	pkt.fragment = PACER_FRAG_LATER; /* its datagram's identification is 0 */
	assert_false(fleet_key_text(&limit, &pkt, text));
	pkt.key[PACER_WORD_META] |= PACER_META_PART;
	assert_false(fleet_key_text(&limit, &pkt, text));
}

/* What is no key of the limit may be any: so none of the rest has more than it. */
static void a_text_that_is_no_key(void **unused)
{
	static const struct {
		const char *text;
		uint64_t value, units; /* of all others */
	} rows[] = {{"somebody", 30, 30}, {"", 30, 30}, {"somebody", 300, 100}};
	struct fleet_limit limit = limit_by("src");
	struct pacer_packet seven = packet(PACER_FAMILY_4, 17, 7),
			    eight = packet(PACER_FAMILY_4, 17, 8);

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		struct fleet_picture picture = {
		    .until_ns = 5, .floor = 4, .value = {100, 90, rows[i].value}};
		struct fleet_held held;

		picture.own[1] = picture.own[2] = true;
		strcpy(picture.key[1], "10.0.0.7");
		strcpy(picture.key[2], rows[i].text);
		held = fleet_keys_held(&limit, &picture);
		assert_false(held.lane[1].is);
		assert_int_equal(held.units, rows[i].units);
		assert_int_equal(held.floor, 4);
		assert_int_equal(held.until_ns, 5);
		assert_int_equal(fleet_judged_by(&limit, &held, &seven), 90);
		assert_int_equal(fleet_judged_by(&limit, &held, &eight), rows[i].units);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_text_is_of_one_key),
	    cmocka_unit_test(a_part_has_no_text),
	    cmocka_unit_test(a_text_that_is_no_key),
	};

	return cmocka_run_group_tests_name("fleet keys", tests, setup, NULL);
}
