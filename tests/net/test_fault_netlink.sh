#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A load is whole or has not happened, whichever message to the kernel or answer fails; and a pacer
# takes the place of a pacer, or that one stays.
#
#   client                                   server
#   10.77.0.11-18   c0 ---------------- s0   xdp-pacer load --replace, of which a call fails
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/fault.sh
. "$(dirname "$0")/fault.sh"

# each_fails_of_replace CALLS ERRNO: as each_fails. Where that is said to have
# failed, the pacer before is there.
each_fails_of_replace()
{
	local n id

	limit ten 10
	limit two 2
	load ten
	id=$(status .program_id)
	arrive "10" n=20
	for ((n = 1; n < 200; n += step)); do
		faulty "$1" "$n" "$2" load s0 -c "$work/two.yaml" --replace || return
		$failed || break
		((n % 20 >= step)) || so_far "$n calls of $1"
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

# Another command was faster: the kernel says that what is to be replaced is not there any more.
replaced_meanwhile()
{
	local n id

	limit ten 10
	load ten
	id=$(status .program_id)
	for ((n = 1; n < 40; n++)); do
		faulty sendto "$n" "$ebusy" upgrade s0 || return
		$failed || break
		! grep -q meanwhile "$work/err" || break
		[ "$code" -ne 0 ] || id=$(status .program_id) # done all the same
	done
	equal "$(cat "$work/err")" "xdp-pacer: s0: its pacer was taken off or replaced meanwhile: try again" \
		"call $n of an upgrade" || return
	equal "$(status .program_id)" "$id" "the program after it" || return
	pacer unload s0 >/dev/null
}

net_up
check fault-netlink each_fails socket,bind,sendto,recvmsg "$enomem" 1 10 --direct
check fault-netlink-libxdp each_fails socket,bind,sendto,recvmsg "$enomem" 1 10
check fault-replace each_fails_of_replace socket,bind,sendto,recvmsg "$enomem"
check fault-replaced-meanwhile replaced_meanwhile
finish
