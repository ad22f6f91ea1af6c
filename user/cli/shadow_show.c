/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/shadow_show.h"

#include <string.h>

#include "cli/emit.h"
#include "config/text.h"
#include "estimate/differing.h"
#include "live/shadow_reading.h"

#define KEYS_SHOWN 10 /* in the text */
#define SECOND_NS  1e9

static struct shadow_reading reading;
static struct differing differing;

static void emit_counts(const char *name, const struct pacer_count counts[PACER_CHANGE_COUNT])
{
	emit_object(name);
	for (int c = 0; c < PACER_CHANGE_COUNT; c++)
		emit_uint(shadow_change_name(c), counts[c].packets, NULL);
	emit_close();
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void emit_totals(const struct attached *shadow, const struct shadow_reading *r,
			enum shadow_part part)
{
	struct pacer_count sum[PACER_CHANGE_COUNT];
	uint64_t deny, admit, all = 0;

	for (int c = 0; c < PACER_CHANGE_COUNT; c++) {
		sum[c] = shadow_sum(r, c);
		all += sum[c].packets;
	}
	deny = sum[PACER_CHANGE_DENY].packets;
	admit = sum[PACER_CHANGE_ADMIT].packets;
	if (part == SHADOW_LINE)
		emit_text("  shadow    ");
	else
		emit_text("%s: ", printable(shadow->ifname).text);
	emit_text("%s packets beside the policy in force, in %.1f s%s: %s (%.3g %%) would be "
		  "denied, %s (%.3g %%) admitted\n",
		  thousands(all).text, (double)(r->now_ns - r->since_ns) / SECOND_NS,
		  r->monitor ? ", in monitor mode" : "", thousands(deny).text, percent(deny, all),
		  thousands(admit).text, percent(admit, all));
	if (part == SHADOW_PROMOTED && deny)
		emit_text(
		    "  what it would have denied was let through, and its limits have not "
		    "counted it: a window\n"
		    "  across this change can have more than a limit; to hold each limit, end "
		    "the next shadow\n"
		    "  with --stop, and `apply` its policy\n");
	emit_uint("program_id", shadow->prog_id, NULL);
	emit_uint("for_ns", r->now_ns - r->since_ns, NULL);
	emit_flag("monitor", r->monitor, NULL);
	emit_uint("packets", all, NULL);
	emit_counts("changes", sum);
}

/* A reason of a rule, where there were packets of it. */
static void emit_reason(const char *rule, const struct pacer_changes *changes, int reason)
{
	struct pacer_count by[PACER_CHANGE_COUNT];
	uint64_t all = 0;

	for (int c = 0; c < PACER_CHANGE_COUNT; c++) {
		by[c] = changes->by[c][reason];
		all += by[c].packets;
	}
	if (!all)
		return;
	emit_row();
	emit_text("%s", *rule ? rule : "(no rule)");
	emit_text("%s", pacer_reason_name(reason));
	for (int c = 0; c < PACER_CHANGE_COUNT; c++)
		emit_text("%s", by[c].packets ? thousands(by[c].packets).text : "");
	emit_counts(pacer_reason_name(reason), by);
}

static void emit_rule(const char *rule, const struct pacer_changes *changes)
{
	emit_object("");
	emit_string("rule", rule, NULL);
	emit_object("reasons");
	for (int r = 0; r < PACER_REASON_COUNT; r++)
		emit_reason(rule, changes, r);
	emit_close();
	emit_close();
}

static void emit_rules(const struct shadow_reading *r, bool shown)
{
	static const struct emit_column columns[] = {
	    {"UNDER THE SHADOW", false}, {"", false},		{"ALIKE", true},
	    {"WOULD DENY", true},	 {"WOULD ADMIT", true}, {0}};

	if (!shown && !emit_is_json())
		return;
	emit_array("rules");
	emit_table(columns, 0);
	for (size_t i = 0; i < r->policy->n_rules; i++)
		emit_rule(r->policy->rule[i].name, &r->rule[i]);
	emit_rule("", &r->none);
	emit_table_end();
	emit_close();
}

static void emit_share(const struct pooled_value *share)
{
	emit_object("share");
	emit_real("value", share->value, "%.3g %%", 100 * share->value);
	emit_real("low", share->low, "%.3g", 100 * share->low);
	emit_real("high", share->high, "to %.3g", 100 * share->high);
	emit_close();
}

static void emit_keys(const struct differing *d)
{
	static const struct emit_column columns[] = {
	    {"KEY", false},  {"RULE", false},	 {"WOULD", false}, {"REASON", false},
	    {"SHARE", true}, {"95% FROM", true}, {"", true},	   {0}};

	emit_object("differing");
	emit_uint("window_ns", d->window_ns, NULL);
	emit_uint("packets", d->n,
		  d->n ? "\n%llu packets fared differently in the last minute, by %u samples:\n"
		       : NULL,
		  (unsigned long long)d->n, d->samples);
	emit_uint("samples", d->samples, NULL);
	emit_array("keys");
	emit_table(columns, 0);
	for (size_t i = 0; i < d->n_keys && (emit_is_json() || i < KEYS_SHOWN); i++) {
		const struct differing_key *k = &d->key[i];

		emit_row();
		emit_object("");
		emit_string("key", k->key, "%s", k->key);
		emit_string("rule", k->rule, "%s", *k->rule ? k->rule : "-");
		emit_string("change", shadow_change_name(k->change), "%s",
			    shadow_change_name(k->change));
		emit_string("reason", pacer_reason_name(k->reason), "%s",
			    pacer_reason_name(k->reason));
		emit_share(&k->share);
		emit_close();
	}
	emit_table_end();
	emit_close();
	emit_close();
}

int shadow_show(const struct attached *shadow, const char *name, enum shadow_part part,
		struct policy_error *error)
{
	bool keys = part == SHADOW_WHOLE || (part == SHADOW_LINE && emit_is_json());

	if (shadow_read(shadow, &reading, error))
		return -1;
	if (keys && differing_read(shadow, &differing, error)) {
		shadow_reading_free(&reading);
		return -1;
	}
	emit_object(name);
	emit_totals(shadow, &reading, part);
	emit_rules(&reading, part != SHADOW_LINE);
	if (keys)
		emit_keys(&differing);
	emit_close();
	shadow_reading_free(&reading);
	return 0;
}

void shadow_show_of(const struct attached *a, enum shadow_part part)
{
	struct policy_error error = {0};
	struct attached shadow;
	bool none = a->next_fd < 0;
	int failed = none ? -1 : attached_shadow(a, &shadow, &error);

	if (!failed) {
		failed = shadow_show(&shadow, "shadow", part, &error);
		attached_release(&shadow);
	}
	if (failed)
		emit_null("shadow", none ? NULL : "  shadow    %s\n", error.text);
}
