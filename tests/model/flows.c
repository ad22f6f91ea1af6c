/* SPDX-License-Identifier: GPL-2.0-only */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "flows.h"
#include "flow.h"

/* The tables leave out what is 0. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define ARRAY(a) (sizeof(a) / sizeof((a)[0]))
#define FLOWS	 8
#define RULE_ID	 7

/* Source and destination. 3 and 4 are what a torn read of 1 and 2 would be. */
static const uint32_t ends[FLOWS][2] = {
    [1] = {10, 11}, [2] = {20, 21}, [3] = {10, 21}, [4] = {20, 11},
    [5] = {50, 51}, [6] = {60, 61}, [7] = {70, 71},
};

/* What a CPU was told; the words of a note. */
struct told {
	uint64_t flow, now_ns, known, unused[5];
};

_Static_assert(sizeof(struct told) == EXPLORE_NOTE_WORDS * sizeof(uint64_t), "a note's words");

static struct pacer_line lines[PACER_FLOW_WAYS];
static struct pacer_policy policy;
static const __u64 secret[2 * PACER_SECRETS];
static struct pacer_state state = {
    .table = {lines, ARRAY(lines)}, .policy = &policy, .secret = secret};

static struct {
	const struct flow_scenario *scenario;
	struct outcome *outcome;
	char fault[EXPLORE_FAULT_MAX];
} f;

#define FAULT(...) (snprintf(f.fault, sizeof(f.fault), __VA_ARGS__), f.fault)

static struct pacer_walk walk_of(uint32_t flow, uint64_t now_ns)
{
	struct pacer_walk w = {.state = &state, .now_ns = now_ns};

	w.pkt =
	    (struct pacer_packet){.family = PACER_FAMILY_4, .proto = 17, .vlan = PACER_VLAN_NONE};
	w.pkt.key[PACER_WORD_SADDR] = ends[flow][0];
	w.pkt.key[PACER_WORD_DADDR] = ends[flow][1];
	w.pkt.key[PACER_WORD_META] = 17;
	return w;
}

static void act(const struct flow_step *step, struct told *told)
{
	struct pacer_walk w = walk_of(step->flow, step->now_ns);

	*told = (struct told){step->flow, step->now_ns, 0, {0}};
	if (step->op == FLOW_KEEP)
		(void)pacer_flow_keep(&w);
	else
		told->known = !!pacer_flow_known(&w, RULE_ID);
}

static void run(void *arg, int cpu)
{
	const struct flow_step *step = f.scenario->cpu[cpu];
	struct told told;
	int i;

	(void)arg;
	for (i = 0; i < FLOW_OPS && step[i].op; i++) {
		act(&step[i], &told);
		explore_note((const uint64_t *)&told, 0);
		if (!f.scenario->finds)
			explore_forget();
	}
}

static bool kept_by(const struct flow_step *step, size_t n, uint32_t flow, uint64_t now_ns)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (step[i].op == FLOW_KEEP && step[i].flow == flow &&
		    now_ns < step[i].now_ns + FLOW_IDLE_NS)
			return true;
	return false;
}

/* Did anyone, at any time, keep the flow, and less than its time before now_ns? */
static bool kept(uint32_t flow, uint64_t now_ns)
{
	return kept_by(f.scenario->before, FLOW_AROUND, flow, now_ns) ||
	       kept_by(f.scenario->cpu[0], (size_t)CPUS * FLOW_OPS, flow, now_ns);
}

static const char *check_line(uint32_t i)
{
	uint32_t flow;

	if (lines[i].flow_lock & PACER_LOCK_HELD)
		return FAULT("line %u is left held", i);
	for (flow = 1; flow < FLOWS; flow++)
		if (lines[i].flow_key[PACER_WORD_SADDR] == ends[flow][0] &&
		    lines[i].flow_key[PACER_WORD_DADDR] == ends[flow][1])
			break;
	if (lines[i].flow_seen_ns &&
	    (flow == FLOWS || !kept(flow, lines[i].flow_seen_ns + FLOW_IDLE_NS - 1)))
		return FAULT("a line has a flow that nobody kept then (flow %u)", flow % FLOWS);
	return NULL;
}

static const char *check(void *arg, const struct explore_note *notes, int n)
{
	const char *fault = NULL;
	unsigned int known = 0;
	struct told told;
	int i;

	(void)arg;
	for (i = 0; i < n && !fault; i++) {
		memcpy(&told, notes[i].word, sizeof(told));
		known += told.known;
		if (told.known && !kept((uint32_t)told.flow, told.now_ns))
			fault = FAULT("flow %" PRIu64 " is known, and nobody kept it", told.flow);
	}
	if (known > f.outcome->most)
		f.outcome->most = known;
	if (known < f.outcome->smallest)
		f.outcome->smallest = known;
	for (i = 0; i < (int)ARRAY(lines) && !fault; i++)
		fault = check_line((uint32_t)i);
	return fault;
}

void flows_explore(const struct flow_scenario *sc, struct outcome *outcome)
{
	struct explore_model model = {
	    .name = sc->name,
	    .memory = lines,
	    .bytes = sizeof(lines),
	    .run = run,
	    .check = check,
	};
	struct told unused;
	int i;

	memset(lines, 0, sizeof(lines));
	policy.rule[0].id = RULE_ID;
	policy.flows = (struct pacer_flows){.sets = 1, .idle_ns = FLOW_IDLE_NS};
	plant(sc->fault);
	f.scenario = sc;
	for (i = 0; i < FLOW_AROUND && sc->before[i].op; i++)
		act(&sc->before[i], &unused);
	while (model.cpus < CPUS && sc->cpu[model.cpus][0].op)
		model.cpus++;
	memset(outcome, 0, sizeof(*outcome));
	outcome->smallest = ~0u;
	f.outcome = outcome;
	explore(&model, &outcome->explored);
	plant(FAULT_NONE);
}

/* ---- the tables ---- */

/* Flow 1 was silent longest: a new flow takes its line. */
#define FULL                                                                      \
	{                                                                         \
		{FLOW_KEEP, 1, 1000}, {FLOW_KEEP, 5, 1001}, {FLOW_KEEP, 6, 1001}, \
		{                                                                 \
			FLOW_KEEP, 7, 1001                                        \
		}                                                                 \
	}

/* clang-format off */
const struct flow_scenario flow_sound[] = {
    {
	.name = "flows, a line changes hands: neither flow, and none between, is misread",
	.before = FULL,
	.cpu = {{{FLOW_KEEP, 2, 1002}}, {{FLOW_ASK, 3, 1003}, {FLOW_ASK, 4, 1003}}},
	.states_min = 1000,
    },
    {
	.name = "flows, a line changes hands: the old flow is known or not, the new one then",
	.before = FULL,
	.cpu = {{{FLOW_KEEP, 2, 1002}, {FLOW_ASK, 2, 1003}}, {{FLOW_ASK, 1, 1003}, {FLOW_ASK, 2, 1004}}},
	.most = 3,
	.smallest = 1,
	.states_min = 1000,
    },
    {
	.name = "flows, two for one line",
	.before = FULL,
	.cpu = {{{FLOW_KEEP, 2, 1002}, {FLOW_ASK, 2, 1003}}, {{FLOW_KEEP, 3, 1002}, {FLOW_ASK, 4, 1003}}},
	.most = 1,
	.smallest = 0,
	.states_min = 1000,
    },
    {
	.name = "flows, one by two CPUs",
	.cpu = {{{FLOW_KEEP, 1, 1000}, {FLOW_ASK, 1, 1001}}, {{FLOW_KEEP, 1, 1000}, {FLOW_ASK, 1, 1001}}},
	.most = 2,
	.smallest = 1,
	.states_min = 1000,
    },
    {
	.name = "flows, one goes on just when it loses its line: the other gets none of its time",
	.before = FULL,
	.cpu = {{{FLOW_KEEP, 1, 1090}}, {{FLOW_KEEP, 2, 1002}, {FLOW_ASK, 2, 1102}}},
	.states_min = 1000,
    },
};

const struct flow_scenario flow_faulty[] = {
    {
	.name = "fault: a flow's line is believed though it was changed meanwhile",
	.before = FULL,
	.cpu = {{{FLOW_KEEP, 2, 1002}}, {{FLOW_ASK, 3, 1003}, {FLOW_ASK, 4, 1003}}},
	.fault = FAULT_FLOW_READ_ONCE,
	.finds = "is known, and nobody kept it",
    },
    {
	.name = "fault: a flow's line is written without its lock",
	.before = FULL,
	.cpu = {{{FLOW_KEEP, 2, 1002}}, {{FLOW_KEEP, 1, 1002}}},
	.fault = FAULT_FLOW_UNLOCKED,
	.finds = "a line has a flow that nobody kept then",
    },
    {
	.name = "fault: a flow's time is written whosever line it is by now",
	.before = FULL,
	.cpu = {{{FLOW_KEEP, 1, 1090}}, {{FLOW_KEEP, 2, 1002}, {FLOW_ASK, 2, 1102}}},
	.fault = FAULT_FLOW_PLAIN_AGAIN,
	.finds = "flow",
    },
};
/* clang-format on */

const size_t flow_sound_n = ARRAY(flow_sound), flow_faulty_n = ARRAY(flow_faulty);
