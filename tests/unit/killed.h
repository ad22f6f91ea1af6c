/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: a change of a pacer that is killed as it writes for the n-th time where packets look:
 * into the policy in force, what control holds, the states of throttles, a map, or, where a test
 * asks for it, the lines. Their pages are read-only; who writes faults, is let on for one
 * instruction, and they are read-only again.
 *
 * What the change has allocated by then is lost. To be linked as kernel.h says.
 */
#ifndef PACER_TEST_KILLED_H
#define PACER_TEST_KILLED_H

#include "paced.h"

#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#include "live/copies.h"

#ifdef __x86_64__
#define KILLED_AT_STORES 1
#define TRAP_FLAG	 0x100
#define FLAGS_OF(where)	 ((where)->uc_mcontext.gregs[REG_EFL])
#else /* there only as it writes into a map */
#define KILLED_AT_STORES 0
#endif

void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

static struct {
	sigjmp_buf here;
	uint32_t at, n; /* the last that it may write; so often it did */
	bool lines;	/* those, too: of changes that do not clear many */
	void (*grace_hook)(void);
} killed;

/* --- read-only pages ----------------------------------------------------------------------------
 */

static void let(void *from, size_t bytes, int how)
{
	uintptr_t page = (uintptr_t)from & ~(PAGE_BYTES - 1);

	if (KILLED_AT_STORES && mprotect((void *)page, (uintptr_t)from + bytes - page, how))
		_exit(3);
}

static void unguard(void)
{
	let(control, sizeof(*control), PROT_READ | PROT_WRITE);
	let(throttles, PACER_THROTTLES * sizeof(*throttles), PROT_READ | PROT_WRITE);
	let(copies, 2 * sizeof(*copies), PROT_READ | PROT_WRITE);
	if (killed.lines)
		let(pacer.lines, lines_bytes, PROT_READ | PROT_WRITE);
}

static void guard(void)
{
	let(control, sizeof(*control), PROT_READ);
	let(throttles, PACER_THROTTLES * sizeof(*throttles), PROT_READ);
	let(&copies[copies_in_force(&pacer)].policy, sizeof(struct pacer_policy), PROT_READ);
	if (killed.lines)
		let(pacer.lines, lines_bytes, PROT_READ);
}

/* It has written once more. */
static void count_or_kill(void)
{
	if (++killed.n != killed.at)
		return;
	unguard();
	siglongjmp(killed.here, 1);
}

#if KILLED_AT_STORES
static void on_fault(int signal, siginfo_t *info, void *where)
{
	static void *last;
	ucontext_t *at = where;

	(void)signal;
	if (last == info->si_addr && FLAGS_OF(at) & TRAP_FLAG) /* it is no page of these */
		abort();
	last = info->si_addr;
	unguard();
	FLAGS_OF(at) |= TRAP_FLAG;
}

static void on_step(int signal, siginfo_t *info, void *where)
{
	ucontext_t *at = where;

	(void)signal;
	(void)info;
	FLAGS_OF(at) &= ~TRAP_FLAG;
	count_or_kill();
	guard();
}

static void watch(bool on)
{
	static struct sigaction fault, step;
	struct sigaction mine = {.sa_flags = SA_SIGINFO | SA_NODEFER};

	if (on) {
		mine.sa_sigaction = on_fault;
		sigaction(SIGSEGV, &mine, &fault);
		mine.sa_sigaction = on_step;
		sigaction(SIGTRAP, &mine, &step);
	} else {
		sigaction(SIGSEGV, &fault, NULL);
		sigaction(SIGTRAP, &step, NULL);
	}
}
#else
static void watch(bool on)
{
	(void)on;
}
#endif

/* What befalls meanwhile is not the change's. */
static void unguarded(void)
{
	unguard();
	kernel_changing = NULL;
	killed.grace_hook();
	kernel_changing = count_or_kill;
	guard();
}

/* --- kills --------------------------------------------------------------------------------------
 */

/* True: it was killed as it wrote for the n-th time. Else it wrote less, and *result is its own. */
static inline bool kill_in(uint32_t n, int (*change)(const void *arg), const void *arg, int *result)
{
	volatile bool gone = true;

	killed.at = n;
	killed.n = 0;
	killed.grace_hook = grace_hook;
	if (grace_hook)
		grace_hook = unguarded;
	kernel_changing = count_or_kill;
	if (__lsan_disable)
		__lsan_disable();
	watch(true);
	if (!sigsetjmp(killed.here, 1)) {
		guard();
		*result = change(arg);
		unguard();
		gone = false;
	} else {
		close(kernel_lock);
	}
	watch(false);
	if (__lsan_enable)
		__lsan_enable();
	kernel_changing = NULL;
	grace_hook = killed.grace_hook;
	return gone;
}

#endif
