/* SPDX-License-Identifier: GPL-2.0-only */
/* keys: a filter for scripts. For each line of input it prints a key that may be used now. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/emit.h"
#include "keys/keys.h"
#include "config/text.h"
#include "live/host.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

/* What was read from stdin and is not answered yet. */
struct input {
	char bytes[4096];
	size_t at, end;
	bool ended; /* nothing follows */
	int error;  /* errno of the read that failed, or 0 */
};

struct keys_run {
	struct keys *keys;
	const struct options *o;
	struct input input;
	struct policy_error error;
};

static uint64_t clock_now(void *arg)
{
	(void)arg;
	return host_boot_ns();
}

/* 0, or -1 with *error filled. */
static int read_boot(uint8_t boot[16], struct policy_error *error)
{
	FILE *f = fopen(BOOT_ID, "re");
	char text[64] = "";
	int digits = 0;

	if (f && !fgets(text, sizeof(text), f))
		text[0] = 0;
	if (f)
		fclose(f);
	memset(boot, 0, 16);
	for (const char *c = text; *c && digits < 32; c++) {
		unsigned int value;
		char digit[2] = {*c, 0};

		if (sscanf(digit, "%x", &value) == 1) {
			boot[digits / 2] = (uint8_t)(boot[digits / 2] << 4 | value);
			digits++;
		}
	}
	if (digits == 32)
		return 0;
	return policy_fail(error, 0,
			   "%s cannot be read: --state needs it to notice a restart of the machine",
			   BOOT_ID);
}

/* The text of the file, to be freed; NULL: see errno. */
static char *read_text(const char *path, size_t *len)
{
	FILE *f = fopen(path, "re");
	char *text = f ? malloc(KEYS_TEXT_MAX + 1) : NULL;

	*len = text ? fread(text, 1, KEYS_TEXT_MAX + 1, f) : 0;
	if (text && ferror(f)) {
		free(text);
		text = NULL;
	}
	if (text && *len > KEYS_TEXT_MAX) {
		free(text);
		text = NULL;
		errno = EFBIG;
	}
	if (f)
		fclose(f);
	return text;
}

/* --keys: a file, if there is one of that name, or names between commas. 0 or the exit code. */
static int read_keys(const char *given, struct keys_list *list)
{
	struct policy_error error = {0};
	int failed;
	char *text;
	size_t len;

	if (access(given, F_OK) && strchr(given, ',')) {
		if (!keys_parse(given, strlen(given), ',', list, &error))
			return 0;
		return error.line == POLICY_NO_MEMORY ? gave_up("keys", error.text)
						      : misused("keys", "--keys: %s", error.text);
	}
	text = read_text(given, &len);
	if (!text && errno == ENOENT)
		return misused("keys",
			       "--keys %s: there is no such file, and a list of keys has a comma: "
			       "write %s, for one key",
			       given, given);
	if (!text) {
		complaint("%s: %s", given, strerror(errno));
		return EXIT_WRONG;
	}
	failed = keys_parse(text, len, '\n', list, &error);
	free(text);
	return failed ? complain(given, &error) : 0;
}

static int read_count(const char *option, const char *text, uint32_t *count)
{
	uint64_t value = 0;

	if (!text)
		return 0;
	if (units_count(text, &value) || !value || value > UINT32_MAX)
		return misused("keys", "%s %s is not a number from 1 to %u, such as 500", option,
			       text, UINT32_MAX);
	*count = (uint32_t)value;
	return 0;
}

static int read_time(const char *option, const char *text, uint64_t *ns)
{
	if (!text)
		return 0;
	if (units_duration(text, ns) || !*ns)
		return misused("keys", "%s %s %s", option, text, units_duration_wrong(text));
	return 0;
}

static int read_limits(const struct options *o, struct keys_limits *limits)
{
	int code = read_count("--max", o->max, &limits->max);

	code = code ? code : read_time("--window", o->window, &limits->window_ns);
	code = code ? code : read_time("--max-window", o->max_window, &limits->max_window_ns);
	return code ? code : read_count("--threshold", o->threshold, &limits->threshold);
}

/* The next character of stdin, or -1 at the end, at a signal or on an error. */
static int read_byte(struct keys_run *run)
{
	struct pollfd at[] = {{STDIN_FILENO, POLLIN, 0}, {ends_fd(), POLLIN, 0}};
	struct input *in = &run->input;
	ssize_t got;

	if (in->at < in->end)
		return (unsigned char)in->bytes[in->at++];
	while (!in->ended) {
		got = poll(at, 2, -1);
		if (got > 0 && at[1].revents)
			break;
		if (got > 0)
			got = read(STDIN_FILENO, in->bytes, sizeof(in->bytes));
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		in->ended = got <= 0;
		in->error = got < 0 ? errno : 0;
		if (in->ended)
			break;
		in->at = 1;
		in->end = (size_t)got;
		return (unsigned char)in->bytes[0];
	}
	return -1;
}

/* Reads a line. The last one needs no newline. A signal ends it, whatever there is to be read. */
static bool read_line(struct keys_run *run)
{
	bool any = false;
	int byte;

	if (ends_came())
		return false;
	while ((byte = read_byte(run)) >= 0) {
		if (byte == '\n')
			return true;
		any = true;
	}
	return any && run->input.ended;
}

/* 0, or the exit code. */
static int answer(const struct keys_run *run, const struct keys_given *given)
{
	const char *name = given->name;
	int code;

	emit_begin(run->o->json);
	emit_object("");
	if (name) {
		emit_string("key", name, "%s\n",
			    isatty(STDOUT_FILENO) ? printable(name).text : name);
	} else {
		emit_null("key", "-\n");
		emit_uint("wait_ns", given->wait_ns, NULL);
	}
	emit_close();
	code = emit_end_line();
	return flushed() ? code : EXIT_FAILED;
}

/* Answers each line until the input ends. Returns the exit code. */
static int filter(struct keys_run *run)
{
	while (read_line(run)) {
		struct keys_given given;
		enum keys_answer found;

		for (;;) {
			found = keys_next(run->keys, &given, &run->error);
			if (found != KEYS_NONE || !run->o->wait || ends_wait(given.wait_ns))
				break;
		}
		if (found == KEYS_FAILED)
			return complain(NULL, &run->error);
		if (found == KEYS_NONE && run->o->wait)
			break;
		if (answer(run, &given))
			return EXIT_FAILED;
	}
	if (run->input.error) {
		policy_explain(&run->error, 0, "stdin: %s", strerror(run->input.error));
		return complain(NULL, &run->error);
	}
	return EXIT_DONE;
}

/*
 * A signal ends it between two answers, or where nobody reads the last, after the state has been
 * synced to the disk. What was counted for an answer that nobody read stays counted.
 */
static int hand_out(const struct options *o, const struct keys_list *list,
		    const struct keys_limits *limits)
{
	static struct keys_run run;
	struct keys_clock clock = {.now = clock_now};
	enum keys_opened opened;
	int code;

	run.o = o;
	if (o->state && read_boot(clock.boot, &run.error))
		return complain(NULL, &run.error);
	opened = keys_open(list, limits, o->state, &clock, &run.keys, &run.error);
	if (opened == KEYS_REFUSED)
		return complain(o->state, &run.error);
	if (opened == KEYS_UNABLE)
		return complain(NULL, &run.error);
	signal(SIGPIPE, SIG_IGN);
	code = until_ended(ENDS_OF_COMMAND);
	if (!code)
		code = filter(&run);
	if (keys_close(run.keys, &run.error) && code == EXIT_DONE)
		code = complain(NULL, &run.error);
	ends_release(); /* by which the parent process sees that a signal ended it */
	return code;
}

/* JSON is UTF-8. Keys that are not are refused before the first one is handed out. */
static int check_text(const struct keys_list *list)
{
	for (uint32_t i = 0; i < list->n; i++) {
		json_t *text = json_string(list->name[i]);

		if (!text)
			return misused("keys", "--json: key %u is not in UTF-8", i + 1);
		json_decref(text);
	}
	return 0;
}

static int run_keys(struct options *o)
{
	struct keys_limits limits = {0};
	struct pacer_throttle_profile profile;
	struct policy_error error = {0};
	struct keys_list list = {0};
	int code;

	if (o->n_args || !o->keys || !o->max || !o->window)
		return misused("keys", "it wants --keys FILE|a,b,c --max N --window TIME");
	code = o->state ? misused_stream("keys", o->state) : EXIT_DONE;
	code = code ? code : read_limits(o, &limits);
	code = code ? code : read_keys(o->keys, &list);
	if (code)
		return code;
	if (keys_profile(&limits, list.n, &profile, &error))
		code = misused("keys", "%s", error.text);
	else if (o->json && check_text(&list))
		code = EXIT_WRONG;
	else
		code = hand_out(o, &list, &limits);
	keys_list_free(&list);
	return code;
}

static const struct option_row keys_options[] = {
    {"keys", 0, "FILE|a,b,c", "the names: a file with one a line, or a list", OPTION_TEXT(keys),
     .needed = true},
    {"max", 0, "N", "uses of a key within any window", OPTION_TEXT(max), .needed = true},
    {"window", 0, "TIME", "such as 10m", OPTION_TEXT(window), .needed = true},
    {"max-window", 0, "TIME", "none is refused wrongly unless all uses lie within it",
     OPTION_TEXT(max_window)},
    {"threshold", 0, "N", "nor unless fewer uses than these are free", OPTION_TEXT(threshold)},
    {"wait", 0, NULL, "answer with the first key that becomes free", OPTION_FLAG(wait)},
    {"state", 0, "FILE", "keep the count there, across runs and processes", OPTION_TEXT(state)},
    {0},
};

const struct verb verb_keys = {
    "keys",
    "",
    "a filter for scripts: a line in, a key that may be used now out",
    keys_options,
    run_keys,
    .group = VERBS_SCRIPT,
    .example = "echo | xdp-pacer keys --keys a,b --max 5 --window 10m --state uses"};
