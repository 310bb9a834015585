"""The faults: what is done, to which victims, and how long. The seed determines their order."""

import collections
import contextlib
import dataclasses
import json
import math
import os
import random
import re
import signal
import sys
import time
import traceback
import uuid

import checker
import histories
from crowd import Plan


_QUICK = ["kill_zklock", "kill_waiting_zklock", "kill_guard", "kill_command", "terminate_zklock",
          "terminate_waiting_zklock"]
# These only signal one contender of the crowd at a time. They start no contenders, and neither
# touch nor depend on links or servers, so they can be injected during another fault.
_OF_PROCESSES = [*_QUICK, "kill_reserving_zklock", "kill_zklock_and_guard", "stop_guard",
                 "stop_guard_and_kill_zklock", "stop_waiting_zklock", "stop_zklock",
                 "stop_zklock_and_guard", "stop_zklock_briefly"]


@dataclasses.dataclass
class Made:
    """A fault that was made. `victims`: contenders that were struck."""
    name: str
    begin: float
    # A majority of the servers keeps serving or is back soon, and can be reached: no command should
    # have to end.
    harmless: bool
    servers_struck: bool  # or links: some contenders may find no server
    victims: list = dataclasses.field(default_factory=list)
    end: float | None = None
    beside: bool = False  # in a thread of its own, at the same time as others


def _shift(days):
    return "a day ahead" if days > 0 else "a day back"


class Faults:
    """Injects one fault at a time. `crowd` provides the victims. With `beside`, another Faults, it
    injects only faults of processes, while `beside` injects others, and adds what it injected and
    found to the results of `beside`."""

    def __init__(self, *, seed, crowd, ensemble, links, tick, namespaces, cgroups=None,
                 releases=None, beside=None):
        self._numbers = random.Random(f"{seed} faults")
        self._beside = beside
        self._needs_signal = False  # a fault that has sent no signal is not counted
        self._crowd = crowd
        self._ensemble = ensemble
        self._links = links
        self._tick = tick
        self._namespaces = namespaces
        self._cgroups = cgroups  # None: commands have no cgroups
        self._releases = releases  # class paths of the servers' releases
        self._lasting = 0
        self._clocks_were_wrong = False
        self._deck = []
        self._count = 0  # how many faults this object has made
        self.not_made = collections.Counter()  # how often each was drawn and could not be made
        self.made = beside.made if beside else []
        # Promises broken while a fault was made, as checker.Violation.
        self.broken = beside.broken if beside else []

    def next(self):
        """Returns the name of the next fault. Each deck has all of them, in an order given by the seed;
        those that take no time are in it three times."""
        if not self._deck:
            names = _OF_PROCESSES if self._beside else self.all_names()
            self._deck = sorted([*names, *_QUICK, *_QUICK])
            self._numbers.shuffle(self._deck)
        return self._deck.pop()

    def all_names(self):
        names = [name[len("_do_"):] for name in dir(self) if name.startswith("_do_")]
        has_disks = self._ensemble is None or all(server.disk for server in self._ensemble.servers)
        return [name for name in names
                if (self._namespaces or "one_way" not in name and "member" not in name)
                and (self._cgroups is not None or "contained" not in name)
                and (has_disks or "disk" not in name)
                and (self._releases is not None or name != "another_release")]

    def make(self, name):
        """Makes a fault and repairs it. Returns False if the servers do not recover."""
        self._needs_signal = name in _OF_PROCESSES
        before = self._count
        getattr(self, f"_do_{name}")()
        self.not_made[name] += self._count == before
        if self._beside:
            return True
        self._links.mend_all()
        return self._ensemble.make_whole() and self._set_clocks_right()

    def make_until(self, is_over):
        """Makes faults until is_over(), in a thread of its own."""
        try:
            while not is_over():
                self.make(self.next())
                time.sleep(self._numbers.uniform(0, 0.2))
        except Exception:  # the main thread would not notice
            traceback.print_exc()
            self.broken.append(checker.Violation("driver", traceback.format_exc(), histories.now()))

    def struck(self):
        """Returns when the faults of servers or links began and ended."""
        return [(made.begin, math.inf if made.end is None else made.end) for made in self.made
                if made.servers_struck]

    # --- tools -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _fault(self, name, victims=(), *, harmless=False, servers=False):
        victims = [one for one in victims if one]
        if len(victims) == 1 and victims[0].run.keeper_struck:
            name = self._name_for_keeper(name)
        made = Made(name, histories.now(), harmless, servers, victims, beside=self._beside is not None)
        self.made.append(made)
        self._count += 1
        try:
            yield made
        finally:
            made.end = histories.now()
        if self._needs_signal and not any(
                sent.moment >= made.begin for victim in victims for sent in victim.run.signals):
            self.made.remove(made)
            self._count -= 1

    @staticmethod
    def _name_for_keeper(name):
        """Gives faults that strike a keeper (--hold) their own row in the table."""
        if "zklock" in name:
            return name.replace("zklock", "keeper")
        return name.replace("guard", "keeper's guard")

    def _expect(self, is_true, seconds, text):
        """Records a violation unless `is_true` becomes true within `seconds`."""
        self._wait(is_true, seconds)
        if not is_true():
            self.broken.append(checker.Violation("fault", text, histories.now()))

    def _victim(self, seconds=15.0, is_right=lambda contender: True):
        return self._crowd.victim(self._numbers, seconds, self, is_right)

    def _take(self, candidates):
        return self._crowd.take(self._numbers, candidates, self)

    def _all_running(self, host=None, seconds=15.0):
        """Keeps the commands that are running (on `host`) running for `seconds`, and returns their
        contenders. Leaves out the victims of faults that last at the same time."""
        # A command under a reservation does not end with a lease.
        found = [contender for contender, _ in self._crowd.running(host)
                 if not contender.plan.reserves and contender.plan.max_run is None
                 and contender.taker in (None, self)]
        for contender in found:
            contender.file.hold_until(histories.now() + seconds)
        return found

    def _allow_to_end(self, victims):
        for contender in victims:
            if contender is not None:
                contender.file.hold_until(0)

    def _wait(self, is_over, seconds):
        deadline = time.monotonic() + seconds
        while not is_over() and time.monotonic() < deadline:
            time.sleep(0.02)

    @staticmethod
    def _is_dead(contender):
        if not contender.is_alive():
            return True
        return Faults._last_of(contender) < histories.now() - 0.2

    @staticmethod
    def _last_of(contender):
        return contender.run.last_of(contender.file.read().lives)

    def _has_successor(self, contender):
        """Returns whether a conflicting command began on its lock after it was last seen alive."""
        if not self._is_dead(contender):
            return False
        end = self._last_of(contender)
        if any(record.lock == contender.run.lock and record.lives[0].begin > end
               for _, record in self._crowd.running()):
            return True
        return any(run.record is not None and run.lock == contender.run.lock and run.begin() > end
                   for run in self._crowd.runs(latest=200))

    def _await_successors(self, victims, beyond=0.0):
        """Waits until each victim is dead and has a successor, or until none can follow."""
        victims = [one for one in victims if one]
        longest = max((one.run.timeout for one in victims), default=4)
        self._wait(lambda: all(map(self._has_successor, victims)), longest + 2 * self._tick + 2)
        time.sleep(0.3 + beyond)

    def _cut_off(self, host, servers=None):
        for server in servers or self._ensemble.servers:
            self._links.cut_both(host, server.name)

    def _server_of(self, contender):
        address = contender.server_address()
        for server in self._ensemble.servers:
            if address == self._crowd.addresses[contender.run.host, server.name]:
                return server
        return None

    def _launch_lasting(self, lock, timeout=30.0, stalls=False, host=None, options=(),
                        manner=("tree", "daemon"), word="exclusive", milliseconds=60_000, **plan):
        plan = Plan(lock=lock, word=word, options=list(options), timeout=timeout,
                    milliseconds=milliseconds, manner=list(manner), stalls=stalls, **plan)
        return self._crowd.launch(host or self._numbers.choice(self._crowd.hosts), plan)

    def _start_lasting(self, timeout=30.0, stalls=False, lock=None, host=None, options=(),
                       lives=1, **plan):
        """Starts a command with a long lease on its own lock. Returns its contender once `lives`
        processes have left stamps, or None if the command does not begin."""
        self._lasting += 1
        contender = self._launch_lasting(lock or f"/torture/lasting-{self._lasting}", timeout,
                                         stalls, host, options, **plan)

        def has_begun():
            record = contender.file.read()
            return record is not None and len(record.lives) >= lives
        self._wait(has_begun, 15)
        if contender.file.read() is None:
            self._end_lasting(contender)
            return None
        return contender

    def _end_lasting(self, *contenders):
        for contender in contenders:
            if contender is not None and contender.is_alive():
                contender.send("zklock", signal.SIGTERM)

    # --- processes -------------------------------------------------------------------------------

    def _do_kill_zklock(self):
        for _ in range(2):
            victim = self._victim()
            if victim is None:
                return
            with self._fault("zklock killed", [victim]):
                victim.send("zklock", signal.SIGKILL)
                if victim.run.keeper_struck:
                    self._await_successors([victim])  # its session ends by its timeout
                else:
                    self._wait(lambda: self._has_successor(victim), 2)
            self._allow_to_end([victim])

    def _do_kill_waiting_zklock(self):
        victim = self._take(self._crowd.waiting())
        if victim is None:
            return
        with self._fault("waiting zklock killed", [victim]):
            victim.send("zklock", signal.SIGKILL)
            time.sleep(0.2)

    def _do_kill_between_end_and_release(self):
        # A success is recorded before the release; while answers are late, that takes a long time.
        holder = self._start_lasting(30.0, options=["--min-interval", "1ms"])
        if holder is None:
            return
        waiting = self._queue_behind(holder)
        with self._fault("zklock killed between its command's end and the release", [holder],
                         servers=True):
            for server in self._ensemble.servers:
                self._links.delay(holder.run.host, server.name, 0.5)
                self._links.delay(server.name, holder.run.host, 0.5)
            holder.file.finish()
            self._wait(lambda: holder.file.read().lives[0].ended is not None, 5)
            time.sleep(self._numbers.uniform(0.05, 0.8))
            holder.send("zklock", signal.SIGKILL)
            self._links.mend_all()
            self._expect(lambda: self._has_successor(holder), 10,
                         f"{holder.run.lock}: not released by the guard of a killed zklock")
        self._end_lasting(waiting)

    def _do_kill_with_nested_run(self):
        # The lock must also outlive the nested run.
        self._lasting += 1
        lock = f"/torture/lasting-{self._lasting}"
        outer = self._launch_lasting(lock, 30.0, nested=True, outlives=True, manner=["tree"])
        self._wait(lambda: outer.has_said("until its nested runs have ended")
                   and outer.file.read() is not None, 15)
        if outer.file.read() is None:
            return self._end_lasting(outer)
        waiting = self._queue_behind(outer)
        with self._fault("zklock killed while a nested run outlives its command", [outer]):
            outer.send("zklock", signal.SIGKILL)
            self._expect(lambda: self._has_successor(outer), 10,
                         f"{lock}: not released by the guard of a killed zklock")
        self._end_lasting(waiting)

    def _do_kill_starting_zklock(self):
        # It is killed within the first 40 ms, while it joins several queues.
        self._lasting += 1
        lock = f"/torture/lasting-{self._lasting}"
        for ways in ({"options": ["--permits", "1"]}, {"others": ["--also-write", f"{lock}-other"]}) * 3:
            starting = self._launch_lasting(lock, 30.0, **ways)
            time.sleep(self._numbers.uniform(0, 0.04))
            with self._fault("starting zklock killed"):
                starting.send("zklock", signal.SIGKILL)
                self._wait(lambda: not starting.is_alive(), 5)
                following = self._launch_lasting(lock, 30.0, **ways)
                self._expect(lambda: following.file.read() is not None, 10,
                             f"{lock}: not released by the guard of a killed zklock")
                following.file.finish()
                self._end_lasting(following)
                self._wait(lambda: not following.is_alive(), 5)

    def _do_kill_zklock_of_pool(self):
        # It is killed when both of its locks are released: it takes one and leaves the queue of the
        # other.
        self._lasting += 1
        locks = [f"/torture/lasting-{self._lasting}-{number}" for number in (1, 2)]
        for _ in range(3):
            holders = [self._start_lasting(lock=lock, manner=[]) for lock in locks]
            if None in holders:
                return self._end_lasting(*holders)
            pool = self._launch_lasting(locks[0], any_of=locks)
            self._wait(lambda: all(pool.has_said(f"waiting for {lock}:") for lock in locks), 10)
            with self._fault("zklock killed as it takes one of its locks", [pool]):
                self._end_lasting(*holders)
                time.sleep(self._numbers.uniform(0, 0.06))
                pool.send("zklock", signal.SIGKILL)
                following = [self._launch_lasting(lock) for lock in locks]
                self._expect(lambda: all(one.file.read() is not None for one in following), 10,
                             f"{', '.join(locks)}: not released by the guard of a killed zklock")
            self._end_lasting(*following)
            self._wait(lambda: not any(one.is_alive() for one in [*holders, *following]), 5)

    def _do_kill_reserving_zklock(self):
        # It is killed while it waits, converts its contender, or runs its command.
        victim = self._take([one for one in self._crowd.snapshot() if one.plan.reserves and one.zklock()])
        if victim is None:
            return
        with self._fault("reserving zklock killed", [victim]):
            victim.send("zklock", signal.SIGKILL)
            time.sleep(0.2)

    def _do_stop_waiting_zklock(self):
        # In the meantime its predecessor may release the lock, or its session may expire: it must
        # not start with a lease that has ended.
        victim = self._take(self._crowd.waiting())
        if victim is None:
            return
        with self._fault("waiting zklock stopped", [victim]):
            victim.send("zklock", signal.SIGSTOP)
            time.sleep(self._numbers.uniform(0.3, 1.5) * victim.run.timeout)
            victim.send("zklock", signal.SIGCONT)
            time.sleep(0.5)

    def _do_terminate_waiting_zklock(self):
        victim = self._take(self._crowd.waiting())
        if victim is None:
            return
        with self._fault("waiting zklock told to end", [victim]):
            victim.send("zklock", signal.SIGTERM)
            time.sleep(0.2)

    def _do_terminate_zklock(self):
        # The signal is forwarded; victims that end slowly show whether zklock waits for them.
        for manner in ("slow", "stubborn", None):
            victim = self._victim(1.5, lambda one: manner is None or manner in one.plan.manner)
            if victim is None:
                continue
            with self._fault("zklock told to end", [victim]):
                victim.send("zklock", signal.SIGTERM)
                self._wait(lambda: self._has_successor(victim), 3)

    def _do_stop_zklock(self):
        victim = self._victim()
        if victim is None:
            return
        with self._fault("zklock stopped for good", [victim]):
            victim.send("zklock", signal.SIGSTOP)
            self._await_successors([victim], self._numbers.uniform(0, 1))
            victim.send("zklock", signal.SIGCONT)

    def _do_stop_zklock_briefly(self):
        victim = self._victim(3.0)
        if victim is None:
            return
        with self._fault("zklock stopped for T/8", [victim], harmless=True):
            victim.send("zklock", signal.SIGSTOP)
            time.sleep(victim.run.timeout / 8)
            victim.send("zklock", signal.SIGCONT)
            time.sleep(1)
        self._allow_to_end([victim])

    def _do_stop_zklock_before_max_run(self):
        # The guard ends the command alone, and zklock learns of it later.
        self._strike_before_max_run("zklock stopped before --max-run", "zklock", 0)

    def _do_stop_guard_before_max_run(self):
        # zklock suspects its guard for three seconds, and then ends the command itself.
        self._strike_before_max_run("guard stopped before --max-run", "guard", 3)

    def _strike_before_max_run(self, name, target, patience):
        # The lease lasts too long to end the command in place of the limit.
        victim = self._start_lasting(
            30.0, max_run=self._numbers.randint(500, 2000), kill_after="500ms", descendants="kill",
            manner=self._numbers.choice([["tree", "daemon"], ["tree", "daemon", "stubborn"]]))
        if victim is None:
            return
        run = victim.run
        with self._fault(name, [victim]):
            victim.send(target, signal.SIGSTOP)
            at_most = run.max_run + run.kill_after + patience + checker.OVERRUN
            self._expect(lambda: self._is_dead(victim), at_most,
                         f"run {run.number} went on after its --max-run")
            victim.send(target, signal.SIGCONT)
            self._wait(lambda: not victim.is_alive(), 5)

    def _do_kill_guard(self):
        victim = self._victim()
        if victim is None:
            return
        replaced = victim.run.keeper_struck
        with self._fault("guard killed", [victim], harmless=replaced):
            victim.send("guard", signal.SIGKILL)
            self._wait(lambda: self._has_successor(victim), 0.5 if replaced else 3)
        self._allow_to_end([victim])

    def _do_stop_guard(self):
        victim = self._victim()
        if victim is None:
            return
        with self._fault("guard stopped for good", [victim]):
            victim.send("guard", signal.SIGSTOP)
            self._await_successors([victim])
        self._allow_to_end([victim])

    def _do_stop_zklock_and_guard(self):
        victim = self._victim()
        if victim is None:
            return
        with self._fault("zklock and guard both stopped", [victim]):
            victim.send("zklock", signal.SIGSTOP)
            victim.send("guard", signal.SIGSTOP)
            self._await_successors([victim])
            victim.send("zklock", signal.SIGCONT)
            self._wait(lambda: not victim.is_alive(), 5)

    def _do_stop_guard_and_kill_zklock(self):
        victim = self._victim()
        if victim is None:
            return
        with self._fault("guard stopped, then zklock killed", [victim]):
            victim.send("guard", signal.SIGSTOP)
            victim.send("zklock", signal.SIGKILL)
            self._await_successors([victim])

    def _do_kill_zklock_and_guard(self):
        # Killing both at once is only covered for the command itself: zklock(1), CAVEATS.
        victim = self._victim(is_right=lambda one: not {"tree", "daemon"} & set(one.plan.manner))
        if victim is None:
            return
        with self._fault("zklock and guard killed together", [victim]):
            victim.send("zklock", signal.SIGSTOP)  # so that it does not see the guard die
            victim.send("guard", signal.SIGKILL)
            victim.send("zklock", signal.SIGKILL)
            self._await_successors([victim])

    def _do_kill_helper(self):
        self._strike_helper("helper of its connection killed", signal.SIGKILL)

    def _do_stop_helper(self):
        self._strike_helper("helper of its connection stopped", signal.SIGSTOP)

    def _strike_helper(self, name, number):
        # With --tls the helper is zklock-transport, which connects through the proxy command.
        victim = self._start_lasting(
            5.0, options=["--proxy-command", "exec socat - TCP:%h:%p"])
        helper = victim.helper() if victim is not None else None
        if helper is not None:
            with self._fault(name, [victim], harmless=True):
                os.kill(helper, number)
                # This is longer than the lease, which is renewed through another helper.
                time.sleep(1.5 * victim.run.timeout)
        self._end_lasting(victim)

    def _do_kill_command(self):
        victim = self._victim(3.0)
        if victim is None:
            return
        with self._fault("command killed", [victim]):
            victim.send("command", signal.SIGKILL)
            self._wait(lambda: self._has_successor(victim), 3)

    def _do_stop_command(self):
        victim = self._victim(3.0)
        if victim is None:
            return
        with self._fault("command stopped for 0.5 s", [victim], harmless=True):
            victim.send("command", signal.SIGSTOP)
            time.sleep(0.5)
            victim.send("command", signal.SIGCONT)
        self._allow_to_end([victim])

    # --- what only a cgroup can end --------------------------------------------------------------

    def _start_hard(self, kind, contained, timeout=5.0):
        """Starts a command with a process that is hard to end, with or without a cgroup."""
        manner, through = [kind], []
        if kind in ("foreign", "hidden"):
            manner = self._cgroups.foreign_manner(kind)
            through = self._cgroups.as_nobody(hides=kind == "hidden")
        return self._start_lasting(timeout, manner=manner, through=through, lives=2,
                                   options=[] if contained else ["--contain", "off"])

    def _strike_hard(self, kind, words, contained, may_remain=False):
        for name, target in (("zklock killed", ["zklock"]), ("guard killed", ["guard"]),
                             ("host cut off", [])):
            self._strike_one_hard(kind, f"{name}, {words}", target, contained, may_remain)

    def _strike_one_hard(self, kind, name, targets, contained, may_remain):
        victim = self._start_hard(kind, contained)
        if victim is None:
            return
        victim.run.may_remain = may_remain
        follower = self._launch_lasting(victim.run.lock, victim.run.timeout)
        time.sleep(0.5)
        name += "" if contained else ", `--contain off`"
        with self._fault(name, [victim], servers=not targets):
            if len(targets) == 2:
                victim.send("zklock", signal.SIGSTOP)  # so that it does not see the guard die
            for target in reversed(targets):
                victim.send(target, signal.SIGKILL)
            if not targets:
                self._cut_off(victim.run.host)
            self._await_successors([victim])
            self._links.mend_all()
        victim.file.finish()
        self._end_lasting(victim, follower)

    def _do_contained_foreign(self):
        self._strike_hard("foreign", "the command runs a process as root", True)

    def _do_contained_hidden(self):
        self._strike_hard("hidden", "the command has a hidden process", True)

    def _do_contained_bomb(self):
        self._strike_hard("bomb", "the command is a fork bomb", True)

    def _do_contained_daemon(self):
        self._strike_hard("lasting", "the command has a daemon that ignores TERM", True)

    def _do_contained_kill_zklock_and_guard(self):
        # The next zklock that starts on the host kills what they leave.
        self._strike_one_hard("lasting", "zklock and guard killed together, a daemon left",
                              ["zklock", "guard"], True, False)

    # The same without a cgroup. zklock(1), CAVEATS, lists what may remain; everything else ends.

    def _do_uncontained_foreign(self):
        self._strike_hard("foreign", "the command runs a process as root", False, True)

    def _do_uncontained_hidden(self):
        self._strike_hard("hidden", "the command has a hidden process", False, True)

    def _do_uncontained_bomb(self):
        self._strike_hard("bomb", "the command is a fork bomb", False, True)

    def _do_uncontained_daemon(self):
        self._strike_hard("lasting", "the command has a daemon that ignores TERM", False)

    def _do_uncontained_kill_zklock_and_guard(self):
        self._strike_one_hard("lasting", "zklock and guard killed together, a daemon left",
                              ["zklock", "guard"], False, True)

    # --- contenders ------------------------------------------------------------------------------

    def _do_force_simple_lock(self):
        # The next holder's znode has the same path. A zklock that is stopped in the
        # meantime finds only the new one.
        lock, simple = f"/torture/simple-{self._lasting}", ["--dialect", "simple"]
        holder = self._start_lasting(10.0, lock=lock, options=simple)
        if holder is None:
            return
        following = self._launch_lasting(lock, 10.0, options=simple)
        self._wait(lambda: following.has_said("waiting for"), 10)
        stops = self._numbers.choice([False, True])
        with self._fault("simple lock released by force", [holder, following], harmless=True):
            if stops:
                holder.send("zklock", signal.SIGSTOP)
            holder.run.forced = histories.now()
            self._crowd.release_by_force(holder.run.host, lock)
            self._wait(lambda: following.file.read() is not None, 5)
            if stops:
                holder.send("zklock", signal.SIGCONT)
            self._wait(lambda: not holder.is_alive(), holder.run.timeout)
            time.sleep(following.run.timeout / 4)  # the duration of its next heartbeats
        self._end_lasting(holder, following)

    def _do_overwrite_lock_data(self):
        # The data looks restored from a backup, or overwritten by another client with WRITE
        # permission.
        holder = self._start_lasting(10.0)
        if holder is None:
            return
        record = holder.file.read()
        waiting = self._queue_behind(holder)
        stranger = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", str(uuid.uuid4()),
                          record.node.rsplit("/", 1)[1])[:-10]
        number = self._numbers.choice([1, 2, 5000])
        with self._ensemble.client() as client:
            client.set(record.lock, f"zklock/1 {stranger}{number:010} exclusive {record.token - 1}"
                       " 0.500 0 elsewhere".encode())
        behind = self._queue_behind(holder)
        time.sleep(behind.run.timeout / 2)  # it reads LOCK's data every quarter
        end = self._numbers.choice([signal.SIGTERM, signal.SIGKILL])
        with self._fault("LOCK's data overwritten, a waiter ended", [holder], harmless=True):
            waiting.send("zklock", end)
            time.sleep(1.5)
        self._end_lasting(holder, waiting, behind)

    def _do_false_reservation(self):
        # A client with only CREATE permission can make it. The reservation ends soon, and the first
        # reader that notices deletes it.
        holder = self._start_lasting(10.0)
        if holder is None:
            return
        with self._ensemble.client() as client:
            client.create(
                f"{holder.run.lock}/x-{uuid.uuid4()}-reserve-lock-", sequence=True, value=json.dumps(
                    {"reservation": {"id": "x", "for": 1500, "token": 1}}).encode())
        with self._fault("child that looks like a reservation", [holder], harmless=True):
            readers = [self._queue_behind(holder, "read") for _ in range(4)]
            time.sleep(3)
        self._end_lasting(holder, *readers)

    def _queue_behind(self, holder, word="exclusive"):
        waiting = self._launch_lasting(holder.run.lock, holder.run.timeout, word=word)
        self._wait(lambda: waiting.has_said("waiting for"), 10)
        return waiting

    def _do_kill_among_kazoo(self):
        # kazoo itself is not struck: nothing ends its command with its session.
        lock, shared = f"/torture/kazoo-{self._lasting}", ["--dialect", "kazoo"]
        program = [sys.executable, "-B", f"{os.path.dirname(__file__)}/kazoo_lock.py"]
        queue = [self._start_lasting(10.0, lock=lock, program=program, milliseconds=1000)]
        if queue[0] is None:
            return
        for options in ({"options": shared}, {"program": program}, {"options": shared}):
            queue.append(self._launch_lasting(lock, 10.0, milliseconds=1000, **options))
            time.sleep(0.7)
        victim = queue[self._numbers.choice([1, 3])]
        with self._fault("zklock killed in a queue of kazoo", [victim], harmless=True):
            if self._numbers.choice([False, True]):
                self._wait(lambda: victim.file.read() is not None, 10)
            victim.send("zklock", signal.SIGKILL)
            self._expect(lambda: not any(one.is_alive() for one in queue), 30,
                         f"{lock}: kazoo and zklock have not taken turns")

    # --- links between hosts and servers ---------------------------------------------------------

    def _do_cut_host(self):
        victim = self._victim()
        if victim is None:
            return
        host = victim.run.host
        with self._fault("host cut off from all servers", self._all_running(host),
                         servers=True) as made:
            self._cut_off(host)
            self._await_successors(made.victims, self._numbers.uniform(0, 1))

    def _do_cut_host_one_way_out(self):
        self._cut_one_way("packets from a host lost", lambda host, server: (host, server))

    def _do_cut_host_one_way_in(self):
        self._cut_one_way("packets to a host lost", lambda host, server: (server, host))

    def _cut_one_way(self, name, direction):
        victim = self._victim()
        if victim is None:
            return
        host = victim.run.host
        with self._fault(name, self._all_running(host), servers=True) as made:
            for server in self._ensemble.servers:
                self._links.cut(*direction(host, server.name))
            self._await_successors(made.victims)

    def _do_cut_host_briefly(self):
        victim = self._victim(4.0)
        if victim is None:
            return
        host = victim.run.host
        with self._fault("host cut off for T/10", self._all_running(host, 4.0), harmless=True,
                         servers=True) as made:
            self._cut_off(host)
            time.sleep(victim.run.timeout / 10)
            self._links.mend_all()
            time.sleep(2)
        self._allow_to_end(made.victims)

    def _do_cut_host_from_its_server(self):
        victim = self._victim(10.0, lambda one: self._server_of(one) is not None)
        if victim is None:
            return
        server = self._server_of(victim)
        with self._fault("host cut off from the server in use", [victim], harmless=True,
                         servers=True):
            self._links.cut_both(victim.run.host, server.name)
            time.sleep(victim.run.timeout + self._tick)
        self._allow_to_end([victim])

    def _do_flapping_link(self):
        victim = self._victim(6.0)
        if victim is None:
            return
        host = victim.run.host
        with self._fault("host's links flap", self._all_running(host, 6.0), harmless=True,
                         servers=True) as made:
            for _ in range(5):
                self._cut_off(host)
                time.sleep(self._numbers.uniform(0.02, 0.3))
                self._links.mend_all()
                time.sleep(self._numbers.uniform(0.1, 0.5))
        self._allow_to_end(made.victims)

    def _do_delay_host(self):
        victim = self._victim(10.0)
        if victim is None:
            return
        host = victim.run.host
        with self._fault("host's links delayed", self._all_running(host, 10.0), harmless=True,
                         servers=True) as made:
            for server in self._ensemble.servers:
                self._links.delay(host, server.name, self._numbers.uniform(0.05, 0.25))
                self._links.delay(server.name, host, self._numbers.uniform(0.05, 0.25))
            time.sleep(3)
        self._allow_to_end(made.victims)

    # --- two at the same time --------------------------------------------------------------------

    def _do_cut_host_with_guard_stopped(self):
        victim = self._victim()
        if victim is None:
            return
        with self._fault("guard stopped, then its host cut off", [victim], servers=True):
            victim.send("guard", signal.SIGSTOP)
            self._cut_off(victim.run.host)
            self._await_successors([victim])

    def _do_cut_host_with_zklock_stopped(self):
        victim = self._victim()
        if victim is None:
            return
        with self._fault("host cut off, then its zklock stopped", [victim], servers=True):
            self._cut_off(victim.run.host)
            time.sleep(self._numbers.uniform(0, victim.run.timeout / 2))
            victim.send("zklock", signal.SIGSTOP)
            self._await_successors([victim])
            victim.send("zklock", signal.SIGCONT)

    def _do_kill_zklock_on_a_cut_host(self):
        victim = self._victim()
        if victim is None:
            return
        with self._fault("zklock killed, its host cut off", [victim], servers=True):
            self._cut_off(victim.run.host)
            time.sleep(self._numbers.uniform(0, 0.5))
            victim.send("zklock", signal.SIGKILL)
            self._await_successors([victim])

    def _do_stalled_standard_error(self):
        victim = self._start_lasting(5.0, stalls=True)
        if victim is None:
            return
        with self._fault("standard error stalled, host cut off", [victim], servers=True):
            self._cut_off(victim.run.host)
            self._wait(lambda: self._is_dead(victim), victim.run.timeout + 2)
            time.sleep(0.3)
        self._end_lasting(victim)

    # --- servers ---------------------------------------------------------------------------------

    def _strike_server(self, name, choose, strike, seconds, harmless, mend=lambda server: None):
        """Picks a server by `choose`, applies `strike`, and restores it after `seconds`."""
        server = choose()
        victim = self._victim(seconds + 5, lambda one: self._server_of(one) in (server, None))
        victim = victim or self._victim(seconds + 5)
        if server is None:
            return
        with self._fault(name, self._all_running(seconds=seconds + 5), harmless=harmless,
                         servers=True) as made:
            strike(server)
            time.sleep(seconds)
            mend(server)
            self._ensemble.make_whole()
        self._allow_to_end(made.victims)

    def _random_follower(self):
        followers = self._ensemble.followers()
        return self._numbers.choice(followers) if followers else None

    def _do_kill_follower(self):
        self._strike_server("follower killed", self._random_follower, self._ensemble.end, 1, True)

    def _do_kill_leader(self):
        self._strike_server("leader killed", self._ensemble.leader, self._ensemble.end, 1, True)

    def _do_stop_follower(self):
        self._strike_server("follower stopped", self._random_follower, self._ensemble.pause,
                            self._numbers.uniform(3, 6), True)

    def _do_stop_leader(self):
        self._strike_server("leader stopped", self._ensemble.leader, self._ensemble.pause,
                            self._numbers.uniform(3, 6), False)

    def _do_remove_member_follower(self):
        self._strike_server("follower removed from the ensemble, and added", self._random_follower,
                            self._ensemble.remove_member, 3, True, self._ensemble.add_member)

    def _do_remove_member_leader(self):
        self._strike_server("leader removed from the ensemble, and added", self._ensemble.leader,
                            self._ensemble.remove_member, 3, False, self._ensemble.add_member)

    def _do_slow_disk_of_follower(self):
        self._strike_server("follower's disk stalls for 0.9 s of each second", self._random_follower,
                            lambda server: server.disk.stall(6), 0, True)

    def _do_slow_disk_of_leader(self):
        self._strike_server("leader's disk stalls for 0.9 s of each second", self._ensemble.leader,
                            lambda server: server.disk.stall(6), 0, False)

    def _do_full_disk_of_follower(self):
        self._strike_server("follower's disk full", self._random_follower, self._fill_disk, 3, True,
                            self._make_room)

    def _do_full_disk_of_leader(self):
        self._strike_server("leader's disk full", self._ensemble.leader, self._fill_disk, 3, False,
                            self._make_room)

    def _fill_disk(self, server):
        words = "No space left on device"
        before = server.times_logged(words)
        server.disk.fill()
        self._ensemble.use_up_disk(server)
        self._expect(lambda: server.times_logged(words) > before, 5,
                     f"{server.name} did not notice that its disk was full")

    def _make_room(self, server):
        """Makes room as an operator does: a server that could not write has to be started again."""
        server.disk.empty()
        self._ensemble.end(server)

    def _do_damaged_log(self):
        self._strike_server("follower killed, the end of its log damaged", self._random_follower,
                            self._damage_log, 1, True)

    def _damage_log(self, server):
        self._ensemble.end(server)
        self._ensemble.repair(server)
        how = server.damage_log(self._numbers)
        self._ensemble.start(server)
        self._wait(lambda: server.pid is None or server.mode(), 60)
        refused = server.pid is None
        print(f"           the end of its log {how}: it {'refuses to start' if refused else 'starts'}",
              flush=True)
        if refused:
            server.put_data_away()  # as its operator does, once the others have a quorum

    def _do_elect(self):
        wanted = self._random_follower()
        if wanted is None:
            return
        with self._fault("another leader elected", self._all_running(seconds=8), harmless=False,
                         servers=True) as made:
            self._ensemble.elect(wanted)
        self._allow_to_end(made.victims)

    def _do_delay_servers(self):
        with self._fault("links between servers delayed", self._all_running(seconds=5),
                         harmless=True, servers=True) as made:
            for one in self._ensemble.servers:
                for other in self._ensemble.servers:
                    if one is not other:
                        self._links.delay(one.name, other.name, self._numbers.uniform(0.02, 0.1))
            time.sleep(3)
        self._allow_to_end(made.victims)

    def _do_slow_commits(self):
        # A change takes two to four of these delays, depending on the server.
        victims = self._all_running(seconds=12)
        with self._fault("commits take longer than T/5", victims, servers=True) as made:
            for one in self._ensemble.servers:
                for other in self._ensemble.servers:
                    if one is not other:
                        self._links.delay(one.name, other.name, self._numbers.uniform(0.3, 0.7))
            # A run on a free lock acquires it, or gives up because the servers answer too slowly;
            # it never waits for another contender.
            self._lasting += 1
            free = self._launch_lasting(f"/torture/free-{self._lasting}", 4.0, milliseconds=5,
                                        manner=["status=0"])
            time.sleep(10)
            # It needs six changes, one after another, and another server if an answer comes too late.
            self._expect(lambda: not free.is_alive(), 15, f"{free.run.lock}: nobody got it while commits"
                         " took longer than T/5")
        self._allow_to_end(made.victims)

    def _cut_server(self, name, role, isolate, harmless):
        """Cuts the victim's server off from the other two; with `isolate` the victim's host can
        reach only that server."""
        leader = self._ensemble.leader()

        def is_right(contender):
            server = self._server_of(contender)
            return server is not None and (server is leader) == (role == "leader")
        victim = self._victim(is_right=is_right)
        if victim is None or leader is None:
            return
        server = self._server_of(victim)
        host = victim.run.host
        others = [one for one in self._ensemble.servers if one is not server]
        with self._fault(name, [victim], harmless=harmless, servers=True):
            if isolate:
                self._cut_off(host, others)
            for other in others if role == "leader" else [leader]:
                self._links.cut_both(server.name, other.name)
            if isolate:
                self._await_successors([victim])
            else:
                time.sleep(victim.run.timeout + self._tick)
        self._allow_to_end([victim])

    def _do_cut_follower(self):
        self._cut_server("follower cut off from its leader", "follower", False, True)

    def _do_cut_follower_seen_alone(self):
        self._cut_server("follower cut off from its leader, the host sees no other", "follower",
                         True, False)

    def _do_cut_leader(self):
        self._cut_server("leader cut off from its quorum", "leader", False, False)

    def _do_cut_leader_seen_alone(self):
        self._cut_server("leader cut off from its quorum, the host sees no other", "leader",
                         True, False)

    def _do_pause_all_servers(self):
        victim = self._victim(5.0)
        if victim is None:
            return
        with self._fault("all servers gone for T/10", self._all_running(seconds=5.0), harmless=True,
                         servers=True) as made:
            for server in self._ensemble.servers:
                self._ensemble.pause(server)
            time.sleep(victim.run.timeout / 10)
            for server in self._ensemble.servers:
                self._ensemble.resume(server)
            time.sleep(2)
        self._allow_to_end(made.victims)

    def _do_kill_all_servers(self):
        lasting = self._start_lasting()
        victims = [one for one in self._all_running() if one is not lasting]
        with self._fault("all servers killed and back, T = 30 s", [lasting], harmless=True,
                         servers=True), \
             self._fault("all servers gone for longer than T", victims, servers=True):
            for server in self._ensemble.servers:
                self._ensemble.end(server)
            longest = max((one.run.timeout for one in victims), default=4)
            self._wait(lambda: all(map(self._is_dead, victims)), longest + 1)
            self._ensemble.make_whole()
            time.sleep(1)
        self._end_lasting(lasting)

    def _do_rolling_restart(self):
        lasting = [self._start_lasting(), self._start_lasting()]
        with self._fault("servers restarted one by one, T = 30 s", lasting, harmless=True,
                         servers=True):
            self._ensemble.restart_one_by_one()
            time.sleep(1)
        self._end_lasting(*lasting)

    def _do_another_release(self):
        lasting = [self._start_lasting(), self._start_lasting()]
        server = self._numbers.choice(self._ensemble.servers)
        server.jars = next(one for one in self._releases if one != server.jars)
        with self._fault("server restarted with another release, T = 30 s", lasting, harmless=True,
                         servers=True):
            self._ensemble.end(server, signal.SIGTERM)
            self._ensemble.make_whole()
            time.sleep(1)
        self._end_lasting(*lasting)

    def _do_another_max_session_timeout(self):
        self._change_settings("maxSessionTimeout", 12, max_session_timeout=12_000)

    def _do_another_tick_time(self):
        # The largest session timeout is then 20 of the servers' ticks.
        tick = 2 * self._tick
        self._change_settings("tickTime", 20 * tick, tick=round(1000 * tick),
                              max_session_timeout=None)

    # --- clocks ----------------------------------------------------------------------------------

    def _do_clock_of_host(self):
        # zklock does not use the time of day to measure or compare anything.
        host = self._numbers.choice(self._crowd.hosts)
        for days in self._numbers.sample([1, -1], 2):
            with self._fault(f"host's clock set {_shift(days)}", self._all_running(host, seconds=8),
                             harmless=True) as made:
                self._crowd.clocks[host].set(days)
                time.sleep(3)
            self._allow_to_end(made.victims)
        self._crowd.clocks[host].set(0)

    def _do_clock_of_follower(self):
        # Nothing depends on a follower's clock: the leader stamps all transactions.
        follower = self._random_follower()
        if follower is None:
            return
        for days in self._numbers.sample([1, -1], 2):
            with self._fault(f"follower's clock set {_shift(days)}", self._all_running(seconds=8),
                             harmless=True) as made:
                self._set_clock(follower, days)
                time.sleep(3)
            self._allow_to_end(made.victims)

    def _do_clock_of_leader_forward(self):
        leader = self._ensemble.leader()
        lasts, interval = self._prepare_for_clocks(600)
        if leader is None or interval is None:
            return
        with self._fault("leader's clock set a day ahead", self._all_running(seconds=15),
                         harmless=True) as made:
            self._set_clock(leader, 1)
            # Both end by that clock, as zklock(1), CAVEATS, says.
            self._expect_run(True, "a reservation remained although it had ended", lasts)
            self._expect_run(True, "--min-interval kept a run from beginning that was due", interval,
                             min_interval=600_000)
            time.sleep(2)
        self._allow_to_end(made.victims)
        self._set_clock(leader, 0)
        # According to its record, the last run began tomorrow.
        self._expect_run(False, "--min-interval allowed a run after one of tomorrow", interval,
                         min_interval=600_000)

    def _do_clock_of_leader_back(self):
        leader = self._ensemble.leader()
        lasts, interval = self._prepare_for_clocks(2)
        if leader is None or interval is None:
            return
        with self._fault("leader's clock set a day back", self._all_running(seconds=15),
                         harmless=True) as made:
            self._set_clock(leader, -1)
            self._expect_run(False, "a reservation ended before the servers' clock said so", lasts)
            self._expect_run(False, "--min-interval ended before the servers' clock said so", interval,
                             min_interval=2_000)
        self._allow_to_end(made.victims)
        self._set_clock(leader, 0)
        self._expect_run(True, "a reservation remained although it had ended", lasts)
        self._expect_run(True, "--min-interval kept a run from beginning that was due", interval,
                         min_interval=2_000)

    def _do_elect_with_another_clock(self):
        wanted = self._random_follower()
        if wanted is None:
            return
        days = self._numbers.choice([1, -1])
        self._set_clock(wanted, days)
        with self._fault(f"a leader elected whose clock is set {_shift(days)}",
                         self._all_running(seconds=8), servers=True) as made:
            self._ensemble.elect(wanted)
            self._ensemble.make_whole()
            time.sleep(2)
        self._allow_to_end(made.victims)

    def _set_clock(self, server, days):
        self._clocks_were_wrong = True
        server.clock.set(days)
        if server.mode() == "leader" and self._ensemble.days_ahead() != days:
            self.broken.append(checker.Violation(
                "fault", f"the clock of {server.name} was not set {_shift(days)}", histories.now()))

    def _prepare_for_clocks(self, seconds):
        """Reserves one lock for `seconds`, and lets a run with an equally long --min-interval
        succeed under another. Returns both locks, or (None, None) if that failed."""
        self._lasting += 1
        lasts, interval = (f"/torture/{name}-{self._lasting}" for name in ("lasts", "interval"))
        reserved = self._crowd.reserve(self._numbers.choice(self._crowd.hosts), lasts, seconds)
        ran = self._try_to_run(interval, min_interval=1000 * seconds)
        return (lasts, interval) if reserved and ran else (None, None)

    def _try_to_run(self, lock, **plan):
        contender = self._launch_lasting(lock, 10.0, options=["--wait", "3s"], milliseconds=5,
                                         manner=["status=0"], may_conflict=True, **plan)
        self._wait(lambda: not contender.is_alive(), 15)
        return contender.file.read() is not None

    def _expect_run(self, expected, text, lock, **plan):
        if self._try_to_run(lock, **plan) != expected:
            self.broken.append(checker.Violation("clock", f"{lock}: {text}", histories.now()))

    def _set_clocks_right(self):
        """Corrects all clocks. Returns False if they are still wrong. Also removes what was recorded in
        the meantime: reservations that end tomorrow, and last runs that began tomorrow."""
        if not self._clocks_were_wrong:
            return True
        self._clocks_were_wrong = False
        if not self._ensemble.set_all_clocks_right():
            return False
        time.sleep(2)  # longer than any reservation of the crowd with an end
        self._crowd.release_reservations(
            self._ensemble.reservations(self._crowd.reserved_locks, older_than=1.9))
        self._ensemble.forget_runs_of_tomorrow("/torture")
        return True

    def _do_throttle_servers(self):
        lasting = [self._start_lasting(), self._start_lasting()]
        with self._fault("servers restarted one by one, then throttling requests, T = 30 s",
                         lasting, harmless=True, servers=True):
            self._ensemble.restart_one_by_one(more=[
                "request_throttle_max_requests=1", "request_throttle_stall_time=5",
                "throttled_op_wait_time=1"])
            time.sleep(15)  # several heartbeats of these commands, and many hand-overs of others
            self._ensemble.restart_one_by_one()
        self._end_lasting(*lasting)

    def _change_settings(self, what, shortened, **settings):
        """Shortens the session timeout of two commands to `shortened` seconds and cuts one of them
        off; then restores the setting under the other one."""
        hosts = self._numbers.sample(self._crowd.hosts, 2)
        stays, victim = (self._start_lasting(host=host) for host in hosts)
        # Little may be left of a lease that was renewed T/3 ago, as the leader is restarted too.
        left = shortened - 30 / 3
        with self._fault(f"{what} changed, servers restarted one by one, T = 30 s",
                         [stays, victim], harmless=left >= 10, servers=True):
            self._ensemble.restart_one_by_one(**settings)
            time.sleep(1)
        if victim is not None and victim.is_alive():
            with self._fault(f"host cut off after {what} was changed", self._all_running(hosts[1]),
                             servers=True):
                self._cut_off(hosts[1])
                # Wait until its session has expired.
                time.sleep(min(shortened, victim.run.timeout) + 4 * self._tick + 1)
                self._links.mend_all()
        with self._fault(f"{what} changed back, servers restarted one by one, T = 30 s", [stays],
                         harmless=True, servers=True):
            self._ensemble.restart_one_by_one()
            time.sleep(1)
        self._end_lasting(stays, victim)
