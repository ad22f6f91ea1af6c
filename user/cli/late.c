/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/late.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

void *late_function(struct late_library *library, const char *name)
{
	void *function;

	if (!library->handle)
		library->handle = dlopen(library->soname, RTLD_NOW | RTLD_LOCAL);
	function = library->handle ? dlsym(library->handle, name) : NULL;
	if (!function) {
		fprintf(stderr, "xdp-pacer: %s cannot be used: %s: install its package again\n",
			library->soname, dlerror());
		exit(1);
	}
	return function;
}
