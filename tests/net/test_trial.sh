#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# load and set on trial: what nobody confirms is taken back, also where every process that could do
# it has been killed. The policy of these tests lets ten packets of a source pass in a minute.
#
#   client                          server
#   10.77.0.11-18, fd77::11   c0 ---- s0    xdp-pacer load --confirm-within; a process that waits
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

# waiting: the processes that wait for a trial to end.
waiting()
{
	local pid

	for pid in $(ip netns pids "$SERVER"); do
		[ "$(cat "/proc/$pid/comm" 2>/dev/null)" != xdp-pacer ] || echo "$pid"
	done
}

none_waits()
{
	[ -z "$(waiting)" ]
}

nothing_is_on()
{
	[ "$(what_is_on s0)" = "{}" ]
}

has_lapsed()
{
	[ "$(status .lapsed)" = true ]
}

load_confirmed()
{
	load ten --confirm-within 120s
	equal "$(status '[.confirm_within_ns > 100000000000, .lapsed] | tojson')" "[true,false]" \
		"on trial, lapsed"
	pacer status s0 | grep -q 'is taken off in 1[0-9.]* s unless confirmed' || fail "status"
	arrive "10" n=20
	refused 1 'waits to be confirmed' pacer apply s0 -c "$work/ten.yaml"
	refused 1 'waits to be confirmed' pacer set s0 udp.packets=5
	equal "$(waiting | wc -l)" 1 "processes that wait"
	pacer confirm s0 >/dev/null
	until_true 3 none_waits
	equal "$(status '[.confirm_within_ns, .lapsed] | tojson')" "[0,false]" "left to confirm, lapsed"
	arrive "0 10" n=20 n=20,from=fd77::11
	refused 1 'no policy waits' pacer confirm s0
}

# What why tells of a time after the trial holds if the policy is confirmed: it says so, and not of a time before.
why_on_trial()
{
	local asked="udp 10.77.0.11:4000 > 10.77.0.1:9000" within

	for within in 20s 300s; do
		load ten --confirm-within "$within"
		arrive "10" n=20
		equal "$(pacer why s0 "$asked" --json | jq -c '[.reason, .trial_ns != null]')" \
			"[\"window\",$([ $within = 20s ] && echo true || echo false)]" "why, on trial for $within" || return
		equal "$(pacer why s0 "$asked" | grep -c '^  trial     this policy is on trial for another .*: unless')" \
			"$([ $within = 20s ] && echo 1 || echo 0)" "its line, on trial for $within" || return
		equal "$(pacer why s0 10.77.0.11 --json | jq -c '[.rules[0].limits[0].reason, .trial_ns != null]')" \
			"[\"window\",$([ $within = 20s ] && echo true || echo false)]" "why of a key, on trial for $within" || return
		equal "$(pacer why s0 10.77.0.11 | grep -c '^  trial     this policy is on trial for another .*: unless')" \
			"$([ $within = 20s ] && echo 1 || echo 0)" "its line, on trial for $within" || return
		equal "$(pacer why s0 10.77.0.12 --json | jq -c .trial_ns)" null "why of a key that is denied nothing" || return
		pacer confirm s0 >/dev/null
		equal "$(pacer why s0 "$asked" --json | jq -c '[.reason, .trial_ns]')" '["window",null]' "why, confirmed" || return
		equal "$(pacer why s0 10.77.0.11 --json | jq -c .trial_ns)" null "why of a key, confirmed" || return
		pacer unload s0 >/dev/null
	done
}

# Of a key, anything that is shown may deny it beyond the trial: a ban, a verdict, and what no rule matches.
why_of_keys_on_trial()
{
	policy verdicts <<-END
	bans: 64
	rules:
	  - {name: good, match: {src: 10.77.0.12}, verdict: pass}
	  - {name: bad, match: {src: 10.77.0.13}, verdict: drop}
	END
	load verdicts --confirm-within 300s
	pacer ban s0 add 10.77.0.14 >/dev/null
	equal "$(for key in 10.77.0.{11..14}; do pacer why s0 "$key" --json | jq '.trial_ns != null'; done | xargs)" \
		"false false true true" "an address of no rule, of a pass, of a drop, and a banned one" || return
	pacer unload s0 >/dev/null
	echo 'else: drop' >>"$work/verdicts.yaml"
	load verdicts --confirm-within 300s
	equal "$(for key in 10.77.0.{11,12}; do pacer why s0 "$key" --json | jq '.trial_ns != null'; done | xargs)" \
		"true false" "of no rule, and of a pass, where the rest is dropped"
}

# A trial that is over before anybody could confirm it is no change that was made.
over_at_once()
{
	load ten
	refused 1 '^xdp-pacer: s0: its trial is over already: give it longer$' \
		pacer set s0 udp.packets=30 --confirm-within 1ns
	equal "$(status .confirm_within_ns)" 0 "left to confirm" || return
	arrive "10" n=20
	pacer unload s0 >/dev/null
	pacer load s0 -c "$work/ten.yaml" --confirm-within 1ns >"$work/out"
	grep -q '^nobody confirmed it in time, and it is taken off: load s0 again$' "$work/out" ||
		fail "$(cat "$work/out")"
	until_true 8 nothing_is_on
}

load_taken_off()
{
	load ten --confirm-within 5s
	arrive "10" n=20
	until_true 8 nothing_is_on
	arrive "20" n=20
	until_true 3 none_waits
	refused 1 'has no pacer' pacer confirm s0
	load ten
	arrive "10" n=20
}

# With the process that waits, everything that knows of the trial is gone but the pacer itself.
load_all_killed()
{
	load ten --confirm-within 5s
	waiting | xargs kill -KILL
	until_true 3 none_waits || fail "it still waits"
	arrive "10" n=20
	until_true 8 has_lapsed
	arrive "20 20 20" n=20 n=20,from=fd77::11 n=20,dport=5
	equal "$(status '[.mode, .serial] | tojson')" '["monitor",0]' "mode and serial"
	pacer status s0 | grep -q 'LAPSED *not confirmed in time' || fail "status"
	refused 1 'everything passes since: load the pacer once more' pacer confirm s0
	refused 1 'its load was not confirmed in time' pacer set s0 udp.packets=5
	load ten # the place is free
	equal "$(status '[.lapsed, .serial] | tojson')" "[false,1]" "lapsed, serial"
	arrive "10" n=20
}

# A service has what was saved go on in the place of one that lapsed.
load_killed_and_served()
{
	load ten
	pacer set s0 bans=64 >/dev/null
	pacer ban s0 add fd77::11 >/dev/null
	arrive "10" n=20
	pacer save s0 "$work/s0.state" --and-unload >/dev/null
	load ten --confirm-within 2s
	waiting | xargs kill -KILL
	until_true 5 has_lapsed
	{ cat "$work/ten.yaml" && echo "bans: 64"; } >"$work/served.yaml"
	background "$SERVER" "$BUILD/xdp-pacer" serve s0 -c "$work/served.yaml" --state "$work/s0.state" \
		>"$work/out" 2>"$work/err"
	until_true 20 grep -q 'the pacer is' "$work/out" || fail "$(cat "$work/err")" || return
	grep -q 'the pacer is loaded, with the state that was saved' "$work/out" || fail "$(cat "$work/out")" || return
	arrive "0 0" n=3 n=3,from=fd77::11
	kill "$pid"
	wait "$pid"
}

# And limits by a set's values, which the new policy's keys do not have, count until their window has passed.
load_killed_and_served_by_values()
{
	local rule="  - {name: udp, match: {proto: udp, dport: 9000}, limits: [{key: src, packets: 10, window: 60s}"

	printf '10.77.0.11,XY\n10.77.0.12,XY\n' >"$work/geo.csv"
	printf 'sets: [{name: geo, file: %s, value: 2}]\nrules:\n%s]}\n' "$work/geo.csv" "$rule" >"$work/served.yaml"
	sed 's/window: 60s}]/window: 60s}, {key: "value(geo, src)", packets: 15, window: 60s}]/' "$work/served.yaml" \
		>"$work/values.yaml"
	load values
	arrive "10" n=12
	pacer save s0 "$work/s0.state" --and-unload >/dev/null
	load ten --confirm-within 2s
	waiting | xargs kill -KILL
	until_true 5 has_lapsed
	background "$SERVER" "$BUILD/xdp-pacer" serve s0 -c "$work/served.yaml" --state "$work/s0.state" \
		>"$work/out" 2>"$work/err"
	until_true 20 grep -q 'the pacer is' "$work/out" || fail "$(cat "$work/err")" || return
	arrive "0 5" n=3 n=12,from=10.77.0.12
	equal "$(cat "$work/err")" "" "complaints"
	kill "$pid"
	wait "$pid"
}

# The same, killed where the load is about to have its process; and where it has loaded nothing yet.
load_killed()
{
	local cut code n

	cut=$(tool cut)
	for n in 0 1 3; do
		code=0
		in_server "$cut" clone "$n" 0 0 "$BUILD/xdp-pacer" load s0 -c "$work/ten.yaml" \
			--confirm-within 2s >/dev/null 2>"$work/said" || code=$?
		if grep -q "taken off or replaced meanwhile" "$work/said"; then # the 2 s were over before
			equal "$code" 1 "exit code of a load that was too slow"
		else
			equal "$code" 100 "exit code of the load killed at clone, and $n more calls"
		fi
		none_waits || [ "$n" -gt 0 ] || fail "a process waits"
		until_true 6 lapsed_or_off
		arrive "20" n=20
	done
	code=0
	in_server "$cut" execve 9 0 0 "$BUILD/xdp-pacer" load s0 -c "$work/ten.yaml" \
		--confirm-within 2s >/dev/null || code=$?
	equal "$code" 100 "exit code of the load killed at its start"
}

lapsed_or_off()
{
	nothing_is_on || has_lapsed
}

# Nothing is added to what lapsed. A policy that comes into force after all is as any other.
lapsed_applied()
{
	local words

	load ten --confirm-within 1s
	waiting | xargs kill -KILL
	until_true 6 has_lapsed
	for words in "set s0 bans=64" "ban s0 add 10.77.0.11"; do
		# shellcheck disable=SC2086 # words
		refused 1 's0: its load was not confirmed in time, so that everything passes: `xdp-pacer load s0 -c POLICY` begins anew' \
			pacer $words || return
	done
	has_lapsed || fail "it is a policy"
	pacer allow s0 add 10.77.0.12 >/dev/null
	apply five
	arrive "5 20" n=20 n=20,from=10.77.0.12
	equal "$(status '[.lapsed, .serial, .confirm_within_ns] | tojson')" "[false,2,0]" "lapsed, serial, left"
}

pins_of_s0()
{
	[ -e /sys/fs/bpf/xdp-pacer/s0 ]
}

# With what is pinned of it.
load_taken_off_with_pins()
{
	load ten --pin --confirm-within 5s
	pins_of_s0 || fail "no pins"
	until_true 8 nothing_is_on
	until_true 3 none_waits
	! pins_of_s0 || fail "its pins are left"
}

# Under another name, and with another program over the same state.
load_renamed()
{
	load ten --confirm-within 6s
	in_server ip link set s0 down
	in_server ip link set s0 name s1
	until_true 9 none_waits
	equal "$(what_is_on s1)" "{}" "what is on it"
}

name_back()
{
	in_server ip link set s1 down 2>/dev/null || true
	in_server ip link set s1 name s0 2>/dev/null || true
	in_server ip link set s0 up
	in_server ip addr replace fd77::1/64 dev s0 nodad
}

load_upgraded()
{
	load ten --confirm-within 6s
	pacer upgrade s0 >/dev/null
	until_true 9 none_waits
	nothing_is_on || fail "the upgraded pacer stays"
	load ten --confirm-within 8s
	pacer shadow s0 -c "$work/five.yaml" >/dev/null
	until_true 11 none_waits
	nothing_is_on || fail "the pacer with a shadow stays"
	equal "$(pacer clean --dry-run --json | jq -c '[.found[] | select(.kind | test("shadow"))]')" "[]" \
		"what is left of the shadow"
}

# Whoever waits for the one takes no other off that has come into its place.
another_in_its_place()
{
	load ten --confirm-within 5s
	pacer unload s0 >/dev/null
	load five
	arrive "5" n=20
	until_true 8 none_waits
	equal "$(status .serial)" 1 "serial of the pacer that is there"
	arrive "0" n=20
}

nothing_to_come_back()
{
	load ten
	refused 2 'cannot come back: try a policy with .apply --confirm-within.' \
		pacer load s0 -c "$work/ten.yaml" --replace --confirm-within 5s
	refused 1 'is paced already' pacer load s0 -c "$work/ten.yaml" --confirm-within 5s
	none_waits || fail "a process waits"
	arrive "10" n=20
	equal "$(status .confirm_within_ns)" 0 "time left to confirm"
}

# --- set ------------------------------------------------------------------------------------------

set_rolls_back()
{
	load ten
	arrive "10" n=20
	pacer set s0 udp.packets=30 --confirm-within 1h >/dev/null
	arrive "20" n=50
	lapse
	arrive "0 10" n=20 n=20,from=10.77.0.12
	equal "$(status .serial)" 1 serial
	refused 1 'the policy before is in force again' pacer confirm s0
}

set_confirmed()
{
	local said

	load ten
	said=$(pacer set s0 udp.packets=30 mode=monitor --confirm-within 60s)
	grep -q '^confirm it within 1m: xdp-pacer confirm s0$' <<<"$said" || fail "set says: $said"
	refused 1 'waits to be confirmed' pacer set s0 udp.packets=5
	pacer confirm s0 >/dev/null
	equal "$(status '[.mode, .serial] | tojson')" '["monitor",2]' "mode and serial"
}

net_up
limit ten 10
limit five 5
check trial-over-at-once over_at_once
check trial-load-confirmed load_confirmed
check trial-why why_on_trial
check trial-why-of-keys why_of_keys_on_trial
check trial-load-taken-off load_taken_off
check trial-load-taken-off-with-pins load_taken_off_with_pins
check trial-load-renamed load_renamed
name_back
check trial-load-upgraded load_upgraded
check trial-load-all-killed load_all_killed
check trial-load-killed load_killed
check trial-load-killed-and-served load_killed_and_served
check trial-load-killed-and-served-by-values load_killed_and_served_by_values
check trial-lapsed-applied lapsed_applied
check trial-another-in-its-place another_in_its_place
check trial-nothing-to-come-back nothing_to_come_back
check trial-set-rolls-back set_rolls_back
check trial-set-confirmed set_confirmed
finish
