#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Which rule a frame falls under: prefixes, protocols, ports, tags, order, and no rule at all.
#
#   client                                       server
#   tagged and untagged, IPv4 and IPv6  c0 -- s0   the pacer: a counter a rule
#
# The tags lie in the frame, as they do for every program on a device that strips none.
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

# matching "RULE:N..." SHOT...: the counters' rise by so many, of these rules and no others; `-` is
# no rule.
matching()
{
	local wanted=$1 before after

	shift
	before=$(all_counts)
	timeout "$hang_s" "$shots" "$CLIENT" "$SERVER" "$@" >/dev/null
	after=$(all_counts)
	equal "$(jq -rn --argjson a "$before" --argjson b "$after" \
		'[$b | to_entries[] | select(.value > $a[.key]) | "\(.key):\(.value - $a[.key])"] | join(" ")')" \
		"$wanted" "rules that $* fell under"
}

all_counts()
{
	stats '([.rules[] | {(.name): .matched}] | add) + {"-": .no_limit.no_rule, "!": .unparsed}'
}

rules()
{
	local one

	echo rules:
	while read -r one; do
		echo "  - {$one, limits: [{key: all, packets: 1M, window: 60s}]}"
	done
}

prefixes()
{
	rules <<-END | policy prefixes
	name: host, match: {src: 10.77.0.11}
	name: net, match: {src: 10.77.0.0/24, dst: 10.77.0.0/31}
	name: half, match: {src: 0.0.0.0/1, dst: 10.77.0.2}
	name: hosts6, match: {src: ["fd77::11", "fd77::13"]}
	name: net6, match: {dst: "fd77::/64", src: "fd77::/121"}
	name: both, match: {src: [192.168.0.0/16, "fd78::/16"]}
	END
	load prefixes
	matching "host:1" n=1,from=10.77.0.11
	matching "net:2" n=1,from=10.77.0.12 n=1,from=10.77.0.255,to=10.77.0.0
	matching "half:2 -:1" n=1,from=10.77.1.0 n=1,from=10.77.0.12,to=10.77.0.2 \
		n=1,from=127.255.255.255,to=10.77.0.2
	matching "-:2" n=1,from=128.0.0.0,to=10.77.0.2 n=1,from=10.77.0.12,to=10.77.0.3
	matching "hosts6:2 net6:1" n=1,from=fd77::11 n=1,from=fd77::12 n=1,from=fd77::13
	matching "net6:2 -:2" n=1,from=fd77::7f n=1,from=fd77::80 \
		n=1,from=fd77::7e,to=fd77::ffff:ffff:ffff:ffff n=1,from=fd77::7e,to=fd77:0:0:1::
	matching "both:3 -:1" n=1,from=192.168.255.255 n=1,from=192.168.0.0 n=1,from=192.169.0.0 \
		n=1,from=fd78:ffff::1,to=::1
}

ports_and_protocols()
{
	rules <<-END | policy ports
	name: dns, match: {proto: udp, dport: 53}
	name: web, match: {proto: tcp, dport: [80, 443, 8000-8999]}
	name: reply, match: {proto: [tcp, udp, sctp], sport: 53}
	name: high, match: {dport: 32768-65535}
	name: icmp, match: {proto: [icmp, icmpv6]}
	name: p200, match: {proto: 200-202}
	END
	load ports
	matching "dns:2" n=1,dport=53 n=1,dport=53,from=fd77::11
	matching "-:3" n=1,dport=53,proto=6 n=1,dport=52 n=1,dport=54
	matching "web:4 -:2" n=1,proto=6,dport=80 n=1,proto=6,dport=443,from=fd77::11 \
		n=1,proto=6,dport=8000 n=1,proto=6,dport=8999 n=1,proto=6,dport=9000 n=1,proto=6,dport=7999
	matching "reply:3" n=1,sport=53 n=1,sport=53,proto=6 n=1,sport=53,proto=132
	matching "high:2 -:1" n=1,dport=65535 n=1,dport=32768 n=1,dport=32767
	matching "icmp:2" n=1,proto=1 n=1,proto=58,from=fd77::11
	matching "p200:2 -:2" n=1,proto=199 n=1,proto=200 n=1,proto=202 n=1,proto=203
}

vlans()
{
	rules <<-END | policy vlans
	name: five, match: {vlan: 5}
	name: some, match: {vlan: [100-199, 4095]}
	name: bare, match: {vlan: none, proto: udp}
	END
	load vlans
	matching "bare:2" n=1 n=1,from=fd77::11
	matching "five:3" n=1,vlan=5 n=1,vlan=5,from=fd77::11 n=1,vlan=5,vlan=7
	matching "some:3 -:3" n=1,vlan=100 n=1,vlan=199 n=1,vlan=4095 n=1,vlan=99 n=1,vlan=200 \
		n=1,vlan=7,vlan=5
	matching "bare:1" n=1,vlan=0 # a priority tag is of no VLAN: that of the next counts
	matching "five:1" n=1,vlan=0,vlan=5
	matching "five:1" n=1,vlan=40965 # priority 5 and VLAN 5
	policy tagged <<-END
	rules:
	  - {name: five, match: {vlan: 5}, limits: [{key: src, packets: 10, window: 60s}]}
	END
	apply tagged
	arrive "10 10 20" n=20,vlan=5 n=20,vlan=5,from=fd77::11 n=20,vlan=6
}

# The first rule that matches is the one, whatever it says: an exception stands before the rule.
order()
{
	policy order <<-END
	rules:
	  - {name: wide, match: {src: 10.77.0.12, dport: 9000}, limits: [{key: src, packets: 30, window: 60s}]}
	  - {name: narrow, match: {dport: 9000}, limits: [{key: src, packets: 5, window: 60s}]}
	  - {name: never, match: {src: 10.77.0.12, dport: 9000}, limits: [{key: src, packets: 1, window: 60s}]}
	END
	load order
	arrive "30 5 50" n=50,from=10.77.0.12 n=50,from=10.77.0.11 n=50,dport=9001
	counted wide 50 30 0 20
	counted narrow 50 5 0 45
	counted never 0 0 0 0
	equal "$(stats .no_limit.no_rule)" 50 "packets of no rule"
	policy none <<-END
	rules: []
	END
	apply none
	arrive "50" n=50,from=10.77.0.12
}

# A verdict takes all of its packets, at any rate; else takes those of no rule, and no ARP.
verdicts()
{
	policy verdicts <<-END
	else: drop
	rules:
	  - {name: bad, match: {src: 10.77.0.12}, verdict: drop}
	  - {name: good, match: {dport: 9001}, verdict: pass}
	  - {name: some, match: {dport: 9002}, limits: [{key: src, packets: 5, window: 60s}]}
	END
	load verdicts
	arrive "0 40 5 0" n=30,from=10.77.0.12,dport=9001 n=40,dport=9001 n=20,dport=9002 n=10,dport=9003
	equal "$(stats '.rules[0] | "\(.matched) \(.admitted) \(.denied.verdict)"')" "30 0 30" "bad"
	equal "$(stats '.rules[1] | "\(.matched) \(.admitted) \(.denied.verdict)"')" "40 40 0" "good"
	equal "$(stats .no_limit.verdict)" 10 "packets that else has dropped"
	policy verdicts2 <<-END
	mode: monitor
	else: drop
	rules: [{name: bad, match: {src: 10.77.0.12}, verdict: drop}]
	END
	apply verdicts2
	arrive "30 10" n=30,from=10.77.0.12,dport=9001 n=10,dport=9003
}

# Datagrams from socket to socket, through both stacks.
sockets()
{
	limit ten 10
	load ten
	traffic_on 9000 1000 10.77.0.11=400 fd77::12=400
	until_true 5 enough_matched 60
	traffic_off
	equal "$arrived" 20 "datagrams that arrived"
	equal "$(stats '.rules[0] | "\(.matched) \(.denied.window)"')" "$sent $((sent - 20))" \
		"matched and denied"
}

enough_matched()
{
	[ "$(stats '.rules[0].matched')" -ge "$1" ]
}

net_up
check match-prefixes prefixes
check match-ports ports_and_protocols
check match-vlans vlans
check match-order order
check match-verdicts verdicts
check match-sockets sockets
finish
