/* SPDX-License-Identifier: GPL-2.0-only */
#include "plan/tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "config/units.h"

_Static_assert(sizeof(struct tally_key) % 4 == 0, "a key has no padding that could differ");

#define NOTE_AT ((sizeof(struct tally_key) + 7) / 8 * 8)

/* --- keys ----------------------------------------------------------------------------------- */

struct tally_key tally_key_of(const struct pacer_limiter *t, const struct policy_key *kind,
			      const struct pacer_packet *pkt)
{
	static const uint32_t four[] = {PACER_WORD_SADDR, PACER_WORD_DADDR, PACER_WORD_PORTS,
					PACER_WORD_META};
	struct tally_key key = {.family = pkt->family};

	if (pkt->family == PACER_FAMILY_4)
		for (int i = 0; i < 4; i++)
			key.word[i] = pkt->key[four[i]] & t->mask4[i];
	else
		for (uint32_t i = 0; i < PACER_KEY_WORDS; i++)
			key.word[i] = pkt->key[i] & t->mask6[i];
	if (kind->kind == KEY_ALL)
		key.family = PACER_FAMILY_4; /* one for both */
	return key;
}

static const char *address_text(const struct pacer_packet *pkt, uint32_t word,
				const struct policy_key *kind, char *buf, size_t size)
{
	bool four = pkt->family == PACER_FAMILY_4;
	uint8_t len = four ? kind->len4 : kind->len6, whole = four ? 32 : 128;
	/* A kind that was read of a damaged table may lock more than there is. */
	struct prefix prefix = {.family = four ? 4 : 6, .len = len < whole ? len : whole};

	for (uint32_t bit = 0; bit < prefix.len; bit++)
		prefix.addr[bit / 8] |=
		    pkt->key[word + bit / 32] >> (31 - bit % 32) << (7 - bit % 8) & 0x80 >> bit % 8;
	return units_prefix_text(&prefix, buf, size);
}

/* "53", or "fragment 4711" where the datagram's identification stands for the ports, or "?" where
 * they are not known.
 */
static const char *ports_text(const struct pacer_packet *pkt, bool both, char *buf, size_t size)
{
	uint32_t ports = pkt->key[PACER_WORD_PORTS];

	if (pkt->key[PACER_WORD_META] & PACER_META_PART)
		snprintf(buf, size, "%s", both ? "? ?" : "?");
	else if (pkt->fragment == PACER_FRAG_LATER)
		snprintf(buf, size, "fragment %u", both ? ports : ports & 0xffff);
	else if (both)
		snprintf(buf, size, "%u %u", ports >> 16, ports & 0xffff);
	else
		snprintf(buf, size, "%u", ports & 0xffff);
	return buf;
}

/* As it is of IPv6's later fragments. */
static bool proto_unknown(const struct pacer_packet *pkt)
{
	return !pkt->proto &&
	       (pkt->ports == PACER_PORTS_ANY ||
		(pkt->family == PACER_FAMILY_6 && pkt->fragment == PACER_FRAG_LATER));
}

static const char *proto_text(uint8_t proto, char *buf, size_t size)
{
	const char *name = proto == 1	  ? "icmp"
			   : proto == 6	  ? "tcp"
			   : proto == 17  ? "udp"
			   : proto == 58  ? "icmpv6"
			   : proto == 132 ? "sctp"
					  : NULL;

	if (name)
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "%u", proto);
	return buf;
}

const char *tally_key_text(const struct policy_key *kind, const struct pacer_packet *pkt, char *buf,
			   size_t size)
{
	char src[64], dst[64], ports[32], proto[16];

	address_text(pkt, PACER_WORD_SADDR, kind, src, sizeof(src));
	address_text(pkt, PACER_WORD_DADDR, kind, dst, sizeof(dst));
	switch (kind->kind) {
	case KEY_FLOW:
		snprintf(buf, size, "%s>%s %s %s", src, dst,
			 proto_unknown(pkt) ? "?" : proto_text(pkt->proto, proto, sizeof(proto)),
			 ports_text(pkt, true, ports, sizeof(ports)));
		break;
	case KEY_SRC:
		snprintf(buf, size, "%s", src);
		break;
	case KEY_DST:
		snprintf(buf, size, "%s", dst);
		break;
	case KEY_SRC_DPORT:
		snprintf(buf, size, "%s %s", src, ports_text(pkt, false, ports, sizeof(ports)));
		break;
	case KEY_ALL:
		snprintf(buf, size, "all");
		break;
	}
	return buf;
}

/* --- the table ------------------------------------------------------------------------------ */

int tally_open(struct tally *t, uint32_t places, size_t note_size)
{
	void *at;

	*t = (struct tally){
	    .note_size = note_size, .stride = NOTE_AT + (note_size + 7) / 8 * 8, .places = places};
	at = mmap(NULL, places * t->stride, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return -1;
	t->at = at;
	return 0;
}

void tally_close(struct tally *t)
{
	if (t->at)
		munmap(t->at, t->places * t->stride);
	t->at = NULL;
}

uint32_t tally_room(const struct tally *t)
{
	return t->places / 8 * 7;
}

static struct tally_key *place_at(const struct tally *t, uint32_t i)
{
	return (struct tally_key *)(t->at + i * t->stride);
}

/* The key's place, or the free one where it would go. There is always a free one. */
static struct tally_key *place_of(const struct tally *t, const struct tally_key *key)
{
	uint64_t h = (uint64_t)key->rule << 16 | key->limit << 8 | key->family;
	uint32_t i;

	for (i = 0; i < PACER_KEY_WORDS; i++)
		h = (h ^ key->word[i]) * 0x9e3779b97f4a7c15 ^ h >> 29;
	for (i = h >> 32;; i++) {
		struct tally_key *at = place_at(t, i & (t->places - 1));

		if (at->family == PACER_FAMILY_NONE || !memcmp(at, key, sizeof(*key)))
			return at;
	}
}

void *tally_find(const struct tally *t, const struct tally_key *key)
{
	struct tally_key *at = place_of(t, key);

	return at->family == PACER_FAMILY_NONE ? NULL : (uint8_t *)at + NOTE_AT;
}

void *tally_put(struct tally *t, const struct tally_key *key)
{
	struct tally_key *at = place_of(t, key);

	if (at->family == PACER_FAMILY_NONE) {
		if (t->n == tally_room(t)) {
			t->lost++;
			return NULL;
		}
		*at = *key;
		t->n++;
	}
	return (uint8_t *)at + NOTE_AT;
}

void tally_sort(struct tally *t, int (*order)(const void *a, const void *b))
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->places && n < t->n; i++)
		if (place_at(t, i)->family != PACER_FAMILY_NONE)
			memmove(place_at(t, n++), place_at(t, i), t->stride);
	qsort(t->at, t->n, t->stride, order);
}

const struct tally_key *tally_key_at(const struct tally *t, uint32_t i)
{
	return place_at(t, i);
}

void *tally_note_at(const struct tally *t, uint32_t i)
{
	return (uint8_t *)place_at(t, i) + NOTE_AT;
}

const struct tally_key *tally_sorted_key(const void *at)
{
	return at;
}

const void *tally_sorted_note(const void *at)
{
	return (const uint8_t *)at + NOTE_AT;
}
