#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A rotation of the hash's secret is killed at system calls and at points between: no count and
# no ban is lost, whichever secret is in force then.
#
#   client                          server
#   10.77.0.11-14   c0 ---- s0      the pacer; `xdp-pacer rotate`, killed
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/net/banning.sh
. "$(dirname "$0")/banning.sh"

cut=$(tool cut)

# after_a_kill: what was counted and banned before is so still, whichever secret is in force; what
# comes new is, too; and a rotation can be had, or is said to be one already.
after_a_kill()
{
	arrive "0 4 10" n=9,from=10.77.0.12 n=9 n=15,from=10.77.0.13 || return
	pacer rotate s0 >/dev/null 2>"$work/err" || grep -q 'needed for another' "$work/err" ||
		fail "after the kill: $(cat "$work/err")" || return
	arrive "0 0 0 10" n=9,from=10.77.0.12 n=9 n=9,from=10.77.0.13 n=15,from=10.77.0.14 || return
	banned "10.77.0.11 10.77.0.12 10.77.0.13 10.77.0.14"
}

# killed_at SYSCALL COUNT US: rotate, killed there. 1 if it was not reached.
killed_at()
{
	local code=0

	off
	load kill
	arrive "6 10" n=6 n=15,from=10.77.0.12
	in_server "$cut" "$1" "$2" "$3" 0 "$BUILD/xdp-pacer" rotate s0 >/dev/null || code=$?
	[ "$code" -eq 100 ] || [ "$code" -eq 0 ] || fail "$*: exit code $code" || exit 1
	[ "$code" -eq 0 ] || kills=$((kills + 1))
	after_a_kill || fail "$*: see above" || exit 1
	[ "$code" -eq 100 ]
}

# Every thirteenth of some 200, a prime, so that no kind of call is left out.
along_system_calls()
{
	local n kills=0

	banning kill
	for ((n = 0; n < 600; n += 13)); do
		killed_at flock "$n" 0 || break
	done
	[ "$n" -lt 600 ] || fail "a rotation has no end"
	[ "$kills" -ge 8 ] || fail "only $kills kills"
}

# From when it begins to write.
any_moment()
{
	local us kills=0

	banning kill 64
	for ((us = 15; us <= 180; us += 15)); do
		killed_at membarrier 1 "$us" || true
	done
	[ "$kills" -ge 3 ] || fail "only $kills kills"
}

net_up
check rotate-kill-along-system-calls along_system_calls
check rotate-kill-any-moment any_moment
finish
