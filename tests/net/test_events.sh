#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What `events` tells of a real pacer: attacks that begin and end and who sends them, bans, changes and
# who made them, tables that share; to the terminal, to a command, to a journal; and of the past.
#
#   client                                   server
#   10.77.0.11-18   c0 ----------------- s0  the pacer, `xdp-pacer events`
#   10.128.0.0/9 (a flood)
#
# When an episode is told, of series that are made up, is in tests/unit/test_episodes.c; of captures in
# tests/cli/events.
#
# shellcheck disable=SC2317,SC2034 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

follower=""

# attack NAME [FIELD...]: of the rule udp, ten packets a source; what is denied is sampled.
attacked()
{
	policy "$1" <<-END
	bans: 64
	rules:
	  - name: udp
	    match: {proto: udp, dport: 9000}
	    limits:
	      - {key: src/32,128, packets: 10, window: 60s, slots: 10${2:-}}
	    ${3:-}
	sample: {of: denied, k: 64, window: 10s}
	END
}

# nobody_follows: nor one that a test left behind as it failed.
nobody_follows()
{
	[ ! -e "$work/follower" ] || end_remembered TERM "$work/follower"
	rm -f "$work/follower"
	rm -f "$work/events"
}

# follow [ARGUMENT...]: $work/events has each event as JSON, from before this returns.
follow()
{
	nobody_follows
	background "$SERVER" "$BUILD/xdp-pacer" events s0 --follow --json --quiet "${quiet:-1s}" "$@" >"$work/events" 2>"$work/said"
	follower=$pid
	remember "$pid" "$work/follower"
	until_true 5 is_followed
}

is_followed()
{
	pacer allow s0 add 192.0.2.99/32 >/dev/null
	pacer allow s0 del 192.0.2.99/32 >/dev/null
	grep -q '"event":"change"' "$work/events"
}

unfollow()
{
	kill "$follower"
	wait "$follower" || fail "it ended with $?"
	[ ! -s "$work/said" ] || fail "$(cat "$work/said")"
}

# told FILTER: of the events so far, as an array.
told()
{
	jq -sc "$1" "$work/events"
}

# tells FILTER: is it so by now?
tells()
{
	[ "$(told "$1" 2>/dev/null)" = true ]
}

# soon FILTER: it comes to be so.
soon()
{
	until_true 5 tells "$1" || fail "not so: $1 of $(cat "$work/events")"
}

shoot()
{
	timeout -k 1 "$hang_s" "$shots" "$CLIENT" "$SERVER" "$@" >"$work/arrived"
}

of_one_source()
{
	attacked one
	sed /^sample/d "$work/one.yaml" >"$work/unsampled.yaml"
	load unsampled
	follow
	pacer apply s0 -c "$work/one.yaml" >/dev/null # the first that samples, and it sees its samples
	soon 'any(.[]; .event == "change" and (.what | contains("apply")))'
	shoot n=300 n=12,from=10.77.0.12
	soon 'any(.[]; .event == "end")'
	equal "$(told '[.[] | select(.event == "start" or .event == "end") | .event]')" '["start","end"]' "the episode"
	equal "$(told '.[] | select(.event == "start") |
		[.rule, .reason, .packets >= 100, .packets <= 292, .sources.kind, .keys[0].key, .keys[0].share.low > 0.5]')" \
		'["udp","window",true,true,"one","10.77.0.11",true]' "its start"
	# A reading among the first packets may find no more denied than are ordinary, and is of before the episode.
	equal "$(told '.[] | select(.event == "end") | [.rule, .matched <= 312, .packets <= 292, .packets > 280,
		(.matched - .packets | . >= 10 and . <= 20)]')" '["udp",true,true,true,true]' "its end"
	equal "$(told '.[] | select(.event == "end") | [.bytes == 42 * .packets, .ended_ns > .began_ns,
		.time_ns - .ended_ns >= 1e9]')" '[true,true,true]' "its end's bytes and times"
	equal "$(told '[.[] | select(.event == "start" or .event == "end") | .began_ns] | unique | length')" 1 "its beginning"
	equal "$(told '[.[] | select(.event | startswith("key_")) | .began_ns] | unique | length')" 1 "that of its key"
	equal "$(told '[.[] | select(.event | startswith("key_")) | [.event, .rule, .key, .share.high >= .share.low]]')" \
		'[["key_start","udp","10.77.0.11",true],["key_end","udp","10.77.0.11",true]]' "its key"
	told '.[] | select(.event == "start") | .needed.set' | grep -Eq '^"udp.limits\[0\].packets=[0-9]+"$' ||
		fail "what would have to be set: $(told '.[] | select(.event == "start") | .needed')"
	unfollow
}

# Of two limits of one kind and key, the sample does not tell which denied; of one by a set's value, it does.
of_what_is_not_known()
{
	echo 10.77.0.0/16,XY >"$work/geo.csv"
	policy alike <<-END
	sets: [{name: geo, file: $work/geo.csv, value: 2}]
	rules:
	  - name: udp
	    match: {dport: 9000}
	    limits: [{key: src/32,64, packets: 1000, window: 1s}, {key: src/32,64, packets: 10, window: 1m}]
	  - name: land
	    match: {dport: 9001}
	    limits: [{key: "value(geo, src)", packets: 10, window: 1m}]
	sample: {of: denied, k: 64, window: 10s}
	END
	load alike
	follow
	shoot n=300
	shoot n=300,dport=9001
	soon '[.[] | select(.event == "start")] | length == 2'
	equal "$(told '[.[] | select(.event == "start") | [.rule, .keys[0].key, .needed.limit]]')" \
		'[["udp","10.77.0.11",null],["land","value(geo, XY)",0]]' "what would have to be set"
	unfollow
}

# What the sample says would have to be set is enough, of a source that sends all the time.
of_what_is_needed()
{
	local set

	policy rate <<-END
	rules: [{name: udp, match: {dport: 9000}, limits: [{key: src/32,128, rate: 100/s, burst: 20}]}]
	sample: {of: denied, k: 64, window: 10s}
	END
	load rate
	follow
	traffic_on 9000 1000 10.77.0.11=1000
	soon 'any(.[]; .event == "goes_on")'
	set=$(told '.[] | select(.event == "goes_on") | .needed.set' | tr -d '"')
	[[ $set == udp.limits\[0\].rate=*/s ]] || fail "$set"
	equal "$(told '[.[] | select(.event == "goes_on") | .needed | .value > 700 and .value < 1300][0]')" true \
		"1000 a second are needed: $set"
	pacer set s0 "$set" udp.limits[0].burst=200 >/dev/null
	soon 'any(.[]; .event == "end")'
	traffic_off
	unfollow
}

of_a_flood()
{
	attacked many
	sed -i 's,key: src/32\,128,key: all,' "$work/many.yaml"
	sed -i '/^bans/d' "$work/many.yaml"
	load many
	follow
	in_client "$(tool flood)" c0 1000 4 >"$work/sent"
	soon 'any(.[]; .event == "end")'
	equal "$(told '[.[] | select(.event == "end")] | .[0] | [.sources.kind, .packets, .sources.entropy.low > 4]')" \
		"[\"many\",$(($(tr -dc 0-9 <"$work/sent") - 10)),true]" "a flood of many sources"
	equal "$(told 'any(.[]; .event == "key_start")')" false "no key of it is heavy"
	unfollow
}

# A few denials are nobody's attack.
of_the_ordinary()
{
	attacked one
	load one
	follow
	shoot n=60 n=50,from=10.77.0.12
	pacer allow s0 add 192.0.2.98/32 >/dev/null
	soon 'any(.[]; .what == "allow s0 add 192.0.2.98/32")'
	# A machine that is busy may come late to a reading, or be stopped within one, which is said.
	equal "$(told '[.[] | select(.event != "change" and .what != "readings of the counters" and .what != "samples")]')" \
		'[]' "90 denials are ordinary"
	equal "$(stats '.rules[0].denied.window')" 90 "denied"
	unfollow
	follow --least 20
	shoot n=30,from=10.77.0.13
	shoot n=30,from=10.77.0.13
	soon 'any(.[]; .event == "end")'
	unfollow
}

of_bans()
{
	attacked ban "" "ban: 1h"
	load ban
	follow
	shoot n=12 n=13,from=10.77.0.12 n=9,from=10.77.0.13
	soon '[.[] | select(.event == "ban")] | length == 2'
	equal "$(told '[.[] | select(.event == "ban") | [.rule, .key, ((.until_ns - .time_ns) / 6e10 | round)]]')" \
		'[["udp","10.77.0.11",60],["udp","10.77.0.12",60]]' "bans"
	# Of 400 sources, the table has room for fewer than 64, and a rule notes 32 and 16 a second.
	sed -i 's/packets: 10/packets: 0/; s/packets: 0,/gap: 1h,/; s/, window: 60s, slots: 10//' "$work/ban.yaml"
	apply ban
	traffic_of_many
	soon 'any(.[]; .event == "bans_full" and .rule == "udp" and .n > 0)'
	soon 'any(.[]; .event == "lost" and .rule == "udp" and .what == "bans" and .n > 0)'
	soon '([.[] | select(.event == "ban")] | length) + ([.[] | select(.event == "lost" and .what == "bans") | .n] | add)
		== '"$(stats '.rules[0].events.banned')"
	unfollow
}

# Two states, one in the place of the other: each ban of both is told, or told as lost.
of_bans_of_two_states()
{
	local before

	attacked both "" "ban: 1h"
	sed -i 's/packets: 10/packets: 0/; s/packets: 0,/gap: 1h,/; s/, window: 60s, slots: 10//' "$work/both.yaml"
	load both
	follow
	traffic_of_many
	before=$(stats '.rules[0].events.banned')
	load both --replace
	traffic_of_many
	soon 'any(.[]; .event == "back")'
	soon '([.[] | select(.event == "ban")] | length) + ([.[] | select(.event == "lost" and .what == "bans") | .n] | add)
		== '"$((before + $(stats '.rules[0].events.banned')))"
	unfollow
}

# A ban that grows: the event tells how long each one really is.
of_bans_that_grow()
{
	attacked row "" "ban: {for: 1s, grow: x60, up_to: 1h, forget: 1h}"
	load row
	follow
	shoot n=12
	soon '[.[] | select(.event == "ban")] | length == 1'
	until_true 5 is_not_banned
	shoot n=12
	soon '[.[] | select(.event == "ban")] | length == 2'
	equal "$(told '[.[] | select(.event == "ban") | [.key, ((.until_ns - .time_ns) / 1e9 | round)]]')" \
		'[["10.77.0.11",1],["10.77.0.11",60]]' "bans in a row"
	unfollow
}

is_not_banned()
{
	[ "$(pacer ban s0 list --json | jq length)" = 0 ]
}

# Every source of the flood twice, so that a gap denies it: the generator begins anew.
traffic_of_many()
{
	in_client "$(tool flood)" c0 20000 0.02 7 >/dev/null
	in_client "$(tool flood)" c0 20000 0.02 7 >/dev/null
}

of_changes()
{
	attacked one
	sed -i 's/^rules:/sets: [{name: few, of: 192.0.2.3}]\n&/' "$work/one.yaml"
	load one
	follow
	pacer set s0 udp.limits[0].packets=20 >/dev/null
	pacer ban s0 add 192.0.2.1 --for 1h >/dev/null
	pacer ban s0 --for 2h add 192.0.2.2 >/dev/null # as it was typed, wherever options stand
	pacer ban s0 del 192.0.2.1 >/dev/null
	pacer sets s0 add few 192.0.2.4 >/dev/null
	pacer rotate --json s0 >/dev/null
	soon 'any(.[]; .what == "rotate --json s0")'
	equal "$(told '[.[] | select(.event == "change" and (.what | test("192.0.2.99") | not)) | [.what, .who, .pid > 1]]')" \
		'[["set s0 udp.limits[0].packets=20","root",true],["ban s0 add 192.0.2.1 --for 1h","root",true],'\
'["ban s0 --for 2h add 192.0.2.2","root",true],["ban s0 del 192.0.2.1","root",true],'\
'["sets s0 add few 192.0.2.4","root",true],["rotate --json s0","root",true]]' \
		"changes"
	unfollow
	off
	load one
	follow
	pacer apply s0 -c "$work/one.yaml" --confirm-within 1s >/dev/null
	soon 'any(.[]; .event == "rolled_back")'
	equal "$(told '[.[] | select(.event == "rolled_back")] | length')" 1 "a policy that nobody confirmed"
	equal "$(told 'any(.[]; .what // "" | test("no tool says"))')" false "that is no change by nobody"
	unfollow
}

# What is done in force, and cannot be done in the shadow, is a change all the same.
in_force_alone()
{
	attacked one
	cp "$work/one.yaml" "$work/plain.yaml"
	echo "192.0.2.3 AA" | tr ' ' , >"$work/v.csv"
	sed -i "s#^rules:#sets: [{name: v, file: $work/v.csv, value: 2}]\n&#" "$work/one.yaml"
	sed -i 's/^rules:/sets: [{name: v, of: 192.0.2.3}]\n&/' "$work/plain.yaml"
	load one
	pacer shadow s0 -c "$work/plain.yaml" >/dev/null
	follow
	refused 1 "it is done in force, and not in the shadow: s0: set v has no values: leave that of 192.0.2.9 out" \
		pacer sets s0 add v 192.0.2.9 AA
	soon 'any(.[]; .what == "sets s0 add v 192.0.2.9 AA")'
	unfollow
	pacer shadow s0 --stop >/dev/null
	off
}

of_sudo()
{
	attacked one
	load one
	follow
	[ "$(cat /proc/self/loginuid)" = 4294967295 ] || return 0 # the login counts, and is whoever's
	in_server env SUDO_UID=12345 "$BUILD/xdp-pacer" set s0 udp.limits[0].packets=21 >/dev/null
	soon 'any(.[]; .who == "user 12345")'
	unfollow
}

of_a_table_that_shares()
{
	attacked few ", entries: 2"
	sed -i '/^bans/d; s/slots: 10/slots: 11/' "$work/few.yaml"
	load few
	follow
	shoot n=2 n=2,from=10.77.0.12 n=2,from=10.77.0.13 n=2,from=10.77.0.14 n=2,from=10.77.0.15 n=2,from=10.77.0.16
	soon 'any(.[]; .event == "sharing")'
	equal "$(told '[.[] | select(.event == "sharing")][0] | [.rule, .limit, .used, .capacity, .shared > 0]')" \
		'["udp",0,2,2,true]' "the table"
	unfollow
}

comes_and_goes()
{
	attacked one
	load one
	follow
	pacer unload s0 >/dev/null
	soon 'any(.[]; .event == "gone")'
	load one
	soon 'any(.[]; .event == "back")'
	shoot n=300
	soon 'any(.[]; .event == "start")'
	equal "$(told '[.[] | select(.event == "change" and (.what | startswith("unload"))) | .what]')" '["unload s0"]' "who took it off"
	unfollow
}

# A tool says what it did after it has done it: a follower may look between the two.
goes_and_is_told_late()
{
	local unloading

	attacked one
	load one
	follow
	mkfifo "$work/held"
	background "$SERVER" env LD_PRELOAD="$(tool held -shared -fPIC)" HELD="$work/held" \
		"$BUILD/xdp-pacer" unload s0 >"$work/unloaded"
	unloading=$pid
	soon 'any(.[]; .event == "gone")'
	kill -STOP "$follower" # its next look comes after the tool has spoken
	: >"$work/held"
	wait "$unloading" || fail "unload ended with $?"
	kill -CONT "$follower"
	soon 'any(.[]; .what == "unload s0")'
	load one
	soon 'any(.[]; .event == "back")'
	equal "$(told '[.[] | select(.event == "change" and (.what | startswith("unload"))) | .what]')" '["unload s0"]' "who took it off"
	unfollow
}

# Another program over the same state goes on with all: the attack, and each change. Another state begins anew, and
# nothing that was changed meanwhile is left out.
over_the_same_state()
{
	local how quiet=1h # however long a command takes, the attack goes on

	attacked one
	load one
	sed 's/packets: 10/packets: 9/' "$work/one.yaml" >"$work/other.yaml"
	follow
	shoot n=300
	soon 'any(.[]; .event == "start")'
	for how in upgrade "shadow -c $work/other.yaml" "shadow --stop" "shadow -c $work/other.yaml"; do
		pacer allow s0 add 192.0.2.20/32 >/dev/null
		# shellcheck disable=SC2086 # words
		pacer $how s0 >/dev/null
		pacer allow s0 del 192.0.2.20/32 >/dev/null
		for _ in 1 2 3 4 5 6; do # until it has looked, at an attack that goes on
			shoot n=50
			sleep 0.2
		done
	done
	soon '[.[] | select(.event == "change" and (.what | test("192.0.2.20")))] | length == 8'
	equal "$(told '[.[] | select(.event | test("gone|back|lost|end"))] | length')" 0 "gone, back, lost and ends"
	equal "$(told '[.[] | select(.event == "start")] | length')" 1 "starts"
	equal "$(told '[.[] | select(.event == "change" and (.what | test("^(upgrade|shadow)")))] | length')" 4 "programs"
	pacer allow s0 add 192.0.2.21/32 >/dev/null
	pacer shadow s0 --promote >/dev/null
	pacer allow s0 add 192.0.2.22/32 >/dev/null
	soon 'any(.[]; .event == "back")'
	soon 'any(.[]; .what == "allow s0 add 192.0.2.22/32")'
	equal "$(told '[.[] | select(.event == "change") | .what | select(test("promote|192.0.2.2[12]"))]')" \
		'["allow s0 add 192.0.2.21/32","shadow s0 --promote","allow s0 add 192.0.2.22/32"]' "changes of a promotion"
	unfollow
}

# One that is gone and comes back with its state is told on: what was noted meanwhile, unless it was told as another
# interface's.
back_with_the_same_state()
{
	local case who meanwhile what

	in_server ip link add pacer-ev2 type veth peer name pacer-ev3
	in_server ip link set pacer-ev2 up
	attacked again "" "ban: 1h"
	for case in all:pacer-ev4,s0 pacer-ev2:pacer-ev2 "s0 pacer-ev2:s0"; do
		who=${case%:*}
		meanwhile=${case#*:}
		pacer load s0 pacer-ev2 -c "$work/again.yaml" --shared --replace >/dev/null
		nobody_follows
		# shellcheck disable=SC2086 # words
		background "$SERVER" "$BUILD/xdp-pacer" events $who --follow --json >"$work/events" 2>"$work/said"
		follower=$pid
		remember "$pid" "$work/follower"
		until_true 5 follows pacer-ev2
		shoot n=12
		soon 'any(.[]; .key == "10.77.0.11" and .interface == "pacer-ev2")'
		in_server ip link set pacer-ev2 name pacer-ev4
		soon 'any(.[]; .event == "gone")'
		pacer allow s0 add 192.0.2.30/32 >/dev/null
		shoot n=12,from=10.77.0.12
		[ "$who" = pacer-ev2 ] || soon "[.[] | select(.key == \"10.77.0.12\")] | length == $(wc -w <<<"${meanwhile/,/ }")"
		in_server ip link set pacer-ev4 name pacer-ev2
		soon 'any(.[]; .event == "back")'
		pacer allow s0 add 192.0.2.31/32 >/dev/null
		soon 'any(.[]; .what == "allow s0 add 192.0.2.31/32" and .interface == "pacer-ev2")'
		equal "$(told '[.[] | select(.key == "10.77.0.11" and .interface == "pacer-ev2")] | length')" 1 "$who: the first ban"
		for what in '.key == "10.77.0.12"' '.what == "allow s0 add 192.0.2.30/32"'; do
			equal "$(told "[.[] | select($what) | .interface] | sort | join(\",\")")" "\"$meanwhile\"" "$who: $what"
		done
		unfollow
	done
	in_server ip link del pacer-ev2
}

# Of all interfaces: one that comes later, and goes with its pacer.
of_all()
{
	in_server ip link add pacer-ev0 type veth peer name pacer-ev1
	in_server ip link set pacer-ev0 up
	attacked one
	begins 'events of all, from now on; ctrl-C ends it' all # of which there is none yet
	load one
	nobody_follows
	background "$SERVER" "$BUILD/xdp-pacer" events all --follow --json >"$work/events" 2>"$work/said"
	follower=$pid
	remember "$pid" "$work/follower"
	until_true 5 is_followed
	pacer load pacer-ev0 -c "$work/one.yaml" >/dev/null
	until_true 5 follows pacer-ev0
	begins 'events of all, from now on; ctrl-C ends it' all
	begins 'events of s0, pacer-ev0, from now on; ctrl-C ends it' s0 pacer-ev0
	in_server ip link del pacer-ev0
	soon 'any(.[]; .event == "gone" and .interface == "pacer-ev0")'
	# One whose pacer was taken off before it goes is gone once; another pacer in the place of one is told.
	in_server ip link add pacer-ev0 type veth peer name pacer-ev1
	in_server ip link set pacer-ev0 up
	pacer load pacer-ev0 -c "$work/one.yaml" >/dev/null
	soon 'any(.[]; .event == "back" and .interface == "pacer-ev0")'
	pacer unload pacer-ev0 >/dev/null
	soon '[.[] | select(.event == "gone" and .interface == "pacer-ev0")] | length == 2'
	# Of one that has another name by now it is said that its pacer goes on.
	pacer load pacer-ev0 -c "$work/one.yaml" >/dev/null
	soon '[.[] | select(.event == "back" and .interface == "pacer-ev0")] | length == 2'
	in_server ip link set pacer-ev0 down
	in_server ip link set pacer-ev0 name pacer-ev2
	soon 'any(.[]; .event == "gone" and .what == "its name is pacer-ev2 now, and its pacer goes on there")'
	in_server ip link del pacer-ev2
	load one --replace
	soon 'any(.[]; .event == "gone" and .interface == "s0")'
	tells '[.[] | select(.event == "gone")] | length == 5' || fail "gone: $(cat "$work/events")" || return
	soon 'any(.[]; .event == "back" and .interface == "s0")'
	shoot n=300
	soon 'any(.[]; .event == "start" and .interface == "s0")'
	unfollow
}

# A pacer that this tool cannot read is told once, where it was followed or all are. Once it can be read, it is not back:
# it never was there.
of_another_version()
{
	local all

	older 3
	attacked one
	load one
	in_server ip link add pacer-ev0 type veth peer name pacer-ev1
	in_server ip link set pacer-ev0 up
	in_server ip link set dev pacer-ev0 xdp obj "$work/old.bpf.o" sec xdp.frags
	refused 1 'pacer-ev0: its pacer has ABI version 3' pacer events pacer-ev0 --follow
	background "$SERVER" "$BUILD/xdp-pacer" events all --follow --json >"$work/all" 2>"$work/all.said"
	all=$pid
	follow
	until_true 5 grep -q 'pacer-ev0: its pacer has ABI version 3' "$work/all.said"
	off
	in_server ip link set dev s0 xdp obj "$work/old.bpf.o" sec xdp.frags
	soon 'any(.[]; .event == "gone")'
	until_true 5 grep -q 's0: its pacer has ABI version 3' "$work/said"
	until_true 5 grep -q 's0: its pacer has ABI version 3' "$work/all.said"
	load one --replace
	pacer load pacer-ev0 -c "$work/one.yaml" --replace >/dev/null
	soon 'any(.[]; .event == "back")'
	until_true 5 grep -q '"event":"back","interface":"s0"' "$work/all" || fail "$(cat "$work/all")"
	until_true 5 all_has_change pacer-ev0
	equal "$(jq -sc '[.[] | select(.event == "back") | .interface]' "$work/all")" '["s0"]' "who is back"
	equal "$(wc -l <"$work/said")" 1 "lines of who follows s0: $(cat "$work/said")"
	equal "$(wc -l <"$work/all.said")" 2 "lines of who follows all: $(cat "$work/all.said")"
	kill "$follower" "$all"
	wait "$follower" "$all"
	in_server ip link del pacer-ev0
}

# all_has_change INTERFACE: who follows all tells of it.
all_has_change()
{
	pacer allow "$1" add 192.0.2.98/32 >/dev/null
	jq -se 'any(.[]; .interface == "'"$1"'" and .event == "change")' "$work/all" >/dev/null 2>&1
}

# begins LINE INTERFACE...: what is said first to who follows them on a terminal or in a file.
begins()
{
	local line=$1
	shift
	background "$SERVER" "$BUILD/xdp-pacer" events "$@" --follow >"$work/begins"
	until_true 5 grep -qxF "$line" "$work/begins" || fail "$(cat "$work/begins")"
	kill "$pid"
	wait "$pid"
}

# follows INTERFACE
follows()
{
	pacer allow "$1" add 192.0.2.98/32 >/dev/null
	tells 'any(.[]; .interface == "'"$1"'")'
}

to_a_command()
{
	attacked one
	load one
	follow --exec "cat >>$work/json; echo \$XDP_PACER_EVENT \$XDP_PACER_INTERFACE \$XDP_PACER_RULE \$XDP_PACER_KEY >>$work/env; echo said"
	shoot n=300
	soon 'any(.[]; .event == "end")'
	until_true 10 grep -q '^end s0 udp$' "$work/env" || fail "$(cat "$work/env")"
	grep -q '^start s0 udp$' "$work/env" && grep -q '^key_start s0 udp 10.77.0.11$' "$work/env" || fail "$(cat "$work/env")"
	# An episode begins with a look that sees enough denials: one that falls into the burst takes some before that.
	jq -se '[.[] | select(.event == "end")] | .[0].packets | . > 280 and . <= 290' "$work/json" >/dev/null ||
		fail "on its stdin: $(cat "$work/json")"
	kill "$follower"
	wait "$follower"
	grep -vq '^said$' "$work/said" && fail "$(cat "$work/said")"
	grep -q '^said$' "$work/said" || fail "its stdout is not stderr"
}

# Commands that hang hold up nobody. Events for which there is no place wait; as it ends they are told as lost.
to_commands_that_hang()
{
	local i hung=()

	attacked one
	load one
	follow --exec "exec sleep 1000"
	for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		pacer allow s0 add "192.0.2.$i/32" >/dev/null
	done
	soon 'any(.[]; .what == "allow s0 add 192.0.2.12/32")'
	mapfile -t hung < <(pgrep -P "$follower")
	for i in "${hung[@]}"; do remember "$i" "$work/pids"; done # they outlive who follows
	equal "${#hung[@]}" 8 "that hang"
	equal "$(told '[.[] | select(.event == "lost")] | length')" 0 "lost while it goes on"
	unfollow
	equal "$(told '[([.[] | select(.event == "change")] | length) - 8, "runs of --exec"]
		== (.[-1] | [.n, .what])')" true "lost as it ends"
}

to_a_journal()
{
	attacked one
	load one
	refused 1 '/run/systemd/journal/socket is not there' in_server unshare -m bash -c \
		"mount -t tmpfs none /run && exec $BUILD/xdp-pacer events s0 --follow --journal"
	refused 2 '--journal, --least and --quiet are for --follow' in_server unshare -m bash -c \
		"mount -t tmpfs none /run && mkdir -p /run/systemd/journal && touch /run/systemd/journal/socket &&
			exec $BUILD/xdp-pacer events s0 --journal" || return
	cat >"$work/journald.py" <<-'END'
	import os, socket, sys
	os.makedirs("/run/systemd/journal")
	s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
	s.bind("/run/systemd/journal/socket")
	follower = os.spawnvp(os.P_NOWAIT, sys.argv[2], sys.argv[2:])
	out = open(sys.argv[1], "w")
	while True:
	    out.write(s.recv(1 << 20).decode() + "\n")
	    out.flush()
	END
	background "$SERVER" unshare -m bash -c "mount -t tmpfs none /run && exec python3 $work/journald.py $work/journal \
		$BUILD/xdp-pacer events s0 --follow --journal --quiet 1s" >"$work/events" 2>&1
	until_true 10 grep -q "from now on" "$work/events" || fail "$(cat "$work/events")"
	remember "$(pgrep -P "$pid")" "$work/pids"
	shoot n=300
	until_true 15 grep -q '^XDP_PACER_EVENT=end$' "$work/journal" || fail "$(cat "$work/journal")"
	for field in PRIORITY=4 SYSLOG_IDENTIFIER=xdp-pacer XDP_PACER_EVENT=start XDP_PACER_INTERFACE=s0 XDP_PACER_RULE=udp \
		XDP_PACER_SOURCES=one 'XDP_PACER_PACKETS=\(28[1-9]\|290\)' XDP_PACER_KEY=10.77.0.11; do
		grep -qx "$field" "$work/journal" || fail "no $field: $(cat "$work/journal")"
	done
	grep -Eq '^MESSAGE=[0-9TZ:.-]+ s0 start udp: [0-9]+ of [0-9]+ packets denied' "$work/journal" || fail "no message"
	grep -E '^MESSAGE_ID=[0-9a-f]{32}$' "$work/journal" | sort -u | wc -l | grep -qx '[4-9]' || fail "kinds are not told apart"
	sed -n 's/^XDP_PACER_JSON=//p' "$work/journal" | jq -e 'select(.event == "end") | .packets | . > 280 and . <= 290' >/dev/null ||
		fail "its JSON"
	kill "$(pgrep -P "$pid")"
}

of_the_past()
{
	local text bans rest

	attacked one "" "ban: 1h"
	load one
	equal "$(pacer events s0 --json | jq -c '[.events[] | [.event, .what // .key]]')" \
		"[[\"change\",\"load s0 -c $work/one.yaml\"]]" "at first"
	pacer events s0 | grep -Eq '^s0: 0 bans and 1 change or episode noted; the rest since 20[0-9TZ:.-]+$' ||
		fail "$(pacer events s0)"
	shoot n=12
	pacer set s0 udp.limits[0].packets=20 >/dev/null
	equal "$(pacer events s0 --json | jq -c '[.interface, [.events[] | [.event, .key // .what, .who]][1:], .lost]')" \
		'["s0",[["ban","10.77.0.11",null],["change","set s0 udp.limits[0].packets=20","root"]],{"bans":0,"others":0}]' "then"
	text=$(pacer events s0)
	grep -Eq '^s0: 1 ban and 2 changes or episodes noted; bans since 20[0-9TZ:.-]+; the rest since 20' <<<"$text" || fail "$text"
	bans=$(sed -n 's/.*; bans since \(20[0-9TZ:.-]*\).*/\1/p' <<<"$text")
	rest=$(sed -n 's/.*; the rest since \(20[0-9TZ:.-]*\).*/\1/p' <<<"$text")
	[[ $rest < $bans ]] || fail "the load was not before the ban: $text"
	grep -q 'only counters are kept unless somebody follows' <<<"$text" || fail "$text"
	# What somebody was told, the next one can see, once.
	off
	attacked one
	load one
	follow
	background "$SERVER" "$BUILD/xdp-pacer" events s0 --follow --quiet 1s >"$work/second"
	until_true 5 grep -q 'from now on' "$work/second"
	shoot n=300
	soon 'any(.[]; .event == "end")'
	until_true 10 grep -q ' s0 end udp: ' "$work/second" || fail "$(cat "$work/second")"
	kill "$pid"
	wait "$pid"
	unfollow
	equal "$(pacer events s0 --json | jq -c '[.events[] | select(.event == "start" or .event == "end") | [.event, .rule]]')" \
		'[["start","udp"],["end","udp"]]' "episodes"
	pacer events s0 | grep -Eq ' s0 end udp: (28[1-9]|290) of (29[0-9]|300) packets denied in [0-9.]+ s, most by window; sources: one$' ||
		fail "$(pacer events s0)"
	# What was written over is said.
	for _ in $(seq 130); do
		pacer allow s0 add 192.0.2.99/32 >/dev/null
		pacer allow s0 del 192.0.2.99/32 >/dev/null
	done
	equal "$(pacer events s0 --json | jq -c '[(.events | length), .lost.others > 0]')" '[256,true]' "written over"
	pacer events s0 | grep -Eq '^s0: 0 bans .*; lost: 0 bans, [1-9][0-9]* others$' || fail "$(pacer events s0 | tail -n 2)"
	# A command that is longer than what is kept of it is cut.
	# shellcheck disable=SC2046 # words
	pacer set s0 $(printf 'udp.limits[0].packets=%d ' $(seq 20 49)) >/dev/null
	equal "$(pacer events s0 --json | jq -c '[.events[] | .what | select(startswith("set s0 udp.limits[0].packets=20 udp"))] | map(length)')" \
		'[207]' "a long command"
}

wrong()
{
	attacked one
	load one
	refused 1 'nosuch0' pacer events nosuch0
	refused 1 'nosuch0' pacer events nosuch0 --follow
	refused 1 'lo: has no pacer' pacer events lo --follow
	refused 2 'it wants one interface' pacer events
	refused 2 'it wants one interface' pacer events --follow
	refused 2 'it wants one interface' pacer events s0 s0
	refused 2 'it wants one interface, or with --follow some or all' pacer events all
	refused 2 'are for --follow' pacer events s0 --exec true
	refused 2 'are for --follow' pacer events s0 --least 5
	refused 2 'are for --follow' pacer events s0 --quiet 1s
	refused 2 'least 0 is not a number' pacer events s0 --follow --least 0
	refused 1 "^xdp-pacer: s0123456789012345: is longer than an interface's own name" pacer events s0123456789012345 --follow
	refused 2 'with --replay it wants -c POLICY' pacer events --replay x.pcap
	refused 2 'that for no interface' pacer events s0 -c "$work/one.yaml"
	refused 2 'that for no interface' pacer events s0 --follow --replay x.pcap
	refused 1 'x.pcap' pacer events -c "$work/one.yaml" --replay "$work/x.pcap"
	in_server ip link property add dev lo altname all # what is named so is meant, as other verbs have it
	refused 1 'all: is another name of lo' pacer events all
	refused 1 'all: is another name of lo' pacer events all --follow
	in_server ip link property del dev lo altname all
}

net_up
check events-of-one-source of_one_source
check events-of-what-is-needed of_what_is_needed
check events-of-what-is-not-known of_what_is_not_known
check events-of-a-flood of_a_flood
check events-of-the-ordinary of_the_ordinary
check events-of-bans of_bans
check events-of-bans-of-two-states of_bans_of_two_states
check events-of-bans-that-grow of_bans_that_grow
check events-of-changes of_changes
check events-in-force-alone in_force_alone
check events-of-sudo of_sudo
check events-of-a-table-that-shares of_a_table_that_shares
check events-comes-and-goes comes_and_goes
check events-goes-and-is-told-late goes_and_is_told_late
check events-over-the-same-state over_the_same_state
check events-back-with-the-same-state back_with_the_same_state
check events-of-all of_all
check events-of-another-version of_another_version
check events-to-a-command to_a_command
check events-to-commands-that-hang to_commands_that_hang
check events-to-a-journal to_a_journal
check events-of-the-past of_the_past
check events-wrong wrong
finish
