/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: `top` without a terminal and without a kernel: what is shown of a pacer (top_model.c),
 * what keys do to it (top_keys.c), and what the screen looks like (top_draw.c). Pure. top_read.c
 * reads a pacer at work, and top_screen.c has the terminal.
 *
 * Concurrency: one thread. Memory: none but the structs.
 */
#ifndef PACER_TOP_H
#define PACER_TOP_H

#include "beside.h"
#include "estimate/busiest.h"
#include "live/reading.h"
#include "live/trend.h"

#define TOP_STEPS  256 /* of a graph */
#define TOP_NAME   48
#define TOP_LINES  ((PACER_RULES_MAX + 3) * (PACER_REASON_COUNT + 1))
#define TOP_GROUPS (PACER_RULES_MAX + 3)
#define TOP_TEXT   512

/* --- what is read (top_read.c) ---------------------------------------------------------------- */

struct top_reading {
	char ifname[IF_NAMESIZE];
	bool paced; /* else `missing` says why not, and nothing below is of now */
	struct policy_error missing;
	const char *attach_mode; /* "native", "skb", "hw" */
	bool shadowed;		 /* by the shadow's counts, packets so far of each change: */
	uint64_t changes[PACER_CHANGE_COUNT];
	struct reading reading; /* reading.policy NULL: none yet */
	struct busiest busiest;
	struct policy_error unsampled; /* why the sample could not be read; its text "": it could */
	struct trend trend;
};

/* --- what is shown (top_model.c) -------------------------------------------------------------- */

enum top_colour {
	TOP_PLAIN,
	TOP_TITLE,
	TOP_DIM,
	TOP_ADMIT,
	TOP_DENY,
	TOP_PASS,
	TOP_ALARM,
	TOP_COLOURS
};

struct top_line {
	char name[TOP_NAME];
	enum top_colour colour;
	bool known; /* there are two readings of it, and the rates are */
	double now_packets, now_bits, minute_packets; /* a second */
	uint64_t total;
	size_t steps;
	float packets[TOP_STEPS],
	    bits[TOP_STEPS]; /* a second, the newest first; of `steps` readings */
};

/* Lines that stay together: a rule and its reasons. */
struct top_group {
	char rule[POLICY_NAME_MAX]; /* "": of no rule */
	size_t first, n;	    /* lines; the first of them is the whole */
	double denied;		    /* a second */
};

struct top_view {
	char ifname[IF_NAMESIZE];
	bool paced, monitor, bans_counted, shadowed;
	uint64_t changes[PACER_CHANGE_COUNT];
	char missing[TOP_TEXT], unsampled[TOP_TEXT];
	const char *attach_mode;
	uint64_t serial, pending_ns, step_ns, minute_ns;
	size_t n_lines, n_groups;
	struct top_line line[TOP_LINES];
	struct top_group group[TOP_GROUPS]; /* 0: the whole */
	struct busiest busiest;
	size_t n_tables;
	struct top_table {
		char name[TOP_NAME + 16], rule[POLICY_NAME_MAX];
		uint64_t used, capacity, shared, shared_capacity;
	} table[PACER_RULES_MAX * PACER_LIMITERS_MAX];
	char bans[TOP_TEXT];
	uint64_t banned, ban_room;
};

void top_view(const struct top_reading *reading, struct top_view *view);

/* --- what keys do (top_keys.c) ---------------------------------------------------------------- */

enum top_pane { TOP_RULES, TOP_KEYS, TOP_TABLES, TOP_PANES };
enum top_sort { TOP_BY_POLICY, TOP_BY_PACKETS, TOP_BY_BITS, TOP_BY_DENIED, TOP_SORTS };
enum top_mode {
	TOP_WATCHED,
	TOP_TYPING, /* the filter */
	TOP_ASKED,  /* whether a ban or an entry of the allow-list is meant */
	TOP_PAGED   /* lines of text are shown instead */
};
enum top_act { TOP_NOTHING, TOP_QUIT, TOP_RUN /* the command, and show what it says */ };

/* Keys that are no characters. */
enum top_key { TOP_UP = 0x110000, TOP_DOWN, TOP_PAGE_UP, TOP_PAGE_DOWN, TOP_HOME, TOP_END };

#define TOP_ENTER     '\r'
#define TOP_ESCAPE    27
#define TOP_ERASE     127
#define TOP_WORDS     12
#define TOP_PAGE_ROWS 400

struct top_hand {
	enum top_pane pane;
	enum top_sort sort;
	enum top_mode mode;
	bool paused, whole, bits; /* whole: without reasons; bits: graphs and rates are of bits */
	char filter[POLICY_NAME_MAX];
	size_t at[TOP_PANES]; /* the line, key or table that is chosen */
	size_t order[TOP_GROUPS], groups;
	size_t shown[TOP_LINES], lines; /* lines of the view */
	size_t key[2 * BUSIEST_MAX], keys,
	    denied; /* of the view; the first `denied` of them are so */
	size_t table[PACER_RULES_MAX * PACER_LIMITERS_MAX], tables;
	struct busy_key chosen; /* that the cursor is on */
	struct busy_key meant;	/* that is asked about */
	bool ban, of_source;	/* else allow; whatever the rule */
	size_t for_how_long;
	char word[TOP_WORDS][TALLY_TEXT]; /* the command; after its name, up to an empty one */
	char said[TOP_TEXT];		  /* what the last key led to */
	char title[TOP_TEXT];		  /* of the page */
	char page[TOP_PAGE_ROWS][TOP_TEXT];
	size_t page_rows, page_at;
};

/* Sorts and filters what there is to be shown. After each new view, and after each key. */
void top_arrange(const struct top_view *view, struct top_hand *hand);
/* rows: of the screen. */
enum top_act top_press(const struct top_view *view, struct top_hand *hand, int key, int rows);
/* In mode TOP_ASKED: what is asked. */
void top_question(const struct top_hand *hand, char *buf, size_t size);
/* Shows text instead: cut into lines. */
void top_page(struct top_hand *hand, const char *title, const char *text);

/* --- what it looks like (top_draw.c) ---------------------------------------------------------- */

#define TOP_ROWS_MAX	1200
#define TOP_COLUMNS_MAX 512

struct top_cell {
	uint32_t character;
	uint8_t colour;
	bool chosen;
};

struct top_picture {
	int rows, columns;     /* at most as above */
	bool blocks;	       /* the terminal has the characters for graphs */
	struct top_cell *cell; /* rows * columns */
};

/* hand has been arranged by the view. once: as it is printed, without what is for keys. */
void top_draw(const struct top_view *view, const struct top_hand *hand, bool once,
	      struct top_picture *picture);
/* The rows that all of it takes, printed in so many columns. */
int top_rows(const struct top_view *view, const struct top_hand *hand, int columns);

#endif
