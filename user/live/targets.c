/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/targets.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "live/device.h"

/* At most this many packets wait for a CPU. */
#define QUEUE_PACKETS 2048

static int fail(struct policy_error *error, const struct plan_pool *pool, size_t k,
		const char *what, const char *why)
{
	char name[64];

	return policy_fail(error, 0, "pool %s: %s: %s%s", pool->name,
			   policy_target_text(&pool->target[k], name, sizeof(name)), what, why);
}

static bool is_down(const char *ifname)
{
	struct ifreq request = {0};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool down;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", ifname);
	down = fd >= 0 && !ioctl(fd, SIOCGIFFLAGS, &request) && !(request.ifr_flags & IFF_UP);
	if (fd >= 0)
		close(fd);
	return down;
}

static const char *interface_lacks(const char *ifname)
{
	struct policy_error unused;

	if (device_index(ifname, &unused) >= 0)
		return is_down(ifname) ? "the interface is down" : NULL;
	return if_nametoindex(ifname) ? "it is another name of an interface"
				      : "there is no such interface";
}

const char *targets_lack(const struct policy_target *target)
{
	switch (target->kind) {
	case PACER_TARGET_INTERFACE:
		return interface_lacks(target->name);
	case PACER_TARGET_CPU:
		return (int)target->number >= libbpf_num_possible_cpus() ? "there is no such CPU"
									 : NULL;
	case PACER_TARGET_SOCKET:
		break;
	}
	return NULL;
}

static int put_interface(const struct target_maps *maps, uint32_t index,
			 const struct plan_pool *pool, size_t k, struct policy_error *error)
{
	struct policy_error why = {0};
	int ifindex = device_index(pool->target[k].name, &why);

	if (ifindex < 0)
		return policy_fail(error, 0, "pool %s: %.300s", pool->name, why.text);
	if (is_down(pool->target[k].name))
		return fail(error, pool, k, "the interface is down: `ip link set` it up first", "");
	if (bpf_map_update_elem(maps->devices_fd, &index, &ifindex, BPF_ANY))
		return fail(error, pool, k,
			    "packets cannot be redirected to it: ", strerror(errno));
	return 0;
}

static int put_cpu(const struct target_maps *maps, const struct plan_pool *pool, size_t k,
		   struct policy_error *error)
{
	struct bpf_cpumap_val value = {.qsize = QUEUE_PACKETS}, there;
	uint32_t cpu = pool->target[k].number;

	if (cpu >= maps->cpus_max || (int)cpu >= libbpf_num_possible_cpus())
		return fail(error, pool, k, "there is no such CPU", "");
	if (!bpf_map_lookup_elem(maps->cpus_fd, &cpu, &there) && there.qsize == QUEUE_PACKETS)
		return 0; /* the policy in force has it: its queue stays */
	if (bpf_map_update_elem(maps->cpus_fd, &cpu, &value, BPF_ANY))
		return fail(error, pool, k,
			    "packets cannot be redirected to it: ", strerror(errno));
	return 0;
}

static int put_one(const struct target_maps *maps, uint32_t copy, uint32_t number,
		   const struct plan_pool *pool, size_t k, struct policy_error *error)
{
	switch (pool->target[k].kind) {
	case PACER_TARGET_INTERFACE:
		return put_interface(maps, pacer_target_index(copy, number, k), pool, k, error);
	case PACER_TARGET_CPU:
		return put_cpu(maps, pool, k, error);
	case PACER_TARGET_SOCKET: /* which its owner puts in */
		break;
	}
	return 0;
}

static int forget_leases(const struct target_maps *maps, uint32_t copy, struct policy_error *error)
{
	int cpus = libbpf_num_possible_cpus();
	void *zero = cpus < 1 ? NULL : calloc(cpus, sizeof(struct pacer_pool_lease));
	bool failed = !zero;

	for (uint32_t i = 0; i < PACER_POOLS_MAX && !failed; i++) {
		uint32_t index = copy * PACER_POOLS_MAX + i;

		failed = bpf_map_update_elem(maps->leases_fd, &index, zero, BPF_ANY);
	}
	if (failed)
		policy_explain(error, 0, "the pools' leases cannot be written: %s",
			       strerror(errno));
	free(zero);
	return failed ? -1 : 0;
}

/* Removes what an older policy had in this copy's part. Nobody reads entries behind a hole. */
static void forget_devices(const struct target_maps *maps, uint32_t copy)
{
	for (uint32_t i = 0; i < PACER_POOLS_MAX; i++)
		for (uint32_t k = 0; k < PACER_TARGETS_MAX; k++) {
			uint32_t index = pacer_target_index(copy, i, k), ifindex;

			if (bpf_map_lookup_elem(maps->devices_fd, &index, &ifindex))
				break;
			(void)bpf_map_delete_elem(maps->devices_fd, &index);
		}
}

int targets_put(const struct target_maps *maps, uint32_t copy, const struct plan *plan,
		struct policy_error *error)
{
	forget_devices(maps, copy);
	for (size_t i = 0; i < plan->n_pools; i++)
		for (size_t k = 0; k < plan->pool[i].n; k++)
			if (put_one(maps, copy, i, &plan->pool[i], k, error))
				return -1;
	return forget_leases(maps, copy, error);
}
