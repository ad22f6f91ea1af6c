/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/events_pass.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <systemd/sd-journal.h>
#include <time.h>
#include <unistd.h>

#include "live/attached.h"
#include "live/descriptors.h"
#include "live/ends.h"
#include "live/host.h"

#define FIELDS_MAX 16
#define LOOK_NS	   10000000l /* how often one that waits looks for a place */
#define STANDS_US  100000    /* how often one that waits for the journal looks for an end */
#define SOCKET	   "/run/systemd/journal/socket"

/* --- commands --------------------------------------------------------------------------------- */

/* What a command is given of an event. */
struct words {
	const char *name, *ifname, *rule, *key, *text, *json; /* rule, key: NULL: it has none */
};

struct events_waiting {
	struct events_waiting *next;
	bool of_masses;
	struct words words;
	char bytes[]; /* which they point into */
};

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

/* In the child. */
static void run(const char *command, const struct words *words, int from)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGXFSZ, SIG_DFL); /* which is ignored here, and is the command's affair there */
	descriptors_restore();
	setpgid(0, 0);
	set("XDP_PACER_EVENT", words->name);
	set("XDP_PACER_INTERFACE", words->ifname);
	set("XDP_PACER_RULE", words->rule);
	set("XDP_PACER_KEY", words->key);
	set("XDP_PACER_TEXT", words->text);
	if (dup2(from, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		_exit(126);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

/* A pipe holds an event, so that it is written before anybody reads. */
static int filled_pipe(const char *json)
{
	size_t len = strlen(json);
	int fd[2];
	bool good;

	if (pipe2(fd, O_CLOEXEC))
		return -1;
	good = !fcntl(fd[1], F_SETFL, O_NONBLOCK) && write(fd[1], json, len) == (ssize_t)len &&
	       write(fd[1], "\n", 1) == 1;
	close(fd[1]);
	if (good)
		return fd[0];
	close(fd[0]);
	return -1;
}

static int free_place(const struct events_pass *p)
{
	int i = 0;

	while (i < EVENTS_PASS_MAX && p->running[i].pid)
		i++;
	return i;
}

/* In the free place i. */
static bool start(struct events_pass *p, int i, const struct words *words)
{
	int from = filled_pipe(words->json);
	pid_t pid;

	if (from < 0)
		return false;
	pid = fork();
	if (!pid)
		run(p->command, words, from);
	close(from);
	if (pid < 0)
		return false;
	(void)setpgid(pid, pid); /* whichever of the two comes first */
	p->running[i].pid = pid;
	p->running[i].since_ns = host_now_ns();
	return true;
}

static void bury(struct events_pass *p)
{
	uint64_t now_ns = host_now_ns();

	for (int i = 0; i < EVENTS_PASS_MAX; i++) {
		if (!p->running[i].pid)
			continue;
		if (waitpid(p->running[i].pid, NULL, WNOHANG) == p->running[i].pid)
			p->running[i].pid = 0;
		else if (now_ns - p->running[i].since_ns > EVENTS_PASS_NS)
			kill(-p->running[i].pid, SIGKILL); /* its children, too */
	}
}

/* --- those that wait -------------------------------------------------------------------------- */

static bool comes_in_masses(enum event_kind kind)
{
	return kind == EVENT_BAN || kind == EVENT_LOST;
}

static const char *copied(const char *text, char **at)
{
	const char *copy = *at;

	if (!text)
		return NULL;
	*at = stpcpy(*at, text) + 1;
	return copy;
}

static size_t bytes_of(const struct words *w)
{
	return strlen(w->name) + strlen(w->ifname) + (w->rule ? strlen(w->rule) : 0) +
	       (w->key ? strlen(w->key) : 0) + strlen(w->text) + strlen(w->json) + 6;
}

static bool let_wait(struct events_pass *p, const struct words *w, bool of_masses)
{
	struct events_waiting *waiting, **at = &p->first;
	char *bytes;

	if (p->waiting == EVENTS_PASS_WAIT || (of_masses && p->masses == EVENTS_PASS_WAIT / 2))
		return false;
	waiting = malloc(sizeof(*waiting) + bytes_of(w));
	if (!waiting)
		return false;
	bytes = waiting->bytes;
	waiting->of_masses = of_masses;
	waiting->words = (struct words){copied(w->name, &bytes), copied(w->ifname, &bytes),
					copied(w->rule, &bytes), copied(w->key, &bytes),
					copied(w->text, &bytes), copied(w->json, &bytes)};
	while (*at && (of_masses || !(*at)->of_masses))
		at = &(*at)->next;
	waiting->next = *at;
	*at = waiting;
	p->waiting++;
	p->masses += of_masses;
	return true;
}

static void forget_first(struct events_pass *p)
{
	struct events_waiting *first = p->first;

	p->first = first->next;
	p->waiting--;
	p->masses -= first->of_masses;
	free(first);
}

void events_tidy(struct events_pass *p)
{
	bury(p);
	for (int i = free_place(p); p->first && i < EVENTS_PASS_MAX; i = free_place(p)) {
		p->lost += !start(p, i, &p->first->words);
		forget_first(p);
	}
}

void events_stop(struct events_pass *p)
{
	p->command = NULL;
	for (; p->first; forget_first(p))
		p->lost++;
}

static void run_command(struct events_pass *p, const struct words *words, bool of_masses)
{
	const struct timespec a_while = {.tv_nsec = LOOK_NS};

	while (p->patient && free_place(p) == EVENTS_PASS_MAX) {
		nanosleep(&a_while, NULL);
		events_tidy(p);
	}
	if (free_place(p) == EVENTS_PASS_MAX ? !let_wait(p, words, of_masses)
					     : !start(p, free_place(p), words))
		p->lost++;
}

/* --- the journal ------------------------------------------------------------------------------ */

bool events_journal(void)
{
	return !access(SOCKET, W_OK);
}

/* As systemd-id128 new made them; they never change. */
static const char *const message_ids[EVENT_KINDS] = {
    [EVENT_START] = "5628acfec8a048a39d04e3f80d0c1591",
    [EVENT_GOES_ON] = "780dc51f29d141368648343583006667",
    [EVENT_END] = "f4f82e2b1200402a82a9779d212e4e8f",
    [EVENT_KEY_START] = "22d9bd5707cd42149513e9df51b5b59b",
    [EVENT_KEY_END] = "f34c2f3cadac4841bbf5217d735ef159",
    [EVENT_SHARING] = "53c347a43f2a4c6bb3575244454dc267",
    [EVENT_SHARING_END] = "1200431ec1d6418c9bef02db14acaa5a",
    [EVENT_BAN] = "860805dbad9c4cba9773d6fabd9bb962",
    [EVENT_BANS_FULL] = "a8c25fc741ae4b7ea691198ee60be4c9",
    [EVENT_CHANGE] = "08cd267a676a48fc8c2c33308616c653",
    [EVENT_ROLLED_BACK] = "9b47835f579b4718b60f0c43ad724479",
    [EVENT_LOST] = "cdb2647d756b4883a2e1eb2f2c4058a8",
    [EVENT_GONE] = "f83029090199409b8e14cb21b81db7f3",
    [EVENT_BACK] = "ada96b7e874a4c7d88e9311610de45eb",
};

struct fields {
	struct iovec at[FIELDS_MAX];
	char *text[FIELDS_MAX];
	int n;
	bool lacks; /* there was no memory for one */
};

__attribute__((format(printf, 2, 3))) static void add(struct fields *f, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = f->n < FIELDS_MAX ? vasprintf(&f->text[f->n], format, args) : -1;
	va_end(args);
	if (len < 0) {
		f->lacks = true;
		return;
	}
	f->at[f->n] = (struct iovec){f->text[f->n], (size_t)len};
	f->n++;
}

static bool is_alarm(enum event_kind kind)
{
	return kind == EVENT_START || kind == EVENT_KEY_START || kind == EVENT_SHARING ||
	       kind == EVENT_BANS_FULL || kind == EVENT_LOST || kind == EVENT_GONE;
}

static void interrupt(int number)
{
	(void)number; /* without SA_RESTART what waits returns */
}

/*
 * A journal that stands still takes nothing, and the library waits for it. The signals that end
 * this are held meanwhile, so a clock interrupts it, and it is looked whether one came.
 */
static int send_fields(struct events_pass *p, const struct fields *f)
{
	const struct itimerval each = {{0, STANDS_US}, {0, STANDS_US}};
	const struct sigaction interrupts = {.sa_handler = interrupt};
	struct sigaction action_before;
	struct itimerval timer_before;
	sigset_t alarm, mask_before;
	int result;

	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	sigaction(SIGALRM, &interrupts, &action_before);
	sigprocmask(SIG_UNBLOCK, &alarm, &mask_before);
	setitimer(ITIMER_REAL, &each, &timer_before);
	do
		result = sd_journal_sendv(f->at, f->n);
	while (result == -EINTR && !ends_came());
	setitimer(ITIMER_REAL, &timer_before, NULL);
	sigprocmask(SIG_SETMASK, &mask_before, NULL);
	sigaction(SIGALRM, &action_before, NULL);
	p->journal_stood = result == -EINTR;
	return result;
}

static bool send_to_journal(struct events_pass *p, const struct event *e,
			    const struct event_place *place, const char *text, const char *json)
{
	struct fields f = {.n = 0};
	int result;

	add(&f, "MESSAGE=%s", text);
	add(&f, "MESSAGE_ID=%s", message_ids[e->kind]);
	add(&f, "PRIORITY=%d", is_alarm(e->kind) ? 4 : 5);
	add(&f, "SYSLOG_IDENTIFIER=xdp-pacer");
	add(&f, "XDP_PACER_EVENT=%s", event_name(e->kind));
	add(&f, "XDP_PACER_INTERFACE=%s", place->ifname);
	if (e->rule)
		add(&f, "XDP_PACER_RULE=%s", e->rule);
	if (e->key)
		add(&f, "XDP_PACER_KEY=%s", e->key);
	if (e->who)
		add(&f, "XDP_PACER_WHO=%s", e->who);
	if (e->crowd)
		add(&f, "XDP_PACER_SOURCES=%s", crowd_kind_name(e->crowd->kind));
	if (e->kind <= EVENT_END) {
		add(&f, "XDP_PACER_PACKETS=%" PRIu64, e->so_far.denied);
		add(&f, "XDP_PACER_BYTES=%" PRIu64, e->so_far.denied_bytes);
	}
	add(&f, "XDP_PACER_JSON=%s", json);
	result = f.lacks ? -ENOMEM : send_fields(p, &f);
	for (int i = 0; i < f.n; i++)
		free(f.text[i]);
	return !result;
}

void events_pass(struct events_pass *p, const struct event *event, const struct event_place *place,
		 const char *text, const char *json)
{
	const struct words words = {
	    event_name(event->kind), place->ifname, event->rule, event->key, text, json};

	events_tidy(p);
	if (p->command)
		run_command(p, &words, comes_in_masses(event->kind));
	if (p->journal && (p->journal_stood || !events_journal() ||
			   !send_to_journal(p, event, place, text, json)))
		p->lost_journal++;
}
