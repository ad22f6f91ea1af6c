/* SPDX-License-Identifier: GPL-2.0-only */
/* What a pacer's log says of bans and of what tools have done, after others have its places. */
#include "oracle.h"

#include <stdio.h>
#include <unistd.h>

#include "live/host.h"
#include "live/notes.h"

#include "ban.h"
#include "plan/compile.h"

static const char *login; /* what the kernel says of who logged in; NULL: it says nothing */
static uid_t self;

FILE *__wrap_fopen(const char *path, const char *how);
uid_t __wrap_getuid(void);

FILE *__wrap_fopen(const char *path, const char *how)
{
	assert_string_equal(path, "/proc/self/loginuid");
	assert_string_equal(how, "re");
	return login ? fmemopen((void *)(uintptr_t)login, strlen(login), "r") : NULL;
}

uid_t __wrap_getuid(void)
{
	return self;
}

uint64_t host_now_ns(void)
{
	return 77;
}

void host_wait_until(uint64_t until_ns)
{
	(void)until_ns;
}

uint64_t host_resolution_ns(void)
{
	return 1;
}

int host_cpus(struct policy_error *why)
{
	(void)why;
	return 1;
}

static struct attached a;

static void begin(void)
{
	static struct pacer_log log;

	memset(&log, 0, sizeof(log));
	a = (struct attached){.ifname = "eth0", .log = &log};
	login = NULL;
	self = 0;
	unsetenv("SUDO_UID");
}

static void test_who(void **unused)
{
	static const struct {
		const char *login, *sudo;
		uid_t self;
		uint32_t says;
	} cases[] = {
	    {"1000", NULL, 0, 1000},
	    {"1000", "1001", 0, 1000},
	    {NULL, "1001", 0, 1001},
	    {"4294967295", "1001", 0, 1001},
	    {"x", "1001", 0, 1001},
	    {NULL, "", 0, 0},
	    {NULL, "10x", 0, 0},
	    {NULL, "4294967295", 0, 0},
	    {NULL, "-1", 0, 0},
	    {NULL, "1001", 1002, 1002}, /* who is not root may say what they like */
	};
	struct note_said said;

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		begin();
		login = cases[i].login;
		self = cases[i].self;
		if (cases[i].sudo)
			setenv("SUDO_UID", cases[i].sudo, 1);
		notes_say(&a, 1, "text");
		assert_int_equal(notes_said(&a), 1);
		assert_true(notes_saying(&a, 0, &said));
		if (said.uid != cases[i].says || strcmp(said.text, "text") != 0 ||
		    said.time_ns != 77)
			fail_msg("case %zu: %u, %s", i, said.uid, said.text);
	}
	unsetenv("SUDO_UID");
}

/* A place has the last that was said there; nothing is read as another. */
static void test_places(void **unused)
{
	struct note_said said;
	char text[16];

	(void)unused;
	begin();
	assert_false(notes_saying(&a, 0, &said));
	for (uint32_t i = 0; i < PACER_SAID + 3; i++) {
		snprintf(text, sizeof(text), "%u", i);
		notes_say(&a, 1, text);
	}
	assert_int_equal(notes_first(notes_said(&a), PACER_SAID), 3);
	for (uint32_t i = 0; i < PACER_SAID + 3; i++) {
		assert_true(notes_saying(&a, i, &said) == (i >= 3));
		if (i >= 3)
			assert_int_equal(atoi(said.text), i);
	}
}

/* Who was overtaken has said nothing: what it wanted to say may be said by then. */
static void test_the_next(void **unused)
{
	struct note_said said;

	(void)unused;
	begin();
	assert_true(notes_say_next(&a, 0, 1, "first"));
	assert_false(notes_say_next(&a, 0, 1, "late"));
	assert_int_equal(notes_said(&a), 1);
	assert_true(notes_saying(&a, 0, &said));
	assert_string_equal(said.text, "first");
}

static void test_bans(void **unused)
{
	static const char text[] = "rules:\n- {name: a, limits: [{key: src, gap: 1s}]}\n"
				   "- {name: b, limits: [{key: src, gap: 1s}]}\n";
	const uint32_t word[4] = {0xc0000201};
	struct pacer_ban_key key = pacer_ban_source(PACER_FAMILY_4, word, 32);
	struct policy_error error;
	struct policy *policy = policy_parse(text, strlen(text), &error);
	struct note_ban ban;

	(void)unused;
	begin();
	assert_non_null(policy);
	for (int of = 0; of < 2; of++) {
		struct pacer_note *note = &a.log->note[5];

		note->rule = of ? compile_name_id("b") : compile_name_id("gone");
		note->key_id = key.key_id;
		memcpy(note->key, key.word, sizeof(note->key));
		note->until_ns = 9;
		note->number = PACER_NOTES + 6;
		assert_true(notes_ban(&a, policy, PACER_NOTES + 5, &ban));
		assert_string_equal(ban.rule, of ? "b" : "?");
		assert_string_equal(ban.key, "192.0.2.1");
		assert_int_equal(ban.until_ns, 9);
		assert_false(notes_ban(&a, policy, 5, &ban)); /* another has its place */
	}
	a.log->lost[3] = 8;
	assert_int_equal(notes_lost(&a, 3), 8);
	assert_int_equal(notes_lost(&a, PACER_COUNTERS_MAX), 0);
	policy_free(policy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_who),
	    cmocka_unit_test(test_places),
	    cmocka_unit_test(test_the_next),
	    cmocka_unit_test(test_bans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
