/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: where a file of a policy is looked for. A name that does not begin with / is of the
 * folder in which the command runs, which is / for the service.
 */
#ifndef PACER_WHOLE_PATH_H
#define PACER_WHOLE_PATH_H

#include <stddef.h>

/*
 * The folder and the name, in buf; the name itself where it is whole, the folder is not known, or
 * buf too small. Any number of callers.
 */
const char *whole_path(const char *name, char *buf, size_t size);

#endif
