#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Limits of new flows: real connections and real UDP flows, of which only the beginnings count.
#
#   client                                  server
#   10.77.0.11-18, fd77::11-18  c0 ---- s0  the pacer; its verbs, and a server of TCP
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

# new NAME LIMITS [MORE]: the policy of one rule with these limits, for UDP to port 9000.
new()
{
	policy "$1" <<-END
	rules:
	  - name: r
	    match: {proto: udp, dport: 9000}
	    limits: [$2]
	flows: 1024
	${3:-}
	END
}

# flows SOURCE PACKETS PORT...: so many packets each in turn, of real sockets; prints how many of each arrive.
flows()
{
	: >"$work/got"
	in_server timeout "$hang_s" python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.bind(("::", 9000)); print("ready", flush=True)
got = {}
while True:
    data, of = s.recvfrom(64)
    if data == b"end": break
    got[of[1]] = got.get(of[1], 0) + 1
print(*(got.get(int(p), 0) for p in sys.argv[1:]))' "${@:3}" >"$work/got" &
	remember $! "$work/pids"
	local server=$!
	until_true 5 grep -q ready "$work/got"
	in_client python3 -c '
import socket, sys
src, n, ports = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
dst = "10.77.0.1" if "." in src else "fd77::1"
of = [socket.socket(socket.AF_INET if "." in src else socket.AF_INET6, socket.SOCK_DGRAM) for _ in ports]
for s, p in zip(of, ports): s.bind((src, int(p)))
for _ in range(n):
    for s in of: s.sendto(b"x", (dst, 9000))' "$@"
	timeout "$hang_s" "$shots" "$CLIENT" "$SERVER" n=1,raw=88b6 >/dev/null # all before it has arrived
	in_server python3 -c '
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.sendto(b"end", ("::1", 9000))'
	wait "$server"
	tail -n 1 "$work/got"
}

# Three flows a source; their packets go on, and a fourth never begins.
udp()
{
	new udp "{key: src/32,128, packets: 3, window: 60s, of: new}"
	load udp
	equal "$(flows 10.77.0.11 20 5001 5002 5003 5004 5005)" "20 20 20 0 0" "packets of each flow" || return
	equal "$(flows 10.77.0.11 5 5004 5001)" "0 5" "those again" || return
	equal "$(flows 10.77.0.12 5 5001 5002)" "5 5" "another source's" || return
	equal "$(flows fd77::11 5 5001 5002 5003 5004)" "5 5 5 0" "IPv6" || return
	equal "$(stats '.rules[0] | "\(.admitted) \(.denied.window)"')" "90 50" "admitted, denied"
}

# A policy with another value, and one with another limit beside, know the flows that there are.
change()
{
	new one "{key: src/32,128, packets: 3, window: 60s, of: new}"
	new four "{key: src/32,128, packets: 4, window: 60s, of: new}"
	new two "{key: src/32,128, packets: 4, window: 60s, of: new}, {key: dst, packets: 1000, window: 1s}"
	new other "{key: src/32,128, packets: 4, window: 60s, of: new}" "flow_idle: 1ms"
	load one
	equal "$(flows 10.77.0.11 2 5001 5002 5003 5004)" "2 2 2 0" "before" || return
	apply four
	apply two
	equal "$(flows 10.77.0.11 2 5001 5004 5005)" "2 2 0" "after" || return
	apply other # all are silent for that long, and the limit is used up
	equal "$(flows 10.77.0.11 1 5001 5004)" "0 0" "each packet is a flow's first" || return
	pacer set s0 flow_idle=1h >/dev/null
	equal "$(flows 10.77.0.11 1 5001 5004)" "1 1" "and they are known again" || return
	pacer set s0 flows=512 >/dev/null
	equal "$(flows 10.77.0.11 1 5001)" "0" "another table knows none" || return
	pacer set s0 flows=1024 >/dev/null # where the first was
	equal "$(flows 10.77.0.11 1 5001)" "0" "nor does what comes in its place"
}

# Connections: the SYNs count, and what follows them does not.
tcp()
{
	policy tcp <<-END
	rules:
	  - name: syns
	    match: {proto: tcp, dport: 9001}
	    limits:
	      - {key: src, packets: 3, window: 60s, of: new}
	      - {key: dst, packets: 5, window: 60s, of: new}
	END
	load tcp
	equal "$(status '.rules | length')" 1 "rules" || return
	background "$SERVER" python3 -c '
import socket, threading
s = socket.create_server(("10.77.0.1", 9001), backlog=64); print("ready", flush=True)
def echo(c):
    while data := c.recv(4096): c.sendall(data)
while True: threading.Thread(target=echo, args=(s.accept()[0],), daemon=True).start()' >"$work/tcp"
	until_true 5 grep -q ready "$work/tcp"
	# Of each source so many connections, with data back and forth. Without a SYN's answer none comes about.
	in_client timeout "$hang_s" python3 -c '
import socket, sys
for src in sys.argv[1:]:
    made = []
    for _ in range(4):
        c = socket.socket()
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_SYNCNT, 1)
        c.settimeout(.3)
        c.bind((src, 0))
        try: c.connect(("10.77.0.1", 9001)); made.append(c)
        except TimeoutError: c.close()
    for c in made:
        c.settimeout(60)
        for _ in range(20):
            c.sendall(b"x" * 1000)
            left = 1000
            while left: left -= len(c.recv(left))
    print(len(made), end=" ")
' 10.77.0.11 10.77.0.12 10.77.0.13 >"$work/made"
	equal "$(cat "$work/made")" "3 2 0 " "connections of three sources" || return
	equal "$(stats '.rules[0].denied.window >= 7')" true "SYNs are denied" || return
	equal "$(stats '.rules[0].admitted > 100')" true "the rest is not" || return
	equal "$(pacer why s0 --json tcp 10.77.0.11:1 '>' 10.77.0.1:9001 flags syn |
		jq -c '[.verdict, .opens_flow, .limits[0].counted]')" '["deny",true,true]' "why: a SYN" || return
	equal "$(pacer why s0 --json tcp 10.77.0.11:1 '>' 10.77.0.1:9001 flags ack |
		jq -c '[.verdict, .opens_flow, .limits[0].counted]')" '["admit",false,false]' "why: its ACK"
}

# What check, why and show say.
told()
{
	new told "{key: src/32,128, packets: 2, window: 60s, of: new}"
	pacer check -c "$work/told.yaml" >"$work/check"
	grep -q "never more than 2 new flows in any 1m" "$work/check" &&
		grep -q "up to 1024 are known, each until it is silent for 2m" "$work/check" &&
		grep -q "^ *65536  the table of flows$" "$work/check" || fail "check: $(cat "$work/check")" || return
	equal "$(pacer check --json -c "$work/told.yaml" | jq -c '[.limits[0].of, .flows.entries, .flows.idle_ns]')" \
		'["new",1024,120000000000]' "check --json" || return
	load told
	equal "$(flows 10.77.0.11 2 5001 5002)" "2 2" "two flows" || return
	pacer why s0 "udp 10.77.0.11:5001 > 10.77.0.1:9000" >"$work/why"
	grep -q "passes (admit" "$work/why" && grep -q "^  flow      it opens none" "$work/why" &&
		grep -q "2 new flows in 1m *10.77.0.11  not asked" "$work/why" || fail "why: $(cat "$work/why")" || return
	pacer why s0 "udp 10.77.0.11:5003 > 10.77.0.1:9000" >"$work/why"
	grep -q "is dropped (window" "$work/why" && grep -q "^  flow      it opens one" "$work/why" &&
		grep -q "2 of 2 packets" "$work/why" || fail "why: $(cat "$work/why")" || return
	equal "$(flows 10.77.0.11 1 5003 5001)" "0 1" "and that is so" || return
	new other "{key: src/32,128, packets: 2, window: 60s}" "flow_idle: 1m"
	pacer show s0 --diff "$work/other.yaml" >"$work/diff" || true
	grep -q "r.limits\[0\].of" "$work/diff" || fail "show --diff: $(cat "$work/diff")" || return
	refused 2 "flows: 0 is no limit: it must be more" pacer set s0 flows=0
}

net_up
in_server ip link set lo up # for the end of what is to be counted
# A packet that waited for its neighbour's address would come behind the mark.
mac=$(in_server ip -j link show s0 | jq -r '.[0].address')
in_client ip neigh add 10.77.0.1 lladdr "$mac" dev c0
in_client ip neigh add fd77::1 lladdr "$mac" dev c0
check new-udp udp
check new-change change
check new-tcp tcp
check new-told told
finish
