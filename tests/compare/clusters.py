"""The servers that the tools lock on: three of ZooKeeper or three of etcd, each on its own node of the
network and with a small disk of its own."""

import contextlib
import glob
import json
import os
import shutil
import signal
import time

from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from ensemble import Ensemble, Server

_DISK_BYTES = 400 << 20
_FILLER = "filler"
_PIECE = 500_000
_ENOUGH_FOR_ZOOKEEPER = 2_500_000  # ensemble.py: preAllocSize
_ENOUGH_FOR_ETCD = 70_000_000  # a segment of its log


class Disk:
    """A file system of its own, which can be filled, and stalled for a part of each second. Must be made
    as root in a mount namespace."""

    def __init__(self, path, reaper):
        self.path = path
        self._reaper = reaper
        self._image = f"{path}.image"
        with open(self._image, "wb") as file:
            file.truncate(_DISK_BYTES)
        os.makedirs(path, exist_ok=True)
        self._run("mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=1", self._image)
        self._run("mount", "-o", "loop", self._image, path)

    def _run(self, *command):
        if self._reaper.run(command)[0] != 0:
            raise RuntimeError(f"{command[0]} has failed: {self.path}")

    def fill(self):
        with open(f"{self.path}/{_FILLER}", "wb", buffering=0) as file:
            block = bytes(1 << 16)
            while block:
                try:
                    file.write(block)
                except OSError:
                    block = block[:len(block) // 2]

    def empty(self):
        os.unlink(f"{self.path}/{_FILLER}")

    def stall(self, seconds, share=0.9):
        """Lets no write end for `share` of each of the next seconds. Returns when that is over."""
        for _ in range(int(seconds)):
            self._run("fsfreeze", "-f", self.path)
            try:
                time.sleep(share)
            finally:
                self._run("fsfreeze", "-u", self.path)
            time.sleep(1 - share)

    def unmount(self):
        self._run("umount", self.path)
        os.unlink(self._image)


class _Server(Server):
    def put_data_away(self):
        number = len(glob.glob(f"{self.directory}/data/away-*")) + 1
        os.makedirs(f"{self.directory}/data/away-{number}")
        os.rename(f"{self.directory}/data/version-2", f"{self.directory}/data/away-{number}/version-2")


class ZooKeeper:
    """Three servers. `addresses`: of the nodes s1, s2, s3."""

    title = "ZooKeeper"
    client_port = 2181

    def __init__(self, directory, addresses, links, reaper, clock, tick):
        quorum = [self._line(number, address) for number, address in enumerate(addresses, 1)]
        self.servers = [
            _Server(number, f"{directory}/s{number}", (address, self.client_port), quorum,
                    (address, self.client_port), tick,
                    ["reconfigEnabled=true", "standaloneEnabled=false", "skipACL=yes"])
            for number, address in enumerate(addresses, 1)]
        self.disks = {}
        for server in self.servers:
            self.disks[server] = Disk(f"{server.directory}/data", reaper)
            with open(f"{server.directory}/data/myid", "w") as file:
                file.write(f"{server.number}\n")
        self._ensemble = Ensemble(self.servers, links, reaper, clock)

    def _line(self, number, address):
        return (f"server.{number}={address}:2888:3888:participant;{address}:{self.client_port}")

    def make_whole(self):
        if self._ensemble.make_whole(patience=40):
            return True
        # A server of ZooKeeper 3.8.0 whose thread has died after a change of leaders or on a full disk stays,
        # but serves nobody.
        for server in self.servers:
            if not server.gives_sessions():
                self._ensemble.end(server)
        return self._ensemble.make_whole()

    def leader(self):
        return self._ensemble.leader()

    def serves(self, server):
        return bool(server.mode())

    def kill(self, server):
        self._ensemble.end(server)

    def start(self, server):
        self._ensemble.start(server)

    def set_clocks(self, days):
        for server in self.servers:
            server.set_clock(days)

    def _reconfigure(self, server, **changes):
        changes = {"joining": None, "leaving": None, "new_members": None, **changes}
        deadline = time.monotonic() + 90
        with self._ensemble.client(server) as client:
            while True:
                try:
                    client.reconfig_async(**changes, from_config=-1).get(timeout=30)
                    return
                except (KazooException, KazooTimeoutError):
                    # The reply may be lost with the leader that the change removes. Twice is as good as once.
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.5)

    def remove_member(self, server):
        self._reconfigure(server, leaving=str(server.number))

    def add_member(self, server):
        """It starts again as a new server does, but with its data."""
        self._ensemble.end(server)
        for path in glob.glob(f"{server.directory}/zoo.cfg*"):
            os.unlink(path)
        server.configure()
        self._ensemble.start(server)
        self._ensemble.await_modes(lambda modes: all(modes), 30)
        self._reconfigure(server, joining=self._line(server.number, server.address[0]))

    def use_up(self, server):
        """Writes until the server stops serving, or has needed more of its disk than it had reserved."""
        with (contextlib.suppress(KazooException, KazooTimeoutError),
              self._ensemble.client(server) as client):
            path = client.create_async("/compare-filler-", sequence=True).get(timeout=5)
            for _ in range(_ENOUGH_FOR_ZOOKEEPER // _PIECE):
                client.set_async(path, bytes(_PIECE)).get(timeout=5)
            client.delete_async(path).get(timeout=5)

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
        if self._control(self._another(member), "member", "remove", f"{member.id:x}") is None:
            raise RuntimeError("etcd does not remove a member")

    def add_member(self, member):
        """It starts as a new member, without data."""
        self.kill(member)
        shutil.rmtree(f"{member.directory}/data/etcd")
        deadline = time.monotonic() + 20
        while self._control(self._another(member), "member", "add", member.name,
                            f"--peer-urls={member.url(2380)}") is None:
            if time.monotonic() > deadline:
                raise RuntimeError("etcd does not add a member")
            time.sleep(0.2)
        member.existing = True
        self.start(member)

    def use_up(self, member):
        """Writes until the member stops serving, or has needed more of its disk than it had reserved."""
        other = self._another(member)
        with open(f"{member.directory}/piece", "w+b") as piece:
            piece.write(b"x" * _PIECE)
            piece.flush()
            for _ in range(_ENOUGH_FOR_ETCD // _PIECE):
                piece.seek(0)
                self._control(other, "put", "filler", stdin=piece)
                if member.pid is None:
                    break

    def end(self):
        for member in self.servers:
            self.kill(member)
            self.disks[member].unmount()
