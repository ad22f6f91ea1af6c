/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the packet path says where something is not there. The kernel verifies some functions by
 * themselves, and there each pointer may be NULL and each number anything; and every look into a
 * map may find nothing. What they say of such is the safe side: deny, do nothing, or leave it to
 * the longer way.
 */
#include <stdlib.h>

#include "applied.h"
#include "padded.h"
#include "path.h"
#include "pool.h"

static struct pacer_line lines[64] __attribute__((aligned(4096))), none[64];
static struct pacer_policy policy;
static __u64 secret[2 * PACER_SECRETS];
static struct pacer_state state = {.table = {lines, 64}, .policy = &policy, .secret = secret};
static struct pacer_walk walk = {.state = &state, .now_ns = 1000};
static struct pacer_walk *const w = &walk;
static const struct pacer_frame frame;
static const struct pacer_limiter *const t = &policy.rule[0].limiter[0];
static const struct pacer_rule *const rule = &policy.rule[0];
static struct pacer_table *const table = &state.table;
static struct pacer_hold hold;
static struct pacer_holds holds;
static struct pacer_seen seen;
static struct pacer_rules rules;

#define BEYOND PACER_LIMITERS_MAX

/* A packet is denied, or left to the longer way, by a limit that is not there. */
static void a_limit_that_is_not_there_denies(void **s)
{
	struct pacer_throttle_profile profile = {0};
	struct pacer_throttle_state throttle = {0};
	struct pacer_throttle_lease lease = {0};
	struct pacer_pool_round round = {0};
	__u32 word = 0;

	(void)s;
	assert_int_equal(pacer_walk_check(NULL, 0, &hold), PACER_DENY_NO_STATE);
	assert_int_equal(pacer_walk_check(w, 0, NULL), PACER_DENY_NO_STATE);
	assert_int_equal(pacer_walk_check(w, BEYOND, &hold), PACER_DENY_NO_STATE);
	assert_int_equal(pacer_walk_take(NULL, 0, &hold), PACER_LOCK_OTHER);
	assert_int_equal(pacer_walk_take(w, 0, NULL), PACER_LOCK_OTHER);
	assert_int_equal(pacer_walk_take(w, BEYOND, &hold), PACER_LOCK_OTHER);
	assert_int_equal(pacer_walk_reserve(NULL, 0, &hold, 0), PACER_DENY_NO_STATE);
	assert_int_equal(pacer_walk_reserve(w, 0, NULL, 0), PACER_DENY_NO_STATE);
	assert_int_equal(pacer_walk_reserve(w, BEYOND, &hold, 0), PACER_DENY_NO_STATE);
	assert_int_equal(pacer_quick_check(NULL, t, &hold, &seen), PACER_DENY_NO_STATE);
	assert_int_equal(pacer_quick_check(w, NULL, &hold, &seen), PACER_DENY_NO_STATE);
	assert_int_equal(pacer_quick_check(w, t, NULL, &seen), PACER_DENY_NO_STATE);
	assert_int_equal(pacer_quick_check(w, t, &hold, NULL), PACER_DENY_NO_STATE);
	assert_int_equal(pacer_quick_lock(NULL, t, &hold, &seen, 0), PACER_DENY_NO_STATE);
	assert_int_equal(pacer_quick_lock(w, NULL, &hold, &seen, 0), PACER_DENY_NO_STATE);
	assert_int_equal(pacer_quick_lock(w, t, NULL, &seen, 0), PACER_DENY_NO_STATE);
	assert_int_equal(pacer_quick_lock(w, t, &hold, NULL, 0), PACER_DENY_NO_STATE);
	assert_int_equal(pacer_limit_ask(NULL, &holds), PACER_DENY_NO_STATE);
	assert_int_equal(pacer_limit_ask(w, NULL), PACER_DENY_NO_STATE);
	assert_int_equal(pacer_limit_many(NULL), PACER_DENY_NO_STATE);
	assert_int_equal(pacer_limit_finish_one(NULL), PACER_DENY_NO_STATE);
	assert_int_equal(pacer_limit_first(NULL), PACER_DENY_NO_STATE);
	assert_int_equal(pacer_throttle_pass(w, NULL, 1000), PACER_DENY_NO_STATE);
	assert_int_equal(pacer_short_elsewhere(NULL, table, 1, 1000, 100), PACER_DENY_NO_STATE);
	assert_int_equal(pacer_throttle_look_again(NULL, &throttle, 1000, 1),
			 0); /* then it is refilled */
	assert_int_equal(pacer_throttle_look_again(&profile, NULL, 1000, 1), 0);
	assert_int_equal(pacer_throttle_refill_of(NULL, &throttle, &lease, 1000, 1),
			 PACER_THROTTLE_BUSY);
	assert_int_equal(pacer_throttle_refill_of(&profile, NULL, &lease, 1000, 1),
			 PACER_THROTTLE_BUSY);
	assert_int_equal(pacer_throttle_refill_of(&profile, &throttle, NULL, 1000, 1),
			 PACER_THROTTLE_BUSY);
	assert_int_equal(pacer_pool_try(NULL, &throttle, &lease, &round), PACER_THROTTLE_BUSY);
	assert_int_equal(pacer_pool_try(&profile, &throttle, NULL, &round), PACER_THROTTLE_BUSY);
	assert_int_equal(pacer_pool_try(&profile, &throttle, &lease, NULL), PACER_THROTTLE_BUSY);
	assert_int_equal(pacer_lock_spin(NULL, 1, &word), PACER_LOCK_OTHER);
	assert_int_equal(pacer_lock_spin(&word, 1, NULL), PACER_LOCK_OTHER);
}

/* What the short way cannot look at is judged by the longer one. */
static void a_short_way_without_its_rule_is_not_taken(void **s)
{
	(void)s;
	assert_int_equal(pacer_path_watched(table, NULL, rule, 1, 1000), PACER_UNDECIDED);
	assert_int_equal(pacer_path_watched(table, &policy, NULL, 1, 1000), PACER_UNDECIDED);
	assert_int_equal(pacer_path_bans(table, NULL, rule, 1, 1000), PACER_UNDECIDED);
	assert_int_equal(pacer_path_bans(table, &policy, NULL, 1, 1000), PACER_UNDECIDED);
	assert_int_equal(pacer_path_ruled_part(w, NULL, 1, 1, 1000), PACER_UNDECIDED);
	assert_int_equal(pacer_short_own_part(NULL, lines, 1000, 1ull << 32 | 100, 0),
			 PACER_UNDECIDED);
	assert_int_equal(pacer_short_own_part(t, NULL, 1000, 1ull << 32 | 100, 0), PACER_UNDECIDED);
	assert_int_equal(pacer_short_own_part(t, lines, 1000, 100, 0), PACER_UNDECIDED);
	assert_int_equal(pacer_short_lane_word(w, NULL, 1, 1), 0);
}

/* What is charged, given back or counted with nothing to do it to leaves all as it was. */
static void nothing_is_done_to_nothing(void **s)
{
	struct pacer_sample_item item = {0};
	struct pacer_sampler sampler = {0};
	struct pacer_parts parts = {0, 0, 0};

	(void)s;
	assert_int_equal(pacer_walk_finish(NULL, 0, &hold, 1), 0);
	assert_int_equal(pacer_walk_finish(w, 0, NULL, 1), 0);
	assert_int_equal(pacer_walk_finish(w, BEYOND, &hold, 1), 0);
	assert_int_equal(pacer_quick_commit(NULL, t, &hold, &seen), 0);
	assert_int_equal(pacer_quick_commit(w, NULL, &hold, &seen), 0);
	assert_int_equal(pacer_quick_commit(w, t, NULL, &seen), 0);
	assert_int_equal(pacer_quick_commit(w, t, &hold, NULL), 0);
	assert_int_equal(pacer_limit_request(NULL, &holds), 0);
	assert_int_equal(pacer_limit_request(w, NULL), 0);
	assert_int_equal(pacer_limit_end(NULL, &holds, 1, 1), 0);
	assert_int_equal(pacer_limit_end(w, NULL, 1, 1), 0);
	assert_int_equal(pacer_path_note(NULL, 0), 0);
	walk.rule = PACER_RULES_MAX;
	assert_int_equal(pacer_path_note(w, 0), 0);
	walk.rule = 0;
	assert_int_equal(pacer_sample_fill(NULL, 0, &item), 0);
	assert_int_equal(pacer_sample_fill(w, 0, NULL), 0);
	assert_int_equal(pacer_head_keep(&frame, NULL, &sampler, 1), 0);
	assert_int_equal(pacer_head_keep(&frame, w, NULL, 1), 0);
	assert_int_equal(pacer_head_keep(&frame, w, &sampler, 0), 0);
	assert_int_equal(pacer_head_keep(&frame, w, &sampler, 1), 0); /* no place for heads */
	assert_int_equal(pacer_sample_take(&frame, NULL, 0, 1000, &sampler), 0);
	assert_int_equal(pacer_sample_take(&frame, w, 0, 1000, NULL), 0);
	assert_int_equal(pacer_sample(&frame, NULL, 0), 0);
	assert_int_equal(pacer_path_read(&frame, NULL), 0);
	assert_int_equal(pacer_path_keys(&frame, NULL, 0), 0);
	assert_int_equal(pacer_more_parts(&frame, NULL, &parts), 0);
	assert_int_equal(pacer_more_parts(&frame, w, NULL), 0);
	assert_int_equal(pacer_more_probes_many(&frame, NULL, &rules), 0);
	assert_int_equal(pacer_more_probes_many(&frame, w, NULL), 0);
	assert_int_equal(pacer_more_many(&frame, NULL, 1, &rules), 0);
	assert_int_equal(pacer_more_many(&frame, w, 1, NULL), 0);
	assert_int_equal(pacer_ring_full_narrow(NULL, 1, 1), 0);
	assert_int_equal(pacer_ring_full_wide(table, NULL, 0, 1, 1), 0);
	assert_int_equal(pacer_ring_begin_narrow(NULL, 1), 0);
	assert_int_equal(pacer_ring_begin_wide(table, NULL, 0, 1), 0);
	assert_memory_equal(lines, none, sizeof(lines));
}

/* No rule is chosen for a packet that is not there, and none is opened, allowed, or known. */
static void no_rule_and_no_way_past_it(void **s)
{
	struct pacer_set_use use = {0, 0, 0, 0};
	struct pacer_uses uses = {0};
	struct pacer_parts parts = {0, 0, 0};

	(void)s;
	assert_int_equal(pacer_classify_usual(NULL, 1, 2, 3, 17), PACER_RULES_MAX);
	assert_int_equal(pacer_classify_usual_many(NULL, 1, 2, 3, 17), PACER_RULES_MAX);
	assert_int_equal(pacer_walk_classify(NULL, 1), PACER_RULES_MAX);
	assert_int_equal(pacer_walk_classify_by(NULL, &use, 1), PACER_RULES_MAX);
	assert_int_equal(pacer_walk_classify_by(w, NULL, 1), PACER_RULES_MAX);
	assert_int_equal(pacer_walk_classify_sets(NULL, 1), PACER_RULES_MAX);
	assert_int_equal(pacer_walk_classify_many(NULL, &rules), PACER_RULES_MAX);
	assert_int_equal(pacer_walk_classify_many(w, NULL), PACER_RULES_MAX);
	assert_int_equal(pacer_walk_classify_by_many(NULL, &uses, &rules), PACER_RULES_MAX);
	assert_int_equal(pacer_walk_classify_by_many(w, NULL, &rules), PACER_RULES_MAX);
	assert_int_equal(pacer_walk_classify_by_many(w, &uses, NULL), PACER_RULES_MAX);
	assert_int_equal(pacer_walk_classify_sets_many(NULL, &rules), PACER_RULES_MAX);
	assert_int_equal(pacer_walk_classify_sets_many(w, NULL), PACER_RULES_MAX);
	assert_int_equal(pacer_walk_heed(NULL, 0, 1, &use), 0);
	assert_int_equal(pacer_walk_heed(w, 0, 1, NULL), 0);
	assert_int_equal(pacer_walk_heed_many(NULL, 0, 1, &uses), 0);
	assert_int_equal(pacer_walk_heed_many(w, 0, 1, NULL), 0);
	assert_true(pacer_walk_given(NULL, 0, 0, 0) == PACER_SET_UNREADABLE);
	assert_int_equal(pacer_walk_in_set4(NULL, 0), PACER_SET_UNKNOWN);
	assert_int_equal(pacer_walk_in_set6(NULL, 0), PACER_SET_UNKNOWN);
	assert_int_equal(pacer_walk_in_values(NULL, 0), PACER_SET_UNKNOWN);
	assert_int_equal(pacer_walk_word(NULL, 1), 0);
	assert_int_equal(pacer_path_look(&frame, NULL), 0);
	assert_int_equal(pacer_path_look_many(&frame, NULL), PACER_RULES_MAX);
	assert_int_equal(pacer_path_inner_rule(&frame, NULL, &rules), PACER_RULES_MAX);
	assert_int_equal(pacer_path_inner_rule(&frame, w, NULL), PACER_RULES_MAX);
	assert_int_equal(pacer_path_inner(&frame, NULL), PACER_PARSED);
	assert_int_equal(pacer_path_inner_limits(&frame, NULL, &rules), 1);
	assert_int_equal(pacer_path_inner_limits(&frame, w, NULL), 1);
	assert_int_equal(pacer_path_found(&frame, NULL, 0), PACER_NOT_IP);
	assert_int_equal(pacer_over_of(NULL, 0), PACER_OVER_DROP);
	assert_int_equal(pacer_walk_is_allowed(NULL), 0);
	assert_int_equal(pacer_path_flow(&frame, NULL, 0), 0);
	assert_int_equal(pacer_flow_set(NULL), 0);
	assert_int_equal(pacer_flow_seen(NULL, 1, 0), 0);
	assert_int_equal(pacer_flow_known(NULL, 1), 0);
	assert_int_equal(pacer_flow_enter(NULL, 1, 0), 0);
	assert_int_equal(pacer_flow_keep(NULL), 0);
	assert_int_equal(pacer_more_headers(&frame, NULL), 0);
	assert_int_equal(pacer_more_frame(&frame, NULL), 0);
	assert_int_equal(pacer_more_in_payload(&frame, NULL), 0);
	assert_int_equal(pacer_more_packet(&frame, NULL), 0);
	assert_int_equal(pacer_more_rules(&frame, NULL), 0);
	assert_int_equal(pacer_more_row_of(&frame, NULL, 0), PACER_MORE_UNKNOWN);
	assert_int_equal(pacer_more_span(NULL, 0, 1), PACER_MORE_UNKNOWN);
	assert_int_equal(pacer_more_l4(&frame, NULL, 0, 6, 0), PACER_MORE_UNKNOWN);
	assert_int_equal(pacer_more_probe(&frame, NULL, 0, &parts), PACER_PROBE_NOT);
	assert_int_equal(pacer_more_probe(&frame, w, 0, NULL), PACER_PROBE_NOT);
	assert_int_equal(pacer_more_probe(&frame, w, PACER_PROBES_MAX, &parts), PACER_PROBE_NOT);
}

/* No ban is seen, made or read of a packet or a limit that is not there: the limits still judge it.
 */
static void no_ban_without_a_key(void **s)
{
	struct pacer_ban_key key = {0};

	(void)s;
	assert_int_equal(pacer_ban_own(NULL, &key), 0);
	assert_int_equal(pacer_ban_own(lines, NULL), 0);
	assert_int_equal(pacer_walk_ban_key(NULL, t, &key), 0);
	assert_int_equal(pacer_walk_ban_key(w, NULL, &key), 0);
	assert_int_equal(pacer_walk_ban_key(w, t, NULL), 0);
	assert_int_equal(pacer_walk_confirm(NULL, 0, 0), 0);
	assert_int_equal(pacer_walk_confirm(w, BEYOND, 0), 0);
	assert_int_equal(pacer_walk_banned(NULL, 0), PACER_ADMIT);
	assert_int_equal(pacer_walk_source(NULL, 0), 0);
	assert_int_equal(pacer_walk_source_denied(NULL), 0);
	assert_int_equal(pacer_walk_row(NULL, 0), 0);
	assert_int_equal(pacer_walk_row(w, BEYOND), 0);
	assert_int_equal(pacer_walk_ban_raise(NULL, 0, 1), 0);
	assert_int_equal(pacer_walk_ban_raise(w, BEYOND, 1), 0);
	assert_int_equal(pacer_walk_ban_put(NULL, 0, 0), PACER_EVENT_COUNT);
	assert_int_equal(pacer_walk_ban_put(w, BEYOND, 0), PACER_EVENT_COUNT);
	assert_int_equal(pacer_walk_ban(NULL, 0, 0), PACER_EVENT_COUNT);
	assert_int_equal(pacer_walk_ban(w, BEYOND, 0), PACER_EVENT_COUNT);
	assert_int_equal(pacer_walk_key_until(NULL, 0), 0);
	assert_int_equal(pacer_walk_key_until(w, BEYOND), 0);
}

/* No hash, and no share of one, without a key; nothing of a tunnel without one. */
static void no_key_and_no_tunnel(void **s)
{
	struct pacer_tunnel tunnel = {0};

	(void)s;
	assert_int_equal(pacer_walk_key_hash(NULL, t, 0), 0);
	assert_int_equal(pacer_walk_key_hash(w, NULL, 0), 0);
	assert_int_equal(pacer_quick_hash6(NULL, t), 0);
	assert_int_equal(pacer_quick_hash6(w, NULL), 0);
	assert_int_equal(pacer_walk_share(NULL, t), 0);
	assert_int_equal(pacer_walk_share(w, NULL), 0);
	assert_int_equal(pacer_tunnel_read(&frame, NULL, 0, 4), 0);
	assert_int_equal(pacer_tunnel_gre(&frame, NULL), 0);
	assert_int_equal(pacer_tunnel_geneve(&frame, NULL), 0);
	assert_int_equal(pacer_tunnel_gtpu(&frame, NULL), 0);
	assert_int_equal(pacer_tunnel_pppoe(&frame, NULL), 0);
	assert_int_equal(pacer_tunnel_ether(&frame, NULL), 0);
	assert_int_equal(pacer_tunnel_find(&frame, NULL, &tunnel), 0);
	assert_int_equal(pacer_tunnel_find(&frame, w, NULL), 0);
	assert_int_equal(pacer_inner_parse(&frame, NULL, &tunnel), PACER_PARSE_NOT_IP);
	assert_int_equal(pacer_inner_parse(&frame, w, NULL), PACER_PARSE_NOT_IP);
}

/* --- a table that ends too early -------------------------------------------------------------- */

#define RULE(limits) "memory: 256Ki\nrules: [{name: a, limits: [" limits "]}]\n"
#define BANS(limits) "memory: 256Ki\nbans: 64\nrules: [{name: a, ban: 10s, limits: [" limits "]}]\n"

static const char *const limited[] = {
    RULE("{key: src, gap: 1s}"),
    RULE("{key: src, packets: 3, window: 10s}"),
    RULE("{key: src, packets: 3, window: 10s, slots: 50}"),
    RULE("{key: src, bytes: 2000, window: 10s}"),
    RULE("{key: src, rate: 10/s, burst: 5}"),
    RULE("{key: all, packets: 3, window: 10s}"),
    RULE("{key: all, packets: 3, window: 10s, slots: 50}"),
    RULE("{key: flow, packets: 3, window: 10s}"),
    RULE("{key: src, packets: 3, window: 10s}, {key: src/24,56, rate: 10/s, burst: 5}"),
    RULE("{key: src, gap: 1s}, {key: src/24,56, packets: 9, window: 1s}, {key: dst, rate: 10/s, "
	 "burst: 5}"),
    BANS("{key: src, packets: 3, window: 10s}"),
    BANS("{key: src, rate: 10/s, burst: 5}, {key: src/24,56, packets: 9, window: 1s}"),
    "memory: 256Ki\nrules:\n- {name: a, match: {proto: udp}, limits: [{key: src, gap: 1s}]}\n"
    "- {name: b, limits: [{key: src/24,56, packets: 3, window: 10s}]}\n",
    "memory: 256Ki\nflows: 64\nrules: [{name: a, limits: [{key: src, rate: 10/s, burst: 5, of: "
    "new}]}]\n",
};

static uint32_t its_rule; /* of the packet that was judged last */

/* Of n bytes, len_bytes of the frame. */
static enum pacer_reason judge(struct pacer_state *on, const uint8_t *b, uint32_t n,
			       uint32_t len_bytes, uint64_t now_ns)
{
	struct pacer_frame f = {b, b + n, len_bytes, now_ns};
	struct pacer_walk walk = {.state = on};
	__u32 outcome;

	(void)pacer_path(&f, &walk, &outcome);
	its_rule = pacer_outcome_rule(outcome);
	return pacer_outcome_reason(outcome);
}

/* UDP to port 53, from 10.0.0.`host`. */
static enum pacer_reason judged(struct pacer_state *on, uint8_t host_number, uint64_t now_ns)
{
	const uint8_t b[60] = {
	    [12] = 8,		[14] = 0x45, [17] = 46, [22] = 64, [23] = 17, [26] = 10,
	    [29] = host_number, [30] = 198,  [33] = 1,	[35] = 7,  [37] = 53, [39] = 26};

	return judge(on, b, sizeof(b), sizeof(b), now_ns);
}

/* The same over IPv6, from fd00::`host`. */
static enum pacer_reason judged6(struct pacer_state *on, uint8_t host_number, uint64_t now_ns)
{
	const uint8_t b[74] = {[12] = 0x86, [13] = 0xdd, [14] = 0x60,	     [19] = 20,	  [20] = 17,
			       [21] = 64,   [22] = 0xfd, [37] = host_number, [38] = 0xfd, [53] = 1,
			       [55] = 7,    [57] = 53,	 [59] = 20};

	return judge(on, b, sizeof(b), sizeof(b), now_ns);
}

/* One of which more than 64 KiB are not in the first buffer. */
static enum pacer_reason judged_long(struct pacer_state *on, uint8_t host_number, uint64_t now_ns)
{
	const uint8_t b[60] = {[12] = 8,  [14] = 0x45, [16] = 0xff,	   [17] = 0xff, [22] = 64,
			       [23] = 17, [26] = 10,   [29] = host_number, [30] = 198,	[33] = 1,
			       [35] = 7,  [37] = 53,   [38] = 0xff,	   [39] = 0xeb};

	return judge(on, b, sizeof(b), 70000, now_ns);
}

/* Of a policy of one limit, whose packets all have one key. */
static bool ends_within_the_record(uint64_t n)
{
	const struct pacer_rule *one = &now.bin.rule[0];

	return one->n_limiters == 1 && !one->limiter[0].key_id &&
	       n < one->limiter[0].base + (one->limiter[0].units + 3) / PACER_LINE_UNITS;
}

/*
 * A policy whose table ends before its state does: what lies behind the end is neither read nor
 * written, which ASan sees, and where nothing is left of it nobody is admitted.
 */
static void a_table_that_ends_early_admits_nobody(void **s)
{
	(void)s;
	for (size_t i = 0; i < ARRAY(limited); i++) {
		assert_int_equal(load(limited[i]), 0);
		for (uint64_t cut = 0; cut <= 16; cut++) {
			uint64_t n = cut < 8 ? cut : now.plan.lines * (cut - 8) / 8;
			struct pacer_line *some = aligned_alloc(64, (n ? n : 1) * sizeof(*some));
			struct pacer_state on = {
			    .table = {some, n}, .policy = &now.bin, .secret = secret};
			size_t admitted = 0;

			assert_non_null(some);
			memset(some, 0, n * sizeof(*some));
			for (uint8_t k = 0; k < 200; k++) {
				enum pacer_reason reason = judged(&on, k % 50, SECOND + k);

				admitted += reason == PACER_ADMIT;
				if ((!n || ends_within_the_record(n)) &&
				    reason != PACER_DENY_NO_STATE)
					fail_msg("%s: %s", limited[i], pacer_reason_name(reason));
			}
			assert_true(cut < 16 || admitted);
			free(some);
		}
	}
}

#define SETS	"memory: 256Ki\nsets: [{name: s, file: f}, {name: v, file: g, value: 2}]\n"
#define OTHERS	"- {name: b, limits: [{key: src, packets: 9, window: 10s}]}\n"
#define NO_RULE PACER_RULES_MAX

/*
 * A set that is not there: who it lets pass is not known, so nobody is; who it drops is dropped. A
 * host without a share of a fleet's limit, as replay is one, has the whole of it.
 */
static void what_is_not_there_lets_nobody_pass(void **s)
{
	static enum pacer_reason (*const way[])(struct pacer_state *, uint8_t,
						uint64_t) = {judged, judged6, judged_long};
	static const struct {
		const char *text;
		enum pacer_reason reason;
		uint32_t rule;
	} row[] = {
	    {SETS "rules:\n- {name: a, match: {src: '@s'}, verdict: pass}\n" OTHERS, PACER_ADMIT,
	     1},
	    {SETS "rules:\n- {name: a, match: {src: '!@s'}, verdict: pass}\n" OTHERS, PACER_ADMIT,
	     1},
	    {SETS "rules:\n- {name: a, match: {dst: '@v=x'}, verdict: pass}\n" OTHERS, PACER_ADMIT,
	     1},
	    {SETS "rules:\n- {name: a, match: {src: '@s'}, verdict: drop}\n" OTHERS,
	     PACER_DENY_VERDICT, 0},
	    {SETS "rules:\n- {name: a, match: {dst: '!@s'}, verdict: drop}\n" OTHERS,
	     PACER_DENY_VERDICT, 0},
	    {"memory: 256Ki\nrules:\n- {name: a, match: {dport: 53}, verdict: drop}\n" OTHERS,
	     PACER_DENY_VERDICT, 0},
	    {"memory: 256Ki\nfleet: {store: 'http://a', name: f}\nrules:\n"
	     "- {name: a, limits: [{key: src, packets: 9, window: 10s, fleet: yes}]}\n",
	     PACER_ADMIT, 0},
	    {"memory: 256Ki\nfleet: {store: 'http://a', name: f}\nrules:\n"
	     "- {name: a, limits: [{key: src, rate: 9/s, burst: 9, fleet: yes}]}\n",
	     PACER_ADMIT, 0},
	    {SETS "allow: ['@s', '@v=x']\nrules:\n" OTHERS, PACER_ADMIT, 0},
	    {SETS "rules:\n- {name: a, limits: [{key: 'value(v, src)', rate: 9/s, burst: 9}]}\n",
	     PACER_DENY_NO_STATE, 0},
	    {SETS "rules:\n- {name: a, limits: [{key: 'value(v, dst)+src', gap: 1s}]}\n",
	     PACER_DENY_NO_STATE, 0},
	};

	(void)s;
	for (size_t i = 0; i < ARRAY(row); i++)
		for (uint32_t pads = 0; pads <= 60; pads += 60) {
			static struct pacer_line all[4096] __attribute__((aligned(64)));
			struct pacer_state on = {
			    .table = {all, 4096}, .policy = &now.bin, .secret = secret};
			enum pacer_reason reason;

			assert_int_equal(load(padded(row[i].text, pads)), 0);
			memset(all, 0, sizeof(all));
			for (size_t k = 0; k < ARRAY(way); k++) {
				reason = way[k](&on, 1, SECOND);
				if (reason != row[i].reason ||
				    unpadded(its_rule, pads, NO_RULE) != row[i].rule)
					fail_msg("%s, %u rules before, way %zu: %s, rule %u",
						 row[i].text, pads, k, pacer_reason_name(reason),
						 its_rule);
			}
		}
}

/* What is no reason has no name, and denies. */
static void no_reason(void **s)
{
	(void)s;
	assert_string_equal(pacer_reason_name(PACER_REASON_COUNT), "?");
	assert_int_equal(pacer_verdict_of(PACER_REASON_COUNT), PACER_VERDICT_DENY);
}

/* A limit of a kind that is not known denies; one of no kind is no limit, and is not asked. */
static void a_limit_of_no_kind_denies(void **s)
{
	const struct pacer_limiter other = {.kind = PACER_LIMITER_THROTTLE + 1},
				   nothing = {.kind = PACER_LIMITER_NONE};
	struct pacer_hold none_held = {0};
	struct pacer_ask q = {.table = table, .limiter = &other, .part = PACER_SHARE_WHOLE};
	struct pacer_seen no = {0};
	struct pacer_ring ring = {.table = table};

	(void)s;
	assert_int_equal(pacer_limit_check(w, &other, &none_held), PACER_DENY_NO_STATE);
	assert_int_equal(pacer_limit_judge_taken(w, &other, &none_held, PACER_LOCK_TAKEN),
			 PACER_DENY_NO_STATE);
	pacer_limit_commit(w, &other, &none_held);
	pacer_limit_cancel(w, &other, &none_held);
	assert_true(pacer_limit_when(w, &other) == PACER_NEVER);
	assert_int_equal(pacer_limit_home(w, &other).index, 0);
	assert_int_equal(pacer_limit_check(w, &nothing, &none_held), PACER_ADMIT);
	assert_int_equal(pacer_limit_check_plain(w, &nothing, &none_held), PACER_ADMIT);
	assert_true(pacer_limit_when(w, &nothing) == 0);
	assert_int_equal(pacer_entry_judge(&q, &ring, 0, &no), PACER_DENY_NO_STATE);
	assert_int_equal(pacer_entry_same(&q, &ring, &no), 0);
	assert_int_equal(pacer_entry_admit(&q, &ring, &no, 7), 7);
	assert_memory_equal(lines, none, sizeof(lines));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_limit_that_is_not_there_denies),
	    cmocka_unit_test(a_short_way_without_its_rule_is_not_taken),
	    cmocka_unit_test(nothing_is_done_to_nothing),
	    cmocka_unit_test(no_rule_and_no_way_past_it),
	    cmocka_unit_test(no_ban_without_a_key),
	    cmocka_unit_test(no_key_and_no_tunnel),
	    cmocka_unit_test(a_table_that_ends_early_admits_nobody),
	    cmocka_unit_test(what_is_not_there_lets_nobody_pass),
	    cmocka_unit_test(no_reason),
	    cmocka_unit_test(a_limit_of_no_kind_denies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
