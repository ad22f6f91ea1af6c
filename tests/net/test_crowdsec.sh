#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The bouncer bans what a CrowdSec local API decides, whatever becomes of that API. The API here is
# lapi.py: a stub that speaks the documented format.
#
#   client                                  server
#   10.77.0.11-18, fd77::11-18  c0 ---- s0  the pacer, the bouncer, and on lo the API
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

bouncer=$BUILD/xdp-pacer-crowdsec
[ -e "$bouncer" ] || die "$bouncer is missing: make all"
api="" running=""

# settings [LINE...]: of the bouncer, with these instead of those of the same field.
settings()
{
	local line

	cat >"$work/bouncer.yaml" <<-TEXT
	api_url: http://127.0.0.1:8080/
	api_key: the-key-of-a-test
	update_frequency: 50ms
	timeout: 1s
	interfaces: [s0]
	TEXT
	for line; do
		sed -i "/^${line%%:*}:/d" "$work/bouncer.yaml"
		echo "$line" >>"$work/bouncer.yaml"
	done
	chmod 600 "$work/bouncer.yaml"
}

wide()
{
	policy wide <<-TEXT
	bans: ${1:-64}
	rules:
	  - name: udp
	    match: {proto: udp, dport: 9000}
	    limits: [{key: src/32,128, packets: 1000, window: 60s}]
	TEXT
	load wide
}

# decide LINE...: these are the decisions from now on. Whole at any moment, as the API looks.
decide()
{
	printf '%s\n' "$@" | sed '/^$/d' >"$work/lapi/decisions.new"
	mv "$work/lapi/decisions.new" "$work/lapi/decisions"
}

mode()
{
	echo "$1" >"$work/lapi/mode.new"
	mv "$work/lapi/mode.new" "$work/lapi/mode"
}

api_up()
{
	mkdir -p "$work/lapi"
	: >"$work/lapi/log"
	mode ok
	[ -e "$work/lapi/decisions" ] || decide
	api_again
}

# Its process alone: what it was told stays.
api_again()
{
	: >"$work/lapi/log"
	background "$SERVER" "$here/lapi.py" "$work/lapi" 8080 2>"$work/lapi/errors"
	api=$pid
	until_true 5 grep -q ready "$work/lapi/log" || fail "no API: $(cat "$work/lapi/errors")"
}

api_down()
{
	kill "$api"
	wait "$api" 2>/dev/null || true
}

bouncer_up()
{
	: >"$work/said"
	background "$SERVER" "$bouncer" -c "$work/bouncer.yaml" 2>"$work/said"
	running=$pid
}

bouncer_down()
{
	kill "$running"
	wait "$running" || fail "the bouncer ended with $?: $(cat "$work/said")"
}

all_down()
{
	bouncer_down
	api_down
	rm -rf "$work/lapi"
}

asked()
{
	grep -c "^$1 " "$work/lapi/log" || true
}

# asks_on MODE: it goes on asking, twice more.
asks_on()
{
	local before

	before=$(asked "$1")
	until_true 2 more_than "$1" $((before + 1)) || fail "it asks no more: $(cat "$work/said")"
}

more_than()
{
	[ "$(asked "$1")" -gt "$2" ]
}

banned()
{
	[ "$(pacer ban s0 list --json | jq -r '[.. | .key? // empty] | sort | join(" ")')" = "$1" ]
}

until_banned()
{
	until_true 2 banned "$1" || fail "banned are $(pacer ban s0 list), expected $1; it said: $(cat "$work/said")"
}

left()
{
	pacer ban s0 list --json | jq -r --arg key "$1" '[.. | select(.key? == $key) | .left_ns // 0][0]'
}

said()
{
	[ "$(grep -Ec -- "$2" "$work/said")" = "$1" ] || fail "$2: not said $1 times: $(cat "$work/said")"
}

# New ones, deleted ones, both families, ranges, and those that are for others.
follows()
{
	settings
	wide
	api_up
	decide "1 ban Ip 10.77.0.11 600000" "2 ban Ip fd77::11 600000" "3 captcha Ip 10.77.0.12 600000" \
		"4 ban Country DE 600000" "5 ban Ip 10.77.0.18 -1000"
	bouncer_up
	until_banned "10.77.0.11 fd77::11"
	arrive "0 0 2 2" n=2 n=2,from=fd77::11 n=2,from=10.77.0.12 n=2,from=fd77::12
	[ "$(left 10.77.0.11)" -le 600000000000 ] || fail "banned for $(left 10.77.0.11) ns"
	[ "$(left 10.77.0.11)" -gt 300000000000 ] || fail "banned for $(left 10.77.0.11) ns"
	decide "2 ban Ip fd77::11 600000" "6 ban Range 10.77.0.12/31 600000" "7 ban range fd77::14/127 600000"
	until_banned "10.77.0.12 10.77.0.13 fd77::11 fd77::14 fd77::15"
	arrive "2 0 0 2 0" n=2 n=2,from=10.77.0.12 n=2,from=10.77.0.13 n=2,from=10.77.0.14 n=2,from=fd77::15
	decide "8 ban Range 10.77.0.0/23 600000"
	until_banned "10.77.0.0/24 10.77.1.0/24"
	arrive "0 2" n=2,from=10.77.0.16 n=2,from=fd77::11
	decide
	until_banned ""
	grep -q 'agent=xdp-pacer-crowdsec/v[0-9.]*$' "$work/lapi/log" || fail "it does not say who asks"
	grep -q 'startup=false' "$work/lapi/log" || fail "it asks for all each time"
	equal "$(grep -c 'startup=true' "$work/lapi/log")" 1 "questions for all there is"
	all_down
}

# Two decisions on one source, each with its own end; and one that runs out.
several_of_one()
{
	settings
	wide
	api_up
	decide "1 ban Ip 10.77.0.11 600000" "2 ban Ip 10.77.0.11 3000000" "3 ban Ip 10.77.0.12 1500"
	bouncer_up
	until_true 2 longer 10.77.0.11 2000000000000 || fail "$(cat "$work/said")"
	decide "1 ban Ip 10.77.0.11 600000"
	until_true 2 shorter 10.77.0.11 600000000000 || fail "the longer one is deleted: $(left 10.77.0.11) ns"
	arrive "0" n=2
	until_banned 10.77.0.11
	decide "1 ban Ip 10.77.0.11 600000" "1 ban Ip 10.77.0.11 600000" "4 ban Ip 10.77.0.11 900000"
	until_true 2 longer 10.77.0.11 601000000000 || fail "$(cat "$work/said")"
	decide
	until_banned ""
	all_down
}

longer()
{
	[ "$(left "$1")" -gt "$2" ]
}

shorter()
{
	[ "$(left "$1")" -le "$2" ] && [ "$(left "$1")" -gt 0 ]
}

# Whatever the API answers, what is banned stays, and one line says so, without a password; then it goes on.
api_that_fails()
{
	local how pattern i=10

	settings "api_url: http://me:secret@127.0.0.1:8080/"
	wide
	api_up
	decide "10 ban Ip 10.77.0.12 600000"
	bouncer_up
	while read -r how pattern; do
		i=$((i + 10))
		decide "10 ban Ip 10.77.0.12 600000" "$i ban Ip 10.77.0.11 600000"
		until_banned "10.77.0.11 10.77.0.12"
		: >"$work/said"
		mode "$how"
		decide "10 ban Ip 10.77.0.12 600000" "$((i + 1)) ban Ip 10.77.0.13 600000"
		asks_on "$how"
		banned "10.77.0.11 10.77.0.12" || fail "$how: banned are $(pacer ban s0 list)"
		said 1 "$pattern.*: what is banned lasts as long as was decided$"
		mode ok
		until_banned "10.77.0.12 10.77.0.13"
		said 1 "it answers again$"
		! grep secret "$work/said" || fail "$how: a password is said"
	done <<-TEXT
	403 does not know the api_key .HTTP status 403.: make one by .cscli bouncers add NAME
	500 it answers with HTTP status 500
	redirect it answers with HTTP status 302
	garbage its answer is no JSON
	list its answer has neither "new" nor "deleted"
	cut http://127.0.0.1:8080/: .*outstanding read data|http://127.0.0.1:8080/: .*transfer closed
	hang http://127.0.0.1:8080/: .*too slow
	TEXT
	all_down
}

bans_one()
{
	settings
	wide
	api_up
	decide "1 ban Ip 10.77.0.11 600000"
	bouncer_up
	until_banned 10.77.0.11
}

bans_another()
{
	mode ok
	decide "2 ban Ip 10.77.0.12 600000"
	until_banned 10.77.0.12
}

# What it fails for is said as it is another, also that of before.
api_that_fails_in_turn()
{
	local how

	bans_one
	for how in 500 garbage 500 redirect; do
		mode "$how"
		asks_on "$how"
	done
	said 1 "it answers with HTTP status 302.*: what is banned lasts as long as was decided$"
	said 2 "it answers with HTTP status 500.*: what is banned lasts as long as was decided$"
	said 1 "its answer is no JSON.*: what is banned lasts as long as was decided$"
	bans_another
	said 1 "it answers again$"
	all_down
}

# An answer that comes by and by has ten times the timeout. What is known holds meanwhile, also for
# a pacer that is new.
api_that_drips()
{
	bans_one
	mode drip
	until_true 2 more_than drip 0 || fail "it does not ask: $(cat "$work/said")"
	pacer load s0 -c "$work/wide.yaml" --replace >/dev/null
	until_true 1 banned 10.77.0.11 || fail "banned are $(pacer ban s0 list)"
	equal "$(asked drip)" 1 "questions until then"
	until_true 2 more_than drip 1 || fail "it still waits: $(cat "$work/said")"
	said 1 '8080/: the answer took longer than 10 s, 10 times timeout: what is banned lasts as long as was decided$'
	banned 10.77.0.11 || fail "banned are $(pacer ban s0 list)"
	bans_another
	said 1 'it answers again$'
	all_down
}

# An answer that takes 4 s to come makes no ban longer than its decision.
api_that_is_slow()
{
	settings
	wide
	api_up
	mode slow
	decide "1 ban Ip 10.77.0.11 600000"
	bouncer_up
	until_true 10 banned 10.77.0.11 || fail "banned are $(pacer ban s0 list): $(cat "$work/said")"
	[ "$(left 10.77.0.11)" -lt 597000000000 ] || fail "banned for $(left 10.77.0.11) ns"
	mode ok
	all_down
}

# Told to end while the API is silent, it waits for no answer.
ends_while_it_asks()
{
	local begun=$SECONDS

	settings "timeout: 60s"
	wide
	api_up
	mode hang
	bouncer_up
	until_true 5 more_than hang 0 || fail "it does not ask: $(cat "$work/said")"
	all_down
	[ $((SECONDS - begun)) -lt 30 ] || fail "it went on for $((SECONDS - begun)) s"
	equal "$(cat "$work/said")" "" "what it said"
}

# Nor for a name server that is silent, which is asked for two minutes.
ends_while_a_name_is_sought()
{
	settings "api_url: http://api.example.net:8080/"
	wide
	silent_name_server
	bouncer_up
	until_true 5 asks_for_a_name || fail "it asks for no name: $(cat "$work/said")"
	ends_soon "$running" || return
	umount /etc/resolv.conf
}

# The API ends, forgets whom it has told, and comes back with other decisions.
api_restarted()
{
	settings
	wide
	api_up
	decide "1 ban Ip 10.77.0.11 600000" "2 ban Ip 10.77.0.12 600000"
	bouncer_up
	until_banned "10.77.0.11 10.77.0.12"
	api_down
	until_true 2 grep -q 'http://127.0.0.1:8080/: .*: what is banned lasts' "$work/said" ||
		fail "$(cat "$work/said")"
	banned "10.77.0.11 10.77.0.12" || fail "banned are $(pacer ban s0 list)"
	decide "2 ban Ip 10.77.0.12 600000" "3 ban Ip 10.77.0.13 600000"
	api_again
	until_banned "10.77.0.12 10.77.0.13"
	equal "$(head -n 2 "$work/lapi/log" | tail -n 1 | cut -d' ' -f1,2)" "ok startup=true" "the first question"
	all_down
}

# The bouncer begins before the API, and before the pacer; the pacer is replaced.
comes_and_goes()
{
	settings
	bouncer_up
	until_true 2 grep -q 'http://127.0.0.1:8080/: ' "$work/said" || fail "nothing is said"
	said 0 'what is banned lasts' || return # there has been no answer
	api_up
	decide "1 ban Ip 10.77.0.11 600000"
	until_true 2 grep -q 's0: has no pacer' "$work/said" || fail "$(cat "$work/said")"
	asks_on ok
	said 1 's0: has no pacer' || return
	wide
	until_banned 10.77.0.11
	pacer load s0 -c "$work/wide.yaml" --replace >/dev/null
	until_banned 10.77.0.11
	pacer unload s0 >/dev/null
	asks_on ok
	asks_on ok
	said 2 's0: has no pacer' || return # it had one meanwhile
	wide
	until_banned 10.77.0.11
	arrive "0 2" n=2 n=2,from=10.77.0.12
	all_down
}

# What it banned ends by itself. Killed and begun anew, it goes on from what the API says.
bouncer_restarted()
{
	settings
	wide
	api_up
	decide "1 ban Ip 10.77.0.11 600000" "2 ban Ip 10.77.0.12 2500"
	bouncer_up
	until_banned "10.77.0.11 10.77.0.12"
	kill -KILL "$running"
	wait "$running" 2>/dev/null || true
	until_banned 10.77.0.11
	api_down # begun without an answer, it lifts nothing
	bouncer_up
	until_true 2 grep -q 'http://127.0.0.1:8080/: ' "$work/said" || fail "nothing is said"
	banned 10.77.0.11 || fail "banned are $(pacer ban s0 list)"
	bouncer_down
	api_again
	decide "1 ban Ip 10.77.0.11 600000" "3 ban Ip 10.77.0.13 600000"
	bouncer_up
	until_banned "10.77.0.11 10.77.0.13"
	decide
	until_banned ""
	all_down
}

# Without descriptors it would never see its end: it ends by itself, and says so.
cannot_wait()
{
	local code=0

	settings
	wide
	api_up
	decide "1 ban Ip 10.77.0.11 600000"
	bouncer_up
	until_banned 10.77.0.11
	prlimit --pid "$running" --nofile=0:0
	wait "$running" || code=$?
	equal "$code" 1 "its exit code"
	said 1 'it ends, as it cannot wait any more: Invalid argument$' || return
	banned 10.77.0.11 || fail "banned are $(pacer ban s0 list)"
	api_down
	rm -rf "$work/lapi"
}

# Decisions that cannot be read do not keep the others from being taken.
odd_ones()
{
	settings
	wide
	api_up
	mode odd
	decide "1 ban Ip 10.77.0.11 600000"
	bouncer_up
	until_banned 10.77.0.11
	said 1 '6 decisions are left out, the first: decision 9001: no address or range: somebody$'
	mode ok
	decide "1 ban Ip 10.77.0.11 600000" "2 ban Ip nobody 600000"
	until_true 2 grep -q ' 1 decision is left out, the first: decision 2: no address or range: nobody$' "$work/said" ||
		fail "$(cat "$work/said")"
	all_down
}

# A table with too little room has what fits, and the rest when there is room.
no_room()
{
	local i many=()

	settings
	wide 8
	api_up
	for i in $(seq 1 20); do
		many+=("$i ban Ip 192.0.2.$i 600000")
	done
	decide "${many[@]}"
	bouncer_up
	until_true 2 grep -Eq 's0: there was no room for [0-9]+ of 20 bans: raise bans in the policy$' "$work/said" ||
		fail "$(cat "$work/said")"
	asks_on ok
	asks_on ok
	said 1 'there was no room'
	pacer set s0 bans=64 >/dev/null
	until_true 2 all_of_them 20 || fail "banned are $(pacer ban s0 list)"
	all_down
}

# Its table was emptied by two changes between two questions, and has the room that it had.
another_table()
{
	settings "update_frequency: 2s"
	wide
	sed 's/bans: 64/bans: 128/' "$work/wide.yaml" >"$work/other.yaml"
	sed '/bans: 64/d' "$work/wide.yaml" >"$work/tableless.yaml"
	api_up
	decide "1 ban Ip 10.77.0.11 600000" "2 ban Ip 10.77.0.12 600000"
	bouncer_up
	until_banned "10.77.0.11 10.77.0.12"
	pacer ban s0 del 10.77.0.12 >/dev/null
	apply wide # which is the same table: what was lifted by hand stays so
	more_by ok 2 || fail "it asks no more: $(cat "$work/said")"
	banned 10.77.0.11 || fail "banned are $(pacer ban s0 list)"
	more_by ok 1 || fail "it asks no more: $(cat "$work/said")"
	apply other # another one, with all that the one before had
	apply wide
	more_by ok 2 || fail "it asks no more: $(cat "$work/said")"
	banned 10.77.0.11 || fail "banned are $(pacer ban s0 list)"
	more_by ok 1 || fail "it asks no more: $(cat "$work/said")"
	apply tableless
	apply wide
	banned "" || fail "banned are $(pacer ban s0 list)"
	until_true 5 banned "10.77.0.11 10.77.0.12" || fail "banned are $(pacer ban s0 list)"
	all_down
}

# Another program over the same state, and a state that came from the one before: between two questions a decision is
# deleted, which is lifted all the same; where it is the same state, what was lifted by hand stays so.
another_program()
{
	local how i=3

	settings "update_frequency: 2s"
	wide
	sed 's/packets: 1000/packets: 500/' "$work/wide.yaml" >"$work/other.yaml"
	api_up
	decide "1 ban Ip 10.77.0.11 600000" "3 ban Ip 10.77.0.13 600000"
	bouncer_up
	until_banned "10.77.0.11 10.77.0.13"
	pacer ban s0 del 10.77.0.13 >/dev/null
	more_by ok 1 || fail "it asks no more: $(cat "$work/said")"
	for how in upgrade "shadow -c $work/other.yaml" "shadow --stop"; do
		i=$((i + 1))
		decide "1 ban Ip 10.77.0.11 600000" "$i ban Ip 10.77.0.12 600000" "3 ban Ip 10.77.0.13 600000"
		until_true 5 banned "10.77.0.11 10.77.0.12" || fail "before $how: banned are $(pacer ban s0 list)" || return
		more_by ok 1 || fail "it asks no more: $(cat "$work/said")" || return
		decide "1 ban Ip 10.77.0.11 600000" "3 ban Ip 10.77.0.13 600000"
		# shellcheck disable=SC2086 # words
		pacer $how s0 >/dev/null
		more_by ok 2 || fail "it asks no more: $(cat "$work/said")" || return
		banned 10.77.0.11 || fail "after $how: banned are $(pacer ban s0 list)" || return
	done
	pacer shadow s0 -c "$work/other.yaml" >/dev/null
	decide "3 ban Ip 10.77.0.13 600000"
	pacer shadow s0 --promote >/dev/null
	until_true 5 banned 10.77.0.13 || fail "banned are $(pacer ban s0 list)"
	all_down
}

# more_by MODE N: it asks N times more.
more_by()
{
	local before

	before=$(asked "$1")
	until_true 10 more_than "$1" $((before + $2 - 1))
}

# By hand as many lengths are banned as there may be: those of another are left out, and the others not.
no_length()
{
	local i

	settings
	wide
	for i in 20 21 22 23; do
		pacer ban s0 add "100.64.0.0/$i" --for 10m >/dev/null
	done
	api_up
	decide "1 ban Range 198.51.100.0/24 600000" "2 ban Range 203.0.113.0/24 600000" "3 ban Range 2001:db8::/48 600000"
	bouncer_up
	until_true 2 all_of_them 5 || fail "banned are $(pacer ban s0 list): $(cat "$work/said")"
	asks_on ok
	asks_on ok
	said 1 's0: .*/24: prefixes of 4 other lengths are banned'
	said 0 'no room' # of which there is enough
	pacer ban s0 del 100.64.0.0/23 >/dev/null
	until_true 2 all_of_them 6 || fail "banned are $(pacer ban s0 list): $(cat "$work/said")"
	all_down
}

all_of_them()
{
	[ "$(status .bans.banned)" = "$1" ]
}

# As many as a blocklist has.
many()
{
	settings
	wide
	sed 's/1Mi/16Mi/; s/bans: 64/bans: 65536/' "$work/wide.yaml" >"$work/large.yaml"
	load large --replace
	api_up
	python3 -c "
for i in range(20000): print(f'{i} ban Ip 198.{18 + i // 65536}.{i // 256 % 256}.{i % 256} 600000')
" >"$work/lapi/decisions.new"
	mv "$work/lapi/decisions.new" "$work/lapi/decisions"
	bouncer_up
	until_true 3 all_of_them 20000 || fail "banned are $(status .bans.banned); $(cat "$work/said")"
	decide
	until_true 3 all_of_them 0 || fail "banned are $(status .bans.banned)"
	all_down
}

once()
{
	local code=0

	settings
	wide
	api_up
	decide "1 ban Ip 10.77.0.11 600000"
	in_server timeout "$hang_s" "$bouncer" -c "$work/bouncer.yaml" --once
	banned 10.77.0.11 || fail "banned are $(pacer ban s0 list)"
	settings "origins: [crowdsec, cscli]"
	in_server timeout "$hang_s" "$bouncer" -c "$work/bouncer.yaml" --once
	grep -q 'origins=crowdsec,cscli agent' "$work/lapi/log" || fail "not those origins: $(cat "$work/lapi/log")"
	api_down
	settings "ca_cert_path: $work/none.pem" "origins: [crowdsec]" # which are for the API, and it is not there
	refused 1 '^xdp-pacer-crowdsec: http://127.0.0.1:8080/: ' in_server "$bouncer" -c "$work/bouncer.yaml" --once
	# Whom nobody hears says it to nothing that it opened meanwhile.
	in_server timeout -k 1 "$hang_s" "$bouncer" -c "$work/bouncer.yaml" --once 2>&- || code=$?
	equal "$code" 1 "exit code with stderr closed" || return
	rm -rf "$work/lapi"
}

# once_fails PATTERN: and says that.
once_fails()
{
	local code=0

	in_server timeout "$hang_s" "$bouncer" -c "$work/bouncer.yaml" --once 2>"$work/said" || code=$?
	equal "$code" 1 "exit code with $1" || return
	said 1 "$1"
}

# What it could not ban is not done.
once_in_part()
{
	local i

	settings
	wide 8
	api_up
	for i in $(seq 1 20); do
		echo "$i ban Ip 192.0.2.$i 600000"
	done >"$work/lapi/decisions"
	once_fails 's0: there was no room for [0-9]+ of 20 bans: ' || return
	pacer unload s0 >/dev/null
	wide
	in_server "$bouncer" -c "$work/bouncer.yaml" --once 2>/dev/null || fail "with room: $?"
	load wide --replace
	for i in 20 21 22 23; do
		pacer ban s0 add "100.64.0.0/$i" --for 10m >/dev/null
	done
	decide "1 ban Range 198.51.100.0/24 600000"
	once_fails 's0: 1 ban of this length is left out: ' || return
	decide "1 ban Ip nobody 600000"
	once_fails ' 1 decision is left out, the first: '
	api_down
	rm -rf "$work/lapi"
}

# check_of LINE...: of settings with this.
check_of()
{
	settings "$@"
	"$bouncer" --check -c "$work/bouncer.yaml"
}

wrong_settings()
{
	local args code

	check_of || fail "right settings are refused"
	refused 2 'bouncer.yaml:5: api_url: it is no address: write http://127' check_of "api_url: ftp://x"
	refused 2 'bouncer.yaml:5: api_url: it names no host' check_of "api_url: http:///"
	refused 2 'bouncer.yaml:.*origins: name at least one' check_of "origins: []"
	refused 2 'bouncer.yaml:.*name at least one' check_of "interfaces: []"
	refused 2 'bouncer.yaml:.*longer than 15 characters' check_of "interfaces: [an-interface-with-a-long-name]"
	refused 2 'bouncer.yaml:.*unknown field "api_kye": did you mean "api_key"' check_of "api_kye: x"
	refused 2 'bouncer.yaml:.*10 has no unit' check_of "update_frequency: 10"
	refused 2 'bouncer.yaml:.*less than 1s' check_of "timeout: 10ms"
	refused 2 'bouncer.yaml:.*a blank or a control character' check_of 'api_key: "a\r\nX: y"'
	settings
	sed -i /api_key/d "$work/bouncer.yaml"
	refused 2 'bouncer.yaml:1: api_key, as .* is missing' "$bouncer" --check -c "$work/bouncer.yaml"
	refused 2 'none.yaml: No such file' "$bouncer" -c "$work/none.yaml"
	refused 2 "$work: Is a directory" "$bouncer" -c "$work"
	head -c 1M /dev/zero >"$work/long.yaml"
	refused 2 'long.yaml: it is too long' "$bouncer" -c "$work/long.yaml"
	rm "$work/long.yaml"
	refused 2 "unrecognized option '--chek'" "$bouncer" --chek
	for args in "--check --once" s0; do
		code=0
		# shellcheck disable=SC2086 # several words
		"$bouncer" $args 2>"$work/err" || code=$?
		equal "$code" 2 "$args: its exit code"
		grep -q '^usage: ' "$work/err" || fail "$args: $(cat "$work/err")"
	done
	settings
	chmod 644 "$work/bouncer.yaml"
	"$bouncer" --check -c "$work/bouncer.yaml" 2>&1 | grep -q 'everybody can read its api_key' ||
		fail "nothing is said of a key that all can read"
	chmod 640 "$work/bouncer.yaml" # as its group may be that of the service
	equal "$("$bouncer" --check -c "$work/bouncer.yaml" 2>&1)" "" "what is said of a key that not all can read"
	"$bouncer" --help | grep -q '^usage: xdp-pacer-crowdsec ' || fail "no help"
	"$bouncer" --version | grep -q '^xdp-pacer-crowdsec [0-9]' || fail "no version"
	for asked in --version --help; do
		! "$bouncer" $asked >/dev/full 2>"$work/err" || fail "$asked onto a full disk"
		grep -qx "xdp-pacer-crowdsec: the result cannot be written: No space left on device" "$work/err" || fail "$(cat "$work/err")"
	done
}

# try FUNCTION: what it leaves when it fails is not there for the next.
try()
{
	check "$1" "$1"
	end_remembered KILL "$work/pids"
	: >"$work/pids"
	rm -rf "$work/lapi"
}

net_up
in_server ip link set lo up
try follows
try several_of_one
try api_that_fails
try api_that_fails_in_turn
try api_that_drips
try api_that_is_slow
try ends_while_it_asks
try ends_while_a_name_is_sought
try api_restarted
try comes_and_goes
try bouncer_restarted
try cannot_wait
try odd_ones
try no_room
try another_table
try another_program
try no_length
try many
try once
try once_in_part
try wrong_settings
finish
