/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tables of bans that are small and get full, so that keys have to move for others: bans are made
 * and lifted by hand, by a fleet and, while a change waits, by packets; the secret is changed, the
 * table gets another size, on trial or not. Before and after each step the list is compared.
 *
 * A ban that is listed as one that refuses is refused, each other is not. None is lost but those
 * that are lifted, and of a table that gets smaller as many as it says. What was banned is there,
 * what was lifted is not, and an end that the fleet says is the end.
 *
 * In some walks changes are killed as they write for the n-th time, and the walk goes on.
 */
#define WALKS  30u
#define SWEEPS 15u
#include "walks.h"

#include "live/bans.h"
#include "live/fleet_bans.h"

#define STEPS	     60u
#define STEPS_KILLS  80u
#define CROWD	     30u
#define ADDRESSES    140u
#define OF_HOOK	     120u /* packets ban these and later ones, and nobody else does */
#define BAN_NS	     (3 * SECOND)
#define NO_RULE_PORT (RULE_PORT + 1)

enum whom { OF_SOURCE, OF_RULE, BOTH };

/* When each ban ends, by the packets' clock; 0: there is none. */
struct list {
	uint64_t end_ns[BOTH][ADDRESSES];
	bool in_force[BOTH][ADDRESSES];
	uint32_t n;
	bool twice; /* a key has two entries */
};

static struct list is;

static uint64_t end_of(uint64_t left_ns)
{
	return left_ns == PACER_NEVER ? PACER_NEVER : kernel_now_ns + left_ns;
}

static void take_ban(const struct ban *ban, void *unused)
{
	uint32_t i = (uint32_t)strtoul(strrchr(ban->key, '.') + 1, NULL, 10);
	enum whom of = *ban->rule ? OF_RULE : OF_SOURCE;
	uint64_t end_ns = end_of(ban->left_ns);

	(void)unused;
	assert_in_range(i, 0, ADDRESSES - 1);
	is.n++;
	is.twice |= is.end_ns[of][i] > 0;
	if (is.end_ns[of][i] < end_ns)
		is.end_ns[of][i] = end_ns;
	is.in_force[of][i] |= ban->in_force;
}

static void read_list(void)
{
	struct policy *policy = parse(copies[copies_in_force(&pacer)].text);

	memset(&is, 0, sizeof(is));
	bans_each(&pacer, policy, take_ban, NULL);
	policy_free(policy);
}

/* --- policies -----------------------------------------------------------------------------------
 */

static uint32_t n_policies;

static const char *any_policy(void)
{
	static const uint32_t rooms[] = {16, 32, 64, 128};
	uint32_t room = rooms[draw() % ARRAY(rooms)];

	say_again();
	say("# %" PRIu32 "\nbans: %" PRIu32 "\nmemory: 512Ki\nclock: exact\nrules:%s", n_policies++,
	    room, draw() % 4 ? "\n" : " []\n");
	if (!strstr(doc.s, "[]"))
		say("- {name: a, match: {dport: %u}, ban: 3s, limits: [{key: src, packets: "
		    "1000000, window: 1s, entries: 64}]}\n",
		    RULE_PORT);
	return doc.s;
}

static bool has_rule(void)
{
	return strstr(copies[copies_in_force(&pacer)].text, "name: a");
}

static struct pacer_ban_key key_of(const struct pacer_policy *p, enum whom of, uint32_t i)
{
	uint32_t address[4] = {address_of(0) - 1 + i};
	struct pacer_ban_key key = pacer_ban_source(PACER_FAMILY_4, address, 32);

	if (of == OF_RULE) {
		key.rule = p->rule[0].id;
		key.key_id = p->rule[0].limiter[0].key_id;
	}
	return key;
}

/* --- what befalls while a change waits ----------------------------------------------------------
 */

/* A packet that was over its limit, by either policy, as it could be then. */
static struct {
	uint32_t key;	 /* 0: there was none */
	uint64_t end_ns; /* of its ban */
	uint32_t before; /* the copy that was in force before the change */
	bool waited;	 /* the change waited for packets of that copy when it was so no more */
} over;

static void a_packet_bans(void)
{
	uint32_t copy = draw() % 2 ? copies_in_force(&pacer) : over.before;
	const struct pacer_policy *p = &copies[copy].policy;
	uint32_t key = OF_HOOK + (uint32_t)(draw() % (ADDRESSES - OF_HOOK));
	struct pacer_table table = {pacer.lines, (uint32_t)pacer.n_lines};
	struct pacer_ban_ask q = {&table, &p->bans, kernel_now_ns, {0, 0}, {0}, 0};

	over.waited |= copies_in_force(&pacer) != over.before;
	if (draw() % 2 || !p->rule[0].ban_ns)
		return;
	q.key = key_of(p, OF_RULE, key);
	q.hash = pacer_ban_hash(&q.key, control->secret[p->secret & 1]);
	if (pacer_ban_add(&q, kernel_now_ns + BAN_NS) != PACER_BANNED)
		return;
	over.key = key;
	over.end_ns = kernel_now_ns + BAN_NS;
	tell("  a packet bans 10.0.0.%" PRIu32 " in copy %" PRIu32 "\n", key, copy);
}

/* --- steps --------------------------------------------------------------------------------------
 */

static struct step {
	int (*run)(void);
	enum whom of;
	uint32_t key;
	uint64_t for_ns; /* 0: until it is lifted */
	const char *text;
	uint64_t confirm_ns;
	struct fleet_ban told;
} step;

static struct bans_done done;

static struct ban_wish wish(void)
{
	static char text[16];

	snprintf(text, sizeof(text), "10.0.0.%" PRIu32, step.key);
	return (struct ban_wish){.key = text, .for_ns = step.for_ns};
}

static int run_add(void)
{
	struct ban_wish w = wish();

	return bans_add(&pacer, step.of == OF_RULE ? "a" : NULL, &w, 1, &done, &error);
}

static int run_lift(void)
{
	struct ban_wish w = wish();

	return bans_lift(&pacer, step.of == OF_RULE ? "a" : "", &w, 1, &done, &error);
}

static int run_fleet(void)
{
	return fleet_bans_set(&pacer, &step.told, 1, &error);
}

static int run_apply(void)
{
	static const struct set_texts no_sets;

	return change_apply(&pacer, step.text, &no_sets, step.confirm_ns, &plan, &error);
}

static int run_in_kill(const void *unused)
{
	(void)unused;
	return step.run();
}

/* Of one that is there, if there is one. */
static void draw_fleet(void)
{
	for (uint32_t i = 0; i < 30 && !is.end_ns[step.of][step.key]; i++) {
		step.of = has_rule() ? draw() % BOTH : OF_SOURCE;
		step.key = 1 + (uint32_t)(draw() % (ADDRESSES - 1));
	}
	if (!has_rule())
		step.of = OF_SOURCE;
	step.run = run_fleet;
	step.told.key = key_of(&copies[copies_in_force(&pacer)].policy, step.of, step.key);
	step.told.was_ns = is.end_ns[step.of][step.key];
	step.told.until_ns = draw() % 4 ? kernel_now_ns + (30 + draw() % 30) * SECOND : 0;
	tell("the fleet says %.0f s of 10.0.0.%" PRIu32 "%s\n",
	     step.told.until_ns ? (double)(step.told.until_ns - kernel_now_ns) / 1e9 : 0, step.key,
	     step.of == OF_RULE ? " of a" : "");
}

static uint32_t to_come; /* so many steps ban somebody: the table gets full */

static void draw_step(void)
{
	uint64_t which = to_come ? to_come--, 0 : draw() % 48;

	memset(&step, 0, sizeof(step));
	step.of = draw() % 3 ? OF_SOURCE : OF_RULE;
	step.key = 1 + (uint32_t)(draw() % (OF_HOOK - 1));
	step.for_ns = draw() % 3 ? 0 : (1 + draw() % 20) * SECOND;
	if (which < 27) {
		step.run = which < 22 ? run_add : run_lift;
		tell("ban %s 10.0.0.%" PRIu32 "%s for %.0f s\n", which < 22 ? "add" : "del",
		     step.key, step.of == OF_RULE ? " of a" : "", (double)step.for_ns / 1e9);
	} else if (which < 35) {
		draw_fleet();
	} else if (which < 39) {
		step.run = run_rotate;
		tell("rotate\n");
	} else if (which < 45) {
		step.run = run_apply;
		step.text = any_policy();
		step.confirm_ns = draw() % 3 ? 0 : 5 * SECOND;
		tell("apply%s\n%s", step.confirm_ns ? " on trial" : "", step.text);
	} else {
		step.run = run_confirm;
		tell("confirm\n");
	}
}

/* --- what has to be so --------------------------------------------------------------------------
 */

static const char *ban_text(enum whom of, uint32_t i)
{
	static char text[32];

	snprintf(text, sizeof(text), "10.0.0.%" PRIu32 "%s", i, of == OF_RULE ? " of a" : "");
	return text;
}

static bool is_refused(uint32_t i, uint32_t port)
{
	struct sent p = {i - 1, port, FIRST_FLOW};

	return pacer_outcome_reason(judge(draw() % KERNEL_CPUS, p)) == PACER_DENY_BAN;
}

static void check_packets(void)
{
	bool rule = has_rule();

	for (uint32_t i = 1; i < ADDRESSES && !work.broken; i++) {
		bool source = is.in_force[OF_SOURCE][i], by_rule = is.in_force[OF_RULE][i] && rule;

		if (is_refused(i, NO_RULE_PORT) != source)
			break_it("%s is %slisted, and packets say otherwise",
				 ban_text(OF_SOURCE, i), source ? "" : "not ");
		else if (is_refused(i, RULE_PORT) != (source || by_rule))
			break_it("%s is %slisted, and packets say otherwise", ban_text(OF_RULE, i),
				 by_rule ? "" : "not ");
		else if (is.end_ns[OF_SOURCE][i] && !source)
			break_it("%s is listed as one that refuses nobody", ban_text(OF_SOURCE, i));
		else if (is.end_ns[OF_RULE][i] && rule && !is.in_force[OF_RULE][i])
			break_it("%s is listed as one that refuses nobody", ban_text(OF_RULE, i));
	}
}

/* How many of these end sooner now, but for what the step is to end. */
static uint32_t lost_of(const struct list *was, bool had_rule)
{
	uint32_t lost = 0;

	for (enum whom of = 0; of < BOTH; of++)
		for (uint32_t i = 1; i < ADDRESSES; i++) {
			bool ends = (step.run == run_lift || step.run == run_fleet) &&
				    of == step.of && i == step.key;

			if (was->end_ns[of][i] <= kernel_now_ns || ends ||
			    is.end_ns[of][i] >= was->end_ns[of][i] ||
			    (of == OF_RULE && !(had_rule && has_rule())))
				continue;
			tell("  lost: %s\n", ban_text(of, i));
			lost++;
		}
	return lost;
}

/* Of bans that were left out, some may have ended or be nobody's: no more are lost than it says. */
static void check_lost(const struct list *was, bool had_rule, int result, bool killed)
{
	uint32_t lost = lost_of(was, had_rule), may = 0;

	if (step.run == run_apply && killed) /* what it would have said nobody knows */
		return;
	if (step.run == run_apply && result >= 0)
		may = (uint32_t)plan.bans_left_out;
	if (lost > may)
		break_it("%" PRIu32 " bans are lost, and it says %" PRIu32, lost, may);
}

static void check_done(const struct list *was)
{
	uint64_t end_ns = is.end_ns[step.of][step.key];
	bool listed = step.of == OF_SOURCE || has_rule();

	if (step.run == run_add && done.done && listed &&
	    end_ns < (step.for_ns ? kernel_now_ns + step.for_ns : PACER_NEVER))
		break_it("%s was banned, and is not", ban_text(step.of, step.key));
	if (step.run == run_add && !done.done && !was->twice && bans_room(&pacer) >= 64 &&
	    was->n < bans_room(&pacer) * 3 / 4)
		break_it("there is no room in %zu, of which %" PRIu32 " are full",
			 bans_room(&pacer), was->n);
	if (step.run == run_lift && end_ns)
		break_it("%s was lifted, and is banned", ban_text(step.of, step.key));
	if (step.run == run_fleet && step.told.done && end_ns != step.told.until_ns)
		break_it("%s does not end as the fleet says", ban_text(step.of, step.key));
}

/* A table that has all of the one before is as good as that, and so has its number. */
static void check_begun(uint32_t begun, size_t room)
{
	if ((bans_begun(&pacer) == begun) != !plan.bans_left_out)
		break_it("%zu bans are left out, and the table says it has %s", plan.bans_left_out,
			 plan.bans_left_out ? "all" : "not all");
	if (room != bans_room(&pacer) && !over.waited)
		break_it("what packets of the policy before ban is not waited for");
}

/* What was banned while the change waited goes on. */
static void check_over(uint32_t before, bool had_rule)
{
	bool changed = step.run == run_rotate || copies_in_force(&pacer) != before;

	if (!over.key || over.end_ns <= kernel_now_ns || !had_rule || !has_rule() || !changed ||
	    plan.bans_left_out)
		return;
	if (!is.end_ns[OF_RULE][over.key])
		break_it("what a packet banned meanwhile is lost: %s", ban_text(OF_RULE, over.key));
}

/* True: it was killed. So are all rotations, and then the table gets full. */
static bool run_or_be_killed(uint32_t kill, int *result)
{
	bool rotates = step.run == run_rotate, killed_now = false;

	if (kill && step.run != run_fleet && (rotates || draw() % 3 == 0))
		killed_now = kill_in(kill, run_in_kill, NULL, result);
	else
		*result = step.run();
	if (killed_now && rotates)
		to_come = CROWD;
	return killed_now;
}

static void take_step(uint32_t kill)
{
	struct list was;
	bool had_rule = has_rule(), killed_now;
	uint32_t before = copies_in_force(&pacer), begun = bans_begun(&pacer);
	size_t room = bans_room(&pacer);
	int result = 0;

	read_list();
	was = is;
	draw_step();
	over.key = 0;
	over.before = before;
	over.waited = false;
	error.text[0] = 0;
	memset(&done, 0, sizeof(done));
	plan.bans_left_out = 0;
	grace_hook = a_packet_bans;
	killed_now = run_or_be_killed(kill, &result);
	grace_hook = NULL;
	work.killed += killed_now;
	work.done += !killed_now && result >= 0;
	tell("-> %s%s\n",
	     killed_now	  ? "killed"
	     : result < 0 ? error.text
			  : "done",
	     is.twice ? ", and keys stood twice" : "");
	read_list();
	check_packets();
	if (!work.broken)
		check_lost(&was, had_rule, result, killed_now);
	if (work.broken || killed_now || result < 0)
		return;
	check_done(&was);
	if (step.run == run_apply && !work.broken)
		check_begun(begun, room);
	if (!work.broken)
		check_over(before, had_rule);
}

static bool walk(uint64_t seed, uint32_t kill, bool told)
{
	uint32_t steps = kill ? STEPS_KILLS : STEPS;

	begin_walk("test_crowded", seed, kill, told);
	to_come = kill ? CROWD : 0;
	n_policies = 0;
	load_text(any_policy());
	killed.lines = true;
	for (uint32_t i = 0; i < steps && !work.broken; i++) {
		if (draw() % 12 == 0)
			kernel_now_ns += draw() % (12 * SECOND);
		take_step(kill);
	}
	(void)end(NULL);
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
	return with_saved(tests);
}
