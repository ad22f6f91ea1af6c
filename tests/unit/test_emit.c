/* SPDX-License-Identifier: GPL-2.0-only */
/* A result said once: the JSON that it makes, and tables at the widths of terminals. */
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/cmd.h"
#include "cli/emit.h"

/* What say.c does elsewhere. */
static char *printed, *first_printed;
static int lacks;

int print_json(json_t *value)
{
	printed = json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(6));
	json_decref(value);
	return EXIT_DONE;
}

int print_json_line(json_t *value)
{
	(void)print_json(value);
	return EXIT_FAILED; /* so that it is told from the other */
}

json_t *json_text(const char *name)
{
	return json_string(name);
}

void result_lacks(void)
{
	lacks++;
}

static void say_all(bool json)
{
	emit_begin(json);
	emit_object("");
	emit_string("name", "eth0", "%s: ", "eth0");
	emit_uint("n", 12345678901234567ull, "%s in all\n", thousands(12345678901234567ull).text);
	emit_array("rules");
	emit_string("", "a", "  %s\n", "a");
	emit_object("");
	emit_flag("on", true, NULL);
	emit_null("none", NULL);
	emit_real("share", 0.25, "%.2f\n", 0.25);
	emit_close();
	emit_close();
	emit_text("only text\n");
	emit_uint(NULL, 7, "%d\n", 7);
	emit_real(NULL, 0.5, "%.1f\n", 0.5); /* of text alone */
	emit_flag(NULL, true, "yes\n");
	emit_string(NULL, "b", "b\n");
	emit_close();
	assert_int_equal(emit_end(), EXIT_DONE);
}

/* What `say` writes to stdout, which is no terminal. */
static const char *text_of(void (*say)(bool), bool json)
{
	static char text[4096];
	FILE *file = tmpfile();
	int out = dup(STDOUT_FILENO);
	size_t n;

	assert_non_null(file);
	fflush(stdout);
	dup2(fileno(file), STDOUT_FILENO);
	say(json);
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	close(out);
	rewind(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = 0;
	fclose(file);
	return text;
}

static void test_once(void **unused)
{
	(void)unused;
	assert_string_equal(
	    text_of(say_all, false),
	    "eth0: 12,345,678,901,234,567 in all\n  a\n0.25\nonly text\n7\n0.5\nyes\nb\n");
	assert_string_equal(text_of(say_all, true), "");
	assert_string_equal(printed, "{\"name\":\"eth0\",\"n\":12345678901234567,\"rules\":[\"a\","
				     "{\"on\":true,\"none\":null,\"share\":0.25}]}");
	free(printed);
}

static void say_dropped(bool json)
{
	emit_begin(json);
	emit_array("");
	emit_uint("", 1, "1\n");
	emit_drop();
	emit_begin(json);
	emit_object("");
	emit_close();
	(void)emit_end();
}

/* Of one of several: what it began is gone, and the next one's stands. */
static void say_one_dropped(bool json)
{
	emit_many_begin(json);
	emit_many_next("eth0", true);
	emit_begin(json);
	emit_array("");
	emit_object("");
	emit_uint("n", 1, "1\n");
	emit_drop();
	emit_many_next("eth1", true);
	emit_begin(json);
	emit_object("");
	emit_uint("n", 2, "2\n");
	emit_close();
	assert_int_equal(emit_many_end(), EXIT_DONE);
}

static void test_dropped(void **unused)
{
	(void)unused;
	text_of(say_dropped, true);
	assert_string_equal(printed, "{}");
	free(printed);
	text_of(say_one_dropped, true);
	assert_string_equal(printed, "[{\"interface\":\"eth0\",\"result\":null},"
				     "{\"interface\":\"eth1\",\"result\":{\"n\":2}}]");
	free(printed);
	assert_string_equal(text_of(say_one_dropped, false), "eth0:\n1\neth1:\n2\n");
}

/* JSON as a text to be handed on. */
static void test_text(void **unused)
{
	char *text;

	(void)unused;
	emit_begin(true);
	emit_object("");
	emit_real("share", 0.123456789, NULL);
	emit_close();
	text = emit_end_text();
	assert_string_equal(text, "{\"share\":0.123457}");
	free(text);
}

static void say_line(bool json)
{
	emit_begin(json);
	emit_object("");
	emit_real("none", NAN, "%s", "-");
	emit_real("more", INFINITY, "\n");
	emit_close();
	assert_int_equal(emit_end_line(), json ? EXIT_FAILED : EXIT_DONE);
}

/* What is no number is null; JSON in a line. */
static void test_line(void **unused)
{
	(void)unused;
	assert_string_equal(text_of(say_line, false), "-\n");
	text_of(say_line, true);
	assert_string_equal(printed, "{\"none\":null,\"more\":null}");
	free(printed);
}

static void say_table(bool json)
{
	static const struct emit_column columns[] = {
	    {"RULE", false}, {"PACKETS", true}, {"DENIED", true}, {"WHY", false}, {0}};
	static const char *const names[] = {"dns", "a_rule_of_length", "\xc3\xa4\xc3\xb6"};

	emit_begin(json);
	emit_array("");
	emit_table(columns, 2);
	for (size_t i = 0; i < 3; i++) {
		emit_row();
		emit_object("");
		emit_string("rule", names[i], "%s", names[i]);
		emit_uint("packets", i * 1000, "%s", thousands(i * 1000).text);
		if (i == 1)
			emit_text("%s", "1");
		else
			emit_skip(1);
		if (!i)
			emit_text("twenty characters ..");
		emit_close();
	}
	emit_table_end();
	emit_close();
	(void)emit_end();
}

static void test_table(void **unused)
{
	static const char wide[] = "  RULE              PACKETS  DENIED  WHY\n"
				   "  dns                     0          twenty characters ..\n"
				   "  a_rule_of_length    1,000       1\n"
				   "  \xc3\xa4\xc3\xb6                  2,000\n";
	static const char narrow[] = "  RULE              PACKETS  DENIED\n"
				     "      WHY\n"
				     "  dns                     0\n"
				     "      twenty characters ..\n"
				     "  a_rule_of_length    1,000       1\n"
				     "  \xc3\xa4\xc3\xb6                  2,000\n";

	(void)unused;
	unsetenv("COLUMNS");
	assert_string_equal(text_of(say_table, false), wide); /* to a file */
	setenv("COLUMNS", "200", 1);
	assert_string_equal(text_of(say_table, false), wide);
	setenv("COLUMNS", "57", 1); /* just enough */
	assert_string_equal(text_of(say_table, false), wide);
	setenv("COLUMNS", "56", 1);
	assert_string_equal(text_of(say_table, false), narrow);
	setenv("COLUMNS", "35", 1);
	assert_string_equal(text_of(say_table, false), narrow);
	setenv("COLUMNS", "1", 1); /* a column a line, and nothing is cut */
	assert_non_null(strstr(text_of(say_table, false), "\n      twenty characters ..\n"));
	setenv("COLUMNS", "none", 1);
	assert_string_equal(text_of(say_table, false), wide);
	text_of(say_table, true);
	assert_string_equal(printed,
			    "[{\"rule\":\"dns\",\"packets\":0},{\"rule\":\"a_rule_of_length\","
			    "\"packets\":1000},{\"rule\":\"\xc3\xa4\xc3\xb6\",\"packets\":2000}]");
	free(printed);
	assert_int_equal(lacks, 0);
}

/* More rows than are kept room for at first, each with a cell that nothing is said of; and none. */
static void say_rows(bool json)
{
	static const struct emit_column columns[] = {
	    {"N", true}, {"NOTHING", false}, {"KEY", false}, {0}};

	emit_begin(json);
	emit_table(columns, 0);
	emit_table_end();
	printf("|\n");
	emit_table(columns, 0);
	for (unsigned int i = 1; i <= 40; i++) {
		emit_row();
		emit_text("%u", i);
		if (i % 16)
			emit_skip(1);
		else
			emit_text("-");
		emit_text("k");
	}
	emit_table_end();
	(void)emit_end();
}

static void test_rows(void **unused)
{
	char wanted[1000] = "|\n N  NOTHING  KEY\n";

	(void)unused;
	mallopt(M_PERTURB, 1); /* memory is not empty by itself */
	unsetenv("COLUMNS");
	for (unsigned int i = 1; i <= 40; i++)
		sprintf(wanted + strlen(wanted), "%2u  %-7s  k\n", i, i % 16 ? "" : "-");
	assert_string_equal(text_of(say_rows, false), wanted);
	assert_int_equal(lacks, 0);
}

/* Rows that come bit by bit; what is there after each cell of the second. */
static void say_at_once(bool json)
{
	static const struct emit_column columns[] = {
	    {"UNTIL", true}, {"VALUE", false}, {"KEY", false}, {0}};
	static const size_t widths[] = {7, 6, 0};

	emit_begin(json);
	emit_object("");
	emit_array("rows");
	emit_table_at_once(columns, widths, 1);
	for (unsigned int i = 1; i <= 3; i++) {
		emit_row();
		emit_object("");
		emit_uint("until", i, "%us", i);
		emit_text("%s", i == 2 ? "wider than it" : "v");
		if (!json)
			printf("|");
		if (i < 3)
			emit_string("key", "k", "k%u", i);
		else
			emit_skip(1);
		emit_close();
	}
	if (!json)
		printf("|");
	emit_table_end();
	emit_close();
	emit_close();
	(void)emit_end();
}

static void test_at_once(void **unused)
{
	(void)unused;
	setenv("COLUMNS", "80", 1);
	assert_string_equal(text_of(say_at_once, false), "|   UNTIL  VALUE   KEY\n"
							 "      1s  v       k1\n"
							 "|      2s  wider than it  k2\n"
							 "|      3s  v\n"
							 "|");
	setenv("COLUMNS", "17", 1);
	assert_string_equal(text_of(say_at_once, false), "|   UNTIL  VALUE\n     KEY\n"
							 "      1s  v\n     k1\n"
							 "|      2s\n     wider than it\n     k2\n"
							 "|      3s  v\n"
							 "|");
	text_of(say_at_once, true);
	assert_string_equal(printed, "{\"rows\":[{\"until\":1,\"key\":\"k\"},"
				     "{\"until\":2,\"key\":\"k\"},{\"until\":3}]}");
	free(printed);
	assert_int_equal(lacks, 0);
}

/* On a terminal; colours on none but that, and not where they are unwanted. */
static void test_style(void **unused)
{
	int out = dup(STDOUT_FILENO), terminal = posix_openpt(O_RDWR | O_NOCTTY);
	bool on, no_color, dumb;

	(void)unused;
	assert_true(terminal >= 0);
	setenv("TERM", "xterm", 1);
	unsetenv("NO_COLOR");
	fflush(stdout);
	dup2(terminal, STDOUT_FILENO);
	on = *emit_style(EMIT_ALARM);
	setenv("NO_COLOR", "1", 1);
	no_color = *emit_style(EMIT_ALARM);
	setenv("NO_COLOR", "", 1);
	setenv("TERM", "dumb", 1);
	dumb = *emit_style(EMIT_ALARM);
	setenv("TERM", "xterm", 1);
	dup2(out, STDOUT_FILENO);
	close(out);
	close(terminal);
	assert_true(on);
	assert_false(no_color);
	assert_false(dumb);
	out = dup(STDOUT_FILENO);
	terminal = open("/dev/null", O_WRONLY);
	dup2(terminal, STDOUT_FILENO);
	on = *emit_style(EMIT_ALARM);
	dup2(out, STDOUT_FILENO);
	close(out);
	close(terminal);
	assert_false(on);
}

static const char *hint = "q ends";

/* A screen of these lines, as a terminal of that size gets it. */
static const char *screen_of(const char *kind, bool json, const char *rows, const char *columns)
{
	int out = dup(STDOUT_FILENO), master = posix_openpt(O_RDWR | O_NOCTTY), slave;
	static char got[256];
	size_t len = 0;
	ssize_t n;

	assert_true(master >= 0 && !grantpt(master) && !unlockpt(master));
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	assert_true(slave >= 0);
	setenv("TERM", kind, 1);
	setenv("LINES", rows, 1);
	setenv("COLUMNS", columns, 1);
	fflush(stdout);
	dup2(slave, STDOUT_FILENO);
	emit_begin(json);
	assert_int_equal(emit_screen(hint), !json && strcmp(kind, "dumb") != 0);
	emit_text("%sone two%s\n", emit_style(EMIT_BOLD), emit_style(EMIT_PLAIN));
	emit_text("dr\303\274ben\nthree\nfour\n");
	if (!json)
		assert_int_equal(emit_end(), EXIT_DONE);
	printf("|");
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	close(slave);
	while ((n = read(master, got + len, sizeof(got) - 1 - len)) > 0) /* in parts, at times */
		len += (size_t)n;
	got[len] = 0;
	close(master);
	close(out);
	unsetenv("LINES");
	unsetenv("COLUMNS");
	return got;
}

/* It is overwritten, and cut to the terminal's size, between characters and beside styles. */
static void test_screen(void **unused)
{
	(void)unused;
	unsetenv("NO_COLOR");
	assert_string_equal(screen_of("xterm", false, "24", "80"),
			    "\033[H\033[1mone two\033[0m\033[K\r\ndr\303\274ben\033[K\r\n"
			    "three\033[K\r\nfour\033[K\r\n\033[Jq ends|");
	assert_string_equal(screen_of("xterm", false, "4", "14"),
			    "\033[H\033[1mone two\033[0m\033[K\r\ndr\303\274ben\033[K\r\n"
			    "three\033[K\r\n\033[J1 more line; q|");
	assert_string_equal(screen_of("xterm", false, "3", "3"),
			    "\033[H\033[1mone\033[0m\033[K\r\ndr\303\274\033[K\r\n\033[J2 m|");
	hint = NULL; /* whose keys nobody reads; of a terminal that does not say its size, all */
	assert_string_equal(screen_of("xterm", false, "4", "80"),
			    "\033[H\033[1mone two\033[0m\033[K\r\ndr\303\274ben\033[K\r\n"
			    "three\033[K\r\n\033[J1 more line|");
	assert_string_equal(screen_of("xterm", false, "", ""),
			    "\033[H\033[1mone two\033[0m\033[K\r\ndr\303\274ben\033[K\r\n"
			    "three\033[K\r\nfour\033[K\r\n\033[J|");
	hint = "q ends";
	assert_string_equal(screen_of("xterm", true, "24", "80"), "|");
	assert_string_equal(screen_of("dumb", false, "2", "3"),
			    "one two\r\ndr\303\274ben\r\nthree\r\nfour\r\n|");
}

static void say_two(bool json)
{
	emit_many_begin(json);
	emit_many_next("eth0", true);
	emit_begin(json);
	emit_object("");
	emit_uint("n", 1, "%d\n", 1);
	emit_close();
	assert_int_equal(emit_end_line(), EXIT_DONE); /* of one of them: nothing is printed yet */
	emit_many_next("eth1", true);
	assert_int_equal(emit_many_end_line(), json ? EXIT_FAILED : EXIT_DONE);
	first_printed = printed;
	say_line(json); /* what comes then is of one again */
}

/* Of several one line; what one of them does not say is null. */
static void test_many_in_a_line(void **unused)
{
	(void)unused;
	assert_string_equal(text_of(say_two, false), "eth0:\n1\neth1:\n-\n");
	text_of(say_two, true);
	assert_string_equal(printed, "{\"none\":null,\"more\":null}");
	free(printed);
	assert_string_equal(first_printed, "[{\"interface\":\"eth0\",\"result\":{\"n\":1}},"
					   "{\"interface\":\"eth1\",\"result\":null}]");
	free(first_printed);
}

static void test_numbers(void **unused)
{
	static const struct {
		double n;
		const char *text;
	} rates[] = {{0, "0 pps"},	    {7, "7 pps"},	  {999, "999 pps"},
		     {999.6, "1.00 kpps"},  {1234, "1.23 kpps"},  {12345, "12.3 kpps"},
		     {99960, "100 kpps"},   {123456, "123 kpps"}, {999999, "1.00 Mpps"},
		     {12.5e9, "12.5 Gpps"}, {5e15, "5000 Tpps"}};

	(void)unused;
	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++)
		assert_string_equal(per_second(rates[i].n, "pps").text, rates[i].text);
	assert_string_equal(thousands(0).text, "0");
	assert_string_equal(thousands(999).text, "999");
	assert_string_equal(thousands(1000).text, "1,000");
	assert_string_equal(thousands(UINT64_MAX).text, "18,446,744,073,709,551,615");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_once),	   cmocka_unit_test(test_dropped),
	    cmocka_unit_test(test_table),	   cmocka_unit_test(test_style),
	    cmocka_unit_test(test_numbers),	   cmocka_unit_test(test_line),
	    cmocka_unit_test(test_at_once),	   cmocka_unit_test(test_screen),
	    cmocka_unit_test(test_many_in_a_line), cmocka_unit_test(test_text),
	    cmocka_unit_test(test_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
