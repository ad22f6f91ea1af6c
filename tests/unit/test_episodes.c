/* SPDX-License-Identifier: GPL-2.0-only */
/* Episodes and what is told of them, from series that are made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "episodes/detector.h"
#include "sample.h"
#include "starved.h"

#define MS 1000000ull
#define S  1000000000ull

static const struct episode_settings usual = {EPISODE_LEAST, EPISODE_QUIET_NS};

/* --- one rule's episode ---------------------------------------------------------------------- */

/* Of a rule: so many packets are admitted and denied until a time. */
struct stretch {
	uint64_t until_ms;
	double admitted, denied; /* a second */
};

struct told {
	enum episode_step step;
	uint64_t at_ms, began_ms, ended_ms, denied;
};

static struct pacer_counters counters_at(const struct stretch *s, size_t n, uint64_t ms)
{
	struct pacer_counters c = {0};
	double admitted = 0, denied = 0;
	uint64_t from = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t to = ms < s[i].until_ms ? ms : s[i].until_ms;

		if (to > from) {
			admitted += s[i].admitted * (to - from) / 1000;
			denied += s[i].denied * (to - from) / 1000;
			from = to;
		}
	}
	c.by[PACER_ADMIT].packets = (uint64_t)admitted;
	c.by[PACER_ADMIT].bytes = (uint64_t)admitted * 100;
	c.by[PACER_DENY_WINDOW].packets = (uint64_t)denied;
	c.by[PACER_DENY_WINDOW].bytes = (uint64_t)denied * 60;
	return c;
}

/* Reads each `every` ms; *told has what was told. */
static size_t follow(const struct stretch *s, size_t n, uint64_t every_ms, struct told *told,
		     size_t most)
{
	struct episode e = {0};
	size_t out = 0;

	for (uint64_t ms = every_ms; ms <= s[n - 1].until_ms; ms += every_ms) {
		struct pacer_counters c = counters_at(s, n, ms);
		enum episode_step step = episode_feed(&e, &usual, &c, ms * MS);

		if (!step)
			continue;
		assert_true(out < most);
		told[out++] = (struct told){step, ms, e.began_ns / MS, e.excess_ns / MS,
					    episode_so_far(&e).denied};
		episode_told(&e);
	}
	return out;
}

static void begins_and_ends(void **state)
{
	const struct stretch s[] = {{2000, 500, 0}, {8000, 500, 1000}, {30000, 500, 0}};
	struct told told[8];

	(void)state;
	/* 100 denied in a reading, of which 1 is ordinary, and 1.5 of the 150 that match. */
	assert_int_equal(follow(s, 3, 100, told, 8), 3);
	assert_int_equal(told[0].step, EPISODE_STARTS);
	assert_int_equal(told[0].at_ms, 2200);
	assert_int_equal(told[0].began_ms, 2000);
	assert_int_equal(told[0].denied, 200);
	assert_int_equal(told[1].step, EPISODE_GOES_ON);
	assert_int_equal(told[1].at_ms, 7200);
	assert_int_equal(told[2].step, EPISODE_ENDS);
	assert_int_equal(told[2].ended_ms, 8200); /* the end of the second that had the last */
	assert_int_equal(told[2].at_ms, 18200);
	assert_int_equal(told[2].denied, 6000);
}

static void of_the_ordinary(void **state)
{
	static const struct stretch quiet[][2] = {
	    {{600000, 0, 9.9}},		      /* below ten a second */
	    {{600000, 99000, 990}},	      /* one in a hundred */
	    {{10000, 5, 0}, {10100, 5, 980}}, /* 98 at once */
	    {{600000, 1000000, 0}},	      /* all is well */
	};
	struct told told[1];

	(void)state;
	for (size_t i = 0; i < sizeof(quiet) / sizeof(*quiet); i++)
		assert_int_equal(follow(quiet[i], quiet[i][1].until_ms ? 2 : 1, 100, told, 1), 0);
}

/* As episode.h says: least / r, and a reading. */
static void how_late(void **state)
{
	struct pacer_sample_rng rng = {7};
	struct told told[64];

	(void)state;
	for (int i = 0; i < 300; i++) {
		double pps = 20 + pacer_sample_below(&rng, 100000);
		double excess = pps - EPISODE_ORDINARY_PPS - pps / EPISODE_ORDINARY_SHARE;
		uint64_t from = 1000 + pacer_sample_below(&rng, 1000), every = 50 + i % 3 * 50;
		struct stretch s[] = {{from, 0, 0}, {from + 40000, 0, pps}};
		uint64_t wanted = (uint64_t)(EPISODE_LEAST / excess * 1000);
		size_t n = follow(s, 2, every, told, 64);

		assert_true(n >= 1 && told[0].step == EPISODE_STARTS);
		assert_true(told[0].at_ms >= from + wanted);
		/* and a packet that counts in the next reading */
		assert_true(told[0].at_ms <=
			    from + wanted + 2 * every + 1 + (uint64_t)(2000 / excess));
		assert_true(told[0].began_ms <= from + every && told[0].began_ms + every >= from);
	}
}

static void another_pacer(void **state)
{
	struct episode e = {0};
	struct pacer_counters c = {0}, zero = {0};

	(void)state;
	assert_int_equal(episode_feed(&e, &usual, &c, S), EPISODE_NOTHING);
	c.by[PACER_DENY_GAP].packets = 1000;
	assert_int_equal(episode_feed(&e, &usual, &c, 2 * S), EPISODE_STARTS);
	episode_told(&e);
	assert_int_equal(episode_so_far(&e).most, PACER_DENY_GAP);
	assert_int_equal(episode_feed(&e, &usual, &zero, 3 * S), EPISODE_ENDS);
	assert_int_equal(episode_so_far(&e).denied, 1000);
	assert_int_equal(e.excess_ns, 2 * S);
	assert_int_equal(episode_feed(&e, &usual, &zero, 4 * S), EPISODE_NOTHING);
	assert_int_equal(episode_feed(&e, &usual, &zero, 5 * S), EPISODE_NOTHING);
	assert_int_equal(episode_stop(&e), EPISODE_NOTHING);
}

/* All of it in less than a second: no more than there was. Two readings may be of one moment. */
static void of_no_time(void **state)
{
	static const uint64_t after_ns[] = {0, 1, 100 * MS, S - 1, S};

	(void)state;
	for (size_t i = 0; i < sizeof(after_ns) / sizeof(*after_ns); i++) {
		struct episode e = {0};
		struct pacer_counters c = {0};

		assert_int_equal(episode_feed(&e, &usual, &c, S), EPISODE_NOTHING);
		c.by[PACER_DENY_GAP].packets = 1000;
		assert_int_equal(episode_feed(&e, &usual, &c, S + after_ns[i]), EPISODE_STARTS);
		assert_float_equal(e.peak.pps, 1000, 1e-9);
		assert_int_equal(episode_stop(&e), EPISODE_ENDS);
		assert_float_equal(e.peak.pps, 1000, 1e-9);
	}
}

/* --- the greatest in a second ---------------------------------------------------------------- */

#define PEAK_READINGS 400u

/* A rule's denials, as they were read; and how many were in each tick of 0.1 ms. */
struct peak_run {
	uint64_t at_ns[PEAK_READINGS], denied[PEAK_READINGS], most_apart_ns;
	size_t n;
	uint32_t tick[PEAK_READINGS * 2500]; /* readings are 0.25 s apart at most */
};

#define TICK_NS (MS / 10)

/* Bursts and stretches of any rate, and pauses; readings come each 0.1 s, or late as they like. */
static void draw_run(struct peak_run *r, struct pacer_sample_rng *rng, bool late)
{
	uint64_t denied = 0, tick = 0, left = 0;
	uint32_t each = 0;

	memset(r, 0, sizeof(*r));
	for (r->n = 0; r->n < PEAK_READINGS; r->n++) {
		uint64_t was_ns = r->n ? r->at_ns[r->n - 1] : 0;
		uint64_t apart = late && r->n ? 1000 + pacer_sample_below(rng, 1500) : 1000;

		for (uint64_t end = tick + apart; tick < end; tick++, left--) {
			if (!left) {
				left = 1 + pacer_sample_below(rng, 20000);
				each =
				    pacer_sample_below(rng, 3) ? 0 : pacer_sample_below(rng, 1000);
			}
			r->tick[tick] = pacer_sample_below(rng, 1000) < each;
			if (!pacer_sample_below(rng, 20000))
				r->tick[tick] += 500;
			denied += r->tick[tick];
		}
		r->at_ns[r->n] = tick * TICK_NS;
		r->denied[r->n] = denied;
		if (r->n && r->at_ns[r->n] - was_ns > r->most_apart_ns)
			r->most_apart_ns = r->at_ns[r->n] - was_ns;
	}
}

/* The greatest number in a span of this length, of those after from_ns and until to_ns. */
static uint64_t most_in(const struct peak_run *r, uint64_t from_ns, uint64_t to_ns, uint64_t span)
{
	uint64_t ticks = span / TICK_NS, most = 0, now = 0;

	for (uint64_t i = from_ns / TICK_NS; i < to_ns / TICK_NS; i++) {
		now += r->tick[i];
		if (i >= from_ns / TICK_NS + ticks)
			now -= r->tick[i - ticks];
		most = now > most ? now : most;
	}
	return most;
}

/*
 * Readings that are a tenth of a second apart find the greatest number between two that are a
 * second apart, exactly. Whatever their times, a second and the time between two readings have as
 * many.
 */
static void check_peak(const struct peak_run *r, const struct episode *e, bool late)
{
	uint64_t apart = r->most_apart_ns, most = 0;
	double low = most_in(r, e->began_ns, e->was_ns, S - apart);

	assert_true(e->peak.pps <= most_in(r, e->began_ns, e->was_ns, S + apart) + 1e-6);
	assert_true(e->peak.pps >= low * S / (S + apart) - 1e-6);
	if (late)
		return;
	for (size_t i = 0; i < r->n && r->at_ns[i] <= e->was_ns; i++) {
		size_t from = i < 10 ? 0 : i - 10;

		while (from < i && r->at_ns[from] < e->began_ns)
			from++;
		if (r->at_ns[from] >= e->began_ns && r->denied[i] - r->denied[from] > most)
			most = r->denied[i] - r->denied[from];
	}
	assert_float_equal(e->peak.pps, most, 1e-6);
}

static void greatest_in_a_second(void **state)
{
	static const struct episode_settings by[] = {{100, 10 * S}, {30, 300 * MS}, {1000, S}};
	static struct peak_run r; /* large */
	struct pacer_sample_rng rng = {11};
	size_t checked = 0;

	(void)state;
	for (int run = 0; run < 200; run++) {
		struct pacer_counters c = {0};
		struct episode e = {0};
		bool late = run & 1;

		draw_run(&r, &rng, late);
		for (size_t i = 0; i < r.n; i++) {
			enum episode_step step;

			c.by[PACER_DENY_WINDOW].packets = r.denied[i];
			step = episode_feed(&e, &by[run % 3], &c, r.at_ns[i]);
			if (!step)
				continue;
			check_peak(&r, &e, late);
			checked++;
		}
		if (episode_stop(&e))
			check_peak(&r, &e, late);
	}
	assert_true(checked > 1000);
}

/* What the second of two has is its own. */
static void two_in_turn(void **state)
{
	const struct stretch s[] = {
	    {1000, 0, 0}, {3000, 0, 500}, {20000, 0, 0}, {22000, 0, 500}, {40000, 0, 0}};
	struct told told[8];

	(void)state;
	assert_int_equal(follow(s, 5, 100, told, 8), 4);
	assert_int_equal(told[1].step, EPISODE_ENDS);
	assert_int_equal(told[2].step, EPISODE_STARTS);
	assert_int_equal(told[2].began_ms, 20000);
	assert_int_equal(told[3].denied, 1000);
}

/* In the very reading after an end. */
static void right_after_an_end(void **state)
{
	const struct stretch s[] = {{2000, 0, 0}, {8000, 0, 1000}, {18200, 0, 0}, {19000, 0, 5000}};
	struct told told[8];

	(void)state;
	assert_int_equal(follow(s, 4, 100, told, 8), 4);
	assert_int_equal(told[2].step, EPISODE_ENDS);
	assert_int_equal(told[2].at_ms, 18200);
	assert_int_equal(told[3].step, EPISODE_STARTS);
	assert_int_equal(told[3].at_ms, 18300);
	assert_int_equal(told[3].began_ms, 18200);
	assert_int_equal(told[3].denied, 500);
}

/* It is told of less and less often. */
static void news(void **state)
{
	const struct stretch s[] = {{1000000, 0, 1000}};
	struct told told[32];
	size_t n = follow(s, 1, 100, told, 32);

	(void)state;
	assert_int_equal(told[1].at_ms - told[0].at_ms, 5000);
	assert_int_equal(told[2].at_ms - told[1].at_ms, 10000);
	assert_int_equal(told[3].at_ms - told[2].at_ms, 20000);
	assert_true(told[n - 1].at_ms - told[n - 2].at_ms <= 320000);
	assert_int_equal(n, 9);
}

/* Bytes that were denied before the episode are not its own. */
static void bytes_of_the_next(void **state)
{
	struct pacer_counters c = {0};
	struct episode e = {0};
	uint64_t now_ns = S;

	(void)state;
	for (int i = 0; i < 2; i++) {
		episode_feed(&e, &usual, &c, now_ns += S);
		for (int k = 0; k < 5; k++) {
			c.by[PACER_DENY_GAP].packets += 1000;
			c.by[PACER_DENY_GAP].bytes += 100000;
			episode_feed(&e, &usual, &c, now_ns += S);
		}
		assert_true(e.on);
		assert_int_equal(episode_so_far(&e).denied_bytes, 100 * episode_so_far(&e).denied);
		for (int k = 0; k < 60; k++)
			episode_feed(&e, &usual, &c, now_ns += S);
		assert_false(e.on);
	}
}

/* --- heavy keys ------------------------------------------------------------------------------ */

struct key_told {
	char key[TALLY_TEXT];
	bool began;
	uint64_t began_ns, heavy_ns;
};

struct keys_told {
	struct key_told at[64];
	size_t n;
};

static void note_key(const struct heavy_key *key, bool began, void *arg)
{
	struct keys_told *told = arg;

	assert_true(told->n < 64);
	snprintf(told->at[told->n].key, sizeof(told->at[0].key), "%s", key->key);
	told->at[told->n].began_ns = key->began_ns;
	told->at[told->n].heavy_ns = key->heavy_ns;
	told->at[told->n++].began = began;
}

static void heavy_keys(void **state)
{
	const struct heavy_seen a = {"a", {0.5, 0.3, 0.7}}, b = {"b", {0.15, 0.09, 0.3}};
	const struct heavy_seen both[] = {a, b};
	struct keys_told told = {.n = 0};
	struct heavy h = {0};

	(void)state;
	heavy_feed(&h, both, 2, S, 10 * S, note_key, &told);
	heavy_feed(&h, both, 2, 2 * S, 10 * S, note_key, &told);
	assert_int_equal(told.n, 1); /* b may have less than a tenth */
	assert_string_equal(told.at[0].key, "a");
	heavy_feed(&h, &b, 1, 11 * S, 10 * S, note_key, &told);
	assert_int_equal(told.n, 1);
	heavy_feed(&h, &b, 1, 12 * S, 10 * S, note_key, &told);
	assert_int_equal(told.n, 2);
	assert_false(told.at[1].began);
	assert_int_equal(told.at[1].began_ns, S);
	assert_int_equal(told.at[1].heavy_ns, 2 * S);
	heavy_feed(&h, &a, 1, 13 * S, 10 * S, note_key, &told);
	heavy_stop(&h, note_key, &told);
	assert_int_equal(told.n, 4);
	heavy_stop(&h, note_key, &told);
	assert_int_equal(told.n, 4);
}

static void too_many_keys(void **state)
{
	struct keys_told told = {.n = 0};
	struct heavy h = {0};

	(void)state;
	for (int i = 0; i < 20; i++) {
		char key[16];
		struct heavy_seen seen = {key, {0.5, 0.3, 0.7}};

		snprintf(key, sizeof(key), "k%d", i);
		heavy_feed(&h, &seen, 1, S + i, 10 * S, note_key, &told);
	}
	assert_int_equal(told.n, HEAVY_KEYS);
	assert_int_equal(h.lost, 20 - HEAVY_KEYS);
}

/* --- who sends -------------------------------------------------------------------------------- */

static struct crowd_packet packet_from(uint32_t saddr, uint32_t rule, uint64_t time_ns)
{
	struct crowd_packet p = {
	    .time_ns = time_ns, .rule = rule, .reason = PACER_DENY_WINDOW, .by = KEY_SRC(32, 128)};

	p.pkt.family = PACER_FAMILY_4;
	p.pkt.len_bytes = 100;
	p.pkt.key[PACER_WORD_SADDR] = saddr;
	p.seen = p.pkt;
	return p;
}

static uint32_t anywhere(struct pacer_sample_rng *rng)
{
	return pacer_sample_random(rng);
}

static uint32_t of_a_network(struct pacer_sample_rng *rng)
{
	return 0x0a000000 | pacer_sample_below(rng, 1 << 22);
}

static uint32_t of_eight(struct pacer_sample_rng *rng)
{
	return 0x0a000000 | pacer_sample_below(rng, 8);
}

static uint32_t of_one(struct pacer_sample_rng *rng)
{
	return pacer_sample_below(rng, 10) ? 0x0a000001 : of_a_network(rng);
}

static void kinds_of_crowds(void **state)
{
	static const struct {
		uint32_t (*draw)(struct pacer_sample_rng *rng);
		enum crowd_kind kind;
	} rows[] = {{anywhere, CROWD_SPOOFED},
		    {of_a_network, CROWD_MANY},
		    {of_eight, CROWD_FEW},
		    {of_one, CROWD_ONE}};
	struct crowd_packet p[CROWD_MAX];
	struct pacer_sample_rng rng = {1};
	struct crowd c;

	(void)state;
	for (size_t r = 0; r < 4; r++)
		for (int run = 0, wrong = 0; run < 200; run++) {
			for (size_t i = 0; i < CROWD_MAX; i++)
				p[i] = packet_from(rows[r].draw(&rng), 3, S);
			crowd_read(&c, p, CROWD_MAX, 100000, 3, 0);
			assert_int_equal(c.samples, CROWD_MAX);
			wrong += c.kind != rows[r].kind;
			if (wrong > 10)
				fail_msg("%zu: %s, entropy to %f", r, crowd_kind_name(c.kind),
					 c.entropy.high);
		}
	crowd_read(&c, p, CROWD_MAX, 100000, 2, 0); /* of a rule that has none */
	assert_int_equal(c.kind, CROWD_UNKNOWN);
	crowd_read(&c, p, CROWD_MAX, 100000, 3, 2 * S);
	assert_int_equal(c.kind, CROWD_UNKNOWN);
	crowd_read(&c, p, 3, 100000, 3, S); /* too few to tell */
	assert_int_equal(c.kind, CROWD_UNCLEAR);
}

/* Addresses that no host sends from, and those beside them. */
static const struct {
	uint8_t family;
	uint32_t addr[4];
	enum crowd_kind kind;
} senders[] = {
    {PACER_FAMILY_4, {0x00ffffff}, CROWD_SPOOFED},
    {PACER_FAMILY_4, {0x01000000}, CROWD_MANY},
    {PACER_FAMILY_4, {0x7effffff}, CROWD_MANY},
    {PACER_FAMILY_4, {0x7f000001}, CROWD_SPOOFED},
    {PACER_FAMILY_4, {0x80000000}, CROWD_MANY},
    {PACER_FAMILY_4, {0xdfffffff}, CROWD_MANY},
    {PACER_FAMILY_4, {0xe0000000}, CROWD_SPOOFED},
    {PACER_FAMILY_6, {0, 0, 0, 0}, CROWD_SPOOFED},
    {PACER_FAMILY_6, {0, 0, 0, 1}, CROWD_SPOOFED},
    {PACER_FAMILY_6, {0, 0, 0, 2}, CROWD_MANY},
    {PACER_FAMILY_6, {0, 0, 1, 1}, CROWD_MANY},
    {PACER_FAMILY_6, {0, 1, 0, 1}, CROWD_MANY},
    {PACER_FAMILY_6, {1, 0, 0, 1}, CROWD_MANY},
    {PACER_FAMILY_6, {0xfeffffff}, CROWD_MANY},
    {PACER_FAMILY_6, {0xff020000, 0, 0, 1}, CROWD_SPOOFED},
};

static void impossible_senders(void **state)
{
	(void)state;
	for (size_t r = 0; r < sizeof(senders) / sizeof(*senders); r++) {
		struct crowd_packet p[CROWD_MAX];
		struct crowd c;

		for (uint32_t i = 0; i < CROWD_MAX; i++) {
			p[i] = packet_from(0x20010db8, 3, S);
			p[i].pkt.family = senders[r].family;
			p[i].pkt.key[PACER_WORD_SADDR + (senders[r].family == PACER_FAMILY_6)] +=
			    i << 8;
			if (i < 2)
				memcpy(&p[i].pkt.key[PACER_WORD_SADDR], senders[r].addr,
				       sizeof(senders[r].addr));
			p[i].seen = p[i].pkt;
		}
		crowd_read(&c, p, CROWD_MAX, 100000, 3, 0);
		if (c.kind != senders[r].kind)
			fail_msg("%zu: %s", r, crowd_kind_name(c.kind));
	}
}

/* A key's mean length is that of its own packets. */
static void lengths_of_keys(void **state)
{
	struct crowd_packet p[CROWD_MAX];
	struct crowd c;

	(void)state;
	for (uint32_t i = 0; i < CROWD_MAX; i++) {
		p[i] = packet_from(i % 4 ? 0x0a000001 : 0x0b000000 + i, 3, S);
		p[i].pkt.len_bytes = p[i].seen.len_bytes = i % 4 ? 1000 : 60;
	}
	crowd_read(&c, p, CROWD_MAX, 100000, 3, 0);
	assert_true(c.keys > 0);
	assert_float_equal(c.key[0].len_bytes, 1000, 1e-9);
}

/* The interval of the greatest key's share holds it, though others' packets are in the sample. */
static void shares_of_keys(void **state)
{
	struct crowd_packet p[CROWD_MAX];
	struct pacer_sample_rng rng = {2};
	int outside = 0;

	(void)state;
	for (int run = 0; run < 500; run++) {
		struct crowd c;

		for (size_t i = 0; i < CROWD_MAX; i++)
			p[i] = pacer_sample_below(&rng, 2)
				   ? packet_from(anywhere(&rng), 1, S)
				   : packet_from(pacer_sample_below(&rng, 10) < 3 ? 0x0a000001
										  : anywhere(&rng),
						 0, S);
		crowd_read(&c, p, CROWD_MAX, 100000, 0, 0);
		assert_true(c.keys > 0);
		if (strcmp(c.key[0].key, "10.0.0.1") != 0)
			continue;
		outside += c.key[0].share.low > 0.3 || c.key[0].share.high < 0.3;
	}
	assert_true(outside <= 25);
}

/* Whatever limit denied a packet of it may be what a key wants. */
static void limits_of_a_key(void **state)
{
	struct crowd_packet p[] = {packet_from(0x0a000001, 0, S), packet_from(0x0a000002, 0, S),
				   packet_from(0x0a000001, 0, S), packet_from(0x0a000001, 0, S)};
	struct crowd c;

	(void)state;
	p[0].limits = p[3].limits = 1;
	p[1].limits = 2;
	p[2].limits = 4;
	crowd_read(&c, p, 4, 4, 0, 0);
	assert_int_equal(c.keys, 2);
	assert_int_equal(c.key[0].limits, 5);
	assert_int_equal(c.key[1].limits, 2);
}

/* --- what would have to be set --------------------------------------------------------------- */

static void needed_values(void **state)
{
	static const struct {
		const char *limit, *text;
		enum pacer_reason reason;
		double value;
	} rows[] = {
	    /* 0.5 of 200 a second, of 100 bytes each */
	    {"{key: src/32,128, packets: 10, window: 2s, slots: 10}", "packets=419",
	     PACER_DENY_WINDOW, 230},
	    {"{key: src/32,128, bytes: 1000, window: 1s, slots: 10}", "bytes=21419",
	     PACER_DENY_WINDOW, 12000},
	    {"{key: src/32,128, gap: 100ms}", "gap=5.111821ms", PACER_DENY_GAP, 1e9 / 110},
	    {"{key: src/32,128, rate: 20/s, burst: 5}", "rate=206/s", PACER_DENY_RATE, 120},
	    {"{key: src/32,128, rate: 80kbit/s, burst: 5k}", "rate=228500bit/s", PACER_DENY_RATE,
	     20000},
	};
	struct crowd_key key = {
	    .by = KEY_SRC(32, 128), .limits = 1, .share = {0.5, 0.2, 0.9}, .len_bytes = 100};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct policy_error error;
		struct needed needed;
		char text[256];
		struct policy *p;

		snprintf(text, sizeof(text), "rules: [{name: r, limits: [%s]}]", rows[i].limit);
		p = policy_parse(text, strlen(text), &error);
		if (!p)
			fail_msg("%s", error.text);
		needed_find(&needed, &p->rule[0], rows[i].reason, &key, 200);
		assert_int_equal(needed.limit, 0);
		assert_float_equal(needed.value, rows[i].value, rows[i].value / 1e6);
		assert_string_equal(needed_text(&needed, text, sizeof(text)), rows[i].text);
		needed_find(&needed, &p->rule[0], PACER_DENY_BAN, &key, 200);
		assert_int_equal(needed.limit, -1);
		policy_free(p);
	}
}

/* Of a wider prefix of a ladder, what its line would have to say. */
static void needed_of_a_rung(void **state)
{
	static const char *const text =
	    "rules: [{name: r, limits: [{key: all, gap: 1ns}, {key: "
	    "'src/[32,24,16],[64,48]', rate: 5/s, burst: 5, wider: x4}]}]";
	struct crowd_key key = {
	    .by = KEY_SRC(24, 48), .limits = 1 << 2, .share = {0.5, 0.2, 0.9}, .len_bytes = 100};
	struct policy_error error;
	struct policy *p = policy_parse(text, strlen(text), &error);
	struct needed needed;
	char buf[64];

	(void)state;
	assert_non_null(p);
	needed_find(&needed, &p->rule[0], PACER_DENY_RATE, &key, 200);
	assert_int_equal(needed.limit, 1);
	assert_float_equal(needed.value, 30, 1e-6); /* of which the /24 has four times */
	assert_string_equal(needed_text(&needed, buf, sizeof(buf)), "rate=52/s");
	policy_free(p);
}

/* --- all of it -------------------------------------------------------------------------------- */

static char said[4096];

static void note(const struct event *event, void *arg)
{
	size_t at = strlen(said);

	(void)arg;
	snprintf(said + at, sizeof(said) - at, "%llu %s %s%s%s%s\n",
		 (unsigned long long)(event->told_ns / MS), event_name(event->kind), event->rule,
		 event->key ? " " : "", event->key ? event->key : "",
		 event->crowd ? crowd_kind_name(event->crowd->kind) : "");
	if (event->key) /* with the share that made it heavy */
		assert_true(event->share.low >= HEAVY_SHARE);
}

static struct policy *parsed(const char *text)
{
	struct policy_error error;
	struct policy *p = policy_parse(text, strlen(text), &error);

	if (!p)
		fail_msg("%s", error.text);
	return p;
}

#define LIMITS "limits: [{key: src/32,128, packets: 10, window: 1s}]"

/* Two rules; the second is flooded by one source, then another policy comes, and quiet. */
static void told_in_order(void **state)
{
	struct policy *one = parsed("rules: [{name: a, match: {dport: 1}, " LIMITS
				    "}, {name: b, " LIMITS "}]"),
		      *two = parsed("rules: [{name: b, " LIMITS "}, {name: c, " LIMITS "}]"),
		      *three = parsed("rules: [{name: c, " LIMITS "}]");
	const uint32_t first[] = {1, 2}, second[] = {2, 3}, third[] = {3};
	struct pacer_counters c[2] = {0};
	struct crowd_packet p[CROWD_MAX];
	struct detector d;

	(void)state;
	for (size_t i = 0; i < CROWD_MAX; i++)
		p[i] = packet_from(0x0a000001, 1, 1100 * MS);
	*said = 0;
	detector_open(&d, &usual, note, NULL);
	detector_policy(&d, one, first);
	assert_false(detector_read(&d, c, S));
	c[1].by[PACER_DENY_WINDOW].packets = 500;
	assert_true(detector_read(&d, c, 1200 * MS));
	detector_tell(&d, p, CROWD_MAX, 500);
	assert_string_equal(said, "1200 start bone\n1200 key_start b 10.0.0.1\n");
	assert_false(detector_read(&d, c, 1300 * MS));
	detector_policy(&d, two, second); /* b has moved, and goes on */
	c[0] = c[1];
	c[1] = (struct pacer_counters){0};
	for (uint64_t ms = 1400; ms < 11200; ms += 100)
		if (detector_read(&d, c, ms * MS))
			detector_tell(&d, NULL, 0, 0);
	*said = 0;
	detector_policy(&d, three, third);
	assert_string_equal(said, "11100 key_end b 10.0.0.1\n11100 end bone\n");
	*said = 0;
	detector_table(&d, 0, 0, 1000, 10, 2000, 12 * S);
	detector_table(&d, 0, 0, 1000, 11, 2000, 13 * S);
	detector_table(&d, 0, 0, 1000, 12, 2000, 14 * S);
	detector_table(&d, 0, 0, 1000, 0, 2000, 23 * S);
	detector_table(&d, 0, 0, 1000, 0, 2000, 24 * S);
	assert_string_equal(said, "13000 sharing c\n24000 sharing_end c\n");
	*said = 0;
	detector_policy(&d, one, first);
	detector_table(&d, 1, 0, 1000, 12, 2000, 30 * S); /* of the second rule */
	assert_string_equal(said, "30000 sharing b\n");
	detector_stop(&d);
	policy_free(one);
	policy_free(two);
	policy_free(three);
}

static void note_lets(const struct event *event, void *arg)
{
	(void)arg;
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s: %s\n",
		 event_name(event->kind), event->lets_through ? event->lets_through : "-");
}

/* What lets through all that is denied is told as of the policy in force. */
static void told_of_what_passes(void **state)
{
	static const char *const texts[] = {
	    "rules: [{name: a, " LIMITS "}]", "rules: [{name: a, over: pass, " LIMITS "}]",
	    "mode: monitor\nrules: [{name: a, " LIMITS "}]",
	    "mode: monitor\nrules: [{name: a, over: pass, " LIMITS "}]"};
	static const char *const lets[] = {"-", "over: pass", "mode: monitor", "mode: monitor"};
	const uint32_t counter[] = {1};

	(void)state;
	for (size_t i = 0; i < 16; i++) {
		struct policy *first = parsed(texts[i / 4]), *second = parsed(texts[i % 4]);
		struct pacer_counters c = {0};
		struct detector d;
		char want[80];

		*said = 0;
		detector_open(&d, &usual, note_lets, NULL);
		detector_policy(&d, first, counter);
		assert_false(detector_read(&d, &c, S));
		c.by[PACER_DENY_WINDOW].packets = 500;
		assert_true(detector_read(&d, &c, 1200 * MS));
		detector_tell(&d, NULL, 0, 0);
		detector_policy(&d, second, counter);
		detector_stop(&d);
		snprintf(want, sizeof(want), "start: %s\nend: %s\n", lets[i / 4], lets[i % 4]);
		assert_string_equal(said, want);
		policy_free(first);
		policy_free(second);
	}
}

/* A key ends once it was not heavy for the quiet and the two looks around it, while the episode
 * goes on by others; what was sampled before it all is not of it. */
static void told_of_a_key_that_falls_silent(void **state)
{
	struct policy *policy = parsed("rules: [{name: a, " LIMITS "}]");
	const uint32_t counter[] = {1};
	struct pacer_counters c = {0};
	struct crowd_packet p[CROWD_MAX];
	struct detector d;

	(void)state;
	*said = 0;
	detector_open(&d, &usual, note, NULL);
	detector_policy(&d, policy, counter);
	for (uint64_t s = 20; s < 41; s++) {
		for (size_t i = 0; i < CROWD_MAX; i++) {
			bool old = i < CROWD_MAX / 3;

			p[i] = packet_from(old	    ? 0x0a000009
					   : s < 26 ? 0x0a000001
						    : 0x0a000002,
					   0, (old ? 1 : s) * S);
		}
		if (s > 20)
			c.by[PACER_DENY_WINDOW].packets += 5000;
		if (detector_read(&d, &c, s * S))
			detector_tell(&d, p, CROWD_MAX, 5000);
		if (s == 36)
			assert_null(strstr(said, "key_end"));
	}
	assert_null(strstr(said, "10.0.0.9"));
	assert_non_null(strstr(said, "21000 key_start a 10.0.0.1\n"));
	assert_non_null(strstr(said, "26000 key_start a 10.0.0.2\n"));
	assert_non_null(strstr(said, "37000 key_end a 10.0.0.1\n"));
	detector_stop(&d);
	policy_free(policy);
}

static struct {
	enum event_kind kind;
	int64_t day_ns;
} days[8];
static size_t n_days;

static void note_day(const struct event *event, void *arg)
{
	(void)arg;
	assert_true(n_days < 8);
	days[n_days].kind = event->kind;
	days[n_days++].day_ns = event->began_day_ns;
}

/*
 * The clock of the day is set at each reading. What began has the time of day at which it began in
 * each of its events, also across another policy; a key that is heavy later has its own.
 */
static void told_of_one_day(void **state)
{
	static const struct {
		enum event_kind kind;
		int64_t day_ns;
	} expected[] = {{EVENT_START, 11},   {EVENT_KEY_START, 12}, {EVENT_GOES_ON, 11},
			{EVENT_KEY_END, 12}, {EVENT_END, 11},	    {EVENT_START, 300}};
	struct policy *one = parsed("rules: [{name: a, " LIMITS "}]"),
		      *two = parsed("rules: [{name: x, match: {dport: 1}, " LIMITS
				    "}, {name: a, " LIMITS "}]");
	const uint32_t first[] = {1}, second[] = {2, 1};
	struct pacer_counters c[2] = {0};
	struct crowd_packet p[CROWD_MAX];
	struct detector d;

	(void)state;
	n_days = 0;
	detector_open(&d, &usual, note_day, NULL);
	detector_policy(&d, one, first);
	for (uint64_t s = 1; s < 40; s++) {
		if (s == 4) {
			detector_policy(&d, two, second);
			c[1] = c[0];
			c[0] = (struct pacer_counters){0};
		}
		if ((s > 1 && s < 12) || s == 30)
			c[s >= 4].by[PACER_DENY_WINDOW].packets += 5000;
		for (size_t i = 0; i < CROWD_MAX; i++)
			p[i] = packet_from(0x0a000001, s >= 4, s * S);
		d.day_ns = (int64_t)(s == 30 ? 300 : 9 + s);
		if (detector_read(&d, c, s * S))
			detector_tell(&d, s > 2 && s < 12 ? p : NULL, CROWD_MAX, 5000);
	}
	assert_int_equal(n_days, sizeof(expected) / sizeof(*expected));
	for (size_t i = 0; i < n_days; i++) {
		assert_int_equal(days[i].kind, expected[i].kind);
		assert_int_equal(days[i].day_ns, expected[i].day_ns);
	}
	n_days = 0;
	detector_stop(&d);
	policy_free(one);
	policy_free(two);
}

static uint32_t rung_told;

static void note_rung(const struct event *event, void *arg)
{
	(void)arg;
	rung_told = event->rung;
}

/* Of a table, which of the ladder's lengths it is of; 0: its limit is no ladder. */
static void told_of_a_rung(void **state)
{
	struct policy *p = parsed("rules: [{name: r, limits: [{key: src, gap: 1ns}, {key: "
				  "'src/[32,24,16],[64,48]', rate: 5/s, burst: 5, wider: x4}]}]");
	const uint32_t counter[] = {1};
	struct detector d;

	(void)state;
	detector_open(&d, &usual, note_rung, NULL);
	detector_policy(&d, p, counter);
	assert_int_equal(p->rule[0].n_limits, 4);
	for (uint32_t limit = 0; limit < 4; limit++) {
		rung_told = 9;
		detector_table(&d, 0, limit, 10, 1000, 2000, S);
		assert_int_equal(rung_told, limit);
	}
	detector_stop(&d);
	policy_free(p);
}

/* A rule of that name with other counters is another, and so is one of those counters. */
static void told_of_another(void **state)
{
	struct policy *a = parsed("rules: [{name: a, " LIMITS "}]"),
		      *b = parsed("rules: [{name: b, " LIMITS "}]");
	const uint32_t one[] = {1}, two[] = {2};
	struct pacer_counters c = {0};
	struct detector d;

	(void)state;
	*said = 0;
	detector_open(&d, &usual, note, NULL);
	for (int i = 0; i < 3; i++) {
		detector_policy(&d, i == 2 ? b : a, i == 1 ? two : one);
		c = (struct pacer_counters){0};
		assert_false(detector_read(&d, &c, S));
		c.by[PACER_DENY_WINDOW].packets = 500;
		assert_true(detector_read(&d, &c, 1100 * MS));
		detector_tell(&d, NULL, 0, 0);
		d.rule[0].heavy.lost = i == 1; /* which is told at its end */
	}
	detector_stop(&d);
	assert_string_equal(said,
			    "1100 start a\n1100 end a\n1100 start a\n1100 lost a\n1100 end a\n"
			    "1100 start b\n1100 end b\n");
	policy_free(a);
	policy_free(b);
}

/* Without memory less is known of who sends, and nothing else is told. */
static void told_without_memory(void **state)
{
	struct policy *one = parsed("rules: [{name: b, " LIMITS "}]");
	const uint32_t counter[] = {1};
	struct crowd_packet p[CROWD_MAX];
	uint32_t keys = 0;

	(void)state;
	for (size_t i = 0; i < CROWD_MAX; i++)
		p[i] = packet_from(0x0a000001, 0, S);
	for (uint32_t at = 1; !keys; at++) {
		struct pacer_counters c = {0};
		struct detector d;

		*said = 0;
		detector_open(&d, &usual, note, NULL);
		detector_policy(&d, one, counter);
		assert_false(detector_read(&d, &c, S));
		c.by[PACER_DENY_WINDOW].packets = 500;
		assert_true(detector_read(&d, &c, 1100 * MS));
		starved_from(at, true);
		memory.on = true;
		detector_tell(&d, p, CROWD_MAX, 500);
		memory.on = false;
		keys = d.rule[0].crowd.keys;
		assert_string_equal(said, keys ? "1100 start bone\n1100 key_start b 10.0.0.1\n"
					  : d.rule[0].crowd.kind == CROWD_ONE ? "1100 start bone\n"
									      : "1100 start b\n");
		starved_from(0, false);
		detector_stop(&d);
		assert_true(at < 50);
	}
	policy_free(one);
}

/* The first packets have the time of a clock that ticks: of the tick before the last ordinary
 * reading. */
static void of_a_coarse_clock(void **state)
{
	struct policy *one = parsed("rules: [{name: b, " LIMITS "}]");
	static const struct {
		uint64_t behind_ns, packets_ns;
		enum crowd_kind kind;
	} rows[] = {{4 * MS, 996 * MS, CROWD_ONE},
		    {4 * MS, 996 * MS - 1, CROWD_UNKNOWN},
		    {2 * S, 0, CROWD_ONE},
		    {0, 1000 * MS, CROWD_ONE},
		    {0, 1000 * MS - 1, CROWD_UNKNOWN}};
	const uint32_t counter[] = {1};
	struct crowd_packet p[CROWD_MAX];

	(void)state;
	for (size_t row = 0; row < sizeof(rows) / sizeof(*rows); row++) {
		struct pacer_counters c = {0};
		struct detector d;

		for (size_t i = 0; i < CROWD_MAX; i++)
			p[i] = packet_from(0x0a000001, 0, rows[row].packets_ns);
		detector_open(&d, &usual, note, NULL);
		d.behind_ns = rows[row].behind_ns;
		detector_policy(&d, one, counter);
		assert_false(detector_read(&d, &c, S));
		c.by[PACER_DENY_WINDOW].packets = 500;
		assert_true(detector_read(&d, &c, 1100 * MS));
		detector_tell(&d, p, CROWD_MAX, 500);
		assert_int_equal(d.rule[0].crowd.kind, rows[row].kind);
		detector_stop(&d);
	}
	policy_free(one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(begins_and_ends),
	    cmocka_unit_test(of_the_ordinary),
	    cmocka_unit_test(how_late),
	    cmocka_unit_test(another_pacer),
	    cmocka_unit_test(of_no_time),
	    cmocka_unit_test(two_in_turn),
	    cmocka_unit_test(right_after_an_end),
	    cmocka_unit_test(news),
	    cmocka_unit_test(bytes_of_the_next),
	    cmocka_unit_test(lengths_of_keys),
	    cmocka_unit_test(heavy_keys),
	    cmocka_unit_test(too_many_keys),
	    cmocka_unit_test(kinds_of_crowds),
	    cmocka_unit_test(impossible_senders),
	    cmocka_unit_test(shares_of_keys),
	    cmocka_unit_test(needed_values),
	    cmocka_unit_test(needed_of_a_rung),
	    cmocka_unit_test(told_in_order),
	    cmocka_unit_test(told_of_what_passes),
	    cmocka_unit_test(told_of_a_key_that_falls_silent),
	    cmocka_unit_test(told_of_one_day),
	    cmocka_unit_test(told_of_another),
	    cmocka_unit_test(told_without_memory),
	    cmocka_unit_test(of_a_coarse_clock),
	    cmocka_unit_test(told_of_a_rung),
	    cmocka_unit_test(limits_of_a_key),
	    cmocka_unit_test(greatest_in_a_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
