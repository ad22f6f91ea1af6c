/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a flood of spoofed sources against the core itself, by a virtual clock: no machine is
 * fast enough to be asked, and the answer is the same each time.
 *
 * 1,000 established sources send at half of the limit from the beginning. After two seconds a flood
 * begins: so many packets a second, of so many spoofed sources, at random. A third into it 1,000
 * newcomers begin, which send as the established ones do, and 10,000 sparse ones, each of which is
 * silent for longer than its entry is kept between two packets. None of all these is ever above its
 * limit, so whatever is denied is denied wrongly, but for what flood sources send above theirs.
 */
#ifndef TESTS_FLOODS_H
#define TESTS_FLOODS_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/policy.h"
#include "limit.h"
#include "plan/compile.h"
#include "plan/flood.h"

#define SECOND	  1000000000ull
#define START	  SECOND
#define BEFORE	  (2 * SECOND)
#define GROUP	  1000u /* established sources; newcomers */
#define SPARSE	  10000u
#define SPARSE_NS (2 * SECOND) /* between two packets of one */
#define LEN_BYTES 64u

enum floods_kind { ESTABLISHED, NEWCOMER, SPARSELY, FLOOD, KINDS };

struct floods {
	struct pacer_policy *bin;
	struct plan *plan;
	struct pacer_table table;
	__u64 secret[PACER_SECRETS];
	uint64_t random, rate;
	uint64_t sent[KINDS], passed[KINDS], next_ns[KINDS], count[KINDS];
};

/* What cannot be set up ends the program: no figure is better than a wrong one. */
static void floods_die(const char *what)
{
	fprintf(stderr, "floods: %s\n", what);
	exit(1);
}

/* xorshift64*, Vigna 2016. */
static uint64_t floods_draw(struct floods *f)
{
	f->random ^= f->random >> 12;
	f->random ^= f->random << 25;
	f->random ^= f->random >> 27;
	return f->random * 0x2545f4914f6cdd1dull;
}

/* `memory`: "64Mi", or "10Mpps" for what withstands that. */
static void floods_open(struct floods *f, const char *memory, const char *limit)
{
	struct compile_host host = {.now_ns = 1, .cpus = 2};
	struct policy_error error = {0};
	struct policy *policy;
	char text[512];
	int len =
	    snprintf(text, sizeof(text), "%s: %s\nrules: [{name: a, limits: [{key: src, %s}]}]",
		     strstr(memory, "pps") ? "withstand" : "memory", memory, limit);

	f->bin = calloc(1, sizeof(*f->bin));
	f->plan = calloc(1, sizeof(*f->plan));
	policy = policy_parse(text, len, &error);
	if (!policy || !f->bin || !f->plan ||
	    compile_policy(policy, NULL, &host, f->bin, f->plan, &error))
		floods_die(error.text);
	policy_free(policy);
	f->table.n = f->plan->lines;
	f->table.lines = aligned_alloc(64, f->plan->lines * sizeof(struct pacer_line));
	if (!f->table.lines)
		floods_die("no memory");
	memset(f->table.lines, 0, f->plan->lines * sizeof(struct pacer_line));
	f->random = 1;
	for (size_t i = 0; i < PACER_SECRETS; i++)
		f->secret[i] = floods_draw(f);
}

static void floods_close(struct floods *f)
{
	free(f->table.lines);
	free(f->plan);
	free(f->bin);
}

static void floods_send_packet(struct floods *f, enum floods_kind kind, uint32_t source,
			       uint64_t now_ns)
{
	const struct pacer_limiter *t = &f->bin->rule[0].limiter[0];
	uint32_t word = source + ((uint32_t)kind << 28);
	struct pacer_hash hash = pacer_hash_words(f->secret, PACER_HASH_FAMILY4, &word, 1);
	struct pacer_ask q = pacer_ask_of(&f->table, t, now_ns, hash, LEN_BYTES);
	uint32_t outcome = pacer_entry_pass(&q);
	struct pacer_hold hold;

	if (outcome == PACER_UNDECIDED) {
		(void)pacer_entry_check(&q, &hold);
		pacer_hold_key(&hold, hash);
		outcome = pacer_entry_reserve(&q, &hold);
		if (outcome == PACER_ADMIT)
			pacer_entry_commit(&q, &hold);
	}
	f->sent[kind]++;
	f->passed[kind] += outcome == PACER_ADMIT;
}

/* Those of a kind that are due by now, in turn of their sources. */
static void floods_send_due(struct floods *f, enum floods_kind kind, uint32_t sources,
			    uint64_t every_ns, uint64_t now_ns)
{
	while (f->next_ns[kind] <= now_ns) {
		floods_send_packet(f, kind, f->count[kind]++ % sources, f->next_ns[kind]);
		f->next_ns[kind] += every_ns / sources;
	}
}

static void floods_run(struct floods *f, uint64_t pps, uint32_t sources, uint64_t seconds)
{
	uint64_t flood_ns = START + BEFORE, end_ns = flood_ns + seconds * SECOND;
	uint64_t late_ns = flood_ns + seconds * SECOND / 3, each_ns = 2 * SECOND / f->rate;

	f->next_ns[ESTABLISHED] = START;
	f->next_ns[NEWCOMER] = f->next_ns[SPARSELY] = late_ns;
	for (uint64_t now_ns = START; now_ns < flood_ns; now_ns += SECOND / 1000)
		floods_send_due(f, ESTABLISHED, GROUP, each_ns, now_ns);
	f->sent[ESTABLISHED] = f->passed[ESTABLISHED] = 0;
	for (uint64_t i = 0, now_ns = flood_ns; now_ns < end_ns; i++) {
		now_ns = flood_ns + i * SECOND / pps;
		floods_send_due(f, ESTABLISHED, GROUP, each_ns, now_ns);
		floods_send_due(f, NEWCOMER, GROUP, each_ns, now_ns);
		floods_send_due(f, SPARSELY, SPARSE, SPARSE_NS, now_ns);
		floods_send_packet(f, FLOOD, floods_draw(f) >> 32 & (sources - 1), now_ns);
	}
}

#endif
