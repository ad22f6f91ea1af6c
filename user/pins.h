/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what a load or an unload under the libxdp dispatcher leaves in the BPF file system where
 * it was killed: pins of a dispatcher that no interface carries, which hold programs and their
 * memory for ever.
 *
 * Concurrency: under libxdp's own lock, so that no one else is half way.
 * Error: what may still be at work somewhere is left alone, since to take its pins away is to
 * detach it: a dispatcher of another network namespace, and all of them where processes of the
 * machine are out of sight.
 */
#ifndef PACER_PINS_H
#define PACER_PINS_H

/* Remove the pins of this interface's index that no interface uses; how many dispatchers' it was.
 */
int pins_sweep(int ifindex);

#endif
