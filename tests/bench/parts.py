"""The measurements, part by part."""

import collections
import contextlib
import os
import select
import signal
import statistics
import subprocess
import time

import peers
import phases
import scale
import tree
import ways
from relay import Relay
from report import text_of
from servers import ZooKeeper

PARTS = {"start": "start", "slow-fsync": "slow_fsync", "handover": "handover",
         "slow-handover": "slow_handover", "commits": "commits", "requests": "requests",
         "waiting": "waiting", "memory": "memory", "holder": "holder", "join": "join",
         "killed": "killed", "contain": "contain", "binary": "binary", "scale": "scale",
         "ways": "ways", "tree": "tree", "pool": "pool", "profile": "profile"}

# A single waiter has known for some time that it is next, as most waiters do when commands take
# longer than these. In longer queues, most waiters learn it only when their turn comes.
_LENGTHS = [1, 2, 10, 100, 1000]
_PATIENCE = 120
_SETTLE = 0.3  # after the last waiter has queued: it still has to set its watch, for example

_POOLS = [1, 2, 8, 32]  # numbers of LOCKs; 1: a single LOCK, without --any

# A command with many processes that ignore the stop signal. As long as one of them is alive, the FIFO
# has a writer.
_TREE = ('$SIG{TERM} = "IGNORE"; open my $alive, ">", $ARGV[0] or die;'
         'for (1 .. $ARGV[1]) { defined(my $pid = fork) or die; if (!$pid) { sleep 1000; exit } }'
         'syswrite $alive, "x"; sleep 1000')
_CONTAIN = {"in a cgroup": "require", "without": "off"}

_FREE = "free lock, `true`, release"
_SLOW = "the same, each fsync 5 ms slower"
_COMMITS = "commits that a hand-over waits for"
_LATE_COMMITS = "… by a waiter of three session timeouts"
_LATE = "hand-over to a waiter of three session timeouts, each fsync 5 ms slower"


def _children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


def _tree(pid):
    return [pid, *(one for child in _children(pid) for one in _tree(child))]


def _pss(pid):
    """The proportional set size, in KiB."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))


def _cpu(pid):
    """CPU time, in seconds."""
    with open(f"/proc/{pid}/schedstat") as file:
        return int(file.read().split()[0]) / 1e9


def _sleeps(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file
                    if line.startswith("voluntary_ctxt_switches"))


def _wait_until(is_so, what, patience=_PATIENCE):
    deadline = time.monotonic() + patience
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: not within {patience} s")
        time.sleep(0.02)


class Queue:
    """A holder and its waiters, as processes of one peer. Leaving the `with` ends them."""

    def __init__(self, peer, lock, fifo):
        """`fifo`: commands can read it until release(). (etcdctl's have no standard input.)"""
        self._peer, self.lock = peer, lock
        self._fifo = os.open(fifo, os.O_RDWR)
        self._started, self._undo = [], []
        self._there = 0

    def __enter__(self):
        _wait_until(lambda: self._peer.waiting(self.lock) == 0, "an empty queue")
        return self

    def release(self):
        if self._fifo is not None:
            os.close(self._fifo)
            self._fifo = None

    def __exit__(self, *_):
        self.release()
        # Let them finish: most peers, when killed, keep their place in the queue for a while.
        for process in self._started:
            if process.stdin:
                process.stdin.close()
        for process in self._started:
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for undo in self._undo:
            undo()

    def start(self, command, argv=None, timeout=None, stdin=subprocess.PIPE,
              stdout=subprocess.PIPE, queues=1):
        """Starts another process, which joins `queues` queues. A standard input that is a pipe
        stays open."""
        process = subprocess.Popen(
            argv or self._peer.run(self.lock, command, timeout), stdin=stdin, stdout=stdout,
            stderr=subprocess.DEVNULL, env={**os.environ, **self._peer.environment})
        self._started.append(process)
        self._there += queues
        return process

    def fill(self, count):
        if count > 0:
            self._undo.append(self._peer.fill(self.lock, count))
            self._there += count

    def settle(self):
        _wait_until(lambda: self._peer.waiting(self.lock) >= self._there,
                    f"{self._there} of {self._peer.title} in the queue")
        time.sleep(_SETTLE)


class Bench:
    def __init__(self, found, zookeeper, tools, directory, rounds, results, before):
        """`before`: another zklock, to be profiled along with this one; may be None."""
        self._peers, self._zookeeper, self._tools, self._before = found, zookeeper, tools, before
        self._directory, self._rounds, self._results = directory, rounds, results
        self._stamps, self._fifo = f"{directory}/stamps", f"{directory}/held"
        os.mkfifo(self._fifo)

    def _queue(self, peer, lock):
        return Queue(peer, lock, self._fifo)

    # ---- runs in turn ------------------------------------------------------------------------

    def _in_turn(self, commands, rounds, environment=None, status=0):
        """Runs `commands`, {name: argv}, alternately. Returns {name: (median seconds, median CPU
        seconds)}."""
        argv = [f"{self._tools}/bench_stopwatch", str(rounds)]
        for command in commands.values():
            argv += [":::", *command]
        lines = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True,
                               env={**os.environ, **(environment or {})}).stdout.splitlines()
        taken = collections.defaultdict(list)
        for line in lines:
            index, wall, cpu, ended = map(int, line.split())
            name = list(commands)[index]
            if ended != status:
                raise RuntimeError(f"{name} ended with {ended}: {commands[name]}")
            taken[name].append((wall / 1e9, cpu / 1e9))
        return {name: tuple(statistics.median(column) for column in zip(*runs))
                for name, runs in taken.items()}

    def _free_locks(self, what, found, words, rounds):
        chosen = [found[word] for word in words if word in found]
        environment = {}
        for peer in chosen:
            environment |= peer.environment
        medians = self._in_turn(
            {peer.word: peer.run(f"/free-{peer.word}", ["true"]) for peer in chosen}, rounds,
            environment)
        for word, (seconds, _) in medians.items():
            self._results.add(what, word, seconds, "s")

    def start(self):
        self._free_locks(_FREE, self._peers,
                         ["zklock", "floor", "floor-guard", "flock", "etcdctl", "kazoo"],
                         self._rounds)
        if "curator" in self._peers:
            self._free_locks(_FREE, self._peers, ["curator"], max(self._rounds // 5, 3))
        ratio = self._results.ratio
        ratio("free lock: zklock to floor", (_FREE, "zklock"), (_FREE, "floor"), 1.25)
        ratio("free lock: zklock to flock(1)", (_FREE, "zklock"), (_FREE, "flock"), 1.8)
        ratio("free lock: etcdctl to zklock", (_FREE, "etcdctl"), (_FREE, "zklock"), 5, True)
        ratio("free lock: kazoo to zklock", (_FREE, "kazoo"), (_FREE, "zklock"), 18, True)

    @contextlib.contextmanager
    def _slow_zookeeper(self):
        """Peers of a server whose fsync takes 5 ms longer."""
        with ZooKeeper(preload=f"{self._tools}/libbench_slow_fsync.so") as slow:
            yield slow, {"zklock": peers.Zklock(slow, self._tools),
                         "floor": peers.Floor(slow, self._tools)}

    def slow_fsync(self):
        with self._slow_zookeeper() as (slow, found):
            if "kazoo" in self._peers:
                found["kazoo"] = peers.Kazoo(slow, self._tools)
            self._free_locks(_SLOW, found, list(found), max(self._rounds // 2, 5))
        self._results.ratio("slow fsync: zklock to floor (three group commits)",
                            (_SLOW, "zklock"), (_SLOW, "floor"), 1.1)

    def binary(self):
        zklock = f"{self._tools}/zklock"
        self._results.target("binary", os.path.getsize(zklock) / 1e6, 2.5, "MB")
        dynamic = subprocess.run(["readelf", "-d", zklock], check=True, stdout=subprocess.PIPE,
                                 text=True).stdout
        needed = [line.split("[")[1].rstrip("]") for line in dynamic.splitlines()
                  if "(NEEDED)" in line]
        # In Debian libm is part of libc.
        foreign = [name for name in needed if not name.startswith(("libc.", "libm.", "ld-"))]
        self._results.target("libraries needed besides libc's", len(foreign), 0)
        medians = self._in_turn({"true": ["true"], "version": [zklock, "--version"],
                                 "help": [zklock, "exclusive", "--help"]}, self._rounds)
        for what, name in (("`zklock --version`", "version"), ("`zklock exclusive --help`", "help")):
            self._results.add(what, "zklock", medians[name][0], "s")
            self._results.add(what, "true", medians["true"][0], "s")
            self._results.target(what, medians[name][0], 1.5 * medians["true"][0] + 0.001, "s")

    # ---- hand-over ---------------------------------------------------------------------------

    def _stamp(self, *words):
        return [f"{self._tools}/bench_stamp", self._stamps, *words]

    def _clear_stamps(self):
        with open(self._stamps, "w"):
            pass

    def _read_stamps(self):
        """The stamps, in seconds."""
        with open(self._stamps) as file:
            return [int(line) / 1e9 for line in file]

    def _spans(self, count):
        _wait_until(lambda: len(self._read_stamps()) > count, f"{count} hand-overs")
        stamps = self._read_stamps()[:count + 1]
        return [after - before for before, after in zip(stamps, stamps[1:])]

    def _hand_over(self, peer, length):
        """The time spans between the commands of a holder and its waiters."""
        self._clear_stamps()
        real = min(length, peer.most_real)
        with self._queue(peer, f"/queue-{peer.word}-{length}") as queue:
            queue.start(self._stamp(self._fifo))
            queue.settle()
            for _ in range(real):
                queue.start(self._stamp())
            queue.settle()
            queue.fill(length - real)
            queue.settle()
            queue.release()
            return self._spans(real)

    def _hand_over_herd(self, length):
        self._clear_stamps()
        lock = f"/queue-herd-{length}"
        # Creates LOCK.
        subprocess.run(self._peers["zklock"].run(lock, ["true"]), check=True)
        grants = min(length, 10 if length < 500 else 6) + 1
        herd = subprocess.Popen(
            [f"{self._tools}/bench_crowd", "herd", self._zookeeper.servers, lock, str(length + 1),
             str(grants), *self._stamp()], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            if herd.stdout.readline() != b"ready\n":
                raise RuntimeError("bench_crowd herd did not start")
            herd.stdin.close()
            return self._spans(grants - 1)
        finally:
            herd.wait()

    def _hand_overs(self, found, words, length):
        """{word: time spans}. The peers take turns, so that other load on the machine affects all
        of them."""
        spans = collections.defaultdict(list)
        wanted = {}
        for word in words:
            if word in found and not (word == "curator" and length > 3) \
                    and not (word == "flock" and length > 100):
                wanted[word] = min(self._rounds,
                                   10 if length == 1 or word in ("kazoo", "curator") else
                                   20 if length < 10 else 40)
        while waiting := [word for word in wanted if len(spans[word]) < wanted[word]]:
            for word in waiting:
                spans[word] += self._hand_over(found[word], length)
        return spans

    def handover(self):
        for length in _LENGTHS:
            what = f"hand-over, {length} waiting"
            spans = self._hand_overs(
                self._peers,
                ["zklock", "floor", "floor-guard", "flock", "etcdctl", "kazoo", "curator"], length)
            while len(spans["herd"]) < min(self._rounds, 6):
                spans["herd"] += self._hand_over_herd(length)
            for word, taken in spans.items():
                seconds = statistics.median(taken)
                self._results.add(what, word, seconds, "s")
                self._results.add_handover(word, length, seconds)
        for length in _LENGTHS:
            what = f"hand-over, {length} waiting"
            self._results.ratio(f"{what}: zklock to floor", (what, "zklock"), (what, "floor"), 1.15)
            self._results.ratio(f"{what}: etcdctl to zklock", (what, "etcdctl"), (what, "zklock"),
                                1, True)
        self._results.ratio("hand-over: 1,000 waiting to 10", ("hand-over, 1000 waiting", "zklock"),
                            ("hand-over, 10 waiting", "zklock"), 1.2)

    def slow_handover(self):
        """Leaves out etcd: it is statically linked, so nothing can be preloaded into it."""
        with self._slow_zookeeper() as (_, found):
            for length in _LENGTHS:
                what = f"hand-over, {length} waiting, each fsync 5 ms slower"
                for word, taken in self._hand_overs(found, list(found), length).items():
                    self._results.add(what, word, statistics.median(taken), "s")
                self._results.ratio(f"{what}: zklock to floor", (what, "zklock"),
                                    (what, "floor"), 1.1)

    def _watched_hand_over(self, peer, waited, timeout):
        """(commits between two commands, seconds): the commit of the release, and each write of the
        next contender that is answered before its command starts. Needs a slow server:
        there, a write that nothing waits for is answered later."""
        self._clear_stamps()
        host, port = peer.servers.split(":")
        with Relay(host, int(port)) as relay, \
                self._queue(peer, f"/watched-{peer.word}") as queue:
            queue.start(self._stamp(self._fifo), timeout=timeout)
            queue.settle()
            argv = peer.run(queue.lock, self._stamp(), timeout)
            argv[argv.index(peer.servers)] = relay.address
            queue.start(None, argv)
            queue.settle()
            time.sleep(waited)
            queue.release()
            _wait_until(lambda: len(self._read_stamps()) > 1, "a hand-over")
            ended, started = self._read_stamps()[:2]
            return 1 + relay.writes(ended, started), started - ended

    def commits(self):
        timeout = 4
        with self._slow_zookeeper() as (_, found):
            for rounds, waited, what in ((5, 0, _COMMITS), (3, 3 * timeout, _LATE_COMMITS)):
                for word, peer in found.items():
                    runs = [self._watched_hand_over(peer, waited, timeout) for _ in range(rounds)]
                    commits, seconds = map(statistics.median, zip(*runs))
                    self._results.add(what, word, commits, "")
                    if waited:
                        self._results.add(_LATE, word, seconds, "s")
        for what in (_COMMITS, _LATE_COMMITS):
            self._results.target(what.replace("…", _COMMITS), self._results.get(what, "zklock"), 1)

    # ---- counts ------------------------------------------------------------------------------

    def _count_run(self, command):
        """(requests, transactions, fsyncs) of one run on a free lock."""
        runs = 10
        subprocess.run(command, check=True)
        before = self._zookeeper.counters()
        idle = self._zookeeper.counters()
        for _ in range(runs):
            subprocess.run(command, check=True)
        after = self._zookeeper.counters()
        return [round((after[name] - idle[name] - (idle[name] - before[name])) / runs, 1)
                for name in ("zk_packets_received", "zxid", "zk_cnt_fsynctime")]

    def requests(self):
        for word in ("zklock", "floor", "kazoo", "curator"):
            if word not in self._peers:
                continue
            for what, count in zip(("packets to the server, free lock",
                                    "transactions, free lock", "fsyncs, free lock"),
                                   self._count_run(self._peers[word].run(f"/count-{word}", ["true"]))):
                self._results.add(what, word, count, "")
        self._results.target("fsyncs for a free lock", self._results.get(
            "fsyncs, free lock", "zklock"), 3)
        for length in (10, 1000):
            self._requests_of_hand_over(length)
        plain = self._requests_of_release("release", [])
        kept = self._requests_of_release("release with --history 32", ["--history", "32"])
        self._results.target("transactions that --history adds to a release", kept - plain, 0)

    def _requests_of_release(self, what, options):
        """The transactions of a release on a free lock, starting when the command ends."""
        zklock = self._peers["zklock"]
        lock = f"/release-{len(options)}"
        with contextlib.ExitStack() as stack:
            queue = stack.enter_context(self._queue(zklock, lock))
            argv = zklock.run(queue.lock, ["sh", "-c", "echo runs; read line"])
            argv[2:2] = options
            holder = queue.start(None, argv)
            holder.stdout.readline()
            queue.settle()
            before = self._zookeeper.counters()
            idle = self._zookeeper.counters()
            holder.stdin.close()
            holder.wait()
            after = self._zookeeper.counters()
        requests, transactions = [after[name] - idle[name] - (idle[name] - before[name])
                                  for name in ("zk_packets_received", "zxid")]
        self._results.add(f"{what}: requests", "zklock", requests, "")
        self._results.add(f"{what}: transactions", "zklock", transactions, "")
        return transactions

    def _requests_of_hand_over(self, length):
        zklock = self._peers["zklock"]
        host, port = self._zookeeper.servers.split(":")
        command = ["sh", "-c", "echo runs; read line"]
        with contextlib.ExitStack() as stack:
            queue = stack.enter_context(self._queue(zklock, f"/requests-{length}"))
            relays = [stack.enter_context(Relay(host, int(port))) for _ in range(2)]
            holder = queue.start(command)
            holder.stdout.readline()
            waiters = []
            for relay in relays:
                argv = zklock.run(queue.lock, command)
                argv[argv.index(self._zookeeper.servers)] = relay.address
                # The progress line would cause requests after a second, which are not part of a
                # release.
                argv[2:2] = ["--progress", "none"]
                waiters.append(queue.start(command, argv))
                queue.settle()
            queue.fill(length - len(waiters))
            queue.settle()
            counters = self._zookeeper.counters()
            before = [relay.counts() for relay in relays]
            holder.stdin.close()
            waiters[0].stdout.readline()
            time.sleep(_SETTLE)  # for any requests of the other waiter
            following, bystander = [tuple(now - then for now, then in zip(relay.counts(), first))
                                    for relay, first in zip(relays, before)]
            transactions = self._zookeeper.counters()["zxid"] - counters["zxid"]
        what = f"hand-over, {length} waiting"
        self._results.add(f"{what}: requests of the next", "zklock", following[0], "")
        self._results.add(f"{what}: bytes to the next", "zklock", following[1], "B")
        self._results.add(f"{what}: requests of another waiter", "zklock", bystander[0], "")
        self._results.add(f"{what}: transactions", "zklock", transactions, "")
        self._results.add("watches per waiter", "zklock", counters["zk_watch_count"] / 2, "")
        self._results.target(f"{what}: requests of the next", following[0], 3)
        self._results.target(f"{what}: bytes to the next", following[1], 1024, "B")
        self._results.target(f"{what}: requests of another waiter", bystander[0], 0)

    @staticmethod
    def _pool(count):
        return [f"/pool-{count}/{number}" for number in range(count)]

    def _any_of(self, count, command):
        """argv of a run that takes one of `count` LOCKs."""
        argv = self._peers["zklock"].run("LOCK", command)
        where = argv.index("LOCK")
        argv[where:where + 1] = [*(["--any"] if count > 1 else []), *self._pool(count)]
        return argv

    def _requests_of_pool(self, count):
        """(requests of the next waiter, requests of another waiter after it) when all LOCKs are
        held and one of them is released."""
        host, port = self._zookeeper.servers.split(":")
        command = ["sh", "-c", "echo runs; read line"]
        with contextlib.ExitStack() as stack:
            # The relays are stopped last: a waiter without its relay would look for another server.
            relays = [stack.enter_context(Relay(host, int(port))) for _ in range(2)]
            queue = stack.enter_context(self._queue(self._peers["zklock"], f"/pool-{count}"))
            holders = [queue.start(None, self._peers["zklock"].run(lock, command))
                       for lock in self._pool(count)]
            for holder in holders:
                holder.stdout.readline()
            waiters = []
            for relay in relays:
                argv = self._any_of(count, command)
                argv[argv.index(self._zookeeper.servers)] = relay.address
                argv[2:2] = ["--progress", "none"]
                waiters.append(queue.start(None, argv, queues=count))
                queue.settle()
            before = [relay.counts()[0] for relay in relays]
            holders[count // 2].stdin.close()
            waiters[0].stdout.readline()
            time.sleep(_SETTLE)
            return [relay.counts()[0] - first for relay, first in zip(relays, before)]

    def pool(self):
        """--any of several LOCKs compared with a single one."""
        commands = {count: self._any_of(count, ["true"]) for count in _POOLS}
        self._in_turn(commands, 5)  # creates the LOCKs
        free = self._in_turn(commands, self._rounds)
        counts = {count: self._count_run(command) for count, command in commands.items()}
        woken = {count: [statistics.median(of_rounds) for of_rounds in zip(
            *(self._requests_of_pool(count) for _ in range(3)))] for count in _POOLS}
        rows = {
            "free lock, `true`, release": [text_of(free[count][0], "s") for count in _POOLS],
            "… to a single LOCK": [text_of(free[count][0] / free[1][0], "×") for count in _POOLS],
            "… CPU time": [text_of(free[count][1], "s") for count in _POOLS],
            "… transactions": [text_of(counts[count][1], "") for count in _POOLS],
            "… requests": [text_of(counts[count][0], "") for count in _POOLS],
            "one LOCK of the pool is released: requests of the next": [
                str(woken[count][0]) for count in _POOLS],
            "… requests of a waiter behind it": [str(woken[count][1]) for count in _POOLS]}
        heads = ["a single LOCK" if count == 1 else f"any of {count}" for count in _POOLS]
        lines = [f"| | {' | '.join(heads)} |\n|{' --- |' * (len(heads) + 1)}\n"]
        lines += [f"| {what} | {' | '.join(cells)} |\n" for what, cells in rows.items()]
        self._results.table("pool", "".join(lines))

    def waiting(self):
        """The requests that an idle holder and its waiters send."""
        seconds, timeout = 30, 30
        zklock = self._peers["zklock"]
        for length in (0, 1, 10, 1000):
            with self._queue(zklock, f"/waiting-{length}") as queue:
                queue.start(["cat", self._fifo], timeout=timeout)
                queue.settle()
                for _ in range(length):
                    queue.start(["true"], timeout=timeout, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL)
                queue.settle()
                before = self._zookeeper.counters()
                idle = self._zookeeper.counters()
                time.sleep(seconds)
                after = self._zookeeper.counters()
            for name, counter in (("requests", "zk_packets_received"), ("transactions", "zxid")):
                count = after[counter] - idle[counter] - (idle[counter] - before[counter])
                self._results.add(f"{length} waiting: {name} a minute, holder's included", "zklock",
                                  count * 60 / seconds, "")

    # ---- processes ---------------------------------------------------------------------------

    def memory(self):
        counts = {"zklock": 50, "floor": 50, "flock": 50, "etcdctl": 20, "kazoo": 10, "curator": 2}
        for word, count in counts.items():
            if word not in self._peers:
                continue
            with self._queue(self._peers[word], f"/memory-{word}") as queue:
                queue.start(["cat", self._fifo])
                queue.settle()
                waiters = [queue.start(["true"]) for _ in range(count)]
                queue.settle()
                kib = statistics.median(_pss(waiter.pid) for waiter in waiters)
                if word == "zklock":
                    prepared = statistics.median(
                        sum(map(_pss, _tree(waiter.pid))) for waiter in waiters[:16])
            self._results.add("memory of a waiter (PSS)", word, kib, "KiB")
        self._results.add("memory of one of the first 16 waiters, with its guard and its command, "
                          "both ready", "zklock", prepared, "KiB")
        self._results.target("memory of a waiter (PSS)", self._results.get(
            "memory of a waiter (PSS)", "zklock"), 250, "KiB")

    def holder(self):
        """A holder's CPU time and a waiter's wake-ups, with a session timeout of 8 s."""
        seconds, timeout = 16, 8
        with self._queue(self._peers["zklock"], "/holder") as queue:
            holder = queue.start(["cat", self._fifo], timeout=timeout)
            queue.settle()
            waiter = queue.start(["true"], timeout=timeout)
            queue.settle()
            pids = [holder.pid, *_children(holder.pid)]
            cpu = sum(map(_cpu, pids))
            sleeps = [_sleeps(pid) for pid in (*pids, waiter.pid)]
            began = time.monotonic()
            time.sleep(seconds)
            took = time.monotonic() - began
            cpu = sum(map(_cpu, pids)) - cpu
            sleeps = [_sleeps(pid) - before
                      for pid, before in zip((*pids, waiter.pid), sleeps)]
        self._results.add("a holder's share of a core, session timeout 8 s", "zklock",
                          100 * cpu / took, "%")
        for who, count in zip(("holder", "guard", "waiter"), sleeps):
            self._results.add(f"wake-ups of a {who} in one session timeout", "zklock",
                              count * timeout / took, "")
        self._results.target("a holder's share of a core", 100 * cpu / took, 0.1, "%")

    def join(self):
        """What a queue of 10,000 contenders costs a contender that joins."""
        zklock = self._peers["zklock"]
        lengths = (100, 10_000)  # the first 16 share memory with their guards
        with contextlib.ExitStack() as stack:
            for length in lengths:
                lock = f"/join-{length}"
                subprocess.run(zklock.run(lock, ["true"]), check=True)
                stack.callback(zklock.fill(lock, length))
            commands = {}
            for length in lengths:
                argv = zklock.run(f"/join-{length}", ["true"])
                commands[length] = [*argv[:2], "--quiet", "--wait", "100ms", *argv[2:]]
            cpu = self._in_turn(commands, max(self._rounds // 4, 5), status=75)
            kib = []
            for length in lengths:
                argv = zklock.run(f"/join-{length}", ["true"])
                waiter = subprocess.Popen([*argv[:2], "--verbose", *argv[2:]], text=True,
                                          stderr=subprocess.PIPE)
                while "waiting for" not in waiter.stderr.readline():
                    if waiter.poll() is not None:
                        raise RuntimeError("a waiter ended")
                time.sleep(_SETTLE)
                kib.append(_pss(waiter.pid))
                waiter.terminate()
                waiter.communicate()
        own = max(cpu[lengths[1]][1] - cpu[lengths[0]][1], 0)
        self._results.add("join a queue of 10,000: extra CPU time compared with 100", "zklock", own, "s")
        self._results.add("waiting behind 10,000: extra memory compared with 100", "zklock",
                          kib[1] - kib[0], "KiB")
        self._results.target("join a queue of 10,000: CPU time", own, 0.005, "s")

    def _kill_holder(self, peer):
        """Seconds from the KILL of the holder to the command of the next one."""
        self._clear_stamps()
        with self._queue(peer, f"/killed-{peer.word}") as queue:
            holder = queue.start(["cat", self._fifo])
            queue.settle()
            queue.start(self._stamp())
            queue.settle()
            killed = time.clock_gettime(time.CLOCK_MONOTONIC)
            holder.send_signal(signal.SIGKILL)
            _wait_until(self._read_stamps, "the next one's command")
            return self._read_stamps()[0] - killed

    def killed(self):
        what = "killed holder to the next running"
        for word, times in (("zklock", 9), ("etcdctl", 1), ("kazoo", 1)):
            if word in self._peers:
                spans = [self._kill_holder(self._peers[word]) for _ in range(times)]
                self._results.add(what, word, statistics.median(spans), "s")
        self._results.target(what, self._results.get(what, "zklock"), 0.02, "s")

    def ways(self):
        """Each way to a server, with all the processes that it needs on the client's host."""
        if lacking := ways.missing():
            self._results.note(f"The ways to a server were not measured: no {', '.join(lacking)}.")
            return
        with ways.open_ways(self._tools) as found:
            runs = {way.word: way.run("/free", ["true"]) for way in found}
            self._in_turn(runs, 5)  # warm-up: the server's JVM compiles hot code
            free = self._in_turn(runs, self._rounds)
            lines = ["| way to the server | free lock, `true`, release | CPU time | memory of a waiter"
                     " (PSS) | killed holder to the next running |\n",
                     "| --- | --- | --- | --- | --- |\n"]
            for way in found:
                with self._queue(way, f"/memory-{way.word}") as queue:
                    queue.start(["cat", self._fifo])
                    queue.settle()
                    waiters = [queue.start(["true"]) for _ in range(10)]
                    queue.settle()
                    kib = statistics.median(
                        sum(map(_pss, _tree(waiter.pid))) for waiter in waiters)
                span = statistics.median(self._kill_holder(way) for _ in range(9))
                wall, cpu = free[way.word]
                lines.append(f"| {way.title} | {text_of(wall, 's')} | {text_of(cpu, 's')} |"
                             f" {text_of(kib, 'KiB')} | {text_of(span, 's')} |\n")
        self._results.table("ways", "".join(lines))

    def _end_tree(self, contain, count):
        """Seconds from the KILL of a holder to the end of all processes of its command."""
        fifo = f"{self._directory}/tree-{time.monotonic_ns()}"
        os.mkfifo(fifo)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        argv = self._peers["zklock"].run("/contain", ["perl", "-e", _TREE, fifo, str(count)])
        argv[2:2] = ["--contain", contain]
        holder = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
        try:
            ready = select.poll()
            ready.register(reader, select.POLLIN)
            if not ready.poll(_PATIENCE * 1000) or not os.read(reader, 1):
                raise RuntimeError(f"{count} processes do not start")
            killed = time.clock_gettime(time.CLOCK_MONOTONIC)
            holder.kill()
            if not ready.poll(_PATIENCE * 1000):
                raise RuntimeError(f"{count} processes do not end")
            return time.clock_gettime(time.CLOCK_MONOTONIC) - killed
        finally:
            holder.kill()
            holder.wait()
            os.close(reader)
            os.unlink(fifo)

    def contain(self):
        """What --contain costs, and how fast it ends many processes; side by side."""
        zklock = self._peers["zklock"]
        commands = {}
        for words, contain in _CONTAIN.items():
            commands[words] = zklock.run(f"/free-{contain}", ["true"])
            commands[words][2:2] = ["--contain", contain]
        if subprocess.run(commands["in a cgroup"], stderr=subprocess.DEVNULL).returncode == 71:
            return self._results.note("Without cgroups: zklock may create none here.")
        what = "free lock, `true`, release: {}"
        for words, (seconds, cpu) in self._in_turn(commands, 2 * self._rounds).items():
            self._results.add(what.format(words), "zklock", seconds, "s")
            self._results.add(f"{what.format(words)}: CPU time", "zklock", cpu, "s")
        self._results.ratio("free lock: in a cgroup to without",
                            (what.format("in a cgroup"), "zklock"),
                            (what.format("without"), "zklock"), 1.15)
        for count in (10, 500):
            what = f"from the KILL of zklock to the end of {count} processes: {{}}"
            for words, contain in _CONTAIN.items():
                self._end_tree(contain, count)
            taken = {words: [] for words in _CONTAIN}
            for _ in range(9):
                for words, contain in _CONTAIN.items():
                    taken[words].append(self._end_tree(contain, count))
            for words, spans in taken.items():
                self._results.add(what.format(words), "zklock", statistics.median(spans), "s")

    def scale(self):
        """10,000 contenders of one LOCK, and 10,000 LOCKs with one contender each."""
        self._results.table("scale", scale.measure(self._tools))

    def profile(self):
        """The phases of a free lock."""
        if (why := phases.missing()) is not None:
            raise RuntimeError(why)
        beside = {peer.title: peer.run(f"/profile-{word}", ["true"]) for word, peer in self._peers.items()
                  if word in ("zklock", "floor", "floor-guard")}
        argv = beside["zklock"]
        if self._before:
            beside["zklock before"] = [self._before, *argv[1:]]
        self._results.table("profile", phases.measure(
            argv, {"`true`": ["true"], **beside}, self._in_turn, self._directory, self._rounds))

    def tree(self):
        """inspect on a tree of 5,000 LOCKs."""
        self._results.table("tree", tree.measure(self._tools))
