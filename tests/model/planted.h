/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the faults that the model plants in the headers themselves, where they say
 * PACER_FAULT(name): a name that is not here does not compile, and test_model fails for one that no
 * row plants. Those of table.h and rule.h stand in faults.h.
 */
#ifndef PACER_PLANTED_H
#define PACER_PLANTED_H

/* clang-format off */
#define PLANTED_FAULTS(x) \
	x(TTL_PLAIN_STORE)       /* the filter's cells are raised without a compare-and-swap */ \
	x(THROTTLE_TORN_LOOK)    /* a refusal by reading does not look at the lock again */ \
	x(THROTTLE_JUDGED_ONCE)  /* what was seen free is taken without a look under the lock */ \
	x(THROTTLE_LET_GO_EARLY) /* the lock is given back before the lease is counted */ \
	x(LEASE_FORFEIT)         /* what is left of a lease is not handed back */ \
	x(LEASE_TWICE)           /* it is handed back, and stays on lease */ \
	x(LEASE_TO_NEWEST)       /* it is handed back to the newest bucket, not to its own */ \
	x(LEASE_TO_BUCKET_GONE)  /* it is handed back to a bucket that is back already */ \
	x(LEASE_NO_END)          /* a lease is used after its end */ \
	x(BUCKET_COOLS_EARLY)    /* a bucket cools from when it was leased from */ \
	x(UNDO_FORGETS)          /* the use that is undone is not given back */ \
	x(UNDO_UNLOCKED)        /* a use is undone in the shared state without its lock */ \
	x(BAN_READ_ONCE)         /* an entry is read without its lock */ \
	x(BAN_READ_BY_TIME)      /* it is whole where its time is the same after the look */ \
	x(BAN_UNLOCKED)         /* an entry is written without its lock */ \
	x(BAN_JUDGED_ONCE)       /* an entry is locked, and not looked at again */ \
	x(BAN_FILTER_LATE)       /* the filter is raised when the entry is there */ \
	x(BAN_EVICTS)            /* a full set makes room */ \
	x(BAN_ROW_TWICE)         /* a ban that another CPU enters counts as one before */ \
	x(FLOW_READ_ONCE)        /* a flow's line is believed though it was changed meanwhile */ \
	x(FLOW_UNLOCKED)         /* and written without its lock */ \
	x(FLOW_PLAIN_AGAIN)      /* its time is written whosever line it is by now */ \
	x(POOL_TO_OTHER)         /* a pool's lease is handed back to the other target */ \
	x(POOL_UNLOCKED)        /* and without a lock */ \
	x(POOL_NO_END)           /* and used after its end */
/* clang-format on */

#define PLANTED_NAME(name) FAULT_##name,
enum planted { FAULT_NONE, PLANTED_FAULTS(PLANTED_NAME) FAULT_COUNT };
#undef PLANTED_NAME

/* For the tests' time: the fault in force, and which have been. */
extern enum planted planted;
extern unsigned char planted_ever[FAULT_COUNT];

void plant(enum planted fault);

#define PACER_FAULT(name) (planted == FAULT_##name)

#endif
