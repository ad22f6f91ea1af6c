/* SPDX-License-Identifier: GPL-2.0-only */
/* What became of saved state: what goes on, what does not, and how long it was away. */
#include <stdio.h>

#include "cli/emit.h"
#include "cli/output.h"
#include "config/units.h"
#include "live/restore.h"

static const char *by_name(enum absence_by by)
{
	switch (by) {
	case ABSENCE_SAME_BOOT:
		return "same_boot";
	case ABSENCE_SINCE_BOOT:
		return "since_boot";
	case ABSENCE_BY_DAY:
		return "clock_of_day";
	case ABSENCE_ANY_BOOT:
		return "any_boot";
	}
	return "?";
}

static const char *by_text(enum absence_by by)
{
	switch (by) {
	case ABSENCE_SAME_BOOT:
		return "exactly, as it was saved in this boot";
	case ABSENCE_SINCE_BOOT:
		return "since the boot; what the machine was off counts as none: its clock of the "
		       "day was not set by a time server, or is behind";
	case ABSENCE_BY_DAY:
		return "by the clock of the day, which a time server had set";
	case ABSENCE_ANY_BOOT:
		return "at least; the kernel does not say whether this is the boot of the save: is "
		       "/proc mounted?";
	}
	return "?";
}

static void emit_left_out(const struct restored *r)
{
	emit_object("left_out");
	emit_uint("limits", r->limits_left_out,
		  r->limits_left_out ? "  %zu limit%s that the policy cannot go on with\n" : NULL,
		  r->limits_left_out, units_plural(r->limits_left_out));
	emit_uint("bans", r->bans_left_out,
		  r->bans_left_out ? "  %zu ban%s found no room in the policy's table of bans\n"
				   : NULL,
		  r->bans_left_out, units_plural(r->bans_left_out));
	emit_uint("allowed", r->allowed_left_out,
		  r->allowed_left_out ? "  %zu allow-list entr%s: the time may be over\n" : NULL,
		  r->allowed_left_out, r->allowed_left_out == 1 ? "y" : "ies");
	emit_uint("counters", r->counters_left_out,
		  r->counters_left_out
		      ? "  the counters of %zu rule%s that the policy does not have\n"
		      : NULL,
		  r->counters_left_out, units_plural(r->counters_left_out));
	emit_close();
}

void output_restored(const struct restored *r)
{
	bool left_out =
	    r->limits_left_out || r->bans_left_out || r->allowed_left_out || r->counters_left_out;
	char away[64];

	emit_object("restored");
	emit_object("limits");
	emit_uint("kept", r->limits_kept, "restored: %zu limit%s kept %s state, ", r->limits_kept,
		  units_plural(r->limits_kept), r->limits_kept == 1 ? "its" : "their");
	emit_uint("new", r->limits_new, "%zu new, ", r->limits_new);
	emit_uint("retired", r->limits_draining, "%zu retired; ", r->limits_draining);
	emit_close();
	emit_uint("bans", r->bans, "%zu ban%s, ", r->bans, units_plural(r->bans));
	emit_uint("allowed", r->allowed, "%zu by hand on the allow-list\n", r->allowed);
	emit_uint(
	    "away_ns", r->absence.at_least_ns, "away for %s, ",
	    units_duration_text(r->absence.at_least_ns / 1000000 * 1000000, away, sizeof(away)));
	emit_string("away_by", by_name(r->absence.by), "%s\n", by_text(r->absence.by));
	if (left_out)
		emit_text("left out:\n");
	emit_left_out(r);
	emit_close();
}
