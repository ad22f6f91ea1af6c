#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""For tests/fleet/hosts, inside a host's namespace: sends frames of one source through c0, and writes
when those of them that the pacer on e0 let through came out there.

  pace.py PPS SECONDS FILE [SOURCE]     FILE: a line each: the clock's ns (SO_TIMESTAMPNS)
"""
import select
import socket
import struct
import sys
import time

pps, seconds, out = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
source = sys.argv[4] if len(sys.argv) > 4 else "192.0.2.7"
MARK = b"xdp-pacer fleet test"
SO_TIMESTAMPNS = 35


payload = struct.pack("!HHHH", 1000, 2000, 8 + len(MARK), 0) + MARK
kind = 0x86dd if ":" in source else 0x0800
if kind == 0x0800:
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 0, 0, 64, 17, 0,
                     socket.inet_aton(source), socket.inet_aton("198.51.100.1"))
else:
    ip = struct.pack("!IHBB16s16s", 6 << 28, len(payload), 17, 64,
                     socket.inet_pton(socket.AF_INET6, source), socket.inet_pton(socket.AF_INET6, "2001:db8::1"))
to = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
to.bind(("c0", 0))
at = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(kind))
at.bind(("e0", kind))
frame = at.getsockname()[4] + to.getsockname()[4] + struct.pack("!H", kind) + ip + payload
at.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
at.setblocking(False)
end, due = time.monotonic() + seconds, time.monotonic()
with open(out, "w") as f:
    while time.monotonic() < end:
        while due <= time.monotonic():
            to.send(frame)
            due += 1 / pps
        select.select([at], [], [], max(0, due - time.monotonic()))
        while True:
            try:
                data, told, _, place = at.recvmsg(2048, 64)
            except BlockingIOError:
                break
            if place[2] != socket.PACKET_OUTGOING and ip in data:
                s, ns = struct.unpack("qq", told[0][2][:16])
                f.write(f"{s * 10**9 + ns}\n")
                f.flush()
