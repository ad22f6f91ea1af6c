#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The ways onto an interface: the CLI's modes, and other loaders with the CLI coming later.
#
#   client                                   server
#   10.77.0.11-18   c0 ---------------- s0   `xdp-pacer load`, `ip link set`, `xdp-loader load`
#                   lo of the server         has no native XDP
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

mode_of()
{
	what_is_on "${1:-s0}" | jq -r '.mode // 0'
}

readonly native=1 skb=2

native()
{
	limit ten 10
	equal "$(pacer load s0 -c "$work/ten.yaml" --json |
		jq -r '[.interface, .attach, .attach_mode, .serial, .mode, .rules[0]] | join(" ")')" \
		"s0 direct native 1 enforce udp" "what load says"
	equal "$(mode_of)" "$native" "mode by ip link"
	arrive "10" n=20
	equal "$(pacer unload s0 --json | jq .attached)" false "what unload says"
	equal "$(what_is_on s0)" "{}" "left on s0"
	arrive "20" n=20
}

direct()
{
	limit ten 10
	load ten --direct
	equal "$(status '"\(.attach) \(.attach_mode)"')" "direct native" "how it is attached"
	arrive "10" n=20
	pacer unload s0 >/dev/null
	equal "$(what_is_on s0)" "{}" "left on s0"
}

skb()
{
	limit ten 10
	load ten --mode skb
	equal "$(status .attach_mode)" skb mode
	equal "$(mode_of)" "$skb" "mode by ip link"
	arrive "10 10" n=20 n=20,from=fd77::11
	counted udp 40 20 0 20
	pacer unload s0 >/dev/null
	equal "$(what_is_on s0)" "{}" "left on s0"
}

# No silent fall-back: what has no native XDP is refused, and skb mode is for who asks for it.
no_native()
{
	limit ten 10
	in_server ip link set lo up
	refused 1 'lo: .*no native.*--mode skb' pacer load lo -c "$work/ten.yaml"
	refused 1 'lo: .*no native.*--mode skb' pacer load lo -c "$work/ten.yaml" --direct
	refused 1 'lo: its driver does not take the program into hardware' pacer load lo -c "$work/ten.yaml" --mode hw
	equal "$(what_is_on lo)" "{}" "left on lo"
	equal "$(pacer status --json)" "[]" "what status lists"
	pacer load lo -c "$work/ten.yaml" --mode skb >/dev/null
	equal "$(mode_of lo)" "$skb" "mode on lo"
	equal "$(pacer status --json | jq -rc 'map(.interface)')" '["lo"]' "what status lists"
	pacer unload lo >/dev/null
	equal "$(what_is_on lo)" "{}" "left on lo"
	refused 1 's0: its driver does not take the program into hardware' pacer load s0 -c "$work/ten.yaml" --mode hw
	equal "$(what_is_on s0)" "{}" "left on s0"
}

monitor()
{
	limit ten 10
	load ten --monitor
	equal "$(status .mode)" monitor mode
	arrive "50 50" n=50 n=50,from=fd77::11
	counted udp 100 20 0 80
	apply ten
	arrive "0" n=20
}

# A pacer that another loader attached, under the built-in policy: found, read and tuned.
tunable()
{
	equal "$(status '[.attach, .attach_mode, .serial, .mode, .rules[0]] | join(" ")')" \
		"direct native 1 enforce default" "what status says"
	arrive "100 100" n=100 n=100,from=fd77::11
	counted default 200 200 0 0
	pacer set s0 default.packets=150 default.window=60s >/dev/null
	arrive "150 50" n=200,from=10.77.0.12 n=50,from=fd77::11
	equal "$(stats '.rules[0].admitted')" 400 "admitted by the tuned policy"
	pacer allow s0 add 10.77.0.12 >/dev/null
	arrive "50" n=50,from=10.77.0.12
	pacer allow s0 del 10.77.0.12 >/dev/null
	arrive "0" n=50,from=10.77.0.12
	limit own 7
	apply own
	arrive "7 20" n=20 n=20,dport=9001
	equal "$(status '.rules | join(" ")')" udp rules
	pacer unload s0 >/dev/null
	equal "$(what_is_on s0)" "{}" "left on s0"
}

by_ip()
{
	in_server ip link set dev s0 xdp obj "$BUILD/pacer.bpf.o" sec xdp.frags
	tunable
}

by_xdp_loader()
{
	in_server xdp-loader load -m native -s xdp.frags s0 "$BUILD/pacer.bpf.o"
	tunable
}

# The built-in policy by itself, with no CLI in sight: 50000 packets of a source in any second. A
# burst of more than that within a second loses what is over. What the sender takes longer for is no
# test, so the limit is first made small, and its window kept.
builtin_paces()
{
	in_server ip link set dev s0 xdp obj "$BUILD/pacer.bpf.o" sec xdp.frags
	pacer set s0 default.packets=20 >/dev/null
	arrive "20 20 20" n=40 n=40,from=fd77::11 n=40,wait_ms=1110
	counted default 120 60 0 60
}

# A bpffs is not needed, and none is left behind.
no_bpffs()
{
	local run=(unshare -m --propagation unchanged sh -c 'mount --make-rprivate /sys &&
		mount -t tmpfs none /sys/fs/bpf && exec "$@"' sh)

	limit ten 10
	in_server "${run[@]}" "$BUILD/xdp-pacer" load s0 -c "$work/ten.yaml" >/dev/null
	arrive "10" n=20
	in_server "${run[@]}" "$BUILD/xdp-pacer" status s0 --json | jq -e '.attach == "direct"' >/dev/null
	in_server "${run[@]}" "$BUILD/xdp-pacer" set s0 udp.packets=15 >/dev/null
	arrive "5" n=20
	in_server "${run[@]}" "$BUILD/xdp-pacer" unload s0 >/dev/null
	equal "$(what_is_on s0)" "{}" "left on s0"
}

# Neither maps nor programs outlive the pacer. The kernel frees them a moment later.
nothing_is_left()
{
	local id

	limit ten 10
	load ten
	id=$(status .program_id)
	bpftool prog show id "$id" >/dev/null
	bpftool prog show id "$id" --json | jq '.map_ids[]' >"$work/maps"
	[ -s "$work/maps" ]
	pacer unload s0 >/dev/null
	until_true 5 gone prog "$id"
	while read -r id; do
		until_true 5 gone map "$id"
	done <"$work/maps"
}

gone()
{
	! bpftool "$1" show id "$2" >/dev/null 2>&1
}

# What had been counted until it was off is said, as `stats` would have.
last_counters()
{
	local text last

	limit three 3
	load three
	arrive "3" n=5
	text=$(pacer stats s0 --json | jq -c '.rules')
	last=$(pacer unload s0 --json)
	equal "$(jq -c '[.attached, .last.interface, .last.rules]' <<<"$last")" "[false,\"s0\",$text]" "the last counters"
	load three
	arrive "3" n=4
	text=$(pacer unload s0)
	grep -q '^s0: the pacer is off; what it had counted:$' <<<"$text" || fail "$text"
	grep -Eq '^ +udp +4 +3 +1( |$)' <<<"$text" || fail "$text"
	nothing_is_left_of_it || fail "something is left"
}

# Where they cannot be read, it is said why.
last_counters_hidden()
{
	local text

	limit three 3
	load three
	text=$(in_server unshare --mount --propagation private sh -c \
		'umount -l /sys && mount -t tmpfs no-sys /sys && exec "$0" unload s0' "$BUILD/xdp-pacer")
	equal "$(head -n 1 <<<"$text")" "s0: the pacer is off" "without /sys"
	grep -q '^  what it had counted cannot be read: the number of CPUs is not known: ' <<<"$text" || fail "$text"
	nothing_is_left_of_it || fail "something is left"
}

nothing_is_left_of_it()
{
	! in_server ip link show s0 | grep -q xdp
}

net_up
check attach-native native
check attach-direct direct
check attach-skb skb
check attach-no-native no_native
check attach-monitor monitor
check attach-by-ip by_ip
check attach-by-xdp-loader by_xdp_loader
check attach-builtin builtin_paces
check attach-no-bpffs no_bpffs
check attach-nothing-left nothing_is_left
check attach-last-counters last_counters
check attach-last-counters-hidden last_counters_hidden
finish
