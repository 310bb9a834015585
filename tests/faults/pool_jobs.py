#!/usr/bin/python3 -B
"""40 jobs from five hosts use a pool of four LOCKs. Twenty of their zklocks are killed, and a job that
has failed is started again. Prints every broken promise, and how long a LOCK was free while a job
waited for it:

  tests/faults/pool_jobs.py [--kill running|waiting] [BUILD]

BUILD has the programs, build/release by default. Without --kill, zklocks that run a command and
zklocks that wait are killed in turn.
"""

import argparse
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time

import checker
import histories
import report
import torture
from crowd import Plan

_HOSTS = [f"h{number}" for number in range(1, 6)]
_LOCKS = [f"/torture/pool-{number}" for number in range(1, 5)]
_JOBS, _KILLS, _TICK, _TIMEOUT = 40, 20, 500, 10.0


def _plan(numbers):
    return Plan(lock=_LOCKS[0], any_of=numbers.sample(_LOCKS, len(_LOCKS)), word="exclusive",
                options=[], timeout=_TIMEOUT, milliseconds=numbers.randint(500, 1500), manner=["tree"])


def _run_jobs(crowd, numbers, kinds):
    """Runs all jobs until they are done. Kills a zklock every half second, one of each of `kinds` in
    turn."""
    def start(host):
        # The callback runs when the contender has just been added to `over`.
        crowd.launch(host, _plan(numbers), lambda: crowd.over[-1].run.status and start(host))
    for index in range(_JOBS):
        start(_HOSTS[index % len(_HOSTS)])
    kills = 0
    while sum(contender.run.status == 0 for contender in list(crowd.over)) < _JOBS:
        time.sleep(0.5)
        is_running = kinds[kills % len(kinds)] == "running"
        found = [one for one, _ in crowd.running()] if is_running else crowd.waiting()
        found = [one for one in found if not one.run.signals]
        if found and kills < _KILLS:
            kills += 1
            numbers.choice(found).send("zklock", signal.SIGKILL)


def _report(runs, history):
    """Prints the results and returns the violations."""
    kills = [sum(bool(run.signals) and (run.record is not None) is ran for run in runs)
             for ran in (True, False)]
    commands = sum(run.record is not None for run in runs)
    found = report.free_while_waiting(runs, history)
    print(f"{_JOBS} jobs, {len(runs)} runs, {commands} commands; zklock killed {kills[0]} times with"
          f" its command, {kills[1]} times while it waited\n"
          f"a LOCK was free for {100 * sum(found.gaps) / found.waited:.2f} % of the"
          f" {found.waited:.1f} s in which a job waited for it: {len(found.gaps)} times, for"
          f" {1000 * statistics.median(found.gaps):.0f} ms (median),"
          f" {1000 * max(found.gaps):.0f} ms (longest)\n"
          "behind the contender of a killed zklock it was free for another"
          f" {100 * found.blocked / found.waited:.2f} %")
    return checker.check(runs, history, lambda begin, end: False)


def main():
    parser = argparse.ArgumentParser(prog="pool_jobs.py")
    parser.add_argument("build", nargs="?", default="build/release", type=os.path.abspath)
    parser.add_argument("--kill", choices=["running", "waiting"])
    arguments = torture.parse_run_of_its_own(parser, _TICK)
    directory = tempfile.mkdtemp(prefix="zklock-pool-")
    site = torture.Site(arguments, arguments.network, directory, _HOSTS, locks=_LOCKS,
                        timeouts=[_TIMEOUT], slots_per_host=0)
    crowd = site.crowd
    try:
        site.reaper.start()
        if not site.ensemble.make_whole():
            sys.exit("pool_jobs.py: the servers did not start")
        _run_jobs(crowd, random.Random(arguments.seed),
                  [arguments.kill] if arguments.kill else ["running", "waiting"])
        time.sleep(_TIMEOUT + 2)  # how long the session of a killed zklock may last
        crowd.read_records_again()
        for server in site.ensemble.servers:
            site.ensemble.end(server, signal.SIGTERM)
        history = histories.ServerHistory.read([server.logs() for server in site.ensemble.servers],
                                               "/torture/")
    finally:
        site.end()
        shutil.rmtree(directory, ignore_errors=True)
    violations = _report(crowd.runs(), history)
    for violation in violations:
        print(f"VIOLATION  {violation}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
