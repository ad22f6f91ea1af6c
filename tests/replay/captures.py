#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Captures, policies and the rows that replay has to print, made from recipes alone.

captures.py DIR [--unjudged] writes NAME.pcap, POLICY.yaml, and NAME.POLICY.rows for the policies that the oracle
below knows: half a minute's work, which --unjudged leaves out. The oracle shares no code with the pacer: a deque of
what a key was admitted, in slots as common/window.h describes them, with the exact window held against it at every
admission.
"""
import collections
import csv
import fractions
import functools
import io
import ipaddress
import itertools
import math
import random
import struct
import sys

MS = 1000000
S = 1000 * MS
START = 1700000000 * S

POLICIES = {
    "gap": """
  - name: gap
    limits: [{key: src, gap: 1ms}]
""",
    "flow": """
  - name: flow
    limits: [{key: flow, packets: 3, window: 1s, slots: 10}]
""",
    "tiers": """
  - name: tiers
    limits:
      - {key: "src/24,56", gap: 10ms}
      - {key: dst, packets: 5, window: 2s, slots: 7}
""",
    "rules": """
  - name: bytes
    match: {proto: udp}
    limits: [{key: src+dport, bytes: 2000, window: 1s, slots: 16}]
  - name: rest
    limits: [{key: all, packets: 20, window: 5s, slots: 10}]
allow: [192.0.2.99, "2001:db8:99::/48", 198.18.0.0/15, 198.19.0.0/16, "::/127"]
""",
    "rate": """
  - name: udp
    match: {proto: udp}
    limits:
      - {key: src, rate: 200/s, burst: 4}
      - {key: dst, rate: 1Mbit/s, burst: 3000}
  - name: rest
    limits: [{key: all, rate: 3000/m, burst: 10}]
""",
    "parts": """
  - name: parts
    limits:
      - {key: src/24,56+dst, packets: 6, window: 3s, slots: 8}
      - {key: "dst/16,48+dport", bytes: 9000, window: 1s, slots: 10}
      - {key: src+vlan, gap: 300us}
      - {key: dst/20,44+src/24,48+proto, rate: 40/s, burst: 4}
      - {key: src+sport, packets: 9, window: 2s, slots: 6}
      - {key: "src/0,32+dst/8,0+vlan+proto", packets: 50, window: 2s, slots: 9}
""",
    "sets": """
  - name: in
    match: {src: "@drop", dst: "!@few"}
    limits: [{key: src, packets: 3, window: 1s, slots: 10}]
  - name: to
    match: {dst: ["@few", "2001:db8:f::2"], proto: udp}
    limits: [{key: dst, gap: 5ms}]
  - name: out
    match: {src: "!@drop"}
    limits: [{key: flow, packets: 4, window: 2s, slots: 7}]
  - name: rest
    limits: [{key: all, packets: 20, window: 5s, slots: 10}]
sets:
  - {name: drop, file: FOLDER/drop.set}
  - {name: few, of: [203.0.113.1, 203.0.113.8/31]}
  - {name: ok, file: FOLDER/ok.set}
allow: ["@ok", 192.0.2.98]
""",
    "geo": """
  - name: xy
    match: {src: ["@geo=XY", "@geo=ZZ"], dst: "!@geo=DE"}
    limits: [{key: src, packets: 3, window: 1s, slots: 10}]
  - name: known
    match: {src: "@geo"}
    limits: [{key: dst, gap: 5ms}]
  - name: rest
    match: {src: "!@geo=ZZ"}
    limits: [{key: flow, packets: 4, window: 2s, slots: 7}]
sets: [{name: geo, file: FOLDER/geo.csv, value: 3}]
allow: "@geo=OK"
""",
    # The oracle is not told of ladders: it has each length's limit by itself.
    "ladder": """
  - name: udp
    match: {proto: udp}
    limits:
      - {key: "src/[32,28,24,20,16],[128,64,48]", packets: 3, window: 1s, slots: 10, wider: [x2, x3, x4, x9]}
  - name: rest
    limits:
      - {key: "dst/[32,24],[64,56]+proto", rate: 40/s, burst: 3, wider: x2}
      - {key: "src/[32,16],56", bytes: 3000, window: 2s, slots: 7, wider: x3}
      - {key: all, packets: 60, window: 1s, slots: 3}
""",
    "new": """
  - name: tcp
    match: {proto: tcp}
    limits:
      - {key: src, packets: 3, window: 1s, slots: 10, of: new}
      - {key: "dst/24,64", packets: 40, window: 1s, slots: 10}
  - name: udp
    match: {proto: udp}
    limits: [{key: "src/24,56", packets: 4, window: 2s, slots: 7, of: new}]
  - name: rest
    limits:
      - {key: src+dst, gap: 700ms, of: new}
      - {key: all, rate: 40/s, burst: 20}
      - {key: all, bytes: 20k, window: 1s, slots: 10, of: new}
flows: 4096
flow_idle: 2s
""",
    # Below: user space and the kernel are compared under these, the oracle does not know them.
    "both": """
  - name: wide
    limits:
      - {key: "dst/24,64", gap: 5ms, rows: 1}
      - {key: "dst/24,64", packets: 10, window: 1s, slots: 30}
mode: monitor
clock: coarse
unparsed: drop
""",
    "crowd": """
  - name: tagged
    match: {vlan: 100}
    limits: [{key: flow, packets: 2, window: 1s, slots: 3, entries: 2}]
    over: pass
  - name: low
    match: {dport: 1-1023}
    limits:
      - {key: src+dport, gap: 200us, entries: 2}
      - {key: "src/28,48", bytes: 5G, window: 60s, slots: 58, entries: 3}
      - {key: src, packets: 4, window: 3s, slots: 26, entries: 3}
  - name: four
    match: {src: 0.0.0.0/0}
    limits:
      - {key: all, gap: 1us}
      - {key: "src/1,1", bytes: 20k, window: 1s, slots: 1}
  - name: rest
    limits: [{key: flow, gap: 20ms}, {key: "dst/16,32", packets: 7, window: 1h, slots: 11}]
""",
}

# For check.py; under the throttle and the ban the kernel is compared, too.
POLICIES["verdict"] = """
  - {name: icmp, match: {proto: icmp}, verdict: drop}
  - {name: tcp, match: {proto: tcp}, verdict: pass}
  - name: udp
    match: {proto: udp}
    limits: [{key: src/32,64, packets: 3, window: 1s, slots: 10}]
else: drop
"""

POLICIES["more"] = """
  - {name: arp, match: {ether_type: arp}, limits: [{key: all, rate: 10/s, burst: 10}]}
  - {name: syn, match: {flags: syn / syn,ack}, limits: [{key: "src/32,64", packets: 3, window: 1s}]}
  - {name: echo, match: {icmp_type: echo-request}, verdict: drop}
  - {name: discovery, match: {icmpv6_type: 133-137, ttl: 255}, verdict: pass}
  - {name: parts, match: {fragment: [first, later]}, verdict: drop}
  - {name: bytes, match: {payload: [0=0x1603, 2=0x8180/0x8180]}, limits: [{key: dst, packets: 9, window: 1s}]}
  - {name: options, match: {options: yes}, limits: [{key: all, packets: 20, window: 1s}]}
  - {name: short, match: {payload_len: 0-3, len: 0-64}, verdict: drop}
  - {name: marked, match: {dscp: 1-63}, verdict: pass}
  - {name: card, match: {ether_src: "00", ttl: 0-60}, limits: [{key: src, gap: 1ms}]}
"""

MORE = {
    "flow2": """
  - name: flow
    limits: [{key: flow, packets: 5, window: 1s, slots: 10}]
""",
    "none": """
  - name: none
    match: {dport: 9}
    limits: [{key: src, gap: 1ms}]
""",
    "one": """
  - name: one
    limits: [{key: src, packets: 40, window: 1s, slots: 10}]
""",
    "full": """
  - name: full
    limits:
      - {key: src, gap: 1ms, entries: 70}
      - {key: src, packets: 10, window: 10s, slots: 5, entries: 9}
""",
    "ban": """
  - name: ban
    limits: [{key: src, gap: 100us}, {key: src, packets: 20, window: 1s, slots: 10}]
    ban: 700ms
bans: 64
""",
    "grow": """
  - name: grow
    limits: [{key: src, gap: 100us}, {key: src, packets: 20, window: 1s, slots: 10}]
    ban: {for: 30ms, grow: x3, up_to: 700ms, forget: 300ms}
bans: 64
""",
    # Every reason to deny, of several keys each: the row names that of the limit that denied.
    "several": """
  - name: udp
    match: {proto: udp}
    limits:
      - {key: all, uses: 60, cooldown: 2s, max_cooldown: 2200ms, threshold: 5}
      - {key: "src/24,56", gap: 100ns}
      - {key: dst, packets: 40, window: 1s, slots: 10}
      - {key: flow, packets: 9, window: 1s, slots: 10}
    ban: 200ms
  - name: rest
    limits:
      - {key: src, packets: 30, window: 2s, slots: 10}
      - {key: all, uses: 10, cooldown: 1s, max_cooldown: 1100ms, threshold: 2}
bans: 64
""",
    "value": """
  - name: land
    limits:
      - {key: "value(geo, src)", packets: 9, window: 1s, slots: 10}
      - {key: "value(geo, src)+dst/24,64", gap: 2ms}
sets: [{name: geo, file: FOLDER/geo.csv, value: 3}]
""",
    "pair": """
  - name: pair
    limits: [{key: src, packets: 3, window: 1s, slots: 10, entries: 2}]
""",
    "rates": """
  - name: tcp
    match: {proto: tcp}
    limits: [{key: src, rate: 7/s, burst: 2}, {key: all, rate: 1000/h, burst: 5}]
  - name: rest
    limits: [{key: flow, rate: 3/s, burst: 3}, {key: "src/24,56", rate: 11/s, burst: 3, entries: 3}]
""",
    "throttle": """
  - name: throttle
    limits: [{key: all, uses: 300, cooldown: 2s, max_cooldown: 2200ms, threshold: 20}]
""",
}

# More rules than a word has bits: of ports, by which packets without options are told apart; and beside sets.
MORE["hundred"] = "".join(f"""
  - name: p{i}
    match: {{{'proto: udp' if i % 3 else 'dst: 203.0.113.0/25'}, dport: [{(i + 80) % 99}, {i * 655 + 655}-{i * 655 + 1309}]}}
    limits: [{{key: src, {('packets: 3, window: 1s, slots: 10', 'rate: 20/s, burst: 3')[i % 2]}}}]
""" for i in range(99)) + """
  - {name: rest, limits: [{key: src, gap: 1ms}]}
"""
MORE["hundred_sets"] = MORE["hundred"].replace("dst: 203.0.113.0/25", 'src: "@drop"') + """
sets: [{name: drop, file: FOLDER/drop.set}, {name: ok, file: FOLDER/ok.set}]
allow: "@ok"
"""

ALLOWED = {
    "rules": {ipaddress.ip_network(n) for n in ("192.0.2.99/32", "2001:db8:99::/48", "198.18.0.0/15", "::/127")},
    "sets": {ipaddress.ip_network(n) for n in ("192.0.2.98/32", "198.51.100.0/31", "2001:db8:2::/127")},
    "geo": lambda address: country(address) == "OK",
}
PROTO = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmpv6", 132: "sctp"}

# ---- sets: prefixes by Python's own reading ----


def prefixes(rng, n):
    """Some that hold the captures' addresses, among many that are near or nowhere."""
    out = {ipaddress.ip_network(p) for p in ("192.0.2.0/31", "192.0.2.96/29", "198.51.100.2", "198.19.0.0/16",
                                             "2001:db8:1::/125", "2001:db8:99::1", "2001:db8:99::8000/113")}
    for base, least, most in (("192.0.2.0", 26, 32), ("198.51.100.128", 25, 32), ("10.0.0.0", 9, 32),
                              ("2001:db8:2::", 49, 128), ("2001:db8:1:8000::", 50, 128), ("fd00::", 9, 128)):
        address = ipaddress.ip_address(base)
        for _ in range(n):
            length = rng.randrange(least, most + 1)
            bits = rng.getrandbits(address.max_prefixlen - least)
            out.add(ipaddress.ip_network((int(address) | bits, length), strict=False)
                    if address.version == 4 else
                    ipaddress.IPv6Network((int(address) | bits, length), strict=False))
    return out


@functools.lru_cache(maxsize=None)
def in_set(address, name):
    return any(ipaddress.ip_network((address, n), strict=False) in SETS[name]
               for n in range(address.max_prefixlen + 1))


SETS = {
    "drop": prefixes(random.Random(16), 4000),
    "few": {ipaddress.ip_network(n) for n in ("203.0.113.1", "203.0.113.8/31")},
}


GEO = {n: random.Random(str(n)).choice(("XY", "ZZ", "OK", "DE", "other", "")) for n in
       sorted(prefixes(random.Random(18), 900) | {ipaddress.ip_network(n) for n in (
           "192.0.2.0/24", "192.0.2.2", "198.51.100.0/24", "198.51.100.1", "203.0.113.0/31", "2001:db8:2::/64",
           "2001:db8:f::1")}, key=str)}


@functools.lru_cache(maxsize=None)
def country(address):
    """Of the longest prefix; "" stands for none of these."""
    for n in range(address.max_prefixlen, -1, -1):
        network = ipaddress.ip_network((address, n), strict=False)
        if network in GEO:
            return GEO[network] or "unnamed"
    return None


def matches_xy(f):
    return country(f.src) in ("XY", "ZZ") and country(f.dst) != "DE"


def matches_known(f):
    return country(f.src) is not None


def matches_in(f):
    return in_set(f.src, "drop") and not in_set(f.dst, "few")


def matches_to(f):
    two = f.dst == ipaddress.ip_address("2001:db8:f::2")
    return (two or in_set(f.dst, "few")) and (f.proto == 17 or f.any)


def matches_out(f):
    return not in_set(f.src, "drop")


# ---- frames: what they are is known from how they are made ----


class Frame:
    def __init__(self, data, **fields):
        self.data, self.wire, self.time = data, len(data), START
        self.reason = ""  # why no rule is asked
        self.frag = None  # of a later fragment: the identification
        self.src = self.dst = None
        self.any = False  # its protocol is not known for certain: no rule's excludes it
        self.part = False  # its ports lie beyond what is read
        self.flags = None  # of TCP, where they can be read
        self.__dict__.update(fields)

    def at(self, time):
        copy = Frame(self.data)
        copy.__dict__.update(self.__dict__)
        copy.time = time
        return copy


def vlan(tags):
    """Of the first tag that names one; 0: none does."""
    return next((vid & 0xfff for _, vid in tags if vid & 0xfff), 0)


def ether(kind, tags=()):
    head = bytes.fromhex("020000000001020000000002")
    for tag, vid in tags:
        head += struct.pack(">HH", tag, vid)
    return head + struct.pack(">H", kind)


def body_of(sport, dport, payload, flags):
    body = struct.pack(">HH", sport, dport) + b"\xa5" * (payload - 4)
    return body[:13] + bytes([flags]) + body[14:] if payload > 13 else body


def ip4(src, dst, proto=17, sport=1000, dport=53, payload=20, tags=(), options=0, frag=0, ident=7, flags=0xa5):
    body = body_of(sport, dport, payload, flags)
    head = struct.pack(">BBHHHBBH4s4s", 0x45 + options, 0, 20 + 4 * options + len(body), ident, frag, 64, proto,
                       0, ipaddress.ip_address(src).packed, ipaddress.ip_address(dst).packed)
    later = frag & 0x1fff
    ports = proto in (6, 17, 132) and not later
    l2 = ether(0x0800, tags)
    return Frame(l2 + head + b"\x01" * (4 * options) + body, src=ipaddress.ip_address(src),
                 dst=ipaddress.ip_address(dst), proto=proto, sport=sport if ports else 0,
                 dport=dport if ports else 0, frag=ident if later else None, vlan=vlan(tags), l2=len(l2), ip=20,
                 need=len(l2) + 20 + 4 * options + (4 if ports else 0), known=len(l2) + 20,
                 flags=flags if proto == 6 and not later and payload > 13 else None)


def ip6(src, dst, proto=17, sport=1000, dport=53, payload=20, tags=(), chain=(), frag=0, ident=7, flags=0xa5):
    body, kind, need, later = body_of(sport, dport, payload, flags), proto, 0, False
    parts = []
    for n, header in enumerate(chain):
        following = chain[n + 1] if n + 1 < len(chain) else proto
        if header == 44:
            parts.append(struct.pack(">BBHI", following, 0xff, frag, ident))
        elif header == 51:
            parts.append(struct.pack(">BB", following, 4) + bytes(22))
        else:
            parts.append(struct.pack(">BB", following, 1) + bytes(14))
    known = 0
    for header, part in zip(chain, parts):
        if not later:
            known = need + 8
            need += 8 if header == 44 else len(part)
        if header == 44 and frag & 0xfff8 and not later:
            later = True
    if later:
        proto = None  # the first fragment says it, and no other
    ports = proto in (6, 17, 132)
    total = b"".join(parts) + body
    head = struct.pack(">IHBB16s16s", 0x60000000, len(total), chain[0] if chain else kind, 64,
                       ipaddress.ip_address(src).packed, ipaddress.ip_address(dst).packed)
    l2 = ether(0x86dd, tags)
    frame = Frame(l2 + head + total, src=ipaddress.ip_address(src), dst=ipaddress.ip_address(dst), proto=proto,
                  sport=sport if ports else 0, dport=dport if ports else 0, frag=ident if later else None,
                  vlan=vlan(tags), l2=len(l2), ip=40, need=len(l2) + 40 + need + (4 if ports else 0),
                  known=len(l2) + 40 + known, flags=flags if proto == 6 and payload > 13 else None)
    frame.any = later
    return in_part(frame, len(chain) <= 8) if len(chain) > 8 and not later else frame


def in_part(frame, known):
    """The frame, read as far as its addresses, or as far as its protocol, if that is known."""
    frame.part = True
    if not known:
        frame.any, frame.proto = True, None
    return frame


def cut(frame, n, wire):
    """The first n bytes; of a frame that was as long before (wire) or never longer."""
    c = frame.at(frame.time)
    c.data = frame.data[:n]
    if wire:
        if n < frame.l2 + frame.ip:
            c.reason = "too_deep"
        elif n < frame.need:
            in_part(c, n >= frame.known)
        if n < frame.need + 10:
            c.flags = None
        return c
    c.wire = n
    if n < frame.l2 + frame.ip:
        c.reason = "truncated"
    elif n < frame.wire:
        c.reason = "bad_header"
    return c


# ---- files ----


def pcap(frames, nano=False, link=1, swap=False):
    e = ">" if swap else "<"
    out = bytearray(struct.pack(e + "IHHiIII", 0xa1b23c4d if nano else 0xa1b2c3d4, 2, 4, 0, 0, 262144, link))
    for f in frames:
        skip = 14 if link != 1 else 0
        out += struct.pack(e + "IIII", f.time // S, f.time % S // (1 if nano else 1000),
                           max(len(f.data) - skip, 0), f.wire - skip) + f.data[skip:]
    return bytes(out)


def block(kind, body):
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def pcapng(frames, nano=True):
    options = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0) if nano else b""
    out = block(0x0a0d0d0a, struct.pack("<IHHq", 0x1a2b3c4d, 1, 0, -1))
    out += block(1, struct.pack("<HHI", 1, 0, 262144) + options)
    for f in frames:
        t = f.time // (1 if nano else 1000)
        out += block(6, struct.pack("<IIIII", 0, t >> 32, t & 0xffffffff, len(f.data), f.wire) + f.data)
    return out


# ---- the oracle ----


def text(address, len4, len6):
    n = len4 if address.version == 4 else len6
    if n == address.max_prefixlen:
        return str(address)
    return str(ipaddress.ip_network((address, n), strict=False))


def part_of(f, part):
    name, _, lengths = part.partition("/")
    if name in ("src", "dst"):
        len4, len6 = map(int, lengths.split(",")) if lengths else (32, 64)
        return text(getattr(f, name), len4, len6)
    if name == "proto":
        return str(PROTO.get(f.proto, f.proto or ("?" if f.any or f.src.version == 6 else "0")))
    return f"vlan {f.vlan}" if f.vlan else "untagged"


def ports_of(f, parts):
    ports = [p for p in ("sport", "dport") if p in parts]
    if f.part:
        return " ".join("?" for _ in ports)
    if f.frag is None:
        return " ".join(str(getattr(f, p)) for p in ports)
    return f"fragment {f.frag if len(ports) == 2 else f.frag >> 16 if ports == ['sport'] else f.frag & 0xffff}"


def key_of(f, key):
    if key == "all":
        return "all"
    parts = "src/32,128+dst/32,128+proto+sport+dport".split("+") if key == "flow" else key.split("+")
    by = {p.partition("/")[0]: p for p in parts}
    words = [">".join(part_of(f, by[a]) for a in ("src", "dst") if a in by)]
    words += [part_of(f, "proto")] if "proto" in by else []
    words += [ports_of(f, by)] if "sport" in by or "dport" in by else []
    words += [part_of(f, "vlan")] if "vlan" in by else []
    return " ".join(w for w in words if w)


class Gap:
    reason = "gap"

    def __init__(self, key, gap):
        self.key, self.gap, self.last = key, gap, {}

    def fits(self, f):
        last = self.last.get(key_of(f, self.key))
        return last is None or max(f.time, last) - last >= self.gap

    def opens(self, f):
        return self.last[key_of(f, self.key)] + self.gap

    def add(self, f):
        k = key_of(f, self.key)
        self.last[k] = max(f.time, self.last.get(k, 0))


class Window:
    reason = "window"

    def __init__(self, key, limit, window, slots, cost):
        self.key, self.limit, self.window, self.cost = key, limit, window, cost
        self.slot, self.ring, self.keys = -(-window // slots), slots + 1, {}

    def state(self, f):
        """The key's slots at the frame's time: when the first began, [slot, cost] of each event."""
        head, number, events, exact = self.keys.get(key_of(f, self.key), (f.time, 0, collections.deque(), []))
        passed = max(f.time - head, 0) // self.slot
        if passed >= self.ring:
            return f.time, 0, collections.deque(), exact
        kept = collections.deque(e for e in events if e[0] > number + passed - self.ring)
        return head + passed * self.slot, number + passed, kept, exact

    def fits(self, f):
        return sum(c for _, c in self.state(f)[2]) + self.cost(f) <= self.limit

    def opens(self, f):
        """Slots are released when one begins: the first beginning at which the packet fits."""
        if self.cost(f) > self.limit:
            return None
        head = self.state(f)[0]
        return next(t for t in itertools.count(head, self.slot) if t > f.time and self.fits(f.at(t)))

    def add(self, f):
        head, number, events, exact = self.state(f)
        events.append((number, self.cost(f)))
        exact.append((f.time, self.cost(f)))
        held = sum(c for t, c in exact if f.time - self.window <= t <= f.time)
        assert held <= self.limit, "the oracle admits too much"
        self.keys[key_of(f, self.key)] = (head, number, events, exact)


class Rate:
    """Exact, as a bucket: of each key the level that it had, and when."""
    reason = "rate"

    def __init__(self, key, rate, burst, cost):
        self.key, self.rate, self.burst, self.cost = key, fractions.Fraction(rate, S), burst, cost
        self.level = collections.defaultdict(lambda: (0, 0))

    def after(self, f):
        level, last = self.level[key_of(f, self.key)]
        return max(0, level - (f.time - last) * self.rate) + self.cost(f)

    def fits(self, f):
        return self.after(f) <= self.burst

    def opens(self, f):
        if self.cost(f) > self.burst:
            return None
        return f.time + math.ceil((self.after(f) - self.burst) / self.rate)

    def add(self, f):
        self.level[key_of(f, self.key)] = (self.after(f), f.time)


def new(limit):
    """It counts what opens a flow."""
    limit.new = True
    return limit


class Flows:
    """Under each rule, when its flows were noted last: again after a sixteenth of their time."""

    def __init__(self, idle):
        self.idle, self.seen = idle, {}

    def opens(self, rule, f):
        if f.src is None or f.frag is not None or f.part or f.any:
            return True
        if f.proto == 6:
            return f.flags is None or f.flags & 0x12 == 0x02
        last = self.seen.get(self.name(rule, f))
        return last is None or f.time - last >= self.idle

    def name(self, rule, f):
        return rule, f.src, f.dst, f.sport, f.dport, f.proto, f.vlan

    def add(self, rule, f):
        name = self.name(rule, f)
        if f.frag is None and not f.part and not f.any:
            last = self.seen.get(name)
            if last is None or f.time - last >= self.idle // 16:
                self.seen[name] = f.time


def one(_):
    return 1


ORACLES = {
    "gap": lambda: [("gap", None, [Gap("src", MS)])],
    "flow": lambda: [("flow", None, [Window("flow", 3, S, 10, one)])],
    "tiers": lambda: [("tiers", None, [Gap("src/24,56", 10 * MS), Window("dst", 5, 2 * S, 7, one)])],
    "rules": lambda: [("bytes", 17, [Window("src+dport", 2000, S, 16, lambda f: f.wire)]),
                      ("rest", None, [Window("all", 20, 5 * S, 10, one)])],
    "parts": lambda: [("parts", None, [
        Window("src/24,56+dst", 6, 3 * S, 8, one), Window("dst/16,48+dport", 9000, S, 10, lambda f: f.wire),
        Gap("src+vlan", 300000), Rate("dst/20,44+src/24,48+proto", 40, 4, one),
        Window("src+sport", 9, 2 * S, 6, one), Window("src/0,32+dst/8,0+vlan+proto", 50, 2 * S, 9, one)])],
    "ladder": lambda: [
        ("udp", 17, [Window("src/32,128", 3, S, 10, one), Window("src/28,64", 6, S, 10, one),
                     Window("src/24,48", 9, S, 10, one), Window("src/20,48", 12, S, 10, one),
                     Window("src/16,48", 27, S, 10, one)]),
        ("rest", None, [Rate("dst/32,64+proto", 40, 3, one), Rate("dst/24,56+proto", 80, 6, one),
                        Window("src/32,56", 3000, 2 * S, 7, lambda f: f.wire),
                        Window("src/16,56", 9000, 2 * S, 7, lambda f: f.wire),
                        Window("all", 60, S, 3, one)])],
    "verdict": lambda: [("icmp", 1, "drop"), ("tcp", 6, "pass"), ("udp", 17, [Window("src", 3, S, 10, one)])],
    "new": lambda: [
        ("tcp", 6, [new(Window("src", 3, S, 10, one)), Window("dst/24,64", 40, S, 10, one)]),
        ("udp", 17, [new(Window("src/24,56", 4, 2 * S, 7, one))]),
        ("rest", None, [new(Gap("src+dst", 700 * MS)), Rate("all", 40, 20, one),
                        new(Window("all", 20000, S, 10, lambda f: f.wire))])],
    "rate": lambda: [("udp", 17, [Rate("src", 200, 4, one), Rate("dst", 125000, 3000, lambda f: f.wire)]),
                     ("rest", None, [Rate("all", 50, 10, one)])],
    "sets": lambda: [("in", matches_in, [Window("src", 3, S, 10, one)]),
                     ("to", matches_to, [Gap("dst", 5 * MS)]),
                     ("out", matches_out, [Window("flow", 4, 2 * S, 7, one)]),
                     ("rest", None, [Window("all", 20, 5 * S, 10, one)])],
    "geo": lambda: [("xy", matches_xy, [Window("src", 3, S, 10, one)]),
                    ("known", matches_known, [Gap("dst", 5 * MS)]),
                    ("rest", None, [Window("flow", 4, 2 * S, 7, one)])],
}


def falls_under(f, match):
    """A rule's match is a protocol, none, or a function."""
    return match(f) if callable(match) else match in (None, f.proto) or f.any


def open_ns(f, limits):
    """When the packet would pass if nothing else came: every limit has to admit it."""
    times = [limit.opens(f) for limit in limits if not limit.fits(f)]
    return "never" if None in times else str(max(times))


def judge(f, rules, allow, flows):
    """A row's rule, key, verdict, reason and open_ns."""
    if f.reason:
        return "", "", "pass", f.reason, ""
    if allow(f.src) if callable(allow) else any(f.src in n for n in allow if n.version == f.src.version):
        return "", "", "pass", "allowed", ""
    name, _, limits = next((r for r in rules if falls_under(f, r[1]) and not (f.any and r[2] == "pass")),
                           ("", None, None))
    if limits is None:
        return "", "", "deny", "verdict", "never"  # else: drop
    if limits in ("drop", "pass"):
        return (name, str(f.src)) + (("deny", "verdict", "never") if limits == "drop" else ("admit", "admit", ""))
    opens = flows.opens(name, f)
    asked = [limit for limit in limits if opens or not getattr(limit, "new", False)]
    for limit in asked:
        if not limit.fits(f):
            return name, key_of(f, limit.key), "deny", limit.reason, open_ns(f, asked)
    for limit in asked:
        limit.add(f)
    flows.add(name, f)
    return name, key_of(f, limits[0].key), "admit", "admit", ""


def rows(frames, policy):
    """A time that runs backwards counts as the latest seen."""
    rules, flows, now = ORACLES[policy](), Flows(2 * S), 0
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow("frame,time_ns,rule,key,verdict,reason,open_ns".split(","))
    for n, f in enumerate(frames, 1):
        now = max(now, f.time)
        table.writerow([n, f.time, *judge(f.at(now), rules, ALLOWED.get(policy, ()), flows)])
    return out.getvalue()


# ---- the captures ----


def bursts(rng, unit=1):
    """Bursts and pauses of every magnitude, of a few sources and flows of both families."""
    out, time = [], START
    for i in range(1500):
        time += rng.choice((0, 1, 100, 999999, 1000000, 1000001, 30 * MS, 200 * MS, 3 * S)[:9 - i // 100 % 2]) // unit * unit
        n, proto = rng.randrange(4), rng.choice((6, 17, 17, 1, 58, 132, 50))
        ports = {"sport": rng.choice((1000, 2000)), "dport": rng.choice((53, 80)), "proto": proto,
                 "payload": rng.choice((8, 20, 700, 1400))}
        if i // 100 % 2:  # one flow of each family, and most of its packets close together
            ports.update(sport=1000, dport=53, proto=17)
            out.append(rng.choice((ip4("192.0.2.1", "203.0.113.1", **ports),
                                   ip6("2001:db8:1::1", "2001:db8:f::1", **ports))).at(time))
        elif rng.random() < .6:
            src = rng.choice(("192.0.2.%d", "198.51.100.%d", "198.19.7.%d")) % (n + 96 * (n == 3))
            out.append(ip4(src, f"203.0.113.{rng.randrange(3)}", options=rng.randrange(3), **ports).at(time))
        else:
            out.append(ip6(f"2001:db8:{rng.choice((1, 2, 99))}::{n + 1}", f"2001:db8:f::{rng.randrange(1, 3)}",
                           **ports).at(time))
    return out


def shapes():
    """Fragments, tags, chains, and what is not IP."""
    out = []
    for tags in ((), ((0x8100, 100),), ((0x88a8, 100), (0x8100, 7)), ((0x8100, 5), (0x8100, 100))):
        for frag in (0, 0x2000, 0x2001, 0x0003, 0x4000):
            out.append(ip4("192.0.2.1", "203.0.113.9", tags=tags, frag=frag, ident=4711 + len(out) % 3))
        for chain in ((), (0,), (43,), (60,), (51,), (44,), (0, 60, 43), (0, 43, 60, 44, 51),
                      (0,) + (60,) * 7, (0,) + (60,) * 8, (51,) * 12):
            for frag in ((0, 1, 8, 0xfff9) if 44 in chain else (0,)):
                out.append(ip6("2001:db8::1", "2001:db8::9", tags=tags, chain=chain, frag=frag, ident=0x12345678))
    out.append(Frame(ether(0x0806) + bytes(28), reason="not_ip"))
    out.append(Frame(ether(0x0800, ((0x8100, 1),) * 17) + bytes(40), reason="too_deep"))
    out.append(Frame(ether(0x0800) + b"\x46" + bytes(19), reason="bad_header"))
    return [f.at(START + i * 40 * MS) for i, f in enumerate(out)]


def truncations(wire):
    out = []
    for f in (ip4("192.0.2.1", "203.0.113.9", options=2), ip4("192.0.2.2", "203.0.113.9", tags=((0x88a8, 100), (0x8100, 7))),
              ip4("192.0.2.3", "203.0.113.9", frag=0x2003), ip6("2001:db8::1", "2001:db8::9", chain=(0, 43, 44, 51, 60)),
              ip6("2001:db8::2", "2001:db8::9", proto=6, tags=((0x8100, 100),))):
        out += [cut(f, n, wire) for n in range(len(f.data) + 1) if n or wire]
    return [f.at(START + i * 300 * MS) for i, f in enumerate(out)]


def backwards(rng):
    """A clock that jumps back, and packets on both sides of the jump."""
    out, time = [], START
    for i in range(400):
        time += rng.choice((1000, 500000, 1000000, 40 * MS)) if i % 25 else -rng.choice((1000, 5 * MS, 900 * MS))
        out.append(ip4(f"192.0.2.{1 + i % 2}", "203.0.113.1").at(time))
    return out


def jumps(rng):
    """Few sources, and a clock that jumps back by more than a record is kept for, time and again."""
    out, time = [], START
    for i in range(3000):
        time += rng.choice((MS, 20 * MS, 300 * MS)) if i % 20 else -rng.choice((S, 2 * S, 3 * S))
        out.append(ip4(f"192.0.2.{1 + rng.randrange(6)}", "203.0.113.1").at(time))
    return out


def openings(rng):
    """Connections and flows that begin, go on, pause for about two seconds and go on."""
    out, time = [], START
    for i in range(1200):
        time += rng.choice((0, 1000, 3 * MS, 20 * MS, 90 * MS)) if i % 60 else rng.choice((1900, 1990, 2000, 2100)) * MS
        n, proto = rng.randrange(6), rng.choice((6, 6, 17, 17, 17, 1, 58, 132, 47))
        more = {"proto": proto, "sport": 1000 + rng.randrange(4) * (i % 7), "dport": rng.choice((53, 443)),
                "flags": rng.choice((0x02, 0x02, 0x12, 0x10, 0x18, 0x11, 0x04, 0xc2, 0x06, 0)),
                "payload": rng.choice((20, 20, 20, 200, 12, 13, 14)), "ident": i // 9,
                "tags": rng.choice(((), (), (), ((0x8100, 5),), ((0x8100, 6),)))}
        if rng.random() < .6:
            frame = ip4(f"192.0.2.{1 + n}", f"203.0.113.{1 + n % 2}", **more, frag=rng.choice((0,) * 12 + (0x2000, 0x2005, 3)))
        else:
            chain = rng.choice(((),) * 9 + ((44,), (60,), (0,) + (60,) * 8))
            frame = ip6(f"2001:db8:1::{1 + n}", "2001:db8:f::1", **more, chain=chain, frag=rng.choice((0, 1, 0x40)))
        out.append(frame.at(time))
    return out


def later(frames, seconds):
    """The same, the first of them so many seconds after 1970."""
    return [f.at(f.time - frames[0].time + seconds * S) for f in frames]


def spread(rng):
    """Forty sources with rates from 1 to 200 a second, none of whose packets come at once."""
    rates = [round(1.15 ** i) for i in range(40)]
    times = sorted(START + rng.randrange(4 * S) + i for i, rate in enumerate(rates)
                   for _ in range(4 * rate))
    names = [i for i, rate in enumerate(rates) for _ in range(4 * rate)]
    rng.shuffle(names)
    return [ip4(f"192.0.2.{1 + n}", "203.0.113.1").at(t + k) for k, (n, t) in enumerate(zip(names, times))]


def write_sets(folder):
    """In no order, in both families mixed, some as ranges, some twice."""
    rng = random.Random(17)
    lines = [str(n) if rng.random() < .7 else f"{n[0]}-{n[-1]}" for n in SETS["drop"]]
    lines += rng.sample(lines, 100) + ["# a comment", "", "; another"]
    rng.shuffle(lines)
    with open(f"{folder}/drop.set", "w") as f:
        f.write("\n".join(lines) + "\n")
    with open(f"{folder}/geo.csv", "w") as f:
        f.write("network,asn,country\n" +
                "".join(f'"{n}",{64500 + i % 7},{v or "unnamed"}\n' for i, (n, v) in enumerate(GEO.items())))
    with open(f"{folder}/ok.set", "w") as f:
        f.write("network,country\n198.51.100.0/31,XX\n2001:db8:2::/127,YY\n")


def main(folder, judged=True):
    rng = random.Random(5)
    ns, us = bursts(rng), bursts(rng, 1000)
    back = backwards(rng)
    raw = [f for f in ns if f.src.version == 4]
    raw6 = [f for f in ns if f.src.version == 6]
    known = {
        "nano": (pcap(ns, nano=True), ns), "micro": (pcap(us), us), "swapped": (pcap(us, swap=True), us),
        "ng_nano": (pcapng(ns), ns), "ng_micro": (pcapng(us, nano=False), us),
        "raw": (pcap(ns, True, 101), ns), "raw4": (pcap(raw, True, 228), raw), "raw6": (pcap(raw6, True, 229), raw6),
        "shapes": (pcap(shapes(), True), shapes()), "backwards": (pcap(back, True), back),
        "snapped": (pcap(truncations(True), True), truncations(True)),
        "short": (pcap(truncations(False), True), truncations(False)), "none": (pcap([]), []),
        "damaged": (pcap(ns[:50], True)[:-7], ns[:49]), "damaged_ng": (pcapng(ns[:20])[:-9], ns[:19]),
    }
    flows = openings(random.Random(9))
    known["openings"] = (pcap(flows, True), flows)
    known["lying"] = (pcap(us[:30]) + struct.pack("<IIII", 1, 1, 0x7fffffff, 60) + bytes(60), us[:30])
    # Seconds beyond 31 bits, and beyond what is left of 32; in pcapng beyond 32.
    for name, make in (("late_nano", lambda f: pcap(f, True)), ("late_micro", pcap),
                       ("late_swapped", lambda f: pcap(f, swap=True))):
        for n, first in enumerate((2**31 - 100, 2**32 - 10**4)):
            frames = later(us, first)
            known[f"{name}{n}"] = make(frames), frames
    for n, first in enumerate((2**31 - 100, 2**32 - 100, 2**33)):
        frames = later(ns, first)
        known[f"late_ng{n}"] = pcapng(frames), frames
    for name, (data, frames) in known.items():
        with open(f"{folder}/{name}.pcap", "wb") as f:
            f.write(data)
        for policy in ORACLES if judged else ():
            with open(f"{folder}/{name}.{policy}.rows", "w") as f:
                f.write(rows(frames, policy))
    odd = {"wifi.link": pcap(us[:3], link=105), "empty.bad": b"", "noise.bad": bytes(range(64))}
    noise = [Frame(rng.randbytes(rng.randrange(1, 90))) for _ in range(300)]
    for i, f in enumerate(us[:300]):  # headers with some bits wrong
        data = bytearray(f.data)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(min(len(data), 60))] ^= 1 << rng.randrange(8)
        noise.append(Frame(bytes(data)))
    # More denied keys than the summary tells apart, two packets of each.
    twice = [ip4(f"10.{i >> 15}.{i >> 7 & 0xff}.{i & 0x7f}", "203.0.113.1").at(START + i * 2 * MS + k)
             for i in range(57444) for k in (0, 1)]
    odd["many.keys"] = pcap(twice, True)
    odd["noise.pcap"] = pcap([f.at(START + i * MS) for i, f in enumerate(noise)], True)
    odd["jumps.pcap"] = pcap(jumps(random.Random(7)), True)
    odd["spread.pcap"] = pcap(spread(random.Random(6)), True)
    for name, data in odd.items():
        with open(f"{folder}/{name}", "wb") as f:
            f.write(data)
    for name, rules in {**POLICIES, **MORE}.items():
        with open(f"{folder}/{name}.yaml", "w") as f:
            f.write("memory: 1Mi\nrules:" + rules.replace("FOLDER", folder))
    write_sets(folder)


if __name__ == "__main__":
    main(sys.argv[1], "--unjudged" not in sys.argv[2:])
