"""Measures zklock and its peers. Called by scripts/bench."""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import peers
import report
from parts import PARTS, Bench
from servers import Etcd, ZooKeeper

_TABLES = ["scale", "ways", "tree", "pool", "profile"]  # parts that have a table of their own in the page
_DEFAULT = [name for name in PARTS if name not in _TABLES]
_PAGE = "tests/bench/README.md"


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(64, f"bench: {message}; try 'scripts/bench --help'\n")


def parse_arguments():
    parser = _Parser(prog="bench", allow_abbrev=False)
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--without", action="append", default=[], metavar="PEER",
                        choices=["flock", "etcdctl", "kazoo", "curator"])
    parser.add_argument("--out", default="build/bench", metavar="DIRECTORY")
    parser.add_argument("--before", metavar="ZKLOCK")
    parser.add_argument("--readme", action="store_true")
    # Of scripts/bench:
    parser.add_argument("--tools")
    parser.add_argument("--check-arguments", action="store_true")
    arguments = parser.parse_args()
    for name in arguments.parts:
        if name not in PARTS:
            parser.error(f"unknown part '{name}' (expected {', '.join(PARTS)})")
    if arguments.rounds < 1:
        parser.error(f"invalid number of rounds '{arguments.rounds}'")
    if arguments.readme and arguments.parts not in ([], *([name] for name in _TABLES)):
        parser.error("--readme needs all default parts, or scale, ways, tree, pool or profile alone")
    return arguments


class _Stop(BaseException):
    pass


def _on_signal(number, _):
    raise _Stop(number)


def find_peers(arguments, zookeeper, etcd, directory):
    found, lacking = {}, {}
    makers = {
        "zklock": lambda: peers.Zklock(zookeeper, arguments.tools),
        "floor": lambda: peers.Floor(zookeeper, arguments.tools),
        "floor-guard": lambda: peers.GuardedFloor(zookeeper, arguments.tools),
        "flock": lambda: peers.Flock(directory),
        "etcdctl": lambda: peers.Etcdctl(etcd),
        "kazoo": lambda: peers.Kazoo(zookeeper, arguments.tools),
        "curator": lambda: peers.Curator(zookeeper, arguments.tools),
    }
    for word, make in makers.items():
        why = "left out" if word in arguments.without else peers.missing(word)
        if why is None:
            found[word] = make()
        else:
            lacking[word] = why
    return found, lacking


def measure(arguments, directory):
    results = report.Results()
    with ZooKeeper() as zookeeper:
        etcd = None
        try:
            if "etcdctl" not in arguments.without and peers.missing("etcdctl") is None:
                etcd = Etcd().__enter__()
            found, lacking = find_peers(arguments, zookeeper, etcd, directory)
            for word, why in lacking.items():
                print(f"bench: without {word}: {why}", file=sys.stderr)
            bench = Bench(found, zookeeper, arguments.tools, directory, arguments.rounds, results,
                          arguments.before)
            for name in arguments.parts or _DEFAULT:
                print(f"bench: {name}", file=sys.stderr, flush=True)
                getattr(bench, PARTS[name])()
        finally:
            if etcd is not None:
                etcd.__exit__()
    return results


def main():
    arguments = parse_arguments()
    if arguments.check_arguments:
        return 0
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _on_signal)
    os.makedirs(arguments.out, exist_ok=True)
    directory = tempfile.mkdtemp(prefix="zklock-bench-")
    try:
        results = measure(arguments, directory)
    except _Stop as stop:
        return 128 + stop.args[0]
    except subprocess.CalledProcessError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    text = results.markdown()
    print(text)
    with open(f"{arguments.out}/bench.md", "w") as file:
        file.write(text)
    if plot := results.plot():
        with open(f"{arguments.out}/handover.svg", "w") as file:
            file.write(plot)
    if arguments.readme and arguments.parts:
        report.put_into_page(_PAGE, arguments.parts[0], text)
    elif arguments.readme:
        report.put_into_page(_PAGE, "bench", f"{text}\n![hand-over by length of the queue]"
                             "(handover.svg)\n")
        with open("tests/bench/handover.svg", "w") as file:
            file.write(plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
