#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""check.py WANT.json OUT.json...: the exact values are the oracle's in every run, at every reading; what is
told lies within its bounds; and over all runs, no quantity's low..high misses the truth more often than
stated, but for a chance of 1e-6."""
import json
import math
import sys


def outside_max(runs, delta):
    tail = 1.0
    for c in range(runs + 1):
        if tail < 1e-6:
            return c
        tail -= math.comb(runs, c) * delta ** c * (1 - delta) ** (runs - c)
    return runs


def main(want, outs):
    missed, runs = {}, len(outs)
    for out in outs:
        readings = out["intervals"] + [out["last"]]
        assert len(readings) == len(want), f"{len(readings)} readings, not {len(want)}"
        for i, (r, w) in enumerate(zip(readings, want)):
            for name, value in w.items():
                got = r[name]["exact"] if isinstance(r[name], dict) else r[name]
                if isinstance(r[name], dict):
                    assert r[name]["low"] <= r[name]["value"] <= r[name]["high"], f"reading {i}: {name}: {r[name]}"
                if isinstance(r[name], dict) and not (name == "triangles" and r[name]["dropped"]):
                    slack = 1e-5 * abs(value) + 1e-9  # as many digits are printed
                    miss = not r[name]["low"] - slack <= value <= r[name]["high"] + slack
                    missed[i, name] = missed.get((i, name), 0) + miss
                assert math.isclose(got, value, rel_tol=2e-5, abs_tol=1e-9), f"reading {i}: {name} {got}, not {value}"
    most = outside_max(runs, outs[0]["delta"])
    for (i, name), n in missed.items():
        assert n <= most, f"reading {i}: {name}: outside its bounds in {n} of {runs} runs"


main(json.load(open(sys.argv[1])), [json.load(open(f)) for f in sys.argv[2:]])
