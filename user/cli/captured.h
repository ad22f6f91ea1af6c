/* SPDX-License-Identifier: GPL-2.0-only */
/* What the verbs on captures share. Each returns EXIT_DONE, or the exit code with the line said. */
#ifndef PACER_CAPTURED_H
#define PACER_CAPTURED_H

#include "offline/capture.h"
#include "offline/judge.h"

/* As capture_open, with warnings and the progress on stderr. */
int start_capture(struct capture *c, const char *file);
/* As capture_again. */
int restart_capture(struct capture *c);
/* As judge_open. */
int start_judge(struct judge *j, const char *name, const struct policy *policy, bool kernel);

/* Read it under both policies and show what fares differently (compare_show.c). */
int compare_show(struct capture *c, struct judge judge[2], bool json);

#endif
