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
        base = [b for b in rows if b["part"] == "layers" and b["name"] == "parse" and
                b["sources"] == r.get("sources") and b["cpus"] == r.get("cpus")]
        if r["part"] == "layers" and base:
            # Round by round, so that what disturbs a round disturbs both.
            r["ratio"] = round(statistics.median(
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
    one = [r for r in rows if r["cpus"] == 1 and r["name"] != "refused, rules"]
    table("A packet by BPF_PROG_TEST_RUN, ns, one CPU (times `parse`), by number of sources; every "
          "figure has the drawing of the source in it", *by_size(one, ns_ratio))
    two = [r for r in rows if r["cpus"] == 2]
    if two:
        table("The same on two CPUs at once, ns a packet on each (times `parse`)",
              *by_size(two, ns_ratio))
    rules = [r for r in rows if r["name"] == "refused, rules"]
    table("The same refused, 1 k sources, one CPU, by number of rules",
          [str(r["rules"]) for r in rules], [("refused, gap and window", [ns_ratio(r) for r in rules])])
    wrong = [r for r in rows if "admitted" in r and
             abs(r["admitted"] - r["name"].startswith("admitted")) > 0.01]
    for r in wrong:
        print(f"  NOTE: {r['label']}, {size_text(r['sources'])}, {r['cpus']} CPUs: "
              f"{r['admitted']:.1%} were admitted")


def print_part(part, rows):
    {"layers": print_layers}[part](rows)


# --- targets ---------------------------------------------------------------------------------------

def find(rows, **want):
    for r in rows:
        if all(r.get(k) == v for k, v in want.items()):
            return r
    return None


def layer_targets(rows):
    """(what, ratio, target)"""
    for name, goals in (("refused, gap and window", (2.0, 4.0, 6.0)),
                        ("admitted, window", (2.5, 5.0, 8.0))):
        for size, goal in zip(SIZES[1:4], goals):
            r = find(rows, part="layers", name=name, sources=size, cpus=1,
                     memory="160M" if size == 1 << 20 else "64M")
            if r:
                yield f"test_run: {name} / parse, {size_text(size)}", r["ratio"], goal
    one = find(rows, part="layers", name="refused, gap and window", sources=1, cpus=1)
    two = find(rows, part="layers", name="refused, gap and window", sources=1, cpus=2)
    if one and two:
        yield "test_run: a refused hot key, two CPUs / one", two["ns"] / one["ns"], 1.1
    few = find(rows, part="layers", name="refused, rules", rules=1)
    many = find(rows, part="layers", name="refused, rules", rules=64)
    if few and many:
        yield "test_run: 64 rules / one", many["ns"] / few["ns"], 1.1


def print_targets(rows):
    found = [{"what": what, "ratio": round(ratio, 2), "target": goal, "met": ratio <= goal}
             for what, ratio, goal in layer_targets(rows)]
    if found:
        table("Targets (ratios of medians in this run)", ["ratio", "at most", ""],
              [(t["what"], [f"{t['ratio']:.2f}", f"{t['target']:.2f}", "met" if t["met"] else "MISSED"])
               for t in found])
    return found
