"""inspect --check and --prometheus on a tree of 5,000 LOCKs."""

import os
import statistics
import subprocess
import time

from report import text_of
from servers import ZooKeeper

_LOCKS = 5_000
_ROUNDS = 9
_RECORD = b"zklock/1 web1-lock-%010d exclusive %d 1.250 0 web1"
_WAYS = {"`--check`": ["--check", "--max-held", "2h", "--max-age", "26h"],
         "`--prometheus`": ["--prometheus"]}


def _fill(servers):
    """Creates LOCKs with a release record and a last-run, half of them held by the client that it
    returns."""
    from kazoo.client import KazooClient  # only this part needs it
    client = KazooClient(servers)
    client.start()
    client.ensure_path("/tree")
    replies = []
    began = b"zklock/1 %d web1" % (time.time() * 1000)
    for number in range(_LOCKS):
        lock = f"/tree/{number:05}"
        replies.append(client.create_async(lock, _RECORD % (number, number + 1)))
        replies.append(client.create_async(f"{lock}/last-run", began))
        if number % 2 == 0:
            replies.append(client.create_async(f"{lock}/_c_x-lock-", ephemeral=True, sequence=True))
        if len(replies) > 1000:
            for reply in replies:
                reply.get()
            replies.clear()
    for reply in replies:
        reply.get()
    return client


def _run(tools, servers, words):
    """(seconds, KiB of the largest resident set, standard output)"""
    began = time.monotonic()
    child = subprocess.Popen([f"{tools}/zklock", "inspect", "-z", servers, *words, "/tree"],
                             stdout=subprocess.PIPE, text=True)
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise RuntimeError(f"{words[0]} ended with {child.returncode}: {out[:200]}")
    return time.monotonic() - began, usage.ru_maxrss, out


def measure(tools):
    """The table, as Markdown."""
    found = {}
    with ZooKeeper() as zookeeper:
        client = _fill(zookeeper.servers)
        try:
            for name, words in _WAYS.items():
                before = zookeeper.counters(0)["zk_packets_received"]
                _, _, out = _run(tools, zookeeper.servers, words)
                requests = zookeeper.counters(0)["zk_packets_received"] - before
                runs = [_run(tools, zookeeper.servers, words) for _ in range(_ROUNDS)]
                found[name] = (statistics.median(run[0] for run in runs),
                               max(run[1] for run in runs), requests, len(out) / 1024)
        finally:
            client.stop()
    lines = [f"| {_LOCKS:,} LOCKs, half of them held | {' | '.join(_WAYS)} |",
             "|" + " --- |" * (len(_WAYS) + 1)]
    rows = [("time, with the start of zklock", 0, "s"), ("memory, maximum resident set", 1, "KiB"),
            ("requests", 2, ""), ("output", 3, "KiB")]
    for what, index, unit in rows:
        cells = [text_of(found[name][index], unit) for name in _WAYS]
        lines.append(f"| {what} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
