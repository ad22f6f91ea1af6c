/* SPDX-License-Identifier: GPL-2.0-only */
/* status: what is attached where. */
#include "cli/cmd.h"
#include "cli/emit.h"
#include "cli/output.h"
#include "live/attached.h"

struct listing {
	int n, failed;
};

static int list(const char *ifname, void *arg)
{
	struct listing *l = arg;
	struct policy_error error = {0};
	struct attached a;

	if (attached_find(ifname, &a, &error)) {
		complain(NULL, &error);
		l->failed++; /* those that can be read are listed all the same */
		return 0;
	}
	l->n++;
	emit_object("");
	output_status(&a);
	emit_close();
	attached_release(&a);
	return 0;
}

static int status_all(const struct options *o)
{
	struct listing l = {0, 0};
	struct policy_error error = {0};
	int result;

	emit_begin(o->json);
	emit_array("");
	result = attached_each(list, &l, &error);
	emit_close();
	if (result)
		complain(NULL, &error);
	if (result || (l.failed && !l.n)) {
		emit_drop();
		return EXIT_FAILED;
	}
	if (!l.n)
		emit_text("no interface of this network namespace has a pacer\n");
	result = emit_end();
	return l.failed ? EXIT_FAILED : result;
}

int show_status(struct attached *a, const struct options *o)
{
	emit_begin(o->json);
	emit_object("");
	output_status(a);
	emit_close();
	return emit_end();
}

static int run_status(struct options *o)
{
	if (!o->n_args)
		return status_all(o);
	return with_pacer(o, show_status);
}

const struct verb verb_status = {"status",
				 "[IFACE...]",
				 "what is attached where, and by which policy",
				 NULL,
				 run_status,
				 .group = VERBS_LOOK,
				 .interfaces = INTERFACES_ONLY,
				 .example = "xdp-pacer status"};
