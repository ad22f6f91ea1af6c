/* SPDX-License-Identifier: GPL-2.0-only */
#include "sets/pack.h"

#include <errno.h>
#include <stdlib.h>

typedef unsigned __int128 wide;

/* Of a prefix's first byte; between them and MORE are the lowest bits of its distance. */
#define LENGTH	 1u    /* its length and family follow */
#define VALUE	 2u    /* its value follows */
#define MORE	 0x80u /* more bytes of a number follow */
#define FIRST	 5     /* bits of the distance in the first byte */
#define FIRST_AT 2

static wide address(const struct set_entry *e)
{
	return (wide)e->high << 64 | e->low;
}

/* What part of an address a prefix of that length leaves open. */
static unsigned int open_bits(unsigned int len)
{
	return 128 - len;
}

static wide shifted(wide a, unsigned int bits)
{
	return bits < 128 ? a >> bits : 0;
}

static int put(struct set_packed *p, uint8_t byte)
{
	if (p->n == p->room) {
		size_t room = p->room ? 2 * p->room : 4096;
		uint8_t *more = realloc(p->byte, room);

		if (!more)
			return -1;
		p->byte = more;
		p->room = room;
	}
	p->byte[p->n++] = byte;
	return 0;
}

/* A number by 7 bits, the lowest first. */
static int put_number(struct set_packed *p, wide number)
{
	for (; number > 0x7f; number >>= 7)
		if (put(p, MORE | (uint8_t)(number & 0x7f)))
			return -1;
	return put(p, (uint8_t)number);
}

static int put_entry(struct set_packed *p, const struct set_entry *e, const struct set_entry *last)
{
	unsigned int bits = open_bits(e->len);
	bool family = e->family != last->family;
	wide from = family ? 0 : address(last);
	wide distance = shifted(address(e), bits) - shifted(from, bits);
	uint8_t flags =
	    (family || e->len != last->len ? LENGTH : 0) | (e->value != last->value ? VALUE : 0);
	bool more = distance >> FIRST;

	if (put(p,
		flags | (uint8_t)(distance & ((1 << FIRST) - 1)) << FIRST_AT | (more ? MORE : 0)))
		return -1;
	if (more && put_number(p, distance >> FIRST))
		return -1;
	if (flags & LENGTH && put_number(p, (wide)e->len << 1 | (e->family == 6)))
		return -1;
	return flags & VALUE ? put_number(p, e->value) : 0;
}

int set_pack(const struct set_list *list, struct set_packed *packed)
{
	struct set_entry last = {.family = 0};

	*packed = (struct set_packed){NULL, 0, 0};
	for (size_t i = 0; i < list->n; i++) {
		if (put_entry(packed, &list->entry[i], &last)) {
			set_packed_free(packed);
			return -1;
		}
		last = list->entry[i];
	}
	return 0;
}

void set_packed_free(struct set_packed *packed)
{
	free(packed->byte);
	*packed = (struct set_packed){NULL, 0, 0};
}

struct reader {
	const uint8_t *at, *end;
	bool failed;
};

static uint8_t get(struct reader *r)
{
	if (r->at < r->end)
		return *r->at++;
	r->failed = true;
	return 0;
}

static wide get_number(struct reader *r)
{
	wide number = 0;

	for (unsigned int bit = 0; bit < 128; bit += 7) {
		uint8_t byte = get(r);

		number |= (wide)(byte & 0x7f) << bit;
		if (!(byte & MORE))
			return number;
	}
	r->failed = true;
	return 0;
}

/* *e is the one before. */
static void get_entry(struct reader *r, struct set_entry *e)
{
	uint8_t first = get(r);
	wide distance = first >> FIRST_AT & ((1 << FIRST) - 1), from = address(e), at;
	unsigned int bits;

	if (first & MORE)
		distance |= get_number(r) << FIRST;
	if (first & LENGTH) {
		wide length = get_number(r);
		uint8_t family = length & 1 ? 6 : 4;

		if (length >> 1 > (family == 4 ? 32 : 128))
			r->failed = true;
		from = family == e->family ? from : 0;
		e->family = family;
		e->len = (uint8_t)(length >> 1);
	}
	if (first & VALUE) {
		wide value = get_number(r);

		r->failed |= !value || value > SET_VALUE_MAX;
		e->value = (uint16_t)value;
	}
	r->failed |= !e->family || !e->value;
	bits = open_bits(e->len);
	at = bits < 128 ? (shifted(from, bits) + distance) << bits : 0;
	e->high = (uint64_t)(at >> 64);
	e->low = (uint64_t)at;
	r->failed |= e->family == 4 && e->low;
}

int set_unpack(const uint8_t *byte, size_t n, struct set_list *list)
{
	struct reader r = {byte, byte + n, false};
	struct set_entry e = {.family = 0};

	while (r.at < r.end) {
		get_entry(&r, &e);
		if (r.failed) {
			errno = EBADMSG;
			return -1;
		}
		if (set_list_add(list, &e))
			return -1;
	}
	return 0;
}
