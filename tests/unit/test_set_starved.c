/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sets of prefixes without memory: while they are read, packed, built and taken back, at each
 * allocation and each mapping in turn. What comes of it is all that it should be, or an error that
 * says so; nothing is left behind (the sanitizers tell). And what is damaged is refused.
 */
#include "set_oracle.h"
#include "starved.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sets/hand.h"
#include "sets/pack.h"
#include "sets/texts.h"

static struct policy_error error;
static uint32_t mappings, no_mapping; /* from 1; 0: none fails */

void *__real_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
void *__real_mremap(void *at, size_t was, size_t n, int flags);
void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
void *__wrap_mremap(void *at, size_t was, size_t n, int flags);

static bool unmapped(void)
{
	if (!no_mapping || ++mappings != no_mapping)
		return false;
	errno = ENOMEM;
	return true;
}

void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
	return unmapped() ? MAP_FAILED : __real_mmap(at, n, prot, flags, fd, offset);
}

void *__wrap_mremap(void *at, size_t was, size_t n, int flags)
{
	return unmapped() ? MAP_FAILED : __real_mremap(at, was, n, flags);
}

/* Runs it with the n-th allocation failing, for each n, until it needs no more: how many did. */
static uint32_t starve(bool (*done)(void), bool for_good)
{
	uint32_t failed = 0;

	for (uint32_t n = 1;; n++) {
		bool well;

		starved_from(n, for_good);
		well = done();
		memory.on = false;
		if (memory.n < n) {
			assert_true(well);
			return failed;
		}
		failed += !well;
	}
}

/* ---- reading ---- */

static const char *text;
static uint32_t value_field;
static struct set_list expected;

static bool read_text(void)
{
	const struct set_names known = {(char *[]){(char *)"XY"}, 1, NULL, 0};
	struct set_source source = {"f", value_field, value_field ? &known : NULL};
	struct set_text t;
	int result;

	memset(&error, 0, sizeof(error));
	memory.on = true;
	result = set_read(text, strlen(text), &source, &t, &error);
	memory.on = false;
	if (result) {
		assert_string_equal(error.text, "no memory for its prefixes");
		assert_int_equal(error.line, POLICY_NO_MEMORY);
		assert_true(!t.list.entry && !t.names.name);
		return false;
	}
	assert_int_equal(t.list.n, expected.n);
	assert_memory_equal(t.list.entry, expected.entry, expected.n * sizeof(*expected.entry));
	set_text_free(&t);
	return true;
}

static void test_reading(void **unused)
{
	static char many[20000];
	size_t n = 0;

	(void)unused;
	for (int i = 300; i; i--) /* more than there is room for at first, and not sorted */
		n += (size_t)sprintf(many + n, "10.0.%d.%d,V%d\n10.1.%d.0-10.1.%d.2,XY\n", i / 256,
				     i % 256, i / 3, i % 256, i % 256);
	text = many;
	for (value_field = 0; value_field <= 2; value_field += 2) {
		const struct set_names known = {(char *[]){(char *)"XY"}, 1, NULL, 0};
		struct set_source source = {"f", value_field, value_field ? &known : NULL};
		struct set_text t;

		assert_int_equal(set_read(text, strlen(text), &source, &t, &error), 0);
		expected = t.list;
		for (int for_good = 0; for_good < 2; for_good++)
			assert_true(starve(read_text, for_good) > 5);
		set_text_free(&t);
	}
}

/* What to write in the place of a wrong prefix takes memory, too. */
static void test_host_bits(void **unused)
{
	struct set_source source = {"f", 0, NULL};
	struct set_text t;

	(void)unused;
	starved_from(1, true);
	memory.on = true;
	assert_int_equal(set_read("192.0.2.1/24\n", 13, &source, &t, &error), -1);
	memory.on = false;
	assert_string_equal(error.text, "no memory for its prefixes");
}

/* ---- a policy's ---- */

#define FILED                                                                                      \
	"sets:\n- {name: geo, file: %s, value: 2}\n- {name: drop, of: [192.0.2.9, 192.0.2.1]}\n"   \
	"rules:\n- {name: a, match: {src: \"@geo=XY\"}, limits: [{key: \"value(geo, src)\", gap: " \
	"1s}]}\n- {name: b, match: {src: \"@drop\"}, limits: [{key: src, gap: 1s}]}\n"

static char path[] = "/tmp/test_set_starved.XXXXXX";
static struct policy *policy;

static bool read_texts(void)
{
	static struct set_texts texts;
	int result;

	memset(&error, 0, sizeof(error));
	memory.on = true;
	result = set_texts_read(policy, &texts, &error);
	memory.on = false;
	if (result) {
		assert_int_equal(error.line, POLICY_NO_MEMORY);
		assert_true(!strcmp(error.text, "no memory for its prefixes") ||
			    !strcmp(error.text, "no memory for the policy's sets") ||
			    !strcmp(error.text, "Cannot allocate memory"));
		return false;
	}
	assert_true(texts.n == 2 && texts.text[0].list.n == 3 && texts.text[1].list.n == 2);
	assert_ptr_equal(texts.text[0].list.about, &texts.text[0].about);
	set_texts_free(&texts);
	return true;
}

static void test_a_policys(void **unused)
{
	static const char csv[] = "10.0.0.0/8,XY\n10.1.0.0/16,ZZ\n10.2.0.0/16,XX\n";
	char yaml[1000];
	int fd = mkstemp(path);

	(void)unused;
	assert_int_equal(write(fd, csv, strlen(csv)), strlen(csv));
	close(fd);
	snprintf(yaml, sizeof(yaml), FILED, path);
	policy = policy_parse(yaml, strlen(yaml), &error);
	if (!policy)
		fail_msg("%s", error.text);
	for (int for_good = 0; for_good < 2; for_good++)
		assert_true(starve(read_texts, for_good) > 5);
	policy_free(policy);
	unlink(path);
}

/* Of a value that no prefix has: what may have been meant, of this set's. */
static void test_no_such_value(void **unused)
{
	static const struct {
		const char *file, *says;
	} each[] = {
	    {"10.0.0.0/8,germany\n10.1.0.0/16,XX\n",
	     "no prefix of set geo has the value germny (did you mean germany?): see match and "
	     "allow"},
	    {"10.0.0.0/8,AA\n", "no prefix of set geo has the value germny: see match and allow"},
	};
	static struct set_texts texts;
	char yaml[1000];

	(void)unused;
	for (size_t i = 0; i < ARRAY(each); i++) {
		FILE *f = fopen(path, "w");

		fputs(each[i].file, f);
		fclose(f);
		snprintf(
		    yaml, sizeof(yaml),
		    "sets:\n- {name: as, file: %s, value: 2}\n- {name: geo, file: %s, value: "
		    "2}\n"
		    "rules:\n- {name: a, match: {src: \"@geo=germny\"}, limits: [{key: src, gap: "
		    "1s}]}\n- {name: b, match: {src: \"@as=%s\"}, limits: [{key: src, gap: "
		    "1s}]}\n",
		    path, path, i ? "AA" : "germany");
		policy = policy_parse(yaml, strlen(yaml), &error);
		if (!policy)
			fail_msg("%s", error.text);
		assert_int_equal(set_texts_read(policy, &texts, &error), -1);
		assert_string_equal(error.text, each[i].says);
		policy_free(policy);
	}
	unlink(path);
}

static bool read_pipe(void)
{
	struct set_source source = {"f", 0, NULL};
	const size_t len = 200000;
	struct set_text t;
	int end[2], result;

	assert_int_equal(pipe(end), 0);
	assert_true(fcntl(end[1], F_SETPIPE_SZ, 1 << 18) > 0);
	for (size_t i = 0; i < len; i += 10)
		assert_int_equal(write(end[1], "192.0.2.1\n", 10), 10);
	close(end[1]);
	assert_true(dup2(end[0], 0) == 0);
	close(end[0]);
	memset(&error, 0, sizeof(error));
	memory.on = true;
	result = set_read_file("-", &source, &t, &error);
	memory.on = false;
	if (result) {
		assert_int_equal(error.line, POLICY_NO_MEMORY);
		assert_true(!strcmp(error.text, "no memory for its prefixes") ||
			    !strcmp(error.text, "Cannot allocate memory"));
		return false;
	}
	set_text_free(&t);
	return true;
}

/* Whose length nobody knows before. */
static void test_a_pipe(void **unused)
{
	(void)unused;
	assert_true(starve(read_pipe, false) > 3);
}

/* ---- what is built ---- */

static struct set_list list;
static struct set_hand hand;
static struct set_about about;

/* As packets' and tools' parts of a set are made. */
static bool build(void)
{
	struct set_names names = {NULL, 0, NULL, 0};
	struct set_list again = {0};
	struct set_packed packed;
	struct set_lines lines;
	int result;

	memory.on = true;
	result = set_pack(&list, &packed);
	if (!result) {
		result = set_build(&list, 7, &lines);
		if (!result) {
			result = set_words_put(&lines, &about) || set_words_take(&lines, &names) ||
				 set_unpack(packed.byte, packed.n, &again);
			assert_true(!result || errno == ENOMEM);
			set_lines_free(&lines);
		}
	}
	memory.on = false;
	assert_true(!result || errno == ENOMEM);
	if (!result) {
		assert_true(again.n == list.n && names.n == about.names->n);
		assert_memory_equal(again.entry, list.entry, list.n * sizeof(*list.entry));
	}
	set_packed_free(&packed);
	set_names_free(&names);
	set_list_free(&again);
	return !result;
}

static bool build_hand(void)
{
	struct set_list numbered = {0};
	struct set_lines lines = {NULL, 0, 0};
	struct set_hand again = {.n = 0};
	int result;

	memory.on = true;
	result = set_hand_list(&hand, &numbered) || set_hand_build(&hand, &numbered, 7, &lines) ||
		 set_hand_take(&lines, &numbered, &again);
	memory.on = false;
	assert_true(!result || errno == ENOMEM);
	if (!result) {
		assert_int_equal(again.n, hand.n);
		assert_string_equal(set_hand_value(&again, &again.entry[0]),
				    set_hand_value(&hand, &hand.entry[0]));
	}
	set_lines_free(&lines);
	set_list_free(&numbered);
	set_hand_free(&again);
	return !result;
}

static void add(const char *prefix, uint16_t value)
{
	struct set_entry e;
	struct prefix p;

	assert_int_equal(units_prefix(prefix, &p), 0);
	e = set_entry_of(&p, value, 0);
	assert_int_equal(set_list_add(&list, &e), 0);
}

/* Of few prefixes, but of each kind. */
static void draw_some(struct set_names *names)
{
	for (uint32_t i = 0; i < 2200; i++) {
		char name[16];
		struct set_word word = {name, (size_t)snprintf(name, sizeof(name), "v%u", i)};

		assert_int_equal(set_names_add(names, word), i + 1);
	}
	for (uint16_t i = 1; i < 100; i++) {
		char prefix[64];

		snprintf(prefix, sizeof(prefix), "10.%u.0.0/15", 2u * i);
		add(prefix, i);
		snprintf(prefix, sizeof(prefix), "2001:db8:%x::%x", i, i);
		add(prefix, i);
	}
	set_sorted(&list);
	about = (struct set_about){"geo", names, 1};
	list.about = &about;
	for (uint32_t i = 0; i < 200; i++) {
		struct set_entry e = list.entry[i % list.n];

		e.line = 0;
		e.value = 1;
		assert_int_equal(set_hand_add_named(&hand, &e, SET_HAND_STAYS, names->name[i]), 0);
	}
	set_hand_settle(&hand, 1);
}

static void test_building(void **unused)
{
	struct set_names names = {NULL, 0, NULL, 0};

	(void)unused;
	list = (struct set_list){0};
	draw_some(&names);
	for (int for_good = 0; for_good < 2; for_good++) {
		assert_true(starve(build, for_good) > 20);
		assert_true(starve(build_hand, for_good) > 20);
	}
	set_hand_free(&hand);
	set_list_free(&list);
	set_names_free(&names);
}

/* Every second address of so many blocks of 2^16, which take 8192 lines each; and one more. */
static void fill_blocks(uint32_t blocks, uint64_t odd, bool one_more)
{
	list = (struct set_list){0};
	for (uint64_t i = odd; i < blocks * 65536ull; i += 2) {
		struct set_entry e = {(0x0a000000 + i) << 32, 0, 0, 1, 4, 32};

		assert_int_equal(set_list_add(&list, &e), 0);
	}
	if (one_more) {
		struct set_entry e = {(0x0a000000ull + blocks * 65536 + 6) << 32, 0, 0, 1, 4, 32};

		assert_int_equal(set_list_add(&list, &e), 0);
	}
}

/* The same of IPv6, whose blocks are cells. */
static void fill_cells(uint32_t cells, bool one_more)
{
	list = (struct set_list){0};
	for (uint64_t i = 1; i < cells * 65536ull + (one_more ? 65536 : 0);
	     i += i < cells * 65536ull ? 2 : 65536) {
		struct set_entry e = {0x20010db800000000ull, i, 0, 1, 6, 128};

		assert_int_equal(set_list_add(&list, &e), 0);
	}
}

/* Without its second mapping; then with it. */
static void build_and_free(void)
{
	struct set_lines lines;

	mappings = 0;
	no_mapping = 2;
	assert_int_equal(set_build(&list, 7, &lines), -1);
	assert_true(errno == ENOMEM && !lines.line);
	no_mapping = 0;
	assert_int_equal(set_build(&list, 7, &lines), 0);
	assert_true(lines.n > 16384);
	set_lines_free(&lines);
	set_list_free(&list);
}

/* Lines are mapped by the megabyte, which is 16384: what lies there comes without room. */
static void test_mappings(void **unused)
{
	struct set_lines lines;

	(void)unused;
	for (int i = 0; i < 4; i++) {
		fill_blocks(2, i & 1, i & 2);
		build_and_free();
	}
	for (int i = 0; i < 2; i++) {
		fill_cells(2, i);
		build_and_free();
	}
	for (int i = 0; i < 3; i++) { /* not even the first */
		list = (struct set_list){0};
		if (i)
			add(i == 1 ? "10.0.0.0/8" : "2001:db8::1", 1);
		mappings = 0;
		no_mapping = 1;
		errno = 0;
		assert_int_equal(set_build(&list, 7, &lines), -1);
		assert_true(errno == ENOMEM && !lines.line);
		no_mapping = 0;
		set_list_free(&list);
	}
}

/* Deep within a block: where that befalls is drawn. */
static void test_mappings_drawn(void **unused)
{
	uint32_t failed = 0;

	(void)unused;
	oracle_seed(61);
	for (int i = 0; i < 16; i++) {
		struct set_drawn d = {
		    .n = between(8000, 20000),
		    .family = 4,
		    .clumps = between(1, 100),
		    .near = between(12, 16),
		    .least = 28,
		    .most = 32,
		    .values = i & 1 ? 1 : 3,
		};
		struct set_lines lines;

		list = (struct set_list){0};
		set_draw(&d, &list);
		set_sorted(&list);
		mappings = 0;
		no_mapping = 2;
		if (set_build(&list, draw(), &lines)) {
			assert_int_equal(errno, ENOMEM);
			assert_null(lines.line);
			failed++;
		}
		assert_true(!lines.line == (mappings >= no_mapping));
		no_mapping = 0;
		set_lines_free(&lines);
		set_list_free(&list);
	}
	assert_true(failed > 2);
}

/* The same of the words and the texts of many values, and of what is added by hand. */
static void test_mappings_of_texts(void **unused)
{
	struct set_entry ten = {0x0a00000000000000ull, 0, 0, 1, 4, 8};
	struct set_names names = {NULL, 0, NULL, 0};
	struct set_list numbered;
	struct set_lines lines;

	(void)unused;
	for (uint32_t i = 0; i < SET_VALUE_MAX; i++) {
		char name[32];
		struct set_word word = {name, (size_t)snprintf(name, sizeof(name), "%020u", i)};

		assert_int_equal(set_names_add(&names, word), i + 1);
	}
	about = (struct set_about){"geo", &names, 1};
	for (uint32_t blocks = 0; blocks < 2; blocks++) { /* the texts; their words */
		fill_blocks(blocks, 0, true);
		assert_int_equal(set_build(&list, 7, &lines), 0);
		mappings = 0;
		no_mapping = 1;
		assert_int_equal(set_words_put(&lines, &about), -1);
		assert_int_equal(errno, ENOMEM);
		no_mapping = 0;
		assert_int_equal(set_words_put(&lines, &about), 0);
		set_lines_free(&lines);
		set_list_free(&list);
	}
	hand = (struct set_hand){.n = 0};
	assert_int_equal(set_hand_add_named(&hand, &ten, SET_HAND_STAYS, "XY"), 0);
	set_names_free(&hand.names);
	hand.names = names;
	for (uint32_t n = 1; n <= SET_HAND_MAX; n += SET_HAND_MAX - 1) { /* the texts; the ends */
		for (uint64_t i = hand.n; i < n; i++) {
			struct set_entry e = {(0x0a000000ull + i) << 32, 0, 0, 1, 4, 32};

			assert_int_equal(set_hand_add(&hand, &e, SET_HAND_STAYS), 0);
		}
		set_hand_settle(&hand, 1);
		assert_int_equal(set_hand_list(&hand, &numbered), 0);
		for (uint32_t k = 1;; k++) {
			mappings = 0;
			no_mapping = k;
			if (!set_hand_build(&hand, &numbered, 7, &lines))
				break;
			assert_true(errno == ENOMEM && !lines.line);
		}
		assert_true(no_mapping > 2 && mappings == no_mapping - 1);
		no_mapping = 0;
		set_lines_free(&lines);
		set_list_free(&numbered);
	}
	set_hand_free(&hand);
}

static bool pack(void)
{
	struct set_packed packed;
	int result;

	memory.on = true;
	result = set_pack(&list, &packed);
	memory.on = false;
	assert_true(result ? errno == ENOMEM && !packed.byte : packed.n > 4096);
	set_packed_free(&packed);
	return !result;
}

/* At each byte of a prefix: more of them in one byte come before it. */
static void test_packing(void **unused)
{
	(void)unused;
	for (uint64_t before = 0; before < 12; before++) {
		list = (struct set_list){0};
		for (uint64_t i = 0; i < before; i++) {
			struct set_entry e = {(0x0a000000 + i) << 32, 0, 0, 1, 4, 32};

			assert_int_equal(set_list_add(&list, &e), 0);
		}
		for (uint64_t i = 0; i < 600; i++) { /* eight bytes or more each */
			struct set_entry e = {0x2001000000000000ull + (i << 44),
					      0,
					      0,
					      1 + i % 2 * 300,
					      6,
					      63 + i % 2};

			assert_int_equal(set_list_add(&list, &e), 0);
		}
		assert_int_equal(starve(pack, false), 2);
		set_list_free(&list);
	}
}

/* ---- its bounds ---- */

static void test_bounds(void **unused)
{
	struct set_lines lines = {NULL, 1u << 28, 0};
	const struct set_entry e = {0x0a00000000000000ull, 0, 0, 1, 4, 8};

	(void)unused;
	assert_int_equal(set_lines_more(&lines, 1), 0);
	assert_int_equal(errno, EFBIG);
	list = (struct set_list){0};
	assert_int_equal(set_list_add(&list, &e), 0);
	list.entry = realloc(list.entry, (SET_PREFIXES_MAX + 1ul) * sizeof(e)); /* never written */
	assert_non_null(list.entry);
	list.room = SET_PREFIXES_MAX + 1ul;
	list.n = SET_PREFIXES_MAX - 1ul;
	assert_int_equal(set_read_element("10.0.0.1", 1, 7, &list, &error), 0);
	assert_int_equal(set_read_element("10.0.0.2", 1, 8, &list, &error), -1);
	assert_string_equal(error.text, "more than 10000000 prefixes up to here: divide the set");
	assert_int_equal(error.line, 8);
	set_list_free(&list);
}

/* ---- words ---- */

static void test_nothing_learnt(void **unused)
{
	char buf[SET_WORD_TEXT];

	(void)unused;
	assert_string_equal(set_word_text(7, buf, sizeof(buf)), "value(#00000007)");
	assert_null(set_word_set(7));
}

/* A word without its text is shown as a number; it is learnt when it is met again. */
static void test_words(void **unused)
{
	char number[SET_WORD_TEXT], buf[SET_WORD_TEXT];
	struct set_names names = {NULL, 0, NULL, 0};
	static const char *const two[] = {"n6491", "a", "b", "c", "d", "e", "n108207"};
	struct set_about of = {"geo", &names, 0};
	const char *one = NULL, *other = NULL;
	size_t n;

	(void)unused;
	snprintf(number, sizeof(number), "value(#%08x)", set_word_of("geo", "AA"));
	for (uint32_t i = 1;; i++) {
		starved_from(i, false);
		memory.on = true;
		set_words_learn("geo", "AA");
		memory.on = false;
		if (memory.n < i)
			break;
		assert_string_equal(set_word_text(set_word_of("geo", "AA"), buf, sizeof(buf)),
				    number);
		assert_null(set_word_set(set_word_of("geo", "AA")));
	}
	assert_string_equal(set_word_text(set_word_of("geo", "AA"), buf, sizeof(buf)),
			    "value(geo, AA)");
	assert_string_equal(set_word_set(set_word_of("geo", "AA")), "geo");
	for (int i = 0; i < 2000; i++) { /* more than there are places for at first */
		char value[16];

		snprintf(value, sizeof(value), "n%d", i);
		starved_from(1, i % 7 == 0);
		memory.on = true;
		set_words_learn("geo", value);
		memory.on = false;
		set_words_learn("geo", value);
	}
	for (int i = 0; i < 2000; i++) {
		char value[16], want[SET_WORD_TEXT];

		snprintf(value, sizeof(value), "n%d", i);
		snprintf(want, sizeof(want), "value(geo, %s)", value);
		n = 0;
		assert_string_equal(set_word_text(set_word_of("geo", value), buf, sizeof(buf)),
				    want);
		assert_int_equal(set_word_read(want, &n), set_word_of("geo", value));
	}
	assert_null(set_word_set(0));
	assert_string_equal(set_word_text(0, buf, sizeof(buf)), "value(#00000000)");
	/* Never 0, which would be none. */
	assert_int_equal(set_word_of("geo", "zkuhmequ"), 1);
	/* Two of one word, found by search; without memory for the search none are. */
	for (size_t i = 0; i < ARRAY(two); i++)
		assert_true(set_names_add(&names, (struct set_word){two[i], strlen(two[i])}) > 0);
	assert_int_equal(set_word_of("geo", "n6491"), set_word_of("geo", "n108207"));
	assert_true(set_words_clash(&of, &one, &other));
	assert_true(!strcmp(one, "n6491") ? !strcmp(other, "n108207")
					  : !strcmp(other, "n6491") && !strcmp(one, "n108207"));
	starved_from(1, true);
	memory.on = true;
	assert_false(set_words_clash(&of, &one, &other));
	memory.on = false;
	of.set = "drop";
	assert_false(set_words_clash(&of, &one, &other));
	set_names_free(&names);
}

static void test_words_that_are_none(void **unused)
{
	static const char *const none[] = {
	    "value(",	       "value(geo",	   "valu(geo, A)",     "value(geo)",
	    "value(, A)",      "value(geo,)",	   "value(geo, )",     "value(#12345678",
	    "value(#1234567)", "value(#00000000)", "value(#1234567x)", "value(#123456789)",
	    "value(geo), A)",
	};
	static const char of_two[] = "value(geo, A)b) src";
	char text[200];
	size_t n = 0;

	(void)unused;
	for (size_t i = 0; i < ARRAY(none); i++) {
		assert_int_equal(set_word_read(none[i], &n), 0);
		assert_int_equal(n, 0);
	}
	/* A ")" may be within a value. */
	assert_int_equal(set_word_read(of_two, &n), set_word_of("geo", "A"));
	assert_int_equal(n, strlen("value(geo, A)"));
	assert_int_equal(set_word_read(of_two, &n), set_word_of("geo", "A)b"));
	assert_int_equal(n, strlen("value(geo, A)b)"));
	assert_int_equal(set_word_read(of_two, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(set_word_read("value(#0000000f))", &n), 15);
	assert_int_equal(n, strlen("value(#0000000f)"));
	assert_int_equal(set_word_read("value(#0000000f))", &n), 0);
	assert_int_equal(n, 0);
	/* What it names is not cut, and may be as long as a name. */
	snprintf(text, sizeof(text), "value(geo, %s%063d)", "     ", 1);
	assert_int_not_equal(set_word_read(text, &n), 0);
	assert_int_equal(n, strlen(text));
	n = 0;
	snprintf(text, sizeof(text), "value(geo, %064d)", 1);
	assert_int_equal(set_word_read(text, &n), 0);
	snprintf(text, sizeof(text), "value(%064d, A)", 1);
	assert_int_equal(set_word_read(text, &n), 0);
}

/* ---- what is damaged ---- */

static int take(const struct set_lines *lines, uint32_t n)
{
	struct set_names names = {NULL, 0, NULL, 0};
	int result = set_words_take(lines, &names);

	if (!result)
		assert_int_equal(names.n, n);
	else
		assert_int_equal(errno, EBADMSG);
	set_names_free(&names);
	return result;
}

static void test_damaged_texts(void **unused)
{
	struct set_names names = {NULL, 0, NULL, 0};
	struct set_lines lines;
	uint32_t *first, was;
	char *at;

	(void)unused;
	list = (struct set_list){0};
	add("10.0.0.0/8", 1);
	add("10.1.0.0/16", 2);
	set_sorted(&list);
	assert_int_equal(set_names_add(&names, (struct set_word){"XY", 2}), 1);
	assert_int_equal(set_names_add(&names, (struct set_word){"ZZ", 2}), 2);
	about = (struct set_about){"geo", &names, 1};
	assert_int_equal(set_build(&list, 1, &lines), 0);
	assert_int_equal(set_words_put(&lines, &about), 0);
	assert_int_equal(take(&lines, 2), 0);
	first = (uint32_t *)&lines.line[lines.n] - 1;
	was = *first;
	*first = 0;
	assert_int_equal(take(&lines, 0), -1);
	*first = lines.n;
	assert_int_equal(take(&lines, 0), -1);
	*first = was;
	at = (char *)&lines.line[was];
	assert_string_equal(at + 4, "XY");
	at[0] = 3; /* one more than there are */
	assert_int_equal(take(&lines, 0), -1);
	at[0] = 2;
	at[4] = 0; /* an empty one */
	assert_int_equal(take(&lines, 0), -1);
	memset(at + 4, 'x', 56); /* up to the end of all */
	assert_int_equal(take(&lines, 0), -1);
	at[0] = 0;
	assert_int_equal(take(&lines, 0), 0);
	lines.line->head.flags &= (uint8_t)~PACER_SET_NAMED;
	assert_int_equal(take(&lines, 0), 0);
	set_lines_free(&lines);
	set_list_free(&list);
	/* Longer than a name may be: of many lines. */
	names.n = 0;
	free(names.name[0]);
	names.name[0] = malloc(200);
	memset(names.name[0], 'x', 199);
	names.name[0][199] = 0;
	names.n = 1;
	add("10.0.0.0/8", 1);
	assert_int_equal(set_build(&list, 1, &lines), 0);
	assert_int_equal(set_words_put_texts(&lines, &names), 0);
	assert_int_equal(take(&lines, 0), -1);
	set_lines_free(&lines);
	set_list_free(&list);
	free(names.name[1]);
	set_names_free(&names);
}

/* What was added by hand with a value whose text is not there has none. */
static void test_damaged_hand(void **unused)
{
	struct set_entry ten = {0x0a00000000000000ull, 0, 0, 1, 4, 8};
	struct set_hand back = {.n = 0};
	struct set_list numbered;
	struct set_lines lines;

	(void)unused;
	hand = (struct set_hand){.n = 0};
	assert_int_equal(set_hand_add_named(&hand, &ten, SET_HAND_STAYS, "XY"), 0);
	assert_int_equal(set_hand_list(&hand, &numbered), 0);
	assert_int_equal(set_hand_build(&hand, &numbered, 7, &lines), 0);
	lines.line[lines.line->head.ends].end[0].text = 2;
	assert_int_equal(set_hand_take(&lines, &numbered, &back), 0);
	assert_true(back.n == 1 && !set_hand_value(&back, &back.entry[0]));
	set_lines_free(&lines);
	set_list_free(&numbered);
	set_hand_free(&back);
	set_hand_free(&hand);
}

/* A number that goes on and on, and one that ends before its end. */
static void test_damaged_list(void **unused)
{
	uint8_t byte[40];

	(void)unused;
	list = (struct set_list){0};
	memset(byte, 0xff, sizeof(byte));
	for (size_t n = 1; n <= sizeof(byte); n++) {
		assert_int_equal(set_unpack(byte, n, &list), -1);
		assert_int_equal(errno, EBADMSG);
	}
	assert_int_equal(list.n, 0);
	set_list_free(&list);
}

/*
 * Bytes that no list is packed to: of no family, of no value, with a length, a value or a number
 * that is too large, or bits of an IPv6 address in one of IPv4. Who restores a damaged state is
 * told so, and does not get a set of other prefixes than were saved.
 */
static void test_damaged_entries(void **unused)
{
	static const struct {
		uint8_t byte[5];
		size_t n;
	} rows[] = {
	    {{0}, 1},
	    {{1, 0x40}, 2},
	    {{2, 1}, 2},
	    {{3, 0x40, 0}, 3},
	    {{3, 0x42, 1}, 3},
	    {{3, 0x83, 0x02, 1}, 4},
	    {{3, 0x40, 0xff, 0xff, 0x7f}, 5},
	};
	static const uint8_t whole[] = {3, 0x40, 1}; /* 0.0.0.0/32, of the first value */

	(void)unused;
	list = (struct set_list){0};
	for (size_t i = 0; i < ARRAY(rows); i++) {
		errno = 0;
		if (set_unpack(rows[i].byte, rows[i].n, &list) != -1 || errno != EBADMSG || list.n)
			fail_msg("row %zu: %s, %zu prefixes", i, strerror(errno), (size_t)list.n);
	}
	assert_int_equal(set_unpack(whole, sizeof(whole), &list), 0);
	assert_int_equal(list.n, 1);
	assert_true(list.entry[0].family == 4 && list.entry[0].len == 32 &&
		    list.entry[0].value == 1);
	set_list_free(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_nothing_learnt), cmocka_unit_test(test_reading),
	    cmocka_unit_test(test_host_bits),	   cmocka_unit_test(test_a_policys),
	    cmocka_unit_test(test_building),	   cmocka_unit_test(test_mappings),
	    cmocka_unit_test(test_mappings_drawn), cmocka_unit_test(test_mappings_of_texts),
	    cmocka_unit_test(test_packing),	   cmocka_unit_test(test_bounds),
	    cmocka_unit_test(test_words),	   cmocka_unit_test(test_words_that_are_none),
	    cmocka_unit_test(test_damaged_texts),  cmocka_unit_test(test_damaged_list),
	    cmocka_unit_test(test_damaged_hand),   cmocka_unit_test(test_damaged_entries),
	    cmocka_unit_test(test_no_such_value),  cmocka_unit_test(test_a_pipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
