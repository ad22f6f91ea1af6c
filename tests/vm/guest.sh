#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The checks that run inside the emulated machine, each printing "ok NAME" or "not ok NAME: why".
#
#   v0 10.0.0.1/24, the program  <---veth--->  v1 10.0.0.2/24, 10.0.0.3/24 in the namespace peer
#
# A check is a function; its output is its log, shown on the console, and the last line of it is the
# reason if it fails. The CLI's checks come last and build on one another.
#
# shellcheck disable=SC2317 # the functions are reached through check
set -u

readonly policy=/tmp/policy.yaml
readonly log=/tmp/log

ip() # busybox's shell prefers its own applets, whatever PATH says
{
	/usr/sbin/ip "$@"
}

# What its commands say is shown on the console as they say it, by which the host sees that it goes on.
check()
{
	local name=$1 status shows

	shift
	: >"$log"
	tail -f "$log" >&2 &
	shows=$!
	(set -e; "$@") >>"$log" 2>&1 # not as a condition of if: that would switch set -e off
	status=$?
	kill "$shows"
	wait "$shows"
	if [ "$status" -eq 0 ]; then
		echo "ok $name"
	else
		echo "not ok $name: $(tail -n 1 "$log")"
		sed "s/^/$name: /" "$log" >&2
	fi
}

fail()
{
	echo "$*"
	return 1
}

# contains PATTERN COMMAND...: it succeeds, and what it prints has the pattern.
contains()
{
	local pattern=$1 printed

	shift
	printed=$("$@" 2>&1) || fail "$printed" "($*)" || return
	echo "$printed" | grep -E -- "$pattern" || fail "$printed
$*: no $pattern"
}

# lacks PATTERN COMMAND...: it succeeds, and what it prints has not the pattern.
lacks()
{
	local pattern=$1 printed

	shift
	printed=$("$@" 2>&1) || fail "$printed" "($*)" || return
	! echo "$printed" | grep -E -- "$pattern" || fail "$*: has $pattern"
}

# arrive EXPECTED SADDR COUNT GAP_US: exactly so many of the datagrams sent reach v0.
arrive()
{
	local received

	received=$(udp peer "$2" 10.0.0.1 9000 "$3" "$4") || fail "udp failed" || return
	[ "$received" -eq "$1" ] || fail "$received of $3 datagrams arrived from $2, expected $1"
}

topology()
{
	ip netns add peer
	ip link add v0 type veth peer name v1 netns peer
	ip addr add 10.0.0.1/24 dev v0
	ip link set v0 up
	ip -n peer addr add 10.0.0.2/24 dev v1
	ip -n peer addr add 10.0.0.3/24 dev v1
	ip -n peer link set lo up
	ip -n peer link set v1 up
}

kernel_has_btf()
{
	test -s /sys/kernel/btf/vmlinux || fail "no /sys/kernel/btf/vmlinux"
}

traffic_flows()
{
	ping -c 3 -i 0.1 -W 20 -I 10.0.0.1 10.0.0.2
	arrive 5 10.0.0.2 5 20000
}

attach_by_ip()
{
	ip link set dev v0 xdp obj /pacer.bpf.o sec xdp.frags
	contains 'prog/xdp id' ip link show dev v0
	lacks xdpgeneric ip link show dev v0
}

detach_by_ip()
{
	ip link set dev v0 xdp off
	lacks prog/xdp ip link show dev v0
}

attach_by_loader()
{
	xdp-loader load -m native -s xdp.frags v0 /pacer.bpf.o
	contains 'xdp_dispatcher +native' xdp-loader status v0
}

attach_second()
{
	xdp-loader load -m native -s xdp v0 /second.bpf.o
	contains ' pacer ' xdp-loader status v0
	contains ' second ' xdp-loader status v0
}

detach_by_loader()
{
	xdp-loader unload v0 --all
	lacks prog/xdp ip link show dev v0
}

# write_policy PACKETS: a window that outlasts the checks, however slow the emulation.
write_policy()
{
	cat >"$policy" <<-END
	rules:
	  - name: udp
	    match: {proto: udp, dport: 9000}
	    limits:
	      - {key: src, packets: $1, window: 1h, slots: 10}
	    over: drop
	END
}

cli_load()
{
	xdp-loader load -m native -s xdp v0 /second.bpf.o
	write_policy 20
	xdp-pacer load v0 -c "$policy"
	contains ' pacer ' xdp-loader status v0
	contains ' second ' xdp-loader status v0
}

cli_stats()
{
	contains '"name": *"udp"' xdp-pacer stats v0 --json
	contains '"admitted": *20[^0-9]' xdp-pacer stats v0 --json
}

cli_set()
{
	xdp-pacer set v0 udp.packets=40
	arrive 20 10.0.0.2 100 0
}

cli_apply()
{
	write_policy 60
	xdp-pacer apply v0 -c "$policy"
	arrive 20 10.0.0.2 100 0
	arrive 60 10.0.0.3 100 0
}

cli_unload()
{
	xdp-pacer unload v0
	lacks ' pacer ' xdp-loader status v0
	contains ' second ' xdp-loader status v0
	arrive 100 10.0.0.2 100 0
}

nothing_is_left()
{
	xdp-loader unload v0 --all
	lacks . find /sys/fs/bpf -type f
	lacks 'name pacer' bpftool prog show
}

cli_direct()
{
	write_policy 20
	xdp-pacer load v0 -c "$policy" --direct
	contains '"attach": *"direct"' xdp-pacer status v0 --json
	arrive 20 10.0.0.2 100 0
	xdp-pacer unload v0
	lacks prog/xdp ip link show dev v0
	lacks . find /sys/fs/bpf -type f
}

# Without the kernel's JIT it takes no program of this kind: that is said, and nothing is left.
cli_without_jit()
{
	local way printed jit=/proc/sys/net/core/bpf_jit_enable before

	before=$(cat "$jit")
	write_policy 20
	for way in "" --direct; do
		echo "load $way" # its verifier is minutes at work
		echo 0 >"$jit" || { echo "this kernel has it on always"; return 0; }
		# shellcheck disable=SC2086 # nothing or a word
		printed=$(xdp-pacer load v0 -c "$policy" $way 2>&1) || true
		echo "$before" >"$jit"
		[ "$printed" = "xdp-pacer: v0: the program wants the kernel's BPF JIT, which is off, or has failed: sysctl\
 net.core.bpf_jit_enable=1" ] || fail "$printed" || return
		lacks prog/xdp ip link show dev v0
		lacks . find /sys/fs/bpf -type f
		lacks 'name pacer' bpftool prog show
	done
}

# This kernel's verifier takes the program with all that samples need; their packets are there.
cli_sample()
{
	write_policy 20
	echo 'sample: {of: all, k: 64, window: 1h, snap: 128}' >>"$policy"
	xdp-pacer load v0 -c "$policy"
	arrive 20 10.0.0.2 50 0
	contains 'udp .* window +10.0.0.2$' xdp-pacer sample v0
	contains '"len_bytes": *[0-9]' xdp-pacer sample v0 --json --pcap /tmp/sample.pcap
	[ "$(wc -c </tmp/sample.pcap)" -gt 3000 ] || fail "no frames in the capture"
	xdp-pacer unload v0
}

# What is over goes to a CPU, whose share is 10; who was denied by the window is banned; and both
# sources together have 30.
cli_limiters()
{
	cat >"$policy" <<-END
	rules:
	  - name: udp
	    match: {proto: udp, dport: 9000}
	    limits: [{key: src, packets: 20, window: 1h}, {key: all, uses: 30, cooldown: 1h}]
	    ban: 1h
	    over: pool cpus
	pools: [{name: cpus, targets: ["cpu:1"], each: 10, cooldown: 1h}]
	END
	xdp-pacer load v0 -c "$policy"
	arrive 30 10.0.0.2 100 0
	contains '"redirected": *10[^0-9]' xdp-pacer stats v0 --json
	contains '"banned": *1[^0-9]' xdp-pacer status v0 --json
	contains '10.0.0.2 +udp' xdp-pacer status v0
	arrive 10 10.0.0.3 100 0
	contains '"throttle": *90[^0-9]' xdp-pacer stats v0 --json
	contains '1 ban lifted' xdp-pacer ban v0 del 10.0.0.2
	lacks '10.0.0.2 +udp' xdp-pacer status v0
	xdp-pacer unload v0
}

# A program that is not known to take fragmented frames is refused by an interface with such an MTU.
cli_jumbo()
{
	ip link set v0 mtu 9000
	ip -n peer link set v1 mtu 9000
	xdp-pacer load v0 -c "$policy"
	contains ' pacer ' xdp-loader status v0
	ping -c 3 -i 0.1 -W 20 -s 8000 10.0.0.2
	xdp-pacer unload v0
}

# by_other NAME COMMAND...: with the xdp-pacer of another compiler.
by_other()
{
	PATH=/other/$1:$PATH
	shift
	"$@"
}

# one_pacer: the dispatcher calls one, and has the only pins.
one_pacer()
{
	xdp-loader status v0
	[ "$(xdp-loader status v0 | grep -c ' pacer ')" -eq 1 ] || fail "not one pacer" || return
	[ "$(find /sys/fs/bpf -name 'dispatch-*' | wc -l)" -eq 1 ] ||
		fail "pins left:" "$(find /sys/fs/bpf -name 'dispatch-*')"
}

# Beside another program, a pacer takes the place of a pacer, and its state is new.
cli_replace()
{
	xdp-loader load -m native -s xdp v0 /second.bpf.o
	write_policy 20
	xdp-pacer load v0 -c "$policy"
	arrive 20 10.0.0.2 50 0
	contains '"state": *"new"' xdp-pacer load v0 -c "$policy" --replace --json
	one_pacer
	contains ' second ' xdp-loader status v0
	arrive 20 10.0.0.2 50 0
	xdp-pacer unload v0
	nothing_is_left
	lacks dispatch- find /sys/fs/bpf
}

# Its state goes on in the next one, and over an upgrade, beside the other program all the while.
cli_state()
{
	xdp-loader load -m native -s xdp v0 /second.bpf.o
	write_policy 20
	xdp-pacer load v0 -c "$policy"
	arrive 8 10.0.0.2 8 0
	contains '"exact": *true' xdp-pacer save v0 /tmp/v0.state --and-unload --json
	contains '"kept": *1' xdp-pacer load v0 -c "$policy" --restore /tmp/v0.state --json
	arrive 7 10.0.0.2 7 0
	contains '"state": *"kept"' xdp-pacer upgrade v0 --json
	one_pacer
	contains ' second ' xdp-loader status v0
	arrive 5 10.0.0.2 50 0
	xdp-pacer unload v0
	nothing_is_left
	contains 'nothing was left behind' xdp-pacer clean
}

# killed CALL N ARGUMENT...: the CLI is killed at that call, and leaves a dispatcher's pins.
killed()
{
	local code=0 call=$1 n=$2

	shift 2
	fault "$call" "$n" kill xdp-pacer "$@" || code=$?
	[ "$code" -eq 237 ] || fail "$call $n of $*: exit code $code" || return
	lacks prog/xdp ip link show dev v0
	contains dispatch- find /sys/fs/bpf
}

# Killed at the message of a load that attaches: the first after which the dispatcher's pins are there.
# Those before it ask about the interface.
killed_attaching()
{
	local code n

	for n in 3 4 5 6 7 8 9; do
		code=0
		fault sendto "$n" kill xdp-pacer load v0 -c "$policy" || code=$?
		[ "$code" -eq 237 ] || fail "sendto $n of a load: exit code $code" || return
		lacks prog/xdp ip link show dev v0
		! find /sys/fs/bpf | grep -q dispatch- || return 0
	done
	fail "no message of a load left pins"
}

# An unload unpins the link, the program, and the directory. After each kill the next load works, and
# only what it made is there.
cli_killed()
{
	write_policy 20
	killed_attaching
	xdp-pacer load v0 -c "$policy"
	one_pacer
	killed unlink,rmdir 1 unload v0
	xdp-pacer load v0 -c "$policy"
	one_pacer
	killed unlink,rmdir 3 unload v0
	xdp-pacer load v0 -c "$policy"
	one_pacer
	xdp-pacer unload v0
	lacks dispatch- find /sys/fs/bpf
}

# A replacement is killed when both are on. That is told, nothing is changed, and an upgrade leaves the first, with
# all that it has counted.
cli_two()
{
	local code=0 n

	write_policy 20
	xdp-pacer load v0 -c "$policy"
	arrive 8 10.0.0.2 8 0
	for n in 5 6 7 8 9 10 11 12; do # those before ask about the interface
		xdp-pacer clean # what it finds changes how often it asks
		code=0
		fault sendto "$n" kill xdp-pacer load v0 -c "$policy" --replace || code=$?
		[ "$code" -eq 237 ] || fail "sendto $n of a load: exit code $code" || return
		[ "$(xdp-loader status v0 | grep -c ' pacer ')" -ne 2 ] || break
	done
	contains '"second_program_id": *[0-9]' xdp-pacer status v0 --json
	contains 'TWICE  *a second pacer' xdp-pacer status v0
	code=0
	printed=$(xdp-pacer set v0 udp.packets=30 2>&1) || code=$?
	[ "$code" -eq 1 ] || fail "set: exit code $code: $printed" || return
	contains '^xdp-pacer: v0: a second pacer .* takes it off$' echo "$printed"
	arrive 20 10.0.0.3 50 0
	contains '"state": *"kept"' xdp-pacer upgrade v0 --json
	one_pacer
	contains '"second_program_id": *null' xdp-pacer status v0 --json
	arrive 0 10.0.0.3 5 0
	arrive 12 10.0.0.2 50 0
	xdp-pacer unload v0
	lacks 'name pacer' bpftool prog show
	lacks dispatch- find /sys/fs/bpf
}

# A watch through libxdp, whose queries lose descriptors.
cli_watch()
{
	xdp-pacer load v0 -c "$policy"
	[ "$( (ulimit -n 40 && fault clock_nanosleep all 0 xdp-pacer stats v0 --watch --json) |
		grep -m 80 '"interface"' | wc -l)" -eq 80 ] || fail "not 80 readings"
	xdp-pacer unload v0
}

# shadow_denies N: so many packets that were let through the shadow would have denied.
shadow_denies()
{
	contains "\"deny\": *$1[^0-9]" xdp-pacer shadow v0 --json
}

# A policy is tried beside the one in force under the dispatcher, with another program behind it. An upgrade
# and a clean leave it, it comes in force with its state, and nothing is left of it in the end.
# begin_shadow POLICY: 1 where this kernel takes none under such an old dispatcher. That is said, and
# the pacer goes on alone.
begin_shadow()
{
	local printed

	printed=$(xdp-pacer shadow v0 -c "$1" 2>&1) && return
	[ "$printed" = "xdp-pacer: v0: this kernel takes no shadow under a libxdp dispatcher as old as this one: unload,\
 and load with --direct, or with a later libxdp" ] || { fail "$printed"; exit 1; }
	one_pacer || exit 1
	arrive 8 10.0.0.2 8 0 || exit 1
	xdp-pacer unload v0
	nothing_is_left || exit 1
	return 1
}

cli_shadow()
{
	write_policy 5
	cp "$policy" /tmp/tight.yaml
	write_policy 20
	xdp-pacer load v0 -c "$policy"
	begin_shadow /tmp/tight.yaml || return 0
	contains '"attach": *"dispatcher"' xdp-pacer status v0 --json
	one_pacer
	xdp-loader load -m native -s xdp v0 /second.bpf.o
	contains ' second ' xdp-loader status v0
	arrive 8 10.0.0.2 8 0
	shadow_denies 3
	xdp-pacer clean
	xdp-pacer upgrade v0
	one_pacer
	arrive 2 10.0.0.2 2 0
	shadow_denies 5
	arrive 2 10.0.0.3 2 0
	contains '"promoted": *true' xdp-pacer shadow v0 --promote --json
	one_pacer
	contains ' second ' xdp-loader status v0
	arrive 0 10.0.0.2 9 0
	arrive 3 10.0.0.3 9 0
	write_policy 20
	xdp-pacer shadow v0 -c "$policy"
	contains '"shadow": *false' xdp-pacer shadow v0 --stop --json
	one_pacer
	arrive 0 10.0.0.2 9 0
	xdp-pacer shadow v0 -c "$policy"
	xdp-pacer unload v0
	nothing_is_left
	lacks shadow-of- find /sys/fs/bpf
}

# A dispatcher that is taken off by force leaves the pin of the shadow: `clean` finds it.
cli_shadow_left()
{
	write_policy 20
	xdp-pacer load v0 -c "$policy"
	begin_shadow "$policy" || return 0
	ip link set dev v0 xdp off
	contains shadow-of- find /sys/fs/bpf
	contains 'shadow that no interface has' xdp-pacer clean --dry-run
	contains 'shadow that no interface has' xdp-pacer clean
	lacks 'shadow-of-|dispatch-' find /sys/fs/bpf
}

# as "CAP CAP" COMMAND...: as nobody, with these capabilities. $in_place is exec, or nothing.
in_place=
as()
{
	local caps=-all cap

	for cap in $1; do
		caps=$caps,+$(echo "${cap#CAP_}" | tr A-Z a-z)
	done
	shift
	$in_place /usr/sbin/setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs \
		--inh-caps "$caps" --ambient-caps "$caps" --bounding-set "$caps" xdp-pacer "$@"
}

# What a verb is tried on. A load is dear here: a pacer that is there will do.
prepare()
{
	case $1 in
	load | serve) ! xdp-pacer status v0 || xdp-pacer unload v0 ;;
	check | replay | help) ;;
	*)
		xdp-pacer status v0 || xdp-pacer load v0 -c "$policy" --direct
		xdp-pacer confirm v0 || true # of the trial before
		;;
	esac
	[ "$1" != confirm ] || xdp-pacer apply v0 -c "$policy" --confirm-within 60s
}

# try_on TEXT CAPS ARGUMENT...: it goes on until it is stopped, and works if it says so.
try_on()
{
	local text=$1 goes

	shift
	(
		in_place=exec
		as "$@"
	) >/tmp/said 2>&1 &
	goes=$!
	until grep -q "$text" /tmp/said || ! kill -0 "$goes"; do
		sleep 0.1
	done
	! grep -q "$text" /tmp/said || kill "$goes"
	wait "$goes"
}

# Begun and ended; whoever only looks needs less.
try_shadow()
{
	as "$1" shadow v0 -c "$policy" && as CAP_SYS_ADMIN shadow v0 && as "$1" shadow v0 --stop
}

try()
{
	case $2 in
	check) as "$1" check -c "$policy" ;;
	replay) as "$1" replay -c "$policy" /tmp/none.pcap ;;
	help) as "$1" help ;;
	status | show | stats | sample | estimate | events | confirm | rotate | unload | upgrade) as "$1" "$2" v0 ;;
	top) as "$1" top v0 --once ;;
	why) as "$1" why v0 10.0.0.2 ;;
	export) as "$1" export --textfile - >/tmp/metrics && grep -q 'interface="v0"' /tmp/metrics ;;
	save) as "$1" save v0 /tmp/free/v0.state ;;
	apply) as "$1" apply v0 -c "$policy" ;;
	load) as "$1" load v0 -c "$policy" --direct ;;
	set) as "$1" set v0 udp.packets=21 ;;
	allow) as "$1" allow v0 add 10.79.0.1 ;;
	ban) as "$1" ban v0 add 10.79.0.2 ;;
	sets) as "$1" sets v0 add drop 10.79.0.3 ;;
	serve) try_on 'the pacer is' "$1" serve v0 -c "$policy" --direct --state /tmp/free/v0.state ;;
	fleet) try_on 'is etcd there' "$1" fleet v0 --state /tmp/free/v0.member ;;
	shadow) try_shadow "$1" ;;
	*) fail "there is no trial of $2" ;;
	esac
}

# one_verb VERB "CAP CAP": with these it does its work; without any one of them it fails.
one_verb()
{
	local cap

	prepare "$1" >/dev/null 2>&1 || fail "$1 cannot be tried" || return
	try "$2" "$1" >/dev/null || fail "$1 fails with ${2:-none}" || return
	for cap in $2; do
		prepare "$1" >/dev/null 2>&1 || fail "$1 cannot be tried" || return
		! try "$(echo "$2" | sed "s/$cap//")" "$1" >/dev/null || fail "$1 does without $cap" || return
	done
}

# What the verbs are tried on; and the table of docs/rights.md, a verb a line, in /tmp/rights. keys and suggest are
# of files alone, as replay is.
rights_table()
{
	local verbs caps verb

	write_policy 20
	cat >>"$policy" <<-END
	bans: 64
	sample: {of: all, k: 8, packets: 100}
	sets: [{name: drop, of: 10.79.0.0/30}]
	fleet: {store: [http://127.0.0.1:9], name: none, bans: yes}
	END
	chmod 644 "$policy"
	: >/run/xdp-pacer.lock
	chmod 666 /run/xdp-pacer.lock
	mkdir -m 777 /tmp/free
	mkdir -p /sys/fs/bpf/xdp-pacer
	printf '\324\303\262\241\2\0\4\0\0\0\0\0\0\0\0\0\0\0\4\0\1\0\0\0' >/tmp/none.pcap
	grep '^| [a-z]' /rights.md | grep -v '^| verbs' | while IFS='|' read -r _ verbs caps _; do
		for verb in $(echo "$verbs" | tr -d ,); do
			case $verb in keys | suggest) continue ;; esac
			echo "$verb $(echo "$caps" | sed 's/none//; s/,//g' | xargs)"
		done
	done >/tmp/rights
	[ "$(wc -l </tmp/rights)" -ge 25 ] || fail "only $(wc -l </tmp/rights) verbs are there"
}

# It is found by its pins, which are root's.
rights_under_the_dispatcher()
{
	! xdp-pacer status v0 || xdp-pacer unload v0
	xdp-pacer load v0 -c "$policy"
	contains '"attach": *"dispatcher"' xdp-pacer status v0 --json
	! as CAP_SYS_ADMIN status v0 || fail "status does without CAP_DAC_OVERRIDE" || return
	as "CAP_SYS_ADMIN CAP_DAC_OVERRIDE" status v0
	as "CAP_SYS_ADMIN CAP_DAC_OVERRIDE" set v0 udp.packets=21
	as "CAP_SYS_ADMIN CAP_NET_ADMIN CAP_DAC_OVERRIDE" unload v0
	lacks dispatch- find /sys/fs/bpf
}

# What the verifier sees of each compiler's object: a row each, for the host.
figures()
{
	local dir objects=""

	for dir in /objects/*; do
		objects="$objects ${dir##*/}=$dir/pacer.bpf.o"
	done
	# shellcheck disable=SC2086 # an object a word
	guard $objects >/tmp/figures || fail "$(cat /tmp/figures)"
}

kernel_is_content()
{
	lacks 'WARNING:|BUG:|Oops' dmesg
}

echo "kernel $(uname -r) $(uname -v)"
check topology topology
check kernel-has-btf kernel_has_btf
check no-program-traffic traffic_flows
if [ -d /objects ]; then
	check figures figures
	sed 's/^/figure /' /tmp/figures
fi
if [ -e /brief ]; then
	check cli-load cli_load
	check cli-limit arrive 20 10.0.0.2 100 0
	check cli-set cli_set
	check cli-apply cli_apply
	check cli-unload cli_unload
	check cli-leaves-nothing nothing_is_left
	check cli-direct cli_direct
	for other in /other/*; do
		[ ! -d "$other" ] || check "${other##*/}-direct" by_other "${other##*/}" cli_direct
	done
	check kernel-is-content kernel_is_content
	exit 0
fi

check ip-attach attach_by_ip
check ip-traffic traffic_flows
check ip-detach detach_by_ip

check loader-attach attach_by_loader
check loader-second attach_second
check loader-traffic traffic_flows
check loader-detach detach_by_loader

check cli-load cli_load
check cli-status contains '"attach": *"dispatcher"' xdp-pacer status v0 --json
check cli-limit arrive 20 10.0.0.2 100 0
check cli-stats cli_stats
check cli-set cli_set
check cli-apply cli_apply
check cli-unload cli_unload
check cli-leaves-nothing nothing_is_left
check cli-direct cli_direct
check cli-without-jit cli_without_jit
check cli-sample cli_sample
check cli-limiters cli_limiters
check cli-replace cli_replace
check cli-state cli_state
check cli-killed cli_killed
check cli-two cli_two
check cli-watch cli_watch
check cli-shadow cli_shadow
check cli-shadow-left cli_shadow_left
check cli-jumbo cli_jumbo
check rights-table rights_table
while read -r verb caps <&4; do
	check "rights-of-$verb" one_verb "$verb" "$caps"
done 4</tmp/rights
check rights-under-the-dispatcher rights_under_the_dispatcher
for other in /other/*; do
	[ -d "$other" ] || continue
	name=$(basename "$other")
	check "$name-direct" by_other "$name" cli_direct
	check "$name-sample" by_other "$name" cli_sample
	check "$name-limiters" by_other "$name" cli_limiters
done
check kernel-is-content kernel_is_content
exit 0
