#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# State in a file: what a pacer held goes on in the next one, and nothing is let through twice.
#
#   client                                     server
#   10.77.0.11-16, fd77::11-12  c0 ---- s0     the pacer; `save`, `load --restore`
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/fault.sh
. "$(dirname "$0")/fault.sh"

file() { echo "$work/s0.state"; }

# every NAME [PACKETS]: a policy with a limit of each kind, bans and an allow-list.
every()
{
	policy "$1" <<-END
	bans: 64
	allow: [10.77.0.18]
	rules:
	  - name: window
	    match: {proto: udp, dport: 9000}
	    limits: [{key: src, packets: ${2:-10}, window: 600s, slots: 10}]
	    ban: 600s
	  - name: rate
	    match: {proto: udp, dport: 9001}
	    limits: [{key: src, rate: 1/m, burst: 5}]
	  - name: gap
	    match: {proto: udp, dport: 9002}
	    limits: [{key: src, gap: 600s}]
	  - name: uses
	    match: {proto: udp, dport: 9003}
	    limits: [{key: all, uses: 7, cooldown: 600s}]
	END
}

restore()
{
	pacer load s0 -c "$work/$1.yaml" --restore "$(file)" "${@:2}" --json
}

# What was used before is used after, by every kind of limit; bans, counters and the list by hand too.
goes_on()
{
	local how=$1 restored

	every all
	load all
	pacer allow s0 add 10.77.0.17 --for 1h >/dev/null
	arrive "6 15 10 4 1 7 9" n=6 n=15,from=10.77.0.18 n=12,from=10.77.0.12 n=4,dport=9001 \
		n=3,dport=9002 n=9,dport=9003 n=9,from=10.77.0.17
	if [ "$how" = unload ]; then
		pacer save s0 "$(file)" --and-unload --json >"$work/out"
		equal "$(jq -c '[.exact, .attached]' "$work/out")" "[true,false]" "exact, attached"
		equal "$(what_is_on s0)" "{}" "what is on s0"
	else
		pacer save s0 "$(file)" --json >"$work/out"
		equal "$(jq -c '[.exact, .attached]' "$work/out")" "[false,true]" "exact, attached"
		arrive "1" n=1 # not in the file
		off
	fi
	equal "$(stat -c '%a' "$(file)")" 600 "mode of the file"
	equal "$(stat -c %s "$(file)")" "$(jq .bytes "$work/out")" "bytes"
	restored=$(restore all | jq -c '.restored | [.limits.kept, .limits.new, .bans, .allowed, .away_by]')
	equal "$restored" '[4,0,1,1,"same_boot"]' "restored"
	arrive "4 0 1 0 0 9 5" n=9 n=9,from=10.77.0.12 n=3,dport=9001 n=3,dport=9002 n=3,dport=9003 \
		n=9,from=10.77.0.17 n=5,from=10.77.0.18
	equal "$(stats '[.rules[] | "\(.matched) \(.admitted)"] | join(", ")')" \
		"36 20, 7 5, 6 1, 12 7" "matched and admitted, before and after"
}

from_the_copy() { goes_on copy; }
from_the_last_packet() { goes_on unload; }

# A limit that keeps its shape keeps its state under another value; one that does not drains.
another_policy()
{
	every all
	load all
	arrive "6 4 7" n=6 n=4,dport=9001 n=9,dport=9003
	pacer save s0 "$(file)" --and-unload >/dev/null
	every other 12
	sed -i 's/window: 600s, slots: 10/window: 600s, slots: 10, entries: 64/; s/cooldown: 600s/cooldown: 500s/
		s/name: gap/name: gone/; s/^bans: 64/bans: 128/' "$work/other.yaml"
	equal "$(restore other | jq -c '.restored | [.limits.kept, .limits.new, .limits.retired,
		.left_out.counters]')" "[1,3,3,1]" "kept, new, retired, counters left out"
	arrive "4 1 0 1" n=9 n=3,dport=9001 n=3,dport=9003 n=3,dport=9002
	equal "$(stats '.rules[0].matched')" 15 "matched, before and after"
}

# Which boot it is nobody says: less time counts as gone, and the output does not speak of the clock's source.
unknown_boot()
{
	local away="at least; the kernel does not say whether this is the boot of the save: is /proc mounted?"

	every all
	load all
	arrive "6" n=6
	pacer save s0 "$(file)" --and-unload >/dev/null
	in_server unshare -m sh -c 'mount --bind /dev/null /proc/sys/kernel/random/boot_id && exec "$@"' - \
		"$BUILD/xdp-pacer" load s0 -c "$work/all.yaml" --restore "$(file)" >"$work/out" || return
	grep -qF ", $away" "$work/out" || fail "$(cat "$work/out")" || return
	arrive "4" n=9
}

# No series is less than before: of rules, reasons and sets.
counters_go_on()
{
	good_and_drop before "{name: good, of: [10.77.0.13]}, {name: drop, of: [10.77.0.12]}"
	good_and_drop after "{name: new, of: [10.77.0.11]}, {name: drop, of: [10.77.0.12]}, {name: good, of: [10.77.0.13]}"
	load before
	arrive "0 9 5" n=9,dport=9009,from=10.77.0.12 n=9,from=10.77.0.13 n=9
	totals >"$work/before"
	pacer save s0 "$(file)" --and-unload >/dev/null
	restore after >/dev/null
	equal "$(less_than "$work/before")" "" "what is less" || return
	equal "$(pacer stats s0 --json | jq -rc '[.sets[] | "\(.name) \(.packets)"] | sort | join(", ")')" \
		"drop 9, good 9, new 0" "packets of sets" || return
	arrive "0" n=2,dport=9009,from=10.77.0.12
	equal "$(stats '.sets[] | select(.name == "drop") | .packets')" 11 "packets of the set, and since"
}

# Bans go on in a table of another size.
bans_move()
{
	every all
	load all
	arrive "10 10" n=15 n=15,from=10.77.0.13
	pacer ban s0 add 10.77.0.14 --for 1h >/dev/null
	pacer save s0 "$(file)" --and-unload >/dev/null
	every wide
	sed -i 's/^bans: 64/bans: 256/' "$work/wide.yaml"
	equal "$(restore wide | jq -c '.restored | [.bans, .left_out.bans]')" "[3,0]" "bans, left out"
	equal "$(status '[.bans.keys[] | .key] | sort | join(" ")')" "10.77.0.11 10.77.0.13 10.77.0.14" "bans"
	arrive "0 0 10" n=5 n=5,from=10.77.0.14,dport=9009 n=12,from=10.77.0.15
}

# A table that is larger than the policy asks for is said, with what helps; one that grows is not.
another_memory()
{
	every all
	load all
	pacer save s0 "$(file)" --and-unload >/dev/null
	sed -i 's/^memory: .*/memory: 2Mi/' "$work/all.yaml"
	restore all 2>"$work/err" >/dev/null
	equal "$(cat "$work/err")" "" "what it says of one that grows" || return
	pacer save s0 "$(file)" --and-unload >/dev/null
	every all
	restore all 2>"$work/err" >/dev/null
	equal "$(cat "$work/err")" "xdp-pacer: s0: memory: the state is as large as what was saved needs: to make it smaller,$(
		) unload, and load without --restore (what it has counted and banned goes)" "what it says" || return
	pacer status s0 | grep -q ", 2.0 MiB of it for keys" || fail "$(pacer status s0)" || return
	pacer unload s0 >/dev/null
	pacer load s0 -c "$work/all.yaml" >/dev/null
	pacer status s0 | grep -q ", 1.0 MiB of it for keys" || fail "$(pacer status s0)"
}

# Each file is refused in one line, and nothing is attached.
bad_files()
{
	local size at

	limit one 5
	load one
	arrive "3" n=3
	pacer save s0 "$(file)" --and-unload >/dev/null
	cp "$(file)" "$work/good"
	refused 1 'gone.state: the state cannot be read: No such file' \
		pacer load s0 -c "$work/one.yaml" --restore "$work/gone.state"
	size=$(stat -c %s "$work/good")
	for at in 0 1 100 1000 $((size / 2)) $((size - 1)); do
		head -c "$at" "$work/good" >"$(file)"
		refused 1 'cut off' pacer load s0 -c "$work/one.yaml" --restore "$(file)"
	done
	{ cat "$work/good"; echo; } >"$(file)"
	refused 1 'is cut off or damaged' pacer load s0 -c "$work/one.yaml" --restore "$(file)"
	printf '\3' | dd of="$work/good" bs=1 seek=8 conv=notrunc status=none
	refused 1 'has version 3 of saved state, this tool reads 2' \
		pacer load s0 -c "$work/one.yaml" --restore "$work/good"
	refused 1 'is no saved state' pacer load s0 -c "$work/one.yaml" --restore "$work/one.yaml"
	equal "$(what_is_on s0)" "{}" "what is on s0"
}

# What cannot be saved leaves the pacer and the file as they were.
bad_places()
{
	limit one 5
	load one
	arrive "3" n=3
	mkdir "$work/full"
	mount -t tmpfs -o size=64k none "$work/full"
	trap 'umount "$work/full"' EXIT
	echo before >"$work/full/s0.state"
	refused 1 'full/s0.state: the state cannot be written: No space left' \
		pacer save s0 "$work/full/s0.state"
	refused 1 'No space left' pacer save s0 "$work/full/s0.state" --and-unload
	equal "$(cat "$work/full/"*)" before "what is in the directory"
	mkfifo "$work/pipe" # of its own, as a fault would replace it
	refused 1 'is no regular file' pacer save s0 "$work/pipe"
	refused 1 'No such file' pacer save s0 "$work/no/such/place"
	refused 2 'wants one interface and a file' pacer save s0
	refused 2 'wants one interface and a file' pacer save all "$work/all"
	refused 1 'has no pacer' pacer save lo "$(file)"
	arrive "2" n=5
	apply one --confirm-within 60s
	refused 1 'waits to be confirmed' pacer save s0 "$(file)" --and-unload
	pacer save s0 "$(file)" >/dev/null
	pacer confirm s0 >/dev/null
}

# good_and_drop NAME SETS: a policy with these sets.
good_and_drop()
{
	policy "$1" <<-END
	sets: [$2]
	allow: ["@good"]
	rules:
	  - {name: blocked, match: {src: "@drop"}, verdict: drop}
	  - {name: udp, match: {proto: udp, dport: 9000}, limits: [{key: src, packets: 5, window: 600s}]}
	END
}

# Killed while it is frozen: limits deny; rules and the allow-list go on by the sets of the policy in force, though
# the copy that is frozen had others.
frozen_sets()
{
	good_and_drop before "{name: good, of: [10.77.0.13]}, {name: drop, of: [10.77.0.12]}"
	good_and_drop after "{name: drop, of: [10.77.0.12]}, {name: good, of: [10.77.0.13]}"
	load before
	apply after
	pacer sets s0 add drop 10.77.0.14 >/dev/null
	faulty fsync 1 kill save s0 "$(file)" --and-unload
	equal "$code" 137 "killed, as its file was written" || return
	arrive "0 9 0 9 0" n=9,dport=9009,from=10.77.0.12 n=9,from=10.77.0.13 n=9,dport=9009,from=10.77.0.14 \
		n=9,dport=9009 n=9
	equal "$(status '.confirm_within_ns > 0')" true "frozen, all the while" || return
	equal "$(pacer sets s0 show drop --json | jq -c '[.prefixes[], .by_hand[].prefix]')" \
		'["10.77.0.12","10.77.0.14"]' "the set, meanwhile"
}

frozen() { [ "$(status .frozen)" = true ]; }

# Killed while it is frozen: status says what it is, and the next change ends that at once.
frozen_and_changed()
{
	local change

	limit five 5
	for change in "apply s0 -c $work/five.yaml" "shadow s0 --promote"; do
		load five
		pacer shadow s0 -c "$work/five.yaml" >/dev/null
		faulty fsync 1 kill save s0 "$(file)" --and-unload
		equal "$code" 137 "killed, as its file was written" || return
		arrive "0" n=9 || return
		frozen || fail "frozen: $(status .frozen)" || return
		pacer status s0 | grep -q '^  FROZEN    all that it limits is denied for [0-9.]* s more' ||
			fail "$(pacer status s0)" || return
		! pacer status s0 | grep PENDING || fail "it is on trial, too" || return
		# shellcheck disable=SC2086 # words
		pacer $change >/dev/null || fail "$change" || return
		equal "$(status .frozen)" false "frozen, after $change" || return
		arrive "5" n=9,from=10.77.0.12 || return
		off
	done
}

# A stop waits until it is off.
stopped_while_frozen()
{
	local held code=0

	limit five 5
	load five
	rm -f "$(file)"
	background "$SERVER" "$(tool cut)" membarrier 40 0 2000 "$BUILD/xdp-pacer" save s0 "$(file)" --and-unload \
		>"$work/out"
	held=$pid
	until_true 5 frozen || fail "it is not frozen" || return
	kill -TERM "$(cat "/proc/$held/task/$held/children")"
	wait "$held" || code=$?
	equal "$code" 143 "exit code"
	equal "$(what_is_on s0)" "{}" "what is on s0"
	restore five >/dev/null
	arrive "5" n=9
}

thawed() { ! frozen; }

# It stands still between its file and its end for so long that packets are let through: they are in the file.
late()
{
	local held code=0

	limit five 5 600s
	load five
	rm -f "$(file)"
	background "$SERVER" "$(tool cut)" fsync 40 0 14000 "$BUILD/xdp-pacer" save s0 "$(file)" --and-unload \
		>"$work/out"
	held=$pid
	until_true 10 frozen || fail "it is not frozen" || return
	until_true 15 thawed || fail "it does not give way" || return
	arrive "3" n=3 || return
	wait "$held" || code=$?
	equal "$code" 100 "exit code" || return
	equal "$(what_is_on s0)" "{}" "what is on s0" || return
	restore five >/dev/null
	arrive "2" n=9
}

# Then there is no room for another file: what is there lacks them, and that is said.
late_and_full()
{
	local held code=0

	limit five 5 600s
	load five
	mkdir -p "$work/small"
	mount -t tmpfs -o size=6m none "$work/small"
	background "$SERVER" "$(tool cut)" fsync 40 0 14000 "$BUILD/xdp-pacer" save s0 "$work/small/state" --and-unload \
		>"$work/out" 2>"$work/err"
	held=$pid
	until_true 10 frozen || fail "it is not frozen" || return
	until_true 15 thawed || fail "it does not give way" || return
	mount -o remount,ro "$work/small"
	arrive "3" n=3
	wait "$held" || code=$?
	umount "$work/small"
	equal "$code" 1 "exit code" || return
	grep -q "the pacer is off, and let packets through before that are not in .*small/state" "$work/err" ||
		fail "$(cat "$work/err")"
}

# The file is there, and then it cannot be taken off: that is said, and the pacer goes on.
written_and_on()
{
	local n told=0

	limit five 5
	load five
	for n in 3 4; do # to look, and to detach
		rm -f "$(file)"
		faulty fsync:socket "$n" "$eperm" save s0 "$(file)" --and-unload || return
		equal "$code $failed" "1 true" "socket $n: exit code, failed" || return
		[ ! -s "$work/out" ] || fail "socket $n: failed, but says $(cat "$work/out")" || return
		! grep -qF "s0.state was written, but the pacer is still on, and lets packets through that are not in that: save again" \
			"$work/err" || told=$((told + 1))
		[ -s "$(file)" ] || fail "socket $n: no file is there: $(cat "$work/err")" || return
		arrive "5" "n=9,from=10.77.0.1$n" || return
	done
	equal "$told" 2 "said" || return
	faulty fsync:socket all "$eperm" save s0 "$(file)" --and-unload || return
	grep -qF 's0.state was written: see `xdp-pacer status s0`, whether the pacer is off' "$work/err" ||
		fail "of what cannot be seen: $(cat "$work/err")" || return
	faulty fsync 2 "$eperm" save s0 "$(file)" --and-unload || return # of the directory
	grep -qF "may not outlast a power failure: Operation not permitted; the pacer is still on" "$work/err" ||
		fail "of the directory: $(cat "$work/err")" || return
	arrive "5" n=9,from=10.77.0.15
}

# A save waits for the one before, which may be slow on its disk, with all that it takes; nothing else waits for that.
one_at_a_time()
{
	local holder how

	every all
	for how in "" --and-unload; do
		load all
		rm -f "$(file)"
		background "$SERVER" python3 -c 'import fcntl, time
f = open("/run/xdp-pacer.lock", "r+")
fcntl.lockf(f, fcntl.LOCK_EX)
print("has it", flush=True)
time.sleep(600)' >"$work/holder"
		holder=$pid
		until_true 20 grep -q "has it" "$work/holder" || return
		# shellcheck disable=SC2086 # none is no word
		background "$SERVER" "$BUILD/xdp-pacer" save s0 "$(file)" $how >"$work/out" 2>"$work/err"
		until_true 20 grep -q 'lock: waiting for another process, which has it locked$' "$work/err" || return
		pacer ban s0 add 10.77.0.13 >/dev/null
		arrive "1 0" n=1 n=1,from=10.77.0.13
		[ ! -e "$(file)" ] || fail "it is saved beside another$how" || return
		kill "$holder"
		wait "$pid" || fail "$(cat "$work/err")" || return
		[ "$how" ] || pacer unload s0 >/dev/null
		restore all >/dev/null
		equal "$(pacer ban s0 list --json | jq -r '.[].key')" 10.77.0.13 "the ban that came meanwhile"
		pacer unload s0 >/dev/null
	done
}

# six sources of several times their limit; saved, taken off and restored again and again: no window
# of any source has more than the limit, whatever arrives while nothing is on the interface.
under_load()
{
	local rounds=0

	policy load <<-END
	rules:
	  - name: udp
	    match: {proto: udp, dport: 9000}
	    limits: [{key: src, packets: 20, window: 100ms, slots: 10}, {key: src, gap: 500us, rows: 1}]
	END
	load load
	six_on 97
	while [ "$rounds" -lt 6 ]; do
		pacer save s0 "$(file)" >/dev/null
		pacer load s0 -c "$work/load.yaml" --replace --restore "$(file)" >/dev/null
		rounds=$((rounds + 1))
	done
	six_held 40 # twice the limit
}

# Packets flow while it is frozen, saved and taken off: what was let through until then, and no more, is in
# the file. The counter says how much that is.
exact()
{
	local i admitted

	limit exact 1000 600s
	for i in 1 2 3; do
		load exact
		traffic_on 9000 1000 10.77.0.11=100 # nine seconds, before the limit is reached
		until_true 5 sh -c "[ \"\$(nsenter --net=/run/netns/$SERVER $BUILD/xdp-pacer stats s0 --json |
			jq '.rules[0].admitted')\" -gt $((i * 20)) ]"
		pacer save s0 "$(file)" --and-unload >/dev/null
		traffic_off
		restore exact >/dev/null
		admitted=$(stats '.rules[0].admitted')
		[ "$admitted" -gt 20 ] && [ "$admitted" -lt 1000 ] || fail "admitted before: $admitted" || return
		arrive $((1000 - admitted)) n=1000 || return
		off
	done
}

# A stack of 128 KiB is enough, as of a thread or under a low limit: the state is kept elsewhere.
on_a_small_stack()
{
	limit ten 10
	load ten
	arrive "10" n=20
	(ulimit -s 128 && pacer save s0 "$(file)" --and-unload >/dev/null) || fail "save" || return
	(ulimit -s 128 && pacer load s0 -c "$work/ten.yaml" --restore "$(file)" >/dev/null) || fail "load" || return
	arrive "0" n=20
	off
}

net_up
check save-exact exact
check save-on-a-small-stack on_a_small_stack
check save-goes-on from_the_copy
check save-goes-on-to-the-last-packet from_the_last_packet
check save-another-policy another_policy
check save-unknown-boot unknown_boot
check save-counters-go-on counters_go_on
check save-bans-move bans_move
check save-another-memory another_memory
check save-bad-files bad_files
check save-bad-places bad_places
check save-frozen-sets frozen_sets
check save-frozen-and-changed frozen_and_changed
check save-stopped-while-frozen stopped_while_frozen
check save-late late
check save-late-and-full late_and_full
check save-written-and-on written_and_on
check save-one-at-a-time one_at_a_time
check save-under-load under_load
finish
