/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is done by hand to a set: in the sets of both policies of a trial, or in none. The places of
 * sets are a table here, of which any call may fail; after each failure every place has what it
 * had.
 */
#include "applied.h"
#include "calls.h"
#include "kernel.h"
#include "starved.h"
#include "stays.h"

#include "live/copies.h"
#include "live/fleet_sets.h"
#include "live/freeze.h"
#include "live/in_shadow.h"
#include "live/sets.h"
#include "live/sets_maps.h"

#define PLACES	  (2 * PACER_SET_HANDS)
#define MAPS	  256
#define PLAIN	  "sets: [{name: other, of: [192.0.2.9]}, {name: drop, of: [198.51.100.0/24]}]\n" ASKS
#define THE_OTHER "sets: [{name: drop, of: [198.51.100.0/24]}]\n" ASKS
#define ASKS                                                                                    \
	"rules:\n- {name: a, match: {src: \"@drop\"}, limits: [{key: src, packets: 1, window: " \
	"1s}]}\n"
#define ASKS_NONE "rules:\n- {name: a, limits: [{key: src, packets: 1, window: 1s}]}\n"
#define VALUED                                                                                     \
	"sets: [{name: other, of: [192.0.2.9]}, {name: drop, file: /no/such.csv, value: 2}]\n"     \
	"rules:\n- {name: a, match: {src: \"@drop=AA\"}, limits: [{key: src, packets: 1, window: " \
	"1s}]}\n"

/* A map: a set, or what was added to one by hand. */
struct map {
	uint32_t serial;
	struct set_list list;
	struct set_hand hand;
	struct set_names names; /* of its values, where keys have them */
};

static struct map maps[MAPS];
static uint32_t n_maps;		   /* 0: none */
static uint32_t places[2][PLACES]; /* of a pacer and its shadow */
static uint32_t calls, fail_at;	   /* from 1; 0: none fails */
static struct attached pacer, shadow;
static struct pacer_control control, shadow_control;
static struct pacer_copy copies[2];

/* Memory runs out (starved.h) from the first of these calls on: the policy has been read by then.
 */
static bool starving;

static bool broken(void)
{
	memory.on = starving;
	if (++calls != fail_at)
		return false;
	errno = EIO;
	return true;
}

/* A second descriptor of the same file is of the same map. */
static int new_fd(uint32_t map)
{
	int fd = memfd_create("map", MFD_CLOEXEC);

	assert_int_equal(pwrite(fd, &map, sizeof(map), 0), sizeof(map));
	return fd;
}

static uint32_t map_of(int fd)
{
	uint32_t map;

	assert_int_equal(pread(fd, &map, sizeof(map), 0), sizeof(map));
	return map;
}

static struct map *new_map(uint32_t serial)
{
	assert_true(++n_maps < MAPS);
	maps[n_maps].serial = serial;
	return &maps[n_maps];
}

uint32_t set_maps_serial(void)
{
	return broken() ? 0 : 1000 + n_maps;
}

static struct set_word word(const char *text)
{
	return (struct set_word){text, strlen(text)};
}

int set_maps_new(const struct set_list *list, uint32_t serial)
{
	struct map *m;

	if (broken())
		return -1;
	m = new_map(serial);
	for (size_t i = 0; i < list->n; i++)
		if (set_list_add(&m->list, &list->entry[i]))
			return -1;
	for (uint32_t i = 0; list->about && i < list->about->names->n; i++)
		if (set_names_add(&m->names, word(list->about->names->name[i])) < 0)
			return -1;
	return new_fd(n_maps);
}

int set_maps_new_hand(const struct set_hand *hand, uint32_t serial)
{
	struct map *m;

	if (broken())
		return -1;
	m = new_map(serial);
	for (size_t i = 0; i < hand->n; i++)
		if (set_hand_add(&m->hand, &hand->entry[i].e, hand->entry[i].until_ns))
			return -1;
	return new_fd(n_maps);
}

/* The map at a place; NULL: errno. */
static struct map *at(int fd, uint32_t place)
{
	if (broken())
		return NULL;
	errno = ENOENT;
	return places[fd][place] ? &maps[places[fd][place]] : NULL;
}

int set_maps_at(int fd, uint32_t place)
{
	return at(fd, place) ? new_fd(places[fd][place]) : -1;
}

/* What packets have by each copy: prefixes of the set, and of those beside it that count. */
struct has {
	size_t prefixes[2], by_hand[2];
};

static struct has had[16]; /* after each call of the kernel that changes a place */
static uint32_t n_had;

static struct has has_now(void)
{
	struct has has;

	for (uint32_t copy = 0; copy < 2; copy++) { /* where it is the set of the copy's number */
		const struct map *set = &maps[places[0][sets_maps_place(copy, copy)]];
		const struct map *hand = &maps[places[0][sets_maps_hand_place(copy, copy)]];

		has.prefixes[copy] = set->list.n;
		has.by_hand[copy] = hand->serial == set->serial ? hand->hand.n : 0;
	}
	return has;
}

static void note_places(void)
{
	if (n_had < ARRAY(had))
		had[n_had++] = has_now();
}

int set_maps_move(int fd, uint32_t place, int inner_fd)
{
	if (broken())
		return -1;
	places[fd][place] = inner_fd < 0 ? 0 : map_of(inner_fd);
	note_places();
	return 0;
}

/* Where it fails, it has come as far as to the last. */
int set_maps_move_all(int fd, const uint32_t *place, const int *inner_fd, uint32_t n)
{
	bool fails = broken();

	for (uint32_t i = 0; i + fails < n; i++)
		places[fd][place[i]] = map_of(inner_fd[i]);
	note_places();
	return fails ? -1 : 0;
}

int set_maps_share(int fd, uint32_t from, uint32_t to)
{
	if (broken())
		return -1;
	places[fd][to] = places[fd][from];
	return 0;
}

int set_maps_head(int fd, uint32_t place, struct pacer_set_head *head)
{
	const struct map *m = at(fd, place);

	if (m)
		*head = (struct pacer_set_head){.serial = m->serial,
						.flags = m->names.n ? PACER_SET_NAMED : 0};
	return m ? 0 : -1;
}

int set_maps_list(int fd, uint32_t place, struct set_list *list)
{
	const struct map *m = at(fd, place);

	for (size_t i = 0; m && i < m->list.n; i++)
		if (set_list_add(list, &m->list.entry[i]))
			return -1;
	return m ? 0 : -1;
}

int set_maps_hand(int fd, uint32_t place, struct set_hand *hand)
{
	const struct map *m = at(fd, place);

	for (size_t i = 0; m && i < m->hand.n; i++)
		if (set_hand_add(hand, &m->hand.entry[i].e, m->hand.entry[i].until_ns))
			return -1;
	return m || errno == ENOENT ? 0 : -1;
}

/* Texts of values, where it has them. */
int set_maps_lines_of(int fd, uint32_t place, struct set_lines *lines)
{
	const struct map *m = at(fd, place);

	*lines = (struct set_lines){.n = 0};
	if (!m || !m->names.n)
		return m ? 0 : -1;
	return set_build(&m->list, 1, lines) ||
		       set_words_put(lines, &(struct set_about){"drop", &m->names, 0})
		   ? -1
		   : 0;
}

/* --- a pacer with sets ------------------------------------------------------------------------ */

static struct set_entry prefix(uint32_t addr, uint8_t len)
{
	return (struct set_entry){
	    .family = 4, .len = len, .high = (uint64_t)addr << 32, .value = 1};
}

#define IN_FILE 0xc6336400u /* 198.51.100.0/24 */
#define BY_HAND 0xcb007101u /* 203.0.113.1 */
#define NEW	0xcb007102u
#define LAPSES	(1ull << 62) /* what was added by hand, at this time */

static void put_set(int fd, uint32_t copy, uint32_t number)
{
	struct set_entry set = prefix(IN_FILE, 24), added = prefix(BY_HAND, 32);
	struct map *m = new_map(7);

	assert_int_equal(set_list_add(&m->list, &set), 0);
	places[fd][sets_maps_place(copy, number)] = n_maps;
	m = new_map(7);
	assert_int_equal(set_hand_add(&m->hand, &added, LAPSES), 0);
	places[fd][sets_maps_hand_place(copy, number)] = n_maps;
}

/* The pacer has `text` in force; on trial: after THE_OTHER, where the set has another number. */
static void begin(const char *text, bool trial)
{
	kernel_now_ns = 100 * SECOND;
	calls = fail_at = n_maps = 0;
	memset(places, 0, sizeof(places));
	memset(copies, 0, sizeof(copies));
	memcpy(copies[1].text, text, strlen(text));
	memcpy(copies[0].text, THE_OTHER, strlen(THE_OTHER));
	pacer = (struct attached){.ifname = "eth0",
				  .control = &control,
				  .copy = copies,
				  .sets_fd = 0,
				  .set_hits_fd = KERNEL_COUNTS};
	copies_put_in_force(&pacer, 1, trial ? kernel_now_ns + SECOND : 0);
	put_set(0, 1, 1);
	if (trial)
		put_set(0, 0, 0);
	stays_shadow = NULL;
}

static int end(void **unused)
{
	(void)unused;
	stays_shadow = NULL;
	for (uint32_t i = 0; i < MAPS; i++) {
		set_list_free(&maps[i].list);
		set_hand_free(&maps[i].hand);
		set_names_free(&maps[i].names);
	}
	memset(maps, 0, sizeof(maps));
	return 0;
}

static void add_shadow(void)
{
	shadow_control = control;
	shadow = pacer;
	shadow.control = &shadow_control;
	shadow.sets_fd = 1;
	put_set(1, 1, 1);
	pacer.shadow_id = 1;
	stays_shadow = &shadow;
}

/* --- what is done ----------------------------------------------------------------------------- */

static enum sets_shadow of;

static int add_until(uint64_t until_ns)
{
	struct set_entry e = prefix(NEW, 32);
	struct set_hand add = {.n = 0};
	int result;

	assert_int_equal(set_hand_add(&add, &e, until_ns), 0);
	result = sets_add(&pacer, "drop", &add, &of, &error);
	memory.on = false;
	set_hand_free(&add);
	return result;
}

static int add_one(void)
{
	return add_until(LAPSES);
}

/* Of the file and by hand. */
static int del_both(void)
{
	struct set_entry one = prefix(IN_FILE, 24), other = prefix(BY_HAND, 32);
	struct set_list del = {0};
	struct sets_done done;
	int result;

	assert_true(!set_list_add(&del, &one) && !set_list_add(&del, &other));
	memory.on = starving;
	result = sets_del(&pacer, "drop", &del, &done, &of, &error);
	memory.on = false;
	if (!result)
		assert_int_equal(done.done, 2);
	set_list_free(&del);
	return result;
}

static int replace_all(void)
{
	struct set_entry e = prefix(NEW, 32);
	struct set_list list = {0};
	int result;

	assert_int_equal(set_list_add(&list, &e), 0);
	memory.on = starving;
	result = sets_replace(&pacer, "drop", &list, 0, &of, &error);
	memory.on = false;
	set_list_free(&list);
	return result;
}

/* One in the place of what lies beside the set, and one with a value that no rule names. */
static int put_two(void)
{
	struct set_entry one = prefix(BY_HAND, 32), other = prefix(NEW, 32);
	struct set_hand put = {.n = 0};
	int result;

	assert_int_equal(set_hand_add_named(&put, &one, 1ull << 62, "AA"), 0);
	assert_int_equal(set_hand_add_named(&put, &other, 1ull << 62, "BB"), 0);
	memory.on = starving;
	result = sets_put(&pacer, "drop", &put, &of, &error);
	memory.on = false;
	set_hand_free(&put);
	return result;
}

/* Each in turn of the calls that it makes fails. */
static void all_or_nothing(int (*change)(void))
{
	static uint32_t before[2][PLACES];
	uint32_t n = 0;

	memcpy(before, places, sizeof(before));
	for (;;) {
		calls = 0;
		fail_at = ++n;
		if (!change())
			break;
		assert_memory_equal(places, before, sizeof(before));
		assert_string_equal(error.text,
				    "eth0: set drop cannot be written: Input/output error");
	}
	assert_true(n > 4 && calls < n); /* what fails is seen, to the last */
	fail_at = 0;
}

/* What a copy's set has by now. */
static void holds(int fd, uint32_t copy, uint32_t number, size_t prefixes, size_t by_hand)
{
	uint32_t set = places[fd][sets_maps_place(copy, number)];
	uint32_t hand = places[fd][sets_maps_hand_place(copy, number)];

	assert_int_equal(maps[set].list.n, prefixes);
	assert_int_equal(hand && maps[hand].serial == maps[set].serial ? maps[hand].hand.n : 0,
			 by_hand);
}

static const struct {
	int (*change)(void);
	const char *text;
	size_t prefixes, by_hand;
} changes[] = {
    {add_one, PLAIN, 1, 2},
    {del_both, PLAIN, 0, 0},
    {replace_all, PLAIN, 1, 0},
    {put_two, VALUED, 3, 0},
};

static void test_all_or_nothing(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		begin(changes[i].text, false);
		all_or_nothing(changes[i].change);
		holds(0, 1, 1, changes[i].prefixes, changes[i].by_hand);
		if (changes[i].change == put_two)
			assert_int_equal(maps[places[0][sets_maps_place(1, 1)]].list.entry[2].value,
					 2);
		end(NULL);
	}
}

/* A set that is replaced is told from the one before it, and from one that a policy brings. */
static void test_replaced_goes_on(void **unused)
{
	const uint32_t *place = &places[0][sets_maps_place(1, 1)];

	(void)unused;
	begin(PLAIN, false);
	for (uint32_t i = 0; i < 8; i++) {
		uint32_t before = maps[*place].serial;

		assert_int_equal(replace_all(), 0);
		assert_true(maps[*place].serial != before);
		assert_true(set_maps_goes_on(before, maps[*place].serial));
	}
	for (uint32_t serial = 0x100; serial < 0x300; serial++) {
		uint32_t next = set_maps_next_serial(serial);

		assert_true(next && next != serial && set_maps_goes_on(serial, next));
		assert_false(set_maps_goes_on(serial, next ^ (SET_MAPS_REPLACED + 1)));
	}
}

/* A set whose values keys have keeps their names, and what has them. */
static void test_names_stay(void **unused)
{
	static const char *const names[] = {"ZZ", "AA", "BB"};
	const uint32_t *place = &places[0][sets_maps_place(1, 1)];

	(void)unused;
	begin(VALUED, false);
	assert_int_equal(set_names_add(&maps[*place].names, word("ZZ")), 1);
	assert_int_equal(put_two(), 0);
	assert_true(maps[*place].list.n == 3 && maps[*place].names.n == 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_string_equal(maps[*place].names.name[i], names[i]);
		assert_int_equal(maps[*place].list.entry[i].value, i + 1);
	}
	assert_int_equal(del_both(), 0);
	assert_true(maps[*place].list.n == 1 && maps[*place].names.n == 3);
	assert_int_equal(maps[*place].list.entry[0].value, 3);
	assert_string_equal(maps[*place].names.name[2], "BB");
}

/* libyaml, with which a policy is read again on the way, leaves something behind then. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

/* Without memory, too, wherever that ends. */
static void test_no_memory(void **unused)
{
	(void)unused;
	for (size_t k = 0; k < 2 * sizeof(changes) / sizeof(*changes); k++) {
		size_t i = k / 2;
		uint32_t failed = 0;

		for (uint32_t n = 1;; n++) {
			static uint32_t before[2][PLACES];
			bool parsed = changes[i].change != add_one;
			int result;

			begin(changes[i].text, false);
			memcpy(before, places, sizeof(before));
			starved_from(n, k % 2); /* for once, or for good */
			starving = true;
			if (parsed && __lsan_disable)
				__lsan_disable();
			result = changes[i].change();
			if (parsed && __lsan_enable)
				__lsan_enable();
			starving = false;
			if (memory.n < n) {
				assert_int_equal(result, 0);
				end(NULL);
				break;
			}
			if (result) {
				assert_memory_equal(places, before, sizeof(before));
				if (!strstr(error.text, "memory"))
					fail_msg("%zu, allocation %u: %s", i, n, error.text);
			} else {
				holds(0, 1, 1, changes[i].prefixes, changes[i].by_hand);
			}
			failed += result != 0;
			end(NULL);
		}
		assert_true(failed > 0);
	}
}

/* How a change goes without memory from there on. */
static int starved_change(int (*change)(void), uint32_t n, bool for_good)
{
	int result;

	starved_from(n, for_good);
	starving = true;
	if (__lsan_disable)
		__lsan_disable();
	result = change();
	if (__lsan_enable)
		__lsan_enable();
	starving = false;
	return result;
}

/* A policy that cannot be read for want of memory may have the set. */
static void test_no_memory_in_a_trial(void **unused)
{
	uint32_t failed = 0;

	(void)unused;
	for (uint32_t n = 1;; n++) {
		static uint32_t before[2][PLACES];

		begin(PLAIN, true);
		memcpy(before, places, sizeof(before));
		if (starved_change(replace_all, n, false)) {
			assert_memory_equal(places, before, sizeof(before));
			if (!strstr(error.text, "memory"))
				fail_msg("allocation %u: %s", n, error.text);
			failed++;
		} else {
			holds(0, 1, 1, 1, 0);
			holds(0, 0, 0, 1, 0);
		}
		end(NULL);
		if (memory.n < n)
			break;
	}
	assert_true(failed > 0);
}

/* Nor is what lacks memory to be read said not to be in the shadow. */
static void test_no_memory_in_a_shadow(void **unused)
{
	uint32_t unread = 0;

	(void)unused;
	for (uint32_t n = 1;; n++) {
		static uint32_t before[PLACES];

		begin(PLAIN, false);
		add_shadow();
		memcpy(before, places[1], sizeof(before));
		error.text[0] = 0;
		if (starved_change(replace_all, n, true)) {
			assert_memory_equal(places[1], before, sizeof(before));
			if (!strstr(error.text, "memory"))
				fail_msg("allocation %u: %s", n, error.text);
			unread += !!strstr(error.text, "it is done in force, and not in the "
						       "shadow: eth0: its policy cannot be read");
		} else {
			assert_int_equal(of, SETS_IN_SHADOW);
			holds(1, 1, 1, 1, 0);
		}
		end(NULL);
		if (memory.n < n)
			break;
	}
	assert_true(unread > 0);
}

/* A set with values is not replaced in a shadow, in which of both policies it has them. */
static void test_values_in_a_shadow(void **unused)
{
	static struct pacer_copy of_shadow[2];

	(void)unused;
	for (int i = 0; i < 4; i++) {
		begin(i & 1 ? VALUED : PLAIN, false);
		add_shadow();
		memcpy(of_shadow, copies, sizeof(copies));
		strcpy(of_shadow[1].text, i & 2 ? VALUED : PLAIN);
		shadow.copy = of_shadow;
		assert_int_equal(replace_all(), 0);
		assert_int_equal(of, i ? SETS_NOT_IN_SHADOW : SETS_IN_SHADOW);
		holds(1, 1, 1, 1, !!i);
		end(NULL);
	}
	begin(PLAIN, false);
	add_shadow();
	memcpy(of_shadow[1].text, ASKS_NONE, sizeof(ASKS_NONE));
	shadow.copy = of_shadow;
	assert_int_equal(add_one(), 0);
	assert_int_equal(of, SETS_NOT_IN_SHADOW);
}

static void count_none(const struct sets_info *info, void *n)
{
	(void)info;
	++*(size_t *)n;
}

static void count_info(const struct sets_info *info, void *arg)
{
	size_t *n = arg;

	assert_string_equal(info->set->name, *n ? "drop" : "other");
	assert_true(info->counted);
	assert_int_equal(info->count.packets, 7);
	assert_int_equal(info->added, *n);
	++*n;
}

static void lock_comes(void)
{
	kernel_no_lock = 0;
}

/* Who only looks reads the file of the lock; where one comes as they look, they look again. */
static void test_looking(void **unused)
{
	struct pacer_set_count hits[KERNEL_CPUS] = {{0, 0}};
	struct set_list list;
	struct set_hand hand;
	uint32_t zero = 0;
	size_t seen = 0;

	(void)unused;
	begin(PLAIN, false);
	new_map(7);
	places[0][sets_maps_place(1, 0)] = n_maps;
	kernel_map_new(KERNEL_COUNTS, sizeof(zero), sizeof(hits));
	assert_int_equal(bpf_map_update_elem(KERNEL_COUNTS, &zero, hits, 0), 0);
	kernel_meanwhile = lock_comes;
	for (int take = 0; take < 2; take++)
		for (kernel_meanwhile_at = 2; kernel_meanwhile_at < 4; kernel_meanwhile_at++) {
			kernel_locks = 0;
			kernel_no_lock = ENOENT;
			if (take)
				assert_int_equal(sets_take(&pacer, "drop", &list, &hand, &error),
						 0);
			else
				assert_int_equal(sets_each(&pacer, count_none, &seen, &error), 0);
			assert_int_equal(kernel_locks, kernel_meanwhile_at == 2 ? 3 : 2);
			assert_int_equal(kernel_lock_flags,
					 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
			if (take) {
				set_list_free(&list);
				set_hand_free(&hand);
			}
		}
	kernel_meanwhile_at = 0;
	kernel_no_lock = 0;
	assert_int_equal(seen, 4);
	kernel_map_new(KERNEL_COUNTS, sizeof(zero), sizeof(hits));
}

/* All that is said of sets, or an error; none is said to have nothing that cannot be read. */
static void test_each(void **unused)
{
	struct pacer_set_count hits[KERNEL_CPUS] = {{7, 70}};
	uint32_t zero = 0, n = 0;
	struct set_list list;
	struct set_hand hand;
	size_t seen = 0;

	(void)unused;
	begin(PLAIN, false);
	memset(copies[1].policy.set_asks, 1, sizeof(copies[1].policy.set_asks));
	new_map(7);
	places[0][sets_maps_place(1, 0)] = n_maps;
	kernel_map_new(KERNEL_COUNTS, sizeof(zero), sizeof(hits));
	assert_int_equal(sets_each(&pacer, count_info, &seen, &error), -1);
	assert_string_equal(error.text,
			    "eth0: set other cannot be read: No such file or directory");
	assert_int_equal(bpf_map_update_elem(KERNEL_COUNTS, &zero, hits, 0), 0);
	for (;;) {
		calls = 0;
		fail_at = ++n;
		if (!sets_each(&pacer, count_info, &seen, &error))
			break;
		assert_int_equal(seen, 0);
		if (!strstr(error.text, " cannot be read: Input/output error"))
			fail_msg("call %u: %s", n, error.text);
	}
	assert_int_equal(seen, 2);
	assert_true(n > 6 && calls < n);
	fail_at = 0;
	cpus_asked = 0;
	cpus_fail_at = 1;
	assert_int_equal(sets_each(&pacer, count_info, &seen, &error), -1);
	cpus_fail_at = 0;
	kernel_no_lock = true;
	assert_int_equal(sets_each(&pacer, count_info, &seen, &error), -1);
	assert_int_equal(sets_take(&pacer, "drop", &list, &hand, &error), -1);
	kernel_no_lock = false;
	copies[1].text[0] = '[';
	assert_int_equal(sets_each(&pacer, count_info, &seen, &error), -1);
	assert_int_equal(seen, 2);
	kernel_map_new(KERNEL_COUNTS, sizeof(zero), sizeof(hits));
}

/* To a shadow that begins: what was added goes on in its sets of the same names. */
static void test_carried_to_a_shadow(void **unused)
{
	static struct set_texts texts;
	struct policy *policy;
	uint32_t n = 0;

	(void)unused;
	begin(PLAIN, false);
	policy =
	    parse("sets: [{name: drop, of: [192.0.2.9]}, {name: new, of: [192.0.2.8]}]\n" ASKS);
	for (uint32_t i = 0; i < 2; i++) {
		new_map(20 + i);
		places[1][sets_maps_place(0, i)] = n_maps;
	}
	for (;;) {
		calls = 0;
		fail_at = ++n;
		if (!sets_carry(&pacer, policy, &texts, 1, &error))
			break;
		assert_string_equal(error.text,
				    "eth0: set drop cannot be written: Input/output error");
	}
	fail_at = 0;
	assert_true(n > 4 && calls < n);
	holds(1, 0, 0, 0, 1);
	assert_int_equal(places[1][sets_maps_hand_place(0, 1)], 0);
	copies[1].text[0] = '[';
	assert_int_equal(sets_carry(&pacer, policy, &texts, 1, &error), -1);
	policy_free(policy);
}

/* Of the policies of a trial one may not have the set, the first or the second: then it is in one.
 */
static void test_a_set_of_one_policy_of_a_trial(void **unused)
{
	(void)unused;
	begin(PLAIN, true);
	memcpy(copies[0].text, ASKS_NONE, sizeof(ASKS_NONE));
	assert_int_equal(add_one(), 0);
	holds(0, 1, 1, 1, 2);
	holds(0, 0, 0, 1, 1);
	end(NULL);
	begin(PLAIN, true);
	memcpy(copies[0].text, PLAIN, sizeof(PLAIN));
	memcpy(copies[1].text, ASKS_NONE, sizeof(ASKS_NONE));
	put_set(0, 0, 1);
	assert_int_equal(add_one(), 0);
	holds(0, 0, 1, 1, 2);
	holds(0, 1, 1, 1, 1);
}

/* Who adds an element twice has it once; what has lapsed by then is there no more. */
static void test_added_again(void **unused)
{
	(void)unused;
	begin(PLAIN, false);
	assert_int_equal(add_one(), 0);
	assert_int_equal(add_one(), 0);
	holds(0, 1, 1, 1, 2);
	end(NULL);
	begin(PLAIN, false);
	kernel_now_ns = LAPSES;
	assert_int_equal(add_until(LAPSES + 1), 0);
	holds(0, 1, 1, 1, 1);
}

/* Who deletes what has lapsed is told that it was not there. */
static void test_deleted_when_lapsed(void **unused)
{
	struct set_entry other = prefix(BY_HAND, 32);
	struct set_list del = {0};
	struct sets_done done;

	(void)unused;
	assert_int_equal(set_list_add(&del, &other), 0);
	for (int lapsed = 0; lapsed < 2; lapsed++) {
		begin(PLAIN, false);
		kernel_now_ns = LAPSES - 1 + lapsed;
		assert_int_equal(sets_del(&pacer, "drop", &del, &done, &of, &error), 0);
		assert_int_equal(done.done, !lapsed);
		assert_int_equal(done.left_out, lapsed);
		end(NULL);
	}
	set_list_free(&del);
}

/* A shadow's policy has a number of its own: what replaces a set replaces it there, too. */
static void test_replaced_in_a_shadow_of_another_policy(void **unused)
{
	static struct pacer_copy other[2];

	(void)unused;
	begin(PLAIN, false);
	add_shadow();
	memcpy(other, copies, sizeof(other));
	other[1].policy.serial = 7;
	shadow.copy = other;
	assert_int_equal(replace_all(), 0);
	assert_int_equal(of, SETS_IN_SHADOW);
	holds(1, 1, 1, 1, 0);
}

static void test_both_policies_of_a_trial_or_none(void **unused)
{
	(void)unused;
	for (size_t i = 0; i + 1 < sizeof(changes) / sizeof(*changes); i++) {
		begin(changes[i].text, true);
		all_or_nothing(changes[i].change);
		holds(0, 1, 1, changes[i].prefixes, changes[i].by_hand);
		holds(0, 0, 0, changes[i].prefixes, changes[i].by_hand);
		end(NULL);
	}
}

/* Who is killed between two calls of the kernel has made the whole change or none of it. */
static void test_killed(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++)
		for (int trial = 0; trial < 2 && (!trial || changes[i].change != put_two);
		     trial++) {
			struct has before, after;

			begin(changes[i].text, trial);
			before = has_now();
			n_had = 0;
			assert_int_equal(changes[i].change(), 0);
			after = has_now();
			assert_true(n_had > 0 && n_had < ARRAY(had));
			for (uint32_t k = 0; k < n_had; k++)
				if (memcmp(&had[k], &before, sizeof(before)) &&
				    memcmp(&had[k], &after, sizeof(after)))
					fail_msg("%zu, on trial %d: half done after call %u", i,
						 trial, k + 1);
			end(NULL);
		}
}

/* The shadow's comes second: what is in force stays done, and it is said. */
static void test_in_a_shadow_too(void **unused)
{
	(void)unused;
	for (size_t i = 0; i + 1 < sizeof(changes) / sizeof(*changes); i++) {
		static uint32_t before[PLACES];
		uint32_t alone;

		begin(changes[i].text, false);
		assert_int_equal(changes[i].change(), 0);
		assert_int_equal(of, SETS_NO_SHADOW);
		alone = calls;
		end(NULL);
		begin(changes[i].text, false);
		add_shadow();
		kernel_one_turn();
		assert_int_equal(changes[i].change(), 0);
		kernel_one_turn_ends();
		assert_int_equal(of, SETS_IN_SHADOW);
		holds(1, 1, 1, changes[i].prefixes, changes[i].by_hand);
		end(NULL);
		begin(changes[i].text, false);
		add_shadow();
		fail_at = alone + 1;
		memcpy(before, places[1], sizeof(before));
		assert_int_equal(changes[i].change(), IN_SHADOW_FAILED);
		assert_string_equal(error.text,
				    "it is done in force, and not in the shadow: eth0: set "
				    "drop cannot be written: Input/output error");
		holds(0, 1, 1, changes[i].prefixes, changes[i].by_hand);
		assert_memory_equal(places[1], before, sizeof(before));
		end(NULL);
	}
}

/* The numbers of values are a policy's own: one file is not for two, whichever has values. */
static void test_values_during_a_trial(void **unused)
{
	static const struct {
		const char *in_force, *before; /* of which VALUED has values */
		int result;
	} rows[] = {{PLAIN, THE_OTHER, 0}, {PLAIN, VALUED, -1},	    {VALUED, THE_OTHER, -1},
		    {VALUED, VALUED, -1},  {ASKS_NONE, VALUED, -1}, {VALUED, ASKS_NONE, -1}};

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		uint32_t before[2][PLACES];

		begin(rows[i].in_force, true);
		memset(copies[0].text, 0, sizeof(copies[0].text));
		memcpy(copies[0].text, rows[i].before, strlen(rows[i].before));
		memcpy(before, places, sizeof(before));
		error = (struct policy_error){0};
		if (replace_all() != rows[i].result)
			fail_msg("row %zu: %s", i, error.text);
		if (!rows[i].result)
			continue;
		assert_string_equal(
		    error.text, "eth0: set drop has values, and a policy waits to be "
				"confirmed: `xdp-pacer confirm` it, or let it roll back, first");
		assert_memory_equal(places, before, sizeof(before));
		end(NULL);
	}
	begin(VALUED, false);
	assert_int_equal(replace_all(), 0);
}

/* That one policy of two has no values is no reason to say that the set has none. */
static void test_a_value_during_a_trial(void **unused)
{
	static const struct {
		const char *in_force, *before, *says;
	} rows[] = {{PLAIN, VALUED, "set drop has values, and a policy waits to be confirmed"},
		    {VALUED, PLAIN, "set drop has values, and a policy waits to be confirmed"},
		    {ASKS_NONE, VALUED, NULL},
		    {PLAIN, PLAIN, "has no values: leave that of 203.0.113.2 out"}};

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		struct set_entry e = prefix(NEW, 32);
		struct set_hand hand = {.n = 0};
		uint32_t before[2][PLACES];
		int result;

		begin(rows[i].in_force, true);
		memset(copies[0].text, 0, sizeof(copies[0].text));
		memcpy(copies[0].text, rows[i].before, strlen(rows[i].before));
		put_set(0, 0, 1);
		memcpy(before, places, sizeof(before));
		error = (struct policy_error){0};
		assert_int_equal(set_hand_add_named(&hand, &e, 1ull << 62, "AA"), 0);
		result = sets_add(&pacer, "drop", &hand, &of, &error);
		set_hand_free(&hand);
		if (!result != !rows[i].says || (result && !strstr(error.text, rows[i].says)))
			fail_msg("row %zu: %s", i, error.text);
		if (result)
			assert_memory_equal(places, before, sizeof(before));
		end(NULL);
	}
	begin(PLAIN, false);
}

/* What the shadow's set alone has is taken out there, and counts as that. */
static void test_taken_out_of_the_shadow(void **unused)
{
	struct set_entry its = prefix(NEW, 32), nowhere = prefix(NEW + 1, 32);
	struct set_list del = {0};
	struct set_hand add = {.n = 0};
	struct sets_done done;

	(void)unused;
	begin(PLAIN, false);
	add_shadow();
	assert_int_equal(set_hand_add(&add, &its, LAPSES), 0);
	assert_int_equal(sets_add(&shadow, "drop", &add, &of, &error), 0);
	set_hand_free(&add);
	assert_true(!set_list_add(&del, &its) && !set_list_add(&del, &nowhere));
	assert_int_equal(sets_del(&pacer, "drop", &del, &done, &of, &error), 0);
	assert_true(!done.done && done.of_shadow == 1);
	assert_true(done.left_out == 1 && done.which == 1);
	assert_int_equal(sets_del(&pacer, "drop", &del, &done, &of, &error), 0);
	assert_true(!done.done && !done.of_shadow && done.left_out == 2);
	set_list_free(&del);
}

static void test_refusals(void **unused)
{
	struct set_entry e = prefix(NEW, 32);
	struct set_hand hand = {.n = 0};
	struct set_list list = {0};

	(void)unused;
	begin(PLAIN, false);
	assert_int_equal(sets_replace(&pacer, "drop", &list, 99, &of, &error), -1);
	assert_string_equal(error.text, "eth0: set drop cannot be written: the policy was changed "
					"meanwhile: try again");
	assert_int_equal(put_two(), -1); /* it has no values */
	assert_non_null(strstr(error.text, "has no values: leave that of"));
	assert_int_equal(set_hand_add_named(&hand, &e, 1ull << 62, "AA"), 0);
	assert_int_equal(sets_add(&pacer, "drop", &hand, &of, &error), -1);
	assert_non_null(strstr(error.text, "has no values: leave that of 203.0.113.2"));
	set_hand_free(&hand);
	calls = 0;
	fail_at = 1;
	assert_int_equal(sets_take(&pacer, "drop", &list, &hand, &error), -1);
	assert_string_equal(error.text, "eth0: set drop cannot be read: Input/output error");
	fail_at = 0;
	assert_int_equal(sets_take(&pacer, "drop", &list, &hand, &error), 0);
	assert_int_equal(list.n, 1);
	assert_int_equal(hand.n, 1);
	set_list_free(&list);
	set_hand_free(&hand);
	assert_int_equal(sets_take(&pacer, "dorp", &list, &hand, &error), -1);
	assert_string_equal(error.text,
			    "eth0: its policy has no set dorp (did you mean drop?): see "
			    "`xdp-pacer sets eth0 list`");
}

/* --- frozen, to be saved -----------------------------------------------------------------------
 */

/* The copy that denies asks the same sets as the one in force, and none that it had before. */
static void test_frozen(void **unused)
{
	uint32_t n = 0;
	int result;

	(void)unused;
	do {
		begin(PLAIN, false);
		copies[1].policy.sets = 2;
		copies[0].policy.sets = 3;
		put_set(0, 0, 2);
		pacer.allow4_fd = KERNEL_ALLOW4;
		pacer.allow6_fd = KERNEL_ALLOW6;
		kernel_map_new(KERNEL_ALLOW4, sizeof(struct pacer_allow4),
			       sizeof(struct pacer_allow_value));
		kernel_map_new(KERNEL_ALLOW6, sizeof(struct pacer_allow6),
			       sizeof(struct pacer_allow_value));
		calls = 0;
		fail_at = ++n;
		result = freeze(&pacer, &error);
		if (result) {
			assert_string_equal(error.text, "eth0: its sets cannot be written: "
							"Input/output error");
			assert_int_equal(copies_in_force(&pacer), 1);
			assert_int_equal(copies_pending_ns(&pacer), 0);
			end(NULL);
		}
	} while (result);
	assert_true(n > 4 && calls < n);
	assert_int_equal(copies_in_force(&pacer), 0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(places[0][sets_maps_place(0, i)],
				 places[0][sets_maps_place(1, i)]);
		assert_int_equal(places[0][sets_maps_hand_place(0, i)],
				 places[0][sets_maps_hand_place(1, i)]);
	}
	fail_at = 0;
	assert_int_equal(freeze(&pacer, &error), 0); /* what is frozen already thaws first */
	assert_int_equal(copies_in_force(&pacer), 0);
	kernel_now_ns += FREEZE_NS;
	assert_int_equal(freeze_longer(&pacer, &error), -1);
	assert_non_null(strstr(error.text, "it took too long"));
	thaw(&pacer);
	assert_true(copies_in_force(&pacer) == 1 && !copies_pending_ns(&pacer));
}

/* --- as a fleet shares them --------------------------------------------------------------------
 */

static int id_of(int fd, const void *key, void *value)
{
	const uint32_t id = places[fd][*(const uint32_t *)key];

	memcpy(value, &id, sizeof(id));
	return id ? 0 : kernel_missing();
}

static struct {
	char text[8][FLEET_ELEMENT_TEXT];
	const char *value[8];
	uint64_t until_ns[8];
	bool by_hand[8];
	size_t n;
} told;

static void note(const struct fleet_element *element, void *unused)
{
	(void)unused;
	assert_true(told.n < ARRAY(told.text));
	snprintf(told.text[told.n], FLEET_ELEMENT_TEXT, "%s", element->text);
	told.value[told.n] = element->value ? *element->value ? "some" : "none" : NULL;
	told.until_ns[told.n] = element->until_ns;
	told.by_hand[told.n++] = element->by_hand;
}

static struct fleet_sets shared;

static int tell(void)
{
	told.n = 0;
	return fleet_sets_each(&pacer, &shared, 0, note, NULL);
}

static void begin_shared(const char *text)
{
	begin(text, false);
	kernel_other_lookup = id_of;
	shared = (struct fleet_sets){
	    .set = {{.name = "drop", .number = 1, .values = text[0] && strstr(text, "value:")}},
	    .n = 1};
}

/* Twice what is there, as one look may miss what is just being moved; then once it has changed, or
 * what was added to it ends. What cannot be read is not taken for what has been seen. */
static void test_telling_a_fleet(void **unused)
{
	(void)unused;
	begin_shared(PLAIN);
	calls = 0;
	fail_at = 1;
	assert_true(tell() == -1 && !told.n);
	fail_at = 0;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(tell(), 0);
		assert_int_equal(told.n, 2);
		assert_string_equal(told.text[0], "drop/198.51.100.0/24");
		assert_string_equal(told.text[1], "drop/203.0.113.1");
		assert_true(told.until_ns[0] == PACER_NEVER && told.until_ns[1] == 1ull << 62);
		assert_true(!told.value[0] && !told.value[1]);
	}
	assert_true(tell() == 1 && !told.n);
	assert_int_equal(add_one(), 0);
	assert_true(tell() == 0 && told.n == 3);
	assert_true(tell() == 0 && tell() == 1);
	kernel_now_ns = 1ull << 62;
	assert_true(tell() == 0 && told.n == 1 && tell() == 0 && tell() == 1);
	end(NULL);
	begin_shared(PLAIN); /* both have it: of the file, it stays */
	assert_int_equal(
	    set_list_add(&maps[1].list,
			 &(struct set_entry){
			     .family = 4, .len = 32, .high = (uint64_t)BY_HAND << 32, .value = 1}),
	    0);
	assert_true(tell() == 0 && told.n == 2 && told.until_ns[1] == PACER_NEVER);
	end(NULL);
}

/* What is beside the set comes first, and hides what the set says of the same prefix. */
static void test_telling_values(void **unused)
{
	(void)unused;
	begin_shared(VALUED);
	assert_int_equal(tell(), 0);
	assert_int_equal(told.n, 1);
	assert_string_equal(told.text[0], "drop/203.0.113.1");
	assert_string_equal(told.value[0], "none");
	assert_true(told.by_hand[0]);
	end(NULL);
}

static int take_elements(void)
{
	struct set_entry gone = prefix(BY_HAND, 32), also = prefix(IN_FILE, 24);
	struct set_entry put = prefix(NEW, 32), add = prefix(NEW + 1, 32);
	struct fleet_elements of_others = {0};
	bool values = shared.set[0].values;
	int result;

	assert_int_equal(set_list_add(&of_others.del, &gone), 0);
	assert_int_equal(set_list_add(&of_others.del, &also), 0);
	assert_int_equal(set_hand_add(&of_others.add, &add, 1ull << 62), 0);
	if (values)
		assert_int_equal(set_hand_add_named(&of_others.put, &put, SET_HAND_STAYS, "AA"), 0);
	memory.on = starving;
	result = fleet_sets_set(&pacer, &shared, 0, &of_others, &error);
	memory.on = false;
	assert_false(of_others.del.n || of_others.put.n || of_others.add.n);
	return result;
}

/* It was changed by hand since the agent's look: it stays so, until that has seen it. */
static void test_changed_since_the_look(void **unused)
{
	static int (*const by_hand[])(void) = {add_one, del_both, replace_all};

	(void)unused;
	for (size_t i = 0; i < ARRAY(by_hand); i++) {
		begin_shared(PLAIN);
		assert_int_equal(tell(), 0);
		assert_int_equal(by_hand[i](), 0);
		assert_int_equal(take_elements(), FLEET_SETS_CHANGED);
		assert_int_equal(tell(), 0);
		assert_int_equal(take_elements(), 0);
		end(NULL);
	}
}

/* Some of it may be done where a call fails; done again, all is. */
static void test_taking_from_a_fleet(void **unused)
{
	(void)unused;
	for (int valued = 0; valued < 2; valued++)
		for (int starved = 0; starved < 2; starved++) {
			bool failed = true;

			for (uint32_t n = 1; failed; n++) {
				int result;

				begin_shared(valued ? VALUED : PLAIN);
				assert_int_equal(tell(), 0);
				calls = 0;
				fail_at = starved ? 0 : n;
				starved_from(starved ? n : 0, false);
				starving = starved;
				if (starved && __lsan_disable)
					__lsan_disable();
				result = take_elements();
				if (starved && __lsan_enable)
					__lsan_enable();
				starving = false;
				failed = starved ? memory.n >= n : calls >= n;
				if (!failed)
					assert_int_equal(result, 0);
				/* An id that cannot be read is another than was seen. */
				if (result) {
					if (!failed ||
					    (result != FLEET_SETS_CHANGED &&
					     !strstr(error.text,
						     starved ? "memory"
							     : "eth0: set drop cannot be ")))
						fail_msg("%d, %d, call %u: %s", valued, starved, n,
							 error.text);
					fail_at = 0;
					assert_int_equal(tell(), 0);
					assert_int_equal(take_elements(), 0);
				}
				holds(0, 1, 1, valued, 1);
				end(NULL);
			}
		}
}

#define CASE(f) cmocka_unit_test_teardown(f, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_all_or_nothing),
	    CASE(test_replaced_goes_on),
	    CASE(test_no_memory),
	    CASE(test_no_memory_in_a_trial),
	    CASE(test_no_memory_in_a_shadow),
	    CASE(test_names_stay),
	    CASE(test_values_in_a_shadow),
	    CASE(test_looking),
	    CASE(test_each),
	    CASE(test_carried_to_a_shadow),
	    CASE(test_a_set_of_one_policy_of_a_trial),
	    CASE(test_added_again),
	    CASE(test_deleted_when_lapsed),
	    CASE(test_replaced_in_a_shadow_of_another_policy),
	    CASE(test_both_policies_of_a_trial_or_none),
	    CASE(test_killed),
	    CASE(test_in_a_shadow_too),
	    CASE(test_values_during_a_trial),
	    CASE(test_a_value_during_a_trial),
	    CASE(test_taken_out_of_the_shadow),
	    CASE(test_refusals),
	    CASE(test_telling_a_fleet),
	    CASE(test_telling_values),
	    CASE(test_frozen),
	    CASE(test_changed_since_the_look),
	    CASE(test_taking_from_a_fleet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
