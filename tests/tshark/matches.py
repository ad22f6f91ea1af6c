# SPDX-License-Identifier: GPL-2.0-only
"""How many frames a rule of a policy counts in replay, beside how many have that by tshark.

All captures in which parser and tshark agree are put into one. A policy is of one field, whose rules part its
values, so a frame falls under one of them at most; each passes its packets, so what is not known counts for none.
"""
import json
import subprocess


def between(low, high):
    return lambda v: low <= v <= high


def has(bits, mask):
    return lambda v: v & mask == bits


def ranges(field, bounds):
    """Rules that part the numbers up to the last bound."""
    low = 0
    for high in bounds:
        yield f"{field}: {low}-{high}", between(low, high)
        low = high + 1


# What is asked of a frame, and of which frames: the match, and what tshark's value is then.
FIELDS = {
    "ttl": ("ttl", {}, list(ranges("ttl", (1, 31, 63, 64, 127, 128, 254, 255)))),
    "dscp": ("dscp", {}, list(ranges("dscp", (0, 7, 45, 46, 63)))),
    "options": ("options", {"family": "4"}, [("ether_type: ip, options: yes", between(1, 1)),
                                             ("ether_type: ip, options: no", between(0, 0))]),
    "flags": ("flags", {}, [("flags: 'syn / syn,ack'", has(2, 0x12)),
                            ("flags: 'syn,ack / syn,ack'", has(0x12, 0x12)),
                            ("flags: 'rst / syn,rst'", has(4, 6)), ("flags: 'none / syn,fin,rst'", has(0, 7)),
                            ("flags: fin", has(1, 1))]),
    "icmp_type": ("type", {"family": "4"}, list(ranges("icmp_type", (0, 3, 8, 11, 255)))),
    "icmp_code": ("code", {"family": "4"}, list(ranges("icmp_code", (0, 1, 3, 255)))),
    "icmpv6_type": ("type", {"family": "6"}, list(ranges("icmpv6_type", (127, 128, 134, 135, 136, 255)))),
    "icmpv6_code": ("code", {"family": "6"}, list(ranges("icmpv6_code", (0, 1, 255)))),
    "fragment": ("fragment", {}, [(f"fragment: {k}", lambda v, k=k: v == k) for k in ("first", "later", "none")]),
    # Of a first fragment tshark does not say.
    "payload_len": ("payload_len", {"proto": "6", "fragment": "none"},
                    [("proto: tcp, fragment: none, " + m, is_in)
                     for m, is_in in ranges("payload_len", (0, 1, 100, 1000, 65535))]),
    "len": ("len", {}, list(ranges("len", (60, 64, 100, 1000, 65535)))),
    "ether_type": ("family", {}, [("ether_type: ip", lambda v: v == "4"), ("ether_type: ip6", lambda v: v == "6")]),
}


def policy_of(rules):
    return "rules:\n" + "".join(f"- {{name: r{i}, match: {{{match}}}, verdict: pass}}\n"
                                for i, (match, _) in enumerate(rules))


def compared(pacer, capture, frames, field):
    """(how many frames fell under a rule, what differs). frames: what tshark says of each, as text by field."""
    value, only, rules = FIELDS[field]
    known = [f[value] for f in frames if f.get(value, "-") != "-" and all(f[k] == v for k, v in only.items())]
    if value not in ("fragment", "family"):
        known = [int(v) for v in known]
    want = [sum(map(is_in, known)) for _, is_in in rules]
    done = subprocess.run([pacer, "replay", "-c", "-", "--json", capture], input=policy_of(rules), capture_output=True,
                          text=True, check=True)
    have = [r["matched"] for r in json.loads(done.stdout)["rules"]]
    return sum(have), [f"{match}: {h} frames in replay, {w} by tshark" for (match, _), h, w in zip(rules, have, want)
                       if h != w]
