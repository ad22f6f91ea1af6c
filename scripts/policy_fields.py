# SPDX-License-Identifier: GPL-2.0-only
"""The fields of a policy, as `xdp-pacer help policy` tells them, for what is made of them.

PACER names another xdp-pacer.
"""
import os
import re
import subprocess

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
KINDS = ("any limit", "a gap", "a window", "a rate", "a throttle")


def parts():
    """{"a policy": [(name, value, text, needed)...]}; those of limits by kind."""
    pacer = os.environ.get("PACER", os.path.join(ROOT, "build/xdp-pacer"))
    found, fields = {}, None
    for line in subprocess.check_output([pacer, "help", "policy"], text=True).split("\n"):
        if line.startswith("of a"):
            fields = found[line.removeprefix("of ")] = []
        elif line.startswith("    "):
            name, value, text, needed = fields[-1]
            fields[-1] = (name, value, text + " " + line.strip(), needed)
        elif line.startswith(" "):
            name, rest = line[2:].split(" ", 1)
            value, text = re.split(r"  +", rest, maxsplit=1)
            fields.append((name, value, text, line[1] == "*"))
    return found
