#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Frames that are several packets, since they were joined (GRO) or are not cut yet (GSO): what load says of where
# they come from, and that the limit holds for packets once that is off.
#
#   client                    server
#   frames of 20 packets   c0 ---- s0   the pacer; or s0 is a port of br0, and the pacer is there
#                                  d0   a port that has GRO as a card has it
#
# shellcheck disable=SC2317,SC2016 # the functions are reached through check; messages have backquotes
# shellcheck source=tests/net/fault.sh
. "$(dirname "$0")/fault.sh"

readonly counts="count as one, and are cut apart behind the pacer"
readonly at_peer='`ethtool -K IFACE tso off tx-udp-segmentation off` of the peer of s0'

# says IFACE PATTERN MODE: load says one line that has it; none where it is empty; and its JSON is whole.
says()
{
	pacer load "$1" -c "$work/three.yaml" --mode "$3" --json >"$work/out" 2>"$work/err" || fail "$1: not loaded" || return
	pacer unload "$1" >/dev/null
	equal "$(jq -r .interface "$work/out")" "$1" "the interface in the JSON" || return
	if [ -z "$2" ]; then
		equal "$(cat "$work/err")" "" "said of $1" || return
		return
	fi
	equal "$(wc -l <"$work/err")" 1 "lines on stderr" || return
	grep -q "^xdp-pacer: $1: packets that come joined in one frame $counts; what stops that$2\$" "$work/err" ||
		fail "$1: no '$2' in: $(cat "$work/err")"
}

# passed IFACE: of 10 frames of 20 packets each that c0 sends there, the packets that the pacer there let through.
passed()
{
	python3 - "$CLIENT" "$SERVER" "$1" <<-END
	import ctypes, socket, struct, sys
	def at(netns, device):
	    with open("/run/netns/" + netns) as f:
	        ctypes.CDLL(None).setns(f.fileno(), 0x40000000)
	    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
	    s.bind((device, 0))
	    return s
	out, into = at(sys.argv[1], "c0"), at(sys.argv[2], sys.argv[3])
	out.setsockopt(263, 15, 1) # PACKET_VNET_HDR
	into.setsockopt(1, 33, 1 << 23)
	into.settimeout(5)
	mac, ends = into.getsockname()[4], socket.inet_aton("10.77.0.11") + socket.inet_aton("10.77.0.1")
	def part(words):
	    total = sum(struct.unpack("!%dH" % (len(words) // 2), words))
	    return (total & 0xffff) + (total >> 16)
	payload = bytes(20 * 1000)
	length = 8 + len(payload)
	ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, 1, 0x4000, 64, 17, 0) + ends
	ip = ip[:10] + struct.pack("!H", 0xffff & ~part(ip)) + ip[12:]
	udp = struct.pack("!HHHH", 4000, 9000, length, part(ends + struct.pack("!HH", 17, length))) + payload
	frame = mac + bytes([2, 0, 0, 0, 0, 1]) + b"\x08\x00"
	# Checksums that are to be made, from byte 34 on; segments of 1000 bytes (VIRTIO_NET_HDR_GSO_UDP_L4).
	for i in range(10):
	    out.send(struct.pack("<BBHHHH", 1, 5, 42, 1000, 34, 6) + frame + ip + udp)
	out.send(bytes(10) + frame[:12] + b"\x88\xb6" + bytes(46)) # a mark behind them
	n = 0
	while True:
	    got = into.recv(70000)
	    if got[12:14] == b"\x88\xb6":
	        break
	    if got[12:14] == b"\x08\x00" and got[26:34] == ends:
	        n += (len(got) - 42) // 1000
	print(n)
	END
}

# holds IFACE MODE WANTED
holds()
{
	pacer load "$1" -c "$work/three.yaml" --mode "$2" >/dev/null 2>&1
	equal "$(passed "$1")" "$3" "packets that passed a limit of 3 on $1, in mode $2" || return
	pacer unload "$1" >/dev/null
}

peer_cuts()
{
	in_client ethtool -K c0 tso "$1" tx-udp-segmentation "$1"
}

of_a_veth()
{
	limit three 3
	says s0 "" native || return
	holds s0 native 3 || return
	says s0 ": $at_peer" skb || return
	holds s0 skb 60 || return
	peer_cuts off
	holds s0 skb 3 || return
	peer_cuts on
}

of_a_bridge()
{
	limit three 3
	in_server ip link add br0 type bridge
	in_server ip link set br0 up
	says br0 "" skb || return
	in_server ip link add d0 type ifb
	in_server ip link set d0 master br0 up
	says br0 ': `ethtool -K IFACE gro off` of d0' skb || return
	in_server ip link add link br0 name m0 up type macvlan
	says m0 ': `ethtool -K IFACE gro off` of d0' skb || return
	in_server ethtool -K s0 gro off
	in_server ip link set s0 master br0
	says br0 ": \`ethtool -K IFACE gro off\` of d0, and $at_peer" skb || return
	in_server ethtool -K s0 gro on
	says br0 ": \`ethtool -K IFACE gro off\` of \(s0, d0\|d0, s0\), and $at_peer" skb || return
	in_server ethtool -K s0 gro off
	in_server ethtool -K d0 gro off
	says br0 ": $at_peer" skb || return
	holds br0 skb 60 || return
	peer_cuts off
	holds br0 skb 3 || return
	peer_cuts on
	in_server ip link set s0 nomaster
	says br0 "" skb || return
	in_server ip link del m0
	in_server ip link del d0
	in_server ip link del br0
}

# Each of several is named as long as there is room.
of_many()
{
	local cut='`ethtool -K IFACE tso off tx-udp-segmentation off`' i

	limit three 3
	in_server ip link add br0 up type bridge
	in_server ip link add a0 type veth peer name a1
	in_server ethtool -K a0 gro off
	in_server ethtool -K a1 gro off
	in_server ip link set a0 master br0
	in_server ip link set a1 master br0
	for i in t0 t1; do
		in_server ip tuntap add dev "$i" mode tap
		in_server ethtool -K "$i" gro off
		in_server ip link set "$i" master br0
	done
	says br0 ": $cut of the peer of \(a0, a1\|a1, a0\), and $cut in the guest that writes to \(t0, t1\|t1, t0\)" skb || return
	for i in t0 t1; do
		in_server ip link del "$i"
	done
	in_server ip link del a0
	for ((i = 10; i < 40; i++)); do
		in_server ip link add "dev-of-bridge$i" type ifb
		in_server ip link set "dev-of-bridge$i" master br0
	done
	says br0 ': `ethtool -K IFACE gro off` of dev-of-bridge[^`]*, dev-of-bridge[0-9]* and others' skb || return
	for ((i = 10; i < 40; i++)); do
		in_server ip link del "dev-of-bridge$i"
	done
	in_server ip link del br0
}

# Of a tunnel the kernel tells at most what it was bound to.
of_a_tunnel()
{
	limit three 3
	in_server ip link add d0 type ifb
	in_server ip link add x0 up type vxlan id 5 dstport 4789 dev d0
	says x0 ': `ethtool -K IFACE gro off` of d0' skb || return
	in_server ip link del x0
	in_server ip link add x0 up type vxlan id 5 dstport 4789 remote 10.77.0.11
	says x0 ": \`ethtool -K IFACE gro off\` of the interface that the tunnel's packets come by" skb || return
	in_server ip link del x0
	in_server ip link del d0
}

# What a guest writes is not cut under a native program either.
of_a_tap()
{
	limit three 3
	in_server ip tuntap add dev t0 mode tap
	in_server ip link set t0 up
	says t0 ': `ethtool -K IFACE tso off tx-udp-segmentation off` in the guest that writes to t0' native || return
	says t0 ': `ethtool -K IFACE tso off tx-udp-segmentation off` in the guest that writes to t0' skb || return
	in_server ip link del t0
}

# The services' units allow no sockets of AF_INET: it is looked up without.
of_a_service()
{
	limit three 3
	in_server ip link add d0 type ifb
	in_server ip link add link d0 name m0 up type macvlan
	faulty inet all 97 load m0 -c "$work/three.yaml" --mode skb || return
	grep -q 'gro off` of d0$' "$work/err" || fail "$(cat "$work/err")" || return
	pacer unload m0 >/dev/null
	in_server ip link add br0 up type bridge
	faulty inet all 97 load br0 -c "$work/three.yaml" || return
	grep -q 'a bridge takes no native XDP program: load its ports' "$work/err" || fail "$(cat "$work/err")" || return
	in_server ip link del br0
	in_server ip link del d0
}

# Of what is in another network namespace nothing can be looked up.
of_elsewhere()
{
	limit three 3
	in_client ip link add link c0 name m0 type macvlan
	in_client ip link set m0 netns "$SERVER"
	in_server ip link set m0 up
	says m0 ': `ethtool -K IFACE gro off` of what is below it in another network namespace' skb || return
	in_server ip link del m0
}

net_up
check joined-of-a-veth of_a_veth
check joined-of-a-bridge of_a_bridge
check joined-of-many of_many
check joined-of-a-tunnel of_a_tunnel
check joined-of-a-tap of_a_tap
check joined-of-a-service of_a_service
check joined-of-elsewhere of_elsewhere
finish
