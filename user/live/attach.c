/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/attach.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xdp/libxdp.h>

#include "config/durable.h"
#include "config/text.h"
#include "live/attached.h"
#include "live/complaint.h"
#include "live/copies.h"
#include "live/detach.h"
#include "live/device.h"
#include "live/host.h"
#include "live/pinned.h"
#include "live/pins.h"
#include "live/refusal.h"
#include "live/site.h"

#define PROGRAM "pacer" /* of an object that may have more than one */

struct loading {
	const char *ifname;
	const struct attach_options *options;
	int raw_ip; /* frames begin with the IP header */
	struct site before;
	struct pinned_ids pinned; /* whose the pins of the pacer before are */
	bool looked;		  /* `before` is to be closed */
	struct object *object;
	uint32_t id;		   /* of its program, once that is loaded */
	struct attached *attached; /* the new one */
	bool opened;		   /* that is to be released */
	struct site beside;	   /* of the dispatcher that calls it and the one before */
	bool both;		   /* that is to be closed */
	bool tried;		   /* it may be attached */
	attach_ready *ready;	   /* NULL: nothing is to be done between loading and attaching */
	void *arg;
	struct policy_error *error;
};

static uint32_t id_of(int prog_fd)
{
	struct bpf_prog_info info = {0};
	uint32_t len = sizeof(info);

	return prog_fd < 0 || bpf_obj_get_info_by_fd(prog_fd, &info, &len) ? 0 : info.id;
}

/* libbpf goes on without a map or a type that it could not make, and the program is refused then.
 */
static bool lacks_a_part(void)
{
	return strstr(complaint_verifier(), "wasn't created") ||
	       strstr(complaint_verifier(), "missing btf");
}

/* For hardware the driver is asked as the program is loaded, and again as it is attached. */
static int hardware_failed(const struct loading *l, int err)
{
	return policy_fail(l->error, 0,
			   "%s: its driver does not take the program into hardware (%s): use "
			   "--mode native",
			   l->ifname, strerror(-err));
}

/* Says why the kernel did not load the object. */
static int load_failed(const struct loading *l, int err)
{
	bool refused = complaint_refused() && err != -EMFILE && err != -ENFILE;

	if (err == -EPERM)
		return policy_fail(l->error, 0,
				   "%s: no privilege to load the program (%s): run as root",
				   l->ifname, strerror(-err));
	if (err == -ENOMEM)
		return policy_fail(l->error, 0,
				   "%s: the kernel has no memory for the state: lower memory",
				   l->ifname);
	if (l->options && l->options->mode == SITE_HW && (err == -EINVAL || err == -EOPNOTSUPP) &&
	    !refused)
		return hardware_failed(l, err);
	/* Of callbacks, and of a program under the dispatcher, which is not JITed either. */
	if (refused && strstr(complaint_verifier(), "JITed"))
		return policy_fail(l->error, 0,
				   "%s: the program wants the kernel's BPF JIT, which is off, or "
				   "has failed: sysctl net.core.bpf_jit_enable=1",
				   l->ifname);
	/* Newer kernels, of what a dispatcher of before them calls: libxdp's own follow that. */
	if (refused && strstr(complaint_verifier(), "changes packet data"))
		return policy_fail(l->error, 0,
				   "%s: this kernel takes no shadow under a libxdp dispatcher as "
				   "old as this one: unload, and load with --direct, or with a "
				   "later libxdp",
				   l->ifname);
	if (refused && lacks_a_part())
		return policy_fail(
		    l->error, 0,
		    "%s: the program was not loaded, as a part of it could not be "
		    "made (%s%s): raise the limit of open files (ulimit -n), and let "
		    "bpf(2) do all it can",
		    l->ifname, strerror(-err), complaint_verifier());
	if (refused)
		return policy_fail(
		    l->error, 0,
		    "%s: this kernel's verifier refuses the program (%s%s): KERNELS in "
		    "xdp-pacer(8) says which kernels are known to take it",
		    l->ifname, strerror(-err), complaint_verifier());
	return policy_fail(l->error, 0, "%s: the program was not loaded: %s%s", l->ifname,
			   strerror(-err), complaint_cause());
}

/* Says what came between the look and this program. */
static int was_faster(const struct loading *l, int err)
{
	struct policy_error unused;
	struct site now;
	bool pacer, any;

	if (l->before.pacer)
		return policy_fail(l->error, 0,
				   "%s: its pacer was taken off or replaced meanwhile: try again",
				   l->ifname);
	if (site_open(l->ifname, l->before.ifindex, &now, &unused))
		return policy_fail(l->error, 0,
				   "%s: another XDP program holds it: see `xdp-loader status`",
				   l->ifname);
	pacer = now.pacer;
	any = now.id != l->before.id;
	site_close(&now);
	if (pacer)
		return policy_fail(l->error, 0,
				   "%s: another command has just loaded a pacer: change that one "
				   "with `xdp-pacer apply %s`, or take its place with load "
				   "--replace",
				   l->ifname, l->ifname);
	return any ? policy_fail(l->error, 0,
				 "%s: another XDP program came or went meanwhile: try again",
				 l->ifname)
		   : policy_fail(l->error, 0, "%s: the program was not attached: %s%s", l->ifname,
				 strerror(-err), complaint_cause());
}

/* Says why the loaded program could not be attached. */
static int attach_failed(const struct loading *l, int err)
{
	enum site_mode mode = l->options->mode;
	char advice[280];

	if (err == -EPERM || err == -EACCES)
		return policy_fail(l->error, 0,
				   "%s: no privilege to attach the program (%s): run as root",
				   l->ifname, strerror(-err));
	if (mode == SITE_HW)
		return hardware_failed(l, err);
	if ((err == -EOPNOTSUPP || err == -EINVAL) && mode == SITE_NATIVE)
		return policy_fail(l->error, 0, "%s: %s (%s)", l->ifname,
				   device_advice(l->ifname, advice, sizeof(advice)),
				   strerror(-err));
	if ((err == -EBUSY || err == -EEXIST) && !complaint_of_link())
		return was_faster(l, err);
	return policy_fail(l->error, 0, "%s: the program was not attached: %s%s", l->ifname,
			   strerror(-err), complaint_cause());
}

/* Attaches without a dispatcher. A pacer that is attached so is replaced in one step. */
static int attach_direct(const struct loading *l)
{
	LIBBPF_OPTS(bpf_xdp_attach_opts, instead, .old_prog_fd = l->before.fd);
	uint32_t flags = site_mode_flag(l->options->mode);

	if (l->before.id)
		return bpf_xdp_attach(l->before.ifindex, object_program_fd(l->object), flags,
				      &instead);
	return bpf_xdp_attach(l->before.ifindex, object_program_fd(l->object),
			      flags | XDP_FLAGS_UPDATE_IF_NOEXIST, NULL);
}

/* libxdp loads and attaches at once. */
static int attach_libxdp(const struct loading *l)
{
	DECLARE_LIBXDP_OPTS(xdp_program_opts, this_one, .obj = object_of(l->object),
			    .prog_name = PROGRAM);
	struct xdp_program *p = xdp_program__create(&this_one);
	enum site_mode mode = l->options->mode;
	int err = libxdp_get_error(p);

	if (err)
		return err;
	err = xdp_program__set_xdp_frags_support(p, true);
	if (!err)
		err = xdp_program__attach(p, l->before.ifindex,
					  mode == SITE_SKB  ? XDP_MODE_SKB
					  : mode == SITE_HW ? XDP_MODE_HW
							    : XDP_MODE_NATIVE,
					  0);
	xdp_program__close(p);
	return err;
}

#define UNSEEN 1 /* what is on the interface cannot be read */
#define KEPT   2 /* under a dispatcher the pacer before is off: without the new one there is none */

/* Would there be no pacer, as the one before is off and no other has come meanwhile? */
static bool is_needed(const struct loading *l, const struct site *now, uint32_t id)
{
	return l->before.pacer && !site_program(now, l->before.pacer_id) &&
	       !site_has_other(now, id);
}

/*
 * After a failure: restores what was on the interface before. A call that reports a failure may
 * have worked all the same, so it looks. UNSEEN, KEPT, or < 0: the new program is still there.
 */
static int take_back(const struct loading *l)
{
	struct policy_error unused;
	uint32_t id = id_of(object_program_fd(l->object));
	struct site now;
	int err = 0;

	if (object_program_fd(l->object) < 0) /* it was never loaded */
		return 0;
	if (site_open(l->ifname, l->before.ifindex, &now, &unused))
		return UNSEEN;
	if (now.id == l->before.id) {
		/* nothing was done */
	} else if (site_program(&now, id)) {
		err = is_needed(l, &now, id) ? KEPT : detach_program(&now, id);
	} else if (now.id && (now.id == id || site_lost_its_pins(&now))) {
		LIBBPF_OPTS(bpf_xdp_attach_opts, instead, .old_prog_fd = now.fd);

		err = bpf_xdp_attach(now.ifindex, l->before.id ? l->before.fd : -1,
				     site_mode_flag(now.mode), &instead);
	}
	site_close(&now);
	pins_sweep(l->before.ifindex, NULL);
	return err;
}

static void close_beside(struct loading *l)
{
	if (l->both)
		site_close(&l->beside);
	l->both = false;
}

/* Of the two that the dispatcher calls, if it does. A call that fails may have worked. */
static int detach_before(struct loading *l)
{
	uint32_t id = l->before.pacer_id;
	int err = l->both && site_program(&l->beside, id) ? detach_program(&l->beside, id) : 0;
	struct policy_error unused;

	close_beside(l);
	if (err && !site_open(l->ifname, l->before.ifindex, &l->beside, &unused)) {
		err = site_program(&l->beside, id) ? err : 0;
		site_close(&l->beside);
	}
	return err ? policy_fail(l->error, 0, "%s: the pacer before was not detached and stays: %s",
				 l->ifname, strerror(-err))
		   : 0;
}

/*
 * The new one is on. Where it cannot be seen whether another has taken its place since, the one
 * before does not come back: each source would get its limit anew.
 */
static int settle(const struct loading *l)
{
	struct policy_error unseen;
	struct site now;
	bool is;

	if (site_open(l->ifname, l->before.ifindex, &now, l->before.pacer ? &unseen : l->error))
		return l->before.pacer ? 0 : -1;
	is = now.pacer_id == l->id;
	attached_at(l->attached, &now);
	site_close(&now);
	return is ? 0
		  : policy_fail(l->error, 0,
				"%s: another pacer has taken its place: see `xdp-pacer status %s`",
				l->ifname, l->ifname);
}

/* Is it attached without a dispatcher? Under one, libxdp loads and attaches in one call. */
static bool goes_on_directly(const struct loading *l)
{
	return l->options->direct || (l->before.pacer && !l->before.dispatched);
}

/*
 * Has the program verified, and opens it for whoever is to go on with it, so that nothing of that
 * can fail once the one before has given way. Under a dispatcher it is attached by that, too, and
 * judges beside the one before: what `ready` does counts for all packets but the first.
 */
static int prepare(struct loading *l)
{
	bool directly = goes_on_directly(l);
	int err;

	complaint_begin();
	l->tried = !directly;
	err = directly ? bpf_object__load(object_of(l->object)) : attach_libxdp(l);
	if (err)
		return object_program_fd(l->object) < 0 ? load_failed(l, err)
							: attach_failed(l, err);
	l->id = id_of(object_program_fd(l->object));
	if (!l->id)
		return policy_fail(l->error, 0, "%s: its program cannot be read: %s", l->ifname,
				   strerror(errno));
	if (l->ready && l->ready(l->object, l->ifname, l->before.ifindex, l->arg, l->error))
		return -1;
	if (attached_open(l->ifname, l->before.ifindex, object_program_fd(l->object), l->attached,
			  l->error))
		return -1;
	l->opened = true;
	attached_at(l->attached, &l->before);
	l->both = !directly && l->before.pacer &&
		  !site_open(l->ifname, l->before.ifindex, &l->beside, l->error);
	return directly || !l->before.pacer || l->both ? 0 : -1;
}

/*
 * Verifying takes a second, in which the interface may get another name, or another program. Under
 * a dispatcher this one is on it by now, so that only the name is looked at.
 */
static int look_again(const struct loading *l)
{
	int64_t id = goes_on_directly(l) ? site_id(l->before.ifindex) : -1;
	struct policy_error unused;
	int ifindex = device_index(l->ifname, &unused);

	if (ifindex != l->before.ifindex)
		return policy_fail(l->error, 0,
				   "%s: it is another interface meanwhile, or has another name: "
				   "try again",
				   l->ifname);
	return id >= 0 && id != l->before.id ? was_faster(l, -EBUSY) : 0;
}

/* Of one that is only verified so far. A call that reports a failure may have worked all the same.
 */
static int put_on(struct loading *l)
{
	int err;

	if (!goes_on_directly(l))
		return 0;
	complaint_begin();
	l->tried = true;
	err = attach_direct(l);
	return err && site_id(l->before.ifindex) != l->id ? attach_failed(l, err) : 0;
}

static int maps_unread(const struct loading *l, int err)
{
	return policy_fail(l->error, 0, "%s: its maps cannot be read: %s", l->ifname,
			   strerror(-err));
}

/* Whose the pins of the pacer before are. */
static int find_pinned(struct loading *l)
{
	int err = pinned_ids_of(l->before.pacer_fd, &l->pinned);

	return err ? maps_unread(l, err) : 0;
}

/* Of the pacer before: a pin that stays would keep its shadow, and all its memory. */
static int may_leave_no_shadow(const struct loading *l)
{
	int shadowed = site_has_shadow(l->before.pacer_fd);

	if (shadowed < 0)
		return maps_unread(l, shadowed);
	return shadowed
		   ? pins_shadow_may_go(l->ifname, l->before.ifindex, l->before.pacer_id, l->error)
		   : 0;
}

/* Of the pacer before: tools would write into its pins, for nobody. */
static int may_leave_nothing(struct loading *l)
{
	if (!l->before.pacer)
		return 0;
	if (find_pinned(l))
		return -1;
	/* Of one that has none it is not asked: who may not look there cannot be told so. */
	if (l->before.tools && pinned_may_go(l->ifname, &l->pinned, l->error))
		return -1;
	return may_leave_no_shadow(l);
}

/* A replacement that was killed has left a second one. The first stays, and gives way alone. */
static int leave_one(struct loading *l)
{
	struct site now;

	if (!l->before.second_id)
		return 0;
	if (detach_others(l->ifname, l->before.ifindex, l->error) ||
	    site_open(l->ifname, l->before.ifindex, &now, l->error))
		return -1;
	site_close(&l->before);
	l->before = now;
	return 0;
}

/*
 * Looks whether a pacer may be attached. Nothing is changed, but for what nobody uses any more, and
 * a second pacer.
 */
static int look(struct loading *l)
{
	int ifindex = device_index(l->ifname, l->error);

	if (ifindex < 0 || device_is_up(l->ifname, l->error) ||
	    refusal_by_host(l->ifname, l->error))
		return -1;
	l->raw_ip = device_is_raw_ip(l->ifname, l->error);
	if (l->raw_ip < 0)
		return -1;
	pins_sweep(ifindex, NULL);
	pinned_sweep(l->ifname, 0);
	if (site_open(l->ifname, ifindex, &l->before, l->error))
		return -1;
	l->looked = true;
	if (refusal_by_site(l->ifname, &l->before, l->options->mode, l->options->direct,
			    l->options->replace, l->error) ||
	    leave_one(l) || may_leave_nothing(l))
		return -1;
	return l->options->pin ? pinned_check(l->ifname, &l->pinned, l->error) : 0;
}

/* `first`: the one whose state is shared; NULL: it has a state of its own. */
static int load(struct loading *l, const struct object_begin *begin, const struct loading *first)
{
	if (first && first->raw_ip != l->raw_ip)
		return policy_fail(
		    l->error, 0,
		    "%s: its frames do not begin as those of %s do, so that no state "
		    "can be shared: load it by itself",
		    l->ifname, first->ifname);
	l->object = first ? object_open_shared(l->ifname, first->object, l->error)
			  : object_open(l->ifname, OBJECT_ALONE, begin, l->raw_ip, l->error);
	return l->object ? prepare(l) : -1;
}

/*
 * Interfaces without a pacer go first: if one of these is refused, no other one's pacer has given
 * way to a new one, by which its sources begin anew.
 */
static int put_on_all(struct loading *all, size_t n)
{
	int result = 0;

	for (int replaced = 0; replaced < 2; replaced++)
		for (size_t i = 0; i < n && !result; i++)
			if (!!all[i].before.pacer == replaced)
				result = put_on(&all[i]);
	for (size_t i = 0; i < n && !result; i++)
		result = detach_before(&all[i]);
	for (size_t i = 0; i < n && !result; i++)
		result = settle(&all[i]);
	return result;
}

static int make_pins(const struct loading *all, size_t n, const struct attached *a,
		     struct pinning **pinning)
{
	struct pinned_ids *instead = calloc(n, sizeof(*instead));
	int result;

	for (size_t i = 0; instead && i < n; i++)
		instead[i] = all[i].pinned;
	result = instead ? pinned_make(a, instead, n, pinning, all[0].error)
			 : policy_fail(all[0].error, 0, "%s: no memory", all[0].ifname);
	free(instead);
	return result;
}

/* Of several interfaces: the error is about one, and says what became of the others. */
static void say_unchanged(const struct loading *all, size_t n)
{
	const char **names = calloc(n, sizeof(*names)), *of = "";
	struct policy_error why = *all[0].error;
	char others[sizeof(why.text) / 2];

	for (size_t i = 0; names && i < n; i++) {
		size_t len = strlen(all[i].ifname);

		names[i] = all[i].ifname;
		if (!strncmp(why.text, all[i].ifname, len) && why.text[len] == ':')
			of = all[i].ifname;
	}
	if (names && n > 1)
		policy_append(all[0].error, "; nothing is changed on %s",
			      text_others(names, n, of, others, sizeof(others)));
	free(names);
}

/* After a failure: all interfaces as they were. False: the error says where that could not be. */
static bool take_all_back(struct loading *all, size_t n)
{
	struct policy_error *error = all[0].error;
	bool back = true;

	for (size_t i = n; i-- > 0;) {
		struct policy_error why = *error;
		int left = all[i].tried ? take_back(&all[i]) : 0;

		if (all[i].opened)
			attached_release(all[i].attached);
		close_beside(&all[i]);
		if (!left)
			continue;
		back = false;
		policy_explain(error, 0,
			       left == UNSEEN ? "%.*s; and %s may still have the new pacer: see "
						"`xdp-pacer status %s`"
			       : left == KEPT ? "%.*s; and %s keeps the new pacer, as the one "
						"before is off: see `xdp-pacer status %s`"
					      : "%.*s; and %s still has the new pacer: take it off "
						"with `xdp-pacer unload %s`",
			       (int)sizeof(why.text) / 2, why.text, all[i].ifname, all[i].ifname);
	}
	if (back)
		say_unchanged(all, n);
	return back;
}

/*
 * Whatever can be refused is tried before a pacer gives way. Pins come last: what tools write until
 * then is for the pacer before, which may stay. Signals wait from where the first is attached, as
 * programs and pins come together. Until then they end it: nothing is changed yet.
 */
static int load_all(struct loading *all, size_t n, const struct object_begin *begin,
		    struct attached *a)
{
	struct pinning *pinning = NULL;
	sigset_t unused;
	int result = 0;

	for (size_t i = 0; i < n && !result; i++)
		result = look(&all[i]);
	for (size_t i = 0; i < n && !result; i++)
		result = load(&all[i], begin, begin->shared && i ? &all[0] : NULL);
	if (!result) {
		result = begin->tools ? make_pins(all, n, a, &pinning) : 0;
		for (size_t i = 0; i < n; i++) /* which may be why they cannot be made */
			result |= look_again(&all[i]);
	}
	durable_block_stops(&unused);
	if (!result)
		result = put_on_all(all, n);
	if (!result && pinning)
		result = pinned_put(pinning, all[0].error);
	pinned_end(pinning, !result);
	if (result)
		(void)take_all_back(all, n);
	return result;
}

static void begin_trial(struct attached *a, size_t n, uint64_t confirm_ns)
{
	uint64_t until_ns = host_now_ns() + confirm_ns;

	for (size_t i = 0; i < n; i++)
		copies_put_in_force(&a[i], 0, until_ns);
}

int attach_pacers(const char *const *ifnames, size_t n, const struct attach_options *options,
		  const struct object_begin *begin, struct attached *a,
		  struct attach_replaced *replaced, struct policy_error *error)
{
	struct loading *all = calloc(n, sizeof(*all));
	sigset_t before;
	int result;

	if (!all)
		return policy_fail(error, 0, "%s: no memory", ifnames[0]);
	complaint_begin();
	sigprocmask(SIG_SETMASK, NULL, &before);
	for (size_t i = 0; i < n; i++)
		all[i] = (struct loading){
		    .ifname = ifnames[i], .options = options, .attached = &a[i], .error = error};
	result = load_all(all, n, begin, a);
	if (!result && begin->confirm_ns) /* the verifier's time is not the operator's */
		begin_trial(a, n, begin->confirm_ns);
	for (size_t i = 0; i < n; i++) {
		replaced[i] = (struct attach_replaced){all[i].before.pacer_id, all[i].before.abi,
						       all[i].pinned.of[PINNED_4]};
		if (all[i].object)
			object_close(all[i].object);
		if (!result) { /* of a pacer that it has replaced */
			pins_drop_shadow(all[i].before.ifindex, all[i].before.pacer_id, NULL);
			pinned_remove(ifnames[i], &all[i].pinned, all[i].before.pacer_id, NULL);
		}
		if (all[i].looked)
			site_close(&all[i].before);
	}
	free(all);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return result;
}

/* --- upgrade -------------------------------------------------------------------------------- */

static int may_upgrade(const char *ifname, const struct site *site, struct policy_error *error)
{
	if (!site->pacer)
		return site->named ? refusal_not_a_pacer(ifname, error)
				   : refusal_no_pacer(ifname, site, error);
	if (site->abi == PACER_ABI_VERSION)
		return 0;
	return policy_fail(
	    error, 0,
	    "%s: its pacer has ABI version %u, this tool %u, which cannot go on with "
	    "its state: `xdp-pacer load %s --replace -c POLICY` takes over, with new "
	    "state",
	    ifname, site->abi, PACER_ABI_VERSION, ifname);
}

/* Of a pacer with a shadow, that stays: under the name of the new program, too. */
static int keep_shadow(struct object *object, const char *ifname, int ifindex, void *arg,
		       struct policy_error *error)
{
	(void)arg;
	return pins_put_shadow(object_map_fd(object, "pacer_next"), ifname, ifindex,
			       id_of(object_program_fd(object)), error);
}

/*
 * In the place of the one before; a shadow that it had goes with it. Where the new one is still on
 * after a failure, or may be, its pin is what keeps its shadow.
 */
static int replace_with(struct loading *l)
{
	int result = prepare(l) || look_again(l) || put_on_all(l, 1) ? -1 : 0;

	if (!result)
		pins_drop_shadow(l->before.ifindex, l->before.pacer_id, NULL);
	else if (take_all_back(l, 1))
		pins_drop_shadow(l->before.ifindex, l->id, NULL);
	return result;
}

static int upgrade_with(struct loading *l)
{
	int shadowed = site_has_shadow(l->before.pacer_fd), result;

	if (shadowed < 0)
		return maps_unread(l, shadowed);
	l->object = object_open_over(l->ifname, shadowed ? OBJECT_FIRST : OBJECT_ALONE,
				     l->before.pacer_fd, l->raw_ip, l->error);
	if (!l->object)
		return -1;
	l->ready = shadowed ? keep_shadow : NULL;
	result = replace_with(l);
	object_close(l->object);
	return result;
}

/* As at a load: before anything is changed, and what a gone interface left there makes way. */
static int may_have_pins(struct loading *l)
{
	return l->options->pin && (find_pinned(l) || pinned_check(l->ifname, &l->pinned, l->error))
		   ? -1
		   : 0;
}

/*
 * Its maps stay, so that the pins can be there before. Where nobody asks for them they lead there
 * already, unless a load was killed; or another has their place, which is no ground to refuse.
 * *left: after a failure, pins that were made and cannot be removed.
 */
static int upgrade_pinned(struct loading *l, const struct attached *before, bool had,
			  struct pins_left *left)
{
	if ((l->options->pin || had) && pinned_one(before, l->error) && l->options->pin)
		return -1;
	if (!upgrade_with(l))
		return 0;
	if (l->options->pin && !had)
		pinned_remove(l->ifname, &l->pinned, 0, left);
	else if (had && attached_gone(before) && !pinned_ids_of(before->prog_fd, &l->pinned))
		pinned_remove(l->ifname, &l->pinned, l->before.pacer_id, NULL);
	return -1;
}

/*
 * What tools ban is heeded before there are pins, by a shadow as well: who is killed in between
 * leaves a pacer whose pins are gone, which is told, and none whose pins nobody looks into. Nor
 * does a failure, where they cannot be removed again. The shadow is opened before anything is
 * changed: one that cannot be would ignore the pins once it is promoted. It heeds them first, and
 * last, as another upgrade takes both for what the pacer says.
 */
static int upgrade_heeding(struct loading *l, const struct attached *before)
{
	bool had = before->control->tools;
	struct pins_left left = {.cause = 0};
	struct policy_error why = {0};
	struct attached shadow;
	int none = attached_shadow(before, &shadow, &why), result;

	if (none < 0) {
		*l->error = why;
		return -1;
	}
	if (!none)
		pinned_heed(&shadow, true);
	pinned_heed(before, true);
	result = upgrade_pinned(l, before, had, &left);
	if (left.cause)
		policy_append(l->error, "; its pins stay, and count");
	if (result && !had && !left.cause) {
		pinned_heed(before, false);
		if (!none)
			pinned_heed(&shadow, false);
	}
	if (!none)
		attached_release(&shadow);
	return result;
}

static int upgrade_found(struct loading *l)
{
	struct attached before;
	int result;

	if (may_have_pins(l) || attached_find(l->ifname, &before, l->error))
		return -1;
	result = l->options->pin ? upgrade_heeding(l, &before)
				 : upgrade_pinned(l, &before, before.control->tools, NULL);
	attached_release(&before);
	return result;
}

int attach_load(const char *ifname, struct object *object, struct policy_error *error)
{
	const struct loading l = {.ifname = ifname, .object = object, .error = error};
	int err;

	complaint_begin();
	err = bpf_object__load(object_of(object));
	return err ? load_failed(&l, err) : 0;
}

int attach_instead(const char *ifname, struct object *object, attach_ready *ready, void *arg,
		   struct attached *a, struct policy_error *error)
{
	struct attach_options options = {.replace = true};
	struct loading l = {.ifname = ifname,
			    .options = &options,
			    .object = object,
			    .ready = ready,
			    .arg = arg,
			    .attached = a,
			    .error = error};
	int ifindex = device_index(ifname, error), result = -1;

	complaint_begin();
	if (ifindex < 0 || site_open(ifname, ifindex, &l.before, error))
		return -1;
	options.mode = l.before.mode;
	if (!may_upgrade(ifname, &l.before, error) && !may_leave_no_shadow(&l))
		result = replace_with(&l);
	site_close(&l.before);
	return result;
}

int attach_upgrade(const char *ifname, bool pin, struct attached *a,
		   struct attach_replaced *replaced, struct policy_error *error)
{
	struct attach_options options = {.replace = true, .pin = pin};
	struct loading l = {.ifname = ifname, .options = &options, .attached = a, .error = error};
	int ifindex, result = -1;

	complaint_begin();
	ifindex = device_index(ifname, error);
	if (ifindex < 0 || refusal_by_host(ifname, error))
		return -1;
	l.raw_ip = device_is_raw_ip(ifname, error);
	if (l.raw_ip < 0)
		return -1;
	pins_sweep(ifindex, NULL);
	if (site_open(ifname, ifindex, &l.before, error))
		return -1;
	options.mode = l.before.mode;
	if (!may_upgrade(ifname, &l.before, error) && !leave_one(&l))
		result = upgrade_found(&l);
	*replaced = (struct attach_replaced){l.before.pacer_id, l.before.abi, 0};
	site_close(&l.before);
	return result;
}
