/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * JSON whose strings or numbers are longer than what is kept for when memory runs out: it is read
 * whole, or not at all, whichever allocation fails, and nothing is written where it should not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fleet/json.h"
#include "starved.h"

#define LONG ((4u << 20) - 1) /* so that what ends it is one too many */

/* What stands around so many of one letter. */
static const struct {
	const char *before, *after;
	char of;
	bool is; /* JSON */
} rows[] = {
    {"{\"a\":\"", "\"}", 'x', true},
    {"{\"a\":0,\"", "\":1}", 'x', true},
    {"[\"short\",\"", "\",\"short\"]", 'x', true},
    {"[\"", "", 'x', false},
    {"[", "]", '1', false}, /* no number is so large */
};

static char *text;
static size_t len;

static void write_row(size_t i)
{
	size_t before = strlen(rows[i].before);

	memcpy(text, rows[i].before, before);
	memset(text + before, rows[i].of, LONG);
	strcpy(text + before + LONG, rows[i].after);
	len = before + LONG + strlen(rows[i].after);
}

static void test_memory_runs_out(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint32_t n = 0;

		write_row(i);
		for (uint32_t at = 0; at <= 2 * n; at++) {
			json_t *value;

			starved_from((at + 1) / 2, at % 2);
			memory.on = true;
			value = json_read(text, len, 0, NULL);
			memory.on = false;
			n = at ? n : memory.n;
			assert_int_equal(!!value, !at && rows[i].is);
			assert_int_equal(json_lacked(), at != 0);
			json_decref(value);
		}
		assert_in_range(n, 10, 60);
	}
}

/* What failed before is still told, and is no fault of what is read then. */
static void test_what_failed_before_is_told(void **unused)
{
	json_error_t why;
	json_t *value;

	(void)unused;
	memory.on = true;
	starved_from(1, false);
	assert_null(json_object());
	memory.on = false;
	value = json_read("{\"a\":1}", 7, 0, &why);
	assert_int_equal(json_integer_value(json_object_get(value, "a")), 1);
	json_decref(value);
	assert_true(json_lacked());
	assert_null(json_read("{\n\"a\" 1}", 8, 0, &why));
	assert_int_equal(why.line, 2);
	assert_false(json_lacked());
}

/* What takes far more memory than its text is no value. */
static void test_hardly_any_text(void **unused)
{
	static const struct {
		const char *one;
		bool is;
	} of[] = {
	    {"{},", false},
	    {"[],", false},
	    {"0,", false},
	    {"\"\",", false},
	    {"{\"id\":1,\"scope\":\"ip\",\"value\":\"192.0.2.1\"},", true},
	    {"\"0123456789\",", true},
	};
	json_error_t why;

	(void)unused;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		size_t one = strlen(of[i].one), n = LONG / one;
		json_t *value;

		text[0] = '[';
		for (size_t k = 0; k < n; k++)
			memcpy(text + 1 + k * one, of[i].one, one);
		text[n * one] = ']';
		value = json_read(text, n * one + 1, 0, &why);
		assert_int_equal(!!value, of[i].is);
		if (!value) { /* which is no fault in a line */
			assert_string_equal(why.text, "it has more values than text");
			assert_int_equal(why.line, -1);
		}
		assert_false(json_lacked());
		json_decref(value);
	}
	/* a short one may */
	json_decref(json_read("[[],[],[],{},{}]", 16, 0, &why));
	assert_string_equal(why.text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_memory_runs_out),
	    cmocka_unit_test(test_what_failed_before_is_told),
	    cmocka_unit_test(test_hardly_any_text),
	};
	int failed;

	json_count_failures();
	text = malloc(LONG + 100);
	failed = cmocka_run_group_tests_name("json", tests, NULL, NULL);
	free(text);
	return failed;
}
