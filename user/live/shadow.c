/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/shadow.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "live/attach.h"
#include "live/copies.h"
#include "live/host.h"
#include "live/object.h"
#include "live/partners.h"
#include "live/pins.h"
#include "live/sets.h"
#include "live/trial.h"

static uint32_t id_of(int prog_fd)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);

	return prog_fd < 0 || bpf_obj_get_info_by_fd(prog_fd, &info, &len) ? 0 : info.id;
}

/* --- begin ---------------------------------------------------------------------------------- */

struct partner {
	const struct attached *a;
	struct policy_error *error;
};

static int shares(const char *ifname, void *arg)
{
	const struct partner *p = arg;

	return policy_fail(
	    p->error, 0,
	    "%s: its state is shared with %s, whose packets its shadow would not see: "
	    "try the policy on interfaces with state of their own",
	    p->a->ifname, ifname);
}

/*
 * The policy that a trial gives way to has bans and elements of sets that the trial's may lack. A
 * load on trial gives way to none that has any.
 */
static int may_begin(struct attached *a, struct policy_error *error)
{
	struct partner p = {a, error};

	if (a->next_fd >= 0)
		return policy_fail(error, 0,
				   "%s: a shadow runs already: `xdp-pacer shadow %s --promote` or "
				   "--stop first",
				   a->ifname, a->ifname);
	if (partners_each(a, shares, &p, error))
		return -1;
	return load_trial_pending(a) ? 0 : copies_settle(a, error);
}

/* A share is the pacer's: what a shadow would admit by it no agent divides. */
static int without_fleet(const struct attached *a, const struct pacer_policy *bin,
			 struct policy_error *error)
{
	for (size_t r = 0; r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < bin->rule[r].n_limiters; k++)
			if (bin->rule[r].limiter[k].kind & PACER_LIMITER_FLEET)
				return policy_fail(error, 0,
						   "%s: a shadow has no share of a fleet's limits: "
						   "leave fleet: yes out of both policies",
						   a->ifname);
	return 0;
}

/* What is begun: the pacer's state, as what the shadow goes on with. */
struct beginning {
	const struct attached *a;
	const struct shadow_begin *b;
	struct state s;
	struct pacer_policy bin;
	struct object *shadow;
	struct attached found; /* the shadow, as every other verb will find it */
};

/* The state as it is now, and the policy that goes on from it. */
static int take(struct beginning *of, struct policy_error *error)
{
	const struct attached *a = of->a;
	struct compile_host host = {copies_resolution_ns(a), 0, host_cpus(error)};
	struct clocks clocks;

	if (host.cpus < 1)
		return -1;
	state_free(&of->s);
	if (state_init(&of->s, a->n_lines))
		return policy_fail(error, 0, "%s: no memory for a copy of its state", a->ifname);
	if (state_take_all(a, &of->s, error))
		return -1;
	clocks = clocks_read();
	host.now_ns = clocks.mono_ns;
	/* It is of this boot, whatever could be read of that. */
	memcpy(clocks.boot_id, of->s.clocks.boot_id, sizeof(clocks.boot_id));
	return restore_plan(&of->s, of->b->policy, &clocks, &host, &of->bin, of->b->plan,
			    of->b->restored, error) ||
		       without_fleet(a, &of->bin, error)
		   ? -1
		   : 0;
}

/*
 * From here on the first program goes over to the shadow, and the pin keeps it. Both programs are
 * verified, which takes seconds: what passed meanwhile is in the state that is taken once more. Not
 * under libxdp's dispatcher: there two programs judge by it now, until the one before is off.
 */
static int join(struct object *first, const char *ifname, int ifindex, void *arg,
		struct policy_error *error)
{
	struct beginning *of = arg;
	int next_fd = object_map_fd(first, "pacer_next"), prog_fd = object_program_fd(of->shadow);
	uint32_t at = 0;

	if (!of->a->dispatcher &&
	    (take(of, error) || restore_again(&of->s, &of->bin, &of->found, error)))
		return -1;
	of->found.shadowed->since_ns = host_now_ns();
	if (bpf_map_update_elem(next_fd, &at, &prog_fd, BPF_ANY))
		return policy_fail(error, 0, "%s: its shadow cannot be begun: %s", ifname,
				   strerror(errno));
	return pins_put_shadow(next_fd, ifname, ifindex, id_of(object_program_fd(first)), error);
}

/* One that cannot be found as every other verb will find it is not begun. */
static int find(struct beginning *of, struct policy_error *error)
{
	struct attached with = *of->a;
	struct policy_error unused;

	with.next_fd = of->a->prog_fd; /* that there is one */
	with.shadow_id = id_of(object_program_fd(of->shadow));
	if (attached_shadow(&with, &of->found, &unused))
		return policy_fail(
		    error, 0, "%s: its shadow cannot be begun, as it could not be read: try again",
		    of->a->ifname);
	return 0;
}

/* It is loaded and found. */
static int put_beside(struct beginning *of, struct attached *now, struct policy_error *error)
{
	const struct attached *a = of->a;
	struct object *first;
	int result = -1;

	if (sets_carry(a, of->b->policy, of->b->sets, of->found.sets_fd, error))
		return -1;
	first = object_open_over(a->ifname, OBJECT_FIRST, a->prog_fd, a->control->raw_ip, error);
	if (!first)
		return -1;
	if (object_tell(first, of->shadow))
		policy_explain(error, 0, "%s: its shadow cannot be begun: %s", a->ifname,
			       strerror(errno));
	else
		result = attach_instead(a->ifname, first, join, of, now, error);
	object_close(first);
	return result;
}

static int begin_with(struct beginning *of, struct attached *now, struct policy_error *error)
{
	const struct attached *a = of->a;
	const struct shadow_begin *b = of->b;
	struct object_begin begin = {.policy = b->policy,
				     .bin = &of->bin,
				     .plan = b->plan,
				     .sets = b->sets,
				     .text = b->text,
				     .resolution_ns = copies_resolution_ns(a),
				     .tools = a->control->tools,
				     .tools4_fd = a->tools4_fd,
				     .tools6_fd = a->tools6_fd,
				     .dispatcher = a->dispatcher,
				     .restored = &of->s};
	int result;

	if (take(of, error))
		return -1;
	begin.lines = b->plan->lines;
	of->shadow = object_open(a->ifname, OBJECT_SHADOW, &begin, a->control->raw_ip, error);
	if (!of->shadow)
		return -1;
	result = attach_load(a->ifname, of->shadow, error) || find(of, error) ? -1 : 0;
	if (!result) {
		result = put_beside(of, now, error);
		attached_release(&of->found);
	}
	object_close(of->shadow);
	return result;
}

static int begin_alone(struct attached *a, const struct shadow_begin *b, struct attached *now,
		       struct policy_error *error)
{
	struct beginning *of;
	int result;

	if (may_begin(a, error))
		return -1;
	of = calloc(1, sizeof(*of));
	if (!of)
		return policy_fail(error, 0, "%s: no memory for a copy of its state", a->ifname);
	of->a = a;
	of->b = b;
	result = begin_with(of, now, error);
	state_free(&of->s);
	free(of);
	return result;
}

int shadow_begin(struct attached *a, const struct shadow_begin *begin, struct attached *now,
		 struct policy_error *error)
{
	int fd = copies_lock_of(a, error), result;

	if (fd < 0)
		return -1;
	result = begin_alone(a, begin, now, error);
	close(fd);
	return result;
}

/* --- end ------------------------------------------------------------------------------------ */

/* The pacer alone, over the maps of that program. */
static int put_alone(const struct attached *a, int prog_fd, struct attached *now,
		     struct policy_error *error)
{
	struct object *alone =
	    object_open_over(a->ifname, OBJECT_ALONE, prog_fd, a->control->raw_ip, error);
	int result;

	if (!alone)
		return -1;
	result = attach_instead(a->ifname, alone, NULL, NULL, now, error);
	object_close(alone);
	return result;
}

static int promote(struct attached *a, struct attached *now, struct policy_error *error)
{
	struct attached shadow;
	int result = -1;

	if (attached_shadow(a, &shadow, error))
		return -1;
	if (!copies_settle(a, error)) {
		struct pacer_policy *next = &shadow.copy[copies_in_force(&shadow)].policy;

		/* It comes after all that was applied meanwhile. */
		__atomic_store_n(&next->serial, copies_last_serial(a) + 1, __ATOMIC_RELEASE);
		result = put_alone(a, shadow.prog_fd, now, error);
	}
	attached_release(&shadow);
	return result;
}

static int stop(struct attached *a, struct attached *now, struct policy_error *error)
{
	if (a->next_fd < 0)
		return policy_fail(error, 0, "%s: no shadow runs beside its policy", a->ifname);
	return put_alone(a, a->prog_fd, now, error);
}

static int end_locked(struct attached *a,
		      int (*end)(struct attached *, struct attached *now, struct policy_error *),
		      struct attached *now, struct policy_error *error)
{
	uint32_t shadow_id = a->shadow_id;
	int fd = copies_lock_of(a, error), result;

	if (fd < 0)
		return -1;
	if (a->shadow_id != shadow_id)
		result = policy_fail(error, 0,
				     "%s: its shadow began or ended meanwhile: look at `xdp-pacer "
				     "status %s`, and try again",
				     a->ifname, a->ifname);
	else
		result = end(a, now, error);
	close(fd);
	return result;
}

int shadow_promote(struct attached *a, struct attached *now, struct policy_error *error)
{
	return end_locked(a, promote, now, error);
}

int shadow_stop(struct attached *a, struct attached *now, struct policy_error *error)
{
	return end_locked(a, stop, now, error);
}
