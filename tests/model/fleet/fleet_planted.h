/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Purpose: the faults that the model plants in user/fleet, where it says PACER_FAULT(name): a name
 * that is not here does not compile, and test_fleet fails for one that no row plants.
 */
#ifndef PACER_FLEET_PLANTED_H
#define PACER_FLEET_PLANTED_H

/* clang-format off */
#define PLANTED_FAULTS(x) \
	x(BEGIN_EMPTY)       /* a record that is not found is begun with all its units free */ \
	x(LOWER_COLD)        /* what is given up does not cool */ \
	x(END_COLD)          /* what a member that is gone had does not cool */ \
	x(END_TAKES_RESERVE) /* its reserve is given to others */ \
	x(COOLS_FAST)        /* time left is counted by a clock that may be fast */ \
	x(COOLS_SINCE_SENT)  /* and since the record was asked for */ \
	x(COOLS_BY_UNITS)    /* as many units that cool are taken for those that cooled before */ \
	x(CLOCKS_EQUAL)      /* a session's end is counted as if clocks ran alike */ \
	x(END_FROM_ANSWER)   /* and from when the answer came */ \
	x(RAISE_IN_DOUBT)    /* the datapath is raised while a write may yet lower the cell */ \
	x(START_TRUSTING)    /* so it is by a member that begins anew */ \
	x(GIVE_UNAPPLIED)    /* a cell is lowered, and the datapath is not */ \
	x(RAISE_OVER)        /* units are taken that are not free */ \
	x(RAISE_ONE_LANE)    /* or not free in every lane */ \
	x(LANE_COLD)         /* who takes part in a lane forgets what cools */ \
	x(STEP_OUT_FULL)     /* who leaves a lane takes more than there is */ \
	x(RESUME_CELLS)      /* cells of a session that is over are gone on with */ \
	x(RESERVE_ON_CREDIT) /* a reserve is set aside of units that are not there yet */ \
	x(RESERVE_UNCLEAN)   /* a datapath that has forgotten uses its reserve at once */ \
	x(RESERVE_LOWERED_FIRST) /* a reserve falls in the record, and the datapath keeps it */ \
	x(RESERVE_FORGOTTEN) /* what a datapath before used of it does not cool */ \
	x(RESERVE_RAISED_AGAIN) /* the datapath has it again while a write may yet lower it */ \
	x(BACK_TRUSTING)     /* a share goes on though the store went back */
/* clang-format on */

#define PLANTED_NAME(name) FAULT_##name,
enum planted { FAULT_NONE, PLANTED_FAULTS(PLANTED_NAME) FAULT_COUNT };
#undef PLANTED_NAME

extern enum planted planted;

#define PACER_FAULT(name) (planted == FAULT_##name)

#endif
