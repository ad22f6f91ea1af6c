/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/copies.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/file_lock.h"
#include "live/attached.h"
#include "live/host.h"
#include "live/sets_maps.h"
#include "plan/keymask.h"

#define LOCK_FILE "/run/xdp-pacer.lock"

/* Not where a symbolic link leads: a file would be made there, wherever that is. And no pipe is
 * waited for. */
static int open_lock(int flags)
{
	return open(LOCK_FILE, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
}

/* fd -1: errno says why. */
static int take_lock(int fd, enum file_lock_kind kind, struct policy_error *error)
{
	if (fd < 0 && errno == ELOOP)
		return policy_fail(
		    error, 0, LOCK_FILE " is a symbolic link, and has to be a file: remove it");
	if (fd < 0 || file_lock(fd, kind, LOCK_FILE)) {
		policy_explain(error, 0, "%s: %s%s", LOCK_FILE,
			       errno == EINTR ? "ended while another process had it locked"
					      : strerror(errno),
			       errno == EACCES || errno == EPERM
				   ? ": be root, or of the group xdp-pacer (docs/rights.md)"
				   : "");
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

int copies_lock(struct policy_error *error)
{
	return take_lock(open_lock(O_RDWR | O_CREAT), LOCK_TO_CHANGE, error);
}

int copies_may_lock(struct policy_error *error)
{
	int fd = open_lock(O_RDWR | O_CREAT);

	if (fd < 0)
		return take_lock(fd, LOCK_TO_CHANGE, error);
	close(fd);
	return 0;
}

static uint32_t mix(uint32_t place, const void *bytes, size_t n)
{
	const uint8_t *byte = bytes;

	for (size_t i = 0; i < n; i++)
		place = (place ^ byte[i]) * 16777619u; /* FNV-1a */
	return place;
}

/* The same of each path to a file, which may not be there yet: of its folder and its name. Of two
 * files it may be the same, too: then they wait, where they need not. */
static uint32_t place_of(const char *file)
{
	const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
	uint32_t place = mix(2166136261u, name, strlen(name));
	char folder[PATH_MAX];
	struct stat is;

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(name - file) : 1,
		 slash ? file : ".");
	if (stat(folder, &is)) /* and so nothing can be written there */
		return place;
	place = mix(place, &is.st_dev, sizeof(is.st_dev));
	return mix(place, &is.st_ino, sizeof(is.st_ino));
}

/* A byte behind those of agents (sole_agent.h). Who locks a byte and who locks the file do not see
 * each other. */
int copies_lock_saves(const char *file, struct policy_error *error)
{
	int fd = open_lock(O_RDWR | O_CREAT);

	if (fd >= 0)
		(void)lseek(fd, (off_t)1 << 32 | place_of(file), SEEK_SET);
	return take_lock(fd, LOCK_BYTE, error);
}

int copies_lock_look(void)
{
	int fd = open_lock(O_RDONLY);

	return fd < 0 && errno == ENOENT ? COPIES_NO_LOCK : fd;
}

int copies_lock_to_read(struct policy_error *error)
{
	int fd = copies_lock_look();

	return fd == COPIES_NO_LOCK ? fd : take_lock(fd, LOCK_TO_READ, error);
}

bool copies_were_still(int fd)
{
	bool none = fd == COPIES_NO_LOCK;

	if (none)
		fd = open_lock(O_RDONLY);
	if (fd < 0)
		return errno == ENOENT;
	close(fd);
	return !none;
}

/* A replacement under libxdp's dispatcher that was killed leaves two that both judge. */
static int is_alone(const struct attached *a, struct policy_error *error)
{
	return a->second_id
		   ? policy_fail(error, 0,
				 "%s: a second pacer (program %u) judges its packets, too, as a "
				 "replacement was killed: `xdp-pacer upgrade %s` takes it off",
				 a->ifname, a->second_id, a->ifname)
		   : 0;
}

int copies_lock_still(struct attached *a, struct policy_error *error)
{
	int fd = copies_lock(error);

	if (fd >= 0 && attached_still(a, error)) {
		close(fd);
		return -1;
	}
	return fd;
}

int copies_lock_of(struct attached *a, struct policy_error *error)
{
	int fd = copies_lock_still(a, error);

	if (fd >= 0 && is_alone(a, error)) {
		close(fd);
		return -1;
	}
	return fd;
}

static uint64_t word_of(const struct attached *a)
{
	return __atomic_load_n(&a->control->in_force, __ATOMIC_ACQUIRE);
}

void copies_put_in_force(struct attached *a, uint32_t copy, uint64_t until_ns)
{
	__atomic_store_n(&a->control->in_force, until_ns << 1 | copy, __ATOMIC_RELEASE);
}

uint32_t copies_in_force(const struct attached *a)
{
	return pacer_in_force(word_of(a), host_now_ns());
}

uint32_t copies_put_last(const struct attached *a, uint64_t *until_ns)
{
	uint64_t word = word_of(a);

	*until_ns = word >> 1;
	return word & 1;
}

struct policy *copies_policy(const struct attached *a, uint32_t copy, struct policy_error *error)
{
	const char *text = a->copy[copy].text;
	struct policy *policy = policy_parse(text, strnlen(text, PACER_DOC_MAX), error);

	if (policy)
		keymask_keep_values(policy, &a->copy[copy].policy);
	for (uint32_t i = 0; policy && i < policy->n_sets; i++)
		if (policy_set_keyed(policy, policy->set[i].name))
			sets_maps_learn(a, copy, i, policy->set[i].name);
	return policy;
}

void copies_keep_values(const struct attached *a, struct policy *policy)
{
	keymask_keep_values(policy, &a->copy[copies_in_force(a)].policy);
}

uint64_t copies_pending_ns(const struct attached *a)
{
	uint64_t until_ns = word_of(a) >> 1, now_ns = host_now_ns();

	return until_ns > now_ns ? until_ns - now_ns : 0;
}

/*
 * Whether one is pending is asked first: it may end at any time, and which one was in force before
 * that would be the wrong one then.
 */
uint32_t copies_to_change(const struct attached *a, uint32_t copy[2])
{
	bool pending = copies_pending_ns(a);
	uint64_t until_ns;
	uint32_t last = copies_put_last(a, &until_ns);

	copy[0] = pending ? last ^ 1 : copies_in_force(a);
	copy[1] = last;
	return pending ? 2 : 1;
}

bool copies_frozen(const struct attached *a)
{
	uint64_t until_ns;

	return !a->copy[copies_put_last(a, &until_ns)].policy.serial && copies_pending_ns(a);
}

/*
 * What has begun as a trial ended did so by the exact clock. Packets ask that for as long as the
 * word has a time, and then the coarse one again, which may be before that for another tick.
 */
static void outlast_tick(const struct attached *a)
{
	uint64_t ended_ns = word_of(a) >> 1;

	if (ended_ns && ended_ns <= host_now_ns())
		host_wait_until(ended_ns + copies_resolution_ns(a));
}

int copies_settle(struct attached *a, struct policy_error *error)
{
	uint32_t copy[2];

	if (copies_to_change(a, copy) > 1 && !copies_frozen(a))
		return policy_fail(
		    error, 0,
		    "%s: a policy waits to be confirmed: `xdp-pacer confirm` it, or let it "
		    "roll back, first",
		    a->ifname);
	outlast_tick(a);
	copies_put_in_force(a, copy[0], 0);
	return 0;
}

uint64_t copies_last_serial(const struct attached *a)
{
	uint64_t one = a->copy[0].policy.serial, other = a->copy[1].policy.serial;

	return one > other ? one : other;
}

uint64_t copies_resolution_ns(const struct attached *a)
{
	uint64_t resolution_ns = a->control->resolution_ns;

	return resolution_ns ? resolution_ns : host_resolution_ns();
}
