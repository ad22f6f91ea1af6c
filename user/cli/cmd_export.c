/* SPDX-License-Identifier: GPL-2.0-only */
/* export: figures for Prometheus, over HTTP or as a file for the node exporter. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/emit.h"
#include "cli/http.h"
#include "cli/metrics.h"
#include "cli/several.h"
#include "config/durable.h"
#include "live/host.h"
#include "live/watch.h"

#define LISTEN	  "127.0.0.1:10477"
#define FILE_MODE 0644 /* the node exporter is another user */

/* --- figures -------------------------------------------------------------------------------- */

/* What has been found wrong is said once, until it is right again. */
static void tell(struct watched *at, bool right)
{
	if (!right && !at->told)
		complain(NULL, &at->error);
	at->told = !right;
}

/* Of one interface. */
struct figures {
	struct reading reading;
	struct shadow_reading shadow;
};

/* NULL: it has none, or it has just ended. */
static const struct shadow_reading *read_shadow(const struct attached *a, struct shadow_reading *to)
{
	struct policy_error unused;
	struct attached shadow;
	int failed;

	if (!a->shadow_id || attached_shadow(a, &shadow, &unused))
		return NULL;
	failed = shadow_read(&shadow, to, &unused);
	attached_release(&shadow);
	return failed ? NULL : to;
}

/* Returns how many of the interfaces could be read. */
static size_t read_all(struct watch *w, struct metrics_interface *to, struct figures *figures,
		       size_t *n)
{
	size_t up = 0;

	for (size_t i = 0; i < w->n; i++) {
		struct watched *at = &w->at[i];
		struct metrics_interface *m = &to[*n];
		uint64_t begin_ns = host_now_ns();

		if (!at->shown)
			continue;
		*m = (struct metrics_interface){.ifname = at->ifname};
		if (at->found && !reading_take(&at->a, &figures[*n].reading, &at->error)) {
			m->reading = &figures[*n].reading;
			m->shadow = read_shadow(&at->a, &figures[*n].shadow);
			m->mode = at->a.mode;
			m->dispatcher = at->a.dispatcher;
			m->read_ns = host_now_ns() - begin_ns;
			up++;
		}
		tell(at, m->reading);
		(*n)++;
	}
	return up;
}

struct made {
	size_t interfaces, up;
	bool failed; /* some may be missing */
};

/* NULL: no memory. */
static char *make(struct watch *w, enum metrics_form form, size_t *len, struct made *made)
{
	struct policy_error error = {0};
	struct metrics_interface *to;
	struct figures *figures;
	char *text = NULL;

	*made = (struct made){0};
	made->failed = watch_look(w, &error);
	if (made->failed)
		complain(NULL, &error);
	to = calloc(w->n + 1, sizeof(*to));
	figures = calloc(w->n + 1, sizeof(*figures));
	if (to && figures) {
		made->up = read_all(w, to, figures, &made->interfaces);
		text = metrics_text(form, to, made->interfaces, len);
	}
	for (size_t i = 0; i < made->interfaces; i++) {
		reading_free(&figures[i].reading);
		shadow_reading_free(&figures[i].shadow);
	}
	free(to);
	free(figures);
	return text;
}

/* --- over HTTP ------------------------------------------------------------------------------ */

static char *make_page(const char *accept, size_t *len, const char **type, void *arg)
{
	enum metrics_form form = metrics_wanted(accept);
	struct made made;

	*type = metrics_type(form);
	return make(arg, form, len, &made);
}

static void idle(void *arg)
{
	watch_tidy(arg);
}

static int serve(struct watch *w, const struct options *o)
{
	const struct http_page page = {make_page, idle, w};
	struct policy_error error = {0};
	char bound[HTTP_TEXT];
	int fd = http_listen(o->listen ? o->listen : LISTEN, bound, &error);

	if (fd < 0)
		return error.line ? misused("export", "%s", error.text) : complain(NULL, &error);
	output_gives_way();
	emit_begin(o->json);
	emit_object("");
	emit_string("listen", bound, "metrics are on http://%s" HTTP_PATH "\n", bound);
	emit_close();
	if (emit_end() || !flushed()) {
		close(fd);
		return EXIT_FAILED;
	}
	return http_serve(fd, &page, &error) ? complain(NULL, &error) : EXIT_DONE;
}

/* --- as a file ------------------------------------------------------------------------------ */

/* By way of a file whose name ends in XXXXXX. */
static int replace(const char *file, char *name, const char *text, size_t len)
{
	int fd = mkostemp(name, O_CLOEXEC), err;

	if (fd < 0)
		return errno;
	err = write_whole(fd, text, len) ? errno : 0;
	if (!err && (fchmod(fd, FILE_MODE) || fsync(fd)))
		err = errno;
	if (close(fd) && !err)
		err = errno;
	if (!err && rename(name, file))
		err = errno;
	if (err)
		unlink(name);
	else
		(void)durable_name(file); /* if not, the next file will be */
	return err;
}

/* Under another name, and in the file's place when it is whole; 0, or an errno. */
static int write_beside(const char *file, const char *text, size_t len)
{
	char name[PATH_MAX];
	sigset_t before;
	int err;

	if (snprintf(name, sizeof(name), "%s.XXXXXX", file) >= (int)sizeof(name))
		return ENAMETOOLONG;
	durable_block_stops(&before);
	err = replace(file, name, text, len);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return err;
}

#define LINKS_MAX 40 /* as many as the kernel follows */

/* The path of what the link leads to; false: it cannot be read, or is too long. */
static bool follow_link(char path[PATH_MAX])
{
	char to[PATH_MAX], *slash = strrchr(path, '/');
	ssize_t n = readlink(path, to, sizeof(to) - 1);
	size_t kept;

	if (n < 0)
		return false;
	to[n] = 0;
	kept = *to == '/' || !slash ? 0 : (size_t)(slash + 1 - path);
	if (kept + (size_t)n >= PATH_MAX)
		return false;
	memcpy(path + kept, to, (size_t)n + 1);
	return true;
}

/* Did another user, who is not root, make the link, or one that it leads on by? */
static bool is_link_of_others(const char *file)
{
	char path[PATH_MAX];
	struct stat st;

	if (snprintf(path, sizeof(path), "%s", file) >= (int)sizeof(path))
		return false; /* nor can it be opened */
	for (int i = 0; i < LINKS_MAX; i++) {
		if (lstat(path, &st) || !S_ISLNK(st.st_mode))
			return false;
		if (st.st_uid && st.st_uid != geteuid())
			return true;
		if (!follow_link(path))
			return false;
	}
	return false;
}

static int write_file(const char *file, const char *text, size_t len)
{
	char real[PATH_MAX];
	struct stat was;
	int err;

	if (!strcmp(file, "-")) {
		fwrite(text, 1, len, stdout);
		(void)stdout_failed(); /* which keeps the cause; it is said at the end */
		return EXIT_DONE;
	}
	if (!stat(file, &was) && !S_ISREG(was.st_mode)) {
		complaint("%s: it is no file that could be replaced: name another, or - for stdout",
			  file);
		return EXIT_FAILED;
	}
	/* A link stays: what it leads to is replaced. /dev/stdout is one, to nothing if that is
	 * closed. */
	if (lstat(file, &was)) {
		err = errno == ENOENT ? write_beside(file, text, len) : errno;
	} else if (!S_ISLNK(was.st_mode)) {
		err = write_beside(file, text, len);
	} else if (is_link_of_others(file)) {
		complaint("%s: it is a link that another user has made, to a file that they chose: "
			  "remove it, or name another",
			  file);
		return EXIT_FAILED;
	} else {
		err = realpath(file, real) ? write_beside(real, text, len) : errno;
	}
	if (!err)
		return EXIT_DONE;
	complaint("%s: the metrics cannot be written: %s", file, strerror(err));
	return EXIT_FAILED;
}

static int write_once(struct watch *w, const struct options *o)
{
	bool seen = !strcmp(o->textfile, "-") && isatty(STDOUT_FILENO);
	struct made made;
	size_t len = 0;
	char *text = make(w, seen ? METRICS_SEEN : METRICS_PLAIN, &len, &made);
	int code;

	if (!text)
		return gave_up("export", "no memory");
	code = made.failed ? EXIT_FAILED : write_file(o->textfile, text, len);
	free(text);
	if (!code && o->json && strcmp(o->textfile, "-") != 0) {
		emit_begin(true);
		emit_object("");
		emit_string("textfile", o->textfile, NULL);
		emit_uint("interfaces", made.interfaces, NULL);
		emit_uint("up", made.up, NULL);
		emit_close();
		code = emit_end();
	}
	return code || made.up < made.interfaces ? EXIT_FAILED : EXIT_DONE;
}

/* --- the verb ------------------------------------------------------------------------------- */

static int run_export(struct options *o)
{
	bool all = !o->n_args || (o->n_args == 1 && several_all(o));
	struct watch w;
	int code;

	if (o->listen && o->textfile)
		return misused("export", "it wants --listen or --textfile, not both");
	code = several_all_alone("export", o, o->n_args);
	if (!code)
		code = several_fit(o, o->n_args);
	if (code)
		return code;
	if (watch_begin(&w, o->args, all ? 0 : (size_t)o->n_args))
		return gave_up("export", "no memory");
	code = o->textfile ? write_once(&w, o) : serve(&w, o);
	watch_end(&w);
	return code;
}

static const struct option_row options[] = {
    {"listen", 'l', "ADDR:PORT", "where HTTP is served; 127.0.0.1:10477 unless said",
     OPTION_TEXT(listen)},
    {"textfile", 't', "FILE", "write a file for the node exporter instead", OPTION_TEXT(textfile)},
    {0},
};

const struct verb verb_export = {"export",
				 "[IFACE...|all]",
				 "counters and state for Prometheus",
				 options,
				 run_export,
				 .group = VERBS_LOOK,
				 .example = "xdp-pacer export eth0 --listen 127.0.0.1:10477"};
