/* SPDX-License-Identifier: GPL-2.0-only */
/* Rules that no packet of a test falls under, so that those that count are some of up to 256. */
#ifndef PADDED_H
#define PADDED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Before each of a policy's rules so many of these: a rule a line, "- name" or "- {name" first. */
static inline const char *padded(const char *policy, uint32_t before)
{
	static char text[1 << 17];
	uint32_t n = 0;
	size_t at = 0;

	for (const char *line = policy; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *rule = line + strspn(line, " ");
		int indent = (int)(rule - line);
		bool begins = strstr(policy, "rules:\n") < line &&
			      (!strncmp(rule, "- name: r", 9) || !strncmp(rule, "- {name: ", 9));

		for (uint32_t i = 0; begins && i < before; i++)
			at += (size_t)snprintf(text + at, sizeof(text) - at,
					       "%*s- {name: p%u, match: {src: 233.252.0.%u, dst: "
					       "2.3.4.5}, verdict: drop}\n",
					       indent, "", n++, i);
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%.*s\n",
				       (int)strcspn(line, "\n"), line);
	}
	return text;
}

/* The number that the rule has without them. */
static inline uint32_t unpadded(uint32_t rule, uint32_t before, uint32_t none)
{
	return rule < none ? (rule + 1) / (before + 1) - 1 : none;
}

#endif
