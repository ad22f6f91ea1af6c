/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/fleet_keys.h"

#include <string.h>

#include "inspect/tally.h"
#include "plan/compile.h"

_Static_assert(FLEET_LANES_MAX == PACER_LANES + 1, "lane 0 is of all keys");

/* A datagram's later fragments are no key for a lane: it is gone before the fleet has agreed. */
static bool read_key(const struct policy_key *kind, const char *text, struct pacer_packet *pkt)
{
	return !tally_key_read(kind, text, pkt) && pkt->ports == PACER_PORTS_READ;
}

bool fleet_key_text(const struct fleet_limit *limit, const struct pacer_packet *pkt,
		    char text[FLEET_KEY_TEXT])
{
	struct policy_key kind = compile_key_of(limit->limiter.key_id);
	struct pacer_packet again;
	char whole[TALLY_TEXT];

	memset(text, 0, FLEET_KEY_TEXT);
	tally_key_text(&kind, pkt, whole, sizeof(whole));
	if (strlen(whole) >= FLEET_KEY_TEXT || !read_key(&kind, whole, &again) ||
	    !fleet_same_key(limit, pkt, &again))
		return false;
	memcpy(text, whole, strlen(whole) + 1);
	return true;
}

struct fleet_held fleet_keys_held(const struct fleet_limit *limit, const struct fleet_picture *p)
{
	struct policy_key kind = compile_key_of(limit->limiter.key_id);
	struct fleet_held to = {.units = p->value[0], .floor = p->floor, .until_ns = p->until_ns};

	for (uint32_t k = 1; k < FLEET_LANES_MAX; k++) {
		struct fleet_lane *lane = &to.lane[k - 1];

		lane->is = p->own[k] && read_key(&kind, p->key[k], &lane->key);
		lane->units = p->value[k];
		if (p->own[k] && !lane->is && p->value[k] < to.units)
			to.units = p->value[k];
	}
	return to;
}
