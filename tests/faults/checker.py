"""Checks a history against the contract and lists every violation.

Pure: values in, violations out. Times are seconds of CLOCK_BOOTTIME.
"""

import dataclasses
import math
import signal

# The servers' times are truncated to milliseconds, so they are never late.
_TOLERANCE = 0.002
# The exit status of recorder.c after a TERM.
TERMINATED = 40
_CONFLICT, _UNAVAILABLE, _LOST, _RAN_TOO_LONG = 75, 69, 76, 124
# After its --max-run and --kill-after, a command has this long to end, even on a busy machine.
OVERRUN = 2.0


@dataclasses.dataclass
class Sent:
    """A signal that the driver sent: to zklock, guard or command."""
    moment: float
    target: str
    number: int


@dataclasses.dataclass
class Run:
    """One start of zklock, and how it went."""
    number: int
    host: str
    lock: str
    word: str  # the subcommand: exclusive, read, write or try
    timeout: float  # session timeout, seconds
    spawned: float
    may_conflict: bool = False  # it has a time limit
    descendants: str = "leave"
    nested: bool = False  # the command is another zklock, under the same lock
    held: bool = False  # a shell holds by --hold and runs the command under a nested zklock
    # It has no cgroup, but a process that is hard to end and may outlive the lock.
    may_remain: bool = False
    keeper_struck: bool = False  # signals to zklock and guard go to its keeper, not the nested one
    reserves: bool = False  # a shell reserves for its own ID, and runs the command under that
    lasts: int | None = None  # milliseconds: it only reserves, and does not release
    permits: int = 1  # how many may be taken at the same time
    take: int = 1  # how many of them it takes
    min_interval: float | None = None  # seconds
    max_run: float | None = None  # seconds
    kill_after: float = 10.0  # seconds
    other_locks: tuple = ()  # the other LOCKs of a set
    twice: bool = False  # two zklocks reserve for its ID at once
    any_of: tuple = ()  # the LOCKs of a pool; `lock` is the one taken, if it took one
    label: str = ""  # its contenders' label; a nested run may have none
    signals: list = dataclasses.field(default_factory=list)
    forced: float | None = None  # when an operator began to release its lock by force
    record: object = None  # histories.Record; None if the command did not begin
    ended: float | None = None
    status: int | None = None  # as in Popen: -N for signal N; with --hold the shell's
    messages: str = ""

    def parts(self):
        """Returns one run for each LOCK of a set; otherwise only this run."""
        return [self] if not self.record.further else [
            dataclasses.replace(self, lock=record.lock, record=record)
            for record in (dataclasses.replace(self.record, further=[]), *self.record.further)]

    def reads(self):
        return self.record.mode == "read"

    def was_sent(self, target, *numbers):
        return any(sent.target == target and (not numbers or sent.number in numbers)
                   for sent in self.signals)

    def begin(self):
        return self.record.lives[0].begin

    def last(self):
        """Returns when a process that must end before the release was last seen alive."""
        lives = self.record.lives
        # zklock only reports the processes that a killed command leaves behind.
        left = self.descendants == "leave" and self.was_sent("command", signal.SIGKILL)
        return self.last_of(lives[:1] if left else lives)

    def last_of(self, lives):
        """Returns when one of `lives` that must end was last seen alive."""
        return max(life.last for life in lives if not (self.may_remain and life.hard))


@dataclasses.dataclass
class Violation:
    kind: str
    text: str
    moment: float
    runs: tuple = ()

    def __str__(self):
        return f"{self.kind}: {self.text}"


def _name(run):
    mode = run.record.mode if run.record else run.word
    return f"run {run.number} ({mode} {run.lock} on {run.host})"


def _by_lock(runs):
    locks = {}
    for run in runs:
        for part in run.parts() if run.record is not None else ():
            locks.setdefault(part.lock, []).append(part)
    for lock in locks.values():
        lock.sort(key=lambda run: run.begin())
    return locks.values()


def overlaps(runs):
    """Finds conflicting commands of one lock that were alive at the same time."""
    found = []
    for lock in _by_lock(runs):
        if lock[0].permits > 1:
            found += _too_many(lock)
            continue
        latest = latest_excluding = None  # the earlier run last seen alive
        for run in lock:
            other = latest_excluding if run.reads() else latest
            # A holder that was forced out may overlap the next holder until it notices.
            if other is not None and other.last() >= run.begin() and other.forced is None:
                found.append(Violation(
                    "overlap", f"{_name(other)} was alive until {other.last() - run.begin():.3f} s"
                    f" after {_name(run)} began", run.begin(), (other, run)))
            if latest is None or run.last() > latest.last():
                latest = run
            if not run.reads() and (latest_excluding is None
                                    or run.last() > latest_excluding.last()):
                latest_excluding = run
    return found


def _too_many(lock):
    """Finds more permits in use at the same time than there are."""
    found = []
    for index, run in enumerate(lock):
        others = [other for other in lock[:index] if other.last() >= run.begin()]
        taken = sum(other.take for other in others)
        if taken + run.take > run.permits:
            found.append(Violation(
                "overlap", f"{_name(run)} began with {run.take} while others ran with {taken} of"
                f" {run.permits} permits", run.begin(), (*others, run)))
    return found


def token_order(runs):
    """Checks that tokens increase from each command to the next conflicting one."""
    found = []
    for lock in _by_lock(runs):
        if lock[0].permits > 1:
            continue
        highest = highest_excluding = None
        for run in lock:
            other = highest_excluding if run.reads() else highest
            if other is not None and other.record.token >= run.record.token:
                found.append(Violation(
                    "token", f"{_name(run)} began after {_name(other)} with token"
                    f" {run.record.token}, not above {other.record.token}", run.begin(),
                    (other, run)))
            if highest is None or run.record.token > highest.record.token:
                highest = run
            if not run.reads() and (highest_excluding is None
                                    or run.record.token > highest_excluding.record.token):
                highest_excluding = run
    return found


def incomplete(runs):
    """Finds commands that began without one of their LOCKs, or under others."""
    found = []
    for run in runs:
        if run.record is None or run.any_of:
            continue
        taken = sorted(record.lock for record in (run.record, *run.record.further))
        named = sorted({run.lock, *run.other_locks})
        if taken != named:
            found.append(Violation("incomplete", f"{_name(run)} began under {', '.join(taken)}, and"
                                   f" named {', '.join(named)}", run.begin(), (run,)))
    return found


def unended(runs):
    return [Violation("never ended", f"{_name(run)}, {run.messages!r}", run.spawned, (run,))
            for run in runs if run.status is None]


def overrun(runs):
    """Finds commands that kept running after their --max-run, although nothing kept the guard from ending
    them."""
    return [Violation("overrun", f"{_name(run)} ran for {run.last() - run.begin():.3f} s with"
                      f" --max-run {run.max_run:.3f}s and --kill-after {run.kill_after:.3f}s",
                      run.last(), (run,))
            for run in runs if run.max_run is not None and run.record is not None
            and not run.was_sent("guard")
            and run.last() - run.begin() > run.max_run + run.kill_after + OVERRUN]


def unnoticed(runs):
    """Checks that a holder that was forced out ends while its lease lasts, and reports it."""
    return [Violation("unnoticed", f"{_name(run)} was forced out, was alive until"
                      f" {run.last() - run.forced:.3f} s later and ended with {run.status}",
                      run.last(), (run,))
            for run in runs if run.forced is not None and run.record is not None
            and (run.status != _LOST or run.last() > run.forced + run.timeout)]


_STARTS = 0.5  # how long a process may take to execute zklock, even on a busy machine
_EXECUTES = 0.1  # how long one may take to execute the command


def _allowed_statuses(run, had_trouble):
    if run.was_sent("zklock", signal.SIGKILL):
        yield 128 + signal.SIGKILL if run.held or run.reserves else -signal.SIGKILL
    if run.record is None:
        if run.may_conflict:
            yield _CONFLICT
        if had_trouble(run.spawned, run.ended):
            yield _UNAVAILABLE
        if run.was_sent("zklock", signal.SIGTERM):
            yield 128 + signal.SIGTERM
            if not run.held and not run.reserves and run.signals[0].moment < run.spawned + _STARTS:
                yield -signal.SIGTERM  # it had not set up its handlers yet
        if run.nested or run.held:
            yield _LOST  # lost before the nested run began its command
        if run.reserves and had_trouble(run.spawned, run.ended):
            yield _CONFLICT  # lost before its contender was converted
        if run.lasts is not None:
            yield 0
        return
    if not run.reserves:
        yield _LOST
    # The limit counts from just before the record's begin.
    if run.max_run is not None and run.last() - run.begin() >= run.max_run - _EXECUTES:
        yield _RAN_TOO_LONG
    main = run.record.lives[0]
    if main.ended is not None:
        # If it was told to end for another reason, the status is that of a lost lock or the limit.
        if (main.status != TERMINATED or run.was_sent("zklock", signal.SIGTERM)
                or run.was_sent("guard")):
            yield main.status
        if not run.nested and not run.held:
            return  # else the nested zklock may have been killed after its command's end
    if run.was_sent("command", signal.SIGKILL) or run.was_sent("guard"):
        yield 128 + signal.SIGKILL
    if run.was_sent("zklock", signal.SIGTERM):
        yield 128 + signal.SIGTERM  # it arrived before the command had set up its handler


def forbidden_statuses(runs, had_trouble):
    """Finds runs with a status that they must not have. `had_trouble(begin, end)`: whether some
    servers were unreachable in that time."""
    found = []
    for run in runs:
        if run.status is None or run.status in _allowed_statuses(run, had_trouble):
            continue
        how = "did not begin" if run.record is None else "ran"
        if run.record is not None and run.record.lives[0].ended is None:
            how = "was ended"
        found.append(Violation("status", f"{_name(run)} ended with {run.status}, its command {how}:"
                               f" {run.messages!r}", run.ended, (run,)))
    return found


def against_servers(runs, history):
    """Checks against the servers' logs that each token belongs to its znode, that no command lived
    longer than its znode, and that none began while an earlier conflicting znode existed."""
    found = []
    modes = {part.record.token: part for run in runs if run.record is not None
             for part in run.parts()}
    for run in modes.values():
        znode = history.of(run.record)
        if (not run.record.node.startswith(f"{run.lock}/")
                or run.any_of and run.lock not in run.any_of):
            found.append(Violation("lock", f"{_name(run)} had znode {run.record.node}, and named"
                                   f" {', '.join(run.any_of) or run.lock}", run.begin(), (run,)))
        if znode is None:
            found.append(Violation("token", f"{_name(run)} had token {run.record.token} and znode"
                                   f" {run.record.node}: no such pair on the servers",
                                   run.begin(), (run,)))
        elif (znode.removed is not None and run.forced is None
              and run.last() > znode.removed + _TOLERANCE):
            found.append(Violation("outlived", f"{_name(run)} was alive until"
                                   f" {run.last() - znode.removed:.3f} s after the servers had"
                                   f" {'expired' if znode.expired else 'released'} it",
                                   run.last(), (run,)))
    for lock in _by_lock(modes.values()):
        before = []  # contenders that may still exist, in token order
        znodes = sorted((znode for znode in history.znodes.values()
                         if znode.path.rsplit("/", 1)[0] == lock[0].lock),
                        key=lambda znode: znode.token)
        starts = {run.record.token: run for run in lock}
        for znode in znodes:
            run = starts.get(znode.token)
            if run is not None:
                # Readers may begin out of token order, so keep recently deleted contenders.
                before = [other for other in before
                          if other.removed is None or other.removed > run.begin() - 60]
                passed = [other for other in before
                          if (other.removed is None or other.removed > run.begin() + _TOLERANCE)
                          and not (run.reads() and "__READ__" in other.path)]
                if passed:
                    found.append(Violation("passed", f"{_name(run)} began while {passed[0].path}"
                                           " was before it in the queue", run.begin(), (run,)))
            before.append(znode)
    return found


# No contender waits longer than this for a free lock, even on a busy machine.
_HANDED_OVER = 5.0
# This long after a fault of servers or links, every contender has a server again.
_RECONNECTS = 5.0


def trouble_of(struck):
    """Returns a function that tells whether some servers were unreachable between two moments.
    `struck`: when the faults of servers or links began and ended."""
    return lambda begin, end: any(first <= end and last >= begin for first, last in struck)


def longest_calm(begin, end, struck):
    """Returns the longest part of that time in which no fault of servers or links had effects."""
    longest = 0
    for first, last in sorted(struck):
        longest = max(longest, min(first, end) - begin)
        begin = max(begin, last + _RECONNECTS)
    return max(longest, end - begin)


def _queue_of(znode):
    return znode.path.rsplit("/", 1)[0]


def _queues(history):
    queues = {}
    for znode in history.znodes.values():
        queues.setdefault(_queue_of(znode), []).append(znode)
    return queues


def _until(znode):
    """Returns when `znode` stops keeping others waiting. A reservation expires by the servers' clock; if
    that clock was set in the meantime, only the removal of the znode counts."""
    lasts = znode.reservation.get("for") if znode.reservation else None
    gone = math.inf if znode.removed is None else znode.removed
    if lasts is None or znode.clocks != {znode.reserved_clock}:
        return gone
    return min(gone, znode.reserved + lasts / 1000)


def idle(runs, history, struck):
    """Finds contenders that waited too long for a free lock although nothing disturbed them. A wait ends
    when the command begins, when the contender queues for the next LOCK of a set (or, in a
    semaphore's turnstile, for a permit), when it leaves, or when a fault signals it."""
    found = []
    queues = _queues(history)
    labels = {run.label: run for run in runs if run.label}
    following = {}  # for each session and label, the latest contender so far
    next_of = {}
    for znode in sorted(history.znodes.values(), key=lambda znode: znode.token):
        before = following.get((znode.session, znode.label))
        if before and before.token < znode.token:  # a pool creates its contenders together
            next_of[before.token] = znode
        following[znode.session, znode.label] = znode
    for znode in history.znodes.values():
        run = labels.get(znode.label)
        if run is None:
            continue
        reads = "__READ__" in znode.path
        if reads and (run.nested or run.held):
            continue  # the command may have a contender of its own
        queue = _queue_of(znode)
        before = sorted((_until(other) for other in queues[queue]
                         if other.token < znode.token and not (reads and "__READ__" in other.path)),
                        reverse=True)
        # Enough permits are free once enough of the earlier contenders are gone.
        others = run.permits - run.take if queue.endswith("/leases") else 0
        taken = before[others] if len(before) > others else 0
        free = max(znode.created, run.spawned, taken)
        until, what = znode.removed or run.ended or free, "left the queue"
        if znode.token in next_of:
            until, what = next_of[znode.token].created, "queued for the next"
        elif znode.reserved is not None:
            until, what = znode.reserved, "reserved it"
        elif run.record is not None:
            until, what = min(until, run.begin()), "began"
        if run.signals and run.signals[0].moment < until:
            until, what = run.signals[0].moment, "was sent a signal"
        if longest_calm(free, until, struck) > _HANDED_OVER:
            found.append(Violation("idle", f"{_name(run)} {what} {until - free:.1f} s after"
                                   f" {queue} was free", until, (run,)))
    return found


def left_behind(runs, history, had_trouble):
    """Finds contenders of pools that stayed in a queue after the end of the run, or long after its command
    had begun under another LOCK, although nothing disturbed them. A pool deletes these: it does not
    leave them to the close of its session, unless the transaction that deletes them has failed and
    the close comes first, as when the pool had just left one of the queues."""
    found = []
    pools = {run.label: run for run in runs if run.any_of and run.ended is not None}
    last = {}  # for each label, the contender that left last
    for znode in sorted(history.znodes.values(), key=_until):
        last[znode.label] = znode
    for znode in history.znodes.values():
        run = pools.get(znode.label)
        if (run is None or run.was_sent("guard")
                or run.was_sent("zklock", signal.SIGKILL, signal.SIGSTOP)):
            continue
        begin = run.spawned if run.record is None else run.begin()
        until = run.ended + (_SETTLES if run.held else 0)
        is_of_other = run.record is not None and _queue_of(znode) != run.lock
        # If the shell holds a LOCK for reading, the command takes the first one that it may read:
        # zklock(1), One of several LOCKs. The keeper still has to leave all other queues but one.
        if run.held and run.record is not None and run.reads():
            is_of_other = is_of_other and znode is not last[znode.label]
        if is_of_other:
            until = min(until, begin + _HANDED_OVER)
        # A run that reserves ends with the close, which may delete its contender.
        stayed = (znode.removed is None or znode.removed > until
                  or is_of_other and znode.closed and not znode.failed and not run.reserves)
        if stayed and not had_trouble(begin, until):
            found.append(Violation("left behind", f"{_name(run)}: {znode.path} stayed in the queue",
                                   until, (run,)))
    return found


# A refused run ends within this time after its decision, even on a busy machine.
_ENDED = 2.0


def refused(runs, history, had_trouble):
    """Finds runs that reported a conflict although no other contender was in their way."""
    found = []
    queues = _queues(history)
    takes = {run.label: run.take for run in runs}
    for run in runs:
        if (run.status != _CONFLICT or run.record is not None or run.signals or run.other_locks
                or run.reserves or run.min_interval is not None
                or had_trouble(run.spawned, run.ended)):
            continue
        since = max(run.spawned, run.ended - _ENDED)
        for lock in run.any_of or (run.lock,):
            # In a semaphore, contenders in the turnstile are about to take their permits.
            others = {znode.label or znode.path
                      for queue in (lock, f"{lock}/locks", f"{lock}/leases")
                      for znode in queues.get(queue, [])
                      if znode.label != run.label
                      and not (run.word == "read" and "__READ__" in znode.path)
                      and znode.created <= run.ended and _until(znode) >= since}
            if sum(takes.get(other, 1) for other in others) + run.take <= run.permits:
                found.append(Violation("refused", f"{_name(run)} ended with {run.status}, and {lock} was"
                                       f" free: {run.messages!r}", run.ended, (run,)))
    return found


def intervals(runs, history):
    """Finds runs with --min-interval that began too soon after the previous success. Only runs with
    --min-interval are recorded and count. A run is excused if the servers' clock was further ahead
    when it queued than it was for the previous success."""
    def clock_of(run):
        znode = history.of(run.record)
        return znode.clock if znode is not None else 0
    def began(run):
        # With a nested run, the command is that zklock; the record is of the command under it.
        znode = history.of(run.record) if run.nested else None
        return run.begin() if znode is None else znode.created
    found = []
    for lock in _by_lock(runs):
        latest = None  # the latest success
        for run in lock:
            if run.reads() or run.min_interval is None:
                continue
            if (latest is not None and clock_of(run) <= clock_of(latest)
                    and run.begin() < began(latest) + run.min_interval - _TOLERANCE):
                found.append(Violation(
                    "too soon", f"{_name(run)} began {run.begin() - began(latest):.3f} s after"
                    f" {_name(latest)}, with --min-interval {run.min_interval:.3f}s", run.begin(),
                    (latest, run)))
            if run.status == 0 and run.record.lives[0].ended is not None:
                latest = run
    return found


def reservations(runs, history):
    """Checks that a reservation has the token of its contender, and exists until it is released or has ended; that each
    run has at most one or, if two zklocks reserve for it, at most one at a time; and that what a run reports is true. A
    reservation may end early if the servers' clock was set forward while it existed."""
    found = []
    of_id = {}
    for znode in history.znodes.values():
        if znode.reservation is None:
            continue
        of_id.setdefault(znode.reservation["id"], []).append(znode)
        if znode.reservation["token"] != znode.token:
            found.append(Violation("token", f"{znode.path} was reserved with token"
                                   f" {znode.reservation['token']}, not {znode.token}",
                                   znode.reserved))
        lasts = znode.reservation.get("for")
        if (lasts is not None and znode.removed is not None
                and max(znode.clocks) <= znode.reserved_clock
                and znode.removed < znode.reserved + lasts / 1000 - _TOLERANCE):
            found.append(Violation("ended early", f"{znode.path} was reserved for {lasts} ms, and"
                                   f" removed after {znode.removed - znode.reserved:.3f} s",
                                   znode.removed))
    for run in runs:
        if not run.reserves:
            continue
        made = of_id.get(f"contender-{run.number}", [])
        made = sorted(made, key=lambda znode: znode.reserved)
        for first, second in zip(made, made[1:]):
            # The permits of one reservation have one token.
            is_first_over = run.twice and second.reserved >= _until(first)
            if first.token != second.token and not is_first_over:
                found.append(Violation("reserved twice", _name(run), second.reserved, (run,)))
        if run.status == 0 and not made:
            found.append(Violation("not reserved", f"{_name(run)} said that it was", run.ended,
                                   (run,)))
    return found


def torn(runs, history):
    """Finds permits of one run that were not all created, reserved and deleted together."""
    takes = {run.label: run.take for run in runs if run.permits > 1 and run.label}
    together = {}
    for znode in history.znodes.values():
        if znode.label in takes and _queue_of(znode).endswith("/leases"):
            together.setdefault((znode.label, znode.token), []).append(znode)
    return [Violation("torn", f"{label} takes {takes[label]} permits, and had"
                      f" {', '.join(f'{znode.path} until {znode.removed}' for znode in znodes)}",
                      znodes[0].created)
            for (label, _), znodes in together.items()
            if len(znodes) != takes[label]
            # Times are in milliseconds: a delete and the close after it may have the same.
            or len({(znode.removed, znode.closed, znode.reserved) for znode in znodes}) > 1]


def _with_history(runs, lock):
    """Returns the runs that keep a history of `lock`; for a set, the part of the run under `lock`."""
    return [part for run in runs if run.lock == lock and run.record is not None
            for part in run.parts() if part.lock == lock]


_SETTLES = 5.0  # how long after its shell's end a keeper may release
_LAG = 1.0  # how late a server may show what is committed, even on a busy machine


def run_history(runs, lock, entries, moment, history, had_trouble):
    """Checks the history of `lock` that --history keeps, as inspect showed it at `moment`: `entries`, newest first. It
    must have every run that nothing disturbed, with its status; a run's end may be recorded only if the run released
    the lock."""
    found = []
    tokens = [entry["token"] for entry in entries]
    oldest = tokens[-1] if tokens else 0
    if tokens != sorted(set(tokens), reverse=True):
        found.append(Violation("history", f"tokens out of order: {tokens}", moment))
    of_token = {entry["token"]: entry for entry in entries}
    znodes = {znode.token: znode for znode in history.znodes.values() if _queue_of(znode) == lock}
    for run in _with_history(runs, lock):
        if run.record is None or run.reads() or run.record.token < oldest:
            continue
        if run.ended is None or run.ended + _SETTLES > moment:
            continue
        # A nested run has the token of the run around it.
        entry = of_token.get(run.record.token)
        released = run.ended + _SETTLES if run.held else run.ended
        disturbed = (run.signals or run.forced is not None or run.status == _LOST
                     or had_trouble(run.spawned, released))
        what = None
        if entry is None or entry["state"] != "ended":
            state = entry["state"] if entry else "not entered"
            znode = znodes.get(run.record.token)
            if not disturbed:
                what = f"is {state} in the history, and ended with {run.status}"
            elif (state == "running" and znode is not None and znode.removed is not None
                    and znode.removed + _LAG <= moment):
                what = (f"is running in the history {moment - znode.removed:.3f} s after its contender"
                        " was deleted")
        elif not run.held and not disturbed and entry["status"] != run.status:
            what = f"has status {entry['status']} in the history, and ended with {run.status}"
        if what:
            found.append(Violation("history", f"{_name(run)} {what}", run.begin(), (run,)))
    for entry in entries:
        znode = znodes.get(entry["token"])
        if entry["state"] == "ended" and (znode is None or znode.removed is None or znode.expired):
            found.append(Violation("history", f"the run with token {entry['token']} has ended, but"
                                   " did not release its lock", moment))
    return found


def closed_early(runs, history):
    """Checks that the guard of a killed keeper does not close the session before the nested runs have ended."""
    found = []
    for run in runs:
        if not run.keeper_struck or run.record is None or run.reads():
            continue  # a reader that need not wait has its own contender below a reading shell
        znode = history.of(run.record)
        killed = next((sent.moment for sent in run.signals if sent.target == "zklock"
                       and sent.number == signal.SIGKILL), None)
        if (killed is not None and run.begin() <= killed <= run.last() and znode is not None
                and znode.removed is not None and not znode.expired
                and killed <= znode.removed < run.last()):
            found.append(Violation("closed early", f"{_name(run)}: its session was closed"
                                   f" {run.last() - znode.removed:.3f} s before its command's end,"
                                   " after its keeper was killed", znode.removed, (run,)))
    return found


def ghosts(history):
    return [Violation("ghost", f"{znode.path} is left on the servers", znode.created)
            for znode in history.leftovers()]


def check(runs, history, struck):
    """Returns the violations that all checks find."""
    had_trouble = trouble_of(struck)
    return (overlaps(runs) + token_order(runs) + incomplete(runs) + unended(runs) + unnoticed(runs)
            + overrun(runs)
            + forbidden_statuses(runs, had_trouble) + against_servers(runs, history)
            + reservations(runs, history) + torn(runs, history) + closed_early(runs, history) + ghosts(history)
            + idle(runs, history, struck) + intervals(runs, history)
            + refused(runs, history, had_trouble) + left_behind(runs, history, had_trouble))
