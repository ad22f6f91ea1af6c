/* SPDX-License-Identifier: GPL-2.0-only */
#include "offline/judge.h"

#include <stdlib.h>

#include "key.h"
#include "path.h"
#include "plan/kinds.h"

static int open_judge(struct judge *j, bool kernel, struct policy_error *error)
{
	struct compile_host host = {0, 1, 1}; /* the capture's clock is exact; one taker */

	j->bin = calloc(1, sizeof(*j->bin));
	j->plan = calloc(1, sizeof(*j->plan));
	if (!j->bin || !j->plan) {
		*error =
		    (struct policy_error){.line = POLICY_NO_MEMORY, .text = "replay: no memory"};
		return -1;
	}
	if (compile_policy(j->policy, NULL, &host, j->bin, j->plan, error)) {
		error->file = j->name;
		return -1;
	}
	j->replay = replay_open(j->policy, j->bin, j->plan->lines, kernel, error);
	if (!j->replay && error->line > 0 && !error->file) /* a line of the policy */
		error->file = j->name;
	return j->replay ? 0 : -1;
}

int judge_open(struct judge *j, const char *name, const struct policy *policy, bool kernel,
	       struct policy_error *error)
{
	*j = (struct judge){.name = name, .policy = policy};
	if (!open_judge(j, kernel, error))
		return 0;
	judge_close(j);
	return -1;
}

void judge_close(struct judge *j)
{
	replay_close(j->replay);
	free(j->bin);
	free(j->plan);
	j->replay = NULL;
	j->bin = NULL;
	j->plan = NULL;
}

bool judge_denied(const struct replay_judged *judged)
{
	return pacer_outcome_denied(judged->outcome);
}

bool judge_stops(const struct judge *j, const struct replay_judged *judged)
{
	struct pacer_state state = {.policy = j->bin};
	struct pacer_walk walk = {.state = &state, .rule = pacer_outcome_rule(judged->outcome)};

	return pacer_action_of(&walk, j->bin, judged->outcome) != PACER_PASS;
}

uint32_t judge_limit_of(const struct judge *j, const struct replay_judged *judged)
{
	int limit = -1;

	if (judge_denied(judged))
		limit = compile_limit_of(j->plan, j->policy, pacer_outcome_rule(judged->outcome),
					 pacer_outcome_limiter(judged->outcome),
					 pacer_outcome_reason(judged->outcome));
	return limit < 0 ? 0 : limit;
}

struct pacer_limiter *judge_limiter(const struct judge *j, uint32_t rule, uint32_t limit)
{
	for (size_t i = 0; i < j->plan->n_limits; i++)
		if (j->plan->limit[i].rule == rule && j->plan->limit[i].limit == limit)
			return &j->bin->rule[rule].limiter[j->plan->limit[i].limiter];
	return &j->bin->rule[rule].limiter[0];
}

struct pacer_packet judge_seen(const struct judge *j, const struct replay_judged *judged,
			       uint32_t rule, uint32_t limit)
{
	const struct pacer_limiter *t = judge_limiter(j, rule, limit);

	return pacer_limiter_valued(t) ? pacer_limiter_sees(t, &judged->pkt, judged->value)
				       : judged->pkt;
}

uint64_t judge_capacity(const struct policy_limit *limit)
{
	const struct limit_kind *kind = limit_kind_of(limit);

	return kind->by_time ? 1 : *kind->value_of((struct policy_limit *)limit);
}

uint64_t judge_span_ns(const struct policy_limit *limit)
{
	return limit_kind_of(limit)->span_ns(limit);
}

uint64_t judge_cost(const struct policy_limit *limit, uint32_t len_bytes)
{
	return limit_kind_of(limit)->counts_bytes && limit->cost == PACER_COST_BYTES ? len_bytes
										     : 1;
}
