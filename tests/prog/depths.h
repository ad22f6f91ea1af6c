/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: what a verifier's log tells of the stack of each function of a program.
 *
 * Source: print_verification_stats() of Linux's kernel/bpf/verifier.c: up to 7.2 one line, "stack
 * depth 96+112+8", in the order of the functions' code; from 7.3 on a line of each function,
 * "subprog 1 (name) global insns_self 9 insns_total 9 stack 112".
 *
 * Error: a log that lacks a function tells nothing.
 */
#ifndef DEPTHS_H
#define DEPTHS_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 0, or -1. */
static inline int depths_in_a_line(const char *log, unsigned int *bytes, size_t n)
{
	const char *at = strstr(log, "stack depth ");
	size_t i;

	for (i = 0; at && i < n; i++) {
		char *end;

		at += i ? 1 : strlen("stack depth ");
		bytes[i] = strtoul(at, &end, 10);
		if (end == at || (*end == '+') != (i + 1 < n))
			return -1;
		at = end;
	}
	return at ? 0 : -1;
}

/* 0, or -1. */
static inline int depths_by_lines(const char *log, unsigned int *bytes, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		const char *end, *stack = NULL, *next;
		char head[32];

		snprintf(head, sizeof(head), "subprog %zu (", i);
		log = strstr(log, head);
		if (!log)
			return -1;
		end = strchrnul(log, '\n');
		for (next = strstr(log, " stack "); next && next < end;
		     next = strstr(next + 1, " stack "))
			stack = next;
		if (!stack || sscanf(stack, " stack %u", &bytes[i]) != 1)
			return -1;
		log = end;
	}
	return 0;
}

/* The bytes of each of n functions, in the order of their code. 0, or -1. */
static inline int depths_read(const char *log, unsigned int *bytes, size_t n)
{
	return depths_in_a_line(log, bytes, n) ? depths_by_lines(log, bytes, n) : 0;
}

#endif
