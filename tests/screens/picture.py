"""Records a hand-over on real terminals and draws it. See scripts/picture --help."""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import drawing
import terminal

_PROJECT = pathlib.Path(__file__).resolve().parents[2]
_PICTURE = _PROJECT / "tests/screens/hand-over.svg"
_COLUMNS = 105
_HOSTS = ["build1", "build2", "build3"]
_LOCK = "/jobs/backup"
# A job that ends when told to.
_JOB = """#!/bin/sh
echo "backup begins, token $ZKLOCK_TOKEN"
read -r go <"$(hostname).go"
echo "backup done"
"""


def namespaces():
    """Arguments of unshare for a host with its own name and processes."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *user, "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]


class Host:
    """A shell on a host of that name, where pids start at `first`."""

    def __init__(self, name, first, rows, desk, environment):
        self.name = name
        self._go = desk / f"{name}.go"
        os.mkfifo(self._go)
        setup = ('hostname "$1" && echo "$2" >/proc/sys/kernel/ns_last_pid || exit;'
                 ' bash --norc --noprofile --noediting -i; exit')
        self.terminal = terminal.Terminal(
            [*namespaces(), "sh", "-c", setup, "sh", name, str(first - 2)], rows, _COLUMNS,
            {**environment, "PS1": f"{name}$ "}, desk)

    def let_job_end(self):
        with open(self._go, "w") as pipe:
            pipe.write("go\n")


def record(zklock, servers, desk):
    """Records the frames, each (title, [lines of each terminal])."""
    (desk / "backup.sh").write_text(_JOB)
    (desk / "backup.sh").chmod(0o755)
    (desk / "bin").mkdir()
    (desk / "bin/zklock").symlink_to(zklock)
    environment = {"PATH": f"{desk}/bin:/usr/bin:/bin", "TERM": "xterm-256color",
                   "LANG": "C.UTF-8", "TZ": "UTC", "HOME": str(desk), "ZKLOCK_SERVERS": servers,
                   "ZKLOCK_CONFIG": "/dev/null", "HISTFILE": ""}
    hosts = [Host(name, first, 4, desk, environment)
             for name, first in zip(_HOSTS, (4242, 917, 20113))]
    (desk / "watcher").mkdir()
    watcher = Host("laptop", 3001, 9, desk, environment)
    everyone = [*hosts, watcher]
    terminals = [one.terminal for one in everyone]
    frames = []

    def await_all(**wanted):
        by_terminal = {one.terminal: wanted[one.name] for one in everyone if one.name in wanted}
        terminal.wait_for(terminals, by_terminal)

    def keep(title):
        panes = [one.terminal.screen.lines() for one in everyone]
        # The watcher's command line is on the screen that it covers.
        panes[-1] = watcher.terminal.screen.covered() + panes[-1]
        frames.append((title, panes))

    runs = r"^backup begins, token \d+$"
    waits = r"^zklock: waiting for /jobs/backup: {}, .*; held by .* on {}\) for .*$"
    try:
        await_all(**{one.name: rf"^{one.name}\$" for one in everyone})
        watcher.terminal.type(f"zklock inspect --watch {_LOCK}\n")
        await_all(laptop="free")
        for index, host in enumerate(hosts):
            host.terminal.type(f"zklock exclusive {_LOCK} -- ./backup.sh\n")
            if index == 0:
                await_all(build1=runs, laptop="held by 1, 0 waiting")
            else:
                await_all(**{host.name: waits.format(("next in line", "1 waiting ahead")[index - 1],
                                                          "build1")},
                          laptop=f"held by 1, {index} waiting")
        keep("build1 holds the lock; build2 and build3 wait, in the order they came")
        hosts[0].let_job_end()
        await_all(build1=r"^backup done\nbuild1\$", build2=runs,
                  build3=waits.format("next in line", "build2"),
                  laptop="held by 1, 1 waiting(.*\n)*last recorded run")
        keep("build1 is done and build2 goes on at once; build3 moves up")
        hosts[1].let_job_end()
        await_all(build2=r"^backup done\nbuild2\$", build3=runs,
                  laptop="held by 1, 0 waiting(.*\n)*last recorded run.* on build2")
        keep("then it is build3's turn; the token grows from each holder to the next")
        hosts[2].let_job_end()
        await_all(build3=r"^backup done\nbuild3\$", laptop="free(.*\n)*last recorded run.* on build3")
        return frames
    finally:
        for one in terminals:
            one.end()


# The times in the picture: all join within three seconds, each job takes forty; the frames show
# 03:15:20, 03:15:50 and 03:16:30.
_CAME = {"build1": "03:15:02", "build2": "03:15:03", "build3": "03:15:05"}
_HELD = {"build1": "03:15:02", "build2": "03:15:42", "build3": "03:16:22"}
_WAITED = {"build2": ["17s"], "build3": ["15s", "45s"]}
_HELD_AT_MOST = ["18s", "8s"]
_FOR = {"build1": ["18s"], "build2": ["17s", "8s"], "build3": ["15s", "45s", "8s"]}


class Settled:
    """Replaces what differs between recordings, times and tokens, with fixed values."""

    def __init__(self):
        self._tokens = {}

    def frame(self, number, panes):
        """`panes`: the lines of each host's terminal, then those of the watcher's terminal."""
        return [[self._line(runs, number, name) for runs in lines]
                for name, lines in zip([*_HOSTS, None], panes)]

    def _line(self, runs, frame, name):
        whole = "".join(text for text, _ in runs)
        host = name or next((one for one in _HOSTS if one in whole), None)
        times = _HELD if "held" in whole.split() or "ended" in whole else _CAME
        return [(self._text(text, host, frame, times), style) for text, style in runs]

    def _text(self, text, host, frame, times):
        text = re.sub(r"token (\d+)", lambda match: f"token {self._token(match[1])}", text)
        # The table's column is right-aligned.
        text = re.sub(r" +\d+(?=  backup\.sh)",
                      lambda match: self._token(match[0].strip()).rjust(len(match[0])), text)
        if "waiting" in text and host in _WAITED and frame < len(_WAITED[host]):
            text = re.sub(r"(in line|ahead), [0-9hms]+;", rf"\1, {_WAITED[host][frame]};", text)
            text = re.sub(r"\) for [0-9hms]+", f") for {_HELD_AT_MOST[frame]}", text)
        if frame < len(_FOR.get(host, [])):
            text = re.sub(r"(?<=  ) *\d+s(?=  )",
                          lambda match: _FOR[host][frame].rjust(len(match[0])), text)
        text = re.sub(r"(\d{4}-|)\d\d-\d\d (?=\d\d:)",
                      lambda match: ("2026-" if match[1] else "") + "03-01 ", text)
        if "ended" in text:
            text = re.sub(r"after [0-9.hms]+, ended", "after 40s, ended", text)
            # The next host has held the lock since then.
            host = _HOSTS[_HOSTS.index(host) + 1]
        return re.sub(r"\d\d:\d\d:\d\d", times.get(host, ""), text)

    def _token(self, text):
        return str(self._tokens.setdefault(text, 1041 + 6 * len(self._tokens)))


def words_of(svg):
    """The text of a picture, wherever it is: a column may be wider on another machine."""
    return re.sub(r' (x|textLength)="[0-9.]+"', "", svg)


def main():
    parser = argparse.ArgumentParser(prog="picture", description=__doc__)
    parser.add_argument("--zklock", default=str(_PROJECT / "build/release/zklock"))
    parser.add_argument("--servers", required=True)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--frames", action="store_true", help="print what was recorded")
    options = parser.parse_args()
    if shutil.which("unshare") is None or subprocess.run([*namespaces(), "true"]).returncode != 0:
        parser.exit(1, "picture: three hosts on one want namespaces of their own: run it as root\n")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="zklock-picture.") as desk:
        frames = record(pathlib.Path(options.zklock).resolve(), options.servers, pathlib.Path(desk))
    settled = Settled()
    frames = [(title, settled.frame(number, panes))
              for number, (title, panes) in enumerate(frames)]
    if options.frames:
        for title, panes in frames:
            print(f"== {title}")
            for lines in panes:
                print("\n".join("".join(text for text, _ in runs) for runs in lines))
    svg = drawing.draw(frames, _COLUMNS, "A queue being handed over")
    if not options.check:
        _PICTURE.write_text(svg)
    elif words_of(svg) != words_of(_PICTURE.read_text()):
        parser.exit(1, "picture: what zklock shows is no longer what the picture shows;"
                       " draw it again with scripts/picture\n")


if __name__ == "__main__":
    main()
