/* SPDX-License-Identifier: GPL-2.0-only */
/* Sets of prefixes: every look-up is that of an oracle which looks at every prefix. */
#include "set_oracle.h"

#include <errno.h>

#include "sets/pack.h"

static int find(const struct pacer_set *set, const struct set_asked *a)
{
	uint32_t addr[4];

	set_words(a, addr);
	return a->family == 4 ? pacer_set_find4(set, addr[0]) : pacer_set_find6(set, addr);
}

static void ask(const struct set_list *list, const struct pacer_set *set, struct set_asked a)
{
	int want = set_list_value(list, a.family, a.high, a.low), got = find(set, &a);

	if (got != want)
		fail_msg("IPv%d %016llx %016llx: %d and not %d, of %zu prefixes", a.family,
			 (unsigned long long)a.high, (unsigned long long)a.low, got, want, list->n);
}

/* Every edge, and addresses at random. */
static void ask_all(const struct set_drawn *d, const struct set_list *list, size_t edges)
{
	struct set_lines lines;
	struct pacer_set set;

	assert_int_equal(set_build(list, draw(), &lines), 0);
	set = set_lines_set(&lines);
	assert_int_equal(lines.line->head.lines, lines.n);
	for (size_t i = 0; i < edges; i++) {
		size_t at = edges == list->n ? i : draw() % list->n;
		struct set_asked edge[4];

		set_edges(&list->entry[at], edge);
		for (int k = 0; k < 4; k++)
			ask(list, &set, edge[k]);
	}
	for (int i = 0; i < 200; i++)
		ask(list, &set, set_address(d));
	set_lines_free(&lines);
}

static void run(const struct set_drawn *d, size_t edges)
{
	struct set_list list = {0};

	set_draw(d, &list);
	set_sorted(&list);
	ask_all(d, &list, edges < list.n ? edges : list.n);
	set_list_free(&list);
}

/* Of every shape: few or many, near each other or not, short and long, with values or without. */
static void as_the_oracle(void **unused)
{
	(void)unused;
	oracle_seed(1);
	for (int i = 0; i < 3000; i++) {
		struct set_drawn d = {
		    .n = magnitude(1, 400),
		    .family = (int[]){0, 4, 6}[draw() % 3],
		    .clumps = draw() % 3 ? magnitude(1, 64) : 0,
		    .near = between(1, 128),
		    .least = between(0, 128),
		    .values = draw() & 1 ? 1 : magnitude(1, 65535),
		};

		d.most = between(d.least, 128);
		run(&d, 60);
	}
}

/* So many in a few blocks that lines lead to lines, as deep as they may. */
static void crowded(void **unused)
{
	static const unsigned int near[] = {4, 8, 12, 16, 17, 20};

	(void)unused;
	oracle_seed(2);
	for (int i = 0; i < 60; i++) {
		struct set_drawn d = {
		    .n = between(500, 6000),
		    .family = i & 1 ? 4 : 6,
		    .clumps = between(1, 200),
		    .near = near[i % 6],
		    .least = i & 1 ? 28 : 124,
		    .most = i & 1 ? 32 : 128,
		    .values = i & 2 ? 1 : 3,
		};

		run(&d, 100);
	}
}

static void add(struct set_list *list, const char *text, uint16_t value)
{
	struct set_entry e;
	struct prefix p;

	assert_int_equal(units_prefix(text, &p), 0);
	e = set_entry_of(&p, value, 0);
	assert_int_equal(set_list_add(list, &e), 0);
}

static int value_of(const struct set_list *list, const char *text)
{
	struct set_lines lines;
	struct set_asked a;
	struct prefix p;
	struct set_entry e;
	struct pacer_set set;
	int value;

	assert_int_equal(units_prefix(text, &p), 0);
	e = set_entry_of(&p, 0, 0);
	a = (struct set_asked){e.high, e.low, e.family};
	assert_int_equal(set_build(list, 7, &lines), 0);
	set = set_lines_set(&lines);
	value = find(&set, &a);
	set_lines_free(&lines);
	return value;
}

/* Every line leads on as often as it may: each second address of a /28 in each /20 and /24. */
static void deepest(void **unused)
{
	struct set_drawn d = {.family = 4, .clumps = 1, .near = 16};
	struct set_list list = {0};

	(void)unused;
	oracle_seed(3);
	for (int values = 1; values < 3; values++) {
		for (uint32_t i = 0; i < 65536; i += 2)
			if (!(i & 0xe0) || !(i & 0xff00)) {
				struct set_entry e = {(uint64_t)(0x0a000000 | i) << 32,
						      0,
						      0,
						      1 + (i / 2) % values,
						      4,
						      32};

				assert_int_equal(set_list_add(&list, &e), 0);
			}
		set_sorted(&list);
		ask_all(&d, &list, 300);
		set_list_free(&list);
	}
}

/* An empty set, all addresses, single ones at the ends, one family alone. */
static void edges(void **unused)
{
	struct set_list list = {0};

	(void)unused;
	assert_int_equal(value_of(&list, "192.0.2.1"), 0);
	assert_int_equal(value_of(&list, "2001:db8::1"), 0);
	add(&list, "0.0.0.0/0", 9);
	assert_int_equal(value_of(&list, "0.0.0.0"), 9);
	assert_int_equal(value_of(&list, "255.255.255.255"), 9);
	assert_int_equal(value_of(&list, "::"), 0);
	add(&list, "::/0", 65535);
	assert_int_equal(value_of(&list, "::"), 65535);
	assert_int_equal(value_of(&list, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), 65535);
	add(&list, "0.0.0.0", 1);
	add(&list, "255.255.255.255", 2);
	add(&list, "::", 3);
	add(&list, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 4);
	add(&list, "192.0.2.0/24", 5);
	add(&list, "192.0.2.128/25", 6);
	add(&list, "2001:db8::/48", 7);
	add(&list, "2001:db8::/64", 8);
	set_sorted(&list);
	assert_int_equal(value_of(&list, "0.0.0.0"), 1);
	assert_int_equal(value_of(&list, "0.0.0.1"), 9);
	assert_int_equal(value_of(&list, "255.255.255.255"), 2);
	assert_int_equal(value_of(&list, "::"), 3);
	assert_int_equal(value_of(&list, "::1"), 65535);
	assert_int_equal(value_of(&list, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), 4);
	assert_int_equal(value_of(&list, "192.0.2.127"), 5);
	assert_int_equal(value_of(&list, "192.0.2.128"), 6);
	assert_int_equal(value_of(&list, "192.0.3.0"), 9);
	assert_int_equal(value_of(&list, "2001:db8::1"), 8);
	assert_int_equal(value_of(&list, "2001:db8:0:1::"), 7);
	assert_int_equal(value_of(&list, "2001:db8:1::"), 65535);
	set_list_free(&list);
}

/* Two halves of one value are all of what they are of, at the front and in the cells of each level.
 */
static void halves(void **unused)
{
	static const struct {
		const char *first, *second, *in, *out;
	} rows[] = {
	    {"10.0.0.0/17", "10.0.128.0/17", "10.0.255.255", "10.1.0.0"},
	    {"2001:db8::/33", "2001:db8:8000::/33", "2001:db8:ffff::", "2001:db9::"},
	    {"2001:db8:1::/49", "2001:db8:1:8000::/49", "2001:db8:1:ffff::1", "2001:db8:2::"},
	    {"2001:db8::/65", "2001:db8::8000:0:0:0/65", "2001:db8::ffff:0:0:1", "2001:db8:0:1::"},
	};

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (uint16_t second = 1; second < 3; second++) {
			struct set_list list = {0};

			add(&list, rows[i].first, 1);
			add(&list, rows[i].second, second);
			set_sorted(&list);
			assert_int_equal(value_of(&list, rows[i].in), second);
			assert_int_equal(value_of(&list, rows[i].out), 0);
			set_list_free(&list);
		}
}

/* Sorted by family, address and length; of equal ones the first stays, if they agree. */
static void sorted(void **unused)
{
	struct set_entry one = {0}, other = {0};
	struct set_list list = {0};

	(void)unused;
	oracle_seed(4);
	for (int i = 0; i < 5000; i++) {
		struct set_entry e = {draw() << 60,  0, (uint32_t)i + 1, 1, draw() & 1 ? 4 : 6,
				      between(4, 20)};

		assert_int_equal(set_list_add(&list, &e), 0);
	}
	assert_int_equal(set_list_sort(&list, &one, &other), 0);
	assert_int_equal(list.n + list.duplicates, 5000);
	assert_int_equal(list.n, 2 * 16 * 17);
	for (size_t i = 1; i < list.n; i++) {
		struct set_entry *a = &list.entry[i - 1], *b = &list.entry[i];

		assert_true(a->family < b->family ||
			    (a->family == b->family &&
			     (a->high < b->high || (a->high == b->high && a->len < b->len))));
		assert_ptr_equal(set_list_find(&list, b), b);
	}
	one = list.entry[3];
	one.line = 7000;
	one.value = 2;
	assert_int_equal(set_list_add(&list, &one), 0);
	assert_int_equal(set_list_sort(&list, &one, &other), 1);
	assert_int_equal(one.value, 1);
	assert_int_equal(other.line, 7000);
	set_list_free(&list);
}

/* Of a list in any order the longest prefix counts. */
static void in_any_order(void **unused)
{
	struct set_list list = {0};

	(void)unused;
	add(&list, "10.1.0.0/16", 2);
	add(&list, "10.0.0.0/8", 1);
	add(&list, "10.1.2.0/24", 3);
	assert_int_equal(set_list_value(&list, 4, 0x0a010300ull << 32, 0), 2);
	assert_int_equal(set_list_value(&list, 4, 0x0a010200ull << 32, 0), 3);
	assert_int_equal(set_list_value(&list, 4, 0x0a020000ull << 32, 0), 1);
	set_list_free(&list);
}

/* A set that leads out of itself, or is none, is said to be broken. */
static void broken(void **unused)
{
	struct set_drawn d = {
	    .n = 2000, .clumps = 3, .near = 12, .least = 20, .most = 128, .values = 1};
	struct set_list list = {0};
	struct set_lines lines;
	struct pacer_set set;
	struct set_asked a = {0};
	int met = 0;

	(void)unused;
	oracle_seed(5);
	set_draw(&d, &list);
	set_sorted(&list);
	assert_int_equal(set_build(&list, 1, &lines), 0);
	for (uint32_t n = 0; n < lines.n; n += 1 + n / 8) {
		set = (struct pacer_set){lines.line, n};
		for (int i = 0; i < 200; i++) {
			int value;

			a = set_address(&d);
			value = find(&set, &a);
			if (value == PACER_SET_BROKEN)
				met++;
			else
				assert_int_equal(value,
						 set_list_value(&list, a.family, a.high, a.low));
		}
	}
	assert_true(met > 1000);
	set = set_lines_set(&lines);
	lines.line->head.format++;
	a.family = 4;
	assert_int_equal(find(&set, &a), PACER_SET_BROKEN);
	a.family = 6;
	assert_int_equal(find(&set, &a), PACER_SET_BROKEN);
	set_lines_free(&lines);
	set_list_free(&list);
}

/* Nothing in the lines stays as it was drawn: whatever they hold, a look-up ends within them. */
static void of_noise(void **unused)
{
	union pacer_set_line line[64];
	struct pacer_set set = {line, 64};

	(void)unused;
	oracle_seed(6);
	for (int i = 0; i < 20000; i++) {
		struct set_asked a = {draw(), draw(), i & 1 ? 4 : 6};

		for (size_t k = 0; k < ARRAY(line); k++)
			for (int w = 0; w < 8; w++)
				line[k].word[w] = draw() & 1 ? draw() & draw() & 0x3ff03ff : draw();
		line[0].head.format = PACER_SET_FORMAT;
		line[0].head.cells %= 64;
		line[0].head.front[0] = line[0].head.front[1] = 1;
		a.high &= 0x1ff7fffffffffffull;
		(void)find(&set, &a);
	}
}

/* What the bound on memory is: of random prefixes, and of the most crowded ones. */
static void memory(void **unused)
{
	static const struct {
		struct set_drawn d;
		double bytes; /* a prefix, at the most */
	} want[] = {
	    {{.n = 1000000, .family = 4, .least = 32, .most = 32, .values = 1}, 15},
	    {{.n = 1000000, .family = 4, .least = 32, .most = 32, .values = 200}, 29},
	    {{.n = 100000, .family = 6, .least = 64, .most = 64, .values = 1}, 36},
	    {{.n = 100000, .family = 6, .least = 128, .most = 128, .values = 9}, 36},
	    {{.n = 200000,
	      .family = 4,
	      .clumps = 3000,
	      .near = 8,
	      .least = 30,
	      .most = 32,
	      .values = 1},
	     45},
	};

	(void)unused;
	oracle_seed(7);
	for (size_t i = 0; i < ARRAY(want); i++) {
		struct set_list list = {0};
		struct set_lines lines;
		double bytes;

		set_draw(&want[i].d, &list);
		set_sorted(&list);
		assert_int_equal(set_build(&list, 1, &lines), 0);
		bytes = ((double)lines.n - PACER_SET_FRONT) * sizeof(*lines.line) / (double)list.n;
		if (bytes > want[i].bytes)
			fail_msg("%zu: %.1f bytes a prefix", i, bytes);
		set_lines_free(&lines);
		set_list_free(&list);
	}
}

/* What is packed and unpacked is the same list; what is no list is refused, whatever it is. */
static void packed(void **unused)
{
	(void)unused;
	oracle_seed(8);
	for (int i = 0; i < 500; i++) {
		struct set_drawn d = {
		    .n = magnitude(1, 400),
		    .clumps = draw() % 3 ? magnitude(1, 64) : 0,
		    .near = between(1, 128),
		    .least = between(0, 128),
		    .most = 128,
		    .values = draw() & 1 ? 1 : magnitude(1, 65535),
		};
		struct set_list list = {0}, again = {0}, noise = {0};
		struct set_packed p;

		set_draw(&d, &list);
		set_sorted(&list);
		assert_int_equal(set_pack(&list, &p), 0);
		assert_int_equal(set_unpack(p.byte, p.n, &again), 0);
		assert_int_equal(list.n, again.n);
		for (size_t k = 0; k < list.n; k++)
			assert_memory_equal(&list.entry[k], &again.entry[k], sizeof(*list.entry));
		for (size_t k = 0; k < p.n && k < 40; k++)
			p.byte[draw() % p.n] = draw();
		if (set_unpack(p.byte, p.n, &noise))
			assert_int_equal(errno, EBADMSG);
		set_packed_free(&p);
		set_list_free(&list);
		set_list_free(&again);
		set_list_free(&noise);
	}
}

/* The least value and the greatest are values, as set.values may name them. */
static void packed_values(void **unused)
{
	static const uint16_t value[] = {1, 2, SET_VALUE_MAX - 1, SET_VALUE_MAX};

	(void)unused;
	for (size_t i = 0; i < ARRAY(value); i++) {
		struct set_list list = {0}, again = {0};
		struct set_packed p;

		add(&list, "192.0.2.0/24", value[i]);
		assert_int_equal(set_pack(&list, &p), 0);
		assert_int_equal(set_unpack(p.byte, p.n, &again), 0);
		assert_int_equal(again.n, 1);
		assert_memory_equal(again.entry, list.entry, sizeof(*list.entry));
		set_packed_free(&p);
		set_list_free(&list);
		set_list_free(&again);
	}
}

/* The bytes of an address in the order that packets have them, and back. */
static void addresses(void **unused)
{
	static const struct {
		const char *text;
		uint64_t high, low;
	} rows[] = {
	    {"2001:db8:a0b:c0d:102:304:506:708/128", 0x20010db80a0b0c0d, 0x0102030405060708},
	    {"2001:db8::1:2:3:4/128", 0x20010db800000000, 0x0001000200030004},
	    {"2001:db8::/32", 0x20010db800000000, 0},
	    {"192.0.2.7/32", 0xc000020700000000, 0},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		struct prefix p, back;
		struct set_entry e;

		assert_int_equal(units_prefix(rows[i].text, &p), 0);
		e = set_entry_of(&p, 9, 4);
		assert_true(e.high == rows[i].high && e.low == rows[i].low);
		assert_int_equal(e.family, i < 3 ? 6 : 4);
		assert_int_equal(e.len, p.len);
		assert_int_equal(e.value, 9);
		assert_int_equal(e.line, 4);
		back = set_entry_prefix(&e);
		assert_memory_equal(&back, &p, sizeof(p));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(as_the_oracle), cmocka_unit_test(crowded),
	    cmocka_unit_test(deepest),	     cmocka_unit_test(edges),
	    cmocka_unit_test(halves),	     cmocka_unit_test(sorted),
	    cmocka_unit_test(broken),	     cmocka_unit_test(of_noise),
	    cmocka_unit_test(memory),	     cmocka_unit_test(packed),
	    cmocka_unit_test(in_any_order),  cmocka_unit_test(packed_values),
	    cmocka_unit_test(addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
