/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packets of a few keys against one limit, or against a throttle or a pool, as fast as a CPU can,
 * with the time of every admission kept. HAMMER_FAULT makes locks that exclude nobody: the checker
 * has to find that.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "port.h"

#ifdef HAMMER_FAULT
__u64 hammer_met[2] SEC(".data.met"); /* of takers: that came, and pairs that were there at once */

/* Takers wait for each other, in pairs, before they take: two CPUs that run at once do take at
 * once. Bounded, since the other may be denied, or not be run at all.
 */
__attribute__((noinline)) int hammer_meet(void)
{
	__u64 ticket = __sync_fetch_and_add(&hammer_met[0], 1);
	__u32 i;

	for (i = 0; i < 2000 && !(ticket & 1); i++) {
		if (pacer_load64(&hammer_met[0]) > ticket + 1) {
			__sync_fetch_and_add(&hammer_met[1], 1);
			break;
		}
	}
	return 0;
}

PACER_INLINE __u32 hammer_take_anyway(__u32 *p, __u32 old, __u32 new)
{
	hammer_meet();
	pacer_store(p, new);
	return old;
}
#define pacer_cas(p, old, new) hammer_take_anyway(p, old, new)
#endif

struct pacer_line;
static struct pacer_line *hammer_line(__u32 index);
#define PACER_LINE_AT(table, index) hammer_line(index)

struct hammer_plan;
struct pacer_throttle_state;
static struct pacer_throttle_state *hammer_throttle(__u32 index);
#define PACER_POOL_STATE	      struct hammer_plan
#define PACER_POOL_TURN(plan)	      (&(plan)->turn)
#define PACER_POOL_THROTTLE(plan, at) ((void)(plan), hammer_throttle(at))

#include "hammer.h"
#include "pool.h"

char LICENSE[] SEC("license") = "GPL";

struct hammer_plan hammer_plan SEC(".data.plan");
struct hammer_cpu hammer_cpu[HAMMER_CPUS] SEC(".data.cpu");

struct hammer_lease hammer_lease[HAMMER_CPUS] SEC(".data.lease");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HAMMER_TARGETS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pacer_throttle_state);
} hammer_throttles SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HAMMER_LINES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pacer_line);
} hammer_lines SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HAMMER_CPUS *HAMMER_LOG);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct hammer_event);
} hammer_log SEC(".maps");

static __always_inline struct pacer_line *hammer_line(__u32 index)
{
	return bpf_map_lookup_elem(&hammer_lines, &index);
}

static __always_inline struct pacer_throttle_state *hammer_throttle(__u32 index)
{
	return bpf_map_lookup_elem(&hammer_throttles, &index);
}

/* The time with which the state that is held will count the packet: not before its last. */
static __always_inline __u64 hammer_at(const struct pacer_ask *q, const struct pacer_hold *hold)
{
	struct pacer_entry *head = pacer_entry_at(q->table, hold->index);
	__u64 last_ns = 0;

	if (head && q->limiter->kind == PACER_LIMITER_WINDOW) {
		last_ns = pacer_load64(&head->head_ns);
		if (q->limiter->gap_ns)
			last_ns = pacer_record_last(q->limiter, last_ns, pacer_load(&head->last));
	}
	return pacer_later(q->now_ns, last_ns);
}

static __always_inline void hammer_record(__u32 cpu, struct hammer_event event)
{
	struct hammer_cpu *mine = &hammer_cpu[cpu];
	__u32 index = cpu * HAMMER_LOG + (mine->n & (HAMMER_LOG - 1));
	struct hammer_event *at = bpf_map_lookup_elem(&hammer_log, &index);

	if (at)
		*at = event;
	mine->n++;
}

static __always_inline void hammer_count(__u32 cpu, enum pacer_reason reason)
{
	hammer_cpu[cpu].looks++;
	if (reason < PACER_REASON_COUNT)
		hammer_cpu[cpu].by[reason]++;
}

/* A use counts with the time that the lease has seen last. */
static __always_inline void hammer_used(__u32 cpu, int result, __u64 before_ns,
					const struct pacer_throttle_lease *lease, __u32 target)
{
	enum pacer_reason reason = PACER_DENY_THROTTLE;

	if (result == PACER_THROTTLE_ADMIT) {
		__u64 behind_ns = bpf_ktime_get_ns() - hammer_plan.skew_ns[cpu];

		hammer_record(
		    cpu, (struct hammer_event){before_ns, lease->seen_ns, behind_ns, target, 1});
		reason = PACER_ADMIT;
	} else if (result == PACER_THROTTLE_BUSY) {
		reason = PACER_DENY_CONTENDED;
	}
	hammer_count(cpu, reason);
}

__attribute__((noinline)) int hammer_use(__u32 cpu)
{
	struct pacer_throttle_state *state = hammer_throttle(0);
	struct pacer_throttle_lease *lease;
	int result = PACER_THROTTLE_FULL;
	__u64 now_ns;

	cpu &= HAMMER_CPUS - 1;
	lease = &hammer_lease[cpu].throttle;
	now_ns = bpf_ktime_get_ns() - hammer_plan.skew_ns[cpu];
	if (!state)
		return 0;
	if (!pacer_throttle_refuses(&hammer_plan.throttle, state, lease, now_ns))
		result = pacer_throttle_take(&hammer_plan.throttle, state, lease, now_ns, 1);
	hammer_used(cpu, result, now_ns, lease, 0);
	return 0;
}

__attribute__((noinline)) int hammer_next(__u32 cpu)
{
	struct pacer_pool_lease *lease;
	__u64 now_ns;
	int result;

	cpu &= HAMMER_CPUS - 1;
	lease = &hammer_lease[cpu].pool;
	now_ns = bpf_ktime_get_ns() - hammer_plan.skew_ns[cpu];
	result = pacer_pool_next(&hammer_plan.throttle, hammer_plan.targets, &hammer_plan, lease,
				 now_ns);
	hammer_used(cpu, result, now_ns, &lease->lease, lease->target);
	return 0;
}

/* As an interrupt would: some packets are judged long after their clock was read. */
static __always_inline void hammer_linger(__u64 before_ns)
{
	__u32 i;

	if (!hammer_plan.late_ns || bpf_get_prandom_u32() % HAMMER_LATE)
		return;
	for (i = 0; i < 1500 && bpf_ktime_get_ns() - before_ns < hammer_plan.late_ns; i++)
		;
}

__attribute__((noinline)) int hammer_look(__u32 cpu, __u32 key, __u32 cost)
{
	struct pacer_ask q =
	    pacer_ask_of(0, &hammer_plan.limiter, 0, (struct pacer_hash){0, 0}, cost);
	struct pacer_hold hold = {0};
	struct hammer_event event = {.key = key, .cost = cost};
	enum pacer_reason reason;

	cpu &= HAMMER_CPUS - 1;
	q.hash = hammer_plan.hash[key & (HAMMER_KEYS - 1)];
	q.now_ns = event.before_ns = bpf_ktime_get_ns() - hammer_plan.skew_ns[cpu];
	hammer_linger(event.before_ns);
	reason = pacer_entry_check(&q, &hold);
	if (reason == PACER_ADMIT)
		reason = pacer_entry_reserve(&q, &hold);
	if (reason == PACER_ADMIT) {
		event.at_ns = hammer_at(&q, &hold);
		pacer_entry_commit(&q, &hold);
		event.behind_ns = bpf_ktime_get_ns() - hammer_plan.skew_ns[cpu];
		hammer_record(cpu, event);
	}
	hammer_count(cpu, reason);
	return 0;
}

static __always_inline __u64 hammer_draw(__u32 cpu)
{
	__u64 v = hammer_cpu[cpu].chance;

	v ^= v << 13;
	v ^= v >> 7;
	v ^= v << 17;
	hammer_cpu[cpu].chance = v;
	return v;
}

SEC("xdp") int hammer(struct xdp_md *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id() & (HAMMER_CPUS - 1), i;
	__u64 begin_ns = bpf_ktime_get_ns(), busy_ns;
	__u32 phase = begin_ns >> (hammer_plan.phase_log2 & 63);

	(void)ctx;
	for (i = 0; i < HAMMER_LOOKS; i++) {
		__u64 chance = hammer_draw(cpu);
		__u32 key = phase + (chance & (hammer_plan.active - 1));

		if (hammer_plan.kind == HAMMER_THROTTLE)
			hammer_use(cpu);
		else if (hammer_plan.kind == HAMMER_POOL)
			hammer_next(cpu);
		else
			hammer_look(cpu, key & (hammer_plan.keys - 1),
				    1 + (chance >> 32 & (hammer_plan.cost_max - 1)));
	}
	busy_ns = bpf_ktime_get_ns() - begin_ns;
	if (busy_ns < HAMMER_RUN_NS)
		hammer_cpu[cpu].busy_ns += busy_ns;
	return XDP_PASS;
}
