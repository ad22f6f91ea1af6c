#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# `check`, and the first policy that the manual shows: taken from there as it is printed, it is
# valid, loads and counts. The figures of memory add up, and a target that this machine has not is
# named, though the policy is valid.
#
#   client                          server
#   10.77.0.11-12, fd77::11-12  c0 ---- s0  the pacer; the only interface there is beside lo
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

# shown N: the Nth block of the manual's EXAMPLES, as a reader copies it.
shown()
{
	awk -v wanted="$1" '
		/^\.SH / { within = $2 == "EXAMPLES" }
		within && /^\.fi/ { inside = 0 }
		inside && n == wanted
		within && /^\.nf/ { inside = 1; n++ }' "$here/../../man/xdp-pacer.8" | sed 's/\\-/-/g'
}

first_policy()
{
	local line said

	shown 1 >"$work/first.yaml"
	equal "$(head -n 1 "$work/first.yaml")" "rules:" "the first line of the manual's policy"
	equal "$(wc -l <"$work/first.yaml")" 4 "its lines"
	said=$(pacer check -c "$work/first.yaml")
	grep -q '^  all, limit 0, by src/32,64$' <<<"$said" || fail "check: $said"
	pacer load s0 -c "$work/first.yaml" >/dev/null
	arrive "5 5" n=5 n=5,from=fd77::11
	counted all 10 10 0 0
	pacer unload s0 >/dev/null
	# And the commands below it, on this interface.
	shown 2 >"$work/commands"
	equal "$(wc -l <"$work/commands")" 4 "lines of commands"
	while read -r -a line; do
		equal "${line[0]}" xdp-pacer "the command of ${line[*]}"
		line=("${line[@]:1}")
		line=("${line[@]/eth0/s0}")
		pacer "${line[@]/first.yaml/$work/first.yaml}" </dev/null >/dev/null
	done <"$work/commands"
	pacer status s0 | grep -q '^  policy .* enforced, ' || fail "it is not enforced: $(pacer status s0)"
}

# A key is told with both lengths, whatever was written.
lengths()
{
	policy keys <<-'END'
	rules:
	  - name: k
	    limits:
	      - {key: src, gap: 1ms}
	      - {key: dst, gap: 1ms}
	      - {key: src+dport, gap: 1ms}
	      - {key: src/24,128, gap: 1ms}
	END
	equal "$(pacer check -c "$work/keys.yaml" --json | jq -r '[.limits[].key] | join(" ")')" \
		"src/32,64 dst/32,64 src/32,64+dport src/24,128" "keys"
	equal "$(pacer check -c "$work/keys.yaml" | sed -n 's/.*, by //p' | tr '\n' ' ')" \
		"src/32,64 dst/32,64 src/32,64+dport src/24,128 " "keys in the text"
}

memory()
{
	local said

	cat >"$work/all.yaml" <<-'END'
	rules:
	  - name: r
	    limits:
	      - {key: src, gap: 1ms}
	      - {key: src, packets: 300, window: 1s}
	      - {key: all, uses: 300, cooldown: 1s}
	    over: pool p
	    ban: 1s
	pools: [{name: p, targets: [s0], each: 5, cooldown: 1s}]
	sample: {of: denied, k: 64, window: 60s}
	END
	said=$(pacer check -c "$work/all.yaml" --json)
	equal "$(jq '(.memory_parts_bytes | add) == .memory_bytes' <<<"$said")" true "parts are all"
	equal "$(jq '.state_bytes' <<<"$said")" $((64 << 20)) "the default"
	equal "$(jq '[.limits[] | select(.kind != "throttle") | .state_bytes] | add' <<<"$said")" \
		"$(jq .memory_parts_bytes.limits <<<"$said")" "state of the limits"
	equal "$(pacer check -c "$work/all.yaml" | awk '
		/^memory/ { all = $2; next }
		/^[a-z]/ && all { exit }
		all { sum += $1 }
		END { print sum - all }')" 0 "what the lines of memory leave over"
	echo "memory: 64M" >>"$work/all.yaml"
	equal "$(pacer check -c "$work/all.yaml" --json | jq .state_bytes)" 64000000 "64M"
}

# Valid, and the operator is told: one line for each target, and as much in the JSON.
missing()
{
	local said

	policy pools <<-'END'
	rules: []
	pools:
	  - {name: here, targets: [s0], each: 5, cooldown: 1s}
	  - {name: far, targets: [nix0, lo, nix1], each: 5, cooldown: 1s}
	  - {name: cpus, targets: ["cpu:0", "cpu:1023"], each: 5, cooldown: 1s}
	END
	said=$(pacer check -c "$work/pools.yaml")
	equal "$(grep '^here' <<<"$said" | sed 's/^here *pool //')" \
		"far: nix0: there is no such interface on this machine: load would refuse the policy
far: lo: the interface is down on this machine: load would refuse the policy
far: nix1: there is no such interface on this machine: load would refuse the policy
cpus: cpu:1023: there is no such CPU on this machine: load would refuse the policy" "what is missing"
	equal "$(pacer check -c "$work/pools.yaml" --json | jq -c '[.missing_targets[] | [.pool, .target]]')" \
		'[["far","nix0"],["far","lo"],["far","nix1"],["cpus","cpu:1023"]]' "what is missing, in JSON"
	refused 1 'pool far: nix0: there is no such interface' pacer load s0 -c "$work/pools.yaml"
	limit none 10
	equal "$(pacer check -c "$work/none.yaml" --json | jq -c .missing_targets)" "[]" "nothing is missing"
	! pacer check -c "$work/none.yaml" | grep -q '^here' || fail "a line of what is missing"
}

net_up
check check-first-policy first_policy
check check-lengths lengths
check check-memory memory
check check-missing-targets missing
finish
