/* SPDX-License-Identifier: GPL-2.0-only */
#include "inspect/lockout.h"

#include "inspect/packet_text.h"
#include "inspect/why.h"

/* Is the packet denied whatever its rate? Of no set that a rule asks for, and of no known flow. */
static bool is_denied(const struct pacer_policy *of, const char *text)
{
	static struct pacer_policy without_state; /* is large */
	const struct pacer_policy *bin = &without_state;
	struct pacer_state state = {.policy = bin};
	struct pacer_walk walk = {.state = &state, .now_ns = 1};
	struct policy_error unused;
	struct packet_head head;

	without_state = *of;
	without_state.sets = 0;
	without_state.flows.sets = 0;
	if (bin->flags & PACER_MONITOR || packet_text_read(text, false, &walk.pkt, &head, &unused))
		return false;
	why_find(&walk, &head, PACER_ADMIT, NULL, NULL);
	walk.rule = pacer_walk_rule(&walk, bin);
	if (walk.rule >= PACER_RULES_MAX)
		return bin->else_says == PACER_SAYS_DENY;
	return bin->rule[walk.rule].says == PACER_SAYS_DENY;
}

/* Each with two packets that show it: either does. */
static const struct {
	const char *packet, *other;
	bool allowed_is_enough; /* nothing is said where there is an allow-list */
	const char *text;
} warnings[] = {
    {"icmpv6 fe80::1 > ff02::1:ff00:2 type nd-neighbor-solicit ttl 255 len 86",
     "icmpv6 fe80::2 > fe80::1 type nd-neighbor-advert ttl 255 len 86", false,
     "neighbour discovery (icmpv6) is dropped: IPv6 stops within a minute: put a rule with match: "
     "{proto: icmpv6} and verdict: pass, or limits, above"},
    {"tcp 203.0.113.9:40000 > 198.51.100.1:22 flags syn",
     "tcp 203.0.113.9:40000 > 198.51.100.1:22 flags ack", true,
     "SSH over IPv4 is dropped, and nobody is on the allow-list: you may lock yourself out: fill "
     "allow:, or load with --confirm-within"},
    {"tcp [2001:db8::9]:40000 > [2001:db8::1]:22 flags syn len 74",
     "tcp [2001:db8::9]:40000 > [2001:db8::1]:22 flags ack len 74", true,
     "SSH over IPv6 is dropped, and nobody is on the allow-list: you may lock yourself out: fill "
     "allow:, or load with --confirm-within"},
};

const char *lockout_warning(const struct policy *policy, const struct pacer_policy *bin, size_t i)
{
	size_t n = 0;

	for (size_t w = 0; w < sizeof(warnings) / sizeof(*warnings); w++)
		if (!(warnings[w].allowed_is_enough && (policy->n_allow || policy->n_allow_sets)) &&
		    (is_denied(bin, warnings[w].packet) || is_denied(bin, warnings[w].other)) &&
		    n++ == i)
			return warnings[w].text;
	return NULL;
}
