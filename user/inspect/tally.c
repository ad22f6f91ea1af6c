/* SPDX-License-Identifier: GPL-2.0-only */
#include "inspect/tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "config/units.h"
#include "plan/plan.h"
#include "sets/words.h"

_Static_assert(sizeof(struct tally_key) % 4 == 0, "a key has no padding that could differ");
_Static_assert(sizeof(struct tally_key) <= KEYED_BYTES, "a key is hashed whole");

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
	if (!kind->parts)
		key.family = PACER_FAMILY_4; /* one for both */
	else if (pkt->family == PACER_FAMILY_NONE)
		key.family = UINT8_MAX; /* of no key that there is */
	return key;
}

static const char *address_text(const struct pacer_packet *pkt, uint32_t word, uint8_t len,
				char *buf, size_t size)
{
	bool four = pkt->family == PACER_FAMILY_4;
	uint8_t whole = four ? 32 : 128;
	/* A key that was read of a damaged table may have more bits than there are. */
	struct prefix prefix = {.family = four ? 4 : 6, .len = len < whole ? len : whole};

	if (pkt->family == PACER_FAMILY_NONE) {
		snprintf(buf, size, "?");
		return buf;
	}
	for (uint32_t bit = 0; bit < prefix.len; bit++)
		prefix.addr[bit / 8] |=
		    pkt->key[word + bit / 32] >> (31 - bit % 32) << (7 - bit % 8) & 0x80 >> bit % 8;
	return units_prefix_text(&prefix, buf, size);
}

/* "53", or "fragment 4711" where the datagram's identification stands for the ports, or "?" where
 * they are not known.
 */
static const char *ports_text(const struct pacer_packet *pkt, uint16_t parts, char *buf,
			      size_t size)
{
	bool both = parts & KEY_PART_SPORT && parts & KEY_PART_DPORT;
	uint32_t ports = pkt->key[PACER_WORD_PORTS];
	uint32_t one = parts & KEY_PART_SPORT ? ports >> 16 : ports & 0xffff;

	if (pkt->key[PACER_WORD_META] & PACER_META_PART)
		snprintf(buf, size, "%s", both ? "? ?" : "?");
	else if (pkt->fragment == PACER_FRAG_LATER)
		snprintf(buf, size, "fragment %u", both ? ports : one);
	else if (both)
		snprintf(buf, size, "%u %u", ports >> 16, ports & 0xffff);
	else
		snprintf(buf, size, "%u", one);
	return buf;
}

/* One key of both families: it has a value in the place of its only address. */
static bool is_of_both(const struct policy_key *kind)
{
	return kind->parts & KEY_VALUES && !(kind->parts & (KEY_PART_SRC | KEY_PART_DST));
}

/*
 * No IPv6 packet is of protocol 0, which is an extension header: the protocol is one that a later
 * fragment does not say, or beyond what is read. The words of the key say so by themselves, as a
 * key of the table of bans has nothing else.
 */
static bool proto_unknown(const struct policy_key *kind, const struct pacer_packet *pkt)
{
	bool six = pkt->family == PACER_FAMILY_6 || is_of_both(kind);
	bool ported = kind->parts & (KEY_PART_SPORT | KEY_PART_DPORT);

	if (pkt->proto)
		return false;
	return pkt->ports == PACER_PORTS_ANY ||
	       (six && (!ported || pkt->key[PACER_WORD_META] & PACER_META_MARKS));
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

/* Appends a word, with `before` where it is not the first. */
static void add_text(char *buf, size_t size, const char *before, const char *text)
{
	size_t len = strlen(buf);

	snprintf(buf + len, size - len, "%s%s", len ? before : "", text);
}

/* The source or the destination, or its value. */
static void add_end(const struct policy_key *kind, const struct pacer_packet *pkt, bool dst,
		    char *buf, size_t size)
{
	bool four = pkt->family == PACER_FAMILY_4;
	uint32_t word = dst ? PACER_WORD_DADDR : PACER_WORD_SADDR;
	uint8_t len4 = dst ? kind->dst4 : kind->src4, len6 = dst ? kind->dst6 : kind->src6;
	char text[SET_WORD_TEXT];

	if (kind->parts & (dst ? KEY_PART_DST_VALUE : KEY_PART_SRC_VALUE))
		add_text(buf, size, ">", set_word_text(pkt->key[word], text, sizeof(text)));
	else if (kind->parts & (dst ? KEY_PART_DST : KEY_PART_SRC))
		add_text(buf, size, ">",
			 address_text(pkt, word, four ? len4 : len6, text, sizeof(text)));
}

const char *tally_key_text(const struct policy_key *kind, const struct pacer_packet *pkt, char *buf,
			   size_t size)
{
	char text[SET_WORD_TEXT];

	*buf = 0;
	add_end(kind, pkt, false, buf, size);
	add_end(kind, pkt, true, buf, size);
	if (kind->parts & KEY_PART_PROTO)
		add_text(buf, size, " ",
			 proto_unknown(kind, pkt) ? "?"
						  : proto_text(pkt->proto, text, sizeof(text)));
	if (kind->parts & (KEY_PART_SPORT | KEY_PART_DPORT))
		add_text(buf, size, " ", ports_text(pkt, kind->parts, text, sizeof(text)));
	if (kind->parts & KEY_PART_VLAN) {
		snprintf(text, sizeof(text), "vlan %u", pacer_vlan_of(pkt->key[PACER_WORD_META]));
		add_text(buf, size, " ",
			 pacer_vlan_of(pkt->key[PACER_WORD_META]) == PACER_VLAN_NONE ? "untagged"
										     : text);
	}
	if (kind->parts & KEY_PART_TTL) {
		snprintf(text, sizeof(text), "ttl %u",
			 (pkt->key[PACER_WORD_META] & PACER_META_TTL) >> PACER_META_TTL_AT);
		add_text(buf, size, " ", text);
	}
	if (!kind->parts)
		snprintf(buf, size, "all");
	return buf;
}

/* --- and back ------------------------------------------------------------------------------- */

#define READ_MAX 64 /* of an address, a protocol, a port or a VLAN */

/*
 * The next word of the text, up to a blank, or to > where an address ends. false: there is none, or
 * it is longer than any.
 */
static bool next_word(const char **text, const char *end, char word[READ_MAX])
{
	size_t len = strcspn(*text, end);

	if (!len || len >= READ_MAX)
		return false;
	memcpy(word, *text, len);
	word[len] = 0;
	*text += len;
	if (**text && (*text)[1])
		(*text)++;
	return true;
}

static int read_address(const char *text, uint8_t len4, uint8_t len6, uint32_t word,
			struct pacer_packet *pkt)
{
	uint8_t family;
	struct prefix prefix;

	if (units_prefix(text, &prefix) || prefix.len != (prefix.family == 4 ? len4 : len6))
		return -1;
	family = prefix.family == 4 ? PACER_FAMILY_4 : PACER_FAMILY_6;
	if (pkt->family != PACER_FAMILY_NONE && pkt->family != family)
		return -1;
	pkt->family = family;
	for (uint32_t i = 0; i < (prefix.family == 4 ? 1 : 4); i++)
		pkt->key[word + i] = pacer_be32(&prefix.addr[4 * i]);
	return 0;
}

static int read_number(const char *text, uint32_t max, uint32_t *value)
{
	struct range range;

	if (units_range(text, max, &range) || range.low != range.high)
		return -1;
	*value = range.low;
	return 0;
}

/* "?": of IPv6 alone, as packets of IPv4 always say it; and 0 of IPv4 alone, if it is of either. */
static int read_proto(const char *text, struct pacer_packet *pkt)
{
	char name[16];
	uint32_t proto;

	if (!strcmp(text, "?")) {
		if (pkt->family == PACER_FAMILY_4)
			return -1;
		pkt->family = PACER_FAMILY_6;
		pkt->ports = PACER_PORTS_ANY;
		return 0;
	}
	for (proto = 0; proto < 256; proto++)
		if (!strcmp(proto_text(proto, name, sizeof(name)), text))
			break;
	if (proto == 256 && read_number(text, 255, &proto))
		return -1;
	if (!proto && pkt->family == PACER_FAMILY_NONE)
		pkt->family = PACER_FAMILY_4;
	pkt->proto = proto;
	pkt->key[PACER_WORD_META] |= proto;
	return 0;
}

/* "vlan 7" or "untagged". */
static int read_vlan(const char **text, struct pacer_packet *pkt)
{
	char word[READ_MAX];
	uint32_t vlan;

	if (!next_word(text, " ", word))
		return -1;
	if (!strcmp(word, "untagged"))
		return 0;
	if (strcmp(word, "vlan") || !next_word(text, " ", word) || read_number(word, 4095, &vlan))
		return -1;
	pkt->vlan = vlan;
	pkt->key[PACER_WORD_META] |= pacer_meta_vlan(pkt->vlan);
	return 0;
}

/* What stands for the ports, that the packet has them not, is a part of the key, too. */
static void mark_unread(struct pacer_packet *pkt, uint32_t mark)
{
	if (pkt->ports == PACER_PORTS_READ)
		pkt->ports = PACER_PORTS_UNKNOWN;
	pkt->key[PACER_WORD_META] |= mark;
}

/* "fragment 4711", behind the first word: of one port it has what the key keeps of the number. */
static int read_fragment(uint16_t parts, const char **text, struct pacer_packet *pkt)
{
	bool both = parts & KEY_PART_SPORT && parts & KEY_PART_DPORT;
	char word[READ_MAX];
	uint32_t datagram;

	if (!next_word(text, " ", word) || read_number(word, both ? UINT32_MAX : 65535, &datagram))
		return -1;
	pkt->key[PACER_WORD_PORTS] = parts & KEY_PART_DPORT ? datagram : datagram << 16;
	pkt->fragment = PACER_FRAG_LATER;
	mark_unread(pkt, PACER_META_FRAGMENT);
	return 0;
}

/* As ports_text() writes them. */
static int read_ports(uint16_t parts, const char **text, struct pacer_packet *pkt)
{
	bool both = parts & KEY_PART_SPORT && parts & KEY_PART_DPORT;
	char word[READ_MAX], more[READ_MAX] = "?";
	uint32_t sport, dport;

	if (!(parts & (KEY_PART_SPORT | KEY_PART_DPORT)))
		return 0;
	if (!next_word(text, " ", word))
		return -1;
	if (!strcmp(word, "fragment"))
		return read_fragment(parts, text, pkt);
	if (both && !next_word(text, " ", more))
		return -1;
	if (!strcmp(word, "?") && !strcmp(more, "?")) {
		mark_unread(pkt, PACER_META_PART);
		return 0;
	}
	if (pkt->ports == PACER_PORTS_ANY || read_number(word, 65535, &sport) ||
	    read_number(both ? more : word, 65535, &dport))
		return -1;
	pkt->key[PACER_WORD_PORTS] = sport << 16 | dport;
	return 0;
}

/* "ttl 64". */
static int read_ttl(const char **text, struct pacer_packet *pkt)
{
	char word[READ_MAX];
	uint32_t ttl;

	if (!next_word(text, " ", word) || strcmp(word, "ttl") != 0 ||
	    !next_word(text, " ", word) || read_number(word, 255, &ttl))
		return -1;
	pkt->key[PACER_WORD_META] |= ttl << PACER_META_TTL_AT;
	return 0;
}

/* What is behind the source and the destination, up to the end. */
static int read_others(const struct policy_key *kind, const char *text, struct pacer_packet *pkt)
{
	char word[READ_MAX];

	if (kind->parts & KEY_PART_PROTO && (!next_word(&text, " ", word) || read_proto(word, pkt)))
		return -1;
	if (read_ports(kind->parts, &text, pkt))
		return -1;
	if (kind->parts & KEY_PART_VLAN && read_vlan(&text, pkt))
		return -1;
	if (kind->parts & KEY_PART_TTL && read_ttl(&text, pkt))
		return -1;
	if (is_of_both(kind))
		pkt->family = PACER_FAMILY_4;
	return *text ? -1 : 0;
}

typedef int (*behind_reader)(const struct policy_key *kind, const char *text,
			     struct pacer_packet *pkt);

/*
 * "value(geo, XY)", as a packet that a limit sees has it (key.h), and what is behind it and `mark`.
 * The value may have a ")" in it: it ends before the first one behind which the rest can be read.
 */
static int read_value(const struct policy_key *kind, const char *text, bool dst, char mark,
		      behind_reader behind, struct pacer_packet *pkt)
{
	uint32_t *at = &pkt->key[dst ? PACER_WORD_DADDR : PACER_WORD_SADDR];
	const struct pacer_packet before = *pkt;
	uint32_t word;
	size_t n = 0;

	while ((word = set_word_read(text, &n))) {
		const char *rest = text + n;

		if (*rest && (*rest != mark || !rest[1]))
			continue;
		*pkt = before;
		*at = word;
		if (!behind(kind, rest + !!*rest, pkt))
			return 0;
	}
	return -1;
}

/* The destination, or its value, and what is behind it. */
static int read_dst(const struct policy_key *kind, const char *text, struct pacer_packet *pkt)
{
	char word[READ_MAX];

	if (kind->parts & KEY_PART_DST_VALUE)
		return read_value(kind, text, true, ' ', read_others, pkt);
	if (kind->parts & KEY_PART_DST &&
	    (!next_word(&text, " ", word) ||
	     read_address(word, kind->dst4, kind->dst6, PACER_WORD_DADDR, pkt)))
		return -1;
	return read_others(kind, text, pkt);
}

int tally_key_read(const struct policy_key *kind, const char *text, struct pacer_packet *pkt)
{
	const char *mark = kind->parts & (KEY_PART_DST | KEY_PART_DST_VALUE) ? ">" : " ";
	char word[READ_MAX];

	*pkt = (struct pacer_packet){.family = PACER_FAMILY_NONE, .vlan = PACER_VLAN_NONE};
	if (!kind->parts)
		return -1;
	if (kind->parts & KEY_PART_SRC_VALUE)
		return read_value(kind, text, false, *mark, read_dst, pkt);
	if (kind->parts & KEY_PART_SRC &&
	    (!next_word(&text, mark, word) ||
	     read_address(word, kind->src4, kind->src6, PACER_WORD_SADDR, pkt)))
		return -1;
	return read_dst(kind, text, pkt);
}

bool tally_key_fits(const struct pacer_limiter *t, const struct pacer_packet *pkt)
{
	for (uint32_t i = 0; i < 2; i++) {
		const char *set = t->value[i] ? set_word_set(pkt->key[4 * i]) : NULL;

		if (set && compile_name_id(set) != t->value_set[i])
			return false;
	}
	return true;
}

/* --- the table ------------------------------------------------------------------------------ */

int tally_open(struct tally *t, uint32_t places, size_t note_size)
{
	void *at;

	*t = (struct tally){
	    .note_size = note_size, .stride = NOTE_AT + (note_size + 7) / 8 * 8, .places = places};
	if (keyed_begin(&t->keyed))
		return -1;
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
	struct keyed_probe probe = keyed_probe(&t->keyed, key, sizeof(*key), t->places);

	for (uint32_t i = probe.place;; i = (i + probe.step) & (t->places - 1)) {
		struct tally_key *at = place_at(t, i);

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
