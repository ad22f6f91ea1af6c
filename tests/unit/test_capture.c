/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Captures, read from files and pipes that are made here: times at the ends of what there is, link
 * types, and a pipe of which no frame is held back until the next one comes.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "offline/capture.h"

static char path[] = "/tmp/xdp-pacer-test.XXXXXX", warned[512];
static unsigned int ends, warnings;

static unsigned int ahead[2]; /* frames that each of two replays was told of beforehand */

/* A packet's state, which this program has none of: a replay is where it counts. */
void replay_ahead(struct replay *r, const struct replay_frame *frame)
{
	(void)frame;
	++*(unsigned int *)r;
}

static void at_progress(const struct capture *c)
{
	(void)c;
}

static void at_end(const struct capture *c)
{
	(void)c;
	ends++;
}

static void at_warning(const struct capture *c, const char *text)
{
	(void)c;
	snprintf(warned, sizeof(warned), "%s", text);
	warnings++;
}

static const struct capture_listener listener = {
    .progress = at_progress, .end = at_end, .warn = at_warning};

/* --- made up -------------------------------------------------------------------------------- */

static uint8_t bytes[8192];
static size_t n_bytes;

static void put(const void *from, size_t n)
{
	assert_true(n_bytes + n <= sizeof(bytes));
	memcpy(bytes + n_bytes, from, n);
	n_bytes += n;
}

static void put32(uint32_t word)
{
	put(&word, sizeof(word));
}

static void begin_classic(uint32_t link)
{
	n_bytes = 0;
	put32(0xa1b23c4d); /* in ns */
	put32(4 << 16 | 2);
	put32(0);
	put32(0);
	put32(262144);
	put32(link);
}

static void add_classic_at(uint32_t s, uint32_t fraction, uint32_t len, const char *data)
{
	put32(s);
	put32(fraction);
	put32((uint32_t)strlen(data));
	put32(len);
	put(data, strlen(data));
}

static void add_classic(uint32_t s, uint32_t len, const char *data)
{
	add_classic_at(s, 0, len, data);
}

/* pcapng, its times of 10 to the -digits seconds. */
static void begin_ng_of(uint16_t link, uint32_t digits)
{
	n_bytes = 0;
	put32(0x0a0d0d0a);
	put32(28);
	put32(0x1a2b3c4d);
	put32(1);
	put32(UINT32_MAX);
	put32(UINT32_MAX);
	put32(28);
	put32(1);
	put32(32);
	put32(link);
	put32(0);
	put32(1 << 16 | 9); /* if_tsresol */
	put32(digits);
	put32(0);
	put32(32);
}

/* Its times in whole seconds. */
static void begin_ng(uint16_t link)
{
	begin_ng_of(link, 0);
}

static void add_ng(uint64_t s)
{
	put32(6);
	put32(36);
	put32(0);
	put32((uint32_t)(s >> 32));
	put32((uint32_t)s);
	put32(4);
	put32(60);
	put32(0x45);
	put32(36);
}

/* A block that has no time. */
static void add_simple(void)
{
	put32(3);
	put32(20);
	put32(4);
	put32(0x45);
	put32(20);
}

static const char *written(void)
{
	int fd = open(path, O_WRONLY | O_TRUNC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n_bytes), n_bytes);
	close(fd);
	return path;
}

static int begin(void **unused)
{
	int fd = access(path, F_OK) ? mkstemp(path) : -1;

	(void)unused;
	if (fd >= 0)
		close(fd);
	*warned = 0;
	ends = warnings = 0;
	return 0;
}

/* --- what is read --------------------------------------------------------------------------- */

/* What has come is told, though the next frame has not: who looks on a live one waits for no other.
 */
static void test_a_pipe(void **unused)
{
	struct policy_error error = {0};
	struct replay_frame frame;
	struct capture c;
	int fd[2];

	(void)unused;
	begin_classic(DLT_EN10MB);
	add_classic(1, 60, "a frame of a pipe");
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(write(fd[1], bytes, n_bytes), n_bytes);
	dup2(fd[0], STDIN_FILENO);
	close(fd[0]);
	assert_int_equal(fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK),
			 0); /* or a look ahead would hang */
	clearerr(stdin);
	assert_int_equal(capture_open(&c, "-", &listener, &error), 0);
	assert_false(capture_repeats(&c));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(capture_next(&c, &frame), 1);
		assert_int_equal(c.read, i + 1); /* and no look at what is not there yet */
		assert_int_equal(c.got, 1);
		assert_int_equal(frame.captured, 17);
		assert_int_equal(frame.len_bytes, 60);
		n_bytes = 0;
		add_classic(2, 60, "and the next one.");
		assert_int_equal(write(fd[1], bytes, n_bytes), n_bytes);
	}
	assert_string_equal(warned, "");
	close(fd[1]);
	assert_int_equal(capture_next(&c, &frame), 1);
	assert_int_equal(capture_next(&c, &frame), 0);
	assert_false(c.damaged);
	assert_int_equal(ends, 1);
	capture_close(&c);
}

/* Of a file many are read ahead, and all of them are told. */
static void test_a_file(void **unused)
{
	struct policy_error error = {0};
	struct replay_frame frame;
	struct capture c;

	(void)unused;
	begin_classic(DLT_EN10MB);
	for (int i = 0; i < 100; i++)
		add_classic(i, 60, "x");
	assert_int_equal(capture_open(&c, written(), &listener, &error), 0);
	assert_true(capture_repeats(&c));
	for (int pass = 1; pass <= 2; pass++) {
		for (int i = 0; i < 2; i++) {
			ahead[i] = 0;
			capture_tell(&c, (struct replay *)&ahead[i]);
		}
		for (int i = 0; i < 100; i++) {
			assert_int_equal(capture_next(&c, &frame), 1);
			assert_int_equal(frame.time_ns, i * 1000000000ull);
			assert_int_equal(ahead[0], c.read);
			assert_int_equal(ahead[1], c.read);
			assert_int_equal(
			    c.read, i < 100 - (int)CAPTURE_AHEAD ? i + (int)CAPTURE_AHEAD : 100);
		}
		assert_int_equal(capture_next(&c, &frame), 0);
		assert_int_equal(c.pass, pass);
		assert_int_equal(capture_again(&c, &error), 0);
	}
	assert_int_equal(unlink(path), 0); /* it is gone meanwhile */
	assert_false(capture_repeats(&c));
	assert_int_equal(capture_again(&c, &error), -1);
	assert_non_null(strstr(error.text, "no frame can be read: No such file"));
	capture_close(&c);
	strcpy(path + strlen(path) - 6, "XXXXXX");
}

/* Time ends an hour before signed nanoseconds do, and stands from there on: who adds to a frame's
 * time has room. */
#define LAST_NS ((uint64_t)INT64_MAX - 3600000000000)

static void test_times(void **unused)
{
	static const struct {
		uint64_t s, ns;
	} row[] = {{0, 0},
		   {5000000000, 5000000000000000000},
		   {LAST_NS / 1000000000, LAST_NS / 1000000000 * 1000000000},
		   {LAST_NS / 1000000000 + 1, LAST_NS},
		   {INT64_MAX / 1000000000, LAST_NS},
		   {(uint64_t)INT64_MAX, LAST_NS},
		   {(uint64_t)INT64_MAX + 1, 0}}; /* before 1970 */
	struct policy_error error = {0};
	struct replay_frame frame;
	struct capture c;

	(void)unused;
	begin_ng(DLT_EN10MB);
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
		add_ng(row[i].s);
	assert_int_equal(capture_open(&c, written(), &listener, &error), 0);
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		assert_int_equal(capture_next(&c, &frame), 1);
		assert_int_equal(frame.time_ns, row[i].ns);
		assert_int_equal(frame.now_ns, i < 6 ? row[i].ns : LAST_NS);
	}
	assert_int_equal(warnings, 2);
	assert_non_null(strstr(warned, "frame 7 has a time before 1970, "));
	capture_close(&c);
}

/* Times that cannot be counted with are said once, at the first frame or at the end of the first
 * pass, and not that there are none. */
static void test_times_of_no_clock(void **unused)
{
	static const struct {
		uint32_t unit;
		uint64_t time;
		unsigned int of; /* how many frames are read when it is said */
		const char *says;
	} row[] = {
	    {0, (uint64_t)INT64_MAX + 1, 1,
	     "frame 1 has a time before 1970, or too late for libpcap, which cannot be counted "
	     "with: all such frames count "
	     "at the latest time seen: see its interface's if_tsoffset and if_tsresol"},
	    {0, INT64_MAX, 1,
	     "frame 1 has a time beyond 2262-04-11, which cannot be counted with: all such frames "
	     "count at that day: see its interface's if_tsoffset and if_tsresol"},
	    {0x80 | 63, 1700000000000000000, 4,
	     "no frame has a time that can be counted with: all 3 count at once, as one burst"},
	    {0x80 | 63, 1, 4,
	     "no frame has a time that can be counted with: all 3 count at once, as one burst"},
	};
	struct policy_error error = {0};
	struct replay_frame frame;
	struct capture c;

	(void)unused;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		begin_ng_of(DLT_EN10MB, row[i].unit);
		for (unsigned int n = 0; n < 3; n++)
			add_ng(row[i].time);
		assert_int_equal(capture_open(&c, written(), &listener, &error), 0);
		*warned = 0;
		warnings = 0;
		for (unsigned int n = 1; n <= 8; n++) { /* two passes, each with its end */
			assert_int_equal(capture_next(&c, &frame), n % 4 != 0);
			assert_string_equal(warned, n < row[i].of ? "" : row[i].says);
			if (n % 4 == 0)
				assert_int_equal(capture_again(&c, &error), 0);
		}
		assert_int_equal(warnings, 1);
		capture_close(&c);
	}
}

/* ... also within the last second. */
static void test_the_last_second(void **unused)
{
	struct policy_error error = {0};
	struct replay_frame frame;
	struct capture c;

	(void)unused;
	begin_ng_of(DLT_EN10MB, 9);
	add_ng(LAST_NS - 1);
	add_ng(LAST_NS);
	add_ng(LAST_NS + 1);
	assert_int_equal(capture_open(&c, written(), &listener, &error), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(capture_next(&c, &frame), 1);
		assert_int_equal(frame.time_ns, LAST_NS - !i);
	}
	capture_close(&c);
}

/* Where no frame has a time, all of it is one burst: that is said once, at the end of the first
 * pass. One frame alone is none, and one time suffices. */
static void test_no_times(void **unused)
{
	static const struct {
		unsigned int simple, timed;
		bool said;
	} row[] = {{0, 0, false}, {1, 0, false}, {2, 0, true}, {20, 0, true}, {20, 1, false}};
	struct policy_error error = {0};
	struct replay_frame frame;
	struct capture c;

	(void)unused;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		unsigned int frames = row[i].simple + row[i].timed;

		begin_ng(DLT_EN10MB);
		for (unsigned int n = 0; n < row[i].simple; n++)
			add_simple();
		if (row[i].timed)
			add_ng(1);
		assert_int_equal(capture_open(&c, written(), &listener, &error), 0);
		for (int pass = 0; pass < 2; pass++) {
			*warned = 0;
			for (unsigned int n = 0; n < frames; n++) {
				assert_int_equal(capture_next(&c, &frame), 1);
				assert_int_equal(frame.now_ns, n < row[i].simple ? 0 : 1000000000);
				assert_string_equal(warned, "");
			}
			assert_int_equal(capture_next(&c, &frame), 0);
			if (row[i].said && !pass)
				assert_non_null(strstr(warned, "no frame has a time that can "));
			else
				assert_string_equal(warned, "");
			assert_false(c.damaged);
			assert_int_equal(capture_again(&c, &error), 0);
		}
		capture_close(&c);
	}
}

/* libpcap takes a fraction of a second for a signed number, which leads back, but not before 1970.
 */
static void test_fractions(void **unused)
{
	static const struct {
		uint32_t s, fraction;
		uint64_t ns;
	} row[] = {{0, UINT32_MAX, 0},
		   {0, 0x80000000, 0},
		   {1, UINT32_MAX, 999999999},
		   {2, 999999999, 2999999999},
		   {5, INT32_MAX, 7147483647}};
	struct policy_error error = {0};
	struct replay_frame frame;
	struct capture c;

	(void)unused;
	begin_classic(DLT_EN10MB);
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
		add_classic_at(row[i].s, row[i].fraction, 60, "E");
	assert_int_equal(capture_open(&c, written(), &listener, &error), 0);
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		assert_int_equal(capture_next(&c, &frame), 1);
		assert_int_equal(frame.time_ns, row[i].ns);
		assert_int_equal(frame.now_ns, row[i].ns);
	}
	assert_string_equal(warned, "");
	capture_close(&c);
}

/* Raw IP gets a header of Ethernet, by what the packet is, or by what all of them are. */
static void test_raw_ip(void **unused)
{
	static const struct {
		uint32_t link;
		const char *data;
		uint8_t type;
	} row[] = {{DLT_RAW, "E", 0x08},
		   {DLT_RAW, "\x60", 0x86},
		   {DLT_RAW, "", 0x08},
		   {DLT_IPV4, "\x60", 0x08},
		   {DLT_IPV6, "E", 0x86}};
	struct policy_error error = {0};
	struct replay_frame frame;
	struct capture c;

	(void)unused;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		begin_classic(row[i].link == DLT_RAW ? 101 : row[i].link);
		add_classic(1, i ? 60 : UINT32_MAX, row[i].data);
		assert_int_equal(capture_open(&c, written(), &listener, &error), 0);
		assert_int_equal(capture_next(&c, &frame), 1);
		assert_int_equal(frame.data[12], row[i].type);
		assert_int_equal(frame.captured, 14 + strlen(row[i].data));
		assert_int_equal(frame.len_bytes, i ? 74 : UINT32_MAX); /* it runs over nothing */
		capture_close(&c);
	}
}

/* Of a frame as much is kept as is judged, its made header included; what it had on the wire stays.
 */
static void test_long_frames(void **unused)
{
	static const uint32_t link[] = {DLT_EN10MB, 101, DLT_IPV4};
	struct policy_error error = {0};
	struct replay_frame frame;
	struct capture c;
	char data[4001];

	(void)unused;
	memset(data, 'E', sizeof(data) - 1);
	data[sizeof(data) - 1] = 0;
	for (size_t i = 0; i < sizeof(link) / sizeof(*link); i++) {
		begin_classic(link[i]);
		add_classic(1, 9000, data);
		add_classic(2, 3, "Four"); /* less than there is of it */
		assert_int_equal(capture_open(&c, written(), &listener, &error), 0);
		for (uint32_t n = 0; n < 2; n++) {
			uint32_t made = i ? 14 : 0;

			assert_int_equal(capture_next(&c, &frame), 1);
			assert_int_equal(frame.captured, n ? 4 + made : REPLAY_HEAD_BYTES);
			assert_int_equal(frame.len_bytes, made + (n ? 4 : 9000));
			for (uint32_t at = made; at < frame.captured; at++)
				assert_int_equal(frame.data[at], n ? "Four"[at - made] : 'E');
		}
		assert_int_equal(capture_next(&c, &frame), 0);
		capture_close(&c);
	}
}

/* A damage ends what is read, and is said once; where no frame was before it, there is nothing. */
static void test_damaged(void **unused)
{
	struct policy_error error = {0};
	struct replay_frame frame;
	struct capture c;

	(void)unused;
	for (int frames = 0; frames < 3; frames++) {
		char want[64];

		begin_classic(DLT_EN10MB);
		for (int i = 0; i < frames; i++)
			add_classic(1, 60, "abcdefghijklmn");
		put32(1); /* and the half of a header */
		assert_int_equal(capture_open(&c, written(), &listener, &error), 0);
		assert_false(capture_is_lost(&c));
		for (int i = 0; i < frames; i++)
			assert_int_equal(capture_next(&c, &frame), 1);
		assert_int_equal(capture_next(&c, &frame), 0);
		snprintf(want, sizeof(want), "damaged at frame %d: ", frames + 1);
		assert_non_null(strstr(warned, want));
		assert_int_equal(capture_is_lost(&c), !frames);
		capture_close(&c);
	}
	/* Ended as it should, it is not lost, though it has no frame. */
	begin_classic(DLT_EN10MB);
	assert_int_equal(capture_open(&c, written(), &listener, &error), 0);
	assert_int_equal(capture_next(&c, &frame), 0);
	assert_false(capture_is_lost(&c));
	capture_close(&c);
}

/* Interfaces that libpcap reads as no one capture are no damage: it is said what to do. */
static void test_interfaces_that_differ(void **unused)
{
	static const struct {
		uint32_t link, snapshot;
		const char *says;
	} row[] = {
	    {DLT_EN10MB, 96,
	     "from frame 2 on it cannot be read as one capture: its interfaces have "
	     "different snapshot lengths: convert it with `editcap -F nsecpcap"},
	    {101, 0, "different link types: capture each to a file of its own: the 1 frames"}};
	struct policy_error error = {0};
	struct replay_frame frame;
	struct capture c;

	(void)unused;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		begin_ng(DLT_EN10MB);
		add_ng(1);
		put32(1); /* another interface */
		put32(20);
		put32(row[i].link);
		put32(row[i].snapshot);
		put32(20);
		add_ng(2);
		assert_int_equal(capture_open(&c, written(), &listener, &error), 0);
		assert_int_equal(capture_next(&c, &frame), 1);
		assert_int_equal(capture_next(&c, &frame), 0);
		assert_non_null(strstr(warned, row[i].says));
		assert_null(strstr(warned, "damaged"));
		assert_true(c.damaged);
		capture_close(&c);
	}
}

static void test_what_cannot_be_read(void **unused)
{
	struct policy_error error = {0};
	struct capture c;
	int fd;

	(void)unused;
	begin_classic(0x3fff); /* libpcap has no name for it */
	assert_int_equal(capture_open(&c, written(), &listener, &error), -1);
	assert_non_null(strstr(error.text, "its link type is unknown (16383)"));
	assert_string_equal(error.file, path);
	assert_int_equal(error.line, 0); /* of the whole file */
	capture_close(&c);
	fd = open("/dev/null", O_RDONLY);
	dup2(fd, STDIN_FILENO);
	close(fd);
	clearerr(stdin);
	assert_int_equal(capture_open(&c, "-", &listener, &error), -1);
	assert_non_null(strstr(error.text, "no frame can be read: "));
	assert_int_equal(getc(stdin), EOF); /* it is still there */
	capture_close(&c);
	assert_int_equal(unlink(path), 0);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_a_pipe),		TEST(test_a_file),
	    TEST(test_times),		TEST(test_times_of_no_clock),
	    TEST(test_the_last_second), TEST(test_no_times),
	    TEST(test_fractions),	TEST(test_raw_ip),
	    TEST(test_long_frames),	TEST(test_interfaces_that_differ),
	    TEST(test_damaged),		TEST(test_what_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
