#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The table of docs/rights.md: with a verb's capabilities and no others it does its work as a user that is
# not root; without any one of them it fails, in one line.
#
#   server: s0, the pacer; verbs as nobody, in a mount namespace with a lock that is theirs
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

TABLE=$here/../../docs/rights.md

# with "CAP CAP" PROGRAM...: as nobody, with these capabilities. LOCK_MODE: of the lock, which is root's.
with()
{
	local caps=-all cap

	for cap in $1; do
		caps+=,+${cap#CAP_}
	done
	# shellcheck disable=SC2016
	in_server timeout -k 1 "$hang_s" unshare -m sh -c '
		mount -t tmpfs none /run && install -m "$2" /dev/null /run/xdp-pacer.lock || exit 99
		caps=$1
		shift 2
		exec setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs \
			--inh-caps "$caps" --ambient-caps "$caps" --bounding-set "$caps" "$@"' \
		sh "$(tr A-Z a-z <<<"$caps")" "${LOCK_MODE:-666}" "${@:2}"
}

# as "CAP CAP" VERB...: the same of xdp-pacer.
as()
{
	with "$1" "$bin" "${@:2}"
}

# What each verb is tried with, and what has to be before.
prepare()
{
	off
	case $1 in
	load | serve) ;;
	fleet) load fleet ;;
	shadow)
		mkdir -p /sys/fs/bpf/xdp-pacer # root's, as whoever begins the first one makes it
		load one
		;;
	confirm)
		load one
		apply one --confirm-within 60s
		;;
	*) load one ;;
	esac
}

# Begun, put in force, begun again and ended. Whoever only looks needs less.
try_shadow()
{
	as "$1" shadow s0 -c "$open/one.yaml" &&
		as CAP_SYS_ADMIN shadow s0 &&
		as "$1" shadow s0 --promote &&
		as "$1" shadow s0 -c "$open/one.yaml" &&
		as "$1" shadow s0 --stop
}

try()
{
	local caps=$1

	case $2 in
	check) as "$caps" check -c "$open/one.yaml" ;;
	replay) as "$caps" replay -c "$open/one.yaml" "$open/none.pcap" ;;
	help) as "$caps" help ;;
	status | show | stats | sample | estimate | events | confirm | rotate | unload | upgrade) as "$caps" "$2" s0 ;;
	top) as "$caps" top s0 --once ;;
	sets) as "$caps" sets s0 add drop 10.79.0.3 ;;
	shadow) try_shadow "$caps" ;;
	why) as "$caps" why s0 10.77.0.11 ;;
	export) as "$caps" export --textfile - >"$work/metrics" && grep -q 'interface="s0"' "$work/metrics" ;;
	save) as "$caps" save s0 "$open/free/s0.state" ;;
	apply | load) as "$caps" "$2" s0 -c "$open/one.yaml" ;;
	set) as "$caps" set s0 udp.packets=6 ;;
	allow) as "$caps" allow s0 add 10.79.0.1 ;;
	ban) as "$caps" ban s0 add 10.79.0.2 ;;
	*) fail "there is no trial of $2" ;;
	esac
}

# goes_on CAPS VERB ARGUMENT...: its pid is in $pid. What it says goes where this function's words would: those
# files are empty before it starts, so nothing in them is of a command before it.
goes_on()
{
	as "$@" &
	pid=$!
}

# try_on TEXT FILE CAPS VERB ARGUMENT...: one that goes on until it is stopped works if it says so there.
try_on()
{
	local text=$1 file=$2

	goes_on "${@:3}" >"$work/out" 2>"$work/err"
	until_true 10 sh -c "grep -q '$text' '$file' || ! kill -0 $pid 2>/dev/null"
	if ! grep -q "$text" "$file"; then
		wait "$pid"
		return
	fi
	kill -TERM "$(pgrep -f "^$bin $4")"
	wait "$pid"
}

attempt()
{
	rm -f "$open/free/"*
	prepare "$2" >/dev/null
	case $2 in
	serve) try_on 'the pacer is' "$work/out" "$1" serve s0 -c "$open/one.yaml" --state "$open/free/s0.state" ;;
	fleet) try_on 'is etcd there' "$work/err" "$1" fleet s0 --state "$open/free/s0.member" ;;
	*) try "$1" "$2" >"$work/out" 2>"$work/err" ;;
	esac
}

one_verb()
{
	local verb=$1 caps=$2 cap

	attempt "$caps" "$verb" || fail "$verb with ${caps:-none}: $(cat "$work/err")" || return
	for cap in $caps; do
		! attempt "${caps//$cap/}" "$verb" || fail "$verb does without $cap" || return
		[ "$verb" = export ] || # it tells whoever scrapes it
			equal "$(wc -l <"$work/err")" 1 "$verb without $cap: lines of complaint" || return
		[ "$verb" = export ] || grep -Eq 'run as root|be root' "$work/err" ||
			fail "$verb without $cap does not say what to do: $(cat "$work/err")" || return
	done
}

the_table()
{
	local verbs caps verb n=0

	while IFS='|' read -r _ verbs caps _; do
		for verb in ${verbs//,/ }; do
			case $verb in keys | suggest) continue ;; esac # of files alone, as replay is
			one_verb "$verb" "$(tr -d , <<<"${caps/none/}" | xargs)" || return
			n=$((n + 1))
		done
	done < <(grep '^| [a-z]' "$TABLE" | grep -v '^| verbs')
	[ "$n" -ge 25 ] || fail "only $n verbs are in the table"
}

# of_the_lock: the verbs that docs/rights.md says to read the lock, a line each.
of_the_lock()
{
	# shellcheck disable=SC2016 # as Markdown has them
	sed -n '/^\*\*Files\./,/^$/p' "$TABLE" | grep -o '`[a-z]*`\|`[a-z]* [a-z]*`' | tr -d '`' | grep -v '^save$'
}

# look MODE VERB: by CAP_SYS_ADMIN alone, where the lock has that mode; none: there is none, nor can one be made.
look()
{
	local verb=$2 words=()

	case $verb in
	why) words=(why s0 10.77.0.11) ;;
	sets\ show) words=(sets s0 show drop) ;;
	*\ *) words=("${verb% *}" s0 "${verb#* }") ;;
	*) words=("$verb" s0) ;;
	esac
	# shellcheck disable=SC2016
	in_server timeout -k 1 "$hang_s" unshare -m sh -c '
		mount -t tmpfs none /run || exit 99
		[ "$2" = none ] || install -m "$2" /dev/null /run/xdp-pacer.lock || exit 99
		mount -o remount,ro /run || exit 99
		caps=$1
		shift 2
		exec setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs \
			--inh-caps "$caps" --ambient-caps "$caps" --bounding-set "$caps" "$@"' \
		sh "-all,+sys_admin" "$1" "$bin" "${words[@]}"
}

# They need to read it, and no more; nor that, where there is none.
lock_to_read()
{
	local verb n=0

	prepare show >/dev/null
	while read -r verb; do
		look 0644 "$verb" >/dev/null || fail "$verb wants more than to read the lock" || return
		look none "$verb" >/dev/null || fail "$verb wants a lock" || return
		refused 1 '/run/xdp-pacer.lock: Permission denied: be root, or of the group xdp-pacer' \
			look 0600 "$verb" || return
		n=$((n + 1))
	done < <(of_the_lock)
	equal "$n" 5 "verbs that read the lock"
	for verb in status stats events; do
		look 0600 "$verb" >/dev/null || fail "$verb reads the lock" || return
	done
}

# Whoever waits for a load on trial to end takes the pacer off under the lock: it is not begun without that right.
trial_wants_the_lock()
{
	off
	LOCK_MODE=600 as "CAP_SYS_ADMIN CAP_NET_ADMIN" load s0 -c "$open/one.yaml" >/dev/null ||
		fail "a load wants the lock" || return
	off
	LOCK_MODE=600 refused 1 '/run/xdp-pacer.lock: Permission denied: be root, or of the group xdp-pacer' \
		as "CAP_SYS_ADMIN CAP_NET_ADMIN" load s0 -c "$open/one.yaml" --confirm-within 60s || return
	equal "$(what_is_on s0)" "{}" "what a load on trial left"
}

# What others may read, and a folder where they may write.
put_in_the_open()
{
	mkdir -m 755 "$open"
	mkdir -m 777 "$open/free"
	chmod 755 "$work"
	limit one 5
	cat >>"$work/one.yaml" <<-END
	bans: 64
	sample: {of: all, k: 8, packets: 100}
	sets: [{name: drop, of: 10.79.0.0/30}]
	END
	cat "$work/one.yaml" - >"$work/fleet.yaml" <<<"fleet: {store: [http://127.0.0.1:9], name: none, bans: yes}"
	cp "$BUILD/xdp-pacer" "$work/one.yaml" "$open"
	chmod 644 "$open/one.yaml"
	printf '\324\303\262\241\2\0\4\0\0\0\0\0\0\0\0\0\0\0\4\0\1\0\0\0' >"$open/none.pcap"
}

# denied COMMAND...: it fails in one line that says what it lacks, and nothing is left.
denied()
{
	local code=0

	as "CAP_SYS_ADMIN CAP_NET_ADMIN" "$@" >"$work/out" 2>"$work/err" || code=$?
	equal "$code $(wc -l <"$work/err")" "1 1" "$*: exit code, lines" || return
	grep -q 's0: .*: Permission denied: be root, or have CAP_DAC_OVERRIDE' "$work/err" || fail "$(cat "$work/err")"
}

# Where the folder of pins is root's, they take one more.
pins_of_root()
{
	prepare serve
	mkdir -p /sys/fs/bpf/xdp-pacer
	denied load s0 -c "$open/one.yaml" --pin || return
	equal "$(what_is_on s0)" "{}" "what is on s0" || return
	prepare shadow
	denied upgrade s0 --pin || return
	denied shadow s0 -c "$open/one.yaml" || return
	equal "$(status .pins) $(status .shadow)" "null null" "pins, shadow" || return
	prepare serve
	as "CAP_SYS_ADMIN CAP_NET_ADMIN CAP_DAC_OVERRIDE" load s0 -c "$open/one.yaml" --pin >/dev/null
	[ "$(status .pins)" != null ] || fail "it has no pins" || return
	pacer unload s0 >/dev/null
}

# root_loads [OPTION...]: a pacer of root's, whose program is $loaded.
root_loads()
{
	prepare serve
	pacer clean >/dev/null
	pacer load s0 -c "$open/one.yaml" "$@" >/dev/null
	loaded=$(status .program_id)
}

# stays_behind PATH COMMAND...: the pacer is off, and what others had of it is told.
stays_behind()
{
	local code=0

	as "CAP_SYS_ADMIN CAP_NET_ADMIN" "${@:2}" >"$work/out" 2>"$work/err" || code=$?
	equal "$code $(cat "$work/err")" "1 xdp-pacer: s0: the pacer is off, but $1, which holds its memory, cannot be removed: \
Permission denied: be root, or have CAP_DAC_OVERRIDE, which docs/rights.md tells of, then \`xdp-pacer clean\`" "$2" || return
	equal "$(what_is_on s0)" "{}" "what is on s0"
}

# Pins that cannot be removed would be in a tool's hands, and ban nobody: no other pacer comes in their place.
pins_before()
{
	local at=/sys/fs/bpf/xdp-pacer/s0 verb

	root_loads --pin
	for verb in "load -c $open/one.yaml --replace" "load -c $open/one.yaml --replace --pin" "upgrade --pin"; do
		# shellcheck disable=SC2086
		denied ${verb%% *} s0 ${verb#* } || return
		equal "$(status .program_id)" "$loaded" "the program after $verb" || return
	done
	stays_behind "$at" unload s0 || return
	root_loads --pin
	stays_behind "$at" save s0 "$open/free/s0.state" --and-unload || return
	prepare serve
	denied load s0 -c "$open/one.yaml" --pin || return # what is left there is nobody's
	root_loads
	pacer shadow s0 -c "$open/one.yaml" >/dev/null
	denied load s0 -c "$open/one.yaml" --replace || return
	denied shadow s0 --stop || return
	denied shadow s0 --promote || return
	pacer shadow s0 >/dev/null || fail "the shadow is gone" || return
	chmod 700 /sys/fs/bpf # as systemd mounts it
	denied load s0 -c "$open/one.yaml" --replace || return
	denied shadow s0 --stop || return
	chmod 1777 /sys/fs/bpf
	pacer shadow s0 >/dev/null || fail "the shadow is gone" || return
	root_loads # there are none
	as "CAP_SYS_ADMIN CAP_NET_ADMIN" load s0 -c "$open/one.yaml" --replace >/dev/null || fail "no pins, and refused" || return
	as "CAP_SYS_ADMIN CAP_NET_ADMIN" unload s0 >/dev/null || fail "no pins, and it is said"
}

# shadowed: a pacer of root's with a shadow; $loaded is the program that goes over to it, $pin the pin.
shadowed()
{
	root_loads
	pacer shadow s0 -c "$open/one.yaml" >/dev/null
	loaded=$(status .program_id)
	pin=$(echo /sys/fs/bpf/xdp-pacer/shadow-of-*-by-"$loaded")
}

# done_in_silence COMMAND...: there is nothing to complain of.
done_in_silence()
{
	as "CAP_SYS_ADMIN CAP_NET_ADMIN" "$@" >/dev/null 2>"$work/err" || fail "$*: $(cat "$work/err")" || return
	equal "$(cat "$work/err")" "" "$*: what it says"
}

# Where nobody but root may look, as systemd mounts it, what cannot be seen is told by who had it, and no other.
pins_unseen()
{
	local pin

	trap 'chmod 1777 /sys/fs/bpf' EXIT
	chmod 700 /sys/fs/bpf
	root_loads --pin
	denied load s0 -c "$open/one.yaml" --replace || return
	stays_behind /sys/fs/bpf/xdp-pacer/s0 unload s0 || return
	root_loads --pin
	stays_behind /sys/fs/bpf/xdp-pacer/s0 save s0 "$open/free/s0.state" --and-unload || return
	shadowed
	stays_behind "$pin" unload s0 || return
	shadowed
	stays_behind "$pin" save s0 "$open/free/s0.state" --and-unload || return
	root_loads # without either
	done_in_silence load s0 -c "$open/one.yaml" --replace || return
	[ "$(status .program_id)" != "$loaded" ] || fail "it is not replaced" || return
	done_in_silence unload s0 || return
	root_loads
	done_in_silence save s0 "$open/free/s0.state" --and-unload
}

# The same where all rights are there, as the service has them. Who may look into the folders that
# nobody else may finds nothing that is left.
pins_seen()
{
	local all="CAP_SYS_ADMIN CAP_NET_ADMIN CAP_DAC_OVERRIDE"

	trap 'chmod 1777 /sys/fs/bpf' EXIT
	chmod 700 /sys/fs/bpf
	root_loads --pin
	as "$all" unload s0 >/dev/null 2>"$work/err" || fail "unload: $(cat "$work/err")" || return
	root_loads --pin
	as "$all" save s0 "$open/free/s0.state" --and-unload >/dev/null 2>"$work/err" || fail "save: $(cat "$work/err")" || return
	equal "$(cat "$work/err")$(ls /sys/fs/bpf/xdp-pacer)" "" "what it says, and what is left"
}

# A folder of states that is root's: the first start has none to go on with, and nothing to complain of.
first_start()
{
	prepare serve
	mkdir -m 700 "$work/states"
	goes_on "CAP_SYS_ADMIN CAP_NET_ADMIN CAP_DAC_OVERRIDE" serve s0 -c "$open/one.yaml" \
		--state "$work/states/s0.state" >"$work/out" 2>"$work/err"
	until_true 20 grep -q "the pacer is" "$work/out" || fail "$(cat "$work/err")" || return
	equal "$(cat "$work/err")" "" "what it says"
	pacer unload s0 >/dev/null # so it ends
	wait "$pid"
}

# Refused before anything is done, where the whole cannot be: nothing is frozen, and nothing left unsaid.
not_by_halves()
{
	root_loads --pin
	rm -f "$open/free/s0.state"
	refused 1 's0: no privilege to take the pacer off \(CAP_NET_ADMIN\): run as root' \
		as CAP_SYS_ADMIN save s0 "$open/free/s0.state" --and-unload || return
	[ ! -e "$open/free/s0.state" ] || fail "a state was written" || return
	equal "$(status .program_id)" "$loaded" "the program" || return
	in_server ip link set dev s0 xdp off
	refused 1 'clean: not all that is left could be seen: run as root' \
		as "CAP_SYS_ADMIN CAP_NET_ADMIN" clean --dry-run || return
	refused 1 'clean: not all that is left could be seen: run as root' \
		as "CAP_SYS_ADMIN CAP_NET_ADMIN CAP_DAC_OVERRIDE" clean || return
	equal "$(as "CAP_SYS_ADMIN CAP_SYS_PTRACE CAP_DAC_OVERRIDE" clean --state "$open/free" --json | jq -r '.found[].path')" \
		/sys/fs/bpf/xdp-pacer/s0 "what clean removes"
}

# A tool that writes the pins needs them to be its own, and no capability.
pins_of_a_tool()
{
	local at=/sys/fs/bpf/xdp-pacer/s0 write

	write=(bpftool map update pinned "$at/banned4" key 32 0 0 0 10 77 0 14 value 0 0 0 0 0 0 0 0)
	prepare serve
	pacer load s0 -c "$open/one.yaml" --pin >/dev/null
	equal "$(stat -c '%a %U' "$at/banned4" "$at/banned6" | sort -u)" "600 root" "whose pins they are" || return
	! with "" "${write[@]}" >/dev/null 2>&1 || fail "another's pins can be written" || return
	chown 65534 "$at/banned4"
	with "" "${write[@]}" >"$work/out" 2>&1 || fail "its own cannot: $(cat "$work/out")" || return
	equal "$(pacer ban s0 list --json | jq -r '.[].key')" "10.77.0.14" "who is banned" || return
	pacer unload s0 >/dev/null
	rmdir /sys/fs/bpf/xdp-pacer # made anew, by who hides what he makes, as the service does
	(umask 077 && pacer load s0 -c "$open/one.yaml" --pin >/dev/null)
	chown 65534 "$at/banned4"
	with "" "${write[@]}" >"$work/out" 2>&1 || fail "it cannot get to its own: $(cat "$work/out")" || return
	pacer unload s0 >/dev/null
}

net_up
loaded=""
open=$work/open bin=$work/open/xdp-pacer
put_in_the_open
check rights-of-each-verb the_table
check rights-lock-to-read lock_to_read
check rights-trial-wants-the-lock trial_wants_the_lock
check rights-pins-of-root pins_of_root
check rights-pins-before pins_before
check rights-pins-unseen pins_unseen
check rights-pins-seen pins_seen
check rights-first-start first_start
check rights-not-by-halves not_by_halves
check rights-pins-of-a-tool pins_of_a_tool
finish
