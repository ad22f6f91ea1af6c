/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a pacer with a policy in force, in a kernel made of memory.
 *
 * To be linked as kernel.h says.
 */
#ifndef PACER_TEST_PACED_H
#define PACER_TEST_PACED_H

#include "applied.h"
#include "calls.h"
#include "kernel.h"
#include "pages.h"
#include "stays.h"

static struct attached pacer;
static struct pacer_control *control; /* its secret is for each test to draw */
static struct pacer_copy *copies;
static struct pacer_throttle_state *throttles;
static struct plan plan;
static size_t lines_bytes; /* of those of the pacer, whatever a test says of their number */

/* Empty ones: what was in them is freed. */
static inline void make_maps(void)
{
	kernel_map_new(KERNEL_COUNTS, sizeof(uint32_t),
		       KERNEL_CPUS * sizeof(struct pacer_counters));
	kernel_map_new(KERNEL_LEASES, sizeof(uint32_t),
		       KERNEL_CPUS * sizeof(struct pacer_throttle_lease));
	kernel_map_new(KERNEL_ALLOW4, sizeof(struct pacer_allow4),
		       sizeof(struct pacer_allow_value));
	kernel_map_new(KERNEL_ALLOW6, sizeof(struct pacer_allow6),
		       sizeof(struct pacer_allow_value));
}

/* Of two things of so many bytes each, what stands before them: the second begins with a page. */
static inline size_t before_two(size_t bytes)
{
	return PAGE_BYTES - bytes % PAGE_BYTES;
}

static inline void *two_new(size_t bytes)
{
	return (uint8_t *)pages_new(before_two(bytes) + 2 * bytes) + before_two(bytes);
}

static inline void two_free(void *two, size_t bytes)
{
	if (two)
		pages_free((uint8_t *)two - before_two(bytes), before_two(bytes) + 2 * bytes);
}

/* One with a compiled policy, on the kernel's clock as it is. */
static inline void put_on_as(const struct pacer_policy *bin, const char *text, uint64_t n_lines)
{
	copies = two_new(sizeof(*copies));
	throttles = pages_new(PACER_THROTTLES * sizeof(*throttles));
	control = pages_new(sizeof(*control));
	copies[0].policy = *bin;
	memcpy(copies[0].text, text, strlen(text));
	*control = (struct pacer_control){.resolution_ns = RESOLUTION,
					  .secret_ready = PACER_SECRET_OF_TOOLS};
	make_maps();
	pacer = (struct attached){.ifname = "eth0",
				  .counts_fd = KERNEL_COUNTS,
				  .allow4_fd = KERNEL_ALLOW4,
				  .allow6_fd = KERNEL_ALLOW6,
				  .leases_fd = KERNEL_LEASES,
				  .control = control,
				  .copy = copies,
				  .n_lines = n_lines,
				  .throttle = throttles};
	lines_bytes = n_lines * sizeof(struct pacer_line);
	pacer.lines = pages_new(lines_bytes);
}

static inline void put_on(const char *text)
{
	static struct pacer_policy bin;
	struct policy *policy = parse(text);

	kernel_now_ns = 100 * SECOND;
	host = (struct compile_host){RESOLUTION, kernel_now_ns, KERNEL_CPUS};
	assert_int_equal(compile_policy(policy, NULL, &host, &bin, &plan, &error), 0);
	policy_free(policy);
	put_on_as(&bin, text, plan.lines);
}

static inline int end(void **unused)
{
	(void)unused;
	make_maps();
	pages_free(pacer.lines, lines_bytes);
	two_free(copies, sizeof(*copies));
	pages_free(throttles, PACER_THROTTLES * sizeof(*throttles));
	pages_free(control, sizeof(*control));
	pacer.lines = NULL;
	copies = NULL;
	throttles = NULL;
	control = NULL;
	return 0;
}

#endif
