/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pins in the BPF file system, whichever call fails: those of what is at work stay, those of other
 * tools are put whole or not at all, and what nobody uses goes. The file system, the machine's
 * processes, their network namespaces and the kernel's programs are files in a folder of the test.
 */
#include "oracle.h"
#include "starved.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <net/if.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "config/policy.h"
#include "live/pinned.h"
#include "live/carried.h"
#include "live/pins.h"
#include "plan/compile.h"
#include "short.h"

static char root[64] = "/dev/shm/xdp-pacer-pins-XXXXXX"; /* no disk: it is made anew often */
static struct policy_error error;

/* --- what fails ------------------------------------------------------------------------------- */

static struct {
	unsigned int n, at; /* calls so far; the one that fails, from 1; 0: none */
	bool for_good;	    /* and all after it */
	int err;
} fault;

static bool falls(void)
{
	fault.n++;
	if (!fault.at || fault.n < fault.at || (fault.n > fault.at && !fault.for_good))
		return false;
	errno = fault.err;
	return true;
}

static int fallen(void)
{
	return falls() ? -1 : 0;
}

/* --- the machine ------------------------------------------------------------------------------ */

#define PROGRAMS 9
#define SHADOWED 3 /* the ids of programs: a pacer with a shadow, which nobody has attached */

enum kind { MAP4 = 1, MAP6, PROGRAM, OTHER, ODD };

struct thing {
	enum kind kind;
	uint32_t id;
};

static uint32_t map_of[PROGRAMS]; /* of each program, the map for IPv4; the next id is IPv6's */
static bool runs[PROGRAMS];
static bool unlisted;	    /* programs cannot be listed */
static uint32_t leaving;    /* the program that goes between its id and its descriptor; 0: none */
static uint32_t on_no_card; /* the program of a network card that is gone; 0: none */
static uint32_t carried_at_home, carried_elsewhere; /* which program an interface has; 0: none */
static enum { DRIVER, STACK, CARD } carried_by;
static bool many_maps;	      /* every program has more of them than are looked at */
static bool elsewhere, blind; /* in another namespace; no right to look into processes */
static bool contained;	      /* in another namespace of processes */
static bool enclosed;	      /* in another namespace of users */
static bool no_bpffs;
static bool read_only;		 /* the BPF file system: what is not there cannot be made */
static unsigned int gone;	 /* interfaces that go while they are asked, one each time */
static bool busy;		 /* files, of which none can be removed */
static unsigned int looked_into; /* namespaces, but for this one */
static const char *others; /* what has this in its path is another's to look at; NULL: nothing */
static char within[16];	   /* which */
static struct pacer_control control;
static struct pacer_copy *copies;

/* Where a path of the machine is, in the test's folder. */
static const char *moved(const char *path, char at[256])
{
	bool machine = (!strncmp(path, "/proc", 5) && strncmp(path, "/proc/self/fd/", 14) != 0) ||
		       !strncmp(path, "/run/netns", 10);

	snprintf(at, 256, "%s%s", machine ? root : "", path);
	return at;
}

static void make(const char *path, const char *text)
{
	char at[256];
	FILE *f;

	snprintf(at, sizeof(at), "%s%s", root, path);
	for (char *slash = at + strlen(root); (slash = strchr(slash + 1, '/'));) {
		*slash = 0;
		(void)!mkdir(at, 0755);
		*slash = '/';
	}
	f = fopen(at, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void make_thing(const char *path, enum kind kind, uint32_t id)
{
	char text[32];

	snprintf(text, sizeof(text), "%d %u\n", kind, id);
	make(path, text);
}

static int thing_fd(enum kind kind, uint32_t id)
{
	int fd = memfd_create("thing", MFD_CLOEXEC);

	assert_true(fd >= 0 && dprintf(fd, "%d %u\n", kind, id) > 0);
	return fd;
}

static struct thing thing_of(int fd)
{
	struct thing t = {OTHER, 0};
	char text[32] = "";

	(void)!pread(fd, text, sizeof(text) - 1, 0);
	(void)!sscanf(text, "%u %u", &t.kind, &t.id);
	return t;
}

int bpf_obj_pin(int fd, const char *path)
{
	struct thing t = thing_of(fd);

	if (read_only)
		errno = ENOENT;
	if (read_only || falls())
		return -1;
	make_thing(path + strlen(root), t.kind, t.id);
	return 0;
}

int bpf_obj_get_opts(const char *path, const struct bpf_obj_get_opts *opts)
{
	(void)opts;
	if (others && strstr(path, others)) {
		errno = EACCES;
		return -1;
	}
	return falls() ? -1 : open(path, O_RDONLY | O_CLOEXEC);
}

int bpf_obj_get(const char *path)
{
	return bpf_obj_get_opts(path, NULL);
}

int bpf_obj_get_info_by_fd(int fd, void *info, __u32 *len)
{
	struct thing t = thing_of(fd);
	struct bpf_prog_info *p = info;
	struct bpf_map_info *m = info;
	uint32_t *ids = (uint32_t *)(uintptr_t)p->map_ids;

	(void)len;
	errno = ENODEV;
	if ((t.kind == PROGRAM && t.id == on_no_card) || falls())
		return -1;
	if (t.kind == PROGRAM) {
		p->id = t.id;
		if (p->nr_map_ids >= 2) {
			ids[0] = map_of[t.id] + 1;
			ids[1] = map_of[t.id];
		}
		for (uint32_t i = 2; many_maps && i < p->nr_map_ids; i++)
			ids[i] = map_of[t.id] + 1;
		p->nr_map_ids = !map_of[t.id] ? 0 : many_maps ? p->nr_map_ids + 1 : 2;
		return 0;
	}
	m->id = t.id;
	m->key_size = t.kind == MAP4   ? sizeof(struct pacer_tools4)
		      : t.kind == MAP6 ? sizeof(struct pacer_tools6)
				       : 4;
	snprintf(m->name, sizeof(m->name), "%s",
		 t.kind == MAP4 || t.kind == ODD ? "pacer_banned4"
		 : t.kind == MAP6		 ? "pacer_banned6"
						 : "other");
	return 0;
}

int bpf_map_get_fd_by_id(__u32 id)
{
	return falls() ? -1 : thing_fd(id % 10 ? MAP6 : MAP4, id);
}

int bpf_prog_get_next_id(__u32 id, __u32 *next)
{
	errno = EIO;
	if (unlisted || falls())
		return -1;
	for (*next = id + 1; *next < PROGRAMS; ++*next)
		if (runs[*next])
			return 0;
	errno = ENOENT;
	return -1;
}

int bpf_prog_get_fd_by_id(__u32 id)
{
	if (leaving && id == leaving)
		errno = ENOENT;
	return (leaving && id == leaving) || falls() ? -1 : thing_fd(PROGRAM, id);
}

int bpf_xdp_query(int ifindex, int flags, struct bpf_xdp_query_opts *opts)
{
	uint32_t id = !elsewhere		? carried_at_home
		      : !strcmp(within, "away") ? carried_elsewhere
						: 0;

	opts->drv_prog_id = carried_by == DRIVER ? id : 0;
	opts->skb_prog_id = carried_by == STACK ? id : 0;
	opts->hw_prog_id = carried_by == CARD ? id : 0;
	(void)ifindex;
	(void)flags;
	if (gone) {
		gone--;
		return -ENODEV;
	}
	return falls() ? -EIO : 0;
}

/* --- calls of the C library that fail, or see the test's machine --------------------------------
 */

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_openat(int at, const char *path, int flags, ...);
int __wrap_openat(int at, const char *path, int flags, ...);
DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
int __real_stat(const char *path, struct stat *st);
int __wrap_stat(const char *path, struct stat *st);
int __real_lstat(const char *path, struct stat *st);
int __wrap_lstat(const char *path, struct stat *st);
int __wrap_statfs(const char *path, struct statfs *fs);
int __wrap_fstatfs(int fd, struct statfs *fs);
int __wrap_setns(int fd, int kind);
long __wrap_syscall(long number, ...);
int __real_faccessat(int at, const char *path, int how, int flags);
int __wrap_faccessat(int at, const char *path, int how, int flags);
int __real_flock(int fd, int how);
int __wrap_flock(int fd, int how);
int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __real_mkdirat(int at, const char *path, mode_t mode);
int __wrap_mkdirat(int at, const char *path, mode_t mode);
int __real_renameat2(int at, const char *from, int to_at, const char *to, unsigned int flags);
int __wrap_renameat2(int at, const char *from, int to_at, const char *to, unsigned int flags);
int __real_unlinkat(int at, const char *path, int flags);
int __wrap_unlinkat(int at, const char *path, int flags);
struct dirent *__real_readdir(DIR *d);
struct dirent *__wrap_readdir(DIR *d);
DIR *__real_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd);
int __real_fcntl(int fd, int what, ...);
int __wrap_fcntl(int fd, int what, ...);
struct if_nameindex *__real_if_nameindex(void);
struct if_nameindex *__wrap_if_nameindex(void);

static int mode_of(int flags, va_list more)
{
	return flags & O_CREAT ? va_arg(more, int) : 0;
}

int __wrap_open(const char *path, int flags, ...)
{
	char at[256];
	va_list more;
	int mode;

	va_start(more, flags);
	mode = mode_of(flags, more);
	va_end(more);
	if (strstr(path, "/root/")) /* what lies there others say: a pipe would wait */
		assert_true(flags & O_PATH);
	return falls() ? -1 : __real_open(strlen(path) < 150 ? moved(path, at) : path, flags, mode);
}

int __wrap_openat(int at, const char *path, int flags, ...)
{
	return falls() ? -1 : __real_openat(at, path, flags);
}

DIR *__wrap_opendir(const char *path)
{
	char at[256];

	return falls() ? NULL : __real_opendir(moved(path, at));
}

DIR *__wrap_fdopendir(int fd)
{
	return falls() ? NULL : __real_fdopendir(fd);
}

struct dirent *__wrap_readdir(DIR *d)
{
	return falls() ? NULL : __real_readdir(d);
}

/* The machine's first namespaces of processes and of users. */
int __wrap_stat(const char *path, struct stat *st)
{
	bool user = !strcmp(path, "/proc/self/ns/user");

	assert_true(user || !strcmp(path, "/proc/self/ns/pid"));
	memset(st, 0, sizeof(*st));
	st->st_ino = (user ? enclosed : contained) ? 1 : 4026531836u + user;
	return fallen();
}

int __wrap_lstat(const char *path, struct stat *st)
{
	return falls() ? -1 : __real_lstat(path, st);
}

int __wrap_statfs(const char *path, struct statfs *fs)
{
	(void)path;
	fs->f_type = no_bpffs ? TMPFS_MAGIC : BPF_FS_MAGIC;
	return fallen();
}

/* Of a namespace's file it says so, unless that is empty: it is being made. */
int __wrap_fstatfs(int fd, struct statfs *fs)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	fs->f_type = S_ISDIR(st.st_mode) && !no_bpffs	  ? BPF_FS_MAGIC
		     : st.st_size && !S_ISDIR(st.st_mode) ? NSFS_MAGIC
							  : TMPFS_MAGIC;
	return fallen();
}

/* Which namespace it is, its file says. That it comes home again does not fail: the tool ends then.
 */
int __wrap_setns(int fd, int kind)
{
	char text[sizeof(within)] = "";

	assert_int_equal(kind, CLONE_NEWNET);
	(void)!pread(fd, text, sizeof(text) - 1, 0);
	if (strcmp(text, "home") != 0 && falls())
		return -1;
	memcpy(within, text, sizeof(within));
	elsewhere = strcmp(text, "home") != 0;
	looked_into += elsewhere;
	return 0;
}

long __wrap_syscall(long number, ...)
{
	struct __user_cap_data_struct *data;
	va_list more;

	assert_int_equal(number, SYS_capget);
	va_start(more, number);
	(void)va_arg(more, void *);
	data = va_arg(more, void *);
	va_end(more);
	memset(data, blind ? 0 : 0xff, _LINUX_CAPABILITY_U32S_3 * sizeof(*data));
	return fallen();
}

/* Whether something is there can always be told. */
int __wrap_faccessat(int at, const char *path, int how, int flags)
{
	return how != F_OK && falls() ? -1 : __real_faccessat(at, path, how, flags);
}

int __wrap_flock(int fd, int how)
{
	return falls() ? -1 : __real_flock(fd, how);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
	return falls() ? -1 : __real_mkdir(path, mode);
}

int __wrap_mkdirat(int at, const char *path, mode_t mode)
{
	if (read_only)
		errno = EROFS;
	return read_only || falls() ? -1 : __real_mkdirat(at, path, mode);
}

int __wrap_renameat2(int at, const char *from, int to_at, const char *to, unsigned int flags)
{
	return falls() ? -1 : __real_renameat2(at, from, to_at, to, flags);
}

int __wrap_unlinkat(int at, const char *path, int flags)
{
	if (busy && !(flags & AT_REMOVEDIR)) {
		errno = EBUSY;
		return -1;
	}
	return falls() ? -1 : __real_unlinkat(at, path, flags);
}

int __wrap_fcntl(int fd, int what, ...)
{
	va_list more;
	int arg;

	va_start(more, what);
	arg = what == F_DUPFD_CLOEXEC ? va_arg(more, int) : 0;
	va_end(more);
	return what == F_DUPFD_CLOEXEC && falls() ? -1 : __real_fcntl(fd, what, arg);
}

struct if_nameindex *__wrap_if_nameindex(void)
{
	return falls() ? NULL : __real_if_nameindex();
}

/* --- what there is -----------------------------------------------------------------------------
 */

static char seen[4096]; /* every file below it, with what it says, in no order that matters */
static const char *below;

static int note_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	char text[32] = "";
	size_t len = strlen(seen);
	int fd;

	(void)st;
	(void)ftw;
	if (type != FTW_F && type != FTW_D && type != FTW_DP)
		return 0;
	fd = type == FTW_F ? __real_open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0) {
		(void)!pread(fd, text, sizeof(text) - 1, 0);
		close(fd);
	}
	assert_true(len + strlen(path) + strlen(text) + 3 < sizeof(seen));
	snprintf(seen + len, sizeof(seen) - len, "%s=%s\n", path + strlen(below), text);
	return 0;
}

static int remove_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static const char *look(const char *folder)
{
	static char path[128];

	fault.at = 0;
	snprintf(path, sizeof(path), "%s%s", root, folder);
	below = path;
	*seen = 0;
	(void)!nftw(path, note_file, 16, FTW_PHYS);
	return seen;
}

static bool there(const char *path)
{
	char at[256];

	snprintf(at, sizeof(at), "%s%s", root, path);
	return !access(at, F_OK);
}

static int open_files(void)
{
	int n = 0;

	for (int fd = 0; fd < 64; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void clear(void)
{
	(void)!nftw(root, remove_file, 16, FTW_DEPTH | FTW_PHYS);
}

/* Two pacers: program 1 with the maps 10 and 11, on lo; program 2 with 20 and 21. */
static void begin(void)
{
	memset(&fault, 0, sizeof(fault));
	clear();
	memset(map_of, 0, sizeof(map_of));
	memset(runs, 0, sizeof(runs));
	map_of[1] = 10;
	map_of[2] = 20;
	runs[1] = runs[2] = true;
	unlisted = false;
	leaving = on_no_card = 0;
	carried_at_home = carried_elsewhere = 0;
	carried_by = DRIVER;
	others = NULL;
	blind = elsewhere = contained = enclosed = many_maps = no_bpffs = false;
	(void)!mkdir(root, 0755);
	make("/proc/1/ns/net", "home");
	make("/proc/1/fdinfo/3", "pos:\t0\n");
	make("/proc/self/ns/net", "home");
	make("/proc/77/ns/net", "away");
	make("/run/netns/made", "");
	make("/run/netns/empty", "empty");
	fault.err = EIO;
}

static void end_home(void)
{
	assert_false(elsewhere);
}

/* --- for other tools ---------------------------------------------------------------------------
 */

static bool lo_last;
static const struct pinned_ids of_none, of_lo = {{10, 11}}, of_two = {{20, 21}};

static void maps_of_two(struct attached a[2])
{
	static const char *const names[] = {"lo", "gone.1"};

	for (uint32_t i = 0; i < 2; i++) {
		struct attached *to = &a[lo_last ? 1 - i : i];

		*to = (struct attached){.prog_id = i + 1,
					.prog_fd = -1,
					.tools4_fd = thing_fd(MAP4, 10 * (i + 1)),
					.tools6_fd = thing_fd(MAP6, 10 * (i + 1) + 1),
					.control = &control,
					.copy = copies};
		snprintf(to->ifname, sizeof(to->ifname), "%s", names[i]);
	}
}

static bool not_attached; /* what they were put for has failed */

static int put_two(void)
{
	static const struct pinned_ids instead[2];
	struct pinning *pinning;
	struct attached a[2];
	int files = open_files(), result;

	maps_of_two(a);
	memory.on = true;
	result = pinned_make(a, instead, 2, &pinning, &error);
	if (!result) {
		result = pinned_put(pinning, &error);
		pinned_end(pinning, !result && !not_attached);
	}
	memory.on = false;
	for (int i = 0; i < 2; i++) {
		close(a[i].tools4_fd);
		close(a[i].tools6_fd);
	}
	assert_int_equal(open_files(), files);
	return result;
}

/* What lies at lo's name is nobody's any more. */
static void begin_put(void)
{
	begin();
	make_thing("/xdp-pacer/lo/banned4", MAP4, 50);
	make_thing("/xdp-pacer/lo/banned6", MAP6, 51);
}

static void put_whole_or_not_at_all(void)
{
	char before[sizeof(seen)];
	unsigned int n;

	begin_put();
	assert_int_equal(put_two(), 0);
	n = fault.n;
	assert_null(strstr(look("/xdp-pacer"), "being-made")); /* what gave way is gone, too */
	assert_true(n > 20);
	for (unsigned int i = 1; i <= n; i++)
		for (int for_good = 0; for_good < 2; for_good++) {
			int result;

			begin_put();
			snprintf(before, sizeof(before), "%s", look("/xdp-pacer"));
			fault.at = fault.n = 0;
			fault.at = i;
			fault.for_good = for_good;
			result = put_two();
			look("/xdp-pacer");
			if (!result && (!strstr(seen, "/lo/banned4=1 10") ||
					!strstr(seen, "/gone:1/banned6=2 21")))
				fail_msg("call %u: said to be pinned:\n%s", i, seen);
			if (result && strncmp(error.text, "lo: ", 4) != 0 &&
			    strncmp(error.text, "gone.1: ", 8) != 0)
				fail_msg("call %u: it says %s", i, error.text);
			/* What cannot be removed is left to `clean`; what is another's is there. */
			if (result &&
			    (for_good ? !strstr(seen, "/lo/banned4=1 50")
				      : strcmp(seen, before) != 0) &&
			    !strstr(seen, "being-made"))
				fail_msg("call %u%s failed, and of\n%sis left\n%s%s", i,
					 for_good ? " and all after it" : "", before, seen,
					 error.text);
		}
}

static void test_put_whole_or_not_at_all(void **unused)
{
	(void)unused;
	put_whole_or_not_at_all();
	lo_last = true; /* so that what is new is put first, and taken back */
	put_whole_or_not_at_all();
	lo_last = false;
}

/* What gave way comes back where the pacers could not be attached. */
static void test_put_and_not_attached(void **unused)
{
	char before[sizeof(seen)];

	(void)unused;
	not_attached = true;
	for (int last = 0; last < 2; last++) {
		lo_last = last;
		begin_put();
		snprintf(before, sizeof(before), "%s", look("/xdp-pacer"));
		assert_int_equal(put_two(), 0);
		assert_string_equal(look("/xdp-pacer"), before);
	}
	lo_last = not_attached = false;
	pinned_end(NULL, true); /* none was begun */
}

#define MANY 256 /* interfaces that one load takes */

/* Of many at once, each has its own. */
static void test_put_of_many(void **unused)
{
	static const struct pinned_ids instead[MANY];
	static struct attached a[MANY];
	struct pinning *pinning;

	(void)unused;
	begin();
	for (uint32_t i = 0; i < MANY; i++) {
		a[i] = (struct attached){.tools4_fd = thing_fd(MAP4, 1000 + 10 * i),
					 .tools6_fd = thing_fd(MAP6, 1001 + 10 * i)};
		snprintf(a[i].ifname, sizeof(a[i].ifname), "many%u", i);
	}
	assert_int_equal(pinned_make(a, instead, MANY, &pinning, &error), 0);
	assert_int_equal(pinned_put(pinning, &error), 0);
	pinned_end(pinning, true);
	for (uint32_t i = 0; i < MANY; i++) {
		char folder[32], wanted[32];

		snprintf(folder, sizeof(folder), "/xdp-pacer/many%u", i);
		snprintf(wanted, sizeof(wanted), "/banned4=1 %u\n", 1000 + 10 * i);
		assert_non_null(strstr(look(folder), wanted));
		close(a[i].tools4_fd);
		close(a[i].tools6_fd);
	}
}

/* What is pinned already is left as it is, whatever fails of the other. */
static void test_put_beside_pinned(void **unused)
{
	unsigned int n = 1;

	(void)unused;
	for (unsigned int i = 0; i <= n; i++) {
		begin();
		make_thing("/xdp-pacer/lo/banned4", MAP4, 10);
		make_thing("/xdp-pacer/lo/banned6", MAP6, 11);
		fault.n = 0;
		fault.at = i;
		assert_true(put_two() == 0 || i);
		if (!i)
			n = fault.n;
		look("/xdp-pacer");
		assert_true(strstr(seen, "/lo/banned4=1 10") && strstr(seen, "/lo/banned6=2 11"));
		if (!i)
			assert_non_null(strstr(seen, "/gone:1/banned4=1 20"));
	}
	assert_true(n > 20);
}

static void test_put_without_memory(void **unused)
{
	(void)unused;
	begin_put();
	no_bpffs = true;
	assert_int_equal(put_two(), -1);
	assert_non_null(strstr(error.text, "lo: --pin wants a BPF file system, and "));
	begin_put();
	starved_from(1, true);
	assert_int_equal(put_two(), -1);
	starved_from(0, false);
	assert_string_equal(error.text, "lo: no memory");
	assert_non_null(strstr(look("/xdp-pacer"), "/lo/banned4=1 50"));
}

/* What has the name there: nothing, a file or a folder of others, of a pacer at work elsewhere, of
 * this one. */
static void test_whose_place_it_is(void **unused)
{
	static const struct {
		const char *file;
		enum kind kind;
		uint32_t id;
		const struct pinned_ids *instead;
		int result;
		const char *says;
	} cases[] = {
	    {"/other", OTHER, 1, &of_none, 0, NULL},
	    {"/xdp-pacer/lo", OTHER, 1, &of_none, -1, "is not this tool's"},
	    {"/xdp-pacer/lo/x", OTHER, 1, &of_none, -1, "is not this tool's"},
	    {"/xdp-pacer/lo/banned4", OTHER, 1, &of_none, -1, "is not this tool's"},
	    {"/xdp-pacer/lo/banned4", ODD, 20, &of_none, -1, "is not this tool's"},
	    {"/xdp-pacer/lo/banned4", MAP4, 20, &of_none, -1, "is of a pacer at work"},
	    {"/xdp-pacer/lo/banned6", MAP6, 21, &of_none, -1, "is of a pacer at work"},
	    {"/xdp-pacer/lo/banned4", MAP4, 20, &of_two, 0, NULL},
	    {"/xdp-pacer/lo/banned6", MAP6, 21, &of_two, 0, NULL}, /* what is left of its own */
	    {"/xdp-pacer/lo/banned6", MAP6, 11, &of_two, -1, "is of a pacer at work"},
	    {"/xdp-pacer/lo/banned4", MAP4, 70, &of_none, 0, NULL},
	    {"/xdp-pacer/lo/banned6", MAP6, 71, &of_none, 0, NULL},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		begin();
		make_thing(cases[i].file, cases[i].kind, cases[i].id);
		if (pinned_check("lo", cases[i].instead, &error) != cases[i].result ||
		    (cases[i].says && !strstr(error.text, cases[i].says)))
			fail_msg("case %zu: it says %s", i, error.text);
	}
}

/* What lies there is another's only where it was looked at. */
static void test_whose_it_is_unseen(void **unused)
{
	static const uint32_t ids[] = {10, 70};
	unsigned int n = 1;

	(void)unused;
	for (size_t k = 0; k < ARRAY(ids); k++)
		for (unsigned int i = 0; i <= n; i++) {
			int result;

			begin();
			make_thing("/xdp-pacer/lo/banned4", MAP4, ids[k]);
			fault.n = 0;
			fault.at = i;
			fault.err = i & 1 ? ENOMEM : EMFILE;
			result = pinned_check("lo", &of_lo, &error);
			if (!i)
				n = fault.n;
			if (result &&
			    (!i || strstr(error.text, "not this tool's") ||
			     strstr(error.text, "another interface") || strstr(error.text, "root")))
				fail_msg("call %u: it says %s", i, error.text);
			if (i > 5 && /* it is locked */
			    !(result && strstr(error.text, "cannot be seen: ") &&
			      strstr(error.text, i & 1 ? ": try again" : "(ulimit -n)")))
				fail_msg("call %u: %d: %s", i, result, error.text);
		}
	assert_true(n > 6);
}

static void no_note(const char *name, int cause, void *n)
{
	(void)name;
	*(int *)n += !cause;
}

static void make_both(const char *folder, uint32_t id)
{
	char path[128];

	snprintf(path, sizeof(path), "/xdp-pacer/%s/banned4", folder);
	make_thing(path, MAP4, id);
	snprintf(path, sizeof(path), "/xdp-pacer/%s/banned6", folder);
	make_thing(path, MAP6, id + 1);
}

/* Where the pins of a pacer are, whose interface may have been renamed. */
static void test_where_they_are(void **unused)
{
	struct attached a = {.ifname = "lo"};
	char path[PINNED_PATH], wanted[128];

	(void)unused;
	begin();
	a.tools4_fd = thing_fd(MAP4, 10);
	a.tools6_fd = thing_fd(MAP6, 11);
	make_both(".hidden", 10);
	make_both("name-of-no-interface", 10); /* nor could it be one */
	make("/xdp-pacer/a-file", "");
	assert_int_equal(pinned_where(&a, path), PINNED_GONE);
	make_thing("/xdp-pacer/was:1/banned6", MAP6, 11);
	assert_int_equal(pinned_where(&a, path), PINNED_IN_PART);
	snprintf(wanted, sizeof(wanted), "%s/xdp-pacer/was:1", root);
	assert_string_equal(path, wanted);
	make_both("was:1", 10);
	assert_int_equal(pinned_where(&a, path), PINNED_RENAMED);
	assert_string_equal(path, wanted);
	make_both("was:2", 10); /* the first that is found */
	assert_int_equal(pinned_where(&a, path), PINNED_RENAMED);
	make_both("lo", 10);
	assert_int_equal(pinned_where(&a, path), PINNED_WHOLE);
	close(a.tools4_fd);
	close(a.tools6_fd);
}

/* What lies in lo's folder: a map's id, 0: nothing, of each; and what that is for the pacer 10, 11.
 */
static const struct part {
	uint32_t id4, id6;
	enum pinned_there there;
	bool refused; /* for --pin */
	bool cleaned; /* while the two pacers run */
} parts[] = {
    {10, 11, PINNED_WHOLE, false, false},   {0, 11, PINNED_IN_PART, false, false},
    {10, 0, PINNED_IN_PART, false, false},  {70, 11, PINNED_IN_PART, false, false},
    {10, 71, PINNED_IN_PART, false, false}, {20, 11, PINNED_IN_PART, false, false},
    {10, 21, PINNED_IN_PART, false, false}, {70, 21, PINNED_GONE, true, false},
    {20, 71, PINNED_GONE, true, false},	    {70, 71, PINNED_GONE, false, true},
    {0, 71, PINNED_GONE, false, true},	    {70, 0, PINNED_GONE, false, true},
};

static void begin_part(const struct part *part)
{
	begin();
	if (part->id4)
		make_thing("/xdp-pacer/lo/banned4", MAP4, part->id4);
	if (part->id6)
		make_thing("/xdp-pacer/lo/banned6", MAP6, part->id6);
}

static enum pinned_there where_lo(void)
{
	struct attached a = {
	    .ifname = "lo", .tools4_fd = thing_fd(MAP4, 10), .tools6_fd = thing_fd(MAP6, 11)};
	char path[PINNED_PATH];
	enum pinned_there there = pinned_where(&a, path);

	close(a.tools4_fd);
	close(a.tools6_fd);
	return there;
}

/* Somebody removed one of the two, or one is of another pacer: what is left is still its own, and
 * is made whole, or removed with it. Neither goes while a pacer uses one. */
static void test_of_one_in_part(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < ARRAY(parts); i++) {
		const struct part *part = &parts[i];
		struct pins_left left = {.cause = 0};
		bool own = part->there != PINNED_GONE;
		int n = 0, whole;

		begin_part(part);
		if (where_lo() != part->there)
			fail_msg("case %zu: status says %d", i, where_lo());
		if (pinned_check("lo", &of_lo, &error) != -part->refused)
			fail_msg("case %zu: --pin says %s", i, error.text);
		whole = put_two();
		look("/xdp-pacer/lo");
		if (whole != -part->refused ||
		    (!whole && (!strstr(seen, "/banned4=1 10") || !strstr(seen, "/banned6=2 11"))))
			fail_msg("case %zu: it is put: %d: %s", i, whole, seen);

		begin_part(part);
		pinned_clean(false, no_note, &n);
		if (n != part->cleaned || there("/xdp-pacer/lo") == part->cleaned)
			fail_msg("case %zu: clean", i);
		begin_part(part);
		pinned_sweep("lo", 0);
		if (there("/xdp-pacer/lo") == part->cleaned)
			fail_msg("case %zu: the next load", i);

		begin_part(part);
		runs[1] = false;
		pinned_remove("lo", &of_lo, 1, &left);
		if (left.cause || there("/xdp-pacer/lo") == own)
			fail_msg("case %zu: unload: %s", i, strerror(left.cause));
		begin_part(part);
		fault.n = 0;
		fault.err = EACCES; /* of the folder of all, behind the looks */
		fault.at = 5 + (part->id4 != 0) + (part->id6 != 0);
		if (pinned_may_go("lo", &of_lo, &error) != -own)
			fail_msg("case %zu: load --replace", i);
	}
}

/* One of the two that cannot be looked at may be the pacer's, or in use: nothing is done then. */
static void test_one_is_unseen(void **unused)
{
	static const struct part stale = {70, 71, PINNED_GONE, false, true};
	struct pins_left left;

	(void)unused;
	others = NULL;
	for (int i = 0; i < 2; i++) {
		const char *unseen = i ? "/lo/banned6" : "/lo/banned4";
		int n = 0;

		begin_part(&parts[0]);
		others = unseen;
		assert_int_equal(where_lo(), PINNED_WHOLE);
		assert_int_equal(put_two(), -1);
		assert_non_null(strstr(error.text, "/lo is cannot be seen: Permission denied"));
		left.cause = 0;
		pinned_remove("lo", &of_lo, 1, &left); /* by the other one it is its own */
		assert_false(left.cause || there("/xdp-pacer/lo"));
		begin_part(&stale);
		others = unseen;
		pinned_clean(false, no_note, &n);
		assert_true(!n && there("/xdp-pacer/lo"));
	}
}

/* Nor are they gone where the folder that may have them is another's, or a call fails. */
static void test_they_may_be_elsewhere(void **unused)
{
	(void)unused;
	begin();
	make_both("was:1", 10);
	assert_int_equal(where_lo(), PINNED_RENAMED);
	others = "/was:1/";
	assert_int_equal(where_lo(), PINNED_WHOLE);
	others = NULL;
	make_both("lo", 20);
	assert_int_equal(where_lo(), PINNED_RENAMED);
	others = "/lo/";
	assert_int_equal(where_lo(), PINNED_RENAMED);
}

/*
 * A program that goes while the programs are looked through has no maps any more, nor has one of a
 * network card that was taken out, which nobody can read any more.
 */
static void test_a_program_that_goes(void **unused)
{
	uint32_t *which[] = {&leaving, &on_no_card};
	const uint32_t id[] = {1, 2};

	(void)unused;
	for (size_t i = 0; i < ARRAY(which); i++) {
		int n = 0;

		begin();
		make_both("lo", 70);
		*which[i] = id[i];
		assert_int_equal(pinned_check("lo", &of_none, &error), 0);
		pinned_clean(false, no_note, &n);
		assert_true(n == 1 && !there("/xdp-pacer/lo"));
	}
}

static const char *in_root(const char *path)
{
	static char at[256];

	snprintf(at, sizeof(at), "%s%s", root, path);
	return at;
}

static void put_link(const char *to, const char *path)
{
	char from[256];

	snprintf(from, sizeof(from), "%s", in_root(to));
	make(path, ""); /* with its folder */
	assert_int_equal(remove(in_root(path)), 0);
	assert_int_equal(symlink(from, in_root(path)), 0);
}

/* Anybody may put links where anybody may write to the BPF file system: what they lead to stays. */
static void test_what_links_lead_to_stays(void **unused)
{
	int n = 0;

	(void)unused;
	begin();
	make("/victim/file", "");
	put_link("/victim", "/xdp-pacer/being-made-by-process-1-0");
	put_link("/victim", "/xdp/dispatch-1-4000000");
	pinned_clean(false, no_note, &n);
	assert_true(n == 1 && !there("/xdp-pacer/being-made-by-process-1-0"));
	pins_sweep(1, NULL);
	assert_false(there("/xdp/dispatch-1-4000000"));
	assert_true(there("/victim/file"));

	begin(); /* where iproute2 has made the folder a link */
	make("/tc/dispatch-1-4000000/prog0-prog", "");
	put_link("/tc", "/xdp");
	pins_sweep(1, NULL);
	assert_false(there("/tc/dispatch-1-4000000"));

	begin();
	make("/victim/file", "");
	assert_int_equal(__real_unlinkat(AT_FDCWD, in_root("/victim/file"), 0), 0);
	put_link("/victim", "/xdp-pacer/lo"); /* an empty folder gives way, and this is none */
	assert_int_equal(pinned_check("lo", &of_none, &error), -1);
	assert_non_null(strstr(error.text, "is not this tool's"));
	n = 0;
	pinned_clean(false, no_note, &n);
	assert_true(!n && there("/victim"));

	begin();
	make("/victim/shadow-of-1-by-3", ""); /* as if the folder of all were another's */
	put_link("/victim", "/xdp-pacer");
	pins_drop_shadow(1, 3, NULL);
	pins_drop_shadow(2, 3, NULL); /* nor by another index */
	assert_true(there("/victim/shadow-of-1-by-3"));
}

static void keep_cause(const char *name, int cause, void *to)
{
	assert_string_equal(name, "left");
	*(int *)to = cause;
}

/* Whether anybody uses them cannot be seen: they stay, and that is told. */
static void test_whether_used_is_unseen(void **unused)
{
	int cause = 0;

	(void)unused;
	begin();
	make_both("left", 70);
	unlisted = true;
	pinned_clean(false, keep_cause, &cause);
	assert_int_equal(cause, EIO);
	assert_true(there("/xdp-pacer/left/banned4") && there("/xdp-pacer/left/banned6"));
	unlisted = false;
	pinned_clean(false, keep_cause, &cause);
	assert_int_equal(cause, 0);
	assert_false(there("/xdp-pacer/left"));
}

/* Which maps are a program's, whatever the order that they come in. */
static void test_which_maps_are_whose(void **unused)
{
	struct pinned_ids ids;
	int prog;

	(void)unused;
	begin();
	prog = thing_fd(PROGRAM, 1);
	assert_int_equal(pinned_ids_of(prog, &ids), 0);
	assert_memory_equal(&ids, &of_lo, sizeof(ids));
	many_maps = true;
	assert_int_equal(pinned_ids_of(prog, &ids), 0);
	assert_memory_equal(&ids, &of_lo, sizeof(ids));
	many_maps = false;
	for (fault.at = 1; fault.at <= 5; fault.at++) { /* its maps; the first one; that of IPv4 */
		fault.n = 0;
		assert_int_equal(pinned_ids_of(prog, &ids), -EIO);
		assert_memory_equal(&ids, &of_none, sizeof(ids));
	}
	many_maps = true; /* the first one comes again, and is read then */
	for (fault.at = 2; fault.at <= 3; fault.at++) {
		fault.n = 0;
		assert_int_equal(pinned_ids_of(prog, &ids), 0);
		assert_memory_equal(&ids, &of_lo, sizeof(ids));
	}
	many_maps = false;
	fault.n = 0;
	fault.at = 4;
	fault.err = ENOENT; /* that map has gone meanwhile */
	assert_int_equal(pinned_ids_of(prog, &ids), 0);
	assert_true(!ids.of[PINNED_4] && ids.of[PINNED_6] == 11);
	map_of[1] = 0;
	assert_int_equal(pinned_ids_of(prog, &ids), 0);
	assert_memory_equal(&ids, &of_none, sizeof(ids));
	close(prog);
}

/* --- a shadow's pin ----------------------------------------------------------------------------
 */

static int put_shadow(uint32_t prog_id, unsigned int at, bool for_good, int err)
{
	int map = thing_fd(OTHER, 1), result;

	begin();
	fault.n = 0;
	fault.at = at;
	fault.for_good = for_good;
	fault.err = err;
	errno = err;
	result = pins_put_shadow(map, "lo", 1, prog_id, &error);
	fault.at = 0;
	close(map);
	return result;
}

static void test_shadow_is_pinned(void **unused)
{
	struct pins_left left = {0}, none = {0};

	(void)unused;
	assert_int_equal(put_shadow(3, 0, false, 0), 0);
	assert_true(there("/xdp-pacer/shadow-of-1-by-3"));
	assert_int_equal(put_shadow(0, 0, false, EPERM), -1);
	assert_string_equal(
	    error.text, "lo: the program of its shadow cannot be read: Operation not permitted");
	assert_int_equal(put_shadow(3, 4, false, EACCES), -1);
	assert_non_null(
	    strstr(error.text, "which its shadow is kept by: Permission denied: be root"));
	assert_int_equal(put_shadow(3, 1, true, EROFS), -1);
	assert_non_null(strstr(error.text, "Read-only file system: `mount -o remount,rw"));
	assert_int_equal(put_shadow(3, 1, false, EROFS), 0); /* it was there */
	pins_drop_shadow(1, 3, &left);
	assert_false(there("/xdp-pacer/shadow-of-1-by-3") || left.cause);
	read_only = true; /* and the folder is not there */
	assert_int_equal(put_shadow(3, 0, false, 0), -1);
	assert_non_null(strstr(error.text, "Read-only file system: `mount -o remount,rw"));
	read_only = false;
	pins_note_left(NULL, "f", "n", EIO);
	pins_note_left(&left, "f", "n", 0);
	pins_note_left(&left, "f", "n", ENOENT); /* it is not there, and so not left */
	assert_memory_equal(&left, &none, sizeof(left));
	pins_note_left(&left, "f", "n", EIO);
	pins_note_left(&left, "other", "n", EPERM);
	assert_int_equal(left.cause, EIO);
	assert_string_equal(left.path, "f/n");
}

/* Others may look into the folder, whatever mask the process has. */
static void test_folder_is_for_all_to_see(void **unused)
{
	mode_t mask = umask(077);
	struct stat st;
	char at[256];

	(void)unused;
	assert_int_equal(put_shadow(3, 0, false, 0), 0);
	umask(mask);
	snprintf(at, sizeof(at), "%s/xdp-pacer", root);
	assert_int_equal(__real_stat(at, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
}

/* A folder of pins is opened locked or not at all, and only on the file system of pins. */
static void test_folder_is_opened_locked(void **unused)
{
	char at[256];
	int fd, other;

	(void)unused;
	assert_int_equal(put_shadow(3, 0, false, 0), 0);
	snprintf(at, sizeof(at), "%s/xdp-pacer", root);
	fd = pins_open_locked(at);
	assert_true(fd >= 0);
	other = __real_open(at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(__real_flock(other, LOCK_EX | LOCK_NB), -1);
	close(fd);
	assert_int_equal(__real_flock(other, LOCK_EX | LOCK_NB), 0);
	close(other);
	for (unsigned int call = 1; call <= 3; call++) { /* it is opened, looked at, locked */
		fault.n = 0;
		fault.at = call;
		fault.err = EIO;
		assert_int_equal(pins_open_locked(at), -1);
		assert_int_equal(errno, EIO);
		fault.at = 0;
	}
	no_bpffs = true;
	assert_int_equal(pins_open_locked(at), -1);
	assert_int_equal(errno, EMEDIUMTYPE);
	no_bpffs = false;
}

static void test_advice(void **unused)
{
	(void)unused;
	assert_non_null(strstr(pins_advice(EACCES), "be root"));
	assert_non_null(strstr(pins_advice(EPERM), "be root"));
	assert_non_null(strstr(pins_advice(EROFS), "remount,rw"));
	assert_non_null(strstr(pins_advice(ENOENT), "is a BPF file system mounted there?"));
	assert_non_null(strstr(pins_advice(EINVAL), "is a BPF file system mounted there?"));
	assert_string_equal(pins_advice(EIO), "");
}

/* --- removal -----------------------------------------------------------------------------------
 */

static void remove_lo(void)
{
	pinned_remove("lo", &of_lo, 1, NULL);
}

static void sweep_lo(void)
{
	pinned_sweep("lo", 0);
}

static void clean_all(void)
{
	int n = 0;

	pinned_clean(false, no_note, &n);
	pins_clean(PINS_DISPATCHERS, false, no_note, &n);
	pins_clean(PINS_SHADOWS, false, no_note, &n);
}

static void sweep_all(void)
{
	pins_sweep(1, NULL);
}

/* What is there, whether it is in use, and who it is for that removes it. */
static const struct pin {
	const char *at; /* of a folder: a file in it */
	enum kind kind;
	uint32_t id;
	void (*removes[3])(void);
	bool used; /* with all that begins() says */
} pins[] = {
    {"/xdp-pacer/lo/banned4", MAP4, 10, {remove_lo}, false}, /* by the program that is off */
    {"/xdp-pacer/lo/banned6", MAP6, 11, {remove_lo}, false},
    {"/xdp-pacer/was:1/banned4", MAP4, 10, {remove_lo}, false},
    {"/xdp-pacer/was:2/banned6", MAP6, 11, {remove_lo}, false},
    {"/xdp-pacer/eth0/banned4", MAP4, 20, {0}, true},
    {"/xdp-pacer/eth1/banned4", MAP4, 70, {0}, true}, /* beside one at work */
    {"/xdp-pacer/eth1/banned6", MAP6, 21, {0}, true},
    {"/xdp-pacer/left/banned6", MAP6, 71, {clean_all}, false},
    {"/xdp-pacer/being-made-by-process-1-1/banned4", MAP4, 70, {clean_all}, false},
    {"/xdp-pacer/mine/notes", OTHER, 1, {0}, true},
    {"/xdp-pacer/shadow-of-1-by-3", OTHER, 3, {clean_all, sweep_all}, false},
    {"/xdp-pacer/shadow-of-1-by-4", OTHER, 4, {0}, true}, /* on an interface here */
    {"/xdp-pacer/shadow-of-2-by-5", OTHER, 5, {0}, true}, /* in another namespace */
    {"/xdp-pacer/shadow-of-2-by-6", OTHER, 6, {clean_all}, false},
    {"/xdp-pacer/shadow-of-1-by-7", OTHER, 7, {0}, true}, /* a process has it open */
    {"/xdp-pacer/shadow-of-1-by-2", OTHER, 2, {0}, true}, /* a dispatcher at work calls it */
    {"/xdp-pacer/shadow-of-1-by-8", OTHER, 8, {0}, true}, /* ... as the last of ten */
    {"/xdp-pacer/shadow-of-1-by-3-of-another", OTHER, 3, {0}, true},
    {"/xdp/dispatch-1-4/prog0-prog", PROGRAM, 2, {0}, true},
    {"/xdp/dispatch-1-4/prog9-prog", PROGRAM, 8, {0}, true},
    {"/xdp/dispatch-1-3/prog0-prog", PROGRAM, 3, {clean_all, sweep_all}, false},
    {"/xdp/dispatch-2-5/prog0-prog", PROGRAM, 1, {0}, true},
    {"/xdp/dispatch-1-3-of-another", PROGRAM, 3, {0}, true},
};

/* Those that are gone are made again. */
static void put_pins(void)
{
	for (size_t i = 0; i < ARRAY(pins); i++)
		if (!there(pins[i].at))
			make_thing(pins[i].at, pins[i].kind, pins[i].id);
}

static void begin_pins(void)
{
	begin();
	runs[1] = false;
	put_pins();
	carried_at_home = 4;
	carried_elsewhere = 5;
	make("/proc/77/fdinfo/9", "pos:\t0\nprog_type:\t6\nprog_id:\t7\n");
}

static bool is_removed_by(const struct pin *pin, void (*remover)(void))
{
	for (size_t k = 0; k < ARRAY(pin->removes); k++)
		if (pin->removes[k] == remover)
			return true;
	return false;
}

static void (*const removers[])(void) = {remove_lo, sweep_lo, sweep_all, clean_all};

static void test_what_is_unused_goes(void **unused)
{
	(void)unused;
	for (size_t r = 0; r < ARRAY(removers); r++) {
		begin_pins();
		removers[r]();
		end_home();
		for (size_t i = 0; i < ARRAY(pins); i++) {
			bool goes = is_removed_by(&pins[i], removers[r]);

			/* Those that remove all remove those of the pacer that is off, too. */
			goes |= removers[r] == clean_all && !pins[i].used;
			goes |= removers[r] == sweep_lo && strstr(pins[i].at, "/lo/");
			if (there(pins[i].at) == goes)
				fail_msg("%zu: %s: %s", r, pins[i].at, goes ? "stays" : "is gone");
		}
	}
}

static void count_one(const char *name, int cause, void *n)
{
	assert_int_equal(cause, strcmp(name, "shadow-of-1-by-7") ? 0 : EAGAIN);
	++*(int *)n;
}

/* Who only looks is told of what would go, and it stays: libxdp's own, too, which it removes else.
 */
static void test_looking_removes_nothing(void **unused)
{
	static const char *const probe = "/xdp/prog-test-link-1-2";

	(void)unused;
	for (int look = 1; look >= 0; look--) {
		int dispatchers = 0, shadows = 0;

		begin_pins();
		make_thing(probe, OTHER, 1);
		pins_clean(PINS_DISPATCHERS, look, count_one, &dispatchers);
		pins_clean(PINS_SHADOWS, look, count_one, &shadows);
		assert_true(dispatchers == 1 && shadows == 3);
		assert_int_equal(there(probe), look);
		assert_int_equal(there("/xdp/dispatch-1-3/prog0-prog"), look);
		assert_int_equal(there("/xdp-pacer/shadow-of-1-by-3"), look);
		assert_int_equal(there("/xdp-pacer/shadow-of-2-by-6"), look);
	}
}

static void note_any_cause(const char *name, int cause, void *of)
{
	(void)name;
	*(int *)of = cause;
}

static void count_unsure(const char *name, int cause, void *n)
{
	(void)name;
	*(int *)n += cause == EAGAIN;
}

/* Of which it cannot be told, and of which a process has the program open. Those in use are none.
 */
static void test_what_may_be_unused_is_told(void **unused)
{
	int dispatchers = 0, shadows = 0;

	(void)unused;
	begin_pins();
	gone = 1000; /* interfaces, all the while */
	pins_clean(PINS_DISPATCHERS, false, count_unsure, &dispatchers);
	pins_clean(PINS_SHADOWS, false, count_unsure, &shadows);
	gone = 0;
	end_home();
	assert_int_equal(dispatchers, 3);
	assert_int_equal(shadows, 7);
	dispatchers = shadows = 0;
	pins_clean(PINS_DISPATCHERS, false, count_unsure, &dispatchers);
	pins_clean(PINS_SHADOWS, false, count_unsure, &shadows);
	end_home();
	assert_int_equal(dispatchers, 0);
	assert_int_equal(shadows, 1); /* shadow-of-1-by-7 */
}

/* Why a folder stays is what its first file says, and not that it is not empty. */
static void test_why_a_folder_stays(void **unused)
{
	int cause = 0;

	(void)unused;
	begin_pins();
	busy = true;
	pins_clean(PINS_DISPATCHERS, false, note_any_cause, &cause);
	busy = false;
	assert_true(there("/xdp/dispatch-1-3/prog0-prog"));
	assert_int_equal(cause, EBUSY);
}

/* An interface that goes while it is asked: all are asked again, but not for ever. */
static void test_looks_again(void **unused)
{
	(void)unused;
	begin_pins();
	gone = 7;
	sweep_all();
	assert_int_equal(gone, 0);
	assert_false(there("/xdp/dispatch-1-3/prog0-prog"));
	assert_false(there("/xdp-pacer/shadow-of-1-by-3"));
	begin_pins();
	gone = 1000000;
	sweep_all();
	assert_true(gone && there("/xdp-pacer/shadow-of-1-by-3"));
	gone = 0;
}

/* Many processes have one namespace: it is looked into once for each program. */
static void test_each_namespace_once(void **unused)
{
	unsigned int looks[2];

	(void)unused;
	for (int more = 0; more < 2; more++) {
		begin_pins();
		for (int pid = 90; pid < 90 + 3 * more; pid++) {
			char from[256], to[256];

			snprintf(to, sizeof(to), "/proc/%d/ns/other", pid);
			make(to, "");
			snprintf(to, sizeof(to), "%s/proc/%d/ns/net", root, pid);
			snprintf(from, sizeof(from), "%s/proc/77/ns/net", root);
			assert_int_equal(link(from, to), 0);
		}
		looked_into = 0;
		sweep_all();
		looks[more] = looked_into;
	}
	assert_true(looks[0] && looks[1] == looks[0]);
}

/* The calls of which one fails, and with it the removal: what stays is told, unless what stays of
 * another was told before. */
static void test_what_stays_is_told(void **unused)
{
	const struct pins_left other = {"f/n", EPERM};
	struct pins_left left;
	unsigned int n, told = 0;

	(void)unused;
	begin_pins();
	remove_lo();
	n = fault.n;
	for (unsigned int i = 1; i <= n; i++)
		for (int how = 0; how < 4; how++) {
			bool before = how & 1;

			begin_pins();
			left = before ? other : (struct pins_left){.cause = 0};
			fault.n = 0;
			fault.at = i;
			fault.for_good = how & 2;
			fault.err = EBUSY;
			pinned_remove("lo", &of_lo, 1, &left);
			fault.at = 0;
			if (before) {
				assert_memory_equal(&left, &other, sizeof(left));
			} else if (!left.cause && there("/xdp-pacer/lo/banned4")) {
				fail_msg("call %u: what stays is not told", i);
			} else if (left.cause) {
				told++;
				assert_true(left.cause == EBUSY || left.cause == ENOTEMPTY);
				assert_non_null(strstr(left.path, "/xdp-pacer/"));
				assert_true(there(left.path + strlen(root)));
			}
		}
	assert_true(told > 2);
}

/* The one that was detached is loaded while it is open: it alone holds up none of its pins. */
static void test_of_the_one_that_went(void **unused)
{
	struct pins_left left = {.cause = 0};

	(void)unused;
	begin();
	make_both("was:1", 10);
	make_both("lo", 10);
	pinned_remove("lo", &of_lo, 1, &left);
	assert_false(left.cause || there("/xdp-pacer/was:1") || there("/xdp-pacer/lo"));
	make_both("lo", 10);
	pinned_sweep("lo", 2);
	assert_true(there("/xdp-pacer/lo/banned4"));
	pinned_sweep("lo", 1);
	assert_false(there("/xdp-pacer/lo"));
	make_both("lo", 10);
	pinned_remove_unread("lo", -EMFILE, 1, &left);
	assert_false(left.cause || there("/xdp-pacer/lo"));
	map_of[3] = 10; /* a partner has them */
	runs[3] = true;
	make_both("was:1", 10);
	pinned_remove("lo", &of_lo, 1, &left);
	assert_true(there("/xdp-pacer/was:1/banned4") && there("/xdp-pacer/was:1/banned6"));
}

/* Where it is not known which are the pacer's: what nobody uses goes, and what stays is told. */
static void test_of_whom_is_unread(void **unused)
{
	struct pins_left left = {.cause = 0};

	(void)unused;
	begin_pins();
	pinned_remove_unread("lo", -EMFILE, 1, &left);
	assert_false(there("/xdp-pacer/lo") || left.cause);
	pinned_remove_unread("lo", -EMFILE, 1, &left); /* there is nothing */
	assert_int_equal(left.cause, 0);
	begin_pins();
	runs[1] = true; /* a partner has them */
	map_of[3] = 10;
	runs[3] = true;
	pinned_remove_unread("lo", -EMFILE, 1, &left);
	assert_true(there("/xdp-pacer/lo/banned4") && there("/xdp-pacer/lo/banned6"));
	assert_int_equal(left.cause, EMFILE);
	assert_non_null(strstr(left.path, "/xdp-pacer/lo"));
	pinned_remove_unread("lo", -EMFILE, 1, NULL);
}

static void note_cause(const char *name, int cause, void *of)
{
	if (strstr(name, "eth0"))
		*(int *)of = cause;
}

/* What nobody here may look into is told by the interface's name, and no other. */
static void test_what_is_others_is_told(void **unused)
{
	struct pins_left left = {.cause = 0};
	int cause = 0;

	(void)unused;
	begin_pins();
	others = "/lo/";
	pinned_remove("lo", &of_lo, 1, &left);
	assert_int_equal(left.cause, EACCES);
	assert_non_null(strstr(left.path, "/xdp-pacer/lo"));
	assert_false(there("/xdp-pacer/was:1"));
	assert_int_equal(pinned_check("lo", &of_lo, &error), -1);
	assert_non_null(strstr(error.text, "/lo is cannot be seen: Permission denied: be root"));
	left.cause = 0;
	others = "/eth0/";
	pinned_remove("lo", &of_lo, 1, &left);
	assert_int_equal(left.cause, 0);
	assert_false(there("/xdp-pacer/lo"));
	pinned_clean(true, note_cause, &cause);
	assert_int_equal(cause, EACCES);
}

/* What cannot be looked at may be there: the folder of all is a link that leads nowhere. */
static void test_what_is_unseen_is_told(void **unused)
{
	struct pins_left left = {.cause = 0};
	char all[256];

	(void)unused;
	begin();
	pinned_remove("lo", &of_lo, 1, &left);
	pinned_remove_unread("lo", -EMFILE, 1, &left);
	pins_drop_shadow(1, 3, &left);
	assert_int_equal(left.cause, 0); /* there is no such folder */
	snprintf(all, sizeof(all), "%s/xdp-pacer", root);
	assert_int_equal(symlink("xdp-pacer", all), 0);
	pinned_remove("lo", &of_lo, 1, &left);
	assert_int_equal(left.cause, ELOOP);
	assert_non_null(strstr(left.path, "/xdp-pacer/lo"));
	left.cause = 0;
	pinned_remove_unread("lo", -EMFILE, 1, &left);
	assert_int_equal(left.cause, EMFILE);
	assert_non_null(strstr(left.path, "/xdp-pacer/lo"));
	left.cause = 0;
	pins_drop_shadow(1, 3, &left);
	assert_int_equal(left.cause, ENOTDIR);
	assert_non_null(strstr(left.path, "/xdp-pacer/shadow-of-1-by-3"));
}

/* An empty folder is of whoever was killed while he removed it: it is nobody's. */
static void test_an_empty_folder(void **unused)
{
	for (int how = 0; how < 4; how++) {
		char path[256];
		int n = 0;

		(void)unused;
		begin_put();
		snprintf(path, sizeof(path), "%s/xdp-pacer/lo/banned4", root);
		assert_int_equal(unlink(path), 0);
		strcpy(strrchr(path, '/'), "/banned6");
		(void)unlink(path);
		if (how == 3) {
			make_thing("/xdp-pacer/lo/x", OTHER, 1);
			pinned_clean(false, no_note, &n);
			assert_true(!n && there("/xdp-pacer/lo/x"));
			continue;
		}
		if (how == 0) {
			assert_int_equal(pinned_check("lo", &of_none, &error), 0);
			assert_int_equal(put_two(), 0);
			assert_true(there("/xdp-pacer/lo/banned4"));
		} else if (how == 1) {
			pinned_clean(true, no_note, &n);
			assert_true(n == 1 && there("/xdp-pacer/lo"));
			pinned_clean(false, no_note, &n);
		} else {
			pinned_sweep("lo", 0);
		}
		assert_true(!how || !there("/xdp-pacer/lo"));
	}
}

/* Where no BPF file system is seen, nothing that it holds is taken to be gone. */
static void test_hidden(void **unused)
{
	struct pins_left left = {.cause = 0};

	(void)unused;
	begin();
	no_bpffs = true;
	assert_true(pins_hidden());
	assert_int_equal(pinned_may_go("lo", &of_lo, &error), -1);
	assert_non_null(strstr(error.text, "lo: its pacer cannot be replaced here, where "));
	assert_int_equal(pinned_may_go("lo", &of_none, &error), 0);
	assert_int_equal(pins_shadow_may_go("lo", 1, 3, &error), -1);
	pinned_remove("lo", &of_none, 1, &left);
	assert_int_equal(left.cause, 0);
	pinned_remove("lo", &of_lo, 1, &left);
	assert_int_equal(left.cause, EMEDIUMTYPE);
	assert_non_null(strstr(left.path, "/xdp-pacer/lo"));
	left.cause = 0;
	pins_drop_shadow(1, 3, &left);
	assert_int_equal(left.cause, EMEDIUMTYPE);
	assert_non_null(strstr(left.path, "/xdp-pacer/shadow-of-1-by-3"));
	pins_drop_shadow(1, 3, NULL);
	no_bpffs = false;
	assert_false(pins_hidden());
	left.cause = 0;
	pins_drop_shadow(1, 3, &left);
	pinned_remove("lo", &of_lo, 1, &left);
	assert_int_equal(left.cause, 0);
}

/* The interface had another index when its shadow began. */
static void test_a_shadow_of_another_index(void **unused)
{
	struct pins_left left = {.cause = 0};

	(void)unused;
	begin();
	make_thing("/xdp-pacer/shadow-of-9-by-3", OTHER, 1);
	make_thing("/xdp-pacer/shadow-of-9-by-33", OTHER, 1);
	pins_drop_shadow(1, 0, &left);
	assert_true(there("/xdp-pacer/shadow-of-9-by-3"));
	pins_drop_shadow(1, 3, &left);
	assert_int_equal(left.cause, 0);
	assert_false(there("/xdp-pacer/shadow-of-9-by-3"));
	assert_true(there("/xdp-pacer/shadow-of-9-by-33"));
}

/* A pacer gives way where what it has pinned can go with it, or is another's. */
static void test_what_may_go(void **unused)
{
	static const struct {
		const char *others;
		const struct pinned_ids *ids;
		unsigned int at; /* which look says no */
		int result;
	} cases[] = {
	    {NULL, &of_lo, 0, 0},     {NULL, &of_lo, 7, -1}, /* in all's folder */
	    {NULL, &of_lo, 8, -1},			     /* in its own */
	    {"/lo/", &of_lo, 0, 0},   {"/lo/", &of_lo, 1, -1}, {"/lo/", &of_lo, 2, -1},
	    {"/lo/", &of_none, 1, 0}, {NULL, &of_two, 7, 0},
	};
	static const struct part only4 = {10, 0, PINNED_IN_PART, false, false};
	unsigned int n;

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		begin_pins();
		others = cases[i].others;
		fault.n = 0;
		fault.at = cases[i].at;
		fault.err = EACCES;
		if (pinned_may_go("lo", cases[i].ids, &error) != cases[i].result ||
		    (cases[i].result && !strstr(error.text, "lo: its pacer cannot be replaced")))
			fail_msg("case %zu: it says %s", i, error.text);
	}
	begin_pins();
	assert_int_equal(pinned_may_go("lo", &of_lo, &error), 0);
	n = fault.n;
	begin_part(&only4);
	for (fault.at = 1; fault.at <= 2; fault.at++) { /* whose it is cannot be looked at */
		fault.n = 0;
		fault.err = EMFILE;
		assert_int_equal(pinned_may_go("lo", &of_lo, &error), -1);
		assert_non_null(strstr(error.text, "cannot be seen: Too many open files: raise"));
	}
	assert_true(n > 2);
	begin_pins();
	fault.err = EACCES;
	fault.n = 0;
	fault.at = 2; /* behind the look whether it is there */
	assert_int_equal(pins_shadow_may_go("lo", 1, 3, &error), -1);
	assert_non_null(strstr(error.text, "shadow-of-1-by-3 could not be removed: Permission"));
	assert_int_equal(pins_shadow_may_go("lo", 1, 3, &error), 0);
	fault.n = 0;
	assert_int_equal(pins_shadow_may_go("lo", 1, 1, &error), 0); /* it has none */
}

/* An interface carries its program in the driver, in the stack or on the card. */
static void test_each_way_to_carry(void **unused)
{
	(void)unused;
	for (int by = DRIVER; by <= CARD; by++) {
		begin_pins();
		carried_by = by;
		clean_all();
		assert_true(there("/xdp-pacer/shadow-of-1-by-4"));
		assert_false(there("/xdp-pacer/shadow-of-1-by-3"));
	}
	begin_pins();
	pins_sweep(0, NULL); /* an interface that is not known has no pins */
	assert_true(there("/xdp-pacer/shadow-of-1-by-3"));
}

/* Whoever has it open. What a dispatcher calls is carried with that. */
static void test_carried_by_any(void **unused)
{
	static const struct {
		uint32_t id;
		int by_any;
		bool by_none, called_by_none;
	} cases[] = {
	    {3, 0, true, true},	 /* by nobody */
	    {4, 1, false, true}, /* here */
	    {5, 1, false, true}, /* elsewhere */
	    {7, 0, false, true}, /* a process has it open */
	    {1, 0, true, false}, /* by the dispatcher of an interface elsewhere */
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		begin_pins();
		assert_int_equal(carried_by_any(cases[i].id), cases[i].by_any);
		assert_int_equal(carried_by_none(cases[i].id), cases[i].by_none);
		end_home();
		if (pins_called_by_none(cases[i].id) != cases[i].called_by_none)
			fail_msg("%u: called: %d", cases[i].id, cases[i].called_by_none);
		end_home();
		gone = 3; /* interfaces, meanwhile: it looks again */
		assert_int_equal(carried_by_any(cases[i].id), cases[i].by_any);
		gone = 100;
		assert_int_equal(carried_by_any(cases[i].id), -1);
		gone = 0;
		end_home();
		blind = true;
		assert_int_equal(carried_by_any(cases[i].id), -1);
		blind = false;
		contained = true;
		assert_int_equal(carried_by_any(cases[i].id), -1);
		contained = false;
	}
}

static void assert_used_stay(const char *when, size_t r, unsigned int call)
{
	for (size_t i = 0; i < ARRAY(pins); i++)
		if (pins[i].used && !there(pins[i].at))
			fail_msg("%s %u of %zu: %s is gone", when, call, r, pins[i].at);
	end_home();
}

/* A process, or its file, is gone by the time that it is looked at, or nobody may look: the others
 * are looked at all the same. */
static void test_gone_meanwhile(void **unused)
{
	static const int errs[] = {ENOENT, ESRCH, EACCES, EPERM};
	unsigned int n;

	(void)unused;
	begin_pins();
	clean_all();
	n = fault.n;
	for (unsigned int i = 1; i <= n; i++) {
		begin_pins();
		fault.n = 0;
		fault.at = i;
		fault.err = errs[i % ARRAY(errs)];
		clean_all();
		end_home();
		if (!there("/xdp-pacer/shadow-of-1-by-4"))
			fail_msg("call %u: what an interface here has is gone", i);
	}
}

/* A process has a network namespace mounted there, upon which something else may lie: its inode. */
static unsigned long mount_in(const char *process, unsigned long hides)
{
	char path[256], line[160];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%s/root/run/a b", process);
	make(path, hides ? "empty" : "away");
	snprintf(path, sizeof(path), "%s/proc/%s/root/run/a b", root, process);
	assert_int_equal(lstat(path, &st), 0);
	snprintf(line, sizeof(line), "31 28 0:4 net:[%lu] %s rw - nsfs nsfs rw\n",
		 hides ? hides : (unsigned long)st.st_ino, "/run/a\\040b");
	snprintf(path, sizeof(path), "/proc/%s/mountinfo", process);
	make(path, line);
	return st.st_ino;
}

/* The namespace that an interface is in is nothing but mounted: of two processes by the one, by
 * both, or by one where it is hidden. Where it is hidden from one and not from another, it was
 * looked into, whoever comes first. */
static void test_one_that_is_mounted(void **unused)
{
	static const char used[] = "/xdp-pacer/shadow-of-2-by-5";
	static const struct {
		const char *shown, *hidden[2];
		bool carried, stays;
	} cases[] = {
	    {"78", {NULL}, true, true},	   {"78", {NULL}, false, false},
	    {NULL, {"78"}, false, true},   {"78", {"177", "79"}, true, true},
	    {"78", {"79"}, false, false},  {"78", {"177", "178"}, false, false},
	    {"178", {"78"}, false, false},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		unsigned long ino = 1u << 30; /* of one that nobody shows */
		char path[256];

		begin_pins();
		snprintf(path, sizeof(path), "%s/proc/77/ns/net", root);
		assert_int_equal(unlink(path), 0);
		if (cases[i].shown)
			ino = mount_in(cases[i].shown, 0);
		for (int j = 0; j < 2 && cases[i].hidden[j]; j++)
			mount_in(cases[i].hidden[j], ino);
		carried_elsewhere = cases[i].carried ? 5 : 0;
		clean_all();
		end_home();
		if (there(used) != cases[i].stays)
			fail_msg("case %zu: there: %d", i, there(used));
	}
}

/* What cannot be seen to be unused stays. */
static void test_what_is_used_stays(void **unused)
{
	static const int errs[] = {EIO, ENOMEM, EMFILE};

	(void)unused;
	for (size_t r = 0; r < ARRAY(removers); r++) {
		unsigned int n;

		begin_pins();
		removers[r]();
		n = fault.n;
		for (unsigned int i = 1; i <= n; i += removers[r] == sweep_all ? 4 : 1)
			for (int for_good = 0; for_good < 1 + (i % 8 == 1); for_good++) {
				int files;

				put_pins();
				files = open_files();
				fault.n = 0;
				fault.at = i;
				fault.for_good = for_good;
				fault.err = errs[i % ARRAY(errs)];
				removers[r]();
				fault.at = 0;
				assert_used_stay("call", r, i);
				assert_int_equal(open_files(), files);
			}
		/* Of processes that may not be looked into. */
		for (unsigned int i = 0; i <= n; i++) {
			put_pins();
			blind = true;
			fault.n = 0;
			fault.at = i;
			fault.err = i & 1 ? EACCES : EPERM;
			removers[r]();
			fault.at = 0;
			assert_used_stay("blind, call", r, i);
		}
		begin_pins();
		contained = true;
		removers[r]();
		assert_used_stay("in a container", r, 0);
		assert_true(there("/xdp-pacer/shadow-of-1-by-3")); /* for all that it sees */
		begin_pins();
		enclosed = true;
		removers[r]();
		assert_used_stay("among other users", r, 0);
		assert_true(there("/xdp-pacer/shadow-of-1-by-3"));
		begin_pins();
		starved_from(1, true);
		memory.on = true;
		removers[r]();
		memory.on = false;
		starved_from(0, false);
		assert_used_stay("no memory", r, 0);
		for (uint32_t i = 1; i <= 40; i++) {
			put_pins();
			starved_from(i, false);
			memory.on = true;
			removers[r]();
			memory.on = false;
			assert_used_stay("allocation", r, i);
		}
		starved_from(0, false);
	}
}

#define TEST(f) cmocka_unit_test(f)

static void arm(uint32_t copy)
{
	static const char text[] =
	    "memory: 1M\nrules: [{name: a, limits: [{key: src, packets: 9, window: 1s}]}]\n";
	static struct plan plan;
	struct compile_host host = {4000000, 1, 2};
	struct policy *policy = policy_parse(text, strlen(text), &error);

	assert_non_null(policy);
	assert_int_equal(compile_policy(policy, NULL, &host, &copies[copy].policy, &plan, &error),
			 0);
	policy_free(policy);
	pacer_short_arm(&copies[copy].policy, &control, copy);
}

/* Bans of other tools count in both copies, whichever is in force: no packet goes the short way. */
static void test_tools_are_heeded(void **unused)
{
	const struct attached a = {.control = &control, .copy = copies};
	uint32_t shape;

	(void)unused;
	memset(&control, 0, sizeof(control));
	for (uint32_t copy = 0; copy < 2; copy++)
		arm(copy);
	shape = copies[0].policy.shape;
	assert_true(shape != PACER_SHORT_NONE);
	for (int heeds = 1; heeds >= 0; heeds--) {
		pinned_heed(&a, heeds);
		assert_int_equal(control.tools, heeds);
		for (uint32_t copy = 0; copy < 2; copy++) {
			const struct pacer_policy *policy = &copies[copy].policy;

			assert_int_equal(policy->flags & PACER_TOOLS, heeds ? PACER_TOOLS : 0);
			assert_int_equal(policy->shape, heeds ? PACER_SHORT_NONE : shape);
		}
	}
	memset(copies, 0, 2 * sizeof(*copies));
	memset(&control, 0, sizeof(control));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_tools_are_heeded),
	    TEST(test_put_whole_or_not_at_all),
	    TEST(test_put_without_memory),
	    TEST(test_whose_place_it_is),
	    TEST(test_what_stays_is_told),
	    TEST(test_what_is_unused_goes),
	    TEST(test_one_that_is_mounted),
	    TEST(test_what_is_used_stays),
	    TEST(test_where_they_are),
	    TEST(test_put_and_not_attached),
	    TEST(test_put_of_many),
	    TEST(test_put_beside_pinned),
	    TEST(test_shadow_is_pinned),
	    TEST(test_folder_is_opened_locked),
	    TEST(test_advice),
	    TEST(test_carried_by_any),
	    TEST(test_each_way_to_carry),
	    TEST(test_gone_meanwhile),
	    TEST(test_what_is_others_is_told),
	    TEST(test_what_may_go),
	    TEST(test_an_empty_folder),
	    TEST(test_hidden),
	    TEST(test_a_shadow_of_another_index),
	    TEST(test_whose_it_is_unseen),
	    TEST(test_of_the_one_that_went),
	    TEST(test_of_whom_is_unread),
	    TEST(test_of_one_in_part),
	    TEST(test_one_is_unseen),
	    TEST(test_they_may_be_elsewhere),
	    TEST(test_a_program_that_goes),
	    TEST(test_what_links_lead_to_stays),
	    TEST(test_whether_used_is_unseen),
	    TEST(test_which_maps_are_whose),
	    TEST(test_what_is_unseen_is_told),
	    TEST(test_looking_removes_nothing),
	    TEST(test_what_may_be_unused_is_told),
	    TEST(test_why_a_folder_stays),
	    TEST(test_looks_again),
	    TEST(test_each_namespace_once),
	    TEST(test_folder_is_for_all_to_see),
	};
	int failed;

	copies = calloc(2, sizeof(*copies));
	if (!copies || !mkdtemp(root) || setenv("LIBXDP_BPFFS", root, 1))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	clear();
	free(copies);
	return failed;
}
