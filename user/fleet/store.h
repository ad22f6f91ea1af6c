/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what a fleet needs of a store, so that more than one kind will do. A store is fit if
 * every one of these is done as a whole and at one moment (linearizable), if what it has said to be
 * done is never forgotten, and if no two versions of a key have the same revision: a later one has
 * a greater. Whose answers may be lost is no matter: see member.h.
 *
 * Error: STORE_UNKNOWN says that it may have been done, or may yet be; store->why is one line with
 * what, where and what to do.
 * What changes something is sent once, or a write would be refused by what it has done itself. A
 * proxy may send it twice all the same: see member.h, and `put`.
 *
 * Concurrency: one caller at a time. A call returns within timeout_ms.
 *
 * Memory: a snapshot is freed by its caller.
 */
#ifndef PACER_FLEET_STORE_H
#define PACER_FLEET_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_ENDPOINTS_MAX 16
#define STORE_WHY	    512
#define STORE_BYTES_MAX	    (16u << 20) /* of an answer */

enum store_result {
	STORE_DONE,
	STORE_REFUSED, /* the keys are not as the caller says; nothing was changed */
	STORE_UNKNOWN
};

struct store_entry {
	char *key;	/* without the prefix, with a NUL behind it */
	size_t key_len; /* more than its strlen: no key of ours, as it has a byte of 0 */
	char *value;	/* with a NUL behind it */
	size_t len;
	uint64_t created, revision; /* of the key: when it was made, and written last */
	uint64_t lease;		    /* by which it goes away; 0: it stays */
};

/* What lies under the prefix, or a part of it, all at one moment. */
struct store_snapshot {
	struct store_entry *at;
	size_t n;
	uint64_t revision; /* of the store */
	/* Of `read`: how many keys there are, whatever was read of them. */
	size_t firsts, lasts;
	bool more; /* of `list`: there are others behind the last one */
};

#define STORE_PAGE 4096u /* keys of a list */

/* What is listed: what lies under prefix + `under` and was written after a revision; 0: all of it.
 */
struct store_list {
	const char *under;
	uint64_t after;
	const char *behind; /* from behind this key on; NULL: from the first */
	size_t behind_len;  /* bytes of it */
	uint64_t at;	    /* as it was at this revision; 0: as it is now */
};

/*
 * What is read: all under `first` that was written after a revision, all under `last` that was made
 * after one (0: all of it), and the key `own` in any case.
 */
struct store_news {
	const char *own;
	uint64_t first, last;
};

/* A key that is to be written if its revision is `follows` (0: it is not there). */
struct store_put {
	const char *key, *value;
	uint64_t follows;
};

#define STORE_PUTS_MAX 120u /* of one call: etcd takes 128, and a guard is one */

/* What is watched: every change of a key under prefix + `under`, or its end alone. */
struct store_under {
	const char *under;
	bool ends_only;
};

#define STORE_WATCHES_MAX 8

struct store_options {
	const char *endpoint[STORE_ENDPOINTS_MAX]; /* "https://10.0.0.1:2379" */
	size_t endpoints;
	const char *ca, *cert, *key; /* files; NULL: none, and whom the machine trusts */
	const char *prefix;	     /* of all keys: it ends with '/' */
	const char *first, *last;    /* what `read` looks under (struct store_news) */
	uint32_t timeout_ms;	     /* of a call */
};

struct store;

/* What a kind of store can do. Keys are without the prefix. */
struct store_kind {
	const char *name;
	struct store *(*open)(const struct store_options *options, char why[STORE_WHY]);
	void (*close)(struct store *store);
	/*
	 * Writes `key`, which goes away ttl_s after this by the store's clock, or later, but not
	 * before ttl_s after the call began. Only if its revision is `follows` (0: it is not
	 * there). Done or not, *now is the key as it is then.
	 */
	enum store_result (*hold)(struct store *store, const char *key, const char *value,
				  uint64_t follows, uint32_t ttl_s, struct store_snapshot *now);
	enum store_result (*read)(struct store *store, const struct store_news *news,
				  struct store_snapshot *now);
	/* Writes `key` only if its revision is `follows` and `guard` was made at `created`. */
	enum store_result (*write)(struct store *store, const char *key, const char *value,
				   uint64_t follows, const char *guard, uint64_t created,
				   uint64_t *revision);
	/* Takes `key` away, only if its revision is `follows`. */
	enum store_result (*drop)(struct store *store, const char *key, uint64_t follows);
	/*
	 * Writes n keys, or none, if `guard` was made at `created`. They go away ttl_s after this,
	 * or later; 0: they stay. Where it was refused, *now has those of these keys that are
	 * there. What came twice, and goes away, is known as done; what stays is found there as it
	 * was written.
	 */
	enum store_result (*put)(struct store *store, const struct store_put *puts, size_t n,
				 uint32_t ttl_s, const char *guard, uint64_t created,
				 uint64_t *revision, struct store_snapshot *now);
	/*
	 * The next STORE_PAGE keys of a list, in their order. now->revision is that of which the
	 * list is; the store may have forgotten it by the next page (STORE_UNKNOWN).
	 */
	enum store_result (*list)(struct store *store, const struct store_list *list,
				  struct store_snapshot *now);
	/*
	 * How long ago what goes away by this lease was written, and when it goes, both rounded
	 * down; UINT64_MAX and 0: it has gone.
	 */
	enum store_result (*age)(struct store *store, uint64_t lease, uint64_t *age_ns,
				 uint64_t *left_ns);
	/*
	 * Another number than before, and a greater one: since then, leases may last for as long
	 * again as when they were granted, and look as new. 0: it is not known yet.
	 */
	uint64_t (*term)(const struct store *store);
	/* Takes all keys under prefix + `under` away, if `guard` was made at `created`. */
	enum store_result (*clear)(struct store *store, const char *under, const char *guard,
				   uint64_t created);
	/*
	 * Waits up to wait_ms for changes after that revision (of the first call, after a -1, and
	 * of one with another n) of the n that are watched, always the same where n is. A bit for
	 * each, from the lowest: there was one, or there may have been, as there may of all when n
	 * is another than before, or the store has forgotten what followed that revision; 0: none;
	 * -1: it cannot be watched now, or it is not known whether it was (store->why), and the
	 * caller reads now and then.
	 */
	int (*watch)(struct store *store, const struct store_under *what, size_t n,
		     uint64_t after_revision, uint32_t wait_ms);
	/*
	 * Ends what is watched, as it did not tell of a change that the caller knows of: store->why
	 * says so. The next call of `watch` begins anew, on a connection of its own.
	 */
	void (*hang_up)(struct store *store);
	const char *(*why)(const struct store *store);
};

extern const struct store_kind store_etcd;

void store_snapshot_free(struct store_snapshot *snapshot);
/* Is it the key's, and not that of another that begins so and goes on behind a byte of 0? */
bool store_is_of(const struct store_entry *entry, const char *key);
const struct store_entry *store_find(const struct store_snapshot *snapshot, const char *key);

#endif
