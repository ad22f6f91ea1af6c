#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What replay and suggest say, held against the rows of --verdicts, which the oracle has judged.

check.py TEST PACER DIR: one of the functions below; DIR is what captures.py has filled.
"""
import collections
import csv
import io
import ipaddress
import json
import os
import pathlib
import pty
import random
import re
import resource
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

TEST, PACER, DIR = sys.argv[1:4]
sys.dont_write_bytecode = True
HARMLESS = "{key: all, packets: 2147483647, window: 1s, slots: 1}"
LIMIT = re.compile(r"\{key:[^}]*\}")
VALUE = re.compile(r"(gap|packets|bytes|uses|burst): \w+")


def run(*args, code=(0,), **more):
    done = subprocess.run([PACER, *args], text=True,
                          **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more})
    assert done.returncode in code, f"exit {done.returncode} of {args}: {done.stderr}"
    return done


def path(name):
    return os.path.join(DIR, name)


def policy(name):
    with open(path(name + ".yaml")) as f:
        return f.read()


def replay(text, capture, *args, **more):
    return run("replay", "-c", "-", path(capture), *args, input=text, **more)


def rows(text, capture):
    return list(csv.DictReader(io.StringIO(replay(text, capture, "--verdicts").stdout)))


def denied(text, capture):
    return json.loads(replay(text, capture, "--json").stdout)["denied"]


# ---- the smallest limits that deny nothing ----


def with_values(text, values):
    """The policy with its limits, in order, at these values; None: a limit that denies nothing."""
    todo = iter(values)

    def one(match):
        value = next(todo)
        if value is None:
            return HARMLESS
        unit = "ns" if "gap:" in match[0] else ""
        return VALUE.sub(lambda v: f"{v[1]}: {value}{unit}", match[0], count=1)

    return LIMIT.sub(one, text)


def tighter(limit, value):
    return value + 1 if limit["unit"] == "gap_ns" else value - 1


def check_least(name, capture):
    text = policy(name)
    out = json.loads(replay(text, capture, "--json").stdout)
    limits = [l for rule in out["rules"] for l in rule["denies_nothing"]]
    assert len(limits) == len(LIMIT.findall(text))
    values = [l["least"] for l in limits]  # None also where no gap or any would do
    assert denied(with_values(text, values), capture) == 0, f"{name} {capture}: {values} deny"
    tried = 0
    for i, limit in enumerate(limits):
        assert limit["state"] in ("found", "any", "none"), limit
        if limit["state"] == "any":
            continue
        assert limit["state"] == "found" or limit["unit"] == "gap_ns", limit
        threshold = re.search(r"threshold: (\d+)", LIMIT.findall(text)[i])
        less = list(values)
        less[i] = tighter(limit, values[i] or 0)
        if less[i] < (int(threshold[1]) if threshold else 1):
            continue  # there is no such limit
        tried += 1
        assert denied(with_values(text, less), capture) > 0, f"{name} {capture}: {less} deny nothing"
    return tried


def least():
    """The values deny nothing, all together; any of them tighter by one denies something."""
    tried = collections.Counter()
    for name in ("gap", "flow", "tiers", "rules", "both", "crowd", "ban"):
        for capture in ("nano.pcap", "backwards.pcap", "shapes.pcap", "noise.pcap", "spread.pcap"):
            tried[name] += check_least(name, capture)
    assert min(tried.values()) > 4, tried
    print("#", sum(tried.values()), "limits, each one step tighter")


def least_full():
    """A table far too small for its keys: they share, and the values say what that takes."""
    assert check_least("full", "many.keys") == 2


def least_throttle():
    """It denies nothing; here one use less would."""
    assert check_least("throttle", "nano.pcap") == 1
    # A written threshold stays, whatever it is beside the uses; no number of packets leads below it.
    with open(path("nano.pcap"), "rb") as f:
        data = f.read()
    (_, first), *_ = records(data)
    limit = "rules: [{name: a, limits: [{key: all, uses: %d, cooldown: 1s, threshold: %d}]}]"
    for uses, threshold, packets, gap_ms, least in ((2000, 20, 17, 10, 20), (5, 1, 273, 1, None), (1, 1, 60, 50, 20),
                                                    (1, 1, 40, 100, 10)):
        with open(path("even.long"), "wb") as f:
            f.write(data[:24])
            for n in range(packets):
                ms = 1000 + n * gap_ms
                f.write(struct.pack("<II", ms // 1000, ms % 1000 * 1000000) + first[8:])
        out = json.loads(replay(limit % (uses, threshold), "even.long", "--json").stdout)
        assert out["rules"][0]["denies_nothing"][0]["least"] == least, out
        if least:
            assert denied(limit % (least, threshold), "even.long") == 0
        else:
            text = replay(limit % (uses, threshold), "even.long").stdout
            assert "no policy can have the limits that would do: " in text, text


def least_rate():
    """Bursts that deny nothing; one less would."""
    tried = sum(check_least("rates", f"{c}.pcap") for c in ("nano", "backwards", "noise", "spread"))
    assert tried > 8, tried


def least_bytes():
    """Bursts of bytes. A policy has none below a whole frame, which is then the smallest; the others are said, too."""
    text = """rules:
  - {name: dns, match: {src: 192.0.2.0/28}, limits: [{key: src, rate: 10Gbit/s, burst: 64K}]}
  - {name: few, match: {src: 192.0.2.16/28}, limits: [{key: all, rate: 80bit/s, burst: 64K}]}
  - {name: rest, limits: [{key: src, packets: 300, window: 1s}]}
"""
    out = json.loads(replay(text, "spread.pcap", "--json").stdout)
    frame, more, rest = [rule["denies_nothing"][0] for rule in out["rules"]]
    assert [limit["state"] for limit in (frame, more, rest)] == ["found"] * 3, out
    assert frame["least"] == 1514 < more["least"] and rest["least"] > 0, out
    values = [limit["least"] for limit in (frame, more, rest)]
    assert denied(with_values(text, values), "spread.pcap") == 0
    for i in (1, 2):
        less = [value - (i == k) for k, value in enumerate(values)]
        assert denied(with_values(text, less), "spread.pcap") > 0, less


def least_behind():
    """Uses of a throttle behind a window that counts in units too small for any of the frames at first."""
    import captures
    frames = [captures.ip4(f"192.0.2.{i}", "10.0.0.1", payload=280).at(captures.START + i) for i in range(7)]
    made("behind.keys", frames)
    text = "rules: [{name: a, limits: [{key: src, bytes: %d, window: 1s}, {key: all, uses: %d, cooldown: 1h, threshold: 1}]}]"
    for uses in (1, 10):
        out = json.loads(replay(text % (200, uses), "behind.keys", "--json").stdout)
        assert [limit["least"] for limit in out["rules"][0]["denies_nothing"]] == [314, 7], out
    two = text.replace("{key: all", "{key: src, bytes: 200, window: 2s}, {key: all")
    out = json.loads(replay(two % (200, 10), "behind.keys", "--json").stdout)
    assert [limit["least"] for limit in out["rules"][0]["denies_nothing"]] == [314, 314, 7], out
    assert denied(text % (314, 7), "behind.keys") == 0 < denied(text % (314, 6), "behind.keys")


def least_odd():
    """A policy without rules; limits that nothing has come to; what the line of a ladder would have to say."""
    text = replay("rules: []\n", "nano.pcap").stdout
    assert "passed 1,500" in text and text.count("\n") == 2, text
    text = replay("rules: [{name: none, match: {dport: 9}, limits: [{key: all, uses: 3, cooldown: 1s, threshold: 1}, "
                  "{key: src, gap: 1ms}, {key: dst, packets: 3, window: 1s}]}]", "nano.pcap").stdout
    assert text.count("any would do") == 3, text
    ladder = 'rules: [{name: two, limits: [{key: "src/[32,24],[128,64]", packets: %s, window: 1s, wider: x2}]}]'
    text = replay(ladder % 3, "nano.pcap").stdout
    found = int(re.search(r"the ladder: (\d+) packets in 1s \(is 3\)", text)[1])
    assert denied(ladder % found, "nano.pcap") == 0 < denied(ladder % (found - 1), "nano.pcap"), found
    # Of three in a prefix, whose limit is twice as high, the line says two, and not one and a half.
    import captures
    made("three.keys", [captures.ip4(f"192.0.2.{i}", "10.0.0.1").at(captures.START + i) for i in (1, 2, 3)])
    text = replay(ladder % 3, "three.keys").stdout
    assert "the ladder: 2 packets in 1s (is 3)\n" in text, text
    # Bursts that would take years to come back: no policy can say them, nor the line of a ladder.
    with open(path("nano.pcap"), "rb") as f:
        data = f.read()
    (_, first), *_ = records(data)
    with open(path("years.long"), "wb") as f:
        f.write(data[:24])
        for ns in range(300):
            f.write(struct.pack("<IIII", 1, ns, len(first) - 16, 0xfffff) + first[16:])
    text = replay("rules: [{name: slow, limits: [{key: src, rate: 8bit/s, burst: 64K}]}]", "years.long").stdout
    assert "src/32,64: bytes: none would do\n" in text, text
    text = replay(ladder.replace("packets: %s, window: 1s", "rate: 8bit/s, burst: 64K"), "years.long").stdout
    assert "src/32,128: bytes: none would do\n" in text and "the ladder:" not in text, text


def least_unfit():
    """Limits that no policy can have, and a capture that lies about its lengths: the reason is said, not guessed."""
    with open(path("nano.pcap"), "rb") as f:
        data = f.read()
    (_, first), *_ = records(data)
    with open(path("terabytes.long"), "wb") as f:
        f.write(data[:24])
        for ns in range(300):
            f.write(struct.pack("<IIII", 1, ns, len(first) - 16, 0xffffffff) + first[16:])
    small = "memory: 64Ki\nrules: [{name: a, limits: [{key: src, packets: 20, window: 1s, entries: 1000}]}]"
    text = replay(small, "terabytes.long").stdout
    assert "packets: no policy can have the limits that would do: rule a: no room for its state: 96000 bytes " \
        "wanted, 65536 free together" in text, text
    text = replay("rules: [{name: a, limits: [{key: src, bytes: 20M, window: 1s}]}]", "terabytes.long").stdout
    assert "bytes: not settled in several readings: where its state lies depends on the limit\n" in text, text


def least_once():
    """Of stdin: the same where one reading is enough, a line that says why where it is not."""
    with open(path("nano.pcap"), "rb") as f:
        data = f.read()

    def piped(name, *args):
        done = subprocess.run([PACER, "replay", "-c", path(name + ".yaml"), "-", *args], input=data,
                              stdout=subprocess.PIPE, check=True)
        return done.stdout.decode()

    assert json.loads(piped("flow", "--json")) == \
        json.loads(replay(policy("flow"), "nano.pcap", "--json").stdout)
    assert "src/32,64: packets: the capture has to be read twice, and stdin or a pipe cannot be" in \
        piped("crowd")
    assert '"unsettled"' in piped("crowd", "--json")


def foreign():
    """Captures of others: least as above, by a policy in turn, and suggest's policy is confirmed."""
    names = ("gap", "tiers", "rules", "crowd", "throttle")
    everything = os.environ.get("REPLAY_ALL") == "1"
    found = sorted(pathlib.Path(os.environ["PACER_PCAPS"]).rglob("*.*cap*"))
    tried = captures = 0
    for capture in map(str, found if everything else found[::2]):
        args = ("suggest", capture, "--deny-share", "10%", "--window", "100ms", "--json")
        done = run(*args, code=(0, 1, 2))
        if not capture.endswith((".pcap", ".pcapng", ".cap")) or done.returncode:
            continue  # no capture, damaged, of another link, without IP: each is said
        out = json.loads(done.stdout)
        assert out["confirmed"] and out["sources_denied"] <= 0.1 * out["sources"], capture
        captures += 1
        for policy_name in names if everything else names[captures % 5:][:1]:
            tried += check_least(policy_name, capture)
    print("#", tried, "limits, each one step tighter, over", captures, "captures")
    assert tried and captures


# ---- a clock that runs backwards ----


def jumps():
    """A table too small for its keys, and a clock that jumps back: on the latest time seen nothing is
    admitted beyond the limit, and stderr names the first such frame, in one line."""
    done = replay(policy("pair"), "jumps.pcap", "--verdicts")
    seen = list(csv.DictReader(io.StringIO(done.stdout)))
    now, first, admitted = 0, None, collections.defaultdict(list)
    for n, row in enumerate(seen, 1):
        time = int(row["time_ns"])
        first = first or (time < now and (n, now - time))
        now = max(now, time)
        if row["verdict"] != "admit":
            continue
        times = admitted[row["key"]]
        times.append(now)
        held = sum(t >= now - 10**9 for t in times)
        assert held <= 3, (n, row["key"], held)
    assert len(admitted) == 6
    assert f"jumps.pcap: frame {first[0]} is {first[1] // 10**9}s before" in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1
    for args in (("--json",), (), ("--compare", path("flow.yaml"))):
        assert replay(policy("pair"), "jumps.pcap", *args).stderr == done.stderr, args
    assert not replay(policy("pair"), "spread.pcap", "--verdicts").stderr


def late():
    """Seconds beyond 31 bits of a classic capture, of pcapng beyond 32: as the oracle has them."""
    names = [n for n in os.listdir(DIR) if n.startswith("late") and n.endswith(".flow.rows")]
    assert len(names) == 9, names
    for name in names:
        capture = name.removesuffix(".flow.rows") + ".pcap"
        with open(path(name)) as f:
            assert replay(policy("flow"), capture, "--verdicts").stdout == f.read(), capture


# ---- what `why` says beforehand ----


def why(policy_name, *args):
    return json.loads(run("why", "-c", path(policy_name + ".yaml"), "--json", *args).stdout)


def agrees(answer, row, now, bans):
    """The answer beforehand, and the row of what became of it."""
    assert (answer["verdict"], answer["reason"]) == (row["verdict"], row["reason"]), (answer, row)
    assert (answer["rule"] or "") == row["rule"] or row["verdict"] == "pass", (answer, row)
    if row["verdict"] != "deny" or (bans and row["reason"] != "ban"):
        return 0  # who is banned by this very packet passes later than without it
    if answer["fate"].startswith("passes"):  # the row is of what was judged
        assert answer["wait_ns"] == 0, answer
        return 0
    opens = "" if answer["wait_ns"] is None else str(now + answer["wait_ns"])
    assert opens == row["open_ns"] or (row["open_ns"], opens) == ("never", ""), (answer, row, now)
    return 1


def why_frame():
    """Of a frame of a capture, just before it is judged: reason, rule and time are the row's."""
    rng, seen, times = random.Random(15), collections.Counter(), 0
    for name in ("gap", "flow", "tiers", "rules", "rate", "sets", "geo", "both", "crowd", "ban", "grow", "full", "one"):
        for capture in ("nano.pcap", "backwards.pcap", "shapes.pcap", "jumps.pcap"):
            table = rows(policy(name), capture)
            bans, now, latest = "ban:" in policy(name), 0, []
            for row in table:
                now = max(now, int(row["time_ns"]))
                latest.append(now)
            by = collections.defaultdict(list)
            for i, row in enumerate(table):
                by[row["reason"]].append(i)
            for i in [i for of in by.values() for i in rng.sample(of, min(4, len(of)))]:
                answer = why(name, "--replay", path(capture), "--frame", str(i + 1))
                times += agrees(answer, table[i], latest[i], bans)
                seen[table[i]["reason"]] += 1
    assert times > 100 and min(seen[r] for r in ("gap", "window", "rate", "ban", "admit")) > 4, seen


def why_more():
    """Of verdicts, of what comes to no rule, of keys wider than what is known, of frames that are not there."""
    capture = ("--replay", path("nano.pcap"))
    for frame in ("1501", "99999"):
        done = run("why", "-c", path("flow.yaml"), *capture, "--frame", frame, code=(1,))
        assert f"nano.pcap: there is no frame {frame}: it has 1500" in done.stderr and not done.stdout, done.stderr
    found = why("verdict", "icmp 10.0.0.1 > 10.0.0.2", *capture)
    assert [found[k] for k in ("rule", "reason", "wait_ns", "fate")] == ["icmp", "verdict", None, "is dropped"], found
    found = why("verdict", "tcp 10.0.0.1:7 > 10.0.0.2:8", *capture)
    assert found["fate"] == "passes" and found["verdict"] == "admit", found
    found = why("more", "udp 10.0.0.1:7 > 10.0.0.2:8", *capture)
    assert found["rule"] is None and found["fate"] == "passes", found
    found = why("verdict", "192.0.2.1", *capture)
    assert [(r["name"], r.get("verdict")) for r in found["rules"]] == [("icmp", "drop"), ("tcp", "pass"), ("udp", None)]
    assert found["else"] == "drop", found
    # A prefix may be in a set in part, which is no reach; a rule by destination counts packets of anybody.
    assert why("sets", "192.0.2.0/24", *capture)["sets"] == []
    assert why("sets", "192.0.2.1", *capture)["sets"] == ["drop"]
    assert why("geo", "203.0.113.77", *capture)["sets"] == []
    sets = "sets: [{name: a, of: [192.0.2.0/24]}, {name: b, of: [192.0.2.1]}]\nrules:\n" \
        '- {name: out, match: {src: "!@b"}, verdict: drop}\n- {name: in, match: {src: "@a"}, verdict: drop}\n'
    text = run("why", "-c", "-", "192.0.2.1", *capture, input=sets).stdout
    assert "  sets      a b\n" in text and "rule      in\n  verdict   drop: all that it sends" in text, text
    text = run("why", "-c", "-", "192.0.2.0/24", *capture, input=sets).stdout
    assert "rule      out\n  verdict   drop: what the rule matches" in text, text
    by_dst = "rules: [{name: to, limits: [{key: dst, packets: 3, window: 1s}]}]"
    text = run("why", "-c", "-", "198.51.100.1", *capture, input=by_dst).stdout
    assert "to.limits[0]: 3 packets in 1s" in text, text
    # The longest prefix of the allow-list is named, whatever their order.
    for allow in (["198.18.0.0/15", "198.19.0.0/16"], ["198.19.0.0/16", "198.18.0.0/15"]):
        given = policy("flow") + f"allow: {json.dumps(allow)}\n"
        text = run("why", "-c", "-", "198.19.0.1", *capture, input=given).stdout
        assert "allowed   by 198.19.0.0/16 of the allow-list" in text, text
    # Whoever is allowed inside a tunnel meets no rule for what is inside; others do.
    for allow in ("10.1.0.0/16", "10.1.0.0/16, 10.9.0.0/16", "10.9.0.0/16, 10.1.0.0/16"):
        inner = f"rules: [{{name: in, match: {{inner: yes}}, verdict: drop}}]\nallow: [{allow}]\n"
        for source, fate in (("10.1.0.1", "passes"), ("10.2.0.1", "is dropped")):
            asked = f"udp {source}:7 > 10.3.0.1:8 in gre 192.0.2.1 > 192.0.2.2"
            found = json.loads(run("why", "--json", "-c", "-", asked, *capture, input=inner).stdout)
            assert found["fate"] == fate, (allow, source, found)
    asked = "udp 10.2.0.1:7 > 10.3.0.1:8 in pppoe"  # around it is no IP header
    found = json.loads(run("why", "--json", "-c", "-", asked, *capture, input=inner).stdout)
    assert (found["rule"], found["outer"]) == ("in", "a frame without addresses"), found
    # What no rule matches, where the policy only looks on; headers that are none.
    monitor = policy("verdict") + "mode: monitor\n"
    asked = ("why", "--json", "-c", "-", "--replay", path("shapes.pcap"))
    found = json.loads(run(*asked, "icmp 10.0.0.1 > 10.0.0.2", input=monitor).stdout)
    assert found["fate"] == "passes, since the policy only looks on" and found["verdict"] == "deny", found
    assert found["wait_ns"] == 0, found
    # Of a limit of all packets; where there is none, that is no key.
    limits = "{key: src, packets: 3, window: 1h}, {key: all, packets: 99999, window: 1h}"
    limits = f"rules: [{{name: r, limits: [{limits}]}}]\n"
    admitted = sum(row["verdict"] == "admit" for row in rows(limits, "shapes.pcap"))
    found = json.loads(run(*asked, "all", input=limits).stdout)
    counted = [[x[k] for k in ("limit", "key", "family", "used")] for r in found["rules"] for x in r["limits"]]
    assert admitted and counted == [[1, "all", None, admitted]], (found, admitted)
    assert "all is no key, such as" in run(*asked, "all", input=monitor, code=(2,)).stderr
    table = rows(policy("verdict"), "nano.pcap")
    rest = next(n for n, row in enumerate(table, 1) if row["reason"] == "verdict" and not row["rule"])
    found = why("verdict", *capture, "--frame", str(rest))
    assert found["rule"] is None and found["fate"] == "is dropped" and found["wait_ns"] is None, found
    deep = [n for n, row in enumerate(rows(policy("flow"), "shapes.pcap"), 1) if row["reason"] == "too_deep"]
    for n in deep[:1]:  # what a stack would deliver is dropped, whatever is said of the rest
        for text in ("", "unparsed: pass\n"):
            found = json.loads(run("why", "--json", "-c", "-", "--replay", path("shapes.pcap"), "--frame", str(n),
                                   input=policy("flow") + text).stdout)
            assert [found[k] for k in ("fate", "reason", "wait_ns")] == ["is dropped", "too_deep", None], found
    shapes = [n + 1 for n, row in enumerate(rows(policy("flow"), "shapes.pcap")) if row["reason"] == "bad_header"]
    assert shapes
    for n in shapes[:1]:
        for text, fate, wait_ns in (("", "is dropped", None), ("unparsed: pass\n", "passes", 0),
                                    ("unparsed: drop\nmode: monitor\n", "passes", 0)):
            found = json.loads(run("why", "--json", "-c", "-", "--replay", path("shapes.pcap"), "--frame", str(n),
                                   input=policy("flow") + text).stdout)
            assert [found[k] for k in ("fate", "reason", "wait_ns")] == [fate, "bad_header", wait_ns], found


def why_let_through():
    """What is denied and passes all the same does not wait; what is asked of a key says so of its rule."""
    import captures
    made("let.pcap", [captures.ip4("192.0.2.1", "10.0.0.1").at(captures.START + n) for n in range(10)])
    limit = "limits: [{key: src, packets: 1, window: 1h}]"
    rule = f"rules: [{{name: a, {limit}}}]\n"
    passes = f"rules: [{{name: a, over: pass, {limit}}}]\n"
    packet = "udp 192.0.2.1:7 > 10.0.0.1:8"
    all_the_same = ": what is denied passes all the same"
    for text, fate, over, mode in ((rule, "is dropped", "drop", "enforce"),
                                   (passes, "passes, since its rule only counts", "pass", "enforce"),
                                   ("mode: monitor\n" + rule, "passes, since the policy only looks on", "drop", "monitor"),
                                   ("mode: monitor\n" + passes, "passes, since the policy only looks on", "pass",
                                    "monitor")):
        for args in ((packet,), ("--frame", "10")):
            asked = ("why", "-c", "-", *args, "--replay", path("let.pcap"))
            found, shown = json.loads(run(*asked, "--json", input=text).stdout), run(*asked, input=text).stdout
            assert [found[k] for k in ("verdict", "reason", "denied_by", "fate")] == ["deny", "window", 0, fate], found
            # When the limit admits the packet stands beside the limit, whatever becomes of the packet.
            assert found["limits"][0]["wait_ns"] > 3e12 and re.search(r" 1 of 1 packets +in ", shown), (found, shown)
            waits = fate == "is dropped"
            assert found["wait_ns"] == found["limits"][0]["wait_ns"] * waits, found
            assert ("\n  passes    in " in shown) == waits, shown
        asked = ("why", "-c", "-", "192.0.2.1", "--replay", path("let.pcap"))
        found, shown = json.loads(run(*asked, "--json", input=text).stdout), run(*asked, input=text).stdout
        assert (found["mode"], found["rules"][0]["over"]) == (mode, over), found
        assert (f"\n  mode      monitor{all_the_same}\n" in shown) == (mode == "monitor"), shown
        after = " (over: pass: its limits stop nothing)" * (over == "pass")
        assert f"\n  rule      a{after}\n" in shown, shown
    pools = "pools: [{name: here, targets: ['cpu:0'], each: 5, cooldown: 1s}]\n"
    found = json.loads(run(*asked, "--json", input=pools + passes.replace("pass", "pool here")).stdout)
    assert found["rules"][0]["over"] == "pool here", found
    # Of no rule: what else drops waits for ever, but where the policy only looks on.
    for text, wait_ns in (("", None), ("mode: monitor\n", 0)):
        text += rule.replace("name: a,", "name: a, match: {proto: tcp},") + "else: drop\n"
        found = json.loads(run("why", "-c", "-", packet, "--replay", path("let.pcap"), "--json", input=text).stdout)
        assert [found[k] for k in ("rule", "reason", "wait_ns")] == [None, "verdict", wait_ns], found
    text = pools + rule.replace("name: a,", "name: a, match: {proto: tcp},") + "else: pool here\n"
    found = json.loads(run("why", "-c", "-", packet, "--replay", path("let.pcap"), "--json", input=text).stdout)
    assert (found["fate"], found["wait_ns"]) == ("is sent to the pool, if that has room", None), found


def tunnelled(source):
    """An Ethernet frame: GRE of others around a datagram from that source."""
    def ip(proto, src, dst, body):
        return struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 1, 0, 64, proto, 0,
                           *(ipaddress.ip_address(a).packed for a in (src, dst))) + body

    inner = ip(17, source, "10.0.0.1", struct.pack(">4H", 1000, 53, 8, 0))
    return b"\2\0\0\0\0\1\2\0\0\0\0\2\x08\0" + ip(47, "10.77.1.1", "10.77.1.2", b"\0\0\x08\0" + inner)


def why_tunnels():
    """A rule for a source's own packets hides none of those for its packets in tunnels, nor the other way round."""
    frame = tunnelled("192.0.2.2")
    with open(path("tunnels.made"), "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
        for i in range(5):
            f.write(struct.pack("<IIII", 1, i * 1000, len(frame), len(frame)) + frame)
    own, any_own = "{name: own, match: {src: 192.0.2.0/24}, verdict: pass}", "{name: own, verdict: pass}"
    inside = "{name: in, match: {inner: yes%s}, limits: [{key: src, packets: 1, window: 3s}], ban: 1m}"
    drop = "{name: %s, match: {inner: yes}, verdict: drop}"
    by_src = inside % ", src: 192.0.2.2"

    def ask(*rules, args=("--json",)):
        given = f"rules: [{', '.join(rules)}]\nelse: drop\n"
        return run("why", "192.0.2.2", "-c", "-", "--replay", path("tunnels.made"), *args, input=given).stdout

    assert rows(f"rules: [{own}, {inside % ''}]", "tunnels.made")[4]["reason"] == "ban"
    for first in (own, any_own):  # what PPPoE carries falls under no rule for all
        said = json.loads(ask(first, inside % ""))["rules"]
        assert [r["name"] for r in said] == ["own", "in"] and said[0]["all"], said
    assert json.loads(ask(own, inside % ""))["rules"][1]["limits"][0]["banned_ns"] > 59e9
    assert "in.limits[0]: 1 packet" in ask(own, inside % "", args=())
    # Of several for what is in tunnels the first has all of it, and the source's own packets still have theirs.
    for rules, names, rest in (([own, drop % "in", drop % "later"], ["own", "in"], None),
                               ([by_src, drop % "later", own], ["in", "own"], None),
                               ([inside % ", dport: 53", drop % "later"], ["in", "later"], "drop")):
        said = json.loads(ask(*rules))
        assert [r["name"] for r in said["rules"]] == names and said.get("else") == rest, said
        assert not any(r.get("all") for r in said["rules"] if r["name"] != "own"), said
    assert "rule      in\n  verdict   drop: what the rule matches" in ask(own, drop % "in", args=())


def records(data):
    """The records of a classic capture in ns: time, bytes."""
    at = 24
    while at < len(data):
        seconds, ns, captured, _ = struct.unpack_from("<IIII", data, at)
        yield seconds * 10**9 + ns, data[at:at + 16 + captured]
        at += 16 + captured


def why_at():
    """Of a packet that is written, at a time: as if it stood in the capture there."""
    with open(path("nano.pcap"), "rb") as f:
        data = f.read()
    frames, rng, asked = list(records(data)), random.Random(16), collections.Counter()
    for name in ("gap", "flow", "tiers", "rules", "rate", "sets", "geo", "crowd", "ban", "grow", "one") * 6:
        n, k = rng.randrange(len(frames)), rng.randrange(len(frames) - 1)
        found = why(name, "--replay", path("nano.pcap"), "--frame", str(n + 1))
        flow = re.fullmatch(r"(\S+)>(\S+) (udp|tcp) (\d+) (\d+)", found["packet"])
        record = frames[n][1]
        if not flow or len(record) - 16 < 60 or record[28:30] not in (b"\x08\0", b"\x86\xdd"):
            continue
        time = rng.randrange(frames[k][0], frames[k + 1][0] + 1)
        k += frames[k + 1][0] <= time
        while k + 1 < len(frames) and frames[k + 1][0] <= time:
            k += 1
        made = struct.pack("<II", time // 10**9, time % 10**9) + record[8:]
        with open(path("inserted.long"), "wb") as f:
            f.write(data[:24] + b"".join([r for _, r in frames[:k + 1]] + [made]))
        row = rows(policy(name), "inserted.long")[k + 1]
        src, dst, proto, sport, dport = flow.groups()
        end = "[{}]:{}" if ":" in src else "{}:{}"
        text = f"{proto} {end.format(src, sport)} > {end.format(dst, dport)} len {found['len_bytes']}"
        answer = why(name, text, "--replay", path("nano.pcap"), "--at", f"{time - frames[0][0]}ns")
        agrees(answer, row, time, "ban:" in policy(name))
        asked[row["verdict"]] += 1
    assert asked["admit"] > 3 and asked["deny"] > 3, asked


# ---- user space and the kernel ----


def several():
    """Every reason to deny, of several limits of a rule: the kernel's rows name the same keys."""
    reasons = collections.defaultdict(set)
    for capture in ("nano.pcap", "spread.pcap", "backwards.pcap"):
        out = [replay(policy("several"), capture, "--verdicts", *args).stdout
               for args in ((), ("--kernel",))]
        for a, b in zip(*(text.split("\n") for text in out)):
            assert a == b, (capture, a, b)
        for row in csv.DictReader(io.StringIO(out[0])):
            if row["verdict"] == "deny":
                kind = "all" if row["key"] == "all" else "flow" if ">" in row["key"] else \
                    "net" if "/" in row["key"] else "host"
                reasons[row["rule"], row["reason"]].add(kind)
    assert reasons["udp", "throttle"] == reasons["rest", "throttle"] == {"all"}, reasons
    assert reasons["udp", "gap"] == {"net"} and reasons["udp", "window"] == {"flow", "host"}, reasons
    assert reasons["udp", "ban"] == {"net", "flow", "host"}, reasons


def kernel_unread():
    """A map that cannot be read is said to be, with the error of that, and no row is made up."""
    library = path("unread.so")
    here = os.path.dirname(os.path.abspath(__file__))
    subprocess.run(["cc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-Wall", "-Werror",
                    os.path.join(here, "unread.c"), "-o", library], check=True)
    for name in ("pacer_counts", "pacer_leases"):
        done = replay(policy("several"), "nano.pcap", "--verdicts", "--kernel", code=(1,),
                      env={**os.environ, "LD_PRELOAD": library, "UNREAD": name})
        assert done.stderr.endswith("replay: the kernel's maps cannot be read: Bad address\n"), done.stderr
        assert "throttle" not in done.stdout, done.stdout
    # Of two policies: what was judged until then is compared by nobody.
    done = replay(policy("several"), "nano.pcap", "--compare", path("several.yaml"), "--kernel", code=(1,),
                  env={**os.environ, "LD_PRELOAD": library, "UNREAD": "pacer_counts"})
    assert done.stderr.endswith("replay: the kernel's maps cannot be read: Bad address\n"), done.stderr
    assert not done.stdout and done.stderr.count("\n") == 1, done
    # Each of the two is judged there: only one has a throttle, of which leases are read.
    leases = {**os.environ, "LD_PRELOAD": library, "UNREAD": "pacer_leases"}
    replay(policy("flow"), "nano.pcap", "--verdicts", "--kernel", env=leases)
    for first, second in (("flow", "several"), ("several", "flow")):
        policy(second)
        done = replay(policy(first), "nano.pcap", "--compare", path(second + ".yaml"), "--kernel", code=(1,), env=leases)
        assert done.stderr.endswith("replay: the kernel's maps cannot be read: Bad address\n"), (first, done.stderr)


def grows():
    """Bans that grow, against a list of who was banned how often: all rows, and until when."""
    steps = collections.Counter()
    times = {"ms": 10**6}
    first, most, forget = 30 * times["ms"], 700 * times["ms"], 300 * times["ms"]
    for capture in ("nano.pcap", "spread.pcap"):
        bans, table = {}, rows(policy("grow"), capture)  # of a key: the ban's end, and its number in a row
        kernel = replay(policy("grow"), capture, "--verdicts", "--kernel").stdout
        assert kernel == replay(policy("grow"), capture, "--verdicts").stdout, capture
        for row in table:
            if row["rule"] != "grow":
                continue
            now, key = int(row["time_ns"]), row["key"]
            until, number = bans.get(key, (0, 0))
            assert (row["reason"] == "ban") == (now < until), (capture, row, until)
            if row["reason"] == "ban":
                assert int(row["open_ns"]) >= until, (capture, row, until)
            elif row["verdict"] == "deny":
                number = number + 1 if until and now - until < forget else 1
                bans[key] = now + min(first * 3 ** (number - 1), most), number
                steps[min(number, 4)] += 1
    assert min(steps[n] for n in (1, 2, 3, 4)) > 3, steps


# ---- two policies ----


def lets_through(text):
    """Names of rules that let through what they deny; None: the policy does so of all."""
    if "mode: monitor" in text:
        return None
    return {re.match(r"\w+", rule)[0] for rule in text.split("name: ")[1:] if "over: pass" in rule}


def is_stopped(row, lets):
    return lets is not None and row["verdict"] == "deny" and row["rule"] not in lets


def expected(names, capture):
    """By rule, kind of key and key: [denied by each], [stopped by it alone]."""
    texts = [policy(n) for n in names]
    lets = [lets_through(text) for text in texts]
    keys = collections.defaultdict(lambda: ([0, 0], [0, 0]))
    for pair in zip(*[rows(text, capture) for text in texts]):
        stops = [is_stopped(row, of) for row, of in zip(pair, lets)]
        for i in range(2):
            if pair[i]["verdict"] == "deny":
                note = keys[pair[i]["rule"], pair[i]["key"]]
                note[0][i] += 1
                note[1][i] += stops[i] and not stops[1 - i]
    return {k: v for k, v in keys.items() if sum(v[1])}


def compare():
    """The keys that fare differently, and by how much, are those of the rows."""
    for names in (("flow", "flow2"), ("flow", "rules"), ("tiers", "gap"), ("crowd", "rules"), ("both", "rules")):
        out = json.loads(run("replay", "-c", path(names[0] + ".yaml"), "--compare",
                             path(names[1] + ".yaml"), path("nano.pcap"), "--json").stdout)
        found = collections.defaultdict(lambda: ([0, 0], [0, 0]))
        for key in out["keys"]:  # limits of one rule whose keys read the same are one in the rows
            note = found[key["rule"], key["key"]]
            for part, what in enumerate(("denied", "stopped_alone")):
                for i in range(2):
                    note[part][i] += key[what][i]
        want = expected(names, "nano.pcap")
        assert want and set(found) == set(want), (names, set(found) ^ set(want))
        for key, note in want.items():
            assert found[key][1] == note[1], (names, key, found[key], note)
        for i in range(2):
            assert out["stopped_alone"][i] == sum(v[1][i] for v in want.values())
            assert out["denied"][i] == denied(policy(names[i]), "nano.pcap")
            lets = lets_through(policy(names[i]))
            assert out["stopped"][i] == sum(is_stopped(row, lets) for row in rows(policy(names[i]), "nano.pcap"))
        text = run("replay", "-c", path(names[0] + ".yaml"), "--compare", path(names[1] + ".yaml"),
                   path("nano.pcap")).stdout
        head = [re.split("  +", line.strip()) for line in text.splitlines()[:6]]
        assert head[0][0].endswith(f" s: {sum(out['stopped_alone']):,} fare differently"), text
        assert head[1:] == [["FIRST", "SECOND"], ["policy", *out["policies"]],
                            *([name, *(f"{n:,}" for n in out[name.replace(" ", "_")])]
                              for name in ("denied", "stopped", "stopped alone"))], text
        assert out["policies"] == [path(n + ".yaml") for n in names]
    same = run("replay", "-c", path("flow.yaml"), "--compare", path("flow.yaml"), path("nano.pcap"))
    assert "0 keys fare differently" in same.stdout and ": 0 fare differently" in same.stdout
    for name, packets in (("one.first", 1), ("one.second", 10**6)):
        with open(path(name), "w") as f:
            f.write("rules: [{name: a, match: {src: 192.0.2.1}, limits: [{key: src, packets: %d, window: 1h}]}]" % packets)
    one = run("replay", "-c", path("one.first"), "--compare", path("one.second"), path("nano.pcap"))
    assert "\n1 key fares differently\n" in one.stdout, one.stdout


def compare_let_through():
    """What one policy lets through though it denies it fares differently where the other stops it."""
    drop = "rules: [{name: a, limits: [{key: src, packets: 1, window: 1h}]}]\n"
    texts = {"stop": drop, "over": drop.replace("limits", "over: pass, limits"), "look": "mode: monitor\n" + drop}
    import captures
    made("let.pcap", [captures.ip4("192.0.2.1", "10.0.0.1").at(captures.START + n) for n in range(10)])
    for name, text in texts.items():
        with open(path("let." + name), "w") as f:
            f.write(text)
    for first, second in (("stop", "over"), ("over", "stop"), ("stop", "look"), ("look", "stop"), ("look", "over"),
                          ("stop", "stop")):
        args = ("replay", "-c", path("let." + first), "--compare", path("let." + second), path("let.pcap"))
        out, text = json.loads(run(*args, "--json").stdout), run(*args).stdout
        stopped = [9 * (name == "stop") for name in (first, second)]
        alone = [9 * (stopped[i] > stopped[1 - i]) for i in range(2)]
        assert (out["denied"], out["stopped"], out["stopped_alone"]) == ([9, 9], stopped, alone), (first, second, out)
        assert [(k["key"], k["denied"], k["stopped_alone"]) for k in out["keys"]] == \
            [("192.0.2.1", [9, 9], alone)] * (sum(alone) > 0), out
        assert f": {sum(alone)} fare differently\n" in text, text
        assert re.search(r"^  denied +9 +9\n  stopped +%d +%d\n  stopped alone +%d +%d$" % (*stopped, *alone), text, re.M), text
    # Nobody's frames, too: what cannot be read is dropped by one policy alone.
    given = policy("flow")
    with open(path("let.flow"), "w") as f:
        f.write(given + "unparsed: pass\n")
    out = json.loads(run("replay", "-c", path("flow.yaml"), "--compare", path("let.flow"), path("shapes.pcap"),
                         "--json").stdout)
    unread = json.loads(replay(given, "shapes.pcap", "--json").stdout)["unparsed"]
    deep = sum(row["reason"] == "too_deep" for row in rows(given, "shapes.pcap"))
    assert out["stopped_alone"] == [unread - deep, 0] and unread > deep and not out["keys"], (out, unread, deep)


def compare_bound():
    """More denied keys than are told apart: the rest is said to be one number."""
    args = ("replay", "-c", path("gap.yaml"), "--compare", path("none.yaml"), path("many.keys"))
    out = json.loads(run(*args, "--json").stdout)
    assert out["keys_differing"] == len(out["keys"]) == 57344
    assert out["denials_of_further_keys"] == 100 and out["denied"] == [57444, 0]
    text = run(*args).stdout
    assert "and 100 denials of further keys: 57,344 are told apart" in text
    assert "and 57,324 more: --json has them all" in text


# ---- suggest ----


def suggest():
    """The policy is one, and its replay denies something to no more than the share of sources."""
    for capture in ("nano.pcap", "micro.pcap", "raw6.pcap", "spread.pcap", "many.keys"):
        for share in (0, 20) if capture == "many.keys" else (0, 1, 7.5, 20, 50, 100):
            for window in ("1s",) if capture == "many.keys" else ("1s", "50ms"):
                args = ("suggest", path(capture), "--deny-share", f"{share}%", "--window", window,
                        "--key", "src")
                text = run(*args).stdout
                out = json.loads(run(*args, "--json").stdout)
                assert text.endswith(out["policy"]) and out["confirmed"] and "replayed" in text
                assert '{key: "src/32,64",' in text and out["key"] == "src/32,64"
                run("check", "-c", "-", input=text)
                seen = rows(text, capture)
                sources = {r["key"] for r in seen if r["rule"]}
                hit = {r["key"] for r in seen if r["verdict"] == "deny"}
                assert out["sources"] == len(sources) and out["sources_denied"] == len(hit)
                assert out["packets_denied"] == sum(r["verdict"] == "deny" for r in seen)
                allowed = int(len(sources) * share / 100 + 1e-9)
                assert len(hit) <= allowed, (capture, share, len(hit), allowed)
                limit = out["packets_in_window"]
                if limit > 1:  # and the limit is no larger than it has to be
                    less = rows(re.sub(r"packets: \d+,", f"packets: {limit - 1},", text), capture)
                    assert len({r["key"] for r in less if r["verdict"] == "deny"}) > allowed


def at_once(file, sources):
    """A packet of each of the IPv4 sources, by number, all within a second."""
    head = bytes(12) + b"\x08\0" + struct.pack(">BBHHHBBH", 0x45, 0, 28, 0, 0, 64, 17, 0)
    tail = bytes([192, 0, 2, 80]) + struct.pack(">HHHH", 5000, 53, 8, 0)
    file.write(made_header())
    for i, source in enumerate(sources):
        file.write(struct.pack("<IIII", 1, i * 999999 // len(sources), 42, 42) + head +
                   struct.pack(">I", 0x0a000000 + source) + tail)
    file.flush()


def suggest_whole():
    """The share is of whole sources: 29% of 100 are 29, though a double has less. The k-th of n sends k packets."""
    for n, share, allowed in ((100, 29, 29), (100, 57, 57), (100, 28.99, 28), (100, 58, 58), (7, 99.99, 6)):
        with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
            at_once(file, [k for k in range(1, n + 1) for _ in range(k)])
            out = json.loads(run("suggest", file.name, "--deny-share", f"{share}%", "--json").stdout)
            assert (out["packets_in_window"], out["sources_denied"]) == (n - allowed, allowed), (n, share, out)


def suggest_crowded():
    """No smaller limit would, in the records that the policy will have: of so many sources, some share the wide ones
    that they are measured in, and less share the narrow ones of a small limit."""
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        at_once(file, range(400000))
        out = json.loads(run("suggest", file.name, "--deny-share", "0.1%", "--json").stdout)
        assert out["sources"] == 400000 and out["confirmed"] and out["sources_denied"] <= 400, out
        limit = out["packets_in_window"]
        assert limit > 1 and f"packets: {limit}," in out["policy"], out
        less = json.loads(replay(out["policy"].replace(f"packets: {limit},", f"packets: {limit - 1},"), file.name,
                                 "--json").stdout)
        assert less["denied"] > 400, (limit, less["denied"])


def carpet(file, kind):
    """A capture of many sources, honest ones of both families among them, by `kind`:
    carpet: one source that floods, and 120 of another /24 that send a little each
    flood: one that floods, whose /24 sends the most without it, too
    lonely: 60 of a /24 that send as much as any, and 40 that are alone in theirs and send one packet each"""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, os.path.join(here, "..", "tshark"))
    sys.dont_write_bytecode = True
    import made
    import tunnels
    rng = random.Random(16)
    if kind == "lonely":
        sources = [f"203.0.113.{i}" for i in range(60)] * 4 + [f"10.1.{i}.1" for i in range(40)]
    else:
        sources = ["198.51.100.7"] * 900 + [f"198.51.100.{i}" for i in range(8, 13)] * 8
        sources += [f"10.{i % 4}.{i % 20}.{i}" for i in range(60) for _ in range(rng.randrange(2, 6))]
        sources += ["2001:db8:%x:%x::%x" % (i % 3, 0x1000 * (i % 10), i) for i in range(30)] * 3
        sources += [f"203.0.113.{i}" for i in range(120)] * 4 if kind == "carpet" else []
    rng.shuffle(sources)
    file.write(made_header())
    for n, source in enumerate(sources):
        at = ipaddress.ip_address(source)
        to = ipaddress.ip_address("192.0.2.80" if at.version == 4 else "2001:db8::80").packed
        data = tunnels.ip(at.version, 17, struct.pack(">HHHH", 5000, 53, 8, 0), at.packed + to)
        data = made.ethernet(0x0800 if at.version == 4 else 0x86dd, data)
        file.write(struct.pack("<IIII", n // 1000, n % 1000 * 1000, len(data), len(data)) + data)
    file.flush()
    return sources


def suggest_ladder():
    """A limit for each length: each denies something to no more of its prefixes than the share, and one less
    would, the narrower ones in force. What these deny makes no wider limit larger."""
    for kind, share, ask in (("carpet", 0, "src/[32,24,16],[64,48]"), ("carpet", 3, "src/[32,24,16],[64,48]"),
                             ("flood", 3, "src/[32,24],[64,48]"), ("lonely", 40, "src/[32,24],[128,56]")):
        with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
            sources = {ipaddress.ip_address(s) for s in carpet(file, kind)}
            check_ladder(file.name, sources, kind, share, ask)
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        carpet(file, "flood")
        file.seek(0)
        done = subprocess.run([PACER, "suggest", "-", "--key", "src/[32,24],[64,56]"], stdin=file,
                              stdout=subprocess.PIPE, check=True)
    assert b"Each length was measured by itself" in done.stdout and done.stdout.count(b"- {key") == 2
    run("check", "-c", "-", input=done.stdout.decode())


def check_ladder(capture, sources, kind, share, ask):
    args = ("suggest", capture, "--key", ask, "--deny-share", f"{share}%", "--window", "500ms")
    text, out = run(*args).stdout, json.loads(run(*args, "--json").stdout)
    assert text.endswith(out["policy"]) and out["confirmed"] and out["key"] == ask, text
    head, *lines = re.split(r"(?m)^(?=      - )", out["policy"])
    limits, least = out["limits"], 0
    of = [[int(n) for n in limit["key"].removeprefix("src/").split(",")] for limit in limits]

    def hit(policy_lines):
        """The prefixes that are denied something, by limit."""
        seen = rows(head + "".join(policy_lines), capture)
        nets = {ipaddress.ip_network(r["key"]) for r in seen if r["verdict"] == "deny"}
        return [{n for n in nets if n.prefixlen == each[n.version == 6]} for each in of]

    assert len(lines) == len(limits) == ask.count(",", 0, ask.index("]")) + 1
    for i, (limit, line, all_hit) in enumerate(zip(limits, lines, hit(lines))):
        n = limit["packets_in_window"]
        there = {ipaddress.ip_network((s, of[i][s.version == 6]), False) for s in sources}
        allowed = int(len(there) * share / 100 + 1e-9)
        assert limit["sources"] == len(there) and f'"{limit["key"]}", packets: {n},' in line
        assert limit["sources_denied"] == len(all_hit) <= allowed, (limit, allowed)
        assert f"Of {len(there)} prefixes ({limit['key']})" in text
        assert n >= least  # a wider one has no less
        if n > max(least, 1):
            less = line.replace(f"packets: {n},", f"packets: {n - 1},")
            assert len(hit(lines[:i] + [less])[i]) > allowed, (ask, share, limit)
        least = n
    assert out["packets_denied"] == sum(limit["packets_denied"] for limit in limits)
    assert kind != "flood" or limits[1]["packets_in_window"] < 60, limits  # it is held, and needs no room
    assert kind != "lonely" or limits[0]["packets_in_window"] == limits[1]["packets_in_window"] > 1, limits


def suggest_inner():
    """Of the packets in tunnels, and of no others: a VXLAN's sources, and of a capture without one nothing."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs"))
    sys.dont_write_bytecode = True
    import attacks
    with tempfile.TemporaryDirectory() as folder:
        attacks.main(folder)
        capture = os.path.join(folder, "vxlan.pcap")
        text = run("suggest", capture, "--inner", "--deny-share", "10%", "--key", "src").stdout
        out = json.loads(run("suggest", capture, "--inner", "--deny-share", "10%", "--key", "src", "--json").stdout)
        assert text.endswith(out["policy"]) and "match: {inner: yes}" in text
        said = run("replay", "-c", "-", capture, "--verdicts", input=text).stdout
        seen = list(csv.DictReader(io.StringIO(said)))
        sources = {r["key"] for r in seen}
        hit = {r["key"] for r in seen if r["verdict"] == "deny"}
        assert all(s.startswith(("203.0.113.", "198.51.100.")) for s in sources), sources
        assert out["packets"] == 500 and out["sources"] == len(sources) > 40
        assert {f"203.0.113.{i}" for i in range(1, 5)} <= hit  # the flood's
        assert out["sources_denied"] == len(hit) <= len(sources) // 10, hit
        done = run("suggest", os.path.join(folder, "ntp.pcap"), "--inner", code=(1,))
        assert "in a tunnel" in done.stderr and done.stderr.count("\n") == 1


def inner_alone():
    """In whatever tunnel, packets fare as they would alone, under the same rules for what is in tunnels."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, os.path.join(here, "..", "tshark"))
    sys.dont_write_bytecode = True
    import made
    import tunnels
    rng = random.Random(7)
    wrap = [t for name, t in tunnels.TUNNELS.items()]
    around, alone, time_us = bytearray(made_header()), bytearray(made_header()), 0
    for _ in range(4000):
        family, outer, proto = rng.choice((4, 4, 6)), rng.choice((4, 6)), rng.choice((6, 17, 17, 17))
        kind, host = (0x0800 if family == 4 else 0x86dd), bytes([rng.randrange(12)])
        addresses = b"\x0a\0\0" + host + b"\x0a\1\0\1" if family == 4 else \
            b"\xfd" + bytes(14) + host + b"\xfd" + bytes(14) + b"\xff"
        body = struct.pack(">HH", 5000 + rng.randrange(3), rng.choice((53, 53, 80)))
        body += bytes([0, 12, 0, 0, 1, 2, 3, 4]) if proto == 17 else bytes([0] * 8 + [0x50, 2] + [0] * 6)
        packet = tunnels.ip(family, proto, body, addresses, rng.choice((31, 64)), 0, rng.choice((0, 0, 0, 0x2000, 0x10)))
        inside, carrier = rng.choice(wrap)(kind, packet)[::-1]
        data = tunnels.ip(outer, carrier, inside, tunnels.OUTER4 if outer == 4 else tunnels.OUTER6)
        time_us += rng.randrange(4000)
        for out, frame in ((around, made.ethernet(0x0800 if outer == 4 else 0x86dd, data)),
                           (alone, made.ethernet(kind, packet))):
            out += struct.pack("<IIII", time_us // 1000000, time_us % 1000000, len(frame), len(frame)) + frame
    rules = """rules:
  - {name: near, match: {%sproto: udp, dport: 53, ttl: 1-40}, limits: [{key: src+ttl, packets: 3, window: 1s}]}
  - {name: dns, match: {%sproto: udp, dport: 53}, limits: [{key: src/32,128, packets: 4, window: 2s},
      {key: src, gap: 30ms},
      {key: dst+dport, rate: 9/s, burst: 3}], ban: 200ms}
  - {name: rest%s, limits: [{key: flow, packets: 1, window: 700ms}]}
bans: 64
"""
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, n) for n in ("around.pcap", "alone.pcap")]
        for name, data in zip(files, (around, alone)):
            with open(name, "wb") as f:
                f.write(data)
        texts = (rules % ("inner: yes, ", "inner: yes, ", ", match: {inner: yes}"), rules % ("", "", ""))
        seen = [list(csv.DictReader(io.StringIO(replay(t, f, "--verdicts").stdout))) for t, f in zip(texts, files)]
    assert len(seen[0]) == len(seen[1]) == 4000
    for a, b in zip(*seen):
        assert a == b, (a, b)
    reasons = collections.Counter((r["rule"], r["reason"]) for r in seen[0])
    assert len(reasons) >= 7 and min(reasons.values()) > 5, reasons


def made_header():
    return struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1)


def suggest_once():
    """stdin is not replayed, and the policy says so."""
    with open(path("nano.pcap"), "rb") as f:
        done = subprocess.run([PACER, "suggest", "-"], stdin=f, stdout=subprocess.PIPE, check=True)
    assert b"Not replayed: stdin" in done.stdout
    run("check", "-c", "-", input=done.stdout.decode())


def suggest_usage():
    for args, said in ((("--deny-share", "5"), "not a share"), (("--deny-share", "101%"), "not a share"),
                       (("--deny-share", "-1%"), "not a share"), (("--window", "1"), "not a duration"),
                       (("--key", "source"), "is not a key"), (("--key", 'src"'), "not a key"),
                       (("--key", "src/[24,32],[128,64]"), "can be made of --key src/[24,32],[128,64]"),
                       (("--key", "src/[32,24"), "can be made of --key src/[32,24"),
                       (("--key", "value(geo, src)"), "counts by a set, which a suggested policy has not"),
                       (("--kernel",), "no option"), ((path("nano.pcap"),), "one capture")):
        done = run("suggest", path("nano.pcap"), *args, code=(2,))
        assert said in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, done.stderr
    assert "no IP packet in a tunnel of it" in run("suggest", path("nano.pcap"), "--inner", code=(1,)).stderr
    assert "nothing to suggest" in run("suggest", path("none.pcap"), code=(1,)).stderr
    damaged = run("suggest", path("damaged.pcap"), code=(1,))
    assert "damaged at frame 50" in damaged.stderr and damaged.stderr.count("\n") == 1
    assert "# Of" in damaged.stdout


# ---- the summary ----


def of_table(text):
    """What it says of the keys that were denied most, line by line."""
    return [re.split("  +", line.strip()) for line in text.split("denied most, ")[1].splitlines()[2:]]


def summary():
    """Who was denied most, of how many packets from the first denial on, and how much of them came at once."""
    import captures
    at = []  # milliseconds, and who

    def send(src, *times):
        at.extend((ms, len(at), src) for ms in times)

    send("192.0.2.1", 0, 1, 2, 3, 4, 2000, 2001, 2002, 2003, 4000)
    send("192.0.2.2", *range(10))
    send("198.51.100.1", 0, 4, 11, 12)  # of which the third is 11 ms behind the first
    send("198.51.100.2", 0, 1)
    send("203.0.113.1", 0, 1, 2, 3, 4)
    text = """rules:
  - {name: w, match: {src: 192.0.2.0/24}, limits: [{key: src, packets: 3, window: 1s}]}
  - {name: g, match: {src: 198.51.100.0/24}, limits: [{key: src, gap: 10ms}, {key: dst, packets: 100, window: 1s}]}
  - {name: p, match: {src: 203.0.113.0/24}, over: pass, limits: [{key: src, packets: 1, window: 1s}]}
"""
    made("few.keys", [captures.ip4(src, "10.0.0.1").at(captures.START + ms * 10**6) for ms, _, src in sorted(at)])
    done = replay(text, "few.keys").stdout
    assert done.startswith(path("few.keys") + ": 31 packets in 4 s: admitted 14, denied 17, "), done
    assert "denied most, of 5 keys; each from its first denial on\n" in done, done
    assert of_table(done) == [
        ["w", "src/32,64", "192.0.2.2", "7", "7", "at least 7 packets in 1s against 3"],
        ["p", "src/32,64", "203.0.113.1", "4", "4", "at least 4 packets in 1s against 1"],
        ["w", "src/32,64", "192.0.2.1", "3", "7", "at least 4 packets in 1s against 3"],
        ["g", "src/32,64", "198.51.100.1", "2", "3", "down to 1ms apart against a gap of 10ms"],
        ["g", "src/32,64", "198.51.100.2", "1", "1", "against a gap of 10ms"]], done
    assert "  rule p: admitted 1, denied 4 (window 4) (over: pass: what is denied would pass, too)\n" in done, done
    assert done.count("would pass, too") == 1, done
    assert " (monitor: what is denied would pass, too)\n" in replay("mode: monitor\n" + text, "few.keys").stdout
    # Each limit by where it stands, and what it is; of a ladder one place, and a number for each rung.
    text = "rules: [{name: a, limits: [{key: src, gap: 10ms}, {key: 'src/[32,24],[128,64]', packets: 9, window: 1s, " \
        "wider: x2}, {key: all, packets: 99, window: 1s}]}]"
    limits = json.loads(replay(text, "few.keys", "--json").stdout)["rules"][0]["denies_nothing"]
    assert [(x["limit_index"], x["rung"], x["unit"], x["is"]) for x in limits] == [
        (0, None, "gap_ns", 10**7), (1, 1, "packets", 9), (1, 2, "packets", 18), (2, None, "packets", 99)], limits
    # Times that go back and forth: from the earliest to the latest.
    made("forth.keys", [captures.ip4("192.0.2.1", "10.0.0.1").at(captures.START + s * 10**9) for s in (2, 1, 7, 4)])
    for more in ((), ("--compare", path("flow.yaml"))):
        assert ": 4 packets in 6 s: " in replay(policy("flow"), "forth.keys", *more).stdout


# ---- what else a policy says ----


def frames_of_nano():
    import captures
    return captures.bursts(random.Random(5))


def made(name, frames):
    import captures
    with open(path(name), "wb") as f:
        f.write(captures.pcap(frames, True))
    return name


def allowed():
    """Prefixes of any length, and some within others: who is in one of them is allowed, and nobody else."""
    frames = frames_of_nano()
    for allow in (["0.0.0.0/0"], ["::/0"], ["198.19.0.0/24", "198.19.0.0/16", "198.19.0.0/28"],
                  ["198.19.0.0/24", "198.18.0.0/15", "198.19.0.0/16"],
                  ["2001:db8:1::1/128", "2001:db8:1::/127", "2001:db8:1::2/128"], ["192.0.2.1/32", "2001:db8::/33"]):
        text = policy("flow") + f"allow: {json.dumps(allow)}\n"
        nets = [ipaddress.ip_network(n) for n in allow]
        seen = collections.Counter()
        for frame, row in zip(frames, rows(text, "nano.pcap")):
            want = any(frame.src in n for n in nets if n.version == frame.src.version)
            assert (row["reason"] == "allowed") == want, (allow, frame.src, row)
            seen[want] += 1
        assert seen[True] and seen[False], (allow, seen)


def verdicts():
    """Rules that say what becomes of their packets, whatever these are: in the summary, compared, drawn."""
    done = replay(policy("verdict"), "nano.pcap").stdout
    out = json.loads(replay(policy("verdict"), "nano.pcap", "--json").stdout)
    icmp = next(r for r in out["rules"] if r["name"] == "icmp")
    assert icmp["matched"] == icmp["denied"]["verdict"] > 0 and icmp["denies_nothing"] == []
    keys = re.findall(r"^  icmp  \S+ +\S+ +([0-9,]+) +([0-9,]+)  whatever its rate$", done, re.M)
    assert keys and all(a == b for a, b in keys), done
    assert re.search(r"^  no rule: .*, denied ", done, re.M), done
    both = json.loads(replay(policy("verdict"), "nano.pcap", "--compare", path("none.yaml"), "--json").stdout)
    assert both["denied"] == [out["denied"], 0] and both["stopped_alone"] == both["denied"], both
    assert sum(k["denied"][0] for k in both["keys"]) < out["denied"]  # what no rule matches has no key
    replay(policy("verdict"), "nano.pcap", "--plot", path("v.svg"), env=fake_gnuplot())
    assert "'udp, " in told()[0]


def plot_views():
    """What is drawn of a capture that has one time, of a key that comes at its end, of limits of two kinds."""
    import captures
    start = captures.START
    one = made("one.frame", [captures.ip4("192.0.2.1", "203.0.113.1").at(start)])
    replay(policy("flow"), one, "--plot", path("x.svg"), env=fake_gnuplot())
    text, points = told()
    assert "set xrange [0.000000000:1.000000000]" in text and len(points) == 1601, text[:300]
    assert points[1][2] == "2" and points[-1][1] == "0"
    late = [captures.ip4("192.0.2.1", "203.0.113.1").at(start + i * 10**9) for i in range(100)]
    late += [captures.ip4("192.0.2.2", "203.0.113.1").at(start + 99 * 10**9 + i) for i in range(1, 9)]
    replay(policy("flow"), made("late.key", late), "--plot", path("x.svg"), env=fake_gnuplot())
    text, points = told()
    low, high = map(float, re.search(r"set xrange \[(\S+):(\S+)\]", text).groups())
    assert 98.9 < high < 99.1 and low > 80, (low, high)
    two = ("rules: [{name: two, limits: [{key: src, gap: 1ns}, {key: src, packets: 100, window: 1s}, "
           "{key: dst, packets: 100, window: 1s}]}]")
    replay(two, "late.key", "--plot", path("x.svg"), env=fake_gnuplot())
    assert "'two, 192.0.2.1: 100 packets in any 1s'" in told()[0]
    replay(two, "late.key", "--plot", path("x.svg"), "--plot-key", "192.0.2.2", env=fake_gnuplot())
    assert "'two, 192.0.2.2: " in told()[0]
    gaps = "rules: [{name: gaps, limits: [{key: src, gap: 1ns}, {key: dst, gap: 1ns}]}]"
    replay(gaps, "late.key", "--plot", path("x.svg"), env=fake_gnuplot())  # of what does not count, the first
    assert "'gaps, 192.0.2.1: " in told()[0]
    replay(policy("rules"), "nano.pcap", "--plot", path("x.svg"), "--plot-rule", "rest", env=fake_gnuplot())
    assert "'rest, all: 20 packets in any 5s'" in told()[0]
    replay(policy("throttle"), "backwards.pcap", "--plot", path("x.svg"), env=fake_gnuplot())  # its clock goes back
    assert all(int(p[3]) <= int(p[2]) for p in told()[1])  # free by the uses counted is the most there can be
    # A rule that drops all is not drawn, though its key is denied most; nor a limit behind one that counts.
    many = [captures.ip4("192.0.2.9", "203.0.113.1").at(start + i) for i in range(20)]
    many += [captures.ip4("192.0.2.1", "203.0.113.1").at(start + 20 + i) for i in range(10)]
    both = ("rules: [{name: no, match: {src: 192.0.2.9}, verdict: drop}, {name: some, limits: "
            "[{key: src, packets: %d, window: 1s}, {key: src, rate: 1000000/s, burst: 1000}]}]")
    for packets in (5, 500):
        out = replay(both % packets, made("no.some", many), "--plot", path("x.svg"), "--json", env=fake_gnuplot())
        text, points = told()
        assert json.loads(out.stdout)["denied"] == 20 + (5 if packets == 5 else 0)
        assert "'some, " in text and f"{packets} packets" in text, text[:600]


def plot_fails():
    """A picture that cannot be drawn is said, and none is left."""
    def fails(said, svg="x.svg", gnuplot=None, text=policy("one")):
        env = fake_gnuplot()
        if gnuplot:
            with open(os.path.join(path("fake"), "gnuplot"), "w") as f:
                f.write("#!/bin/sh\ncat >/dev/null\n" + gnuplot)
        open(path("told"), "a").close()  # gnuplot's
        before = sorted(os.listdir(DIR))
        done = replay(text, "spread.pcap", "--plot", path(svg), code=(1,), env=env)
        assert said in done.stderr and done.stderr.count("\n") == 1, done.stderr
        assert sorted(os.listdir(DIR)) == before, set(os.listdir(DIR)) - set(before)

    if os.path.exists(path("x.svg")):
        os.unlink(path("x.svg"))
    fails("x.svg: the picture cannot be drawn: gnuplot failed",
          gnuplot="echo '<svg>a whole picture it seems</svg>'; exit 1\n")
    fails("x.svg: the picture cannot be drawn: gnuplot failed", gnuplot="echo '<svg>a picture that is not whole'\n")
    fails("x.svg: the picture cannot be drawn: gnuplot failed", gnuplot="echo '</svg>'\n")
    fails("x.svg: the picture cannot be drawn: gnuplot failed", gnuplot="kill -9 $$\n")
    fails("File name too long", svg="x" * 300 + ".svg")
    fails("File name too long", svg="./" * 2100 + "x.svg")
    fails("File name too long", svg="./" * ((4094 - len(path("x.svg"))) // 2) + "x.svg")  # but for what is beside it
    fails("those of this limit, a rate, come back bit by bit", text=policy("rates"))


def no_times():
    """A capture whose frames have no times is one burst: each verb says so, in one line on stderr, and does its work."""
    import captures
    frame = captures.ip4("192.0.2.1", "203.0.113.1")
    head = captures.pcapng([])
    with open(path("simple.pcapng"), "wb") as f:
        f.write(head + 200 * captures.block(3, struct.pack("<I", len(frame.data)) + frame.data))
    for args in (("replay", path("simple.pcapng"), "-c", path("one.yaml")), ("suggest", path("simple.pcapng")),
                 ("estimate", path("simple.pcapng")),
                 ("events", "--replay", path("simple.pcapng"), "-c", path("one.yaml"))):
        for form in ((), ("--json",)):
            if args[0] == "suggest" and form:
                continue
            done = run(*args, *form)
            assert done.stderr == f"xdp-pacer: {path('simple.pcapng')}: no frame has a time that can be " \
                "counted with: all 200 count at once, as one burst\n", (args, done.stderr)
            assert not form or json.loads(done.stdout.splitlines()[0] if args[0] == "events" else done.stdout)


def told_at_the_end_of_time():
    """Of frames at the last times that a capture can have, and at those of no clock, each event has a time."""
    import captures
    frame = captures.ip4("192.0.2.1", "203.0.113.1")
    last = 2**63 - 1
    for n, times in enumerate(([last - 10**8 + i * 10**5 for i in range(400)] + [last] * 400, [2**64 - 1] * 400,
                               [last - 7200 * 10**9 + i * 10**7 for i in range(800)] + [last])):
        with open(path(f"late_{n}.pcap"), "wb") as f:
            f.write(captures.pcapng([frame.at(t) for t in times]))
        done = run("events", "--replay", path(f"late_{n}.pcap"), "-c", path("one.yaml"), "--json")
        events = [json.loads(line) for line in done.stdout.splitlines()]
        assert [event["event"] for event in events].count("start") == 1, done.stdout
        for event in events:
            told, began = event["time_ns"], event.get("began_ns", 0)
            assert re.fullmatch(r"2262-04-11T2\d:[0-5]\d:[0-5]\d\.\d{3}Z", event["time"]), event
            assert 0 < began <= event.get("ended_ns", told) <= told < 2**63, event
        rows = replay(policy("one"), f"late_{n}.pcap", "--verdicts").stdout.splitlines()[1:]
        assert len(rows) == len(times)
        for row in rows:
            fields = row.split(",")
            assert int(fields[1]) < 2**63 and int(fields[-1] or 0) < 2**63, row


def tried(files, *args):
    """Run with so many descriptors at most."""
    return run(*args, code=(0, 1, 2),
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files)))


def told_of_a_capture():
    """Events of a capture: how many there were stands below them, and each tells of whom; what was not handed on is told."""
    import captures
    frames = [captures.ip4("192.0.2.1", "203.0.113.1").at(captures.START + n * 5 * 10**9 + i * 10**6)
              for n in range(12) for i in range(400)]
    made("attacks.pcap", frames)
    args = ("events", "--replay", path("attacks.pcap"), "-c", path("one.yaml"), "--quiet", "1s")
    done = run(*args).stdout.splitlines()
    assert re.fullmatch(r".*attacks.pcap: \d+ events in 4,800 packets of 55.4 s, of which 4,320 were denied", done[-1])
    assert int(done[-1].split()[1]) == len(done) - 1 >= 24, done[-1]
    events = [json.loads(line) for line in run(*args, "--json").stdout.splitlines()]
    assert len(events) == len(done) - 1 and events[0]["event"] == "start"
    for event in events:  # each burst is shorter than a second, and none has a greater rate than all of it
        assert event.get("peak_pps", 0) <= event.get("packets", 0), event
        assert event["event"] != "end" or event["packets"] == event["peak_pps"] >= event["pps"] > 0, event
    # Who sends is told of any sample that the policy has, and of one of our own where it has none of what is denied.
    rules = "rules:\n- {name: tcp, match: {proto: tcp}, verdict: pass}\n" \
        "- {name: a, limits: [{key: src, packets: 3, window: 1s}]}\n"
    for sample in ("", "sample: {of: denied, k: 64, window: 10s}", "sample: {of: all, k: 64, window: 10s}",
                   "sample: {of: admitted, k: 64, window: 10s}"):
        asked = ("events", "--replay", path("attacks.pcap"), "-c", "-", "--quiet", "1s", "--json")
        events = [json.loads(line) for line in run(*asked, input=rules + sample + "\n").stdout.splitlines()]
        start = next(event for event in events if event["event"] == "start")
        assert start["rule"] == "a" and "192.0.2.1" in json.dumps(start), (sample, start)
    # No command can be run where there is no descriptor for what it reads.
    few = next(n for n in range(4, 64) if not tried(n, *args).returncode)
    for more in ((), ("--json",)):
        out = tried(few, *args, *more, "--exec", "true").stdout.splitlines()
        last = out[-1] if more else out[-2]
        lost = json.loads(last)["n"] if more else int(re.search(r"lost (\d+) runs of --exec could", last)[1])
        assert lost == len(done) - 1, (lost, out)
    # What is denied is let through: each line says so, and the last one of the policy.
    monitor = "(monitor: what is denied would pass, too)"
    for text, said in ((rules, ""), ("mode: monitor\n" + rules, "mode: monitor"),
                       (rules.replace("name: a,", "name: a, over: pass,"), "over: pass")):
        asked = ("events", "--replay", path("attacks.pcap"), "-c", "-", "--quiet", "1s")
        shown = run(*asked, input=text).stdout.splitlines()
        after = f" ({said} lets them through)" * bool(said)
        starts = [line for line in shown if " start a: " in line]
        assert starts and all(f" packets denied{after} since " in line for line in starts), starts
        assert shown[-1].endswith(" were denied" + f" {monitor}" * ("monitor" in said)), shown[-1]
        events = [json.loads(line) for line in run(*asked, "--json", input=text).stdout.splitlines()]
        assert {e["let_through"] for e in events if e["event"] in ("start", "end")} == {bool(said)}, events
    one = run("events", "--replay", path("nano.pcap"), "-c", path("none.yaml")).stdout
    assert one.count("\n") == 1 and ": 0 events in 1,500 packets" in one, one
    for form in ((), ("--json",)):
        run("events", "--replay", path("damaged.pcap"), "-c", path("one.yaml"), *form, code=(1,))
    run("events", "--replay", path("nano.pcap"), "-c", path("absent.yaml"), code=(1, 2))
    assert "absent.pcap" in run("events", "--replay", path("absent.pcap"), "-c", path("one.yaml"), code=(1,)).stderr


# ---- the picture ----


def fake_gnuplot():
    """A gnuplot that keeps what it is told."""
    folder = path("fake")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "gnuplot"), "w") as f:
        f.write(f"#!/bin/sh\ncat > {path('told')}\necho '<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>'\n")
    os.chmod(os.path.join(folder, "gnuplot"), 0o755)
    return {**os.environ, "PATH": folder + ":" + os.environ["PATH"]}


def told():
    with open(path("told")) as f:
        text = f.read()
    lines = text.split("$d << END_OF_DATA\n")[1].split("END_OF_DATA")[0].split("\n")[:-1]
    return text, [line.split() for line in lines]


def check_points(name, capture, key, capacity, span_ns, closed):
    """used, really free and reported free at each point, against the rows of the key."""
    args = ("--plot-key", key) if key else ()
    replay(policy(name), capture, "--plot", path("out.svg"), *args, env=fake_gnuplot())
    text, points = told()
    all_rows = rows(policy(name), capture)
    start = min(int(r["time_ns"]) for r in all_rows)
    key = re.search(rf"'{name}, (.*): ", text)[1]
    times = [int(r["time_ns"]) for r in all_rows if r["key"] == key and r["verdict"] == "admit"]
    # A point's time is told to a float's precision: nothing is asked of points beside an event.
    slack = span_ns // 4096 + 1000
    base, asked, wrong = None, 0, 0
    for t, used, released, reported, _ in points:
        t = start + round(float(t) * 1e9)
        base = sum(x <= t for x in times) - int(used) if base is None else base
        near = any(abs(x - t) <= slack or abs(x + span_ns - t) <= slack for x in times)
        assert int(used) <= int(reported) <= int(released)
        wrong += int(reported) < int(released)
        if near:
            continue
        asked += 1
        assert int(used) + base == sum(x <= t for x in times), (name, t)
        held = sum(t - span_ns - closed < x <= t for x in times)
        assert int(released) - int(used) == capacity - held, (name, t, released, used, held)
    assert asked > 200, asked
    return wrong


def plot_points():
    """What is drawn is what was judged."""
    assert check_points("flow", "nano.pcap", None, 3, 10**9, 1)
    assert check_points("one", "spread.pcap", None, 40, 10**9, 1)
    check_points("gap", "spread.pcap", "192.0.2.1", 1, 10**6, 0)
    assert check_points("throttle", "spread.pcap", None, 300, 2 * 10**9, 0)


def plot_svg():
    """gnuplot draws it: lines, areas and their names are there, and it is well-formed."""
    out = path("picture.svg")
    replay(policy("one"), "spread.pcap", "--plot", out)
    root = xml.etree.ElementTree.parse(out).getroot()
    words = " ".join(t for t in root.itertext())
    for word in ("used", "really released", "released, as reported", "free, and reported so",
                 "free, but not reported", "denied", "one, ", "40 packets in any 1s"):
        assert word in words, word
    with open(out) as f:
        text = f.read().lower()
    for colour in ("d55e00", "0072b2", "009e73", "f0e442"):
        assert colour in text or f"rgb({int(colour[:2], 16):3d}" in text, colour


def plot_usage():
    one = policy("one")

    def fails(code, said, *args, **more):
        done = replay(one, "spread.pcap", *args, code=(code,), **more)
        assert said in done.stderr and done.stderr.count("\n") == 1, done.stderr

    fails(2, "has no rule two", "--plot", path("x.svg"), "--plot-rule", "two")
    fails(2, "want --plot", "--plot-rule", "one")
    fails(1, "no packet in it has the key", "--plot", path("x.svg"), "--plot-key", "192.0.2.200")
    fails(1, "No such file", "--plot", path("absent/x.svg"))
    data = open(path("spread.pcap"), "rb").read()
    os.link(path("spread.pcap"), path("spread.linked"))
    for name in ("spread.pcap", "spread.linked"):
        fails(2, "would be written over the capture", "--plot", path(name))
    with open(path("plotted.yaml"), "w") as f:
        f.write(one)
    done = run("replay", "-c", path("plotted.yaml"), path("spread.pcap"), "--plot", path("plotted.yaml"), code=(2,))
    assert "would be written over the policy" in done.stderr and open(path("plotted.yaml")).read() == one, done.stderr
    assert open(path("spread.pcap"), "rb").read() == data
    fails(1, "install gnuplot-nox", "--plot", path("x.svg"), env={"PATH": "/nonexistent"})
    with open(path("nano.pcap"), "rb") as f:
        done = subprocess.run([PACER, "replay", "-c", path("one.yaml"), "-", "--plot", path("x.svg")],
                              stdin=f, capture_output=True, text=True)
    assert done.returncode == 2 and "reads the capture twice" in done.stderr and not done.stdout


# ---- long captures, damaged ones ----


def progress():
    """How far it is stands on stderr where that is a terminal, and nowhere else."""
    for more in ((), ("--plot", path("x.svg"))):
        ours, theirs = pty.openpty()
        with subprocess.Popen([PACER, "replay", "-c", path("gap.yaml"), path("many.keys"), *more],
                              stdout=subprocess.DEVNULL, stderr=theirs, env=fake_gnuplot()) as child:
            os.close(theirs)
            shown = b""
            try:
                while part := os.read(ours, 4096):
                    shown += part
            except OSError:  # the other end is closed
                pass
        os.close(ours)
        assert child.returncode == 0 and b"\r65536 packets" in shown, shown
        assert (b", reading 2\r" in shown) == bool(more), shown
        assert shown.endswith(b"\r\x1b[K"), shown  # nothing is left of it
    assert not replay(policy("gap"), "many.keys").stderr
    with open(path("many.keys"), "rb") as f:
        data = f.read()
    with open(path("back.keys"), "wb") as f:  # what is said of its last frame has a line of its own
        f.write(data + struct.pack("<I", 1) + data[28:40 + struct.unpack("<I", data[32:36])[0]])
    ours, theirs = pty.openpty()
    run("replay", "-c", path("gap.yaml"), path("back.keys"), stderr=theirs, stdout=subprocess.DEVNULL)
    os.close(theirs)
    shown = os.read(ours, 4096)
    os.close(ours)
    said = rb"\r65536 packets\x1b\[K\r\x1b\[Kxdp-pacer: [^\r]*back.keys: frame [0-9]+ is [^\r]*\r\n"
    assert re.search(said, shown), shown


def every_cut():
    """A capture cut anywhere: what can be read is judged, the place is named, exit 1."""
    for name in ("damaged.pcap", "damaged_ng.pcap"):
        with open(path(name), "rb") as f:
            data = f.read()[:900]
        whole = 0
        for n in range(0, len(data), 3):
            with open(path("cut"), "wb") as f:
                f.write(data[:n])
            done = replay(policy("flow"), "cut", "--json", code=(0, 1))
            whole += done.returncode == 0
            if done.returncode:
                assert done.stderr.count("\n") == 1 and "cut: " in done.stderr, (name, n, done.stderr)
                judged = re.search(r"damaged at frame (\d+): .*the (\d+) frames", done.stderr)
                if judged:
                    assert json.loads(done.stdout)["packets"] == int(judged[2]) == int(judged[1]) - 1
                else:
                    assert "no frame can be read" in done.stderr and not done.stdout
        assert 1 < whole < 20, whole  # where a frame ends, nothing is wrong


def does_not_fit():
    """A policy whose state does not fit, or a capture that is not there: one line of each verb that judges by it."""
    with open(path("large.yaml"), "w") as f:
        f.write("memory: 1Mi\nrules: [{name: a, limits: [{key: src, packets: 3, window: 1s, entries: 1000000}]}]\n")
    large, flow, capture = path("large.yaml"), path("flow.yaml"), path("nano.pcap")
    for args in (("replay", "-c", large, capture), ("replay", "-c", large, "--verdicts", capture),
                 ("replay", "-c", large, "--compare", flow, capture),
                 ("replay", "-c", flow, "--compare", large, capture),
                 ("events", "-c", large, "--replay", capture),
                 ("why", "-c", large, "--replay", capture, "--frame", "1"),
                 ("why", "-c", large, "--replay", capture, "192.0.2.1")):
        done = run(*args, code=(2,))
        assert "no room for its state" in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, (args, done)
    for args in (("replay", "-c", flow), ("replay", "-c", flow, "--compare", flow), ("suggest",), ("estimate",),
                 ("events", "-c", flow, "--replay"), ("why", "192.0.2.1", "-c", flow, "--replay")):
        done = run(*args, path("absent.pcap"), code=(1,))
        assert "absent.pcap: no frame can be read: No such file" in done.stderr, (args, done)
        assert done.stderr.count("\n") == 1 and not done.stdout, (args, done)


def wrong_families():
    """A set that no packet of its rule can be in: each verb that judges names the policy, and the line."""
    with open(path("six.yaml"), "w") as f:
        f.write('sets: [{name: six, of: ["2001:db8::/32"]}]\n'
                'rules: [{name: a, match: {src: "@six", dst: 192.0.2.0/24}, verdict: drop}]\n')
    said = f"{path('six.yaml')}:2: rule a: match.src is of IPv6 alone"
    for args in (("replay", "-c", path("six.yaml")), ("events", "-c", path("six.yaml"), "--replay"),
                 ("replay", "-c", path("flow.yaml"), "--compare", path("six.yaml")),
                 ("why", "10.0.0.1", "-c", path("six.yaml"), "--replay")):
        done = run(*args, path("nano.pcap"), code=(2,))
        assert said in done.stderr and done.stderr.count("\n") == 1, (args, done.stderr)


def lost():
    """A capture that is damaged before its first frame: one line of each verb that reads it."""
    with open(path("damaged.pcap"), "rb") as f:
        data = f.read()[:30]
    with open(path("lost"), "wb") as f:
        f.write(data)
    for args in (("replay", "-c", path("flow.yaml")), ("replay", "-c", path("flow.yaml"), "--plot", path("x.svg")),
                 ("replay", "-c", path("flow.yaml"), "--compare", path("gap.yaml")),
                 ("suggest",), ("estimate",), ("events", "-c", path("flow.yaml"), "--replay"),
                 ("why", "10.0.0.1", "--at", "1s", "-c", path("flow.yaml"), "--replay"),
                 ("why", "--frame", "1", "-c", path("flow.yaml"), "--replay")):
        done = run(*args, path("lost"), code=(1,))
        assert done.stderr.count("\n") == 1 and "damaged at frame 1: " in done.stderr, (args, done.stderr)
    # One that is damaged later is compared up to there.
    done = replay(policy("flow"), "damaged.pcap", "--compare", path("flow.yaml"), code=(1,))
    assert "damaged at frame 50: " in done.stderr and ": 49 packets in " in done.stdout, done


def peak_kib(*args):
    """The largest memory of a run."""
    code = ("import resource, subprocess, sys; "
            "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    return int(subprocess.run([sys.executable, "-c", code, PACER, *args], capture_output=True,
                              text=True, check=True).stdout)


def denied_for(seconds):
    """A capture of one source that sends 20 a second, of which 17 are denied, and its policy."""
    with open(path("few.yaml"), "w") as f:
        f.write("rules: [{name: a, limits: [{key: src, packets: 3, window: 1s}]}]\n")
    frame = frames_of_nano()[0]
    return made(f"for.{seconds}", [frame.at(10**9 + i * 50_000_000) for i in range(20 * seconds)])


def memory():
    """Ten times the frames of the same keys take no more memory, whatever is asked for."""
    with open(path("nano.pcap"), "rb") as f:
        data = f.read()
    for times, name in ((20, "short.long"), (200, "long.long")):
        with open(path(name), "wb") as f:
            f.write(data[:24])
            for _ in range(times):
                f.write(data[24:])
    for args in (("replay", "-c", path("rules.yaml")), ("suggest",),
                 ("replay", "-c", path("flow.yaml"), "--compare", path("rules.yaml")),
                 ("replay", "-c", path("flow.yaml"), "--plot", path("x.svg"))):
        few, many = (peak_kib(*args, path(n)) for n in ("short.long", "long.long"))
        assert many < few * 1.05 + 512, (args, few, many)
    few, many = (peak_kib("events", "-c", path("few.yaml"), "--replay", path(denied_for(s))) for s in (600, 6000))
    assert many < few * 1.05 + 512, ("events", few, many)
    assert resource.RUSAGE_CHILDREN


globals()[TEST]()
