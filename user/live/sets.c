/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/sets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "live/copies.h"
#include "live/host.h"
#include "live/in_shadow.h"
#include "live/sets_maps.h"
#include "sets/texts.h"

static int failed(const struct attached *a, const char *name, struct policy_error *error)
{
	return policy_fail(error, 0, "%s: set %s cannot be written: %s", a->ifname, name,
			   sets_maps_why());
}

static int unreadable(const struct attached *a, const char *name, struct policy_error *error)
{
	return policy_fail(error, 0, "%s: set %s cannot be read: %s", a->ifname, name,
			   sets_maps_why());
}

/* --- which set ------------------------------------------------------------------------------ */

enum { NO_SET = -1, UNREAD = -2 };

/* Its text was read when it was put there, so that only memory may be lacking. */
static struct policy *policy_of(const struct attached *a, uint32_t copy, struct policy_error *error)
{
	struct policy_error why = {0};
	struct policy *policy = copies_policy(a, copy, &why);

	if (!policy)
		policy_explain(error, 0, "%s: its policy cannot be read: %.300s", a->ifname,
			       why.text);
	return policy;
}

/* The number of the copy's set of that name; else NO_SET or UNREAD, and *error is filled. */
static int number_of(const struct attached *a, uint32_t copy, const char *name,
		     struct policy_error *error)
{
	struct policy *policy = policy_of(a, copy, error);
	struct policy_nearest nearest = {.wrong = name};
	int found = NO_SET;

	if (!policy)
		return UNREAD;
	for (size_t i = 0; i < policy->n_sets; i++) {
		policy_nearest(&nearest, policy->set[i].name);
		if (!strcmp(policy->set[i].name, name))
			found = (int)i;
	}
	if (found < 0)
		policy_explain(
		    error, 0, "%s: its policy has no set %s%s%s%s: see `xdp-pacer sets %s list`",
		    a->ifname, name, nearest.name ? " (did you mean " : "",
		    nearest.name ? nearest.name : "", nearest.name ? "?)" : "", a->ifname);
	policy_free(policy);
	return found;
}

/* Has the copy's set of that name values? 1, 0, or -1. */
static int has_values(const struct attached *a, uint32_t copy, const char *name,
		      struct policy_error *error)
{
	struct policy *policy = policy_of(a, copy, error);
	int has = policy ? 0 : -1;

	for (size_t i = 0; policy && i < policy->n_sets; i++)
		if (!strcmp(policy->set[i].name, name) && policy->set[i].value)
			has = 1;
	policy_free(policy);
	return has;
}

/* The copies to change that have the set, in their order. */
struct where {
	uint32_t n, copy[2], number[2];
	bool trial; /* of two policies, though one may not have the set */
};

static int find_set(const struct attached *a, const char *name, struct where *where,
		    struct policy_error *error)
{
	uint32_t copy[2], n = copies_to_change(a, copy);

	*where = (struct where){.trial = n > 1};
	for (uint32_t i = 0; i < n; i++) {
		int number = number_of(a, copy[i], name, error);

		if (number == UNREAD) /* it may have the set */
			return -1;
		if (number < 0)
			continue;
		where->copy[where->n] = copy[i];
		where->number[where->n++] = (uint32_t)number;
	}
	return where->n ? 0 : -1;
}

/* --- what is put where ---------------------------------------------------------------------- */

/* All maps are made before one is put in its place; only that can be undone. */
struct move {
	uint32_t place;
	int fd, was; /* -1: none */
};

/* For each of two copies: a set, what is beside it, and that taken out. */
#define MOVES_MAX 6

struct moves {
	struct move at[MOVES_MAX];
	uint32_t n;
};

/* Takes the descriptor. */
static void plan_move(struct moves *m, uint32_t place, int fd)
{
	m->at[m->n++] = (struct move){place, fd, -1};
}

static void close_all(struct moves *m)
{
	for (uint32_t i = 0; i < m->n; i++) {
		if (m->at[i].fd >= 0)
			close(m->at[i].fd);
		if (m->at[i].was >= 0)
			close(m->at[i].was);
	}
	m->n = 0;
}

/* All that is put somewhere, in one step; then places are left empty in which nothing counts. */
static int put(const struct attached *a, const struct moves *m)
{
	uint32_t place[MOVES_MAX], n = 0;
	int fd[MOVES_MAX];

	for (uint32_t i = 0; i < m->n; i++)
		if (m->at[i].fd >= 0) {
			place[n] = m->at[i].place;
			fd[n++] = m->at[i].fd;
		}
	if (set_maps_move_all(a->sets_fd, place, fd, n))
		return -1;
	for (uint32_t i = 0; i < m->n; i++)
		if (m->at[i].fd < 0 && set_maps_move(a->sets_fd, m->at[i].place, -1))
			return -1;
	return 0;
}

/* If it fails, all are put back. */
static int carry_out(const struct attached *a, struct moves *m)
{
	int cause;

	for (uint32_t i = 0; i < m->n; i++) {
		m->at[i].was = set_maps_at(a->sets_fd, m->at[i].place);
		if (m->at[i].was < 0 && errno != ENOENT)
			return -1;
	}
	if (!put(a, m))
		return 0;
	cause = errno;
	for (uint32_t i = m->n; i-- > 0;)
		(void)set_maps_move(a->sets_fd, m->at[i].place, m->at[i].was);
	errno = cause;
	return -1;
}

/* A change: `plan` makes the maps of one copy. */
struct change {
	const char *name;
	const struct set_hand *add;
	const struct set_list *del;
	const struct set_hand *put; /* of the prefixes of del */
	const struct set_list *all;
	struct sets_done *done; /* NULL: nothing is counted */
	uint64_t policy_serial;
	bool *in;	 /* a flag for each of del: some copy had it */
	bool *in_shadow; /* ... of the shadow */
};

typedef int plan_function(const struct attached *a, const struct where *where, uint32_t i,
			  const struct change *c, struct moves *m);

/*
 * The numbers of values are a policy's own, and during a trial one file is for two of them. 0, or
 * -1 with *error filled.
 */
static int check_values(const struct attached *a, const char *name, const struct where *where,
			struct policy_error *error)
{
	for (uint32_t i = 0; i < where->n && where->trial; i++) {
		int has = has_values(a, where->copy[i], name, error);

		if (has > 0)
			return policy_fail(
			    error, 0,
			    "%s: set %s has values, and a policy waits to be confirmed: "
			    "`xdp-pacer confirm` it, or let it roll back, first",
			    a->ifname, name);
		if (has)
			return -1;
	}
	return 0;
}

/* The first of many that was given with a value. */
static const char *first_valued(const struct set_hand *given, char *text, size_t size)
{
	for (size_t i = 0; given && i < given->n; i++) {
		struct prefix prefix = set_entry_prefix(&given->entry[i].e);

		if (set_hand_value(given, &given->entry[i]))
			return units_prefix_text(&prefix, text, size);
	}
	return "all";
}

/* A value was given, and a copy's set has none: that of one policy of two alone may have some. */
static int no_values(const struct attached *a, const struct change *c, const struct where *where,
		     struct policy_error *error)
{
	int result = check_values(a, c->name, where, error);
	char text[64];

	return result ? result
		      : policy_fail(error, 0,
				    "%s: set %s has no values: leave that of %s out, or add "
				    "value: to the set in the policy and apply that",
				    a->ifname, c->name,
				    first_valued(c->add ? c->add : c->put, text, sizeof(text)));
}

static int change_set(struct attached *a, plan_function *plan, const struct change *c,
		      struct policy_error *error)
{
	struct where where;
	struct moves moves = {.n = 0};
	int result = find_set(a, c->name, &where, error);

	if (!result && c->all)
		result = check_values(a, c->name, &where, error);
	for (uint32_t i = 0; i < where.n && !result; i++)
		if (plan(a, &where, i, c, &moves))
			result = errno == ENODATA ? no_values(a, c, &where, error)
						  : failed(a, c->name, error);
	if (!result && carry_out(a, &moves))
		result = failed(a, c->name, error);
	close_all(&moves);
	return result;
}

/* --- of a shadow, too ----------------------------------------------------------------------- */

/*
 * Is the change one of the shadow's set, too? 1, 0, or -1. The numbers of values are a policy's
 * own, so that a set that has some is not replaced.
 */
static int concerns_shadow(const struct attached *a, const struct attached *shadow,
			   const struct change *c, struct policy_error *error)
{
	int number = number_of(shadow, copies_in_force(shadow), c->name, error), valued = 0;

	if (number < 0)
		return number == NO_SET ? 0 : -1;
	if (c->all)
		valued = has_values(a, copies_in_force(a), c->name, error);
	if (c->all && !valued)
		valued = has_values(shadow, copies_in_force(shadow), c->name, error);
	return valued < 0 ? -1 : !valued;
}

/* The same with the set of that name that a shadow has. */
static int change_shadow(const struct attached *a, plan_function *plan, const struct change *c,
			 enum sets_shadow *of, struct policy_error *error)
{
	struct policy_error why = {0};
	struct change change = *c;
	struct attached shadow;
	int result = in_shadow_open(a, &shadow, error);

	*of = SETS_NO_SHADOW;
	if (result)
		return result < 0 ? result : 0;
	*of = SETS_NOT_IN_SHADOW;
	change.in = c->in_shadow ? c->in_shadow : c->in; /* if anybody asks */
	change.policy_serial = shadow.copy[copies_in_force(&shadow)].policy.serial;
	result = concerns_shadow(a, &shadow, c, &why);
	if (result > 0) {
		*of = SETS_IN_SHADOW;
		result = change_set(&shadow, plan, &change, &why);
	}
	attached_release(&shadow);
	return result ? in_shadow_fail(&why, error) : 0;
}

static void count_taken_out(const struct change *c)
{
	for (size_t i = c->del->n; i-- > 0;) {
		bool none = !c->in[i] && !c->in_shadow[i];

		c->done->done += c->in[i];
		c->done->of_shadow += c->in_shadow[i];
		c->done->left_out += none;
		if (none)
			c->done->which = i;
	}
}

/* In force, and then in a shadow. */
static int change_both(struct attached *a, plan_function *plan, const struct change *c,
		       enum sets_shadow *of, struct policy_error *error)
{
	int fd = copies_lock_of(a, error), result;

	if (fd < 0)
		return -1;
	result = change_set(a, plan, c, error);
	if (!result)
		result = change_shadow(a, plan, c, of, error);
	if (!result && c->done) /* what either had */
		count_taken_out(c);
	close(fd);
	return result;
}

int sets_carry(const struct attached *a, const struct policy *policy, const struct set_texts *sets,
	       int sets_fd, struct policy_error *error)
{
	uint32_t copy = copies_in_force(a);
	struct policy *now = copies_policy(a, copy, error);
	int result = now ? 0 : -1;

	for (uint32_t i = 0; now && i < policy->n_sets && !result; i++) {
		uint32_t k = 0;

		while (k < now->n_sets && strcmp(now->set[k].name, policy->set[i].name))
			k++;
		if (k < now->n_sets &&
		    sets_maps_carry(a, copy, k, sets_fd, i, &sets->text[i].about))
			result = failed(a, policy->set[i].name, error);
	}
	policy_free(now);
	return result;
}

/* --- add ------------------------------------------------------------------------------------ */

/* What values of a copy's set are, for what is added to it. */
struct values {
	struct policy *policy;
	struct set_names known;
	struct set_about about;
};

static void free_values(struct values *v)
{
	set_names_free(&v->known);
	policy_free(v->policy);
}

/* ENODATA: the set has none. */
static int read_values(const struct attached *a, uint32_t copy, uint32_t number, struct values *v)
{
	struct policy_error unused;

	*v = (struct values){.policy = copies_policy(a, copy, &unused)};
	if (!v->policy || set_texts_known(v->policy, number, &v->known)) {
		free_values(v);
		errno = ENOMEM;
		return -1;
	}
	v->about = (struct set_about){v->policy->set[number].name, &v->known, v->known.n};
	if (v->policy->set[number].value)
		return 0;
	free_values(v);
	errno = ENODATA;
	return -1;
}

/*
 * The map of what is there by hand. Its values are told as the copy's policy tells them; where that
 * has none for the set, they are kept for a policy that has some.
 */
static int new_hand(const struct attached *a, uint32_t copy, uint32_t number, struct set_hand *hand,
		    uint32_t serial)
{
	struct values v;
	int fd;

	if (!hand->names.n)
		return set_maps_new_hand(hand, serial);
	if (read_values(a, copy, number, &v))
		return errno == ENODATA ? set_maps_new_hand(hand, serial) : -1;
	hand->about = &v.about;
	fd = set_maps_new_hand(hand, serial);
	hand->about = NULL;
	free_values(&v);
	return fd;
}

/* 0; -1: ENODATA, or no memory. */
static int takes_values(const struct attached *a, uint32_t copy, uint32_t number)
{
	struct values v;

	if (read_values(a, copy, number, &v))
		return -1;
	free_values(&v);
	return 0;
}

static int plan_hand(const struct attached *a, uint32_t copy, uint32_t number,
		     struct set_hand *hand, struct moves *m)
{
	uint32_t place = sets_maps_hand_place(copy, number);
	struct pacer_set_head head;
	int fd;

	if (set_maps_head(a->sets_fd, sets_maps_place(copy, number), &head))
		return -1;
	fd = new_hand(a, copy, number, hand, head.serial);
	if (fd < 0)
		return -1;
	plan_move(m, place, fd);
	if (!hand->n) /* nothing in it, from the same step on */
		plan_move(m, place, -1);
	return 0;
}

static int plan_add(const struct attached *a, const struct where *where, uint32_t i,
		    const struct change *c, struct moves *m)
{
	uint32_t copy = where->copy[i], number = where->number[i];
	struct set_hand hand = {.n = 0};
	int result = c->add->names.n ? takes_values(a, copy, number) : 0;

	if (!result)
		result = sets_maps_hand(a, copy, number, &hand);
	for (size_t k = 0; k < c->add->n && !result; k++)
		result = set_hand_add_named(&hand, &c->add->entry[k].e, c->add->entry[k].until_ns,
					    set_hand_value(c->add, &c->add->entry[k]));
	if (!result) {
		set_hand_settle(&hand, host_now_ns());
		result = plan_hand(a, copy, number, &hand, m);
	}
	set_hand_free(&hand);
	return result;
}

int sets_add(struct attached *a, const char *name, const struct set_hand *add,
	     enum sets_shadow *shadow, struct policy_error *error)
{
	struct change c = {.name = name, .add = add};

	return change_both(a, plan_add, &c, shadow, error);
}

/* --- del ------------------------------------------------------------------------------------ */

/* Without those of c->del, which are noted. False: none of them was there. */
static bool strike_list(struct set_list *list, const struct change *c)
{
	size_t n = 0, k = 0;

	for (size_t i = 0; i < list->n; i++) {
		while (k < c->del->n && set_entry_order(&c->del->entry[k], &list->entry[i]) < 0)
			k++;
		if (k < c->del->n && !set_entry_order(&c->del->entry[k], &list->entry[i]))
			c->in[k] = true;
		else
			list->entry[n++] = list->entry[i];
	}
	if (n == list->n)
		return false;
	list->n = n;
	return true;
}

static bool strike_hand(struct set_hand *hand, const struct change *c)
{
	bool any = false;

	for (size_t k = 0; k < c->del->n; k++) {
		struct set_hand_entry *h = set_hand_find(hand, &c->del->entry[k]);

		if (!h)
			continue;
		h->until_ns = 0;
		any = c->in[k] = true;
	}
	set_hand_settle(hand, 0);
	return any;
}

/* The names of a set's values, where keys have them. */
static int take_names(const struct attached *a, uint32_t place, struct set_names *names)
{
	struct set_lines lines;
	int result, cause;

	if (set_maps_lines_of(a->sets_fd, place, &lines))
		return -1;
	result = set_words_take(&lines, names);
	cause = errno;
	set_lines_free(&lines);
	errno = cause;
	return result;
}

/*
 * What a copy's set has, and what its values are: the texts in the kernel, or where these are not
 * kept what its policy names.
 */
struct contents {
	struct pacer_set_head head;
	struct set_list list;
	struct set_names names;
	bool named;
};

static void free_contents(struct contents *c)
{
	set_list_free(&c->list);
	set_names_free(&c->names);
}

static int take_contents(const struct attached *a, uint32_t copy, uint32_t number,
			 struct contents *c)
{
	uint32_t place = sets_maps_place(copy, number);
	struct values v;

	*c = (struct contents){.named = false};
	if (set_maps_head(a->sets_fd, place, &c->head) ||
	    set_maps_list(a->sets_fd, place, &c->list) || take_names(a, place, &c->names))
		return -1;
	c->named = c->head.flags & PACER_SET_NAMED;
	if (c->named)
		return 0;
	if (read_values(a, copy, number, &v))
		return -1;
	c->names = v.known;
	v.known = (struct set_names){NULL, 0, NULL, 0};
	free_values(&v);
	return 0;
}

/* The value's number; where texts are not kept all that no rule names have one. */
static int value_of(struct contents *c, const char *text)
{
	uint16_t found = set_names_find(&c->names, text);

	if (!c->named)
		return found ? found : (int)c->names.n + 1;
	return set_names_add(&c->names, (struct set_word){text, strlen(text)});
}

static int put_all(struct contents *c, const struct set_hand *put)
{
	struct set_entry one, other;

	for (size_t i = 0; i < put->n; i++) {
		const char *text = set_hand_value(put, &put->entry[i]);
		struct set_entry e = put->entry[i].e;
		int value = text ? value_of(c, text) : -1;

		e.value = (uint16_t)value;
		if (value < 0 || set_list_add(&c->list, &e))
			return -1;
	}
	return set_list_sort(&c->list, &one, &other) ? -1 : 0;
}

/* The set keeps its serial, and so what else was added to it. */
static int plan_put_in(const struct attached *a, const struct where *where, uint32_t i,
		       const struct change *c, struct moves *m)
{
	uint32_t copy = where->copy[i], number = where->number[i];
	struct set_hand hand = {.n = 0};
	struct contents now;
	struct set_about about = {c->name, &now.names, 0};
	int result = take_contents(a, copy, number, &now), fd = -1;

	if (!result) {
		(void)strike_list(&now.list, c);
		result = put_all(&now, c->put);
	}
	if (!result) {
		now.list.about = now.named ? &about : NULL;
		fd = set_maps_new(&now.list, now.head.serial);
		result = fd < 0 ? -1 : 0;
	}
	if (!result) {
		plan_move(m, sets_maps_place(copy, number), fd);
		result = sets_maps_hand(a, copy, number, &hand);
	}
	set_hand_settle(&hand, host_now_ns());
	if (!result && strike_hand(&hand, c))
		result = plan_hand(a, copy, number, &hand, m);
	set_hand_free(&hand);
	free_contents(&now);
	return result;
}

int sets_put(struct attached *a, const char *name, const struct set_hand *put,
	     enum sets_shadow *shadow, struct policy_error *error)
{
	struct set_list prefixes = {0};
	struct set_entry one, other;
	struct change c = {.name = name, .del = &prefixes, .put = put};
	int result = 0;

	for (size_t i = 0; i < put->n && !result; i++)
		result = set_list_add(&prefixes, &put->entry[i].e);
	c.in = calloc(put->n + 1, sizeof(bool));
	if (result || !c.in || set_list_sort(&prefixes, &one, &other))
		result = policy_fail(error, 0, "%s: no memory", a->ifname);
	if (!result)
		result = change_both(a, plan_put_in, &c, shadow, error);
	set_list_free(&prefixes);
	free(c.in);
	return result;
}

/* The set keeps its serial, and so what else was added to it. */
static int plan_strike(const struct attached *a, uint32_t copy, uint32_t number,
		       const struct change *c, struct moves *m)
{
	uint32_t place = sets_maps_place(copy, number);
	struct set_names names = {NULL, 0, NULL, 0};
	struct set_about about = {c->name, &names, 0};
	struct pacer_set_head head;
	struct set_list list = {0};
	int fd, result;

	result = set_maps_head(a->sets_fd, place, &head) || set_maps_list(a->sets_fd, place, &list)
		     ? -1
		     : 0;
	if (!result && take_names(a, place, &names))
		result = -1;
	if (!result && strike_list(&list, c)) {
		list.about = names.n ? &about : NULL;
		fd = set_maps_new(&list, head.serial);
		if (fd >= 0)
			plan_move(m, place, fd);
		else
			result = -1;
	}
	set_list_free(&list);
	set_names_free(&names);
	return result;
}

static int plan_del(const struct attached *a, const struct where *where, uint32_t i,
		    const struct change *c, struct moves *m)
{
	uint32_t copy = where->copy[i], number = where->number[i];
	struct set_hand hand = {.n = 0};
	int result = plan_strike(a, copy, number, c, m);

	if (!result)
		result = sets_maps_hand(a, copy, number, &hand);
	set_hand_settle(&hand, host_now_ns());
	if (!result && strike_hand(&hand, c))
		result = plan_hand(a, copy, number, &hand, m);
	set_hand_free(&hand);
	return result;
}

int sets_del(struct attached *a, const char *name, const struct set_list *del,
	     struct sets_done *done, enum sets_shadow *shadow, struct policy_error *error)
{
	struct change c = {.name = name,
			   .del = del,
			   .done = done,
			   .in = calloc(del->n + 1, sizeof(bool)),
			   .in_shadow = calloc(del->n + 1, sizeof(bool))};
	int result;

	*done = (struct sets_done){0};
	result = c.in && c.in_shadow ? change_both(a, plan_del, &c, shadow, error)
				     : policy_fail(error, 0, "%s: no memory", a->ifname);
	free(c.in);
	free(c.in_shadow);
	return result;
}

/* --- replace -------------------------------------------------------------------------------- */

/* One map for both copies. With its new serial, what was added by hand is out at once. */
static int plan_replace(const struct attached *a, const struct where *where, uint32_t i,
			const struct change *c, struct moves *m)
{
	uint32_t copy = where->copy[i], number = where->number[i];
	struct pacer_set_head now;
	int fd;

	if (a->copy[copies_in_force(a)].policy.serial != c->policy_serial) {
		errno = EAGAIN;
		return -1;
	}
	if (!i && set_maps_head(a->sets_fd, sets_maps_place(copy, number), &now))
		return -1;
	fd = i ? dup(m->at[0].fd) : set_maps_new(c->all, set_maps_next_serial(now.serial));
	if (fd < 0)
		return -1;
	plan_move(m, sets_maps_place(copy, number), fd);
	plan_move(m, sets_maps_hand_place(copy, number), -1);
	return 0;
}

int sets_replace(struct attached *a, const char *name, const struct set_list *list,
		 uint64_t policy_serial, enum sets_shadow *shadow, struct policy_error *error)
{
	struct change c = {.name = name, .all = list, .policy_serial = policy_serial};

	return change_both(a, plan_replace, &c, shadow, error);
}

/* --- what there is -------------------------------------------------------------------------- */

static uint64_t head_bytes(const struct pacer_set_head *head)
{
	uint64_t line = sizeof(union pacer_set_line);

	return (head->lines + (head->list_bytes + line - 1) / line) * line;
}

static int read_info(const struct attached *a, uint32_t copy, uint32_t number, int cpus,
		     struct sets_info *info)
{
	struct set_hand hand = {.n = 0};
	struct pacer_set_head head;

	if (set_maps_head(a->sets_fd, sets_maps_place(copy, number), &head) ||
	    sets_maps_hand(a, copy, number, &hand) ||
	    sets_maps_count(a, copy, number, cpus, &info->count)) {
		set_hand_free(&hand);
		return -1;
	}
	set_hand_settle(&hand, host_now_ns());
	info->added = hand.n;
	set_hand_free(&hand);
	memcpy(info->prefixes, head.prefixes, sizeof(info->prefixes));
	info->bytes = head_bytes(&head);
	if (set_maps_head(a->sets_fd, sets_maps_hand_place(copy, number), &head))
		return errno == ENOENT ? 0 : -1;
	info->bytes += head_bytes(&head);
	return 0;
}

static int read_all(const struct attached *a, const struct policy *policy, uint32_t copy,
		    struct sets_info *info, struct policy_error *error)
{
	int cpus = host_cpus(error);

	if (cpus < 1)
		return -1;
	for (uint32_t i = 0; i < policy->n_sets; i++) {
		info[i].set = &policy->set[i];
		info[i].counted = sets_maps_counted(a, copy, i, policy);
		if (read_info(a, copy, i, cpus, &info[i]))
			return unreadable(a, policy->set[i].name, error);
	}
	return 0;
}

/* As it was at one moment; *policy is to be freed, and NULL where there is none. */
static int read_in_force(const struct attached *a, struct policy **policy, struct sets_info *info,
			 struct policy_error *error)
{
	for (;;) {
		int fd = copies_lock_to_read(error), result = -1;
		uint32_t copy;

		*policy = NULL;
		if (fd == -1)
			return -1;
		copy = copies_in_force(a);
		*policy = copies_policy(a, copy, error);
		if (*policy)
			result = read_all(a, *policy, copy, info, error);
		if (copies_were_still(fd))
			return result;
		policy_free(*policy);
	}
}

int sets_each(const struct attached *a, void (*each)(const struct sets_info *info, void *arg),
	      void *arg, struct policy_error *error)
{
	struct sets_info info[PACER_SETS_MAX];
	struct policy *policy;
	int result = read_in_force(a, &policy, info, error);

	for (size_t i = 0; !result && i < policy->n_sets; i++)
		each(&info[i], arg);
	policy_free(policy);
	return result;
}

int sets_take(const struct attached *a, const char *name, struct set_list *list,
	      struct set_hand *hand, struct policy_error *error)
{
	struct set_names unused;
	int result = sets_take_named(a, name, list, &unused, hand, error);

	set_names_free(&unused);
	return result;
}

static void free_taken(struct set_list *list, struct set_names *names, struct set_hand *hand)
{
	set_list_free(list);
	set_names_free(names);
	set_hand_free(hand);
}

/* Of the copy in force. All three have to be empty, and can be freed whatever comes of it. */
static int take_in_force(const struct attached *a, const char *name, struct set_list *list,
			 struct set_names *names, struct set_hand *hand, struct policy_error *error)
{
	uint32_t copy = copies_in_force(a), place;
	int number = number_of(a, copy, name, error);

	if (number < 0)
		return -1;
	place = sets_maps_place(copy, (uint32_t)number);
	return set_maps_list(a->sets_fd, place, list) || take_names(a, place, names) ||
		       sets_maps_hand(a, copy, (uint32_t)number, hand)
		   ? unreadable(a, name, error)
		   : 0;
}

int sets_take_named(const struct attached *a, const char *name, struct set_list *list,
		    struct set_names *names, struct set_hand *hand, struct policy_error *error)
{
	int result;

	*list = (struct set_list){0};
	*hand = (struct set_hand){.n = 0};
	*names = (struct set_names){NULL, 0, NULL, 0};
	for (;;) {
		int fd = copies_lock_to_read(error);

		if (fd == -1)
			return -1;
		result = take_in_force(a, name, list, names, hand, error);
		if (copies_were_still(fd))
			break;
		free_taken(list, names, hand);
	}
	if (result)
		free_taken(list, names, hand);
	else
		set_hand_settle(hand, host_now_ns());
	return result;
}
