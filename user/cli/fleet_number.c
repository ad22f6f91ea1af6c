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

#include "cli/cmd.h"
#include "config/durable.h"
#include "live/fleet_reserve.h"

#define LOOKS	60
#define LOOK_MS 50

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
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), why;
	struct stat st;
	FILE *f = NULL;

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

int fleet_number_alone(const struct fleet_number *number, const char *ifname, uint32_t control_id)
{
	uint32_t other = 0;

	for (int i = 0; i <= LOOKS; i++) {
		other = fleet_reserve_elsewhere(number->id, control_id);
		if (!other)
			return EXIT_DONE;
		(void)poll(NULL, 0, LOOK_MS);
	}
	complaint("%s: another pacer of this host goes on with the reserve of the number in it "
		  "(control map %" PRIu32 "): take it off, or start its agent by that number and "
		  "stop it, or, if its policy is of no fleet, apply that once more; or say --state "
		  "with a file of its own for %s",
		  number->name, other, ifname);
	return EXIT_FAILED;
}

void fleet_number_free(struct fleet_number *number)
{
	if (number->file)
		fclose(number->file);
	number->file = NULL;
}
