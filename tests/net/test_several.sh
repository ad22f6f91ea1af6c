#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Several interfaces: a state each or one for all, all of them or none, and the odd ones.
#
#   client                                          server
#   10.77.0.11-18   c0 ------veth------ s0          a pacer each,
#   10.77.0.11-18   c1 ------veth------ s1          or one for both
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

second_pair()
{
	in_client ip link add c1 type veth peer name s1 netns "$SERVER"
	in_client ip link set c1 addrgenmode none
	in_server ip link set s1 addrgenmode none
	in_client ethtool -K c1 gro on
	in_client ip link set c1 up
	in_server ip link set s1 up
}

# both_off: no program on either.
both_off()
{
	off
	in_server ip link set dev s1 xdp off
	in_server ip link set dev s1 xdpgeneric off
}

# on PAIR "N..." SHOT...: as arrive, by that pair.
on()
{
	SHOTS_PAIR=$1 arrive "${@:2}"
}

both()
{
	pacer load s0 s1 -c "$work/$1.yaml" "${@:2}" >/dev/null
}

# Each of the two lets ten through.
state_each()
{
	both_off
	limit ten 10
	both ten
	on 0 "10 0" n=15 n=5
	on 1 "10 0" n=15 n=5
	equal "$(status .shared_with)" "[]" "with whom s0 shares"
	pacer set s0 udp.packets=12 >/dev/null
	on 0 "2" n=5
	on 1 "0" n=5
}

# Both together let ten through, and each change is of both.
one_for_both()
{
	both_off
	limit ten 10
	both ten --shared
	on 0 "6" n=6
	on 1 "4 0" n=6 n=5
	on 0 "0" n=5
	equal "$(stats '.rules[0] | "\(.matched) \(.admitted)"')" "22 10" "matched, admitted"
	equal "$(pacer stats s1 --json | jq -r '.rules[0].matched')" 22 "what s1 has counted"
	equal "$(status .shared_with)" '["s1"]' "with whom s0 shares"
	equal "$(pacer status s1 --json | jq -c .shared_with)" '["s0"]' "with whom s1 shares"
	pacer status s0 | grep -q 'shared    with s1' || fail "status does not say that it is shared"
	pacer set s1 udp.packets=12 >/dev/null
	on 0 "1" n=1
	on 1 "1 0" n=5 n=1
	pacer allow s0 add 10.77.0.12 >/dev/null
	on 1 "20" n=20,from=10.77.0.12
	pacer ban s1 add 10.77.0.12 >/dev/null 2>&1 || true # the allow-list goes before
	pacer allow s1 del 10.77.0.12 >/dev/null
	limit more 20
	pacer apply s0 -c "$work/more.yaml" >/dev/null
	on 1 "8 0" n=10 n=1
}

# A change that names both is done once; its result says so of the second.
changed_once()
{
	local serial

	both_off
	limit ten 10
	limit more 20
	both ten --shared
	serial=$(status .serial)
	pacer apply s0 s1 -c "$work/more.yaml" --json >"$work/out"
	equal "$(jq -rc '[.[] | .interface, .result.limits.kept, .result.shared_with] | tostring' "$work/out")" \
		'["s0",1,["s1"],"s1",null,"s0"]' "the result of apply s0 s1"
	equal "$(status .serial)" $((serial + 1)) "how often the policy was changed"
	pacer apply s0 s1 -c - <"$work/ten.yaml" --confirm-within 60s >/dev/null
	pacer confirm all >/dev/null
	equal "$(status .confirm_within_ns)" 0 "what is still to be confirmed"
	pacer set all udp.packets=11 >/dev/null
	on 1 "11" n=15
}

# A change that names one says whom else it is of.
others_told()
{
	local verb

	both_off
	limit ten 10
	sed -i 's/^rules:/bans: 64\nsets: [{name: few, of: 10.79.0.1}]\n&/' "$work/ten.yaml"
	both ten --shared
	for verb in "apply s0 -c $work/ten.yaml --confirm-within 60s" "confirm s0" "set s0 udp.packets=11" \
		"rotate s0" "allow s0 add 10.79.0.2" "allow s0 del 10.79.0.2" "ban s0 add 10.79.0.3" \
		"ban s0 del 10.79.0.3" "sets s0 add few 10.79.0.4" "sets s0 del few 10.79.0.4" "upgrade s0"; do
		# shellcheck disable=SC2086 # words
		equal "$(pacer $verb --json | jq -c .shared_with)" '["s1"]' "whom $verb tells of" || return
	done
	pacer set s0 udp.packets=10 | grep -qx 'the same is done on s1, which shares this state' || fail "set" || return
	pacer upgrade s1 | grep -q "its state is that of s0, which has a program of its own: upgrade" ||
		fail "upgrade" || return
	on 0 "6" n=6
	on 1 "4" n=6
	pacer load s0 -c "$work/ten.yaml" --replace >"$work/out"
	grep -qx "that one's goes on with s1" "$work/out" || fail "$(cat "$work/out")" || return
	on 0 "9" n=9
	on 1 "0" n=6
	equal "$(pacer load s0 -c "$work/ten.yaml" --replace --json | jq -c .replaced.shared_with)" '[]' \
		"of one that shared with nobody"
	off
	equal "$(pacer set s1 udp.packets=12 | wc -l)" 1 "lines of one that shares with nobody"
}

# Whom it shares its state with is not said to be nobody where one of the interfaces could not be looked at.
others_unknown()
{
	local calls=socket code n of="which interfaces share its state cannot be told" unknown=0

	both_off
	limit ten 10
	both ten --shared
	for ((n = 1; ; n++)); do
		code=0
		in_server timeout -k 1 60 "$(tool fault)" "fcntl:$calls" "$n" 12 "$BUILD/xdp-pacer" status s0 --json \
			>"$work/out" 2>"$work/err" || code=$?
		((code >= 100)) || break
		grep -q "$of" "$work/err" || continue
		unknown=$((unknown + 1))
		equal "$code $(jq -c .shared_with "$work/out")" "101 null" "call $n: status" || return
	done
	((n > 1 && unknown > 1)) || fail "$unknown of $n calls" || return
	unknown=0
	for ((n = 1; ; n++)); do
		code=0
		in_server timeout -k 1 60 "$(tool fault)" "fcntl:$calls" "$n" 12 "$BUILD/xdp-pacer" \
			set s0 udp.packets=$((10 + n)) --json >"$work/out" 2>"$work/err" || code=$?
		((code >= 100)) || break
		grep -q "$of" "$work/err" || continue
		unknown=$((unknown + 1))
		equal "$code $(jq -c .shared_with "$work/out")" "100 null" "call $n: set" || return
	done
	((unknown > 1)) || fail "$unknown of $n calls"
	for ((n = 1; ; n++)); do
		code=0
		in_server timeout -k 1 60 "$(tool fault)" "fcntl:$calls" "$n" 12 "$BUILD/xdp-pacer" \
			save s0 "$work/s0.state" --and-unload >"$work/out" 2>"$work/err" || code=$?
		equal "$((code % 100))" 1 "call $n: save --and-unload: $(cat "$work/out")" || return
		((code >= 100)) || break
	done
	on 0 "20" n=20
}

# From stdin the policy is read once, and is there for each.
from_stdin()
{
	both_off
	limit ten 10
	limit more 20
	both ten
	pacer apply s0 s1 -c - <"$work/more.yaml" >/dev/null
	on 0 "20" n=25
	on 1 "20" n=25
	limit most 30
	pacer apply s0 s1 -c <(cat "$work/most.yaml") >/dev/null
	on 0 "10" n=15
	on 1 "10" n=15
	pacer show s0 s1 --diff <(cat "$work/most.yaml") --json >"$work/out"
	equal "$(jq -c 'map(.result.differences | length)' "$work/out")" '[0,0]' "what differs"
}

# The other goes on, with what was counted and the policy's time.
one_leaves()
{
	both_off
	limit ten 10
	both ten --shared
	refused 1 '^xdp-pacer: s0: its state is shared with s1, which would let nothing through' \
		pacer save s0 "$work/s0.state" --and-unload
	on 0 "6" n=6
	equal "$(pacer unload s0 --json | jq -c .shared_with)" '["s1"]' "with whom it was shared"
	equal "$(what_is_on s0)" "{}" "what is on s0"
	on 0 "20" n=20
	on 1 "4 0" n=5 n=5
	equal "$(pacer status s1 --json | jq -c .shared_with)" '[]' "with whom s1 shares"
	pacer set s1 udp.packets=11 >/dev/null
	on 1 "1" n=5
	pacer unload all >/dev/null
	equal "$(what_is_on s1)" "{}" "what is on s1"
}

# within_far COMMAND...: in a network namespace of its own, which it has no name for here.
within_far()
{
	nsenter --net="/proc/$far/ns/net" "$@"
}

is_far()
{
	[ "$(cat "/proc/$far/comm")" = sleep ]
}

# One that is moved to another network namespace goes on with the state, so that this has to stay in one place.
one_moves()
{
	local code far elsewhere="of an interface of another network namespace: move that back, or .xdp-pacer unload. it there$"

	both_off
	limit ten 10
	both ten --shared --direct
	background "$SERVER" unshare --net sleep 600
	far=$pid
	until_true 5 is_far || fail "no other namespace" || return
	in_server ip link set s1 netns "$far"
	within_far ip link set s1 up
	on 0 "6" n=6
	refused 1 "^xdp-pacer: s0: which interfaces share its state .*: program [0-9]+ has it, $elsewhere" \
		pacer save s0 "$work/s0.state" --and-unload
	refused 1 "^xdp-pacer: s0: which interfaces share its state .*, $elsewhere" pacer shadow s0 -c "$work/ten.yaml"
	on 0 "4" n=6
	code=0
	pacer status s0 --json >"$work/out" 2>"$work/err" || code=$?
	equal "$code $(jq -c .shared_with "$work/out")" "1 null" "status" || return
	grep -q "$elsewhere" "$work/err" || fail "$(cat "$work/err")" || return
	within_far "$BUILD/xdp-pacer" unload s1 >/dev/null
	equal "$(status .shared_with)" "[]" "with whom s0 shares"
	# An agent that has a program open that is no more is none that shares.
	background "$SERVER" "$BUILD/xdp-pacer" stats s0 --watch --json >"$work/out"
	until_true 5 test -s "$work/out" || fail "no reading" || return
	kill -STOP "$pid"
	pacer upgrade s0 >/dev/null
	equal "$(status .shared_with)" "[]" "with whom s0 shares"
	kill -KILL "$pid"
	pacer save s0 "$work/s0.state" --and-unload >/dev/null
	within_far ip link set s1 netns "$SERVER"
	kill "$far"
	in_server ip link set s1 up
}

# Each failure leaves both as they were.
all_or_none()
{
	local before

	both_off
	limit ten 10 600s # longer than a load takes on a busy machine
	refused 1 'nosuch: there is no such interface.*; nothing is changed on s0' pacer load s0 nosuch -c "$work/ten.yaml"
	equal "$(what_is_on s0)" "{}" "what is on s0"
	in_server ip link set s1 down
	refused 1 's1: the interface is down.*; nothing is changed on s0' pacer load s0 s1 -c "$work/ten.yaml" --shared
	in_server ip link set s1 up
	equal "$(what_is_on s0)" "{}" "what is on s0"
	# Only the attaching fails: of the second, after the first.
	in_server ip link add br0 type bridge
	in_server ip link set br0 up
	refused 1 'br0: a bridge takes no native.*; nothing is changed on s0' pacer load s0 br0 -c "$work/ten.yaml"
	equal "$(what_is_on s0)" "{}" "what is on s0"
	# One that was there stays, with what it had counted.
	load ten
	on 0 "6" n=6
	before=$(status .program_id)
	# What comes meanwhile is held to what is left: no new pacer lets its source begin anew.
	traffic_on 9000 1000 10.77.0.11=100
	refused 1 'br0: a bridge takes no native' pacer load s0 br0 -c "$work/ten.yaml" --replace
	traffic_off
	equal "$arrived" 4 "what arrived meanwhile"
	equal "$(status .program_id)" "$before" "the program on s0"
	on 0 "0" n=6
	refused 1 's0: is paced already.*; nothing is changed on s1' pacer load s1 s0 -c "$work/ten.yaml"
	equal "$(what_is_on s1)" "{}" "what is on s1"
	in_server ip link del br0
	# Both are replaced, by one state.
	both ten --shared --replace
	on 0 "6" n=6
	on 1 "4" n=6
}

# A verb that changes something does nothing if one has no pacer.
none_where_one_lacks()
{
	local serial

	both_off
	limit ten 10
	limit more 20
	load ten
	serial=$(status .serial)
	refused 1 's1: has no pacer.*; nothing is changed on s0' pacer apply s0 s1 -c "$work/more.yaml"
	refused 1 's1: has no pacer' pacer set s0 s1 udp.packets=3
	refused 1 's1: has no pacer.*; nothing is changed on s0' pacer unload s0 s1
	refused 1 's1: has no pacer.*; nothing is changed on s0' pacer upgrade s0 s1
	refused 1 'lo: has no pacer.*; nothing is changed on s0' pacer unload s0 lo
	refused 2 's0 is named twice' pacer set s0 s0 udp.packets=3
	refused 2 's0 is named twice' pacer load s0 s0 -c "$work/ten.yaml"
	refused 2 'wants two interfaces' pacer load s0 -c "$work/ten.yaml" --shared
	equal "$(status .serial)" "$serial" "the policy's serial number"
	off
	refused 1 'no interface of this network namespace has a pacer' pacer unload all
}

# Verbs that only look, of several: a name and a result each.
looked_at()
{
	local verb

	both_off
	limit ten 10
	both ten
	on 0 "1" n=1
	for verb in status stats "why s0 s1 10.77.0.11" "allow s0 s1 list" "ban s0 s1 list"; do
		case $verb in
		*\ *) ;;
		*) verb="$verb s0 s1" ;;
		esac
		# shellcheck disable=SC2086 # words
		pacer $verb --json >"$work/out"
		equal "$(jq -rc '[.[].interface] | tostring' "$work/out")" '["s0","s1"]' "$verb --json"
		equal "$(jq -rc '[.[] | .result == null] | any' "$work/out")" false "null results of $verb"
		# shellcheck disable=SC2086
		pacer $verb >"$work/out"
		grep -q '^s0:' "$work/out" || fail "$verb does not say s0"
		grep -q '^s1:' "$work/out" || fail "$verb does not say s1"
	done
	off
	refused_in_part
}

# with_a_set NAME PREFIX...: one packet a minute from whom the set drop has.
with_a_set()
{
	local name=$1

	shift
	printf '%s\n' "$@" >"$work/drop.txt"
	policy "$name" <<-END
	sets: [{name: drop, file: $work/drop.txt}]
	rules: [{name: strict, match: {src: "@drop"}, limits: [{key: src/32,128, packets: 1, window: 60s, entries: 1k}]}]
	END
}

# drop_of IFACE: its prefixes, those by hand, and the packets that it had.
drop_of()
{
	echo "$(pacer sets "$1" show drop --json |
		jq -rc '[(.prefixes | join(" ")), (.by_hand | map(.prefix) | join(" "))] | join("|")')" \
		"$(pacer sets "$1" list --json | jq '.[0].packets')"
}

# One set for both: a change on one of them is seen on the other, and done once.
set_of_both()
{
	both_off
	with_a_set in 10.77.0.11
	both in --shared
	on 0 "1 9" n=9 n=9,from=10.77.0.12
	on 1 "0 9" n=9 n=9,from=10.77.0.12
	pacer sets s1 add drop 10.77.0.12 >/dev/null
	on 0 "1" n=9,from=10.77.0.12
	on 1 "0" n=9,from=10.77.0.12
	equal "$(drop_of s0)" "10.77.0.11|10.77.0.12 36" "the set on s0"
	printf '10.77.0.12\n10.77.0.13\n10.77.0.14\n' | pacer sets s0 s1 replace drop - --json >"$work/out"
	equal "$(jq -rc '[.[] | .interface, .result.prefixes, .result.shared_with] | tostring' "$work/out")" \
		'["s0",3,["s1"],"s1",null,"s0"]' "the result of sets s0 s1 replace"
	equal "$(drop_of s1)" "10.77.0.12 10.77.0.13 10.77.0.14| 36" "the set on s1"
	on 1 "9 0 1" n=9 n=9,from=10.77.0.12 n=9,from=10.77.0.13 # what the limit holds stays
	on 0 "9 0 1" n=9 n=9,from=10.77.0.13 n=9,from=10.77.0.14
	equal "$(pacer status s0 --json | jq -c .shared_with)" '["s1"]' "with whom s0 shares"
	# The one that stays has it, with what it had counted.
	pacer unload s0 >"$work/out"
	grep -q "^  state shared with s1, which goes on with it$" "$work/out" || fail "$(cat "$work/out")"
	on 1 "0 9" n=9,from=10.77.0.14 n=9,from=10.77.0.11
	equal "$(drop_of s1)" "10.77.0.12 10.77.0.13 10.77.0.14| 81" "the set that stays"
}

# A set each: a change that names one leaves the other alone, and one that names both reads stdin once.
set_each()
{
	local code=0

	both_off
	with_a_set in 10.77.0.11
	both in
	pacer sets s0 add drop 10.77.0.12 >/dev/null
	on 0 "1 1" n=9 n=9,from=10.77.0.12
	on 1 "1 9" n=9 n=9,from=10.77.0.12
	printf '10.77.0.13\n' >"$work/two.txt"
	pacer sets s1 replace drop "$work/two.txt" >/dev/null
	on 1 "9 1" n=9 n=9,from=10.77.0.13
	on 0 "0 9" n=9 n=9,from=10.77.0.13
	equal "$(drop_of s0); $(drop_of s1)" "10.77.0.11|10.77.0.12 27; 10.77.0.13| 18" "a set each"
	printf '10.77.0.14\n10.77.0.15 --for 1h\n' | pacer sets all add drop - >/dev/null
	on 0 "1 1" n=9,from=10.77.0.14 n=9,from=10.77.0.15
	on 1 "1 1" n=9,from=10.77.0.14 n=9,from=10.77.0.15
	printf '10.77.0.16\n' | pacer sets s0 s1 replace drop - --json >"$work/out"
	equal "$(jq -rc '[.[] | .interface, .result.prefixes] | tostring' "$work/out")" '["s0",1,"s1",1]' \
		"the result of sets s0 s1 replace"
	on 0 "1" n=9,from=10.77.0.16
	on 1 "1 9" n=9,from=10.77.0.16 n=9,from=10.77.0.13
	equal "$(pacer sets s0 s1 show drop | tr -d ' ' | tr '\n' ' ')" "s0: 10.77.0.16 s1: 10.77.0.16 " "whose is whose"
	# What one of them has not got is said; the other's is taken out.
	pacer sets s0 add drop 10.77.0.17 >/dev/null
	pacer sets s0 s1 del drop 10.77.0.17 --json >"$work/out" 2>"$work/err" || code=$?
	equal "$code $(wc -l <"$work/err")" "1 1" "exit code, lines of complaint"
	grep -q 's1: 10.77.0.17 is no prefix of set drop: see .xdp-pacer sets s1 show drop' "$work/err" ||
		fail "stderr: $(cat "$work/err")"
	equal "$(jq -rc '[.[] | .result.taken_out] | tostring' "$work/out")" '[1,null]' "what was taken out"
	equal "$(drop_of s0 | cut -d ' ' -f 1)" "10.77.0.16|" "the set on s0"
	off
	refused 1 's0: has no pacer' pacer sets s0 s1 add drop 10.77.0.18
	equal "$(drop_of s1 | cut -d ' ' -f 1)" "10.77.0.16|" "the set on s1"
}

# What one of them lacks is null, and the others are there; the exit code says it.
refused_in_part()
{
	local code=0

	pacer stats s0 s1 --json >"$work/out" 2>"$work/err" || code=$?
	equal "$code" 1 "the exit code"
	equal "$(jq -rc '[.[] | .result == null] | tostring' "$work/out")" '[true,false]' "what is null"
	grep -q 's0: has no pacer' "$work/err" || fail "stderr: $(cat "$work/err")"
	code=0
	pacer ban s0 s1 list --json >"$work/out" 2>"$work/err" || code=$?
	equal "$code $(jq -rc '[.[] | .result == null] | tostring' "$work/out")" '1 [true,false]' "a list that is null"
}

# Rates of each are of its own readings. `all` gives an array, even where it is one.
watched()
{
	local all

	both_off
	limit ten 10
	both ten
	background "$SERVER" "$BUILD/xdp-pacer" stats s0 s1 --watch --json --over 200ms >"$work/lines"
	until_true 10 eval '[ "$(wc -l <"$work/lines")" -ge 2 ]'
	on 0 "10" n=20
	until_true 10 grep -q '"matched":20' "$work/lines"
	kill "$pid"
	sed '$d' "$work/lines" >"$work/whole" # the last may have been cut
	equal "$(jq -rc 'map(.interface) | tostring' "$work/whole" | uniq)" '["s0","s1"]' "who is in each line"
	jq -se '
		def grown: map(.result.rates.now | values | .packets_per_s * .span_ns / 1e9) | add | round;
		(map(.[0]) | grown) == (map(.[0].result.packets) | last - first)
		and (map(.[1]) | grown) == (map(.[1].result.packets) | last - first)
		and .[0][0].result.rates == null and .[1][1].result.rates.now.span_ns > 0' \
		"$work/whole" >/dev/null || fail "$(cat "$work/whole")" || return
	pacer stats s0 s1 | grep -c '^ *RULE .* NOW$' >"$work/out"
	equal "$(cat "$work/out")" 2 "tables with rates"
	pacer unload s1 >/dev/null
	for all in "" "--over 100ms"; do
		# shellcheck disable=SC2086 # words
		equal "$(pacer stats all --json $all | jq -rc 'map(.interface) | tostring')" '["s0"]' "all $all"
	done
}

# The one that fails is null, and the other goes on; the exit code says it.
watched_in_part()
{
	local code=0 text

	both_off
	limit ten 10
	both ten
	background "$SERVER" "$BUILD/xdp-pacer" stats s0 s1 --watch --over 100ms >"$work/text" 2>/dev/null
	text=$pid
	until_true 10 [ -s "$work/text" ]
	background "$SERVER" "$BUILD/xdp-pacer" stats s0 s1 --watch --json --over 100ms >"$work/lines" 2>"$work/err"
	until_true 10 [ -s "$work/lines" ]
	pacer unload s0 >/dev/null
	until_true 10 grep -q '"result":null' "$work/lines"
	until_true 10 grep -q '^s0: cannot be read any more$' "$work/text"
	on 1 "10" n=20
	until_true 10 grep -q '"matched":20' "$work/lines"
	equal "$(tail -n 2 "$work/lines" | head -n 1 | jq -rc '[.[] | .interface, .result == null] | tostring')" \
		'["s0",true,"s1",false]' "who is null"
	equal "$(grep -c 's0: ' "$work/err")" 1 "how often it is said: $(cat "$work/err")"
	pacer unload s1 >/dev/null
	wait "$pid" || code=$?
	equal "$code" 1 "the exit code, where none is left"
	code=0
	wait "$text" || code=$?
	equal "$code" 1 "the exit code of text"
}

# odd TYPE NAME COMMAND...: makes it, if this kernel can; what native mode says, and skb works.
odd()
{
	local pattern=$1 name=$2

	shift 2
	if ! in_server "$@" 2>"$work/err"; then
		echo "# $name: this kernel makes none: $(head -n 1 "$work/err")"
		return 0
	fi
	in_server ip link set "$name" up
	if [ "$pattern" = native ]; then
		pacer load "$name" -c "$work/ten.yaml" >/dev/null || fail "$name: not loaded"
	else
		refused 1 "$name: $pattern" pacer load "$name" -c "$work/ten.yaml" || return
		equal "$(what_is_on "$name")" "{}" "what is on $name" || return
		pacer load "$name" -c "$work/ten.yaml" --mode skb >/dev/null || fail "$name: no skb mode" ||
			return
		equal "$(pacer status "$name" --json | jq -r .attach_mode)" skb "the mode on $name" || return
	fi
	pacer unload "$name" >/dev/null
	in_server ip link del "$name"
}

odd_ones()
{
	both_off
	limit ten 10
	odd 'a bridge takes no native XDP program: load its ports .*show master odd0' odd0 \
		ip link add odd0 type bridge
	odd 'a VLAN takes no native XDP program: load s1 with a rule .* VLAN' odd1 \
		ip link add link s1 name odd1 type vlan id 5
	odd 'macvlan takes no native XDP program: load the interface below' odd2 \
		ip link add link s1 name odd2 type macvlan
	odd 'vxlan takes no native XDP program: load the interface below' odd3 \
		ip link add odd3 type vxlan id 3 dstport 4789
	odd 'WireGuard takes no native XDP program: use --mode skb' odd4 ip link add odd4 type wireguard
	odd 'this bond.*takes no native XDP program: load its members' odd5 ip link add odd5 type bond
	odd native odd6 ip tuntap add odd6 mode tap
	odd 'its driver tun takes no native XDP program: use --mode skb' odd7 ip tuntap add odd7 mode tun
	odd 'its driver.* takes no native XDP program: use --mode skb' odd8 ip link add odd8 type ifb
}

# What is wrong on an interface is said with its name, and what has to do with none of them once.
said_of_each()
{
	local code=0

	both_off
	limit ten 10
	both ten
	pacer set s0 s1 nope.packets=1 2>"$work/err" || code=$?
	equal "$code $(cut -d : -f 2-5 "$work/err" | paste -sd /)" \
		"2  s0: set: nope.packets: no such rule/ s1: set: nope.packets: no such rule" "what is told of each"
	echo "rules: [{nam: a}]" >"$work/bad.yaml"
	refused 2 'bad.yaml:1: ' pacer apply s0 s1 -c "$work/bad.yaml"
	refused 2 'nonsense is no source' pacer ban s0 s1 add nonsense
}

# A bridge's traffic is judged at its ports, and under one limit.
ports_of_a_bridge()
{
	both_off
	limit ten 10
	in_server ip link add br0 type bridge
	in_server ip link set br0 up
	in_server ip link set s0 master br0
	in_server ip link set s1 master br0
	both ten --shared
	in_server ip link set s0 nomaster
	in_server ip link set s1 nomaster
	in_server ip link del br0
	on 0 "6" n=6
	on 1 "4" n=6
}

# Frames that begin otherwise cannot share: what is sampled could not be told apart.
unlike_frames()
{
	both_off
	limit ten 10
	in_server ip tuntap add odd9 mode tun
	in_server ip link set odd9 up
	refused 1 'odd9: its frames do not begin as those of s0 do' \
		pacer load s0 odd9 -c "$work/ten.yaml" --shared --mode skb
	equal "$(what_is_on s0)" "{}" "what is on s0"
	both_off
	pacer load s0 odd9 -c "$work/ten.yaml" --mode skb >/dev/null
	pacer unload s0 odd9 >/dev/null
	in_server ip link del odd9
}

# few HARD COMMAND...: by a process that may have 64 descriptors, and so many where it asks for them.
few()
{
	in_server bash -c 'ulimit -Sn 64 && ulimit -Hn "$1" && exec "${@:2}"' - "$1" timeout -k 1 "$hang_s" "$BUILD/xdp-pacer" "${@:2}"
}

eight()
{
	local i

	for i in 0 2 4 6; do
		if [ "$1" = add ]; then
			in_server ip link add "d$i" type veth peer name "d$((i + 1))"
			in_server ip link set "d$i" up
			in_server ip link set "d$((i + 1))" up
		else
			in_server ip link del "d$i"
		fi
	done
}

# all_told: each has a change that is told.
all_told()
{
	local i

	for i in {0..7}; do
		pacer allow "d$i" add 192.0.2.99/32 >/dev/null
		pacer allow "d$i" del 192.0.2.99/32 >/dev/null
	done
	[ "$(jq -r .interface "$work/events" | sort -u | wc -l)" -eq 8 ]
}

# A pacer takes some fourteen descriptors. The soft limit of them is for programs that call select(): a command that is
# run has it again.
many()
{
	both_off
	limit ten 10
	eight add
	few 4096 load d{0..7} -c "$work/ten.yaml" --mode skb >/dev/null
	equal "$(few 4096 stats all --json | jq length)" 8 "pacers that have stats"
	background "$SERVER" bash -c 'ulimit -Sn 64 && exec "$@"' - \
		"$BUILD/xdp-pacer" events all --follow --json --exec 'ulimit -Sn' >"$work/events" 2>"$work/err"
	until_true 5 all_told || fail "told: $(cat "$work/events" "$work/err")"
	kill "$pid"
	wait "$pid"
	equal "$(sort -u "$work/err")" 64 "descriptors of a command"
	eight del
}

# Those that no descriptors are left for are named, each once; of the others all is told.
too_many()
{
	both_off
	limit ten 10
	eight add
	pacer load d{0..7} -c "$work/ten.yaml" --mode skb >/dev/null
	background "$SERVER" bash -c 'ulimit -Sn 64 && ulimit -Hn 64 && exec "$@"' - \
		"$BUILD/xdp-pacer" events all --follow --json >"$work/events" 2>"$work/err"
	until_true 5 grep -q "^xdp-pacer: .*d7: .*Too many open files" "$work/err" || fail "said: $(cat "$work/err")"
	all_told || true
	sleep 2.5 # it has looked again
	kill "$pid"
	wait "$pid"
	equal "$(sort -u "$work/err" | wc -l)" "$(wc -l <"$work/err")" "lines, each once"
	equal "$({ jq -r .interface "$work/events"; grep -o 'd[0-7]:' "$work/err" | tr -d :; } | sort -u | wc -l)" 8 \
		"pacers that are told of, or named"
	eight del
}

# Has the process of $pid a program by now? It is attached when those of all are verified, and so stopped before that.
has_a_program()
{
	ls -l "/proc/$pid/fd" 2>/dev/null | grep -q bpf-prog && kill -STOP "$pid"
}

# Ended while their programs are verified, it has changed neither. A signal that it ignores ends nothing. On a busy
# machine it has less of the CPUs than who looks at it.
ended_in_between()
{
	local signal before code

	limit ten 10
	for signal in INT TERM HUP; do
		both_off
		background "$SERVER" nice -n 19 env --default-signal="$signal" "$BUILD/xdp-pacer" load s0 s1 -c "$work/ten.yaml" --shared --direct >"$work/out" 2>&1
		until_true 20 has_a_program || fail "$signal: it never had a program: $(cat "$work/out")" || return
		equal "$(what_is_on s0)$(what_is_on s1)" "{}{}" "what is on both while programs are verified" || return
		kill -"$signal" "$pid"
		kill -CONT "$pid" 2>/dev/null || true # it may have ended
		code=0
		wait "$pid" || code=$?
		equal "$code" $((128 + $(kill -l "$signal"))) "$signal: the exit code" || return
		equal "$(what_is_on s0)$(what_is_on s1)" "{}{}" "$signal: what is on both" || return
	done
	both ten
	before=$(status .program_id)
	background "$SERVER" nice -n 19 "$BUILD/xdp-pacer" load s0 s1 -c "$work/ten.yaml" --replace --direct >"$work/out" 2>&1
	until_true 20 has_a_program || fail "it never had a program: $(cat "$work/out")" || return
	equal "$(status .program_id)" "$before" "the program of s0 while another is verified" || return
	kill -TERM "$pid"
	kill -CONT "$pid" 2>/dev/null || true
	wait "$pid" || true
	equal "$(status .program_id)" "$before" "the program of s0, of a load that was to replace it" || return
	both_off
	background "$SERVER" nice -n 19 env --ignore-signal=HUP "$BUILD/xdp-pacer" load s0 s1 -c "$work/ten.yaml" --shared --direct >"$work/out" 2>&1
	until_true 20 has_a_program || fail "it never had a program: $(cat "$work/out")" || return
	kill -HUP "$pid"
	kill -CONT "$pid"
	wait "$pid" || fail "a signal that is ignored has ended it: $(cat "$work/out")" || return
	equal "$(status .shared_with)" '["s1"]' "with whom s0 shares"
}

net_up
second_pair
check several-state-each state_each
check several-one-for-both one_for_both
check several-changed-once changed_once
check several-others-told others_told
check several-others-unknown others_unknown
check several-from-stdin from_stdin
check several-one-leaves one_leaves
check several-one-moves one_moves
check several-all-or-none all_or_none
check several-ended-in-between ended_in_between
check several-none-where-one-lacks none_where_one_lacks
check several-looked-at looked_at
check several-set-of-both set_of_both
check several-set-each set_each
check several-watched watched
check several-watched-in-part watched_in_part
check several-odd-ones odd_ones
check several-said-of-each said_of_each
check several-ports-of-a-bridge ports_of_a_bridge
check several-unlike-frames unlike_frames
check several-many many
check several-too-many too_many
finish
