"""Runs the same jobs under several lock tools, injects the same faults around them, and counts the
commands that overlapped and the updates that were lost. Called by scripts/compare."""

import argparse
import ctypes
import dataclasses
import json
import mmap
import os
import random
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback

sys.path.insert(1, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "faults"))

# pylint: disable=wrong-import-position
import histories
import outcome
import torture
import updates
from cgroups import own_directory, remove_tree
from crowd import Reaper
from injections import KINDS, Faults
from network import Links
from tools import DEFAULT, TOOLS

_SLOTS_PER_HOST = 2
_MOST_COMMANDS = 200_000
_PR_SET_CHILD_SUBREAPER = 36
say = torture.say


def parse_arguments():
    parser = argparse.ArgumentParser(prog="compare")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--rounds", type=int, default=1, help="how often each fault is made (default 1)")
    parser.add_argument("--minutes", type=float, help="make rounds for this long with each tool")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--tool", action="append", choices=list(TOOLS), metavar="TOOL")
    parser.add_argument("--fault", action="append", choices=list(KINDS), metavar="FAULT")
    parser.add_argument("--timeout", type=int, default=10, help="the locks' session timeout, seconds")
    parser.add_argument("--keep", metavar="DIRECTORY")
    parser.add_argument("--out", metavar="DIRECTORY", default="build/compare")
    parser.add_argument("--readme", action="store_true", help="also write tests/compare/README.md")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check-arguments", action="store_true")
    parser.add_argument("--report", metavar="DIRECTORY", help="only analyse what a run has kept there")
    parser.add_argument("--zklock", type=os.path.abspath)
    parser.add_argument("--job", type=os.path.abspath)
    parser.add_argument("--clock", type=os.path.abspath)
    arguments = parser.parse_args()
    # For torture.enter().
    arguments.network, arguments.tls = None, False
    return arguments


class _HostCgroups:
    """A cgroup for each host, below that of this process."""

    def __init__(self, hosts):
        self._root = f"{own_directory()}/compare-{time.time_ns()}"
        for host in hosts:
            os.makedirs(self.of(host))
            os.setxattr(self.of(host), "user.delegate", b"1")  # for the cgroups of zklock's commands

    def of(self, host):
        return f"{self._root}/{host}"

    def freeze(self, host, frozen):
        with open(f"{self.of(host)}/cgroup.freeze", "w") as file:
            file.write(str(int(frozen)))

    def remove(self):
        remove_tree(self._root)


def _make_cgroups(hosts):
    try:
        return _HostCgroups(hosts)
    except (OSError, TypeError) as error:
        say(f"compare: no host is frozen: no cgroup v2 hierarchy ({error})")
        return None


class Site:
    """What all tools share: hosts, servers' nodes, links between them, programs."""

    def __init__(self, arguments, directory):
        self.hosts = ["h1", "h2", "h3", "h4"]
        self.servers = ["s1", "s2", "s3"]
        self.addresses = [f"10.77.0.{number}" for number in (1, 2, 3)]
        self.links = Links(["namespaces", "director=10.77.0.100",
                            *map("=".join, zip(self.servers, self.addresses)),
                            *(f"{host}=10.77.0.{10 + index}" for index, host in enumerate(self.hosts))])
        self.reaper = Reaper()
        self.reaper.start()
        self.timeout = arguments.timeout
        self.zklock, self.job, self.clock = arguments.zklock, arguments.job, arguments.clock
        self.cgroups = _make_cgroups(self.hosts)
        self.clocks = {host: histories.Clock(f"{directory}/{host}.clock") for host in self.hosts}

    def on_host(self, host, command):
        """The command line that runs `command` there."""
        if self.cgroups is not None:
            command = ["sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', self.cgroups.of(host),
                       *command]
        return self.links.inside(host, command)

    def end(self):
        if self.cgroups is not None:
            self.cgroups.remove()
        time.sleep(0.3)
        self.reaper.stop()


class _Slot:
    """Starts one attempt after another, or the tool's own program if that makes all attempts."""

    def __init__(self, number, host, tool, site, job):
        self.number, self.host = number, host
        self.pid = None
        self._tool, self._site = tool, site
        self._numbers = random.Random(f"slot {number}")
        self._stopped = False
        self._command = site.on_host(host, tool.run(host, job))
        self._log = f"{tool.directory}/job-{number}.log"

    def start(self):
        if self._stopped:
            return
        environment = {**os.environ, **self._tool.environment(self.host)}
        with open(self._log, "ab") as log:
            self.pid = self._site.reaper.spawn(self._command, self._ended, env=environment, stdout=log,
                                               stderr=log).pid

    def _ended(self, _):
        self.pid = None
        self._site.reaper.later(self._numbers.uniform(*self._tool.pause), self.start)

    def stop(self):
        self._stopped = True
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)


class Crowd:
    """The jobs, and the records of their commands."""

    def __init__(self, tool, site, seed):
        self._directory = tool.directory
        for name, size in (("records", _MOST_COMMANDS * updates.RECORD.size), ("data", 8), ("store", 16)):
            with open(f"{self._directory}/{name}", "wb") as file:
                file.truncate(size)
        with open(f"{self._directory}/records", "r+b") as file:
            self._records = mmap.mmap(file.fileno(), 0)
        hosts = site.hosts * _SLOTS_PER_HOST
        self._slots = [
            _Slot(number, host, tool, site, [site.job, self._directory, str(number), str(seed),
                                             tool.token or "-"])
            for number, host in enumerate(hosts)]

    def start(self):
        for slot in self._slots:
            slot.start()

    def stop(self):
        for slot in self._slots:
            slot.stop()

    def slot(self, command):
        return self._slots[command.slot]

    def count(self):
        return updates.RECORD.unpack_from(self._records)[0]

    def commands(self, first=1):
        return updates.parse(self._records, first)

    def _running(self):
        moment = histories.now() - 0.1
        return [one for one in self.commands(max(1, self.count() - 20))
                if one.ended is None and one.last > moment]

    def _hold_until(self, command, moment):
        struct.pack_into("=q", self._records, command.number * updates.RECORD.size + updates.HOLD_OFFSET,
                         int(moment * 1e9))

    def victim(self, numbers, seconds, patience=60.0):
        """A command that runs and will run for `seconds` unless ended; None if none is found in time."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            running = self._running()
            if running:
                command = numbers.choice(running)
                self._hold_until(command, histories.now() + seconds)
                time.sleep(0.02)
                if any(one.number == command.number for one in self._running()):
                    return command
            time.sleep(0.01)
        return None

    def release(self, command):
        """Stops keeping the command running."""
        self._hold_until(command, 0)

    def settle(self, patience=90.0):
        """Waits until some commands have begun and ended. Returns False if they do not in time."""
        before, deadline = self.count(), time.monotonic() + patience
        while time.monotonic() < deadline:
            if sum(one.ended is not None for one in self.commands(before + 1)) >= 4:
                return True
            time.sleep(0.05)
        return False

    def close(self):
        """Cuts the file to the records that it has."""
        size = (self.count() + 1) * updates.RECORD.size
        self._records.close()
        os.truncate(f"{self._directory}/records", size)


class _Trial:
    """The run of one tool."""

    def __init__(self, arguments, tool, site):
        self._arguments, self._tool, self._site = arguments, tool, site
        self._crowd = Crowd(tool, site, arguments.seed)
        self._faults = Faults(arguments.seed, tool, self._crowd, site, arguments.fault)
        self._notes = []
        self._stalls = 0

    def run(self):
        began = time.monotonic()
        try:
            if not self._tool.start():
                raise RuntimeError("its servers do not serve")
            self._crowd.start()
            if not self._crowd.settle():
                raise RuntimeError("no command runs")
            began = time.monotonic()
            self._make_faults(began)
        except Exception as error:
            self._note(f"not run to the end: {error}")
            raise
        finally:
            took = time.monotonic() - began
            self._crowd.stop()
            self._site.links.mend_all()
            time.sleep(0.5)
            self._save(took)
            self._tool.end()

    def _make_faults(self, began):
        minutes = self._arguments.minutes
        rounds = 0
        while rounds < self._arguments.rounds if minutes is None else True:
            deck = self._faults.deck()
            if not deck:
                return
            for name in deck:
                if minutes is not None and time.monotonic() - began > minutes * 60:
                    return
                say(f"{time.monotonic() - began:7.1f} s  {self._tool.word}: {KINDS[name].title}")
                if not self._faults.make(name):
                    self._note(f"no command ran that could be struck by: {KINDS[name].title}")
                if not self._tool.make_whole():
                    self._stall(f"the servers did not recover from: {KINDS[name].title}")
                    return
                if not self._crowd.settle():
                    self._stall(f"no commands ran for 90 s after: {KINDS[name].title}")
            rounds += 1

    def _note(self, text):
        say(f"           {text}")
        self._notes.append(text)

    def _stall(self, text):
        """A note that counts against the tool: its locks were not handed on."""
        self._note(text)
        self._stalls += 1

    def _save(self, took):
        self._crowd.close()
        with open(f"{self._tool.directory}/faults.json", "w") as file:
            json.dump({"tool": self._tool.word, "title": self._tool.title, "seconds": round(took, 1),
                       "token": bool(self._tool.token), "notes": self._notes, "stalls": self._stalls,
                       "made": [dataclasses.asdict(one) for one in self._faults.made]}, file, indent=1)


def _command_line(arguments):
    """The command line that repeats this run."""
    words = ["scripts/compare", "--seed", str(arguments.seed)]
    if arguments.minutes is not None:
        words += ["--minutes", f"{arguments.minutes:g}"]
    elif arguments.rounds != 1:
        words += ["--rounds", str(arguments.rounds)]
    if arguments.timeout != 10:
        words += ["--timeout", str(arguments.timeout)]
    for name in ("tool", "fault"):
        words += [word for value in getattr(arguments, name) or [] for word in (f"--{name}", value)]
    return " ".join(words)


def run_all(words, arguments, directory):
    """Runs each tool. Returns the words of those that could not be run to the end."""
    site = Site(arguments, directory)
    ran, failed = [], []
    try:
        for word in words:
            try:
                _Trial(arguments, TOOLS[word](site, f"{directory}/{word}"), site).run()
            except Exception:  # pylint: disable=broad-except
                traceback.print_exc()
                failed.append(word)
            if os.path.exists(f"{directory}/{word}/faults.json"):
                ran.append(word)
            with open(f"{directory}/run.json", "w") as file:
                json.dump({"seed": arguments.seed, "timeout": arguments.timeout, "tools": ran,
                           "machine": outcome.machine(), "command": _command_line(arguments)}, file)
    finally:
        site.end()
    return failed


def main():
    arguments = parse_arguments()
    if arguments.list:
        for name, kind in KINDS.items():
            print(f"{name:18} {kind.title}")
        return 0
    if arguments.check_arguments:
        return 0
    if arguments.report:
        return outcome.write(arguments.report, arguments.out, arguments.readme)
    if os.geteuid() != 0 or torture.enter(arguments) != "namespaces":
        say("compare: needs root: the hosts are network namespaces, and the servers' disks are mounted")
        return 2
    if arguments.seconds:
        arguments.minutes = arguments.seconds / 60
    reasons = {word: TOOLS[word].missing() for word in arguments.tool or DEFAULT}
    for word, reason in reasons.items():
        if reason:
            say(f"compare: {word} is left out: {reason}")
    words = [word for word, reason in reasons.items() if not reason]
    torture.stop_on_signals()
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    directory = os.path.abspath(arguments.keep or tempfile.mkdtemp(prefix="zklock-compare-"))
    os.makedirs(directory, exist_ok=not arguments.keep)
    say(f"compare: seed {arguments.seed}, session timeout {arguments.timeout} s")
    try:
        failed = run_all(words, arguments, directory)
        status = outcome.write(directory, arguments.out, arguments.readme)
        for word in failed:
            say(f"compare: {word} was not run to the end")
        return 2 if failed else status
    finally:
        if not arguments.keep:
            shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
