/* SPDX-License-Identifier: GPL-2.0-only */
#include "offline/replay.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "pacer_fake.skel.h"
#include "sample.h"
#include "sets/set_maps.h"
#include "sets/texts.h"

struct pacer_walk;
static bool is_allowed(const struct pacer_walk *walk);

#define PACER_IS_ALLOWED(frame, walk, exact) ((void)(frame), (void)(exact), is_allowed(walk))
#include "path.h"

/* Addresses of one family that are allowed: from first to last, both included. */
struct span {
	unsigned __int128 first, last;
};

struct spans {
	struct span *at; /* sorted, apart from each other */
	size_t n;
};

/* The object, what of it is mapped, and its counters as they were after the last frame. */
struct kernel {
	struct pacer_fake_bpf *skel;
	struct pacer_counters seen[PACER_COUNTERS_MAX];
	struct pacer_counters *each;	       /* of one counter, a CPU each */
	struct pacer_throttle_lease *leases;   /* of one throttle, a CPU each */
	struct pacer_throttle_state *throttle; /* the object's */
	int cpus, cpu;			       /* the one that it runs on */
};

struct replay {
	const struct pacer_policy *bin;
	struct pacer_state state; /* the table is the kernel's where that judges */
	struct pacer_throttle_state throttle[PACER_THROTTLES];
	struct pacer_throttle_lease lease[PACER_THROTTLES];
	uint64_t secret[PACER_SECRETS];
	struct spans allow4, allow6;
	struct set_texts sets;
	struct set_lines lines[PACER_SETS_MAX]; /* of each */
	struct pacer_set set[PACER_SETS_MAX];	/* the same, as packets ask */
	struct kernel *kernel;			/* NULL: user space */
};

static int fail(struct policy_error *error, const char *what, int err)
{
	return policy_fail(error, err == ENOMEM ? POLICY_NO_MEMORY : 0, "replay: %s: %s%s", what,
			   strerror(err), err == EPERM ? ": --kernel wants root" : "");
}

/* --- the allow-list ------------------------------------------------------------------------- */

static unsigned __int128 wide(const uint32_t word[4])
{
	return (unsigned __int128)word[0] << 96 | (unsigned __int128)word[1] << 64 |
	       (unsigned __int128)word[2] << 32 | word[3];
}

static int span_order(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

/* IPv4 addresses stand in the first of four words, as they do in a packet's key. */
static struct span span_of(const struct prefix *prefix)
{
	uint32_t word[4] = {0};
	struct span s;

	for (int i = 0; i < (prefix->family == 4 ? 1 : 4); i++)
		word[i] = pacer_be32(prefix->addr + 4 * (size_t)i);
	s.first = wide(word);
	s.last = s.first |
		 (prefix->len ? ~(unsigned __int128)0 >> prefix->len % 128 : ~(unsigned __int128)0);
	if (prefix->len == 128)
		s.last = s.first;
	return s;
}

static int spans_fill(struct spans *s, const struct policy *policy, int family)
{
	size_t kept = 0;

	s->at = calloc(policy->n_allow + 1, sizeof(*s->at));
	if (!s->at)
		return -1;
	for (size_t i = 0; i < policy->n_allow; i++)
		if (policy->allow[i].family == family)
			s->at[s->n++] = span_of(&policy->allow[i]);
	qsort(s->at, s->n, sizeof(*s->at), span_order);
	for (size_t i = 0; i < s->n; i++) {
		if (kept && s->at[i].first <= s->at[kept - 1].last) {
			if (s->at[i].last > s->at[kept - 1].last)
				s->at[kept - 1].last = s->at[i].last;
			continue;
		}
		s->at[kept++] = s->at[i];
	}
	s->n = kept;
	return 0;
}

static bool spans_hold(const struct spans *s, const uint32_t saddr[4])
{
	unsigned __int128 address = wide(saddr);
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (s->at[middle].last < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < s->n && s->at[low].first <= address;
}

/* --- the sets ------------------------------------------------------------------------------- */

static int fill_sets(struct replay *r, const struct policy *policy, struct policy_error *error)
{
	if (set_texts_read(policy, &r->sets, error))
		return -1;
	for (size_t i = 0; i < r->sets.n; i++) {
		const struct set_list *list = &r->sets.text[i].list;

		if (set_build(list, i, &r->lines[i]) ||
		    (list->about && set_words_put(&r->lines[i], list->about)))
			return fail(error, "no memory for the policy's sets", errno);
		r->set[i] = set_lines_set(&r->lines[i]);
	}
	r->state.set = r->set;
	return 0;
}

/* What is asked stands in a struct replay. */
static bool is_allowed(const struct pacer_walk *walk)
{
	const struct replay *r =
	    (const void *)((const char *)walk->state - offsetof(struct replay, state));
	const struct spans *allow = walk->pkt.family == PACER_FAMILY_4 ? &r->allow4 : &r->allow6;

	return spans_hold(allow, &walk->pkt.key[PACER_WORD_SADDR]);
}

/* --- user space ----------------------------------------------------------------------------- */

static struct pacer_frame frame_of(const struct replay_frame *frame)
{
	uint32_t head = frame->captured < REPLAY_HEAD_BYTES ? frame->captured : REPLAY_HEAD_BYTES;

	return (struct pacer_frame){.data = frame->data,
				    .end = frame->data + head,
				    .len_bytes = frame->len_bytes,
				    .now_ns = frame->now_ns ? frame->now_ns : 1};
}

uint32_t replay_begin(struct replay *r, const struct replay_frame *frame, struct pacer_packet *pkt)
{
	struct pacer_walk walk = {.state = &r->state};
	struct pacer_frame f = frame_of(frame);
	uint32_t outcome = pacer_path_rule(&f, &walk, pacer_path_begin(&f, &walk, r->bin));

	*pkt = walk.pkt;
	return outcome;
}

/*
 * The lines where a key's record may be: its set's, which are two where a record takes a line, and
 * that of the record it shares. No limit of the rule is by a value, which is looked for later.
 */
static void request_lines(const struct pacer_walk *walk, const struct pacer_limiter *t)
{
	struct pacer_table *table = PACER_TABLE_OF(walk);
	struct pacer_hold hold;
	struct pacer_hash hash;

	if (pacer_quick_request(walk, t, &hold)) {
		hash = pacer_hold_hash(&hold);
		if (t->sets && t->units >= PACER_LINE_UNITS)
			pacer_request(pacer_entry_at(table, hold.index + t->units));
		if (t->sets)
			pacer_request(pacer_entry_at(table, pacer_shared_index(t, hash)));
	} else if (pacer_limiter_kind_of(t) == PACER_LIMITER_GAP) {
		hash = pacer_quick_hash(walk, t);
		pacer_request(pacer_entry_at(table, pacer_sketch_index(t, hash)));
	}
}

void replay_ahead(struct replay *r, const struct replay_frame *frame)
{
	struct pacer_walk walk = {.state = &r->state};
	struct pacer_frame f = frame_of(frame);

	if (r->kernel || pacer_path_begin(&f, &walk, r->bin) != PACER_UNDECIDED ||
	    walk.rule >= PACER_RULES_MAX)
		return;
	for (uint32_t i = 0; i < r->bin->rule[walk.rule].n_limiters; i++)
		request_lines(&walk, &r->bin->rule[walk.rule].limiter[i]);
}

/* --- the kernel ----------------------------------------------------------------------------- */

/* 0, or -errno. */
static int read_counter(struct kernel *k, uint32_t slot, struct pacer_counters *sum)
{
	memset(sum, 0, sizeof(*sum));
	if (bpf_map_lookup_elem(bpf_map__fd(k->skel->maps.pacer_counts), &slot, k->each))
		return -errno;
	for (int cpu = 0; cpu < k->cpus; cpu++)
		for (int i = 0; i < PACER_REASON_COUNT; i++) {
			sum->by[i].packets += k->each[cpu].by[i].packets;
			sum->by[i].bytes += k->each[cpu].by[i].bytes;
		}
	return 0;
}

/* 1 if this counter has grown by the frame, *reason being why; 0 if not; -ENODATA if not by it
 * alone, or another -errno. */
static int counted_in(struct kernel *k, uint32_t slot, uint32_t len_bytes,
		      enum pacer_reason *reason)
{
	struct pacer_counters now, *was = &k->seen[slot];
	int grown = 0, err = read_counter(k, slot, &now);

	if (err)
		return err;
	for (int i = 0; i < PACER_REASON_COUNT; i++) {
		if (now.by[i].packets == was->by[i].packets)
			continue;
		if (now.by[i].packets - was->by[i].packets != 1 ||
		    now.by[i].bytes - was->by[i].bytes != len_bytes)
			return -ENODATA;
		*reason = i;
		grown++;
	}
	*was = now;
	return grown > 1 ? -ENODATA : grown;
}

/* Which counter has grown: the likely one is looked at first, all others if it has not; -ENODATA if
 * none alone, or another -errno. */
static int find_counter(struct kernel *k, uint32_t likely, uint32_t len_bytes,
			enum pacer_reason *reason)
{
	int found = counted_in(k, likely, len_bytes, reason);

	if (found)
		return found < 0 ? found : (int)likely;
	for (uint32_t slot = 0; slot < PACER_COUNTERS_MAX; slot++) {
		found = counted_in(k, slot, len_bytes, reason);
		if (found)
			return found < 0 ? found : (int)slot;
	}
	return -ENODATA;
}

static uint32_t rule_of(const struct pacer_policy *bin, uint32_t counter)
{
	for (uint32_t i = 0; i < PACER_RULES_MAX; i++)
		if (pacer_rules_has(&bin->rules, i) && bin->rule[i].counter == counter)
			return i;
	return PACER_RULES_MAX;
}

/* What the kernel's CPU has leased of the throttle comes to stand where the core looks for it. 0,
 * or -errno. */
static int read_lease(struct replay *r, uint32_t index)
{
	struct kernel *k = r->kernel;

	index %= PACER_THROTTLES;
	if (bpf_map_lookup_elem(bpf_map__fd(k->skel->maps.pacer_leases), &index, k->leases))
		return -errno;
	r->lease[index] = k->leases[k->cpu];
	return 0;
}

/*
 * The limit that denied; -ENODATA where it cannot be told, or another -errno. A denied packet
 * changed nothing that it was judged by, so the kernel's state still tells: of a limit by asking
 * each in turn, and of a ban by looking for it.
 */
static int denying_limiter(struct replay *r, const struct pacer_walk *walk,
			   enum pacer_reason reason)
{
	const struct pacer_rule *rule = &r->bin->rule[walk->rule];
	uint32_t banned =
	    reason == PACER_DENY_BAN ? pacer_walk_banned(walk, r->bin->secret) : PACER_ADMIT;

	if (banned != PACER_ADMIT)
		return (int)pacer_outcome_limiter(banned);
	for (uint32_t i = 0; i < rule->n_limiters; i++) {
		const struct pacer_limiter *t = &rule->limiter[i];
		struct pacer_hold hold = {0};
		int err = 0;

		if (pacer_limiter_kind_of(t) == PACER_LIMITER_THROTTLE)
			err = read_lease(r, t->base);
		if (err)
			return err;
		if (pacer_walk_check(walk, i, &hold) == (int)reason)
			return (int)i;
	}
	return -ENODATA;
}

static int run_kernel(struct kernel *k, const struct replay_frame *frame, uint64_t now_ns,
		      struct policy_error *error)
{
	static uint8_t out[REPLAY_HEAD_BYTES];
	uint32_t head = frame->captured < REPLAY_HEAD_BYTES ? frame->captured : REPLAY_HEAD_BYTES;
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame->data, .data_size_in = head,
		    .data_out = out, .data_size_out = sizeof(out), .repeat = 1);

	k->skel->data_clock->pacer_fake_ns = now_ns;
	k->skel->data_length->pacer_fake_len = frame->len_bytes;
	if (bpf_prog_test_run_opts(bpf_program__fd(k->skel->progs.pacer), &opts))
		return fail(error, "the kernel does not run the frame", errno);
	return 0;
}

/* What could not be read is another failure than what was read and does not tell. */
static int fail_after(struct policy_error *error, const char *silent, int err)
{
	return fail(error, err == ENODATA ? silent : "the kernel's maps cannot be read", err);
}

static int judge_kernel(struct replay *r, const struct replay_frame *frame, struct pacer_walk *walk,
			uint32_t *outcome, struct policy_error *error)
{
	struct pacer_frame f = frame_of(frame);
	struct kernel *k = r->kernel;
	enum pacer_reason reason = PACER_REASON_COUNT;
	uint32_t likely = 0;
	int counter, limiter = 0;

	(void)pacer_path_rule(&f, walk, pacer_path_begin(&f, walk, r->bin));
	walk->now_ns = f.now_ns;
	if (walk->rule < PACER_RULES_MAX)
		likely = r->bin->rule[walk->rule].counter;
	if (run_kernel(k, frame, f.now_ns, error))
		return -1;
	counter = find_counter(k, likely, frame->len_bytes, &reason);
	if (counter < 0)
		return fail_after(
		    error, "the kernel's counters do not tell what became of the frame", -counter);
	walk->rule = rule_of(r->bin, counter);
	*outcome = reason;
	if (walk->rule >= PACER_RULES_MAX)
		return 0;
	if (pacer_outcome_denied(reason) && reason != PACER_DENY_VERDICT)
		limiter = denying_limiter(r, walk, reason);
	if (limiter < 0)
		return fail_after(error,
				  "the kernel's state does not tell which limit denied the frame",
				  -limiter);
	*outcome = pacer_outcome_under(pacer_outcome(reason, limiter), walk->rule);
	return 0;
}

static int kernel_allow(struct pacer_fake_bpf *skel, const struct policy *policy)
{
	struct pacer_control *control = &skel->data_control->pacer_control;
	struct pacer_allow_value value = {.of_policy = 1};

	for (size_t i = 0; i < policy->n_allow; i++) {
		const struct prefix *prefix = &policy->allow[i];
		struct pacer_allow6 key = {PACER_ALLOW_COPY_BITS + prefix->len, 0, {0}};
		bool four = prefix->family == 4;

		memcpy(key.addr, prefix->addr, four ? 4 : 16);
		if (bpf_map_update_elem(
			bpf_map__fd(four ? skel->maps.pacer_allow4 : skel->maps.pacer_allow6), &key,
			&value, BPF_ANY))
			return -1;
		++*(four ? &control->allowed[0].v4 : &control->allowed[0].v6);
	}
	return 0;
}

/* Each set in an array of its own, as it is in user space. */
static int kernel_sets(struct pacer_fake_bpf *skel, const struct set_texts *sets)
{
	int err = 0;

	for (uint32_t i = 0; i < sets->n && !err; i++)
		err = set_maps_put(bpf_map__fd(skel->maps.pacer_sets), i, &sets->text[i].list);
	return err;
}

static int no_print(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

/* One CPU takes all uses of a throttle, as the policy was compiled for. */
static int stay_on_cpu(struct kernel *k)
{
	cpu_set_t one;

	k->cpu = sched_getcpu();
	if (k->cpu < 0 || k->cpu >= k->cpus)
		return -1;
	CPU_ZERO(&one);
	CPU_SET(k->cpu, &one);
	return sched_setaffinity(0, sizeof(one), &one);
}

static void *map_memory(const struct bpf_map *map, size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	return at == MAP_FAILED ? NULL : at;
}

/* Load the object with the policy in it; its table and its throttles become the state's. */
static int kernel_load(struct replay *r, const struct policy *policy, uint64_t lines)
{
	struct kernel *k = r->kernel;
	struct pacer_control *control;

	libbpf_set_print(no_print);
	k->cpus = libbpf_num_possible_cpus();
	k->skel = pacer_fake_bpf__open();
	if (!k->skel || k->cpus < 1)
		return -1;
	k->each = calloc(k->cpus, sizeof(*k->each));
	k->leases = calloc(k->cpus, sizeof(*k->leases));
	control = &k->skel->data_control->pacer_control;
	memcpy(control->secret[0], r->secret, sizeof(r->secret));
	control->secret_ready = PACER_SECRET_OF_TOOLS;
	k->skel->data_policy->pacer_copies[0].policy = *r->bin;
	if (!k->each || !k->leases || stay_on_cpu(k) ||
	    bpf_map__set_max_entries(k->skel->maps.pacer_lines, lines) ||
	    pacer_fake_bpf__load(k->skel) || kernel_allow(k->skel, policy) ||
	    kernel_sets(k->skel, &r->sets))
		return -1;
	pacer_short_arm(&k->skel->data_policy->pacer_copies[0].policy, control, 0);
	r->state.table.lines =
	    map_memory(k->skel->maps.pacer_lines, lines * sizeof(struct pacer_line));
	k->throttle = map_memory(k->skel->maps.pacer_throttles, sizeof(r->throttle));
	if (!r->state.table.lines || !k->throttle)
		return -1;
	r->state.throttle = k->throttle;
	return 0;
}

/* --- both ----------------------------------------------------------------------------------- */

/* The same in every run: who replays judges the past, and nobody can aim at a place in it. */
static void fill_secret(uint64_t secret[PACER_SECRETS])
{
	struct pacer_sample_rng rng = {0x7064702d72706c79};

	for (uint32_t i = 0; i < PACER_SECRETS; i++)
		secret[i] = pacer_sample_random(&rng);
}

static int open_table(struct replay *r, const struct policy *policy, bool kernel,
		      struct policy_error *error)
{
	uint64_t lines = r->state.table.n;
	void *at;

	if (!kernel) {
		at = mmap(NULL, lines * sizeof(struct pacer_line), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (at == MAP_FAILED)
			return fail(error, "no memory for the policy's state", errno);
		/* A packet's state lies anywhere: fewer pages to find, where the kernel has them.
		 */
		(void)madvise(at, lines * sizeof(struct pacer_line), MADV_HUGEPAGE);
		r->state.table.lines = at;
		return 0;
	}
	r->kernel = calloc(1, sizeof(*r->kernel));
	if (!r->kernel)
		return fail(error, "no memory", ENOMEM);
	return kernel_load(r, policy, lines)
		   ? fail(error, "the object on a given clock does not load", errno)
		   : 0;
}

struct replay *replay_open(const struct policy *policy, const struct pacer_policy *bin,
			   uint64_t lines, bool kernel, struct policy_error *error)
{
	struct replay *r = calloc(1, sizeof(*r));

	if (!r) {
		fail(error, "no memory", ENOMEM);
		return NULL;
	}
	r->bin = bin;
	r->state = (struct pacer_state){.table = {NULL, lines},
					.policy = bin,
					.secret = (const __u64 *)r->secret,
					.throttle = r->throttle,
					.lease = r->lease};
	fill_secret(r->secret);
	if (spans_fill(&r->allow4, policy, 4) || spans_fill(&r->allow6, policy, 6)) {
		fail(error, "no memory for the allow-list", ENOMEM);
	} else if (!fill_sets(r, policy, error) && !open_table(r, policy, kernel, error)) {
		return r;
	}
	replay_close(r);
	return NULL;
}

int replay_judge(struct replay *r, const struct replay_frame *frame, struct replay_judged *judged,
		 struct policy_error *error)
{
	struct pacer_walk walk = {.state = &r->state};
	struct pacer_frame f = frame_of(frame);

	*judged = (struct replay_judged){0};
	if (!r->kernel || frame->captured < 14) /* the kernel runs no shorter ones */
		(void)pacer_path(&f, &walk, &judged->outcome);
	else if (judge_kernel(r, frame, &walk, &judged->outcome, error))
		return -1;
	judged->pkt = walk.pkt;
	memcpy(judged->value, walk.value, sizeof(judged->value));
	if (walk.rule < PACER_RULES_MAX && pacer_outcome_denied(judged->outcome))
		judged->open_ns = pacer_rule_when(&walk);
	else if (pacer_outcome_reason(judged->outcome) == PACER_DENY_VERDICT)
		judged->open_ns = PACER_NEVER;
	return 0;
}

enum pacer_reason replay_peek(struct replay *r, const struct pacer_packet *pkt, uint32_t rule,
			      uint32_t limiter, uint64_t time_ns)
{
	struct pacer_walk walk = {
	    .state = &r->state, .now_ns = time_ns ? time_ns : 1, .rule = rule, .pkt = *pkt};
	struct pacer_hold hold = {0};

	pacer_walk_values(&walk, rule);
	return pacer_outcome_reason(pacer_walk_check(&walk, limiter, &hold));
}

struct pacer_walk replay_walk(struct replay *r, const struct pacer_packet *pkt, uint64_t time_ns)
{
	return (struct pacer_walk){
	    .state = &r->state, .now_ns = time_ns ? time_ns : 1, .pkt = *pkt};
}

uint32_t replay_throttle_free(const struct replay *r, uint32_t rule, uint32_t limiter,
			      uint64_t time_ns)
{
	const struct pacer_limiter *t = &r->bin->rule[rule].limiter[limiter];
	const struct pacer_throttle_lease *lease = &r->lease[t->base % PACER_THROTTLES];

	return pacer_throttle_free(&t->throttle, &r->throttle[t->base % PACER_THROTTLES], time_ns) +
	       (time_ns <= lease->until_ns ? lease->left : 0);
}

void replay_close(struct replay *r)
{
	if (!r)
		return;
	if (r->state.table.lines)
		munmap(r->state.table.lines, r->state.table.n * sizeof(struct pacer_line));
	if (r->kernel) {
		pacer_fake_bpf__destroy(r->kernel->skel);
		if (r->kernel->throttle)
			munmap(r->kernel->throttle, sizeof(r->throttle));
		free(r->kernel->leases);
		free(r->kernel->each);
		free(r->kernel);
	}
	for (size_t i = 0; i < r->sets.n; i++)
		set_lines_free(&r->lines[i]);
	set_texts_free(&r->sets);
	free(r->allow4.at);
	free(r->allow6.at);
	free(r);
}
