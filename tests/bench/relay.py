"""A relay between one client and its server that counts requests, bytes and answered writes."""

import select
import socket
import struct
import threading
import time

_PING = 11
# create, delete, setData, multi, create2, createContainer, createTTL
_WRITES = {1, 2, 5, 14, 15, 19, 21}


class Relay:
    """Serves one connection. counts(): (requests, bytes of replies) so far, without pings."""

    def __init__(self, host, port):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._server = (host, port)
        self._lock = threading.Lock()
        self._requests = self._bytes = 0
        self._sent = {}      # xid -> time, of the writes that are not answered yet
        self._answered = []  # (time sent, time answered) of the others
        self._wake, self._end = socket.socketpair()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.close()
        self._thread.join()

    def counts(self):
        with self._lock:
            return self._requests, self._bytes

    def writes(self, begin, end):
        """How many writes were sent and answered between these times of CLOCK_MONOTONIC."""
        with self._lock:
            return sum(begin <= sent and answered <= end for sent, answered in self._answered)

    def _run(self):
        if self._listener not in select.select([self._listener, self._wake], [], [])[0]:
            return
        client, _ = self._listener.accept()
        server = socket.create_connection(self._server)
        for one in (client, server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        frames = {client: _Frames(), server: _Frames()}
        while True:
            ready = select.select([client, server, self._wake], [], [])[0]
            for one in ready:
                if one is self._wake:
                    return
                data = one.recv(65536)
                now = time.monotonic()
                if not data:
                    client.close()
                    server.close()
                    return
                (server if one is client else client).sendall(data)
                for frame in frames[one].feed(data):
                    self._count(frame, one is client, now)

    def _count(self, frame, is_request, now):
        xid, kind = struct.unpack(">ii", frame[:8])
        with self._lock:
            if is_request:
                # The connect request has no xid and no type; this counts it as a request.
                self._requests += kind != _PING
                if kind in _WRITES:
                    self._sent[xid] = now
            elif xid != -2:  # the xid of pings
                self._bytes += 4 + len(frame)
                if xid in self._sent:
                    self._answered.append((self._sent.pop(xid), now))


class _Frames:
    def __init__(self):
        self._buffer = b""

    def feed(self, data):
        self._buffer += data
        while len(self._buffer) >= 4:
            size = struct.unpack(">i", self._buffer[:4])[0]
            if len(self._buffer) < 4 + size:
                return
            yield self._buffer[4:4 + size]
            self._buffer = self._buffer[4 + size:]
