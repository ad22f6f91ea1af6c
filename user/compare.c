/* SPDX-License-Identifier: GPL-2.0-only */
#include "compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tally.h"
#include "text.h"

#define PLACES	  65536u
#define SHOWN	  20u
#define KINDS_MAX (2 * PACER_RULES_MAX * POLICY_LIMITS_MAX)

/* What keys of limits of the two policies have in common: a rule's name and the kind of key. */
struct kind {
	const char *rule;
	struct policy_key key;
};

struct note {
	uint64_t denied[2], only[2]; /* by each policy, and by it alone */
	struct pacer_packet pkt;
};

struct comparison {
	struct judge *judge;
	struct kind kind[KINDS_MAX];
	uint32_t n_kinds;
	struct tally keys;
	uint64_t packets, first_ns, last_ns;
	uint64_t denied[2], only[2];
	bool json;
};

/* --- frames --------------------------------------------------------------------------------- */

static uint32_t kind_of(struct comparison *c, const char *rule, const struct policy_key *key)
{
	uint32_t i;

	for (i = 0; i < c->n_kinds; i++)
		if (c->kind[i].key.kind == key->kind && c->kind[i].key.len4 == key->len4 &&
		    c->kind[i].key.len6 == key->len6 && !strcmp(c->kind[i].rule, rule))
			return i;
	c->kind[c->n_kinds++] = (struct kind){rule, *key};
	return i;
}

static struct note *note_of(struct comparison *c, const struct judge *j,
			    const struct replay_fate *fate)
{
	uint32_t limit = judge_limit_of(j, fate), kind;
	const struct policy_rule *rule = &j->policy->rule[fate->rule];
	struct tally_key key =
	    tally_key_of(judge_tier(j, fate->rule, limit), &rule->limit[limit].key, &fate->pkt);
	struct note *note;

	kind = kind_of(c, rule->name, &rule->limit[limit].key);
	key.rule = kind >> 8;
	key.limit = kind & 0xff;
	note = tally_put(&c->keys, &key);
	if (note && !note->denied[0] && !note->denied[1])
		note->pkt = fate->pkt;
	return note;
}

static void count_frame(struct comparison *c, const struct replay_fate fate[2])
{
	bool denied[2] = {judge_denied(&fate[0]), judge_denied(&fate[1])};

	for (int i = 0; i < 2; i++) {
		struct note *note;

		if (!denied[i])
			continue;
		c->denied[i]++;
		c->only[i] += !denied[!i];
		note = note_of(c, &c->judge[i], &fate[i]);
		if (!note)
			continue;
		note->denied[i]++;
		note->only[i] += !denied[!i];
	}
}

static int judge_both(struct comparison *c, struct capture *capture)
{
	struct policy_error error = {0};
	struct replay_fate fate[2];
	struct replay_frame frame;

	while (capture_next(capture, &frame) == 1) {
		for (int i = 0; i < 2; i++)
			if (replay_judge(c->judge[i].replay, &frame, &fate[i], &error))
				return complain(NULL, &error);
		if (!c->packets++ || frame.time_ns < c->first_ns)
			c->first_ns = frame.time_ns;
		if (frame.time_ns > c->last_ns)
			c->last_ns = frame.time_ns;
		count_frame(c, fate);
	}
	return capture->damaged ? EXIT_FAILED : EXIT_DONE;
}

/* --- what is shown -------------------------------------------------------------------------- */

static uint64_t differing(const struct note *note)
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

static uint32_t count_differing(const struct comparison *c)
{
	uint32_t n = 0;

	while (n < c->keys.n && differing(tally_note_at(&c->keys, n)))
		n++;
	return n;
}

static const struct kind *kind_at(const struct comparison *c, uint32_t i)
{
	const struct tally_key *key = tally_key_at(&c->keys, i);

	return &c->kind[(uint32_t)key->rule << 8 | key->limit];
}

static json_t *key_json(const struct comparison *c, uint32_t i)
{
	const struct note *note = tally_note_at(&c->keys, i);
	const struct kind *kind = kind_at(c, i);
	char text[TALLY_TEXT], by[64];

	return json_pack("{s:s, s:s, s:s, s:[I,I], s:[I,I]}", "rule", kind->rule, "by",
			 policy_key_text(&kind->key, by, sizeof(by)), "key",
			 tally_key_text(&kind->key, &note->pkt, text, sizeof(text)), "denied",
			 (json_int_t)note->denied[0], (json_int_t)note->denied[1], "denied_alone",
			 (json_int_t)note->only[0], (json_int_t)note->only[1]);
}

static int show_json(const struct comparison *c, uint32_t n)
{
	json_t *keys = json_array();

	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(keys, key_json(c, i));
	return print_json(json_pack(
	    "{s:I, s:[o,o], s:[I,I], s:[I,I], s:I, s:o, s:I}", "packets", (json_int_t)c->packets,
	    "policies", json_text(c->judge[0].name), json_text(c->judge[1].name), "denied",
	    (json_int_t)c->denied[0], (json_int_t)c->denied[1], "denied_alone",
	    (json_int_t)c->only[0], (json_int_t)c->only[1], "keys_differing", (json_int_t)n, "keys",
	    keys, "denials_of_further_keys", (json_int_t)c->keys.lost));
}

static void show_key(const struct comparison *c, uint32_t i)
{
	const struct note *note = tally_note_at(&c->keys, i);
	const struct kind *kind = kind_at(c, i);
	char text[TALLY_TEXT], by[64];

	printf("  %s %s %s: denied %" PRIu64 " by the first, %" PRIu64 " by the second; %" PRIu64
	       " only by the first, %" PRIu64 " only by the second\n",
	       kind->rule, policy_key_text(&kind->key, by, sizeof(by)),
	       tally_key_text(&kind->key, &note->pkt, text, sizeof(text)), note->denied[0],
	       note->denied[1], note->only[0], note->only[1]);
}

static int show_text(const struct comparison *c, const char *file, uint32_t n)
{
	printf("%s: %" PRIu64 " packets in %.6g s: %" PRIu64 " fare differently\n",
	       printable(file).text, c->packets, (double)(c->last_ns - c->first_ns) / 1e9,
	       c->only[0] + c->only[1]);
	printf("  first   %s: denied %" PRIu64 ", of them %" PRIu64 " alone\n",
	       printable(c->judge[0].name).text, c->denied[0], c->only[0]);
	printf("  second  %s: denied %" PRIu64 ", of them %" PRIu64 " alone\n",
	       printable(c->judge[1].name).text, c->denied[1], c->only[1]);
	printf("%u key%s differently\n", n, n == 1 ? " fares" : "s fare");
	for (uint32_t i = 0; i < n && i < SHOWN; i++)
		show_key(c, i);
	if (n > SHOWN)
		printf("  and %u more: --json has them all\n", n - SHOWN);
	if (c->keys.lost)
		printf("  and %" PRIu64 " denials of further keys: %u are told apart\n",
		       c->keys.lost, tally_room(&c->keys));
	return EXIT_DONE;
}

static int show(struct comparison *c, const char *file)
{
	uint32_t n;

	tally_sort(&c->keys, most_differing);
	n = count_differing(c);
	return c->json ? show_json(c, n) : show_text(c, file, n);
}

int compare_capture(struct capture *capture, struct judge judge[2], const struct options *o)
{
	struct comparison *c = calloc(1, sizeof(*c));
	int code = EXIT_FAILED, shown;

	if (!c || tally_open(&c->keys, PLACES, sizeof(struct note))) {
		free(c);
		return gave_up("replay", "no memory");
	}
	c->judge = judge;
	c->json = o->json;
	code = judge_both(c, capture);
	shown = show(c, capture->file);
	tally_close(&c->keys);
	free(c);
	return code ? code : shown;
}
