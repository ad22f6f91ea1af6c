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
	equal "$(pacer allow s0 list) $(pacer allow s0 list --json)" "s0: no source is on the allow-list []" \
		"an empty list"
	pacer allow s0 add 10.77.0.11 --for 5s >/dev/null
	pacer allow s0 add 10.77.0.12/31 >/dev/null
	pacer allow s0 add 10.77.0.12 --for 5s >/dev/null
	arrive "20 20" n=20 n=20,from=10.77.0.12
	equal "$(pacer allow s0 list --json | jq 'map(.left_ns > 0) | map(tostring) | join(" ")' -r)" \
		"true false true" "time left"
	until_true 6 lapsed
	# A shorter prefix that lets it through is not hidden by one that has lapsed.
	arrive "1 20" n=20 n=20,from=10.77.0.12
	equal "$(pacer why s0 10.77.0.12 --json | jq -r .allowed.prefix)" 10.77.0.12/31 "why, of one within another"
	equal "$(pacer why s0 10.77.0.11 --json | jq -c .allowed)" null "why, of one that has lapsed"
	# An entry that has lapsed makes room for a new one, and its deletion is no error.
	pacer allow s0 add 10.77.0.11 >/dev/null
	arrive "20" n=20
	listed "10.77.0.11 10.77.0.12/31"
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

# What was taken off by hand comes back with a policy that lists it, and with nothing else.
taken_off()
{
	strict one "10.77.0.11, 10.77.0.12"
	load one
	pacer allow s0 del 10.77.0.11 >/dev/null
	arrive "1 9" n=9 n=9,from=10.77.0.12
	pacer rotate s0 >/dev/null
	pacer set s0 strict.packets=2 >/dev/null
	pacer upgrade s0 >/dev/null
	listed "10.77.0.12*"
	pacer set s0 strict.packets=3 --confirm-within 1h >/dev/null
	listed "10.77.0.12*"
	lapse
	listed "10.77.0.12*"
	apply one
	listed "10.77.0.11* 10.77.0.12*"
	arrive "9" n=9
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
	for ((n = 0; n < 5000; n++)); do
		code=0
		in_server "$cut" socket "$n" 0 0 "$BUILD/xdp-pacer" \
			allow s0 add 10.77.0.11 >/dev/null || code=$?
		want=0
		[ "$(pacer allow s0 list --json | jq length)" -eq 0 ] || want=1
		[ "$code" -eq 100 ] || break
		((want)) || continue
		arrive 9 n=9 || fail "killed at $n: listed, but not allowed" || exit 1
		pacer allow s0 del 10.77.0.11 >/dev/null
	done
	equal "$code $want" "0 1" "the addition at last: exit code, and whether it is listed"
}

# --- one list for another ------------------------------------------------------------------------

# the_list: as it is, but for the time that passes.
the_list()
{
	pacer allow s0 list --json | jq -Sc 'map(.left_ns |= (. > 0) | .hand_left_ns |= (. > 0))'
}

# many NETWORK N SOURCE: a list of N prefixes of 10.NETWORK.0.0/16, the last of them SOURCE.
many()
{
	seq 0 $(($2 - 2)) | awk -v net="$1" '{ printf "10.%d.%d.%d,", net, $1 / 256, $1 % 256 }'
	echo "$3"
}

# A list that is full is replaced by another one in one step.
full_for_full()
{
	strict one "$(many 80 4096 10.77.0.11)"
	strict two "$(many 81 4096 10.77.0.12)"
	load one
	arrive "9 1 9" n=9 n=9,from=10.77.0.12 n=9,from=10.80.15.254
	apply two
	arrive "1 9 1 9" n=9 n=9,from=10.77.0.12 n=9,from=10.80.15.254 n=9,from=10.81.15.254
	equal "$(the_list | jq 'map(.of_policy and (.by_hand | not)) | "\(length) \(all)"')" \
		'"4096 true"' "entries, all of the policy"
	refused 1 's0: the allow-list is full: it holds 4096 IPv4 prefixes' \
		pacer allow s0 add 10.77.0.13
	arrive "1" n=9,from=10.77.0.13
	pacer allow s0 add fd77::11 >/dev/null
	apply one --confirm-within 1h
	arrive "9 0 9" n=9 n=9,from=10.77.0.12 n=9,from=fd77::11
	equal "$(status .allowed)" 4097 "prefixes that status counts"
	lapse
	arrive "0 9 0 9" n=9 n=9,from=10.77.0.12 n=9,from=10.80.15.254 n=9,from=10.81.15.254
	pacer allow s0 add 10.77.0.12 >/dev/null # it is there already: no room is needed
}

# A policy that is refused leaves nothing of itself, wherever it is found that it does not fit.
refused_whole()
{
	local was before

	strict old "10.77.0.11"
	strict new "$(many 80 4096 10.77.0.12)"
	load old
	pacer allow s0 add 10.77.0.13 >/dev/null
	pacer allow s0 add 10.77.0.14 --for 1h >/dev/null
	was=$(the_list)
	before=$(status .serial)
	refused 1 's0: the allow-list is full' pacer apply s0 -c "$work/new.yaml"
	refused 1 's0: the allow-list is full' pacer apply s0 -c "$work/new.yaml" --confirm-within 1s
	equal "$(the_list)" "$was" "allow-list after an apply that was refused"
	equal "$(status '"\(.serial) \(.allowed) \(.confirm_within_ns)"')" "$before 3 0" \
		"serial, prefixes, time to confirm"
	arrive "9 1 9 9 1" n=9 n=9,from=10.77.0.12 n=9,from=10.77.0.13 n=9,from=10.77.0.14 \
		n=9,from=10.80.0.5
	# Without those by hand it fits.
	pacer allow s0 del 10.77.0.13 >/dev/null
	pacer allow s0 del 10.77.0.14 >/dev/null
	apply new
	arrive "1 9 9" n=9 n=9,from=10.77.0.12 n=9,from=10.80.0.5
}

# --- on trial ------------------------------------------------------------------------------------

# The trial is the policy: what it takes off the list is off. What gives way comes back as it was.
tried()
{
	local was

	strict old "10.77.0.11, 10.77.0.12, \"fd77::11\""
	strict new "10.77.0.12, \"fd77::12\""
	load old
	pacer allow s0 add 10.77.0.13 --for 1h >/dev/null
	was=$(the_list)
	apply new --confirm-within 1h
	arrive "1 9 9 1 9 1" n=9 n=9,from=10.77.0.12 n=9,from=10.77.0.13 n=9,from=10.77.0.14 \
		n=9,from=fd77::12 n=9,from=fd77::11
	listed "10.77.0.12* 10.77.0.13 fd77::12*"
	equal "$(the_list | jq -c 'map(.left_ns)')" '[false,true,false]' "which have an end"
	lapse
	equal "$(the_list)" "$was" "allow-list after the roll-back"
	arrive "9 9 9 0 1 9" n=9 n=9,from=10.77.0.12 n=9,from=10.77.0.13 n=9,from=10.77.0.14 \
		n=9,from=fd77::12 n=9,from=fd77::11
}

# What is confirmed is for ever, the time of the trial included.
tried_and_confirmed()
{
	local was

	strict old "10.77.0.11"
	strict new "10.77.0.12, 10.77.0.13"
	load old
	pacer allow s0 add 10.77.0.12 >/dev/null
	apply new --confirm-within 5s
	was=$(the_list)
	equal "$(jq -c 'map([.prefix, .of_policy, .by_hand, .left_ns])' <<<"$was")" \
		'[["10.77.0.12",true,true,false],["10.77.0.13",true,false,false]]' "list on trial"
	pacer confirm s0 >/dev/null
	arrive "1 9 9" n=9,wait_ms=5100 n=9,from=10.77.0.12 n=9,from=10.77.0.13
	equal "$(the_list)" "$was" "allow-list after confirm"
	# Whose they are is still known when another policy comes.
	apply old
	listed "10.77.0.11* 10.77.0.12"
}

# By hand in the midst of a trial: for both policies.
by_hand_on_trial()
{
	local after

	strict old "10.77.0.11, 10.77.0.12"
	strict new "10.77.0.12"
	for after in roll_back confirm; do
		off
		load old
		pacer allow s0 add 10.77.0.14 >/dev/null
		apply new --confirm-within 1h
		pacer allow s0 add 10.77.0.13 >/dev/null
		pacer allow s0 add fd77::13 --for 1h >/dev/null
		pacer allow s0 del 10.77.0.12 >/dev/null
		pacer allow s0 del 10.77.0.14 >/dev/null
		listed "10.77.0.13 fd77::13"
		if [ "$after" = confirm ]; then
			pacer confirm s0 >/dev/null
			listed "10.77.0.13 fd77::13"
		else
			pacer allow s0 del 10.77.0.11 >/dev/null # only on the list to come back
			refused 1 'is not on the allow-list' pacer allow s0 del 10.77.0.11
			lapse
			listed "10.77.0.13 fd77::13"
		fi
		arrive "1 1 9 1 9" n=9 n=9,from=10.77.0.12 n=9,from=10.77.0.13 n=9,from=10.77.0.14 \
			n=9,from=fd77::13
	done
}

# Two reasons to be on the list, each with its own end, and what is shown of them.
time_left()
{
	strict with "10.77.0.11"
	strict none ""
	load with
	pacer allow s0 add 10.77.0.11 --for 1h >/dev/null
	pacer allow s0 add 10.77.0.12 --for 90s >/dev/null
	pacer allow s0 add 10.77.0.13 >/dev/null
	equal "$(pacer allow s0 list --json | jq -c 'map([.prefix, .of_policy, .by_hand,
		.left_ns > 0, .hand_left_ns > 3590e9 and .hand_left_ns <= 3600e9])')" \
		'[["10.77.0.11",true,true,false,true],["10.77.0.12",false,true,true,false],["10.77.0.13",false,true,false,false]]' \
		"the list in JSON"
	pacer allow s0 list | sed 's/  */ /g; s/1h left/60m left/; s/59m [0-9]*s left/60m left/
		s/1m [0-9]*s left/90s left/' >"$work/text"
	equal "$(cat "$work/text")" "10.77.0.11 of the policy, by hand 60m left
10.77.0.12 by hand 90s left
10.77.0.13 by hand" "the list as text"
	apply none
	equal "$(pacer allow s0 list --json | jq -c '.[0] | [.prefix, .of_policy, .left_ns > 3590e9]')" \
		'["10.77.0.11",false,true]' "what the policy had, too"
	apply with
	pacer allow s0 add 10.77.0.11 --for 1s >/dev/null
	until_true 2 of_the_policy_alone || fail "$(pacer allow s0 list)"
}

# What was done by hand is over.
of_the_policy_alone()
{
	pacer allow s0 list | grep -qx '10.77.0.11  *of the policy *'
}

net_up
check allow-by-hand by_hand
check allow-no-lock-out no_lock_out
check allow-for-a-time for_a_time
check allow-of-the-policy of_the_policy
check allow-taken-off taken_off
check allow-by-hand-and-policy by_hand_and_of_the_policy
check allow-at-once at_once
check allow-killed killed
check allow-full-for-full full_for_full
check allow-refused-whole refused_whole
check allow-tried tried
check allow-tried-and-confirmed tried_and_confirmed
check allow-by-hand-on-trial by_hand_on_trial
check allow-time-left time_left
finish
