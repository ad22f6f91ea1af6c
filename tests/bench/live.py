# SPDX-License-Identifier: GPL-2.0-only
"""Real frames over veth pairs: speed, accuracy and goodput of the pacer and of its peers.

      one namespace for the generator          one for each candidate
            c0  --------- veth ---------  s0  the candidate, then a sink
            c1  --------- veth ---------  s0  the next candidate, then a sink

Frames of 64 bytes from 10.0.0.0/8 (drawn), 172.16.0.0/16 and 172.17.0.0/16 (honest) to UDP ports of
198.18.0.1. The sink, in iptables' mangle table behind every candidate, counts what was let
through and drops it; for accuracy, it is a socket.
"""
import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import report

PID = os.getpid()
GENERATOR = f"pacer-bench-{PID}-gen"
K, M = 1 << 10, 1 << 20
AGAIN = min(2, int(os.environ.get("BENCH_AGAIN", 2)))  # floods, until the machine was calm
made = []  # namespaces
at_work = []  # candidates
# What the sink counts apart, in its order. Its chain is iptables' also behind nftables, whose own
# counters cannot be read without reading all of a million elements, for a minute.
SINK = {"quiet": ("-s", "172.16.0.0/16", "-p", "udp", "--dport", "9000"),
        "honest": ("-s", "172.16.0.0/16"), "late": ("-s", "172.17.0.0/16"), "flood": ()}
CHAIN = ("iptables", "-w", "-t", "mangle")


def sh(*command, ns=None, text_in=None, check=True):
    if ns:
        command = ("nsenter", f"--net=/run/netns/{ns}") + command
    done = subprocess.run(command, input=text_in, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def clean():
    for c in at_work:
        c.detach()
    for ns in made:
        subprocess.run(["ip", "netns", "del", ns], stderr=subprocess.DEVNULL)
    made.clear()


def begin():
    """The generator's namespace, once."""
    if GENERATOR in made:
        return
    atexit.register(clean)
    for s in (signal.SIGINT, signal.SIGTERM):
        signal.signal(s, lambda *_: sys.exit(130))
    made.append(GENERATOR)
    sh("ip", "netns", "add", GENERATOR)


# --- the candidates -----------------------------------------------------------------------------

class Limit:
    """A limit a source as each candidate writes it: `n` packets in any `seconds`."""

    def __init__(self, n, seconds, sources, gap=False):
        self.n, self.seconds, self.sources, self.gap = n, seconds, sources, gap
        self.unit = {1: "second", 3600: "hour"}[seconds]
        self.burst = min(n, 5)  # 5 is what both peers take if nothing is said


class Candidate:
    name = ""
    tool = None  # the command that has to be there
    limits = True  # it is a limiter

    def __init__(self, tool_path, limit):
        self.bench, self.limit = tool_path, limit
        index = sum(ns != GENERATOR for ns in made)
        while f"pacer-bench-{PID}-{index}" in made:
            index += 1
        self.ns, self.port = f"pacer-bench-{PID}-{index}", f"c{index}"

    def memory(self):
        return ""

    def open(self, sink=True):
        made.append(self.ns)
        at_work.append(self)
        sh("ip", "netns", "add", self.ns)
        sh("ip", "-n", GENERATOR, "link", "add", self.port, "type", "veth", "peer", "name", "s0",
           "netns", self.ns)
        for knob in ("all", "default", "s0"):
            sh("sysctl", "-qw", f"net.ipv4.conf.{knob}.rp_filter=0", ns=self.ns)
        sh("sysctl", "-qw", "net.ipv6.conf.s0.disable_ipv6=1", ns=self.ns, check=False)
        sh("ip", "-n", self.ns, "link", "set", "s0", "up")
        sh("ip", "-n", GENERATOR, "link", "set", self.port, "up")
        sh("ip", "-n", self.ns, "addr", "add", "198.18.0.1/15", "dev", "s0")
        sh("ethtool", "-K", "s0", "gro", "on", ns=self.ns)
        sh("ethtool", "-K", self.port, "gro", "on", ns=GENERATOR)
        link = json.loads(sh("ip", "-n", self.ns, "-j", "link", "show", "s0"))
        self.mac = link[0]["address"]
        for match in SINK.values() if sink else ():
            sh(*CHAIN, "-A", "PREROUTING", *match, "-j", "DROP", ns=self.ns)

    def close(self):
        self.detach()
        sh("ip", "-n", GENERATOR, "link", "del", self.port)
        sh("ip", "netns", "del", self.ns)
        made.remove(self.ns)
        at_work.remove(self)

    def attach(self):
        pass

    def detach(self):
        pass

    def generate(self, verb, *args):
        """The lines of a run of the generator."""
        out = sh(self.bench, verb, self.port, self.mac, *map(str, args), ns=GENERATOR)
        return [json.loads(line) for line in out.splitlines()]

    def passed(self):
        """What the sink has counted, by class."""
        out = sh(*CHAIN, "-nvxL", "PREROUTING", ns=self.ns).splitlines()[2:]
        return {kind: int(line.split()[0]) for kind, line in zip(SINK, out)}


class Bare(Candidate):
    """A program of bench.bpf.c."""
    name, limits = "XDP_DROP", False
    program = "drop"

    def attach(self):
        sh(self.bench, "attach", "s0", self.program, ns=self.ns)


class Parse(Bare):
    name, program = "parse and drop", "layer_parse"


class Hashed(Bare):
    name, program = "addresses, hash", "hashed"


class Floor(Bare):
    name, program = "the floor", "floor_read"


class FloorClock(Bare):
    name, program = "the floor, the clock", "floor_clock"


class FloorCount(Bare):
    name, program = "the floor, the clock, a counter", "floor_count"


# Sets of members.c, and what is asked of one: nothing but the address; a line of it by hash; its value.
MEMBERS = {"IPv4, hosts": "hosts4", "IPv4, routes": "routes4", "IPv6, hosts": "hosts6",
           "IPv6, /64": "nets6", "IPv6, a feed": "feed6"}
STEPS = {"none": "the address", "read": "one read", "find": "the set"}


def member_class(name, kind, step):
    """A program of bench.bpf.c with such a set."""
    class Member(Candidate):
        limits = False

        def attach(self):
            sh(self.bench, "attach", "s0", f"set{kind[-1]}_{step}", kind, ns=self.ns)
    Member.name = f"{name}: {STEPS[step]}"
    return Member


class Pacer(Candidate):
    name = "xdp-pacer"
    binary = "xdp-pacer"
    top = ""  # further lines of the policy
    first = ""  # rules before its own
    rule = ""  # and of its rule

    def memory(self):
        return "64Mi"  # the default

    def limit_list(self):
        lim = self.limit
        gap = f"{{key: src, gap: {lim.seconds}s}}, " if lim.gap else ""
        return f"{gap}{{key: src, packets: {lim.n}, window: {lim.seconds}s, slots: 10}}"

    def cli(self, *args):
        tool = os.path.join(os.path.dirname(os.path.dirname(self.bench)), self.binary)
        return sh(tool, *args, ns=self.ns)

    def attach(self):
        policy = (f"memory: {self.memory()}\n{self.top}\nrules:\n{self.first}  - name: bench\n{self.rule}\n"
                  f"    limits: [{self.limit_list()}]\n")
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            f.write(policy)
            f.flush()
            self.cli("load", "s0", "-c", f.name, "--direct")


class PacerWindow(Pacer):
    name = "xdp-pacer, a window alone"

    def limit_list(self):
        return "{key: src, packets: 1, window: 1h, slots: 10}"


class PacerRate(Pacer):
    name = "xdp-pacer, a rate"

    def limit_list(self):
        return "{key: src, rate: 1/h, burst: 1}"


class PacerAllow(Pacer):
    name, top = "xdp-pacer, an allow-list", "allow: [192.0.2.0/24]"


class PacerBanned(Pacer):
    """Somebody is banned, whatever his rule; he sends nothing."""
    name, top = "xdp-pacer, a source banned from outside", "bans: 16384"

    def attach(self):
        super().attach()
        self.cli("ban", "s0", "add", "192.0.2.1", "--for", "24h")


class PacerSet(Pacer):
    name = "xdp-pacer, a set"
    top = "sets: [{name: those, of: [10.0.0.0/8, 192.0.2.0/24]}]"
    rule = "    match: {src: '@those'}"


class PacerHeaders(Pacer):
    name = "xdp-pacer, a match on length, TTL and DSCP"
    rule = "    match: {len: 0-1500, ttl: 1-255, dscp: 0-31}"


class PacerPayload(Pacer):
    name = "xdp-pacer, a match on 4 bytes of the payload"
    rule = "    match: {payload: 0=0x00000000}"


class PacerInner(Pacer):
    """Before its rule comes one for what is in tunnels; none of the frames has one."""
    name = "xdp-pacer, a rule for tunnels before"
    first = "  - {name: inside, match: {inner: yes}, verdict: pass}\n"


class PacerSample(Pacer):
    name, top = "xdp-pacer, a sample", "sample: {of: denied, k: 64, window: 60s}"


class Admitted(Pacer):
    """Everything is within the limit, and is dropped after it was counted."""
    name = "xdp-pacer, admitted"
    binary = "bench/dropping/xdp-pacer"
    lengths = (32,)  # of the keys' prefixes

    def limit_list(self):
        # From 64 k sources on, none sends as much as a narrow record can count.
        most = 255 if self.limit.sources >= 64 * K else 2000000000
        return ", ".join(f"{{key: 'src/{n},64', window: 1s, slots: 10, "
                         f"packets: {most if n == 32 else 2000000000}}}" for n in self.lengths)

    def passed(self):
        """By the pacer's own count, as nothing gets to the sink."""
        stats = json.loads(self.cli("stats", "s0", "--json"))
        return {"admitted": stats["rules"][0]["admitted"]}


class AdmittedBans(Admitted):
    name, rule = "xdp-pacer, admitted, by a rule that bans", "    ban: 1h"


class AdmittedKnown(Admitted):
    """Of known flows, as far as there is room for them: one a source."""
    name, top = "xdp-pacer, admitted, of new flows alone", "flows: 256k"

    def limit_list(self):
        return super().limit_list().replace("}", ", of: new}")


class AdmittedTwo(Admitted):
    name, lengths = "xdp-pacer, admitted by two keys", (32, 24)


class AdmittedFive(Admitted):
    name, lengths = "xdp-pacer, admitted by five keys", (32, 28, 24, 20, 16)


class XdpFilter(Candidate):
    name, tool, limits = "xdp-filter (static list)", "xdp-filter", False

    def attach(self):
        sh("xdp-filter", "load", "s0", "-m", "native", "-f", "ipv4", "-p", "deny", ns=self.ns)

    def detach(self):
        sh("xdp-filter", "unload", "s0", ns=self.ns, check=False)


class Nft(Candidate):
    name, tool = "nftables, netdev ingress", "nft"
    table, hook = "netdev", "ingress device s0 priority 0"

    def size(self):
        return max(65535, 2 * self.limit.sources)

    def memory(self):
        return f"size {self.size()}"

    def attach(self):
        lim = self.limit
        sh("nft", "-f", "-", ns=self.ns, text_in=f"""
table {self.table} bench {{
	set s {{ type ipv4_addr; size {self.size()}; flags dynamic,timeout; timeout 2h; }}
	chain in {{
		type filter hook {self.hook}; policy accept;
		add @s {{ ip saddr limit rate over {lim.n}/{lim.unit} burst {lim.burst} packets }} drop
	}}
}}
""")


class NftPrerouting(Nft):
    name = "nftables, prerouting"
    table, hook = "ip", "prerouting priority raw"


class NftDefault(Nft):
    name = "nftables, netdev ingress, default size"

    def size(self):
        return 65535


class Hashlimit(Candidate):
    name, tool = "iptables hashlimit, raw", "iptables"
    sized = True

    def memory(self):
        return f"buckets {self.buckets()}" if self.sized else "default"

    def buckets(self):
        return min(max(65536, self.limit.sources), M)  # the kernel takes no more, of entries either

    def attach(self):
        lim = self.limit
        size = ("--hashlimit-htable-size", str(self.buckets()), "--hashlimit-htable-max",
                str(min(2 * self.buckets(), M))) if self.sized else ()
        sh("iptables", "-t", "raw", "-A", "PREROUTING", "-m", "hashlimit", "--hashlimit-name",
           "bench", "--hashlimit-mode", "srcip", "--hashlimit-above", f"{lim.n}/{lim.unit}",
           "--hashlimit-burst", str(lim.burst), "--hashlimit-htable-expire", "7200000", *size,
           "-j", "DROP", ns=self.ns)


class HashlimitDefault(Hashlimit):
    name, sized = "iptables hashlimit, raw, default size", False


def present(classes):
    """Those whose tool is there; a line for each that is not."""
    found = []
    for c in classes:
        if c.tool and not shutil.which(c.tool):
            print(f"NOTE: {c.name}: left out, as {c.tool} is not installed")
        else:
            found.append(c)
    return found


def opened(classes, bench, limit, sink=True):
    """Candidates at work; those that cannot be are named and left out."""
    begin()
    found = []
    for c in classes:
        one = c(bench, limit)
        try:
            one.open(sink)
            one.attach()
            found.append(one)
        except (RuntimeError, OSError) as why:
            print(f"NOTE: {one.name}: left out: {why}")
    return found


# --- the machine --------------------------------------------------------------------------------

def kernel_kib():
    """What the kernel has taken for tables: slabs, vmalloc, per-CPU memory."""
    with open("/proc/meminfo") as f:
        return sum(int(line.split()[1]) for line in f
                   if line.split(":")[0] in ("Slab", "VmallocUsed", "Percpu"))


def wait_freed(before_kib):
    """Until a candidate's tables are freed, which the kernel does by and by."""
    for _ in range(100):
        if kernel_kib() < before_kib + 16 * 1024:
            return
        time.sleep(0.3)


# --- the parts ----------------------------------------------------------------------------------

# Of what the pacer's own cost is made, beside it and its peers.
LIVE = (Bare, Parse, Hashed, Floor, FloorClock, FloorCount, Pacer, PacerWindow, PacerRate, PacerAllow,
        PacerBanned, PacerSet, PacerHeaders, PacerPayload, PacerInner, PacerSample, Admitted, AdmittedBans, AdmittedKnown,
        AdmittedTwo, AdmittedFive,
        XdpFilter, Nft, NftPrerouting, Hashlimit)
OF_ONE = (Bare, Parse, Floor, Pacer, XdpFilter, Nft, NftPrerouting, Hashlimit)  # of one source, too


def rows_of(part, classes, bench, sources, rounds, frames):
    """Total ns a packet of each candidate, in turn, so often; one packet an hour a source, which each has had."""
    runners = opened(present(classes), bench, Limit(1, 3600, sources, gap=True))
    got = {c: [] for c in runners}
    rows = []
    # Before each figure, as the others had the caches meanwhile.
    warm = 2 * sources if sources <= 64 * K else 20000
    for c in runners:
        if c.limits:
            c.generate("flood", sources, max(2 * sources, K), "sweep")
        c.before = sum(c.passed().values())
    for _ in range(rounds):
        for c in runners:
            got[c] += c.generate("flood", sources, frames, warm)
    for c in runners:
        passed = sum(c.passed().values()) - c.before
        rows.append({"part": part, "name": c.name, "sources": sources, "memory": c.memory(),
                     "ns": [g["cpu_ns"] / g["frames"] for g in got[c]],
                     "busy": [g["busy"] for g in got[c]],
                     "admitted": passed / sum(g["flood"] for g in got[c])})
        c.close()
    return rows


def live(bench, quick):
    """Refused packets, of the pacer, its peers and what there is to compare with."""
    rows = []
    for sources in (K, 64 * K, M) if quick else (1, K, 64 * K, M):
        rows += rows_of("live", OF_ONE if sources == 1 else LIVE, bench, sources,
                        *((3, 200000) if quick else (9, 1000000)))
    return rows


def members(bench, quick):
    """Whether a source is in a set of 1 M prefixes, beside one read of the memory that it takes."""
    rows = []
    for sources in (K, 64 * K, M):
        for name, kind in MEMBERS.items():
            rows += rows_of("members", [member_class(name, kind, step) for step in STEPS], bench,
                            sources, *((3, 200000) if quick else (9, 1000000)))
    return rows


def accuracy(bench, quick):
    """1,024 sources far above 10/s: what was admitted, in the worst window and in total."""
    seconds, sources, n = (2 if quick else 6), K, 10
    rows = []
    for cls in present((Pacer, Nft, NftPrerouting, Hashlimit)):
        for c in opened((cls,), bench, Limit(n, 1, sources), sink=False):
            receiver = subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{c.ns}", bench, "receive", str(n), "999",
                 str(seconds * 1000 + 700)], stdout=subprocess.PIPE, text=True)
            receiver.stdout.readline()
            sent = c.generate("stamp", sources, seconds * 1000)[-1]
            got = json.loads(receiver.stdout.readline())
            receiver.wait()
            rows.append({"part": "accuracy", "name": c.name, "sources": sources, "limit": n,
                         "burst": None if cls is Pacer else c.limit.burst,
                         "busy": [sent["busy"]], "sent": sent["flood"], "seconds": sent["wall_ns"] / 1e9,
                         "allowed": round(sources * n * sent["wall_ns"] / 1e9), **got})
            c.close()
    return rows


def goodput_of(c, sources, honest, n, times, before):
    """One candidate under one flood."""
    attached = kernel_kib()
    first, both = c.generate("mix", sources, honest, honest * n // 2, *times)
    passed, after = c.passed(), kernel_kib()
    sent = {"quiet": first["honest"], "honest": both["honest"] - first["honest"],
            "late": both["late"], "flood": both["flood"]}
    most = sources * n * (both["wall_ns"] / 1e9 + 1)
    return {"part": "goodput", "name": c.name, "sources": sources, "memory": c.memory(),
            "sent": sent, "busy": [both["busy"]],
            "stood_still_ms": round(both["behind_ns"] / 1e6),
            "allowed": min(1.0, most / max(both["flood"], 1)), "passed": passed,
            "share": {k: passed[k] / v if v else None for k, v in sent.items()},
            "flood_pps": round(both["flood"] * 1e9 / both["wall_ns"]),
            "attached_mib": round((attached - before) / 1024, 1),
            "flood_mib": round((after - attached) / 1024, 1)}


def goodput(bench, quick):
    """1,000 honest sources at half of 10/s, a flood, and 1,000 more that come during it."""
    times = (1000, 1800) if quick else (2000, 6000)  # ms: quiet, flood
    honest, n = 1000, 10
    classes = (Pacer, Nft, Hashlimit) if quick else (
        Pacer, Nft, NftDefault, NftPrerouting, Hashlimit, HashlimitDefault)
    rows = []
    for sources in ((M,) if quick else (K, 64 * K, M, 16 * M)):
        for cls in present(classes):
            best = None
            for _ in range(AGAIN):
                before = kernel_kib()
                for c in opened((cls,), bench, Limit(n, 1, sources)):
                    row = goodput_of(c, sources, honest, n, times, before)
                    c.close()
                    wait_freed(before)
                    if not best or row["busy"] < best["busy"]:
                        best = row
                if not best or best["busy"][0] <= report.BUSY:
                    break
            if best:
                rows.append(best)
    return rows


def cpu_ns(pid):
    with open(f"/proc/{pid}/schedstat") as f:
        return int(f.read().split()[0])


def followed(c, seconds, flood):
    """The CPU time that a follower takes, ms a second, while `flood` goes on."""
    tool = os.path.join(os.path.dirname(os.path.dirname(c.bench)), c.binary)
    with subprocess.Popen(["nsenter", f"--net=/run/netns/{c.ns}", tool, "events", "s0", "--follow", "--json"],
                          stdout=subprocess.DEVNULL) as follower:
        flood()  # it has told the beginning
        time.sleep(1)
        began, spent = time.monotonic(), cpu_ns(follower.pid)
        while time.monotonic() < began + seconds:
            flood()
        took = time.monotonic() - began
        spent = cpu_ns(follower.pid) - spent
        follower.terminate()
    return spent / 1e6 / took


def follow(bench, quick):
    """What `events --follow` costs who runs it: no packet pays for it."""
    seconds, sources = (2, K) if quick else (10, M)
    rows = []
    for cls in (Pacer, PacerSample):
        for c in opened((cls,), bench, Limit(10, 1, sources)):
            for name, flood in (("no traffic", lambda: time.sleep(0.2)),
                                (f"a flood of {report.size_text(sources)} sources",
                                 lambda c=c: c.generate("flood", sources, 200000, "sweep"))):
                rows.append({"part": "follow", "name": c.name, "under": name,
                             "cpu_ms_per_s": round(followed(c, seconds, flood), 2)})
            c.close()
    return rows
