/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "live/change.h"
#include "live/copies.h"
#include "live/device.h"
#include "live/host.h"
#include "live/load_trial.h"
#include "live/site.h"
#include "live/state_file.h"
#include "sets/texts.h"

/* An interface that is down takes no pacer, and at the boot nobody may have put it up yet. */
static int put_up(const char *ifname, struct policy_error *error)
{
	struct ifreq request = {0};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), failed;

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", ifname);
	failed = fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request);
	if (!failed && !(request.ifr_flags & IFF_UP)) {
		request.ifr_flags |= IFF_UP;
		failed = ioctl(fd, SIOCSIFFLAGS, &request);
	}
	if (fd >= 0)
		close(fd);
	return failed ? policy_fail(error, 0, "%s: cannot be put up: %s", ifname, strerror(errno))
		      : 0;
}

struct beginning {
	const char *ifname;
	const struct attach_options *options;
	const char *text;
	const struct policy *policy;
	const struct set_texts *sets;
};

/* The state does not fit the policy. */
#define UNFIT (-2)

static int load(const struct beginning *b, struct state *state, struct attached *a,
		struct restored *restored, struct policy_error *error)
{
	static struct pacer_policy bin;
	static struct plan plan;
	const struct clocks now = clocks_read();
	int cpus = host_cpus(error);
	struct compile_host host = {host_resolution_ns(), now.mono_ns, cpus};
	struct attach_replaced replaced;
	struct object_begin begin;
	int fd = -1, result;

	if (cpus < 1)
		return -1;
	if (state && restore_plan(state, b->policy, &now, &host, &bin, &plan, restored, error))
		return UNFIT;
	if (!state && compile_policy(b->policy, NULL, &host, &bin, &plan, error))
		return -1;
	begin = (struct object_begin){.policy = b->policy,
				      .bin = &bin,
				      .plan = &plan,
				      .sets = b->sets,
				      .text = b->text,
				      .lines = plan.lines,
				      .resolution_ns = host.resolution_ns,
				      .tools = b->options->pin,
				      .restored = state};
	/* Two that take a pacer's place at once would leave two, under a dispatcher. */
	if (b->options->replace && (fd = copies_lock(error)) < 0)
		return -1;
	result = attach_pacers(&b->ifname, 1, b->options, &begin, a, &replaced, error);
	if (fd >= 0)
		close(fd);
	return result;
}

/*
 * What the policy cannot go on with is forgotten: limits by values that it lacks, and, of a state
 * that is unfit without them, those of the rules that make it so.
 */
static int restore(const struct beginning *b, const char *file, bool unfit, struct attached *a,
		   struct restored *restored, struct policy_error *error)
{
	struct compile_host host = {host_resolution_ns(), host_now_ns(), host_cpus(error)};
	struct state state;
	size_t forgotten;
	int result;

	if (host.cpus < 1 || state_read(file, &state, error))
		return -1;
	forgotten = restore_forget(&state, b->policy);
	if (unfit)
		forgotten += restore_forget_unfit(&state, b->policy, &host);
	result = load(b, &state, a, restored, error);
	state_free(&state);
	if (!result)
		restored->limits_left_out = forgotten;
	return result;
}

/* Of the file no more is used: who wants it for something has to copy it. */
static void say_dropped(const char *of, struct policy_error *why)
{
	policy_append(why, "; %s is dropped, and the next save writes over it", of);
}

/* It is better to pace with less of the state, or with a new one, than not at all. */
static int load_or_restore(const struct beginning *b, const char *file, struct attached *a,
			   enum served *served, struct restored *restored, struct policy_error *why,
			   struct policy_error *error)
{
	struct policy_error again = {0};
	int result;

	*served = SERVED_RESTORED;
	if (faccessat(AT_FDCWD, file, F_OK, AT_EACCESS) && errno == ENOENT) {
		*served = SERVED_LOADED;
		return load(b, NULL, a, NULL, error);
	}
	result = restore(b, file, false, a, restored, why);
	if (!result)
		why->text[0] = 0;
	else if (result == UNFIT)
		result = restore(b, file, true, a, restored, &again);
	if (*why->text)
		say_dropped(result ? "what was saved" : "what was saved of some limits", why);
	if (!result)
		return 0;
	*served = SERVED_LOADED;
	return load(b, NULL, a, NULL, error);
}

/*
 * The program is replaced even by the same: which one it is cannot be told from outside. A policy
 * that somebody tries goes on: it is better to pace by that than not to begin.
 */
static int take_over(const struct beginning *b, struct attached *a, struct restored *restored,
		     struct policy_error *why, struct policy_error *error)
{
	static struct plan plan;
	struct attach_replaced replaced;
	int fd = copies_lock(error), result;

	*restored = (struct restored){.bans_left_out = 0};
	if (fd < 0)
		return -1;
	result = attach_upgrade(b->ifname, b->options->pin, a, &replaced, error);
	close(fd);
	if (result)
		return -1;
	/* Of a load on trial nothing would be left; and what a killed save froze is no trial. */
	if (copies_pending_ns(a) && !copies_frozen(a) && !load_trial_pending(a)) {
		policy_explain(why, 0,
			       "%s: a policy waits to be confirmed: the service's own is not put "
			       "in force: apply it when that has ended",
			       b->ifname);
		return 0;
	}
	result = change_apply(a, b->text, b->sets, 0, &plan, error);
	restored->bans_left_out = plan.bans_left_out;
	if (result >= 0)
		return 0;
	attached_release(a);
	return -1;
}

/* How a pacer is attached does not change while it is taken over. */
static int is_as_asked(const char *ifname, const struct site *site,
		       const struct attach_options *options, struct policy_error *error)
{
	if (options->mode_given && options->mode != site->mode)
		return policy_fail(error, 0,
				   "%s: its pacer is in %s mode: serve it without --mode %s, or "
				   "save it and take it off before: `xdp-pacer save %s FILE "
				   "--and-unload`",
				   ifname, site_mode_name(site->mode),
				   site_mode_name(options->mode), ifname);
	if (options->direct && site->dispatched)
		return policy_fail(error, 0,
				   "%s: its pacer is under the libxdp dispatcher: serve it without "
				   "--direct, or save it and take it off before: `xdp-pacer save "
				   "%s FILE --and-unload`",
				   ifname, ifname);
	return 0;
}

static int look(const char *ifname, const struct attach_options *options, bool *paced,
		uint32_t *abi, struct policy_error *error)
{
	int result = 0, ifindex = device_index(ifname, error);
	struct site site;

	if (ifindex < 0 || site_open(ifname, ifindex, &site, error))
		return -1;
	*paced = site.pacer;
	*abi = site.abi;
	if (site.pacer && site.abi == PACER_ABI_VERSION)
		result = is_as_asked(ifname, &site, options, error);
	site_close(&site);
	return result;
}

int serve_begin(const char *ifname, const struct attach_options *options, const char *text,
		const struct policy *policy, const struct set_texts *sets, const char *file,
		struct attached *a, enum served *served, struct restored *restored,
		struct policy_error *why, struct policy_error *error)
{
	struct attach_options replacing = *options;
	struct beginning b = {ifname, &replacing, text, policy, sets};
	uint32_t abi = 0;
	bool paced = false;

	*why = (struct policy_error){0};
	if (load_trial_make_way(ifname, error) || look(ifname, options, &paced, &abi, error) ||
	    put_up(ifname, error))
		return -1;
	if (paced && abi == PACER_ABI_VERSION) {
		*served = SERVED_TAKEN_OVER;
		return take_over(&b, a, restored, why, error);
	}
	replacing.replace = paced;
	if (load_or_restore(&b, file, a, served, restored, why, error))
		return -1;
	if (paced && *served == SERVED_LOADED && !*why->text)
		policy_explain(why, 0,
			       "%s: its pacer had ABI version %u, this tool has %u: its state is "
			       "gone",
			       ifname, abi, PACER_ABI_VERSION);
	return 0;
}
