/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What other hosts say of sets, on its way into them, while memory runs out: an element that is not
 * put in does not count as taken. Else the next look would miss it here, and all hosts would be
 * told that it was lifted.
 */
#include "oracle.h"
#include "starved.h"

#include "cli/fleet_items.h"
#include "live/host.h"

#define S    1000000000ull
#define MANY 200u /* more than a list has room for at first */

static uint64_t now_ns;
static struct policy_error error;
static struct pacer_control control;
static struct pacer_copy copies[2];
static struct attached pacer = {.ifname = "eth0", .control = &control, .copy = copies};
static struct fleet_items items;
static uint32_t added, lifted; /* by the last change of the set */
static bool fails, bans_read;
static bool changed;	       /* since the look: the set or the ban */
static struct fleet_bans bans; /* of the policy */
static struct fleet_sets sets;
static const struct fleet_element *lies_here; /* in each set; NULL: nothing new does */
static bool is_empty;			      /* or nothing at all */
static uint32_t serial;			      /* of what lies in each */
static uint32_t asked;			      /* for a set, or to change one */
static bool held;			      /* by a tool: the lock */
static uint32_t in_force;
static uint64_t banned_ns;  /* until when somebody is; 0: nobody is */
static uint64_t pending_ns; /* of a trial */

uint64_t host_now_ns(void)
{
	return now_ns;
}

uint32_t copies_in_force(const struct attached *a)
{
	(void)a;
	return in_force;
}

uint64_t copies_pending_ns(const struct attached *a)
{
	(void)a;
	return pending_ns;
}

bool fleet_bans_read(const struct fleet_bans *which, const char *text, struct pacer_ban_key *key)
{
	(void)which;
	(void)text;
	(void)key;
	return bans_read;
}

void fleet_bans_each(const struct attached *a, const struct fleet_bans *which,
		     void (*each)(const struct pacer_ban_key *key, uint64_t until_ns, void *arg),
		     void *arg)
{
	const struct pacer_ban_key unused = {0};

	(void)a;
	(void)which;
	if (banned_ns)
		each(&unused, banned_ns, arg);
}

struct fleet_bans fleet_bans_of(const struct policy *policy)
{
	(void)policy;
	return bans;
}

void fleet_bans_text(const struct pacer_ban_key *key, char text[FLEET_BAN_TEXT])
{
	(void)key;
	*text = 0;
}

int fleet_bans_set(struct attached *a, struct fleet_ban *ban, size_t n, struct policy_error *why)
{
	(void)a;
	asked++;
	for (size_t i = 0; i < n; i++)
		ban[i].changed = changed;
	return changed ? 0 : policy_fail(why, 0, "there is none");
}

struct fleet_sets fleet_sets_of(const struct policy *policy)
{
	(void)policy;
	return sets;
}

uint32_t fleet_sets_serial(const struct attached *a, const struct fleet_sets *of, size_t i)
{
	(void)a;
	(void)of;
	(void)i;
	return serial;
}

bool file_lock_given_up(void)
{
	return held;
}

/* As nothing is here that the agent has not put in, each look is as the last one. */
int fleet_sets_each(const struct attached *a, struct fleet_sets *sets, size_t i,
		    void (*each)(const struct fleet_element *element, void *arg), void *arg)
{
	(void)a;
	asked++;
	if (held)
		return -1;
	sets->set[i].serial = serial;
	if (lies_here && !i)
		each(lies_here, arg);
	return !lies_here && !is_empty;
}

bool fleet_sets_read(const struct fleet_sets *sets, const char *text, size_t *set,
		     struct set_entry *entry)
{
	struct prefix prefix;

	(void)sets;
	*set = strncmp(text, "drop/", 5) != 0;
	assert_int_equal(units_prefix(strchr(text, '/') + 1, &prefix), 0);
	*entry = set_entry_of(&prefix, 1, 0);
	return true;
}

void fleet_elements_free(struct fleet_elements *elements)
{
	set_list_free(&elements->del);
	set_hand_free(&elements->put);
	set_hand_free(&elements->add);
	memset(elements, 0, sizeof(*elements));
}

int fleet_sets_set(struct attached *a, const struct fleet_sets *sets, size_t i,
		   struct fleet_elements *elements, struct policy_error *why)
{
	(void)a;
	(void)sets;
	assert_int_equal(i, 0); /* the other has nothing to take */
	asked++;
	added = (uint32_t)(elements->add.n + elements->put.n);
	lifted = (uint32_t)elements->del.n;
	fleet_elements_free(elements);
	if (changed)
		return FLEET_SETS_CHANGED;
	return fails ? policy_fail(why, 0, "eth0: set drop: no room") : 0;
}

static uint64_t no_term(const struct store *s)
{
	(void)s;
	return 0;
}

static const struct store_kind no_store = {.term = no_term};

static int begin(void **unused)
{
	(void)unused;
	now_ns = 100 * S;
	items = (struct fleet_items){.any = true, .sets = {.n = 2}, .exchange.kind = &no_store};
	strcpy(items.sets.set[0].name, "drop");
	strcpy(items.sets.set[1].name, "other");
	items.exchange.items.whole = true;
	memset(&error, 0, sizeof(error));
	added = lifted = 0;
	fails = bans_read = changed = false;
	bans = (struct fleet_bans){.n = 0};
	sets = (struct fleet_sets){.n = 0};
	lies_here = NULL;
	is_empty = held = false;
	serial = asked = in_force = 0;
	banned_ns = pending_ns = 0;
	return 0;
}

static int end(void **unused)
{
	(void)unused;
	fleet_items_free(&items);
	return 0;
}

static void other_says(uint32_t i, uint64_t revision, uint64_t left_ns)
{
	char key[64];

	snprintf(key, sizeof(key), "set/drop/192.0.2.%u/32", i);
	shared_there(&items.exchange.items, key, &(struct shared_word){.left_ns = left_ns},
		     revision, now_ns);
}

static bool step(void)
{
	return fleet_items_step(&items, &pacer, "guard", 0, &error);
}

/* Another policy is in force. */
static void follow(void)
{
	fleet_items_begin(&items, &pacer, NULL, in_force, copies[in_force].policy.serial);
}

static uint32_t to_take(void)
{
	uint32_t n = 0;

	for (size_t i = 0; shared_take(&items.exchange.items, &i);)
		n++;
	return n;
}

static void test_what_is_said_is_put_in(void **unused)
{
	(void)unused;
	for (uint32_t i = 0; i < MANY; i++)
		other_says(i, 10 + i, 60 * S);
	assert_true(step());
	assert_true(added == MANY && lifted == 0);
	assert_int_equal(control.fleet_items.taken, MANY);
	for (uint32_t i = 0; i < 3; i++)
		other_says(i, 100 + i, 0);
	assert_true(step());
	assert_true(added == 0 && lifted == 3);
}

/* For once, at each allocation: all of it, or none. */
static void test_all_or_none(void **unused)
{
	uint32_t n, failed = 0;

	for (n = 1;; n++) {
		bool well;

		begin(unused);
		for (uint32_t i = 0; i < MANY; i++)
			other_says(i, 10 + i, i % 2 ? 60 * S : SHARED_NEVER);
		starved_from(n, false);
		memory.on = true;
		well = step();
		memory.on = false;
		if (well && memory.n < n) {
			end(unused);
			break;
		}
		assert_false(well);
		assert_string_equal(error.text, "eth0: no memory for what others put in set drop");
		assert_true(added == 0 && to_take() == MANY);
		assert_int_equal(items.exchange.items.count.taken, 0);
		failed++;
		assert_true(step());
		assert_true(added == MANY && to_take() == 0);
		end(unused);
	}
	assert_true(failed >= 2); /* it grows */
}

/*
 * A set that has no room for them is asked again, but not at each step, since each costs as much as
 * the set: what is left out is counted once, and said; nothing is told as lifted meanwhile.
 */
static void test_no_room(void **unused)
{
	(void)unused;
	other_says(1, 10, 60 * S);
	fails = true;
	for (int i = 0; i < 3; i++) {
		added = 0;
		assert_false(step());
		assert_string_equal(error.text, "eth0: set drop: no room");
		assert_int_equal(added, 1);
		added = 0;
		now_ns += 2 * S;
		assert_true(step()); /* not yet */
		assert_int_equal(added, 0);
		now_ns += 4 * S;
		assert_int_equal(control.fleet_items.left_out, 1);
		assert_int_equal(to_take(), 1);
	}
	fails = false;
	other_says(2, 11, 60 * S);
	assert_true(step());
	assert_int_equal(added, 2);
	assert_int_equal(to_take(), 0);
	assert_int_equal(control.fleet_items.taken, 2);
	assert_int_equal(control.fleet_items.left_out, 1);
}

/* An element that another host lifted stays to be lifted here. */
static void test_not_lifted(void **unused)
{
	(void)unused;
	other_says(1, 10, 60 * S);
	assert_true(step());
	other_says(1, 11, 0);
	fails = true;
	assert_false(step());
	now_ns += 6 * S;
	fails = false;
	lifted = 0;
	assert_true(step());
	assert_int_equal(lifted, 1);
	assert_int_equal(to_take(), 0);
}

/* Bans that could not be put in stay to be taken. */
static void test_bans_that_fail(void **unused)
{
	(void)unused;
	bans_read = true;
	shared_there(&items.exchange.items, "ban/someone", &(struct shared_word){.left_ns = 60 * S},
		     10, now_ns);
	assert_false(step());
	assert_string_equal(error.text, "there is none");
	assert_int_equal(to_take(), 1);
	assert_int_equal(control.fleet_items.taken, 0);
}

/* A value that no other host could read is not told, and is counted. */
static void test_a_value_that_does_not_fit(void **unused)
{
	char value[] = "1234567890123456789012345678901234567890123456789012345678901234";
	const struct fleet_element element = {"drop/192.0.2.0/24", value, SHARED_NEVER, false};

	(void)unused;
	lies_here = &element;
	for (int looks = 0; looks < 5; looks++) { /* the set may be read anew, or be as it was */
		assert_true(step());
		assert_int_equal(items.exchange.items.n, 0);
		assert_int_equal(control.fleet_items.left_out, 1);
		lies_here = looks % 2 ? &element : NULL;
		now_ns += S;
	}
	lies_here = &element;
	value[63] = 0;
	now_ns += 6 * S;
	assert_true(step());
	assert_int_equal(items.exchange.items.n, 1);
	assert_string_equal(items.exchange.items.at[0].here.text, value);
}

/* It is looked at once more at once, and not counted as taken. */
static void test_what_was_changed_since_the_look(void **unused)
{
	struct shared *s = &items.exchange.items;

	(void)unused;
	for (int ban = 0; ban < 2; ban++) {
		begin(NULL);
		assert_true(step());
		changed = bans_read = true;
		if (ban)
			shared_there(s, "ban/someone", &(struct shared_word){.left_ns = 9 * S}, 5,
				     now_ns);
		else
			other_says(1, 5, 9 * S);
		asked = 0;
		assert_true(step());
		assert_int_equal(asked, 1); /* to change it */
		assert_int_equal(s->at[0].todo, SHARED_TAKE);
		assert_int_equal(s->count.taken + s->count.left_out, 0);
		assert_true(now_ns - items.looked_ns >= 200000000ull);
		assert_true(step());
		assert_int_equal(asked, 4); /* at both sets, and to change it again */
		fleet_items_free(&items);
	}
}

/* What its look found may be of a policy that came meanwhile: the store is not asked (no_store). */
static void test_a_policy_that_is_not_followed_yet(void **unused)
{
	(void)unused;
	assert_true(step());
	items.looked[0] = items.looked[1] = items.bans_looked = true;
	items.exchange.stale = true;
	in_force = items.copy ^ 1;
	now_ns += S;
	assert_true(step());
	assert_false(items.unlooked);
}

/* What a trial brought is not told: while it is on trial, and as it gives way. */
static void test_on_trial(void **unused)
{
	(void)unused;
	for (int i = 0; i < 4; i++) {
		now_ns += S;
		pending_ns = i & 1 ? 5 * S : 0;
		in_force = items.copy ^ (i >> 1);
		fleet_items_look(&items, &pacer);
		assert_int_equal(items.exchange.items.on_trial, i != 0);
	}
}

/* Bans of some rule, of sources or sets: without any of them nothing is asked of the store. */
static void test_what_a_policy_shares(void **unused)
{
	(void)unused;
	for (int i = 0; i < 4; i++) {
		bans = (struct fleet_bans){.n = i == 1, .sources = i == 2};
		sets = (struct fleet_sets){.n = i == 3};
		follow();
		assert_int_equal(items.any, i != 0);
		assert_int_equal(control.fleet_items.begun_ns, i ? now_ns : 0);
	}
}

static bool stays(const struct shared_item *item)
{
	return items.exchange.stays(item, items.exchange.arg);
}

/* Bans lie on through a change, unless it begins another table, which lacks them. */
static void test_bans_of_another_table(void **unused)
{
	(void)unused;
	for (uint32_t i = 0; i < 8; i++) { /* the last: there was another between two looks */
		copies[0].policy.bans =
		    (struct pacer_bans){.base = 64 * (i >= 2), .sets = i >= 4, .begun = i >= 6};
		follow();
		assert_int_equal(stays(&(struct shared_item){.key = "ban/someone"}), !i || i % 2);
	}
	memset(copies, 0, sizeof(copies));
}

/*
 * A set that lies on as it was has all that it had; of one that was replaced by hand meanwhile,
 * what is missing was lifted. Of one that is read anew, that had values, or was not shared, nothing
 * is known.
 */
static void test_elements_of_a_set_that_is_read_anew(void **unused)
{
	static const struct {
		uint32_t before, serial;
		const char *name;
		bool values, stays;
	} rows[] = {
	    {0x700, 0x700, "drop", false, true},  {0x700, 0x701, "drop", false, true},
	    {0x70e, 0x701, "drop", false, true},  {0x700, 0x800, "drop", false, false},
	    {0x70f, 0x710, "drop", false, false}, {0, 0, "drop", false, false},
	    {0x700, 0, "drop", false, false},	  {0x700, 0x700, "drop", true, false},
	    {0x700, 0x700, "good", false, false},
	};
	const struct shared_item item = {.key = "set/drop/192.0.2.0/24", .here_ns = 900 * S};

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		sets = (struct fleet_sets){.n = 1};
		strcpy(sets.set[0].name, rows[i].name);
		follow();
		items.sets.set[0].serial = rows[i].before;
		items.looked[0] = true;
		strcpy(sets.set[0].name, "drop");
		sets.set[0].values = rows[i].values;
		serial = rows[i].serial;
		follow();
		assert_int_equal(stays(&item), rows[i].stays);
		assert_int_equal(items.looked[0], rows[i].stays);
		assert_int_equal(items.sets.set[0].serial, rows[i].stays ? serial : 0);
	}
}

/* One element lies in the set, and 50 of others' files and a ban are known; all are here. */
static void begin_with_others(void)
{
	static const struct fleet_element own = {"drop/198.51.100.0/24", NULL, SHARED_NEVER, false};
	struct shared *s = &items.exchange.items;

	sets = (struct fleet_sets){.n = 1};
	strcpy(sets.set[0].name, "drop");
	bans = (struct fleet_bans){.sources = true};
	bans_read = true;
	serial = 0x700;
	copies[0].policy.serial = 1;
	follow();
	items.store_ns = UINT64_MAX;
	lies_here = &own;
	assert_true(step());
	for (uint32_t i = 0; i < 50; i++)
		other_says(i, 10 + i, SHARED_NEVER);
	shared_there(s, "ban/someone", &(struct shared_word){.left_ns = SHARED_NEVER}, 90, now_ns);
	for (size_t i = 0; i < s->n; i++) {
		s->at[i].here_ns = SHARED_NEVER;
		s->at[i].todo = SHARED_NOTHING;
	}
}

static uint32_t n_lifted(void)
{
	const struct shared *s = &items.exchange.items;
	uint32_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += s->at[i].todo == SHARED_TELL && !s->at[i].here_ns;
	return n;
}

/*
 * A policy comes while the tables are looked at, or before: its set is that of its file alone, and
 * its table of bans is empty. Nothing was lifted by that, and the set is read anew.
 */
static void test_a_policy_that_comes_meanwhile(void **unused)
{
	const struct shared_item item = {.key = "set/drop/192.0.2.0/32", .here_ns = SHARED_NEVER};

	(void)unused;
	for (int late = 0; late < 2; late++) {
		begin(NULL);
		begin_with_others();
		now_ns += late ? 2 * S : S / 5;
		serial = 0x800;
		copies[0].policy.serial = 2;
		fleet_items_look(&items, &pacer);
		assert_int_equal(n_lifted(), 0);
		follow();
		assert_false(stays(&item));
		now_ns += 2 * S;
		fleet_items_look(&items, &pacer);
		assert_int_equal(n_lifted(), 1); /* the ban, of the same table */
		fleet_items_free(&items);
		memset(copies, 0, sizeof(copies));
	}
}

/* So does one that gives way. */
static void test_a_policy_that_gives_way_meanwhile(void **unused)
{
	(void)unused;
	begin_with_others();
	copies[1].policy.serial = 1;
	in_force = 1;
	now_ns += 2 * S;
	fleet_items_look(&items, &pacer);
	assert_int_equal(n_lifted(), 0);
	in_force = 0;
	now_ns += 2 * S;
	fleet_items_look(&items, &pacer);
	assert_int_equal(n_lifted(), 51);
	memset(copies, 0, sizeof(copies));
}

/* What two looks miss was lifted: two are made at once where the store was waited for. */
static void test_what_is_lifted_while_the_store_is_waited_for(void **unused)
{
	const struct fleet_element element = {"drop/192.0.2.0/24", NULL, SHARED_NEVER, true};
	struct shared *s = &items.exchange.items;

	(void)unused;
	for (int late = 0; late < 2; late++) {
		begin(NULL);
		shared_there(s, "set/drop/192.0.2.0/24",
			     &(struct shared_word){.left_ns = SHARED_NEVER}, 10, now_ns);
		s->at[0].todo = SHARED_NOTHING;
		items.looked[0] = true;
		items.looked_ns = now_ns - S / 5;
		lies_here = &element;
		fleet_items_look(&items, &pacer);
		assert_true(s->at[0].here_ns == SHARED_NEVER);
		lies_here = NULL;
		is_empty = true;
		now_ns += S / 5 - 1;
		fleet_items_look(&items, &pacer); /* it is not due yet */
		assert_int_equal(s->at[0].missed, 0);
		now_ns += late ? 2 * S : 1;
		fleet_items_look(&items, &pacer);
		assert_int_equal(s->at[0].missed, !late);
		assert_int_equal(s->at[0].todo == SHARED_TELL, late);
		fleet_items_free(&items);
	}
}

/*
 * While a tool has the lock, a set that another policy brought cannot be looked at: nothing is
 * asked of the store until it was. Nor is it if yet another policy came. Of a set that was looked
 * at before, all goes on.
 */
static void test_a_policy_while_a_tool_has_the_lock(void **unused)
{
	(void)unused;
	sets = (struct fleet_sets){.n = 1};
	strcpy(sets.set[0].name, "drop");
	is_empty = held = true;
	serial = 0x100;
	follow();
	items.store_ns = now_ns;
	for (int k = 0; k < 3; k++) {
		assert_true(step());
		assert_true(items.unlooked);
		assert_true(items.store_ns <= 100 * S);
		now_ns += S / 10;
	}
	held = false;
	copies[0].policy.serial = 9;
	now_ns += S;
	assert_true(step());
	assert_true(items.unlooked);
	copies[0].policy.serial = 0;
	items.exchange.stale = false;
	now_ns += S;
	assert_true(step());
	assert_true(!items.unlooked && items.looked[0] && items.bans_looked);
	held = true;
	now_ns += S;
	assert_true(step());
	assert_false(items.unlooked);
}

/* While a tool has the lock nothing is taken or missed, and no more is asked for in this turn. */
static void test_a_tool_has_the_lock(void **unused)
{
	(void)unused;
	bans_read = held = true;
	other_says(1, 10, 60 * S);
	shared_there(&items.exchange.items, "ban/someone", &(struct shared_word){.left_ns = 60 * S},
		     10, now_ns);
	assert_true(step());
	assert_int_equal(asked, 1);
	assert_true(step()); /* bans are to be put in, and no set is */
	assert_int_equal(asked, 2);
	assert_int_equal(to_take(), 2);
	assert_int_equal(control.fleet_items.left_out, 0);
	bans_read = false;
	items.exchange.items.at[1].todo = SHARED_NOTHING;
	fails = true;
	assert_true(step()); /* nor is a set put off */
	assert_int_equal(asked, 3);
	assert_int_equal(items.again_ns[0], 0);
	held = fails = false;
	assert_true(step());
	assert_int_equal(to_take(), 0);
	assert_int_equal(added, 1);
}

/*
 * The store has forgotten what it had. By what was known of its words nothing could be told, nor
 * read; what is here would be taken for lifted.
 */
static void test_a_store_that_has_forgotten(void **unused)
{
	const struct fleet_element element = {"drop/192.0.2.0/24", NULL, SHARED_NEVER, false};
	struct shared *s = &items.exchange.items;

	(void)unused;
	bans = (struct fleet_bans){.n = 1};
	follow();
	items.sets = (struct fleet_sets){.n = 1};
	strcpy(items.sets.set[0].name, "drop");
	s->whole = bans_read = true;
	other_says(1, 50, SHARED_NEVER);
	shared_there(s, "ban/gone", &(struct shared_word){.left_ns = SHARED_NEVER}, 50, now_ns);
	assert_int_equal(s->n, 2);
	s->count = (struct shared_counts){.told = 7, .taken = 5, .late = 3, .left_out = 2};
	items.exchange.revision = 50;
	items.sets.set[0].looks = 2;
	items.looked[0] = true;
	items.looked_ns = now_ns;
	fleet_items_anew(&items);
	assert_int_equal(items.sets.set[0].looks, 0); /* each element is told anew, */
	assert_false(items.looked[0]);		      /* as of before */
	assert_int_equal(s->n, 0);
	assert_false(s->whole);
	assert_int_equal(items.exchange.revision, 0);
	assert_true(items.exchange.stale && items.exchange.away);
	assert_int_equal(s->count.told + s->count.taken + s->count.late + s->count.left_out, 17);
	lies_here = &element;
	items.store_ns = UINT64_MAX;
	assert_true(step()); /* before the store is asked */
	assert_int_equal(s->n, 1);
	assert_int_equal(s->at[0].revision, 0);
	assert_int_equal(s->at[0].todo, SHARED_TELL);
}

/*
 * What lies in a set when a policy comes is of its file, or was there before, if it is beside the
 * set; what the next looks find was made since. A set that cannot be read has not been looked at.
 */
static void test_what_a_policy_finds(void **unused)
{
	struct fleet_element element = {"drop/192.0.2.0/24", NULL, SHARED_NEVER, false};
	struct shared *s = &items.exchange.items;

	(void)unused;
	for (int i = 0; i < 3; i++) {
		sets = (struct fleet_sets){.n = 1};
		strcpy(sets.set[0].name, "drop");
		follow();
		items.store_ns = UINT64_MAX;
		lies_here = NULL;
		assert_true(step());
		s->known = 50;
		s->heard = 40;
		element.by_hand = i;
		lies_here = &element;
		for (int looks = 0; looks < 1 + (i == 2); looks++) {
			element.until_ns = SHARED_NEVER - (uint64_t)looks;
			now_ns += S;
			assert_true(step());
		}
		assert_int_equal(s->n, 1);
		assert_int_equal(s->at[0].since, !i ? 0 : i == 1 ? 40 : 50);
		assert_int_equal(s->at[0].begun, i < 2);
	}
}

/*
 * A ban that is found as another table comes was there before: it is as old as what was heard of
 * the store by then. What the next looks find was made since. The same table is none.
 */
static void test_what_a_table_of_bans_finds(void **unused)
{
	struct shared *s = &items.exchange.items;

	(void)unused;
	bans = (struct fleet_bans){.sources = true};
	follow();
	for (uint32_t table = 1; table < 5; table++) {
		copies[0].policy.bans.begun = table / 2;
		copies[0].policy.serial = table;
		s->known = s->heard = 20 * table;
		follow();
		items.store_ns = UINT64_MAX;
		s->known = 20 * table + 10;
		for (int look = 0; look < 2; look++) {
			bool first = !look && (table == 1 || !(table % 2));

			now_ns += S;
			banned_ns = now_ns + 100 * S;
			fleet_items_look(&items, &pacer);
			assert_int_equal(s->n, 1);
			assert_int_equal(s->at[0].since, 20 * table + (first ? 0 : 10));
			/* It may be of before; later ones are known to be made since, if untold. */
			assert_int_equal(s->at[0].begun, first && table == 1);
		}
	}
	memset(copies, 0, sizeof(copies));
}

/* Of what it shares as well, words were read and passed over: none of them counts as read. */
static void test_a_policy_that_shares_more(void **unused)
{
	static const struct {
		struct fleet_bans bans;
		const char *set;
		bool values, more;
	} rows[] = {
	    {{.n = 1, .rule = {7}}, "drop", false, false},
	    {{.n = 0}, "drop", false, false},
	    {{.n = 1, .rule = {8}}, "drop", false, true},
	    {{.n = 1, .rule = {7}, .sources = true}, "drop", false, true},
	    {{.n = 1, .rule = {7}}, "good", false, true},
	    {{.n = 1, .rule = {7}}, "drop", true, true}, /* words without a value */
	};
	struct shared *s = &items.exchange.items;

	(void)unused;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		bans = rows[0].bans;
		sets = (struct fleet_sets){.n = 1};
		strcpy(sets.set[0].name, rows[0].set);
		follow();
		s->known = s->heard = 50;
		bans = rows[i].bans;
		strcpy(sets.set[0].name, rows[i].set);
		sets.set[0].values = rows[i].values;
		follow();
		assert_int_equal(s->known, rows[i].more ? 0 : 50);
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_what_is_said_is_put_in),
	    CASE(test_elements_of_a_set_that_is_read_anew),
	    CASE(test_a_policy_that_comes_meanwhile),
	    CASE(test_a_policy_that_gives_way_meanwhile),
	    CASE(test_what_is_lifted_while_the_store_is_waited_for),
	    CASE(test_a_tool_has_the_lock),
	    CASE(test_a_policy_while_a_tool_has_the_lock),
	    CASE(test_all_or_none),
	    CASE(test_no_room),
	    CASE(test_not_lifted),
	    CASE(test_bans_that_fail),
	    CASE(test_a_value_that_does_not_fit),
	    CASE(test_what_was_changed_since_the_look),
	    CASE(test_on_trial),
	    CASE(test_a_policy_that_is_not_followed_yet),
	    CASE(test_what_a_policy_shares),
	    CASE(test_bans_of_another_table),
	    CASE(test_a_store_that_has_forgotten),
	    CASE(test_what_a_policy_finds),
	    CASE(test_what_a_table_of_bans_finds),
	    CASE(test_a_policy_that_shares_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
