/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the secrets that a pacer's hash is keyed with, of which one is in force.
 *
 * Functions return 0, or -1 with *error filled. Who calls them holds the lock (copies.h).
 */
#ifndef PACER_SECRET_H
#define PACER_SECRET_H

#include "live/attached.h"

/* Was the one in force drawn by the program itself, without a tool (hash.h says what that is
 * worth)?
 */
bool secret_is_weak(const struct attached *a);
/*
 * Sees that there is a first one, as the first packet would. Like that, it leaves a word that is
 * there already.
 */
int secret_ready(struct attached *a, struct policy_error *error);
/* Draws a new one, in the place that no packet asks for. */
int secret_draw(struct attached *a, uint32_t which, struct policy_error *error);
/*
 * Bans go to where the policy's secret has them, if they do not stand there yet (rotate.h). What
 * was cut off is taken up by the next change.
 */
int secret_move_bans(struct attached *a, struct pacer_policy *p, struct policy_error *error);

#endif
