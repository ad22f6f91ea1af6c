#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# `top` on a terminal, as somebody sees it who types: real traffic, the fixed parts of its picture,
# what its keys do to the pacer, and what it survives.
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

python=/usr/bin/python3 # which has the packages of scripts/setup
every_packet='{of: all, k: 64, packets: 1000}' # of few packets: a sample that is all of them

# on_screen ROWS COLUMNS VERB... <STEPS: on a terminal of its own (screen.py); its output is printed.
on_screen()
{
	shell_on_screen "$1" "$2" "exec '$BUILD/xdp-pacer' ${*:3}"
}

# shell_on_screen ROWS COLUMNS SCRIPT < STEPS
shell_on_screen()
{
	in_server env TERM="${term-linux}" LC_ALL="${locale:-C.UTF-8}" "$python" "$here/screen.py" \
		"$1" "$2" bash -c "$3" || fail "$(tail -n 40)"
}

# on_server COMMAND: how a step calls the pacer's side.
on_server()
{
	echo "run nsenter --net=/run/netns/$SERVER $*"
}

# watched_policy [SAMPLE]
watched_policy()
{
	policy watched <<-END
		rules:
		  - name: udp
		    match: {proto: udp, dport: 9000}
		    limits: [{key: "src/32,64", packets: 50, window: 1s}]
		  - name: other
		    match: {proto: udp}
		    limits: [{key: flow, rate: 10/s, burst: 5}]
		bans: 1000
		sample: ${1:-{of: all, k: 64, window: 60s\}}
	END
	load watched
}

# There is much of one source, whose packets are denied, and little of another.
some_traffic()
{
	watched_policy
	traffic_on 9000 1000 10.77.0.11=1000 10.77.0.12=20
	until_true 10 eval '[ "$(stats ".rules[0].denied.window")" -gt 1000 ]'
}

# What is on the screen is what is counted, at 80 columns and at 200.
shows()
{
	local got rate

	some_traffic
	got=$(on_screen 24 80 top s0 <<-'END'
		wait LAST ([3-9]|[1-9][0-9])s
		wait ^udp +.*kpps .*[▁▂▃▄▅▆▇█]{3}$
		wait ^10.77.0.11 +udp +window +[0-9.]+% \([0-9.]+\.\.[0-9.]+\)$
		picture
		resize 40 200
		wait TOTAL .* PEAK$
		wait ^DENIED .* ADMITTED
		resize 24 80
		wait ^ADMITTED
		type q
		exit 0
		modes
	END
	) || { traffic_off && fail "$got"; } || return
	traffic_off
	sed -n 1p <<<"$got" | grep -Eqx 's0: enforced, serial 1, native' || fail "$got" || return
	grep -Eq '^RULE +NOW +LAST ([3-9]|[1-9][0-9])s  PACKETS A SECOND, BY READING$' <<<"$got" || fail "$got" || return
	grep -Eq '^  window +[0-9.]+ k?pps' <<<"$got" || fail "$got" || return
	grep -Eq '^  admit +[0-9.]+ k?pps' <<<"$got" || fail "$got" || return
	grep -Eq '^busiest keys of [0-9,]+ packets \(all\) of the last 1m, by [0-9]+ samples, at 95%$' <<<"$got" ||
		fail "$got" || return
	grep -Eq '^udp.limits\[0\] src/32,64 +[0-9.]+% of [0-9,]+$' <<<"$got" || fail "$got" || return
	grep -qx 'bans: 0 of 1,000' <<<"$got" || fail "$got" || return
	# 1020 packets a second are sent, of a machine that may be busy none more.
	rate=$(sed -nE 's/^udp +([0-9.]+) kpps.*/\1/p' <<<"$got")
	awk -v r="$rate" 'BEGIN { exit !(r >= 0.5 && r <= 1.5) }' || fail "rate $rate: $got"
}

# w asks why; b and a ask back, and what they change is changed.
acts()
{
	local got

	some_traffic
	got=$(on_screen 30 100 top s0 <<-'END'
		wait ^10.77.0.11 +udp +window
		type w
		wait choose a key, then w, b or a
		type w
		wait ^xdp-pacer why s0 10.77.0.11$
		wait udp.limits\[0\]: 50 packets in 1s
		type q
		wait ^DENIED
		type b
		wait ^y/n: ban 10.77.0.11 under udp for 10m\?
		type n
		wait nothing was changed
		type b
		wait ^y/n
		type +y
		wait ^s0: 1 key banned
		wait ^bans: 1 of 1,000: udp 1
		type a
		wait ^y/n: allow 10.77.0.11 for 10m\?
		type y
		wait ^s0: 10.77.0.11 is on the allow-list
		type q
		exit 0
		modes
	END
	) || { traffic_off && fail "$got"; } || return
	traffic_off
	equal "$(pacer ban s0 list --json | jq -c '[.[] | [.key, .rule, .left_ns > 3e12 and .left_ns <= 3.6e12]]')" \
		'[["10.77.0.11","udp",true]]' "bans" || return
	equal "$(pacer allow s0 list --json | jq -c '[.[] | [.prefix, .left_ns > 0 and .left_ns <= 6e11]]')" \
		'[["10.77.0.11",true]]' "the allow-list"
}

# A command that has more to say than a page and a pipe hold is cut off, and `top` goes on.
says_much()
{
	{
		printf 'memory: 128Mi\nsample: %s\nrules:\n' "$every_packet"
		for i in {9000..9255}; do
			printf -- '- {name: rule-with-a-name-of-length-%s, match: {proto: udp, dport: %s}, limits: [' "${i: -3}" "$i"
			printf '{key: src, packets: 5, window: %ss}, ' 1 2 3 4
			echo ']}'
		done
	} >"$work/many.yaml"
	load many
	arrive 5 n=6
	on_screen 24 80 top s0 --every 200ms <<-'END'
		wait ^10.77.0.11 +rule-with-a
		type ww
		wait ^xdp-pacer why s0 10.77.0.11$
		wait arrows for more
		type \e[4~
		gone name-of-length-000
		type \e[1~
		wait name-of-length-000
		type q
		wait ^DENIED
		type q
		exit 0
		modes
	END
}

# A filter, sorting, a pause, help; all keys at once, and keys that are none.
# A flow is one word, and what a command that failed says has a page, too. The list stands beside another.
asks_of_a_flow()
{
	watched_policy "$every_packet"
	arrive "1" n=1,dport=7
	on_screen 30 200 top s0 --every 1m <<-END
		wait 10.77.0.11>10.77.0.1 udp 4000 7 +other
		type w
		wait choose a key, then w, b or a
		type w
		wait ^xdp-pacer why s0 "10.77.0.11>10.77.0.1 udp 4000 7"$
		wait other.limits
		type q
		wait ^DENIED
		$(on_server "$BUILD/xdp-pacer" unload s0 ">/dev/null")
		type w
		wait ^xdp-pacer why s0 "10.77.0.11>10.77.0.1 udp 4000 7"$
		wait ^xdp-pacer: s0: has no pacer
		type q
		wait ^DENIED
		type q
		exit 0
		modes
	END
}

# A character that takes two cells, or none, would move all that is behind it. An interface that goes may come again.
shows_wide_characters_as_one()
{
	watched_policy
	in_server ip link add n日 type veth peer name n1
	in_server ip link set n日 up
	pacer load n日 -c "$work/watched.yaml" --mode skb --direct >/dev/null
	on_screen 24 80 top n日 --every 100ms <<-END || return
		wait ^n\?: enforced, serial 1, skb
		$(on_server ip link del n日)
		wait ^n\?: .*no such interface
		type u
		wait BITS A SECOND
		$(on_server ip link add n日 type veth peer name n1)
		$(on_server ip link set n日 up)
		wait ^n\?: .*no pacer
		$(on_server "$BUILD/xdp-pacer" load n日 -c "$work/watched.yaml" --mode skb --direct ">/dev/null")
		wait ^n\?: enforced, serial 1, skb
		type q
		exit 0
		modes
	END
	in_server ip link del n日
}

takes_keys()
{
	local got

	some_traffic
	got=$(on_screen 30 100 top s0 --every 200ms <<-END
		wait ^udp .*pps
		type foth\r
		wait ^s0: .*, rule oth$
		gone ^udp .*pps
		wait none in the sample
		type \e
		wait ^udp .*pps
		type s
		wait RULE, by packets
		type u
		wait BITS A SECOND
		type p
		wait PAUSED
		$(on_server "$BUILD/xdp-pacer" set s0 udp.packets=60 ">/dev/null")
		$(on_server "$BUILD/xdp-pacer" set s0 udp.packets=70 ">/dev/null")
		wait serial 1,
		type p
		wait serial 3,
		type ?
		wait pause: the picture stays, readings go on
		type \e[B\e[A\e[6~\e[5~
		type \r
		wait ^DENIED
		type \e[Z\x01\x7f%
		type rrr
		gone ^  window
		type q
		exit 0
		modes
	END
	) || { traffic_off && fail "$got"; } || return
	traffic_off
}

# A change of policy, another name, no pacer, no interface, and a pacer again; sizes; signals.
survives()
{
	watched_policy
	policy other <<-END
		rules:
		  - {name: new, match: {proto: udp, dport: 9000}, limits: [{key: src, gap: 1ms}]}
	END
	on_screen 24 80 top s0 --every 200ms <<-END
		wait ^udp
		resize 5 20
		wait ^s0: enforced, serial$
		resize 1 1
		resize 2 10
		wait ^s0: enforc$
		resize 60 220
		wait TOTAL
		resize 24 80
		wait ^bans: 0 of 1,000
		$(on_server "$BUILD/xdp-pacer" apply s0 -c "$work/other.yaml" ">/dev/null")
		wait ^new
		gone ^udp
		wait the policy samples nothing: apply one with sample
		$(on_server ip link set s0 down)
		$(on_server ip link set s0 name renamed0)
		$(on_server ip link set renamed0 up)
		wait ^renamed0: enforced, serial 2, native
		$(on_server "$BUILD/xdp-pacer" unload renamed0 ">/dev/null")
		wait ^renamed0: .*no pacer
		wait ^new
		$(on_server ip link set renamed0 down)
		$(on_server ip link set renamed0 name s0)
		$(on_server ip link set s0 up)
		wait ^s0: .*no pacer
		$(on_server "$BUILD/xdp-pacer" load s0 -c "$work/watched.yaml" ">/dev/null")
		wait ^s0: enforced, serial 1, native
		wait ^udp
		$(on_server "$BUILD/xdp-pacer" load s0 -c "$work/other.yaml" --monitor --replace ">/dev/null")
		wait ^s0: monitor, serial 1, native +NOTHING IS DROPPED
		type q
		exit 0
		modes
	END
}

# Whoever owns the terminal says what size it has, and may say what curses cannot bear.
survives_any_size()
{
	local size

	watched_policy
	for size in "65535 65535" "24 40000" "40000 80"; do
		on_screen 24 80 top s0 --every 100ms <<-END || return
			wait ^udp
			size $size
			type s
			type q
			exit 0
			modes
		END
		# shellcheck disable=SC2086 # two words
		shell_on_screen 24 80 "stty rows ${size% *} cols ${size#* }; exec '$BUILD/xdp-pacer' top s0 --every 100ms" \
			<<-END || return
			wait s0: enforced
			type q
			exit 0
			modes
		END
	done
}

ends_by_signals()
{
	local signal

	watched_policy
	for signal in INT:-2 HUP:-1 TERM:-15; do
		on_screen 24 80 top s0 <<-END || return
			wait ^udp
			signal ${signal%:*}
			exit ${signal#*:}
			modes
		END
	done
	on_screen 24 80 top s0 <<-'END' || return
		wait ^udp
		type \x03
		exit -2
		modes
	END
	on_screen 24 80 top s0 --every 100ms <<-'END' || return # ctrl-S: no picture comes any more
		wait ^udp
		type \x13s
		still
		signal TERM
		exit -15
		keys
	END
	on_screen 24 80 top s0 --every 100ms <<-'END' || return # nor what takes the last one away
		wait ^udp
		type p
		wait PAUSED
		type \x13q
		exit 0
		keys
	END
	shell_on_screen 24 80 "trap '' HUP; exec '$BUILD/xdp-pacer' top s0" <<-'END' # as nohup does
		wait ^udp
		signal HUP
		type s
		wait RULE, by packets
		type q
		exit 0
		modes
	END
}

# Where nothing can be drawn it says so, in one line; --once and --json want no terminal.
# Whoever began it is killed, and a shell has the terminal: what is typed to others would keep it busy for good.
ends_where_keys_are_of_others()
{
	local got

	watched_policy
	cat >"$work/began" <<-END
		echo \$\$ >'$work/began.pid'
		bash -c 'echo \$\$ >"$work/top.pid"; exec "$BUILD/xdp-pacer" top s0'
		true
	END
	cat >"$work/leads" <<-END
		set -m
		bash '$work/began'
		touch '$work/leads.on'
		while kill -0 \$(<'$work/top.pid') 2>/dev/null; do sleep 0.1; done
		clear
		echo top has ended
	END
	got=$(shell_on_screen 24 80 "exec bash '$work/leads'" <<-END
		wait ^RULE
		run kill -KILL \$(cat $work/began.pid)
		run until [ -e $work/leads.on ]; do sleep 0.1; done
		type x
		wait ^top has ended$
		exit 0
	END
	) || fail "$got"
}

without_a_terminal()
{
	local lines term columns

	watched_policy
	for term in dumb ""; do
		on_screen 24 80 top s0 <<-'END' || return
			wait ^xdp-pacer: top: there is no terminal that it could draw on
			exit 1
			modes
		END
	done
	unset term
	# No keys come from elsewhere, nor to what is in the background, which the terminal would stop.
	for lines in "'$BUILD/xdp-pacer' top s0 </dev/null" "set -m; '$BUILD/xdp-pacer' top s0 & wait \$!"; do
		shell_on_screen 24 80 "$lines" <<-'END' || return
			wait ^xdp-pacer: top: there is no terminal that it could draw on
			exit 1
		END
	done
	refused 1 'top: there is no terminal that it could draw on: use --once or --json' pacer top s0
	term=no-such-kind on_screen 24 80 top s0 <<-'END' || return
		wait ^xdp-pacer: top: nothing is known of the terminal no-such-kind: set TERM, or use
		exit 1
		modes
	END
	refused 1 's0x: .*' pacer top s0x --once
	refused 2 'it wants one interface' pacer top --once
	refused 2 'it wants one interface' pacer top all --once
	refused 2 '100ms or more' pacer top s0 --every 1ms
	off
	watched_policy "$every_packet"
	arrive "50" n=60
	lines=$(unset COLUMNS && LC_ALL=C pacer top s0 --once --every 100ms)
	grep -Eq '^  window +0 pps +0 bit/s +10$' <<<"$lines" || fail "$lines" || return
	grep -Eq '^10.77.0.11 +udp +window +17% \(17\.\.17\)$' <<<"$lines" || fail "$lines" || return
	! LC_ALL=C grep -q '[^ -~]' <<<"$lines" || fail "not plain: $lines" || return
	for columns in 99 101 100; do # the last is what it has where nobody says
		LC_ALL=C COLUMNS=$columns pacer top s0 --once --every 100ms >"$work/$columns"
	done
	! cmp -s "$work/99" "$work/100" && ! cmp -s "$work/101" "$work/100" || fail "any width is as good: $lines" || return
	equal "$lines" "$(cat "$work/100")" "the picture of 100 columns" || return
	for columns in 80 600; do
		on_screen 60 "$columns" top s0 --once --every 100ms <<-'END' || return
			wait ^10.77.0.11 +udp +window +17% \(17..17\)
			exit 0
			fits
			modes
		END
	done
	locale=C on_screen 24 80 top s0 --every 100ms <<-'END'
		wait ^udp
		type q
		exit 0
	END
}

# One object a line, with what stats tells; it goes on where there is no pacer for a while.
as_json()
{
	local once

	watched_policy "$every_packet"
	arrive "50 1" n=60 n=1,from=fd77::12,dport=7
	once=$(pacer top s0 --once --json --every 100ms)
	equal "$(jq -c '[.interface, .paced, .mode, .serial, .rules[0].admitted, .rules[0].denied.window,
		.rules[1].admitted]' <<<"$once")" '["s0",true,"enforce",1,50,10,1]' "counted" || return
	jq -e '.rates.minute == null and (.rules[0].rates.now | .packets_per_s == 0 and .denied_per_s == 0)' \
		<<<"$once" >/dev/null || fail "rates: $once" || return
	jq -e 'def is($n): (. - $n / 61 | fabs) < 1e-5;
		.keys | .of == "all" and .window_packets == 1000 and .packets == 61 and .samples == 61
		and ([.denied[] | [.key, .rule, .reason]] == [["10.77.0.11", "udp", "window"]])
		and (.denied[0].share | (.low | is(10)) and (.value | is(10)) and (.high | is(10)))
		and ([.admitted[] | [.source, .rule, .samples]]
			== [["10.77.0.11", "udp", 50], ["fd77::12", "other", 1]])' <<<"$once" >/dev/null ||
		fail "$once" || return
	jq -e '.tables == [.tables[] | select(.used <= .capacity)] and .tables[0].used == 1
		and .bans == {room: .bans.room, counted: true, sources: 0, rules: {udp: 0, other: 0}, gone: 0}
		and .bans.room >= 1000' <<<"$once" >/dev/null || fail "$once" || return
	pacer ban s0 add 10.77.0.13 >/dev/null
	arrive "0" n=5,from=10.77.0.13 # now there are two packets more than the sample holds
	pacer ban s0 add 10.77.0.14 --rule udp >/dev/null
	pacer set s0 mode=monitor --confirm-within 60s >/dev/null
	once=$(pacer top s0 --once --json --every 100ms)
	jq -e '.bans.sources == 1 and .bans.rules == {udp: 1, other: 0} and .bans.gone == 0
		and .confirm_within_ns > 5e10 and .confirm_within_ns <= 6e10' <<<"$once" >/dev/null || fail "$once" || return
	jq -e '(.unparsed | keys) == ["bad_header", "too_deep", "truncated"]
		and (.no_limit | keys) == ["allowed", "no_rule", "not_ip"]' <<<"$once" >/dev/null || fail "$once" || return
	equal "$(jq -c '[.keys | .window_ns, .cpus_behind, .delta]' <<<"$once")" "[0,0,0.05]" "of the sample" || return
	jq -e 'all(.tables[]; .shared == 0 and .shared_capacity > 0 and .shared_capacity < .capacity)' <<<"$once" >/dev/null ||
		fail "$once" || return
	equal "$(jq -c '[.mode, .banned_sources, (.keys.denied[] | select(.rule == null) | [.reason, .samples >= 3])]' <<<"$once")" \
		'["monitor",5,["ban",true]]' "a source that is banned whatever the rule" || return
	pacer confirm s0 >/dev/null
	background "$SERVER" "$BUILD/xdp-pacer" top s0 --json --every 100ms >"$work/lines"
	until_true 10 eval '[ "$(wc -l <"$work/lines")" -ge 3 ]'
	pacer unload s0 >/dev/null
	until_true 10 grep -q '"paced":false' "$work/lines"
	load watched --mode skb
	until_true 10 eval 'tail -n 1 "$work/lines" | grep -q "\"attach_mode\":\"skb\""'
	kill "$pid"
	unread top s0 --json --every 100ms || return
	sed '$d' "$work/lines" | jq -c '[.paced, .rates.minute.span_ns >= .rates.now.span_ns]' | sort -u >"$work/kinds"
	equal "$(jq -sc 'map(.[0]) | unique' "$work/kinds")" "[false,true]" "lines with a pacer, and without" || return
	grep '"paced":false' "$work/lines" | head -n 1 | jq -e '.error | startswith("s0: has no pacer")' >/dev/null ||
		fail "$(grep '"paced":false' "$work/lines" | head -n 1)"
}

net_up
check top-shows shows
check top-acts acts
check top-says-much says_much
check top-asks-of-a-flow asks_of_a_flow
check top-shows-wide-characters-as-one shows_wide_characters_as_one
check top-takes-keys takes_keys
check top-survives survives
check top-survives-any-size survives_any_size
check top-ends-by-signals ends_by_signals
check top-ends-where-keys-are-of-others ends_where_keys_are_of_others
check top-without-a-terminal without_a_terminal
check top-as-json as_json
finish
