/* SPDX-License-Identifier: GPL-2.0-only */
/* top: who is denied and who is admitted, live. */
#include <locale.h>
#include <stdlib.h>

#include "cli/cmd.h"
#include "cli/emit.h"
#include "cli/output.h"
#include "cli/several.h"
#include "cli/terminal.h"
#include "cli/top_screen.h"
#include "config/text.h"
#include "estimate/estimator.h"
#include "live/host.h"
#include "live/shadow_reading.h"
#include "plan/sampling.h"

#define SECOND_NS    1000000000ull
#define EVERY_LEAST  100000000ull
#define ONCE_COLUMNS 100 /* of what is printed to no terminal */

/* --- JSON ----------------------------------------------------------------------------------- */

static void emit_reasons(const char *name, const struct pacer_counters *c,
			 enum pacer_verdict verdict)
{
	emit_object(name);
	for (int r = 0; r < PACER_REASON_COUNT; r++)
		if (pacer_verdict_of(r) == verdict)
			emit_uint(pacer_reason_name(r), c->by[r].packets, NULL);
	emit_close();
}

static void emit_rules(const struct top_reading *now)
{
	const struct reading *f = &now->reading;

	emit_array("rules");
	for (size_t r = 0; r < f->policy->n_rules; r++) {
		const struct pacer_counters *c = &f->rule[r];

		emit_object("");
		emit_string("name", f->policy->rule[r].name, NULL);
		emit_uint("admitted", reading_of_verdict(c, PACER_VERDICT_ADMIT).packets, NULL);
		emit_reasons("denied", c, PACER_VERDICT_DENY);
		output_rates("rates", &now->trend, r);
		emit_close();
	}
	emit_close();
}

static void emit_keys(const struct busiest *b, const char *name, enum pacer_verdict verdict)
{
	emit_array(name);
	for (size_t i = 0; i < b->n_keys; i++) {
		const struct busy_key *key = &b->key[i];

		if (key->verdict != verdict)
			continue;
		emit_object("");
		emit_string("key", key->key, NULL);
		if (*key->rule)
			emit_string("rule", key->rule, NULL);
		else
			emit_null("rule", NULL);
		emit_string("reason", pacer_reason_name(key->reason), NULL);
		emit_string("source", key->source, NULL);
		emit_uint("samples", key->times, NULL);
		emit_object("share");
		emit_real("value", key->share.value, NULL);
		emit_real("low", key->share.low, NULL);
		emit_real("high", key->share.high, NULL);
		emit_close();
		emit_close();
	}
	emit_close();
}

static void emit_busiest(const struct top_reading *now)
{
	const struct busiest *b = &now->busiest;

	if (!b->sampled) {
		emit_null("keys", NULL);
		return;
	}
	emit_object("keys");
	emit_string("of", sampling_of_text(b->of), NULL);
	emit_uint("window_packets", b->window_packets, NULL);
	emit_uint("window_ns", b->window_ns, NULL);
	emit_uint("packets", b->n, NULL);
	emit_uint("samples", b->samples, NULL);
	emit_uint("cpus_behind", b->behind, NULL);
	emit_real("delta", ESTIMATE_DELTA, NULL);
	emit_keys(b, "denied", PACER_VERDICT_DENY);
	emit_keys(b, "admitted", PACER_VERDICT_ADMIT);
	emit_close();
}

static void emit_tables(const struct reading *f)
{
	emit_array("tables");
	for (size_t i = 0; i < f->n_tables; i++) {
		const struct reading_table *t = &f->table[i];
		const struct policy_rule *rule = &f->policy->rule[t->rule];
		const struct policy_limit *limit = &rule->limit[t->limit];

		emit_object("");
		emit_string("rule", rule->name, NULL);
		emit_uint("limit", limit->item, NULL);
		if (limit->ladder.rungs)
			emit_uint("rung", limit->rung + 1u, NULL);
		else
			emit_null("rung", NULL);
		emit_uint("used", t->used, NULL);
		emit_uint("capacity", t->capacity, NULL);
		emit_uint("shared", t->shared, NULL);
		emit_uint("shared_capacity", t->shared_capacity, NULL);
		emit_close();
	}
	emit_close();
}

static void emit_bans(const struct reading *f)
{
	emit_object("bans");
	emit_uint("room", f->ban_room, NULL);
	emit_flag("counted", f->bans_counted, NULL);
	if (f->bans_counted) {
		emit_uint("sources", f->bans_of_sources, NULL);
		emit_object("rules");
		for (size_t r = 0; r < f->policy->n_rules; r++)
			emit_uint(f->policy->rule[r].name, f->bans[r], NULL);
		emit_close();
		emit_uint("gone", f->bans_of_gone, NULL);
	}
	emit_close();
}

static void emit_reading(const struct top_reading *now)
{
	const struct reading *f = &now->reading;

	emit_object("");
	emit_string("interface", now->ifname, NULL);
	emit_flag("paced", now->paced, NULL);
	if (!now->paced) {
		emit_string("error", now->missing.text, NULL);
		emit_close();
		return;
	}
	emit_uint("time_ns", f->now_ns, NULL);
	emit_string("mode", f->monitor ? "monitor" : "enforce", NULL);
	emit_string("attach_mode", now->attach_mode, NULL);
	emit_uint("serial", f->serial, NULL);
	emit_uint("confirm_within_ns", f->pending_ns, NULL);
	if (now->shadowed) {
		emit_object("shadow");
		for (int c = 0; c < PACER_CHANGE_COUNT; c++)
			emit_uint(shadow_change_name(c), now->changes[c], NULL);
		emit_close();
	} else {
		emit_null("shadow", NULL);
	}
	output_rates("rates", &now->trend, TREND_ALL);
	emit_reasons("no_limit", &f->none, PACER_VERDICT_PASS);
	emit_reasons("unparsed", &f->none, PACER_VERDICT_UNPARSED);
	emit_uint("banned_sources", f->none.by[PACER_DENY_BAN].packets, NULL);
	emit_rules(now);
	emit_busiest(now);
	emit_tables(f);
	emit_bans(f);
	emit_close();
}

/* --- once ----------------------------------------------------------------------------------- */

static size_t put_utf8(uint32_t c, char *to)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

static void print_row(const struct top_cell *cell, int columns)
{
	char text[4 * TOP_COLUMNS_MAX + 1];
	size_t len = 0;

	while (columns && cell[columns - 1].character == ' ')
		columns--;
	for (int i = 0; i < columns; i++)
		len += put_utf8(cell[i].character, text + len);
	text[len] = 0;
	emit_text("%s\n", text);
}

static int print_picture(const struct top_view *view, struct top_hand *hand)
{
	int columns = terminal_size().columns;
	struct top_picture p = {.blocks = top_has_blocks()};

	top_arrange(view, hand);
	p.columns = !columns ? ONCE_COLUMNS : columns < TOP_COLUMNS_MAX ? columns : TOP_COLUMNS_MAX;
	p.rows = top_rows(view, hand, p.columns);
	p.cell = calloc((size_t)p.rows * (size_t)p.columns, sizeof(*p.cell));
	if (!p.cell)
		return gave_up("top", "no memory");
	top_draw(view, hand, true, &p);
	emit_begin(false);
	for (int row = 0; row < p.rows; row++)
		print_row(&p.cell[row * p.columns], p.columns);
	free(p.cell);
	return emit_end();
}

/* --- the verb ------------------------------------------------------------------------------- */

struct run {
	const struct options *o;
	uint64_t every_ns;
	struct top_reader reader;
	struct top_view view;
	struct top_hand hand;
};

/* There has to be a pacer at first; what comes later is followed. */
static int read_first(struct run *run)
{
	struct policy_error error = {0};

	if (top_read_begin(&run->reader, run->o->args[0], &error) ||
	    top_read_next(&run->reader, &error))
		return complain(NULL, &error);
	return run->reader.now.paced ? EXIT_DONE : complain(NULL, &run->reader.now.missing);
}

/* The next reading, when it is time. */
static int read_next(struct run *run, uint64_t *next_ns)
{
	struct policy_error error = {0};

	*next_ns += run->every_ns;
	if (*next_ns <= host_now_ns())
		*next_ns = host_now_ns() + run->every_ns;
	(void)terminal_wait(*next_ns);
	return top_read_next(&run->reader, &error) ? complain(NULL, &error) : EXIT_DONE;
}

/* Rates are of two readings. */
static int once(struct run *run)
{
	const struct top_reading *now = &run->reader.now;
	uint64_t next_ns = host_now_ns();
	int code = read_next(run, &next_ns);

	if (code)
		return code;
	if (!now->paced)
		return complain(NULL, &now->missing);
	if (run->o->json) {
		emit_begin(true);
		emit_reading(now);
		return emit_end();
	}
	top_view(now, &run->view);
	return print_picture(&run->view, &run->hand);
}

static int print_lines(struct run *run)
{
	uint64_t next_ns = host_now_ns();
	int code = EXIT_DONE;

	while (!code) {
		emit_begin(true);
		emit_reading(&run->reader.now);
		code = emit_end_line();
		if (!flushed() || code)
			break;
		code = read_next(run, &next_ns);
	}
	return code;
}

static int run_top(struct options *o)
{
	bool screen = !o->json && !o->once;
	struct run *run;
	int code;

	if (o->n_args != 1 || several_all(o))
		return misused("top", "it wants one interface");
	if (o->every_ns && o->every_ns < EVERY_LEAST)
		return misused("top", "--every is 100ms or more");
	code = several_fit(o, 1);
	if (code)
		return code;
	if (screen && !terminal_is_used()) {
		complaint("top: there is no terminal that it could draw on: use --once or --json, "
			  "or set TERM");
		return EXIT_FAILED;
	}
	run = calloc(1, sizeof(*run));
	if (!run)
		return gave_up("top", "no memory");
	setlocale(LC_CTYPE, "");
	run->o = o;
	run->every_ns = o->every_ns ? o->every_ns : SECOND_NS;
	code = read_first(run);
	if (!code)
		code = screen	 ? top_screen(&run->reader, &run->view, &run->hand, run->every_ns)
		       : o->once ? once(run)
				 : print_lines(run);
	top_read_end(&run->reader);
	free(run);
	return code;
}

static const struct option_row top_options[] = {
    {"once", 0, NULL, "print one picture, as text or as JSON", OPTION_FLAG(once)},
    {"every", 0, "TIME", "the time between two readings: 1s unless said", OPTION_TIME(every_ns)},
    {0},
};

const struct verb verb_top = {"top",
			      "IFACE",
			      "who is denied and who is admitted, live",
			      top_options,
			      run_top,
			      .group = VERBS_LOOK,
			      .example = "xdp-pacer top eth0"};
