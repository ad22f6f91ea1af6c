/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/several.h"

#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/emit.h"
#include "config/durable.h"
#include "config/text.h"
#include "config/units.h"
#include "live/attached.h"
#include "live/device.h"

#define SEVERAL_MAX 256
#define TOO_MANY    "more than the 256 interfaces that it takes at once: name some of them"

/* The interfaces, and which of them was first with the same state; itself: it is. */
struct several {
	char name[SEVERAL_MAX][IF_NAMESIZE];
	uint32_t control_id[SEVERAL_MAX];
	int code[SEVERAL_MAX]; /* the exit code, of those that it was run for */
	size_t n;
	bool more; /* than there is room for */
};

static int put(struct several *s, const char *ifname)
{
	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->name[i], ifname))
			return -1;
	if (s->n < SEVERAL_MAX)
		snprintf(s->name[s->n++], IF_NAMESIZE, "%s", ifname);
	else
		s->more = true;
	return 0;
}

static int put_found(const char *ifname, void *arg)
{
	(void)put(arg, ifname);
	return 0;
}

/* NULL: it is none of the verb's. */
static const struct word_row *word_named(const struct verb *verb, const char *text)
{
	for (const struct word_row *w = verb->words; w && w->name; w++)
		if (!strcmp(w->name, text))
			return w;
	return NULL;
}

/* How many arguments name interfaces. */
static int count_names(const struct verb *verb, const struct options *o)
{
	int n = 1;

	if (verb->interfaces == INTERFACES_ONLY)
		return o->n_args;
	while (n < o->n_args && !word_named(verb, o->args[n]) && device_named(o->args[n]))
		n++;
	return n;
}

bool several_all(const struct options *o)
{
	return o->n_args && !strcmp(o->args[0], "all") && !device_named("all");
}

int several_all_alone(const char *verb, const struct options *o, int n)
{
	for (int i = 0; i < n && n > 1; i++)
		if (!strcmp(o->args[i], "all") && !device_named("all"))
			return misused(verb,
				       "all is every interface that has a pacer: name no other "
				       "one beside it, or leave it out");
	return EXIT_DONE;
}

int several_fit(const struct options *o, int n)
{
	struct policy_error error = {0};

	for (int i = 0; i < n; i++)
		if (strlen(o->args[i]) >= IF_NAMESIZE && device_index(o->args[i], &error) < 0)
			return complain(NULL, &error);
	return EXIT_DONE;
}

static bool is_all(const struct options *o, int n_names)
{
	return n_names == 1 && several_all(o);
}

/* 0, or the exit code. */
static int find_names(const struct verb *verb, const struct options *o, int n_names,
		      struct several *s)
{
	bool all = is_all(o, n_names);
	struct policy_error error = {0};
	int code = several_fit(o, n_names);

	if (code)
		return code;
	s->n = 0;
	s->more = false;
	if (all) {
		if (attached_each(put_found, s, &error))
			return complain(NULL, &error);
		if (!s->n)
			return gave_up(verb->name,
				       "no interface of this network namespace has a pacer");
	}
	for (int i = 0; i < n_names && !all; i++)
		if (put(s, o->args[i]))
			return misused(verb->name, "%s is named twice", o->args[i]);
	return s->more ? gave_up(verb->name, TOO_MANY) : EXIT_DONE;
}

/* One has no pacer, so nothing is done on the others. */
static int lacks(const struct several *s, size_t i, const struct policy_error *why)
{
	const char *names[SEVERAL_MAX];
	struct policy_error error = *why;
	char others[sizeof(error.text) / 2];

	for (size_t k = 0; k < s->n; k++)
		names[k] = s->name[k];
	if (s->n > 1)
		policy_append(&error, "; nothing is changed on %s",
			      text_others(names, s->n, s->name[i], others, sizeof(others)));
	return complain(NULL, &error);
}

/* Before anything is changed: each has a pacer. */
static int find_pacers(struct several *s)
{
	int code = EXIT_DONE;

	for (size_t i = 0; i < s->n; i++) {
		struct policy_error error = {0};
		struct attached a;

		if (attached_find(s->name[i], &a, &error)) {
			code = lacks(s, i, &error);
			continue;
		}
		s->control_id[i] = a.control_id;
		attached_release(&a);
	}
	return code;
}

/* The same, of any version. */
static int find_any(const struct several *s)
{
	int code = EXIT_DONE;

	for (size_t i = 0; i < s->n; i++) {
		struct policy_error error = {0};

		if (attached_any(s->name[i], &error))
			code = lacks(s, i, &error);
	}
	return code;
}

static size_t first_with_state(const struct several *s, size_t i)
{
	size_t k = 0;

	while (s->control_id[k] != s->control_id[i])
		k++;
	return k;
}

static void show_shared(const struct options *o, const char *ifname, const char *with)
{
	emit_begin(o->json);
	emit_object("");
	emit_string("interface", ifname, "%s: ", printable(ifname).text);
	emit_string("shared_with", with, "has the pacer of %s: done for both\n",
		    printable(with).text);
	emit_close();
	(void)emit_end();
}

/* The descriptor of this process that a file is by its name, as that of <(...); else -1. */
static int descriptor_of(const char *name)
{
	static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
	uint64_t fd;

	if (!strcmp(name, "-") || !strcmp(name, "/dev/stdin"))
		return STDIN_FILENO;
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
		if (!strncmp(name, folders[i], strlen(folders[i])) &&
		    !units_count(name + strlen(folders[i]), &fd) && fd < INT_MAX)
			return (int)fd;
	return -1;
}

/* What was read of it is there for the next interface, too, by the same name. 0, or an errno. */
static int keep(int from)
{
	char buf[4096];
	ssize_t n = 0;
	int fd, err;

	fd = memfd_create("kept", MFD_CLOEXEC);
	while (fd >= 0 && (n = read(from, buf, sizeof(buf))) > 0)
		if (write_whole(fd, buf, (size_t)n)) {
			n = -1;
			break;
		}
	err = fd < 0 || n < 0 || dup2(fd, from) < 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
	return err;
}

/* 0, or the exit code. Of a pipe by a name of its own nothing can be kept. */
static int keep_file(const struct verb *verb, const char *name)
{
	int fd = descriptor_of(name), err;
	struct stat at;

	if (fd < 0)
		return !stat(name, &at) && S_ISFIFO(at.st_mode)
			   ? misused(verb->name,
				     "%s is a pipe, which is read once, and there are several "
				     "interfaces: give a file, or - and that as stdin",
				     printable(name).text)
			   : EXIT_DONE;
	if (fd != STDIN_FILENO && (fstat(fd, &at) || S_ISREG(at.st_mode)))
		return EXIT_DONE;
	err = keep(fd);
	if (!err)
		return EXIT_DONE;
	complaint("%s: %s cannot be kept for each interface: %s", verb->name,
		  fd == STDIN_FILENO ? "stdin" : printable(name).text, strerror(err));
	return EXIT_FAILED;
}

/* What the verb reads for each interface: a policy, or what an argument is the file of. */
static int keep_files(const struct verb *verb, const struct options *o, int n_names)
{
	const char *last = o->args[o->n_args - 1];
	bool replaces = o->n_args - n_names == 3 && !strcmp(o->args[n_names], "replace");
	int code = o->policy ? keep_file(verb, o->policy) : EXIT_DONE;

	if (!code && o->diff)
		code = keep_file(verb, o->diff);
	if (!code && n_names < o->n_args && (replaces || !strcmp(last, "-")))
		code = keep_file(verb, last);
	return code;
}

/* The options with that interface alone, before the arguments behind the names. */
static int run_one(const struct verb *verb, const struct options *o, int n_names, char *ifname)
{
	struct options one = *o;
	int code;

	one.n_args = o->n_args - n_names + 1;
	one.args = calloc((size_t)one.n_args + 1, sizeof(*one.args));
	if (!one.args)
		return gave_up(verb->name, "no memory");
	one.args[0] = ifname;
	memcpy(one.args + 1, o->args + n_names, (size_t)(o->n_args - n_names) * sizeof(*one.args));
	rewind(stdin);
	say_of(ifname);
	code = verb->run(&one);
	say_of(NULL);
	free(one.args);
	return code;
}

static int run_all(const struct verb *verb, const struct options *o, int n_names, struct several *s)
{
	const struct word_row *word =
	    n_names < o->n_args ? word_named(verb, o->args[n_names]) : NULL;
	bool shows = word && word->shows;
	bool changes = verb->group == VERBS_CHANGE && !shows;
	bool listing = verb->group == VERBS_LOOK || shows;
	int code = changes ? find_pacers(s) : verb->any_version ? find_any(s) : EXIT_DONE;
	int last;

	if (!code)
		code = keep_files(verb, o, n_names);
	if (code)
		return code;
	emit_many_begin(o->json);
	for (size_t i = 0; i < s->n; i++) {
		size_t first = changes ? first_with_state(s, i) : i;

		emit_many_next(s->name[i], listing);
		if (first == i)
			s->code[i] = run_one(verb, o, n_names, s->name[i]);
		else if (!s->code[first]) /* or it has said what failed, for both */
			show_shared(o, s->name[i], s->name[first]);
		code = first == i && s->code[i] > code ? s->code[i] : code;
	}
	last = emit_many_end();
	return last > code ? last : code;
}

/* The verb sees to all of them by itself. */
static int run_once(const struct verb *verb, const struct options *o, struct several *s)
{
	char *args[SEVERAL_MAX];
	struct options all = *o;

	for (size_t i = 0; i < s->n; i++)
		args[i] = s->name[i];
	all.args = args;
	all.n_args = (int)s->n;
	all.many = true;
	return verb->run(&all);
}

int several_run(const struct verb *verb, struct options *o)
{
	static struct several s;
	int n_names, code;

	if (verb->interfaces == INTERFACES_NONE || !o->n_args || o->replay) /* a capture has none */
		return verb->run(o);
	n_names = count_names(verb, o);
	if (n_names == 1 && !is_all(o, n_names))
		return verb->run(o);
	code = several_all_alone(verb->name, o, n_names);
	if (code)
		return code;
	if ((o->watch && !verb->takes_several) || o->every || o->pcap)
		return misused(verb->name, "--%s is of one interface",
			       o->watch	  ? "watch"
			       : o->every ? "every"
					  : "pcap");
	code = find_names(verb, o, n_names, &s);
	if (code)
		return code;
	return verb->takes_several ? run_once(verb, o, &s) : run_all(verb, o, n_names, &s);
}
