#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The service as systemd runs it, on two boots, each printing "ok NAME" or "not ok NAME: why" to the
# second serial port. Units call this with what is to be done.
#
#   v0 10.0.0.1/24, xdp-pacer@v0  <---veth--->  v1 10.0.0.2/24, 10.0.0.3/24 in the namespace peer
#
# shellcheck disable=SC2317 # the functions are reached through check
set -u
export PATH=/usr/sbin:/usr/bin:/sbin:/bin

log=/tmp/log.$$

ip()
{
	/usr/sbin/ip "$@"
}

check()
{
	local name=$1 status

	shift
	(set -e; "$@") >"$log" 2>&1
	status=$?
	if [ "$status" -eq 0 ]; then
		echo "ok service-$name" >/dev/ttyS1
	else
		echo "not ok service-$name: $(tail -n 1 "$log")" >/dev/ttyS1
		sed "s/^/$name: /" "$log" >/dev/ttyS0
	fi
}

fail()
{
	echo "$*"
	return 1
}

links()
{
	ip netns add peer
	ip link add v0 type veth peer name v1 netns peer
	ip -n peer addr add 10.0.0.2/24 dev v1
	ip -n peer addr add 10.0.0.3/24 dev v1
	ip -n peer link set lo up
	ip -n peer link set v1 up
}

# What was there before the address says who came first.
addresses()
{
	ip link show dev v0 >/run/before-the-address
	ip addr add 10.0.0.1/24 dev v0
	ip link set v0 up
}

# arrive EXPECTED SADDR COUNT: exactly so many of the datagrams sent reach v0.
arrive()
{
	local received

	received=$(udp peer "$2" 10.0.0.1 9000 "$3" 0) || fail "udp failed" || return
	[ "$received" -eq "$1" ] || fail "$received of $3 datagrams arrived from $2, expected $1"
}

active()
{
	[ "$(systemctl is-active xdp-pacer@v0)" = active ] || fail "$(systemctl status xdp-pacer@v0 2>&1 | tail -n 1)"
}

# until COMMAND...: for a minute
until_true()
{
	local i=0

	until "$@" >/dev/null 2>&1; do
		i=$((i + 1))
		[ "$i" -lt 300 ] || fail "not in a minute: $*" || return
		sleep 0.2
	done
}

# Before the network is up, by a user of its own, and so that other programs may stand beside it.
starts()
{
	active
	grep -q prog/xdp /run/before-the-address || fail "no pacer before the address: $(cat /run/before-the-address)" ||
		return
	[ "$(stat -c %u "/proc/$(systemctl show -P MainPID xdp-pacer@v0)")" = 990 ] || fail "not as xdp-pacer" || return
	xdp-pacer status v0 --json | grep -q '"attach": *"dispatcher"' || fail "not under the dispatcher"
}

# What is early and behind the network is in no cycle with it.
early()
{
	[ "$(systemctl is-active early)" = active ] || fail "early.service is $(systemctl is-active early)" || return
	! dmesg | grep -i 'ordering cycle'
}

is_off()
{
	[ "$(systemctl is-active xdp-pacer@w0)" = inactive ]
}

# The network did not wait for it; when it comes it is paced, and again when it comes back.
comes_later()
{
	local times

	[ "$(systemctl show -P Result xdp-pacer@w0)" = exec-condition ] ||
		fail "before it is there: $(systemctl show -P Result xdp-pacer@w0)" || return
	for times in 1 2; do
		ip link add w0 type veth peer name w1
		until_true xdp-pacer status w0 || return
		ip link del w0
		until_true is_off || fail "w0 has gone, $times: $(systemctl is-active xdp-pacer@w0)" || return
	done
}

paces()
{
	arrive 20 10.0.0.2 50
}

# The file is changed, and all that was counted goes on.
reloads()
{
	sed -i 's/packets: 20/packets: 30/' /etc/xdp-pacer/v0.yaml
	systemctl reload xdp-pacer@v0
	arrive 10 10.0.0.2 50
}

refuses_nonsense()
{
	cp /etc/xdp-pacer/v0.yaml /tmp/v0.yaml
	echo nonsense >>/etc/xdp-pacer/v0.yaml
	! systemctl reload xdp-pacer@v0 || fail "it took nonsense" || return
	cp /tmp/v0.yaml /etc/xdp-pacer/v0.yaml
	active
	arrive 0 10.0.0.2 5
}

stops()
{
	systemctl stop xdp-pacer@v0
	! active || fail "it is still active" || return
	[ -s /var/lib/xdp-pacer/v0.state ] || fail "no state was saved" || return
	xdp-pacer status v0
	arrive 0 10.0.0.2 5
}

starts_again()
{
	systemctl start xdp-pacer@v0
	active
	arrive 0 10.0.0.2 5
}

# agent PROPERTY: what systemd says of it
agent()
{
	systemctl show -P "$1" xdp-pacer-fleet@v0
}

# Until it has a session in the store, and its shares are in the pacer.
agent_divides()
{
	local i=0

	until [ "$(agent ActiveState) $(agent StatusText)" = "active 1 limit is divided in fleet vm of 1 member" ] &&
		xdp-pacer status v0 --json | grep -q '"members": *1[^0-9]'; do
		i=$((i + 1))
		[ "$i" -lt 100 ] || fail "$(agent ActiveState): $(agent StatusText)" || return
		sleep 0.2
	done
}

# systemctl waits until it says that it is ready.
agent_starts()
{
	mkdir -p /run/etcd
	httpd -p 127.0.0.1:2379 -h /usr/share/store
	systemctl start xdp-pacer-fleet@v0
	agent_divides
	[ "$(stat -c %u "/proc/$(agent MainPID)")" = 990 ] || fail "not as xdp-pacer" || return
	[ "$(stat -c '%u %a' /var/lib/xdp-pacer/v0.member)" = "990 600" ] || fail "$(ls -l /var/lib/xdp-pacer)"
}

# What it had is its own again; and systemd does not give up, however often.
agent_is_killed()
{
	local pid session

	[ "$(agent StartLimitIntervalUSec)" = 0 ] || fail "after some starts it is not started again" || return
	pid=$(agent MainPID)
	session=$(cat /run/etcd/member.created)
	kill -KILL "$pid"
	while [ "$(agent NRestarts)" = 0 ]; do sleep 0.2; done
	agent_divides
	[ "$(agent MainPID)" != "$pid" ] || fail "it is the same" || return
	[ "$(cat /run/etcd/member.created)" = "$session" ] || fail "its session is another"
}

# another_divides PID: the agent that follows that one.
another_divides()
{
	local i=0

	until [ "$(agent MainPID)" != "$1" ] && [ "$(agent MainPID)" != 0 ]; do
		i=$((i + 1))
		[ "$i" -lt 100 ] || fail "the agent is still $1" || return
		sleep 0.2
	done
	agent_divides
}

# same_divides PID: it goes on, since a pacer that is started takes over the state of the one before. It looks for that
# four times a second.
same_divides()
{
	sleep 2
	agent_divides
	[ "$(agent MainPID) $(agent NRestarts)" = "$1" ] || fail "the agent was $1 and is $(agent MainPID) $(agent NRestarts)"
}

# Nothing is given back, whichever of the two is restarted.
agent_is_restarted()
{
	local pid session

	session=$(cat /run/etcd/member.created)
	pid=$(agent MainPID)
	systemctl restart xdp-pacer-fleet@v0
	another_divides "$pid"
	[ "$(cat /run/etcd/member.created)" = "$session" ] || fail "its session is another" || return
	pid="$(agent MainPID) $(agent NRestarts)"
	systemctl restart xdp-pacer@v0
	same_divides "$pid" || return
	systemctl stop xdp-pacer@v0
	agent_divides
	systemctl start xdp-pacer@v0
	same_divides "$pid" || return
	[ "$(cat /run/etcd/member.created)" = "$session" ] || fail "its session is another at the end"
}

# It gives back what it has; or says that the store was too slow for that, as it may be where the machine is.
agent_stops()
{
	systemctl stop xdp-pacer-fleet@v0
	[ "$(agent ActiveState) $(agent Result)" = "inactive success" ] || fail "$(agent ActiveState) $(agent Result)" ||
		return
	[ ! -e /run/etcd/member ] || grep -q 'v0: its shares were not given back within' /run/said ||
		fail "it has not left the store: $(head /run/etcd/*); it said: $(tr '\n' ';' </run/said)" || return
	active
}

# Whom the boot before had admitted all that the limit has is not admitted now.
restored()
{
	arrive 0 10.0.0.2 5
	arrive 30 10.0.0.3 50
}

keep()
{
	echo "state $(tar -czf - -C / var/lib/xdp-pacer etc/xdp-pacer | base64 | tr -d '\n')" >/dev/ttyS1
	echo end >/dev/ttyS1
}

try()
{
	check "before-the-network" starts
	check "no-cycle" early
	if [ -e /second-boot ]; then
		check "restored-after-a-reboot" restored
	else
		check "paces" paces
		check "reload-applies" reloads
		check "reload-refuses-nonsense" refuses_nonsense
		check "stop-leaves-it-pacing" stops
		check "started-again" starts_again
		check "fleet-starts" agent_starts
		check "fleet-survives-a-kill" agent_is_killed
		check "fleet-survives-restarts" agent_is_restarted
		check "fleet-stops" agent_stops
		check "comes-later" comes_later
	fi
	systemctl reboot --no-block
}

"$1"
