/* SPDX-License-Identifier: GPL-2.0-only */
/* What the screen of `top` looks like. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/emit.h"
#include "cli/top.h"
#include "config/text.h"
#include "config/units.h"
#include "estimate/estimator.h"
#include "plan/sampling.h"

#define NAME_WIDTH   18
#define RULE_WIDTH   12
#define REASON_WIDTH 9
#define SHARE_WIDTH  20
#define GRAPH_LEAST  10
#define SPLIT_LEAST  130 /* columns for denied and admitted keys side by side */
#define BODY_LEAST   9	 /* rows for all panes at once */

/* --- cells ---------------------------------------------------------------------------------- */

/* A part of the picture in which text is set. */
struct spot {
	struct top_picture *to;
	int row, column, width;
	enum top_colour colour;
	bool chosen;
};

static uint32_t next_character(const char **text)
{
	const unsigned char *at = (const unsigned char *)*text;
	int more = *at >= 0xf0 ? 3 : *at >= 0xe0 ? 2 : *at >= 0xc0 ? 1 : 0;
	uint32_t c = more ? *at & (0x3f >> more) : *at;

	for (*text += 1; more && (**text & 0xc0) == 0x80; more--, *text += 1)
		c = c << 6 | (**text & 0x3f);
	return c;
}

static int width_of(const char *text)
{
	int n = 0;

	for (; *text; n++)
		next_character(&text);
	return n;
}

static void set(const struct spot *s, int column, uint32_t character)
{
	struct top_picture *p = s->to;

	if ((unsigned int)s->row >= (unsigned int)p->rows ||
	    (unsigned int)column >= (unsigned int)p->columns)
		return;
	p->cell[s->row * p->columns + column] = (struct top_cell){character, s->colour, s->chosen};
}

/* From the left, cut to the spot's width. */
static void put(const struct spot *s, const char *text)
{
	for (int i = 0; *text && i < s->width; i++)
		set(s, s->column + i, next_character(&text));
}

static void put_right(const struct spot *s, const char *text)
{
	struct spot at = *s;
	int taken = width_of(text);

	if (taken < s->width) {
		at.column += s->width - taken;
		at.width = taken;
	}
	put(&at, text);
}

static struct spot row_of(struct top_picture *to, int row, enum top_colour colour)
{
	return (struct spot){to, row, 0, to->columns, colour, false};
}

/* The next cells of a row: they go from left to right, with a blank between them. */
static struct spot cell(struct spot *row, int width)
{
	struct spot s = *row;

	s.width = width < row->width ? width : row->width;
	s.width = s.width > 0 ? s.width : 0;
	row->column += width + 1;
	row->width -= width + 1;
	return s;
}

static void put_cell(struct spot *row, int width, bool right, const char *text)
{
	struct spot s = cell(row, width);

	if (right)
		put_right(&s, text);
	else
		put(&s, text);
}

/* Fills what a chosen row leaves free. */
static void mark(const struct spot *row)
{
	for (int c = row->column; row->chosen && c < row->column + row->width; c++)
		set(row, c, ' ');
}

/* --- graphs --------------------------------------------------------------------------------- */

static const uint32_t blocks[] = {' ', 0x2581, 0x2582, 0x2583, 0x2584, 0x2585, 0x2586, 0x2587};
static const char plain[] = " .:-=+*#@";

#define BLOCKS_MOST 7 /* a full one would touch the row above */
#define PLAIN_MOST  8

static double peak_of(const float *value, size_t n, int width)
{
	float most = 0;

	for (size_t i = 0; i < n && i < (size_t)width; i++)
		most = value[i] > most ? value[i] : most;
	return most;
}

/* The newest on the right. What is not 0 is seen. */
static void put_graph(const struct spot *s, const float *value, size_t n)
{
	float most = (float)peak_of(value, n, s->width);
	int levels = s->to->blocks ? BLOCKS_MOST : PLAIN_MOST;

	for (size_t i = 0; i < n && i < (size_t)s->width; i++) {
		int high = value[i] > 0 ? 1 + (int)(value[i] / most * ((float)levels - 0.001f)) : 0;

		high = high > levels ? levels : high;
		set(s, s->column + s->width - 1 - (int)i,
		    s->to->blocks ? blocks[high] : (uint32_t)plain[high]);
	}
}

/* --- rules ---------------------------------------------------------------------------------- */

/* Widths of the columns, as many as there is room for; 0: there is none. */
struct columns {
	int name, now, bits, minute, total, peak, graph;
	bool minute_known;
};

/* once: a graph would be of one reading. */
static struct columns columns_of(const struct top_view *v, int width, bool once)
{
	struct columns c = {
	    .name = width < 40 ? 10 : NAME_WIDTH, .now = 9, .minute_known = v->minute_ns != 0};
	int left = width - c.name - 1 - c.now;

	if (left >= 12)
		c.bits = 11;
	left -= c.bits ? 12 : 0;
	if (left >= 10)
		c.minute = 9;
	left -= c.minute ? 10 : 0;
	if (left >= 10 + 3 * GRAPH_LEAST && !once)
		c.peak = 9;
	left -= c.peak ? 10 : 0;
	if (left >= 16 + (once ? 0 : 4 * GRAPH_LEAST))
		c.total = 15;
	left -= c.total ? 16 : 0;
	if (left > GRAPH_LEAST && !once)
		c.graph = left - 1 < TOP_STEPS ? left - 1 : TOP_STEPS;
	return c;
}

static void put_rate(struct spot *row, int width, const struct top_line *line, double rate,
		     const char *unit)
{
	if (width)
		put_cell(row, width, true, line->known ? per_second(rate, unit).text : "");
}

static void draw_line(struct spot row, const struct columns *c, const struct top_line *line,
		      bool indented, bool bits)
{
	const float *value = bits ? line->bits : line->packets;
	char name[TOP_NAME + 2];
	struct spot graph;

	mark(&row);
	snprintf(name, sizeof(name), "%s%s", indented ? "  " : "", line->name);
	put_cell(&row, c->name, false, name);
	put_rate(&row, c->now, line, line->now_packets, "pps");
	put_rate(&row, c->bits, line, line->now_bits, "bit/s");
	if (c->minute)
		put_cell(&row, c->minute, true,
			 line->known && c->minute_known
			     ? per_second(line->minute_packets, "pps").text
			     : "");
	if (c->total)
		put_cell(&row, c->total, true, thousands(line->total).text);
	if (c->graph) {
		graph = cell(&row, c->graph);
		put_graph(&graph, value, line->steps);
	}
	if (c->peak)
		put_rate(&row, c->peak, line, peak_of(value, line->steps, c->graph),
			 bits ? "b/s" : "pps");
}

static const char *const sorts[] = {[TOP_BY_POLICY] = "RULE",
				    [TOP_BY_PACKETS] = "RULE, by packets",
				    [TOP_BY_BITS] = "RULE, by bits",
				    [TOP_BY_DENIED] = "RULE, by denied"};

static void draw_rule_titles(const struct top_view *v, const struct top_hand *hand, struct spot row,
			     const struct columns *c)
{
	char last[32], graph[64];

	snprintf(last, sizeof(last), "LAST %.0fs", v->minute_ns / 1e9);
	snprintf(graph, sizeof(graph), "%s A SECOND%s", hand->bits ? "BITS" : "PACKETS",
		 c->graph < 28 ? "" : ", BY READING");
	put_cell(&row, c->name, false, sorts[hand->sort]);
	put_cell(&row, c->now, true, "NOW");
	if (c->bits)
		put_cell(&row, c->bits, true, "");
	if (c->minute)
		put_cell(&row, c->minute, true, v->minute_ns ? last : "");
	if (c->total)
		put_cell(&row, c->total, true, "TOTAL");
	if (c->graph)
		put_cell(&row, c->graph, true, graph);
	if (c->peak)
		put_cell(&row, c->peak, true, "PEAK");
}

/* The first row that is shown, so that the chosen one is. */
static size_t first_of(size_t chosen, size_t n, int room)
{
	size_t half = room > 0 ? (size_t)room / 2 : 0;

	if (room <= 0 || n <= (size_t)room || chosen < half)
		return 0;
	return chosen - half > n - (size_t)room ? n - (size_t)room : chosen - half;
}

static bool is_indented(const struct top_view *v, size_t line)
{
	for (size_t g = 0; g < v->n_groups; g++)
		if (v->group[g].first == line)
			return false;
	return true;
}

static void draw_rules(const struct top_view *v, const struct top_hand *hand, bool once,
		       struct top_picture *p, int top, int rows)
{
	bool focus = !once && hand->pane == TOP_RULES;
	struct columns c = columns_of(v, p->columns, once);
	size_t first = focus ? first_of(hand->at[TOP_RULES], hand->lines, rows - 1) : 0;

	if (rows < 1)
		return;
	draw_rule_titles(v, hand, row_of(p, top, TOP_TITLE), &c);
	for (int i = 0; i < rows - 1 && first + (size_t)i < hand->lines; i++) {
		size_t at = first + (size_t)i, line = hand->shown[at];
		struct spot row = row_of(p, top + 1 + i, v->line[line].colour);

		row.chosen = focus && at == hand->at[TOP_RULES];
		draw_line(row, &c, &v->line[line], is_indented(v, line), hand->bits);
	}
}

/* --- keys ----------------------------------------------------------------------------------- */

static const char *percent_text(double share, char *buf, size_t size)
{
	double percent = 100 * share;

	snprintf(buf, size, "%.*f", percent < 9.95 ? 1 : 0, percent);
	return buf;
}

/* "41 (35..47)": the value, moved into its bounds, and these. */
static const char *share_text(const struct pooled_value *share, bool alone, char *buf, size_t size)
{
	double value = share->value < share->low    ? share->low
		       : share->value > share->high ? share->high
						    : share->value;
	char middle[16], low[16], high[16];

	percent_text(value, middle, sizeof(middle));
	if (alone)
		snprintf(buf, size, "%s%%", middle);
	else
		snprintf(buf, size, "%s%% (%s..%s)", middle,
			 percent_text(share->low, low, sizeof(low)),
			 percent_text(share->high, high, sizeof(high)));
	return buf;
}

/* Of a list of keys: what is left for the key itself. */
struct key_columns {
	int key, rule, reason, share;
};

static struct key_columns key_columns_of(int width)
{
	struct key_columns c = {.share = width < 40 ? 5 : SHARE_WIDTH};

	if (width >= 48)
		c.rule = RULE_WIDTH;
	if (width >= 64)
		c.reason = REASON_WIDTH;
	c.key = width - c.share - 1 - (c.rule ? c.rule + 1 : 0) - (c.reason ? c.reason + 1 : 0);
	return c;
}

static void draw_key(struct spot row, const struct busy_key *key)
{
	struct key_columns c = key_columns_of(row.width);
	char share[64];

	mark(&row);
	put_cell(&row, c.key, false, key->key);
	if (c.rule)
		put_cell(&row, c.rule, false, *key->rule ? key->rule : "(source)");
	if (c.reason)
		put_cell(&row, c.reason, false, pacer_reason_name(key->reason));
	put_cell(&row, c.share, true,
		 share_text(&key->share, c.share < SHARE_WIDTH, share, sizeof(share)));
}

static void draw_key_titles(struct spot row, const char *title)
{
	struct key_columns c = key_columns_of(row.width);

	put_cell(&row, c.key, false, title);
	if (c.rule)
		put_cell(&row, c.rule, false, "RULE");
	if (c.reason)
		put_cell(&row, c.reason, false, "REASON");
	put_cell(&row, c.share, true, "SHARE");
}

/* Keys of hand->key from `from` on, n of them. */
struct key_list {
	const char *title;
	enum top_colour colour;
	size_t from, n;
	bool sampled; /* such packets are in the sample at all */
};

static void draw_list(const struct top_view *v, const struct top_hand *hand, bool focus,
		      const struct key_list *list, struct spot area, int rows)
{
	size_t chosen = hand->at[TOP_KEYS] >= list->from ? hand->at[TOP_KEYS] - list->from : 0;
	size_t first = first_of(chosen < list->n ? chosen : 0, list->n, rows - 1);

	area.colour = TOP_TITLE;
	if (rows > 0)
		draw_key_titles(area, list->title);
	for (int i = 0; i < rows - 1 && first + (size_t)i < list->n; i++) {
		size_t at = list->from + first + (size_t)i;
		struct spot row = area;

		row.row += 1 + i;
		row.colour = list->colour;
		row.chosen = focus && at == hand->at[TOP_KEYS];
		draw_key(row, &v->busiest.key[hand->key[at]]);
	}
	if (!list->n && rows > 1) {
		area.row++;
		area.colour = TOP_DIM;
		put(&area,
		    list->sampled ? "none in the sample" : "the policy does not sample these");
	}
}

static void draw_window(const struct top_view *v, struct spot row)
{
	const struct busiest *b = &v->busiest;
	char window[64], text[TOP_TEXT];

	if (b->window_packets)
		snprintf(window, sizeof(window), "%s of each CPU",
			 thousands(b->window_packets).text);
	else
		units_duration_text(b->window_ns, window, sizeof(window));
	if (*v->unsampled)
		snprintf(text, sizeof(text), "%s", v->unsampled);
	else
		snprintf(text, sizeof(text),
			 "busiest keys of %s packets (%s) of the last %s, by %u samples, at %.0f%%",
			 thousands(b->n).text, sampling_of_text(b->of), window, b->samples,
			 100 * (1 - ESTIMATE_DELTA));
	put(&row, text);
}

static bool is_split(const struct top_picture *p)
{
	return p->columns >= SPLIT_LEAST;
}

static int key_rows(const struct top_view *v, const struct top_hand *hand,
		    const struct top_picture *p)
{
	int denied = hand->denied ? (int)hand->denied : 1;
	int admitted = hand->keys > hand->denied ? (int)(hand->keys - hand->denied) : 1;

	if (*v->unsampled)
		return 1;
	return is_split(p) ? 2 + (denied > admitted ? denied : admitted) : 3 + denied + admitted;
}

static void draw_keys(const struct top_view *v, const struct top_hand *hand, bool focus,
		      struct top_picture *p, int top, int rows)
{
	const struct busiest *b = &v->busiest;
	struct key_list denied = {"DENIED", TOP_DENY, 0, hand->denied, b->of != SAMPLE_ADMITTED};
	struct key_list admitted = {"ADMITTED", TOP_ADMIT, hand->denied, hand->keys - hand->denied,
				    b->of != SAMPLE_DENIED};
	struct spot area = row_of(p, top, TOP_DIM);
	int first;

	if (rows < 1)
		return;
	if (rows > (is_split(p) ? 3 : 4) || *v->unsampled) {
		draw_window(v, area);
		area.row++;
		rows--;
	}
	if (*v->unsampled)
		return;
	if (is_split(p)) {
		area.width = (p->columns - 2) / 2;
		draw_list(v, hand, focus, &denied, area, rows);
		area.column = p->columns - area.width;
		draw_list(v, hand, focus, &admitted, area, rows);
		return;
	}
	/* Where the cursor is, there is room. */
	first = rows / 2 + rows % 2;
	if (first > 1 + (int)(denied.n ? denied.n : 1))
		first = 1 + (int)(denied.n ? denied.n : 1);
	if (rows - first > 1 + (int)(admitted.n ? admitted.n : 1))
		first = rows - 1 - (int)(admitted.n ? admitted.n : 1);
	if (rows < 4)
		first = focus && hand->at[TOP_KEYS] >= hand->denied ? 0 : rows;
	draw_list(v, hand, focus, &denied, area, first);
	area.row += first;
	draw_list(v, hand, focus, &admitted, area, rows - first);
}

/* --- tables and bans ------------------------------------------------------------------------ */

static void draw_table(struct spot row, const struct top_table *t)
{
	char text[TOP_TEXT], percent[16];
	int left;

	row.colour = t->shared ? TOP_ALARM : TOP_PLAIN;
	mark(&row);
	left = row.width < 60 ? row.width / 2 : 34;
	put_cell(&row, left, false, t->name);
	snprintf(
	    text, sizeof(text), "%s%% of %s",
	    percent_text(t->capacity ? (double)t->used / t->capacity : 0, percent, sizeof(percent)),
	    thousands(t->capacity).text);
	put_cell(&row, row.width < 24 ? row.width : 22, true, text);
	snprintf(text, sizeof(text), "%s shared", thousands(t->shared).text);
	put_cell(&row, row.width, false, t->shared ? text : "");
}

static void draw_bans(const struct top_view *v, struct spot row)
{
	char text[2 * TOP_TEXT];

	if (!v->ban_room)
		snprintf(text, sizeof(text), "bans: none can be made");
	else if (!v->bans_counted)
		snprintf(text, sizeof(text), "bans: room for %s, too many to be counted here",
			 thousands(v->ban_room).text);
	else
		snprintf(text, sizeof(text), "bans: %s of %s%s%s", thousands(v->banned).text,
			 thousands(v->ban_room).text, *v->bans ? ": " : "", v->bans);
	put(&row, text);
}

static void draw_tables(const struct top_view *v, const struct top_hand *hand, bool focus,
			struct top_picture *p, int top, int rows)
{
	size_t first = first_of(focus ? hand->at[TOP_TABLES] : 0, hand->tables, rows - 2);

	if (rows > 0)
		draw_bans(v, row_of(p, top + rows - 1, TOP_PLAIN));
	if (rows < 2)
		return;
	put(&(struct spot){p, top, 0, p->columns, TOP_TITLE, false}, "TABLE: ENTRIES IN USE");
	for (int i = 0; i < rows - 2 && first + (size_t)i < hand->tables; i++) {
		struct spot row = row_of(p, top + 1 + i, TOP_PLAIN);

		row.chosen = focus && first + (size_t)i == hand->at[TOP_TABLES];
		draw_table(row, &v->table[hand->table[first + (size_t)i]]);
	}
}

/* --- the frame ------------------------------------------------------------------------------ */

static void draw_head(const struct top_view *v, const struct top_hand *hand, bool once,
		      struct top_picture *p)
{
	struct spot row = row_of(p, 0, TOP_TITLE), alarm = row;
	char text[TEXT_PRINTABLE + 2 * TOP_TEXT], state[TOP_TEXT], shadow[TOP_TEXT] = "";

	if (v->shadowed)
		snprintf(shadow, sizeof(shadow), ", shadow: deny %s, admit %s",
			 thousands(v->changes[PACER_CHANGE_DENY]).text,
			 thousands(v->changes[PACER_CHANGE_ADMIT]).text);
	if (!v->paced)
		snprintf(text, sizeof(text), "%s", v->missing);
	else
		snprintf(text, sizeof(text), "%s: %s, serial %llu, %s%s%s%s",
			 printable(v->ifname).text, v->monitor ? "monitor" : "enforced",
			 (unsigned long long)v->serial, v->attach_mode, shadow,
			 *hand->filter ? ", rule " : "", hand->filter);
	row.colour = v->paced ? TOP_TITLE : TOP_ALARM;
	put(&row, text);
	snprintf(state, sizeof(state), "%s%s%s", hand->paused && !once ? " PAUSED" : "",
		 v->paced && v->monitor ? " NOTHING IS DROPPED" : "",
		 v->paced && v->pending_ns ? " ROLLS BACK" : "");
	if (v->paced && v->pending_ns)
		snprintf(state + strlen(state), sizeof(state) - strlen(state), " in %.0f s",
			 v->pending_ns / 1e9);
	alarm.colour = TOP_ALARM;
	if (*state)
		put_right(&alarm, state);
}

static void draw_foot(const struct top_hand *hand, struct top_picture *p)
{
	struct spot row = row_of(p, p->rows - 1, TOP_DIM);
	char text[2 * TOP_TEXT];

	if (hand->mode == TOP_TYPING) {
		snprintf(text, sizeof(text), "rules whose name has: %s_", hand->filter);
		row.colour = TOP_TITLE;
	} else if (hand->mode == TOP_ASKED) {
		top_question(hand, text, sizeof(text));
		row.colour = TOP_ALARM;
	} else if (hand->mode == TOP_PAGED) {
		snprintf(text, sizeof(text), "q back%s",
			 hand->page_rows > (size_t)p->rows - 2 ? "  arrows for more" : "");
	} else if (*hand->said) {
		snprintf(text, sizeof(text), "%s", hand->said);
		row.colour = TOP_TITLE;
	} else {
		snprintf(text, sizeof(text), "q end  ? help  Tab next  %s",
			 hand->pane == TOP_KEYS ? "w why  b ban  a allow  p pause  f filter"
						: "p pause  s sort  f filter  r reasons  u bits");
	}
	put(&row, text);
}

static void draw_page(const struct top_hand *hand, struct top_picture *p)
{
	struct spot row = row_of(p, 0, TOP_TITLE);

	put(&row, hand->title);
	row.colour = TOP_PLAIN;
	for (row.row = 1; row.row < p->rows - 1; row.row++) {
		size_t at = hand->page_at + (size_t)row.row - 1;

		if (at < hand->page_rows)
			put(&row, hand->page[at]);
	}
}

struct heights {
	int rules, keys, tables;
};

static int least(int a, int b)
{
	return a < b ? a : b;
}

/* Each pane gets what it needs, or its part. */
static struct heights share_out(const struct top_view *v, const struct top_hand *hand,
				const struct top_picture *p, int body)
{
	struct heights want = {1 + (int)hand->lines, key_rows(v, hand, p),
			       1 + (hand->tables ? 1 + (int)hand->tables : 0)};
	struct heights h = {0, 0, 0};

	if (body < BODY_LEAST) {
		h.rules = hand->pane == TOP_RULES ? body : 0;
		h.keys = hand->pane == TOP_KEYS ? body : 0;
		h.tables = hand->pane == TOP_TABLES ? least(body, want.tables) : 0;
		return h;
	}
	h.tables = least(want.tables, body / 5 > 1 ? body / 5 : 1);
	h.keys = least(want.keys, (body - h.tables) * 2 / 5);
	h.rules = least(want.rules, body - h.tables - h.keys);
	h.keys = least(want.keys, body - h.tables - h.rules);
	h.tables = least(want.tables, body - h.keys - h.rules);
	return h;
}

int top_rows(const struct top_view *v, const struct top_hand *hand, int columns)
{
	struct top_picture p = {.columns = columns};

	return 1 + 1 + (int)hand->lines + key_rows(v, hand, &p) + 2 + (int)hand->tables;
}

void top_draw(const struct top_view *v, const struct top_hand *hand, bool once,
	      struct top_picture *p)
{
	bool foot = !once && p->rows > 1;
	struct heights h = share_out(v, hand, p, p->rows - 1 - foot);
	int at = 1;

	for (int i = 0; i < p->rows * p->columns; i++)
		p->cell[i] = (struct top_cell){' ', TOP_PLAIN, false};
	if (hand->mode == TOP_PAGED) {
		draw_page(hand, p);
	} else {
		draw_head(v, hand, once, p);
		if (v->n_lines) {
			draw_rules(v, hand, once, p, at, h.rules);
			at += h.rules;
			draw_keys(v, hand, !once && hand->pane == TOP_KEYS, p, at, h.keys);
			at += h.keys;
			draw_tables(v, hand, !once && hand->pane == TOP_TABLES, p, at, h.tables);
		}
	}
	if (foot)
		draw_foot(hand, p);
}
