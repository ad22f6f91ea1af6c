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
#include "stays.h"

#define PACED_PAGE ((uintptr_t)4096)

static struct attached pacer;
static struct pacer_control *control; /* its secret is for each test to draw */
static struct pacer_copy *copies;
static struct pacer_throttle_state *throttles;
static struct plan plan;

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

/* Zeroed, in pages of its own. */
static inline void *paged(size_t bytes)
{
	size_t whole = (bytes + PACED_PAGE - 1) & ~(PACED_PAGE - 1);
	void *pages = aligned_alloc(PACED_PAGE, whole);

	assert_non_null(pages);
	return memset(pages, 0, whole);
}

/* The same of two things, of so many bytes each: the second begins with a page. */
static inline void *paged_two(size_t bytes)
{
	size_t before = PACED_PAGE - bytes % PACED_PAGE;

	return (uint8_t *)paged(before + 2 * bytes) + before;
}

static inline void free_two(void *two, size_t bytes)
{
	free(two ? (uint8_t *)two - (PACED_PAGE - bytes % PACED_PAGE) : NULL);
}

/* One with a compiled policy, on the kernel's clock as it is. */
static inline void put_on_as(const struct pacer_policy *bin, const char *text, uint64_t n_lines)
{
	copies = paged_two(sizeof(*copies));
	throttles = paged(PACER_THROTTLES * sizeof(*throttles));
	control = paged(sizeof(*control));
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
	pacer.lines = aligned_alloc(64, n_lines * sizeof(struct pacer_line));
	assert_non_null(pacer.lines);
	memset(pacer.lines, 0, n_lines * sizeof(struct pacer_line));
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
	free(pacer.lines);
	free_two(copies, sizeof(*copies));
	free(throttles);
	free(control);
	pacer.lines = NULL;
	copies = NULL;
	throttles = NULL;
	control = NULL;
	return 0;
}

#endif
