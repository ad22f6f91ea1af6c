# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the tests share: two namespaces joined by a veth pair, the CLI in one of them, frames from
# the other, and checks. A test sources this file, calls net_up, and then check NAME FUNCTION for
# each of its functions, which fail by returning not 0; the last line they print is the reason.
#
#   client ns $CLIENT                       server ns $SERVER
#   10.77.0.11-18     c0 ------veth------ s0   10.77.0.1, fd77::1: the pacer goes here
#   fd77::11-18
#
# Everything made here carries this process's id in its name or is listed, and goes with it.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
BUILD=${BUILD:-$here/../../build}
BUILD=$(cd "$BUILD" && pwd) || exit 1
CLIENT=pacer-net-c$$
SERVER=pacer-net-s$$
PATH=$PATH:/usr/sbin:/sbin
# shellcheck disable=SC2034 # for the tests
last_cpu=$(($(nproc --all) - 1))
hang_s=200 # of one command: no machine is that slow
failures=0
work="" shots="" pid="" sender="" receiver="" sent="" arrived=""

die()
{
	echo "$(basename "$0"): $*" >&2
	exit 1
}

[ "$(id -u)" -eq 0 ] || die "run as root"
# Pins are the machine's, whatever the network namespace: a test has a BPF file system of its own, and needs none of
# the machine's.
if [ "${PACER_NET_ALONE:-}" != "$$" ]; then
	PACER_NET_ALONE=$$ exec unshare --mount --propagation private "$0" "$@"
fi
mount -t bpf bpf /sys/fs/bpf
for needed in xdp-pacer pacer.bpf.o traffic; do
	[ -e "$BUILD/$needed" ] || die "$BUILD/$needed is missing: make all build/traffic"
done

. "$here/../processes.sh"

clean()
{
	trap '' INT TERM HUP
	trap - EXIT
	end_remembered KILL "$work/pids"
	wait 2>/dev/null || true
	ip netns del "$CLIENT" 2>/dev/null || true
	ip netns del "$SERVER" 2>/dev/null || true
	rm -rf "$work"
}

# tool NAME [LIBRARY...]: the helper of that name, built from its source beside this file.
tool()
{
	local to=$BUILD/net/$1

	if [ ! -e "$to" ] || [ "$here/$1.c" -nt "$to" ]; then
		mkdir -p "$BUILD/net"
		gcc -O2 -g -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror "$here/$1.c" -o "$to.$$" "${@:2}"
		mv "$to.$$" "$to"
	fi
	echo "$to"
}

in_client()
{
	nsenter --net="/run/netns/$CLIENT" "$@"
}

in_server()
{
	nsenter --net="/run/netns/$SERVER" "$@"
}

# The lock is the machine's, too: with its own, a test holds up nobody, and no command that is killed at its n-th call
# makes more calls because somebody else has the lock.
own_lock()
{
	: >"$work/lock"
	[ -e /run/xdp-pacer.lock ] || (umask 077 && : >>/run/xdp-pacer.lock)
	mount --bind "$work/lock" /run/xdp-pacer.lock
}

net_up()
{
	local i

	work=$(mktemp -d)
	: >"$work/pids"
	trap clean EXIT
	trap "trap '' INT TERM HUP; exit 130" INT
	trap "trap '' INT TERM HUP; exit 143" TERM HUP
	own_lock
	shots=$(tool shots)
	ip netns add "$CLIENT"
	ip netns add "$SERVER"
	# Some pins have an interface's number, which two runs' would share. The kernel takes the second one's
	# only beside one for the first.
	in_client ip link add c0 index $((100000 + $$)) type veth peer name s0 index $((100000 + $$)) netns "$SERVER"
	in_client ip link set c0 addrgenmode none
	in_server ip link set s0 addrgenmode none
	# What the kernel says of its own accord is over before the first frame.
	in_client tee /proc/sys/net/ipv6/conf/c0/mldv{1,2}_unsolicited_report_interval <<<1 >/dev/null
	# Without XDP of its own, a veth's end receives by NAPI only with GRO.
	in_client ethtool -K c0 gro on
	in_client ip link set c0 up
	in_server ip link set s0 up
	in_server ip addr add 10.77.0.1/24 dev s0
	in_server ip addr add fd77::1/64 dev s0 nodad
	for i in 11 12 13 14 15 16 17 18; do
		in_client ip addr add "10.77.0.$i/24" dev c0
		in_client ip addr add "fd77::$i/64" dev c0 nodad
	done
}

# two_queues: c0 and s0 have two from now on. Frames of different flows may pass each other then, the
# marks behind frames too: for tests that shoot no more.
two_queues()
{
	in_server ethtool -L s0 rx 2 # first: an end has to take what the other sends
	in_client ethtool -L c0 tx 2
}

# background NETNS COMMAND...: its pid is in $pid, and it does not outlive the test.
background()
{
	nsenter --net="/run/netns/$1" "${@:2}" &
	pid=$!
	remember "$pid" "$work/pids"
}

# traffic_on PORT MS SOURCE=PPS...: until traffic_off, and for five minutes at most. Those received are
# counted in windows of so many milliseconds.
traffic_on()
{
	background "$SERVER" "$BUILD/traffic" receive "$1" 301 "$2" >"$work/received"
	receiver=$pid
	until_true 5 grep -q ready "$work/received"
	background "$CLIENT" "$BUILD/traffic" send 10.77.0.1,fd77::1 "$1" 300 "${@:3}" >"$work/sent"
	sender=$pid
}

# traffic_off: $sent packets were sent, of which $arrived arrived; $work/sources has a line for each
# source, with what arrived of it and the most within a window.
traffic_off()
{
	kill -0 "$sender" || fail "the traffic ended too soon" || return
	kill "$sender"
	wait "$sender"
	timeout "$hang_s" "$shots" "$CLIENT" "$SERVER" n=1,raw=88b6 >/dev/null # all before it has arrived
	kill "$receiver"
	wait "$receiver"
	grep -v ready "$work/received" >"$work/sources"
	# shellcheck disable=SC2034 # for the tests
	sent=$(cat "$work/sent")
	# shellcheck disable=SC2034
	arrived=$(awk '{ n += $2 } END { print n }' "$work/sources")
}

# six_on MS: six senders to port 9000, until six_held.
six_on()
{
	traffic_on 9000 "$1" 10.77.0.11=700 10.77.0.12=900 10.77.0.13=1500 10.77.0.14=100 \
		fd77::11=800 fd77::12=1200
}

# six_held MOST: and none of them got more into any window, nor too little.
six_held()
{
	local source total worst

	traffic_off || return
	equal "$(wc -l <"$work/sources")" 6 "sources that were seen" || return
	while read -r source total worst; do
		[ "$worst" -le "$1" ] ||
			fail "$source: $worst within a window, $1 may be" || return
		[ "$total" -ge 20 ] || fail "$source: only $total" || return
	done <"$work/sources"
}

# six_judged BEFORE: rule udp judged each of their packets once; handed() had said BEFORE.
six_judged()
{
	equal "$(stats '.rules[] | select(.name == "udp") | "\(.matched) \(.admitted) \(.denied.no_state)"')" \
		"$sent $arrived 0" "matched, admitted, no_state" || return
	until_true 2 all_are_counted "$1" ||
		fail "handed to the program: $(($(handed) - $1)), counted: $(stats .packets)"
}

# until_true SECONDS COMMAND...: wait for a condition that comes within so long where the machine has
# time for it. For twenty times as long, since it may have other work. Between two looks it leaves the
# machine to what it waits for.
until_true()
{
	local deadline=$((${EPOCHREALTIME/[.,]/} + $1 * 20000000))

	shift
	until "$@"; do
		((${EPOCHREALTIME/[.,]/} < deadline)) || return 1
		sleep 0.05
	done
}

pacer()
{
	in_server timeout -k 1 "$hang_s" "$BUILD/xdp-pacer" "$@"
}

# policy NAME: a policy file from standard input, of little memory; its path is $work/NAME.yaml.
policy()
{
	{
		echo "memory: 1Mi"
		cat
	} >"$work/$1.yaml"
}

# limit NAME PACKETS [FIELD...]: the policy of one rule, named udp, and one window of 60 s.
limit()
{
	policy "$1" <<-END
	rules:
	  - name: udp
	    match: {proto: udp, dport: 9000}
	    limits:
	      - {key: src/32,128, packets: $2, window: ${3:-60s}, slots: ${4:-10}}
	END
}

load()
{
	pacer load s0 -c "$work/$1.yaml" "${@:2}" >/dev/null
}

apply()
{
	pacer apply s0 -c "$work/$1.yaml" "${@:2}" >/dev/null
}

# waits_for_lock [READ]: the process $pid, to change something, or to look.
waits_for_lock()
{
	grep -Eq -- "-> FLOCK .* ${1:-WRITE} +$pid " /proc/locks
}

is_over()
{
	! kill -0 "$1" 2>/dev/null
}

# silent_name_server: until `umount /etc/resolv.conf`, which is this test's own. It is asked for two minutes.
silent_name_server()
{
	printf 'nameserver 10.77.0.99\noptions timeout:30 attempts:4\n' >"$work/resolv.conf"
	mount --bind "$work/resolv.conf" /etc/resolv.conf
	in_server ip neigh replace 10.77.0.99 lladdr 02:00:00:00:00:99 dev s0 # else the kernel says that it is not there
}

asks_for_a_name()
{
	in_server ss -Hun dst 10.77.0.99 | grep -q .
}

# ends_soon PID: told to, it ends well, and long before the resolver gives up.
ends_soon()
{
	local begun=$SECONDS

	kill "$1"
	wait "$1" || fail "it ended with $?" || return
	[ $((SECONDS - begun)) -lt 60 ] || fail "it went on for $((SECONDS - begun)) s"
}

# lapse: the trial on s0 is over, as if its time were.
lapse()
{
	"$(tool lapse "-I$here/../../common" -lbpf)" "$(status .program_id)"
}

# lease CPU THROTTLE USES: the CPU holds so many uses of that throttle of the pacer on s0, until it has made them.
lease()
{
	"$(tool lease "-I$here/../../common" -lbpf)" "$(status .program_id)" "$@"
}

# on_cpu CPU: what this process starts from now on sends from there, and is judged there.
on_cpu()
{
	taskset -pc "$1" "$BASHPID" >/dev/null
}

# off: no program on s0, whatever came before.
off()
{
	in_server ip link set dev s0 xdp off
	in_server ip link set dev s0 xdpgeneric off
}

# stranger FILE SECTION [WORD]: a program from beside this file, attached as `ip link` calls it.
stranger()
{
	[ -e "$work/$1.o" ] ||
		"${CLANG:-clang-19}" -O2 -g -target bpf "-I/usr/include/$(gcc -print-multiarch)" \
			-c "$here/$1.bpf.c" -o "$work/$1.o"
	in_server ip link set dev s0 "${3:-xdp}" obj "$work/$1.o" sec "$2"
}

# older VERSION: the object as another version.
older()
{
	python3 - "$BUILD/pacer.bpf.o" "$work/old.bpf.o" "$1" <<-'END'
	import re, struct, sys
	data = open(sys.argv[1], "rb").read()
	at = [m.start() for m in re.finditer(struct.pack("<I", 0x52434150), data)]
	assert len(at) == 1
	data = data[:at[0] + 4] + struct.pack("<I", int(sys.argv[3])) + data[at[0] + 8:]
	open(sys.argv[2], "wb").write(data)
	END
}

# unread COMMAND...: who reads what the pacer's command prints goes after two lines: it ends, and says nothing.
unread()
{
	rm -f "$work/code"
	{ (trap '' PIPE && pacer "$@") 2>"$work/err" || echo $? >"$work/code"; } | head -n 2 >"$work/two"
	equal "$(cat "$work/code") $(wc -l <"$work/two") $(wc -l <"$work/err")" "1 2 0" "when nobody reads any more: $*"
}

# --- assertions -----------------------------------------------------------------------------------

fail()
{
	echo "$*"
	return 1
}

# equal GOT WANTED WHAT
equal()
{
	[ "$1" = "$2" ] || fail "$3: $1, expected $2"
}

# arrive "N..." SHOT...: of each shot, exactly so many frames arrive.
arrive()
{
	local wanted=$1 got

	shift
	got=$(timeout -k 1 "$hang_s" "$shots" "$CLIENT" "$SERVER" "$@" 2>&1) || fail "shots: $got"
	equal "$got" "$wanted" "frames arrived of $*"
}

# stats FILTER: of the counters, what the jq filter says.
stats()
{
	pacer stats s0 --json | jq -rc "$1"
}

status()
{
	pacer status s0 --json | jq -rc "$1"
}

# handed: frames that the device has handed to its XDP programs, since it was made.
handed()
{
	in_server ethtool -S s0 | awk '/rx_queue_[0-9]+_xdp_packets/ { n += $2 } END { print n }'
}

# all_are_counted BEFORE: the pacer has counted all that was handed to it since.
all_are_counted()
{
	[ $(($(handed) - $1)) -eq "$(stats .packets)" ]
}

# counted RULE MATCHED ADMITTED GAP WINDOW
counted()
{
	local got

	got=$(stats ".rules[] | select(.name == \"$1\") |
		[.matched, .admitted, .denied.gap, .denied.window,
		 .denied.contended + .denied.no_state + .denied.ban + .denied.throttle] | join(\" \")")
	equal "$got" "$2 $3 $4 $5 0" "$1: matched, admitted, denied by gap, by window, by others"
}

# totals: all series that count, of s0, but for those of a shadow.
totals()
{
	pacer export s0 --textfile - | grep '_total{' | grep -v '^xdp_pacer_shadow_'
}

# less_than FILE: which of them are less than FILE has them, or are gone.
less_than()
{
	totals | awk 'NR == FNR { was[$1] = $2; next }
		{ if ($1 in was && $2 < was[$1]) print $0 " was " was[$1]; delete was[$1] }
		END { for (name in was) print name " is gone" }' "$1" -
}

# refused CODE PATTERN COMMAND...: the exit code, and one line of complaint that has the pattern.
# Is there less free than a policy may ask for? Says where not.
is_small()
{
	awk '$1 == "MemAvailable:" && $2 < 64 * 1024 * 1024 { small = 1 } END { exit !small }' /proc/meminfo ||
		{ echo "# skipped: $*: 64 GiB are free here, as many as a policy may ask for" && false; }
}

refused()
{
	local wanted=$1 pattern=$2 code=0

	shift 2
	"$@" >"$work/out" 2>"$work/err" || code=$?
	[ "$code" -eq "$wanted" ] ||
		fail "$*: exit code $code, expected $wanted: $(tr '\n' ' ' <"$work/err")" || return
	[ "$(wc -l <"$work/err")" -eq 1 ] ||
		fail "$*: not one line on stderr: $(tr '\n' '|' <"$work/err")" || return
	[ ! -s "$work/out" ] || fail "$*: refused, but stdout has: $(head -n 1 "$work/out")" || return
	grep -Eq -- "$pattern" "$work/err" || fail "$*: no $pattern in: $(cat "$work/err")"
}

# what_is_on IFACE: its XDP program and mode, as the kernel tells them.
what_is_on()
{
	in_server ip -j -d link show dev "$1" | jq -c '.[0].xdp // {}'
}

# so_far WHAT: how far a check is that takes minutes. Whoever runs it takes a long silence for a hang.
so_far()
{
	echo "# $*" >&3
}

# check NAME COMMAND...: in a process of its own, from a clean interface to a clean interface.
check()
{
	local name=$1 code

	shift
	set +e # not as a condition: that would switch -e off within
	(
		set -e
		"$@"
	) 3>&1 >"$work/log" 2>&1
	code=$?
	set -e
	if [ "$code" -eq 0 ]; then
		echo "ok $name"
	else
		echo "not ok $name: $(tail -n 1 "$work/log")"
		sed "s/^/# $name: /" "$work/log" >&2
		failures=$((failures + 1))
	fi
	off >/dev/null 2>&1 || true
}

# finish: the last line of a test.
finish()
{
	exit $((failures > 0))
}
