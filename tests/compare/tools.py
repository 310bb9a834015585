"""The programs that are compared. Each class says how a job takes the lock with the program, on
which servers, and which process is the wrapper: it must not fail while the command runs."""

import os
import shutil
import signal
import subprocess
import threading
import time

from clusters import Disk, Etcd, ZooKeeper

_HERE = os.path.dirname(os.path.abspath(__file__))
_CURATOR_JARS = ":".join(f"/usr/share/java/{name}.jar" for name in (
    "curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute", "guava",
    "failureaccess", "slf4j-api", "slf4j-nop"))
_JAVA = ["java", "-Xmx48m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
         "-Dzookeeper.jmx.log4j.disable=true"]
_OF_SERVERS = {"kill_server", "kill_leader", "cut_host", "cut_to_servers", "cut_from_servers",
               "server_clocks", "membership"}


class Tool:
    """`site`: the hosts, links and programs of the run (compare.Site). `directory`: for its files."""

    word = title = None
    token = None  # the environment variable with its fencing token
    pause = (0.05, 0.3)  # seconds between two attempts of a job
    cluster = None
    tick = 2.0  # how much later than its timeout a lock may be released, in seconds
    cannot = frozenset()  # faults that cannot be made

    def __init__(self, site, directory):
        self.site, self.directory = site, directory
        os.makedirs(directory)
        self._make_cluster()

    @staticmethod
    def missing():
        """Why it cannot run on this machine, or None."""
        return None

    def start(self):
        """Returns False if its servers do not serve."""
        return self.make_whole()

    def _make_cluster(self):
        pass

    def span(self):
        """How long a fault must last to outlast the lock of a vanished holder, in seconds."""
        return self.site.timeout + self.tick + 4

    def run(self, host, job):
        """argv of an attempt, or of a program that makes one after another; the attempt runs `job`."""
        raise NotImplementedError

    def environment(self, host):
        """Variables in addition to the usual ones."""
        return self.site.clocks[host].variables(self.site.clock)

    def wrapper(self, slot):
        """The pid of the process that took the lock for that slot's command, or None."""
        return slot.pid

    def make_whole(self):
        """Repairs what a fault has left. Returns False if it cannot."""
        return self.cluster is None or self.cluster.make_whole()

    def disk(self, leader):
        """The disk of the server in charge."""
        return self.cluster.disks[leader]

    def end(self):
        if self.cluster is not None:
            self.cluster.end()

    def _servers(self):
        return ",".join(f"{address}:{self.cluster.client_port}" for address in self.site.addresses)


class _OnZooKeeper(Tool):
    def _make_cluster(self):
        self.cluster = ZooKeeper(self.directory, self.site.addresses, self.site.links, self.site.reaper,
                                 self.site.clock, int(self.tick * 1000))


class Zklock(_OnZooKeeper):
    word = title = "zklock"
    token = "ZKLOCK_TOKEN"

    def run(self, host, job):
        return [self.site.zklock, "exclusive", "--servers", self._servers(), "--session-timeout",
                f"{self.site.timeout}s", "/compare", "--", *job]


class Kazoo(_OnZooKeeper):
    word = "kazoo"
    title = "kazoo, a script"

    @staticmethod
    def missing():
        found = subprocess.run(["/usr/bin/python3", "-c", "import kazoo"], stderr=subprocess.DEVNULL)
        return "python3-kazoo is not installed" if found.returncode else None

    def run(self, host, job):
        return ["/usr/bin/python3", "-B", f"{_HERE}/kazoo_jobs.py", self._servers(),
                str(self.site.timeout), "/compare", *job]


class Curator(_OnZooKeeper):
    word = "curator"
    title = "Curator, a program"

    @staticmethod
    def missing():
        if not shutil.which("javac"):
            return "there is no JDK"
        return (None if os.path.exists("/usr/share/java/curator-recipes.jar")
                else "libcurator-recipes-java is not installed")

    def start(self):
        compile_it = ["javac", "-cp", _CURATOR_JARS, "-d", f"{self.directory}/classes",
                      f"{_HERE}/CuratorJobs.java"]
        if self.site.reaper.run(compile_it)[0] != 0:
            raise RuntimeError("CuratorJobs.java cannot be compiled")
        return super().start()

    def run(self, host, job):
        return [*_JAVA, "-cp", f"{_CURATOR_JARS}:{self.directory}/classes", "CuratorJobs",
                self._servers(), str(self.site.timeout), "/compare", *job]


class Etcdctl(Tool):
    word = "etcdctl"
    title = "etcdctl lock"
    token = "ETCD_LOCK_REV"
    cannot = {"client_clock", "server_clocks"}  # a Go program reads the clock without libc

    @staticmethod
    def missing():
        return None if shutil.which("etcd") and shutil.which("etcdctl") else "etcd is not installed"

    def _make_cluster(self):
        self.cluster = Etcd(self.directory, self.site.addresses, self.site.links, self.site.reaper)

    def run(self, host, job):
        return ["etcdctl", "--endpoints", self._servers(), "lock", "--ttl", str(self.site.timeout),
                "compare", *job]

    def environment(self, host):
        return {"ETCDCTL_API": "3"}


class Sanlock(Tool):
    """A daemon on each host keeps the leases in a file that all hosts share. The daemon is the wrapper: it
    would have to end the command, or its watchdog the host."""

    word = "sanlock"
    title = "sanlock, without its watchdog, which sanlock requires"
    pause = (0.2, 0.6)
    _io_timeout = 2
    cannot = _OF_SERVERS

    def __init__(self, site, directory):
        super().__init__(site, directory)
        self._disk = Disk(f"{directory}/disk", site.reaper)
        self._leases = f"{self._disk.path}/leases"
        self._daemons = {}  # host: pid

    @staticmethod
    def missing():
        return None if shutil.which("sanlock") else "sanlock is not installed"

    def span(self):
        # A host counts as dead once it has not renewed its lease for 8 times the I/O timeout, and
        # its watchdog has had 60 seconds to fire. The others see the last renewal late.
        return 8 * self._io_timeout + 60 + 14

    def start(self):
        with open(self._leases, "wb") as file:
            file.write(bytes(2 << 20))
        first = self.site.hosts[0]
        self._start_daemon(first)
        for what in (["-s", f"LS:0:{self._leases}:0"], ["-r", f"LS:R:{self._leases}:{1 << 20}"]):
            deadline = time.monotonic() + 60
            while self._client(first, "init", *what)[0] != 0:
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.2)  # until the daemon serves
        return self.make_whole()

    def make_whole(self):
        for host in self.site.hosts:
            if self._daemons.get(host) is None:
                self._start_daemon(host)
        time.sleep(1)
        deadline = time.monotonic() + 2 * self.span()
        while time.monotonic() < deadline:
            # A daemon that had lost its lease joins again. All joins wait in parallel.
            joins = [threading.Thread(target=self._join, args=(host,)) for host in self.site.hosts]
            for join in joins:
                join.start()
            for join in joins:
                join.join()
            if all(map(self._has_joined, self.site.hosts)):
                return True
            time.sleep(1)
        return False

    def _has_joined(self, host):
        _, status = self._client(host, "status")
        return any(line.startswith("s LS:") and len(line.split()) == 2 for line in status.split("\n"))

    def _start_daemon(self, host):
        os.makedirs(f"{self.directory}/{host}", exist_ok=True)
        command = self.site.on_host(host, [
            "setpriv", "--pdeathsig", "KILL", "sanlock", "daemon", "-D", "-w", "0", "-h", "0",
            "-U", "root", "-G", "root", "-e", host])

        def gone(_):
            if self._daemons.get(host) == process.pid:
                self._daemons[host] = None
        with open(f"{self.directory}/{host}.log", "ab") as log:
            process = self.site.reaper.spawn(command, gone, env=self._variables(host), stdout=log,
                                             stderr=log)
        self._daemons[host] = process.pid

    def _places(self, host):
        # Unprivileged: without real-time priority, which a container does not permit.
        return {"SANLOCK_RUN_DIR": f"{self.directory}/{host}", "SANLOCK_PRIVILEGED": "0"}

    def _variables(self, host):
        return {**os.environ, **self._places(host)}

    def _client(self, host, *words):
        return self.site.reaper.run(["sanlock", "client", *words], env=self._variables(host))

    def _join(self, host):
        number = self.site.hosts.index(host) + 1
        self._client(host, "add_lockspace", "-s", f"LS:{number}:{self._leases}:0",
                     "-o", str(self._io_timeout))

    def run(self, host, job):
        return ["sanlock", "client", "command", "-r", f"LS:R:{self._leases}:{1 << 20}", "-c", *job]

    def environment(self, host):
        return {**super().environment(host), **self._places(host)}

    def wrapper(self, slot):
        return self._daemons.get(slot.host)

    def disk(self, leader):
        return self._disk

    def end(self):
        for pid in self._daemons.values():
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.5)
        self._disk.unmount()


class Flock(Tool):
    word = "flock"
    title = "flock(1), a local file"
    cannot = _OF_SERVERS | {"slow_disk", "full_disk"}

    def run(self, host, job):
        return ["flock", f"{self.directory}/lock", *job]


class NoLock(Flock):
    """Shows that the comparison finds what it looks for."""

    word = "none"
    title = "no lock at all"

    def run(self, host, job):
        return job


DEFAULT = {one.word: one for one in (Zklock, Etcdctl, Kazoo, Curator, Sanlock, Flock)}
TOOLS = {**DEFAULT, NoLock.word: NoLock}
