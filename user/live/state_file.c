/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/state_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "config/durable.h"

#define MAGIC	       "PACERST\n"
#define ORDER	       0x01020304u
#define BESIDE	       ".unfinished-" /* a name that nobody gives a copy */
#define ANY	       6	      /* letters behind it */
#define BYTES_MAX      (66ull << 30)  /* PACER_LINES_MAX lines and all else take less */
#define RUN_LINES      4096u /* lines that are looked at together for being empty at the end */
#define WITHOUT_SETS   1u    /* the version before */
#define SUM_BYTES      sizeof(uint32_t)
#define CHUNK_MAX      (1u << 30) /* of zlib */
#define COUNTERS_BYTES (PACER_COUNTERS_MAX * sizeof(struct pacer_counters))

/*
 * What follows, in this order: the policy, its text, counters, those of sets, throttles, the
 * allow-list, runs of lines, the checksum. A file of version 1 has no counters of sets.
 */
struct header {
	char magic[8];
	uint32_t version, order;
	uint32_t abi, line_bytes, policy_bytes, counters_bytes, throttle_bytes, allow_bytes;
	uint64_t file_bytes;
	uint64_t n_lines, n_runs;
	uint32_t n_throttles, n_allow, text_bytes, secret_ready;
	uint32_t frozen, set_counts_bytes; /* 0 of version 1 */
	struct clocks clocks;
	uint64_t secret[2][PACER_SECRETS];
};

struct run {
	uint64_t first, n;
};

/* --- writing --------------------------------------------------------------------------------- */

struct out {
	FILE *f; /* NULL: only count */
	uint64_t bytes;
	uint32_t sum;
	bool failed;
};

static uint32_t sum_over(uint32_t sum, const void *at, size_t bytes)
{
	const unsigned char *p = at;

	for (size_t n; bytes; p += n, bytes -= n) {
		n = bytes < CHUNK_MAX ? bytes : CHUNK_MAX;
		sum = (uint32_t)crc32(sum, p, (uInt)n);
	}
	return sum;
}

static void put(struct out *o, const void *at, size_t bytes)
{
	o->bytes += bytes;
	if (!o->f || o->failed)
		return;
	o->sum = sum_over(o->sum, at, bytes);
	o->failed = bytes && fwrite(at, bytes, 1, o->f) != 1;
}

static bool is_zero(const void *at, size_t bytes)
{
	const unsigned char *p = at;

	return !p[0] && !memcmp(p, p + 1, bytes - 1);
}

/* The next run of lines from `first` on that hold something. n 0: there is none. */
static struct run next_run(const struct state *s, uint64_t first)
{
	struct run run = {first, 0};

	while (run.first < s->n_lines && is_zero(&s->lines[run.first], sizeof(*s->lines)))
		run.first++;
	while (run.first + run.n < s->n_lines && run.n < RUN_LINES &&
	       !is_zero(&s->lines[run.first + run.n], sizeof(*s->lines)))
		run.n++;
	return run;
}

static uint64_t put_lines(struct out *o, const struct state *s)
{
	uint64_t n = 0;

	for (struct run run = next_run(s, 0); run.n; run = next_run(s, run.first + run.n)) {
		put(o, &run, sizeof(run));
		put(o, &s->lines[run.first], run.n * sizeof(*s->lines));
		n++;
	}
	return n;
}

static uint32_t put_throttles(struct out *o, const struct state *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < PACER_THROTTLES; i++) {
		if (is_zero(&s->throttle[i], sizeof(s->throttle[i])))
			continue;
		put(o, &i, sizeof(i));
		put(o, &s->throttle[i], sizeof(s->throttle[i]));
		n++;
	}
	return n;
}

static void put_body(struct out *o, const struct state *s, struct header *h)
{
	put(o, s->bin, sizeof(*s->bin));
	put(o, s->text, h->text_bytes);
	put(o, s->counter, COUNTERS_BYTES);
	put(o, s->set_count, sizeof(s->set_count));
	h->n_throttles = put_throttles(o, s);
	put(o, s->allow.entry, s->allow.n * sizeof(*s->allow.entry));
	h->n_runs = put_lines(o, s);
}

static void fill_header(const struct state *s, struct header *h)
{
	struct out count = {.f = NULL};

	memset(h, 0, sizeof(*h));
	memcpy(h->magic, MAGIC, sizeof(h->magic));
	h->version = STATE_FILE_VERSION;
	h->order = ORDER;
	h->abi = PACER_ABI_VERSION;
	h->line_bytes = sizeof(*s->lines);
	h->policy_bytes = sizeof(*s->bin);
	h->counters_bytes = COUNTERS_BYTES;
	h->throttle_bytes = sizeof(*s->throttle);
	h->allow_bytes = sizeof(*s->allow.entry);
	h->n_lines = s->n_lines;
	h->n_allow = (uint32_t)s->allow.n;
	h->text_bytes = (uint32_t)strlen(s->text);
	h->secret_ready = s->secret_ready;
	h->frozen = s->frozen;
	h->set_counts_bytes = sizeof(s->set_count);
	h->clocks = s->clocks;
	memcpy(h->secret, s->secret, sizeof(h->secret));
	put_body(&count, s, h);
	h->file_bytes = sizeof(*h) + count.bytes + SUM_BYTES;
}

static bool put_all(FILE *f, const struct state *s, uint64_t *bytes)
{
	struct out o = {.f = f};
	struct header h;
	uint32_t sum;

	fill_header(s, &h);
	put(&o, &h, sizeof(h));
	put_body(&o, s, &h);
	sum = o.sum;
	put(&o, &sum, sizeof(sum));
	explicit_bzero(h.secret, sizeof(h.secret));
	*bytes = o.bytes;
	return !o.failed && !fflush(f) && !fsync(fileno(f));
}

static int no_write(const char *file, struct policy_error *error)
{
	int cause = errno;

	return policy_fail(error, 0, "%.200s: the state cannot be written: %s: nothing is changed",
			   file, strerror(cause));
}

/* Does the name still lead to the file that is open: 1, or 0; -1: it is not known, see errno. */
static int is_at(int fd, int directory_fd, const char *name)
{
	struct stat is, at;

	if (fstat(fd, &is))
		return -1;
	if (fstatat(directory_fd, name, &at, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -1;
	return is.st_dev == at.st_dev && is.st_ino == at.st_ino;
}

#define TRIES 16

/*
 * A new file, of mode 0600, and locked: state_clean looks. That may have come before the lock, and
 * then the file is gone. -1: with errno.
 */
static int open_beside(char *path)
{
	for (int i = 0; i < TRIES; i++) {
		int fd, is, cause;

		memset(path + strlen(path) - ANY, 'X', ANY);
		fd = mkostemp(path, O_CLOEXEC);
		if (fd < 0)
			return -1;
		is = flock(fd, LOCK_EX) ? -1 : is_at(fd, AT_FDCWD, path);
		if (is > 0)
			return fd;
		cause = errno;
		if (is < 0)
			unlink(path);
		close(fd);
		errno = cause;
		if (is < 0)
			return -1;
	}
	errno = EBUSY;
	return -1;
}

/* By a descriptor of its own: to close it may tell of an error, and `fd` stays locked. */
static bool fill(int fd, const struct state *s, uint64_t *bytes)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	FILE *f = copy < 0 ? NULL : fdopen(copy, "w");
	bool done = f && put_all(f, s, bytes);
	int cause = errno;

	if (f && fclose(f) && done)
		return false;
	if (!f && copy >= 0)
		close(copy);
	errno = cause;
	return done;
}

/* It is locked until it has its name: what nobody holds is taken for left. */
static int write_beside(const char *file, char *path, const struct state *s, uint64_t *bytes,
			struct policy_error *error)
{
	int fd = open_beside(path), cause;
	bool done = fd >= 0 && fill(fd, s, bytes) && !rename(path, file);

	cause = errno;
	if (fd >= 0 && !done)
		unlink(path);
	if (fd >= 0)
		close(fd);
	errno = cause;
	if (!done)
		return no_write(file, error);
	return !durable_name(file)
		   ? 0
		   : policy_fail(error, 0,
				 "%.200s: the state was written, but may not outlast a power "
				 "failure: %s",
				 file, strerror(errno));
}

/* The name to write beside it, for mkostemp. -1 with *error filled: it may not have the file's. */
static int name_beside(const char *file, char path[PATH_MAX], struct policy_error *error)
{
	const char *slash = strrchr(file, '/');
	struct stat st;

	if (!lstat(file, &st) && !S_ISREG(st.st_mode))
		return policy_fail(
		    error, 0, "%.200s: is no regular file, and would be replaced: name another",
		    file);
	if (snprintf(path, PATH_MAX, "%s" BESIDE "XXXXXX", file) < PATH_MAX &&
	    strlen(slash ? slash + 1 : file) + strlen(BESIDE) + ANY <= NAME_MAX)
		return 0;
	errno = ENAMETOOLONG;
	return no_write(file, error);
}

int state_write(const char *file, const struct state *s, uint64_t *bytes,
		struct policy_error *error)
{
	char path[PATH_MAX];
	sigset_t before;
	int result;

	if (name_beside(file, path, error))
		return -1;
	durable_block_stops(&before);
	result = write_beside(file, path, s, bytes, error);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return result;
}

int state_place(const char *file, struct policy_error *error)
{
	const char *slash = strrchr(file, '/');
	char folder[PATH_MAX];

	if (name_beside(file, folder, error))
		return -1;
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - file) + 1 : 2,
		 slash ? file : "./");
	if (!faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS))
		return 0;
	return policy_fail(error, 0,
			   "%.200s: the state cannot be written: its folder: %s: %s, or name "
			   "another file",
			   file, strerror(errno),
			   errno == ENOENT ? "make it" : "see that it may be written to");
}

/* --- what killed saves left ---------------------------------------------------------------- */

/* Is it a file as open_beside makes it? */
static bool is_own(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && (st.st_mode & 07777) == 0600;
}

/* Open and locked, so that nobody begins to write to it; -1: it is none, or somebody does. */
static int open_left(int directory_fd, const char *name)
{
	size_t len = strlen(name), end = strlen(BESIDE) + ANY;
	int fd;

	if (len <= end || strncmp(name + len - end, BESIDE, strlen(BESIDE)) != 0)
		return -1;
	fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd >= 0 &&
	    (!is_own(fd) || flock(fd, LOCK_EX | LOCK_NB) || is_at(fd, directory_fd, name) <= 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

int state_clean(const char *directory, bool look,
		void (*each)(const char *path, int cause, void *arg), void *arg,
		struct policy_error *error)
{
	DIR *d = opendir(directory);
	struct dirent *e;

	if (!d && errno == ENOENT)
		return policy_fail(error, 0,
				   "%.200s: there is no such folder: name the one where states are "
				   "saved",
				   directory);
	if (!d)
		return policy_fail(error, 0, "%.200s: cannot be read: %s", directory,
				   strerror(errno));
	while ((e = readdir(d))) {
		char path[PATH_MAX];
		int fd = open_left(dirfd(d), e->d_name);

		if (fd < 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, e->d_name);
		each(path, !look && unlinkat(dirfd(d), e->d_name, 0) ? errno : 0, arg);
		close(fd);
	}
	closedir(d);
	return 0;
}

/* --- reading --------------------------------------------------------------------------------- */

struct in {
	const char *file;
	unsigned char *at;
	size_t bytes, next;
};

/* The next so many bytes; NULL: there are fewer. */
static const void *take(struct in *in, size_t bytes)
{
	const void *at = in->at + in->next;

	if (bytes > in->bytes - in->next)
		return NULL;
	in->next += bytes;
	return at;
}

static bool take_into(struct in *in, void *to, size_t bytes)
{
	const void *at = take(in, bytes);

	if (at)
		memcpy(to, at, bytes);
	return at;
}

static int not_read(const char *file, int cause, struct policy_error *error)
{
	return policy_fail(error, 0, "%.200s: the state cannot be read: %s", file, strerror(cause));
}

/* Of a file with a known end: no pipe, device or directory. */
static int open_whole(const char *file, size_t *bytes, struct policy_error *error)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st = {.st_size = 0};

	if (fd < 0 || fstat(fd, &st)) {
		(void)not_read(file, errno, error);
	} else if (!S_ISREG(st.st_mode)) {
		policy_explain(error, 0, "%.200s: is no regular file: name one that save wrote",
			       file);
	} else if ((uint64_t)st.st_size > BYTES_MAX) {
		(void)not_read(file, EFBIG, error);
	} else {
		*bytes = (size_t)st.st_size;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Its bytes up to this one. */
static int read_up_to(int fd, struct in *in, size_t bytes, struct policy_error *error)
{
	errno = 0;
	while (in->next < bytes) {
		ssize_t n = read(fd, in->at + in->next, bytes - in->next);

		if (!n || (n < 0 && errno != EINTR))
			break; /* at 0 it has become shorter meanwhile */
		in->next += n > 0 ? (size_t)n : 0;
	}
	if (in->next == bytes)
		return 0;
	return not_read(in->file, errno ? errno : EIO, error);
}

static int cut_off(const char *file, struct policy_error *error)
{
	return policy_fail(error, 0, "%.200s: is cut off or damaged: nothing is restored from it",
			   file);
}

static size_t set_counts_bytes(const struct header *h)
{
	return h->version == WITHOUT_SETS ? 0 : sizeof(((struct state *)NULL)->set_count);
}

/* Is it a file of ours, and as long as it says? */
static int check_head(const struct in *in, const struct header *h, struct policy_error *error)
{
	if (in->bytes < sizeof(*h) || memcmp(h->magic, MAGIC, sizeof(h->magic)) != 0)
		return policy_fail(error, 0, "%.200s: is no saved state of a pacer, or cut off",
				   in->file);
	if (h->order == __builtin_bswap32(ORDER))
		return policy_fail(error, 0, "%.200s: was saved on a machine of another byte order",
				   in->file);
	if (h->order != ORDER)
		return cut_off(in->file, error);
	if (h->version != STATE_FILE_VERSION && h->version != WITHOUT_SETS)
		return policy_fail(
		    error, 0,
		    "%.200s: has version %u of saved state, this tool reads %u: load "
		    "without it",
		    in->file, h->version, STATE_FILE_VERSION);
	return h->file_bytes == in->bytes ? 0 : cut_off(in->file, error);
}

/* Is it whole, and of this build? */
static int check(const struct in *in, const struct header *h, struct policy_error *error)
{
	uint32_t sum;

	memcpy(&sum, in->at + in->bytes - SUM_BYTES, SUM_BYTES);
	if (sum_over(0, in->at, in->bytes - SUM_BYTES) != sum)
		return cut_off(in->file, error);
	if (h->abi != PACER_ABI_VERSION)
		return policy_fail(error, 0,
				   "%.200s: holds state of ABI version %u, this tool has %u: load "
				   "without it",
				   in->file, h->abi, PACER_ABI_VERSION);
	if (h->line_bytes != sizeof(struct pacer_line) ||
	    h->policy_bytes != sizeof(struct pacer_policy) || h->counters_bytes != COUNTERS_BYTES ||
	    h->set_counts_bytes != set_counts_bytes(h) ||
	    h->throttle_bytes != sizeof(struct pacer_throttle_state) ||
	    h->allow_bytes != sizeof(struct allow_entry))
		return policy_fail(
		    error, 0,
		    "%.200s: was saved by another build of ABI version %u, whose state "
		    "has other sizes: load without it",
		    in->file, h->abi);
	if (!h->n_lines || h->n_lines > PACER_LINES_MAX)
		return cut_off(in->file, error);
	return 0;
}

static bool read_throttles(struct in *in, const struct header *h, struct state *s)
{
	for (uint32_t k = 0; k < h->n_throttles; k++) {
		uint32_t i;

		if (!take_into(in, &i, sizeof(i)) || i >= PACER_THROTTLES ||
		    !take_into(in, &s->throttle[i], sizeof(s->throttle[i])))
			return false;
	}
	return true;
}

/* Whose truth values are some: a compiler may take any other for both. */
static bool is_entry(const void *at)
{
	const uint8_t *byte = at;

	return byte && byte[offsetof(struct allow_entry, of_policy)] <= 1 &&
	       byte[offsetof(struct allow_entry, by_hand)] <= 1;
}

static bool read_allowed(struct in *in, const struct header *h, struct state *s)
{
	for (uint32_t k = 0; k < h->n_allow; k++) {
		const void *at = take(in, sizeof(struct allow_entry));
		struct allow_entry entry;

		if (!is_entry(at))
			return false;
		memcpy(&entry, at, sizeof(entry));
		if ((entry.prefix.family != 4 && entry.prefix.family != 6) ||
		    entry.prefix.len > (entry.prefix.family == 4 ? 32 : 128) ||
		    !allowlist_append(&s->allow, &entry))
			return false;
	}
	return true;
}

static bool read_lines(struct in *in, const struct header *h, struct state *s)
{
	for (uint64_t k = 0; k < h->n_runs; k++) {
		struct run run;

		if (!take_into(in, &run, sizeof(run)) || run.n > RUN_LINES ||
		    run.first > s->n_lines || run.n > s->n_lines - run.first ||
		    !take_into(in, &s->lines[run.first], run.n * sizeof(*s->lines)))
			return false;
	}
	return true;
}

static bool read_body(struct in *in, const struct header *h, struct state *s)
{
	struct policy_error unused;
	const char *text;

	if (!take_into(in, s->bin, sizeof(*s->bin)) || h->text_bytes >= PACER_DOC_MAX)
		return false;
	text = take(in, h->text_bytes);
	s->text = text ? strndup(text, h->text_bytes) : NULL;
	if (!s->text || strlen(s->text) != h->text_bytes ||
	    !take_into(in, s->counter, COUNTERS_BYTES) ||
	    !take_into(in, s->set_count, h->set_counts_bytes) || !read_throttles(in, h, s) ||
	    !read_allowed(in, h, s) || !read_lines(in, h, s) || in->next != in->bytes - SUM_BYTES)
		return false;
	s->policy = policy_parse(s->text, h->text_bytes, &unused);
	return s->policy && state_is_sound(s);
}

/*
 * All of it to in->at, to be freed. Its header comes first: any other file may be as large as the
 * disk.
 */
static int read_whole(int fd, struct in *in, struct header *h, struct policy_error *error)
{
	struct in head = {in->file, (unsigned char *)h, in->bytes, 0};

	memset(h, 0, sizeof(*h));
	if (read_up_to(fd, &head, in->bytes < sizeof(*h) ? in->bytes : sizeof(*h), error) ||
	    check_head(in, h, error))
		return -1;
	in->at = malloc(in->bytes);
	if (!in->at)
		return not_read(in->file, ENOMEM, error);
	memcpy(in->at, h, sizeof(*h));
	in->next = sizeof(*h);
	return read_up_to(fd, in, in->bytes, error);
}

static int read_checked(struct in *in, const struct header *h, struct state *s,
			struct policy_error *error)
{
	bool no_memory;

	if (check(in, h, error))
		return -1;
	if (state_init(s, h->n_lines))
		return policy_fail(error, 0, "%.200s: no memory for its %llu lines of state",
				   in->file, (unsigned long long)h->n_lines);
	s->clocks = h->clocks;
	s->clocks.boot_id[CLOCKS_BOOT_ID - 1] = 0;
	s->frozen = h->frozen;
	s->secret_ready = h->secret_ready;
	memcpy(s->secret, h->secret, sizeof(s->secret));
	in->next = sizeof(*h);
	errno = 0;
	if (read_body(in, h, s))
		return 0;
	no_memory = errno == ENOMEM;
	state_free(s);
	return no_memory ? not_read(in->file, ENOMEM, error) : cut_off(in->file, error);
}

int state_read(const char *file, struct state *s, struct policy_error *error)
{
	struct in in = {.file = file};
	struct header h;
	int fd = open_whole(file, &in.bytes, error), result;

	memset(s, 0, sizeof(*s));
	if (fd < 0)
		return -1;
	result = read_whole(fd, &in, &h, error);
	close(fd);
	if (!result)
		result = read_checked(&in, &h, s, error);
	explicit_bzero(&h, sizeof(h)); /* it holds the secret, and so does what was read */
	if (in.at)
		explicit_bzero(in.at, sizeof(h));
	free(in.at);
	return result;
}
