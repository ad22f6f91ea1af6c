# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What the tests share in which calls of the CLI fail: a load is whole or has not happened.
#
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

fault=$(tool fault)
# shellcheck disable=SC2034 # for the tests
readonly eperm=1 enomem=12 ebusy=16 einval=22
# Not each call fails: a load is half a second of a verifier. `make test-faults` makes each fail, of every verb.
readonly step=${FAULT_STEP:-10}

# faulty CALLS N ERRNO ARGUMENT...: the CLI; $code is its own exit code, $failed whether a call did.
faulty()
{
	code=0 failed=false
	in_server timeout -k 1 "$hang_s" "$fault" "$1" "$2" "$3" "$BUILD/xdp-pacer" "${@:4}" \
		>"$work/out" 2>"$work/err" || code=$?
	[ "$code" -ne 124 ] || fail "call $2 of $1: no end" || return
	if [ "$code" -ge 100 ]; then
		code=$((code - 100)) failed=true
	fi
}

# whole_or_nothing WHAT: after a load, by its exit code.
whole_or_nothing()
{
	if [ "$code" -eq 0 ]; then
		done_well=$((done_well + 1))
		# What it has done is done, whoever shares the state.
		! grep -qv "which interfaces share its state cannot be told: " "$work/err" ||
			fail "$1: done, but it complains: $(cat "$work/err")" || return
		arrive "10" n=20 || fail "$1: done, but does not limit" || return
		pacer unload s0 >/dev/null || fail "$1: done, but cannot be taken off" || return
	else
		equal "$code $(wc -l <"$work/err")" "1 1" "$1: exit code, lines of complaint" || return
		[ ! -s "$work/out" ] || fail "$1: failed, but says $(head -n 1 "$work/out")" || return
	fi
	equal "$(what_is_on s0)" "{}" "$1: left on s0: $(cat "$work/err")"
}

# each_fails CALLS ERRNO FIRST LEAST OPTION...: every tenth of the calls from FIRST on fails in its turn;
# there are so many at least. FAULT_STEP=1: each.
each_fails()
{
	local n done_well=0

	limit ten 10
	for ((n = $3; n < 400; n += step)); do
		faulty "$1" "$n" "$2" load s0 -c "$work/ten.yaml" "${@:5}" || return
		$failed || break
		((n % 20 >= step)) || so_far "$n calls of $1"
		whole_or_nothing "call $n of $1 failed with $2" || return
	done
	[ "$n" -gt "$4" ] && [ "$n" -lt 400 ] || fail "$((n - 1)) calls of $1" || return
	equal "$code" 0 "a load in which no call fails" # and after all these
	arrive "10" n=20
	echo "up to $((n - 1)) calls, every ${step}th fails: $done_well loads done all the same"
}
