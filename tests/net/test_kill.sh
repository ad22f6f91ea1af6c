#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The CLI is killed at every system call of a change and at points between, while traffic flows:
# the policy in force is always one of the two, whole; no packet is lost; the next change works.
#
#   client                                            server
#   10.77.0.18: port 9001, all the time  c0 ---- s0   the pacer; a socket that counts port 9001
#   fresh sources: port 9000                          xdp-pacer apply, killed
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

cut=$(tool cut)
kills=0

# Policy a has two rules, a limit of 10, an allow-list and a sample of 8; b two others, 20, a list that
# shares one entry with that, and a sample of 9. One entry is by hand.
policies()
{
	policy a <<-END
	allow: [10.79.0.1, 10.79.0.3, 10.79.1.0/24]
	sample: {of: denied, k: 8, packets: 100, replacement: without}
	rules:
	  - {name: udp, match: {dport: 9000}, limits: [{key: src, packets: 10, window: 60s, entries: 4k}]}
	  - name: only-a
	    match: {dport: 9003}
	    limits: [{key: src, packets: 10, window: 60s, entries: 64}, {key: all, uses: 10, cooldown: 1s}]
	    over: pool one
	    ban: 60s
	pools: [{name: one, targets: ["cpu:0"], each: 10, cooldown: 1s}]
	bans: 64
	END
	policy b <<-END
	allow: [10.79.0.2, 10.79.0.3, "fd79::2"]
	sample: {of: denied, k: 9, window: 60s}
	rules:
	  - name: only-b
	    match: {dport: 9004}
	    limits: [{key: src, gap: 1s, entries: 64}, {key: all, uses: 9, cooldown: 1s}]
	    over: pool two
	    ban: 60s
	  - {name: udp, match: {dport: 9000}, limits: [{key: src, packets: 20, window: 60s, entries: 4k}]}
	pools: [{name: two, targets: [s0], each: 10, cooldown: 1s}]
	bans: 128
	END
}

# A source that has not sent before: its number is $fresh.
fresh=0

# consistent NAME: the policy in force is that one as a whole: its rules, its limit, its allow-list,
# its sample.
consistent()
{
	local limit=10 rules="udp only-a" sample="8 8" allowed=10.79.0.1 of=10.79.1.0/24

	[ "$1" = a ] || limit=20 rules="only-b udp" sample="9 9" allowed=10.79.0.2 of=fd79::2
	fresh=$((fresh + 1))
	equal "$now" "$rules" "rules in force" || return
	equal "$(pacer allow s0 list --json | jq -r 'map(.prefix) | join(" ")')" \
		"$allowed 10.79.0.3 10.79.0.4 $of" \
		"allow-list" || return
	arrive "$limit" "n=25,from=10.78.$((fresh / 250)).$((fresh % 250 + 1))" || return
	matched=$((matched + 25))
	admitted=$((admitted + limit))
	[ $((fresh % 4)) -eq 0 ] || return 0
	arrive "25" "n=25,from=$allowed" || return
	equal "$(pacer sample s0 --json | jq -r '"\(.k) \([.sample[] |
		select(.rule == "udp" and .reason == "window")] | length)"')" "$sample" "sample"
}

# killed_at SYSCALL COUNT US: apply the other policy, killed there. 1 if it was not reached.
killed_at()
{
	local other=b code=0 serial

	[ "$in_force" = a ] || other=a
	in_server "$cut" "$1" "$2" "$3" 0 "$BUILD/xdp-pacer" apply s0 -c "$work/$other.yaml" \
		>/dev/null || code=$?
	[ "$code" -eq 100 ] || [ "$code" -eq 0 ] || fail "$*: exit code $code" || exit 1
	[ "$code" -eq 0 ] || kills=$((kills + 1))
	read -r serial now <<<"$(status '"\(.serial) \(.rules | join(" "))"')"
	case $((serial - at)) in
	0) [ "$code" -eq 100 ] || fail "$*: done, but not in force" || exit 1 ;;
	[1-9]*) in_force=$other ;; # those of changes that were killed are no other's
	*) fail "$*: the serial went from $at to $serial" || exit 1 ;;
	esac
	at=$serial
	consistent "$in_force" || fail "$*: policy $in_force: see above" || exit 1
	[ "$code" -eq 100 ]
}

start()
{
	matched=0 admitted=0 in_force=a at=1
	policies
	load a
	pacer allow s0 add 10.79.0.4 >/dev/null
	before=$(handed)
	traffic_on 9001 1000 10.77.0.18=200
}

# A change as a whole, when all the kills are over, and every count to the last packet.
at_the_end()
{
	apply a
	now=$(status '.rules | join(" ")')
	consistent a
	equal "$(stats '.rules[] | select(.name == "udp") | "\(.matched) \(.admitted)"')" \
		"$matched $admitted" "matched and admitted over all kills"
	equal "$(stats '[.rules[].denied | .no_state, .contended] | add')" 0 "denied for no reason"
	traffic_off
	equal "$arrived" "$sent" "frames that arrived all the while, of those sent"
	until_true 2 all_are_counted "$before" ||
		fail "handed to the program: $(($(handed) - before)), counted: $(stats .packets)"
	echo "$kills kills"
}

# Before its grace period a change only reads.
every_system_call()
{
	local n

	start
	for ((n = 0; n < 90; n += 9)); do
		killed_at flock "$n" 0 || fail "a change makes only $n system calls" || exit 1
	done
	for ((n = 0; n < 200; n++)); do
		killed_at membarrier "$n" 0 || break
	done
	[ "$n" -lt 200 ] || fail "a change has no end"
	[ "$n" -ge 10 ] || fail "only $n system calls in a change"
	at_the_end
}

# Times from when the change has its lock, and from when it begins to write.
any_moment()
{
	local us

	start
	for ((us = 6; us <= 480; us += 8)); do
		killed_at membarrier 1 "$us" || true
		((us % 24 - 6)) || killed_at flock 0 "$us" || true
	done
	[ "$kills" -ge 30 ] || fail "only $kills kills"
	at_the_end
}

net_up
check kill-every-system-call every_system_call
check kill-any-moment any_moment
finish
