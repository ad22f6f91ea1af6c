#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Another secret for the hash, at work: no count and no ban is lost, and no limit passed.
#
#   client                                     server
#   10.77.0.11-16, fd77::11-12  c0 ---- s0     the pacer; `xdp-pacer rotate`
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/net/banning.sh
. "$(dirname "$0")/banning.sh"

rotate_reports()
{
	equal "$(pacer rotate s0 --json | jq -rc '[.limits.rotated, .limits.kept, .bans_waiting] | join(" ")')" \
		"$*" "rotated, kept, bans waiting"
}

# Large tables stay where they are, small ones move; all goes on as it was.
counts_go_on()
{
	local entries

	for entries in "" 64; do
		banning "go$entries" "$entries"
		load "go$entries"
		arrive "6 10 6 10" n=6 n=15,from=10.77.0.12 n=6,from=fd77::11 n=15,dport=9001
		banned "10.77.0.12"
		rotate_reports 1 1 false
		banned "10.77.0.12"
		arrive "0 4 4 0" n=9,from=10.77.0.12 n=9 n=9,from=fd77::11 n=9,dport=9001
		banned "10.77.0.11 10.77.0.12 fd77::/64"
		arrive "10" n=15,from=10.77.0.13
		equal "$(pacer ban s0 del 10.77.0.12 --json | jq .lifted)" 1 "bans lifted"
		banned "10.77.0.11 10.77.0.13 fd77::/64"
		equal "$(stats '[.rules[].denied | .contended, .no_state] | add')" 0 "denied for no reason"
		off
	done
}

# How many limits are hashed, and how many are not, of more than one each.
what_is_said()
{
	policy said <<-END
	rules:
	  - {name: udp, limits: [{key: src, packets: 10, window: 60s, entries: 64}, {key: flow, packets: 9, window: 60s, entries: 64}, {key: all, packets: 99, window: 60s}]}
	  - {name: rest, limits: [{key: src, packets: 10, window: 60s, entries: 64}]}
	END
	load said
	pacer rotate s0 >"$work/said"
	equal "$(head -n 1 "$work/said")" "s0: a new secret is in force: 3 limits hashed with it, 1 does not need it" "text" || return
	grep -Eqx 'the old one is used beside it for another (60|6[0-9])\.[0-9] s' "$work/said" || fail "$(cat "$work/said")" || return
	off
	policy said <<-END
	rules:
	  - {name: udp, limits: [{key: src, packets: 10, window: 60s, entries: 64}, {key: all, packets: 9, window: 60s}]}
	  - {name: rest, limits: [{key: all, packets: 10, window: 60s}]}
	END
	load said
	rotate_reports 1 2 false
}

refused_twice()
{
	banning one
	load one
	pacer rotate s0 >/dev/null
	refused 1 'needed for another 6[0-9]\.[0-9] s: rotate then' pacer rotate s0
	off
	limit short 3 100ms 1
	limit other 4 100ms 1
	load short
	pacer rotate s0 >/dev/null
	until_true 5 pacer rotate s0 >/dev/null 2>&1 || fail "no second rotation"
	apply other --confirm-within 30s
	refused 1 'waits to be confirmed' pacer rotate s0
	refused 1 'has no pacer' pacer rotate lo
	refused 2 'wants one interface' pacer rotate
}

# A value that is changed meanwhile counts what came before the rotation, too: on trial, and for good.
a_value_meanwhile()
{
	local entries

	for entries in "" ", entries: 64"; do
		policy ten <<-END
		rules:
		  - name: udp
		    match: {proto: udp, dport: 9000}
		    limits: [{key: src, packets: 10, window: 60s$entries}]
		END
		load ten
		arrive "6 3" n=6 n=3,from=10.77.0.12
		pacer rotate s0 >/dev/null
		pacer set s0 udp.packets=4 >/dev/null
		arrive "0 1 4" n=6 n=6,from=10.77.0.12 n=6,from=10.77.0.13
		pacer set s0 udp.packets=12 --confirm-within 30s >/dev/null
		arrive "6" n=9
		pacer confirm s0 >/dev/null
		pacer set s0 udp.packets=14 >/dev/null
		arrive "2 10 10" n=9 n=15,from=10.77.0.12 n=15,from=10.77.0.13
		off
	done
}

# The program's own secret is replaced when a tool first changes something, or by hand.
without_a_tool()
{
	limit own 7
	in_server ip link set dev s0 xdp obj "$BUILD/pacer.bpf.o" sec xdp.frags
	equal "$(status .secret_of)" program "secret drawn by"
	pacer status s0 | grep -q 'secret .*xdp-pacer rotate s0' || fail "status does not say so"
	arrive "9" n=9
	equal "$(status .secret_of)" program "secret drawn by"
	pacer set s0 default.packets=20 default.window=60s >/dev/null
	equal "$(status .secret_of)" tools "secret drawn by"
	arrive "20 20" n=40 n=40,from=fd77::11
	off
	in_server ip link set dev s0 xdp obj "$BUILD/pacer.bpf.o" sec xdp.frags
	arrive "1" n=1
	apply own --confirm-within 30s
	equal "$(status .secret_of)" program "secret drawn by"
	pacer confirm s0 >/dev/null
	pacer rotate s0 >/dev/null
	equal "$(status .secret_of)" tools "secret drawn by"
	arrive "7" n=9
	off
	load own
	equal "$(status .secret_of)" tools "secret drawn by"
}

# A trial draws it where no packet has: sources are told apart by it from the first one on.
a_trial_before_a_packet()
{
	policy gap <<-END
	rules: [{name: a, limits: [{key: src, gap: 60s}]}]
	END
	in_server ip link set dev s0 xdp obj "$BUILD/pacer.bpf.o" sec xdp.frags
	apply gap --confirm-within 30s
	equal "$(status .secret_of)" tools "secret drawn by"
	arrive "1 1 1" n=2 n=2,from=10.77.0.12 n=2,from=10.77.0.13
	arrive "0 1" n=2 n=2,from=fd77::11
	off
}

# under_load NAME ENTRIES: six senders of several times the limit, while the secret is changed again
# and again; no source may get more than the limit into any window.
under_load()
{
	local rotations=0 before

	policy "$1" <<-END
	rules:
	  - name: udp
	    match: {proto: udp, dport: 9000}
	    limits:
	      - {key: src, packets: 20, window: 100ms, slots: 10${2:+, entries: $2}}
	      - {key: src, gap: 500us, rows: 1}
	END
	load "$1"
	before=$(handed)
	six_on 97
	while [ "$rotations" -lt 8 ]; do
		! pacer rotate s0 >/dev/null 2>&1 || rotations=$((rotations + 1))
	done
	six_held 20 || return
	six_judged "$before"
}

net_up
check rotate-counts-go-on counts_go_on
check rotate-says what_is_said
check rotate-refused refused_twice
check rotate-a-value-meanwhile a_value_meanwhile
check rotate-without-a-tool without_a_tool
check rotate-trial-before-a-packet a_trial_before_a_packet
check rotate-under-load under_load large
check rotate-under-load-small under_load small 64
finish
