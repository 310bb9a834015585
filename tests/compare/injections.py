"""The faults: each is made in the same way for every tool, while a command is kept running."""

import dataclasses
import os
import random
import signal
import time

import histories

_GENTLE_HOLD = 6.0  # seconds that a command goes on in a fault that need not end it


@dataclasses.dataclass
class Made:
    """A fault that was made. `victim`: the number of the command that held the lock."""
    name: str
    begin: float
    victim: int
    end: float | None = None
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Kind:
    """`gentle`: a majority of the servers serves the holder, or soon does again, so that its command need
    not end."""
    title: str
    gentle: bool = False


# In the order of the table.
KINDS = {
    "stop_wrapper": Kind("wrapper stopped"),
    "stop_both": Kind("wrapper and command stopped"),
    "freeze_host": Kind("host frozen"),
    "kill_wrapper": Kind("wrapper killed"),
    "kill_command": Kind("command killed"),
    "cut_host": Kind("host cut off from the servers"),
    "cut_to_servers": Kind("packets to the servers lost"),
    "cut_from_servers": Kind("packets from the servers lost"),
    "kill_server": Kind("a server killed", gentle=True),
    "kill_leader": Kind("the leader killed", gentle=True),
    "membership": Kind("the leader removed, added again", gentle=True),
    "client_clock": Kind("host's clock a day ahead, a day back", gentle=True),
    "server_clocks": Kind("servers' clocks a day ahead, a day back", gentle=True),
    "slow_disk": Kind("the leader's disk stalls", gentle=True),
    "full_disk": Kind("the leader's disk is full", gentle=True),
}


class Faults:
    """`crowd`: the jobs and their records (compare.Crowd)."""

    def __init__(self, seed, tool, crowd, site, only):
        self._numbers = random.Random(f"{seed} faults")
        self._tool, self._crowd, self._site = tool, crowd, site
        self._only = only
        self.made = []

    def deck(self):
        """The faults of one round, in an order given by the seed, which is the same for all tools."""
        names = list(KINDS)
        self._numbers.shuffle(names)
        return [name for name in names if name not in self._tool.cannot
                and (not self._only or name in self._only)
                and (name != "freeze_host" or self._site.cgroups is not None)]

    def make(self, name):
        """Returns False if no command ran that the fault could strike."""
        kind = KINDS[name]
        # The command keeps running for a moment after a long fault, and ends by itself if nothing
        # has ended it.
        hold = _GENTLE_HOLD if kind.gentle else self._tool.span() + self._numbers.uniform(0, 1.5)
        victim = self._crowd.victim(self._numbers, hold)
        if victim is None:
            return False
        made = Made(name, histories.now(), victim.number)
        self.made.append(made)
        made.note = getattr(self, f"_do_{name}")(victim) or ""
        made.end = histories.now()
        self._crowd.release(victim)
        return True

    def _leader(self):
        """The leader, or None if the tool has no servers."""
        if self._tool.cluster is None:
            return None
        deadline = time.monotonic() + 60
        while (leader := self._tool.cluster.leader()) is None:
            if time.monotonic() > deadline:
                raise RuntimeError("there is no leader")
            time.sleep(0.1)
        return leader

    def _rest(self):
        time.sleep(self._tool.span())

    def _stop(self, pids):
        pids = [pid for pid in pids if pid is not None]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        self._rest()
        for pid in pids:
            _signal(pid, signal.SIGCONT)
        time.sleep(2)

    def _do_stop_wrapper(self, victim):
        self._stop([self._tool.wrapper(self._crowd.slot(victim))])

    def _do_stop_both(self, victim):
        self._stop([self._tool.wrapper(self._crowd.slot(victim)), victim.pid])

    def _do_freeze_host(self, victim):
        host = self._crowd.slot(victim).host
        self._site.cgroups.freeze(host, True)
        self._rest()
        self._site.cgroups.freeze(host, False)
        time.sleep(2)

    def _do_kill_wrapper(self, victim):
        pid = self._tool.wrapper(self._crowd.slot(victim))
        if pid is not None:
            _signal(pid, signal.SIGKILL)
        self._rest()
        time.sleep(2)

    def _do_kill_command(self, victim):
        _signal(victim.pid, signal.SIGKILL)
        time.sleep(3)

    def _cut(self, victim, *, to, back):
        host = self._crowd.slot(victim).host
        for server in self._site.servers:
            if to:
                self._site.links.cut(host, server)
            if back:
                self._site.links.cut(server, host)
        self._rest()
        self._site.links.mend_all()
        time.sleep(2)

    def _do_cut_host(self, victim):
        self._cut(victim, to=True, back=True)

    def _do_cut_to_servers(self, victim):
        self._cut(victim, to=True, back=False)

    def _do_cut_from_servers(self, victim):
        self._cut(victim, to=False, back=True)

    def _kill_server(self, server):
        cluster = self._tool.cluster
        cluster.kill(server)
        time.sleep(_GENTLE_HOLD + 1)
        cluster.start(server)

    def _do_kill_server(self, _):
        cluster = self._tool.cluster
        leader = self._leader()
        self._kill_server(self._numbers.choice([one for one in cluster.servers if one is not leader]))

    def _do_kill_leader(self, _):
        self._kill_server(self._leader())

    def _do_membership(self, _):
        cluster = self._tool.cluster
        leader = self._leader()
        cluster.remove_member(leader)
        time.sleep(_GENTLE_HOLD)
        cluster.add_member(leader)

    def _do_client_clock(self, victim):
        host = self._crowd.slot(victim).host
        for days in (1, -1, 0):
            self._site.clocks[host].set(days)
            time.sleep(_GENTLE_HOLD / 2)

    def _do_server_clocks(self, _):
        for days in (1, -1, 0):
            self._tool.cluster.set_clocks(days)
            time.sleep(_GENTLE_HOLD / 2)

    def _do_slow_disk(self, _):
        self._tool.disk(self._leader()).stall(_GENTLE_HOLD + 2)

    def _do_full_disk(self, _):
        cluster = self._tool.cluster
        leader = self._leader()
        disk = self._tool.disk(leader)
        disk.fill()
        if cluster is not None:
            cluster.use_up(leader)
        time.sleep(_GENTLE_HOLD)
        note = "" if leader is None or cluster.serves(leader) else "that server stopped serving"
        disk.empty()
        if leader is not None:
            # Restart the server, as an operator does after making room on the disk.
            cluster.kill(leader)
            cluster.start(leader)
        return note


def _signal(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
