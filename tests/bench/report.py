# SPDX-License-Identifier: GPL-2.0-only
"""From rows of figures to medians, ratios and tables."""
import statistics

SIZES = (1, 1 << 10, 1 << 16, 1 << 20, 1 << 24)


def size_text(n):
    for unit, name in ((1 << 20, " M"), (1 << 10, " k")):
        if n >= unit:
            return f"{n // unit}{name}"
    return str(n)


def digest(rows):
    """Medians in place of lists, and the ratio of each layer to the same run's `parse`."""
    for r in rows:
        if "ns" in r and isinstance(r["ns"], list):
            r["samples"] = r["ns"]
            r["ns"] = statistics.median(r["samples"])
    for r in rows:
        for name, ratio in (("parse", "ratio"), ("bare drop", "ratio_drop")):
            base = [b for b in rows if b["part"] == "layers" and b["name"] == name and
                    b["sources"] == r.get("sources") and b["cpus"] == r.get("cpus")]
            if r["part"] == "layers" and base:
                # Round by round, so that what disturbs a round disturbs both.
                r[ratio] = round(statistics.median(
                    a / b for a, b in zip(r["samples"], base[0]["samples"])), 2)
    return rows


def print_machine(host):
    print(f"{host['cpu']}, {host['cpus']} CPUs, Linux {host['kernel']}, {host['date']}, "
          f"load {host['load']:.2f}")
    if host["load"] > 0.5:
        print("NOTE: this machine is busy: believe ratios, and not too much")


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


def more_than(row, base):
    """Nanoseconds a packet more, round by round."""
    return statistics.median(a - b for a, b in zip(row["samples"], base["samples"]))


def print_limiters(rows):
    """What throttles, bans and pools add to a packet."""
    sizes = [s for s in SIZES if find(rows, name="admitted, nobody banned", sources=s)]
    lines = []
    for name, base in (("admitted, nobody banned", "admitted, window"),
                       ("admitted, nobody banned, no filter", "admitted, window"),
                       ("refused, banned", "refused, gap and window"),
                       ("refused, pool spent", "refused, gap and window"),
                       ("refused, redirected", "refused, gap and window")):
        pairs = [(find(rows, name=name, sources=s, cpus=1),
                  find(rows, name=base, sources=s, cpus=1, memory="64Mi")) for s in sizes]
        lines.append((name, [f"{more_than(a, b):+.1f}" if a and b else "" for a, b in pairs]))
    if sizes:
        table("Bans and pools: ns a packet more than without, one CPU, by number of sources; "
              "no filter: the exact table is asked for every packet",
              [size_text(s) for s in sizes], lines)


def print_sampling(rows):
    base = find(rows, name="not sampled")
    sampled = [r for r in rows if "sampl" in r["name"] and r is not base]
    if base and sampled:
        table("The same refused, 1 k sources, one CPU, with samples of 64: ns, and ns more than "
              "without", ["ns", "more"],
              [(r["name"], [f"{r['ns']:.1f}", f"{more_than(r, base):+.1f}"])
               for r in [base] + sampled])


def print_dearest(rows):
    rows = [r for r in rows if r["part"] == "dearest"]
    table("The dearest single packets of a sampled path (of time: at a tick's end, taken by all 64 "
          "samples at once; of packets: taken by one): ns", ["counted", "median", "90 %", "99 %"],
          [(r["name"] + (", cold caches" if r["cold"] else ""),
            [f"{r['counted_ns']}"] + [f"{quantile(r['taken_ns'], q)}" for q in (0.5, 0.9, 0.99)])
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


def print_state(check):
    """Of a policy with a gap and a window, what `xdp-pacer check --json` says of its state."""
    window = next(x for x in check["limits"] if x["kind"] == "window")
    of = window["state_bytes"] / window["records"]
    print(f"\nState, one gap and one window of {window['slots']} slots: {of:.0f} bytes a record, "
          f"{window['records']} of them in {window['state_bytes'] >> 20} MiB; a third are shared, so "
          f"{1.5 * of:.0f} bytes a source that has one of its own")


def print_part(part, rows):
    {"core": print_core, "layers": print_layers, "dearest": print_dearest, "live": print_live, "accuracy": print_accuracy,
     "goodput": print_goodput}[part](rows)


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
    one = find(rows, part="layers", name="refused, gap and window", sources=1, cpus=1)
    two = find(rows, part="layers", name="refused, gap and window", sources=1, cpus=2)
    if one and two:
        yield "test_run: a refused hot key, two CPUs / one", two["ns"] / one["ns"], 1.1
    for name in ("admitted, throttle", "refused, throttle"):
        one = find(rows, part="layers", name=name, sources=1, cpus=1)
        two = find(rows, part="layers", name=name, sources=1, cpus=2)
        if one and two:
            yield f"test_run: {name}, two CPUs / one", two["ns"] / one["ns"], 1.2
    few = find(rows, part="layers", name="refused, rules", rules=1)
    many = find(rows, part="layers", name="refused, rules", rules=64)
    if few and many:
        yield "test_run: 64 rules / one", many["ns"] / few["ns"], 1.1


def sample_targets(rows):
    """(what, ns, target)"""
    base = find(rows, name="not sampled")
    for r in rows:
        if base and r["name"] in ("sampled by time", "sampled without replacement"):
            yield f"test_run: {r['name']}, ns more", more_than(r, base), 15
        if r["part"] == "dearest" and "heads" not in r["name"]:
            yield (f"dearest packet, {r['name']}{', cold caches' if r['cold'] else ''}: median, ns",
                   quantile(r["taken_ns"], 0.5), 5000)


def live_targets(rows):
    """(what, value, target): the first three at most, the others at least."""
    def ns(name, size):
        r = find(rows, part="live", name=name, sources=size)
        return r and r["ns"]

    for size, most, least, above in zip(SIZES[1:4], (1.2, 1.5, 2.2), (4.5, 5.5, 5.5), (25, 16, 10)):
        ours, drop = ns("xdp-pacer", size), ns("XDP_DROP", size)
        nft = ns("nftables, netdev ingress", size)
        text = size_text(size)
        if ours and drop:
            yield f"live: total / XDP_DROP, {text}", ours / drop, most, False
        if ours and drop and nft:
            yield f"live: nft ingress / ours, total, {text}", nft / ours, least, True
            if ours > drop:
                yield (f"live: nft ingress / ours, above XDP_DROP, {text}",
                       (nft - drop) / (ours - drop), above, True)


def goodput_targets(rows):
    for r in rows:
        if r["part"] == "goodput" and r["name"].startswith("xdp-pacer"):
            goal = 0.999 if r["sources"] <= 1 << 16 else 0.99
            for kind in ("honest", "late"):
                yield (f"goodput: {kind} sources' share, flood of {size_text(r['sources'])}",
                       r["share"][kind], goal, True)


def print_targets(rows):
    all_of = [(*t, False) for t in [*layer_targets(rows), *sample_targets(rows)]]
    all_of += [*core_targets(rows), *live_targets(rows), *goodput_targets(rows)]
    found = [{"what": what, "value": round(value, 4), "target": goal,
              "rule": "at least" if least else "at most",
              "met": value >= goal if least else value <= goal}
             for what, value, goal, least in all_of]
    if found:
        table("Targets (ratios of medians in this run)", ["value", "target", ""],
              [(t["what"], [f"{t['value']:.4g}", f"{t['rule']} {t['target']:g}",
                            "met" if t["met"] else "MISSED"]) for t in found])
    return found


# --- live ---------------------------------------------------------------------------------------

def print_live(rows):
    rows = [dict(r, label=r["name"]) for r in rows if r["part"] == "live"]
    drop = {r["sources"]: r["ns"] for r in rows if r["name"] == "XDP_DROP"}
    table("A refused frame of 64 bytes over veth, total CPU ns with its generation, by number of "
          "sources (times XDP_DROP)",
          *by_size(rows, lambda r: f"{r['ns']:.0f} ({r['ns'] / drop[r['sources']]:.2f})"))
    table("The same, million packets a second of one CPU, the generator's work included",
          *by_size(rows, lambda r: f"{1e3 / r['ns']:.2f}"))
    table("The same, share that was let through",
          *by_size(rows, lambda r: f"{r['admitted']:.2%}"))


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
