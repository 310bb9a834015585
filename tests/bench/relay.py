"""A relay between one client and its server that counts requests and bytes."""

import select
import socket
import struct
import threading

_PING = 11


class Relay:
    """Serves one connection. counts(): (requests, bytes of replies) so far, without pings."""

    def __init__(self, host, port):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._server = (host, port)
        self._lock = threading.Lock()
        self._requests = self._bytes = 0
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
                if not data:
                    client.close()
                    server.close()
                    return
                (server if one is client else client).sendall(data)
                for frame in frames[one].feed(data):
                    self._count(frame, one is client)

    def _count(self, frame, is_request):
        with self._lock:
            if is_request:
                self._requests += len(frame) < 8 or struct.unpack(">i", frame[4:8])[0] != _PING
            elif struct.unpack(">i", frame[:4])[0] != -2:  # the xid of pings
                self._bytes += 4 + len(frame)


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
