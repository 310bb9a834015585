"""The servers that the tools use: three ZooKeeper or three etcd servers, each on its own node of
the network, with a small disk of its own."""

import json
import os
import shutil
import signal
import time

from disk import Disk
from ensemble import RECONFIGURABLE, Ensemble, Server, member_line

_PIECE = 500_000
_ENOUGH = 70_000_000  # a segment of etcd's log


class ZooKeeper:
    """Three servers. `addresses`: of the nodes s1, s2, s3."""

    title = "ZooKeeper"
    client_port = 2181

    def __init__(self, directory, addresses, links, reaper, clock, tick):
        ports = (2888, 3888, self.client_port)
        quorum = [member_line(number, address, *ports) for number, address in enumerate(addresses, 1)]
        self.servers = [Server(number, f"{directory}/s{number}", (address, self.client_port), quorum,
                               (address, self.client_port), tick, RECONFIGURABLE)
                        for number, address in enumerate(addresses, 1)]
        self._ensemble = Ensemble(self.servers, links, reaper, clock)
        self._ensemble.give_disks()
        self.disks = {server: server.disk for server in self.servers}
        self.make_whole = self._ensemble.make_whole
        self.leader = self._ensemble.leader
        self.remove_member = self._ensemble.remove_member
        self.add_member = self._ensemble.add_member
        self.use_up = self._ensemble.use_up_disk

    def serves(self, server):
        return bool(server.mode())

    def kill(self, server):
        self._ensemble.end(server)

    def start(self, server):
        self._ensemble.start(server)

    def set_clocks(self, days):
        for server in self.servers:
            server.clock.set(days)

    def end(self):
        for server in self.servers:
            self._ensemble.end(server)
            self.disks[server].unmount()


class _Member:
    def __init__(self, number, directory, address):
        self.name, self.directory, self.address = f"s{number}", directory, address
        self.pid = None
        self.id = None
        self.existing = False
        os.makedirs(directory)

    def url(self, port):
        return f"http://{self.address}:{port}"


class Etcd:
    """Three members. Options are etcd's defaults."""

    title = "etcd"
    client_port = 2379

    def __init__(self, directory, addresses, links, reaper):
        self._links, self._reaper = links, reaper
        self.servers = [_Member(number, f"{directory}/e{number}", address)
                        for number, address in enumerate(addresses, 1)]
        self.disks = {one: Disk(f"{one.directory}/data", reaper) for one in self.servers}

    def start(self, member):
        cluster = ",".join(f"{one.name}={one.url(2380)}" for one in self.servers)
        command = ["setpriv", "--pdeathsig", "KILL", "etcd", "--name", member.name,
                   "--data-dir", f"{member.directory}/data/etcd",
                   "--listen-client-urls", member.url(2379),
                   "--advertise-client-urls", member.url(2379),
                   "--listen-peer-urls", member.url(2380),
                   "--initial-advertise-peer-urls", member.url(2380), "--initial-cluster", cluster,
                   "--initial-cluster-state", "existing" if member.existing else "new"]

        def gone(_):
            if member.pid == process.pid:
                member.pid = None
        with open(f"{member.directory}/log", "ab") as log:
            process = self._reaper.spawn(self._links.inside(member.name, command), gone, stdout=log,
                                         stderr=log)
        member.pid = process.pid

    def kill(self, member):
        if member.pid is not None:
            os.kill(member.pid, signal.SIGKILL)
        self._await(lambda: member.pid is None, 10)

    @staticmethod
    def _await(is_true, seconds):
        deadline = time.monotonic() + seconds
        while not is_true():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def _control(self, member, *words, **options):
        """What etcdctl prints; None if it fails."""
        status, answer = self._reaper.run(
            ["etcdctl", "--endpoints", member.url(2379), "--command-timeout", "3s", *words],
            env={**os.environ, "ETCDCTL_API": "3"}, **options)
        return answer if status == 0 else None

    def _status(self, member):
        """(its ID, that of its leader), or None if it does not serve."""
        answer = self._control(member, "endpoint", "status", "-w", "json") if member.pid else None
        if not answer:
            return None
        status = json.loads(answer)[0]["Status"]
        member.id = status["header"]["member_id"]
        return member.id, status.get("leader", 0)

    def serves(self, member):
        return self._status(member) is not None

    def leader(self):
        for member in self.servers:
            status = self._status(member)
            if status is not None and status[0] == status[1]:
                return member
        return None

    def make_whole(self, patience=60):
        for member in self.servers:
            if member.pid is None:
                self.start(member)

        def is_whole():
            return all(self._control(one, "endpoint", "health") is not None for one in self.servers)
        return self._await(is_whole, patience)

    def set_clocks(self, days):
        raise NotImplementedError("etcd reads the clock without libc")

    def _another(self, member):
        return next(one for one in self.servers if one is not member and one.pid is not None)

    def remove_member(self, member):
        self._status(member)
        self._change_members(member, "remove", f"{member.id:x}")

    def _change_members(self, member, *words):
        # Refused until all members have been connected for five seconds.
        if not self._await(lambda: self._control(self._another(member), "member", *words) is not None, 20):
            raise RuntimeError(f"etcd refuses: member {words[0]}")

    def add_member(self, member):
        """Restarts the member as a new one, without data."""
        self.kill(member)
        shutil.rmtree(f"{member.directory}/data/etcd")
        self._change_members(member, "add", member.name, f"--peer-urls={member.url(2380)}")
        member.existing = True
        self.start(member)

    def use_up(self, member):
        """Writes until the member stops serving, or has needed more of its disk than it had reserved."""
        other = self._another(member)
        with open(f"{member.directory}/piece", "w+b") as piece:
            piece.write(b"x" * _PIECE)
            piece.flush()
            for _ in range(_ENOUGH // _PIECE):
                piece.seek(0)
                self._control(other, "put", "filler", stdin=piece)
                if member.pid is None:
                    break

    def end(self):
        for member in self.servers:
            self.kill(member)
            self.disks[member].unmount()
