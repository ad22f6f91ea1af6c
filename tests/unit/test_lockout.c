/* SPDX-License-Identifier: GPL-2.0-only */
/* Whom a policy would lock out: what is warned of, in which order, and what is not. */
#include "oracle.h"

#include "inspect/lockout.h"
#include "plan/compile.h"

#define ALLOWED "allow: [192.0.2.1, \"2001:db8::7\"]\n"
#define SET	"sets: [{name: s, of: [203.0.113.9, \"2001:db8::9\"]}]\n"
#define UDP	"  - {name: u, match: {proto: udp}, verdict: drop}\n"
#define ICMPV6	"  - {name: n, match: {proto: icmpv6}, verdict: pass}\n"
#define NEIGHBOURS                                                                                 \
	"  - {name: n, match: {icmpv6_type: [nd-neighbor-solicit, nd-neighbor-advert]}, verdict: " \
	"pass}\n"
#define LINK_LOCAL "  - {name: n, match: {src: \"fe80::/10\", proto: icmpv6}, verdict: pass}\n"
#define OWN_LINK                                                                               \
	"  - {name: n, match: {dst: [\"fe80::/10\", \"ff02::/16\"], proto: icmpv6}, verdict: " \
	"pass}\n"
#define RULES "rules:\n"

enum { DISCOVERY = 1, ROUTERS = 2, GLOBAL = 4, OWN = 8, SSH4 = 16, SSH6 = 32 };

static const char *const begins[] = {
    "neighbour discovery (icmpv6) is dropped: ",
    "router advertisements (icmpv6) are dropped: ",
    "neighbour discovery (icmpv6) from addresses other than fe80::/10 is dropped: ",
    "neighbour discovery (icmpv6) to addresses other than fe80::/10 and ff02::/16 is dropped: ",
    "SSH over IPv4 is dropped, and no host of IPv4 is on the allow-list: ",
    "SSH over IPv6 is dropped, and no host of IPv6 is on the allow-list: ",
};

/* Which are said; each once, in their order. */
static unsigned int warned_of(const char *text)
{
	const struct compile_host host = {1 << 20, 1, 2};
	struct policy_error error = {0};
	static struct pacer_policy bin;
	static struct plan plan;
	struct policy *policy = policy_parse(text, strlen(text), &error);
	unsigned int said = 0;
	const char *warning;

	if (!policy || compile_policy(policy, NULL, &host, &bin, &plan, &error))
		fail_msg("policy:%d: %s\n%s", error.line, error.text, text);
	for (size_t i = 0; (warning = lockout_warning(policy, &bin, i)); i++) {
		size_t w = 0;

		while (w < ARRAY(begins) && strncmp(warning, begins[w], strlen(begins[w])) != 0)
			w++;
		if (w == ARRAY(begins) || said >> w)
			fail_msg("not now: %s\n%s", warning, text);
		said |= 1u << w;
	}
	policy_free(policy);
	return said;
}

static const struct {
	const char *policy;
	unsigned int said;
} rows[] = {
    {"else: drop\n" RULES UDP, DISCOVERY | SSH4 | SSH6},
    {"else: pass\n" RULES UDP, 0},
    /* what follows a SYN is as needed as that */
    {"else: drop\n" RULES "  - {name: n, match: {proto: icmpv6}, verdict: pass}\n"
     "  - {name: t, match: {proto: tcp, flags: \"syn / syn,ack,fin,rst\"}, limits: [{key: src, "
     "rate: 20/s, burst: 20}]}\n",
     SSH4 | SSH6},
    {RULES "  - {name: t, match: {src: 0.0.0.0/0, flags: ack}, verdict: drop}\n", SSH4},
    /* who is on the list comes in, but nobody's neighbours are on it */
    {"else: drop\n" ALLOWED RULES UDP, DISCOVERY},
    {"else: drop\nallow: [\"@s\"]\n" SET RULES UDP, DISCOVERY},
    /* but where the list has all of them: then it is discovered */
    {"else: drop\nallow: [192.0.2.1, \"::/0\"]\n" RULES UDP, 0},
    {"else: drop\nallow: [192.0.2.1, \"fe80::/64\", \"2001:db8::/64\"]\n" RULES UDP, 0},
    {"else: drop\nallow: [192.0.2.1, \"fe80::/64\"]\n" RULES UDP, GLOBAL},
    {"else: drop\nallow: [192.0.2.1, \"fe80::/64\", \"2001:db8::5\"]\n" RULES UDP, GLOBAL},
    {"else: drop\nallow: [192.0.2.1, \"fe80::1\"]\n" RULES UDP, DISCOVERY},
    /* neighbours have other addresses, too */
    {"else: drop\n" ALLOWED RULES LINK_LOCAL, GLOBAL},
    {"else: drop\n" ALLOWED RULES LINK_LOCAL
     "  - {name: t, match: {src: \"2001:db8::/64\", proto: tcp}, verdict: pass}\n",
     GLOBAL},
    {"else: drop\n" ALLOWED RULES LINK_LOCAL
     "  - {name: t, match: {src: \"2001:db8::/64\", proto: icmpv6}, verdict: pass}\n",
     0},
    {"else: drop\n" ALLOWED RULES LINK_LOCAL
     "  - {name: t, match: {src: \"fe80::/64\", proto: tcp}, verdict: pass}\n",
     GLOBAL},
    {"else: pass\n" RULES "  - {name: b, match: {src: [\"3fff::/20\", \"2a00::/12\", "
     "\"100::/64\"]}, verdict: drop}\n",
     0},
    /* nobody knows who is in a set that lets through: but one for TCP, or to drop, does not */
    {"else: drop\n" ALLOWED SET RULES LINK_LOCAL, GLOBAL},
    {"else: drop\nallow: [192.0.2.1, \"2001:db8::7\", \"@s\"]\n" SET RULES LINK_LOCAL, 0},
    {"else: drop\n" ALLOWED SET RULES LINK_LOCAL
     "  - {name: t, match: {src: \"@s\"}, verdict: pass}\n",
     0},
    {"else: drop\n" ALLOWED SET RULES LINK_LOCAL
     "  - {name: t, match: {src: \"@s\", proto: [17, 50-60]}, verdict: pass}\n",
     0},
    {"else: drop\n" ALLOWED SET RULES LINK_LOCAL
     "  - {name: t, match: {src: \"@s\", dport: 22}, verdict: pass}\n",
     GLOBAL},
    {"else: drop\n" ALLOWED SET RULES LINK_LOCAL
     "  - {name: t, match: {src: \"@s\", proto: tcp}, verdict: pass}\n",
     GLOBAL},
    {"else: drop\n" ALLOWED SET RULES LINK_LOCAL
     "  - {name: t, match: {src: \"@s\"}, verdict: drop}\n",
     GLOBAL},
    {"else: pass\n" ALLOWED SET RULES LINK_LOCAL
     "  - {name: t, match: {src: \"!@s\"}, verdict: drop}\n",
     0},
    /* answers come to the address that asked, and who asks again asks that */
    {"else: drop\n" ALLOWED RULES OWN_LINK, OWN},
    {"else: drop\n" ALLOWED RULES "  - {name: n, match: {src: \"fe80::/10\", dst: "
     "[\"fe80::/10\", \"ff02::/16\"], proto: icmpv6}, "
     "verdict: pass}\n",
     GLOBAL},
    {"else: drop\nallow: [192.0.2.1, \"2001:db8::7\", \"@s\"]\n" SET RULES OWN_LINK, 0},
    {"else: drop\n" ALLOWED RULES OWN_LINK
     "  - {name: o, match: {dst: \"2001:db8::1\", proto: icmpv6}, verdict: pass}\n",
     0},
    {"else: drop\n" ALLOWED RULES OWN_LINK
     "  - {name: o, match: {dst: \"2001:db8::1\", icmpv6_type: nd-neighbor-advert}, verdict: "
     "pass}\n",
     OWN},
    {"else: drop\n" ALLOWED RULES OWN_LINK
     "  - {name: o, match: {dst: \"2001:db8::1\", icmpv6_type: nd-neighbor-solicit}, verdict: "
     "pass}\n",
     OWN},
    {"else: drop\n" ALLOWED RULES OWN_LINK
     "  - {name: o, match: {dst: \"2a00::/12\", proto: icmpv6}, verdict: pass}\n",
     0},
    {"else: drop\n" ALLOWED SET RULES OWN_LINK
     "  - {name: o, match: {dst: \"@s\"}, verdict: pass}\n",
     0},
    {"else: drop\n" ALLOWED SET RULES OWN_LINK
     "  - {name: o, match: {src: \"@s\"}, verdict: pass}\n",
     OWN},
    {"else: drop\nallow: [192.0.2.1, \"fe80::/10\", \"2001:db8::/64\"]\n" RULES UDP, 0},
    {"else: drop\nmode: monitor\n" RULES UDP, 0},
    {"else: drop\n" RULES UDP "  - {name: n, match: {proto: icmpv6}, verdict: pass}\n",
     SSH4 | SSH6},
    {"else: drop\n" RULES UDP "  - {name: n, match: {proto: tcp}, verdict: pass}\n", DISCOVERY},
    /* who is asked is answered, and one is as needed as the other */
    {"else: drop\n" ALLOWED RULES
     "  - {name: n, match: {icmpv6_type: nd-neighbor-solicit}, verdict: pass}\n",
     DISCOVERY},
    {"else: pass\n" RULES
     "  - {name: n, match: {icmpv6_type: nd-neighbor-advert}, verdict: drop}\n",
     DISCOVERY},
    {"else: pass\n" RULES UDP "  - {name: t, match: {proto: tcp, dport: 22}, verdict: drop}\n",
     SSH4 | SSH6},
    {"else: pass\n" ALLOWED RULES "  - {name: t, match: {proto: tcp, dport: 22}, verdict: drop}\n",
     0},
    /* a list lets in those of its family alone, and nobody where no host can be on it */
    {"else: drop\nallow: [192.0.2.1]\n" RULES ICMPV6, SSH6},
    {"else: drop\nallow: [\"2001:db8::7\"]\n" RULES ICMPV6, SSH4},
    {"else: drop\nallow: [127.0.0.1, \"::1\"]\n" RULES ICMPV6, SSH4 | SSH6},
    {"else: drop\nallow: [0.0.0.0/0, \"::/0\"]\n" RULES ICMPV6, 0},
    {"else: drop\nallow: [\"@s\"]\nsets: [{name: s, of: []}]\n" RULES ICMPV6, SSH4 | SSH6},
    {"else: drop\nallow: [\"@s\"]\nsets: [{name: s, of: [192.0.2.7]}]\n" RULES ICMPV6, SSH6},
    {"else: drop\nallow: [\"@s\"]\nsets: [{name: s, file: /etc/hosts.list}]\n" RULES ICMPV6, 0},
    {"else: drop\nfleet: {store: \"http://192.0.2.1:2379\", name: f}\nallow: [\"@s\"]\nsets: "
     "[{name: s, of: [], fleet: yes}]\n" RULES ICMPV6,
     0},
    /* routers are told from neighbours: they tell all, or who asks */
    {"else: drop\n" ALLOWED RULES NEIGHBOURS, ROUTERS},
    {"else: drop\n" ALLOWED RULES NEIGHBOURS
     "  - {name: r, match: {icmpv6_type: nd-router-advert, dst: \"ff02::/16\"}, verdict: pass}\n",
     ROUTERS},
    {"else: drop\n" ALLOWED RULES NEIGHBOURS
     "  - {name: r, match: {icmpv6_type: nd-router-advert, dst: \"fe80::/10\"}, verdict: pass}\n",
     ROUTERS},
    {"else: drop\n" ALLOWED RULES NEIGHBOURS
     "  - {name: r, match: {icmpv6_type: nd-router-advert}, verdict: pass}\n",
     0},
    {"else: drop\nallow: [192.0.2.1, \"fe80::/10\"]\n" RULES NEIGHBOURS, 0},
    /* nor where one router is let through by name: that guards against others */
    {"else: drop\n" ALLOWED RULES NEIGHBOURS
     "  - {name: r, match: {src: \"fe80::aa\", icmpv6_type: nd-router-advert}, verdict: pass}\n",
     0},
    {"else: drop\n" ALLOWED RULES NEIGHBOURS
     "  - {name: r, match: {src: \"fe80::aa\", proto: tcp}, verdict: pass}\n",
     ROUTERS},
    {"else: drop\nallow: [192.0.2.1, \"fe80::aa\"]\n" RULES NEIGHBOURS, 0},
    {"else: drop\nallow: [192.0.2.1, \"@s\"]\n" SET RULES NEIGHBOURS, 0},
    {"else: drop\n" ALLOWED SET RULES NEIGHBOURS
     "  - {name: r, match: {src: \"@s\", icmpv6_type: nd-router-advert}, verdict: pass}\n",
     0},
    /* limits are no verdict: the first packet passes */
    {"else: drop\n" RULES "  - {name: t, limits: [{key: src, packets: 1, window: 1h}]}\n", 0},
    /* the packets that are tried are in no set, and of no flow: others might come in, but not you
     */
    {"else: drop\n" SET RULES
     "  - {name: t, match: {proto: tcp, dport: 22, src: \"@s\"}, verdict: pass}\n",
     DISCOVERY | SSH4 | SSH6},
    {"else: pass\n" SET RULES
     "  - {name: t, match: {proto: tcp, dport: 22, src: \"!@s\"}, verdict: drop}\n",
     SSH4 | SSH6},
};

/* Else a user who loads a policy from afar learns that it has locked him out when he no longer can.
 */
static void test_what_is_warned_of(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		unsigned int said = warned_of(rows[i].policy);

		if (said != rows[i].said)
			fail_msg("%x, not %x:\n%s", said, rows[i].said, rows[i].policy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_what_is_warned_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
