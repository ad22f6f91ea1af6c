/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/pinned.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "live/pins.h"
#include "live/prog_maps.h"
#include "short.h"

/* Longer than any interface's name, so that none has it. */
#define MADE	   "being-made-by-process-"
#define SOON_LOOKS 300 /* 10 ms between two */

_Static_assert(sizeof(MADE) > IF_NAMESIZE, "an interface could have the name");

static const struct {
	const char *map, *pin;
	uint32_t key_size;
} tries[PINNED_MAPS] = {
    [PINNED_4] = {"pacer_banned4", "banned4", sizeof(struct pacer_tools4)},
    [PINNED_6] = {"pacer_banned6", "banned6", sizeof(struct pacer_tools6)},
};

/* --- names ------------------------------------------------------------------------------------ */

/* The folder's name: the file system takes no dots, and no interface's name has a colon. */
static const char *folder_of(const char *ifname, char name[IF_NAMESIZE])
{
	snprintf(name, IF_NAMESIZE, "%s", ifname);
	for (char *dot; (dot = strchr(name, '.'));)
		*dot = ':';
	return name;
}

/* The folder of all. */
static const char *place(char path[PATH_MAX / 2])
{
	snprintf(path, PATH_MAX / 2, "%s/%s", pins_bpffs(), PINS_OURS);
	return path;
}

static const char *path_of(char path[PATH_MAX], const char *folder, const char *name)
{
	char all[PATH_MAX / 2];

	snprintf(path, PATH_MAX, "%s/%s/%s", place(all), folder, name);
	return path;
}

/* Of the folder, without a slash behind it: a link, or a map that is pinned by that name, is no
 * folder. */
static const char *path_itself(char path[PATH_MAX], const char *folder)
{
	path_of(path, folder, "");
	path[strlen(path) - 1] = 0;
	return path;
}

_Static_assert(PINNED_PATH >= PATH_MAX, "a path has room");

const char *pinned_path(const char *ifname, char path[PINNED_PATH])
{
	char name[IF_NAMESIZE], all[PATH_MAX / 2];

	snprintf(path, PINNED_PATH, "%s/%s", place(all), folder_of(ifname, name));
	return path;
}

/* Locked. -1: see errno. */
static int open_locked(void)
{
	char all[PATH_MAX / 2];

	return pins_open_locked(place(all));
}

/* It is made where it is missing, if the file system is one of pins. */
static int make_locked(const char *ifname, struct policy_error *error)
{
	char all[PATH_MAX / 2];
	struct statfs fs;
	int fd;

	if (statfs(pins_bpffs(), &fs) || fs.f_type != BPF_FS_MAGIC)
		return policy_fail(error, 0,
				   "%s: --pin wants a BPF file system, and %s is none: `mount -t "
				   "bpf bpf %s` first",
				   ifname, pins_bpffs(), pins_bpffs());
	if (pins_make_folder(AT_FDCWD, place(all)) && errno != EEXIST)
		return policy_fail(error, 0, "%s: %s cannot be made: %s%s", ifname, all,
				   strerror(errno), pins_advice(errno));
	fd = open_locked();
	return fd < 0 ? policy_fail(error, 0, "%s: %s cannot be locked: %s", ifname, all,
				    strerror(errno))
		      : fd;
}

/* --- whose they are --------------------------------------------------------------------------- */

static bool is_trie(const struct bpf_map_info *info, enum pinned_map pin)
{
	return !strcmp(info->name, tries[pin].map) && info->key_size == tries[pin].key_size;
}

/* The map's id, if it is that trie of a pacer; else 0, with errno: ENOENT where it is another map.
 */
static uint32_t id_if(int map_fd, enum pinned_map pin)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(map_fd, &info, &len))
		return 0;
	if (is_trie(&info, pin))
		return info.id;
	errno = ENOENT;
	return 0;
}

static bool has_any(const struct pinned_ids *ids)
{
	return ids->of[PINNED_4] || ids->of[PINNED_6];
}

static bool is_whole(const struct pinned_ids *ids)
{
	return ids->of[PINNED_4] && ids->of[PINNED_6];
}

/* Notes which of the two the map is, if it is one. 0, or -errno: that cannot be read. */
static int note_map(uint32_t map_id, struct pinned_ids *ids)
{
	int fd = bpf_map_get_fd_by_id(map_id), err;
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	err = bpf_obj_get_info_by_fd(fd, &info, &len) ? -errno : 0;
	for (size_t i = 0; i < PINNED_MAPS && !err; i++)
		if (is_trie(&info, (enum pinned_map)i))
			ids->of[i] = info.id;
	close(fd);
	return err;
}

int pinned_ids_of(int prog_fd, struct pinned_ids *ids)
{
	uint32_t maps[PROG_MAPS_MAX];
	int n = prog_maps_read(prog_fd, maps), err = n < 0 ? n : 0;

	*ids = (struct pinned_ids){.of = {0}};
	for (int i = 0; i < n && !is_whole(ids); i++) {
		int unread = note_map(maps[i], ids);

		err = unread ? unread : err;
	}
	if (is_whole(ids))
		return 0;
	if (err)
		*ids = (struct pinned_ids){.of = {0}};
	return err;
}

static uint32_t id_of(const char *folder, enum pinned_map pin)
{
	LIBBPF_OPTS(bpf_obj_get_opts, look, .file_flags = BPF_F_RDONLY);
	char path[PATH_MAX];
	int fd = bpf_obj_get_opts(path_of(path, folder, tries[pin].pin), &look);
	uint32_t id = fd < 0 ? 0 : id_if(fd, pin);

	if (fd >= 0)
		close(fd);
	return id;
}

/* By errno: nothing is there, or it is no pacer's. Else it could not be looked at. */
static bool is_none(void)
{
	return errno == ENOENT || errno == ENOTDIR || errno == EINVAL;
}

/* Else errno says why. access() would go by the real user, whom capabilities do not help. */
static bool is_there(const char *path)
{
	return !faccessat(AT_FDCWD, path, F_OK, AT_EACCESS);
}

/* It is there, and others alone may look into it. */
static bool is_denied(int err)
{
	return err == EACCES || err == EPERM;
}

/*
 * What is in a folder: each of the two by itself, as one may have been removed, or be of another
 * pacer. Where one of them could not be looked at, `err` says why (errno), and its id is 0.
 */
struct inside {
	struct pinned_ids ids;
	int err;
};

static struct inside look_into(const char *folder)
{
	struct inside in = {.err = 0};

	for (size_t i = 0; i < PINNED_MAPS; i++) {
		in.ids.of[i] = id_of(folder, (enum pinned_map)i);
		if (!in.ids.of[i] && !is_none())
			in.err = errno;
	}
	return in;
}

static int count_one(int fd, const char *name, void *unused)
{
	(void)fd;
	(void)unused;
	return name[0] != '.';
}

/* Whoever is killed while he removes a folder leaves it so. */
static bool is_empty(const char *folder)
{
	char path[PATH_MAX];
	int fd = open(path_itself(path, folder), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bool empty;

	if (fd < 0)
		return false;
	empty = !pins_each(fd, count_one, NULL);
	close(fd);
	return empty;
}

/* One of the two at least. */
static bool have_common(const struct pinned_ids *a, const struct pinned_ids *b)
{
	for (size_t i = 0; i < PINNED_MAPS; i++)
		if (a->of[i] && a->of[i] == b->of[i])
			return true;
	return false;
}

static bool are_same(const struct pinned_ids *a, const struct pinned_ids *b)
{
	return a->of[PINNED_4] == b->of[PINNED_4] && a->of[PINNED_6] == b->of[PINNED_6];
}

/* Does a program of the machine, other than `but`, have one of them? -errno: that cannot be seen.
 */
static int used(const struct pinned_ids *of, uint32_t but)
{
	uint32_t id = 0;

	while (!bpf_prog_get_next_id(id, &id)) {
		int has = id == but ? 0 : prog_maps_id_has(id, of->of, PINNED_MAPS);

		if (has)
			return has;
	}
	return errno == ENOENT ? 0 : -errno;
}

/* --- may it be -------------------------------------------------------------------------------- */

/* Whose is what lies there? */
static int unseen(const char *ifname, const char *path, int err, struct policy_error *error)
{
	const char *advice = pins_advice(err);

	return policy_fail(error, 0, "%s: whose %s is cannot be seen: %s%s", ifname, path,
			   strerror(err), *advice ? advice : ": try again");
}

/* May it give way to pins of `own`? That is NULL where these are not made yet. */
static int check_folder(const char *ifname, const struct pinned_ids *instead,
			const struct pinned_ids *own, struct policy_error *error)
{
	char name[IF_NAMESIZE], path[PATH_MAX];
	const char *folder = folder_of(ifname, name);
	struct statx is_at;
	struct inside in;
	struct stat st;
	int is;

	if (lstat(path_itself(path, folder), &st))
		return errno == ENOENT ? 0 : unseen(ifname, path, errno, error);
	if (!statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, 0, &is_at) &&
	    is_at.stx_attributes & STATX_ATTR_MOUNT_ROOT)
		return policy_fail(error, 0, "%s: %s is a mount point: unmount it", ifname, path);
	in = look_into(folder);
	if (in.err)
		return unseen(ifname, path, in.err, error);
	if (!has_any(&in.ids) && is_empty(folder))
		return 0;
	if (!has_any(&in.ids))
		return policy_fail(error, 0,
				   "%s: %s is not this tool's: remove it, or go on without --pin",
				   ifname, path);
	if (have_common(&in.ids, instead) || (own && have_common(&in.ids, own)))
		return 0;
	is = used(&in.ids, 0);
	if (is <= 0)
		return is ? unseen(ifname, path, -is, error) : 0;
	return policy_fail(error, 0,
			   "%s: %s is of a pacer at work, of an interface that has this name in "
			   "another network namespace, or had it: remove it if that one is gone, "
			   "or go on without --pin",
			   ifname, path);
}

static int check(const char *ifname, const struct pinned_ids *instead, struct policy_error *error)
{
	int fd = make_locked(ifname, error), result;

	if (fd < 0)
		return -1;
	result = check_folder(ifname, instead, NULL, error);
	close(fd);
	return result;
}

static void count_removed(const char *name, int cause, void *n)
{
	(void)name;
	*(int *)n += !cause;
}

/*
 * The shadow of an interface that is gone has the maps that its pins are of. So it goes, as by
 * `clean`. The kernel ends its program a moment after.
 */
int pinned_check(const char *ifname, const struct pinned_ids *instead, struct policy_error *error)
{
	static const struct timespec pause = {0, 10000000};
	int result = check(ifname, instead, error), removed = 0;

	if (result)
		pins_clean(PINS_SHADOWS, false, count_removed, &removed);
	for (int look = 0; removed && result && look < SOON_LOOKS; look++) {
		if (look)
			nanosleep(&pause, NULL);
		result = check(ifname, instead, error);
	}
	return result;
}

int pinned_may_go(const char *ifname, const struct pinned_ids *ids, struct policy_error *error)
{
	char name[IF_NAMESIZE], all[PATH_MAX / 2], path[PINNED_PATH];
	struct inside in;

	if (!has_any(ids))
		return 0;
	in = look_into(folder_of(ifname, name));
	pinned_path(ifname, path);
	if (!have_common(&in.ids, ids) && !in.err)
		return pins_in_sight(ifname, error);
	if (!have_common(&in.ids, ids) && !is_denied(in.err))
		return unseen(ifname, path, in.err, error);
	return pins_may_go(ifname, path, place(all), error) ||
		       pins_may_go(ifname, path, path, error)
		   ? -1
		   : 0;
}

/* --- put -------------------------------------------------------------------------------------- */

/* Pins that are to be put in place, or were. */
struct pinned {
	const char *ifname;
	char folder[IF_NAMESIZE];
	char made[64];	   /* the folder's name until it has its own; "": there is none */
	bool put, swapped; /* it has its own; another's has the made one's now */
};

struct pinning {
	int at_fd; /* the folder of all, locked */
	size_t n;
	struct pinned of[]; /* of n pacers */
};

static int make_one(int at_fd, struct pinned *p, const struct attached *a, size_t i)
{
	char path[PATH_MAX];

	snprintf(p->made, sizeof(p->made), MADE "%u-%zu", (unsigned int)getpid(), i);
	pins_remove_folder(at_fd, p->made);
	if (pins_make_folder(at_fd, p->made)) {
		p->made[0] = 0;
		return -1;
	}
	return bpf_obj_pin(a->tools4_fd, path_of(path, p->made, tries[PINNED_4].pin)) ||
		       bpf_obj_pin(a->tools6_fd, path_of(path, p->made, tries[PINNED_6].pin))
		   ? -1
		   : 0;
}

/* In the place of what has the name by now, which gets the made one's. */
static int put_one(int at_fd, struct pinned *p)
{
	p->swapped = !renameat2(at_fd, p->made, at_fd, p->folder, RENAME_EXCHANGE);
	p->put = p->swapped || (errno == ENOENT &&
				!renameat2(at_fd, p->made, at_fd, p->folder, RENAME_NOREPLACE));
	return p->put ? 0 : -1;
}

static void take_back(int at_fd, struct pinned *p)
{
	if (p->put)
		renameat2(at_fd, p->folder, at_fd, p->made, p->swapped ? RENAME_EXCHANGE : 0);
	p->put = p->swapped = false;
}

/* The ids of its maps. -1: they cannot be read (errno). */
static int own_ids(const struct attached *a, struct pinned_ids *ids)
{
	ids->of[PINNED_4] = id_if(a->tools4_fd, PINNED_4);
	if (!ids->of[PINNED_4])
		return -1;
	ids->of[PINNED_6] = id_if(a->tools6_fd, PINNED_6);
	return ids->of[PINNED_6] ? 0 : -1;
}

/* One that is pinned already is left out: by both of its maps. */
static int make_all(struct pinning *p, const struct attached *a, const struct pinned_ids *instead,
		    struct policy_error *error)
{
	char name[IF_NAMESIZE], all[PATH_MAX / 2];

	for (size_t i = 0; i < p->n; i++) {
		struct pinned_ids own;
		struct inside in;

		if (own_ids(&a[i], &own))
			return policy_fail(error, 0, "%s: its maps cannot be read: %s", a[i].ifname,
					   strerror(errno));
		in = look_into(folder_of(a[i].ifname, name));
		if (are_same(&in.ids, &own))
			continue;
		if (check_folder(a[i].ifname, &instead[i], &own, error))
			return -1;
		p->of[i].ifname = a[i].ifname;
		memcpy(p->of[i].folder, name, sizeof(name));
		if (make_one(p->at_fd, &p->of[i], &a[i], i))
			return policy_fail(error, 0, "%s: its pins cannot be made in %s: %s%s",
					   a[i].ifname, place(all), strerror(errno),
					   pins_advice(errno));
	}
	return 0;
}

static void end(struct pinning *p, bool keep)
{
	for (size_t i = 0; i < p->n; i++) {
		struct pinned *of = &p->of[i];

		if (!keep)
			take_back(p->at_fd, of);
		if (of->made[0] && (!of->put || of->swapped))
			pins_remove_folder(p->at_fd, of->made);
	}
	if (p->at_fd >= 0)
		close(p->at_fd);
	free(p);
}

int pinned_make(const struct attached *a, const struct pinned_ids *instead, size_t n,
		struct pinning **pinning, struct policy_error *error)
{
	struct pinning *p = calloc(1, sizeof(*p) + n * sizeof(*p->of));

	if (!p)
		return policy_fail(error, 0, "%s: no memory", a[0].ifname);
	p->n = n;
	p->at_fd = make_locked(a[0].ifname, error);
	if (p->at_fd >= 0 && !make_all(p, a, instead, error)) {
		*pinning = p;
		return 0;
	}
	end(p, false);
	return -1;
}

int pinned_put(struct pinning *pinning, struct policy_error *error)
{
	char all[PATH_MAX / 2];

	for (size_t i = 0; i < pinning->n; i++) {
		struct pinned *p = &pinning->of[i];

		if (p->made[0] && put_one(pinning->at_fd, p))
			return policy_fail(error, 0, "%s: its pins cannot be put in %s: %s",
					   p->ifname, place(all), strerror(errno));
	}
	return 0;
}

void pinned_end(struct pinning *pinning, bool keep)
{
	if (pinning)
		end(pinning, keep);
}

int pinned_one(const struct attached *a, struct policy_error *error)
{
	static const struct pinned_ids none;
	struct pinning *pinning;
	int result;

	if (pinned_make(a, &none, 1, &pinning, error))
		return -1;
	result = pinned_put(pinning, error);
	pinned_end(pinning, !result);
	return result;
}

/* --- judged by them --------------------------------------------------------------------------- */

/* The short way asks for no bans of other tools: it is for no packet where they are heeded. */
void pinned_heed(const struct attached *a, bool heeds)
{
	a->control->tools = heeds;
	for (uint32_t copy = 0; copy < 2; copy++) {
		struct pacer_policy *policy = &a->copy[copy].policy;

		if (heeds)
			__atomic_or_fetch(&policy->flags, PACER_TOOLS, __ATOMIC_RELEASE);
		else
			__atomic_and_fetch(&policy->flags, ~(__u32)PACER_TOOLS, __ATOMIC_RELEASE);
		pacer_short_reshape(policy, a->control, copy);
	}
}

/* --- where they are ----------------------------------------------------------------------------
 */

struct search {
	struct pinned_ids ids;
	char folder[IF_NAMESIZE];
	enum pinned_there there; /* of what is in there */
	bool unread;		 /* some cannot be read, or by others alone */
};

/* What of them is in the folder? One of which only a part can be seen may be whole. */
static enum pinned_there leads_there(struct search *s, const char *folder)
{
	struct inside in = look_into(folder);

	s->unread |= in.err;
	if (!have_common(&in.ids, &s->ids))
		return PINNED_GONE;
	return in.err || are_same(&in.ids, &s->ids) ? PINNED_WHOLE : PINNED_IN_PART;
}

/* 1: that folder has the pins, and no interface here has its name. */
static int was_named(int at_fd, const char *name, void *search)
{
	struct search *s = search;
	enum pinned_there there;
	char ifname[IF_NAMESIZE];

	(void)at_fd;
	if (name[0] == '.' || strlen(name) >= sizeof(ifname) || s->folder[0])
		return 0;
	there = leads_there(s, name);
	for (size_t i = 0; i <= strlen(name); i++)
		ifname[i] = name[i] == ':' ? '.' : name[i];
	if (there == PINNED_GONE || if_nametoindex(ifname))
		return 0;
	snprintf(s->folder, sizeof(s->folder), "%s", name);
	s->there = there == PINNED_WHOLE ? PINNED_RENAMED : there;
	return 1;
}

enum pinned_there pinned_where(const struct attached *a, char path[PINNED_PATH])
{
	struct search s = {.there = PINNED_GONE};
	char name[IF_NAMESIZE], all[PATH_MAX / 2];
	int fd, found;

	pinned_path(a->ifname, path);
	if (own_ids(a, &s.ids))
		return PINNED_WHOLE;
	s.there = leads_there(&s, folder_of(a->ifname, name));
	if (s.there != PINNED_GONE)
		return s.there;
	fd = open_locked();
	if (fd >= 0) {
		found = pins_each(fd, was_named, &s);
		s.unread |= found < 0;
		close(fd);
	}
	if (s.there != PINNED_GONE)
		snprintf(path, PINNED_PATH, "%s/%s", place(all), s.folder);
	return s.there == PINNED_GONE && s.unread ? PINNED_WHOLE : s.there;
}

/* --- remove ----------------------------------------------------------------------------------- */

struct removal {
	const struct pinned_ids *ids; /* of whose; NULL: of those that nobody uses */
	const char *folder;	      /* with ids: of this one, used or not */
	uint32_t gone;		      /* the program that was detached */
	bool look;
	void (*each)(const char *name, int cause, void *arg);
	void *arg;
};

/* 1, 0, or -errno: that cannot be seen. It is to go whole: not where one of the two is in use. */
static int is_to_go(const struct removal *r, const char *name)
{
	struct inside in;
	int is;

	if (!strncmp(name, MADE, strlen(MADE))) /* the lock is held: nobody is making one */
		return !r->ids;
	in = look_into(name);
	if (r->ids && have_common(&in.ids, r->ids) && !strcmp(name, r->folder))
		return 1;
	if (in.err)
		return -in.err;
	if (!has_any(&in.ids))
		return !r->ids && is_empty(name);
	if (r->ids && !have_common(&in.ids, r->ids))
		return 0;
	is = used(&in.ids, r->gone);
	return is < 0 ? is : !is;
}

static int remove_one(int at_fd, const char *name, void *removal)
{
	const struct removal *r = removal;
	int goes = name[0] == '.' ? 0 : is_to_go(r, name), cause;

	/* What could not be looked at may be the one. */
	if (goes < 0 && r->each && (!r->ids || !strcmp(name, r->folder)))
		r->each(name, -goes, r->arg);
	if (goes <= 0)
		return 0;
	cause = r->look || pins_remove_folder(at_fd, name) ? 0 : errno;
	if (r->each)
		r->each(name, cause, r->arg);
	return !cause;
}

/* 0, or errno: they cannot all be looked at. */
static int remove_those(struct removal *r)
{
	int fd = open_locked(), err;

	if (fd < 0)
		return errno;
	errno = EAGAIN;
	err = pins_each(fd, remove_one, r) < 0 ? errno : 0;
	close(fd);
	return err;
}

static void note_left(const char *name, int cause, void *left)
{
	char all[PATH_MAX / 2];

	pins_note_left(left, place(all), name, cause);
}

/* Why one of the pins `ids` may lie there still; 0: they do not, or others alone may look. */
static int stays(const char *ifname, const char *folder, const struct pinned_ids *ids, int err)
{
	char path[PINNED_PATH];
	struct inside in;

	if (!is_there(pinned_path(ifname, path)))
		return is_none() ? 0 : errno;
	in = look_into(folder);
	if (have_common(&in.ids, ids))
		return err ? err : EAGAIN;
	return is_denied(in.err) ? 0 : in.err;
}

void pinned_remove(const char *ifname, const struct pinned_ids *ids, uint32_t gone,
		   struct pins_left *left)
{
	char name[IF_NAMESIZE];
	struct pins_left now = {.cause = 0};
	struct removal r = {.ids = ids,
			    .folder = folder_of(ifname, name),
			    .gone = gone,
			    .each = note_left,
			    .arg = &now};
	int cause = has_any(ids) ? EAGAIN : 0;

	if (cause && pins_hidden()) {
		note_left(r.folder, EMEDIUMTYPE, left);
		return;
	}
	/* A second time where a look has failed: it cannot be told from another's folder then. */
	for (int look = 0; cause && look < 2; look++) {
		now.cause = 0;
		cause = stays(ifname, r.folder, ids, remove_those(&r));
	}
	if (cause)
		note_left(r.folder, cause, &now);
	if (left && now.cause && !left->cause)
		*left = now;
}

void pinned_sweep(const char *ifname, uint32_t gone)
{
	char name[IF_NAMESIZE], path[PATH_MAX];
	struct removal unused = {.gone = gone};
	int fd;

	if (!is_there(path_of(path, folder_of(ifname, name), "")))
		return;
	fd = open_locked();
	if (fd < 0)
		return;
	remove_one(fd, name, &unused);
	close(fd);
}

void pinned_remove_unread(const char *ifname, int err, uint32_t gone, struct pins_left *left)
{
	char name[IF_NAMESIZE], path[PINNED_PATH];

	pinned_sweep(ifname, gone);
	if (is_there(pinned_path(ifname, path)) || !is_none())
		note_left(folder_of(ifname, name), -err, left);
}

void pinned_clean(bool look, void (*each)(const char *name, int cause, void *arg), void *arg)
{
	struct removal r = {.look = look, .each = each, .arg = arg};

	(void)remove_those(&r);
}
