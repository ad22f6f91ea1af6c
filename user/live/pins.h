/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: removes what a killed load or unload under the libxdp dispatcher left in the BPF file
 * system. These are pins of a dispatcher that no interface carries. They would hold programs and
 * their memory for ever.
 *
 * Concurrency: it holds libxdp's own lock, so nobody else is half way. Error: removing the pins of
 * a dispatcher at work would detach it. So it leaves alone what another network namespace may use.
 * If it cannot see all processes of the machine, it removes nothing.
 */
#ifndef PACER_PINS_H
#define PACER_PINS_H

#include <stdbool.h>

/*
 * Calls `each` for every unused dispatcher's directory, whatever interface it was for, and removes
 * it unless `look` is true. Returns how many there were.
 */
int pins_clean(bool look, void (*each)(const char *path, void *arg), void *arg);

/* Removes the unused pins of this interface's index. Returns the number of dispatchers removed. */
int pins_sweep(int ifindex);

#endif
