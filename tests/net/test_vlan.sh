#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# VLAN tags that the kernel keeps beside the frame, where XDP does not see them: what is said of them, and that they
# are seen once that is off.
#
#   client               server
#   tags of 5  c0 ------- s0   the pacer, whose policy asks for VLANs
#                         a0 ---- a1
#
# shellcheck disable=SC2317,SC2016 # the functions are reached through check; messages have backquotes
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

readonly beside="the policy asks for VLANs, and a packet whose tag the kernel keeps beside the frame counts as untagged"
readonly none_kept="txvlan off tx-vlan-stag-hw-insert off"
readonly elsewhere="$beside; what stops that, where its peer is: \`ethtool -K PEER $none_kept\`"

# said IFACE TEXT: stderr of the command before is this one line; none where it is empty.
said()
{
	equal "$(cat "$work/err")" "${2:+xdp-pacer: $1: $2}" "said of $1"
}

two_rules()
{
	policy vlans <<-END
	rules:
	  - {name: five, match: {vlan: 5, proto: udp}, limits: [{key: src, packets: 1k, window: 60s}]}
	  - {name: bare, match: {proto: udp}, limits: [{key: src, packets: 1k, window: 60s}]}
	END
}

# tagged_sent: three datagrams with a tag of VLAN 5.
tagged_sent()
{
	local i

	for i in 1 2 3; do
		in_client bash -c 'echo >/dev/udp/10.77.0.1/9000'
	done
}

# counted FIVE BARE
counted()
{
	until_true 2 matched_are "$1 $2" || fail "under five and bare: $(matched), expected $1 $2"
}

matched()
{
	stats '.rules | map(.matched) | join(" ")'
}

matched_are()
{
	[ "$(matched)" = "$1" ]
}

of_a_veth()
{
	local mode

	"${CLANG:-clang-19}" -O2 -g -target bpf "-I/usr/include/$(gcc -print-multiarch)" -c "$here/tag.bpf.c" -o "$work/tag.o"
	in_client ip neigh replace 10.77.0.1 lladdr "$(in_server ip -j link show s0 | jq -r '.[0].address')" dev c0
	in_client tc qdisc add dev c0 clsact
	in_client tc filter add dev c0 egress bpf direct-action obj "$work/tag.o" sec tc
	two_rules
	for mode in native skb; do
		in_client ethtool -K c0 txvlan on
		pacer load s0 -c "$work/vlans.yaml" --mode "$mode" --json >"$work/out" 2>"$work/err"
		sed -i '/packets that come joined/d' "$work/err"
		said s0 "$elsewhere" || return
		tagged_sent
		counted 0 3 || return
		# shellcheck disable=SC2086 # words
		in_client ethtool -K c0 $none_kept
		tagged_sent
		counted 3 3 || return
		pacer unload s0 >/dev/null
	done
	in_client tc qdisc del dev c0 clsact
}

# Whose peer is here; and only of policies that ask.
of_a_peer()
{
	local one

	two_rules
	limit none 10
	policy key <<-END
	rules: [{name: all, limits: [{key: src+vlan, packets: 10, window: 60s}]}]
	END
	in_server ip link add a0 up type veth peer name a1
	in_server ip link set a1 up
	pacer load a0 -c "$work/none.yaml" >/dev/null 2>"$work/err"
	said a0 "" || return
	for one in vlans key; do
		pacer apply a0 -c "$work/$one.yaml" >/dev/null 2>"$work/err"
		said a0 "$beside; what stops that: \`ethtool -K a1 $none_kept\`" || return
	done
	pacer upgrade a0 >/dev/null 2>"$work/err"
	said a0 "$beside; what stops that: \`ethtool -K a1 $none_kept\`" || return
	# shellcheck disable=SC2086 # words
	in_server ethtool -K a1 $none_kept
	pacer apply a0 -c "$work/vlans.yaml" >/dev/null 2>"$work/err"
	said a0 "" || return
	pacer unload a0 >/dev/null
	in_server ip link del a0
}

# A tun whose writer says what each packet begins with is refused: it could say a tag.
of_a_tun()
{
	local mode

	limit ten 10
	in_server ip tuntap add dev t0 mode tun pi
	in_server ip link set t0 up
	if pacer load t0 -c "$work/ten.yaml" --mode skb >/dev/null 2>"$work/err"; then
		fail "a tun with packet information is taken" || return
	fi
	grep -q "^xdp-pacer: t0: who writes to this tun may begin its packets with VLAN tags, .* IFF_NO_PI$" "$work/err" ||
		fail "$(cat "$work/err")" || return
	in_server ip link del t0
	for mode in tun "tap pi"; do
		# shellcheck disable=SC2086 # words
		in_server ip tuntap add dev t0 mode $mode
		in_server ip link set t0 up
		pacer load t0 -c "$work/ten.yaml" --mode skb >/dev/null 2>"$work/err" || fail "$mode: $(cat "$work/err")" || return
		pacer unload t0 >/dev/null
		in_server ip link del t0
	done
}

net_up
check vlan-of-a-veth of_a_veth
check vlan-of-a-peer of_a_peer
check vlan-of-a-tun of_a_tun
finish
