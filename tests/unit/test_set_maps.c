/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sets in the kernel's maps, which are files in memory here, of which any call may fail: after a
 * failure errno says which, each place has what it had, and no descriptor stays open. And what is
 * there and is no set, or a damaged one, is refused.
 */
#include "oracle.h"
#include "starved.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sets/set_maps.h"
#include "sets/words.h"

#define PLACES 8
#define MANY   17000u
#define SETS   5 /* the descriptor of the map of maps */
#define LINE   sizeof(union pacer_set_line)

static int places[PLACES];	/* a descriptor of the set there, or 0 */
static uint32_t calls, fail_at; /* from 1; 0: none fails */
static bool full;		/* there is no memory for more lines */
static struct set_list list;
static struct set_hand hand;

static bool broken(void)
{
	if (++calls != fail_at)
		return false;
	errno = EIO;
	return true;
}

/* ---- the kernel ---- */

int bpf_map_create(enum bpf_map_type type, const char *name, __u32 key_size, __u32 value_size,
		   __u32 max_entries, const struct bpf_map_create_opts *opts)
{
	int fd;

	assert_int_equal(key_size, 4);
	if (type == BPF_MAP_TYPE_ARRAY_OF_MAPS)
		assert_true(opts->inner_map_fd > 0 && value_size == 4);
	else
		assert_true(value_size == LINE && opts->map_flags & BPF_F_MMAPABLE);
	if (broken())
		return -1;
	fd = memfd_create(name, MFD_CLOEXEC);
	assert_int_equal(ftruncate(fd, (off_t)max_entries * value_size), 0);
	return fd;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	uint32_t place = *(const uint32_t *)key;

	assert_true(fd == SETS && place < PLACES);
	if (broken())
		return -1;
	errno = ENOENT;
	*(uint32_t *)value = (uint32_t)places[place];
	return places[place] ? 0 : -1;
}

int bpf_map_get_fd_by_id(__u32 id)
{
	return broken() ? -1 : fcntl((int)id, F_DUPFD_CLOEXEC, 3);
}

int bpf_obj_get_info_by_fd(int fd, void *info, __u32 *len)
{
	struct stat st;

	if (broken())
		return -1;
	assert_true(!fstat(fd, &st) && *len == sizeof(struct bpf_map_info));
	((struct bpf_map_info *)info)->max_entries = (uint32_t)((size_t)st.st_size / LINE);
	return 0;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	uint32_t place = *(const uint32_t *)key;

	(void)flags;
	assert_true(fd == SETS && place < PLACES);
	if (broken())
		return -1;
	if (places[place])
		close(places[place]);
	places[place] = fcntl(*(const int *)value, F_DUPFD_CLOEXEC, 3);
	return 0;
}

int bpf_map_update_batch(int fd, const void *keys, const void *values, __u32 *count,
			 const struct bpf_map_batch_opts *opts)
{
	assert_null(opts);
	for (uint32_t i = 0; i < *count; i++)
		if (bpf_map_update_elem(fd, (const uint32_t *)keys + i, (const int *)values + i,
					BPF_ANY))
			return -1;
	return 0;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	uint32_t place = *(const uint32_t *)key;

	assert_true(fd == SETS && place < PLACES);
	if (broken())
		return -1;
	errno = ENOENT;
	if (!places[place])
		return -1;
	close(places[place]);
	places[place] = 0;
	return 0;
}

ssize_t getrandom(void *buf, size_t n, unsigned int flags)
{
	(void)flags;
	if (broken())
		return -1;
	memset(buf, 0x5a, n);
	return (ssize_t)n;
}

void *__real_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);

void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	return fd >= 0 && broken() ? MAP_FAILED : __real_mmap(at, n, prot, flags, fd, offset);
}

void *__real_mremap(void *at, size_t was, size_t n, int flags);
void *__wrap_mremap(void *at, size_t was, size_t n, int flags);

void *__wrap_mremap(void *at, size_t was, size_t n, int flags)
{
	errno = ENOMEM;
	return full ? MAP_FAILED : __real_mremap(at, was, n, flags);
}

/* ---- what is there ---- */

static uint32_t descriptors(void)
{
	uint32_t n = 0;

	for (int fd = 0; fd < 100; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void empty(void)
{
	for (uint32_t i = 0; i < PLACES; i++) {
		if (places[i])
			close(places[i]);
		places[i] = 0;
	}
}

static void add(struct set_list *to, const char *text, uint16_t value)
{
	struct set_entry e;
	struct prefix p;

	assert_int_equal(units_prefix(text, &p), 0);
	e = set_entry_of(&p, value, 0);
	assert_int_equal(set_list_add(to, &e), 0);
}

static int begin(void **unused)
{
	(void)unused;
	calls = fail_at = 0;
	add(&list, "10.0.0.0/8", 1);
	add(&list, "10.1.0.0/16", 2);
	add(&list, "2001:db8::1", 1);
	assert_int_equal(set_hand_add_named(&hand, &list.entry[1], SET_HAND_STAYS, "XY"), 0);
	return 0;
}

static int end(void **unused)
{
	(void)unused;
	empty();
	set_list_free(&list);
	set_hand_free(&hand);
	return 0;
}

/* ---- each of what is done, with each of its calls failing ---- */

static int make(void)
{
	int fd = set_maps_make(PLACES);

	return fd < 0 ? -1 : close(fd);
}

static int put(void)
{
	return set_maps_put(SETS, 1, &list);
}

static int put_by_hand(void)
{
	int fd = set_maps_new_hand(&hand, 9), result = fd < 0 ? -1 : set_maps_move(SETS, 2, fd);
	int cause = errno;

	if (fd >= 0)
		close(fd);
	errno = cause;
	return result;
}

static int share(void)
{
	return set_maps_share(SETS, 1, 3);
}

static int take_away(void)
{
	return set_maps_move(SETS, 4, -1);
}

static int look(void)
{
	struct pacer_set_head head;
	int result = set_maps_head(SETS, 1, &head);

	if (!result)
		assert_true(head.prefixes[0] == 2 && head.prefixes[1] == 1);
	return result;
}

static int take_list(void)
{
	struct set_list is = {0};
	int result = set_maps_list(SETS, 1, &is), cause = errno;

	if (!result)
		assert_true(is.n == 3 && is.entry[1].value == 2);
	set_list_free(&is);
	errno = cause;
	return result;
}

static int take_hand(void)
{
	struct set_hand is = {.n = 0};
	int result = set_maps_hand(SETS, 2, &is), cause = errno;

	if (!result) {
		assert_int_equal(is.n, 1);
		assert_string_equal(set_hand_value(&is, &is.entry[0]), "XY");
	}
	set_hand_free(&is);
	errno = cause;
	return result;
}

static const struct {
	int (*run)(void);
	uint32_t changes; /* the place, or PLACES: none */
} each[] = {
    {make, PLACES}, {put, 1},	    {put_by_hand, 2},	 {share, 3},
    {take_away, 4}, {look, PLACES}, {take_list, PLACES}, {take_hand, PLACES},
};

/* What a place has, as it is known from outside. */
static ino_t at(uint32_t place)
{
	struct stat st = {.st_ino = 0};

	if (place < PLACES && places[place])
		assert_int_equal(fstat(places[place], &st), 0);
	return st.st_ino;
}

static void fill(void)
{
	empty();
	assert_int_equal(put(), 0);
	assert_int_equal(put_by_hand(), 0);
	assert_int_equal(set_maps_share(SETS, 2, 3), 0);
	assert_int_equal(set_maps_share(SETS, 2, 4), 0);
}

static void test_failures(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < ARRAY(each); i++) {
		for (fail_at = 1;; fail_at++) {
			uint32_t wanted = fail_at, before;
			ino_t was;

			fail_at = 0;
			fill();
			before = descriptors();
			was = at(each[i].changes);
			calls = 0;
			fail_at = wanted;
			errno = 0;
			if (!each[i].run()) {
				if (calls >= fail_at)
					fail_msg("%zu: call %u failed, and it is done", i, fail_at);
				break;
			}
			assert_int_equal(errno, EIO);
			assert_int_equal(descriptors(), before);
			assert_true(at(each[i].changes) == was);
		}
		assert_true(fail_at > 1);
		fail_at = 0;
	}
}

/* The same with memory: nothing is half there. */
static void test_starved(void **unused)
{
	uint32_t failed = 0;

	(void)unused;
	for (size_t i = 0; i < ARRAY(each); i++)
		for (uint32_t n = 1;; n++) {
			uint32_t before;
			ino_t was;
			int result;

			fill();
			before = descriptors();
			was = at(each[i].changes);
			starved_from(n, true);
			memory.on = true;
			errno = 0;
			result = each[i].run();
			memory.on = false;
			if (memory.n < n) {
				assert_int_equal(result, 0);
				break;
			}
			failed++;
			assert_true(result && errno == ENOMEM);
			assert_int_equal(descriptors(), before);
			assert_true(at(each[i].changes) == was);
		}
	assert_true(failed > 10);
}

/* How many lines it takes, in a map that is never made. */
static void test_lines(void **unused)
{
	struct pacer_set_head head;
	uint64_t n;

	(void)unused;
	fill();
	calls = 0;
	n = set_maps_lines(&list);
	assert_int_equal(set_maps_head(SETS, 1, &head), 0);
	assert_int_equal(n, head.lines + 1); /* and the list */
	fail_at = 1;
	calls = 0;
	assert_int_equal(set_maps_lines(&list), 0);
}

/* With its values' names, where keys have them. */
static void test_named(void **unused)
{
	char xy[] = "XY", zz[] = "ZZ", *name[] = {xy, zz};
	const struct set_names names = {name, 2, NULL, 0};
	const struct set_about about = {"geo", &names, 1};
	struct set_names is = {NULL, 0, NULL, 0}, many = {NULL, MANY, NULL, 0};
	const struct set_about of_many = {"geo", &many, 1};
	char longest[SET_NAME_MAX + 1] = "";
	struct set_lines lines;

	(void)unused;
	list.about = &about;
	assert_int_equal(put(), 0);
	assert_int_equal(set_maps_lines_of(SETS, 1, &lines), 0);
	assert_int_equal(set_words_take(&lines, &is), 0);
	assert_true(is.n == 2 && !strcmp(is.name[1], "ZZ"));
	set_names_free(&is);
	set_lines_free(&lines);
	/* More than a megabyte of them, for which there is no room. */
	many.name = calloc(MANY, sizeof(*many.name));
	assert_non_null(many.name);
	memset(longest, 'x', SET_NAME_MAX);
	for (uint32_t i = 0; i < MANY; i++)
		many.name[i] = longest;
	list.about = &of_many;
	full = true;
	assert_int_equal(set_maps_put(SETS, 1, &list), -1);
	assert_int_equal(errno, ENOMEM);
	full = false;
	free(many.name);
	list.about = NULL;
}

/* Several at once, of which one may hold nothing. */
static void test_several(void **unused)
{
	const struct set_hand none = {.n = 0};
	const uint32_t place[] = {5, 6};
	const int fd[] = {set_maps_new(&list, 9), set_maps_new_hand(&none, 9)};
	struct pacer_set_head head;
	struct set_hand is = {.n = 0};

	(void)unused;
	assert_true(fd[0] >= 0 && fd[1] >= 0);
	calls = 0;
	fail_at = 2;
	assert_int_equal(set_maps_move_all(SETS, place, fd, 2), -1);
	assert_int_equal(errno, EIO);
	fail_at = 0;
	assert_int_equal(set_maps_move_all(SETS, place, fd, 2), 0);
	assert_int_equal(set_maps_move_all(SETS, place, fd, 0), 0);
	assert_int_equal(set_maps_head(SETS, 5, &head), 0);
	assert_true(head.serial == 9 && head.prefixes[0] == 2);
	assert_int_equal(set_maps_head(SETS, 6, &head), 0);
	assert_true(head.serial == 9 && !head.prefixes[0] && !head.prefixes[1]);
	assert_int_equal(set_maps_hand(SETS, 6, &is), 0);
	assert_int_equal(is.n, 0);
	close(fd[0]);
	close(fd[1]);
}

/* Of a place without a set: ENOENT, and nothing by hand. */
static void test_none(void **unused)
{
	struct pacer_set_head head;
	struct set_hand is = {.n = 0};

	(void)unused;
	fill();
	assert_int_equal(set_maps_head(SETS, 7, &head), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(set_maps_hand(SETS, 7, &is), 0);
	assert_int_equal(is.n, 0);
	assert_int_equal(set_maps_share(SETS, 7, 1), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(places[1], 0); /* it is empty now */
	calls = 0;
	fail_at = 2; /* it cannot be made so */
	assert_int_equal(set_maps_share(SETS, 7, 2), -1);
	assert_true(errno == EIO && places[2]);
	assert_int_equal(set_maps_share(SETS, 7, 1), -1);
	assert_int_equal(errno, ENOENT);
}

static void refused(void)
{
	struct set_lines lines;
	struct set_hand is = {.n = 0};
	struct set_list l = {0};
	struct pacer_set_head head;

	for (uint32_t i = 0; i < 4; i++) {
		errno = 0;
		switch (i) {
		case 0:
			assert_int_equal(set_maps_head(SETS, 2, &head), -1);
			break;
		case 1:
			assert_int_equal(set_maps_lines_of(SETS, 2, &lines), -1);
			assert_null(lines.line);
			break;
		case 2:
			assert_int_equal(set_maps_list(SETS, 2, &l), -1);
			break;
		case 3:
			assert_int_equal(set_maps_hand(SETS, 2, &is), -1);
			break;
		}
		assert_int_equal(errno, EBADMSG);
	}
	assert_true(!l.n && !is.n);
}

/* Nothing that the head says leads out of the map. */
static void test_damaged(void **unused)
{
	union pacer_set_line *line;
	struct pacer_set_head was;
	uint32_t before;

	(void)unused;
	fill();
	line = mmap(NULL, LINE, PROT_READ | PROT_WRITE, MAP_SHARED, places[2], 0);
	assert_true(line != MAP_FAILED);
	was = line->head;
	before = descriptors();
	line->head.format++;
	refused();
	line->head = was;
	line->head.lines = 0;
	refused();
	line->head.lines = was.lines + 1; /* all are there, and no list any more */
	refused();
	line->head.lines = UINT32_MAX;
	refused();
	line->head = was;
	line->head.list_bytes = UINT32_MAX;
	refused();
	line->head.list_bytes = was.list_bytes + 64;
	refused();
	line->head = was;
	assert_int_equal(take_hand(), 0);
	assert_int_equal(descriptors(), before);
	munmap(line, LINE);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_failures), CASE(test_starved), CASE(test_lines),	 CASE(test_named),
	    CASE(test_several),	 CASE(test_none),    CASE(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
