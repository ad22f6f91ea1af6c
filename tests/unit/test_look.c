/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * user/live/look.h: what is read of a pacer whose maps are arrays here. Each CPU has the leases
 * that are its own, and the sets are those of the copy in force, beside what was added to them by
 * hand.
 */
#include "oracle.h"

#include <errno.h>

#include "live/copies.h"
#include "live/host.h"
#include "live/look.h"
#include "sets/set_maps.h"

#define CPUS	  3
#define LEASES_FD 50
#define SETS_FD	  51
#define SETS	  2

/* Of which calls one fails, and why; 0: none does. */
static struct {
	int leases, sets, cpus;
} wrong;

static uint64_t in_force; /* the copy */
static struct policy_error error;
static struct pacer_control control;
static struct pacer_copy copies[2];
static struct attached a = {.ifname = "eth0",
			    .leases_fd = LEASES_FD,
			    .sets_fd = SETS_FD,
			    .control = &control,
			    .copy = copies};

int host_cpus(struct policy_error *why)
{
	return wrong.cpus ? policy_fail(why, 0, "the CPUs cannot be counted") : CPUS;
}

uint64_t host_now_ns(void)
{
	return 77;
}

uint32_t copies_in_force(const struct attached *of)
{
	(void)of;
	return (uint32_t)in_force;
}

/* A lease says whose it is. */
int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	struct pacer_throttle_lease *each = value;

	assert_int_equal(fd, LEASES_FD);
	errno = wrong.leases;
	for (uint32_t cpu = 0; cpu < CPUS; cpu++)
		each[cpu].left = 100 * cpu + *(const uint32_t *)key;
	return wrong.leases ? -1 : 0;
}

/* Lines that say of which place they are. */
int set_maps_lines_of(int fd, uint32_t place, struct set_lines *lines)
{
	assert_int_equal(fd, SETS_FD);
	*lines = (struct set_lines){0};
	errno = wrong.sets;
	if (wrong.sets)
		return -1;
	lines->n = place + 1;
	return 0;
}

static void begin(void)
{
	memset(&wrong, 0, sizeof(wrong));
	error = (struct policy_error){.line = -1};
	for (int i = 0; i < 2; i++)
		copies[i].policy.sets = SETS;
}

static void test_each_cpu_has_its_leases(void **unused)
{
	static struct look look;

	(void)unused;
	begin();
	assert_int_equal(look_open(&a, &look, &error), 0);
	assert_true(look.cpus == CPUS && look.now_ns == 77);
	for (uint32_t cpu = 0; cpu < CPUS; cpu++) {
		struct pacer_state state = look_state(&look, cpu);

		for (uint32_t i = 0; i < PACER_THROTTLES; i++)
			assert_int_equal(state.lease[i].left, 100 * cpu + i);
		assert_true(state.share == control.share && state.lanes == control.lanes);
		assert_true(state.set == look.set && state.hand == look.hand);
	}
	look_close(&look);
	assert_null(look.lease);
}

/* Of the policy's sets alone, in the copy that packets are judged by. */
static void test_sets_of_the_copy(void **unused)
{
	static struct look look;

	(void)unused;
	for (in_force = 0; in_force < 2; in_force++) {
		uint32_t place = (uint32_t)in_force * PACER_SETS_MAX;

		begin();
		assert_int_equal(look_open(&a, &look, &error), 0);
		assert_ptr_equal(look.policy, &copies[in_force].policy);
		for (uint32_t i = 0; i < SETS; i++) {
			assert_int_equal(look.set[i].lines, place + i + 1);
			assert_int_equal(look.hand[i].lines, PACER_SET_HANDS + place + i + 1);
		}
		assert_int_equal(look.set[SETS].lines, 0);
		look_close(&look);
	}
	in_force = 0;
}

/* A set that is not there, or broken, holds nothing; what cannot be read is said. */
static void test_what_cannot_be_read(void **unused)
{
	static struct look look;
	static const int none[] = {ENOENT, EBADMSG};

	(void)unused;
	for (size_t i = 0; i < ARRAY(none); i++) {
		begin();
		wrong.sets = none[i];
		assert_int_equal(look_open(&a, &look, &error), 0);
		assert_int_equal(look.set[0].lines, 0);
		look_close(&look);
	}
	begin();
	wrong.sets = EPERM;
	assert_int_equal(look_open(&a, &look, &error), -1);
	assert_string_equal(error.text, "eth0: its sets cannot be read: Operation not permitted");
	begin();
	wrong.leases = ENOMEM;
	assert_int_equal(look_open(&a, &look, &error), -1);
	assert_string_equal(error.text, "eth0: its leases cannot be read: Cannot allocate memory");
	assert_null(look.lease);
	begin();
	wrong.cpus = 1;
	assert_int_equal(look_open(&a, &look, &error), -1);
	assert_string_equal(error.text, "the CPUs cannot be counted");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_each_cpu_has_its_leases),
	    cmocka_unit_test(test_sets_of_the_copy),
	    cmocka_unit_test(test_what_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
