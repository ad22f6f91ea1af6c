/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The judgement of one limit, against all that was admitted before: no window holds more than the
 * limit, no denial is outside the bound of its limiter, and none ends before the time that is told.
 */
#include "fuzz.h"
#include "parsed.h"
#include "plan/compile.h"

#define EVENTS_MAX 160u
#define KEYS	   3u
#define LINES_MAX  1024u

struct event {
	uint64_t time_ns, cost;
};

static struct {
	struct policy *policy;
	const struct policy_limit *limit;
	const struct pacer_limiter *limiter;
	struct pacer_policy bin;
	struct plan plan;
	struct pacer_line lines[LINES_MAX] __attribute__((aligned(64)));
	struct pacer_throttle_state throttle[PACER_THROTTLES];
	struct pacer_throttle_lease lease[PACER_THROTTLES];
} now;

/* What a judgement changes: a policy of one limit has the first throttle at most. */
static struct pacer_line kept_lines[LINES_MAX];
static struct pacer_throttle_state kept_throttle[1];
static struct pacer_throttle_lease kept_lease[1];

static struct event event[KEYS][EVENTS_MAX];
static size_t events[KEYS];
static __u64 secret[2 * PACER_SECRETS];

static uint32_t judge(uint32_t key, uint32_t len, uint64_t now_ns)
{
	struct pacer_state state = {.table = {now.lines, (uint32_t)now.plan.lines},
				    .policy = &now.bin,
				    .secret = secret,
				    .throttle = now.throttle,
				    .lease = now.lease};
	struct pacer_walk walk = {.state = &state, .now_ns = now_ns};

	walk.pkt = (struct pacer_packet){
	    .family = PACER_FAMILY_4, .len_bytes = len, .vlan = PACER_VLAN_NONE};
	walk.pkt.key[PACER_WORD_SADDR] = 0x0a000001 + key;
	return judge_parsed(&walk);
}

static uint64_t when(uint32_t key, uint32_t len, uint64_t now_ns)
{
	struct pacer_state state = {.table = {now.lines, (uint32_t)now.plan.lines},
				    .policy = &now.bin,
				    .secret = secret,
				    .throttle = now.throttle,
				    .lease = now.lease};
	struct pacer_walk walk = {.state = &state, .now_ns = now_ns};

	walk.pkt = (struct pacer_packet){
	    .family = PACER_FAMILY_4, .len_bytes = len, .vlan = PACER_VLAN_NONE};
	walk.pkt.key[PACER_WORD_SADDR] = 0x0a000001 + key;
	return pacer_rule_when(&walk);
}

/* --- what was admitted ----------------------------------------------------------------------- */

/* Of one key, or of all where the limit has no key: what was admitted since then, and then. */
static uint64_t since(uint32_t key, uint64_t from_ns)
{
	uint64_t sum = 0;

	for (size_t i = events[key]; i && event[key][i - 1].time_ns >= from_ns; i--)
		sum += event[key][i - 1].cost;
	return sum;
}

static uint64_t before_ns(uint64_t now_ns, uint64_t by_ns)
{
	return now_ns > by_ns ? now_ns - by_ns : 0;
}

static uint64_t cost_of(uint32_t len)
{
	if (now.limiter->kind == PACER_LIMITER_WINDOW)
		return pacer_window_cost(&now.limiter->window, len);
	if (now.limiter->kind == PACER_LIMITER_RATE)
		return pacer_rate_cost(&now.limiter->rate, len);
	return 1;
}

/* In any window that ends now: at most burst and what the rate brings in its time. */
static bool rate_holds(uint32_t key, uint64_t now_ns)
{
	const struct policy_limit *l = now.limit;
	unsigned __int128 sum = 0;

	for (size_t i = events[key]; i; i--) {
		uint64_t over_ns = now_ns - event[key][i - 1].time_ns;

		sum += event[key][i - 1].cost;
		if (sum > l->burst &&
		    (sum - l->burst) * l->rate.per_ns > (unsigned __int128)over_ns * l->rate.amount)
			return false;
	}
	return true;
}

/* Under the same rate without rounding, but with 2 ns more for each packet: is it denied, too? */
static bool rate_denies(uint32_t key, uint64_t now_ns, uint64_t cost)
{
	const struct policy_limit *l = now.limit;
	unsigned __int128 full = 0; /* what is in the bucket, times per_ns, at the last event */
	uint64_t last_ns = 0;

	for (size_t i = 0; i < events[key]; i++) {
		unsigned __int128 out =
		    (unsigned __int128)(event[key][i].time_ns - last_ns) * l->rate.amount;

		full = full > out ? full - out : 0;
		full += (unsigned __int128)event[key][i].cost * l->rate.per_ns +
			2 * (unsigned __int128)l->rate.amount;
		last_ns = event[key][i].time_ns;
	}
	if ((unsigned __int128)(now_ns - last_ns) * l->rate.amount >= full)
		full = 0;
	else
		full -= (unsigned __int128)(now_ns - last_ns) * l->rate.amount;
	return full + (unsigned __int128)cost * l->rate.per_ns +
		   4 * (unsigned __int128)l->rate.amount >
	       (unsigned __int128)l->burst * l->rate.per_ns;
}

static void admitted(uint32_t key, uint64_t now_ns, uint32_t len, uint64_t cost)
{
	const struct policy_limit *l = now.limit;
	size_t n = events[key];

	if (l->kind == LIMIT_GAP)
		HOLDS(!n || now_ns - event[key][n - 1].time_ns >= l->gap_ns);
	event[key][events[key]++] = (struct event){
	    now_ns, l->kind == LIMIT_WINDOW && l->cost == PACER_COST_BYTES ? len : cost};
	if (l->kind == LIMIT_WINDOW)
		HOLDS(since(key, before_ns(now_ns, l->window_ns)) <= l->limit);
	if (l->kind == LIMIT_RATE)
		HOLDS(rate_holds(key, now_ns));
	if (l->kind == LIMIT_THROTTLE)
		HOLDS(since(key, before_ns(now_ns, l->throttle.cooldown_ns - 1)) <=
		      l->throttle.uses);
}

/* Bytes are counted in units, rounded up. */
static uint64_t units(uint32_t key, uint64_t from_ns)
{
	uint64_t sum = 0;

	for (size_t i = events[key]; i && event[key][i - 1].time_ns >= from_ns; i--)
		sum +=
		    now.limit->cost == PACER_COST_BYTES
			? pacer_window_cost(&now.limiter->window, (uint32_t)event[key][i - 1].cost)
			: event[key][i - 1].cost;
	return sum;
}

static void denied(uint32_t key, uint64_t now_ns, uint64_t cost)
{
	const struct policy_limit *l = now.limit;
	uint32_t k, recent = 0;

	switch (l->kind) {
	case LIMIT_GAP: /* cells are shared */
		for (k = 0; k < KEYS; k++)
			recent += events[k] &&
				  now_ns - event[k][events[k] - 1].time_ns < now.limiter->gap_ns;
		HOLDS(recent);
		break;
	case LIMIT_WINDOW: /* slots are whole numbers of ns, so that the ring may be a little longer
			    */
		HOLDS(now.limiter->window.ring_ns <=
		      l->window_ns + now.limiter->window.slot_ns + 2ull * now.limiter->window.ring);
		HOLDS(units(key, before_ns(now_ns, now.limiter->window.ring_ns) + 1) + cost >
		      now.limiter->window.limit);
		break;
	case LIMIT_RATE:
		HOLDS(rate_denies(key, now_ns, cost));
		break;
	case LIMIT_THROTTLE: /* what is on lease counts as used */
		HOLDS(since(key, before_ns(now_ns, l->throttle.max_cooldown_ns)) +
			  2 * l->throttle.threshold >=
		      l->throttle.uses);
	}
}

/* --- a run ------------------------------------------------------------------------------------ */

static int write_limit(struct fuzz_input *in, char *text, size_t size)
{
	uint64_t kind = fuzz_take(in, 1) % 5, n = 1 + fuzz_magnitude(in) % 100000;
	uint64_t ns = 1 + fuzz_magnitude(in) % 4000000000000, more = fuzz_magnitude(in);

	switch (kind) {
	case 0:
		return snprintf(text, size, "key: src, gap: %luns, rows: %lu", ns, 1 + more % 2);
	case 1:
		return snprintf(text, size, "key: src, packets: %lu, window: %luns, slots: %lu", n,
				ns, 1 + more % 60);
	case 2:
		return snprintf(text, size, "key: src, bytes: %lu, window: %luns, slots: %lu",
				n * (1 + more % 1500), ns, 1 + more % 60);
	case 3:
		return snprintf(text, size, "key: src, rate: %lu%s/s, burst: %lu%s", n,
				more & 1 ? "B" : "", 1 + more % 100000, more & 1 ? "B" : "");
	default:
		return snprintf(text, size,
				"key: all, uses: %lu, cooldown: %luns, max_cooldown: %luns, "
				"threshold: %lu",
				n, ns, ns + 1 + more % ns, 1 + more % n);
	}
}

static bool begin(struct fuzz_input *in)
{
	struct compile_host host = {0, 1, 1};
	char limit[200], text[400];
	struct policy_error error;
	int len;

	write_limit(in, limit, sizeof(limit));
	len = snprintf(text, sizeof(text),
		       "clock: exact\nmemory: 16K\nrules: [{name: a, limits: [{%s}]}]\n", limit);
	memset(now.lines, 0, sizeof(now.lines));
	memset(now.throttle, 0, sizeof(kept_throttle));
	memset(now.lease, 0, sizeof(kept_lease));
	memset(events, 0, sizeof(events));
	now.policy = policy_parse(text, (size_t)len, &error);
	if (!now.policy)
		return false;
	if (compile_policy(now.policy, NULL, &host, &now.bin, &now.plan, &error) ||
	    now.plan.lines > LINES_MAX) {
		policy_free(now.policy);
		return false;
	}
	now.limit = &now.policy->rule[0].limit[0];
	now.limiter = &now.bin.rule[0].limiter[0];
	for (size_t i = 0; i < 2 * PACER_SECRETS; i++)
		secret[i] = (i + 1) * 0x9e3779b97f4a7c15ull;
	return true;
}

/* What is denied until then is denied a moment before, and asking has changed nothing. */
static void check_when(uint32_t key, uint32_t len, uint64_t now_ns)
{
	uint64_t when_ns = when(key, len, now_ns);
	size_t bytes = now.plan.lines * sizeof(*now.lines);

	if (when_ns <= now_ns + 1 || when_ns == UINT64_MAX)
		return;
	memcpy(kept_lines, now.lines, bytes);
	memcpy(kept_throttle, now.throttle, sizeof(kept_throttle));
	memcpy(kept_lease, now.lease, sizeof(kept_lease));
	HOLDS(pacer_outcome_denied(judge(key, len, when_ns - 1)));
	memcpy(now.lines, kept_lines, bytes);
	memcpy(now.throttle, kept_throttle, sizeof(kept_throttle));
	memcpy(now.lease, kept_lease, sizeof(kept_lease));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	uint64_t now_ns = 1000000000;
	uint32_t asked = 0;

	if (!begin(&in))
		return 0;
	for (uint32_t i = 0; i < EVENTS_MAX && in.left; i++) {
		uint32_t what = (uint32_t)fuzz_take(&in, 1);
		uint32_t key = now.limit->kind == LIMIT_THROTTLE ? 0 : what % KEYS;
		uint32_t len = what & 0x40 ? 60 + (uint32_t)fuzz_take(&in, 2) % 9000 : 60;
		uint64_t cost = cost_of(len);
		enum pacer_reason reason;

		if (what & 0x80) /* else at the same moment */
			now_ns += fuzz_magnitude(&in) % 8000000000000;
		reason = pacer_outcome_reason(judge(key, len, now_ns));
		if (reason == PACER_ADMIT) {
			admitted(key, now_ns, len, cost);
			continue;
		}
		denied(key, now_ns, cost);
		if (asked++ < 4)
			check_when(key, len, now_ns);
	}
	policy_free(now.policy);
	return 0;
}
