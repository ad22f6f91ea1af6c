/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/device.h"

#include <errno.h>
#include <net/if.h> /* first: the kernel's headers leave out what it has */
#include <linux/if_arp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

int device_index(const char *ifname, struct policy_error *error)
{
	int index = if_nametoindex(ifname);

	if (!index)
		return policy_fail(error, 0, "%s: there is no such interface here: see `ip link`",
				   ifname);
	return index;
}

int device_is_up(const char *ifname, struct policy_error *error)
{
	struct ifreq request = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
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

int device_is_raw_ip(const char *ifname, struct policy_error *error)
{
	struct ifreq request = {0}, flags;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int failed;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", ifname);
	flags = request;
	failed = fd < 0 || ioctl(fd, SIOCGIFHWADDR, &request) || ioctl(fd, SIOCGIFFLAGS, &flags);
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
	case ARPHRD_PPP:
	case ARPHRD_TUNNEL:
	case ARPHRD_TUNNEL6:
	case ARPHRD_SIT:
	case ARPHRD_IP6GRE:
	case ARPHRD_RAWIP:
		return 1;
	case ARPHRD_IPGRE: /* with many peers XDP sees the outer header */
		if (flags.ifr_flags & IFF_POINTOPOINT)
			return 1;
	}
	return policy_fail(error, 0,
			   "%s: its link type (ARPHRD %d) is neither Ethernet nor raw IP: pace the "
			   "interface below it",
			   ifname, request.ifr_hwaddr.sa_family);
}
