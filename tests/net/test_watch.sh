#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Rates beside totals: of one call over the time that it waits, of a watch over as much of the last
# minute as it has seen; and a watch on a terminal that is too small for it.
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

python=/usr/bin/python3 # which has the packages of scripts/setup

# on_screen ROWS COLUMNS VERB... <STEPS: on a terminal of its own (screen.py); its output is printed.
on_screen()
{
	in_server env TERM=linux LC_ALL=C.UTF-8 "$python" "$here/screen.py" "$1" "$2" \
		"$BUILD/xdp-pacer" "${@:3}" || fail "$(cat)"
}

# A script gets no rates, and waits for none, unless it asks; then they are of two readings.
one_call()
{
	local rates began

	limit ten 10
	load ten
	equal "$(stats '[.rates, .rules[0].rates] | tojson')" "[null,null]" "rates that were not asked for"
	traffic_on 9000 1000 10.77.0.11=400
	until_true 10 eval '[ "$(stats .rules[0].matched)" -gt 10 ]'
	began=$(date +%s%N)
	rates=$(pacer stats s0 --json --over 1500ms | jq -c '.rules[0].rates, .rates')
	[ $(($(date +%s%N) - began)) -ge 1500000000 ] || fail "it has not waited" || return
	jq -se 'all(.minute == null)' <<<"$rates" || fail "a minute that nobody saw: $rates" || return
	# What is sent in so long a time, but for a tenth: the machine has other work.
	jq -e 'select(.now.admitted_per_s != null) | .now | .span_ns >= 15e8 and .denied_per_s <= .packets_per_s
		and .packets_per_s > 0 and .bits_per_s / .packets_per_s >= 8 * 42' <<<"$rates" ||
		fail "$rates" || return
	traffic_off
	began=$(date +%s%N)
	pacer stats s0 | grep -Eq '^ *RULE +MATCHED +ADMITTED +DENIED +NOW$' || fail "$(pacer stats s0)" || return
	[ $(($(date +%s%N) - began)) -ge 1000000000 ] || fail "it has not waited for a second"
}

# The rate is what was counted between two readings, over what lay between them.
exact_rates()
{
	limit ten 10
	load ten
	arrive 10 n=20
	background "$SERVER" "$BUILD/xdp-pacer" stats s0 --watch --json --over 200ms >"$work/lines"
	until_true 10 eval '[ "$(wc -l <"$work/lines")" -ge 2 ]'
	arrive 0 n=30
	until_true 10 grep -q '"matched":50' "$work/lines"
	until_true 10 eval '[ "$(grep -c "\"matched\":50" "$work/lines")" -ge 3 ]'
	kill "$pid"
	# One object a line; the last may have been cut.
	sed '$d' "$work/lines" | jq -c '[.time_ns, .rules[0].matched, .rules[0].rates]' >"$work/rates"
	equal "$(wc -l <"$work/rates")" "$(($(wc -l <"$work/lines") - 1))" "lines that are an object"
	jq -se '
		def near($a; $b): ($a - $b) | fabs < 1e-3 * ($b + 1);
		. as $all | .[0][2] == null and .[1][2].minute == null
		and all(range(1; length); . as $i | $all[$i] as [$t, $n, $r] | $all[$i - 1] as [$t0, $n0, $_]
			| $r.now.span_ns == $t - $t0
			and near($r.now.packets_per_s; ($n - $n0) * 1e9 / ($t - $t0)))
		and all(range(2; length); . as $i | $all[$i] as [$t, $n, $r] | $all[0] as [$t0, $n0, $_]
			| $t - $t0 > 6e10 or ($r.minute.span_ns == $t - $t0
			and near($r.minute.packets_per_s; ($n - $n0) * 1e9 / ($t - $t0))))' <"$work/rates" >/dev/null ||
		fail "$(cat "$work/rates")"
}

# Readings that were due while it was stopped are left out: the second one from each is a whole time behind it.
stopped_meanwhile()
{
	local n

	limit ten 10
	load ten
	background "$SERVER" "$BUILD/xdp-pacer" stats s0 --watch --json --over 300ms >"$work/lines"
	until_true 10 eval '[ "$(wc -l <"$work/lines")" -ge 2 ]'
	kill -STOP "$pid"
	sleep 2
	n=$(wc -l <"$work/lines")
	kill -CONT "$pid"
	until_true 10 eval '[ "$(wc -l <"$work/lines")" -ge $((n + 5)) ]'
	kill "$pid"
	sed '$d' "$work/lines" | jq -se 'map(.time_ns) | . as $t | all(range(2; length); $t[.] - $t[. - 2] > 3e8)' >/dev/null ||
		fail "$(jq -c .time_ns "$work/lines")"
}

# It fits the screen, whatever its size; q ends it, and the terminal is as it was.
on_a_terminal()
{
	local got

	{
		echo rules:
		for i in $(seq 30); do
			echo "  - {name: rule$i, match: {proto: udp, dport: $((9000 + i))}, limits: [{key: src, gap: 1ms}]}"
		done
	} | policy many
	load many
	got=$(on_screen 24 80 stats s0 --watch <<-'END'
		wait NOW
		wait LAST [0-9]+ S
		wait ^11 more lines; q ends it$
		fits
		picture
		resize 50 120
		wait rule30
		wait ^q ends it$
		fits
		resize 5 20
		wait ^[0-9]+ more lines; q en$
		fits
		resize 24 80
		wait ^11 more lines; q ends it$
		type x
		type q
		exit 0
		modes
	END
	) || fail "$got" || return
	equal "$(wc -l <<<"$got")" 24 "lines of the picture" || return
	grep -Eq '^  rule19 +0 +0 +0 +0 pps +0 bit/s +0 pps$' <<<"$got" || fail "$got"
}

# A signal and an unload end it as they end what is no watch, and leave the terminal in order.
ends_in_order()
{
	limit ten 10
	load ten
	on_screen 24 80 stats s0 -w <<-'END' || return
		wait q ends it
		signal TERM
		exit -15
		modes
	END
	on_screen 24 80 stats s0 -w <<-END
		wait q ends it
		run nsenter --net=/run/netns/$SERVER $BUILD/xdp-pacer unload s0
		wait ^xdp-pacer: s0: .*no pacer
		exit 1
		modes
	END
}

# Two interfaces have a table each on one screen.
two_on_a_screen()
{
	limit ten 10
	sed 's/^rules:/bans: 64\n&/; s/^    limits:/    ban: 50s\n&/' "$work/ten.yaml" >"$work/bans.yaml"
	load bans
	in_server ip link add s9 type veth peer name s8
	in_server ip link set s9 up
	pacer load s9 -c "$work/ten.yaml" >/dev/null || fail "s9: not loaded" || return
	arrive 10 n=20
	on_screen 24 80 stats all --watch <<-'END'
		wait ^s0: enforced$
		wait ^  udp +20 +10 +10 +0 pps +0 bit/s +0 pps$
		wait ^ +banned +1$
		wait ^s9: enforced$
		wait ^  udp +0 +0 +0 +0 pps +0 bit/s +0 pps$
		wait ^q ends it$
		resize 6 80
		wait ^[0-9]+ more lines; q ends it$
		fits
		type Q
		exit 0
		modes
	END
	in_server ip link del s9
}

net_up
check watch-one-call one_call
check watch-exact-rates exact_rates
check watch-stopped-meanwhile stopped_meanwhile
check watch-on-a-terminal on_a_terminal
check watch-two-on-a-screen two_on_a_screen
check watch-ends-in-order ends_in_order
finish
