#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A load is whole or has not happened, whichever call of it fails and whichever privilege is missing;
# where it is to replace a pacer, that one stays.
#
#   client                                   server
#   10.77.0.11-18   c0 ---------------- s0   xdp-pacer load --direct, of which a call fails
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/fault.sh
. "$(dirname "$0")/fault.sh"

# The same where the pacer before is to be replaced: that one is there again, and has its state.
each_fails_of_replace()
{
	local n id

	limit ten 10
	limit two 2
	load ten
	id=$(status .program_id)
	arrive "10" n=20
	for ((n = 1; n < 200; n++)); do
		faulty "$1" "$n" "$2" load s0 -c "$work/two.yaml" --replace || return
		$failed || break
		if [ "$code" -eq 0 ]; then
			arrive "2" n=20 || fail "call $n of $1: done, but does not limit" || return
			pacer unload s0 >/dev/null
			load ten
			id=$(status .program_id)
			arrive "10" n=20 || return
		fi
		equal "$(status .program_id)" "$id" "call $n of $1: program after $(cat "$work/err")" ||
			return
	done
	[ "$n" -gt 10 ] && [ "$n" -lt 200 ] || fail "$((n - 1)) calls of $1" || return
	equal "$code" 0 "a replacement in which no call fails"
	arrive "2" n=20
}

# bounded CAPABILITIES PATTERN: no load with these alone.
bounded()
{
	refused 1 "$2" in_server setpriv --bounding-set "-all,$1" --inh-caps "-all,$1" \
		"$BUILD/xdp-pacer" load s0 -c "$work/ten.yaml" || return
	equal "$(what_is_on s0)" "{}" "left on s0 with $1" || return
	refused 1 "$2" in_server setpriv --bounding-set "-all,$1" --inh-caps "-all,$1" \
		"$BUILD/xdp-pacer" load s0 -c "$work/ten.yaml" --direct || return
	equal "$(what_is_on s0)" "{}" "left on s0 with $1"
}

# What could attach the pacer, and not find it again, is refused; what is missing is said.
partial_privileges()
{
	limit ten 10
	bounded +net_admin 's0: no privilege to make a BPF map: run as root'
	bounded +bpf 's0: no privilege to find the pacer again .*CAP_SYS_ADMIN.*run as root'
	bounded +net_admin,+bpf 's0: no privilege to find the pacer again .*CAP_SYS_ADMIN.*run as root'
	bounded +net_admin,+bpf,+perfmon 's0: no privilege to find the pacer again .*CAP_SYS_ADMIN'
	bounded +sys_admin 's0: no privilege to attach the program .*: run as root'
	in_server setpriv --bounding-set -all,+net_admin,+sys_admin --inh-caps -all \
		"$BUILD/xdp-pacer" load s0 -c "$work/ten.yaml" >/dev/null # these two suffice
	arrive "10" n=20
	pacer unload s0 >/dev/null
}

net_up
check fault-bpf each_fails bpf "$einval" 1 40 --direct
check fault-netlink each_fails socket,bind,sendto,recvmsg "$enomem" 1 10 --direct
check fault-replace each_fails_of_replace socket,bind,sendto,recvmsg "$enomem"
check fault-privileges partial_privileges
finish
