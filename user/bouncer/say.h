/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what xdp-pacer-crowdsec says on stderr: a line each, whatever the text has in it.
 * Memory: none, or a stream's; a line is cut at 1023 bytes.
 */
#ifndef PACER_BOUNCER_SAY_H
#define PACER_BOUNCER_SAY_H

#define BOUNCER_NAME "xdp-pacer-crowdsec"

__attribute__((format(printf, 1, 2))) void bouncer_say(const char *format, ...);
/* From now on nobody who does not read it keeps it from ending (live/ends.h). */
void bouncer_gives_way(void);

#endif
