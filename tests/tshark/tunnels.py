# SPDX-License-Identifier: GPL-2.0-only
"""Frames with each tunnel, and what tshark sees inside of them, one level deep."""
import itertools
import struct
import subprocess

import made

FIELDS = ("frame.number", "frame.protocols", "ip.src", "ip.dst", "ip.proto", "ip.ttl", "ip.dsfield.dscp",
          "ip.frag_offset", "ip.flags.mf", "ip.id", "ip.hdr_len", "ipv6.src", "ipv6.dst", "ipv6.nxt",
          "ipv6.hlim", "ipv6.tclass.dscp", "ipv6.fraghdr.nxt", "ipv6.fraghdr.offset", "ipv6.fraghdr.more",
          "ipv6.fraghdr.ident", "ipv6.hopopts.nxt", "tcp.srcport", "tcp.dstport", "tcp.flags", "udp.srcport",
          "udp.dstport")
FRAGMENTS = {(False, False): "none", (False, True): "first", (True, False): "later", (True, True): "later"}
PORTS = {6: "tcp", 17: "udp"}
OUTER4, OUTER6, INNER4, INNER6 = (bytes.fromhex(h) for h in (
    "c0000201c6336402", "20010db800000000000000000000000120010db8000000000000000000000002",
    "0a0000010a000002", "fd000000000000000000000000000001fd000000000000000000000000000002"))
ETHERNET = bytes.fromhex("020000000003020000000004")


def ip(family, proto, body, addresses, ttl=64, dscp=0, frag=0, options=b""):
    """frag: as in IPv4's header. options: of IPv4, or whether there is a hop-by-hop header."""
    if family == 4:
        size = 20 + len(options)
        return struct.pack(">BBHHHBBH", 0x40 | size // 4, dscp << 2, size + len(body), 0xbeef, frag, ttl, proto,
                           0) + addresses + options + body
    first = proto
    if frag:
        body = struct.pack(">BBHI", first, 0, (frag & 0x1fff) << 3 | frag >> 13 & 1, 0xdeadbeef) + body
        first = 44
    if options:
        body = struct.pack(">BBBBI", first, 0, 1, 4, 0) + body
        first = 0
    return struct.pack(">IHBB", 0x60000000 | dscp << 22, len(body), first, ttl) + addresses + body


def udp(dport, body):
    return struct.pack(">HHHH", 50000, dport, 8 + len(body), 0) + body


def ethernet(kind, body, tags=0):
    return ETHERNET + b"\x81\0\0\x64" * tags + struct.pack(">H", kind) + body


def gtpu(flags, more):
    return lambda kind, body: (17, udp(2152, struct.pack(">BBHI", flags, 255, len(more + body), 1) + more + body))


def gre(flags, more=""):
    return lambda kind, body: (47, struct.pack(">HH", flags, kind) + bytes.fromhex(more) + body)


def geneve(options):
    return lambda kind, body: (17, udp(6081, struct.pack(">BBHI", len(options) // 4, 0, 0x6558, 0x100) + options +
                                       ethernet(kind, body)))


TUNNELS = {
    "gre": gre(0),
    "gre-checksum": gre(0x8000, "00000000"),
    "gre-key": gre(0x2000, "00000007"),
    "gre-sequence": gre(0x1000, "00000001"),
    "gre-all": gre(0xb000, "000000000000000700000001"),
    "gre-routes": gre(0x6000, "0000000000000007" + "080000040a0a0a0a" * 2 + "00000000"),
    "gre-frame": lambda kind, body: (47, bytes.fromhex("2000655800000100") + ethernet(kind, body)),
    "ipip": lambda kind, body: (4 if kind == 0x0800 else 41, body),
    "vxlan": lambda kind, body: (17, udp(4789, bytes.fromhex("0800000000000100") + ethernet(kind, body))),
    "vxlan-tags": lambda kind, body: (17, udp(4789, bytes.fromhex("0800000000000100") + ethernet(kind, body, 2))),
    "geneve": geneve(b""),
    "geneve-options": geneve(bytes.fromhex("01020301aabbccdd")),
    "geneve-most": geneve((bytes.fromhex("0102031e") + bytes(120)) * 2 + bytes.fromhex("01020300")),
    "gtpu": gtpu(0x30, b""),
    "gtpu-sequence": gtpu(0x32, bytes.fromhex("00010000")),
    "gtpu-extension": gtpu(0x34, bytes.fromhex("00000085" "01100900")),
    "gtpu-extensions": gtpu(0x36, bytes.fromhex("000100c0" "01000085" "01100900")),
}


# What Linux takes, and tshark does not or takes otherwise.
LINUX_ALONE = {
    "gre-tags": lambda kind, body: (47, struct.pack(">6H", 0, 0x88a8, 0, 0x8100, 0, kind) + body),
    "gre-wccp": lambda kind, body: (47, bytes.fromhex("0000883e" "01020304") + body),
    "gtpu-length": lambda kind, body: (17, udp(2152, bytes.fromhex("30ffffff00000001") + body)),
    "gtpu-prime": lambda kind, body: (17, udp(2152, bytes.fromhex("20ff000000000001") + body)),
    "gtpu-no-extension": lambda kind, body: (17, udp(2152, bytes.fromhex("34ff000000000001" "00000000" "01000000") +
                                                     body)),
}


def inner_packets(family):
    """Each (of a tunnel's) inner packet once, of this family."""
    addresses = INNER4 if family == 4 else INNER6
    for proto, options, frag in itertools.product((6, 17, 1 if family == 4 else 58), (b"", b"\1" * 8),
                                                  (0, 0x2000, 0x0010)):
        yield ip(family, proto, made.payload(proto), addresses, 33 + proto, 46 if options else 10, frag, options)
    yield ip(family, 4 if family == 4 else 41, ip(family, 17, made.payload(17), addresses), addresses)  # a tunnel
    yield ip(family, 47, struct.pack(">HH", 0, 0x0800) + ip(4, 17, made.payload(17), INNER4), addresses)


def carried(tunnels):
    """(name, frame) of each packet in each of these tunnels."""
    for name, tunnel in tunnels.items():
        for outer, inner in itertools.product((4, 6), (4, 6)):
            kind = 0x0800 if inner == 4 else 0x86dd
            for i, packet in enumerate(inner_packets(inner)):
                proto, body = tunnel(kind, packet)
                # In turns: options before it, a VLAN around it, the first fragment of a larger one.
                options = b"\1" * 8 if i % 5 == 1 else b""
                frag = 0x2000 if i % 5 == 2 else 0
                body += bytes(-len(body) % 8) if frag else b""  # as first fragments are
                data = ip(outer, proto, body, OUTER4 if outer == 4 else OUTER6, 99, 1, frag, options)
                yield f"{name} {inner} in {outer}, {i}", made.ethernet(0x0800 if outer == 4 else 0x86dd, data,
                                                                      (0x8100,) * (i % 3))


def frames():
    """(name, frame) of all that carries a packet."""
    yield from carried(TUNNELS)
    for family, proto in ((4, 0x21), (6, 0x57)):
        for i, packet in enumerate(inner_packets(family)):
            body = struct.pack(">BBHHH", 0x11, 0, 7, 2 + len(packet), proto) + packet
            yield f"pppoe {family}, {i}", made.ethernet(0x8864, body, (0x8100,) * (i % 3))


def wrong_behind():
    """(name, frame) of inner packets that a router forwards by their addresses, and no host takes."""
    extension = bytes((17, 200, 1, 4, 0, 0, 0, 0)) + made.payload(17)
    packets = [("udp", ip(4, 17, b"\0\1", INNER4)), ("tcp", ip(4, 6, b"", INNER4)), ("sctp", ip(4, 132, b"\0" * 3, INNER4)),
               ("udp6", ip(6, 17, b"\0" * 3, INNER6)), ("options", ip(6, 60, extension, INNER6)),
               ("header", ip(6, 0, extension[:7], INNER6))]
    for name, tunnel in TUNNELS.items():
        for what, packet in packets:
            proto, body = tunnel(0x86dd if packet[0] >> 4 == 6 else 0x0800, packet)
            yield f"{name} {what}", made.ethernet(0x0800, ip(4, proto, body, OUTER4, 99))


def nothing():
    """(name, frame) of what has no inner packet, to both."""
    packet = ip(4, 17, made.payload(17), INNER4)
    for name, proto, body in (
            ("gre-arp", 47, bytes.fromhex("00000806") + bytes(28)),
            ("later", 47, None),
            ("gtpu-echo", 17, udp(2152, bytes.fromhex("3201000400000000") + bytes(4))),
            ("port", 17, udp(4788, bytes.fromhex("0800000000000100") + ethernet(0x0800, packet))),
            ("tcp", 6, made.payload(6)), ("udp", 17, made.payload(17))):
        yield name, made.ethernet(0x0800, ip(4, proto, gre(0)(0x0800, packet)[1] if body is None else body, OUTER4,
                                             frag=0x10 if body is None else 0))
    yield "pppoe-lcp", made.ethernet(0x8864, bytes.fromhex("1100000700 06 c021 09010004".replace(" ", "")) + bytes(30))


def layers(f):
    """The index of the inner IP layer among tshark's, or None; and those before it."""
    names = [n for n in f["frame.protocols"][0].split(":") if n != "ethertype"]
    at = [i for i, n in enumerate(names) if n in ("ip", "ipv6")]
    wanted = 0 if "pppoes" in names else 1
    return (names, at[wanted]) if len(at) > wanted else (names, None)


def wanted(f):
    """What the parser should say of the inner packet."""
    names, at = layers(f)
    if at is None:
        return {"result": "not-ip"}
    v6 = names[at] == "ipv6"

    def of(name, layer):
        """The value of this field in the inner packet: as many of that layer are before it."""
        return f[name][names[:at].count(layer)]

    def last(name):
        """Of a header that the packet in the inner one, if there is one, never has."""
        return f[name][-1]

    if v6:
        extensions = [n for n in names[at + 1:at + 3] if n.startswith("ipv6.")]
        proto = int(of("ipv6.nxt", "ipv6"))
        want = {"family": "6", "src": of("ipv6.src", "ipv6"), "dst": of("ipv6.dst", "ipv6"),
                "ttl": of("ipv6.hlim", "ipv6"), "dscp": of("ipv6.tclass.dscp", "ipv6"),
                "options": str(int("ipv6.hopopts" in extensions))}
        later = more = False
        if proto == 0:
            proto = int(last("ipv6.hopopts.nxt"))
        if proto == 44:
            later, more = int(last("ipv6.fraghdr.offset"), 0) > 0, last("ipv6.fraghdr.more") in ("1", "True")
            proto = 0 if later else int(last("ipv6.fraghdr.nxt"))
        ident = str(int(last("ipv6.fraghdr.ident"), 0)) if later else "-"
    else:
        proto = int(of("ip.proto", "ip"))
        later = int(of("ip.frag_offset", "ip")) > 0
        more = of("ip.flags.mf", "ip") in ("1", "True")
        ident = str(int(of("ip.id", "ip"), 0)) if later else "-"
        want = {"family": "4", "src": of("ip.src", "ip"), "dst": of("ip.dst", "ip"), "ttl": of("ip.ttl", "ip"),
                "dscp": of("ip.dsfield.dscp", "ip"), "options": str(int(int(of("ip.hdr_len", "ip")) > 20))}
    want.update(result="parsed", proto=str(proto), fragment=FRAGMENTS[later, more], datagram=ident, sport="-",
                dport="-")
    if not later and proto in PORTS:
        name = PORTS[proto]
        want.update(sport=of(name + ".srcport", name), dport=of(name + ".dstport", name))
    if not later and proto == 6:
        want["flags"] = str(int(of("tcp.flags", "tcp"), 0) & 0xff)
    return want


def compared(fields, path, options, env):
    """(how many were parsed, what differs) of the capture, which is written to this path."""
    all_frames = [*frames(), *nothing()]
    made.write(path, made.ETHERNET, (data for _, data in all_frames))
    ours = subprocess.run([fields, "--inner", path], capture_output=True, text=True, check=True).stdout.splitlines()
    command = ["tshark", "-n", "-r", path, "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=,"]
    command += [a for o in options for a in ("-o", o)] + [a for n in FIELDS for a in ("-e", n)]
    theirs = subprocess.run(command, capture_output=True, text=True, env=env, check=True).stdout.splitlines()
    found, parsed = [], 0
    if not len(ours) == len(theirs) == len(all_frames):
        return 0, [f"{len(ours)}, {len(theirs)} of {len(all_frames)} frames"]
    for (name, _), our, their in zip(all_frames, ours, theirs):
        have = dict(zip(("frame", "result", "vlan", "family", "src", "dst", "proto", "sport", "dport", "datagram",
                         "fragment", "ttl", "dscp", "options", "flags"), our.split("\t")))
        want = wanted(dict(zip(FIELDS, (v.split(",") for v in their.split("\t")))))
        parsed += have["result"] == "parsed"
        found += [f"{name}: {k}: parser {have[k]}, tshark {v}" for k, v in want.items() if have[k] != v]
    return parsed, found
