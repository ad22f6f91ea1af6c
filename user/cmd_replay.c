/* SPDX-License-Identifier: GPL-2.0-only */
/* replay: what a policy would have made of a capture, on the capture's own times. */
#include <errno.h>
#include <inttypes.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd.h"
#include "replay.h"

#define KEY_TEXT  192
#define TOP_SHOWN 10
#define TOP_KEYS  65536u /* denied keys that are told apart; a power of two */
#define TOP_FILL  (TOP_KEYS / 8 * 7)
#define ETH_LEN	  14

static const char *const reason_names[] = {
#define REASON_NAME(name, verdict, id, text) [PACER_##name] = id,
    PACER_REASONS(REASON_NAME)
#undef REASON_NAME
};

static const char *reason_name(int reason)
{
	return reason >= 0 && reason < PACER_REASON_COUNT ? reason_names[reason] : "?";
}

/* A key of a limit of a rule, and what was seen of it from its first denial on. */
struct top {
	uint32_t word[PACER_KEY_WORDS]; /* the packet's, under the limit's masks */
	uint8_t family;			/* PACER_FAMILY_NONE: a free place */
	uint8_t rule, limit;
	uint64_t denied, offered, last_ns, closest_ns;
	uint64_t begin_ns, held, peak; /* of windows laid end to end */
	struct pacer_packet pkt;       /* of the first denial */
};

struct tops {
	struct top *at; /* TOP_KEYS */
	uint32_t n;
	uint64_t lost; /* denials of keys that had no room */
};

struct run {
	const char *file;
	const struct options *o;
	const struct policy *policy;
	const struct pacer_policy *bin;
	const struct plan *plan;
	pcap_t *pcap;
	int link;
	uint64_t packets, first_ns, last_ns;
	uint64_t by[PACER_RULES_MAX + 1][PACER_REASON_COUNT]; /* the last: no rule */
	struct tops tops;
	time_t shown;
};

/* --- keys as text --------------------------------------------------------------------------- */

static const char *address_text(const struct pacer_packet *pkt, uint32_t word, uint8_t len4,
				uint8_t len6, char *buf, size_t size)
{
	bool four = pkt->family == PACER_FAMILY_4;
	struct prefix prefix = {.family = four ? 4 : 6, .len = four ? len4 : len6};

	for (uint32_t bit = 0; bit < prefix.len; bit++)
		prefix.addr[bit / 8] |=
		    pkt->key[word + bit / 32] >> (31 - bit % 32) << (7 - bit % 8) & 0x80 >> bit % 8;
	return units_prefix_text(&prefix, buf, size);
}

/* "53", or "fragment 4711" where the datagram's identification stands for the ports. */
static const char *ports_text(const struct pacer_packet *pkt, bool both, char *buf, size_t size)
{
	uint32_t ports = pkt->key[PACER_WORD_PORTS];

	if (pkt->fragment == PACER_FRAG_LATER)
		snprintf(buf, size, "fragment %u", both ? ports : ports & 0xffff);
	else if (both)
		snprintf(buf, size, "%u %u", ports >> 16, ports & 0xffff);
	else
		snprintf(buf, size, "%u", ports & 0xffff);
	return buf;
}

static const char *proto_text(uint8_t proto, char *buf, size_t size)
{
	const char *name = proto == 1	  ? "icmp"
			   : proto == 6	  ? "tcp"
			   : proto == 17  ? "udp"
			   : proto == 58  ? "icmpv6"
			   : proto == 132 ? "sctp"
					  : NULL;

	if (name)
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "%u", proto);
	return buf;
}

/* What of the packet the limit counts by. */
static const char *key_text(const struct policy_key *key, const struct pacer_packet *pkt, char *buf,
			    size_t size)
{
	char src[64], dst[64], ports[32], proto[16];

	address_text(pkt, PACER_WORD_SADDR, key->len4, key->len6, src, sizeof(src));
	address_text(pkt, PACER_WORD_DADDR, key->len4, key->len6, dst, sizeof(dst));
	switch (key->kind) {
	case KEY_FLOW:
		snprintf(buf, size, "%s>%s %s %s", src, dst,
			 proto_text(pkt->proto, proto, sizeof(proto)),
			 ports_text(pkt, true, ports, sizeof(ports)));
		break;
	case KEY_SRC:
		snprintf(buf, size, "%s", src);
		break;
	case KEY_DST:
		snprintf(buf, size, "%s", dst);
		break;
	case KEY_SRC_DPORT:
		snprintf(buf, size, "%s %s", src, ports_text(pkt, false, ports, sizeof(ports)));
		break;
	case KEY_ALL:
		snprintf(buf, size, "all");
		break;
	}
	return buf;
}

/* Of the rule, the limit that denied, or the first. */
static uint32_t limit_of(const struct run *run, const struct replay_fate *fate)
{
	int limit = -1;

	if (pacer_verdict_of(fate->reason) == PACER_VERDICT_DENY)
		limit =
		    compile_limit_of(run->plan, run->policy, fate->rule, fate->tier, fate->reason);
	return limit < 0 ? 0 : limit;
}

/* --- the keys that were denied -------------------------------------------------------------- */

/* The tier that a limit of a rule became. */
static const struct pacer_tier *tier_of(const struct run *run, uint32_t rule, uint32_t limit)
{
	for (size_t i = 0; i < run->plan->n_limits; i++)
		if (run->plan->limit[i].rule == rule && run->plan->limit[i].limit == limit)
			return &run->bin->rule[rule].tier[run->plan->limit[i].tier];
	return &run->bin->rule[rule].tier[0];
}

static struct top top_key(const struct run *run, const struct replay_fate *fate, uint32_t limit)
{
	const struct pacer_tier *t = tier_of(run, fate->rule, limit);
	const struct pacer_packet *pkt = &fate->pkt;
	struct top key = {.family = pkt->family, .rule = fate->rule, .limit = limit, .pkt = *pkt};
	const uint32_t four[] = {PACER_WORD_SADDR, PACER_WORD_DADDR, PACER_WORD_PORTS,
				 PACER_WORD_META};

	if (pkt->family == PACER_FAMILY_4)
		for (int i = 0; i < 4; i++)
			key.word[i] = pkt->key[four[i]] & t->mask4[i];
	else
		for (uint32_t i = 0; i < PACER_KEY_WORDS; i++)
			key.word[i] = pkt->key[i] & t->mask6[i];
	if (run->policy->rule[fate->rule].limit[limit].key.kind == KEY_ALL)
		key.family = PACER_FAMILY_4; /* one for both */
	return key;
}

/* The key's place, or the free one where it would go. There is always a free one. */
static struct top *top_find(struct tops *tops, const struct top *key)
{
	uint64_t h = (uint64_t)key->rule << 16 | key->limit << 8 | key->family;
	uint32_t at;

	for (uint32_t i = 0; i < PACER_KEY_WORDS; i++)
		h = (h ^ key->word[i]) * 0x9e3779b97f4a7c15 ^ h >> 29;
	at = h >> 32;
	for (;; at++) {
		struct top *top = &tops->at[at % TOP_KEYS];

		if (top->family == PACER_FAMILY_NONE ||
		    (top->family == key->family && top->rule == key->rule &&
		     top->limit == key->limit && !memcmp(top->word, key->word, sizeof(key->word))))
			return top;
	}
}

/* How much came within one window of the limit, how close two packets were. */
static void top_measure(struct top *top, const struct policy_limit *limit, uint64_t time_ns,
			uint32_t len_bytes)
{
	uint64_t cost =
	    limit->kind == LIMIT_WINDOW && limit->cost == PACER_COST_BYTES ? len_bytes : 1;

	if (time_ns < top->last_ns) /* a clock that jumps back: as the limit sees it */
		time_ns = top->last_ns;
	if (top->offered && time_ns - top->last_ns < top->closest_ns)
		top->closest_ns = time_ns - top->last_ns;
	if (!top->offered++ || time_ns - top->begin_ns >= limit->window_ns) {
		top->begin_ns = time_ns;
		top->held = 0;
	}
	top->last_ns = time_ns;
	top->held += cost;
	if (top->held > top->peak)
		top->peak = top->held;
}

static void top_count(struct tops *tops, const struct top *key, const struct policy_limit *limit,
		      uint64_t time_ns, bool denied)
{
	struct top *top = top_find(tops, key);

	if (top->family == PACER_FAMILY_NONE) {
		if (!denied)
			return;
		if (tops->n == TOP_FILL) {
			tops->lost++;
			return;
		}
		*top = *key;
		top->closest_ns = UINT64_MAX;
		tops->n++;
	}
	top->denied += denied;
	top_measure(top, limit, time_ns, key->pkt.len_bytes);
}

static void tops_count(struct run *run, const struct replay_fate *fate, uint64_t time_ns)
{
	uint32_t of = limit_of(run, fate);
	bool denied = pacer_verdict_of(fate->reason) == PACER_VERDICT_DENY;

	if (!run->tops.at || fate->rule >= PACER_RULES_MAX || (!denied && !run->tops.n))
		return;
	for (uint32_t i = 0; i < run->policy->rule[fate->rule].n_limits; i++) {
		struct top key = top_key(run, fate, i);

		top_count(&run->tops, &key, &run->policy->rule[fate->rule].limit[i], time_ns,
			  denied && i == of);
	}
}

static int most_denied(const void *a, const void *b)
{
	const struct top *x = a, *y = b;

	if (x->denied != y->denied)
		return x->denied < y->denied ? 1 : -1;
	return memcmp(x->word, y->word, sizeof(x->word));
}

/* --- frames --------------------------------------------------------------------------------- */

static bool link_known(int link)
{
	return link == DLT_EN10MB || link == DLT_RAW || link == DLT_IPV4 || link == DLT_IPV6;
}

/* A capture's time; before 1970 is 1970. */
static uint64_t time_of(const struct pcap_pkthdr *header)
{
	if (header->ts.tv_sec < 0 || header->ts.tv_sec > INT64_MAX / 1000000000 - 1)
		return header->ts.tv_sec < 0 ? 0 : INT64_MAX;
	return (uint64_t)header->ts.tv_sec * 1000000000u + (uint64_t)header->ts.tv_usec;
}

/* Raw IP gets the Ethernet header that XDP would have seen before it, and counts with it. */
static struct replay_frame frame_of(int link, const struct pcap_pkthdr *header, const uint8_t *data)
{
	static uint8_t made[REPLAY_HEAD_BYTES];
	uint32_t len = header->len > header->caplen ? header->len : header->caplen;
	struct replay_frame frame = {data, header->caplen, len, time_of(header)};
	bool six = link == DLT_IPV6 || (link == DLT_RAW && header->caplen && data[0] >> 4 == 6);

	if (link == DLT_EN10MB)
		return frame;
	if (frame.captured > sizeof(made) - ETH_LEN)
		frame.captured = sizeof(made) - ETH_LEN;
	made[12] = six ? 0x86 : 0x08;
	made[13] = six ? 0xdd : 0x00;
	memcpy(made + ETH_LEN, data, frame.captured);
	frame.data = made;
	frame.captured += ETH_LEN;
	if (frame.len_bytes <= UINT32_MAX - ETH_LEN)
		frame.len_bytes += ETH_LEN;
	return frame;
}

static void print_row(const struct run *run, const struct replay_frame *frame,
		      const struct replay_fate *fate)
{
	enum pacer_verdict verdict = pacer_verdict_of(fate->reason);
	const struct policy_rule *rule = NULL;
	char key[KEY_TEXT] = "";

	if (fate->rule < run->policy->n_rules) {
		rule = &run->policy->rule[fate->rule];
		key_text(&rule->limit[limit_of(run, fate)].key, &fate->pkt, key, sizeof(key));
	}
	printf("%" PRIu64 ",%" PRIu64 ",%s,%s,%s,%s\n", run->packets, frame->time_ns,
	       rule ? rule->name : "", key,
	       verdict == PACER_VERDICT_ADMIT  ? "admit"
	       : verdict == PACER_VERDICT_DENY ? "deny"
					       : "pass",
	       reason_name(fate->reason));
}

/* Once a second, where somebody looks. */
static void show_progress(struct run *run)
{
	time_t now;

	if ((run->packets & 0xffff) || !isatty(STDERR_FILENO))
		return;
	now = time(NULL);
	if (now == run->shown)
		return;
	run->shown = now;
	fprintf(stderr, "\r%" PRIu64 " packets\033[K", run->packets);
}

static int judge_frame(struct run *run, struct replay *r, const struct replay_frame *frame)
{
	struct policy_error error = {0};
	struct replay_fate fate;

	run->packets++;
	if (replay_judge(r, frame, &fate, &error))
		return complain(NULL, &error);
	if (run->packets == 1 || frame->time_ns < run->first_ns)
		run->first_ns = frame->time_ns;
	if (frame->time_ns > run->last_ns)
		run->last_ns = frame->time_ns;
	run->by[fate.rule][fate.reason]++;
	if (run->o->verdicts)
		print_row(run, frame, &fate);
	tops_count(run, &fate, frame->time_ns);
	show_progress(run);
	return EXIT_DONE;
}

/* Every frame that can be read. */
static int judge_all(struct run *run, struct replay *r)
{
	struct pcap_pkthdr *header;
	const uint8_t *data;
	int got = 1, code = EXIT_DONE;

	while (!code && (got = pcap_next_ex(run->pcap, &header, &data)) == 1) {
		struct replay_frame frame = frame_of(run->link, header, data);

		code = judge_frame(run, r, &frame);
	}
	if (run->shown)
		fprintf(stderr, "\r\033[K");
	if (code || got == PCAP_ERROR_BREAK)
		return code;
	fprintf(stderr,
		"xdp-pacer: %s: damaged at frame %" PRIu64 ": %s: the %" PRIu64
		" frames before it were judged\n",
		run->file, run->packets + 1, pcap_geterr(run->pcap), run->packets);
	return EXIT_FAILED;
}

/* --- what is shown -------------------------------------------------------------------------- */

static uint64_t sum_of(const struct run *run, size_t from, size_t to, enum pacer_verdict verdict)
{
	uint64_t n = 0;

	for (size_t i = from; i < to; i++)
		for (int reason = 0; reason < PACER_REASON_COUNT; reason++)
			if (pacer_verdict_of(reason) == verdict)
				n += run->by[i][reason];
	return n;
}

static uint64_t sum_all(const struct run *run, enum pacer_verdict verdict)
{
	return sum_of(run, 0, PACER_RULES_MAX + 1, verdict);
}

static json_t *rule_json(const struct run *run, size_t i)
{
	uint64_t admitted = sum_of(run, i, i + 1, PACER_VERDICT_ADMIT);
	json_t *denied = json_object();

	for (int reason = 0; reason < PACER_REASON_COUNT; reason++)
		if (pacer_verdict_of(reason) == PACER_VERDICT_DENY)
			json_object_set_new(denied, reason_name(reason),
					    json_integer((json_int_t)run->by[i][reason]));
	return json_pack("{s:s, s:I, s:I, s:o}", "name", run->policy->rule[i].name, "matched",
			 (json_int_t)(admitted + sum_of(run, i, i + 1, PACER_VERDICT_DENY)),
			 "admitted", (json_int_t)admitted, "denied", denied);
}

static int show_json(const struct run *run)
{
	json_t *rules = json_array();

	for (size_t i = 0; i < run->policy->n_rules; i++)
		json_array_append_new(rules, rule_json(run, i));
	return print_json(json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "packets",
				    (json_int_t)run->packets, "admitted",
				    (json_int_t)sum_all(run, PACER_VERDICT_ADMIT), "denied",
				    (json_int_t)sum_all(run, PACER_VERDICT_DENY), "unparsed",
				    (json_int_t)sum_all(run, PACER_VERDICT_UNPARSED), "passed",
				    (json_int_t)sum_all(run, PACER_VERDICT_PASS), "rules", rules));
}

/* "denied 12 (gap 10, window 2)" */
static void print_reasons(const struct run *run, size_t i, const char *word,
			  enum pacer_verdict verdict)
{
	const char *before = " (";

	printf("%s %" PRIu64, word, sum_of(run, i, i + 1, verdict));
	for (int reason = 0; reason < PACER_REASON_COUNT; reason++) {
		if (reason == PACER_ADMIT || pacer_verdict_of(reason) != verdict ||
		    !run->by[i][reason])
			continue;
		printf("%s%s %" PRIu64, before, reason_name(reason), run->by[i][reason]);
		before = ", ";
	}
	if (before[0] == ',')
		putchar(')');
}

/* The most that came of the key from its first denial on, against what its limit lets through. */
static void print_peak(const struct policy_limit *limit, const struct top *top)
{
	const char *unit = limit->cost == PACER_COST_BYTES ? "bytes" : "packets";
	char text[32], closest[32];

	if (limit->kind == LIMIT_WINDOW) {
		printf("at least %" PRIu64 " %s in %s against %" PRIu64 "\n", top->peak, unit,
		       units_duration_text(limit->window_ns, text, sizeof(text)), limit->limit);
		return;
	}
	units_duration_text(limit->gap_ns, text, sizeof(text));
	if (top->closest_ns == UINT64_MAX)
		printf("against a gap of %s\n", text);
	else
		printf("down to %s apart against a gap of %s\n",
		       units_duration_text(top->closest_ns, closest, sizeof(closest)), text);
}

static void print_tops(struct tops *tops, const struct policy *policy)
{
	char key[KEY_TEXT], kind[64];
	uint32_t n = 0;

	for (uint32_t i = 0; i < TOP_KEYS; i++)
		if (tops->at[i].family != PACER_FAMILY_NONE)
			tops->at[n++] = tops->at[i];
	qsort(tops->at, n, sizeof(*tops->at), most_denied);
	if (n)
		printf("denied most, of %u key%s; each from its first denial on\n", n,
		       n == 1 ? "" : "s");
	for (uint32_t i = 0; i < n && i < TOP_SHOWN; i++) {
		const struct top *top = &tops->at[i];
		const struct policy_limit *limit = &policy->rule[top->rule].limit[top->limit];

		printf(
		    "  %s %s %s: denied %" PRIu64 " of %" PRIu64 ", ", policy->rule[top->rule].name,
		    policy_key_text(&limit->key, kind, sizeof(kind)),
		    key_text(&limit->key, &top->pkt, key, sizeof(key)), top->denied, top->offered);
		print_peak(limit, top);
	}
	if (tops->lost)
		printf("  and %" PRIu64 " denials of further keys: %u are told apart\n", tops->lost,
		       TOP_FILL);
}

static int show_text(struct run *run)
{
	printf("%s: %" PRIu64 " packets in %.6g s: admitted %" PRIu64 ", denied %" PRIu64
	       ", passed %" PRIu64 ", unparsed %" PRIu64 "%s\n",
	       run->file, run->packets, (double)(run->last_ns - run->first_ns) / 1e9,
	       sum_all(run, PACER_VERDICT_ADMIT), sum_all(run, PACER_VERDICT_DENY),
	       sum_all(run, PACER_VERDICT_PASS), sum_all(run, PACER_VERDICT_UNPARSED),
	       run->policy->monitor ? " (monitor: what is denied would pass, too)" : "");
	for (size_t i = 0; i < run->policy->n_rules; i++) {
		printf("  rule %s: ", run->policy->rule[i].name);
		print_reasons(run, i, "admitted", PACER_VERDICT_ADMIT);
		print_reasons(run, i, ", denied", PACER_VERDICT_DENY);
		printf("%s\n", run->policy->rule[i].over == PACER_OVER_PASS
				   ? " (over: pass: what is denied would pass, too)"
				   : "");
	}
	print_reasons(run, PACER_RULES_MAX, "  no rule: passed", PACER_VERDICT_PASS);
	print_reasons(run, PACER_RULES_MAX, ", unparsed", PACER_VERDICT_UNPARSED);
	putchar('\n');
	print_tops(&run->tops, run->policy);
	return EXIT_DONE;
}

static int show(struct run *run)
{
	int code = run->o->json ? show_json(run) : run->o->verdicts ? EXIT_DONE : show_text(run);

	if (!fflush(stdout) && !ferror(stdout))
		return code;
	fprintf(stderr, "xdp-pacer: replay: the result cannot be written: %s\n", strerror(errno));
	return EXIT_FAILED;
}

/* --- the verb ------------------------------------------------------------------------------- */

static int unknown_link(const char *file, int link)
{
	const char *name = pcap_datalink_val_to_name(link);

	fprintf(stderr,
		"xdp-pacer: %s: its link type is %s (%d): Ethernet and raw IP (RAW, IPV4, IPV6) "
		"can be judged\n",
		file, name ? name : "unknown", link);
	return EXIT_WRONG;
}

/* 0, or the exit code. */
static int open_capture(struct run *run)
{
	char text[PCAP_ERRBUF_SIZE] = "";
	FILE *f = strcmp(run->file, "-") ? fopen(run->file, "rb") : stdin;

	if (f)
		run->pcap =
		    pcap_fopen_offline_with_tstamp_precision(f, PCAP_TSTAMP_PRECISION_NANO, text);
	if (!run->pcap) {
		fprintf(stderr, "xdp-pacer: %s: no frame can be read: %s\n", run->file,
			f ? text : strerror(errno));
		if (f && f != stdin)
			fclose(f);
		return EXIT_FAILED;
	}
	run->link = pcap_datalink(run->pcap);
	return link_known(run->link) ? EXIT_DONE : unknown_link(run->file, run->link);
}

static int judge_capture(struct run *run)
{
	struct policy_error error = {0};
	struct replay *r;
	int code, shown;

	if (!run->o->json && !run->o->verdicts) {
		run->tops.at = calloc(TOP_KEYS, sizeof(*run->tops.at));
		if (!run->tops.at) {
			fprintf(stderr, "xdp-pacer: replay: no memory\n");
			return EXIT_FAILED;
		}
	}
	r = replay_open(run->policy, run->bin, run->plan->lines, run->o->kernel, &error);
	if (!r)
		return complain(NULL, &error);
	if (run->o->verdicts)
		puts("frame,time_ns,rule,key,verdict,reason");
	code = judge_all(run, r);
	shown = show(run);
	replay_close(r);
	return code ? code : shown;
}

static int run_replay(const struct options *o, const struct policy *policy)
{
	struct compile_host host = {0, 1}; /* the capture's clock is exact */
	static struct pacer_policy bin;
	static struct plan plan;
	struct run run = {.file = o->args[0], .o = o, .policy = policy, .bin = &bin, .plan = &plan};
	struct policy_error error = {0};
	int code;

	if (compile_policy(policy, NULL, &host, &bin, &plan, &error))
		return complain(o->policy, &error);
	code = open_capture(&run);
	if (!code)
		code = judge_capture(&run);
	if (run.pcap)
		pcap_close(run.pcap);
	free(run.tops.at);
	return code;
}

int cmd_replay(int argc, char **argv)
{
	struct policy *policy;
	struct options o;
	char *text;
	int code = parse_options(argc, argv, "cvk", &o);

	if (code)
		return code;
	if (o.n_args != 1 || !o.policy)
		return misused("replay", "it wants -c POLICY and one capture");
	if (o.json && o.verdicts)
		return misused("replay", "--json and --verdicts are two outputs: choose one");
	if (!strcmp(o.policy, "-") && !strcmp(o.args[0], "-"))
		return misused("replay", "policy and capture cannot both be stdin");
	code = read_policy(o.policy, &text, &policy);
	if (code)
		return code;
	code = run_replay(&o, policy);
	policy_free(policy);
	free(text);
	return code;
}
