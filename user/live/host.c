/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/host.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "live/complaint.h"

#define FIRST_USER_NAMESPACE 4026531837u /* the kernel's PROC_USER_INIT_INO */

uint64_t host_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

uint64_t host_resolution_ns(void)
{
	struct timespec ts;

	clock_getres(CLOCK_MONOTONIC_COARSE, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

int host_cpus(struct policy_error *error)
{
	int cpus;

	complaint_begin();
	cpus = libbpf_num_possible_cpus();
	if (cpus < 1)
		return policy_fail(error, 0,
				   "the number of CPUs is not known: %s: is /sys mounted, with "
				   "/sys/devices/system/cpu/possible?",
				   strerror(cpus ? -cpus : ENODATA));
	return cpus;
}

/* Rights in another one are none over what the machine has; without any there is no such file. */
static bool in_first_user_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/user", &st) ? errno == ENOENT
					       : st.st_ino == FIRST_USER_NAMESPACE;
}

bool host_may(uint32_t capabilities)
{
	struct __user_cap_header_struct self = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return in_first_user_namespace() && !syscall(SYS_capget, &self, data) &&
	       (data[0].effective & capabilities) == capabilities;
}
