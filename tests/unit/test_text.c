/* SPDX-License-Identifier: GPL-2.0-only */
/* Names that others chose, as a terminal can take them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "config/text.h"

static void test_escape(void **state)
{
	static const struct {
		const char *text, *shown;
	} cases[] = {
	    {"", ""},
	    {"s0", "s0"},
	    {"a \\ '\"`$(b)", "a \\ '\"`$(b)"},
	    {"\033[2J", "\\x1b[2J"},
	    {"a\nb\tc\177", "a\\x0ab\\x09c\\x7f"},
	    {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\xa2",
	     "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\xa2"},
	    {"\xc2\x9b"
	     "2J",
	     "\\xc2\\x9b2J"},				  /* C1's CSI */
	    {"\xff\xfe", "\\xff\\xfe"},			  /* never UTF-8 */
	    {"\xc3", "\\xc3"},				  /* cut off */
	    {"\xc3(", "\\xc3("},			  /* not continued */
	    {"\x80", "\\x80"},				  /* a continuation alone */
	    {"\xc0\xaf", "\\xc0\\xaf"},			  /* longer than it has to be */
	    {"\xe0\x80\xaf", "\\xe0\\x80\\xaf"},	  /* the same */
	    {"\xed\xa0\x80", "\\xed\\xa0\\x80"},	  /* a surrogate */
	    {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, /* beyond the last */
	    {"\xe2\x80\xaegpj", "\\xe2\\x80\\xaegpj"},	  /* right to left from here */
	    {"\xe2\x80\xa8", "\\xe2\\x80\\xa8"},	  /* a line's end */
	    {"\xf0\x9f\x90", "\\xf0\\x9f\\x90"},	  /* cut off */
	    {"\xd8\x9b\xd8\x9c\xd8\x9d", "\xd8\x9b\\xd8\\x9c\xd8\x9d"}, /* marks of direction */
	    {"\xe2\x80\x8d\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\x90",
	     "\xe2\x80\x8d\\xe2\\x80\\x8e\\xe2\\x80\\x8f\xe2\x80\x90"},
	    {"\xe2\x80\xa7\xe2\x80\xaf", "\xe2\x80\xa7\xe2\x80\xaf"}, /* beside them */
	    {"\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa",
	     "\xe2\x81\xa5\\xe2\\x81\\xa6\\xe2\\x81\\xa9\xe2\x81\xaa"},
	};
	char buf[64];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_string_equal(text_escape(cases[i].text, buf, sizeof(buf)), cases[i].shown);
		assert_string_equal(printable(cases[i].text).text, cases[i].shown);
	}
}

/* Whatever the room, the text ends within it, between characters. */
static void test_escape_cuts(void **state)
{
	static const char text[] = "abc\xe2\x82\xac\033xyz";
	static const char *const cut[] = {
	    [4] = "...",
	    [5] = "a...",
	    [6] = "ab...",
	    [7] = "abc...",
	    [9] = "abc...",
	    [10] = "abc\xe2\x82\xac...",
	    [13] = "abc\xe2\x82\xac...",
	    [14] = "abc\xe2\x82\xac\\x1bxyz",
	};
	char buf[16];

	(void)state;
	for (size_t size = 4; size <= 14; size++) {
		for (size_t i = 0; i < sizeof(buf); i++)
			buf[i] = '!';
		text_escape(text, buf, size);
		for (size_t i = size; i < sizeof(buf); i++)
			assert_int_equal(buf[i], '!');
		if (cut[size])
			assert_string_equal(buf, cut[size]);
	}
}

/* No two have the same text: all names of up to four of these. */
static void test_name(void **state)
{
	static const char of[] = {0, '\\', 'x', 'f', '\xff', '\033'};
	static const struct {
		const char *name, *text;
	} cases[] = {
	    {"", ""},
	    {"a\\b\\xff \"\033\n", "a\\b\\xff \"\033\n"},
	    {"caf\xc3\xa9\xe2\x80\xae", "caf\xc3\xa9\xe2\x80\xae"},
	    {"\xff", "bytes:\\xff"},
	    {"\xff\\xff\\\033g", "bytes:\\xff\\x5cxff\\x5c\\x1bg"},
	    {"\xff\xff\xff", "bytes:\\xff\\xff\\xff"},
	};
	enum { OF = sizeof(of), ALL = OF * OF * OF * OF };
	static char is[ALL][5], text[ALL][TEXT_NAME(4)];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char buf[64];

		assert_string_equal(text_name(cases[i].name, buf, sizeof(buf)), cases[i].text);
	}
	for (size_t i = 0; i < ALL; i++) {
		char buf[TEXT_NAME(4)];

		is[i][0] = of[i % OF];
		is[i][1] = of[i / OF % OF];
		is[i][2] = of[i / OF / OF % OF];
		is[i][3] = of[i / OF / OF / OF];
		strcpy(text[i], text_name(is[i], buf, sizeof(buf)));
		assert_true(text_is_utf8(text[i]));
		for (size_t k = 0; k < i; k++)
			assert_int_equal(!strcmp(text[i], text[k]), !strcmp(is[i], is[k]));
	}
}

static void test_is_utf8(void **state)
{
	(void)state;
	assert_true(text_is_utf8(""));
	assert_true(text_is_utf8("caf\xc3\xa9\033\n"));
	assert_false(text_is_utf8("caf\xe9"));
	assert_false(text_is_utf8("\xed\xa0\x80"));
	assert_false(text_is_utf8("\xf8\x88\x80\x80\x80"));
}

static void test_others(void **state)
{
	static const char *const names[] = {"eth0", "eth1", "eth2", "eth3"};
	char buf[32], little[8];

	(void)state;
	assert_string_equal(text_others(names, 1, "eth0", buf, sizeof(buf)), "");
	assert_string_equal(text_others(names, 2, "eth1", buf, sizeof(buf)), "eth0");
	assert_string_equal(text_others(names, 3, "eth1", buf, sizeof(buf)), "eth0 and eth2");
	assert_string_equal(text_others(names, 4, "eth0", buf, sizeof(buf)), "eth1, eth2 and eth3");
	assert_string_equal(text_others(names, 2, "", buf, sizeof(buf)), "eth0 and eth1");
	assert_string_equal(text_others(names, 4, "", little, sizeof(little)), "eth0, e");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_escape), cmocka_unit_test(test_escape_cuts),
	    cmocka_unit_test(test_name),   cmocka_unit_test(test_is_utf8),
	    cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
