#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The life of an attached program: what failed is said as it was; an older pacer is taken off or
# replaced; what a killed load left is removed; a watch needs no more descriptors than one look.
#
#   client                                   server
#   10.77.0.11-18   c0 ---------------- s0   a pacer, of this version or another
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/fault.sh
. "$(dirname "$0")/fault.sh"

# says PATTERN CALLS N ERRNO ARGUMENT...: that fault makes the load fail, in one line.
says()
{
	faulty "$2" "$3" "$4" load s0 -c "$work/ten.yaml" "${@:5}" || exit 1
	equal "$code $failed $(wc -l <"$work/err")" "1 true 1" "exit code, fault, lines: $(cat "$work/err")" ||
		exit 1
	grep -Eq -- "$1" "$work/err" || fail "no $1 in: $(cat "$work/err")" || exit 1
	equal "$(what_is_on s0)" "{}" "left on s0" || exit 1
}

# Each cause has its own line, with and without libxdp between.
causes()
{
	local way

	limit ten 10
	for way in "" --direct; do
		# shellcheck disable=SC2086 # nothing or a word
		says "s0: this kernel's verifier refuses the program \(Invalid" pacer all "$einval" $way
		# shellcheck disable=SC2086
		says 's0: no privilege to load the program .*run as root' pacer all "$eperm" $way
		# shellcheck disable=SC2086
		says 's0: the kernel has no memory for the state: lower memory' pacer all "$enomem" $way
	done
	in_server ip link set lo up
	refused 1 'lo: its driver takes no native XDP program: .*--mode skb' \
		pacer load lo -c "$work/ten.yaml"
	refused 1 'lo: its driver takes no native XDP program: .*--mode skb' \
		pacer load lo -c "$work/ten.yaml" --direct
}

# Where nothing was loaded, nothing is left, and it does not say so: even if nobody can look any more.
nothing_can_be_seen()
{
	local n

	limit ten 10
	for ((n = 1; n < 40; n++)); do
		faulty map,socket "$n+10000" "$enomem" load s0 -c "$work/ten.yaml" --direct || return
		equal "$code $failed $(wc -l <"$work/err")" "1 true 1" "exit code, fault, lines: $(cat "$work/err")" || return
		! grep -q 'still has' "$work/err" || fail "from call $n on: $(cat "$work/err")" || return
		equal "$(what_is_on s0)" "{}" "left on s0" || return
		! grep -q 'no memory for the state' "$work/err" || return 0
	done
	fail "it never came to the load"
}

old_kernel()
{
	limit ten 10
	refused 1 '^xdp-pacer: this kernel is 2\.6\.[0-9.]+.*, and the pacer wants 6\.1 or a later one' \
		in_server setarch --uname-2.6 "$BUILD/xdp-pacer" load s0 -c "$work/ten.yaml"
	equal "$(what_is_on s0)" "{}" "left on s0"
}

# watched LEAST FILTER ARGUMENT...: with no time between them, so many readings of a watch are had
# with 24 descriptors.
watched()
{
	local n

	n=$(in_server prlimit --nofile=24 timeout -k 1 "$hang_s" "$fault" clock_nanosleep all 0 \
		"$BUILD/xdp-pacer" "${@:3}" --watch --json 2>"$work/err" | jq -c "$2" |
		head -n "$1" | wc -l) || true
	equal "$n" "$1" "readings: $(cat "$work/err")"
}

watches()
{
	limit ten 10
	echo 'sample: {of: all, k: 8, packets: 100}' >>"$work/ten.yaml"
	load ten
	arrive "10" n=20
	watched 100 .packets stats s0
	watched 100 .window estimate s0 --every 1s
	unread stats s0 --watch || return
	unread stats s0 --watch --json || return
	unread estimate s0 --every 200ms
}

# A watch follows what is attached: another pacer in the place of the first is read, too.
watch_follows()
{
	limit ten 10
	load ten
	arrive "10" n=20
	background "$SERVER" "$fault" clock_nanosleep all 0 "$BUILD/xdp-pacer" stats s0 --watch --json \
		> >(jq -c --unbuffered ".rules[0].matched" >"$work/readings")
	until_true 10 grep -qx 20 "$work/readings"
	pacer load s0 -c "$work/ten.yaml" --replace >/dev/null
	until_true 10 grep -qx 0 "$work/readings"
	pacer unload s0 >/dev/null # and ends where there is none
	wait "$pid" || code=$?
	equal "${code:-0}" 101 "exit code of the watch, and 100 for calls that returned at once"
}

# A pacer of another version is taken off and replaced; the other verbs name these two ways.
another_version()
{
	local abi verb word

	limit ten 10
	abi=$("$BUILD/xdp-pacer" --version | sed 's/.*ABI //')
	older 3
	for word in xdp xdpgeneric; do
		in_server ip link set dev s0 "$word" obj "$work/old.bpf.o" sec xdp.frags
		for verb in status stats confirm; do
			refused 1 "s0: its pacer has ABI version 3, this tool $abi: .*load s0 --replace.*unload s0" \
				pacer "$verb" s0
		done
		refused 1 "s0: is paced already, by ABI version 3, this tool has $abi: .*load s0 --replace" \
			pacer load s0 -c "$work/ten.yaml"
		pacer unload s0 >/dev/null
		equal "$(what_is_on s0)" "{}" "left on s0"
	done
	# One whose control map has another size, and which has no other map of ours.
	for word in xdp xdpgeneric; do
		stranger elder xdp.elder "$word"
		refused 1 "s0: its pacer has ABI version 1, this tool $abi" pacer status s0
		pacer unload s0 >/dev/null
		equal "$(what_is_on s0)" "{}" "left on s0"
	done
}

# The other interfaces are listed all the same.
status_lists_the_rest()
{
	limit ten 10
	older 3
	in_server ip link set dev s0 xdp obj "$work/old.bpf.o" sec xdp.frags
	in_server ip link set lo up
	pacer load lo -c "$work/ten.yaml" --mode skb >/dev/null
	! pacer status --json >"$work/out" 2>"$work/err" || fail "status has no word of s0" || return
	equal "$(jq -rc 'map(.interface)' "$work/out")" '["lo"]' "listed"
	equal "$(wc -l <"$work/err")" 1 "lines of complaint"
	grep -q 's0: its pacer has ABI version 3' "$work/err"
	! pacer status >"$work/out" 2>/dev/null || fail "status has no word of s0, as text" || return
	equal "$(grep -v '^ ' "$work/out" | cut -d, -f1)" "lo: paced directly" "listed as text"
	pacer unload lo >/dev/null
	refused 1 's0: its pacer has ABI version 3' pacer status # and nothing is listed
	refused 1 's0: its pacer has ABI version 3' pacer status --json
	off
	equal "$(pacer status 2>&1)" "no interface of this network namespace has a pacer" "status of none"
	load ten
	equal "$(pacer status | grep -v '^ ' | cut -d, -f1)" "s0: paced directly" "status of one"
}

replace()
{
	local before

	limit ten 10
	limit two 2
	older 3
	in_server ip link set dev s0 xdp obj "$work/old.bpf.o" sec xdp.frags
	before=$(what_is_on s0 | jq .prog.id)
	equal "$(pacer load s0 -c "$work/ten.yaml" --replace --json |
		jq -rc '"\(.abi) \(.replaced | [.program_id, .abi, .state] | join(" "))"')" \
		"$("$BUILD/xdp-pacer" --version | sed 's/.*ABI //') $before 3 new" "what load says"
	arrive "10" n=20
	pacer load s0 -c "$work/two.yaml" --replace | # one of the same version, too
		grep -q 's0: took the place of program [0-9]*, ABI [0-9]*: its state is new'
	arrive "2" n=20
	refused 1 's0: its pacer is attached in native mode.*--mode native, or unload' \
		pacer load s0 -c "$work/ten.yaml" --replace --mode skb
	arrive "0" n=20
	pacer unload s0 >/dev/null
	pacer load s0 -c "$work/ten.yaml" --replace >/dev/null # where there is none it is a load
	arrive "10" n=20
	pacer unload s0 >/dev/null
	pacer load s0 -c "$work/ten.yaml" --mode skb >/dev/null
	refused 1 's0: its pacer is attached in skb mode.*--mode skb, or unload' \
		pacer load s0 -c "$work/two.yaml" --replace
	pacer load s0 -c "$work/two.yaml" --replace --mode skb >/dev/null
	equal "$(status .attach_mode)" skb mode
	arrive "2" n=20
	pacer unload s0 >/dev/null
	equal "$(what_is_on s0)" "{}" "left on s0"
}

# While a pacer is replaced again and again, no packet gets past both: of a source that neither lets
# through, none arrives.
replace_leaves_no_gap()
{
	local i

	limit one 1
	load one
	traffic_on 9000 100 10.77.0.18=3000
	for i in 1 2 3 4 5; do
		pacer load s0 -c "$work/one.yaml" --replace >/dev/null
	done
	traffic_off
	[ "$sent" -gt 100 ] || fail "only $sent packets were sent" || return
	[ "$arrived" -le 6 ] || fail "$arrived packets arrived, 6 pacers admit one each"
}

# A replacement that is refused, at whatever it lacks: a source that has used its limit gets no other.
# Its pins cannot be made; and of so few descriptors, each refusal comes somewhat later.
refused_leaves_no_gap()
{
	local before n

	limit one 1 600s
	load one
	mkdir -p /sys/fs/bpf/xdp-pacer
	arrive "1" n=2
	before=$(status .program_id)
	traffic_on 9000 100 10.77.0.11=2000
	for n in $(seq 10 3 70) 1024; do
		# shellcheck disable=SC2016
		refused 1 '^xdp-pacer: s0: |^xdp-pacer: load: ' in_server unshare -m sh -c \
			'mount -o remount,bind,ro /sys/fs/bpf && exec "$@"' - \
			prlimit --nofile="$n:$n" timeout -k 1 "$hang_s" "$BUILD/xdp-pacer" \
			load s0 -c "$work/one.yaml" --replace --pin || break
	done
	traffic_off || return
	equal "$n" 1024 "the last limit of descriptors" || return
	grep -q 'its pins cannot be made' "$work/err" || fail "$(cat "$work/err")" || return
	[ "$sent" -gt 1000 ] || fail "only $sent packets were sent" || return
	equal "${arrived:-0} $(status .program_id)" "0 $before" "what arrived, the program"
}

# Of several that replace it at once, each takes the place of the one before.
replace_at_once()
{
	local i jobs=()

	limit one 1
	load one
	for i in 1 2 3; do
		pacer load s0 -c "$work/one.yaml" --replace >"$work/replaced.$i" &
		jobs+=($!)
	done
	for i in "${jobs[@]}"; do
		wait "$i" || fail "one was not loaded" || return
	done
	equal "$(grep -ho 'place of program [0-9]*' "$work"/replaced.* | sort -u | wc -l)" 3 "that gave way"
	arrive "1" n=20
}

# Of somebody else's program: which `ip link` command takes it off, by its mode.
strangers()
{
	limit ten 10
	stranger other xdp.other xdp
	refused 1 'ip link set dev s0 xdp off' pacer load s0 -c "$work/ten.yaml" --replace
	refused 1 's0: its XDP program is not the pacer' pacer unload s0
	off
	stranger other xdp.other xdpgeneric
	refused 1 'ip link set dev s0 xdpgeneric off' pacer load s0 -c "$work/ten.yaml"
	off
	stranger other xdp.namesake
	refused 1 's0: its program is named pacer, but is not one' pacer unload s0
	refused 1 's0: its program is named pacer, but is not one' \
		pacer load s0 -c "$work/ten.yaml" --replace
	equal "$(what_is_on s0 | jq -r .prog.name)" pacer "program on s0"
}

# What a load killed under the dispatcher leaves is planted; a file system of pins of its own.
pins()
{
	local at=$work/bpf/xdp index other program

	mkdir "$work/bpf"
	mount -t bpf bpf "$work/bpf"
	trap 'umount "$work/bpf"' EXIT
	mkdir "$at"
	limit ten 10
	index=$(in_server ip -j link show s0 | jq '.[0].ifindex')
	stranger other xdp.other
	off
	# The program of another namespace's interface is at work: its pins are not to be touched.
	in_client ip link set dev c0 xdp obj "$work/other.o" sec xdp.other
	other=$(in_client ip -j -d link show c0 | jq '.[0].xdp.prog.id')
	for program in 4000000001 4000000002 "$other"; do
		mkdir "$at/dispatch-$index-$program"
	done
	mkdir "$at/dispatch-9999-4000000001"
	bpftool prog load "$BUILD/pacer.bpf.o" "$at/dispatch-$index-4000000001/prog0-prog"
	bpftool map create "$at/prog-test-link-1-7" type array key 4 value 4 entries 1 name trial
	LIBXDP_BPFFS=$work/bpf pacer load s0 -c "$work/ten.yaml" >/dev/null
	equal "$(cd "$at" && echo *)" "dispatch-$index-$other dispatch-9999-4000000001" "pins that are left"
	arrive "10" n=20
	mkdir "$at/dispatch-$index-4000000001"
	bpftool prog load "$BUILD/pacer.bpf.o" "$at/dispatch-$index-4000000001/prog0-prog"
	LIBXDP_BPFFS=$work/bpf pacer unload s0 >/dev/null
	equal "$(cd "$at" && echo *)" "dispatch-$index-$other dispatch-9999-4000000001" "pins that are left"
	in_client ip link set dev c0 xdp off
	LIBXDP_BPFFS=$work/bpf pacer load s0 -c "$work/ten.yaml" >/dev/null
	equal "$(cd "$at" && echo *)" "dispatch-9999-4000000001" "pins that are left"
	equal "$(LIBXDP_BPFFS=$work/bpf pacer clean --dry-run --json | jq -r '.found[].path' | grep -v "^/var")" \
		"$at/dispatch-9999-4000000001" "what clean finds there"
}

# What its program or this machine cannot hold is said before anything is attached.
too_much()
{
	policy buckets <<-END
	rules: [{name: a, limits: [{key: all, uses: 1M, cooldown: 1h, threshold: 1, max_cooldown: 61m}]}]
	END
	refused 2 'buckets.yaml:2: .* buckets would be needed' pacer load s0 -c "$work/buckets.yaml" || return
	printf 'memory: 64Gi\nrules: [{name: a, limits: [{key: src, packets: 3, window: 1s}]}]\n' >"$work/huge.yaml"
	! is_small load || refused 2 'huge.yaml: memory: 64.0 GiB of state is more than the .* that this machine has free: lower it' \
		pacer load s0 -c "$work/huge.yaml" || return
	equal "$(what_is_on s0)" "{}" "program on s0" || return
	limit ten 10
	load ten
	pacer save s0 "$work/state" >/dev/null
	sed 's/^memory: .*/withstand: 1Mpps/' "$work/buckets.yaml" >"$work/withstand.yaml"
	refused 2 'buckets.yaml:2: .* buckets would be needed' pacer apply s0 -c "$work/buckets.yaml" || return
	refused 2 'withstand.yaml:2: .* buckets would be needed' pacer apply s0 -c "$work/withstand.yaml" || return
	refused 2 'buckets.yaml:2: .* buckets would be needed' pacer shadow s0 -c "$work/buckets.yaml" || return
	pacer unload s0 >/dev/null
	refused 2 'buckets.yaml:2: .* buckets would be needed' pacer load s0 -c "$work/buckets.yaml" --restore "$work/state" || return
	refused 2 'withstand.yaml:2: .* buckets would be needed' pacer load s0 -c "$work/withstand.yaml" --restore "$work/state"
}

# An interface that has two names is one: the kernel finds it by either, and what is kept under names would not be
# found. So the verbs want its own name; nor does the other get round what load refuses.
another_name()
{
	local says='alt0: is another name of s0: write that' verb

	limit ten 10
	in_server ip link property add dev s0 altname alt0
	refused 1 "^xdp-pacer: $says$" pacer load alt0 -c "$work/ten.yaml" || return
	refused 1 "$says; nothing is changed on s0" pacer load s0 alt0 -c "$work/ten.yaml" --shared || return
	equal "$(what_is_on s0)" "{}" "program on s0" || return
	load ten
	for verb in status stats show upgrade unload "top --once" "apply -c $work/ten.yaml" \
		"serve -c $work/ten.yaml --state $work/state"; do
		# shellcheck disable=SC2086 # words
		refused 1 "^xdp-pacer: $says$" pacer $verb alt0 || return
	done
	! pacer export --textfile - alt0 >/dev/null 2>"$work/err" || fail "export says all is well" || return
	equal "$(cat "$work/err")" "xdp-pacer: $says" "what export says" || return
	refused 1 "$says; nothing is changed on s0" pacer apply s0 alt0 -c "$work/ten.yaml" || return
	equal "$(status .serial)" 1 "serial" || return
	in_server ip tuntap add dev tells0 mode tun pi
	in_server ip link set tells0 up
	in_server ip link property add dev tells0 altname alt1
	refused 1 'tells0: who writes to this tun may begin its packets with VLAN tags' \
		pacer load tells0 -c "$work/ten.yaml" --mode skb || return
	refused 1 'alt1: is another name of tells0: write that' pacer load alt1 -c "$work/ten.yaml" --mode skb || return
	in_server ip link del tells0
	in_server ip link property del dev s0 altname alt0
}

# Of one that is longer than an own name, the beginning is not taken for it: here another interface has that as its name.
another_name_cut()
{
	local long=abcdefghijklmno-uplink cut=abcdefghijklmno says verb

	limit ten 10
	in_server ip link add "$cut" type veth peer name peer0
	in_server ip link set "$cut" up
	in_server ip link property add dev s0 altname "$long"
	load ten
	pacer load "$cut" -c "$work/ten.yaml" >/dev/null || return
	says="$long: is another name of s0: write that"
	for long in "$long" "$cut-of-none"; do
		for verb in "top --once" "top --json" "events" "events --follow" "export --textfile -" status stats show upgrade \
			unload "load -c $work/ten.yaml" "apply -c $work/ten.yaml" "stats s0" \
			"serve -c $work/ten.yaml --state $work/state"; do
			# shellcheck disable=SC2086 # words
			refused 1 "^xdp-pacer: $says$" pacer $verb "$long" || return
		done
		says="$cut-of-none: is longer than an interface's own name: see .ip link."
	done
	long=abcdefghijklmno-uplink says="$long: is another name of s0: write that"
	refused 1 "^xdp-pacer: $says$" pacer allow s0 "$long" list || return
	refused 1 "^xdp-pacer: $says$" pacer estimate "$long" || return
	equal "$(status .serial)" 1 "serial" || return
	in_server ip link del "$cut"
	in_server ip link property del dev s0 altname "$long"
}

words()
{
	limit ten 10
	refused 2 'it has no option --watch' pacer load s0 -c "$work/ten.yaml" --watch
	refused 2 'it has no option --every' pacer load s0 --every=60s -c "$work/ten.yaml"
	refused 2 'it has no option --mode' pacer stats s0 --mode native
	refused 2 'it has no option -c' pacer stats s0 -c "$work/ten.yaml"
	"$BUILD/xdp-pacer" --version | grep -Eq '^xdp-pacer [0-9.]+, ABI [0-9]+$'
	load ten
	pacer status s0 | grep -q "ABI $("$BUILD/xdp-pacer" --version | sed 's/.*ABI //')$"
}

net_up
check load-nothing-can-be-seen nothing_can_be_seen
check load-causes causes
check load-old-kernel old_kernel
check load-watch watches
check load-watch-follows watch_follows
check load-another-version another_version
check load-status-lists-the-rest status_lists_the_rest
check load-replace replace
check load-replace-no-gap replace_leaves_no_gap
check load-refused-no-gap refused_leaves_no_gap
check load-replace-at-once replace_at_once
check load-strangers strangers
check load-pins pins
check load-too-much too_much
check load-another-name another_name
check load-another-name-cut another_name_cut
check load-words words
finish
