/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/device.h"

#include <errno.h>
#include <stdio.h>
#include <net/if.h> /* first: the kernel's headers leave out what it has */
#include <linux/if_arp.h>
#include <linux/ethtool.h>
#include <linux/if_vlan.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "live/links.h"

/* errno says why. */
static int not_found(const char *ifname, struct policy_error *error)
{
	if (errno == ENODEV || errno == ENXIO)
		return policy_fail(error, 0, "%s: there is no such interface here: see `ip link`",
				   ifname);
	/* So the C library says that it may have no socket. */
	return policy_fail(error, 0, "%s: the interface cannot be looked for: %s", ifname,
			   errno == ENOENT ? "no socket can be made" : strerror(errno));
}

static int refuse_altname(const char *ifname, const char *own, struct policy_error *error)
{
	return policy_fail(error, 0, "%s: is another name of %s: write that", ifname, own);
}

int device_index(const char *ifname, struct policy_error *error)
{
	unsigned int index = if_nametoindex(ifname);
	char own[IF_NAMESIZE];

	if (strlen(ifname) >= IF_NAMESIZE && link_of_altname(ifname, own))
		return refuse_altname(ifname, own, error);
	if (strlen(ifname) >= IF_NAMESIZE)
		return policy_fail(
		    error, 0, "%s: is longer than an interface's own name: see `ip link`", ifname);
	if (!index || !if_indextoname(index, own))
		return not_found(ifname, error);
	return strcmp(own, ifname) != 0 ? refuse_altname(ifname, own, error) : (int)index;
}

bool device_named(const char *name)
{
	char own[IF_NAMESIZE];

	return if_nametoindex(name) || (strlen(name) >= IF_NAMESIZE && link_of_altname(name, own));
}

int device_is_up(const char *ifname, struct policy_error *error)
{
	struct ifreq request = {0};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int failed;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", ifname);
	failed = fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request);
	if (fd >= 0)
		close(fd);
	if (failed)
		return policy_fail(error, 0, "%s: its state cannot be read: %s", ifname,
				   strerror(errno));
	if (!(request.ifr_flags & IFF_UP))
		return policy_fail(error, 0, "%s: the interface is down: `ip link set %s up` first",
				   ifname, ifname);
	return 0;
}

/* Of a tun whose writer says of each packet what it begins with: a VLAN tag, if they like. */
static int tun_tells_types(const char *ifname, struct policy_error *error)
{
	struct links links = links_read();
	bool tells = false;

	for (size_t i = 0; i < links.n; i++)
		if (!strcmp(links.at[i].name, ifname))
			tells = links.at[i].types_told;
	free(links.at);
	return tells
		   ? policy_fail(error, 0,
				 "%s: who writes to this tun may begin its packets with VLAN tags, "
				 "and nothing tells here whether they do: have it opened with "
				 "IFF_NO_PI",
				 ifname)
		   : 0;
}

int device_is_raw_ip(const char *ifname, struct policy_error *error)
{
	struct ifreq request = {0};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int failed;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", ifname);
	failed = fd < 0 || ioctl(fd, SIOCGIFHWADDR, &request);
	if (fd >= 0)
		close(fd);
	if (failed)
		return policy_fail(error, 0, "%s: its link type cannot be read: %s", ifname,
				   strerror(errno));
	switch (request.ifr_hwaddr.sa_family) {
	case ARPHRD_ETHER:
	case ARPHRD_LOOPBACK:
		return 0;
	case ARPHRD_NONE:
		return tun_tells_types(ifname, error) ? -1 : 1;
	case ARPHRD_PPP:
	case ARPHRD_TUNNEL:
	case ARPHRD_TUNNEL6:
	case ARPHRD_SIT:
	case ARPHRD_RAWIP:
		return 1;
	case ARPHRD_IPGRE: /* the type is in its header, which XDP does not see */
	case ARPHRD_IP6GRE:
		return policy_fail(error, 0,
				   "%s: packets in GRE may begin with VLAN tags, and nothing tells "
				   "here whether they do: pace the interface below it, with inner: "
				   "yes in the rule",
				   ifname);
	}
	return policy_fail(error, 0,
			   "%s: its link type (ARPHRD %d) is neither Ethernet nor raw IP: pace the "
			   "interface below it",
			   ifname, request.ifr_hwaddr.sa_family);
}

/* A driver as ethtool has it; "": unknown. */
static void read_driver(const char *ifname, char driver[ETHTOOL_BUSINFO_LEN])
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq request = {0};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	*driver = 0;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", ifname);
	request.ifr_data = (void *)&info;
	if (fd >= 0 && !ioctl(fd, SIOCETHTOOL, &request))
		snprintf(driver, ETHTOOL_BUSINFO_LEN, "%.31s", info.driver);
	if (fd >= 0)
		close(fd);
}

/* The interface below a VLAN's; "the interface below" if it is not told. */
static const char *parent_of(const char *ifname, char *buf, size_t size)
{
	struct vlan_ioctl_args vlan = {.cmd = GET_VLAN_REALDEV_NAME_CMD};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(vlan.device1, sizeof(vlan.device1), "%s", ifname);
	if (fd >= 0 && !ioctl(fd, SIOCGIFVLAN, &vlan))
		snprintf(buf, size, "%s", vlan.u.device2);
	else
		snprintf(buf, size, "the interface below");
	if (fd >= 0)
		close(fd);
	return buf;
}

#define OR_SKB                                                                                 \
	"or use --mode skb, which costs each packet a buffer before it is judged, and counts " \
	"packets that GRO has joined as one"

const char *device_advice(const char *ifname, char *buf, size_t size)
{
	static const struct {
		const char *driver, *is, *below;
	} kinds[] = {
	    {"bridge", "a bridge", "its ports (`ip link show master"},
	    {"bonding", "this bond, of these members,", "its members (`ip link show master"},
	    {"team", "a team", "its ports (`ip link show master"},
	};
	char driver[ETHTOOL_BUSINFO_LEN], parent[IF_NAMESIZE + 16];

	read_driver(ifname, driver);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(driver, kinds[i].driver)) {
			snprintf(buf, size, "%s takes no native XDP program: load %s %s`), " OR_SKB,
				 kinds[i].is, kinds[i].below, ifname);
			return buf;
		}
	if (!strncmp(driver, "802.1Q VLAN", 11))
		snprintf(buf, size,
			 "a VLAN takes no native XDP program: load %s with a rule that matches the "
			 "VLAN (load says how to have XDP see its tags), " OR_SKB,
			 parent_of(ifname, parent, sizeof(parent)));
	else if (!strcmp(driver, "wireguard"))
		snprintf(buf, size,
			 "WireGuard takes no native XDP program: use --mode skb, which judges the "
			 "packets within the tunnel, or load the interface below, which sees its "
			 "UDP alone");
	else if (!strcmp(driver, "vxlan") || !strcmp(driver, "macvlan") ||
		 !strcmp(driver, "ipvlan") || !strcmp(driver, "gretap"))
		snprintf(buf, size,
			 "%s takes no native XDP program: load the interface below it, " OR_SKB,
			 driver);
	else
		snprintf(buf, size,
			 "its driver%s%s takes no native XDP program: use --mode skb, which costs "
			 "each packet a buffer before it is judged",
			 *driver ? " " : "", driver);
	return buf;
}
