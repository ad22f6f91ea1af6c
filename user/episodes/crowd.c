/* SPDX-License-Identifier: GPL-2.0-only */
#include "episodes/crowd.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "estimate/estimator.h"
#include "estimate/pooled.h"
#include "sample.h"

#define HALF	       0.5
#define IMPOSSIBLE_MIN 2

const char *crowd_kind_name(enum crowd_kind kind)
{
	switch (kind) {
#define CROWD_NAME(name, text) \
	case CROWD_##name:     \
		return #text;
		CROWD_KINDS(CROWD_NAME)
#undef CROWD_NAME
	}
	return "unknown";
}

/* FNV-1a. */
static uint64_t hash(const void *of, size_t len)
{
	const uint8_t *byte = of;
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < len; i++)
		h = (h ^ byte[i]) * 0x100000001b3;
	return h;
}

/* An address that no host sends from. */
static bool impossible(const struct pacer_packet *pkt)
{
	const uint32_t *a = &pkt->key[PACER_WORD_SADDR];
	uint32_t first = a[0] >> 24;

	if (pkt->family == PACER_FAMILY_4)
		return !first || first == 127 || first >= 224;
	return first == 0xff || (!a[0] && !a[1] && !a[2] && a[3] <= 1);
}

/* The packets that are asked for. */
struct part {
	const struct crowd_packet *packet[CROWD_MAX];
	uint64_t source[CROWD_MAX], key[CROWD_MAX];
	uint32_t k, impossible;
	uint64_t n;
};

/* Where a limit takes all together, its packets are told apart by their sources. */
static const char *key_text(const struct crowd_packet *p, char *buf)
{
	static const struct policy_key source = KEY_SRC(32, 128);

	return tally_key_text(p->by.parts ? &p->by : &source, p->by.parts ? &p->seen : &p->pkt, buf,
			      TALLY_TEXT);
}

static void take(struct part *part, const struct crowd_packet *p)
{
	char text[TALLY_TEXT];

	part->packet[part->k] = p;
	part->source[part->k] = hash(&p->pkt.key[PACER_WORD_SADDR], 4 * sizeof(*p->pkt.key));
	key_text(p, text);
	part->key[part->k++] = hash(text, strlen(text));
	part->impossible += impossible(&p->pkt);
}

static struct heavy_share share_of(const struct pooled_value *v)
{
	return (struct heavy_share){v->value, v->low, v->high};
}

static double mean_length(const struct part *part, uint64_t key)
{
	uint64_t bytes = 0, n = 0;

	for (uint32_t i = 0; i < part->k; i++)
		if (part->key[i] == key) {
			bytes += part->packet[i]->pkt.len_bytes;
			n++;
		}
	return (double)bytes / n; /* of which there is one */
}

static uint32_t limits_of(const struct part *part, uint64_t key)
{
	uint32_t limits = 0;

	for (uint32_t i = 0; i < part->k; i++)
		if (part->key[i] == key)
			limits |= part->packet[i]->limits;
	return limits;
}

static void read_keys(struct crowd *c, const struct part *part)
{
	const struct pooled_part one = {part->n, part->k, part->key};
	struct pooled *p = pooled_open(&one, 1, false);
	struct pooled_key key[CROWD_KEYS];

	if (!p)
		return;
	c->keys = pooled_keys(p, ESTIMATE_DELTA, key, CROWD_KEYS);
	pooled_close(p);
	for (uint32_t i = 0; i < c->keys; i++) {
		const struct crowd_packet *packet = part->packet[key[i].item];

		key_text(packet, c->key[i].key);
		c->key[i].by = packet->by;
		c->key[i].limits = limits_of(part, part->key[key[i].item]);
		c->key[i].share = share_of(&key[i].share);
		c->key[i].len_bytes = mean_length(part, part->key[key[i].item]);
	}
}

static enum crowd_kind kind_of(const struct part *part, const struct pooled_values *v, double top)
{
	if (v->single.low >= HALF)
		return part->impossible >= IMPOSSIBLE_MIN ? CROWD_SPOOFED : CROWD_MANY;
	if (top >= HALF)
		return CROWD_ONE;
	return v->single.high <= HALF ? CROWD_FEW : CROWD_UNCLEAR;
}

static void read_sources(struct crowd *c, const struct part *part)
{
	const struct pooled_part one = {part->n, part->k, part->source};
	struct pooled *p = pooled_open(&one, 1, false);
	struct pooled_values v;
	struct pooled_key top;

	if (!p)
		return;
	v = pooled_read(p, 2, ESTIMATE_DELTA);
	if (!pooled_keys(p, ESTIMATE_DELTA, &top, 1))
		top.share.low = 0;
	pooled_close(p);
	c->samples = part->k;
	c->entropy = share_of(&v.entropy);
	c->single = share_of(&v.single);
	c->kind = kind_of(part, &v, top.share.low);
}

/* Samples come in the order of time, and the estimators want none. */
static void shuffle(struct part *part)
{
	struct pacer_sample_rng rng = {0x63726f7764};

	for (uint32_t j = part->k; j > 1; j--) {
		uint32_t i = pacer_sample_below(&rng, j);
		const struct crowd_packet *packet = part->packet[i];
		uint64_t source = part->source[i], key = part->key[i];

		part->packet[i] = part->packet[j - 1];
		part->source[i] = part->source[j - 1];
		part->key[i] = part->key[j - 1];
		part->packet[j - 1] = packet;
		part->source[j - 1] = source;
		part->key[j - 1] = key;
	}
}

void crowd_read(struct crowd *c, const struct crowd_packet *packet, uint32_t samples, uint64_t n,
		uint32_t rule, uint64_t from_ns)
{
	struct part part = {.k = 0};

	*c = (struct crowd){.kind = CROWD_UNKNOWN};
	for (uint32_t i = 0; i < samples && part.k < CROWD_MAX; i++)
		if (packet[i].rule == rule && packet[i].time_ns >= from_ns)
			take(&part, &packet[i]);
	if (!part.k)
		return;
	shuffle(&part);
	part.n = (uint64_t)ceil((double)n * part.k / samples);
	read_sources(c, &part);
	read_keys(c, &part);
}
