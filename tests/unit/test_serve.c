/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A pacer as a service: what it begins with where something fails, and what it says of that and of
 * its end. The kernel, systemd and the signals are said here.
 */
#include "oracle.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/emit.h"
#include "cli/notify.h"
#include "cli/output.h"
#include "cli/several.h"
#include "live/change.h"
#include "live/device.h"
#include "live/host.h"
#include "live/save.h"
#include "live/serve.h"
#include "live/site.h"
#include "live/state_file.h"
#include "plan/compile.h"
#include "sets/texts.h"

#define S 1000000000ull

static struct {
	bool no_device, unseen, no_socket, no_flags, down, may_not;
	bool paced;
	uint32_t abi;
	enum site_mode mode;
	bool dispatched;
	int cpus;
	bool unread;	     /* the saved state */
	bool no_folder;	     /* to save it in */
	bool unfit;	     /* it does not go with the policy */
	bool unfit_limits;   /* but for its limits it does */
	bool wrong;	     /* the policy */
	uint32_t load_fails; /* the first so many */
	bool no_upgrade, no_change, no_lock;
	size_t crowded;	     /* bans that its policy has no room for */
	bool pending;	     /* a policy of what is there waits to be confirmed, */
	bool frozen;	     /* or that is what a save that was killed left, */
	bool load_pending;   /* or it is all on trial */
	bool lapsed, no_way; /* nobody confirmed what is there, and it can be taken off or not */
	bool no_save, on_trial, is_off, left;
	uint64_t hears_ns;		 /* when systemd begins to hear */
	uint64_t signal_ns;		 /* when one comes */
	uint64_t gone_ns;		 /* when the pacer is taken off; 0: never */
	uint64_t unseen_ns, seen_ns;	 /* it cannot be looked at from then until then; 0: never */
	bool renamed, vanished, unnamed; /* the interface */
	bool leaves;			 /* it gives way while the last save waits for the lock */
	bool full;			 /* nothing more can be printed */
} on;

static uint64_t now_ns;
static uint32_t loads, with_state, replacing, upgrades, changes, released, saves, put_up, taken_off;
static char said[2000], told[2000];
static bool lost;		 /* what was served gave way */
static const char *memory_asked; /* of which it is said how large it stays; NULL: not */
static struct policy_error error, why;
static struct attached pacer;
static enum served served;
static struct restored restored;
static struct policy policy;

/* ---- the kernel ---- */

int device_index(const char *ifname, struct policy_error *e)
{
	return on.no_device ? policy_fail(e, 0, "%s: there is none", ifname) : 3;
}

#define LOCK 200 /* and its descriptor, which nothing else has */

static bool is_locked(void)
{
	return fcntl(LOCK, F_GETFD) >= 0;
}

int copies_lock(struct policy_error *e)
{
	if (on.no_lock)
		return policy_fail(e, 0, "the lock cannot be had");
	assert_false(is_locked());
	return fcntl(0, F_DUPFD_CLOEXEC, LOCK);
}

int site_open(const char *ifname, int ifindex, struct site *site, struct policy_error *e)
{
	if (on.unseen)
		return policy_fail(e, 0, "%s: it cannot be seen", ifname);
	*site =
	    (struct site){.ifindex = ifindex, .mode = on.mode, .pacer = on.paced, .abi = on.abi};
	if (on.dispatched)
		site->dispatched = (struct xdp_multiprog *)site;
	return 0;
}

const char *site_mode_name(enum site_mode mode)
{
	return mode == SITE_SKB ? "skb" : "native";
}

void site_close(struct site *site)
{
	(void)site;
}

int socket(int domain, int type, int protocol)
{
	(void)domain;
	(void)type;
	(void)protocol;
	errno = EMFILE;
	return on.no_socket ? -1 : dup(0);
}

int ioctl(int fd, unsigned long request, ...)
{
	struct ifreq *r;
	va_list more;

	(void)fd;
	va_start(more, request);
	r = va_arg(more, struct ifreq *);
	va_end(more);
	errno = EPERM;
	if (request == SIOCGIFFLAGS) {
		r->ifr_flags = on.down ? 0 : IFF_UP;
		return on.no_flags ? -1 : 0;
	}
	assert_int_equal(request, SIOCSIFFLAGS);
	assert_true(r->ifr_flags & IFF_UP);
	put_up++;
	return on.may_not ? -1 : 0;
}

char *if_indextoname(unsigned int ifindex, char name[IF_NAMESIZE])
{
	assert_int_equal(ifindex, 3);
	errno = on.vanished ? ENXIO : EMFILE;
	return on.vanished || on.unnamed ? NULL : strcpy(name, on.renamed ? "new0" : "s0");
}

uint64_t host_now_ns(void)
{
	return now_ns;
}

uint64_t host_boot_ns(void)
{
	return now_ns;
}

void host_wait_until(uint64_t until_ns)
{
	assert_true(until_ns <= now_ns); /* nothing waits so */
}

uint64_t host_resolution_ns(void)
{
	return 1;
}

int host_cpus(struct policy_error *e)
{
	return on.cpus ? on.cpus : policy_fail(e, 0, "its CPUs cannot be read");
}

int compile_policy(const struct policy *p, const struct compile_previous *before,
		   const struct compile_host *host, struct pacer_policy *bin, struct plan *plan,
		   struct policy_error *e)
{
	(void)p;
	(void)before;
	(void)host;
	(void)bin;
	plan->lines = 1;
	return on.wrong ? policy_fail(e, 7, "it is wrong") : 0;
}

static bool forgot_unfit;

size_t restore_forget(struct state *s, const struct policy *p)
{
	(void)s;
	assert_non_null(p);
	forgot_unfit = false;
	return 3;
}

size_t restore_forget_unfit(struct state *s, const struct policy *p,
			    const struct compile_host *host)
{
	(void)s;
	assert_true(p && host->cpus);
	forgot_unfit = true;
	return 6;
}

int load_trial_make_way(const char *ifname, struct policy_error *e)
{
	if (on.no_way)
		return policy_fail(e, 0, "%s: what lapsed cannot be taken off", ifname);
	on.paced = on.paced && !on.lapsed;
	return 0;
}

int restore_plan(struct state *s, const struct policy *p, const struct clocks *now,
		 const struct compile_host *host, struct pacer_policy *bin, struct plan *plan,
		 struct restored *what, struct policy_error *e)
{
	(void)s;
	(void)p;
	(void)now;
	(void)host;
	(void)bin;
	*what = (struct restored){.bans_left_out = 2};
	plan->lines = 1;
	return on.unfit || (on.unfit_limits && !forgot_unfit)
		   ? policy_fail(e, 0, "s0.state: it does not fit")
		   : 0;
}

int state_place(const char *path, struct policy_error *e)
{
	return on.no_folder ? policy_fail(e, 0, "%s: its folder cannot be written", path) : 0;
}

int state_read(const char *file, struct state *s, struct policy_error *e)
{
	memset(s, 0, sizeof(*s));
	return on.unread ? policy_fail(e, 0, "%s: is damaged", file) : 0;
}

void state_free(struct state *s)
{
	(void)s;
}

int attach_pacers(const char *const *ifnames, size_t n, const struct attach_options *options,
		  const struct object_begin *begin, struct attached *a,
		  struct attach_replaced *replaced, struct policy_error *e)
{
	assert_true(n == 1 && !begin->shared);
	assert_int_equal(is_locked(), options->replace);
	(void)replaced;
	if (loads++ < on.load_fails)
		return policy_fail(e, 0, "%s: no memory in the kernel", *ifnames);
	with_state += begin->restored != NULL;
	replacing += options->replace;
	*a = (struct attached){.ifname = "s0", .ifindex = 3, .mode = on.mode ? "skb" : "native"};
	return 0;
}

int attach_upgrade(const char *ifname, bool pin, struct attached *a,
		   struct attach_replaced *replaced, struct policy_error *e)
{
	(void)pin;
	(void)replaced;
	assert_true(is_locked());
	if (on.no_upgrade)
		return policy_fail(e, 0, "%s: it cannot be replaced", ifname);
	upgrades++;
	*a = (struct attached){.ifname = "s0", .ifindex = 3, .mode = on.mode ? "skb" : "native"};
	return 0;
}

int change_apply(struct attached *a, const char *text, const struct set_texts *sets,
		 uint64_t trial_ns, struct plan *plan, struct policy_error *e)
{
	(void)text;
	(void)sets;
	(void)trial_ns;
	plan->bans_left_out = on.crowded;
	assert_false(is_locked()); /* it takes it */
	if (on.no_change)
		return policy_fail(e, 0, "%s: another changes it", a->ifname);
	changes++;
	return 0;
}

uint64_t copies_pending_ns(const struct attached *a)
{
	assert_int_equal(a->ifindex, 3);
	return on.pending;
}

void attached_release(struct attached *a)
{
	released++;
	memset(a, 0, sizeof(*a));
}

static bool is_unseen(void)
{
	return on.unseen_ns && now_ns >= on.unseen_ns && now_ns < on.seen_ns;
}

int attached_find(const char *ifname, struct attached *a, struct policy_error *e)
{
	(void)a;
	return policy_fail(e, 0, "%s: no pacer is there", ifname);
}

void copies_keep_values(const struct attached *a, struct policy *p)
{
	(void)a;
	(void)p;
	fail();
}

bool copies_frozen(const struct attached *a)
{
	assert_int_equal(a->ifindex, 3);
	return on.frozen;
}

bool load_trial_pending(const struct attached *a)
{
	assert_int_equal(a->ifindex, 3);
	return on.load_pending;
}

bool load_trial_lapsed(const struct attached *a)
{
	(void)a;
	fail();
	return false;
}

bool attached_same(const char *ifname, const struct attached *a)
{
	assert_string_equal(ifname, a->ifname);
	return (!on.gone_ns || now_ns < on.gone_ns) && !is_unseen() && !lost;
}

int attached_next(const char *ifname, struct attached *a, struct policy_error *e)
{
	assert_false(attached_same(ifname, a));
	if (is_unseen())
		return policy_fail(e, 0, "%s: it cannot be looked at", ifname);
	policy_explain(e, 0, "%s: no pacer is there", ifname);
	return 1;
}

bool attached_gone(const struct attached *a)
{
	(void)a;
	return on.is_off;
}

int attached_still(struct attached *a, struct policy_error *e)
{
	return on.is_off ? policy_fail(e, 0, "%s: its pacer was taken off", a->ifname) : 0;
}

int save_running(struct attached *a, const char *file, struct saved *saved, struct policy_error *e)
{
	*saved = (struct saved){.bytes = 4096};
	if (on.leaves && !lost) {
		on.leaves = false;
		lost = true;
		return policy_fail(e, 0, "%s: its pacer was taken off meanwhile", a->ifname);
	}
	if (on.no_save)
		return policy_fail(e, 0, "%s: cannot be written: No space left", file);
	saves++;
	return 0;
}

int save_gone(struct attached *a, const char *file, struct saved *saved, struct policy_error *e)
{
	assert_true(on.vanished && !released); /* its maps are there still */
	return save_running(a, file, saved, e);
}

int save_and_unload(struct attached *a, const char *file, struct saved *saved,
		    struct policy_error *e)
{
	taken_off++;
	return on.on_trial ? policy_fail(e, 0, "%s: a policy waits to be confirmed", a->ifname)
			   : save_running(a, file, saved, e);
}

int detach_left(const char *ifname, const struct pins_left *left, struct policy_error *e)
{
	(void)left;
	return on.left ? policy_fail(e, 0, "%s: it is off, and a pin is left", ifname) : 0;
}

/* ---- what is said, and who listens ---- */

static void note(char *to, size_t size, const char *format, va_list args)
{
	size_t n = strlen(to);

	vsnprintf(to + n, size - n, format, args);
	n = strlen(to);
	snprintf(to + n, size - n, "\n");
}

void complaint(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	note(said, sizeof(said), format, args);
	va_end(args);
}

int complain(const char *file, const struct policy_error *e)
{
	complaint("%s%s%s", file ? file : "", file ? ": " : "", e->text);
	return file ? EXIT_WRONG : EXIT_FAILED;
}

int misused(const char *verb, const char *format, ...)
{
	(void)format;
	complaint("%s is misused", verb);
	return EXIT_WRONG;
}

int misused_stream(const char *verb, const char *path)
{
	return strcmp(path, "-") ? EXIT_DONE : misused(verb, "%s", path);
}

bool several_all(const struct options *o)
{
	(void)o;
	return false;
}

/* The manager stands still until it hears: what is due then is told, of each the last. */
static bool ready_due, stopping_due;
static char status_due[100];

int notify_again(void)
{
	size_t n = strlen(told);

	if (now_ns < on.hears_ns)
		return EAGAIN;
	snprintf(told + n, sizeof(told) - n, "%s%s%s%s", ready_due ? "READY " : "",
		 stopping_due ? "STOPPING " : "", status_due,
		 ready_due || stopping_due || *status_due ? "\n" : "");
	ready_due = stopping_due = false;
	*status_due = 0;
	return 0;
}

int notify_ready(const char *status)
{
	ready_due = true;
	return notify_status("%s", status);
}

int notify_stopping(const char *status)
{
	stopping_due = true;
	return notify_status("%s", status);
}

int notify_status(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(status_due, sizeof(status_due), format, args);
	va_end(args);
	return notify_again();
}

int until_ended(enum ends_of of)
{
	assert_int_equal(of, ENDS_OF_SERVICE);
	return 0;
}

bool __wrap_ends_wait(uint64_t ns);
bool __wrap_ends_wait(uint64_t ns)
{
	now_ns += ns;
	return now_ns >= on.signal_ns;
}

int read_site_mode(const char *verb, const char *text, enum site_mode *mode)
{
	(void)verb;
	*mode = SITE_NATIVE;
	return text ? EXIT_WRONG : 0;
}

int read_policy(const char *file, char **text, struct policy **p)
{
	if (!strcmp(file, "none.yaml"))
		return EXIT_WRONG;
	*text = strdup("rules: []\n");
	*p = policy_parse(*text, strlen(*text), &error);
	assert_non_null(*p);
	return 0;
}

int output_sets(const struct policy *p, const struct set_texts *sets, struct output_sets *counted,
		struct policy_error *e)
{
	(void)p;
	(void)sets;
	(void)e;
	*counted = (struct output_sets){.all_bytes = 0};
	return 0;
}

int output_memory_error(const struct policy *p, uint64_t n, uint64_t set_bytes,
			struct policy_error *e)
{
	(void)p;
	(void)n;
	(void)set_bytes;
	(void)e;
	return 0;
}

void change_noted(struct attached *a)
{
	(void)a;
}

void joined_noted(const struct attached *a)
{
	(void)a;
}

void memory_noted(const struct attached *a, const struct policy *p, const char *from, bool restored)
{
	assert_int_equal(a->ifindex, 3);
	assert_non_null(p);
	assert_string_equal(from, "/dev/null");
	memory_asked = restored ? "as it was saved" : "as it was at load";
}

static uint32_t alsos; /* how often it was said where else it holds */

void output_also(const struct attached *a)
{
	assert_int_equal(a->ifindex, 3);
	alsos++;
}

void tags_noted(const struct attached *a)
{
	(void)a;
}

void result_lacks(void)
{
}

void result_failed(const struct policy_error *why)
{
	(void)why;
}

json_t *json_text(const char *name)
{
	return json_string(name);
}

int print_json(json_t *value)
{
	json_decref(value);
	return EXIT_FAILED;
}

int print_json_line(json_t *value)
{
	return print_json(value);
}

bool flushed(void)
{
	return !on.full;
}

/* ---- what it begins with ---- */

static const char *file;

static int begin(void **unused)
{
	(void)unused;
	memset(&on, 0, sizeof(on));
	on.cpus = 2;
	on.signal_ns = 60 * S;
	now_ns = 0;
	loads = with_state = replacing = upgrades = changes = 0;
	released = saves = put_up = taken_off = 0;
	*said = *told = *status_due = 0;
	lost = false;
	ready_due = stopping_due = false;
	memory_asked = NULL;
	alsos = 0;
	memset(&pacer, 0, sizeof(pacer));
	memset(&error, 0, sizeof(error));
	file = "/dev/null"; /* it is there */
	return 0;
}

static int serve_as(struct attach_options options)
{
	*error.text = 0;
	restored = (struct restored){0};
	return serve_begin("s0", &options, "rules: []\n", &policy, NULL, file, &pacer, &served,
			   &restored, &why, &error);
}

static int serve(void)
{
	return serve_as((struct attach_options){.direct = true});
}

static void test_of_its_state(void **unused)
{
	(void)unused;
	assert_int_equal(serve(), 0);
	assert_true(served == SERVED_RESTORED && with_state == 1 && !put_up && !*why.text);
	assert_true(restored.bans_left_out == 2 && restored.limits_left_out == 3);
	file = "/no/such/folder/s0.state";
	assert_int_equal(serve(), 0);
	assert_true(served == SERVED_LOADED && with_state == 1 && !*why.text);
}

/* Its limits do not fit; what else it has goes on, and it is said why. */
static void test_of_its_state_without_limits(void **unused)
{
	(void)unused;
	on.unfit_limits = true;
	assert_int_equal(serve(), 0);
	assert_true(served == SERVED_RESTORED && with_state == 1);
	assert_int_equal(restored.limits_left_out, 3 + 6);
	assert_string_equal(why.text, "s0.state: it does not fit; what was saved of some limits is "
				      "dropped, and the next save writes over it");
}

#define DROPPED "; what was saved is dropped, and the next save writes over it"

/* With new state rather than not at all; and it is said why. */
static void test_of_new_state(void **unused)
{
	bool *reason[] = {&on.unread, &on.unfit};
	const char *text[] = {"/dev/null: is damaged" DROPPED, "s0.state: it does not fit" DROPPED};

	for (size_t i = 0; i < ARRAY(reason); i++) {
		begin(unused);
		*reason[i] = true;
		assert_int_equal(serve(), 0);
		assert_true(served == SERVED_LOADED && !with_state && loads == 1);
		assert_string_equal(why.text, text[i]);
	}
	begin(unused);
	on.load_fails = 1;
	assert_int_equal(serve(), 0);
	assert_true(served == SERVED_LOADED && !with_state && loads == 2);
	assert_string_equal(why.text, "s0: no memory in the kernel" DROPPED);
	begin(unused);
	file = "/dev/null/s0.state"; /* whether it is there cannot be told */
	on.unread = true;
	assert_int_equal(serve(), 0);
	assert_string_equal(why.text, "/dev/null/s0.state: is damaged" DROPPED);
}

static void test_not_begun(void **unused)
{
	begin(unused);
	on.load_fails = 2;
	assert_int_equal(serve(), -1);
	assert_string_equal(error.text, "s0: no memory in the kernel");
	begin(unused);
	on.cpus = 0;
	assert_int_equal(serve(), -1);
	assert_true(!loads && !strcmp(error.text, "its CPUs cannot be read"));
	begin(unused);
	on.unfit = on.wrong = true;
	assert_int_equal(serve(), -1);
	assert_true(error.line == 7 && !loads);
	begin(unused);
	on.no_device = true;
	assert_int_equal(serve(), -1);
	begin(unused);
	on.unseen = true;
	assert_int_equal(serve(), -1);
	assert_int_equal(loads, 0);
}

/* Nobody may have put it up yet at the boot. */
static void test_put_up(void **unused)
{
	begin(unused);
	on.down = true;
	assert_int_equal(serve(), 0);
	assert_int_equal(put_up, 1);
	on.may_not = true;
	assert_int_equal(serve(), -1);
	assert_string_equal(error.text, "s0: cannot be put up: Operation not permitted");
	begin(unused);
	on.no_flags = true;
	assert_int_equal(serve(), -1);
	begin(unused);
	on.no_socket = true;
	assert_int_equal(serve(), -1);
	assert_string_equal(error.text, "s0: cannot be put up: Too many open files");
	assert_int_equal(loads, 0);
}

/* One that is there goes on with what it holds; of another version it is replaced, which is said.
 */
static void test_one_is_there(void **unused)
{
	begin(unused);
	on.paced = true;
	on.abi = PACER_ABI_VERSION;
	assert_int_equal(serve(), 0);
	assert_true(served == SERVED_TAKEN_OVER && upgrades == 1 && changes == 1 && !loads);
	on.pending = on.no_change = true; /* somebody tries a policy: that goes on */
	assert_int_equal(serve(), 0);
	assert_true(served == SERVED_TAKEN_OVER && upgrades == 2 && changes == 1 && !released);
	assert_string_equal(why.text, "s0: a policy waits to be confirmed: the service's own is "
				      "not put in force: apply it when that has ended");
	on.no_change = false;
	on.frozen = true;
	assert_int_equal(serve(), 0);
	assert_true(upgrades == 3 && changes == 2 && !*why.text);
	on.frozen = false;
	on.load_pending = on.no_change = true; /* of that nothing would be left */
	assert_int_equal(serve(), -1);
	assert_true(released == 1 && !strcmp(error.text, "s0: another changes it"));
	on.load_pending = on.pending = false;
	released = 0;
	assert_int_equal(serve(), -1);
	assert_true(released == 1 && !strcmp(error.text, "s0: another changes it"));
	on.no_upgrade = true;
	assert_int_equal(serve(), -1);
	assert_true(released == 1 && !strcmp(error.text, "s0: it cannot be replaced"));
	assert_false(is_locked());
	on.no_lock = true;
	assert_int_equal(serve(), -1);
	assert_string_equal(error.text, "the lock cannot be had");
	begin(unused);
	on.paced = on.lapsed = true; /* nobody's, and it has nothing */
	on.abi = PACER_ABI_VERSION;
	assert_int_equal(serve(), 0);
	assert_true(served == SERVED_RESTORED && !upgrades && !replacing && with_state == 1);
	on.no_way = true;
	assert_int_equal(serve(), -1);
	assert_string_equal(error.text, "s0: what lapsed cannot be taken off");
	begin(unused);
	on.paced = true;
	on.abi = 3;
	assert_int_equal(serve(), 0); /* what was saved goes on */
	assert_true(served == SERVED_RESTORED && replacing == 1 && !*why.text);
	file = "/no/such/folder/s0.state";
	assert_int_equal(serve(), 0);
	assert_true(served == SERVED_LOADED && replacing == 2);
	assert_non_null(strstr(why.text, "its pacer had ABI version 3"));
	file = "/dev/null";
	on.unread = true;
	assert_int_equal(serve(), 0);
	assert_string_equal(why.text,
			    "/dev/null: is damaged" DROPPED); /* and not that it is gone */
	assert_false(is_locked());
	on.no_lock = true;
	assert_int_equal(serve(), -1);
	assert_string_equal(error.text, "the lock cannot be had");
}

/* What ends of it, as its policy has no room for that, is counted. */
static void test_one_is_there_with_more_bans(void **unused)
{
	begin(unused);
	on.paced = true;
	on.abi = PACER_ABI_VERSION;
	on.crowded = 186;
	assert_int_equal(serve(), 0);
	assert_int_equal(restored.bans_left_out, 186);
	on.pending = true;
	assert_int_equal(serve(), 0);
	assert_int_equal(restored.bans_left_out, 0);
}

/* How it is attached stays: what somebody asked for beside that is refused, and the rest is not. */
static void test_one_is_there_otherwise(void **unused)
{
	begin(unused);
	on.paced = true;
	on.abi = PACER_ABI_VERSION;
	on.mode = SITE_SKB;
	assert_int_equal(serve_as((struct attach_options){.mode_given = true}), -1);
	assert_string_equal(error.text,
			    "s0: its pacer is in skb mode: serve it without --mode native, or save "
			    "it and take it off before: `xdp-pacer save s0 FILE --and-unload`");
	assert_int_equal(upgrades, 0);
	assert_int_equal(serve_as((struct attach_options){.mode = SITE_SKB, .mode_given = true}),
			 0);
	assert_int_equal(serve_as((struct attach_options){.mode = SITE_NATIVE}), 0);
	on.dispatched = true;
	assert_int_equal(serve_as((struct attach_options){.mode = SITE_NATIVE}), 0);
	assert_int_equal(upgrades, 3);
	assert_int_equal(serve(), -1);
	assert_string_equal(error.text,
			    "s0: its pacer is under the libxdp dispatcher: serve it without "
			    "--direct, or save it and take it off before: `xdp-pacer save s0 FILE "
			    "--and-unload`");
	on.abi = 3; /* that one is not taken over */
	assert_int_equal(serve_as((struct attach_options){.mode_given = true}), 0);
	assert_true(upgrades == 3 && replacing == 1);
}

/* ---- what it says ---- */

static int run_with(struct options o)
{
	char name[] = "s0", *args[] = {name};
	int code, null = open("/dev/null", O_WRONLY | O_CLOEXEC), out;

	o.args = args;
	o.n_args = 1;
	o.state = "/dev/null";
	o.policy = o.policy ? o.policy : "a.yaml";
	fflush(stdout);
	out = dup(1);
	dup2(null, 1);
	code = verb_serve.run(&o);
	fflush(stdout);
	dup2(out, 1);
	close(out);
	close(null);
	return code;
}

static int run(void)
{
	return run_with((struct options){.every_ns = 0});
}

static void test_served(void **unused)
{
	begin(unused);
	on.signal_ns = 25 * 60 * S;
	assert_int_equal(run(), EXIT_DONE);
	assert_true(saves == 3 && released == 1); /* every ten minutes, and at the end */
	assert_string_equal(said, "");
	assert_string_equal(told, "READY pacing\n"
				  "its state was saved: 4096 bytes\n"
				  "its state was saved: 4096 bytes\n"
				  "STOPPING saving its state\n");
	begin(unused);
	assert_int_equal(run_with((struct options){.every_ns = 20 * S, .and_unload = true}),
			 EXIT_DONE);
	assert_true(saves == 3 && taken_off == 1);
}

/* New state is as large as the policy asks for; of other state it is looked whether it is. */
static void test_memory(void **unused)
{
	begin(unused);
	assert_int_equal(run(), EXIT_DONE);
	assert_string_equal(memory_asked, "as it was saved");
	begin(unused);
	on.paced = true;
	on.abi = PACER_ABI_VERSION;
	assert_int_equal(run(), EXIT_DONE);
	assert_string_equal(memory_asked, "as it was at load");
	begin(unused);
	on.unread = true;
	assert_int_equal(run(), EXIT_DONE);
	assert_null(memory_asked);
	begin(unused);
	on.paced = on.no_upgrade = true;
	on.abi = PACER_ABI_VERSION;
	assert_int_equal(run(), EXIT_FAILED);
	assert_null(memory_asked);
}

/* The policy of one that is taken over is in force on those that share its state, too. */
static void test_shared(void **unused)
{
	begin(unused);
	assert_int_equal(run(), EXIT_DONE);
	assert_int_equal(alsos, 0);
	on.paced = true;
	on.abi = PACER_ABI_VERSION;
	assert_int_equal(run(), EXIT_DONE);
	assert_int_equal(alsos, 1);
	on.pending = true; /* nothing was put in force */
	assert_int_equal(run(), EXIT_DONE);
	assert_int_equal(alsos, 1);
}

/* What cannot be saved is said each time, and it goes on. */
static void test_not_saved(void **unused)
{
	begin(unused);
	on.no_save = true;
	on.signal_ns = 11 * 60 * S;
	assert_int_equal(run(), EXIT_FAILED);
	assert_string_equal(
	    said, "/dev/null: cannot be written: No space left\n"
		  "its state was not saved at the end, and the pacer goes on: /dev/null: cannot be "
		  "written: No space left\n");
	begin(unused);
	on.no_save = true;
	assert_int_equal(run_with((struct options){.and_unload = true}), EXIT_FAILED);
	assert_string_equal(said, "it was not saved and taken off: /dev/null: cannot be written: "
				  "No space left\n");
	begin(unused);
	on.no_save = on.is_off = true; /* as somebody has taken it off meanwhile */
	assert_int_equal(run(), EXIT_FAILED);
	assert_string_equal(said, "its state was not saved at the end: /dev/null: cannot be "
				  "written: No space left\n");
	begin(unused);
	on.left = true;
	assert_int_equal(run_with((struct options){.and_unload = true}), EXIT_FAILED);
	assert_string_equal(said, "s0: it is off, and a pin is left\n");
}

/* Where it cannot be taken off it is saved, unless it is off all the same. */
static void test_saved_at_least(void **unused)
{
	begin(unused);
	on.on_trial = true;
	assert_int_equal(run_with((struct options){.and_unload = true}), EXIT_FAILED);
	assert_string_equal(said,
			    "it was not saved and taken off: s0: a policy waits to be confirmed\n"
			    "its state was saved, and the pacer goes on\n");
	assert_int_equal(saves, 1);
	begin(unused);
	on.on_trial = on.is_off = true;
	assert_int_equal(run_with((struct options){.and_unload = true}), EXIT_FAILED);
	assert_string_equal(said,
			    "it was not saved and taken off: s0: a policy waits to be confirmed\n");
	assert_int_equal(saves, 0);
}

/* Somebody else took it off, which is no failure of the service. */
static void test_taken_off(void **unused)
{
	begin(unused);
	on.gone_ns = 10 * S;
	assert_int_equal(run(), EXIT_DONE);
	assert_string_equal(said, "it is no longer served: s0: no pacer is there\n");
	assert_true(!saves && now_ns == 10 * S);
	begin(unused);
	on.gone_ns = 10 * S;
	on.renamed = true;
	assert_int_equal(run(), EXIT_DONE);
	assert_string_equal(said, "s0: it is no longer served: its name is new0 now, and its pacer "
				  "goes on there: serve new0\n");
	begin(unused);
	on.gone_ns = on.signal_ns = 10 * S; /* while it was told to end: nobody asks why */
	assert_int_equal(run(), EXIT_DONE);
	assert_string_equal(said, "");
}

/* It is served on, and nothing is saved of what may be another's; it is said once each time. */
static void test_unseen_for_a_while(void **unused)
{
	begin(unused);
	on.unseen_ns = 11 * S;
	on.seen_ns = 31 * S;
	on.signal_ns = 40 * S;
	assert_int_equal(run_with((struct options){.every_ns = 10 * S}), EXIT_DONE);
	assert_string_equal(said, "s0: it cannot be looked at; it is served on, and looked for "
				  "again every 2 s\n");
	assert_int_equal(saves, 3); /* after 10 s, once it is seen again, and at the end */
	begin(unused);
	on.unseen_ns = 11 * S;
	on.seen_ns = 100 * S;
	on.signal_ns = 40 * S;
	on.no_save = true; /* as where it cannot be told whose state that is */
	assert_int_equal(run(), EXIT_FAILED);
	assert_non_null(strstr(said, "its state was not saved at the end, and the pacer goes on"));
}

/* What it held is for the next interface of that name. */
static void test_interface_gone(void **unused)
{
	begin(unused);
	on.gone_ns = 10 * S;
	on.vanished = true;
	assert_int_equal(run(), EXIT_DONE);
	assert_true(saves == 1 && released == 1);
	assert_string_equal(said, "it is no longer served: s0: no pacer is there\n");
	begin(unused);
	on.gone_ns = on.signal_ns = 10 * S; /* which is how systemd ends it then */
	on.vanished = true;
	assert_int_equal(run(), EXIT_DONE);
	assert_true(saves == 1 && !*said);
	begin(unused);
	on.gone_ns = on.signal_ns = 10 * S;
	on.vanished = on.no_save = true;
	assert_int_equal(run(), EXIT_DONE);
	assert_string_equal(said, "its state was not saved at the end: /dev/null: cannot be "
				  "written: No space left\n");
	begin(unused);
	on.gone_ns = 10 * S;
	on.unnamed = true; /* it may be there */
	assert_int_equal(run(), EXIT_DONE);
	assert_int_equal(saves, 0);
}

/* The same where it goes while the last save waits for the lock. What is there by then is
 * another's. */
static void test_interface_gone_at_the_end(void **unused)
{
	for (int and_unload = 0; and_unload < 2; and_unload++) {
		const struct options o = {.and_unload = and_unload};

		begin(unused);
		on.leaves = on.vanished = on.is_off = true;
		assert_int_equal(run_with(o), EXIT_DONE);
		assert_true(saves == 1 && released == 1);
		assert_string_equal(said, "s0 has gone, and its state was saved; if it is in "
					  "another network namespace, its pacer goes on there\n");
		begin(unused);
		on.leaves = on.vanished = on.is_off = on.no_save = true;
		assert_int_equal(run_with(o), EXIT_FAILED);
		assert_string_equal(said, "its state was not saved at the end: /dev/null: cannot "
					  "be written: No space left\n");
	}
}

/* Somebody's wish, another name, or what cannot be told: nothing is saved of it. */
static void test_given_way_at_the_end(void **unused)
{
	bool *const how[] = {&on.is_off, &on.renamed, &on.unnamed};

	for (size_t i = 0; i < ARRAY(how); i++) {
		begin(unused);
		on.leaves = on.is_off = *how[i] = true;
		assert_int_equal(run(), EXIT_FAILED);
		assert_string_equal(said, "its state was not saved at the end: s0: its pacer was "
					  "taken off meanwhile\n");
		assert_int_equal(saves, 0);
	}
}

/* It paces, saves and ends all the same; what is due is told in the round in which it is heard. */
static void test_systemd_does_not_hear(void **unused)
{
	begin(unused);
	on.hears_ns = 100 * S;
	assert_int_equal(run_with((struct options){.every_ns = 20 * S}), EXIT_DONE);
	assert_true(saves == 3 && !*told);
	begin(unused);
	on.hears_ns = 24 * S;
	on.signal_ns = 30 * S;
	assert_int_equal(run_with((struct options){.every_ns = 20 * S}), EXIT_DONE);
	assert_string_equal(told, "READY its state was saved: 4096 bytes\n"
				  "STOPPING saving its state\n");
	assert_int_equal(saves, 2);
}

/* It serves even where it cannot print that; without memory for that it ends, and says why. */
static void test_nobody_hears(void **unused)
{
	begin(unused);
	on.full = true;
	assert_int_equal(run(), EXIT_DONE);
	assert_int_equal(saves, 1);
	begin(unused);
	assert_int_equal(run_with((struct options){.json = true}), EXIT_FAILED);
	assert_true(released == 1 && !saves && !*told);
}

static void test_wrong(void **unused)
{
	begin(unused);
	assert_int_equal(run_with((struct options){.mode = "fast"}), EXIT_WRONG);
	assert_int_equal(run_with((struct options){.policy = "none.yaml"}), EXIT_WRONG);
	on.unfit = on.wrong = true;
	assert_int_equal(run(), EXIT_WRONG);
	assert_string_equal(said, "a.yaml: it is wrong\n");
	begin(unused);
	on.load_fails = 2;
	assert_int_equal(run(), EXIT_FAILED);
	assert_string_equal(said, "s0: no memory in the kernel\n");
	begin(unused);
	on.unread = true;
	assert_int_equal(run(), EXIT_DONE);
	assert_string_equal(said, "/dev/null: is damaged" DROPPED "\n");
	begin(unused);
	on.no_folder = true; /* said at the start, and it serves */
	assert_int_equal(run(), EXIT_DONE);
	assert_string_equal(said, "/dev/null: its folder cannot be written\n");
	begin(unused);
	assert_int_equal(verb_serve.run(&(struct options){.n_args = 1, .policy = "a.yaml"}),
			 EXIT_WRONG);
	assert_int_equal(verb_serve.run(&(struct options){.n_args = 1, .state = "s"}), EXIT_WRONG);
	assert_int_equal(verb_serve.run(&(struct options){.policy = "a.yaml", .state = "s"}),
			 EXIT_WRONG);
}

#define CASE(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_of_its_state),
	    CASE(test_of_its_state_without_limits),
	    CASE(test_of_new_state),
	    CASE(test_not_begun),
	    CASE(test_put_up),
	    CASE(test_one_is_there),
	    CASE(test_one_is_there_otherwise),
	    CASE(test_one_is_there_with_more_bans),
	    CASE(test_shared),
	    CASE(test_served),
	    CASE(test_memory),
	    CASE(test_not_saved),
	    CASE(test_taken_off),
	    CASE(test_saved_at_least),
	    CASE(test_taken_off),
	    CASE(test_nobody_hears),
	    CASE(test_systemd_does_not_hear),
	    CASE(test_wrong),
	    CASE(test_unseen_for_a_while),
	    CASE(test_interface_gone),
	    CASE(test_interface_gone_at_the_end),
	    CASE(test_given_way_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
