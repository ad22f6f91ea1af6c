/* SPDX-License-Identifier: GPL-2.0-only */
#include "inspect/lockout.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

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

/* --- neighbour discovery ----------------------------------------------------------------------
 */

#define NEAR_LEN 64 /* of prefixes: a list of single addresses allows not all neighbours */

static const struct prefix link_local = {6, NEAR_LEN, {0xfe, 0x80}};
/* Far apart: no list of bogus sources, or of a part of the world, has both. */
static const struct prefix anywhere[] = {
    {6, NEAR_LEN, {0x2a, 0x00, 0xfe, 0xed, 0xbe, 0xef}},
    {6, NEAR_LEN, {0x26, 0x00, 0xfe, 0xed, 0xbe, 0xef}},
};

static bool is_allowed(const struct policy *policy, const struct prefix *source)
{
	for (size_t i = 0; i < policy->n_allow; i++)
		if (units_prefix_holds(&policy->allow[i], source))
			return true;
	return false;
}

/* A message of neighbour discovery, from one address to another. */
static bool is_message_denied(const struct pacer_policy *bin, const char *from, const char *to,
			      const char *type)
{
	char text[192];

	snprintf(text, sizeof(text), "icmpv6 %s > %s type %s ttl 255 len 86", from, to, type);
	return is_denied(bin, text);
}

static const char *text_of(const struct prefix *prefix, char text[INET6_ADDRSTRLEN])
{
	return inet_ntop(AF_INET6, prefix->addr, text, INET6_ADDRSTRLEN);
}

/* Of a neighbour with such an address, either what it asks or what it answers. */
static bool is_neighbour_denied(const struct policy *policy, const struct pacer_policy *bin,
				const struct prefix *source)
{
	char text[INET6_ADDRSTRLEN];
	const char *from = text_of(source, text);

	return !is_allowed(policy, source) &&
	       (is_message_denied(bin, from, "ff02::1:ff00:2", "nd-neighbor-solicit") ||
		is_message_denied(bin, from, "fe80::1", "nd-neighbor-advert"));
}

static bool is_discovery_denied(const struct policy *policy, const struct pacer_policy *bin)
{
	return is_neighbour_denied(policy, bin, &link_local);
}

/* Of a host with such an address: what it is answered, or asked whether it is there still. */
static bool is_host_denied(const struct policy *policy, const struct pacer_policy *bin,
			   const struct prefix *host)
{
	char text[INET6_ADDRSTRLEN];
	const char *to = text_of(host, text);

	return !is_allowed(policy, &link_local) &&
	       (is_message_denied(bin, "fe80::2", to, "nd-neighbor-advert") ||
		is_message_denied(bin, "fe80::2", to, "nd-neighbor-solicit"));
}

static bool is_link_local(const struct prefix *prefix)
{
	return prefix->family == 6 && prefix->addr[0] == 0xfe && prefix->addr[1] >> 6 == 2;
}

static bool is_global(const struct prefix *prefix)
{
	return prefix->family == 6 && prefix->addr[0] != 0xff && !is_link_local(prefix);
}

/* May the rule be for neighbour discovery? Its addresses are not looked at. */
static bool may_match(const struct policy_match *m)
{
	for (size_t i = 0; i < m->n_proto; i++)
		if (m->proto[i].low <= IPPROTO_ICMPV6 && m->proto[i].high >= IPPROTO_ICMPV6)
			return !m->n_icmp_type;
	return !m->n_proto && !m->n_sport && !m->n_dport && !m->n_flags && !m->n_icmp_type;
}

/* May a packet pass for what sets have, which nobody knows here? */
static bool may_pass_by_set(const struct policy *policy, bool dst)
{
	for (size_t r = 0; r < policy->n_rules; r++) {
		const struct policy_match *m = &policy->rule[r].match;
		const bool denies = policy->rule[r].says == PACER_SAYS_DENY;

		for (size_t i = 0; i < m->n_sets; i++)
			if (m->set[i].dst == dst && m->set[i].not == denies && may_match(m))
				return true;
	}
	return policy->n_allow_sets;
}

/* Those of global neighbours: only the policy knows which. Does it let any through that it names?
 */
static bool is_from_global_denied(const struct policy *policy, const struct pacer_policy *bin)
{
	if (may_pass_by_set(policy, false) || is_discovery_denied(policy, bin) ||
	    !is_neighbour_denied(policy, bin, &anywhere[0]) ||
	    !is_neighbour_denied(policy, bin, &anywhere[1]))
		return false;
	for (size_t i = 0; i < policy->n_allow; i++)
		if (is_global(&policy->allow[i]) && policy->allow[i].len <= NEAR_LEN)
			return false;
	for (size_t r = 0; r < policy->n_rules; r++) {
		const struct policy_match *m = &policy->rule[r].match;

		for (size_t i = 0; i < m->n_src; i++)
			if (is_global(&m->src[i]) && !is_neighbour_denied(policy, bin, &m->src[i]))
				return false;
	}
	return true;
}

/* What comes to global addresses of this host. Where what comes from them is dropped, too, that is
 * said alone.
 */
static bool is_to_global_denied(const struct policy *policy, const struct pacer_policy *bin)
{
	if (may_pass_by_set(policy, true) || is_discovery_denied(policy, bin) ||
	    is_from_global_denied(policy, bin) || !is_host_denied(policy, bin, &anywhere[0]) ||
	    !is_host_denied(policy, bin, &anywhere[1]))
		return false;
	for (size_t r = 0; r < policy->n_rules; r++) {
		const struct policy_match *m = &policy->rule[r].match;

		for (size_t i = 0; i < m->n_dst; i++)
			if (is_global(&m->dst[i]) && !is_host_denied(policy, bin, &m->dst[i]))
				return false;
	}
	return true;
}

/* --- routers ------------------------------------------------------------------------------------
 */

/* What it tells all, or who has asked. */
static bool is_router_denied(const struct policy *policy, const struct pacer_policy *bin,
			     const struct prefix *router)
{
	char text[INET6_ADDRSTRLEN];
	const char *from = text_of(router, text);

	return !is_allowed(policy, router) &&
	       (is_message_denied(bin, from, "ff02::1", "nd-router-advert") ||
		is_message_denied(bin, from, "fe80::2", "nd-router-advert"));
}

/* All of them? A guard against strange routers names its own. Said where not all of discovery is
 * dropped.
 */
static bool are_routers_denied(const struct policy *policy, const struct pacer_policy *bin)
{
	if (is_discovery_denied(policy, bin) || may_pass_by_set(policy, false) ||
	    !is_router_denied(policy, bin, &link_local))
		return false;
	for (size_t i = 0; i < policy->n_allow; i++)
		if (is_link_local(&policy->allow[i]))
			return false;
	for (size_t r = 0; r < policy->n_rules; r++) {
		const struct policy_match *m = &policy->rule[r].match;

		for (size_t i = 0; i < m->n_src; i++)
			if (is_link_local(&m->src[i]) && !is_router_denied(policy, bin, &m->src[i]))
				return false;
	}
	return true;
}

/* --- who may come in ---------------------------------------------------------------------------
 */

/* No packet from another host has it. */
static bool is_loopback(const struct prefix *prefix)
{
	static const struct prefix local[] = {{4, 8, {127}}, {6, 128, {[15] = 1}}};

	return units_prefix_holds(&local[prefix->family == 6], prefix);
}

static bool holds_host(const struct prefix *prefix, size_t n, uint8_t family)
{
	for (size_t i = 0; i < n; i++)
		if (prefix[i].family == family && !is_loopback(&prefix[i]))
			return true;
	return false;
}

/* Is any host of the family on the allow-list? What is in a file, or comes by a fleet, may be. */
static bool is_anyone_allowed(const struct policy *policy, uint8_t family)
{
	for (size_t i = 0; i < policy->n_allow_sets; i++) {
		const struct policy_set *set = &policy->set[policy->allow_set[i].set];

		if (set->file[0] || set->fleet || holds_host(set->of, set->n_of, family))
			return true;
	}
	return holds_host(policy->allow, policy->n_allow, family);
}

/* --- all --------------------------------------------------------------------------------------
 */

/* Each with two packets that show it, either of which does; or with a look of its own. */
static const struct {
	bool (*is_so)(const struct policy *policy, const struct pacer_policy *bin);
	const char *packet, *other;
	uint8_t family; /* of these */
	const char *text;
} warnings[] = {
    {is_discovery_denied, NULL, NULL, 0,
     "neighbour discovery (icmpv6) is dropped: IPv6 stops within a minute: put a rule with match: "
     "{proto: icmpv6} and verdict: pass, or limits, above"},
    {are_routers_denied, NULL, NULL, 0,
     "router advertisements (icmpv6) are dropped: an interface that has its address or its default "
     "route from them loses these after some time: put a rule with match: {proto: icmpv6} and "
     "verdict: pass, or limits, above"},
    {is_from_global_denied, NULL, NULL, 0,
     "neighbour discovery (icmpv6) from addresses other than fe80::/10 is dropped: hosts of the "
     "same network cannot be reached: put a rule with match: {proto: icmpv6} and verdict: pass, or "
     "limits, above"},
    {is_to_global_denied, NULL, NULL, 0,
     "neighbour discovery (icmpv6) to addresses other than fe80::/10 and ff02::/16 is dropped: "
     "hosts of the same network cannot be reached: put a rule with match: {proto: icmpv6} and "
     "verdict: pass, or limits, above"},
    {NULL, "tcp 203.0.113.9:40000 > 198.51.100.1:22 flags syn",
     "tcp 203.0.113.9:40000 > 198.51.100.1:22 flags ack", 4,
     "SSH over IPv4 is dropped, and no host of IPv4 is on the allow-list: you may lock yourself "
     "out: fill allow:, or load with --confirm-within"},
    {NULL, "tcp [2001:db8::9]:40000 > [2001:db8::1]:22 flags syn len 74",
     "tcp [2001:db8::9]:40000 > [2001:db8::1]:22 flags ack len 74", 6,
     "SSH over IPv6 is dropped, and no host of IPv6 is on the allow-list: you may lock yourself "
     "out: fill allow:, or load with --confirm-within"},
};

/* Who may come in by an allow-list is not locked out. */
static bool is_warned_of(size_t w, const struct policy *policy, const struct pacer_policy *bin)
{
	if (warnings[w].is_so)
		return warnings[w].is_so(policy, bin);
	return !is_anyone_allowed(policy, warnings[w].family) &&
	       (is_denied(bin, warnings[w].packet) || is_denied(bin, warnings[w].other));
}

const char *lockout_warning(const struct policy *policy, const struct pacer_policy *bin, size_t i)
{
	size_t n = 0;

	for (size_t w = 0; w < sizeof(warnings) / sizeof(*warnings); w++)
		if (is_warned_of(w, policy, bin) && n++ == i)
			return warnings[w].text;
	return NULL;
}
