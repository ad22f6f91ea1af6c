/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sets of prefixes in the kernel: every look-up is the oracle's; a set is replaced while packets go
 * on, and each has the old one or the new one; and what the verifier saw is little.
 */
#include "set_oracle.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi.h"
#include "sets/set_maps.h"
#include "set_test.h"

#define VERIFIED_MAX 26000 /* instructions, of two look-ups in each family */
#define SEEN	     200   /* packets of each set, before the test is over */

static struct {
	int fd, sets_fd;
	struct set_seen *seen;
} p;

static int setup(void **unused)
{
	const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
	struct bpf_object *obj;
	struct bpf_map *map;
	char path[300];

	(void)unused;
	snprintf(path, sizeof(path), "%s/prog/set.bpf.o", build);
	obj = bpf_object__open_file(path, NULL);
	if (!obj || bpf_object__load(obj))
		fail_msg("%s does not load: run as root", path);
	p.fd = bpf_program__fd(bpf_object__find_program_by_name(obj, "set_test"));
	p.sets_fd = bpf_map__fd(bpf_object__find_map_by_name(obj, "pacer_sets"));
	map = bpf_object__find_map_by_name(obj, ".data.seen");
	p.seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
	assert_ptr_not_equal(p.seen, MAP_FAILED);
	return 0;
}

static int find(uint32_t place, const struct set_asked *a)
{
	/* A frame is 14 bytes at least, and the first of them are looked at here. */
	struct set_question q = {place / PACER_SETS_MAX, place % PACER_SETS_MAX, a->family, {0}};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = &q, .data_size_in = sizeof(q), .repeat = 1);

	set_words(a, q.addr);
	if (bpf_prog_test_run_opts(p.fd, &opts))
		fail_msg("test_run: %s", strerror(errno));
	return (int)opts.retval;
}

static void ask(uint32_t place, const struct set_list *list, struct set_asked a)
{
	int want = set_list_value(list, a.family, a.high, a.low), got = find(place, &a);

	if (got != want)
		fail_msg("IPv%d %016llx %016llx: %d and not %d, of %zu prefixes", a.family,
			 (unsigned long long)a.high, (unsigned long long)a.low, got, want, list->n);
}

static void same_list(const struct set_list *a, uint32_t place)
{
	struct set_list b = {0};

	assert_int_equal(set_maps_list(p.sets_fd, place, &b), 0);
	assert_int_equal(a->n, b.n);
	for (size_t i = 0; i < a->n; i++) {
		const struct set_entry *x = &a->entry[i], *y = &b.entry[i];

		assert_true(x->high == y->high && x->low == y->low && x->len == y->len &&
			    x->family == y->family && x->value == y->value);
	}
	set_list_free(&b);
}

static void as_the_oracle(void **unused)
{
	(void)unused;
	oracle_seed(11);
	for (uint32_t i = 0; i < 100; i++) {
		struct set_drawn d = {
		    .n = magnitude(1, 3000),
		    .family = (int[]){0, 4, 6}[draw() % 3],
		    .clumps = draw() % 3 ? magnitude(1, 64) : 0,
		    .near = between(1, 128),
		    .least = between(0, 128),
		    .values = draw() & 1 ? 1 : magnitude(1, 65535),
		};
		struct set_list list = {0};
		uint32_t place = i % (2 * PACER_SETS_MAX);

		d.most = between(d.least, 128);
		set_draw(&d, &list);
		set_sorted(&list);
		assert_int_equal(set_maps_put(p.sets_fd, place, &list), 0);
		same_list(&list, place);
		for (size_t k = 0; k < 100; k++) {
			struct set_asked edge[4];

			set_edges(&list.entry[draw() % list.n], edge);
			ask(place, &list, edge[k & 3]);
			ask(place, &list, set_address(&d));
		}
		set_list_free(&list);
	}
}

/* Both families have one value, in sets of other shapes. */
static void fill(struct set_list *list, uint16_t value, size_t others)
{
	struct set_drawn d = {.n = others, .least = 9, .most = 128, .values = 1};

	set_draw(&d, list);
	for (size_t i = 0; i < list->n; i++) {
		list->entry[i].high |= 1ull << 63; /* not 10.0.0.0/8, nor fc00::/7's half */
		list->entry[i].value = 7;
	}
	for (int family = 4; family <= 6; family += 2) {
		struct set_entry e = {0x0a00000000000000ull, 0, 0, value, family, 8};

		assert_int_equal(set_list_add(list, &e), 0);
	}
	set_sorted(list);
}

static int stop;

static void *send_packets(void *unused)
{
	struct set_question q = {0, 0, 0, {0x0a010203, 5, 6, 7}};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = &q, .data_size_in = sizeof(q),
		    .repeat = 100);

	(void)unused;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		if (bpf_prog_test_run_opts(p.fd, &opts))
			return "test_run failed";
	return NULL;
}

/* A packet that asks twice has both answers of one set, whenever it is replaced. */
static void replaced_while_packets_go_on(void **unused)
{
	struct set_list one = {0}, two = {0};
	uint64_t changes = 0;
	pthread_t thread;
	void *failed;

	(void)unused;
	oracle_seed(12);
	fill(&one, 1, 3000);
	fill(&two, 2, 50);
	memset(p.seen, 0, sizeof(*p.seen));
	assert_int_equal(set_maps_put(p.sets_fd, 0, &one), 0);
	assert_int_equal(pthread_create(&thread, NULL, send_packets, NULL), 0);
	while (((volatile struct set_seen *)p.seen)->one < SEEN ||
	       ((volatile struct set_seen *)p.seen)->two < SEEN || changes < 50) {
		/* Which one is drawn: both sides wait for the kernel's grace periods, and in step
		 * with it packets would meet the same one again and again.
		 */
		assert_int_equal(set_maps_put(p.sets_fd, 0, draw() & 1 ? &one : &two), 0);
		changes++;
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, &failed);
	if (failed)
		fail_msg("%s", (char *)failed);
	assert_int_equal(p.seen->other, 0);
	set_list_free(&one);
	set_list_free(&two);
}

/* A set is in two places at once, and each goes for itself. */
static void places(void **unused)
{
	struct set_list one = {0}, two = {0};
	struct set_asked a = {0x0a01020300000000ull, 0, 4};
	struct pacer_set_head head;

	(void)unused;
	oracle_seed(13);
	fill(&one, 1, 10);
	fill(&two, 2, 10);
	assert_int_equal(set_maps_put(p.sets_fd, 3, &one), 0);
	assert_int_equal(set_maps_share(p.sets_fd, 3, PACER_SETS_MAX + 5), 0);
	assert_int_equal(find(PACER_SETS_MAX + 5, &a), 1);
	assert_int_equal(set_maps_put(p.sets_fd, 3, &two), 0);
	assert_int_equal(find(3, &a), 2);
	assert_int_equal(find(PACER_SETS_MAX + 5, &a), 1);
	assert_int_equal(set_maps_head(p.sets_fd, 3, &head), 0);
	assert_int_equal(head.prefixes[0] + head.prefixes[1], two.n);
	assert_true(set_maps_lines(&two) >= head.lines);
	assert_int_equal(set_maps_move(p.sets_fd, 3, -1), 0);
	assert_int_equal((uint32_t)find(3, &a), SET_NONE);
	assert_int_equal(set_maps_head(p.sets_fd, 3, &head), -1);
	assert_int_equal(errno, ENOENT);
	/* Of an empty place. */
	assert_int_equal(set_maps_share(p.sets_fd, 3, PACER_SETS_MAX + 5), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal((uint32_t)find(PACER_SETS_MAX + 5, &a), SET_NONE);
	set_list_free(&one);
	set_list_free(&two);
}

/* A set without prefixes is one that nobody is in. */
static void empty(void **unused)
{
	struct set_asked four = {0, 0, 4}, six = {0, 0, 6};
	struct set_list none = {0};

	(void)unused;
	assert_int_equal(set_maps_put(p.sets_fd, 1, &none), 0);
	assert_int_equal(find(1, &four), 0);
	assert_int_equal(find(1, &six), 0);
	same_list(&none, 1);
}

static void verified(void **unused)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);

	(void)unused;
	assert_int_equal(bpf_obj_get_info_by_fd(p.fd, &info, &len), 0);
	print_message("verified instructions: %u\n", info.verified_insns);
	assert_in_range(info.verified_insns, 1, VERIFIED_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(as_the_oracle), cmocka_unit_test(replaced_while_packets_go_on),
	    cmocka_unit_test(places),	     cmocka_unit_test(empty),
	    cmocka_unit_test(verified),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
