#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A load is whole or has not happened, whichever bpf(2) of it fails and whichever privilege is missing.
#
#   client                                   server
#   10.77.0.11-18   c0 ---------------- s0   xdp-pacer load --direct, of which a call fails
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/fault.sh
. "$(dirname "$0")/fault.sh"

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
check fault-privileges partial_privileges
finish
