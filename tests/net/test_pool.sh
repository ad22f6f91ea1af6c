#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What is over a rule's limit goes to the targets of a pool, in turns; none gets more than its share,
# and what none can take is dropped.
#
#   client                                server
#   10.77.0.11-18        c0 ------- s0    the pacer; a socket of an AF_XDP program
#   counts arrivals      r1 ------- t1    targets of the pool
#                        r2 ------- t2
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

# target N: tN and its peer. The peer has GRO on, or it would not take what is redirected.
target()
{
	in_server ip link add "t$1" type veth peer name "r$1" netns "$CLIENT"
	in_server tee "/proc/sys/net/ipv6/conf/t$1/disable_ipv6" <<<1 >/dev/null
	in_client tee "/proc/sys/net/ipv6/conf/r$1/disable_ipv6" <<<1 >/dev/null
	in_client ethtool -K "r$1" gro on
	in_server ip link set "t$1" up
	in_client ip link set "r$1" up
}

targets_down()
{
	in_server ip link del t1 2>/dev/null || true
	in_server ip link del t2 2>/dev/null || true
}

targets_up()
{
	targets_down
	target 1
	target 2
}

# pool NAME TARGETS [EACH [COOLDOWN MAX_COOLDOWN [THRESHOLD]]]: a rule that admits 3, and its pool.
pool()
{
	policy "$1" <<-END
	rules:
	  - name: udp
	    match: {proto: udp, dport: 9000}
	    limits: [{key: src, packets: 3, window: 60s}]
	    over: pool scrub
	pools:
	  - {name: scrub, targets: [$2], each: ${3:-5}, cooldown: ${4:-10m}, max_cooldown: ${5:-11m}, threshold: ${6:-2}}
	END
}

# no_pool NAME: the rule without its pool.
no_pool()
{
	limit "$1" 3
}

received_by()
{
	in_client ip -j -s link show dev "$1" | jq '.[0].stats64.rx.packets'
}

both_received()
{
	[ "$(received_by r1) $(received_by r2)" = "$1" ]
}

# received "N1 N2": so many frames in all have come by r1 and r2, once all have.
received()
{
	until_true 2 both_received "$1" || true
	equal "$(received_by r1) $(received_by r2)" "$1" "frames that came by r1 and r2"
}

# events "REDIRECTED POOL_SPENT TARGET_GONE": what the rule has counted.
events()
{
	equal "$(stats '.rules[0].events | "\(.redirected) \(.pool_spent) \(.target_gone)"')" \
		"$1" "redirected, pool_spent, target_gone"
}

rotation()
{
	targets_up
	pool two "t1, t2"
	load two
	arrive "3" n=3
	received "0 0"
	arrive "0" n=1
	received "1 0"
	arrive "0" n=1
	received "1 1"
	arrive "0" n=3
	received "3 2"
	events "5 0 0"
	arrive "0 3" n=3 n=8,from=10.77.0.12
	received "5 5"
	events "10 3 0"
	counted udp 19 6 0 13
	arrive "0" n=100
	received "5 5"
	events "10 103 0"
}

# A use comes back a cool-down after it was made, and not before.
cool_down()
{
	local begin end

	targets_up
	pool two "t1, t2" 5 1s 1100ms
	load two
	arrive "3" n=3
	begin=$(date +%s%N)
	arrive "0" n=20
	events "10 10 0"
	until_true 5 comes_back
	end=$(date +%s%N)
	[ $((end - begin)) -ge 1000000000 ] || fail "a use came back after $((end - begin)) ns"
	until_true 5 spent_again
	received "10 10"
	events "20 $(stats '.rules[0].denied.window - 20') 0"
}

comes_back()
{
	arrive "0" n=1 && [ "$(stats '.rules[0].events.redirected')" -gt 10 ]
}

spent_again()
{
	arrive "0" n=1 && [ "$(stats '.rules[0].events.redirected')" -eq 20 ]
}

# senders_on: four sources from two CPUs, until senders_off, which sets $sent.
senders_on()
{
	background "$CLIENT" taskset -c 0 "$BUILD/traffic" send 10.77.0.1,fd77::1 9000 20 \
		10.77.0.11=3000 10.77.0.12=3000 >"$work/sent0"
	one=$pid
	background "$CLIENT" taskset -c "$last_cpu" \
		"$BUILD/traffic" send 10.77.0.1,fd77::1 9000 20 \
		10.77.0.13=3000 10.77.0.14=3000 >"$work/sent1"
	other=$pid
}

senders_off()
{
	kill "$one" "$other"
	wait "$one" "$other"
	sent=$(($(cat "$work/sent0") + $(cat "$work/sent1")))
}

# Leases, and packets of two CPUs at once.
shared()
{
	local one other sent

	targets_up
	two_queues
	pool two "t1, t2" 300 10m 11m 200
	load two
	senders_on
	until_true 10 test_stats '.rules[0].events.pool_spent > 1000'
	senders_off
	received "300 300"
	until_true 2 test_stats ".rules[0].matched == $sent"
	events "600 $((sent - 600 - 12)) 0"
}

# The same while pools change: what a CPU had on lease is lost until it has cooled down.
shared_changing()
{
	local one other sent n name

	targets_up
	two_queues
	pool both "t1, t2" 5000 10m 11m 1000
	pool turned "t2, t1" 5000 10m 11m 500
	pool second "t2" 5000 10m 11m 500
	pool lower "t1, t2" 4000 10m 11m 1000
	load both
	senders_on
	for n in 1 2 3 4 5; do
		for name in turned second both lower; do
			apply "$name" || fail "apply $name, $n" || return
		done
	done
	apply both
	until_true 10 test_stats '.rules[0].events.pool_spent > 1000'
	senders_off
	until_true 2 test_stats ".rules[0].matched == $sent"
	until_true 2 all_have_come || true
	equal "$(received_by r1) + $(received_by r2) = $(($(received_by r1) + $(received_by r2)))" \
		"$(received_by r1) + $(received_by r2) = $(stats '.rules[0].events.redirected')" "received"
	for n in r1 r2; do
		[ "$(received_by "$n")" -le 5000 ] || fail "$n got $(received_by "$n"), and may have 5000"
		[ "$(received_by "$n")" -ge 3000 ] || fail "$n got only $(received_by "$n")"
	done
	events "$(stats '.rules[0].events | "\(.redirected) \(.pool_spent)"') 0"
}

all_have_come()
{
	[ $(($(received_by r1) + $(received_by r2))) -eq "$(stats '.rules[0].events.redirected')" ]
}

test_stats()
{
	[ "$(stats "$1")" = true ]
}

# Its uses go on being spent, as nobody can know that it is gone before.
vanished()
{
	targets_up
	pool two "t1, t2"
	load two
	arrive "3" n=5
	received "1 1"
	in_server ip link del t1
	arrive "0" n=20
	equal "$(received_by r2)" 5 "frames that came by r2"
	events "6 12 4"
	counted udp 25 3 0 22
}

# What a target got counts wherever it stands, and while it stands in no pool.
across_apply()
{
	targets_up
	pool both "t1, t2"
	pool second "t2"
	pool turned "t2, t1"
	no_pool none
	sed -i '/over/d' "$work/none.yaml"
	load both
	arrive "3" n=5
	received "1 1"
	apply second
	arrive "0" n=2
	received "1 3"
	apply turned
	arrive "0" n=2
	received "2 4"
	apply none
	arrive "0" n=4
	received "2 4"
	apply second
	arrive "0" n=2
	received "2 5"
	apply both
	arrive "0" n=20
	received "5 5"
	pacer set s0 pools.scrub.each=7 >/dev/null
	arrive "0" n=20
	received "7 7"
	apply both
	arrive "0" n=20
	received "7 7"
	events "14 $(stats '.rules[0].denied.window - 14 - 4') 0"
}

# What a policy that was never confirmed gave to targets, counts when the one before is back.
across_roll_back()
{
	targets_up
	pool first "t1"
	pool both "t1, t2"
	load first
	arrive "3" n=5
	received "2 0"
	apply both --confirm-within 1h
	arrive "0" n=4
	received "4 2"
	lapse
	arrive "0" n=4
	received "5 2"
	apply both
	arrive "0" n=20
	received "5 5"
}

# A load that nobody confirmed: what follows before it is taken off knows what the targets got.
after_a_load_on_trial()
{
	targets_up
	pool both "t1, t2"
	load both --confirm-within 5s
	ip netns pids "$SERVER" | xargs kill -KILL # who takes it off
	arrive "3" n=7
	received "2 2"
	until_true 8 has_lapsed
	arrive "3" n=3
	apply both
	arrive "3" n=23
	received "5 5"
}

has_lapsed()
{
	[ "$(status .lapsed)" = true ]
}

sends_more_than()
{
	arrive "0" n=1
	(($(received_by r1) > $1))
}

# A cooldown that is short for a while takes uses back. When it is long again, all counts as used.
cooldown_is_back()
{
	local n again refusal="s0: a pool's cooldown that is shortened, or is long again too early, cannot be tried"

	pool long "t1" 10 10m 11m 1
	pool short "t1" 1 10ms 20ms 1
	for again in apply restore; do
		targets_up
		load long --replace
		arrive "3" n=20
		received "10 0"
		refused 1 "$refusal" pacer apply s0 -c "$work/short.yaml" --confirm-within 1h || return
		apply short
		until_true 5 sends_more_than 10 || fail "t1 gets nothing under the short cooldown" || return
		refused 1 "$refusal" pacer apply s0 -c "$work/long.yaml" --confirm-within 1h || return
		n=$(received_by r1)
		if [ "$again" = apply ]; then
			apply long
		else
			pacer save s0 "$work/saved" --and-unload >/dev/null
			load long --restore "$work/saved"
		fi
		arrive "0" n=20
		received "$n 0"
		pacer set s0 pools.scrub.each=100 >/dev/null
		arrive "0" n=20
		received "$n 0"
	done
}

monitor()
{
	targets_up
	pool two "t1, t2"
	echo "mode: monitor" >>"$work/two.yaml"
	load two
	arrive "20" n=20
	received "0 0"
	events "0 0 0"
	counted udp 20 3 0 17
	pacer set s0 mode=enforce >/dev/null
	arrive "0" n=20
	received "5 5"
}

# One line, and all is as it was.
unknown()
{
	targets_up
	pool two "t1, t2"
	pool bad "t1, t9"
	pool down "t1, t2"
	refused 1 's0: pool scrub: t9: there is no such interface' pacer load s0 -c "$work/bad.yaml"
	equal "$(what_is_on s0)" "{}" "program on s0"
	load two
	arrive "3" n=5
	refused 1 's0: pool scrub: t9: there is no such interface' pacer apply s0 -c "$work/bad.yaml"
	equal "$(status .serial)" 1 serial
	arrive "0" n=20
	received "5 5"
	in_server ip link property add dev t1 altname alt1
	pool bad "t1, alt1" # one, which would get twice what it takes
	refused 1 's0: pool scrub: alt1: is another name of t1: write that' pacer apply s0 -c "$work/bad.yaml"
	in_server ip link property del dev t1 altname alt1
	pool bad "cpu:60"
	refused 1 's0: pool scrub: cpu:60: there is no such CPU' pacer apply s0 -c "$work/bad.yaml"
	in_server ip link set t2 down
	refused 1 's0: pool scrub: t2: the interface is down' pacer apply s0 -c "$work/down.yaml"
	equal "$(status .serial)" 1 serial
}

# To a CPU: what is over goes on up the stack, there. A redirected frame has to have its checksum.
to_cpu()
{
	local begin

	in_client ethtool -K c0 tx off >/dev/null
	pool cpus "cpu:$(($(nproc) - 1))" 10 10m 11m 1
	load cpus
	begin=$(datagrams)
	background "$SERVER" "$BUILD/traffic" receive 9000 10 1000 >"$work/received"
	until_true 5 grep -q ready "$work/received"
	sent=$(in_client "$BUILD/traffic" send 10.77.0.1,fd77::1 9000 0.2 10.77.0.11=200)
	[ "$sent" -gt 20 ] || fail "only $sent packets were sent"
	until_true 3 have_come $((begin + 13)) || true
	equal $(($(datagrams) - begin)) 13 "datagrams that reached the socket"
	events "10 $((sent - 13)) 0"
	in_client ethtool -K c0 tx on >/dev/null
}

# UDP datagrams that sockets of the server's namespace got.
datagrams()
{
	in_server grep '^Udp: [0-9]' /proc/net/snmp | cut -d ' ' -f 2
}

have_come()
{
	[ "$(datagrams)" -ge "$1" ]
}

# xsk_on QUEUE NUMBER
xsk_on()
{
	background "$SERVER" "$(tool xsk -lxdp -lbpf)" s0 "$1" "$2" >"$work/xsk"
	until_true 5 grep -q ready "$work/xsk"
}

# xsk_off: $got frames came.
xsk_off()
{
	kill "$pid"
	wait "$pid"
	got=$(grep -v ready "$work/xsk")
}

to_socket()
{
	pool sockets "xsk:3"
	load sockets --direct
	arrive "3" n=5
	events "0 0 2"
	xsk_on 0 3
	arrive "0" n=2
	xsk_off
	equal "$got" 2 "frames that the socket got"
	events "2 0 2"
	arrive "0" n=20
	events "2 19 3"
	counted udp 27 3 0 24
}

# Two sockets in turns, one of which is bound to another queue than the packets'.
to_wrong_queue()
{
	local first got

	in_server ethtool -L s0 rx 2
	pool sockets "xsk:0, xsk:1"
	load sockets --direct
	xsk_on 0 0
	first=$pid
	mv "$work/xsk" "$work/xsk0"
	xsk_on 1 1
	arrive "3" n=20
	xsk_off
	equal "$got" 0 "frames that the socket of the other queue got"
	kill "$first"
	wait "$first"
	equal "$(grep -v ready "$work/xsk0")" 5 "frames that the socket of this queue got"
	events "5 7 5"
}

net_up
check pool-rotation rotation
check pool-cool-down cool_down
check pool-target-vanished vanished
check pool-across-apply across_apply
check pool-across-roll-back across_roll_back
check pool-after-a-load-on-trial after_a_load_on_trial
check pool-cooldown-is-back cooldown_is_back
check pool-monitor monitor
check pool-unknown-target unknown
check pool-to-cpu to_cpu
check pool-to-socket to_socket
check pool-to-socket-of-another-queue to_wrong_queue
check pool-two-cpus shared
check pool-two-cpus-changing shared_changing
targets_down
finish
