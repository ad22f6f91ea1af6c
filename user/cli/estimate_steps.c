/* SPDX-License-Identifier: GPL-2.0-only */
/* The step-biased sample at the end of a capture: newer packets have more weight. */
#include <stdlib.h>
#include <string.h>

#include "cli/emit.h"
#include "cli/estimate_show.h"
#include "inspect/tally.h"

#define SHOWN 10

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Shows how often each key occurs in the sorted texts, the most frequent first. */
static void show_counts(char text[][TALLY_TEXT], uint32_t n)
{
	static const struct emit_column columns[] = {{"", true}, {"", false}, {0}};
	uint32_t run_of = 0, keys = 0;

	emit_table(columns, 2);
	for (uint32_t count = n; count > 0; count--) {
		for (uint32_t j = 0; j < n; j++) {
			run_of = j && !strcmp(text[j], text[j - 1]) ? run_of + 1 : 1;
			if (run_of != count || (j + 1 < n && !strcmp(text[j], text[j + 1])))
				continue;
			if (keys++ >= SHOWN)
				continue;
			emit_row();
			emit_text("%u", count);
			emit_text("%s", text[j]);
		}
	}
	emit_table_end();
	if (keys > SHOWN)
		emit_text("  and %u keys more\n", keys - SHOWN);
}

void estimate_show_steps(struct estimate_run *run)
{
	struct pacer_sample_item item[ESTIMATE_STEP_SAMPLES];
	char text[ESTIMATE_STEP_SAMPLES][TALLY_TEXT];
	uint32_t n = estimate_run_steps(run, item);

	emit_text("step-biased sample of %u packets, by key:\n", n);
	emit_array("step_biased");
	for (uint32_t j = 0; j < n; j++) {
		struct pacer_packet pkt = estimate_packet(&item[j]);

		estimate_key_text(&run->want->key, &pkt, text[j]);
		emit_object("");
		emit_uint("time_ns", item[j].time_ns, NULL);
		emit_string("key", text[j], NULL);
		emit_uint("bytes", item[j].len_bytes, NULL);
		emit_close();
	}
	emit_close();
	qsort(text, n, sizeof(*text), by_text);
	show_counts(text, n);
}
