#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""A command on a terminal of its own, as somebody sees it who types. TERM=linux is what pyte knows.

    screen.py ROWS COLUMNS COMMAND... < STEPS

The terminal is emulated by pyte. A step is a line:

    wait REGEX          until a line of the picture matches
    gone REGEX          until no line does
    type TEXT           with \\e, \\t, \\r as escapes
    resize ROWS COLUMNS
    size ROWS COLUMNS   as above, without that it is looked at: of more than pyte has time for
    signal NAME         to the command
    run COMMAND         by the shell; it has to succeed
    picture             print it, without blanks at the ends of lines
    fits                no line that was ever printed was wrapped or scrolled away
    svg FILE            draw it
    exit CODE           it ends so; -SIGNAL by a signal
    still               until nothing has been printed for a second
    keys                the terminal has its modes back
    modes               and the cursor shows, too

A step that does not come true while the picture changes, nor in a minute after that, ends it with exit
code 1 and the picture. The command is ended with it.
"""
import codecs
import fcntl
import html
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pyte

STILL_S = 60  # without a change of the picture: no machine is that slow
LONG_S = 200
SPARKS = " ▁▂▃▄▅▆▇█"
COLOURS = {"default": "#d4d4d4", "black": "#3b3f46", "red": "#f47067", "green": "#8ddb8c", "brown": "#e0b155",
           "blue": "#6cb6ff", "magenta": "#dcbdfb", "cyan": "#76d4d6", "white": "#d4d4d4"}
GROUND = "#1b1f24"


class Watched(pyte.Screen):
    """Notes what a program does that does not know how large its screen is."""

    moved = wrapped = False

    def index(self):
        self.moved |= self.cursor.y == self.lines - 1
        super().index()

    def draw(self, data):
        self.wrapped |= self.cursor.x + len(data) > self.columns
        super().draw(data)


class Failed(Exception):
    pass


class Terminal:
    def __init__(self, rows, columns, command):
        self.screen = Watched(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.pid, self.code = os.fork(), None
        if not self.pid:
            for number in signal.SIGINT, signal.SIGQUIT, signal.SIGHUP:  # which shells and nohup ignore
                signal.signal(number, signal.SIG_DFL)
            os.login_tty(slave)
            os.execvp(command[0], command)
        self.slave = slave  # so that its modes can be asked for when the command has ended

    def read(self, seconds):
        """What comes within that time; False if nothing did."""
        ready, _, _ = select.select([self.master], [], [], seconds)
        if ready:
            self.stream.feed(os.read(self.master, 65536))
        elif self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return bool(ready)

    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    def until(self, what, true):
        """As long as the picture changes, and for LONG_S at most."""
        begin = last = time.monotonic()
        shown = self.lines()
        while not true():
            now = time.monotonic()
            if self.code is not None:
                raise Failed(f"{what}: it has ended with {self.code}")
            if self.read(0.1) and self.lines() != shown:
                shown, last = self.lines(), now
            if now - last > STILL_S or now - begin > LONG_S:
                raise Failed(f"{what}: it does not come")

    def matches(self, regex):
        return any(re.search(regex, line) for line in self.lines())

    # --- steps

    def wait(self, regex):
        self.until(f"wait {regex}", lambda: self.matches(regex))

    def gone(self, regex):
        self.until(f"gone {regex}", lambda: not self.matches(regex))

    def type(self, text):
        os.write(self.master, codecs.decode(text.replace("\\e", "\\x1b"), "unicode_escape").encode())

    def resize(self, size):
        rows, columns = map(int, size.split())
        self.screen.resize(rows, columns)
        self.screen.moved = self.screen.wrapped = False
        self.size(size)

    def size(self, size):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", *map(int, size.split()), 0, 0))

    def signal(self, name):
        os.kill(self.pid, getattr(signal, "SIG" + name))

    def run(self, command):
        done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            raise Failed(f"run {command}: {done.stdout.decode()}")

    def picture(self, _):
        while self.read(0.2):
            pass
        print("\n".join(self.lines()).rstrip("\n"))

    def fits(self, _):
        if self.screen.moved or self.screen.wrapped:
            raise Failed(f"fits: moved {self.screen.moved}, wrapped {self.screen.wrapped}")

    def exit(self, code):
        deadline = time.monotonic() + STILL_S
        while self.code is None:
            self.read(0.1)
            if time.monotonic() > deadline:
                raise Failed("exit: it goes on")
        if self.code != int(code):
            raise Failed(f"exit {code}: it is {self.code}")

    def still(self, _):
        while self.read(1):
            pass

    def keys(self, _):
        if termios.tcgetattr(self.slave)[:4] != self.before[:4]:
            raise Failed("modes: the terminal is not as it was")

    def modes(self, _):
        self.keys(_)
        if self.screen.cursor.hidden:
            raise Failed("modes: the cursor is hidden")

    def svg(self, file):
        with open(file, "w") as f:
            f.write(svg_of(self.screen))

    def close(self):
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


# --- as a picture

def runs_of(screen, y):
    """Neighbours of one style: column, text, style."""
    runs = []
    for x in range(screen.columns):
        c = screen.buffer[y][x]
        style = (c.fg, c.bg, c.bold, c.reverse)
        if runs and runs[-1][2] == style:
            runs[-1][1] += c.data
        else:
            runs.append([x, c.data, style])
    return runs


def svg_of(screen, w=8.4, h=18):
    width, height = screen.columns * w + 24, screen.lines * h + 24
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
           f'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14">',
           f'<rect width="100%" height="100%" rx="8" fill="{GROUND}"/>']
    for y in range(screen.lines):
        top = 12 + y * h
        for x, text, (fg, bg, bold, reverse) in runs_of(screen, y):
            fill, ground = COLOURS.get(fg, COLOURS["default"]), COLOURS.get(bg, GROUND) if bg != "default" else GROUND
            if reverse:
                fill, ground = ground, fill
            if ground != GROUND:
                out.append(f'<rect x="{12 + x * w:.1f}" y="{top}" width="{len(text) * w:.1f}" height="{h}" '
                           f'fill="{ground}"/>')
            for i, c in enumerate(text):  # blocks are drawn: fonts differ in them
                if c in SPARKS[1:]:
                    high = SPARKS.index(c) * h / 8
                    out.append(f'<rect x="{12 + (x + i) * w:.1f}" y="{top + h - high:.2f}" width="{w - 0.8:.1f}" '
                               f'height="{high:.2f}" fill="{fill}"/>')
            plain = "".join(" " if c in SPARKS else c for c in text)
            for word in re.finditer(r"\S+(?: \S+)*", plain):
                weight = ' font-weight="bold"' if bold else ""
                out.append(f'<text x="{12 + (x + word.start()) * w:.1f}" y="{top + 13.5:.1f}" fill="{fill}"{weight} '
                           f'textLength="{len(word.group()) * w:.1f}" xml:space="preserve">'
                           f'{html.escape(word.group())}</text>')
    return "\n".join(out + ["</svg>", ""])


def main():
    terminal = Terminal(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
    steps = {"wait", "gone", "type", "resize", "size", "signal", "run", "picture", "fits", "svg", "exit", "modes",
             "still", "keys"}
    try:
        for line in sys.stdin.read().splitlines():
            word, _, rest = line.strip().partition(" ")
            if word in steps:
                getattr(terminal, word)(rest)
            elif word:
                raise Failed(f"there is no step {word}")
    except Failed as failure:
        print(failure)
        print("\n".join("| " + line for line in terminal.lines()))
        sys.exit(1)
    finally:
        terminal.close()


main()
