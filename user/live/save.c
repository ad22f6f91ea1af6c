/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/save.h"

#include <linux/capability.h>
#include <signal.h>
#include <unistd.h>

#include "config/durable.h"
#include "live/detach.h"
#include "live/copies.h"
#include "live/freeze.h"
#include "live/grace.h"
#include "live/host.h"
#include "live/partners.h"
#include "live/state_file.h"

static int begin(const struct attached *a, struct state *s, struct policy_error *error)
{
	if (state_init(s, a->n_lines))
		return policy_fail(error, 0, "%s: no memory for a copy of its state", a->ifname);
	return 0;
}

/* `gone`: it is on no interface any more, and nobody else looks for it. */
static int take(struct attached *a, bool gone, struct state *s, struct policy_error *error)
{
	int fd = gone ? copies_lock(error) : copies_lock_still(a, error), result;

	if (fd < 0)
		return -1;
	result = state_take_all(a, s, error);
	close(fd);
	return result;
}

static int save(struct attached *a, const char *file, bool gone, struct saved *saved,
		struct policy_error *error)
{
	struct state s;
	int fd, result;

	*saved = (struct saved){.exact = false};
	if (begin(a, &s, error))
		return -1;
	fd = copies_lock_saves(file, error);
	result =
	    fd < 0 || take(a, gone, &s, error) ? -1 : state_write(file, &s, &saved->bytes, error);
	if (fd >= 0)
		close(fd);
	state_free(&s);
	return result;
}

int save_running(struct attached *a, const char *file, struct saved *saved,
		 struct policy_error *error)
{
	return save(a, file, false, saved, error);
}

int save_gone(struct attached *a, const char *file, struct saved *saved, struct policy_error *error)
{
	return save(a, file, true, saved, error);
}

struct shared {
	const struct attached *a;
	struct policy_error *error;
};

static int shares(const char *ifname, void *arg)
{
	const struct shared *s = arg;

	return policy_fail(s->error, 0,
			   "%s: its state is shared with %s, which would let nothing through "
			   "meanwhile: `xdp-pacer save` it, then unload it",
			   s->a->ifname, ifname);
}

/* 0, or -1 and it is said: those that share the state would be frozen, too. */
static int look_for_partners(const struct attached *a, struct policy_error *error)
{
	struct shared s = {a, error};

	return partners_each(a, shares, &s, error);
}

/* Told before anything is frozen, as it would let nothing through for no purpose. */
static int may_take_off(const struct attached *a, struct policy_error *error)
{
	return host_may(CAP_TO_MASK(CAP_NET_ADMIN))
		   ? 0
		   : policy_fail(error, 0,
				 "%s: no privilege to take the pacer off (CAP_NET_ADMIN): run as "
				 "root",
				 a->ifname);
}

/* The file is there, and the pacer as well: what holds of both. */
static int stays_on(struct attached *a, const char *file, struct policy_error *error)
{
	struct policy_error unused;

	if (attached_still(a, &unused))
		policy_append(error,
			      "; %.80s was written: see `xdp-pacer status %s`, whether the pacer "
			      "is off",
			      file, a->ifname);
	else
		policy_append(error,
			      "; %.80s was written, but the pacer is still on, and lets packets "
			      "through that are not in that: save again",
			      file);
	return -1;
}

static int not_written(struct policy_error *error)
{
	policy_append(error, "; the pacer is still on");
	return -1;
}

/* The allow-list first: it may be long, and nothing is admitted while it is frozen. */
static int begin_to_freeze(struct attached *a, struct state *s, struct policy_error *error)
{
	return copies_settle(a, error) || state_take_allowed(a, copies_in_force(a), s, error) ||
		       freeze(a, error)
		   ? -1
		   : 0;
}

/*
 * It gave way while it was taken off, which may take as long as it likes. Nothing is let through
 * any more, so that what it holds now is all.
 */
static int save_late(struct attached *a, const char *file, struct saved *saved,
		     struct policy_error *error)
{
	struct state s;
	int result;

	if (begin(a, &s, error))
		return -1;
	result = grace(a->ifname, error) || state_take_all(a, &s, error);
	s.frozen = true;
	if (!result)
		result = state_write(file, &s, &saved->bytes, error);
	state_free(&s);
	return result;
}

/* The file that is there is not exact. */
static int is_off(const char *file, struct policy_error *error)
{
	policy_append(error,
		      "; the pacer is off, and let packets through before that are not in %.80s",
		      file);
	return -1;
}

/* It is frozen. If it gives way before it is off, the file lacks packets, and so it stays. */
static int take_off(struct attached *a, const char *file, struct state *s, struct saved *saved,
		    struct policy_error *error)
{
	if (state_take(a, copies_in_force(a) ^ 1, s, error) || freeze_longer(a, error))
		return not_written(error);
	s->frozen = true;
	if (state_write(file, s, &saved->bytes, error))
		return not_written(error);
	if (freeze_longer(a, error) || detach_pacer(a->ifname, &saved->left, error))
		return stays_on(a, file, error);
	if (!copies_pending_ns(a) && save_late(a, file, saved, error))
		return is_off(file, error);
	return 0;
}

/* Other saves are over, or wait. */
static int save_off(struct attached *a, const char *file, struct saved *saved,
		    struct policy_error *error)
{
	sigset_t before;
	struct state s;
	int fd, result = -1;

	if (begin(a, &s, error))
		return -1;
	fd = copies_lock_of(a, error);
	/* Who is stopped in between would leave it frozen. */
	durable_block_stops(&before);
	if (fd >= 0 && !begin_to_freeze(a, &s, error)) {
		result = take_off(a, file, &s, saved, error);
		if (result)
			thaw(a);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (fd >= 0)
		close(fd);
	state_free(&s);
	return result;
}

int save_and_unload(struct attached *a, const char *file, struct saved *saved,
		    struct policy_error *error)
{
	int fd, result;

	*saved = (struct saved){.exact = true};
	if (may_take_off(a, error) || look_for_partners(a, error))
		return -1;
	fd = copies_lock_saves(file, error);
	if (fd < 0)
		return -1;
	result = save_off(a, file, saved, error);
	close(fd);
	return result;
}
