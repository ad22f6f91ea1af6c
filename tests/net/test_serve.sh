#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A pacer as a service: what `serve` does for systemd, by systemd's own protocol, and what it leaves
# behind however it ends; the unit itself.
#
#   client                                     server
#   10.77.0.11-16, fd77::11-12  c0 ---- s0     the pacer; `xdp-pacer serve`, `clean`
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

UNIT=$here/../../systemd/xdp-pacer@.service
AS_AT_LOAD="memory: the state stays as large as it was at load: unload and load to change it"

# serve [OPTION...]: until it is ready; its pid is in $pid. What it says to systemd is in $work/notes.
serve()
{
	: >"$work/notes"
	rm -f "$work/notify"
	background "$SERVER" python3 -u -c '
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
while True:
    print(s.recv(4096).decode(), flush=True)' "$work/notify" >>"$work/notes"
	until_true 10 test -S "$work/notify"
	NOTIFY_SOCKET=$work/notify background "$SERVER" "$BUILD/xdp-pacer" serve s0 -c "$work/one.yaml" \
		--state "$work/s0.state" "$@" >"$work/out" 2>"$work/err"
	until_true 20 ready "$pid" || fail "it is not ready: $(cat "$work/err")"
	grep -q READY=1 "$work/notes" || fail "it ended: $(cat "$work/err")"
}

ready()
{
	grep -q READY=1 "$work/notes" || ! kill -0 "$1" 2>/dev/null
}

# stop SIGNAL CODE
stop()
{
	local code=0

	kill "-$1" "$pid"
	wait "$pid" || code=$?
	equal "$code" "$2" "exit code after $1: $(cat "$work/err")"
}

begun()
{
	equal "$(head -n 1 "$work/out")" "s0: the pacer is $1" "what it says"
}

# Loaded; taken over after a stop, which leaves it at work; restored when it was taken off.
from_stop_to_start()
{
	limit one 10
	serve
	begun "loaded, with new state"
	arrive "4" n=4
	stop TERM 0
	grep -q STOPPING=1 "$work/notes"
	[ "$(what_is_on s0)" != "{}" ] || fail "the pacer is off after a stop"
	arrive "3" n=3
	serve
	begun "taken over as it was"
	arrive "2" n=2
	stop TERM 0
	off
	serve
	begun "loaded, with the state that was saved"
	arrive "1" n=5
	equal "$(stats '.rules[0] | "\(.matched) \(.admitted)"')" "14 10" "matched, admitted"
	stop INT 0
}

and_unload()
{
	limit one 10
	rm -f "$work/s0.state"
	serve --and-unload
	arrive "4" n=4
	stop TERM 0
	equal "$(what_is_on s0)" "{}" "what is on s0"
	serve
	begun "loaded, with the state that was saved"
	arrive "6" n=9
	stop TERM 0
}

# of_values NAME SETS LIMIT [BANS]
of_values()
{
	policy "$1" <<-END
	bans: ${4:-1000}
	sets: [$2]
	rules:
	  - name: udp
	    match: {proto: udp, dport: 9000}
	    limits:
	      - {key: "src/32,128", packets: 10, window: 60s}
	$3
	END
}

# Limits by a set's values that its policy no longer has, or not even the set: what else was saved goes on.
without_its_values()
{
	local geo="{name: geo, file: $work/geo.csv, value: 2}" by_value='      - {key: "value(geo, src)", packets: 15, window: 60s}'

	printf '10.77.0.11,XY\n10.77.0.12,XY\n' >"$work/geo.csv"
	rm -f "$work/s0.state"
	of_values one "$geo" "$by_value"
	serve --and-unload
	pacer ban s0 add 10.77.0.15 >/dev/null
	arrive "10 0" n=12 n=2,from=10.77.0.15
	stop TERM 0
	cp "$work/s0.state" "$work/kept.state"
	of_values one "$geo" ""
	serve --and-unload
	begun "loaded, with the state that was saved"
	arrive "0 5 10 0" n=2 n=12,from=10.77.0.12 n=12,from=10.77.0.13 n=2,from=10.77.0.15
	stop TERM 0
	cp "$work/kept.state" "$work/s0.state"
	of_values one "" ""
	serve --and-unload
	begun "loaded, with the state that was saved"
	grep -q '^  1 limit that the policy cannot go on with$' "$work/out" || fail "$(cat "$work/out")"
	arrive "0 10 10 0" n=2 n=12,from=10.77.0.12 n=12,from=10.77.0.13 n=2,from=10.77.0.15
	stop TERM 0
}

says_what_is_left_out()
{
	rm -f "$work/s0.state"
	of_values one "" ""
	serve --and-unload
	printf '198.51.100.%s\n' {1..40} | pacer ban s0 add - >/dev/null
	stop TERM 0
	of_values one "" "" 8
	serve --and-unload
	grep -Eq '^  3[2-9] bans found no room in the policy.s table of bans$' "$work/out" || fail "$(cat "$work/out")"
	stop TERM 0
}

# An edit of bans or flows takes no limit with it, and bans go on as far as there is room.
tables_of_another_size()
{
	local from to

	for from in "1024 2048" "4600 4300"; do
		to=${from#* }
		rm -f "$work/s0.state"
		of_values one "" "" "${from% *}"
		serve --and-unload
		pacer ban s0 add 10.77.0.15 >/dev/null
		arrive "10 0" n=12 n=2,from=10.77.0.15
		stop TERM 0
		of_values one "" "" "$to"
		serve --and-unload
		begun "loaded, with the state that was saved"
		grep -q '^restored: 1 limit kept its state, 0 new, 0 retired; 1 ban, ' "$work/out" ||
			fail "$(cat "$work/out")" || return
		! grep -q dropped "$work/err" || fail "$(cat "$work/err")" || return
		arrive "0 0 10" n=2 n=2,from=10.77.0.15 n=12,from=10.77.0.12
		stop TERM 0
	done
}

# One that is there keeps its mode: what was asked for beside that is refused. What ends of it is said.
taken_over_otherwise()
{
	of_values one "" "" 1024
	pacer load s0 -c "$work/one.yaml" --mode skb >/dev/null
	printf '198.51.100.%s\n' {1..40} | pacer ban s0 add - >/dev/null
	refused 1 'its pacer is in skb mode: serve it without --mode native, or ' \
		pacer serve s0 -c "$work/one.yaml" --state "$work/s0.state" --mode native
	of_values one "" "" 8
	serve
	begun "taken over as it was, in skb mode"
	grep -Eq '^bans that it has no room for, and which end: 3[2-9]$' "$work/out" || fail "$(cat "$work/out")"
	stop TERM 0
	off
}

# A policy on trial keeps it from being taken off: the file is of the end, all the same.
and_unload_on_trial()
{
	limit one 10
	limit two 20
	rm -f "$work/s0.state"
	serve --and-unload
	pacer apply s0 -c "$work/two.yaml" --confirm-within 1h >/dev/null
	arrive "4" n=4
	stop TERM 1
	grep -q "it was not saved and taken off: s0: a policy waits to be confirmed" "$work/err" ||
		fail "$(cat "$work/err")" || return
	grep -q "its state was saved, and the pacer goes on" "$work/err" || fail "$(cat "$work/err")" || return
	off
	limit one 10
	serve
	arrive "6" n=9
	stop TERM 0
}

# A policy that somebody tries goes on when the service begins, and its own is not put in force. That is said, and so it
# is of the memory that its policy asks for.
begun_on_trial()
{
	limit one 10
	limit two 20
	pacer load s0 -c "$work/one.yaml" >/dev/null
	pacer apply s0 -c "$work/two.yaml" --confirm-within 1h >/dev/null
	(echo "memory: 32M" && grep -v '^memory:' "$work/one.yaml") >"$work/more.yaml"
	mv "$work/more.yaml" "$work/one.yaml"
	serve
	begun "taken over as it was"
	grep -q "s0: a policy waits to be confirmed: the service's own is not put in force" "$work/err" ||
		fail "$(cat "$work/err")" || return
	grep -q "s0: $AS_AT_LOAD" "$work/err" || fail "$(cat "$work/err")" || return
	arrive "20" n=25
	stop TERM 0
	pacer confirm s0 >/dev/null
	off
}

# memory MI: what the policy asks for.
memory()
{
	sed -i "s/^memory: .*/memory: ${1}Mi/" "$work/one.yaml"
}

# state_of MI: so large it is.
state_of()
{
	pacer status s0 | grep -q ", $1.0 MiB of it for keys" || fail "$(pacer status s0 | grep memory)"
}

# stays WHY: it is said once how large the state is, and what makes it smaller.
stays()
{
	equal "$(grep -c "memory" "$work/err")" 1 "times that it is said" || return
	equal "$(grep "memory" "$work/err")" "xdp-pacer: s0: memory: the state $1:$(
		) to make it smaller, unload, remove $work/s0.state (what it has counted and banned goes with it),$(
		) and load" "what is said" || return
	state_of 2
}

# A state that is restored never shrinks: what is said of that helps.
smaller()
{
	limit one 10
	memory 2
	rm -f "$work/s0.state"
	serve
	arrive "4" n=4
	stop TERM 0
	equal "$(cat "$work/err")" "" "what it says of new state" || return
	memory 1
	serve
	stays "stays as large as it was at load" || return
	stop TERM 0
	off
	serve
	begun "loaded, with the state that was saved"
	stays "is as large as what was saved needs" || return
	stop TERM 0
	pacer unload s0 >/dev/null && rm "$work/s0.state"
	serve
	begun "loaded, with new state"
	equal "$(cat "$work/err")" "" "what it says once it is smaller" || return
	state_of 1 || return
	memory 2 # it grows by what is said of that
	apply one 2>"$work/err"
	equal "$(cat "$work/err")" "xdp-pacer: s0: $AS_AT_LOAD" "what it says" || return
	stop TERM 0
	pacer unload s0 >/dev/null
	serve
	begun "loaded, with the state that was saved"
	equal "$(cat "$work/err")" "" "what it says once it is larger" || return
	state_of 2 || return
	stop TERM 0
	off
}

# ends_by SIGNAL OPTION...: `serve` whose policy somebody is yet to write ends.
ends_by()
{
	local code=0

	nsenter --net="/run/netns/$SERVER" "$BUILD/xdp-pacer" serve s0 "${@:2}" --state "$work/s0.state" \
		<"$work/held" 2>"$work/err" & # not by background: that has no stdin
	pid=$!
	remember "$pid" "$work/pids"
	until_true 20 waits "$pid" || fail "it does not wait: $(cat "$work/err")" || return
	kill "-$1" "$pid"
	until_true 20 is_gone "$pid" || { kill -KILL "$pid"; fail "$1 does not end it: ${*:2}"; } || return
	wait "$pid" || code=$?
	equal "$code" $((128 + $(kill -l "$1"))) "exit code after $1"
}

waits() # for a pipe
{
	grep -q "serve" "/proc/$1/cmdline" && grep -qE "wait_for_partner|pipe_read|pipe_wait" "/proc/$1/wchan"
}

is_gone()
{
	[ ! -e "/proc/$1" ] || grep -q '^State:.Z' "/proc/$1/status"
}

not_begun()
{
	mkfifo "$work/pipe" "$work/held"
	sleep 300 <>"$work/held" &
	remember $! "$work/pids"
	ends_by TERM -c "$work/pipe" && ends_by TERM -c - &&
		equal "$(what_is_on s0)" "{}" "what is on s0"
}

# What another process has locked for long as it ends is waited for: the last save is not lost.
saves_behind_another()
{
	local code=0

	limit one 10
	rm -f "$work/s0.state"
	background "$SERVER" "$BUILD/xdp-pacer" serve s0 -c "$work/one.yaml" --state "$work/s0.state" \
		>"$work/out" 2>"$work/err"
	until_true 60 grep -q "the pacer is" "$work/out" || fail "$(cat "$work/err")" || return
	exec 9>>/run/xdp-pacer.lock
	flock 9
	kill -TERM "$pid"
	until_true 20 grep -q "lock: waiting for " "$work/err"
	exec 9>&-
	wait "$pid" || code=$?
	equal "$code" 0 "exit code: $(cat "$work/err")" || return
	[ -s "$work/s0.state" ] || fail "it is not saved"
}

# Killed: the pacer goes on, and the next one takes over. It saves on its own from time to time.
killed()
{
	limit one 10
	rm -f "$work/s0.state"
	serve --every 100ms
	arrive "4" n=4
	until_true 20 test -s "$work/s0.state"
	stop KILL 137
	arrive "3" n=3
	serve
	begun "taken over as it was"
	arrive "3" n=9
	stop TERM 0
}

# A policy that changed meanwhile is applied; `apply`, which is the unit's reload, goes beside it.
reload()
{
	limit one 10
	rm -f "$work/s0.state"
	serve
	arrive "4" n=4
	limit one 12
	apply one
	arrive "8" n=20
	stop TERM 0
	limit one 15
	serve
	arrive "3" n=20
	stop TERM 0
}

# What cannot be restored does not keep it from pacing, and is said in one line.
bad_state()
{
	limit one 10
	echo nonsense >"$work/s0.state"
	serve
	begun "loaded, with new state"
	equal "$(wc -l <"$work/err")" 1 "lines of complaint"
	grep -q 's0.state: is no saved state' "$work/err"
	arrive "10" n=12
	stop TERM 0
}

# That the state cannot be saved is said at the start, and not at the first save.
no_folder()
{
	local code=0 none=$work/none/s0.state

	limit one 10
	background "$SERVER" "$BUILD/xdp-pacer" serve s0 -c "$work/one.yaml" --state "$none" >"$work/out" 2>"$work/err"
	until_true 20 grep -q "the pacer is" "$work/out" || fail "$(cat "$work/err")" || return
	equal "$(cat "$work/err")" "xdp-pacer: $none: the state cannot be written: its folder: No such file or directory: make it, or name another file" "what it said" || return
	arrive "10" n=12
	mkdir "$work/none"
	kill -TERM "$pid"
	wait "$pid" || code=$?
	equal "$code" 0 "exit code: $(cat "$work/err")" || return
	[ -s "$none" ] || fail "it is not saved" || return
	off
}

# An interface that is down is put up; one that goes, or whose pacer somebody takes off, ends it.
interfaces()
{
	limit one 10
	rm -f "$work/s0.state"
	in_server ip link set s0 down
	serve
	in_server ip -j link show s0 | jq -e '.[0].flags | index("UP")' >/dev/null
	in_server ip addr add fd77::1/64 dev s0 nodad 2>/dev/null || true
	pacer unload s0 >/dev/null
	wait "$pid"
	grep -q 'no longer served: s0: has no pacer' "$work/err"
	in_server ip link add gone0 type veth peer name gone1
	in_server ip link set gone0 up
	pacer load gone0 -c "$work/one.yaml" >/dev/null
	in_server ip link set gone0 down
	in_server ip link set gone0 name new0
	equal "$(pacer status new0 --json | jq -r .interface)" new0 "paced under its new name"
	in_server ip link del new0
	refused 1 'gone0: there is no such interface' pacer serve gone0 -c "$work/one.yaml" \
		--state "$work/gone.state"
	refused 2 'wants one interface, -c POLICY and --state FILE' pacer serve s0
	refused 2 'wants one interface, -c POLICY and --state FILE' \
		pacer serve all -c "$work/x" --state "$work/x"
	printf 'sets: [{name: g, file: %s}]\nrules: [{name: a, match: {src: "@g"}, verdict: drop}]\n' \
		"$work/absent" >"$work/lost.yaml"
	refused 2 "absent: No such file" pacer serve s0 -c "$work/lost.yaml" --state "$work/gone.state"
	in_server ip link add gone0 type veth peer name gone1
	in_server ip link set gone0 up
	background "$SERVER" "$BUILD/xdp-pacer" serve gone0 -c "$work/one.yaml" --state "$work/gone.state" >"$work/out" 2>"$work/err"
	until_true 20 grep -q 'the pacer is loaded' "$work/out" || fail "$(cat "$work/err")" || return
	in_server ip link del gone0
	wait "$pid"
	grep -q 'no longer served: gone0: there is no such interface' "$work/err" || fail "$(cat "$work/err")"
}

# serve_gone0 [OPTION...]: until the pacer is on; its pid is in $pid.
serve_gone0()
{
	background "$SERVER" "$BUILD/xdp-pacer" serve gone0 -c "$work/one.yaml" --state "$work/gone.state" "$@" >"$work/out" 2>"$work/err"
	until_true 20 grep -q 'the pacer is' "$work/out" || fail "$(cat "$work/err")"
}

# What it held is there for the next interface of that name: bans since the last save, and none that were lifted.
comes_back()
{
	echo '{bans: 1024, rules: [{name: a, limits: [{key: src, packets: 10, window: 1h}]}]}' >"$work/one.yaml"
	rm -f "$work/gone.state"
	in_server ip link add gone0 type veth peer name gone1
	serve_gone0
	pacer ban gone0 add 10.9.9.8 --for 1h >/dev/null
	pacer save gone0 "$work/gone.state" >/dev/null
	pacer ban gone0 del 10.9.9.8 >/dev/null
	pacer ban gone0 add 10.9.9.9 --for 1h >/dev/null
	in_server ip link del gone0
	wait "$pid"
	equal "$(cat "$work/err")" "xdp-pacer: it is no longer served: gone0: there is no such interface here: see \`ip link\`" "what it said"
	in_server ip link add gone0 type veth peer name gone1
	serve_gone0
	equal "$(head -n 1 "$work/out")" "gone0: the pacer is loaded, with the state that was saved" "what it says"
	equal "$(pacer ban gone0 list --json | jq -c '[.[].key]')" '["10.9.9.9"]' "who is banned"
	: >"$work/gone.state"
	pacer unload gone0 >/dev/null
	wait "$pid"
	[ ! -s "$work/gone.state" ] || fail "it saved what was taken off" || return
	in_server ip link del gone0
}

# Saved to another file, taken off and gone in one go: its limits are in the service's file, too.
saved_and_gone()
{
	local file

	limit one 10
	rm -f "$work/gone.state"
	in_server ip link add gone0 type veth peer name gone1
	serve_gone0
	pacer save gone0 "$work/other.state" --and-unload >/dev/null && in_server ip link del gone0
	wait "$pid"
	in_server ip link add gone0 type veth peer name gone1
	in_server ip link set gone0 up
	for file in other gone; do
		equal "$(pacer load gone0 -c "$work/one.yaml" --restore "$work/$file.state" --json | jq -c .restored.limits.kept)" 1 \
			"limits kept of $file.state" || return
		pacer unload gone0 >/dev/null
	done
	in_server ip link del gone0
}

# stopped_at_lock COMMAND...: it waits at the lock to save, as it was told to end, and COMMAND is run meanwhile. Its exit
# code is in $code.
stopped_at_lock()
{
	code=0
	exec 9>>/run/xdp-pacer.lock
	flock 9
	kill -TERM "$pid"
	until_true 20 waits_for_lock || fail "it does not wait: $(cat "$work/err")" || return
	in_server "$@"
	exec 9>&-
	wait "$pid" || code=$?
}

# Told to end, it waits for the lock as the interface goes: what it held is there for the next of that name.
gone_at_the_end()
{
	local option code

	echo '{bans: 1024, rules: [{name: a, limits: [{key: src, packets: 10, window: 1h}]}]}' >"$work/one.yaml"
	for option in "" --and-unload; do
		rm -f "$work/gone.state"
		in_server ip link add gone0 type veth peer name gone1
		serve_gone0 $option || return
		pacer ban gone0 add 10.9.9.9 --for 1h >/dev/null
		stopped_at_lock ip link del gone0 || return
		equal "$code" 0 "exit code: $(cat "$work/err")" || return
		grep -q "gone0 has gone, and its state was saved" "$work/err" || fail "$(cat "$work/err")" || return
		in_server ip link add gone0 type veth peer name gone1
		serve_gone0
		equal "$(head -n 1 "$work/out")" "gone0: the pacer is loaded, with the state that was saved" \
			"what it says" || return
		equal "$(pacer ban gone0 list --json | jq -c '[.[].key]')" '["10.9.9.9"]' "who is banned" || return
		in_server ip link del gone0
		wait "$pid"
	done
	# What was taken off meanwhile is not saved.
	rm -f "$work/gone.state"
	in_server ip link add gone0 type veth peer name gone1
	serve_gone0
	stopped_at_lock ip link set dev gone0 xdp off || return
	equal "$code" 1 "exit code of what was taken off" || return
	grep -q "its state was not saved at the end: gone0: its pacer was taken off or replaced meanwhile" "$work/err" ||
		fail "$(cat "$work/err")" || return
	[ ! -e "$work/gone.state" ] || fail "it saved what was taken off" || return
	in_server ip link del gone0
}

# A save that was cut off is found and removed; one that is being written stays.
clean_up()
{
	mkdir -p "$work/states"
	install -m 600 /dev/null "$work/states/s0.state.unfinished-AbCdEf"
	install -m 600 /dev/null "$work/states/s1.state.unfinished-GhIjKl"
	: >"$work/states/s0.state"
	exec 5<"$work/states/s1.state.unfinished-GhIjKl"
	flock -x 5
	equal "$(pacer clean --dry-run --state "$work/states" --json | jq -c '[(.found | length), .removed]')" \
		"[1,false]" "found, removed"
	pacer clean --state "$work/states" | grep -q 'removed a save that was cut off: .*s0.state.unfinished-AbCdEf'
	equal "$(ls "$work/states" | xargs)" "s0.state s1.state.unfinished-GhIjKl" "what stays"
	pacer clean --state "$work/states" | grep -q 'nothing was left behind'
	exec 5<&-
	refused 1 "$work/stats: there is no such folder: name the one where states are saved" pacer clean --state "$work/stats"
	mount -t tmpfs none /var/lib # nobody has saved anything yet
	pacer clean | grep -q 'nothing was left behind' || fail "clean, before the folder is there"
	umount /var/lib
}

# The agent of a fleet whose store has a name, and no name server answers: told to end, it waits for no name.
ends_while_a_name_is_sought()
{
	policy fleet <<-TEXT
	fleet: {store: ["http://etcd.example.net:2379"], name: edge}
	rules: [{name: udp, limits: [{key: src/32,128, packets: 9, window: 1s, fleet: yes}]}]
	TEXT
	load fleet
	silent_name_server
	background "$SERVER" "$BUILD/xdp-pacer" fleet s0 --state "$work/member" 2>"$work/said"
	until_true 5 asks_for_a_name || fail "it asks for no name: $(cat "$work/said")" || return
	ends_soon "$pid" || return
	umount /etc/resolv.conf
}

# deaf_manager: has $work/deaf, in which there is no room; told by USR1 it hears. Its pid is in $deaf.
deaf_manager()
{
	rm -f "$work/deaf"
	background "$SERVER" python3 -u -c '
import signal, socket, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
here, other = (socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2))
here.bind(sys.argv[1])
other.setblocking(False)
try:
    while True:
        other.sendto(b"full", sys.argv[1])
except BlockingIOError:
    print("deaf")
signal.sigwait([signal.SIGUSR1])
while True:
    print(here.recv(4096).decode())' "$work/deaf" >"$work/heard"
	deaf=$pid
	until_true 10 grep -q deaf "$work/heard"
}

# serve_unheard OPTION...
serve_unheard()
{
	NOTIFY_SOCKET=$work/deaf background "$SERVER" "$BUILD/xdp-pacer" serve s0 -c "$work/one.yaml" \
		--state "$work/s0.state" "$@" >"$work/out" 2>"$work/err"
	until_true 20 grep -q "may end it: nobody reads its socket" "$work/err" || fail "$(cat "$work/err")"
}

# Who is to be told stands still: it paces, saves and ends all the same, and tells once it is heard.
nobody_hears()
{
	limit one 10
	rm -f "$work/s0.state"
	deaf_manager
	serve_unheard --every 1h || return
	arrive "4" n=4
	stop TERM 0
	[ -s "$work/s0.state" ] || fail "it is not saved" || return
	serve_unheard --every 100ms || return
	rm "$work/s0.state"
	until_true 20 test -s "$work/s0.state" || fail "it is not saved from time to time" || return
	kill -USR1 "$deaf"
	until_true 20 grep -q "READY=1" "$work/heard" || fail "it is not told that it is ready" || return
	grep -A1 "READY=1" "$work/heard" | grep -q "STATUS=its state was saved" || fail "$(cat "$work/heard")" || return
	arrive "6" n=9
	stop TERM 0
	until_true 20 grep -q "STOPPING=1" "$work/heard" || fail "it is not told that it ends" || return
	equal "$(grep -c "READY=1" "$work/heard")" 1 "times that it was ready"
	off
}

# The same of the agents of a fleet: of one interface, and of several.
agents_that_nobody_hears()
{
	local of agent

	policy fleet <<-TEXT
	fleet: {store: ["http://127.0.0.1:1"], name: edge}
	rules: [{name: udp, limits: [{key: src/32,128, packets: 9, window: 1s, fleet: yes}]}]
	TEXT
	in_server ip link add gone0 type veth peer name gone1
	in_server ip link set gone0 up
	mkdir -p "$work/members"
	load fleet
	pacer load gone0 -c "$work/fleet.yaml" >/dev/null
	for of in s0 "s0 gone0"; do
		deaf_manager
		# shellcheck disable=SC2086 # each is a word
		NOTIFY_SOCKET=$work/deaf background "$SERVER" "$BUILD/xdp-pacer" fleet $of \
			--state "$work/members$([ "$of" != s0 ] || echo /one)" 2>"$work/said"
		agent=$pid
		until_true 20 grep -q "may end it: nobody reads its socket" "$work/said" || fail "$(cat "$work/said")" || return
		until_true 20 grep -q "127.0.0.1:1" "$work/said" || fail "it asks no store: $(cat "$work/said")" || return
		kill -USR1 "$deaf"
		until_true 3 grep -q "READY=1" "$work/heard" || fail "$of: it is not told that it is ready" || return
		deaf_manager
		ends_soon "$agent" || return
	done
	in_server ip link del gone0
	off
}

# security WORD: what docs/rights.md has behind WORD where it tells what `systemd-analyze security` says of the units.
security()
{
	tr '\n' ' ' <"$here/../../docs/rights.md" | grep -oE "systemd-analyze security[^.]* $1 [0-9.]*[0-9]" | sed 's/.* //'
}

# The units are some, and are hardened: the page says how much. Their verbs and options are this program's. Their files
# are named as the manual says: by the interface, whatever is in its name.
the_unit()
{
	local line unit

	mkdir -p "$work/root/usr/sbin"
	: >"$work/says"
	for unit in "$UNIT" "${UNIT/@/-fleet@}"; do
		sed "s|/usr/sbin/xdp-pacer|$BUILD/xdp-pacer|; /^Documentation=/d" "$unit" >"$work/${unit##*/}"
		systemd-analyze verify "$work/${unit##*/}" 2>&1 | tee "$work/verify"
		[ ! -s "$work/verify" ] || fail "systemd-analyze verify: $(head -n 1 "$work/verify")" || return
		systemd-analyze security --offline=true --threshold=20 "$unit" >"$work/security" ||
			fail "$(tail -n 1 "$work/security")" || return
		tail -n 1 "$work/security" | grep -o ' [0-9.]* ' | tr -d ' ' >>"$work/says"
		! grep -n '/%i\.' "$unit" || fail "$unit: a file by the escaped name" || return
	done
	[ "$(systemd-analyze --version | sed -n 's/^systemd \([0-9]*\).*/\1/p')" != "$(security systemd)" ] ||
		equal "$(security says | xargs)" "$(xargs <"$work/says")" "what docs/rights.md says"
	for line in $(grep 'xdp-pacer serve' "$UNIT" | grep -o ' --[a-z-]*' | sort -u); do
		"$BUILD/xdp-pacer" serve --help | grep -q -- "$line" || fail "serve has no $line"
	done
}

# The pacer goes on under the new name, the service of the old one ends and says so, and one of the new name
# takes over what is there.
renamed()
{
	local code=0

	limit one 10
	serve
	arrive "4" n=4
	in_server ip link set s0 down
	in_server ip link set s0 name s9
	wait "$pid" || code=$?
	equal "$code" 0 "exit code"
	equal "$(cat "$work/err")" "xdp-pacer: s0: it is no longer served: its name is s9 now, and its pacer goes on there: serve s9" "what it said"
	background "$SERVER" "$BUILD/xdp-pacer" serve s9 -c "$work/one.yaml" --state "$work/s9.state" >"$work/out"
	until_true 20 grep -q 's9: the pacer is taken over as it was' "$work/out" || fail "$(cat "$work/out")" || return
	kill "$pid"
	wait "$pid"
	in_server ip link set s9 name s0
	in_server ip link set s0 up
	arrive "6" n=9
}

# Two that swap their names in one go: neither service goes on with the other's pacer, or saves it as its own.
names_swapped()
{
	local name pids=()

	limit one 10
	in_server ip link add gone0 type veth peer name gone1
	in_server ip link add gone2 type veth peer name gone3
	for name in gone0 gone2; do
		background "$SERVER" "$BUILD/xdp-pacer" serve "$name" -c "$work/one.yaml" --state "$work/$name.state" \
			>"$work/$name.out" 2>"$work/$name.err"
		pids+=("$pid")
		until_true 20 grep -q 'the pacer is' "$work/$name.out" || fail "$(cat "$work/$name.err")" || return
		in_server ip link set "$name" down
	done
	in_server ip -batch - <<-END
	link set gone0 name tmp0
	link set gone2 name gone0
	link set tmp0 name gone2
	END
	for pid in "${pids[@]}"; do
		until_true 10 is_gone "$pid" || fail "it goes on" || return
		wait "$pid" || fail "it failed"
	done
	equal "$(cat "$work/gone0.err" "$work/gone2.err")" \
		"xdp-pacer: gone0: it is no longer served: its name is gone2 now, and its pacer goes on there: serve gone2
xdp-pacer: gone2: it is no longer served: its name is gone0 now, and its pacer goes on there: serve gone0" "what they said"
	in_server ip link del gone0
	in_server ip link del gone2
}

net_up
check serve-from-stop-to-start from_stop_to_start
check serve-and-unload and_unload
check serve-without-its-values without_its_values
check serve-says-what-is-left-out says_what_is_left_out
check serve-tables-of-another-size tables_of_another_size
check serve-taken-over-otherwise taken_over_otherwise
check serve-and-unload-on-trial and_unload_on_trial
check serve-begun-on-trial begun_on_trial
check serve-smaller smaller
check serve-not-begun not_begun
check serve-saves-behind-another saves_behind_another
check serve-killed killed
check serve-reload reload
check serve-bad-state bad_state
check serve-no-folder no_folder
check serve-interfaces interfaces
check serve-comes-back comes_back
check serve-saved-and-gone saved_and_gone
check serve-gone-at-the-end gone_at_the_end
check serve-renamed renamed
check serve-names-swapped names_swapped
check serve-unheard nobody_hears
check serve-clean clean_up
check serve-unit the_unit
check fleet-unresolved ends_while_a_name_is_sought
check fleet-unheard agents_that_nobody_hears
finish
