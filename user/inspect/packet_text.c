/* SPDX-License-Identifier: GPL-2.0-only */
#include "inspect/packet_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/units.h"
#include "inspect/tally.h"

#define WORDS_MAX 8
#define WORD_MAX  64
#define LEN_MAX	  65535

static const struct policy_key flow = KEY_FLOW;

struct words {
	char at[WORDS_MAX][WORD_MAX];
	size_t n;
};

/* Between blanks; > is a word of its own. False: there are too many, or one is too long. */
static bool split(const char *text, struct words *w)
{
	w->n = 0;
	for (text += strspn(text, " \t"); *text; text += strspn(text, " \t")) {
		size_t len = *text == '>' ? 1 : strcspn(text, " \t>");

		if (w->n == WORDS_MAX || len >= WORD_MAX)
			return false;
		memcpy(w->at[w->n], text, len);
		w->at[w->n++][len] = 0;
		text += len;
	}
	return true;
}

/* "192.0.2.1:53", "[2001:db8::1]:53", "2001:db8::1" to an address and a port, "" for none. */
static bool cut_port(const char *text, char address[WORD_MAX], const char **port)
{
	const char *end = *text == '[' ? strchr(text, ']') : strchr(text, ':');

	*port = "";
	if (*text == '[') {
		if (!end || (end[1] && end[1] != ':'))
			return false;
		snprintf(address, WORD_MAX, "%.*s", (int)(end - text - 1), text + 1);
		*port = end[1] ? end + 2 : "";
		return !end[1] || end[2];
	}
	if (!end || strchr(end + 1, ':')) {
		snprintf(address, WORD_MAX, "%s", text);
		return true;
	}
	snprintf(address, WORD_MAX, "%.*s", (int)(end - text), text);
	*port = end + 1;
	return end[1];
}

/* As a flow's key: so that there is one reader of addresses, protocols and ports. */
static int read_ends(const struct words *w, struct pacer_packet *pkt)
{
	char src[WORD_MAX], dst[WORD_MAX], text[4 * WORD_MAX];
	const char *sport, *dport;

	if (!cut_port(w->at[1], src, &sport) || !cut_port(w->at[3], dst, &dport))
		return -1;
	snprintf(text, sizeof(text), "%s>%s %s %s %s", src, dst, w->at[0], *sport ? sport : "0",
		 *dport ? dport : "0");
	if (tally_key_read(&flow, text, pkt))
		return -1;
	return pacer_has_ports(pkt->proto) ? -!(*sport && *dport) : -(*sport || *dport);
}

static int read_more(const struct words *w, size_t from, struct pacer_packet *pkt)
{
	struct range range;

	for (size_t i = from; i < w->n; i += 2) {
		bool len = !strcmp(w->at[i], "len");

		if ((!len && strcmp(w->at[i], "vlan") != 0) || i + 1 == w->n ||
		    units_range(w->at[i + 1], len ? LEN_MAX : PACER_VLAN_NONE - 1, &range) ||
		    range.low != range.high || (len && range.low < PACKET_LEN_SMALLEST))
			return -1;
		if (len)
			pkt->len_bytes = range.low;
		else
			pkt->vlan = (uint16_t)range.low;
	}
	return 0;
}

bool packet_text_is(const char *text)
{
	return strchr(text, '>');
}

/* A flow's key has no more to be read. */
static int read_any(const char *text, struct pacer_packet *pkt)
{
	struct words w;

	if (!tally_key_read(&flow, text, pkt))
		return 0;
	if (!split(text, &w) || w.n < 4 || strcmp(w.at[2], ">") != 0 || read_ends(&w, pkt))
		return -1;
	pkt->len_bytes = PACKET_LEN_SMALLEST;
	return read_more(&w, 4, pkt);
}

int packet_text_read(const char *text, struct pacer_packet *pkt, struct policy_error *error)
{
	if (read_any(text, pkt))
		return policy_fail(error, 0,
				   "%.120s is no packet, such as \"udp 203.0.113.9:4000 > "
				   "198.51.100.1:53 len 80\" or \"icmpv6 2001:db8::1 > "
				   "2001:db8::2 vlan 7\" (len: %u to %u)",
				   text, PACKET_LEN_SMALLEST, LEN_MAX);
	if (!pkt->len_bytes)
		pkt->len_bytes = PACKET_LEN_SMALLEST;
	pkt->ports = pacer_has_ports(pkt->proto) ? PACER_PORTS_READ : PACER_PORTS_NONE;
	return 0;
}
