/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/load_trial.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "live/detach.h"
#include "live/copies.h"
#include "live/site.h"

#define LOOK_NS 1000000000ull /* as often it asks whether the trial has ended otherwise */

int load_trial_take_off(struct attached *a, struct policy_error *error)
{
	int fd = copies_lock_still(a, error), result = 0;

	if (fd < 0)
		return -1;
	if (load_trial_lapsed(a))
		result = detach_this(a, error);
	close(fd);
	return result;
}

/* --- in the background ---------------------------------------------------------------------- */

static void sleep_ns(uint64_t ns)
{
	struct timespec left = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

/* Nothing of whoever called is kept: no terminal, no directory, no file that others wait for. */
static void leave(void)
{
	int null = open("/dev/null", O_RDWR);

	setsid();
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	for (int fd = 0; fd < 3; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			close(fd);
	close_range(3, ~0u, 0);
	if (chdir("/"))
		_exit(1);
}

/*
 * Is it there? The interface may have another name by now, and `upgrade` or `shadow` may have put
 * another program over the same state, which is on trial as that was.
 */
static bool goes_on(struct attached *a)
{
	struct policy_error unused;
	char name[IF_NAMESIZE];
	struct attached now;
	bool same;

	if (if_indextoname((unsigned int)a->ifindex, name))
		memcpy(a->ifname, name, sizeof(name));
	if (attached_find(a->ifname, &now, &unused))
		return !attached_gone(a);
	same = now.control_id == a->control_id;
	if (same)
		a->prog_id = now.prog_id;
	attached_release(&now);
	return same;
}

/* Until the trial has ended, however it did. The pacer's memory is mapped, so it can be read. */
static void wait_for_end(struct attached *a)
{
	uint32_t site = a->site_id;
	uint64_t left_ns;

	while ((left_ns = copies_pending_ns(a))) {
		int64_t now = site_id(a->ifindex);

		if (now >= 0 && now != site) { /* another program has come, or this one has gone */
			if (!goes_on(a))
				return;
			site = (uint32_t)now;
		}
		sleep_ns(left_ns < LOOK_NS ? left_ns : LOOK_NS);
	}
}

static void watch(const struct attached *loaded)
{
	struct attached a = *loaded;
	struct policy_error unused;

	attached_close_files(&a); /* others may have their numbers soon */
	leave();
	wait_for_end(&a);
	if (load_trial_lapsed(&a) && goes_on(&a))
		(void)load_trial_take_off(&a, &unused);
	_exit(0);
}

int load_trial_make_way(const char *ifname, struct policy_error *error)
{
	struct policy_error unused;
	struct attached was;
	int result = 0;

	if (attached_find(ifname, &was, &unused))
		return 0;
	if (load_trial_lapsed(&was))
		result = load_trial_take_off(&was, error);
	attached_release(&was);
	return result;
}

int load_trial_watch(const struct attached *a, struct policy_error *error)
{
	int status = 1;
	pid_t pid = fork();

	if (!pid) {
		pid = fork(); /* whoever called `load` need not wait for this one */
		if (!pid)
			watch(a);
		_exit(pid < 0);
	}
	if (pid > 0 && waitpid(pid, &status, 0) == pid && !status)
		return 0;
	return policy_fail(error, 0,
			   "%s: no process waits for the trial to end: unless it is confirmed, "
			   "the pacer lets everything pass then, but `xdp-pacer unload %s` has to "
			   "take it off",
			   a->ifname, a->ifname);
}
