/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: frames built byte by byte from a recipe. Big-endian on the wire, host order in recipes.
 */
#ifndef FRAME_H
#define FRAME_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#define FRAME_MAX  9000
#define FRAME_EXTS 10
#define FRAME_TAGS 17

#define VID_OUTER 100
#define VID_INNER 200

struct recipe {
	uint16_t tag[FRAME_TAGS]; /* ethertypes, 0: none */
	uint8_t priority;	  /* so many of them, from the first on, are of VLAN 0 */
	uint8_t family;		  /* 4, 6, or 0: what `type` says */
	uint16_t type;
	uint8_t options; /* words of IPv4 options */
	uint16_t frag;	 /* flags and offset as in IPv4's header, or in IPv6's fragment header */
	uint8_t n_ext, ext[FRAME_EXTS], ext_len;
	uint8_t proto;
	uint32_t saddr[4], daddr[4]; /* of IPv4 the first word */
	uint16_t sport, dport;
	uint32_t id;	  /* of the datagram */
	uint32_t payload; /* bytes after the last header, ports included */
};

struct frame {
	uint8_t b[FRAME_MAX];
	uint32_t n, l3;
};

static inline void frame_put(struct frame *f, uint64_t v, int bytes)
{
	assert(f->n + bytes <= FRAME_MAX);
	while (bytes--)
		f->b[f->n++] = v >> 8 * bytes;
}

static inline void frame_ethernet(struct frame *f, const struct recipe *r)
{
	int i;

	frame_put(f, 0x020000000001, 6);
	frame_put(f, 0x020000000002, 6);
	for (i = 0; i < FRAME_TAGS && r->tag[i]; i++) {
		int vid = i < r->priority ? 0 : i == r->priority ? VID_OUTER : VID_INNER;

		frame_put(f, r->tag[i], 2);
		frame_put(f, 0xe000 | vid, 2);
	}
	frame_put(f, r->family == 4 ? 0x0800 : r->family == 6 ? 0x86dd : r->type, 2);
	f->l3 = f->n;
}

static inline void frame_payload(struct frame *f, const struct recipe *r)
{
	uint32_t end = f->n + r->payload;

	assert(r->payload >= 4 && end <= FRAME_MAX);
	frame_put(f, r->sport, 2);
	frame_put(f, r->dport, 2);
	memset(f->b + f->n, 0xa5, end - f->n);
	f->n = end;
}

static inline void frame_ip4(struct frame *f, const struct recipe *r)
{
	int i;

	frame_put(f, 0x45 + r->options, 1);
	frame_put(f, 0, 1);
	frame_put(f, 20 + 4 * r->options + r->payload, 2);
	frame_put(f, r->id, 2);
	frame_put(f, r->frag, 2);
	frame_put(f, 64, 1);
	frame_put(f, r->proto, 1);
	frame_put(f, 0, 2);
	frame_put(f, r->saddr[0], 4);
	frame_put(f, r->daddr[0], 4);
	for (i = 0; i < r->options; i++)
		frame_put(f, 0x01010101, 4);
	frame_payload(f, r);
}

static inline void frame_extension(struct frame *f, const struct recipe *r, uint8_t type,
				   uint8_t next)
{
	uint32_t len = type == 51 ? 4 * (r->ext_len + 3) : 8 * (r->ext_len + 1);
	uint32_t end = f->n + len;

	frame_put(f, next, 1);
	if (type == 44) {
		frame_put(f, 0xff, 1); /* reserved: a length elsewhere */
		frame_put(f, r->frag, 2);
		frame_put(f, r->id, 4);
		return;
	}
	frame_put(f, type == 51 ? r->ext_len + 1 : r->ext_len, 1);
	while (f->n < end)
		frame_put(f, 0, 1);
}

static inline void frame_ip6(struct frame *f, const struct recipe *r)
{
	uint32_t at = f->n, i;

	frame_put(f, 0x60000000, 4);
	frame_put(f, 0, 2);
	frame_put(f, r->n_ext ? r->ext[0] : r->proto, 1);
	frame_put(f, 64, 1);
	for (i = 0; i < 4; i++)
		frame_put(f, r->saddr[i], 4);
	for (i = 0; i < 4; i++)
		frame_put(f, r->daddr[i], 4);
	for (i = 0; i < r->n_ext; i++)
		frame_extension(f, r, r->ext[i], i + 1 < r->n_ext ? r->ext[i + 1] : r->proto);
	frame_payload(f, r);
	f->b[at + 4] = (f->n - at - 40) >> 8;
	f->b[at + 5] = f->n - at - 40;
}

static inline void frame_build(struct frame *f, const struct recipe *r)
{
	f->n = 0;
	frame_ethernet(f, r);
	if (r->family == 4)
		frame_ip4(f, r);
	else if (r->family == 6)
		frame_ip6(f, r);
	else
		frame_payload(f, r);
}

#endif
