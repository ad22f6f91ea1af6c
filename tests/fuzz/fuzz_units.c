/* SPDX-License-Identifier: GPL-2.0-only */
/* Quantities: what is read can be written, and reads the same again. */
#include "fuzz.h"
#include "bouncer/decisions.h"
#include "config/units.h"

static void times(const char *text)
{
	uint64_t ns, again;
	char buf[64];

	if (!units_duration(text, &ns)) {
		HOLDS(ns <= 1ull << 62);
		HOLDS(!units_duration(units_duration_text(ns, buf, sizeof(buf)), &again));
		HOLDS(again == ns);
	}
	if (!decisions_duration(text, &ns))
		HOLDS(ns <= 1ull << 60);
}

static void amounts(const char *text)
{
	uint64_t n, again;
	char buf[64];

	(void)!units_count(text, &n);
	(void)!units_bytes(text, &n);
	(void)!units_bytes_rate(text, &n);
	(void)!units_rate(text, &n);
	if (!units_size(text, &n)) {
		HOLDS(!units_size(units_size_text(n, buf, sizeof(buf)), &again));
		HOLDS(again == n);
		HOLDS(*units_size_round(n, buf, sizeof(buf)));
	}
}

static void rates(const char *text)
{
	struct units_rate rate, again;
	char buf[64];

	if (units_rate_over(text, &rate))
		return;
	HOLDS(rate.per_ns);
	if (!rate.amount)
		return;
	HOLDS(!units_rate_over(units_rate_text(&rate, buf, sizeof(buf)), &again));
	HOLDS((unsigned __int128)again.amount * rate.per_ns ==
	      (unsigned __int128)rate.amount * again.per_ns);
	HOLDS(again.bytes == rate.bytes);
}

static void prefixes(const char *text)
{
	struct prefix prefix, again;
	char buf[64];

	if (!units_prefix(text, &prefix)) {
		HOLDS(prefix.family == 4 || prefix.family == 6);
		HOLDS(prefix.len <= (prefix.family == 4 ? 32 : 128));
		HOLDS(!units_prefix(units_prefix_text(&prefix, buf, sizeof(buf)), &again));
		HOLDS(again.family == prefix.family && again.len == prefix.len &&
		      !memcmp(again.addr, prefix.addr, prefix.family == 4 ? 4 : 16));
	}
	if (!units_prefix_masked(text, &prefix))
		HOLDS(!units_prefix(units_prefix_text(&prefix, buf, sizeof(buf)), &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	char *text = fuzz_text(&in);
	struct range range;

	times(text);
	amounts(text);
	rates(text);
	prefixes(text);
	if (!units_range(text, 65535, &range))
		HOLDS(range.low <= range.high && range.high <= 65535);
	free(text);
	return 0;
}
