/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/joined.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live/links.h"

#define DEEPEST 8 /* interfaces above each other that are followed; the kernel has no more */

/* --- what joins --------------------------------------------------------------------------------
 */

#define NAMES_TEXT 192
#define OTHERS	   " and others"

/* By their names; each an empty text where there is none. */
struct joined {
	char gro[NAMES_TEXT], veth[NAMES_TEXT], tun[NAMES_TEXT];
	bool elsewhere, by_route;
};

/* Whose packets come by whichever interface: nothing tells. */
static bool is_by_route(const struct link *l)
{
	return !l->below && !l->elsewhere &&
	       (link_is_kind(l, "vxlan") || link_is_kind(l, "geneve") || link_is_kind(l, "gretap"));
}

static void add_name(char names[NAMES_TEXT], const char *name)
{
	size_t n = strlen(names);

	if (strstr(names, OTHERS))
		return;
	if (n + strlen(", ") + strlen(name) + sizeof(OTHERS) <= NAMES_TEXT)
		snprintf(names + n, NAMES_TEXT - n, "%s%s", n ? ", " : "", name);
	else
		snprintf(names + n, NAMES_TEXT - n, OTHERS);
}

/* A stack writes whole what its packets will be cut of. */
static void note_writer(const struct link *l, struct joined *j)
{
	if (link_is_kind(l, "veth"))
		add_name(j->veth, l->name);
	if (link_is_kind(l, "tun"))
		add_name(j->tun, l->name);
}

/* Those that only hand on what is below them join nothing themselves. */
static void note_gro(const struct link *l, struct joined *j)
{
	if (!link_hands_on(l) && link_has(l, ETHTOOL_GGRO, ~0u))
		add_name(j->gro, l->name);
}

static void look_below(const struct links *links, const struct link *above, int depth,
		       struct joined *j)
{
	j->elsewhere |= above->elsewhere && !link_is_kind(above, "veth");
	j->by_route |= is_by_route(above);
	for (size_t i = 0; i < links->n && depth < DEEPEST; i++) {
		const struct link *l = &links->at[i];

		if (l->master != above->index &&
		    (l->index != above->below || link_is_kind(above, "veth")))
			continue;
		note_writer(l, j);
		note_gro(l, j);
		look_below(links, l, depth + 1, j);
	}
}

static struct joined look(const char *ifname, bool skb)
{
	struct links links = links_read();
	struct joined j = {.gro = ""};

	for (size_t i = 0; i < links.n; i++) {
		const struct link *l = &links.at[i];

		if (strcmp(l->name, ifname) != 0)
			continue;
		if (skb || link_is_kind(l, "tun"))
			note_writer(l, &j);
		if (skb)
			look_below(&links, l, 0, &j);
	}
	free(links.at);
	return j;
}

static void add_way(char buf[JOINED_TEXT], const char *way, const char *name)
{
	bool first = !strchr(buf, '`');
	size_t n = strlen(buf);

	snprintf(buf + n, JOINED_TEXT - n, "%s%s%s", first ? ": " : ", and ", way, name);
}

#define GRO "`ethtool -K IFACE gro off` of "
#define CUT "`ethtool -K IFACE tso off tx-udp-segmentation off` "

const char *joined_note(const char *ifname, bool skb, char buf[JOINED_TEXT])
{
	struct joined j = look(ifname, skb);

	snprintf(buf, JOINED_TEXT,
		 "packets that come joined in one frame count as one, and are cut apart behind the "
		 "pacer; what stops that");
	if (*j.gro)
		add_way(buf, GRO, j.gro);
	if (j.elsewhere)
		add_way(buf, GRO, "what is below it in another network namespace");
	if (j.by_route)
		add_way(buf, GRO, "the interface that the tunnel's packets come by");
	if (*j.veth)
		add_way(buf, CUT "of the peer of ", j.veth);
	if (*j.tun)
		add_way(buf, CUT "in the guest that writes to ", j.tun);
	return strchr(buf, '`') ? buf : NULL;
}
