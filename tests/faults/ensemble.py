"""Three real servers, each on its own node of the network."""

import base64
import contextlib
import hashlib
import glob
import json
import os
import re
import signal
import socket
import struct
import time

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

import histories
from disk import Disk

# The last two, which Netty needs, are missing from the server's own class path.
_JARS = ":".join(f"/usr/share/java/{name}.jar" for name in
                 ("slf4j-simple", "zookeeper", "netty-codec", "netty-resolver"))
# The jars of a server of another release, in the same directories of its own root. The manifest of
# zookeeper.jar names this host's jars, so the other jars precede it.
_ALL_JARS = ("zookeeper-jute", "zookeeper", "commons-cli", "commons-io", "jackson-*", "jetty9-*", "jline",
             "metrics-core", "netty-*", "slf4j-api", "slf4j-simple", "snappy-java")


def class_path(root):
    """Returns the class path of the ZooKeeper in the root of another Debian system."""
    found = [sorted(glob.glob(f"{root}/usr/share/java/{name}.jar")) for name in _ALL_JARS]
    return ":".join(jar for jars in [*found[:1], *found[2:], found[1]] for jar in jars)


# The user who may change the membership.
_SUPER = "super:secret"
_SUPER_DIGEST = base64.b64encode(hashlib.sha1(_SUPER.encode()).digest()).decode()
_JAVA = ["java", "-Xms16m", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
         "-XX:-UsePerfData", "-Djava.net.preferIPv4Stack=true",
         f"-Dzookeeper.DigestAuthenticationProvider.superDigest={_SUPER.split(':')[0]}:{_SUPER_DIGEST}",
         "-Dzookeeper.jmx.log4j.disable=true", "-Dorg.slf4j.simpleLogger.showDateTime=true",
         "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss,SSS"]

# A connect (protocol version, last zxid, session timeout, session, password) and a close, each
# prefixed with its length.
_CONNECT = struct.pack(">iiqiqi16x", 44, 0, 0, 4000, 0, 16)
_CLOSE = struct.pack(">iii", 8, 1, -11)

# Settings for servers whose membership is to change. Their lines are those of member_line().
RECONFIGURABLE = ("reconfigEnabled=true", "standaloneEnabled=false")
_PREALLOCATED_KIB = 1024
_PIECE = 500_000


def member_line(number, address, quorum_port, election_port, client_port):
    return f"server.{number}={address}:{quorum_port}:{election_port}:participant;{address}:{client_port}"


class Server:
    """`address`: the server's address for the driver. `quorum`: its server.N=... lines. `settings`: more
    lines for its configuration."""

    def __init__(self, number, directory, address, quorum, bind, tick, settings=()):
        self._quorum = quorum
        self._bind = bind
        self._tick = tick
        self._settings = settings
        self.number = number
        self.name = f"s{number}"
        self.address = address
        self.directory = directory
        self.disk = None  # its own Disk for its data, if any
        self.jars = _JARS
        self.pid = None
        self.is_paused = False
        os.makedirs(f"{directory}/data")
        self.write_number()
        self.clock = histories.Clock(f"{directory}/clock")  # kept across restarts
        self.configure()

    def write_number(self):
        with open(f"{self.directory}/data/myid", "w") as file:
            file.write(f"{self.number}\n")

    def member(self):
        """Returns its own line of the quorum."""
        return next(line for line in self._quorum if line.startswith(f"server.{self.number}="))

    def configure(self, tick=None, max_session_timeout=40000, more=()):
        """Writes the configuration for the next start. Times are in milliseconds. `tick`: the usual
        tick if None. `max_session_timeout`: 20 ticks if None. `more`: additional lines."""
        largest = [f"maxSessionTimeout={max_session_timeout}"] if max_session_timeout else []
        with open(f"{self.directory}/zoo.cfg", "w") as file:
            file.write("\n".join([
                f"tickTime={tick or self._tick}", "initLimit=10", "syncLimit=5", "dataDir=./data",
                f"clientPort={self._bind[1]}", f"clientPortAddress={self._bind[0]}",
                "maxClientCnxns=0", *largest, "admin.enableServer=false",
                f"preAllocSize={_PREALLOCATED_KIB}",
                # The whole history is read at the end.
                "snapCount=10000000", "4lw.commands.whitelist=srvr,dump,ruok", *self._quorum,
                *self._settings, *more, ""]))

    def add_settings(self, settings):
        self._settings = [*self._settings, *settings]
        self.configure()

    def logs(self, put_away=True):
        """Returns its transaction logs; with `put_away`, also those that put_data_away() has moved."""
        return self._files("log", "version-2*" if put_away else "version-2")

    def _files(self, kind, version="version-2"):
        return sorted(glob.glob(f"{self.directory}/data/{version}/{kind}.*"), key=_zxid_of)

    def damage(self):
        """Returns where its log is damaged (histories.damage)."""
        zxids = []
        for path in self._files("log"):
            with open(path, "rb") as file:
                zxids += [zxid for zxid, _ in histories.read_log(file.read())]
        return histories.damage(zxids, max(map(_zxid_of, self._files("snapshot")), default=0))

    def damage_log(self, numbers):
        """Damages the end of its last log, as a failing disk or a power loss may. Its process must
        have ended. Returns the kind of damage."""
        for path in reversed(self._files("log")):
            with open(path, "r+b") as file:
                entries = list(histories.log_entries(file.read()))
                if entries:
                    how = numbers.choice(["cut", "zeroed", "garbled", "garbled before the end"])
                    begin, end = entries[-1 if how != "garbled before the end" else -len(entries[-9:])]
                    if how == "cut":
                        file.truncate(numbers.randrange(begin + 1, end))
                    else:
                        length = end - begin if how == "zeroed" else 4
                        file.seek(begin if how == "zeroed" else numbers.randrange(begin, end - length))
                        file.write(bytes(length) if how == "zeroed" else b"\xde\xad\xbe\xef")
                    return how
        return "empty"

    def put_data_away(self):
        """Makes it start like a new server, which gets everything from the leader."""
        data = f"{self.directory}/data/version-2"
        os.rename(data, f"{data}.{len(glob.glob(f'{data}.*')) + 1}")

    def has_diverged(self):
        """Returns whether it found that its data differed from the leader's when both had made the same
        changes."""
        return self.times_logged("Digests are not matching") > 0

    def times_logged(self, words):
        """Returns how often `words` occur in its log."""
        with open(f"{self.directory}/log", "rb") as file:
            return file.read().count(words.encode())

    def ask(self, word, patience=1.0):
        """Returns the answer to a four-letter command; empty if there is none."""
        answer = b""
        try:
            with socket.create_connection(self.address, timeout=patience) as connection:
                connection.sendall(word)
                while more := connection.recv(65536):
                    answer += more
        except OSError:
            return ""
        return answer.decode(errors="replace")

    def mode(self):
        """Returns leader or follower; empty if it does not serve."""
        if self.pid is None or self.is_paused:
            return ""
        found = re.search(r"^Mode: (\w+)", self.ask(b"srvr"), re.M)
        return found.group(1) if found else ""

    def gives_sessions(self, patience=1.0):
        """Returns whether it has a quorum. A server that was cut off might still believe that it has one."""
        try:
            with socket.create_connection(self.address, timeout=patience) as connection:
                connection.settimeout(patience)
                connection.sendall(_CONNECT)
                answer = connection.recv(1024)
                connection.sendall(_CLOSE)
                connection.recv(1024)
                return len(answer) > 16
        except OSError:
            return False

    def zxid(self):
        found = re.search(r"^Zxid: 0x([0-9a-f]+)", self.ask(b"srvr"), re.M)
        return int(found.group(1), 16) if found else 0


def _has_quorum(modes):
    return "leader" in modes and "follower" in modes


def _zxid_of(path):
    return int(path.rsplit(".", 1)[1], 16)


class Ensemble:
    """`links` runs the servers on their nodes, `reaper` reaps them. `clock`: the library that gives
    each a clock of its own."""

    def __init__(self, servers, links, reaper, clock):
        self._clock = clock
        self.servers = servers
        self._links = links
        self._reaper = reaper

    def start(self, server):
        log = open(f"{server.directory}/log", "ab")
        # The kernel kills the server when the driver ends, for whatever reason.
        command = ["setpriv", "--pdeathsig", "KILL", *_JAVA, "-cp", server.jars,
                   "org.apache.zookeeper.server.quorum.QuorumPeerMain", "./zoo.cfg"]
        environment = {**os.environ, **server.clock.variables(self._clock)}

        def gone(_):
            if server.pid == process.pid:
                server.pid = None
        with log:
            process = self._reaper.spawn(self._links.inside(server.name, command), gone,
                                         cwd=server.directory, env=environment, stdout=log, stderr=log)
            server.pid = process.pid
            server.is_paused = False

    def end(self, server, number=signal.SIGKILL, patience=8.0):
        """Signals a server and waits until it has ended."""
        if server.pid is None:
            return
        os.kill(server.pid, number)
        deadline = time.monotonic() + patience
        while server.pid is not None:
            if time.monotonic() > deadline:
                os.kill(server.pid, signal.SIGKILL)
            time.sleep(0.01)

    def pause(self, server):
        os.kill(server.pid, signal.SIGSTOP)
        server.is_paused = True

    def resume(self, server):
        if server.is_paused:
            os.kill(server.pid, signal.SIGCONT)
            server.is_paused = False

    def give_disks(self):
        """Gives each server a disk for its data. Call it as root, in a mount namespace, before the servers
        start. Raises RuntimeError if that is not possible."""
        try:
            for server in self.servers:
                server.disk = Disk(f"{server.directory}/data", self._reaper)
                server.write_number()
        except RuntimeError:
            self.remove_disks()
            raise

    def remove_disks(self, keep=False):
        for server in self.servers:
            if server.disk is not None:
                server.disk.unmount(keep)
                server.disk = None

    def use_up_disk(self, server):
        """Writes until the server whose disk is full stops serving, or has needed more than the space that
        it had reserved."""
        with (contextlib.suppress(KazooException, KazooTimeoutError), self.client(server) as client):
            path = client.create_async("/filler-", sequence=True).get(timeout=5)
            for _ in range(2 * (_PREALLOCATED_KIB << 10) // _PIECE + 1):
                client.set_async(path, bytes(_PIECE)).get(timeout=5)
            client.delete_async(path).get(timeout=5)

    def remove_member(self, server):
        self._reconfigure(server, leaving=str(server.number))

    def add_member(self, server):
        """Restarts the server as a new member, but with its data."""
        self.end(server)
        self.repair(server)
        for path in glob.glob(f"{server.directory}/zoo.cfg*"):
            os.unlink(path)
        server.configure()
        self.start(server)
        self.await_modes(all, 30)
        self._reconfigure(server, joining=server.member())

    def _reconfigure(self, server, joining=None, leaving=None):
        deadline = time.monotonic() + 90
        with self.client(server, auth_data=[("digest", _SUPER)]) as client:
            while True:
                try:
                    client.reconfig_async(joining, leaving, None, -1).get(timeout=30)
                    return
                except (KazooException, KazooTimeoutError):
                    # The reply may be lost with the leader that the change removes. Repeating the
                    # change does no harm.
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.5)

    def restart_one_by_one(self, **settings):
        """Applies settings of Server.configure(). Returns False if the servers do not recover."""
        for server in self.servers:
            self.end(server, signal.SIGTERM)
            server.configure(**settings)
            if not self.make_whole():
                return False
        return True

    @contextlib.contextmanager
    def client(self, without=None, **options):
        """Returns a kazoo client for all servers, or for all but `without`."""
        hosts = ",".join(f"{address}:{port}" for address, port in
                         (server.address for server in self.servers if server is not without))
        client = KazooClient(hosts=hosts, timeout=10, **options)
        client.start(timeout=30)
        try:
            yield client
        finally:
            client.stop()
            client.close()

    def days_ahead(self):
        """Returns by how many days the clock that stamps transactions is ahead."""
        with self.client() as client:
            path = client.create("/clock-", ephemeral=True, sequence=True)
            return histories.days_ahead(client.get(path)[1].created - time.time())

    def set_all_clocks_right(self):
        """Corrects all clocks. Returns False if transactions are stamped with a wrong time afterwards."""
        for server in self.servers:
            server.clock.set(0)
        return self.days_ahead() == 0

    def reservations(self, locks, older_than):
        """Returns the IDs of the reservations of `locks` that expire, and that were made more than
        `older_than` seconds ago or are dated in the future."""
        found = set()
        with self.client() as client:
            for queue in [*locks, *(f"{lock}/leases" for lock in locks)]:
                for name in client.get_children(queue) if client.exists(queue) else []:
                    with contextlib.suppress(NoNodeError):
                        data, stat = client.get(f"{queue}/{name}")
                        age = time.time() - stat.created
                        if stat.owner_session_id is None and b"reservation" in data and not (
                                0 <= age <= older_than):
                            reservation = json.loads(data)["reservation"]
                            found |= {reservation["id"]} if "for" in reservation else set()
        return found

    def forget_runs_of_tomorrow(self, below):
        """Deletes recorded successes that are dated in the future, because --min-interval would
        read them. Skips LOCKs that also keep a history, whose holder expects to be the only
        writer."""
        with self.client() as client:
            for lock in client.get_children(below):
                path = f"{below}/{lock}/last-run"
                while client.exists(path) is not None:
                    data, stat = client.get(path)
                    success = re.fullmatch(rb"zklock/1 (\d+) [^\n]*", data)
                    if not success or int(success[1]) / 1000 < time.time() + histories.DAY / 2:
                        break
                    with contextlib.suppress(BadVersionError):
                        client.set(path, b"", version=stat.version)

    def leader(self):
        for server in self.servers:
            if server.mode() == "leader":
                return server
        return None

    def followers(self):
        return [server for server in self.servers if server.mode() == "follower"]

    def make_whole(self):
        """Starts and resumes servers until all serve. Returns False if they do not in time."""
        if self._start_all(60.0):
            return True
        # A server of ZooKeeper 3.8.0 whose thread has died, after a change of leaders or on a full disk,
        # stays but serves nobody.
        for server in self.servers:
            if not server.gives_sessions():
                self.end(server)
        return self._start_all(120.0)

    def _start_all(self, patience):
        deadline = time.monotonic() + patience
        down = [server for server in self.servers if server.pid is None]
        damaged = [server for server in down if server.damage()]
        for server in self.servers:
            if server in down and server not in damaged:
                self.start(server)
            self.resume(server)
        if damaged and len(damaged) < len(self.servers) / 2:
            self.await_modes(_has_quorum, patience)
        for server in damaged:
            self.repair(server)
            self.start(server)
        if not self.await_modes(lambda modes: all(modes) and "leader" in modes, patience):
            return False
        while not all(server.gives_sessions() for server in self.servers):
            if time.monotonic() > deadline:
                return False
        return True

    def repair(self, server):
        """Makes a server with a damaged log start without data. A follower of ZooKeeper 3.8.0 that loses its
        leader and joins again can write transactions to its log twice, out of order, or not at all
        (ZOOKEEPER-4712). With that log it would start with data that differs from that of the others. The
        process of `server` must have ended."""
        found = server.damage()
        if found and _has_quorum([one.mode() for one in self.servers]):
            print(f"           {server.name} logged {found[1]:x} after {found[0]:x}: it starts without data",
                  flush=True)
            server.put_data_away()

    def await_modes(self, are_right, patience):
        deadline = time.monotonic() + patience
        while not are_right([server.mode() for server in self.servers]):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def elect(self, wanted):
        """Tries to make `wanted` the leader; all others run again afterwards. Servers elect the one
        with the latest transaction, or the highest number if several have it. Returns False if
        another won."""
        leader = self.leader()
        if leader is None or leader is wanted:
            return leader is wanted
        other = next(s for s in self.servers if s is not leader and s is not wanted)
        if wanted.number < other.number:
            # Writes something while the other is away, and brings it back when the leader is
            # killed.
            self.end(other)
            self.repair(other)
            seen, deadline = wanted.zxid(), time.monotonic() + 5
            while wanted.zxid() <= seen + 2 and time.monotonic() < deadline:
                time.sleep(0.02)
        self.end(leader)
        if other.pid is None:
            self.start(other)
        self.await_modes(lambda modes: "leader" in modes, 30)
        won = wanted.mode() == "leader"
        self.repair(leader)
        self.start(leader)
        return won
