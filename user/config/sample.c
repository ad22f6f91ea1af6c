/* SPDX-License-Identifier: GPL-2.0-only */
/* What is sampled. */
#include "config/parts.h"
#include "config/writers.h"
#include "sample_burst.h"

enum sample_field {
	FIELD_OF,
	FIELD_K,
	FIELD_LAST,
	FIELD_WITHIN,
	FIELD_REPLACEMENT,
	FIELD_SNAP,
	SAMPLE_FIELDS
};

static int read_of(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	static const struct choice ofs[] = {{"denied", SAMPLE_DENIED},
					    {"admitted", SAMPLE_ADMITTED},
					    {"all", SAMPLE_ALL},
					    {NULL, 0}};
	struct policy_sample *sample = into;
	int of;

	if (doc_choose(s, at, node, ofs, &of))
		return -1;
	sample->of = (enum policy_sampled)of;
	return 0;
}

static int read_k(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	return doc_whole(s, at, node, 1, PACER_SAMPLE_K, &((struct policy_sample *)into)->k);
}

static int read_last(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	uint64_t packets;

	if (doc_count(s, at, node, &packets))
		return -1;
	if (packets >= PACER_SAMPLE_BURST_C_MAX)
		return doc_fail(s, doc_line(node), at,
				"%llu is more than a sample's window: at most %u",
				(unsigned long long)packets, PACER_SAMPLE_BURST_C_MAX - 1);
	((struct policy_sample *)into)->packets = (uint32_t)packets;
	return 0;
}

static int read_within(struct source *s, const struct place *at, const yaml_node_t *node,
		       void *into)
{
	return doc_duration(s, at, node, &((struct policy_sample *)into)->window_ns);
}

static int read_replacement(struct source *s, const struct place *at, const yaml_node_t *node,
			    void *into)
{
	static const struct choice replacements[] = {{"with", 0}, {"without", 1}, {NULL, 0}};
	struct policy_sample *sample = into;
	int without;

	if (doc_choose(s, at, node, replacements, &without))
		return -1;
	sample->without_replacement = without;
	return 0;
}

static int read_snap(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	return doc_whole(s, at, node, 0, POLICY_SNAP_MAX,
			 &((struct policy_sample *)into)->snap_bytes);
}

WRITER(of, policy_sample, p->on, "%s",
       p->of == SAMPLE_DENIED	  ? "denied"
       : p->of == SAMPLE_ADMITTED ? "admitted"
				  : "all")
WRITE_NUMBER(k, policy_sample, p->on, p->k)
WRITE_NUMBER(last, policy_sample, p->on && p->packets, p->packets)
WRITE_TIME(within, policy_sample, p->on && !p->packets, p->window_ns)
WRITE_NUMBER(snap, policy_sample, p->on, p->snap_bytes)

static const struct field sample_field[SAMPLE_FIELDS] = {
    [FIELD_OF] = {"of", read_of, "denied|admitted|all", "which packets are sampled", 0,
		  FIELD_NEEDED, write_of},
    [FIELD_K] = {"k", read_k, "1-64", "packets in the sample", 0, FIELD_NEEDED, write_k},
    [FIELD_LAST] = {"packets", read_last, "N", "of the last so many packets, or", 0, 0, write_last},
    [FIELD_WITHIN] = {"window", read_within, "TIME", "of those of so long", 0, 0, write_within},
    [FIELD_REPLACEMENT] = {"replacement", read_replacement, "with|without",
			   "with of a window, without of packets; may be left out", 0, 0, NULL},
    [FIELD_SNAP] = {"snap", read_snap, "0-128",
		    "bytes kept of the head of each frame; 0 unless said", 0, 0, write_snap},
};

const struct fields parts_sample = {"a sample", sample_field, SAMPLE_FIELDS};

int parts_read_sample(struct source *s, const struct place *at, const yaml_node_t *node, void *into)
{
	struct place place = {at, "replacement", 0};
	const yaml_node_t *seen[SAMPLE_FIELDS] = {0};
	struct policy_sample *sample = &((struct policy *)into)->sample;

	if (doc_fields(s, at, node, &parts_sample, sample, seen))
		return -1;
	sample->on = true;
	sample->line = doc_line(node);
	if (!seen[FIELD_OF])
		return doc_fail(s, sample->line, at,
				"what is sampled is missing: write of: denied, admitted or all");
	if (!seen[FIELD_K])
		return doc_fail(s, sample->line, at, "its size is missing: write k: 1 to %d",
				PACER_SAMPLE_K);
	if (seen[FIELD_LAST] && seen[FIELD_WITHIN])
		return doc_fail(s, doc_line(seen[FIELD_WITHIN]), at,
				"packets and window are both written: a sample has one of them");
	if (!seen[FIELD_LAST] && !seen[FIELD_WITHIN])
		return doc_fail(
		    s, sample->line, at,
		    "of what it is a sample is missing: write window: 60s or packets: 1M");
	if (seen[FIELD_REPLACEMENT] && sample->without_replacement != !!sample->packets)
		return doc_fail(
		    s, doc_line(seen[FIELD_REPLACEMENT]), &place,
		    sample->packets
			? "the last packets are sampled without replacement only: write "
			  "without, or leave it out"
			: "a window of time is sampled with replacement only: write "
			  "packets instead of window, or with");
	sample->without_replacement = sample->packets;
	return 0;
}
