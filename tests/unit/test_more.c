/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What more matches ask for, against a matcher that asks one rule after the other what the maker of
 * a frame knows of it. The two share neither the parser nor the tables.
 */
#include <stdbool.h>
#include <stdio.h>

#include "oracle.h"

#include "path.h"
#include "padded.h"
#include "plan/compile.h"

#define RULES	 12
#define TEXT_MAX 40000
#define UNKNOWN	 (-2)
#define ABSENT	 (-1)

/* What the maker of a frame knows; ABSENT or UNKNOWN in the place of numbers. */
struct known {
	int family;
	long proto, flags, type4, code4, type6, code6, ttl, dscp, fragment, options;
	long len, payload_len, ether_type;
	uint64_t src, dst;
	uint8_t payload[64]; /* its first bytes, */
	long n_payload;	     /* how many of them are known; UNKNOWN: not where they begin */
};

static uint8_t frame[2000];
static uint32_t n_frame, cut; /* bytes, and how many of them are there to be read */
static struct known facts;

static void put(uint64_t value, int bytes)
{
	while (bytes--)
		frame[n_frame++] = bytes < 8 ? (uint8_t)(value >> 8 * bytes) : 0;
}

/* ---- frames ---- */

static const uint8_t protos[] = {6, 6, 6, 17, 17, 1, 58, 132, 47};
static const uint64_t macs[] = {0x020000000001, 0x020000aabbcc, 0x00005e0001ff, 0xffffffffffff};

/*
 * A length for UDP's header before so many bytes, of which so many are its own by it: one that is
 * too small for the header, or larger than what there is, says nothing. Of a first fragment it is
 * that of the whole, which others go on with.
 */
static uint32_t udp_length(long bytes, long *own)
{
	long more = draw() % 65000;

	switch (draw() % 4) {
	case 0:
		*own = draw() % (bytes + 1);
		break;
	case 1:
		return draw() % 8;
	case 2:
		if (facts.fragment == 1)
			*own = bytes + 1 + more;
		return (uint32_t)(8 + bytes + 1 + more);
	default:
		*own = bytes;
	}
	return (uint32_t)(8 + *own);
}

/*
 * Of a first fragment, whose last bytes may be missing: of what begins there a stack has a multiple
 * of 8 bytes.
 */
static void first_l4(uint32_t from, uint32_t header)
{
	uint32_t have;

	if (draw() % 2 == 0 && n_frame - from > 8)
		n_frame = from + 8 + draw() % (n_frame - from - 7);
	have = (n_frame - from) & ~7u;
	facts.n_payload = have > header ? (long)(have - header) : 0;
	if (facts.proto == 6 && have < 13) {
		facts.flags = UNKNOWN;
		facts.n_payload = UNKNOWN;
	}
	if (facts.proto == 6 && have < 14)
		facts.flags = UNKNOWN;
	if (have >= 8)
		return;
	facts.payload_len = UNKNOWN;
	if (facts.proto == 1 && facts.family == 4)
		facts.type4 = facts.code4 = UNKNOWN;
	if (facts.proto == 58 && facts.family == 6)
		facts.type6 = facts.code6 = UNKNOWN;
}

/* The header behind those of IP, and the payload, of so many bytes. */
static void put_l4(uint32_t bytes, bool known)
{
	uint32_t from = n_frame, flags = draw() & 0xff,
		 type = draw() % 3 ? draw() % 16 : draw() & 0xff;
	uint32_t code = draw() % 4, words = 5 + draw() % 3, header = 0, i;
	long own = facts.fragment == 1 ? UNKNOWN : (long)bytes;
	bool icmp4 = facts.family == 4 && facts.proto == 1;
	bool icmp6 = facts.family == 6 && facts.proto == 58;

	type += icmp6 && draw() & 1 ? 128 : 0;
	type &= 0xff;
	if (facts.proto == 6 || facts.proto == 17 || facts.proto == 132)
		put((uint64_t)between(1, 4) << 16 | between(1, 4), 4);
	if (facts.proto == 6) {
		put(draw(), 8);
		put(words << 4, 1);
		put(flags, 1);
		put(0, 6);
		put(0, (int)(4 * (words - 5)));
		header = 4 * words;
	} else if (facts.proto == 17) {
		put((uint64_t)udp_length(bytes, &own) << 16, 4);
		header = 8;
	} else if (facts.proto == 132) {
		put(0, 8);
		header = 12;
	} else if (facts.proto == 1 || facts.proto == 58) {
		put(type << 8 | code, 2);
		put(0, 6);
		header = 8;
	}
	for (i = 0; i < bytes; i++) {
		facts.payload[i] = draw() % 3;
		put(facts.payload[i], 1);
	}
	facts.flags = facts.proto == 6 ? known ? (long)flags : UNKNOWN : ABSENT;
	facts.type4 = icmp4 ? known ? (long)type : UNKNOWN : ABSENT;
	facts.code4 = icmp4 ? known ? (long)code : UNKNOWN : ABSENT;
	facts.type6 = icmp6 ? known ? (long)type : UNKNOWN : ABSENT;
	facts.code6 = icmp6 ? known ? (long)code : UNKNOWN : ABSENT;
	facts.n_payload = known ? (long)bytes : UNKNOWN;
	facts.payload_len = known ? own : UNKNOWN;
	assert_int_equal(n_frame - from, header + bytes);
	if (facts.fragment == 1)
		first_l4(from, header);
}

static void set_total(uint32_t at, uint32_t total)
{
	frame[at] = total >> 8;
	frame[at + 1] = total;
}

static void put_ip4(void)
{
	uint32_t options = draw() % 4 ? 0 : between(1, 10), l3 = n_frame;

	facts.ttl = draw() % 8 ? 64 : draw() & 0xff;
	facts.dscp = draw() % 64;
	facts.fragment = draw() % 3 ? 0 : between(1, 2);
	facts.options = options > 0;
	put(0x45 + options, 1);
	put(facts.dscp << 2 | (draw() & 3), 1);
	put(0, 4);
	put(facts.fragment == 1 ? 0x2000
	    : facts.fragment	? 0x2000 | between(1, 99)
				: draw() & 0x4000,
	    2);
	put(facts.ttl, 1);
	put(facts.proto, 1);
	put(0, 2);
	put(0x0a000001, 4);
	put(0x0a000002, 4);
	while (options--)
		put(0x01010101, 4);
	put_l4(draw() % 40, facts.fragment != 2);
	set_total(l3 + 2, n_frame - l3);
}

/* What follows a later fragment of IPv6 is not known, not even its protocol. */
static void put_ip6(void)
{
	uint32_t l3 = n_frame, next = l3 + 6;
	bool options = draw() % 3 == 0, fragment;

	facts.ttl = draw() % 8 ? 64 : draw() & 0xff;
	facts.dscp = draw() % 64;
	facts.fragment = draw() % 3 ? 0 : between(1, 2);
	facts.options = options;
	fragment = facts.fragment || draw() % 8 == 0; /* of a whole datagram, too */
	put(0x60000000 | (uint64_t)facts.dscp << 22 | (draw() & 0x3fffff), 4);
	put(0, 2);
	put(facts.proto, 1);
	put(facts.ttl, 1);
	for (int i = 0; i < 8; i++)
		put(0x20010db8, 4);
	if (options) {
		frame[next] = draw() & 1 ? 0 : 60;
		next = n_frame;
		put(facts.proto, 1);
		put(0x00010400000000, 7);
	}
	if (fragment) {
		frame[next] = 44;
		put(facts.proto, 1);
		put(0, 1);
		put(facts.fragment == 1 ? 1 : facts.fragment ? 8 * between(1, 99) : 0, 2);
		put(7, 4);
	}
	put_l4(draw() % 40, facts.fragment != 2);
	set_total(l3 + 4, n_frame - l3 - 40);
	if (facts.fragment == 2)
		facts.proto = facts.flags = facts.type6 = facts.code6 = UNKNOWN;
}

static void random_frame(void)
{
	n_frame = 0;
	facts = (struct known){.family = draw() % 10 ? draw() & 1 ? 4 : 6 : 0,
			       .proto = protos[draw() % ARRAY(protos)],
			       .src = macs[draw() % ARRAY(macs)],
			       .dst = macs[draw() % ARRAY(macs)]};
	put(facts.dst, 6);
	put(facts.src, 6);
	if (draw() % 4 == 0)
		put(0x81000007, 4);
	facts.ether_type = facts.family == 4 ? 0x0800
			   : facts.family    ? 0x86dd
			   : draw() & 1	     ? 0x0806
					     : 0x88cc;
	put(facts.ether_type, 2);
	if (facts.family == 4)
		put_ip4();
	else if (facts.family)
		put_ip6();
	else
		put(0, 28);
	if (draw() & 1) /* padding is no payload */
		put(0x0101010101010101, 8);
	facts.len = n_frame;
	cut = n_frame;
}

/* ---- matches ---- */

/* A field of a match as text, and whether a frame falls under it: 1, 0 or UNKNOWN. */
struct ask {
	char text[96];
	long low, high, value, mask, at, n;
	uint64_t mac;
	int bits;
};

struct rule {
	bool pass;
	int n;
	int field[3];
	struct ask ask[3];
};

enum {
	FLAGS,
	TYPE4,
	CODE4,
	TYPE6,
	CODE6,
	TTL,
	DSCP,
	FRAGMENT,
	OPTIONS,
	LEN,
	PAYLOAD_LEN,
	ETHER_TYPE,
	SRC,
	DST,
	PAYLOAD,
	PROTO,
	FIELDS
};

static const char *const names[FIELDS] = {"flags",	 "icmp_type", "icmp_code",   "icmpv6_type",
					  "icmpv6_code", "ttl",	      "dscp",	     "fragment",
					  "options",	 "len",	      "payload_len", "ether_type",
					  "ether_src",	 "ether_dst", "payload",     "proto"};

static void random_range(struct ask *a, long most)
{
	a->low = (long)(draw() % (unsigned int)most);
	a->high = draw() & 1 ? a->low : a->low + (long)(draw() % (unsigned int)(most - a->low));
	snprintf(a->text, sizeof(a->text), "%ld-%ld", a->low, a->high);
}

static void flags_text(char *text, size_t size, long flags)
{
	static const char *const flag[] = {"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"};
	size_t n = 0;

	snprintf(text, size, "none");
	for (int i = 0; i < 8; i++)
		if (flags >> i & 1)
			n += (size_t)snprintf(text + n, size - n, "%s%s", n ? "," : "", flag[i]);
}

static void random_ask(int field, struct ask *a)
{
	static const char *const fragments[] = {"none", "first", "later"};
	char value[32], mask[40];

	switch (field) {
	case FLAGS:
		a->mask = (long)(1 + draw() % 255);
		a->value = (long)draw() & a->mask & (draw() & 1 ? 0xff : 0x12);
		flags_text(value, sizeof(value), a->value);
		flags_text(mask, sizeof(mask), a->mask);
		snprintf(a->text, sizeof(a->text), "\"%s / %s\"", value, mask);
		return;
	case TYPE4:
	case TYPE6:
		random_range(a, draw() & 1 ? 16 : 256);
		return;
	case CODE4:
	case CODE6:
		random_range(a, 4);
		return;
	case TTL:
		random_range(a, 256);
		return;
	case DSCP:
		random_range(a, 64);
		return;
	case FRAGMENT:
		a->low = a->high = (long)(draw() % 3);
		snprintf(a->text, sizeof(a->text), "%s", fragments[a->low]);
		return;
	case OPTIONS:
		a->low = a->high = (long)(draw() & 1);
		snprintf(a->text, sizeof(a->text), "%s", a->low ? "yes" : "no");
		return;
	case LEN:
		random_range(a, 150);
		return;
	case PAYLOAD_LEN:
		random_range(a, 40);
		return;
	case ETHER_TYPE:
		a->low = draw() % 4 == 0 ? 0x0800 : draw() & 1 ? 0x0806 : 0x0600;
		a->high = a->low == 0x0600 ? (draw() & 1 ? 0xffff : 0x0806) : a->low;
		snprintf(a->text, sizeof(a->text), "%ld-%ld", a->low, a->high);
		return;
	case SRC:
	case DST:
		a->bits = (int)(8 * between(1, 6));
		a->mac = macs[draw() % ARRAY(macs)] >> (48 - a->bits) << (48 - a->bits);
		for (int i = 0; i < a->bits / 8; i++)
			snprintf(a->text + 3 * i, sizeof(a->text) - 3 * (size_t)i,
				 "%02x:", (unsigned int)(a->mac >> (40 - 8 * i) & 0xff));
		snprintf(value, sizeof(value), "%.*s", 3 * a->bits / 8 - 1, a->text);
		snprintf(a->text, sizeof(a->text), "\"%s\"", value);
		return;
	case PAYLOAD:
		a->n = (long)between(1, 4);
		a->at = (long)(draw() % 3);
		a->mask = a->n == 4 ? 0xffffffff : (1l << 8 * a->n) - 1;
		a->mask &= draw() & 1 ? 0xffffffff : 0x01010101;
		a->value = (long)(draw() & draw() & 0x01010101) & a->mask;
		snprintf(a->text, sizeof(a->text), "%ld=0x%0*lx/0x%0*lx", a->at, (int)(2 * a->n),
			 a->value, (int)(2 * a->n), a->mask);
		return;
	case PROTO:
		a->low = a->high = protos[draw() % ARRAY(protos)];
		snprintf(a->text, sizeof(a->text), "%ld", a->low);
	}
}

static long value_of(int field)
{
	const long values[] = {[FLAGS] = facts.flags,
			       [TYPE4] = facts.type4,
			       [CODE4] = facts.code4,
			       [TYPE6] = facts.type6,
			       [CODE6] = facts.code6,
			       [TTL] = facts.ttl,
			       [DSCP] = facts.dscp,
			       [FRAGMENT] = facts.fragment,
			       [OPTIONS] = facts.options,
			       [LEN] = facts.len,
			       [PAYLOAD_LEN] = facts.payload_len,
			       [ETHER_TYPE] = facts.ether_type,
			       [PROTO] = facts.proto};

	return values[field];
}

static int falls_under(int field, const struct ask *a)
{
	uint64_t mac = field == SRC ? facts.src : facts.dst;
	long value = 0;

	if (field == SRC || field == DST)
		return mac >> (48 - a->bits) == a->mac >> (48 - a->bits);
	if (field == PAYLOAD) {
		if (facts.payload_len != UNKNOWN && a->at + a->n > facts.payload_len)
			return 0;
		if (facts.n_payload == UNKNOWN || a->at + a->n > facts.n_payload)
			return UNKNOWN;
		for (long i = 0; i < a->n; i++)
			value = value << 8 | facts.payload[a->at + i];
		return (value & a->mask) == a->value;
	}
	value = value_of(field);
	if (value == UNKNOWN || value == ABSENT)
		return value == UNKNOWN ? UNKNOWN : 0;
	if (field == FLAGS)
		return (value & a->mask) == a->value;
	return a->low <= value && value <= a->high;
}

static bool asks_for(const struct rule *r, int field)
{
	for (int i = 0; i < r->n; i++)
		if (r->field[i] == field)
			return true;
	return false;
}

/* Of what is not IP, only rules that name its EtherType, and nothing of IP. */
static bool rule_takes(const struct rule *r)
{
	for (int i = 0; i < r->n; i++) {
		int under = falls_under(r->field[i], &r->ask[i]);

		if (!facts.family && r->field[i] != LEN && r->field[i] != ETHER_TYPE &&
		    r->field[i] != SRC && r->field[i] != DST)
			return false;
		if (!under || (under == UNKNOWN && r->pass))
			return false;
	}
	return facts.family || asks_for(r, ETHER_TYPE);
}

static void random_rule(struct rule *r)
{
	r->pass = draw() % 3 == 0;
	r->n = (int)(draw() % 4);
	for (int i = 0; i < r->n; i++) {
		do {
			r->field[i] = (int)(draw() % FIELDS);
			for (int k = 0; k < i; k++)
				if (r->field[k] == r->field[i])
					r->field[i] = FIELDS;
		} while (r->field[i] == FIELDS);
		random_ask(r->field[i], &r->ask[i]);
	}
}

/* Every other one has a limit: one that only counts passes all, too. */
static size_t rule_text(const struct rule *r, uint32_t number, char *text, size_t size)
{
	size_t n = (size_t)snprintf(
	    text, size, "- {name: r%u, %s%s", number,
	    number % 2 ? "limits: [{key: all, packets: 1, window: 1s}], over: " : "verdict: ",
	    r->pass ? "pass" : "drop");

	for (int i = 0; i < r->n; i++)
		n += (size_t)snprintf(text + n, size - n, "%s%s: %s%s", i ? ", " : ", match: {",
				      names[r->field[i]], r->ask[i].text, i + 1 == r->n ? "}" : "");
	return n + (size_t)snprintf(text + n, size - n, "}\n");
}

/* ---- together ---- */

static struct rule rules[RULES];
static struct pacer_policy bin;
static char text[TEXT_MAX];

/* Rules that no packet can match are refused: another is drawn in their place. */
static void random_policy(uint32_t n_rules, uint32_t pads)
{
	static struct plan plan;
	struct compile_host host = {0, 1, 1};
	struct policy_error error;
	struct policy *policy;
	size_t n = (size_t)snprintf(text, sizeof(text), "rules:\n");

	for (uint32_t i = 0; i < n_rules; i++) {
		char one[600] = "rules:\n";

		do {
			random_rule(&rules[i]);
			rule_text(&rules[i], i, one + 7, sizeof(one) - 7);
			policy = policy_parse(one, strlen(one), &error);
			if (!policy && !strstr(error.text, "no packet can match"))
				fail_msg("%s: %s", one, error.text);
		} while (!policy);
		policy_free(policy);
		n += rule_text(&rules[i], i, text + n, sizeof(text) - n);
	}
	policy = policy_parse(padded(text, pads), strlen(padded(text, pads)), &error);
	if (!policy || compile_policy(policy, NULL, &host, &bin, &plan, &error))
		fail_msg("%s\n%s", text, error.text);
	policy_free(policy);
}

static uint32_t rule_of(uint32_t *reason)
{
	struct pacer_state state = {.policy = &bin};
	struct pacer_walk walk = {.state = &state};
	struct pacer_frame f = {frame, frame + cut, n_frame, 1};

	*reason = pacer_path_begin(&f, &walk, &bin);
	*reason = pacer_path_rule(&f, &walk, *reason);
	if (bin.dims & PACER_DIMS_MORE)
		walk.rule = walk.pkt.found;
	return walk.rule;
}

static void test_random(void **unused)
{
	uint32_t seen[RULES + 1] = {0}, pass = 0, many = 0, i, k, reason;

	(void)unused;
	oracle_seed(79);
	for (i = 0; i < 2000; i++) {
		uint32_t n = between(1, RULES), want, got, pads = i % 20 ? 0 : between(20, 240 / n);

		random_policy(n, pads);
		for (k = 0; k < 60; k++) {
			random_frame();
			for (want = 0; want < n && !rule_takes(&rules[want]); want++)
				;
			got = unpadded(rule_of(&reason), pads, PACER_RULES_MAX);
			if (got != (want < n ? want : PACER_RULES_MAX))
				fail_msg("family %d, proto %ld, fragment %ld: rule %u, not %u; "
					 "under\n%s",
					 facts.family, facts.proto, facts.fragment, got, want,
					 text);
			seen[want < n ? want : RULES]++;
			pass += want < n && rules[want].pass;
			many += want < n && want > 3 && pads;
		}
	}
	assert_true(many > 100);
	for (i = 0; i < RULES; i++)
		if (seen[i] < 10)
			fail_msg("rule %u: %u times", i, seen[i]);
	assert_true(pass > 1000);
}

/*
 * The buffer ends before the frame does, at every byte: what is cut off is not known. A rule that
 * does not pass takes what it may be about; one that passes takes only what it is about for sure.
 */
static void test_cut(void **unused)
{
	uint32_t told = 0, fewer = 0, want, reason;

	(void)unused;
	oracle_seed(78);
	for (uint32_t i = 0; i < 300; i++) {
		uint32_t n = between(1, RULES), pads = i % 20 ? 0 : between(20, 240 / n);

		random_policy(n, pads);
		for (uint32_t k = 0; k < 6; k++) {
			random_frame();
			for (want = 0; want < n && !rule_takes(&rules[want]); want++)
				;
			for (cut = 14; cut < n_frame; cut++) {
				uint32_t got = unpadded(rule_of(&reason), pads, PACER_RULES_MAX);

				if (!pacer_outcome_undecided(reason) && reason != PACER_NOT_IP)
					continue; /* not even its addresses are there: it is denied
						   */
				if (want < n && !rules[want].pass && got > want)
					fail_msg("%u of %u bytes: rule %u, not %u; under\n%s", cut,
						 n_frame, got, want, text);
				if (got < n && rules[got].pass && !rule_takes(&rules[got]))
					fail_msg("%u of %u bytes: rule %u passes it; under\n%s",
						 cut, n_frame, got, text);
				told++;
				fewer += got != want && want < n;
			}
		}
	}
	assert_true(told > 10000);
	assert_true(fewer > 100);
}

/* UDP's length counts where it says less than IP's and can be one; of UDP-Lite it is another. */
static void test_udp_length(void **unused)
{
	static const struct {
		uint32_t proto, len, payload_len;
	} rows[] = {
	    {17, 16, 8}, {17, 8, 0}, {17, 9, 1},  {17, 15, 7}, {17, 17, 8}, {17, 0xffff, 8},
	    {17, 7, 8},	 {17, 0, 8}, {47, 8, 16}, {132, 8, 4}, {136, 8, 8},
	};
	struct pacer_walk walk = {
	    .pkt = {.family = PACER_FAMILY_4, .l3 = 14, .l4 = 34, .len_bytes = 60}};
	struct pacer_frame f = {frame, frame + 60, 60, 1};
	struct pacer_parts parts;

	(void)unused;
	memset(frame, 0, sizeof(frame));
	set_total(16, 36);
	for (size_t i = 0; i < ARRAY(rows); i++) {
		walk.pkt.proto = (uint8_t)rows[i].proto;
		walk.pkt.fragment = PACER_FRAG_NONE;
		set_total(38, rows[i].len);
		pacer_more_parts(&f, &walk, &parts);
		assert_int_equal(parts.end - parts.payload, rows[i].payload_len);
		walk.pkt.fragment = PACER_FRAG_LATER; /* it has none */
		pacer_more_parts(&f, &walk, &parts);
		assert_int_equal(parts.payload, PACER_NOWHERE);
		assert_int_equal(parts.end, 50);
		walk.pkt.fragment = PACER_FRAG_FIRST; /* as long as UDP says; nobody else does */
		pacer_more_parts(&f, &walk, &parts);
		assert_int_equal(parts.here, 50);
		assert_int_equal(parts.end, rows[i].proto == 17 && rows[i].len >= 8
						? 34 + rows[i].len
						: PACER_NOWHERE);
	}
	walk.pkt.proto = 17;
	walk.pkt.fragment = PACER_FRAG_NONE;
	set_total(38, 8);
	f.end = frame + 39; /* it is not there, and may be any */
	pacer_more_parts(&f, &walk, &parts);
	assert_int_equal(parts.payload, PACER_NOWHERE);
	set_total(16, 28); /* but then there is no payload */
	pacer_more_parts(&f, &walk, &parts);
	assert_int_equal(parts.payload, parts.end);
	f.end = frame + 60;
	walk.pkt.fragment =
	    PACER_FRAG_FIRST; /* 7 bytes of UDP's header: its length is not all there */
	set_total(16, 27);
	pacer_more_parts(&f, &walk, &parts);
	assert_int_equal(parts.end, PACER_NOWHERE);
	assert_true(parts.payload > parts.here);
	walk.pkt.proto = 6; /* 12 bytes of TCP's: where it ends is not; 16: it is */
	set_total(16, 32);
	pacer_more_parts(&f, &walk, &parts);
	assert_int_equal(parts.payload, PACER_NOWHERE);
	set_total(16, 35); /* 15, of which a stack takes 8 */
	pacer_more_parts(&f, &walk, &parts);
	assert_int_equal(parts.here, 42);
	assert_int_equal(parts.payload, PACER_NOWHERE);
	assert_int_equal(pacer_more_l4(&f, &walk, 0, 6, 8), PACER_MORE_UNKNOWN);
	assert_int_equal(pacer_more_l4(&f, &walk, 0, 6, 7), 0);
	set_total(16, 36);
	pacer_more_parts(&f, &walk, &parts);
	assert_int_equal(parts.payload, 54);
	assert_int_equal(parts.end, PACER_NOWHERE);
}

/* A device without Ethernet headers has no such address: no rule takes the packet by one. */
static void test_no_card(void **unused)
{
	struct pacer_state state = {.policy = &bin};
	struct pacer_walk walk = {.state = &state, .pkt = {.family = PACER_FAMILY_4}};
	struct pacer_frame f = {frame, frame + sizeof(frame), sizeof(frame), 1};

	(void)unused;
	assert_int_equal(pacer_more_mac(&f, &walk, 0, 0), PACER_MORE_ABSENT);
	walk.pkt.l3 = 14;
	assert_int_not_equal(pacer_more_mac(&f, &walk, 0, 0), PACER_MORE_ABSENT);
}

/*
 * A first fragment of IPv6 may end before a header that it names: that is one of options, or
 * nobody knows what the next fragment has.
 */
static void test_first_fragment_ends(void **unused)
{
	static const struct {
		const char *what;
		uint8_t next, n;
		uint64_t first; /* of the header: so many bytes of it are there */
		uint32_t shape;
	} rows[] = {
	    {"hop-by-hop, not there", 0, 0, 0, PACER_FRAG_FIRST | 1 << PACER_SHAPE_OPTIONS},
	    {"routing, not there", 43, 0, 0, PACER_FRAG_FIRST | 1 << PACER_SHAPE_OPTIONS},
	    {"destination, not there", 60, 0, 0, PACER_FRAG_FIRST | 1 << PACER_SHAPE_OPTIONS},
	    {"destination, its 7 bytes", 60, 7, 0x11000104000000,
	     PACER_FRAG_FIRST | 1 << PACER_SHAPE_OPTIONS},
	    {"destination, 8 of 16", 60, 8, 0x1101010400000000,
	     PACER_FRAG_FIRST | 1 << PACER_SHAPE_OPTIONS},
	    {"authentication, not there", 51, 0, 0, PACER_MORE_UNKNOWN},
	    {"authentication, 8 of 12", 51, 8, 0x1101000000000007, PACER_MORE_UNKNOWN},
	    {"another fragment, not there", 44, 0, 0, PACER_MORE_UNKNOWN},
	    {"UDP, not there", 17, 0, 0, PACER_FRAG_FIRST},
	};
	struct pacer_packet pkt;

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		memset(frame, 0, sizeof(frame));
		n_frame = 12;
		put(0x86dd60000000, 6);
		put(8 + rows[i].n, 2);
		put(44 << 8 | 64, 2);
		put(0, 32);
		put((uint64_t)rows[i].next << 56 | 1ull << 32 | 7, 8);
		put(rows[i].first, rows[i].n);
		assert_int_equal(pacer_parse(frame, frame + n_frame, n_frame, &pkt), PACER_PARSED);
		if (pacer_more_shape(&pkt) != rows[i].shape)
			fail_msg("%s: shape %u", rows[i].what, pacer_more_shape(&pkt));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_random), cmocka_unit_test(test_cut),
	    cmocka_unit_test(test_udp_length), cmocka_unit_test(test_no_card),
	    cmocka_unit_test(test_first_fragment_ends)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
