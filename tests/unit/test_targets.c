/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The targets of pools: what is put where, and what is said of one that cannot be had. Interfaces,
 * CPUs and maps are said here, not asked of a kernel.
 */
#include "oracle.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <net/if.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "live/targets.h"
#include "pool.h"

enum { DEVICES = 40, CPUS, LEASES };

#define POSSIBLE_CPUS 4
#define INDEX	      7u /* of the interface that is there */
#define PLACES	      (2 * PACER_POOLS_MAX * PACER_TARGETS_MAX)

static uint32_t device[PLACES]; /* 0: none */
static struct bpf_cpumap_val cpu[POSSIBLE_CPUS];
static uint32_t leases, cpus_put;
static int fails, possible_cpus; /* the map of which a write fails; 0: none */
static bool down, no_socket, other_name;

static struct policy_error error;
static const struct target_maps maps = {DEVICES, CPUS, LEASES, 3};

unsigned int if_nametoindex(const char *name)
{
	errno = ENODEV;
	return strcmp(name, "eth1") ? 0 : INDEX;
}

char *if_indextoname(unsigned int index, char name[IF_NAMESIZE])
{
	assert_int_equal(index, INDEX);
	return strcpy(name, other_name ? "eth0" : "eth1");
}

int socket(int domain, int type, int protocol)
{
	(void)domain;
	(void)type;
	(void)protocol;
	return no_socket ? -1 : dup(0);
}

int ioctl(int fd, unsigned long request, ...)
{
	struct ifreq *r;
	va_list more;

	(void)fd;
	assert_int_equal(request, SIOCGIFFLAGS);
	va_start(more, request);
	r = va_arg(more, struct ifreq *);
	va_end(more);
	assert_string_equal(r->ifr_name, "eth1");
	r->ifr_flags = down ? 0 : IFF_UP;
	return 0;
}

int libbpf_num_possible_cpus(void)
{
	return possible_cpus;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	uint32_t at = *(const uint32_t *)key;

	assert_int_equal(flags, BPF_ANY);
	errno = EIO;
	if (fd == fails)
		return -1;
	if (fd == DEVICES) {
		assert_in_range(at, 0, PLACES - 1);
		device[at] = *(const uint32_t *)value;
	} else if (fd == CPUS) {
		cpu[at] = *(const struct bpf_cpumap_val *)value;
		cpus_put++;
	} else {
		assert_int_equal(fd, LEASES);
		assert_in_range(at, PACER_POOLS_MAX, 2 * PACER_POOLS_MAX - 1); /* of copy 1 */
		leases++;
	}
	return 0;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	uint32_t at = *(const uint32_t *)key;

	if (fd == CPUS) {
		memcpy(value, &cpu[at], sizeof(cpu[at]));
		return 0;
	}
	assert_int_equal(fd, DEVICES);
	*(uint32_t *)value = device[at];
	return device[at] ? 0 : -1;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	assert_int_equal(fd, DEVICES);
	device[*(const uint32_t *)key] = 0;
	return 0;
}

static int begin(void **unused)
{
	(void)unused;
	memset(device, 0, sizeof(device));
	memset(cpu, 0, sizeof(cpu));
	memset(&error, 0, sizeof(error));
	leases = cpus_put = 0;
	fails = 0;
	possible_cpus = POSSIBLE_CPUS;
	down = no_socket = other_name = false;
	return 0;
}

static struct plan *plan_of(enum pacer_target kind, const char *name, uint32_t number)
{
	static struct plan plan;

	plan = (struct plan){.n_pools = 1};
	plan.pool[0] = (struct plan_pool){.name = "spare", .n = 1};
	plan.pool[0].target[0].kind = kind;
	plan.pool[0].target[0].number = number;
	snprintf(plan.pool[0].target[0].name, sizeof(plan.pool[0].target[0].name), "%s", name);
	return &plan;
}

/* What an older policy had is gone, of this copy alone. */
static void test_interfaces_of_a_copy(void **unused)
{
	struct plan *plan = plan_of(PACER_TARGET_INTERFACE, "eth1", 0);

	(void)unused;
	device[pacer_target_index(0, 0, 0)] = 3;
	device[pacer_target_index(1, 0, 0)] = 3;
	device[pacer_target_index(1, 0, 1)] = 4;
	device[pacer_target_index(1, 5, 0)] = 5;
	for (uint32_t k = 0; k < PACER_TARGETS_MAX; k++) /* as many as a pool can have */
		device[pacer_target_index(1, 7, k)] = 6;
	assert_int_equal(targets_put(&maps, 1, plan, &error), 0);
	assert_int_equal(device[pacer_target_index(1, 0, 0)], INDEX);
	assert_int_equal(device[pacer_target_index(0, 0, 0)], 3);
	assert_int_equal(device[pacer_target_index(1, 0, 1)], 0);
	assert_int_equal(device[pacer_target_index(1, 5, 0)], 0);
	for (uint32_t k = 0; k < PACER_TARGETS_MAX; k++)
		assert_int_equal(device[pacer_target_index(1, 7, k)], 0);
	assert_int_equal(leases, PACER_POOLS_MAX);
}

/* Else what is over one rule's limits would leave by the target of another rule's pool. */
static void test_the_second_pools_own_place(void **unused)
{
	struct plan *plan = plan_of(PACER_TARGET_INTERFACE, "eth1", 0);

	(void)unused;
	plan->pool[1] = plan->pool[0];
	plan->n_pools = 2;
	device[pacer_target_index(1, 1, 0)] = 3; /* an older policy's */
	device[pacer_target_index(1, 1, 1)] = 4;
	assert_int_equal(targets_put(&maps, 1, plan, &error), 0);
	for (uint32_t i = 0; i < PLACES; i++)
		assert_int_equal(device[i], i == pacer_target_index(1, 0, 0) ||
						    i == pacer_target_index(1, 1, 0)
						? INDEX
						: 0);
}

/* The queue of a CPU that has one goes on: to write it anew would lose what waits there. */
static void test_a_cpu_keeps_its_queue(void **unused)
{
	struct plan *plan = plan_of(PACER_TARGET_CPU, "", 2);

	(void)unused;
	assert_int_equal(targets_put(&maps, 1, plan, &error), 0);
	assert_int_equal(targets_put(&maps, 1, plan, &error), 0);
	assert_int_equal(cpus_put, 1);
	cpu[2].qsize /= 2; /* another's */
	assert_int_equal(targets_put(&maps, 1, plan, &error), 0);
	assert_int_equal(cpus_put, 2);
	assert_int_equal(leases, 3 * PACER_POOLS_MAX);
}

static const struct {
	enum pacer_target kind;
	const char *name;
	uint32_t number;
	int fails;
	bool down, no_socket, lacks;
	const char *says; /* NULL: it is put */
} cases[] = {
    {PACER_TARGET_INTERFACE, "eth1", 0, 0, false, false, false, NULL},
    {PACER_TARGET_INTERFACE, "eth2", 0, 0, false, false, true,
     "pool spare: eth2: there is no such interface here: see `ip link`"},
    {PACER_TARGET_INTERFACE, "eth1", 0, 0, true, false, true,
     "pool spare: eth1: the interface is down: `ip link set` it up first"},
    /* what cannot be looked at is not down: the map has the last word */
    {PACER_TARGET_INTERFACE, "eth1", 0, 0, true, true, false, NULL},
    {PACER_TARGET_INTERFACE, "eth1", 0, DEVICES, false, false, false,
     "pool spare: eth1: packets cannot be redirected to it: Input/output error"},
    {PACER_TARGET_CPU, "", 2, 0, false, false, false, NULL},
    {PACER_TARGET_CPU, "", POSSIBLE_CPUS, 0, false, false, true,
     "pool spare: cpu:4: there is no such CPU"},
    {PACER_TARGET_CPU, "", 3, 0, false, false, false, /* of a map that is too short for it */
     "pool spare: cpu:3: there is no such CPU"},
    {PACER_TARGET_CPU, "", 1, CPUS, false, false, false,
     "pool spare: cpu:1: packets cannot be redirected to it: Input/output error"},
    {PACER_TARGET_SOCKET, "", PACER_SOCKETS_MAX - 1, 0, false, false, false, NULL},
    {PACER_TARGET_SOCKET, "", 1, LEASES, false, false, false,
     "the pools' leases cannot be written: Input/output error"},
};

static void test_one_that_cannot_be_had(void **unused)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct plan *plan = plan_of(cases[i].kind, cases[i].name, cases[i].number);
		int result;

		begin(unused);
		fails = cases[i].fails;
		down = cases[i].down;
		no_socket = cases[i].no_socket;
		result = targets_put(&maps, 1, plan, &error);
		if (result != (cases[i].says ? -1 : 0) ||
		    strcmp(error.text, cases[i].says ? cases[i].says : "") != 0)
			fail_msg("case %zu: %d: %s", i, result, error.text);
		if (!targets_lack(&plan->pool[0].target[0]) == cases[i].lacks)
			fail_msg("case %zu: lacks", i);
	}
}

/* One by two names would get twice what it takes. */
static void test_one_by_another_name(void **unused)
{
	struct plan *plan = plan_of(PACER_TARGET_INTERFACE, "eth1", 0);

	(void)unused;
	other_name = true;
	assert_int_equal(targets_put(&maps, 1, plan, &error), -1);
	assert_string_equal(error.text, "pool spare: eth1: is another name of eth0: write that");
	assert_string_equal(targets_lack(&plan->pool[0].target[0]),
			    "it is another name of an interface");
}

/* How many CPUs there are cannot be read: no lease is left as it was in silence. */
static void test_leases_of_unknown_cpus(void **unused)
{
	(void)unused;
	possible_cpus = -EIO;
	errno = EIO;
	assert_int_equal(targets_put(&maps, 1, plan_of(PACER_TARGET_SOCKET, "", 0), &error), -1);
	assert_string_equal(error.text, "the pools' leases cannot be written: Input/output error");
}

#define CASE(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_interfaces_of_a_copy),  CASE(test_the_second_pools_own_place),
	    CASE(test_a_cpu_keeps_its_queue), CASE(test_one_that_cannot_be_had),
	    CASE(test_one_by_another_name),   CASE(test_leases_of_unknown_cpus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
