"""Runs a command under a lock of kazoo, again and again: kazoo_jobs.py SERVERS TIMEOUT LOCK COMMAND [ARG...]

As kazoo's documentation advises, a listener watches the connection: while it is suspended or lost the
lock may have been lost, so the command is killed at once, and none is started."""

import random
import subprocess
import sys
import threading
import time

from kazoo.client import KazooClient, KazooState


class Jobs:
    def __init__(self, servers, timeout, path, command):
        self._path, self._command = path, command
        self._mutex = threading.Lock()
        self._process = None
        self._in_doubt = False
        self._client = KazooClient(hosts=servers, timeout=timeout)
        self._client.add_listener(self._on_state)
        self._client.start(timeout=60)

    def _on_state(self, state):
        if state != KazooState.CONNECTED:
            with self._mutex:
                self._in_doubt = True
                if self._process is not None:
                    self._process.kill()

    def run(self):
        while True:
            try:
                self._run_once()
            except Exception as error:  # pylint: disable=broad-except
                print("kazoo_jobs:", repr(error), file=sys.stderr, flush=True)
            time.sleep(random.uniform(0.05, 0.3))

    def _run_once(self):
        with self._mutex:
            self._in_doubt = False
        if not self._client.connected:
            return
        with self._client.Lock(self._path):
            with self._mutex:
                if self._in_doubt:
                    return  # since the lock was asked for
                self._process = subprocess.Popen(self._command)
            self._process.wait()
            with self._mutex:
                self._process = None


if __name__ == "__main__":
    Jobs(sys.argv[1], float(sys.argv[2]), sys.argv[3], sys.argv[4:]).run()
