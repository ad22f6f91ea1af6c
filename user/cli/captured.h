/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the verbs on captures share. Each returns EXIT_DONE, or another exit code after its error
 * line.
 */
#ifndef PACER_CAPTURED_H
#define PACER_CAPTURED_H

#include "offline/capture.h"
#include "offline/judge.h"

/* Like capture_open, with warnings and progress on stderr. */
int start_capture(struct capture *c, const char *file);
/* Like capture_again. */
int restart_capture(struct capture *c);
/* Like judge_open. */
int start_judge(struct judge *j, const char *name, const struct policy *policy, bool kernel);

/* Judge the capture under both policies and show the differences (compare_show.c). */
int compare_show(struct capture *c, struct judge judge[2], bool json);

#endif
