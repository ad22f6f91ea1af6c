#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Rates with a burst, on real packets: the burst arrives, to the packet, and then what the rate brings.
#
#   client                                          server
#   10.77.0.11-16, fd77::11-16   c0 ------- s0      the pacer; sockets that count
#
# Rates of a few an hour make counts exact.
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

# rate NAME LIMITS: the policy of one rule with these limits.
rate()
{
	policy "$1" <<-END
	rules:
	  - {name: r, match: {proto: udp, dport: 9000}, limits: [$2]}
	END
}

# rated MATCHED ADMITTED: and all others denied by the rate.
rated()
{
	equal "$(stats '.rules[0] | "\(.matched) \(.admitted) \(.denied.rate)"')" "$1 $2 $(($1 - $2))" \
		"matched, admitted, denied by the rate"
}

# All that is sent at once is sent within less than a tenth of a second, or the rate brings more.
at_once()
{
	rate once "{key: 'src/32,128', rate: 20/h, burst: 20}"
	load once
	arrive "20 19 20 20 19" n=300,from=10.77.0.11 n=19,from=10.77.0.12 n=300,from=10.77.0.13 \
		n=300,from=fd77::11 n=19,from=fd77::12
	arrive "0 1 0 0 1" n=9,from=10.77.0.11 n=9,from=10.77.0.12 n=9,from=10.77.0.13 \
		n=9,from=fd77::11 n=9,from=fd77::12
	rated 983 100
}

# The burst comes back as the rate brings it: two in a fifth of a second, and no third above it.
comes_back()
{
	rate back "{key: src, rate: 10/s, burst: 2}"
	load back
	arrive "2" n=2
	arrive "2" n=2,wait_ms=250
}

# 20 frames of 200 bytes and one of 100 are 4100; then even the shortest frame is too long.
bytes()
{
	rate bytes "{key: src, rate: 8bit/s, burst: 4100}"
	load bytes
	arrive "20 1 0" n=30,len=200 n=9,len=100 n=9,len=1000
	arrive "4" n=9,len=1000,from=fd77::11
}

# set keeps what is used, and counts at once.
set_burst()
{
	rate set "{key: src, rate: 20/h, burst: 20}"
	load set
	arrive "20" n=50
	pacer set s0 r.burst=30 >/dev/null
	arrive "10" n=50
	pacer set s0 r.burst=5 >/dev/null
	arrive "0 5" n=50 n=50,from=10.77.0.12
}

# Another rate begins anew beside the one before, which knows what came: nobody gets two bursts.
another_rate()
{
	rate one "{key: src, rate: 20/h, burst: 20}"
	rate two "{key: src, rate: 10/h, burst: 10}"
	load one
	arrive "20 8" n=50 n=8,from=10.77.0.12
	apply two
	arrive "0 10 10" n=50 n=50,from=10.77.0.12 n=50,from=10.77.0.13
}

# Under load, the policy changed again and again: in no window of a second does more than the burst
# and the rate pass, for the burst is a value. The receiver sees packets a little after the pacer did.
under_load()
{
	local source total worst

	rate load "{key: src, rate: 50/s, burst: 20}"
	load load
	traffic_on 9000 980 10.77.0.11=40 10.77.0.12=1000 fd77::12=1000
	for burst in 5 20 1 15 20; do
		sleep 0.5
		pacer set s0 "r.burst=$burst" >/dev/null
	done
	sleep 0.5
	traffic_off
	while read -r source total worst; do
		[ "$worst" -le 70 ] || fail "$source: $worst in its worst second of 50 and a burst of 20"
		[ "$total" -ge 60 ] || fail "$source: only $total in 3 s"
	done <"$work/sources"
	equal "$(stats '.rules[0] | .matched - .admitted - .denied.rate')" 0 "denied for another reason"
}

net_up
check rate-at-once at_once
check rate-comes-back comes_back
check rate-bytes bytes
check rate-set set_burst
check rate-another another_rate
check rate-under-load under_load
finish
