# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2317 # sourced, after lib.sh
# A policy whose denials ban, and who is banned by it.

# banning NAME [ENTRIES]: a window of 60 s, whose denials ban.
banning()
{
	policy "$1" <<-END
	bans: 64
	rules:
	  - name: udp
	    match: {proto: udp, dport: 9000}
	    limits: [{key: src, packets: 10, window: 60s${2:+, entries: $2}}]
	    ban: 60s
	  - {name: free, match: {dport: 9001}, limits: [{key: all, packets: 10, window: 60s}]}
	END
}

# banned KEYS: those and no others.
banned()
{
	equal "$(status '[.bans.keys[] | .key] | sort | join(" ")')" "$1" "bans"
}
