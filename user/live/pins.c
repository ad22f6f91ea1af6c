/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/pins.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <limits.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <linux/magic.h>
#include <unistd.h>

#include "config/file_lock.h"
#include "live/carried.h"
#include "live/host.h"

#define DISPATCHED_MAX 10 /* programs that a dispatcher calls */

/* --- the pins ------------------------------------------------------------------------------- */

/* Where anybody may write to the BPF file system, anybody may put a link to a folder there. */
static int open_folder(int parent_fd, const char *name)
{
	return openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int pins_make_folder(int parent_fd, const char *name)
{
	int fd, cause;

	if (mkdirat(parent_fd, name, 0755))
		return -1;
	fd = open_folder(parent_fd, name);
	cause = fd < 0 || fchmod(fd, 0755) ? errno : 0;
	if (fd >= 0)
		close(fd);
	if (!cause)
		return 0;
	unlinkat(parent_fd, name, AT_REMOVEDIR);
	errno = cause;
	return -1;
}

bool pins_remove_folder(int parent_fd, const char *name)
{
	int fd = open_folder(parent_fd, name);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int cause = 0;

	if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
		return !unlinkat(parent_fd, name, 0);
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.' && unlinkat(fd, e->d_name, 0) && !cause)
			cause = errno;
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	if (!unlinkat(parent_fd, name, AT_REMOVEDIR))
		return true;
	errno = cause ? cause : errno;
	return false;
}

static const struct {
	const char *folder,
	    *name; /* in the BPF file system; of a pin: its interface, its program */
} kept[] = {
    [PINS_DISPATCHERS] = {"xdp", "dispatch-%d-%u%n"},
    [PINS_SHADOWS] = {PINS_OURS, "shadow-of-%d-by-%u%n"},
};

_Static_assert(sizeof("shadow-of-1-by-1") > IF_NAMESIZE, "an interface could have the name");

const char *pins_bpffs(void)
{
	const char *named = secure_getenv("LIBXDP_BPFFS");

	return named ? named : "/sys/fs/bpf";
}

static const char *folder_path(enum pins_of of, char *path, size_t size)
{
	snprintf(path, size, "%s/%s", pins_bpffs(), kept[of].folder);
	return path;
}

bool pins_hidden(void)
{
	struct statfs fs;

	if (statfs(pins_bpffs(), &fs)) /* else it is not known */
		return errno == ENOENT || errno == ENOTDIR;
	return fs.f_type != BPF_FS_MAGIC;
}

const char *pins_advice(int err)
{
	static char writable[PATH_MAX];

	snprintf(writable, sizeof(writable), ": `mount -o remount,rw %s` first", pins_bpffs());
	return err == EACCES || err == EPERM
		   ? ": be root, or have CAP_DAC_OVERRIDE, which docs/rights.md tells of"
	       : err == EROFS			? writable
	       : err == EMFILE			? ": raise the limit of open files (ulimit -n)"
	       : err == ENOENT || err == EINVAL ? ": is a BPF file system mounted there?"
						: "";
}

int pins_open_locked(const char *folder)
{
	/* A link may lead there: iproute2 makes `xdp` one to its own folder. */
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;

	if (fd >= 0 && (fstatfs(fd, &fs) || file_lock(fd, LOCK_TO_CHANGE, folder))) {
		close(fd);
		return -1;
	}
	if (fd >= 0 && fs.f_type != BPF_FS_MAGIC) {
		close(fd);
		errno = EMEDIUMTYPE;
		return -1;
	}
	return fd;
}

int pins_each(int fd, int (*one)(int fd, const char *name, void *arg), void *arg)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3), n = 0; /* the two share the lock */
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	bool unseen = !d;
	struct dirent *e;

	while (d && (e = folder_next(d, &unseen)))
		n += one(fd, e->d_name, arg);
	if (d)
		closedir(d);
	else if (copy >= 0)
		close(copy);
	return unseen ? -1 : n;
}

struct sweep {
	enum pins_of pins;
	int ifindex; /* 0: any */
	bool look;
	bool all; /* `each` is told of those, too, that may be unused */
	void (*each)(const char *path, int cause, void *arg);
	void *arg;
};

/* Has it the name of a pin of that kind? Then of which interface, and which program. */
static bool has_name_of(enum pins_of pins, const char *name, int *ifindex, uint32_t *id)
{
	int end = 0;

	return sscanf(name, kept[pins].name, ifindex, id, &end) == 2 && !name[end];
}

/* 1: the pin leads to the program, or that cannot be told. */
static int leads_to(const char *path, uint32_t id)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);
	int fd = bpf_obj_get(path), result;

	if (fd < 0)
		return errno != ENOENT;
	result = bpf_obj_get_info_by_fd(fd, &info, &len) || info.id == id;
	close(fd);
	return result;
}

/* 1: it is the folder of such a dispatcher. */
static int calls(int fd, const char *name, void *arg)
{
	uint32_t id = *(const uint32_t *)arg, dispatcher;
	char folder[PATH_MAX / 2], path[PATH_MAX];
	int ifindex, found = 0;

	(void)fd;
	if (!has_name_of(PINS_DISPATCHERS, name, &ifindex, &dispatcher))
		return 0;
	folder_path(PINS_DISPATCHERS, folder, sizeof(folder));
	for (int i = 0; i < DISPATCHED_MAX && !found; i++) {
		snprintf(path, sizeof(path), "%s/%s/prog%d-prog", folder, name, i);
		found = leads_to(path, id);
	}
	return found && !carried_by_none(dispatcher);
}

bool pins_called_by_none(uint32_t id)
{
	char path[PATH_MAX];
	int fd = pins_open_locked(folder_path(PINS_DISPATCHERS, path, sizeof(path))), n;

	if (fd < 0)
		return errno == ENOENT; /* there is no dispatcher */
	n = pins_each(fd, calls, &id);
	close(fd);
	return !n;
}

/*
 * 0: it is of a program that no interface carries. A pacer may be one that a dispatcher calls.
 * EAGAIN: that may be so, but it cannot be told, or a process has the program open. Else it is
 * used.
 */
static int why_it_stays(const struct sweep *s, const char *name)
{
	uint32_t id;
	int of;

	if (!has_name_of(s->pins, name, &of, &id) || (s->ifindex && of != s->ifindex))
		return EBUSY;
	if (!carried_by_none(id))
		return s->all && carried_by_any(id) != 1 ? EAGAIN : EBUSY;
	return s->pins == PINS_SHADOWS && !pins_called_by_none(id) ? EBUSY : 0;
}

static bool remove_one(const struct sweep *s, int fd, const char *name)
{
	return s->pins == PINS_SHADOWS ? !unlinkat(fd, name, 0) : pins_remove_folder(fd, name);
}

static int sweep_one(int fd, const char *name, void *sweep)
{
	const struct sweep *s = sweep;
	int cause = why_it_stays(s, name);

	if (cause) {
		if (cause == EAGAIN)
			s->each(name, cause, s->arg);
		if (s->pins == PINS_DISPATCHERS && !s->look &&
		    !strncmp(name, "prog-test-link-", 15))
			unlinkat(fd, name, 0); /* libxdp's probe: gone before it unlocks */
		return 0;
	}
	cause = s->look || remove_one(s, fd, name) ? 0 : errno;
	s->each(name, cause, s->arg);
	return !cause;
}

static void sweep(struct sweep *s)
{
	char path[PATH_MAX];
	int fd = pins_open_locked(folder_path(s->pins, path, sizeof(path)));

	if (fd < 0)
		return; /* no folder, and so no pins */
	pins_each(fd, sweep_one, s);
	close(fd);
}

void pins_note_left(struct pins_left *left, const char *folder, const char *name, int cause)
{
	if (!left || left->cause || !cause || cause == ENOENT)
		return;
	left->cause = cause;
	snprintf(left->path, sizeof(left->path), "%s/%s", folder, name);
}

int pins_in_sight(const char *ifname, struct policy_error *error)
{
	return pins_hidden()
		   ? policy_fail(
			 error, 0,
			 "%s: its pacer cannot be replaced here, where %s is hidden, or not "
			 "mounted, and so what it has pinned: do it outside `ip netns exec`",
			 ifname, pins_bpffs())
		   : 0;
}

int pins_may_go(const char *ifname, const char *path, const char *folder,
		struct policy_error *error)
{
	if (!faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS))
		return 0;
	return policy_fail(error, 0,
			   "%s: its pacer cannot be replaced, as %s could not be removed: %s%s",
			   ifname, path, strerror(errno), pins_advice(errno));
}

struct swept {
	enum pins_of of;
	struct pins_left *left;
};

static void note_swept(const char *name, int cause, void *arg)
{
	const struct swept *s = arg;
	char folder[PATH_MAX / 2];

	pins_note_left(s->left, folder_path(s->of, folder, sizeof(folder)), name, cause);
}

void pins_sweep(int ifindex, struct pins_left *left)
{
	for (enum pins_of of = PINS_DISPATCHERS; ifindex && of <= PINS_SHADOWS; of++) {
		struct swept swept = {of, left};

		sweep(&(struct sweep){
		    .pins = of, .ifindex = ifindex, .each = note_swept, .arg = &swept});
	}
}

void pins_clean(enum pins_of of, bool look, void (*each)(const char *path, int cause, void *arg),
		void *arg)
{
	struct sweep s = {of, 0, look, true, each, arg};

	sweep(&s);
}

/* --- of shadows ----------------------------------------------------------------------------- */

static const char *shadow_path(int ifindex, uint32_t prog_id, char *path, size_t size)
{
	char folder[PATH_MAX / 2];

	snprintf(path, size, "%s/shadow-of-%d-by-%u",
		 folder_path(PINS_SHADOWS, folder, sizeof(folder)), ifindex, prog_id);
	return path;
}

int pins_put_shadow(int map_fd, const char *ifname, int ifindex, uint32_t prog_id,
		    struct policy_error *error)
{
	char folder[PATH_MAX / 2], path[PATH_MAX];
	struct statfs fs;
	int err, made;

	if (!prog_id) /* its name is how others tell whose it is */
		return policy_fail(error, 0, "%s: the program of its shadow cannot be read: %s",
				   ifname, strerror(errno));
	folder_path(PINS_SHADOWS, folder, sizeof(folder));
	made =
	    pins_make_folder(AT_FDCWD, folder) ? errno : 0; /* what is wrong with it shows below */
	if (!statfs(folder, &fs) && fs.f_type != BPF_FS_MAGIC)
		return policy_fail(
		    error, 0,
		    "%s: %s is no BPF file system, which a shadow is kept by: `mount "
		    "-t bpf bpf %s` first",
		    ifname, folder, pins_bpffs());
	err = bpf_obj_pin(map_fd, shadow_path(ifindex, prog_id, path, sizeof(path)));
	if (err && made == EROFS) /* and so it is not there, which is all that was said now */
		errno = made;
	return err ? policy_fail(error, 0,
				 "%s: %s cannot be made, which its shadow is kept by: %s%s", ifname,
				 path, strerror(errno), pins_advice(errno))
		   : 0;
}

static int drop_if_of(int fd, const char *name, void *prog_id)
{
	uint32_t id;
	int ifindex;

	return has_name_of(PINS_SHADOWS, name, &ifindex, &id) && id == *(uint32_t *)prog_id &&
	       !unlinkat(fd, name, 0);
}

/* An interface that was moved to another network namespace may have got another index there. */
static void drop_of_another_index(uint32_t prog_id)
{
	char folder[PATH_MAX / 2];
	int fd = open_folder(AT_FDCWD, folder_path(PINS_SHADOWS, folder, sizeof(folder)));

	if (fd < 0)
		return;
	(void)pins_each(fd, drop_if_of, &prog_id);
	close(fd);
}

/* Not through a link in the place of the folder. */
static int remove_pin(const char *path)
{
	const char *name = strrchr(path, '/');
	char folder[PATH_MAX];
	int fd, result, cause;

	snprintf(folder, sizeof(folder), "%.*s", (int)(name - path), path);
	fd = open_folder(AT_FDCWD, folder);
	if (fd < 0)
		return -1;
	result = unlinkat(fd, name + 1, 0);
	cause = errno;
	close(fd);
	errno = cause;
	return result;
}

void pins_drop_shadow(int ifindex, uint32_t prog_id, struct pins_left *left)
{
	char path[PATH_MAX];
	struct stat st;
	int cause;

	if (!remove_pin(shadow_path(ifindex, prog_id, path, sizeof(path))))
		return;
	cause = errno;
	/* A file system that is read-only says so of what is not there. */
	if (lstat(path, &st) && errno == ENOENT) {
		cause = pins_hidden() ? EMEDIUMTYPE : 0;
		if (prog_id)
			drop_of_another_index(prog_id);
	}
	if (cause)
		pins_note_left(left, pins_bpffs(), path + strlen(pins_bpffs()) + 1, cause);
}

int pins_shadow_may_go(const char *ifname, int ifindex, uint32_t prog_id,
		       struct policy_error *error)
{
	char folder[PATH_MAX / 2], path[PATH_MAX];
	struct stat st;

	if (lstat(shadow_path(ifindex, prog_id, path, sizeof(path)), &st) && errno == ENOENT)
		return pins_in_sight(ifname, error);
	return pins_may_go(ifname, path, folder_path(PINS_SHADOWS, folder, sizeof(folder)), error);
}
