/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * xdp-pacer-crowdsec: bans on the pacers of some interfaces what a CrowdSec local API decides.
 *
 * What is banned has the end of its decision. So a bouncer that has ended, or an API that is down,
 * leaves bans that end by themselves, and no ban is lifted for want of an answer. After any answer
 * that was not whole it asks for all there is, since the API counts what it has sent as received.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bouncer/decisions.h"
#include "bouncer/lapi.h"
#include "bouncer/place.h"
#include "bouncer/say.h"
#include "bouncer/settings.h"
#include "config/cause.h"
#include "config/file_lock.h"
#include "fleet/json.h"
#include "live/descriptors.h"
#include "live/ends.h"
#include "live/host.h"
#include "live/watch.h"

#define MEANWHILE_NS 1000000000ull

enum exit_code { EXIT_DONE, EXIT_FAILED, EXIT_WRONG };

/* Has stdout taken all that was asked for? */
static int written(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return EXIT_DONE;
	bouncer_say("the result cannot be written: %s", strerror(errno));
	return EXIT_FAILED;
}

static int usage(FILE *to)
{
	fputs("usage: " BOUNCER_NAME " [-c FILE] [--check | --once]\n"
	      "Ban what CrowdSec decides, on the pacers of the interfaces in FILE.\n\n"
	      "  -c, --config FILE  its settings; " SETTINGS_FILE "\n"
	      "                     unless said\n"
	      "      --check        read the settings, and do nothing\n"
	      "      --once         ask once, ban, and end\n"
	      "      --help         this\n"
	      "      --version      its version\n",
	      to);
	return to == stdout ? written() : EXIT_WRONG;
}

struct bouncer {
	struct settings settings;
	struct lapi_options options;
	struct lapi *lapi;
	struct watch watch;
	struct place place[SETTINGS_INTERFACES];
	struct decisions decisions;
	bool left_out;		  /* some of the last answer */
	bool asked;		  /* there has been an answer */
	bool partly;		  /* the last was none: the next has to be whole */
	struct policy_error down; /* why there is none, as it was said; "": there is */
	uint64_t tended_ns;
};

/* --- the interfaces ------------------------------------------------------------------------- */

static int tend(struct bouncer *b, size_t i)
{
	struct watched *at = &b->watch.at[i];
	struct ban_pieces is;
	int result = at->found ? 0 : -1;

	if (!result && decisions_bans(&b->decisions, host_now_ns(), &is))
		result = policy_fail(&at->error, 0, "%s: no memory", at->ifname);
	else if (!result)
		result = place_bring(&at->a, &b->place[i], &is, &at->error);
	if (result && !at->told)
		bouncer_say("%s", at->error.text);
	at->told = result;
	return result;
}

static int tend_all(struct bouncer *b)
{
	struct policy_error error;
	int result = 0;

	if (watch_look(&b->watch, &error)) {
		bouncer_say("%s", error.text);
		result = -1;
	}
	for (size_t i = 0; b->asked && i < b->watch.n; i++)
		result |= tend(b, i);
	b->tended_ns = host_now_ns();
	return result;
}

/* By what is known: a pacer that is new need not wait for the answer that is on its way. */
static void tend_meanwhile(void *arg)
{
	struct bouncer *b = arg;

	if (b->asked && host_now_ns() - b->tended_ns >= MEANWHILE_NS)
		(void)tend_all(b);
}

/* --- the API -------------------------------------------------------------------------------- */

/* What is left of a decision was left when its answer began: how long that came adds nothing. */
static int take_answer(struct bouncer *b, const struct lapi_answer *answer, bool whole,
		       struct policy_error *error)
{
	struct policy_error why = {0};
	struct decisions_told told;

	if (decisions_take(&b->decisions, answer->text, answer->len, whole, answer->begun_ns, &told,
			   &why))
		return policy_fail(error, 0, "%.100s: %.250s", b->settings.shown, why.text);
	b->left_out = told.left_out;
	if (told.left_out)
		bouncer_say("%zu decision%s left out, the first: %s", told.left_out,
			    told.left_out == 1 ? " is" : "s are", told.why);
	return 0;
}

/* Each cause once, until another follows. */
static void say_down(struct bouncer *b, const struct policy_error *why)
{
	if (!cause_same(b->down.text, why->text))
		bouncer_say("%s%s", why->text,
			    b->asked ? ": what is banned lasts as long as was decided" : "");
	b->down = *why;
}

static void say_up(struct bouncer *b)
{
	if (b->down.text[0])
		bouncer_say("%s: it answers again", b->settings.shown);
	b->down.text[0] = 0;
}

/* 0, 1 where it is to stop, -1. */
static int ask(struct bouncer *b)
{
	struct policy_error error = {0};
	bool whole = !b->asked || b->partly;
	struct lapi_answer answer;
	int result = lapi_ask(b->lapi, whole, ends_fd(), &answer, &error);

	if (!result)
		result = take_answer(b, &answer, whole, &error);
	if (result > 0)
		return result;
	if (result)
		say_down(b, &error);
	else
		say_up(b);
	b->partly = result;
	b->asked |= !result;
	return result;
}

/* Of what is decided. */
static bool lacks(const struct bouncer *b)
{
	bool lacks = b->left_out;

	for (size_t i = 0; i < b->watch.n; i++)
		lacks |= place_lacks(&b->place[i]);
	return lacks;
}

static int go(struct bouncer *b, bool once)
{
	do {
		int result = ask(b);

		if (result > 0)
			return EXIT_DONE;
		result |= tend_all(b);
		if (once)
			return result || lacks(b) ? EXIT_FAILED : EXIT_DONE;
	} while (!ends_wait(b->settings.every_ns));
	if (!ends_blind())
		return EXIT_DONE;
	bouncer_say("it ends, as it cannot wait any more: %s", strerror(ends_blind()));
	return EXIT_FAILED;
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
		bouncer_say("%s: %s", file, strerror(errno));
		if (f)
			fclose(f);
		return EXIT_WRONG;
	}
	len = fread(text, 1, sizeof(text), f);
	if (ferror(f) || len == sizeof(text)) {
		bouncer_say("%s: %s", file, ferror(f) ? strerror(errno) : "it is too long");
		fclose(f);
		return EXIT_WRONG;
	}
	fclose(f);
	if (settings_read(settings, text, len, &error)) {
		if (error.line > 0)
			bouncer_say("%s:%d: %s", file, error.line, error.text);
		else
			bouncer_say("%s: %s", file, error.text);
		return EXIT_WRONG;
	}
	if (st.st_mode & S_IROTH)
		bouncer_say("%s: everybody can read its api_key: `chmod o-r %s`", file, file);
	return EXIT_DONE;
}

static int begin(struct bouncer *b, struct policy_error *error)
{
	char *ifname[SETTINGS_INTERFACES];

	for (size_t i = 0; i < b->settings.n; i++)
		ifname[i] = b->settings.ifname[i];
	b->options = (struct lapi_options){b->settings.url,
					   b->settings.shown,
					   b->settings.key,
					   *b->settings.ca_file ? b->settings.ca_file : NULL,
					   *b->settings.origins ? b->settings.origins : NULL,
					   (long)(b->settings.timeout_ns / 1000000000),
					   tend_meanwhile,
					   b};
	json_count_failures();
	if (ends_hold(ENDS_OF_SERVICE))
		return policy_fail(error, 0, "signals cannot be waited for: %s", strerror(errno));
	bouncer_gives_way();
	if (watch_begin(&b->watch, ifname, b->settings.n))
		return policy_fail(error, 0, "no memory");
	b->lapi = lapi_open(&b->options, error);
	return b->lapi ? 0 : -1;
}

static int run(struct bouncer *b, bool once)
{
	struct policy_error error = {0};
	int code;

	if (host_begin(&error) || begin(b, &error)) {
		bouncer_say("%s", error.text);
		code = EXIT_FAILED;
	} else {
		code = go(b, once);
	}
	lapi_close(b->lapi);
	watch_end(&b->watch);
	decisions_free(&b->decisions);
	for (size_t i = 0; i < SETTINGS_INTERFACES; i++)
		place_free(&b->place[i]);
	return code;
}

static void held(const char *line)
{
	bouncer_say("%s", line);
}

int main(int argc, char **argv)
{
	static const struct file_lock_listener listener = {ends_came, held};
	static const struct option options[] = {
	    {"config", required_argument, NULL, 'c'}, {"check", no_argument, NULL, 't'},
	    {"once", no_argument, NULL, 'o'},	      {"help", no_argument, NULL, 'h'},
	    {"version", no_argument, NULL, 'V'},      {0}};
	static struct bouncer b;
	const char *file = SETTINGS_FILE;
	bool check = false, once = false;
	int option, code;

	if (!descriptors_open_standard())
		return EXIT_FAILED;
	descriptors_raise();
	file_lock_listen(&listener);
	signal(SIGXFSZ, SIG_IGN); /* a file past the limit of its size is an error of the write */
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
			puts(BOUNCER_NAME " " PACER_VERSION);
			return written();
		default: /* it has been said */
			return EXIT_WRONG;
		}
	}
	if (optind < argc || (check && once))
		return usage(stderr);
	code = read_settings(file, &b.settings);
	return code || check ? code : run(&b, once);
}
