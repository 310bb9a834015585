"""Measures the phases of a run on a free lock, from the kernel's own record of the run.

perf(1) records each system call, page fault and context switch of all three processes with its time. The
phases end with system calls that a run makes anyway, so the binary is measured as it is. strace(1) would
take thirty times as long for each system call as perf does.
"""

import collections
import re
import shutil
import statistics
import subprocess

from report import text_of

# (phase, the system call that ends it, the process that makes that call). Each is the first such
# call since the previous phase. What zklock does during a wait belongs to the phase of the wait.
_PHASES = [
    ("exec, relocation", "fcntl", "zklock"),
    ("options, configuration", "timerfd_create", "zklock"),
    ("command and outer locks found", "socket", "zklock"),
    ("the server's address", "setsockopt", "zklock"),
    ("connect", "getsockopt", "zklock"),
    ("session requested; cgroup", "socketpair", "zklock"),
    ("fork of the guard", "newuname", "zklock"),
    ("what the contender says; fork of the command", "poll", "zklock"),
    ("the session's commit; contender sent", "sendto", "zklock"),
    ("the contender's commit", "epoll_create1", "zklock"),
    ("exec of the command", "execve", "command"),
    ("the command", "exit_group", "command"),
    ("reaped, reported, release sent", "fcntl", "zklock"),
    ("the release's commit", "kill", "zklock"),
    ("end of the guard, of zklock", "exit_group", "zklock"),
]
_COUNTED = {"raw_syscalls:sys_enter": "calls", "page-faults": "faults", "sched:sched_switch": "waits"}
# Switches of a process that begins to wait. Preemptions depend on what else the machine does.
_WAITS = ["-e", "sched:sched_switch", "--filter", "prev_state & 255"]
_EVENT = re.compile(r"\s*(\d+)\s+([\d.]+):\s+([\w:-]+):")


def missing():
    """The reason why nothing can be profiled here, or None."""
    if shutil.which("perf") is None:
        return "perf is not installed"
    tried = subprocess.run(["perf", "stat", "-e", "raw_syscalls:sys_enter", "true"], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    return None if tried.returncode == 0 else "perf may not trace system calls"


def _record(argv, file):
    """[(seconds, pid, event)] of one run, in order."""
    events = sorted({f"syscalls:sys_enter_{call}" for _, call, _ in _PHASES})
    chosen = [word for event in ("raw_syscalls:sys_enter", "page-faults", *events) for word in ("-e", event)]
    subprocess.run(["perf", "record", "-q", "-o", file, *chosen, *_WAITS, "-c", "1", *argv], check=True)
    text = subprocess.run(["perf", "script", "-i", file, "--ns", "-F", "pid,time,event"], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    found = [_EVENT.match(line) for line in text.splitlines()]
    return sorted((float(one[2]), int(one[1]), one[3]) for one in found if one)


def _processes(events):
    """{pid: who}: in the order in which they appear, zklock forks the guard, and this the command."""
    pids = list(dict.fromkeys(pid for _, pid, _ in events))
    if len(pids) != 3:
        raise RuntimeError(f"{len(pids)} processes instead of zklock, guard and command")
    return dict(zip(pids, ("zklock", "guard", "command")))


def _run(argv, file):
    """({phase: {"s", "calls", "faults", "waits"}}, {who: the same, without "s"}) of one run."""
    events = _record(argv, file)
    processes = _processes(events)
    phases = collections.defaultdict(collections.Counter)
    totals = collections.defaultdict(collections.Counter)
    began, left = events[0][0], list(_PHASES)
    for time, pid, event in events:
        who, counted = processes[pid], _COUNTED.get(event)
        what = left[0][0] if left else _PHASES[-1][0]
        if counted:
            phases[what][counted] += 1
            totals[who][counted] += 1
        elif left and (event, who) == (f"syscalls:sys_enter_{left[0][1]}", left[0][2]):
            phases[what]["s"] = time - began
            began = time
            left.pop(0)
    if left:
        raise RuntimeError(f"no {left[0][1]} of {left[0][2]} ends '{left[0][0]}'; has a run changed?")
    return phases, totals


def _medians(runs, name):
    return {what: statistics.median(run[what][name] for run in runs) for what in runs[0]}


def _stat(argv):
    """(system calls, page faults, context switches, waits) of one run with all its processes."""
    chosen = [word for event in ("raw_syscalls:sys_enter", "page-faults", "context-switches")
              for word in ("-e", event)]
    lines = subprocess.run(["perf", "stat", "-x,", *chosen, *_WAITS, *argv], check=True, stderr=subprocess.PIPE,
                           stdout=subprocess.DEVNULL, text=True).stderr.splitlines()
    return [int(line.split(",")[0]) for line in lines if line and not line.startswith("#")]


def measure(argv, beside, in_turn, directory, rounds):
    """Two tables: the phases of `argv`, and the whole run compared with `beside`, {title: argv}."""
    file = f"{directory}/perf.data"
    runs = [_run(argv, file) for _ in range(rounds + 1)][1:]  # the first one creates the LOCK
    phases = [phase for phase, _ in runs]
    columns = {name: _medians(phases, name) for name in ("s", "calls", "faults", "waits")}
    lines = ["| | time | system calls | page faults | waits |\n| --- | --- | --- | --- | --- |\n"]
    for what, *_ in _PHASES:
        lines.append(f"| {what} | {columns['s'][what] * 1e6:.0f} µs | {columns['calls'][what]:.0f} |"
                     f" {columns['faults'][what]:.0f} | {columns['waits'][what]:.0f} |\n")
    owners = [total for _, total in runs]
    for who in ("zklock", "guard", "command"):
        calls, faults, waits = (_medians(owners, name)[who] for name in ("calls", "faults", "waits"))
        lines.append(f"| in all: {who} | | {calls:.0f} | {faults:.0f} | {waits:.0f} |\n")
    medians = in_turn(beside, rounds)
    lines.append("\n| run in turn | time | CPU time | system calls | page faults | context switches | of these waits |\n"
                 "| --- | --- | --- | --- | --- | --- | --- |\n")
    counts = {title: [] for title in beside}
    for _ in range(rounds):
        for title, command in beside.items():
            counts[title].append(_stat(command))
    for title in beside:
        wall, cpu = medians[title]
        figures = " | ".join(f"{statistics.median(column):.0f}" for column in zip(*counts[title]))
        lines.append(f"| {title} | {text_of(wall, 's')} | {text_of(cpu, 's')} | {figures} |\n")
    return "".join(lines)
