"""The links between hosts and servers. Each can be cut or delayed in either direction.

Run as a program, this is the network itself, in a separate process so that the driver cannot slow
the packets. If namespaces can be created, each node is a network namespace whose only way out is a
TUN device, and this process is the switch that connects them: a star that needs no bridge, packet
filter or queueing discipline in the kernel. Otherwise each link is a TCP proxy on the loopback
interface. A proxy cuts both directions at once, and accepts connections to a node that is cut off,
but stays silent.

    network.py namespaces NAME=ADDRESS...
    network.py proxies FROM>TO=LISTEN:TARGET...     (ports of 127.0.0.1)

It reports on standard output when it is ready, then executes lines from standard input,
`FROM TO cut` or `FROM TO MILLISECONDS` (the delay; 0 repairs the link), and answers each with
`done`.
"""

import asyncio
import ctypes
import fcntl
import heapq
import os
import select
import socket
import struct
import subprocess
import sys
import time

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x40000000
_TUNSETIFF = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000
_DIRECTOR = "director"  # the driver's own node, in the namespace where this process was started


class Links:
    """The driver's interface to the network. Owns its process."""

    def __init__(self, arguments):
        self._process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        line = self._process.stdout.readline().split()
        if not line or line[0] != "ready":
            raise RuntimeError("cannot create the network")
        self._namespaces = dict(word.split("=") for word in line[1:])
        self._not_whole = set()

    @property
    def pid(self):
        return self._process.pid

    def inside(self, node, command):
        """Returns the command line that runs `command` on a node."""
        if node not in self._namespaces:
            return command
        path = f"/proc/{self._process.pid}/fd/{self._namespaces[node]}"
        return ["nsenter", f"--net={path}", "--", *command]

    def cut(self, source, target):
        """Cuts one direction. Data in transit is lost too."""
        self._say(source, target, "cut")

    def delay(self, source, target, seconds):
        self._say(source, target, str(int(seconds * 1000)))

    def cut_both(self, one, other):
        self.cut(one, other)
        self.cut(other, one)

    def mend(self, source, target):
        self._say(source, target, "0")

    def mend_all(self):
        for source, target in sorted(self._not_whole):
            self.mend(source, target)

    def _say(self, source, target, what):
        print(source, target, what, file=self._process.stdin, flush=True)
        if self._process.stdout.readline() != "done\n":
            raise RuntimeError("the network process has ended")
        if what == "0":
            self._not_whole.discard((source, target))
        else:
            self._not_whole.add((source, target))


# --- the switch between namespaces ---------------------------------------------------------------


def _ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, stdout=subprocess.DEVNULL)


def _make_tun(address):
    """Creates a TUN device in the calling thread's namespace."""
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    fcntl.ioctl(tun, _TUNSETIFF, struct.pack("16sH22x", b"link", _IFF_TUN | _IFF_NO_PI))
    _ip("address", "add", f"{address}/24", "dev", "link")
    _ip("link", "set", "dev", "link", "up")
    _ip("link", "set", "dev", "lo", "up")
    return tun


class _Switch:
    def __init__(self, nodes):
        self._tuns = {}
        self._names = {}
        self._by_address = {}
        self._rules = {}  # (from, to): seconds of delay, or None if cut
        self._later = []  # a heap: due, number, from, to, packet
        self._number = 0
        self.namespaces = {}
        for name, address in nodes:
            if name != _DIRECTOR and _LIBC.unshare(_CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "unshare")
            tun = _make_tun(address)
            self._tuns[name] = tun
            self._names[tun] = name
            self._by_address[socket.inet_aton(address)] = name
            if name != _DIRECTOR:
                self.namespaces[name] = os.open("/proc/thread-self/ns/net", os.O_RDONLY)

    def run(self):
        poller = select.poll()
        for tun in self._names:
            poller.register(tun, select.POLLIN)
        poller.register(0, select.POLLIN)
        commands = b""
        while True:
            wait = max(0, self._later[0][0] - time.monotonic()) * 1000 if self._later else None
            for descriptor, _ in poller.poll(wait):
                if descriptor == 0:
                    more = os.read(0, 65536)
                    if not more:
                        return
                    *lines, commands = (commands + more).split(b"\n")
                    for line in lines:
                        self._obey(*line.decode().split())
                else:
                    self._take(descriptor)
            while self._later and self._later[0][0] <= time.monotonic():
                _, _, source, target, packet = heapq.heappop(self._later)
                if self._rules.get((source, target), 0) is not None:
                    self._give(target, packet)

    def _obey(self, source, target, what):
        self._rules[source, target] = None if what == "cut" else int(what) / 1000
        print("done", flush=True)

    def _take(self, descriptor):
        source = self._names[descriptor]
        for _ in range(64):
            try:
                packet = os.read(descriptor, 65536)
            except BlockingIOError:
                return
            if packet[0] >> 4 != 4:
                continue
            target = self._by_address.get(packet[16:20])
            delay = self._rules.get((source, target), 0)
            if target is None or delay is None:
                continue
            if delay == 0:
                self._give(target, packet)
            else:
                self._number += 1
                entry = (time.monotonic() + delay, self._number, source, target, packet)
                heapq.heappush(self._later, entry)

    def _give(self, target, packet):
        try:
            os.write(self._tuns[target], packet)
        except OSError:
            pass  # a full queue drops packets


def _run_namespaces(nodes):
    switch = _Switch([node.split("=") for node in nodes])
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -5)
    except PermissionError:
        pass
    print("ready", *(f"{name}={fd}" for name, fd in switch.namespaces.items()), flush=True)
    switch.run()


# --- proxies -------------------------------------------------------------------------------------


class _Proxies:
    def __init__(self):
        self._rules = {}
        self._changed = asyncio.Condition()

    async def listen(self, source, target, listen, port):
        async def serve(reader, writer):
            try:
                away = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                writer.transport.abort()
                return
            await asyncio.gather(self._pump(source, target, reader, away[1]),
                                 self._pump(target, source, away[0], writer))

        await asyncio.start_server(serve, "127.0.0.1", listen)

    async def _pump(self, source, target, reader, writer):
        try:
            while True:
                data = await reader.read(65536)
                await asyncio.sleep(self._rules.get((source, target)) or 0)
                async with self._changed:
                    await self._changed.wait_for(
                        lambda: self._rules.get((source, target), 0) is not None)
                if not data:
                    break
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        # When one side ends, the whole connection ends: no program here half-closes.
        writer.close()

    async def obey(self):
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            source, target, what = line.decode().split()
            async with self._changed:
                self._rules[source, target] = None if what == "cut" else int(what) / 1000
                self._changed.notify_all()
            print("done", flush=True)


async def _run_proxies(links):
    proxies = _Proxies()
    for link in links:
        nodes, ports = link.split("=")
        source, target = nodes.split(">")
        listen, port = ports.split(":")
        await proxies.listen(source, target, int(listen), int(port))
    print("ready", flush=True)
    await proxies.obey()


if __name__ == "__main__":
    if sys.argv[1] == "namespaces":
        _run_namespaces(sys.argv[2:])
    else:
        asyncio.run(_run_proxies(sys.argv[2:]))
