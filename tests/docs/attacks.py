#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Captures of floods, each among honest packets, for the recipes of docs/matches.md.

attacks.py FOLDER: writes syn.pcap, ntp.pcap, memcached.pcap, ssdp.pcap, dns.pcap, vxlan.pcap and game.pcap there. In
each, 400 packets are of the flood and 100 are not; the flood's come from 203.0.113.0/24.
"""
import ipaddress
import random
import struct
import sys

FLOOD, HONEST = 400, 100
TARGET = "192.0.2.80"


def frame(src, dst, proto, l4):
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(l4), 7, 0, 64, proto, 0,
                       ipaddress.ip_address(src).packed, ipaddress.ip_address(dst).packed)
    return bytes.fromhex("020000000001020000000002 0800") + head + l4


def udp(src, sport, dport, payload):
    return frame(src, TARGET, 17, struct.pack(">HHHH", sport, dport, 8 + len(payload), 0) + payload)


def tcp(src, sport, flags, payload=b""):
    return frame(src, TARGET, 6, struct.pack(">HHIIBBHHH", sport, 443, 1, 1, 0x50, flags, 1024, 0, 0) + payload)


def dns(kind):
    """A question for example.com of this type."""
    return (struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, 0) + b"\x07example\x03com\x00" +
            struct.pack(">HH", kind, 1))


def query(rng, src):
    """To a game server of Source's protocol: what is your state?"""
    return udp(src, rng.randrange(1024, 65536), 27015, b"\xff\xff\xff\xffTSource Engine Query\0")


def vxlan(inner):
    """The frame between two hosts of an overlay: all that is seen outside is one address."""
    return frame("10.77.1.1", "10.77.1.2", 17, struct.pack(">HHHH", 50000, 4789, 16 + len(inner), 0) +
                 bytes.fromhex("0800000000000100") + inner)


def honest(rng, name, src):
    """What the recipe must not deny."""
    if name == "syn":  # ten connections a source: one SYN each, and then data
        return tcp(src, 1024 + rng.randrange(9), 0x18, b"GET / HTTP/1.1\r\n")
    if name == "ntp":  # answers of a time server: mode 4, 48 bytes
        return udp(src, 123, 123, b"\x24" + bytes(47))
    if name == "memcached":  # an answer to what was asked of a name server
        return udp(src, 53, 11211, dns(1))
    if name == "ssdp":
        return udp(src, 53, 1900, dns(1))
    if name == "vxlan":
        return vxlan(udp(src, rng.randrange(1024, 65536), 53, dns(1)))
    if name == "game":  # of a player: numbers of packets, and what it does; sometimes a query
        if rng.randrange(5) == 0:
            return query(rng, src)
        return udp(src, 27005, 27015, struct.pack("<II", rng.randrange(9000), rng.randrange(9000)) + b"\xff\xffT" * 20)
    return udp(src, rng.randrange(1024, 65536), 53, dns(rng.choice((1, 28, 15))))


def flood(rng, name, src):
    if name == "syn":
        return tcp(src, rng.randrange(1024, 65536), 0x02)
    if name == "ntp":  # monlist: a private answer (mode 7), implementation 3, request 42
        return udp(src, 123, rng.randrange(65536), bytes([0xd7, rng.randrange(128), 3, 42]) + bytes(436))
    if name == "memcached":  # behind the 8 bytes of its UDP header: "VALUE ..."
        return udp(src, 11211, rng.randrange(65536), struct.pack(">HHHH", 0, 0, 1, 0) + b"VALUE a 0 1000\r\n" +
                   bytes(1000))
    if name == "ssdp":
        return udp(src, 1900, rng.randrange(65536), b"HTTP/1.1 200 OK\r\nST: upnp:rootdevice\r\n\r\n")
    if name == "vxlan":
        return vxlan(udp(src, rng.randrange(1024, 65536), 53, dns(1)))
    if name == "game":
        return query(rng, src)
    return udp(src, rng.randrange(1024, 65536), 53, dns(255))


def main(folder):
    rng = random.Random(9)
    for name in ("syn", "ntp", "memcached", "ssdp", "dns", "vxlan", "game"):
        kinds = [flood] * FLOOD + [honest] * HONEST
        rng.shuffle(kinds)
        out = struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 262144, 1)
        for n, kind in enumerate(kinds):
            src = f"{'203.0.113' if kind is flood else '198.51.100'}.{1 + rng.randrange(4 if kind is flood else 50)}"
            data = kind(rng, name, src)
            out += struct.pack("<IIII", 1700000000, n * 1000, len(data), len(data)) + data
        with open(f"{folder}/{name}.pcap", "wb") as f:
            f.write(out)


if __name__ == "__main__":
    main(sys.argv[1])
