#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# System calls of a change fail or are its last ones: what is said of it is what is in force.
#
#   client                                  server
#   10.77.0.11-18, fd77::11-18  c0 ---- s0  the pacer; `xdp-pacer apply` and `allow`, hampered
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

# strict NAME ALLOW [FIELD]: one packet a source but for those of the list.
strict()
{
	policy "$1" <<-END
	allow: [$2]
	rules:
	  - {name: strict, match: {proto: udp}, limits: [{key: src, packets: 1, window: 60s${3:-}}]}
	END
}

# trie4: the map of the lists of IPv4, by its number.
trie4()
{
	local id

	for id in $(bpftool -j prog show id "$(status .program_id)" | jq '.map_ids[]'); do
		[ "$(bpftool -j map show id "$id" | jq -r .name)" != pacer_allow4 ] || echo "$id"
	done
}

# copies_of MAP LAST: of the two lists, those that 10.77.0.LAST is on, as the kernel has them.
copies_of()
{
	bpftool -j map dump id "$1" | jq -c --arg last "$(printf '0x%02x' "$2")" '[.[].key |
		select(.[8:] == ["0x0a", "0x4d", "0x00", $last]) | .[4:8] |
		if any(. != "0x00") then 1 else 0 end] | sort'
}

# Killed at any system call, a change by hand during a trial leaves the wider list to come back.
killed_on_trial()
{
	local cut n what code there map split=0

	cut=$(tool cut)
	strict old ""
	strict new ""
	load old
	apply new --confirm-within 10m # the copy on trial is 1
	map=$(trie4)
	for what in add del; do
		for ((n = 0; n < 200; n++)); do
			code=0
			in_server "$cut" flock "$n" 0 0 "$BUILD/xdp-pacer" allow s0 "$what" 10.77.0.11 \
				>/dev/null || code=$?
			there=$(copies_of "$map" 11)
			case $there in
			"[]" | "[0,1]") ;;
			"[0]") split=$((split + 1)) ;;
			*) fail "$what killed at $n: it is on the lists $there" || exit 1 ;;
			esac
			[ "$code" -eq 100 ] || break
			if [ "$what" = del ]; then
				pacer allow s0 add 10.77.0.11 >/dev/null
			elif [ "$there" != "[]" ]; then
				pacer allow s0 del 10.77.0.11 >/dev/null
			fi
		done
		equal "$code" 0 "$what at last: exit code"
	done
	[ "$split" -ge 2 ] || fail "no kill came between the two lists"
}


net_up
check fault-killed-on-trial killed_on_trial
finish
