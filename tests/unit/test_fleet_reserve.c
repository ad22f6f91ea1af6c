/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which other pacer of this host goes on with a member's reserve: what maps there are, what they
 * say, and whether an interface has them, is said here.
 */
#include "oracle.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "live/fleet_reserve.h"
#include "live/partners.h"
#include "share.h"

#define MEMBER 0x123456789abcdefull
#define FDS    64

static struct pacer_control control[3];
static struct map {
	uint32_t id, type, size;
	const char *name;
	int cause; /* why it cannot be opened: an errno */
	bool unread, unnamed;
	int carried;
} maps[4];

static const struct map *of_fd[FDS];
static int open_now;
static bool unlisted;

int bpf_map_get_next_id(__u32 id, __u32 *next)
{
	errno = unlisted ? EPERM : ENOENT;
	for (size_t i = 0; i < ARRAY(maps) && !unlisted; i++)
		if (maps[i].id > id) {
			*next = maps[i].id;
			return 0;
		}
	return -1;
}

static const struct map *map_of(uint32_t id)
{
	size_t i = 0;

	while (maps[i].id != id)
		i++;
	return &maps[i];
}

int bpf_map_get_fd_by_id(__u32 id)
{
	const struct map *m = map_of(id);
	int fd;

	errno = m->cause;
	if (errno)
		return -1;
	open_now++;
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_in_range(fd, 0, FDS - 1);
	of_fd[fd] = m;
	return fd;
}

int bpf_obj_get_info_by_fd(int fd, void *info, __u32 *len)
{
	struct bpf_map_info *map = info;

	assert_int_equal(*len, sizeof(*map));
	map->type = of_fd[fd]->type;
	map->value_size = of_fd[fd]->size;
	snprintf(map->name, sizeof(map->name), "%s", of_fd[fd]->name);
	return of_fd[fd]->unnamed ? -1 : 0;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	assert_int_equal(*(const uint32_t *)key, 0);
	assert_int_equal(of_fd[fd]->size, sizeof(control[0]));
	if (of_fd[fd]->unread)
		return -1;
	memcpy(value, &control[of_fd[fd] - maps - 1], sizeof(control[0]));
	return 0;
}

int partners_carried(uint32_t map_id)
{
	return map_of(map_id)->carried;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	open_now--;
	return __real_close(fd);
}

static uint32_t elsewhere(uint32_t but)
{
	uint32_t id = fleet_reserve_elsewhere(MEMBER, but);

	assert_int_equal(open_now, 0);
	return id;
}

/* A reserve of the member, of a limit of that pacer. */
static void put(uint32_t pacer, uint32_t place)
{
	control[pacer].share[place].id = 7;
	control[pacer].share[place].floor = pacer_share_floor(1, MEMBER);
}

/* Another's map, and those of three pacers; the second one goes on with the member's reserve. */
static void begin(void)
{
	unlisted = false;
	maps[0] = (struct map){.id = 3, .type = BPF_MAP_TYPE_HASH, .size = 4, .name = "other"};
	for (size_t i = 0; i < 3; i++) {
		memset(&control[i], 0, sizeof(control[i]));
		control[i].magic = PACER_MAGIC;
		control[i].abi_version = PACER_ABI_VERSION;
		maps[i + 1] = (struct map){.id = 40 + (uint32_t)i,
					   .type = BPF_MAP_TYPE_ARRAY,
					   .size = sizeof(control[i]),
					   .name = ".data.control",
					   .carried = 1};
	}
	put(1, PACER_SHARES - 1);
}

static void test_which(void **unused)
{
	(void)unused;
	begin();
	assert_int_equal(elsewhere(40), 41);
	assert_int_equal(elsewhere(42), 41);
	assert_int_equal(elsewhere(41), 0); /* it is the member's own */
	put(2, 0);
	assert_int_equal(elsewhere(41), 42);
}

/* A share ends by itself; and a reserve may be another member's, or one that was not said. */
static void test_another_reserve(void **unused)
{
	struct pacer_share *share = control[1].share;

	(void)unused;
	begin();
	for (uint32_t i = 0; i < PACER_SHARES; i++) {
		share[i].id = i + 1;
		share[i].word = pacer_share_word(20, UINT64_MAX);
		share[i].floor = pacer_share_floor(i & 1 ? 20 : 0, MEMBER + 1);
	}
	assert_int_equal(elsewhere(40), 0);
	for (uint32_t i = 0; i < PACER_SHARES; i++) {
		share[i].floor = pacer_share_floor(0, MEMBER);
		assert_int_equal(elsewhere(40), 0);
		share[i].floor = 20;
		assert_int_equal(elsewhere(40), 0);
		share[i].floor = pacer_share_floor(20, MEMBER);
		assert_int_equal(elsewhere(40), 41);
		share[i].id =
		    0; /* told by an agent that had not seen yet that the place is nobody's */
		assert_int_equal(elsewhere(40), 0);
		share[i].floor = 0;
	}
}

static void test_no_interface(void **unused)
{
	(void)unused;
	begin();
	maps[2].carried = 0; /* a process has it open */
	assert_int_equal(elsewhere(40), 0);
	maps[2].carried = -1; /* that may be so, and whoever asks is not kept from his work by it */
	assert_int_equal(elsewhere(40), 0);
}

/* It is gone, or another thing, or may not be read. */
static void test_no_control(void **unused)
{
	static const int causes[] = {ENOENT, EPERM};

	(void)unused;
	for (size_t i = 0; i < ARRAY(causes); i++) {
		begin();
		maps[2].cause = causes[i];
		assert_int_equal(elsewhere(40), 0);
		put(2, 0); /* one behind it */
		assert_int_equal(elsewhere(40), 42);
	}
	begin();
	maps[2].unnamed = true;
	assert_int_equal(elsewhere(40), 0);
	begin();
	maps[2].unread = true;
	assert_int_equal(elsewhere(40), 0);
	begin();
	maps[2].name = ".data.other";
	assert_int_equal(elsewhere(40), 0);
	begin();
	maps[2].type = BPF_MAP_TYPE_HASH;
	assert_int_equal(elsewhere(40), 0);
	begin();
	maps[2].size++;
	assert_int_equal(elsewhere(40), 0);
	begin();
	control[1].magic++;
	assert_int_equal(elsewhere(40), 0);
	begin();
	control[1].abi_version++;
	assert_int_equal(elsewhere(40), 0);
	begin();
	unlisted = true;
	assert_int_equal(elsewhere(40), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_which),
	    cmocka_unit_test(test_another_reserve),
	    cmocka_unit_test(test_no_interface),
	    cmocka_unit_test(test_no_control),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
