#!/usr/bin/env python3
"""Measures how soon a lock is free after zklock is killed, in each phase of a run.

The time runs from the end of the last process that the lock covers (zklock itself while it waits or
closes; otherwise the command's tree or the nested run) until no contender is left. This program
starts its own server:

    tests/bench/kills.py build/release/zklock [COUNT]
"""

import os
import random
import select
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time

from servers import ZooKeeper

_COUNT = 50


class Client:
    """Lists children. Implements only as much of ZooKeeper's protocol as that needs."""

    def __init__(self, server):
        host, port = server.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._send(struct.pack(">iqiqi16s", 0, 0, 30000, 0, 16, bytes(16)))
        self._receive()

    def _send(self, body):
        self._socket.sendall(struct.pack(">i", len(body)) + body)

    def _receive(self):
        def read(size):
            data = b""
            while len(data) < size:
                data += self._socket.recv(size - len(data))
            return data

        return read(struct.unpack(">i", read(4))[0])

    def children(self, path):
        name = path.encode()
        self._send(struct.pack(f">iii{len(name)}s?", 1, 8, len(name), name, False))
        answer = self._receive()
        if struct.unpack(">i", answer[12:16])[0] != 0:
            return []
        (count,) = struct.unpack(">i", answer[16:20])
        names, at = [], 20
        for _ in range(count):
            (size,) = struct.unpack(">i", answer[at : at + 4])
            names.append(answer[at + 4 : at + 4 + size].decode())
            at += 4 + size
        return names

    def contenders(self, lock):
        found = self.children(lock)
        if "locks" in found or "leases" in found:
            found += self.children(lock + "/locks") + self.children(lock + "/leases")
        return [one for one in found if "-lock-" in one or "-lease-" in one]

    def wait_for(self, lock, count, seconds=60):
        deadline = time.monotonic() + seconds
        while len(self.contenders(lock)) != count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{lock} does not have {count} contenders")
        return time.monotonic()


class Run:
    """A zklock. Its lock covers every process that has the pipe `covered` open."""

    def __init__(self, zklock, servers, words, script=None, lock="", stops=False):
        self.lock = lock
        read_end, write_end = os.pipe()
        command = [zklock, *words, lock]
        if script:
            command += ["--", "sh", "-c", script]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[write_end],
            env={**os.environ, "ZKLOCK_SERVERS": servers, "Z": zklock, "L": lock},
        )
        os.close(write_end)
        self._covered = read_end
        self._stops = stops

    def said(self):
        return self.process.stdout.readline()

    def warned(self, text):
        while text not in self.process.stderr.readline():
            pass

    def kill(self):
        if self._stops:
            self.process.send_signal(signal.SIGSTOP)
        self.process.kill()

    def end_of_covered(self):
        """Returns when the last process that had the pipe open has ended."""
        select.select([self._covered], [], [])
        at = time.monotonic()
        os.close(self._covered)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()
        return at


class Phases:
    """Each method kills one zklock, and returns how many seconds later the lock was free."""

    def __init__(self, zklock, servers, client):
        self._zklock, self._servers, self._client = zklock, servers, client
        self._number = 0

    def _run(self, words, script=None, lock=None, stops=False):
        self._number += 1
        lock = lock or f"/kills-{self._number}"
        words = [words[0], "--session-timeout", "40s", *words[1:]]
        return Run(self._zklock, self._servers, words, script, lock, stops)

    def _after(self, run, left=0):
        end = run.end_of_covered()
        return max(self._client.wait_for(run.lock, left) - end, 0)

    def starting(self, words=("exclusive",)):
        run = self._run(words, "exec sleep 1000")
        time.sleep(random.uniform(0, 0.3))
        run.kill()
        end = free = run.end_of_covered()
        # A create may be under way.
        while time.monotonic() < max(free, end) + 0.2:
            if self._client.contenders(run.lock):
                free = self._client.wait_for(run.lock, 0)
        return free - end

    def starting_with_permits(self):
        return self.starting(("exclusive", "--permits", "2"))

    def waiting(self):
        holder = self._run(["exclusive"], "echo held; read x")
        holder.said()
        waiter = self._run(["exclusive"], "true", holder.lock)
        self._client.wait_for(holder.lock, 2)
        waiter.kill()
        took = self._after(waiter, 1)
        holder.process.stdin.close()
        holder.end_of_covered()
        return took

    def running(self, stops=False):
        run = self._run(["exclusive"], "echo held; sleep 1000", stops=stops)
        run.said()
        run.kill()
        return self._after(run)

    def running_and_stopped(self):
        return self.running(stops=True)

    def after_the_command(self):
        run = self._run(["exclusive", "--events", "2", "--history", "5"], "echo held; read x")
        run.said()
        run.process.stdin.write(b"\n")
        run.process.stdin.flush()
        run.warned(b'"exited"')
        run.kill()
        return self._after(run)

    def nested_run_left(self, stops=False):
        run = self._run(
            ["exclusive", "--events", "2"],
            "$Z exclusive $L -- sh -c 'echo nested; exec sleep 1000' & read x",
            stops=stops,
        )
        run.said()
        run.process.stdin.write(b"\n")
        run.process.stdin.flush()
        run.warned(b'"exited"')
        run.kill()
        return self._after(run)

    def nested_run_left_and_stopped(self):
        return self.nested_run_left(stops=True)


def main():
    zklock = os.path.abspath(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else _COUNT
    with ZooKeeper() as zookeeper:
        servers = zookeeper.servers
        phases = Phases(zklock, servers, Client(servers.split(",")[0]))
        print("| killed | median | maximum |\n| --- | --- | --- |")
        for name in (
            "starting",
            "starting_with_permits",
            "waiting",
            "running",
            "running_and_stopped",
            "after_the_command",
            "nested_run_left",
            "nested_run_left_and_stopped",
        ):
            times = [1000 * getattr(phases, name)() for _ in range(count)]
            median, most = statistics.median(times), max(times)
            print(f"| {name.replace('_', ' ')} | {median:.1f} ms | {most:.1f} ms |", flush=True)


if __name__ == "__main__":
    main()
