/* SPDX-License-Identifier: GPL-2.0-only */
#include "fleet/shared.h"

#include <stdlib.h>
#include <string.h>

#define SECOND_NS 1000000000ull

_Static_assert(SHARED_KEY <= KEYED_BYTES, "a key is hashed whole");

static bool differ(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns > b_ns ? a_ns - b_ns > SHARED_SLACK_NS : b_ns - a_ns > SHARED_SLACK_NS;
}

static uint64_t end_of(uint64_t left_ns, uint64_t now_ns)
{
	return left_ns < SHARED_NEVER - now_ns ? now_ns + left_ns : SHARED_NEVER;
}

/* --- values ---------------------------------------------------------------------------------- */

static const struct shared_value none = {"", SHARED_PLAIN};

/* The same value, and both beside the file or neither. */
static bool same(const struct shared_value *a, const struct shared_value *b)
{
	return (a->by == SHARED_BY_HAND) == (b->by == SHARED_BY_HAND) && !strcmp(a->text, b->text);
}

/* As it is told. */
static struct shared_value said(const struct shared_item *item)
{
	struct shared_value value = item->here_ns ? item->here : none;

	if (value.by == SHARED_BY_FILE && !item->begun)
		value.by = SHARED_BY_CHANGE;
	return value;
}

static bool unlike(const struct shared_item *item)
{
	return differ(item->here_ns, item->there_ns) || !same(&item->here, &item->there);
}

/* Neither was said after the other: does what is here count? */
static bool prevails(const struct shared_item *item)
{
	const enum shared_by here = said(item).by, there = item->there.by;

	if (!same(&item->here, &item->there)) {
		if (item->begun && there != SHARED_BY_FILE)
			return false;
		if (here != there)
			return here > there;
		if (!differ(item->here_ns, item->there_ns))
			return strcmp(item->here.text, item->there.text) < 0;
	}
	return item->here_ns > item->there_ns && differ(item->here_ns, item->there_ns);
}

/* --- items by their keys --------------------------------------------------------------------- */

/* Where it is, or would go. There is always a free place. */
static size_t place_of(const struct shared *s, const char *key)
{
	struct keyed_probe probe = keyed_probe(&s->keyed, key, strlen(key), s->places);
	size_t at = probe.place;

	while (s->place[at] && strcmp(s->at[s->place[at] - 1].key, key))
		at = (at + probe.step) & (s->places - 1);
	return at;
}

static struct shared_item *find(const struct shared *s, const char *key)
{
	size_t at;

	if (!s->places || strlen(key) >= SHARED_KEY)
		return NULL;
	at = place_of(s, key);
	return s->place[at] ? &s->at[s->place[at] - 1] : NULL;
}

/* All places anew: half of them are free at least. */
static void put_all(struct shared *s)
{
	memset(s->place, 0, s->places * sizeof(*s->place));
	for (size_t i = 0; i < s->n; i++)
		s->place[place_of(s, s->at[i].key)] = (uint32_t)i + 1;
}

static bool make_room(struct shared *s)
{
	size_t room = s->room ? 2 * s->room : 256;
	struct shared_item *at;
	uint32_t *place;

	if (s->n < s->room)
		return true;
	if (s->n >= SHARED_MAX)
		return false;
	at = s->room || !keyed_begin(&s->keyed) ? realloc(s->at, room * sizeof(*at)) : NULL;
	s->at = at ? at : s->at;
	place = at ? calloc(2 * room, sizeof(*place)) : NULL;
	if (!place) {
		s->starved = true;
		return false;
	}
	free(s->place);
	s->place = place;
	s->places = (uint32_t)(2 * room);
	s->room = room;
	put_all(s);
	return true;
}

/* The item; made where there is none. NULL: there is no room, or no memory (starved). */
static struct shared_item *item_of(struct shared *s, const char *key)
{
	struct shared_item *item = find(s, key);

	s->starved = false;
	if (item)
		return item;
	if (strlen(key) >= SHARED_KEY || !make_room(s))
		return NULL;
	item = &s->at[s->n++];
	memset(item, 0, sizeof(*item));
	memcpy(item->key, key, strlen(key) + 1);
	s->place[place_of(s, key)] = (uint32_t)s->n;
	return item;
}

/*
 * What is remembered until it is found again: which words it is later than, and what was tried of
 * it without an answer.
 */
static struct shared_item half_of(const struct shared_item *item)
{
	struct shared_item half = {.half = true, .since = item->since, .after = item->after};

	if (item->revision > half.after)
		half.after = item->revision;
	half.begun = item->begun;
	half.doubt = item->doubt;
	half.tried = item->tried;
	half.tried_ns = item->tried_ns;
	memcpy(half.key, item->key, sizeof(half.key));
	return half;
}

/* Is it not here as the store says, since it was not taken yet, or there was no room for that? */
static bool is_untaken(const struct shared_item *item)
{
	bool left_out = item->todo == SHARED_NOTHING && item->here_ns && item->there_ns;

	return item->todo == SHARED_TAKE || (left_out && unlike(item));
}

/* That word is as if it had not been read. */
static void count_as_unread(struct shared *s, uint64_t revision)
{
	if (revision && revision <= s->known)
		s->known = revision - 1;
}

void shared_begin(struct shared *s, bool (*keeps)(const struct shared_item *item, void *arg),
		  void *arg)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct shared_item item = s->at[i];

		if (keeps && keeps(&item, arg))
			s->at[kept++] = item;
		else if (is_untaken(&item))
			count_as_unread(s, item.revision);
		else if (item.here_ns && (item.todo == SHARED_TELL || item.revision > s->heard))
			s->at[kept++] = half_of(&item);
	}
	if (s->heard > s->known)
		s->heard = s->known;
	s->before = s->heard;
	s->n = kept;
	s->next = 0;
	s->whole = false;
	if (s->places)
		put_all(s);
}

void shared_free(struct shared *s)
{
	free(s->at);
	free(s->place);
	memset(s, 0, sizeof(*s));
}

/* --- what is here ---------------------------------------------------------------------------- */

/* After which words is it, as it is by now? What a file brings is after none. */
static void set_since(const struct shared *s, struct shared_item *item)
{
	uint64_t since = s->first ? s->before : s->known;
	uint64_t after = s->first ? s->before : s->heard;

	item->since = item->half && item->since > since ? item->since : since;
	item->after = after > item->after ? after : item->after;
	if (s->found == SHARED_FILED)
		item->since = item->after = 0;
}

/* Was what is found here there before the agent, or its policy? Of a half it was known. */
static bool is_begun(const struct shared *s, const struct shared_item *item)
{
	if (s->found != SHARED_MADE)
		return true;
	return item->half ? item->begun : s->first || (!s->whole && !s->known);
}

/* It is to be taken, and not all that is known had been heard. */
static bool is_unheard(const struct shared *s, const struct shared_item *item)
{
	return item->todo == SHARED_TAKE && item->revision > s->heard;
}

/*
 * What is found here now was changed after the word that is to be taken. Does the word count over
 * it? So it does where that ends no later and says the same, and where it was beneath what has
 * ended.
 */
static bool is_beneath(const struct shared_item *item, const struct shared_value *of,
		       uint64_t until_ns, uint64_t now_ns)
{
	bool uncovered = item->here_ns && item->here_ns <= now_ns;

	return item->todo == SHARED_TAKE &&
	       (uncovered || (until_ns <= item->there_ns && same(of, &item->there)));
}

void shared_here(struct shared *s, const char *key, const struct shared_value *value,
		 uint64_t until_ns, uint64_t now_ns)
{
	const struct shared_value *of = value ? value : &none;
	struct shared_item *item;
	bool beneath;

	if (until_ns <= now_ns || (until_ns - now_ns < SHARED_LEAST_NS && !find(s, key)))
		return;
	item = item_of(s, key);
	if (!item) {
		s->lacking += !s->starved;
		return;
	}
	item->seen = true;
	item->missed = 0;
	if (is_unheard(s, item) || (item->here_ns == until_ns && same(&item->here, of)))
		return;
	beneath = is_beneath(item, of, until_ns, now_ns);
	item->here_ns = until_ns;
	item->here = *of;
	if (beneath)
		return;
	item->begun = is_begun(s, item);
	item->filed = s->found == SHARED_FILED;
	set_since(s, item);
	item->half = false;
	item->over = false;
	item->todo = unlike(item) || item->doubt ? SHARED_TELL : SHARED_NOTHING;
}

void shared_unfit(struct shared *s)
{
	s->lacking++;
}

void shared_counted(struct shared *s, uint64_t *lacked)
{
	if (s->lacking > *lacked)
		s->count.left_out += s->lacking - *lacked;
	*lacked = s->lacking;
	s->lacking = 0;
}

void shared_same(struct shared *s, const char *begin)
{
	size_t len = strlen(begin);

	for (size_t i = 0; i < s->n; i++)
		if ((s->at[i].here_ns || s->at[i].half) && !strncmp(s->at[i].key, begin, len))
			s->at[i].seen = true;
}

/* It is not here any more, before its end. */
static void miss(const struct shared *s, struct shared_item *item, uint64_t now_ns)
{
	if (++item->missed < 2)
		return;
	/* It was taken out under a policy that has not read yet what the store says of it. */
	item->doubt |= !s->whole && s->known && !item->revision;
	item->here_ns = 0;
	item->missed = 0;
	item->todo = item->there_ns > now_ns || item->doubt ? SHARED_TELL : SHARED_NOTHING;
}

/* The store's word has ended; where it may be there for long yet, a little later. */
static bool ended(const struct shared_item *item, uint64_t now_ns)
{
	uint64_t slack_ns = item->lasts ? SHARED_SLACK_NS : 0;

	return item->there_ns <= now_ns && now_ns - item->there_ns >= slack_ns;
}

/* What has ended here was not lifted, unless the store's word runs on: then it was made shorter. */
static void run_out_here(struct shared_item *item, uint64_t now_ns)
{
	if (!item->here_ns || item->here_ns > now_ns)
		return;
	item->here_ns = 0;
	if (item->todo == SHARED_TELL && item->there_ns <= now_ns)
		item->todo = SHARED_NOTHING;
}

static void run_out(struct shared_item *item, uint64_t now_ns)
{
	if (ended(item, now_ns)) {
		item->over |= item->lasts && item->there_ns && item->here_ns <= now_ns;
		item->there_ns = 0;
	}
	run_out_here(item, now_ns);
	if (!item->here_ns && !item->there_ns && !item->doubt)
		item->todo = item->over ? SHARED_TELL : SHARED_NOTHING;
}

/*
 * Nothing is left of it. Where it was lifted, that is to be read first: what is made again is after
 * that.
 */
static bool is_over(const struct shared *s, const struct shared_item *item)
{
	bool unread = item->lifted && item->revision > s->known;
	bool unlooked = item->half && item->seen;

	return !item->here_ns && !item->there_ns && item->todo == SHARED_NOTHING && !unread &&
	       !unlooked;
}

void shared_looked(struct shared *s, uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n; i++) {
		struct shared_item *item = &s->at[i];

		run_out(item, now_ns);
		if (!item->seen && item->here_ns && !is_unheard(s, item))
			miss(s, item, now_ns);
		if (is_over(s, item))
			continue;
		item->seen = false;
		if (kept != i)
			s->at[kept] = *item;
		kept++;
	}
	if (kept == s->n)
		return;
	s->n = kept;
	put_all(s);
}

struct shared_item *shared_take(struct shared *s, size_t *i)
{
	for (; *i < s->n; ++*i)
		if (s->at[*i].todo == SHARED_TAKE)
			return &s->at[(*i)++];
	return NULL;
}

void shared_taken(struct shared *s, struct shared_item *item, bool done)
{
	item->todo = SHARED_NOTHING;
	item->missed = 0;
	if (!done) {
		s->count.left_out += !item->left;
		item->left = true;
		return;
	}
	s->count.taken++;
	item->left = item->filed = false;
	item->here_ns = item->there_ns;
	item->here = item->there;
	if (item->here.by == SHARED_BY_CHANGE)
		item->here.by = SHARED_BY_FILE;
}

void shared_put_off(struct shared *s, struct shared_item *item)
{
	s->count.left_out += !item->left;
	item->left = true;
}

void shared_again(struct shared *s, uint64_t now_ns)
{
	for (size_t i = 0; i < s->n; i++) {
		struct shared_item *item = &s->at[i];

		if (item->left && item->todo == SHARED_NOTHING && !item->here_ns &&
		    item->there_ns > now_ns)
			item->todo = SHARED_TAKE;
	}
}

/* --- what the store says ----------------------------------------------------------------------
 */

/* What is here since before the agent began may be what was lifted before that word. */
static bool was_lifted(const struct shared_item *item)
{
	return item->begun && item->lies_ns;
}

/*
 * Was it made or lifted here after the store's word, by which it is not there? So it was where that
 * word had been read. Else an end is before what was made since; but what follows a lifting
 * concerns all that was here when the agent began, and a lifting all that is here.
 */
static bool is_later(const struct shared_item *item, const struct shared_word *word,
		     uint64_t revision)
{
	bool ended = word->left_ns || word->lies_ns;
	bool since = item->here_ns && (revision <= item->since || (ended && !item->begun));

	return item->todo == SHARED_TELL && (since || word->left_ns == SHARED_OVER);
}

/* Was it changed here after the store's word had been heard, by which it is there, but not so? */
static bool is_changed(const struct shared_item *item, uint64_t revision, uint64_t now_ns)
{
	return item->todo == SHARED_TELL && item->here_ns > now_ns && revision <= item->after &&
	       (unlike(item) || item->doubt);
}

/* There is a later word on the item. */
static void decide(struct shared_item *item, uint64_t now_ns)
{
	bool here = item->here_ns > now_ns;

	if (!item->there_ns)
		item->todo = here ? SHARED_TAKE : SHARED_NOTHING;
	else if (item->todo == SHARED_TELL && (!here || (!was_lifted(item) && prevails(item))))
		return; /* it follows the later word */
	else
		item->todo = unlike(item) ? SHARED_TAKE : SHARED_NOTHING;
}

/* The last word is another's; revision 0: or there is none. */
static void said_by_others(struct shared_item *item, uint64_t revision)
{
	item->revision = revision;
	item->lies_ns = 0;
	item->doubt = item->own = item->lifted = item->lasts = item->over = false;
}

void shared_age(struct shared_word *word, uint64_t age_ns)
{
	if (word->left_ns == SHARED_NEVER || (!word->left_ns && !word->lies_ns))
		return;
	word->left_ns = word->left_ns > age_ns ? word->left_ns - age_ns : 0;
	word->lies_ns = word->lies_ns > age_ns ? word->lies_ns - age_ns : 0;
	if (!word->left_ns && !word->lies_ns)
		word->left_ns = SHARED_OVER;
}

/* Is it what this host wrote by a call that had no answer? If another did, it says the same. */
static bool is_tried(const struct shared_item *item, const struct shared_word *word,
		     uint64_t now_ns)
{
	if (!item->doubt || word->left_ns == SHARED_OVER)
		return false;
	if (!item->tried_ns || !word->left_ns)
		return !item->tried_ns && !word->left_ns && !word->lies_ns;
	return same(&item->tried, &word->value) &&
	       !differ(item->tried_ns, end_of(word->left_ns, now_ns));
}

void shared_there(struct shared *s, const char *key, const struct shared_word *word,
		  uint64_t revision, uint64_t now_ns)
{
	bool tried, doubt;
	bool runs = word->left_ns && word->left_ns != SHARED_OVER;
	bool lifted = !word->left_ns && !word->lies_ns;
	uint64_t lies_ns = lifted ? SHARED_LIFTED_S * SECOND_NS : word->lies_ns;
	struct shared_item *item = runs ? item_of(s, key) : find(s, key);

	if (!item) {
		s->count.left_out += runs && !s->starved;
		return;
	}
	item->listed = true;
	if (revision <= item->revision)
		return;
	run_out_here(item, now_ns);
	if (item->over) /* it is not over any more */
		item->todo = SHARED_NOTHING;
	tried = is_tried(item, word, now_ns) && item->todo == SHARED_TELL;
	doubt =
	    item->doubt && !tried && revision <= item->after; /* what was tried is not heard yet */
	said_by_others(item, revision);
	item->half = false;
	item->doubt = doubt;
	item->lifted = lifted;
	item->own = tried;
	item->there_ns = runs ? end_of(word->left_ns, now_ns) : 0;
	item->there = runs ? word->value : none;
	item->lies_ns = lies_ns ? now_ns + lies_ns : 0;
	if (tried) /* what is here is as told, or later */
		item->todo = unlike(item) ? SHARED_TELL : SHARED_NOTHING;
	else if (runs ? !is_changed(item, revision, now_ns) : !is_later(item, word, revision))
		decide(item, now_ns);
}

void shared_lies(struct shared *s, const char *key, uint64_t revision, uint64_t until_ns)
{
	struct shared_item *item = find(s, key);

	if (item && item->revision == revision && item->lies_ns)
		item->lies_ns = until_ns;
}

bool shared_knows(const struct shared *s, const char *key, uint64_t revision)
{
	const struct shared_item *item = find(s, key);

	return item && item->revision >= revision;
}

void shared_absent(struct shared *s, const char *key, uint64_t now_ns)
{
	struct shared_item *item = find(s, key);

	if (!item)
		return;
	said_by_others(item, 0);
	item->there_ns = 0;
	item->todo = item->here_ns > now_ns ? SHARED_TELL : SHARED_NOTHING;
}

void shared_asked(struct shared *s, uint64_t revision)
{
	s->known = revision;
}

void shared_heard(struct shared *s)
{
	s->heard = s->known;
}

void shared_list(struct shared *s)
{
	for (size_t i = 0; i < s->n; i++)
		s->at[i].listed = false;
}

void shared_listed(struct shared *s, uint64_t now_ns)
{
	s->whole = true;
	for (size_t i = 0; i < s->n; i++) {
		struct shared_item *item = &s->at[i];

		if (item->listed || !item->revision)
			continue;
		item->revision = item->lies_ns = 0;
		item->own = item->lasts = false;
		if (item->there_ns <= now_ns)
			continue;
		item->there_ns = 0; /* it was lifted while nobody looked */
		decide(item, now_ns);
	}
}

void shared_renewed(struct shared *s)
{
	for (size_t i = 0; i < s->n; i++)
		s->at[i].lasts =
		    s->at[i].own && s->at[i].there_ns && s->at[i].there_ns != SHARED_NEVER;
}

/* --- what is told ----------------------------------------------------------------------------- */

/* One more may be told now. */
static bool token(struct shared *s, uint64_t now_ns)
{
	const uint64_t each_ns = SECOND_NS / SHARED_PER_S;

	if (s->tokens_ns < now_ns)
		s->tokens_ns = now_ns;
	if (s->tokens_ns - now_ns > (SHARED_BURST - 1) * each_ns)
		return false;
	s->tokens_ns += each_ns;
	return true;
}

#define LIES_MORE_S 4 /* more than `lasts` asks for */

/* For how many seconds the store has to keep what is told of it; 0: for ever. */
static uint64_t ttl_of(const struct shared_item *item, uint64_t left_ns, uint64_t now_ns)
{
	uint64_t ttl_s = left_ns / SECOND_NS + 2, least_s = 0;

	if (item->here_ns == SHARED_NEVER)
		return 0;
	/* What it takes away is to be heard by who was away; so is what was taken before. */
	if (!left_ns || item->there_ns > item->here_ns + SHARED_SLACK_NS)
		least_s = SHARED_LIFTED_S;
	else if (item->lies_ns > now_ns)
		least_s = (item->lies_ns - now_ns) / SECOND_NS + 1;
	if (!least_s)
		return ttl_s;
	/* It is longer than until the end in any case, by which it is known to follow something. */
	ttl_s += LIES_MORE_S;
	if (least_s > SHARED_LIFTED_S)
		least_s = SHARED_LIFTED_S;
	return ttl_s > least_s ? ttl_s : least_s;
}

/* Does what lies there say that it is to be heard after its end? */
static bool lasts(uint64_t left_ns, uint64_t lies_ns)
{
	return left_ns && left_ns != SHARED_NEVER && lies_ns > 2 * SHARED_SLACK_NS &&
	       lies_ns - 2 * SHARED_SLACK_NS > left_ns;
}

static void put_in(struct shared_batch *b, uint32_t i, const struct shared_item *item,
		   uint64_t now_ns)
{
	uint64_t left_ns = item->here_ns ? item->here_ns - now_ns : 0;
	uint64_t ttl_s = ttl_of(item, left_ns, now_ns);

	if (item->here_ns == SHARED_NEVER)
		left_ns = SHARED_NEVER;
	b->at[b->n].item = i;
	b->at[b->n].follows = item->revision;
	b->at[b->n].until_ns = item->here_ns;
	b->at[b->n].lies_ns = now_ns + ttl_s * SECOND_NS;
	b->at[b->n++].word = (struct shared_word){
	    said(item), left_ns,
	    item->over || lasts(left_ns, ttl_s * SECOND_NS) ? ttl_s * SECOND_NS : 0};
	if (ttl_s > b->ttl_s)
		b->ttl_s = ttl_s < UINT32_MAX ? (uint32_t)ttl_s : UINT32_MAX;
}

bool shared_tells(const struct shared *s, const struct shared_item *item)
{
	return item->todo == SHARED_TELL && !(item->here_ns && item->filed && s->on_trial);
}

void shared_batch(struct shared *s, uint64_t now_ns, struct shared_batch *batch)
{
	bool open = s->whole, never = false;

	batch->n = 0;
	batch->ttl_s = 0;
	for (size_t k = 0; k < s->n && batch->n < SHARED_BATCH; k++) {
		size_t i = (s->next + k) % s->n;
		struct shared_item *item = &s->at[i];
		bool its = item->here_ns == SHARED_NEVER;

		if (!shared_tells(s, item) || (item->here_ns && item->here_ns <= now_ns) ||
		    (batch->n && its != never))
			continue;
		open = open && token(s, now_ns);
		if (!open) {
			s->count.late += s->whole && !item->late;
			item->late |= s->whole;
			continue;
		}
		never = its;
		item->late = false;
		put_in(batch, (uint32_t)i, item, now_ns);
	}
	if (batch->n)
		s->next = (batch->at[batch->n - 1].item + 1) % s->n;
}

void shared_told(struct shared *s, const struct shared_batch *batch, uint64_t revision)
{
	for (size_t i = 0; i < batch->n; i++) {
		struct shared_item *item = &s->at[batch->at[i].item];
		bool lies = !batch->at[i].until_ns || batch->at[i].word.lies_ns;

		item->revision = revision;
		item->lies_ns = lies ? batch->at[i].lies_ns : 0; /* else it follows nothing */
		item->there_ns = batch->at[i].until_ns;
		item->there = batch->at[i].word.value;
		item->doubt = item->over = false;
		item->own = true;
		item->lifted = !batch->at[i].until_ns && !batch->at[i].word.lies_ns;
		item->lasts = batch->at[i].word.lies_ns;
		item->todo = SHARED_NOTHING;
		s->count.told++;
	}
}

void shared_lost(struct shared *s, const struct shared_batch *batch)
{
	for (size_t i = 0; i < batch->n; i++) {
		struct shared_item *item = &s->at[batch->at[i].item];

		item->doubt = true;
		item->tried = batch->at[i].word.value;
		item->tried_ns = batch->at[i].until_ns;
	}
}

void shared_barred(struct shared *s, const char *key)
{
	struct shared_item *item = find(s, key);

	if (!item || item->todo != SHARED_TELL)
		return;
	item->todo = SHARED_NOTHING;
	item->doubt = false;
	s->count.left_out++;
}
