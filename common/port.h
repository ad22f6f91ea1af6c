/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Purpose: the only file that knows its host. Types, inlining, single-copy
 * loads and stores, and the two atomics of the core. It serves the kernel
 * (clang -target bpf), user space (gcc, clang) and the model checker, which
 * sees every step.
 *
 * Concurrency: pacer_load and pacer_store are single-copy accesses without
 * order. pacer_cas is fully ordered. pacer_release orders every access before it; in a kernel whose
 * machine is not known to keep stores in order it is an exchange, which is fully ordered.
 *
 * PACER_STEP_HOOK: the model checker defines it and the function
 * void pacer_step(const volatile void *p); it is called before each access to
 * shared memory at p, and nowhere else.
 *
 * PACER_FAULT(name): true if the model checker plants the fault of that name. A
 * fault leaves out a step or does it too early, and the checker has to find it.
 * Elsewhere it is the constant 0, and compilers remove it.
 */
#ifndef PACER_PORT_H
#define PACER_PORT_H

#include <linux/types.h>

#define PACER_INLINE   static inline __attribute__((always_inline, unused))
#define PACER_MUST_USE __attribute__((warn_unused_result))

/*
 * PACER_SUBPROG: a function of its own in the kernel, which keeps the caller short. PACER_GLOBAL:
 * the kernel verifies this function once, by itself, and not at every call. It knows only the types
 * of the arguments, which are scalars and pointers to plain data.
 */
#define PACER_SUBPROG static __attribute__((noinline, unused))
#ifdef __bpf__
#define PACER_GLOBAL __attribute__((noinline))
#else
#define PACER_GLOBAL static inline __attribute__((unused))
#endif

/* Before a loop: it is not unrolled, which would cost stack and verification in the kernel. */
#ifdef __clang__
#define PACER_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define PACER_ROLLED
#endif

/*
 * PACER_REPEAT(n, step, arg) calls int step(__u32 i, void *arg) for i from 0 to n - 1, until one
 * returns 1. The kernel's verifier follows a step once or twice, and a loop as often as it goes
 * round. So this is for long loops that are seldom run.
 */
#define PACER_STEP_OF static __attribute__((unused))
#ifdef __bpf__
#define PACER_REPEAT(n, step, arg) \
	((long (*)(__u32, int (*)(__u32, void *), void *, __u64))181)((n), (step), (arg), 0)
#else
#define PACER_REPEAT(n, step, arg)                                   \
	do {                                                         \
		__u32 at_;                                           \
                                                                     \
		for (at_ = 0; at_ < (n) && !step(at_, (arg)); at_++) \
			;                                            \
	} while (0)
#endif

#define PACER_NEVER (~0ull) /* as a time */

#define PACER_BARRIER() __asm__ __volatile__("" ::: "memory")

/*
 * Returns the value, but the compiler knows nothing about it. So a mask after it stays in the code,
 * where the kernel's verifier needs it.
 */
PACER_INLINE __u32 pacer_opaque(__u32 v)
{
	__asm__ __volatile__("" : "+r"(v));
	return v;
}

/*
 * Keeps the pointer as it is: else compilers add up its offset from where it came anew for every
 * field, if that is more than an instruction can have.
 */
#define PACER_AS_IT_IS(p) __asm__ __volatile__("" : "+r"(p))

/*
 * An argument of a PACER_GLOBAL that nothing reads on some host. Else compilers let callers pass
 * whatever its register holds, which verifiers refuse.
 */
#define PACER_ARGUMENT(a) __asm__ __volatile__("" : : "r"(a))

#ifdef PACER_STEP_HOOK
void pacer_step(const volatile void *p);
#define PACER_STEP(p) pacer_step(p)
#else
#define PACER_STEP(p) ((void)(p))
#endif

#ifndef PACER_FAULT
#define PACER_FAULT(name) 0
#endif

PACER_INLINE __u32 pacer_load(const __u32 *p)
{
	PACER_STEP(p);
	return *(const volatile __u32 *)p;
}

PACER_INLINE void pacer_store(__u32 *p, __u32 v)
{
	PACER_STEP(p);
	*(volatile __u32 *)p = v;
}

PACER_INLINE __u8 pacer_load8(const __u8 *p)
{
	PACER_STEP(p);
	return *(const volatile __u8 *)p;
}

PACER_INLINE void pacer_store8(__u8 *p, __u8 v)
{
	PACER_STEP(p);
	*(volatile __u8 *)p = v;
}

PACER_INLINE __u64 pacer_load64(const __u64 *p)
{
	PACER_STEP(p);
	return *(const volatile __u64 *)p;
}

PACER_INLINE void pacer_store64(__u64 *p, __u64 v)
{
	PACER_STEP(p);
	*(volatile __u64 *)p = v;
}

/* Asks for the line of memory that p is in, for whoever reads it soon. What it reads is not used,
 * so nothing waits for it.
 */
PACER_INLINE void pacer_request(const void *p)
{
#ifdef __bpf__
	(void)*(const volatile __u32 *)p; /* it has no other way to ask */
#else
	__asm__ volatile("" : "+r"(p)); /* gcc removes calls that do nothing else */
	__builtin_prefetch(p);
#endif
}

/* Returns what *p was. *p becomes `new` if and only if it was `old`. */
PACER_INLINE PACER_MUST_USE __u32 pacer_cas(__u32 *p, __u32 old, __u32 new)
{
	PACER_STEP(p);
	return __sync_val_compare_and_swap(p, old, new);
}

PACER_INLINE PACER_MUST_USE __u64 pacer_cas64(__u64 *p, __u64 old, __u64 new)
{
	PACER_STEP(p);
	return __sync_val_compare_and_swap(p, old, new);
}

/* Returns what *p was. */
PACER_INLINE __u64 pacer_add64(__u64 *p, __u64 n)
{
	PACER_STEP(p);
	return __sync_fetch_and_add(p, n);
}

/* Big-endian fields at any address. The kernel and the machines it runs on read unaligned words. */
typedef __u16 __attribute__((may_alias)) pacer_alias16;
typedef __u32 __attribute__((may_alias)) pacer_alias32;
typedef __u64 __attribute__((may_alias)) pacer_alias64;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define PACER_BE16(v)		       __builtin_bswap16(v)
#define PACER_BE32(v)		       __builtin_bswap32(v)
#define PACER_TWO_WORDS(first, second) ((first) | (__u64)(second) << 32)
#else
#define PACER_BE16(v)		       (v)
#define PACER_BE32(v)		       (v)
#define PACER_TWO_WORDS(first, second) ((__u64)(first) << 32 | (second))
#endif

/* Two words that were loaded as one: the lower half is that at the lower address. */
PACER_INLINE __u64 pacer_halves(__u64 words)
{
	return PACER_TWO_WORDS(words & 0xffffffff, words >> 32);
}

/* Two words as one, the first at the lower address. */
PACER_INLINE __u64 pacer_two_words(__u32 first, __u32 second)
{
	return PACER_TWO_WORDS(first, second);
}

PACER_INLINE __attribute__((no_sanitize("alignment"))) __u16 pacer_be16(const void *p)
{
	return PACER_BE16(*(const pacer_alias16 *)p);
}

PACER_INLINE __attribute__((no_sanitize("alignment"))) __u32 pacer_be32(const void *p)
{
	return PACER_BE32(*(const pacer_alias32 *)p);
}

#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)
PACER_INLINE void pacer_release(__u32 *p, __u32 v)
{
	PACER_BARRIER();
	pacer_store(p, v);
}

/* A load. Nothing after it is done before it. */
PACER_INLINE __u32 pacer_acquire(__u32 *p)
{
	__u32 v = pacer_load(p);

	PACER_BARRIER();
	return v;
}
#else
/* Elsewhere no exchange: gcc's keeps what comes after it in order, and nothing before it. */
PACER_INLINE void pacer_release(__u32 *p, __u32 v)
{
	PACER_STEP(p);
#ifdef __bpf__
	(void)__sync_lock_test_and_set(p, v);
#else
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
#endif
}

PACER_INLINE __u32 pacer_acquire(__u32 *p)
{
	PACER_STEP(p);
	return __sync_fetch_and_add(p, 0);
}
#endif

#endif
