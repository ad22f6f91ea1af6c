#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Captures made from recipes, and what `estimate --exact` has to say of them.

captures.py DIR writes NAME.pcap, and for each of NAME.N.args (options of estimate) NAME.N.json: a list
of readings, counted by an oracle that shares no code with the pacer: the window's packets themselves.
"""
import collections
import itertools
import json
import math
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "replay"))
import captures as made  # noqa: E402

S = made.S


def zipf(rng):
    return min(int(1 / (1 - rng.random())), 60000)


def uniform(rng, t):
    return made.ip4(f"10.0.0.{rng.randrange(100)}", f"192.0.2.{rng.randrange(3)}", dport=rng.choice((53, 80)))


def skewed(rng, t):
    n = zipf(rng)
    if rng.random() < .3:
        return made.ip6(f"2001:db8:{n % 5}:{n}::1", "2001:db8:f::1")
    return made.ip4(f"10.{n % 7}.{n // 256}.{n % 256}", "192.0.2.1", sport=1000 + n % 3)


def flood(rng, t):
    """One source, and from the third second on as many spoofed ones as packets."""
    if t - made.START > 3 * S and rng.random() < .8:
        return made.ip4(str(made.ipaddress.ip_address(rng.randrange(1 << 24, 1 << 31))), "192.0.2.1")
    return made.ip4("10.0.0.1" if rng.random() < .9 else "10.0.0.2", "192.0.2.1")


def clique(rng, t):
    """Hosts that talk to each other, some both ways, and noise."""
    a, b = rng.sample(range(9), 2) if rng.random() < .6 else (rng.randrange(200), rng.randrange(200))
    return made.ip4(f"10.0.0.{a}", f"10.0.0.{b}")


def stream(seed, recipe, n, gap):
    rng, t, out = random.Random(seed), made.START, []
    for i in range(n):
        t += rng.randrange(2 * gap) + (2 * S if i == n // 2 else 0)  # half-way, silence
        out.append(recipe(rng, t).at(t))
        if i % 50 == 7:
            out.append(made.Frame(made.ether(0x0806) + bytes(28), reason="not_ip").at(t))
    return out


def triangles(frames):
    beside = collections.defaultdict(set)
    for f in frames:
        if f.src != f.dst:
            beside[f.src].add(f.dst)
            beside[f.dst].add(f.src)
    order = {v: i for i, v in enumerate(beside)}
    return sum(1 for v in beside for a, b in itertools.combinations(sorted(beside[v], key=order.get), 2)
               if order[v] < order[a] and b in beside[a])


def reading(frames, key, moment, time):
    counts, n = collections.Counter(made.key_of(f, key) for f in frames).values(), len(frames)
    return {"time_ns": time, "packets": n, "distinct": len(counts),
            "entropy": -sum(c / n * math.log2(c / n) for c in counts),
            "norm": sum(c * math.log2(c) for c in counts),
            f"F{moment}": float(sum(c ** moment for c in counts)), "triangles": float(triangles(frames))}


def by_time(frames, window, every, key, moment):
    """At every interval's end, where the window holds packets; and at the last packet, whose tick is the last."""
    base, end, out = frames[0].time, frames[-1].time, []
    for at in range(base + every, end + 1, every):
        held = [f for f in frames if at - window <= f.time < at]
        if held:
            out.append(reading(held, key, moment, at))
    tick = window // 1000
    first = ((end - base) // tick - 999) * tick + base
    return out + [reading([f for f in frames if f.time >= first], key, moment, end)]


def by_packets(frames, window, key, moment):
    return [reading(frames[-window:], key, moment, frames[-1].time)]


def main(where):
    recipes = {"uniform": uniform, "skewed": skewed, "flood": flood, "clique": clique}
    for seed, (name, recipe) in enumerate(recipes.items()):
        frames = stream(seed, recipe, 4000, 1500000)
        with open(f"{where}/{name}.pcap", "wb") as f:
            f.write(made.pcap(frames, nano=True))
        ip = [f for f in frames if not f.reason]
        cases = [("--window 1s --key src --moment 2", by_time(ip, S, S, "src", 2)),
                 ("--window 500ms --every 200ms --key src/24,56 --moment 3",
                  by_time(ip, S // 2, S // 5, "src/24,56", 3)),
                 ("--window-packets 700 --key flow --moment 2", by_packets(ip, 700, "flow", 2)),
                 ("--window-packets 100k --key src+dport --moment 4", by_packets(ip, 100000, "src+dport", 4))]
        for n, (args, want) in enumerate(cases):
            with open(f"{where}/{name}.{n}.args", "w") as f:
                f.write(args)
            with open(f"{where}/{name}.{n}.json", "w") as f:
                json.dump(want, f)
    with open(f"{where}/damaged.cut", "wb") as f:
        f.write(made.pcap(ip)[:-5])
    with open(f"{where}/none.cap", "wb") as f:
        f.write(made.pcap([]))


if __name__ == "__main__":
    main(sys.argv[1])
