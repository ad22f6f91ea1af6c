#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What test_export.sh asks of the metrics: read by another's parsers, and over sockets of its own.

  scrape.py same METRICS STATS STATUS    the text has the numbers of these results of --json
  scrape.py forms URL                   both forms, read by strict parsers, have the same series
  scrape.py manners URL                 what is answered to which request
  scrape.py crowd URL                   a thousand idle clients and some slow ones, and a scrape
  scrape.py idle URL            a client that says nothing is cut off after ten seconds
  scrape.py steady URL RULE PID       until PID has ended, scrape; the rule's counters never go back
  scrape.py whole URL FOLDER    in that time: each text is whole, with the pacer and without
  scrape.py queries URL DASHBOARD       each of its queries has a result in that Prometheus
"""
import json
import os
import re
import resource
import socket
import sys
import time
import urllib.parse
import urllib.request

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open
from prometheus_client.parser import text_string_to_metric_families as parse_plain

OPEN = "application/openmetrics-text"
# As Prometheus 2.42 says it.
ACCEPT = OPEN + ";version=1.0.0," + OPEN + ";version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"


def series_of(families):
    found = {}
    for family in families:
        for s in family.samples:
            key = s.name.removeprefix("xdp_pacer_"), frozenset(s.labels.items())
            assert key not in found, key
            found[key] = s.value
    return found


def wanted_of(stats, status):
    """The counters as `stats` and `status` tell them."""
    verdicts = {"admit": "admit", "not_ip": "pass", "no_rule": "pass", "allowed": "pass",
                "truncated": "unparsed", "bad_header": "unparsed", "too_deep": "unparsed"}
    want = {}

    def put(name, value, **labels):
        want[name, frozenset({"interface": stats["interface"], **labels}.items())] = value

    for rule in stats["rules"]:
        name = rule["name"]
        for reason, n in {"admit": rule["admitted"], **rule["denied"]}.items():
            put("packets_total", n, rule=name, reason=reason, verdict=verdicts.get(reason, "deny"))
        for event, n in rule["events"].items():
            put("events_total", n, rule=name, event=event)
    for reason, n in stats["no_limit"].items():
        put("packets_total", n, rule="", reason=reason, verdict=verdicts.get(reason, "deny"))
    put("monitor", stats["mode"] == "monitor")
    put("bans_capacity", status["bans"]["room"])
    put("policy_info", 1, serial=str(status["serial"]), clock=status["clock"],
        attach=status["attach"], attach_mode=status["attach_mode"])
    return want


def same(metrics, stats, status):
    found = series_of(parse_plain(open(metrics).read()))
    stats, status = json.load(open(stats)), json.load(open(status))
    for key, value in wanted_of(stats, status).items():
        assert found.get(key) == value, f"{key}: {found.get(key)}, expected {value}"

    def total(name, **labels):
        return sum(v for (n, l), v in found.items() if n == name and labels.items() <= dict(l).items())

    assert total("packets_total") == stats["packets"] > 0, (total("packets_total"), stats["packets"])
    assert total("bans") == status["bans"]["banned"], found
    for rule in stats["rules"]:
        for verdict, name in ("admit", "admitted"), ("deny", "denied"):
            got = total("bytes_total", rule=rule["name"], verdict=verdict)
            assert got == rule["bytes"][name], (rule["name"], verdict, got)


def get(url, accept=None):
    request = urllib.request.Request(url, headers={"Accept": accept} if accept else {})
    with urllib.request.urlopen(request, timeout=60) as r:
        return r.headers["Content-Type"], r.read().decode()


def forms(url):
    kind, text = get(url, ACCEPT)
    assert kind == OPEN + "; version=1.0.0; charset=utf-8", kind
    assert text.endswith("\n# EOF\n")
    opened = series_of(parse_open(text))
    kind, text = get(url)
    assert kind == "text/plain; version=0.0.4; charset=utf-8", kind
    assert opened.keys() == series_of(parse_plain(text)).keys()


def place_of(url):
    host, port = urllib.parse.urlsplit(url).netloc.rsplit(":", 1)
    return host.strip("[]"), int(port)


def ask(url, data):
    """All that comes back until the other side closes."""
    with socket.create_connection(place_of(url), timeout=60) as s:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        got = b""
        while piece := s.recv(65536):
            got += piece
    return got


def manners(url):
    def answers(status, method, path, body=b"", head=b""):
        data = b"%s %s HTTP/1.1\r\nHost: x\r\n%sConnection: close\r\n\r\n%s" % (method, path, head, body)
        got = ask(url, data)
        assert got.startswith(b"HTTP/1.1 %d " % status), (method, path, got[:100])
        return got

    assert b"xdp_pacer_up" in answers(200, b"GET", b"/metrics")
    assert b"xdp_pacer_up" in answers(200, b"GET", b"/metrics?x=1")
    assert b"xdp_pacer_up" in answers(200, b"GET", b"/metrics", b"abcde", b"Content-Length: 5\r\n")
    headers, _, body = answers(200, b"HEAD", b"/metrics").partition(b"\r\n\r\n")
    assert not body and int(re.search(rb"Content-Length: (\d+)", headers)[1]) > 100, headers
    for path in b"/", b"/metrics/", b"/metric", b"/../metrics", b"/metrics%2f", b"//metrics", b"*":
        answers(404, b"GET", path)
    for method in b"POST", b"PUT", b"DELETE", b"OPTIONS", b"TRACE", b"PATCH", b"get":
        assert b"\r\nAllow: GET, HEAD\r\n" in answers(405, method, b"/metrics"), method
    answers(405, b"POST", b"/metrics", b"x" * 9, b"Content-Length: 9\r\n")
    for garbage in (b"", b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", bytes(range(256)) + b"\r\n\r\n", b"GET\r\n\r\n",
                    b"GET /metrics HTTP/9.9\r\n\r\n", b"A" * 100000, b"GET /metrics HTTP/1.1\r\n" + b"A: b\r\n" * 20000,
                    b"GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n"):
        try:
            got = ask(url, garbage)
        except TimeoutError:
            raise
        except OSError:  # it was closed before all was sent
            got = b""
        assert b"xdp_pacer_up" not in got and b" 200 " not in got[:15], (garbage[:40], got[:100])
        get(url)


def crowd(url):
    """Who asks is served while the others are connected, not when they have been cut off."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    idle = [socket.create_connection(place_of(url)) for _ in range(1000)]
    slow = [socket.create_connection(place_of(url)) for _ in range(50)]
    for n, s in enumerate(slow):
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n"[:n % 20 + 5] if n % 2
                  else b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 40)
    for _ in range(10):
        get(url)
    # All of them are still connected: so they were when that was served.
    for s in idle:
        s.setblocking(False)
        try:
            s.recv(1)
            raise AssertionError("an idle client was cut off too soon")
        except BlockingIOError:
            pass
    # One of them asks after all.
    idle[0].setblocking(True)
    idle[0].sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
    assert idle[0].recv(15).startswith(b"HTTP/1."), "an idle client that asks at last"


def idle(url):
    begin = time.monotonic()
    with socket.create_connection(place_of(url), timeout=120) as s:
        assert s.recv(1) == b""
    assert time.monotonic() - begin > 9, "cut off too soon"


def steady(url, name, folder):
    """The counter only grows, and no rule has another's, however the policy changes."""
    last, n, changes = -1, 0, set()
    while not os.path.exists(folder + "/end"):
        counts = {}
        for (metric, labels), v in series_of(parse_plain(get(url)[1])).items():
            if metric == "packets_total":
                rule = dict(labels)["rule"]
                counts[rule] = counts.get(rule, 0) + v
        changes.add(tuple(sorted(counts)))
        assert counts[name] >= last, f"{name} went back from {last} to {counts[name]}"
        strangers = {k: v for k, v in counts.items() if k not in (name, "") and v}
        assert not strangers, f"counts of another: {strangers}"
        last, n = counts[name], n + 1
        open(folder + "/begun", "w").close()
    assert n >= 5 and len(changes) > 1, f"{n} scrapes, which saw {changes}"


def whole(url, folder):
    seen = set()
    while not os.path.exists(folder + "/end"):
        text = get(url, ACCEPT)[1]
        assert text.endswith("\n# EOF\n"), text[-100:]
        found = series_of(parse_open(text))
        up = next(v for (name, _), v in found.items() if name == "up")
        assert len(found) == 2 if not up else len(found) > 40, (up, len(found))
        seen.add(up)
        open(folder + "/begun", "w").close()
    assert seen == {0, 1}, seen


def queries(url, dashboard):
    known = {"$__rate_interval": "10s", "$interface": ".*", "$instance": ".*"}
    panels = json.load(open(dashboard))["panels"]
    asked = [(p["title"], t["expr"]) for p in panels for t in p["targets"]]
    assert len(asked) >= len(panels) > 10
    for title, expr in asked:
        for word, meaning in known.items():
            expr = expr.replace(word, meaning)
        assert "$" not in expr, expr
        answer = json.loads(get(f"{url}/api/v1/query?" + urllib.parse.urlencode({"query": expr}))[1])
        values = [r["value"][1] for r in answer["data"]["result"]]
        assert values and "NaN" not in values, f"{title}: {expr}: {answer}"


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
