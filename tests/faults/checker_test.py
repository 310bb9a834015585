"""The checker finds the violations that it should find, and no others."""

import collections
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import zlib

import checker
import histories
import report
from checker import Run, Sent
from faults import Faults, Made
from histories import Life, Record, ServerHistory, Znode


def run(number, begin, last, token, *, mode="exclusive", lock="/l", ended=True, status=0,
        of_command=0, **more):
    lives = [Life(100 + number, begin, last, last if ended else None, status=of_command)]
    mark = "__READ__" if mode == "read" else "lock-"
    record = Record(lives, lock, mode, token, f"{lock}/host-{mark}{token:010}")
    return Run(number=number, host="h1", lock=lock, word=mode, timeout=5, spawned=begin - 1,
               label=f"contender-{number}", record=record, ended=last + 0.01, status=status, **more)


def idle(status, **more):
    """Returns a run whose command did not begin."""
    return Run(number=1, host="h1", lock="/l", word="exclusive", timeout=5, spawned=1, ended=2,
               status=status, **more)


def history(runs, removed=None):
    """Returns the history of servers that made no mistake."""
    removed = removed or {}
    return ServerHistory([Znode(one.record.node, one.record.token, 1, one.spawned,
                                removed.get(one.number, one.last() + 0.005), label=one.label)
                          for one in runs if one.record])


def contender(servers, token):
    """Returns the only contender with that token."""
    (found,) = (znode for znode in servers.znodes.values() if znode.token == token)
    return found


def add(servers, *znodes):
    servers.znodes.update(ServerHistory(znodes).znodes)


def kinds(violations):
    return sorted({violation.kind for violation in violations})


def no_trouble(begin, end):
    return False


class Variations(unittest.TestCase):
    def test_more_commands_than_permits_overlap(self):
        runs = [run(number, 10 + number, 20, number, permits=2) for number in (1, 2)]
        self.assertEqual([], checker.overlaps(runs) + checker.token_order(runs))
        runs.append(run(3, 19, 21, 3, permits=2))
        self.assertEqual(["overlap"], kinds(checker.overlaps(runs)))
        for taken, expected in ((2, []), (3, ["overlap"])):
            runs = [run(1, 10, 20, 1, permits=3), run(2, 11, 20, 2, permits=3, take=taken)]
            self.assertEqual(expected, kinds(checker.overlaps(runs)))

    def test_the_permits_of_a_run_have_one_life(self):
        def found(*, take=2, removed=20.0, reserved=None, token=7, closed=False):
            one = run(1, 10, 19, 7, permits=3, take=take)
            return kinds(checker.torn([one], ServerHistory([
                Znode("/l/leases/x-lease-1", 7, 1, 9.5, 20.0, label=one.label),
                Znode("/l/leases/x-lease-2", token, 1, 9.5, removed, reserved=reserved,
                      closed=closed, label=one.label),
                Znode("/l/locks/x-lock-1", 6, 1, 9, 10, label=one.label)])))
        self.assertEqual([], found())
        self.assertEqual(["torn"], found(take=3))
        self.assertEqual(["torn"], found(removed=20.001))
        self.assertEqual(["torn"], found(removed=None))
        self.assertEqual(["torn"], found(closed=True))  # the other was deleted
        self.assertEqual(["torn"], found(reserved=15.0))
        self.assertEqual(["torn"], found(token=8))

    def test_a_set_overlaps_on_each_of_its_locks(self):
        both = run(1, 10, 20, 100)
        both.record.further.append(run(1, 10, 20, 101, lock="/m").record)
        self.assertEqual([], checker.overlaps([both]))
        for lock in ("/l", "/m"):
            other = run(2, 15, 16, 200, lock=lock)
            self.assertEqual(["overlap"], kinds(checker.overlaps([both, other])))
            self.assertEqual(["token"], kinds(checker.token_order(
                [both, run(2, 21, 22, 99, lock=lock)])))
        self.assertEqual([], checker.overlaps([both, run(2, 15, 16, 200, lock="/n")]))

    def test_nobody_waits_for_a_free_lock(self):
        runs = [run(1, 10, 11, 100), run(2, 11.2, 12, 200)]
        self.assertEqual([], checker.idle(runs, history(runs), []))
        late = [run(1, 10, 11, 100), run(2, 17, 18, 200)]
        late[1].spawned = 10
        self.assertEqual(["idle"], kinds(checker.idle(late, history(late), [])))
        late = [run(1, 10, 11, 100), run(2, 25, 26, 200)]
        late[1].spawned = 10
        # Only a part without trouble counts, however short the trouble was.
        for struck, expected in ((0, 30), []), ((15, 16), []), ((12, 14.5), ["idle"]), (
                (17, 30), ["idle"]):
            self.assertEqual(expected, kinds(checker.idle(late, history(late), [struck])))

    def test_a_waiter_that_a_fault_strikes_waits_until_then(self):
        late = [run(1, 10, 11, 100), run(2, 20, 21, 200)]
        late[1].spawned = 10
        for moment, expected in ((15.9, []), (16.1, ["idle"]), (9, [])):
            late[1].signals = [Sent(moment, "zklock", signal.SIGTERM)]
            self.assertEqual(expected, kinds(checker.idle(late, history(late), [])))

    def test_the_longest_time_without_trouble(self):
        self.assertEqual(10, checker.longest_calm(10, 20, []))
        self.assertEqual(10, checker.longest_calm(10, 20, [(1, 5), (20, 30)]))
        self.assertEqual(8, checker.longest_calm(10, 20, [(1, 7)]))
        self.assertEqual(2, checker.longest_calm(10, 20, [(18, 19), (12, 12.5), (14, 30)]))
        self.assertEqual(15, checker.longest_calm(10, 40, [(12, 20), (13, 15)]))
        self.assertLessEqual(checker.longest_calm(10, 20, [(0, 30)]), 0)

    def test_a_set_begins_under_all_of_its_locks(self):
        both = run(1, 10, 20, 100, other_locks=("/m",))
        self.assertEqual(["incomplete"], kinds(checker.incomplete([both])))
        both.record.further.append(run(1, 10, 20, 101, lock="/m").record)
        self.assertEqual([], checker.incomplete([both]))
        both.other_locks = ("/n",)
        self.assertEqual(["incomplete"], kinds(checker.incomplete([both])))
        both.other_locks = ()
        self.assertEqual(["incomplete"], kinds(checker.incomplete([both])))
        pool = run(1, 10, 20, 100, lock="/m", any_of=("/l", "/m"))
        self.assertEqual([], checker.incomplete([pool, idle(75, other_locks=("/m",))]))

    def test_nobody_waits_for_a_permit_that_is_free(self):
        runs = [run(1, 10, 30, 1, permits=2), run(2, 10, 12, 2, permits=2),
                run(3, 18, 19, 3, permits=2)]
        runs[2].spawned = 11
        servers = history(runs)
        for znode in servers.znodes.values():
            znode.path = f"/l/leases/x{znode.token:010}"
        self.assertEqual(["idle"], kinds(checker.idle(runs, servers, [])))
        runs[2].take = 2  # of two
        self.assertEqual([], checker.idle(runs, servers, []))
        runs[2].take = 1
        runs[1].record.lives[0].last = contender(servers, 2).removed = 17.9
        self.assertEqual([], checker.idle(runs, servers, []))

    def test_nobody_waits_between_two_locks_of_a_set(self):
        both = run(1, 30, 31, 101, lock="/m")
        both.spawned = 10
        def found(created):
            return kinds(checker.idle([both], ServerHistory([
                Znode("/l/x-lock-1", 100, 7, 10, 31, label=both.label),
                Znode("/m/x-lock-1", 101, 7, created, 31, label=both.label),
                Znode("/m/y-lock-0", 99, 8, 9, 29)]), []))
        self.assertEqual([], found(10.1))
        self.assertEqual(["idle"], found(16))

    def test_a_pool_waits_for_none_of_its_locks_that_is_free(self):
        pool = run(1, 30, 31, 100, any_of=("/l", "/m"))
        pool.spawned = 10
        own = history([pool]).znodes.values()
        def found(gone):
            return kinds(checker.idle([pool], ServerHistory([
                *own, Znode("/m/x-lock-1", 100, 1, 10, 30.1, label=pool.label),
                Znode("/l/y-lock-0", 98, 8, 9, 29), Znode("/m/y-lock-0", 99, 9, 9, gone)]),
                []))
        self.assertEqual([], found(29))
        self.assertEqual(["idle"], found(24))

    def test_a_pool_is_refused_only_if_none_of_its_locks_is_free(self):
        pool = idle(75, may_conflict=True, label="contender-1", any_of=("/l", "/m"))
        others = [Znode(f"/{name}/x-lock-1", number, 1, 1, 3) for number, name in enumerate("lm")]
        self.assertEqual([], checker.refused([pool], ServerHistory(others), no_trouble))
        for other in others:
            self.assertEqual(["refused"], kinds(checker.refused([pool], ServerHistory([other]),
                                                                no_trouble)))

    def test_a_pool_leaves_the_queues_that_it_has_not_taken(self):
        def found(removed, of_taken=30.005, trouble=no_trouble, closed=False, failed=False, **more):
            pool = run(1, 10, 30, 100, any_of=("/l", "/m"), **more)
            return kinds(checker.left_behind([pool], ServerHistory([
                *history([pool], {1: of_taken}).znodes.values(),
                Znode("/m/x-lock-1", 100, 1, 10, removed, closed=closed, failed=failed,
                      label=pool.label)]),
                trouble))
        self.assertEqual([], found(10.2))
        self.assertEqual(["left behind"], found(10.2, closed=True))
        self.assertEqual([], found(10.2, closed=True, failed=True))
        self.assertEqual([], found(10.2, closed=True, reserves=True))
        self.assertEqual(["left behind"], found(16))
        self.assertEqual(["left behind"], found(None))
        self.assertEqual(["left behind"], found(10.2, of_taken=30.1))  # the run ended before that
        self.assertEqual([], found(10.2, of_taken=30.1, held=True))
        # The shell reads /m, and its command /l.
        self.assertEqual([], found(30, closed=True, of_taken=10.2, held=True, mode="read"))
        self.assertEqual(["left behind"], found(30, closed=True, of_taken=30.1, held=True, mode="read"))
        self.assertEqual(["left behind"], found(30, closed=True, of_taken=10.2, held=True))
        self.assertEqual([], found(16, trouble=lambda begin, end: begin == 10))
        self.assertEqual([], found(16, signals=[Sent(11, "zklock", signal.SIGKILL)]))
        self.assertEqual(["left behind"], found(16, signals=[Sent(11, "zklock", signal.SIGTERM)]))

    def test_a_pool_that_waited_in_vain_is_in_no_queue(self):
        pool = idle(75, may_conflict=True, label="contender-1", any_of=("/l", "/m"))
        def found(removed):
            return kinds(checker.left_behind([pool], ServerHistory([
                Znode("/l/x-lock-1", 1, 1, 1.5, 1.9, label=pool.label),
                Znode("/m/x-lock-1", 1, 1, 1.5, removed, label=pool.label)]), no_trouble))
        self.assertEqual([], found(1.9))
        self.assertEqual(["left behind"], found(2.1))

    def test_a_pool_runs_under_the_lock_that_it_says(self):
        def found(lock, node, **more):
            pool = run(1, 10, 11, 100, lock=lock, **more)
            pool.record.node = node
            servers = ServerHistory([Znode(f"{one}/x-lock-1", 100, 1, 9, 11.1, label=pool.label)
                                     for one in ("/l", "/m")])
            return kinds(checker.against_servers([pool], servers))
        self.assertEqual([], found("/m", "/m/x-lock-1", any_of=("/l", "/m")))
        self.assertEqual(["lock"], found("/l", "/m/x-lock-1", any_of=("/l", "/m")))
        self.assertEqual(["lock"], found("/m", "/m/x-lock-1", any_of=("/l", "/n")))
        # Another run holds the LOCK that the pool did not take.
        runs = [run(1, 10, 12, 100, any_of=("/l", "/m"), lock="/m"), run(2, 11, 13, 200)]
        self.assertEqual([], checker.overlaps(runs))
        for one in (runs[0], runs[0].record):
            one.lock = "/l"
        self.assertEqual(["overlap"], kinds(checker.overlaps(runs)))

    def test_nobody_leaves_a_free_lock_after_a_long_wait(self):
        gone = idle(75, may_conflict=True, label="contender-1")
        gone.ended = 20
        servers = ServerHistory([Znode("/l/a-lock-1", 1, 1, 2, 8, label="contender-7"),
                                 Znode("/l/a-lock-2", 2, 1, 3, 20, label="contender-1")])
        self.assertEqual(["idle"], kinds(checker.idle([gone], servers, [])))
        contender(servers, 1).removed = 16
        self.assertEqual([], checker.idle([gone], servers, []))

    def test_nobody_waits_for_a_reservation_that_has_ended(self):
        late = run(2, 30, 31, 2)
        late.spawned = 11
        reserved = Znode("/l/x-reserve-lock-1", 1, 0, 9.0, 29.9, reserved=10.0, clocks={0},
                         reservation={"id": "x", "token": 1, "for": 5000})
        servers = ServerHistory([reserved, *history([late]).znodes.values()])
        self.assertEqual(["idle"], kinds(checker.idle([late], servers, [])))
        reserved.clocks = {0, -1}  # it ended only after the clock was right again
        self.assertEqual([], checker.idle([late], servers, []))

    def test_a_free_lock_refuses_nobody(self):
        def found(*others, **more):
            one = idle(75, may_conflict=True, label="contender-1", **more)
            one.ended = 5
            return kinds(checker.refused([one], ServerHistory(others), no_trouble))
        gone, there = (Znode(f"/l/x{number:010}", number, 1, 1, removed)
                       for number, removed in ((1, 2.5), (2, 4.5)))
        self.assertEqual(["refused"], found())
        self.assertEqual(["refused"], found(gone))
        self.assertEqual([], found(gone, there))
        own = Znode("/l/x0000000003", 3, 1, 1, 5, label="contender-1")
        self.assertEqual(["refused"], found(gone, own))
        self.assertEqual([], found(gone, min_interval=1))
        permit = Znode("/l/leases/x0000000004", 4, 1, 1, 5, label="contender-4")
        turn = Znode("/l/locks/x0000000005", 5, 1, 1, 5, label="contender-4")
        self.assertEqual(["refused"], found(permit, turn, permits=2))
        turn.label = "contender-5"
        self.assertEqual([], found(permit, turn, permits=2))
        self.assertEqual(["refused"], found(permit, turn, permits=3))
        self.assertEqual([], found(permit, turn, permits=3, take=2))
        other = run(4, 1, 2, 4, permits=4, take=3)
        def beside(**more):
            one = idle(75, may_conflict=True, label="contender-1", permits=4, **more)
            return kinds(checker.refused([one, other], ServerHistory([permit]), no_trouble))
        self.assertEqual(["refused"], beside(take=1))
        self.assertEqual([], beside(take=2))

    def test_a_run_is_not_repeated_too_soon(self):
        def found(first, second, clocks=(0, 0)):
            servers = history([first, second])
            for token, clock in zip((100, 200), clocks):
                contender(servers, token).clock = clock
            return kinds(checker.intervals([first, second], servers))
        first = run(1, 10, 11, 100, min_interval=3)
        late, soon = (run(2, begin, 20, 200, min_interval=3) for begin in (13.1, 12.9))
        self.assertEqual([], found(first, late))
        self.assertEqual(["too soon"], found(first, soon))
        self.assertEqual([], found(run(1, 10, 11, 100, min_interval=3, status=7), soon))
        self.assertEqual([], found(run(1, 10, 11, 100, min_interval=3, nested=True), soon))
        # Only a clock that was set forward between the two excuses this.
        self.assertEqual([], found(first, soon, (0, 1)))
        self.assertEqual(["too soon"], found(first, soon, (1, 0)))
        self.assertEqual(["too soon"], found(first, soon, (1, 1)))


class WholeHistories(unittest.TestCase):
    def test_a_correct_history_has_no_violations(self):
        runs = [run(1, 10, 11, 100), run(2, 11.1, 12, 200, mode="read"),
                run(3, 11.2, 11.5, 300, mode="read"), run(4, 12.1, 13, 400, mode="write"),
                run(5, 10.5, 12.5, 150, lock="/other"), idle(75, may_conflict=True)]
        runs[-1].ended = 10.5
        self.assertEqual([], checker.check(runs, history(runs), []))

    def test_the_whole_check_finds_each_planted_fault(self):
        runs = [run(1, 10, 11.5, 100), run(2, 11, 12, 90), run(3, 13, 14, 300, status=70)]
        runs.append(idle(None))
        found = checker.check(runs, history(runs, {3: None}), [])
        self.assertLessEqual({"overlap", "token", "status", "never ended", "ghost"},
                             set(kinds(found)))


class Overlaps(unittest.TestCase):
    def test_two_exclusive_commands_that_touch_overlap(self):
        self.assertEqual(1, len(checker.overlaps([run(1, 10, 11, 1), run(2, 11, 12, 2)])))
        self.assertEqual(0, len(checker.overlaps([run(1, 10, 11, 1), run(2, 11.001, 12, 2)])))

    def test_a_reader_among_readers_does_not_hide_a_writer(self):
        runs = [run(1, 10, 15, 1, mode="read"), run(2, 11, 12, 2, mode="read"),
                run(3, 14, 16, 3, mode="write")]
        (found,) = checker.overlaps(runs)
        self.assertEqual((1, 3), tuple(one.number for one in found.runs))

    def test_a_reader_overlaps_with_the_writer_before_it(self):
        runs = [run(1, 10, 12, 1, mode="write"), run(2, 11, 13, 2, mode="read")]
        self.assertEqual(["overlap"], kinds(checker.overlaps(runs)))

    def test_a_process_that_may_remain_without_a_cgroup_does_not_overlap(self):
        first, second = run(1, 10, 11, 1), run(2, 12, 13, 2)
        first.record.lives.append(Life(9, 10, 12.5, None, hard=True))
        self.assertEqual(1, len(checker.overlaps([first, second])))
        first.may_remain = True
        self.assertEqual([], checker.overlaps([first, second]))
        first.record.lives.append(Life(8, 10, 12.5, None))
        self.assertEqual(1, len(checker.overlaps([first, second])))

    def test_a_long_overlap_is_found_after_shorter_runs(self):
        runs = [run(1, 10, 20, 1), run(2, 11, 12, 2), run(3, 19, 21, 3)]
        self.assertEqual(2, len(checker.overlaps(runs)))

    def test_a_descendant_counts(self):
        first = run(1, 10, 11, 1)
        first.record.lives.append(Life(7, 10, 11.3, None))
        self.assertEqual(["overlap"], kinds(checker.overlaps([first, run(2, 11.2, 12, 2)])))

    def test_descendants_of_a_killed_command_count_only_if_they_had_to_be_ended(self):
        for descendants, expected in (("leave", []), ("kill", ["overlap"])):
            first = run(1, 10, 11, 1, descendants=descendants,
                        signals=[Sent(11, "command", signal.SIGKILL)])
            first.record.lives.append(Life(7, 10, 11.3, None))
            self.assertEqual(expected,
                             kinds(checker.overlaps([first, run(2, 11.2, 12, 2)])))

    def test_other_locks_do_not_matter(self):
        self.assertEqual([], checker.overlaps([run(1, 10, 20, 1), run(2, 11, 12, 2, lock="/m")]))


class ForcedOut(unittest.TestCase):
    def test_a_holder_forced_out_may_overlap_until_it_notices(self):
        runs = [run(1, 10, 11, 1, forced=10.5, status=76), run(2, 10.6, 12, 2)]
        self.assertEqual([], checker.check(runs, history(runs, {1: 10.55}), []))

    def test_a_holder_that_never_notices_is_found(self):
        for last, status in ((11, 0), (17, 76)):
            runs = [run(1, 10, last, 1, forced=10.5, status=status), run(2, 20, 21, 2)]
            self.assertEqual(["unnoticed"],
                             kinds(checker.check(runs, history(runs), [])))

    def test_the_next_holder_must_not_be_hit(self):
        runs = [run(1, 10, 11, 1, forced=10.5, status=76), run(2, 10.6, 12, 2), run(3, 11.5, 13, 3)]
        self.assertEqual(["overlap"], kinds(checker.overlaps(runs)))


class Limits(unittest.TestCase):
    def test_a_command_that_goes_on_after_its_limit_is_found(self):
        def found(last, **more):
            return kinds(checker.overrun([run(1, 10, last, 1, max_run=1, kill_after=0.5, **more)]))
        self.assertEqual([], found(13.4))
        self.assertEqual(["overrun"], found(13.6))
        self.assertEqual([], found(20, signals=[Sent(11, "guard", signal.SIGSTOP)]))
        self.assertEqual(["overrun"], found(20, signals=[Sent(11, "zklock", signal.SIGSTOP)]))


class Tokens(unittest.TestCase):
    def test_a_decreasing_token_is_found(self):
        self.assertEqual(["token"],
                         kinds(checker.token_order([run(1, 10, 11, 200), run(2, 12, 13, 100)])))

    def test_a_repeated_token_is_found(self):
        self.assertEqual(["token"],
                         kinds(checker.token_order([run(1, 10, 11, 100), run(2, 12, 13, 100)])))

    def test_readers_may_begin_in_any_order(self):
        runs = [run(1, 10, 12, 200, mode="read"), run(2, 11, 13, 100, mode="read")]
        self.assertEqual([], checker.token_order(runs))

    def test_a_reader_after_a_later_writer_is_found(self):
        runs = [run(1, 10, 11, 200, mode="write"), run(2, 12, 13, 100, mode="read")]
        self.assertEqual(["token"], kinds(checker.token_order(runs)))


class Statuses(unittest.TestCase):
    def forbidden(self, one, trouble=False):
        return bool(checker.forbidden_statuses([one], lambda begin, end: trouble))

    def test_the_commands_own_status_is_allowed(self):
        def ended(status, **more):
            return run(1, 10, 11, 1, status=status, of_command=7, **more)
        self.assertFalse(self.forbidden(ended(7)))
        self.assertTrue(self.forbidden(ended(0)))
        self.assertFalse(self.forbidden(ended(76)))
        # It was told to end and ended by itself, so its status is not that of a killed command.
        told = [Sent(10.5, "zklock", signal.SIGTERM), Sent(10.5, "command", signal.SIGKILL)]
        for status, forbidden in (7, False), (40, True), (143, True), (137, True):
            self.assertEqual(forbidden, self.forbidden(ended(status, signals=told)))
        # The nested zklock may have been killed after that.
        self.assertFalse(self.forbidden(ended(137, signals=told, nested=True)))

    def test_a_command_that_nothing_told_to_end_has_not_ended_for_that(self):
        for target, number, forbidden in (("zklock", signal.SIGTERM, False),
                                          ("guard", signal.SIGKILL, False),
                                          ("zklock", signal.SIGSTOP, True)):
            one = run(1, 10, 11, 1, status=40, of_command=40, signals=[Sent(10.5, target, number)])
            self.assertEqual(forbidden, self.forbidden(one))

    def test_a_command_that_was_ended_has_no_status_of_its_own(self):
        self.assertTrue(self.forbidden(run(1, 10, 11, 1, status=0, ended=False)))
        self.assertFalse(self.forbidden(run(1, 10, 11, 1, status=76, ended=False)))

    def test_success_without_a_command_is_forbidden(self):
        self.assertTrue(self.forbidden(idle(0)))
        self.assertTrue(self.forbidden(idle(76)))

    def test_a_conflict_needs_a_time_limit(self):
        self.assertTrue(self.forbidden(idle(75)))
        self.assertFalse(self.forbidden(idle(75, may_conflict=True)))
        self.assertTrue(self.forbidden(run(1, 10, 11, 1, status=75, may_conflict=True)))

    def test_unavailable_needs_a_fault_of_servers(self):
        self.assertTrue(self.forbidden(idle(69)))
        self.assertFalse(self.forbidden(idle(69), trouble=True))

    def test_a_signals_status_needs_the_signal(self):
        self.assertTrue(self.forbidden(idle(143)))
        self.assertFalse(self.forbidden(idle(143, signals=[Sent(1, "zklock", signal.SIGTERM)])))
        self.assertFalse(self.forbidden(idle(-15, signals=[Sent(1.4, "zklock", signal.SIGTERM)])))
        self.assertTrue(self.forbidden(idle(-15, signals=[Sent(1.6, "zklock", signal.SIGTERM)])))
        self.assertTrue(self.forbidden(idle(-15, signals=[Sent(1, "zklock", signal.SIGTERM)], held=True)))
        self.assertTrue(self.forbidden(idle(-9)))
        self.assertFalse(self.forbidden(idle(-9, signals=[Sent(1, "zklock", signal.SIGKILL)])))
        self.assertTrue(self.forbidden(run(1, 10, 11, 1, status=137, ended=False)))
        killed = run(1, 10, 11, 1, status=137, ended=False,
                     signals=[Sent(11, "command", signal.SIGKILL)])
        self.assertFalse(self.forbidden(killed))

    def test_the_shell_that_holds_has_the_status_of_its_nested_run(self):
        kill = [Sent(11, "zklock", signal.SIGKILL)]
        self.assertFalse(self.forbidden(run(1, 10, 11, 1, status=137, ended=False, held=True,
                                            signals=kill)))
        self.assertTrue(self.forbidden(run(1, 10, 11, 1, status=-9, ended=False, held=True,
                                           signals=kill)))
        self.assertTrue(self.forbidden(run(1, 10, 11, 1, status=137, ended=False, signals=kill)))
        self.assertFalse(self.forbidden(idle(137, held=True, signals=kill)))
        self.assertTrue(self.forbidden(idle(137, held=True)))

    def test_a_shell_may_lose_its_lock_before_its_nested_run_begins(self):
        self.assertFalse(self.forbidden(idle(76, held=True)))

    def test_a_shell_is_not_killed(self):
        for status in (-15, 143):
            self.assertTrue(self.forbidden(run(1, 10, 11, 1, status=status, held=True)))

    def test_124_needs_a_limit_that_has_passed(self):
        self.assertTrue(self.forbidden(run(1, 10, 12, 1, status=124, ended=False)))
        self.assertFalse(self.forbidden(run(1, 10, 12, 1, status=124, ended=False, max_run=1)))
        self.assertFalse(self.forbidden(run(1, 10, 12, 1, status=124, ended=False, max_run=2.05)))
        late = run(1, 10, 12, 1, status=124, ended=False, max_run=2.2)
        late.spawned = 1  # it has waited
        self.assertTrue(self.forbidden(late))

    def test_statuses_of_defects_are_never_allowed(self):
        for status in (64, 70, 71, 77, 78, -6, -11):
            self.assertTrue(self.forbidden(idle(status, may_conflict=True), trouble=True))

    def test_a_run_that_never_ended_is_found(self):
        self.assertEqual(["never ended"], kinds(checker.unended([idle(None)])))


class AgainstServers(unittest.TestCase):
    def found(self, runs, **more):
        return kinds(checker.against_servers(runs, history(runs, **more)))

    def test_a_command_that_outlived_its_znode_is_found(self):
        self.assertEqual(["outlived"], self.found([run(1, 10, 11, 1)], removed={1: 10.9}))

    def test_a_token_without_its_znode_is_found(self):
        one = run(1, 10, 11, 1)
        self.assertEqual(["token"], kinds(checker.against_servers([one], ServerHistory([]))))

    def test_a_command_that_began_before_its_predecessors_end_is_found(self):
        runs = [run(1, 10, 11, 1), run(2, 11.5, 12, 2)]
        self.assertEqual(["passed"], self.found(runs, removed={1: 11.6}))
        self.assertEqual([], self.found(runs, removed={1: 11.4}))

    def test_a_waiter_that_is_overtaken_counts_too(self):
        one = run(1, 10, 11, 5)
        servers = history([one])
        add(servers, Znode("/l/x-lock-4", 4, 9, 8, 10.5))
        self.assertEqual(["passed"], kinds(checker.against_servers([one], servers)))

    def test_readers_may_overtake_readers(self):
        reader = run(1, 10, 11, 5, mode="read")
        servers = history([reader])
        add(servers, Znode("/l/x-__READ__4", 4, 9, 8, 10.5))
        self.assertEqual([], checker.against_servers([reader], servers))

    def test_a_nested_run_that_outlived_its_keepers_session_is_found(self):
        self.assertEqual(["outlived"], self.found([run(1, 10, 11, 1, held=True)],
                                                  removed={1: 10.9}))

    def test_a_session_closed_before_the_nested_runs_of_a_killed_keeper_ended_is_found(self):
        def found(*, expired=False, killed=10.5, removed=10.8, mode="exclusive", **more):
            one = run(1, 10, 11, 1, held=True, mode=mode, **more,
                      signals=[Sent(killed, "zklock", signal.SIGKILL)])
            servers = history([one], {1: removed})
            contender(servers, 1).expired = expired
            return kinds(checker.closed_early([one], servers))
        self.assertEqual(["closed early"], found(keeper_struck=True))
        self.assertEqual([], found(keeper_struck=True, removed=11.5))  # by the guard
        self.assertEqual([], found(keeper_struck=True, expired=True))
        self.assertEqual([], found(keeper_struck=True, killed=11.2))  # the command had ended
        self.assertEqual([], found(keeper_struck=True, mode="read"))  # it is its own contender
        self.assertEqual([], found(keeper_struck=False))

    def test_reservations_are_checked(self):
        def found(*, token=1, made=1, lasts=None, removed=20.0, clocks=(0,), apart=1, later=0,
                  twice=True):
            one = Run(number=3, host="h1", lock="/l", word="exclusive", timeout=5, spawned=9,
                      ended=21, status=0, reserves=True, lasts=lasts, twice=twice)
            reservation = {"id": "contender-3", "token": token}
            if lasts is not None:
                reservation["for"] = lasts
            znodes = [Znode(f"/l/x-reserve-lock-{index}", 1 + index * apart, 0, 9.0, removed,
                            reserved=10.0 + index * later, clocks=set(clocks),
                            reservation={**reservation, "token": token + index * apart})
                      for index in range(made)]
            return kinds(checker.reservations([one], ServerHistory(znodes)))
        self.assertEqual([], found())
        self.assertEqual([], found(lasts=10_000))
        self.assertEqual(["token"], found(token=7))
        self.assertEqual(["reserved twice"], found(made=2))
        self.assertEqual([], found(made=2, apart=0))  # permits
        self.assertEqual(["reserved twice"], found(made=2, later=10.0, twice=False))
        self.assertEqual([], found(made=2, later=10.0))
        self.assertEqual(["reserved twice"], found(made=2, later=9.9))
        self.assertEqual([], found(made=2, later=2.0, lasts=2_000))
        self.assertEqual(["not reserved"], found(made=0))
        self.assertEqual(["ended early"], found(lasts=10_010))
        self.assertEqual([], found(lasts=10_010, clocks=(0, 1)))
        self.assertEqual(["ended early"], found(lasts=10_010, clocks=(0, -1)))

    def test_a_reserving_run_may_lose_its_place_but_no_lease(self):
        def is_allowed(status, trouble=no_trouble, **more):
            one = idle(status, reserves=True, **more)
            return not checker.forbidden_statuses([one], trouble)
        self.assertFalse(is_allowed(0))
        self.assertTrue(is_allowed(0, lasts=500))
        self.assertFalse(is_allowed(75))
        self.assertTrue(is_allowed(75, lambda begin, end: True))
        self.assertTrue(is_allowed(137, signals=[Sent(1, "zklock", signal.SIGKILL)]))
        lost = run(1, 10, 11, 1, status=76, reserves=True)
        self.assertEqual(["status"], kinds(checker.forbidden_statuses([lost], no_trouble)))

    def test_the_history_of_runs_is_checked(self):
        def found(entries, *, moment=30, removed=None, expired=(), trouble=no_trouble, more=None):
            runs = [run(1, 10, 11, 100), run(2, 12, 13, 200, status=7, **(more or {})),
                    run(3, 14, 15, 300, mode="read")]
            servers = history(runs, removed)
            for token in expired:
                contender(servers, token).expired = True
            return kinds(checker.run_history(runs, "/l", entries, moment, servers, trouble))

        def entry(token, state="ended", status=0):
            return {"token": token, "state": state, "status": status}
        first, second = entry(100), entry(200, status=7)
        self.assertEqual([], found([second, first]))
        self.assertEqual([], found([second]))  # the other is too old
        self.assertEqual(["history"], found([]))
        self.assertEqual(["history"], found([first, second]))
        self.assertEqual(["history"], found([second, second, first]))
        self.assertEqual(["history"], found([first]))
        self.assertEqual([], found([first], moment=17))  # the other has just ended
        self.assertEqual(["history"], found([entry(200), first]))
        lost = [entry(200, "lost", None), first]
        self.assertEqual(["history"], found(lost))
        self.assertEqual([], found(lost, more={"signals": [Sent(12, "zklock", signal.SIGKILL)]}))
        self.assertEqual([], found(lost, trouble=lambda begin, end: begin > 10))
        running = [entry(200, "running", None), first]
        self.assertEqual(["history"], found(running, trouble=lambda begin, end: True))
        kill = {"signals": [Sent(12, "zklock", signal.SIGKILL)]}
        for removed, kinds_found in ((20, ["history"]), (29.5, []), (31, [])):  # shown at 30
            self.assertEqual(kinds_found, found(running, more=kill, removed={2: removed}))
        self.assertEqual(["history"], found([second, first], expired=[100]))
        self.assertEqual([], found([entry(200, status=None), first], more={"held": True}))

    def test_a_znode_left_behind_is_found(self):
        self.assertEqual(["ghost"], kinds(checker.ghosts(
            ServerHistory([Znode("/l/x", 1, 1, 1.0), Znode("/l/y", 2, 1, 1.0, 2.0)]))))


def transaction(session, request, zxid, milliseconds, kind, body=b""):
    return struct.pack(">qiqqi", session, request, zxid, milliseconds, kind) + body


def text(value):
    return struct.pack(">i", len(value)) + value.encode()


def create(path, ephemeral=True, content="{}"):
    acl = struct.pack(">ii", 1, 31) + text("world") + text("anyone")
    return text(path) + text(content) + acl + bytes([ephemeral]) + struct.pack(">i", 1)


def multi(*parts):
    return struct.pack(">i", len(parts)) + b"".join(
        struct.pack(">ii", kind, len(body)) + body for kind, body in parts)


def log_of(transactions):
    entries = b"".join(struct.pack(">qi", zlib.adler32(one), len(one)) + one + b"B"
                       for one in transactions)
    return b"ZKLG" + bytes(12) + entries + bytes(64)


class TransactionLogs(unittest.TestCase):
    def read(self, *servers):
        with tempfile.TemporaryDirectory() as directory:
            paths = []
            for index, transactions in enumerate(servers):
                paths.append([f"{directory}/{index}"])
                with open(paths[-1][0], "wb") as file:
                    file.write(log_of(transactions))
            return ServerHistory.read(paths, "/l/")

    def of_tokens(self, log):
        """Returns the znodes by their tokens."""
        return {znode.token: znode for znode in self.read(log, log, []).znodes.values()}

    def test_a_damaged_log_is_noticed(self):
        def damage(zxids, snapshot=0):
            return histories.damage(zxids, snapshot)
        first, second = 1 << 32, 2 << 32
        self.assertIsNone(damage([]))
        self.assertIsNone(damage([first + 5, first + 6, second + 1, second + 2]))
        self.assertEqual((first + 6, first + 5), damage([first + 5, first + 6, first + 5, first + 6]))
        self.assertEqual((first + 5, first + 7), damage([first + 5, first + 7]))
        self.assertEqual((first + 5, second + 2), damage([first + 5, second + 2]))
        # Records from before the newest snapshot are no longer read.
        self.assertIsNone(damage([first + 5, first + 7, first + 6, second + 8, second + 9], second + 8))
        self.assertIsNone(damage([first + 5, second + 9], second + 8))
        self.assertEqual((second + 9, second + 9),
                         damage([first + 5, second + 8, second + 9, second + 9], second + 8))

    def test_a_contender_lives_from_its_create_to_its_delete(self):
        before = histories.now()
        at = int(time.time() * 1000)
        common = [transaction(7, 1, 10, at, 15, create("/l/a-lock-1")),
                  transaction(7, 2, 11, at, 15, create("/l/b-lock-2")),
                  transaction(8, 1, 12, at, 15, create("/l/c-lock-3")),
                  transaction(9, 1, 13, at, 1, create("/l/d-lock-4")),
                  transaction(9, 1, 14, at, 19, text("/l/container") + text("")
                              + struct.pack(">ii", 0, 1)),
                  transaction(7, 3, 15, at + 100, 14, struct.pack(">iii", 1, 2, 15)
                              + text("/l/a-lock-1")),
                  transaction(7, 4, 16, at + 200, -11),
                  transaction(8, 0, 17, at + 300, -11)]
        znodes = self.of_tokens(common)
        now = histories.now()
        self.assertEqual([10, 11, 12, 13], sorted(znodes))
        self.assertAlmostEqual(0.1, znodes[10].removed - znodes[10].created, places=3)
        self.assertLessEqual(before - 0.1, znodes[10].created)
        self.assertLessEqual(znodes[10].created, now + 0.1)
        self.assertEqual([(False, False), (False, True), (True, False)], [
            (znodes[token].expired, znodes[token].closed) for token in (10, 11, 12)])
        self.assertIsNone(znodes[13].removed)

    def test_the_end_of_a_session_removes_only_its_own_znode_of_that_name(self):
        at = int(time.time() * 1000)
        log = [transaction(7, 1, 10, at, 15, create("/l/lock")),
               transaction(8, 1, 11, at + 1, 2, text("/l/lock")),
               transaction(9, 1, 12, at + 2, 15, create("/l/lock")),
               transaction(7, 2, 13, at + 3, -11)]
        znodes = self.of_tokens(log)
        self.assertIsNotNone(znodes[10].removed)
        self.assertIsNone(znodes[12].removed)

    def test_the_contenders_of_a_pool_have_one_token_and_a_life_each(self):
        at = int(time.time() * 1000)
        log = [transaction(7, 1, 10, at, 14, multi((15, create("/l/a/x-lock-1")),
                                                   (15, create("/l/b/x-lock-1")),
                                                   (1, create("/l/b/zklock-clock-7")),
                                                   (2, text("/l/b/zklock-clock-7")))),
               transaction(7, 2, 11, at + 1, 2, text("/l/b/x-lock-1"))]
        servers = self.read(log, log, [])
        taken, left = (servers.of(Record([], f"/l/{one}", "exclusive", 10, f"/l/{one}/x-lock-1"))
                       for one in "ab")
        self.assertEqual([10, 10], [taken.token, left.token])
        self.assertEqual(2, len(servers.znodes))
        self.assertIsNone(taken.removed)
        self.assertIsNotNone(left.removed)

    def test_a_transaction_of_which_a_part_failed_does_nothing(self):
        log = [transaction(7, 1, 10, int(time.time() * 1000), 14, multi(
            (15, create("/l/a/x-lock-1")), (-1, struct.pack(">i", -101))))]
        self.assertEqual({}, self.read(log, log, []).znodes)
        # Existing znodes of that session are marked as failed, but not those of another session.
        log = [transaction(session, 1, zxid, int(time.time() * 1000), 15, create(f"/l/a/x-lock-{zxid}"))
               for session, zxid in ((7, 8), (8, 9))] + log
        self.assertEqual({8: True, 9: False}, {token: znode.failed
                                               for token, znode in self.of_tokens(log).items()})

    def test_a_conversion_continues_the_life_of_its_contender(self):
        path = "/l/a-reserve-lock-1"
        reservation = {"id": "x", "token": 10, "for": 500}
        content = json.dumps({"reservation": reservation})
        at = int(time.time() * 1000)
        day = 1000 * histories.DAY  # how far the clock is wrong in the meantime
        log = [transaction(7, 1, 10, at, 15, create(path, content='{"label":"contender-3"}')),
               transaction(7, 2, 11, at + 1000, 14,
                           multi((2, text(path)), (1, create(path, False, content)))),
               transaction(7, 3, 12, at + 1500 + day, -11),
               transaction(8, 1, 13, at + 2000 - day, 14,
                           multi((5, text("/l") + text("") + struct.pack(">i", 1)),
                                 (2, text(path)))),
               transaction(9, 1, 14, at + 3000, 1, create("/l/config", False))]
        (znode,) = self.read(log, log, []).znodes.values()
        self.assertEqual((0, {0, 1, -1}), (znode.reserved_clock, znode.clocks))
        self.assertEqual("contender-3", znode.label)
        self.assertEqual((7, 10, reservation), (znode.session, znode.token, znode.reservation))
        self.assertAlmostEqual(1, znode.reserved - znode.created, places=3)
        self.assertAlmostEqual(2, znode.removed - znode.created, places=3)
        self.assertFalse(znode.expired)

    def test_a_waiter_may_be_from_before_the_clock_was_set(self):
        at, day = int(time.time() * 1000), 1000 * histories.DAY
        content = json.dumps({"reservation": {"id": "x", "token": 11, "for": 500}})
        path = "/l/a-reserve-lock-1"
        log = [transaction(8, 1, 10, at, 15, create("/l/b-lock-2")),
               transaction(7, 1, 11, at - day, 15, create(path)),
               transaction(7, 2, 12, at - day, 14,
                           multi((2, text(path)), (1, create(path, False, content))))]
        znode = self.of_tokens(log)[11]
        self.assertEqual((-1, {0, -1}), (znode.reserved_clock, znode.clocks))

    def test_a_transaction_on_one_server_only_was_not_committed(self):
        lonely = [transaction(7, 1, 10, int(time.time() * 1000), 15, create("/l/a-lock-1"))]
        self.assertEqual({}, self.read(lonely, [], []).znodes)


class Recorders(unittest.TestCase):
    """Tests with the real recorder, if $ZKLOCK_RECORDER names it."""

    LOCK = {"ZKLOCK_LOCK": "/l", "ZKLOCK_MODE": "read", "ZKLOCK_TOKEN": "42",
            "ZKLOCK_NODE": "/l/x"}

    @unittest.skipUnless("ZKLOCK_RECORDER" in os.environ, "no $ZKLOCK_RECORDER")
    def test_the_recorders_file_can_be_read(self):
        with tempfile.TemporaryDirectory() as directory:
            file = histories.RecordFile(f"{directory}/record")
            self.assertIsNone(file.read())
            before = histories.now()
            status = subprocess.run([os.environ["ZKLOCK_RECORDER"], file.path, "50", "tree",
                                     "daemon", "status=7"], env=self.LOCK).returncode
            record = file.read()
            self.assertEqual(7, status)
            self.assertEqual(("/l", "read", 42, "/l/x"),
                             (record.lock, record.mode, record.token, record.node))
            self.assertEqual(3, len(record.lives))
            for life in record.lives:
                self.assertTrue(before < life.begin < life.ended < histories.now())
            self.assertGreaterEqual(record.lives[0].last - record.lives[0].begin, 0.05)
            self.assertFalse(any(life.hard for life in record.lives))

    @unittest.skipUnless("ZKLOCK_RECORDER" in os.environ, "no $ZKLOCK_RECORDER")
    def test_a_daemon_that_is_hard_to_end_lives_on_until_the_driver_ends_it(self):
        with tempfile.TemporaryDirectory() as directory:
            file = histories.RecordFile(f"{directory}/record")
            process = subprocess.Popen([os.environ["ZKLOCK_RECORDER"], file.path, "60000",
                                        "lasting"], env=self.LOCK)
            self.wait_until(lambda: file.read() is not None and len(file.read().lives) == 2)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(checker.TERMINATED, process.wait())
            main, hard = file.read().lives
            self.assertEqual((False, True), (main.hard, hard.hard))
            self.wait_until(lambda: file.read().lives[1].last > main.ended + 0.05)
            file.finish()
            self.wait_until(lambda: file.read().lives[1].ended is not None)

    def wait_until(self, is_so):
        deadline = time.monotonic() + 60
        while not is_so():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.005)


class Reports(unittest.TestCase):
    def test_runs_are_added_up_by_source(self):
        def part(source, seed, violations, **row):
            faults = {"kill": report.Row(made=2, struck=1, overlaps=seed, **row),
                      "kill, during another fault": report.Row(made=seed)}
            return {"source": source, "seed": seed, "minutes": 2, "contenders": 10, "commands": 5,
                    "faults": {name: vars(one) for name, one in faults.items()}, "violations": violations}
        parts = [part("a", 1, {}, slowest=[0.5, 2, 4], margin=1.5, needless=[4, 10], next=[1]),
                 part("b", 1, {"overlap": 1}), part("a", 3, {}, slowest=[0.4, 4, 10], next=[2, 5]),
                 part("a", 3, {}, margin=0.5, outlived=1)]
        lines = report.total(json.loads(json.dumps(parts))).splitlines()
        self.assertEqual(
            "src a: 3 runs with seeds 1 to 3, 6 minutes, 13 faults, 7 of them during another fault,"
            " 30 contenders, 15 commands; violations: none", lines[0])
        self.assertEqual("| kill | 6 | 3 | 7 | 1 | 2.00 s of 4 s | 0.50 s | 2 (1 with T < 10 s)"
                         " | 2.00 / 5.00 s |", lines[4])
        self.assertEqual("| kill, during another fault | 7 | 0 | 0 | 0 | – | – | 0 | – |", lines[5])
        self.assertEqual(
            "src b: 1 runs with seeds 1 to 1, 2 minutes, 3 faults, 1 of them during another fault,"
            " 10 contenders, 5 commands; violations: 1 overlap", lines[7])

    def test_the_next_run_is_one_that_waited_and_conflicts(self):
        victim = run(1, 10, 15, 1)
        late = run(3, 15.5, 16, 3)
        late.spawned = 15.2
        runs = [victim, run(2, 16.1, 17, 2), late]
        runs[1].spawned = 11
        servers = history(runs)
        self.assertAlmostEqual(1.1, report.succession(victim, runs, 15.0, servers, forgives=True))
        add(servers, Znode("/l/left-lock-2", 2, 9, 8, 16.0, expired=True))
        runs[1].record.token = 4
        self.assertAlmostEqual(0.1, report.succession(victim, runs, 15.0, servers, forgives=True))

    def test_a_lock_is_not_handed_on_late_by_what_another_fault_has_stopped(self):
        victim, following = run(1, 10, 15, 1), run(3, 17, 18, 3)
        struck = idle(75, label="contender-2", signals=[Sent(14, "zklock", signal.SIGKILL)])
        following.spawned = 11
        runs = [victim, struck, following]
        servers = history(runs)
        add(servers, Znode("/l/locks/x-lock-2", 2, 9, 11, 16.6, label=struck.label))
        self.assertAlmostEqual(2, report.succession(victim, runs, 15.0, servers))
        struck.signals.append(Sent(14, "zklock", signal.SIGSTOP))
        self.assertAlmostEqual(0.4, report.succession(victim, runs, 15.0, servers))
        following.signals.append(Sent(17.5, "zklock", signal.SIGSTOP))
        self.assertAlmostEqual(0.4, report.succession(victim, runs, 15.0, servers))
        following.signals.append(Sent(16, "zklock", signal.SIGSTOP))
        self.assertIsNone(report.succession(victim, runs, 15.0, servers))

    def test_what_two_faults_have_struck_counts_for_none(self):
        one = Victim(run(1, 10, 15, 1, ended=False, status=76))
        cut = Made("host cut off", 11.0, False, True, [one], 15.1)
        stopped = Made("zklock stopped", 12.0, False, False, [one], 14.5, beside=True)
        def found():
            rows = report.rows_of([cut, stopped], [one.run], history([one.run]), [])
            return {name: (row.made, row.struck) for name, row in rows.items()}
        self.assertEqual({"host cut off": (1, 0), "zklock stopped, during another fault": (1, 1)}, found())
        stopped.begin, stopped.end = 16.0, 17.0
        self.assertEqual({"host cut off": (1, 1), "zklock stopped": (1, 0)}, found())
        one.run.signals.append(Sent(10.5, "guard", signal.SIGSTOP))
        self.assertEqual({"host cut off": (1, 0), "zklock stopped": (1, 0)}, found())

    def test_a_fault_beside_another_explains_no_end_of_what_it_did_not_strike(self):
        one = run(1, 10, 15, 1, ended=False, status=76)
        cut = Made("host cut off", 11.0, False, True, [], 15.1)
        beside = Made("zklock killed", 14.0, False, False, [], 14.5, beside=True)
        self.assertEqual([], report.ended_without_need([cut, beside], [one]))
        self.assertEqual(["needless"], kinds(report.ended_without_need([beside], [one])))

    def test_no_lease_however_short_ends_for_what_no_server_notices(self):
        one = run(1, 10, 30, 1, ended=False, status=76)
        one.timeout = 4
        clock = Made("host's clock set a day ahead", 28.0, True, False, [], 31)
        cut = Made("host cut off for T/10", 20.0, True, True, [], 25.9)
        self.assertEqual(["needless"], kinds(report.ended_without_need([cut, clock], [one])))
        cut.end = 26.1  # within the last T
        self.assertEqual([], report.ended_without_need([cut, clock], [one]))
        one.timeout = 10
        self.assertEqual(["needless"], kinds(report.ended_without_need([cut, clock], [one])))

    def test_a_set_may_hold_a_lock_before_its_command_begins(self):
        victim, following, of_a_set = run(1, 10, 15, 1), run(2, 17, 18, 2), run(3, 16, 17, 3)
        following.spawned = of_a_set.spawned = 11
        runs = [victim, following, of_a_set]
        servers = history(runs)
        self.assertAlmostEqual(1, report.succession(victim, runs, 15.0, servers))
        of_a_set.other_locks = ("/other",)
        self.assertIsNone(report.succession(victim, runs, 15.0, servers))
        of_a_set.lock = "/elsewhere"
        of_a_set.ended, of_a_set.record = 17, None
        self.assertAlmostEqual(2, report.succession(victim, runs, 15.0, servers))
        of_a_set.other_locks = (victim.lock,)
        self.assertIsNone(report.succession(victim, runs, 15.0, servers))
        of_a_set.ended = 14.9
        self.assertAlmostEqual(2, report.succession(victim, runs, 15.0, servers))

    def test_the_contender_of_a_pool_that_takes_another_lock_is_waited_for(self):
        victim, following = run(1, 10, 15, 1), run(3, 17, 18, 3)
        pool = run(2, 16.5, 19, 2, lock="/m", any_of=("/l", "/m"))
        following.spawned = pool.spawned = 11
        runs = [victim, following, pool]
        servers = history(runs)
        add(servers, Znode("/l/x-lock-2", 2, 9, 11, 16.6, label=pool.label))
        self.assertAlmostEqual(0.4, report.succession(victim, runs, 15.0, servers))
        pool.record = None  # the same if it waited in vain
        self.assertAlmostEqual(0.4, report.succession(victim, runs, 15.0, servers))
        pool.any_of = ()
        self.assertAlmostEqual(2, report.succession(victim, runs, 15.0, servers))

    def test_waits_are_counted_from_the_creation_of_the_contender(self):
        runs = [run(1, 10, 11, 1), run(2, 13, 14, 2), run(3, 30, 31, 3), idle(75)]
        servers = history(runs)
        for token, created in ((1, 9), (2, 10), (3, 11)):
            contender(servers, token).created = created
        self.assertEqual((2, 1), report.long_waits(runs, servers))

    def test_a_lock_is_free_while_a_pool_waits_and_no_command_runs(self):
        first, second = (run(number, begin, begin + 5, number, any_of=("/l", "/m"))
                         for number, begin in ((1, 10), (2, 15.5)))
        first.spawned, second.spawned = 9.9, 11
        servers = history([first, second])
        add(servers, Znode("/m/x-lock-2", 2, 1, 11, 15.5, label=second.label))
        found = report.free_while_waiting([first, second], servers)
        # /l from 15 to 15.5, and not before 10; under /m there was no command
        self.assertEqual([0.5], [round(gap, 3) for gap in found.gaps])
        self.assertAlmostEqual(4.5, found.waited)
        self.assertEqual(0, found.blocked)
        # A killed waiter no longer waits, but those after it do.
        killed = idle(-9, label="contender-0", signals=[Sent(14, "zklock", signal.SIGKILL)])
        add(servers, Znode("/l/x-lock-0", 0, 2, 9, 15.3, label=killed.label))
        found = report.free_while_waiting([killed, first, second], servers)
        self.assertAlmostEqual(5.5, found.waited)
        self.assertAlmostEqual(0.3, found.blocked)
        self.assertEqual([0.2], [round(gap, 3) for gap in found.gaps])

    def test_what_remains_without_a_cgroup_has_a_row(self):
        one = run(1, 10, 12, 1, may_remain=True)
        one.record.lives.append(Life(9, 10, 15, None, hard=True))
        fault = Made("zklock killed", 11.0, False, False, [Victim(one)], 15.1)
        self.assertEqual("| zklock killed | 1 | 1.00 s | 1 of 1 | 4.00 s |",
                         report.remains_table([fault]).splitlines()[-1])
        one.may_remain = False
        self.assertEqual("", report.remains_table([fault]))


class FaultsMade(unittest.TestCase):
    def test_a_fault_that_could_not_be_made_is_counted(self):
        faults = Faults(seed=1, crowd=None, ensemble=unittest.mock.Mock(), links=unittest.mock.Mock(),
                        tick=1, namespaces=True)

        def strike():
            with faults._fault("another leader elected"):
                pass
        for do, expected in (strike, 0), (lambda: None, 1), (strike, 1):
            faults._do_elect = do
            faults.make("elect")
            self.assertEqual(expected, faults.not_made["elect"])
        self.assertEqual(2, len(faults.made))


Victim = collections.namedtuple("Victim", "run")


if __name__ == "__main__":
    sys.exit(unittest.main())
