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
#include "live/timens.h"

#define FIRST_USER_NAMESPACE 4026531837u /* the kernel's PROC_USER_INIT_INO */

static struct timens ahead; /* this process's clocks, of the machine's */

int host_begin(struct policy_error *error)
{
	return timens_read(&ahead, error);
}

static uint64_t machine_ns(clockid_t which, int64_t ahead_ns)
{
	struct timespec ts;

	clock_gettime(which, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec - ahead_ns;
}

uint64_t host_now_ns(void)
{
	return machine_ns(CLOCK_MONOTONIC, ahead.monotonic_ns);
}

uint64_t host_boot_ns(void)
{
	return machine_ns(CLOCK_BOOTTIME, ahead.boottime_ns);
}

/* The kernel takes a time by the clock of the process. */
void host_wait_until(uint64_t until_ns)
{
	uint64_t own_ns = until_ns + ahead.monotonic_ns;
	struct timespec at = {own_ns / 1000000000, own_ns % 1000000000};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
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
