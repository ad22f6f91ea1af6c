/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the mark of a tool in the locks of bans that it enters (ban.h). Whoever enters bans into
 * the table of a pacer at work includes this before all else, and holds the lock of changes
 * (copies.h). So a lock with the mark is held by a tool that was killed, or by the caller.
 */
#ifndef PACER_BAN_MARK_H
#define PACER_BAN_MARK_H

#define PACER_LOCK_MARK 0x10000u

#include "ban.h"

_Static_assert(PACER_LOCK_MARK == PACER_BAN_BY_TOOL, "packets know the mark");

#endif
