/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The sets of a pacer at work, and what is added to them by hand: which goes on, and with which
 * set. The kernel's maps are a table here, of which any call may fail.
 */
#include "oracle.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "live/host.h"
#include "live/sets_maps.h"
#include "sets/hand.h"
#include "sets/set_maps.h"

#define PACERS 2
#define FDS    64
#define PLACES (2 * PACER_SET_HANDS)
#define LATER  (1ull << 62)

/* What is at a place, or made and in none yet. */
struct map {
	uint32_t serial, prefixes[2];
	bool is;
};

static struct map places[PACERS][PLACES], made[FDS];
static uint32_t calls, fail_at; /* from 1; 0: none fails */
static struct pacer_copy copies[2];
static const struct attached pacer = {
    .ifname = "eth0", .copy = copies, .sets_fd = 0, .set_hits_fd = 7};
static const struct set_about no_values;

static bool broken(void)
{
	if (++calls != fail_at)
		return false;
	errno = EIO;
	return true;
}

static int none(void)
{
	errno = ENOENT;
	return -1;
}

uint32_t set_maps_serial(void)
{
	static uint32_t serial = 100;

	return broken() ? 0 : ++serial;
}

static int new_map(uint32_t serial, uint32_t prefixes4, uint32_t prefixes6)
{
	int fd = broken() ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd < FDS);
	if (fd >= 0)
		made[fd] = (struct map){serial, {prefixes4, prefixes6}, true};
	return fd;
}

int set_maps_new(const struct set_list *list, uint32_t serial)
{
	return new_map(serial, list->n, 0);
}

int set_maps_new_hand(const struct set_hand *hand, uint32_t serial)
{
	return new_map(serial, hand->n, 0);
}

int set_maps_move(int fd, uint32_t place, int inner_fd)
{
	if (broken())
		return -1;
	places[fd][place] = inner_fd < 0 ? (struct map){0} : made[inner_fd];
	return 0;
}

int set_maps_share(int fd, uint32_t from, uint32_t to)
{
	if (broken())
		return -1;
	places[fd][to] = places[fd][from];
	return places[fd][from].is ? 0 : none();
}

int set_maps_head(int fd, uint32_t place, struct pacer_set_head *head)
{
	const struct map *m = &places[fd][place];

	if (broken())
		return -1;
	*head = (struct pacer_set_head){.serial = m->serial,
					.prefixes = {m->prefixes[0], m->prefixes[1]}};
	return m->is ? 0 : none();
}

int set_maps_hand(int fd, uint32_t place, struct set_hand *hand)
{
	const struct map *m = &places[fd][place];
	uint32_t i;

	if (broken())
		return -1;
	for (i = 0; i < m->prefixes[0]; i++) {
		struct set_entry entry = {
		    .family = 4, .len = 32, .high = 0xc000020000000000ull + ((uint64_t)i << 32)};

		if (set_hand_add(hand, &entry, i ? LATER : 1)) /* the first has come to its end */
			return -1;
	}
	return 0;
}

int set_maps_lines_of(int fd, uint32_t place, struct set_lines *lines)
{
	(void)fd;
	(void)place;
	(void)lines;
	return none();
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	struct pacer_set_count *each = value;

	assert_int_equal(fd, pacer.set_hits_fd);
	if (broken())
		return -1;
	each[0] = (struct pacer_set_count){*(const uint32_t *)key, 1000};
	each[1] = (struct pacer_set_count){5, 7};
	return 0;
}

static void put(int fd, uint32_t copy, uint32_t number, uint32_t serial, uint32_t hand_serial,
		uint32_t hand)
{
	places[fd][sets_maps_place(copy, number)] = (struct map){serial, {3, 4}, true};
	places[fd][sets_maps_hand_place(copy, number)] =
	    (struct map){hand_serial, {hand, 0}, hand > 0};
}

static void begin(void)
{
	memset(places, 0, sizeof(places));
	memset(copies, 0, sizeof(copies));
	calls = fail_at = 0;
}

static const struct map *set_at(int fd, uint32_t copy, uint32_t number)
{
	return &places[fd][sets_maps_place(copy, number)];
}

static const struct map *hand_at(int fd, uint32_t copy, uint32_t number)
{
	return &places[fd][sets_maps_hand_place(copy, number)];
}

/* --- one after the other ---------------------------------------------------------------------- */

static const struct set_list five = {.n = 5};

static int renewed(void)
{
	return sets_maps_renew(&pacer, 1, 2, 6, &five, &no_values);
}

static int renewed_alone(void)
{
	return sets_maps_renew(&pacer, 1, 2, -1, &five, &no_values);
}

static int shared(void)
{
	return sets_maps_share(&pacer, 1, 2, 6);
}

static int carried(void)
{
	return sets_maps_carry(&pacer, 0, 6, 1, 3, &no_values);
}

static int cleared(void)
{
	return sets_maps_clear(&pacer, 0, 6);
}

static int counted(void)
{
	struct pacer_set_count sum;

	return sets_maps_count(&pacer, 0, 1, 2, &sum);
}

static int numbered(void)
{
	uint64_t prefixes;

	return sets_maps_prefixes(&pacer, 0, 6, &prefixes);
}

/* Each call of the kernel fails once: it is said, with its errno, and no descriptor stays open. */
static void test_failures(void **unused)
{
	static const struct {
		int (*what)(void);
		uint32_t calls;
	} all[] = {{renewed, 8}, {renewed_alone, 4}, {shared, 2},  {carried, 6},
		   {cleared, 2}, {counted, 1},	     {numbered, 2}};
	int first = dup(0);
	size_t i;

	(void)unused;
	close(first);
	for (i = 0; i < ARRAY(all); i++) {
		uint32_t n = 1;

		for (;; n++) {
			begin();
			put(0, 0, 6, 11, 11, 3);
			put(1, 0, 3, 12, 0, 0);
			fail_at = n;
			errno = 0;
			if (!all[i].what())
				break;
			assert_int_equal(errno, EIO);
			assert_string_equal(sets_maps_why(), strerror(EIO));
		}
		if (n - 1 != all[i].calls)
			fail_msg("%zu: %u calls", i, n - 1);
		n = (uint32_t)dup(0);
		close((int)n);
		assert_int_equal(n, first);
	}
}

/* What was added by hand goes on with a new list, under its serial; what has come to its end does
 * not. */
static void test_renewed(void **unused)
{
	(void)unused;
	begin();
	put(0, 0, 6, 11, 11, 3);
	assert_int_equal(renewed(), 0);
	assert_int_equal(set_at(0, 1, 2)->prefixes[0], 5);
	assert_int_equal(hand_at(0, 1, 2)->prefixes[0], 2);
	assert_int_equal(hand_at(0, 1, 2)->serial, set_at(0, 1, 2)->serial);
	assert_int_not_equal(set_at(0, 1, 2)->serial, 11);
	put(0, 0, 6, 11, 10, 3); /* of a list before this one */
	assert_int_equal(renewed(), 0);
	assert_false(hand_at(0, 1, 2)->is);
	put(0, 0, 6, 11, 11, 1); /* all of it has ended */
	assert_int_equal(renewed(), 0);
	assert_false(hand_at(0, 1, 2)->is);
	put(0, 1, 2, 11, 11, 3); /* it was there before, and is no more */
	assert_int_equal(renewed_alone(), 0);
	assert_false(hand_at(0, 1, 2)->is);
}

static void test_shared(void **unused)
{
	(void)unused;
	begin();
	put(0, 0, 6, 11, 11, 3);
	assert_int_equal(shared(), 0);
	assert_int_equal(set_at(0, 1, 2)->serial, 11);
	assert_int_equal(hand_at(0, 1, 2)->prefixes[0], 3);
	put(0, 0, 6, 12, 0, 0); /* nothing was added: no error */
	assert_int_equal(shared(), 0);
	assert_int_equal(set_at(0, 1, 2)->serial, 12);
	assert_false(hand_at(0, 1, 2)->is);
	begin();
	assert_int_equal(shared(), -1);
}

static void test_carried(void **unused)
{
	(void)unused;
	begin();
	put(0, 0, 6, 11, 11, 3);
	put(1, 0, 3, 12, 0, 0);
	assert_int_equal(carried(), 0);
	assert_int_equal(hand_at(1, 0, 3)->serial, 12);
	assert_int_equal(hand_at(1, 0, 3)->prefixes[0], 2);
	assert_int_equal(cleared(), 0);
	assert_false(set_at(0, 0, 6)->is);
	assert_false(hand_at(0, 0, 6)->is);
	assert_int_equal(carried(), 0); /* there is nothing to carry */
	assert_false(hand_at(1, 0, 3)->is);
}

static void test_counts(void **unused)
{
	struct pacer_set_count sum;
	uint64_t prefixes;

	(void)unused;
	begin();
	copies[1].policy.set_counter[4] = 9;
	assert_int_equal(sets_maps_count(&pacer, 1, 4, 2, &sum), 0);
	assert_int_equal(sum.packets, 14);
	assert_int_equal(sum.bytes, 1007);
	assert_int_equal(sets_maps_prefixes(&pacer, 0, 6, &prefixes), -1);
	put(0, 0, 6, 11, 11, 2);
	assert_int_equal(sets_maps_prefixes(&pacer, 0, 6, &prefixes), 0);
	assert_int_equal(prefixes, 9);
	put(0, 0, 6, 11, 10, 2);
	assert_int_equal(sets_maps_prefixes(&pacer, 0, 6, &prefixes), 0);
	assert_int_equal(prefixes, 7);
	put(0, 0, 6, 11, 0, 0);
	assert_int_equal(sets_maps_prefixes(&pacer, 0, 6, &prefixes), 0);
	assert_int_equal(prefixes, 7);
}

/* Each error of its own has words of its own. */
static void test_why(void **unused)
{
	static const struct {
		int number;
		const char *says;
	} all[] = {{ENOMEM, "no memory"},
		   {EAGAIN, "try again"},
		   {EFBIG, "more was added"},
		   {EBADMSG, "no set"},
		   {EPERM, "not permitted"}};
	size_t i;

	(void)unused;
	for (i = 0; i < ARRAY(all); i++) {
		errno = all[i].number;
		assert_non_null(strstr(sets_maps_why(), all[i].says));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_failures), cmocka_unit_test(test_renewed),
	    cmocka_unit_test(test_shared),   cmocka_unit_test(test_carried),
	    cmocka_unit_test(test_counts),   cmocka_unit_test(test_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
