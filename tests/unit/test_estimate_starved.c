/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Estimates without memory: each allocation of the samples, of the exact values, and of the reading
 * of a capture fails in turn.
 * What was counted before stays as it was, nothing is left behind (ASan tells), and with memory
 * again the values are those that they would have been. And estimates of nothing.
 */
#include "oracle.h"
#include "starved.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "estimate/estimate_run.h"
#include "estimate/exact.h"
#include "estimate/track.h"

#define N      3000u
#define WINDOW 1500u /* more than there is room for to begin with */

static uint64_t key_of(uint32_t i)
{
	return 1 + (uint64_t)i * 2654435761u % 400;
}

/* Adds all of them, each again until there is memory for it. How often there was none. */
static uint32_t add_all(struct exact *e)
{
	uint32_t failed = 0;

	for (uint32_t i = 0; i < N; i++) {
		const uint64_t ends[2] = {1 + i % 31, 100 + i % 37};

		while (!exact_add(e, i + 1, key_of(i), ends))
			assert_true(++failed < 50);
	}
	return failed;
}

static void exact_values(void **unused)
{
	struct exact_values want = {0};
	uint32_t failed = 0;

	(void)unused;
	for (uint32_t n = 0;; n++) { /* 0: none fails */
		struct exact_values got = {0};
		struct exact *e;
		uint32_t before = failed;

		memory.on = true;
		starved_from(n, false);
		e = exact_open(WINDOW, 0);
		failed += !e;
		if (e) {
			failed += add_all(e);
			while (!exact_read(e, N, 2, true, &got))
				assert_true(++failed < before + 2);
		}
		memory.on = false;
		exact_close(e);
		if (!n)
			want = got;
		if (e)
			assert_memory_equal(&got, &want, sizeof(got));
		if (memory.n < n) /* it needs no more; qsort() does without */
			break;
	}
	assert_true(want.n == WINDOW && want.distinct == 400);
	assert_true(failed >= 5);
}

static void samples(void **unused)
{
	const struct track_config config = {false, WINDOW, 128, 64, 7};
	uint32_t failed = 0;

	(void)unused;
	for (uint32_t n = 1;; n++) {
		struct track *t;

		memory.on = true;
		starved_from(n, n & 1);
		t = track_open(&config);
		memory.on = false;
		if (t) {
			assert_true(memory.n < n);
			track_close(t);
			break;
		}
		failed++;
	}
	assert_true(failed >= 10);
}

/* --- of nothing, and of one packet -------------------------------------------------------------
 */

static void of_nothing(void **unused)
{
	static const uint32_t one[1] = {1}, none[1] = {0};
	static const uint64_t zero[2] = {0};
	struct estimate e[4];

	(void)unused;
	for (uint32_t i = 0; i < 3; i++) { /* no packets; and no sample of them; and one of each */
		const struct estimate_view v = {
		    .n = i > 0, .k = i > 1, .r = one, .most = i > 1, .beta = none, .classes = 1};

		e[0] = estimate_moment(&v, 2, 0.05);
		e[1] = estimate_entropy(&v, 0.05);
		e[2] = estimate_norm(&v, 0.05);
		e[3] = estimate_triangles(&v, 0.05);
		for (uint32_t k = 0; k < ARRAY(e); k++) {
			double value = k == 0 && i > 1; /* one packet: a second moment of 1 */

			assert_true(e[k].value == value && e[k].low <= value && e[k].high >= value);
			assert_true(i > 1 || (e[k].low == 0 && e[k].high == 0));
		}
	}
	assert_true(estimate_triangles(&(struct estimate_view){.n = 1, .k = 1}, 0.05).high == 0);
	assert_true(estimate_share_max(0, 0, 0.05) == 1);
	assert_true(estimate_merge_error(zero, zero, zero, 2) == 0);
}

/* --- a capture -------------------------------------------------------------------------------- */

#define FRAMES 1500u

/* A packet of UDP each millisecond, and one that is none at the end; but none at all where it says.
 */
static void capture_write(char *path, size_t size, uint32_t frames)
{
	const uint32_t head[] = {0xa1b2c3d4, 4 << 16 | 2, 0, 0, 65535, 1};
	int fd = memfd_create("capture", MFD_CLOEXEC);

	assert_int_equal(write(fd, head, sizeof(head)), sizeof(head));
	for (uint32_t i = 0; i <= frames; i++) {
		const uint32_t of[] = {100 + i / 1000, i % 1000 * 1000, 42, 42};
		uint8_t frame[42] = {2, [11] = 1, 8, 0, 0x45, [17] = 28, [22] = 64, 17};

		frame[26] = frame[30] = 10;
		frame[29] = (uint8_t)(i % 31);
		frame[33] = (uint8_t)(100 + i % 37);
		frame[35] = frame[37] = 53;
		frame[39] = 8;
		if (i == frames)
			frame[12] = 0x88;
		assert_int_equal(write(fd, of, sizeof(of)), sizeof(of));
		assert_int_equal(write(fd, frame, sizeof(frame)), sizeof(frame));
	}
	snprintf(path, size, "/proc/self/fd/%d", fd);
}

static struct {
	uint32_t readings, most; /* enough: at so many */
	struct estimate_reading last;
} heard;

static void take_reading(const struct estimate_run *run, const struct estimate_reading *r,
			 void *unused)
{
	(void)run;
	(void)unused;
	heard.readings++;
	heard.last = *r;
}

static bool is_enough(void)
{
	return heard.most && heard.readings >= heard.most;
}

static void warned(const struct capture *c, const char *text)
{
	(void)c;
	(void)text;
}

static void nothing(const struct capture *c)
{
	(void)c;
}

/* Nobody replays it here. */
void replay_ahead(struct replay *r, const struct replay_frame *frame)
{
	(void)r;
	(void)frame;
}

static struct policy_error error;

/* The last reading, and how many items are drawn by steps; -1: it fails. */
static int estimate(const struct estimate_want *want, struct estimate_reading *last,
		    uint32_t *drawn)
{
	static const struct capture_listener shows = {warned, nothing, nothing};
	static const struct estimate_listener listener = {take_reading, is_enough, NULL};
	static struct pacer_sample_item items[ESTIMATE_STEP_SAMPLES];
	struct estimate_run run = {0};
	int result;

	heard.readings = 0;
	error = (struct policy_error){.line = 0};
	result = capture_open(&run.capture, want->name, &shows, &error) ||
			 estimate_run_open(&run, want, &listener, &error) ||
			 estimate_run_read(&run, last, &error)
		     ? -1
		     : 0;
	*drawn = result ? 0 : estimate_run_steps(&run, items);
	estimate_run_close(&run);
	return result;
}

static void a_capture(void **unused)
{
	char path[64];
	struct estimate_want want = {.name = path,
				     .exact = true,
				     .triangles = true,
				     .window = 1200,
				     .every_ns = 250000000,
				     .seed = 7,
				     .moment = 2,
				     .samples = 32,
				     .step = {{100, 3}, {400, 1}},
				     .steps = 2};
	struct estimate_reading wanted = {0};
	uint32_t failed = 0, drawn;

	(void)unused;
	capture_write(path, sizeof(path), FRAMES);
	assert_int_equal(estimate_key_open("src", &want.key, &error), 0);
	for (uint32_t by_time = 0; by_time < 2; by_time++) {
		want.by_time = by_time;
		want.window = by_time ? 1200000000 : 1200;
		want.steps = by_time ? 0 : 2;
		for (uint32_t n = 0;; n++) { /* 0: none fails */
			struct estimate_reading last = {0};
			int result;

			starved_from(n, false);
			memory.on = true;
			result = estimate(&want, &last, &drawn);
			memory.on = false;
			if (!n) {
				assert_int_equal(result, 0);
				assert_true(heard.readings >= 4 && last.distinct == 31);
				assert_int_equal(drawn, by_time ? 0 : ESTIMATE_STEP_SAMPLES);
				assert_true(last.n > 1100 && last.n <= 1200);
				wanted = last;
			}
			if (result) {
				failed++;
				assert_true(memory.n >= n);
				if (!strstr(error.text, "memory"))
					fail_msg("allocation %u: %s", n, error.text);
			} else {
				assert_memory_equal(&last, &wanted, sizeof(last));
			}
			if (n && memory.n < n)
				break;
		}
	}
	assert_true(failed >= 20);
	heard.most = 2; /* nobody reads on */
	assert_int_equal(estimate(&want, &wanted, &drawn), 0);
	assert_int_equal(heard.readings, 2);
	heard.most = 0;
	close(atoi(path + strlen("/proc/self/fd/")));
	capture_write(path, sizeof(path), 0);
	assert_int_equal(estimate(&want, &wanted, &drawn), -1);
	assert_string_equal(error.text, "it has no packet with an address");
	assert_ptr_equal(error.file, path);
	close(atoi(path + strlen("/proc/self/fd/")));
	estimate_key_close(&want.key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(exact_values),
	    cmocka_unit_test(samples),
	    cmocka_unit_test(of_nothing),
	    cmocka_unit_test(a_capture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
