/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/links.h"

#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static void copy_text(const struct rtattr *a, char text[IF_NAMESIZE])
{
	snprintf(text, IF_NAMESIZE, "%.*s", (int)RTA_PAYLOAD(a), (const char *)RTA_DATA(a));
}

bool link_is_kind(const struct link *l, const char *kind)
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

static void read_tun(const struct rtattr *data, struct link *l)
{
	const struct rtattr *a = RTA_DATA(data);
	size_t left = RTA_PAYLOAD(data);
	uint8_t told;

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == IFLA_TUN_PI) {
			memcpy(&told, RTA_DATA(a), sizeof(told));
			l->types_told = told;
		}
}

/* The kind comes first. */
static void read_kind(const struct rtattr *info, struct link *l)
{
	const struct rtattr *a = RTA_DATA(info);
	size_t left = RTA_PAYLOAD(info);

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == IFLA_INFO_KIND)
			copy_text(a, l->kind);
		else if (a->rta_type == IFLA_INFO_DATA && link_is_kind(l, "vxlan"))
			read_vxlan(a, l);
		else if (a->rta_type == IFLA_INFO_DATA && link_is_kind(l, "tun"))
			read_tun(a, l);
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

/* The answer to a dump is in parts. */
static struct links links_asked(const struct nlmsghdr *ask)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	static char buf[1 << 16] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct links links = {.failed = fd < 0};
	bool dump = ask->nlmsg_flags & NLM_F_DUMP;

	links.failed |= fd >= 0 && send(fd, ask, ask->nlmsg_len, 0) < 0;
	while (!links.failed && !read_part(buf, recv(fd, buf, sizeof(buf), 0), &links) && dump)
		;
	if (fd >= 0)
		close(fd);
	if (links.failed)
		links.n = 0;
	return links;
}

struct links links_read(void)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg all;
	} ask = {.header = {.nlmsg_len = sizeof(ask),
			    .nlmsg_type = RTM_GETLINK,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};

	return links_asked(&ask.header);
}

bool link_of_altname(const char *altname, char own[IF_NAMESIZE])
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg any;
		struct rtattr named;
		char altname[ALTIFNAMSIZ];
	} ask = {.header = {.nlmsg_len = sizeof(ask),
			    .nlmsg_type = RTM_GETLINK,
			    .nlmsg_flags = NLM_F_REQUEST},
		 .named = {.rta_type = IFLA_ALT_IFNAME}};
	size_t len = strlen(altname);
	struct links links;
	bool is;

	if (len >= sizeof(ask.altname))
		return false;
	memcpy(ask.altname, altname, len);
	ask.named.rta_len = (unsigned short)RTA_LENGTH(len + 1);
	/* Behind the name nothing: the kernel's log would have a line of it. */
	ask.header.nlmsg_len = (uint32_t)(offsetof(typeof(ask), named) + RTA_SPACE(len + 1));
	links = links_asked(&ask.header);
	is = links.n > 0;
	if (is)
		memcpy(own, links.at[0].name, IF_NAMESIZE);
	free(links.at);
	return is;
}

bool link_hands_on(const struct link *l)
{
	static const char *const kinds[] = {"bridge", "bond", "team", "vlan", "macvlan", "ipvlan"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (link_is_kind(l, kinds[i]))
			return true;
	return false;
}

bool link_has(const struct link *l, uint32_t command, uint32_t bits)
{
	struct ethtool_value value = {.cmd = command};
	struct ifreq request = {0};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is;

	memcpy(request.ifr_name, l->name, sizeof(l->name));
	request.ifr_data = (void *)&value;
	is = fd >= 0 && !ioctl(fd, SIOCETHTOOL, &request) && (value.data & bits);
	if (fd >= 0)
		close(fd);
	return is;
}
