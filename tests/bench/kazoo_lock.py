"""Runs a command under kazoo's lock: kazoo_lock.py HOST:PORT LOCK COMMAND [ARG...]"""

import subprocess
import sys

from kazoo.client import KazooClient


def main():
    servers, lock, *command = sys.argv[1:]
    client = KazooClient(hosts=servers)
    client.start()
    with client.Lock(lock):
        status = subprocess.call(command)
    client.stop()
    client.close()
    return status


if __name__ == "__main__":
    sys.exit(main())
