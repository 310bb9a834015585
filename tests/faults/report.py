"""The table that a run ends with."""

import signal
import statistics

import checker

_LOST = 76
# How far apart a command's stamps may be: it may have lived so much longer than was seen.
STAMPS = 0.02
_COMFORTABLE = 10.0  # a shorter T is warned of: an ordinary change of leader may end the command


def _was_ended(run):
    """Its command did not end by itself."""
    if run.record is None or run.status is None:
        return False
    return run.status == _LOST or run.record.lives[0].ended is None


def _is_alone(run, runs, moment):
    return not any(other is not run and other.record is not None and other.lock == run.lock
                   and other.begin() <= moment <= other.last() + STAMPS for other in runs)


def succession(run, runs, moment, history=None):
    """How long after `moment` the next one that conflicts began, of those that waited then. With a
    history the time is not counted in which a third one's znode, left from an earlier fault, was in
    between."""
    if not _is_alone(run, runs, moment):
        return None
    following = min((other for other in runs
                     if other.record is not None and other.lock == run.lock
                     and other.spawned < moment < other.begin()
                     and not (run.reads() and other.reads())),
                    key=lambda other: other.begin(), default=None)
    if following is None:
        return None
    znodes = history.znodes.values() if history else []
    between = [znode.removed for znode in znodes
               if znode.expired and znode.token < following.record.token
               and znode.token != run.record.token
               and znode.path.rsplit("/", 1)[0] == run.lock
               and moment < znode.removed <= following.begin()]
    return following.begin() - max([moment, *between])


def _fault_of(moment, made, timeout):
    """The last one made before."""
    for fault in reversed(made):
        if fault.begin <= moment:
            return fault if moment <= fault.end + timeout else None
    return None


class _Row:
    def __init__(self):
        self.made = 0
        self.struck = 0
        self.overlaps = 0
        self.outlived = 0
        self.slowest = None  # (share, seconds, timeout)
        self.margin = None
        self.needless = []
        self.next = []

    def cells(self):
        slowest = "–"
        if self.slowest:
            slowest = f"{self.slowest[1]:.2f} s of {self.slowest[2]:.0f} s"
        margin = "–" if self.margin is None else f"{self.margin:.2f} s"
        needless = str(len(self.needless))
        short = sum(run.timeout < _COMFORTABLE for run in self.needless)
        if short:
            needless += f" ({short} with T < 10 s)"
        following = "–"
        if self.next:
            following = f"{statistics.median(self.next):.2f} / {max(self.next):.2f} s"
        return [str(self.made), str(self.struck), str(self.overlaps), str(self.outlived), slowest,
                margin, needless, following]


def table(made, runs, history, violations):
    """Markdown."""
    rows = {}
    for index, fault in enumerate(made):
        row = rows.setdefault(fault.name, _Row())
        row.made += 1
        struck_again = {id(victim): later.begin for later in reversed(made[index + 1:])
                        if later.begin > fault.end for victim in later.victims}
        for victim in fault.victims:
            run = victim.run
            if run.record is None or run.last() < fault.begin - STAMPS:
                continue
            row.struck += 1
            follows = None
            again = struck_again.get(id(victim))
            if _was_ended(run) and (again is None or run.last() < again - STAMPS):
                took = max(run.last() - fault.begin, 0)
                if row.slowest is None or took / run.timeout > row.slowest[0]:
                    row.slowest = (took / run.timeout, took, run.timeout)
                follows = succession(run, runs, fault.begin)
            if follows is not None:
                row.next.append(follows)
            znode = history.znodes.get(run.record.token)
            if znode is not None and znode.expired:
                margin = znode.removed - run.last()
                row.margin = margin if row.margin is None else min(row.margin, margin)
    for run, fault in _needless(made, runs):
        rows.setdefault(fault.name if fault else "none", _Row()).needless.append(run)
    for violation in violations:
        if violation.kind in ("overlap", "outlived", "passed"):
            fault = _fault_of(violation.moment, made, 60)
            row = rows.setdefault(fault.name if fault else "none", _Row())
            if violation.kind == "outlived":
                row.outlived += 1
            else:
                row.overlaps += 1
    heads = ["fault", "made", "commands struck", "overlaps", "outlived the lease",
             "longest until dead, of T", "least time from dead to the session's end",
             "ended without need", "until the next began, median / longest"]
    lines = ["| " + " | ".join(heads) + " |", "| --- |" + " ---: |" * (len(heads) - 1)]
    for name in sorted(rows):
        lines.append("| " + " | ".join([name, *rows[name].cells()]) + " |")
    return "\n".join(lines)


def _needless(made, runs):
    """(run, fault) where zklock ended a command that could have gone on."""
    for run in runs:
        # Nobody's doing but zklock's.
        if (run.status == _LOST and run.record is not None and not run.signals
                and run.forced is None):
            fault = _fault_of(run.last(), made, run.timeout)
            if fault is None or fault.harmless:
                yield run, fault


def ended_without_need(made, runs):
    """Those under a lease that is long enough for such a fault."""
    return [checker.Violation("needless", f"run {run.number}, T = {run.timeout} s, was ended:"
                              f" {fault.name if fault else 'there was no fault'};"
                              f" {run.messages!r}", run.last())
            for run, fault in _needless(made, runs)
            if fault is None or run.timeout >= _COMFORTABLE]


def slow_ends(made, runs, history):
    """After a KILL of zklock alone: (until the tree was dead, until the next began), each with
    None where there is nothing to tell."""
    for fault in made:
        if fault.name == "zklock killed":
            for victim in fault.victims:
                run = victim.run
                killed = next((sent.moment for sent in run.signals
                               if sent.number == signal.SIGKILL), fault.begin)
                if run.record is not None and run.last() >= killed - STAMPS:
                    yield run, max(run.last() - killed, 0), succession(run, runs, killed, history)
