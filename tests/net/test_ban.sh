#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A key that a rule denied is banned for a while, and so is who is banned from outside: then, and
# nobody else.
#
#   client                                  server
#   10.77.0.11-18, fd77::11-18  c0 ---- s0  the pacer; `xdp-pacer status` and `ban`
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

	banning short "$three" 6s
	load short
	begin=$(date +%s%N)
	arrive "3" n=10
	banned "10.77.0.11/udp"
	denied "1 6"
	events "1 0"
	arrive "0 2" n=5,wait_ms=500 n=2,from=10.77.0.12
	denied "1 11"
	until_true 8 none_is_banned
	end=$(date +%s%N)
	[ $((end - begin)) -ge 6000000000 ] || fail "it ended after $((end - begin)) ns"
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

# A ban's length and number in a row; a changed value counts from the next on. Lifted, it is the first again.
grows()
{
	banning grow "$three" "{for: 10s, grow: x2, up_to: 1h, forget: 1h}"
	load grow
	arrive "3" n=5
	equal "$(pacer ban s0 list --json | jq -c '[.[] | [.row, .left_ns <= 10e9 + 1e8]]')" '[[1,true]]' "the first"
	pacer set s0 udp.ban.for=20s udp.ban.grow=x8 >/dev/null
	refused 2 'udp.ban.up_to|up_to 1s is not more than' pacer set s0 udp.ban.up_to=1s
	pacer ban s0 del all >/dev/null
	arrive "3" n=5,wait_ms=250
	equal "$(pacer ban s0 list --json | jq -c '[.[] | [.row, .left_ns > 10e9 and .left_ns <= 20e9 + 1e8]]')" \
		'[[1,true]]' "lifted, and banned again"
	refused 2 'udp.ban.gorw: no such field that can be set; a ban that grows has for, grow' pacer set s0 udp.ban.gorw=x2
}

# At once after the first has ended.
grows_in_a_row()
{
	banning row "$three" "{for: 1s, grow: x60, up_to: 1h, forget: 1h}"
	load row
	arrive "3" n=5
	until_true 5 none_is_banned
	arrive "3" n=5,wait_ms=250
	equal "$(pacer ban s0 list --json | jq -c '[.[] | [.row, .left_ns > 40e9 and .left_ns <= 60e9 + 1e8]]')" \
		'[[2,true]]' "the second"
	pacer ban s0 list | grep -q 'no. 2 in a row' || fail "$(pacer ban s0 list)" || return
	equal "$(pacer why s0 "udp 10.77.0.11:4000 > 10.77.0.1:9000" --json | jq -c '.limits[0] | [.ban_row, .ban_next_ns]')" \
		'[2,3600000000000]' "why"
	pacer why s0 10.77.0.11 | grep -Eq 'in [0-9.]+ s, no. 2 in a row, the next for ' || fail "$(pacer why s0 10.77.0.11)" ||
		return
	equal "$(pacer check -c "$work/row.yaml" | grep -c 'udp for 1s, each time x60 up to 1h (1h without a ban, and it begins anew)')" 1 "check"
}

# Of a prefix, all are banned together.
prefix()
{
	banning net "key: 'src/24,56', packets: 3, window: 60s"
	load net
	arrive "3 0 1" n=4 n=1,from=10.77.0.12 n=1,from=10.78.0.1
	arrive "3 0 1" n=4,from=fd77::11 n=1,from=fd77:0:0:0ff::1 n=1,from=fd77:0:0:100::1
	banned "10.77.0.0/24/udp fd77::/56/udp"
	refused 1 '10.77.0.11 is not banned' pacer ban s0 del 10.77.0.11
	pacer ban s0 del fd77::/56 >/dev/null
	banned "10.77.0.0/24/udp"
}

other_keys()
{
	banning flow "key: flow, packets: 1, window: 60s"
	load flow
	arrive "1 1" n=3 n=1,sport=4001
	banned "10.77.0.11>10.77.0.1 udp 4000 9000/udp"
	pacer ban s0 del "10.77.0.11>10.77.0.1 udp 4000 9000" --rule udp >/dev/null
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
	refused 1 's0: 10.77.0.11 is not banned' pacer ban s0 del 10.77.0.11
	arrive "3 3 3" n=4,dport=9001 n=4,dport=9002 n=4,dport=9001,from=10.77.0.12
	banned "10.77.0.11/one 10.77.0.11/two 10.77.0.12/one"
	refused 1 '10.77.0.12 is not banned under two' pacer ban s0 del 10.77.0.12 --rule two
	pacer ban s0 del 10.77.0.11 --rule two >/dev/null
	banned "10.77.0.11/one 10.77.0.12/one"
	arrive "0 3" n=3,dport=9001,wait_ms=250 n=3,dport=9002
	equal "$(pacer ban s0 del 10.77.0.11 --json | jq .lifted)" 1 "bans lifted"
	refused 1 '10.77.0.11 is not banned' pacer ban s0 del 10.77.0.11
	arrive "3 0" n=4,dport=9001,wait_ms=250 n=3,dport=9001,from=10.77.0.12
	banned "10.77.0.11/one 10.77.0.12/one"
	pacer ban s0 del all --rule one >/dev/null
	equal "$(pacer ban s0 del all --rule one --json | jq .lifted)" 0 "bans lifted, of none"
	refused 2 'its policy has no rule three' pacer ban s0 del all --rule three
	pacer ban s0 del all >/dev/null
	banned ""
	arrive "3 3" n=3,dport=9001,wait_ms=250 n=3,dport=9001,from=10.77.0.12
	refused 2 'wants IFACE add|del KEY' pacer ban s0
	refused 2 'wants IFACE add|del KEY' pacer ban s0 del
	refused 1 'has no pacer' pacer ban lo del all
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
	pacer ban s0 del fd77::12 >/dev/null
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
	banned "10.77.0.11/udp"
	arrive "0" n=3
	pacer ban s0 del 10.77.0.11 >/dev/null
	# Three were admitted before the ban, and the limit of five that drains now knows of them.
	arrive "2" n=3,wait_ms=250
}

# Under a policy that was not confirmed in time: its bans go on if the one before bans as well.
across_roll_back()
{
	banning long "$three_long"
	banning other "key: src/32,128, packets: 1, window: 60s" 30s
	load long
	apply other --confirm-within 1h
	arrive "1" n=2
	lapse
	arrive "0 3" n=2 n=3,from=10.77.0.12
	banned "10.77.0.11/udp"
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
	refused 1 '10.77.0.11 is not banned' pacer ban s0 del 10.77.0.11
	equal "$(pacer ban s0 del all --json | jq .lifted)" 0 "bans lifted"
}

# --- from outside ----------------------------------------------------------------------------------

# window NAME [FIELD...]: rules that ban nobody, one of them without a key for sources.
window()
{
	policy "$1" <<-END
	bans: ${2:-64}
	rules:
	  - {name: udp, match: {proto: udp, dport: 9000}, limits: [{key: src/32,128, packets: 9, window: 60s}]}
	  - {name: all, match: {proto: udp, dport: 9001}, limits: [{key: all, packets: 99, window: 60s}]}
	  - {name: over, match: {proto: udp, dport: 9002}, limits: [{key: all, packets: 1, window: 60s}], over: pass}
	END
}

# listed_bans "KEY/RULE...": as `ban list` does, sorted.
listed_bans()
{
	equal "$(pacer ban s0 list --json | jq -r '[.[] | .key + "/" + (.rule // "")] | sort | join(" ")')" \
		"$1" "bans listed"
}

# A source is banned under every rule and under none, but for the allow-list; and then lifted.
source_banned()
{
	window win
	load win
	equal "$(pacer ban s0 list)" "s0: no key is banned" "an empty list"
	pacer ban s0 add 10.77.0.11 >/dev/null
	equal "$(pacer ban s0 add fd77:0::11 --json | jq -c '[.banned, .left_out]')" "[1,0]" "banned"
	listed_bans "10.77.0.11/ fd77::11/"
	banned "10.77.0.11/ fd77::11/"
	arrive "0 0 0 0 0" n=3 n=3,dport=9001 n=3,dport=9002 n=3,dport=7 n=3,proto=6
	arrive "0 0" n=3,from=fd77::11 n=3,from=fd77::11,dport=7
	arrive "3 3 3" n=3,from=10.77.0.12 n=3,from=fd77::12 n=3,from=10.77.0.12,dport=7
	equal "$(stats '"\(.banned_sources) \(.denied) \(.rules[0].matched)"')" "21 21 6" "counted"
	pacer stats s0 | grep -Eq '^ *\(banned sources\) +21( |$)' || fail "$(pacer stats s0)"
	pacer ban s0 list | grep -Eq '^10\.77\.0\.11 +\(source\) +by hand +until it is lifted$' ||
		fail "$(pacer ban s0 list)"
	pacer allow s0 add 10.77.0.11 >/dev/null
	arrive "3 0" n=3 n=3,from=fd77::11
	pacer allow s0 del 10.77.0.11 >/dev/null
	pacer set s0 mode=monitor >/dev/null
	arrive "3 3" n=3,dport=7 n=3,from=fd77::11
	pacer set s0 mode=enforce >/dev/null
	arrive "0 0" n=3,dport=7 n=3,from=fd77::11
	pacer ban s0 del FD77::0011 >/dev/null
	listed_bans "10.77.0.11/"
	arrive "0 3" n=3,dport=7 n=3,from=fd77::11,dport=7
	pacer ban s0 del all >/dev/null
	arrive "3 3" n=3,dport=7 n=3,from=fd77::11,dport=7
	refused 1 's0: 10.77.0.11 is not banned' pacer ban s0 del 10.77.0.11
}

# The packets of these rules go short ways, by which no source is looked for: a ban takes them off these, of a
# policy of one rule and of one of two.
off_the_short_ways()
{
	local limits="limits: [{key: src, packets: 99, window: 60s}]" rules

	for rules in "[{name: one, $limits}]" \
		"[{name: udp, match: {proto: udp}, $limits}, {name: tcp, match: {proto: tcp}, $limits}]"; do
		policy short <<<"bans: 64"$'\n'"rules: $rules"
		load short
		arrive "3" n=3
		pacer ban s0 add 10.77.0.11 >/dev/null
		arrive "0 3" n=3 n=3,from=10.77.0.12
		pacer ban s0 del all >/dev/null
		arrive "3" n=3
		pacer unload s0 >/dev/null
	done
}

prefix_banned()
{
	window win
	load win
	pacer ban s0 add 10.77.0.0/29 >/dev/null
	pacer ban s0 add 10.77.0.16/31 >/dev/null
	pacer ban s0 add fd77::/64 >/dev/null
	arrive "3 0 0 3" n=3 n=3,from=10.77.0.17 n=3,from=10.77.0.7,dport=7 n=3,from=10.77.0.18
	arrive "0 3" n=3,from=fd77::11 n=3,from=fd78::11
	pacer ban s0 add 10.78.0.0/16 >/dev/null
	pacer ban s0 add 10.79.0.1 >/dev/null
	refused 2 'prefixes of 4 other lengths are banned' pacer ban s0 add 10.80.0.0/15
	refused 2 'is everybody' pacer ban s0 add 0.0.0.0/0
	pacer ban s0 del 10.78.0.0/16 >/dev/null
	pacer ban s0 add 10.80.0.0/15 >/dev/null
	arrive "0 3" n=3,from=10.81.1.1 n=3,from=10.78.0.1
}

# Under one rule, which bans nobody by itself; by its limits' keys.
under_a_rule()
{
	window win
	load win
	pacer ban s0 add 10.77.0.11 --rule udp >/dev/null
	listed_bans "10.77.0.11/udp"
	arrive "0 3 3 3" n=3 n=3,dport=9001 n=3,dport=7 n=3,from=10.77.0.12
	denied "0 3"
	events "0 0"
	refused 2 '10.77.0.11 is no key of rule all, which counts by all' pacer ban s0 add 10.77.0.11 --rule all
	refused 2 '10.77.0.0/24 is no key of rule udp, which counts by src/32,128' \
		pacer ban s0 add 10.77.0.0/24 --rule udp
	refused 2 's0: its policy has no rule dns' pacer ban s0 add 10.77.0.11 --rule dns
	refused 2 's0: its policy has no rule dns' pacer ban s0 add - --rule dns </dev/null
	pacer ban s0 add 10.77.0.11 >/dev/null
	listed_bans "10.77.0.11/ 10.77.0.11/udp"
	equal "$(pacer ban s0 del 10.77.0.11 --rule udp --json | jq .lifted)" 1 "lifted"
	listed_bans "10.77.0.11/"
	equal "$(pacer ban s0 del 10.77.0.11 --json | jq .lifted)" 1 "lifted"
	arrive "3" n=3
	off
	banning flow "key: flow, packets: 9, window: 60s}, {key: dst, packets: 99, window: 60s"
	load flow
	pacer ban s0 add "10.77.0.11>10.77.0.1 udp 4001 9000" --rule udp >/dev/null
	arrive "3 0" n=3 n=3,sport=4001
	pacer ban s0 add 10.77.0.1 --rule udp --for 1h >/dev/null
	listed_bans "10.77.0.1/udp 10.77.0.11>10.77.0.1 udp 4001 9000/udp"
	arrive "0" n=3
	pacer ban s0 add "10.77.0.11>10.77.0.2 udp fragment 7" --rule udp >/dev/null
	pacer ban s0 add "fd77::11>fd77::1 ? fragment 99" --rule udp >/dev/null
	listed_bans "10.77.0.1/udp 10.77.0.11>10.77.0.1 udp 4001 9000/udp 10.77.0.11>10.77.0.2 udp fragment 7/udp fd77::11>fd77::1 ? fragment 99/udp"
	equal "$(pacer ban s0 del "fd77::11>fd77::1 ? fragment 99" --rule udp --json | jq .lifted)" 1 "lifted"
	off
	banning proto "key: src+proto, packets: 1, window: 60s"
	load proto
	pacer ban s0 add 'fd77::/64 ?' --rule udp >/dev/null
	listed_bans "fd77::/64 ?/udp"
	equal "$(pacer ban s0 del 'fd77::/64 ?' --json | jq .lifted)" 1 "lifted"
	pacer ban s0 add '10.77.0.11 17' --rule udp >/dev/null
	listed_bans "10.77.0.11 udp/udp"
	equal "$(pacer ban s0 del '10.77.0.11 17' --json | jq .lifted)" 1 "lifted"
}

# By the kernel's clock: what a ban says is left has passed when packets arrive again, and not before.
for_a_time_from_outside()
{
	local begin

	window win
	load win
	begin=$(date +%s%N)
	pacer ban s0 add 10.77.0.11 --for 6s >/dev/null
	pacer ban s0 add 10.77.0.12 --for 5h >/dev/null
	pacer ban s0 add 10.77.0.12 --for 1s >/dev/null # the later end holds
	arrive "0" n=3
	pacer ban s0 list | grep -Eq '^10\.77\.0\.11 .* [0-6]\.[0-9] s left$' || fail "$(pacer ban s0 list)"
	pacer ban s0 list | grep -Eq '^10\.77\.0\.12 .* 4h 59m left$|5h left$' || fail "$(pacer ban s0 list)"
	until_true 8 one_is_banned
	[ $(($(date +%s%N) - begin)) -ge 6000000000 ] || fail "it ended too soon"
	arrive "3 0" n=3,wait_ms=20 n=3,from=10.77.0.12
}

one_is_banned()
{
	[ "$(status .bans.banned)" = 1 ]
}

from_stdin()
{
	local text

	window win
	load win
	printf '# those of today\n10.77.0.11\n\n  fd77::11 --for 1h\r\n10.77.0.0/24x\n10.77.0.12\n' >"$work/wrong"
	text=$(pacer ban s0 add - <"$work/wrong" 2>&1) && fail "a wrong line was taken"
	grep -q '^xdp-pacer: -:5: 10.77.0.0/24x is no source' <<<"$text" || fail "$text"
	equal "$(wc -l <<<"$text")" 1 "lines said"
	listed_bans ""
	arrive "3" n=3
	sed -i 's/24x/24/; s/1h/1hour/' "$work/wrong"
	text=$(pacer ban s0 add - <"$work/wrong" 2>&1) && fail "a wrong time was taken"
	grep -q '^xdp-pacer: -:4: 1hour is not a duration' <<<"$text" || fail "$text"
	printf '10.77.0.1\0\n' >"$work/nul"
	text=$(pacer ban s0 add - <"$work/nul" 2>&1) && fail "a NUL was taken"
	grep -q '^xdp-pacer: -:1: 10.77.0.1 is no line of text' <<<"$text" || fail "$text"
	refused 2 '-:1: 10.77.0.1 is no line of text' pacer ban s0 del - <"$work/nul"
	# One that has no end, and one that is a byte too long.
	refused 2 '-:1: 1{200} is too long: a line has at most 65535 bytes' pacer ban s0 add - < <(tr '\0' 1 </dev/zero)
	refused 2 '-:1: #{200} is too long: a line has at most 65535 bytes' \
		pacer ban s0 del - < <(head -c 65536 /dev/zero | tr '\0' '#')
	refused 2 '-:16777217: this is a line too many: give 16777216 lines at a time' \
		pacer ban s0 add - < <(yes '#' | head -n 16777216 || :; echo 10.77.0.11)
	equal "$(head -c 65535 /dev/zero | tr '\0' '#' | pacer ban s0 add -)" "s0: 0 keys banned" "a long comment"
	listed_bans ""
	sed 's/1hour/1h/; /24/d' "$work/wrong" >"$work/right"
	equal "$(pacer ban s0 add - <"$work/right")" "s0: 3 keys banned" "said"
	listed_bans "10.77.0.11/ 10.77.0.12/ fd77::11/"
	equal "$(pacer ban s0 list --json | jq -c '[.[] | .left_ns // 0 | . > 0] | sort')" \
		"[false,false,true]" "times"
	arrive "0 0 0 3" n=3 n=3,from=10.77.0.12 n=3,from=fd77::11 n=3,from=fd77::12
	printf '10.77.0.11\n10.77.0.13\n10.77.0.14\n' >"$work/some"
	text=$(pacer ban s0 del - <"$work/some" 2>"$work/said") && fail "two that are not banned were lifted"
	equal "$text" "s0: 1 ban lifted" said
	grep -q '10.77.0.13 is not banned, nor is 1 other: see' "$work/said" || fail "$(cat "$work/said")"
	refused 1 '10.77.0.13 is not banned, nor are 2 others: see' pacer ban s0 del - <<<$'10.77.0.13\n10.77.0.14\n10.77.0.15'
	listed_bans "10.77.0.12/ fd77::11/"
	pacer ban s0 add - </dev/null >/dev/null
	equal "$(pacer ban s0 del - </dev/null)" "s0: 0 bans lifted" "of no key" || return
	equal "$(pacer ban s0 del - --json <<<"# nor of this" | jq -c '[.lifted, .left_out]')" "[0,0]" "of a comment" || return
	listed_bans "10.77.0.12/ fd77::11/"
}

# Ten thousand in a table of 16,384: every one has room.
many()
{
	local n

	policy many <<-END
	memory: 8Mi
	bans: 16384
	rules: []
	END
	sed -i 1d "$work/many.yaml"
	load many
	for ((n = 0; n < 10000; n++)); do
		echo "10.$((n % 7)).$((n / 250)).$((n % 250))"
	done >"$work/many"
	equal "$(pacer ban s0 add - --json <"$work/many" | jq -c '[.banned, .left_out]')" "[10000,0]" "banned"
	equal "$(status .bans.banned)" 10000 "banned"
	pacer rotate s0 >/dev/null
	equal "$(status .bans.banned)" 10000 "banned after a rotation"
	arrive "0 0 3" n=3,from=10.3.39.249 n=3,from=10.0.0.0 n=3,from=10.3.39.248
	equal "$(pacer ban s0 del - <"$work/many")" "s0: 10000 bans lifted" "said"
	arrive "3 3" n=3,from=10.3.39.249 n=3,from=10.0.0.0
}

# No table, a full one.
no_room()
{
	local text

	limit none 9
	load none
	refused 1 's0: its policy keeps no table of bans: `xdp-pacer set s0 bans=16384` makes one' \
		pacer ban s0 add 10.77.0.11
	pacer set s0 bans=4 >/dev/null
	printf '10.0.0.%s\n' 1 2 3 4 5 6 >"$work/six"
	text=$(pacer ban s0 add - <"$work/six" 2>"$work/said") && fail "six are in four"
	equal "$text" "s0: 4 keys banned" said
	equal "$(cat "$work/said")" "xdp-pacer: s0: there was no room for 2 of 6 keys, of which 10.0.0.5 is the first: raise bans in the policy" said
	refused 2 'is no source, such as' pacer ban s0 add 10.77.0.11/24
	refused 2 'is no source, such as' pacer ban s0 add "10.77.0.11 9000"
	refused 2 'is no source, such as' pacer ban s0 add ""
	refused 2 'wants IFACE add|del KEY' pacer ban s0 del 10.77.0.11 --for 1s
	refused 1 'nosuch0' pacer ban nosuch0 add 10.77.0.11
	refused 1 'has no pacer' pacer ban lo add 10.77.0.11
}

# They go with the table, from policy to policy, whether its rules ban or not.
outside_across_changes()
{
	window win
	window other
	banning fewer "key: src/32,128, packets: 5, window: 60s"
	sed -i 's/packets: 9,/packets: 8,/' "$work/other.yaml"
	load win
	pacer ban s0 add 10.77.0.11 >/dev/null
	pacer ban s0 add 10.77.0.12 --rule udp >/dev/null
	pacer ban s0 add 10.77.0.13 --rule all 2>/dev/null && fail "a limit by all has no keys"
	apply other
	arrive "0 0 3" n=3,dport=7 n=3,from=10.77.0.12 n=3,from=10.77.0.12,dport=7
	apply fewer
	arrive "0 0" n=3,dport=7 n=3,from=10.77.0.12
	sed 's/name: udp/name: dns/' "$work/win.yaml" >"$work/renamed.yaml"
	apply renamed
	listed_bans "10.77.0.11/ 10.77.0.12/?"
	equal "$(pacer ban s0 list --json | jq -c 'map([.key, .in_force]) | sort')" \
		'[["10.77.0.11",true],["10.77.0.12",false]]' "in force"
	equal "$(pacer ban s0 list | grep -c 'refuses nobody$')" 1 "of whom nobody is refused"
	arrive "3" n=3,from=10.77.0.12
	apply win --confirm-within 1h
	pacer ban s0 add 10.77.0.14 >/dev/null
	arrive "0 0 0" n=3 n=3,from=10.77.0.12 n=3,from=10.77.0.14
	lapse
	arrive "0 0 3" n=3,dport=7 n=3,from=10.77.0.14 n=3,from=10.77.0.12
	sed 's/bans: 64/bans: 128/' "$work/win.yaml" >"$work/bigger.yaml"
	refused 1 "bans: on trial the table keeps its size" \
		pacer apply s0 -c "$work/bigger.yaml" --confirm-within 1h || return
	apply win --confirm-within 1h
	listed_bans "10.77.0.11/ 10.77.0.12/udp 10.77.0.14/"
	arrive "0 0" n=3 n=3,from=10.77.0.12
	pacer ban s0 add 10.77.0.15 >/dev/null
	pacer ban s0 del 10.77.0.11 2>/dev/null
	arrive "0" n=3,from=10.77.0.15
	lapse
	listed_bans "10.77.0.12/? 10.77.0.14/ 10.77.0.15/"
	arrive "3 0" n=3,dport=7 n=3,from=10.77.0.15
}

# Limits that tell IPv6 keys apart in two ways have the same keys of IPv4: such a key has one ban.
kinds_alike()
{
	policy alike <<-END
	bans: 64
	rules:
	  - name: udp
	    match: {proto: udp, dport: 9000}
	    limits: [{key: src, packets: 3, window: 60s}, {key: "src/32,128", packets: 9, window: 60s}]
	    ban: 60s
	END
	load alike
	pacer ban s0 add 10.77.0.11 --rule udp --for 1h >/dev/null
	listed_bans 10.77.0.11/udp
	banned 10.77.0.11/udp
	equal "$(status .bans.banned)" 1 "status"
	equal "$(pacer export s0 --textfile - | awk '/^xdp_pacer_bans{/ { n += $2 } END { print n }')" 1 "export" || return
	arrive "0 3" n=3 n=5,from=10.77.0.12
	pacer ban s0 add 10.77.0.12 --rule udp --for 1h >/dev/null
	listed_bans "10.77.0.11/udp 10.77.0.12/udp"
	equal "$(pacer ban s0 list --json | jq '[.[].left_ns > 3500e9] | all')" true "the end that is told" || return
	sed -i 's/{key: src, [^}]*}, //' "$work/alike.yaml"
	apply alike
	listed_bans "10.77.0.11/udp 10.77.0.12/udp"
	equal "$(pacer ban s0 list --json | jq '[.[].in_force] | all')" true "in force without one of the limits" || return
	arrive "0 0" n=3 n=3,from=10.77.0.12
	equal "$(pacer ban s0 del 10.77.0.11 | head -n 1)" "s0: 1 ban lifted" "lifted" || return
	arrive "3 0" n=3 n=3,from=10.77.0.12
	sed '/ban: 60s/d; s/limits: \[/&{key: src, packets: 3, window: 60s}, /' "$work/alike.yaml" >"$work/none.yaml"
	apply none
	equal "$(pacer ban s0 list --json | jq -c '[.[] | [.key, .in_force]]')" '[["10.77.0.12",true]]' "of a rule without ban:" ||
		return
	apply alike
	pacer ban s0 add fd77::11 --rule udp --for 1h >/dev/null
	pacer ban s0 add fd77::/64 --rule udp --for 1h >/dev/null 2>&1 || true
	listed_bans "10.77.0.12/udp fd77::11/udp"
}

# A table of another size has what the one before banned, as far as it has room; the rest is counted.
another_size()
{
	local left

	window win
	load win
	printf '198.51.100.%s\n' {1..40} | pacer ban s0 add - >/dev/null
	pacer ban s0 add 10.77.0.11 >/dev/null
	pacer set s0 bans=128 >"$work/out"
	! grep -q 'bans' "$work/out" || fail "bans are lost: $(cat "$work/out")" || return
	equal "$(status .bans.banned)" 41 "banned in a larger table"
	arrive "0" n=3
	left=$(pacer set s0 bans=16 --json | jq .bans_left_out)
	equal "$((left >= 25)) $(status .bans.banned)" "1 $((41 - left))" "left out, and banned in a small one" || return
	left=$((41 - left))
	sed '/^bans/d' "$work/win.yaml" >"$work/bare.yaml"
	pacer apply s0 -c "$work/bare.yaml" --confirm-within 1h >"$work/out"
	grep -qx "bans that it has no room for, and which end if it is confirmed: $left" "$work/out" || fail "$(cat "$work/out")" ||
		return
	lapse
	equal "$(status .bans.banned)" "$left" "banned after a trial without a table" || return
	equal "$(pacer apply s0 -c "$work/bare.yaml" |
		grep -c "^bans that it has no room for, and which end: $left\$")" 1 "without a table" || return
	arrive "3" n=3
}

# What is banned now and not elsewhere is said, as it may come into force there.
not_everywhere()
{
	banning small "$three_long" 60s 8
	banning large "$three_long" 60s 64
	limit none 3
	load none
	apply large --confirm-within 1h
	bans_now "xdp-pacer: s0: 1 of 1 keys is banned now, and not under the policy before, which may come back: 203.0.113.1 \
is the first: that policy keeps no table of bans" 203.0.113.1 || return
	pacer ban s0 add 10.77.0.13 >/dev/null 2>&1 || true
	arrive "0" n=3,from=10.77.0.13
	lapse
	off
	load large
	shadowed small
	printf '198.51.100.%s\n' {1..20} | pacer ban s0 add - --json 2>/dev/null >"$work/out" || true
	equal "$(jq -c '[.banned, .left_out, .left_out_before, (.left_out_in_shadow | . >= 12 and . < 20)]' "$work/out")" '[20,0,0,true]' "of the shadow" || return
	bans_now "xdp-pacer: s0: 1 of 1 keys is banned now, and not in its shadow: 2001:db8::/33 is the first: there is no \
room: raise bans in that policy" 2001:db8::/33 || return
	pacer ban s0 del 198.51.100.20 >/dev/null
	equal "$(pacer ban s0 del all | head -n 1 | sed 's/[0-9]* in its/N in its/')" "s0: 20 bans lifted; N in its shadow" "lifted" || return
	pacer shadow s0 --stop >/dev/null
}

# bans_now COMPLAINT KEY
bans_now()
{
	local code=0

	pacer ban s0 add "$2" >"$work/out" 2>"$work/err" || code=$?
	equal "$code $(wc -l <"$work/err")" "1 1" "exit code, lines of complaint"
	grep -Eqx "$1" "$work/err" || fail "$(cat "$work/err")"
}

shadowed()
{
	pacer shadow s0 -c "$work/$1.yaml" >/dev/null
}

net_up
check ban-not-everywhere not_everywhere
check ban-for-a-time for_a_time
check bans-grow grows
check bans-grow-in-a-row grows_in_a_row
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
check ban-source source_banned
check ban-off-the-short-ways off_the_short_ways
check ban-prefix-outside prefix_banned
check ban-under-a-rule under_a_rule
check ban-for-a-time-from-outside for_a_time_from_outside
check ban-from-stdin from_stdin
check ban-many many
check ban-no-room no_room
check ban-outside-across-changes outside_across_changes
check ban-another-size another_size
check ban-of-kinds-alike kinds_alike
finish
