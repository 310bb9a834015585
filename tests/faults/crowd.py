"""The contenders. Each host has some slots, and each slot runs one zklock after another."""

import dataclasses
import heapq
import json
import os
import random
import shlex
import signal
import subprocess
import tempfile
import threading
import time

import checker
import histories

_MOST_RUNS = 100


class Reaper:
    """Reaps every child of this process, including adopted orphans. Runs in its own thread, which
    also runs delayed callbacks."""

    def __init__(self):
        self._callbacks = {}
        self._lock = threading.RLock()
        self._due = []  # a heap: moment, number, callback
        self._number = 0
        self._ends = False
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def start(self):
        self._thread.start()

    def stop(self):
        self._ends = True
        self._thread.join()

    def spawn(self, command, callback, **options):
        """Starts a process and returns its Popen; calls `callback(status)` once it has ended."""
        with self._lock:  # so that it is not reaped before it is known
            process = subprocess.Popen(command, start_new_session=True,
                                       **{"stdin": subprocess.DEVNULL, **options})
            self._callbacks[process.pid] = (process, callback)
            return process

    def kill(self, process):
        """Kills a process that spawn() has started, unless it has ended."""
        with self._lock:  # so that it is not reaped, and its pid given away, in between
            if process.returncode is None:
                os.kill(process.pid, signal.SIGKILL)

    def run(self, command, **options):
        """Runs a process until it has ended. Returns its status and standard output. While a reaper
        runs, subprocess.run() would lose the status to it."""
        statuses, ended = [], threading.Event()

        def callback(status):
            statuses.append(status)
            ended.set()
        with tempfile.TemporaryFile() as output:
            self.spawn(command, callback, stdout=output, stderr=subprocess.DEVNULL, **options)
            ended.wait()
            output.seek(0)
            return statuses[0], output.read().decode()

    def later(self, seconds, callback):
        with self._lock:
            self._number += 1
            heapq.heappush(self._due, (time.monotonic() + seconds, self._number, callback))

    def _serve(self):
        while not self._ends:
            time.sleep(0.01)
            with self._lock:
                self._collect()
                while self._due and self._due[0][0] <= time.monotonic():
                    heapq.heappop(self._due)[2]()

    def _collect(self):
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            _, status = os.waitpid(found.si_pid, 0)
            process, callback = self._callbacks.pop(found.si_pid, (None, None))
            if callback is not None:
                process.returncode = os.waitstatus_to_exitcode(status)
                callback(process.returncode)


@dataclasses.dataclass
class Plan:
    """What a contender will do. Drawn from its slot's random numbers, so that a seed reproduces the
    crowd."""
    lock: str
    word: str
    options: list
    timeout: float
    milliseconds: int
    manner: list  # arguments for recorder.c
    descendants: str = "leave"
    status: int = 0
    may_conflict: bool = False
    pause: float = 0.0
    nested: bool = False  # the command is another zklock, under the same lock
    outlives: bool = False  # the command is a shell that the nested zklock outlives
    held: bool = False  # a shell holds by --hold and runs the command under a nested zklock
    keeper_struck: bool = False  # faults strike its keeper, not the nested zklock
    releases: bool = False  # the shell calls `zklock release` rather than just ending
    kill_after: str | None = None
    stalls: bool = False  # standard error is a full pipe that is never read
    through: list = dataclasses.field(default_factory=list)  # what executes zklock
    reserves: bool = False  # a shell reserves, runs the command under that, and releases
    lasts: int | None = None  # milliseconds: it only reserves, and a waiter ends the reservation
    permits: int = 1
    take: int = 1  # how many of the permits it takes
    twice: bool = False  # the shell reserves one LOCK of a pool with two zklocks at once
    min_interval: int | None = None  # milliseconds
    max_run: int | None = None  # milliseconds
    others: list = dataclasses.field(default_factory=list)  # a set's other LOCKs, with options
    any_of: list = dataclasses.field(default_factory=list)  # a pool: its LOCKs
    program: list = dataclasses.field(default_factory=list)  # another program, in place of zklock

    def locks(self):
        """Returns the arguments that name its LOCKs."""
        return ["--any", *self.any_of] if self.any_of else [self.lock]

    def semaphore(self):
        """Returns the options for permits."""
        return (["--permits", str(self.permits)] if self.permits > 1 else []) + (
            ["--take", str(self.take)] if self.take > 1 else [])

    def keeps_history(self):
        """Returns whether the run may keep a history. This includes shells that use --hold."""
        return not self.reserves and self.word != "read" and "--read" not in self.options


def draw_plan(numbers, locks, timeouts):
    word = numbers.choices(["exclusive", "write", "read", "try"], [40, 15, 30, 15])[0]
    plan = Plan(lock=numbers.choice(locks), word=word, options=[],
                timeout=numbers.choice(timeouts),
                milliseconds=numbers.randint(5, 150), manner=[],
                pause=numbers.uniform(0, 0.1) if word != "try" else numbers.uniform(0.2, 0.8))
    if numbers.random() < 0.2:
        plan.milliseconds = numbers.randint(500, 2000)
    if word == "try":
        plan.options += numbers.choice([[], ["--read"], ["--write"]])
        plan.may_conflict = True
    elif numbers.random() < 0.25:
        plan.options += ["--wait", f"{numbers.randint(0, 3000)}ms"]
        plan.may_conflict = True
        if numbers.random() < 0.3:
            plan.options += numbers.choice([["--supersede"],
                                            ["--max-queue", str(numbers.randint(0, 4))]])
    plan.kill_after = numbers.choice(["100ms", "500ms", "1s", "5s"])
    plan.descendants = numbers.choice(["leave", "leave", "kill", "wait"])
    plan.manner += numbers.choice([[], ["tree"], ["daemon"], ["tree", "daemon"]])
    plan.manner += ["leave"] if plan.descendants != "leave" else []
    plan.manner += numbers.choice([[], [], ["slow"], ["stubborn"]])
    plan.status = numbers.choice([0, 0, 0, 7])
    plan.manner += [f"status={plan.status}"]
    share = numbers.random()
    plan.nested = share < 0.25
    plan.held = 0.25 <= share < 0.375
    plan.keeper_struck = plan.held and numbers.choice([False, True])
    plan.releases = numbers.choice([False, True])
    if not plan.nested and not plan.held and word != "try" and numbers.random() < 0.15:
        # A set.
        other = numbers.choice([one for one in locks if one != plan.lock] or locks)
        if other != plan.lock:
            plan.others = [numbers.choice(["--also-read", "--also-write"]), other]
    elif not plan.held and plan.keeps_history() and numbers.random() < 0.1:
        plan.min_interval = numbers.randint(50, 1000)
        plan.may_conflict = True
    if not plan.nested and not plan.held and numbers.random() < 0.15:
        plan.max_run = numbers.randint(300, 1500)
    return plan


def draw_reserving_plan(numbers, locks, timeouts):
    """Returns a plan for LOCKs that many contenders reserve: the first alone, either of the first two, or
    permits of the third."""
    single, other, semaphore = locks
    plan = draw_plan(numbers, [single], timeouts)
    plan.keeper_struck = plan.held = False
    plan.min_interval = plan.max_run = None
    if plan.word == "try":
        return plan
    share = numbers.random()
    if share < 0.25:
        plan.lock, plan.word, plan.options = semaphore, "exclusive", []
        plan.permits, plan.take = 3, numbers.randint(1, 3)
        plan.may_conflict = plan.nested = False
    elif share < 0.5:
        plan.any_of = numbers.sample([single, other], 2)
        plan.lock = plan.any_of[0]
        # zklock refuses a --wait of zero: no run could see that another one with its ID is about to
        # reserve.
        plan.options = [option for option in plan.options if option != "--supersede"]
        plan.options = ["1ms" if option == "0ms" else option for option in plan.options]
        plan.twice = numbers.choice([False, True])
    if numbers.random() < 0.6:
        plan.nested = False
        plan.reserves = True
        plan.lasts = numbers.choice([None, None, numbers.randint(300, 1500)])
    return plan


def draw_permit_plan(numbers, locks, timeouts):
    plan = draw_plan(numbers, locks, timeouts)
    plan.word = numbers.choice(["exclusive", "try"])
    plan.may_conflict = plan.may_conflict or plan.word == "try"
    plan.keeper_struck = plan.held = plan.nested = False
    plan.permits, plan.take, plan.min_interval = 3, numbers.choice([1, 1, 2, 3]), None
    # With a history, the release deletes the permits; without one, the close of the session does.
    plan.options, plan.others = ["--history", str(_MOST_RUNS)], []
    return plan


def draw_pool_plan(numbers, locks, timeouts):
    """Returns a plan for a pool: most contenders take any of two or three LOCKs, the others use one."""
    plan = draw_plan(numbers, locks, timeouts)
    if numbers.random() < 0.75:
        plan.any_of = numbers.sample(locks, numbers.choice([2, 3]))
        plan.lock = plan.any_of[0]
        plan.min_interval, plan.others = None, []
        plan.options = [option for option in plan.options if option != "--supersede"]
        plan.releases = False  # the shell does not know which LOCK was taken
    return plan


class Contender:
    """One run of zklock; with --hold or --reserve, the shell and everything it runs."""

    def __init__(self, number, host, plan, directory, of_crowd):
        self.plan = plan
        self.file = histories.RecordFile(f"{directory}/{number}.record")
        self.error_path = f"{directory}/{number}.err"
        self.label = f"contender-{number}"
        self.run = checker.Run(
            number=number, host=host, lock=plan.lock, word=plan.word, timeout=plan.timeout,
            spawned=histories.now(), may_conflict=plan.may_conflict,
            descendants=plan.descendants, nested=plan.nested, held=plan.held,
            keeper_struck=plan.keeper_struck, reserves=plan.reserves, lasts=plan.lasts,
            permits=plan.permits, take=plan.take, twice=plan.twice,
            min_interval=plan.min_interval and plan.min_interval / 1000,
            max_run=plan.max_run and plan.max_run / 1000, kill_after=seconds_of(plan.kill_after),
            other_locks=tuple(plan.others[1::2]), any_of=tuple(plan.any_of),
            label="" if plan.program else self.label)
        self.process = None
        self.full_pipe = None
        self.of_crowd = of_crowd  # a slot started it; otherwise a fault did, which owns it
        self.taker = None  # the object that has chosen it as a victim

    def note(self, record):
        """Notes the LOCK that a pool has taken: its record names it."""
        if self.plan.any_of and record is not None:
            self.run.lock = record.lock

    def is_alive(self):
        return self.run.status is None

    def has_said(self, words):
        with open(self.error_path, errors="replace") as file:
            return words in file.read()

    def zklock(self):
        """Returns the pid of the zklock that faults strike, or None."""
        if self.plan.keeper_struck:
            return self._keeper()
        if not self.is_alive():
            return None
        in_shell = self.plan.held or self.plan.reserves
        return self._child_of_shell() if in_shell else self.process.pid

    def guard(self):
        """Returns the pid of that zklock's guard, or None."""
        zklock = self.zklock()
        if zklock is None:
            return None
        return next((pid for pid in children_of(zklock) if name_of(pid) == "lock-guard"), None)

    def helper(self):
        """Returns the pid of the process through which its zklock reaches a server, or None."""
        zklock = self.zklock()
        for pid in children_of(zklock) if zklock is not None else []:
            if name_of(pid) == "zklock-transpor":
                return pid
            if name_of(pid) == "zklock-proxy":
                return next(iter(children_of(pid)), None)
        return None

    def _child_of_shell(self):
        """Returns the pid of the zklock that the shell waits for: the one with --hold, later the nested one."""
        return next((pid for pid in children_of(self.process.pid) if name_of(pid) == "zklock"),
                    None)

    def _keeper(self):
        """Returns the keeper's pid, even while the shell waits for the keeper, or after the shell has ended."""
        for pid in filter(str.isdecimal, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", errors="replace") as file:
                    arguments = file.read().split("\0")
            except OSError:
                continue
            if (self.label in arguments and name_of(pid) == "zklock"
                    and int(pid) not in children_of(self.process.pid)):
                return int(pid)
        return None

    def server_address(self):
        """Returns the (address, port) of the server it is connected to, from /proc/net/tcp."""
        holder = self._keeper() if self.plan.held else self.process.pid
        try:
            own = {os.readlink(f"/proc/{holder}/fd/{fd}")
                   for fd in os.listdir(f"/proc/{holder}/fd")}
            with open(f"/proc/{holder}/net/tcp") as file:
                for line in list(file)[1:]:
                    fields = line.split()
                    if fields[3] == "01" and f"socket:[{fields[9]}]" in own:
                        address, port = fields[2].split(":")
                        numbers = reversed(bytes.fromhex(address))
                        return ".".join(map(str, numbers)), int(port, 16)
        except OSError:
            pass
        return None

    def send(self, target, number):
        """Signals its zklock, guard or command, and records the signal. If that process no longer
        exists, records nothing and returns False."""
        if target == "zklock":
            pid = self.zklock()
        elif target == "guard":
            pid = self.guard()
        else:
            record = self.file.read()
            pid = record.lives[0].pid if record and self.is_alive() else None
        if pid is None:
            return False
        sent = checker.Sent(histories.now(), target, number)
        self.run.signals.append(sent)
        try:
            if not is_zombie(pid):
                os.kill(pid, number)
                return True
        except ProcessLookupError:
            pass
        self.run.signals.remove(sent)
        return False

    def finish(self, status):
        with open(self.error_path, errors="replace") as file:
            self.run.messages = file.read()[-2000:]
        self.read_record()
        self.run.ended = histories.now()
        self.run.status = status
        if self.full_pipe is not None:
            os.close(self.full_pipe)

    def read_record(self):
        """Reads the record again: processes that zklock left behind may have written to it since."""
        self.run.record = self.file.read()
        self.note(self.run.record)


def seconds_of(duration):
    """Returns the seconds in an option's value such as "500ms" or "5s"; for None, zklock's default, 10."""
    if duration is None:
        return 10.0
    return float(duration[:-2]) / 1000 if duration.endswith("ms") else float(duration[:-1])


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except OSError:
        return None


def is_zombie(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


class Crowd:
    """`addresses`: each server's address as seen by each host, {(host, server): (address, port)}.
    `links` runs commands on their host. Special contenders exist only if their LOCKs are given.
    `clock`: the library that gives each host a clock of its own."""

    def __init__(self, *, zklock, recorder, clock, hosts, addresses, links, reaper, directory, seed,
                 locks, timeouts, slots_per_host, reserved_locks=(), history_lock=None, permit_lock=None,
                 pool_locks=()):
        self._zklock = zklock
        self._recorder = recorder
        self._clock = clock
        self.clocks = {host: histories.Clock(f"{directory}/{host}.clock") for host in hosts}
        self.addresses = addresses
        self._links = links
        self._reaper = reaper
        self._directory = directory
        self._timeouts = timeouts
        self._lock = threading.RLock()
        self._ends = False
        self._count = 0
        self.hosts = hosts
        self.over = []
        self.alive = {}
        self.reserved_locks = reserved_locks
        self._history_lock = history_lock
        self._slots = [(host, random.Random(f"{seed} {host} {index}"), draw_plan, locks)
                       for host in hosts for index in range(slots_per_host)]
        self._slots += [(host, random.Random(f"{seed} {host} {draw.__name__}"), draw, own)
                        for host in hosts for draw, own in
                        [(draw_reserving_plan, reserved_locks),
                         (draw_permit_plan, permit_lock and [permit_lock]), (draw_pool_plan, pool_locks)]
                        if own]

    def start(self):
        for slot in self._slots:
            self._next(*slot)

    def stop(self):
        """Starts no more contenders; existing ones run to their end."""
        self._ends = True
        for contender in self.snapshot():
            contender.file.hold_until(0)

    def snapshot(self):
        with self._lock:
            return [one for one in self.alive.values() if one.process is not None]

    def read_records_again(self):
        with self._lock:
            for contender in self.over:
                contender.read_record()

    def runs(self, latest=0):
        """Returns all runs; with `latest`, only the live ones and the last `latest` of the ended ones."""
        with self._lock:
            return [contender.run for contender in self.over[-latest:] + list(self.alive.values())]

    def _next(self, host, numbers, draw, locks):
        plan = draw(numbers, locks, self._timeouts)

        def begin():
            if not self._ends:
                self.launch(host, plan, lambda: self._next(host, numbers, draw, locks))
        self._reaper.later(plan.pause, begin)

    def launch(self, host, plan, when_over=None):
        with self._lock:
            self._count += 1
            contender = Contender(self._count, host, plan, self._directory, when_over is not None)
            self.alive[self._count] = contender
        command = self._links.inside(host, self._command(contender, host))
        error = open(contender.error_path, "wb")
        if plan.stalls:
            contender.full_pipe, write_end = os.pipe()
            os.set_blocking(write_end, False)
            try:
                while True:
                    os.write(write_end, b"x" * 4096)
            except BlockingIOError:
                os.set_blocking(write_end, True)
            error.close()
            error = open(write_end, "wb", buffering=0)

        def over(status):
            contender.finish(status)
            with self._lock:
                del self.alive[contender.run.number]
                self.over.append(contender)
            if when_over:
                when_over()
        with error:
            contender.process = self._reaper.spawn(
                command, over, stdout=subprocess.DEVNULL, stderr=error,
                env={**os.environ, **self.clocks[host].variables(self._clock)})
        return contender

    def release_by_force(self, host, lock):
        """Releases a lock as an operator would. Returns when it is done."""
        self.operate(host, "release", "--holders", "--force", "--yes", lock)

    def reserve(self, host, lock, seconds):
        """Reserves a lock for `seconds`, as an operator would. Returns whether that succeeded."""
        return 0 == self.operate(host, "exclusive", "--reserve", "operator", "--for", f"{seconds}s", lock)

    def release_reservations(self, ids):
        """Releases the reservations with these IDs, as an operator would."""
        for one in ids:
            self.operate(self.hosts[0], "release", "--any", "--reserve", one, *self.reserved_locks)

    def operate(self, host, word, *arguments):
        """Runs a zklock as an operator would. Returns its status, None if it has not ended in 20 s."""
        done, statuses = threading.Event(), []

        def over(status):
            statuses.append(status)
            done.set()
        self._reaper.spawn(
            self._links.inside(host, [self._zklock, word, "--servers", self._servers_of(host),
                                      *arguments]),
            over, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        done.wait(20)
        return statuses[0] if statuses else None

    def run_history(self, host):
        """Returns the runs that zklock shows for the LOCK whose history is kept, newest first, or None if it
        cannot show them."""
        _, shown = self._reaper.run(
            self._links.inside(host, [self._zklock, "inspect", "--servers", self._servers_of(host),
                                      "--connect-timeout", "5s", "--history", "--json",
                                      self._history_lock]))
        if not shown:
            return None
        runs = json.loads(shown)[0]["runs"]
        return [{**run, "token": int(run["token"])} for run in runs]  # text, because it may exceed 2^53

    def _servers_of(self, host):
        return ",".join(f"{address}:{port}" for (seen_from, _), (address, port)
                        in self.addresses.items() if seen_from == host)

    def _command(self, contender, host):
        plan = contender.plan
        timeout = ["--session-timeout", f"{int(plan.timeout * 1000)}ms"]
        kill_after = ["--kill-after", plan.kill_after] if plan.kill_after else []
        ending = [*kill_after, "--descendants", plan.descendants]
        outer = [self._zklock, plan.word, "--servers", self._servers_of(host), "-v", "--label",
                 contender.label, *timeout, *plan.options, *plan.semaphore(), *plan.others]
        if self._history_lock in (plan.lock, *plan.any_of) and plan.keeps_history():
            outer += ["--history", str(_MOST_RUNS)]
        if plan.min_interval is not None:
            outer += ["--min-interval", f"{plan.min_interval}ms"]
        if plan.max_run is not None:
            outer += ["--max-run", f"{plan.max_run}ms"]
        recorder = [self._recorder, contender.file.path, str(plan.milliseconds), *plan.manner]
        if plan.program:
            return [*plan.program, self._servers_of(host), plan.lock, *recorder]
        if plan.reserves:
            return self._reserving_shell(contender, outer, ending, recorder, host)
        if plan.nested:
            recorder = self._nested_run(plan, host, [], recorder)
        if plan.outlives:
            recorder = ["sh", "-c", f"{shlex.join(recorder)} &\nsleep 2\n"]
        if not plan.held:
            return [*plan.through, *outer, *ending, *plan.locks(), "--", *recorder]
        hold = [*outer, *kill_after, "--hold", *plan.locks()]
        nested = self._nested_run(plan, host, [*timeout, *ending], recorder)
        release = [self._zklock, "release", "--servers", self._servers_of(host),
                   "--connect-timeout", "1s", plan.lock]
        # The shell handles the signal of a lost lock after the nested run has ended.
        return ["sh", "-c", f"trap : TERM\n{shlex.join(hold)} || exit\n{shlex.join(nested)}\n"
                "status=$?\n" + (f"{shlex.join(release)}\n" if plan.releases else "")
                + "exit $status\n"]

    def _reserving_shell(self, contender, zklock, ending, recorder, host):
        plan = contender.plan
        reserve = [*zklock, "--reserve", contender.label]
        servers = ["--servers", self._servers_of(host), "--connect-timeout", "1s"]
        # Requests that a zklock sent before it was killed or lost its server can be executed later, but not
        # after the end of its session.
        settle = f"test $status = 0 || sleep {plan.timeout + 2}\n"
        if plan.lasts is not None:
            reserve += ["--for", f"{plan.lasts}ms"]
        begin = f"{shlex.join([*reserve, *plan.locks()])}\nstatus=$?\n"
        if plan.twice:
            other_way = ["--any", *reversed(plan.any_of)]
            begin = (f"{shlex.join([*reserve, *other_way])} &\n{begin}"
                     f"wait $! || sleep {plan.timeout + 2}\n")
        if plan.lasts is not None:
            # Waiters delete expired reservations. Only a run that takes all permits has to wait for
            # every reservation.
            permits = ["--permits", str(plan.permits), "--take", str(plan.permits)]
            end = "until " + " && ".join(
                shlex.join([self._zklock, "exclusive", *servers, *(permits if plan.permits > 1 else []),
                            lock, "--", "true"])
                for lock in plan.any_of or [plan.lock])
        else:
            run = [self._zklock, plan.word, *servers, "-v", *ending, *plan.semaphore(), "--reserve",
                   contender.label, *plan.locks(), "--", *recorder]
            begin += f"test $status != 0 || {{ {shlex.join(run)}; status=$?; }}\n"
            release = [self._zklock, "release", *servers, "--reserve", contender.label, *plan.locks()]
            end = f"until {shlex.join(release)} || test $? = 75"
        return ["sh", "-c", f"trap : TERM\n{begin}{settle}{end}\ndo sleep 0.2\ndone\n"
                "exit $status\n"]

    def _nested_run(self, plan, host, options, command):
        reads = plan.word == "read" or "--read" in plan.options
        return [self._zklock, "read" if reads else "exclusive", "--servers",
                self._servers_of(host), "-v", *options, *plan.locks(), "--", *command]

    # --- victims ---------------------------------------------------------------------------------

    def running(self, host=None):
        """Returns the (contender, record) pairs whose command is running."""
        found = []
        for contender in self.snapshot():
            if host is not None and contender.run.host != host:
                continue
            record = contender.file.read()
            if record is not None and record.lives[0].ended is None and contender.is_alive():
                contender.note(record)
                found.append((contender, record))
        return found

    def take(self, numbers, candidates, taker):
        """Takes a candidate that no fault has struck or taken: it belongs to `taker` from then on.
        Returns None if there is no such candidate."""
        with self._lock:
            free = [one for one in candidates if one.taker is None and not one.run.signals]
            if not free:
                return None
            taken = numbers.choice(free)
            taken.taker = taker
            return taken

    def victim(self, numbers, seconds, taker, is_right=lambda contender: True, patience=10.0):
        """Takes a contender of the crowd whose command runs and will run for `seconds` unless ended.
        Returns None if none is found in time."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            # A reservation may keep a victim's successor waiting for an unknown time.
            candidates = [contender for contender, record in self.running()
                          if contender.of_crowd and contender.plan.max_run is None
                          and contender.plan.lock not in self.reserved_locks and is_right(contender)]
            contender = self.take(numbers, candidates, taker)
            if contender:
                contender.file.hold_until(histories.now() + seconds)
                time.sleep(0.02)
                record = contender.file.read()
                if record.lives[0].ended is None and contender.is_alive():
                    return contender
            time.sleep(0.02)
        return None

    def waiting(self):
        """Returns the contenders of the crowd whose command has not begun."""
        return [contender for contender in self.snapshot() if contender.of_crowd
                and contender.file.read() is None and contender.is_alive()]

    def kill_all(self):
        for contender in self.snapshot():
            self._reaper.kill(contender.process)
