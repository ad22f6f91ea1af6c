/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/ban_mark.h"

#include "live/rotate.h"

#include <stdbool.h>
#include <string.h>

#define PASSES 32

/* Reads a ban that has not ended, if nobody is writing to its entry. */
static bool read_ban(struct pacer_line *line, __u64 now_ns, struct pacer_ban_ask *q,
		     __u64 *until_ns)
{
	__u32 before = pacer_acquire(&line->ban_lock);
	struct pacer_line copy = *line;

	PACER_BARRIER();
	q->key = (struct pacer_ban_key){copy.ban_rule, copy.ban_key_id, {0}};
	memcpy(q->key.word, copy.ban_key, sizeof(q->key.word));
	q->note = copy.ban_note;
	*until_ns = copy.ban_until_ns;
	return !(before & PACER_LOCK_HELD) && pacer_load(&line->ban_lock) == before &&
	       *until_ns > now_ns;
}

/* The ban was lifted while it moved: lifts it in its new place, too. */
static void lift_again(const struct pacer_ban_ask *q, __u64 until_ns)
{
	struct pacer_ban_places at = pacer_ban_places(q->bans, q->hash);

	for (__u32 i = 0; i < at.n; i++) {
		struct pacer_line *line = PACER_LINE_AT(q->table, pacer_ban_place(&at, i));

		if (line && pacer_ban_is(line, &q->key) &&
		    pacer_cas64(&line->ban_until_ns, until_ns, 0) == until_ns)
			return;
	}
}

/* Returns 1 if the ban is where the secret places it, 0 if there is no room yet. */
static bool move(const struct pacer_ban_ask *q, __u32 index, __u64 until_ns, size_t *moved)
{
	struct pacer_line *from = PACER_LINE_AT(q->table, index);
	struct pacer_ban_places at = pacer_ban_places(q->bans, q->hash);

	if (index - at.set[0] < PACER_BAN_WAYS || index - at.set[1] < PACER_BAN_WAYS)
		return pacer_ban_raise(q, until_ns);
	if (pacer_ban_add(q, until_ns) != PACER_BANNED)
		return false;
	if (!pacer_ban_lift(from, &q->key, q->now_ns))
		lift_again(q, until_ns);
	++*moved;
	return true;
}

static size_t move_all(struct pacer_ban_ask *q, const __u64 secret[PACER_SECRETS], size_t *moved)
{
	size_t left = 0;

	for (__u32 i = 0; i < q->bans->sets * PACER_BAN_WAYS; i++) {
		struct pacer_line *line = PACER_LINE_AT(q->table, q->bans->base + i);
		__u64 until_ns;

		if (!line || !read_ban(line, q->now_ns, q, &until_ns))
			continue;
		q->hash = pacer_ban_hash(&q->key, secret);
		left += !move(q, q->bans->base + i, until_ns, moved);
	}
	return left;
}

size_t rotate_bans(struct pacer_table *table, const struct pacer_bans *bans,
		   const __u64 secret[2][PACER_SECRETS], __u32 to, __u64 now_ns)
{
	struct pacer_ban_ask q = {.table = table, .bans = bans, .now_ns = now_ns};
	size_t left = 1, moved = 1;

	/* A ban that moved may have made room for another. */
	for (int pass = 0; left && moved && pass < PASSES; pass++) {
		moved = 0;
		left = move_all(&q, secret[to & 1], &moved);
	}
	return left;
}
