/* SPDX-License-Identifier: GPL-2.0-only */
/* What keys do to what `top` shows. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/top.h"
#include "config/text.h"

static const char *const times[] = {"1m", "10m", "1h", "1d", NULL}; /* NULL: until it is lifted */

#define TIMES	      (sizeof(times) / sizeof(*times))
#define TIME_AT_FIRST 1

/* --- what there is to be shown -------------------------------------------------------------- */

static const struct top_view *sorted_view;
static enum top_sort sorted_by;

static double worth(const struct top_group *g)
{
	const struct top_line *whole = &sorted_view->line[g->first];

	switch (sorted_by) {
	case TOP_BY_PACKETS:
		return whole->now_packets;
	case TOP_BY_BITS:
		return whole->now_bits;
	case TOP_BY_DENIED:
		return g->denied;
	case TOP_BY_POLICY:
	case TOP_SORTS:
		break;
	}
	return 0;
}

/* What is of no rule stays behind the rules. */
static int by_worth(const void *a, const void *b)
{
	size_t i = *(const size_t *)a, j = *(const size_t *)b;
	const struct top_group *x = &sorted_view->group[i], *y = &sorted_view->group[j];

	if (!*x->rule != !*y->rule)
		return !*x->rule - !*y->rule;
	if (worth(x) != worth(y))
		return worth(x) < worth(y) ? 1 : -1;
	return (i > j) - (i < j);
}

static bool is_wanted(const struct top_hand *hand, const char *rule)
{
	return !*hand->filter || strcasestr(rule, hand->filter);
}

static void arrange_lines(const struct top_view *v, struct top_hand *hand)
{
	hand->groups = hand->lines = 0;
	for (size_t g = 0; g < v->n_groups; g++)
		if (!g || is_wanted(hand, v->group[g].rule))
			hand->order[hand->groups++] = g;
	sorted_view = v;
	sorted_by = hand->sort;
	if (hand->groups > 1)
		qsort(hand->order + 1, hand->groups - 1, sizeof(*hand->order), by_worth);
	for (size_t i = 0; i < hand->groups; i++) {
		const struct top_group *g = &v->group[hand->order[i]];

		for (size_t l = 0; l < (hand->whole && i ? 1 : g->n); l++)
			hand->shown[hand->lines++] = g->first + l;
	}
}

static bool is_same(const struct busy_key *a, const struct busy_key *b)
{
	return a->verdict == b->verdict && !strcmp(a->key, b->key) && !strcmp(a->rule, b->rule);
}

/* The cursor stays on its key, wherever that is now. */
static void arrange_keys(const struct top_view *v, struct top_hand *hand)
{
	hand->keys = hand->denied = 0;
	for (size_t i = 0; i < v->busiest.n_keys; i++) {
		const struct busy_key *key = &v->busiest.key[i];

		if (!is_wanted(hand, key->rule))
			continue;
		if (is_same(key, &hand->chosen))
			hand->at[TOP_KEYS] = hand->keys;
		hand->denied += key->verdict == PACER_VERDICT_DENY;
		hand->key[hand->keys++] = i;
	}
}

static void arrange_tables(const struct top_view *v, struct top_hand *hand)
{
	hand->tables = 0;
	for (size_t i = 0; i < v->n_tables; i++)
		if (is_wanted(hand, v->table[i].rule))
			hand->table[hand->tables++] = i;
}

static size_t rows_of(const struct top_hand *hand, enum top_pane pane)
{
	return pane == TOP_RULES ? hand->lines : pane == TOP_KEYS ? hand->keys : hand->tables;
}

void top_arrange(const struct top_view *v, struct top_hand *hand)
{
	arrange_lines(v, hand);
	arrange_keys(v, hand);
	arrange_tables(v, hand);
	for (int p = 0; p < TOP_PANES; p++) {
		size_t n = rows_of(hand, p);

		if (hand->at[p] >= n)
			hand->at[p] = n ? n - 1 : 0;
	}
}

/* --- pages of text -------------------------------------------------------------------------- */

void top_page(struct top_hand *hand, const char *title, const char *text)
{
	char line[TOP_TEXT];

	snprintf(hand->title, sizeof(hand->title), "%s", title);
	hand->page_at = hand->page_rows = 0;
	while (*text && hand->page_rows < TOP_PAGE_ROWS) {
		size_t len = strcspn(text, "\n");

		snprintf(line, sizeof(line), "%.*s", (int)len, text);
		text_escape(line, hand->page[hand->page_rows++], TOP_TEXT);
		text += len + (text[len] == '\n');
	}
	hand->mode = TOP_PAGED;
}

static const char help[] = "q        end\n"
			   "? h      this\n"
			   "p SPACE  pause: the picture stays, readings go on\n"
			   "Tab      rules, keys or tables\n"
			   "arrows   choose (also j k, PgUp PgDn, Home End)\n"
			   "s        sort rules: by policy, packets, bits, denied\n"
			   "r        with their reasons, or rules alone\n"
			   "u        graphs of packets or of bits\n"
			   "f /      only rules whose name has this, and their keys\n"
			   "Enter    of a rule: only this one; of a key: why\n"
			   "Esc      all rules again\n"
			   "w        ask why the key fares as it does\n"
			   "b        ban the key; it asks back\n"
			   "a        allow the key's source; it asks back\n"
			   "\n"
			   "NOW is between the last two readings, LAST over as much\n"
			   "of the last minute as was watched. A graph has a column\n"
			   "a reading, the newest on the right, and its row's own\n"
			   "scale. Shares of keys are of the packets that the\n"
			   "policy samples, as value (from..to); the intervals of\n"
			   "all keys hold together at 95%.\n";

static enum top_act press_paged(struct top_hand *hand, int key, size_t page)
{
	size_t most = hand->page_rows > page ? hand->page_rows - page : 0;

	switch (key) {
	case 'q':
	case TOP_ESCAPE:
	case TOP_ENTER:
	case '?':
		hand->mode = TOP_WATCHED;
		break;
	case TOP_UP:
	case 'k':
		hand->page_at -= hand->page_at > 0;
		break;
	case TOP_DOWN:
	case 'j':
		hand->page_at += hand->page_at < most;
		break;
	case TOP_PAGE_UP:
		hand->page_at = hand->page_at > page ? hand->page_at - page : 0;
		break;
	case TOP_PAGE_DOWN:
	case ' ':
		hand->page_at = hand->page_at + page < most ? hand->page_at + page : most;
		break;
	case TOP_HOME:
		hand->page_at = 0;
		break;
	case TOP_END:
		hand->page_at = most;
		break;
	default:
		break;
	}
	return TOP_NOTHING;
}

/* --- commands ------------------------------------------------------------------------------- */

static void add_word(struct top_hand *hand, const char *word)
{
	for (size_t i = 0; i + 1 < TOP_WORDS; i++)
		if (!*hand->word[i]) {
			snprintf(hand->word[i], sizeof(hand->word[i]), "%s", word);
			*hand->word[i + 1] = 0;
			return;
		}
}

/* A name that begins with a dash is no option. */
static void add_name(struct top_hand *hand, const char *ifname)
{
	if (ifname[0] == '-')
		add_word(hand, "--");
	add_word(hand, ifname);
}

static const char *address_of(const char *source, char *buf, size_t size)
{
	const char *slash = strchr(source, '/');

	snprintf(buf, size, "%s", source);
	if (slash && (!strcmp(slash, "/32") || !strcmp(slash, "/128")))
		buf[slash - source] = 0;
	return buf;
}

static enum top_act ask_why(const struct top_view *v, struct top_hand *hand)
{
	char address[64];

	*hand->word[0] = 0;
	add_word(hand, "why");
	add_name(hand, v->ifname);
	add_word(hand, !hand->meant.parts ? address_of(hand->meant.source, address, sizeof(address))
					  : hand->meant.key);
	return TOP_RUN;
}

static enum top_act do_it(const struct top_view *v, struct top_hand *hand)
{
	bool under = hand->ban && !hand->of_source;
	char address[64];

	*hand->word[0] = 0;
	add_word(hand, hand->ban ? "ban" : "allow");
	if (times[hand->for_how_long]) {
		add_word(hand, "--for");
		add_word(hand, times[hand->for_how_long]);
	}
	if (under) {
		add_word(hand, "--rule");
		add_word(hand, hand->meant.rule);
	}
	add_name(hand, v->ifname);
	add_word(hand, "add");
	add_word(hand, under ? hand->meant.key
			     : address_of(hand->meant.source, address, sizeof(address)));
	hand->mode = TOP_WATCHED;
	return TOP_RUN;
}

/* Has it a rule that it can be banned under, and a source that it can be banned as? */
static bool has_rule(const struct busy_key *key)
{
	return *key->rule && *key->rule != '?' && key->parts;
}

static bool has_source(const struct busy_key *key)
{
	return key->parts & KEY_PART_SRC;
}

static void refuse(struct top_hand *hand, const char *what)
{
	hand->mode = TOP_WATCHED;
	snprintf(hand->said, sizeof(hand->said), "%s", what);
}

static void ask_back(struct top_hand *hand, bool ban)
{
	hand->ban = ban;
	hand->mode = TOP_ASKED;
	hand->for_how_long = TIME_AT_FIRST;
	hand->of_source = !ban || !has_rule(&hand->meant);
	if (hand->of_source && !has_source(&hand->meant))
		refuse(hand, ban ? "this key is no source's, and cannot be banned"
				 : "this key is no source's, and cannot be allowed");
}

void top_question(const struct top_hand *hand, char *buf, size_t size)
{
	const struct busy_key *key = &hand->meant;
	const char *time = times[hand->for_how_long];
	char address[64];

	address_of(key->source, address, sizeof(address));
	snprintf(buf, size, "y/n: %s %s%s%s %s%s?  +/- how long%s", hand->ban ? "ban" : "allow",
		 hand->of_source ? address : key->key,
		 !hand->ban	   ? ""
		 : hand->of_source ? ", whatever the rule,"
				   : " under ",
		 hand->ban && !hand->of_source ? key->rule : "",
		 time ? "for " : "until it is taken back", time ? time : "",
		 !hand->ban || !has_rule(key) || !has_source(key) ? ""
		 : hand->of_source				  ? ", r under the rule"
								  : ", r whatever the rule");
}

static enum top_act press_asked(const struct top_view *v, struct top_hand *hand, int key)
{
	switch (key) {
	case 'y':
		return do_it(v, hand);
	case 'n':
	case 'q':
	case TOP_ESCAPE:
		refuse(hand, "nothing was changed");
		break;
	case '+':
		hand->for_how_long += hand->for_how_long + 1 < TIMES;
		break;
	case '-':
		hand->for_how_long -= hand->for_how_long > 0;
		break;
	case 'r':
		if (hand->ban && has_rule(&hand->meant) && has_source(&hand->meant))
			hand->of_source = !hand->of_source;
		break;
	default:
		break;
	}
	return TOP_NOTHING;
}

/* --- the filter ----------------------------------------------------------------------------- */

static void press_typing(struct top_hand *hand, int key)
{
	size_t len = strlen(hand->filter);

	if (key == TOP_ENTER) {
		hand->mode = TOP_WATCHED;
	} else if (key == TOP_ESCAPE) {
		*hand->filter = 0;
		hand->mode = TOP_WATCHED;
	} else if (key == TOP_ERASE) {
		hand->filter[len ? len - 1 : 0] = 0;
	} else if (key < 128 && (isalnum(key) || key == '_' || key == '-') &&
		   len + 1 < sizeof(hand->filter)) {
		hand->filter[len] = (char)key;
		hand->filter[len + 1] = 0;
	}
}

/* This rule alone, or all again. */
static void filter_by_line(const struct top_view *v, struct top_hand *hand)
{
	size_t line = hand->lines ? hand->shown[hand->at[TOP_RULES]] : 0;

	for (size_t g = 0; g < v->n_groups; g++) {
		const struct top_group *group = &v->group[g];

		if (line < group->first || line >= group->first + group->n)
			continue;
		snprintf(hand->filter, sizeof(hand->filter), "%s",
			 strcmp(hand->filter, group->rule) != 0 ? group->rule : "");
	}
}

/* --- watching ------------------------------------------------------------------------------- */

static enum top_act press_on_key(const struct top_view *v, struct top_hand *hand, int key)
{
	if (hand->pane != TOP_KEYS && hand->keys) {
		hand->pane = TOP_KEYS;
		refuse(hand, "choose a key, then w, b or a");
		return TOP_NOTHING;
	}
	if (!hand->keys) {
		refuse(hand, "there is no key");
		return TOP_NOTHING;
	}
	hand->meant = v->busiest.key[hand->key[hand->at[TOP_KEYS]]];
	if (key == 'w')
		return ask_why(v, hand);
	ask_back(hand, key == 'b');
	return TOP_NOTHING;
}

static void move(const struct top_view *v, struct top_hand *hand, int key, size_t page)
{
	size_t *at = &hand->at[hand->pane], n = rows_of(hand, hand->pane), last = n ? n - 1 : 0;

	switch (key) {
	case TOP_UP:
		*at -= *at > 0;
		break;
	case TOP_DOWN:
		*at += *at < last;
		break;
	case TOP_PAGE_UP:
		*at = *at > page ? *at - page : 0;
		break;
	case TOP_PAGE_DOWN:
		*at = *at + page < last ? *at + page : last;
		break;
	case TOP_HOME:
		*at = 0;
		break;
	default:
		*at = last;
		break;
	}
	if (hand->pane == TOP_KEYS && n)
		hand->chosen = v->busiest.key[hand->key[*at]];
}

static enum top_act press_watched(const struct top_view *v, struct top_hand *hand, int key,
				  size_t page)
{
	switch (key) {
	case 'q':
		return TOP_QUIT;
	case '?':
	case 'h':
		top_page(hand, "keys", help);
		break;
	case 'p':
	case ' ':
		hand->paused = !hand->paused;
		break;
	case 's':
		hand->sort = (hand->sort + 1) % TOP_SORTS;
		break;
	case 'r':
		hand->whole = !hand->whole;
		break;
	case 'u':
		hand->bits = !hand->bits;
		break;
	case 'f':
	case '/':
		hand->mode = TOP_TYPING;
		break;
	case TOP_ESCAPE:
		*hand->filter = 0;
		break;
	case '\t':
		hand->pane = (hand->pane + 1) % TOP_PANES;
		break;
	case TOP_ENTER:
		if (hand->pane == TOP_KEYS)
			return press_on_key(v, hand, 'w');
		filter_by_line(v, hand);
		break;
	case 'w':
	case 'b':
	case 'a':
		return press_on_key(v, hand, key);
	case 'k':
	case 'j':
		move(v, hand, key == 'k' ? TOP_UP : TOP_DOWN, page);
		break;
	default:
		if (key >= TOP_UP)
			move(v, hand, key, page);
		break;
	}
	return TOP_NOTHING;
}

enum top_act top_press(const struct top_view *v, struct top_hand *hand, int key, int rows)
{
	size_t page = rows > 3 ? (size_t)rows - 2 : 1;
	enum top_act act = TOP_NOTHING;

	*hand->said = 0;
	switch (hand->mode) {
	case TOP_WATCHED:
		act = press_watched(v, hand, key, page);
		break;
	case TOP_TYPING:
		press_typing(hand, key);
		break;
	case TOP_ASKED:
		act = press_asked(v, hand, key);
		break;
	case TOP_PAGED:
		act = press_paged(hand, key, page);
		break;
	}
	top_arrange(v, hand);
	return act;
}
