"""Violations planted in the records of a run are counted, for the right fault, and determine the
status."""

import contextlib
import io
import json
import os
import struct
import sys
import tempfile
import unittest

sys.path.insert(1, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "faults"))

# pylint: disable=wrong-import-position
import outcome
import updates


def record(slot, begin, last, read, *, ended=True, token=0, store=0):
    """A command that wrote just before its end. Times are in seconds."""
    def ns(seconds):
        return int(seconds * 1e9)
    wrote = ns(last) - 1000 if ended else 0
    return updates.RECORD.pack(slot, 100, ns(begin), ns(last), ns(last) * ended, token, 0, read,
                               wrote, wrote, store, 0, 0, 0)


class Outcomes(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def keep(self, word, records, final, *faults, stalls=0):
        """Keeps records as compare.py does. `faults`: (name, begin, number of the victim)."""
        path = f"{self.directory}/{word}"
        os.makedirs(path)
        with open(f"{path}/records", "wb") as file:
            file.write(updates.RECORD.pack(len(records), *[0] * 13) + b"".join(records))
        for name, numbers in (("data", [final]), ("store", [0, 0])):
            with open(f"{path}/{name}", "wb") as file:
                file.write(struct.pack(f"={len(numbers)}q", *numbers))
        with open(f"{path}/faults.json", "w") as file:
            json.dump({"tool": word, "title": word, "token": False, "notes": [], "stalls": stalls, "made": [
                {"name": name, "begin": begin, "victim": victim} for name, begin, victim in faults]}, file)
        with open(f"{self.directory}/run.json", "w") as file:
            json.dump({"seed": 1, "timeout": 10, "tools": [word], "machine": "one", "command": "c"}, file)
        return outcome.read(path)

    def status(self):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            status = outcome.write(self.directory, f"{self.directory}/out")
        return status, printed.getvalue()

    # 1, then 2, which is struck and keeps running until 9; 3 runs in the meantime.
    OVERLAP = [record(0, 1, 2, 0), record(1, 3, 9, 1), record(2, 5, 6, 1)]

    def test_an_overlap_and_a_lost_update_count_for_the_last_fault_before_them(self):
        one = self.keep("zklock", self.OVERLAP, 2, ("kill_command", 1.5, 1), ("cut_host", 4, 2))
        self.assertEqual((one.rows["cut_host"].overlapping, one.rows["cut_host"].lost), (1, 1))
        self.assertEqual((one.rows["kill_command"].overlapping, one.rows["kill_command"].lost), (0, 0))
        self.assertEqual(one.rows["cut_host"].nexts, [1])

    def test_they_break_the_promise_of_zklock(self):
        self.keep("zklock", self.OVERLAP, 2, ("cut_host", 4, 2))
        self.assertEqual(self.status()[0], 1)

    def test_so_does_a_lock_that_is_not_handed_on_any_more(self):
        self.keep("zklock", [record(0, 1, 2, 0)], 1, stalls=1)
        self.assertEqual(self.status()[0], 1)
        self.keep("etcdctl", [record(0, 1, 2, 0)], 1, stalls=1)
        self.assertEqual(self.status()[0], 0)

    def test_before_the_first_fault_too(self):
        self.keep("zklock", self.OVERLAP, 2)
        self.assertEqual(self.status()[0], 1)

    def test_not_on_a_frozen_host_for_which_it_promises_nothing(self):
        self.keep("zklock", self.OVERLAP, 2, ("freeze_host", 4, 2))
        self.assertEqual(self.status()[0], 0)

    def test_not_that_of_another_tool_but_its_table_and_picture_show_them(self):
        self.keep("etcdctl", self.OVERLAP, 2, ("cut_host", 4, 2))
        status, printed = self.status()
        self.assertEqual(status, 0)
        self.assertRegex(printed, r"host cut off from the servers +1, 1, 1\.0 s")
        with open(f"{self.directory}/out/compare.svg") as file:
            self.assertIn(outcome.BROKEN, file.read())

    def test_a_run_without_fault_is_clean(self):
        self.keep("zklock", [record(0, 1, 2, 0), record(1, 3, 4, 1)], 2, ("kill_server", 3.5, 2))
        self.assertEqual(self.status()[0], 0)
        with open(f"{self.directory}/out/compare.svg") as file:
            self.assertNotIn(outcome.BROKEN, file.read())

    def test_where_the_holder_is_whole_the_next_counts_from_the_end_of_its_command(self):
        one = self.keep("kazoo", [record(0, 1, 7, 0), record(1, 8, 9, 1)], 2, ("kill_leader", 2, 1))
        self.assertEqual(one.rows["kill_leader"].nexts, [1])
        self.assertEqual(one.rows["kill_leader"].ended, 0)

    def test_a_command_that_ended_although_a_majority_served(self):
        one = self.keep("kazoo", [record(0, 1, 3, 0, ended=False), record(1, 8, 9, 0)], 2,
                        ("kill_leader", 2, 1))
        self.assertEqual(one.rows["kill_leader"].nexts, [6])
        self.assertEqual(one.rows["kill_leader"].ended, 1)


if __name__ == "__main__":
    unittest.main()
