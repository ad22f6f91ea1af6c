/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * floods: who is denied wrongly while more sources send than a table has entries (tests/floods.h).
 *
 *	floods PPS SOURCES MEMORY LIMIT [SECONDS]
 *
 * MEMORY is a size, or a rate as in `withstand`. LIMIT is as in a policy, with key src; its first
 * number is how much a second. SECONDS: 4 unless said.
 */
#include "floods.h"

static double share(const struct floods *f, enum floods_kind kind)
{
	return f->sent[kind] ? (double)f->passed[kind] / (double)f->sent[kind] : 1;
}

int main(int argc, char **argv)
{
	static struct floods f;
	uint64_t pps = argc > 4 ? strtoull(argv[1], NULL, 10) : 0;
	uint32_t sources = argc > 4 ? strtoul(argv[2], NULL, 10) : 0;
	uint64_t seconds = argc > 5 ? strtoull(argv[5], NULL, 10) : 4;

	if (!pps || !sources || sources & (sources - 1) || !seconds) {
		fprintf(stderr,
			"usage: floods PPS SOURCES MEMORY LIMIT [SECONDS]; SOURCES is a power of "
			"two\n");
		return 2;
	}
	floods_open(&f, argv[3], argv[4]);
	f.rate = strtoull(argv[4] + strcspn(argv[4], "0123456789"), NULL, 10);
	if (!f.rate)
		floods_die("LIMIT has no number");
	floods_run(&f, pps, sources, seconds);
	printf("{\"pps\": %" PRIu64 ", \"sources\": %" PRIu32
	       ", \"memory\": \"%s\", \"limit\": \"%s\", "
	       "\"state_mib\": %.1f, \"established\": %.5f, \"newcomers\": %.5f, \"sparse\": %.5f, "
	       "\"flood\": %.5f}\n",
	       pps, sources, argv[3], argv[4], (double)f.plan->lines * 64 / 1048576,
	       share(&f, ESTABLISHED), share(&f, NEWCOMER), share(&f, SPARSELY), share(&f, FLOOD));
	floods_close(&f);
	return 0;
}
