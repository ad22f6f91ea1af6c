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
	bool *left_out; /* of each piece that is wished for */
	size_t n;
};

static void free_wishes(struct wishes *w)
{
	free(w->wish);
	free(w->key);
	free(w->left_out);
	*w = (struct wishes){0};
}

/* Each has the end of its piece, or one that is later by as much. */
static int make_wishes(const struct ban_pieces *pieces, uint64_t now_ns, uint64_t later_ns,
		       struct wishes *w)
{
	*w = (struct wishes){calloc(pieces->n + 1, sizeof(*w->wish)),
			     calloc(pieces->n + 1, sizeof(*w->key)),
			     calloc(pieces->n + 1, sizeof(*w->left_out)), 0};
	if (!w->wish || !w->key || !w->left_out) {
		free_wishes(w);
		return -1;
	}
	for (size_t i = 0; i < pieces->n; i++) {
		const struct ban_piece *piece = &pieces->at[i];

		if (piece->until_ns <= now_ns)
			continue;
		units_prefix_text(&piece->prefix, w->key[w->n], KEY_TEXT);
		w->wish[w->n] = (struct ban_wish){w->key[w->n], 0, piece->prefix.len,
						  &w->left_out[i], piece->until_ns + later_ns};
		w->n++;
	}
	return 0;
}

static bool is_six(const struct ban_wish *wish)
{
	return strchr(wish->key, ':');
}

/* Those of the length and family that cannot be: other prefixes are banned there. */
static size_t leave_out(struct wishes *w, int len, bool six)
{
	size_t n = 0, all = w->n;

	for (size_t i = 0; i < all; i++) {
		const struct ban_wish *wish = &w->wish[i];

		*wish->left_out = wish->line == len && is_six(wish) == six;
		if (!*wish->left_out)
			w->wish[n++] = *wish;
	}
	w->n = n;
	return all - n;
}

/* --- what changes --------------------------------------------------------------------------- */

/*
 * 0, or -1 with *error filled. Those of a length that cannot be banned, whatever room there is, are
 * left out; of the others done->left_out found none.
 */
static int ban(struct attached *a, struct place *place, struct wishes *w, struct bans_done *done,
	       struct policy_error *error)
{
	bool refused[2][129] = {0};
	int result = 0;

	while (w->n && (result = bans_add(a, NULL, w->wish, w->n, done, error)) == BANS_WRONG) {
		int len = w->wish[done->which].line;
		bool six = is_six(&w->wish[done->which]);
		size_t n = leave_out(w, len, six);

		if (!place->refused[six][len])
			bouncer_say("%s: %zu ban%s of this length %s left out: %s", a->ifname, n,
				    n == 1 ? "" : "s", n == 1 ? "is" : "are", error->text);
		place->refused[six][len] = refused[six][len] = true;
		*done = (struct bans_done){0};
		result = 0;
	}
	if (result)
		return -1;
	memcpy(place->refused, refused, sizeof(refused));
	return 0;
}

static bool same(const struct prefix *a, const struct prefix *b)
{
	return a->family == b->family && a->len == b->len &&
	       !memcmp(a->addr, b->addr, sizeof(a->addr));
}

/* Takes away from `is` what was told of it and left out; both are in the same order. */
static void drop_left_out(struct ban_pieces *is, const struct ban_pieces *told,
			  const bool *left_out)
{
	size_t kept = 0, k = 0;

	for (size_t i = 0; i < is->n; i++) {
		bool was = k < told->n && same(&is->at[i].prefix, &told->at[k].prefix);

		if (!was || !left_out[k])
			is->at[kept++] = is->at[i];
		k += was;
	}
	is->n = kept;
}

/* Keeps in place->may what was told and left out, if it was there before. */
static int keep_left_out(struct place *place, const struct ban_pieces *told, const bool *left_out)
{
	struct ban_pieces left = {calloc(told->n + 1, sizeof(*left.at)), 0}, before = {0},
			  may = {0};
	int result = -1;

	if (!left.at)
		return -1;
	for (size_t k = 0; k < told->n; k++)
		if (left_out[k])
			left.at[left.n++] = told->at[k];
	if (!left.n)
		result = 0;
	else if (!decisions_either(&place->has, &place->may, &before))
		result = decisions_both(&before, &left, &may);
	free_pieces(&before);
	free_pieces(&left);
	if (result)
		return -1;
	free_pieces(&place->may);
	place->may = may;
	return 0;
}

/* What is to be lifted besides, as it may come back. */
static int add_lifts(const struct place *place, const struct ban_pieces *is, uint64_t now_ns,
		     struct ban_pieces *lifts)
{
	struct ban_pieces gone, add, all;
	int result;

	if (!place->may.n)
		return 0;
	if (decisions_change(&place->may, is, now_ns, SLACK_NS, &gone, &add))
		return -1;
	result = decisions_either(lifts, &gone, &all);
	free_pieces(&gone);
	free_pieces(&add);
	if (result)
		return -1;
	free_pieces(lifts);
	*lifts = all;
	return 0;
}

/* What lasts longer is somebody else's, and stays. */
static int lift(struct attached *a, const struct ban_pieces *pieces, uint64_t now_ns,
		struct bans_done *done, struct policy_error *error)
{
	struct wishes w;
	int result;

	if (make_wishes(pieces, now_ns, SLACK_NS, &w))
		return policy_fail(error, 0, "%s: no memory", a->ifname);
	result = w.n ? bans_lift(a, "", w.wish, w.n, done, error) : 0;
	free_wishes(&w);
	return result;
}

/* What is left out is taken away from `is`. add: pieces of it, in its order. */
static int tell_changes(struct attached *a, struct place *place, const struct ban_pieces *lifts,
			const struct ban_pieces *add, struct ban_pieces *is, uint64_t now_ns,
			struct policy_error *error)
{
	struct bans_done lifted = {0}, banned = {0};
	size_t all = is->n;
	struct wishes w;

	if (lift(a, lifts, now_ns, &lifted, error))
		return -1;
	if (make_wishes(add, now_ns, 0, &w))
		return policy_fail(error, 0, "%s: no memory", a->ifname);
	if (ban(a, place, &w, &banned, error)) {
		free_wishes(&w);
		return -1;
	}
	if (keep_left_out(place, add, w.left_out)) {
		free_wishes(&w);
		return policy_fail(error, 0, "%s: no memory", a->ifname);
	}
	drop_left_out(is, add, w.left_out);
	free_wishes(&w);
	if (lifted.done || (banned.done && !place->again))
		bouncer_say("%s: %zu banned, %zu lifted", a->ifname, banned.done, lifted.done);
	if (banned.left_out && banned.left_out != place->no_room)
		bouncer_say("%s: there was no room for %zu of %zu bans: raise bans in the policy",
			    a->ifname, banned.left_out, all);
	place->no_room = banned.left_out;
	place->again = false;
	return 0;
}

/* --- what comes back ------------------------------------------------------------------------ */

struct look {
	const struct ban_pieces *sought;
	bool *seen; /* of each */
	uint64_t now_ns;
};

/* What ends at another time was banned by somebody else since. */
static void look_at(const struct ban *ban, void *arg)
{
	const struct look *look = arg;
	const struct ban_piece *piece;
	struct prefix prefix;
	uint64_t end_ns;

	if (*ban->rule || ban->tool || ban->left_ns == PACER_NEVER ||
	    units_prefix(ban->key, &prefix))
		return;
	piece = decisions_find(look->sought, &prefix);
	end_ns = look->now_ns + ban->left_ns;
	if (piece && piece->until_ns <= end_ns + SLACK_NS && end_ns <= piece->until_ns + SLACK_NS)
		look->seen[piece - look->sought->at] = true;
}

/* Leaves of `sought` what the pacer has. 0, or -1: no memory. */
static int leave_seen(const struct attached *a, struct ban_pieces *sought, uint64_t now_ns)
{
	struct look look = {sought, calloc(sought->n + 1, sizeof(*look.seen)), now_ns};
	size_t n = 0;

	if (!look.seen)
		return -1;
	if (sought->n)
		bans_each(a, NULL, look_at, &look);
	for (size_t i = 0; i < sought->n; i++)
		if (look.seen[i])
			sought->at[n++] = sought->at[i];
	sought->n = n;
	free(look.seen);
	return 0;
}

/* The pacer has these: what is decided of them is to be told again, once they are lifted. */
static int put_back(struct place *place, const struct ban_pieces *returned)
{
	struct ban_pieces may;
	size_t n = 0;

	if (decisions_either(&place->may, returned, &may))
		return -1;
	free_pieces(&place->may);
	place->may = may;
	for (size_t i = 0; i < place->has.n; i++)
		if (!decisions_find(returned, &place->has.at[i].prefix))
			place->has.at[n++] = place->has.at[i];
	place->has.n = n;
	return 0;
}

/* Looks for what was lifted, and is not decided for as long. 0, or -1: no memory. */
static int find_returned(const struct attached *a, struct place *place, const struct ban_pieces *is,
			 uint64_t now_ns)
{
	struct ban_pieces returned, unused;
	int result;

	if (!place->lifted.n)
		return 0;
	if (decisions_change(&place->lifted, is, now_ns, SLACK_NS, &returned, &unused))
		return -1;
	result = leave_seen(a, &returned, now_ns);
	if (!result && returned.n)
		result = put_back(place, &returned);
	free_pieces(&returned);
	free_pieces(&unused);
	return result;
}

/* What is lifted now, and what was and has not ended. 0, or -1: no memory. */
static int remember(struct place *place, const struct ban_pieces *lifts, uint64_t now_ns)
{
	const struct ban_pieces none = {0};
	struct ban_pieces left, unused, all;
	int result;

	if (!place->lifted.n && !lifts->n)
		return 0;
	if (decisions_change(&place->lifted, &none, now_ns, SLACK_NS, &left, &unused))
		return -1;
	result = decisions_either(&left, lifts, &all);
	free_pieces(&left);
	free_pieces(&unused);
	if (result)
		return -1;
	free_pieces(&place->lifted);
	place->lifted = all;
	return 0;
}

/* --- all of it ------------------------------------------------------------------------------ */

/*
 * Another state was told nothing, but may have come from the one before (a shadow that is promoted,
 * a state that is restored): what that had, this may have. -1: no memory, and all is as before.
 */
static int begin_anew(struct place *place, uint32_t control_id)
{
	struct ban_pieces may, lifted = place->lifted;

	if (decisions_either(&place->has, &place->may, &may))
		return -1;
	place->lifted = (struct ban_pieces){0};
	place_free(place);
	place->control_id = control_id;
	place->may = may;
	place->lifted = lifted;
	return 0;
}

int place_bring(struct attached *a, struct place *place, struct ban_pieces *is,
		struct policy_error *error)
{
	uint64_t now_ns = host_now_ns();
	struct ban_pieces lifts, add;
	size_t room = bans_room(a);
	int result;

	if (place->control_id != a->control_id && begin_anew(place, a->control_id)) {
		free_pieces(is);
		return policy_fail(error, 0, "%s: no memory", a->ifname);
	}
	place->again |= place->room && (place->room != room || place->begun != bans_begun(a));
	place->room = room;
	place->begun = bans_begun(a);
	decisions_settle(&place->has, is, SLACK_NS);
	if (find_returned(a, place, is, now_ns) ||
	    decisions_change(&place->has, is, now_ns, SLACK_NS, &lifts, &add)) {
		free_pieces(is);
		return policy_fail(error, 0, "%s: no memory", a->ifname);
	}
	if (add_lifts(place, is, now_ns, &lifts) || remember(place, &lifts, now_ns))
		result = policy_fail(error, 0, "%s: no memory", a->ifname);
	else
		result =
		    tell_changes(a, place, &lifts, place->again ? is : &add, is, now_ns, error);
	free_pieces(&lifts);
	free_pieces(&add);
	if (result) { /* the same is told again; it may have some of it, which can be lifted */
		if (!decisions_either(&place->may, is, &add)) {
			free_pieces(&place->may);
			place->may = add;
		}
		free_pieces(is);
		return -1;
	}
	free_pieces(&place->has);
	place->has = *is;
	return 0;
}

bool place_lacks(const struct place *place)
{
	bool lacks = place->no_room;

	for (int len = 0; len <= 128; len++)
		lacks |= place->refused[0][len] || place->refused[1][len];
	return lacks;
}

void place_free(struct place *place)
{
	free_pieces(&place->has);
	free_pieces(&place->may);
	free_pieces(&place->lifted);
	*place = (struct place){0};
}
