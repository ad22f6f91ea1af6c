/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/fleet_sets.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "live/copies.h"
#include "live/host.h"
#include "live/sets.h"
#include "live/sets_maps.h"

struct fleet_sets fleet_sets_of(const struct policy *policy)
{
	struct fleet_sets sets = {.n = 0};

	for (size_t i = 0; i < policy->n_sets; i++)
		if (policy->set[i].fleet) {
			memcpy(sets.set[sets.n].name, policy->set[i].name, POLICY_NAME_MAX);
			sets.set[sets.n].values = policy->set[i].value != 0;
			sets.set[sets.n++].number = (uint32_t)i;
		}
	return sets;
}

bool fleet_sets_read(const struct fleet_sets *sets, const char *text, size_t *set,
		     struct set_entry *entry)
{
	const char *slash = strchr(text, '/');
	char again[64];
	struct prefix prefix;

	for (*set = 0; slash && *set < sets->n; ++*set)
		if (!strncmp(sets->set[*set].name, text, slash - text) &&
		    !sets->set[*set].name[slash - text])
			break;
	if (!slash || *set == sets->n || units_prefix(slash + 1, &prefix) ||
	    strcmp(units_prefix_text(&prefix, again, sizeof(again)), slash + 1) != 0)
		return false;
	*entry = set_entry_of(&prefix, 1, 0);
	return true;
}

/* --- what there is -----------------------------------------------------------------------------
 */

/* The id of the map at a place; 0: there is none. */
static uint32_t id_at(const struct attached *a, uint32_t place)
{
	uint32_t id = 0;

	return bpf_map_lookup_elem(a->sets_fd, &place, &id) ? 0 : id;
}

/* Of what lies there, in the set and beside it. */
static void read_ids(const struct attached *a, const struct fleet_sets *sets, size_t i,
		     uint32_t id[2])
{
	uint32_t copy = copies_in_force(a), number = sets->set[i].number;

	id[0] = id_at(a, sets_maps_place(copy, number));
	id[1] = id_at(a, sets_maps_hand_place(copy, number));
}

uint32_t fleet_sets_serial(const struct attached *a, const struct fleet_sets *sets, size_t i)
{
	uint32_t place = sets_maps_place(copies_in_force(a), sets->set[i].number);
	struct pacer_set_head head;

	return set_maps_head(a->sets_fd, place, &head) ? 0 : head.serial;
}

struct telling {
	const char *name;
	void (*each)(const struct fleet_element *element, void *arg);
	void *arg;
};

static void tell(const struct telling *t, const struct set_entry *entry, const char *value,
		 uint64_t until_ns, bool by_hand)
{
	struct prefix prefix = set_entry_prefix(entry);
	char text[FLEET_ELEMENT_TEXT], of[64];
	const struct fleet_element element = {text, value, until_ns, by_hand};

	snprintf(text, sizeof(text), "%s/%s", t->name, units_prefix_text(&prefix, of, sizeof(of)));
	t->each(&element, t->arg);
}

/* What is in the set itself stays, so its end is none. */
static void tell_plain(const struct telling *t, const struct set_list *list,
		       const struct set_hand *hand)
{
	for (size_t i = 0; i < list->n; i++)
		tell(t, &list->entry[i], NULL, PACER_NEVER, false);
	for (size_t i = 0; i < hand->n; i++)
		if (!set_list_find(list, &hand->entry[i].e))
			tell(t, &hand->entry[i].e, NULL, hand->entry[i].until_ns, true);
}

/* What is beside the set counts before it. */
static void tell_values(const struct telling *t, const struct set_list *list,
			const struct set_names *names, const struct set_hand *hand)
{
	for (size_t i = 0; i < hand->n; i++) {
		const char *value = set_hand_value(hand, &hand->entry[i]);

		tell(t, &hand->entry[i].e, value ? value : "", hand->entry[i].until_ns, true);
	}
	for (size_t i = 0; i < list->n; i++) {
		uint16_t value = list->entry[i].value;

		if (value && value <= names->n && !set_hand_find(hand, &list->entry[i]))
			tell(t, &list->entry[i], names->name[value - 1], PACER_NEVER, false);
	}
}

int fleet_sets_each(const struct attached *a, struct fleet_sets *sets, size_t i,
		    void (*each)(const struct fleet_element *element, void *arg), void *arg)
{
	const struct telling t = {sets->set[i].name, each, arg};
	struct policy_error unused;
	struct set_names names;
	struct set_hand hand;
	struct set_list list;
	uint32_t id[2];

	read_ids(a, sets, i, id);
	if (memcmp(id, sets->set[i].seen, sizeof(id)) != 0 ||
	    host_now_ns() >= sets->set[i].again_ns)
		sets->set[i].looks = 0;
	if (sets->set[i].looks >= 2)
		return 1;
	if (sets_take_named(a, sets->set[i].name, &list, &names, &hand, &unused))
		return -1;
	sets->set[i].again_ns = PACER_NEVER;
	for (size_t k = 0; k < hand.n; k++)
		if (hand.entry[k].until_ns < sets->set[i].again_ns)
			sets->set[i].again_ns = hand.entry[k].until_ns;
	if (sets->set[i].values)
		tell_values(&t, &list, &names, &hand);
	else
		tell_plain(&t, &list, &hand);
	set_list_free(&list);
	set_names_free(&names);
	set_hand_free(&hand);
	memcpy(sets->set[i].seen, id, sizeof(id));
	sets->set[i].serial = fleet_sets_serial(a, sets, i);
	sets->set[i].looks++;
	return 0;
}

/* --- changes -----------------------------------------------------------------------------------
 */

void fleet_elements_free(struct fleet_elements *elements)
{
	set_list_free(&elements->del);
	set_hand_free(&elements->put);
	set_hand_free(&elements->add);
	memset(elements, 0, sizeof(*elements));
}

int fleet_sets_set(struct attached *a, const struct fleet_sets *sets, size_t i,
		   struct fleet_elements *elements, struct policy_error *error)
{
	struct set_entry one, other;
	enum sets_shadow shadow;
	struct sets_done done;
	uint32_t id[2];
	int result = 0;

	read_ids(a, sets, i, id);
	if (memcmp(id, sets->set[i].seen, sizeof(id)) != 0) {
		fleet_elements_free(elements);
		return FLEET_SETS_CHANGED;
	}
	if (elements->del.n && set_list_sort(&elements->del, &one, &other))
		result = policy_fail(error, 0, "%s: no memory", a->ifname);
	if (!result && elements->del.n)
		result = sets_del(a, sets->set[i].name, &elements->del, &done, &shadow, error);
	if (!result && elements->put.n)
		result = sets_put(a, sets->set[i].name, &elements->put, &shadow, error);
	if (!result && elements->add.n)
		result = sets_add(a, sets->set[i].name, &elements->add, &shadow, error);
	fleet_elements_free(elements);
	return result;
}
