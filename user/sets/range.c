/* SPDX-License-Identifier: GPL-2.0-only */
#include "sets/range.h"

#include <arpa/inet.h>
#include <string.h>

typedef unsigned __int128 wide;

struct address {
	wide bits; /* an IPv4 address is the first 32 */
	uint8_t family;
};

static int is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

struct set_word set_trim(struct set_word word)
{
	while (word.n && is_blank(word.at[0])) {
		word.at++;
		word.n--;
	}
	while (word.n && is_blank(word.at[word.n - 1]))
		word.n--;
	return word;
}

/* "192.0.2.1": four numbers of up to three digits, no leading zeros. */
static int read_four(struct set_word word, uint32_t *addr)
{
	uint32_t sum = 0, byte = 0, digits = 0, dots = 0;

	for (size_t i = 0; i < word.n; i++) {
		char c = word.at[i];

		if (c >= '0' && c <= '9') {
			if (digits && !byte)
				return -1;
			byte = byte * 10 + (uint32_t)(c - '0');
			if (++digits > 3 || byte > 255)
				return -1;
		} else if (c == '.' && digits && dots < 3) {
			sum = sum << 8 | byte;
			byte = digits = 0;
			dots++;
		} else {
			return -1;
		}
	}
	if (dots != 3 || !digits)
		return -1;
	*addr = sum << 8 | byte;
	return 0;
}

static int read_six(struct set_word word, wide *addr)
{
	uint8_t byte[16];
	char text[INET6_ADDRSTRLEN];
	wide sum = 0;

	if (word.n >= sizeof(text))
		return -1;
	memcpy(text, word.at, word.n);
	text[word.n] = 0;
	if (strlen(text) != word.n || inet_pton(AF_INET6, text, byte) != 1)
		return -1;
	for (int i = 0; i < 16; i++)
		sum = sum << 8 | byte[i];
	*addr = sum;
	return 0;
}

static int read_address(struct set_word word, struct address *address)
{
	uint32_t four;

	if (!read_four(word, &four)) {
		*address = (struct address){(wide)four << 96, 4};
		return 0;
	}
	if (!memchr(word.at, ':', word.n) || read_six(word, &address->bits))
		return -1;
	address->family = 6;
	return 0;
}

int set_is_address(struct set_word word)
{
	struct address address;

	return !read_address(set_trim(word), &address);
}

int set_read_length(struct set_word word, unsigned int most, unsigned int *length)
{
	unsigned int sum = 0;

	if (!word.n || word.n > 3)
		return -1;
	for (size_t i = 0; i < word.n; i++) {
		if (word.at[i] < '0' || word.at[i] > '9')
			return -1;
		sum = sum * 10 + (unsigned int)(word.at[i] - '0');
	}
	if (sum > most)
		return -1;
	*length = sum;
	return 0;
}

/* The bits that a prefix of that length leaves open. */
static wide host_bits(unsigned int length)
{
	return length ? ((wide)1 << (128 - length)) - 1 : ~(wide)0;
}

static void set_ends(struct set_range *range, uint8_t family, wide first, wide last)
{
	*range = (struct set_range){(uint64_t)(first >> 64), (uint64_t)first,
				    (uint64_t)(last >> 64), (uint64_t)last, family};
}

/* ::ffff:0:0/96, where no packet's addresses are. */
static int is_mapped(const struct address *a)
{
	return a->family == 6 && a->bits >> 32 == 0xffff;
}

static enum set_wrong read_prefix(struct set_word word, const char *slash, struct set_range *range)
{
	struct set_word before = {word.at, (size_t)(slash - word.at)};
	struct set_word after = {slash + 1, word.n - before.n - 1};
	struct address a;
	unsigned int length;
	uint32_t mask;
	wide host;

	if (read_address(set_trim(before), &a))
		return SET_NO_ADDRESS;
	if (is_mapped(&a))
		return SET_MAPPED;
	after = set_trim(after);
	if (a.family == 4 && !read_four(after, &mask))
		return SET_NETMASK;
	if (set_read_length(after, a.family == 4 ? 32 : 128, &length))
		return SET_NO_LENGTH;
	host = host_bits(length);
	set_ends(range, a.family, a.bits & ~host, a.bits | host);
	return a.bits & host ? SET_HOST_BITS : SET_RIGHT;
}

static enum set_wrong read_range(struct set_word word, const char *dash, struct set_range *range)
{
	struct set_word before = {word.at, (size_t)(dash - word.at)};
	struct set_word after = {dash + 1, word.n - before.n - 1};
	struct address first, last;

	if (read_address(set_trim(before), &first) || read_address(set_trim(after), &last))
		return SET_NO_ADDRESS;
	if (first.family != last.family)
		return SET_FAMILIES;
	if (is_mapped(&first) || is_mapped(&last))
		return SET_MAPPED;
	if (first.bits > last.bits)
		return SET_BACKWARDS;
	set_ends(range, first.family, first.bits,
		 first.family == 4 ? last.bits | host_bits(32) : last.bits);
	return SET_RIGHT;
}

enum set_wrong set_range_read(struct set_word word, struct set_range *range)
{
	struct address a;
	const char *at;

	word = set_trim(word);
	at = memchr(word.at, '/', word.n);
	if (at)
		return read_prefix(word, at, range);
	at = memchr(word.at, '-', word.n);
	if (at)
		return read_range(word, at, range);
	if (read_address(word, &a))
		return SET_NO_ADDRESS;
	if (is_mapped(&a))
		return SET_MAPPED;
	set_ends(range, a.family, a.bits, a.family == 4 ? a.bits | host_bits(32) : a.bits);
	return SET_RIGHT;
}

void set_range_widen(struct set_range *range, unsigned int length)
{
	wide host = host_bits(length);

	set_ends(range, range->family, ((wide)range->first_high << 64 | range->first_low) & ~host,
		 ((wide)range->last_high << 64 | range->last_low) | host);
}

/* The shortest prefix that begins at `first` and does not go beyond `last`. */
static unsigned int length_from(wide first, wide last, unsigned int bits)
{
	unsigned int length = bits;

	while (length && !(first & host_bits(length - 1)) &&
	       (first | host_bits(length - 1)) <= last)
		length--;
	return length;
}

bool set_range_within(const struct set_range *a, const struct set_range *b)
{
	wide first = (wide)a->first_high << 64 | a->first_low;
	wide last = (wide)a->last_high << 64 | a->last_low;

	return a->family == b->family && ((wide)b->first_high << 64 | b->first_low) >= first &&
	       ((wide)b->last_high << 64 | b->last_low) <= last;
}

int set_range_add(const struct set_range *range, uint16_t value, uint32_t line,
		  struct set_list *list)
{
	wide first = (wide)range->first_high << 64 | range->first_low;
	wide last = (wide)range->last_high << 64 | range->last_low;

	for (;;) {
		unsigned int length = length_from(first, last, range->family == 4 ? 32 : 128);
		struct set_entry e = {(uint64_t)(first >> 64), (uint64_t)first, line, value,
				      range->family,	       (uint8_t)length};

		if (set_list_add(list, &e))
			return -1;
		first |= host_bits(length);
		if (first >= last)
			return 0;
		first++;
	}
}
