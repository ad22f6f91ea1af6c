/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/emit.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/terminal.h"
#include "fleet/json.h"
#include "config/text.h"

#define DEPTH_MAX   10
#define MANY_DEPTH  2 /* the array, and the object of an interface */
#define COLUMNS_MAX 16
#define FURTHER	    4 /* blanks more before each continuation line of a row */
#define BETWEEN	    2

struct layout {
	size_t width[COLUMNS_MAX];
	bool breaks[COLUMNS_MAX]; /* before the column */
	bool titles;
};

struct cells {
	const struct emit_column *columns; /* NULL: no table is open */
	size_t n_columns, indent;
	char **text; /* of rows, n_columns each; NULL: empty */
	size_t rows, room, at;
	const size_t *widths; /* of rows that are written as they come; NULL: at the end */
	bool titled;	      /* the titles have been written */
};

static struct {
	bool json;
	json_t *root, *open[DEPTH_MAX];
	int depth;
	bool many; /* a result is of one of several interfaces */
	struct cells table;
	FILE *screen; /* text that is to fill the screen is gathered; NULL: it is written as it
			 comes */
	char *gathered;
	size_t gathered_len;
	const char *hint;
} now;

/* Where text goes. */
static FILE *to(void)
{
	return now.screen ? now.screen : stdout;
}

/* --- JSON ----------------------------------------------------------------------------------- */

static void put(const char *name, json_t *value)
{
	json_t *into = now.depth ? now.open[now.depth - 1] : NULL;

	if (now.many && now.depth == MANY_DEPTH)
		json_object_set_new(into, "result", value);
	else if (!now.depth)
		now.root = value;
	else if (json_is_array(into))
		json_array_append_new(into, value);
	else
		json_object_set_new(into, name, value);
}

static void open_value(const char *name, json_t *value)
{
	if (!now.json)
		return;
	put(name, value);
	now.open[now.depth++] = value;
}

void emit_object(const char *name)
{
	open_value(name, now.json ? json_object() : NULL);
}

void emit_array(const char *name)
{
	open_value(name, now.json ? json_array() : NULL);
}

void emit_close(void)
{
	now.depth -= now.json;
}

static void forget_table(void)
{
	for (size_t i = 0; i < now.table.room * now.table.n_columns; i++)
		free(now.table.text[i]);
	free(now.table.text);
	now.table = (struct cells){0};
}

void emit_begin(bool json)
{
	if (now.many)
		return;
	now.json = json;
	now.depth = 0;
	now.root = NULL;
}

bool emit_is_json(void)
{
	return now.json;
}

void emit_drop(void)
{
	forget_table();
	if (now.many) {
		if (now.json)
			json_object_set_new(now.open[MANY_DEPTH - 1], "result", json_null());
		now.depth = now.json ? MANY_DEPTH : 0;
		return;
	}
	json_decref(now.root);
	now.root = NULL;
}

void emit_many_begin(bool json)
{
	emit_begin(json);
	emit_array("");
	now.many = true;
}

void emit_many_next(const char *ifname, bool headed)
{
	if (now.json) {
		now.depth = 1;
		emit_object("");
		json_object_set_new(now.open[MANY_DEPTH - 1], "interface", json_text(ifname));
		json_object_set_new(now.open[MANY_DEPTH - 1], "result", json_null());
	} else if (headed) {
		fprintf(to(), "%s:\n", printable(ifname).text);
	}
}

/* --- a screen of text ----------------------------------------------------------------------- */

/* Writes a line up to that many columns. Escape sequences, which end with a letter, take none. */
static void print_cut(const char *line, size_t columns)
{
	for (size_t at = 0; *line; line++) {
		bool begins = (*line & 0xc0) != 0x80;

		if (*line == '\033') {
			size_t len = strcspn(line, "m");

			printf("%.*sm", (int)len, line);
			line += line[len] ? len : len - 1;
			continue;
		}
		at += begins;
		if (at <= columns)
			putchar(*line);
	}
}

static size_t count_lines(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* "3 more lines; q ends it" */
static void print_last(size_t more, size_t columns)
{
	char line[128] = "";

	if (more)
		snprintf(line, sizeof(line), "%zu more line%s%s", more, more == 1 ? "" : "s",
			 now.hint ? "; " : "");
	if (now.hint)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), "%s", now.hint);
	print_cut(line, columns);
}

/* Lines are overwritten, so that nothing flickers. The last one ends without a line feed. */
static void fill_screen(char *text)
{
	struct terminal_size size = terminal_size();
	size_t lines = count_lines(text), room = size.rows > 1 ? (size_t)size.rows - 1 : SIZE_MAX;
	size_t columns = size.columns ? (size_t)size.columns : SIZE_MAX;

	fputs("\033[H", stdout);
	for (size_t i = 0; i < lines && i < room; i++) {
		print_cut(strsep(&text, "\n"), columns);
		fputs("\033[K\n", stdout);
	}
	fputs("\033[J", stdout);
	print_last(lines > room ? lines - room : 0, columns);
}

static void show_screen(void)
{
	if (!now.screen)
		return;
	if (fclose(now.screen))
		result_lacks();
	else
		fill_screen(now.gathered);
	free(now.gathered);
	now.screen = NULL;
	now.gathered = NULL;
}

/* --- a result ------------------------------------------------------------------------------- */

static int end_by(int (*print)(json_t *value))
{
	if (now.many)
		return EXIT_DONE;
	json_t *root = now.root;

	now.root = NULL;
	show_screen();
	return now.json ? print(root) : EXIT_DONE;
}

int emit_end(void)
{
	return end_by(print_json);
}

int emit_end_line(void)
{
	return end_by(print_json_line);
}

char *emit_end_text(void)
{
	char *text = now.root ? json_whole(now.root, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;

	json_decref(now.root);
	now.root = NULL;
	return text;
}

int emit_many_end(void)
{
	now.many = false;
	now.depth = 0;
	return emit_end();
}

int emit_many_end_line(void)
{
	now.many = false;
	now.depth = 0;
	return emit_end_line();
}

/* --- fields --------------------------------------------------------------------------------- */

static void add_cell(const char *format, va_list args)
{
	struct cells *t = &now.table;
	size_t at = (t->rows - 1) * t->n_columns + t->at;

	if (!t->rows || t->at >= t->n_columns)
		return; /* there was no memory for the row; emit_row has noted it */
	if (vasprintf(&t->text[at], format, args) < 0) {
		t->text[at] = NULL;
		result_lacks();
	}
	emit_skip(1);
}

static void say(const char *format, va_list args)
{
	if (now.json || !format)
		return;
	if (now.table.columns)
		add_cell(format, args);
	else
		vfprintf(to(), format, args);
}

#define FIELD(made)                      \
	do {                             \
		va_list args;            \
                                         \
		if (now.json && name)    \
			put(name, made); \
		va_start(args, format);  \
		say(format, args);       \
		va_end(args);            \
	} while (0)

void emit_uint(const char *name, uint64_t value, const char *format, ...)
{
	FIELD(json_integer((json_int_t)value));
}

void emit_real(const char *name, double value, const char *format, ...)
{
	FIELD(isfinite(value) ? json_real(value) : json_null());
}

void emit_flag(const char *name, bool value, const char *format, ...)
{
	FIELD(json_boolean(value));
}

void emit_null(const char *name, const char *format, ...)
{
	FIELD(json_null());
}

void emit_string(const char *name, const char *value, const char *format, ...)
{
	FIELD(json_text(value));
}

void emit_text(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

/* --- tables --------------------------------------------------------------------------------- */

/* Counts characters. Each is taken to be one column wide. */
static size_t width_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

/* The width of a line; SIZE_MAX where the output is no terminal. */
static size_t line_width(void)
{
	int columns = terminal_size().columns;

	return columns ? (size_t)columns : SIZE_MAX;
}

void emit_table(const struct emit_column *columns, size_t indent)
{
	if (now.json)
		return;
	now.table = (struct cells){.columns = columns, .indent = indent};
	while (columns[now.table.n_columns].title)
		now.table.n_columns++;
}

void emit_table_at_once(const struct emit_column *columns, const size_t *widths, size_t indent)
{
	emit_table(columns, indent);
	now.table.widths = widths;
}

void emit_row(void)
{
	struct cells *t = &now.table;
	size_t room = t->room ? 2 * t->room : 16;
	char **text;

	if (!t->columns)
		return;
	t->at = 0;
	if (t->rows >= t->room) {
		text = realloc(t->text, room * t->n_columns * sizeof(*text));
		if (!text) {
			result_lacks();
			t->at = t->n_columns; /* its cells go nowhere */
			return;
		}
		memset(text + t->room * t->n_columns, 0,
		       (room - t->room) * t->n_columns * sizeof(*text));
		t->text = text;
		t->room = room;
	}
	t->rows++;
}

static const char *cell_of(const struct cells *t, size_t row, size_t column)
{
	const char *text = t->text[row * t->n_columns + column];

	return text ? text : "";
}

static struct layout lay_out(const struct cells *t)
{
	struct layout l = {0};
	size_t most = line_width(), at = t->indent;

	for (size_t c = 0; c < t->n_columns; c++) {
		l.width[c] = width_of(t->columns[c].title);
		l.titles |= l.width[c] != 0;
		if (t->widths && l.width[c] < t->widths[c])
			l.width[c] = t->widths[c];
		for (size_t r = 0; r < t->rows; r++) {
			size_t width = width_of(cell_of(t, r, c));

			l.width[c] = width > l.width[c] ? width : l.width[c];
		}
		if (!l.width[c])
			continue;
		l.breaks[c] = c && at + l.width[c] > most;
		if (l.breaks[c])
			at = t->indent + FURTHER;
		at += l.width[c] + BETWEEN;
	}
	return l;
}

/* Blanks are written before the next cell, so that no line ends with blanks. */
struct cursor {
	size_t blanks;
	bool any; /* the line has something */
};

static void print_cell(struct cursor *at, const char *text, size_t width, bool right)
{
	size_t taken = width_of(text), fill = width > taken ? width - taken : 0;

	at->blanks += right ? fill : 0;
	if (*text) {
		fprintf(to(), "%*s%s", (int)at->blanks, "", text);
		at->blanks = 0;
		at->any = true;
	}
	at->blanks += (right ? 0 : fill) + BETWEEN;
}

/* Row SIZE_MAX is the titles. An empty continuation line is left out. */
static void print_line(const struct cells *t, const struct layout *l, size_t row)
{
	struct cursor at = {t->indent, false};

	for (size_t c = 0; c < t->n_columns; c++) {
		if (!l->width[c])
			continue;
		if (l->breaks[c]) {
			if (at.any)
				fputc('\n', to());
			at = (struct cursor){t->indent + FURTHER, false};
		}
		print_cell(&at, row == SIZE_MAX ? t->columns[c].title : cell_of(t, row, c),
			   l->width[c], t->columns[c].right);
	}
	if (at.any)
		fputc('\n', to());
}

/* Prints the rows so far, and the titles before the first of them. */
static void print_rows(struct cells *t)
{
	struct layout l = lay_out(t);

	if (l.titles && t->rows && !t->titled) {
		fputs(emit_style(EMIT_BOLD), to());
		print_line(t, &l, SIZE_MAX);
		fputs(emit_style(EMIT_PLAIN), to());
		t->titled = true;
	}
	for (size_t r = 0; r < t->rows; r++)
		print_line(t, &l, r);
}

void emit_skip(size_t n)
{
	struct cells *t = &now.table;

	t->at += n;
	if (!t->widths || !t->rows || t->at < t->n_columns)
		return;
	print_rows(t);
	for (size_t c = 0; c < t->n_columns; c++) {
		free(t->text[c]);
		t->text[c] = NULL;
	}
	t->rows = 0;
}

void emit_table_end(void)
{
	if (!now.table.columns)
		return;
	print_rows(&now.table);
	forget_table();
}

/* --- what it looks like --------------------------------------------------------------------- */

const char *emit_style(enum emit_style style)
{
	static const char *const codes[EMIT_STYLES] = {"\033[0m", "\033[1m", "\033[1;31m"};
	const char *no_color = getenv("NO_COLOR");

	return (no_color && *no_color) || !terminal_has_screen() ? "" : codes[style];
}

bool emit_screen(const char *hint)
{
	if (now.json || !terminal_has_screen())
		return false;
	now.hint = hint;
	now.screen = open_memstream(&now.gathered, &now.gathered_len);
	if (!now.screen)
		result_lacks();
	return now.screen;
}

struct emit_number thousands(uint64_t n)
{
	struct emit_number number;
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, n);
	char *to = number.text;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = 0;
	return number;
}

struct emit_number per_second(double n, const char *unit)
{
	static const char prefixes[] = {0, 'k', 'M', 'G', 'T'};
	struct emit_number number;
	size_t i = 0;

	for (; n >= 999.5 && i + 1 < sizeof(prefixes); i++)
		n /= 1000;
	snprintf(number.text, sizeof(number.text), "%.*f %.1s%s",
		 i && n < 99.95 ? n < 9.995 ? 2 : 1 : 0, n, &prefixes[i], unit);
	return number;
}
