/* SPDX-License-Identifier: GPL-2.0-only */
#include "fleet/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/codec.h"
#include "fleet/json.h"

#define LEASES_MAX 1024 /* whose age is asked at once; the others count as fresh */

void exchange_begin(struct exchange *x)
{
	shared_begin(&x->items);
	x->revision = x->read_ns = 0;
	x->odd[0] = 0;
	exchange_missed(x);
}

void exchange_missed(struct exchange *x)
{
	x->stale = x->away = true;
}

void exchange_free(struct exchange *x)
{
	shared_free(&x->items);
}

bool exchange_waits(const struct exchange *x)
{
	if (x->stale)
		return true;
	for (size_t i = 0; i < x->items.n; i++)
		if (x->items.at[i].todo == SHARED_TELL)
			return true;
	return false;
}

/* --- reading -----------------------------------------------------------------------------------
 */

struct lease_age {
	uint64_t lease, age_ns;
};

static int by_lease(const void *a, const void *b)
{
	uint64_t p = ((const struct lease_age *)a)->lease;
	uint64_t q = ((const struct lease_age *)b)->lease;

	return (p > q) - (p < q);
}

/* Each once, sorted. */
static size_t leases_of(const struct store_snapshot *now, struct lease_age *leases)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < now->n; i++)
		if (now->at[i].lease)
			leases[n++].lease = now->at[i].lease;
	if (n)
		qsort(leases, n, sizeof(*leases), by_lease);
	for (size_t i = 0; i < n; i++)
		if (!kept || leases[kept - 1].lease != leases[i].lease)
			leases[kept++] = leases[i];
	return kept;
}

static bool ask_ages(struct exchange *x, struct lease_age *leases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		leases[i].age_ns = 0;
		if (i >= LEASES_MAX)
			continue;
		x->calls++;
		if (x->kind->age(x->store, leases[i].lease, &leases[i].age_ns) != STORE_DONE)
			return false;
	}
	return true;
}

/* Why it is passed over and what to do; NULL: it is not, or has nothing to do with this host. */
static const char *why_not(struct exchange *x, const char *key, uint64_t left_ns,
			   const struct shared_value *value, enum exchange_is *is)
{
	*is = x->is_ours(key, left_ns ? value : NULL, x->arg);
	if (*is != EXCHANGE_ODD_ONE)
		return NULL;
	return value->by == SHARED_PLAIN
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

/* False: it is passed over; or there is no memory for it (starved), and nothing is known of it. */
static bool say(struct exchange *x, const struct store_entry *entry, const struct lease_age *leases,
		size_t n, size_t skip)
{
	const struct lease_age key = {.lease = entry->lease}, *age;
	struct shared_value value;
	uint64_t left_ns, age_ns;
	enum exchange_is is;
	const char *why;

	if (strlen(entry->key) < skip)
		return false;
	(void)json_lacked();
	why = fleet_read_item(entry->value, entry->len, &left_ns, &value);
	x->starved = json_lacked();
	if (x->starved)
		return false;
	if (why) {
		odd(x, entry->key, why, ": remove it there");
		return false;
	}
	why = why_not(x, entry->key + skip, left_ns, &value, &is);
	if (why)
		odd(x, entry->key, why, "");
	if (is != EXCHANGE_OURS)
		return is == EXCHANGE_OTHERS;
	age = n ? bsearch(&key, leases, n, sizeof(*leases), by_lease) : NULL;
	age_ns = age ? age->age_ns : 0;
	if (left_ns && left_ns != SHARED_NEVER)
		left_ns = left_ns > age_ns ? left_ns - age_ns : SHARED_OVER;
	x->items.starved = false;
	shared_there(&x->items, entry->key + skip, &value, entry->revision, left_ns, x->now_ns());
	x->starved = x->items.starved;
	return !x->starved;
}

/* All of it, with how old it is where that may be much. */
static bool say_all(struct exchange *x, const struct store_snapshot *now)
{
	struct lease_age *leases = calloc(now->n + 1, sizeof(*leases));
	size_t n = x->away && leases ? leases_of(now, leases) : 0;
	bool well = leases && ask_ages(x, leases, n);

	x->starved = !leases;
	if (well && !x->revision)
		shared_list(&x->items);
	for (size_t i = 0; i < now->n && well; i++) {
		(void)say(x, &now->at[i], leases, n, strlen(EXCHANGE_ITEMS));
		well = !x->starved;
	}
	if (well && !x->revision)
		shared_listed(&x->items, x->now_ns());
	free(leases);
	return well;
}

/* After an hour without an answer, what was lifted may have left no word. */
static bool read_new(struct exchange *x)
{
	struct store_snapshot now = {0};
	bool well;

	if (x->read_ns && x->now_ns() - x->read_ns > SHARED_LIFTED_S * 900000000ull)
		x->revision = 0;
	x->calls++;
	if (x->kind->list(x->store, EXCHANGE_ITEMS, x->revision, &now) != STORE_DONE)
		return false;
	well = say_all(x, &now);
	if (well) {
		x->revision = now.revision;
		x->read_ns = x->now_ns();
		x->stale = x->away = false;
	}
	store_snapshot_free(&now);
	return well;
}

/* --- writing -----------------------------------------------------------------------------------
 */

struct writing {
	char key[STORE_PUTS_MAX][SHARED_KEY + sizeof(EXCHANGE_ITEMS)];
	char *value[STORE_PUTS_MAX];
	struct store_put put[STORE_PUTS_MAX];
};

_Static_assert(SHARED_BATCH <= STORE_PUTS_MAX, "a batch is written by one call");

/* Of each that is not as this host thought, what it is. It may have been there for long. */
static bool refused(struct exchange *x, const struct writing *w, size_t n,
		    const struct store_snapshot *now)
{
	struct lease_age leases[STORE_PUTS_MAX];
	size_t skip = strlen(EXCHANGE_ITEMS), n_leases = leases_of(now, leases);

	if (!ask_ages(x, leases, n_leases))
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct store_entry *entry = store_find(now, w->key[i]);

		if (entry && entry->revision != w->put[i].follows &&
		    !say(x, entry, leases, n_leases, skip) && !x->starved)
			shared_barred(&x->items, w->key[i] + skip);
		if (!entry && w->put[i].follows)
			shared_absent(&x->items, w->key[i] + skip, x->now_ns());
		if (x->starved)
			return false;
	}
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
		w.value[i] = fleet_write_item(b.at[i].left_ns, &b.at[i].value);
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
