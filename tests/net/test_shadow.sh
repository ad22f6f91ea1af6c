#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A policy is tried beside the one in force: no packet fares differently, what would is told to the
# packet, and the policy can be put in force with the state that it has by then.
#
#   client                                     server
#   10.77.0.11-18, fd77::11-18  c0 ---- s0     the pacer; `xdp-pacer shadow`
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

cut=$(tool cut)

# pins: of shadows of s0, whose number no other run's interface has.
pins()
{
	local index

	index=$(in_server cat /sys/class/net/s0/ifindex 2>/dev/null ||
		in_server ip -j link show s0 | jq '.[0].ifindex')
	find /sys/fs/bpf/xdp-pacer -name "shadow-of-$index-by-$1" 2>/dev/null | wc -l
}

begin()
{
	pacer shadow s0 -c "$work/$1.yaml" >/dev/null
}

# would FILTER: of what the shadow tells.
would()
{
	pacer shadow s0 --json | jq -rc "$1"
}

# changes "ALIKE DENY ADMIT": packets of the shadow's rules.
changes()
{
	equal "$(would '[.rules[] | select(.rule != "") | .reasons[]] |
		[(map(.none) | add // 0), (map(.deny) | add // 0), (map(.admit) | add // 0)] |
		join(" ")')" "$1" "packets that fare alike, would be denied, admitted"
}

three()
{
	limit ten 10
	limit three 3
	limit twenty 20
}

# What there is too much of for the text, and for the shadow's table of bans. 64 samples are of nearly all 16 keys, and
# of ten or fewer once in 10^9 times.
many_keys_and_bans()
{
	local from i shots_of=()

	three
	sed -i '1i bans: 2000' "$work/ten.yaml"
	load ten
	for from in 10.77.0. fd77::; do for i in 11 12 13 14 15 16 17 18; do shots_of+=("n=5,from=$from$i"); done; done
	begin three
	arrive "5 5 5 5 5 5 5 5 5 5 5 5 5 5 5 5" "${shots_of[@]}"
	equal "$(would '.differing.keys | length > 10') $(pacer shadow s0 | grep -Ec ' udp +deny +window ')" "true 10" "keys, and those in the text" ||
		return
	pacer shadow s0 --stop >/dev/null
	seq -f '203.0.113.%.0f' 1 255 | sed 's/.*/&\n&/; s/\n203.0.113/\n198.51.100/' | pacer ban s0 add - >/dev/null
	sed -i '1i bans: 64' "$work/three.yaml"
	pacer shadow s0 -c "$work/three.yaml" >"$work/begun"
	grep -Eq '^bans that it has no room for: [1-9][0-9]*$' "$work/begun" || fail "$(cat "$work/begun")"
}

# A stricter one, from two sources. 7 of 15 and 4 of 7 would be denied beside those that are.
stricter()
{
	three
	load ten
	begin three
	arrive "10 7 2" n=15 n=7,from=10.77.0.12 n=2,from=fd77::13
	counted udp 24 19 0 5
	changes "13 11 0"
	equal "$(would '.rules[] | select(.rule == "udp") | .reasons |
		"\(.admit.none) \(.window.none) \(.window.deny)"')" "8 5 11" "by reason of the shadow"
	equal "$(would '[.differing.keys[] | "\(.key) \(.rule) \(.change) \(.reason)"] | sort | join(", ")')" \
		"10.77.0.11 udp deny window, 10.77.0.12 udp deny window" "keys"
	equal "$(would '.differing.packets')" 11 "packets in the sample's window"
	equal "$(status '.shadow.changes.deny')" 11 "told by status"
	equal "$(stats '.shadow.changes.deny')" 11 "told by stats"
	equal "$(pacer top s0 --once --json | jq -c '[.shadow | .deny, .admit]')" '[11,0]' "told by top"
	pacer top s0 --once | grep -q 's0: enforced.*, shadow: deny 11, admit 0' || fail "$(pacer top s0 --once)"
	pacer status s0 | grep -q 'shadow .* 11 .*would be denied' || fail "status says no word of it"
	pacer export s0 --textfile "$work/m.prom" >/dev/null
	promtool check metrics <"$work/m.prom" || fail "promtool" || return
	grep -qxF 'xdp_pacer_shadow{interface="s0"} 1' "$work/m.prom" || fail "no shadow in the metrics" || return
	grep -qxF 'xdp_pacer_shadow_packets_total{interface="s0",rule="udp",reason="window",change="deny"} 11' \
		"$work/m.prom" || fail "$(grep shadow_packets "$work/m.prom")" || return
	pacer shadow s0 | grep -Eq '10\.77\.0\.11 +udp +deny +window' || fail "$(pacer shadow s0)" || return
	background "$SERVER" "$BUILD/xdp-pacer" top s0 --json --every 100ms >"$work/lines"
	until_true 5 grep -q '"shadow":{"' "$work/lines" || fail "top: $(head -n 1 "$work/lines")" || return
	pacer shadow s0 --stop >/dev/null
	until_true 5 grep -q '"shadow":null' "$work/lines" || fail "top shows on a shadow that is off"
	kill "$pid"
}

# A looser one, and one that lets a rule's packets through by monitor mode.
looser()
{
	three
	load ten
	begin twenty
	arrive "10" n=25
	changes "15 0 10"
	equal "$(would '[.differing.keys[] | "\(.key) \(.change) \(.reason)"] | join(", ")')" \
		"10.77.0.11 admit admit" "keys"
	pacer shadow s0 --stop >/dev/null
	sed 's/^rules:/mode: monitor\n&/' "$work/three.yaml" >"$work/monitor.yaml"
	begin monitor
	arrive "0" n=9
	changes "0 0 9"
	equal "$(would .monitor)" true "monitor"
}

# It begins with a copy of what is held: the same policy fares alike from the first packet on.
begins_with_a_copy()
{
	three
	load ten
	arrive "6" n=6
	begin ten
	arrive "4 10" n=9 n=12,from=10.77.0.12
	changes "21 0 0"
	pacer shadow s0 --stop >/dev/null
	cat "$work/ten.yaml" - >"$work/more.yaml" <<-END
	  - {name: rest, limits: [{key: src, packets: 10, window: 60s}, {key: all, packets: 99, window: 60s}]}
	END
	pacer shadow s0 -c "$work/more.yaml" >"$work/begun"
	grep -qx 'limits that go on with a copy of their state: 1, that begin anew: 2, that drain: 0' "$work/begun" ||
		fail "$(cat "$work/begun")" || return
	pacer shadow s0 --stop >/dev/null
	equal "$(pacer shadow s0 -c "$work/more.yaml" --json | jq -c '[.limits_kept, .limits_new, .limits_draining]')" \
		"[1,2,0]" "limits"
}

# A limit by a value that drains counts by it for as long, though no key names the set any more.
by_a_value_no_longer()
{
	local name

	printf '10.77.0.11,XY\n10.77.0.13,AB\n' >"$work/geo.csv"
	policy keyed <<-END
	sets: [{name: geo, file: $work/geo.csv, value: 2}]
	rules: [{name: land, match: {proto: udp}, limits: [{key: value(geo, src), packets: 4, window: 60s, entries: 1k}]}]
	END
	for name in matched gone; do
		policy "$name" <<-END
		sets: [{name: geo, file: $work/geo.csv, value: 2}]
		rules: [{name: land, match: {proto: udp, src: "@geo"}, limits: [{key: src, packets: 6, window: 60s, entries: 1k}]}]
		END
	done
	sed -i '/^sets/d; s/, src: "@geo"//' "$work/gone.yaml"
	load keyed
	arrive "3" n=3
	refused 2 'gone.yaml:2: rule land: a limit that this change retires counts by the values of a set' \
		pacer shadow s0 -c "$work/gone.yaml" || return
	begin matched
	pacer shadow s0 --promote >/dev/null
	arrive "1 4" n=9 n=9,from=10.77.0.13
}

# a_program_more PID: it has loaded one beside the pacer's.
a_program_more()
{
	(($(readlink /proc/"$1"/fd/* 2>/dev/null | grep -c bpf-prog) > 1))
}

# The same of what passes while it is verified, for seconds: the copy is taken again when that is done.
begins_with_what_passes_meanwhile()
{
	local begun pid

	three
	load ten
	begin ten &
	begun=$!
	until pid=$(pgrep -nf "shadow s0 -c $work/ten.yaml") && a_program_more "$pid"; do
		kill -0 "$begun" 2>/dev/null || break
		sleep 0.02
	done
	arrive "10" n=15
	wait "$begun" || fail "it was not begun" || return
	pacer shadow s0 --promote >/dev/null
	arrive "0" n=5
}

# What was counted before it, and since, goes on: of rules and of sets, by their names.
counters_go_on()
{
	local name new=""

	for name in before after; do
		policy "$name" <<-END
		sets: [$new{name: good, of: [10.77.0.11]}, {name: drop, of: [10.77.0.12]}]
		allow: ["@good"]
		rules: [{name: udp, match: {proto: udp, src: "@drop"}, limits: [{key: src, packets: 2, window: 600s}]}]
		END
		new="{name: new, of: [10.77.0.13]}, "
	done
	load before
	arrive "5 2" n=5 n=6,from=10.77.0.12
	begin after
	arrive "3 0" n=3 n=4,from=10.77.0.12
	totals >"$work/before"
	pacer shadow s0 --promote >/dev/null
	equal "$(less_than "$work/before")" "" "what is less" || return
	equal "$(stats '[.sets[] | "\(.name) \(.packets)"] | sort | join(", ")')" "drop 10, good 8, new 0" "packets of sets"
}

# What it holds goes on, and so does what was allowed and banned by hand beside both.
promoted()
{
	local before

	three
	sed -i 's/^rules:/bans: 64\n&/' "$work/ten.yaml" "$work/three.yaml"
	load ten
	begin three
	arrive "2" n=2
	pacer allow s0 add 10.77.0.17 >/dev/null
	pacer ban s0 add 10.77.0.16 >/dev/null
	before=$(status .serial)
	equal "$(pins "$(status .program_id)")" 1 "pins while it runs"
	pacer shadow s0 --promote --json >"$work/out"
	equal "$(jq -rc '"\(.promoted) \(.last.changes.deny)"' "$work/out")" "true 0" "promoted"
	equal "$(pins '*')" 0 "pins when it is in force"
	arrive "1 3 9 0" n=9 n=9,from=10.77.0.12 n=9,from=10.77.0.17 n=9,from=10.77.0.16
	[ "$(status .serial)" -gt "$before" ] || fail "the serial did not grow"
	equal "$(status .shadow)" null "shadow"
	refused 1 's0: no shadow runs beside its policy' pacer shadow s0
	pacer show s0 | grep -q 'packets: 3,' || fail "another policy is in force: $(pacer show s0)"
	apply ten # by the usual way from here on
	arrive "7" n=9
	begin three
	pacer shadow s0 --promote >"$work/out" # nothing has come: there is nothing to be said
	equal "$(grep -c 'have not counted' "$work/out")" 0 "said"
	begin three
	pacer shadow s0 --stop >/dev/null
}

# Of a limit that both have, it has counted what it would have admitted: three, where the policy in force admitted
# ten. `apply` counts the ten.
what_it_has_counted()
{
	local how left said

	limit ten 10 600s
	policy three-of-24 <<-END
	rules:
	  - name: udp
	    match: {proto: udp, dport: 9000}
	    limits:
	      - {key: src/32,128, packets: 10, window: 600s}
	      - {key: "src/24,64", packets: 3, window: 600s}
	END
	while read -r how left said; do
		load ten --replace
		begin three-of-24
		arrive "10" n=20
		pacer shadow s0 "$how" >"$work/out"
		equal "$(grep -c 'its limits have not counted it' "$work/out")" "$said" "said of what was let through"
		[ "$how" != --stop ] || apply three-of-24
		pacer set s0 'udp.limits[1].packets=100' >/dev/null
		arrive "$left" n=20
	done <<<$'--promote 7 1\n--stop 0 0'
}

# What is done by hand to a set is done to the shadow's, from before it began and while it runs.
sets_by_hand()
{
	local n

	for n in 3 1; do
		policy "of-$n" <<-END
		sets: [{name: few, of: 10.77.0.18}]
		rules:
		  - {name: udp, match: {proto: udp, src: "@few"}, limits: [{key: src, packets: $n, window: 60s}]}
		END
	done
	limit ten 10
	load of-3
	equal "$(pacer sets s0 add few 10.77.0.11 --json | jq .in_shadow)" null "where no shadow runs"
	begin of-1
	arrive "3" n=5
	changes "3 2 0"
	equal "$(pacer sets s0 add few 10.77.0.12 --json | jq .in_shadow)" true "added"
	arrive "3" n=5,from=10.77.0.12
	changes "6 4 0"
	pacer sets s0 del few 10.77.0.11 | grep -q '1 prefix taken out; the same in its shadow' || fail "del" || return
	arrive "9" n=9
	changes "6 4 0"
	echo 10.77.0.13 >"$work/few.txt"
	equal "$(pacer sets s0 replace few "$work/few.txt" --json | jq .in_shadow)" true "replaced"
	arrive "9 3" n=9,from=10.77.0.12 n=5,from=10.77.0.13
	changes "9 6 0"
	pacer sets s0 add few 10.77.0.14 >/dev/null
	pacer shadow s0 --promote >/dev/null
	arrive "1" n=5,from=10.77.0.14
	begin ten
	pacer sets s0 add few 10.77.0.15 | grep -q "1 prefix added; its shadow's set stays as it is" ||
		fail "of a shadow without the set" || return
	arrive "1" n=5,from=10.77.0.15
}

# A value's number is the policy's own: a replacement is of the one in force alone.
set_with_values()
{
	printf '10.77.0.11,red\n10.77.0.12,blue\n' >"$work/of.txt"
	for n in 3 1; do
		policy "of-$n" <<-END
		sets: [{name: of, file: $work/of.txt, value: 2}]
		rules:
		  - {name: udp, match: {proto: udp, src: "@of=red"}, limits: [{key: src, packets: $n, window: 60s}]}
		END
	done
	load of-3
	pacer sets s0 add of 10.77.0.13 red >/dev/null
	begin of-1
	arrive "3 9" n=5,from=10.77.0.13 n=9,from=10.77.0.12
	changes "3 2 0"
	echo 10.77.0.14,red >"$work/of.txt"
	equal "$(pacer sets s0 replace of "$work/of.txt" --json | jq .in_shadow)" false "replaced"
	arrive "3" n=5,from=10.77.0.14
	changes "3 2 0"
}

# A pacer that is not native has its shadow in the same mode, and stays in it.
in_skb_mode()
{
	limit ten 10
	limit three 3
	load ten --mode skb
	begin three
	equal "$(status .attach_mode)" skb "the mode with a shadow"
	arrive "10" n=12
	changes "5 7 0"
	pacer shadow s0 --stop >/dev/null
	equal "$(status .attach_mode)" skb "the mode without"
	arrive "0" n=1
}

stopped()
{
	three
	load ten
	begin three
	arrive "6" n=6
	equal "$(pacer shadow s0 --stop --json | jq -rc '"\(.shadow) \(.last.changes.deny)"')" "false 3" \
		"what it had counted"
	equal "$(pins '*')" 0 "pins"
	arrive "4" n=9
	refused 1 's0: no shadow runs beside its policy' pacer shadow s0 --stop
	refused 1 's0: no shadow runs beside its policy' pacer shadow s0 --promote
}

# What else is done to a pacer with a shadow.
beside_other_verbs()
{
	local first

	three
	load ten
	begin three
	pacer set s0 udp.packets=12 >/dev/null
	arrive "12" n=15
	changes "6 9 0"
	apply twenty --confirm-within 100s
	refused 1 'waits to be confirmed' pacer shadow s0 --promote
	pacer confirm s0 >/dev/null
	arrive "8" n=9
	changes "7 17 0"
	first=$(status .program_id)
	pacer upgrade s0 >/dev/null
	[ "$(status .program_id)" != "$first" ] || fail "it was not upgraded"
	equal "$(pins '*')" 1 "pins after an upgrade"
	arrive "20" n=25,from=10.77.0.12
	changes "15 34 0"
	pacer rotate s0 >/dev/null
	pacer save s0 "$work/state" >/dev/null
	equal "$(pacer clean --dry-run --json | jq -c '[.found[] | select(.kind | test("shadow"))] | length')" 0 \
		"left behind, while it runs"
	arrive "3" n=3,from=10.77.0.13
	changes "18 34 0"
	pacer shadow s0 --promote >/dev/null
	load ten --replace
	begin three
	load ten --replace
	equal "$(pins '*') $(status .shadow)" "0 null" "pins, shadow after a load"
	begin three
	pacer unload s0 >/dev/null
	equal "$(pins '*')" 0 "pins after unload"
	load ten --restore "$work/state"
	begin three
	pacer save s0 "$work/state" --and-unload >/dev/null
	equal "$(pins '*')" 0 "pins after save --and-unload"
}

# One begun on trial would lack what the policy before has, and comes back: it is not begun. One that is there
# already has what is done by hand meanwhile, as the policy before has it.
beside_trials()
{
	local refusal='s0: a policy waits to be confirmed: .xdp-pacer confirm. it, or let it roll back, first'

	three
	sed -i '1i bans: 64' "$work/ten.yaml" "$work/three.yaml"
	load ten
	pacer ban s0 add 10.77.0.12 >/dev/null
	apply twenty --confirm-within 1h # it keeps no table of bans
	refused 1 "$refusal" pacer shadow s0 -c "$work/three.yaml"
	equal "$(pins '*') $(status .shadow)" "0 null" "pins, shadow on trial" || return
	lapse
	begin three
	sed 's/packets: 10/packets: 12/' "$work/ten.yaml" >"$work/twelve.yaml"
	apply twelve --confirm-within 1h
	pacer ban s0 add 10.77.0.13 >/dev/null
	pacer allow s0 add 10.77.0.14 >/dev/null
	refused 1 "$refusal" pacer shadow s0 --promote
	lapse
	arrive "10 0 0 11" n=11 n=1,from=10.77.0.12 n=1,from=10.77.0.13 n=11,from=10.77.0.14
	changes "4 7 0"
	pacer shadow s0 --promote >/dev/null
	arrive "0 0 0 4" n=1 n=1,from=10.77.0.12 n=1,from=10.77.0.13 n=4,from=10.77.0.14
}

# A shadow's pool sends nothing anywhere, and counts what it would send.
no_redirect()
{
	three
	policy pool <<-END
	rules:
	  - name: udp
	    match: {proto: udp, dport: 9000}
	    limits: [{key: src, packets: 3, window: 60s}]
	    over: pool out
	pools: [{name: out, targets: [s0], each: 4, cooldown: 60s}]
	END
	load ten
	begin pool
	arrive "10" n=15
	changes "8 7 0"
	pacer shadow s0 --promote >/dev/null
	equal "$(stats '.rules[] | select(.name == "udp") | "\(.events.redirected) \(.events.pool_spent)"')" \
		"4 8" "redirected, pool spent"
}

wrong_uses()
{
	three
	refused 2 'wants one interface' pacer shadow
	refused 1 's0: has no pacer' pacer shadow s0 -c "$work/ten.yaml"
	load ten
	refused 2 'one of -c POLICY, --promote and --stop' pacer shadow s0 -c "$work/ten.yaml" --stop
	refused 2 'nosuch.yaml' pacer shadow s0 -c "$work/nosuch.yaml"
	echo "rules: [{name: udp}]" >"$work/bad.yaml"
	refused 2 'bad.yaml:1' pacer shadow s0 -c "$work/bad.yaml"
	echo "{sets: [{name: feed, file: nosuch.txt}], rules: [{name: udp, match: {src: '@feed'}, verdict: drop}]}" >"$work/bad.yaml"
	refused 2 'nosuch.txt: No such file' pacer shadow s0 -c "$work/bad.yaml"
	echo "{memory: 64Gi, rules: [{name: udp, limits: [{key: src, gap: 1s}]}]}" >"$work/bad.yaml"
	! is_small shadow || refused 2 'bad.yaml: memory: 64.0 GiB of state is more' pacer shadow s0 -c "$work/bad.yaml"
	cat >"$work/fleet.yaml" <<-END
	fleet: {store: ["http://127.0.0.1:2379"], name: edge}
	rules: [{name: udp, limits: [{key: src, packets: 10, window: 60s, fleet: yes}]}]
	END
	refused 1 's0: a shadow has no share of a fleet.s limits' pacer shadow s0 -c "$work/fleet.yaml"
	begin three
	refused 1 's0: a shadow runs already: .*--promote.* or --stop first' pacer shadow s0 -c "$work/ten.yaml"
	arrive "10" n=15
	equal "$(status .shadow.changes.deny)" 7 "after what was refused"
	pacer shadow s0 --stop >/dev/null
	in_server ip link add t0 type veth peer name t1
	in_server ip link set t0 up
	pacer unload s0 >/dev/null
	pacer load s0 t0 --shared -c "$work/ten.yaml" >/dev/null
	refused 1 's0: its state is shared with t0' pacer shadow s0 -c "$work/three.yaml"
	pacer unload t0 >/dev/null
	in_server ip link del t0
	pacer unload s0 >/dev/null
	load ten
	pacer unload s0 >/dev/null
	load fleet
	refused 1 's0: a shadow has no share of a fleet.s limits' pacer shadow s0 -c "$work/three.yaml"
	pacer unload s0 >/dev/null
	load ten
	# Where pins cannot be.
	mkdir -p "$work/plain/xdp-pacer"
	LIBXDP_BPFFS=$work/plain refused 1 's0: .*/xdp-pacer is no BPF file system' \
		pacer shadow s0 -c "$work/three.yaml"
	rmdir "$work/plain/xdp-pacer"
	mount -t bpf -o ro bpf "$work/plain"
	LIBXDP_BPFFS=$work/plain refused 1 's0: .* cannot be made, which its shadow is kept by: Read-only file system: .mount -o remount,rw' \
		pacer shadow s0 -c "$work/three.yaml"
	umount "$work/plain"
	arrive "10" n=15,from=10.77.0.14
	equal "$(status .shadow)" null "after one that could not be pinned"
}

# Without its pin the kernel ends it: the verdicts of the policy in force stand, and it is told.
pin_removed()
{
	three
	load ten
	begin three
	rm "/sys/fs/bpf/xdp-pacer/shadow-of-"*"-by-$(status .program_id)"
	arrive "10" n=15
	refused 1 's0: its shadow was lost.*shadow s0 --stop' pacer shadow s0
	pacer status s0 | grep -q 'shadow .*was lost' || fail "status does not say so"
	pacer shadow s0 --stop >/dev/null
	arrive "10" n=15,from=10.77.0.12
}

# The interface goes, and the pin stays until somebody cleans up.
interface_gone()
{
	local index program holder

	three
	in_server ip link add t0 type veth peer name t1
	in_server ip link set t0 up
	index=$(in_server ip -j link show t0 | jq '.[0].ifindex')
	pacer load t0 -c "$work/ten.yaml" >/dev/null
	pacer shadow t0 -c "$work/three.yaml" >/dev/null
	program=$(pacer status t0 --json | jq .program_id)
	background "$SERVER" python3 -c 'import ctypes, signal, sys
assert ctypes.CDLL("libbpf.so.1").bpf_prog_get_fd_by_id(int(sys.argv[1])) >= 0
print("has it", flush=True)
signal.pause()' "$program" >"$work/holder"
	holder=$pid
	until_true 20 grep -q "has it" "$work/holder" || fail "the program cannot be held" || return
	in_server ip link del t0
	refused 1 "/shadow-of-$index-by-$program stays: a process has its program open, or .*: do it again\$" pacer clean || return
	kill "$holder"
	until_true 20 gone "$program" || fail "its program is there yet" || return
	find /sys/fs/bpf/xdp-pacer -name "shadow-of-$index-by-*" | grep -q . || fail "there is no pin"
	pacer clean --dry-run | grep -q "a shadow that no interface has: .*/shadow-of-$index-by-" ||
		fail "$(pacer clean --dry-run)"
	pacer clean >/dev/null
	! find /sys/fs/bpf/xdp-pacer -name "shadow-of-$index-by-*" | grep . || fail "it was not removed"
}

# gone PROGRAM: nobody has it. Who looks through all programs of the machine, as other tests do, has each for a moment.
gone()
{
	! bpftool prog show id "$1" >/dev/null 2>&1
}

# A network namespace that no process is in, and that has no name, is found by its mount, or by who has it open.
elsewhere()
{
	local how at enter program said

	three
	for how in mounted open; do
		: >"$work/n s"
		at="$work/n s"
		unshare --net="$at" true
		[ "$how" = mounted ] || { exec 8<"$at" && umount --lazy "$at" && at=/proc/self/fd/8; }
		enter=(nsenter --net="$at")
		"${enter[@]}" ip link add t0 type veth peer name t1
		"${enter[@]}" ip link set t0 up
		"${enter[@]}" "$BUILD/xdp-pacer" load t0 -c "$work/ten.yaml" --direct >/dev/null
		"${enter[@]}" "$BUILD/xdp-pacer" shadow t0 -c "$work/three.yaml" >/dev/null
		pacer clean >/dev/null 8<&-
		"${enter[@]}" "$BUILD/xdp-pacer" shadow t0 >/dev/null || fail "$how: its shadow went" || return
		program=$("${enter[@]}" "$BUILD/xdp-pacer" status t0 --json | jq .program_id)
		"${enter[@]}" ip link del t0
		until_true 20 gone "$program" || fail "$how: its program is there yet" || return
		said=$(pacer clean 8<&-)
		grep -q "removed a shadow that no interface has: " <<<"$said" || fail "$how: it stayed: $said" || return
		[ "$how" = open ] || umount "$at"
	done
}

# killed_at SYSCALL COUNT COMMAND...: killed there; what is in force limits as it did, by 10 a source.
killed_at()
{
	local code=0

	in_server "$cut" "$1" "$2" 0 0 "$BUILD/xdp-pacer" shadow s0 "${@:3}" >/dev/null || code=$?
	[ "$code" -eq 100 ] || [ "$code" -eq 0 ] || fail "$*: exit code $code" || exit 1
	[ "$code" -eq 0 ] || kills=$((kills + 1))
	fresh=$((fresh + 1))
	arrive "10" "n=12,from=10.78.0.$fresh" || fail "$*: see above" || exit 1
	equal "$(stats '.rules[].matched')" $((12 * fresh)) "packets that were counted" || exit 1
	[ "$code" -eq 100 ]
}

# Begun and ended: at system calls all along both.
killed()
{
	local n kills=0 fresh=0

	three
	load ten
	for ((n = 0; n < 6000; n += 199)); do
		killed_at flock "$n" -c "$work/three.yaml" || break
		[ "$(status .shadow)" = null ] || pacer shadow s0 --stop >/dev/null
		pacer clean >/dev/null
		equal "$(pins '*')" 0 "pins after $n calls of a beginning" || exit 1
	done
	[ "$n" -lt 6000 ] || fail "a beginning has no end"
	for ((n = 0; n < 2000; n += 107)); do
		[ "$(status .shadow)" != null ] || begin three
		killed_at flock "$n" --stop || break
		pacer clean >/dev/null
	done
	[ "$n" -lt 2000 ] || fail "an end has no end"
	pacer clean >/dev/null
	equal "$(pins '*')" 0 "pins in the end" || exit 1
	echo "$kills kills"
	[ "$kills" -ge 6 ] || fail "only $kills kills"
}

# Packets flow all the while: each is judged once in force, and no window passes more than its limit.
under_load()
{
	local rounds

	limit wide 1000 1s
	limit narrow 20 1s
	load wide
	traffic_on 9000 1000 10.77.0.11=300 10.77.0.12=300
	for ((rounds = 0; rounds < 3; rounds++)); do
		begin narrow
		pacer shadow s0 --stop >/dev/null
	done
	begin wide
	pacer shadow s0 --promote >/dev/null
	traffic_off
	equal "$arrived" "$sent" "frames that arrived all the while, of those sent"
}

# Of two commands by hand side by side the one or the other is last, in force and in the shadow.
side_by_side()
{
	local i banned

	policy banning <<-END
	bans: 64
	rules: []
	END
	load banning
	begin banning
	for i in {1..8}; do
		pacer ban s0 add "10.77.0.$i" >/dev/null
		background "$SERVER" "$BUILD/xdp-pacer" ban s0 del "10.77.0.$i" >/dev/null
		pacer ban s0 add "10.77.0.$i" --for 2h >/dev/null
		wait "$pid" || fail "ban del"
	done
	banned=$(status '[.bans.keys[].key] | sort | join(" ")')
	pacer shadow s0 --promote >/dev/null
	equal "$(status '[.bans.keys[].key] | sort | join(" ")')" "$banned" "bans once it is promoted"
}

net_up
check shadow-stricter stricter
check shadow-many-keys-and-bans many_keys_and_bans
check shadow-looser looser
check shadow-begins-with-a-copy begins_with_a_copy
check shadow-begins-with-what-passes-meanwhile begins_with_what_passes_meanwhile
check shadow-by-a-value-no-longer by_a_value_no_longer
check shadow-promoted promoted
check shadow-counters-go-on counters_go_on
check shadow-what-it-has-counted what_it_has_counted
check shadow-sets-by-hand sets_by_hand
check shadow-set-with-values set_with_values
check shadow-side-by-side side_by_side
check shadow-in-skb-mode in_skb_mode
check shadow-stopped stopped
check shadow-beside-other-verbs beside_other_verbs
check shadow-beside-trials beside_trials
check shadow-no-redirect no_redirect
check shadow-wrong-uses wrong_uses
check shadow-pin-removed pin_removed
check shadow-interface-gone interface_gone
check shadow-elsewhere elsewhere
check shadow-killed killed
check shadow-under-load under_load
finish
