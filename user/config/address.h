/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: an item of a list of addresses, as it is written: a prefix, or a set by its name. For
 * the sources of this wing.
 */
#ifndef PACER_ADDRESS_H
#define PACER_ADDRESS_H

#include "config/document.h"

/* An item of src, dst or allow: a prefix, or a set. */
struct address {
	struct prefix prefix;
	struct policy_set_use use; /* name[0] is 0: a prefix */
};

reader address_prefix; /* into a struct prefix */
reader address_read;   /* into a struct address */

/* "@geo=XY" */
void address_use_text(const struct policy_set_use *use, char *buf, size_t size);

#endif
