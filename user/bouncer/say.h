/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what xdp-pacer-crowdsec says on stderr: a line each, whatever the text has in it.
 * Memory: none; a line is cut at 1023 bytes.
 */
#ifndef PACER_BOUNCER_SAY_H
#define PACER_BOUNCER_SAY_H

#define BOUNCER_NAME "xdp-pacer-crowdsec"

__attribute__((format(printf, 1, 2))) void bouncer_say(const char *format, ...);

#endif
