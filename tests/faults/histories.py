"""The evidence after a run: the commands' own records and the servers' transaction logs."""

import dataclasses
import json
import os
import struct
import time
import zlib

# recorder.c's struct Record.
_SLOTS, _SIZE = 4, 4096
_SLOT = struct.Struct("=5q")
_TEXT = 16 + _SLOTS * _SLOT.size


# Servers' clocks are wrong by whole days, and no run lasts half a day, so each timestamp shows by
# how many days the clock of its server was wrong.
DAY = 86_400


class Clock:
    """A separate time of day for programs that run with variables(). `path`: the file from which
    skewed_clock.c reads it."""

    def __init__(self, path):
        self._path = os.path.abspath(path)
        with open(path, "wb") as file:
            file.truncate(8)
        os.chmod(path, 0o644)  # some contenders run as another user

    def variables(self, library):
        """Returns the environment of a program with this clock. `library`: the path of skewed_clock.c, compiled."""
        return {"LD_PRELOAD": library, "SKEW_FILE": self._path}

    def set(self, days):
        """Sets it `days` days ahead of the true time."""
        with open(self._path, "r+b", buffering=0) as file:
            file.write(struct.pack("=q", days * DAY))


def days_ahead(seconds):
    """Returns how many days ahead a clock is if it shows `seconds` more than the true time."""
    return round(seconds / DAY)


def now():
    """Returns CLOCK_BOOTTIME in seconds, the clock for all times here."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _clock_difference():
    """Returns the maximum error of the second value, and how far time.time() is ahead of now()."""
    before, wall, after = now(), time.time(), now()
    return after - before, wall - (before + after) / 2


@dataclasses.dataclass
class Life:
    """The stamps left by one process of a command, in seconds of CLOCK_BOOTTIME."""
    pid: int
    begin: float
    last: float  # last seen alive
    ended: float | None  # when it ended by itself
    hard: bool = False  # hard to find or to signal: recorder.c's last slot
    status: int = 0  # its exit status then


@dataclasses.dataclass
class Record:
    """The record of one command. The first life is that of its main process."""
    lives: list
    lock: str
    mode: str
    token: int
    node: str
    further: list = dataclasses.field(default_factory=list)  # for a set: one for each other LOCK


class RecordFile:
    """The file in which one command leaves its stamps."""

    def __init__(self, path):
        self.path = path
        with open(path, "wb") as file:
            file.truncate(_SIZE)
        os.chmod(path, 0o666)  # some commands run as another user

    def hold_until(self, moment):
        with open(self.path, "r+b", buffering=0) as file:
            file.write(struct.pack("=q", int(moment * 1e9)))

    def finish(self):
        """Ends the processes that have survived the main one."""
        with open(self.path, "r+b", buffering=0) as file:
            file.seek(8)
            file.write(struct.pack("=q", int(now() * 1e9)))

    def read(self):
        """Returns the record, or None if the command has not begun."""
        with open(self.path, "rb", buffering=0) as file:
            data = file.read(_SIZE)
        lives = []
        for index in range(_SLOTS):
            pid, begin, last, ended, status = _SLOT.unpack_from(data, 16 + index * _SLOT.size)
            if begin:
                lives.append(Life(pid, begin / 1e9, max(begin, last) / 1e9,
                                  ended / 1e9 if ended else None, index == _SLOTS - 1, status))
        if not lives:
            return None
        lines = data[_TEXT:data.index(b"\0", _TEXT)].decode().split("\n")[:4]
        # Each has one word for each LOCK.
        first, *further = [Record(lives, lock, mode, int(token), node) for lock, mode, token, node
                           in zip(*(line.split(" ") for line in lines), strict=True)]
        return dataclasses.replace(first, further=further)


# --- transaction logs ----------------------------------------------------------------------------

_STAMP = "/zklock-clock-"  # in the names of znodes that one transaction creates and deletes
_CREATES = {1, 15, 19, 21}
_DELETES = {2, 20}
_CLOSE_SESSION, _MULTI, _ERROR = -11, 14, -1
_HEADER = struct.Struct(">qiqqi")  # session, request, zxid, time, type


@dataclasses.dataclass
class Znode:
    """The life of one contender's znode, from the transaction that created it to the one that
    deleted it. The life of a reservation begins with its contender."""
    path: str
    token: int
    session: int  # the session that created it
    created: float
    removed: float | None = None
    expired: bool = False  # deleted because its session expired
    closed: bool = False  # deleted because its session was closed
    failed: bool = False  # a transaction of its session failed while it was there
    reserved: float | None = None  # when it was converted to a reservation
    reservation: dict | None = None  # what its data says about that
    clock: int = 0  # by how many days the servers' clock was ahead when it was created
    # Likewise for a reservation: the value when it was made, and all values from then on. A waiter
    # takes the time from its own contender, which may be older.
    reserved_clock: int = 0
    clocks: set = dataclasses.field(default_factory=set)
    label: str = ""  # of the contender


class ServerHistory:
    """The log of a quorum of servers, in CLOCK_BOOTTIME, however wrong the servers' clocks were. The
    servers truncate times to milliseconds, so a time here is never too late: when the leader
    received the request, or found that the session had expired."""

    def __init__(self, znodes):
        # The contenders that one transaction creates in several queues have the same token.
        self.znodes = {(znode.token, znode.path): znode for znode in znodes}

    def of(self, record):
        """Returns the contender that a command's record names, or None."""
        return self.znodes.get((record.token, record.node))

    def leftovers(self):
        return [znode for znode in self.znodes.values() if znode.removed is None]

    @classmethod
    def read(cls, servers_logs, below):
        """Reads the ephemeral znodes below `below`. `servers_logs`: the log files of each server."""
        counts, records = {}, {}
        for logs in servers_logs:
            own = {}
            for path in logs:
                with open(path, "rb") as file:
                    own.update(read_log(file.read()))
            for zxid, payload in own.items():
                counts[zxid, payload] = counts.get((zxid, payload), 0) + 1
                records.setdefault(zxid, set()).add(payload)
        # Committed means stored by a majority; a server that was cut off may have written more.
        majority = len(servers_logs) // 2 + 1
        committed = [(zxid, payload) for zxid, payloads in sorted(records.items())
                     for payload in payloads if counts[zxid, payload] >= majority]
        shift = min(_clock_difference() for _ in range(5))[1]
        return cls(_replay((payload for _, payload in committed), below, shift))


def damage(zxids, snapshot):
    """Returns the first fault in a log after `snapshot`, where a server begins to read it: two adjacent zxids that
    must not be adjacent. Returns None if the log is intact."""
    previous = None
    for zxid in zxids:
        if previous is None:
            previous = zxid if zxid >= snapshot else None
            continue
        # The upper half of a zxid is the epoch; within an epoch, zxids are consecutive.
        if zxid != previous + 1 and not (zxid >> 32 > previous >> 32 and zxid & 0xffffffff == 1):
            return previous, zxid
        previous = zxid
    return None


def read_log(data):
    """Yields the entries of one log file, as (zxid, bytes of the transaction)."""
    for begin, end in log_entries(data):
        payload = data[begin + 12:end - 1]
        yield _HEADER.unpack_from(payload)[2], payload


def log_entries(data):
    """Yields where the entries begin and end, including their length, checksum and end mark."""
    if data[:4] != b"ZKLG":
        return
    at = 16
    while at + 12 <= len(data):
        checksum, length = struct.unpack_from(">qi", data, at)
        payload = data[at + 12:at + 12 + length]
        # Zeros are preallocated space; a truncated entry is from a server that was killed while
        # writing.
        if length <= 0 or len(payload) < length or zlib.adler32(payload) != checksum:
            return
        yield at, at + 12 + length + 1
        at += 12 + length + 1


def _string(data, at):
    length = struct.unpack_from(">i", data, at)[0]
    return data[at + 4:at + 4 + max(length, 0)].decode(errors="replace"), at + 4 + max(length, 0)


def _label(content):
    """Returns the label in a contender's data; empty if there is none, or if the data are not zklock's."""
    try:
        return json.loads(content).get("label", "")
    except (ValueError, AttributeError):
        return ""


def _replay(payloads, below, shift):
    znodes, alive, of_session = [], {}, {}
    deleted = {}  # by the transaction that is replayed
    end = now()
    days = 0

    def remove(path, moment, expired=False, closed=False):
        znode = alive.pop(path, None)
        if znode is not None:
            znode.removed, znode.expired, znode.closed = moment, expired, closed
            deleted[path] = znode

    def apply(kind, data, session, zxid, moment):
        if kind in _CREATES:
            path, at = _string(data, 0)
            if not path.startswith(below) or _STAMP in path:
                return
            length = max(struct.unpack_from(">i", data, at)[0], 0)
            content = data[at + 4:at + 4 + length]
            at += 4 + length
            entries = struct.unpack_from(">i", data, at)[0]
            at += 4
            for _ in range(entries):  # its ACL: permissions, scheme, id
                at = _string(data, _string(data, at + 4)[1])[1]
            if kind in (1, 15) and data[at]:
                znode = Znode(path, zxid, session, moment, clock=days, label=_label(content))
                znodes.append(znode)
                alive[path] = znode
                of_session.setdefault(session, []).append(path)
            elif path in deleted:
                # A conversion: one transaction deletes the contender and creates it anew.
                znode = deleted.pop(path)
                znode.removed, znode.reserved = None, moment
                znode.reservation = json.loads(content)["reservation"]
                znode.reserved_clock = days
                znode.clocks = {days, *(
                    other.clock for other in alive.values()
                    if other.path.rsplit("/", 1)[0] == path.rsplit("/", 1)[0])}
                alive[path] = znode
        elif kind in _DELETES:
            remove(_string(data, 0)[0], moment)

    for payload in payloads:
        session, request, zxid, milliseconds, kind = _HEADER.unpack_from(payload)
        moment = milliseconds / 1000 - shift
        days = days_ahead(moment - end)
        moment -= days * DAY
        for znode in alive.values():
            if znode.reservation is not None:
                znode.clocks.add(days)
        data = payload[_HEADER.size:]
        deleted.clear()
        if kind == _CLOSE_SESSION:
            for path in of_session.pop(session, []):
                # The path may belong to another session's znode by now (--dialect simple).
                if path in alive and alive[path].session == session and alive[path].reserved is None:
                    # Requests made by the servers themselves have no number.
                    remove(path, moment, expired=request == 0, closed=request != 0)
        elif kind == _MULTI:
            parts, at = [], 4
            for _ in range(struct.unpack_from(">i", data)[0]):
                part, length = struct.unpack_from(">ii", data, at)
                parts.append((part, data[at + 8:at + 8 + length]))
                at += 8 + max(length, 0)
            # If one part failed, the servers apply none, but the log has those before it.
            if all(part != _ERROR for part, _ in parts):
                for part, content in parts:
                    apply(part, content, session, zxid, moment)
            else:
                for path in of_session.get(session, []):
                    if path in alive:
                        alive[path].failed = True
        else:
            apply(kind, data, session, zxid, moment)
    return znodes
