/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * user/cli/comes_back.h: who lifts what a fleet shares is told that it comes back, where no agent
 * runs that would lift it elsewhere; and nobody else is.
 */
#include "oracle.h"

#include "cli/cmd.h"
#include "cli/comes_back.h"
#include "config/policy.h"
#include "live/sole_agent.h"

static enum sole_agent_seen seen; /* of an agent */
static int said;
static struct pacer_control control = {.in_force = 1}; /* the second copy */
static struct pacer_copy copies[2];
static struct attached a = {.ifname = "eth0", .control = &control, .copy = copies};

static void put_in_force(const char *text)
{
	struct policy_error why = {0};
	struct policy *policy = policy_parse(text, strlen(text), &why);

	if (!policy)
		fail_msg("%s: %s", text, why.text);
	policy_free(policy);
	snprintf(copies[1].text, sizeof(copies[1].text), "%s", text);
}

enum sole_agent_seen sole_agent_seen(const struct attached *of)
{
	assert_ptr_equal(of, &a);
	return seen;
}

void complaint(const char *format, ...)
{
	char line[300];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	assert_string_equal(line, "eth0: no agent of its fleet runs here: what other hosts have of "
				  "it comes back when one begins: lift it again then");
	said++;
}

#define FLEET "fleet: {store: 'http://a', name: f"
#define LIMIT "limits: [{key: src, packets: 9, window: 1s}]"
#define RULES                                                        \
	"rules:\n- {name: own, match: {proto: udp}, ban: 9s, " LIMIT \
	"}\n- {name: shared, ban: {for: 9s, fleet: yes}, " LIMIT "}\n"

static const struct {
	const char *policy, *rule; /* NULL: those of all rules */
	int said;
} bans[] = {
    {FLEET "}\n" RULES, "shared", 1},
    {FLEET "}\n" RULES, "own", 0},
    {FLEET "}\n" RULES, NULL, 1},
    {FLEET "}\n" RULES, "gone", 0}, /* a source's, which is no rule's */
    {FLEET ", bans: yes}\n" RULES, "gone", 1},
    {FLEET ", bans: yes}\n" RULES, "own", 0},
    {FLEET ", bans: yes}\nrules: []\n", NULL, 1},
    {"rules:\n- {name: own, ban: 9s, " LIMIT "}\n", "own", 0},
    {"rules:\n- {name: own, ban: 9s, " LIMIT "}\n", NULL, 0},
};

#define SETS "sets:\n- {name: own, file: /f}\n- {name: shared, file: /g, fleet: yes}\nrules: []\n"

static const struct {
	const char *set;
	int said;
} sets[] = {{"own", 0}, {"shared", 1}, {"gone", 0}};

static void test_sets(void **unused)
{
	(void)unused;
	put_in_force(FLEET "}\n" SETS);
	for (size_t i = 0; i < ARRAY(sets); i++)
		for (seen = SOLE_AGENT_NONE; seen <= SOLE_AGENT_UNSEEN; seen++) {
			said = 0;
			say_set_comes_back(&a, sets[i].set);
			assert_int_equal(said, seen == SOLE_AGENT_NONE ? sets[i].said : 0);
		}
}

static void test_bans(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < ARRAY(bans); i++)
		for (seen = SOLE_AGENT_NONE; seen <= SOLE_AGENT_UNSEEN; seen++) {
			put_in_force(bans[i].policy);
			said = 0;
			say_bans_come_back(&a, bans[i].rule);
			if (said != (seen == SOLE_AGENT_NONE ? bans[i].said : 0))
				fail_msg("row %zu, agent %d: said %d times", i, (int)seen, said);
		}
	copies[1].text[0] = '?'; /* it cannot be read: nothing is said */
	seen = SOLE_AGENT_NONE;
	said = 0;
	say_bans_come_back(&a, NULL);
	assert_int_equal(said, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_bans),
	    cmocka_unit_test(test_sets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
