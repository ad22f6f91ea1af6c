#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# fail2ban bans and lifts by the pacer: a real server, with directories, a socket and a database of its
# own. A line in a log is what makes it ban.
#
#   client                                  server
#   10.77.0.11-18, fd77::11-18  c0 ---- s0  the pacer, and fail2ban-server
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

command -v fail2ban-server >/dev/null || die "fail2ban is missing: scripts/setup test installs it"
action=$here/../../etc/fail2ban/action.d/xdp-pacer.conf

# jail NAME BANTIME [OPTION...]: from one line on, with these options of the action.
jail()
{
	local options="pacer=$BUILD/xdp-pacer" option

	for option in "${@:3}"; do
		options+=", $option"
	done
	cat <<-TEXT
	[$1]
	enabled = true
	filter = test
	logpath = $work/f2b/$1.log
	backend = polling
	maxretry = 1
	findtime = 600
	bantime = $2
	usedns = no
	ignoreself = false
	action = xdp-pacer[$options]
	TEXT
	: >"$work/f2b/$1.log"
}

# configured: a configuration of the jails from standard input.
configured()
{
	local jails

	rm -rf "$work/f2b"
	mkdir -p "$work/f2b/filter.d" "$work/f2b/action.d"
	cp "$action" "$work/f2b/action.d/"
	printf '[Definition]\nfailregex = ^ refused <ADDR>$\n' >"$work/f2b/filter.d/test.conf"
	cat >"$work/f2b/fail2ban.conf" <<-TEXT
	[Definition]
	loglevel = INFO
	logtarget = $work/f2b/log
	syslogsocket = auto
	socket = $work/f2b/socket
	pidfile = $work/f2b/pid
	dbfile = $work/f2b/db
	dbpurgeage = 1d
	TEXT
}

fail2ban()
{
	timeout -k 1 "$hang_s" fail2ban-client -c "$work/f2b" -s "$work/f2b/socket" -p "$work/f2b/pid" "$@"
}

# It answers when its jails have begun.
started()
{
	background "$SERVER" fail2ban-server -f -c "$work/f2b" -s "$work/f2b/socket" \
		-p "$work/f2b/pid" start >"$work/f2b/out" 2>&1
	until_true 20 answers || fail "fail2ban does not start: $(cat "$work/f2b/out" "$work/f2b/log")"
}

answers()
{
	fail2ban ping >/dev/null 2>&1 && [ "$(grep -c 'Jail .* started' "$work/f2b/log")" -ge "$jails" ]
}

stopped()
{
	fail2ban stop >/dev/null
	wait "$pid" || true
	: >"$work/f2b/log"
}

# stopped_well: what it did until its end was no error.
stopped_well()
{
	fail2ban stop >/dev/null
	wait "$pid" || true
	! logged 1 ERROR || fail "$(grep ERROR "$work/f2b/log")"
	: >"$work/f2b/log"
}

# refusal JAIL SOURCE [AGO]: a line that makes the jail ban, of so many seconds ago.
refusal()
{
	echo "$(date -d "-${3:-0} seconds" '+%Y-%m-%d %H:%M:%S') refused $2" >>"$work/f2b/$1.log"
}

# logged N PATTERN
logged()
{
	[ "$(grep -Ec -- "$2" "$work/f2b/log")" -ge "$1" ]
}

# banned "KEY...": from outside, sorted.
banned()
{
	[ "$(pacer ban s0 list --json | jq -r '[.. | .key? // empty] | sort | join(" ")')" = "$1" ]
}

left()
{
	pacer ban s0 list --json | jq -r --arg key "$1" '[.. | select(.key? == $key) | .left_ns // 0][0]'
}

# lasts_until KEY SECOND: its ban ends then, of the day's clock, or later, however long this takes to look.
lasts_until()
{
	local now left

	left=$(left "$1")
	now=$(date +%s)
	[ $((now + left / 1000000000)) -ge $(($2 - 1)) ]
}

wide()
{
	policy wide <<-TEXT
	bans: 64
	rules:
	  - name: udp
	    match: {proto: udp, dport: 9000}
	    limits: [{key: src/32,128, packets: 1000, window: 60s}]
	TEXT
	load wide
}

# One line of the log, and its source is dropped, and nobody else; lifted by hand, and it is not.
bans_and_lifts()
{
	local jails=1

	wide
	configured
	jail one 600 "interface=s0" >"$work/f2b/jail.conf"
	started
	arrive "2 2" n=2 n=2,from=fd77::11
	refusal one 10.77.0.11
	refusal one fd77::11
	until_true 10 banned "10.77.0.11 fd77::11" || fail "not banned: $(cat "$work/f2b/log")"
	arrive "0 0 2 2" n=2 n=2,from=fd77::11 n=2,from=10.77.0.12 n=2,from=fd77::12
	[ "$(left 10.77.0.11)" -le 600000000000 ] || fail "banned for $(left 10.77.0.11) ns"
	[ "$(left 10.77.0.11)" -gt 300000000000 ] || fail "banned for $(left 10.77.0.11) ns"
	fail2ban set one unbanip 10.77.0.11 >/dev/null
	until_true 10 banned "fd77::11" || fail "not lifted: $(cat "$work/f2b/log")"
	arrive "2 0" n=2 n=2,from=fd77::11
	! logged 1 ERROR || fail "$(grep ERROR "$work/f2b/log")"
	stopped
}

# At its end it lifts what it banned. At its start it bans anew for what is left, not for the whole.
over_a_restart()
{
	local jails=2

	wide
	configured
	{
		jail one 600 "interface=s0"
		jail ever -1 "interface=s0"
	} >"$work/f2b/jail.conf"
	started
	pacer ban s0 add 10.77.0.18 >/dev/null # not fail2ban's
	refusal one 10.77.0.11 100
	refusal ever 10.77.0.12
	until_true 10 banned "10.77.0.11 10.77.0.12 10.77.0.18" || fail "$(cat "$work/f2b/log")"
	[ "$(left 10.77.0.11)" -le 500000000000 ] || fail "banned for $(left 10.77.0.11) ns"
	equal "$(left 10.77.0.12)" 0 "time left of a ban for ever"
	stopped
	banned 10.77.0.18 || fail "fail2ban has ended, and banned are: $(pacer ban s0 list)"
	arrive "1 1 0" n=1 n=1,from=10.77.0.12 n=1,from=10.77.0.18
	started
	until_true 10 banned "10.77.0.11 10.77.0.12 10.77.0.18" || fail "$(cat "$work/f2b/log")"
	[ "$(left 10.77.0.11)" -le 500000000000 ] || fail "banned anew for $(left 10.77.0.11) ns"
	[ "$(left 10.77.0.11)" -gt 200000000000 ] || fail "banned anew for $(left 10.77.0.11) ns"
	arrive "0 0 0" n=1 n=1,from=10.77.0.12 n=1,from=10.77.0.18
	! logged 1 ERROR || fail "$(grep ERROR "$work/f2b/log")"
	stopped
}

# Two jails ban one source: the end of the shorter ban is not the end of the longer. It is long enough
# that fail2ban has read the line before: a ban whose end has passed by then is none to it.
two_jails()
{
	local jails=2

	wide
	configured
	{
		jail short 8 "interface=s0"
		jail long 600 "interface=s0"
	} >"$work/f2b/jail.conf"
	started
	refusal long 10.77.0.11
	refusal short 10.77.0.11
	refusal short 10.77.0.12
	until_true 20 logged 2 '\[short\] Unban' || fail "$(cat "$work/f2b/log")"
	until_true 10 banned 10.77.0.11 || fail "banned are: $(pacer ban s0 list)"
	arrive "0 1" n=1 n=1,from=10.77.0.12
	! logged 1 ERROR || fail "$(grep ERROR "$work/f2b/log")"
	stopped
}

# Who is banned again is banned for longer (bantime.increment): fail2ban bans for the base, and then for 5 s more, which
# is what it does at once. That the other jail banned him is what counts here. Now and then it knows of the 5 s
# before it bans, so what prolongs a ban is looked at, too.
longer_each_time()
{
	local jails=2 begun prolonging

	wide
	configured
	{
		jail first 300 "interface=s0"
		jail again 600 "interface=s0"
		printf 'bantime.increment = true\nbantime.overalljails = true\nbantime.formula = ban.Time + 5\n'
	} >"$work/f2b/jail.conf"
	started
	refusal first 10.77.0.11 10
	until_true 10 banned 10.77.0.11 || fail "not banned: $(cat "$work/f2b/log")"
	begun=$(date +%s)
	refusal again 10.77.0.11
	until_true 10 logged 1 '\[again\] Increase Ban 10.77.0.11' || fail "$(cat "$work/f2b/log")"
	until_true 2 lasts_until 10.77.0.11 $((begun + 605)) || fail "banned for $(left 10.77.0.11) ns"
	prolonging=$(fail2ban get again action xdp-pacer actionprolong)
	[[ $prolonging == *"ban \$paced add"* ]] || fail "a ban is prolonged by: $prolonging"
	! logged 1 ERROR || fail "$(grep ERROR "$work/f2b/log")"
	stopped
}

# Under a rule: what no rule asks for passes.
under_a_rule()
{
	local jails=1

	wide
	configured
	jail one 600 "interface=s0" "rule=udp" >"$work/f2b/jail.conf"
	started
	refusal one 10.77.0.11
	until_true 10 banned 10.77.0.11 || fail "not banned: $(cat "$work/f2b/log")"
	arrive "0 2" n=2 n=2,dport=9001
	fail2ban set one unbanip 10.77.0.11 >/dev/null
	until_true 10 banned "" || fail "not lifted: $(cat "$work/f2b/log")"
	arrive "2" n=2
	! logged 1 ERROR || fail "$(grep ERROR "$work/f2b/log")"
	stopped
}

# An interface without a pacer is an error in fail2ban's log, in the pacer's words; the others ban.
several_interfaces()
{
	local jails=1

	wide
	configured
	jail one 600 'interface="lo none s0"' >"$work/f2b/jail.conf"
	started
	refusal one 10.77.0.11
	until_true 10 banned 10.77.0.11 || fail "not banned: $(cat "$work/f2b/log")"
	until_true 10 logged 1 'ERROR.*xdp-pacer: lo: has no pacer' || fail "$(cat "$work/f2b/log")"
	until_true 10 logged 1 'ERROR.*xdp-pacer: none: ' || fail "$(cat "$work/f2b/log")"
	stopped
}

# None of them has one: no command is run that has no interface.
no_paced_interface()
{
	local jails=1

	wide
	configured
	jail one 600 'interface="lo none"' >"$work/f2b/jail.conf"
	started
	refusal one 10.77.0.11
	until_true 10 logged 1 'ERROR.*xdp-pacer: lo: has no pacer' || fail "$(cat "$work/f2b/log")"
	until_true 10 logged 1 'Failed to execute ban jail' || fail "$(cat "$work/f2b/log")"
	! logged 1 'xdp-pacer ban: ' || fail "$(cat "$work/f2b/log")"
	stopped
}

# Two interfaces with one state have one ban, which is made and lifted once, without an error; two with a state each
# have one each. One that is named twice counts once.
shared_or_not()
{
	local jails=1 shared

	in_client ip link add c1 type veth peer name s1 netns "$SERVER"
	in_server ip link set s1 up
	wide
	for shared in --shared ""; do
		pacer unload s0 >/dev/null
		pacer load s0 s1 -c "$work/wide.yaml" ${shared:+"$shared"} >/dev/null
		configured
		jail one 600 'interface="s0 s1 s0"' >"$work/f2b/jail.conf"
		started
		refusal one 10.77.0.11
		until_true 10 banned 10.77.0.11 || fail "not banned: $(cat "$work/f2b/log")"
		until_true 10 is_banned_on s1 || fail "not banned on s1: $(cat "$work/f2b/log")"
		fail2ban set one unbanip 10.77.0.11 >/dev/null
		until_true 10 banned "" || fail "not lifted: $(cat "$work/f2b/log")"
		stopped_well
		! is_banned_on s1 || fail "not lifted on s1"
		pacer unload s1 >/dev/null
	done
}

is_banned_on()
{
	pacer ban "$1" list | grep -qF 10.77.0.11
}

net_up
check bans_and_lifts bans_and_lifts
check over_a_restart over_a_restart
check two_jails two_jails
check longer_each_time longer_each_time
check under_a_rule under_a_rule
check several_interfaces several_interfaces
check no_paced_interface no_paced_interface
check shared_or_not shared_or_not
finish
