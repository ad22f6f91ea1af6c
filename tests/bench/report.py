# SPDX-License-Identifier: GPL-2.0-only
"""From rows of figures to medians, ratios and tables."""
import statistics

SIZES = (1, 1 << 10, 1 << 16, 1 << 20, 1 << 24)


def size_text(n):
    for unit, name in ((1 << 20, " M"), (1 << 10, " k")):
        if n >= unit:
            return f"{n // unit}{name}"
    return str(n)


BUSY = 0.05  # of the machine's time was others': calm.h's CALM_BUSY

# What costs more by what: a name, and the one beside which it is measured.
MORE = {
    "layers": {"admitted, nobody banned": "admitted, window",
               "admitted, nobody banned, no filter": "admitted, window",
               "refused, banned": "refused, gap and window",
               "refused, pool spent": "refused, gap and window",
               "refused, redirected": "refused, gap and window",
               "sampling others": "not sampled", "sampled by time": "not sampled",
               "sampled without replacement": "not sampled",
               "sampled by time, heads kept": "not sampled"},
    "live": {"xdp-pacer, an allow-list": "xdp-pacer",
             "xdp-pacer, a source banned from outside": "xdp-pacer",
             "xdp-pacer, a set": "xdp-pacer",
             "xdp-pacer, a match on length, TTL and DSCP": "xdp-pacer",
             "xdp-pacer, a match on 4 bytes of the payload": "xdp-pacer",
             "xdp-pacer, a rule for tunnels before": "xdp-pacer",
             "xdp-pacer, a sample": "xdp-pacer",
             "xdp-pacer, admitted, by a rule that bans": "xdp-pacer, admitted"},
}


def calm_of(*rows):
    """Which rounds of all these to take: those that nothing disturbed, if they are half or more."""
    calm = [all(b <= BUSY for b in busy) for busy in zip(*(r["busy"] for r in rows))]
    return calm if 2 * sum(calm) >= len(calm) else [True] * len(calm)


def median(values, calm):
    return statistics.median(v for v, c in zip(values, calm) if c)


def paired(a, b, how):
    """Round by round, so that what disturbs a round disturbs both."""
    return median([how(x, y) for x, y in zip(a["samples"], b["samples"])], calm_of(a, b))


def digest(rows):
    """Medians in place of lists; ratios to the same run's `parse`; what costs more by how much."""
    for r in rows:
        if "busy" in r:
            r["repetitions"], r["disturbed"] = len(r["busy"]), sum(b > BUSY for b in r["busy"])
        if isinstance(r.get("ns"), list):
            r["samples"] = r["ns"]
            r["ns"] = median(r["samples"], calm_of(r))
            r["least_ns"] = min(s for s, c in zip(r["samples"], calm_of(r)) if c)
        if "taken_ns" in r:
            r["quantiles_ns"] = [quantile(r["taken_ns"], q) for q in (0.5, 0.9, 0.99)]
    for r in rows:
        same = {"part": r["part"], "sources": r.get("sources"), "cpus": r.get("cpus")}
        if r["part"] == "layers":
            for name, ratio in (("parse", "ratio"), ("bare drop", "ratio_drop")):
                base = find(rows, name=name, **same)
                if base:
                    r[ratio] = round(paired(r, base, lambda a, b: a / b), 2)
        of = MORE.get(r["part"], {}).get(r["name"])
        if r["part"] == "layers" and of and of != "not sampled":
            same["memory"] = "64Mi"
        base = of and find(rows, name=of, **same)
        if base:
            r["more_ns"] = round(paired(r, base, lambda a, b: a - b), 2)
    return rows


def believed(row):
    """Was the machine calm while it was measured?"""
    return 2 * row.get("disturbed", 0) <= row.get("repetitions", 1)


def print_busy(rows):
    """Returns how many figures are not to be believed."""
    wrong = [r for r in rows if not believed(r)]
    again = sum(r.get("disturbed", 0) for r in rows)
    print(f"\nDisturbed by other work for more than {BUSY:.0%} of the time, although repeated: {again} "
          f"of {sum(r.get('repetitions', 0) for r in rows)} measurements")
    if wrong:
        print(f"TOO BUSY: {len(wrong)} of {len(rows)} figures are not to be believed, as other work "
              "disturbed most of their measurements:")
    for r in wrong[:10]:
        print(f"  {r['part']}, {r['name']}, {size_text(r.get('sources', 1))}")
    if len(wrong) > 10:
        print(f"  and {len(wrong) - 10} more")
    return len(wrong)


def print_machine(host):
    print(f"{host['cpu']}, {host['cpus']} CPUs, Linux {host['kernel']}, {host['date']}, "
          f"load {host['load']:.2f}")


def table(title, columns, lines):
    """Lines are (label, [cell]); cells are text."""
    print(f"\n{title}")
    wide = max([len(label) for label, _ in lines] + [20])
    widths = [max(len(c), *(len(cells[i]) for _, cells in lines), 7)
              for i, c in enumerate(columns)]
    print("  " + " " * wide + "".join("  " + c.rjust(w) for c, w in zip(columns, widths)))
    for label, cells in lines:
        print(f"  {label:<{wide}}" + "".join("  " + c.rjust(w) for c, w in zip(cells, widths)))


def by_size(rows, cell):
    sizes = [s for s in SIZES if any(r["sources"] == s for r in rows)]
    labels = list(dict.fromkeys(r["label"] for r in rows))
    found = {(r["label"], r["sources"]): cell(r) for r in rows}
    return ([size_text(s) for s in sizes],
            [(label, [found.get((label, s), "") for s in sizes]) for label in labels])


def ns_ratio(r):
    return f"{r['ns']:.1f} ({r['ratio']:.2f})" if "ratio" in r else f"{r['ns']:.1f}"


def print_layers(rows):
    rows = [dict(r) for r in rows if r["part"] == "layers"]
    for r in rows:
        r["label"] = r["name"] + (f" [{r['memory']}]" if "memory" in r else "")
    one = [r for r in rows if r["cpus"] == 1 and r["name"] != "refused, rules" and
           "sampl" not in r["name"]]
    table("A packet by BPF_PROG_TEST_RUN, ns, one CPU (times `parse`), by number of sources; every "
          "figure has the drawing of the source in it", *by_size(one, ns_ratio))
    table("The same, times bare drop", *by_size(
        [r for r in one if r["name"] in ("bare drop", "parse") or ("window" in r["name"] and
         "exact" not in r["name"])], lambda r: f"{r['ratio_drop']:.2f}" if "ratio_drop" in r else ""))
    two = [r for r in rows if r["cpus"] == 2]
    if two:
        table("The same on two CPUs at once, ns a packet on each (times `parse`)",
              *by_size(two, ns_ratio))
    rules = [r for r in rows if r["name"] == "refused, rules"]
    table("The same refused, 1 k sources, one CPU, by number of rules",
          [str(r["rules"]) for r in rules],
          [("refused, gap and window", [ns_ratio(r) for r in rules])])
    print_sampling(rows)
    print_limiters(rows)
    wrong = [r for r in rows if "admitted" in r and
             abs(r["admitted"] - r["name"].startswith("admitted")) > 0.01]
    for r in wrong:
        print(f"  NOTE: {r['label']}, {size_text(r['sources'])}, {r['cpus']} CPUs: "
              f"{r['admitted']:.1%} were admitted")


def more_text(row):
    return f"{row['more_ns']:+.1f}" if row and "more_ns" in row else ""


def print_limiters(rows):
    """What bans and pools add to a packet."""
    sizes = [s for s in SIZES if find(rows, name="admitted, nobody banned", sources=s)]
    lines = [(name, [more_text(find(rows, part="layers", name=name, sources=s, cpus=1))
                     for s in sizes])
             for name, base in MORE["layers"].items() if base != "not sampled"]
    if sizes:
        table("Bans and pools: ns a packet more than without, one CPU, by number of sources; "
              "no filter: the exact table is asked for every packet",
              [size_text(s) for s in sizes], lines)


def print_sampling(rows):
    base = find(rows, name="not sampled")
    sampled = [find(rows, name=n) for n, of in MORE["layers"].items() if of == "not sampled"]
    if base and all(sampled):
        table("The same refused, 1 k sources, one CPU, with samples of 64: ns, and ns more than "
              "without", ["ns", "more"],
              [(r["name"], [f"{r['ns']:.1f}", more_text(r)]) for r in [base] + sampled])


def print_dearest(rows):
    rows = [r for r in rows if r["part"] == "dearest"]
    table("The dearest single packets of a sampled path (of time: at a tick's end, taken by all 64 "
          "samples at once; of packets: taken by one): ns", ["counted", "median", "90 %", "99 %"],
          [(r["name"] + (", cold caches" if r["cold"] else ""),
            [f"{ns}" for ns in [r["counted_ns"], *r["quantiles_ns"]]])
           for r in rows])


def quantile(values, q):
    return sorted(values)[int(q * (len(values) - 1))]


def print_core(rows):
    rows = [dict(r, label=r["name"]) for r in rows if r["part"] == "core"]
    table("The core in user space, as replay runs it (parse and pace; reading aside): million packets "
          "a second of one core, by number of sources (ns a packet)",
          *by_size(rows, lambda r: f"{1e3 / r['ns']:.1f} ({r['ns']:.0f})"))
    for r in rows:
        if abs(r["admitted"] - r["name"].startswith("admitted")) > 0.01:
            print(f"  NOTE: {r['label']}, {size_text(r['sources'])}: {r['admitted']:.1%} were "
                  "admitted")


def print_state(window):
    """Of a gap and a window, what `xdp-pacer check --json` says of their state."""
    records = window["records"] + window["shared"]
    of = window["state_bytes"] / records
    print(f"\nState, one gap and one window of {window['slots']} slots: {of:.0f} bytes a record, "
          f"{records} of them in {window['state_bytes'] >> 20} MiB; a third are shared, so "
          f"{1.5 * of:.0f} bytes a source that has one of its own")


def print_part(part, rows):
    {"core": print_core, "layers": print_layers, "dearest": print_dearest, "live": print_live,
     "members": print_members, "accuracy": print_accuracy, "goodput": print_goodput, "floods": print_floods,
     "fleet": print_fleet, "follow": print_follow}[part](rows)


def print_follow(rows):
    rows = [r for r in rows if r["part"] == "follow"]
    under = list(dict.fromkeys(r["under"] for r in rows))
    if rows:
        table("CPU time of `events --follow`, ms a second", under,
              [(name, [f"{r['cpu_ms_per_s']:.2f}" for r in rows if r["name"] == name])
               for name in dict.fromkeys(r["name"] for r in rows)])


FLEETS = ("even", "skewed", "moving", "a key, of one host", "a key, skewed", "a key, moving")


def print_fleet(rows):
    """Of user/fleet on a virtual clock: the same in every run."""
    rows = [r for r in rows if r["part"] == "fleet" and r["name"] in FLEETS]
    table("A limit that a fleet divides, twice of which comes: the part of it that the hosts use once "
          "shares have settled (from the first second on), by number of hosts",
          [str(r["hosts"]) for r in rows if r["name"] == "even"],
          [(name, [f"{r['settled']:.1%} ({r['used']:.1%})" for r in rows if r["name"] == name])
           for name in FLEETS])
    table("Calls of the store a second and host, on average (at most in a second)",
          [str(r["hosts"]) for r in rows if r["name"] == "even"],
          [(name, [f"{r['calls_per_s']:.1f} ({r['most_calls_per_s']:.1f})" for r in rows if r["name"] == name])
           for name in FLEETS])


# --- targets ------------------------------------------------------------------------------------

def find(rows, **want):
    for r in rows:
        if all(r.get(k) == v for k, v in want.items()):
            return r
    return None


def core_targets(rows):
    """Million packets a second, at least."""
    for r in rows:
        if r["part"] == "core":
            yield (f"core, M packets/s: {r['name']}, {size_text(r['sources'])}", 1e3 / r["ns"], 10,
                   True)


def fleet_targets(rows):
    for r in rows:
        if r["part"] == "fleet" and r["name"] in FLEETS:
            name = f"fleet: {{}}, {r['name']} demand, {r['hosts']} host{'s' * (r['hosts'] > 1)}"
            yield name.format("used of the limit"), r["settled"], 0.95 if r["name"] == "even" else 0.9, True
            moves = r["name"].endswith("moving")
            yield (name.format("calls of the store a second and host"),
                   r["most_calls_per_s" if moves else "calls_per_s"], 50 if moves else 10, False)


def layer_targets(rows):
    """(what, ratio, target)"""
    for name, goals in (("refused, gap and window", (2.0, 4.0, 6.0)),
                        ("admitted, window", (2.5, 5.0, 8.0))):
        for size, goal in zip(SIZES[1:4], goals):
            if name.startswith("admitted") and size == 1 << 20:
                name = "admitted, narrow window"  # of as many sources as a policy admits, mostly
            r = find(rows, part="layers", name=name, sources=size, cpus=1, memory="64Mi")
            if r:
                yield f"test_run: {name} / parse, {size_text(size)}", r["ratio"], goal
    for name, goal in (("refused, gap and window", 1.1), ("admitted, window", 3),
                       ("admitted, throttle", 1.2), ("refused, throttle", 1.2)):
        one = find(rows, part="layers", name=name, sources=1, cpus=1)
        two = find(rows, part="layers", name=name, sources=1, cpus=2)
        if one and two:
            yield f"test_run: {name}, one hot key, two CPUs / one", two["ns"] / one["ns"], goal
    few = find(rows, part="layers", name="refused, rules", rules=1)
    many = find(rows, part="layers", name="refused, rules", rules=64)
    if few and many:
        yield "test_run: 64 rules / one", many["ns"] / few["ns"], 1.1


def sample_targets(rows):
    """(what, ns, target)"""
    for r in rows:
        if "more_ns" in r and r["name"] in ("sampled by time", "sampled without replacement"):
            yield f"test_run: {r['name']}, ns more", r["more_ns"], 15
        if r["part"] == "dearest" and "heads" not in r["name"]:
            yield (f"dearest packet, {r['name']}{', cold caches' if r['cold'] else ''}: median, ns",
                   r["quantiles_ns"][0], 5000)


# At 1 k, 64 k and 1 M sources: (a, b, the most that a / b may be).
LIVE_RATIOS = (
    ("xdp-pacer", "XDP_DROP", (1.2, 1.5, 2.2)),
    ("xdp-pacer", "the floor", (1.10, 1.25, 1.5)),
    ("xdp-pacer, admitted", "the floor", (1.35, 1.7, 2.2)),
    ("xdp-pacer, a rate", "the floor", (None, None, 1.3)),
    ("xdp-pacer, admitted by two keys", "xdp-pacer, admitted", (None, None, 1.3)),
    ("xdp-pacer, admitted by five keys", "xdp-pacer, admitted", (None, None, 2)),
)


def live_targets(rows):
    """(what, value, target, at least that?)"""
    def row(name, size):
        return find(rows, part="live", name=name, sources=size)

    for a, b, goals in LIVE_RATIOS:
        for size, most in zip(SIZES[1:4], goals):
            if most and row(a, size) and row(b, size):
                yield (f"live: {a} / {b}, {size_text(size)}", row(a, size)["ns"] / row(b, size)["ns"],
                       most, False)
    for size in SIZES[1:4]:
        bans = row("xdp-pacer, admitted, by a rule that bans", size)
        if bans and "more_ns" in bans:
            yield (f"live: a rule that bans, nobody banned, ns more, {size_text(size)}",
                   bans["more_ns"], 5, False)
    for size, least, above in zip(SIZES[1:4], (4.5, 5.5, 5.5), (25, 16, 10)):
        ours, drop = row("xdp-pacer", size), row("XDP_DROP", size)
        nft = row("nftables, netdev ingress", size)
        if ours and drop and nft:
            yield (f"live: nft ingress / xdp-pacer, {size_text(size)}", nft["ns"] / ours["ns"], least,
                   True)
            if ours["ns"] > drop["ns"]:
                yield (f"live: nft ingress / xdp-pacer, above XDP_DROP, {size_text(size)}",
                       (nft["ns"] - drop["ns"]) / (ours["ns"] - drop["ns"]), above, True)


def member_sets(rows):
    """Of each set and size: its name, the size, and the three rows."""
    mine = [r for r in rows if r["part"] == "members"]
    for r in mine:
        name, step = r["name"].split(": ")
        if step == "the set":
            yield (name, r["sources"], *(find(mine, name=f"{name}: {s}", sources=r["sources"])
                                         for s in ("the address", "one read", "the set")))


def members_targets(rows):
    for name, sources, _, read, found in member_sets(rows):
        if read:
            yield (f"live: a set of 1 M, {name} / one read, {size_text(sources)}",
                   found["ns"] / read["ns"], 1.25, False)


def goodput_targets(rows):
    for r in rows:
        if r["part"] == "goodput" and r["name"].startswith("xdp-pacer"):
            goal = 0.999 if r["sources"] <= 1 << 16 else 0.99
            for kind in ("honest", "late"):
                yield (f"goodput: {kind} sources' share, flood of {size_text(r['sources'])}",
                       r["share"][kind], goal, True)


def floods_targets(rows):
    for r in rows:
        if r["part"] == "floods":
            goal = 0.99 if r["memory"].endswith("pps") else 0.95
            for kind, least in (("established", 1), ("newcomers", goal), ("sparse", goal)):
                yield f"floods: {r['name']}: {kind}", r[kind], least, True


def targets_of(rows):
    all_of = [(*t, False) for t in [*layer_targets(rows), *sample_targets(rows)]]
    all_of += [*core_targets(rows), *live_targets(rows), *members_targets(rows), *goodput_targets(rows),
               *floods_targets(rows), *fleet_targets(rows)]
    return [{"what": what, "value": round(value, 4), "target": goal,
             "rule": "at least" if least else "at most",
             "met": value >= goal if least else value <= goal}
            for what, value, goal, least in all_of]


def print_targets(found):
    if found:
        table("Targets (ratios of medians in this run)", ["value", "target", ""],
              [(t["what"], [f"{t['value']:.4g}", f"{t['rule']} {t['target']:g}",
                            "met" if t["met"] else "MISSED"]) for t in found])


# --- live ---------------------------------------------------------------------------------------

PEERS = ("XDP_DROP", "parse and drop", "the floor", "xdp-pacer", "xdp-filter (static list)",
         "nftables, netdev ingress", "nftables, prerouting", "iptables hashlimit, raw")

# Where a refused packet's time goes: what is added, and the row that has it.
SPENT = (("generating, veth, a program that drops", "XDP_DROP"),
         ("addresses, hash", "addresses, hash"),
         ("one read of a 64 MiB table, a branch on it: the floor", "the floor"),
         ("the coarse clock", "the floor, the clock"),
         ("a counter", "the floor, the clock, a counter"),
         ("all else: parser, policy, both entries, the window", "xdp-pacer, a window alone"),
         ("a gap beside the window", "xdp-pacer"))


def live_of(rows):
    return [dict(r, label=r["name"]) for r in rows if r["part"] == "live"]


def times(rows, base):
    """A cell: ns, and times those of `base` with as many sources."""
    of = {r["sources"]: r["ns"] for r in rows if r["name"] == base}
    return lambda r: f"{r['ns']:.0f}" + (
        f" ({r['ns'] / of[r['sources']]:.2f})" if r["sources"] in of else "")


def print_live_peers(rows):
    rows = live_of(rows)
    peers = [r for r in rows if r["name"] in PEERS]
    if peers:
        table("A refused frame of 64 bytes over veth, total CPU ns with its generation, by number of "
              "sources (times XDP_DROP)", *by_size(peers, times(rows, "XDP_DROP")))


def print_live_own(rows):
    rows = live_of(rows)
    own = [r for r in rows if r["name"] == "the floor" or r["name"].startswith("xdp-pacer")]
    sizes = SIZES[1:4]
    if own:
        table("The same of what the pacer can be asked to do; admitted: dropped after it was counted "
              "(times the floor)", *by_size([r for r in own if r["sources"] in sizes],
                                            times(rows, "the floor")))
    lines = [(name, [more_text(find(rows, name=name, sources=s)) for s in sizes])
             for name in MORE["live"] if find(rows, name=name)]
    if lines:
        table("What these add, ns", [size_text(s) for s in sizes],
              [(f"{name} (more than {MORE['live'][name]})", cells) for name, cells in lines])


def print_spent(rows):
    """Of live frames: what each step adds to the one above it."""
    sizes = [s for s in SIZES[1:4] if all(find(rows, part="live", name=n, sources=s)
                                          for _, n in SPENT)]
    lines, before = [], dict.fromkeys(sizes, 0)
    for what, name in SPENT:
        cells = []
        for s in sizes:
            ns = find(rows, part="live", name=name, sources=s)["ns"]
            cells.append(f"{ns - before[s]:+.0f}" if before[s] else f"{ns:.0f}")
            before[s] = ns
        lines.append((what, cells))
    if sizes:
        lines.append(("a refused packet of the pacer", [f"{before[s]:.0f}" for s in sizes]))
        table("Where the nanoseconds of a refused packet go, by number of sources",
              [size_text(s) for s in sizes], lines)


def print_live(rows):
    print_live_peers(rows)
    print_live_own(rows)
    print_spent(rows)
    live = live_of(rows)
    if live:
        table("The same, million packets a second of one CPU, the generator's work included",
              *by_size(live, lambda r: f"{1e3 / r['ns']:.2f}"))
        table("The same, share that was let through", *by_size(live, lambda r: f"{r['admitted']:.2%}"))


def print_members(rows):
    found = list(member_sets(rows))
    if not found:
        return
    sizes = list(dict.fromkeys(f[1] for f in found))

    def cells(of, name):
        return [next(of(*f[2:]) for f in found if f[:2] == (name, s)) for s in sizes]
    lines = []
    for name in dict.fromkeys(f[0] for f in found):
        lines.append((f"{name}: one read of as much memory",
                      cells(lambda none, read, find: f"{read['ns']:.0f} ({read['ns'] - none['ns']:+.0f})",
                            name)))
        lines.append((f"{name}: the set",
                      cells(lambda none, read, find: f"{find['ns']:.0f} ({find['ns'] - none['ns']:+.0f}), "
                            f"{find['ns'] / read['ns']:.2f} times", name)))
    table("Is the source in a set of 1 M prefixes? Live frames, total ns (more than with neither), by number "
          "of sources", [size_text(s) for s in sizes], lines)


def print_accuracy(rows):
    rows = [r for r in rows if r["part"] == "accuracy"]
    if not rows:
        return
    lines = [(r["name"], [f"{r['received']}", f"{r['allowed']}",
                          f"{r['received'] / r['allowed']:.1%}", f"{r['worst']}", f"{r['limit']}",
                          f"{r['over'] / max(r['sources'], 1):.0%}"]) for r in rows]
    table("Accuracy: 1,024 sources far above a limit of 10 a second (the peers with their default "
          "burst of 5)", ["admitted", "allowed", "share", "worst 1 s", "limit", "sources over it"],
          lines)


def share(value):
    return "-" if value is None else f"{value:.2%}"


def print_floods(rows):
    rows = [r for r in rows if r["part"] == "floods"]
    if rows:
        table("Floods that no machine here can send, against the core by a virtual clock: 10 packets in "
              "1s, the default memory and what `withstand` asks for: share that passes",
              ["established", "newcomers", "sparse", "MiB"],
              [(r["name"], [share(r["established"]), share(r["newcomers"]), share(r["sparse"]),
                            f"{r['state_mib']:.0f}"]) for r in rows])


def print_goodput(rows):
    rows = [r for r in rows if r["part"] == "goodput"]
    for size in dict.fromkeys(r["sources"] for r in rows):
        lines = [(f"{r['name']} [{r['memory']}]",
                  [share(r["share"]["quiet"]), share(r["share"]["honest"]),
                   share(r["share"]["late"]), share(r["share"]["flood"]), share(r["allowed"]),
                   f"{r['flood_pps'] / 1e6:.2f}", f"{r['attached_mib']:.0f}",
                   f"{r['flood_mib']:+.0f}"])
                 for r in rows if r["sources"] == size]
        table(f"Goodput: 1,000 honest sources at half of 10 a second, a flood of {size_text(size)} "
              "spoofed sources, 1,000 more honest ones that come during it: share that passes",
              ["honest before", "honest during", "newcomers", "flood", "of it allowed",
               "flood Mpps", "MiB at load", "MiB more"], lines)
        for r in rows:
            if r["sources"] == size and r["stood_still_ms"] > 200:
                print(f"  NOTE: {r['name']}: the generator stood still for {r['stood_still_ms']} ms, "
                      "as others used its CPU: its honest sources were not as regular as said")
