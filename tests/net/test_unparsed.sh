#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Frames that are cut short or lie: their verdict is the policy's `unparsed`, drop unless it says pass;
# what is too deep is dropped under either. Each has its counter, and none costs an honest source
# anything.
#
#   client                               server
#   raw frames, cut and bent  c0 ---- s0   the pacer, with unparsed: pass, then drop
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

readonly from4=0a4d000b to4=0a4d0001
readonly from6=fd770000000000000000000000000011 to6=fd770000000000000000000000000001
readonly udp=0fa0232800080000

# The reason that is counted, and the frame from its EtherType on.
frames()
{
	cat <<-END
	truncated 0800
	truncated 080045
	truncated 080045000014
	truncated 0800450000140000000040110000${from4}${to4:0:4}
	truncated 0800450000140000000040110000${from4}${to4}
	truncated 0800450000160000000040110000${from4}${to4}0fa0
	truncated 86dd
	truncated 86dd60000000
	truncated 86dd6000000000031140${from6}${to6}0fa023
	truncated 86dd6000000000020040${from6}${to6}1100
	truncated 810000
	truncated 81000005
	truncated 88a80005810000
	bad_header 08004500001c0000000040110000${from4}${to4}
	bad_header 08004f00003c0000000040110000${from4}${to4}${udp}
	bad_header 86dd6000000000081140${from6}${to6}0fa023
	bad_header 08003500001c0000000040110000${from4}${to4}${udp}
	bad_header 08004400001c0000000040110000${from4}${to4}${udp}
	bad_header 0800450000100000000040110000${from4}${to4}${udp}
	bad_header 08006500001c0000000040110000${from4}${to4}${udp}
	bad_header 86dd4000000000081140${from6}${to6}${udp}
	truncated 810000018100000281000003080045
	truncated 86dd6000000000400040${from6}${to6}$(printf '3c00000000000000%.0s' 1 2 3 4 5 6 7)1100000000000000
	too_deep $(printf '81000000%.0s' {1..17})08004500
	END
}

unparsed_counters()
{
	stats '.no_limit | {truncated, bad_header, too_deep}'
}

# dropped: frames that the program on s0 has told the device to drop. The stack does not let all that
# passed be seen: it drops a tag with nothing behind it by itself.
dropped()
{
	in_server ethtool -S s0 | awk '/rx_queue_[0-9]+_xdp_drops/ { n += $2 } END { print n }'
}

# each: one by one, every frame of the list makes its counter rise by one, and no other.
each()
{
	local reason raw before

	while read -r reason raw; do
		before=$(unparsed_counters)
		timeout "$hang_s" "$shots" "$CLIENT" "$SERVER" "n=1,raw=$raw" >/dev/null
		equal "$(unparsed_counters)" "$(jq -c ".$reason += 1" <<<"$before")" \
			"counters after the frame $raw" || exit 1
	done < <(frames)
}

# all DROPPED UNPARSED: of the whole list so many are dropped, and so many were not parsed until now.
all()
{
	local list drops

	drops=$(dropped)
	mapfile -t list < <(frames | sed 's/.* /n=1,raw=/')
	timeout "$hang_s" "$shots" "$CLIENT" "$SERVER" "${list[@]}" >/dev/null
	equal "$(($(dropped) - drops)) $(stats .unparsed)" "$1 $2" "frames dropped, and not parsed"
}

verdicts()
{
	local n

	n=$(frames | wc -l)
	limit pass 10
	echo "unparsed: pass" >>"$work/pass.yaml"
	limit drop 10
	echo "unparsed: drop" >>"$work/drop.yaml"
	limit default 10
	limit monitor 10
	printf 'unparsed: drop\nmode: monitor\n' >>"$work/monitor.yaml"
	load pass
	arrive "4" n=4
	each
	all "$(frames | grep -c too_deep)" $((2 * n))
	apply drop
	all "$n" $((3 * n))
	apply monitor
	all 0 $((4 * n))
	apply pass
	arrive "6" n=9
	counted udp 13 10 0 3
	pacer set s0 unparsed=drop >/dev/null
	arrive "0" "n=1,raw=0800"
	apply pass
	arrive "1" "n=1,raw=0800"
	apply default
	arrive "0" "n=1,raw=0800"
}

# What is neither IPv4 nor IPv6 passes, whatever `unparsed` says.
not_ip()
{
	local before

	limit drop 10
	echo "unparsed: drop" >>"$work/drop.yaml"
	load drop
	before=$(stats .no_limit.not_ip)
	arrive "1 1 1" n=1,raw=0806 n=1,raw=88cc0000 n=1,raw=81000005884700000000
	# Behind each of the three goes the mark of its arrival.
	equal "$(stats .no_limit.not_ip)" $((before + 6)) "frames that are not IP"
}

net_up
check unparsed-verdicts verdicts
check unparsed-not-ip not_ip
finish
