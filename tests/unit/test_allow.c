/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The allow-list of a pacer at work: what a policy brings, what is put there by hand, and the same
 * beside a shadow, which is told as well.
 */
#include "changed.h"

#include "live/bans.h"
#include "live/in_shadow.h"

static void count_entry(const struct allow_entry *unused, uint64_t now_ns, void *n)
{
	(void)unused;
	(void)now_ns;
	++*(size_t *)n;
}

static void add_three(void)
{
	struct allow_entry three = entry(3, 0);

	kernel_no_lock = 0;
	assert_int_equal(allow_add(&pacer, &three, &error), 0);
}

static void locked_by_root(void)
{
	kernel_no_lock = EACCES;
}

/* Who only looks reads the file of the lock, and does without where there is none until the end. */
static void test_looking(void **unused)
{
	size_t n = 0;

	(void)unused;
	begin(SMALL RULE(WINDOW));
	change_to("allow: [192.0.2.1, 192.0.2.2]\n" SMALL RULE(WINDOW));
	assert_int_equal(allow_each(&pacer, count_entry, &n, &error), 0);
	assert_int_equal(n, 2);
	assert_int_equal(kernel_lock_flags, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	kernel_no_lock = ENOENT;
	assert_int_equal(allow_each(&pacer, count_entry, &n, &error), 0);
	assert_int_equal(n, 4);
	kernel_locks = 0;
	kernel_meanwhile_at = 2;
	kernel_meanwhile = add_three;
	assert_int_equal(allow_each(&pacer, count_entry, &n, &error), 0);
	assert_int_equal(n, 7);
	kernel_no_lock = ENOENT;
	kernel_locks = 0;
	kernel_meanwhile = locked_by_root;
	assert_int_equal(allow_each(&pacer, count_entry, &n, &error), -1);
	assert_string_equal(error.text, "/run/xdp-pacer.lock: Permission denied: be root, or of "
					"the group xdp-pacer (docs/rights.md)");
	kernel_meanwhile_at = 0;
	kernel_no_lock = 0;
	assert_int_equal(n, 7);
}

/* Any change drops what has expired; what was taken off the list by hand stays off, and what was
 * put there stays.
 */
static void test_a_change_by_hand_drops_what_has_expired(void **unused)
{
	struct allow_entry two = entry(2, 0), three = entry(3, 0);

	(void)unused;
	begin(SMALL RULE(WINDOW));
	change_to("allow: [192.0.2.1, 192.0.2.2]\n" SMALL RULE(TO_DST));
	assert_int_equal(allow_add(&pacer, &three, &error), 0);
	assert_int_equal(in_force()->rule[0].n_limiters, 2);
	kernel_now_ns += 60 * SECOND;
	assert_int_equal(allow_del(&pacer, &two.prefix, &error), 0);
	assert_int_equal(in_force()->rule[0].n_limiters, 1);
	assert_true(in_force()->rule[0].plain);
	assert_non_null(allowed_in(copies_in_force(&pacer), 1));
	assert_null(allowed_in(copies_in_force(&pacer), 2));
	assert_non_null(allowed_in(copies_in_force(&pacer), 3));
	assert_int_equal(allow_count(&pacer), 2);
}

/* --- the allow-list, which is its policy's -------------------------------------------------- */

static void test_lists_are_of_their_policies(void **unused)
{
	uint32_t before_it, tried;

	(void)unused;
	begin("allow: [192.0.2.1, 192.0.2.2]\n" SMALL RULE(WINDOW));
	change_to("allow: [192.0.2.1, 192.0.2.2]\n" SMALL RULE(WINDOW));
	before_it = copies_in_force(&pacer);
	try_out("allow: [192.0.2.2, 192.0.2.3]\n" SMALL RULE(WINDOW));
	tried = copies_in_force(&pacer);
	assert_int_equal(tried, before_it ^ 1);
	assert_true(allowed_in(before_it, 1) && allowed_in(before_it, 2));
	assert_null(allowed_in(before_it, 3));
	assert_null(allowed_in(tried, 1));
	assert_true(allowed_in(tried, 2) && allowed_in(tried, 3));
	assert_int_equal(control->allowed[before_it].v4, 2);
	assert_int_equal(control->allowed[tried].v4, 2);
	/* for ever, and the policy's alone: a trial's end is the policy's, not theirs */
	assert_true(!allowed_in(tried, 3)->until_ns && !allowed_in(tried, 3)->hand_until_ns);
	assert_true(allowed_in(tried, 3)->of_policy && !allowed_in(tried, 3)->by_hand);
	assert_int_equal(change_confirm(&pacer, &error), 0);
	change_to(SMALL RULE(WINDOW));
	assert_int_equal(allow_count(&pacer), 0);
	assert_null(allowed_in(copies_in_force(&pacer), 2));
}

/* By hand, and for a time: also beside the policy's, which is for ever. In both during a trial. */
static void test_by_hand_in_both_lists(void **unused)
{
	struct allow_entry one, two;
	uint32_t copy;

	(void)unused;
	begin(SMALL RULE(WINDOW));
	one = entry(1, kernel_now_ns + SECOND);
	two = entry(2, kernel_now_ns + 90 * SECOND);
	assert_int_equal(allow_add(&pacer, &one, &error), 0);
	assert_false(allowed_in(copies_in_force(&pacer), 1)->of_policy);
	try_out("allow: [192.0.2.1]\n" SMALL RULE(WINDOW));
	assert_int_equal(allow_add(&pacer, &two, &error), 0);
	for (copy = 0; copy < 2; copy++) {
		assert_true(allowed_in(copy, 2)->until_ns == two.hand_until_ns);
		assert_true(allowed_in(copy, 1)->hand_until_ns == one.hand_until_ns);
		assert_int_equal(control->allowed[copy].v4, 2);
	}
	copy = copies_in_force(&pacer);
	assert_true(!allowed_in(copy, 1)->until_ns && allowed_in(copy, 1)->of_policy);
	assert_true(allowed_in(copy ^ 1, 1)->until_ns == one.hand_until_ns);
	assert_int_equal(allow_del(&pacer, &two.prefix, &error), 0);
	assert_true(!allowed_in(0, 2) && !allowed_in(1, 2));
	kernel_now_ns += 31 * SECOND; /* it has given way, and what was by hand has run out */
	assert_int_equal(allow_add(&pacer, &two, &error), 0);
	assert_null(allowed_in(copies_in_force(&pacer), 1));
	assert_int_equal(allow_count(&pacer), 1);
}

/* What is added as it ends is on the list of the policy that comes back. */
static void test_a_trial_ends_while_it_is_added_to(void **unused)
{
	(void)unused;
	for (uint64_t looks = 0; looks < 8; looks++) {
		struct allow_entry five;

		begin_to_end(looks);
		five = entry(5, kernel_now_ns + 90 * SECOND);
		assert_int_equal(allow_add(&pacer, &five, &error), 0);
		clock_step_ns = 0;
		kernel_now_ns += looks;
		assert_int_equal(copies_pending_ns(&pacer), 0);
		assert_non_null(allowed_in(copies_in_force(&pacer), 5));
		end(NULL);
	}
}

/* What both copies' lists hold, and how many they say. */
struct lists_seen {
	struct pacer_allow_value value[2][4];
	bool is[2][4];
	union pacer_allowed count[2];
};

static struct lists_seen see_lists(void)
{
	struct lists_seen seen;

	memset(&seen, 0, sizeof(seen));
	for (uint32_t copy = 0; copy < 2; copy++) {
		for (uint32_t i = 0; i < 4; i++) {
			const struct pacer_allow_value *value = allowed_in(copy, i);

			seen.is[copy][i] = value;
			if (value)
				seen.value[copy][i] = *value;
		}
		seen.count[copy] = control->allowed[copy];
	}
	return seen;
}

static int add_by_hand(uint32_t addr)
{
	struct allow_entry new = entry(addr, kernel_now_ns + 90 * SECOND);

	return allow_add(&pacer, &new, &error);
}

static int del_by_hand(uint32_t addr)
{
	struct allow_entry old = entry(addr, 0);

	return allow_del(&pacer, &old.prefix, &error);
}

/* As many changes as there are maps' entries to write: of each that fails none is left. */
static void all_or_nothing(int (*change)(uint32_t addr), uint32_t addr, unsigned int changes)
{
	struct lists_seen before = see_lists(), after;
	unsigned int n = 0;

	do {
		kernel_changes = 0;
		kernel_fails_at = ++n;
		if (!change(addr))
			break;
		after = see_lists();
		assert_memory_equal(&before, &after, sizeof(before));
		assert_string_equal(error.text, "eth0: its allow-list cannot be written: "
						"Input/output error");
	} while (n < 9);
	kernel_fails_at = 0;
	assert_int_equal(n, changes + 1);
}

static void test_by_hand_in_both_lists_or_in_none(void **unused)
{
	(void)unused;
	begin(SMALL RULE(WINDOW));
	change_to("allow: [192.0.2.1]\n" SMALL RULE(WINDOW));
	all_or_nothing(add_by_hand, 2, 1); /* a new one */
	all_or_nothing(add_by_hand, 1, 1); /* and one of the policy, whose it stays */
	all_or_nothing(del_by_hand, 1, 1);
	assert_int_equal(allow_count(&pacer), 1);
	try_out("allow: [192.0.2.1, 192.0.2.3]\n" SMALL RULE(WINDOW));
	all_or_nothing(add_by_hand, 3, 2);
	all_or_nothing(add_by_hand, 1, 2);
	all_or_nothing(del_by_hand, 3, 2);
	assert_true(!allowed_in(0, 3) && !allowed_in(1, 3) && allowed_in(0, 1) && allowed_in(1, 1));
	assert_int_equal(del_by_hand(3), -1);
	assert_string_equal(error.text, "eth0: 192.0.2.3: is not on the allow-list: see "
					"`xdp-pacer allow eth0 list`");
	kernel_now_ns += 91 * SECOND; /* what has lapsed goes first, which may fail as well */
	kernel_changes = 0;
	kernel_fails_at = 1;
	assert_int_equal(add_by_hand(3), -1);
	assert_non_null(strstr(error.text, "cannot be written"));
	kernel_fails_at = 0;
	assert_int_equal(add_by_hand(3), 0);
}

static const struct pacer_allow_value *allowed_within(uint32_t len)
{
	struct pacer_allow4 key = {
	    PACER_ALLOW_COPY_BITS + len, copies_in_force(&pacer), {192, 0, 2}};
	static struct pacer_allow_value value;

	return bpf_map_lookup_elem(KERNEL_ALLOW4, &key, &value) ? NULL : &value;
}

/* Until when packets of 192.0.2.5 pass, as its own entry says, and of 192.0.2.0/28. */
static void passes_until(uint64_t one_ns, uint64_t some_ns)
{
	const struct pacer_allow_value *value = allowed_in(copies_in_force(&pacer), 5);

	assert_non_null(value);
	assert_true(value->until_ns == one_ns);
	value = allowed_within(28);
	assert_non_null(value);
	assert_true(value->until_ns == some_ns);
}

static void net_by_hand(uint8_t len, uint64_t until_ns)
{
	struct allow_entry net = {.prefix = {4, len, {192, 0, 2}}, .hand_until_ns = until_ns};

	assert_int_equal(allow_add(&pacer, &net, &error), 0);
}

#define LISTED "allow: [192.0.2.0/24]\n" SMALL RULE(WINDOW)

/*
 * Packets look at the longest prefix of their source alone: one that ends hides no wider one that
 * does not, whichever came first, and ends by itself where that goes.
 */
static void test_by_hand_within_a_wider_one(void **unused)
{
	struct allow_entry five, found;
	struct prefix net = {4, 24, {192, 0, 2}};
	struct prefix beside = {4, 32, {192, 0, 2, 77}}, elsewhere = {4, 32, {198, 51, 100, 1}};
	uint64_t five_ns, some_ns;

	(void)unused;
	begin(SMALL RULE(WINDOW));
	change_to(LISTED);
	five_ns = kernel_now_ns + 600 * SECOND;
	some_ns = kernel_now_ns + 900 * SECOND;
	five = entry(5, five_ns);
	assert_int_equal(allow_add(&pacer, &five, &error), 0);
	net_by_hand(28, some_ns);
	passes_until(0, 0);
	assert_true(allowed_in(copies_in_force(&pacer), 5)->hand_until_ns == five_ns);
	change_to(SMALL RULE(WINDOW));
	passes_until(some_ns, some_ns);
	change_to(LISTED);
	passes_until(0, 0);
	assert_int_equal(allow_find(&pacer, &five.prefix, &found, &error), 1);
	assert_int_equal(found.prefix.len, 24);
	assert_int_equal(allow_del(&pacer, &net, &error), 0);
	passes_until(some_ns, some_ns);
	assert_int_equal(allow_find(&pacer, &five.prefix, &found, &error), 1);
	assert_int_equal(found.prefix.len, 28);
	net_by_hand(24, five_ns + SECOND);
	passes_until(some_ns, some_ns);
	net_by_hand(24, some_ns + SECOND);
	passes_until(some_ns + SECOND, some_ns + SECOND);
	net_by_hand(24, some_ns - SECOND);
	passes_until(some_ns, some_ns);
	assert_int_equal(allow_find(&pacer, &five.prefix, &found, &error), 1);
	assert_int_equal(found.prefix.len, 28); /* of those that end it is the last */
	assert_int_equal(allow_find(&pacer, &beside, &found, &error), 1);
	assert_int_equal(found.prefix.len, 24);
	assert_int_equal(allow_find(&pacer, &elsewhere, &found, &error), 0);
	kernel_now_ns = five_ns; /* its own entry has lapsed, and goes */
	assert_int_equal(allow_find(&pacer, &five.prefix, &found, &error), 1);
	assert_int_equal(found.prefix.len, 28);
	net_by_hand(24, 0);
	assert_null(allowed_in(copies_in_force(&pacer), 5));
	assert_int_equal(allow_find(&pacer, &five.prefix, &found, &error), 1);
	assert_int_equal(found.prefix.len, 24);
	five = entry(5, 0);
	assert_int_equal(allow_add(&pacer, &five, &error), 0);
	assert_int_equal(allow_find(&pacer, &five.prefix, &found, &error), 1);
	assert_int_equal(found.prefix.len, 32); /* of those that last as long the longest */
}

static int net_for_ever(uint32_t unused)
{
	struct allow_entry net = {.prefix = {4, 24, {192, 0, 2}}};

	(void)unused;
	return allow_add(&pacer, &net, &error);
}

static int no_net(uint32_t unused)
{
	struct allow_entry net = {.prefix = {4, 24, {192, 0, 2}}};

	(void)unused;
	return allow_del(&pacer, &net.prefix, &error);
}

/* What it holds, too. */
static void test_a_wider_one_or_none(void **unused)
{
	(void)unused;
	begin(SMALL RULE(WINDOW));
	assert_int_equal(add_by_hand(1), 0);
	assert_int_equal(add_by_hand(2), 0);
	all_or_nothing(net_for_ever, 0, 3);
	assert_int_equal(allowed_in(0, 1)->until_ns, 0);
	all_or_nothing(no_net, 0, 3);
	assert_true(allowed_in(0, 1)->until_ns == kernel_now_ns + 90 * SECOND);
}

/* --- by hand, beside a shadow --------------------------------------------------------------- */

#define ALONE "it is done in force, and not in the shadow: eth0: "

static struct attached shadow;
static struct pacer_control shadow_control;

static void begin_shadow(void)
{
	begin("allow: [192.0.2.1]\n" SMALL RULE(WINDOW));
	change_to("allow: [192.0.2.1]\n" SMALL RULE(WINDOW));
	kernel_map_new(KERNEL_SHADOW4, sizeof(struct pacer_allow4),
		       sizeof(struct pacer_allow_value));
	kernel_map_new(KERNEL_SHADOW6, sizeof(struct pacer_allow6),
		       sizeof(struct pacer_allow_value));
	shadow_control = *control;
	shadow_control.allowed[0] = shadow_control.allowed[1] = (union pacer_allowed){.any = 0};
	shadow = pacer;
	shadow.allow4_fd = KERNEL_SHADOW4;
	shadow.allow6_fd = KERNEL_SHADOW6;
	shadow.control = &shadow_control;
	pacer.shadow_id = 1;
	stays_shadow = &shadow;
}

static int end_shadow(void **unused)
{
	stays_shadow = NULL;
	stays_unread = false;
	kernel_fails_at = 0;
	kernel_map_new(KERNEL_SHADOW4, sizeof(struct pacer_allow4),
		       sizeof(struct pacer_allow_value));
	return end(unused);
}

/* The change of the shadow's list, which comes second, fails: what is in force stays, and it is
 * said. */
static void not_in_shadow(int (*change)(uint32_t addr), uint32_t addr)
{
	uint32_t were = shadow_control.allowed[copies_in_force(&shadow)].v4;

	kernel_changes = 0;
	kernel_fails_at = 2;
	assert_int_equal(change(addr), IN_SHADOW_FAILED);
	assert_int_equal(kernel_changes, 3); /* and put back */
	assert_string_equal(error.text,
			    ALONE "its allow-list cannot be written: Input/output error");
	assert_int_equal(shadow_control.allowed[copies_in_force(&shadow)].v4, were);
	kernel_fails_at = 0;
}

static void test_by_hand_in_a_shadow_too(void **unused)
{
	(void)unused;
	begin_shadow();
	not_in_shadow(add_by_hand, 2);
	assert_non_null(allowed_in(copies_in_force(&pacer), 2));
	assert_int_equal(add_by_hand(2), 0);
	assert_int_equal(shadow_control.allowed[copies_in_force(&shadow)].v4, 1);
	not_in_shadow(del_by_hand, 2);
	assert_null(allowed_in(copies_in_force(&pacer), 2));
	assert_int_equal(del_by_hand(2), 0); /* the next time */
	assert_int_equal(shadow_control.allowed[copies_in_force(&shadow)].v4, 0);
	assert_int_equal(del_by_hand(2), -1);
	assert_non_null(strstr(error.text, "is not on the allow-list"));
	assert_int_equal(add_by_hand(2), 0);
	assert_int_equal(del_by_hand(2), 0);
	assert_int_equal(shadow_control.allowed[copies_in_force(&shadow)].v4, 0);
	assert_int_equal(del_by_hand(1), 0); /* the shadow's policy does not list it */
	stays_unread = true;
	assert_int_equal(add_by_hand(2), IN_SHADOW_FAILED);
	assert_string_equal(error.text, ALONE "its maps cannot be read: no reason");
	assert_non_null(allowed_in(copies_in_force(&pacer), 2));
}

/* Nothing fits between the list in force and the shadow's: they would be two lists from then on. */
static void test_by_hand_in_one_turn(void **unused)
{
	static int (*const changes[])(uint32_t) = {add_by_hand, del_by_hand};

	(void)unused;
	begin_shadow();
	for (size_t i = 0; i < ARRAY(changes); i++) {
		kernel_one_turn();
		assert_int_equal(changes[i](2), 0);
		kernel_one_turn_ends();
		assert_int_equal(!!allowed_in(copies_in_force(&pacer), 2), !i);
		assert_int_equal(shadow_control.allowed[copies_in_force(&shadow)].v4, !i);
	}
	assert_int_equal(add_by_hand(2), 0);
	stays_shadow = NULL;
	assert_int_equal(del_by_hand(2), 0);
	stays_shadow = &shadow; /* which has it alone */
	kernel_one_turn();
	assert_int_equal(del_by_hand(2), 0);
	kernel_one_turn_ends();
	assert_int_equal(shadow_control.allowed[copies_in_force(&shadow)].v4, 0);
}

/* A pacer with a shadow of that policy, which has bans of its own. */
static void begin_banning_shadow(const char *text)
{
	struct policy *policy = parse(text);

	begin("bans: 64\n" SMALL RULE(WINDOW));
	shadow_control = *control;
	shadow = pacer;
	shadow.control = &shadow_control;
	shadow.copy = calloc(2, sizeof(*shadow.copy));
	shadow.lines = aligned_alloc(64, pacer.n_lines * sizeof(*shadow.lines));
	assert_true(shadow.copy && shadow.lines);
	memset(shadow.lines, 0, pacer.n_lines * sizeof(*shadow.lines));
	assert_int_equal(compile_policy(policy, NULL, &host, &shadow.copy[0].policy, &plan, &error),
			 0);
	policy_free(policy);
	memcpy(shadow.copy[0].text, text, strlen(text));
	pacer.shadow_id = 1;
	stays_shadow = &shadow;
}

static int end_banning_shadow(void **unused)
{
	free(shadow.copy);
	free(shadow.lines);
	return end_shadow(unused);
}

static const struct ban_wish someone = {.key = "192.0.2.7"};

static int ban_someone(const char *rule)
{
	struct bans_done done;

	return bans_add(&pacer, rule, &someone, 1, &done, &error);
}

static int let_someone_off(void)
{
	struct bans_done done;

	return bans_lift(&pacer, NULL, &someone, 1, &done, &error);
}

static void assert_banned(size_t in_force, size_t in_shadow)
{
	assert_int_equal(bans_each(&pacer, NULL, NULL, NULL), in_force);
	assert_int_equal(bans_each(&shadow, NULL, NULL, NULL), in_shadow);
}

/* Promoted, the shadow would have neither the ban nor the lifting: that is said, and done by doing
 * it again. */
static void test_bans_in_a_shadow_too(void **unused)
{
	char *text;

	(void)unused;
	begin_banning_shadow("bans: 64\n" SMALL RULE(WINDOW));
	text = shadow.copy[0].text;
	stays_unread = true;
	assert_int_equal(ban_someone(NULL), IN_SHADOW_FAILED);
	assert_string_equal(error.text, ALONE "its maps cannot be read: no reason");
	assert_banned(1, 0);
	stays_unread = false;
	assert_int_equal(ban_someone(NULL), 0);
	assert_banned(1, 1);
	stays_unread = true;
	assert_int_equal(let_someone_off(), IN_SHADOW_FAILED);
	assert_string_equal(error.text, ALONE "its maps cannot be read: no reason");
	assert_banned(0, 1);
	stays_unread = false;
	*text = '[';
	assert_int_equal(let_someone_off(), IN_SHADOW_FAILED);
	assert_string_equal(error.text, ALONE "no memory for its policy");
	assert_int_equal(ban_someone(NULL), IN_SHADOW_FAILED);
	assert_string_equal(error.text, ALONE "no memory for its policy");
	*text = 'b';
	assert_int_equal(let_someone_off(), 0);
	assert_banned(0, 0);
	stays_shadow = NULL; /* it has just ended */
	assert_int_equal(ban_someone(NULL), 0);
	assert_int_equal(let_someone_off(), 0);
}

/* A rule or a table that the shadow's policy has not is no error. */
static void test_bans_as_far_as_the_shadow_has_room(void **unused)
{
	begin_banning_shadow(SMALL "rules:\n- name: a\n  limits: [" LARGE "]\n");
	assert_int_equal(ban_someone("a"), 0);
	assert_banned(1, 0);
	end_banning_shadow(unused);
	begin_banning_shadow("bans: 64\n" SMALL "rules:\n- name: b\n  limits: [" LARGE "]\n");
	assert_int_equal(ban_someone("a"), 0);
	assert_banned(1, 0);
}

#define CASE(f) cmocka_unit_test_teardown(f, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_a_trial_ends_while_it_is_added_to),
	    CASE(test_a_change_by_hand_drops_what_has_expired),
	    CASE(test_looking),
	    CASE(test_lists_are_of_their_policies),
	    CASE(test_by_hand_in_both_lists),
	    CASE(test_by_hand_in_both_lists_or_in_none),
	    CASE(test_by_hand_within_a_wider_one),
	    CASE(test_a_wider_one_or_none),
	    cmocka_unit_test_teardown(test_by_hand_in_a_shadow_too, end_shadow),
	    cmocka_unit_test_teardown(test_by_hand_in_one_turn, end_shadow),
	    cmocka_unit_test_teardown(test_bans_in_a_shadow_too, end_banning_shadow),
	    cmocka_unit_test_teardown(test_bans_as_far_as_the_shadow_has_room, end_banning_shadow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
