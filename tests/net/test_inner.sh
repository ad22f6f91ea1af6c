#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What is in a tunnel: a real VXLAN of the kernel's between the two, with sources inside that the
# pacer limits each by itself; and frames with every tunnel, judged in user space and in the kernel.
#
#   client                                            server
#   10.99.0.11-12  v0  [vxlan 7]  c0 10.77.0.11  --  s0 10.77.0.1  [vxlan 7]  v0  10.99.0.1
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

tunnel_up()
{
	in_client ip link add v0 type vxlan id 7 local 10.77.0.11 remote 10.77.0.1 dstport 4789 dev c0
	in_server ip link add v0 type vxlan id 7 local 10.77.0.1 remote 10.77.0.11 dstport 4789 dev s0
	in_client ip addr add 10.99.0.11/24 dev v0
	in_client ip addr add 10.99.0.12/24 dev v0
	in_server ip addr add 10.99.0.1/24 dev v0
	in_client ip link set v0 up
	in_server ip link set v0 up
}

# inside SOURCE=PPS...: traffic between the sockets inside, until the rule has seen 100 more packets.
inside()
{
	local before

	before=$(stats .packets)
	background "$SERVER" "$BUILD/traffic" receive 9000 301 60000 >"$work/received"
	receiver=$pid
	until_true 5 grep -q ready "$work/received"
	background "$CLIENT" "$BUILD/traffic" send 10.99.0.1 9000 300 "$@" >"$work/sent"
	sender=$pid
	until_true 5 came "$((before + 100))" || fail "no packets came"
	traffic_off
}

came()
{
	[ "$(stats .packets)" -ge "$1" ]
}

limited()
{
	policy inner <<-END
	bans: 1024
	rules:
	  - {name: inside, match: {inner: yes, proto: udp, dport: 9000, ttl: 1-64},
	     limits: [{key: src/32,64, packets: 10, window: 600s}]}
	  - {name: outside, match: {proto: udp, dport: 4789, src: 10.77.0.11},
	     limits: [{key: src/32,64, packets: 1M, window: 60s}]}
	END
	load inner
	inside 10.99.0.11=400 10.99.0.12=300 || return
	equal "$arrived" 20 "packets that arrived" || return
	equal "$(stats '.rules[0] | "\(.matched) \(.admitted) \(.denied.window)"')" \
		"$sent 20 $((sent - 20))" "matched, admitted and denied inside" || return
	pacer why s0 "udp 10.99.0.12:5000 > 10.99.0.1:9000 in vxlan 10.77.0.11 > 10.77.0.1" --json |
		jq -r '"\(.rule) \(.reason) \(.limits[0].key) \(.outer)"' >"$work/why"
	equal "$(cat "$work/why")" "inside window 10.99.0.12 10.77.0.11>10.77.0.1 udp 4789 4789" "why" ||
		return
	arrive "30" n=30 || return # no tunnel, and no rule
	equal "$(stats '.no_limit.no_rule >= 30')" true "packets of no rule"
}

# The outer source is banned; the inner one is; the inner one is let through.
sources()
{
	local matched asked="udp 10.99.0.11:5000 > 10.99.0.1:9000 in"

	load inner
	pacer allow s0 add 10.99.0.11 >/dev/null
	inside 10.99.0.11=400 || return
	equal "$arrived" "$sent" "packets of an allowed source" || return
	equal "$(stats '.rules[0].matched')" 0 "of them matched inside" || return
	equal "$(stats ".rules[1].matched >= $sent")" true "of them matched outside" || return
	equal "$(pacer why s0 "$asked vxlan 10.77.0.11 > 10.77.0.1" --json | jq -r .rule)" outside "why of an allowed source" ||
		return
	pacer allow s0 del 10.99.0.11 >/dev/null
	equal "$(pacer why s0 "$asked vxlan 10.77.0.11 > 10.77.0.1" --json | jq -r .rule)" inside "why of it later" || return
	equal "$(pacer why s0 "$asked pppoe" --json | jq -r '"\(.rule), \(.outer)"')" \
		"inside, a frame without addresses" "why of what is around no address" || return
	pacer ban s0 add 10.99.0.12 >/dev/null
	inside 10.99.0.12=400 || return
	equal "$arrived" "" "packets of a banned source" || return
	pacer ban s0 del 10.99.0.12 >/dev/null
	pacer ban s0 add 10.77.0.11 >/dev/null
	matched=$(stats '.rules[0].matched')
	inside 10.99.0.12=400 || return
	equal "$arrived" "" "packets in a banned source's tunnel" || return
	equal "$(stats '.rules[0].matched')" "$matched" "of them matched inside"
}

# The outer source is banned for a time, by hand or by another tool: what the inner packet's rule says counts
# after that.
banned_around()
{
	local by pin=/sys/fs/bpf/xdp-pacer/s0/banned4 say until
	local asked="udp 10.99.0.11:5000 > 10.99.0.1:9000 in vxlan 10.77.0.11 > 10.77.0.1"

	policy dropped <<-END
	bans: 1024
	rules: [{name: inside, match: {inner: yes, proto: udp, dport: 9000}, verdict: drop}]
	END
	until=$(python3 -c 'import struct, time; print(*struct.pack("<Q", time.monotonic_ns() + 60 * 10**9))')
	for say in inner dropped; do
		load "$say" --pin
		inside 10.99.0.11=400 || return
		for by in hand tool; do
			# shellcheck disable=SC2086
			case $by in
			hand) pacer ban s0 add 10.77.0.11 --for 60s >/dev/null ;;
			tool) bpftool map update pinned "$pin" key 32 0 0 0 10 77 0 11 value $until ;;
			esac
			pacer why s0 "$asked" --json | jq -r '[.reason, .banned_source.prefix, .banned_source.by_tool,
				(.outer | length > 0), (if .wait_ns then .wait_ns > 500e9 else "never" end)] | map(tostring) | join(" ")' \
				>"$work/why"
			equal "$(cat "$work/why")" \
				"ban 10.77.0.11 $([ $by = tool ] && echo true || echo false) true $([ $say = inner ] && echo true || echo never)" \
				"why of what is $say in a source banned by $by" || return
			pacer ban s0 del 10.77.0.11 >/dev/null
		done
		pacer unload s0 >/dev/null
	done
}

# Every tunnel there is: the kernel's program says of each packet what user space says.
kernel_alike()
{
	PYTHONDONTWRITEBYTECODE=1 python3 - "$here/../tshark" "$work/all.pcap" <<-'END'
	import sys
	sys.path.insert(0, sys.argv[1])
	import made, tunnels
	all = [*tunnels.frames(), *tunnels.carried(tunnels.LINUX_ALONE), *tunnels.nothing()]
	made.write(sys.argv[2], made.ETHERNET, (f for _, f in all))
	END
	policy all <<-END
	clock: exact
	rules:
	  - {name: small, match: {inner: yes, proto: tcp, flags: syn, vlan: none}, verdict: drop}
	  - {name: icmp, match: {icmp_type: 0-255}, verdict: drop}
	  - {name: options, match: {inner: yes, options: yes, dscp: 46}, limits: [{key: src+dst+proto, packets: 9, window: 1s}]}
	  - {name: later, match: {inner: yes, fragment: later, src: [10.0.0.0/8, "fd00::/8"]},
	     limits: [{key: flow, packets: 5, window: 1s}]}
	  - {name: data, match: {inner: yes, payload: 0=0x64617461, payload_len: 4}, limits: [{key: ttl, packets: 40, window: 1s}]}
	  - {name: v6, match: {src: "2001:db8::/32"}, limits: [{key: src/32,64, bytes: 5K, window: 1s}]}
	  - {name: rest, match: {inner: yes}, limits: [{key: src/32,64, bytes: 5K, window: 1s}]}
	END
	"$BUILD/xdp-pacer" replay -c "$work/all.yaml" "$work/all.pcap" --verdicts >"$work/user"
	"$BUILD/xdp-pacer" replay -c "$work/all.yaml" "$work/all.pcap" --verdicts --kernel >"$work/kernel"
	cmp "$work/user" "$work/kernel" || return
	# Each rule has seen some, and those with limits have denied some.
	equal "$(cut -d, -f3,5 "$work/user" | sort | uniq -c | wc -l)" 13 "rules and verdicts"
}

# What no host takes, and a router forwards: each falls under a rule for what is in tunnels, to both.
forwarded()
{
	local frames how

	frames=$(PYTHONDONTWRITEBYTECODE=1 python3 - "$here/../tshark" "$work/wrong.pcap" <<-'END'
	import sys
	sys.path.insert(0, sys.argv[1])
	import made, tunnels
	frames = [f for _, f in tunnels.wrong_behind()]
	made.write(sys.argv[2], made.ETHERNET, frames)
	print(len(frames))
	END
	)
	policy wrong <<-END
	unparsed: pass
	rules: [{name: rest, match: {inner: yes, proto: [udp, tcp, 132], src: [10.0.0.0/8, "fd00::/8"]}, verdict: drop}]
	END
	for how in "" --kernel; do
		"$BUILD/xdp-pacer" replay -c "$work/wrong.yaml" "$work/wrong.pcap" --json ${how:+"$how"} >"$work/wrong"
		equal "$(jq -r '.rules[0] | "\(.matched) \(.denied.verdict)"' "$work/wrong")" "$frames $frames" \
			"matched and denied${how:+, $how}" || return
	done
}

net_up
tunnel_up
check inner-limited limited
check inner-sources sources
check inner-banned-around banned_around
check inner-kernel kernel_alike
check inner-forwarded forwarded
finish
