/* SPDX-License-Identifier: GPL-2.0-only */
/* The text of a key, whatever the kind of key locks: a kind may come from a damaged table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#include <cmocka.h>

#include "inspect/tally.h"
#include "plan/keymask.h"

static bool no_secret; /* there are no random numbers */

ssize_t __real_getrandom(void *to, size_t n, unsigned int flags);
ssize_t __wrap_getrandom(void *to, size_t n, unsigned int flags);

ssize_t __wrap_getrandom(void *to, size_t n, unsigned int flags)
{
	return no_secret ? -1 : __real_getrandom(to, n, flags);
}

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
	struct policy_key kind = KEY_SRC(len4, len6);
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
	struct policy_key kind = KEY_FLOW;
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
	assert_string_equal(flow_of(PACER_FAMILY_6, PACER_FRAG_NONE, 0), " 0 258 772");
}

/* Only what the key itself has: a key that was read of a table of bans is no packet. */
static const char *proto_of(uint16_t parts, uint8_t family, uint32_t meta)
{
	static char buf[TALLY_TEXT];
	struct policy_key kind = {.parts = parts, .src4 = 32, .src6 = 128};
	struct pacer_packet pkt = {.family = family, .proto = meta & PACER_META_PROTO};

	pkt.key[PACER_WORD_META] = meta;
	return tally_key_text(&kind, &pkt, buf, sizeof(buf));
}

/* No packet of IPv6 has protocol 0. A value is a key of both families. */
static void test_protocols_unknown(void **state)
{
	static const uint16_t proto = KEY_PART_PROTO, src = KEY_PART_SRC | KEY_PART_PROTO,
			      ported = KEY_PART_PROTO | KEY_PART_DPORT,
			      value = KEY_PART_SRC_VALUE | KEY_PART_PROTO;

	(void)state;
	assert_string_equal(proto_of(proto, PACER_FAMILY_6, 0), "?");
	assert_string_equal(proto_of(proto, PACER_FAMILY_4, 0), "0");
	assert_string_equal(proto_of(proto, PACER_FAMILY_6, 17), "udp");
	assert_string_equal(proto_of(src, PACER_FAMILY_6, 0), ":: ?");
	assert_string_equal(proto_of(src, PACER_FAMILY_4, 0), "0.0.0.0 0");
	assert_string_equal(proto_of(ported, PACER_FAMILY_6, PACER_META_PART), "? ?");
	assert_string_equal(proto_of(ported, PACER_FAMILY_4, PACER_META_PART), "0 ?");
	assert_string_equal(strrchr(proto_of(value, PACER_FAMILY_4, 0), ' '), " ?");
}

/* Any parts of a packet: key i. */
static struct policy_key any_key(uint16_t parts, uint32_t i)
{
	static const uint8_t len4[] = {32, 24, 1, 20}, len6[] = {128, 56, 64, 3};
	struct policy_key key = {.parts = parts};

	if (parts & KEY_PART_SRC) {
		key.src4 = len4[i & 3];
		key.src6 = len6[i & 3];
	}
	if (parts & KEY_PART_DST) {
		key.dst4 = len4[i >> 2 & 3];
		key.dst6 = len6[i >> 2 & 3];
	}
	return key;
}

/* Of word k of a packet's key. */
static uint32_t mask_of(const struct pacer_limiter *t, uint8_t family, uint32_t k)
{
	if (family == PACER_FAMILY_6)
		return t->mask6[k];
	return k >= 8 ? t->mask4[k - 6] : k % 4 ? 0 : t->mask4[k / 4];
}

/* A whole packet, a later fragment, or one whose ports are beyond what is read, by turns. */
static void set_ports(struct pacer_packet *pkt, uint32_t i)
{
	bool later = i % 5 == 3, part = i % 5 == 4;

	if (later)
		pkt->fragment = PACER_FRAG_LATER;
	if (part)
		pkt->key[PACER_WORD_PORTS] = 0;
	if (pkt->family == PACER_FAMILY_6 && (later || (part && i & 1))) {
		pkt->proto = 0;
		pkt->ports = PACER_PORTS_ANY;
	}
	pkt->key[PACER_WORD_META] |=
	    (later ? PACER_META_FRAGMENT : 0) | (part ? PACER_META_PART : 0);
}

/* What is written is read again, as the same key; its id says which parts it has. */
static void test_read(void **state)
{
	static const uint8_t protos[] = {17, 6, 1, 58, 132, 47, 255};
	char text[TALLY_TEXT], again[TALLY_TEXT];
	struct pacer_packet read;

	(void)state;
	for (uint32_t i = 0; i < 128 * 16 * 4; i++) {
		struct policy_key key = any_key(i & 127, i >> 7), back;
		struct pacer_packet pkt = packet(i >> 11 & 1 ? PACER_FAMILY_4 : PACER_FAMILY_6);
		struct pacer_limiter t;

		key_masks(&key, &t);
		back = compile_key_of(t.key_id);
		assert_true(policy_key_same(&key, &back));
		pkt.proto = protos[i % 7];
		pkt.vlan = i >> 12 & 1 ? 77 : PACER_VLAN_NONE;
		pkt.key[PACER_WORD_META] = pacer_meta_vlan(pkt.vlan) | i % 256 << PACER_META_TTL_AT;
		set_ports(&pkt, i);
		pkt.key[PACER_WORD_META] |= pkt.proto;
		tally_key_text(&key, &pkt, text, sizeof(text));
		if (!key.parts) {
			assert_int_equal(tally_key_read(&key, text, &read), -1);
			continue;
		}
		assert_int_equal(tally_key_read(&key, text, &read), 0);
		assert_string_equal(tally_key_text(&key, &read, again, sizeof(again)), text);
		if (key.parts & (KEY_PART_SRC | KEY_PART_DST))
			assert_int_equal(read.family, pkt.family);
		for (uint32_t k = 0; k < PACER_KEY_WORDS; k++)
			assert_int_equal(read.key[k] & mask_of(&t, pkt.family, k),
					 pkt.key[k] & mask_of(&t, pkt.family, k));
	}
}

static void test_vlans(void **state)
{
	static const struct policy_key vlan = {
	    .parts = KEY_PART_SRC | KEY_PART_VLAN, .src4 = 32, .src6 = 64};
	static const char *const wrong[] = {
	    "192.0.2.1",	 "192.0.2.1 7",	      "192.0.2.1 vlan",	      "192.0.2.1 vlan 4096",
	    "192.0.2.1 vlan x",	 "192.0.2.1 vlan 7 ", "192.0.2.1 untagged 7", "vlan 7",
	    "192.0.2.1 vlan 7-8"};
	struct pacer_packet read;

	(void)state;
	assert_int_equal(tally_key_read(&vlan, "192.0.2.1 vlan 7", &read), 0);
	assert_int_equal(read.vlan, 7);
	assert_int_equal(tally_key_read(&vlan, "192.0.2.1 untagged", &read), 0);
	assert_int_equal(read.vlan, PACER_VLAN_NONE);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(tally_key_read(&vlan, wrong[i], &read), -1);
}

static void test_ttls(void **state)
{
	static const struct policy_key ttl = {
	    .parts = KEY_PART_SRC | KEY_PART_TTL, .src4 = 32, .src6 = 64};
	static const char *const wrong[] = {
	    "192.0.2.1",	 "192.0.2.1 ",	    "192.0.2.1 ttl",
	    "192.0.2.1 ttl 256", "192.0.2.1 ttl x", "192.0.2.1 ttl 7 ",
	    "192.0.2.1 hops 7",	 "ttl 7",	    "192.0.2.1 ttl 7-8",
	};
	struct pacer_packet read;

	(void)state;
	assert_int_equal(tally_key_read(&ttl, "192.0.2.1 ttl 64", &read), 0);
	assert_int_equal(read.key[PACER_WORD_META] >> PACER_META_TTL_AT & 255, 64);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(tally_key_read(&ttl, wrong[i], &read), -1);
}

/* A value stands for the source: nothing may follow it but what the key has. */
static void test_values(void **state)
{
	static const struct policy_key value = {.parts = KEY_PART_SRC_VALUE},
				       more = {.parts = KEY_PART_SRC_VALUE | KEY_PART_DPORT};
	static const char *const wrong[] = {"value(geo, XY) ",
					    "value(geo, XY) 7",
					    "value(geo)",
					    "value(geo, XY)7",
					    "value(geo, XY)>7",
					    "192.0.2.1",
					    ""};
	struct pacer_packet read;

	(void)state;
	assert_int_equal(tally_key_read(&value, "value(geo, XY)", &read), 0);
	assert_int_equal(tally_key_read(&more, "value(geo, XY) 53", &read), 0);
	assert_int_equal(tally_key_read(&more, "value(geo, XY)", &read), -1);
	assert_int_equal(tally_key_read(&more, "value(geo, XY) ", &read), -1);
	assert_int_equal(tally_key_read(&more, "value(geo, XY)53", &read), -1);
	assert_int_equal(tally_key_read(&more, "value(geo, XY)>53", &read), -1);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(tally_key_read(&value, wrong[i], &read), -1);
}

/* A packet of no family that is known has no addresses, and is of no key that another has. */
static void test_no_family(void **state)
{
	static const struct policy_key src = KEY_SRC(32, 64), all = {.parts = 0};
	const struct pacer_packet pkt = {.family = PACER_FAMILY_NONE};
	const struct pacer_limiter t = {.mask4 = {~0u}};

	(void)state;
	assert_string_equal(text_of(PACER_FAMILY_NONE, 32, 128), "?");
	assert_int_equal(tally_key_of(&t, &src, &pkt).family, UINT8_MAX);
	assert_int_equal(tally_key_of(&t, &all, &pkt).family, PACER_FAMILY_4);
}

static void test_read_wrong(void **state)
{
	static const struct policy_key flow = KEY_FLOW, src = KEY_SRC(24, 56),
				       dport = {.parts = KEY_PART_SRC | KEY_PART_DPORT,
						.src4 = 32,
						.src6 = 128};
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
	    "192.0.2.1>192.0.2.2 udp fragment",
	    "192.0.2.1>192.0.2.2 udp fragment x",
	    "192.0.2.1>192.0.2.2 udp fragment 4294967296",
	    "192.0.2.1>192.0.2.2 udp fragment 7 8",
	    "192.0.2.1>192.0.2.2 udp ?",
	    "192.0.2.1>192.0.2.2 udp ? 2",
	    "192.0.2.1>192.0.2.2 udp 1 ?",
	    "192.0.2.1>192.0.2.2 ? fragment 7",
	    "2001:db8::1>2001:db8::2 ? 1 2",
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
	assert_int_equal(tally_key_read(&dport, "192.0.2.1 fragment 65536", &read), -1);
	assert_int_equal(tally_key_read(&dport, "192.0.2.1 ? ?", &read), -1);
	memset(address, '1', sizeof(address) - 4);
	memcpy(address + sizeof(address) - 4, " 53", 4);
	assert_int_equal(tally_key_read(&dport, address, &read), -1);
}

#define PLACES 1024u

/* All keys that there is room for are found again, and no others. */
static void test_table(void **unused)
{
	struct tally_key key = {.family = PACER_FAMILY_4, .limit = 3, .rule = 2};
	struct tally t, other;

	(void)unused;
	assert_int_equal(tally_open(&t, PLACES, sizeof(uint32_t)), 0);
	assert_int_equal(tally_room(&t), PLACES / 8 * 7);
	for (uint32_t i = 0; i < tally_room(&t); i++) {
		uint32_t *note;

		key.word[0] = i << 20 | i >> 12;
		assert_null(tally_find(&t, &key));
		note = tally_put(&t, &key);
		assert_non_null(note);
		*note = i;
		assert_ptr_equal(tally_put(&t, &key), note);
	}
	for (uint32_t i = 0; i < tally_room(&t); i++) {
		key.word[0] = i << 20 | i >> 12;
		key.limit = 3;
		assert_int_equal(*(uint32_t *)tally_find(&t, &key), i);
		key.limit = 4;
		assert_null(tally_find(&t, &key));
	}
	assert_int_equal(t.n, tally_room(&t));
	assert_null(tally_put(&t, &key));
	assert_int_equal(t.lost, 1);
	assert_int_equal(tally_open(&other, PLACES, 1), 0);
	assert_memory_not_equal(&other.keyed, &t.keyed, sizeof(t.keyed));
	tally_close(&other);
	tally_close(&t);
	no_secret = true;
	assert_int_equal(tally_open(&t, PLACES, 1), -1);
	no_secret = false;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_prefix_lengths), cmocka_unit_test(test_prefix_lengths_too_long),
	    cmocka_unit_test(test_fragments),	   cmocka_unit_test(test_protocols_unknown),
	    cmocka_unit_test(test_read),	   cmocka_unit_test(test_vlans),
	    cmocka_unit_test(test_ttls),	   cmocka_unit_test(test_values),
	    cmocka_unit_test(test_no_family),	   cmocka_unit_test(test_read_wrong),
	    cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
