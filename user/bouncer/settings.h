/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the file of the bouncer: where CrowdSec's local API is, the key for it, and the
 * interfaces that are to ban. Its fields are called as in the files of other bouncers.
 */
#ifndef PACER_SETTINGS_H
#define PACER_SETTINGS_H

#include <limits.h>
#include <net/if.h>

#include "config/policy.h"

#define SETTINGS_FILE	    "/etc/crowdsec/bouncers/xdp-pacer-crowdsec.yaml"
#define SETTINGS_INTERFACES 64
#define SETTINGS_TEXT	    512
#define SETTINGS_LENGTH_MAX 65536u /* of the file */

struct settings {
	char url[SETTINGS_TEXT], key[SETTINGS_TEXT], ca_file[PATH_MAX]; /* "": none is said */
	char shown[SETTINGS_TEXT];   /* url, without who asks, who may have a password */
	char origins[SETTINGS_TEXT]; /* "a,b"; "": all */
	uint64_t every_ns;
	uint64_t timeout_ns; /* without a byte, at least a second; of an answer ten times that */
	char ifname[SETTINGS_INTERFACES][IF_NAMESIZE];
	size_t n;
};

/* Of the file's text. 0, or -1 with *error filled. */
int settings_read(struct settings *settings, const char *text, size_t len,
		  struct policy_error *error);

#endif
