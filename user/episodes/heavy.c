/* SPDX-License-Identifier: GPL-2.0-only */
#include "episodes/heavy.h"

#include <stdio.h>
#include <string.h>

static struct heavy_key *place_of(struct heavy *h, const char *key)
{
	for (uint32_t i = 0; i < HEAVY_KEYS; i++)
		if (!strcmp(h->at[i].key, key))
			return &h->at[i];
	return NULL;
}

static void see(struct heavy *h, const struct heavy_seen *seen, uint64_t now_ns, heavy_tell *tell,
		void *arg)
{
	struct heavy_key *at = place_of(h, seen->key);
	bool began = !at;

	if (began) {
		at = place_of(h, "");
		if (!at) {
			h->lost++;
			return;
		}
		snprintf(at->key, sizeof(at->key), "%s", seen->key);
		at->began_ns = now_ns;
		at->day_ns = h->day_ns;
	}
	at->heavy_ns = now_ns;
	at->share = seen->share;
	if (began)
		tell(at, true, arg);
}

static void end(struct heavy_key *at, heavy_tell *tell, void *arg)
{
	tell(at, false, arg);
	*at = (struct heavy_key){0};
}

void heavy_feed(struct heavy *h, const struct heavy_seen *seen, uint32_t n, uint64_t now_ns,
		uint64_t quiet_ns, heavy_tell *tell, void *arg)
{
	for (uint32_t i = 0; i < HEAVY_KEYS; i++)
		if (*h->at[i].key && now_ns - h->at[i].heavy_ns >= quiet_ns)
			end(&h->at[i], tell, arg);
	for (uint32_t i = 0; i < n; i++)
		if (seen[i].share.low >= HEAVY_SHARE)
			see(h, &seen[i], now_ns, tell, arg);
}

void heavy_stop(struct heavy *h, heavy_tell *tell, void *arg)
{
	for (uint32_t i = 0; i < HEAVY_KEYS; i++)
		if (*h->at[i].key)
			end(&h->at[i], tell, arg);
	h->lost = 0;
}
