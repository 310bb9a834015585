"""10,000 contenders, of one LOCK and of 10,000: the cost of each as their number grows."""

import collections
import os
import subprocess

from report import text_of
from servers import ZooKeeper

_COUNT = 10_000
_PATIENCE = 900  # seconds for one crowd
_TICK = os.sysconf("SC_CLK_TCK")
_SHOWN = {1: "first", 5: "fifth", 10: "tenth"}
_WAYS = [(kind, size) for kind in ("queue", "many") for size in (1, 3)]
_TITLES = {("queue", 1): "one LOCK, one server", ("queue", 3): "one LOCK, three servers",
           ("many", 1): "10,000 LOCKs, one server", ("many", 3): "10,000 LOCKs, three servers"}


def _cpu(pids):
    """Seconds of CPU time."""
    seconds = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        seconds += (int(fields[11]) + int(fields[12])) / _TICK
    return seconds


def _resident(pid):
    """The resident set size, in KiB."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))


class _Watcher:
    """The work of the servers and the crowd so far."""

    def __init__(self, zookeeper, crowd):
        self._zookeeper, self._crowd = zookeeper, crowd
        self.most_outstanding = 0

    def look(self):
        """One flat record; sums over the servers."""
        seen = collections.Counter(crowd_cpu=_cpu([self._crowd.pid]),
                                   server_cpu=_cpu(self._zookeeper.pids()))
        for server in range(self._zookeeper.size):
            counters = self._zookeeper.counters(server)
            for name in ("zk_packets_received", "zk_response_bytes", "zk_watch_count",
                         "zk_num_alive_connections", "zk_ephemerals_count"):
                seen[name] += counters[name]
            for name in ("zk_avg_latency", "zk_max_latency"):
                seen[name] = max(seen[name], counters[name])
            self.most_outstanding = max(self.most_outstanding,
                                        counters["zk_outstanding_requests"])
        return seen


def _run(tools, zookeeper, kind):
    """({phase: {tenth: {what: value for each}}}, {what: value when all have joined})"""
    crowd = subprocess.Popen(
        [f"{tools}/bench_crowd", kind, zookeeper.servers, f"/scale-{kind}", str(_COUNT)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    parts, full = collections.defaultdict(dict), {}
    try:
        watcher = _Watcher(zookeeper, crowd)
        before, last = watcher.look(), {}
        for line in crowd.stdout:
            phase, done, seconds = line.split()
            done, seconds = int(done), float(seconds)
            now = watcher.look()
            since, already = last.get(phase, (0.0, 0))
            part = {"seconds": (seconds - since) / (done - already)}
            part.update({what: (now[what] - before[what]) / (done - already) for what in now})
            parts[phase][done * 10 // _COUNT] = part
            last[phase], before = (seconds, done), now
            if phase == "joined" and done == _COUNT:
                full = {"watches": now["zk_watch_count"],
                        "connections": now["zk_num_alive_connections"],
                        "server": max(map(_resident, zookeeper.pids())),
                        "crowd": _resident(crowd.pid) / _COUNT}
                crowd.stdin.close()
        if crowd.wait(_PATIENCE) != 0:
            raise RuntimeError(f"the crowd of {kind} ended with {crowd.returncode}")
    finally:
        crowd.kill()
        crowd.wait()
    full.update(outstanding=watcher.most_outstanding, mean=before["zk_avg_latency"] / 1000,
                longest=before["zk_max_latency"] / 1000)
    return parts, full


def _rows(found):
    """(what, [value for each column, as text])"""
    def of_each(phase, part, what, unit, scale=1):
        return [text_of(found[way][0][phase][part][what] * scale, unit) for way in _WAYS]

    def of_all(what, unit):
        return [text_of(found[way][1][what], unit) for way in _WAYS]

    for phase, verb in (("joined", "join"), ("passed", "hold, release, hand over")):
        for part, word in _SHOWN.items():
            yield (f"{verb}: each of the {word} thousand", of_each(phase, part, "seconds", "s"))
        for part in (1, 10):
            where = f", {_SHOWN[part]} thousand"
            yield f"… CPU of the client{where}", of_each(phase, part, "crowd_cpu", "s")
            yield f"… CPU of all servers{where}", of_each(phase, part, "server_cpu", "s")
            yield f"… requests{where}", of_each(phase, part, "zk_packets_received", "")
            yield f"… bytes received{where}", of_each(phase, part, "zk_response_bytes", "KiB", 1 / 1024)
    yield "all joined: connections", of_all("connections", "")
    yield "all joined: watches", of_all("watches", "")
    yield "all joined: resident memory of the largest server", of_all("server", "KiB")
    yield "all joined: memory of the client, for each contender", of_all("crowd", "KiB")
    yield "requests outstanding at one server, maximum seen", of_all("outstanding", "")
    yield "a request, mean of the slowest server", of_all("mean", "s")
    yield "a request, the longest", of_all("longest", "s")


def measure(tools):
    """The table, as Markdown."""
    found = {}
    for size in (1, 3):
        for kind in ("queue", "many"):
            # New servers, so that leftovers of the last crowd do not matter.
            with ZooKeeper(size) as zookeeper:
                found[kind, size] = _run(tools, zookeeper, kind)
    lines = [f"| {_COUNT:,} sessions of one process | "
             + " | ".join(_TITLES[way] for way in _WAYS) + " |",
             "|" + " --- |" * (len(_WAYS) + 1)]
    lines += [f"| {what} | {' | '.join(cells)} |" for what, cells in _rows(found)]
    return "\n".join(lines) + "\n"
