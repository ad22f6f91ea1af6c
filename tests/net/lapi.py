#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A CrowdSec local API as far as a bouncer sees it: GET /v1/decisions/stream, by its documented format.

  lapi.py FOLDER PORT

It has the decisions of the file FOLDER/decisions, read for each question: a line "ID TYPE SCOPE VALUE
DURATION_MS", whose time begins when the line is first seen; a line that is gone was deleted. What it
has sent counts as received, as CrowdSec does it: the next question is answered with what is new
since. FOLDER/mode says how it answers: ok, 403, 500, redirect, garbage, list, cut (half of the
answer), hang (half of it, and then nothing), drip (20 bytes a second, for minutes), slow (a
twentieth each 0.2 s), odd (decisions that cannot be read among those that can).
FOLDER/log has a line for each question.
"""
import http.server
import json
import pathlib
import sys
import threading
import time
import urllib.parse

FOLDER = pathlib.Path(sys.argv[1])
KEY = "the-key-of-a-test"
ODD = [{"id": 9001, "type": "ban", "scope": "Ip", "value": "somebody", "duration": "1h"},
       {"id": 9002, "type": "ban", "scope": "Ip", "value": "10.77.0.17", "duration": "soon"},
       {"id": 9003, "type": "ban", "scope": "Range", "value": "0.0.0.0/0", "duration": "1h"},
       {"id": 9004, "type": "ban"}, 7, None]
lock = threading.Lock()
seen = {}     # a line's words: when it ends, and when it was deleted
last = None   # time of the last answer
logged = open(FOLDER / "log", "a", buffering=1)


def go_duration(s):
    """As Go prints a time.Duration."""
    sign, s = ("-", -s) if s < 0 else ("", s)
    hours, minutes, seconds = int(s // 3600), int(s % 3600 // 60), s % 60
    text = f"{seconds:.9f}".rstrip("0").rstrip(".") + "s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return sign + (f"{hours}h{text}" if hours else text)


def refresh(now):
    there = set()
    for line in (FOLDER / "decisions").read_text().splitlines():
        words = tuple(line.split())
        there.add(words)
        if words not in seen:
            seen[words] = {"since": now, "end": now + int(words[4]) / 1000}
    for words, at in seen.items():
        if words not in there:
            at["end"] = min(at["end"], now)


def decision(words, at, now):
    number, kind, scope, value, _ = words
    return {"duration": go_duration(at["end"] - now), "id": int(number), "origin": "cscli",
            "scenario": "manual 'ban' from 'localhost'", "scope": scope, "type": kind, "value": value}


def answer(startup):
    """As CrowdSec: at first what lasts and what has ended, then what changed since the last answer."""
    global last
    with lock:
        now = time.monotonic()
        refresh(now)
        since = -1 if startup or last is None else last
        new = [decision(w, at, now) for w, at in seen.items() if at["since"] > since and at["end"] > now]
        deleted = [decision(w, at, now) for w, at in seen.items() if since < at["end"] <= now]
        last = now
    return {"deleted": deleted or None, "new": new or None}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def say(self, status, body, length=None, **headers):
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        asked = urllib.parse.parse_qs(url.query)
        startup = asked.get("startup", ["false"])[0] == "true"
        mode = (FOLDER / "mode").read_text().strip()
        origins = asked.get("origins", ["all"])[0]
        print(f"{mode} startup={str(startup).lower()} origins={origins} agent={self.headers.get('User-Agent')}", file=logged)
        if url.path != "/v1/decisions/stream":
            self.say(404, b"404 page not found")
        elif mode == "403" or self.headers.get("X-Api-Key") != KEY:
            self.say(403, b'{"message":"access forbidden"}')
        elif asked.get("dedup") != ["false"]:
            self.say(400, b'{"message":"this test wants all decisions"}')
        elif mode == "500":
            self.say(500, b'{"message":"internal error"}')
        elif mode == "redirect":
            self.say(302, b"", Location=f"http://127.0.0.1:{sys.argv[2]}/v1/decisions/stream?startup=true")
        elif mode == "garbage":
            self.say(200, b'{"new": [{"id": 1,\xff')
        elif mode == "list":
            self.say(200, b'[{"id": 1}]')
        else:
            self.answer(mode, startup)

    def answer(self, mode, startup):
        told = answer(startup)
        if mode == "odd" and startup:
            told["new"] = ODD + (told["new"] or [])
        body = json.dumps(told).encode()
        if mode in ("cut", "hang"):
            self.say(200, body[:len(body) // 2], len(body))
            self.close_connection = True
            while mode == "hang" and (FOLDER / "mode").read_text().strip() == "hang":
                time.sleep(0.05)
        elif mode == "drip":
            self.drip(body + b" " * 4096)
        elif mode == "slow":
            self.say(200, b"", len(body))
            for part in range(20):
                self.wfile.write(body[len(body) * part // 20:len(body) * (part + 1) // 20])
                time.sleep(0.2)
        else:
            self.say(200, body)

    def drip(self, body):
        self.say(200, b"", len(body))
        self.close_connection = True
        for at in range(len(body)):
            if (FOLDER / "mode").read_text().strip() != "drip":
                return
            try:
                self.wfile.write(body[at:at + 1])
            except OSError:  # nobody waits for it any more
                return
            time.sleep(0.05)


class Server(http.server.ThreadingHTTPServer):
    allow_reuse_address = True
    daemon_threads = True


server = Server(("127.0.0.1", int(sys.argv[2])), Handler)
print("ready", file=logged)
server.serve_forever()
