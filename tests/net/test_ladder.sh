#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Ladders: one line, and a limit for each of its prefix lengths; what each source, its neighbours and
# theirs have together.
#
#   client                                  server
#   10.77.0.11-18, fd77::11-18  c0 ---- s0  the pacer; its verbs
#
# 11 to 15 are in 10.77.0.0/28, 16 to 18 in 10.77.0.16/28; of IPv6 all are in one /64.
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

readonly lengths='"src/[32,28,24],[128,64,56]"'

# ladder NAME VALUE WIDER [MORE]: the policy of one rule with that ladder.
ladder()
{
	policy "$1" <<-END
	rules:
	  - name: r
	    match: {proto: udp, dport: 9000}
	    limits: [{key: $lengths, $2, wider: $3}]
	${4:-}
	END
}

# Ten a source, twenty a /28, thirty of them all.
each_length()
{
	ladder three "packets: 10, window: 60s" "[x2, x3]"
	load three
	arrive "10 10 0 9 1 0" n=15,from=10.77.0.11 n=15,from=10.77.0.12 n=15,from=10.77.0.13 \
		n=9,from=10.77.0.16 n=15,from=10.77.0.17 n=15,from=10.77.0.18
	arrive "10 9 1 0" n=15,from=fd77::11 n=9,from=fd77::12 n=15,from=fd77::13 n=15,from=fd77::14
	equal "$(stats '.rules[0] | "\(.admitted) \(.denied.window)"')" "50 88" "admitted, denied"
}

rates()
{
	ladder rates "rate: 20/h, burst: 10" x2
	load rates
	arrive "10 10 0 10 10 0" n=15,from=10.77.0.11 n=15,from=10.77.0.12 n=15,from=10.77.0.13 \
		n=15,from=10.77.0.16 n=15,from=10.77.0.17 n=15,from=10.77.0.18
	arrive "10 10 0" n=15,from=fd77::11 n=15,from=fd77::12 n=15,from=fd77::13
}

# The narrowest prefix that is over its limit, and no wider one for it.
bans()
{
	ladder bans "packets: 10, window: 60s" x2 "    ban: 60s"$'\nbans: 64'
	load bans
	arrive "10 10" n=11,from=10.77.0.11 n=10,from=10.77.0.12
	equal "$(status '[.bans.keys[].key] | sort | join(" ")')" "10.77.0.11" "a source over its limit"
	arrive "0" n=3,from=10.77.0.13
	equal "$(status '[.bans.keys[].key] | sort | join(" ")')" "10.77.0.0/28 10.77.0.11" "then its neighbours"
	arrive "0 10" n=5,from=10.77.0.14 n=10,from=10.77.0.16
	pacer why s0 --json "udp 10.77.0.14:1 > 10.77.0.1:9000" >"$work/why"
	equal "$(jq -r '.reason' "$work/why")" ban "why: the reason"
	equal "$(jq -r '[.limits[] | select(.banned_ns) | "\(.limit) \(.rung) \(.key)"] | join(", ")' "$work/why")" \
		"0 2 10.77.0.0/28" "why: the rung"
	pacer ban s0 del 10.77.0.0/28 --rule r >/dev/null
	pacer ban s0 add 10.77.0.12 --rule r >/dev/null
	equal "$(status '[.bans.keys[].key] | sort | join(" ")')" "10.77.0.11 10.77.0.12" "by hand: the address alone"
}

# Whoever is allowed is no part of what its neighbours have together.
allowed()
{
	ladder allowed "packets: 10, window: 60s" x2 "allow: 10.77.0.12"
	load allowed
	arrive "60 10 10 0" n=60,from=10.77.0.12 n=15,from=10.77.0.11 n=15,from=10.77.0.13 n=15,from=10.77.0.14
}

# Every rung has its share of the line's new value, and keeps what it has counted.
set_value()
{
	ladder set "packets: 10, window: 60s" x2
	load set
	arrive "10 10 0" n=15,from=10.77.0.11 n=15,from=10.77.0.12 n=15,from=10.77.0.13
	pacer set s0 r.packets=15 >/dev/null
	arrive "5 5 0" n=15,from=10.77.0.11 n=15,from=10.77.0.12 n=15,from=10.77.0.13
	pacer set s0 r.wider=x3 >/dev/null
	arrive "0 15 0" n=15,from=10.77.0.11 n=15,from=10.77.0.13 n=15,from=10.77.0.14
	equal "$(pacer show s0 | grep -c 'wider: x3')" 1 "show has the line as it is set"
	refused 2 "x1000000000000 of it, for the widest, is more than can be counted" pacer set s0 r.wider=x1000000
	refused 2 "no such field that can be set" pacer set s0 r.key=src
}

# A ladder that loses a rung keeps the others' state; what goes stays until its window has passed.
apply_rungs()
{
	ladder before "packets: 10, window: 60s" x2
	policy after <<-END
	rules:
	  - name: r
	    match: {proto: udp, dport: 9000}
	    limits: [{key: "src/[32,28],[128,64]", packets: 10, window: 60s, wider: x2}]
	END
	load before
	arrive "10" n=15,from=10.77.0.11
	pacer apply s0 -c "$work/after.yaml" --json >"$work/apply"
	equal "$(jq -r '"\(.limits.kept) \(.limits.new)"' "$work/apply")" "2 0" "kept, new"
	arrive "0 10 0" n=15,from=10.77.0.11 n=15,from=10.77.0.12 n=15,from=10.77.0.13
	apply before
	arrive "0 10" n=15,from=10.77.0.13 n=15,from=10.77.0.16
}

# Which rung it is, wherever limits are told.
told()
{
	ladder told "packets: 10, window: 60s" x2
	pacer check -c "$work/told.yaml" >"$work/check"
	grep -q "^  r, limit 0, rung 2 of 3, by src/28,64$" "$work/check" || fail "check: $(cat "$work/check")"
	grep -q "never more than 40 packets in any 1m" "$work/check" || fail "check: no value of the widest"
	pacer check -c "$work/told.yaml" --json >"$work/check"
	equal "$(jq -c '[.limits[] | [.limit_index, .rung, .key, .limit]]' "$work/check")" \
		'[[0,1,"src/32,128",10],[0,2,"src/28,64",20],[0,3,"src/24,56",40]]' "check --json"
	load told
	arrive "10 10" n=10,from=10.77.0.11 n=10,from=10.77.0.12
	pacer why s0 "udp 10.77.0.13:1 > 10.77.0.1:9000" >"$work/why"
	grep -q "^  denied by r.limits\[0\], rung 2 of 3: 10.77.0.0/28$" "$work/why" || fail "why: $(cat "$work/why")"
	grep -q "r.limits\[0\], rung 3 of 3: 40 packets in 1m" "$work/why" || fail "why: $(cat "$work/why")"
	pacer why s0 "udp 10.77.0.11:1 > 10.77.0.1:9000" >"$work/why"
	grep -q "^  denied by r.limits\[0\], rung 1 of 3: 10.77.0.11$" "$work/why" || fail "why: $(cat "$work/why")"
	equal "$(pacer top s0 --once --json | jq -c '[.tables[] | [.limit, .rung]]')" '[[0,1],[0,2],[0,3]]' "top --json"
	ladder other "packets: 12, window: 60s" x3
	pacer show s0 --diff "$work/other.yaml" >"$work/diff" || true
	grep -q "r.limits\[0\].packets" "$work/diff" && grep -q "r.limits\[0\].wider" "$work/diff" ||
		fail "show --diff: $(cat "$work/diff")"
	equal "$(grep -c "limits\[" "$work/diff")" 2 "show --diff tells the line, once"
}

net_up
check ladder-each-length each_length
check ladder-rates rates
check ladder-bans bans
check ladder-allowed allowed
check ladder-set set_value
check ladder-apply apply_rungs
check ladder-told told
finish
