#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The allow-list: no rule limits who is on it, whoever put it there and however it is changed.
#
#   client                                  server
#   10.77.0.11-14, fd77::11-12  c0 ---- s0  the pacer, which lets nothing through but one packet
#                                           a source; `xdp-pacer allow`
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

listed()
{
	equal "$(pacer allow s0 list --json | jq -r 'map(.prefix + if .of_policy then "*" else "" end) | sort | join(" ")')" \
		"$1" "allow-list"
}

# strict NAME ALLOW
strict()
{
	policy "$1" <<-END
	allow: [$2]
	rules:
	  - {name: strict, match: {proto: udp}, limits: [{key: src/32,128, packets: 1, window: 60s}]}
	END
}

by_hand()
{
	strict none ""
	load none
	listed ""
	arrive "1 1" n=20 n=20,from=fd77::11
	pacer allow s0 add 10.77.0.11 >/dev/null
	pacer allow s0 add fd77::10/124 >/dev/null
	listed "10.77.0.11 fd77::10/124"
	arrive "20 20 1 1" n=20 n=20,from=fd77::11 n=20,from=10.77.0.12 n=20,from=fd77::21
	equal "$(stats .no_limit.allowed)" 40 "packets of allowed sources"
	counted strict 80 4 0 76
	pacer allow s0 add 10.77.0.0/24 >/dev/null
	pacer allow s0 del 10.77.0.11 >/dev/null
	arrive "20 20" n=20 n=20,from=10.77.0.12
	pacer allow s0 del 10.77.0.0/24 >/dev/null
	arrive "0 0 20" n=20 n=20,from=10.77.0.12 n=20,from=fd77::11
	pacer allow s0 del fd77::10/124 >/dev/null
	listed ""
	arrive "0" n=20,from=fd77::11
	equal "$(status .allowed)" 0 "prefixes that status counts"
}

# Sources are never locked out: not by a rule that drops all, not by a policy put in meanwhile.
no_lock_out()
{
	strict all "10.77.0.14, \"fd77::12\""
	load all
	arrive "50 50 1" n=50,from=10.77.0.14 n=50,from=fd77::12 n=50
	strict none ""
	pacer allow s0 add 10.77.0.14 >/dev/null
	pacer set s0 strict.window=50s >/dev/null
	arrive "50 50" n=50,from=10.77.0.14 n=50,from=fd77::12
}

for_a_time()
{
	strict none ""
	load none
	pacer allow s0 add 10.77.0.11 --for 1s >/dev/null
	pacer allow s0 add 10.77.0.12 --for 1h >/dev/null
	arrive "20 20" n=20 n=20,from=10.77.0.12
	equal "$(pacer allow s0 list --json | jq 'map(.left_ns > 0) | all')" true "time left"
	until_true 3 lapsed
	arrive "1 20" n=20 n=20,from=10.77.0.12
	# An entry that has lapsed makes room for a new one, and its deletion is no error.
	pacer allow s0 add 10.77.0.11 >/dev/null
	arrive "20" n=20
	listed "10.77.0.11 10.77.0.12"
}

lapsed()
{
	[ "$(pacer allow s0 list --json | jq length)" -eq 1 ]
}

of_the_policy()
{
	strict one "10.77.0.11, \"fd77::/64\""
	strict two "10.77.0.12, \"fd77::/64\""
	strict none ""
	load one
	pacer allow s0 add 10.77.0.13 >/dev/null
	listed "10.77.0.11* 10.77.0.13 fd77::/64*"
	arrive "9 1 9 9" n=9 n=9,from=10.77.0.12 n=9,from=10.77.0.13 n=9,from=fd77::11
	apply two
	listed "10.77.0.12* 10.77.0.13 fd77::/64*"
	arrive "1 9 9 9" n=9 n=9,from=10.77.0.12 n=9,from=10.77.0.13 n=9,from=fd77::11
	apply none
	listed "10.77.0.13"
	arrive "0 0 9 1" n=9 n=9,from=10.77.0.12 n=9,from=10.77.0.13 n=9,from=fd77::11
}

# Made by hand, then also listed by a policy that later goes: what was made by hand stays.
by_hand_and_of_the_policy()
{
	strict with "10.77.0.11"
	strict none ""
	load none
	pacer allow s0 add 10.77.0.11 >/dev/null
	apply with
	apply none
	arrive "9" n=9
}

# Each change is whole however many are made at once, and the list is never passed over.
at_once()
{
	local n pids=()

	strict none ""
	load none
	for n in $(seq 1 20); do
		pacer allow s0 add "10.80.0.$n" >/dev/null &
		pids+=($!)
	done
	wait "${pids[@]}"
	equal "$(status .allowed)" 20 "prefixes that status counts"
	pids=()
	for n in $(seq 1 20); do
		pacer allow s0 del "10.80.0.$n" >/dev/null &
		pids+=($!)
	done
	wait "${pids[@]}"
	equal "$(status .allowed)" 0 "prefixes that status counts"
}

# Killed at any system call, an addition is there and works, or is not there.
killed()
{
	local cut n code want

	cut=$(tool cut)
	strict none ""
	load none
	for ((n = 0; n < 500; n++)); do
		code=0
		in_server "$cut" execve $((n + 100)) 0 0 "$BUILD/xdp-pacer" \
			allow s0 add 10.77.0.11 >/dev/null || code=$?
		want=0
		[ -z "$(pacer allow s0 list)" ] || want=1
		[ "$code" -eq 100 ] || break
		((want)) || continue
		arrive 9 n=9 || fail "killed at $n: listed, but not allowed" || exit 1
		pacer allow s0 del 10.77.0.11 >/dev/null
	done
	equal "$code $want" "0 1" "the addition at last: exit code, and whether it is listed"
}

net_up
check allow-by-hand by_hand
check allow-no-lock-out no_lock_out
check allow-for-a-time for_a_time
check allow-of-the-policy of_the_policy
check allow-by-hand-and-policy by_hand_and_of_the_policy
check allow-at-once at_once
check allow-killed killed
finish
