#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What a stack delivers gets round no limit: of 300 datagrams to a listening socket, packed in more
# headers than are read, 20 arrive where 20 are allowed.
#
#   client                               server
#   datagrams, well packed    c0 ---- s0   the pacer; a socket that listens
#                                     t0   the pacer on a tun device, which has no Ethernet header
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

past=$(tool past)

# reach KIND N: of so many datagrams, those that reached the socket.
reach()
{
	timeout -k 1 "$hang_s" "$past" "$CLIENT" "$SERVER" "$@"
}

# reached KIND WANTED [ALL]: with no pacer all 300 are delivered, or ALL; with it so many, even where what is not
# parsed may pass.
reached()
{
	in_server ip link set dev s0 xdp off
	equal "$(reach "$1" 300)" "${3:-300}" "$1: delivered where there is no pacer"
	limit past 20
	echo "unparsed: pass" >>"$work/past.yaml"
	load past
	equal "$(reach "$1" 300)" "$2" "$1: delivered"
}

as_they_are()
{
	reached udp4 20
	reached udp6 20
}

extension_headers()
{
	reached headers=100 20
	reached headers=9 20
	counted udp 300 20 0 280
	equal "$(stats '.rules[0].events.read_in_part')" 300 "events of what was read in part"
	equal "$(stats .unparsed)" 0 "packets that were not parsed"
}

# Beyond what is followed nothing of them can be limited: none is delivered. Newer kernels take off 8 tags and drop
# what has more: there the counters alone say what the pacer let through.
priority_tags()
{
	local all=300 some=20

	reached priority=3 20
	reached priority=8 20
	in_server ip link set dev s0 xdp off
	if [ "$(reach priority=16 300)" -eq 0 ]; then
		so_far "past-priority-tags: this kernel delivers nothing behind 16 tags"
		all=0 some=0
	fi
	reached priority=16 "$some" "$all"
	counted udp 300 20 0 280
	reached priority=17 0 "$all"
	equal "$(stats .no_limit.too_deep)" 300 "too deep"
	pacer set s0 mode=monitor >/dev/null
	equal "$(reach priority=17 300)" "$all" "17 tags: delivered in monitor mode"
	equal "$(stats .no_limit.too_deep)" 600 "too deep"
}

# A rule on VLANs sees through priority tags, which are none of them.
priority_and_vlan()
{
	policy vlan <<-END
	rules:
	  - {name: tagged, match: {vlan: 1-4095}, limits: [{key: src, packets: 1, window: 60s}]}
	  - {name: none, match: {vlan: none, dport: 9000}, limits: [{key: src, packets: 20, window: 60s}]}
	END
	load vlan
	equal "$(reach priority=2 300)" 20 "delivered under the rule of no VLAN"
	counted tagged 0 0 0 0
	counted none 300 20 0 280
}

no_length()
{
	reached nolength 20
}

# Each datagram is two packets of its source, of which 20 are admitted: of a rule on UDP, whatever
# protocol the second says it were of.
first_fragments()
{
	reached fragments 10
	reached lying 10
}

# A rule that only counts passes all that it takes: what is not known of a packet does not take it there.
rules_that_count()
{
	policy counts <<-END
	rules:
	  - {name: web, match: {proto: tcp, dport: 443}, limits: [{key: src, packets: 1, window: 60s}], over: pass}
	  - {name: dns, match: {proto: udp, dport: 53}, limits: [{key: src, packets: 1, window: 60s}], over: pass}
	  - {name: all, limits: [{key: src, packets: 20, window: 60s}]}
	END
	load counts
	equal "$(reach headers=9 300)" 20 "delivered, of what has more headers than are read"
	counted web 0 0 0 0
	in_server ip link set dev s0 xdp off
	load counts
	equal "$(reach fragments 300)" 10 "delivered, of datagrams in two fragments"
	counted dns 0 0 0 0
}

tun_up()
{
	in_server ip tuntap add dev t0 mode tun
	in_server ip link set t0 addrgenmode none
	in_server ip addr add 10.78.0.1/24 dev t0
}

tun()
{
	tun_up
	in_server ip link set t0 up
	in_server ip addr add fd78::1/64 dev t0 nodad
	equal "$(reach tun4 300) $(reach tun6 300)" "300 300" "delivered where there is no pacer"
	limit tun 20
	pacer load t0 -c "$work/tun.yaml" --mode skb >/dev/null
	equal "$(reach tun4 300) $(reach tun6 300)" "20 20" "delivered"
	equal "$(pacer stats t0 --json | jq -c '.rules[0] | [.matched, .admitted, .denied.window]')" \
		"[600,40,560]" "matched, admitted and denied"
	equal "$(pacer stats t0 --json | jq -c '[.no_limit.not_ip, .no_limit.no_rule]')" "[0,20]" \
		"what is not IP, and marks"
	in_server ip link del t0
}

# The link type tells how frames begin; one that begins otherwise is refused, in one line.
link_types()
{
	local type why

	limit link 20
	for type in 512 768 769 776 519 65534; do
		tun_up
		reach "link=$type" 0
		in_server ip link set t0 up
		pacer load t0 -c "$work/link.yaml" --mode skb >/dev/null || fail "link type $type: refused"
		reach tun4 0 >/dev/null # a mark
		equal "$(pacer stats t0 --json | jq -c '.no_limit | [.no_rule, add]')" "[1,1]" \
			"link type $type: packets of no rule, and all"
		in_server ip link del t0
	done
	for type in 280 801 824 778 823; do # the last two: GRE
		tun_up
		reach "link=$type" 0
		in_server ip link set t0 up
		case $type in
		778 | 823) why="packets in GRE may begin with VLAN tags, .*: pace the interface below it" ;;
		*) why="its link type \(ARPHRD $type\) is neither Ethernet nor raw IP" ;;
		esac
		refused 1 "t0: $why" pacer load t0 -c "$work/link.yaml" --mode skb
		equal "$(what_is_on t0)" "{}" "what is on t0"
		in_server ip link del t0
	done
}

net_up
check past-as-they-are as_they_are
check past-extension-headers extension_headers
check past-priority-tags priority_tags
check past-priority-and-vlan priority_and_vlan
check past-no-length no_length
check past-first-fragments first_fragments
check past-rules-that-count rules_that_count
check past-tun tun
check past-link-types link_types
finish
