/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the quantities that people write: durations, counts, sizes, rates, prefixes, ranges.
 * Pure. Every parser takes all of the text or fails, changes *out only on success, and returns 0 or
 * -1. No allocation but for none; safe to call from any thread.
 */
#ifndef PACER_UNITS_H
#define PACER_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct prefix {
	uint8_t family; /* 4 or 6 */
	uint8_t len;	/* 0 to 32 or 128 */
	uint8_t addr[16];
};

struct range {
	uint32_t low, high; /* both included, low <= high */
};

/* "250us", "1.5s", "10m", "2h", "1d"; a unit is required, but for "0". In ns, at most 2^62. */
int units_duration(const char *text, uint64_t *ns);
/* Is `text` a duration, but for its length? */
bool units_duration_too_long(const char *text);
/* For who has read `text` as a duration and cannot take it: what is wrong, as "is not a ...". */
const char *units_duration_wrong(const char *text);
/* "300", "20k", "1.5M", "64Ki": K, M, G, T of 1000, Ki, Mi, Gi, Ti of 1024. */
int units_count(const char *text, uint64_t *count);
/* The same in bytes: "64Mi", "64MiB", "64M", "64MB", "4096", "4096B". */
int units_size(const char *text, uint64_t *bytes);
/* The same, or in bits: "10Mbit" is 1250000 bytes. Bits that make no whole byte are no number. */
int units_bytes(const char *text, uint64_t *bytes);
/* "10Mbit/s", "20M/s": bytes a second. */
int units_bytes_rate(const char *text, uint64_t *per_second);
/* A rate that keeps its own time: `amount` packets or bytes every per_ns. */
struct units_rate {
	uint64_t amount, per_ns;
	int bytes; /* they are bytes; else packets */
};

/*
 * "1000/s", "5/m", "3/h", "2kpps": packets; "20MB/s", "64KiB/m", "10Mbit/s": bytes. Exact: 1bit/s
 * is a byte every 8 s. 0/s is read, for the caller to refuse.
 */
int units_rate_over(const char *text, struct units_rate *rate);
/* "2Mpps", "500kpps", "100pps", "2M/s": packets a second. */
int units_rate(const char *text, uint64_t *per_second);
/* "192.0.2.0/24", "2001:db8::/32", "192.0.2.1" (a host). Host bits must be 0. */
int units_prefix(const char *text, struct prefix *prefix);
/* The same, but host bits are cleared: what the writer of a wrong prefix may have meant. */
int units_prefix_masked(const char *text, struct prefix *prefix);
/* Clears the host bits; 1 if there were any. */
int units_prefix_clear(struct prefix *prefix);
/*
 * Is it an IPv4 prefix in the form of IPv6 ("::ffff:192.0.2.1"), which no packet's address has?
 * Then *four is the prefix that is meant. Not so ::ffff:0:0/96, as lists of bogus sources have it.
 */
int units_prefix_mapped(const struct prefix *prefix, struct prefix *four);
/* Is all of the other, an address or a prefix, of this prefix? */
bool units_prefix_holds(const struct prefix *prefix, const struct prefix *other);
/* "53" or "1024-65535", up to `max`. */
int units_range(const char *text, uint32_t max, struct range *range);

/* Exact, and short: 1000000 -> "1ms", 1500 -> "1500ns", 1105474227 -> "1.105474227s". Return `buf`.
 */
const char *units_duration_text(uint64_t ns, char *buf, size_t size);
const char *units_rate_text(const struct units_rate *rate, char *buf, size_t size);
const char *units_size_text(uint64_t bytes, char *buf, size_t size);
/* For people: three digits and a binary unit, "64.4 MiB". Returns `buf`. */
const char *units_size_round(uint64_t bytes, char *buf, size_t size);
const char *units_prefix_text(const struct prefix *prefix, char *buf, size_t size);
/* "s" where there are not just one. */
const char *units_plural(uint64_t n);

#endif
