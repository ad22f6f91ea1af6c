/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sequences of changes at random, of a pacer at work in a kernel made of memory: policies that are
 * applied, tried, confirmed and left to lapse, rules that deny or are gone for a while, other
 * secrets, and state that is saved and goes on after a restart or another boot, with packets in
 * between and within the grace periods. Of each kind of limit and each
 * key, no window admits more than the loosest of the policies that were in force in it would; and
 * once all is over, a key has all of its limit.
 *
 * A sequence is what its family, its clock and its seed make of it. One that fails says how it is
 * run again, alone, and is printed then. SEQUENCES=5000 runs so many of each instead of a few, from
 * the seed FROM on, and FAMILY=rates no others (`make sequences`).
 */
#include "paced.h"
#include "parsed.h"

#include <inttypes.h>
#include <math.h>
#include <sys/random.h>

#include "live/change.h"
#include "live/copies.h"
#include "live/restore.h"
#include "live/state_file.h"

#define SOURCES	 3u
#define CHANGES	 40u
#define UDP	 17u
#define LIMITS	 3u
#define SEEDS	 2u   /* of each family and clock, unless SEQUENCES says how many */
#define LEASED	 16u  /* throttles that a sequence has at a time, at most */
#define LOOKBACK 400u /* admissions of a key, of which windows of rates are looked at */
#define QUIET_NS (120 * SECOND)

/* --- time ---------------------------------------------------------------------------------------
 */

#define EPOCH_NS (1000 * SECOND)

/* The clock of packets begins anew with each boot. The oracle's and that of the day go on. */
static struct {
	uint32_t n;
	uint64_t before_ns; /* the oracle's clock when it was 0 */
	bool believed;	    /* the clock of the day */
} boot;

static uint64_t now_ns(void)
{
	return boot.before_ns + kernel_now_ns;
}

struct clocks clocks_read(void)
{
	struct clocks c = {.mono_ns = kernel_now_ns,
			   .boot_ns = kernel_now_ns,
			   .real_ns = EPOCH_NS + now_ns(),
			   .believed = boot.believed};

	snprintf(c.boot_id, sizeof(c.boot_id), "boot-%" PRIu32, boot.n);
	return c;
}

/* --- policies, as the oracle knows them ------------------------------------------------------- */

enum by { BY_SOURCE, BY_DESTINATION }; /* all packets have one destination */
enum says { ASKS, DENIES, GONE };      /* the rule asks its limits, denies, or is not there */
enum clock { EXACT, COARSE, EITHER };

struct limit {
	enum policy_limit_kind kind;
	enum by by;
	uint64_t value; /* packets, the burst, ms of the gap, uses */
	uint64_t speed; /* of a rate, a second */
	uint64_t window_ms, slots;
	uint64_t threshold; /* of uses */
};

struct variant {
	enum says says;
	bool coarse;
	uint32_t n;
	struct limit limit[LIMITS];
	uint64_t beside; /* slots of another rule's window, for whose state others make room */
};

static struct variant variant[2 * CHANGES + 2];
static uint32_t n_variants;

static const struct family {
	const char *name;
	uint32_t n_kinds;
	enum policy_limit_kind kind[4];
	uint32_t most; /* limits of a policy */
} families[] = {
    {"any", 4, {LIMIT_WINDOW, LIMIT_RATE, LIMIT_GAP, LIMIT_THROTTLE}, 3},
    {"rates", 1, {LIMIT_RATE}, 2},
    {"windows", 1, {LIMIT_WINDOW}, 2},
    {"uses", 1, {LIMIT_THROTTLE}, 1},
    {"gaps", 2, {LIMIT_GAP, LIMIT_WINDOW}, 3},
};

static const char *const clocks[] = {"exact", "coarse", "either"};

/* The sequence that is run. */
static struct {
	const struct family *family;
	enum clock clock;
	uint64_t seed;
	bool alone;   /* policies of one limit */
	bool keys;    /* of both keys */
	bool rests;   /* rules that deny, or are gone */
	bool rotates; /* other secrets */
	bool restarts;
	bool told, broken;
	bool lost; /* the state of what was */
} run;

static struct limit any_limit(void)
{
	static const uint64_t speed[] = {2, 10, 50, 250}, uses[] = {9, 50, 200, 1000};
	struct limit l = {.kind = run.family->kind[draw() % run.family->n_kinds]};

	l.by = run.keys && draw() % 3 == 0 ? BY_DESTINATION : BY_SOURCE;
	switch (l.kind) {
	case LIMIT_WINDOW: /* in narrow entries and in wide ones */
		l.value = draw() % 3 ? between(2, 20) : between(200, 320);
		l.slots = draw() % 2 ? 5 : 10;
		l.window_ms = draw() % 4 ? 1000 : 3000;
		break;
	case LIMIT_RATE: /* the coarse clock lets none of a burst of 1 through */
		l.value = draw() % 3 ? between(2, 30) : 3;
		l.speed = speed[draw() % ARRAY(speed)];
		break;
	case LIMIT_GAP:
		l.value = 10 * between(1, 6);
		break;
	default:
		l.value = uses[draw() % ARRAY(uses)];
		l.threshold = draw() % 2 ? l.value : (l.value + 9) / 10;
		l.by = BY_DESTINATION;
	}
	return l;
}

/* What secrets are drawn from is of the seed, too. */
ssize_t getrandom(void *to, size_t n, unsigned int flags)
{
	uint64_t *word = to;

	(void)flags;
	assert_int_equal(n % sizeof(*word), 0);
	for (size_t i = 0; i < n / sizeof(*word); i++)
		word[i] = draw();
	return (ssize_t)n;
}

/* Rates may stand beside each other; what else is of one key and time is looked at one at a time.
 */
static bool alike(const struct limit *a, const struct limit *b)
{
	return a->kind == b->kind && a->by == b->by && a->kind != LIMIT_RATE &&
	       a->window_ms == b->window_ms;
}

static bool has_alike(const struct variant *v)
{
	for (uint32_t i = 0; i < v->n; i++)
		for (uint32_t k = 0; k < i; k++)
			if (alike(&v->limit[i], &v->limit[k]))
				return true;
	return false;
}

/* One of the last few, with another value or a limit less. */
static void vary(struct variant *v)
{
	uint32_t back = (uint32_t)between(1, n_variants < 4 ? n_variants : 4);
	struct limit *at, with;

	*v = variant[n_variants - back];
	at = &v->limit[draw() % v->n];
	if (draw() % 2) {
		with = any_limit();
		if (with.kind == at->kind)
			*at = with;
	}
	if (v->n > 1 && draw() % 5 == 0)
		v->limit[0] = v->limit[--v->n];
}

static struct variant *any_variant(void)
{
	struct variant *v = &variant[n_variants];

	assert_true(n_variants < ARRAY(variant));
	if (n_variants && draw() % 3) {
		vary(v);
	} else {
		v->n = (uint32_t)between(1, run.family->most);
		for (uint32_t i = 0; i < v->n; i++)
			v->limit[i] = any_limit();
	}
	if (run.alone || has_alike(v))
		v->n = 1;
	v->says = run.rests && draw() % 5 == 0 ? DENIES + draw() % 2 : ASKS;
	v->coarse = run.clock == EITHER ? draw() % 2 : run.clock == COARSE;
	v->beside = between(2, 12);
	n_variants++;
	return v;
}

static void say_limit(const struct limit *l)
{
	const char *key = l->by == BY_SOURCE ? "src" : "dst";

	switch (l->kind) {
	case LIMIT_WINDOW:
		say("  - {key: %s, packets: %" PRIu64 ", window: %" PRIu64 "ms, slots: %" PRIu64
		    ", entries: 64}\n",
		    key, l->value, l->window_ms, l->slots);
		break;
	case LIMIT_RATE:
		say("  - {key: %s, rate: %" PRIu64 "/s, burst: %" PRIu64 ", entries: 64}\n", key,
		    l->speed, l->value);
		break;
	case LIMIT_GAP:
		say("  - {key: %s, gap: %" PRIu64 "ms}\n", key, l->value);
		break;
	default:
		say("  - {key: all, uses: %" PRIu64
		    ", cooldown: 1s, max_cooldown: 2s, threshold: %" PRIu64 "}\n",
		    l->value, l->threshold);
	}
}

/* Its number stands in the first line, so that a pacer says which one is in force. */
static const char *text_of(const struct variant *v)
{
	say_again();
	say("# %u\nmemory: 2M\nclock: %s\nrules:\n", (unsigned int)(v - variant),
	    v->coarse ? "coarse" : "exact");
	if (v->says == DENIES)
		say("- name: a\n  verdict: drop\n");
	if (v->says == ASKS) {
		say("- name: a\n  limits:\n");
		for (uint32_t i = 0; i < v->n; i++)
			say_limit(&v->limit[i]);
	}
	say("- name: b\n  match: {dport: 9}\n  limits:\n");
	say_limit(&(struct limit){
	    .kind = LIMIT_WINDOW, .value = 9, .window_ms = 1000, .slots = v->beside});
	return doc.s;
}

/* --- a pacer at work ------------------------------------------------------------------------ */

static struct pacer_throttle_lease lease[KERNEL_CPUS][PACER_THROTTLES];

static uint32_t in_force(void)
{
	return (uint32_t)strtoul(copies[copies_in_force(&pacer)].text + 2, NULL, 10);
}

/* The tools read and write leases by throttle, packets by CPU. */
static void put_leases(void)
{
	struct pacer_throttle_lease value[KERNEL_CPUS];

	for (uint32_t i = 0; i < LEASED; i++) {
		for (uint32_t cpu = 0; cpu < KERNEL_CPUS; cpu++)
			value[cpu] = lease[cpu][i];
		assert_int_equal(bpf_map_update_elem(KERNEL_LEASES, &i, value, 0), 0);
	}
}

static void take_leases(void)
{
	struct pacer_throttle_lease value[KERNEL_CPUS];

	for (uint32_t i = 0; i < LEASED; i++) {
		assert_int_equal(bpf_map_lookup_elem(KERNEL_LEASES, &i, value), 0);
		for (uint32_t cpu = 0; cpu < KERNEL_CPUS; cpu++)
			lease[cpu][i] = value[cpu];
	}
}

static void load_first(const struct variant *v)
{
	put_on(text_of(v));
	for (uint32_t i = 0; i < 2 * PACER_SECRETS; i++)
		control.secret[i / PACER_SECRETS][i % PACER_SECRETS] = draw();
	memset(lease, 0, sizeof(lease));
	put_leases();
}

/* --- what was done, and what was admitted --------------------------------------------------------
 */

static struct {
	uint64_t at_ns;
	uint32_t variant;
} since[64 * CHANGES]; /* from when on each policy was in force, as packets could see it */
static uint32_t n_since;

static struct {
	uint64_t at_ns;
	uint32_t source;
} admitted[1 << 16];
static uint32_t n_admitted;

static void look(void)
{
	uint32_t now_in_force = in_force();

	if (n_since && since[n_since - 1].variant == now_in_force)
		return;
	assert_true(n_since < ARRAY(since));
	since[n_since].at_ns = now_ns();
	since[n_since++].variant = now_in_force;
}

__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...)
{
	va_list args;

	if (!run.told)
		return;
	va_start(args, format);
	printf("%.6f ", (double)now_ns() / 1e9);
	vprintf(format, args);
	va_end(args);
}

static const char *name_of_run(void)
{
	static char name[64];

	snprintf(name, sizeof(name), "%s %s %" PRIu64, run.family->name, clocks[run.clock],
		 run.seed);
	return name;
}

/* Of a limit of this kind and key, a window from the i-th admission on has n, and may have `most`.
 */
static void compare(const char *kind, uint32_t i, uint64_t n, double most)
{
	if (run.broken || (double)n <= most + 1e-6)
		return;
	run.broken = true;
	printf("%s: %" PRIu64 " from %.6f to %.6f s, and policies in force allow %.2f\n", kind, n,
	       (double)admitted[i].at_ns / 1e9, (double)now_ns() / 1e9, most);
	printf("again, alone: SEQUENCE='%s' build/unit/test_sequences\n", name_of_run());
}

/* --- the oracle
 * ----------------------------------------------------------------------------------- */

/* What a policy's limits of one kind and key admit in so long; INFINITY: it has none. */
struct asked {
	enum policy_limit_kind kind;
	enum by by;
	uint64_t window_ms; /* of windows of this length alone */
	uint64_t span_ns;
};

static double most_of_limit(const struct limit *l, uint64_t span_ns)
{
	switch (l->kind) {
	case LIMIT_RATE:
		return (double)l->value + (double)l->speed * (double)span_ns / 1e9;
	case LIMIT_GAP:
		return 1 + (double)(span_ns / (l->value * MS));
	default:
		return (double)l->value;
	}
}

static double most_of(const struct variant *v, const struct asked *q)
{
	double most = INFINITY;

	if (v->says != ASKS)
		return 0;
	for (uint32_t i = 0; i < v->n; i++) {
		const struct limit *l = &v->limit[i];

		if (l->kind == q->kind && l->by == q->by && l->window_ms == q->window_ms)
			most = fmin(most, most_of_limit(l, q->span_ns));
	}
	return most;
}

/* For so long all of a policy's rates remember what they let through. */
static uint64_t memory_of(const struct variant *v)
{
	uint64_t burst_ns = QUIET_NS;

	for (uint32_t i = 0; i < v->n; i++)
		if (v->limit[i].kind == LIMIT_RATE &&
		    burst_ns > v->limit[i].value * SECOND / v->limit[i].speed)
			burst_ns = v->limit[i].value * SECOND / v->limit[i].speed;
	return PACER_IDLE_SLACK_NS + burst_ns;
}

/*
 * ... and the loosest of those that were in force since then. A rate is forgotten where its rule
 * has denied for longer than a quarter of a second and the shortest of the bursts before: as
 * docs/limits.md says, what it admitted by then may be in such a window, too.
 */
static double most_since(uint64_t from_ns, const struct asked *q)
{
	uint64_t end_ns = now_ns(), denied_ns = 0;
	double most = 0, forgotten = 0;
	bool long_ago = false;

	for (uint32_t i = n_since; i-- && most < INFINITY;) {
		const struct variant *v = &variant[since[i].variant];

		most = fmax(most, most_of(v, q));
		if (v->says != ASKS)
			denied_ns += end_ns - since[i].at_ns;
		else if (q->kind == LIMIT_RATE && denied_ns > memory_of(v))
			long_ago = true;
		else
			denied_ns = 0;
		if (long_ago)
			forgotten = fmax(forgotten, most_of(v, q));
		end_ns = since[i].at_ns;
		if (end_ns < from_ns)
			break;
	}
	return most + forgotten;
}

static bool counts(const struct asked *q, uint32_t i)
{
	return q->by == BY_DESTINATION || admitted[i].source == admitted[n_admitted - 1].source;
}

/* The window of this length that ends now. One of uses is open where it begins. */
static void check_window(const char *kind, struct asked q, uint64_t length_ns)
{
	uint64_t n = 0;
	uint32_t first = n_admitted - 1;

	if (most_since(now_ns(), &q) == INFINITY)
		return;
	for (uint32_t i = n_admitted; i-- && now_ns() - admitted[i].at_ns <= length_ns;)
		if (counts(&q, i)) {
			n++;
			first = i;
		}
	compare(kind, first, n, most_since(admitted[first].at_ns, &q));
}

/* The time since the key's packet before this. */
static void check_gap(struct asked q)
{
	uint32_t i = n_admitted - 1;

	while (i && !counts(&q, --i))
		;
	if (i == n_admitted - 1 || !counts(&q, i))
		return;
	q.span_ns = now_ns() - admitted[i].at_ns;
	compare("gap", i, 2, most_since(admitted[i].at_ns, &q));
}

/* Windows of all lengths that end now. */
static void check_rate(struct asked q)
{
	uint64_t n = 0;

	for (uint32_t i = n_admitted; i-- && n < LOOKBACK && !run.broken;) {
		double most;

		if (!counts(&q, i))
			continue;
		q.span_ns = now_ns() - admitted[i].at_ns;
		most = most_since(admitted[i].at_ns, &q);
		if (most == INFINITY) /* and of all that are longer */
			return;
		compare("rate", i, ++n, most);
	}
}

static void check_admission(void)
{
	static const uint64_t windows_ms[] = {1000, 3000};

	for (enum by by = BY_SOURCE; by <= BY_DESTINATION; by++) {
		for (uint32_t i = 0; i < ARRAY(windows_ms); i++)
			check_window("window", (struct asked){LIMIT_WINDOW, by, windows_ms[i], 0},
				     windows_ms[i] * MS);
		check_gap((struct asked){LIMIT_GAP, by, 0, 0});
		check_rate((struct asked){LIMIT_RATE, by, 0, 0});
	}
	check_window("uses", (struct asked){LIMIT_THROTTLE, BY_DESTINATION, 0, 0}, SECOND - 1);
}

/* --- packets
 * -------------------------------------------------------------------------------------- */

static bool packet(uint32_t cpu, uint32_t source)
{
	struct pacer_policy *p = &copies[copies_in_force(&pacer)].policy;
	bool exact = p->flags & PACER_CLOCK_EXACT;
	struct pacer_state state = {.table = {pacer.lines, (uint32_t)pacer.n_lines},
				    .policy = p,
				    .secret = (const __u64 *)control.secret,
				    .throttle = throttles,
				    .lease = lease[cpu]};
	struct pacer_walk walk = {.state = &state,
				  .pkt = {.key = {[PACER_WORD_SADDR] = 0x0a000001 + source,
						  [PACER_WORD_DADDR] = 0x0a000100,
						  [PACER_WORD_PORTS] = 5u << 16 | 7,
						  [PACER_WORD_META] = UDP},
					  .len_bytes = 100,
					  .vlan = PACER_VLAN_NONE,
					  .family = PACER_FAMILY_4,
					  .proto = UDP},
				  .now_ns = exact ? kernel_now_ns
						  : kernel_now_ns - kernel_now_ns % RESOLUTION};

	look();
	if (variant[in_force()].says == GONE) /* no rule's packet */
		return false;
	if (pacer_outcome_reason(judge_parsed(&walk)) != PACER_ADMIT)
		return false;
	assert_true(n_admitted < ARRAY(admitted));
	admitted[n_admitted].at_ns = now_ns();
	admitted[n_admitted++].source = source;
	if (!run.broken)
		check_admission();
	return true;
}

/* One by one and in bursts, dense and after silence. */
static void traffic(uint64_t for_ns)
{
	uint64_t end_ns = kernel_now_ns + for_ns;

	while (kernel_now_ns < end_ns) {
		uint64_t burst = draw() % 4 ? 1 : between(1, 40);
		uint32_t source = (uint32_t)between(0, SOURCES - 1);
		uint32_t cpu = (uint32_t)between(0, KERNEL_CPUS - 1);

		kernel_now_ns += draw() % 8 ? between(MS / 20, 4 * MS) : between(MS, 300 * MS);
		while (burst-- && packet(cpu, source))
			;
	}
}

static void traffic_meanwhile(void)
{
	take_leases();
	traffic(draw() % 3 ? between(1, 3 * MS) : between(MS, 600 * MS));
	put_leases();
}

/* --- changes
 * -------------------------------------------------------------------------------------- */

static const char *what_drains(const struct pacer_limiter *t)
{
	static char text[64];

	text[0] = 0;
	if (t->until_ns)
		snprintf(text, sizeof(text), " until %.6f", (double)t->until_ns / 1e9);
	return text;
}

/* What a sequence that is told has made of a pacer. */
static void tell_limits(uint32_t copy)
{
	const struct pacer_policy *p = &copies[copy].policy;

	tell("in copy %" PRIu32 "%s\n", copy, copy == copies_in_force(&pacer) ? ", in force" : "");
	for (size_t r = 0; run.told && r < PACER_RULES_MAX; r++)
		for (size_t k = 0; k < p->rule[r].n_limiters; k++) {
			const struct pacer_limiter *t = &p->rule[r].limiter[k];

			if (p->rule[r].id == compile_name_id("b"))
				continue;
			printf("  %s %" PRIu64 " at line %" PRIu32 ", secret %u, gap %.3f%s",
			       kind_of_limiter(t)->name, kind_of_limiter(t)->value(t), t->base,
			       t->secret, (double)t->gap_ns / 1e9, what_drains(t));
			if (t->kind == PACER_LIMITER_RATE && t->rate.begin_ns)
				printf(", begins %.6f", (double)t->rate.begin_ns / 1e9);
			printf("\n");
		}
}

static void tell_outcome(const char *what, int result)
{
	tell("%s: %s\n", what, result < 0 ? error.text : "done");
	tell_limits(0);
	tell_limits(1);
}

static void apply_any(void)
{
	const char *text = text_of(any_variant());
	uint64_t confirm_ns = draw() % 3 ? 0 : between(50, 2500) * MS;

	tell("%s for %.3f s\n%s", confirm_ns ? "tried" : "applied", (double)confirm_ns / 1e9, text);
	tell_outcome("apply", change_apply(&pacer, text, NULL, confirm_ns, &plan, &error));
}

/* False: the trial goes on. */
static bool end_trial(void)
{
	if (draw() % 2)
		tell_outcome("confirm", change_confirm(&pacer, &error));
	else if (draw() % 2)
		traffic(copies_pending_ns(&pacer) + between(1, 100 * MS));
	put_leases();
	return !copies_pending_ns(&pacer);
}

static void change_any(void)
{
	look();
	put_leases();
	grace_hook = draw() % 2 ? traffic_meanwhile : NULL;
	if (copies_pending_ns(&pacer) && !end_trial())
		return;
	if (run.rotates && draw() % 4 == 0)
		tell_outcome("rotate", change_rotate(&pacer, &plan, &error));
	else
		apply_any();
	grace_hook = NULL;
	take_leases();
	look();
}

/* --- restarts ----------------------------------------------------------------------------------
 */

static char saved[] = "/tmp/pacer-sequences-XXXXXX";

static void save_and_read(struct state *s)
{
	struct state taken;
	uint64_t bytes;

	kernel_counters_new(KERNEL_COUNTS, KERNEL_CPUS * sizeof(struct pacer_counters),
			    PACER_COUNTERS_MAX);
	kernel_counters_new(KERNEL_SET_HITS, KERNEL_CPUS * sizeof(struct pacer_set_count),
			    PACER_SET_COUNTERS);
	pacer.set_hits_fd = KERNEL_SET_HITS;
	assert_int_equal(state_init(&taken, pacer.n_lines), 0);
	kernel_no_lock = EMFILE; /* who takes it has the lock, and lets it go when all is taken */
	if (state_take_all(&pacer, &taken, &error))
		fail_msg("%s: %s", name_of_run(), error.text);
	kernel_no_lock = 0;
	if (state_write(saved, &taken, &bytes, &error) || state_read(saved, s, &error))
		fail_msg("%s: %s", name_of_run(), error.text);
	state_free(&taken);
}

/* The machine is off for a while, or only the pacer is. */
static void time_off(bool booted)
{
	uint64_t off_ns = between(0, draw() % 2 ? 300 * MS : 5 * SECOND);

	if (!booted) {
		kernel_now_ns += off_ns;
		return;
	}
	boot.before_ns = now_ns() + off_ns;
	boot.n++;
	/* No packet comes at time 0, which is none, of the coarse clock either. */
	kernel_now_ns = between(RESOLUTION, draw() % 2 ? 100 * MS : 20 * SECOND);
}

/* A new pacer that begins with it. */
static void go_on(const struct state *s, const struct pacer_policy *bin, const char *text)
{
	(void)end(NULL);
	put_on_as(bin, text, s->n_lines);
	control.secret_ready = s->secret_ready;
	memcpy(control.secret, s->secret, sizeof(control.secret));
	memcpy(pacer.lines, s->lines, s->n_lines * sizeof(*s->lines));
	memcpy(throttles, s->throttle, PACER_THROTTLES * sizeof(*throttles));
	memset(lease, 0, sizeof(lease));
	put_leases();
}

/* Saved, and loaded again with what was saved: as the policy is, or another. */
static void restart(void)
{
	static struct pacer_policy bin;
	struct state s;
	struct restored what;
	struct policy *policy;
	bool booted = draw() % 2;
	const char *text = text_of(draw() % 3 ? any_variant() : &variant[in_force()]);
	struct clocks at;
	int result;

	look();
	put_leases();
	save_and_read(&s);
	time_off(booted);
	host.now_ns = kernel_now_ns;
	at = clocks_read();
	policy = parse(text);
	result = restore_plan(&s, policy, &at, &host, &bin, &plan, &what, &error);
	policy_free(policy);
	tell("%s, and restored\n%s", booted ? "booted" : "taken off", text);
	tell("restore: %s\n", result ? error.text : "done");
	if (result) /* its policy cannot take the state over: nothing is known of what was before */
		run.lost = true;
	else
		go_on(&s, &bin, text);
	state_free(&s);
	look();
	tell_limits(0);
}

/* --- sequences
 * ------------------------------------------------------------------------------------ */

/* After a long silence, all of a limit is there. */
static void check_rest(void)
{
	struct variant *v = any_variant();
	uint64_t n = 0, least;

	v->says = ASKS;
	v->n = 1;
	kernel_now_ns += copies_pending_ns(&pacer) + QUIET_NS;
	put_leases();
	if (change_apply(&pacer, text_of(v), NULL, 0, &plan, &error))
		fail_msg("%s: after a silence: %s", name_of_run(), error.text);
	take_leases();
	kernel_now_ns += QUIET_NS;
	while (n < v->limit[0].value && packet(0, 0))
		n++;
	least = v->limit[0].kind == LIMIT_GAP ? 1 : v->limit[0].value;
	if (v->coarse && v->limit[0].kind == LIMIT_RATE) /* it is a tick shorter */
		least = 0;
	if (n >= least || run.broken) /* by a window that it passed */
		return;
	run.broken = true;
	printf("%s: %" PRIu64 " of %" PRIu64 " are there after a silence\n", name_of_run(), n,
	       least);
}

/* True: it broke no limit. */
static bool sequence(const struct family *family, enum clock clock, uint64_t seed, bool told)
{
	memset(&run, 0, sizeof(run));
	run.family = family;
	run.clock = clock;
	run.seed = seed;
	run.told = told;
	oracle_seed(seed);
	run.alone = draw() % 4 == 0;
	run.keys = draw() % 4 == 0;
	run.rests = draw() % 4 != 0;
	run.rotates = draw() % 2;
	run.restarts = draw() % 2;
	boot.n = 0;
	boot.before_ns = 0;
	boot.believed = draw() % 2;
	n_variants = n_since = n_admitted = 0;
	any_variant()->says = ASKS;
	load_first(&variant[0]);
	for (uint32_t i = 0; i < CHANGES && !run.broken && !run.lost; i++) {
		traffic(between(MS, draw() % 3 ? 800 * MS : 5 * SECOND));
		if (run.restarts && draw() % 4 == 0)
			restart();
		else
			change_any();
	}
	if (!run.broken && !run.lost)
		check_rest();
	(void)end(NULL);
	return !run.broken;
}

/* One that broke a limit once can be run again: all that is random in it comes from its seed. */
static void test_again(void **state)
{
	for (uint64_t seed = 1; seed <= 4; seed++) {
		uint64_t secret[2][PACER_SECRETS], ended_ns;
		uint32_t n;

		(void)sequence(*state, EXACT, seed, false);
		memcpy(secret, control.secret, sizeof(secret));
		ended_ns = now_ns();
		n = n_admitted;
		(void)sequence(*state, EXACT, seed, false);
		assert_memory_equal(secret, control.secret, sizeof(secret));
		assert_int_equal(ended_ns, now_ns());
		assert_int_equal(n, n_admitted);
	}
}

/* Sequences in which a key once had too much. */
static void test_that_were_broken(void **unused)
{
	(void)unused;
	/* a burst is raised that would still build if it had been as large */
	assert_true(sequence(&families[0], EXACT, 77698, false));
	assert_true(sequence(&families[0], COARSE, 77996, false));
	assert_true(sequence(&families[1], EXACT, 77613, false));
	/* a burst is lowered while it builds, and raised again */
	assert_true(sequence(&families[0], EITHER, 78010, false));
	assert_true(sequence(&families[1], EXACT, 78186, false));
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
	const char *value = getenv(name);

	return value ? strtoull(value, NULL, 10) : otherwise;
}

static void test_sequences(void **state)
{
	const struct family *family = *state;
	uint64_t from = from_environment("FROM", 1), n = from_environment("SEQUENCES", SEEDS);
	uint32_t broken = 0;

	for (enum clock clock = EXACT; clock <= EITHER; clock++)
		for (uint64_t seed = from; seed < from + n; seed++)
			broken += !sequence(family, clock, seed, false);
	assert_int_equal(broken, 0);
}

static int run_again(const char *which)
{
	char family[16], clock[16];
	uint64_t seed;

	if (sscanf(which, "%15s %15s %" SCNu64, family, clock, &seed) != 3)
		return 2;
	for (size_t f = 0; f < ARRAY(families); f++)
		for (enum clock c = EXACT; c <= EITHER; c++)
			if (!strcmp(family, families[f].name) && !strcmp(clock, clocks[c]))
				return !sequence(&families[f], c, seed, true);
	return 2;
}

#define CASE(f)                                                                    \
	{                                                                          \
		families[f].name, test_sequences, NULL, NULL, (void *)&families[f] \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {CASE(0),
					   CASE(1),
					   CASE(2),
					   CASE(3),
					   CASE(4),
					   {"again", test_again, NULL, NULL, (void *)&families[0]},
					   cmocka_unit_test(test_that_were_broken)};
	int file = mkstemp(saved), result;

	if (file < 0)
		return 2;
	close(file);
	setvbuf(stdout, NULL, _IOLBF, 0);
	cmocka_set_test_filter(getenv("FAMILY"));
	result = getenv("SEQUENCE") ? run_again(getenv("SEQUENCE"))
				    : cmocka_run_group_tests(tests, NULL, NULL);
	unlink(saved);
	return result;
}
