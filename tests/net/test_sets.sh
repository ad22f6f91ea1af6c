#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Sets of prefixes: a rule's match is by the set that is in force, whatever the policy goes through.
#
#   client                                  server
#   10.77.0.11-18, fd77::11-18  c0 ---- s0  the pacer: one packet a minute from whom a set has
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

# set_of FILE PREFIX...
set_of()
{
	local file=$1

	shift
	printf '%s\n' "$@" >"$work/$file"
}

# strict NAME MATCH: of the set drop, in a file, and the set office, in the policy.
strict()
{
	policy "$1" <<-END
	sets:
	  - {name: drop, file: $work/drop.txt}
	  - {name: office, of: [10.77.0.12, "fd77::12"]}
	rules:
	  - {name: strict, match: {proto: udp, $2}, limits: [{key: src/32,128, packets: 1, window: 60s, entries: 1k}]}
	END
}

in_and_not_in()
{
	set_of drop.txt 10.77.0.11-10.77.0.12 "# a comment" 10.77.0.15 fd77::11 fd77::12
	strict in 'src: "@drop"'
	load in
	arrive "1 1 20 20 1" n=20 n=20,from=fd77::11 n=20,from=10.77.0.13 n=20,from=fd77::13 \
		n=20,from=10.77.0.12
	strict not 'src: ["@drop", "!@office"]'
	apply not
	# Each set is asked for by its own number: else who excepts an office from a list has all of the list let through.
	arrive "20 20 20 1" n=20,from=10.77.0.12 n=20,from=fd77::12 n=20,from=10.77.0.13 n=20,from=10.77.0.15
	equal "$(stats '[.sets[] | "\(.name) \(.packets)"] | join(", ")')" "drop 120, office 40" "packets of each set"
	strict dst 'dst: "@drop"'
	set_of drop.txt 10.77.0.1 fd77::1
	apply dst
	arrive "1 1" n=20,from=10.77.0.14 n=20,from=fd77::14
}

# A change by itself keeps the set that is in force, whatever the file is by now; apply reads it again.
read_when_applied()
{
	set_of drop.txt 10.77.0.11
	strict in 'src: "@drop"'
	load in
	set_of drop.txt 10.77.0.13
	pacer set s0 strict.window=50s >/dev/null
	pacer rotate s0 >/dev/null
	arrive "1 9" n=9 n=9,from=10.77.0.13
	apply in
	arrive "9 1" n=9 n=9,from=10.77.0.13
	rm "$work/drop.txt"
	refused 2 "$work/drop.txt: No such file or directory: name a file" apply in
	arrive "9 0" n=9 n=9,from=10.77.0.13
}

not_pending()
{
	[ "$(status .confirm_within_ns)" = 0 ]
}

# A trial's set goes with it.
on_trial()
{
	set_of drop.txt 10.77.0.11
	strict in 'src: "@drop"'
	load in
	set_of drop.txt 10.77.0.13
	apply in --confirm-within 1s
	until_true 3 not_pending
	arrive "1 9" n=9 n=9,from=10.77.0.13
	set_of drop.txt 10.77.0.16
	apply in --confirm-within 1h
	arrive "1 9" n=9,from=10.77.0.16 n=9
	pacer confirm s0 >/dev/null
	arrive "0 9" n=9,from=10.77.0.16 n=9
}

why_and_check()
{
	set_of drop.txt 10.77.0.11 2001:db8::/32
	strict in 'src: "@drop"'
	equal "$(pacer check -c "$work/in.yaml" --json | jq -c '[.sets[] | [.name, .prefixes]]')" \
		'[["drop",2],["office",2]]' "sets of check"
	equal "$(pacer check -c "$work/in.yaml" --json |
		jq '([.sets[].memory_bytes] | add) == .memory_parts_bytes.sets and
			([.memory_parts_bytes[]] | add) == .memory_bytes')" true "memory"
	load in
	pacer why s0 10.77.0.11 --proto udp --json >"$work/why" 2>/dev/null || pacer why s0 10.77.0.11 --json >"$work/why"
	grep -q strict "$work/why" || fail "why does not know the rule: $(head -c 300 "$work/why")"
}

# Nothing is changed by a policy whose set cannot be read.
wrong_files()
{
	set_of drop.txt 10.77.0.11
	strict in 'src: "@drop"'
	load in
	set_of drop.txt 10.77.0.12 "10.77.0.1/24 # host bits"
	refused 2 "drop.txt:2: '10.77.0.1/24' has host bits: write 10.77.0.0/24 for the network" apply in
	refused 2 "drop.txt:2: .* has host bits" pacer check -c "$work/in.yaml"
	printf '10.77.0.12\0\n' >"$work/drop.txt"
	refused 2 "drop.txt:1: a NUL byte" apply in
	: >"$work/drop.txt"
	refused 2 "drop.txt: it has no prefix" apply in
	head -c 10000000 /dev/zero | tr '\0' x >"$work/drop.txt"
	refused 2 "drop.txt:1: no address, prefix or range 'xxxx" apply in
	rm "$work/drop.txt"
	mkdir "$work/drop.txt"
	refused 2 "drop.txt: it is a directory" apply in
	rmdir "$work/drop.txt"
	arrive "1 9" n=9 n=9,from=10.77.0.12
	off
	refused 2 "drop.txt: No such file" load in
	equal "$(what_is_on s0)" "{}" "what is on s0"
}

# However often it is killed, one of the two sets is in force, whole.
killed()
{
	local cut n got code kills=0

	cut=$(tool cut)
	set_of one.txt 10.77.0.11 10.77.0.12
	set_of two.txt 10.77.0.13 10.77.0.14
	strict in 'src: "@drop"'
	cp "$work/one.txt" "$work/drop.txt"
	load in
	for n in $(seq 20 20 300); do
		cp "$work/$([ $((n % 40)) -eq 0 ] && echo one || echo two).txt" "$work/drop.txt"
		code=0
		in_server "$cut" socket "$n" 0 0 "$BUILD/xdp-pacer" apply s0 -c "$work/in.yaml" \
			>/dev/null 2>&1 || code=$?
		kills=$((kills + (code == 100)))
		got=$(timeout "$hang_s" "$shots" "$CLIENT" "$SERVER" n=3,from=10.77.0.11 n=3,from=10.77.0.12 \
			n=3,from=10.77.0.13 n=3,from=10.77.0.14)
		grep -Eqx '[01] [01] 3 3|3 3 [01] [01]' <<<"$got" || fail "after kill $n: $got" || return
	done
	[ "$kills" -ge 5 ] || fail "it was killed $kills times" || return
	cp "$work/two.txt" "$work/drop.txt"
	apply in
	equal "$(stats '.rules[0].name')" strict "the rule"
}

# by_hand WHAT...: `sets s0` of the set drop.
by_hand()
{
	pacer sets s0 "$1" drop "${@:2}" >/dev/null
}

# what_drop_has: its prefixes, and those that were added by hand.
what_drop_has()
{
	pacer sets s0 show drop --json | jq -rc '[(.prefixes | join(" ")), (.by_hand | map(.prefix) | join(" "))] | join("|")'
}

added_and_taken_out()
{
	set_of drop.txt 10.77.0.11 10.77.0.16/31 fd77::11
	strict in 'src: "@drop"'
	load in
	by_hand add 10.77.0.12
	by_hand add fd77::12/127
	arrive "1 9 1 1" n=9,from=10.77.0.12 n=9,from=10.77.0.13 n=9,from=fd77::12 n=9,from=fd77::13
	equal "$(what_drop_has)" "10.77.0.11 10.77.0.16/31 fd77::11|10.77.0.12 fd77::12/127" "what it has"
	by_hand del 10.77.0.12
	by_hand del 10.77.0.16/31
	arrive "9 9 9 1" n=9,from=10.77.0.12 n=9,from=10.77.0.16 n=9,from=10.77.0.17 n=9
	equal "$(what_drop_has)" "10.77.0.11 fd77::11|fd77::12/127" "what is left"
	# Many at once, in any order, by one change.
	printf '%s\n' "# a range is more than one" 10.77.0.14-10.77.0.16 "10.77.0.13 --for 1h" |
		pacer sets s0 add drop - --json >"$work/out"
	equal "$(jq -c . "$work/out")" '{"interface":"s0","set":"drop","added":3,"in_shadow":null,"shared_with":[]}' "added"
	equal "$(what_drop_has)" "10.77.0.11 fd77::11|10.77.0.13 10.77.0.14/31 10.77.0.16 fd77::12/127" "many"
	arrive "1 1 1 1" n=9,from=10.77.0.13 n=9,from=10.77.0.14 n=9,from=10.77.0.15 n=9,from=10.77.0.16
	printf '%s\n' 10.77.0.14-10.77.0.16 fd77::11 10.77.0.13 | by_hand del -
	equal "$(what_drop_has)" "10.77.0.11|fd77::12/127" "many taken out"
}

# What is added stays beside the policy's; what is taken out and a replacement last until the next apply.
and_then_applied()
{
	set_of drop.txt 10.77.0.11 10.77.0.13
	strict in 'src: "@drop"'
	load in
	by_hand add 10.77.0.12
	by_hand del 10.77.0.13
	pacer set s0 strict.window=50s >/dev/null
	equal "$(what_drop_has)" "10.77.0.11|10.77.0.12" "after a change without files"
	apply in
	equal "$(what_drop_has)" "10.77.0.11 10.77.0.13|10.77.0.12" "after apply"
	arrive "1 1 1" n=9 n=9,from=10.77.0.12 n=9,from=10.77.0.13
	printf '10.77.0.14\n10.77.0.15\n' | by_hand replace -
	equal "$(what_drop_has)" "10.77.0.14 10.77.0.15|" "after replace"
	arrive "9 9 1" n=9,from=10.77.0.12 n=9,from=10.77.0.16 n=9,from=10.77.0.14
	by_hand add 10.77.0.16
	pacer upgrade s0 >/dev/null
	equal "$(what_drop_has)" "10.77.0.14 10.77.0.15|10.77.0.16" "after upgrade"
	arrive "1" n=9,from=10.77.0.16
	# A copy of it, to which the rest of the policy is new.
	strict other 'dst: "@drop"'
	apply other
	equal "$(what_drop_has)" "10.77.0.11 10.77.0.13|10.77.0.16" "after another policy"
	strict in 'src: "@office"'
	sed -i '/name: drop/d' "$work/in.yaml"
	apply in
	refused 1 "s0: its policy has no set drop: see .xdp-pacer sets s0 list." pacer sets s0 show drop
	strict in 'src: "@drop"'
	apply in
	equal "$(what_drop_has)" "10.77.0.11 10.77.0.13|" "of a set that had gone"
}

is_out()
{
	[ "$(what_drop_has)" = "10.77.0.11|10.77.0.13" ]
}

for_a_time()
{
	set_of drop.txt 10.77.0.11
	strict in 'src: "@drop"'
	load in
	by_hand add 10.77.0.12 --for 5s
	by_hand add 10.77.0.13 --for 1h
	arrive "1 1" n=2,from=10.77.0.12 n=2,from=10.77.0.13
	until_true 6 is_out
	arrive "9 0" n=9,from=10.77.0.12 n=9,from=10.77.0.13
	[ "$(pacer sets s0 show drop --json | jq '.by_hand[0].left_ns')" -gt 3000000000000 ] || fail "left_ns"
	# A new end takes the place of the old one, and a wider prefix that lasts longer counts.
	by_hand add 10.77.0.13 --for 1s
	by_hand add 10.77.0.12/31 --for 1h
	until_true 3 eval '[ "$(what_drop_has)" = "10.77.0.11|10.77.0.12/31" ]'
	arrive "0 0" n=9,from=10.77.0.12 n=9,from=10.77.0.13
}

counted_and_listed()
{
	set_of drop.txt 10.77.0.11 10.77.0.12
	strict in 'src: "@drop"'
	load in
	by_hand add 10.77.0.14
	arrive "1 1 9 1" n=9 n=9,from=10.77.0.12 n=9,from=10.77.0.13 n=5,from=10.77.0.14
	equal "$(pacer sets s0 list --json | jq -c '.[] | [.name, .prefixes, .by_hand, .packets]')" \
		'["drop",2,1,23]
["office",2,0,0]' "list"
	apply in # it goes on counting
	arrive "0" n=2
	equal "$(pacer sets s0 list --json | jq -c '.[0].packets')" 25 "packets"
	equal "$(stats '.sets[] | "\(.name) \(.packets) \(.prefixes)"')" "drop 25 3
office 0 2" "sets of stats"
	equal "$(pacer export s0 --textfile "$work/m.prom" && grep ^xdp_pacer_set_ "$work/m.prom" | grep drop | grep -v bytes)" \
		'xdp_pacer_set_packets_total{interface="s0",set="drop"} 25
xdp_pacer_set_elements{interface="s0",set="drop"} 3' "metrics"
	equal "$(pacer sets s0 list --json | jq -c '.[0].bytes > .[0].packets * 40')" true "bytes"
	pacer sets s0 list | grep -Eq "^drop +2 +1 +[0-9.]+ [KM]iB? +25 +[0-9,]+ +$work/drop.txt$" ||
		fail "as text: $(pacer sets s0 list | cat -A)" || return
	pacer sets s0 list | grep -Eq "^office .* of the policy$" || fail "as text: $(pacer sets s0 list | cat -A)"
}

wrong_words()
{
	set_of drop.txt 10.77.0.11
	strict in 'src: "@drop"'
	load in
	refused 1 "s0: its policy has no set drp \(did you mean drop\?\)" pacer sets s0 add drp 10.0.0.1
	refused 2 "sets: '10.0.0.1/8' has host bits: write 10.0.0.0/8" pacer sets s0 add drop 10.0.0.1/8
	refused 1 "s0: 10.77.0.0/24 is no prefix of set drop: see .xdp-pacer sets s0 show drop." \
		pacer sets s0 del drop 10.77.0.0/24
	refused 2 "it wants IFACE list" pacer sets s0 del drop 10.77.0.11 --for 1h
	refused 2 "there is no word shw \(did you mean show\?\)" pacer sets s0 shw drop
	printf '10.0.0.1\n10.0.0.2/7\n' >"$work/lines"
	refused 2 "-:2: '10.0.0.2/7' has host bits" pacer sets s0 add drop - <"$work/lines"
	printf '10.0.0.1\n10.0.\0\n' >"$work/lines"
	refused 2 "-:2: 10.0. is no line of text" pacer sets s0 add drop - <"$work/lines"
	refused 2 "$work/none: No such file" pacer sets s0 replace drop "$work/none"
	refused 2 "$work: it is a directory" pacer sets s0 replace drop "$work"
	seq -f '10.%.0f.0.0/24' 0 255 >"$work/lines"
	for i in $(seq 0 255); do seq -f "10.$i.%.0f.0/25" 0 255; done >>"$work/lines"
	refused 1 "65792 prefixes at once are more than the 65535 that a set takes by hand" \
		pacer sets s0 add drop - <"$work/lines"
	refused 2 "of what stdin has, the value stands behind each prefix" pacer sets s0 add drop - XY <<<10.0.0.1
	refused 2 "-:1: no address, prefix or range 'x'" pacer sets s0 del drop - <<<x
	refused 2 "-:1: 0s is not a duration such as 90s or 10m" pacer sets s0 add drop - <<<"10.0.0.1 --for 0s"
	refused 1 "-: Is a directory" pacer sets s0 add drop - <"$work"
	refused 1 "s0: 10.9.0.1 is no prefix of set drop, nor is 1 other: see" pacer sets s0 del drop - <<<$'10.9.0.1\n10.9.0.2'
	refused 1 "s0: 10.9.0.1 is no prefix of set drop, nor are 2 others: see" \
		pacer sets s0 del drop - <<<$'10.9.0.1\n10.9.0.2\n10.9.0.3'
	equal "$(pacer sets s0 del drop - </dev/null)" "s0: set drop: 0 prefixes taken out" "no prefix" || return
	equal "$(pacer sets s0 del drop - --json <<<"# none" | jq -c '[.set, .taken_out]')" '["drop",0]' "as JSON" || return
	set_of more.txt 10.0.0.1
	refused 1 "s0: its policy has no set drp \(did you mean drop\?\)" pacer sets s0 replace drp "$work/more.txt"
	equal "$(what_drop_has)" "10.77.0.11|" "what it has after all that"
	arrive "1 9" n=9 n=9,from=10.77.0.12
	pacer sets s0 del drop 10.77.0.11 >/dev/null
	equal "$(pacer sets s0 show drop)" "s0: set drop has no prefix" "an empty set" || return
	limit plain 3
	apply plain
	equal "$(pacer sets s0 list)" "s0: its policy has no sets" "no sets" || return
	equal "$(pacer sets s0 list --json)$(pacer sets all list --json | jq -c .)" '[][{"interface":"s0","result":[]}]' "no sets, as JSON"
}

# During a trial both policies' sets are changed, and what comes back has the change, too.
changed_on_trial()
{
	set_of drop.txt 10.77.0.11
	strict in 'src: "@drop"'
	load in
	set_of drop.txt 10.77.0.13
	apply in --confirm-within 1h
	by_hand add 10.77.0.12
	by_hand del 10.77.0.13 # one of them had it
	arrive "9 1 9" n=9 n=9,from=10.77.0.12 n=9,from=10.77.0.13
	lapse
	equal "$(what_drop_has)" "10.77.0.11|10.77.0.12" "what came back"
	arrive "1 0" n=9 n=9,from=10.77.0.12
	apply in --confirm-within 1h
	set_of one.txt 10.77.0.15
	by_hand replace "$work/one.txt"
	arrive "1 9" n=9,from=10.77.0.15 n=9,from=10.77.0.14
	lapse
	equal "$(what_drop_has)" "10.77.0.15|" "what came back of a replacement"
}

# However often a replacement is killed, with and without a trial, one of the two is in force, whole:
# with what was added by hand to the old one, or without it.
replacement_killed()
{
	local cut n got code trial kills=0 news=0

	cut=$(tool cut)
	set_of one.txt 10.77.0.11 10.77.0.12
	set_of two.txt 10.77.0.13 10.77.0.14
	strict in 'src: "@drop"'
	cp "$work/one.txt" "$work/drop.txt"
	load in
	for trial in "" yes; do
		[ -z "$trial" ] || apply in --confirm-within 1h
		by_hand replace "$work/one.txt"
		by_hand add 10.77.0.15
		for n in $(seq 1 3 600); do
			code=0
			in_server "$cut" flock "$n" 0 0 "$BUILD/xdp-pacer" sets s0 replace drop "$work/two.txt" \
				>/dev/null 2>&1 || code=$?
			got=$(timeout "$hang_s" "$shots" "$CLIENT" "$SERVER" n=3,from=10.77.0.11 n=3,from=10.77.0.12 \
				n=3,from=10.77.0.13 n=3,from=10.77.0.14 n=3,from=10.77.0.15)
			case $got in
			[01]" "[01]" 3 3 "[01]) ;;
			"3 3 "[01]" "[01]" 3")
				news=$((news + 1))
				by_hand replace "$work/one.txt"
				by_hand add 10.77.0.15
				;;
			*) fail "killed at $n, trial '$trial': $got" || exit 1 ;;
			esac
			[ "$code" -eq 100 ] || break
			kills=$((kills + 1))
		done
		equal "$code" 0 "at last: exit code"
	done
	[ "$kills" -ge 10 ] && [ "$news" -ge 3 ] || fail "$kills kills, $news times the new one"
	echo "$kills kills, $news times the new one was in force"
}

# Sources of a set of the allow-list pass whatever limits and bans say, for as long as the set has them.
let_through()
{
	set_of drop.txt 10.77.0.11 fd77::11
	policy in <<-END
	sets: [{name: drop, file: $work/drop.txt}]
	allow: ["@drop", 10.77.0.12]
	bans: 64
	rules: [{name: strict, match: {proto: udp}, limits: [{key: src/32,128, packets: 1, window: 60s, entries: 1k}]}]
	END
	load in
	arrive "9 9 9 1" n=9 n=9,from=fd77::11 n=9,from=10.77.0.12 n=9,from=10.77.0.13
	by_hand add 10.77.0.14
	pacer ban s0 add 10.77.0.14 >/dev/null
	pacer ban s0 add 10.77.0.15 >/dev/null
	arrive "9 0 1" n=9,from=10.77.0.14 n=9,from=10.77.0.15 n=9,from=10.77.0.16
	equal "$(pacer why s0 10.77.0.14 --json | jq -c '.allowed.prefix')" '"@drop"' "why"
	equal "$(stats .no_limit.allowed)" 36 "allowed"
	pacer show s0 >"$work/shown.yaml"
	by_hand del 10.77.0.14
	arrive "0" n=9,from=10.77.0.14
	pacer allow s0 add 10.77.0.16 >/dev/null
	pacer show s0 >"$work/shown.yaml"
	grep -q 'allow: \[10.77.0.12, 10.77.0.16, "@drop"\]' "$work/shown.yaml" ||
		fail "shown: $(cat "$work/shown.yaml")"
	apply shown
	arrive "9 9" n=9 n=9,from=10.77.0.16
}

# What a country's prefixes are is read from a table; a replacement keeps the numbers of its values.
by_value()
{
	set_of geo.csv "network,asn,country" 10.77.0.0/24,64500,XY 10.77.0.11,64501,ZZ 10.77.0.12/31,64502,OK fd77::/64,64500,XY
	policy geo <<-END
	sets: [{name: geo, file: $work/geo.csv, value: 3}]
	allow: "@geo=OK"
	rules: [{name: strict, match: {proto: udp, src: ["@geo=XY"]}, limits: [{key: src/32,128, packets: 1, window: 60s, entries: 1k}]}]
	END
	load geo
	equal "$(for from in 10.77.0.9 10.77.0.11 10.78.0.1; do pacer why s0 $from --json | jq -c '[.rules[].name]'; done | tr '\n' ' ')" \
		'["strict"] [] [] ' "the rules of sources with the value, with another, with none" || return
	arrive "9 9 1 1" n=9 n=9,from=10.77.0.12 n=9,from=10.77.0.14 n=9,from=fd77::14
	set_of geo.csv 10.77.0.11,1,XY 10.77.0.14,1,OK 10.77.0.16,2,elsewhere
	pacer sets s0 replace geo "$work/geo.csv" >/dev/null
	arrive "1 9 9 9" n=9 n=9,from=10.77.0.12 n=9,from=10.77.0.14 n=9,from=10.77.0.16
	set_of geo.csv 10.77.0.11,1,XY 10.77.0.14,1,OJ
	refused 2 "geo.csv: no prefix of set geo has the value OK \\(did you mean OJ\\?\\)" pacer sets s0 replace geo "$work/geo.csv"
	refused 2 "geo.csv: no prefix of set geo has the value OK" apply geo
	set_of geo.csv 10.77.0.11
	refused 2 "geo.csv:1: 1 field, and value is field 3" apply geo
	arrive "0 9" n=9 n=9,from=10.77.0.14
}

# What is shown of a set that keys have: each prefix's value, in the file and by hand. Of another set there is none.
values_shown()
{
	local code

	set_of geo.csv 10.77.0.11,XY fd77:1111:2222:3333::/64,"New York"
	set_of plain.txt 10.77.0.12
	set_of asked.csv 10.77.0.17,XY
	policy land <<-END
	sets:
	  - {name: geo, file: $work/geo.csv, value: 2}
	  - {name: plain, file: $work/plain.txt}
	  - {name: asked, file: $work/asked.csv, value: 2}
	rules: [{name: land, match: {src: ["!@plain", "!@asked=XY"]}, limits: [{key: value(geo, src), packets: 4, window: 60s, entries: 1k}]}]
	END
	load land
	pacer sets s0 add geo 10.77.0.13 AB >/dev/null
	pacer sets s0 add geo - <<<$'10.77.0.14 QQ\t--for=1h' >/dev/null
	pacer sets s0 add geo - <<<$'10.77.0.15 x--for\n10.77.0.16 --forx' >/dev/null # values, of which none is the option
	refused 2 "-:1: --for wants a duration such as 90s or 10m" pacer sets s0 add geo - <<<"10.77.0.15 XY --for " || return
	refused 2 "-:1: 1h 2h is not a duration such as 90s or 10m" pacer sets s0 add geo - <<<"10.77.0.15 XY --for 1h 2h" || return
	refused 2 "-:1: no address, prefix or range '--for=1h': " pacer sets s0 add geo - <<<"--for=1h" || return
	refused 2 "-:1: no value 'x{64}': " pacer sets s0 add geo - <<<"10.77.0.15 $(printf 'x%.0s' {1..64})" || return
	equal "$(pacer sets s0 show geo --json | jq -c '[.prefixes, .values, (.by_hand[] | [.prefix, .value, .left_ns > 0])]')" \
		'[["10.77.0.11","fd77:1111:2222:3333::/64"],["XY","New York"],["10.77.0.13","AB",false],["10.77.0.14","QQ",true],["10.77.0.15","x--for",false],["10.77.0.16","--forx",false]]' "as JSON" || return
	equal "$(pacer sets s0 show geo | tr -s ' ' | sed -E 's/ $//; s/, (1h|59m [0-9]+s) left/, 1h left/')" "10.77.0.11 XY
fd77:1111:2222:3333::/64 New York
10.77.0.13 by hand AB
10.77.0.14 by hand, 1h left QQ
10.77.0.15 by hand x--for
10.77.0.16 by hand --forx" "as text" || return
	equal "$(pacer sets s0 show geo | sed -n 1p)" "10.77.0.11            XY" "a row, which waits for no wider one" || return
	equal "$(pacer sets s0 show asked --json | jq -c '[.prefixes, .values]')" '[["10.77.0.17"],[]]' "what only a match asks for" || return
	pacer sets s0 del plain 10.77.0.12 >/dev/null
	pacer sets s0 add plain 10.77.0.16 >/dev/null
	equal "$(pacer sets s0 show plain --json | jq -c '[.prefixes, .values, (.by_hand[] | [.prefix, .value])]')" \
		'[[],[],["10.77.0.16",null]]' "by hand alone" || return
	equal "$(pacer sets s0 show plain | tr -s ' ' | sed 's/ $//')" "10.77.0.16 by hand" "by hand alone, as text" || return
	pacer sets s0 add plain fd77:1111:2222:3333::/64 >/dev/null
	equal "$(pacer sets s0 show plain | sed -n 1p)" "10.77.0.16            by hand" "by hand, which waits for no wider one" || return
	seq -f '10.1.0.%.0f' 1 2 255 >"$work/many.txt"
	seq -f '10.2.0.%.0f' 1 2 255 >>"$work/many.txt"
	for code in 1 2 3 4; do sed "s/^10/1$code/" "$work/many.txt"; done >"$work/more.txt"
	pacer sets s0 replace plain "$work/more.txt" >/dev/null
	code=0
	pacer sets s0 show plain >/dev/full 2>"$work/err" || code=$?
	equal "$code $(cat "$work/err")" "1 xdp-pacer: sets: the result cannot be written: No space left on device" "onto a full disk"
}

# The file that is wrong is named, whatever reads the policy; of what is wrong in the policy, that.
wrong_file_named()
{
	local verb

	set_of bad.txt 10.77.0.11 10.0.0.1/8
	limit good 3
	policy bad <<-END
	sets: [{name: bad, file: $work/bad.txt}]
	rules: [{name: a, match: {src: "@bad"}, verdict: drop}]
	END
	policy twin <<-END
	sets: [{name: six, of: [fd77::/64]}]
	rules: [{name: a, match: {src: "@six", dst: 10.77.0.1}, verdict: drop}]
	END
	load good
	for verb in "check" "load s0" "apply s0" "shadow s0" "serve s0 --state $work/state"; do
		# shellcheck disable=SC2086 # words
		refused 2 "xdp-pacer: $work/bad.txt:2: '10.0.0.1/8' has host bits" pacer $verb -c "$work/bad.yaml" || return
		# shellcheck disable=SC2086
		refused 2 "xdp-pacer: $work/twin.yaml:3: rule a: match.src is of IPv6 alone" pacer $verb -c "$work/twin.yaml" || return
	done
}

# A set with values is not replaced during a trial of a policy without it, which knows no values: the policy before would
# have the file's sources with none of theirs.
values_during_a_trial()
{
	set_of geo.csv 10.77.0.11,AA 10.77.0.12,BB
	policy lands <<-END
	sets: [{name: geo, file: $work/geo.csv, value: 2}]
	rules:
	- {name: good, match: {src: "@geo=AA"}, limits: [{key: src, packets: 20, window: 600s, entries: 1k}]}
	- {name: bad, match: {src: "@geo=BB"}, limits: [{key: src, packets: 3, window: 600s, entries: 1k}]}
	END
	policy none <<-END
	rules: [{name: all, match: {proto: udp}, limits: [{key: src, packets: 9, window: 60s, entries: 1k}]}]
	END
	load lands
	arrive "9 3" n=9 n=9,from=10.77.0.12
	apply none --confirm-within 200s
	refused 1 "set geo has values, and a policy waits to be confirmed: .xdp-pacer confirm. it" \
		pacer sets s0 replace geo "$work/geo.csv" || return
	lapse
	arrive "9 0" n=9 n=9,from=10.77.0.12
	pacer sets s0 replace geo "$work/geo.csv" >/dev/null
	arrive "2 0" n=9 n=9,from=10.77.0.12
}

reads_stdin() # a process that waits for its pipe
{
	grep -q "apply" "/proc/$1/cmdline" && grep -qE "wait_for_partner|pipe_read|pipe_wait" "/proc/$1/wchan"
}

# While a set is read, another change brings a limit by its values: it was read without them, and is refused. Without
# that, no packet of the rule would have a key.
values_that_come_meanwhile()
{
	local code=0 applying

	set_of geo.csv 10.77.0.11,XY 10.77.0.12,XY
	for name in slow by_value; do
		policy "$name" <<-END
		sets: [{name: geo, file: $([ "$name" = slow ] && echo /dev/stdin || echo "$work/geo.csv"), value: 2}]
		rules:
		- name: all
		  match: {proto: udp}
		  limits:
		  - {key: "src/32,128", packets: 100, window: 60s, entries: 1k}
		END
	done
	load by_value
	echo '  - {key: "value(geo, src)", packets: 4, window: 60s, entries: 1k}' >>"$work/by_value.yaml"
	mkfifo "$work/held"
	exec 7<>"$work/held"
	nsenter --net="/run/netns/$SERVER" "$BUILD/xdp-pacer" apply s0 -c "$work/slow.yaml" <"$work/held" >"$work/out" 2>"$work/err" 7>&- &
	applying=$!
	remember "$applying" "$work/pids"
	until_true 20 reads_stdin "$applying" || fail "it does not wait: $(cat "$work/err")" || return
	apply by_value
	arrive "4" n=9
	cat "$work/geo.csv" >&7
	exec 7>&-
	wait "$applying" || code=$?
	equal "$code $(cat "$work/err")" "1 xdp-pacer: s0: set geo was read while another change came, which counts by its \
values: try again" "the change that came late" || return
	arrive "0 0 4" n=9 n=9,from=10.77.0.12 n=9,from=10.77.0.13
	pacer apply s0 -c "$work/slow.yaml" <"$work/geo.csv" >/dev/null
	arrive "0 0" n=9 n=9,from=10.77.0.14 # as the others without a value did, whose window is not over
	equal "$(stats '[.. | objects | .no_state // empty] | add')" 0 "packets without a key"
}

# A key by a value: all of a country has one allowance, whatever its addresses, of both families. It stays
# with the value's name, whatever numbers the next file gives.
by_value_as_key()
{
	set_of geo.csv 10.77.0.11,XY 10.77.0.12,XY fd77::/64,XY 10.77.0.13,AB
	policy land <<-END
	bans: 256
	sets: [{name: geo, file: $work/geo.csv, value: 2}]
	rules: [{name: land, match: {proto: udp}, limits: [{key: value(geo, src), packets: 4, window: 60s, entries: 1k}], ban: 50s}]
	END
	load land
	arrive "3 1 0 4 3" n=3 n=9,from=10.77.0.12 n=9,from=fd77::11 n=9,from=10.77.0.13 n=3,from=10.77.0.14
	set_of geo.csv 10.77.0.16,ZZ 10.77.0.15,AB 10.77.0.11,XY
	apply land --confirm-within 1h
	refused 1 "set geo has values, and a policy waits to be confirmed: .xdp-pacer confirm. it" \
		pacer sets s0 replace geo "$work/geo.csv"
	pacer confirm s0 >/dev/null
	pacer sets s0 replace geo "$work/geo.csv" >/dev/null
	arrive "0 0 1 4" n=9 n=9,from=10.77.0.15 n=9,from=10.77.0.12 n=9,from=10.77.0.16
	pacer ban s0 list | grep -q "value(geo, AB)" || fail "no ban of AB: $(pacer ban s0 list)"
	pacer ban s0 list --json | grep -q "value(geo, none)" || fail "no ban of none"
	equal "$(pacer events s0 --json | jq -c '[.events[] | select(.event == "ban") | .key] | unique')" \
		'["value(geo, AB)","value(geo, XY)","value(geo, ZZ)","value(geo, none)"]' "whom events say were banned" || return
	pacer sets s0 list | grep -Eq "^geo .* - +- " || fail "sets list counts: $(pacer sets s0 list)" || return
	equal "$(pacer sets s0 list --json | jq -c '[.[] | .packets, .bytes]')" '[null,null]' "what only keys ask about" || return
	equal "$(pacer stats s0 --json | jq -c '.sets[] | [.packets, .bytes]')" '[null,null]' "... in stats" || return
	pacer why s0 "value(geo, AB)" --json >"$work/why"
	equal "$(jq -c '[.rules[].limits[] | [.key, .used, .max, .reason]]' "$work/why")" \
		'[["value(geo, AB)",4,4,"ban"]]' "why of a value" || return
	equal "$(pacer why s0 --json "10.77.0.15>10.77.0.1 udp 1 2" | jq -c '.limits[0] | [.key, .used]')" \
		'["value(geo, AB)",4]' "why of a packet of that value" || return
	pacer why s0 "value(geo, nowhere)" --json >"$work/why"
	equal "$(jq -c '[.rules[].limits[] | [.used, .reason]]' "$work/why")" '[[0,"admit"]]' "why of another" || return
	pacer why s0 "value(asn, XY)" | grep -q "no rule counts by such a key" || fail "why of another set" || return
	pacer ban s0 del "value(geo, XY)" --rule land >/dev/null
	pacer ban s0 add "value(geo, QQ)" --rule land >/dev/null
	pacer why s0 "10.77.0.11>10.77.0.1 udp 1 2" | grep -q "value(geo, XY)" || fail "why does not say XY"
	pacer why s0 10.77.0.11 | grep -q "value(geo, XY)" || fail "why does not say XY of the address"
	refused 2 "is no key of rule land" pacer ban s0 add "value(asn, QQ)" --rule land
	pacer sets s0 add geo 10.77.0.17 QQ >/dev/null
	refused 2 "no value '.x1b.31mNEW': it has 1 to 63 bytes" pacer sets s0 add geo 10.77.0.18 $'\e[31mNEW'
	refused 2 "^xdp-pacer: -:1: no value 'N\"': it has 1 to 63 bytes" pacer sets s0 add geo - <<<'10.77.0.18 N"'
	pacer sets s0 add geo 10.77.0.18 ' NEW ' >/dev/null # trimmed, as in a file
	arrive "0 4" n=9,from=10.77.0.17 n=9,from=10.77.0.18
	equal "$(pacer why s0 "value(geo, NEW)" --json | jq -c '[.rules[].limits[] | .used]')" "[4]" "of a name with blanks" || return
	refused 2 "no value '  ': it has 1 to 63 bytes" pacer sets s0 add geo 10.77.0.18 '  '
	pacer sets s0 add geo 10.77.0.19 'O2 (UK) Ltd' >/dev/null
	pacer ban s0 add "value(geo, O2 (UK) Ltd)" --rule land >/dev/null
	pacer why s0 "value(geo, O2 (UK) Ltd)" --json >"$work/why"
	equal "$(jq -c '[.rules[].limits[] | [.key, .reason]]' "$work/why")" '[["value(geo, O2 (UK) Ltd)","ban"]]' \
		"why of a name with brackets" || return
	arrive "0" n=9,from=10.77.0.19
	policy bare <<-END
	sets: [{name: geo, file: $work/geo.csv}]
	rules: [{name: land, limits: [{key: value(geo, src), gap: 1s}]}]
	END
	refused 2 "set geo has no values" apply bare
}

# bans_refuse BOOL: all of them, or none, as soon as what a change retired is gone.
bans_refuse()
{
	pacer apply s0 -c "$work/asn.yaml" >/dev/null
	[ "$(pacer ban s0 list --json | jq -c '[.[].in_force] | unique')" = "[$1]" ]
}

# A value of another set is another key, whatever its text.
by_another_sets_value()
{
	local name

	set_of geo.csv 10.77.0.11,XY
	for name in geo asn; do
		policy "$name" <<-END
		bans: 64
		sets: [{name: geo, file: $work/geo.csv, value: 2}, {name: asn, file: $work/geo.csv, value: 2}]
		rules:
		- {name: land, match: {proto: udp}, limits: [{key: "value($name, src)", packets: 50, window: 1s, entries: 1k}]}
		END
	done
	load geo
	pacer ban s0 add "value(geo, XY)" --rule land >/dev/null
	arrive "0" n=3
	until_true 3 bans_refuse false || fail "$(pacer ban s0 list)" || return
	arrive "3" n=3
	pacer ban s0 del "value(geo, XY)" >/dev/null
	pacer ban s0 add "value(asn, XY)" --rule land >/dev/null
	bans_refuse true || fail "$(pacer ban s0 list)" || return
	arrive "0" n=3
}

# A limit by a value that drains counts by it for as long, though no key names the set any more: also
# where the set is replaced.
by_value_no_longer()
{
	set_of geo.csv 10.77.0.11,XY 10.77.0.13,AB
	policy keyed <<-END
	sets: [{name: geo, file: $work/geo.csv, value: 2}]
	rules: [{name: land, match: {proto: udp}, limits: [{key: value(geo, src), packets: 4, window: 60s, entries: 1k}]}]
	END
	policy matched <<-END
	sets: [{name: geo, file: $work/geo.csv, value: 2}]
	rules: [{name: land, match: {proto: udp, src: "@geo"}, limits: [{key: src, packets: 6, window: 60s, entries: 1k}]}]
	END
	load keyed
	arrive "3" n=3
	apply matched
	arrive "1 4" n=9 n=9,from=10.77.0.13
	set_of geo.csv 10.77.0.11,XY 10.77.0.13,AB 10.77.0.12,QQ
	pacer sets s0 replace geo "$work/geo.csv" >/dev/null
	arrive "0 4" n=9 n=9,from=10.77.0.12
}

# What is sampled is told by the key that was judged, though a sample has neither values nor TTLs.
sampled_by_value()
{
	set_of geo.csv 10.77.0.11,XY fd77::/64,XY 10.77.0.13,AB
	policy sampled <<-END
	sample: {of: denied, k: 16, window: 60s}
	sets: [{name: geo, file: $work/geo.csv, value: 2}]
	rules:
	  - {name: hops, match: {proto: udp, src: 10.77.0.12}, limits: [{key: ttl+src, packets: 1, window: 60s, entries: 1k}]}
	  - {name: land, match: {proto: udp}, limits: [{key: value(geo, src), packets: 4, window: 60s, entries: 1k}]}
	END
	load sampled
	arrive "4 0 1" n=9 n=3,from=fd77::11 n=6,from=10.77.0.12
	equal "$(pacer sample s0 --json | jq -c '[.sample[] | [.rule, .key]] | unique')" \
		'[["hops","10.77.0.12 ttl 64"],["land","value(geo, XY)"]]' "what was sampled" || return
	equal "$(pacer top s0 --once --json | jq -c '[.keys.denied[] | [.rule, .key]] | sort')" \
		'[["hops","10.77.0.12 ttl 64"],["land","value(geo, XY)"]]' "what top shows" || return
	pacer sets s0 add geo 10.77.0.14 Öl€😀 >/dev/null
	arrive "4" n=9,from=10.77.0.14
	pacer top s0 --once | grep -Eq '^value\(geo, Öl€😀\) +land +window ' || fail "of other letters: $(pacer top s0 --once)" || return
	pacer why s0 "value(geo, XY)" | grep -Eq "denied .*ago.*window" || fail "why knows of no denial: $(pacer why s0 "value(geo, XY)")" || return
	set_of geo.csv 10.77.0.13,AB
	pacer sets s0 replace geo "$work/geo.csv" >/dev/null
	equal "$(pacer sample s0 --json | jq -c '[.sample[] | select(.rule == "land") | .key] | unique')" \
		'["-"]' "of a value that the set has no more"
}

net_up
check "sets: prefixes with values" by_value
check "sets: samples name values and TTLs" sampled_by_value
check "sets: replaced during a trial without it" values_during_a_trial
check "sets: values that come while a file is read" values_that_come_meanwhile
check "sets: a value as a key" by_value_as_key
check "sets: a value that is a key no longer" by_value_no_longer
check "sets: a value of another set" by_another_sets_value
check "sets: values are shown" values_shown
check "sets: of a policy that names a wrong file, that file is named" wrong_file_named
check "sets: a set of the allow-list" let_through
check "sets: added and taken out by hand" added_and_taken_out
check "sets: what is by hand, and changes of the policy" and_then_applied
check "sets: added for a time" for_a_time
check "sets: counted and listed" counted_and_listed
check "sets: wrong words are said, and change nothing" wrong_words
check "sets: changes by hand during a trial" changed_on_trial
check "sets: a replacement that is killed" replacement_killed
check "sets: a rule is of whom a set has, or has not" in_and_not_in
check "sets: a file is read when its policy is applied" read_when_applied
check "sets: a trial's set goes with it" on_trial
check "sets: check counts them, why asks them" why_and_check
check "sets: a wrong file changes nothing" wrong_files
check "sets: killed at system calls, one of two sets is in force" killed
finish
