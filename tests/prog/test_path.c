/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The object as it is built, one packet at a time: its verdict, its bytes, and exactly the counter
 * that it moves; and that a packet which is not admitted moves nothing else.
 */
#include "plan/keymask.h"
#include "prog.h"

#include "lock.h"
#include "pacer.skel.h"

static struct prog prog;

#define PASS 0 /* counter of packets under no rule */

static const char *const reason_names[] = {
#define NAME(name, verdict, id, text) #name,
    PACER_REASONS(NAME)
#undef NAME
};

/* Packets that are not IPv4 or IPv6 of the sources below, and those, in one order of counters. */
static const struct recipe udp4 = {.family = 4,
				   .proto = 17,
				   .saddr = {0xc0000201},
				   .daddr = {0xc6336402},
				   .sport = 0x1234,
				   .dport = 53,
				   .id = 0xbeef,
				   .payload = 26};
static const struct recipe udp6 = {.family = 6,
				   .proto = 17,
				   .saddr = {0x20010db8, 1, 2, 3},
				   .daddr = {0x20010db8, 0xff, 0, 9},
				   .sport = 0x1234,
				   .dport = 53,
				   .id = 0xdecade01,
				   .payload = 26};

static void judged_bytes(const char *what, const uint8_t *b, uint32_t n, uint32_t verdict,
			 uint32_t counter, enum pacer_reason reason)
{
	struct prog_judged judged = prog_judged(&prog, b, n);

	if (judged.verdict != verdict || judged.counter != counter ||
	    pacer_outcome_reason(judged.outcome) != reason)
		fail_msg("%s, %u bytes: verdict %u, counter %u, %s; not %u, %u, %s", what, n,
			 judged.verdict, judged.counter,
			 reason_names[pacer_outcome_reason(judged.outcome)], verdict, counter,
			 reason_names[reason]);
}

static void judged(const char *what, const struct recipe *r, uint32_t verdict, uint32_t counter,
		   enum pacer_reason reason)
{
	static struct frame f;

	frame_build(&f, r);
	judged_bytes(what, f.b, f.n, verdict, counter, reason);
}

/* The same of a packet under rule 1, and what happened to it beside. */
static void expect_event(const char *what, const struct recipe *r, uint32_t verdict,
			 enum pacer_reason reason, uint32_t event)
{
	static struct frame f;
	struct prog_judged judged;

	frame_build(&f, r);
	judged = prog_judged(&prog, f.b, f.n);
	if (judged.verdict != verdict || judged.counter != 1 ||
	    pacer_outcome_reason(judged.outcome) != reason ||
	    pacer_outcome_event(judged.outcome) != event)
		fail_msg("%s: verdict %u, counter %u, %s, event %u; not %u, 1, %s, %u", what,
			 judged.verdict, judged.counter,
			 reason_names[pacer_outcome_reason(judged.outcome)],
			 pacer_outcome_event(judged.outcome), verdict, reason_names[reason], event);
}

/* ---- what is read of a packet: a rule for each protocol, port, VLAN and address ---- */

#define LIMIT		  "    limits: [{key: src, packets: 1M, window: 1h}]\n"
#define RULE(name, match) "  - name: " name "\n    match: {" match "}\n" LIMIT
#define HOSTS4		  "src: 192.0.2.1, dst: 198.51.100.2"
#define HOSTS6		  "src: \"2001:db8:0:1:0:2:0:3\", dst: \"2001:db8:0:ff::9\""
#define PORTS		  "sport: 4660, dport: 53"

static const char *const fields =
    "clock: exact\nunparsed: drop\nrules:\n" RULE("udp4", HOSTS4 ", proto: udp, vlan: none, " PORTS)
	RULE("tcp4", HOSTS4 ", proto: tcp, vlan: none, " PORTS)
	    RULE("sctp4", HOSTS4 ", proto: sctp, vlan: none, " PORTS)
		RULE("vlan4", HOSTS4 ", proto: udp, vlan: 100, " PORTS)
		    RULE("icmp4", HOSTS4 ", proto: icmp, vlan: none")
			RULE("esp4", HOSTS4 ", proto: esp, vlan: none")
			    RULE("udp6", HOSTS6 ", proto: udp, vlan: none, " PORTS)
				RULE("tcp6", HOSTS6 ", proto: tcp, vlan: none, " PORTS)
				    RULE("vlan6", HOSTS6 ", proto: udp, vlan: 100, " PORTS)
					RULE("icmp6", HOSTS6 ", proto: icmpv6, vlan: none")
					    RULE("esp6", HOSTS6 ", proto: esp, vlan: none")
						RULE("sctp6",
						     HOSTS6 ", proto: sctp, vlan: none, " PORTS);

enum { NONE, UDP4, TCP4, SCTP4, VLAN4, ICMP4, ESP4, UDP6, TCP6, VLAN6, ICMP6, ESP6, SCTP6 };

#define Q      0x8100
#define AD     0x88a8
#define TAGS16 AD, Q, Q, Q, Q, Q, Q, Q, Q, Q, Q, Q, Q, Q, Q, Q

/* One line a way through the parser: what differs from udp4 or udp6, the counter, the reason. */
static const struct {
	const char *what;
	uint16_t tag[FRAME_TAGS];
	uint8_t priority, family, options, proto, n_ext, ext[FRAME_EXTS], ext_len;
	uint16_t frag, type;
	uint32_t counter;
	enum pacer_reason reason;
} ways[] = {
    {"udp4", .family = 4, .proto = 17, .counter = UDP4},
    {"tcp4", .family = 4, .proto = 6, .counter = TCP4},
    {"sctp4", .family = 4, .proto = 132, .counter = SCTP4},
    {"icmp4", .family = 4, .proto = 1, .counter = ICMP4},
    {"esp4", .family = 4, .proto = 50, .counter = ESP4},
    {"gre4", .family = 4, .proto = 47, .counter = NONE, .reason = PACER_NO_RULE},
    {"802.1Q", {Q}, .family = 4, .proto = 17, .counter = VLAN4},
    {"802.1ad", {AD}, .family = 4, .proto = 17, .counter = VLAN4},
    {"QinQ", {AD, Q}, .family = 4, .proto = 17, .counter = VLAN4},
    {"802.1Q twice", {Q, Q}, .family = 4, .proto = 17, .counter = VLAN4},
    {"3 tags", {AD, Q, Q}, .family = 4, .proto = 17, .counter = VLAN4},
    {"3 tags", {Q, Q, Q}, .family = 6, .proto = 17, .counter = VLAN6},
    {"a priority tag", {Q}, .priority = 1, .family = 4, .proto = 17, .counter = UDP4},
    {"3 priority tags", {AD, Q, Q}, .priority = 3, .family = 6, .proto = 17, .counter = UDP6},
    {"a VLAN in a priority tag", {Q, Q}, .priority = 1, .family = 4, .proto = 17, .counter = VLAN4},
    {"16 tags", {TAGS16}, .priority = 15, .family = 6, .proto = 17, .counter = VLAN6},
    {"17 tags", {TAGS16, Q}, .family = 4, .proto = 17, .reason = PACER_TOO_DEEP},
    {"17 tags", {TAGS16, Q}, .priority = 17, .family = 6, .proto = 17, .reason = PACER_TOO_DEEP},
    {"4 bytes of options", .family = 4, .options = 1, .proto = 17, .counter = UDP4},
    {"40 bytes of options", .family = 4, .options = 10, .proto = 17, .counter = UDP4},
    {"don't fragment", .family = 4, .proto = 17, .frag = 0x4000, .counter = UDP4},
    {"first fragment", .family = 4, .proto = 17, .frag = 0x2000, .counter = UDP4},
    {"middle fragment", .family = 4, .proto = 17, .frag = 0x2010, .counter = UDP4},
    {"last fragment", .family = 4, .proto = 17, .frag = 0x0010, .counter = UDP4},
    {"last fragment", .family = 4, .proto = 1, .frag = 0x0010, .counter = ICMP4},
    {"udp6", .family = 6, .proto = 17, .counter = UDP6},
    {"tcp6", .family = 6, .proto = 6, .counter = TCP6},
    {"sctp6", .family = 6, .proto = 132, .counter = SCTP6},
    {"icmp6", .family = 6, .proto = 58, .counter = ICMP6},
    {"esp6", .family = 6, .proto = 50, .counter = ESP6},
    {"no next header", .family = 6, .proto = 59, .counter = NONE, .reason = PACER_NO_RULE},
    {"802.1Q", {Q}, .family = 6, .proto = 17, .counter = VLAN6},
    {"QinQ", {AD, Q}, .family = 6, .proto = 17, .counter = VLAN6},
    {"hop-by-hop", .family = 6, .proto = 17, .n_ext = 1, .ext = {0}, .counter = UDP6},
    {"routing", .family = 6, .proto = 6, .n_ext = 1, .ext = {43}, .counter = TCP6},
    {"destination", .family = 6, .proto = 58, .n_ext = 1, .ext = {60}, .counter = ICMP6},
    {"AH", .family = 6, .proto = 17, .n_ext = 1, .ext = {51}, .counter = UDP6},
    {"AH, long", .family = 6, .proto = 17, .n_ext = 1, .ext = {51}, .ext_len = 60, .counter = UDP6},
    {"hop-by-hop, longest", .family = 6, .proto = 17, .n_ext = 1, .ext = {0}, .ext_len = 255,
     .counter = UDP6},
    {"a whole datagram", .family = 6, .proto = 17, .n_ext = 1, .ext = {44}, .counter = UDP6},
    {"first fragment", .family = 6, .proto = 17, .n_ext = 1, .ext = {44}, .frag = 1,
     .counter = UDP6},
    {"middle fragment", .family = 6, .proto = 17, .n_ext = 1, .ext = {44}, .frag = 9,
     .counter = UDP6},
    {"last fragment", .family = 6, .proto = 17, .n_ext = 1, .ext = {44}, .frag = 8,
     .counter = UDP6},
    {"last fragment that says ESP", .family = 6, .proto = 50, .n_ext = 1, .ext = {44}, .frag = 8,
     .counter = UDP6},
    {"all five", .family = 6, .proto = 17, .n_ext = 5, .ext = {0, 60, 43, 44, 51}, .ext_len = 1,
     .counter = UDP6},
    {"8 headers", .family = 6, .proto = 6, .n_ext = 8, .ext = {0, 60, 43, 51, 60, 60, 60, 60},
     .counter = TCP6},
    {"8 headers, 2 tags",
     {AD, Q},
     .family = 6,
     .proto = 17,
     .n_ext = 8,
     .ext = {60, 60, 60, 51, 60, 60, 60, 44},
     .ext_len = 7,
     .counter = VLAN6},
    {"9 headers", .family = 6, .proto = 17, .n_ext = 9, .ext = {0, 60, 60, 60, 60, 60, 60, 60, 60},
     .counter = UDP6},
    {"9 headers before TCP", .family = 6, .proto = 6, .n_ext = 9,
     .ext = {60, 60, 60, 60, 60, 60, 60, 60, 60}, .counter = UDP6},
    {"a ninth behind a fragment", .family = 6, .proto = 17, .n_ext = 9,
     .ext = {60, 60, 60, 60, 60, 60, 60, 44, 60}, .counter = UDP6},
    {"last fragment, of headers", .family = 6, .proto = 60, .n_ext = 1, .ext = {44}, .frag = 8,
     .counter = UDP6},
    {"ARP", .type = 0x0806, .reason = PACER_NOT_IP},
    {"LLDP", .type = 0x88cc, .reason = PACER_NOT_IP},
    {"LLC", .type = 0x0026, .reason = PACER_NOT_IP},
    {"MPLS", .type = 0x8847, .reason = PACER_NOT_IP},
    {"ARP, 802.1Q", {Q}, .type = 0x0806, .reason = PACER_NOT_IP},
};

static struct recipe way(size_t i)
{
	struct recipe r = ways[i].family == 6 ? udp6 : udp4;

	memcpy(r.tag, ways[i].tag, sizeof(r.tag));
	r.priority = ways[i].priority;
	r.family = ways[i].family;
	r.type = ways[i].type;
	r.options = ways[i].options;
	r.proto = ways[i].proto;
	r.frag = ways[i].frag;
	r.n_ext = ways[i].n_ext;
	memcpy(r.ext, ways[i].ext, sizeof(r.ext));
	r.ext_len = ways[i].ext_len;
	return r;
}

static int is_unparsed(enum pacer_reason reason)
{
	return reason == PACER_TRUNCATED || reason == PACER_BAD_HEADER || reason == PACER_TOO_DEEP;
}

static void test_ways(void **unused)
{
	size_t i;

	(void)unused;
	prog_policy(&prog, fields);
	for (i = 0; i < ARRAY(ways); i++) {
		struct recipe r = way(i);

		judged(ways[i].what, &r, is_unparsed(ways[i].reason) ? XDP_DROP : XDP_PASS,
		       ways[i].counter, ways[i].reason);
	}
}

/* A field that is another than the rule's: the packet is under no rule. */
static void test_other_fields(void **unused)
{
	const struct recipe *of[] = {&udp4, &udp6};
	size_t i;

	(void)unused;
	prog_policy(&prog, fields);
	for (i = 0; i < ARRAY(of); i++) {
		struct recipe r[5] = {*of[i], *of[i], *of[i], *of[i], *of[i]};
		size_t k;

		r[0].saddr[i ? 3 : 0] ^= 1;
		r[1].daddr[i ? 2 : 0] ^= 1;
		r[2].sport ^= 0x100;
		r[3].dport ^= 1;
		r[4].saddr[0] ^= 1u << 31;
		for (k = 0; k < ARRAY(r); k++)
			judged("another field", &r[k], XDP_PASS, NONE, PACER_NO_RULE);
	}
}

/* ---- frames that are cut short, and frames that lie ---- */

/* The reason of the first n bytes of a frame that is read when it is whole. */
static enum pacer_reason cut_reason(const struct frame *f, uint8_t family, uint32_t n,
				    enum pacer_reason whole)
{
	if (n == f->n)
		return whole;
	if (whole == PACER_TOO_DEEP)
		return n < f->l3 - 4 ? PACER_TRUNCATED : whole;
	if (!family)
		return n < f->l3 ? PACER_TRUNCATED : whole;
	return n < f->l3 + (family == 4 ? 20 : 40) ? PACER_TRUNCATED : PACER_BAD_HEADER;
}

static void test_cut_at_every_byte(void **unused)
{
	static struct frame f;
	uint32_t n;
	size_t i;

	(void)unused;
	prog_policy(&prog, fields);
	for (i = 0; i < ARRAY(ways); i++) {
		struct recipe r = way(i);

		r.payload = 8;
		frame_build(&f, &r);
		for (n = 14; n <= f.n && n < 300; n++) {
			enum pacer_reason reason = cut_reason(&f, r.family, n, ways[i].reason);
			int counted = n == f.n && !is_unparsed(reason);

			judged_bytes(ways[i].what, f.b, n,
				     is_unparsed(reason) ? XDP_DROP : XDP_PASS,
				     counted ? ways[i].counter : NONE, reason);
		}
	}
}

static void test_lies(void **unused)
{
	static const struct {
		const char *what;
		const struct recipe *r;
		uint8_t n_ext, ext, at, byte;
		enum pacer_reason reason;
	} lies[] = {
	    {"version 5", &udp4, 0, 0, 0, 0x55, PACER_BAD_HEADER},
	    {"version 6 in IPv4", &udp4, 0, 0, 0, 0x65, PACER_BAD_HEADER},
	    {"IHL of 4", &udp4, 0, 0, 0, 0x44, PACER_BAD_HEADER},
	    {"IHL beyond the datagram", &udp4, 0, 0, 0, 0x4f, PACER_BAD_HEADER},
	    {"total length of 19", &udp4, 0, 0, 3, 19, PACER_BAD_HEADER},
	    {"total length of 23", &udp4, 0, 0, 3, 23, PACER_TRUNCATED},
	    {"total length beyond the frame", &udp4, 0, 0, 3, 47, PACER_BAD_HEADER},
	    {"total length of 64 KiB", &udp4, 0, 0, 2, 255, PACER_BAD_HEADER},
	    {"version 4 in IPv6", &udp6, 0, 0, 0, 0x40, PACER_BAD_HEADER},
	    {"payload of 3", &udp6, 0, 0, 5, 3, PACER_TRUNCATED},
	    {"payload beyond the frame", &udp6, 0, 0, 5, 27, PACER_BAD_HEADER},
	    {"payload of 64 KiB", &udp6, 0, 0, 4, 255, PACER_BAD_HEADER},
	    {"header beyond the payload", &udp6, 1, 60, 41, 4, PACER_BAD_HEADER},
	    {"longest header", &udp6, 1, 0, 41, 255, PACER_BAD_HEADER},
	    {"AH beyond the payload", &udp6, 1, 51, 41, 255, PACER_BAD_HEADER},
	    {"AH, no room for ports", &udp6, 1, 51, 41, 8, PACER_BAD_HEADER},
	    {"payload within a header", &udp6, 1, 60, 5, 7, PACER_TRUNCATED},
	};
	static struct frame f;
	size_t i;

	(void)unused;
	prog_policy(&prog, fields);
	for (i = 0; i < ARRAY(lies); i++) {
		struct recipe r = *lies[i].r;

		r.n_ext = lies[i].n_ext;
		r.ext[0] = lies[i].ext;
		frame_build(&f, &r);
		f.b[f.l3 + lies[i].at] = lies[i].byte;
		judged_bytes(lies[i].what, f.b, f.n, XDP_DROP, NONE, lies[i].reason);
	}
}

/* ---- keys: whom a packet is held against ---- */

#define ONE(key)                                                         \
	"clock: exact\nrules:\n  - name: one\n    limits: [{key: \"" key \
	"\", packets: 1, window: 1h}]\n"

#define ONE_OF_TWO                                     \
	"rules:\n  - name: two\n    limits:\n"         \
	"      - {key: src, packets: 1, window: 1h}\n" \
	"      - {key: dst, packets: 9, window: 1h}\n"

/* After udp4 or udp6 the other packet is denied if it has the same key. */
static void assert_same_key(const char *policy, const struct recipe *a, const struct recipe *b,
			    int same)
{
	prog_policy(&prog, policy);
	judged(policy, a, XDP_PASS, 1, PACER_ADMIT);
	judged(policy, b, same ? XDP_DROP : XDP_PASS, 1, same ? PACER_DENY_WINDOW : PACER_ADMIT);
}

static void test_keys(void **unused)
{
	struct recipe host4 = udp4, net4 = udp4, sport4 = udp4, dport4 = udp4, dst4 = udp4;
	struct recipe host6 = udp6, net6 = udp6, dport6 = udp6;

	(void)unused;
	host4.saddr[0] ^= 1;
	net4.saddr[0] ^= 0x100;
	sport4.sport++;
	dport4.dport++;
	dst4.daddr[0]++;
	host6.saddr[3] ^= 1;
	net6.saddr[1] ^= 0x100;
	dport6.dport++;
	assert_same_key(ONE("src"), &udp4, &udp4, 1);
	assert_same_key(ONE("src"), &udp4, &sport4, 1);
	assert_same_key(ONE("src"), &udp4, &dst4, 1);
	assert_same_key(ONE("src"), &udp4, &host4, 0);
	assert_same_key(ONE("src"), &udp4, &udp6, 0);
	assert_same_key(ONE("src/24,56"), &udp4, &host4, 1);
	assert_same_key(ONE("src/24,56"), &udp4, &net4, 0);
	assert_same_key(ONE("src/24,56"), &udp6, &host6, 1);
	assert_same_key(ONE("src/24,56"), &udp6, &net6, 0);
	assert_same_key(ONE("flow"), &udp4, &udp4, 1);
	assert_same_key(ONE("flow"), &udp4, &sport4, 0);
	assert_same_key(ONE("flow"), &udp6, &dport6, 0);
	assert_same_key(ONE("src+dport"), &udp4, &sport4, 1);
	assert_same_key(ONE("src+dport"), &udp4, &dport4, 0);
	assert_same_key(ONE("dst"), &udp4, &host4, 1);
	assert_same_key(ONE("dst"), &udp4, &dst4, 0);
	assert_same_key(ONE("all"), &udp4, &udp6, 1);
}

/* A later fragment is known by its datagram. */
static void test_fragment_keys(void **unused)
{
	struct recipe first4 = udp4, later4 = udp4, other4 = udp4, later6 = udp6, first6, other6;
	struct recipe ports4 = udp4;

	(void)unused;
	first4.frag = 0x2000;
	assert_same_key(ONE("flow"), &udp4, &first4, 1);
	later4.frag = 0x2010;
	ports4.sport = 0;
	ports4.dport = later4.id;
	assert_same_key(ONE("flow"), &ports4, &later4, 0);
	other4.frag = 0x0020;
	other4.id++;
	assert_same_key(ONE("flow"), &udp4, &later4, 0);
	assert_same_key(ONE("flow"), &later4, &later4, 1);
	assert_same_key(ONE("flow"), &later4, &other4, 0);
	other4.id--;
	assert_same_key(ONE("flow"), &later4, &other4, 1);
	later6.n_ext = 1;
	later6.ext[0] = 44;
	later6.frag = 0x0010;
	first6 = later6;
	first6.frag = 1;
	assert_same_key(ONE("flow"), &udp6, &first6, 1);
	other6 = later6;
	other6.id ^= 0x10000;
	assert_same_key(ONE("flow"), &udp6, &later6, 0);
	assert_same_key(ONE("flow"), &later6, &later6, 1);
	assert_same_key(ONE("flow"), &later6, &other6, 0);
}

/* ---- reasons ---- */

static void raise_admit(void)
{
	prog_policy(&prog, ONE("src"));
	judged("the first", &udp4, XDP_PASS, 1, PACER_ADMIT);
}

static void raise_no_rule(void)
{
	prog_policy(&prog, "rules:\n" RULE("tcp", "proto: tcp"));
	judged("udp", &udp4, XDP_PASS, PASS, PACER_NO_RULE);
	prog_policy(&prog, "rules: []\n");
	judged("no rules at all", &udp4, XDP_PASS, PASS, PACER_NO_RULE);
}

static void allow(uint32_t copy, int family, const void *addr, uint32_t len, uint64_t until_ns,
		  int add)
{
	struct pacer_allow_value value = {.until_ns = until_ns};
	struct pacer_allow6 key = {.prefixlen = PACER_ALLOW_COPY_BITS + len, .copy = copy};
	int fd = family == 4 ? prog.allow4_fd : prog.allow6_fd;

	memcpy(key.addr, addr, family == 4 ? 4 : 16);
	if (add)
		assert_int_equal(bpf_map_update_elem(fd, &key, &value, BPF_ANY), 0);
	else
		assert_int_equal(bpf_map_delete_elem(fd, &key), 0);
	*(family == 4 ? &prog.control->allowed[0].v4 : &prog.control->allowed[0].v6) +=
	    add ? 1 : -1;
	pacer_short_reshape(&prog.copy[0].policy, prog.control, 0);
}

static uint64_t monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* Denied from the second packet on, unless the list says otherwise. */
static void allow_listed(const char *policy, int family, const void *net, uint32_t len,
			 const struct recipe *r)
{
	uint64_t now_ns = monotonic_ns();

	prog_policy(&prog, policy);
	judged("first", r, XDP_PASS, 1, PACER_ADMIT);
	judged("second", r, XDP_DROP, 1, PACER_DENY_WINDOW);
	allow(0, family, net, len, 0, 1);
	judged("allowed for ever", r, XDP_PASS, PASS, PACER_ALLOWED);
	allow(0, family, net, len, now_ns + 3600000000000ull, 1);
	judged("allowed for an hour", r, XDP_PASS, PASS, PACER_ALLOWED);
	allow(0, family, net, len, now_ns - 5 * PROG_RESOLUTION_NS, 1);
	judged("allowed until just now", r, XDP_DROP, 1, PACER_DENY_WINDOW);
	allow(0, family, net, len, 1, 1);
	judged("allowed until long ago", r, XDP_DROP, 1, PACER_DENY_WINDOW);
	allow(0, family, net, len, 0, 0);
	judged("not allowed", r, XDP_DROP, 1, PACER_DENY_WINDOW);
	allow(1, family, net, len, 0, 1);
	judged("allowed by the list of the other copy", r, XDP_DROP, 1, PACER_DENY_WINDOW);
	allow(1, family, net, len, 0, 0);
	prog.control->allowed[0].any = 0;
	pacer_short_reshape(&prog.copy[0].policy, prog.control, 0);
}

static void raise_allowed(void)
{
	static const uint8_t net4[] = {192, 0, 2, 0}, other4[] = {192, 0, 3, 0};
	static const uint8_t net6[16] = {0x20, 1, 0x0d, 0xb8, 0, 0, 0, 1};
	const char *coarse = "clock: coarse\nrules:\n  - name: one\n    limits: [{key: src, "
			     "packets: 1, window: 1h}]\n";

	allow_listed(ONE("src"), 4, net4, 24, &udp4);
	allow_listed(coarse, 4, net4, 24, &udp4);
	allow_listed(ONE("src"), 6, net6, 64, &udp6);
	prog_policy(&prog, ONE("src"));
	allow(0, 4, other4, 24, 0, 1);
	judged("another prefix", &udp4, XDP_PASS, 1, PACER_ADMIT);
	judged("another prefix", &udp4, XDP_DROP, 1, PACER_DENY_WINDOW);
	judged("another family", &udp6, XDP_PASS, 1, PACER_ADMIT);
	allow(0, 4, other4, 24, 0, 0);
}

static void raise_unparsed(enum pacer_reason reason, const uint8_t *b, uint32_t n)
{
	static const struct {
		const char *policy;
		uint32_t verdict;
	} rows[] = {{"unparsed: pass\nrules: []\n", XDP_PASS},
		    {"unparsed: drop\nrules: []\n", XDP_DROP},
		    {"unparsed: drop\nmode: monitor\nrules: []\n", XDP_PASS},
		    {"rules: []\n", XDP_DROP},
		    {"mode: monitor\nrules: []\n", XDP_PASS}};
	size_t i;

	for (i = 0; i < ARRAY(rows); i++) {
		/* What is too deep a stack may take: that passes in monitor mode alone. */
		int drop = reason == PACER_TOO_DEEP && !strstr(rows[i].policy, "monitor");

		prog_policy(&prog, rows[i].policy);
		judged_bytes(rows[i].policy, b, n, drop ? XDP_DROP : rows[i].verdict, PASS, reason);
	}
}

static void raise_truncated(void)
{
	static struct frame f;

	frame_build(&f, &udp4);
	raise_unparsed(PACER_TRUNCATED, f.b, 33);
}

static void raise_bad_header(void)
{
	static struct frame f;

	frame_build(&f, &udp4);
	raise_unparsed(PACER_BAD_HEADER, f.b, 34);
}

static void raise_too_deep(void)
{
	static const uint16_t tags[FRAME_TAGS] = {TAGS16, Q};
	struct recipe r = udp4;
	static struct frame f;

	memcpy(r.tag, tags, sizeof(tags));
	r.priority = FRAME_TAGS;
	frame_build(&f, &r);
	raise_unparsed(PACER_TOO_DEEP, f.b, f.n);
}

static void raise_not_ip(void)
{
	struct recipe arp = {.type = 0x0806, .payload = 46};

	prog_policy(&prog, "unparsed: drop\nrules: []\n");
	judged("ARP", &arp, XDP_PASS, PASS, PACER_NOT_IP);
}

static void raise_gap(void)
{
	static const char *const policies[] = {
	    "rules:\n  - name: a\n    limits: [{key: src, gap: 1h, rows: 1}]\n",
	    "rules:\n  - name: a\n    limits: [{key: src, gap: 1h, rows: 2}]\n",
	    "rules:\n  - name: a\n    limits: [{key: all, gap: 1h}]\n",
	    "clock: exact\nrules:\n  - name: a\n    limits: [{key: src, gap: 1h}]\n",
	    ("clock: exact\nrules:\n  - name: a\n    limits: [{key: src, gap: 1h}, {key: src, "
	     "packets: 100, window: 2h}]\n"),
	};
	size_t i, k;

	for (i = 0; i < ARRAY(policies); i++) {
		prog_policy(&prog, policies[i]);
		judged(policies[i], &udp4, XDP_PASS, 1, PACER_ADMIT);
		for (k = 0; k < 3; k++)
			judged(policies[i], &udp4, XDP_DROP, 1, PACER_DENY_GAP);
	}
}

static void raise_window(void)
{
	static const struct {
		const char *limit;
		uint32_t admitted; /* of udp4, 60 bytes each */
	} rows[] = {
	    {"packets: 1, window: 1h", 1},
	    {"packets: 7, window: 1h, slots: 58", 7},
	    {"packets: 7, window: 1h, slots: 1", 7},
	    {"bytes: 59, window: 1h", 0},
	    {"bytes: 60, window: 1h", 1},
	    {"bytes: 359, window: 1h, slots: 26", 5},
	    {"bytes: 360, window: 1h, slots: 27", 6},
	};
	static struct frame f;
	char policy[300];
	uint32_t k;
	size_t i;

	frame_build(&f, &udp4);
	assert_int_equal(f.n, 60);
	for (i = 0; i < ARRAY(rows); i++) {
		snprintf(policy, sizeof(policy),
			 "rules:\n  - name: a\n    limits: [{key: src, %s}]\n", rows[i].limit);
		prog_policy(&prog, policy);
		for (k = 0; k < rows[i].admitted; k++)
			judged(rows[i].limit, &udp4, XDP_PASS, 1, PACER_ADMIT);
		for (k = 0; k < 3; k++)
			judged(rows[i].limit, &udp4, XDP_DROP, 1, PACER_DENY_WINDOW);
	}
}

static void raise_rate(void)
{
	static const struct {
		const char *limit;
		uint32_t admitted; /* of udp4, 60 bytes each */
	} rows[] = {
	    {"{key: src, rate: 1/h, burst: 1}", 1},
	    {"{key: src, rate: 1/h, burst: 7}", 7},
	    {"{key: all, rate: 3/h, burst: 3}", 3},
	    {"{key: 'src/24,56', rate: 1bit/s, burst: 1514}", 25}, /* 1500 bytes */
	    {"{key: src, rate: 2/h, burst: 9}, {key: all, rate: 1/h, burst: 4}", 4},
	    {"{key: src, packets: 9, window: 1h}, {key: src, rate: 1/h, burst: 2}", 2},
	    {"{key: all, uses: 9, cooldown: 1h}, {key: src, rate: 1/h, burst: 2}", 2},
	};
	char policy[300];
	uint32_t k;
	size_t i;

	for (i = 0; i < ARRAY(rows); i++) {
		snprintf(policy, sizeof(policy), "rules:\n  - name: a\n    limits: [%s]\n",
			 rows[i].limit);
		prog_policy(&prog, policy);
		for (k = 0; k < rows[i].admitted; k++)
			judged(rows[i].limit, &udp4, XDP_PASS, 1, PACER_ADMIT);
		for (k = 0; k < 3; k++)
			expect_event(rows[i].limit, &udp4, XDP_DROP, PACER_DENY_RATE,
				     PACER_EVENT_COUNT);
		if (i < 2) /* IPv4 and IPv6 apart */
			judged(rows[i].limit, &udp6, XDP_PASS, 1, PACER_ADMIT);
		if (i == 2)
			judged(rows[i].limit, &udp6, XDP_DROP, 1, PACER_DENY_RATE);
	}
	prog_policy(&prog, "bans: 64\nrules:\n  - name: a\n    ban: 1h\n"
			   "    limits: [{key: src, rate: 1/h, burst: 1}]\n");
	expect_event("rate", &udp4, XDP_PASS, PACER_ADMIT, PACER_EVENT_COUNT);
	expect_event("rate", &udp4, XDP_DROP, PACER_DENY_RATE, PACER_BANNED);
	expect_event("rate", &udp4, XDP_DROP, PACER_DENY_BAN, PACER_EVENT_COUNT);
	prog_policy(&prog, "mode: monitor\nrules:\n  - name: a\n"
			   "    limits: [{key: src, rate: 1/h, burst: 1}]\n");
	judged("monitor", &udp4, XDP_PASS, 1, PACER_ADMIT);
	judged("monitor", &udp4, XDP_PASS, 1, PACER_DENY_RATE);
}

static void raise_throttle(void)
{
	static const struct {
		const char *limits;
		uint32_t admitted;
	} rows[] = {
	    {"[{key: all, uses: 1, cooldown: 1h}]", 1},
	    {"[{key: all, uses: 7, cooldown: 1h}]", 7},
	    {"[{key: src, packets: 9, window: 1h}, {key: all, uses: 3, cooldown: 1h}]", 3},
	    {"[{key: all, uses: 5, cooldown: 1h}, {key: all, uses: 2, cooldown: 2h}]", 2},
	};
	static struct pacer_throttle_state before[PACER_THROTTLES];
	char policy[300];
	uint32_t k;
	size_t i;

	for (i = 0; i < ARRAY(rows); i++) {
		snprintf(policy, sizeof(policy), "rules:\n  - name: a\n    limits: %s\n",
			 rows[i].limits);
		prog_policy(&prog, policy);
		for (k = 0; k < rows[i].admitted; k++)
			judged(policy, k & 1 ? &udp4 : &udp6, XDP_PASS, 1, PACER_ADMIT);
		memcpy(before, prog.throttle, sizeof(before));
		for (k = 0; k < 3; k++)
			judged(policy, k & 1 ? &udp4 : &udp6, XDP_DROP, 1, PACER_DENY_THROTTLE);
		assert_memory_equal(before, prog.throttle, sizeof(before));
	}
}

#define HOUR_NS	     3600000000000ull
#define BANS(limits) "bans: 64\nrules:\n  - name: a\n    ban: 1h\n    limits: [" limits "]\n"

/* The ban of the packet's source, of this length in the key, for so long, was noted last. */
static void expect_note(const struct recipe *r, uint32_t len, uint64_t for_ns)
{
	const struct pacer_note *note = &prog.log->note[(prog.log->noted - 1) & (PACER_NOTES - 1)];

	assert_int_equal(note->number, prog.log->noted);
	assert_int_equal(note->rule, prog.copy[0].policy.rule[0].id);
	assert_true(note->until_ns - note->time_ns >= for_ns &&
		    note->until_ns - note->time_ns <= for_ns + 2 * PROG_RESOLUTION_NS);
	assert_int_equal(compile_key_of(note->key_id).src4, len);
	assert_int_equal(note->key[0], r->saddr[0] & ~0u << (32 - len));
}

/* Denied once, then banned; another source is not. The ban taken away, it is denied once more. */
static void raise_ban(void)
{
	static const char *const policies[] = {
	    BANS("{key: src, packets: 1, window: 1h}"),
	    BANS("{key: flow, packets: 1, window: 1h}"),
	    BANS("{key: all, packets: 9, window: 1h}, {key: 'src/24,56', packets: 1, window: 1h}"),
	    BANS("{key: src, packets: 1, window: 1h}, {key: all, uses: 9, cooldown: 1h}"),
	};
	static const uint32_t lengths[] = {32, 32, 24, 32};
	struct recipe other = udp4;
	size_t i, k;

	other.saddr[0] ^= 0x10000;
	for (i = 0; i < ARRAY(policies); i++) {
		const struct pacer_bans *bans = &prog.copy[0].policy.bans;
		uint64_t noted = prog.log->noted;

		prog_policy(&prog, policies[i]);
		expect_event(policies[i], &udp4, XDP_PASS, PACER_ADMIT, PACER_EVENT_COUNT);
		expect_event(policies[i], &udp4, XDP_DROP, PACER_DENY_WINDOW, PACER_BANNED);
		for (k = 0; k < 3; k++)
			expect_event(policies[i], &udp4, XDP_DROP, PACER_DENY_BAN,
				     PACER_EVENT_COUNT);
		expect_event(policies[i], &other, XDP_PASS, PACER_ADMIT, PACER_EVENT_COUNT);
		expect_event(policies[i], &udp6, XDP_PASS, PACER_ADMIT, PACER_EVENT_COUNT);
		for (k = 0; k < bans->sets * PACER_BAN_WAYS; k++)
			prog.lines[bans->base + k].ban_until_ns = 0;
		expect_event(policies[i], &udp4, XDP_DROP, PACER_DENY_WINDOW, PACER_BANNED);
		expect_event(policies[i], &udp4, XDP_DROP, PACER_DENY_BAN, PACER_EVENT_COUNT);
		assert_int_equal(prog.log->noted, noted + 2);
		expect_note(&udp4, lengths[i], HOUR_NS);
	}
}

/* A ban that ends, and the next in its row: the note says how long that one is. */
static void test_ban_that_grows(void **unused)
{
	static const char *const text = "bans: 64\nrules:\n  - name: a\n"
					"    ban: {for: 1h, grow: x3, up_to: 5h, forget: 7d}\n"
					"    limits: [{key: src, packets: 1, window: 1h}]\n";
	static const uint64_t hours[] = {1, 3, 5, 5};
	const struct pacer_bans *bans = &prog.copy[0].policy.bans;
	size_t i, k;

	(void)unused;
	prog_policy(&prog, text);
	expect_event(text, &udp4, XDP_PASS, PACER_ADMIT, PACER_EVENT_COUNT);
	for (i = 0; i < ARRAY(hours); i++) {
		expect_event(text, &udp4, XDP_DROP, PACER_DENY_WINDOW, PACER_BANNED);
		expect_note(&udp4, 32, hours[i] * HOUR_NS);
		expect_event(text, &udp4, XDP_DROP, PACER_DENY_BAN, PACER_EVENT_COUNT);
		for (k = 0; k < bans->sets * PACER_BAN_WAYS; k++)
			if (prog.lines[bans->base + k].ban_until_ns)
				prog.lines[bans->base + k].ban_until_ns =
				    prog.log->note[(prog.log->noted - 1) & (PACER_NOTES - 1)]
					.time_ns;
	}
}

/* The lock's held bit of every line that is in use, among those of one limit of the rule. */
static void hold(uint32_t limiter, int held)
{
	const struct pacer_limiter *t = &prog.copy[0].policy.rule[0].limiter[limiter];
	static const struct pacer_line empty;
	uint64_t i, end = t->base + compile_limiter_lines(t);

	for (i = 0; t->kind == PACER_LIMITER_RATE && i < 2ull * t->sets + t->shared; i++) {
		struct pacer_entry *e = &prog.lines[t->base + i / 4].unit[i % 4].entry;

		if (e->tat_ns)
			e->lock = held ? e->lock | 1 : e->lock & ~1u;
	}
	for (i = t->base; t->kind != PACER_LIMITER_RATE && i < end; i++)
		if (memcmp(&prog.lines[i], &empty, sizeof(empty)))
			prog.lines[i].lock =
			    held ? prog.lines[i].lock | 1 : prog.lines[i].lock & ~1u;
}

static void raise_contended(void)
{
	static const struct {
		const char *limits;
		uint32_t limiter; /* that is held */
		enum pacer_reason then;
	} rows[] = {
	    {"[{key: src, gap: 1ns, rows: 1}]", 0, PACER_ADMIT},
	    {"[{key: src, packets: 2, window: 1h}]", 0, PACER_ADMIT},
	    {"[{key: all, packets: 2, window: 1h}]", 0, PACER_ADMIT},
	    {"[{key: src, rate: 1/h, burst: 2}]", 0, PACER_ADMIT},
	    {"[{key: all, rate: 1/h, burst: 2}, {key: src, gap: 1ns}]", 0, PACER_ADMIT},
	    {"[{key: src, packets: 2, window: 1h}, {key: all, packets: 2, window: 1h}]", 0,
	     PACER_ADMIT},
	    {"[{key: src, packets: 2, window: 1h}, {key: all, packets: 2, window: 1h}]", 1,
	     PACER_ADMIT},
	    {"[{key: src, packets: 2, window: 1h}, {key: all, gap: 1h}]", 1, PACER_DENY_GAP},
	};
	char policy[300];
	size_t i;

	for (i = 0; i < ARRAY(rows); i++) {
		snprintf(policy, sizeof(policy), "rules:\n  - name: a\n    limits: %s\n",
			 rows[i].limits);
		prog_policy(&prog, policy);
		judged(policy, &udp4, XDP_PASS, 1, PACER_ADMIT);
		hold(rows[i].limiter, 1);
		judged(policy, &udp4, XDP_DROP, 1, PACER_DENY_CONTENDED);
		judged(policy, &udp4, XDP_DROP, 1, PACER_DENY_CONTENDED);
		hold(rows[i].limiter, 0);
		judged(policy, &udp4, rows[i].then ? XDP_DROP : XDP_PASS, 1, rows[i].then);
	}
	prog_policy(&prog, "rules:\n  - name: a\n    limits: [{key: src, packets: 9, window: 1h}, "
			   "{key: all, uses: 2, cooldown: 1h}]\n");
	judged("a throttle", &udp4, XDP_PASS, 1, PACER_ADMIT);
	prog.throttle[prog.copy[0].policy.rule[0].limiter[1].base].lock |= PACER_LOCK_HELD;
	judged("a throttle that is held", &udp4, XDP_DROP, 1, PACER_DENY_CONTENDED);
	prog.throttle[prog.copy[0].policy.rule[0].limiter[1].base].lock &= ~PACER_LOCK_HELD;
	judged("a throttle", &udp4, XDP_PASS, 1, PACER_ADMIT);
	judged("a throttle", &udp4, XDP_DROP, 1, PACER_DENY_THROTTLE);
}

/* A limit whose lines lie beyond the table, the only one and the last of three. */
static void raise_no_state(void)
{
	static const char *const limits[] = {
	    "[{key: src, gap: 1h}]",
	    "[{key: src, packets: 2, window: 1h}]",
	    "[{key: all, packets: 2, window: 1h}]",
	    ("[{key: flow, gap: 1h}, {key: src, packets: 2, window: 1h}, {key: dst, packets: 2, "
	     "window: 1h, slots: 30}]"),
	};
	char policy[300];
	size_t i;

	for (i = 0; i < ARRAY(limits); i++) {
		struct pacer_rule *rule = &prog.copy[0].policy.rule[0];

		snprintf(policy, sizeof(policy), "rules:\n  - name: a\n    limits: %s\n",
			 limits[i]);
		prog_policy(&prog, policy);
		rule->limiter[rule->n_limiters - 1].base = prog.n_lines;
		pacer_short_arm(&prog.copy[0].policy, prog.control, 0);
		judged(limits[i], &udp4, XDP_DROP, 1, PACER_DENY_NO_STATE);
		judged(limits[i], &udp6, XDP_DROP, 1, PACER_DENY_NO_STATE);
	}
	prog_policy(&prog, "rules:\n  - name: a\n    limits: [{key: all, packets: 2, window: 1h, "
			   "slots: 30}]\n");
	prog.copy[0].policy.rule[0].limiter[0].base = prog.n_lines - 1;
	judged("the last two of its three lines", &udp4, XDP_DROP, 1, PACER_DENY_NO_STATE);
	prog_policy(&prog, "rules:\n  - name: a\n    limits: [{key: src, packets: 2, window: 1h}, "
			   "{key: all, uses: 2, cooldown: 1h}]\n");
	prog.copy[0].policy.rule[0].limiter[1].base = PACER_THROTTLES;
	judged("a throttle that there is not", &udp4, XDP_DROP, 1, PACER_DENY_NO_STATE);
}

/* Of a rule and of else: to drop, to pass, to a pool that is spent; and nothing where it looks on.
 */
static void raise_verdict(void)
{
	struct recipe tcp = udp4;
	uint32_t at = 0;

	tcp.proto = 6;
	prog_policy(&prog,
		    "else: drop\nrules:\n  - {name: a, match: {proto: udp}, verdict: pass}\n");
	expect_event("its rule passes it", &udp4, XDP_PASS, PACER_ADMIT, PACER_EVENT_COUNT);
	judged("of no rule", &tcp, XDP_DROP, 0, PACER_DENY_VERDICT);
	prog_policy(&prog, "rules:\n  - {name: a, match: {proto: udp}, verdict: drop}\n");
	expect_event("its rule drops it", &udp4, XDP_DROP, PACER_DENY_VERDICT, PACER_EVENT_COUNT);
	judged("of no rule", &tcp, XDP_PASS, 0, PACER_NO_RULE);
	prog_policy(&prog, "mode: monitor\nelse: drop\nrules:\n"
			   "  - {name: a, match: {proto: udp}, verdict: drop}\n");
	expect_event("monitor", &udp4, XDP_PASS, PACER_DENY_VERDICT, PACER_EVENT_COUNT);
	judged("monitor", &tcp, XDP_PASS, 0, PACER_DENY_VERDICT);
	prog_policy(&prog, "else: pool p\nrules:\n"
			   "  - {name: a, match: {proto: udp}, verdict: pool p}\n"
			   "pools: [{name: p, targets: lo, each: 2, cooldown: 1h}]\n");
	(void)bpf_map_delete_elem(prog.devices_fd, &at);
	expect_event("a target that is gone", &udp4, XDP_DROP, PACER_DENY_VERDICT,
		     PACER_TARGET_GONE);
	judged("a target that is gone", &tcp, XDP_DROP, 0, PACER_DENY_VERDICT);
	expect_event("spent", &udp4, XDP_DROP, PACER_DENY_VERDICT, PACER_POOL_SPENT);
	judged("spent", &tcp, XDP_DROP, 0, PACER_DENY_VERDICT);
}

/* One write of another tool is a ban, another the end of it. */
static void by_tool(int family, const void *addr, uint32_t len, uint64_t until_ns)
{
	const struct pacer_tools_value value = {until_ns};
	struct pacer_tools6 key = {.prefixlen = len};
	int fd = family == 4 ? prog.tools4_fd : prog.tools6_fd;

	memcpy(key.addr, addr, family == 4 ? 4 : 16);
	assert_int_equal(bpf_map_update_elem(fd, &key, &value, BPF_ANY), 0);
}

static void not_by_tool(int family, const void *addr, uint32_t len)
{
	struct pacer_tools6 key = {.prefixlen = len};
	int fd = family == 4 ? prog.tools4_fd : prog.tools6_fd;

	memcpy(key.addr, addr, family == 4 ? 4 : 16);
	assert_int_equal(bpf_map_delete_elem(fd, &key), 0);
}

static void banned_by_tool(const char *policy, int family, const uint8_t *net, uint32_t len,
			   const struct recipe *r, const struct recipe *other)
{
	uint64_t now_ns = monotonic_ns();

	prog.control->tools = 0;
	by_tool(family, net, len, 0);
	prog_policy(&prog, policy);
	judged("not asked for", r, XDP_PASS, 1, PACER_ADMIT);
	prog.control->tools = 1;
	prog_policy(&prog, policy);
	judged("banned for ever", r, XDP_DROP, PASS, PACER_DENY_BAN);
	judged("of the other family", other, XDP_PASS, 1, PACER_ADMIT);
	allow(0, family, net, len, 0, 1);
	judged("banned and allowed", r, XDP_PASS, PASS, PACER_ALLOWED);
	allow(0, family, net, len, 0, 0);
	by_tool(family, net, len, now_ns + 3600000000000ull);
	judged("banned for an hour", r, XDP_DROP, PASS, PACER_DENY_BAN);
	by_tool(family, net, len + 1, now_ns - 5 * PROG_RESOLUTION_NS);
	judged("hidden by a longer one that has run out", r, XDP_PASS, 1, PACER_ADMIT);
	judged("and limited", r, XDP_DROP, 1, PACER_DENY_WINDOW);
	not_by_tool(family, net, len + 1);
	judged("by the shorter one", r, XDP_DROP, PASS, PACER_DENY_BAN);
	not_by_tool(family, net, len);
	judged("not banned", r, XDP_DROP, 1, PACER_DENY_WINDOW);
	prog.control->tools = 0;
}

/* A single address, which most tools ban: it is asked for in its whole length. */
static void host_by_tool(int family, const uint8_t *host, uint32_t len, const struct recipe *r)
{
	struct recipe neighbour = *r;

	neighbour.saddr[family == 4 ? 0 : 3] ^= 1;
	prog.control->tools = 1;
	prog_policy(&prog, ONE("src/32,128"));
	by_tool(family, host, len, 0);
	judged("a host that is banned", r, XDP_DROP, PASS, PACER_DENY_BAN);
	judged("its neighbour", &neighbour, XDP_PASS, 1, PACER_ADMIT);
	allow(0, family, host, len, 0, 1);
	judged("banned and allowed", r, XDP_PASS, PASS, PACER_ALLOWED);
	judged("its neighbour, who is not", &neighbour, XDP_DROP, 1, PACER_DENY_WINDOW);
	allow(0, family, host, len, 0, 0);
	not_by_tool(family, host, len);
	judged("not banned", r, XDP_PASS, 1, PACER_ADMIT);
	prog.control->tools = 0;
}

/* Whom other tools ban: whatever the policy asks of a packet. */
static void test_tools(void **unused)
{
	static const uint8_t host4[] = {192, 0, 2, 1};
	static const uint8_t host6[16] = {0x20, 1, 0x0d, 0xb8, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3};
	static const uint8_t net4[] = {192, 0, 2, 0};
	static const uint8_t net6[16] = {0x20, 1, 0x0d, 0xb8, 0, 0, 0, 1};
	const char *coarse = "clock: coarse\nrules:\n  - name: one\n    limits: [{key: src, "
			     "packets: 1, window: 1h}]\n";
	const char *more = "rules:\n  - name: one\n    match: {ttl: 0-255}\n    limits: [{key: "
			   "src, packets: 1, window: 1h}]\n";

	(void)unused;
	banned_by_tool(ONE("src"), 4, net4, 24, &udp4, &udp6);
	banned_by_tool(ONE("src"), 6, net6, 64, &udp6, &udp4);
	banned_by_tool(coarse, 4, net4, 24, &udp4, &udp6);
	banned_by_tool(more, 4, net4, 24, &udp4, &udp6);
	host_by_tool(4, host4, 32, &udp4);
	host_by_tool(6, host6, 128, &udp6);
	prog_policy(&prog, ONE("src"));
}

/* A fleet's limit without a share, then with two units until long from now, then after its end. */
static void raise_share(void)
{
	static const struct {
		const char *limits;
		enum pacer_reason then;
	} rows[] = {
	    {"[{key: src, packets: 9, window: 1h, fleet: yes}]", PACER_DENY_WINDOW},
	    {"[{key: src, packets: 900, window: 1h, fleet: yes}]", PACER_DENY_WINDOW},
	    {"[{key: src, rate: 9/h, burst: 9, fleet: yes}]", PACER_DENY_RATE},
	    {"[{key: all, packets: 900, window: 1h, fleet: yes}]", PACER_DENY_WINDOW},
	    {"[{key: all, uses: 9, cooldown: 1h, fleet: yes}]", PACER_DENY_THROTTLE},
	    {"[{key: src, gap: 1ns}, {key: src, packets: 9, window: 1h, fleet: yes}]",
	     PACER_DENY_WINDOW},
	    {"[{key: src, gap: 1ns}, {key: src, rate: 9/h, burst: 9, fleet: yes}]",
	     PACER_DENY_RATE},
	};
	char policy[300];

	for (size_t i = 0; i < ARRAY(rows); i++) {
		const struct pacer_rule *rule = &prog.copy[0].policy.rule[0];
		const struct pacer_limiter *t = rule->limiter;
		struct pacer_share *share;

		snprintf(
		    policy, sizeof(policy),
		    "fleet: {store: 'http://a', name: f}\nrules:\n  - name: a\n    limits: %s\n",
		    rows[i].limits);
		prog_policy(&prog, policy);
		while (!(t->kind & PACER_LIMITER_FLEET) && t < rule->limiter + rule->n_limiters - 1)
			t++;
		assert_true(t->kind & PACER_LIMITER_FLEET);
		share = &prog.control->share[t->share];
		memset(share, 0, sizeof(*share));
		judged(policy, &udp4, XDP_DROP, 1, PACER_DENY_SHARE);
		share->word = pacer_share_word(pacer_limiter_kind_of(t) == PACER_LIMITER_RATE
						   ? pacer_share_of_time(t->rate.unit_ns * 4, 0)
						   : 2,
					       PACER_SHARE_END_MAX);
		judged(policy, &udp4, XDP_DROP, 1, PACER_DENY_SHARE); /* it is another limit's */
		share->id = t->share_id;
		judged(policy, &udp4, XDP_PASS, 1, PACER_ADMIT);
		judged(policy, &udp4, XDP_PASS, 1, PACER_ADMIT);
		judged(policy, &udp4, XDP_DROP, 1, rows[i].then);
		if (pacer_limiter_kind_of(t) != PACER_LIMITER_RATE) { /* it grows */
			share->word = pacer_share_word(3, PACER_SHARE_END_MAX);
			judged(policy, &udp4, XDP_PASS, 1, PACER_ADMIT);
			judged(policy, &udp4, XDP_DROP, 1, rows[i].then);
		}
		share->word = pacer_share_word(2, 1);
		judged(policy, &udp4, XDP_DROP, 1, PACER_DENY_SHARE);
		share->floor = 1;
		if (pacer_limiter_kind_of(t) != PACER_LIMITER_RATE)
			judged(policy, &udp4, XDP_DROP, 1, rows[i].then);
		memset(share, 0, sizeof(*share));
	}
}

/*
 * A fleet's limit has a share, and lanes, of its own: those of another place admit nothing of it,
 * whatever they say.
 */
static void test_lanes(void **unused)
{
	struct pacer_limiter *t = &prog.copy[0].policy.rule[0].limiter[0];
	struct pacer_share *first = &prog.control->share[0], *mine;
	struct pacer_lanes *lanes;
	struct recipe other = udp4;

	(void)unused;
	other.saddr[0]++;
	prog_policy(&prog, "fleet: {store: 'http://a', name: f}\nrules:\n  - name: a\n"
			   "    limits: [{key: src, packets: 9, window: 1h, fleet: yes}]\n");
	assert_int_not_equal(t->share, 0);
	mine = &prog.control->share[t->share];
	lanes = &prog.control->lanes[t->share];
	first->id = t->share_id;
	first->word = pacer_share_word(9, PACER_SHARE_END_MAX);
	judged("by another's share", &udp4, XDP_DROP, 1, PACER_DENY_SHARE);
	mine->id = t->share_id;
	mine->word = pacer_share_word(1, PACER_SHARE_END_MAX);
	judged("by its own", &udp4, XDP_PASS, 1, PACER_ADMIT);
	judged("more", &udp4, XDP_DROP, 1, PACER_DENY_WINDOW);
	lanes->key[PACER_WORD_SADDR][0] = udp4.saddr[0];
	lanes->key[PACER_KEY_WORDS][0] = PACER_FAMILY_4;
	lanes->word[0] = pacer_share_word(2, PACER_SHARE_END_MAX);
	lanes->used = 1;
	judged("by its lane", &udp4, XDP_PASS, 1, PACER_ADMIT);
	judged("more than its lane", &udp4, XDP_DROP, 1, PACER_DENY_WINDOW);
	judged("beside the lane", &other, XDP_PASS, 1, PACER_ADMIT);
	judged("beside the lane, more", &other, XDP_DROP, 1, PACER_DENY_WINDOW);
	memset(lanes, 0, sizeof(*lanes));
	memset(first, 0, sizeof(*first));
	memset(mine, 0, sizeof(*mine));
	prog_policy(&prog, ONE("src"));
}

/* Every reason there is, and what raises it. */
static const struct {
	enum pacer_reason reason;
	const char *how;
	void (*raise)(void);
} reasons[] = {
    {PACER_ADMIT, "the first packet of a source", raise_admit},
    {PACER_NO_RULE, "udp, where the rule is of tcp", raise_no_rule},
    {PACER_ALLOWED, "a source of the allow-list, where it has not expired", raise_allowed},
    {PACER_NOT_IP, "ARP", raise_not_ip},
    {PACER_TRUNCATED, "a frame cut within its header", raise_truncated},
    {PACER_BAD_HEADER, "a datagram longer than its frame", raise_bad_header},
    {PACER_TOO_DEEP, "seventeen tags", raise_too_deep},
    {PACER_DENY_GAP, "the second packet within an hour", raise_gap},
    {PACER_DENY_WINDOW, "one more than the limit within an hour", raise_window},
    {PACER_DENY_RATE, "one more than the burst at once", raise_rate},
    {PACER_DENY_THROTTLE, "one more than the uses within an hour", raise_throttle},
    {PACER_DENY_SHARE, "a fleet's limit of which there is no share", raise_share},
    {PACER_DENY_BAN, "a packet more after the one that was denied", raise_ban},
    {PACER_DENY_CONTENDED, "a claim that is never let go", raise_contended},
    {PACER_DENY_NO_STATE, "a tier beyond the table", raise_no_state},
    {PACER_DENY_VERDICT, "of a rule, and of packets of none", raise_verdict},
};

static void test_every_reason(void **unused)
{
	uint32_t r;
	size_t i;

	(void)unused;
	for (r = 0; r < PACER_REASON_COUNT; r++) {
		for (i = 0; i < ARRAY(reasons) && reasons[i].reason != r; i++)
			;
		if (i == ARRAY(reasons))
			fail_msg("%s: nothing raises it: add it to the table", reason_names[r]);
		prog.reasons_seen[r] = 0;
		reasons[i].raise();
		if (!prog.reasons_seen[r])
			fail_msg("%s: \"%s\" did not raise it", reason_names[r], reasons[i].how);
	}
}

/* ---- what befalls a denied packet beside ---- */

#define POOL(targets, each)                                                                \
	"rules:\n  - name: a\n    limits: [{key: src, packets: 1, window: 1h}]\n"          \
	"    over: pool p\npools:\n  - {name: p, targets: [" targets "], each: " each ", " \
	"cooldown: 1h, max_cooldown: 2h, threshold: 1}\n"

#define TWO_DEVICES POOL("lo, t1", "2")

/* Both targets are there: redirection goes no further under test_run. */
static void pool_policy(const char *text)
{
	uint32_t k, lo = 1;

	prog_policy(&prog, text);
	for (k = 0; k < 2; k++)
		assert_int_equal(bpf_map_update_elem(prog.devices_fd, &k, &lo, BPF_ANY), 0);
	expect_event(text, &udp4, XDP_PASS, PACER_ADMIT, PACER_EVENT_COUNT);
}

static void over(const char *what, uint32_t event)
{
	expect_event(what, &udp4, event == PACER_REDIRECTED ? XDP_REDIRECT : XDP_DROP,
		     PACER_DENY_WINDOW, event);
}

static void raise_banned(void)
{
	prog_policy(&prog, BANS("{key: src, gap: 1h}"));
	expect_event("a gap", &udp4, XDP_PASS, PACER_ADMIT, PACER_EVENT_COUNT);
	expect_event("a gap", &udp4, XDP_DROP, PACER_DENY_GAP, PACER_BANNED);
	prog_policy(&prog,
		    BANS("{key: all, packets: 1, window: 1h}, {key: src, packets: 1, window: "
			 "1h}"));
	expect_event("all together", &udp4, XDP_PASS, PACER_ADMIT, PACER_EVENT_COUNT);
	expect_event("all together", &udp4, XDP_DROP, PACER_DENY_WINDOW, PACER_EVENT_COUNT);
	prog_policy(&prog, BANS("{key: src, packets: 9, window: 1h}, {key: all, uses: 1, cooldown: "
				"1h}"));
	expect_event("by a throttle", &udp4, XDP_PASS, PACER_ADMIT, PACER_EVENT_COUNT);
	expect_event("by a throttle", &udp4, XDP_DROP, PACER_DENY_THROTTLE, PACER_EVENT_COUNT);
}

/* No room, no filter, no table, and entries that others hold: denied as before, never banned. */
static void raise_bans_full(void)
{
	struct pacer_bans *bans = &prog.copy[0].policy.bans;
	struct recipe r = udp4;
	uint32_t k;

	prog_policy(&prog, "bans: 4\nrules:\n  - name: a\n    ban: 1h\n    limits: [{key: src, "
			   "packets: 1, window: 1h}]\n");
	assert_int_equal(bans->sets, 1);
	for (k = 0; k < 6; k++, r.saddr[0]++) {
		expect_event("first", &r, XDP_PASS, PACER_ADMIT, PACER_EVENT_COUNT);
		expect_event("second", &r, XDP_DROP, PACER_DENY_WINDOW,
			     k < PACER_BAN_WAYS ? PACER_BANNED : PACER_BANS_FULL);
		expect_event("third", &r, XDP_DROP,
			     k < PACER_BAN_WAYS ? PACER_DENY_BAN : PACER_DENY_WINDOW,
			     k < PACER_BAN_WAYS ? PACER_EVENT_COUNT : PACER_BANS_FULL);
	}
	for (k = 0; k < 3; k++) {
		prog_policy(&prog, BANS("{key: src, packets: 1, window: 1h}"));
		expect_event("first", &udp4, XDP_PASS, PACER_ADMIT, PACER_EVENT_COUNT);
		for (uint32_t i = 0; k == 2 && i < bans->sets * PACER_BAN_WAYS; i++)
			prog.lines[bans->base + i].ban_lock |= PACER_LOCK_HELD;
		*(k ? &bans->base : &bans->filter) = k == 2 ? bans->base : prog.n_lines;
		expect_event("second", &udp4, XDP_DROP, PACER_DENY_WINDOW, PACER_BANS_FULL);
		expect_event("third", &udp4, XDP_DROP, PACER_DENY_WINDOW, PACER_BANS_FULL);
	}
}

static void raise_redirected(void)
{
	struct bpf_cpumap_val value = {.qsize = 16};
	uint32_t k, cpu = 0;

	pool_policy(TWO_DEVICES);
	for (k = 0; k < 4; k++)
		over("a device", PACER_REDIRECTED);
	over("a device", PACER_POOL_SPENT);
	pool_policy(POOL("'cpu:0'", "1"));
	assert_int_equal(bpf_map_update_elem(prog.cpus_fd, &cpu, &value, BPF_ANY), 0);
	over("a CPU", PACER_REDIRECTED);
	over("a CPU", PACER_POOL_SPENT);
}

static void raise_pool_spent(void)
{
	struct pacer_pool *pool = &prog.copy[0].policy.pool[0];

	pool_policy(TWO_DEVICES);
	pool->n = 0;
	over("no targets", PACER_POOL_SPENT);
	pool_policy(TWO_DEVICES);
	pool->state[0] = pool->state[1] = PACER_THROTTLES;
	over("their throttles are not there", PACER_POOL_SPENT);
	pool_policy(TWO_DEVICES);
	prog.throttle[pool->state[0]].lock |= PACER_LOCK_HELD;
	over("the first is held, and it is the second's turn", PACER_REDIRECTED);
	over("the first is held, and it is the second's turn", PACER_REDIRECTED);
	over("the first is held, and the second is spent", PACER_POOL_SPENT);
	pool_policy(TWO_DEVICES);
	memset(&pool->throttle, 0, sizeof(pool->throttle));
	over("a throttle that was never configured", PACER_POOL_SPENT);
}

static void raise_target_gone(void)
{
	struct pacer_pool *pool = &prog.copy[0].policy.pool[0];
	uint32_t at = 0, cpu = 0;

	pool_policy(TWO_DEVICES);
	assert_int_equal(bpf_map_delete_elem(prog.devices_fd, &at), 0);
	over("the first is gone", PACER_TARGET_GONE);
	over("the second is there", PACER_REDIRECTED);
	over("the first is gone", PACER_TARGET_GONE);
	over("the second is there", PACER_REDIRECTED);
	over("the first has had its uses all the same", PACER_POOL_SPENT);
	pool_policy(POOL("'cpu:0'", "2"));
	(void)bpf_map_delete_elem(prog.cpus_fd, &cpu);
	over("a CPU that is not in the map", PACER_TARGET_GONE);
	pool->target[0] = 1 << 20;
	over("a CPU beyond the map", PACER_TARGET_GONE);
	pool_policy(POOL("'xsk:0', 'xsk:63'", "1"));
	over("a socket that nobody has put in", PACER_TARGET_GONE);
	pool->target[1] = 1 << 20;
	over("a socket beyond the map", PACER_TARGET_GONE);
	pool_policy(TWO_DEVICES);
	pool->kind = 3;
	over("a target of no kind", PACER_TARGET_GONE);
}

static const char *const event_names[] = {
#define EVENT_NAME(name, id, text) #name,
    PACER_EVENTS(EVENT_NAME)
#undef EVENT_NAME
};

/* Every event there is, in its order. */
/* Its ports are not reached: by more headers than are followed, or by the first buffer's end. Then
 * one rule is as good as another, be it of another protocol, and the key has the addresses alone.
 */
static void raise_read_in_part(void)
{
	static const char *const keys[] = {"flow", "src", "src+dport"};
	struct recipe deep = udp6, other = udp6, far = udp6, far4 = udp4;
	char policy[300];
	size_t i;

	deep.n_ext = other.n_ext = 9;
	memset(deep.ext, 60, sizeof(deep.ext));
	memset(other.ext, 43, sizeof(other.ext));
	other.sport++;
	other.dport++;
	other.proto = 6;
	far.n_ext = 3;
	memset(far.ext, 60, sizeof(far.ext));
	far.ext_len = 255;
	far4.proto = 1;
	for (i = 0; i < ARRAY(keys); i++) {
		snprintf(policy, sizeof(policy),
			 "clock: exact\nrules:\n  - name: one\n    match: {proto: sctp, dport: 7}\n"
			 "    limits: [{key: %s, packets: 1, window: 1h}]\n",
			 keys[i]);
		prog_policy(&prog, policy);
		expect_event(policy, &deep, XDP_PASS, PACER_ADMIT, PACER_READ_IN_PART);
		expect_event(policy, &deep, XDP_DROP, PACER_DENY_WINDOW, PACER_READ_IN_PART);
		expect_event(policy, &other, XDP_DROP, PACER_DENY_WINDOW, PACER_READ_IN_PART);
		expect_event(policy, &far, XDP_DROP, PACER_DENY_WINDOW, PACER_READ_IN_PART);
		judged("no part of one", &udp6, XDP_PASS, PASS, PACER_NO_RULE);
		judged("no part of one", &far4, XDP_PASS, PASS, PACER_NO_RULE);
		deep.saddr[1]++; /* the /64 */
		expect_event("another address", &deep, XDP_PASS, PACER_ADMIT, PACER_READ_IN_PART);
		deep.saddr[1]--;
	}
	far.n_ext = 2; /* its protocol is in the first buffer */
	prog_policy(&prog, "rules:\n" RULE("udp", "proto: udp, dport: 7"));
	expect_event("udp, its ports beyond the buffer", &far, XDP_PASS, PACER_ADMIT,
		     PACER_READ_IN_PART);
	far.proto = 6;
	judged("tcp, its ports beyond the buffer", &far, XDP_PASS, PASS, PACER_NO_RULE);
}

static void (*const raise_event[])(void) = {
    [PACER_BANNED] = raise_banned,	     [PACER_BANS_FULL] = raise_bans_full,
    [PACER_REDIRECTED] = raise_redirected,   [PACER_POOL_SPENT] = raise_pool_spent,
    [PACER_TARGET_GONE] = raise_target_gone, [PACER_READ_IN_PART] = raise_read_in_part,
};

static void test_every_event(void **unused)
{
	uint32_t e;

	(void)unused;
	for (e = 0; e < PACER_EVENT_COUNT; e++) {
		if (e >= ARRAY(raise_event) || !raise_event[e])
			fail_msg("%s: nothing raises it: add it to the table", event_names[e]);
		prog.events_seen[e] = 0;
		raise_event[e]();
		if (!prog.events_seen[e])
			fail_msg("%s: it was not raised", event_names[e]);
	}
}

/* ---- the second pool ---- */

/* Verdict, counter and event alone: the counter is that of any rule, or of none. */
static void expect_sent(const char *what, const struct recipe *r, uint32_t verdict,
			uint32_t counter, uint32_t event)
{
	static struct frame f;
	struct prog_judged judged;

	frame_build(&f, r);
	judged = prog_judged(&prog, f.b, f.n);
	if (judged.verdict != verdict || judged.counter != counter ||
	    pacer_outcome_event(judged.outcome) != event)
		fail_msg("%s: verdict %u, counter %u, event %u; not %u, %u, %u", what,
			 judged.verdict, judged.counter, pacer_outcome_event(judged.outcome),
			 verdict, counter, event);
}

/*
 * Two rules with a pool each: what is over the second's limits goes to the second pool's target, by
 * its uses and in its turn, as does what is under no rule and is said to go there. Else a user's
 * packets would go to whomever the first pool names, or would be dropped because that one is spent.
 */
static void second_pool(const char *over_first, uint32_t event_first)
{
	uint32_t p = pacer_target_index(0, 0, 0), q = pacer_target_index(0, 1, 0), lo = 1;
	struct recipe tcp = udp4, other = udp4;
	char policy[600];

	tcp.proto = 6;
	other.proto = 47;
	snprintf(policy, sizeof(policy),
		 "else: pool q\nrules:\n"
		 "  - name: a\n    match: {proto: udp}\n    over: %s\n"
		 "    limits: [{key: src, packets: 1, window: 1h}]\n"
		 "  - name: b\n    match: {proto: tcp}\n    over: pool q\n"
		 "    limits: [{key: src, packets: 1, window: 1h}]\n"
		 "pools:\n  - {name: p, targets: [t1], each: 900, cooldown: 1h, "
		 "max_cooldown: 2h, threshold: 9}\n"
		 "  - {name: q, targets: [lo], each: 2, cooldown: 1h, max_cooldown: 2h, "
		 "threshold: 1}\n",
		 over_first);
	prog_policy(&prog, policy);
	(void)bpf_map_delete_elem(prog.devices_fd, &p);
	assert_int_equal(bpf_map_update_elem(prog.devices_fd, &q, &lo, BPF_ANY), 0);
	expect_sent("first", &udp4, XDP_PASS, 1, PACER_EVENT_COUNT);
	expect_sent("over the first", &udp4, XDP_DROP, 1, event_first);
	expect_sent("second", &tcp, XDP_PASS, 2, PACER_EVENT_COUNT);
	expect_sent("over the second", &tcp, XDP_REDIRECT, 2, PACER_REDIRECTED);
	expect_sent("over the first again", &udp4, XDP_DROP, 1, event_first);
	expect_sent("under no rule", &other, XDP_REDIRECT, PASS, PACER_REDIRECTED);
	expect_sent("over the second, spent", &tcp, XDP_DROP, 2, PACER_POOL_SPENT);
	expect_sent("under no rule, spent", &other, XDP_DROP, PASS, PACER_POOL_SPENT);
	assert_int_equal(bpf_map_delete_elem(prog.devices_fd, &q), 0);
}

static void test_second_pool(void **unused)
{
	(void)unused;
	second_pool("pool p", PACER_TARGET_GONE);
	second_pool("drop", PACER_EVENT_COUNT);
}

/* What the CPUs have on lease of a pool, all together. */
static uint32_t on_lease(uint32_t index)
{
	static struct pacer_pool_lease of[PROG_CPUS];
	uint32_t left = 0, cpu;

	assert_int_equal(bpf_map_lookup_elem(prog.pool_leases_fd, &index, of), 0);
	for (cpu = 0; cpu < prog.cpus; cpu++)
		left += of[cpu].lease.left;
	return left;
}

/*
 * A lease is of a copy's pool. A tool that writes a policy into the other copy empties the leases
 * of that one: by those of the copy before, the new pool's targets would have packets that are not
 * booked to them.
 */
static void test_lease_of_the_copy(void **unused)
{
#define LEASED(name)                                               \
	"else: pool " name "\nrules: []\npools:\n  - {name: " name \
	", targets: [lo], each: 100000, "                          \
	"cooldown: 1h, max_cooldown: 2h, threshold: 20000}\n"
	uint32_t first = pacer_target_index(0, 0, 0), second = pacer_target_index(1, 0, 0), lo = 1;
	uint32_t left;

	(void)unused;
	prog_policy(&prog, LEASED("p"));
	prog_compile(&prog, LEASED("q"), &prog.copy[1].policy);
	assert_int_equal(bpf_map_update_elem(prog.devices_fd, &first, &lo, BPF_ANY), 0);
	assert_int_equal(bpf_map_update_elem(prog.devices_fd, &second, &lo, BPF_ANY), 0);
	expect_sent("by copy 0", &udp4, XDP_REDIRECT, PASS, PACER_REDIRECTED);
	left = on_lease(0);
	assert_true(left > 0);
	assert_int_equal(on_lease(PACER_POOLS_MAX), 0);
	prog.control->in_force = 1;
	expect_sent("by copy 1", &udp4, XDP_REDIRECT, PASS, PACER_REDIRECTED);
	prog.control->in_force = 0;
	assert_int_equal(on_lease(0), left);
	assert_true(on_lease(PACER_POOLS_MAX) > 0);
	assert_int_equal(bpf_map_delete_elem(prog.devices_fd, &second), 0);
#undef LEASED
}

/* ---- what is done with a denied packet ---- */

static void test_monitor_and_over(void **unused)
{
	static const struct {
		const char *mode, *over;
		uint32_t verdict;
	} rows[] = {{"enforce", "drop", XDP_DROP},
		    {"enforce", "pass", XDP_PASS},
		    {"monitor", "drop", XDP_PASS},
		    {"monitor", "pass", XDP_PASS}};
	char policy[300];
	size_t i;

	(void)unused;
	for (i = 0; i < ARRAY(rows); i++) {
		snprintf(policy, sizeof(policy),
			 "mode: %s\nrules:\n  - name: a\n    limits: [{key: src, packets: 1, "
			 "window: 1h}]\n    over: %s\n",
			 rows[i].mode, rows[i].over);
		prog_policy(&prog, policy);
		judged(policy, &udp4, XDP_PASS, 1, PACER_ADMIT);
		judged(policy, &udp4, rows[i].verdict, 1, PACER_DENY_WINDOW);
	}
	pool_policy("mode: monitor\n" TWO_DEVICES);
	expect_event("monitor, pool", &udp4, XDP_PASS, PACER_DENY_WINDOW, PACER_EVENT_COUNT);
}

/* The first rule that matches counts, and the second's state is its own. */
static void test_first_rule(void **unused)
{
	struct recipe tcp = udp4;

	(void)unused;
	tcp.proto = 6;
	prog_policy(&prog, "rules:\n"
			   "  - name: udp\n    match: {proto: udp}\n"
			   "    limits: [{key: all, packets: 1, window: 1h}]\n"
			   "  - name: rest\n    limits: [{key: all, packets: 1, window: 1h}]\n");
	judged("udp", &udp4, XDP_PASS, 1, PACER_ADMIT);
	judged("udp", &udp6, XDP_DROP, 1, PACER_DENY_WINDOW);
	judged("tcp", &tcp, XDP_PASS, 2, PACER_ADMIT);
	judged("tcp", &tcp, XDP_DROP, 2, PACER_DENY_WINDOW);
}

/* A denial by one limit charges no other: the second's window is whole when it is asked alone. */
static void test_denial_charges_no_other(void **unused)
{
	struct recipe other = udp4;
	int i;

	(void)unused;
	other.saddr[0]++;
	prog_policy(&prog, "rules:\n  - name: a\n    limits:\n"
			   "      - {key: src, packets: 1, window: 1h}\n"
			   "      - {key: dst, packets: 2, window: 1h}\n");
	judged("1 of dst", &udp4, XDP_PASS, 1, PACER_ADMIT);
	for (i = 0; i < 10; i++)
		judged("src is over", &udp4, XDP_DROP, 1, PACER_DENY_WINDOW);
	judged("2 of dst", &other, XDP_PASS, 1, PACER_ADMIT);
	other.saddr[0]++;
	judged("dst is over", &other, XDP_DROP, 1, PACER_DENY_WINDOW);
}

/* What has no ports is of no rule that asks for some, be it for all there are: nor is its later
 * fragment of IPv4, while one of a protocol with ports, or any of IPv6, is of any such rule.
 */
static void test_no_ports(void **unused)
{
	static const char *const matches[] = {"dport: 0-65535", "sport: 0", "dport: [0-9, 53]"};
	static const uint8_t without[] = {1, 2, 47, 50, 58};
	struct recipe r4 = udp4, r6 = udp6;
	char policy[300];
	size_t i, k;

	(void)unused;
	for (i = 0; i < ARRAY(matches); i++) {
		snprintf(policy, sizeof(policy), "rules:\n" RULE("ports", "%s"), matches[i]);
		prog_policy(&prog, policy);
		for (k = 0; k < ARRAY(without); k++) {
			r4.proto = r6.proto = without[k];
			r4.frag = 0;
			r6.n_ext = 0;
			judged(matches[i], &r4, XDP_PASS, PASS, PACER_NO_RULE);
			judged(matches[i], &r6, XDP_PASS, PASS, PACER_NO_RULE);
			r4.frag = 0x2001;
			r6.n_ext = 1;
			r6.ext[0] = 44;
			r6.frag = 9;
			judged(matches[i], &r4, XDP_PASS, PASS, PACER_NO_RULE);
			judged(matches[i], &r6, XDP_PASS, 1, PACER_ADMIT);
		}
		r4.proto = r6.proto = 17;
		judged(matches[i], &r4, XDP_PASS, 1, PACER_ADMIT);
		judged(matches[i], &r6, XDP_PASS, 1, PACER_ADMIT);
		r4.frag = 0;
		r4.sport = r4.dport = 0;
		judged(matches[i], &r4, XDP_PASS, 1, PACER_ADMIT);
	}
}

/* ---- with no Ethernet header ---- */

/* The rows of a packet's ways, from its IP header on, in an object that was told so. */
static void test_raw_ip(void **unused)
{
	struct pacer_bpf *skel = pacer_bpf__open();
	struct prog ethernet = prog;
	static struct frame f;
	uint32_t tried = 0;
	size_t i;

	(void)unused;
	assert_non_null(skel);
	skel->rodata_built->pacer_built.raw_ip = 1;
	prog_load(&prog, skel->obj, PROG_LINES);
	prog_policy(&prog, fields);
	for (i = 0; i < ARRAY(ways); i++) {
		struct recipe r = way(i);

		if (!r.family || r.tag[0])
			continue;
		frame_build(&f, &r);
		judged_bytes(ways[i].what, f.b + f.l3, f.n - f.l3, XDP_PASS, ways[i].counter,
			     ways[i].reason);
		tried++;
	}
	assert_true(tried > 30);
	frame_build(&f, &udp4);
	f.b[f.l3] = 0x55;
	judged_bytes("version 5", f.b + f.l3, f.n - f.l3, XDP_PASS, NONE, PACER_NOT_IP);
	f.b[f.l3] = 0x45;
	judged_bytes("cut short", f.b + f.l3, 19, XDP_DROP, NONE, PACER_TRUNCATED);
	judged_bytes("a byte short", f.b + f.l3, f.n - f.l3 - 1, XDP_DROP, NONE, PACER_BAD_HEADER);
	memcpy(f.b + f.l3 + 12, "\x08\0\x45\0\0\x1c", 6); /* Ethernet's type, in the source */
	judged_bytes("from 8.0.69.0", f.b + f.l3, f.n - f.l3, XDP_PASS, NONE, PACER_NO_RULE);
	pacer_bpf__destroy(skel);
	prog = ethernet;
}

/* ---- many buffers ---- */

static void test_multi_buffer(void **unused)
{
	struct recipe r4 = udp4, r6 = udp6;
	static struct frame f;

	(void)unused;
	r4.payload = 8000;
	prog_policy(&prog, "unparsed: drop\nrules:\n  - name: a\n    limits: [{key: src, bytes: "
			   "16084, window: 1h}]\n");
	judged("8034 bytes", &r4, XDP_PASS, 1, PACER_ADMIT);
	r4.payload = 8016;
	judged("8050 bytes make 16084", &r4, XDP_PASS, 1, PACER_ADMIT);
	judged("a byte over", &r4, XDP_DROP, 1, PACER_DENY_WINDOW);
	r6.n_ext = 2;
	r6.ext[0] = r6.ext[1] = 60;
	r6.ext_len = 255;
	r6.payload = 8;
	judged("two headers of 2048, the ports in the second buffer", &r6, XDP_PASS, 1,
	       PACER_ADMIT);
	r6.n_ext = 1;
	r6.payload = 8 + 2048;
	judged("one header of 2048, the ports in the first", &r6, XDP_PASS, 1, PACER_ADMIT);
	frame_build(&f, &r4);
	judged_bytes("a datagram longer than the buffers", f.b, f.n - 1, XDP_DROP, PASS,
		     PACER_BAD_HEADER);
}

/* ---- the copies of the policy, and the object with no tool at all ---- */

static void test_copy_in_force(void **unused)
{
	static const char *const other = "rules: []\n";
	uint64_t now_ns = monotonic_ns();

	(void)unused;
	prog_policy(&prog, ONE("src"));
	prog_compile(&prog, other, &prog.copy[1].policy);
	judged("copy 0", &udp4, XDP_PASS, 1, PACER_ADMIT);
	prog.control->in_force = 1;
	judged("copy 1", &udp4, XDP_PASS, PASS, PACER_NO_RULE);
	prog.control->in_force = (now_ns + 3600000000000ull) << 1 | 1;
	judged("copy 1 for an hour", &udp4, XDP_PASS, PASS, PACER_NO_RULE);
	prog.control->in_force = now_ns << 1 | 1;
	judged("copy 0, as 1 was not confirmed", &udp4, XDP_DROP, 1, PACER_DENY_WINDOW);
	prog.control->in_force = now_ns << 1;
	judged("copy 1, as 0 was not confirmed", &udp4, XDP_PASS, PASS, PACER_NO_RULE);
	prog.control->in_force = 0;
}

/*
 * Every way of a packet is by the copy in force: the second has the policy, and the first the same
 * with more packets.
 */
static void test_ways_of_the_second_copy(void **unused)
{
#define WINDOW "{key: src, packets: %u, window: 1h}"
	static const struct {
		const char *policy;
		uint32_t verdict;
		bool allowed; /* a source, by the list of this copy */
	} rows[] = {
	    {"rules:\n  - {name: a, limits: [" WINDOW "]}\n", XDP_DROP, false},
	    {"rules:\n  - {name: a, limits: [" WINDOW "]}\n", XDP_DROP, true},
	    {"rules:\n  - {name: a, over: pass, limits: [" WINDOW "]}\n", XDP_PASS, false},
	    {"sample: {of: all, k: 9, packets: 9}\nrules:\n  - {name: a, limits: [" WINDOW "]}\n",
	     XDP_DROP, false},
	    {"rules:\n  - {name: a, limits: [" WINDOW ", {key: dst, packets: 9, window: 1h}]}\n",
	     XDP_DROP, false},
	    {"rules:\n  - {name: a, match: {proto: udp}, over: pass, limits: [" WINDOW "]}\n"
	     "  - {name: b, limits: [" WINDOW "]}\n",
	     XDP_PASS, false},
	};
	static const uint8_t other[4] = {198, 51, 100, 9};

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		struct pacer_policy *second = &prog.copy[1].policy;
		char policy[300];

		snprintf(policy, sizeof(policy), rows[i].policy, 1000, 1000);
		prog_policy(&prog, policy);
		snprintf(policy, sizeof(policy), rows[i].policy, 1, 1);
		prog_compile(&prog, policy, second);
		prog.control->allowed[1].any = rows[i].allowed;
		if (rows[i].allowed)
			allow(1, 4, other, 32, 0, 1);
		prog.control->allowed[0].any = 0;
		pacer_short_reshape(&prog.copy[0].policy, prog.control, 0);
		pacer_short_arm(second, prog.control, 1);
		judged("by the first copy", &udp4, XDP_PASS, 1, PACER_ADMIT);
		judged("by the first copy", &udp4, XDP_PASS, 1, PACER_ADMIT);
		prog_clear(&prog);
		prog.control->in_force = 1;
		judged(policy, &udp4, XDP_PASS, 1, PACER_ADMIT);
		judged(policy, &udp4, rows[i].verdict, 1, PACER_DENY_WINDOW);
		prog.control->in_force = 0;
		if (rows[i].allowed)
			allow(1, 4, other, 32, 0, 0);
		prog.control->allowed[0].any = prog.control->allowed[1].any = 0;
	}
	prog_policy(&prog, ONE("src"));
#undef WINDOW
}

/* So is that of a limit which a fleet divides, beside more than its rule: by the tighter of two. */
static void test_part_of_the_second_copy(void **unused)
{
#define SHARED(n)                                                                          \
	"fleet: {store: 'http://a', name: f}\nrules:\n  - {name: a, over: pass, limits: [" \
	"{key: src, packets: " #n ", window: 1h, fleet: yes}]}\n"
	struct pacer_policy *second = &prog.copy[1].policy;
	const struct pacer_limiter *t = &second->rule[0].limiter[0];
	struct pacer_share *share;

	(void)unused;
	prog_policy(&prog, SHARED(100));
	prog_compile(&prog, SHARED(2), second);
	share = &prog.control->share[t->share];
	memset(share, 0, sizeof(*share));
	share->word = pacer_share_word(5, PACER_SHARE_END_MAX);
	share->id = t->share_id;
	pacer_short_arm(second, prog.control, 1);
	assert_true(second->shape & PACER_SHORT_PART && second->shape & PACER_SHORT_OVER);
	prog.control->in_force = 1;
	judged("of the second", &udp4, XDP_PASS, 1, PACER_ADMIT);
	judged("of the second", &udp4, XDP_PASS, 1, PACER_ADMIT);
	judged("of the second", &udp4, XDP_PASS, 1, PACER_DENY_WINDOW);
	prog.control->in_force = 0;
	memset(share, 0, sizeof(*share));
	prog_policy(&prog, ONE("src"));
#undef SHARED
}

/* A limit's keys are where the secret that it names puts them, in each way of a packet. */
static void test_second_secret(void **unused)
{
	static const char *const policies[] = {ONE("src"), ONE("flow"), ONE("src+dport"),
					       ONE_OF_TWO};
	const struct recipe *const packets[] = {&udp4, &udp6};

	(void)unused;
	for (size_t i = 0; i < 2 * ARRAY(policies); i++) {
		const struct recipe *r = packets[i % 2];
		struct pacer_policy *policy = &prog.copy[0].policy;

		prog_policy(&prog, policies[i / 2]);
		judged(policies[i / 2], r, XDP_PASS, 1, PACER_ADMIT);
		judged(policies[i / 2], r, XDP_DROP, 1, PACER_DENY_WINDOW);
		for (uint32_t k = 0; k < policy->rule[0].n_limiters; k++)
			policy->rule[0].limiter[k].secret = 1;
		pacer_short_arm(policy, prog.control, 0);
		judged("under the second secret", r, XDP_PASS, 1, PACER_ADMIT);
		judged("under the second secret", r, XDP_DROP, 1, PACER_DENY_WINDOW);
	}
}

/*
 * Which bits of the words of secrets drawn by the object have been 1: each may be, and no two words
 * are the same. Who knew some of the bits would need fewer tries to find sources that meet in one
 * place of the table, and deny each other.
 */
static void assert_drawn_widely(void)
{
	static const struct {
		uint32_t from, to;
	} parts[] = {{0, 20}, {20, 40}, {40, 60}, {60, 64}};
	enum { LOADS = 3, WORDS = LOADS * (int)PACER_SECRETS };
	uint64_t word[WORDS], any = 0;
	static struct frame f;
	int n, i, k;

	frame_build(&f, &udp4);
	for (n = 0; n < LOADS; n++) {
		struct pacer_bpf *skel = pacer_bpf__open_and_load();
		struct prog as_built;

		assert_non_null(skel);
		prog_open(&as_built, skel->obj);
		(void)prog_judged(&as_built, f.b, f.n);
		for (i = 0; i < (int)PACER_SECRETS; i++)
			word[n * (int)PACER_SECRETS + i] = as_built.control->secret[0][i];
		pacer_bpf__destroy(skel);
	}
	for (i = 0; i < WORDS; i++) {
		any |= word[i];
		for (k = 0; k < i; k++)
			assert_int_not_equal(word[i], word[k]);
	}
	for (i = 0; i < (int)ARRAY(parts); i++)
		if (!(any << (64 - parts[i].to) >> (64 - parts[i].to) >> parts[i].from))
			fail_msg("no bit of %u to %u was ever drawn", parts[i].from,
				 parts[i].to - 1);
}

/* Loaded as it is: the built-in policy, and a secret of its own drawing. */
static void test_no_tool(void **unused)
{
	struct pacer_bpf *skel = pacer_bpf__open_and_load();
	struct prog as_built;
	static struct frame f;
	struct prog_judged judged;
	int i;

	(void)unused;
	assert_non_null(skel);
	prog_open(&as_built, skel->obj);
	frame_build(&f, &udp4);
	assert_int_equal(as_built.control->secret_ready, 0);
	judged = prog_judged(&as_built, f.b, f.n);
	assert_int_equal(judged.verdict, XDP_PASS);
	assert_int_equal(pacer_outcome_reason(judged.outcome), PACER_ADMIT);
	assert_int_equal(judged.counter, as_built.copy[0].policy.rule[0].counter);
	assert_int_equal(as_built.control->secret_ready, 1);
	judged = prog_judged(&as_built, f.b, 33);
	assert_int_equal(judged.verdict, XDP_DROP);
	assert_int_equal(pacer_outcome_reason(judged.outcome), PACER_TRUNCATED);
	for (i = 0; i < (int)PACER_SECRETS; i++)
		assert_int_not_equal(as_built.control->secret[0][i], 0);
	pacer_bpf__destroy(skel);
	assert_drawn_widely();
}

static int setup(void **state)
{
	struct pacer_bpf *skel;

	libbpf_set_print(prog_print);
	skel = pacer_bpf__open();
	assert_non_null(skel);
	prog_load(&prog, skel->obj, PROG_LINES);
	*state = skel;
	return 0;
}

static int teardown(void **state)
{
	pacer_bpf__destroy(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ways),
	    cmocka_unit_test(test_other_fields),
	    cmocka_unit_test(test_cut_at_every_byte),
	    cmocka_unit_test(test_lies),
	    cmocka_unit_test(test_keys),
	    cmocka_unit_test(test_fragment_keys),
	    cmocka_unit_test(test_every_reason),
	    cmocka_unit_test(test_tools),
	    cmocka_unit_test(test_ban_that_grows),
	    cmocka_unit_test(test_every_event),
	    cmocka_unit_test(test_second_pool),
	    cmocka_unit_test(test_lease_of_the_copy),
	    cmocka_unit_test(test_monitor_and_over),
	    cmocka_unit_test(test_first_rule),
	    cmocka_unit_test(test_denial_charges_no_other),
	    cmocka_unit_test(test_no_ports),
	    cmocka_unit_test(test_raw_ip),
	    cmocka_unit_test(test_multi_buffer),
	    cmocka_unit_test(test_copy_in_force),
	    cmocka_unit_test(test_ways_of_the_second_copy),
	    cmocka_unit_test(test_part_of_the_second_copy),
	    cmocka_unit_test(test_second_secret),
	    cmocka_unit_test(test_lanes),
	    cmocka_unit_test(test_no_tool),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
