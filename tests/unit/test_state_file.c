/* SPDX-License-Identifier: GPL-2.0-only */
/* A saved state that another machine, another build, a full disk or a stranger has had a hand in.
 */
#include "oracle.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "live/state_file.h"
#include "plan/compile.h"

#define POLICY \
	"memory: 64K\nallow: [192.0.2.0/24]\nrules:\n- {name: a, limits: [{key: src, gap: 1s}]}\n"
#define CUT  "%s: is cut off or damaged: nothing is restored from it"
#define NONE "%s: is no saved state of a pacer, or cut off"
#define BUILD                                                                                  \
	"%s: was saved by another build of ABI version 11, whose state has other sizes: load " \
	"without it"
#define REGULAR "%s: is no regular file: name one that save wrote"

/* Where the header, which state_file.c alone knows, has what is damaged here. */
enum {
	AT_VERSION = 8,
	AT_ORDER = 12,
	AT_ABI = 16,
	AT_SIZES = 20, /* five of them, of 4 bytes */
	AT_LINES = 48,
	AT_RUNS = 56,
	AT_THROTTLES = 64,
	AT_ALLOW = 68,
	AT_TEXT = 72,
	AT_CLOCKS = 88, /* behind them the secrets, twice, and the header ends */
	HEADER = AT_CLOCKS + sizeof(struct clocks) + 2 * PACER_SECRETS * sizeof(uint64_t),
};

static char folder[] = "/tmp/test_state_file.XXXXXX", path[64];
static uint8_t *whole;
static size_t n;
static struct policy_error error;

static int with_state(void **unused)
{
	static const struct compile_host host = {0, 5000000000, 2};
	static struct plan plan;
	struct allow_entry entry = {.prefix = {4, 24, {192, 0, 2}}, .of_policy = true};
	struct state s;
	uint64_t bytes;
	FILE *f;

	(void)unused;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/state", folder);
	assert_int_equal(state_init(&s, 1024), 0);
	s.text = strdup(POLICY);
	s.policy = policy_parse(POLICY, strlen(POLICY), &error);
	assert_non_null(s.policy);
	assert_int_equal(compile_policy(s.policy, NULL, &host, s.bin, &plan, &error), 0);
	assert_true(allowlist_append(&s.allow, &entry));
	s.lines[1023].word[0] = 1;
	s.clocks = (struct clocks){.boot_id = "a boot", .mono_ns = 5};
	assert_int_equal(state_write(path, &s, &bytes, &error), 0);
	state_free(&s);
	n = bytes;
	whole = malloc(2 * n);
	f = fopen(path, "r");
	assert_true(f && fread(whole, 1, n, f) == n && getc(f) == EOF);
	fclose(f);
	return 0;
}

static int without_state(void **unused)
{
	(void)unused;
	free(whole);
	unlink(path);
	return rmdir(folder);
}

static void put(const void *at, size_t bytes)
{
	FILE *f = fopen(path, "w");

	assert_true(f && (!bytes || fwrite(at, bytes, 1, f) == 1));
	assert_int_equal(fclose(f), 0);
}

/* As who has the sum right. */
static void put_summed(uint8_t *at, size_t bytes)
{
	uint32_t sum = (uint32_t)crc32(0, at, (uInt)(bytes - sizeof(sum)));

	memcpy(at + bytes - sizeof(sum), &sum, sizeof(sum));
	put(at, bytes);
}

static void refused(const char *file, const char *want)
{
	char text[300];
	struct state s;

	memset(&error, 0, sizeof(error));
	assert_int_equal(state_read(file, &s, &error), -1);
	snprintf(text, sizeof(text), want, file); /* NOLINT: all of them stand above */
	assert_string_equal(error.text, text);
}

static void as_it_was(void **unused)
{
	struct state s;

	(void)unused;
	put(whole, n);
	assert_int_equal(state_read(path, &s, &error), 0);
	assert_string_equal(s.text, POLICY);
	assert_int_equal(s.n_lines, 1024);
	assert_int_equal(s.lines[1023].word[0], 1);
	assert_int_equal(s.clocks.mono_ns, 5);
	assert_int_equal(s.allow.n, 1);
	assert_true(s.allow.entry[0].of_policy && !s.allow.entry[0].by_hand);
	state_free(&s);
}

/* Wherever it ends. */
static void torn(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < n; i += i < 1000 || i + 40 > n ? 7 : 4099) {
		put(whole, i);
		refused(path, i < HEADER ? NONE : CUT);
	}
	memcpy(whole + n, whole, n);
	put(whole, 2 * n);
	refused(path, CUT);
	put(whole, n + 1);
	refused(path, CUT);
}

/* One word of the header is another, and the sum is right. */
static void forged(void **unused)
{
	static const struct {
		size_t at;
		uint32_t value;
		const char *want;
	} words[] = {
	    {0, 0, NONE},
	    {AT_VERSION, 2, "%s: has version 2 of saved state, this tool reads 1: load without it"},
	    {AT_ORDER, 0x04030201, "%s: was saved on a machine of another byte order"},
	    {AT_ORDER, 0, CUT},
	    {AT_ABI, 1, "%s: holds state of ABI version 1, this tool has 11: load without it"},
	    {AT_SIZES, 1, BUILD},
	    {AT_SIZES + 4, 1, BUILD},
	    {AT_SIZES + 8, 1, BUILD},
	    {AT_SIZES + 12, 1, BUILD},
	    {AT_SIZES + 16, 1, BUILD},
	    {AT_LINES, 0, CUT},
	    {AT_LINES, 1, CUT},
	    {AT_LINES, 0xffffffff, CUT},
	    {AT_LINES + 4, 0xffffffff, CUT},
	    {AT_RUNS, 0, CUT},
	    {AT_RUNS, 2, CUT},
	    {AT_THROTTLES, 1, CUT},
	    {AT_THROTTLES, 0xffffffff, CUT},
	    {AT_ALLOW, 0, CUT},
	    {AT_ALLOW, 0xffffffff, CUT},
	    {AT_TEXT, 0, CUT},
	    {AT_TEXT, 0xffffffff, CUT},
	};
	uint8_t *other = malloc(n);

	(void)unused;
	for (size_t i = 0; i < ARRAY(words); i++) {
		memcpy(other, whole, n);
		memcpy(other + words[i].at, &words[i].value, sizeof(words[i].value));
		put_summed(other, n);
		refused(path, words[i].want);
	}
	free(other);
}

/* What is a truth value here is one there, too. */
static void no_truth_value(void **unused)
{
	const struct allow_entry entry = {.prefix = {4, 24, {192, 0, 2}}, .of_policy = true};
	uint8_t *other = malloc(n), *at = other;

	(void)unused;
	memcpy(other, whole, n);
	while (memcmp(at, &entry, offsetof(struct allow_entry, by_hand)) != 0)
		assert_true(++at < other + n - sizeof(entry));
	at[offsetof(struct allow_entry, by_hand)] = 2;
	put_summed(other, n);
	refused(path, CUT);
	at[offsetof(struct allow_entry, by_hand)] = 0;
	at[offsetof(struct allow_entry, of_policy)] = 255;
	put_summed(other, n);
	refused(path, CUT);
	free(other);
}

static void no_files(void **unused)
{
	char other[80];

	(void)unused;
	refused(folder, REGULAR);
	refused("/dev/zero", REGULAR);
	refused("/nowhere/x", "%s: the state cannot be read: No such file or directory");
	snprintf(other, sizeof(other), "%s/pipe", folder);
	assert_int_equal(mkfifo(other, 0600), 0);
	refused(other, REGULAR);
	unlink(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(as_it_was),      cmocka_unit_test(torn),	  cmocka_unit_test(forged),
	    cmocka_unit_test(no_truth_value), cmocka_unit_test(no_files),
	};

	return cmocka_run_group_tests(tests, with_state, without_state);
}
