/* SPDX-License-Identifier: GPL-2.0-only */
/* What `replay --compare` shows. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/captured.h"
#include "cli/cmd.h"
#include "config/text.h"
#include "offline/compare.h"

#define SHOWN 20u

static json_t *key_json(const struct comparison *c, uint32_t i)
{
	const struct compare_note *note = tally_note_at(&c->keys, i);
	const struct compare_kind *kind = compare_kind_at(c, i);
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
	const struct compare_note *note = tally_note_at(&c->keys, i);
	const struct compare_kind *kind = compare_kind_at(c, i);
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

static int read_and_show(struct comparison *c, struct capture *capture, bool json)
{
	struct policy_error error = {0};
	int code = EXIT_DONE, shown;
	uint32_t n;

	if (compare_read(c, capture, &error))
		code = complain(NULL, &error);
	else if (capture->damaged)
		code = EXIT_FAILED;
	n = compare_sort(c);
	shown = json ? show_json(c, n) : show_text(c, capture->file, n);
	return code ? code : shown;
}

int compare_show(struct capture *capture, struct judge judge[2], bool json)
{
	struct comparison *c = calloc(1, sizeof(*c));
	struct policy_error error = {0};
	int code;

	if (!c)
		return gave_up("replay", "no memory");
	if (compare_open(c, judge, &error))
		code = complain(NULL, &error);
	else
		code = read_and_show(c, capture, json);
	compare_close(c);
	free(c);
	return code;
}
