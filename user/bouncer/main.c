/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * xdp-pacer-crowdsec: bans on the pacers of some interfaces what a CrowdSec local API decides.
 *
 * What is banned has the end of its decision. So a bouncer that has ended, or an API that is down,
 * leaves bans that end by themselves, and no ban is lifted for want of an answer. After any answer
 * that was not whole it asks for all there is, since the API counts what it has sent as received.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bouncer/decisions.h"
#include "bouncer/lapi.h"
#include "bouncer/settings.h"
#include "config/text.h"
#include "fleet/json.h"
#include "live/bans.h"
#include "live/host.h"
#include "live/watch.h"

#define NAME	 "xdp-pacer-crowdsec"
#define SLACK_NS 5000000000ull /* an answer is as old as it was under way */
#define KEY_TEXT 64

enum exit_code { EXIT_DONE, EXIT_FAILED, EXIT_WRONG };

/* --- what is said: a line each -------------------------------------------------------------- */

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	char text[1024], line[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(stderr, NAME ": %s\n", text_escape(text, line, sizeof(line)));
}

static int usage(FILE *to)
{
	fputs("usage: " NAME " [-c FILE] [--check | --once]\n"
	      "Ban what CrowdSec decides, on the pacers of the interfaces in FILE.\n\n"
	      "  -c, --config FILE  its settings; " SETTINGS_FILE "\n"
	      "                     unless said\n"
	      "      --check        read the settings, and do nothing\n"
	      "      --once         ask once, ban, and end\n"
	      "      --help         this\n"
	      "      --version      its version\n",
	      to);
	return to == stdout ? EXIT_DONE : EXIT_WRONG;
}

/* --- an interface --------------------------------------------------------------------------- */

struct place {
	uint32_t prog_id;      /* of the pacer that has `has` */
	struct ban_pieces has; /* what it was told to ban */
	bool again;	       /* it did not take all: tell it all */
	size_t no_room;	       /* of those, as was said last */
	bool refused_said;
};

struct bouncer {
	struct settings settings;
	struct lapi_options options;
	struct lapi *lapi;
	struct watch watch;
	struct place place[SETTINGS_INTERFACES];
	struct decisions decisions;
	bool asked;  /* there has been an answer */
	bool partly; /* the last was none: the next has to be whole */
	bool down;   /* that was said */
	int stop_fd;
};

static void free_pieces(struct ban_pieces *pieces)
{
	free(pieces->at);
	*pieces = (struct ban_pieces){0};
}

struct wishes {
	struct ban_wish *wish;
	char (*key)[KEY_TEXT];
	size_t n;
};

static void free_wishes(struct wishes *w)
{
	free(w->wish);
	free(w->key);
}

static int make_wishes(const struct ban_pieces *pieces, uint64_t now_ns, struct wishes *w)
{
	*w = (struct wishes){calloc(pieces->n + 1, sizeof(*w->wish)),
			     calloc(pieces->n + 1, sizeof(*w->key)), 0};
	if (!w->wish || !w->key) {
		free_wishes(w);
		return -1;
	}
	for (size_t i = 0; i < pieces->n; i++) {
		const struct ban_piece *piece = &pieces->at[i];

		if (piece->until_ns <= now_ns)
			continue;
		units_prefix_text(&piece->prefix, w->key[w->n], KEY_TEXT);
		w->wish[w->n] =
		    (struct ban_wish){w->key[w->n], piece->until_ns - now_ns, piece->prefix.len};
		w->n++;
	}
	return 0;
}

/* Those of the length and family of the wish that cannot be: other prefixes are banned there. */
static size_t leave_out(struct wishes *w, size_t which)
{
	bool six = strchr(w->wish[which].key, ':');
	int len = w->wish[which].line;
	size_t n = 0, all = w->n;

	for (size_t i = 0; i < all; i++)
		if (w->wish[i].line != len || !strchr(w->wish[i].key, ':') == six)
			w->wish[n++] = w->wish[i];
	w->n = n;
	return all - n;
}

/* Returns how many were not banned, or -1 with *error filled. */
static long ban(struct attached *a, struct place *place, struct wishes *w, struct bans_done *done,
		struct policy_error *error)
{
	size_t refused = 0;
	int result;

	while ((result = bans_add(a, NULL, w->wish, w->n, done, error)) == BANS_WRONG &&
	       done->which < w->n) {
		if (!place->refused_said)
			say("%s: %s", a->ifname, error->text);
		place->refused_said = true;
		refused += leave_out(w, done->which);
	}
	return result ? -1 : (long)(done->left_out + refused);
}

static int tell_changes(struct attached *a, struct place *place, const struct ban_pieces *lift,
			const struct ban_pieces *add, uint64_t now_ns, struct policy_error *error)
{
	struct bans_done lifted = {0}, banned = {0};
	struct wishes wishes;
	long left_out;

	if (make_wishes(lift, now_ns, &wishes))
		return policy_fail(error, 0, "%s: no memory", a->ifname);
	if (wishes.n && bans_lift(a, "", wishes.wish, wishes.n, &lifted, error)) {
		free_wishes(&wishes);
		return -1;
	}
	free_wishes(&wishes);
	if (make_wishes(add, now_ns, &wishes))
		return policy_fail(error, 0, "%s: no memory", a->ifname);
	left_out = wishes.n ? ban(a, place, &wishes, &banned, error) : 0;
	free_wishes(&wishes);
	if (left_out < 0)
		return -1;
	if (lifted.done || (banned.done && !place->again))
		say("%s: %zu banned, %zu lifted", a->ifname, banned.done, lifted.done);
	if (left_out && (size_t)left_out != place->no_room)
		say("%s: there was no room for %ld of %zu bans: raise bans in the policy",
		    a->ifname, left_out, add->n);
	place->no_room = (size_t)left_out;
	place->again = left_out;
	return 0;
}

/* The pacer has `is` from now on, and the place remembers that. */
static int bring(struct attached *a, struct place *place, struct ban_pieces *is,
		 struct policy_error *error)
{
	uint64_t now_ns = host_now_ns();
	struct ban_pieces lift, add;
	int result;

	if (decisions_change(&place->has, is, now_ns, SLACK_NS, &lift, &add)) {
		free_pieces(is);
		return policy_fail(error, 0, "%s: no memory", a->ifname);
	}
	result = tell_changes(a, place, &lift, place->again ? is : &add, now_ns, error);
	free_pieces(&lift);
	free_pieces(&add);
	if (result) { /* it may have some of both, by which it can be told what to lift */
		place->again = true;
		if (!decisions_either(&place->has, is, &add)) {
			free_pieces(&place->has);
			place->has = add;
		}
		free_pieces(is);
		return -1;
	}
	free_pieces(&place->has);
	place->has = *is;
	return 0;
}

static int tend(struct bouncer *b, size_t i)
{
	struct watched *at = &b->watch.at[i];
	struct place *place = &b->place[i];
	struct ban_pieces is;
	int result = at->found ? 0 : -1;

	if (!at->found || place->prog_id != at->a.prog_id) {
		free_pieces(&place->has);
		*place = (struct place){.prog_id = at->found ? at->a.prog_id : 0};
	}
	if (!result && decisions_bans(&b->decisions, host_now_ns(), &is))
		result = policy_fail(&at->error, 0, "%s: no memory", at->ifname);
	else if (!result)
		result = bring(&at->a, place, &is, &at->error);
	if (result && !at->told)
		say("%s", at->error.text);
	at->told = result;
	return result;
}

/* --- the API -------------------------------------------------------------------------------- */

static int take_answer(struct bouncer *b, const char *answer, size_t len, bool whole,
		       struct policy_error *error)
{
	struct policy_error why = {0};
	struct decisions_told told;

	if (decisions_take(&b->decisions, answer, len, whole, host_now_ns(), &told, &why))
		return policy_fail(error, 0, "%.100s: %.250s", b->settings.url, why.text);
	if (told.left_out)
		say("%zu decision%s left out, the first: %s", told.left_out,
		    told.left_out == 1 ? " is" : "s are", told.why);
	return 0;
}

/* 0, 1 where it is to stop, -1. */
static int ask(struct bouncer *b)
{
	struct policy_error error = {0};
	bool whole = !b->asked || b->partly;
	const char *answer;
	size_t len;
	int result = lapi_ask(b->lapi, whole, b->stop_fd, &answer, &len, &error);

	if (!result)
		result = take_answer(b, answer, len, whole, &error);
	if (result > 0)
		return result;
	if (result && !b->down)
		say("%s%s", error.text,
		    b->asked ? ": what is banned lasts as long as was decided" : "");
	if (!result && b->down)
		say("%s: it answers again", b->settings.url);
	b->down = b->partly = result;
	b->asked |= !result;
	return result;
}

/* Waits; true: it is to stop. */
static bool stops(const struct bouncer *b)
{
	uint64_t ns = b->settings.every_ns;
	struct timespec ts = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	struct pollfd fd = {.fd = b->stop_fd, .events = POLLIN};

	return ppoll(&fd, 1, &ts, NULL) > 0;
}

static int go(struct bouncer *b, bool once)
{
	do {
		struct policy_error error;
		int result = ask(b);

		if (result > 0)
			return EXIT_DONE;
		if (watch_look(&b->watch, &error)) {
			say("%s", error.text);
			result = -1;
		}
		for (size_t i = 0; b->asked && i < b->watch.n; i++)
			result |= tend(b, i);
		if (once)
			return result ? EXIT_FAILED : EXIT_DONE;
	} while (!stops(b));
	return EXIT_DONE;
}

/* --- the settings --------------------------------------------------------------------------- */

static int read_settings(const char *file, struct settings *settings)
{
	static char text[SETTINGS_LENGTH_MAX];
	struct policy_error error = {0};
	FILE *f = fopen(file, "re");
	struct stat st;
	size_t len;

	if (!f || fstat(fileno(f), &st)) {
		say("%s: %s", file, strerror(errno));
		if (f)
			fclose(f);
		return EXIT_WRONG;
	}
	len = fread(text, 1, sizeof(text), f);
	if (ferror(f) || len == sizeof(text)) {
		say("%s: %s", file, ferror(f) ? strerror(errno) : "it is too long");
		fclose(f);
		return EXIT_WRONG;
	}
	fclose(f);
	if (settings_read(settings, text, len, &error)) {
		if (error.line > 0)
			say("%s:%d: %s", file, error.line, error.text);
		else
			say("%s: %s", file, error.text);
		return EXIT_WRONG;
	}
	if (st.st_mode & S_IROTH)
		say("%s: everybody can read its api_key: `chmod o-r %s`", file, file);
	return EXIT_DONE;
}

static int begin(struct bouncer *b, struct policy_error *error)
{
	char *ifname[SETTINGS_INTERFACES];
	sigset_t stop;

	for (size_t i = 0; i < b->settings.n; i++)
		ifname[i] = b->settings.ifname[i];
	b->options = (struct lapi_options){b->settings.url, b->settings.key,
					   *b->settings.ca_file ? b->settings.ca_file : NULL,
					   *b->settings.origins ? b->settings.origins : NULL,
					   (long)(b->settings.timeout_ns / 1000000000)};
	json_count_failures();
	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGINT);
	b->stop_fd = -1;
	if (sigprocmask(SIG_BLOCK, &stop, NULL) ||
	    (b->stop_fd = signalfd(-1, &stop, SFD_CLOEXEC)) < 0)
		return policy_fail(error, 0, "signals cannot be waited for: %s", strerror(errno));
	if (watch_begin(&b->watch, ifname, b->settings.n))
		return policy_fail(error, 0, "no memory");
	b->lapi = lapi_open(&b->options, error);
	return b->lapi ? 0 : -1;
}

static int run(struct bouncer *b, bool once)
{
	struct policy_error error = {0};
	int code;

	if (begin(b, &error)) {
		say("%s", error.text);
		code = EXIT_FAILED;
	} else {
		code = go(b, once);
	}
	lapi_close(b->lapi);
	watch_end(&b->watch);
	decisions_free(&b->decisions);
	for (size_t i = 0; i < SETTINGS_INTERFACES; i++)
		free_pieces(&b->place[i].has);
	return code;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"config", required_argument, NULL, 'c'}, {"check", no_argument, NULL, 't'},
	    {"once", no_argument, NULL, 'o'},	      {"help", no_argument, NULL, 'h'},
	    {"version", no_argument, NULL, 'V'},      {0}};
	static struct bouncer b;
	const char *file = SETTINGS_FILE;
	bool check = false, once = false;
	int option, code;

	while ((option = getopt_long(argc, argv, "c:hV", options, NULL)) >= 0) {
		switch (option) {
		case 'c':
			file = optarg;
			break;
		case 't':
			check = true;
			break;
		case 'o':
			once = true;
			break;
		case 'h':
			return usage(stdout);
		case 'V':
			puts(NAME " " PACER_VERSION);
			return EXIT_DONE;
		default: /* it has been said */
			return EXIT_WRONG;
		}
	}
	if (optind < argc || (check && once))
		return usage(stderr);
	code = read_settings(file, &b.settings);
	return code || check ? code : run(&b, once);
}
