/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/fleet_number.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "cli/cmd.h"
#include "config/durable.h"

#define TEXT_MAX 128
#define LOOKS	 60
#define LOOK_MS	 50

/* It may have been removed, and another drawn, before it was locked. */
static int lock(FILE *f, const char *name)
{
	struct stat ours, there;

	if (flock(fileno(f), LOCK_EX | LOCK_NB) || fstat(fileno(f), &ours) || stat(name, &there))
		return -1;
	errno = ESTALE;
	return ours.st_ino == there.st_ino && ours.st_dev == there.st_dev ? 0 : -1;
}

static int read_locked(FILE *f, const char *name, uint64_t *id)
{
	char text[32] = "", *end;

	if (lock(f, name))
		return -1;
	if (!fgets(text, sizeof(text), f))
		text[0] = 0;
	*id = strtoull(text, &end, 16);
	errno = EINVAL;
	return *id && !(*id >> 63) && !strcmp(end, "\n") ? 0 : -1;
}

/* ESPIPE: it is no regular file. The signals of the agent would wait for who writes to a pipe. */
static FILE *open_file(const char *name)
{
	const int flags = O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	int fd = open(name, O_RDWR | flags), why;
	struct stat st;
	FILE *f = NULL;

	if (fd < 0 && (errno == EACCES || errno == EROFS || errno == EISDIR))
		fd = open(name, O_RDONLY | flags); /* then it does not say who has it */
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st)) {
		errno = ESPIPE;
		f = S_ISREG(st.st_mode) ? fdopen(fd, "r") : NULL;
	}
	if (f)
		return f;
	why = errno;
	close(fd);
	errno = why;
	return NULL;
}

static int read_number(const char *name, struct fleet_number *number)
{
	int why;

	number->file = open_file(name);
	if (!number->file)
		return -1;
	if (!read_locked(number->file, name, &number->id))
		return 0;
	why = errno;
	fleet_number_free(number);
	errno = why;
	return -1;
}

/* On the disk before it is used: else another one might be drawn after a crash. */
static int make_number(const char *name)
{
	uint64_t id = 0;
	char text[32];
	int len;

	while (!id) {
		if (getrandom(&id, sizeof(id), 0) != sizeof(id))
			return -1;
		id >>= 1;
	}
	len = snprintf(text, sizeof(text), "%016" PRIx64 "\n", id);
	return durable_make(name, text, (size_t)len);
}

static void name_of(const char *state, const char *ifname, char name[PATH_MAX])
{
	struct stat folder;

	if (state && !stat(state, &folder) && S_ISDIR(folder.st_mode)) {
		snprintf(name, PATH_MAX, "%s/%s.member", state, ifname);
	} else if (state) {
		snprintf(name, PATH_MAX, "%s", state);
	} else {
		(void)mkdir(FLEET_STATE_DIR, 0700); /* where that fails, what follows says so */
		snprintf(name, PATH_MAX, FLEET_STATE_DIR "/%s.member", ifname);
	}
}

int fleet_number(const char *state, const char *ifname, struct fleet_number *number)
{
	char *const name = number->name;
	int why;

	memset(number, 0, sizeof(*number));
	name_of(state, ifname, name);
	if (!read_number(name, number) ||
	    (errno == ENOENT && !make_number(name) && !read_number(name, number)))
		return EXIT_DONE;
	why = errno;
	if (why == ESPIPE)
		complaint("%s: is no regular file: name one, or a folder", name);
	else if (why == EINVAL)
		complaint("%s: it holds no member's number: remove it, and another one is drawn",
			  name);
	else if (why == EWOULDBLOCK)
		complaint("%s: another agent runs by the number in it: end that first, or say "
			  "--state with a file of its own for %s",
			  name, ifname);
	else
		complaint("%s: this host's number in the fleet cannot be kept there: %s: %s, or "
			  "say --state FOLDER",
			  name, strerror(why),
			  why == ENOENT || why == EACCES
			      ? "make that folder for the user who runs this"
			      : "see that it can be written to");
	return EXIT_FAILED;
}

/* 0: no other datapath of this boot had the number last. */
static uint32_t used_by(FILE *f, const char *boot_id, uint32_t control_id)
{
	char text[TEXT_MAX] = "", boot[64];
	uint32_t by;

	(void)fgets(text, sizeof(text), f);
	return sscanf(text, "%63s %" SCNu32 "\n", boot, &by) == 2 && !strcmp(boot, boot_id) &&
		       by != control_id
		   ? by
		   : 0;
}

/* A map outlasts its program for a moment. Who may not ask is told that it is gone. */
static bool is_there(uint32_t control_id)
{
	for (int i = 0; i < LOOKS; i++) {
		int fd = bpf_map_get_fd_by_id(control_id);

		if (fd < 0)
			return false;
		close(fd);
		(void)poll(NULL, 0, LOOK_MS);
	}
	return true;
}

int fleet_number_use(struct fleet_number *number, const char *ifname, const char *boot_id,
		     uint32_t control_id)
{
	const uint32_t by = used_by(number->file, boot_id, control_id);
	char text[TEXT_MAX];
	int len;

	if (by && is_there(by)) {
		complaint("%s: another pacer of this host has the number in it (control map "
			  "%" PRIu32 "), and may go on with its reserve: take that off, or say "
			  "--state with a file of its own for %s",
			  number->name, by, ifname);
		return EXIT_FAILED;
	}
	len = snprintf(text, sizeof(text), "%016" PRIx64 "\n%s %" PRIu32 "\n", number->id, boot_id,
		       control_id);
	if (pwrite(fileno(number->file), text, (size_t)len, 0) == len)
		(void)!ftruncate(fileno(number->file), len);
	return EXIT_DONE;
}

void fleet_number_free(struct fleet_number *number)
{
	if (number->file)
		fclose(number->file);
	number->file = NULL;
}
