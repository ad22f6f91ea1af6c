#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What estimate says of a pacer at work: exact values where the sample is the window, intervals that
# hold them where it is not, a flood of spoofed sources, and what is refused.
#
#   client                                     server
#   any source, by raw frames   c0 ---- s0     the pacer, with memory for samples
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

# sampled NAME SAMPLE: a policy of one rule, and this sample.
sampled()
{
	{
		echo 'rules: [{name: udp, match: {proto: udp, dport: 9000}, limits: [{key: src/32,128, packets: 10, window: 60s}]}]'
		[ -z "$2" ] || echo "sample: $2"
	} | policy "$1"
}

# estimate FILTER [ARG...]: of the reading, what the jq filter says.
estimate()
{
	pacer estimate s0 --json "${@:2}" | jq -rc "$1"
}

# Fewer packets than samples: all is exact. 8 + 4 + 2 + 1 + 1 of 16.
exact()
{
	sampled whole '{of: all, k: 64, packets: 1000, replacement: without}'
	load whole
	arrive "8 4 2 1 1" n=8 n=4,from=fd77::12 n=2,from=10.77.0.13 n=1,from=10.77.0.14 n=1,from=fd77::15
	equal "$(estimate '[.packets, .samples, .distinct, .F2.value, .F2.low, .F2.high] | join(" ")' --key src/32,128)" \
		"16 16 5 86 86 86" "packets, samples, keys, F2"
	equal "$(estimate '[.entropy.low, .entropy.high, .single.value] | join(" ")' --key src/32,128)" \
		"1.875 1.875 0.125" "entropy, share of what is there once"
	equal "$(estimate '[.keys[] | "\(.share.low) \(.samples) \(.key)"] | sort | reverse | join(",")' --key src/32,128)" \
		"0.5 8 10.77.0.11,0.25 4 fd77::12,0.125 2 10.77.0.13,0.0625 1 fd77::15,0.0625 1 10.77.0.14" keys
	equal "$(estimate '.keys[1] | "\(.samples) \(.key)"')" "5 fd77::/64" "of IPv6 a /64 is a source"
	equal "$(estimate '[.F3.value, .distinct] | join(" ")' --key dst --moment 3)" "1456 2" "F3 by dst"
	pacer estimate s0 >"$work/text"
	grep -q '^s0: 16 packets (all, the last 1000 of each CPU) by src/32,64, from 16 samples without' "$work/text" ||
		fail "first line: $(head -n 1 "$work/text")"
	equal "$(sed -E 's/[0-9.]+ [KM]iB/N/; s/[0-9.]+ ms/T/' "$work/text")" "$(
		cat <<-END
			s0: 16 packets (all, the last 1000 of each CPU) by src/32,64, from 16 samples without replacement
			  entropy    1.65 (1.65..1.65) bits, of at most 4
			  H2         1.45 (1.45..1.45) bits: by coincidences, as of 2.72..2.72 equal keys
			  F2         94 (94..94)
			  seen once  6.25 (6.25..6.25) % of the sample
			  keys       50 (50..50) %  10.77.0.11
			             31.2 (31.2..31.2) %  fd77::/64
			             12.5 (12.5..12.5) %  10.77.0.13
			  low..high hold at 95%, for all keys together; the samples are worth 16 of a single stream
			  cost: the sampler, with N and its time for each packet; this reading, with T and no time of any packet
		END
	)" "the text"
	equal "$(estimate '[.k, .cpus_behind, (.by_cpu | add)]')" "[64,0,16]" "k, CPUs behind, packets by CPU"
}

# within VALUE of .QUANTITY's bounds
within()
{
	estimate ".$2 | .low <= $1 and .high >= $1" "${@:3}"
}

# 100 + 50 + 50 of a packet each, of 200: F2 = 12550, H2 = 1.672, H = 3.411 bits; 40 are denied.
bounds()
{
	local i singles=()

	sampled time '{of: all, k: 64, window: 60s}'
	load time
	for ((i = 1; i <= 50; i++)); do
		singles+=("from=203.0.113.$i,dport=1")
	done
	arrive "100 10" n=100,dport=2 n=50,from=10.77.0.12
	timeout "$hang_s" "$shots" "$CLIENT" "$SERVER" "${singles[@]}" >/dev/null
	equal "$(estimate .packets)" 200 packets
	equal "$(within 12550 F2) $(within 1.6722 H2) $(within 3.4109 entropy)" "true true true" \
		"F2, H2 and entropy in $(estimate '[.F2, .H2, .entropy]')"
	# By chance the other may be the first of the sample, once in a hundred times.
	equal "$(estimate '.keys[] | select(.key == "10.77.0.11") | .share.low <= .5 and .share.high >= .5')" \
		true "the share of the most frequent key"
	off
	sampled denied '{of: denied, k: 64, window: 60s}'
	load denied
	arrive "10 10" n=50 n=20,from=10.77.0.12
	equal "$(estimate '"\(.packets) \(.of)"')" "50 denied" "packets, of"
}

# Few sources, then spoofed ones: the entropy's bounds do not meet, and the sample fills with what is
# there once.
flood()
{
	local before after

	on_cpu 0 # each CPU has a window of its own
	sampled flood '{of: all, k: 64, packets: 1000, replacement: without}'
	load flood
	arrive "10 10 10" n=600 n=600,from=10.77.0.12 n=600,from=10.77.0.13
	before=$(estimate .entropy.high)
	equal "$(estimate '.single.value < 0.1')" true "few are there once before"
	in_client "$(tool flood)" c0 5000 1 >/dev/null
	after=$(estimate .entropy.low)
	equal "$(estimate '.single.value > 0.9 and .packets >= 1000')" true "almost all are there once"
	jq -n "$before < $after" | grep -q true || fail "entropy $before at most, then $after at least"
}

# readings PATTERN FILE: five of them are whole.
readings()
{
	[ "$(grep -c "$1" "$2")" -ge 6 ]
}

# watched PATTERN FILE OPTION...: estimates are told again and again, until there are a few, each with
# one line of that pattern.
watched()
{
	background "$SERVER" "$BUILD/xdp-pacer" estimate s0 --every 200ms "${@:3}" >"$2"
	until_true 3 readings "$1" "$2" || fail "readings: $(cat "$2")" || return
	kill "$pid"
	wait "$pid" || [ $? -eq 143 ]
}

# Again and again: JSON, and rows under one heading.
watch()
{
	sampled time '{of: all, k: 64, window: 1h}'
	load time
	arrive "5" n=5
	watched '"packets":' "$work/json" --json
	[ "$(jq -c .packets "$work/json" | grep -c '^5$')" -ge 5 ] || fail "readings: $(jq -c .packets "$work/json")"
	watched 10.77.0.11 "$work/rows"
	[ "$(grep -Ec '^ +5  0\.\.0\.547 +0 \(0\.\.0\.238\) +0%  100% 10\.77\.0\.11$' "$work/rows")" -ge 5 ] ||
		fail "rows: $(cat "$work/rows")"
	equal "$(grep -c entropy "$work/rows")" 1 headings
}

refusals()
{
	sampled none ""
	sampled time '{of: all, k: 64, window: 60s}'
	refused 1 's0: has no pacer' pacer estimate s0
	load none
	refused 1 's0: its policy samples nothing: apply one with sample:' pacer estimate s0
	apply time
	equal "$(estimate '[.packets, .distinct, .entropy.high] | join(" ")')" "0 0 0" "an empty window"
	apply none
	refused 1 's0: its policy samples nothing: apply one with sample:' pacer estimate s0
	apply time
	refused 2 'window is for captures' pacer estimate s0 --window 1s
	refused 2 'exact is for captures' pacer estimate s0 --json --exact
	refused 2 'is not a key' pacer estimate s0 --key srcs
	: >"$work/s0"
	(cd "$work" && refused 1 's0: ' pacer estimate s0) # a file wins
	(cd "$work" && refused 2 'watch is for interfaces' pacer estimate s0 --watch)
}

net_up
check estimate-exact exact
check estimate-bounds bounds
check estimate-flood flood
check estimate-watch watch
check estimate-refusals refusals
finish
