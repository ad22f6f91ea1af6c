/* SPDX-License-Identifier: GPL-2.0-only */
/* sample: some packets of the window, drawn at random, and what became of them. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "cmd.h"
#include "pace.h"
#include "sampling.h"
#include "snapshot.h"
#include "tally.h"
#include "text.h"

#define WIDE 56 /* of a packet's column */

/* What is shown: the sample, and the policy in force that it is of. */
struct shown {
	const struct attached *a;
	const struct sample *sample;
	const struct policy *policy;
	const struct pacer_policy *bin;
};

/* --- a row ---------------------------------------------------------------------------------- */

static struct pacer_packet packet_of(const struct pacer_sample_item *item)
{
	struct pacer_packet pkt = {.len_bytes = item->len_bytes,
				   .vlan = PACER_VLAN_NONE,
				   .family = item->family & ~PACER_SAMPLER_LATER,
				   .proto = item->proto};

	memcpy(&pkt.key[PACER_WORD_SADDR], item->saddr, sizeof(item->saddr));
	memcpy(&pkt.key[PACER_WORD_DADDR], item->daddr, sizeof(item->daddr));
	pkt.key[PACER_WORD_PORTS] = (uint32_t)item->sport << 16 | item->dport;
	pkt.key[PACER_WORD_META] = item->proto;
	if (item->family & PACER_SAMPLER_LATER) {
		pkt.fragment = PACER_FRAG_LATER;
		pkt.key[PACER_WORD_META] |= PACER_META_FRAGMENT;
	}
	return pkt;
}

/* The place in the policy of the rule that the packet fell under; PACER_RULES_MAX: none. */
static size_t rule_of(const struct shown *s, const struct pacer_sample_item *item)
{
	for (size_t r = 0; r < s->policy->n_rules; r++)
		if (item->rule && s->bin->rule[r].counter == item->rule)
			return r;
	return PACER_RULES_MAX;
}

static const char *rule_name(const struct shown *s, const struct pacer_sample_item *item)
{
	size_t rule = rule_of(s, item);

	return rule < PACER_RULES_MAX ? s->policy->rule[rule].name : item->rule ? "(gone)" : "-";
}

/* The key that was judged is that of the rule's tier under which its hash comes out. */
static const char *key_text(const struct shown *s, const struct pacer_sample_item *item, char *buf,
			    size_t size)
{
	struct pacer_packet pkt = packet_of(item);
	size_t rule = rule_of(s, item);

	for (size_t k = 0; rule < PACER_RULES_MAX && k < s->bin->rule[rule].n_tiers; k++) {
		const struct pacer_tier *t = &s->bin->rule[rule].tier[k];
		struct policy_key key = compile_key_of(t->key_id);

		if (pacer_tier_hash(t, &pkt, s->a->control->secret[t->secret & 1]).place ==
		    item->key)
			return tally_key_text(&key, &pkt, buf, size);
	}
	snprintf(buf, size, "-");
	return buf;
}

static uint64_t ago_ns(const struct shown *s, const struct pacer_sample_item *item)
{
	return s->sample->now_ns > item->time_ns ? s->sample->now_ns - item->time_ns : 0;
}

/* --- text ----------------------------------------------------------------------------------- */

static void print_window(const struct shown *s)
{
	const struct policy_sample *p = &s->policy->sample;
	const struct sample *sample = s->sample;
	char window[64];

	printf("%s: %" PRIu32 " of %" PRIu64 " packet%s (%s)", printable(s->a->ifname).text,
	       sample->rows, sample->n, units_plural(sample->n), sampling_of_text(p->of));
	if (p->packets)
		printf(", the last %" PRIu32 " of each CPU, %s replacement\n", p->packets,
		       p->without_replacement ? "without" : "with");
	else
		printf(", of the last %s, with replacement\n",
		       units_duration_text(p->window_ns, window, sizeof(window)));
	printf("  by CPU:");
	for (uint32_t cpu = 0; cpu < sample->cpus; cpu++)
		if (sample->window[cpu])
			printf(" %" PRIu32 ": %" PRIu64, cpu, sample->window[cpu]);
	printf("%s\n", sample->n ? "" : " none");
	printf("  error: none by merging, the CPUs' counts are exact; read within %.3f ms of each "
	       "other\n",
	       sample->read_ns / 1e6);
	if (sample->behind)
		printf("  %" PRIu32 " CPU%s changed while read: without the current tick of %s\n",
		       sample->behind, units_plural(sample->behind),
		       units_duration_text(1ull << sample->by.tick_shift, window, sizeof(window)));
}

static int print_text(const struct shown *s)
{
	static const struct policy_key flow = {KEY_FLOW, 32, 128};

	print_window(s);
	if (s->sample->rows)
		printf("\n  %10s  %-*s %6s  %-16s %-10s %s\n", "SECONDS AGO", WIDE, "PACKET",
		       "BYTES", "RULE", "REASON", "KEY");
	for (uint32_t i = 0; i < s->sample->rows; i++) {
		const struct pacer_sample_item *item = &s->sample->row[i].item;
		struct pacer_packet pkt = packet_of(item);
		char packet[TALLY_TEXT], key[TALLY_TEXT];

		printf("  %11.3f  %-*s %6" PRIu32 "  %-16s %-10s %s\n", ago_ns(s, item) / 1e9, WIDE,
		       tally_key_text(&flow, &pkt, packet, sizeof(packet)), item->len_bytes,
		       rule_name(s, item), pacer_reason_name(item->reason),
		       key_text(s, item, key, sizeof(key)));
	}
	return EXIT_DONE;
}

/* --- JSON ----------------------------------------------------------------------------------- */

static json_t *address_json(const struct pacer_sample_item *item, const uint32_t word[4])
{
	bool four = (item->family & ~PACER_SAMPLER_LATER) == PACER_FAMILY_4;
	char text[INET6_ADDRSTRLEN];
	uint32_t be[4];

	for (int i = 0; i < 4; i++)
		be[i] = htonl(word[i]);
	return json_string(inet_ntop(four ? AF_INET : AF_INET6, be, text, sizeof(text)));
}

static json_t *row_json(const struct shown *s, const struct sample_row *row)
{
	const struct pacer_sample_item *item = &row->item;
	bool later = item->family & PACER_SAMPLER_LATER;
	char key[TALLY_TEXT];
	json_t *out = json_pack(
	    "{s:I, s:I, s:i, s:o, s:o, s:i, s:I, s:s, s:s, s:s}", "time_ns",
	    (json_int_t)item->time_ns, "ago_ns", (json_int_t)ago_ns(s, item), "cpu", (int)row->cpu,
	    "src", address_json(item, item->saddr), "dst", address_json(item, item->daddr), "proto",
	    (int)item->proto, "len_bytes", (json_int_t)item->len_bytes, "rule", rule_name(s, item),
	    "reason", pacer_reason_name(item->reason), "key", key_text(s, item, key, sizeof(key)));

	if (later) {
		json_object_set_new(out, "fragment",
				    json_integer((json_int_t)item->sport << 16 | item->dport));
	} else {
		json_object_set_new(out, "sport", json_integer(item->sport));
		json_object_set_new(out, "dport", json_integer(item->dport));
	}
	return out;
}

static json_t *sample_json(const struct shown *s)
{
	const struct policy_sample *p = &s->policy->sample;
	json_t *rows = json_array(), *cpus = json_array();

	for (uint32_t i = 0; i < s->sample->rows; i++)
		json_array_append_new(rows, row_json(s, &s->sample->row[i]));
	for (uint32_t cpu = 0; cpu < s->sample->cpus; cpu++)
		json_array_append_new(cpus, json_integer((json_int_t)s->sample->window[cpu]));
	return json_pack(
	    "{s:o, s:s, s:s, s:I, s:I, s:i, s:I, s:o, s:f, s:I, s:i, s:I, s:o}", "interface",
	    json_text(s->a->ifname), "of", sampling_of_text(p->of), "replacement",
	    p->without_replacement ? "without" : "with", "window_packets", (json_int_t)p->packets,
	    "window_ns", (json_int_t)p->window_ns, "k", (int)p->k, "packets",
	    (json_int_t)s->sample->n, "by_cpu", cpus, "merge_error", 0.0, "read_ns",
	    (json_int_t)s->sample->read_ns, "cpus_behind", (int)s->sample->behind, "tick_ns",
	    p->packets ? (json_int_t)0 : (json_int_t)1 << s->sample->by.tick_shift, "sample", rows);
}

/* --- pcap ----------------------------------------------------------------------------------- */

/* What has to be added to a monotonic time for the time of day. */
static int64_t day_minus_monotonic_ns(void)
{
	struct timespec day;

	clock_gettime(CLOCK_REALTIME, &day);
	return (int64_t)(day.tv_sec * 1000000000ll + day.tv_nsec - (int64_t)loader_now());
}

static void dump_rows(const struct sample *sample, pcap_dumper_t *dumper)
{
	int64_t offset_ns = day_minus_monotonic_ns();

	for (uint32_t i = sample->rows; i--;) {
		const struct sample_row *row = &sample->row[i];
		int64_t ns = (int64_t)row->item.time_ns + offset_ns;
		struct pcap_pkthdr header = {
		    .ts = {ns / 1000000000, ns % 1000000000}, /* ns, as the file says */
		    .caplen = row->head_len,
		    .len = row->item.len_bytes};

		pcap_dump((unsigned char *)dumper, &header, row->head);
	}
}

static int write_pcap(const struct shown *s, const char *file)
{
	int link = s->a->control->raw_ip ? DLT_RAW : DLT_EN10MB;
	pcap_t *pcap =
	    pcap_open_dead_with_tstamp_precision(link, PACER_SNAP_MAX, PCAP_TSTAMP_PRECISION_NANO);
	pcap_dumper_t *dumper = pcap ? pcap_dump_open(pcap, file) : NULL;
	int failed = !dumper;

	if (dumper) {
		dump_rows(s->sample, dumper);
		failed = pcap_dump_flush(dumper);
		pcap_dump_close(dumper);
	}
	if (failed)
		complaint("%s: cannot be written%s%s", file, pcap && !dumper ? ": " : "",
			  pcap && !dumper ? pcap_geterr(pcap) : "");
	if (pcap)
		pcap_close(pcap);
	return failed ? EXIT_FAILED : EXIT_DONE;
}

/* --- the verb ------------------------------------------------------------------------------- */

static int show(const struct shown *s, const struct options *o)
{
	int code = EXIT_DONE;

	if (o->pcap && !s->sample->by.snap) {
		struct policy_error error = {0};

		policy_explain(
		    &error, 0,
		    "%s: its sample keeps no packets' heads: add snap: %u to the policy's "
		    "sample and apply it",
		    s->a->ifname, PACER_SNAP_MAX);
		return complain(NULL, &error);
	}
	if (o->pcap)
		code = write_pcap(s, o->pcap);
	if (!code)
		code = o->json ? print_json(sample_json(s)) : print_text(s);
	return code;
}

static int read_and_show(struct attached *a, const struct options *o)
{
	struct policy_error error = {0};
	static struct sample sample;
	struct policy *policy;
	const char *text;
	uint64_t seed;
	int code;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed)) {
		policy_explain(&error, 0, "%s: no random numbers to draw with: %s", a->ifname,
			       strerror(errno));
		return complain(NULL, &error);
	}
	if (sample_read(a, seed, &sample, &error))
		return complain(NULL, &error);
	text = sample.copy->text;
	policy = policy_parse(text, strnlen(text, PACER_DOC_MAX), &error);
	if (policy) {
		struct shown s = {a, &sample, policy, &sample.copy->policy};

		code = show(&s, o);
	} else {
		code = complain(NULL, &error);
	}
	policy_free(policy);
	sample_free(&sample);
	return code;
}

static int run_sample(struct options *o)
{
	if (o->n_args != 1)
		return misused("sample", "it wants one interface");
	return with_pacer(o, read_and_show);
}

static const struct option_row sample_options[] = {
    {"pcap", 0, "FILE", "write what was drawn there, too", OPTION_TEXT(pcap)},
    {0},
};

const struct verb verb_sample = {"sample", "IFACE", "packets of the last window, drawn at random",
				 sample_options, run_sample};
