/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packets and keys that somebody writes for `why` and `ban`: they are refused in one line, or an
 * answer is given that changes nothing; and a key's text is read as it is written.
 */
#include "fuzz.h"
#include "inspect/packet_text.h"
#include "inspect/why.h"
#include "parsed.h"
#include "sets/words.h"

#define LINES 1024u
#define POLICY                                                                         \
	"memory: 64K\nclock: exact\nbans: 16\n"                                        \
	"sets: [{name: asn, file: asn.csv, value: 2}]\nrules:\n- name: a\n  ban: 1s\n" \
	"  limits:\n"                                                                  \
	"  - {key: src, packets: 3, window: 1s}\n  - {key: flow, gap: 1ms}\n"          \
	"  - {key: src+dport, packets: 3, window: 1s}\n"                               \
	"  - {key: dst, rate: 9/s, burst: 3}\n  - {key: all, uses: 9, cooldown: 1s}\n" \
	"  - {key: 'value(asn, src)', packets: 3, window: 1s}\n"                       \
	"- name: b\n  limits:\n  - {key: 'value(asn, src)+proto', gap: 1ms}\n"         \
	"  - {key: 'src+value(asn, dst)', gap: 1ms}\n"

static struct pacer_line lines[LINES] __attribute__((aligned(64))), before[LINES];
static struct pacer_throttle_state throttle[PACER_THROTTLES];
static struct pacer_throttle_lease lease[PACER_THROTTLES];
static __u64 secret[2 * PACER_SECRETS];
static struct policy *policy;
static struct pacer_policy bin;
static struct pacer_set set[PACER_SETS_MAX]; /* which has 192.0.2.0/24; nobody else a value */
static struct pacer_state state = {.table = {lines, LINES},
				   .policy = &bin,
				   .secret = secret,
				   .throttle = throttle,
				   .lease = lease,
				   .set = set};

static void fill_set(void)
{
	static struct set_names names;
	static struct set_lines built;
	struct set_about about = {"asn", &names, 0};
	struct set_list list = {.about = &about};
	struct prefix prefix;
	struct set_entry e;

	HOLDS(!units_prefix("192.0.2.0/24", &prefix));
	e = set_entry_of(&prefix, 1, 0);
	HOLDS(set_names_add(&names, (struct set_word){"XY", 2}) == 1 && !set_list_add(&list, &e));
	HOLDS(!set_build(&list, 1, &built) && !set_words_put(&built, &about));
	set[0] = set_lines_set(&built);
	set_list_free(&list);
}

static void begin(void)
{
	struct compile_host host = {0, 1, 1};
	struct policy_error error;
	static struct plan plan;

	policy = policy_parse(POLICY, strlen(POLICY), &error);
	HOLDS(policy && !compile_policy(policy, NULL, &host, &bin, &plan, &error));
	HOLDS(plan.lines <= LINES);
	fill_set();
	for (size_t i = 0; i < 2 * PACER_SECRETS; i++)
		secret[i] = (i + 1) * 0x9e3779b97f4a7c15ull;
}

static void ask(const struct pacer_packet *pkt, uint64_t now_ns)
{
	struct pacer_walk walk = {.state = &state, .now_ns = now_ns, .pkt = *pkt};
	struct why why;

	memcpy(before, lines, sizeof(lines));
	why_packet(&walk, policy, 0, &why);
	HOLDS(!memcmp(before, lines, sizeof(lines)));
	HOLDS(why.n <= PACER_LIMITERS_MAX && why.when_ns >= now_ns);
	walk.now_ns = now_ns;
	HOLDS((pacer_outcome_reason(judge_parsed(&walk)) == PACER_ADMIT) ==
	      (why.reason == PACER_ADMIT));
}

static void ask_key(const char *text, uint64_t now_ns)
{
	struct pacer_walk walk = {.state = &state, .now_ns = now_ns};
	char one[TALLY_TEXT], two[TALLY_TEXT];
	struct pacer_packet pkt;
	struct why why;

	for (size_t i = 0; i < policy->rule[0].n_limits; i++) {
		const struct policy_key *kind = &policy->rule[0].limit[i].key;

		memset(&pkt, 0, sizeof(pkt));
		if (tally_key_read(kind, text, &pkt))
			continue;
		tally_key_text(kind, &pkt, one, sizeof(one));
		HOLDS(!tally_key_read(kind, one, &pkt));
		HOLDS(!strcmp(one, tally_key_text(kind, &pkt, two, sizeof(two))));
		walk.pkt = pkt;
		walk.pkt.len_bytes = 60;
		why_key(&walk, policy, 0, text, 0, &why);
		HOLDS(why.n <= PACER_LIMITERS_MAX);
	}
}

/* A key by a value of that name is read as it is written, whatever the name. */
static void ask_value(const char *text)
{
	static const char *const keys[] = {"value(asn, %s)", "value(asn, %s) udp",
					   "192.0.2.1>value(asn, %s)"};
	struct set_word name = set_trim((struct set_word){text, strlen(text)});
	char key[TALLY_TEXT], value[SET_NAME_MAX + 1];
	struct pacer_packet pkt;

	if (!set_name_fits(name))
		return;
	snprintf(value, sizeof(value), "%.*s", (int)name.n, name.at);
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const struct policy_limit *limit =
		    i ? &policy->rule[1].limit[i - 1]
		      : &policy->rule[0].limit[policy->rule[0].n_limits - 1];

		snprintf(key, sizeof(key), keys[i], value);
		HOLDS(!tally_key_read(&limit->key, key, &pkt));
		HOLDS(pkt.key[i < 2 ? PACER_WORD_SADDR : PACER_WORD_DADDR] ==
		      set_word_of("asn", value));
	}
}

static void ask_packet(const char *text, bool raw_ip, uint64_t now_ns)
{
	struct packet_head head = {.n = 0};
	struct pacer_packet pkt, again;
	struct policy_error error = {0};
	const uint8_t *end;
	uint32_t len;

	if (packet_text_read(text, raw_ip, &pkt, &head, &error)) {
		HOLDS_TOLD(error.text);
		return;
	}
	HOLDS(head.n <= sizeof(head.data));
	end = head.data + head.n;
	len = pkt.len_bytes > head.n ? pkt.len_bytes : head.n;
	if (head.n) { /* the frame that was made of it is that packet's */
		HOLDS((raw_ip ? pacer_parse_raw(head.data, end, len, &again)
			      : pacer_parse(head.data, end, len, &again)) == PACER_PARSED);
		HOLDS(!memcmp(again.key, pkt.key, sizeof(pkt.key)));
	}
	for (uint32_t i = 0; i < 6; i++)
		ask(&pkt, now_ns + i * 2000000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	uint64_t now_ns = 5000000000;
	char *text = fuzz_text(&in);

	if (!policy)
		begin();
	memset(lines, 0, sizeof(lines));
	memset(throttle, 0, sizeof(throttle));
	memset(lease, 0, sizeof(lease));
	(void)packet_text_is(text);
	ask_packet(text, false, now_ns);
	ask_packet(text, true, now_ns + 10000000);
	ask_key(text, now_ns + 20000000);
	ask_value(text);
	free(text);
	return 0;
}
