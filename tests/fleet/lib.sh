# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A fleet on real parts, for tests/fleet/hosts, tests/fleet/shared and scripts/demo-fleet. Whoever sources
# this has NS (the beginning of its namespaces' names, its own), HOSTS and BUILD, and calls fleet_up.
#
#   host N, namespace $NS-N:  c0 --veth-- e0 (the pacer)    st --veth--+  10.99.0.1N
#   the store, $NS-s:         etcd, one or more             br0 -------+  10.99.0.1, 10.99.0.2 ...
#
# Every host gets the frames of one source by its own c0 (send_to).
fleet_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$fleet_dir/../processes.sh"
work=$(mktemp -d)
agent=() sender=() etcd=()
URL=http://10.99.0.1:2379

clean()
{
	local pid n

	trap '' INT TERM HUP
	trap - EXIT
	if [[ $BUILD == *coverage* ]]; then # who is killed writes no counts
		end_jobs TERM
		for pid in "${agent[@]}"; do
			timeout 20 tail --pid="$pid" -f /dev/null || true
		done
	fi
	end_jobs KILL
	wait 2>/dev/null || true
	for n in s $(seq "$HOSTS"); do
		ip netns del "$NS-$n" 2>/dev/null || true
	done
	rm -rf "$work"
}

# die PID...: at once, and bash says nothing of it
die()
{
	kill -KILL "$@"
	wait "$@" 2>/dev/null || true
}

# at NAME COMMAND...: there
at()
{
	nsenter --net="/run/netns/$NS-$1" "${@:2}"
}

# need NAME...: ends where a command is missing, or who runs it is not root.
need()
{
	local needed

	[ "$(id -u)" -eq 0 ] || { echo "$(basename "$0"): run as root" >&2; exit 1; }
	for needed in etcd etcdctl jq nft python3 "$@"; do
		command -v "$needed" >/dev/null ||
			{ echo "$(basename "$0"): $needed is missing: scripts/setup test" >&2; exit 1; }
	done
}

# fleet_up [STORES]: the namespaces, joined; nothing runs in them yet.
fleet_up()
{
	local n

	trap clean EXIT
	trap "trap '' INT TERM HUP; exit 130" INT
	trap "trap '' INT TERM HUP; exit 143" TERM HUP
	for n in s $(seq "$HOSTS"); do
		ip netns add "$NS-$n"
		at "$n" ip link set lo up
	done
	at s ip link add br0 type bridge
	at s ip link set br0 up
	for n in $(seq "${1:-1}"); do at s ip addr add "10.99.0.$n/24" dev br0; done
	for n in $(seq "$HOSTS"); do
		at s ip link add "v$n" type veth peer name st netns "$NS-$n"
		at s ip link set "v$n" master br0 up
		at "$n" ip addr add "10.99.0.1$n/24" dev st
		at "$n" ip link set st up
		at "$n" ip link add c0 type veth peer name e0
		at "$n" ethtool -K c0 gro on
		at "$n" ip link set c0 up
		at "$n" ip link set e0 up
	done
}

# etcd_begin N OF [ARGUMENT...]: the Nth node of so many.
etcd_begin()
{
	local n=$1 i peers=

	for i in $(seq "$2"); do peers+=,n$i=http://10.99.0.$i:2380; done
	nsenter --net="/run/netns/$NS-s" etcd --name "n$n" --data-dir "$work/etcd$n" --log-level error \
		--listen-client-urls "http://10.99.0.$n:2379" --advertise-client-urls "http://10.99.0.$n:2379" \
		--listen-peer-urls "http://10.99.0.$n:2380" --initial-advertise-peer-urls "http://10.99.0.$n:2380" \
		--initial-cluster "${peers#,}" "${@:3}" >>"$work/etcd.log" 2>&1 &
	etcd[$n]=$!
}

# ctl ARGUMENT...
ctl()
{
	ETCDCTL_API=3 at s etcdctl --endpoints "${CTL_URL:-$URL}" "$@"
}

# store_up [NODES [ARGUMENT...]]: until it answers.
store_up()
{
	local n

	for n in $(seq "${1:-1}"); do etcd_begin "$n" "${1:-1}" "${@:2}"; done
	until ctl endpoint health >/dev/null 2>&1; do
		kill -0 "${etcd[1]}" || return
		sleep 0.1
	done
}

# leader NODES: which node it is
leader()
{
	local n

	for n in $(seq "$1"); do
		if CTL_URL=http://10.99.0.$n:2379 ctl endpoint status --write-out json 2>/dev/null |
			jq -e '.[0].Status | .leader == .header.member_id' >/dev/null; then
			echo "$n"
			return
		fi
	done
	return 1
}

agent_up()
{
	nsenter --net="/run/netns/$NS-$1" "$BUILD/xdp-pacer" fleet e0 --state "$work/member$1" "${@:2}" \
		>>"$work/agent$1" 2>&1 &
	agent[$1]=$!
	# A signal that came before would be lost: it would be the shell's, whose traps it is for.
	while grep -qs '^bash' "/proc/$!/comm"; do
		sleep 0.01
	done
}

# send_to HOST PPS SECONDS [SOURCE]: its frames; those that the pacer lets through are in $work/framesHOST.
send_to()
{
	nsenter --net="/run/netns/$NS-$1" python3 "$fleet_dir/pace.py" "$2" "$3" "$work/frames$1" "${@:4}" &
	sender[$1]=$!
}

# of HOST: its share, in units, or 0
of()
{
	at "$1" "$BUILD/xdp-pacer" status e0 --json | jq '.shares[0].units'
}

# until_shares WANT: of all hosts, in their order; an extended expression
until_shares()
{
	local i n have

	for ((i = 0; i < 200; i++)); do # each look is three processes a host
		have=
		for ((n = 1; n <= HOSTS; n++)); do have+="$(of $n) "; done
		[[ ! $have =~ ^($1)\ $ ]] || return 0
		sleep 0.5
	done
	echo "the shares are $have"
	tail -n 3 "$work"/agent*
	return 1
}

# until_said HOST TEXT
until_said()
{
	local i

	for ((i = 0; i < 200; i++)); do
		! grep -qF "$2" "$work/agent$1" || return 0
		sleep 0.1
	done
	echo "agent $1 said:"
	cat "$work/agent$1"
	return 1
}

# said_once HOST TEXT: in one line, since the last look at what its agent says
said_once()
{
	until_said "$1" "$2" || return
	[ "$(grep -cF "$2" "$work/agent$1")" -eq 1 ] || { cat "$work/agent$1"; return 1; }
}

# ends HOST: its agent has ended by itself, with its status
ends()
{
	timeout 20 tail --pid="${agent[$1]}" -f /dev/null || { echo "agent $1 is there still"; return 1; }
	wait "${agent[$1]}"
}

# refused TEXT ARGUMENT...: the agent of host 1 ends at once, with one line that says so.
refused()
{
	local text=$1 said code=0

	shift
	said=$(at 1 timeout 20 "$BUILD/xdp-pacer" fleet "$@" 2>&1) || code=$?
	[ "$code" -eq 1 ] && [ "$(wc -l <<<"$said")" -eq 1 ] && [[ "$said" == *"$text"* ]] || { echo "$code: $said"; return 1; }
}

# a_certificate NAME: an authority
a_certificate()
{
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca -keyout "$work/$1.key" -out "$work/$1.crt" \
		-addext basicConstraints=critical,CA:TRUE 2>/dev/null
}

# signed NAME SAN: by ca
signed()
{
	openssl req -newkey rsa:2048 -nodes -subj "/CN=$1" -keyout "$work/$1.key" -out "$work/$1.csr" 2>/dev/null
	openssl x509 -req -in "$work/$1.csr" -CA "$work/ca.crt" -CAkey "$work/ca.key" -CAcreateserial -days 2 \
		-out "$work/$1.crt" -extfile <(echo "subjectAltName=$2") 2>/dev/null
}

# tls_store PORT NAME: an etcd of its own with NAME's certificate, which wants one of ca's
tls_store()
{
	nsenter --net="/run/netns/$NS-s" etcd --name t --data-dir "$work/etcd-$2" --log-level error \
		--listen-client-urls "https://10.99.0.1:$1" --advertise-client-urls "https://10.99.0.1:$1" \
		--listen-peer-urls "http://10.99.0.1:$(($1 + 1))" --initial-advertise-peer-urls "http://10.99.0.1:$(($1 + 1))" \
		--initial-cluster "t=http://10.99.0.1:$(($1 + 1))" --cert-file "$work/$2.crt" --key-file "$work/$2.key" \
		--trusted-ca-file "$work/ca.crt" --client-cert-auth >>"$work/etcd.log" 2>&1 &
}

# cut HOST, mend HOST: what it sends to the store is dropped, and is not any more.
cut()
{
	at "$1" nft add table inet cut
	at "$1" nft add chain inet cut out '{ type filter hook output priority 0; }'
	at "$1" nft add rule inet cut out oifname st drop
}

mend()
{
	at "$1" nft delete table inet cut
}

# worst LIMIT WINDOW_MS [SINCE_NS]: says how many frames there were and the most in any window of all hosts;
# fails if that is more than the limit or less than half of it. The clocks are those of the frames' arrival:
# 50 ms for that.
worst()
{
	sort -n "$work"/frames* | awk -v limit="$1" -v window="$(($2 - 50))" -v since="${3:-0000}" '
		BEGIN { n = first = most = 0; begin = substr(since, 5) / 1e6 }
		{ ms = substr($1, 5) / 1e6; if (ms < begin) next
		  at[n++] = ms
		  while (at[first] <= ms - window) first++
		  if (n - first > most) most = n - first }
		END { print n " frames, at most " most " in a window of " limit
		      exit !(n > 0 && most <= limit && most > limit / 2) }'
}

# worst_rate RATE BURST: of all hosts' frames, the most in any window beyond RATE a second for as long as it
# is; fails if that is more than the burst, or if less than half of the rate came. 50 ms as above.
worst_rate()
{
	sort -n "$work"/frames* | awk -v rate="$1" -v burst="$2" '
		BEGIN { n = most = 0 }
		{ s = substr($1, 5) / 1e9; if (!n) first = s
		  at = n++ - rate * (s - first)
		  if (n == 1 || at < least) least = at
		  if (at + 1 - least > most) most = at + 1 - least }
		END { span = s - first
		      printf "%d frames in %.1f s, at most %.1f beyond %d a second in a window\n", n, span, most, rate
		      exit !(n > rate * span / 2 && most <= burst + rate * 0.05) }'
}

# check NAME FUNCTION: what it prints is the reason of a failure.
passed=0 failed=0
check()
{
	if "$2" >"$work/said" 2>&1; then
		passed=$((passed + 1))
		echo "ok $1"
	else
		failed=$((failed + 1))
		echo "not ok $1: $(cat "$work/said")"
	fi
}

finish()
{
	echo "$passed passed, $failed failed"
	[ "$failed" -eq 0 ]
}
