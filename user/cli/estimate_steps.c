/* SPDX-License-Identifier: GPL-2.0-only */
/* The step-biased sample of a capture's end: newer packets with more weight. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/estimate_show.h"
#include "plan/tally.h"

#define SHOWN 10

json_t *estimate_steps_json(struct estimate_run *run)
{
	struct pacer_sample_item item[ESTIMATE_STEP_SAMPLES];
	uint32_t n = estimate_run_steps(run, item);
	json_t *all = json_array();
	char text[TALLY_TEXT];

	for (uint32_t j = 0; j < n; j++) {
		struct pacer_packet pkt = estimate_packet(&item[j]);

		json_array_append_new(all, json_pack("{s:I, s:s, s:I}", "time_ns",
						     (json_int_t)item[j].time_ns, "key",
						     estimate_key_text(&run->want->key, &pkt, text),
						     "bytes", (json_int_t)item[j].len_bytes));
	}
	return all;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

void estimate_print_steps(struct estimate_run *run)
{
	struct pacer_sample_item item[ESTIMATE_STEP_SAMPLES];
	char text[ESTIMATE_STEP_SAMPLES][TALLY_TEXT];
	uint32_t n = estimate_run_steps(run, item), run_of = 0, shown = 0, keys = 0;

	for (uint32_t j = 0; j < n; j++) {
		struct pacer_packet pkt = estimate_packet(&item[j]);

		estimate_key_text(&run->want->key, &pkt, text[j]);
	}
	qsort(text, n, sizeof(*text), by_text);
	printf("step-biased sample of %u packets, by key:\n", n);
	for (uint32_t count = n; count > 0; count--) {
		for (uint32_t j = 0; j < n; j++) {
			run_of = j && !strcmp(text[j], text[j - 1]) ? run_of + 1 : 1;
			if (run_of != count || (j + 1 < n && !strcmp(text[j], text[j + 1])))
				continue;
			keys++;
			if (shown++ < SHOWN)
				printf("  %3u %s\n", count, text[j]);
		}
	}
	if (keys > SHOWN)
		printf("  and %u keys more\n", keys - SHOWN);
}
