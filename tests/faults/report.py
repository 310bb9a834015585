"""The table printed at the end of a run."""

import collections
import dataclasses
import math
import signal
import statistics

import checker

_LOST = 76
# The largest gap between a command's stamps: it may have lived that much longer than was seen.
STAMPS = 0.02
_BESIDE = " during another fault"  # ends the names of those that were made while another lasted
_COMFORTABLE = 10.0  # a shorter T is noted: an ordinary change of leader may end the command


def _was_ended(run):
    """Returns whether its command did not end by itself."""
    if run.record is None or run.status is None:
        return False
    return run.status == _LOST or run.record.lives[0].ended is None


def _is_alone(run, runs, moment):
    return not any(other is not run and other.record is not None and other.lock == run.lock
                   and other.begin() <= moment <= other.last() + STAMPS for other in runs)


def _holds_early(run, lock, begin, end):
    """Returns whether a run that locks a set may hold `lock` between `begin` and `end` while it waits for
    another LOCK: its command begins later, and so does that of the run after it."""
    return (lock in (run.lock, *run.other_locks) and run.other_locks and run.spawned < end
            and (run.ended is None or run.ended > begin))


def succession(run, runs, moment, history, *, forgives=False):
    """Returns how long after `moment` the next conflicting contender began, among those waiting at that
    moment. Does not count the time during which it waited for a pool that took another LOCK, for a contender
    that another fault stopped or, with `forgives`, for one whose session expired."""
    if not _is_alone(run, runs, moment):
        return None
    following = min((other for other in runs
                     if other.record is not None and other.lock == run.lock
                     and other.spawned < moment < other.begin()
                     and not (run.reads() and other.reads())),
                    key=lambda other: other.begin(), default=None)
    if following is None or any(_holds_early(other, run.lock, moment, following.begin())
                                for other in runs):
        return None
    if any(sent.number == signal.SIGSTOP and sent.moment < following.begin() for sent in following.signals):
        return None
    elsewhere = {other.label for other in runs
                 if other.any_of and (other.record is None or other.lock != run.lock)
                 or other is not run and other.was_sent("zklock", signal.SIGSTOP)}
    between = [znode.removed for znode in history.znodes.values()
               if (znode.expired and forgives or znode.label in elsewhere)
               and znode.token < following.record.token
               and znode.token != run.record.token and znode.removed is not None
               and znode.path.startswith(run.lock + "/")  # also in a semaphore
               and moment < znode.removed <= following.begin()]
    return following.begin() - max([moment, *between])


def _fault_of(moment, made, timeout):
    """Returns the last fault made before `moment`."""
    for fault in reversed(made):
        if fault.begin <= moment:
            return fault if moment <= fault.end + timeout else None
    return None


@dataclasses.dataclass
class Row:
    """The results of one fault. Its values can be written as JSON."""
    made: int = 0
    struck: int = 0
    overlaps: int = 0
    outlived: int = 0
    slowest: list = dataclasses.field(default_factory=list)  # share of T, seconds, T; empty if none ended
    margin: float | None = None
    needless: list = dataclasses.field(default_factory=list)  # the T of each command
    next: list = dataclasses.field(default_factory=list)

    def add(self, other):
        for name in ("made", "struck", "overlaps", "outlived", "needless", "next"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.slowest = max(self.slowest, other.slowest)
        self.margin = min((one for one in (self.margin, other.margin) if one is not None), default=None)

    def cells(self):
        slowest = "–"
        if self.slowest:
            slowest = f"{self.slowest[1]:.2f} s of {self.slowest[2]:.0f} s"
        margin = "–" if self.margin is None else f"{self.margin:.2f} s"
        needless = str(len(self.needless))
        short = sum(timeout < _COMFORTABLE for timeout in self.needless)
        if short:
            needless += f" ({short} with T < 10 s)"
        following = "–"
        if self.next:
            following = f"{statistics.median(self.next):.2f} / {max(self.next):.2f} s"
        return [str(self.made), str(self.struck), str(self.overlaps), str(self.outlived), slowest,
                margin, needless, following]


def total(parts):
    """Returns, for each source, a line about the runs that --record has recorded, and their table."""
    texts = []
    for source in dict.fromkeys(part["source"] for part in parts):
        own = [part for part in parts if part["source"] == source]
        rows, found = {}, collections.Counter()
        for part in own:
            for name, row in part["faults"].items():
                rows.setdefault(name, Row()).add(Row(**row))
            found.update(part["violations"])
        texts.append(f"src {source}: {len(own)} runs with seeds {min(part['seed'] for part in own)} to"
                     f" {max(part['seed'] for part in own)}, {sum(part['minutes'] for part in own):g} minutes,"
                     f" {count(rows)},"
                     f" {sum(part['contenders'] for part in own)} contenders,"
                     f" {sum(part['commands'] for part in own)} commands; violations: "
                     + (", ".join(f"{count} {kind}" for kind, count in found.items()) or "none")
                     + f"\n\n{table(rows)}\n")
    return "\n".join(texts)


def count(rows):
    """Returns the number of faults, in words."""
    beside = sum(row.made for name, row in rows.items() if name.endswith(_BESIDE))
    return f"{sum(row.made for row in rows.values())} faults, {beside} of them{_BESIDE}"


def rows_of(made, runs, history, violations):
    """Returns a Row for each name of a fault."""
    rows = {}
    main = [fault for fault in made if not fault.beside]
    for index, fault in enumerate(made):
        is_beside = fault.beside and any(one.begin < fault.end and fault.begin < one.end for one in main)
        row = rows.setdefault(f"{fault.name},{_BESIDE}" if is_beside else fault.name, Row())
        row.made += 1
        struck_again = {id(victim): later.begin for later in reversed(made[index + 1:])
                        for victim in later.victims}
        for victim in fault.victims:
            run = victim.run
            if run.record is None or run.last() < fault.begin - STAMPS:
                continue
            again = struck_again.get(id(victim))
            # If two faults overlap, their effects cannot be told apart.
            if (again is not None and again < fault.end
                    or any(sent.moment < fault.begin for sent in run.signals)):
                continue
            row.struck += 1
            follows = None
            if _was_ended(run) and (again is None or run.last() < again - STAMPS):
                took = max(run.last() - fault.begin, 0)
                row.slowest = max(row.slowest, [took / run.timeout, took, run.timeout])
                follows = succession(run, runs, fault.begin, history)
            if follows is not None:
                row.next.append(round(follows, 3))
            znode = history.of(run.record)
            if znode is not None and znode.expired:
                margin = znode.removed - run.last()
                row.margin = margin if row.margin is None else min(row.margin, margin)
    for run, fault in _needless(made, runs):
        rows.setdefault(fault.name if fault else "none", Row()).needless.append(run.timeout)
    for violation in violations:
        if violation.kind in ("overlap", "outlived", "passed"):
            fault = _fault_of(violation.moment, main, 60)
            row = rows.setdefault(fault.name if fault else "none", Row())
            if violation.kind == "outlived":
                row.outlived += 1
            else:
                row.overlaps += 1
    return rows


def table(rows):
    """Returns the table in Markdown."""
    heads = ["fault", "made", "commands struck", "overlaps", "outlived the lease",
             "longest until dead, of T", "least time from dead to the session's end",
             "ended without need", "until the next began, median / longest"]
    lines = ["| " + " | ".join(heads) + " |", "| --- |" + " ---: |" * (len(heads) - 1)]
    for name in sorted(rows):
        lines.append("| " + " | ".join([name, *rows[name].cells()]) + " |")
    return "\n".join(lines)


def remains_table(made):
    """Returns a table in Markdown of the commands that had no cgroup, but a process that zklock might not be
    able to end; empty if there were none."""
    rows = {}
    for fault in made:
        for victim in fault.victims:
            run = victim.run
            hard = next((life for life in run.record.lives if life.hard), None) if (
                run.may_remain and run.record) else None
            if hard is None:
                continue
            row = rows.setdefault(fault.name, [0, 0.0, 0, 0.0])
            row[0] += 1
            row[1] = max(row[1], run.last() - fault.begin)
            # The driver ended it, or it was dead with the rest.
            row[2] += hard.last > fault.end - 10 * STAMPS
            row[3] = max(row[3], hard.last - fault.begin)
    if not rows:
        return ""
    lines = ["| without a cgroup | made | all other processes dead after, longest |"
             " that process remained | seen alive for, longest |",
             "| --- | ---: | ---: | ---: | ---: |"]
    for name, (count, rest, left, seen) in sorted(rows.items()):
        lines.append(f"| {name} | {count} | {rest:.2f} s | {left} of {count} | {seen:.2f} s |")
    return "\n".join(lines)


def long_waits(runs, history):
    """Returns how many commands began after their contender had queued for longer than T/2, and for longer
    than 2 T."""
    waits = []
    for run in runs:
        znode = history.of(run.record) if run.record is not None else None
        if znode is not None:
            waits.append((run.begin() - znode.created) / run.timeout)
    return sum(wait > 0.5 for wait in waits), sum(wait > 2 for wait in waits)


@dataclasses.dataclass
class FreeTime:
    """Totals over all LOCKs, in seconds."""
    waited: float = 0.0  # while a pool waited for a LOCK
    blocked: float = 0.0  # part of `waited`: no command ran, a killed zklock's contender was first
    gaps: list = dataclasses.field(default_factory=list)  # each time that no command ran otherwise


def free_while_waiting(runs, history):
    """Returns how long, after its first command, no command ran under a LOCK while a pool waited for it.
    `runs`: pools only."""
    of_label = {run.label: run for run in runs}
    queues, found = {}, FreeTime()
    for znode in history.znodes.values():
        run = of_label[znode.label]
        killed = min((sent.moment for sent in run.signals if sent.target == "zklock"), default=math.inf)
        begin = run.begin() if run.record is not None else math.inf
        queues.setdefault(znode.path.rsplit("/", 1)[0], []).append((znode, killed, begin))
    for lock, queue in queues.items():
        queue.sort(key=lambda entry: entry[0].token)
        commands = sorted((run.begin(), run.last()) for run in runs if run.record and run.lock == lock)
        if not commands:
            continue
        moments = sorted({moment for znode, *others in queue
                          for moment in (znode.created, znode.removed, *others)}
                         | {moment for command in commands for moment in command})
        previous = None  # the end of the last gap
        for moment, following in zip(moments, moments[1:]):
            there = [(killed, begin) for znode, killed, begin in queue
                     if znode.created <= moment < znode.removed]
            if not any(moment < min(times) for times in there) or moment < commands[0][0]:
                continue
            found.waited += following - moment
            if any(first <= moment < last for first, last in commands):
                continue
            if there[0][0] <= moment:
                found.blocked += following - moment
            elif previous == moment:
                found.gaps[-1] += following - moment
                previous = following
            else:
                found.gaps.append(following - moment)
                previous = following
    return found


def _needless(made, runs):
    """Yields (run, fault) for each command that zklock ended although it could have continued."""
    # A fault injected during another one affects only the processes that it signals.
    made = [fault for fault in made if not fault.beside]
    for run in runs:
        # No signal or forced release can have ended it.
        if (run.status == _LOST and run.record is not None and not run.signals
                and run.forced is None):
            fault = _fault_of(run.last(), made, run.timeout)
            if fault is None or fault.harmless:
                yield run, fault


def ended_without_need(made, runs):
    """Finds needless ends under a lease long enough to survive such a fault, or after a fault that no lease
    notices."""
    def had_trouble(run):
        begin = run.last() - run.timeout
        return any(fault.servers_struck and fault.begin <= run.last() and fault.end >= begin
                   for fault in made)
    return [checker.Violation("needless", f"run {run.number}, T = {run.timeout} s, was ended:"
                              f" {fault.name if fault else 'there was no fault'};"
                              f" {run.messages!r}", run.last())
            for run, fault in _needless(made, runs)
            if fault is None or run.timeout >= _COMFORTABLE or not had_trouble(run)]


def slow_ends(made, runs, history):
    """Yields, for each KILL of zklock alone, the run, the time until its tree was dead, and the
    time until the next one began (None if there was none, or if another fault may have delayed it)."""
    for fault in made:
        if fault.name == "zklock killed":
            for victim in fault.victims:
                run = victim.run
                killed = next((sent.moment for sent in run.signals
                               if sent.number == signal.SIGKILL), fault.begin)
                if run.record is not None and run.last() >= killed - STAMPS:
                    follows = None if fault.beside else succession(run, runs, killed, history,
                                                                   forgives=True)
                    yield run, max(run.last() - killed, 0), follows
