/* SPDX-License-Identifier: GPL-2.0-only */
#include "bouncer/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bouncer/say.h"
#include "config/units.h"
#include "live/bans.h"
#include "live/host.h"

#define SLACK_NS 5000000000ull /* an answer is as old as it was under way */
#define KEY_TEXT 64

/* --- wishes --------------------------------------------------------------------------------- */

static void free_pieces(struct ban_pieces *pieces)
{
	free(pieces->at);
	*pieces = (struct ban_pieces){0};
}

struct wishes {
	struct ban_wish *wish;
	char (*key)[KEY_TEXT];
	size_t n;
};

static void free_wishes(struct wishes *w)
{
	free(w->wish);
	free(w->key);
}

static int make_wishes(const struct ban_pieces *pieces, uint64_t now_ns, struct wishes *w)
{
	*w = (struct wishes){calloc(pieces->n + 1, sizeof(*w->wish)),
			     calloc(pieces->n + 1, sizeof(*w->key)), 0};
	if (!w->wish || !w->key) {
		free_wishes(w);
		return -1;
	}
	for (size_t i = 0; i < pieces->n; i++) {
		const struct ban_piece *piece = &pieces->at[i];

		if (piece->until_ns <= now_ns)
			continue;
		units_prefix_text(&piece->prefix, w->key[w->n], KEY_TEXT);
		w->wish[w->n] =
		    (struct ban_wish){w->key[w->n], piece->until_ns - now_ns, piece->prefix.len};
		w->n++;
	}
	return 0;
}

/* Those of the length and family of the wish that cannot be: other prefixes are banned there. */
static size_t leave_out(struct wishes *w, size_t which)
{
	bool six = strchr(w->wish[which].key, ':');
	int len = w->wish[which].line;
	size_t n = 0, all = w->n;

	for (size_t i = 0; i < all; i++)
		if (w->wish[i].line != len || !strchr(w->wish[i].key, ':') == six)
			w->wish[n++] = w->wish[i];
	w->n = n;
	return all - n;
}

/* --- what changes --------------------------------------------------------------------------- */

/*
 * 0, or -1 with *error filled. *refused: how many can not be banned, whatever room there is; of the
 * others done->left_out found none.
 */
static int ban(struct attached *a, struct place *place, struct wishes *w, struct bans_done *done,
	       size_t *refused, struct policy_error *error)
{
	int result;

	while ((result = bans_add(a, NULL, w->wish, w->n, done, error)) == BANS_WRONG) {
		if (!place->refused_said)
			bouncer_say("%s: %s", a->ifname, error->text);
		place->refused_said = true;
		*refused += leave_out(w, done->which);
	}
	return result ? -1 : 0;
}

static int tell_changes(struct attached *a, struct place *place, const struct ban_pieces *lift,
			const struct ban_pieces *add, uint64_t now_ns, struct policy_error *error)
{
	struct bans_done lifted = {0}, banned = {0};
	struct wishes wishes;
	size_t refused = 0;
	int result;

	if (make_wishes(lift, now_ns, &wishes))
		return policy_fail(error, 0, "%s: no memory", a->ifname);
	if (wishes.n && bans_lift(a, "", wishes.wish, wishes.n, &lifted, error)) {
		free_wishes(&wishes);
		return -1;
	}
	free_wishes(&wishes);
	if (make_wishes(add, now_ns, &wishes))
		return policy_fail(error, 0, "%s: no memory", a->ifname);
	result = wishes.n ? ban(a, place, &wishes, &banned, &refused, error) : 0;
	free_wishes(&wishes);
	if (result)
		return -1;
	if (lifted.done || (banned.done && !place->again))
		bouncer_say("%s: %zu banned, %zu lifted", a->ifname, banned.done, lifted.done);
	if (banned.left_out && banned.left_out != place->no_room)
		bouncer_say("%s: there was no room for %zu of %zu bans: raise bans in the policy",
			    a->ifname, banned.left_out, add->n);
	place->no_room = banned.left_out;
	place->again = banned.left_out || refused;
	return 0;
}

int place_bring(struct attached *a, struct place *place, struct ban_pieces *is,
		struct policy_error *error)
{
	uint64_t now_ns = host_now_ns();
	struct ban_pieces lift, add;
	int result;

	if (decisions_change(&place->has, is, now_ns, SLACK_NS, &lift, &add)) {
		free_pieces(is);
		return policy_fail(error, 0, "%s: no memory", a->ifname);
	}
	result = tell_changes(a, place, &lift, place->again ? is : &add, now_ns, error);
	free_pieces(&lift);
	free_pieces(&add);
	if (result) { /* it may have some of both, by which it can be told what to lift */
		place->again = true;
		if (!decisions_either(&place->has, is, &add)) {
			free_pieces(&place->has);
			place->has = add;
		}
		free_pieces(is);
		return -1;
	}
	free_pieces(&place->has);
	place->has = *is;
	return 0;
}

void place_free(struct place *place)
{
	free_pieces(&place->has);
	*place = (struct place){0};
}
