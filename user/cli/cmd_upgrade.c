/* SPDX-License-Identifier: GPL-2.0-only */
/* upgrade: this version's program in the place of the one at work, with its policy and its state.
 */
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/emit.h"
#include "cli/output.h"
#include "config/text.h"
#include "live/attach.h"
#include "live/copies.h"

static int report(const struct attached *a, const struct options *o,
		  const struct attach_replaced *replaced)
{
	emit_begin(o->json);
	emit_object("");
	emit_string("interface", a->ifname, "%s: ", printable(a->ifname).text);
	emit_uint("program_id", a->prog_id, "program %u of this version, ", a->prog_id);
	emit_object("replaced");
	emit_uint("program_id", replaced->program_id,
		  "in the place of program %u: ", replaced->program_id);
	emit_string("state", "kept", "its policy, state and counters go on\n");
	emit_close();
	output_partners(a, "its state is that of ",
			", which has a program of its own: upgrade that, too, unless it was\n");
	emit_close();
	return emit_end();
}

static int run_upgrade(struct options *o)
{
	struct attach_replaced replaced;
	struct policy_error error = {0};
	struct attached a;
	int fd, code;

	if (o->n_args != 1)
		return misused("upgrade", "it wants one interface or more");
	/* Changes of others wait; a pacer of another ABI has no lock, and is refused below. */
	fd = copies_lock(&error);
	if (fd < 0)
		return complain(NULL, &error);
	if (attach_upgrade(o->args[0], o->load.pin, &a, &replaced, &error)) {
		code = complain(NULL, &error);
	} else {
		change_noted(&a);
		joined_noted(&a);
		tags_noted(&a);
		code = report(&a, o, &replaced);
		attached_release(&a);
	}
	close(fd);
	return code;
}

static const struct option_row upgrade_options[] = {
    {"pin", 0, NULL, "with pins for other tools from now on", OPTION_FLAG(load.pin)},
    {0},
};

const struct verb verb_upgrade = {"upgrade",
				  "IFACE...",
				  "put this version's program in place, keeping all state",
				  upgrade_options,
				  run_upgrade,
				  .group = VERBS_ARG,
				  .interfaces = INTERFACES_ONLY,
				  .any_version = true,
				  .example = "xdp-pacer upgrade eth0"};
