/* SPDX-License-Identifier: GPL-2.0-only */
/* Purpose: judgements by the short way (short.h), and what it leaves by the other. */
#ifndef PACER_BRIEF_H
#define PACER_BRIEF_H

#include "scenario.h"

/* Of a sketch. */
judge_fn brief_sketch;
/* Of a window or a rate, in sets. */
judge_fn brief_record;

/* A faulty one: the sketch is judged, and then locked to be raised. */
judge_fn fault_brief_unjudged;

#endif
