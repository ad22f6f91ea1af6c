/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/durable.h"
#include "ended.h"
#include "failing.h"
#include "keys/keys.h"
#include "oracle.h"
#include "starved.h"
#include "throttle_oracle.h"

#define SECOND	  1000000000ull
#define MINUTE	  (60 * SECOND)
#define STATE_MAX 65536

static struct policy_error error;

/* ---- a clock to set, and a file to do without ---- */

struct machine {
	struct keys_clock clock;
	uint64_t up_ns;
};

static uint64_t machine_now(void *arg)
{
	return ((struct machine *)arg)->up_ns;
}

static void machine_start(struct machine *m, uint8_t boot, uint64_t up_ns)
{
	*m = (struct machine){{machine_now, m, {boot}}, up_ns};
}

static char path[64], other_path[80];

static int make_paths(void **unused)
{
	const char *folder = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";

	(void)unused;
	snprintf(path, sizeof(path), "%s/test_keys.%d", folder, (int)getpid());
	snprintf(other_path, sizeof(other_path), "%s.other", path);
	return 0;
}

static int remove_files(void **unused)
{
	(void)unused;
	unlink(path);
	unlink(other_path);
	return 0;
}

static size_t read_state(const char *name, unsigned char *bytes)
{
	int fd = open(name, O_RDONLY);
	ssize_t got = fd < 0 ? 0 : pread(fd, bytes, STATE_MAX, 0);

	if (fd >= 0)
		close(fd);
	return got < 0 ? 0 : (size_t)got;
}

static void write_state(const char *name, const unsigned char *bytes, size_t len)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
	close(fd);
}

static struct keys_list listed(const char *text)
{
	struct keys_list list;

	assert_int_equal(keys_parse(text, strlen(text), ',', &list, &error), 0);
	return list;
}

static struct keys *opened(const struct keys_list *list, const struct keys_limits *limits,
			   const char *name, const struct machine *m)
{
	struct keys *keys;

	if (keys_open(list, limits, name, &m->clock, &keys, &error) != KEYS_OPEN)
		fail_msg("%s", error.text);
	return keys;
}

static void closed(struct keys *keys)
{
	assert_int_equal(keys_close(keys, &error), 0);
}

/* "a", or "-". */
static const char *next(struct keys *keys)
{
	struct keys_given given;
	enum keys_answer answer = keys_next(keys, &given, &error);

	assert_int_not_equal(answer, KEYS_FAILED);
	return answer == KEYS_GIVEN ? given.name : "-";
}

static void expect(struct keys *keys, const char *names)
{
	for (; *names; names++)
		if (*next(keys) != *names)
			fail_msg("not as expected before \"%s\"", names);
}

/* ---- the list ---- */

static void test_lists(void **unused)
{
	static const struct {
		const char *text;
		char separator;
		const char *keys; /* joined by |; NULL: an error */
		int line;	  /* or its number */
	} rows[] = {
	    {"a,b,c", ',', "a|b|c", 0},
	    {"a", ',', "a", 0},
	    {" a , b c\t", ',', "a|b c", 0},
	    {"#a,b", ',', "#a|b", 0},
	    {"a,,b", ',', NULL, 0},
	    {"a,", ',', "a", 0}, /* as a list of one has a comma, too */
	    {"a,b,", ',', "a|b", 0},
	    {"a,,", ',', NULL, 0},
	    {",", ',', NULL, 0},
	    {"", ',', NULL, 0},
	    {"a,b,a", ',', NULL, 0},
	    {"a,-", ',', NULL, 0},
	    {"a,b\nc", ',', NULL, 0},
	    {"a\nb\n", '\n', "a|b", 0},
	    {"a\r\nb", '\n', "a|b", 0},
	    {"# keys\n\n  a\n\t\n #b\nc,d\n", '\n', "a|c,d", 0},
	    {"", '\n', NULL, 0},
	    {"\n# none\n", '\n', NULL, 0},
	    {"a\n\na\n", '\n', NULL, 3},
	    {"a\n-\n", '\n', NULL, 2},
	    /* a mark of UTF-8 is none of the first key's */
	    {"\xef\xbb\xbf"
	     "a\n\xef\xbb\xbf"
	     "b\n",
	     '\n',
	     "a|\xef\xbb\xbf"
	     "b",
	     0},
	    {"\xef\xbb\xbf# keys\na\n", '\n', "a", 0},
	    {"\xef\xbb\xbf", '\n', NULL, 0},
	    {"\xef\xbb", '\n', "\xef\xbb", 0},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		struct keys_list list;
		char joined[64] = "";
		int result = keys_parse(rows[i].text, strlen(rows[i].text), rows[i].separator,
					&list, &error);

		assert_int_equal(result, rows[i].keys ? 0 : -1);
		if (result) {
			assert_int_equal(error.line, rows[i].line);
			continue;
		}
		for (uint32_t j = 0; j < list.n; j++) {
			strcat(joined, j ? "|" : "");
			strcat(joined, list.name[j]);
		}
		assert_string_equal(joined, rows[i].keys);
		keys_list_free(&list);
	}
}

static void test_lists_that_are_too_long(void **unused)
{
	static char text[(KEYS_MAX + 1) * 8];
	struct keys_list list;
	size_t len = 0;

	(void)unused;
	memset(text, 'k', KEYS_NAME_MAX + 1);
	assert_int_equal(keys_parse(text, KEYS_NAME_MAX, '\n', &list, &error), 0);
	keys_list_free(&list);
	assert_int_equal(keys_parse(text, KEYS_NAME_MAX + 1, '\n', &list, &error), -1);
	assert_int_equal(keys_parse("a\0b", 3, '\n', &list, &error), -1);
	assert_int_equal(keys_parse("a\0\n", 3, '\n', &list, &error), -1);
	assert_int_equal(keys_parse("\0a\n", 3, '\n', &list, &error), -1);
	assert_int_equal(keys_parse("a\n\0\n", 4, '\n', &list, &error), -1);
	for (uint32_t i = 0; i <= KEYS_MAX; i++) {
		if (i == KEYS_MAX) {
			assert_int_equal(keys_parse(text, len, '\n', &list, &error), 0);
			assert_int_equal(list.n, KEYS_MAX);
			keys_list_free(&list);
		}
		len += (size_t)sprintf(text + len, "%u\n", i);
	}
	assert_int_equal(keys_parse(text, len, '\n', &list, &error), -1);
}

/* ---- the limits ---- */

static void test_limits(void **unused)
{
	static const struct {
		struct keys_limits limits;
		uint32_t n, threshold; /* of each key; 0: refused */
	} rows[] = {
	    {{500, 50, 10 * MINUTE, 11 * MINUTE}, 1, 50},
	    {{500, 50, 10 * MINUTE, 11 * MINUTE}, 3, 16},
	    {{500, 500, 10 * MINUTE, 11 * MINUTE}, 1000, 0},
	    {{500, 0, 10 * MINUTE, 11 * MINUTE}, 1000, 3},
	    {{500, 50, 10 * MINUTE, 11 * MINUTE}, 50, 0},
	    {{500, 0, 10 * MINUTE, 0}, 3, 5},
	    {{120, 0, 10 * MINUTE, 0}, 3, 1},
	    {{1, 0, 1, 0}, KEYS_MAX, 1},
	    {{UINT32_MAX, 0, 1ull << 62, 0}, 1, 35791395},
	    {{200, 50, 10 * MINUTE, 0}, 50, 1},
	    {{239, 1, 10 * MINUTE, 0}, 1, 1}, /* every bucket but the one that is open */
	    {{240, 1, 10 * MINUTE, 0}, 1, 0},
	    {{0, 0, 10 * MINUTE, 0}, 1, 0},
	    {{5, 0, 0, 0}, 1, 0},
	    {{5, 6, 10 * MINUTE, 0}, 1, 0},
	    {{5, 0, MINUTE, 0}, 0, 0},
	    {{5, 0, UINT64_MAX, 0}, 1, 0},
	    {{5, 5, 10 * MINUTE, 10 * MINUTE}, 1, 0},
	    {{5, 5, 10 * MINUTE, 9 * MINUTE}, 1, 0},
	    {{5, 5, 10 * MINUTE, 10 * MINUTE + SECOND}, 1, 0},
	    {{5, 5, 10 * MINUTE, 10 * MINUTE + 3 * SECOND}, 1, 5},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		struct pacer_throttle_profile profile = {0};
		int result = keys_profile(&rows[i].limits, rows[i].n, &profile, &error);

		assert_int_equal(result, rows[i].threshold ? 0 : -1);
		assert_int_equal(profile.threshold, rows[i].threshold);
		assert_true(profile.buckets <= PACER_THROTTLE_BUCKETS);
		if (!result)
			assert_int_equal(profile.cooldown_ns, rows[i].limits.window_ns);
	}
}

/* ---- handing out ---- */

/* "500 times every 10mn", three keys. */
static void test_the_challenge(void **unused)
{
	struct keys_limits limits = {500, 50, 10 * MINUTE, 11 * MINUTE};
	struct keys_list list = listed("a,b,c");
	struct machine m;
	struct keys *keys;

	(void)unused;
	machine_start(&m, 1, SECOND);
	keys = opened(&list, &limits, NULL, &m);
	for (int i = 0; i < 500; i++)
		expect(keys, "abc");
	expect(keys, "---");
	m.up_ns += 10 * MINUTE - 1;
	expect(keys, "-");
	m.up_ns++;
	for (int i = 0; i < 500; i++)
		expect(keys, "abc");
	expect(keys, "-");
	closed(keys);
	keys_list_free(&list);
}

struct run {
	struct keys_limits limits;
	struct keys_list list;
	struct machine machine;
	struct oracle used[4];
};

static void judge_none(const struct run *r, const struct keys_given *given)
{
	uint64_t t = r->machine.up_ns, sum = 0;

	for (uint32_t i = 0; i < r->list.n; i++) {
		sum += r->limits.max - oracle_within(&r->used[i], t, r->limits.window_ns);
		if (r->limits.max_window_ns)
			assert_true(oracle_within(&r->used[i], t, r->limits.max_window_ns) >=
				    r->limits.max);
	}
	if (r->limits.threshold)
		assert_true(sum < r->limits.threshold);
	else if (r->limits.max <= 120)
		assert_int_equal(sum, 0);
	assert_true(given->wait_ns > 0);
}

static void judge_fake(struct run *r, const char *name)
{
	struct oracle *used = &r->used[*name - 'a'];

	used->time[used->uses++] = r->machine.up_ns;
	assert_true(oracle_within(used, r->machine.up_ns, r->limits.window_ns) <= r->limits.max);
}

static uint64_t step_of(const struct run *r)
{
	switch (draw() % 16) {
	case 0:
		return between(0, 2 * r->limits.window_ns);
	case 1:
		return r->limits.window_ns - draw() % 2;
	case 2:
	case 3:
		return between(0, r->limits.window_ns / r->limits.max + 1);
	default:
		return 0;
	}
}

static void draw_run(struct run *r)
{
	static const char *const lists[] = {"a", "a,b", "a,b,c", "a,b,c,d"};
	struct pacer_throttle_profile profile;

	r->list = listed(lists[draw() % 4]);
	do {
		r->limits = (struct keys_limits){.max = between(1, draw() % 2 ? 5 : 300),
						 .window_ns = between(1, 5000)};
		if (draw() % 2)
			r->limits.threshold = between(1, r->limits.max);
		if (draw() % 2)
			r->limits.max_window_ns =
			    r->limits.window_ns + between(1, r->limits.window_ns);
	} while (keys_profile(&r->limits, r->list.n, &profile, &error));
	machine_start(&r->machine, 1, 1ull << 40);
	for (int i = 0; i < 4; i++)
		r->used[i].uses = 0;
}

/* Two processes' worth of one file, or one in memory, against every use of every key. */
static void run_random(struct run *r, const char *name, int calls)
{
	struct keys *keys[2] = {NULL};
	struct keys_given given;
	int n = name ? 2 : 1;

	draw_run(r);
	unlink(path);
	for (int i = 0; i < n; i++)
		keys[i] = opened(&r->list, &r->limits, name, &r->machine);
	for (int i = 0; i < calls; i++) {
		int who = (int)(draw() % n);

		r->machine.up_ns += step_of(r);
		if (name && draw() % 32 == 0) { /* a run ends and another begins */
			closed(keys[who]);
			keys[who] = opened(&r->list, &r->limits, name, &r->machine);
		}
		switch (keys_next(keys[who], &given, &error)) {
		case KEYS_GIVEN:
			judge_fake(r, given.name);
			break;
		case KEYS_NONE:
			judge_none(r, &given);
			break;
		case KEYS_FAILED:
			fail_msg("%s", error.text);
		}
	}
	for (int i = 0; i < n; i++)
		closed(keys[i]);
	keys_list_free(&r->list);
}

static void test_random_runs(void **unused)
{
	static struct run r;

	(void)unused;
	oracle_seed(5);
	for (int i = 0; i < 200; i++)
		run_random(&r, NULL, 2000);
	for (int i = 0; i < 40; i++)
		run_random(&r, path, 2000);
}

/* The wait is exact: a moment sooner there is none. */
static void test_the_wait(void **unused)
{
	struct keys_limits limits = {3, 0, 1000, 0};
	struct keys_list list = listed("a,b");
	struct keys_given given;
	struct machine m;
	struct keys *keys;

	(void)unused;
	machine_start(&m, 1, 77);
	keys = opened(&list, &limits, NULL, &m);
	for (int i = 0; i < 6; i++, m.up_ns += 10)
		expect(keys, i % 2 ? "b" : "a");
	assert_int_equal(keys_next(keys, &given, &error), KEYS_NONE);
	assert_int_equal(given.wait_ns, 1000 - 60);
	m.up_ns += given.wait_ns - 1;
	expect(keys, "-");
	m.up_ns++;
	expect(keys, "a-");
	closed(keys);
	keys_list_free(&list);
}

/* ---- the file ---- */

static void test_runs_share_a_file(void **unused)
{
	struct keys_limits limits = {2, 0, MINUTE, 0};
	struct keys_list list = listed("a,b,c");
	struct machine m;
	struct keys *one, *two;
	struct stat at;

	(void)unused;
	unlink(path);
	machine_start(&m, 1, SECOND);
	one = opened(&list, &limits, path, &m);
	assert_int_equal(stat(path, &at), 0);
	assert_int_equal(at.st_mode & 0777, 0600);
	expect(one, "ab");
	two = opened(&list, &limits, path, &m);
	expect(two, "c");
	expect(one, "a");
	closed(one);
	expect(two, "b");
	closed(two);
	one = opened(&list, &limits, path, &m);
	expect(one, "c--");
	m.up_ns += MINUTE;
	expect(one, "abcabc-");
	closed(one);
	keys_list_free(&list);
}

/* Keys keep their uses while they are off the list; new ones have none. */
static void test_another_list(void **unused)
{
	struct keys_limits limits = {2, 0, MINUTE, 0};
	struct keys_list old = listed("a,b"), new = listed("d,b,c");
	struct machine m;
	struct keys *keys, *beside;

	(void)unused;
	unlink(path);
	machine_start(&m, 1, SECOND);
	keys = opened(&old, &limits, path, &m);
	expect(keys, "aba");
	beside = opened(&new, &limits, path, &m);
	expect(beside, "dbcdc-"); /* a is not its own: it begins at its first */
	expect(keys, "--");
	closed(beside);
	closed(keys);
	keys = opened(&old, &limits, path, &m);
	expect(keys, "-");
	m.up_ns += MINUTE;
	expect(keys, "a");
	closed(keys);
	keys_list_free(&old);
	keys_list_free(&new);
}

static void refused(const struct keys_list *list, const struct keys_limits *limits,
		    const struct machine *m, const unsigned char *bytes, size_t len)
{
	static unsigned char after[STATE_MAX];
	struct keys *keys;

	write_state(other_path, bytes, len);
	assert_int_equal(keys_open(list, limits, other_path, &m->clock, &keys, &error),
			 KEYS_REFUSED);
	assert_null(keys);
	assert_int_equal(read_state(other_path, after), len);
	assert_memory_equal(after, bytes, len);
	assert_null(strchr(error.text, '\n'));
}

/* Of a file for {2, 0, MINUTE, 0}: which options were others is said, and no more. */
static void refused_by_others(const struct keys_list *list, struct machine *m,
			      const unsigned char *bytes, size_t len)
{
	static const struct {
		struct keys_limits limits;
		const char *kept_for;
	} others[] = {{{3, 0, MINUTE, 0}, "--max 2"},
		      {{2, 1, MINUTE, 0}, "no --threshold"},
		      {{2, 0, 2 * MINUTE, 0}, "--window 1m"},
		      {{2, 0, MINUTE, 2 * MINUTE}, "no --max-window"},
		      {{7, 1, 2 * MINUTE, 0}, "--max 2, --window 1m, no --threshold"}};
	char text[128];

	for (size_t i = 0; i < ARRAY(others); i++) {
		refused(list, &others[i].limits, m, bytes, len);
		snprintf(text, sizeof(text), "it is kept for %s: give the same, or another file",
			 others[i].kept_for);
		assert_string_equal(error.text, text);
	}
}

static void test_what_is_not_its_own_is_refused_and_left(void **unused)
{
	static unsigned char bytes[STATE_MAX];
	struct keys_limits limits = {2, 0, MINUTE, 0};
	/* the size of a record; n, last and which epoch; a's name, its end, and which copy */
	static const struct {
		size_t at;
		unsigned char value;
	} forged[] = {{12, 0},	{49, 0x40},	  {52, 3},	 {60, 2},
		      {136, 0}, {136 + 255, 'x'}, {136 + 256, 2}};
	struct keys_list list = listed("a,b");
	struct machine m;
	struct keys *keys;
	size_t len;

	(void)unused;
	unlink(path);
	machine_start(&m, 1, SECOND);
	keys = opened(&list, &limits, path, &m);
	expect(keys, "aba");
	closed(keys);
	len = read_state(path, bytes);
	refused_by_others(&list, &m, bytes, len);
	for (size_t cut = 0; cut < len; cut += cut < 200 ? 1 : 97)
		refused(&list, &limits, &m, bytes, cut);
	refused(&list, &limits, &m, bytes, len - 1);
	for (size_t at = 0; at < 48; at++) { /* what it is, its version and its limits */
		bytes[at] ^= 0x40;
		refused(&list, &limits, &m, bytes, len);
		bytes[at] ^= 0x40;
	}
	for (size_t i = 0; i < ARRAY(forged); i++) {
		unsigned char was = bytes[forged[i].at];

		bytes[forged[i].at] = forged[i].value;
		refused(&list, &limits, &m, bytes, len);
		assert_non_null(strstr(error.text, "it is damaged"));
		bytes[forged[i].at] = was;
	}
	/* a's second use is in its first copy: every byte of its throttle counts */
	for (size_t at = len - 2 * 12776 + 264; at < len - 2 * 12776 + 264 + 6256; at += 13) {
		bytes[at] ^= 1;
		refused(&list, &limits, &m, bytes, len);
		bytes[at] ^= 1;
	}
	write_state(other_path, bytes, len);
	keys = opened(&list, &limits, other_path, &m);
	expect(keys, "b-");
	closed(keys);
	assert_int_equal(keys_open(&list, &limits, "/", &m.clock, &keys, &error), KEYS_UNABLE);
	assert_int_equal(keys_open(&list, &limits, "/nowhere/at/all", &m.clock, &keys, &error),
			 KEYS_UNABLE);
	assert_int_equal(keys_open(&list, &limits, "/dev/null", &m.clock, &keys, &error),
			 KEYS_REFUSED);
	unlink(other_path);
	assert_int_equal(symlink("/nowhere/at/all", other_path), 0);
	assert_int_equal(keys_open(&list, &limits, other_path, &m.clock, &keys, &error),
			 KEYS_UNABLE);
	unlink(other_path);
	assert_int_equal(keys_open(&list, &(struct keys_limits){0}, path, &m.clock, &keys, &error),
			 KEYS_REFUSED);
	keys_list_free(&list);
}

/* A file that remembers keys of former lists may have no room for those of this one. */
static void test_a_file_that_is_full(void **unused)
{
	static char name[KEYS_MAX][KEYS_NAME_MAX + 1];
	struct keys_limits limits = {2, 0, MINUTE, 0};
	struct keys_list list = listed("a,b"), many = {KEYS_MAX, name};
	struct machine m;
	struct keys *keys;

	(void)unused;
	unlink(path);
	machine_start(&m, 1, SECOND);
	closed(opened(&list, &limits, path, &m));
	for (uint32_t i = 0; i < KEYS_MAX; i++)
		sprintf(name[i], "%u", i);
	assert_int_equal(keys_open(&many, &limits, path, &m.clock, &keys, &error), KEYS_REFUSED);
	assert_non_null(strstr(error.text, "4098 keys"));
	keys = opened(&list, &limits, path, &m);
	expect(keys, "abab-");
	closed(keys);
	keys_list_free(&list);
}

static void test_a_file_that_goes_ends_it(void **unused)
{
	struct keys_limits limits = {2, 0, MINUTE, 0};
	struct keys_list list = listed("a,b");
	struct keys_given given;
	struct machine m;
	struct keys *keys;

	(void)unused;
	unlink(path);
	machine_start(&m, 1, SECOND);
	keys = opened(&list, &limits, path, &m);
	expect(keys, "a");
	unlink(path);
	assert_int_equal(keys_next(keys, &given, &error), KEYS_FAILED);
	closed(keys);
	keys = opened(&list, &limits, path, &m);
	assert_int_equal(truncate(path, 1000), 0);
	assert_int_equal(keys_next(keys, &given, &error), KEYS_FAILED);
	closed(keys);
	keys_list_free(&list);
}

/* ---- the machine starts again ---- */

static void test_time_goes_on_after_a_restart(void **unused)
{
	struct keys_limits limits = {2, 0, MINUTE, 0};
	struct keys_list list = listed("a");
	struct machine m;
	struct keys *keys;

	(void)unused;
	unlink(path);
	machine_start(&m, 1, 5000 * SECOND);
	keys = opened(&list, &limits, path, &m);
	expect(keys, "a");
	m.up_ns += 20 * SECOND;
	expect(keys, "a-");
	closed(keys);
	machine_start(&m, 2, 0); /* the time that it was off is not known: none */
	keys = opened(&list, &limits, path, &m);
	expect(keys, "-");
	m.up_ns = 40 * SECOND - 1;
	expect(keys, "-");
	m.up_ns++;
	expect(keys, "a-");
	closed(keys);
	machine_start(&m, 3, 7 * SECOND);
	keys = opened(&list, &limits, path, &m);
	m.up_ns = 20 * SECOND - 1;
	expect(keys, "-");
	m.up_ns++;
	expect(keys, "a-");
	closed(keys);
	keys_list_free(&list);
}

/* The power fails: what had been synced last is all that there is. */
static void test_a_power_cut(void **unused)
{
	static unsigned char bytes[STATE_MAX];
	struct keys_limits limits = {2, 0, MINUTE, 0};
	struct keys_list list = listed("a,b");
	struct keys_given given;
	struct machine m;
	struct keys *keys;
	size_t len;

	(void)unused;
	unlink(path);
	machine_start(&m, 1, 5000 * SECOND);
	keys = opened(&list, &limits, path, &m);
	expect(keys, "a");
	len = read_state(path, bytes); /* marked before the first use, and not unmarked */
	expect(keys, "bab-");
	closed(keys);
	write_state(other_path, bytes, len);
	machine_start(&m, 2, 3 * SECOND);
	keys = opened(&list, &limits, other_path, &m);
	assert_int_equal(keys_next(keys, &given, &error), KEYS_NONE);
	assert_int_equal(given.wait_ns, 57 * SECOND);
	m.up_ns = MINUTE - 1;
	expect(keys, "-");
	closed(keys);
	machine_start(&m, 3, 0); /* starting again does not open it sooner */
	keys = opened(&list, &limits, other_path, &m);
	expect(keys, "-");
	m.up_ns = 1;
	expect(keys, "baba-");
	closed(keys);
	keys_list_free(&list);
}

static void test_a_clock_that_runs_back(void **unused)
{
	struct keys_limits limits = {1, 0, MINUTE, 0};
	struct keys_list list = listed("a,b");
	struct machine m;
	struct keys *keys;

	(void)unused;
	unlink(path);
	machine_start(&m, 1, 5000 * SECOND);
	keys = opened(&list, &limits, path, &m);
	expect(keys, "a");
	m.up_ns = 10 * SECOND;
	expect(keys, "b-");
	closed(keys);
	keys = opened(&list, &limits, path, &m);
	m.up_ns = 5000 * SECOND + MINUTE - 1;
	expect(keys, "-");
	m.up_ns++;
	expect(keys, "ab-");
	closed(keys);
	keys_list_free(&list);
}

/* ---- calls and allocations that fail ---- */

/* The number that the next open file would have. */
static int next_fd(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

/* Names beside `path` that make_file() gave up. */
static int left_beside(void)
{
	char pattern[80];
	glob_t found;
	int n;

	snprintf(pattern, sizeof(pattern), "%s.??????", path);
	n = glob(pattern, 0, NULL, &found) ? 0 : (int)found.gl_pathc;
	globfree(&found);
	return n;
}

/* Opens, takes three uses and closes, while a call fails: how many it was given. *well: nothing
 * was said to fail. */
static uint32_t use_thrice(const struct keys_list *list, const struct keys_limits *limits,
			   const struct machine *m, bool *well)
{
	struct keys_given given;
	enum keys_opened opened;
	uint32_t told = 0;
	struct keys *keys;

	*error.text = 0;
	failing.on = memory.on = true;
	opened = keys_open(list, limits, path, &m->clock, &keys, &error);
	*well = opened == KEYS_OPEN;
	for (int i = 0; i < 3 && opened == KEYS_OPEN; i++) {
		enum keys_answer answer = keys_next(keys, &given, &error);

		told += answer == KEYS_GIVEN;
		*well &= answer == KEYS_GIVEN;
	}
	if (opened == KEYS_OPEN)
		*well &= !keys_close(keys, &error);
	failing.on = memory.on = false;
	assert_true(opened == KEYS_OPEN || (opened == KEYS_UNABLE && !keys));
	return told;
}

/* What was handed out is counted, whatever fails; and nothing is left but the file. */
static void fail_once(const struct keys_list *list, const struct machine *m, bool made, int cause)
{
	static const struct keys_limits limits = {3, 0, MINUTE, 0};
	struct keys_list first = {1, list->name};
	uint32_t told, left = 0;
	int fd = next_fd();
	struct keys *keys;
	bool well;

	unlink(path);
	if (made)
		closed(opened(&first, &limits, path, m));
	told = use_thrice(list, &limits, m, &well);
	if (well)
		assert_int_equal(told, 3);
	else if (!strstr(error.text, "keys: cannot be kept: "))
		assert_ptr_equal(strstr(error.text, path), error.text);
	if (!well)
		assert_true(strstr(error.text, strerror(cause)) ||
			    strstr(error.text, "removed, renamed or cut off meanwhile"));
	assert_int_equal(next_fd(), fd);
	assert_int_equal(left_beside(), 0);
	keys = opened(list, &limits, path, m);
	while (*next(keys) != '-')
		left++;
	closed(keys);
	assert_int_equal(left, 2 * 3 - told);
}

static void unlink_path(void)
{
	unlink(path);
}

static void test_any_call_fails(void **unused)
{
	struct keys_list list = listed("a,b");
	struct machine m;

	(void)unused;
	machine_start(&m, 1, SECOND);
	for (int made = 0; made < 2; made++) {
		uint32_t n = 0;

		for (uint32_t at = 1; n >= at - 1; at++) {
			failing_from(at, EIO, NULL);
			fail_once(&list, &m, made, EIO);
			n = failing.n;
		}
		assert_true(n > 15);
		failing_from(0, 0, NULL);
		starved_from(1, true);
		fail_once(&list, &m, made, ENOMEM);
		starved_from(0, false);
	}
	keys_list_free(&list);
}

/* There is no file: */
static void test_memory_fails(void **unused)
{
	static const struct keys_limits limits = {3, 0, MINUTE, 0};
	struct keys_list list = listed("a,b"), none;
	struct machine m;
	struct keys *keys;

	(void)unused;
	machine_start(&m, 1, SECOND);
	failing_from(1, ENOMEM, "mmap");
	failing.on = true;
	assert_int_equal(keys_open(&list, &limits, NULL, &m.clock, &keys, &error), KEYS_UNABLE);
	failing.on = false;
	assert_string_equal(error.text, "keys: cannot be kept: Cannot allocate memory");
	starved_from(1, false);
	memory.on = true;
	assert_int_equal(keys_parse("a,b", 3, ',', &none, &error), -1);
	memory.on = false;
	assert_string_equal(error.text, "no memory for the keys");
	keys_list_free(&list);
}

/* However long its name is, it is told what was wrong with the file. */
static void test_long_path(void **unused)
{
	static const struct keys_limits limits = {3, 0, MINUTE, 0};
	struct keys_list list = listed("a,b");
	char no_file[1001] = "", looped[1001] = "";
	struct machine m;
	struct keys *keys;

	(void)unused;
	machine_start(&m, 1, SECOND);
	for (int i = 0; i < 250; i++)
		strcat(no_file, "/no/");
	assert_int_equal(keys_open(&list, &limits, no_file, &m.clock, &keys, &error), KEYS_UNABLE);
	assert_non_null(strstr(error.text, ": cannot be made: No such file or directory"));
	for (int i = 0; i < 250; i++)
		strcat(looped, "/./.");
	assert_int_equal(keys_open(&list, &limits, looped, &m.clock, &keys, &error), KEYS_UNABLE);
	assert_non_null(strstr(error.text, ": cannot be opened: Is a directory"));
	keys_list_free(&list);
}

/* What another process does meanwhile, and what a file system may say. */
static void test_calls_that_may_fail(void **unused)
{
	static const struct {
		const char *call;
		int cause;
		bool well;
	} rows[] = {
	    {"link", EEXIST, true}, /* it is gone again, and made anew */
	    {"fcntl", EINTR, true},
	    {"open", EACCES, false},
	};
	static const struct keys_limits limits = {3, 0, MINUTE, 0};
	struct keys_list list = listed("a,b");
	struct machine m;
	bool well;

	(void)unused;
	machine_start(&m, 1, SECOND);
	for (size_t i = 0; i < ARRAY(rows); i++) {
		unlink(path);
		failing_from(1, rows[i].cause, rows[i].call);
		(void)use_thrice(&list, &limits, &m, &well);
		assert_int_equal(well, rows[i].well);
	}
	/* the second fsync is of the folder, of which some file systems know nothing */
	unlink(path);
	failing_from(2, EINVAL, "fsync");
	assert_int_equal(use_thrice(&list, &limits, &m, &well), 3);
	assert_true(well && failing.n == 2);
	unlink(path);
	failing_from(1, EINVAL, "fsync");
	assert_int_equal(use_thrice(&list, &limits, &m, &well), 0);
	assert_true(!well && access(path, F_OK));
	/* another process removes it while this one waits for the lock */
	failing_from(1, 0, "fcntl");
	failing.before = unlink_path;
	closed(opened(&list, &limits, path, &m));
	assert_int_equal(use_thrice(&list, &limits, &m, &well), 3);
	assert_true(well && !access(path, F_OK));
	failing_from(0, 0, NULL);
	keys_list_free(&list);
}

static void fails_by(int cause, int result)
{
	assert_int_equal(errno, cause);
	assert_int_equal(result, -1);
}

/* Wherever its name puts it, and where there is no room for it. */
static void test_where_a_file_lies(void **unused)
{
	char far[PATH_MAX + 1] = "", was[PATH_MAX];
	const char *name = strrchr(path, '/') + 1;
	struct rlimit had, some;

	(void)unused;
	unlink(path);
	assert_non_null(getcwd(was, sizeof(was)));
	assert_int_equal(chdir(access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm"), 0);
	assert_int_equal(durable_make(name, "abc", 3), 0);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(chdir(was), 0);
	unlink(path);
	memset(far, 'x', sizeof(far) - 1);
	fails_by(ENAMETOOLONG, durable_make(far, "abc", 3));
	failing_from(1, EDOM, "fsync");
	failing.on = true;
	fails_by(EDOM, durable_name("/file"));
	failing.on = false;
	failing_from(0, 0, NULL);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &had), 0);
	some = (struct rlimit){2, had.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &some), 0);
	fails_by(EFBIG, durable_make(path, "abc", 3));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &had), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(left_beside(), 0);
}

static void end(void)
{
	raise(ends_by);
}

static const char *ends_at;

static void make_ended(void)
{
	failing_from(1, 0, ends_at);
	failing.before = end;
	failing.on = true;
	(void)!durable_make(path, "abc", 3);
}

/* A signal that comes while a file is made ends it once nothing is left beside that. */
static void test_ended_as_it_is_made(void **unused)
{
	static const char *const at[] = {"mkostemp", "write", "fsync", "link"};

	(void)unused;
	for (size_t i = 0; i < ARRAY(at); i++) {
		for (size_t k = 0; k < ARRAY(ending); k++) {
			unlink(path);
			ends_at = at[i];
			assert_true(ended_by(ending[k], make_ended));
			assert_int_equal(access(path, F_OK), 0);
			assert_int_equal(left_beside(), 0);
		}
	}
}

/* ---- killed at any instruction ---- */

#define KILL_MAX 2

static void use_twice(volatile uint32_t *told, const struct keys_list *list,
		      const struct keys_limits *limits, const struct machine *m)
{
	struct keys_given given;
	struct keys *keys;

	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	if (keys_open(list, limits, path, &m->clock, &keys, &error) != KEYS_OPEN)
		_exit(1);
	for (int i = 0; i < 2; i++) {
		if (keys_next(keys, &given, &error) != KEYS_GIVEN)
			_exit(1);
		++*told;
	}
	_exit(keys_close(keys, &error) ? 1 : 0);
}

/* Whoever comes after a kill that left this finds a whole file, and as many uses as were not told
 * of, or one fewer. */
static void judge_left(const unsigned char *bytes, size_t len, uint32_t told,
		       const struct keys_list *list, const struct keys_limits *limits,
		       const struct machine *m)
{
	uint32_t most = list->n * KILL_MAX - 1 - told, left = 0;
	struct keys *keys;

	write_state(other_path, bytes, len);
	keys = opened(list, limits, other_path, m);
	while (*next(keys) != '-')
		left++;
	closed(keys);
	assert_true(left <= most && left + 1 >= most);
}

/*
 * A child goes through a run instruction by instruction: a key is new, the machine has been started
 * again, two keys are handed out. After each instruction the file is as a kill there would leave
 * it.
 */
static void test_killed_at_any_instruction(void **unused)
{
	static unsigned char bytes[2][STATE_MAX];
	struct keys_limits limits = {KILL_MAX, 0, MINUTE, 0};
	struct keys_list list = listed("a,b"), more = listed("a,b,c");
	uint32_t steps = 0, states = 0, is = 0;
	size_t len[2] = {0};
	volatile uint32_t *told =
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct machine m;
	struct keys *keys;
	int status, fd;
	pid_t pid;

	(void)unused;
	unlink(path);
	machine_start(&m, 1, SECOND);
	keys = opened(&list, &limits, path, &m);
	expect(keys, "a");
	closed(keys);
	machine_start(&m, 2, SECOND);
	fd = open(path, O_RDONLY);
	pid = fork();
	if (!pid)
		use_twice(told, &more, &limits, &m);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	while (WIFSTOPPED(status)) {
		is = !is;
		len[is] = (size_t)pread(fd, bytes[is], STATE_MAX, 0);
		if (len[is] != len[!is] || memcmp(bytes[is], bytes[!is], len[is])) {
			judge_left(bytes[is], len[is], *told, &more, &limits, &m);
			states++;
		}
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		steps++;
	}
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	assert_int_equal(*told, 2);
	print_message("    %u instructions, %u states of the file\n", steps, states);
	assert_true(states > 20);
	close(fd);
	munmap((void *)told, 4096);
	keys_list_free(&list);
	keys_list_free(&more);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lists),
	    cmocka_unit_test(test_lists_that_are_too_long),
	    cmocka_unit_test(test_limits),
	    cmocka_unit_test(test_the_challenge),
	    cmocka_unit_test(test_random_runs),
	    cmocka_unit_test(test_the_wait),
	    cmocka_unit_test(test_runs_share_a_file),
	    cmocka_unit_test(test_another_list),
	    cmocka_unit_test(test_what_is_not_its_own_is_refused_and_left),
	    cmocka_unit_test(test_a_file_that_is_full),
	    cmocka_unit_test(test_a_file_that_goes_ends_it),
	    cmocka_unit_test(test_time_goes_on_after_a_restart),
	    cmocka_unit_test(test_a_power_cut),
	    cmocka_unit_test(test_a_clock_that_runs_back),
	    cmocka_unit_test(test_any_call_fails),
	    cmocka_unit_test(test_memory_fails),
	    cmocka_unit_test(test_long_path),
	    cmocka_unit_test(test_calls_that_may_fail),
	    cmocka_unit_test(test_where_a_file_lies),
	    cmocka_unit_test(test_ended_as_it_is_made),
	    cmocka_unit_test(test_killed_at_any_instruction),
	};

	return cmocka_run_group_tests(tests, make_paths, remove_files);
}
