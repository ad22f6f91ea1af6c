/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/joined.h"

#include <net/if.h> /* first: the kernel's headers leave out what it has */
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEEPEST 8 /* interfaces above each other that are followed; the kernel has no more */

struct link {
	int index, below, master;
	bool elsewhere; /* what is below it is in another network namespace */
	char name[IF_NAMESIZE], kind[IF_NAMESIZE];
};

struct links {
	struct link *at;
	size_t n;
	bool failed;
};

/* --- what there is -----------------------------------------------------------------------------
 */

static void copy_text(const struct rtattr *a, char text[IF_NAMESIZE])
{
	snprintf(text, IF_NAMESIZE, "%.*s", (int)RTA_PAYLOAD(a), (const char *)RTA_DATA(a));
}

static bool is_kind(const struct link *l, const char *kind)
{
	return !strcmp(l->kind, kind);
}

/* It has no IFLA_LINK. */
static void read_vxlan(const struct rtattr *data, struct link *l)
{
	const struct rtattr *a = RTA_DATA(data);
	size_t left = RTA_PAYLOAD(data);

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == IFLA_VXLAN_LINK)
			memcpy(&l->below, RTA_DATA(a), sizeof(l->below));
}

/* The kind comes first. */
static void read_kind(const struct rtattr *info, struct link *l)
{
	const struct rtattr *a = RTA_DATA(info);
	size_t left = RTA_PAYLOAD(info);

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == IFLA_INFO_KIND)
			copy_text(a, l->kind);
		else if (a->rta_type == IFLA_INFO_DATA && is_kind(l, "vxlan"))
			read_vxlan(a, l);
}

static struct link read_link(const struct nlmsghdr *m)
{
	const struct ifinfomsg *said = NLMSG_DATA(m);
	const struct rtattr *a = IFLA_RTA(said);
	struct link l = {.index = said->ifi_index};
	size_t left = IFLA_PAYLOAD(m);

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == IFLA_IFNAME)
			copy_text(a, l.name);
		else if (a->rta_type == IFLA_LINK)
			memcpy(&l.below, RTA_DATA(a), sizeof(l.below));
		else if (a->rta_type == IFLA_MASTER)
			memcpy(&l.master, RTA_DATA(a), sizeof(l.master));
		else if (a->rta_type == IFLA_LINK_NETNSID)
			l.elsewhere = true;
		else if (a->rta_type == IFLA_LINKINFO)
			read_kind(a, &l);
	}
	if (l.elsewhere || l.below == l.index)
		l.below = 0;
	return l;
}

static void add_link(struct links *links, const struct nlmsghdr *m)
{
	struct link *more = reallocarray(links->at, links->n + 1, sizeof(*more));

	links->failed |= !more;
	if (!more)
		return;
	links->at = more;
	links->at[links->n++] = read_link(m);
}

/* Is that the last part? */
static bool read_part(const char *buf, ssize_t n, struct links *links)
{
	const struct nlmsghdr *m = (const void *)buf;

	links->failed |= n <= 0;
	for (size_t left = n > 0 ? (size_t)n : 0; NLMSG_OK(m, left); m = NLMSG_NEXT(m, left)) {
		links->failed |= m->nlmsg_type == NLMSG_ERROR;
		if (m->nlmsg_type == NLMSG_DONE)
			return true;
		if (m->nlmsg_type == RTM_NEWLINK)
			add_link(links, m);
	}
	return links->failed;
}

/* All of this network namespace; none where they cannot be read. */
static struct links read_links(void)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg all;
	} ask = {.header = {.nlmsg_len = sizeof(ask),
			    .nlmsg_type = RTM_GETLINK,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	static char buf[1 << 16] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct links links = {.failed = fd < 0};

	links.failed |= fd >= 0 && send(fd, &ask, sizeof(ask), 0) < 0;
	while (!links.failed && !read_part(buf, recv(fd, buf, sizeof(buf), 0), &links))
		;
	if (fd >= 0)
		close(fd);
	if (links.failed)
		links.n = 0;
	return links;
}

/* --- what joins --------------------------------------------------------------------------------
 */

#define NAMES_TEXT 192
#define OTHERS	   " and others"

/* By their names; each an empty text where there is none. */
struct joined {
	char gro[NAMES_TEXT], veth[NAMES_TEXT], tun[NAMES_TEXT];
	bool elsewhere, by_route;
};

/* Those that only hand on what is below them join nothing themselves. */
static bool hands_on(const struct link *l)
{
	static const char *const kinds[] = {"bridge", "bond", "team", "vlan", "macvlan", "ipvlan"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (is_kind(l, kinds[i]))
			return true;
	return false;
}

/* Whose packets come by whichever interface: nothing tells. */
static bool is_by_route(const struct link *l)
{
	return !l->below && !l->elsewhere &&
	       (is_kind(l, "vxlan") || is_kind(l, "geneve") || is_kind(l, "gretap"));
}

static bool has_gro(const struct link *l)
{
	struct ethtool_value value = {.cmd = ETHTOOL_GGRO};
	struct ifreq request = {0};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is;

	memcpy(request.ifr_name, l->name, sizeof(l->name));
	request.ifr_data = (void *)&value;
	is = fd >= 0 && !ioctl(fd, SIOCETHTOOL, &request) && value.data;
	if (fd >= 0)
		close(fd);
	return is;
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
	if (is_kind(l, "veth"))
		add_name(j->veth, l->name);
	if (is_kind(l, "tun"))
		add_name(j->tun, l->name);
}

static void note_gro(const struct link *l, struct joined *j)
{
	if (!hands_on(l) && has_gro(l))
		add_name(j->gro, l->name);
}

static void look_below(const struct links *links, const struct link *above, int depth,
		       struct joined *j)
{
	j->elsewhere |= above->elsewhere && !is_kind(above, "veth");
	j->by_route |= is_by_route(above);
	for (size_t i = 0; i < links->n && depth < DEEPEST; i++) {
		const struct link *l = &links->at[i];

		if (l->master != above->index &&
		    (l->index != above->below || is_kind(above, "veth")))
			continue;
		note_writer(l, j);
		note_gro(l, j);
		look_below(links, l, depth + 1, j);
	}
}

static struct joined look(const char *ifname, bool skb)
{
	struct links links = read_links();
	struct joined j = {.gro = ""};

	for (size_t i = 0; i < links.n; i++) {
		const struct link *l = &links.at[i];

		if (strcmp(l->name, ifname) != 0)
			continue;
		if (skb || is_kind(l, "tun"))
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
