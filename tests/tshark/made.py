# SPDX-License-Identifier: GPL-2.0-only
"""Captures of frames that put every branch of the parser before tshark."""
import itertools
import os
import struct

MAGICS = (b"\xa1\xb2\xc3\xd4", b"\xa1\xb2\x3c\x4d", b"\xa1\xb2\xcd\x34")
ETHERNET, RAW = 1, 101
PROTOCOLS = (6, 17, 132, 1, 2, 47, 50, 58, 59, 89, 255)
EXTENSIONS = (0, 43, 44, 51, 60)
SOURCE6 = bytes.fromhex("20010db8000000000000000000000001")
TARGET6 = bytes.fromhex("20010db8000000000000000000000002")


def payload(proto):
    if proto == 6:
        return struct.pack(">HHIIBBHHH", 40000, 443, 1, 0, 0x50, 2, 1024, 0, 0)
    if proto == 17:
        return struct.pack(">HHHH", 1234, 9999, 12, 0) + b"data"
    if proto == 132:
        return struct.pack(">HHII", 5000, 5001, 1, 0)
    return b"\x80\0\0\0\0\0\0\0\0\0\0\0"


def ethernet(kind, body, tags=()):
    head = b"\x02\0\0\0\0\1\x02\0\0\0\0\2"
    for i, tag in enumerate(tags):
        head += struct.pack(">HH", tag, 0x6000 | 100 + i)
    return head + struct.pack(">H", kind) + body


def ip4(proto, frag=0, options=b"", body=None, total=None, first=None):
    body = payload(proto) if body is None else body
    size = 20 + len(options)
    head = struct.pack(">BBHHHBBHII", 0x40 | size // 4 if first is None else first, 0,
                       size + len(body) if total is None else total, 0xbeef, frag, 64, proto, 0,
                       0xc0000201, 0xc6336402)
    return ethernet(0x0800, head + options + body)


def extension(kind, following, words, frag):
    """One IPv6 extension header, of padding and of as many 8 bytes more as `words`."""
    if kind == 44:
        return struct.pack(">BBHI", following, 0, frag, 0xdeadbeef)
    if kind == 51:
        return struct.pack(">BBHII", following, 2 + 2 * words, 0, 1, 1) + b"\0" * (4 + 8 * words)
    if kind == 43:  # of an unknown type, no segments left
        return struct.pack(">BBBB", following, words, 253, 0) + b"\0" * (4 + 8 * words)
    return struct.pack(">BBBB", following, words, 1, 4 + 8 * words) + b"\0" * (4 + 8 * words)


def ip6(proto, chain=(), words=0, frag=0, plen=None, first=0x60):
    body = b""
    for i, kind in enumerate(chain):
        body += extension(kind, (chain + (proto,))[i + 1], words, frag)
    body += payload(proto)
    head = struct.pack(">BBHHBB", first, 0, 0, len(body) if plen is None else plen,
                       (chain + (proto,))[0], 64)
    return ethernet(0x86dd, head + SOURCE6 + TARGET6 + body)


def tagged(frame, tags):
    return ethernet(struct.unpack(">H", frame[12:14])[0], frame[14:], tags)


def tags():
    plain = (ip4(17), ip6(6), ethernet(0x0806, b"\0\1\x08\0\6\4\0\1" + b"\0" * 20))
    for count in range(4):
        for kinds in itertools.product((0x8100, 0x88a8), repeat=count):
            for frame in plain:
                yield tagged(frame, kinds)
    for count in (4, 16, 17):
        for frame in plain:
            yield tagged(frame, (0x8100,) * count)
    for count, zeros in ((1, 1), (3, 2), (3, 3), (16, 15), (16, 16)):  # the first tags of VLAN 0
        for frame in plain:
            b = bytearray(tagged(frame, (0x8100,) * count))
            for i in range(zeros):
                b[14 + 4 * i:16 + 4 * i] = b"\x60\0"
            yield bytes(b)


def ip4_all():
    for proto in PROTOCOLS:
        for frag in (0, 0x4000, 0x2000, 0x2001, 0x00b9, 0x1fff, 0x8000):
            for words in (0, 1, 3, 10):
                yield ip4(proto, frag, b"\1" * 4 * words)
    for proto in EXTENSIONS:
        yield ip4(proto, body=payload(17))


def ip6_protocols():
    for proto in PROTOCOLS:
        for chain in ((), (60,), (44,), (0, 44)):
            for frag in (0, 1, 6, 8, 9, 0xfff8):
                yield ip6(proto, chain, 0, frag)


def ip6_chains():
    for count in range(1, 4):
        for chain in itertools.product(EXTENSIONS, repeat=count):
            yield ip6(17, chain, count % 3)
    for count in range(4, 10):
        for kind in (60, 43, 51):
            yield ip6(6, (kind,) * count)


def cut():
    """(frame, whole length): cut by the capture at every byte."""
    for frame in (tagged(ip4(17, options=b"\1\1\1\1"), (0x8100,)), ip6(6, (60, 51)), ip4(132, 0x2000)):
        for n in range(len(frame)):
            yield frame[:n], len(frame)


def short():
    """The same, cut on the wire."""
    return ((f, len(f)) for f, _ in cut())


def lies():
    for first in list(range(0x40, 0x50)) + [0x05, 0x15, 0x35, 0x55, 0x65, 0xf5]:
        yield ip4(17, first=first)
    for total in (0, 1, 19, 20, 23, 24, 31, 33, 34, 1500, 65535):
        yield ip4(17, total=total)
        yield ip4(1, total=total)
    for first in (0x00, 0x40, 0x50, 0x70, 0xf0):
        yield ip6(17, first=first)
    for plen in (0, 1, 3, 4, 11, 13, 1500, 65535):
        yield ip6(17, plen=plen)
        yield ip6(17, (60,), plen=plen)
    for chain in ((60,), (51,), (43,), (0,)):
        for size in (1, 2, 3, 200, 255):  # longer than the packet
            frame = bytearray(ip6(17, chain))
            frame[14 + 41] = size
            yield bytes(frame)


def write(path, link, frames):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, link))
        for i, frame in enumerate(frames):
            data, size = frame if isinstance(frame, tuple) else (frame, len(frame))
            f.write(struct.pack("<IIII", 1, i, len(data), size) + data)


def write_all(folder):
    os.makedirs(folder)
    for name, frames in (("tags", tags), ("ip4", ip4_all), ("ip6-protocols", ip6_protocols),
                         ("ip6-chains", ip6_chains), ("cut", cut), ("short", short), ("lies", lies)):
        write(os.path.join(folder, name + ".pcap"), ETHERNET, frames())
    write(os.path.join(folder, "raw.pcap"), RAW, (f[14:] for f in (ip4(6), ip6(17, (60,)), ip4(1))))
