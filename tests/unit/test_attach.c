/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A pacer is put on, replaced, upgraded or taken off whole, or nothing has changed: whichever call
 * fails, for once or from there on, and whether or not it has worked all the same. Interfaces,
 * programs and pins are made of memory, with libxdp's dispatcher or without.
 */
#include "oracle.h"
#include "starved.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <signal.h>
#include <unistd.h>
#include <xdp/libxdp.h>

#include "live/attach.h"
#include "live/detach.h"
#include "live/copies.h"
#include "live/device.h"
#include "live/host.h"
#include "live/pinned.h"

/* --- what fails ------------------------------------------------------------------------------- */

static struct {
	unsigned int n, at;  /* calls so far; the one that fails, from 1; 0: none */
	bool only_changes;   /* what only looks works, and does not count */
	bool for_good, done; /* and all after it; it works all the same */
	bool of_change;	     /* that one would have changed something */
	int err;
} fault;

static bool changing; /* what is called now changes something */

static int falls(void)
{
	fault.n++;
	if (fault.n == fault.at)
		fault.of_change = changing;
	if (!fault.at || fault.n < fault.at || (fault.n > fault.at && !fault.for_good))
		return 0;
	errno = fault.err;
	return -fault.err;
}

static int befalls(void)
{
	return fault.only_changes ? 0 : falls();
}

/* A call that changes something: may it? *err is what it says. */
static bool changes(int *err)
{
	changing = true;
	*err = falls();
	changing = false;
	return !*err || fault.done;
}

/* --- a machine of memory ---------------------------------------------------------------------- */

#define INTERFACES 2
#define PROGRAMS   64
#define FD	   1000 /* and a program's id: its descriptor */
#define CARRIED	   16

static const char *const names[INTERFACES] = {"eth0", "eth00"};

static struct interface {
	uint32_t dispatcher; /* 0: none; else the ids of what it calls follow */
	uint32_t program[CARRIED];
	uint32_t pins;	  /* of which state, for other tools; 0: none */
	uint64_t shadows; /* of which programs there are pins for a shadow, a bit each */
	enum site_mode mode;
	bool foreign; /* what it carries is no pacer */
	bool litter;  /* pins of a dispatcher that did not come about */
} at[INTERFACES];

struct object {
	uint32_t id, state; /* 0: not loaded */
	bool shared;
};

static struct object objects[2 * INTERFACES];
static size_t n_objects;
static uint32_t state_of[PROGRAMS], last_id;
static struct pacer_control control, shadow_control;
static bool with_dispatcher, shadowed, raw_ip[INTERFACES];
static bool unheeded;	     /* pins were made, and what is written into them counted for nothing */
static bool only_named;	     /* the pacer there is none */
static int other_abi;	     /* it is of a version so much later */
static bool hidden;	     /* nothing is seen once a program is loaded */
static int raised_at_attach; /* and as that is attached */
static bool renamed;	     /* each interface has the other one's name, once a program is loaded */
static bool gone_at_pins;    /* all pacers are taken off as pins are made */
static bool pins_denied;     /* they cannot be made */
static uint32_t put_first;   /* a program that another puts on as this one is loaded; 0: nobody */
static int ended;	     /* by how many signals, so far */
static int opened;	     /* sites, objects and pacers that are open */
static uint32_t stolen_by;   /* a program that another puts on as this one is attached; 0: nobody */
static bool other[PROGRAMS]; /* it is no pacer, under a dispatcher */
static uint32_t leaves;	     /* the pacer before goes as this one comes */
static uint32_t followed_by; /* the same, right after it */
static struct attach_options options;
static int refused; /* errno of attaching without libxdp; 0: it works */
static bool linked; /* what is on the interface is attached by a BPF link */
static enum { NOTHING, DOWN, FRAGS, SHADOW, PINS } refuses; /* what is in the way of it */
static const char *verifier_says; /* of a program that it refuses; NULL: it takes them */
static int verifier_err;	  /* and for what error */
static uint64_t confirmed_until_ns;
static bool undoing;  /* what is left is told */
static bool gave_way; /* a pacer of another state, for however long */

static struct interface *interface_of(int ifindex)
{
	assert_in_range(ifindex, 1, INTERFACES);
	return &at[ifindex - 1];
}

static struct interface *named(const char *ifname)
{
	int i = 0;

	while (strcmp(ifname, names[i]) != 0)
		i++;
	return &at[i];
}

static bool carries(const struct interface *i, uint32_t id)
{
	for (size_t k = 0; k < CARRIED; k++)
		if (i->program[k] == id)
			return true;
	return false;
}

static void drop(struct interface *i, uint32_t id)
{
	size_t n = 0;

	for (size_t k = 0; k < CARRIED; k++)
		if (i->program[k] != id)
			i->program[n++] = i->program[k];
	while (n < CARRIED)
		i->program[n++] = 0;
	if (i->dispatcher)
		i->dispatcher = i->program[0] ? ++last_id : 0;
}

static void add(struct interface *i, uint32_t id)
{
	size_t n = 0;

	while (i->program[n])
		n++;
	assert_true(n + 1 < CARRIED);
	i->program[n] = id;
	if (with_dispatcher)
		i->dispatcher = ++last_id;
}

/* Is it one that is put on by what is tried? */
static bool is_ours(uint32_t id)
{
	for (size_t i = 0; i < n_objects; i++)
		if (objects[i].id == id)
			return true;
	return false;
}

static uint32_t new_program(uint32_t state)
{
	assert_true(++last_id < PROGRAMS);
	state_of[last_id] = state ? state : last_id;
	return last_id;
}

/* --- what of the tools and of libraries is called ----------------------------------------------
 */

int device_index(const char *ifname, struct policy_error *why)
{
	for (int i = 0; i < INTERFACES; i++)
		if (!strcmp(ifname, names[i]))
			return befalls() && why ? policy_fail(why, 0, "%s: looked for", ifname)
			       : renamed && n_objects && objects[0].id ? INTERFACES - i
								       : i + 1;
	return policy_fail(why, 0, "%s: there is no such interface here", ifname);
}

int device_is_up(const char *ifname, struct policy_error *why)
{
	return befalls() || refuses == DOWN ? policy_fail(why, 0, "%s: down", ifname) : 0;
}

int device_is_raw_ip(const char *ifname, struct policy_error *why)
{
	return befalls() ? policy_fail(why, 0, "%s: link type", ifname)
			 : raw_ip[named(ifname) - at];
}

const char *device_advice(const char *ifname, char *buf, size_t size)
{
	(void)ifname;
	snprintf(buf, size, "its driver takes no native XDP program");
	return buf;
}

uint64_t host_now_ns(void)
{
	return 1000;
}

void copies_put_in_force(struct attached *a, uint32_t copy, uint64_t until_ns)
{
	(void)a;
	assert_int_equal(copy, 0);
	confirmed_until_ns = until_ns;
}

static uint32_t pacer_of(const struct interface *i)
{
	size_t k = 0;

	while (k + 1 < CARRIED && other[i->program[k]])
		k++;
	return i->program[k];
}

static void look_at(const struct interface *i, struct site *site)
{
	uint32_t first = pacer_of(i);

	site->mode = i->mode;
	site->id = i->dispatcher ? i->dispatcher : first;
	if (!site->id)
		return;
	site->fd = FD + (int)site->id;
	snprintf(site->name, sizeof(site->name), i->foreign ? "other" : "pacer");
	if (i->dispatcher)
		site->dispatched = (struct xdp_multiprog *)(uintptr_t)i;
	if (i->foreign || !first)
		return;
	site->named = true;
	site->pacer = !only_named;
	site->pacer_id = first;
	for (size_t k = CARRIED; i->dispatcher && k-- > 0;)
		if (i->program[k] && i->program[k] != first && !other[i->program[k]])
			site->second_id = i->program[k];
	site->abi = PACER_ABI_VERSION + other_abi;
	site->tools = control.tools;
	site->pacer_fd = FD + (int)first;
}

int site_open(const char *ifname, int ifindex, struct site *site, struct policy_error *why)
{
	*site = (struct site){.ifindex = ifindex, .fd = -1, .pacer_fd = -1};
	if (befalls() || (hidden && n_objects && objects[0].id))
		return policy_fail(why, 0, "%s: cannot be seen", ifname);
	look_at(interface_of(ifindex), site);
	opened++;
	return 0;
}

void site_close(struct site *site)
{
	opened--;
	*site = (struct site){.fd = -1, .pacer_fd = -1};
}

struct xdp_program *site_program(const struct site *site, uint32_t id)
{
	return site->dispatched && id && carries(interface_of(site->ifindex), id)
		   ? (struct xdp_program *)(uintptr_t)id
		   : NULL;
}

bool site_has_other(const struct site *site, uint32_t id)
{
	const struct interface *i = interface_of(site->ifindex);

	for (size_t k = 0; site->dispatched && i->program[k]; k++)
		if (i->program[k] != id && !other[i->program[k]])
			return true;
	return false;
}

bool site_lost_its_pins(const struct site *site)
{
	(void)site;
	return false;
}

int site_has_shadow(int prog_fd)
{
	int err = befalls();

	(void)prog_fd;
	return err ? err : shadowed;
}

const char *site_mode_name(enum site_mode mode)
{
	return mode == SITE_SKB ? "skb" : "native";
}

uint32_t site_mode_flag(enum site_mode mode)
{
	return mode == SITE_SKB ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE;
}

const char *site_ip_word(const struct site *site)
{
	(void)site;
	return "xdp";
}

int64_t site_id(int ifindex)
{
	const struct interface *i = interface_of(ifindex);

	return befalls() ? -1 : (int64_t)(i->dispatcher ? i->dispatcher : pacer_of(i));
}

/* What refusal_by_host() tries. */
int bpf_map_create(enum bpf_map_type type, const char *name, __u32 key_size, __u32 value_size,
		   __u32 max_entries, const struct bpf_map_create_opts *opts)
{
	int err = befalls();

	(void)type;
	(void)name;
	(void)key_size;
	(void)value_size;
	(void)max_entries;
	(void)opts;
	return err ? err : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int bpf_map_get_fd_by_id(__u32 id)
{
	int err = befalls();

	(void)id;
	return err ? err : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int bpf_obj_get_info_by_fd(int fd, void *info, __u32 *len)
{
	int err = befalls();

	assert_true(fd >= 0);
	memset(info, 0, *len);
	if (fd > FD)
		((struct bpf_prog_info *)info)->id = fd - FD;
	return err;
}

static struct object *open_object(const char *ifname, uint32_t state, struct policy_error *why)
{
	if (befalls()) {
		policy_explain(why, 0, "%s: the built-in object cannot be opened", ifname);
		return NULL;
	}
	assert_true(n_objects < ARRAY(objects));
	objects[n_objects] = (struct object){.state = state};
	opened++;
	return &objects[n_objects++];
}

struct object *object_open(const char *ifname, enum object_kind kind,
			   const struct object_begin *begin, bool raw, struct policy_error *why)
{
	assert_int_equal(kind, OBJECT_ALONE);
	assert_false(raw);
	(void)begin;
	return open_object(ifname, 0, why);
}

struct object *object_open_shared(const char *ifname, const struct object *like,
				  struct policy_error *why)
{
	assert_true(like->id > 0);
	return open_object(ifname, state_of[like->id], why);
}

struct object *object_open_over(const char *ifname, enum object_kind kind, int prog_fd, bool raw,
				struct policy_error *why)
{
	assert_int_equal(kind, shadowed ? OBJECT_FIRST : OBJECT_ALONE);
	assert_false(raw);
	return open_object(ifname, state_of[prog_fd - FD], why);
}

void object_close(struct object *o)
{
	assert_in_range(o - objects, 0, n_objects - 1);
	opened--;
}

struct bpf_object *object_of(const struct object *o)
{
	return (struct bpf_object *)(uintptr_t)o;
}

int object_program_fd(const struct object *o)
{
	return o->id ? FD + (int)o->id : -1;
}

int object_map_fd(const struct object *o, const char *name)
{
	assert_string_equal(name, "pacer_next");
	return o->id ? 0 : -1;
}

/* As libbpf prints what the verifier says, if anybody listens. */
__attribute__((format(printf, 1, 2))) static void libbpf_prints(const char *format, ...)
{
	libbpf_print_fn_t print = libbpf_set_print(NULL);
	va_list args;

	libbpf_set_print(print);
	va_start(args, format);
	print(LIBBPF_WARN, format, args);
	va_end(args);
}

int bpf_object__load(struct bpf_object *object)
{
	struct object *o = (struct object *)object;
	int err = befalls();

	if (verifier_says) {
		libbpf_prints("libbpf: prog 'pacer': BPF program load failed: %s\n",
			      "Invalid argument");
		libbpf_prints(
		    "libbpf: prog 'pacer': -- BEGIN PROG LOAD LOG --\n%sprocessed 9 insns\n"
		    "-- END PROG LOAD LOG --\n",
		    verifier_says);
		return -verifier_err;
	}
	if (!err)
		o->id = new_program(o->state);
	if (put_first)
		at[0].program[0] = put_first;
	return err;
}

int bpf_xdp_attach(int ifindex, int prog_fd, __u32 flags, const struct bpf_xdp_attach_opts *opts)
{
	struct interface *i = interface_of(ifindex);
	uint32_t old = opts ? opts->old_prog_fd - FD : 0;
	int err;

	if (refused)
		return -refused;
	if (linked) {
		libbpf_prints("libbpf: Kernel error message: %s\n",
			      "Can't replace active BPF XDP link");
		return -EBUSY;
	}
	if (stolen_by) {
		*i = (struct interface){.program = {stolen_by}, .foreign = i->foreign};
		stolen_by = 0;
	}
	if (!changes(&err))
		return err;
	if (raised_at_attach)
		assert_int_equal(raise(raised_at_attach), 0);
	assert_int_equal(!!(flags & XDP_FLAGS_UPDATE_IF_NOEXIST), !old);
	if (i->dispatcher || i->program[0] != old)
		return old ? -EEXIST : -EBUSY;
	gave_way |= old && prog_fd >= 0 && carries(i, old) && !is_ours(old) &&
		    state_of[old] != state_of[prog_fd - FD];
	i->program[0] = prog_fd < 0 ? 0 : prog_fd - FD;
	if (followed_by)
		i->program[0] = followed_by;
	followed_by = 0;
	return err;
}

int bpf_xdp_detach(int ifindex, __u32 flags, const struct bpf_xdp_attach_opts *opts)
{
	struct interface *i = interface_of(ifindex);
	int err;

	(void)flags;
	if (!changes(&err))
		return err;
	if (i->dispatcher || i->program[0] + FD != (uint32_t)opts->old_prog_fd)
		return -EEXIST;
	i->program[0] = 0;
	return err;
}

struct xdp_program *xdp_program__create(struct xdp_program_opts *opts)
{
	int err = befalls();

	assert_string_equal(opts->prog_name, "pacer");
	return err ? (struct xdp_program *)(intptr_t)err : (struct xdp_program *)opts->obj;
}

int xdp_program__set_xdp_frags_support(struct xdp_program *p, bool frags)
{
	(void)p;
	assert_true(frags);
	return refuses == FRAGS ? -EINVAL : befalls();
}

/* It loads, and attaches; where there is no dispatcher, a program alone. */
int xdp_program__attach(struct xdp_program *p, int ifindex, enum xdp_attach_mode mode,
			unsigned int flags)
{
	struct object *o = (struct object *)p;
	struct interface *i = interface_of(ifindex);
	int err;

	assert_int_equal(mode, options.mode == SITE_SKB	 ? XDP_MODE_SKB
			       : options.mode == SITE_HW ? XDP_MODE_HW
							 : XDP_MODE_NATIVE);
	(void)flags;
	err = befalls();
	if (err)
		return err;
	o->id = new_program(o->state);
	if (stolen_by) {
		add(i, stolen_by);
		stolen_by = 0;
	}
	if (i->program[0] && !i->dispatcher)
		return -EBUSY;
	if (changes(&err))
		add(i, o->id);
	i->litter |= err;
	if (leaves)
		drop(i, leaves);
	leaves = 0;
	return err;
}

int xdp_program__detach(struct xdp_program *p, int ifindex, enum xdp_attach_mode mode,
			unsigned int flags)
{
	int err;

	(void)mode;
	(void)flags;
	if (changes(&err)) {
		gave_way |= (uint32_t)(uintptr_t)p == pacer_of(interface_of(ifindex)) &&
			    !is_ours((uint32_t)(uintptr_t)p);
		drop(interface_of(ifindex), (uint32_t)(uintptr_t)p);
	}
	return err;
}

void xdp_program__close(struct xdp_program *p)
{
	assert_non_null(p);
}

enum xdp_attach_mode xdp_multiprog__attach_mode(const struct xdp_multiprog *mp)
{
	assert_non_null(mp);
	return XDP_MODE_NATIVE;
}

int attached_open(const char *ifname, int ifindex, int prog_fd, struct attached *a,
		  struct policy_error *why)
{
	if (befalls())
		return policy_fail(why, 0, "%s: its maps cannot be opened", ifname);
	*a = (struct attached){.prog_id = prog_fd - FD, .control = &control};
	snprintf(a->ifname, sizeof(a->ifname), "%s", ifname);
	a->ifindex = ifindex;
	a->prog_fd = prog_fd;
	opened++;
	return 0;
}

void attached_at(struct attached *a, const struct site *site)
{
	a->site_id = site->id;
}

int attached_find(const char *ifname, struct attached *a, struct policy_error *why)
{
	const struct interface *i = named(ifname);

	if (!pacer_of(i) || i->foreign)
		return policy_fail(why, 0, "%s: its pacer cannot be found", ifname);
	return attached_open(ifname, (int)(i - at) + 1, FD + (int)pacer_of(i), a, why);
}

void attached_release(struct attached *a)
{
	opened--;
	memset(a, 0, sizeof(*a));
}

bool attached_gone(const struct attached *a)
{
	const struct interface *i = interface_of(a->ifindex);
	bool there = false;

	for (size_t k = 0; k < CARRIED; k++)
		there |= i->program[k] && state_of[i->program[k]] == state_of[a->prog_id];
	return !there;
}

void pins_sweep(int ifindex, struct pins_left *left)
{
	struct interface *i = interface_of(ifindex);

	(void)left;
	i->litter = false;
	for (uint32_t id = 1; id < PROGRAMS; id++)
		if (!carries(i, id))
			i->shadows &= ~(1ull << id);
}

int pins_put_shadow(int map_fd, const char *ifname, int ifindex, uint32_t prog_id,
		    struct policy_error *why)
{
	assert_int_equal(map_fd, 0);
	if (!prog_id || befalls())
		return policy_fail(why, 0, "%s: its shadow cannot be kept", ifname);
	interface_of(ifindex)->shadows |= 1ull << prog_id;
	return 0;
}

void pins_drop_shadow(int ifindex, uint32_t prog_id, struct pins_left *left)
{
	assert_int_equal(left != NULL, undoing && shadowed); /* where it has none, none is left */
	interface_of(ifindex)->shadows &= ~(1ull << prog_id);
}

const char *pins_bpffs(void)
{
	return "/sys/fs/bpf";
}

const char *pins_advice(int err)
{
	return err == EROFS ? ": remount it first" : "";
}

int pinned_ids_of(int prog_fd, struct pinned_ids *ids)
{
	uint32_t state = prog_fd >= 0 && !befalls() ? state_of[prog_fd - FD] : 0;

	*ids = (struct pinned_ids){{state, state}};
	return prog_fd < 0 ? -EBADF : state ? 0 : -fault.err;
}

int pinned_check(const char *ifname, const struct pinned_ids *instead, struct policy_error *why)
{
	(void)instead;
	return befalls() || refuses == PINS ? policy_fail(why, 0, "%s: may have no pins", ifname)
					    : 0;
}

int pinned_may_go(const char *ifname, const struct pinned_ids *ids, struct policy_error *why)
{
	(void)ids;
	assert_true(control.tools); /* else it has none */
	return befalls() ? policy_fail(why, 0, "%s: its pins may not go", ifname) : 0;
}

int pins_shadow_may_go(const char *ifname, int ifindex, uint32_t prog_id, struct policy_error *why)
{
	(void)ifindex;
	(void)prog_id;
	return befalls() || refuses == SHADOW
		   ? policy_fail(why, 0, "%s: its shadow may not go", ifname)
		   : 0;
}

static bool pins_failed; /* to be put: of what was made there, the kernel has no reason for it */

static struct pinning {
	uint32_t before[INTERFACES], made[INTERFACES]; /* whose they were, and will be */
} pinned;

int pinned_make(const struct attached *a, const struct pinned_ids *instead, size_t n,
		struct pinning **pinning, struct policy_error *why)
{
	(void)instead;
	if (befalls() || pins_denied)
		return policy_fail(why, 0, "%s: its pins cannot be made", a[0].ifname);
	if (gone_at_pins)
		memset(at, 0, sizeof(at));
	for (size_t k = 0; k < INTERFACES; k++)
		pinned.before[k] = pinned.made[k] = at[k].pins;
	for (size_t k = 0; k < n; k++)
		pinned.made[named(a[k].ifname) - at] = state_of[a[k].prog_id];
	*pinning = &pinned;
	opened++;
	return 0;
}

int pinned_put(struct pinning *pinning, struct policy_error *why)
{
	pins_failed = befalls();
	if (pins_failed) { /* after the first of them */
		at[0].pins = pinning->made[0];
		return policy_fail(why, 0, "%s: its pins cannot be put", names[0]);
	}
	unheeded = !control.tools || (shadowed && !shadow_control.tools);
	for (size_t k = 0; k < INTERFACES; k++)
		at[k].pins = pinning->made[k];
	assert_int_equal(ended, 0); /* what has begun is brought to an end first */
	return 0;
}

void pinned_end(struct pinning *pinning, bool keep)
{
	if (!pinning)
		return;
	opened--;
	for (size_t k = 0; k < INTERFACES && !keep; k++)
		at[k].pins = pinning->before[k];
}

int pinned_one(const struct attached *a, struct policy_error *why)
{
	struct pinning *pinning;
	int result;

	if (pinned_make(a, NULL, 1, &pinning, why))
		return -1;
	result = pinned_put(pinning, why);
	pinned_end(pinning, !result);
	return result;
}

void pinned_heed(const struct attached *a, bool heeds)
{
	a->control->tools = heeds;
}

int attached_shadow(const struct attached *a, struct attached *s, struct policy_error *why)
{
	if (!shadowed)
		return 1;
	if (befalls())
		return policy_fail(why, 0, "%s: its shadow cannot be opened", a->ifname);
	*s = (struct attached){.control = &shadow_control};
	opened++;
	return 0;
}

/* As long as no program but that one has the state. */
void pinned_sweep(const char *ifname, uint32_t gone)
{
	struct interface *i = named(ifname);

	if (gone && i->pins == state_of[gone] && state_of[i->program[0]] != i->pins)
		i->pins = 0;
}

/* As long as no other program has the state. */
void pinned_remove(const char *ifname, const struct pinned_ids *ids, uint32_t gone,
		   struct pins_left *left)
{
	struct interface *i = named(ifname);

	(void)gone;
	assert_true(!undoing || !left == !control.tools); /* as with a shadow */
	if (!ids->of[PINNED_4] || i->pins != ids->of[PINNED_4])
		return;
	if (left && befalls())
		left->cause = EMFILE;
	else
		i->pins = 0;
}

void pinned_remove_unread(const char *ifname, int err, uint32_t gone, struct pins_left *left)
{
	(void)ifname;
	(void)gone;
	assert_true(err < 0 && (!undoing || !left == !control.tools));
	if (left)
		left->cause = -err;
}

/* --- what is done ------------------------------------------------------------------------------
 */

static struct object_begin begin;
static struct policy_error error;
static struct attached found[INTERFACES];
static int told_left; /* why pins are left, as it says; 0: none are */

static int load_two(void)
{
	struct attach_replaced replaced[INTERFACES];
	int result = attach_pacers(names, INTERFACES, &options, &begin, found, replaced, &error);

	for (size_t i = 0; i < INTERFACES && !result; i++)
		attached_release(&found[i]);
	return result;
}

static int load_one(void)
{
	struct attach_replaced replaced;
	int result = attach_pacers(names, 1, &options, &begin, found, &replaced, &error);

	if (!result)
		attached_release(&found[0]);
	return result;
}

static int upgrade(void)
{
	struct attach_replaced replaced;
	int result = attach_upgrade(names[0], options.pin, found, &replaced, &error);

	if (!result)
		attached_release(&found[0]);
	return result;
}

static int promote(void)
{
	struct object *o = open_object(names[0], state_of[at[0].program[0]], &error);
	int result = -1;

	if (!o)
		return -1;
	result = attach_instead(names[0], o, NULL, NULL, found, &error);
	if (!result)
		attached_release(&found[0]);
	object_close(o);
	return result;
}

static int undo(void)
{
	struct pins_left left;
	int result;

	undoing = true;
	result = detach_pacer(names[0], &left, &error);
	undoing = false;
	told_left = left.cause;
	return result;
}

/* What the end of a trial does. */
static int undo_this(void)
{
	struct attached a = {.prog_id = at[0].program[0], .ifindex = 1};

	a.prog_fd = FD + (int)a.prog_id;
	snprintf(a.ifname, sizeof(a.ifname), "%s", names[0]);
	return detach_this(&a, &error);
}

/* --- what is seen after it ---------------------------------------------------------------------
 */

static const struct work {
	const char *name;
	int (*work)(void);
	bool paced, direct, replace, pin, shared, shadowed, tools;
	bool twice; /* a killed replacement has left a second one, which may go before all else */
	enum site_mode mode;
	bool takes_off; /* it is to leave nothing */
	size_t n;	/* interfaces */
} works[] = {
    {"load", load_one, .direct = true, .n = 1},
    {"load --mode skb", load_one, .direct = true, .mode = SITE_SKB, .n = 1},
    {"load --mode skb through libxdp", load_one, .mode = SITE_SKB, .n = 1},
    {"load --mode hw", load_one, .mode = SITE_HW, .n = 1},
    {"load through libxdp", load_one, .n = 1},
    {"load two", load_two, .direct = true, .pin = true, .tools = true, .n = 2},
    {"load two, shared", load_two, .shared = true, .pin = true, .tools = true, .n = 2},
    {"load --replace", load_two, .paced = true, .replace = true, .n = 2},
    {"load --replace --pin", load_two, .paced = true, .replace = true, .pin = true, .tools = true,
     .n = 2},
    {"upgrade", upgrade, .paced = true, .n = 1},
    {"upgrade --pin", upgrade, .paced = true, .pin = true, .n = 1},
    {"upgrade a pacer with pins", upgrade, .paced = true, .tools = true, .n = 1},
    {"upgrade --pin a pacer with pins", upgrade, .paced = true, .pin = true, .tools = true, .n = 1},
    {"upgrade a pacer with a shadow", upgrade, .paced = true, .shadowed = true, .n = 1},
    {"upgrade --pin a pacer with a shadow", upgrade, .paced = true, .shadowed = true, .pin = true,
     .n = 1},
    {"load --replace of two", load_one, .paced = true, .replace = true, .twice = true, .n = 1},
    {"load --replace --pin of two", load_one, .paced = true, .replace = true, .twice = true,
     .pin = true, .tools = true, .n = 1},
    {"upgrade of two", upgrade, .paced = true, .twice = true, .tools = true, .n = 1},
    {"promote", promote, .paced = true, .shadowed = true, .n = 1},
    {"unload", undo, .paced = true, .tools = true, .shadowed = true, .takes_off = true, .n = 1},
    {"a trial's end", undo_this, .paced = true, .tools = true, .shadowed = true, .takes_off = true,
     .n = 1},
};

static void begin_anew(const struct work *w, bool dispatcher)
{
	memset(at, 0, sizeof(at));
	memset(&fault, 0, sizeof(fault));
	unheeded = gave_way = pins_failed = false;
	control.tools = shadow_control.tools = w->tools;
	last_id = 0;
	opened = 0;
	n_objects = 0;
	told_left = 0;
	with_dispatcher = dispatcher;
	shadowed = w->shadowed;
	options = (struct attach_options){
	    .mode = w->mode, .direct = w->direct, .replace = w->replace, .pin = w->pin};
	begin = (struct object_begin){.tools = w->tools, .shared = w->shared};
	error = (struct policy_error){.line = -1};
	for (size_t i = 0; i < INTERFACES && w->paced; i++) {
		uint32_t id = new_program(0);

		add(&at[i], id);
		at[i].pins = w->tools ? state_of[id] : 0;
		at[i].shadows = w->shadowed ? 1ull << id : 0;
		if (w->twice && dispatcher)
			add(&at[i], new_program(w->work == upgrade ? state_of[id] : 0));
	}
}

static bool same(const struct interface *a, const struct interface *b)
{
	return !memcmp(a->program, b->program, sizeof(a->program)) && a->pins == b->pins &&
	       a->shadows == b->shadows;
}

/* As it was, but for the second one. */
static bool is_alone(const struct interface *now, const struct interface *before)
{
	struct interface first = *before;

	first.program[1] = 0;
	return same(now, &first);
}

/* Does the error say that this interface is not as it was? */
static bool is_owned_up(const char *ifname)
{
	char says[3][64];

	snprintf(says[0], sizeof(*says), "%s still has the new pacer", ifname);
	snprintf(says[1], sizeof(*says), "%s may still have the new pacer", ifname);
	snprintf(says[2], sizeof(*says), "%s keeps the new pacer", ifname);
	return strstr(error.text, "; its pins stay, and count") || strstr(error.text, says[0]) ||
	       strstr(error.text, says[1]) || strstr(error.text, says[2]);
}

/* NULL: all is as it should be. */
static const char *wrong_with(const struct work *w, int result, const struct interface *before)
{
	bool heeded = w->tools || at[0].pins;

	if (opened)
		return "something is left open";
	if (result && strncmp(error.text, "eth", 3) != 0)
		return "it does not say where";
	if (unheeded)
		return "there were pins that nobody looks into";
	if (result && (control.tools != heeded || (shadowed && shadow_control.tools != heeded)))
		return "tools are heeded where they were not, or not where pins are";
	if (!w->paced && strstr(error.text, "as the one before is off"))
		return "it stays for one that was not there";
	if (!result && w->pin && !control.tools)
		return "no tools are heeded";
	if (result && w->replace && gave_way && !pins_failed &&
	    (!fault.of_change || (fault.done && !fault.for_good)))
		return "the pacer before gave way for a while, and each source began anew";
	for (size_t i = 0; i < w->n; i++) {
		const struct interface *now = &at[i];
		bool changed = !same(now, &before[i]) && !(w->twice && is_alone(now, &before[i]));

		if (w->paced && !w->takes_off && !now->program[0])
			return "no pacer is on it any more";
		if (result && w->takes_off && !now->program[0] && changed)
			return fault.for_good ? NULL : "it is off, and is said not to be";
		if (w->shadowed && w->work == upgrade && !(now->shadows & 1ull << pacer_of(now)))
			return "the shadow of the one that is on it is lost";
		if (result && changed && !is_owned_up(names[i]))
			return "it failed, and is not as it was";
		if (result && now->litter && !is_owned_up(names[i]))
			return "it failed, and left pins of a dispatcher";
		if (result || !w->takes_off)
			continue;
		if (now->program[0])
			return "it is said to be off, and is not";
		if ((now->pins && !told_left) || now->shadows)
			return "pins of it are left";
	}
	for (size_t i = 0; i < w->n && !result && !w->takes_off; i++) {
		const struct interface *now = &at[i];

		if (!now->program[0] || now->program[1] || carries(before, now->program[0]))
			return "it is said to be on, and is not, or not alone";
		if (w->pin && now->pins != state_of[now->program[0]])
			return "its pins are another's";
		if (w->shadowed && w->work == upgrade && now->shadows != 1ull << now->program[0])
			return "its shadow is lost";
		if (w->pin && w->shadowed && !shadow_control.tools)
			return "its shadow heeds no tools";
	}
	return NULL;
}

static void try_it(const struct work *w, bool dispatcher, unsigned int fail_at)
{
	struct interface before[INTERFACES];
	const char *wrong;
	int result;

	memcpy(before, at, sizeof(before));
	fault.at = fail_at;
	memory.on = true;
	result = w->work();
	memory.on = false;
	wrong = wrong_with(w, result, before);
	if (wrong)
		fail_msg("%s%s: call %u%s%s, %s: %s; %d: it says %s", w->name,
			 dispatcher ? " under a dispatcher" : "", fail_at,
			 fault.for_good ? " and all after it" : "", fault.done ? " done" : "",
			 strerror(fault.err), wrong, result, error.text);
}

enum how { FOR_GOOD = 1, DONE = 2, ONLY_CHANGES = 4, HOWS = 8 };

static void each_call_fails(const struct work *w, bool dispatcher, int err, enum how how)
{
	unsigned int n;

	begin_anew(w, dispatcher);
	fault.only_changes = how & ONLY_CHANGES;
	assert_int_equal(w->work(), 0);
	n = fault.n;
	assert_true(n > 0);
	for (unsigned int i = 1; i <= n + 1; i++) {
		begin_anew(w, dispatcher);
		fault.err = err;
		fault.for_good = how & FOR_GOOD;
		fault.done = how & DONE;
		fault.only_changes = how & ONLY_CHANGES;
		try_it(w, dispatcher, i);
	}
}

static void test_whole_or_nothing(void **unused)
{
	static const int errs[] = {EPERM, ENOMEM, EBUSY, EINVAL, EACCES, EOPNOTSUPP, EIO};

	(void)unused;
	for (size_t i = 0; i < ARRAY(works); i++)
		for (size_t e = 0; e < ARRAY(errs); e++)
			for (enum how how = 0; how < HOWS; how++) {
				each_call_fails(&works[i], false, errs[e], how);
				if (!works[i].direct)
					each_call_fails(&works[i], true, errs[e], how);
			}
}

static void test_no_memory(void **unused)
{
	(void)unused;
	starved_from(0, false);
	for (size_t i = 0; i < ARRAY(works); i++)
		for (int dispatcher = 0; dispatcher < 2; dispatcher++)
			for (unsigned int n = 1; n < 6; n++) {
				begin_anew(&works[i], dispatcher && !works[i].direct);
				starved_from(n, true);
				try_it(&works[i], dispatcher && !works[i].direct, 0);
			}
	starved_from(0, false);
}

/* --- what is said ------------------------------------------------------------------------------
 */

static const struct work plain = {"load", load_one, .direct = true, .n = 1},
			 through = {"load", load_one, .n = 1},
			 instead = {"load", load_one, .paced = true, .replace = true, .n = 1};

static void assert_says(const char *text)
{
	if (strncmp(error.text, text, strlen(text)) != 0)
		fail_msg("it says %s, and not %s", error.text, text);
}

/* Another command puts its program on between this one's look and its own. */
static void test_another_was_faster(void **unused)
{
	(void)unused;
	for (int libxdp = 0; libxdp < 2; libxdp++) {
		begin_anew(libxdp ? &through : &plain, false);
		stolen_by = new_program(0);
		assert_int_equal(load_one(), -1);
		assert_says("eth0: another command has just loaded a pacer: change that one with "
			    "`xdp-pacer apply eth0`, or take its place with load --replace");
		assert_true(carries(&at[0], 1));
		begin_anew(libxdp ? &through : &plain, false);
		at[0].foreign = true;
		stolen_by = new_program(0);
		assert_int_equal(load_one(), -1);
		assert_says("eth0: another XDP program came or went meanwhile: try again");
		assert_int_equal(opened, 0);
	}
	begin_anew(&instead, false);
	stolen_by = new_program(0);
	assert_int_equal(load_one(), -1);
	assert_says("eth0: its pacer was taken off or replaced meanwhile: try again");
}

/* By a BPF link: nobody else changes that, and it is no matter of who was faster. */
static void test_held_by_a_link(void **unused)
{
	(void)unused;
	begin_anew(&instead, false);
	linked = true;
	assert_int_equal(load_one(), -1);
	linked = false;
	assert_says("eth0: the program was not attached: Device or resource busy: a BPF link holds "
		    "the program there: end the process that attached it, or remove the link "
		    "(`bpftool link`, and `bpftool link detach id ID`)");
}

/* And right after it. */
static void test_another_followed(void **unused)
{
	uint32_t other;

	(void)unused;
	begin_anew(&plain, false);
	other = followed_by = new_program(0);
	assert_int_equal(load_one(), -1);
	assert_says("eth0: another pacer has taken its place: see `xdp-pacer status eth0`");
	assert_int_equal(at[0].program[0], other);
	assert_int_equal(opened, 0);
}

/* ... under a dispatcher, where both have put theirs beside the one before, which is off: one
 * stays.
 */
static void test_two_at_once(void **unused)
{
	uint32_t first;

	(void)unused;
	begin_anew(&instead, true);
	leaves = at[0].program[0];
	first = stolen_by = new_program(0);
	assert_int_equal(load_one(), -1);
	assert_string_equal(error.text, "eth0: another pacer has taken its place: see `xdp-pacer "
					"status eth0`");
	assert_int_equal(at[0].program[0], first);
	assert_int_equal(at[0].program[1], 0);
	assert_int_equal(opened, 0);
}

/* Under a dispatcher: beside another's program; and where the pacer before goes by itself. */
static void test_beside_others(void **unused)
{
	(void)unused;
	begin_anew(&through, true);
	other[1] = true;
	add(&at[0], new_program(0));
	assert_int_equal(load_one(), 0);
	assert_true(carries(&at[0], 1) && pacer_of(&at[0]) > 1);
	other[1] = false;
	begin_anew(&instead, true);
	leaves = at[0].program[0];
	assert_int_equal(load_one(), 0);
	assert_false(carries(&at[0], 1));
	assert_int_equal(opened, 0);
}

/* A killed replacement leaves two: all of them go. */
static void test_several_taken_off(void **unused)
{
	(void)unused;
	begin_anew(&instead, true);
	add(&at[0], new_program(0));
	add(&at[0], new_program(0));
	assert_int_equal(undo(), 0);
	assert_int_equal(at[0].program[0] + at[0].dispatcher, 0);
}

/* One after the other comes on: it does not go on for ever. */
static void test_ever_more_to_take_off(void **unused)
{
	(void)unused;
	begin_anew(&instead, true);
	for (int i = 0; i < 11; i++)
		add(&at[0], new_program(0));
	assert_int_equal(undo(), -1);
	assert_says("eth0: the pacer was not detached: Device or resource busy");
	assert_int_equal(undo(), 0);
}

/* ... or all but the first, before another takes its place. Nobody who may not replace it does so.
 */
static void test_second_taken_off(void **unused)
{
	static const struct work upgraded = {"upgrade", upgrade, .paced = true, .n = 1};
	const struct work *each[] = {&instead, &upgraded};
	uint32_t second;

	(void)unused;
	for (size_t i = 0; i < ARRAY(each); i++) {
		begin_anew(each[i], true);
		add(&at[0], new_program(0));
		other[new_program(0)] = true;
		add(&at[0], last_id);
		add(&at[0], new_program(0));
		at[0].shadows = 1ull << at[0].program[1] | 1ull << at[0].program[2];
		at[0].pins = state_of[at[0].program[1]];
		assert_int_equal(each[i]->work(), 0);
		assert_int_equal(at[0].pins, 0);
		assert_true(other[at[0].program[0]] && at[0].program[1] && !at[0].program[2]);
		assert_int_equal(at[0].shadows, 1ull << at[0].program[0]);
		memset(other, 0, sizeof(other));
	}
	begin_anew(&through, true);
	add(&at[0], new_program(0));
	second = new_program(0);
	add(&at[0], second);
	assert_int_equal(load_one(), -1);
	assert_says("eth0: is paced already");
	assert_int_equal(at[0].program[1], second);
	begin_anew(&instead, true);
	for (int i = 0; i < 13; i++)
		add(&at[0], new_program(0));
	assert_int_equal(load_one(), -1);
	assert_says("eth0: its second pacer (program ");
	assert_non_null(strstr(error.text, " was not detached: Device or resource busy"));
}

/* A program that is opened is loaded, or it is said why not. */
static void test_loaded_alone(void **unused)
{
	struct object *o;

	(void)unused;
	begin_anew(&plain, false);
	o = open_object("eth0", 0, &error);
	fault.at = fault.n + 1;
	fault.err = ENOMEM;
	assert_int_equal(attach_load("eth0", o, &error), -1);
	assert_says("eth0: the kernel has no memory for the state: lower memory");
	fault.at = fault.n + 1;
	fault.err = EPERM;
	assert_int_equal(attach_load("eth0", o, &error), -1);
	assert_says("eth0: no privilege to load the program (Operation not permitted): run as "
		    "root");
	assert_int_equal(attach_load("eth0", o, &error), 0);
	assert_true(object_program_fd(o) > FD);
	object_close(o);
}

/* What the verifier refuses, by the last line of its log: what can be done is said, or the line. */
static void test_refused(void **unused)
{
	static const struct {
		int err;
		const char *log, *says;
	} cases[] = {
	    {EINVAL, "0: R1=ctx()\ncallbacks are not allowed in non-JITed programs\n",
	     "eth0: the program wants the kernel's BPF JIT, which is off, or has failed: sysctl "
	     "net.core.bpf_jit_enable=1"},
	    {EINVAL, "Can attach to only JITed progs\n",
	     "eth0: the program wants the kernel's BPF JIT, which is off, or has failed: sysctl "
	     "net.core.bpf_jit_enable=1"},
	    {EINVAL, "Extension program changes packet data, while original does not\n",
	     "eth0: this kernel takes no shadow under a libxdp dispatcher as old as this one: "
	     "unload, and load with --direct, or with a later libxdp"},
	    {EINVAL, "0: R1=ctx()\nR2 !read_ok\n",
	     "eth0: this kernel's verifier refuses the program (Invalid argument: R2 !read_ok): "
	     "KERNELS in xdp-pacer(8) says which kernels are known to take it"},
	    {EINVAL, "BPF map '.data.control' is referenced but wasn't created\n",
	     "eth0: the program was not loaded, as a part of it could not be made (Invalid "
	     "argument: BPF map '.data.control' is referenced but wasn't created): raise the limit "
	     "of open files (ulimit -n), and let bpf(2) do all it can"},
	    {EMFILE, "Func#131 is safe\n", "eth0: the program was not loaded: Too many open files"},
	    {ENFILE, "Func#131 is safe\n",
	     "eth0: the program was not loaded: Too many open files in system"},
	    {EINVAL, "missing btf func_info\n",
	     "eth0: the program was not loaded, as a part of it could not be made (Invalid "
	     "argument: missing btf func_info): raise the limit of open files (ulimit -n), and let "
	     "bpf(2) do all it can"},
	    {EINVAL, "",
	     "eth0: this kernel's verifier refuses the program (Invalid argument): KERNELS in "
	     "xdp-pacer(8) says which kernels are known to take it"},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		begin_anew(&plain, false);
		verifier_says = cases[i].log;
		verifier_err = cases[i].err;
		assert_int_equal(load_one(), -1);
		verifier_says = NULL;
		if (strncmp(error.text, cases[i].says, strlen(cases[i].says)) != 0)
			fail_msg("%s", error.text);
		assert_int_equal(at[0].program[0], 0);
		assert_int_equal(opened, 0);
	}
}

/* What cannot be attached, and why: the errno, the mode, what is said. */
static void test_not_attached(void **unused)
{
	static const struct {
		int err;
		enum site_mode mode;
		const char *says;
	} cases[] = {
	    {EPERM, SITE_NATIVE, "eth0: no privilege to attach the program"},
	    {EACCES, SITE_SKB, "eth0: no privilege to attach the program"},
	    {EINVAL, SITE_HW, "eth0: its driver does not take the program into hardware"},
	    {EOPNOTSUPP, SITE_NATIVE, "eth0: its driver takes no native XDP program"},
	    {EINVAL, SITE_NATIVE, "eth0: its driver takes no native XDP program"},
	    {EINVAL, SITE_SKB, "eth0: the program was not attached: Invalid argument"},
	    {EEXIST, SITE_NATIVE, "eth0: the program was not attached: File exists"},
	    {EBUSY, SITE_NATIVE, "eth0: the program was not attached: Device or resource busy"},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		struct work w = plain;

		w.mode = cases[i].mode;
		begin_anew(&w, false);
		refused = cases[i].err;
		assert_int_equal(load_one(), -1);
		refused = 0;
		assert_says(cases[i].says);
	}
}

/* Whose frames begin otherwise than the first one's. */
static void test_no_state_for_two(void **unused)
{
	struct work w = {"load two", load_two, .direct = true, .shared = true, .n = 2};

	(void)unused;
	begin_anew(&w, false);
	raw_ip[1] = true;
	assert_int_equal(load_two(), -1);
	raw_ip[1] = false;
	assert_string_equal(error.text,
			    "eth00: its frames do not begin as those of eth0 do, so that no state "
			    "can be shared: load it by itself; nothing is changed on eth0");
	assert_int_equal(at[0].program[0], 0);
}

/* After a failure it is not seen what is on the first of two: that is said, and not that all is as
 * it was. */
static void test_not_seen_again(void **unused)
{
	struct work w = {"load two", load_two, .direct = true, .n = 2};

	(void)unused;
	begin_anew(&w, false);
	refused = EIO;
	hidden = true;
	assert_int_equal(load_two(), -1);
	refused = hidden = 0;
	assert_string_equal(error.text,
			    "eth0: the program was not attached: Input/output error; and eth0 may "
			    "still have the new pacer: see `xdp-pacer status eth0`");
}

/* Whose pacer gives way is attached to last: what is refused by another leaves it alone. */
static void test_replaced_last(void **unused)
{
	static const struct work two = {"replace two",	load_two,	 .paced = true,
					.direct = true, .replace = true, .n = 2};

	(void)unused;
	for (size_t paced = 0; paced < 2; paced++) {
		char says[64];

		begin_anew(&two, false);
		memset(&at[!paced], 0, sizeof(at[0]));
		fault.only_changes = true;
		fault.at = 1;
		fault.err = EIO;
		assert_int_equal(load_two(), -1);
		snprintf(says, sizeof(says), "%s: the program was not attached: Input/output error",
			 names[!paced]);
		assert_says(says);
		assert_true(at[paced].program[0] && !at[!paced].program[0]);
	}
}

static void note_end(int signal)
{
	ended += signal == raised_at_attach;
}

/* Pins and the program of one are put together: a signal in between comes after both. */
static void test_ended_with_its_pins(void **unused)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct work w = {"load --pin", load_one,      .direct = true,
			 .pin = true,  .tools = true, .n = 1};

	(void)unused;
	for (size_t i = 0; i < ARRAY(signals); i++) {
		void (*handler)(int) = signal(signals[i], note_end);

		begin_anew(&w, false);
		ended = 0;
		raised_at_attach = signals[i];
		assert_int_equal(load_one(), 0);
		assert_int_equal(ended, 1);
		ended = raised_at_attach = 0;
		assert_true(at[0].program[0] && at[0].pins == state_of[at[0].program[0]]);
		assert_true(signal(signals[i], handler) != SIG_ERR);
	}
}

/* Verified for an interface that has another name by then. */
static void test_renamed_meanwhile(void **unused)
{
	(void)unused;
	for (int libxdp = 0; libxdp < 2; libxdp++) {
		begin_anew(libxdp ? &through : &plain, false);
		renamed = true;
		assert_int_equal(load_one(), -1);
		assert_string_equal(error.text, "eth0: it is another interface meanwhile, or has "
						"another name: try again");
		assert_int_equal(at[0].program[0] + at[1].program[0], 0);
		assert_int_equal(opened, 0);
	}
	renamed = false;
}

/* Another command's pacer, and its pins, came as this one was verified: that is why there are none.
 */
static void test_another_was_pinned(void **unused)
{
	static const struct work w = {"load --pin", load_one,	   .direct = true,
				      .pin = true,  .tools = true, .n = 1};

	(void)unused;
	begin_anew(&w, false);
	put_first = new_program(0);
	pins_denied = true;
	assert_int_equal(load_one(), -1);
	assert_says("eth0: another command has just loaded a pacer: ");
	assert_int_equal(at[0].program[0], put_first);
	put_first = pins_denied = 0;
	assert_int_equal(opened, 0);
}

/* An upgrade that finds its pacer taken off leaves no pins of it, which it had made again. */
static void test_upgrade_of_one_taken_off(void **unused)
{
	static const struct work w = {"upgrade", upgrade, .paced = true, .tools = true, .n = 1};

	(void)unused;
	begin_anew(&w, false);
	gone_at_pins = true;
	assert_int_equal(upgrade(), -1);
	gone_at_pins = false;
	assert_says("eth0: its pacer was taken off or replaced meanwhile: try again");
	assert_int_equal(at[0].program[0] + at[0].pins, 0);
	assert_int_equal(opened, 0);
}

/* Pins of a pacer that is replaced, for tools and for its shadow: of none that stays. */
static void test_replaced_whole(void **unused)
{
	(void)unused;
	begin_anew(&instead, false);
	control.tools = shadowed = true;
	at[0].pins = state_of[1];
	at[0].shadows = 1ull << 1;
	assert_int_equal(load_one(), 0);
	assert_true(at[0].program[0] > 1);
	assert_int_equal(at[0].pins, 0);
	assert_int_equal(at[0].shadows, 0);
}

/* Who may not: what lacks is said before anything is looked at. */
static void test_no_privilege(void **unused)
{
	static const struct work on = {"unload", undo, .paced = true, .n = 1};

	(void)unused;
	begin_anew(&on, false);
	fault.at = 2; /* the first of what refusal_by_host() tries */
	fault.err = EPERM;
	assert_int_equal(upgrade(), -1);
	assert_string_equal(error.text, "eth0: no privilege to make a BPF map: run as root");
	for (int other = 0; other < 2; other++) {
		begin_anew(&on, false);
		fault.only_changes = fault.for_good = true;
		fault.at = 1;
		fault.err = other ? EACCES : EPERM;
		assert_int_equal(undo(), -1);
		assert_string_equal(error.text,
				    other ? "eth0: the pacer was not detached: Permission denied: "
					    "run as root"
					  : "eth0: the pacer was not detached: Operation not "
					    "permitted: run as root");
	}
}

/* What is in the way is seen before anything is put on, or gives way. */
static void test_in_the_way(void **unused)
{
	static const struct work
	    two = {"load --replace", load_one,	  .paced = true, .shadowed = true,
		   .replace = true,  .pin = true, .n = 1},
	    back = {"promote", promote, .paced = true, .shadowed = true, .n = 1},
	    pins = {"upgrade --pin", upgrade, .paced = true, .pin = true, .n = 1};
	static const struct {
		const struct work *work;
		const char *says;
		int why;
	} rows[] = {
	    {&through, "eth0: down", DOWN},
	    {&through, "eth0: the program was not loaded: Invalid argument", FRAGS},
	    {&two, "eth0: its shadow may not go", SHADOW},
	    {&back, "eth0: its shadow may not go", SHADOW},
	    {&two, "eth0: may have no pins", PINS},
	    {&pins, "eth0: may have no pins", PINS},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		uint32_t before;

		begin_anew(rows[i].work, false);
		before = at[0].program[0];
		refuses = rows[i].why;
		assert_int_equal(rows[i].work->work(), -1);
		refuses = NOTHING;
		assert_ptr_equal(strstr(error.text, rows[i].says), error.text);
		assert_int_equal(at[0].program[0], before);
	}
	begin_anew(&pins, false);
	options.pin = false; /* nobody asks for them */
	refuses = PINS;
	assert_int_equal(upgrade(), 0);
	refuses = NOTHING;
	begin_anew(&plain, false);
	fault.at = 3; /* the first of what refusal_by_host() tries */
	fault.err = EPERM;
	assert_int_equal(load_one(), -1);
	assert_says("eth0: no privilege to make a BPF map: run as root");
}

/* What a dispatcher, and programs before it, have left goes with the pacer. */
static void test_litter_goes(void **unused)
{
	static const struct work on = {"unload", undo, .paced = true, .n = 1};

	(void)unused;
	begin_anew(&on, true);
	at[0].litter = true;
	assert_int_equal(undo(), 0);
	assert_false(at[0].litter);
}

static void test_trial(void **unused)
{
	(void)unused;
	begin_anew(&plain, false);
	begin.confirm_ns = 7;
	assert_int_equal(load_one(), 0);
	assert_int_equal(confirmed_until_ns, 1007);
	confirmed_until_ns = 0;
	begin_anew(&plain, false);
	begin.confirm_ns = 7;
	refused = EINVAL; /* there is no trial, nor a pacer to have it */
	assert_int_equal(load_one(), -1);
	refused = 0;
	assert_int_equal(confirmed_until_ns, 0);
}

/* What was pinned and stays is said; what comes from what it is, too. */
static void test_left(void **unused)
{
	static const struct pins_left none = {.cause = 0},
				      busy = {.path = "/bpf/a", .cause = EBUSY},
				      readonly = {.path = "/bpf/a", .cause = EROFS},
				      hidden = {.path = "/bpf/a", .cause = EMEDIUMTYPE};

	(void)unused;
	assert_int_equal(detach_left("eth0", &none, &error), 0);
	assert_int_equal(detach_left("eth0", &busy, &error), -1);
	assert_says(
	    "eth0: the pacer is off, but /bpf/a, which holds its memory, cannot be removed: "
	    "Device or resource busy: `xdp-pacer clean`");
	assert_int_equal(detach_left("eth0", &readonly, &error), -1);
	assert_non_null(strstr(error.text, ": remount it first, then `xdp-pacer clean`"));
	assert_int_equal(detach_left("eth0", &hidden, &error), -1);
	assert_says("eth0: the pacer is off, but whether /bpf/a is there still cannot be seen, as "
		    "/sys/fs/bpf is hidden here, or not mounted: `xdp-pacer clean` outside `ip "
		    "netns exec`");
}

/* Nothing to upgrade or to take off; a program that is only named so; and what has gone by itself.
 */
static void test_not_there(void **unused)
{
	struct attached a = {.prog_id = 1, .ifindex = 1, .prog_fd = FD + 1, .ifname = "eth0"};

	(void)unused;
	begin_anew(&plain, false);
	assert_int_equal(undo(), -1);
	assert_says("eth0: has no pacer");
	assert_int_equal(upgrade(), -1);
	assert_says("eth0: has no pacer");
	last_id = 1;
	state_of[1] = at[0].pins = 1;
	assert_int_equal(detach_this(&a, &error), 0);
	assert_int_equal(at[0].pins, 0);
	at[0].program[0] = 1;
	for (int other = -1; other < 2; other++) { /* of an older version, none, of a newer */
		only_named = !other;
		other_abi = other;
		assert_int_equal(upgrade(), -1);
		assert_says(other ? "eth0: its pacer has ABI version"
				  : "eth0: its program is named pacer, but is not one");
		assert_int_equal(promote(), -1);
		assert_int_equal(load_one(), -1);
		assert_says(other ? "eth0: is paced already, by ABI version"
				  : "eth0: its program is named pacer, but is not one");
		assert_int_equal(undo(), other ? 0 : -1);
		at[0].program[0] = 1;
	}
	only_named = false;
	other_abi = 0;
	at[0].program[0] = 2;
	assert_int_equal(detach_this(&a, &error), 0);
	assert_int_equal(at[0].program[0], 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_whole_or_nothing),
	    cmocka_unit_test(test_no_memory),
	    cmocka_unit_test(test_another_was_faster),
	    cmocka_unit_test(test_held_by_a_link),
	    cmocka_unit_test(test_another_followed),
	    cmocka_unit_test(test_two_at_once),
	    cmocka_unit_test(test_beside_others),
	    cmocka_unit_test(test_several_taken_off),
	    cmocka_unit_test(test_ever_more_to_take_off),
	    cmocka_unit_test(test_second_taken_off),
	    cmocka_unit_test(test_loaded_alone),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_not_attached),
	    cmocka_unit_test(test_no_state_for_two),
	    cmocka_unit_test(test_not_seen_again),
	    cmocka_unit_test(test_replaced_last),
	    cmocka_unit_test(test_ended_with_its_pins),
	    cmocka_unit_test(test_renamed_meanwhile),
	    cmocka_unit_test(test_another_was_pinned),
	    cmocka_unit_test(test_upgrade_of_one_taken_off),
	    cmocka_unit_test(test_replaced_whole),
	    cmocka_unit_test(test_no_privilege),
	    cmocka_unit_test(test_in_the_way),
	    cmocka_unit_test(test_litter_goes),
	    cmocka_unit_test(test_trial),
	    cmocka_unit_test(test_left),
	    cmocka_unit_test(test_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
