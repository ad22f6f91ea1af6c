#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What `why` says of packets to come is what becomes of them; and asking charges nothing.
#
#   client                                  server
#   10.77.0.11-18, fd77::11-18  c0 ---- s0  the pacer; `xdp-pacer why`
#                                       t0  the same on a tun device, which has no Ethernet header
#
# That its answers agree with the very next packet, whatever the policy and the state, is in
# tests/prog/test_fake.c and, of captures, in tests/replay.
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

readonly packet="udp 10.77.0.11:4000 > 10.77.0.1:9000 len 80"

# why FILTER ARGUMENT...
why()
{
	pacer why s0 "${@:2}" --json | jq -rc "$1"
}

of_a_packet()
{
	local text

	policy two <<-END
	rules:
	  - name: udp
	    match: {proto: udp, dport: 9000}
	    limits:
	      - {key: "src/24,56", packets: 100, window: 60s}
	      - {key: src/32,128, packets: 3, window: 60s, slots: 10}
	END
	load two
	equal "$(why '[.verdict, .reason, .rule, .wait_ns, .denied_by]' "$packet")" \
		'["admit","admit","udp",0,null]' "of the first"
	equal "$(why '[.limits[] | [.limit, .key, .entry, .used, .max]]' "$packet")" \
		'[[0,"10.77.0.0/24","none",0,100],[1,"10.77.0.11","none",0,3]]' "its limits"
	arrive "3 2" n=4 n=2,from=10.77.0.12
	equal "$(why '[.verdict, .reason, .rule, .denied_by]' "$packet")" '["deny","window","udp",1]' "of the fifth"
	equal "$(why '[.limits[] | [.limit, .key, .entry, .used, .max, .asked, .unit]]' "$packet")" \
		'[[0,"10.77.0.0/24","own",5,100,1,"packets"],[1,"10.77.0.11","own",3,3,1,"packets"]]' "its limits"
	equal "$(why '.wait_ns == .limits[1].wait_ns and .wait_ns > 20e9 and .wait_ns <= 66e9' "$packet")" \
		true "the time"
	equal "$(stats '.rules[0].matched')" 6 "packets counted"
	arrive "0 1" n=1 n=2,from=10.77.0.12
	text=$(pacer why s0 "$packet")
	grep -q '^s0: 10.77.0.11>10.77.0.1 udp 4000 9000, 80 bytes: is dropped (window: ' <<<"$text" || fail "$text"
	grep -Eq '^  passes    in [0-9.]+ s, if nothing else comes$' <<<"$text" || fail "$text"
	grep -Eq '^  udp\.limits\[1\]: 3 packets in 1m +10.77.0.11 +its own entry +3 of 3 packets +in [0-9.]+ s$' \
		<<<"$text" || fail "$text"
	equal "$(why '[.verdict, .reason, .rule]' tcp 10.77.0.11:1 '>' 10.77.0.1:9000)" '["pass","no_rule",null]' "no rule"
	equal "$(why .verdict "10.77.0.13>10.77.0.1 udp 1 9000")" admit "of another"
	pacer set s0 mode=monitor >/dev/null
	equal "$(why '[.verdict, .fate, .wait_ns]' "$packet")" '["deny","passes, since the policy only looks on",0]' "monitor"
}

# A limit that a change has left out is in force until its memory has run out: it denies, and has no name any more.
of_a_limit_that_goes()
{
	local text

	limit three 3
	load three
	arrive "3" n=4
	policy wider <<-END
	rules:
	  - name: udp
	    match: {proto: udp, dport: 9000}
	    limits: [{key: "src/[24,16],[56,48]", packets: 1000, window: 60s, wider: x2}]
	END
	apply wider
	equal "$(why '[.verdict, .reason, (.limits | map(.limit))]' "$packet")" '["deny","window",[0,0,null]]' "what denies" || return
	text=$(pacer why s0 "$packet")
	grep -Eq '^  a limit of the policy before +10.77.0.11 +.* 3 of 3 packets +in [0-9.]+ s$' <<<"$text" || fail "$text" || return
	! grep -q 'denied by' <<<"$text" || fail "a rung that is none: $text" || return
	arrive "0 1" n=1 n=1,from=10.77.0.12
}

# The time that it says: not before, and then.
when_it_passes()
{
	local ms

	banning=$(printf 'rules:\n  - {name: g, match: {dport: 9000}, limits: [{key: "src/32,128", gap: 2s}]}\n')
	policy gap <<<"$banning"
	load gap
	arrive "1" n=2
	ms=$(why '.wait_ns / 1e6 | ceil' "$packet")
	{ [ "$ms" -gt 0 ] && [ "$ms" -le 2020 ]; } || fail "$ms ms"
	arrive "0" n=1
	arrive "1" n=1,wait_ms=$((ms + 40))
	equal "$(why '.limits[0] | [.entry, .last_ago_ns < 2e9]' "$packet")" '["cells",true]' "the gap's state"
}

of_a_key()
{
	local text

	policy rules <<-END
	bans: 64
	rules:
	  - {name: a, match: {dport: 9000}, limits: [{key: src/32,128, packets: 3, window: 60s}, {key: all, packets: 99, window: 60s}]}
	  - {name: b, match: {src: 10.77.0.0/28, dport: 9001}, limits: [{key: src/32,128, rate: 1/m, burst: 5}]}
	  - {name: c, match: {src: 10.78.0.0/16}, limits: [{key: src/32,128, packets: 3, window: 60s}]}
	  - {name: d, limits: [{key: "src/24,56", packets: 50, window: 60s}, {key: flow, packets: 9, window: 60s}]}
	END
	load rules
	arrive "3 2 1" n=4 n=2,dport=9001 n=1,dport=9002
	equal "$(why '[.rules[] | [.name, (.limits[] | .used)]]' 10.77.0.11)" '[["a",3],["b",2],["d",1]]' "of an address"
	equal "$(why '[.rules[] | .name]' 10.78.0.1)" '["a","c"]' "of another"
	equal "$(why '[.rules[] | [.name, (.limits[] | .used)]]' 10.77.0.0/24)" '[["d",1]]' "of a prefix"
	equal "$(why '[.rules[] | [.name, (.limits[] | .key, .family, .used)]]' all)" '[["a","all",null,3]]' "of all" || return
	equal "$(why '[.rules[] | .limits[] | [.reason, .wait_ns > 0]]' 10.77.0.11)" \
		'[["window",true],["admit",false],["admit",false]]' "what they say"
	text=$(pacer why s0 fd77::5/128)
	grep -q '^s0: fd77::5/128$' <<<"$text" || fail "$text"
	grep -q 'no entry yet' <<<"$text" || fail "$text"
	pacer why s0 10.77.0.0/20 | grep -q 'no rule counts by such a key' || fail "of a length that no limit has"
	printf '192.0.2.1,XY\n' >"$work/land.csv"
	policy land <<-END
	sets: [{name: geo, file: $work/land.csv, value: 2}]
	rules:
	  - {name: g, match: {src: "@geo=XY"}, limits: [{key: "value(geo, src)", packets: 3, window: 60s}]}
	END
	pacer apply s0 -c "$work/land.yaml" >/dev/null
	pacer why s0 10.77.0.11 | grep -q 'no rule counts by such a key' || fail "of a key that no rule has"
}

# A key as a limit of the policy has it, whatever its parts: as `replay`, `top` and `ban list` write it.
of_any_key()
{
	policy any <<-END
	rules:
	  - name: a
	    match: {dport: 9000}
	    limits: [{key: "src/32,64+vlan", packets: 30, window: 60s}, {key: dport, packets: 40, window: 60s}]
	  - name: b
	    limits:
	      - {key: "src/32,64+dst/32,64", packets: 50, window: 60s}
	      - {key: "dst/24,64+vlan+ttl", packets: 60, window: 60s}
	      - {key: flow, packets: 70, window: 60s}
	END
	load any
	arrive "3 2" n=3 n=2,dport=9001
	equal "$(why '[.rules[] | [.name, (.limits[] | .key, .family, .used)]]' 10.77.0.11 untagged)" \
		'[["a","10.77.0.11 untagged",null,3]]' "of a source and no tag"
	equal "$(why '[.rules[] | [.name, (.limits[] | .used)]]' "10.77.0.11 vlan 7")" '[["a",0]]' "of a VLAN"
	equal "$(why '[.rules[] | [.name, (.limits[] | .key, .family, .used)]]' 9000)" \
		'[["a","9000",4,3,"9000",6,0]]' "of a port, of each family"
	equal "$(why '[.rules[] | [.name, (.limits[] | .used)]]' "10.77.0.11>10.77.0.1")" '[["b",2]]' "of two ends"
	equal "$(why '[.rules[] | [.name, (.limits[] | .used)]]' "10.77.0.0/24 untagged ttl 64")" '[["b",2]]' \
		"of a destination"
	equal "$(why '[.packet, .limits[2].key]' "10.77.0.11>10.77.0.1 udp 4000 9001")" \
		'["10.77.0.11>10.77.0.1 udp 4000 9001","10.77.0.11>10.77.0.1 udp 4000 9001"]' "a flow's is the packet's"
	equal "$(why '[.rules[] | .limits[] | .key]' "10.77.0.11>10.77.0.1 udp fragment 7")" \
		'["10.77.0.11>10.77.0.1 udp fragment 7"]' "of a fragment"
	pacer allow s0 add 10.77.0.11 >/dev/null
	equal "$(why .allowed.prefix 10.77.0.11 untagged)" 10.77.0.11 "its source is looked for"
	pacer allow s0 add fd77::/64 >/dev/null
	equal "$(why .allowed.prefix fd77::/64 untagged)" fd77::/64 "of IPv6, too"
	equal "$(why .allowed 9000)" null "where there is one"
	refused 2 '10.77.0.11 untagged x is no key, such as' pacer why s0 10.77.0.11 untagged x
	refused 2 '10.77.0.11>x is no packet, such as' pacer why s0 "10.77.0.11>x"
}

# Rules that count nothing, and sets: what an address falls under, up to the rule that has all of it.
of_verdicts()
{
	printf '10.77.0.12\n198.51.100.0/24\nfd77::12\n' >"$work/bad"
	policy verdicts <<-END
	allow: ["@office"]
	sets:
	  - {name: office, of: [192.0.2.0/24, "2001:db8::/64"]}
	  - {name: bad, file: $work/bad}
	rules:
	  - {name: drop, match: {src: "@bad"}, verdict: drop}
	  - {name: ssh, match: {proto: tcp, dport: 22, src: "!@office"}, verdict: drop}
	  - {name: far, match: {src: [10.79.0.0/16, "!@office"]}, verdict: drop}
	  - {name: here, match: {src: 10.77.0.0/24}, limits: [{key: src, packets: 3, window: 60s}]}
	  - {name: rest, limits: [{key: src, packets: 9, window: 60s}]}
	END
	load verdicts
	arrive "1 0" n=1 n=1,from=10.77.0.12
	equal "$(why '[.sets, [.rules[] | [.name, .verdict, .all]]]' 10.77.0.12)" '[["bad"],[["drop","drop",true]]]' "on a list"
	equal "$(why '[.rules[] | .name]' fd77::12)" '["drop"]' "of IPv6"
	equal "$(why '[.sets, [.rules[] | [.name, .verdict, (.limits[] | .used)]]]' 10.77.0.11)" \
		'[[],[["ssh","drop"],["here",null,1]]]' "on none"
	equal "$(why '[.rules[] | .name]' 203.0.113.1)" '["ssh","rest"]' "of elsewhere"
	equal "$(why '[.rules[] | .name]' 198.51.0.0/16)" '["drop","ssh"]' "of a prefix that a list has in part"
	equal "$(why '[.allowed.prefix, [.rules[] | .name]]' 192.0.2.1)" '["@office",["rest"]]' "that is allowed"
	pacer why s0 10.77.0.12 | grep -q '^  verdict   drop: all that it sends$' || fail "$(pacer why s0 10.77.0.12)"
	pacer status s0 | grep -q '^  allowed   0 prefixes, @office$' || fail "$(pacer status s0)"
	pacer check -c "$work/verdicts.yaml" >"$work/said"
	if grep -q warning "$work/said"; then fail "$(cat "$work/said")"; fi
}

on_lists()
{
	limit three 3
	sed -i '1i bans: 64' "$work/three.yaml"
	load three
	arrive "3" n=3
	pacer allow s0 add 10.77.0.0/24 >/dev/null
	pacer allow s0 add 10.77.0.8/29 --for 1h >/dev/null
	equal "$(why '[.verdict, .reason, .allowed.prefix, .rule]' "$packet")" '["pass","allowed","10.77.0.0/24",null]' "allowed"
	equal "$(why '[.allowed.prefix, .allowed.left_ns]' 10.77.0.16)" '["10.77.0.0/24",null]' "another"
	equal "$(why .allowed 10.77.0.0/16)" null "a prefix of which a part is allowed"
	pacer allow s0 del 10.77.0.0/24 >/dev/null
	equal "$(why '[.allowed.prefix, .allowed.left_ns > 3e12]' 10.77.0.11)" '["10.77.0.8/29",true]' "a key, for a time"
	pacer allow s0 del 10.77.0.8/29 >/dev/null
	equal "$(why .allowed "$packet")" null "allowed no more"
	pacer ban s0 add 10.77.0.11 --rule udp --for 1h >/dev/null
	equal "$(why '[.reason, .rule, .limits[0].banned_ns > 3.5e12, .wait_ns > 3.5e12, .banned_source]' "$packet")" \
		'["ban","udp",true,true,null]' "banned under the rule"
	pacer ban s0 add 10.77.0.0/28 >/dev/null
	equal "$(why '[.reason, .rule, .banned_source.prefix, .banned_source.left_ns, .wait_ns]' "$packet")" \
		'["ban","udp","10.77.0.0/28",null,null]' "banned as a source"
	pacer why s0 "$packet" | grep -q '^  banned    as 10.77.0.0/28, whatever the rule, until it is lifted$' ||
		fail "$(pacer why s0 "$packet")"
	equal "$(why '.banned_source.prefix' 10.77.0.3)" 10.77.0.0/28 "a key"
	equal "$(why '.banned_source' 10.77.0.16)" null "not banned"
	pacer ban s0 add fd77::/64 --for 1h >/dev/null
	equal "$(why '.banned_source | [.prefix, .by_tool, .left_ns > 3.5e12 and .left_ns <= 3.6e12]' fd77::11)" \
		'["fd77::/64",false,true]' "banned as a source for a time" || return
	pacer why s0 fd77::11 | grep -Eq '^  banned    as fd77::/64, whatever the rule, for another (1h|59m59s)$' ||
		fail "$(pacer why s0 fd77::11)" || return
	arrive "0 3" n=3 n=3,from=10.77.0.16
}

# What becomes of what is denied, where the rule says.
of_fates()
{
	policy fates <<-END
	rules:
	  - {name: counts, match: {dport: 9000}, limits: [{key: src, packets: 1, window: 60s}], over: pass}
	  - {name: pooled, match: {dport: 9001}, limits: [{key: src, packets: 1, window: 60s}], over: pool here}
	pools:
	  - {name: here, targets: ["cpu:0"], each: 5, cooldown: 10m, max_cooldown: 11m}
	END
	load fates
	arrive "2 1" n=2 n=1,dport=9001
	equal "$(why '[.verdict, .fate, .wait_ns]' "$packet")" '["deny","passes, since its rule only counts",0]' \
		"of a rule that counts" || return
	equal "$(why '[.verdict, .fate]' "udp 10.77.0.11:4000 > 10.77.0.1:9001")" \
		'["deny","is sent to the pool, if that has room"]' "of a pool's"
}

# No agent has told this host a share. A ban that has an end does not last until there is one; one without lasts beyond.
without_a_share()
{
	policy shares <<-END
	bans: 64
	fleet: {store: ["http://127.0.0.1:2379"], name: none}
	rules:
	  - {name: udp, match: {dport: 9000}, limits: [{key: src, packets: 9, window: 60s, fleet: yes}]}
	END
	load shares
	equal "$(why '[.reason, .limits[0].wait_ns]' "$packet")" '["share",null]' "without a share" || return
	passes 'when this host has a share' || return
	pacer ban s0 add 10.77.0.11 --rule udp --for 1h >/dev/null
	passes 'when this host has a share' || return
	pacer ban s0 del 10.77.0.11 --rule udp >/dev/null
	pacer ban s0 add 10.77.0.11 --rule udp >/dev/null
	passes never || return
	# A limit of the policy before waits for none: it goes.
	sed -i 's/window: 60s/window: 60s, entries: 64/' "$work/shares.yaml"
	pacer apply s0 -c "$work/shares.yaml" >/dev/null
	pacer ban s0 del 10.77.0.11 --rule udp >/dev/null
	equal "$(why '[.limits[0].wait_ns, (.limits[1].wait_ns | . > 50e9 and . < 70e9)]' "$packet")" '[null,true]' "of one that goes"
}

# passes WHEN: what the table's column says of the packet.
passes()
{
	pacer why s0 "$packet" | grep -Eq "0 of [0-9]+ packets  $1( |\$)" || fail "no '$1': $(pacer why s0 "$packet")"
}

# A throttle's uses are a CPU's own for a while: asked of all of them.
of_a_throttle()
{
	policy uses <<-END
	rules: [{name: u, match: {dport: 9000}, limits: [{key: all, uses: 5, cooldown: 60s, threshold: 5}]}]
	END
	load uses
	equal "$(why '[.verdict, .limits[0].used, .limits[0].max, .limits[0].unit, .limits[0].entry]' "$packet")" \
		'["admit",0,5,"uses","one"]' "before"
	arrive "5" n=7
	equal "$(why '[.verdict, .reason, .cpus_admit, .limits[0].used, .wait_ns > 30e9]' "$packet")" \
		'["deny","throttle",0,5,true]' "after"
}

# A CPU that has uses on lease would let the packet pass, and others would not: the first one's answer is told, or
# that of the CPU on which it passes soonest.
of_leases()
{
	policy leases <<-END
	rules:
	  - name: u
	    match: {dport: 9000}
	    limits:
	      - {key: all, uses: 5, cooldown: 600s, threshold: 5}
	      - {key: all, uses: 5, cooldown: 60s, threshold: 5}
	END
	load leases
	lease "$last_cpu" 0 1
	equal "$(why '[.cpus_admit > 1, .limits[0].leased]' "$packet")" '[true,0]' "the first of all that admit" || return
	lease "$last_cpu" 0 0
	arrive "5" n=7
	equal "$(why '[.verdict, .denied_by, .cpus_admit, .wait_ns > 590e9]' "$packet")" '["deny",0,0,true]' "on all CPUs" || return
	lease "$last_cpu" 0 1
	equal "$(why '[.verdict, .denied_by, .cpus_admit, .wait_ns < 100e9]' "$packet")" '["deny",1,0,true]' "sooner on the last" || return
	lease "$last_cpu" 1 1
	equal "$(why '[.verdict, .cpus_admit, .limits[0].leased]' "$packet")" '["admit",1,1]' "on the last" || return
	pacer why s0 "$packet" | grep -Eq '^  leases    1 of [0-9]+ CPUs would let it pass, the others have no use of the throttle left$' ||
		fail "$(pacer why s0 "$packet")" || return
	on_cpu "$last_cpu"
	arrive "1" n=2 || return
	on_cpu 0
	lease 0 0 2
	equal "$(why '[.verdict, .denied_by, .cpus_admit, .wait_ns < 100e9]' "$packet")" '["deny",1,0,true]' "sooner on the first" || return
	lease 0 1 2
	equal "$(why '[.verdict, .cpus_admit, .limits[0].leased]' "$packet")" '["admit",1,2]' "on the first" || return
	arrive "2" n=3
}

of_a_frame()
{
	limit three 3
	load three
	arrive "3" n=3
	python3 - "$work/one.pcap" <<-END
	import struct, sys
	ip = bytes.fromhex("450000200000400040110000") + bytes([10, 77, 0, 11, 10, 77, 0, 1])
	udp = struct.pack(">HHHH", 4000, 9000, 12, 0) + bytes(4)
	frames = [bytes(12) + b"\x08\x00" + ip + udp + bytes(14), bytes(12) + b"\x08\x06" + bytes(46)]
	with open(sys.argv[1], "wb") as f:
	    f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
	    for x in frames:
	        f.write(struct.pack("<IIII", 5, 0, len(x), len(x)) + x)
	END
	equal "$(why '[.packet, .verdict, .reason, .len_bytes]' --pcap "$work/one.pcap" --frame 1)" \
		'["10.77.0.11>10.77.0.1 udp 4000 9000","deny","window",60]' "the first frame"
	equal "$(why '[.verdict, .reason]' --pcap "$work/one.pcap" --frame 2)" '["pass","not_ip"]' "the second"
	refused 1 'one.pcap: there is no frame 3: it has 2' pacer why s0 --pcap "$work/one.pcap" --frame 3
	refused 1 'nosuch.pcap' pacer why s0 --pcap "$work/nosuch.pcap" --frame 3
	refused 2 '--frame 0 is not a number of a frame' pacer why s0 --pcap "$work/one.pcap" --frame 0
}

# Of an interface without Ethernet: no header is made up that a rule could match, or that counts in a length.
without_ethernet()
{
	local inner="udp 10.0.0.1:4000 > 10.0.0.2:53"

	in_server ip tuntap add dev t0 mode tun
	in_server ip link set t0 addrgenmode none up
	policy raw <<-END
	rules:
	  - {name: inside, match: {inner: yes}, limits: [{key: "src/32,128", packets: 9, window: 60s}]}
	  - {name: mac, match: {ether_src: "00:00:00"}, verdict: drop}
	  - {name: rest, limits: [{key: "src/32,128", packets: 9, window: 60s}]}
	END
	pacer load t0 -c "$work/raw.yaml" --mode skb >/dev/null
	python3 - "$work/raw.pcap" <<-END
	import struct, sys
	def ip(proto, fragment, last, body):
	    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), 1, fragment, 64, proto, 0) + bytes([192, 0, 2, last] * 2) + body
	udp = struct.pack(">HHHH", 4000, 53, 12, 0) + bytes(4)
	with open(sys.argv[1], "wb") as f:
	    f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 101))
	    for x in ip(4, 0x2000, 1, ip(17, 0, 7, udp) + bytes(8)), ip(17, 0, 1, udp):
	        f.write(struct.pack("<IIII", 5, 0, len(x), len(x)) + x)
	with open(sys.argv[1] + ".short", "wb") as f: # of Ethernet, and less than its header
	    f.write(struct.pack("<IHHiIIIIIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1, 5, 0, 5, 5) + bytes(5))
	END
	of_t0 '[.reason, .len_bytes, .wait_ns]' '["truncated",0,null]' --pcap "$work/raw.pcap.short" --frame 1 || return
	of_t0 '[.reason, .rule, .len_bytes]' '["admit","inside",60]' --pcap "$work/raw.pcap" --frame 1 || return
	of_t0 '[.reason, .rule, .len_bytes]' '["admit","rest",32]' --pcap "$work/raw.pcap" --frame 2 || return
	of_t0 '[.reason, .rule, .len_bytes]' '["admit","rest",60]' "$inner" || return
	of_t0 '[.reason, .rule, .len_bytes]' '["admit","inside",80]' "$inner len 80 in ipip 192.0.2.1 > 192.0.2.2" || return
	for key in "vlan 7" "ether_src 02:00:00:00:00:01" "ether_dst 02:00:00:00:00:01" "in pppoe"; do
		refused 2 'have no Ethernet header: leave out vlan' pacer why t0 "$inner $key" || return
	done
	in_server ip link del t0
}

# of_t0 FILTER WANTED ARGUMENT...
of_t0()
{
	equal "$(pacer why t0 "${@:3}" --json | jq -rc "$1")" "$2" "${*:3}"
}

# The last denial, where the policy samples what is denied; and that it is not known, where it does not.
last_denied()
{
	local text

	policy sampled <<-END
	bans: 64
	sample: {of: denied, k: 64, window: 60s}
	rules:
	  - name: udp
	    match: {proto: udp, dport: 9000}
	    limits:
	      - {key: src/32,128, packets: 3, window: 60s}
	      - {key: "src/24,56", packets: 100, window: 60s}
	  - {name: flows, match: {dport: 9001}, limits: [{key: flow, gap: 60s}]}
	END
	load sampled
	arrive "3" n=3
	equal "$(why .last_denied "$packet")" null "nothing is denied"
	pacer why s0 "$packet" | grep -q '^  denied    not known when last: the sample has no denial of its keys$' ||
		fail "$(pacer why s0 "$packet")"
	arrive "0 1" n=2 n=2,dport=9001
	equal "$(why '.last_denied | [.reason, .ago_ns > 0 and .ago_ns < 60e9]' "$packet")" '["window",true]' "of a packet"
	equal "$(why .last_denied "udp 10.77.0.12:4000 > 10.77.0.1:9000")" null "of another source"
	equal "$(why '[.last_denied.reason]' "udp 10.77.0.11:4000 > 10.77.0.1:9001")" '["gap"]' "of a flow"
	equal "$(why .last_denied "udp 10.77.0.11:4001 > 10.77.0.1:9001")" null "of another flow"
	equal "$(why '[.rules[] | .last_denied.reason]' 10.77.0.11)" '["window"]' "of a key"
	text=$(pacer why s0 10.77.0.11)
	grep -Eq '^  denied    [0-9.]+ (s|ns) ago at the latest that the sample has \(window\)$' <<<"$text" || fail "$text"
	equal "$(why '[.rules[] | .last_denied]' 10.77.0.12)" '[null]' "of another key"
	equal "$(why '[.rules[] | .last_denied]' 10.77.0.0/24)" '[null]' "denied by another limit"
	pacer ban s0 add 10.77.0.13 >/dev/null
	equal "$(why .last_denied 10.77.0.13)" null "banned, and nothing has come"
	arrive "0" n=1,from=10.77.0.13
	equal "$(why .last_denied.reason 10.77.0.13)" ban "of a banned source"
	equal "$(why .last_denied.reason "udp 10.77.0.13:4000 > 10.77.0.1:80")" ban "of its packet"
	pacer ban s0 add 10.77.0.14 --rule udp >/dev/null
	arrive "0" n=1,from=10.77.0.14
	pacer ban s0 add 10.77.0.14 >/dev/null
	equal "$(why .last_denied 10.77.0.14)" null "of a source that was denied as a rule's key alone" || return
	pacer ban s0 add 10.77.0.12 >/dev/null
	pacer ban s0 add fd77::13 >/dev/null
	equal "$(why .last_denied 10.77.0.12)$(why .last_denied fd77::13)" nullnull "banned, and only another one has come" || return
	off
	limit three 3
	load three
	arrive "3" n=4
	equal "$(why .last_denied "$packet")" null "without a sample"
	pacer why s0 10.77.0.11 | grep -q '^  denied    not known when last: the policy samples no denied packets$' ||
		fail "$(pacer why s0 10.77.0.11)"
}

wrong()
{
	limit three 3
	load three
	refused 1 'nosuch0' pacer why nosuch0 192.0.2.1
	refused 1 'has no pacer' pacer why lo 192.0.2.1
	refused 2 'it wants IFACE KEY' pacer why s0
	refused 2 'it wants IFACE KEY' pacer why s0 192.0.2.1 --at 1s
	refused 2 'it wants IFACE KEY' pacer why s0 192.0.2.1 --frame 1
	refused 2 'with --replay it wants -c POLICY' pacer why 192.0.2.1 -c "$work/three.yaml"
	refused 2 'with --replay it wants -c POLICY' pacer why -c "$work/three.yaml" --replay x.pcap
	refused 1 'x.pcap' pacer why 192.0.2.1 -c "$work/three.yaml" --replay "$work/x.pcap"
	for key in "" x 192.0.2.1/24 192.0.2.256 "192.0.2.1 x" 0.0.0.0/0; do
		refused 2 'is no key, such as 192.0.2.1' pacer why s0 "$key"
	done
	for key in ">" "udp 192.0.2.1 > 192.0.2.2" "icmp 192.0.2.1:1 > 192.0.2.2:2" "udp 192.0.2.1:1 > 2001:db8::1" \
		"udp 192.0.2.1:1 > 192.0.2.2:2 len 59" "udp 192.0.2.1:1 > 192.0.2.2:2 len" "upd 192.0.2.1:1 > 192.0.2.2:2" \
		"udp 192.0.2.1:70000 > 192.0.2.2:2" "udp [2001:db8::1:1 > [2001:db8::2]:1" "udp 192.0.2.1:1 > 192.0.2.2:2 vlan 5000"; do
		refused 2 'is no packet, such as' pacer why s0 "$key"
	done
	equal "$(why .packet "udp [2001:db8::1]:1 > [2001:db8::2]:9000 vlan 7 len 1514")" \
		"2001:db8::1>2001:db8::2 udp 1 9000" "of IPv6"
	equal "$(why .packet "icmpv6 2001:db8::1 > 2001:db8::2")" "2001:db8::1>2001:db8::2 icmpv6 0 0" "without ports"
}

net_up
check why-of-a-packet of_a_packet
check why-when-it-passes when_it_passes
check why-of-a-key of_a_key
check why-of-any-key of_any_key
check why-of-a-limit-that-goes of_a_limit_that_goes
check why-of-verdicts of_verdicts
check why-on-lists on_lists
check why-of-fates of_fates
check why-without-a-share without_a_share
check why-of-a-throttle of_a_throttle
check why-of-leases of_leases
check why-of-a-frame of_a_frame
check why-without-ethernet without_ethernet
check why-last-denied last_denied
check why-wrong wrong
finish
