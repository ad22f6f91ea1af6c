/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/complaint.h"

#include <bpf/libbpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xdp/libxdp.h>

static char complaint[302], verdict[202];
static bool refused;

/* The reason is the line of the verifier's log before its statistics. */
static void keep_verdict(char *log)
{
	char *rest = NULL;

	for (char *line = strtok_r(log, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (!strstr(line, "PROG LOAD LOG --") && strncmp(line, "processed ", 10))
			snprintf(verdict, sizeof(verdict), ": %s", line);
}

static int keep_complaint(const char *format, va_list args)
{
	char *text;
	size_t n;

	if (vasprintf(&text, format, args) < 0)
		return 0;
	if (strstr(text, "prog 'pacer': BPF program load failed"))
		refused = true;
	if (strstr(text, "prog 'pacer': -- BEGIN PROG LOAD LOG --")) {
		keep_verdict(text);
	} else {
		n = strcspn(text, "\n");
		text[n] = 0;
		if (n)
			snprintf(complaint, sizeof(complaint), ": %s", text);
	}
	free(text);
	return 0;
}

static int print_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN ? keep_complaint(format, args) : 0;
}

static int print_libxdp(enum libxdp_print_level level, const char *format, va_list args)
{
	return level == LIBXDP_WARN ? keep_complaint(format, args) : 0;
}

void complaint_begin(void)
{
	complaint[0] = 0;
	verdict[0] = 0;
	refused = false;
	libbpf_set_print(print_libbpf);
	libxdp_set_print(print_libxdp);
}

bool complaint_of_link(void)
{
	return strstr(complaint, "BPF XDP link");
}

const char *complaint_cause(void)
{
	return complaint_of_link() ? ": a BPF link holds the program there: end the process that "
				     "attached it, or remove the link (`bpftool link`, and "
				     "`bpftool link detach id ID`)"
				   : complaint;
}

bool complaint_refused(void)
{
	return refused;
}

const char *complaint_verifier(void)
{
	return verdict;
}
