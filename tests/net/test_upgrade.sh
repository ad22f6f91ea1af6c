#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A new version of the program takes over in place: with the policy, what is held, and the counters.
#
#   client                                     server
#   10.77.0.11-16, fd77::11-12  c0 ---- s0     the pacer; `xdp-pacer upgrade`
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

goes_on()
{
	local before

	policy all <<-END
	bans: 64
	allow: [10.77.0.18]
	rules:
	  - name: udp
	    match: {proto: udp, dport: 9000}
	    limits: [{key: src, packets: 10, window: 600s}, {key: all, uses: 30, cooldown: 600s}]
	    ban: 600s
	END
	load all "$@"
	pacer allow s0 add 10.77.0.17 >/dev/null
	arrive "6 10 9 15" n=6 n=12,from=10.77.0.12 n=9,from=10.77.0.17 n=15,from=10.77.0.18
	before=$(status .program_id)
	equal "$(pacer upgrade s0 --json | jq -c '[.replaced.program_id, .replaced.state]')" \
		"[$before,\"kept\"]" "replaced"
	[ "$(status .program_id)" != "$before" ] || fail "it is the same program"
	arrive "4 0 9 15" n=9 n=9,from=10.77.0.12 n=9,from=10.77.0.17 n=15,from=10.77.0.18
	equal "$(stats '.rules[] | "\(.matched) \(.admitted)"')" "36 20" "matched, admitted"
	equal "$(status '[.bans.keys[].key] | sort | join(" ")')" "10.77.0.11 10.77.0.12" "bans"
	arrive "10" n=15,from=10.77.0.13
	pacer set s0 udp.uses=31 >/dev/null
	arrive "1" n=9,from=10.77.0.14
}

skb_mode() { goes_on --mode skb; }
native_mode() { goes_on; }

refused_upgrade()
{
	refused 1 's0: has no pacer' pacer upgrade s0
	refused 2 'wants one interface' pacer upgrade
	refused 1 'no such interface' pacer upgrade nosuch0
	"${CLANG:-clang-19}" -O2 -g -target bpf "-I/usr/include/$(gcc -print-multiarch)" -c "$here/elder.bpf.c" \
		-o "$work/elder.o"
	in_server ip link set dev s0 xdp obj "$work/elder.o" sec xdp.elder
	refused 1 'has ABI version [0-9]+, this tool [0-9]+, which cannot go on' pacer upgrade s0
	# A service begins anew in its place, and says so.
	limit one 5
	background "$SERVER" "$BUILD/xdp-pacer" serve s0 -c "$work/one.yaml" --state "$work/none" \
		>"$work/out" 2>"$work/err"
	until_true 20 grep -q loaded "$work/out"
	kill -TERM "$pid"
	wait "$pid"
	grep -Eqx 'xdp-pacer: s0: its pacer had ABI version [0-9]+, this tool has [0-9]+: its state is gone' "$work/err" ||
		fail "$(cat "$work/err")"
}

# Packets flow all the while: each is judged once, and by no window more than the limit passes.
under_load()
{
	local rounds before

	policy load <<-END
	rules:
	  - name: udp
	    match: {proto: udp, dport: 9000}
	    limits: [{key: src, packets: 20, window: 100ms, slots: 10}, {key: src, gap: 500us, rows: 1}]
	END
	load load
	before=$(handed)
	six_on 97
	for ((rounds = 0; rounds < 10; rounds++)); do
		pacer upgrade s0 >/dev/null
	done
	six_held 20 || return
	six_judged "$before"
}

# What waits for its turn while another program comes over the same state is done to that.
waited_meanwhile()
{
	local verb n=0

	policy banning <<-END
	bans: 64
	rules: []
	END
	load banning
	: >"$work/other"
	for verb in "upgrade s0" "shadow s0 -c $work/banning.yaml" "upgrade s0" "shadow s0 --stop"; do
		exec 9>>/run/xdp-pacer.lock
		flock 9
		background "$SERVER" "$BUILD/xdp-pacer" ban s0 add "10.77.0.$((++n))" >"$work/out" 2>"$work/err" 9>&-
		until_true 5 waits_for_lock
		# Its turn is before: it has another file in the place of the lock.
		# shellcheck disable=SC2016,SC2086
		in_server unshare -m sh -c '
			mount --bind "$1/other" /run/xdp-pacer.lock || exit 99
			shift
			exec "$@"' sh "$work" "$BUILD/xdp-pacer" $verb >/dev/null 9>&- || fail "$verb"
		exec 9>&-
		wait "$pid" || fail "a ban while $verb: $(cat "$work/err")"
	done
	equal "$(status '[.bans.keys[].key] | sort | join(" ")')" "10.77.0.1 10.77.0.2 10.77.0.3 10.77.0.4" "bans"
}

net_up
check upgrade-goes-on native_mode
check upgrade-goes-on-skb skb_mode
check upgrade-refused refused_upgrade
check upgrade-waited-meanwhile waited_meanwhile
check upgrade-under-load under_load
finish
