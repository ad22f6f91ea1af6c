/* SPDX-License-Identifier: GPL-2.0-only */
#include "offline/plot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/durable.h"
#include "config/text.h"
#include "offline/search.h"
#include "plan/kinds.h"

#define POINTS 1600u
#define CELLS  4096u /* for the uses within a window */
/* Okabe and Ito's colours, which the colour-blind can tell apart. */
#define USED	   "#D55E00"
#define RELEASED   "#0072B2"
#define REPORTED   "#009E73"
#define FREE_AREA  "#D6EAF5"
#define WRONG_AREA "#F0E442"
#define DENIED	   "#000000"

extern char **environ;

struct point {
	uint64_t used, free, reported, denied; /* used and denied: since the view began */
};

/* Uses within the window, in cells by time. All uses of a cell count as of its last time. */
struct recent {
	struct {
		uint64_t time_ns, uses;
	} cell[CELLS + 2];
	uint32_t head, n;
	uint64_t held;
};

struct plot {
	const struct plot_view *view;
	const struct policy_limit *limit;
	struct judge judge;
	struct pacer_limiter *limiter;
	uint32_t limiter_index;
	struct pacer_packet pkt; /* a packet of the key, to ask the limiter with */
	bool seen;
	uint64_t capacity, span_ns; /* uses, each released after so long */
	uint64_t used, denied, base_used, base_denied, now_ns;
	struct recent recent;
	struct point point[POINTS + 1];
	uint32_t n;
};

/* --- what is really free -------------------------------------------------------------------- */

static void recent_add(struct plot *p, uint64_t now_ns, uint64_t uses)
{
	struct recent *r = &p->recent;
	uint32_t next = (r->head + r->n) % (CELLS + 2);
	uint32_t last = (next + CELLS + 1) % (CELLS + 2);

	r->held += uses;
	if (r->n &&
	    now_ns / (p->span_ns / CELLS + 1) == r->cell[last].time_ns / (p->span_ns / CELLS + 1)) {
		r->cell[last].time_ns = now_ns;
		r->cell[last].uses += uses;
		return;
	}
	r->cell[next].time_ns = now_ns;
	r->cell[next].uses = uses;
	r->n++;
}

/* A use as old as the window still counts; a gap of that age is over. */
static uint64_t recent_held(struct plot *p, uint64_t now_ns)
{
	struct recent *r = &p->recent;
	bool closed = limit_kind_of(p->limit)->closed;

	while (r->n && now_ns >= r->cell[r->head].time_ns &&
	       now_ns - r->cell[r->head].time_ns >= p->span_ns + closed) {
		r->held -= r->cell[r->head].uses;
		r->head = (r->head + 1) % (CELLS + 2);
		r->n--;
	}
	return r->held;
}

/* --- what the limiter reports --------------------------------------------------------------- */

static bool admits(const struct plot *p, uint64_t now_ns)
{
	return replay_peek(p->judge.replay, &p->pkt, p->view->rule, p->limiter_index, now_ns) ==
	       PACER_ADMIT;
}

/* What is held lets a packet through under each value that is greater. */
static uint64_t value_free(const struct plot *p, uint64_t now_ns)
{
	struct search s = {&p->judge, p->view->rule, p->limiter_index, &p->pkt, now_ns};
	const struct limit_kind *kind = limit_kind_of(p->limit);
	uint64_t most = kind->enough(p->limiter, 1), enough; /* a packet more than its value */
	uint64_t gap_ns = p->limiter->gap_ns;

	p->limiter->gap_ns = 0;
	enough = search_smallest(&s, 0, most);
	p->limiter->gap_ns = gap_ns;
	return most - enough;
}

static uint64_t reported_free(const struct plot *p, uint64_t now_ns)
{
	if (!p->seen)
		return p->capacity;
	if (limit_kind_of(p->limit)->by_time)
		return admits(p, now_ns);
	if (compile_in_lines(p->limiter))
		return value_free(p, now_ns);
	return replay_throttle_free(p->judge.replay, p->view->rule, p->limiter_index, now_ns);
}

/* --- reading -------------------------------------------------------------------------------- */

static uint64_t point_time(const struct plot *p, uint32_t i)
{
	return p->view->from_ns +
	       (uint64_t)((double)(p->view->to_ns - p->view->from_ns) * i / POINTS);
}

/* Notes the points before this time. */
static void note_until(struct plot *p, uint64_t time_ns)
{
	for (; p->n <= POINTS && point_time(p, p->n) < time_ns; p->n++) {
		uint64_t at_ns = point_time(p, p->n), held, free;

		if (!p->n) {
			p->base_used = p->used;
			p->base_denied = p->denied;
		}
		held = recent_held(p, at_ns);
		free = held < p->capacity ? p->capacity - held : 0;
		p->point[p->n] =
		    (struct point){p->used - p->base_used, free, reported_free(p, at_ns),
				   p->denied - p->base_denied};
		if (p->point[p->n].reported > free) /* the cells may hold uses a little longer */
			p->point[p->n].reported = free;
	}
}

static bool is_key(struct plot *p, const struct replay_judged *judged)
{
	struct pacer_packet seen;
	struct tally_key key;

	if (pacer_outcome_rule(judged->outcome) != p->view->rule)
		return false;
	seen = judge_seen(&p->judge, judged, p->view->rule, p->view->limit);
	key = tally_key_of(p->limiter, &p->limit->key, &seen);
	key.rule = p->view->key.rule;
	key.limit = p->view->key.limit;
	return !memcmp(&key, &p->view->key, sizeof(key));
}

static void take_frame(struct plot *p, const struct replay_frame *frame,
		       const struct replay_judged *judged)
{
	uint64_t uses = judge_cost(p->limit, frame->len_bytes);

	if (!is_key(p, judged))
		return;
	if (!p->seen)
		p->pkt = judged->pkt;
	p->pkt.len_bytes = 1;
	p->seen = true;
	if (judge_denied(judged)) {
		p->denied++;
		return;
	}
	p->used += uses;
	(void)recent_held(p, p->now_ns);
	recent_add(p, p->now_ns, uses);
}

static int read_capture(struct plot *p, struct capture *c, struct policy_error *error)
{
	struct replay_frame frame;
	struct replay_judged judged;

	capture_tell(c, p->judge.replay);
	while (capture_next(c, &frame) == 1) {
		p->now_ns = frame.now_ns;
		note_until(p, p->now_ns);
		if (replay_judge(p->judge.replay, &frame, &judged, error))
			return -1;
		take_frame(p, &frame, &judged);
	}
	note_until(p, UINT64_MAX);
	return 0;
}

/* --- drawing -------------------------------------------------------------------------------- */

/*
 * Writes a gnuplot string. Nothing is special between single quotes; between double quotes gnuplot
 * would run what is in backticks. The text is cut at its own single quotes, which are joined in
 * between, since gnuplot does not take a doubled quote at the beginning of a piece. Markup ("a_b")
 * is switched off by noenhanced where the string is used.
 */
static void write_string(FILE *to, const char *text)
{
	struct printable shown = printable(text);
	const char *at = shown.text;

	fprintf(to, "\"\"");
	while (*at) {
		int len = (int)strcspn(at, "'");

		if (len)
			fprintf(to, " . '%.*s'", len, at);
		else
			fprintf(to, " . \"'\"");
		at += len ? len : 1;
	}
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* "300 packets in any 1s", "a gap of 1ms" */
static const char *limit_text(const struct plot *p, char *buf, size_t size)
{
	const struct limit_kind *kind = limit_kind_of(p->limit);
	char time[32];

	units_duration_text(p->span_ns, time, sizeof(time));
	if (!kind->by_time)
		snprintf(buf, size, "%" PRIu64 " %s in any %s", p->capacity, limit_unit(p->limit),
			 time);
	else
		snprintf(buf, size, "a %s of %s", kind->name, time);
	return buf;
}

/* Writes each point: seconds since the capture's start, and the heights of the lines. */
static void write_data(FILE *to, const struct plot *p, uint64_t start_ns)
{
	fprintf(to, "$d << END_OF_DATA\n");
	for (uint32_t i = 0; i < p->n; i++) {
		const struct point *at = &p->point[i];
		bool denied = i && at->denied > p->point[i - 1].denied;

		fprintf(to, "%.9f %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n",
			(double)(point_time(p, i) - start_ns) / 1e9, at->used, at->used + at->free,
			at->used + at->reported, denied ? "1" : "NaN");
	}
	fprintf(to, "END_OF_DATA\n");
}

/* Writes the names of the lines beside their ends, moved apart so that they do not overlap. */
static void write_labels(FILE *to, const struct plot *p, double top)
{
	const struct point *end = &p->point[p->n - 1];
	double at[] = {end->used, end->used + end->reported, end->used + end->free};
	static const char *const text[][2] = {
	    {"used", USED}, {"released, as reported", REPORTED}, {"really released", RELEASED}};

	for (int i = 0; i < 3; i++) {
		if (i && at[i] < at[i - 1] + 0.055 * top)
			at[i] = at[i - 1] + 0.055 * top;
		fprintf(to, "set label '%s' at graph 1,first %.3f left offset 1,0 tc rgb '%s'\n",
			text[i][0], at[i], text[i][1]);
	}
}

/* Writes what the areas mean, above the picture. */
static void write_areas(FILE *to)
{
	static const struct {
		const char *text, *colour;
		double at;
	} area[] = {{"free, and reported so", FREE_AREA, 0.66},
		    {"free, but not reported", WRONG_AREA, 1.0}};

	for (int i = 0; i < 2; i++)
		fprintf(to,
			"set object rectangle center graph %.3f,1.06 size graph 0.02,0.04 fs solid "
			"noborder fc rgb '%s'\nset label '%s' at graph %.3f,1.06 left\n",
			area[i].at, area[i].colour, area[i].text, area[i].at + 0.02);
}

static void write_frame(FILE *to, const struct plot *p, const char *file)
{
	const struct policy_rule *rule = &p->judge.policy->rule[p->view->rule];
	char limit[96], title[POLICY_NAME_MAX + TALLY_TEXT + 100];

	snprintf(title, sizeof(title), "%s, %s: %s", rule->name, p->view->key_text,
		 limit_text(p, limit, sizeof(limit)));
	fprintf(to, "set terminal svg size 900,480 font 'sans-serif,13' background '#ffffff'\n"
		    "set encoding utf8\nset rmargin 25\nset tmargin 4\nset label ");
	write_string(to, title);
	fprintf(to, " at graph 0,1.11 noenhanced\nset label ");
	write_string(to, base_of(file));
	fprintf(to,
		" at graph 0,1.05 noenhanced textcolor rgb '#606060'\n"
		"set border 3\nset tics out nomirror\nset grid ytics lt 1 lw 1 lc rgb '#dddddd'\n"
		"set xlabel 'seconds since the capture began'\nset ylabel '%s'\n"
		"set format y '%%.0f'\nunset key\n",
		limit_unit(p->limit));
}

static void write_plot(FILE *to, const struct plot *p, const char *file, uint64_t start_ns)
{
	const struct point *end = &p->point[p->n - 1];
	double top = 1.08 * (double)(end->used + p->capacity);
	bool denied = end->denied != 0;

	write_data(to, p, start_ns);
	write_frame(to, p, file);
	if (top < 8)
		fprintf(to, "set ytics 1\n");
	write_areas(to);
	write_labels(to, p, top);
	fprintf(to, "set xrange [%.9f:%.9f]\nset yrange [%.3f:%.3f]\n",
		(double)(p->view->from_ns - start_ns) / 1e9,
		(double)(p->view->to_ns - start_ns) / 1e9, denied ? -0.06 * top : 0, top);
	if (denied)
		fprintf(to, "set label 'denied' at graph 1,first %.3f left offset 1,0\n",
			-0.03 * top);
	fprintf(to, "plot $d using 1:2:3 with filledcurves lc rgb '" FREE_AREA "',"
		    " '' using 1:4:3 with filledcurves lc rgb '" WRONG_AREA "',"
		    " '' using 1:3 with lines lw 2.5 lc rgb '" RELEASED "',"
		    " '' using 1:4 with lines lw 2 dt (10,4) lc rgb '" REPORTED "',"
		    " '' using 1:2 with lines lw 2.5 lc rgb '" USED "'");
	if (denied)
		fprintf(to,
			", '' using 1:($5*%.3f):(0):($5*%.3f) with vectors nohead lw 1 lc rgb "
			"'" DENIED "'",
			-0.05 * top, 0.04 * top);
	fputc('\n', to);
}

/* Starts gnuplot. *to is its input, `svg` its output. 0, or an errno. */
static int start_gnuplot(int svg, FILE **to, pid_t *pid)
{
	char *argv[] = {"gnuplot", "-d", "-", NULL};
	posix_spawn_file_actions_t actions;
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC))
		return errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, svg, STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	err = posix_spawnp(pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[0]);
	*to = err ? NULL : fdopen(ends[1], "w");
	if (!err && !*to)
		err = errno;
	if (!*to)
		close(ends[1]);
	return err;
}

/* --- the file ------------------------------------------------------------------------------- */

static int not_drawn(const char *svg, const char *why, struct policy_error *error)
{
	policy_explain(error, POLICY_BLAMELESS, "the picture cannot be drawn: %s", why);
	error->file = svg;
	return -1;
}

/* Appends all of one file to the other; 0, or an errno. */
static int copy_all(int from, int to)
{
	char buf[65536];
	ssize_t n;

	if (lseek(from, 0, SEEK_SET))
		return errno;
	while ((n = read(from, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0, put; at < n; at += put) {
			put = write(to, buf + at, (size_t)(n - at));
			if (put < 0)
				return errno;
		}
	return n ? errno : 0;
}

/* Gives it the owner and mode of the old file, or of a new one. */
static void set_mode(int fd, const struct stat *was)
{
	mode_t mask;

	if (was) {
		(void)!fchown(fd, was->st_uid, was->st_gid);
		(void)fchmod(fd, was->st_mode & 0777);
		return;
	}
	mask = umask(0);
	umask(mask);
	(void)fchmod(fd, 0666 & ~mask);
}

/* Writes straight into what is no regular file (a pipe, a terminal); 0, or an errno. */
static int write_straight(int from, const char *svg)
{
	int fd = open(svg, O_WRONLY | O_CLOEXEC | O_NOCTTY), err;

	if (fd < 0)
		return errno;
	err = copy_all(from, fd);
	return close(fd) && !err ? errno : err;
}

/* By way of a file whose name ends in XXXXXX. */
static int replace(int from, const char *svg, char *name, const struct stat *was)
{
	int fd = mkostemp(name, O_CLOEXEC), err;

	if (fd < 0)
		return errno;
	set_mode(fd, was);
	err = copy_all(from, fd);
	if (close(fd) && !err)
		err = errno;
	if (!err && rename(name, svg))
		err = errno;
	if (err)
		unlink(name);
	return err;
}

/* Writes a file beside `svg` and renames it when it is whole; 0, or an errno. */
static int write_beside(int from, const char *svg, const struct stat *was)
{
	char name[PATH_MAX + 8];
	sigset_t before;
	int err;

	if (snprintf(name, sizeof(name), "%s.XXXXXX", svg) >= PATH_MAX)
		return ENAMETOOLONG;
	durable_block_stops(&before);
	err = replace(from, svg, name, was);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return err;
}

int plot_write_file(int from, const char *svg)
{
	char real[PATH_MAX];
	struct stat was;

	if (stat(svg, &was)) {
		if (errno != ENOENT)
			return errno;
		/* A link to nothing stays: /dev/stdout is one where stdout is closed. */
		return lstat(svg, &was) ? write_beside(from, svg, NULL) : ENOENT;
	}
	if (!S_ISREG(was.st_mode))
		return write_straight(from, svg);
	return realpath(svg, real) ? write_beside(from, real, &was) : errno;
}

/* gnuplot's exit code does not tell of an output that was cut. */
static bool is_whole(int fd)
{
	static const char end[] = "</svg>";
	off_t len = lseek(fd, 0, SEEK_END);
	char tail[32] = "";

	return len > 31 && pread(fd, tail, 31, len - 31) == 31 && strstr(tail, end);
}

/* Why it is not: gnuplot has met the limit on the size of a file (`ulimit -f`), or what it does not
 * say. */
static const char *why_not_whole(int fd)
{
	struct rlimit size;

	return !getrlimit(RLIMIT_FSIZE, &size) && (rlim_t)lseek(fd, 0, SEEK_END) >= size.rlim_cur
		   ? strerror(EFBIG)
		   : "gnuplot failed";
}

static int draw(const struct plot *p, const char *file, uint64_t start_ns, const char *svg,
		struct policy_error *error)
{
	int fd = memfd_create("svg", MFD_CLOEXEC), status = 0, err;
	void (*was)(int) = signal(SIGPIPE, SIG_IGN);
	FILE *to = NULL;
	pid_t pid = 0;

	err = fd < 0 ? errno : start_gnuplot(fd, &to, &pid);
	if (to) {
		write_plot(to, p, file, start_ns);
		fclose(to);
	}
	if (pid && waitpid(pid, &status, 0) != pid)
		status = 1;
	signal(SIGPIPE, was);
	if (err)
		err = not_drawn(
		    svg, err == ENOENT ? "there is no gnuplot: install gnuplot-nox" : strerror(err),
		    error);
	else if (status || !is_whole(fd))
		err = not_drawn(svg, why_not_whole(fd), error);
	else if ((err = plot_write_file(fd, svg)))
		err = not_drawn(svg, strerror(err), error);
	if (fd >= 0)
		close(fd);
	return err;
}

/* --- all of it ------------------------------------------------------------------------------ */

static int open_plot(struct plot *p, const struct judge *like, const struct plot_view *view,
		     struct policy_error *error)
{
	const struct policy_limit *limit = &like->policy->rule[view->rule].limit[view->limit];
	const struct limit_kind *kind = limit_kind_of(limit);

	if (kind->refills)
		return policy_fail(
		    error, 0,
		    "replay: --plot draws uses that are free again one by one, and those of "
		    "this limit, a %s, come back bit by bit: choose another by --plot-rule and "
		    "--plot-key",
		    kind->name);
	if (judge_open(&p->judge, like->name, like->policy, false, error))
		return -1;
	p->view = view;
	p->limit = limit;
	p->limiter = judge_limiter(&p->judge, view->rule, view->limit);
	p->limiter_index = (uint32_t)(p->limiter - p->judge.bin->rule[view->rule].limiter);
	p->capacity = judge_capacity(p->limit);
	p->span_ns = judge_span_ns(p->limit);
	return 0;
}

int plot_capture(struct capture *c, const struct judge *like, const struct plot_view *view,
		 const char *svg, struct policy_error *error)
{
	struct plot *p = calloc(1, sizeof(*p));
	int code;

	if (!p)
		return not_drawn(svg, "no memory", error);
	code = open_plot(p, like, view, error);
	if (!code)
		code = capture_again(c, error);
	if (!code)
		code = read_capture(p, c, error);
	if (!code)
		code = draw(p, c->file, view->start_ns, svg, error);
	judge_close(&p->judge);
	free(p);
	return code;
}
