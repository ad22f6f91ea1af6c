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
	set_of drop.txt 10.77.0.11-10.77.0.12 "# a comment" fd77::11 fd77::12
	strict in 'src: "@drop"'
	load in
	arrive "1 1 20 20 1" n=20 n=20,from=fd77::11 n=20,from=10.77.0.13 n=20,from=fd77::13 \
		n=20,from=10.77.0.12
	strict not 'src: ["@drop", "!@office"]'
	apply not
	arrive "20 20 20" n=20,from=10.77.0.12 n=20,from=fd77::12 n=20,from=10.77.0.13
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
		in_server "$cut" execve "$n" 0 0 "$BUILD/xdp-pacer" apply s0 -c "$work/in.yaml" \
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

net_up
check "sets: a rule is of whom a set has, or has not" in_and_not_in
check "sets: a file is read when its policy is applied" read_when_applied
check "sets: a trial's set goes with it" on_trial
check "sets: check counts them, why asks them" why_and_check
check "sets: a wrong file changes nothing" wrong_files
check "sets: killed at system calls, one of two sets is in force" killed
finish
