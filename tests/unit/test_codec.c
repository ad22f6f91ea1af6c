/* SPDX-License-Identifier: GPL-2.0-only */
/* Records as text, and what is no record of ours; how a limit is divided. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "fleet/codec.h"

#define ARRAY(a) (sizeof(a) / sizeof((a)[0]))

/* A record of n members with a limit; each wants and holds so much. */
static void make(struct fleet_record *r, uint64_t limit, uint32_t n, const uint64_t *want,
		 const uint64_t *held)
{
	memset(r, 0, sizeof(*r));
	r->memory_ns = 1000;
	for (uint32_t i = 0; i < n; i++) {
		struct fleet_slot *slot = fleet_add_slot(r, n - i); /* put in order */

		slot->session = 100 + n - i;
		slot->limit = limit;
	}
	for (uint32_t i = 0; i < n; i++) {
		r->slot[i].cell[0].want = want[i];
		r->slot[i].cell[0].held = held[i];
	}
}

static void test_there_and_back(void **state)
{
	struct fleet_record r, back;
	char why[FLEET_WHY], *text;

	(void)state;
	make(&r, FLEET_UNITS_MAX, 3, (uint64_t[]){1, 2, 3}, (uint64_t[]){4, 5, FLEET_UNITS_MAX});
	strcpy(r.key[2], "192.0.2.1>\"x\"");
	r.slot[1].cell[2] = (struct fleet_cell){7, 8, 9, 11, 10, true};
	r.slot[2].reserve = 5;
	r.slot[1].due = 6;
	text = fleet_write_record(&r);
	assert_int_equal(fleet_read_record(text, strlen(text), &back, why), FLEET_WELL);
	assert_memory_equal(&r, &back, sizeof(r));
	free(text);
}

static void test_items(void **state)
{
	static const char *const strange[] = {
	    "",
	    "{}",
	    "[]",
	    "{\"is\":\"item\",\"v\":1}",
	    "{\"is\":\"item\",\"v\":\"1\",\"left_ms\":5}",
	    "{\"is\":\"item\",\"v\":2,\"left_ms\":5}",
	    "{\"is\":\"limit\",\"v\":1,\"left_ms\":5}",
	    "{\"is\":\"item\",\"v\":1,\"left_ms\":-5}",
	    "{\"is\":\"item\",\"v\":1,\"left_ms\":5,\"more\":1}",
	    "{\"is\":\"item\",\"v\":1,\"left_ms\":5,\"left_ms\":6}",
	    "{\"is\":\"item\",\"v\":1,\"left_ms\":9223372036854775807}",
	    "{\"is\":\"item\",\"v\":1,\"lies_ms\":5}",
	    "{\"is\":\"item\",\"v\":1,\"left_ms\":5,\"lies_ms\":5}",
	    "{\"is\":\"item\",\"v\":1,\"left_ms\":0,\"lies_ms\":0}",
	    "{\"is\":\"item\",\"v\":1,\"left_ms\":null,\"lies_ms\":5}",
	    "{\"is\":\"item\",\"v\":1,\"left_ms\":5,\"lies_ms\":\"6\"}",
	    "{\"is\":\"item\",\"v\":1,\"left_ms\":5,\"lies_ms\":6,\"more\":1}",
	    "{\"is\":\"item\",\"v\":1,\"left_ms\":5,\"lies_ms\":9223372036854775807}"};
	const struct shared_word words[] = {{.left_ns = 0},
					    {.left_ns = 5000000},
					    {.left_ns = 86400000000000},
					    {.left_ns = 4611686018427000000},
					    {.left_ns = SHARED_NEVER},
					    {.left_ns = 0, .lies_ns = 3600000000000},
					    {.left_ns = 5000000, .lies_ns = 3600000000000}};
	struct shared_word back;

	(void)state;
	for (size_t i = 0; i < ARRAY(words); i++) {
		char *text = fleet_write_item(&words[i]);

		assert_null(fleet_read_item(text, strlen(text), &back));
		assert_memory_equal(&back, &words[i], sizeof(back));
		free(text);
	}
	for (size_t i = 0; i < ARRAY(strange); i++)
		assert_non_null(fleet_read_item(strange[i], strlen(strange[i]), &back));
}

#define LONGEST "123456789012345678901234567890123456789012345678901234567890123" /* 63 */

static void assert_back(const char *text, enum shared_by by, uint64_t left_ns, uint64_t lies_ns)
{
	struct shared_word word = {{.by = by}, left_ns, lies_ns}, back;
	char *written;

	strcpy(word.value.text, text);
	assert_true(fleet_fits(text));
	written = fleet_write_item(&word);
	assert_null(fleet_read_item(written, strlen(written), &back));
	assert_memory_equal(&word, &back, sizeof(word));
	free(written);
}

/* What a value is not: why, and nothing of it is taken. */
static void assert_refused(const char *fields, const char *why)
{
	struct shared_word word;
	char text[256];
	const char *said;

	snprintf(text, sizeof(text), "{\"is\":\"item\",\"v\":1,%s}", fields);
	said = fleet_read_item(text, strlen(text), &word);
	assert_non_null(said);
	assert_non_null(strstr(said, why));
	assert_string_equal(word.value.text, "");
	assert_int_equal(word.value.by, SHARED_PLAIN);
}

static void test_values(void **state)
{
	const struct shared_word lifted = {.value = {"XY", SHARED_BY_HAND}};
	struct shared_word word;
	char *text;

	(void)state;
	assert_back("XY", SHARED_BY_FILE, SHARED_NEVER, 0);
	assert_back("a \"b\" \\ c", SHARED_BY_CHANGE, SHARED_NEVER, 0);
	assert_back("\xc3\xa9", SHARED_BY_HAND, 5000000, 0);
	assert_back("\xc3\xa9", SHARED_BY_HAND, 5000000, 6000000);
	assert_back("", SHARED_BY_HAND, SHARED_NEVER, 0);
	assert_back(LONGEST, SHARED_BY_HAND, SHARED_NEVER, 0);
	assert_true(fleet_fits(""));
	assert_true(fleet_fits("a b"));
	assert_false(fleet_fits(" a")); /* no file has such a name, and no key is read so */
	assert_false(fleet_fits("a "));
	assert_false(fleet_fits(LONGEST "4"));
	assert_false(fleet_fits("a\x1b[2J"));
	assert_false(fleet_fits("\x7f"));
	assert_false(fleet_fits("\xc2\x9b[2J")); /* the same for some terminals */
	assert_false(fleet_fits("\xe9"));	 /* Latin-1 */
	text = fleet_write_item(&lifted);
	assert_null(fleet_read_item(text, strlen(text), &word));
	assert_int_equal(word.value.by, SHARED_PLAIN);
	free(text);
	assert_refused("\"left_ms\":5,\"value\":\"XY\",\"by\":\"hand\",\"more\":1", "fields");
	assert_refused("\"left_ms\":5,\"value\":\"" LONGEST "4\",\"by\":\"hand\"", "63 bytes");
	assert_refused("\"left_ms\":5,\"value\":7,\"by\":\"hand\"", "fields");
	assert_refused("\"left_ms\":5,\"value\":\"XY\"", "fields");
	assert_refused("\"left_ms\":5,\"value\":\"XY\",\"by\":7", "fields");
	assert_refused("\"left_ms\":5,\"value\":\"XY\",\"more\":\"hand\"", "fields");
	assert_refused("\"left_ms\":5,\"value\":\"X\\u0007\",\"by\":\"hand\"", "control");
	assert_refused("\"left_ms\":5,\"value\":\"XY\",\"by\":\"me\"", "not possible");
	assert_refused("\"left_ms\":5,\"value\":\"XY\",\"by\":\"\"", "not possible");
	assert_refused("\"left_ms\":5,\"value\":\"XY\",\"by\":\"file\"", "not possible");
	assert_refused("\"left_ms\":null,\"value\":\"\",\"by\":\"change\"", "not possible");
	assert_refused("\"left_ms\":0,\"value\":\"XY\",\"by\":\"hand\"", "not possible");
}

static size_t asked, failing;

static void *starved(size_t size)
{
	return asked++ == failing ? NULL : malloc(size);
}

/* No memory is no record, never one that lacks a member: its units would be forgotten. */
static void test_no_memory(void **state)
{
	const struct shared_word word = {{"XY", SHARED_BY_HAND}, 5000000, 6000000};
	struct fleet_record r;
	char *whole, *text = NULL;
	size_t n;

	(void)state;
	make(&r, 9, 3, (uint64_t[]){1, 2, 3}, (uint64_t[]){4, 5, 6});
	strcpy(r.key[2], "192.0.2.1");
	r.slot[1].cell[2] = (struct fleet_cell){7, 8, 9, 11, 10, true};
	whole = fleet_write_record(&r);
	json_set_alloc_funcs(starved, free);
	for (n = 0; !text; n++) { /* once, and then there is some again */
		asked = 0;
		failing = n;
		text = fleet_write_record(&r);
	}
	json_set_alloc_funcs(malloc, free);
	assert_true(n > 50 && asked == n - 1);
	assert_string_equal(text, whole);
	free(text);
	failing = 0;
	asked = 0;
	json_set_alloc_funcs(starved, free);
	assert_null(fleet_write_session(&(struct fleet_token){5, "boot", 7}));
	json_set_alloc_funcs(malloc, free);
	free(whole);
	whole = fleet_write_item(&word);
	text = NULL;
	json_set_alloc_funcs(starved, free);
	for (n = 0; !text; n++) {
		asked = 0;
		failing = n;
		text = fleet_write_item(&word);
	}
	json_set_alloc_funcs(malloc, free);
	assert_true(n > 9 && asked == n - 1);
	assert_string_equal(text, whole);
	free(text);
	free(whole);
}

#define LONG_KEY                                                                                   \
	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" \
	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define MEMBER(id, held) "[" id ",7,9,0,[0," held ",0,0,0]]"
#define RECORD(v, keys, members)                                                                  \
	"{\"is\":\"limit\",\"v\":" v ",\"memory_ns\":5,\"keys\":[" keys "],\"members\":[" members \
	"]}"

static const struct {
	const char *text;
	enum fleet_trouble trouble;
	const char *why;
} wrong[] = {
    {RECORD("1", "", ""), FLEET_WELL, NULL},
    {RECORD("1", "", MEMBER("1", "3")), FLEET_WELL, NULL},
    {"", FLEET_STRANGE, "it is no record of a limit"},
    {"hello", FLEET_STRANGE, "it is no record of a limit"},
    {"[]", FLEET_STRANGE, "it is no record of a limit"},
    {"{\"is\":\"member\",\"v\":1}", FLEET_STRANGE, "it is no record of a limit"},
    {"{\"is\":\"limit\"}", FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("2", "", ""), FLEET_OTHER_VERSION, "it is of version 2, and this is version 1"},
    {RECORD("\"1\"", "", ""), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "", MEMBER("1", "-1")), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "", MEMBER("1", "1.5")), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "", MEMBER("1", "281474976710656")), FLEET_UNSOUND,
     "it has a share that is too large"},
    {RECORD("1", "", MEMBER("1", "3") "," MEMBER("1", "3")), FLEET_UNSOUND,
     "it has a member twice"},
    {RECORD("1", "", MEMBER("0", "3")), FLEET_UNSOUND, "it has a session of nobody"},
    {RECORD("1", "", "[1,7,9,5,[0,3,0,0,0]]"), FLEET_UNSOUND, "it has a share below its reserve"},
    {RECORD("1", "", "[1,7,9,0]"), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "", "[1,7,9,0,[1,3,0,0,0]]"), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "", "[1,7,9,0,[0,3,0,0,0],[0,3,0,0,0]]"), FLEET_STRANGE,
     "it is no record of a limit"},
    {RECORD("1", "", "[1,7,9,0,[0,3,1,5,0,4]]"), FLEET_WELL, NULL},
    {RECORD("1", "", "[1,7,9,0,2,[0,3,0,0,0]]"), FLEET_WELL, NULL},
    {RECORD("1", "", "[1,7,9,0,-2,[0,3,0,0,0]]"), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "", "[1,7,9,0,2,2,[0,3,0,0,0]]"), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "", "[1,7,9,0,[0,3,1,5,0,-4]]"), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "", "[1,7,9,0,[0,3,0,0,0,0,0]]"), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "", "{\"id\":1}"), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "[0,\"x\"]", ""), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "[1,\"\"]", ""), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "", "[1,7,9,0,[\"0\",3,0,0,0]]"), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "", "[1,7,9,0,[9,3,0,0,0]]"), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "", "[1,7,9,0,[0,\"3\",0,0,0]]"), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "", "[1,7,9,0,[0,3,\"0\",0,0]]"), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "", "[1,7,9,0,[0,3,0,\"0\",0]]"), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "", "[1,7,9,0,[0,3,0,0,\"0\"]]"), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "", "[null,7,9,0,[0,3,0,0,0]]"), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "", "[1,null,9,0,[0,3,0,0,0]]"), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "", "[1,7,null,0,[0,3,0,0,0]]"), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "", "[1,7,9,null,[0,3,0,0,0]]"), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "[1,\"x\",\"y\"]", ""), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "[1,7]", ""), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "[\"1\",\"x\"]", ""), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "[9,\"x\"]", ""), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "[1,\"x\"],[1,\"y\"]", ""), FLEET_STRANGE, "it is no record of a limit"},
    {RECORD("1", "[1,\"" LONG_KEY "\"]", ""), FLEET_STRANGE, "it is no record of a limit"},
    {"{\"is\":\"limit\",\"v\":1,\"memory_ns\":\"5\",\"keys\":[],\"members\":[]}", FLEET_STRANGE,
     "it is no record of a limit"},
    {"{\"is\":\"limit\",\"v\":1,\"memory_ns\":5,\"keys\":7,\"members\":[]}", FLEET_STRANGE,
     "it is no record of a limit"},
    {"{\"is\":\"limit\",\"v\":1,\"memory_ns\":5,\"keys\":[],\"members\":7}", FLEET_STRANGE,
     "it is no record of a limit"},
    {"{\"is\":\"limit\",\"v\":1,\"memory_ns\":5,\"keys\":[],\"more\":[]}", FLEET_STRANGE,
     "it is no record of a limit"},
    {RECORD("1", "", "[1,7,281474976710656,0,[0,3,0,0,0]]"), FLEET_UNSOUND,
     "it has a limit that is too large"},
    {RECORD("1", "", "[1,7,9,281474976710656,[0,3,0,0,0]]"), FLEET_UNSOUND,
     "it has a limit that is too large"},
    {RECORD("1", "", "[1,7,9,0,281474976710656,[0,3,0,0,0]]"), FLEET_UNSOUND,
     "it has a limit that is too large"},
    {RECORD("1", "", "[1,7,9,0,[0,3,281474976710656,0,0]]"), FLEET_UNSOUND,
     "it has a share that is too large"},
    {RECORD("1", "", "[1,7,9,0,[0,3,0,0,281474976710656]]"), FLEET_UNSOUND,
     "it has a share that is too large"},
    {RECORD("1", "", "[1,7,9,0,[0,3,0,9223372036854775807,0]]"), FLEET_UNSOUND,
     "it has a share that is too large"},
    {RECORD("1", "", "[1,7,9,0,[0,3,0,0,0],[1,3,0,0,0]]"), FLEET_UNSOUND,
     "it has a share of no key"},
    {RECORD("1", "", "[1,7,9,0,[0,3,0,0,281474976710656]]," MEMBER("2", "3")), FLEET_UNSOUND,
     "it has a share that is too large"},
    {"{\"is\":\"limit\",\"v\":1,\"memory_ns\":9223372036854775807,\"keys\":[],\"members\":[]}",
     FLEET_UNSOUND, "its window is out of range"},
    {RECORD("1", "", MEMBER("2", "3") "," MEMBER("1", "3")), FLEET_WELL, NULL},
    {"{\"is\":\"limit\",\"v\":1,\"memory_ns\":0,\"keys\":[],\"members\":[]}", FLEET_UNSOUND,
     "its window is out of range"},
    {"{\"is\":\"limit\",\"v\":1,\"memory_ns\":5,\"keys\":[],\"members\":[],\"new\":1}",
     FLEET_STRANGE, "it is no record of a limit"},
};

static void test_wrong(void **state)
{
	struct fleet_record r, none = {0};
	char why[FLEET_WHY];

	(void)state;
	for (size_t i = 0; i < ARRAY(wrong); i++) {
		enum fleet_trouble trouble =
		    fleet_read_record(wrong[i].text, strlen(wrong[i].text), &r, why);

		assert_int_equal(trouble, wrong[i].trouble);
		if (!wrong[i].why)
			continue;
		assert_string_equal(why, wrong[i].why);
		assert_memory_equal(&r, &none, sizeof(r));
	}
}

/* Of each power of two as much as leaves half of what is not kept for those that are gone. */
static void test_reserve(void **state)
{
	static const uint64_t none[40];
	static struct fleet_record r;

	(void)state;
	make(&r, 1600, 0, NULL, NULL);
	assert_int_equal(fleet_reserve_most(&r), UINT64_MAX);
	for (size_t n = 1; n <= 40; n++) {
		make(&r, 1600, n, none, none);
		assert_int_equal(fleet_reserve_most(&r), n == 1	   ? 800
							 : n == 2  ? 400
							 : n <= 4  ? 200
							 : n <= 8  ? 100
							 : n <= 16 ? 50
							 : n <= 32 ? 25
								   : 12);
	}
	make(&r, 79, 40, none, none);
	assert_int_equal(fleet_reserve_most(&r), 0);
	make(&r, 1600, 8, none, none);
	r.slot[0].reserve = r.slot[1].reserve =
	    100; /* 100 is kept for one that is gone: 7 have as much */
	r.slot[0].due = 200;
	fleet_end_session(&r, &r.slot[0]);
	assert_true(!r.slot[0].session && !r.slot[0].due && r.slot[0].reserve == 100);
	assert_int_equal(fleet_reserve_most(&r), 100);
	r.slot[0].reserve = 201; /* 7 times 100 are more than half of the rest */
	assert_int_equal(fleet_reserve_most(&r), 50);
	r.slot[0].reserve = 1601;
	assert_int_equal(fleet_reserve_most(&r), 0);
}

/* A record of members whose cells cool for so long, by the names that are their numbers. */
static void make_cool(struct fleet_record *r, uint64_t left_ns, size_t n, const uint64_t *ids)
{
	memset(r, 0, sizeof(*r));
	r->memory_ns = 1000;
	for (size_t i = 0; i < n; i++)
		fleet_add_slot(r, ids[i])->cell[0] =
		    (struct fleet_cell){.cool = 5, .left_ns = left_ns, .since = ids[i]};
}

/* What cools by the same name is known since it was read first, whoever came and went meanwhile. */
static void test_take(void **state)
{
	static struct fleet_record known, read, expected;

	(void)state;
	make_cool(&known, 900, 5, (uint64_t[]){0, 2, 4, 6, 8});
	make_cool(&read, 850, 6, (uint64_t[]){1, 2, 3, 4, 8, 9});
	read.slot[3].cell[0].since = 5; /* it cools anew, as many */
	read.slot[5].cell[0].since = 0;
	fleet_copy(&expected, &read);
	expected.slot[1].cell[0].left_ns = expected.slot[4].cell[0].left_ns = 700;
	fleet_take(&known, &read, 200);
	assert_memory_equal(&known, &expected, sizeof(known));
	make_cool(&read, 100, 2, (uint64_t[]){2, 9});
	read.slot[1].cell[0].since = 0;
	fleet_copy(&expected, &read);
	fleet_take(&known, &read, 200); /* what it says itself is less */
	assert_memory_equal(&known, &expected, sizeof(known));
	make_cool(&read, 90, 2, (uint64_t[]){2, 9});
	fleet_take(&known, &read, 200); /* and without a name nothing is the same */
	assert_int_equal(known.slot[0].cell[0].left_ns, 0);
	assert_int_equal(known.slot[1].cell[0].left_ns, 90);
}

/* What is given up while something cools begins to cool anew, all of it, by a new name. */
static void test_names(void **state)
{
	static struct fleet_record r;
	struct fleet_cell *c = &r.slot[0].cell[0];

	(void)state;
	make_cool(&r, 90, 1, (uint64_t[]){2});
	c->held = 4;
	fleet_name(&r, 7);
	assert_int_equal(c->since, 2);
	fleet_lower(&r, &r.slot[0], 0, 3, UINT64_MAX);
	assert_true(c->cool == 6 && c->left_ns == 1000 && c->since == 0);
	fleet_name(&r, 7);
	assert_int_equal(c->since, 7);
	fleet_age(&r, 1000);
	assert_true(!c->cool && !c->since);
}

/* As many as there may be, each with all lanes: etcd takes a request of 1.5 MiB. One more is
 * refused. */
static void test_full(void **state)
{
	static struct fleet_record r, back;
	char why[FLEET_WHY], *text;
	json_t *all, *members, *cells;

	(void)state;
	r.memory_ns = FLEET_MEMORY_MAX;
	for (uint32_t k = 1; k < FLEET_LANES_MAX; k++)
		memset(r.key[k], 'x', FLEET_KEY_TEXT - 1);
	for (uint64_t i = 0; i < FLEET_MEMBERS_MAX; i++) {
		struct fleet_slot *slot = fleet_add_slot(&r, INT64_MAX - FLEET_MEMBERS_MAX + i);

		slot->session = INT64_MAX;
		slot->limit = FLEET_UNITS_MAX;
		for (uint32_t k = 0; k < FLEET_LANES_MAX; k++)
			slot->cell[k] =
			    (struct fleet_cell){FLEET_UNITS_MAX, FLEET_UNITS_MAX, FLEET_MEMORY_MAX,
						INT64_MAX,	 FLEET_UNITS_MAX, k != 0};
	}
	text = fleet_write_record(&r);
	assert_true(strlen(text) < 1000000);
	assert_int_equal(fleet_read_record(text, strlen(text), &back, why), FLEET_WELL);
	assert_memory_equal(&r, &back, sizeof(r));
	assert_int_equal(fleet_sum(&r, 0), 2 * FLEET_MEMBERS_MAX * FLEET_UNITS_MAX);
	r.slots++;
	assert_string_equal(fleet_unsound(&r), "it has too many members");
	all = json_loads(text, 0, NULL);
	members = json_object_get(all, "members");
	/* The last cell of the last member is of a lane that there is not. */
	cells = json_array_get(members, FLEET_MEMBERS_MAX - 1);
	cells = json_array_get(cells, json_array_size(cells) - 1);
	assert_int_equal(json_integer_value(json_array_get(cells, 0)), FLEET_LANES_MAX - 1);
	json_integer_set(json_array_get(cells, 0), FLEET_LANES_MAX);
	free(text);
	text = json_dumps(all, JSON_COMPACT);
	assert_int_equal(fleet_read_record(text, strlen(text), &back, why), FLEET_STRANGE);
	json_integer_set(json_array_get(cells, 0), FLEET_LANES_MAX - 1);
	json_array_append(members, json_array_get(members, 0));
	free(text);
	text = json_dumps(all, JSON_COMPACT);
	assert_int_equal(fleet_read_record(text, strlen(text), &back, why), FLEET_STRANGE);
	json_decref(all);
	free(text);
}

static void test_session(void **state)
{
	static const char *const others[] = {"{\"v\":2,\"id\":5,\"boot\":\"boot\",\"datapath\":7}",
					     "{\"id\":5,\"boot\":\"boot\",\"datapath\":7}",
					     "{\"v\":1,\"boot\":\"boot\",\"datapath\":7}",
					     "{\"v\":1,\"id\":5,\"datapath\":7}",
					     "{\"v\":1,\"id\":5,\"boot\":\"boot\"}"};
	struct fleet_token token = {5, "boot", 7}, other;
	char *text = fleet_write_session(&token);

	(void)state;
	assert_true(fleet_is_session_of(text, strlen(text), &token));
	other = (struct fleet_token){6, "boot", 7};
	assert_false(fleet_is_session_of(text, strlen(text), &other));
	other = (struct fleet_token){5, "reboot", 7};
	assert_false(fleet_is_session_of(text, strlen(text), &other));
	other = (struct fleet_token){5, "boot", 8};
	assert_false(fleet_is_session_of(text, strlen(text), &other));
	assert_false(fleet_is_session_of("x", 1, &token));
	for (size_t i = 0; i < ARRAY(others); i++)
		assert_false(fleet_is_session_of(others[i], strlen(others[i]), &token));
	free(text);
}

/* Max-min: who wants less than his part gets it, and the others share the rest. */
static const struct {
	uint64_t limit, want[4], goal[4];
} divided[] = {
    {12, {9, 9, 9, 9}, {3, 3, 3, 3}},
    {14, {9, 9, 9, 9}, {4, 4, 3, 3}},
    {12, {1, 9, 9, 9}, {1, 4, 4, 3}},
    {12, {12, 0, 0, 0}, {12, 0, 0, 0}},
    {12, {12, 1, 0, 2}, {9, 1, 0, 2}},
    {12, {0, 0, 0, 0}, {3, 3, 3, 3}},
    {12, {1, 1, 1, 1}, {3, 3, 3, 3}},
    {2, {9, 9, 9, 9}, {1, 1, 0, 0}},
    {100, {60, 30, 5, 60}, {33, 30, 5, 32}},
    /* Fewer units than members: who needs most has them, and of those who need the same the first.
     */
    {3, {1, 1, 1, 3}, {1, 1, 0, 1}},
    {1, {1, 1, 2, 1}, {0, 0, 1, 0}},
    {2, {1, 2, 2, 5}, {0, 1, 0, 1}},
    {2, {5, 2, 2, 2}, {1, 1, 0, 0}},
    {3, {0, 0, 0, 3}, {0, 0, 0, 3}},
    {3, {0, 2, 0, 1}, {0, 2, 0, 1}},
    {3, {0, 0, 0, 0}, {1, 1, 1, 0}},
    {1, {0, 1, 1, 1}, {0, 1, 0, 0}},
    {3, {FLEET_UNITS_MAX, 3, 3, 3}, {1, 1, 1, 0}},
    {3, {0, 2, 0, 0}, {1, 2, 0, 0}},
};

static void test_goals(void **state)
{
	struct fleet_record r;

	(void)state;
	for (size_t i = 0; i < ARRAY(divided); i++) {
		make(&r, divided[i].limit, 4, divided[i].want, (uint64_t[4]){0});
		for (int k = 0; k < 4; k++)
			assert_int_equal(fleet_goal(&r, &r.slot[k], 0), divided[i].goal[k]);
	}
	make(&r, 12, 2, (uint64_t[]){9, 9}, (uint64_t[]){0, 0});
	r.slot[0].reserve = 6; /* which is not divided */
	r.slot[1].reserve = 1;
	assert_int_equal(fleet_reserves(&r, false), 7);
	r.slot[0].session = 0;
	assert_int_equal(fleet_reserves(&r, true), 6);
	r.slot[0].session = 1;
	r.slot[1].reserve = 0;
	assert_int_equal(fleet_goal(&r, &r.slot[0], 0), 9);
	assert_int_equal(fleet_goal(&r, &r.slot[1], 0), 3);
}

/* Units are given up only where others lack them, and none are free or on their way. */
static void test_surplus(void **state)
{
	struct fleet_record r;

	(void)state;
	make(&r, 12, 2, (uint64_t[]){12, 12}, (uint64_t[]){12, 0});
	assert_int_equal(fleet_surplus(&r, &r.slot[0], 0), 6);
	assert_int_equal(fleet_surplus(&r, &r.slot[1], 0), 0);
	make(&r, 12, 2, (uint64_t[]){12, 12}, (uint64_t[]){8, 0});
	r.slot[1].cell[0].cool = 4; /* that come, and 2 more are to */
	assert_int_equal(fleet_surplus(&r, &r.slot[0], 0), 2);
	make(&r, 12, 3, (uint64_t[]){12, 12, 0}, (uint64_t[]){10, 0, 0});
	r.slot[2].session = 0; /* who left, and 4 of his cool: so each goal is 4 */
	r.slot[2].cell[0].cool = 4;
	assert_int_equal(fleet_surplus(&r, &r.slot[0], 0), 2); /* no more than is lacking */
	make(&r, 12, 2, (uint64_t[]){12, 12}, (uint64_t[]){12, 0});
	r.slot[1].limit = 8; /* the smaller holds */
	assert_int_equal(fleet_limit(&r), 8);
	assert_int_equal(fleet_surplus(&r, &r.slot[0], 0), 8);
	r.slot[0].limit = 6; /* ... whoever has it */
	assert_int_equal(fleet_limit(&r), 6);
	r.slot[0].session = 0; /* but of those who take part */
	assert_int_equal(fleet_limit(&r), 8);
}

static void test_clocks(void **state)
{
	(void)state;
	assert_int_equal(fleet_surely(1024), 1023);
	assert_int_equal(fleet_surely(1), 0);
	assert_int_equal(fleet_within(10240), 10220);
	for (uint64_t ns = 1; ns < 1ull << 50; ns = ns * 3 + 1)
		assert_true(fleet_surely(fleet_over(ns)) >= ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_items),     cmocka_unit_test(test_values),
	    cmocka_unit_test(test_no_memory), cmocka_unit_test(test_there_and_back),
	    cmocka_unit_test(test_wrong),     cmocka_unit_test(test_session),
	    cmocka_unit_test(test_goals),     cmocka_unit_test(test_surplus),
	    cmocka_unit_test(test_clocks),    cmocka_unit_test(test_take),
	    cmocka_unit_test(test_reserve),   cmocka_unit_test(test_names),
	    cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
