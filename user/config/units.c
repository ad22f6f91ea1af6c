/* SPDX-License-Identifier: GPL-2.0-only */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/units.h"

#define NS_PER_S 1000000000ull

#define DURATION_NS_MAX	    (1ull << 62)
#define DIGITS_READ_AT_ONCE 100000 /* what has more is shown with a decimal point */
#define FRACTION_DIGITS	    19	   /* 10^19 is the last power of ten below 2^64 */

struct unit {
	const char *name;
	uint64_t scale;
};

/* Each list ends with an empty name; the units of one size stand together, the one to print first.
 */
#define SECONDS 3 /* of them */
static const struct unit durations[] = {
    {"d", 86400000000000}, {"h", 3600000000000}, {"m", 60000000000}, {"s", 1000000000},
    {"ms", 1000000},	   {"us", 1000},	 {"ns", 1},	     {"", 0},
};

#define DECIMAL(of, scale)                                                 \
	{"T" of, 1000000000000 * (scale)}, {"G" of, 1000000000 * (scale)}, \
	    {"M" of, 1000000 * (scale)}, {"K" of, 1000 * (scale)},         \
	{                                                                  \
		"k" of, 1000 * (scale)                                     \
	}
#define BINARY(of)                                                           \
	{"Ti" of, 1ull << 40}, {"Gi" of, 1ull << 30}, {"Mi" of, 1ull << 20}, \
	{                                                                    \
		"Ki" of, 1ull << 10                                          \
	}

/* One meaning of a letter everywhere: K, M, G are powers of 1000, Ki, Mi, Gi of 1024. */
static const struct unit counts[] = {DECIMAL("", 1), BINARY(""), {"", 1}};
static const struct unit sizes[] = {BINARY(""),	     BINARY("B"), DECIMAL("", 1),
				    DECIMAL("B", 1), {"B", 1},	  {"", 1}};
static const struct unit bits[] = {DECIMAL("bit", 1), {"bit", 1}, {"", 0}};

/* What a size is printed in. */
static const struct unit sizes_shown[] = {BINARY(""), {"", 1}};

/* A decimal number in its exact parts: whole + part / parts, in lowest terms. */
struct decimal {
	uint64_t whole, part, parts;
};

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The digits at *text, which moves behind them. */
static int read_whole(const char **text, uint64_t *value)
{
	uint64_t sum = 0;

	if (!is_digit(**text))
		return -1;
	for (; is_digit(**text); ++*text) {
		if (__builtin_mul_overflow(sum, (uint64_t)10, &sum) ||
		    __builtin_add_overflow(sum, (uint64_t)(**text - '0'), &sum))
			return -1;
	}
	*value = sum;
	return 0;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* The digits behind the point at *text. */
static int read_fraction(const char **text, struct decimal *number)
{
	const char *at = *text, *end;
	uint64_t divisor;

	while (is_digit(**text))
		++*text;
	if (*text == at)
		return -1;
	for (end = *text; end > at && end[-1] == '0'; end--)
		;
	if (end - at > FRACTION_DIGITS)
		return -1;
	for (; at < end; at++) {
		number->part = number->part * 10 + (uint64_t)(*at - '0');
		number->parts *= 10;
	}
	divisor = common_divisor(number->parts, number->part);
	number->part /= divisor;
	number->parts /= divisor;
	return 0;
}

static int read_decimal(const char **text, struct decimal *number)
{
	*number = (struct decimal){.parts = 1};
	if (read_whole(text, &number->whole))
		return -1;
	if (**text != '.')
		return 0;
	++*text;
	return read_fraction(text, number);
}

/* number * scale, where that is a whole number. */
static int scale_up(const struct decimal *number, uint64_t scale, uint64_t *value)
{
	uint64_t product;

	if (scale % number->parts)
		return -1;
	if (__builtin_mul_overflow(number->whole, scale, &product) ||
	    __builtin_add_overflow(product, number->part * (scale / number->parts), &product))
		return -1;
	*value = product;
	return 0;
}

static const struct unit *find_unit(const struct unit *units, const char *name)
{
	while (*units->name && strcmp(units->name, name))
		units++;
	return strcmp(units->name, name) ? NULL : units;
}

static int read_quantity(const char *text, const struct unit *units, uint64_t *value)
{
	const struct unit *unit;
	struct decimal number;

	if (read_decimal(&text, &number))
		return -1;
	unit = find_unit(units, text);
	if (!unit || !unit->scale)
		return -1;
	return scale_up(&number, unit->scale, value);
}

int units_duration(const char *text, uint64_t *ns)
{
	uint64_t value;

	if (!strcmp(text, "0")) {
		*ns = 0;
		return 0;
	}
	if (read_quantity(text, durations, &value) || value > DURATION_NS_MAX)
		return -1;
	*ns = value;
	return 0;
}

bool units_duration_too_long(const char *text)
{
	size_t digits = strspn(text, "0123456789");
	char one[16]; /* of the same unit */
	uint64_t ns;

	snprintf(one, sizeof(one), "1%s", text + digits);
	return digits && strlen(text + digits) < sizeof(one) - 1 && !units_duration(one, &ns) &&
	       units_duration(text, &ns);
}

const char *units_duration_wrong(const char *text)
{
	return units_duration_too_long(text) ? "is too long: at most 53375d"
					     : "is not a duration such as 90s or 10m";
}

int units_count(const char *text, uint64_t *count)
{
	return read_quantity(text, counts, count);
}

int units_size(const char *text, uint64_t *bytes)
{
	return read_quantity(text, sizes, bytes);
}

int units_bytes(const char *text, uint64_t *bytes)
{
	uint64_t value;

	if (!units_size(text, bytes))
		return 0;
	if (read_quantity(text, bits, &value) || value % 8)
		return -1;
	*bytes = value / 8;
	return 0;
}

/* What stands before the ending, read as `of`. */
static int read_before(const char *text, const char *ending, int (*of)(const char *, uint64_t *),
		       uint64_t *value)
{
	size_t len = strlen(text), tail = strlen(ending);
	char number[64];

	if (len < tail || strcmp(text + len - tail, ending) || len - tail >= sizeof(number))
		return -1;
	memcpy(number, text, len - tail);
	number[len - tail] = 0;
	return of(number, value);
}

int units_rate(const char *text, uint64_t *per_second)
{
	return read_before(text, "pps", units_count, per_second) &&
		       read_before(text, "/s", units_count, per_second)
		   ? -1
		   : 0;
}

/* "s", "m", "h" */
static uint64_t rate_time(const char *text)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} times[] = {{"s", NS_PER_S}, {"m", 60 * NS_PER_S}, {"h", 3600 * NS_PER_S}};

	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++)
		if (!strcmp(text, times[i].name))
			return times[i].ns;
	return 0;
}

int units_rate_over(const char *text, struct units_rate *rate)
{
	const char *slash = strrchr(text, '/');
	struct units_rate r = {.per_ns = slash ? rate_time(slash + 1) : 0};
	char amount[40];
	int len = slash ? (int)(slash - text) : 0;

	if (!slash) {
		r.per_ns = NS_PER_S;
		if (read_before(text, "pps", units_count, &r.amount))
			return -1;
		*rate = r;
		return 0;
	}
	if (!r.per_ns || len >= (int)sizeof(amount))
		return -1;
	snprintf(amount, sizeof(amount), "%.*s", len, text);
	if (units_count(amount, &r.amount)) {
		r.bytes = 1;
		if (!read_quantity(amount, bits, &r.amount))
			r.per_ns *= 8;
		else if (read_before(amount, "B", units_count, &r.amount)) /* KiB, too */
			return -1;
	}
	*rate = r;
	return 0;
}

int units_bytes_rate(const char *text, uint64_t *per_second)
{
	return read_before(text, "/s", units_bytes, per_second);
}

int units_prefix_clear(struct prefix *prefix)
{
	unsigned int bit, bits = prefix->family == 4 ? 32 : 128;
	int found = 0;

	for (bit = prefix->len; bit < bits; bit++) {
		uint8_t mask = 0x80 >> bit % 8;

		found |= !!(prefix->addr[bit / 8] & mask);
		prefix->addr[bit / 8] &= ~mask;
	}
	return found;
}

/* A prefix with its host bits. */
static int read_prefix(const char *text, struct prefix *prefix)
{
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	char addr[INET6_ADDRSTRLEN];
	uint64_t bits;

	if (len >= sizeof(addr))
		return -1;
	memcpy(addr, text, len);
	addr[len] = 0;
	*prefix = (struct prefix){.family = 4, .len = 32};
	if (inet_pton(AF_INET, addr, prefix->addr) != 1) {
		*prefix = (struct prefix){.family = 6, .len = 128};
		if (inet_pton(AF_INET6, addr, prefix->addr) != 1)
			return -1;
	}
	if (!slash)
		return 0;
	slash++;
	if ((slash[0] == '0' && slash[1]) || read_whole(&slash, &bits) || *slash ||
	    bits > prefix->len)
		return -1;
	prefix->len = (uint8_t)bits;
	return 0;
}

int units_prefix(const char *text, struct prefix *prefix)
{
	struct prefix read;

	if (read_prefix(text, &read) || units_prefix_clear(&read))
		return -1;
	*prefix = read;
	return 0;
}

int units_prefix_masked(const char *text, struct prefix *prefix)
{
	struct prefix read;

	if (read_prefix(text, &read))
		return -1;
	units_prefix_clear(&read);
	*prefix = read;
	return 0;
}

int units_prefix_mapped(const struct prefix *prefix, struct prefix *four)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (prefix->family != 6 || prefix->len <= 96 ||
	    memcmp(prefix->addr, mapped, sizeof(mapped)))
		return 0;
	*four = (struct prefix){.family = 4, .len = prefix->len - 96};
	memcpy(four->addr, prefix->addr + sizeof(mapped), 4);
	return 1;
}

bool units_prefix_holds(const struct prefix *prefix, const struct prefix *other)
{
	uint8_t bits = prefix->len % 8, bytes = prefix->len / 8;

	return prefix->family == other->family && prefix->len <= other->len &&
	       !memcmp(prefix->addr, other->addr, bytes) &&
	       (!bits || !((prefix->addr[bytes] ^ other->addr[bytes]) >> (8 - bits)));
}

int units_range(const char *text, uint32_t max, struct range *range)
{
	uint64_t low, high;

	if (read_whole(&text, &low))
		return -1;
	high = low;
	if (*text == '-') {
		text++;
		if (read_whole(&text, &high))
			return -1;
	}
	if (*text || low > high || high > max)
		return -1;
	*range = (struct range){(uint32_t)low, (uint32_t)high};
	return 0;
}

/* In the largest unit that divides the value. */
static const char *quantity_text(uint64_t value, const struct unit *units, char *buf, size_t size)
{
	if (!value) {
		snprintf(buf, size, "0");
		return buf;
	}
	while (value % units->scale)
		units++;
	snprintf(buf, size, "%" PRIu64 "%s", value / units->scale, units->name);
	return buf;
}

/* "1.105474227s": of 1 us and more, in the largest of s, ms and us, which does not divide it. */
static void decimal_text(uint64_t ns, char text[32])
{
	const struct unit *unit = durations + SECONDS;
	int digits = 9, n;

	for (; ns < unit->scale; unit++)
		digits -= 3;
	n = snprintf(text, 32, "%" PRIu64 ".%0*" PRIu64, ns / unit->scale, digits,
		     ns % unit->scale);
	while (text[n - 1] == '0')
		n--;
	snprintf(text + n, (size_t)(32 - n), "%s", unit->name);
}

const char *units_duration_text(uint64_t ns, char *buf, size_t size)
{
	const struct unit *unit = durations;
	char text[32];

	while (ns % unit->scale)
		unit++;
	if (ns / unit->scale < DIGITS_READ_AT_ONCE || unit->scale >= NS_PER_S)
		return quantity_text(ns, durations, buf, size);
	decimal_text(ns, text);
	snprintf(buf, size, "%s", text);
	return buf;
}

const char *units_size_text(uint64_t bytes, char *buf, size_t size)
{
	return quantity_text(bytes, sizes_shown, buf, size);
}

const char *units_prefix_text(const struct prefix *prefix, char *buf, size_t size)
{
	char addr[INET6_ADDRSTRLEN] = "";

	inet_ntop(prefix->family == 4 ? AF_INET : AF_INET6, prefix->addr, addr, sizeof(addr));
	if (prefix->len == (prefix->family == 4 ? 32 : 128))
		snprintf(buf, size, "%s", addr);
	else
		snprintf(buf, size, "%s/%u", addr, prefix->len);
	return buf;
}

const char *units_size_round(uint64_t bytes, char *buf, size_t size)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double value = (double)bytes;
	size_t i = 0;

	for (; value >= 1024 && i + 1 < sizeof(units) / sizeof(*units); i++)
		value /= 1024;
	snprintf(buf, size, i && value < 100 ? "%.1f %s" : "%.0f %s", value, units[i]);
	return buf;
}

const char *units_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* The largest of K, M and G that leaves a whole number. */
static const char *thousands(uint64_t *n)
{
	static const char *const names[] = {"", "K", "M", "G"};
	size_t i = 0;

	for (; i < 3 && *n && *n % 1000 == 0; i++)
		*n /= 1000;
	return names[i];
}

const char *units_rate_text(const struct units_rate *rate, char *buf, size_t size)
{
	static const char *const times[] = {"s", "m", "h"};
	uint64_t ns = NS_PER_S, amount = rate->amount;
	const char *thousand = thousands(&amount);

	for (size_t i = 0; i < 3; i++, ns *= 60) {
		if (rate->per_ns == ns)
			snprintf(buf, size, "%llu%s%s/%s", (unsigned long long)amount, thousand,
				 rate->bytes ? "B" : "", times[i]);
		else if (rate->per_ns == 8 * ns)
			snprintf(buf, size, "%llu%sbit/%s", (unsigned long long)amount, thousand,
				 times[i]);
	}
	return buf;
}
