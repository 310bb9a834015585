"""The servers to measure against: ZooKeeper (through scripts/zookeeper) and etcd."""

import os
import re
import shutil
import socket
import subprocess
import tempfile
import time

_PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


class ZooKeeper:
    """A server or an ensemble. Leaving the `with` removes it."""

    def __init__(self, size=1, preload=None, options=()):
        self._directory = tempfile.mkdtemp(prefix="zklock-bench-")
        self._environment = {**os.environ, "ZKLOCK_ZOOKEEPER_DIR": self._directory}
        self.size, self._preload, self._options = size, preload, options
        self.servers = None

    def __enter__(self):
        environment = dict(self._environment)
        if self._preload:
            environment["LD_PRELOAD"] = self._preload
        words = ["start"] if self.size == 1 else ["ensemble", str(self.size)]
        # Allows session timeouts of 60 s, which some peers request.
        self.servers = subprocess.run(
            [f"{_PROJECT}/scripts/zookeeper", *words, "--max-session", "60000",
             *self._options], check=True, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True).stdout.strip()
        return self

    def __exit__(self, *_):
        subprocess.run([f"{_PROJECT}/scripts/zookeeper", "remove"], env=self._environment,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(self._directory, ignore_errors=True)

    def ask(self, word, server=0):
        host, port = self.servers.split(",")[server].split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(word.encode())
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
        return answer.decode()

    def pids(self):
        found = []
        for member in range(1, self.size + 1):
            with open(f"{self._directory}/{member}/pid") as file:
                found.append(int(file.read()))
        return found

    def counters(self, server=0):
        """The counters in mntr and srvr of one server (by default the first), by name."""
        found = {name: float(value) for name, value in
                 re.findall(r"^(zk_\w+)\t(-?[\d.]+)$", self.ask("mntr", server), re.MULTILINE)}
        found["zxid"] = int(re.search(r"^Zxid: (\w+)", self.ask("srvr", server), re.MULTILINE)[1], 16)
        return found

    def ephemerals(self):
        return int(self.counters()["zk_ephemerals_count"])


class Etcd:
    """One etcd server."""

    def __init__(self):
        self._directory = tempfile.mkdtemp(prefix="zklock-bench-")
        self._process = None
        self.environment = None

    def __enter__(self):
        client, peer = (f"http://127.0.0.1:{_free_port()}" for _ in range(2))
        self.environment = {"ETCDCTL_API": "3", "ETCDCTL_ENDPOINTS": client}
        self._process = subprocess.Popen(
            ["etcd", "--data-dir", f"{self._directory}/data", "--listen-client-urls", client,
             "--advertise-client-urls", client, "--listen-peer-urls", peer,
             "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while self._control("endpoint", "health").returncode != 0:
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError("etcd does not start")
            time.sleep(0.1)
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _control(self, *words, text=None):
        return subprocess.run(["etcdctl", *words], env={**os.environ, **self.environment},
                              input=text, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)

    def count(self, prefix):
        return self._control("get", prefix, "--prefix", "--keys-only").stdout.count(prefix)

    def fill(self, prefix, count):
        """Adds keys after those of all waiters."""
        for begin in range(0, count, 100):
            puts = "".join(f"put {prefix}f{number} x\n"
                           for number in range(begin, min(begin + 100, count)))
            self._control("txn", text=f"\n{puts}\n\n")

    def clear(self, prefix):
        self._control("del", prefix, "--prefix")
