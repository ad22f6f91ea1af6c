#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Pins for other tools: what bpftool writes there bans a source; whose the pins are, and when they go.
#
#   client                                  server
#   10.77.0.11-18, fd77::11-18  c0 ---- s0  the pacer, with --pin; s1 shares its state
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/fault.sh
. "$(dirname "$0")/fault.sh"

dev=s0
other=s1
at=/sys/fs/bpf/xdp-pacer/$dev

gone()
{
	local name

	for name in "$dev" "$other"; do
		in_server "$BUILD/xdp-pacer" unload "$name" >/dev/null 2>&1 || true
	done
	pacer clean >/dev/null # of the test before, whose pacer is only detached
}

on()
{
	gone
	pacer load "$dev" -c "$work/$1.yaml" "${@:2}" >/dev/null
}

# bytes_of NS: as a map's value has them.
bytes_of()
{
	python3 -c 'import struct, sys; print(*struct.pack("<Q", int(sys.argv[1])))' "$1"
}

monotonic_ns()
{
	python3 -c 'import time; print(time.monotonic_ns())'
}

# write4 LENGTH "A B C D" UNTIL_NS
write4()
{
	# shellcheck disable=SC2046,SC2086
	bpftool map update pinned "$at/banned4" key "$1" 0 0 0 $2 value $(bytes_of "$3")
}

# pinned [IFACE]: which map the pin leads to.
pinned()
{
	bpftool -j map show pinned "/sys/fs/bpf/xdp-pacer/${1:-$dev}/banned4" | jq .id
}

# in_force: the map that the pacer in force looks its sources up in.
in_force()
{
	local ids

	ids=$(bpftool -j prog show id "$(pacer status "$dev" --json | jq .program_id)" | jq '.map_ids[]')
	for id in $ids; do
		bpftool -j map show id "$id" | jq 'select(.name == "pacer_banned4").id'
	done
}

leads_to_it()
{
	equal "$(pinned)" "$(in_force)" "the map that is pinned, $1"
}

# Written by another tool, it counts at once; so does its end, and what takes it back.
written()
{
	limit all 1000
	on all --pin
	equal "$(find "$at" -type f -printf '%f\n' | sort | xargs)" "banned4 banned6" "pins"
	leads_to_it "after a load"
	equal "$(pacer status "$dev" --json | jq -r .pins)" "$at" "the pins that status tells of"
	pacer status "$dev" | grep -qx "  pins      for tools that ban sources, in $at" || fail "status" || return
	arrive "3 3 3" n=3 n=3,from=10.77.0.12 n=3,from=fd77::11
	write4 32 "10 77 0 11" 0
	bpftool map update pinned "$at/banned6" key 64 0 0 0 0xfd 0x77 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \
		value 0 0 0 0 0 0 0 0
	arrive "0 3 0" n=3 n=3,from=10.77.0.12 n=3,from=fd77::11
	equal "$(pacer stats "$dev" --json | jq '.banned_sources')" 6 "counted as banned sources"
	equal "$(pacer ban "$dev" list --json | jq -c '[.[] | [.key, .by_tool, .left_ns]] | sort')" \
		'[["10.77.0.11",true,null],["fd77::/64",true,null]]' "ban list"
	equal "$(pacer status "$dev" | grep '^  banned ')" "  banned    2 by tools" "status"
	write4 32 "10 77 0 12" $(($(monotonic_ns) + 3600000000000))
	equal "$(pacer ban "$dev" list --json | jq -c '[.[] | .left_ns // 0 | . > 3e12 and . <= 36e11] | sort')" \
		'[false,false,true]' "for how long"
	pacer why "$dev" 10.77.0.11 | grep -q 'banned    as 10.77.0.11, by another tool' ||
		fail "$(pacer why "$dev" 10.77.0.11)" || return
	equal "$(pacer why "$dev" "udp 10.77.0.11:4000 > 10.77.0.1:9000" --json | jq -c '[.verdict, .reason]')" \
		'["deny","ban"]' "why"
	bpftool map delete pinned "$at/banned4" key 32 0 0 0 10 77 0 11
	pacer ban "$dev" del fd77::/64 >/dev/null
	arrive "3 3" n=3 n=3,from=fd77::11
}

# Where the kernel does not tell all that a tool banned, no list is taken for the whole.
unread()
{
	local n stride verb

	limit all 1000
	on all --pin
	write4 32 "10 77 0 11" 0
	for verb in "ban $dev list --json" "why $dev 10.77.0.11"; do
		stride=1
		[ "${verb%% *}" = ban ] || stride=5 # of more than a hundred
		for ((n = 1; n < 400; n += stride)); do
			# shellcheck disable=SC2086
			faulty bpf "$n" "$enomem" $verb || return
			$failed || break
			if [ "$code" -eq 0 ]; then
				grep -q 10.77.0.11 "$work/out" && [ ! -s "$work/err" ] || fail "$verb, call $n: $(cat "$work/out")"
			else
				equal "$code $(wc -l <"$work/err")" "1 1" "$verb, call $n: exit code, lines of complaint"
			fi || return
		done
		[ "$n" -gt 5 ] && [ "$n" -lt 400 ] || fail "$verb: $n calls" || return
	done
	# shellcheck disable=SC2154 # of fault.sh
	faulty bpf "$n" "$enomem" ban "$dev" list
	equal "$code" 0 "none failed: exit code"
}

# The allow-list goes first; a time that has passed denies nobody; the longest prefix counts.
judged()
{
	limit all 1000
	on all --pin
	write4 24 "10 77 0 0" "$(($(monotonic_ns) + 3600000000000))"
	write4 32 "10 77 0 13" "$(($(monotonic_ns) - 1))"
	pacer allow "$dev" add 10.77.0.12 >/dev/null
	arrive "0 3 3 3" n=3 n=3,from=10.77.0.12 n=3,from=10.77.0.13 n=3,from=fd77::11
	equal "$(pacer why "$dev" "udp 10.77.0.11:4000 > 10.77.0.1:9000" --json |
		jq -c '[.banned_source.prefix, .wait_ns > 3500e9 and .wait_ns <= 3600e9]')" '["10.77.0.0/24",true]' "why"
	pacer ban "$dev" del all >/dev/null
	arrive "3" n=3
}

# Banned by a tool and by the pacer: the ban that ends last is told, of a key and of a packet.
banned_by_both()
{
	local asked

	limit all 1000
	sed -i '1i bans: 64' "$work/all.yaml"
	on all --pin
	write4 32 "10 77 0 11" "$(($(monotonic_ns) + 60000000000))"
	for asked in 10.77.0.11 "udp 10.77.0.11:4000 > 10.77.0.1:9000"; do
		pacer ban "$dev" add 10.77.0.0/24 --for 1h >/dev/null
		why_banned '["10.77.0.0/24",false,true]' '10.77.0.0/24, whatever the rule, for another (1h|59m59s)' "$asked" || return
		pacer ban "$dev" del 10.77.0.0/24 >/dev/null
		pacer ban "$dev" add 10.77.0.11 --for 5s >/dev/null
		why_banned '["10.77.0.11",true,false]' '10.77.0.11, by another tool, whatever the rule, for another [0-9.]+ s' \
			"$asked" || return
	done
}

# why_banned "[PREFIX, BY A TOOL, FOR LONG]" TEXT KEY-OR-PACKET
why_banned()
{
	equal "$(pacer why "$dev" "$3" --json |
		jq -c '.banned_source | [.prefix, .by_tool, .left_ns > 3500e9]')" "$1" "why $3" || return
	pacer why "$dev" "$3" | grep -Eq "^  banned    as $2\$" || fail "no '$2': $(pacer why "$dev" "$3")"
}

# What a set of the allow-list has is let through, too; also where a ban by hand denies the others.
allowed_by_a_set()
{
	policy sets <<-END
	sets: [{name: ours, of: [10.77.0.12, 10.77.0.14/31]}]
	allow: ["@ours"]
	bans: 64
	rules:
	  - name: all
	    limits: [{key: src, packets: 5, window: 1h}]
	END
	on sets --pin
	write4 24 "10 77 0 0" 0
	equal "$(pacer status "$dev" | grep '^  banned ')" "  banned    0 keys of 64 at most, and 1 by tools" "status"
	equal "$(pacer status "$dev" --json | jq -c '.bans | [.banned, .room, .by_tools, (.keys | length)]')" \
		'[1,64,1,1]' "status, in JSON"
	arrive "0 9 9" n=3 n=9,from=10.77.0.12 n=9,from=10.77.0.15
	equal "$(pacer stats "$dev" --json | jq -c '[.banned_sources, .admitted]')" '[3,0]' \
		"banned, judged by a limit"
	equal "$(pacer why "$dev" "udp 10.77.0.12:4000 > 10.77.0.1:9000" --json |
		jq -c '[.verdict, .reason, .banned_source]')" '["pass","allowed",null]' "why, of the set"
	equal "$(pacer why "$dev" "udp 10.77.0.11:4000 > 10.77.0.1:9000" --json | jq -c '[.verdict, .reason]')" \
		'["deny","ban"]' "why, of the others"
	pacer why "$dev" 10.77.0.12 | grep -q '@ours' || fail "$(pacer why "$dev" 10.77.0.12)" || return
	pacer ban "$dev" del all >/dev/null
	arrive "5" n=9
	pacer ban "$dev" add 10.77.0.0/24 >/dev/null
	arrive "0 9" n=3 n=9,from=10.77.0.14
	sed -i '/^allow/d' "$work/sets.yaml"
	pacer apply "$dev" -c "$work/sets.yaml" >/dev/null
	arrive "0" n=3,from=10.77.0.14
}

# Without --pin there is nothing of it.
not_asked()
{
	limit all 1000
	on all
	[ ! -e "$at" ] || fail "there are pins"
	equal "$(pacer status "$dev" --json | jq .pins)" null "the pins that status tells of"
	pacer upgrade "$dev" --pin >/dev/null
	write4 32 "10 77 0 11" 0
	arrive "0" n=3
}

# A change of policy and an upgrade keep what tools wrote, and the pins lead to it; one without pins takes them away.
kept()
{
	local was

	limit all 1000
	limit less 900
	on all --pin
	write4 32 "10 77 0 11" 0
	was=$(pinned)
	pacer apply "$dev" -c "$work/less.yaml" >/dev/null
	arrive "0" n=3
	pacer upgrade "$dev" >/dev/null
	equal "$(pinned)" "$was" "the map after an upgrade"
	leads_to_it "after an upgrade"
	arrive "0" n=3
	write4 32 "10 77 0 12" 0
	arrive "0" n=3,from=10.77.0.12
	pacer load "$dev" -c "$work/all.yaml" --replace --pin >/dev/null
	[ "$(pinned)" != "$was" ] || fail "the pins are of the old pacer" || return
	leads_to_it "after load --replace"
	arrive "3" n=3
	pacer load "$dev" -c "$work/all.yaml" --replace >/dev/null
	[ ! -e "$at" ] || fail "pins of the pacer before are left" || return
	equal "$(find /sys/fs/bpf/xdp-pacer -name "being-made*" | wc -l)" 0 "half-made folders"
}

# A shadow looks into the same maps, and the pins outlive it: it begins, ends, is promoted.
beside_a_shadow()
{
	local was

	limit ten 10
	limit three 3
	on ten --pin
	was=$(pinned)
	write4 32 "10 77 0 11" 0
	pacer shadow "$dev" -c "$work/three.yaml" >/dev/null
	write4 32 "10 77 0 12" 0
	arrive "0 0 9" n=3 n=3,from=10.77.0.12 n=9,from=10.77.0.13
	equal "$(pacer shadow "$dev" --json | jq '[.rules[].reasons[].deny] | add')" 6 "would be denied, by its limit alone"
	pacer upgrade "$dev" >/dev/null
	leads_to_it "after an upgrade with a shadow"
	pacer clean >/dev/null
	leads_to_it "after a clean"
	pacer shadow "$dev" >/dev/null || fail "clean has ended the shadow" || return
	pacer shadow "$dev" --stop >/dev/null
	arrive "0" n=3
	pacer shadow "$dev" -c "$work/three.yaml" >/dev/null
	pacer shadow "$dev" --promote >/dev/null
	equal "$(pinned)" "$was" "the map after a promotion"
	leads_to_it "after a promotion"
	write4 32 "10 77 0 14" 0
	arrive "0 0 3 0" n=3 n=3,from=10.77.0.12 n=9,from=10.77.0.15 n=3,from=10.77.0.14
	pacer unload "$dev" >/dev/null
	equal "$(find /sys/fs/bpf/xdp-pacer -mindepth 1 | wc -l)" 0 "pins after unload"
}

# They are asked for while a shadow runs: for both, so that they are there when it is promoted.
asked_beside_a_shadow()
{
	limit ten 10
	limit three 3
	on ten
	pacer shadow "$dev" -c "$work/three.yaml" >/dev/null
	pacer upgrade "$dev" --pin >/dev/null
	write4 32 "10 77 0 11" 0
	arrive "0" n=3
	equal "$(pacer shadow "$dev" --json | jq '[.rules[].reasons[].admit] | add // 0')" 0 "would be admitted"
	pacer shadow "$dev" --promote >/dev/null
	leads_to_it "after a promotion"
	arrive "0 3" n=3 n=9,from=10.77.0.12
}

# killed_at COUNT COMMAND...: killed at that system call. The pacer has pins, or can have them again.
killed_at()
{
	local code=0

	in_server "$cut" socket "$1" 0 0 "$BUILD/xdp-pacer" "${@:2}" >/dev/null 2>&1 || code=$?
	[ "$code" -eq 100 ] || [ "$code" -eq 0 ] || fail "$*: exit code $code" || exit 1
	[ "$code" -eq 0 ] || kills=$((kills + 1))
	[ "$code" -eq 100 ]
}

# An upgrade, and a load in its place. What is left is cleaned up; what is in force keeps its pins.
killed()
{
	local n kills=0 cut

	cut=$(tool cut)
	limit all 1000
	on all --pin
	for ((n = 0; n < 20000; n += 179)); do
		killed_at "$n" upgrade "$dev" || break
		pacer clean >/dev/null
		leads_to_it "after $n calls of an upgrade" || exit 1
	done
	for ((n = 0; n < 20000; n += 179)); do
		killed_at "$n" load "$dev" -c "$work/all.yaml" --replace --pin || break
		pacer clean >/dev/null
		[ ! -e "$at" ] || leads_to_it "after $n calls of a load" || exit 1
		pacer upgrade "$dev" >/dev/null
		leads_to_it "after $n calls of a load and an upgrade" || exit 1
	done
	[ "$n" -lt 20000 ] || fail "a load has no end" || exit 1
	pacer unload "$dev" >/dev/null
	pacer clean >/dev/null
	equal "$(find /sys/fs/bpf/xdp-pacer -mindepth 1 | wc -l)" 0 "pins in the end" || exit 1
	[ "$kills" -ge 8 ] || fail "only $kills kills"
}

# An interface with another name by now: what it leaves goes with it, under whatever name.
renamed()
{
	limit all 1000
	gone
	in_server ip link add r0.1 type veth peer name r1
	in_server ip link set r0.1 up
	pacer load r0.1 -c "$work/all.yaml" --pin >/dev/null
	[ -e /sys/fs/bpf/xdp-pacer/r0:1/banned4 ] || fail "no pins of a name with a dot" || return
	in_server ip link set r0.1 down
	in_server ip link set r0.1 name r2
	in_server ip link set r2 up
	pacer clean >/dev/null
	[ -e /sys/fs/bpf/xdp-pacer/r0:1/banned4 ] || fail "clean took pins at work" || return
	equal "$(pacer status r2 --json | jq -r .pins)" /sys/fs/bpf/xdp-pacer/r0:1 "where status says they are"
	pacer status r2 | grep -q 'by its name before: .xdp-pacer upgrade r2 --pin' || fail "status" || return
	pacer upgrade r2 --pin >/dev/null
	equal "$(pacer status r2 --json | jq -r .pins)" /sys/fs/bpf/xdp-pacer/r2 "where they are then"
	equal "$(pinned r2)" "$(pinned r0:1)" "where both lead to"
	pacer unload r2 >/dev/null
	[ ! -e /sys/fs/bpf/xdp-pacer/r2 ] || fail "unload left those of the new name" || return
	in_server ip link del r2
	[ ! -e /sys/fs/bpf/xdp-pacer/r0:1 ] || fail "unload left them"
}

# no_program ID: nobody has it. Who looks through all programs of the machine, as other tests do, has each for a moment.
no_program()
{
	! bpftool prog show id "$1" >/dev/null 2>&1
}

# Pins stay while somebody has their program open, as whoever looks at all programs of the machine.
nothing_of_r0()
{
	pacer clean >/dev/null
	[ ! -e /sys/fs/bpf/xdp-pacer/r0 ]
}

# An interface goes with its shadow, which has the maps of its pins. The next of that name is loaded as the first was, and
# nothing of the shadow is left.
gone_with_its_shadow()
{
	local time program

	limit all 1000
	gone
	for time in first again third; do
		in_server ip link add r0 type veth peer name r1
		in_server ip link set r0 up
		pacer load r0 -c "$work/all.yaml" --pin >/dev/null || fail "the $time time" || return
		equal "$(find /sys/fs/bpf/xdp-pacer -name 'shadow-of-*' | wc -l)" 0 "pins of a shadow" || return
		pacer shadow r0 -c "$work/all.yaml" >/dev/null
		program=$(pacer status r0 --json | jq .program_id)
		in_server ip link del r0
		until_true 20 no_program "$program" || fail "its program is there yet" || return
	done
	until_true 20 nothing_of_r0 || fail "clean left pins"
}

# served_pinned: r0, by `serve --pin`, until its pacer is taken over.
served_pinned()
{
	background "$SERVER" "$BUILD/xdp-pacer" serve r0 -c "$work/all.yaml" \
		--state "$work/r0.state" --pin >"$work/out" 2>"$work/err"
	until_true 20 grep -q "the pacer is" "$work/out" || fail "serve: $(cat "$work/err")" || return
	kill "$pid"
	wait "$pid" || fail "serve ended with $?"
}

# The next of that name is loaded without pins, and gets some later: of what takes its pacer over.
pinned_later_than_a_shadow()
{
	local by program

	limit all 1000
	gone
	for by in "pacer upgrade r0 --pin" served_pinned; do
		in_server ip link add r0 type veth peer name r1
		in_server ip link set r0 up
		pacer load r0 -c "$work/all.yaml" --pin >/dev/null
		pacer shadow r0 -c "$work/all.yaml" >/dev/null
		program=$(pacer status r0 --json | jq .program_id)
		in_server ip link del r0
		until_true 20 no_program "$program" || fail "its program is there yet" || return
		in_server ip link add r0 type veth peer name r1
		in_server ip link set r0 up
		pacer load r0 -c "$work/all.yaml" >/dev/null
		equal "$(find /sys/fs/bpf/xdp-pacer -name 'shadow-of-*' | wc -l)" 1 "pins of a shadow, after a load" || return
		$by >/dev/null || fail "$by" || return
		equal "$(find /sys/fs/bpf/xdp-pacer -name 'shadow-of-*' | wc -l)" 0 "pins of a shadow, after $by" || return
		dev=r0 at=/sys/fs/bpf/xdp-pacer/r0 leads_to_it "after $by" || return
		pacer unload r0 >/dev/null
		in_server ip link del r0
	done
}

# Both of a shared policy have pins, of the same maps.
shared()
{
	limit all 1000
	gone
	pacer load "$dev" "$other" -c "$work/all.yaml" --shared --pin >/dev/null
	equal "$(pinned)" "$(pinned "$other")" "one map"
	pacer unload "$other" >/dev/null
	[ ! -e "/sys/fs/bpf/xdp-pacer/$other" ] || fail "its pins are left" || return
	write4 32 "10 77 0 11" 0
	arrive "0" n=3
}

# in_third COMMAND...: in another network namespace, where another interface has the name.
in_third()
{
	nsenter --net="/run/netns/pacer-net-t$$" timeout -k 1 "$hang_s" "$BUILD/xdp-pacer" "$@"
}

of_another()
{
	limit all 1000
	on all --pin
	in_third_made
	refused 1 "$dev: /sys/fs/bpf/xdp-pacer/$dev is of a pacer at work" \
		in_third load "$dev" -c "$work/all.yaml" --pin
	in_third load "$dev" -c "$work/all.yaml" >/dev/null
	refused 1 "$dev: /sys/fs/bpf/xdp-pacer/$dev is of a pacer at work" in_third upgrade "$dev" --pin
	leads_to_it "beside a load in another namespace"
	in_third unload "$dev" >/dev/null
	leads_to_it "beside an unload in another namespace"
}

in_third_made()
{
	ip netns add "pacer-net-t$$"
	nsenter --net="/run/netns/pacer-net-t$$" ip link add "$dev" type veth peer name x0
	nsenter --net="/run/netns/pacer-net-t$$" ip link set "$dev" up
}

# Another program's pins are not touched: the load has not happened.
not_ours()
{
	limit all 1000
	gone
	mkdir "$at"
	bpftool map create "$at/another" type array key 4 value 4 entries 1 name another
	refused 1 "$dev: $at is not this tool's: remove it, or go on without --pin" \
		pacer load "$dev" -c "$work/all.yaml" --pin
	equal "$(pacer status --json | jq length)" 0 "pacers"
	refused_clean_keeps
	rm "$at/another"
	# shellcheck disable=SC2016
	refused 1 "$dev: $at is a mount point: unmount it" in_server unshare -m sh -c \
		'mount --bind "$1" "$1" && shift && exec "$@"' - "$at" \
		timeout -k 1 "$hang_s" "$BUILD/xdp-pacer" load "$dev" -c "$work/all.yaml" --pin
	# An empty folder is of whoever was killed as he removed it.
	on all --pin
	[ -e "$at/banned4" ] || fail "no pins in place of an empty folder" || return
	gone
	mkdir "$at"
	pacer clean | grep -q "^removed .*: $at$" || fail "clean leaves an empty folder" || return
	[ ! -e "$at" ] || fail "clean has not removed an empty folder" || return
	# Nor is a map that is pinned by the name, and it stays there.
	bpftool map create "$at" type array key 4 value 4 entries 1 name another
	refused 1 "$dev: $at is not this tool's: remove it, or go on without --pin" \
		pacer load "$dev" -c "$work/all.yaml" --pin
	equal "$(bpftool -j map show pinned "$at" | jq -r .name)" another "the map"
	rm "$at"
}

# What cannot be removed is no "nothing was left behind", and the tool's own pins are no stranger's. What
# could be is told all the same.
read_only()
{
	local code=0

	limit all 1000
	on all --pin
	mount -o remount,ro /sys/fs/bpf
	pacer upgrade "$dev" --pin >/dev/null || fail "upgrade: $?" || return
	in_server ip link set dev "$dev" xdp off
	refused 1 "xdp-pacer: $at cannot be removed: Read-only file system" pacer clean
	mkdir "$work/states"
	install -m 600 /dev/null "$work/states/s0.state.unfinished-AbCdEf"
	pacer clean --json --state "$work/states" >"$work/cleaned" 2>/dev/null || code=$?
	equal "$code $(jq -c '[.found[].path, .removed]' "$work/cleaned")" \
		"1 [\"$work/states/s0.state.unfinished-AbCdEf\",true]" "what could be removed"
	equal "$(pacer clean --dry-run --json | jq -r '.found[].path' | grep -cx "$at")" 1 "what a dry run finds"
	mount -o remount,rw /sys/fs/bpf
	pacer clean >/dev/null
	[ ! -e "$at" ] || fail "clean left them"
}

# off_and_says PATH COMMAND...: it takes the pacer off, says so, and that PATH could not be removed.
off_and_says()
{
	local code=0

	mount -o remount,ro /sys/fs/bpf
	"${@:2}" >"$work/out" 2>"$work/err" || code=$?
	mount -o remount,rw /sys/fs/bpf
	equal "$code" 1 "exit code of ${*:2}" || return
	grep -q "the pacer is off" "$work/out" || fail "$(cat "$work/out")" || return
	equal "$(cat "$work/err")" "xdp-pacer: $dev: the pacer is off, but $1, which holds its memory, cannot be \
removed: Read-only file system: \`mount -o remount,rw /sys/fs/bpf\` first, then \`xdp-pacer clean\`" "what it says" || return
	equal "$(what_is_on "$dev")" "{}" "on $dev"
	pacer clean | grep -q "^removed .*: $1$" || fail "clean has not removed $1"
}

# Within \`ip netns exec\` the file system of pins is hidden: they are not taken for gone.
hidden()
{
	local name code=0

	limit all 1000
	on all --pin
	pacer shadow "$dev" -c "$work/all.yaml" >/dev/null
	name=$(find /sys/fs/bpf/xdp-pacer -name 'shadow-of-*')
	hiding status "$dev" | grep -q 'pins  *for tools that ban sources cannot be seen: /sys/fs/bpf is hidden here' ||
		fail "$(hiding status "$dev")" || return
	refused 1 "$dev: its pacer cannot be replaced here, where /sys/fs/bpf is hidden" hiding shadow "$dev" --stop || return
	refused 1 "$dev: its pacer cannot be replaced here, where /sys/fs/bpf is hidden" hiding shadow "$dev" --promote || return
	refused 1 "$dev: its pacer cannot be replaced here, where /sys/fs/bpf is hidden" \
		hiding load "$dev" -c "$work/all.yaml" --replace || return
	hiding unload "$dev" >"$work/out" 2>"$work/err" || code=$?
	equal "$code $(cat "$work/err")" "1 xdp-pacer: $dev: the pacer is off, but whether $name is there still cannot be seen, as \
/sys/fs/bpf is hidden here, or not mounted: \`xdp-pacer clean\` outside \`ip netns exec\`" "unload" || return
	refused 1 "xdp-pacer: clean: what is pinned cannot be seen, as /sys/fs/bpf is hidden here, or not mounted" hiding clean || return
	until_true 5 cleaned "$name" "$at" || fail "$(ls -R /sys/fs/bpf/xdp-pacer)"
}

# cleaned PATH...: what a shadow held the kernel lets go of a moment after its pin.
cleaned()
{
	pacer clean >/dev/null
	[ ! -e "$1" ] && [ ! -e "$2" ]
}

hiding()
{
	timeout -k 1 "$hang_s" ip netns exec "$SERVER" "$BUILD/xdp-pacer" "$@"
}

# The pacer is off all the same. Its maps would be held for ever, without a word.
read_only_unload()
{
	local name

	limit all 1000
	on all --pin
	off_and_says "$at" pacer unload "$dev" || return
	on all
	pacer shadow "$dev" -c "$work/all.yaml" >/dev/null
	name=$(find /sys/fs/bpf/xdp-pacer -name 'shadow-of-*')
	off_and_says "$name" pacer save "$dev" "$work/state" --and-unload || return
	on all
	mount -o remount,ro /sys/fs/bpf
	pacer unload "$dev" >/dev/null || fail "nothing was left, and unload fails" || return
	mount -o remount,rw /sys/fs/bpf
}

refused_clean_keeps()
{
	pacer clean >/dev/null
	[ -d "$at" ] || fail "clean took another's folder"
}

# Somebody removed them: it is told, and `upgrade --pin` makes new ones.
taken_away()
{
	limit all 1000
	on all --pin
	rm -r "$at"
	equal "$(pacer status "$dev" --json | jq .pins)" null "where status says they are"
	pacer status "$dev" | grep -q 'ban sources are gone: .xdp-pacer upgrade '"$dev"' --pin' || fail "status" || return
	pacer upgrade "$dev" --pin >/dev/null
	leads_to_it "after an upgrade"
}

# both_lead_to_it WHEN
both_lead_to_it()
{
	local pin ids

	ids=$(bpftool -j prog show id "$(pacer status "$dev" --json | jq .program_id)" | jq -c .map_ids)
	for pin in banned4 banned6; do
		jq -e --argjson ids "$ids" '.name == "pacer_'$pin'" and (.id as $id | $ids | index($id))' \
			>/dev/null <<<"$(bpftool -j map show pinned "$at/$pin")" || fail "$1: $pin is not the pacer's" || return
	done
	equal "$(pacer status "$dev" --json | jq -r .pins)" "$at" "$1: where status says they are"
}

# spoilt_by HOW PIN: on, and one of its two pins is missing, or is of a pacer that is off.
spoilt_by()
{
	on all --pin
	[ "$1" = missing ] || bpftool map pin pinned "$at/$2" "/sys/fs/bpf/stale-$2"
	[ "$1" = missing ] || on all --pin
	rm "$at/$2"
	[ "$1" = missing ] || mv "/sys/fs/bpf/stale-$2" "$at/$2"
}

# Somebody removed one of the two, or put a stale one there: it is told. Each verb that pins makes both anew, and each
# that takes the pacer off takes what is left with it.
one_taken_away()
{
	local how pin

	limit all 1000
	for pin in banned4 banned6; do
		how=missing
		[ "$pin" = banned4 ] || how=stale
		spoilt_by $how $pin
		equal "$(pacer status "$dev" --json | jq .pins)" null "$how $pin: where status says they are" || return
		pacer status "$dev" | grep -q "$at: one is missing, or not its own: .xdp-pacer upgrade $dev --pin. makes both" ||
			fail "$how $pin: $(pacer status "$dev" | grep '^  pins')" || return
		pacer clean >/dev/null
		[ -e "$at" ] || fail "$how $pin: clean took what is in use" || return
		pacer upgrade "$dev" --pin >/dev/null || fail "$how $pin: upgrade --pin: $?" || return
		both_lead_to_it "$how $pin: upgrade --pin" || return
		spoilt_by $how $pin
		pacer upgrade "$dev" >/dev/null
		both_lead_to_it "$how $pin: upgrade" || return
		spoilt_by $how $pin
		pacer load "$dev" -c "$work/all.yaml" --replace --pin >/dev/null ||
			fail "$how $pin: load --replace --pin: $?" || return
		both_lead_to_it "$how $pin: load --replace --pin" || return
		spoilt_by $how $pin
		pacer load "$dev" -c "$work/all.yaml" --replace >/dev/null
		[ ! -e "$at" ] || fail "$how $pin: load --replace left $(ls "$at")" || return
		spoilt_by $how $pin
		pacer unload "$dev" >/dev/null
		[ ! -e "$at" ] || fail "$how $pin: unload left $(ls "$at")" || return
		spoilt_by $how $pin
		pacer save "$dev" "$work/state" --and-unload >/dev/null
		[ ! -e "$at" ] || fail "$how $pin: save --and-unload left $(ls "$at")" || return
	done
}

# A look that fails does not say so: each in turn of those that status makes, alone, and with the next: that may be
# the look at the other pin.
unread_is_not_gone()
{
	local fault more n code

	fault=$(tool fault)
	limit all 1000
	on all --pin
	for more in "" +1; do
		for ((n = 1; n < 300; n++)); do
			code=0
			in_server "$fault" bpf "$n$more" 12 "$BUILD/xdp-pacer" status "$dev" >"$work/said" 2>/dev/null || code=$?
			! grep -q 'are gone' "$work/said" ||
				fail "call $n$more fails: $(grep 'are gone' "$work/said")" || return
			[ "$code" -ge 100 ] || break
		done
		[ "$n" -gt 20 ] && [ "$code" -eq 0 ] || fail "$n$more calls, exit code $code" || return
	done
}

# What an interface leaves that has gone: told and removed by clean, or by the next load.
left_behind()
{
	limit all 1000
	on all --pin
	in_server ip link set dev "$dev" xdp off
	pacer clean --dry-run | grep -q "found pins for other tools that no interface needs: $at" ||
		fail "$(pacer clean --dry-run)" || return
	pacer load "$dev" -c "$work/all.yaml" --pin >/dev/null
	leads_to_it "after a load"
	in_server ip link set dev "$dev" xdp off
	refused 1 "$work/none: there is no such folder" pacer clean --state "$work/none" || return
	[ -e "$at" ] || fail "a clean that is refused took them" || return
	pacer clean >/dev/null
	[ ! -e "$at" ] || fail "clean left them" || return
	on all --pin
	pacer unload "$dev" >/dev/null
	[ ! -e "$at" ] || fail "unload left them"
}

net_up
trap 'ip netns del "pacer-net-t$$" 2>/dev/null; gone; clean' EXIT
in_server ip link add "$other" type veth peer name y0
in_server ip link set "$other" up
check written-by-another-tool written
check tools-bans-unread unread
check judged-by-longest-prefix judged
check banned-by-both banned_by_both
check allowed-by-a-set allowed_by_a_set
check not-asked-for not_asked
check kept-over-changes kept
check pins-beside-a-shadow beside_a_shadow
check asked-beside-a-shadow asked_beside_a_shadow
check pins-of-killed-tools killed
check renamed-interface renamed
check gone-with-its-shadow gone_with_its_shadow
check pinned-later-than-a-shadow pinned_later_than_a_shadow
check shared-by-two-interfaces shared
check of-another-namespace of_another
check another-programs-pins not_ours
check pins-read-only read_only
check pins-hidden hidden
check unload-pins-read-only read_only_unload
check pins-taken-away taken_away
check one-pin-taken-away one_taken_away
check pins-unread unread_is_not_gone
check left-behind left_behind
finish
