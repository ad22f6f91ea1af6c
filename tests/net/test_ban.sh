#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A key that a rule denied is banned for a while: then, and nobody else.
#
#   client                                  server
#   10.77.0.11-18, fd77::11-18  c0 ---- s0  the pacer; `xdp-pacer status` and `unban`
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

# banning NAME LIMIT [TTL [BANS [RULE]]]: a rule with this limit, whose denials ban.
banning()
{
	policy "$1" <<-END
	bans: ${4:-64}
	rules:
	  - name: ${5:-udp}
	    match: {proto: udp, dport: 9000}
	    limits: [{$2}]
	    ban: ${3:-60s}
	END
}

readonly three="key: src/32,128, packets: 3, window: 100ms, slots: 1"
readonly three_long="key: src/32,128, packets: 3, window: 60s"

# banned "KEY/RULE...": as status lists them, sorted.
banned()
{
	equal "$(status '[.bans.keys[] | .key + "/" + .rule] | sort | join(" ")')" "$1" "bans"
}

# denied "WINDOW BAN": of the first rule.
denied()
{
	equal "$(stats '.rules[0].denied | "\(.window) \(.ban)"')" "$1" "denied by window, by ban"
}

# events "BANNED BANS_FULL"
events()
{
	equal "$(stats '.rules[0].events | "\(.banned) \(.bans_full)"')" "$1" "banned, bans_full"
}

none_is_banned()
{
	[ "$(status .bans.banned)" = 0 ]
}

# For as long as it says, although the window has long passed; and then no more.
for_a_time()
{
	local begin end

	banning short "$three" 2s
	load short
	begin=$(date +%s%N)
	arrive "3" n=10
	banned "10.77.0.11/udp"
	denied "1 6"
	events "1 0"
	arrive "0 2" n=5,wait_ms=500 n=2,from=10.77.0.12
	denied "1 11"
	until_true 5 none_is_banned
	end=$(date +%s%N)
	[ $((end - begin)) -ge 2000000000 ] || fail "it ended after $((end - begin)) ns"
	arrive "3" n=3,wait_ms=20
	denied "1 11"
	events "1 0"
}

both_families()
{
	banning long "$three_long"
	load long
	arrive "3 3 2 2" n=9 n=9,from=fd77::11 n=2,from=10.77.0.12 n=2,from=fd77::12
	banned "10.77.0.11/udp fd77::11/udp"
	denied "2 10"
	arrive "1 1" n=1,from=10.77.0.12 n=1,from=fd77::12
	arrive "9" n=9,dport=9001
}

# Of a prefix, all are banned together.
prefix()
{
	banning net "key: 'src/24,56', packets: 3, window: 60s"
	load net
	arrive "3 0 1" n=4 n=1,from=10.77.0.12 n=1,from=10.78.0.1
	arrive "3 0 1" n=4,from=fd77::11 n=1,from=fd77:0:0:0ff::1 n=1,from=fd77:0:0:100::1
	banned "10.77.0.0/24/udp fd77::/56/udp"
	refused 1 '10.77.0.11 is not banned' pacer unban s0 10.77.0.11
	pacer unban s0 fd77::/56 >/dev/null
	banned "10.77.0.0/24/udp"
}

other_keys()
{
	banning flow "key: flow, packets: 1, window: 60s"
	load flow
	arrive "1 1" n=3 n=1,sport=4001
	banned "10.77.0.11>10.77.0.1 udp 4000 9000/udp"
	pacer unban s0 "10.77.0.11>10.77.0.1 udp 4000 9000" udp >/dev/null
	banned ""
	off
	banning dport "key: src+dport, packets: 1, window: 60s"
	load dport
	arrive "1" n=3
	banned "10.77.0.11 9000/udp"
	off
	banning dst "key: dst, gap: 60s"
	load dst
	arrive "1 0" n=3 n=1,from=10.77.0.12
	banned "10.77.0.1/udp"
	equal "$(stats '.rules[0].denied | "\(.gap) \(.ban)"')" "1 2" "denied by gap, by ban"
}

# Text and JSON say the same.
listed()
{
	local text

	banning long "$three_long"
	load long
	text=$(pacer status s0)
	grep -q '^  banned    0 keys of 64 at most$' <<<"$text" || fail "$text"
	arrive "3 3" n=9 n=9,from=fd77::11
	text=$(pacer status s0)
	grep -q '^  banned    2 keys of 64 at most$' <<<"$text" || fail "$text"
	grep -Eq '^ +fd77::11 +udp +(60\.0|[0-9]+\.[0-9]) s left$' <<<"$text" || fail "$text"
	equal "$(status '.bans | "\(.banned) \(.room)"')" "2 64" "banned and room"
	equal "$(status '[.bans.keys[].left_ns | . > 40e9 and . <= 60e9] | all')" true "time left"
}

# More than status shows as text.
listed_many()
{
	local n sources=()

	banning many "key: src, packets: 1, window: 60s" 60s 256
	load many
	for n in $(seq 1 40); do
		sources+=("n=2,from=10.80.0.$n")
	done
	arrive "$(yes 1 | head -n 40 | tr '\n' ' ' | sed 's/ $//')" "${sources[@]}"
	equal "$(status '.bans.keys | length')" "$(status .bans.banned)" "keys listed"
	equal "$(status .bans.banned)" "$(stats '.rules[0].events.banned')" "keys banned"
	equal "$(pacer status s0 | grep -c ' s left$')" 32 "lines of bans"
	pacer status s0 | grep -q 'and [0-9]* more: see --json$' || fail "no word of the others"
}

lifted()
{
	policy rules <<-END
	bans: 64
	rules:
	  - name: one
	    match: {dport: 9001}
	    limits: [{$three}]
	    ban: 60s
	  - name: two
	    match: {dport: 9002}
	    limits: [{$three}]
	    ban: 60s
	END
	load rules
	refused 1 's0: 10.77.0.11 is not banned' pacer unban s0 10.77.0.11
	arrive "3 3 3" n=4,dport=9001 n=4,dport=9002 n=4,dport=9001,from=10.77.0.12
	banned "10.77.0.11/one 10.77.0.11/two 10.77.0.12/one"
	refused 1 '10.77.0.12 is not banned under two' pacer unban s0 10.77.0.12 two
	pacer unban s0 10.77.0.11 two >/dev/null
	banned "10.77.0.11/one 10.77.0.12/one"
	arrive "0 3" n=3,dport=9001,wait_ms=250 n=3,dport=9002
	equal "$(pacer unban s0 10.77.0.11 --json | jq .lifted)" 1 "bans lifted"
	refused 1 '10.77.0.11 is not banned' pacer unban s0 10.77.0.11
	arrive "3 0" n=4,dport=9001,wait_ms=250 n=3,dport=9001,from=10.77.0.12
	banned "10.77.0.11/one 10.77.0.12/one"
	pacer unban s0 all one >/dev/null
	pacer unban s0 all >/dev/null
	banned ""
	arrive "3 3" n=3,dport=9001,wait_ms=250 n=3,dport=9001,from=10.77.0.12
	refused 2 'wants IFACE KEY' pacer unban s0
	refused 1 'has no pacer' pacer unban lo all
}

# The allow-list is asked first; the ban goes on beside it.
allowed()
{
	banning long "$three_long"
	load long
	arrive "3" n=9
	pacer allow s0 add 10.77.0.11 >/dev/null
	arrive "9" n=9
	banned "10.77.0.11/udp"
	pacer allow s0 del 10.77.0.11 >/dev/null
	arrive "0" n=9
	denied "1 14"
}

# With no room, the limit alone holds whom it held before, and nobody is banned in another's place.
full()
{
	banning four "$three" 60s 4
	load four
	equal "$(status .bans.room)" 4 "room"
	arrive "3 3 3 3" n=4 n=4,from=10.77.0.12 n=4,from=fd77::11 n=4,from=fd77::12
	events "4 0"
	arrive "3 3" n=6,from=10.77.0.13 n=6,from=fd77::13
	events "4 6"
	denied "10 0"
	arrive "3 2" n=3,from=10.77.0.13,wait_ms=250 n=2,from=10.77.0.14
	arrive "0 0 0 0" n=4 n=4,from=10.77.0.12 n=4,from=fd77::11 n=4,from=fd77::12
	denied "10 16"
	pacer unban s0 fd77::12 >/dev/null
	arrive "3" n=9,from=10.77.0.13,wait_ms=250
	events "5 6"
	banned "10.77.0.11/udp 10.77.0.12/udp 10.77.0.13/udp fd77::11/udp"
}

# Changes that do not concern the table leave it; rules are told by their names.
across_changes()
{
	banning long "$three_long"
	banning other "key: src/32,128, packets: 5, window: 60s" 30s
	banning renamed "$three" 60s 64 dns
	banning bigger "$three" 60s 256
	load long
	arrive "3" n=9
	pacer set s0 udp.packets=50 >/dev/null
	arrive "0" n=9
	apply other
	arrive "0 5" n=9 n=5,from=10.77.0.12
	pacer set s0 mode=monitor >/dev/null
	arrive "9" n=9
	pacer set s0 mode=enforce >/dev/null
	banned "10.77.0.11/udp"
	denied "1 32"
	apply renamed
	banned "10.77.0.11/?"
	arrive "3" n=3
	apply other
	banned "10.77.0.11/udp"
	arrive "0" n=9
	apply bigger
	banned ""
	arrive "3" n=3,wait_ms=250
}

# Under a policy that was not confirmed in time: its bans go on if the one before bans as well.
across_roll_back()
{
	banning long "$three_long"
	banning other "key: src/32,128, packets: 1, window: 60s" 30s
	load long
	apply other --confirm-within 1s
	arrive "1" n=2
	until_true 4 not_pending
	arrive "0 3" n=2 n=3,from=10.77.0.12
	banned "10.77.0.11/udp"
}

not_pending()
{
	[ "$(status .confirm_within_ns)" = 0 ]
}

# A denial for all together bans nobody, and a rule that bans nobody has no table.
all_together()
{
	banning "both" "key: src, packets: 5, window: 60s}, {key: all, packets: 8, window: 60s"
	load "both"
	arrive "5 3 0" n=5 n=4,from=10.77.0.12 n=4,from=10.77.0.13
	banned ""
	denied "5 0"
	arrive "0" n=1
	denied "6 0"
	off
	limit none 3
	load none
	equal "$(status '.bans | "\(.banned) \(.room)"')" "0 0" "banned and room"
	pacer status s0 | grep -q banned && fail "status speaks of bans"
	refused 1 '10.77.0.11 is not banned' pacer unban s0 10.77.0.11
	equal "$(pacer unban s0 all --json | jq .lifted)" 0 "bans lifted"
}

net_up
check ban-for-a-time for_a_time
check ban-both-families both_families
check ban-prefix prefix
check ban-other-keys other_keys
check ban-listed listed
check ban-listed-many listed_many
check ban-lifted lifted
check ban-allowed allowed
check ban-table-full full
check ban-across-changes across_changes
check ban-across-roll-back across_roll_back
check ban-all-together all_together
finish
