"""Runs a command under a lock of kazoo: kazoo_lock.py SERVERS LOCK COMMAND [ARGUMENT...]"""

import os
import subprocess
import sys

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock


def main():
    servers, path, *command = sys.argv[1:]
    client = KazooClient(hosts=servers, timeout=10)
    client.start(timeout=30)
    lock = Lock(client, path)
    with lock:
        node = f"{path}/{lock.node}"
        status = subprocess.call(command, env={
            **os.environ, "ZKLOCK_LOCK": path, "ZKLOCK_MODE": "exclusive", "ZKLOCK_NODE": node,
            "ZKLOCK_TOKEN": str(client.exists(node).czxid)})
    client.stop()
    return status


if __name__ == "__main__":
    sys.exit(main())
