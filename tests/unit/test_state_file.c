/* SPDX-License-Identifier: GPL-2.0-only */
/* A saved state that another machine, another build, a full disk or a stranger has had a hand in.
 */
#include "ended.h"
#include "oracle.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
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
#define LARGEST (66ll << 30)
#define REGULAR "%s: is no regular file: name one that save wrote"

/* Where the header, which state_file.c alone knows, has what is damaged here. */
enum {
	AT_VERSION = 8,
	AT_ORDER = 12,
	AT_ABI = 16,
	AT_SIZES = 20, /* five of them, of 4 bytes */
	AT_BYTES = 40,
	AT_LINES = 48,
	AT_RUNS = 56,
	AT_THROTTLES = 64,
	AT_ALLOW = 68,
	AT_TEXT = 72,
	AT_SET_COUNTS = 84,
	AT_CLOCKS = 88, /* behind them the secrets, twice, and the header ends */
	HEADER = AT_CLOCKS + sizeof(struct clocks) + 2 * PACER_SECRETS * sizeof(uint64_t),
	COUNTERS = PACER_COUNTERS_MAX * sizeof(struct pacer_counters),
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
	s.secret_ready = PACER_SECRET_OF_TOOLS;
	s.text = strdup(POLICY);
	s.policy = policy_parse(POLICY, strlen(POLICY), &error);
	assert_non_null(s.policy);
	assert_int_equal(compile_policy(s.policy, NULL, &host, s.bin, &plan, &error), 0);
	assert_true(allowlist_append(&s.allow, &entry));
	s.lines[1023].word[0] = 1;
	s.set_count[PACER_SET_COUNTERS - 1] = (struct pacer_set_count){3, 180};
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
	assert_int_equal(s.set_count[PACER_SET_COUNTERS - 1].packets, 3);
	assert_int_equal(s.set_count[PACER_SET_COUNTERS - 1].bytes, 180);
	state_free(&s);
}

/* A name that leaves no room for the one beside it, and what is no file. */
static void of_a_name(void **unused)
{
	const size_t most = NAME_MAX - strlen(".unfinished-XXXXXX");
	char name[PATH_MAX];

	(void)unused;
	memset(name, 'a', sizeof(name));
	memcpy(name, "/tmp/", 5);
	name[5 + most] = 0;
	assert_int_equal(state_place(name, &error), 0);
	assert_int_equal(state_place(name + 5, &error), 0);
	name[5 + most] = 'a';
	name[6 + most] = 0;
	assert_int_equal(state_place(name, &error), -1);
	assert_non_null(strstr(error.text, "the state cannot be written: File name too long: "));
	assert_int_equal(state_place(name + 5, &error), -1);
	for (size_t i = 0; i < sizeof(name); i += 2) /* many folders, each of a short name */
		memcpy(name + i, "./", 2);
	name[PATH_MAX - 10] = 0;
	assert_int_equal(state_place(name, &error), -1);
	assert_int_equal(state_place("/tmp", &error), -1);
	assert_string_equal(error.text,
			    "/tmp: is no regular file, and would be replaced: name another");
}

/* Before anything is written: whether the folder is there, is one, and may be written to. */
static void of_a_folder(void **unused)
{
	static const struct {
		const char *file, *says; /* NULL: it may */
	} row[] = {
	    {"/no-such-folder/s0.state",
	     "No such file or directory: make it, or name another file"},
	    {"/dev/null/s0.state",
	     "Not a directory: see that it may be written to, or name another "
	     "file"},
	    {"s0.state", NULL},
	    {"/tmp/s0.state", NULL},
	};
	char text[300], here[PATH_MAX];

	(void)unused;
	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir(folder), 0);
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		assert_int_equal(state_place(row[i].file, &error), row[i].says ? -1 : 0);
		if (!row[i].says)
			continue;
		snprintf(text, sizeof(text), "%s: the state cannot be written: its folder: %s",
			 row[i].file, row[i].says);
		assert_memory_equal(error.text, text, strlen(text));
	}
	assert_int_equal(chmod(folder, 0555), 0);
	if (!geteuid())
		assert_int_equal(seteuid(65534), 0); /* root may write everywhere */
	assert_int_equal(state_place(path, &error), -1);
	snprintf(text, sizeof(text),
		 "%s: the state cannot be written: its folder: Permission denied: see that it may "
		 "be written to, or name another file",
		 path);
	assert_string_equal(error.text, text);
	if (!getuid())
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod(folder, 0666), 0); /* nothing in it can be named */
	if (!geteuid())
		assert_int_equal(seteuid(65534), 0);
	assert_int_equal(state_place(path, &error), -1);
	assert_string_equal(error.text, text);
	if (!getuid())
		assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod(folder, 0700), 0);
	assert_int_equal(chdir(here), 0);
}

/* One that an older tool wrote, which left out what sets had counted. */
static void of_version_1(void **unused)
{
	static const struct pacer_set_count none[PACER_SET_COUNTERS];
	size_t at = HEADER + sizeof(struct pacer_policy) + strlen(POLICY) +
		    PACER_COUNTERS_MAX * sizeof(struct pacer_counters);
	uint64_t bytes = n - sizeof(none);
	uint32_t version = 1, no_bytes = 0;
	uint8_t *older = malloc(n);
	struct state s;

	(void)unused;
	memcpy(older, whole, at);
	memcpy(older + at, whole + at + sizeof(none), n - at - sizeof(none));
	memcpy(older + AT_VERSION, &version, sizeof(version));
	memcpy(older + AT_BYTES, &bytes, sizeof(bytes));
	put_summed(older, bytes);
	refused(path, BUILD); /* it says that it has them */
	memcpy(older + AT_SET_COUNTS, &no_bytes, sizeof(no_bytes));
	put_summed(older, bytes);
	assert_int_equal(state_read(path, &s, &error), 0);
	assert_memory_equal(s.set_count, none, sizeof(none));
	assert_int_equal(s.lines[1023].word[0], 1);
	state_free(&s);
	free(older);
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
	    {AT_VERSION, 3, "%s: has version 3 of saved state, this tool reads 2: load without it"},
	    {AT_VERSION, 0, "%s: has version 0 of saved state, this tool reads 2: load without it"},
	    {AT_VERSION, 1, BUILD},
	    {AT_ORDER, 0x04030201, "%s: was saved on a machine of another byte order"},
	    {AT_ORDER, 0, CUT},
	    {AT_ABI, 1, "%s: holds state of ABI version 1, this tool has 11: load without it"},
	    {AT_ABI, 12, "%s: holds state of ABI version 12, this tool has 11: load without it"},
	    {AT_SIZES, 1, BUILD},
	    {AT_SIZES + 4, 1, BUILD},
	    {AT_SIZES + 8, 1, BUILD},
	    {AT_SIZES + 12, 1, BUILD},
	    {AT_SIZES + 16, 1, BUILD},
	    {AT_SET_COUNTS, 0, BUILD},
	    {AT_SET_COUNTS, 0xffffffff, BUILD},
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

/* Of two that it says there are the first is all that is left. */
static void ends_with_a_throttle(const uint8_t *other, uint64_t len)
{
	uint8_t *cut = malloc(len);
	uint32_t two = 2;

	memcpy(cut, other, len);
	memcpy(cut + AT_BYTES, &len, sizeof(len));
	memcpy(cut + AT_THROTTLES, &two, sizeof(two));
	put_summed(cut, len);
	refused(path, CUT);
	free(cut);
}

/* What it says of itself leads out of its tables, and the sum is right. */
static void beyond(void **unused)
{
	static const struct pacer_throttle_state one = {.lock = 0};
	struct state s;
	uint8_t *other, *at;
	uint64_t bytes;
	uint32_t i = PACER_THROTTLES;
	FILE *f;

	(void)unused;
	put(whole, n);
	assert_int_equal(state_read(path, &s, &error), 0);
	memset(&s.throttle[3], 1, sizeof(one));
	for (uint64_t k = 0; k < 2; k++) { /* two runs of lines */
		s.lines[k * 500].word[0] = 1;
		s.lines[k * 500 + 1].word[0] = 1;
	}
	assert_int_equal(state_write(path, &s, &bytes, &error), 0);
	other = malloc(bytes);
	f = fopen(path, "r");
	assert_true(f && fread(other, 1, bytes, f) == bytes);
	fclose(f);
	at = other + HEADER + sizeof(*s.bin) + strlen(POLICY) + COUNTERS + sizeof(s.set_count);
	assert_int_equal(at[0], 3);
	memcpy(at, &i, sizeof(i)); /* no such throttle */
	put_summed(other, bytes);
	refused(path, CUT);
	i = 3;
	memcpy(at, &i, sizeof(i));
	at += sizeof(i) + sizeof(one);
	for (int k = 0; k < 4; k++) { /* no such family, and no such lengths of either */
		struct allow_entry e = s.allow.entry[0];

		e.prefix.family = (uint8_t[]){5, 4, 6, 0}[k];
		e.prefix.len = (uint8_t[]){8, 33, 129, 0}[k];
		memcpy(at, &e, sizeof(e));
		put_summed(other, bytes);
		refused(path, CUT);
	}
	memcpy(at, &s.allow.entry[0], sizeof(s.allow.entry[0]));
	at += sizeof(s.allow.entry[0]);
	for (int k = 0; k < 5; k++) { /* where lines begin, and how many there are */
		uint64_t run[2] = {(uint64_t[]){1025, 1023, 0, UINT64_MAX, 0}[k],
				   (uint64_t[]){2, 2, 4097, 2, 1024}[k]};
		uint64_t was[2];

		memcpy(was, at, sizeof(was));
		assert_true(was[0] == 0 && was[1] == 2);
		memcpy(at, run, sizeof(run));
		put_summed(other, bytes);
		refused(path, CUT);
		memcpy(at, was, sizeof(was));
	}
	/* It ends within each part of it, and says that this is its length. */
	for (uint64_t part = HEADER, k = 0; k < 9; k++) {
		const uint64_t parts[] = {sizeof(*s.bin),
					  strlen(POLICY),
					  COUNTERS,
					  sizeof(s.set_count),
					  sizeof(i),
					  sizeof(one),
					  sizeof(struct allow_entry),
					  2 * sizeof(uint64_t),
					  2 * sizeof(struct pacer_line)};
		uint64_t len = part + parts[k] / 2 + sizeof(uint32_t), was;
		uint8_t *cut = malloc(len);

		memcpy(cut, other, len);
		memcpy(&was, cut + AT_BYTES, sizeof(was));
		assert_int_equal(was, bytes);
		memcpy(cut + AT_BYTES, &len, sizeof(len));
		put_summed(cut, len);
		refused(path, CUT);
		free(cut);
		part += parts[k];
	}
	put_summed(other, bytes);
	ends_with_a_throttle(other, HEADER + sizeof(*s.bin) + strlen(POLICY) + COUNTERS +
					sizeof(s.set_count) + sizeof(i) + sizeof(one));
	other[HEADER + sizeof(*s.bin) + 5] = 0; /* a text that ends before its end */
	put_summed(other, bytes);
	refused(path, CUT);
	other[HEADER + sizeof(*s.bin) + 5] = POLICY[5];
	put_summed(other, bytes);
	state_free(&s);
	assert_int_equal(state_read(path, &s, &error), 0);
	state_free(&s);
	free(other);
}

/* More prefixes than a list has room for. */
static void too_long_a_list(void **unused)
{
	const size_t more = 4 * PACER_ALLOW_MAX + 3;
	struct allow_entry *entry = calloc(more, sizeof(*entry)), *was;
	struct state s;
	uint64_t bytes;
	size_t n_was;

	(void)unused;
	put(whole, n);
	assert_int_equal(state_read(path, &s, &error), 0);
	for (size_t i = 0; i < more; i++)
		entry[i].prefix = (struct prefix){4, 24, {10, (uint8_t)(i >> 8), (uint8_t)i}};
	was = s.allow.entry;
	n_was = s.allow.n;
	s.allow.entry = entry;
	s.allow.n = more;
	assert_int_equal(state_write(path, &s, &bytes, &error), 0);
	refused(path, CUT);
	s.allow.n = 0; /* and none at all */
	assert_int_equal(state_write(path, &s, &bytes, &error), 0);
	s.allow.entry = was;
	s.allow.n = n_was;
	state_free(&s);
	assert_int_equal(state_read(path, &s, &error), 0);
	assert_int_equal(s.allow.n, 0);
	state_free(&s);
	free(entry);
}

/* Lines in a row, more than are looked at together; and the last one. */
static void long_runs(void **unused)
{
	struct state s, again;
	uint64_t bytes;

	(void)unused;
	put(whole, n);
	assert_int_equal(state_read(path, &s, &error), 0);
	munmap(s.lines, s.room * sizeof(*s.lines));
	s.n_lines = s.room = 5000;
	s.lines = mmap(NULL, s.room * sizeof(*s.lines), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (uint64_t i = 100; i < s.n_lines; i++)
		s.lines[i].word[7] = i;
	assert_int_equal(state_write(path, &s, &bytes, &error), 0);
	assert_int_equal(state_read(path, &again, &error), 0);
	assert_memory_equal(again.lines, s.lines, s.n_lines * sizeof(*s.lines));
	state_free(&again);
	state_free(&s);
}

static size_t in_folder(void)
{
	DIR *d = opendir(folder);
	size_t count = 0;

	while (readdir(d))
		count++;
	closedir(d);
	return count;
}

/* Wherever the disk is full: what was there stays, and nothing else is left. */
static void full(void **unused)
{
	struct rlimit was, limit;
	char text[300];
	uint64_t bytes;
	struct state s;

	(void)unused;
	put(whole, n);
	assert_int_equal(state_read(path, &s, &error), 0);
	snprintf(text, sizeof(text),
		 "%s: the state cannot be written: File too large: nothing is changed", path);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	limit = was;
	for (size_t i = 0; i < n; i += i < n / 100 * 99 ? n / 20 : 333) {
		int result;

		limit.rlim_cur = i;
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		result = state_write(path, &s, &bytes, &error);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
		assert_int_equal(result, -1);
		assert_string_equal(error.text, text);
		assert_int_equal(in_folder(), 3);
	}
	state_free(&s);
	as_it_was(NULL);
}

/* Where it cannot be written at all. */
static void nowhere(void **unused)
{
	static char longest[PATH_MAX + 10];
	char pipe[sizeof(path) + 8];
	struct state s;
	uint64_t bytes;

	(void)unused;
	put(whole, n);
	assert_int_equal(state_read(path, &s, &error), 0);
	memset(longest, 'x', sizeof(longest) - 1);
	assert_int_equal(state_write(longest, &s, &bytes, &error), -1);
	assert_non_null(
	    strstr(error.text, "cannot be written: File name too long: nothing is changed"));
	assert_int_equal(state_write("/nowhere/x", &s, &bytes, &error), -1);
	assert_string_equal(error.text, "/nowhere/x: the state cannot be written: No such file or "
					"directory: nothing is changed");
	snprintf(pipe, sizeof(pipe), "%s.pipe", path); /* of its own, as a fault would replace it */
	assert_int_equal(mkfifo(pipe, 0600), 0);
	assert_int_equal(state_write(pipe, &s, &bytes, &error), -1);
	assert_non_null(strstr(error.text, ".pipe: is no regular file, and would be replaced: "));
	assert_int_equal(unlink(pipe), 0);
	state_free(&s);
}

/* ---- what killed saves left ---- */

static struct {
	uint32_t n, stay;
	char last[300];
} left;

static void note(const char *at, int cause, void *arg)
{
	(void)arg;
	left.n++;
	left.stay += cause != 0;
	snprintf(left.last, sizeof(left.last), "%s", at);
}

static const char *beside(const char *name, int flags)
{
	static char at[300];
	int fd;

	snprintf(at, sizeof(at), "%s/%s", folder, name);
	fd = open(at, flags | O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	return at;
}

static void cleaned(void **unused)
{
	char at[300], text[300];
	int fd;

	(void)unused;
	put(whole, n);
	beside("state.unfinished-1234567", 0); /* of other names */
	beside("state.unfinished-12345", 0);
	beside("other", 0);
	snprintf(at, sizeof(at), "%s/state.unfinished-link00", folder);
	assert_int_equal(symlink(path, at), 0); /* leads to what is none */
	assert_int_equal(state_clean(folder, false, note, NULL, &error), 0);
	assert_int_equal(left.n, 0);
	fd = open(beside("state.unfinished-abcdef", 0), O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0); /* somebody writes to it */
	assert_int_equal(state_clean(folder, false, note, NULL, &error), 0);
	assert_int_equal(left.n, 0);
	close(fd);
	assert_int_equal(state_clean(folder, true, note, NULL, &error), 0); /* looked at */
	assert_int_equal(state_clean(folder, false, note, NULL, &error), 0);
	assert_true(left.n == 2 && !left.stay && strstr(left.last, "/state.unfinished-abcdef"));
	assert_int_equal(state_clean(folder, false, note, NULL, &error), 0);
	assert_int_equal(left.n, 2);
	snprintf(text, sizeof(text), "%s/state.unfinished-folder", folder);
	assert_int_equal(mkdir(text, 0700), 0); /* no save's */
	assert_int_equal(chmod(beside("state.unfinished-share0", 0), 0644), 0);
	beside("a.unfinished-1.state.unfinished-abcdef", 0); /* one's, whose name has that, too */
	assert_int_equal(state_clean(folder, false, note, NULL, &error), 0);
	assert_true(left.n == 3 && !left.stay && strstr(left.last, "/a.unfinished-1.state."));
	rmdir(text);
	unlink(beside("state.unfinished-share0", 0));
	assert_int_equal(state_clean("/nowhere", false, note, NULL, &error), -1);
	assert_string_equal(
	    error.text, "/nowhere: there is no such folder: name the one where states are saved");
	error = (struct policy_error){0};
	assert_int_equal(state_clean(path, false, note, NULL, &error), -1);
	snprintf(text, sizeof(text), "%s: cannot be read: Not a directory", path);
	assert_string_equal(error.text, text);
	unlink(at);
	unlink(beside("state.unfinished-1234567", 0));
	unlink(beside("state.unfinished-12345", 0));
	unlink(beside("other", 0));
}

/* What befalls before a call. */
static void (*before_lock)(int operation), (*before_unlink)(const char *name);
static uint32_t locks;

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
int __real_unlinkat(int fd, const char *name, int flags);
int __wrap_unlinkat(int fd, const char *name, int flags);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

int __wrap_flock(int fd, int operation)
{
	locks++;
	if (before_lock)
		before_lock(operation);
	return __real_flock(fd, operation);
}

int __wrap_unlinkat(int fd, const char *name, int flags)
{
	if (before_unlink)
		before_unlink(name);
	return __real_unlinkat(fd, name, flags);
}

static void clean_once(int operation)
{
	if (operation != LOCK_EX)
		return;
	before_lock = NULL;
	assert_int_equal(state_clean(folder, false, note, NULL, &error), 0);
}

static void clean_always(int operation)
{
	if (operation == LOCK_EX)
		assert_int_equal(state_clean(folder, false, note, NULL, &error), 0);
}

static int save(void)
{
	struct state s;
	uint64_t bytes;
	int result;

	assert_int_equal(state_read(path, &s, &error), 0);
	memset(&left, 0, sizeof(left));
	locks = 0;
	result = state_write(path, &s, &bytes, &error);
	before_lock = NULL;
	state_free(&s);
	return result;
}

/* A save's file that is not locked yet is taken for left: it makes another. */
static void cleaned_before_it_is_locked(void **unused)
{
	(void)unused;
	put(whole, n);
	before_lock = clean_once;
	assert_int_equal(save(), 0);
	assert_int_equal(left.n, 1);
	as_it_was(NULL);
	assert_int_equal(in_folder(), 3);
	before_lock = clean_always; /* for so long as there is any sense in it */
	assert_int_equal(save(), -1);
	assert_true(left.n > 1 && locks == 2 * left.n);
	assert_non_null(
	    strstr(error.text, "cannot be written: Device or resource busy: nothing is"));
	assert_int_equal(in_folder(), 3);
	as_it_was(NULL);
}

static void is_held(const char *name)
{
	char at[300];
	int fd;

	snprintf(at, sizeof(at), "%s/%s", folder, name);
	fd = open(at, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(__real_flock(fd, LOCK_EX | LOCK_NB), -1);
	close(fd);
}

static void make_folder_of(const char *name)
{
	char at[300];

	snprintf(at, sizeof(at), "%s/%s", folder, name);
	assert_int_equal(unlink(at), 0);
	assert_int_equal(mkdir(at, 0700), 0);
}

static void give_it_its_name(int operation)
{
	char at[300];

	if (operation == LOCK_EX)
		return;
	before_lock = NULL;
	snprintf(at, sizeof(at), "%s/state.unfinished-abcdef", folder);
	assert_int_equal(__real_rename(at, path), 0);
}

/* What is removed is held until it is gone; what has its name by then is not. */
static void cleaned_as_it_is_saved(void **unused)
{
	char at[300];

	(void)unused;
	put(whole, n);
	memset(&left, 0, sizeof(left));
	beside("state.unfinished-abcdef", 0);
	before_unlink = is_held;
	assert_int_equal(state_clean(folder, false, note, NULL, &error), 0);
	before_unlink = make_folder_of;
	beside("state.unfinished-abcdef", 0);
	assert_int_equal(state_clean(folder, false, note, NULL, &error), 0);
	before_unlink = NULL;
	assert_true(left.n == 2 && left.stay == 1); /* it cannot be removed, and that is told */
	snprintf(at, sizeof(at), "%s/state.unfinished-abcdef", folder);
	rmdir(at);
	left.n = 1;
	beside("state.unfinished-abcdef", 0);
	before_lock = give_it_its_name;
	assert_int_equal(state_clean(folder, false, note, NULL, &error), 0);
	assert_null(before_lock);
	assert_int_equal(left.n, 1);
}

/* A save's file is held until it has its name. */
int __wrap_rename(const char *from, const char *to)
{
	if (!strncmp(from, folder, strlen(folder)))
		is_held(from + strlen(folder) + 1);
	if (ends_by)
		raise(ends_by);
	return __real_rename(from, to);
}

/* Another file gets the name that a save's file has. */
static void replace_once(int operation)
{
	DIR *d = opendir(folder);
	bool found = false;
	char at[600];

	(void)operation;
	before_lock = NULL;
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		if (strncmp(e->d_name, "state.unfinished-", strlen("state.unfinished-")) != 0)
			continue;
		snprintf(at, sizeof(at), "%s/%s", folder, e->d_name);
		found = true;
	}
	closedir(d);
	assert_true(found);
	assert_int_equal(__real_rename(beside("other", 0), at), 0);
}

/* A save's file whose name is another's by the time that it is locked: it makes one more. */
static void replaced_before_it_is_locked(void **unused)
{
	(void)unused;
	put(whole, n);
	before_lock = replace_once;
	assert_int_equal(save(), 0);
	assert_int_equal(locks, 2);
	as_it_was(NULL);
	assert_int_equal(state_clean(folder, false, note, NULL, &error), 0);
	assert_int_equal(left.n, 1);
	assert_int_equal(in_folder(), 3);
}

/* The second descriptor of a save's file cannot be had: what was there stays, and nothing is left.
 */
static void no_second_descriptor(void **unused)
{
	struct rlimit were, one_more;
	struct policy_error why;
	struct state s;
	uint64_t bytes;
	int result, next;

	(void)unused;
	put(whole, n);
	assert_int_equal(state_read(path, &s, &error), 0);
	next = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(next >= 0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &were), 0);
	one_more = (struct rlimit){(rlim_t)next + 1, were.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &one_more), 0);
	result = state_write(path, &s, &bytes, &why);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &were), 0);
	state_free(&s);
	assert_int_equal(result, -1);
	assert_non_null(strstr(why.text, "cannot be written: Too many open files: nothing is"));
	assert_int_equal(in_folder(), 3);
	as_it_was(NULL);
}

/* What the looks at a file fail by, once each; 0: they do not. */
static int fstat_fails, fstatat_fails;

static bool fails(int *cause)
{
	if (!*cause)
		return false;
	errno = *cause;
	*cause = 0;
	return true;
}

int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st)
{
	return fails(&fstat_fails) ? -1 : __real_fstat(fd, st);
}

int __real_fstatat(int fd, const char *name, struct stat *st, int flags);
int __wrap_fstatat(int fd, const char *name, struct stat *st, int flags);
int __wrap_fstatat(int fd, const char *name, struct stat *st, int flags)
{
	return fails(&fstatat_fails) ? -1 : __real_fstatat(fd, name, st, flags);
}

static void fail_fstat(int operation)
{
	(void)operation;
	fstat_fails = EIO;
}

static void fail_fstatat(int operation)
{
	(void)operation;
	fstatat_fails = EIO;
}

/* A save's file that cannot be looked at is not taken for one that was cleaned: it is removed. */
static void not_looked_at(void **unused)
{
	void (*const fail[])(int) = {fail_fstat, fail_fstatat};

	(void)unused;
	put(whole, n);
	for (size_t i = 0; i < ARRAY(fail); i++) {
		before_lock = fail[i];
		assert_int_equal(save(), -1);
		assert_non_null(
		    strstr(error.text, "cannot be written: Input/output error: nothing"));
		assert_int_equal(locks, 1);
		assert_int_equal(in_folder(), 3);
		as_it_was(NULL);
	}
}

/* Which of the calls that write it fails, from 1, once; 0: none does. */
static unsigned int fwrite_fails, fsync_fails, fclose_fails;

static bool is_turn(unsigned int *at)
{
	if (!*at || --*at)
		return false;
	errno = EIO;
	return true;
}

size_t __real_fwrite(const void *at, size_t bytes, size_t count, FILE *f);
size_t __wrap_fwrite(const void *at, size_t bytes, size_t count, FILE *f);
size_t __wrap_fwrite(const void *at, size_t bytes, size_t count, FILE *f)
{
	return is_turn(&fwrite_fails) ? 0 : __real_fwrite(at, bytes, count, f);
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
	return is_turn(&fsync_fails) ? -1 : __real_fsync(fd);
}

int __real_fclose(FILE *f);
int __wrap_fclose(FILE *f);
int __wrap_fclose(FILE *f)
{
	int result = __real_fclose(f);

	return is_turn(&fclose_fails) ? EOF : result;
}

static void is_not_saved(void)
{
	put(whole, n);
	assert_int_equal(save(), -1);
	assert_non_null(strstr(error.text, "cannot be written: Input/output error: nothing is"));
	assert_int_equal(in_folder(), 3);
	as_it_was(NULL);
}

/* Whichever call fails, if only once, and though the next ones do not: what was there stays. */
static void failed_once(void **unused)
{
	(void)unused;
	for (unsigned int i = 1; i <= 9; i++) { /* its header, its parts, and its sum */
		fwrite_fails = i + 1;		/* the first one is put's */
		is_not_saved();
	}
	fsync_fails = 1;
	is_not_saved();
	fclose_fails = 2;
	is_not_saved();
	assert_int_equal(fwrite_fails + fsync_fails + fclose_fails, 0);
}

/* The file has its name then, and that may not last: what is there is the new one, whole. */
static void its_name_may_not_last(void **unused)
{
	struct state s;

	(void)unused;
	put(whole, n);
	fsync_fails = 2; /* of its folder */
	assert_int_equal(save(), -1);
	assert_non_null(strstr(error.text, "/state: the state was written, but may not outlast a "
					   "power failure: Input/output error"));
	assert_int_equal(in_folder(), 3);
	assert_int_equal(state_read(path, &s, &error), 0);
	state_free(&s);
}

static enum { READS, INTERRUPTED, IN_PARTS, SHORTER } reads; /* how it is read */

static size_t got;   /* of it, so far */
static size_t taken; /* of any, by whole reads */

ssize_t __real_read(int fd, void *to, size_t bytes);
ssize_t __wrap_read(int fd, void *to, size_t bytes);
ssize_t __wrap_read(int fd, void *to, size_t bytes)
{
	if (reads == READS) {
		ssize_t is = __real_read(fd, to, bytes);

		taken += is > 0 ? (size_t)is : 0;
		return is;
	}
	if (reads == INTERRUPTED) {
		reads = IN_PARTS;
		errno = EINTR;
		return -1;
	}
	errno = 0;
	if (reads == SHORTER && got > n / 2)
		return 0;
	bytes = bytes < 4096 ? bytes : 4096;
	got += bytes;
	return __real_read(fd, to, bytes);
}

/* It comes in parts, and a signal may come in between; or it becomes shorter as it is read. */
static void read_in_parts(void **unused)
{
	struct state s;

	(void)unused;
	put(whole, n);
	reads = INTERRUPTED;
	assert_int_equal(state_read(path, &s, &error), 0);
	assert_int_equal(reads, IN_PARTS);
	assert_int_equal(s.lines[1023].word[0], 1);
	state_free(&s);
	reads = SHORTER;
	got = 0;
	assert_int_equal(state_read(path, &s, &error), -1);
	assert_non_null(strstr(error.text, ": the state cannot be read: Input/output error"));
	reads = READS;
}

/* Of a large file that is none, no more than a header is read. */
static void large(void **unused)
{
	(void)unused;
	taken = 0;
	put(NULL, 0);
	assert_int_equal(truncate(path, 64 << 20), 0);
	refused(path, NONE);
	assert_int_equal(taken, HEADER);
	put(whole, n);
	assert_int_equal(truncate(path, 64 << 20), 0);
	taken = 0;
	refused(path, CUT);
	assert_int_equal(taken, HEADER);
	/* as many lines as there may be, each in use, are no more than this */
	assert_true((sizeof(struct pacer_line) + 1) * PACER_LINES_MAX + n <= LARGEST);
}

/* All that its header says comes back. */
static void of_a_header(void **unused)
{
	struct state s, again;
	uint64_t bytes;

	(void)unused;
	put(whole, n);
	assert_int_equal(state_read(path, &s, &error), 0);
	assert_int_equal(s.secret_ready, PACER_SECRET_OF_TOOLS);
	assert_false(s.frozen);
	s.frozen = true;
	for (size_t i = 0; i < PACER_SECRETS; i++) {
		s.secret[0][i] = i + 1;
		s.secret[1][i] = ~i;
	}
	memset(s.clocks.boot_id, 'x', sizeof(s.clocks.boot_id));
	assert_int_equal(state_write(path, &s, &bytes, &error), 0);
	assert_int_equal(state_read(path, &again, &error), 0);
	assert_true(again.frozen);
	assert_memory_equal(again.secret, s.secret, sizeof(s.secret));
	assert_int_equal(strlen(again.clocks.boot_id), sizeof(s.clocks.boot_id) - 1);
	state_free(&again);
	state_free(&s);
}

static void save_again(void)
{
	(void)save();
}

/* A signal that comes while it is saved ends it once nothing is left beside it. */
static void ended_as_it_is_saved(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(ending) / sizeof(*ending); i++) {
		put(whole, n);
		assert_true(ended_by(ending[i], save_again));
		as_it_was(NULL);
		assert_int_equal(in_folder(), 3);
	}
}

static void no_files(void **unused)
{
	char other[80];
	int fd;

	(void)unused;
	refused(folder, REGULAR);
	refused("/dev/zero", REGULAR);
	refused("/nowhere/x", "%s: the state cannot be read: No such file or directory");
	snprintf(other, sizeof(other), "%s/pipe", folder);
	assert_int_equal(mkfifo(other, 0600), 0);
	refused(other, REGULAR);
	unlink(other);
	fd = open(beside("huge", 0), O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, LARGEST + 1), 0);
	snprintf(other, sizeof(other), "%s/huge", folder);
	refused(other, "%s: the state cannot be read: File too large");
	unlink(other);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(as_it_was),
	    cmocka_unit_test(of_version_1),
	    cmocka_unit_test(torn),
	    cmocka_unit_test(forged),
	    cmocka_unit_test(no_truth_value),
	    cmocka_unit_test(no_files),
	    cmocka_unit_test(beyond),
	    cmocka_unit_test(too_long_a_list),
	    cmocka_unit_test(long_runs),
	    cmocka_unit_test(full),
	    cmocka_unit_test(nowhere),
	    cmocka_unit_test(of_a_folder),
	    cmocka_unit_test(of_a_name),
	    cmocka_unit_test(cleaned),
	    cmocka_unit_test(cleaned_before_it_is_locked),
	    cmocka_unit_test(cleaned_as_it_is_saved),
	    cmocka_unit_test(replaced_before_it_is_locked),
	    cmocka_unit_test(no_second_descriptor),
	    cmocka_unit_test(not_looked_at),
	    cmocka_unit_test(read_in_parts),
	    cmocka_unit_test(large),
	    cmocka_unit_test(failed_once),
	    cmocka_unit_test(its_name_may_not_last),
	    cmocka_unit_test(of_a_header),
	    cmocka_unit_test(ended_as_it_is_saved),
	};

	return cmocka_run_group_tests(tests, with_state, without_state);
}
