/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/tags.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live/links.h"
#include "parse.h"

bool tags_asked(const struct pacer_policy *policy)
{
	if (policy->dims & 1u << PACER_DIM_VLAN)
		return true;
	for (size_t i = 0; i < PACER_RULES_MAX; i++)
		for (size_t k = 0; k < policy->rule[i].n_limiters; k++)
			if (policy->rule[i].limiter[k].mask6[PACER_WORD_META] & PACER_META_VLAN)
				return true;
	return false;
}

/* The kernel takes a tag off before these have the frame. A VLAN has the next one in its frame. */
static bool is_above(const struct link *l)
{
	return link_hands_on(l) && !link_is_kind(l, "vlan");
}

static const struct link *find(const struct links *links, const char *ifname, int index)
{
	for (size_t i = 0; i < links->n; i++)
		if (ifname ? !strcmp(links->at[i].name, ifname) : links->at[i].index == index)
			return &links->at[i];
	return NULL;
}

#define RX "rxvlan off rx-vlan-stag-hw-parse off"
#define TX "txvlan off tx-vlan-stag-hw-insert off"

/* Into buf; an empty text where there is nothing to do. */
static void way_out(const struct links *links, const struct link *l, bool skb, char buf[TAGS_TEXT]);

/* Of what hands the program on to its members: that of the first one that needs something. */
static void way_out_below(const struct links *links, const struct link *l, char buf[TAGS_TEXT])
{
	for (size_t i = 0; i < links->n && !*buf; i++)
		if (links->at[i].master == l->index && !is_above(&links->at[i]))
			way_out(links, &links->at[i], false, buf);
}

static void way_out(const struct links *links, const struct link *l, bool skb, char buf[TAGS_TEXT])
{
	const struct link *peer = l->elsewhere ? NULL : find(links, NULL, l->below);

	*buf = 0;
	if (link_is_kind(l, "veth") && !peer)
		snprintf(buf, TAGS_TEXT,
			 "what stops that, where its peer is: `ethtool -K PEER " TX "`");
	else if (link_is_kind(l, "veth") && link_has(peer, ETHTOOL_GFLAGS, ETH_FLAG_TXVLAN))
		snprintf(buf, TAGS_TEXT, "what stops that: `ethtool -K %s " TX "`", peer->name);
	else if (link_is_kind(l, "veth"))
		return;
	else if (is_above(l) && skb)
		snprintf(buf, TAGS_TEXT, "here those are all: load the interfaces below it");
	else if (is_above(l))
		way_out_below(links, l, buf);
	else if (link_has(l, ETHTOOL_GFLAGS, ETH_FLAG_RXVLAN))
		snprintf(buf, TAGS_TEXT, "what stops that: `ethtool -K %s " RX "`", l->name);
}

const char *tags_note(const char *ifname, bool skb, char buf[TAGS_TEXT])
{
	struct links links = links_read();
	const struct link *l = find(&links, ifname, 0);
	char way[TAGS_TEXT] = "";

	if (l)
		way_out(&links, l, skb, way);
	free(links.at);
	if (!*way)
		return NULL;
	snprintf(buf, TAGS_TEXT,
		 "the policy asks for VLANs, and a packet whose tag the kernel keeps beside the "
		 "frame counts as untagged; %.200s",
		 way);
	return buf;
}
