#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# System calls of a change fail or are its last ones: what is said of it is what is in force.
#
#   client                                  server
#   10.77.0.11-18, fd77::11-18  c0 ---- s0  the pacer; `xdp-pacer apply` and `allow`, hampered
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

# strict NAME ALLOW [FIELD]: one packet a source but for those of the list.
strict()
{
	policy "$1" <<-END
	allow: [$2]
	rules:
	  - {name: strict, match: {proto: udp}, limits: [{key: src, packets: 1, window: 60s${3:-}}]}
	END
}

# trie4: the map of the lists of IPv4, by its number.
trie4()
{
	local id

	for id in $(bpftool -j prog show id "$(status .program_id)" | jq '.map_ids[]'); do
		[ "$(bpftool -j map show id "$id" | jq -r .name)" != pacer_allow4 ] || echo "$id"
	done
}

# copies_of MAP LAST: of the two lists, those that 10.77.0.LAST is on, as the kernel has them.
copies_of()
{
	bpftool -j map dump id "$1" | jq -c --arg last "$(printf '0x%02x' "$2")" '[.[].key |
		select(.[8:] == ["0x0a", "0x4d", "0x00", $last]) | .[4:8] |
		if any(. != "0x00") then 1 else 0 end] | sort'
}

# Killed at any system call, a change by hand during a trial leaves the wider list to come back.
killed_on_trial()
{
	local cut n what code there map split=0

	cut=$(tool cut)
	strict old ""
	strict new ""
	load old
	apply new --confirm-within 10m # the copy on trial is 1
	map=$(trie4)
	for what in add del; do
		for ((n = 0; n < 200; n++)); do
			code=0
			in_server "$cut" flock "$n" 0 0 "$BUILD/xdp-pacer" allow s0 "$what" 10.77.0.11 \
				>/dev/null || code=$?
			there=$(copies_of "$map" 11)
			case $there in
			"[]" | "[0,1]") ;;
			"[0]") split=$((split + 1)) ;;
			*) fail "$what killed at $n: it is on the lists $there" || exit 1 ;;
			esac
			[ "$code" -eq 100 ] || break
			if [ "$what" = del ]; then
				pacer allow s0 add 10.77.0.11 >/dev/null
			elif [ "$there" != "[]" ]; then
				pacer allow s0 del 10.77.0.11 >/dev/null
			fi
		done
		equal "$code" 0 "$what at last: exit code"
	done
	[ "$split" -ge 2 ] || fail "no kill came between the two lists"
}


# Since a change locks: the first way to wait for the CPUs; both ways. tests/faults fails each call of it.
readonly membarrier=flock:membarrier grace=flock:membarrier,map

# hampered CALLS N ERRNO VERB...: such calls of the verb fail; its exit code is in $code, and whether
# any was made in $reached. What it says is in $work/said.
hampered()
{
	code=0 reached=no
	in_server timeout -k 1 "$hang_s" "$(tool fault)" "$1" "$2" "$3" "$BUILD/xdp-pacer" "${@:4}" \
		>"$work/said" 2>&1 || code=$?
	[ "$code" -lt 100 ] || code=$((code - 100)) reached=yes
}

refused_by_grace()
{
	local was policy

	strict old "10.77.0.11"
	strict new "10.77.0.12"
	load old
	was=$(pacer allow s0 list --json) policy=$(status .)
	# Refused is the first way: there is another.
	hampered "$membarrier" all 38 apply s0 -c "$work/new.yaml"
	equal "$reached $code" "yes 0" "apply without membarrier: exit code"
	arrive "1 9" n=9 n=9,from=10.77.0.12
	apply old
	policy=$(status .)
	# Both are: nothing may be written over.
	hampered "$grace" all 1 apply s0 -c "$work/new.yaml"
	equal "$reached $code" "yes 1" "apply without any grace period: exit code"
	grep -q '^xdp-pacer: s0: the kernel cannot tell when its CPUs are done' "$work/said" ||
		fail "it says: $(cat "$work/said")"
	equal "$(status .)" "$policy" status
	equal "$(pacer allow s0 list --json)" "$was" "allow-list"
	arrive "9 1" n=9 n=9,from=10.77.0.12
	hampered "$grace" all 1 set s0 strict.packets=9
	equal "$reached $code $(status .serial)" "yes 1 3" "set without: exit code and serial"
}

# The second wait, when the policy is in force already, is the one that fails: it says both.
in_force_all_the_same()
{
	local n

	strict old ""
	strict new "10.77.0.12" ", slots: 5"
	load old
	# The first wait passes; from the next one on there is none.
	hampered "$grace" 2+99 1 apply s0 -c "$work/new.yaml"
	equal "$reached $code" "yes 0" "exit code"
	grep -q 'the policy is in force, but the limits that it retired hold until the next change' \
		"$work/said" || fail "it says: $(cat "$work/said")"
	equal "$(status '"\(.serial) \(.retired_limits)"')" "2 1" "serial and limits retired"
	arrive "9 1" n=9,from=10.77.0.12 n=9
	# The next change knows when they end.
	pacer set s0 strict.packets=2 >/dev/null
	arrive "0" n=9
}

# No number of CPUs: no memory is sized by it.
cpus_unknown()
{
	local verb

	strict one ""
	load one
	for verb in "check -c $work/one.yaml" "load s0 -c $work/one.yaml" "stats s0" \
		"apply s0 -c $work/one.yaml" "set s0 strict.packets=2"; do
		# shellcheck disable=SC2086 # a verb and its arguments
		refused 1 'the number of CPUs is not known: .*/sys/devices/system/cpu/possible' \
			in_server unshare -m --propagation unchanged sh -c 'mount --make-rprivate /sys &&
				mount -t tmpfs none /sys/devices/system/cpu && exec "$@"' - \
			"$BUILD/xdp-pacer" $verb
	done
	equal "$(status .serial)" 1 serial
}

net_up
check fault-killed-on-trial killed_on_trial
check fault-refused-by-grace refused_by_grace
check fault-in-force-all-the-same in_force_all_the_same
check fault-cpus-unknown cpus_unknown
finish
