"""The analysis finds what was planted, and nothing else."""

import os
import struct
import subprocess
import tempfile
import time
import unittest

import updates
from updates import Command


def command(number, begin, last, read, **more):
    """A command that ended by itself, and wrote just before."""
    fields = {"slot": 1, "pid": 100 + number, "ended": last, "writing": last - 0.002,
              "wrote": last - 0.001, **more}
    return Command(number=number, begin=begin, last=last, read=read, **fields)


def numbers(commands):
    return sorted(one.number for one in commands)


def pairs(commands):
    return [(other.number, one.number) for other, one in updates.overlaps(commands)]


class Overlaps(unittest.TestCase):
    def test_one_after_the_other(self):
        self.assertEqual(pairs([command(1, 0, 1, 0), command(2, 1.1, 2, 1)]), [])

    def test_a_command_that_begins_before_the_last_stamp_of_another(self):
        self.assertEqual(pairs([command(2, 0.9, 2, 0), command(1, 0, 1, 0)]), [(1, 2)])

    def test_each_command_beside_a_long_one_counts(self):
        self.assertEqual(pairs([command(1, 0, 9, 0), command(2, 1, 2, 0), command(3, 3, 4, 2),
                                command(4, 10, 11, 1)]), [(1, 2), (1, 3)])

    def test_stopped_and_then_killed_is_not_alive_after_the_stop(self):
        stopped = command(1, 0, 1, 0, ended=None, writing=None, wrote=None)
        self.assertEqual(pairs([stopped, command(2, 5, 6, 0)]), [])

    def test_stopped_and_continued_is(self):
        self.assertEqual(pairs([command(1, 0, 7, 0), command(2, 5, 6, 0)]), [(1, 2)])


class LostUpdates(unittest.TestCase):
    def test_none_if_each_read_what_the_one_before_wrote(self):
        self.assertEqual(updates.lost_updates([command(n, n, n + 0.5, n - 1) for n in (1, 2, 3)], 3), [])

    def test_two_that_read_the_same(self):
        # 2 wrote, and 3 overwrote that.
        found = updates.lost_updates([command(1, 0, 1, 0), command(2, 2, 3, 1), command(3, 2, 4, 1)], 3)
        self.assertEqual(numbers(found), [2])

    def test_all_that_a_late_one_wrote_over(self):
        commands = [command(1, 0, 9, 0), *(command(n, n, n + 0.5, n - 1 if n > 2 else 0)
                                           for n in (2, 3, 4))]
        self.assertEqual(numbers(updates.lost_updates(commands, 1)), [2, 3, 4])

    def test_a_command_that_did_not_write_lost_nothing(self):
        idle = command(2, 2, 3, 1, ended=None, writing=None, wrote=None)
        self.assertEqual(updates.lost_updates([command(1, 0, 1, 0), idle], 1), [])

    def test_killed_while_writing_counts_only_if_another_saw_it(self):
        killed = command(2, 2, 3, 1, ended=None, wrote=None)
        first = command(1, 0, 1, 0)
        self.assertEqual(updates.lost_updates([first, killed], 1), [])
        self.assertEqual(numbers(updates.lost_updates(
            [first, killed, command(3, 4, 5, 2), command(4, 4, 6, 1)], 4)), [2, 3])

    def test_a_file_with_what_no_command_wrote_is_an_error(self):
        with self.assertRaises(ValueError):
            updates.lost_updates([command(1, 0, 1, 0)], 7)


class Next(unittest.TestCase):
    def test_the_first_that_begins_afterwards_but_not_the_victim(self):
        commands = [command(1, 0, 1, 0), command(2, 5, 6, 0), command(3, 3, 4, 0)]
        self.assertEqual(updates.next_after(commands, 2, 3).number, 2)
        self.assertIsNone(updates.next_after(commands, 5, None))


class Jobs(unittest.TestCase):
    """With the program itself: run without any lock, its updates must be seen to be lost."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        for name, size in (("records", 50 * updates.RECORD.size), ("data", 8), ("store", 16)):
            with open(f"{self.directory}/{name}", "wb") as file:
                file.truncate(size)

    def start(self, token):
        return subprocess.Popen([os.environ["ZKLOCK_COMPARE_JOB"], self.directory, "3", "1", "TOKEN"],
                                env={"TOKEN": str(token)})

    def hold_until(self, moment):
        """Keeps the first job from writing before `moment`, in ns of CLOCK_BOOTTIME."""
        with open(f"{self.directory}/records", "r+b", buffering=0) as file:
            file.seek(updates.RECORD.size + updates.HOLD_OFFSET)
            file.write(struct.pack("=q", moment))

    def run_all(self, *jobs):
        for job in jobs:
            self.assertEqual(job.wait(10), 0)

    def read(self, name, offset=0):
        with open(f"{self.directory}/{name}", "rb") as file:
            return struct.unpack_from("=q", file.read(), offset)[0]

    def commands(self):
        with open(f"{self.directory}/records", "rb") as file:
            return updates.parse(file.read())

    def test_one_after_the_other_loses_nothing(self):
        for token in (5, 6, 7):
            self.run_all(self.start(token))
        found = self.commands()
        self.assertEqual([one.number for one in found], [1, 2, 3])
        self.assertEqual([one.token for one in found], [5, 6, 7])
        self.assertEqual(pairs(found), [])
        self.assertEqual(updates.lost_updates(found, self.read("data")), [])
        self.assertEqual(updates.lost_in_store(found, self.read("store", 8)), [])
        self.assertEqual(updates.refused(found), [])

    def test_an_old_holder_overwrites_the_file_and_is_refused_by_the_store(self):
        self.hold_until(2 ** 63 - 1)
        old = self.start(5)
        while not any(one.last > one.begin for one in self.commands()):  # it has read
            time.sleep(0.001)
        self.run_all(self.start(6))
        self.assertIsNone(old.poll())
        self.hold_until(0)
        self.run_all(old)
        found = self.commands()
        self.assertEqual(pairs(found), [(1, 2)])
        self.assertEqual(numbers(updates.lost_updates(found, self.read("data"))), [2])
        self.assertEqual(numbers(updates.refused(found)), [1])
        self.assertEqual(updates.lost_in_store(found, self.read("store", 8)), [])


if __name__ == "__main__":
    unittest.main()
