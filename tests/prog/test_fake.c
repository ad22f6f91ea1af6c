/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel and user space are one: random frames under random policies, on a clock that both are
 * given, meet the same reason, the same rule and the same counters, packet by packet, and leave
 * tables that are the same to the byte.
 */
#include <sched.h>

#include "prog.h"

struct pacer_packet;
static int is_allowed(const struct pacer_packet *pkt, uint64_t now_ns);

#define PACER_IS_ALLOWED(frame, walk, exact) \
	((void)(exact), is_allowed(&(walk)->pkt, (frame)->now_ns))
#include "padded.h"
#include "path.h"
#include "live/ban_notes.h"
#include "inspect/why.h"

#define POLICIES 150
#define PACKETS	 250 /* under each */
#define TEXT_MAX 65536

static struct prog prog;
static volatile uint64_t *fake_ns;
static int cpu; /* that both run on */
static struct pacer_policy policy;
static uint32_t in_force; /* the copy that it is in: each policy in the other one than the last */
static struct pacer_line *lines;
static struct pacer_throttle_state throttles[PACER_THROTTLES];
static struct pacer_throttle_lease leases[PACER_THROTTLES];
static struct pacer_counters counters[PACER_COUNTERS_MAX];

/* ---- chance ---- */

static const char *const prefixes4[] = {"10.0.0.0/30", "10.0.0.2",  "10.0.0.0/8", "10.0.1.0/24",
					"10.0.1.3",    "0.0.0.0/1", "10.1.0.0/16"};
static const char *const prefixes6[] = {"2001:db8::/32", "2001:db8:0:1::/64", "2001:db8:0:1::2",
					"2001:db8:0:1::/126", "::/0"};
static const char *const protos[] = {"udp", "tcp", "icmp", "icmpv6", "sctp", "[udp, tcp]", "esp"};
static const char *const ports[] = {"53", "80", "1-1023", "[53, 80-90, 4000]", "1024-65535"};
static const char *const ported[] = {"udp", "tcp", "sctp", "[udp, tcp]"};
static const char *const vlans[] = {"none", "100", "[none, 100]", "200"};
static const char *const mores[] = {
    "ttl: 64",
    "ttl: 0-63",
    "dscp: 0",
    "dscp: ef",
    "fragment: first",
    "fragment: [none, later]",
    "options: yes",
    "options: no",
    "len: 0-100",
    "len: [101-200, 1000-1500]",
    "payload_len: 0-20",
    "payload_len: 21-65535",
    "payload: 0=0xa5",
    "payload: [3=0xa500/0xff00, 40=0x00]",
    "payload: 8=0xa5a5a5a5",
    "ether_type: ip",
    "ether_type: [ip6]",
    "ether_src: '02:00:00'",
    "ether_dst: '02:00:00:00:00:02'",
};
static const char *const of_tcp[] = {"flags: syn / syn,ack", "flags: 'none / fin,syn'",
				     "flags: [psh, urg]"};
static const char *const keys[] = {"flow",	 "src",	      "src/24,56", "src/30,62", "dst",
				   "src/32,128", "dst/24,64", "all",	   "src+dport", "src/1,1"};
static const uint8_t numbers[] = {17, 17, 6, 6, 1, 58, 132, 50, 47};
static const uint16_t port_numbers[] = {53, 80, 85, 4000, 50000, 1023};
static const uint8_t extensions[] = {0, 43, 44, 51, 60};

#define PICK(list) ((list)[draw() % ARRAY(list)])

static size_t append(char *text, size_t n, const char *format, const char *word)
{
	n += snprintf(text + n, TEXT_MAX - n, format, word);
	assert_true(n < TEXT_MAX);
	return n;
}

/* One that a packet of the match can have: with its ports, and of its family. */
static const char *pick_proto(bool has_ports, bool prefixes)
{
	const char *proto = has_ports ? PICK(ported) : PICK(protos);

	return prefixes && !strncmp(proto, "icmp", 4) ? "esp" : proto;
}

static bool plain; /* the policy is one that most machines could have */
static uint32_t late_rules;
static uint32_t ruled_runs; /* policies whose packets have a short way by their rules */

static size_t put_match(char *text, size_t n)
{
	int six = draw() % 3 == 0, has_ports;
	size_t begin = n;

	n = append(text, n, "    match: {%s", "");
	if (draw() % 2)
		n = append(text, n, "src: \"%s\", ", six ? PICK(prefixes6) : PICK(prefixes4));
	if (draw() % 4 == 0)
		n = append(text, n, "dst: \"%s\", ", six ? PICK(prefixes6) : PICK(prefixes4));
	if (draw() % 3 == 0)
		n = append(text, n, "sport: %s, ", PICK(ports));
	if (draw() % 3 == 0)
		n = append(text, n, "dport: %s, ", PICK(ports));
	if (draw() % 4 == 0)
		n = append(text, n, "vlan: %s, ", PICK(vlans));
	if (!plain && draw() % 3 == 0)
		n = append(text, n, "%s, ", PICK(mores));
	if (!plain && draw() % 16 == 0)
		n = append(text, n, "%s, ", PICK(of_tcp));
	has_ports = strstr(text + begin, "port:") != NULL;
	if (strstr(text + begin, "flags"))
		return append(text, n, "proto: tcp}\n%s", "");
	return append(
	    text, n, "proto: %s}\n",
	    pick_proto(has_ports, strstr(text + begin, "src:") || strstr(text + begin, "dst:")));
}

/* Bursts that let a packet through when they are a tick of the coarse clock shorter. */
static size_t put_rate(char *text, size_t n, const char *key)
{
	static const char *const rates[] = {
	    "rate: 10/s, burst: 2",	   "rate: 1K/s, burst: 50",	"rate: 3/m, burst: 2",
	    "rate: 10Mbit/s, burst: 20k",  "rate: 1bit/s, burst: 2000", "rate: 7777/m, burst: 30",
	    "rate: 333KB/s, burst: 64KiB",
	};
	static const char *const entries[] = {"", ", entries: 2", ", entries: 3", ", entries: 16"};

	n = append(text, n, "      - {key: \"%s\"", key);
	n = append(text, n, ", %s", PICK(rates));
	if (strcmp(key, "all") != 0)
		n = append(text, n, "%s", PICK(entries));
	return append(text, n, "}\n%s", "");
}

static size_t put_limit(char *text, size_t n)
{
	static const char *const gaps[] = {"3ns", "1us", "50us", "1ms"};
	static const char *const windows[] = {"100ns", "20us", "1ms", "1s"};
	static const char *const slots[] = {"1", "2", "7", "10", "11", "26", "27", "58"};
	static const char *const limits[] = {"packets: 1", "packets: 3", "packets: 100",
					     "bytes: 500", "bytes: 20k", "bytes: 5G"};
	static const char *const uses[] = {"1", "3", "20", "100", "300"};
	static const char *const entries[] = {"", ", entries: 2", ", entries: 3", ", entries: 16"};
	const char *key = PICK(keys);
	int gap = draw() % 3 == 0, one = !strcmp(key, "all");

	if (one && draw() % 4) {
		n = append(text, n, "      - {key: all, uses: %s, ", PICK(uses));
		return append(text, n, "cooldown: %s}\n", PICK(windows));
	}
	if (draw() % 5 == 0)
		return put_rate(text, n, key);
	n = append(text, n, "      - {key: \"%s\"", key);
	if (gap) {
		n = append(text, n, ", gap: %s", PICK(gaps));
		if (!one && draw() & 1)
			n = append(text, n, ", rows: 1%s", "");
	} else {
		n = append(text, n, ", %s", PICK(limits));
		n = append(text, n, ", window: %s", PICK(windows));
		n = append(text, n, ", slots: %s", PICK(slots));
	}
	if (!one)
		n = append(text, n, "%s", PICK(entries));
	return append(text, n, "}\n%s", "");
}

static void random_policy(char *text, uint32_t rules)
{
	char name[16];
	uint32_t i, k;
	size_t n = 0;

	n = append(text, n, "mode: %s\n", draw() % 8 ? "enforce" : "monitor");
	n = append(text, n, "unparsed: %s\n", draw() & 1 ? "pass" : "drop");
	n = append(text, n, "clock: %s\n", draw() & 1 ? "exact" : "coarse");
	n = append(text, n, "else: %s\n", draw() & 3 ? "pass" : "drop");
	n = append(text, n, "bans: %s\nrules:\n", draw() & 3 ? "8" : "64");
	for (i = 0; i < rules; i++) {
		snprintf(name, sizeof(name), "r%u", i);
		n = append(text, n, "  - name: %s\n", name);
		if (!plain && draw() % 12 == 0) {
			n = append(
			    text, n,
			    "    match: {ether_type: %s}\n    limits: [{key: all, packets: 3, "
			    "window: 1ms}]\n",
			    draw() & 1 ? "arp" : "0x0600-0xffff");
			continue;
		}
		if (draw() % 8)
			n = put_match(text, n);
		if (draw() % 6 == 0) {
			n = append(text, n, "    verdict: %s\n", draw() & 1 ? "drop" : "pass");
			continue;
		}
		if (draw() % 3 == 0)
			n = append(text, n, "    ban: %s\n", draw() & 1 ? "1ms" : "1s");
		n = append(text, n, "    over: %s\n    limits:\n", draw() % 8 ? "drop" : "pass");
		for (k = plain || rules > 20 ? 1 : between(1, 4); k; k--)
			n = put_limit(text, n);
	}
}

static void random_recipe(struct recipe *r)
{
	uint32_t i;

	*r = (struct recipe){.family = draw() % 16 ? draw() % 3 ? 4 : 6 : 0,
			     .type = draw() & 1 ? 0x0806 : PICK(port_numbers),
			     .proto = PICK(numbers),
			     .sport = PICK(port_numbers),
			     .dport = PICK(port_numbers),
			     .id = draw() % 3,
			     .payload = between(4, draw() % 4 ? 40 : 1400)};
	if (r->family == 4) {
		r->saddr[0] = 0x0a000000 | (draw() & 0x103);
		r->daddr[0] = 0x0a000100 | (draw() & 0x10003);
		r->options = draw() % 4 ? 0 : draw() % 11;
		r->frag = draw() % 8 ? 0 : draw();
	} else {
		uint32_t saddr[4] = {0x20010db8, draw() & 1, 0, draw() & 3};
		uint32_t daddr[4] = {0x20010db8, 1, 0, draw() & 3};

		memcpy(r->saddr, saddr, sizeof(saddr));
		memcpy(r->daddr, daddr, sizeof(daddr));
		r->n_ext = draw() & 1 ? 0 : draw() % FRAME_EXTS;
		r->ext_len = draw() % 4;
		r->frag = draw() & 1 ? 0 : draw() & 0xff;
	}
	for (i = 0; i < FRAME_EXTS; i++)
		r->ext[i] = PICK(extensions);
	r->priority = draw() % 4;
	for (i = draw() % 4 ? 0 : draw() % 8 ? between(1, 3) : FRAME_TAGS; i; i--)
		r->tag[i - 1] = draw() & 1 ? 0x8100 : 0x88a8;
}

/* Some are cut, some lie. */
static void random_frame(struct frame *f)
{
	struct recipe r;
	uint32_t k;

	random_recipe(&r);
	frame_build(f, &r);
	for (k = draw() % 8 ? 0 : between(1, 4); k; k--)
		f->b[draw() % (f->n < 80 ? f->n : 80)] = draw();
	if (draw() % 16 == 0)
		f->n = between(14, f->n);
}

/* Every magnitude of time, bursts, and at times back. */
static uint64_t next_time(uint64_t now_ns)
{
	if (draw() % 3 == 0)
		return now_ns;
	if (draw() % 16 == 0)
		return now_ns - magnitude(1, 1000000);
	return now_ns + magnitude(1, draw() % 8 ? 1000000 : 3000000000);
}

/* ---- both ---- */

/* The allow-list of all policies: one prefix for ever, one until a time. */
static bool some_allowed;
static uint64_t allowed_until_ns;
static const uint8_t allow4[] = {10, 0, 1, 0};
static const uint8_t allow6[16] = {0x20, 1, 0x0d, 0xb8, [15] = 3};

static void put_allow(uint64_t until_ns)
{
	struct pacer_allow_value value = {.until_ns = until_ns};
	struct pacer_allow6 key = {.prefixlen = PACER_ALLOW_COPY_BITS + 32, .copy = in_force};

	allowed_until_ns = until_ns;
	memcpy(key.addr, allow4, 4);
	assert_int_equal(bpf_map_update_elem(prog.allow4_fd, &key, &value, BPF_ANY), 0);
	memcpy(key.addr, allow6, 16);
	key.prefixlen = PACER_ALLOW_COPY_BITS + 128;
	value.until_ns = 0;
	assert_int_equal(bpf_map_update_elem(prog.allow6_fd, &key, &value, BPF_ANY), 0);
	prog.control->allowed[in_force] = (union pacer_allowed){{some_allowed, some_allowed}};
	prog.control->allowed[!in_force].any = !some_allowed;
	pacer_short_reshape(&prog.copy[in_force].policy, prog.control, in_force);
}

static int is_allowed(const struct pacer_packet *pkt, uint64_t now_ns)
{
	if (!some_allowed)
		return 0;
	if (pkt->family == PACER_FAMILY_4)
		return pkt->key[0] == 0x0a000100 && now_ns < allowed_until_ns;
	return pkt->key[0] == 0x20010db8 && !pkt->key[1] && !pkt->key[2] && pkt->key[3] == 3;
}

/* The highest counter of a rule in force; 0: there are no rules. */
static uint32_t highest_counter(void)
{
	uint32_t i, highest = 0;

	for (i = 0; i < PACER_RULES_MAX; i++)
		if (pacer_rules_has(&policy.rules, i) && policy.rule[i].counter > highest)
			highest = policy.rule[i].counter;
	return highest;
}

/*
 * The counters, of the CPU that runs both: after each packet those up to the highest that a rule in
 * force has, and after every 16th one all.
 */
static void same_counters(const char *text)
{
	static uint32_t packets;
	uint32_t i, n = packets++ % 16 ? highest_counter() + 1 : PACER_COUNTERS_MAX;

	for (i = 0; i < n; i++)
		if (memcmp(&counters[i], prog_counter(&prog, prog.counts, i, cpu),
			   sizeof(*counters)))
			fail_msg("counter %u differs; under\n%s", i, text);
}

static uint32_t sources_banned, keys_banned; /* from outside */

/* ---- what `why` says beforehand ---- */

static struct policy *named;
static uint32_t whys_later; /* denials that were to end at a time, and did */

/* With a state that may be changed: would the packet pass at this time? */
static enum pacer_reason reason_at(const struct pacer_packet *pkt, uint64_t now_ns)
{
	static struct pacer_throttle_state throttles_copy[PACER_THROTTLES];
	static struct pacer_throttle_lease leases_copy[PACER_THROTTLES];
	static struct pacer_line lines_copy[PROG_LINES];
	struct pacer_state state = {.table = {lines_copy, prog.n_lines},
				    .policy = &policy,
				    .secret = prog.control->secret[0],
				    .throttle = throttles_copy,
				    .lease = leases_copy};
	struct pacer_walk walk = {.state = &state, .now_ns = now_ns, .pkt = *pkt};

	memcpy(lines_copy, lines, prog.n_lines * sizeof(*lines));
	memcpy(throttles_copy, throttles, sizeof(throttles));
	memcpy(leases_copy, leases, sizeof(leases));
	walk.rule = PACER_RULES_MAX;
	return pacer_outcome_reason(pacer_judge(&walk));
}

static void passes_then(const struct why *why, const struct pacer_packet *pkt, uint64_t now_ns,
			const char *text)
{
	if (why->when_ns == PACER_NEVER || why->when_ns <= now_ns)
		return;
	if (pacer_verdict_of(reason_at(pkt, why->when_ns)) == PACER_VERDICT_DENY ||
	    (why->when_ns - 1 > now_ns &&
	     pacer_verdict_of(reason_at(pkt, why->when_ns - 1)) != PACER_VERDICT_DENY))
		fail_msg(
		    "at %llu: why says %llu, and that is not when it passes (%u, %u); under\n%s",
		    (unsigned long long)now_ns, (unsigned long long)why->when_ns,
		    reason_at(pkt, why->when_ns), reason_at(pkt, why->when_ns - 1), text);
	whys_later++;
}

/* ... by its frame, where rules ask for more than is in the packet. */
static void find_rule(struct pacer_walk *walk, const struct frame *f)
{
	static struct packet_head head;

	head.n = f->n < PACKET_HEAD_MAX ? f->n : PACKET_HEAD_MAX;
	memcpy(head.data, f->b, head.n);
	why_find(walk, &head, PACER_ADMIT, NULL, NULL);
}

/* What is said of a packet that is to come, and nothing is changed by that. */
static struct why ask_why(const struct frame *f, uint64_t now_ns, const char *text)
{
	struct pacer_state state = {.table = {lines, prog.n_lines},
				    .policy = &policy,
				    .secret = prog.control->secret[0],
				    .throttle = throttles,
				    .lease = leases};
	struct pacer_walk walk = {.state = &state, .now_ns = now_ns};
	struct why why = {.reason = PACER_REASON_COUNT};

	if (pacer_parse(f->b, f->b + f->n, f->n, &walk.pkt) != PACER_PARSED)
		return why;
	find_rule(&walk, f);
	why_packet(&walk, named, 0, &why);
	if (draw() % 16 == 0)
		passes_then(&why, &walk.pkt, now_ns, text);
	return why;
}

/* Of a frame that was parsed and is not on the allow-list. */
static void agrees(const struct why *why, uint32_t outcome, uint64_t now_ns, const char *text)
{
	enum pacer_reason reason = pacer_outcome_reason(outcome);
	uint32_t rule = pacer_outcome_rule(outcome);
	bool source = reason == PACER_DENY_BAN && rule == PACER_RULES_MAX;
	bool limits = pacer_outcome_denied(outcome) && !source && reason != PACER_DENY_VERDICT;
	int limiter = limits ? (int)pacer_outcome_limiter(outcome) : -1;

	if (why->reason == PACER_REASON_COUNT || reason == PACER_ALLOWED)
		return;
	if (why->reason != reason || why->denied != limiter || !!why->source_ns != source ||
	    (!source && why->rule != rule))
		fail_msg("at %llu: why says reason %u, rule %u, limit %d, source %d, and it was "
			 "%u, %u, %d, %d; under\n%s",
			 (unsigned long long)now_ns, why->reason, why->rule, why->denied,
			 !!why->source_ns, reason, rule, limiter, source, text);
}

static void same(const struct frame *f, uint64_t now_ns, const char *text)
{
	struct why why = ask_why(f, now_ns, text);
	struct pacer_state state = {.table = {lines, prog.n_lines},
				    .policy = &policy,
				    .secret = prog.control->secret[0],
				    .throttle = throttles,
				    .lease = leases,
				    .counters = counters};
	struct pacer_frame frame = {f->b, f->b + f->n, f->n, now_ns};
	struct pacer_walk walk = {.state = &state};
	uint32_t outcome, reason, rule, action = pacer_path(&frame, &walk, &outcome);
	struct prog_judged judged;

	*fake_ns = now_ns;
	judged = prog_judged(&prog, f->b, f->n);
	reason = pacer_outcome_reason(outcome);
	if (judged.verdict != action || pacer_outcome_reason(judged.outcome) != reason)
		fail_msg("at %llu: the kernel says verdict %u, reason %u, and user space %u, %u; "
			 "under\n%s",
			 (unsigned long long)now_ns, judged.verdict,
			 pacer_outcome_reason(judged.outcome), action, reason, text);
	same_counters(text);
	agrees(&why, outcome, now_ns, text);
	rule = pacer_outcome_rule(outcome);
	late_rules += rule >= 64 && rule < PACER_RULES_MAX;
	sources_banned += reason == PACER_DENY_BAN && rule == PACER_RULES_MAX;
	keys_banned +=
	    reason == PACER_DENY_BAN && rule < PACER_RULES_MAX && !policy.rule[rule].ban_ns;
	if (memcmp(lines, prog.lines, prog.n_lines * sizeof(*lines)))
		fail_msg("at %llu, reason %u: the tables differ; under\n%s",
			 (unsigned long long)now_ns, reason, text);
	if (memcmp(throttles, prog.throttle, sizeof(throttles)))
		fail_msg("at %llu, reason %u: the throttles differ; under\n%s",
			 (unsigned long long)now_ns, reason, text);
}

/* As a change of policy leaves it: counters in any order, some limits draining until a time. */
static void change_some(uint64_t now_ns)
{
	uint32_t r, i;

	for (r = 0; r < PACER_RULES_MAX; r++) {
		policy.rule[r].counter = PACER_COUNTERS_MAX - 1 - r;
		for (i = 0; i < policy.rule[r].n_limiters; i++)
			if (draw() % 8 == 0)
				policy.rule[r].limiter[i].until_ns =
				    now_ns + magnitude(1, 1ull << 34);
	}
}

static void ban(struct pacer_line *at, const struct pacer_ban_key *key, uint64_t now_ns,
		uint64_t until_ns)
{
	struct pacer_table table = {at, prog.n_lines};
	struct pacer_ban_ask q = {&table, &policy.bans, now_ns, {0, 0}, *key, 1};
	enum pacer_event event;

	q.hash = pacer_ban_hash(key, prog.control->secret[policy.secret]);
	event = pacer_ban_add(&q, until_ns);
	assert_true(event == PACER_BANNED || event == PACER_BANS_FULL);
}

/* From outside: the frame's source, or a prefix of it; or its key under a rule. */
static void ban_outside(const struct frame *f, uint64_t now_ns)
{
	uint64_t until_ns = draw() & 3 ? now_ns + magnitude(1, 1ull << 32) : PACER_NEVER;
	struct pacer_state state = {.table = {lines, prog.n_lines}, .policy = &policy};
	struct pacer_walk walk = {.state = &state, .now_ns = now_ns};
	const uint8_t len[2][3] = {{32, 30, 24}, {128, 127, 64}};
	struct pacer_ban_key key;
	const struct pacer_rule *rule;

	if (pacer_parse(f->b, f->b + f->n, f->n, &walk.pkt) != PACER_PARSED || !policy.bans.sets)
		return;
	key = pacer_ban_source(walk.pkt.family, walk.pkt.key,
			       len[walk.pkt.family == PACER_FAMILY_6][draw() % 3]);
	find_rule(&walk, f);
	walk.rule = pacer_walk_rule(&walk, &policy);
	if (walk.rule < PACER_RULES_MAX && policy.rule[walk.rule].n_limiters && draw() & 1) {
		rule = &policy.rule[walk.rule];
		state.secret = prog.control->secret[0];
		key = pacer_walk_ban_ask(&walk, &rule->limiter[draw() % rule->n_limiters], 0).key;
		if (!(key.key_id & ~PACER_KEY_V6))
			return;
	}
	ban(lines, &key, now_ns, until_ns);
	ban(prog.lines, &key, now_ns, until_ns);
	ban_notes_write(lines, &policy, now_ns);
	ban_notes_write(prog.lines, &prog.copy[in_force].policy, now_ns);
	pacer_short_reshape(&prog.copy[in_force].policy, prog.control, in_force);
	assert_memory_equal(&prog.copy[in_force].policy.bans, &policy.bans, sizeof(policy.bans));
}

static void run_policy(const char *text)
{
	uint32_t ruled = 0;
	uint64_t now_ns = magnitude(1ull << 33, 1ull << 50);
	struct policy_error error;
	struct frame f;
	uint32_t i;

	change_some(now_ns);
	policy_free(named);
	named = policy_parse(text, strlen(text), &error);
	assert_non_null(named);
	in_force ^= 1;
	prog.control->in_force = in_force;
	prog.copy[in_force].policy = policy;
	pacer_short_arm(&prog.copy[in_force].policy, prog.control, in_force);
	prog_clear(&prog);
	memset(throttles, 0, sizeof(throttles));
	memset(leases, 0, sizeof(leases));
	memset(lines, 0, prog.n_lines * sizeof(*lines));
	some_allowed = draw() & 1; /* else there is a short way */
	put_allow(now_ns + magnitude(1, 1ull << 32));
	for (i = 0; i < PACKETS; i++) {
		random_frame(&f);
		now_ns = next_time(now_ns);
		if (draw() % 64 == 0)
			ban_outside(&f, now_ns);
		ruled +=
		    (prog.copy[in_force].policy.shape & ~PACER_SHORT_OVER) == PACER_SHORT_RULED;
		same(&f, now_ns, text);
	}
	ruled_runs += ruled > 0;
}

static void test_same(void **unused)
{
	static char rules[TEXT_MAX];
	const char *text;
	uint32_t i, run = 0, r;

	(void)unused;
	oracle_seed(51);
	for (i = 0; run < POLICIES; i++) {
		struct policy_error error = {0};

		assert_true(i < 2 * POLICIES);
		plain = draw() % 3 == 0;
		random_policy(rules, i % 10 == 4 ? 64 : between(1, 12));
		text = padded(rules, i % 10 == 9 ? 20 : 0);
		if (prog_try(&prog, text, &policy, &error)) {
			print_message("not run: line %d: %s\n", error.line, error.text);
			continue;
		}
		run_policy(text);
		run++;
	}
	for (r = 0; r < PACER_REASON_COUNT; r++)
		print_message("%s%u", r ? " " : "reasons: ", prog.reasons_seen[r]);
	print_message("\n");
	assert_true(prog.reasons_seen[PACER_ADMIT] > 1000);
	assert_true(prog.reasons_seen[PACER_DENY_GAP] > 100);
	assert_true(prog.reasons_seen[PACER_DENY_WINDOW] > 100);
	assert_true(prog.reasons_seen[PACER_DENY_RATE] > 100);
	assert_true(prog.reasons_seen[PACER_DENY_THROTTLE] > 100);
	assert_true(prog.reasons_seen[PACER_DENY_BAN] > 100);
	assert_true(prog.reasons_seen[PACER_DENY_VERDICT] > 100);
	print_message("%u policies with a short way by rules\n", ruled_runs);
	assert_true(ruled_runs > 10);
	print_message("%u packets under rules beyond the first 64\n", late_rules);
	assert_true(late_rules > 200);
	print_message("%u denials end when why says\n", whys_later);
	assert_true(whys_later > 200);
	assert_true(sources_banned > 100 && keys_banned > 100);
	assert_true(prog.events_seen[PACER_BANNED] > 100);
	assert_true(prog.events_seen[PACER_BANS_FULL] > 10);
	assert_true(prog.events_seen[PACER_READ_IN_PART] > 100);
	assert_true(prog.reasons_seen[PACER_TOO_DEEP] > 100);
	assert_true(prog.reasons_seen[PACER_ALLOWED] > 100);
	assert_true(prog.reasons_seen[PACER_NO_RULE] > 100);
}

static int setup(void **state)
{
	const char *build = getenv("BUILD") ? getenv("BUILD") : "build";
	struct bpf_object *obj;
	cpu_set_t one;
	char path[300];
	uint32_t i;

	CPU_ZERO(&one); /* leases are a CPU's own */
	cpu = sched_getcpu();
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	snprintf(path, sizeof(path), "%s/prog/pacer_fake.bpf.o", build);
	libbpf_set_print(prog_print);
	obj = bpf_object__open_file(path, NULL);
	assert_non_null(obj);
	prog_load(&prog, obj, PROG_LINES);
	fake_ns = prog_mmap(obj, ".data.clock");
	oracle_seed(50);
	for (i = 0; i < PACER_SECRETS; i++)
		prog.control->secret[0][i] = draw();
	lines = aligned_alloc(64, prog.n_lines * sizeof(*lines));
	assert_non_null(lines);
	*state = obj;
	return 0;
}

static int teardown(void **state)
{
	bpf_object__close(*state);
	policy_free(named);
	free(lines);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_same),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
