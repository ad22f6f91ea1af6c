#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the operator may get wrong: each is refused with the right exit code and one line that names
# the thing, the place and the way out, and the interface is as it was.
#
#   client                      server
#   (silent)   c0 ------- s0    nothing, a pacer, another program, a pacer of another version
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

# All that a refusal must leave alone: programs and modes, the policy in force and its counters.
snapshot()
{
	in_server ip -j -d link show | jq -c 'map([.ifname, .operstate, .xdp])'
	pacer status --json 2>&1 | jq -c 'map(del(.retired_limits))' || true
	pacer allow s0 list --json 2>&1 || true
}

# bad CODE PATTERN ARGUMENT...: refused, and nothing has changed.
bad()
{
	local before

	before=$(snapshot 2>&1)
	refused "$1" "$2" pacer "${@:3}" || exit 1
	equal "$(snapshot 2>&1)" "$before" "the state after ${*:3}" || exit 1
}

# yaml TEXT: a file of it as it stands.
yaml()
{
	printf '%b' "$1" >"$work/bad.yaml"
}

# A limit's fields, or a rule's, that are wrong, and what is said of them.
policy_errors()
{
	local wrong pattern

	while IFS='|' read -r wrong pattern; do
		yaml "rules:\n  - {name: r, limits: [{$wrong}]}\n"
		refused 2 "bad.yaml:2: .*$pattern" pacer check -c "$work/bad.yaml"
		refused 2 "bad.yaml:2: .*$pattern" pacer load s0 -c "$work/bad.yaml"
	done <<-'END'
	key: src, packets: 10, window: 1|window: .*no unit
	key: src, packets: 0, window: 1s|packets: .*0 is no limit
	key: src, packets: 10, window: 0s|window: .*0 is no limit
	key: src, packets: -1, window: 1s|packets: .*negative
	key: src, packets: 10|window
	key: src, window: 1s|nothing is limited
	packets: 10, window: 1s|key is missing
	key: src, packets: 10, windw: 1s|unknown field "windw".*"window"
	key: srce, packets: 10, window: 1s|"srce" is not a key
	key: src/33, packets: 10, window: 1s|33 is too long
	key: src/24, packets: 10, window: 1s|limits\[0\].key: /24 is the length for IPv4, .*IPv6 is missing: write /24,56
	key: dst/24, packets: 10, window: 1s|limits\[0\].key: /24 is the length for IPv4, .*IPv6 is missing
	key: src/24+dport, gap: 1ms|limits\[0\].key: /24 is the length for IPv4, .*IPv6 is missing
	key: src, bytes: 10Mbps, window: 1s|bytes: "10Mbps" is no number of bytes: write .*10Mbit
	key: src, bytes: 10bit, window: 1s|bytes: "10bit" is no number of bytes: write
	key: src, packets: 10pps, window: 1ms|packets: this rate comes to less than 1 in the window: write a longer
	key: "src/24,129", packets: 10, window: 1s|"129" is no prefix length
	key: src, gap: 1ms, packets: 10, window: 1s|beside gap
	key: src, packets: 10, bytes: 10, window: 1s|beside packets
	key: src, packets: 10, packets: 20, window: 1s|written twice
	key: src, packets: 10, window: 1s, slots: 59|"59" will not do
	key: src, packets: 5G, window: 1s|more than can be counted
	key: src, rate: 10/s|rate is written, but not the burst .*write burst: 50
	key: src, burst: 10|nothing is limited: write gap, packets, bytes, rate or uses
	key: src, rate: 0/s, burst: 10|rate: 0 is no limit
	key: src, rate: 10/s, burst: 0|burst: 0 is no limit
	key: src, rate: -10/s, burst: 5|rate: -10/s is negative
	key: src, rate: 10Mbit, burst: 64K|rate: "10Mbit" is not a rate: write 1000/s, 10Mbit/s or 20MB/s
	key: src, rate: 10/s, burst: 64KiB|burst: it is in bytes, and the rate is in packets: write burst: 50
	key: src, rate: 10Mbit/s, burst: 1000|burst: 1000 bytes are less than one frame of 1514: write 1514 or more
	key: src, rate: 2Tbit/s, burst: 64K|rate: no line carries so much: write 1000Gbit/s or less
	key: src, rate: 1bit/h, burst: 2000|rate: slower than one in 73 minutes
	key: src, rate: 1/h, burst: 1G|burst: 1000000000 are more than can be kept at this rate
	key: src, rate: 10/s, burst: 5, window: 1s|window: belongs to packets or bytes
	key: src, gap: 1ms, burst: 5|burst: belongs to a rate
	key: src, uses: 10, cooldown: 1s|uses are of all packets of the rule
	key: all, uses: 10|write cooldown
	key: all, uses: 0, cooldown: 1s|uses: 0 is no limit
	key: all, uses: 10, cooldown: 1s, threshold: 11|threshold: 11 is above the limit
	key: all, uses: 10, cooldown: 1s, max_cooldown: 1s|max_cooldown: 1s is not above the cooldown
	key: all, uses: 1M, cooldown: 1s, threshold: 10|100001 buckets .*threshold: 4185 or more
	key: src, gap: 1ms, rows: 3|"3" will not do
	END
	while IFS='|' read -r wrong pattern; do
		yaml "rules:\n  - {name: r, $wrong, limits: [{key: src, packets: 1, window: 1s}]}\n"
		refused 2 "bad.yaml:2: .*$pattern" pacer load s0 -c "$work/bad.yaml"
	done <<-'END'
	match: {src: 10.0.0.0/33}|10.0.0.0/33: the length is 0 to 32
	match: {src: 10.0.0.1/24}|10.0.0.1/24 has bits beyond its length
	match: {dst: "fd00::/129"}|the length is 0 to 128
	match: {src: 10.0.0.0/8, dst: "fd00::/8"}|no packet can match
	match: {proto: icmp, dport: 1}|match.proto.0.: protocol 1 has no ports, and dport is written: .*leave dport out
	match: {proto: [udp, 47], sport: 1}|match.proto.1.: protocol 47 has no ports, and sport is written
	match: {proto: icmp, dst: "fd00::/8"}|match.proto.0.: icmp is not of IPv6, and dst is: .*write icmpv6
	match: {proto: icmpv6, src: 10.0.0.0/8}|match.proto.0.: icmpv6 is not of IPv4, and src is: .*write icmp
	match: {dport: 65536}|"65536" is not a port
	match: {dport: 20-10}|"20-10" is not a port
	match: {vlan: 4096}|"4096" is not a VLAN
	match: {proto: tpc}|"tpc" is not a protocol
	match: {dport: []}|empty list
	over: droop|"droop" is not known
	over: pool|which pool is missing
	over: pool scrub|there is no pool scrub
	ban: 30|ban: 30 has no unit
	ban: 0s|ban: 0 is no limit
	END
	while IFS='|' read -r wrong pattern; do
		yaml "rules: []\npools: [{$wrong}]\n"
		refused 2 "bad.yaml:2: .*$pattern" pacer load s0 -c "$work/bad.yaml"
	done <<-'END'
	targets: [s0], each: 5, cooldown: 1s|name is missing
	name: p, targets: [], each: 5, cooldown: 1s|the list is empty
	name: p, targets: [s0], each: 5|cooldown is missing
	name: p, targets: [s0, s0], each: 5, cooldown: 1s|s0 is a target of pool p already
	name: p, targets: [s0, "cpu:0"], each: 5, cooldown: 1s|a pool is of one kind
	name: p, targets: ["cpu:x"], each: 5, cooldown: 1s|"cpu:x" will not do
	name: p, targets: [s0], each: 5, cooldown: 1s, threshold: 6|threshold: 6 is above the limit
	name: p, targets: [s0], each: 5, cooldown: 1s, max_cooldown: 1s|is not above the cooldown
	END
	equal "$(what_is_on s0)" "{}" "left on s0"
}

file_errors()
{
	limit good 10
	bad 2 'missing.yaml: No such file' load s0 -c "$work/missing.yaml"
	bad 2 "$work: Is a directory" load s0 -c "$work"
	yaml "rules:\n\t- name: a\n"
	bad 2 'bad.yaml:2: not YAML.*tabs' load s0 -c "$work/bad.yaml"
	yaml "rules: [\n"
	bad 2 'bad.yaml:1: not YAML' load s0 -c "$work/bad.yaml"
	yaml ""
	bad 2 'bad.yaml:1: the policy is empty' load s0 -c "$work/bad.yaml"
	yaml "mode: enforce\n"
	bad 2 'bad.yaml:1: the rules are missing' load s0 -c "$work/bad.yaml"
	yaml "mode: enforced\nrules: []\n"
	bad 2 'bad.yaml:1: mode: "enforced" is not known' load s0 -c "$work/bad.yaml"
	yaml "ruels: []\n"
	bad 2 'bad.yaml:1: unknown field "ruels".*"rules"' load s0 -c "$work/bad.yaml"
	yaml "rules: []\n---\nrules: []\n"
	bad 2 'bad.yaml:[23]: a second document' load s0 -c "$work/bad.yaml"
	yaml "memory: 1000T\nrules: []\n"
	bad 2 'bad.yaml:1: memory: 1000T is too much' load s0 -c "$work/bad.yaml"
	yaml "memory: 64Mbit\nrules: []\n"
	bad 2 'bad.yaml:1: memory: "64Mbit" is not a size: write 64Mi or 1Gi' load s0 -c "$work/bad.yaml"
	yaml "bans: 0\nrules: []\n"
	bad 2 'bad.yaml:1: bans: 0 is no limit' load s0 -c "$work/bad.yaml"
	yaml "memory: 64Gi\nrules: []\n"
	! is_small bad || bad 2 'bad.yaml: memory: .*more than the .* free' load s0 -c "$work/bad.yaml"
	yaml "rules: []\n\0allow: [0.0.0.0/0]\n"
	bad 2 'bad.yaml.*NUL|bad.yaml:2: not YAML' load s0 -c "$work/bad.yaml"
	{
		cat "$work/good.yaml"
		head -c 70000 /dev/zero | tr '\0' '#'
	} >"$work/bad.yaml"
	bad 2 'bad.yaml: .*at most 65535' load s0 -c "$work/bad.yaml"
	limit twice 10
	sed -n '/- name/,$p' "$work/good.yaml" >>"$work/twice.yaml"
	bad 2 'twice.yaml:7: .*"udp" is the name of the rule in line 3' load s0 -c "$work/twice.yaml"
}

usage()
{
	limit good 10
	refused 2 'there is no verb laod' pacer laod s0
	bad 2 'wants one interface or more, and -c' load s0
	bad 2 'wants one interface or more, and -c' load -c "$work/good.yaml"
	bad 2 's0 is named twice' load s0 s0 -c "$work/good.yaml"
	bad 2 'no option --polciy' load s0 --polciy "$work/good.yaml"
	bad 2 'no option --watch' load s0 -c "$work/good.yaml" --watch
	bad 2 '-c wants a value' load s0 -c
	bad 2 'there is no mode sbk' load s0 -c "$work/good.yaml" --mode sbk
	bad 2 'wants -c POLICY' check
	bad 2 'wants -c POLICY' check s0 -c "$work/good.yaml"
	bad 2 'wants one interface' unload
	bad 2 'wants one interface' stats
	bad 2 's0 is named twice' status s0 s0
	bad 2 '--watch is of one interface' estimate s0 lo --watch
	bad 2 'wants one interface' confirm
	bad 2 'wants one interface or more, and RULE.FIELD=VALUE' set s0
	bad 2 'wants IFACE add' allow s0
	bad 2 'wants IFACE add' allow s0 add
	bad 2 'no word remove' allow s0 remove 10.0.0.1
	bad 2 'wants IFACE add' allow s0 del 10.0.0.1 --for 1s
	bad 2 'wants IFACE add' allow s0 list --for 1s
	bad 2 '--for abc is not a duration' allow s0 add 10.0.0.1 --for abc
	bad 2 '--confirm-within 0 is not a duration' apply s0 -c "$work/good.yaml" --confirm-within 0
	bad 2 '--confirm-within 5 is not a duration' apply s0 -c "$work/good.yaml" --confirm-within 5
}

no_pacer_there()
{
	local verb

	limit good 10
	for verb in status stats unload confirm; do
		bad 1 's0: has no pacer: .*xdp-pacer load s0' "$verb" s0
		bad 1 'nix: there is no such interface' "$verb" nix
	done
	bad 1 's0: has no pacer' apply s0 -c "$work/good.yaml"
	bad 1 's0: has no pacer' set s0 udp.packets=1
	bad 1 's0: has no pacer' allow s0 list
	bad 1 's0: has no pacer' allow s0 add 10.0.0.1
	bad 1 'nix: there is no such interface' load nix -c "$work/good.yaml"
	bad 1 "a-name-that-is-too-long: is longer than an interface's own name" load a-name-that-is-too-long -c "$work/good.yaml"
	in_server ip link set s0 down
	bad 1 's0: the interface is down: .ip link set s0 up' load s0 -c "$work/good.yaml"
	in_server ip link set s0 up
}

a_pacer_there()
{
	local n

	limit good 10
	limit other 20
	load good
	bad 1 's0: is paced already: .*apply s0' load s0 -c "$work/other.yaml"
	bad 1 's0: is paced already' load s0 -c "$work/other.yaml" --direct
	bad 1 's0: is paced already' load s0 -c "$work/other.yaml" --mode skb
	bad 2 'udp.packts: no such field' set s0 udp.packts=5
	bad 2 'upd.packets: no such rule: there are udp' set s0 upd.packets=5
	bad 2 'packets: 0 is no limit' set s0 udp.packets=0
	bad 2 'udp.packets: "" will not do' set s0 udp.packets=
	bad 2 'not RULE.FIELD=VALUE' set s0 udp.packets
	bad 2 'window: 5 has no unit' set s0 udp.packets=20 udp.window=5
	bad 2 'mode: "enforced" is not known' set s0 mode=enforced
	bad 2 'nosuch' apply s0 -c "$work/nosuch.yaml"
	yaml "rules:\n  - {name: udp, limits: [{key: src, packets: x, window: 1s}]}\n"
	bad 2 'bad.yaml:2: .*"x" is not a count' apply s0 -c "$work/bad.yaml"
	bad 1 '10.0.0.1: is not on the allow-list' allow s0 del 10.0.0.1
	bad 2 '10.0.0.1/24 is not a prefix' allow s0 add 10.0.0.1/24
	bad 2 'abc is not a prefix' allow s0 add abc
	bad 2 '::ffff:10.0.0.1 is an IPv4 address in the form of IPv6, and no packet has it: write 10.0.0.1' \
		allow s0 add ::ffff:10.0.0.1
	bad 2 '::ffff:10.0.0.1 is an IPv4 address in the form of IPv6, and no packet has it: write 10.0.0.1' \
		ban s0 add ::ffff:10.0.0.1
	pacer unload s0 >/dev/null
	bad 1 's0: has no pacer' unload s0
	for n in $(seq 1 257); do
		echo "  - {name: r$n, limits: [{key: all, packets: 1, window: 1s}]}"
	done | { echo rules: && cat; } >"$work/bad.yaml"
	bad 2 'bad.yaml:2: rules: 257 items: at most 256' load s0 -c "$work/bad.yaml"
}

# other SECTION: somebody else's program on s0.
other()
{
	[ -e "$work/other.o" ] ||
		"${CLANG:-clang-19}" -O2 -g -target bpf "-I/usr/include/$(gcc -print-multiarch)" \
			-c "$here/other.bpf.c" -o "$work/other.o"
	in_server ip link set dev s0 xdp obj "$work/other.o" sec "$1"
}

foreign()
{
	local verb mode

	limit good 10
	other xdp.other
	for mode in --json --direct "--mode skb"; do
		# shellcheck disable=SC2086 # two words
		bad 1 's0: already carries the XDP program other \(id [0-9]+\).*ip link set dev s0 xdp off' \
			load s0 -c "$work/good.yaml" $mode
	done
	for verb in status stats unload confirm; do
		bad 1 's0: its XDP program is not the pacer' "$verb" s0
	done
	bad 1 's0: its XDP program is not the pacer' apply s0 -c "$work/good.yaml"
	bad 1 's0: its XDP program is not the pacer' set s0 udp.packets=1
	bad 1 's0: its XDP program is not the pacer' allow s0 add 10.0.0.1
	equal "$(what_is_on s0 | jq -r .prog.name)" other "program on s0"
}

namesake()
{
	local verb

	limit good 10
	other xdp.namesake
	for verb in status stats unload confirm; do
		refused 1 's0: its program is named pacer, but is not one' pacer "$verb" s0
	done
	refused 1 's0: its program is named pacer' pacer apply s0 -c "$work/good.yaml"
	refused 1 's0: its program is named pacer' pacer set s0 udp.packets=1
	refused 1 's0: .*(already|pacer)' pacer load s0 -c "$work/good.yaml"
	equal "$(what_is_on s0 | jq -r .prog.name)" pacer "program on s0"
}

# The version stands behind the magic word at the beginning of .data.control.
other_version()
{
	local verb abi

	limit good 10
	abi=$("$BUILD/xdp-pacer" --version | sed 's/.*ABI //')
	python3 - "$BUILD/pacer.bpf.o" "$work/pacer.bpf.o" "$abi" <<-'END'
	import struct, sys
	data = open(sys.argv[1], "rb").read()
	old = struct.pack("<II", 0x52434150, int(sys.argv[3]))
	assert data.count(old) == 1
	open(sys.argv[2], "wb").write(data.replace(old, struct.pack("<II", 0x52434150, 77)))
	END
	in_server ip link set dev s0 xdp obj "$work/pacer.bpf.o" sec xdp.frags
	for verb in status stats confirm; do
		refused 1 's0: its pacer has ABI version 77, this tool '"$abi"': .*load s0 --replace' \
			pacer "$verb" s0
	done
	refused 1 's0: its pacer has ABI version 77' pacer apply s0 -c "$work/good.yaml"
	refused 1 's0: its pacer has ABI version 77' pacer set s0 default.packets=1
	refused 1 's0: its pacer has ABI version 77' pacer allow s0 add 10.0.0.1
	refused 1 's0: ' pacer load s0 -c "$work/good.yaml"
	equal "$(what_is_on s0 | jq -r .prog.name)" pacer "program on s0"
}

# nobody ARGUMENT...: the CLI as a user without privileges.
nobody()
{
	in_server setpriv --reuid=65534 --regid=65534 --clear-groups "$work/xdp-pacer" "$@"
}

no_privilege()
{
	local before verb

	limit good 10
	cp "$BUILD/xdp-pacer" "$work/xdp-pacer"
	chmod 755 "$work" "$work/xdp-pacer"
	refused 1 'Operation not permitted.*run as root|no privilege.*run as root' \
		nobody load s0 -c "$work/good.yaml"
	equal "$(what_is_on s0)" "{}" "left on s0"
	nobody check -c "$work/good.yaml" >/dev/null
	load good
	before=$(snapshot)
	for verb in status stats unload confirm; do
		refused 1 's0: no privilege.*run as root' nobody "$verb" s0
	done
	refused 1 's0: no privilege.*run as root' nobody set s0 udp.packets=1
	refused 1 's0: no privilege.*run as root' nobody apply s0 -c "$work/good.yaml"
	refused 1 's0: no privilege.*run as root' nobody allow s0 add 10.0.0.1
	refused 1 'no privilege.*run as root' nobody status
	equal "$(snapshot)" "$before" "the state after what nobody tried"
}

net_up
check bad-policy policy_errors
check bad-file file_errors
check bad-usage usage
check bad-no-pacer no_pacer_there
check bad-a-pacer a_pacer_there
check bad-foreign foreign
check bad-namesake namesake
check bad-other-version other_version
check bad-no-privilege no_privilege
finish
