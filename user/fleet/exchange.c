/* SPDX-License-Identifier: GPL-2.0-only */
#include "fleet/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/codec.h"
#include "fleet/json.h"

#define ASK_NS 1000000000ull /* for so long at once, as a session is to be renewed */

static void forget_ages(struct exchange *x)
{
	free(x->ages);
	x->ages = NULL;
	x->n_ages = 0;
}

static void forget_page(struct exchange *x)
{
	store_snapshot_free(&x->page);
	forget_ages(x);
}

/* What is being read, if anything: it begins anew. */
static void forget_reading(struct exchange *x)
{
	forget_page(x);
	free(x->behind);
	x->behind = NULL;
	x->at = 0;
	x->again = false;
}

/*
 * Beside what stays where it lies: what the operator did, and was not told yet; and what was
 * lifted, until that is read.
 */
static bool keeps(const struct shared_item *item, void *arg)
{
	const struct exchange *x = arg;
	bool tells = item->todo == SHARED_TELL, here = item->here_ns;
	bool by_hand = !item->begun && item->here.by == SHARED_BY_HAND;
	bool unread = item->lifted && item->revision > x->items.known;

	return ((tells && (!here || by_hand)) || (!here && unread) || x->stays(item, x->arg)) &&
	       x->is_ours(item->key, NULL, x->arg) == EXCHANGE_OURS;
}

/* While a list is being read, what it says counts as not read: some of that was not heard yet. */
void exchange_begin(struct exchange *x)
{
	if (x->at && x->items.known > x->items.heard)
		shared_asked(&x->items, x->items.heard);
	shared_begin(&x->items, keeps, x);
	x->revision = x->read_ns = 0;
	x->odd[0] = 0;
	forget_reading(x);
	exchange_missed(x);
}

void exchange_missed(struct exchange *x)
{
	x->stale = x->away = true;
}

void exchange_quiet(struct exchange *x, uint64_t at_ns)
{
	if (!x->stale && at_ns > x->quiet_ns)
		x->quiet_ns = at_ns;
}

void exchange_free(struct exchange *x)
{
	forget_reading(x);
	shared_free(&x->items);
	x->back = false;
}

void exchange_look(struct exchange *x)
{
	uint64_t term = x->kind->term(x->store);

	if (x->term && term > x->term)
		shared_renewed(&x->items);
	x->term = term;
}

bool exchange_waits(const struct exchange *x)
{
	if (x->stale)
		return true;
	for (size_t i = 0; i < x->items.n; i++)
		if (shared_tells(&x->items, &x->items.at[i]))
			return true;
	return false;
}

/* --- reading -----------------------------------------------------------------------------------
 */

struct exchange_age {
	uint64_t lease, age_ns, left_ns,
	    asked_ns; /* asked_ns: of the host's clock; 0: it was not */
};

static int by_lease(const void *a, const void *b)
{
	uint64_t p = ((const struct exchange_age *)a)->lease;
	uint64_t q = ((const struct exchange_age *)b)->lease;

	return (p > q) - (p < q);
}

static const struct exchange_age *age_of(const struct exchange *x, uint64_t lease)
{
	const struct exchange_age key = {.lease = lease};

	return x->n_ages ? bsearch(&key, x->ages, x->n_ages, sizeof(key), by_lease) : NULL;
}

/* How old it is by now; what was not asked counts as fresh. */
static uint64_t age_by_now(const struct exchange *x, uint64_t lease)
{
	const struct exchange_age *age = age_of(x, lease);
	uint64_t since_ns;

	if (!age || !age->asked_ns)
		return 0;
	since_ns = x->now_ns() - age->asked_ns;
	return age->age_ns < UINT64_MAX - since_ns ? age->age_ns + since_ns : UINT64_MAX;
}

/* With a byte of 0, it is none that this or another host has written. */
static bool is_key(const struct store_entry *entry)
{
	return strlen(entry->key) == entry->key_len;
}

/* It was said before, by an answer that was not read to its end. */
static bool is_known(const struct exchange *x, const struct store_entry *entry)
{
	const size_t skip = strlen(EXCHANGE_ITEMS);

	return strlen(entry->key) > skip &&
	       shared_knows(&x->items, entry->key + skip, entry->revision);
}

/* Of what is new: each once, sorted, with what is known of it already. */
static size_t leases_of(const struct exchange *x, const struct store_snapshot *now,
			struct exchange_age *leases)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < now->n; i++)
		if (now->at[i].lease && is_key(&now->at[i]) && !is_known(x, &now->at[i]))
			leases[n++].lease = now->at[i].lease;
	if (n)
		qsort(leases, n, sizeof(*leases), by_lease);
	for (size_t i = 0; i < n; i++) {
		const struct exchange_age *known = age_of(x, leases[i].lease);

		if (!kept || leases[kept - 1].lease != leases[i].lease)
			leases[kept++] = known ? *known : leases[i];
	}
	return kept;
}

enum asked { ASKED_ALL, ASKED_SOME, ASKED_IN_VAIN };

/* How old the leases are by which these go away, in x->ages. */
static enum asked ask_ages(struct exchange *x, const struct store_snapshot *now)
{
	struct exchange_age *leases = calloc(now->n + 1, sizeof(*leases));
	uint64_t end_ns = x->now_ns() + ASK_NS;
	size_t n = leases ? leases_of(x, now, leases) : 0;

	x->starved = !leases;
	if (!leases)
		return ASKED_IN_VAIN;
	forget_ages(x);
	x->ages = leases;
	x->n_ages = n;
	for (size_t i = 0; i < n; i++) {
		if (leases[i].asked_ns)
			continue;
		if (x->now_ns() >= end_ns)
			return ASKED_SOME;
		x->calls++;
		if (x->kind->age(x->store, leases[i].lease, &leases[i].age_ns,
				 &leases[i].left_ns) != STORE_DONE)
			return ASKED_IN_VAIN;
		leases[i].asked_ns = x->now_ns();
	}
	return ASKED_ALL;
}

/* Why it is passed over and what to do; NULL: it is not, or has nothing to do with this host. */
static const char *why_not(struct exchange *x, const char *key, const struct shared_word *word,
			   enum exchange_is *is)
{
	*is = x->is_ours(key, word->left_ns ? &word->value : NULL, x->arg);
	if (*is != EXCHANGE_ODD_ONE)
		return NULL;
	return word->value.by == SHARED_PLAIN
		   ? "it has no value, and the set has values in this host's policy: see that the "
		     "hosts' policies are the same"
		   : "it has a value, and the set has none in this host's policy: see that the "
		     "hosts' policies are the same";
}

static void odd(struct exchange *x, const char *key, const char *why, const char *and)
{
	x->strange++;
	snprintf(x->odd, sizeof(x->odd), "%.160s in the store is passed over: %s%s", key, why, and);
}

/* For how long the word lies there, where that was asked: what follows it is to lie as long. */
static void say_lies(struct exchange *x, const struct store_entry *entry, const char *key)
{
	const struct exchange_age *age = age_of(x, entry->lease);

	if (age && age->asked_ns)
		shared_lies(&x->items, key, entry->revision, age->asked_ns + age->left_ns);
}

/* False: it is passed over; or there is no memory for it (starved), and nothing is known of it. */
static bool say(struct exchange *x, const struct store_entry *entry, size_t skip)
{
	struct shared_word word;
	enum exchange_is is;
	const char *why;

	if (entry->key_len < skip)
		return false;
	if (!is_key(entry)) {
		odd(x, entry->key, "there its key goes on behind a byte of 0", ": remove it there");
		return false;
	}
	(void)json_lacked();
	why = fleet_read_item(entry->value, entry->len, &word);
	x->starved = json_lacked();
	if (x->starved)
		return false;
	if (why) {
		odd(x, entry->key, why, ": remove it there");
		return false;
	}
	why = why_not(x, entry->key + skip, &word, &is);
	if (why)
		odd(x, entry->key, why, "");
	if (is != EXCHANGE_OURS)
		return is == EXCHANGE_OTHERS;
	shared_age(&word, age_by_now(x, entry->lease));
	x->items.starved = false;
	shared_there(&x->items, entry->key + skip, &word, entry->revision, x->now_ns());
	x->starved = x->items.starved;
	say_lies(x, entry, entry->key + skip);
	return !x->starved;
}

/*
 * The next page of what is new; of the first, all that follow are of its moment. False: there is
 * none, or it is older than what was read: what was written between would never be read.
 */
static bool read_page(struct exchange *x)
{
	const struct store_list list = {EXCHANGE_ITEMS, x->revision, x->behind, x->behind_len,
					x->at};

	x->calls++;
	if (x->kind->list(x->store, &list, &x->page) != STORE_DONE) {
		forget_reading(x); /* that moment may be forgotten there */
		return false;
	}
	x->back = x->page.revision < x->items.known;
	if (x->back) {
		forget_reading(x);
		return false;
	}
	if (!x->at && !x->revision)
		shared_list(&x->items);
	x->at = x->page.revision;
	shared_asked(&x->items, x->at);
	return true;
}

/* All of the page, with how old it is where that may be much; or nothing yet (ASKED_SOME). */
static enum asked say_page(struct exchange *x)
{
	enum asked asked;

	x->away |= x->now_ns() - x->quiet_ns > SHARED_SLACK_NS;
	asked = x->away ? ask_ages(x, &x->page) : ASKED_ALL;
	for (size_t i = 0; i < x->page.n && asked == ASKED_ALL; i++) {
		(void)say(x, &x->page.at[i], strlen(EXCHANGE_ITEMS));
		if (x->starved)
			return ASKED_IN_VAIN;
	}
	return asked;
}

/* Goes on behind the page's last key. False: there is no memory. */
static bool next_page(struct exchange *x)
{
	const struct store_entry *last = &x->page.at[x->page.n - 1];
	char *behind = malloc(last->key_len + 1);

	x->starved = !behind;
	if (!behind)
		return false;
	memcpy(behind, last->key, last->key_len + 1);
	free(x->behind);
	x->behind = behind;
	x->behind_len = last->key_len;
	forget_page(x);
	return true;
}

/* What came meanwhile is read, too, and how old that is. */
static void end_reading(struct exchange *x)
{
	if (!x->revision)
		shared_listed(&x->items, x->now_ns());
	shared_heard(&x->items);
	x->revision = x->at;
	x->read_ns = x->quiet_ns = x->at_ns;
	x->stale = x->away = x->again;
	forget_reading(x);
}

/*
 * After an hour without an answer, what was lifted may have left no word. Of what is read then
 * some has ended: how old it is has to be asked.
 */
static void begin_reading(struct exchange *x)
{
	x->at_ns = x->now_ns();
	if (x->read_ns && x->now_ns() - x->read_ns > SHARED_LIFTED_S * 900000000ull) {
		x->revision = 0;
		x->away = true;
	}
}

static bool read_new(struct exchange *x)
{
	enum asked asked;

	if (x->at)
		x->again = true;
	else
		begin_reading(x);
	if (!x->page.revision && !read_page(x))
		return x->back;
	asked = say_page(x);
	if (asked != ASKED_ALL)
		return asked == ASKED_SOME;
	if (x->page.more)
		return next_page(x);
	end_reading(x);
	return true;
}

/* --- writing -----------------------------------------------------------------------------------
 */

struct writing {
	char key[STORE_PUTS_MAX][SHARED_KEY + sizeof(EXCHANGE_ITEMS)];
	char *value[STORE_PUTS_MAX];
	struct store_put put[STORE_PUTS_MAX];
};

_Static_assert(SHARED_BATCH <= STORE_PUTS_MAX, "a batch is written by one call");

/* Can it be said how old it is? */
static bool is_told(const struct exchange *x, const struct store_entry *entry)
{
	const struct exchange_age *age = age_of(x, entry->lease);

	return !age || age->asked_ns;
}

/*
 * Of each that is not as this host thought, what it is. It may have been there for long; of what
 * could not be asked how long, nothing is known yet: it is written again, and refused again.
 */
static bool refused(struct exchange *x, const struct writing *w, size_t n,
		    const struct store_snapshot *now)
{
	size_t skip = strlen(EXCHANGE_ITEMS);
	enum asked asked;

	asked = ask_ages(x, now);
	if (asked == ASKED_IN_VAIN)
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct store_entry *entry = store_find(now, w->key[i]);

		if (asked == ASKED_SOME && entry && !is_told(x, entry))
			continue;
		if (entry && entry->revision != w->put[i].follows && !say(x, entry, skip) &&
		    !x->starved)
			shared_barred(&x->items, w->key[i] + skip);
		if (!entry && w->put[i].follows)
			shared_absent(&x->items, w->key[i] + skip, x->now_ns());
		if (x->starved)
			return false;
	}
	if (asked == ASKED_ALL)
		forget_ages(x);
	return true;
}

static bool write_batch(struct exchange *x, const struct shared_batch *b, struct writing *w,
			const char *guard, uint64_t created)
{
	struct store_snapshot now = {0};
	enum store_result result;
	uint64_t revision = 0;
	bool well = true;

	x->calls += 2;
	result = x->kind->put(x->store, w->put, b->n, b->ttl_s, guard, created, &revision, &now);
	if (result == STORE_DONE)
		shared_told(&x->items, b, revision);
	else if (result == STORE_REFUSED)
		well = refused(x, w, b->n, &now);
	else
		shared_lost(&x->items, b);
	store_snapshot_free(&now);
	return well && result != STORE_UNKNOWN;
}

static bool tell(struct exchange *x, const char *guard, uint64_t created)
{
	static struct writing w;
	struct shared_batch b;
	bool well = true;

	shared_batch(&x->items, x->now_ns(), &b);
	for (size_t i = 0; i < b.n; i++) {
		snprintf(w.key[i], sizeof(w.key[i]), "%s%s", EXCHANGE_ITEMS,
			 x->items.at[b.at[i].item].key);
		w.value[i] = fleet_write_item(&b.at[i].word);
		w.put[i] = (struct store_put){w.key[i], w.value[i], b.at[i].follows};
		well &= w.value[i] != NULL;
	}
	x->starved = !well;
	if (b.n && well)
		well = write_batch(x, &b, &w, guard, created);
	for (size_t i = 0; i < b.n; i++)
		free(w.value[i]);
	return well;
}

bool exchange_step(struct exchange *x, const char *guard, uint64_t created)
{
	bool well;

	x->starved = false;
	well = x->stale ? read_new(x) : !created || tell(x, guard, created);
	if (!well)
		exchange_missed(x);
	return well;
}
