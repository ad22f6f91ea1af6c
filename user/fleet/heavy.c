/* SPDX-License-Identifier: GPL-2.0-only */
#include "fleet/heavy.h"

#include <string.h>

#define SECOND_NS    1000000000ull
#define MEMBERS_LOOK 8	/* a second more between looks for so many members */
#define UNSEEN_DEN   16 /* of an equal part: what is asked for whatever the sample shows */

/* The equal part of the members that there are. */
static uint64_t equal_part(const struct fleet_share *s, uint32_t *members)
{
	*members = 0;
	for (uint32_t i = 0; i < s->record.slots; i++)
		*members += s->record.slot[i].session != 0;
	return *members ? fleet_limit(&s->record) / *members : UINT64_MAX;
}

static uint32_t lane_of(const struct fleet_record *record, const char *key)
{
	for (uint32_t k = 1; k < FLEET_LANES_MAX; k++)
		if (!strcmp(record->key[k], key))
			return k;
	return 0;
}

/* Does another member ask for more of the key than an equal part? */
static bool others_need(const struct fleet_share *s, uint64_t member, const char *key,
			uint64_t equal)
{
	uint32_t lane = lane_of(&s->record, key);

	for (uint32_t i = 0; lane && i < s->record.slots; i++) {
		const struct fleet_slot *slot = &s->record.slot[i];

		if (slot->id != member && slot->session && slot->cell[lane].want > equal)
			return true;
	}
	return false;
}

static uint64_t seen_of(const struct fleet_seen *seen, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(seen[i].key, key))
			return seen[i].units;
	return 0;
}

/* Its place among those that are asked for; "": a free one; 0: there is none. */
static uint32_t place_of(const struct fleet_share *s, const char *key)
{
	for (uint32_t i = 1; i < FLEET_LANES_MAX; i++)
		if (!strcmp(s->want_key[i], key))
			return i;
	return 0;
}

static void begin(struct fleet_heavy *h, struct fleet_share *s, const char *key)
{
	uint32_t i = place_of(s, key) ? 0 : place_of(s, "");

	if (!i)
		return;
	memcpy(s->want_key[i], key, FLEET_KEY_TEXT);
	h->demand[i] = (struct fleet_demand){0};
	h->asked[i] = 0;
}

static void end(struct fleet_heavy *h, struct fleet_share *s, uint32_t i)
{
	memset(s->want_key[i], 0, sizeof(s->want_key[i]));
	s->want[i] = h->asked[i] = 0;
}

void fleet_heavy(struct fleet_heavy *h, struct fleet_share *s, uint64_t member,
		 const struct fleet_seen *seen, size_t n, uint64_t now_ns)
{
	uint64_t limit = s->params.limit, equal, least;
	uint32_t members;

	if (now_ns < h->due_ns)
		return;
	equal = equal_part(s, &members);
	least = equal / UNSEEN_DEN; /* where that is none: see fleet_ask */
	h->due_ns = now_ns + SECOND_NS + members * SECOND_NS / MEMBERS_LOOK;
	for (uint32_t k = 1; k < FLEET_LANES_MAX; k++)
		if (s->record.key[k][0] && others_need(s, member, s->record.key[k], equal))
			begin(h, s, s->record.key[k]);
	for (size_t i = 0; i < n; i++)
		if (seen[i].units > equal)
			begin(h, s, seen[i].key);
	for (uint32_t i = 1; i < FLEET_LANES_MAX; i++) {
		if (!s->want_key[i][0])
			continue;
		h->asked[i] = fleet_ask(&h->demand[i], h->asked[i],
					seen_of(seen, n, s->want_key[i]), limit, members);
		s->want[i] = h->asked[i] > least ? h->asked[i] : least;
		if (h->asked[i] <= equal && !others_need(s, member, s->want_key[i], equal))
			end(h, s, i);
	}
}
