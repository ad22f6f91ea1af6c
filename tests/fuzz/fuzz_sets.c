/* SPDX-License-Identifier: GPL-2.0-only */
/* Set files and feeds: what was read is found by packets as the list has it, and nothing else is.
 */
#include "fuzz.h"
#include "set_oracle.h"
#include "sets/read.h"

#define PREFIXES_MAX 60

static void ask(const struct set_text *text, const struct set_lines *lines,
		const struct set_asked *a)
{
	struct pacer_set set = set_lines_set(lines);
	uint32_t addr[4];

	set_words(a, addr);
	HOLDS((a->family == 4 ? pacer_set_find4(&set, addr[0]) : pacer_set_find6(&set, addr)) ==
	      set_list_value(&text->list, a->family, a->high, a->low));
}

static void look_up(const struct set_text *text)
{
	struct set_lines lines;

	HOLDS(!set_build(&text->list, 7, &lines));
	for (size_t i = 0; i < text->list.n; i++) {
		const struct set_entry *e = &text->list.entry[i];
		struct set_asked edge[4];

		HOLDS(e->value && e->len <= (e->family == 4 ? 32 : 128));
		set_edges(e, edge);
		for (size_t k = 0; k < 4; k++)
			ask(text, &lines, &edge[k]);
	}
	set_lines_free(&lines);
}

/* A byte: which field is the value, if one is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	uint32_t field = (uint32_t)fuzz_take(&in, 1) % 4;
	struct set_source source = {.name = "feed", .value_field = field < 2 ? 0 : field};
	struct policy_error error = {0};
	char *text = fuzz_copy(in.at, in.left);
	struct set_text read;

	if (set_read(text, in.left, &source, &read, &error)) {
		HOLDS_TOLD(error.text);
	} else {
		HOLDS(read.list.n);
		if (read.list.n <= PREFIXES_MAX)
			look_up(&read);
		set_text_free(&read);
	}
	free(text);
	return 0;
}
