/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/top_screen.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

#include <curses.h> /* after those that say which characters there are */

#include "cli/cmd.h"
#include "cli/terminal.h"
#include "config/text.h"
#include "live/host.h"

#define ESCAPE_MS 100	/* so long a key may take to come whole */
#define SAID_MAX  65536 /* bytes of what a command says */
#define LISTEN_MS 200	/* between two looks at signals */

extern char **environ;

struct screen {
	struct top_reader *reader;
	struct top_view *view;
	struct top_hand *hand;
	uint64_t every_ns, next_ns;
	attr_t style[TOP_COLOURS];
	struct top_cell *cell;
	bool blocks;
};

bool top_has_blocks(void)
{
	return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

/* --- the picture ---------------------------------------------------------------------------- */

static void set_styles(struct screen *s)
{
	static const short colours[TOP_COLOURS] = {[TOP_ADMIT] = COLOR_GREEN,
						   [TOP_DENY] = COLOR_RED,
						   [TOP_PASS] = COLOR_CYAN,
						   [TOP_ALARM] = COLOR_RED};
	const char *no_color = getenv("NO_COLOR");
	bool coloured = has_colors() && !(no_color && *no_color);

	if (coloured) {
		start_color();
		use_default_colors();
	}
	for (int i = 0; i < TOP_COLOURS; i++) {
		if (coloured && colours[i]) {
			init_pair((short)(i + 1), colours[i], -1);
			s->style[i] = COLOR_PAIR(i + 1);
		}
		if (i == TOP_TITLE || i == TOP_ALARM)
			s->style[i] |= A_BOLD;
		if (i == TOP_DIM)
			s->style[i] |= A_DIM;
	}
}

/* Cells of one style at once. A character that takes no cell, or two, would move the others. */
static void put_cells(const struct screen *s, int row, int from, int to,
		      const struct top_cell *cell)
{
	wchar_t text[TOP_COLUMNS_MAX];

	for (int i = from; i < to; i++) {
		wchar_t c = (wchar_t)cell[i].character;

		text[i - from] = wcwidth(c) == 1 ? c : L'?';
	}
	attrset(s->style[cell[from].colour] | (cell[from].chosen ? A_REVERSE : 0));
	mvaddnwstr(row, from, text, to - from);
}

static bool is_alike(const struct top_cell *a, const struct top_cell *b)
{
	return a->colour == b->colour && a->chosen == b->chosen;
}

static void draw(struct screen *s)
{
	struct top_picture p = {.rows = LINES < TOP_ROWS_MAX ? LINES : TOP_ROWS_MAX,
				.columns = COLS < TOP_COLUMNS_MAX ? COLS : TOP_COLUMNS_MAX,
				.blocks = s->blocks,
				.cell = s->cell};

	top_arrange(s->view, s->hand);
	top_draw(s->view, s->hand, false, &p);
	erase();
	for (int row = 0; row < p.rows; row++) {
		const struct top_cell *cell = &p.cell[row * p.columns];

		for (int from = 0, to; from < p.columns; from = to) {
			for (to = from + 1; to < p.columns && is_alike(&cell[from], &cell[to]);)
				to++;
			put_cells(s, row, from, to, cell);
		}
	}
	attrset(A_NORMAL);
	terminal_draws();
	refresh();
	terminal_drawn();
}

/* No more than is drawn: curses breaks down at a terminal of more than 32767. */
static struct terminal_size drawn_size(void)
{
	struct terminal_size size = terminal_size();

	if (size.rows > TOP_ROWS_MAX)
		size.rows = TOP_ROWS_MAX;
	if (size.columns > TOP_COLUMNS_MAX)
		size.columns = TOP_COLUMNS_MAX;
	return size;
}

static void take_size(void)
{
	struct terminal_size size = drawn_size();

	if (size.rows > 0 && size.columns > 0)
		resizeterm(size.rows, size.columns);
}

/* --- commands ------------------------------------------------------------------------------- */

/* Runs this very program with these words; what it says goes to `to`. 0, or an errno. */
static int start(char *const *words, int to, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int err;

	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, to, STDERR_FILENO);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attributes, &none);
	err = posix_spawn(pid, "/proc/self/exe", &actions, &attributes, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return err;
}

/* Until it has said all. Of a change that a signal cuts off, all has happened or nothing. */
static void listen_to(int from, pid_t pid, char *said)
{
	struct pollfd more = {from, POLLIN, 0};
	size_t len = 0;
	ssize_t n = 1;

	while (n > 0) {
		int ready = poll(&more, 1, LISTEN_MS);

		if (ends_came())
			kill(pid, SIGTERM);
		if (!ready || (ready < 0 && errno == EINTR))
			continue;
		n = ready < 0 ? -1 : read(from, said + len, SAID_MAX - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	}
	said[len] = 0;
}

static void run_words(char *const *words, char *said)
{
	char columns[16];
	int ends[2], err;
	pid_t pid;

	snprintf(columns, sizeof(columns), "%d", COLS);
	setenv("COLUMNS", columns, 1); /* tables are broken at it */
	err = pipe2(ends, O_CLOEXEC) ? errno : 0;
	if (!err) {
		err = start(words, ends[1], &pid);
		close(ends[1]);
		if (!err)
			listen_to(ends[0], pid, said);
		close(ends[0]); /* before it is waited for, as it may have more to say than fits */
		if (!err)
			waitpid(pid, NULL, 0);
	}
	unsetenv("COLUMNS");
	if (err)
		snprintf(said, SAID_MAX, "it cannot be run: %s\n", strerror(err));
}

static void add_text(char *title, const char *text)
{
	strncat(title, text, TOP_TEXT - strlen(title) - 1);
}

static void add_to_title(char *title, const char *word)
{
	const char *quote = strpbrk(word, " >") ? "\"" : "";

	add_text(title, " ");
	add_text(title, quote);
	add_text(title, printable(word).text);
	add_text(title, quote);
}

/* The command, as somebody would type it, and what it says. */
static void run(struct screen *s)
{
	char title[TOP_TEXT] = "xdp-pacer", *words[TOP_WORDS + 2] = {"xdp-pacer"};
	char *said = calloc(1, SAID_MAX);
	bool one;

	for (size_t i = 0; i < TOP_WORDS && *s->hand->word[i]; i++) {
		words[i + 1] = s->hand->word[i];
		add_to_title(title, s->hand->word[i]);
	}
	if (said)
		run_words(words, said);
	one = said && strcspn(said, "\n") + 1 >= strlen(said);
	if (one && strcmp(s->hand->word[0], "why") != 0)
		snprintf(s->hand->said, sizeof(s->hand->said), "%.*s", (int)strcspn(said, "\n"),
			 said);
	else
		top_page(s->hand, title, said ? said : "no memory");
	free(said);
}

/* --- keys ----------------------------------------------------------------------------------- */

static int key_of(int got, wint_t character)
{
	if (got == OK)
		return character == '\n'   ? TOP_ENTER
		       : character == '\b' ? TOP_ERASE
					   : (int)character;
	switch (character) {
	case KEY_UP:
		return TOP_UP;
	case KEY_DOWN:
		return TOP_DOWN;
	case KEY_PPAGE:
		return TOP_PAGE_UP;
	case KEY_NPAGE:
		return TOP_PAGE_DOWN;
	case KEY_HOME:
		return TOP_HOME;
	case KEY_END:
		return TOP_END;
	case KEY_ENTER:
		return TOP_ENTER;
	case KEY_BACKSPACE:
		return TOP_ERASE;
	default:
		return 0;
	}
}

/* All keys that have come. False: that was the end, or there are none for it any more. */
static bool take_keys(struct screen *s)
{
	bool any = false;
	wint_t character;
	int got;

	while ((got = get_wch(&character)) != ERR) {
		any = true;
		switch (top_press(s->view, s->hand, key_of(got, character), LINES)) {
		case TOP_QUIT:
			return false;
		case TOP_RUN:
			run(s);
			break;
		case TOP_NOTHING:
			break;
		}
	}
	return any || !terminal_is_lost();
}

/* --- all of it ------------------------------------------------------------------------------ */

static int look(struct screen *s, struct policy_error *error)
{
	uint64_t now_ns;

	if (top_read_next(s->reader, error))
		return -1;
	if (!s->hand->paused)
		top_view(&s->reader->now, s->view);
	now_ns = host_now_ns();
	s->next_ns += s->every_ns;
	if (s->next_ns <= now_ns) /* it was stopped meanwhile */
		s->next_ns = now_ns + s->every_ns;
	return 0;
}

static int watch(struct screen *s, struct policy_error *error)
{
	if (look(s, error))
		return -1;
	for (;;) {
		draw(s);
		switch (terminal_wait(s->next_ns)) {
		case TERMINAL_TIME:
			if (look(s, error))
				return -1;
			break;
		case TERMINAL_KEY:
			if (!take_keys(s))
				return 0;
			break;
		case TERMINAL_RESIZED:
			take_size();
			clearok(curscr, TRUE);
			break;
		case TERMINAL_ENDED:
			return 0;
		}
	}
}

static void tell(const char *name, int n)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", n);
	if (n > 0)
		setenv(name, text, 1);
}

/* curses has the size that it begins with from the environment, where it would hold for good. */
static bool begin_curses(void)
{
	struct terminal_size size;
	bool begun;

	unsetenv("LINES");
	unsetenv("COLUMNS");
	size = drawn_size();
	tell("LINES", size.rows);
	tell("COLUMNS", size.columns);
	begun = newterm(NULL, stdout, stdin);
	unsetenv("LINES");
	unsetenv("COLUMNS");
	if (!begun)
		return false;
	set_escdelay(ESCAPE_MS);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	return true;
}

static int begin(struct screen *s)
{
	bool begun;

	s->cell = calloc((size_t)TOP_ROWS_MAX * TOP_COLUMNS_MAX, sizeof(*s->cell));
	if (!s->cell)
		return gave_up("top", "no memory");
	if (terminal_begin(true))
		return gave_up("top", strerror(errno));
	terminal_draws();
	begun = begin_curses();
	terminal_drawn();
	if (!begun) {
		terminal_end();
		complaint("top: nothing is known of the terminal %s: set TERM, or use --once",
			  getenv("TERM"));
		return EXIT_FAILED;
	}
	set_styles(s);
	return EXIT_DONE;
}

int top_screen(struct top_reader *reader, struct top_view *view, struct top_hand *hand,
	       uint64_t every_ns)
{
	struct screen s = {.reader = reader,
			   .view = view,
			   .hand = hand,
			   .every_ns = every_ns,
			   .next_ns = host_now_ns(),
			   .blocks = top_has_blocks()};
	struct policy_error error = {0};
	int code = begin(&s), failed;

	if (!code) {
		failed = watch(&s, &error);
		terminal_draws_last();
		endwin();
		terminal_drawn();
		terminal_end();
		code = failed ? complain(NULL, &error) : EXIT_DONE;
	}
	free(s.cell);
	return code;
}
