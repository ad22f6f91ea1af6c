/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether the program of an interface is a pacer: by its name and what its control map begins with.
 * What cannot be read may be one. The kernel's answers are said here.
 */
#include "oracle.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include <xdp/libxdp.h>

#include "live/site.h"

#define PROGRAM_ID 7u
#define MAPS	   2

/* Its maps have the ids 1 and 2. */
static struct {
	const char *program;
	struct {
		const char *name;
		uint32_t type, value_size;
		union {
			uint32_t word[2];
			struct pacer_control control;
		};
	} map[MAPS];
	uint32_t of_mode[3]; /* the program's id; 0: none */
	uint64_t load_time;
	uint32_t ended; /* so often has the program ended before it is opened */
} kernel;

static unsigned int calls, fail_at; /* from 1; 0: none fails */
static int fail_by, opened;
static struct policy_error error;
static struct site site;

static bool broken(void)
{
	errno = fail_by;
	return ++calls == fail_at;
}

static int open_any(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_in_range(fd, 3, 1000);
	return fd;
}

int bpf_xdp_query(int ifindex, int flags, struct bpf_xdp_query_opts *opts)
{
	(void)flags;
	assert_int_equal(ifindex, 3);
	opts->drv_prog_id = kernel.of_mode[SITE_NATIVE];
	opts->skb_prog_id = kernel.of_mode[SITE_SKB];
	opts->hw_prog_id = kernel.of_mode[SITE_HW];
	return broken() ? -errno : 0;
}

int bpf_prog_get_fd_by_id(__u32 id)
{
	assert_int_equal(id, PROGRAM_ID);
	if (broken())
		return -errno;
	opened = 0;
	errno = ENOENT;
	return kernel.ended && kernel.ended-- ? -ENOENT : open_any();
}

int bpf_map_get_fd_by_id(__u32 id)
{
	if (broken())
		return -errno;
	opened = (int)id;
	return open_any();
}

int bpf_obj_get_info_by_fd(int fd, void *info, __u32 *len)
{
	struct bpf_prog_info *program = info;
	struct bpf_map_info *map = info;

	(void)fd;
	(void)len;
	if (broken())
		return -errno;
	if (opened) {
		map->type = kernel.map[opened - 1].type;
		map->value_size = kernel.map[opened - 1].value_size;
		snprintf(map->name, sizeof(map->name), "%s", kernel.map[opened - 1].name);
		return 0;
	}
	snprintf(program->name, sizeof(program->name), "%s", kernel.program);
	program->load_time = kernel.load_time;
	for (uint32_t i = 0; i < MAPS && i < program->nr_map_ids; i++)
		((uint32_t *)(uintptr_t)program->map_ids)[i] = i + 1;
	program->nr_map_ids = MAPS;
	return 0;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	(void)fd;
	(void)key;
	memcpy(value, &kernel.map[opened - 1].control, kernel.map[opened - 1].value_size);
	return broken() ? -errno : 0;
}

/* --- libxdp's dispatcher ---------------------------------------------------------------------- */

#define CALLED 4

/* What it calls: the names of programs, whose ids follow its own. NULL: no more. */
static struct {
	const char *name[CALLED + 1];
	long err; /* it cannot be read */
	bool legacy, open;
	uint32_t none;	   /* of the pacer's name, and is none */
	uint32_t early;	   /* loaded at another time than the names' order says: */
	uint64_t early_ns; /* 0: that cannot be told */
} dispatcher;

struct xdp_multiprog *xdp_multiprog__get_from_ifindex(int ifindex)
{
	assert_int_equal(ifindex, 3);
	dispatcher.open = !dispatcher.err;
	return (struct xdp_multiprog *)(dispatcher.err ? (uintptr_t)dispatcher.err
						       : (uintptr_t)&dispatcher);
}

long libxdp_get_error(const void *p)
{
	return p == &dispatcher ? 0 : (long)(uintptr_t)p;
}

bool xdp_multiprog__is_legacy(const struct xdp_multiprog *mp)
{
	assert_ptr_equal(mp, &dispatcher);
	return dispatcher.legacy;
}

void xdp_multiprog__close(struct xdp_multiprog *mp)
{
	assert_ptr_equal(mp, &dispatcher);
	assert_true(dispatcher.open);
	dispatcher.open = false;
}

/* A program is where its name is. */
static const char **place(const struct xdp_program *p)
{
	return (const char **)(uintptr_t)p;
}

struct xdp_program *xdp_multiprog__next_prog(const struct xdp_program *p,
					     const struct xdp_multiprog *mp)
{
	const char **next = p ? place(p) + 1 : dispatcher.name;

	assert_ptr_equal(mp, &dispatcher);
	return *next ? (struct xdp_program *)(uintptr_t)next : NULL;
}

const char *xdp_program__name(const struct xdp_program *p)
{
	return *place(p);
}

uint32_t xdp_program__id(const struct xdp_program *p)
{
	return PROGRAM_ID + 1 + (uint32_t)(place(p) - dispatcher.name);
}

int xdp_program__fd(const struct xdp_program *p)
{
	kernel.program = "pacer"; /* it is asked next */
	kernel.map[1].word[0] = xdp_program__id(p) == dispatcher.none ? 0 : PACER_MAGIC;
	kernel.load_time =
	    xdp_program__id(p) == dispatcher.early ? dispatcher.early_ns : xdp_program__id(p);
	opened = 0;
	return 0;
}

static int open_files(void)
{
	int n = 0;

	for (int fd = 0; fd < 64; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static int looks(void)
{
	int files = open_files(), result;

	calls = 0;
	opened = 0;
	result = site_open("eth0", 3, &site, &error);
	if (!result)
		site_close(&site);
	assert_int_equal(open_files(), files);
	return result;
}

static void begin(void)
{
	memset(&kernel, 0, sizeof(kernel));
	kernel.of_mode[SITE_SKB] = PROGRAM_ID;
	kernel.program = "pacer";
	kernel.map[0].name = "pacer_lines";
	kernel.map[1].name = ".data.control";
	kernel.map[1].type = BPF_MAP_TYPE_ARRAY;
	kernel.map[1].value_size = 64;
	kernel.map[1].word[0] = PACER_MAGIC;
	kernel.map[1].word[1] = 77;
	fail_at = 0;
}

/* What is known of it before it is closed. */
static void assert_is(bool named, bool pacer, uint32_t abi)
{
	calls = 0;
	opened = 0;
	assert_int_equal(site_open("eth0", 3, &site, &error), 0);
	assert_true(site.id == PROGRAM_ID && site.mode == SITE_SKB);
	assert_true(site.named == named && site.pacer == pacer && site.abi == abi);
	site_close(&site);
}

static void test_is_a_pacer(void **unused)
{
	(void)unused;
	begin();
	assert_is(true, true, 77);
	kernel.map[1].word[0]++;
	assert_is(true, false, 0);
	begin();
	kernel.map[1].type = BPF_MAP_TYPE_HASH;
	assert_is(true, false, 0);
	begin();
	kernel.map[1].value_size = 7;
	assert_is(true, false, 0);
	begin();
	kernel.map[1].name = ".data.policy";
	assert_is(true, false, 0);
	begin();
	kernel.program = "filter";
	assert_is(false, false, 0);
}

/* The mode in which it is: a driver calls its own before the stack does. An interface may have
 * none.
 */
static void test_modes(void **unused)
{
	static const struct {
		uint32_t native, skb, hw, id;
		enum site_mode mode;
	} cases[] = {
	    {7, 0, 0, 7, SITE_NATIVE}, {0, 7, 0, 7, SITE_SKB}, {0, 0, 7, 7, SITE_HW},
	    {7, 9, 9, 7, SITE_NATIVE}, {0, 7, 9, 7, SITE_SKB}, {0, 0, 0, 0, SITE_NATIVE},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		begin();
		kernel.of_mode[SITE_NATIVE] = cases[i].native;
		kernel.of_mode[SITE_SKB] = cases[i].skb;
		kernel.of_mode[SITE_HW] = cases[i].hw;
		opened = 0;
		assert_int_equal(site_open("eth0", 3, &site, &error), 0);
		assert_int_equal(site.id, cases[i].id);
		assert_int_equal(site.mode, cases[i].mode);
		assert_int_equal(site.pacer_id, cases[i].id);
		assert_int_equal(site.pacer, cases[i].id != 0);
		assert_int_equal(site_id(3), cases[i].id);
		site_close(&site);
	}
	fail_by = EIO;
	fail_at = calls + 1;
	assert_int_equal(site_id(3), -1);
}

static bool has_tools(void)
{
	bool tools;

	opened = 0;
	assert_int_equal(site_open("eth0", 3, &site, &error), 0);
	tools = site.tools;
	site_close(&site);
	return tools;
}

/* Where the version at hand says so; those of others may. */
static void test_heeds_tools(void **unused)
{
	(void)unused;
	begin();
	kernel.map[1].value_size = sizeof(struct pacer_control);
	assert_true(has_tools());
	kernel.map[1].word[1] = PACER_ABI_VERSION;
	assert_false(has_tools());
	kernel.map[1].value_size = 64; /* it is too short */
	assert_true(has_tools());
	kernel.map[1].value_size = sizeof(struct pacer_control);
	kernel.map[1].control.tools = 1;
	assert_true(has_tools());
	kernel.program = "filter";
	assert_false(has_tools());
}

static void test_cannot_be_read(void **unused)
{
	uint32_t passed = 0;

	(void)unused;
	begin();
	for (fail_at = 1; fail_at == 1 || calls >= fail_at - 1; fail_at++) {
		fail_by = EPERM;
		if (!looks()) { /* it has the control map, whatever the other one is */
			passed++;
			continue;
		}
		assert_string_equal(error.text, "eth0: no privilege to look at its XDP programs: "
						"run as root");
		fail_by = EIO;
		assert_int_equal(looks(), -1);
		assert_string_equal(error.text,
				    "eth0: its XDP programs cannot be read: Input/output error");
	}
	assert_int_equal(fail_at, 11);
	assert_int_equal(passed, 3); /* the other map's two calls, and none */
}

/* One that is replaced meanwhile is looked for again. */
static void test_ends_meanwhile(void **unused)
{
	(void)unused;
	begin();
	kernel.ended = 7;
	assert_int_equal(looks(), 0);
	kernel.ended = 8;
	assert_int_equal(looks(), -1);
	assert_string_equal(error.text,
			    "eth0: its XDP programs cannot be read: No such file or directory");
}

static int has_shadow(void)
{
	opened = 0;
	return site_has_shadow(0);
}

static void test_has_a_shadow(void **unused)
{
	(void)unused;
	begin();
	assert_int_equal(has_shadow(), 0);
	kernel.map[1].name = "pacer_next";
	assert_int_equal(has_shadow(), 0);
	kernel.map[1].type = BPF_MAP_TYPE_PROG_ARRAY;
	assert_int_equal(has_shadow(), 1);
	kernel.program = "filter";
	assert_int_equal(has_shadow(), 0);
	begin();
	kernel.map[1].type = BPF_MAP_TYPE_PROG_ARRAY;
	assert_int_equal(has_shadow(), 0);
	fail_by = EPERM;
	calls = 0;
	fail_at = 2; /* one of its maps cannot be opened */
	assert_int_equal(has_shadow(), -EPERM);
}

/*
 * Two pacers, and others: the pacer is the one that was loaded first, and it is known that there is
 * a second. One that only has the name takes no pacer's place.
 */
static void test_among_others(void **unused)
{
	static const struct {
		const char *called[CALLED];
		uint32_t pacer, second, none, early;
		uint64_t early_ns;
		bool has_other; /* than the pacer */
	} cases[] = {
	    {{NULL}, 0, 0, 0, 0, 0, false},
	    {{"filter", "other"}, 0, 0, 0, 0, 0, false},
	    {{"filter", "pacer", "other"}, 9, 0, 0, 0, 0, false},
	    {{"pacer", "filter", "pacer", "pacer"}, 8, 10, 0, 0, 0, true},
	    {{"pacer", "filter", "pacer", "pacer"}, 8, 11, 10, 0, 0, true},
	    {{"pacer", "filter", "pacer"}, 8, 0, 10, 0, 0, true},
	    {{"pacer", "filter", "pacer"}, 10, 8, 0, 10, 1, true},
	    {{"pacer", "filter", "pacer"}, 8, 10, 0, 9, 1, true},
	    {{"pacer", "filter", "pacer"}, 8, 0, 10, 10, 1, true},
	    {{"pacer", "filter", "pacer"}, 8, 10, 0, 10, 0, true},
	    {{"pacer", "filter", "pacer"}, 8, 10, 0, 8, 0, true},
	    {{"pacer", "filter", "pacer"}, 8, 10, 8, 10, 1, true},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		uint32_t pacer = cases[i].pacer;

		begin();
		opened = 0;
		kernel.program = "xdp_dispatcher";
		memset(&dispatcher, 0, sizeof(dispatcher));
		memcpy(dispatcher.name, cases[i].called, sizeof(cases[i].called));
		dispatcher.none = cases[i].none;
		dispatcher.early = cases[i].early;
		dispatcher.early_ns = cases[i].early_ns;
		assert_int_equal(site_open("eth0", 3, &site, &error), 0);
		assert_true(site.named == (pacer != 0));
		assert_int_equal(site.pacer, pacer != cases[i].none);
		assert_int_equal(site.id, PROGRAM_ID);
		assert_int_equal(site.pacer_id, pacer);
		assert_int_equal(site.second_id, cases[i].second);
		assert_int_equal(site_has_other(&site, pacer), cases[i].has_other);
		assert_false(site_lost_its_pins(&site));
		assert_null(site_program(&site, PROGRAM_ID));
		if (pacer)
			assert_int_equal(xdp_program__id(site_program(&site, pacer)), pacer);
		site_close(&site);
		assert_false(dispatcher.open);
	}
}

/* One whose pins are gone is a program that stands alone. */
static void test_without_its_pins(void **unused)
{
	static const long errs[] = {0, -ENOENT, -EPERM};

	(void)unused;
	for (size_t i = 0; i < ARRAY(errs); i++) {
		begin();
		opened = 0;
		kernel.program = "xdp_dispatcher";
		memset(&dispatcher, 0, sizeof(dispatcher));
		dispatcher.name[0] = "pacer";
		dispatcher.legacy = true;
		dispatcher.err = errs[i];
		assert_int_equal(site_open("eth0", 3, &site, &error), errs[i] == -EPERM ? -1 : 0);
		assert_false(dispatcher.open);
		if (errs[i] == -EPERM)
			continue;
		assert_true(site_lost_its_pins(&site) && !site.named && !site.second_id);
		assert_null(site_program(&site, PROGRAM_ID + 1));
		assert_false(site_has_other(&site, 0));
		site_close(&site);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_is_a_pacer),	   cmocka_unit_test(test_modes),
	    cmocka_unit_test(test_heeds_tools),	   cmocka_unit_test(test_cannot_be_read),
	    cmocka_unit_test(test_ends_meanwhile), cmocka_unit_test(test_has_a_shadow),
	    cmocka_unit_test(test_among_others),   cmocka_unit_test(test_without_its_pins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
