/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which interfaces share the state of a pacer. Which there are, and what programs the machine has,
 * is said here, not asked of a kernel. Where one cannot be looked at, that is said: it is not taken
 * for one that shares nothing.
 */
#include "oracle.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "live/carried.h"
#include "live/device.h"
#include "live/partners.h"
#include "live/pins.h"
#include "live/site.h"

#define STATE 40u /* the control map's id */
#define FDS   64

/* The interfaces of this network namespace, with their programs' ids; 0: it has no pacer. */
static const struct {
	const char *name;
	uint32_t program, second;
} interfaces[] = {{"s0", 10, 0}, {"s1", 11, 17}, {"s2", 12, 0}, {"s3", 0, 0}};

/* The machine's programs, and which have the map. */
static const uint32_t programs[] = {3, 10, 11, 12, 17, 20, 30};
static uint32_t having[8];

static uint32_t program_of_fd[FDS];
static const char *gone, *unseen; /* interfaces */
static bool unseen_then;	  /* once it was asked whether a program is carried */
static uint32_t unread;		  /* a program */
static int cause;		  /* why: an errno */
static bool unlisted, no_memory;
static uint32_t carried;   /* the program that an interface elsewhere carries */
static uint32_t called;	   /* that a dispatcher calls */
static bool hidden, blind; /* pins; other network namespaces */
static uint32_t asked;	   /* whether it is carried: the last */
static bool comes;	   /* s2 has the program 20 once that was asked */

static struct pacer_control control;
static struct attached of = {
    .ifname = "s0", .control_id = STATE, .prog_id = 10, .control = &control};

static struct policy_error error;

int attached_each(int (*each)(const char *ifname, void *arg), void *arg, struct policy_error *why)
{
	int result = 0;

	(void)why;
	for (size_t i = 0; i < ARRAY(interfaces) && !result; i++)
		if (interfaces[i].program)
			result = each(interfaces[i].name, arg);
	return result;
}

int device_index(const char *ifname, struct policy_error *why)
{
	(void)why;
	return (int)(ifname[1] - '0') + 1;
}

static int open_program(uint32_t id)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_in_range(fd, 0, FDS - 1);
	program_of_fd[fd] = id;
	return fd;
}

int attached_site(const char *ifname, int ifindex, struct site *site, struct policy_error *why)
{
	assert_string_equal(ifname, interfaces[ifindex - 1].name);
	if (gone && !strcmp(ifname, gone))
		return 0;
	if (unseen && !strcmp(ifname, unseen) && (asked || !unseen_then))
		return policy_fail(why, 0, "%s: it cannot be seen", ifname);
	*site = (struct site){
	    .pacer_id = comes && asked && ifindex == 3 ? 20 : interfaces[ifindex - 1].program,
	    .second_id = interfaces[ifindex - 1].second};
	site->pacer_fd = open_program(site->pacer_id);
	return 1;
}

void site_close(struct site *site)
{
	close(site->pacer_fd);
}

int bpf_obj_get_info_by_fd(int fd, void *info, __u32 *len)
{
	struct bpf_prog_info *program = info;
	uint32_t *ids = (uint32_t *)(uintptr_t)program->map_ids;

	(void)len;
	errno = cause;
	if (program_of_fd[fd] == unread && (cause == ENOMEM || cause == ENODEV))
		return -1;
	program->nr_map_ids = 2;
	ids[0] = 1;
	ids[1] = 2;
	for (size_t i = 0; i < ARRAY(having) && having[i]; i++)
		if (having[i] == program_of_fd[fd])
			ids[1] = STATE;
	return 0;
}

int bpf_prog_get_fd_by_id(__u32 id)
{
	errno = cause;
	return id == unread && cause != ENOMEM && cause != ENODEV ? -1 : open_program(id);
}

int bpf_prog_get_next_id(__u32 id, __u32 *next)
{
	errno = unlisted ? EPERM : ENOENT;
	for (size_t i = 0; i < ARRAY(programs) && !unlisted; i++)
		if (programs[i] > id) {
			*next = programs[i];
			return 0;
		}
	return -1;
}

int carried_by_any(uint32_t id)
{
	asked = id;
	return blind ? -1 : id == carried;
}

bool pins_hidden(void)
{
	return hidden;
}

bool pins_called_by_none(uint32_t id)
{
	assert_false(hidden);
	return id != called;
}

void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return no_memory ? NULL : __real_reallocarray(p, n, size);
}

static char found[64];

static int note(const char *ifname, void *stop_at)
{
	strcat(found, ifname);
	return stop_at && !strcmp(ifname, stop_at) ? 7 : 0;
}

static int look(const char *stop_at)
{
	int before = open("/dev/null", O_RDONLY | O_CLOEXEC), after, result;

	close(before);
	found[0] = error.text[0] = 0;
	asked = 0;
	result = partners_each(&of, note, (void *)(uintptr_t)stop_at, &error);
	after = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(after, before); /* all is closed */
	close(after);
	return result;
}

/* Nothing is wrong. s0 and s1 share their state, and s1 has two programs. */
static void begin(uint32_t also)
{
	memset(having, 0, sizeof(having));
	memcpy(having, (uint32_t[]){10, 11, 17, also}, 4 * sizeof(*having));
	gone = unseen = NULL;
	unread = carried = called = 0;
	cause = 0;
	unlisted = no_memory = hidden = blind = comes = unseen_then = false;
	control.shared = 1;
}

static void test_here(void **unused)
{
	struct attached a = {
	    .ifname = "s1", .control_id = STATE, .prog_id = 11, .control = &control};

	(void)unused;
	begin(0);
	assert_int_equal(look(NULL), 0);
	assert_string_equal(found, "s1");
	assert_int_equal(asked, 0);
	begin(12);
	assert_int_equal(look(NULL), 0);
	assert_string_equal(found, "s1s2");
	assert_int_equal(look("s1"), 7);
	assert_string_equal(found, "s1");
	assert_string_equal(error.text, "");
	gone = "s1"; /* by the time that it is looked at; and its program with it */
	having[1] = having[2] = 0;
	memcpy(having, (uint32_t[]){10, 12}, 2 * sizeof(*having));
	assert_int_equal(look(NULL), 0);
	assert_string_equal(found, "s2");
	begin(0);
	memcpy(having, (uint32_t[]){10, 17, 0}, 3 * sizeof(*having)); /* the second one of s1 */
	assert_int_equal(look(NULL), 0);
	assert_string_equal(found, "s1");
	begin(0);
	found[0] = 0;
	assert_int_equal(partners_each(&a, note, NULL, &error), 0);
	assert_string_equal(found, "s0");
	found[0] = 0;
	unlisted = true; /* without a state there is nothing to ask */
	assert_int_equal(partners_here("s0", 0, note, NULL, &error), 0);
	assert_string_equal(found, "");
}

#define TOLD "s0: which interfaces share its state cannot be told: "

static void fails(const char *says)
{
	char all[300];

	snprintf(all, sizeof(all), TOLD "%s", says);
	assert_int_equal(look(NULL), -1);
	assert_string_equal(error.text, all);
}

/* A program that no interface of this network namespace has. */
static void test_elsewhere(void **unused)
{
	(void)unused;
	begin(20);
	assert_int_equal(look(NULL), 0); /* it is only open */
	assert_int_equal(asked, 20);
	carried = 20;
	fails("program 20 has it, of an interface of another network namespace: move that back, or "
	      "`xdp-pacer unload` it there");
	assert_string_equal(found, "s1");
	hidden = true; /* it is carried all the same */
	fails("program 20 has it, of an interface of another network namespace: move that back, or "
	      "`xdp-pacer unload` it there");
	begin(20);
	called = 20;
	fails("program 20 has it, of an interface of another network namespace: move that back, or "
	      "`xdp-pacer unload` it there");
	begin(10);
	gone = "s0"; /* it is off, and who asks has it open */
	hidden = true;
	assert_int_equal(look(NULL), 0);
	assert_int_equal(asked, 0);
	begin(30);
	carried = 20; /* another's */
	assert_int_equal(look(NULL), 0);
	begin(20);
	carried = of.second_id = 20; /* that judges beside it */
	assert_int_equal(look(NULL), 0);
	assert_int_equal(asked, 0);
	of.second_id = 0;
	begin(20);
	carried = 20;
	comes = true; /* it is one of here, by now */
	assert_int_equal(look(NULL), 0);
	assert_string_equal(found, "s1");
	begin(20);
	carried = 20;
	control.shared = 0; /* it was loaded for one interface */
	unlisted = true;
	assert_int_equal(look(NULL), 0);
	assert_int_equal(asked, 0);
	begin(20);
	carried = 20; /* a partner of what is gone is looked for here alone */
	found[0] = 0;
	assert_int_equal(partners_here("s0", STATE, note, NULL, &error), 0);
	assert_string_equal(found, "s1");
	assert_int_equal(asked, 0);
	begin(20);
	blind = true;
	fails("program 20 has it, and not every network namespace can be looked into: run as root, "
	      "outside of containers and of `ip netns exec`");
	begin(20);
	hidden = true;
	fails("program 20 has it, and not every network namespace can be looked into: run as root, "
	      "outside of containers and of `ip netns exec`");
}

static void test_untold(void **unused)
{
	(void)unused;
	begin(0);
	unseen = "s2";
	fails("s2: it cannot be seen");
	begin(20);
	carried = 20;
	unseen = "s2";
	unseen_then = true;
	fails("s2: it cannot be seen");
	begin(0);
	unread = 11;
	cause = ENOMEM;
	fails("s1: its program cannot be read: Cannot allocate memory");
	begin(0);
	no_memory = true;
	fails("no memory");
	begin(0);
	unlisted = true;
	fails("programs cannot be listed: Operation not permitted");
	begin(0);
	unread = 30;
	cause = ENOMEM;
	fails("program 30 cannot be read: Cannot allocate memory");
	cause = EMFILE;
	fails("program 30 cannot be read: Too many open files");
	cause = ENOENT; /* it has ended */
	assert_int_equal(look(NULL), 0);
	begin(30);
	unread = 30;
	cause = ENODEV; /* of a network card that is gone */
	assert_int_equal(look(NULL), 0);
}

/* Only programs of no interface here have the map. */
static void begin_elsewhere(void)
{
	begin(0);
	memcpy(having, (uint32_t[]){20, 30, 0, 0}, 4 * sizeof(*having));
}

/* Whichever interface carries it, and where none can be asked. */
static void test_carried(void **unused)
{
	(void)unused;
	begin(0);
	blind = hidden = true; /* those that are here are seen all the same */
	assert_int_equal(partners_carried(STATE), 1);
	memcpy(having, (uint32_t[]){17, 0, 0, 0}, 4 * sizeof(*having));
	assert_int_equal(partners_carried(STATE), 1);
	begin_elsewhere();
	assert_int_equal(partners_carried(STATE), 0); /* they are only open */
	assert_int_equal(partners_carried(STATE + 1), 0);
	for (size_t i = 0; i < 2; i++) {
		begin_elsewhere();
		carried = having[i];
		assert_int_equal(partners_carried(STATE), 1);
		assert_int_equal(partners_carried(STATE + 1), 0);
	}
	begin_elsewhere();
	called = 20;
	assert_int_equal(partners_carried(STATE), 1);
	begin_elsewhere();
	carried = 3; /* which has another map */
	assert_int_equal(partners_carried(STATE), 0);
	begin_elsewhere();
	hidden = true;
	assert_int_equal(partners_carried(STATE), -1);
	assert_int_equal(partners_carried(STATE + 1), 0);
	carried = 30; /* the last of them */
	assert_int_equal(partners_carried(STATE), 1);
	begin_elsewhere();
	blind = true;
	assert_int_equal(partners_carried(STATE), -1);
	begin_elsewhere();
	unlisted = true;
	assert_int_equal(partners_carried(STATE), -1);
	begin_elsewhere();
	unread = 3;
	cause = ENOMEM;
	assert_int_equal(partners_carried(STATE), -1);
	carried = 20;
	assert_int_equal(partners_carried(STATE), 1);
	begin_elsewhere();
	unseen = "s2"; /* it may have it */
	assert_int_equal(partners_carried(STATE), -1);
	begin_elsewhere();
	unread = 30;
	cause = ENOENT; /* it has ended */
	assert_int_equal(partners_carried(STATE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_here),
	    cmocka_unit_test(test_elsewhere),
	    cmocka_unit_test(test_untold),
	    cmocka_unit_test(test_carried),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
