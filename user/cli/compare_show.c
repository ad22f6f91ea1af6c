/* SPDX-License-Identifier: GPL-2.0-only */
/* What `replay --compare` shows. */
#include <stdlib.h>

#include "cli/captured.h"
#include "cli/cmd.h"
#include "cli/emit.h"
#include "config/text.h"
#include "offline/compare.h"

#define SHOWN 20u

/* Of each of the two policies, under one name in the JSON. */
static void emit_pair(const char *name, const uint64_t n[2])
{
	emit_array(name);
	emit_uint("", n[0], "%s", thousands(n[0]).text);
	emit_uint("", n[1], "%s", thousands(n[1]).text);
	emit_close();
}

static void emit_policies(const struct comparison *c)
{
	static const struct emit_column columns[] = {
	    {"", false}, {"FIRST", true}, {"SECOND", true}, {0}};

	emit_table(columns, 2);
	emit_row();
	emit_text("policy");
	emit_array("policies");
	for (int i = 0; i < 2; i++)
		emit_string("", c->judge[i].name, "%s", printable(c->judge[i].name).text);
	emit_close();
	emit_row();
	emit_text("denied");
	emit_pair("denied", c->denied);
	emit_row();
	emit_text("stopped");
	emit_pair("stopped", c->stopped);
	emit_row();
	emit_text("stopped alone");
	emit_pair("stopped_alone", c->only);
	emit_table_end();
}

static void emit_key(const struct comparison *c, uint32_t i)
{
	const struct compare_note *note = tally_note_at(&c->keys, i);
	const struct compare_kind *kind = compare_kind_at(c, i);
	char text[TALLY_TEXT], by[POLICY_KEY_TEXT];

	policy_key_text(&kind->key, by, sizeof(by));
	tally_key_text(&kind->key, &note->pkt, text, sizeof(text));
	emit_row();
	emit_object("");
	emit_string("rule", kind->rule, "%s", kind->rule);
	emit_string("by", by, "%s", by);
	emit_string("key", text, "%s", text);
	emit_pair("denied", note->denied);
	emit_pair("stopped_alone", note->only);
	emit_close();
}

static void emit_keys(const struct comparison *c, uint32_t n)
{
	static const struct emit_column columns[] = {{"RULE", false},
						     {"BY", false},
						     {"KEY", false},
						     {"DENIED BY FIRST", true},
						     {"BY SECOND", true},
						     {"STOPPED BY FIRST ALONE", true},
						     {"BY SECOND ALONE", true},
						     {0}};
	uint32_t shown = emit_is_json() || n < SHOWN ? n : SHOWN;

	emit_uint("keys_differing", n, "%s key%s differently\n", thousands(n).text,
		  n == 1 ? " fares" : "s fare");
	emit_array("keys");
	emit_table(columns, 2);
	for (uint32_t i = 0; i < shown; i++)
		emit_key(c, i);
	emit_table_end();
	emit_close();
	if (shown < n)
		emit_text("  and %s more: --json has them all\n", thousands(n - shown).text);
	emit_uint("denials_of_further_keys", c->keys.lost,
		  c->keys.lost ? "  and %s denials of further keys: %s are told apart\n" : NULL,
		  thousands(c->keys.lost).text, thousands(tally_room(&c->keys)).text);
}

static int show(const struct comparison *c, const char *file, uint32_t n, bool json)
{
	emit_begin(json);
	emit_object("");
	emit_uint("packets", c->packets, "%s: %s packets in %.6g s: %s fare differently\n",
		  printable(file).text, thousands(c->packets).text,
		  (double)(c->last_ns - c->first_ns) / 1e9,
		  thousands(c->only[0] + c->only[1]).text);
	emit_policies(c);
	emit_keys(c, n);
	emit_close();
	return emit_end();
}

static int read_and_show(struct comparison *c, struct capture *capture, bool json)
{
	struct policy_error error = {0};
	int shown;

	if (compare_read(c, capture, &error))
		return complain(NULL, &error);
	shown = show(c, capture->file, compare_sort(c), json);
	return capture->damaged ? EXIT_FAILED : shown;
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
