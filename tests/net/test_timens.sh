#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Verbs in a time namespace: the packet path goes by the machine's clock, and so do they.
#
#   client                            server
#   10.77.0.11   c0 ---- s0           the pacer; verbs whose own clocks are ahead or behind
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

# by SECONDS VERB...: where the clocks are so much ahead.
by()
{
	in_server unshare --time --monotonic "$1" --boottime "$1" --fork timeout -k 1 "$hang_s" "$BUILD/xdp-pacer" "${@:2}"
}

# within LEAST MOST GOT WHAT
within()
{
	jq -en "$3 | . >= $1 and . <= $2" >/dev/null || fail "$4: $3, which is not within $1 and $2"
}

# A limit in the place of another has it drain, as long as its memory is: not until a time that is past, or years off.
drains()
{
	limit ten 10
	limit few 5 30s
	load ten
	arrive "10" n=15
	by "$1" apply s0 -c "$work/few.yaml" >/dev/null
	arrive "0" n=15
}

on_trial()
{
	limit ten 10
	load ten
	by "$1" set s0 udp.packets=12 --confirm-within 60s >/dev/null
	within 30e9 60e9 "$(status .confirm_within_ns)" "left of a trial" || return
	within 30e9 60e9 "$(by "$1" status s0 --json | jq .confirm_within_ns)" "left of it, there" || return
	by "$1" confirm s0 >/dev/null
}

bans()
{
	policy bans <<-END
	rules: [{name: udp, match: {proto: udp}, limits: [{key: src/32,128, packets: 9, window: 60s}]}]
	bans: 64
	END
	load bans
	by "$1" ban s0 add 10.77.0.11 --for 100s >/dev/null
	within 70e9 100e9 "$(pacer ban s0 list --json | jq '.[].left_ns')" "left of a ban" || return
	arrive "0" n=5
	pacer ban s0 del all >/dev/null
}

# A wait is by the own clock.
waits()
{
	limit ten 10
	load ten
	equal "$(by "$1" stats s0 --over 100ms --json | jq '.rates.now.span_ns | . >= 1e8 and . < 1e10')" true "stats --over"
}

saves()
{
	limit ten 10
	load ten
	arrive "10" n=15
	by "$1" save s0 "$work/state" --and-unload >/dev/null
	load ten --restore "$work/state"
	arrive "0" n=15
}

# Of two uses, in namespaces of other clocks, one key has one.
keys_shared()
{
	local key=(keys --keys "a,b" --max 1 --window 1h --state "$work/keys.$1")

	equal "$(echo x | by "$1" "${key[@]}") $(echo x | by 7 "${key[@]}") $(echo x | pacer "${key[@]}")" "a b -" \
		"keys of two, each for one use"
}

# Where nothing says whose clocks these are it does nothing, and says what is wanted.
without_proc()
{
	limit ten 10
	load ten
	# shellcheck disable=SC2016 # the inner shell's
	refused 1 'the time namespace cannot be told: .*: mount /proc$' in_server unshare --time --monotonic 50000 --mount \
		--fork sh -c 'mount -t tmpfs none /proc && exec "$@"' - "$BUILD/xdp-pacer" status s0
}

net_up
# both NAME CHECK: ahead, and as far back as the kernel takes it: no time by such a clock is still to come.
both()
{
	check "timens-$1-ahead" "$2" 50000
	check "timens-$1-behind" "$2" "$behind"
}

behind=$(python3 -c 'import time; print(5 - int(time.monotonic()))')
both drains drains
both trial on_trial
both bans bans
both waits waits
both saves saves
both keys keys_shared
check timens-without-proc without_proc
finish
