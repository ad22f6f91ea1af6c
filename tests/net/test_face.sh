#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The face of the verbs that need a pacer: results that do not get there, a hostile interface name, a
# disk that is full. tests/cli/run has what needs none.
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

# lost PATTERN VERB...: to a full device it exits 1 and says so in one line, as text and as JSON.
lost()
{
	local pattern=$1 format code

	shift
	for format in "" --json; do
		code=0
		# shellcheck disable=SC2086 # no word where it is empty
		pacer "$@" $format >/dev/full 2>"$work/err" || code=$?
		equal "$code" 1 "exit code of $* $format" || return
		equal "$(wc -l <"$work/err")" 1 "$* $format: lines on stderr" || return
		grep -q "^xdp-pacer: $1: the result cannot be written: No space left on device$pattern\$" \
			"$work/err" || fail "$* $format: $(cat "$work/err")" || return
	done
}

lost_result()
{
	load sampled
	lost "" status
	lost "" status s0
	lost "" stats s0
	lost "" stats s0 --watch
	lost "" stats s0 -w
	lost "" top s0 --once --every 100ms
	lost "" sample s0
	lost "" estimate s0
	lost "" estimate s0 --watch
	pacer allow s0 add 192.0.2.0/24 >/dev/null
	lost "" allow s0 list
}

# What was changed stays so, and that is said.
lost_change()
{
	local made=": the change was made all the same"

	load sampled
	lost "$made" allow s0 add 192.0.2.0/24
	equal "$(pacer allow s0 list --json | jq -r '.[].prefix')" 192.0.2.0/24 "the allow-list"
	lost "$made" set s0 udp.packets=5
	lost "$made" apply s0 -c "$work/sampled.yaml"
	refused 1 'the result cannot be written: No space left on device: the change was made' \
		to_full apply s0 -c "$work/sampled.yaml" --confirm-within 60s
	refused 1 'the result cannot be written: No space left on device: the change was made' \
		to_full confirm s0
	equal "$(status .confirm_within_ns)" 0 "the time left to confirm"
	refused 1 'the result cannot be written.*the change was made' to_full unload s0
	equal "$(what_is_on s0)" "{}" "what is on s0"
	refused 1 'the result cannot be written.*the change was made' \
		to_full load s0 -c "$work/sampled.yaml" --json
	equal "$(status .attach)" direct "how it is attached"
}

to_full()
{
	pacer "$@" >/dev/full
}

# A reader that goes ends a watch, by SIGPIPE or, where that is ignored, as quietly.
watch_ends()
{
	local verb code

	load sampled
	for verb in "stats s0 --watch" "stats s0 -wj" "top s0 -j" "estimate s0 --watch" "estimate s0 -wj"; do
		code=0
		# shellcheck disable=SC2086 # words
		(
			trap '' PIPE
			pacer $verb 2>"$work/err"
			echo $? >"$work/code"
		) | head -n 1 >/dev/null || true
		equal "$(cat "$work/code")" 1 "exit code of $verb" || return
		[ ! -s "$work/err" ] || fail "$verb: $(cat "$work/err")" || return
	done
}

two_modes()
{
	load sampled --mode skb --monitor
	equal "$(status '[.attach_mode, .mode, .policy] | tojson')" '["skb","monitor",null]' "status"
	equal "$(stats '[.mode, .attach_mode] | tojson')" '["monitor",null]' "stats"
}

# The kernel takes any byte but '/', ':' and blanks in a name.
hostile_interface()
{
	local name=$'x\e[7m\xff\x9b' shown='x\\x1b\[7m\\xff\\x9b' verb

	in_server ip link set s0 down
	in_server ip link set s0 name "$name"
	in_server ip link set "$name" up
	{
		pacer load "$name" -c "$work/sampled.yaml" &&
			for verb in status stats sample estimate; do
				pacer $verb "$name" || break
				pacer $verb "$name" --json | jq -r .interface || break
			done &&
			pacer top "$name" --once &&
			pacer top "$name" --once --json | jq -r .interface &&
			pacer unload "$name"
	} >"$work/out" 2>&1 || true
	in_server ip link set "$name" down
	in_server ip link set "$name" name s0
	in_server ip link set s0 up
	! LC_ALL=C grep -q '[^ -~]' "$work/out" || fail "raw: $(head -c 2000 "$work/out" | od -c)" || return
	equal "$(grep -c "^$shown: " "$work/out")" 8 "lines of text with the name" || return
	equal "$(grep -c "^bytes:$shown\$" "$work/out")" 5 "names in JSON"
}

# A picture onto a disk that is full leaves no file, and one that was there as it was.
full_disk()
{
	local code=0

	mkdir -p "$work/disk"
	mount -t tmpfs -o size=64k none "$work/disk"
	echo before >"$work/disk/was.svg"
	head -c 40000 /dev/zero >"$work/disk/filler"
	for svg in new.svg was.svg; do
		pacer replay -c "$work/sampled.yaml" "$work/a.pcap" --plot "$work/disk/$svg" \
			>/dev/null 2>"$work/err" || code=$?
		[ "$code" -eq 1 ] && [ "$(wc -l <"$work/err")" -eq 1 ] &&
			grep -q "$svg: the picture cannot be drawn: No space left on device" "$work/err" ||
			break
	done
	ls "$work/disk" >"$work/left"
	cat "$work/disk/was.svg" >>"$work/left"
	umount "$work/disk"
	equal "$(tr '\n' ' ' <"$work/left")" "filler was.svg before " "what is on the disk" || return
	equal "$code" 1 "exit code"
	equal "$(cut -d : -f 3- "$work/err")" \
		" the picture cannot be drawn: No space left on device" "stderr"
}

net_up
policy sampled <<-END
	rules:
	  - name: udp
	    match: {proto: udp, dport: 9000}
	    limits: [{key: "src/32,128", packets: 3, window: 60s}]
	sample: {of: all, k: 64, window: 60s}
END
python3 - "$work/a.pcap" <<-'END'
	import struct, sys
	with open(sys.argv[1], "wb") as f:
	    f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
	    for i in range(10):
	        udp = struct.pack(">HHHH", 1000, 9000, 8, 0)
	        ip = struct.pack(">BBHHHBBH4s4s", 69, 0, 28, 0, 0, 64, 17, 0, b"\x0a\x4d\0\x0b", b"\x0a\x4d\0\x01")
	        frame = b"\2" * 12 + b"\x08\0" + ip + udp
	        f.write(struct.pack("<IIII", 1700000000 + i, 0, len(frame), len(frame)) + frame)
END
check lost_result lost_result
check lost_change lost_change
check watch_ends watch_ends
check two_modes two_modes
check hostile_interface hostile_interface
check full_disk full_disk
finish
