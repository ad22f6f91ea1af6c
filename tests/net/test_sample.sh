#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Samples of a pacer at work: what the verb shows of real packets, what a change of policy keeps of
# them, and what is refused.
#
#   client                                    server
#   10.77.0.11-18, fd77::11-18  c0 ---- s0    the pacer, with memory for samples
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

# sampled NAME SAMPLE [MORE...]: a policy of two rules, and this sample.
sampled()
{
	{
		cat <<-END
		rules:
		  - {name: udp, match: {proto: udp, dport: 9000}, limits: [{key: src, packets: 10, window: 60s}]}
		  - {name: tcp, match: {proto: tcp}, limits: [{key: src+dport, packets: 3, window: 60s}]}
		END
		[ -z "$2" ] || echo "sample: $2"
		printf '%s\n' "${@:3}"
	} | policy "$1"
}

# sample FILTER: of the sample, what the jq filter says.
sample()
{
	pacer sample s0 --json | jq -rc "$1"
}

# rows: each different row of the sample, with how many there are of it, sorted.
rows()
{
	sample '.sample[] | [.src, .dst, .proto, .sport, .dport, .len_bytes, .rule, .reason, .key] |
		map(tostring) | join(" ")' | sort | uniq -c | sed 's/^ *//'
}

# A fragment behind the first has no ports, but its packet's number. A rule that a change has left out has no name.
fragments_and_gone_rules()
{
	local later=0x1234

	sampled all '{of: all, k: 64, packets: 1000, replacement: without}'
	load all
	arrive "1 1" n=1 n=1,raw=08004500001c$(printf '%04x' "$later")0001401100000a4d000b0a4d00010000000000000000
	equal "$(sample '.sample[] | select(.fragment) | [.src, .proto, .fragment, .sport]')" \
		"[\"10.77.0.11\",17,$((later)),null]" "a later fragment" || return
	sed '/name: udp/d' "$work/all.yaml" >"$work/less.yaml"
	apply less
	equal "$(sample '.sample[] | select(.dport == 9000) | [.rule, .key]')" '["(gone)","-"]' "of a rule that is gone" || return
	pacer sample s0 | grep -Eq ' 10.77.0.11>10.77.0.1 udp 4000 9000 .* \(gone\) ' || fail "$(pacer sample s0)"
}

# Of few packets, without replacement: all of them, each once, as they were.
every_packet()
{
	local wanted

	sampled all '{of: all, k: 64, packets: 1000, replacement: without}' 'allow: [10.77.0.14]'
	load all
	arrive "2 10 3 1 4" n=2,sport=7,len=100 n=12,from=fd77::12 n=5,from=10.77.0.13,proto=6,dport=80 \
		n=1,from=10.77.0.14 n=4,from=10.77.0.15,dport=1
	wanted=$(sort <<-END
		1 10.77.0.14 10.77.0.1 17 4000 9000 42 - allowed -
		2 10.77.0.11 10.77.0.1 17 7 9000 100 udp admit 10.77.0.11
		2 10.77.0.13 10.77.0.1 6 4000 80 54 tcp window 10.77.0.13 80
		2 fd77::12 fd77::1 17 4000 9000 62 udp window fd77::/64
		3 10.77.0.13 10.77.0.1 6 4000 80 54 tcp admit 10.77.0.13 80
		4 10.77.0.15 10.77.0.1 17 4000 1 42 - no_rule -
		10 fd77::12 fd77::1 17 4000 9000 62 udp admit fd77::/64
	END
	)
	equal "$(rows | sort)" "$wanted" "rows of the sample"
	equal "$(sample '"\(.packets) \(.of) \(.replacement) \(.by_cpu | add) \(.merge_error)"')" \
		"24 all without 24 0" "what it says of its window"
}

# Denied ones alone, by time, and as a table.
denied()
{
	sampled denied '{of: denied, k: 64, window: 60s}'
	load denied
	arrive "10 10 20" n=30 n=15,from=10.77.0.12 n=20,dport=2
	equal "$(sample '"\(.packets) \(.sample | length) \([.sample[].reason] | unique | join(" "))"')" \
		"25 64 window" "packets, samples, reasons"
	equal "$(sample '[.sample[].src] | unique | join(" ")')" "10.77.0.11 10.77.0.12" sources
	equal "$(sample '[.sample[].ago_ns | select(. < 0 or . > 20000000000)] | length')" 0 "strange ages"
	pacer sample s0 >"$work/table"
	equal "$(sed -n 1p "$work/table")" \
		"s0: 64 of 25 packets (denied), with replacement, of the last 1m" "first line"
	equal "$(grep -c 'udp 4000 9000 .* udp  *window  *10.77.0.1[12]$' "$work/table")" 64 "rows"
}

admitted()
{
	sampled admitted '{of: admitted, k: 16, packets: 5}'
	load admitted
	arrive "10 3" n=30 n=9,from=10.77.0.12,proto=6
	equal "$(sample '"\([.by_cpu[] | select(. > 5)] | length) \([.sample[].reason] | unique | join(" "))"')" \
		"0 admit" "windows of more than five, reasons"
}

# What was captured is what was sent, to the byte, as far as it was kept, and when.
pcap()
{
	local frames now age

	sampled heads '{of: all, k: 8, packets: 100, replacement: without, snap: 50}'
	load heads
	arrive "3" n=3,len=90,from=10.77.0.12,sport=77
	pacer sample s0 --pcap "$work/out.pcap" >/dev/null
	now=$(date +%s)
	frames=$(tshark -r "$work/out.pcap" -T fields -e frame.len -e frame.cap_len -e eth.src -e ip.src \
		-e ip.dst -e udp.srcport -e udp.dstport 2>/dev/null | tr '\t' ' ' | sort | uniq -c | sed 's|^ *||')
	equal "$frames" "3 90 50 02:00:00:00:fa:ce 10.77.0.12 10.77.0.1 77 9000" "frames"
	age=$(tshark -r "$work/out.pcap" -T fields -e frame.time_epoch 2>/dev/null |
		awk -v now="$now" 'now - $1 > n { n = now - $1 } END { print int(n) }')
	[ "$age" -lt 10 ] || fail "the oldest frame is $age seconds old"
}

# A change that leaves the sample as it is keeps it; one that changes it begins anew; off and on.
changes()
{
	local form

	for form in "window: 60s" "packets: 1000"; do
		sampled one "{of: all, k: 32, $form}"
		sampled other "{of: all, k: 31, $form}"
		sampled none ""
		load one
		arrive "10" n=20
		equal "$(sample .packets)" 20 "$form: packets"
		pacer set s0 udp.packets=12 >/dev/null
		arrive "2" n=10
		equal "$(sample .packets)" 30 "$form: packets after a change of a limit"
		equal "$(sample '[.sample[] | select(.rule == "udp")] | length')" \
			"$(sample '.sample | length')" "$form: rows of the rule"
		apply other
		equal "$(sample .packets)" 0 "$form: packets just after a change of k"
		arrive "0" n=5
		equal "$(sample .packets)" 5 "$form: packets after a change of k"
		apply none
		arrive "0" n=5
		refused 1 'samples nothing: apply one with sample:' pacer sample s0
		apply one
		equal "$(sample .packets)" 0 "$form: packets when it is on again"
		arrive "0" n=7
		equal "$(sample .packets)" 7 "$form: packets since it is on again"
		off
	done
}

# An unconfirmed policy gives way: its sample goes with it.
rolled_back()
{
	on_cpu 0 # each CPU has a sample of its own
	sampled one '{of: all, k: 32, window: 60s}'
	sampled other '{of: all, k: 31, window: 60s}'
	load one
	arrive "10" n=20
	apply other --confirm-within 1h
	arrive "0" n=3
	equal "$(sample '"\(.k) \(.packets)"')" "31 3" "k and packets before"
	lapse
	is_k 32 || fail "the sample of the policy on trial is there"
	arrive "0" n=4
	equal "$(sample '"\(.k) \(.packets)"')" "32 4" "k and packets after"
}

is_k()
{
	[ "$(sample .k)" = "$1" ]
}

# Memory is taken when the first policy that samples comes, at load or later, and stays.
memory()
{
	local bytes with

	sampled none ""
	sampled plain '{of: denied, k: 4, packets: 50}'
	sampled heads '{of: denied, k: 4, packets: 50, snap: 64}'
	load none
	bytes=$(status .memory_bytes)
	refused 1 's0: its policy samples nothing: apply one with sample:' pacer sample s0
	apply plain
	with=$(status .memory_bytes)
	[ "$with" -gt "$bytes" ] || fail "memory with samples $with, without $bytes"
	equal "$with" "$(pacer check -c "$work/plain.yaml" --json | jq .memory_bytes)" "memory, check"
	arrive "10" n=12
	equal "$(rows)" "2 10.77.0.11 10.77.0.1 17 4000 9000 42 udp window 10.77.0.11" "rows of the sample"
	refused 1 "keeps no packet heads: add snap: 128" pacer sample s0 --pcap "$work/x.pcap"
	apply heads
	bytes=$(status .memory_bytes)
	[ "$bytes" -gt "$with" ] || fail "memory with heads $bytes, without $with"
	arrive "0" n=3
	pacer sample s0 --pcap "$work/x.pcap" >/dev/null
	equal "$(tshark -r "$work/x.pcap" 2>/dev/null | wc -l)" 3 "packets with heads"
	apply none
	equal "$(status .memory_bytes)" "$bytes" "memory after a policy that samples nothing"
	off
	load plain
	equal "$(status .memory_bytes)" "$with" "memory, loaded"
	off
	load heads
	refused 1 'no/such: cannot be written' pacer sample s0 --pcap "$work/no/such"
	refused 2 'one interface' pacer sample
	refused 1 'no pacer' in_client "$BUILD/xdp-pacer" sample c0
}

# What does not fit on a disk leaves no file there, and one that was there as it was.
full_disk()
{
	local file drawn

	sampled disk '{of: all, k: 64, packets: 1000, replacement: without, snap: 64}'
	load disk
	arrive "3" n=3
	drawn=$(sample '.sample | length')
	[ "$drawn" -ge 3 ] || fail "$drawn packets in the sample"
	mkdir -p "$work/disk"
	mount -t tmpfs -o size=16k none "$work/disk"
	echo before >"$work/disk/was.pcap"
	head -c 8192 /dev/zero >"$work/disk/filler"
	head -c 4096 /dev/zero >>"$work/disk/filler" 2>/dev/null
	for file in new.pcap was.pcap; do
		refused 1 "$file: cannot be written: No space left on device" \
			pacer sample s0 --pcap "$work/disk/$file"
	done
	equal "$(ls "$work/disk" | tr '\n' ' ')$(cat "$work/disk/was.pcap")" "filler was.pcap before" \
		"what is on the disk"
	rm "$work/disk/filler"
	pacer sample s0 --pcap "$work/disk/was.pcap" >/dev/null
	equal "$(tshark -r "$work/disk/was.pcap" 2>/dev/null | wc -l)" "$drawn" "packets, with room"
	umount "$work/disk"
	pacer sample s0 --pcap /dev/stdout >"$work/piped"
	equal "$(head -c 4 "$work/piped" | od -An -tx1)" " 4d 3c b2 a1" "what a pipe begins with"
	ln -s "$work/nothing" "$work/link" # as /dev/stdout is where stdout is closed
	refused 1 "link: cannot be written: No such file or directory" pacer sample s0 --pcap "$work/link"
	[ -L "$work/link" ] || fail "a link to nothing was replaced"
}

# within BYTES FILE: writes the sample there, where no file may have more bytes.
within()
{
	in_server prlimit --fsize="$1" timeout -k 1 "$hang_s" "$BUILD/xdp-pacer" sample s0 --pcap "$2"
}

# So does what is larger than a file may be, wherever in it the limit is: it is gathered in blocks of 4 KiB.
limited_file()
{
	local whole limit

	sampled limited '{of: all, k: 64, packets: 1000, replacement: without, snap: 128}'
	load limited
	arrive "10" n=300,len=200
	mkdir "$work/limited"
	pacer sample s0 --pcap "$work/limited/was.pcap" >/dev/null
	whole=$(stat -c %s "$work/limited/was.pcap")
	[ "$whole" -gt 9000 ] && [ "$whole" -lt 12288 ] || fail "a capture of $whole bytes" || return
	echo before >"$work/limited/was.pcap"
	for limit in 1024 4095 4096 6000 8192 $((whole - 1)); do
		refused 1 "was.pcap: cannot be written: File too large" within "$limit" "$work/limited/was.pcap"
		equal "$(ls "$work/limited") $(cat "$work/limited/was.pcap")" "was.pcap before" "files within $limit bytes"
	done
	within "$whole" "$work/limited/was.pcap" >/dev/null
	equal "$(stat -c %s "$work/limited/was.pcap")" "$whole" "bytes, all of which may be"
}

# No tool of ours has loaded it, and it samples all the same.
attached_by_ip()
{
	in_server ip link set dev s0 xdp obj "$BUILD/pacer.bpf.o" sec xdp.frags
	sampled plain '{of: denied, k: 4, packets: 50}'
	sed -i '/^memory/d' "$work/plain.yaml"
	apply plain
	arrive "10" n=12
	equal "$(rows)" "2 10.77.0.11 10.77.0.1 17 4000 9000 42 udp window 10.77.0.11" "rows of the sample"
}

# four NAME KEY SAMPLE: the policy of one rule and four limits that no other KEY shares.
four()
{
	{
		echo "rules: [{name: udp, limits: ["
		printf '{key: %s/%d,%d, packets: 9, window: 1s, entries: 64},\n' "$2" 8 32 "$2" 9 33 "$2" 10 34 "$2" 11 35
		echo "]}]"
		echo "$3"
	} | policy "$1"
}

nothing_retired()
{
	[ "$(status .retired_limits)" = 0 ]
}

# Limits that have expired take no place from a trial, whose sample takes its memory; four that count
# do.
trial_beside_expired()
{
	local bytes

	four one src ""
	four two dst ""
	sed 's/1s/2s/' "$work/one.yaml" >"$work/three.yaml"
	echo "sample: {of: all, k: 8, window: 60s, snap: 8}" >>"$work/three.yaml"
	load one
	apply two
	bytes=$(status .memory_bytes)
	refused 2 'a rule holds up to 8 limits' \
		pacer apply s0 -c "$work/three.yaml" --confirm-within 5s
	equal "$(status '"\(.serial) \(.memory_bytes)"')" "2 $bytes" "serial and memory"
	until_true 5 nothing_retired
	pacer apply s0 -c "$work/three.yaml" --confirm-within 5s >/dev/null
	equal "$(status .serial)" 3 "serial"
	[ "$(status .memory_bytes)" -gt "$bytes" ] || fail "a sample without memory"
}

# Read all the while, at full rate: each reading is of whole packets that were sent.
under_load()
{
	local i

	sampled load '{of: all, k: 64, window: 1s}'
	load load
	traffic_on 9000 1000 10.77.0.11=20000 10.77.0.12=20000
	for ((i = 0; i < 20; i++)); do
		sample '.sample[] | [.src, .dst, .proto, .dport, .rule] | map(tostring) | join(" ")'
	done | grep -v 'fe80::' | sort -u >"$work/seen"
	traffic_off
	equal "$(tr '\n' ',' <"$work/seen")" \
		"10.77.0.11 10.77.0.1 17 9000 udp,10.77.0.12 10.77.0.1 17 9000 udp," "different rows"
}

net_up
check sample-fragments-and-gone-rules fragments_and_gone_rules
check sample-every-packet every_packet
check sample-denied denied
check sample-admitted admitted
check sample-pcap pcap
check sample-changes changes
check sample-rolled-back rolled_back
check sample-memory memory
check sample-full-disk full_disk
check sample-limited-file limited_file
check sample-attached-by-ip attached_by_ip
check sample-trial-beside-expired trial_beside_expired
check sample-under-load under_load
finish
