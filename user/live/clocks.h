/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: the clocks of the machine, read at one moment (absence.h). */
#ifndef PACER_CLOCKS_H
#define PACER_CLOCKS_H

#include "plan/absence.h"

/*
 * Reads them. Where the kernel does not say which boot this is, boot_id is empty: of a save, which
 * has to tell it to others, callers refuse that. Any number of callers.
 */
struct clocks clocks_read(void);

#endif
