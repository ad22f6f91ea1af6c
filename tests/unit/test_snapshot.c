/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The samples of a pacer at work, read while its CPUs may write: its maps are arrays here, and the
 * clock stands. What is drawn is the whole of small windows, so that all that is told of it is
 * known.
 */
#include "applied.h"
#include "starved.h"

#include <sys/random.h>

#include "estimate/busiest.h"
#include "estimate/differing.h"
#include "estimate/estimate_key.h"
#include "estimate/estimate_live.h"
#include "estimate/heaviest.h"
#include "live/copies.h"
#include "live/host.h"
#include "live/snapshot.h"
#include "path.h"

#define CPUS   2u
#define BEGIN  (100 * SECOND)
#define RULE_A "rules: [{name: a, limits: [{key: src, gap: 1s}]}]\n"

static const char of_packets[] =
    "sample: {of: all, k: 16, packets: 8, snap: 64}\n"
    "rules:\n"
    "- {name: udp, match: {proto: udp}, limits: [{key: src, packets: 9, window: 1s}]}\n"
    "- {name: rest, limits: [{key: dst, gap: 1s}]}\n";
static const char of_time[] =
    "sample: {of: all, k: 16, window: 60s}\n"
    "rules: [{name: udp, limits: [{key: src, packets: 9, window: 1s}]}]\n";

static struct pacer_copy copies[2];
static struct pacer_control control;
static struct pacer_sampler samplers[CPUS];
static struct pacer_heads heads[CPUS];
static struct attached pacer;
static struct sample sample;
static struct busiest busiest;
static uint64_t now_ns;
static uint32_t last_place; /* of those that packets were put into */

uint64_t host_now_ns(void)
{
	return now_ns;
}

static uint64_t waited_until_ns;

void host_wait_until(uint64_t until_ns)
{
	waited_until_ns = until_ns;
}

uint64_t host_resolution_ns(void)
{
	return RESOLUTION;
}

int host_cpus(struct policy_error *wrong)
{
	(void)wrong;
	return CPUS;
}

static bool no_chance; /* no random numbers */

ssize_t getrandom(void *buf, size_t n, unsigned int flags)
{
	(void)flags;
	memset(buf, 0x5a, n);
	return no_chance ? -1 : (ssize_t)n;
}

/* A writer, which writes before a reader's look of that number. */
static struct {
	void (*write)(struct pacer_sampler *s);
	uint32_t at, looks;
} writer;

void pacer_step(const volatile void *p);

void pacer_step(const volatile void *p)
{
	(void)p;
	if (writer.write && writer.looks++ == writer.at)
		writer.write(&samplers[0]);
}

static int follow_fails;

int __wrap_attached_follow(const char *name, struct attached *a, struct policy_error *wrong);
void __wrap_attached_release(struct attached *a);

int __wrap_attached_follow(const char *name, struct attached *a, struct policy_error *wrong)
{
	if (follow_fails)
		return policy_fail(wrong, 0, "%s: it is gone", name);
	*a = pacer;
	return 0;
}

void __wrap_attached_release(struct attached *a)
{
	(void)a;
}

/* A pacer of that policy, to which nothing came yet. */
static void begin(const char *text)
{
	uint32_t cpu;

	memset(copies, 0, sizeof(copies));
	memset(&control, 0, sizeof(control));
	memset(heads, 0, sizeof(heads));
	pacer = (struct attached){.ifname = "eth0",
				  .control = &control,
				  .copy = copies,
				  .sampler = samplers,
				  .heads = heads,
				  .n_samplers = CPUS};
	assert_int_equal(load(text), 0);
	copies[0].policy = now.bin;
	copies[0].policy.sampling.id = 7;
	snprintf(copies[0].text, sizeof(copies[0].text), "%s", text);
	for (cpu = 0; cpu < CPUS; cpu++) {
		memset(&samplers[cpu], 0, sizeof(samplers[cpu]));
		pacer_sampler_init(&samplers[cpu], cpu + 1);
	}
	for (cpu = 0; cpu < PACER_SECRETS; cpu++)
		control.secret[0][cpu] = draw();
	now_ns = BEGIN;
	last_place = 0;
}

static struct pacer_packet from(uint32_t source, uint32_t len_bytes)
{
	return (struct pacer_packet){.key = {[PACER_WORD_SADDR] = source,
					     [PACER_WORD_DADDR] = 0xc6336402,
					     [PACER_WORD_PORTS] = 1000u << 16 | 53,
					     [PACER_WORD_META] = 17},
				     .len_bytes = len_bytes,
				     .vlan = PACER_VLAN_NONE,
				     .family = PACER_FAMILY_4,
				     .proto = 17};
}

/* A packet of a rule, or of none, on a CPU; a byte of its head is the last of its source. */
static void packet_comes(uint32_t cpu, struct pacer_packet pkt, size_t rule,
			 enum pacer_reason reason)
{
	const struct pacer_sampling *by = &copies[0].policy.sampling;
	struct pacer_sampler *s = &samplers[cpu];
	struct pacer_sample_item item = estimate_item(&pkt, now_ns);

	item.reason = reason;
	if (rule < PACER_RULES_MAX) {
		const struct pacer_rule *r = &copies[0].policy.rule[rule];

		item.rule = r->counter;
		item.key = pacer_limiter_hash(&r->limiter[0], &pkt, control.secret[0]).home;
	}
	if (!pacer_sampler_due(s, by, now_ns))
		return;
	pacer_sample_write_begin(&s->seq);
	pacer_sampler_take(s, by, &item);
	for (uint64_t took = s->took; took; took &= took - 1) {
		uint32_t place = pacer_sampler_place(s, pacer_sampler_lowest(took));

		memset(heads[cpu].at[place], (int)pkt.key[PACER_WORD_SADDR] & 0xff,
		       sizeof(heads[cpu].at[0]));
		last_place = place > last_place ? place : last_place;
	}
	pacer_sample_write_end(&s->seq);
}

static void comes(uint32_t cpu, uint32_t source, uint32_t len_bytes, size_t rule,
		  enum pacer_reason reason)
{
	packet_comes(cpu, from(source, len_bytes), rule, reason);
}

/* Of IPv6: each word of its addresses is another; the second of the source is given. */
static struct pacer_packet from6(uint32_t second)
{
	struct pacer_packet pkt = from(0, 60);

	pkt.family = PACER_FAMILY_6;
	for (uint32_t i = 0; i < 4; i++) {
		pkt.key[PACER_WORD_SADDR + i] = i + 1;
		pkt.key[PACER_WORD_DADDR + i] = i + 5;
	}
	pkt.key[PACER_WORD_SADDR + 1] = second;
	return pkt;
}

static void fails(const char *text)
{
	error.text[0] = 0;
	assert_int_equal(sample_read(&pacer, 1, &sample, &error), -1);
	if (!strstr(error.text, text))
		fail_msg("%s", error.text);
	assert_null(sample.window);
}

/* --- rows ------------------------------------------------------------------------------------- */

/* All packets of both CPUs, the newest first, with as much of each frame as there was of it. */
static void test_rows(void **unused)
{
	static const uint32_t source[] = {5, 4, 3, 2, 1}, len[] = {60, 61, 62, 63, 90};
	uint32_t i;

	(void)unused;
	begin(of_packets);
	for (i = 5; i-- > 0; now_ns += MS)
		comes(i % 2, source[i], len[i], 0, i % 2 ? PACER_ADMIT : PACER_DENY_WINDOW);
	assert_int_equal(sample_read(&pacer, 1, &sample, &error), 0);
	assert_int_equal(sample.n, 5);
	assert_int_equal(sample.rows, 5);
	assert_int_equal(sample.behind, 0);
	assert_int_equal(sample.window[0], 3);
	assert_int_equal(sample.window[1], 2);
	for (i = 0; i < 5; i++) {
		const struct sample_row *row = &sample.row[i];

		assert_int_equal(row->item.saddr[0], source[i]);
		assert_int_equal(row->item.time_ns, BEGIN + (4 - i) * MS);
		assert_int_equal(row->cpu, i % 2);
		assert_int_equal(row->head_len, len[i] < 64 ? len[i] : 64);
		assert_int_equal(row->head[0], source[i]);
		assert_int_equal(row->head[row->head_len - 1], source[i]);
	}
	sample_free(&sample);
}

/* Wherever a packet lies in a sampler, its row has its own head. */
static void test_heads_of_all_places(void **unused)
{
	static const char *const texts[] = {
	    "sample: {of: all, k: 64, packets: 512, snap: 64}\n" RULE_A,
	    "sample: {of: all, k: 64, window: 60s, snap: 64}\n" RULE_A,
	};
	uint32_t i, k;

	(void)unused;
	for (i = 0; i < ARRAY(texts); i++) {
		begin(texts[i]);
		for (k = 0; k < 3000; k++, now_ns += 50 * MS) {
			comes(0, 1 + k % 251, 64, 0, PACER_ADMIT);
			if (k % 50)
				continue;
			assert_int_equal(sample_read(&pacer, 1, &sample, &error), 0);
			for (uint32_t r = 0; r < sample.rows; r++)
				assert_int_equal(sample.row[r].head[63],
						 sample.row[r].item.saddr[0]);
			sample_free(&sample);
		}
		assert_true(last_place >= (i ? 2 : 1) * PACER_SAMPLE_K);
	}
}

/* Of each CPU there are as many as the policy wants of all: no more of them are told. */
static void test_no_more_rows(void **unused)
{
	static const char *const texts[] = {"sample: {of: all, k: 2, packets: 8}\n" RULE_A,
					    "sample: {of: all, k: 2, window: 60s}\n" RULE_A};

	(void)unused;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		begin(texts[i]);
		for (uint32_t k = 0; k < 6; k++, now_ns += MS)
			comes(k % 2, k, 60, 0, PACER_ADMIT);
		assert_int_equal(sample_read(&pacer, 1, &sample, &error), 0);
		assert_true(sample.n == 6 && sample.rows == 2);
		sample_free(&sample);
	}
}

static void writes_packet(struct pacer_sampler *s)
{
	s->burst.count++;
	s->seq += 2;
}

static void writes_last_packet(struct pacer_sampler *s)
{
	s->wor.n++;
	s->wor.seq += 2;
}

static void writes_another_policy(struct pacer_sampler *s)
{
	s->id++;
}

/* The seq is odd all the time; a tick ends. */
static void writes_tick(struct pacer_sampler *s)
{
	s->burst.T++;
	s->burst.ticks += 2;
}

#define LOOKS 3u /* before a copy, and after it */

/* What was written during a copy is copied again. */
static void test_second_looks(void **unused)
{
	static const struct {
		const char *text;
		void (*write)(struct pacer_sampler *s);
		uint32_t at;
		enum sample_copied copied;
	} cases[] = {
	    {of_time, writes_packet, LOOKS, SAMPLE_WHOLE},
	    {of_packets, writes_last_packet, LOOKS, SAMPLE_WHOLE},
	    {of_time, writes_another_policy, LOOKS - 1, SAMPLE_WHOLE},
	    {of_packets, writes_another_policy, LOOKS - 1, SAMPLE_WHOLE},
	    {of_time, writes_tick, (SNAPSHOT_TRIES + 1) * LOOKS, SAMPLE_BEHIND},
	};
	static struct pacer_sampler copy;
	const struct pacer_sampler *live = &samplers[0];

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		const struct pacer_sampling *by = &copies[0].policy.sampling;
		bool behind = cases[i].copied == SAMPLE_BEHIND;

		begin(cases[i].text);
		comes(0, 1, 60, 0, PACER_ADMIT);
		samplers[0].seq += behind;
		writer.write = cases[i].write;
		writer.at = cases[i].at;
		writer.looks = 0;
		assert_int_equal(sample_copy(live, NULL, by, &copy, NULL), cases[i].copied);
		writer.write = NULL;
		assert_int_equal(writer.looks, (behind ? SNAPSHOT_TRIES + 4 : 4) * LOOKS);
		assert_true(copy.id == live->id);
		if (by->form != PACER_SAMPLE_TIME)
			assert_memory_equal(&copy.wor, &live->wor, sizeof(copy.wor));
		else if (!behind)
			assert_memory_equal(&copy.burst, &live->burst, sizeof(copy.burst));
		else
			assert_true(copy.burst.T == live->burst.T && !copy.burst.count);
	}
}

/* A CPU that stays in the middle of a packet: what came before its last tick; else nothing. */
static void test_torn(void **unused)
{
	uint32_t i;

	(void)unused;
	begin(of_time);
	for (i = 0; i < 3; i++, now_ns += 5 * SECOND) {
		comes(0, 1, 60, 0, PACER_ADMIT);
		comes(1, 2, 60, 0, PACER_ADMIT);
	}
	samplers[1].seq++;
	assert_int_equal(sample_read(&pacer, 1, &sample, &error), 0);
	assert_int_equal(sample.behind, 1);
	assert_int_equal(sample.window[0], 3);
	assert_int_equal(sample.window[1], 2);
	assert_int_equal(sample.n, 5);
	sample_free(&sample);
	assert_int_equal(busiest_read(&pacer, &busiest, &error), 0);
	assert_int_equal(busiest.behind, 1);
	assert_int_equal(busiest.n, 5);
	samplers[1].burst.ticks++;
	fails("eth0: the sample changes faster than it can be read");
	assert_int_equal(busiest_read(&pacer, &busiest, &error), -1);
	assert_non_null(strstr(error.text, "changes faster than it can be read"));
	begin(of_packets);
	samplers[1].wor.seq++; /* of the last packets there is none before */
	fails("eth0: the sample changes faster than it can be read");
}

static void test_nothing_to_read(void **unused)
{
	(void)unused;
	begin(of_packets);
	pacer.heads = NULL;
	fails("eth0: it has no memory for samples: apply its policy again");
	pacer.heads = heads;
	pacer.sampler = NULL;
	fails("eth0: it has no memory for samples: apply its policy again");
	assert_int_equal(busiest_read(&pacer, &busiest, &error), 0);
	assert_false(busiest.sampled);
	pacer.sampler = samplers;
	copies[0].policy.sampling.reasons = 0;
	fails("eth0: its policy samples nothing");
	assert_int_equal(busiest_read(&pacer, &busiest, &error), 0);
	assert_false(busiest.sampled);
}

/* Each allocation fails once: it is said, and nothing is lost. */
static void test_no_memory(void **unused)
{
	uint32_t at;
	int result = -1;

	(void)unused;
	begin(of_packets);
	comes(0, 1, 60, 0, PACER_ADMIT);
	for (at = 1; result && at < 20; at++) {
		starved_from(at, false);
		memory.on = true;
		result = sample_read(&pacer, 1, &sample, &error);
		memory.on = false;
		if (result)
			assert_string_equal(error.text, "eth0: no memory");
	}
	assert_in_range(at, 5, 19);
	assert_int_equal(sample.rows, 1);
	sample_free(&sample);
	for (at = 1, result = -1; result && at < 2000; at++) {
		starved_from(at, false);
		memory.on = true;
		result = busiest_read(&pacer, &busiest, &error);
		memory.on = false;
		if (result)
			if (!strstr(error.text, "memory"))
				fail_msg("allocation %u: %s", at, error.text);
	}
	assert_in_range(at, 20, 1999);
	assert_int_equal(busiest.n_keys, 1);
}

/* --- keys ------------------------------------------------------------------------------------- */

static void busy(size_t i, enum pacer_verdict verdict, const char *rule, const char *key,
		 uint32_t times)
{
	assert_true(i < busiest.n_keys);
	assert_int_equal(busiest.key[i].verdict, verdict);
	assert_string_equal(busiest.key[i].rule, rule);
	assert_string_equal(busiest.key[i].key, key);
	assert_int_equal(busiest.key[i].times, times);
}

/* Keys of rules as their limits have them; of no rule, and of one that is gone, the source. */
static void test_busiest(void **unused)
{
	uint32_t i;

	(void)unused;
	begin(of_packets);
	for (i = 0; i < 3; i++, now_ns += MS) {
		comes(0, 0xc0000201, 60, 0, PACER_DENY_WINDOW);
		comes(1, 0xc0000202, 60, 0, PACER_ADMIT);
		comes(1, 0xc0000200 + i, 60, 1, PACER_DENY_GAP); /* one destination */
	}
	comes(0, 0xc0000203, 60, PACER_RULES_MAX, PACER_DENY_BAN);
	comes(0, 0xc0000203, 60, PACER_RULES_MAX, PACER_DENY_BAN);
	comes(0, 0xc0000204, 60, PACER_RULES_MAX, PACER_DENY_BAN);
	assert_int_equal(busiest_read(&pacer, &busiest, &error), 0);
	assert_true(busiest.sampled);
	assert_int_equal(busiest.n, 12);
	assert_int_equal(busiest.samples, 12);
	assert_int_equal(busiest.window_packets, 8);
	assert_int_equal(busiest.n_keys, 5);
	for (i = 0; i < 2; i++) /* of two as many, either is the first */
		if (busiest.key[i].rule[0] == 'u')
			busy(i, PACER_VERDICT_DENY, "udp", "192.0.2.1", 3);
		else
			busy(i, PACER_VERDICT_DENY, "rest", "198.51.100.2", 3);
	assert_string_not_equal(busiest.key[0].rule, busiest.key[1].rule);
	busy(2, PACER_VERDICT_DENY, "", "192.0.2.3", 2);
	busy(3, PACER_VERDICT_DENY, "", "192.0.2.4", 1);
	busy(4, PACER_VERDICT_ADMIT, "udp", "192.0.2.2", 3);
	copies[0].policy.rule[0].counter = 99;
	copies[0].policy.rule[1].counter = 98;
	assert_int_equal(busiest_read(&pacer, &busiest, &error), 0);
	busy(4, PACER_VERDICT_ADMIT, "?", "192.0.2.2", 3);
	snprintf(copies[0].text, sizeof(copies[0].text), "no policy");
	assert_int_equal(busiest_read(&pacer, &busiest, &error), -1);
}

/* Where the sets cannot be read, nobody knows by which value it was counted: its source is told. */
static void test_values_that_cannot_be_read(void **unused)
{
	(void)unused;
	begin("sample: {of: all, k: 16, packets: 8}\n"
	      "sets: [{name: geo, file: /no/such.csv, value: 2}]\n"
	      "rules: [{name: udp, limits: [{key: 'value(geo, src)', gap: 1s}]}]\n");
	pacer.sets_fd = -1;
	comes(0, 0xc0000201, 60, 0, PACER_DENY_GAP);
	assert_int_equal(busiest_read(&pacer, &busiest, &error), 0);
	assert_int_equal(busiest.n_keys, 1);
	busy(0, PACER_VERDICT_DENY, "udp", "192.0.2.1", 1);
}

static struct heaviest_key heaviest[HEAVIEST_MAX];

static int heavy(uint8_t cost, uint64_t span_ns)
{
	const struct pacer_rule *r = &copies[0].policy.rule[0];
	struct heaviest_of of = {&r->limiter[0], r->counter, cost, span_ns};

	return heaviest_read(&pacer, &of, heaviest, &error);
}

/* What comes to a limit within a span: of its rule's packets, judged by it, and of late. */
static void test_heaviest(void **unused)
{
	uint32_t i;

	(void)unused;
	begin(of_packets);
	assert_true(heaviest_of_admitted(&pacer));
	assert_int_equal(heavy(PACER_COST_PACKETS, SECOND), 0);
	comes(0, 9, 60, 0, PACER_ADMIT);
	now_ns += 2 * SECOND; /* too long ago, when it is read */
	for (i = 0; i < 4; i++, now_ns += 100 * MS) {
		comes(0, 1, 100, 0, i ? PACER_DENY_WINDOW : PACER_DENY_SHARE);
		if (i & 1)
			comes(1, 2, 300 * i, 0, PACER_ADMIT);
		comes(1, 3, 60, 0, PACER_DENY_BAN);
		comes(1, 4, 60, 1, PACER_DENY_GAP);
	}
	/* The oldest in the sample is of before the span: what came is of 2 s. */
	assert_int_equal(heavy(PACER_COST_PACKETS, 10 * SECOND), 2);
	assert_int_equal(heaviest[0].pkt.key[PACER_WORD_SADDR], 1);
	assert_int_equal(heaviest[0].units, 20);
	assert_int_equal(heaviest[1].pkt.key[PACER_WORD_SADDR], 2);
	assert_int_equal(heaviest[1].units, 10);
	assert_int_equal(heavy(PACER_COST_BYTES, 10 * SECOND), 2);
	assert_int_equal(heaviest[0].units, 2000);
	assert_int_equal(heaviest[1].units, 6000);
	assert_int_equal(heavy(PACER_COST_PACKETS, SECOND / 8), 2);
	assert_int_equal(heaviest[1].units, 1); /* a part of one wants one */
	copies[0].policy.sampling.reasons = 0;
	assert_false(heaviest_of_admitted(&pacer));
	assert_int_equal(heavy(PACER_COST_PACKETS, SECOND), 0);
}

/* Of a window of time, since it began; it may be longer than what is looked at, or shorter. */
static void test_heaviest_of_time(void **unused)
{
	uint32_t i;

	(void)unused;
	begin(of_time);
	for (i = 0; i < 4; i++, now_ns += 100 * MS)
		comes(i & 1, 1, 100, 0, PACER_DENY_WINDOW);
	assert_int_equal(heavy(PACER_COST_PACKETS, 10 * SECOND), 1);
	assert_int_equal(heaviest[0].units, 20);
	begin("sample: {of: all, k: 16, window: 1s}\n"
	      "rules: [{name: udp, limits: [{key: src, packets: 9, window: 1s}]}]\n");
	for (i = 0; i < 4; i++, now_ns += 100 * MS)
		comes(i & 1, 1, 100, 0, PACER_DENY_WINDOW);
	assert_int_equal(heavy(PACER_COST_PACKETS, 10 * SECOND), 1);
	assert_in_range(heaviest[0].units, 39, 41);
	samplers[0].seq++;
	samplers[0].burst.ticks++;
	assert_int_equal(heavy(PACER_COST_PACKETS, SECOND), -1);
	assert_non_null(strstr(error.text, "changes faster than it can be read"));
}

/* More than can be counted is as much as can be; and limits whose keys the samples have not. */
static void test_heaviest_without_a_number(void **unused)
{
	struct pacer_limiter *t = &copies[0].policy.rule[0].limiter[0], was;

	(void)unused;
	begin(of_packets);
	comes(0, 1, 100, 0, PACER_DENY_RATE);
	now_ns += 100;
	assert_int_equal(heavy(PACER_COST_BYTES, UINT64_MAX), 1);
	assert_true(heaviest[0].units == (uint64_t)1e18);
	was = *t;
	t->kind |= PACER_LIMITER_NEW;
	assert_int_equal(heavy(PACER_COST_BYTES, SECOND), 0);
	*t = was;
	t->key_id |= PACER_KEY_TTL;
	assert_int_equal(heavy(PACER_COST_BYTES, SECOND), 0);
	*t = was;
	t->value[0] = 1;
	assert_int_equal(heavy(PACER_COST_BYTES, SECOND), 0);
	*t = was;
	pacer.sampler = NULL;
	assert_int_equal(heavy(PACER_COST_BYTES, SECOND), 0);
	pacer.sampler = samplers;
	assert_int_equal(heavy(PACER_COST_BYTES, SECOND), 1);
	no_chance = true;
	assert_int_equal(heavy(PACER_COST_BYTES, SECOND), -1);
	no_chance = false;
	assert_string_equal(error.text, "eth0: no random numbers to draw with");
}

/* Two sources of IPv6 whose addresses begin alike are two keys. */
static void test_heaviest_of_ipv6(void **unused)
{
	(void)unused;
	begin(of_packets);
	now_ns += 2 * SECOND;
	for (uint32_t i = 0; i < 6; i++, now_ns += 100 * MS)
		packet_comes(0, from6(i & 1 ? 21 : 22), 0, PACER_DENY_WINDOW);
	assert_int_equal(heavy(PACER_COST_PACKETS, 10 * SECOND), 2);
	assert_int_equal(heaviest[0].units, heaviest[1].units);
	assert_int_equal(heaviest[0].pkt.key[PACER_WORD_SADDR + 1] +
			     heaviest[1].pkt.key[PACER_WORD_SADDR + 1],
			 21 + 22);
}

/* --- a shadow --------------------------------------------------------------------------------- */

static struct differing differing;
static struct pacer_shadow shadowed;

static void begin_shadow(void)
{
	begin(of_packets);
	shadowed.of = copies[0].policy.sampling;
	pacer.shadowed = &shadowed;
	pacer.differ = samplers;
	pacer.n_differ = CPUS;
	pacer.sampler = NULL; /* its policy samples for itself, or not at all */
	pacer.n_samplers = 0;
}

/* A key that fares differently both ways is told for each of them; of no rule, its source. */
static void test_differing(void **unused)
{
	uint32_t i;

	(void)unused;
	begin_shadow();
	for (i = 0; i < 3; i++, now_ns += MS)
		comes(i & 1, 0xc0000201, 60, 0, PACER_DENY_WINDOW);
	comes(1, 0xc0000201, 60, 0, PACER_ADMIT);
	comes(1, 0xc0000202, 60, PACER_RULES_MAX, PACER_NO_RULE);
	assert_int_equal(differing_read(&pacer, &differing, &error), 0);
	assert_true(differing.n == 5 && differing.samples == 5 && differing.n_keys == 3);
	assert_int_equal(differing.key[0].change, PACER_CHANGE_DENY);
	assert_int_equal(differing.key[0].times, 3);
	assert_int_equal(differing.key[0].reason, PACER_DENY_WINDOW);
	assert_float_equal(differing.key[0].share.value, 3.0 / 5, 1e-9);
	assert_string_equal(differing.key[0].rule, "udp");
	assert_string_equal(differing.key[0].key, "192.0.2.1");
	for (i = 1; i < 3; i++) {
		const struct differing_key *key = &differing.key[i];

		assert_int_equal(key->change, PACER_CHANGE_ADMIT);
		assert_string_equal(key->key, *key->rule ? "192.0.2.1" : "192.0.2.2");
	}
	assert_string_not_equal(differing.key[1].rule, differing.key[2].rule);
	snprintf(copies[0].text, sizeof(copies[0].text), "no policy");
	assert_int_equal(differing_read(&pacer, &differing, &error), -1);
}

/* As many as are told, and no more: those with the greatest shares. */
static void test_more_keys_than_are_told(void **unused)
{
	static const char text[] =
	    "sample: {of: all, k: 64, packets: 200}\n"
	    "rules: [{name: udp, limits: [{key: src, packets: 9, window: 1s}]}]\n";
	uint32_t i;

	(void)unused;
	begin(text);
	for (i = 0; i < 100; i++, now_ns += MS)
		comes(i & 1, 1 + i, 60, 0, PACER_DENY_WINDOW);
	assert_int_equal(busiest_read(&pacer, &busiest, &error), 0);
	assert_true(busiest.samples == 100 && busiest.n_keys == BUSIEST_MAX);
	assert_int_equal(heavy(PACER_COST_PACKETS, SECOND), HEAVIEST_MAX);
	shadowed.of = copies[0].policy.sampling;
	pacer.shadowed = &shadowed;
	pacer.differ = samplers;
	pacer.n_differ = CPUS;
	assert_int_equal(differing_read(&pacer, &differing, &error), 0);
	assert_true(differing.samples == 100 && differing.n_keys == DIFFERING_MAX);
}

/* --- estimates -------------------------------------------------------------------------------- */

static struct {
	uint64_t n, keys;
	uint32_t times, most;
} shown;

static bool show(const struct estimate_live *live, void *unused)
{
	(void)unused;
	shown.n = live->values.n;
	shown.keys = live->keys;
	return ++shown.times < shown.most;
}

static int estimate(uint32_t times)
{
	struct estimate_want want = {
	    .name = "eth0", .watch = times > 1, .every_ns = 1, .moment = 2};
	int result;

	error.text[0] = 0;
	shown.times = 0;
	shown.most = times;
	if (estimate_key_open("src", &want.key, &error))
		return -1;
	result = estimate_live(&want, show, NULL, &error);
	estimate_key_close(&want.key);
	return result;
}

static void test_estimates(void **unused)
{
	(void)unused;
	begin(of_packets);
	comes(0, 1, 60, 0, PACER_ADMIT);
	comes(1, 2, 60, 0, PACER_ADMIT);
	assert_int_equal(estimate(1), 0);
	assert_true(shown.n == 2 && shown.keys == 2 && shown.times == 1);
	now_ns = 1;
	assert_int_equal(estimate(3), 0);
	assert_int_equal(shown.times, 3);
	assert_int_equal(waited_until_ns, 3);
	follow_fails = 1;
	assert_int_equal(estimate(3), -1);
	follow_fails = 0;
	assert_int_equal(shown.times, 0);
	copies[0].policy.sampling.reasons = 0;
	assert_int_equal(estimate(1), -1);
	assert_non_null(strstr(error.text, "eth0: its policy samples nothing: apply one"));
	begin(of_packets);
	pacer.sampler = NULL;
	assert_int_equal(estimate(1), -1);
	begin(of_packets);
	snprintf(copies[0].text, sizeof(copies[0].text), "no policy");
	assert_int_equal(estimate(1), -1);
}

static void test_keys_of_estimates(void **unused)
{
	static const struct {
		const char *key, *text;
	} bad[] = {
	    {"src/32,128+dst/32,128+src/32,128+dst/32,128+src/32,128+dst/32,128+src/32,128+"
	     "dst/32,128+src/32,128+dst/32,128+src/32,128+dst/32,128+src/32,128+dst/32,128+"
	     "src/32",
	     "is none: src, dst"},
	    {"src+dport+src+dport+src+dport+src", "--key: "},
	    {"src}", "is none: src, dst"},
	    {"src/33", "--key: "},
	    {"srcs", "--key: "},
	    {"", "--key: "},
	};
	struct estimate_key key;

	(void)unused;
	for (size_t i = 0; i < ARRAY(bad); i++) {
		assert_int_equal(estimate_key_open(bad[i].key, &key, &error), -1);
		if (!strstr(error.text, bad[i].text) || strstr(error.text, "rules") ||
		    strstr(error.text, "key: key: "))
			fail_msg("%s: %s", bad[i].key, error.text);
	}
	assert_int_equal(estimate_key_open("src/32,128+dst/32,128+proto+sport+dport", &key, &error),
			 0);
	estimate_key_close(&key);
}

/* A key without an address counts the families apart, as in a policy; "all" is one for both. */
static void test_families_of_keys(void **unused)
{
	static const struct {
		const char *key;
		bool apart;
	} rows[] = {{"dport", true}, {"proto", true}, {"src", true}, {"dst", true}, {"all", false}};
	struct pacer_packet four = from(0, 60), six = four;
	struct estimate_key key;

	(void)unused;
	six.family = PACER_FAMILY_6;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		assert_int_equal(estimate_key_open(rows[i].key, &key, &error), 0);
		assert_int_equal(estimate_key_hash(&key, &six) != estimate_key_hash(&key, &four),
				 rows[i].apart);
		estimate_key_close(&key);
	}
}

/* Whether two packets are of one key is as the parts of the key are that it names, and no other. */
static void test_hashes_of_keys(void **unused)
{
	static const struct {
		const char *key;
		bool by_src, by_dst;
	} rows[] = {{"src", true, false},
		    {"dst", false, true},
		    {"src+dst", true, true},
		    {"all", false, false}};
	struct pacer_packet pkt = from(0xc0000201, 60), other = from(0xc0000202, 60), to = pkt;
	struct estimate_key key;

	(void)unused;
	to.key[PACER_WORD_DADDR]++;
	for (size_t i = 0; i < ARRAY(rows); i++) {
		uint64_t hash;

		assert_int_equal(estimate_key_open(rows[i].key, &key, &error), 0);
		hash = estimate_key_hash(&key, &pkt);
		assert_int_equal(estimate_key_hash(&key, &other) != hash, rows[i].by_src);
		assert_int_equal(estimate_key_hash(&key, &to) != hash, rows[i].by_dst);
		estimate_key_close(&key);
	}
}

/* What a sample keeps of a packet is what its keys are made of: tags and fragments, too. */
static void test_packets_of_samples(void **unused)
{
	static const uint16_t tags[] = {PACER_VLAN_NONE, 0, 1, 4094};

	(void)unused;
	begin(of_packets);
	for (size_t i = 0; i < 2 * ARRAY(tags); i++) {
		struct pacer_packet pkt = from(0xc0000201, 60), again;
		struct pacer_sample_item item;

		pkt.vlan = tags[i / 2];
		pkt.key[PACER_WORD_META] = pacer_meta_vlan(pkt.vlan) | pkt.proto;
		if (i & 1) {
			pkt.fragment = PACER_FRAG_LATER;
			pkt.key[PACER_WORD_META] |= PACER_META_FRAGMENT;
		}
		item = estimate_item(&pkt, now_ns);
		again = estimate_packet(&item);
		assert_memory_equal(again.key, pkt.key, sizeof(pkt.key));
		assert_int_equal(again.fragment, pkt.fragment);
		assert_int_equal(again.family, pkt.family);
		assert_int_equal(again.vlan, pkt.vlan ? pkt.vlan : PACER_VLAN_NONE);
	}
}

/* All words of both addresses of IPv6. */
static void test_addresses_of_samples(void **unused)
{
	struct pacer_packet pkt = from6(21), again;
	struct pacer_sample_item item = estimate_item(&pkt, now_ns);

	(void)unused;
	again = estimate_packet(&item);
	assert_int_equal(again.family, PACER_FAMILY_6);
	assert_memory_equal(again.key, pkt.key, sizeof(pkt.key));
}

/* --- no memory -------------------------------------------------------------------------------- */

static int differ(void)
{
	return differing_read(&pacer, &differing, &error);
}

static int estimate_once(void)
{
	return estimate(1);
}

static int heavy_once(void)
{
	return heavy(PACER_COST_PACKETS, SECOND) < 0 ? -1 : 0;
}

void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

/* Wherever it ends: it is said. libyaml loses a few bytes of its own then. */
static void test_no_memory_for_others(void **unused)
{
	static int (*const reads[])(void) = {differ, estimate_once, heavy_once};

	(void)unused;
	for (size_t i = 0; i < ARRAY(reads); i++) {
		uint32_t at, failed = 0;

		if (reads[i] == differ)
			begin_shadow();
		else
			begin(of_packets);
		comes(0, 1, 60, 0, PACER_DENY_WINDOW);
		now_ns += MS;
		for (at = 1;; at++) {
			int result;

			if (__lsan_disable && reads[i] != heavy_once)
				__lsan_disable();
			starved_from(at, false);
			memory.on = true;
			result = reads[i]();
			memory.on = false;
			if (__lsan_enable && reads[i] != heavy_once)
				__lsan_enable();
			if (result && !strstr(error.text, "memory"))
				fail_msg("%zu, allocation %u: %s", i, at, error.text);
			if (memory.n < at) {
				assert_int_equal(result, 0);
				break;
			}
			failed += result != 0;
		}
		assert_true(failed > 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_rows),
	    cmocka_unit_test(test_heads_of_all_places),
	    TEST(test_no_more_rows),
	    TEST(test_torn),
	    cmocka_unit_test(test_second_looks),
	    TEST(test_nothing_to_read),
	    TEST(test_no_memory),
	    TEST(test_busiest),
	    TEST(test_values_that_cannot_be_read),
	    TEST(test_heaviest),
	    TEST(test_heaviest_of_ipv6),
	    TEST(test_heaviest_of_time),
	    TEST(test_heaviest_without_a_number),
	    TEST(test_differing),
	    TEST(test_more_keys_than_are_told),
	    TEST(test_estimates),
	    TEST(test_keys_of_estimates),
	    TEST(test_families_of_keys),
	    TEST(test_hashes_of_keys),
	    TEST(test_packets_of_samples),
	    TEST(test_addresses_of_samples),
	    TEST(test_no_memory_for_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
