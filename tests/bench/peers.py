"""Programs that run a command under a lock: zklock, the floor, and its peers. Each defines its
command line, and counts its contenders for a lock."""

import os
import re
import shutil
import subprocess


class Peer:
    """`word` names it in arguments and results, `title` in tables."""

    word = title = None
    most_real = 40  # real processes in a queue; all others are entries without a process
    environment = {}

    def run(self, lock, command, timeout=None):
        """argv of a run. `timeout`: the session timeout in seconds, if the peer has an option."""
        raise NotImplementedError

    def waiting(self, lock):
        """How many hold or queue for that lock, including filled entries."""
        raise NotImplementedError

    def fill(self, lock, count):
        """Appends `count` entries to the queue. Returns a function that removes them."""
        raise NotImplementedError


class _OnZooKeeper(Peer):
    dialect = "curator"

    def __init__(self, zookeeper, tools):
        self.zookeeper, self.tools = zookeeper, tools
        self.servers = zookeeper.servers

    def waiting(self, lock):
        return self.zookeeper.ephemerals()

    def fill(self, lock, count):
        filler = subprocess.Popen(
            [f"{self.tools}/bench_crowd", "fill", self.servers, lock, str(count), self.dialect],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if filler.stdout.readline() != "ready\n":
            raise RuntimeError("bench_crowd did not fill the queue")

        def undo():
            filler.stdin.close()
            filler.wait()
        return undo


class Zklock(_OnZooKeeper):
    word = title = "zklock"

    def run(self, lock, command, timeout=None):
        words = [] if timeout is None else ["--session-timeout", f"{timeout}s"]
        return [f"{self.tools}/zklock", "exclusive", "--servers", self.servers, *words, lock, "--",
                *command]


class Floor(_OnZooKeeper):
    word = title = "floor"
    options = []

    def run(self, lock, command, timeout=None):
        return [f"{self.tools}/bench_floor", *self.options, self.servers, lock, *command]


class GuardedFloor(Floor):
    word, title, options = "floor-guard", "floor with a guard", ["--guard"]


class Kazoo(_OnZooKeeper):
    word, title, dialect, most_real = "kazoo", "kazoo", "kazoo", 10
    _script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kazoo_lock.py")

    def run(self, lock, command, timeout=None):
        return ["/usr/bin/python3", self._script, self.servers, lock, *command]


class Curator(_OnZooKeeper):
    word, title, most_real = "curator", "Curator", 3
    _jars = ":".join(f"/usr/share/java/{name}.jar" for name in (
        "curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute",
        "guava", "failureaccess", "slf4j-api", "slf4j-nop"))

    def __init__(self, zookeeper, tools):
        super().__init__(zookeeper, tools)
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "CuratorLock.java")
        subprocess.run(["javac", "-cp", self._jars, "-d", f"{tools}/bench_curator", source],
                       check=True)

    def run(self, lock, command, timeout=None):
        return ["java", "-cp", f"{self._jars}:{self.tools}/bench_curator", "CuratorLock",
                self.servers, lock, *command]


class Flock(Peer):
    word, title, most_real = "flock", "flock(1)", 100

    def __init__(self, directory):
        self._directory = directory

    def _file(self, lock):
        return f"{self._directory}/{lock.replace('/', '_')}"

    def run(self, lock, command, timeout=None):
        return ["flock", self._file(lock), *command]

    def waiting(self, lock):
        if not os.path.exists(self._file(lock)):
            return 0
        inode = os.stat(self._file(lock)).st_ino
        with open("/proc/locks") as file:
            return len(re.findall(rf":{inode} ", file.read()))

    def fill(self, lock, count):
        raise NotImplementedError("only processes can queue for a flock")


class Etcdctl(Peer):
    word, title = "etcdctl", "etcdctl lock"

    def __init__(self, etcd):
        self._etcd = etcd
        self.environment = etcd.environment

    def run(self, lock, command, timeout=None):
        return ["etcdctl", "lock", lock, *command]

    def waiting(self, lock):
        return self._etcd.count(lock + "/")

    def fill(self, lock, count):
        self._etcd.fill(lock + "/", count)
        return lambda: self._etcd.clear(lock + "/f")


def missing(word):
    """The reason why that peer is not available, or None."""
    if word == "etcdctl" and not (shutil.which("etcd") and shutil.which("etcdctl")):
        return "etcd is not installed"
    if word == "kazoo" and subprocess.run(["/usr/bin/python3", "-c", "import kazoo"],
                                          stderr=subprocess.DEVNULL).returncode != 0:
        return "kazoo is not installed"
    if word == "curator" and not (shutil.which("javac")
                                  and os.path.exists("/usr/share/java/curator-recipes.jar")):
        return "a JDK or Curator is not installed"
    return None
