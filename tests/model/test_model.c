/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every interleaving of two or three CPUs over the state of the limiters. Each
 * scenario is a truth: G1, G2 and a whole state at the end of all its schedules,
 * how many packets the best and the worst schedule admit, and how many states
 * there are at least, so that nothing passes by not being explored.
 *
 * The second table plants faults; the same explorer has to find each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "bans.h"
#include "flows.h"
#include "brief.h"
#include "faults.h"
#include "lease.h"
#include "named.h"
#include "pools.h"
#include "scenario.h"
#include "small.h"
#include "turned.h"

/* The tables leave out what is 0. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define ARRAY(a) (sizeof(a) / sizeof((a)[0]))

/* A mark with cells a and a + 1 + b of a sketch's line. */
#define CELLS(a, b) ((((b)*10923u + 1) << 16) | ((a)*9363u + 1))

/*
 * Places lead to a set's first or second record; those of 5 to 7 to the second set, where there are
 * two. Marks are tags.
 */
/* clang-format off */
#define RECORD_KEYS                                                                                \
	{[1] = {0, 1}, [2] = {1, 2}, [3] = {0, 3}, [4] = {1, 4},                                   \
	 [5] = {1u << 31, 5}, [6] = {1u << 31, 6}, [7] = {1u << 31, 7}}
#define SKETCH_KEYS                                                                                \
	{[1] = {0, CELLS(0, 0)}, [2] = {0, CELLS(1, 0)}, [3] = {0, CELLS(0, 1)}}

#define SKETCH(n, gap) {.kind = PACER_LIMITER_GAP, .rows = (n), .sets = 1, .gap_ns = (gap)}
/* Of a window of 100 in one slot: it counts for 100 to 200, and a record is idle after 200. */
#define RECORDS(n, window, m, ...)                                                                 \
	{.kind = PACER_LIMITER_WINDOW, .sets = (n), .shared = 1, .window_ns = (window), .slots = (m), \
	 __VA_ARGS__}
/* A burst of so many, and one more every 100, or `amount` every `every`. */
#define RATES(n, every, burst, ...)                                                                \
	{.kind = PACER_LIMITER_RATE, .sets = (n), .shared = 1, .window_ns = (every),                  \
	 .limit = (burst), __VA_ARGS__}
#define ALL(...) RECORDS(0, 100, 1, .all = true, __VA_ARGS__)
/* clang-format on */

static const struct scenario sound[] = {
    {
	.name = "sketch, one row, one key",
	.limiter = {SKETCH(1, 100)},
	.key = SKETCH_KEYS,
	.cpu = {{{1, 1000}, {1, 1050}, {1, 1120}}, {{1, 1010}, {1, 1090}, {1, 1100}}},
	.after = {{1, 1150}, {1, 1219}, {1, 1220}},
	.most = 2,
	.smallest = 2,
	.states_min = 6000,
    },
    {
	.name = "sketch, two rows, one key",
	.limiter = {SKETCH(2, 100)},
	.key = SKETCH_KEYS,
	.cpu = {{{1, 1000}, {1, 1050}, {1, 1120}}, {{1, 1010}, {1, 1090}, {1, 1100}}},
	.after = {{1, 1150}, {1, 1219}, {1, 1220}},
	.most = 2,
	.smallest = 2,
	.states_min = 10000,
    },
    {
	.name = "short way: sketch, two rows, one key",
	.limiter = {SKETCH(2, 100)},
	.key = SKETCH_KEYS,
	.cpu = {{{1, 1000}, {1, 1050}, {1, 1120}}, {{1, 1010}, {1, 1090}, {1, 1100}}},
	.after = {{1, 1150}, {1, 1219}, {1, 1220}},
	.most = 2,
	.smallest = 2,
	.states_min = 6000,
	.judge = brief_sketch,
    },
    {
	.name = "short way: sketch, two rows, two keys that share a cell",
	.limiter = {SKETCH(2, 100)},
	.key = SKETCH_KEYS,
	.cpu = {{{1, 1000}, {2, 1050}, {1, 1100}}, {{2, 1001}, {1, 1051}, {2, 1101}}},
	.after = {{1, 1150}, {2, 1150}, {1, 1201}, {2, 1201}},
	.most = 4,
	.smallest = 3,
	.states_min = 25000,
	.judge = brief_sketch,
    },
    {
	.name = "short way: set, empty, one key comes twice at once",
	.limiter = {RECORDS(1, 100, 1, .limit = 1)},
	.key = RECORD_KEYS,
	.cpu = {{{1, 1000}, {1, 1001}}, {{1, 1002}, {1, 1003}}},
	.after = {{1, 1100}, {1, 1203}},
	.most = 1,
	.smallest = 1,
	.states_min = 20000,
	.judge = brief_record,
    },
    {
	.name = "short way: set, its second record live, with a gap",
	.limiter = {RECORDS(1, 100, 1, .limit = 2, .gap_ns = 1)},
	.key = RECORD_KEYS,
	.before = {{3, 800}, {4, 999}},
	.cpu = {{{4, 1000}, {4, 1001}}, {{4, 1002}, {3, 1003}}},
	.after = {{3, 1100}, {4, 1101}, {4, 1200}, {3, 1204}},
	.most = 2,
	.smallest = 2,
	.states_min = 40000,
	.judge = brief_record,
    },
    {
	.name = "short way: set, both records live: the key is counted in the shared one",
	.limiter = {RECORDS(1, 100, 1, .limit = 1)},
	.key = RECORD_KEYS,
	.before = {{3, 950}, {4, 960}},
	.cpu = {{{1, 1000}, {1, 1001}}, {{1, 1002}, {1, 1003}}},
	.after = {{1, 1100}, {1, 1203}},
	.most = 1,
	.smallest = 1,
	.states_min = 600000,
	.judge = brief_record,
    },
    {
	.name = "short way: rate, one key",
	.limiter = {RATES(1, 100, 2)},
	.key = RECORD_KEYS,
	.before = {{1, 1000}},
	.cpu = {{{1, 1050}, {1, 1100}}, {{1, 1051}, {1, 1101}}},
	.after = {{1, 1150}, {1, 1300}},
	.most = 2,
	.smallest = 2,
	.states_min = 10000,
	.judge = brief_record,
    },
    {
	.name = "sketch, two rows, the clocks a gap apart",
	.limiter = {SKETCH(2, 100)},
	.key = SKETCH_KEYS,
	.before = {{1, 900}},
	.cpu = {{{1, 1000}, {1, 1001}}, {{1, 1100}, {1, 1101}}},
	.after = {{1, 1199}, {1, 1200}},
	.most = 2,
	.smallest = 1,
	.states_min = 3000,
    },
    {
	.name = "sketch, two rows, two keys that share a cell",
	.limiter = {SKETCH(2, 100)},
	.key = SKETCH_KEYS,
	.cpu = {{{1, 1000}, {2, 1050}, {1, 1100}}, {{2, 1001}, {1, 1051}, {2, 1101}}},
	.after = {{1, 1150}, {2, 1150}, {1, 1201}, {2, 1201}},
	.most = 4,
	.smallest = 3,
	.states_min = 30000,
    },
    {
	.name = "sketch, one row, two keys of one cell",
	.limiter = {SKETCH(1, 100)},
	.key = SKETCH_KEYS,
	.cpu = {{{1, 1000}, {3, 1050}}, {{3, 1001}, {1, 1101}}},
	.after = {{1, 1102}, {3, 1201}},
	.most = 2,
	.smallest = 2,
	.shares = true,
	.states_min = 1000,
    },
    {
	.name = "sketch, two rows, three CPUs",
	.limiter = {SKETCH(2, 100)},
	.key = SKETCH_KEYS,
	.cpu = {{{1, 1000}}, {{1, 1001}}, {{2, 1002}}},
	.after = {{1, 1050}, {1, 1101}},
	.most = 2,
	.smallest = 2,
	.states_min = 30000,
    },
    {
	.name = "window, limit 1",
	.limiter = {RECORDS(0, 100, 1, .limit = 1)},
	.key = RECORD_KEYS,
	.cpu = {{{1, 1000}, {1, 1099}, {1, 1200}}, {{1, 1001}, {1, 1100}, {1, 1199}}},
	.after = {{1, 1299}, {1, 1401}},
	.most = 2,
	.smallest = 1,
	.states_min = 10000,
    },
    {
	.name = "window, limit 2",
	.limiter = {RECORDS(0, 100, 1, .limit = 2)},
	.key = RECORD_KEYS,
	.cpu = {{{1, 1000}, {1, 1002}, {1, 1200}}, {{1, 1001}, {1, 1003}}},
	.after = {{1, 1250}, {1, 1250}, {1, 1350}},
	.most = 4,
	.smallest = 2,
	.states_min = 20000,
    },
    {
	.name = "window, bytes, eleven slots, a wide record",
	.limiter = {RECORDS(1, 100, 11, .limit = 300, .cost = PACER_COST_BYTES)},
	.key = RECORD_KEYS,
	.before = {{1, 1000, 100}},
	.cpu = {{{1, 1050, 150}, {1, 1105, 60}}, {{1, 1060, 100}}},
	.after = {{1, 1105, 40}, {1, 1125, 100}},
	.most = 2,
	.smallest = 1,
	.states_min = 2000,
    },
    {
	.name = "window and gap",
	.limiter = {RECORDS(0, 100, 1, .limit = 2, .gap_ns = 20)},
	.key = RECORD_KEYS,
	.cpu = {{{1, 1000}, {1, 1019}, {1, 1030}}, {{1, 1001}, {1, 1020}}},
	.after = {{1, 1101}, {1, 1221}, {1, 1240}, {1, 1241}},
	.most = 2,
	.smallest = 2,
	.states_min = 9000,
    },
    {
	.name = "window and gap, two slots, the ring turns",
	.limiter = {RECORDS(0, 100, 2, .limit = 2, .gap_ns = 30)},
	.key = RECORD_KEYS,
	.before = {{1, 1000}},
	.cpu = {{{1, 1060}, {1, 1160}}, {{1, 1040}, {1, 1155}}},
	.after = {{1, 1170}, {1, 1200}, {1, 1215}, {1, 1290}},
	.most = 2,
	.smallest = 2,
	.states_min = 10000,
    },
    {
	.name = "window, an advance beside a charge",
	.limiter = {RECORDS(1, 100, 2, .limit = 2)},
	.key = RECORD_KEYS,
	.before = {{1, 1000}},
	.cpu = {{{1, 1060}, {1, 1160}}, {{1, 1040}, {1, 1130}}},
	.after = {{1, 1165}, {1, 1200}, {1, 1215}, {1, 1215}},
	.most = 3,
	.smallest = 2,
	.states_min = 10000,
    },
    {
	.name = "set, empty, one key comes twice at once",
	.limiter = {RECORDS(1, 100, 1, .limit = 1)},
	.key = RECORD_KEYS,
	.cpu = {{{1, 1000}, {1, 1001}}, {{1, 1002}, {1, 1003}}},
	.after = {{1, 1100}, {1, 1203}},
	.most = 1,
	.smallest = 1,
	.states_min = 5000,
    },
    {
	.name = "set, empty, a key of its second record",
	.limiter = {RECORDS(1, 100, 1, .limit = 2)},
	.key = RECORD_KEYS,
	.cpu = {{{2, 1000}, {2, 1001}}, {{2, 1002}}},
	.after = {{2, 1100}, {2, 1203}},
	.most = 2,
	.smallest = 2,
	.states_min = 4000,
    },
    {
	.name = "set, its first record live",
	.limiter = {RECORDS(1, 100, 1, .limit = 1)},
	.key = RECORD_KEYS,
	.before = {{3, 950}},
	.cpu = {{{1, 1000}, {1, 1001}}, {{1, 1002}, {3, 1003}}},
	.after = {{1, 1100}, {3, 1100}, {3, 1150}, {1, 1203}},
	.most = 1,
	.smallest = 1,
	.states_min = 10000,
    },
    {
	.name = "set, its second record live",
	.limiter = {RECORDS(1, 100, 1, .limit = 2)},
	.key = RECORD_KEYS,
	.before = {{3, 800}, {4, 999}},
	.cpu = {{{1, 1000}, {1, 1001}}, {{1, 1002}, {4, 1003}}},
	.after = {{1, 1100}, {4, 1101}, {4, 1200}, {1, 1203}},
	.most = 3,
	.smallest = 3,
	.states_min = 10000,
    },
    {
	.name = "set, both records live: the key is counted in the shared one",
	.limiter = {RECORDS(1, 100, 1, .limit = 1)},
	.key = RECORD_KEYS,
	.before = {{3, 950}, {4, 960}},
	.cpu = {{{1, 1000}, {1, 1001}}, {{1, 1002}, {1, 1003}}},
	.after = {{1, 1100}, {1, 1203}},
	.most = 1,
	.smallest = 1,
	.states_min = 70000,
    },
    {
	.name = "set, both records live: two keys share",
	.limiter = {RECORDS(1, 100, 1, .limit = 2)},
	.key = RECORD_KEYS,
	.before = {{3, 950}, {4, 960}},
	.cpu = {{{1, 1000}, {2, 1001}}, {{2, 1002}, {1, 1003}}},
	.after = {{1, 1100}, {2, 1203}},
	.most = 2,
	.smallest = 2,
	.shares = true,
	.states_min = 200000,
    },
    {
	.name = "set, its first record idle for one CPU: the shared count comes along",
	.limiter = {RECORDS(1, 100, 1, .limit = 1)},
	.key = RECORD_KEYS,
	.before = {{3, 950}, {4, 1000}},
	.cpu = {{{1, 1149}, {1, 1149}}, {{1, 1151}, {1, 1152}}},
	.after = {{1, 1200}, {1, 1240}, {1, 1352}},
	.most = 1,
	.smallest = 1,
	.states_min = 30000,
    },
    {
	.name = "set, its second record idle for one CPU: the shared count comes along",
	.limiter = {RECORDS(1, 100, 1, .limit = 2, .gap_ns = 1)},
	.key = RECORD_KEYS,
	.before = {{3, 940}, {4, 950}, {3, 1060}},
	.cpu = {{{1, 1148}, {1, 1149}}, {{1, 1151}, {1, 1152}}},
	.after = {{1, 1200}, {1, 1240}, {1, 1352}, {1, 1353}},
	.most = 2,
	.smallest = 2,
	.states_min = 200000,
    },
    {
	.name = "set, its first record idle for one CPU: another key's shared count",
	.limiter = {RECORDS(1, 100, 1, .limit = 2)},
	.key = RECORD_KEYS,
	.before = {{3, 950}, {4, 1000}},
	.cpu = {{{1, 1149}, {2, 1149}}, {{1, 1151}, {2, 1152}}},
	.after = {{1, 1200}, {2, 1240}, {1, 1352}, {2, 1353}},
	.most = 4,
	.smallest = 2,
	.shares = true,
	.states_min = 200000,
    },
    {
	.name = "set, two keys adopt one idle record",
	.limiter = {RECORDS(1, 100, 1, .limit = 1)},
	.key = RECORD_KEYS,
	.before = {{3, 950}, {4, 1100}},
	.cpu = {{{1, 1160}, {1, 1161}}, {{2, 1160}, {2, 1161}}},
	.after = {{1, 1260}, {2, 1260}, {1, 1361}, {2, 1361}},
	.most = 2,
	.smallest = 2,
	.shares = true,
	.states_min = 20000,
    },
    {
	.name = "set, two keys adopt two idle records",
	.limiter = {RECORDS(1, 100, 1, .limit = 1)},
	.key = RECORD_KEYS,
	.before = {{3, 950}, {4, 951}},
	.cpu = {{{1, 1160}, {2, 1161}}, {{2, 1160}, {1, 1161}}},
	.after = {{1, 1260}, {2, 1260}, {1, 1361}, {2, 1361}},
	.most = 2,
	.smallest = 2,
	.states_min = 30000,
    },
    {
	.name = "two sets, one record shared: one CPU charges it, another inherits it",
	.limiter = {RECORDS(2, 100, 1, .limit = 2)},
	.key = RECORD_KEYS,
	.before = {{3, 950}, {4, 1000}, {5, 1000}, {6, 1000}, {1, 1060}},
	.cpu = {{{7, 1149}, {7, 1150}}, {{1, 1151}, {1, 1152}}},
	.after = {{1, 1161}, {1, 1162}, {7, 1163}, {7, 1260}},
	.most = 2,
	.smallest = 1,
	.shares = true,
	.states_min = 10000,
    },
    {
	.name = "set, a gap longer than the ring keeps a record",
	.limiter = {RECORDS(1, 100, 1, .limit = 2, .gap_ns = 300)},
	.key = RECORD_KEYS,
	.before = {{3, 950}, {4, 1000}},
	.cpu = {{{1, 1350}, {1, 1351}}, {{1, 1352}}},
	.after = {{3, 1360}, {1, 1649}, {1, 1652}},
	.most = 1,
	.smallest = 1,
	.shares = true,
	.states_min = 10000,
    },
    {
	.name = "set, a record is adopted under its key, clocks within the slack",
	.limiter = {RECORDS(1, 100, 1, .limit = 2, .slack_ns = 6)},
	.key = RECORD_KEYS,
	.before = {{3, 950}, {4, 1100}, {3, 1049}},
	.cpu = {{{3, 1151}, {3, 1151}}, {{2, 1157}}},
	.after = {{2, 1255}, {3, 1255}},
	.most = 3,
	.smallest = 3,
	.shares = true,
	.states_min = 8000,
    },
    {
	.name = "set, a record is adopted under its key, on the clock furthest ahead",
	.limiter = {RECORDS(1, 100, 1, .limit = 2)},
	.key = RECORD_KEYS,
	.before = {{3, 950}, {4, 1100}, {3, 1049}},
	.cpu = {{{3, 1149}, {3, 1149}}, {{2, 1150}}},
	.after = {{2, 1255}, {3, 1255}},
	.most = 3,
	.smallest = 1,
	.shares = true,
	.ahead = true,
	.states_min = 5000,
    },
    {
	.name = "set, empty, three CPUs",
	.limiter = {RECORDS(1, 100, 1, .limit = 1)},
	.key = RECORD_KEYS,
	.cpu = {{{1, 1000}}, {{1, 1001}}, {{2, 1002}}},
	.after = {{1, 1100}, {1, 1203}},
	.most = 2,
	.smallest = 2,
	.states_min = 100000,
    },
    {
	.name = "set, its first record idle for one of three CPUs",
	.limiter = {RECORDS(1, 100, 1, .limit = 1)},
	.key = RECORD_KEYS,
	.before = {{3, 950}, {4, 1000}},
	.cpu = {{{1, 1149}}, {{1, 1151}}, {{3, 1149}}},
	.after = {{1, 1200}, {1, 1240}, {1, 1352}},
	.most = 2,
	.smallest = 1,
	.shares = true,
	.states_min = 600000,
    },
    {
	.name = "two tiers, the second denies",
	.limiter = {SKETCH(2, 500), ALL(.limit = 1)},
	.key = SKETCH_KEYS,
	.cpu = {{{1, 1000}}, {{2, 1000}}},
	.after = {{1, 1201}, {2, 1401}, {1, 1602}, {2, 1850}},
	.most = 1,
	.smallest = 1,
	.states_min = 4000,
    },
    {
	.name = "two tiers, the second denies, records",
	.limiter = {RECORDS(1, 500, 1, .limit = 1), ALL(.limit = 1)},
	.key = RECORD_KEYS,
	.cpu = {{{1, 1000}, {1, 1001}}, {{2, 1000}}},
	.after = {{1, 1201}, {2, 1401}, {1, 2202}, {2, 2850}},
	.most = 1,
	.smallest = 1,
	.states_min = 40000,
    },
    {
	.name = "two tiers, two keys that share a record",
	.limiter = {RECORDS(0, 300, 1, .limit = 2), ALL(.limit = 1, .gap_ns = 20)},
	.key = RECORD_KEYS,
	.cpu = {{{1, 1000}, {2, 1202}}, {{2, 1001}}},
	.after = {{1, 1402}, {2, 1404}},
	.most = 2,
	.smallest = 2,
	.shares = true,
	.states_min = 30000,
    },
    {
	.name = "denials write nothing: sketch",
	.limiter = {SKETCH(2, 100)},
	.key = SKETCH_KEYS,
	.before = {{1, 1000}},
	.cpu = {{{1, 1010}, {1, 1020}}, {{1, 1010}, {1, 1099}}},
	.still = true,
	.states_min = 40,
    },
    {
	.name = "denials write nothing: record, and a clock behind",
	.limiter = {RECORDS(1, 100, 1, .limit = 2, .gap_ns = 10)},
	.key = RECORD_KEYS,
	.before = {{1, 1000}, {1, 1010}},
	.cpu = {{{1, 1010}, {1, 1020}, {1, 1199}}, {{1, 990}, {1, 1199}}},
	.still = true,
	.states_min = 100,
    },
    {
	.name = "denials write nothing: shared record",
	.limiter = {RECORDS(1, 100, 1, .limit = 1)},
	.key = RECORD_KEYS,
	.before = {{3, 1000}, {4, 1000}, {1, 1001}},
	.cpu = {{{1, 1010}, {2, 1020}, {1, 1199}}, {{2, 990}, {1, 1199}}},
	.shares = true,
	.still = true,
	.states_min = 100,
    },
    {
	.name = "denials write nothing: the second tier",
	.limiter = {SKETCH(2, 100), ALL(.limit = 1)},
	.key = SKETCH_KEYS,
	.before = {{1, 1000}},
	.cpu = {{{2, 1010}, {2, 1020}}, {{2, 1010}, {1, 1199}}},
	.still = true,
	.states_min = 100,
    },
    {
	.name = "rate, a burst of one",
	.limiter = {RATES(0, 100, 1)},
	.key = RECORD_KEYS,
	.cpu = {{{1, 1000}, {1, 1099}, {1, 1200}}, {{1, 1001}, {1, 1100}, {1, 1199}}},
	.after = {{1, 1250}, {1, 1300}, {1, 1399}, {1, 1400}},
	.most = 3,
	.smallest = 2,
	.states_min = 20000,
    },
    {
	.name = "rate, a burst of three",
	.limiter = {RATES(0, 100, 3)},
	.key = RECORD_KEYS,
	.cpu = {{{1, 1000}, {1, 1001}, {1, 1101}}, {{1, 1000}, {1, 1002}, {1, 1103}}},
	.after = {{1, 1150}, {1, 1200}, {1, 1201}, {1, 1300}},
	.most = 4,
	.smallest = 4,
	.states_min = 60000,
    },
    {
	.name = "rate, three CPUs",
	.limiter = {RATES(0, 100, 2)},
	.key = RECORD_KEYS,
	.cpu = {{{1, 1000}}, {{1, 1001}}, {{1, 1002}}},
	.after = {{1, 1099}, {1, 1100}, {1, 1101}},
	.most = 2,
	.smallest = 1,
	.states_min = 20000,
    },
    {
	.name = "rate, fractions of a ns",
	.limiter = {RATES(0, 1, 2, .amount = 2)},
	.key = RECORD_KEYS,
	.cpu = {{{1, 1000}, {1, 1000}}, {{1, 1000}, {1, 1001}}},
	.after = {{1, 1001}, {1, 1002}, {1, 1002}},
	.most = 3,
	.smallest = 2,
	.states_min = 5336,
    },
    {
	.name = "rate, bytes",
	.limiter = {RATES(1, 1, 300, .cost = PACER_COST_BYTES)},
	.key = RECORD_KEYS,
	.before = {{1, 1000, 100}},
	.cpu = {{{1, 1050, 150}, {1, 1100, 60}}, {{1, 1060, 100}}},
	.after = {{1, 1105, 200}, {1, 1125, 100}, {1, 1125, 301}},
	.most = 2,
	.smallest = 2,
	.states_min = 1000,
    },
    {
	.name = "rate, the clocks apart",
	.limiter = {RATES(0, 100, 2)},
	.key = RECORD_KEYS,
	.before = {{1, 1000}},
	.cpu = {{{1, 1100}, {1, 1101}}, {{1, 1190}, {1, 1200}}},
	.after = {{1, 1250}, {1, 1300}, {1, 1400}},
	.most = 3,
	.smallest = 2,
	.states_min = 5000,
    },
    {
	.name = "rates, a set, empty, one key comes twice at once",
	.limiter = {RATES(1, 100, 1)},
	.key = RECORD_KEYS,
	.cpu = {{{1, 1000}, {1, 1001}}, {{1, 1002}, {1, 1003}}},
	.after = {{1, 1099}, {1, 1103}},
	.most = 1,
	.smallest = 1,
	.states_min = 4000,
    },
    {
	.name = "rates, a set, its first entry live",
	.limiter = {RATES(1, 100, 1)},
	.key = RECORD_KEYS,
	.before = {{3, 950}},
	.cpu = {{{1, 1000}, {1, 1001}}, {{1, 1002}, {3, 1003}}},
	.after = {{3, 1049}, {3, 1050}, {1, 1103}},
	.most = 1,
	.smallest = 1,
	.states_min = 20000,
    },
    {
	.name = "rates, a set, both entries live: two keys share",
	.limiter = {RATES(1, 100, 2)},
	.key = RECORD_KEYS,
	.before = {{3, 950}, {4, 960}},
	.cpu = {{{1, 1000}, {2, 1001}}, {{2, 1002}, {1, 1003}}},
	.after = {{1, 1040}, {2, 1201}},
	.most = 2,
	.smallest = 2,
	.shares = true,
	.states_min = 100000,
    },
    {
	.name = "rates, a set, its first entry idle for one CPU: the shared TAT comes along",
	.limiter = {RATES(1, 100, 1)},
	.key = RECORD_KEYS,
	.before = {{3, 950}, {4, 1000}},
	.cpu = {{{1, 1049}, {1, 1049}}, {{1, 1051}, {1, 1052}}},
	.after = {{1, 1120}, {1, 1151}, {1, 1252}},
	.most = 1,
	.smallest = 1,
	.states_min = 20000,
    },
    {
	.name = "rates, a set, two keys adopt one idle entry",
	.limiter = {RATES(1, 100, 1)},
	.key = RECORD_KEYS,
	.before = {{3, 950}, {4, 1000}},
	.cpu = {{{1, 1060}, {1, 1061}}, {{2, 1060}, {2, 1061}}},
	.after = {{1, 1160}, {2, 1160}, {1, 1261}, {2, 1261}},
	.most = 2,
	.smallest = 2,
	.shares = true,
	.states_min = 10000,
    },
    {
	.name = "rates, an entry is adopted under its key, clocks within the slack",
	.limiter = {RATES(1, 100, 2, .slack_ns = 3)},
	.key = RECORD_KEYS,
	.before = {{3, 1000}, {4, 1050}},
	.cpu = {{{3, 1099}, {3, 1099}}, {{1, 1101}}},
	.after = {{3, 1150}, {1, 1210}},
	.most = 2,
	.smallest = 2,
	.shares = true,
	.states_min = 3000,
    },
    {
	.name = "rates, a set, empty, three CPUs",
	.limiter = {RATES(1, 100, 1)},
	.key = RECORD_KEYS,
	.cpu = {{{1, 1000}}, {{1, 1001}}, {{2, 1002}}},
	.after = {{1, 1099}, {1, 1102}},
	.most = 2,
	.smallest = 2,
	.states_min = 300000,
    },
    {
	.name = "rates, beside a window of all, which denies",
	.limiter = {RATES(1, 500, 1), ALL(.limit = 1)},
	.key = RECORD_KEYS,
	.cpu = {{{1, 1000}, {1, 1001}}, {{2, 1000}}},
	.after = {{1, 1201}, {2, 1401}, {1, 2202}, {2, 2850}},
	.most = 1,
	.smallest = 1,
	.states_min = 40000,
    },
    {
	.name = "a sketch beside a rate of all, which denies",
	.limiter = {SKETCH(2, 500), RATES(0, 200, 1, .all = true)},
	.key = SKETCH_KEYS,
	.cpu = {{{1, 1000}}, {{2, 1000}}},
	.after = {{1, 1199}, {2, 1200}, {1, 1500}, {2, 1750}},
	.most = 1,
	.smallest = 1,
	.states_min = 2000,
    },
    {
	.name = "denials write nothing: rate, and a clock behind",
	.limiter = {RATES(1, 100, 2)},
	.key = RECORD_KEYS,
	.before = {{1, 1000}, {1, 1010}},
	.cpu = {{{1, 1010}, {1, 1020}, {1, 1099}}, {{1, 990}, {1, 1099}}},
	.still = true,
	.states_min = 100,
    },
};

static const struct scenario faulty[] = {
    {
	.name = "fault: two rows, a compare-and-swap on the older cell alone",
	.limiter = {SKETCH(2, 100)},
	.key = SKETCH_KEYS,
	.cpu = {{{1, 1000}}, {{1, 1001}}},
	.judge = fault_cas_oldest,
	.finds = "G1: key 1 admitted",
    },
    {
	.name = "fault: the short way locks a sketch and raises it by what it read before",
	.limiter = {SKETCH(2, 100)},
	.key = SKETCH_KEYS,
	.cpu = {{{1, 1000}}, {{1, 1001}}},
	.judge = fault_brief_unjudged,
	.finds = "G1: key 1 admitted",
    },
    {
	.name = "fault: a ring that forgets a slot too early",
	.limiter = {RECORDS(0, 100, 2, .limit = 1)},
	.key = RECORD_KEYS,
	.cpu = {{{1, 1000}}, {{1, 1100}}},
	.spoil = fault_short_ring,
	.finds = "G1: key 1 has 2",
    },
    {
	/* What idle_ns without a slack costs where clocks differ: a time counts as the
	 * latest seen by its own key's record, which is gone.
	 */
	.name = "fault: a record is adopted by a clock further ahead than the slack",
	.limiter = {RECORDS(1, 100, 1, .limit = 2)},
	.key = RECORD_KEYS,
	.before = {{3, 950}, {4, 1100}, {3, 1049}},
	.cpu = {{{3, 1149}, {3, 1149}}, {{2, 1150}}},
	.shares = true,
	.finds = "G1: key 3 has 3",
    },
    {
	.name = "fault: a sketch without a claim",
	.limiter = {SKETCH(1, 100)},
	.key = SKETCH_KEYS,
	.cpu = {{{1, 1000}}, {{1, 1001}}},
	.judge = fault_no_lock,
	.finds = "G1: key 1 admitted",
    },
    {
	.name = "fault: a record without a claim",
	.limiter = {RECORDS(0, 100, 1, .limit = 1)},
	.key = RECORD_KEYS,
	.cpu = {{{1, 1000}}, {{1, 1001}}},
	.judge = fault_no_lock,
	.finds = "record 0 counts 1, of which 2",
    },
    {
	.name = "fault: the shared record's count is inherited without the set's claim",
	.limiter = {RECORDS(1, 100, 1, .limit = 1)},
	.key = RECORD_KEYS,
	.before = {{3, 950}, {4, 1000}},
	.cpu = {{{1, 1149}}, {{1, 1151}}},
	.judge = fault_inherit_unlocked,
	.finds = "G1: key 1 has 2",
    },
    {
	.name = "fault: the shared record's count is not inherited",
	.limiter = {RECORDS(1, 100, 1, .limit = 1)},
	.key = RECORD_KEYS,
	.before = {{3, 950}, {4, 1000}},
	.cpu = {{{1, 1149}}, {{1, 1151}}},
	.judge = fault_inherit_nothing,
	.finds = "G1: key 1 has 2",
    },
    {
	.name = "fault: a record is adopted without a second look under the set's claim",
	.limiter = {RECORDS(1, 100, 1, .limit = 1)},
	.key = RECORD_KEYS,
	.cpu = {{{1, 1000}}, {{1, 1001}}},
	.judge = fault_adopt_unseen,
	.finds = "tag 1 has both records",
    },
    {
	.name = "fault: a sketch is let go before it is written",
	.limiter = {SKETCH(2, 100)},
	.key = SKETCH_KEYS,
	.cpu = {{{1, 1000}}, {{1, 1001}}},
	.judge = fault_release_early,
	.finds = "G1: key 1 admitted",
    },
    {
	.name = "fault: a record is let go before it is written",
	.limiter = {RECORDS(0, 100, 1, .limit = 1)},
	.key = RECORD_KEYS,
	.cpu = {{{1, 1000}}, {{1, 1001}}},
	.judge = fault_release_early,
	.finds = "record 0 counts 1, of which 2",
    },
    {
	.name = "fault: a denial by what was read while it was written",
	.limiter = {RECORDS(0, 100, 2, .limit = 2, .gap_ns = 60)},
	.key = RECORD_KEYS,
	.before = {{1, 1000}, {1, 1090}},
	.cpu = {{{1, 1151}}, {{1, 1215}}},
	.judge = fault_torn_denial,
	.finds = "G2: key 1 denied",
    },
    {
	.name = "fault: the first tier counts before the second has judged",
	.limiter = {SKETCH(1, 100), ALL(.limit = 1)},
	.key = SKETCH_KEYS,
	.cpu = {{{1, 1000}}, {{2, 1000}}},
	.after = {{2, 1090}},
	.judge = fault_charge_early,
	.finds = "G2: key 2 denied",
    },
    {
	.name = "fault: the first tier is not let go when the second denies",
	.limiter = {SKETCH(1, 100), ALL(.limit = 1)},
	.key = SKETCH_KEYS,
	.cpu = {{{1, 1000}}, {{2, 1000}}},
	.judge = fault_left_held,
	.finds = "left held",
    },
    {
	.name = "fault: a rate without a claim",
	.limiter = {RATES(0, 100, 1)},
	.key = RECORD_KEYS,
	.cpu = {{{1, 1000}}, {{1, 1001}}},
	.judge = fault_no_lock,
	.finds = "G1: key 1 has 2",
    },
    {
	.name = "fault: a rate is let go before its TAT is written",
	.limiter = {RATES(0, 100, 1)},
	.key = RECORD_KEYS,
	.cpu = {{{1, 1000}}, {{1, 1001}}},
	.judge = fault_release_early,
	.finds = "G1: key 1 has 2",
    },
    {
	.name = "fault: a rate is let go before its fraction is written",
	.limiter = {RATES(0, 1, 1, .amount = 2)},
	.key = RECORD_KEYS,
	.cpu = {{{1, 1000}}, {{1, 1000}}},
	.judge = fault_frac_late,
	.finds = "G1: key 1 has 2",
    },
    {
	.name = "fault: a rate is counted as it was read",
	.limiter = {RATES(0, 100, 1)},
	.key = RECORD_KEYS,
	.cpu = {{{1, 1000}}, {{1, 1001}}},
	.judge = fault_same_unseen,
	.finds = "G1: key 1 has 2",
    },
    {
	.name = "fault: a rate's time goes on from a TAT that is past",
	.limiter = {RATES(0, 100, 2)},
	.key = RECORD_KEYS,
	.before = {{1, 1000}},
	.cpu = {{{1, 1900}, {1, 1900}}, {{1, 1900}}},
	.judge = fault_tat_kept,
	.finds = "G1: key 1 has 3",
    },
    {
	.name = "fault: the shared TAT is not inherited",
	.limiter = {RATES(1, 100, 1)},
	.key = RECORD_KEYS,
	.before = {{3, 950}, {4, 1000}},
	.cpu = {{{1, 1049}}, {{1, 1051}}},
	.judge = fault_inherit_nothing,
	.finds = "G1: key 1 has 2",
    },
    {
	.name = "fault: a rate's entry is adopted by a clock further ahead than the slack",
	.limiter = {RATES(1, 100, 2)},
	.key = RECORD_KEYS,
	.before = {{3, 1000}, {4, 1050}},
	.cpu = {{{3, 1099}, {3, 1099}}, {{1, 1101}}},
	.shares = true,
	.finds = "G1: key 3 has 3",
    },
};

enum planted planted;
unsigned char planted_ever[FAULT_COUNT];

void plant(enum planted fault)
{
	planted = fault;
	planted_ever[fault] = 1;
}

/* The last of all: no fault that a header knows of was left out. */
static void test_all_planted(void **state)
{
	(void)state;
#define EVER(name)                                     \
	if (!planted_ever[FAULT_##name])               \
		printf("  nobody plants " #name "\n"); \
	assert_true(planted_ever[FAULT_##name]);
	PLANTED_FAULTS(EVER)
#undef EVER
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static struct outcome outcome;

static void print_outcome(const char *name, double begun)
{
	const struct explore_result *r = &outcome.explored;

	printf("%s\n  %llu states, %llu ends (%llu contended), %llu runs for %.2g interleavings, "
	       "%u to %u admitted, %.2f s\n",
	       name, (unsigned long long)r->states, (unsigned long long)r->ends,
	       (unsigned long long)outcome.contended, (unsigned long long)r->runs, r->interleavings,
	       outcome.smallest, outcome.most, seconds() - begun);
	if (r->faults) {
		printf("  %llu faulty; the shortest: %s\n", (unsigned long long)r->faults,
		       r->fault);
		explore_print(stdout, &r->shortest);
	}
}

static void is_sound(uint64_t states_min, unsigned int most, unsigned int smallest)
{
	assert_int_equal(outcome.explored.faults, 0);
	assert_true(outcome.explored.states >= states_min);
	assert_true(outcome.explored.ends > 0);
	assert_int_equal(outcome.most, most);
	assert_int_equal(outcome.smallest, smallest);
}

static void is_found(const char *fault)
{
	assert_true(outcome.explored.faults > 0);
	assert_non_null(strstr(outcome.explored.fault, fault));
}

static void test_sound(void **state)
{
	const struct scenario *sc = *state;
	double begun = seconds();

	scenario_explore(sc, &outcome);
	print_outcome(sc->name, begun);
	is_sound(sc->states_min, sc->most, sc->smallest);
	assert_true(outcome.most >= outcome.in_turn[0]);
	assert_true(outcome.most >= outcome.in_turn[1]);
}

static void test_fault(void **state)
{
	const struct scenario *sc = *state;
	double begun = seconds();

	scenario_explore(sc, &outcome);
	print_outcome(sc->name, begun);
	is_found(sc->finds);
}

/* The tests of one kind of scenario: of a sound one, and of one in which a fault is planted. */
#define EXPLORED(what, kind, explore)                             \
	static void test_##what(void **state)                     \
	{                                                         \
		const struct kind *sc = *state;                   \
		double begun = seconds();                         \
                                                                  \
		explore(sc, &outcome);                            \
		print_outcome(sc->name, begun);                   \
		is_sound(sc->states_min, sc->most, sc->smallest); \
	}                                                         \
                                                                  \
	static void test_##what##_fault(void **state)             \
	{                                                         \
		const struct kind *sc = *state;                   \
		double begun = seconds();                         \
                                                                  \
		explore(sc, &outcome);                            \
		print_outcome(sc->name, begun);                   \
		is_found(sc->finds);                              \
	}

EXPLORED(lease, lease_scenario, lease_explore)
EXPLORED(bans, ban_scenario, bans_explore)
EXPLORED(flows, flow_scenario, flows_explore)

#define TESTS_MAX 192

static struct CMUnitTest tests[TESTS_MAX];
static size_t n_tests;

/* The sound scenarios again, with narrow records. */
static struct narrowed {
	struct scenario scenario;
	char name[128];
} narrowed[ARRAY(sound)];

static void add(const char *name, CMUnitTestFunction test, const void *row)
{
	assert_true(n_tests < TESTS_MAX);
	tests[n_tests++] = (struct CMUnitTest){name, test, NULL, NULL, (void *)row};
}

/* States are fewer: a narrow record is copied in two accesses. */
static void add_narrowed(size_t i)
{
	struct narrowed *to = &narrowed[i];
	bool any = false;

	to->scenario = sound[i];
	for (size_t k = 0; k < LIMITERS; k++) {
		struct limits *l = &to->scenario.limiter[k];

		l->narrow = l->kind == PACER_LIMITER_WINDOW && l->limit <= PACER_NARROW_LIMIT;
		any |= l->narrow;
	}
	if (!any)
		return;
	snprintf(to->name, sizeof(to->name), "%s, narrow", sound[i].name);
	to->scenario.name = to->name;
	to->scenario.states_min = sound[i].states_min / 4;
	add(to->name, test_sound, &to->scenario);
}

/* Arguments: words of names; then these tests are run only. */
int main(int argc, char **argv)
{
	size_t i;

	add("the explorer counts", test_explorer_counts, NULL);
	add("the explorer finds a lost update", test_explorer_finds_lost_update, NULL);
	add("the filter keeps the later time", test_ttl_keeps_later, NULL);
	add("fault: the filter by a plain store", test_ttl_finds_plain_store, NULL);
	add("a pool, its leases handed back", test_pool_interleavings, NULL);
	add("fault: a pool's leases handed back wrongly", test_pool_finds_faults, NULL);
	add("two secrets", test_turned, NULL);
	add("fault: two secrets", test_turned_finds_faults, NULL);
	for (i = 0; i < ARRAY(sound); i++)
		add(sound[i].name, test_sound, &sound[i]);
	for (i = 0; i < ARRAY(sound); i++)
		add_narrowed(i);
	for (i = 0; i < ARRAY(faulty); i++)
		add(faulty[i].name, test_fault, &faulty[i]);
	for (i = 0; i < lease_sound_n; i++)
		add(lease_sound[i].name, test_lease, &lease_sound[i]);
	for (i = 0; i < lease_faulty_n; i++)
		add(lease_faulty[i].name, test_lease_fault, &lease_faulty[i]);
	for (i = 0; i < ban_sound_n; i++)
		add(ban_sound[i].name, test_bans, &ban_sound[i]);
	for (i = 0; i < ban_faulty_n; i++)
		add(ban_faulty[i].name, test_bans_fault, &ban_faulty[i]);
	for (i = 0; i < flow_sound_n; i++)
		add(flow_sound[i].name, test_flows, &flow_sound[i]);
	for (i = 0; i < flow_faulty_n; i++)
		add(flow_faulty[i].name, test_flows_fault, &flow_faulty[i]);
	if (argc > 1)
		n_tests = named_first(tests, n_tests, argv + 1);
	else
		add("every fault of the headers is planted", test_all_planted, NULL);
	if (!n_tests) {
		fprintf(stderr, "test_model: no test's name has %s\n", argv[1]);
		return 2;
	}
	return _cmocka_run_group_tests("model", tests, n_tests, NULL, NULL);
}
