/* SPDX-License-Identifier: GPL-2.0-only */
#include "config/whole_path.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *whole_path(const char *name, char *buf, size_t size)
{
	size_t len;

	if (*name == '/' || !getcwd(buf, size))
		return name;
	len = strcmp(buf, "/") ? strlen(buf) : 0;
	if (len + 1 + strlen(name) >= size)
		return name;
	snprintf(buf + len, size - len, "/%s", name);
	return buf;
}
