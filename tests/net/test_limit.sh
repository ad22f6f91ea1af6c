#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Every kind of limit, on real packets: what the policy allows arrives, to the packet.
#
#   client                                          server
#   10.77.0.11-16, fd77::11-16   c0 ------- s0      the pacer; sockets that count
#   below, at and above a limit
#
# Windows of 60 s make counts exact; the first checks are of a window that moves.
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

LIMIT=100

# A sender of half, exactly, and many times the limit, over each IP version, for several windows.
# The receiver sees a packet a little after the pacer did, so its window is 2 % shorter.
moving_window()
{
	local source total worst

	limit window "$LIMIT" 1s
	load window
	traffic_on 9000 980 10.77.0.11=50 10.77.0.12=90 10.77.0.13=2000 \
		fd77::11=50 fd77::12=90 fd77::13=2000
	sleep 3
	traffic_off
	equal "$(wc -l <"$work/sources")" 6 "sources that were seen"
	while read -r source total worst; do
		[ "$worst" -le "$LIMIT" ] || fail "$source: $worst in its worst second of $LIMIT"
		case $source in
		*11) [ "$total" -ge 140 ] || fail "$source, of 50/s in 3 s: only $total" ;;
		*12) [ "$total" -ge 250 ] || fail "$source, of 90/s in 3 s: only $total" ;;
		*13) # a ring of ten slots and one sustains 10/11 of the limit at least
			[ "$total" -ge 250 ] || fail "$source, over the limit for 3 s: only $total"
			[ "$worst" -ge 98 ] || fail "$source: never more than $worst of $LIMIT" ;;
		esac
	done <"$work/sources"
	equal "$(stats '.rules[0] | "\(.matched) \(.admitted)"')" \
		"$sent $arrived" \
		"matched and admitted, by the counters and by the receiver"
	equal "$(stats '.rules[0] | .matched - .admitted - .denied.window')" 0 \
		"packets denied for another reason than the window"
}

window()
{
	limit window "$LIMIT"
	load window
	arrive "99 100 100 99 100 100" n=99,from=10.77.0.11 n=100,from=10.77.0.12 \
		n=500,from=10.77.0.13 n=99,from=fd77::11 n=100,from=fd77::12 n=500,from=fd77::13
	arrive "1 0 0 1 0 0" n=2,from=10.77.0.11 n=1,from=10.77.0.12 n=1,from=10.77.0.13 \
		n=2,from=fd77::11 n=1,from=fd77::12 n=1,from=fd77::13
	counted udp 1406 600 0 806
	arrive "50 50" n=50,dport=9001 n=50,proto=6
	equal "$(stats '.no_limit.no_rule')" 100 "packets of no rule"
	counted udp 1406 600 0 806
}

# The window lets go of what it held, and of no more.
window_passes()
{
	limit window 20 500ms 5
	load window
	arrive "20 20 0" n=30 n=30,wait_ms=620 n=30
	counted udp 90 40 0 50
}

gap()
{
	policy gap <<-END
	rules:
	  - {name: paced, match: {dport: 9000}, limits: [{key: src/32,128, gap: 400ms}]}
	  - {name: exact, match: {dport: 9001}, limits: [{key: src/32,128, gap: 60s}]}
	  - {name: both, match: {dport: 9002}, limits: [{key: src/32,128, gap: 60s}, {key: src/32,128, packets: 5, window: 60s}]}
	END
	load gap
	arrive "1 1 1" n=10,from=10.77.0.11 n=10,from=10.77.0.12 n=10,from=fd77::12
	arrive "1 0" n=10,from=10.77.0.11,wait_ms=420 n=10,from=10.77.0.11
	counted paced 50 4 46 0
	arrive "1 1 0" n=50,dport=9001 n=50,dport=9001,from=fd77::11 n=50,dport=9001
	counted exact 150 2 148 0
	arrive "1 1" n=9,dport=9002 n=9,dport=9002,from=fd77::11
	counted both 18 2 16 0
}

# 20 frames of 200 bytes and one of 100 are 4100; then even the shortest frame is too long.
bytes()
{
	policy bytes <<-END
	rules:
	  - {name: b, match: {proto: udp}, limits: [{key: src, bytes: 4100, window: 60s}]}
	END
	load bytes
	arrive "20 1 0 0" n=30,len=200 n=9,len=100 n=9,len=42 n=1,len=1000
	arrive "4 1 0" n=9,len=1000,from=fd77::11 n=2,len=70,from=fd77::11 n=9,len=62,from=fd77::11
	counted b 69 26 0 43
	equal "$(stats '.rules[0].bytes | "\(.admitted) \(.denied)"')" \
		"$((20 * 200 + 100 + 4 * 1000 + 70)) $((10 * 200 + 8 * 100 + 9 * 42 + 1000 + 5 * 1000 + 70 + 9 * 62))" \
		"bytes admitted and denied"
}

# Each source has 10, all of a /24 or a /56 together 25: the third runs into the second tier.
tiers()
{
	policy tiers <<-END
	rules:
	  - name: t
	    match: {proto: udp}
	    limits:
	      - {key: src, packets: 10, window: 60s}
	      - {key: "src/24,56", packets: 25, window: 60s}
	END
	load tiers
	arrive "10 10 5 0 10" n=20,from=10.77.0.11 n=20,from=10.77.0.12 n=20,from=10.77.0.13 \
		n=20,from=10.77.0.14 n=20,from=10.77.1.11
	arrive "10 10 5 0 10" n=20,from=fd77::11 n=20,from=fd77:0:0:1::11 n=20,from=fd77:0:0:2::11 \
		n=20,from=fd77:0:0:ff::11 n=20,from=fd77:0:0:100::11
	counted t 200 70 0 130
}

keys()
{
	policy keys <<-END
	rules:
	  - {name: flow, match: {dport: 1000-1999}, limits: [{key: flow, packets: 5, window: 60s}]}
	  - {name: dst, match: {dport: 2000}, limits: [{key: dst, packets: 5, window: 60s}]}
	  - {name: port, match: {dport: 3000-3999}, limits: [{key: src+dport, packets: 5, window: 60s}]}
	  - {name: all, match: {dport: 4000}, limits: [{key: all, packets: 5, window: 60s}]}
	  - {name: net, match: {dport: 5000}, limits: [{key: "dst/24,64", packets: 5, window: 60s}]}
	END
	load keys
	arrive "5 5 5 5 5 5" n=9,dport=1000 n=9,dport=1000,sport=4001 n=9,dport=1001 \
		n=9,dport=1000,to=10.77.0.2 n=9,dport=1000,proto=6 n=9,dport=1000,from=10.77.0.12
	arrive "0 5" n=9,dport=1000 n=9,dport=1000,from=fd77::11
	counted flow 72 35 0 37
	arrive "5 0 5 5 0" n=9,dport=2000 n=9,dport=2000,from=10.77.0.12 n=9,dport=2000,to=10.77.0.2 \
		n=9,dport=2000,from=fd77::11 n=9,dport=2000,from=fd77::12,sport=1
	counted dst 45 15 0 30
	arrive "5 0 5 5 0" n=9,dport=3000 n=9,dport=3000,sport=1 n=9,dport=3001 \
		n=9,dport=3000,from=10.77.0.12 n=9,dport=3000,to=10.77.0.2
	counted port 45 15 0 30
	arrive "3 2 0" n=3,dport=4000 n=9,dport=4000,from=fd77::11 n=9,dport=4000,to=10.77.0.2
	counted all 21 5 0 16
	arrive "5 0 5" n=9,dport=5000 n=9,dport=5000,to=10.77.0.200 n=9,dport=5000,to=10.77.1.1
	counted net 27 10 0 17
}

# The first source spends the pool of all to the last packet but 10, its own limit denying the rest
# of what it sends: had a denial by one charged the other, fewer would be left for the second.
no_charge()
{
	policy charge <<-END
	rules:
	  - name: r
	    match: {proto: udp}
	    limits:
	      - {key: src, packets: 10, window: 60s}
	      - {key: all, packets: 30, window: 60s}
	      - {key: dst, bytes: 1M, window: 60s}
	END
	load charge
	arrive "10 10 10 0" n=100,from=10.77.0.11 n=100,from=10.77.0.12 n=100,from=fd77::13 \
		n=100,from=10.77.0.14
	counted r 400 30 0 370
	# 14's denials by the pool have charged it nothing of its own: with a larger pool it has 10.
	pacer set s0 'r.limits[1].packets=100' >/dev/null
	arrive "10 0" n=100,from=10.77.0.14 n=100,from=10.77.0.11
	counted r 600 40 0 560
}

# A rule over its limit that only counts.
over_pass()
{
	limit over 10
	echo "    over: pass" >>"$work/over.yaml"
	load over
	arrive "50" n=50
	counted udp 50 10 0 40
}

# More slots than fit a line, one slot, and the exact clock.
shapes()
{
	policy shapes <<-END
	clock: exact
	rules:
	  - {name: one, match: {dport: 1}, limits: [{key: src, packets: 7, window: 60s, slots: 1}]}
	  - {name: wide, match: {dport: 2}, limits: [{key: src, packets: 7, window: 60s, slots: 26}]}
	  - {name: widest, match: {dport: 3}, limits: [{key: src, packets: 7, window: 60s, slots: 58}]}
	  - {name: fine, match: {dport: 4}, limits: [{key: src, packets: 7, window: 20ms, slots: 58}]}
	END
	load shapes
	equal "$(status .clock)" exact clock
	arrive "7 7 7" n=20,dport=1 n=20,dport=2 n=20,dport=3
	arrive "5 5 5 0" n=5,dport=4 n=5,dport=4,wait_ms=30 n=5,dport=4,wait_ms=30 n=20,dport=3
}

net_up
check limit-moving-window moving_window
check limit-window window
check limit-window-passes window_passes
check limit-gap gap
check limit-bytes bytes
check limit-tiers tiers
check limit-keys keys
check limit-no-charge no_charge
check limit-over-pass over_pass
check limit-shapes shapes
finish
