/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/carried.h"

#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "live/host.h"

#define FIRST_PID_NAMESPACE 4026531836u /* the kernel's PROC_PID_INIT_INO */
#define NAMESPACES_MAX	    4096
#define LOOKS_MAX	    8

enum carried { CARRIED_NO, CARRIED_YES, CARRIED_UNKNOWN };

static enum carried carried_here(uint32_t id)
{
	struct if_nameindex *all = if_nameindex();
	enum carried result = all ? CARRIED_NO : CARRIED_UNKNOWN;

	for (struct if_nameindex *i = all; i && i->if_index && result == CARRIED_NO; i++) {
		LIBBPF_OPTS(bpf_xdp_query_opts, now);

		if (bpf_xdp_query(i->if_index, 0, &now))
			result = CARRIED_UNKNOWN;
		else if (now.drv_prog_id == id || now.skb_prog_id == id || now.hw_prog_id == id)
			result = CARRIED_YES;
	}
	if (all)
		if_freenameindex(all);
	return result;
}

/* Network namespaces by their inodes. */
struct seen {
	ino_t *ino;    /* those that were looked into */
	ino_t *hidden; /* those that something lies upon, where a process has them mounted */
	size_t n, n_hidden;
};

static bool is_seen(const struct seen *seen, ino_t ino)
{
	for (size_t i = 0; i < seen->n; i++)
		if (seen->ino[i] == ino)
			return true;
	return false;
}

static bool seen_before(struct seen *seen, ino_t ino)
{
	if (is_seen(seen, ino))
		return true;
	if (seen->n < NAMESPACES_MAX)
		seen->ino[seen->n++] = ino;
	return false;
}

/* By errno: it is not there any more, as its process has ended. */
static bool has_ended(void)
{
	return errno == ENOENT || errno == ESRCH;
}

/* Or hidden even from who looks into processes (sees_every_process), as a kernel's may be. */
static bool is_nobodys(void)
{
	return has_ended() || errno == EACCES || errno == EPERM;
}

struct dirent *folder_next(DIR *d, bool *unseen)
{
	struct dirent *e;

	errno = 0;
	e = readdir(d);
	*unseen |= !e && errno && !has_ended();
	return e;
}

/* Another process may show it, which comes later. */
static enum carried hidden_here(struct seen *seen, ino_t ino)
{
	for (size_t i = 0; i < seen->n_hidden; i++)
		if (seen->hidden[i] == ino)
			return CARRIED_NO;
	if (seen->n_hidden == NAMESPACES_MAX)
		return CARRIED_UNKNOWN;
	seen->hidden[seen->n_hidden++] = ino;
	return CARRIED_NO;
}

static bool hidden_everywhere(const struct seen *seen)
{
	for (size_t i = 0; i < seen->n_hidden; i++)
		if (!is_seen(seen, seen->hidden[i]))
			return true;
	return false;
}

typedef enum carried look(const char *path, uint32_t id, struct seen *seen);

/* In the namespace of that file, which is open by its place alone. */
static enum carried carried_within(int at_fd, uint32_t id)
{
	enum carried result = CARRIED_UNKNOWN;
	char self[32];
	int fd;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", at_fd);
	fd = open(self, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return CARRIED_UNKNOWN;
	if (!setns(fd, CLONE_NEWNET))
		result = carried_here(id);
	else if (errno == EINVAL)
		result = CARRIED_NO; /* a namespace of another kind */
	close(fd);
	return result;
}

/*
 * Looks into the network namespace of that file, if it has not yet. Others say what lies there: it
 * is not opened before it is known, as a pipe would wait for somebody, and a device may act.
 */
static enum carried carried_in(const char *path, uint32_t id, struct seen *seen)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	enum carried result = CARRIED_NO;
	struct statfs fs;
	struct stat st;

	if (fd < 0)
		return is_nobodys() ? CARRIED_NO : CARRIED_UNKNOWN;
	if (fstat(fd, &st) || fstatfs(fd, &fs))
		result = CARRIED_UNKNOWN;
	else if (fs.f_type != NSFS_MAGIC) /* being made or removed, or left by a killed process */
		result = CARRIED_NO;
	else if (!seen_before(seen, st.st_ino))
		result = carried_within(fd, id);
	close(fd);
	return result;
}

/* The namespace that a link leads to, if it leads to one. No file system is asked that may be away.
 */
static enum carried carried_behind(const char *path, uint32_t id, struct seen *seen)
{
	struct statx is, home;

	if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO, &is))
		return is_nobodys() ? CARRIED_NO : CARRIED_UNKNOWN;
	if (statx(AT_FDCWD, "/proc/self/ns/net", AT_STATX_DONT_SYNC, STATX_INO, &home))
		return CARRIED_UNKNOWN;
	return is.stx_dev_major != home.stx_dev_major || is.stx_dev_minor != home.stx_dev_minor ||
		       is_seen(seen, is.stx_ino)
		   ? CARRIED_NO
		   : carried_in(path, id, seen);
}

/*
 * Each directory/NAME`suffix`; of names that are numbers, where there is a suffix. What a process
 * has may be hidden.
 */
static enum carried carried_among(const char *directory, const char *suffix, look *look,
				  uint32_t id, struct seen *seen)
{
	enum carried result = CARRIED_NO;
	DIR *d = opendir(directory);
	bool unseen = false;
	struct dirent *e;

	if (!d)
		return has_ended() || (look == carried_behind && is_nobodys()) ? CARRIED_NO
									       : CARRIED_UNKNOWN;
	while (result == CARRIED_NO && (e = folder_next(d, &unseen))) {
		char path[PATH_MAX];

		if (e->d_name[0] == '.' || (*suffix && !strspn(e->d_name, "0123456789")))
			continue;
		snprintf(path, sizeof(path), "%s/%s%s", directory, e->d_name, suffix);
		result = look(path, id, seen);
	}
	closedir(d);
	return result == CARRIED_NO && unseen ? CARRIED_UNKNOWN : result;
}

/* As mountinfo has it, with "\\040" for a space. */
static void unescape(char *path)
{
	char *to = path;

	for (const char *from = path; *from; to++) {
		unsigned int byte;

		if (sscanf(from, "\\%3o", &byte) == 1) {
			*to = (char)byte;
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = 0;
}

/* One that is mounted there, as the process sees it; what lies upon it may hide it. */
static enum carried carried_mounted(const char *process, const char *line, uint32_t id,
				    struct seen *seen)
{
	char *at = NULL, path[PATH_MAX];
	enum carried result;
	unsigned long ino;

	if (!strstr(line, " - nsfs ") ||
	    sscanf(line, "%*s %*s %*s net:[%lu] %ms", &ino, &at) != 2 || is_seen(seen, ino)) {
		free(at);
		return CARRIED_NO;
	}
	unescape(at);
	snprintf(path, sizeof(path), "/proc/%s/root%s", process, at);
	free(at);
	result = carried_in(path, id, seen);
	return result == CARRIED_NO && !is_seen(seen, ino) ? hidden_here(seen, ino) : result;
}

static enum carried carried_by_mounts(const char *process, uint32_t id, struct seen *seen)
{
	enum carried result = CARRIED_NO;
	char path[PATH_MAX / 2], *line = NULL;
	size_t size = 0;
	FILE *mounts;
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/mountinfo", process);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) /* EINVAL: it has ended, and is not waited for yet */
		return is_nobodys() || errno == EINVAL ? CARRIED_NO : CARRIED_UNKNOWN;
	mounts = fdopen(fd, "r");
	if (!mounts) {
		close(fd);
		return CARRIED_UNKNOWN;
	}
	while (result == CARRIED_NO && getline(&line, &size, mounts) > 0)
		result = carried_mounted(process, line, id, seen);
	if (result == CARRIED_NO && ferror(mounts))
		result = CARRIED_UNKNOWN;
	free(line);
	fclose(mounts);
	return result;
}

/* What one process holds beside the namespace it is in: by its threads, its files and its mounts.
 */
static enum carried carried_by_process(const char *process, uint32_t id, struct seen *seen)
{
	enum carried result;
	char path[PATH_MAX / 2];

	snprintf(path, sizeof(path), "/proc/%s/task", process);
	result = carried_among(path, "/ns/net", carried_behind, id, seen);
	snprintf(path, sizeof(path), "/proc/%s/fd", process);
	if (result == CARRIED_NO)
		result = carried_among(path, "", carried_behind, id, seen);
	return result == CARRIED_NO ? carried_by_mounts(process, id, seen) : result;
}

static enum carried carried_by_processes(uint32_t id, struct seen *seen)
{
	enum carried result = CARRIED_NO;
	DIR *proc = opendir("/proc");
	bool unseen = !proc;
	struct dirent *e;

	while (proc && result == CARRIED_NO && (e = folder_next(proc, &unseen)))
		if (strspn(e->d_name, "0123456789"))
			result = carried_by_process(e->d_name, id, seen);
	if (proc)
		closedir(proc);
	return result == CARRIED_NO && (unseen || hidden_everywhere(seen)) ? CARRIED_UNKNOWN
									   : result;
}

/* Of all, and as one who may look into them: /proc may be mounted so that it shows only one's own.
 */
static bool sees_every_process(void)
{
	struct stat st;

	return !stat("/proc/self/ns/pid", &st) && st.st_ino == FIRST_PID_NAMESPACE &&
	       host_may(CAP_TO_MASK(CAP_SYS_PTRACE));
}

/* Is that open file the program? True also where that cannot be told. */
static bool is_program(int directory_fd, const char *name, uint32_t id)
{
	int fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC);
	char text[1024], line[32];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	bool unseen = n < 0 && !is_nobodys();

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	snprintf(line, sizeof(line), "prog_id:\t%u\n", id);
	return unseen || strstr(text, line);
}

/* Has that process the program open, or cannot that be told? */
static bool is_held_by(const char *process, uint32_t id)
{
	char path[PATH_MAX];
	struct dirent *file;
	bool result = false;
	DIR *files;

	snprintf(path, sizeof(path), "/proc/%s/fdinfo", process);
	files = opendir(path);
	if (!files)
		return !is_nobodys();
	while (!result && (file = folder_next(files, &result)))
		result = file->d_name[0] != '.' && is_program(dirfd(files), file->d_name, id);
	closedir(files);
	return result;
}

/* Has a process the program open, or cannot that be told? It may be between pinning and attaching.
 */
static bool held(uint32_t id)
{
	struct dirent *process;
	DIR *proc = opendir("/proc");
	bool result = !proc;

	while (!result && (process = folder_next(proc, &result)))
		result = strspn(process->d_name, "0123456789") && is_held_by(process->d_name, id);
	if (proc)
		closedir(proc);
	return result;
}

/*
 * Does any interface of the machine carry it? With `or_held`, that is unknown of one that a process
 * has open. Namespaces share the file system, and their indices repeat.
 */
static enum carried carried(uint32_t id, bool or_held)
{
	ino_t *inos = calloc(2 * NAMESPACES_MAX, sizeof(*inos));
	struct seen seen = {inos, inos + NAMESPACES_MAX, 0, 0};
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	enum carried result = CARRIED_UNKNOWN;

	if (inos && home >= 0 && sees_every_process() && !(or_held && held(id))) {
		result = carried_here(id);
		if (result == CARRIED_NO)
			result = carried_among("/proc", "/ns/net", carried_in, id, &seen);
		if (result == CARRIED_NO)
			result = carried_among("/run/netns", "", carried_in, id, &seen);
		if (result == CARRIED_NO)
			result = carried_by_processes(id, &seen);
		if (setns(home, CLONE_NEWNET)) /* going on would change another namespace */
			abort();
	}
	if (home >= 0)
		close(home);
	free(inos);
	return result;
}

/* An interface that goes meanwhile makes the answer uncertain. Then it looks again. */
static enum carried carried_surely(uint32_t id, bool or_held)
{
	enum carried result = CARRIED_UNKNOWN;

	for (int look = 0; look < LOOKS_MAX && result == CARRIED_UNKNOWN; look++)
		result = carried(id, or_held);
	return result;
}

bool carried_by_none(uint32_t id)
{
	return carried_surely(id, true) == CARRIED_NO;
}

int carried_by_any(uint32_t id)
{
	enum carried is = carried_surely(id, false);

	return is == CARRIED_UNKNOWN ? -1 : is == CARRIED_YES;
}
