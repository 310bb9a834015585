"""Reads the records that the commands have left (job.c), and finds those that ran at the same time and
the updates that were lost.

Pure: values in, values out. Times are seconds of CLOCK_BOOTTIME.
"""

import dataclasses
import struct

# job.c's struct Record. The first element of the array contains only the count of the others.
RECORD = struct.Struct("=14q16x")
HOLD_OFFSET = 6 * 8
_NONE, _ACCEPTED, REFUSED = 0, 1, 2


@dataclasses.dataclass
class Command:
    """One command under the lock. A time is None if the event did not occur."""
    number: int
    slot: int
    pid: int
    begin: float
    last: float  # last seen alive
    ended: float | None  # when it ended by itself
    token: int = 0
    read: int = 0  # the number in the file that it read; 0 if no command had written
    writing: float | None = None
    wrote: float | None = None
    store: int = _NONE
    store_read: int = 0
    store_writing: float | None = None
    store_wrote: float | None = None


def _moment(nanoseconds):
    return nanoseconds / 1e9 if nanoseconds else None


def parse(data, first=1):
    """The commands in an array of records, from the one with number `first` on. A command that has
    taken its element but not stamped it yet is left out."""
    count = RECORD.unpack_from(data)[0]
    found = []
    for number in range(first, min(count + 1, len(data) // RECORD.size)):
        (slot, pid, begin, last, ended, token, _, read, writing, wrote, store, store_read,
         store_writing, store_wrote) = RECORD.unpack_from(data, number * RECORD.size)
        if begin:
            found.append(Command(
                number, slot, pid, begin / 1e9, max(begin, last) / 1e9, _moment(ended), token, read,
                _moment(writing), _moment(wrote), store, store_read, _moment(store_writing),
                _moment(store_wrote)))
    return found


def overlaps(commands):
    """Yields (other, command) for each command that began while an earlier one was alive: `other` is
    whichever of these was seen alive last. A stopped command that never ran again counts as
    alive until it was stopped."""
    latest = None
    for command in sorted(commands, key=lambda one: one.begin):
        if latest is not None and latest.last >= command.begin:
            yield latest, command
        if latest is None or command.last > latest.last:
            latest = command


def lost_updates(commands, final):
    """The commands that wrote the file, but whose update is not in it at the end. Each wrote what it had
    read and its own change. So the file contains the updates of its last writer, of the one whose
    number that had read, and so on. `final`: the number in the file at the end."""
    return _lost(commands, final, lambda one: one.read, lambda one: (one.writing, one.wrote))


def lost_in_store(commands, final):
    """The same for the store with fencing."""
    return _lost(commands, final, lambda one: one.store_read,
                 lambda one: (one.store_writing, one.store_wrote))


def _lost(commands, final, read_by, times_of):
    by_number = {one.number: one for one in commands}
    kept, number = set(), final
    while number:
        if number in kept or number not in by_number:
            raise ValueError(f"command {number} is in the file, and cannot have written it")
        kept.add(number)
        number = read_by(by_number[number])
    # A command may have been killed after it wrote and before it recorded that.
    seen = {read_by(one) for one in commands}
    return [one for one in commands if one.number not in kept
            and (times_of(one)[1] is not None
                 or times_of(one)[0] is not None and one.number in seen)]


def refused(commands):
    return [one for one in commands if one.store == REFUSED]


def next_after(commands, moment, victim):
    """The next command except `victim` that began after `moment`; None if there was none."""
    return min((one for one in commands if one.begin > moment and one.number != victim),
               key=lambda one: one.begin, default=None)
