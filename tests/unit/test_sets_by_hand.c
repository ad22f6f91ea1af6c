/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sets are changed by hand while policies change: tried, confirmed, rolled back and rotated, and
 * beside a shadow. One set is plain, the other has values in some policies. A model says which
 * prefixes each has, of its file and by hand, with which values and ends. Each packet has to meet
 * the rules that the model says, by the policy in force, by the one that a trial gives way to, and
 * by the shadow's; and what the tool says it did, and shows, has to be so.
 *
 * In some walks one of the steps is killed as it writes: then it has made its whole change in force
 * or nothing of it, in both policies of a trial, and can be done again.
 */
#define WALKS  60u
#define SWEEPS 1u
#include "walks.h"

#include "set_places.h"

#include "live/in_shadow.h"
#include "live/sets.h"
#include "live/sets_maps.h"

#define STEPS	    40u
#define STEPS_KILLS 8u /* before the one that is killed */

#define ADDRESS	  0x0a000000u /* of the first of the addresses */
#define ADDRESSES 9u	      /* the last is in no prefix but the widest */
#define NOBODY	  0x0a000100u /* addresses of no packet */

/* --- policies -----------------------------------------------------------------------------------
 */

enum set { PLAIN, VALUED, SETS };

static const char *const set_names[SETS] = {"s", "v"};

/* What rules ask for, of a port each. */
enum ask { IN_PLAIN, IS_AA, IS_BB, IN_VALUED, QUESTIONS };

enum value { NONE, AA, BB, CC, VALUE_KINDS };

static const char *const values[VALUE_KINDS] = {NULL, "AA", "BB", "CC"}; /* rules name two */

struct element {
	uint32_t address, length;
	enum value value;
	uint64_t until_ns; /* of one by hand, by the oracle's clock; PACER_NEVER */
};

struct contents {
	uint32_t n;
	struct element at[64];
};

struct outline {
	uint32_t number;
	bool has[SETS], values, second; /* the set with values stands second */
	bool keyed;			/* a limit counts by them */
	struct contents file[SETS];
};

static struct outline outlines[VARIANTS];
static uint32_t n_outlines;

static bool is_within(uint32_t address, const struct element *e)
{
	return !((address ^ e->address) & ~(uint32_t)(0xffffffffull >> e->length));
}

static struct element *find(struct contents *c, const struct element *prefix)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->at[i].address == prefix->address && c->at[i].length == prefix->length)
			return &c->at[i];
	return NULL;
}

static struct element any_element(bool valued)
{
	static const uint32_t lengths[] = {32, 32, 31, 30, 29, 24};
	struct element e = {.length = lengths[draw() % ARRAY(lengths)]};

	e.address = ADDRESS + (uint32_t)(draw() % (ADDRESSES - 1));
	e.address &= ~(uint32_t)(0xffffffffull >> e.length);
	if (valued)
		e.value = AA + draw() % (VALUE_KINDS - AA);
	return e;
}

static void any_contents(struct contents *c, bool valued)
{
	uint32_t n = 1 + (uint32_t)(draw() % 4);

	c->n = 0;
	for (enum value value = AA; valued && value <= BB;
	     value++) /* rules want them to be there */
		c->at[c->n++] = (struct element){NOBODY + value, 32, value, 0};
	for (uint32_t i = 0; i < n; i++) {
		struct element e = any_element(valued);

		if (!find(c, &e))
			c->at[c->n++] = e;
	}
}

static const struct outline *any_outline(void)
{
	struct outline *t = &outlines[n_outlines];

	assert_true(n_outlines < ARRAY(outlines));
	*t = (struct outline){.number = n_outlines++};
	t->has[PLAIN] = draw() % 5 > 0;
	t->has[VALUED] = draw() % 5 > 0;
	t->values = t->has[VALUED] && draw() % 3 > 0;
	t->second = draw() % 2;
	t->keyed = t->values && draw() % 2;
	for (uint32_t i = 0; i < SETS; i++)
		any_contents(&t->file[i], i == VALUED && t->values);
	return t;
}

static const char *element_text(const struct element *e)
{
	static char text[32];

	snprintf(text, sizeof(text), "%" PRIu32 ".%" PRIu32 ".%" PRIu32 ".%" PRIu32 "/%" PRIu32,
		 e->address >> 24, e->address >> 16 & 255, e->address >> 8 & 255, e->address & 255,
		 e->length);
	return text;
}

static char file_name[] = "/tmp/pacer-set-XXXXXX";

static void write_file(const struct contents *c)
{
	FILE *to = fopen(file_name, "w");

	assert_non_null(to);
	for (uint32_t i = 0; i < c->n; i++)
		fprintf(to, "%s%s%s\n", element_text(&c->at[i]), c->at[i].value ? "," : "",
			c->at[i].value ? values[c->at[i].value] : "");
	assert_int_equal(fclose(to), 0);
}

static void say_set(const struct outline *t, enum set set)
{
	const struct contents *c = &t->file[set];

	if (!t->has[set])
		return;
	say("- {name: %s, ", set_names[set]);
	if (set == VALUED) {
		write_file(c);
		say("file: %s%s}\n", file_name, t->values ? ", value: 2" : "");
		return;
	}
	say("of: [");
	for (uint32_t i = 0; i < c->n; i++)
		say("%s%s", i ? ", " : "", element_text(&c->at[i]));
	say("]}\n");
}

static void say_drop(char name, enum ask ask, const char *of)
{
	say("- {name: %c, match: {dport: %u, src: \"@%s\"}, verdict: drop}\n", name,
	    RULE_PORT + ask, of);
}

/* Its file is written, too. */
static const char *said(const struct outline *t)
{
	say_again();
	say("# %" PRIu32 "\nmemory: 512Ki\nclock: exact\n", t->number);
	if (t->has[PLAIN] || t->has[VALUED])
		say("sets:\n");
	if (t->second)
		say_set(t, PLAIN);
	say_set(t, VALUED);
	if (!t->second)
		say_set(t, PLAIN);
	say("rules:\n");
	if (t->has[PLAIN])
		say_drop('p', IN_PLAIN, "s");
	if (t->values && t->second) {
		say_drop('b', IS_BB, "v=BB");
		say_drop('a', IS_AA, "v=AA");
	} else if (t->values) {
		say_drop('a', IS_AA, "v=AA");
		say_drop('b', IS_BB, "v=BB");
	}
	if (t->has[VALUED])
		say_drop('v', IN_VALUED, "v");
	say("- {name: k, limits: [{key: %s, packets: 1000000, window: 1s}]}\n",
	    t->keyed ? "\"value(v, src)\"" : "src");
	return doc.s;
}

/* --- the model ----------------------------------------------------------------------------------
 */

/* A policy with its sets. */
struct side {
	bool there;
	const struct outline *outline;
	struct contents file[SETS], hand[SETS];
};

static struct model {
	struct side now, before, shadow; /* before: what a trial gives way to */
} model;

static bool runs(const struct element *e)
{
	return e->until_ns > now_ns();
}

#define OTHER VALUE_KINDS /* in the set, without a value or with one that is not known */

/* What the longest prefix says that holds the address; NONE: there is none. */
static int value_in(const struct contents *c, uint32_t address, bool by_hand)
{
	const struct element *found = NULL;

	for (uint32_t i = 0; i < c->n; i++)
		if (is_within(address, &c->at[i]) && (!by_hand || runs(&c->at[i])) &&
		    (!found || c->at[i].length > found->length))
			found = &c->at[i];
	return !found ? NONE : found->value ? (int)found->value : OTHER;
}

static int value_by(const struct side *s, enum set set, uint32_t address)
{
	int by_hand = value_in(&s->hand[set], address, true);
	int by_file = value_in(&s->file[set], address, false);

	if (by_hand == NONE || (by_hand == OTHER && by_file != NONE))
		return by_file;
	return by_hand;
}

static bool is_asked_for(const struct side *s, enum ask ask, uint32_t address)
{
	enum set set = ask == IN_PLAIN ? PLAIN : VALUED;
	int value;

	if (!s->outline->has[set] || ((ask == IS_AA || ask == IS_BB) && !s->outline->values))
		return false;
	value = value_by(s, set, address);
	return ask == IS_AA ? value == AA : ask == IS_BB ? value == BB : value != NONE;
}

static void settle(struct contents *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n; i++)
		if (runs(&c->at[i]))
			c->at[n++] = c->at[i];
	c->n = n;
}

static void put_in(struct contents *c, const struct element *e)
{
	struct element *was = find(c, e);

	if (!was) {
		assert_true(c->n < ARRAY(c->at));
		was = &c->at[c->n++];
	}
	*was = *e;
}

static bool take_out(struct contents *c, const struct element *e)
{
	struct element *was = find(c, e);

	if (!was)
		return false;
	*was = c->at[--c->n];
	return true;
}

/* --- packets, and what is shown -----------------------------------------------------------------
 */

static struct beside {
	struct attached a;
	struct pacer_copy *copies;
	struct pacer_control *control;
} beside;

enum whose { IN_FORCE, BEFORE, OF_SHADOW };

static const char *const whose_text[] = {"", " by the policy before", " by the shadow"};

static struct side *side_of(struct model *m, enum whose whose)
{
	return whose == IN_FORCE ? &m->now : whose == BEFORE ? &m->before : &m->shadow;
}

/* The shadow's are what is judged by, until the next call. */
static void swap_sides(void)
{
	SWAP(pacer, beside.a);
	SWAP(copies, beside.copies);
	SWAP(control, beside.control);
}

/* What packets have at each place of the copy in force. */
static void read_places(struct pacer_set *set, struct pacer_set *hand)
{
	uint32_t copy = copies_in_force(&pacer);

	for (uint32_t i = 0; i < PACER_SETS_MAX; i++) {
		set[i] =
		    set_lines_set(&maps[places[pacer.sets_fd][sets_maps_place(copy, i)]].lines);
		hand[i] = set_lines_set(
		    &maps[places[pacer.sets_fd][sets_maps_hand_place(copy, i)]].lines);
	}
}

/* What keys of limits have in the place of an address's value; 0: it cannot be known. */
static uint32_t word_of(uint32_t number, uint32_t address)
{
	struct pacer_state state = {.policy = &copies[copies_in_force(&pacer)].policy,
				    .set = judged_sets,
				    .hand = judged_hands};
	struct pacer_walk walk = {
	    .state = &state,
	    .pkt = {.key = {[PACER_WORD_SADDR] = address}, .family = PACER_FAMILY_4},
	    .now_ns = kernel_now_ns};

	return pacer_walk_word(&walk, 1 + number);
}

static bool words_are_by(const struct side *s, enum whose whose, bool breaks)
{
	uint32_t number = s->outline->second && s->outline->has[PLAIN];

	for (uint32_t i = 0; i < ADDRESSES && s->outline->keyed; i++) {
		int value = value_by(s, VALUED, ADDRESS + i);
		const char *text = value == NONE || value == OTHER ? SET_WORD_NONE : values[value];

		if (word_of(number, ADDRESS + i) == set_word_of("v", text))
			continue;
		if (breaks)
			break_it("10.0.0.%" PRIu32 "%s has not the value %s", i, whose_text[whose],
				 text);
		return false;
	}
	return true;
}

/* True: each packet fares as that side of the model says; else, if told to, it says which not. */
static bool packets_fare_by(const struct side *s, enum whose whose, bool breaks)
{
	struct pacer_set set[PACER_SETS_MAX], hand[PACER_SETS_MAX];
	bool all = true;

	read_places(set, hand);
	judged_sets = set;
	judged_hands = hand;
	for (uint32_t i = 0; i < ADDRESSES * QUESTIONS && all; i++) {
		uint32_t address = ADDRESS + i % ADDRESSES;
		struct sent p = {address - address_of(0), RULE_PORT + i / ADDRESSES, FIRST_FLOW};
		bool denied = pacer_outcome_denied(judge(draw() % KERNEL_CPUS, p));

		all = denied == is_asked_for(s, i / ADDRESSES, address);
		if (!all && breaks)
			break_it("a packet of 10.0.0.%" PRIu32 " to port %" PRIu32 "%s %s",
				 address & 255, p.port, whose_text[whose],
				 denied ? "meets the rule" : "does not meet the rule");
	}
	all = all && words_are_by(s, whose, breaks);
	judged_sets = judged_hands = NULL;
	return all;
}

static bool packets_fare(const struct side *s, enum whose whose, bool breaks)
{
	uint64_t in_force = control->in_force;
	bool all;

	if (whose == OF_SHADOW)
		swap_sides();
	if (whose == BEFORE)
		control->in_force = copies_in_force(&pacer) ^ 1;
	all = packets_fare_by(s, whose, breaks);
	if (whose == BEFORE)
		control->in_force = in_force;
	if (whose == OF_SHADOW)
		swap_sides();
	return all;
}

/* Is what it shows what the set has? */
static void check_shown(struct side *s, enum set set)
{
	struct set_list list;
	struct set_names names;
	struct set_hand hand;
	int result = sets_take_named(&pacer, set_names[set], &list, &names, &hand, &error);
	uint32_t n = s->file[set].n;

	if ((result == 0) != s->outline->has[set]) {
		break_it("set %s is shown: %d", set_names[set], result);
		return;
	}
	if (result)
		return;
	settle(&s->hand[set]);
	if (list.n != n || hand.n != s->hand[set].n)
		break_it("set %s shows %zu prefixes of %" PRIu32 ", and %zu by hand of %" PRIu32,
			 set_names[set], list.n, n, hand.n, s->hand[set].n);
	for (size_t i = 0; i < list.n && !work.broken; i++) {
		struct element e = {list.entry[i].high >> 32, list.entry[i].len, NONE, 0};
		const struct element *has = find(&s->file[set], &e);
		const char *value = names.n ? names.name[list.entry[i].value - 1] : NULL;

		if (!has || (set == VALUED && s->outline->keyed &&
			     (!value || strcmp(value, values[has->value]))))
			break_it("set %s shows %s, value %s", set_names[set], element_text(&e),
				 value ? value : "none");
	}
	for (size_t i = 0; i < hand.n && !work.broken; i++) {
		const struct set_hand_entry *h = &hand.entry[i];
		struct element e = {h->e.high >> 32, h->e.len, NONE, 0};
		const struct element *has = find(&s->hand[set], &e);
		const char *value = set_hand_value(&hand, h);

		if (!has || !value != !values[has->value] ||
		    (value && strcmp(value, values[has->value])) ||
		    (h->until_ns == SET_HAND_STAYS ? has->until_ns != PACER_NEVER
						   : has->until_ns != h->until_ns + boot.before_ns))
			break_it("set %s shows %s by hand, value %s", set_names[set],
				 element_text(&e), value ? value : "none");
	}
	set_list_free(&list);
	set_names_free(&names);
	set_hand_free(&hand);
}

/* Which policy is in force may change by itself. */
static void see_trial(void)
{
	if (in_force() != model.now.outline->number) {
		assert_true(model.before.there);
		assert_int_equal(in_force(), model.before.outline->number);
		model.now = model.before;
	}
	if (!copies_pending_ns(&pacer))
		model.before.there = false;
}

static void check(void)
{
	see_trial();
	for (enum whose whose = IN_FORCE; whose <= OF_SHADOW && !work.broken; whose++)
		if (side_of(&model, whose)->there)
			(void)packets_fare(side_of(&model, whose), whose, true);
	for (enum set set = 0; set < SETS && !work.broken; set++)
		check_shown(&model.now, set);
}

/* --- steps --------------------------------------------------------------------------------------
 */

/* What a step is to say. */
struct outcome {
	int result;
	enum sets_shadow shadow;
	size_t done, left_out, of_shadow;
};

#define WISHES 3u

static struct step {
	struct outcome (*model)(void);
	int (*run)(void);
	enum set set;
	uint32_t n;
	struct element wish[WISHES];
	struct contents all; /* to replace what it has */
	const struct outline *outline;
	uint64_t confirm_ns;
} step;

static struct sets_done done;
static enum sets_shadow in_shadow;

static struct set_entry entry_of(const struct element *e)
{
	return (struct set_entry){
	    .family = 4, .len = (uint8_t)e->length, .high = (uint64_t)e->address << 32, .value = 1};
}

static bool has_values(const struct side *s)
{
	return s->there && step.set == VALUED && s->outline->values;
}

static bool has_set(const struct side *s)
{
	return s->there && s->outline->has[step.set];
}

/* Those of the policy in force and of the one before. */
static bool has_one(void)
{
	return has_set(&model.now) || has_set(&model.before);
}

static int run_add(void)
{
	struct set_hand add = {.n = 0};
	int result;

	for (uint32_t i = 0; i < step.n; i++) {
		const struct element *e = &step.wish[i];
		struct set_entry entry = entry_of(e);

		assert_int_equal(set_hand_add_named(&add, &entry,
						    e->until_ns == PACER_NEVER
							? SET_HAND_STAYS
							: e->until_ns - boot.before_ns,
						    values[e->value]),
				 0);
	}
	result = sets_add(&pacer, set_names[step.set], &add, &in_shadow, &error);
	set_hand_free(&add);
	return result;
}

static bool gives_values(void)
{
	for (uint32_t i = 0; i < step.n; i++)
		if (step.wish[i].value)
			return true;
	return false;
}

/* A value goes into no set without values. */
static bool refuses(const struct side *s)
{
	return has_set(s) && gives_values() && !has_values(s);
}

static void add_to(struct side *s)
{
	if (!has_set(s))
		return;
	settle(&s->hand[step.set]);
	for (uint32_t i = 0; i < step.n; i++)
		put_in(&s->hand[step.set], &step.wish[i]);
}

static struct outcome model_add(void)
{
	struct outcome o = {.shadow = SETS_NO_SHADOW};

	if (!has_one() || refuses(&model.now) || refuses(&model.before))
		return (struct outcome){.result = -1};
	add_to(&model.now);
	add_to(&model.before);
	if (!model.shadow.there)
		return o;
	o.shadow = has_set(&model.shadow) ? SETS_IN_SHADOW : SETS_NOT_IN_SHADOW;
	if (refuses(&model.shadow))
		o.result = IN_SHADOW_FAILED;
	else
		add_to(&model.shadow);
	return o;
}

static int run_del(void)
{
	struct set_list del = {.n = 0};
	struct set_entry one, other;
	int result;

	for (uint32_t i = 0; i < step.n; i++) {
		struct set_entry entry = entry_of(&step.wish[i]);

		assert_int_equal(set_list_add(&del, &entry), 0);
	}
	assert_int_equal(set_list_sort(&del, &one, &other), 0);
	result = sets_del(&pacer, set_names[step.set], &del, &done, &in_shadow, &error);
	set_list_free(&del);
	return result;
}

static bool take_from(struct side *s, const struct element *e)
{
	bool in_file, by_hand;

	if (!has_set(s))
		return false;
	settle(&s->hand[step.set]);
	in_file = take_out(&s->file[step.set], e);
	by_hand = take_out(&s->hand[step.set], e);
	return in_file || by_hand;
}

static struct outcome model_del(void)
{
	struct outcome o = {.shadow = SETS_NO_SHADOW};

	if (!has_one())
		return (struct outcome){.result = -1};
	for (uint32_t i = 0; i < step.n; i++) {
		bool in = take_from(&model.now, &step.wish[i]);
		bool of_shadow = take_from(&model.shadow, &step.wish[i]);

		in |= take_from(&model.before, &step.wish[i]);
		o.done += in;
		o.of_shadow += of_shadow;
		o.left_out += !in && !of_shadow;
	}
	if (model.shadow.there)
		o.shadow = has_set(&model.shadow) ? SETS_IN_SHADOW : SETS_NOT_IN_SHADOW;
	return o;
}

/* As `sets replace` does: of a file, whose values have the numbers of the policy in force. */
static int run_replace(void)
{
	uint32_t copy = copies_in_force(&pacer), i = 0;
	uint64_t serial = copies[copy].policy.serial;
	struct policy *policy = copies_policy(&pacer, copy, &error);
	struct set_source source = {file_name, 0, NULL};
	struct set_text text;
	int result;

	write_file(&step.all);
	while (i < policy->n_sets && strcmp(policy->set[i].name, set_names[step.set]))
		i++;
	result = i < policy->n_sets ? set_texts_read_one(policy, i, file_name, &text, &error)
				    : set_read_file(file_name, &source, &text, &error);
	policy_free(policy);
	assert_int_equal(result, 0);
	result = sets_replace(&pacer, set_names[step.set], &text.list, serial, &in_shadow, &error);
	set_text_free(&text);
	return result;
}

static void replace_in(struct side *s)
{
	if (!has_set(s))
		return;
	s->file[step.set] = step.all;
	s->hand[step.set].n = 0;
}

static struct outcome model_replace(void)
{
	bool trial = model.before.there;
	struct outcome o = {.shadow = SETS_NO_SHADOW};

	if (!has_one() || (trial && ((has_set(&model.now) && has_values(&model.now)) ||
				     (has_set(&model.before) && has_values(&model.before)))))
		return (struct outcome){.result = -1};
	replace_in(&model.now);
	replace_in(&model.before);
	if (!model.shadow.there)
		return o;
	o.shadow = SETS_NOT_IN_SHADOW;
	if (!has_set(&model.shadow) || has_values(&model.now) || has_values(&model.shadow))
		return o;
	replace_in(&model.shadow);
	o.shadow = SETS_IN_SHADOW;
	return o;
}

/* Changes of the policy. */

static int run_apply(void)
{
	const char *text = said(step.outline);
	struct policy *policy = parse(text);
	struct set_texts texts;
	int result;

	copies_keep_values(&pacer, policy);
	if (set_texts_read(policy, &texts, &error))
		fail_msg("%s: %s", text, error.text);
	result = change_apply(&pacer, text, &texts, step.confirm_ns, &plan, &error);
	set_texts_free(&texts);
	policy_free(policy);
	return result;
}

/* The sets of a policy that comes after another. */
static void follow(struct side *s, const struct outline *t)
{
	for (enum set set = 0; set < SETS; set++) {
		if (!s->outline->has[set])
			s->hand[set].n = 0;
		s->file[set] = t->file[set];
	}
	s->outline = t;
}

static struct outcome model_apply(void)
{
	if (model.before.there)
		return (struct outcome){.result = -1};
	model.before = model.now;
	model.before.there = step.confirm_ns > 0;
	follow(&model.now, step.outline);
	return (struct outcome){0};
}

static struct outcome model_confirm(void)
{
	struct outcome o = {.result = model.before.there ? 0 : -1};

	model.before.there = false;
	return o;
}

static struct outcome model_rotate(void)
{
	return (struct outcome){.result = model.before.there ? -1 : 0};
}

static int run_in_kill(const void *unused)
{
	(void)unused;
	return step.run();
}

static bool changes_policy(void)
{
	return step.run == run_apply || step.run == run_confirm || step.run == run_rotate;
}

static bool is_as_said(int result, const struct outcome *o)
{
	if (result != o->result)
		return false;
	if (result || changes_policy())
		return true;
	if (in_shadow != o->shadow)
		return false;
	return step.run != run_del || (done.done == o->done && done.left_out == o->left_out &&
				       done.of_shadow == o->of_shadow);
}

/* A change of the policy may be refused for want of room, and has changed nothing then. */
static void take_result(int result, const struct model *was, const struct outcome *o)
{
	work.done += result >= 0;
	work.refused += result < 0;
	tell("-> %d%s%s\n", result, result < 0 ? ": " : "", result < 0 ? error.text : "");
	if (changes_policy() && result == -1)
		model = *was;
	else if (!is_as_said(result, o))
		break_it("it says %d: %zu done, %zu left out, shadow %d, of it %zu; to be %d: %zu, "
			 "%zu, %d, %zu: %s",
			 result, done.done, done.left_out, in_shadow, done.of_shadow, o->result,
			 o->done, o->left_out, o->shadow, o->of_shadow, error.text);
}

/* Of policy in force and before together, and of the shadow, each is as it was or as it is to be.
 */
static void check_killed(struct model *was)
{
	bool whole = true, nothing = true;

	for (enum whose whose = IN_FORCE; whose <= BEFORE; whose++)
		if (side_of(&model, whose)->there) {
			whole &= packets_fare(side_of(&model, whose), whose, false);
			nothing &= packets_fare(side_of(was, whose), whose, false);
		}
	if (!whole && !nothing)
		break_it("killed, and half of it is done");
	if (model.shadow.there && !packets_fare(&model.shadow, OF_SHADOW, false))
		(void)packets_fare(&was->shadow, OF_SHADOW, true);
}

static void after_kill(struct model *was)
{
	int result;

	work.killed++;
	tell("-> killed\n");
	if (changes_policy()) {
		if (in_force() != model.now.outline->number ||
		    (step.run == run_confirm && copies_pending_ns(&pacer)))
			model = *was;
		return;
	}
	check_killed(was);
	result = step.run();
	tell("-> again: %d%s%s\n", result, result < 0 ? ": " : "", result < 0 ? error.text : "");
}

static void take_step(uint32_t kill)
{
	static struct model was;
	struct outcome o;
	int result = 0;

	see_trial();
	was = model;
	o = step.model();
	error.text[0] = 0;
	done = (struct sets_done){0};
	if (kill && kill_in(kill, run_in_kill, NULL, &result))
		after_kill(&was);
	else
		take_result(kill ? result : step.run(), &was, &o);
	if (!work.broken)
		check();
}

/* --- which steps --------------------------------------------------------------------------------
 */

static void draw_wishes(bool add)
{
	static const uint64_t times[] = {2 * SECOND, 7 * SECOND, 60 * SECOND, 0};
	uint64_t for_ns = times[draw() % ARRAY(times)];
	bool valued = add && step.set == VALUED && draw() % 2;

	step.n = 1 + (uint32_t)(draw() % 3 == 0 ? draw() % WISHES : 0);
	for (uint32_t i = 0; i < step.n; i++) {
		struct element *e = &step.wish[i];

		*e = any_element(valued && draw() % 4);
		e->until_ns = for_ns ? now_ns() + for_ns : PACER_NEVER;
		for (uint32_t k = 0; k < i; k++) /* each once */
			if (step.wish[k].address == e->address && step.wish[k].length == e->length)
				step.n = i;
		tell("  %s %s\n", element_text(e), e->value ? values[e->value] : "");
	}
	tell("  for %.0f s\n", (double)for_ns / 1e9);
}

static void draw_change(bool add)
{
	step.model = add ? model_add : model_del;
	step.run = add ? run_add : run_del;
	step.set = draw() % SETS;
	tell("sets %s %s\n", add ? "add" : "del", set_names[step.set]);
	draw_wishes(add);
}

static void draw_replace(void)
{
	step.model = model_replace;
	step.run = run_replace;
	step.set = draw() % SETS;
	any_contents(&step.all, step.set == VALUED && has_values(&model.now));
	tell("sets replace %s\n", set_names[step.set]);
	for (uint32_t i = 0; i < step.all.n; i++)
		tell("  %s %s\n", element_text(&step.all.at[i]),
		     step.all.at[i].value ? values[step.all.at[i].value] : "");
}

static void draw_apply(void)
{
	step.model = model_apply;
	step.run = run_apply;
	step.outline = any_outline();
	step.confirm_ns = draw() % 2 ? 0 : 100 * MS + draw() % (20 * SECOND);
	tell("apply%s\n%s", step.confirm_ns ? " on trial" : "", said(step.outline));
	for (uint32_t i = 0; i < step.outline->file[VALUED].n; i++) {
		const struct element *e = &step.outline->file[VALUED].at[i];

		tell("  %s %s\n", element_text(e), e->value ? values[e->value] : "");
	}
}

static void draw_step(void)
{
	uint64_t which = draw() % 16;

	memset(&step, 0, sizeof(step));
	if (which < 8) {
		draw_change(which < 5);
	} else if (which < 10) {
		draw_replace();
	} else if (which < 13) {
		draw_apply();
	} else if (which < 15) {
		step.model = model_confirm;
		step.run = run_confirm;
		tell("confirm\n");
	} else {
		step.model = model_rotate;
		step.run = run_rotate;
		tell("rotate\n");
	}
}

/* --- a shadow -----------------------------------------------------------------------------------
 */

static void end_shadow(void)
{
	if (!model.shadow.there)
		return;
	tell("the shadow ends\n");
	stays_shadow = NULL;
	pacer.shadow_id = 0;
	model.shadow.there = false;
	memset(places[1], 0, sizeof(places[1]));
	two_free(beside.copies, sizeof(*beside.copies));
	pages_free(beside.control, sizeof(*beside.control));
	memset(&beside, 0, sizeof(beside));
}

/* The sets of the policy that is loaded there. */
static void put_sets(const struct set_texts *texts, int fd)
{
	for (uint32_t i = 0; i < texts->n; i++) {
		int inner_fd = set_maps_new(&texts->text[i].list, set_maps_serial());

		places[fd][sets_maps_place(0, i)] = map_of(inner_fd);
		close(inner_fd);
	}
}

/* The policy in the first copy, with its sets at that descriptor. */
static struct policy *begin_with(const char *text, struct set_texts *texts, int fd)
{
	struct policy *policy = parse(text);

	if (set_texts_read(policy, texts, &error))
		fail_msg("%s: %s", text, error.text);
	put_sets(texts, fd);
	return policy;
}

/* One with another policy, and with what was added by hand to the sets of the same names. */
static void begin_shadow(void)
{
	static struct pacer_policy bin;
	const struct outline *t = any_outline();
	struct set_texts texts;
	struct policy *policy;

	if (model.shadow.there)
		return;
	see_trial();
	tell("a shadow begins\n%s", said(t));
	beside.a = pacer;
	beside.a.sets_fd = 1;
	beside.copies = two_new(sizeof(*copies));
	beside.control = pages_new(sizeof(*control));
	*beside.control = *control;
	beside.control->in_force = 0;
	beside.a.copy = beside.copies;
	beside.a.control = beside.control;
	policy = begin_with(said(t), &texts, 1);
	assert_int_equal(compile_policy(policy, NULL, &host, &bin, &plan, &error), 0);
	beside.copies[0].policy = bin;
	snprintf(beside.copies[0].text, sizeof(beside.copies[0].text), "%s", said(t));
	assert_int_equal(sets_carry(&pacer, policy, &texts, 1, &error), 0);
	set_texts_free(&texts);
	policy_free(policy);
	model.shadow = model.now;
	follow(&model.shadow, t);
	stays_shadow = &beside.a;
	pacer.shadow_id = 1;
	check();
}

/* --- walks --------------------------------------------------------------------------------------
 */

static void wait_a_while(void)
{
	uint64_t ns = draw() % 2 ? draw() % (3 * SECOND) : draw() % (30 * SECOND);

	kernel_now_ns += ns + 1;
	tell("%.3f s later\n", (double)ns / 1e9);
	check();
}

/* Mostly of a change by hand, and often of the sets of two policies. */
static void killed_step(uint32_t kill)
{
	memset(&step, 0, sizeof(step));
	if (draw() % 2) {
		draw_apply();
		step.confirm_ns = SECOND;
		take_step(0);
	}
	memset(&step, 0, sizeof(step));
	switch (draw() % 8) {
	case 0:
		draw_step();
		break;
	case 1:
		draw_replace();
		break;
	default:
		draw_change(draw() % 2);
	}
	if (!work.broken)
		take_step(kill);
}

static void any_step(void)
{
	switch (draw() % 16) {
	case 0:
	case 1:
	case 2:
		wait_a_while();
		break;
	case 3:
		begin_shadow();
		break;
	case 4:
		end_shadow();
		break;
	default:
		draw_step();
		take_step(0);
	}
}

static void load_walk(void)
{
	struct set_texts texts;

	load_text(said(model.now.outline));
	kernel_counters_new(KERNEL_SET_HITS, KERNEL_CPUS * sizeof(struct pacer_set_count),
			    PACER_SET_COUNTERS);
	pacer.set_hits_fd = KERNEL_SET_HITS;
	pacer.sets_fd = 0;
	policy_free(begin_with(said(model.now.outline), &texts, 0));
	set_texts_free(&texts);
	for (enum set set = 0; set < SETS; set++)
		model.now.file[set] = model.now.outline->file[set];
}

/* True: nothing was other than the model says. */
static bool walk(uint64_t seed, uint32_t kill, bool told)
{
	uint32_t steps = kill ? STEPS_KILLS : STEPS;

	begin_walk("test_sets_by_hand", seed, kill, told);
	memset(&model, 0, sizeof(model));
	n_outlines = 0;
	model.now = (struct side){.there = true, .outline = any_outline()};
	load_walk();
	for (uint32_t i = 0; i < steps && !work.broken; i++)
		any_step();
	if (kill && !work.broken)
		killed_step(kill);
	end_shadow();
	(void)end(NULL);
	places_end();
	return !work.broken;
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
	    cmocka_unit_test(test_walks),
	    cmocka_unit_test(test_kills),
	};

	return getenv("WALK") ? walk_again() : cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
	int file = mkstemp(file_name), result;

	if (file < 0)
		return 2;
	close(file);
	places_begin();
	setvbuf(stdout, NULL, _IOLBF, 0);
	result = tests();
	unlink(file_name);
	return result;
}
