/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/timens.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FIRST_TIME_NAMESPACE 4026531834u /* the kernel's PROC_TIME_INIT_INO */
#define NS_PER_S	     1000000000ll
#define S_MAX		     (INT64_MAX / NS_PER_S - 1)

#define OFFSETS "/proc/self/timens_offsets"

static bool parse_line(const char *text, const char *clock, int64_t *ns)
{
	const char *at = strstr(text, clock);
	int64_t s, rest;

	if (!at || sscanf(at + strlen(clock), " %" SCNd64 " %" SCNd64, &s, &rest) != 2 ||
	    s > S_MAX || s < -S_MAX || rest < 0 || rest >= NS_PER_S)
		return false;
	*ns = s * NS_PER_S + rest;
	return true;
}

int timens_parse(const char *text, struct timens *ahead)
{
	return parse_line(text, "monotonic ", &ahead->monotonic_ns) &&
		       parse_line(text, "boottime ", &ahead->boottime_ns)
		   ? 0
		   : -1;
}

static int read_offsets(struct timens *ahead, struct policy_error *error)
{
	FILE *f = fopen(OFFSETS, "re");
	char text[256];
	size_t len;

	if (!f)
		return policy_fail(error, 0,
				   OFFSETS ": %s: how far the clocks of this time namespace are "
					   "ahead is not known",
				   strerror(errno));
	len = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[len] = 0;
	if (timens_parse(text, ahead))
		return policy_fail(error, 0,
				   OFFSETS ": it does not say how far the clocks of this time "
					   "namespace are ahead");
	return 0;
}

static int cannot_tell(struct policy_error *error)
{
	return policy_fail(error, 0, "the time namespace cannot be told: /proc/self/ns: %s%s",
			   strerror(errno), errno == ENOENT ? ": mount /proc" : "");
}

/* The file is about the namespace that children get. */
int timens_read(struct timens *ahead, struct policy_error *error)
{
	struct stat own, children;

	*ahead = (struct timens){0, 0};
	if (stat("/proc/self/ns/time", &own) || stat("/proc/self/ns/time_for_children", &children))
		/* Every kernel has those of mounts: where they are missing, too, it is /proc. */
		return errno == ENOENT && !stat("/proc/self/ns/mnt", &own) ? 0 : cannot_tell(error);
	if (own.st_ino != children.st_ino)
		return policy_fail(error, 0,
				   "children would be in another time namespace, of other clocks: "
				   "begin it by `unshare --time --fork`");
	return own.st_ino == FIRST_TIME_NAMESPACE ? 0 : read_offsets(ahead, error);
}
