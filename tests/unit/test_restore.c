/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Saved state: taken from a pacer made of memory, written, read, put on another clock and gone on
 * with, over boots that are made up. Exact lists of what was admitted, on a clock that no boot
 * stops, say that no limit is passed, and that what is denied was denied for a reason.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "applied.h"
#include "calls.h"
#include "kernel.h"
#include "pages.h"
#include "starved.h"
#include "stays.h"

#include "live/allow_maps.h"
#include "live/freeze.h"
#include "live/host.h"
#include "live/restore.h"
#include "live/state_file.h"
#include "path.h"
#include "plan/carry.h"

#define KEYS	   6
#define CPUS	   2
#define OLD_MAX	   4
#define EVENTS_MAX 40000

/* --- a pacer --------------------------------------------------------------------------------- */

static struct attached pacer;
static struct pacer_control control;
static struct pacer_copy *copies;
static struct pacer_throttle_lease lease[CPUS][PACER_THROTTLES];
static struct plan plan;
static char path[64];

/* What goes on from boot to boot: the sum of what is certain to have passed. */
static uint64_t base_ns; /* certain time when the boot's clock was 0 */
static uint64_t boot;	 /* which */

static uint64_t certain(void)
{
	return base_ns + kernel_now_ns;
}

static struct clocks clocks_now(void)
{
	struct clocks c = {.mono_ns = kernel_now_ns,
			   .boot_ns = kernel_now_ns,
			   .real_ns = 1000 * SECOND,
			   .believed = 1};

	snprintf(c.boot_id, sizeof(c.boot_id), "boot-%llu", (unsigned long long)boot);
	return c;
}

static void (*clocks_hook)(void); /* befalls when all has been copied */
static bool no_boot;

struct clocks clocks_read(void)
{
	struct clocks c = clocks_now();

	if (clocks_hook)
		clocks_hook();
	if (no_boot)
		c.boot_id[0] = 0;
	return c;
}

static bool no_room; /* for more lines */

void *mremap(void *at, size_t was, size_t n, int flags, ...)
{
	errno = ENOMEM;
	return no_room ? MAP_FAILED : (void *)__real_syscall(SYS_mremap, at, was, n, flags);
}

static void make_counts(void)
{
	kernel_counters_new(KERNEL_COUNTS, KERNEL_CPUS * sizeof(struct pacer_counters),
			    PACER_COUNTERS_MAX);
	kernel_counters_new(KERNEL_SET_HITS, KERNEL_CPUS * sizeof(struct pacer_set_count),
			    PACER_SET_COUNTERS);
	kernel_map_new(KERNEL_ALLOW4, sizeof(struct pacer_allow4),
		       sizeof(struct pacer_allow_value));
	kernel_map_new(KERNEL_ALLOW6, sizeof(struct pacer_allow6),
		       sizeof(struct pacer_allow_value));
}

static struct compile_host host_now(void)
{
	return (struct compile_host){RESOLUTION, kernel_now_ns, CPUS};
}

static void attach(const char *text, uint64_t n_lines)
{
	copies = pages_new(2 * sizeof(*copies));
	memcpy(copies[0].text, text, strlen(text));
	control = (struct pacer_control){.resolution_ns = RESOLUTION,
					 .secret_ready = PACER_SECRET_OF_TOOLS};
	for (size_t i = 0; i < PACER_SECRETS; i++)
		control.secret[0][i] = draw();
	pacer = (struct attached){.ifname = "eth0",
				  .counts_fd = KERNEL_COUNTS,
				  .set_hits_fd = KERNEL_SET_HITS,
				  .allow4_fd = KERNEL_ALLOW4,
				  .allow6_fd = KERNEL_ALLOW6,
				  .control = &control,
				  .copy = copies,
				  .n_lines = n_lines};
	pacer.throttle = pages_new(PACER_THROTTLES * sizeof(*pacer.throttle));
	pacer.lines = pages_new(n_lines * sizeof(struct pacer_line));
	memset(lease, 0, sizeof(lease));
}

static void detach(void)
{
	pages_free(copies, 2 * sizeof(*copies));
	pages_free(pacer.throttle, PACER_THROTTLES * sizeof(*pacer.throttle));
	pages_free(pacer.lines, pacer.n_lines * sizeof(struct pacer_line));
	copies = NULL;
	pacer.lines = NULL;
	pacer.throttle = NULL;
}

static void begin(const char *text)
{
	struct compile_host host_of = host_now();
	struct policy *policy = parse(text);

	make_counts();
	attach(text, policy->memory_bytes / sizeof(struct pacer_line));
	if (compile_policy(policy, NULL, &host_of, &copies[0].policy, &plan, &error))
		fail_msg("%d: %s\n%s", error.line, error.text, text);
	policy_free(policy);
}

static enum pacer_reason judge(uint32_t key, uint32_t cpu)
{
	struct pacer_state state = {.table = {pacer.lines, (uint32_t)pacer.n_lines},
				    .policy = &copies[0].policy,
				    .secret = control.secret[0],
				    .throttle = pacer.throttle,
				    .lease = lease[cpu]};
	struct pacer_walk walk = {.state = &state, .now_ns = kernel_now_ns};

	walk.pkt = (struct pacer_packet){.family = PACER_FAMILY_4, .proto = 17, .len_bytes = 100};
	walk.pkt.key[PACER_WORD_SADDR] = 0x0a000000 + key;
	return pacer_outcome_reason(pacer_judge(&walk));
}

/* Taken, written, read: as the tools do it. */
static void save_and_read(struct state *s)
{
	struct state taken;
	struct stat st;
	uint64_t bytes;

	assert_int_equal(state_init(&taken, pacer.n_lines), 0);
	kernel_no_lock = EMFILE; /* who takes it has the lock, and lets it go when all is taken */
	if (state_take_all(&pacer, &taken, &error))
		fail_msg("%s", error.text);
	kernel_no_lock = 0;
	taken.clocks = clocks_now();
	if (state_write(path, &taken, &bytes, &error))
		fail_msg("%s", error.text);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(st.st_size, bytes);
	if (state_read(path, s, &error))
		fail_msg("%s", error.text);
	assert_memory_equal(s->lines, taken.lines, s->n_lines * sizeof(*s->lines));
	state_free(&taken);
}

/* A new pacer with that state. False: the policy cannot go on with it. */
static bool go_on(struct state *s, const char *text, struct restored *what)
{
	struct compile_host host_of = host_now();
	struct clocks at = clocks_now();
	struct policy *policy = parse(text);
	static struct pacer_policy bin;
	bool done = !restore_plan(s, policy, &at, &host_of, &bin, &plan, what, &error);

	policy_free(policy);
	if (!done)
		return false;
	detach();
	attach(text, s->n_lines);
	copies[0].policy = bin;
	memcpy(control.secret, s->secret, sizeof(control.secret));
	memcpy(pacer.lines, s->lines, s->n_lines * sizeof(*s->lines));
	memcpy(pacer.throttle, s->throttle, PACER_THROTTLES * sizeof(*s->throttle));
	return true;
}

/* --- the oracle ------------------------------------------------------------------------------ */

enum { WINDOW, GAP, RATE, USES, KINDS };

struct limit {
	uint64_t amount,
	    ns;		/* packets in a window, a gap, a burst at one in ns, uses in a cooldown */
	uint64_t slots; /* of the window; 0: there is no such limit */
};

struct rules {
	struct limit limit[KINDS];
	uint64_t ban_ns;
	uint64_t since; /* certain time from which it is in force */
	uint64_t until; /* 0: in force; else since when not */
};

static struct {
	uint64_t at;
	uint32_t key;
} events[EVENTS_MAX];
static size_t n_events;
static struct rules in_force, old[OLD_MAX];
static size_t n_old;
static uint64_t banned_until[KEYS];
static uint64_t booted[64]; /* certain times of boots */
static size_t n_boots;
static unsigned int changed;

static uint64_t admitted(uint32_t key, uint64_t from, uint64_t to)
{
	uint64_t n = 0;

	for (size_t i = n_events; i-- > 0 && events[i].at >= from;)
		n += (key == KEYS || events[i].key == key) && events[i].at <= to;
	return n;
}

static uint64_t back(uint64_t at, uint64_t ns)
{
	return at > ns ? at - ns : 0;
}

/* Of the key, one more than fits: GCRA, of all that was admitted since `since`. */
static bool over_rate(const struct limit *l, uint32_t key, uint64_t since, uint64_t now_at)
{
	uint64_t tat = 0;

	for (size_t i = 0; i < n_events; i++)
		if (events[i].key == key && events[i].at >= since)
			tat = (tat > events[i].at ? tat : events[i].at) + l->ns;
	return (tat > now_at ? tat : now_at) + l->ns - now_at > l->amount * l->ns;
}

/* Would the limit be passed by one more, where a window must have begun before `before`? */
static bool over(const struct rules *r, int kind, uint32_t key, uint64_t now_at, uint64_t before)
{
	const struct limit *l = &r->limit[kind];
	uint64_t from;

	if (!l->slots)
		return false;
	if (kind == RATE)
		return now_at < before && over_rate(l, key, r->since, now_at);
	if (back(now_at, l->ns) >= before)
		return false;
	from = back(now_at, l->ns) + (kind != WINDOW);
	from = from > r->since ? from : r->since;
	switch (kind) {
	case WINDOW:
		return admitted(key, from, now_at) >= l->amount;
	case GAP:
		return admitted(key, from, now_at) > 0;
	case USES:
		return admitted(KEYS, from, now_at) >= l->amount;
	}
	return false;
}

static void must_not_be_over(uint32_t key, uint64_t now_at)
{
	for (int kind = 0; kind < KINDS; kind++) {
		if (over(&in_force, kind, key, now_at, UINT64_MAX))
			fail_msg("kind %d: passed at %llu, key %u", kind,
				 (unsigned long long)now_at, key);
		for (size_t i = 0; i < n_old; i++)
			if (over(&old[i], kind, key, now_at, old[i].until))
				fail_msg("kind %d: the one before is passed at %llu", kind,
					 (unsigned long long)now_at);
	}
	if (now_at < banned_until[key])
		fail_msg("key %u is let through, %llu ns before its ban ends", key,
			 (unsigned long long)(banned_until[key] - now_at));
}

/* Boots after `from`: what each may have made later. */
static uint64_t boots_since(uint64_t from)
{
	uint64_t n = 0;

	for (size_t i = 0; i < n_boots; i++)
		n += booted[i] >= from;
	return n;
}

/* In force without another before it, is the denial within the bounds that carry.h states? */
static void must_be_owed(enum pacer_reason reason, uint32_t key, uint64_t now_at)
{
	const struct limit *w = &in_force.limit[WINDOW], *g = &in_force.limit[GAP];
	uint64_t slot = w->slots ? w->ns / w->slots + 1 : 0, from;

	switch (reason) {
	case PACER_DENY_WINDOW:
		from = back(now_at, w->ns + slot + slot * boots_since(back(now_at, 2 * w->ns)));
		assert_true(admitted(key, from, now_at) >= w->amount);
		break;
	case PACER_DENY_GAP:
		from = back(now_at, g->ns + g->ns / 16);
		assert_true(admitted(key, from, now_at) > 0 || boots_since(from) > 0);
		break;
	case PACER_DENY_RATE:
		assert_true(over_rate(&in_force.limit[RATE], key, 0, now_at));
		break;
	case PACER_DENY_BAN:
		assert_true(now_at < banned_until[key]);
		break;
	default:
		break;
	}
}

/* --- random runs ----------------------------------------------------------------------------- */

static const uint64_t spans[] = {20 * MS, 100 * MS, 1000 * MS, 7 * SECOND, 60 * SECOND};
static const uint64_t rates[] = {1, 2, 5, 10, 20, 100, 1000};
static const uint64_t slots[] = {1, 2, 5, 10, 20, 40};

/* A policy of one rule: its text is in doc, its limits are in in_force. */
static void random_rules(uint32_t of)
{
	struct rules r = {.ban_ns = draw() % 3 || of == 8 ? 0 : spans[draw() % ARRAY(spans)]};
	struct limit *l = r.limit;

	say_again();
	say("clock: exact\nmemory: 2Mi\nbans: 64\nrules:\n- name: a\n  limits:\n");
	if (of & 1) {
		l[WINDOW] = (struct limit){between(1, 300), spans[draw() % ARRAY(spans)],
					   slots[draw() % ARRAY(slots)]};
		say("  - {key: 'src/32,64', packets: %llu, window: %llums, slots: %llu, entries: "
		    "4k}\n",
		    (unsigned long long)l[WINDOW].amount, (unsigned long long)(l[WINDOW].ns / MS),
		    (unsigned long long)l[WINDOW].slots);
	}
	if (of & 2) {
		l[GAP] = (struct limit){1, spans[draw() % ARRAY(spans)] / 10, 1};
		say("  - {key: 'src/32,64', gap: %lluus%s}\n",
		    (unsigned long long)(l[GAP].ns / 1000), "");
	}
	if (of & 4) {
		l[RATE] = (struct limit){between(1, 30), SECOND / rates[draw() % ARRAY(rates)], 1};
		say("  - {key: 'src/32,64', rate: %llu/s, burst: %llu, entries: 4k}\n",
		    (unsigned long long)(SECOND / l[RATE].ns), (unsigned long long)l[RATE].amount);
	}
	if (of & 8) {
		l[USES] = (struct limit){between(4, 200), spans[draw() % ARRAY(spans)], 1};
		say("  - {key: all, uses: %llu, cooldown: %llums, max_cooldown: %llums, threshold: "
		    "%llu}\n",
		    (unsigned long long)l[USES].amount, (unsigned long long)(l[USES].ns / MS),
		    (unsigned long long)(l[USES].ns * 2 / MS),
		    (unsigned long long)(l[USES].amount / 4 + 1));
	}
	if (r.ban_ns)
		say("  ban: %llums\n", (unsigned long long)(r.ban_ns / MS));
	r.since = certain();
	in_force = r;
}

static void one_packet(void)
{
	uint32_t key = draw() % KEYS;
	enum pacer_reason reason = judge(key, draw() % CPUS);
	uint64_t at = certain();

	if (reason == PACER_ADMIT) {
		must_not_be_over(key, at);
		assert_true(n_events < EVENTS_MAX);
		events[n_events].at = at;
		events[n_events++].key = key;
		return;
	}
	assert_int_not_equal(reason, PACER_DENY_NO_STATE);
	assert_int_not_equal(reason, PACER_DENY_CONTENDED);
	if (in_force.since == 100 * SECOND) /* the first of the run */
		must_be_owed(reason, key, at);
	if (in_force.ban_ns && pacer_bans(reason) && banned_until[key] < at + in_force.ban_ns)
		banned_until[key] = at + in_force.ban_ns;
}

/* The clock of the new boot, and what is certain to have passed: its time, or more by the clock of
 * the day. The same boot: its clock goes on.
 */
static void boot_again(struct state *s, bool same)
{
	uint64_t was = certain(), away = draw() % 2 ? 0 : magnitude(1, 20 * SECOND);

	if (same) {
		kernel_now_ns += magnitude(1, 2 * SECOND);
		return;
	}
	boot++;
	kernel_now_ns = 1 + magnitude(1, 5 * SECOND);
	s->clocks.believed = away != 0;
	s->clocks.error_ns = draw() % MS;
	base_ns = was; /* and what the clock of the day says beyond the boot's */
	if (away)
		s->clocks.real_ns = 1000 * SECOND - kernel_now_ns - away - s->clocks.error_ns;
	base_ns += away;
	assert_true(n_boots < ARRAY(booted));
	booted[n_boots++] = base_ns;
}

/* False: that policy cannot go on with it, and the one before does. */
static bool away_and_back(const char *text, const char *before_text)
{
	struct restored what;
	struct clocks saved;
	struct state s;
	bool done;

	save_and_read(&s);
	boot_again(&s, !(draw() % 3));
	saved = s.clocks;
	done = go_on(&s, text, &what);
	if (!done) {
		assert_ptr_not_equal(text, before_text);
		assert_true(strlen(error.text) > 20);
		state_free(&s);
		assert_int_equal(state_read(path, &s, &error), 0);
		s.clocks = saved;
		assert_true(go_on(&s, before_text, &what));
	}
	if (done && text != before_text && !what.limits_kept) {
		assert_true(n_old < OLD_MAX);
		old[n_old] = in_force;
		old[n_old++].until = certain();
	}
	state_free(&s);
	return done;
}

/* The policy changes while the machine is off. */
static void change_while_away(uint32_t of, char *text)
{
	struct rules was = in_force, next;

	random_rules(of);
	next = in_force;
	in_force = was;
	if (!away_and_back(doc.s, text))
		return;
	memcpy(text, doc.s, doc.n + 1);
	next.since = certain();
	in_force = next;
	if (!next.ban_ns) /* nobody asks for them then */
		memset(banned_until, 0, sizeof(banned_until));
	changed++;
}

static void a_run(uint32_t of, bool changes)
{
	char text[4096];

	n_events = n_old = n_boots = 0;
	memset(banned_until, 0, sizeof(banned_until));
	boot = 0;
	base_ns = 0;
	kernel_now_ns = 100 * SECOND;
	random_rules(of);
	memcpy(text, doc.s, doc.n + 1);
	begin(text);
	for (int away = 0; away < 6; away++) {
		uint64_t step = magnitude(1000, 50 * MS);

		for (int i = between(20, 300); i > 0; i--) {
			kernel_now_ns += draw() % 3 ? draw() % step : 0;
			if (draw() % 100 == 0)
				kernel_now_ns += magnitude(1, 2 * SECOND);
			one_packet();
		}
		if (changes && away == 2)
			change_while_away(of, text);
		else
			away_and_back(text, text);
	}
	detach();
}

static void no_limit_is_passed(void **unused)
{
	(void)unused;
	for (int i = 0; i < 60; i++)
		a_run(1 + i % 15, false);
}

static void nor_under_another_policy(void **unused)
{
	(void)unused;
	for (int i = 0; i < 45; i++)
		a_run(1 + i % 15, true);
	assert_true(changed > 30);
}

/* --- times ----------------------------------------------------------------------------------- */

static void times_are_carried(void **unused)
{
	(void)unused;
	assert_true(carry_time(0, 5) == 0);
	assert_true(carry_time(7, 5) == 12);
	assert_true(carry_time(7, -6) == 1);
	assert_true(carry_time(7, -7) == 1);
	assert_true(carry_time(7, INT64_MIN) == 1);
	assert_true(carry_time(UINT64_MAX, -6) == UINT64_MAX);
	assert_true(carry_time(UINT64_MAX - 3, 6) == UINT64_MAX - 1);
}

/*
 * A throttle of a rule and that of a pool's target, next to the same ones on the old clock: never
 * more uses are free; no fewer than at the new clock's beginning, or when it was last used after
 * that; and as many once all that was used before is back.
 */
static void throttles_are_carried(void **unused)
{
	static struct pacer_throttle_state throttle[PACER_THROTTLES], was;
	static struct pacer_policy p;
	uint64_t fewer = 0;

	(void)unused;
	oracle_seed(5);
	for (int i = 0; i < 400; i++) {
		struct pacer_throttle_params params = {.limit = between(1, 40),
						       .cooldown_ns = between(10, 1000),
						       .cpus = 1,
						       .lease = 1};
		struct pacer_throttle_profile profile;
		uint64_t t = between(1, 500), began;
		int64_t by_ns;

		params.threshold = between(1, params.limit);
		params.max_cooldown_ns = params.cooldown_ns + between(1, 300);
		if (pacer_throttle_configure(&profile, &params))
			continue;
		memset(throttle, 0, sizeof(throttle));
		memset(&p, 0, sizeof(p));
		p.rule[0].n_limiters = 1;
		p.rule[0].limiter[0] = (struct pacer_limiter){
		    .kind = PACER_LIMITER_THROTTLE, .base = 3, .throttle = profile};
		p.pool[0].n = 2;
		p.pool[0].throttle = profile;
		p.pool[0].state[1] = 7;
		for (int k = 0; k < 60; k++, t += draw() % (params.cooldown_ns / 8 + 1))
			for (size_t of = 3; of <= 7; of += 4)
				(void)!pacer_throttle_use(&profile, &throttle[of], t, 1);
		was = throttle[7];
		assert_memory_equal(&was, &throttle[3], sizeof(was));
		began = draw() & 1 ? between(1, (uint32_t)t + 100) : t - draw() % t;
		by_ns = draw() % 8 ? -(int64_t)began : (int64_t)began;
		if (began >= t) /* what was seen last is before the clock's beginning */
			t = began + 1;
		carry(&p, NULL, 0, throttle, by_ns, (uint64_t)((int64_t)t + by_ns));
		for (uint64_t q = t; q < t + 2 * params.max_cooldown_ns; q += between(1, 20)) {
			uint32_t old_free = pacer_throttle_free(&profile, &was, q);

			for (size_t of = 3; of <= 7; of += 4) {
				uint32_t left = pacer_throttle_free(&profile, &throttle[of],
								    (uint64_t)((int64_t)q + by_ns));

				assert_true(left <= old_free);
				assert_true(left >= pacer_throttle_free(&profile, &was, began));
				if (by_ns > 0 || q >= began + params.max_cooldown_ns)
					assert_int_equal(left, old_free);
				fewer += left < old_free;
			}
		}
	}
	assert_true(fewer > 100);
}

static void absences(void **unused)
{
	const struct clocks then = {"a", 100 * SECOND, 120 * SECOND, 5000 * SECOND, SECOND, 1};
	static const struct {
		struct clocks now;
		enum absence_by by;
		uint64_t at_least, at_most;
		int64_t shift;
	} cases[] = {
	    {{"a", 130 * SECOND, 0, 9000 * SECOND, 0, 1},
	     ABSENCE_SAME_BOOT,
	     30 * SECOND,
	     30 * SECOND,
	     0},
	    {{"a", 90 * SECOND, 0, 0, 0, 0}, ABSENCE_SAME_BOOT, 0, 0, -(int64_t)(10 * SECOND)},
	    {{"b", 4 * SECOND, 4 * SECOND, 9000 * SECOND, 0, 0},
	     ABSENCE_SINCE_BOOT,
	     4 * SECOND,
	     UINT64_MAX,
	     -(int64_t)(100 * SECOND)},
	    {{"b", 4 * SECOND, 9 * SECOND, 4000 * SECOND, 0, 1},
	     ABSENCE_SINCE_BOOT,
	     9 * SECOND,
	     UINT64_MAX,
	     -(int64_t)(105 * SECOND)},
	    {{"b", 4 * SECOND, 4 * SECOND, 5060 * SECOND, SECOND, 1},
	     ABSENCE_BY_DAY,
	     58 * SECOND,
	     62 * SECOND,
	     -(int64_t)(154 * SECOND)},
	    {{"b", 4 * SECOND, 4 * SECOND, 5005 * SECOND, SECOND, 1},
	     ABSENCE_SINCE_BOOT,
	     4 * SECOND,
	     UINT64_MAX,
	     -(int64_t)(100 * SECOND)},
	    /* Which boot it is nobody knows: as little as in either. */
	    {{"", 130 * SECOND, 150 * SECOND, 9000 * SECOND, 0, 1},
	     ABSENCE_ANY_BOOT,
	     30 * SECOND,
	     UINT64_MAX,
	     0},
	    {{"", 4 * SECOND, 9 * SECOND, 9000 * SECOND, 0, 1},
	     ABSENCE_ANY_BOOT,
	     0,
	     UINT64_MAX,
	     -(int64_t)(96 * SECOND)},
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		struct absence a = absence_between(&then, &cases[i].now);

		assert_int_equal(a.by, cases[i].by);
		assert_true(a.at_least_ns == cases[i].at_least);
		assert_true(a.at_most_ns == cases[i].at_most);
		assert_true(a.shift_ns == cases[i].shift);
	}
}

/* Not believed at the save, or too far back: only the boot's own time counts. */
static void a_clock_that_errs(void **unused)
{
	struct clocks then = {"a", 100 * SECOND, 120 * SECOND, 5000 * SECOND, 0, 0};
	struct clocks at = {"b", SECOND, SECOND, 9000 * SECOND, 0, 1};

	(void)unused;
	assert_int_equal(absence_between(&then, &at).by, ABSENCE_SINCE_BOOT);
	then.believed = 1;
	assert_int_equal(absence_between(&then, &at).by, ABSENCE_BY_DAY);
	then.error_ns = UINT64_MAX;
	assert_int_equal(absence_between(&then, &at).by, ABSENCE_SINCE_BOOT);
	at.boot_id[0] = 0; /* a kernel that does not say of which boot it is */
	assert_int_equal(absence_between(&then, &at).by, ABSENCE_ANY_BOOT);
	at.boot_id[0] = 'b';
	then.boot_id[0] = 0;
	assert_int_equal(absence_between(&then, &at).by, ABSENCE_ANY_BOOT);
}

/* A file made by hand has a time that no clock says: its key waits, and is not let through. */
static void beyond_all_clocks(void **unused)
{
	static const char text[] =
	    "memory: 64K\nrules:\n- {name: a, limits: [{key: src, rate: 1/s, burst: 2}]}\n";
	struct restored what;
	struct state s;
	size_t n = 0;

	(void)unused;
	kernel_now_ns = 100 * SECOND;
	begin(text);
	assert_int_equal(judge(1, 0), PACER_ADMIT);
	save_and_read(&s);
	for (uint64_t i = 0; i < s.n_lines * PACER_LINE_UNITS; i++) {
		struct pacer_entry *entry =
		    &s.lines[i / PACER_LINE_UNITS].unit[i % PACER_LINE_UNITS].entry;

		n += entry->tat_ns != 0;
		entry->tat_ns = entry->tat_ns ? 3ull << 62 : 0;
	}
	assert_int_equal(n, 1);
	assert_true(go_on(&s, text, &what));
	state_free(&s);
	assert_int_equal(judge(1, 0), PACER_DENY_RATE);
	assert_int_equal(judge(2, 0), PACER_ADMIT);
	detach();
}

#define KEPT_RULE "- {name: a, match: {dport: 7}, limits: [{key: src, packets: 4, window: 60s}]}\n"
#define FIVE(of, s)                                                                                \
	"  - {key: " of ", packets: 9, window: 1" s "}\n  - {key: " of ", packets: 9, window: 2" s \
	"}\n  - {key: " of ", packets: 9, window: 3" s "}\n  - {key: " of                          \
	", packets: 9, window: 4" s "}\n  - {key: " of ", packets: 9, window: 5" s "}\n"
#define FIVE_RULE(of, s) "- name: b\n  match: {dport: 9}\n  limits:\n" FIVE(of, s)
#define RULES		 "memory: 1Mi\nclock: exact\nrules:\n"

/* Five limits of a rule have others beside them that last, and eight there may be: it alone begins
 * anew, wherever it stands. */
static void unfit_rule(void **unused)
{
	static const char *const texts[2][2] = {
	    {RULES KEPT_RULE FIVE_RULE("src", "h"), RULES KEPT_RULE FIVE_RULE("src", "0m")},
	    {RULES FIVE_RULE("src", "h") KEPT_RULE, RULES FIVE_RULE("src", "0m") KEPT_RULE}};
	static struct pacer_policy bin;

	(void)unused;
	for (uint32_t kept = 0; kept < 2; kept++) {
		struct policy *policy = parse(texts[kept][1]);
		struct compile_host at;
		struct restored what;
		struct clocks clocks;
		struct state s;

		kernel_now_ns = 100 * SECOND;
		at = host_now();
		clocks = clocks_now();
		begin(texts[kept][0]);
		save_and_read(&s);
		assert_int_equal(restore_plan(&s, policy, &clocks, &at, &bin, &plan, &what, &error),
				 -1);
		state_free(&s);
		save_and_read(&s);
		assert_int_equal(restore_forget_unfit(&s, policy, &at), 5);
		assert_int_equal(s.bin->rule[kept].n_limiters, 1);
		assert_int_equal(restore_plan(&s, policy, &clocks, &at, &bin, &plan, &what, &error),
				 0);
		assert_true(what.limits_kept == 1 && what.limits_new == 5);
		state_free(&s);
		policy_free(policy);
		detach();
	}
}

/* In force, but killed before it has said for how long it needs what it retires. */
static void change_cut_off(const char *from, const char *to)
{
	struct compile_host host_of = host_now();
	struct policy *was = parse(from), *policy = parse(to);
	struct compile_previous previous = {was,  &copies[0].policy, pacer.n_lines, false, false,
					    false};
	static struct pacer_policy bin;

	if (compile_policy(policy, &previous, &host_of, &bin, &plan, &error))
		fail_msg("%s", error.text);
	copies[0].policy = bin;
	memset(copies[0].text, 0, sizeof(copies[0].text));
	memcpy(copies[0].text, to, strlen(to));
	policy_free(policy);
	policy_free(was);
}

#define ONE_RATE(of) \
	"memory: 64Ki\nclock: exact\nrules:\n- {name: a, limits: [{key: src, " of "}]}\n"

/* The new rate waits until the old one is over, whatever boot that is in. */
static void a_rate_cut_off(void **unused)
{
	static const char before_text[] = ONE_RATE("rate: 1/s, burst: 5");
	static const char text[] = ONE_RATE("rate: 2/s, burst: 5");
	const struct pacer_rule *rule;
	struct restored what;
	struct state s;

	(void)unused;
	for (int again = 0; again < 2; again++) {
		kernel_now_ns = 100 * SECOND;
		boot = 0;
		begin(before_text);
		change_cut_off(before_text, text);
		rule = &copies[0].policy.rule[0];
		assert_int_equal(rule->n_limiters, 2);
		assert_true(rule->limiter[0].rate.begin_ns == COMPILE_UNTIL_SET);
		save_and_read(&s);
		if (again) {
			boot++;
			kernel_now_ns = 10 * SECOND;
		}
		assert_true(go_on(&s, text, &what));
		state_free(&s);
		rule = &copies[0].policy.rule[0];
		assert_int_equal(rule->n_limiters, 2);
		assert_true(rule->limiter[1].until_ns > kernel_now_ns);
		assert_true(rule->limiter[1].until_ns < kernel_now_ns + 60 * SECOND);
		assert_true(rule->limiter[0].rate.begin_ns == rule->limiter[1].until_ns);
		assert_int_equal(judge(1, 0), PACER_ADMIT);
		kernel_now_ns = rule->limiter[1].until_ns;
		assert_int_equal(judge(1, 0), PACER_DENY_RATE);
		kernel_now_ns += SECOND;
		assert_int_equal(judge(1, 0), PACER_ADMIT);
		detach();
	}
}

#define NO_SCRUB                                                                                  \
	"memory: 64Ki\nclock: exact\nrules:\n- {name: a, limits: [{key: src, gap: 1ms, entries: " \
	"8}]}\n"
#define COOLS	  " cooldown: 10m, max_cooldown: 11m, threshold: 500"
#define SCRUB	  NO_SCRUB "pools:\n- {name: scrub, targets: [veth1], each: 500," COOLS "}\n"
#define USES_OF_B NO_SCRUB "- {name: b, limits: [{key: all, uses: 500," COOLS "}]}\n"

/*
 * A target that is spent at 1000 s leaves its pool, and the state is saved at 1300 s. In the next
 * boot it cools down at 300 s. From then on its throttle is anybody's, and begins at zero.
 */
static void a_throttle_that_cools_meanwhile(void **unused)
{
	static const struct {
		const char *text;
		uint64_t up_s;
		uint32_t left;
	} cases[] = {
	    {SCRUB, 200, 0}, {SCRUB, 320, 500}, {USES_OF_B, 200, 500}, {USES_OF_B, 320, 500}};
	const struct pacer_throttle_profile *profile;
	struct restored what;
	struct state s;

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		struct pacer_policy *p;
		uint32_t at;

		kernel_now_ns = 1000 * SECOND;
		boot = 0;
		begin(SCRUB);
		p = &copies[0].policy;
		at = p->pool[0].state[0];
		for (int k = 0; k < 500; k++)
			assert_int_equal(pacer_throttle_use(&p->pool[0].throttle,
							    &pacer.throttle[at], kernel_now_ns, 1),
					 PACER_THROTTLE_ADMIT);
		change_cut_off(SCRUB, NO_SCRUB);
		compile_time_targets(p, kernel_now_ns);
		kernel_now_ns = 1300 * SECOND;
		save_and_read(&s);
		boot++;
		kernel_now_ns = cases[i].up_s * SECOND;
		s.clocks.believed = 0;
		assert_true(go_on(&s, cases[i].text, &what));
		state_free(&s);
		p = &copies[0].policy;
		profile = p->pool[0].n ? &p->pool[0].throttle : &p->rule[1].limiter[0].throttle;
		at = p->pool[0].n ? p->pool[0].state[0] : p->rule[1].limiter[0].base;
		assert_int_equal(pacer_throttle_free(profile, &pacer.throttle[at], kernel_now_ns),
				 cases[i].left);
		detach();
	}
}

/* What lets packets through for a time ends when that may be over; what does for ever stays. */
static void what_is_allowed(void **unused)
{
	const char *text = "memory: 64Ki\nrules:\n- {name: a, limits: [{key: all, gap: 1s}]}\n";
	struct allow_entry e = {{4, 32, {10, 0, 0, 1}}, false, true, 0};
	struct restored what;
	struct state s;

	(void)unused;
	kernel_now_ns = 100 * SECOND;
	boot = 0;
	begin(text);
	for (int known = 0; known < 2; known++) {
		save_and_read(&s);
		assert_true(allowlist_append(&s.allow, &e));
		e.prefix.addr[3] = 2;
		e.hand_until_ns = kernel_now_ns + 60 * SECOND;
		assert_true(allowlist_append(&s.allow, &e));
		e.prefix.addr[3] = 3;
		e.hand_until_ns = kernel_now_ns + 20 * SECOND;
		assert_true(allowlist_append(&s.allow, &e));
		e = (struct allow_entry){{4, 32, {10, 0, 0, 1}}, false, true, 0};
		boot++;
		kernel_now_ns = 10 * SECOND;
		s.clocks.believed = known;
		s.clocks.real_ns = 970 * SECOND;
		assert_true(go_on(&s, text, &what));
		assert_int_equal(what.allowed, known ? 2 : 1);
		assert_int_equal(what.allowed_left_out, known ? 1 : 2);
		if (known)
			assert_true(s.allow.entry[1].hand_until_ns == 40 * SECOND);
		state_free(&s);
		kernel_now_ns = 100 * SECOND;
	}
	detach();
}

/* The policy's own entries are not in it, which another policy may not have; nor what has lapsed.
 */
static void what_is_by_hand(void **unused)
{
	static const char text[] =
	    "memory: 64Ki\nrules:\n- {name: a, limits: [{key: all, gap: 1s}]}\n";
	const struct allow_entry entries[] = {
	    {{4, 32, {10, 0, 0, 1}}, true, false, 0},
	    {{4, 32, {10, 0, 0, 2}}, false, true, 99 * SECOND},
	    {{4, 32, {10, 0, 0, 3}}, true, true, 0},
	};
	struct allowlist list;
	struct state s;

	(void)unused;
	kernel_now_ns = 100 * SECOND;
	boot = 0;
	begin(text);
	assert_int_equal(allowlist_init(&list), 0);
	for (size_t i = 0; i < ARRAY(entries); i++)
		assert_true(allowlist_append(&list, &entries[i]));
	assert_int_equal(allow_maps_write(&pacer, 0, &list, &error), 0);
	allowlist_free(&list);
	save_and_read(&s);
	assert_int_equal(s.allow.n, 1);
	assert_int_equal(s.allow.entry[0].prefix.addr[3], 3);
	state_free(&s);
	detach();
}

/* Keys that have no entry of their own share some, whose packets count on, too. */
static void what_keys_share(void **unused)
{
	static const char text[] = "memory: 64Ki\nrules:\n- {name: a, limits: [{key: src, "
				   "packets: 1, window: 100s, entries: 8}]}\n";
	struct restored what;
	uint32_t before = 0;
	struct state s;

	(void)unused;
	kernel_now_ns = 100 * SECOND;
	boot = 0;
	begin(text);
	for (uint32_t key = 0; key < 400; key++)
		before += judge(key, 0) == PACER_ADMIT;
	assert_true(before > 8 && before < 400);
	save_and_read(&s);
	assert_true(go_on(&s, text, &what));
	for (uint32_t key = 0; key < 400; key++)
		assert_int_not_equal(judge(key, 0), PACER_ADMIT);
	state_free(&s);
	detach();
}

#define NO_BANS	  "memory: 64Ki\nrules:\n- {name: a, limits: [{key: src, gap: 1s, entries: 8}]}\n"
#define FEW_BANS  "memory: 64Ki\nbans: 8\nrules:\n" BANNING
#define MORE_BANS "memory: 2Mi\nbans: 1024\nrules:\n" BANNING
#define BANNING                                                   \
	"- name: a\n  ban: 100s\n  limits: [{key: src, packets: " \
	"1, window: 1s, entries: 512}]\n"

/* As after a rotation. */
static void use_secret(uint32_t which)
{
	for (size_t i = 0; i < PACER_SECRETS; i++)
		control.secret[which][i] = draw();
	copies[0].policy.secret = copies[0].policy.rule[0].limiter[0].secret = (uint8_t)which;
}

/* What a table of another size takes over of a ban: that somebody added it, and its row. */
static void notes_of_bans(void **unused)
{
	const uint32_t note = PACER_BAN_OUTSIDE | 3 << PACER_BAN_ROW;
	const struct pacer_bans *bans;
	struct restored what;
	struct state s;
	uint32_t n = 0;

	(void)unused;
	kernel_now_ns = 100 * SECOND;
	boot = 0;
	begin("memory: 1Mi\nbans: 64\nrules:\n" BANNING);
	bans = &copies[0].policy.bans;
	for (int k = 0; k < 3; k++)
		(void)judge(1, 0);
	for (uint64_t k = 0; k < (uint64_t)bans->sets * PACER_BAN_WAYS; k++)
		if (pacer.lines[bans->base + k].ban_until_ns)
			pacer.lines[bans->base + k].ban_note = note;
	save_and_read(&s);
	assert_true(go_on(&s, MORE_BANS, &what));
	assert_int_equal(what.bans, 1);
	bans = &copies[0].policy.bans;
	for (uint64_t k = 0; k < (uint64_t)bans->sets * PACER_BAN_WAYS; k++)
		if (pacer.lines[bans->base + k].ban_until_ns) {
			assert_int_equal(pacer.lines[bans->base + k].ban_note, note);
			n++;
		}
	assert_int_equal(n, 1);
	assert_int_equal(copies[0].policy.rule[0].outside, 1); /* it is asked for */
	state_free(&s);
	detach();
}

/* Bans for which another policy's table has no room are counted; the others hold. */
static void what_is_banned(void **unused)
{
	static const char *const next[] = {MORE_BANS, FEW_BANS, NO_BANS};
	struct restored what;
	struct state s;

	(void)unused;
	for (size_t of = 0; of < 2 * ARRAY(next); of++) {
		uint32_t banned = 0, still = 0, i = of / 2;

		kernel_now_ns = 100 * SECOND;
		boot = 0;
		begin("memory: 1Mi\nbans: 64\nrules:\n" BANNING);
		use_secret(of % 2);
		for (uint32_t key = 0; key < 40; key++)
			for (int k = 0; k < 3; k++)
				(void)judge(key, 0);
		kernel_now_ns += 2 * SECOND;
		for (uint32_t key = 0; key < 40; key++)
			banned += judge(key, 0) == PACER_DENY_BAN;
		assert_true(banned > 30);
		save_and_read(&s);
		assert_true(go_on(&s, next[i], &what));
		assert_int_equal(what.bans + what.bans_left_out, banned);
		assert_true(i ? what.bans_left_out > 0 : what.bans == banned);
		assert_true(i < 2 ? what.bans > 0 : what.bans == 0);
		for (uint32_t key = 0; key < 40; key++)
			still += judge(key, 0) == PACER_DENY_BAN;
		assert_int_equal(still, what.bans);
		state_free(&s);
		detach();
	}
}

/* The rule's limit takes three quarters of what its tables leave, as one without a size does. */
#define TABLES(tables)                                                                             \
	"memory: 1Mi\n" tables "clock: exact\nrules:\n- {name: a, ban: 30m, match: {proto: udp}, " \
	"limits: [{key: src, packets: 5, window: 1h}]}\n"
#define NEW_FLOWS \
	"- {name: b, match: {dport: 9}, limits: [{key: dst, packets: 9, window: 1m, of: new}]}\n"
#define MORE_OF_A "- {name: b, match: {dport: 9}, limits: [{key: dst, packets: 9, window: 1m}]}\n"

/* One had 5 packets, the other 6. Nobody else is known. */
static void goes_on_with_tables(const char *from, const char *to, size_t new, uint64_t lines)
{
	struct restored what;
	struct state s;

	kernel_now_ns = 100 * SECOND;
	boot = 0;
	begin(from);
	for (int k = 0; k < 6; k++)
		assert_int_equal(judge(2, 0), k < 5 ? PACER_ADMIT : PACER_DENY_WINDOW);
	for (int k = 0; k < 5; k++)
		assert_int_equal(judge(1, 0), PACER_ADMIT);
	save_and_read(&s);
	if (!go_on(&s, to, &what))
		fail_msg("%s\n%s", error.text, to);
	assert_int_equal(what.limits_new, new);
	assert_int_equal(what.limits_kept + new, plan.n_limits);
	assert_true(what.bans == 1 && !what.bans_left_out);
	assert_int_equal(plan.lines, lines);
	assert_int_equal(s.n_lines, lines);
	assert_int_equal(judge(2, 0), PACER_DENY_BAN);
	assert_int_equal(judge(1, 0), PACER_DENY_WINDOW);
	for (uint32_t key = 3; key < 103; key++)
		assert_int_equal(judge(key, 0), PACER_ADMIT);
	state_free(&s);
	detach();
}

/*
 * Tables of another size take no limit's state, and no lines that new limits want; they have the
 * table grow by no more than they lack.
 */
static void tables_of_another_size(void **unused)
{
	const uint64_t all = 16384, of_a = (all - 2049) / 4 * 3, of_both = (all - 3073) / 4 * 3 / 2,
		       of_b = (all - 2049 - of_a) / 4 * 3;

	(void)unused;
	goes_on_with_tables(TABLES("bans: 1024\n"), TABLES("bans: 2048\n"), 0, 2049 + of_a + 4097);
	goes_on_with_tables(TABLES("bans: 4600\n"), TABLES("bans: 4300\n"), 0, all);
	goes_on_with_tables(TABLES("bans: 1024\n"), TABLES("bans: 4600\n"), 0, 2049 + of_a + 12793);
	goes_on_with_tables(TABLES("bans: 1024\nflows: 1024\n") NEW_FLOWS,
			    TABLES("bans: 1024\nflows: 8000\n") NEW_FLOWS, 0,
			    3073 + 2 * of_both + 8000);
	goes_on_with_tables(TABLES("flows: 8000\nbans: 1024\n") NEW_FLOWS,
			    TABLES("flows: 7000\nbans: 1024\n") NEW_FLOWS, 0, all);
	goes_on_with_tables(TABLES("bans: 1024\n"), TABLES("bans: 2048\n") MORE_OF_A, 1,
			    2049 + of_a + of_b + 4097);
}

/* It is refused as it is without a state: what is restored can be loaded once that is lost. */
static void a_table_for_which_there_is_no_memory(void **unused)
{
	struct restored what;
	struct state s;

	(void)unused;
	kernel_now_ns = 100 * SECOND;
	boot = 0;
	begin(TABLES("bans: 1024\n"));
	save_and_read(&s);
	assert_false(go_on(&s, TABLES("bans: 20000\n"), &what));
	assert_non_null(strstr(error.text, "bans: no room for the table of 20000"));
	state_free(&s);
	detach();
}

/*
 * Until when anybody at all may be banned is carried, too. It is too early else on a later clock,
 * and the banned are let in; on an earlier one each packet is looked for where none is banned.
 */
static void until_when_any_is_banned(void **unused)
{
	static const struct {
		int64_t by_s;
		uint64_t now_s, last_s;
	} cases[] = {{1000, 1110, 1160}, {-90, 20, 70}, {-150, 5, 10}, {-160, 5, 0}, {0, 110, 160}};

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		const struct pacer_bans *bans;
		struct pacer_table table;

		kernel_now_ns = 100 * SECOND;
		begin("memory: 2Mi\nbans: 64\nclock: exact\nrules:\n- name: a\n  ban: 60s\n"
		      "  limits: [{key: src, packets: 9, window: 1s}]\n");
		bans = &copies[0].policy.bans;
		table = (struct pacer_table){pacer.lines, (uint32_t)pacer.n_lines};
		*pacer_ban_last(&table, bans) = 160 * SECOND;
		carry(&copies[0].policy, pacer.lines, pacer.n_lines, pacer.throttle,
		      cases[i].by_s * (int64_t)SECOND, cases[i].now_s * SECOND);
		assert_true(*pacer_ban_last(&table, bans) == cases[i].last_s * SECOND);
		assert_int_equal(pacer_ban_none(&table, bans, cases[i].now_s * SECOND),
				 cases[i].now_s >= cases[i].last_s);
		detach();
	}
}

#define GROWING                                                                           \
	"memory: 1Mi\nbans: 64\nclock: exact\nrules:\n- name: a\n  ban: {for: 2s, grow: " \
	"x4, up_to: 1000s, forget: 600s}\n  limits: [{key: src, packets: 1, window: 1s, " \
	"entries: 512}]\n"

/* The next ban of the key begins now: for how many seconds is it? */
static void must_be_banned_for(uint64_t seconds)
{
	assert_int_equal(judge(1, 0), PACER_ADMIT);
	assert_int_equal(judge(1, 0), PACER_DENY_WINDOW);
	kernel_now_ns += seconds * SECOND - 1;
	assert_int_equal(judge(1, 0), PACER_DENY_BAN);
	kernel_now_ns += 2;
	assert_int_not_equal(judge(1, 0), PACER_DENY_BAN);
}

#define USES_OF(n)                                        \
	"memory: 64Ki\nclock: exact\nrules:\n- name: a\n" \
	"  limits: [{key: all, uses: " #n ", cooldown: 1s}]\n"

/*
 * No CPU has a lease of before the save. A limit that is lowered with the restore says when it is
 * done with the longer leases: who changes it again later has no second limit drain beside it.
 */
static void leases_end_with_the_save(void **unused)
{
	struct restored what;
	struct state s;

	(void)unused;
	for (int back = 0; back < 2; back++) {
		kernel_now_ns = 100 * SECOND;
		boot = 0;
		begin(USES_OF(400000));
		save_and_read(&s);
		boot += back ? 0 : 1;
		kernel_now_ns += back ? SECOND : 0;
		assert_true(go_on(&s, USES_OF(1020), &what));
		assert_int_equal(what.limits_kept, 1);
		assert_false(throttle_leases_last(&copies[0].policy));
		state_free(&s);
		detach();
	}
}

/*
 * A row of two bans, of which the last ended at 112 s. The boot's clock begins at the save, so its
 * end cannot be written there. It goes on until it is to be forgotten, by what is known to have
 * passed, and not where somebody lifted the ban. A source's ban is in no row.
 */
static void bans_that_grow(void **unused)
{
	static const struct {
		uint64_t saved_s, up_s, next_s;
		bool lifted, back, of_source; /* back: in the same boot */
	} cases[] = {
	    {200, 10, 32, false, false, false}, {701, 10, 32, false, false, false},
	    {702, 10, 2, false, false, false},	{200, 511, 32, false, false, false},
	    {200, 512, 2, false, false, false}, {200, 10, 2, true, false, false},
	    {200, 300, 32, false, true, false}, {110, 10, 32, false, false, false},
	    {200, 10, 2, false, false, true},
	};
	struct restored what;
	struct state s;

	(void)unused;
	for (size_t i = 0; i < ARRAY(cases); i++) {
		const struct pacer_bans *bans;
		uint64_t rows = 0;

		kernel_now_ns = 100 * SECOND;
		boot = 0;
		begin(GROWING);
		must_be_banned_for(2);
		kernel_now_ns = 104 * SECOND;
		assert_int_equal(judge(1, 0), PACER_ADMIT);
		assert_int_equal(judge(1, 0), PACER_DENY_WINDOW); /* until 112 s */
		bans = &copies[0].policy.bans;
		for (uint64_t k = 0; k < (uint64_t)bans->sets * PACER_BAN_WAYS; k++) {
			struct pacer_line *line = &pacer.lines[bans->base + k];

			rows += line->ban_until_ns == 112 * SECOND;
			if (cases[i].lifted)
				line->ban_until_ns = 0;
			if (cases[i].of_source && line->ban_until_ns)
				line->ban_rule = PACER_BAN_SOURCE;
		}
		assert_int_equal(rows, 1);
		kernel_now_ns = cases[i].saved_s * SECOND;
		save_and_read(&s);
		boot += !cases[i].back;
		kernel_now_ns = cases[i].up_s * SECOND;
		s.clocks.believed = 0;
		assert_true(go_on(&s, GROWING, &what));
		state_free(&s);
		must_be_banned_for(cases[i].next_s);
		detach();
	}
}

/* One that ended before the save is over; and a list holds no more than it has room for. */
static void too_many_are_allowed(void **unused)
{
	struct restored what;
	struct state s;

	(void)unused;
	kernel_now_ns = 100 * SECOND;
	boot = 0;
	begin(NO_BANS);
	for (uint32_t of = 0; of < 4; of++) {
		uint32_t more = of % 2, six = of / 2;

		save_and_read(&s);
		for (uint32_t i = 0; i < PACER_ALLOW_MAX + more; i++) {
			struct allow_entry e = {
			    {six ? 6 : 4, six ? 128 : 32, {10, 0, (uint8_t)(i >> 8), (uint8_t)i}},
			    false,
			    true,
			    0};

			if (!i)
				e.hand_until_ns = 99 * SECOND;
			assert_true(allowlist_append(&s.allow, &e));
		}
		assert_true(
		    go_on(&s,
			  six ? "allow: [2001:db8::1]\n" NO_BANS : "allow: [192.0.2.1]\n" NO_BANS,
			  &what) == !more);
		assert_true(what.allowed == PACER_ALLOW_MAX - 1 + more &&
			    what.allowed_left_out == 1);
		assert_int_equal(s.allow.n, PACER_ALLOW_MAX + more);
		state_free(&s);
		if (more)
			assert_string_equal(
			    error.text, six ? "the allow-list holds 4096 IPv6 prefixes, and those "
					      "of the policy and those saved are more"
					    : "the allow-list holds 4096 IPv4 prefixes, and those "
					      "of the policy and those saved are more");
	}
	detach();
}

static void count_all(void)
{
	struct pacer_counters of_rule[KERNEL_CPUS] = {0};
	struct pacer_set_count of_set[KERNEL_CPUS];

	for (uint32_t i = 0; i < PACER_COUNTERS_MAX; i++) {
		for (int cpu = 0; cpu < KERNEL_CPUS; cpu++)
			of_rule[cpu].by[PACER_ADMIT].packets = 100 + i;
		assert_int_equal(bpf_map_update_elem(KERNEL_COUNTS, &i, of_rule, 0), 0);
	}
	for (uint32_t i = 0; i < PACER_SET_COUNTERS; i++) {
		for (int cpu = 0; cpu < KERNEL_CPUS; cpu++)
			of_set[cpu] = (struct pacer_set_count){10 + i, 1000 + i};
		assert_int_equal(bpf_map_update_elem(KERNEL_SET_HITS, &i, of_set, 0), 0);
	}
}

/*
 * Sums of all CPUs go on by the names of rules and sets. What is new begins at 0, also where one
 * that was in no policy any more at the save has left its count.
 */
static void what_is_counted(void **unused)
{
	const struct pacer_policy *bin;
	struct restored what;
	struct state s;

	(void)unused;
	kernel_now_ns = 100 * SECOND;
	boot = 0;
	begin(
	    "memory: 64K\nsets: [{name: a, of: [192.0.2.1]}, {name: b, of: [192.0.2.2]}]\nrules:\n"
	    "- {name: a, match: {src: \"@a\"}, limits: [{key: src, gap: 1s}]}\n"
	    "- {name: b, match: {src: \"@b\"}, limits: [{key: src, gap: 1s}]}\n");
	count_all();
	save_and_read(&s);
	assert_int_equal(s.set_count[0].packets, KERNEL_CPUS * 10);
	assert_true(go_on(
	    &s,
	    "memory: 64K\nsets: [{name: c, of: [192.0.2.3]}, {name: b, of: [192.0.2.2]}]\nrules:\n"
	    "- {name: c, match: {src: \"@c\"}, limits: [{key: src, gap: 1s}]}\n"
	    "- {name: b, match: {src: \"@b\"}, limits: [{key: src, gap: 1s}]}\n",
	    &what));
	bin = &copies[0].policy;
	assert_int_equal(s.set_count[bin->set_counter[0]].packets, 0);
	assert_int_equal(s.set_count[bin->set_counter[1]].packets, KERNEL_CPUS * 11);
	assert_int_equal(s.set_count[bin->set_counter[1]].bytes, KERNEL_CPUS * 1001);
	assert_int_equal(s.set_count[0].packets, 0);
	assert_int_equal(s.counter[bin->rule[0].counter].by[PACER_ADMIT].packets, 0);
	assert_int_equal(s.counter[bin->rule[1].counter].by[PACER_ADMIT].packets,
			 KERNEL_CPUS * 102);
	assert_int_equal(s.counter[0].by[PACER_ADMIT].packets, KERNEL_CPUS * 100);
	assert_int_equal(what.counters_left_out, 1);
	state_free(&s);
	detach();
}

/* A policy that goes on needs memory, too: it goes on, or not at all. */
static void no_memory_to_go_on(void **unused)
{
	struct compile_host host_of = host_now();
	static struct pacer_policy bin;
	struct clocks at = clocks_now();
	struct policy *policy;
	struct restored what;
	uint32_t failed = 0;
	struct state s;
	bool done;

	(void)unused;
	kernel_now_ns = 100 * SECOND;
	boot = 0;
	begin(NO_BANS);
	policy = parse(NO_BANS);
	for (uint32_t i = 1;; i++) {
		save_and_read(&s);
		starved_from(i, true);
		memory.on = true;
		done = !restore_plan(&s, policy, &at, &host_of, &bin, &plan, &what, &error);
		memory.on = false;
		state_free(&s);
		if (memory.n < i)
			break;
		if (!done && !strstr(error.text, "memory"))
			fail_msg("allocation %u: %s", i, error.text);
		failed += !done;
	}
	assert_true(done && failed > 0);
	policy_free(policy);
	save_and_read(&s);
	assert_false(go_on(&s,
			   "memory: 64Ki\nrules:\n- {name: a, limits: [{key: src, packets: 9, "
			   "window: 1s, entries: 1Mi}]}\n",
			   &what));
	state_free(&s);
	save_and_read(&s);
	no_room = true;
	assert_false(go_on(&s, MORE_BANS, &what));
	assert_string_equal(error.text, "no memory for 32768 lines of state");
	no_room = false;
	state_free(&s);
	detach();
}

/* --- what is taken ---------------------------------------------------------------------------- */

static void give_way(void)
{
	kernel_now_ns += 20 * SECOND;
}

static void not_taken(const char *says)
{
	struct state s;

	assert_int_equal(state_init(&s, pacer.n_lines), 0);
	assert_int_equal(state_take_all(&pacer, &s, &error), -1);
	if (!strstr(error.text, says))
		fail_msg("%s", error.text);
	state_free(&s);
}

/* What is no state of a moment, or of no known boot, is not kept as one. */
static void nothing_is_made_up(void **unused)
{
	uint64_t lines;
	struct state s;
	char was;

	(void)unused;
	kernel_now_ns = 100 * SECOND;
	begin(NO_BANS);
	copies[1] = copies[0];
	control.in_force = (110 * SECOND) << 1;
	clocks_hook = give_way;
	assert_int_equal(state_init(&s, pacer.n_lines), 0);
	assert_int_equal(state_take(&pacer, 0, &s, &error), -1);
	assert_string_equal(error.text, "eth0: a policy on trial gave way just now: try again");
	state_free(&s);
	clocks_hook = NULL;
	kernel_now_ns = 100 * SECOND; /* the second look at the clock is after the list */
	control.in_force = (100 * SECOND + 2) << 1;
	clock_step_ns = 1;
	not_taken("eth0: a policy on trial gave way just now: try again");
	clock_step_ns = 0;
	control.in_force = 0;
	no_boot = true;
	not_taken("eth0: the kernel does not say which boot this is: is /proc mounted?");
	no_boot = false;
	was = copies[0].text[0];
	copies[0].text[0] = '[';
	not_taken("eth0: its policy cannot be read: ");
	copies[0].text[0] = was;
	lines = pacer.n_lines; /* a table that ends before its policy's limits */
	assert_int_equal(judge(1, 0), PACER_ADMIT);
	pacer.n_lines = 1;
	not_taken("eth0: an entry of its state is being written to");
	pacer.n_lines = lines;
	for (uint32_t i = 1;; i++) {
		struct state s;
		int result;

		assert_int_equal(state_init(&s, pacer.n_lines), 0);
		starved_from(i, true);
		memory.on = true;
		result = state_take(&pacer, 0, &s, &error);
		memory.on = false;
		state_free(&s);
		if (memory.n < i) {
			assert_int_equal(result, 0);
			break;
		}
		if (result && !strstr(error.text, "emory"))
			fail_msg("allocation %u: %s", i, error.text);
	}
	for (uint32_t i = 1; i < 6; i++) {
		struct state s;
		int result;

		assert_int_equal(state_init(&s, i % 2 ? 0 : 1ull << 31), -1);
		starved_from(i, true);
		memory.on = true;
		result = state_init(&s, 64);
		memory.on = false;
		assert_int_equal(result, i < 5 ? -1 : 0);
		state_free(&s);
	}
	detach();
}

/* A save that froze it was killed, or has taken it off: the limits are those of the copy before. */
static void what_is_frozen(void **unused)
{
	struct state s;
	struct restored what;

	(void)unused;
	kernel_now_ns = 100 * SECOND;
	begin(NO_BANS);
	assert_int_equal(judge(1, 0), PACER_ADMIT);
	assert_int_equal(freeze(&pacer, &error), 0);
	save_and_read(&s);
	assert_memory_equal(s.lines, pacer.lines, s.n_lines * sizeof(*s.lines));
	assert_true(go_on(&s, NO_BANS, &what));
	assert_int_equal(what.limits_kept, 1);
	state_free(&s);
	assert_int_equal(freeze(&pacer, &error), 0);
	kernel_now_ns += FREEZE_NS - 1;
	clock_step_ns = 1; /* it gives way while it is looked at */
	not_taken("eth0: it was frozen for too long, and packets are let through again: try again");
	clock_step_ns = 0;
	save_and_read(&s);
	assert_true(s.bin->rule[0].n_limiters);
	state_free(&s);
	copies[1].policy.rule[0].n_limiters = 0;
	control.in_force =
	    1; /* a load on trial that lapsed is not on trial, and has no number either */
	save_and_read(&s);
	assert_int_equal(s.bin->rule[0].n_limiters, 0);
	state_free(&s);
	detach();
}

/* --- files ----------------------------------------------------------------------------------- */

static void put_file(const void *at, size_t n)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(at, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static void must_be_refused(void)
{
	struct state s;

	error = (struct policy_error){.line = -1};
	assert_int_equal(state_read(path, &s, &error), -1);
	assert_true(strlen(error.text) > 20);
	assert_null(strchr(error.text, '\n'));
	assert_null(s.lines);
}

/* Changes the byte there. */
static void poke(int fd, off_t at, unsigned char value)
{
	assert_int_equal(pwrite(fd, &value, 1, at), 1);
}

/*
 * A bit of every byte that says how the rest is to be read, of the text, of every line, and of
 * one of many bytes between: one is as good as the other to a checksum over all of them.
 */
static void damaged(void **unused)
{
	unsigned char *good;
	struct state s;
	struct stat st;
	size_t n, i;
	int fd;

	(void)unused;
	kernel_now_ns = 100 * SECOND;
	begin("memory: 64Ki\nrules:\n- {name: a, limits: [{key: src, packets: 9, window: 1s}]}\n");
	assert_int_equal(judge(1, 0), PACER_ADMIT);
	save_and_read(&s);
	state_free(&s);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	n = (size_t)st.st_size;
	good = malloc(n);
	assert_int_equal(pread(fd, good, n, 0), n);
	for (i = 0; i < n; i += i < 300 || i > n - 100 ? 1 : n / 199) {
		poke(fd, (off_t)i, good[i] ^ (unsigned char)(1 << draw() % 8));
		must_be_refused();
		poke(fd, (off_t)i, good[i]);
	}
	close(fd);
	assert_int_equal(state_read(path, &s, &error), 0);
	state_free(&s);
	for (i = 0; i < n; i += i < 300 || i > n - 50 ? 1 : n / 99) {
		put_file(good, i);
		must_be_refused();
	}
	free(good);
	detach();
}

/* Nothing is wrong with the file. */
static void no_memory_for_it(void **unused)
{
	uint32_t refused = 0, n;
	struct state s;

	(void)unused;
	kernel_now_ns = 100 * SECOND;
	begin("memory: 64Ki\nrules:\n- {name: a, limits: [{key: src, packets: 9, window: 1s}]}\n");
	save_and_read(&s);
	state_free(&s);
	starved_from(0, false);
	memory.on = true;
	assert_int_equal(state_read(path, &s, &error), 0);
	memory.on = false;
	state_free(&s);
	n = memory.n;
	for (uint32_t i = 1; i <= n; i++) {
		starved_from(i, i % 2);
		memory.on = true;
		if (state_read(path, &s, &error)) {
			memory.on = false;
			refused++;
			if (!strstr(error.text, "emory"))
				fail_msg("allocation %u of %u: %s", i, n, error.text);
		} else {
			memory.on = false;
			state_free(&s);
		}
	}
	assert_true(refused > n / 2);
	detach();
}

/* Right by its checksum, but made by somebody else: what points beyond the table is not followed.
 */
static void made_by_others(void **unused)
{
	struct pacer_limiter *t;
	uint64_t bytes;

	(void)unused;
	kernel_now_ns = 100 * SECOND;
	begin("memory: 64Ki\nbans: 8\nrules:\n- name: a\n  limits: [{key: src, packets: 9, window: "
	      "1s, entries: 8}]\n  ban: 1s\n");
	for (int fault = 0; fault < 12; fault++) {
		struct state s;

		save_and_read(&s);
		t = &s.bin->rule[0].limiter[0];
		switch (fault) {
		case 0:
			t->base = (uint32_t)s.n_lines;
			break;
		case 1:
			t->sets = 1 << 20;
			break;
		case 2:
			t->shared = UINT32_MAX;
			break;
		case 3:
			t->units = 0;
			break;
		case 4:
			t->window.ring = 250;
			break;
		case 5:
			t->kind = 77;
			break;
		case 6:
			s.bin->rule[3].n_limiters = 200;
			break;
		case 7:
			s.bin->bans.filter_mask = UINT32_MAX;
			break;
		case 8:
			s.bin->bans.base = (uint32_t)s.n_lines - 1;
			break;
		case 9:
			s.bin->rule[0].counter = PACER_COUNTERS_MAX;
			break;
		case 10:
			s.bin->pool[2].n = 33;
			break;
		case 11:
			t->secret = 2;
			break;
		}
		assert_false(state_is_sound(&s));
		assert_int_equal(state_write(path, &s, &bytes, &error), 0);
		state_free(&s);
		must_be_refused();
	}
	detach();
}

/* In a state that is sound this alone is changed. */
#define UNSOUND(field, value)                                                    \
	do {                                                                     \
		const __typeof__(field) was = field;                             \
                                                                                 \
		assert_true(state_is_sound(&s));                                 \
		field = value;                                                   \
		if (state_is_sound(&s))                                          \
			fail_msg("%s = %s is said to be sound", #field, #value); \
		field = was;                                                     \
	} while (0)

/* Before there is a secret no packet was judged, and nothing is in the lines. */
static void nothing_without_a_secret(void **unused)
{
	struct state s;

	(void)unused;
	kernel_now_ns = 100 * SECOND;
	begin("memory: 64Ki\nrules:\n- {name: a, limits: [{key: src, gap: 1s, entries: 8}]}\n");
	save_and_read(&s);
	UNSOUND(s.secret_ready, PACER_SECRET_OF_TOOLS + 1);
	s.secret_ready = PACER_SECRET_NONE;
	UNSOUND(s.lines[s.n_lines - 1].word64[7], 1);
	state_free(&s);
	detach();
}

/* What the tools follow of a state's policy lies within what there is of it. */
static void nothing_points_beyond(void **unused)
{
	struct pacer_limiter *window, *rate, *throttle, *gap, *wide;
	struct state s;

	(void)unused;
	kernel_now_ns = 100 * SECOND;
	begin("memory: 64Ki\nbans: 8\nclock: exact\nrules:\n- name: a\n  ban: 1s\n  limits:\n"
	      "  - {key: src, packets: 900, window: 1s, entries: 8}\n"
	      "  - {key: dst, rate: 9/s, burst: 9, entries: 8}\n"
	      "- name: b\n  limits:\n  - {key: src, gap: 1s, entries: 8}\n"
	      "  - {key: dst, bytes: 90G, window: 1s, entries: 8}\n"
	      "  - {key: all, uses: 9, cooldown: 1s, max_cooldown: 2s, threshold: 9}\n");
	save_and_read(&s);
	window = &s.bin->rule[0].limiter[0];
	rate = &s.bin->rule[0].limiter[1];
	gap = &s.bin->rule[1].limiter[0];
	wide = &s.bin->rule[1].limiter[1];
	throttle = &s.bin->rule[1].limiter[2];
	assert_true(pacer_limiter_kind_of(wide) == PACER_LIMITER_WINDOW &&
		    !pacer_window_narrow(&wide->window));
	assert_int_equal(pacer_limiter_kind_of(window), PACER_LIMITER_WINDOW);
	assert_int_equal(pacer_limiter_kind_of(rate), PACER_LIMITER_RATE);
	assert_int_equal(pacer_limiter_kind_of(gap), PACER_LIMITER_GAP);
	assert_int_equal(pacer_limiter_kind_of(throttle), PACER_LIMITER_THROTTLE);

	UNSOUND(s.bin->secret, 2);
	UNSOUND(window->secret, 2);
	UNSOUND(window->rows, PACER_ROWS_MAX + 1);
	UNSOUND(window->last_shift, 64);
	UNSOUND(window->generation, PACER_GENERATIONS);
	UNSOUND(window->share, PACER_SHARES);
	UNSOUND(window->kind, 0);
	UNSOUND(window->kind, 0xff);
	UNSOUND(window->base, (uint32_t)s.n_lines);
	UNSOUND(window->base, UINT32_MAX);
	UNSOUND(window->sets, UINT32_MAX);
	UNSOUND(window->window.ring, 1);
	UNSOUND(window->window.ring, PACER_RING_MAX + 1);
	UNSOUND(window->window.slot_ns, 0);
	UNSOUND(window->window.shift, 64);
	UNSOUND(wide->window.cost_shift, PACER_COST_SHIFT_MAX + 1);
	UNSOUND(window->units, 0);
	UNSOUND(window->units, window->units + 1);
	UNSOUND(window->window.units, window->units + 1);
	wide->units = wide->window.units += PACER_LINE_UNITS * (1 + PACER_EXTRA_MAX);
	assert_false(state_is_sound(&s));
	wide->units = wide->window.units = PACER_LINE_UNITS + 1;
	assert_false(state_is_sound(&s));
	wide->units = wide->window.units = PACER_LINE_UNITS;
	UNSOUND(rate->units, 2);
	UNSOUND(rate->rate.burst_ns, 1ull << 63);
	UNSOUND(rate->rate.begin_ns, 1ull << 63);
	UNSOUND(rate->rate.begin_ns, COMPILE_UNTIL_SET - 1);
	UNSOUND(rate->base, (uint32_t)s.n_lines);
	UNSOUND(gap->base, (uint32_t)s.n_lines);
	UNSOUND(gap->sets, (uint32_t)s.n_lines);
	UNSOUND(throttle->base, PACER_THROTTLES);
	UNSOUND(s.bin->rule[0].counter, PACER_COUNTERS_MAX);
	UNSOUND(s.bin->set_counter[PACER_SETS_MAX - 1], PACER_SET_COUNTERS);
	UNSOUND(s.bin->rule[7].n_limiters, PACER_LIMITERS_MAX + 1);
	UNSOUND(s.bin->bans.sets, INT32_MAX / 4);
	UNSOUND(s.bin->bans.base, (uint32_t)s.n_lines);
	UNSOUND(s.bin->bans.filter, (uint32_t)s.n_lines);
	UNSOUND(s.bin->bans.filter_mask, 2);
	UNSOUND(s.bin->flows.sets, INT32_MAX / 4);
	UNSOUND(s.bin->flows.sets, (uint32_t)s.n_lines);
	UNSOUND(s.bin->pool[3].n, PACER_TARGETS_MAX + 1);
	s.bin->pool[3].n = 2;
	UNSOUND(s.bin->pool[3].state[1], PACER_THROTTLES);
	UNSOUND(s.bin->draining[PACER_THROTTLES - 1].state, PACER_THROTTLES);
	state_free(&s);
	detach();
}

/* A CPU that never lets go of an entry: there is no copy of it, and none is made up. */
static void an_entry_that_is_held(void **unused)
{
	uint32_t at;
	struct state s;

	(void)unused;
	kernel_now_ns = 100 * SECOND;
	begin("memory: 64Ki\nclock: exact\nbans: 8\nrules:\n- name: a\n  ban: 1s\n  limits:\n"
	      "  - {key: src, packets: 9, window: 1s, entries: 8}\n"
	      "  - {key: all, uses: 9, cooldown: 1s, max_cooldown: 2s, threshold: 9}\n");
	at = copies[0].policy.rule[0].limiter[0].base;
	for (int i = 0; i < 3; i++) {
		__u32 *lock =
		    i == 2 ? &pacer.lines[copies[0].policy.bans.base].ban_lock
		    : i	   ? (__u32 *)&pacer.throttle[copies[0].policy.rule[0].limiter[1].base]
			   : (__u32 *)&pacer.lines[at];

		*lock = PACER_LOCK_HELD;
		assert_int_equal(state_init(&s, pacer.n_lines), 0);
		assert_int_equal(state_take(&pacer, 0, &s, &error), -1);
		assert_string_equal(error.text, "eth0: an entry of its state is being written to "
						"all the time: try again");
		state_free(&s);
		*lock = 0;
	}
	save_and_read(&s);
	state_free(&s);
	detach();
}

static int setup_file(void **unused)
{
	int fd;

	setup(unused);
	snprintf(path, sizeof(path), "/tmp/pacer-restore-XXXXXX");
	fd = mkstemp(path);
	close(fd);
	return fd < 0;
}

static int remove_file(void **unused)
{
	(void)unused;
	unlink(path);
	make_counts();
	for (int fd = KERNEL_COUNTS; fd < KERNEL_MAPS; fd++)
		kernel_map_new(fd, 4, 4);
	return 0;
}

#define FILE_TEST(f) cmocka_unit_test_setup_teardown(f, setup_file, remove_file)

/* What nobody has used is not written to: in a large table that would take memory, and time. */
static void what_is_unused(void **unused)
{
	const char *text = "bans: 64\nrules:\n"
			   "- {name: a, limits: [{key: src, gap: 1ms}, {key: src, rate: 10/s, "
			   "burst: 5}], ban: 1s}\n"
			   "- {name: b, limits: [{key: src, packets: 9, window: 1s}]}\n";
	static struct pacer_throttle_state throttles[PACER_THROTTLES];
	const struct compile_host host = host_now();
	struct policy *policy = parse(text);
	static struct pacer_policy bin;
	struct pacer_line *lines;
	uint64_t bytes;

	(void)unused;
	assert_int_equal(compile_memory(policy, &host, &bytes, &error), 0);
	assert_int_equal(compile_policy(policy, NULL, &host, &bin, &plan, &error), 0);
	lines = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(lines != MAP_FAILED);
	carry(&bin, lines, bytes / sizeof(*lines), throttles, -5, host.now_ns);
	munmap(lines, bytes);
	policy_free(policy);
}

/* A set that was read before it was known that limits of the saved state count by its values. */
static void a_set_without_its_values(void **unused)
{
	static const char keyed[] =
	    "memory: 1M\nsets: [{name: geo, file: /x, value: 2}]\nrules:\n- name: a\n  limits:\n"
	    "  - {key: 'value(geo, src)', packets: 3, window: 60s}\n  - {key: src, gap: 1s}\n";
	static const char bare[] =
	    "memory: 1M\nsets: [{name: geo, file: /x, value: 2}]\nrules:\n- name: a\n  limits:\n"
	    "  - {key: src, gap: 1s}\n";
	struct restored what;
	struct state s;

	(void)unused;
	begin(keyed);
	save_and_read(&s);
	assert_false(go_on(&s, bare, &what));
	assert_string_equal(error.text, "set geo was read without its values, by which limits of "
					"the saved state count: try again");
	state_free(&s);
	detach();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    FILE_TEST(a_set_without_its_values),
	    FILE_TEST(times_are_carried),
	    FILE_TEST(throttles_are_carried),
	    FILE_TEST(absences),
	    FILE_TEST(a_clock_that_errs),
	    FILE_TEST(beyond_all_clocks),
	    FILE_TEST(unfit_rule),
	    FILE_TEST(no_limit_is_passed),
	    FILE_TEST(nor_under_another_policy),
	    FILE_TEST(a_rate_cut_off),
	    FILE_TEST(a_throttle_that_cools_meanwhile),
	    FILE_TEST(leases_end_with_the_save),
	    FILE_TEST(what_is_allowed),
	    FILE_TEST(what_is_by_hand),
	    FILE_TEST(what_keys_share),
	    FILE_TEST(what_is_banned),
	    FILE_TEST(tables_of_another_size),
	    FILE_TEST(a_table_for_which_there_is_no_memory),
	    FILE_TEST(notes_of_bans),
	    FILE_TEST(until_when_any_is_banned),
	    FILE_TEST(bans_that_grow),
	    FILE_TEST(too_many_are_allowed),
	    FILE_TEST(what_is_counted),
	    FILE_TEST(no_memory_to_go_on),
	    FILE_TEST(nothing_is_made_up),
	    FILE_TEST(what_is_frozen),
	    FILE_TEST(damaged),
	    FILE_TEST(no_memory_for_it),
	    FILE_TEST(made_by_others),
	    FILE_TEST(nothing_points_beyond),
	    FILE_TEST(nothing_without_a_secret),
	    FILE_TEST(an_entry_that_is_held),
	    FILE_TEST(what_is_unused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
