/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: whether any interface of the machine carries a program, in whatever network namespace.
 * A namespace is found by the processes in it, by its name in /run/netns, by a mount of it in any
 * mount namespace, and by who has it open, as lsns finds it.
 */
#ifndef PACER_CARRIED_H
#define PACER_CARRIED_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * True: no interface carries it and no process has it open, for certain. Only for a process of one
 * thread: meanwhile it is in other network namespaces. It ends where it cannot come back.
 */
bool carried_by_none(uint32_t prog_id);
/* Does an interface carry it, whoever has it open? 1, 0; -1: it cannot be told. One thread, too. */
int carried_by_any(uint32_t prog_id);

/* The next of a folder; NULL with *unseen true: that cannot be told. */
struct dirent *folder_next(DIR *d, bool *unseen);

#endif
