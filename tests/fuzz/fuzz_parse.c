/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parser, and that of tunnels: the way of the usual frame says what the general one says,
 * nothing beyond the frame is read, and a frame that was cut behind its headers is read as the
 * whole one.
 */
#include "fuzz.h"
#include "inner.h"
#include "parse.h"

/* What is in the tunnel of these n bytes, of a frame of `len`. */
static enum pacer_parse_result inside(const uint8_t *frame, uint32_t n, uint32_t len,
				      struct pacer_walk *w)
{
	struct pacer_frame f = {frame, frame + n, len, 1};
	struct pacer_tunnel t = {0, 0, 0, PACER_PARSED};
	enum pacer_parse_result result;

	memset(w, 0, sizeof(*w));
	result = pacer_parse(frame, frame + n, len, &w->pkt);
	if (result != PACER_PARSED && result != PACER_PARSE_NOT_IP)
		return result;
	pacer_tunnel_find(&f, w, &t);
	if (t.said == PACER_PARSED) {
		HOLDS(t.at < PACER_INNER_DEEPEST && t.at <= t.end);
		t.said = pacer_inner_parse(&f, w, &t);
	}
	if (t.said == PACER_PARSED) {
		HOLDS(w->pkt.inner && w->pkt.l3 == t.at && w->pkt.l3 < n);
		HOLDS(w->pkt.len_bytes == len);
		HOLDS(t.end == PACER_TUNNEL_OPEN || t.end <= len);
	}
	return (enum pacer_parse_result)t.said;
}

/* Four bytes: how long the frame was on the wire, or that it was as long as it is; where it is cut.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	uint32_t more = (uint32_t)fuzz_take(&in, 2), cut = (uint32_t)fuzz_take(&in, 2);
	uint32_t n = (uint32_t)in.left, len = more & 1 ? more >> 1 : n;
	uint8_t *frame = fuzz_copy(in.at, n), *head;
	struct pacer_packet fast, general, part, raw;
	enum pacer_parse_result result, of_part;
	struct pacer_walk within, within_part;

	memset(&fast, 0xa5, sizeof(fast));
	memset(&general, 0x5a, sizeof(general));
	result = pacer_parse_any(frame, frame + n, len, &general);
	if (pacer_parse_fast(frame, frame + n, len, &fast)) {
		HOLDS(result == PACER_PARSED);
		HOLDS(!memcmp(&fast, &general, sizeof(fast)));
	}
	HOLDS(general.len_bytes == len);
	HOLDS(result != PACER_PARSED || general.family == PACER_FAMILY_4 ||
	      general.family == PACER_FAMILY_6);
	HOLDS(pacer_parse(frame, frame + n, len, &part) == result);
	HOLDS(!memcmp(&part, &general, sizeof(part)));

	cut = n ? cut % (n + 1) : 0;
	head = fuzz_copy(frame, cut);
	of_part = pacer_parse(head, head + cut, len, &part);
	if (of_part == PACER_PARSED && !(part.key[PACER_WORD_META] & PACER_META_PART)) {
		HOLDS(result == PACER_PARSED);
		HOLDS(!memcmp(&part, &general, sizeof(part)));
	}
	result = inside(frame, n, len, &within);
	of_part = inside(head, cut, len, &within_part);
	if (of_part == PACER_PARSE_NOT_IP)
		HOLDS(result == PACER_PARSE_NOT_IP);
	if (of_part == PACER_PARSED && !(within_part.pkt.key[PACER_WORD_META] & PACER_META_PART)) {
		HOLDS(result == PACER_PARSED);
		HOLDS(!memcmp(&within_part.pkt, &within.pkt, sizeof(within.pkt)));
	}
	(void)!pacer_parse_raw(head, head + cut, len, &raw);
	HOLDS(raw.len_bytes == len);
	free(head);
	free(frame);
	return 0;
}
