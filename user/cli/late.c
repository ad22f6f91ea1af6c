/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/late.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

void *late_function(const char *library, const char *name)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	void *function = handle ? dlsym(handle, name) : NULL;

	if (!function) {
		fprintf(stderr, "xdp-pacer: %s cannot be used: %s: install its package again\n",
			library, dlerror());
		exit(1);
	}
	return function;
}
