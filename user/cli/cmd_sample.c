/* SPDX-License-Identifier: GPL-2.0-only */
/* sample: random packets of the last window, and what happened to them. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/emit.h"
#include "config/text.h"
#include "estimate/estimate_key.h"
#include "estimate/judged.h"
#include "live/copies.h"
#include "live/day.h"
#include "live/snapshot.h"
#include "offline/plot.h"
#include "plan/sampling.h"
#include "inspect/tally.h"

/* The sample, and the policy that was in force. */
struct shown {
	const struct attached *a;
	const struct sample *sample;
	const struct policy *policy;
	const struct pacer_policy *bin;
	struct judged_by by;
};

/* --- a row ---------------------------------------------------------------------------------- */

static size_t rule_of(const struct shown *s, const struct pacer_sample_item *item)
{
	return estimate_rule_of(s->bin, s->policy->n_rules, item);
}

static const char *rule_name(const struct shown *s, const struct pacer_sample_item *item)
{
	size_t rule = rule_of(s, item);

	return rule < PACER_RULES_MAX ? s->policy->rule[rule].name : item->rule ? "(gone)" : "-";
}

static const char *key_text(const struct shown *s, const struct pacer_sample_item *item, char *buf,
			    size_t size)
{
	struct pacer_packet seen;
	struct policy_key key;

	if (judged_key(&s->by, rule_of(s, item), item, &key, &seen))
		return tally_key_text(&key, &seen, buf, size);
	snprintf(buf, size, "-");
	return buf;
}

static uint64_t ago_ns(const struct shown *s, const struct pacer_sample_item *item)
{
	return s->sample->now_ns > item->time_ns ? s->sample->now_ns - item->time_ns : 0;
}

/* --- what is shown -------------------------------------------------------------------------- */

static void emit_window(const struct shown *s)
{
	const struct policy_sample *p = &s->policy->sample;
	const char *replacement = p->without_replacement ? "without" : "with";
	const struct sample *sample = s->sample;
	char window[64];

	emit_string("interface", s->a->ifname, "%s: %" PRIu32 " of %s packet%s ",
		    printable(s->a->ifname).text, sample->rows, thousands(sample->n).text,
		    units_plural(sample->n));
	emit_string("of", sampling_of_text(p->of), "(%s), ", sampling_of_text(p->of));
	emit_string("replacement", replacement, "%s replacement, ", replacement);
	emit_uint("window_packets", p->packets, p->packets ? "the last %s of each CPU\n" : NULL,
		  thousands(p->packets).text);
	emit_uint("window_ns", p->window_ns, p->packets ? NULL : "of the last %s\n",
		  units_duration_text(p->window_ns, window, sizeof(window)));
	emit_uint("k", p->k, NULL);
	emit_uint("packets", sample->n, "  by CPU:%s", sample->n ? "" : " none");
	emit_array("by_cpu");
	for (uint32_t cpu = 0; cpu < sample->cpus; cpu++)
		emit_uint("", sample->window[cpu], sample->window[cpu] ? " %" PRIu32 ": %s" : NULL,
			  cpu, thousands(sample->window[cpu]).text);
	emit_close();
}

static void emit_error(const struct shown *s)
{
	const struct sample *sample = s->sample;
	uint64_t tick_ns = 1ull << sample->by.tick_shift;
	char tick[64];

	emit_real("merge_error", 0,
		  "\n  error: merging adds none, since the count of each CPU is exact; ");
	emit_uint("read_ns", sample->read_ns, "read within %.3f ms of each other\n",
		  sample->read_ns / 1e6);
	emit_uint("cpus_behind", sample->behind,
		  sample->behind
		      ? "  %" PRIu32
			" CPU%s changed while it was read: the current tick of %s is left out\n"
		      : NULL,
		  sample->behind, units_plural(sample->behind),
		  units_duration_text(tick_ns, tick, sizeof(tick)));
	emit_uint("tick_ns", s->policy->sample.packets ? 0 : tick_ns, NULL);
}

static void emit_address(const char *name, const struct pacer_sample_item *item,
			 const uint32_t word[4])
{
	bool four = (item->family & ~PACER_SAMPLER_LATER) == PACER_FAMILY_4;
	char text[INET6_ADDRSTRLEN];
	uint32_t be[4];

	for (int i = 0; i < 4; i++)
		be[i] = htonl(word[i]);
	inet_ntop(four ? AF_INET : AF_INET6, be, text, sizeof(text));
	emit_string(name, text, NULL);
}

static void emit_item(const struct shown *s, const struct sample_row *row)
{
	static const struct policy_key flow = KEY_FLOW;
	const struct pacer_sample_item *item = &row->item;
	struct pacer_packet pkt = estimate_packet(item);
	char packet[TALLY_TEXT], key[TALLY_TEXT];

	emit_row();
	emit_object("");
	emit_uint("time_ns", item->time_ns, NULL);
	emit_uint("ago_ns", ago_ns(s, item), "%.3f", ago_ns(s, item) / 1e9);
	emit_uint("cpu", row->cpu, NULL);
	emit_address("src", item, item->saddr);
	emit_address("dst", item, item->daddr);
	emit_uint("proto", item->proto, "%s", tally_key_text(&flow, &pkt, packet, sizeof(packet)));
	emit_uint("len_bytes", item->len_bytes, "%" PRIu32, item->len_bytes);
	emit_string("rule", rule_name(s, item), "%s", rule_name(s, item));
	emit_string("reason", pacer_reason_name(item->reason), "%s",
		    pacer_reason_name(item->reason));
	key_text(s, item, key, sizeof(key));
	emit_string("key", key, "%s", key);
	if (item->family & PACER_SAMPLER_LATER) {
		emit_uint("fragment", (uint32_t)item->sport << 16 | item->dport, NULL);
	} else {
		emit_uint("sport", item->sport, NULL);
		emit_uint("dport", item->dport, NULL);
	}
	emit_close();
}

static int show_sample(const struct shown *s, bool json)
{
	static const struct emit_column columns[] = {{"SECONDS AGO", true},
						     {"PACKET", false},
						     {"BYTES", true},
						     {"RULE", false},
						     {"REASON", false},
						     {"KEY", false},
						     {0}};

	emit_begin(json);
	emit_object("");
	emit_window(s);
	emit_error(s);
	if (s->sample->rows)
		emit_text("\n");
	emit_array("sample");
	emit_table(columns, 2);
	for (uint32_t i = 0; i < s->sample->rows; i++)
		emit_item(s, &s->sample->row[i]);
	emit_table_end();
	emit_close();
	emit_close();
	return emit_end();
}

/* --- pcap ----------------------------------------------------------------------------------- */

static void dump_rows(const struct sample *sample, pcap_dumper_t *dumper)
{
	int64_t offset_ns = day_minus_now_ns();

	for (uint32_t i = sample->rows; i--;) {
		const struct sample_row *row = &sample->row[i];
		int64_t ns = (int64_t)row->item.time_ns + offset_ns;
		struct pcap_pkthdr header = {
		    .ts = {ns / 1000000000, ns % 1000000000}, /* ns: the file header says so */
		    .caplen = row->head_len,
		    .len = row->item.len_bytes};

		pcap_dump((unsigned char *)dumper, &header, row->head);
	}
}

/* The capture in memory; -1 with errno set. */
static int make_pcap(const struct shown *s)
{
	int link = s->a->control->raw_ip ? DLT_RAW : DLT_EN10MB;
	pcap_t *pcap =
	    pcap_open_dead_with_tstamp_precision(link, PACER_SNAP_MAX, PCAP_TSTAMP_PRECISION_NANO);
	int fd = memfd_create("pcap", MFD_CLOEXEC), copy = fd < 0 ? -1 : dup(fd), failed = 1;
	FILE *to = copy < 0 ? NULL : fdopen(copy, "w");
	pcap_dumper_t *dumper = pcap && to ? pcap_dump_fopen(pcap, to) : NULL;
	int err = errno;

	if (dumper) {
		errno = 0;
		dump_rows(s->sample, dumper);
		/* The last flush may do where one that pcap_dump() led to did not, unsaid. */
		failed = pcap_dump_flush(dumper) || ferror(pcap_dump_file(dumper));
		err = errno;
		pcap_dump_close(dumper);
	} else if (to) {
		fclose(to);
	} else if (copy >= 0) {
		close(copy);
	}
	if (pcap)
		pcap_close(pcap);
	if (!failed)
		return fd;
	if (fd >= 0)
		close(fd);
	errno = err ? err : ENOMEM;
	return -1;
}

static int write_pcap(const struct shown *s, const char *file)
{
	int fd = make_pcap(s), err = fd < 0 ? errno : plot_write_file(fd, file);

	if (fd >= 0)
		close(fd);
	if (err)
		complaint("%s: cannot be written: %s", file, strerror(err));
	return err ? EXIT_FAILED : EXIT_DONE;
}

/* --- the verb ------------------------------------------------------------------------------- */

static int show(const struct shown *s, const struct options *o)
{
	int code = EXIT_DONE;

	if (o->pcap && !s->sample->by.snap) {
		struct policy_error error = {0};

		policy_explain(&error, 0,
			       "%s: its sample keeps no packet heads: add snap: %u to the policy's "
			       "sample and apply it",
			       s->a->ifname, PACER_SNAP_MAX);
		return complain(NULL, &error);
	}
	if (o->pcap)
		code = write_pcap(s, o->pcap);
	if (!code)
		code = show_sample(s, o->json);
	return code;
}

static int read_and_show(struct attached *a, const struct options *o)
{
	struct policy_error error = {0};
	static struct sample sample;
	struct policy *policy;
	uint64_t seed;
	int code;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed)) {
		policy_explain(&error, 0, "%s: no random numbers to draw with: %s", a->ifname,
			       strerror(errno));
		return complain(NULL, &error);
	}
	if (sample_read(a, seed, &sample, &error))
		return complain(NULL, &error);
	policy = copies_policy(a, sample.copy - a->copy, &error);
	if (policy) {
		struct shown s = {a, &sample, policy, &sample.copy->policy, {0}};

		judged_open(a, s.bin, &s.by);
		code = show(&s, o);
		judged_close(&s.by);
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
		return misused("sample", "it wants one interface or more");
	return with_pacer(o, read_and_show);
}

static const struct option_row sample_options[] = {
    {"pcap", 0, "FILE", "write what was drawn there, too", OPTION_TEXT(pcap)},
    {0},
};

const struct verb verb_sample = {"sample",
				 "IFACE...",
				 "packets of the last window, drawn at random",
				 sample_options,
				 run_sample,
				 .group = VERBS_LOOK,
				 .interfaces = INTERFACES_ONLY,
				 .example = "xdp-pacer sample eth0 --pcap drawn.pcap"};
