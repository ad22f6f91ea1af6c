/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: why an interface is not to be paced, or is not paced: by the kernel, by the privileges,
 * or by what it carries.
 *
 * Each returns -1 with *error filled with one line: what, where, what to do. One thread.
 */
#ifndef PACER_REFUSAL_H
#define PACER_REFUSAL_H

#include "live/site.h"

/* 0: this kernel and these privileges are enough for a pacer. */
int refusal_by_host(const char *ifname, struct policy_error *error);
/*
 * 0: what the interface carries leaves room for a pacer. `replace`: or it is a pacer, and one that
 * is attached in this mode, without a dispatcher (`direct`) or not, can take its place.
 */
int refusal_by_site(const char *ifname, const struct site *site, enum site_mode mode, bool direct,
		    bool replace, struct policy_error *error);

/* Never 0: the program there is no pacer, though it is named so. */
int refusal_not_a_pacer(const char *ifname, struct policy_error *error);
/* Never 0: there is no program of a pacer's name. */
int refusal_no_pacer(const char *ifname, const struct site *site, struct policy_error *error);

#endif
