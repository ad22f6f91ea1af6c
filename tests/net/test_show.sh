#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The policy in force as it can be loaded again: with its comments, and with what set and allow have
# changed; what differs in a file; and a change that is written into the file, too.
#
#   client (silent)   c0 ------- s0   xdp-pacer show, set --save
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

# differs FILE: its differences as "field in_force file", a line each.
differs()
{
	pacer show s0 --diff "$1" --json |
		jq -r '.differences[] | "\(.field) \(.in_force) \(.file)"'
}

# What is shown is what was loaded, byte for byte, and loads as it is.
shown_as_loaded()
{
	load office
	equal "$(pacer show s0)" "$(cat "$work/office.yaml")" "what is shown"
	equal "$(pacer show s0 --json | jq -c '[.interface, .serial, .confirm_within_ns, .allowed_for_a_time]')" \
		'["s0",1,0,0]' "the JSON's other fields"
	equal "$(pacer show s0 --json | jq -r .policy)" "$(cat "$work/office.yaml")" "the JSON's policy"
	pacer show s0 >"$work/again.yaml"
	pacer unload s0 >/dev/null
	load again
	equal "$(differs "$work/office.yaml")" "" "differences"
	equal "$(pacer show s0 --diff "$work/office.yaml")" \
		"s0: the policy in force is that of $work/office.yaml" "what is said of none"
}

# With what set and allow have changed; comments stay.
shown_as_changed()
{
	load office
	pacer set s0 dns.packets=300 mode=monitor >/dev/null
	pacer allow s0 add 192.0.2.0/24 >/dev/null
	pacer allow s0 add fd79::/32 >/dev/null
	pacer allow s0 del 10.79.0.1 >/dev/null
	pacer allow s0 add 203.0.113.9 --for 1h >/dev/null
	pacer show s0 >"$work/now.yaml" 2>"$work/err"
	grep -q '^xdp-pacer: s0: 1 prefix allowed for a time is left out: see `xdp-pacer allow s0 list`$' \
		"$work/err" || fail "stderr: $(cat "$work/err")"
	equal "$(pacer show s0 --json 2>&1 | jq .allowed_for_a_time)" 1 "prefixes for a time"
	pacer allow s0 add 203.0.113.10 --for 1h >/dev/null
	pacer show s0 2>&1 >/dev/null | grep -q ': s0: 2 prefixes allowed for a time are left out: ' || fail "two: $(pacer show s0 2>&1)" || return
	grep -q '# the name server' "$work/now.yaml" || fail "a comment is gone"
	grep -qx 'allow: \[10.79.1.0/24, 192.0.2.0/24, "fd79::/32"\] # and the office' "$work/now.yaml" ||
		fail "allow: $(grep -A 3 allow "$work/now.yaml")"
	pacer unload s0 >/dev/null
	load now
	equal "$(pacer allow s0 list --json | jq -r 'map(.prefix) | join(" ")')" \
		"10.79.1.0/24 192.0.2.0/24 fd79::/32" "allow-list"
	equal "$(status '[.mode, .rules[]] | tojson')" '["monitor","dns","rest"]' "status"
	equal "$(differs "$work/office.yaml" | sort)" "$(
		sort <<-END
			mode monitor enforce
			allow 192.0.2.0/24 null
			allow fd79::/32 null
			allow null 10.79.0.1
			dns.limits[0].packets 300 100
		END
	)" "differences"
}

# With what is allowed by hand it may be longer than what loads, by a byte: that is said.
shown_too_long()
{
	local bytes

	for bytes in 65521 65522; do
		policy long <<-END
		# x
		allow: [10.79.0.1]
		rules: []
		END
		sed -i "2s/x/$(head -c $((bytes - $(stat -c %s "$work/long.yaml") + 1)) /dev/zero | tr '\0' x)/" "$work/long.yaml"
		equal "$(stat -c %s "$work/long.yaml")" "$bytes" "bytes of the file" || return
		load long
		pacer allow s0 add 192.0.2.0/24 >/dev/null
		pacer show s0 >"$work/now.yaml" 2>"$work/err"
		equal "$(stat -c %s "$work/now.yaml")" $((bytes + 14)) "bytes shown" || return
		[ "$bytes" != 65521 ] || equal "$(cat "$work/err")" "" "said of one that loads" || return
		pacer unload s0 >/dev/null
	done
	equal "$(cat "$work/err")" "xdp-pacer: s0: the policy has 65536 bytes with what is allowed by hand: one of more than 65535 cannot be loaded" "said"
}

# On trial the new policy is shown, and what it would give way to is not.
shown_on_trial()
{
	load office
	pacer set s0 dns.packets=300 --confirm-within 60s >/dev/null
	equal "$(differs "$work/office.yaml")" "dns.limits[0].packets 300 100" "differences"
	equal "$(pacer show s0 --json | jq -c '[.serial, .confirm_within_ns > 0]')" "[2,true]" "on trial"
}

# As text, in columns; what means the same is no difference, and a rule that is not there is one line.
diff_as_text()
{
	load office
	sed 's/window: 1s/window: 1000ms/; s/packets: 100/packets: 120/; s/name: rest/name: others/' \
		"$work/office.yaml" >"$work/other.yaml"
	equal "$(pacer show s0 --diff "$work/other.yaml")" "$(
		cat <<-END
			FIELD                  IN FORCE  IN THE FILE
			dns.limits[0].packets  100       120
			rules                  rest      -
			rules                  -         others
		END
	)" "the table"
	pacer show s0 --diff "$work/other.yaml" >/dev/null || fail "to differ is no failure, and it ended with $?" || return
	refused 2 'bad.yaml:1: .*unknown field' pacer show s0 --diff "$work/bad.yaml"
	refused 2 'no/such.yaml: No such file' pacer show s0 --diff no/such.yaml
}

# The program's own policy, when it was attached without the tool.
shown_of_the_object()
{
	in_server ip link set dev s0 xdp obj "$BUILD/pacer.bpf.o" sec xdp.frags
	pacer show s0 >"$work/builtin.yaml"
	cmp "$work/builtin.yaml" "$here/../../user/plan/builtin.yaml" || fail "another text"
}

# --- set --save -----------------------------------------------------------------------------------

saved()
{
	local inode

	load office
	cp "$work/office.yaml" "$work/kept.yaml"
	chmod 640 "$work/kept.yaml"
	ln -sf kept.yaml "$work/link.yaml"
	inode=$(stat -c %i "$work/kept.yaml")
	equal "$(pacer set s0 dns.packets=300 dns.over=pass --save "$work/link.yaml" | tail -n 1)" \
		"written into $work/link.yaml" "what is said"
	equal "$(diff "$work/office.yaml" "$work/kept.yaml" | grep '^[<>]')" "$(
		cat <<-END
			>     over: pass
			<       - {key: src, packets: 100, window: 1s}
			>       - {key: src, packets: 300, window: 1s}
		END
	)" "what has changed in the file"
	equal "$(differs "$work/kept.yaml")" "" "differences"
	equal "$(stat -c '%a %F' "$work/kept.yaml") $(readlink "$work/link.yaml")" \
		"640 regular file kept.yaml" "mode, link"
	[ "$(stat -c %i "$work/kept.yaml")" != "$inode" ] || fail "it was written in place"
	equal "$(pacer set s0 dns.packets=200 --save "$work/kept.yaml" --json | jq -r .saved)" \
		"$work/kept.yaml" "the JSON"
	equal "$(find "$work" -name 'kept.yaml.*' | wc -l)" 0 "files that are left beside it"
}

# as_it_was SERIAL: neither the pacer nor the file has changed.
as_it_was()
{
	equal "$(status .serial)" "$1" serial || return
	cmp "$work/kept.yaml" "$work/office.yaml" || fail "the file has changed" || return
	equal "$(find "$work" -name 'kept.yaml.*' | wc -l)" 0 "files that are left beside it"
}

saved_or_nothing()
{
	load office
	cp "$work/office.yaml" "$work/kept.yaml"
	refused 2 'kept.yaml: nosuch.packets: no such rule: there are dns, rest' \
		pacer set s0 nosuch.packets=5 --save "$work/kept.yaml"
	refused 2 'kept.yaml: nosuch.packets: no such rule' \
		pacer set s0 nosuch.packets=5 dns.packets=6 --save "$work/kept.yaml"
	refused 2 'kept.yaml:.*packets: 0 is no limit' pacer set s0 dns.packets=0 --save "$work/kept.yaml"
	refused 2 'no/such.yaml: No such file' pacer set s0 dns.packets=5 --save "$work/no/such.yaml"
	refused 2 'what is on trial is not saved' \
		pacer set s0 dns.packets=5 --save "$work/kept.yaml" --confirm-within 5s
	refused 2 "wants the policy's file" pacer set s0 dns.packets=5 --save -
	mkfifo "$work/pipe"
	cat "$work/office.yaml" >"$work/pipe" &
	refused 1 'pipe: cannot be written: it is no file: nothing is changed' \
		pacer set s0 dns.packets=5 --save "$work/pipe"
	as_it_was 1 || return
	# The file would take the change, and the policy in force has no such rule.
	sed 's/name: rest/name: late/' "$work/office.yaml" >"$work/late.yaml"
	cp "$work/late.yaml" "$work/late-before.yaml"
	refused 2 'set: late.bytes: no such rule' pacer set s0 late.bytes=5K --save "$work/late.yaml"
	cmp "$work/late.yaml" "$work/late-before.yaml" || fail "the file has changed alone"
}

full_disk()
{
	local left

	load office
	mkdir -p "$work/disk"
	mount -t tmpfs -o size=16k none "$work/disk"
	cp "$work/office.yaml" "$work/disk/kept.yaml"
	head -c 20000 /dev/zero >"$work/disk/filler" 2>/dev/null || true
	refused 1 'kept.yaml: cannot be written: No space left on device: nothing is changed' \
		pacer set s0 dns.packets=300 --save "$work/disk/kept.yaml" || true
	left=$(ls "$work/disk")
	cp "$work/disk/kept.yaml" "$work/kept.yaml"
	umount "$work/disk"
	tail -n 1 "$work/err" | grep -q "No space left" || fail "$(cat "$work/err")"
	equal "$(tr '\n' ' ' <<<"$left")" "filler kept.yaml " "what is on the disk"
	as_it_was 1
}

beside() { find "$work" -name 'kept.yaml.*' | grep -q .; }

# A change that is to be saved stands still for a while, and is not in force. $pid
hold()
{
	load office
	cp "$work/office.yaml" "$work/kept.yaml"
	background "$SERVER" "$(tool cut)" membarrier 0 0 3000 "$BUILD/xdp-pacer" set s0 dns.packets=300 \
		--save "$work/kept.yaml" >"$work/first" 2>&1
	until_true 10 beside
}

# Two at once: the file has the changes of both.
saved_by_two()
{
	local held code=0

	hold
	held=$pid
	pacer set s0 rest.bytes=7K --save "$work/kept.yaml" >/dev/null
	wait "$held" || code=$?
	equal "$code" 100 "exit code: $(cat "$work/first")" || return
	equal "$(differs "$work/kept.yaml")" "" "differences"
}

# other_writes CODE [SIGNAL]: what somebody else writes meanwhile stays, and that is said, also where a signal comes.
other_writes()
{
	local held code=0

	hold
	held=$pid
	echo "# by hand" >>"$work/kept.yaml"
	[ -z "${2:-}" ] || kill "-$2" "$(pgrep -P "$held" -x xdp-pacer)"
	wait "$held" || code=$?
	equal "$code" "$1" "exit code" || return
	grep -q "kept.yaml: the change is in force, but was not written: the file was changed meanwhile: say it again" \
		"$work/first" || fail "$(cat "$work/first")" || return
	equal "$(tail -n 1 "$work/kept.yaml")" "# by hand" "the file's end" || return
	equal "$(find "$work" -name 'kept.yaml.*' | wc -l)" 0 "files that are left beside it"
}

# A signal that comes as the file beside is written, or as the change is made, ends it with both done.
saved_and_ended()
{
	local n code

	for n in 0 20; do
		load office
		cp "$work/office.yaml" "$work/kept.yaml"
		code=0
		in_server "$(tool cut)" fsync "$n" 0 -15 "$BUILD/xdp-pacer" set s0 dns.packets=300 \
			--save "$work/kept.yaml" >"$work/first" 2>&1 || code=$?
		equal "$code" 100 "exit code: $(cat "$work/first")" || return
		equal "$(differs "$work/kept.yaml")" "" "differences" || return
		grep -q 'packets: 300' "$work/kept.yaml" || fail "it is not written" || return
		equal "$(find "$work" -name 'kept.yaml.*' | wc -l)" 0 "files that are left beside it" || return
		pacer unload s0 >/dev/null
	done
}

# While it waits for another process nothing lies beside the file, and a signal ends it at once.
ended_while_it_waits()
{
	local code=0

	load office
	cp "$work/office.yaml" "$work/kept.yaml"
	exec 9>>/run/xdp-pacer.lock
	flock 9
	background "$SERVER" "$BUILD/xdp-pacer" set s0 dns.packets=300 --save "$work/kept.yaml" \
		>"$work/out" 2>"$work/err" 9>&-
	until_true 10 waits_for_lock || return
	kill -TERM "$pid"
	until_true 10 is_over "$pid" || fail "the signal does not end it" || return
	wait "$pid" || code=$?
	exec 9>&-
	equal "$code" 143 "exit code: $(cat "$work/err")" || return
	as_it_was 1
}

# Whoever may read the file can hold it: who does is said.
held_by_another()
{
	local code=0

	load office
	cp "$work/office.yaml" "$work/kept.yaml"
	exec 9<"$work/kept.yaml"
	flock 9
	background "$SERVER" "$BUILD/xdp-pacer" set s0 dns.packets=300 --save "$work/kept.yaml" \
		>"$work/out" 2>"$work/err" 9<&-
	until_true 20 grep -q "/kept.yaml: waiting for another process, which has it locked$" "$work/err" || return
	exec 9<&-
	wait "$pid" || code=$?
	equal "$code" 0 "exit code: $(cat "$work/err")" || return
	equal "$(differs "$work/kept.yaml")" "" "differences"
}

# What cannot be replaced, as a file that a container is given: the change is in force alone, and that is said.
not_replaced()
{
	load office
	cp "$work/office.yaml" "$work/kept.yaml"
	mount --bind "$work/kept.yaml" "$work/kept.yaml"
	refused 1 'kept.yaml: the change is in force, but was not written: Device or resource busy' \
		pacer set s0 dns.packets=300 --save "$work/kept.yaml"
	umount "$work/kept.yaml"
	equal "$(status .serial)" 2 serial || return
	pacer show s0 | grep -q 'packets: 300' || fail "not in force" || return
	cmp "$work/kept.yaml" "$work/office.yaml" || fail "the file has changed" || return
	equal "$(find "$work" -name 'kept.yaml.*' | wc -l)" 0 "files that are left beside it"
}

net_up
policy office <<-'END'
	# What the office may do.
	allow: # by hand, as agreed
	  - 10.79.0.1 # the gateway
	  - 10.79.1.0/24 # and the office

	# In this order:
	rules:
	  - name: dns # the name server
	    match: {proto: udp, dport: 53}
	    limits:
	      - {key: src, packets: 100, window: 1s}
	  - name: rest
	    limits: [{key: src, bytes: 10M, window: 1s}] # all else
END
echo "rule: []" >"$work/bad.yaml"
check show-as-loaded shown_as_loaded
check show-as-changed shown_as_changed
check show-too-long shown_too_long
check show-on-trial shown_on_trial
check show-diff diff_as_text
check show-of-the-object shown_of_the_object
check set-saved saved
check set-saved-or-nothing saved_or_nothing
check set-saved-full-disk full_disk
check set-saved-not-replaced not_replaced
check set-saved-by-two saved_by_two
check set-saved-held-by-another held_by_another
check set-saved-written-meanwhile other_writes 1
check set-saved-written-and-ended other_writes 143 TERM
check set-saved-and-ended saved_and_ended
check set-saved-ended-while-it-waits ended_while_it_waits
finish
