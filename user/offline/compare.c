/* SPDX-License-Identifier: GPL-2.0-only */
#include "offline/compare.h"

#include <string.h>

#define PLACES 65536u

/* --- frames --------------------------------------------------------------------------------- */

static uint32_t kind_of(struct comparison *c, const char *rule, const struct policy_key *key)
{
	uint32_t i;

	for (i = 0; i < c->n_kinds; i++)
		if (policy_key_same(&c->kind[i].key, key) && !strcmp(c->kind[i].rule, rule))
			return i;
	c->kind[c->n_kinds++] = (struct compare_kind){rule, *key};
	return i;
}

static struct compare_note *note_of(struct comparison *c, const struct judge *j,
				    const struct replay_judged *judged)
{
	uint32_t limit = judge_limit_of(j, judged), kind;
	uint32_t number = pacer_outcome_rule(judged->outcome);
	const struct policy_rule *rule;
	struct compare_note *note;
	struct pacer_packet seen;
	struct tally_key key;

	if (number >= PACER_RULES_MAX) /* else drops it: it has no key */
		return NULL;
	rule = &j->policy->rule[number];
	seen = judge_seen(j, judged, number, limit);
	key = tally_key_of(judge_limiter(j, number, limit), &rule->limit[limit].key, &seen);
	kind = kind_of(c, rule->name, &rule->limit[limit].key);
	key.rule = kind >> 8;
	key.limit = kind & 0xff;
	note = tally_put(&c->keys, &key);
	if (note && !note->denied[0] && !note->denied[1])
		note->pkt = seen;
	return note;
}

static void count_frame(struct comparison *c, const struct replay_judged judged[2])
{
	bool stops[2] = {judge_stops(&c->judge[0], &judged[0]),
			 judge_stops(&c->judge[1], &judged[1])};

	for (int i = 0; i < 2; i++) {
		bool alone = stops[i] && !stops[!i];
		struct compare_note *note;

		c->stopped[i] += stops[i];
		c->only[i] += alone;
		if (!judge_denied(&judged[i]))
			continue;
		c->denied[i]++;
		note = note_of(c, &c->judge[i], &judged[i]);
		if (!note)
			continue;
		note->denied[i]++;
		note->only[i] += alone;
	}
}

int compare_open(struct comparison *c, struct judge judge[2], struct policy_error *error)
{
	c->judge = judge;
	if (!tally_open(&c->keys, PLACES, sizeof(struct compare_note)))
		return 0;
	return policy_fail(error, POLICY_NO_MEMORY, "replay: no memory");
}

int compare_read(struct comparison *c, struct capture *capture, struct policy_error *error)
{
	struct replay_judged judged[2];
	struct replay_frame frame;

	for (int i = 0; i < 2; i++)
		capture_tell(capture, c->judge[i].replay);
	while (capture_next(capture, &frame) == 1) {
		for (int i = 0; i < 2; i++)
			if (replay_judge(c->judge[i].replay, &frame, &judged[i], error))
				return -1;
		if (!c->packets++ || frame.time_ns < c->first_ns)
			c->first_ns = frame.time_ns;
		if (frame.time_ns > c->last_ns)
			c->last_ns = frame.time_ns;
		count_frame(c, judged);
	}
	return 0;
}

/* --- what is asked for ---------------------------------------------------------------------- */

static uint64_t differing(const struct compare_note *note)
{
	return note->only[0] + note->only[1];
}

static int most_differing(const void *a, const void *b)
{
	uint64_t x = differing(tally_sorted_note(a)), y = differing(tally_sorted_note(b));

	if (x != y)
		return x < y ? 1 : -1;
	return memcmp(tally_sorted_key(a), tally_sorted_key(b), sizeof(struct tally_key));
}

uint32_t compare_sort(struct comparison *c)
{
	uint32_t n = 0;

	tally_sort(&c->keys, most_differing);
	while (n < c->keys.n && differing(tally_note_at(&c->keys, n)))
		n++;
	return n;
}

const struct compare_kind *compare_kind_at(const struct comparison *c, uint32_t i)
{
	const struct tally_key *key = tally_key_at(&c->keys, i);

	return &c->kind[(uint32_t)key->rule << 8 | key->limit];
}

void compare_close(struct comparison *c)
{
	tally_close(&c->keys);
}
