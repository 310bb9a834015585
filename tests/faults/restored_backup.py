#!/usr/bin/python3 -B
"""Restores the servers' data from a backup while contenders run, as zklock(1), CAVEATS, requires. Prints every
broken promise:

  tests/faults/restored_backup.py [--idle] [--too-early | --same-epoch] [BUILD]

BUILD has the programs, build/release by default. With --idle the backup is from before the first contender: those
in a backup keep others waiting until their sessions expire. With --too-early (and --idle) the servers are back
before the leases have ended; with --same-epoch they continue with the backup's epoch. Each of the two must break
a promise.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time

import checker
import histories
import torture

_HOSTS = ["h1", "h2", "h3", "h4"]
_LOCKS = ["/torture/a", "/torture/b"]
_TICK, _TIMEOUT = 500, 10.0
_BEFORE, _AFTER = 10.0, 20.0  # seconds of work


class _Run:
    def __init__(self, arguments, site, directory):
        self._arguments = arguments
        self._ensemble, self._crowd, self._links = site.ensemble, site.crowd, site.links
        self._numbers = random.Random(arguments.seed)
        self._trouble = None
        self._backup = f"{directory}/backup"
        self._found = []

    def _expect(self, is_true, text):
        if not is_true:
            self._found.append(checker.Violation("restore", text, histories.now()))

    def _reserve(self, one):
        self._expect(self._crowd.reserve(_HOSTS[0], f"/torture/{one}", 3600), f"{one}: not reserved")

    def _release(self, one):
        status = self._crowd.operate(_HOSTS[0], "release", "--reserve", "operator", f"/torture/{one}")
        self._expect(status == 0, f"{one}: not released")

    def _is_reserved(self, one):
        status = self._crowd.operate(_HOSTS[0], "try", f"/torture/{one}", "--", "true")
        self._expect(status in (0, 75), f"{one}: try ended with {status}")
        return status == 75

    def _holder(self, lock):
        """Returns a contender whose command excludes all others, and keeps running."""
        return self._crowd.victim(self._numbers, 60.0, self, patience=60.0, is_right=lambda one: (
            one.run.lock == lock and one.run.word != "read" and "--read" not in one.plan.options
            and not one.run.may_remain)) or sys.exit(f"restored_backup.py: nobody holds {lock}")

    def _history(self):
        return histories.ServerHistory.read(
            [server.logs(put_away=False) for server in self._ensemble.servers], "/torture/")

    def _back_up(self):
        """Copies the files one after another, as a backup of a running server does."""
        shutil.copytree(f"{self._ensemble.servers[0].directory}/data/version-2", self._backup)

    def _restore(self):
        data = [f"{server.directory}/data/version-2" for server in self._ensemble.servers]
        epoch = 0
        for one in data:
            with open(f"{one}/acceptedEpoch") as file:
                epoch = max(epoch, int(file.read()))
        for server, one in zip(self._ensemble.servers, data):
            server.put_data_away()
            shutil.copytree(self._backup, one)
            for name in () if self._arguments.same_epoch else ("acceptedEpoch", "currentEpoch"):
                with open(f"{one}/{name}", "w") as file:
                    file.write(f"{epoch + 100}")

    def run(self):
        """Returns the violations."""
        self._reserve("released-later")
        if self._arguments.idle:
            self._back_up()
        self._crowd.start()
        time.sleep(_BEFORE)
        if not self._arguments.idle:
            self._back_up()
        self._release("released-later")
        self._reserve("reserved-later")
        time.sleep(_BEFORE)
        # This begins two epochs that the backup lacks: the restored servers would use the first one again.
        for _ in range(2):
            self._ensemble.elect(self._ensemble.followers()[0])
            self._expect(self._ensemble.make_whole(), "the servers did not come back")
        time.sleep(_BEFORE)

        running = [self._holder(lock) for lock in _LOCKS]
        # This host cannot learn from the restored servers that it has lost its session.
        cut_off = running[0].run.host
        for server in self._ensemble.servers:
            self._links.cut_both(cut_off, server.name)
        stopped = histories.now()
        for server in self._ensemble.servers:
            self._ensemble.end(server)
        alive, gone = self._crowd.running(), histories.now()
        if not self._arguments.too_early:
            time.sleep(_TIMEOUT)
            for contender, _ in alive:
                record = contender.file.read()
                lasts = stopped if contender.run.host == cut_off else gone
                self._expect(contender.run.last_of(record.lives) < lasts + _TIMEOUT,
                             f"run {contender.run.number} outlived its lease")
        old = self._history()
        self._restore()
        restored = histories.now()
        # The backup's contenders exist until their sessions have expired; then the host is
        # connected again.
        self._trouble = (stopped, restored + _TIMEOUT + 2)
        self._expect(self._ensemble.make_whole(), "the servers do not start with the backup")
        time.sleep(_TIMEOUT)
        self._links.mend_all()
        time.sleep(_AFTER)
        self._expect(self._is_reserved("released-later"), "a reservation of the backup is not there again")
        self._expect(not self._is_reserved("reserved-later"), "a reservation made after the backup is there")
        self._release("released-later")

        self._crowd.stop()
        time.sleep(_TIMEOUT + 2)
        self._crowd.read_records_again()
        for server in self._ensemble.servers:
            self._ensemble.end(server, signal.SIGTERM)
        new = self._history()
        runs = self._crowd.runs()
        self._report(runs, restored)
        return self._found + self._judge(runs, old, new, restored)

    def _judge(self, runs, old, new, restored):
        had_trouble = checker.trouble_of([self._trouble])
        settled = [run for run in runs if (run.begin() if run.record else run.ended) > restored]
        return (checker.overlaps(runs) + checker.token_order(runs) + checker.incomplete(runs)
                + checker.unended(runs)
                + checker.forbidden_statuses(runs, had_trouble)
                + checker.against_servers([run for run in runs if run not in settled], old)
                + checker.against_servers(settled, new) + checker.idle(settled, new, [self._trouble])
                + checker.refused(settled, new, had_trouble) + checker.ghosts(new))

    @staticmethod
    def _report(runs, restored):
        begun = [run for run in runs if run.record is not None]
        after = [run for run in begun if run.begin() > restored]
        tokens = [max((run.record.token for run in some), default=0)
                  for some in ([run for run in begun if run not in after], after)]
        print(f"{len(runs)} contenders, {len(begun)} commands, {len(after)} of them after the restore,"
              f" {sum(run.status == 76 for run in runs)} ended by zklock; highest tokens {tokens}")


def main():
    parser = argparse.ArgumentParser(prog="restored_backup.py")
    parser.add_argument("build", nargs="?", default="build/release", type=os.path.abspath)
    parser.add_argument("--idle", action="store_true")
    parser.add_argument("--too-early", action="store_true")
    parser.add_argument("--same-epoch", action="store_true")
    arguments = torture.parse_run_of_its_own(parser, _TICK)
    directory = tempfile.mkdtemp(prefix="zklock-restore-")
    site = torture.Site(arguments, arguments.network, directory, _HOSTS, locks=_LOCKS,
                        permit_lock="/torture/permits", pool_locks=[*_LOCKS, "/torture/c"],
                        timeouts=[_TIMEOUT], slots_per_host=3)
    try:
        site.reaper.start()
        if not site.ensemble.make_whole():
            sys.exit("restored_backup.py: the servers did not start")
        violations = _Run(arguments, site, directory).run()
    finally:
        site.end()
        shutil.rmtree(directory, ignore_errors=True)
    for violation in violations:
        print(f"VIOLATION  {violation}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
