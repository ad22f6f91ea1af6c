#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A limit of all packets of a rule together, by uses that cool down: exact over all CPUs, whoever
# held uses on lease, and across changes of the policy.
#
#   client                                  server
#   10.77.0.11-18, fd77::11-18  c0 ---- s0  the pacer
#   senders on two CPUs                     two queues, each served on its sender's CPU
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

# uses NAME LIMIT...: a rule with these limits.
uses()
{
	local name=$1 one

	shift
	{
		printf 'rules:\n  - name: udp\n    match: {proto: udp, dport: 9000}\n    limits:\n'
		for one; do
			echo "      - {$one}"
		done
	} | policy "$name"
}

# denied "WINDOW THROTTLE OTHERS"
denied()
{
	equal "$(stats '.rules[0].denied | "\(.window) \(.throttle) \(.gap + .ban + .contended + .no_state)"')" \
		"$1" "denied by window, by throttle, by others"
}

test_stats()
{
	[ "$(stats "$1")" = true ]
}

exact()
{
	uses ten "key: all, uses: 10, cooldown: 60s"
	load ten
	arrive "4 6 0 0" n=4 n=9,from=fd77::11 n=5,from=10.77.0.12 n=5,from=fd77::12
	arrive "5" n=5,dport=9001
	denied "0 13 0"
	counted_uses 23 10
}

# counted_uses MATCHED ADMITTED
counted_uses()
{
	equal "$(stats '.rules[0] | "\(.matched) \(.admitted)"')" "$1 $2" "matched, admitted"
}

# What the link had no room for: a sender that could not run for long catches up at once.
dropped()
{
	in_client ip -s -j link show c0 | jq '.[0].stats64.tx.dropped'
}

# senders_on: from two CPUs, until senders_off, which sets $sent to what came through the link.
senders_on()
{
	before=$(dropped)
	background "$CLIENT" taskset -c 0 "$BUILD/traffic" send 10.77.0.1,fd77::1 9000 300 \
		10.77.0.11=2500 10.77.0.12=2500 fd77::11=2500 >"$work/sent0"
	one=$pid
	background "$CLIENT" taskset -c "$last_cpu" "$BUILD/traffic" send 10.77.0.1,fd77::1 9000 300 \
		10.77.0.13=2500 10.77.0.14=2500 fd77::12=2500 >"$work/sent1"
	other=$pid
}

senders_off()
{
	kill "$one" "$other"
	wait "$one" "$other"
	sent=$(($(cat "$work/sent0") + $(cat "$work/sent1") - $(dropped) + before))
}

# Both CPUs hold leases all the while, and all uses are made, but none twice.
two_cpus()
{
	local one other sent before

	two_queues
	uses many "key: all, uses: 4000, cooldown: 60s, max_cooldown: 66s, threshold: 400"
	load many
	senders_on
	until_true 10 test_stats '.rules[0].denied.throttle > 4000'
	senders_off
	until_true 2 test_stats ".rules[0].matched == $sent"
	counted_uses "$sent" 4000
	equal "$(stats '.rules[0].denied | .gap + .window + .ban + .contended + .no_state')" 0 \
		"denied by others"
}

# The same while the limit changes, and while it is left out: never above the highest.
two_cpus_changing()
{
	local one other sent before n name

	two_queues
	uses many "key: all, uses: 20000, cooldown: 60s, max_cooldown: 66s, threshold: 2000"
	uses fewer "key: all, uses: 15000, cooldown: 60s, max_cooldown: 66s, threshold: 1000"
	uses none "key: src, packets: 1G, window: 1s"
	load many
	senders_on
	for n in 1 2 3 4 5 6; do
		for name in fewer none many; do
			apply "$name" || fail "apply $name, $n" || return
		done
	done
	until_true 10 test_stats '.rules[0].denied.throttle > 4000'
	senders_off
	until_true 2 test_stats ".rules[0].matched == $sent"
	n=$(stats '.rules[0].admitted')
	[ "$n" -le 20000 ] || fail "$n were admitted, and the limit is 20000"
	[ "$n" -ge 10000 ] || fail "only $n were admitted"
}

# No window of the cool-down holds more, at the rate at which uses come back.
comes_back()
{
	local begin end

	uses again "key: all, uses: 100, cooldown: 500ms, max_cooldown: 550ms, threshold: 10"
	load again
	begin=$(date +%s%N)
	traffic_on 9000 490 10.77.0.11=2000
	until_true 10 test_stats '.rules[0].admitted >= 400'
	end=$(date +%s%N)
	traffic_off
	[ $((end - begin)) -ge 1500000000 ] || fail "400 of 100 in 500 ms came within $((end - begin)) ns"
	equal "$(stats '.rules[0].admitted')" "$arrived" "admitted and arrived"
	[ "$(awk '{ print $3 }' "$work/sources")" -le 100 ] ||
		fail "within 490 ms: $(cat "$work/sources"), the limit is 100"
}

# A CPU that went quiet has uses on lease. When it is back it hands them back, and all are made.
quiet_cpu()
{
	local first

	uses leased "key: all, uses: 100, cooldown: 60s, max_cooldown: 66s, threshold: 40"
	load leased
	on_cpu 0
	arrive "1" n=1
	on_cpu "$last_cpu"
	"$shots" "$CLIENT" "$SERVER" n=200 >/dev/null
	first=$(stats '.rules[0].admitted')
	if [ "$first" -lt 60 ] || [ "$first" -gt 100 ]; then
		fail "$first of 100 were admitted, and fewer than 40 can be on lease"
	fi
	on_cpu 0
	arrive "$((100 - first))" n=200,wait_ms=150
	counted_uses 401 100
}

# Another cooldown is another shape: the throttle before holds beside it until all has cooled down.
across_apply()
{
	uses ten "key: all, uses: 10, cooldown: 60s"
	uses fifteen "key: all, uses: 15, cooldown: 60s"
	uses five "key: all, uses: 5, cooldown: 60s"
	uses longer "key: all, uses: 15, cooldown: 120s"
	load ten
	arrive "10" n=20
	apply fifteen
	arrive "5" n=20
	apply five
	arrive "0" n=20
	apply fifteen
	arrive "0" n=20
	apply longer
	arrive "0" n=20
	equal "$(status .retired_limits)" 1 "retired limits"
	pacer set s0 udp.uses=20 >/dev/null
	arrive "0" n=20
	denied "0 105 0"
}

# A throttle that a policy leaves out holds on until all has cooled down.
retired()
{
	uses ten "key: all, uses: 10, cooldown: 2s"
	uses window "key: src/32,128, packets: 100, window: 60s"
	load ten
	arrive "10" n=20
	apply window
	arrive "0" n=20,from=10.77.0.12
	equal "$(status .retired_limits)" 1 "retired limits"
	until_true 5 test_status .retired_limits 0
	arrive "20" n=20
	apply ten
	arrive "10" n=20
}

test_status()
{
	[ "$(status "$1")" = "$2" ]
}

# What the window denies takes no use, and what the throttle denies is not in the window.
beside_window()
{
	uses twenty "key: src/32,128, packets: 5, window: 60s" "key: all, uses: 20, cooldown: 60s"
	load twenty
	arrive "5 5 5" n=50 n=50,from=10.77.0.12 n=50,from=fd77::11
	arrive "5 0 0" n=50,from=10.77.0.13 n=50,from=10.77.0.14 n=50,from=fd77::12
	denied "180 100 0"
	pacer set s0 'udp.limits[1].uses=27' >/dev/null
	arrive "5 2 0" n=9,from=10.77.0.14 n=9,from=fd77::12 n=9,from=10.77.0.15
	denied "184 116 0"
}

# The same where a CPU takes uses on lease.
beside_window_leased()
{
	uses leased "key: src/32,128, packets: 5, window: 60s" \
		"key: all, uses: 20, cooldown: 60s, max_cooldown: 66s, threshold: 20"
	load leased
	on_cpu 0
	arrive "5 5 5" n=50 n=50,from=10.77.0.12 n=50,from=fd77::11
	arrive "5 0" n=50,from=10.77.0.13 n=50,from=10.77.0.14
	denied "180 50 0"
}

net_up
check throttle-exact exact
check throttle-comes-back comes_back
check throttle-quiet-cpu quiet_cpu
check throttle-across-apply across_apply
check throttle-retired retired
check throttle-beside-window beside_window
check throttle-beside-window-leased beside_window_leased
check throttle-two-cpus two_cpus
check throttle-two-cpus-changing two_cpus_changing
finish
