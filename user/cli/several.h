/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: a verb for several interfaces, or for `all` that have a pacer: one after the other. */
#ifndef PACER_SEVERAL_H
#define PACER_SEVERAL_H

#include "cli/cmd.h"

/*
 * Is the first argument `all`, and no interface's name? For verbs that see to their interfaces by
 * themselves and do not take it.
 */
bool several_all(const struct options *o);
/* 0: `all`, where no interface has that name, is not one of several names. Else the exit code. */
int several_all_alone(const char *verb, const struct options *o, int n);

/*
 * 0: the first n arguments are short enough to be interfaces' own names, and are kept whole where
 * those are. Else the exit code, after it was said whose name it is.
 */
int several_fit(const struct options *o, int n);

/*
 * Runs the verb, once for each interface that its arguments begin with. Of several it is one result
 * (emit_many_begin). What changes something is done once for interfaces that share their state, and
 * for none if one of them has no pacer. Of a capture (--replay) no argument is an interface.
 * Returns the exit code, the worst of all.
 */
int several_run(const struct verb *verb, struct options *options);

#endif
