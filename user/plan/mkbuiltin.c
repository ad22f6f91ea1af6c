/* SPDX-License-Identifier: GPL-2.0-only */
/* Build-time: the built-in policy's text to the initialisers of the object's policy maps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/compile.h"

/* The kernel's object does not know the machine: its clock's tick is taken to be the longest. */
#define RESOLUTION_NS 10000000

static void put_bytes(const char *macro, const void *data, size_t size)
{
	const unsigned char *byte = data;

	while (size > 1 && !byte[size - 1])
		size--; /* the rest is zero as it is */
	printf("#define %s", macro);
	for (size_t i = 0; i < size; i++)
		printf("%s%u,", i % 24 ? "" : " \\\n\t", byte[i]);
	printf("\n");
}

int main(int argc, char **argv)
{
	struct compile_host host = {RESOLUTION_NS, 1, 1};
	static struct pacer_policy bin;
	static struct plan plan;
	static char text[PACER_DOC_MAX];
	struct policy_error error = {0};
	struct policy *policy;
	FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	if (f)
		fclose(f);
	policy = policy_parse(text, n, &error);
	if (!n || !policy || compile_policy(policy, NULL, &host, &bin, &plan, &error)) {
		fprintf(stderr, "mkbuiltin: %d: %s\n", error.line, error.text);
		return 1;
	}
	printf("/* Made from user/plan/builtin.yaml by user/plan/mkbuiltin.c. */\n");
	printf("#define PACER_BUILTIN_LINES %lluu\n", (unsigned long long)plan.lines);
	put_bytes("PACER_BUILTIN_TEXT", text, n);
	put_bytes("PACER_BUILTIN_POLICY", &bin, sizeof(bin));
	policy_free(policy);
	return 0;
}
