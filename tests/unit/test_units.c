/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/units.h"

#define ARRAY(a) (sizeof(a) / sizeof((a)[0]))
#define BAD	 0x0badbadbadbadbad /* not changed: an error */

struct quantity {
	const char *text;
	uint64_t value;
};

static void check(int (*parse)(const char *, uint64_t *), const struct quantity *q, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		uint64_t value = BAD;
		int result = parse(q[i].text, &value);

		if (value != q[i].value || result != (q[i].value == BAD ? -1 : 0))
			fail_msg("\"%s\": %d, %llu instead of %llu", q[i].text, result,
				 (unsigned long long)value, (unsigned long long)q[i].value);
	}
}

static void durations(void **state)
{
	static const struct quantity q[] = {
	    {"0", 0},
	    {"0s", 0},
	    {"0.0ms", 0},
	    {"1ns", 1},
	    {"250us", 250000},
	    {"1ms", 1000000},
	    {"1.5s", 1500000000},
	    {"0.000000001s", 1},
	    {"0.0000000010000000000000000000000s", 1},
	    {"10m", 600000000000},
	    {"2h", 7200000000000},
	    {"1d", 86400000000000},
	    {"1.123456789s", 1123456789},
	    {"0.00000000000003125d", BAD},
	    {"0.000000000000625d", 54},
	    {"1.000000000000625d", 86400000000054},
	    {"007s", 7000000000},
	    {"4611686018427387904ns", 1ull << 62},
	    {"4611686018427387905ns", BAD},
	    {"53375d", 4611600000000000000},
	    {"53376d", BAD},
	    {"18446744073709551615ns", BAD},
	    {"18446744073709551616ns", BAD},
	    {"99999999999999999999999999s", BAD},
	    {"0.5ns", BAD},
	    {"1.0000000001s", BAD},
	    {"0.12345678901234567890123s", BAD},
	    {"", BAD},
	    {"10", BAD},
	    {"00", BAD},
	    {"0.0", BAD},
	    {"s", BAD},
	    {".5s", BAD},
	    {"5.s", BAD},
	    {"1.5.5s", BAD},
	    {"-1s", BAD},
	    {"+1s", BAD},
	    {" 1s", BAD},
	    {"1s ", BAD},
	    {"1 s", BAD},
	    {"1S", BAD},
	    {"1sec", BAD},
	    {"1min", BAD},
	    {"1e3s", BAD},
	    {"0x10s", BAD},
	    {"1s1ms", BAD},
	    {"1,5s", BAD},
	};

	(void)state;
	check(units_duration, q, ARRAY(q));
}

static void counts(void **state)
{
	static const struct quantity q[] = {
	    {"0", 0},
	    {"300", 300},
	    {"20k", 20000},
	    {"20K", 20000},
	    {"1.5M", 1500000},
	    {"2G", 2000000000},
	    {"3T", 3000000000000},
	    {"0.001k", 1},
	    {"1.0", 1},
	    {"18446744073709551615", UINT64_MAX},
	    {"18446744073709551616", BAD},
	    {"18446744073709551.615k", UINT64_MAX},
	    {"18446744073709551.616k", BAD},
	    {"18446745T", BAD},
	    {"1.5", BAD},
	    {"0.0001k", BAD},
	    {"", BAD},
	    {"k", BAD},
	    {"-1", BAD},
	    {"1m", BAD},
	    {"1kk", BAD},
	    {"1Ki", 1024},
	    {"64Mi", 64 << 20},
	    {"1.5Gi", 3ull << 29},
	    {"2Ti", 2ull << 40},
	    {"1ki", BAD},
	    {"1KiB", BAD},
	    {"1Mbit", BAD},
	    {"300packets", BAD},
	};

	(void)state;
	check(units_count, q, ARRAY(q));
}

static void sizes(void **state)
{
	static const struct quantity q[] = {
	    {"0", 0},
	    {"4096", 4096},
	    {"4k", 4000},
	    {"4K", 4000},
	    {"4kB", 4000},
	    {"4Ki", 4096},
	    {"4KiB", 4096},
	    {"64M", 64000000},
	    {"64MB", 64000000},
	    {"64Mi", 64 << 20},
	    {"64MiB", 64 << 20},
	    {"1G", 1000000000},
	    {"1Gi", 1 << 30},
	    {"1GiB", 1 << 30},
	    {"1.5GiB", 3ull << 29},
	    {"0.25Ki", 256},
	    {"2T", 2000000000000},
	    {"2TiB", 2ull << 40},
	    {"16777215Ti", 16777215ull << 40},
	    {"16777216Ti", BAD},
	    {"0.3KiB", BAD},
	    {"64B", 64},
	    {"1.5B", BAD},
	    {"B", BAD},
	    {"64b", BAD},
	    {"64Mib", BAD},
	    {"64Mbit", BAD},
	    {"", BAD},
	    {"M", BAD},
	};

	(void)state;
	check(units_size, q, ARRAY(q));
}

static void bytes(void **state)
{
	static const struct quantity q[] = {
	    {"4096", 4096},
	    {"20M", 20000000},
	    {"20MB", 20000000},
	    {"20Mi", 20 << 20},
	    {"10Mbit", 1250000},
	    {"10Gbit", 1250000000},
	    {"1.5kbit", BAD}, /* 187.5 */
	    {"1.6kbit", 200},
	    {"1Kbit", 125},
	    {"1Tbit", 125000000000},
	    {"8bit", 1},
	    {"9bit", BAD},
	    {"0bit", 0},
	    {"10Mibit", BAD},
	    {"10Mb", BAD},
	    {"10Mbps", BAD},
	    {"10Mbit/s", BAD},
	    {"bit", BAD},
	    {"18446744073709551615bit", BAD},
	    {"18446744073709551608bit", UINT64_MAX / 8},
	    {"", BAD},
	};
	static const struct quantity rate[] = {
	    {"10Mbit/s", 1250000}, {"20M/s", 20000000}, {"64KiB/s", 65536},
	    {"10Mbit", BAD},	   {"/s", BAD},		{"10Mbps", BAD},
	    {"10Mpps", BAD},	   {"10Mbit/m", BAD},	{"10Mbit/s/s", BAD},
	};

	(void)state;
	check(units_bytes, q, ARRAY(q));
	check(units_bytes_rate, rate, ARRAY(rate));
}

static void rates(void **state)
{
	static const struct quantity q[] = {
	    {"100pps", 100},
	    {"500kpps", 500000},
	    {"2Mpps", 2000000},
	    {"2M/s", 2000000},
	    {"1.5M/s", 1500000},
	    {"0pps", 0},
	    {"18446744073709551615pps", UINT64_MAX},
	    {"18446744073709551616pps", BAD},
	    {"2M", BAD},
	    {"100", BAD},
	    {"pps", BAD},
	    {"/s", BAD},
	    {"s", BAD},
	    {"", BAD},
	    {"2Mpps/s", BAD},
	    {"2M pps", BAD},
	    {"2Mbps", BAD},
	    {"2M/m", BAD},
	    /* 63 digits, and 64 */
	    {"000000000000000000000000000000000000000000000000000000000000001pps", 1},
	    {"0000000000000000000000000000000000000000000000000000000000000001pps", BAD},
	};

	(void)state;
	check(units_rate, q, ARRAY(q));
}

#define S 1000000000ull

static const struct {
	const char *text;
	struct units_rate rate;
} rate_over[] = {
    {"1000/s", {1000, S, 0}},
    {"1.5K/s", {1500, S, 0}},
    {"5/m", {5, 60 * S, 0}},
    {"3/h", {3, 3600 * S, 0}},
    {"2kpps", {2000, S, 0}},
    {"100pps", {100, S, 0}},
    {"0/s", {0, S, 0}}, /* for the caller to refuse */
    {"18446744073709551615/h", {UINT64_MAX, 3600 * S, 0}},
    {"100B/s", {100, S, 1}},
    {"20MB/s", {20000000, S, 1}},
    {"1.5KB/m", {1500, 60 * S, 1}},
    {"64KiB/m", {65536, 60 * S, 1}},
    {"64Ki/h", {65536, 3600 * S, 0}},
    {"10Mbit/s", {10000000, 8 * S, 1}},
    {"1bit/s", {1, 8 * S, 1}},
    {"9bit/h", {9, 8 * 3600 * S, 1}},
    {"18446744073709551615bit/s", {UINT64_MAX, 8 * S, 1}},
};

static const char *const no_rate_over[] = {
    "",
    "/s",
    "s",
    "1000",
    "pps",
    "1000/",
    "1000/d",
    "1000/ms",
    "1000/S",
    "1000 /s",
    "1000/s ",
    "/1000",
    "10Mbit",
    "10Mbps",
    "10Mbit/",
    "-5/s",
    "+5/s",
    "5//s",
    "5/s/s",
    "5/s/m",
    "5pps/s",
    "2kpps/m",
    "0x5/s",
    "1e3/s",
    "0.5/s",
    "0.5bit/s",
    "1.5B/s",
    "bit/s",
    "B/s",
    "KB/s",
    "10Mibit/s",
    "10MBit/s",
    "10Mbits/s",
    "10MBB/s",
    "10Mbyte/s",
    "1000/sec",
    "5/1s",
    "nan/s",
    "\xc2\xb5/s",
    "5\n/s",
    "5/s\n",
    "1 000/s",
    "1,000/s",
    "64B",
    "64KiB",
    "5%/s",
    "%s%n/s",
    "18446744073709551616/s",
    "18446744073709551616bit/s",
    "20000000TB/s",
    "00000000000000000000000000000000000000000000000000000000000000000000000000000000001/s",
};

static void rates_over(void **state)
{
	struct units_rate rate;

	(void)state;
	for (size_t i = 0; i < ARRAY(rate_over); i++) {
		const struct units_rate *want = &rate_over[i].rate;

		if (units_rate_over(rate_over[i].text, &rate) || rate.amount != want->amount ||
		    rate.per_ns != want->per_ns || rate.bytes != want->bytes)
			fail_msg("%s", rate_over[i].text);
	}
	for (size_t i = 0; i < ARRAY(no_rate_over); i++) {
		rate = (struct units_rate){7, 7, 7};
		if (!units_rate_over(no_rate_over[i], &rate) || rate.amount != 7 ||
		    rate.per_ns != 7 || rate.bytes != 7)
			fail_msg("\"%s\" is read, or written in part", no_rate_over[i]);
	}
}

/* What is said of a rate is that rate, in the shortest form. */
static void rate_texts(void **state)
{
	static const struct units_rate said[] = {
	    {1000, S, 0},  {1500, S, 0},	 {5, 60 * S, 0}, {20000000, S, 1},   {100, S, 1},
	    {1, 8 * S, 1}, {10000000, 8 * S, 1}, {0, S, 0},	 {2000000000, S, 0},
	};
	static const char *const as[] = {"1K/s",   "1500/s",   "5/m", "20MB/s", "100B/s",
					 "1bit/s", "10Mbit/s", "0/s", "2G/s"};
	static const uint64_t per[] = {S, 60 * S, 3600 * S, 8 * S, 480 * S, 28800 * S};
	uint64_t seed = 5;
	char buf[48];

	(void)state;
	for (size_t i = 0; i < ARRAY(said); i++)
		assert_string_equal(units_rate_text(&said[i], buf, sizeof(buf)), as[i]);
	for (int i = 0; i < 20000; i++) {
		struct units_rate rate = {.per_ns = per[i % 6], .bytes = i % 6 > 2 || i % 5 == 0};
		struct units_rate back = {0};

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		rate.amount = seed >> (seed % 61);
		if (i % 4 == 0)
			rate.amount -= rate.amount % 1000000;
		assert_int_equal(units_rate_over(units_rate_text(&rate, buf, sizeof(buf)), &back),
				 0);
		assert_int_equal(back.amount, rate.amount);
		assert_int_equal(back.per_ns, rate.per_ns);
		assert_int_equal(back.bytes, rate.bytes);
	}
}

static void prefixes(void **state)
{
	static const struct {
		const char *text, *read, *masked; /* NULL: an error */
	} c[] = {
	    {"192.0.2.0/24", "192.0.2.0/24", "192.0.2.0/24"},
	    {"192.0.2.1", "192.0.2.1", "192.0.2.1"},
	    {"192.0.2.1/32", "192.0.2.1", "192.0.2.1"},
	    {"0.0.0.0/0", "0.0.0.0/0", "0.0.0.0/0"},
	    {"128.0.0.0/1", "128.0.0.0/1", "128.0.0.0/1"},
	    {"255.255.255.254/31", "255.255.255.254/31", "255.255.255.254/31"},
	    {"2001:db8::/32", "2001:db8::/32", "2001:db8::/32"},
	    {"::/0", "::/0", "::/0"},
	    {"::1", "::1", "::1"},
	    {"::1/128", "::1", "::1"},
	    {"2001:DB8:0:0::/64", "2001:db8::/64", "2001:db8::/64"},
	    {"2001:db8:8000::/33", "2001:db8:8000::/33", "2001:db8:8000::/33"},
	    {"192.0.2.1/24", NULL, "192.0.2.0/24"},
	    {"192.0.2.255/31", NULL, "192.0.2.254/31"},
	    {"1.0.0.0/0", NULL, "0.0.0.0/0"},
	    {"2001:db8::1/32", NULL, "2001:db8::/32"},
	    {"2001:db8:8000::/32", NULL, "2001:db8::/32"},
	    {"::1/127", NULL, "::/127"},
	    {"192.0.2.0/33", NULL, NULL},
	    {"::/129", NULL, NULL},
	    {"192.0.2.0/", NULL, NULL},
	    {"192.0.2.0/-1", NULL, NULL},
	    {"192.0.2.0/+8", NULL, NULL},
	    {"192.0.2.0/024", NULL, NULL},
	    {"192.0.2.0/24 ", NULL, NULL},
	    {"192.0.2.0/24/24", NULL, NULL},
	    {"192.0.2.0/255.255.255.0", NULL, NULL},
	    {"192.0.2.0/18446744073709551640", NULL, NULL},
	    {"192.0.2/24", NULL, NULL},
	    {"192.0.2.256", NULL, NULL},
	    {"192.0.02.1", NULL, NULL},
	    {"1:2:3:4:5:6:7:8:9", NULL, NULL},
	    {"fe80::1%eth0", NULL, NULL},
	    {"example.org", NULL, NULL},
	    {"0000:0000:0000:0000:0000:0000:0000:0000:0000:0000/1", NULL, NULL},
	    {"/24", NULL, NULL},
	    {"", NULL, NULL},
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY(c); i++) {
		struct prefix prefix = {.family = 7};
		char buf[64];

		assert_int_equal(units_prefix(c[i].text, &prefix), c[i].read ? 0 : -1);
		if (c[i].read)
			assert_string_equal(units_prefix_text(&prefix, buf, sizeof(buf)),
					    c[i].read);
		else
			assert_int_equal(prefix.family, 7);
		prefix.family = 7;
		assert_int_equal(units_prefix_masked(c[i].text, &prefix), c[i].masked ? 0 : -1);
		if (c[i].masked)
			assert_string_equal(units_prefix_text(&prefix, buf, sizeof(buf)),
					    c[i].masked);
		else
			assert_int_equal(prefix.family, 7);
	}
}

/* As an address of IPv6, IPv4's is none that a packet has. */
static void mapped_prefixes(void **state)
{
	static const struct {
		const char *text, *four;
	} c[] = {
	    {"::ffff:192.0.2.1", "192.0.2.1"},
	    {"::ffff:192.0.2.0/120", "192.0.2.0/24"},
	    {"0::FFFF:c000:201", "192.0.2.1"},
	    {"::ffff:0:0/97", "0.0.0.0/1"},
	    {"::ffff:0:0/96", NULL},
	    {"::/0", NULL},
	    {"::192.0.2.1", NULL},
	    {"::fffe:192.0.2.1", NULL},
	    {"1::ffff:192.0.2.1", NULL},
	    {"192.0.2.1", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY(c); i++) {
		struct prefix prefix, four = {.family = 7};
		char buf[64];

		assert_int_equal(units_prefix(c[i].text, &prefix), 0);
		assert_int_equal(units_prefix_mapped(&prefix, &four), c[i].four != NULL);
		if (c[i].four)
			assert_string_equal(units_prefix_text(&four, buf, sizeof(buf)), c[i].four);
		else
			assert_int_equal(four.family, 7);
	}
}

static void ranges(void **state)
{
	static const struct {
		const char *text;
		int result;
		uint32_t low, high;
	} c[] = {
	    {"53", 0, 53, 53},
	    {"0", 0, 0, 0},
	    {"65535", 0, 65535, 65535},
	    {"1024-65535", 0, 1024, 65535},
	    {"7-7", 0, 7, 7},
	    {"65536", -1, 9, 9},
	    {"1-65536", -1, 9, 9},
	    {"2-1", -1, 9, 9},
	    {"", -1, 9, 9},
	    {"-", -1, 9, 9},
	    {"1-", -1, 9, 9},
	    {"-1", -1, 9, 9},
	    {"1-2-3", -1, 9, 9},
	    {"1 - 2", -1, 9, 9},
	    {"0x10", -1, 9, 9},
	    {"18446744073709551616", -1, 9, 9},
	    {"18446744073709551669", -1, 9, 9},
	    {"any", -1, 9, 9},
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY(c); i++) {
		struct range range = {9, 9};

		assert_int_equal(units_range(c[i].text, 65535, &range), c[i].result);
		assert_int_equal(range.low, c[i].low);
		assert_int_equal(range.high, c[i].high);
	}
}

static void texts(void **state)
{
	static const struct quantity times[] = {
	    {"0", 0},
	    {"1ns", 1},
	    {"1500ns", 1500},
	    {"1us", 1000},
	    {"1ms", 1000000},
	    {"1500ms", 1500000000},
	    {"1m", 60000000000},
	    {"90s", 90000000000},
	    {"1h", 3600000000000},
	    {"36h", 129600000000000},
	    {"7d", 604800000000000},
	    {"99999us", 99999000},
	    {"100.001ms", 100001000},
	    {"100.5us", 100500},
	    {"5.263157ms", 5263157},
	    {"1.105474227s", 1105474227},
	    {"100.0001s", 100000100000},
	    {"18446744073.709551615s", UINT64_MAX},
	};
	static const struct quantity memory[] = {
	    {"0", 0},
	    {"1", 1},
	    {"1000", 1000},
	    {"1Ki", 1024},
	    {"1536Ki", 3 << 19},
	    {"64Mi", 64 << 20},
	    {"1Gi", 1 << 30},
	    {"1Ti", 1ull << 40},
	    {"62500Ki", 64000000},
	    {"18446744073709551615", UINT64_MAX},
	};
	char buf[32];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY(times); i++)
		assert_string_equal(units_duration_text(times[i].value, buf, sizeof(buf)),
				    times[i].text);
	for (i = 0; i < ARRAY(memory); i++)
		assert_string_equal(units_size_text(memory[i].value, buf, sizeof(buf)),
				    memory[i].text);
	assert_string_equal(units_duration_text(1500, buf, 4), "150"); /* cut, and ended */
	assert_string_equal(units_duration_text(1105474227, buf, 4), "1.1");
}

static void rounded(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} row[] = {{0, "0 B"},
		   {1023, "1023 B"},
		   {1024, "1.0 KiB"},
		   {67487136, "64.4 MiB"},
		   {1ull << 30, "1.0 GiB"},
		   {150ull << 20, "150 MiB"},
		   {UINT64_MAX, "16777216 TiB"}};
	char buf[32];

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
		assert_string_equal(units_size_round(row[i].bytes, buf, sizeof(buf)), row[i].text);
}

static void texts_read_back(void **state)
{
	uint64_t seed = 1, value, back;
	char buf[32];
	int i;

	(void)state;
	for (i = 0; i < 20000; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		value = seed >> (2 + seed % 61);
		if (i % 2)
			value -= value % (i % 3 ? 1000000 : 1024);
		assert_int_equal(units_duration(units_duration_text(value, buf, 32), &back), 0);
		assert_int_equal(back, value);
		assert_int_equal(units_size(units_size_text(value, buf, 32), &back), 0);
		assert_int_equal(back, value);
	}
}

static void durations_that_are_wrong(void **state)
{
	static const char *const is_long[] = {"53376d", "1281024h", "99999999999999999999s",
					      "5000000000000.5s"};
	static const char *const is_none[] = {
	    "", "d", "5", "hour", "5 d", "-53376d", "53376dd", "0.1ns", "53376days of all"};

	(void)state;
	for (size_t i = 0; i < sizeof(is_long) / sizeof(*is_long); i++)
		assert_string_equal(units_duration_wrong(is_long[i]),
				    "is too long: at most 53375d");
	for (size_t i = 0; i < sizeof(is_none) / sizeof(*is_none); i++)
		assert_string_equal(units_duration_wrong(is_none[i]),
				    "is not a duration such as 90s or 10m");
	/* one that is no time, where a time is wanted */
	assert_string_equal(units_duration_wrong("0s"), "is not a duration such as 90s or 10m");
}

/* What is read for an amount is all of it: 39 digits, and 40. */
static void long_amounts(void **state)
{
	struct units_rate rate;

	(void)state;
	assert_int_equal(units_rate_over("000000000000000000000000000000000000010/s", &rate), 0);
	assert_int_equal(rate.amount, 10);
	assert_int_equal(units_rate_over("0000000000000000000000000000000000000010/s", &rate), -1);
}

static void plurals(void **state)
{
	(void)state;
	assert_string_equal(units_plural(0), "s");
	assert_string_equal(units_plural(1), "");
	assert_string_equal(units_plural(2), "s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(durations),       cmocka_unit_test(counts),
	    cmocka_unit_test(sizes),	       cmocka_unit_test(rates),
	    cmocka_unit_test(prefixes),	       cmocka_unit_test(mapped_prefixes),
	    cmocka_unit_test(ranges),	       cmocka_unit_test(texts),
	    cmocka_unit_test(texts_read_back), cmocka_unit_test(durations_that_are_wrong),
	    cmocka_unit_test(rounded),	       cmocka_unit_test(bytes),
	    cmocka_unit_test(rates_over),      cmocka_unit_test(rate_texts),
	    cmocka_unit_test(long_amounts),    cmocka_unit_test(plurals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
