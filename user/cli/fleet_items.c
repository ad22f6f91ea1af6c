/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/fleet_items.h"

#include <stdio.h>
#include <string.h>

#include "config/file_lock.h"
#include "fleet/codec.h"
#include "live/copies.h"
#include "live/host.h"
#include "sets/set_maps.h"

#define LOOK_NS	 200000000ull  /* between two looks at the tables */
#define LATE_NS	 600000000ull  /* two at once then: the store was waited for */
#define STORE_NS 50000000ull   /* between two times that the store is asked */
#define AGAIN_NS 5000000000ull /* between two tries to change a set that has failed */
#define TAKE_MAX 256	       /* at once, while tools wait */
#define BAN	 "ban/"
#define SET	 "set/"

static void put(__u64 *to, uint64_t value)
{
	__atomic_store_n(to, value, __ATOMIC_RELEASE);
}

/* What the tools can say of it. */
static void tell_tools(const struct fleet_items *items, struct attached *a)
{
	struct pacer_fleet_items *said = &a->control->fleet_items;
	const struct shared *s = &items->exchange.items;

	put(&said->answered_ns, items->answered_ns);
	put(&said->known, s->n);
	put(&said->told, s->count.told);
	put(&said->taken, s->count.taken);
	put(&said->late, s->count.late);
	put(&said->left_out, s->count.left_out);
}

/* What follows the kind's name; NULL: it is of another kind. */
static const char *after(const char *key, const char *kind)
{
	return strncmp(key, kind, strlen(kind)) ? NULL : key + strlen(kind);
}

/* value NULL: it was lifted, which is the same with values and without. */
static enum exchange_is is_ours(const char *key, const struct shared_value *value, void *arg)
{
	const char *ban = after(key, BAN), *element = after(key, SET);
	const struct fleet_items *items = arg;
	struct pacer_ban_key unused;
	struct set_entry entry;
	size_t set;

	if (ban && fleet_bans_read(&items->bans, ban, &unused))
		return EXCHANGE_OURS;
	if (!element || !fleet_sets_read(&items->sets, element, &set, &entry))
		return EXCHANGE_OTHERS;
	return value && (value->by != SHARED_PLAIN) != items->sets.set[set].values
		   ? EXCHANGE_ODD_ONE
		   : EXCHANGE_OURS;
}

/* A set that is read anew lacks then what others' files have put in. */
static bool stays(const struct shared_item *item, void *arg)
{
	const char *element = after(item->key, SET);
	const struct fleet_items *items = arg;
	struct set_entry entry;
	size_t set;

	if (!element)
		return items->table_stays;
	if (!fleet_sets_read(&items->sets, element, &set, &entry))
		return false;
	return items->set_stays[set];
}

static bool has_rule(const struct fleet_bans *bans, uint32_t rule)
{
	for (size_t i = 0; i < bans->n; i++)
		if (bans->rule[i] == rule)
			return true;
	return false;
}

/* Its number; SIZE_MAX: there is none. */
static size_t set_named(const struct fleet_sets *sets, const char *name)
{
	for (size_t i = 0; i < sets->n; i++)
		if (!strcmp(sets->set[i].name, name))
			return i;
	return SIZE_MAX;
}

/* Words of it were read, and passed over as others'. */
static bool shares_more(const struct fleet_items *items, const struct fleet_bans *bans,
			const struct fleet_sets *sets)
{
	bool more = bans->sources && !items->bans.sources;

	for (size_t i = 0; i < bans->n; i++)
		more |= !has_rule(&items->bans, bans->rule[i]);
	for (size_t i = 0; i < sets->n; i++) {
		size_t was = set_named(&items->sets, sets->set[i].name);

		more |= was == SIZE_MAX || items->sets.set[was].values != sets->set[i].values;
	}
	return more;
}

/* What becomes of the sets that were shared before. */
static void begin_sets(struct fleet_items *items, const struct attached *a,
		       const struct fleet_sets *sets)
{
	const struct fleet_sets before = items->sets;
	bool looked[PACER_SETS_MAX];

	memcpy(looked, items->looked, sizeof(looked));
	memset(items->looked, 0, sizeof(items->looked));
	items->sets = *sets;
	for (size_t i = 0; i < sets->n; i++) {
		size_t was = set_named(&before, sets->set[i].name);
		uint32_t serial = fleet_sets_serial(a, sets, i);

		items->set_stays[i] = was != SIZE_MAX &&
				      set_maps_goes_on(before.set[was].serial, serial) &&
				      sets->set[i].values == before.set[was].values;
		if (!items->set_stays[i])
			continue;
		items->sets.set[i].serial = serial;
		items->looked[i] = looked[was];
	}
}

void fleet_items_begin(struct fleet_items *items, struct attached *a, const struct policy *policy,
		       uint32_t copy, uint64_t serial)
{
	const struct fleet_bans bans = fleet_bans_of(policy);
	const struct fleet_sets sets = fleet_sets_of(policy);
	const struct pacer_bans *table = &a->copy[copy].policy.bans;

	items->table_stays = items->table.base == table->base && items->table.sets == table->sets &&
			     items->table.begun == table->begun;
	if (shares_more(items, &bans, &sets))
		shared_asked(&items->exchange.items, 0);
	items->bans_looked &= items->table_stays;
	items->copy = copy;
	items->serial = serial;
	items->table = *table;
	items->bans = bans;
	begin_sets(items, a, &sets);
	items->any = items->bans.n || items->bans.sources || items->sets.n;
	items->exchange.now_ns = host_now_ns;
	items->exchange.is_ours = is_ours;
	items->exchange.stays = stays;
	items->exchange.arg = items;
	items->looked_ns = host_now_ns() - LOOK_NS;
	items->unlooked = false;
	items->store_ns = 0;
	memset(items->again_ns, 0, sizeof(items->again_ns));
	items->bans_lacked = 0;
	memset(items->set_lacked, 0, sizeof(items->set_lacked));
	exchange_begin(&items->exchange);
	shared_again(&items->exchange.items, host_now_ns());
	tell_tools(items, a);
	put(&a->control->fleet_items.begun_ns, items->any ? host_now_ns() : 0);
}

/* By revisions that were, what is written is refused, and what is read is old. */
void fleet_items_anew(struct fleet_items *items)
{
	const struct shared_counts count = items->exchange.items.count;

	exchange_free(&items->exchange);
	items->exchange.items.count = count;
	memset(items->looked, 0, sizeof(items->looked));
	items->bans_looked = false;
	for (size_t i = 0; i < items->sets.n; i++)
		items->sets.set[i].looks = 0; /* else it is as it was, and that is not told */
	items->looked_ns = host_now_ns() - LOOK_NS;
	exchange_begin(&items->exchange);
}

void fleet_items_free(struct fleet_items *items)
{
	exchange_free(&items->exchange);
}

/* --- what is here ------------------------------------------------------------------------------
 */

static void here(const struct pacer_ban_key *key, uint64_t until_ns, void *arg)
{
	char text[sizeof(BAN) + FLEET_BAN_TEXT] = BAN;
	struct fleet_items *items = arg;

	fleet_bans_text(key, text + strlen(BAN));
	shared_here(&items->exchange.items, text, NULL, until_ns, host_now_ns());
}

/* Of a set, by whatever an element is there that was not at the look before. */
struct look {
	struct fleet_items *items;
	bool anew; /* there was none since the policy is in force */
};

static void element(const struct fleet_element *e, void *arg)
{
	struct shared_value value = {.by = e->by_hand ? SHARED_BY_HAND : SHARED_BY_FILE};
	char text[sizeof(SET) + FLEET_ELEMENT_TEXT];
	const struct look *l = arg;
	struct shared *s = &l->items->exchange.items;

	if (e->value && !fleet_fits(e->value)) {
		shared_unfit(s);
		return;
	}
	s->first = l->anew;
	s->found = !l->anew ? SHARED_MADE : e->by_hand ? SHARED_STAYS : SHARED_FILED;
	if (e->value)
		snprintf(value.text, sizeof(value.text), "%s", e->value);
	snprintf(text, sizeof(text), "%s%s", SET, e->text);
	shared_here(s, text, e->value ? &value : NULL, e->until_ns, host_now_ns());
}

/* Is another policy in force by now? What was read may be of that one, and shows no lifting. */
static bool is_another(const struct fleet_items *items, const struct attached *a)
{
	uint32_t copy = copies_in_force(a);

	return copy != items->copy || a->copy[copy].policy.serial != items->serial;
}

/* False: it is as it was at the last look, or was not to be read. */
static bool read_set(struct fleet_items *items, const struct attached *a, size_t i)
{
	uint32_t serial = items->sets.set[i].serial;
	struct look l = {items, !items->looked[i]};

	if (items->busy)
		return false;
	if (fleet_sets_each(a, &items->sets, i, element, &l)) {
		items->busy = file_lock_given_up();
		return false;
	}
	if (!is_another(items, a))
		return true;
	items->sets.set[i].serial = serial;
	return false;
}

static void look_at_set(struct fleet_items *items, const struct attached *a, size_t i)
{
	struct shared *s = &items->exchange.items;
	char begin[sizeof(SET) + FLEET_ELEMENT_TEXT];

	snprintf(begin, sizeof(begin), "%s%s/", SET, items->sets.set[i].name);
	if (!read_set(items, a, i)) {
		shared_same(s, begin);
		return;
	}
	items->looked[i] = true;
	shared_counted(s, &items->set_lacked[i]);
}

static bool looked_at_all(const struct fleet_items *items)
{
	for (size_t i = 0; i < items->sets.n; i++)
		if (!items->looked[i])
			return false;
	return items->bans_looked;
}

static void look(struct fleet_items *items, const struct attached *a)
{
	items->looked_ns = host_now_ns();
	/* A trial that has ended is seen as one, or as another policy that is in force. */
	items->exchange.items.on_trial = copies_pending_ns(a) || is_another(items, a);
	exchange_look(&items->exchange);
	items->exchange.items.found = SHARED_MADE;
	items->exchange.items.first = !items->bans_looked;
	fleet_bans_each(a, &items->bans, here, items);
	if (is_another(items, a))
		shared_same(&items->exchange.items, BAN);
	else
		items->bans_looked = true;
	shared_counted(&items->exchange.items, &items->bans_lacked);
	for (size_t i = 0; i < items->sets.n; i++)
		look_at_set(items, a, i);
	shared_looked(&items->exchange.items, items->looked_ns);
	items->unlooked = !looked_at_all(items) && (items->busy || is_another(items, a));
}

/* What two looks have missed is gone, and a policy that comes next would hide that. */
void fleet_items_look(struct fleet_items *items, const struct attached *a)
{
	uint64_t since_ns = host_now_ns() - items->looked_ns;

	if (!items->any || since_ns < LOOK_NS)
		return;
	items->busy = false;
	look(items, a);
	if (since_ns >= LATE_NS)
		look(items, a);
}

/* --- what others have said, to the packets -----------------------------------------------------
 */

/* Not for a lock, which does not hide why something else has failed. */
static bool fails(const struct policy_error *why, struct policy_error *error)
{
	*error = *why;
	return false;
}

/* At the next step: what was changed here is to be known before a word is taken over it. */
static void look_soon(struct fleet_items *items)
{
	items->looked_ns = host_now_ns() - LOOK_NS;
}

static bool take_bans(struct fleet_items *items, struct attached *a, struct policy_error *error)
{
	static struct fleet_ban ban[TAKE_MAX];
	struct shared_item *item, *of[TAKE_MAX];
	struct policy_error why;
	size_t i = 0, n = 0;

	while (n < TAKE_MAX && (item = shared_take(&items->exchange.items, &i))) {
		const char *text = after(item->key, BAN);

		if (!text || !fleet_bans_read(&items->bans, text, &ban[n].key))
			continue;
		ban[n].until_ns = item->there_ns;
		ban[n].was_ns = item->here_ns;
		of[n++] = item;
	}
	if (n && fleet_bans_set(a, ban, n, &why)) {
		items->busy = file_lock_given_up();
		return items->busy || fails(&why, error);
	}
	for (i = 0; i < n; i++)
		if (ban[i].changed)
			look_soon(items);
		else
			shared_taken(&items->exchange.items, of[i], ban[i].done);
	return true;
}

/* Is it of the set that is seen to? */
static bool is_of(const struct fleet_items *items, const struct shared_item *item, size_t set,
		  struct set_entry *entry)
{
	const char *text = after(item->key, SET);
	size_t its;

	return text && fleet_sets_read(&items->sets, text, &its, entry) && its == set;
}

/* Among what is to be put in, or taken out. */
static int put_element(const struct shared_item *item, const struct set_entry *entry,
		       struct fleet_elements *elements)
{
	bool filed = item->there.by == SHARED_BY_FILE || item->there.by == SHARED_BY_CHANGE;

	if (!item->there_ns)
		return set_list_add(&elements->del, entry);
	return set_hand_add_named(filed ? &elements->put : &elements->add, entry, item->there_ns,
				  item->there.text);
}

/* Of all or, without memory, of none: what is not put in and counted as taken would be told as
 * lifted. */
static int gather(struct fleet_items *items, size_t set, struct fleet_elements *elements, bool *any)
{
	struct shared_item *item;
	struct set_entry entry;
	size_t i = 0;

	while ((item = shared_take(&items->exchange.items, &i))) {
		if (!is_of(items, item, set, &entry))
			continue;
		*any = true;
		if (put_element(item, &entry, elements))
			return -1;
	}
	return 0;
}

/*
 * All that is there of a set, since each change of one costs the same. What fails is tried again,
 * or this host would have other elements than the rest until it begins anew.
 */
static bool take_set(struct fleet_items *items, struct attached *a, size_t set,
		     struct policy_error *error)
{
	struct shared *s = &items->exchange.items;
	struct fleet_elements elements = {0};
	struct shared_item *item;
	struct policy_error why;
	struct set_entry entry;
	bool any = false, done;
	int result;

	if (host_now_ns() < items->again_ns[set])
		return true;
	if (gather(items, set, &elements, &any)) {
		fleet_elements_free(&elements);
		policy_explain(error, POLICY_NO_MEMORY,
			       "%s: no memory for what others put in set %s", a->ifname,
			       items->sets.set[set].name);
		return false;
	}
	if (!any)
		return true;
	result = fleet_sets_set(a, &items->sets, set, &elements, &why);
	look_soon(items); /* what is done here now is no tool's change */
	if (result == FLEET_SETS_CHANGED)
		return true;
	done = !result;
	items->busy = !done && file_lock_given_up();
	if (items->busy)
		return true;
	for (size_t i = 0; (item = shared_take(s, &i));)
		if (!is_of(items, item, set, &entry))
			continue;
		else if (done)
			shared_taken(s, item, true);
		else
			shared_put_off(s, item);
	items->again_ns[set] = done ? 0 : host_now_ns() + AGAIN_NS;
	return done || fails(&why, error);
}

static bool take(struct fleet_items *items, struct attached *a, struct policy_error *error)
{
	bool well = items->busy || take_bans(items, a, error);

	for (size_t i = 0; i < items->sets.n && !items->busy; i++)
		well &= take_set(items, a, i, error);
	return well;
}

bool fleet_items_step(struct fleet_items *items, struct attached *a, const char *guard,
		      uint64_t created, struct policy_error *error)
{
	bool well = true;

	if (!items->any)
		return true;
	items->busy = false;
	fleet_items_look(items, a);
	/*
	 * What the store says now would count over what is here, of which nothing is known yet. And
	 * what a policy brought that is not followed yet is not told as made here.
	 */
	if (!items->unlooked && !is_another(items, a) && host_now_ns() >= items->store_ns &&
	    exchange_waits(&items->exchange)) {
		well = exchange_step(&items->exchange, guard, created);
		items->store_ns = host_now_ns() + STORE_NS;
	}
	if (well && !take(items, a, error))
		well = false;
	tell_tools(items, a);
	return well;
}
