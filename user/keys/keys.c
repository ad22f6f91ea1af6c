/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keys/keys.h"
#include "config/durable.h"
#include "config/file_lock.h"
#include "config/units.h"

#define KEYS_MAGIC   "PACERKEY"
#define KEYS_VERSION 1u
#define OPEN_TRIES   100 /* others may remove the file meanwhile, or the name leads nowhere */

/* A throttle and its checksum. */
struct keys_copy {
	uint64_t check;
	struct pacer_throttle_state throttle;
};

struct keys_record {
	char name[KEYS_NAME_MAX + 1];
	uint32_t in_force; /* which copy; storing this word makes a use count */
	uint32_t unused;
	struct keys_copy copy[2];
};

/* The file's time since a start of the machine. */
struct keys_epoch {
	uint8_t boot[16];
	uint64_t base_ns;   /* the file's time at that start */
	uint64_t closed_ns; /* before this no key is handed out */
};

/*
 * The file. The part up to `check` never changes. The records follow, in the order in which keys
 * were first seen, and never move. There may be one blank record more than n says.
 */
struct keys_file {
	char magic[8];
	uint32_t version;
	uint32_t record_bytes;
	struct keys_limits limits;
	uint64_t check;
	uint32_t n;
	uint32_t last;	   /* 1 + the record of the last key handed out; 0: none yet */
	uint32_t dirty;	   /* it may have changes that are not on the disk */
	uint32_t in_force; /* which epoch */
	uint64_t seen_ns;  /* the latest time */
	struct keys_epoch epoch[2];
	struct keys_record record[];
};

struct keys {
	const struct keys_list *list;
	const struct keys_clock *clock;
	const char *path; /* NULL: in memory */
	struct pacer_throttle_profile profile;
	struct keys_file *file;
	size_t bytes;
	int fd;
	bool marked;
	uint32_t turn; /* the key asked first, if the file does not say which */
	uint32_t at[]; /* the record of each key of the list */
};

_Static_assert(sizeof(struct keys_record) == 12776, "as the header says");
_Static_assert(PACER_THROTTLE_BUCKETS == 240, "as the header and the man page say");

static int fail_errno(struct policy_error *error, const char *path, const char *what)
{
	return policy_fail(error, 0, "%.200s: %s: %s", path, what, strerror(errno));
}

/* ---- the list ---- */

/* Not a zero byte, which strchr() finds in each text. */
static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Copies the trimmed key into *name. 1; 0: there is none; -1 with *error filled. */
static int parse_key(const char *text, size_t len, char separator, char *name,
		     struct policy_error *error)
{
	while (len && is_blank(text[len - 1]))
		len--;
	while (len && is_blank(*text)) {
		text++;
		len--;
	}
	if (separator == '\n' && (!len || *text == '#'))
		return 0;
	if (!len)
		return policy_fail(error, 0, "a key is empty: take out the comma");
	if (len > KEYS_NAME_MAX)
		return policy_fail(error, 0, "a key is longer than %u bytes", KEYS_NAME_MAX);
	if (memchr(text, 0, len) || memchr(text, '\n', len))
		return policy_fail(error, 0, "a key holds a zero byte or the end of a line");
	if (len == 1 && *text == '-')
		return policy_fail(error, 0, "a key is -, which stands for no key");
	memcpy(name, text, len);
	name[len] = 0;
	return 1;
}

static int find_key(const struct keys_list *list, const char *name)
{
	for (uint32_t i = 0; i < list->n; i++)
		if (!strcmp(list->name[i], name))
			return (int)i;
	return -1;
}

static int add_key(struct keys_list *list, const char *text, size_t len, char separator,
		   struct policy_error *error)
{
	char name[KEYS_NAME_MAX + 1] = "";
	int found = parse_key(text, len, separator, name, error);

	if (found <= 0)
		return found;
	if (find_key(list, name) >= 0)
		return policy_fail(error, 0, "the key %s is there twice", name);
	if (list->n == KEYS_MAX)
		return policy_fail(error, 0, "there are more than %u keys", KEYS_MAX);
	memcpy(list->name[list->n++], name, sizeof(name));
	return 0;
}

int keys_parse(const char *text, size_t len, char separator, struct keys_list *list,
	       struct policy_error *error)
{
	const char *end = text + len;
	int line = 0;

	*list = (struct keys_list){.name = calloc(KEYS_MAX, sizeof(*list->name))};
	if (!list->name)
		return policy_fail(error, POLICY_NO_MEMORY, "no memory for the keys");
	if (separator == '\n' && len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
		text += 3; /* the mark with which some editors begin UTF-8 */
	for (const char *next; text; text = next) {
		const char *stop = memchr(text, separator, (size_t)(end - text));

		next = stop && (separator == '\n' || stop + 1 < end) ? stop + 1 : NULL;
		line++;
		if (add_key(list, text, (size_t)((stop ? stop : end) - text), separator, error)) {
			keys_list_free(list);
			error->line = separator == '\n' ? line : 0;
			return -1;
		}
	}
	if (list->n)
		return 0;
	keys_list_free(list);
	return policy_fail(error, 0, "there is no key in it: write one a line");
}

void keys_list_free(struct keys_list *list)
{
	free(list->name);
	*list = (struct keys_list){0};
}

/* ---- the throttle ---- */

static uint64_t div_up(uint64_t a, uint64_t b)
{
	return a / b + !!(a % b);
}

static int check_limits(const struct keys_limits *limits, struct policy_error *error)
{
	if (!limits->max)
		return policy_fail(error, 0, "--max is 0: a key has to be usable at least once");
	if (!limits->window_ns)
		return policy_fail(error, 0,
				   "--window is 0: give the time after which a use is free again");
	if (limits->threshold > limits->max)
		return policy_fail(error, 0, "--threshold %u is above --max %u: give at most that",
				   limits->threshold, limits->max);
	if (limits->max_window_ns && limits->max_window_ns <= limits->window_ns)
		return policy_fail(error, 0,
				   "--max-window is not above --window: give a longer one");
	return 0;
}

int keys_profile(const struct keys_limits *limits, uint32_t n,
		 struct pacer_throttle_profile *profile, struct policy_error *error)
{
	struct pacer_throttle_params params = {limits->max, 0, 1, 1, limits->window_ns, 0, 0, 0};
	uint64_t open = 0, full = 0;
	char text[32];

	if (!n)
		return policy_fail(error, 0, "there is no key");
	if (check_limits(limits, error))
		return -1;
	if (limits->max_window_ns)
		open = div_up(limits->window_ns, limits->max_window_ns - limits->window_ns);
	if (open >= PACER_THROTTLE_BUCKETS)
		return policy_fail(
		    error, 0, "--max-window is too close to --window: give at least %s",
		    units_duration_text(limits->window_ns +
					    div_up(limits->window_ns, PACER_THROTTLE_BUCKETS - 1),
					text, sizeof(text)));
	params.threshold = limits->threshold / n ? limits->threshold / n : !!limits->threshold;
	if (!params.threshold) /* uses half of the buckets, or those that are left */
		params.threshold = div_up(limits->max, open ? PACER_THROTTLE_BUCKETS - open
							    : PACER_THROTTLE_BUCKETS / 2);
	full = div_up(limits->max, params.threshold);
	if (full + (open ? open : 1) > PACER_THROTTLE_BUCKETS)
		return policy_fail(
		    error, 0,
		    "--threshold %u is too fine for %u keys of %u uses: leave it out, for "
		    "the finest that can be kept",
		    limits->threshold, n, limits->max);
	params.max_cooldown_ns = limits->max_window_ns;
	if (!params.max_cooldown_ns)
		params.max_cooldown_ns =
		    limits->window_ns + div_up(limits->window_ns, PACER_THROTTLE_BUCKETS - full);
	if (pacer_throttle_configure(profile, &params) != PACER_THROTTLE_OK)
		return policy_fail(error, 0, "--max %u in --window %s cannot be kept", limits->max,
				   units_duration_text(limits->window_ns, text, sizeof(text)));
	return 0;
}

/* ---- the file, as bytes ---- */

/* Over whole words. It detects torn and damaged parts, not forged ones. */
static uint64_t checksum(const void *from, size_t bytes)
{
	uint64_t sum = 0xcbf29ce484222325, word;

	for (size_t i = 0; i + sizeof(word) <= bytes; i += sizeof(word)) {
		memcpy(&word, (const char *)from + i, sizeof(word));
		sum = (sum ^ word) * 0x9e3779b97f4a7c15;
		sum ^= sum >> 29;
	}
	return sum;
}

static uint64_t check_of(const struct keys_file *file)
{
	return checksum(file, offsetof(struct keys_file, check));
}

static uint64_t check_of_copy(const struct keys_copy *copy)
{
	return checksum(&copy->throttle, sizeof(copy->throttle));
}

static size_t bytes_of(uint32_t records)
{
	return sizeof(struct keys_file) + records * sizeof(struct keys_record);
}

/* One store makes the prepared change count. All writes before it are done by then. */
static void put_in_force(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static void begin_file(struct keys_file *file, const struct keys_limits *limits,
		       const struct keys_clock *clock)
{
	memcpy(file->magic, KEYS_MAGIC, sizeof(file->magic));
	file->version = KEYS_VERSION;
	file->record_bytes = sizeof(struct keys_record);
	file->limits = *limits;
	file->check = check_of(file);
	memcpy(file->epoch[0].boot, clock->boot, sizeof(clock->boot));
}

static void begin_record(struct keys_record *record, const char *name)
{
	memset(record, 0, sizeof(*record));
	snprintf(record->name, sizeof(record->name), "%s", name);
	record->copy[0].check = check_of_copy(&record->copy[0]);
}

static int record_whole(const struct keys_record *record)
{
	return record->in_force < 2 && record->name[0] && !record->name[KEYS_NAME_MAX] &&
	       record->copy[record->in_force].check ==
		   check_of_copy(&record->copy[record->in_force]);
}

/* Appends "--OPTION VALUE" of the file's, or "no --OPTION", where what is given differs. */
static void add_other(struct policy_error *error, size_t *n, const char *option, uint64_t kept,
		      uint64_t given, bool time)
{
	char value[32];

	if (kept == given)
		return;
	if (time)
		units_duration_text(kept, value, sizeof(value));
	else
		snprintf(value, sizeof(value), "%llu", (unsigned long long)kept);
	policy_append(error, "%s%s%s%s%s", (*n)++ ? ", " : "", kept ? "" : "no ", option,
		      kept ? " " : "", kept ? value : "");
}

static int other_limits(const struct keys_limits *kept, const struct keys_limits *given,
			struct policy_error *error)
{
	size_t n = 0;

	policy_explain(error, 0, "it is kept for ");
	add_other(error, &n, "--max", kept->max, given->max, false);
	add_other(error, &n, "--window", kept->window_ns, given->window_ns, true);
	add_other(error, &n, "--max-window", kept->max_window_ns, given->max_window_ns, true);
	add_other(error, &n, "--threshold", kept->threshold, given->threshold, false);
	policy_append(error, ": give the same, or another file");
	return -1;
}

/* Checks the file without changing it. 0, or -1 with *error filled. */
static int check_file(const struct keys_file *file, size_t bytes, const struct keys_limits *limits,
		      struct policy_error *error)
{
	if (!file || bytes < sizeof(*file))
		return policy_fail(error, 0,
				   "it is too short for a state: is it cut off, or another file?");
	if (memcmp(file->magic, KEYS_MAGIC, sizeof(file->magic)))
		return policy_fail(error, 0,
				   "it is not a state of `xdp-pacer keys`: give another file");
	if (file->version != KEYS_VERSION)
		return policy_fail(error, 0,
				   "it is of version %u, this is version %u: use the release that "
				   "wrote it, or another file",
				   file->version, KEYS_VERSION);
	if (file->check != check_of(file) || file->record_bytes != sizeof(struct keys_record) ||
	    file->n > KEYS_MAX || file->last > file->n || file->in_force > 1)
		return policy_fail(error, 0, "it is damaged: remove it once a window has passed");
	if (bytes < bytes_of(file->n))
		return policy_fail(error, 0, "it is cut off: remove it once a window has passed");
	if (memcmp(&file->limits, limits, sizeof(*limits)))
		return other_limits(&file->limits, limits, error);
	for (uint32_t i = 0; i < file->n; i++)
		if (!record_whole(&file->record[i]))
			return policy_fail(error, 0,
					   "it is damaged: remove it once a window has passed");
	return 0;
}

/* ---- the file, as a file ---- */

static enum keys_opened unable(struct policy_error *error, const char *path, const char *what)
{
	policy_explain(error, 0, "%.200s: %s: %s", path, what, strerror(errno));
	return KEYS_UNABLE;
}

/* The lock belongs to the open file, so a killed process releases it. */
static int lock_file(const struct keys *keys)
{
	return keys->path ? file_lock(keys->fd, LOCK_RECORDS, keys->path) : 0;
}

static int unlock_file(const struct keys *keys)
{
	struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
	int result;

	if (!keys->path)
		return 0;
	do
		result = fcntl(keys->fd, F_OFD_SETLK, &all);
	while (result && errno == EINTR);
	return result;
}

/* Is the file as long as it was, and has it its name, by which others find the count? */
static int still_there(const struct keys *keys)
{
	struct stat at, named;

	if (!keys->path)
		return 1;
	if (fstat(keys->fd, &at) || (uint64_t)at.st_size < keys->bytes ||
	    stat(keys->path, &named) || named.st_dev != at.st_dev || named.st_ino != at.st_ino)
		return 0;
	/* one that was cut off, and is as long again, begins with zeros */
	return !memcmp(keys->file->magic, KEYS_MAGIC, sizeof(keys->file->magic));
}

static int make_file(const char *path, const struct keys_limits *limits,
		     const struct keys_clock *clock)
{
	struct keys_file file = {0};

	begin_file(&file, limits, clock);
	return durable_make(path, &file, sizeof(file));
}

/* Opens the file, or makes it, and locks it. Under the lock it still has its name. */
static enum keys_opened open_file(struct keys *keys, const struct keys_limits *limits,
				  struct policy_error *error)
{
	struct stat at;

	for (int i = 0; i < OPEN_TRIES; i++) {
		keys->fd = open(keys->path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		if (keys->fd < 0 && errno == ENOENT) {
			if (make_file(keys->path, limits, keys->clock))
				return unable(error, keys->path, "cannot be made");
			continue;
		}
		if (keys->fd < 0 || fstat(keys->fd, &at))
			return unable(error, keys->path, "cannot be opened");
		if (!S_ISREG(at.st_mode)) {
			policy_explain(error, 0, "it is no regular file: give another");
			return KEYS_REFUSED;
		}
		if (lock_file(keys) || fstat(keys->fd, &at))
			return unable(error, keys->path, "cannot be locked");
		keys->bytes = (size_t)at.st_size;
		if (at.st_nlink)
			return KEYS_OPEN;
		close(keys->fd); /* it was removed while this process waited for the lock */
		keys->fd = -1;
	}
	policy_explain(error, 0,
		       "%.200s: it vanishes whenever it is made: is it a link to nowhere?",
		       keys->path);
	return KEYS_UNABLE;
}

static int map_file(struct keys *keys, size_t bytes)
{
	int flags = keys->path ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	void *at;

	if (keys->file)
		munmap(keys->file, keys->bytes);
	keys->file = NULL;
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, keys->path ? keys->fd : -1, 0);
	if (at == MAP_FAILED)
		return -1;
	keys->file = at;
	keys->bytes = bytes;
	return 0;
}

static uint32_t find_record(const struct keys_file *file, const char *name)
{
	uint32_t i = 0;

	while (i < file->n && strcmp(file->record[i].name, name))
		i++;
	return i;
}

/* Makes room for so many records, in memory and on the disk. */
static int grow_file(struct keys *keys, uint32_t records)
{
	int why;

	if (!keys->path)
		return 0;
	why = posix_fallocate(keys->fd, 0, (off_t)bytes_of(records));
	if (!why)
		return map_file(keys, bytes_of(records));
	errno = why;
	return -1;
}

/* Adds records for keys that have none yet. They count when all are there. */
static enum keys_opened add_records(struct keys *keys, struct policy_error *error)
{
	const struct keys_list *list = keys->list;
	uint32_t n = keys->file->n;

	for (uint32_t i = 0; i < list->n; i++) {
		keys->at[i] = find_record(keys->file, list->name[i]);
		if (keys->at[i] == keys->file->n)
			keys->at[i] = n++;
	}
	if (n == keys->file->n)
		return KEYS_OPEN;
	if (n > KEYS_MAX) {
		policy_explain(error, 0,
			       "it would hold %u keys, those of former lists with them, and has "
			       "room for %u: give another file, or remove it once a window has "
			       "passed",
			       n, KEYS_MAX);
		return KEYS_REFUSED;
	}
	if (grow_file(keys, n))
		return unable(error, keys->path, "has no room for the keys");
	for (uint32_t i = 0; i < list->n; i++)
		if (keys->at[i] >= keys->file->n)
			begin_record(&keys->file->record[keys->at[i]], list->name[i]);
	if (keys->path && fdatasync(keys->fd))
		return unable(error, keys->path, "has no room for the keys");
	put_in_force(&keys->file->n, n);
	return KEYS_OPEN;
}

/*
 * After a start of the machine, time goes on from where it was. If changes had not reached the disk
 * before, uses may be missing. All of these were before that start.
 */
static void begin_epoch(struct keys *keys)
{
	struct keys_file *file = keys->file;
	const struct keys_epoch *was = &file->epoch[file->in_force];
	struct keys_epoch *is = &file->epoch[!file->in_force];

	if (!memcmp(was->boot, keys->clock->boot, sizeof(was->boot)))
		return;
	memcpy(is->boot, keys->clock->boot, sizeof(is->boot));
	is->base_ns = file->seen_ns;
	is->closed_ns = was->closed_ns;
	if (file->dirty)
		is->closed_ns = pacer_later(
		    was->closed_ns, pacer_throttle_sum(is->base_ns, keys->profile.cooldown_ns));
	put_in_force(&file->in_force, !file->in_force);
}

static enum keys_opened open_state(struct keys *keys, const struct keys_limits *limits,
				   struct policy_error *error)
{
	enum keys_opened opened = open_file(keys, limits, error);

	if (opened != KEYS_OPEN)
		return opened;
	if (keys->bytes && map_file(keys, keys->bytes))
		return unable(error, keys->path, "cannot be mapped");
	if (check_file(keys->file, keys->bytes, limits, error))
		return KEYS_REFUSED;
	opened = add_records(keys, error);
	if (opened != KEYS_OPEN)
		return opened;
	begin_epoch(keys);
	if (unlock_file(keys))
		return unable(error, keys->path, "cannot be unlocked");
	return KEYS_OPEN;
}

static void discard(struct keys *keys)
{
	if (keys->file)
		munmap(keys->file, keys->bytes);
	if (keys->fd >= 0)
		close(keys->fd);
	free(keys);
}

enum keys_opened keys_open(const struct keys_list *list, const struct keys_limits *limits,
			   const char *path, const struct keys_clock *clock, struct keys **out,
			   struct policy_error *error)
{
	enum keys_opened opened = KEYS_OPEN;
	struct keys *keys = calloc(1, sizeof(*keys) + list->n * sizeof(keys->at[0]));

	*out = NULL;
	error->line = 0;
	if (!keys)
		return unable(error, "keys", "cannot be kept");
	*keys = (struct keys){.list = list, .clock = clock, .path = path, .fd = -1};
	if (keys_profile(limits, list->n, &keys->profile, error))
		opened = KEYS_REFUSED;
	else if (path)
		opened = open_state(keys, limits, error);
	else if (map_file(keys, bytes_of(list->n)))
		opened = unable(error, "keys", "cannot be kept");
	else
		opened = add_records(keys, error);
	if (opened != KEYS_OPEN)
		discard(keys);
	else
		*out = keys;
	return opened;
}

/* ---- handing out ---- */

/*
 * Called before the first use after a sync. That another process has set `dirty` is not enough at
 * first: it may have been killed before this was on the disk.
 */
static int mark_dirty(struct keys *keys)
{
	if (!keys->path || (keys->marked && keys->file->dirty))
		return 0;
	put_in_force(&keys->file->dirty, 1);
	keys->marked = !fdatasync(keys->fd);
	return keys->marked ? 0 : -1;
}

/* Which of two. What others write to the file meanwhile leads to no third one. */
static uint32_t which(uint32_t in_force)
{
	return in_force & 1;
}

static const struct pacer_throttle_state *throttle_of(const struct keys_record *record)
{
	return &record->copy[which(record->in_force)].throttle;
}

/* When the first uses of an exhausted key are free again. */
static uint64_t back_ns(const struct pacer_throttle_profile *profile,
			const struct pacer_throttle_state *state)
{
	const struct pacer_throttle_bucket *oldest =
	    &state->bucket[pacer_throttle_ring_index(state->head)];

	return pacer_throttle_sum(oldest->until_ns, profile->cooldown_ns);
}

/*
 * Counts a use of a key that has one free. It changes the other copy, which then comes into force.
 */
static int count_use(struct keys *keys, uint32_t at, uint64_t now_ns)
{
	struct keys_record *record = &keys->file->record[at];
	struct keys_copy *copy = &record->copy[!which(record->in_force)];

	copy->throttle = *throttle_of(record);
	if (pacer_throttle_use(&keys->profile, &copy->throttle, now_ns, 1) != PACER_THROTTLE_ADMIT)
		return -1;
	copy->check = check_of_copy(copy);
	put_in_force(&record->in_force, !which(record->in_force));
	put_in_force(&keys->file->last, at + 1);
	return 0;
}

/* The place after the last key handed out, by any process or, if unknown, by this one. */
static uint32_t first_place(const struct keys *keys)
{
	uint32_t n = keys->list->n, last = keys->file->last;

	for (uint32_t i = 0; last && i < n; i++) {
		uint32_t place = (keys->turn + n - 1 + i) % n;

		if (keys->at[place] == last - 1)
			return (place + 1) % n;
	}
	return keys->turn;
}

static enum keys_answer rotate(struct keys *keys, uint64_t now_ns, struct keys_given *given)
{
	uint32_t n = keys->list->n, place = first_place(keys);
	uint64_t first_ns = UINT64_MAX;

	for (uint32_t i = 0; i < n; i++, place = (place + 1) % n) {
		const struct pacer_throttle_state *state =
		    throttle_of(&keys->file->record[keys->at[place]]);

		if (pacer_throttle_free(&keys->profile, state, now_ns) &&
		    !count_use(keys, keys->at[place], now_ns)) {
			keys->turn = (place + 1) % n;
			given->name = keys->list->name[place];
			return KEYS_GIVEN;
		}
		if (back_ns(&keys->profile, state) < first_ns)
			first_ns = back_ns(&keys->profile, state);
	}
	given->wait_ns = first_ns > now_ns ? first_ns - now_ns : 0;
	return KEYS_NONE;
}

/* The caller holds the lock. */
static enum keys_answer next_locked(struct keys *keys, struct keys_given *given,
				    struct policy_error *error)
{
	struct keys_file *file = keys->file;
	uint64_t closed_ns, now_ns;

	if (!still_there(keys)) {
		policy_explain(error, 0,
			       "%.200s: it was removed, renamed or cut off meanwhile: start again",
			       keys->path);
		return KEYS_FAILED;
	}
	if (mark_dirty(keys)) {
		fail_errno(error, keys->path, "cannot be written");
		return KEYS_FAILED;
	}
	now_ns = pacer_throttle_sum(file->epoch[which(file->in_force)].base_ns,
				    keys->clock->now(keys->clock->arg));
	now_ns = pacer_later(now_ns, file->seen_ns);
	__atomic_store_n(&file->seen_ns, now_ns, __ATOMIC_RELAXED);
	closed_ns = file->epoch[which(file->in_force)].closed_ns;
	if (now_ns >= closed_ns)
		return rotate(keys, now_ns, given);
	given->wait_ns = closed_ns - now_ns;
	return KEYS_NONE;
}

enum keys_answer keys_next(struct keys *keys, struct keys_given *given, struct policy_error *error)
{
	enum keys_answer answer;

	*given = (struct keys_given){0};
	if (lock_file(keys)) {
		fail_errno(error, keys->path, "cannot be locked");
		return KEYS_FAILED;
	}
	answer = next_locked(keys, given, error);
	unlock_file(keys);
	return answer;
}

/* NULL; or what cannot be done: see errno. */
static const char *sync_file(struct keys *keys)
{
	static const char not_synced[] = "cannot be synced to the disk";

	if (lock_file(keys))
		return "cannot be locked";
	if (fdatasync(keys->fd))
		return not_synced;
	if (!keys->file->dirty)
		return NULL;
	put_in_force(&keys->file->dirty, 0);
	return fdatasync(keys->fd) ? not_synced : NULL;
}

int keys_close(struct keys *keys, struct policy_error *error)
{
	const char *not_done = keys->path && still_there(keys) ? sync_file(keys) : NULL;

	if (not_done)
		fail_errno(error, keys->path, not_done);
	discard(keys);
	return not_done ? -1 : 0;
}
