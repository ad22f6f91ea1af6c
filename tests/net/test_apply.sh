#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The policy of a pacer at work is changed, with traffic and without: state and counters are kept,
# and no window across a change admits more than either policy would.
#
#   client                                          server
#   10.77.0.11-14, fd77::11-12   c0 ------- s0      the pacer; a socket that counts
#   several times the limit                         xdp-pacer apply, 60 times over
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

# apply_reports NAME KEPT NEW RETIRED
apply_reports()
{
	local got

	got=$(pacer apply s0 -c "$work/$1.yaml" --json | jq -r '.limits | "\(.kept) \(.new) \(.retired)"')
	equal "$got" "$2 $3 $4" "apply $1: limits kept, new, retired"
}

value_change()
{
	limit ten 10
	limit thirty 30
	limit five 5
	load ten
	arrive "10 10" n=20 n=20,from=fd77::11
	apply_reports thirty 1 0 0
	arrive "20 20 30" n=50 n=50,from=fd77::11 n=50,from=10.77.0.12
	apply_reports five 1 0 0
	arrive "0 5" n=20 n=20,from=10.77.0.13
	apply_reports ten 1 0 0
	arrive "0 5" n=20 n=20,from=10.77.0.13
	pacer set s0 udp.packets=40 >/dev/null
	arrive "10 30" n=50 n=50,from=10.77.0.13
	equal "$(status .serial)" 5 serial
	counted udp 370 140 0 230
}

# The new shape begins empty; what it may admit, the old one still counts, until its window and a
# slot have passed.
shape_change()
{
	limit old 10 2s 10
	limit new 15 2s 5
	load old
	arrive "10" n=20
	apply_reports new 0 1 1
	equal "$(status .retired_limits)" 1 "retired limits"
	arrive "0 10" n=20 n=20,from=10.77.0.12
	until_true 4 test_status .retired_limits 0
	arrive "15" n=20
	counted udp 80 35 0 45
	apply_reports new 1 0 0
}

test_status()
{
	[ "$(status "$1")" = "$2" ]
}

# There and back before the old window has passed: its state is taken up again.
shape_there_and_back()
{
	limit a 10 60s 10
	limit b 12 60s 5
	load a
	arrive "6" n=6
	apply_reports b 0 1 1
	arrive "4" n=20
	apply_reports a 1 0 1
	arrive "0 10" n=20 n=20,from=10.77.0.12
	apply_reports b 1 0 1
	arrive "0 0 10" n=20 n=20,from=10.77.0.12 n=20,from=10.77.0.13
}

rules()
{
	policy one <<-END
	rules:
	  - {name: a, match: {dport: 1}, limits: [{key: src, packets: 10, window: 60s}]}
	  - {name: b, match: {dport: 2}, limits: [{key: src, packets: 10, window: 60s}]}
	END
	policy two <<-END
	rules:
	  - {name: c, match: {dport: 3}, limits: [{key: src, packets: 10, window: 60s}]}
	  - {name: b, match: {dport: 2}, limits: [{key: src, packets: 10, window: 60s}]}
	  - {name: a, match: {dport: 1}, limits: [{key: src, packets: 10, window: 60s}]}
	END
	policy three <<-END
	rules:
	  - {name: c, match: {dport: 3}, limits: [{key: src, packets: 10, window: 60s}]}
	  - {name: a, match: {dport: 1}, limits: [{key: src, packets: 10, window: 60s}]}
	END
	load one
	arrive "10 6 20" n=20,dport=1 n=6,dport=2 n=20,dport=3
	apply_reports two 2 1 0
	arrive "0 4 10" n=20,dport=1 n=20,dport=2 n=20,dport=3
	counted a 40 10 0 30
	counted b 26 10 0 16
	counted c 20 10 0 10
	apply_reports three 2 0 1 # of a rule that it does not have
	equal "$(status .retired_limits)" 1 "retired limits"
	arrive "0 20 0" n=20,dport=1 n=20,dport=2 n=20,dport=3
	counted a 60 10 0 50
	counted c 40 10 0 30
	equal "$(stats '[.rules[].name] | join(" ")')" "c a" rules
	equal "$(stats .no_limit.no_rule)" 40 "packets of no rule"
	apply_reports two 3 0 0 # back within its window, b knows what it has let through
	counted b 0 0 0 0
	arrive "0" n=20,dport=2
}

whole_policy()
{
	limit enforce 10
	limit monitor 10
	echo "mode: monitor" >>"$work/monitor.yaml"
	load enforce
	arrive "10" n=20
	apply_reports monitor 1 0 0
	equal "$(status .mode)" monitor mode
	arrive "20" n=20
	counted udp 40 10 0 30
	pacer set s0 mode=enforce >/dev/null
	arrive "0" n=20
}

# The state's size is that of the load: where the policy wants another, or more, that is said.
another_size()
{
	local asked

	limit good 10
	load good
	for asked in "memory: 2Mi" "withstand: 1Mpps"; do
		sed "s/^memory: .*/$asked/" "$work/good.yaml" >"$work/size.yaml"
		pacer apply s0 -c "$work/size.yaml" 2>&1 >/dev/null |
			grep -q ": s0: ${asked%:*}: the state stays as large as it was at load: unload and load" ||
			fail "$asked" || return
	done
	sed "s/^memory: .*/memory: 512Ki/" "$work/good.yaml" >"$work/size.yaml"
	pacer apply s0 -c "$work/size.yaml" 2>&1 >/dev/null |
		grep -q "as it was at load: to make it smaller, unload, remove the file that a service saves it in" ||
		fail "a smaller one" || return
	sed 's/window: 60s/&, entries: 2G/' "$work/good.yaml" >"$work/size.yaml"
	refused 2 'size.yaml:.*no room for' pacer apply s0 -c "$work/size.yaml"
	equal "$(status .serial)" 4 serial
}

# A policy that does not fit is refused, and the one in force stays as it was.
refused_whole()
{
	limit good 10
	load good
	arrive "10" n=20
	sed 's/window: 60s/&, entries: 1M/; s/name: udp/name: big/' "$work/good.yaml" >"$work/big.yaml"
	refused 2 'big.yaml:.*no room for its state' pacer apply s0 -c "$work/big.yaml"
	equal "$(status '"\(.serial) \(.rules[0])"')" "1 udp" "serial and rule"
	arrive "0 10" n=20 n=20,from=10.77.0.12
}

# --- under load -----------------------------------------------------------------------------------

# under_load NAME MS LIMIT: six senders of several times the limit, while the policies NAME-1,
# NAME-2... are applied in turn; no source may get more than LIMIT into any MS milliseconds.
under_load()
{
	local name=$1 ms=$2 limit=$3 applied=0 n before

	n=$(find "$work" -name "$name-*.yaml" | wc -l)
	load "$name-1"
	before=$(handed)
	six_on "$ms"
	while [ "$applied" -lt 80 ]; do
		applied=$((applied + 1))
		apply "$name-$((applied % n + 1))" || fail "apply $applied" || return
	done
	six_held "$limit" || return
	equal "$(status .serial)" $((applied + 1)) serial || return
	six_judged "$before"
}

# rule NAME LIMIT...: the policy of one rule and these limits.
rule()
{
	local name=$1 one

	shift
	{
		printf 'rules:\n  - name: udp\n    match: {proto: udp, dport: 9000}\n    limits:\n'
		for one; do
			echo "      - {key: src, entries: 64, $one}"
		done
	} | policy "$name"
}

load_values()
{
	rule value-1 "packets: 200, window: 1s"
	rule value-2 "packets: 120, window: 1s"
	rule value-3 "packets: 160, window: 1s"
	under_load value 980 200
}

load_shapes()
{
	rule shape-1 "packets: 200, window: 1s"
	rule shape-2 "packets: 150, window: 1s, slots: 8"
	rule shape-3 "packets: 200, window: 1s, slots: 20"
	rule shape-4 "packets: 180, window: 1s" "bytes: 9400, window: 1s"
	under_load shape 980 200
}

# Windows whose slots are shorter than a change takes.
load_short()
{
	rule short-1 "packets: 20, window: 100ms, slots: 58"
	rule short-2 "packets: 20, window: 100ms, slots: 50"
	rule short-3 "packets: 20, window: 100ms, slots: 40"
	under_load short 97 20
}

# held_up OLD NEW PACKETS: the change is held up for 800 ms before it comes into force, and the old
# limit of 2 s spent meanwhile: it holds until 2 s after that, whenever the change began.
held_up()
{
	local cut change

	cut=$(tool cut)
	printf 'rules:\n  - {name: udp, limits: [{key: src, %s}]}\n' "$1" | policy old
	printf 'rules:\n  - {name: udp, limits: [{key: src, %s}]}\n' "$2" | policy new
	load old
	background "$SERVER" "$cut" membarrier 0 0 800 \
		"$BUILD/xdp-pacer" apply s0 -c "$work/new.yaml"
	change=$pid
	arrive "$3 0 $3" n=20,wait_ms=700 n=20,wait_ms=1600 n=20,wait_ms=800
	wait "$change" || equal $? 100 "the change that was held up: exit code"
	equal "$(status .serial)" 2 serial
}

# --- confirm --------------------------------------------------------------------------------------

not_pending()
{
	[ "$(status .confirm_within_ns)" = 0 ]
}

rolls_back()
{
	limit old 10
	limit new 30
	load old
	arrive "10" n=20
	apply new --confirm-within 1h
	[ "$(status .confirm_within_ns)" -gt 0 ] || fail "it does not wait to be confirmed"
	arrive "20 30" n=50 n=50,from=10.77.0.12
	lapse
	arrive "0 0 10" n=20 n=20,from=10.77.0.12 n=20,from=10.77.0.13
	equal "$(status '.rules[0]')" udp rule
	counted udp 180 70 0 110
	refused 1 'the time to confirm has passed' pacer confirm s0
	apply new
	arrive "20" n=50,from=10.77.0.13
	refused 1 'no policy waits' pacer confirm s0
}

confirmed()
{
	limit old 10
	limit new 30
	load old
	refused 1 'no policy waits' pacer confirm s0
	apply new --confirm-within 5s
	refused 1 'waits to be confirmed' pacer apply s0 -c "$work/old.yaml"
	refused 1 'waits to be confirmed' pacer set s0 udp.packets=5
	pacer confirm s0 >/dev/null
	equal "$(status .confirm_within_ns)" 0 "time left to confirm"
	arrive "30 0" n=50 n=20,wait_ms=5100
	apply old
	arrive "10" n=20,from=10.77.0.12
}

# What the policy on trial admitted counts after it has given way, as after any other change.
rolls_back_exactly()
{
	limit old 10 3s 10
	limit new 10 3s 5
	load old
	apply new --confirm-within 1h
	until_true 6 test_status .retired_limits 0
	arrive "10" n=20
	lapse
	arrive "0" n=20
}

# A limit that was retired is taken up again by a policy that rolls back: what it admitted meanwhile
# counts beyond the end that it had before.
rolls_back_taken_up()
{
	limit strict 10 6s 10
	limit wide 1000 6s 5
	load strict
	apply wide
	sleep 4.5 # the limit is retired for 6.9 s
	apply strict --confirm-within 3s
	arrive "10" n=20
	until_true 6 not_pending
	arrive "0" n=20
}

# The allow-list goes back with its policy.
rolls_back_allow()
{
	limit old 10
	{
		cat "$work/old.yaml"
		echo "allow: [10.77.0.12]"
	} >"$work/new.yaml"
	load old
	apply new --confirm-within 1h
	arrive "10 20" n=20 n=20,from=10.77.0.12
	lapse
	arrive "10" n=20,from=10.77.0.12
	apply new --confirm-within 1h
	pacer confirm s0 >/dev/null
	arrive "20" n=20,from=10.77.0.12
	apply old --confirm-within 1s
	until_true 3 not_pending
	arrive "20" n=20,from=10.77.0.12
}

# meanwhile COMMAND...: what is done while an apply waits for its turn; it finds that and does nothing.
meanwhile()
{
	local code=0

	limit old 10
	limit new 20
	load old
	exec 9>>/run/xdp-pacer.lock
	flock 9
	background "$SERVER" "$BUILD/xdp-pacer" apply s0 -c "$work/new.yaml" >"$work/out" 2>"$work/err" 9>&-
	until_true 5 waits_for_lock
	"$@"
	exec 9>&-
	wait "$pid" || code=$?
	equal "$code" 1 "exit code" || return
	equal "$(cat "$work/out" "$work/err")" \
		"xdp-pacer: s0: its pacer was taken off or replaced meanwhile: try again" "what apply says"
}

# Who only looks does so beside others who do, and waits for a change.
looks_beside()
{
	local what

	policy looked <<-END
	allow: [10.77.0.12]
	sets: [{name: drop, of: 10.79.0.0/30}]
	rules: [{name: udp, match: {src: "@drop"}, limits: [{key: src/32,128, packets: 9, window: 60s}]}]
	END
	load looked
	exec 9>>/run/xdp-pacer.lock
	flock -s 9
	for what in "show s0" "why s0 10.77.0.12" "allow s0 list" "sets s0 list" "sets s0 show drop"; do
		# shellcheck disable=SC2086
		hang_s=20 pacer $what >/dev/null 9>&- || fail "$what waits for others who look" || return
	done
	flock 9
	background "$SERVER" "$BUILD/xdp-pacer" sets s0 show drop >"$work/out" 2>"$work/err" 9>&-
	until_true 5 waits_for_lock READ
	exec 9>&-
	wait "$pid" || fail "$(cat "$work/err")" || return
	grep -q 10.79.0.0/30 "$work/out"
}

is_stopped()
{
	[ "$(ps -o state= -p "$1")" = T ]
}

# Who waits for long says for whom; once that is said, a signal ends a service, too.
waits_for_who_is_stopped()
{
	local holder waiting

	limit old 10
	load old
	# shellcheck disable=SC2016 # of the shell that it runs
	background "$SERVER" flock /run/xdp-pacer.lock sh -c 'kill -STOP $PPID'
	holder=$pid
	waiting="xdp-pacer: /run/xdp-pacer.lock: waiting for process $holder (flock), which has it locked"
	until_true 5 is_stopped "$holder" || return
	background "$SERVER" "$BUILD/xdp-pacer" serve s0 -c "$work/old.yaml" --state "$work/old.state" \
		>"$work/out" 2>"$work/err"
	until_true 20 grep -Fqx -- "$waiting and is stopped: \`kill -CONT $holder\` lets it go on" "$work/err" ||
		fail "$(cat "$work/err")" || return
	kill -TERM "$pid"
	until_true 20 is_over "$pid" || fail "a signal does not end it" || return
	grep -q '/run/xdp-pacer.lock: ended while another process had it locked$' "$work/err" ||
		fail "$(cat "$work/err")" || return
	background "$SERVER" "$BUILD/xdp-pacer" set s0 udp.packets=20 >"$work/out" 2>"$work/err"
	until_true 20 grep -Fq -- "$waiting" "$work/err" || return
	kill -CONT "$holder"
	wait "$pid" || fail "set: $(cat "$work/err")" || return
	pacer show s0 | grep -q 'packets: 20'
}

# The lock is no link, which would make a file wherever it leads.
lock_is_a_link()
{
	limit old 10
	load old
	# shellcheck disable=SC2016
	refused 1 "^xdp-pacer: rotate: /run/xdp-pacer.lock is a symbolic link, and has to be a file: remove it$" \
		in_server unshare -m sh -c '
			mount -t tmpfs none /run && ln -s "$1/made" /run/xdp-pacer.lock || exit 99
			shift
			exec "$@"' sh "$work" "$BUILD/xdp-pacer" rotate s0 || return
	[ ! -e "$work/made" ] || fail "it made what the link leads to"
}

taken_off()
{
	meanwhile pacer unload s0
	equal "$(what_is_on s0)" "{}" "on s0"
}

replace()
{
	pacer unload s0
	load old
}

replaced()
{
	meanwhile replace
	equal "$(status .serial)" 1 serial
	arrive "10" n=20
}

net_up
check apply-value value_change
check apply-shape shape_change
check apply-shape-there-and-back shape_there_and_back
check apply-rules rules
check apply-whole whole_policy
check apply-another-size another_size
check apply-refused refused_whole
check apply-load-values load_values
check apply-load-shapes load_shapes
check apply-load-short load_short
check apply-held-up held_up "packets: 10, window: 2s, slots: 58" \
	"packets: 10, window: 2s, slots: 50" 10
check apply-held-up-gap held_up "gap: 2s" "gap: 2s, rows: 1" 1
check apply-rolls-back rolls_back
check apply-confirmed confirmed
check apply-rolls-back-exactly rolls_back_exactly
check apply-rolls-back-taken-up rolls_back_taken_up
check apply-rolls-back-allow rolls_back_allow
check apply-taken-off taken_off
check apply-replaced replaced
check apply-looks-beside looks_beside
check apply-lock-is-a-link lock_is_a_link
check apply-waits-for-who-is-stopped waits_for_who_is_stopped
finish
