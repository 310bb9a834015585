"""Runs contenders of all modes on several hosts against three servers, injects faults, and checks the
results. Called by scripts/torture."""

import argparse
import collections
import ctypes
import dataclasses
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from kazoo.security import ACL, Id, Permissions

import checker
import histories
import report
from cgroups import Cgroups
from crowd import Crowd, Reaper
from ensemble import RECONFIGURABLE, Ensemble, Server, class_path, member_line
from faults import Faults
from network import Links

_HOSTS = ["h1", "h2", "h3", "h4"]
_LOCKS = ["/torture/a", "/torture/b"]
_UNDELETABLE_LOCK = "/torture/undeletable"  # nobody may delete its contenders
_RESERVED_LOCKS = ["/torture/reserved", "/torture/reserved-too", "/torture/reserved-permits"]
_PERMIT_LOCK = "/torture/permits"
_POOL_LOCKS = [*_LOCKS, "/torture/c"]
_HISTORY_LOCK = _LOCKS[1]  # a history of its runs is kept
_INSIDE = "ZKLOCK_TORTURE_INSIDE"
_PR_SET_CHILD_SUBREAPER = 36
_LARGEST_TREE_END, _LARGEST_SUCCESSION = 0.2, 1.0
_BESIDE = 2  # how many threads make faults of processes while the others are made


def say(text):
    print(text, flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(prog="torture")
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--tick", type=int, default=500, help="the servers' tick, milliseconds")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings",
                        help="another line for the servers' configuration")
    parser.add_argument("--other-release", metavar="ROOT",
                        help="a root with another ZooKeeper, which server 2 has at first")
    parser.add_argument("--tls", action="store_true",
                        help="all contenders use TLS; only with namespaces")
    parser.add_argument("--network", choices=["namespaces", "proxies"], default=None)
    parser.add_argument("--only", action="append", metavar="FAULT", help="make only these faults")
    parser.add_argument("--mutation", action="store_true",
                        help="exit with 0 as soon as an overlap is found, with 1 if there is none")
    parser.add_argument("--keep", metavar="DIRECTORY", help="keep all records there")
    parser.add_argument("--record", metavar="FILE", help="append parameters and results to FILE")
    parser.add_argument("--total", metavar="FILE", help="add up the runs that FILE records, by source")
    parser.add_argument("--list", action="store_true", help="list the faults")
    parser.add_argument("--zklock")
    parser.add_argument("--recorder")
    parser.add_argument("--clock", type=os.path.abspath)
    return parser.parse_args()


def parse_run_of_its_own(parser, tick):
    """Adds what Site needs to the arguments of a program that has BUILD, and enters its namespaces."""
    parser.add_argument("--seed", type=int, default=1)
    parser.set_defaults(network=None, tls=False, settings=[], tick=tick)
    arguments = parser.parse_args()
    arguments.network = enter(arguments)
    stop_on_signals()
    arguments.zklock = f"{arguments.build}/zklock"
    arguments.recorder = f"{arguments.build}/torture_recorder"
    arguments.clock = f"{arguments.build}/libtest_clock.so"
    return arguments


def can_have_namespaces():
    probe = ("import os, fcntl, struct; t = os.open('/dev/net/tun', os.O_RDWR);"
             "fcntl.ioctl(t, 0x400454ca, struct.pack('16sH22x', b'probe', 0x1001))")
    return (shutil.which("ip") is not None and shutil.which("unshare") is not None
            and subprocess.run([*_UNSHARE, sys.executable, "-c", probe],
                               stderr=subprocess.DEVNULL).returncode == 0)


# Everything started inside ends when the first process inside ends, for whatever reason.
_UNSHARE = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]


def enter(arguments):
    """Re-executes this program in namespaces if possible. Returns the kind of network to use."""
    if os.environ.get(_INSIDE):
        return os.environ[_INSIDE]
    network = arguments.network or ("namespaces" if can_have_namespaces() else "proxies")
    if network == "proxies":
        if arguments.tls:
            sys.exit("torture: --tls needs namespaces: run it as root")
        return network
    if arguments.seed is None:
        arguments.seed = random.SystemRandom().randrange(1_000_000)
    environment = {**os.environ, _INSIDE: network}
    command = [*_UNSHARE, sys.executable, *sys.argv, "--seed", str(arguments.seed)]
    os.execvpe(command[0], command, environment)


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def make_namespaces(directory, tick, settings, hosts):
    """Returns (links, servers, the servers' addresses as the hosts see them)."""
    address = {f"s{number}": f"10.77.0.{number}" for number in (1, 2, 3)}
    nodes = ["director=10.77.0.100", *(f"{name}={ip}" for name, ip in address.items()),
             *(f"{host}=10.77.0.{10 + index}" for index, host in enumerate(hosts))]
    links = Links(["namespaces", *nodes])
    quorum = [member_line(number, address[f"s{number}"], 2888, 3888, 2181) for number in (1, 2, 3)]
    servers = [Server(number, f"{directory}/s{number}", (address[f"s{number}"], 2181), quorum,
                      (address[f"s{number}"], 2181), tick, [*RECONFIGURABLE, *settings])
               for number in (1, 2, 3)]
    addresses = {(host, server.name): server.address for host in hosts for server in servers}
    return links, servers, addresses


def make_proxies(directory, tick, settings, hosts):
    numbers = (1, 2, 3)
    ports = iter(free_ports(3 * 3 + len(hosts) * 3 + 6))
    own = {number: (next(ports), next(ports), next(ports)) for number in numbers}
    arguments, addresses, servers = ["proxies"], {}, []
    for host in hosts:
        for number in numbers:
            port = next(ports)
            arguments.append(f"{host}>s{number}={port}:{own[number][0]}")
            addresses[host, f"s{number}"] = ("127.0.0.1", port)
    for number in numbers:
        quorum = []
        for other in numbers:
            port = own[other][1]
            if other != number:
                # The path from a follower to its leader. Votes are sent directly.
                port = next(ports)
                arguments.append(f"s{number}>s{other}={port}:{own[other][1]}")
            quorum.append(f"server.{other}=127.0.0.1:{port}:{own[other][2]}")
        address = ("127.0.0.1", own[number][0])
        servers.append(Server(number, f"{directory}/s{number}", address, quorum, address, tick,
                              settings))
    return Links(arguments), servers, addresses


# Key and certificate of the servers at these addresses, and of the authority that signed it.
_CERTIFY = """
key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
openssl req -x509 $key -keyout ca.key -out ca.pem -subj /CN=ca -days 9
openssl req $key -keyout server.key -out server.csr -subj /CN=server
echo "subjectAltName=$1" >names
openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 9 -extfile names \\
  -out server.crt
cat server.key server.crt >server.pem
"""
_TLS_PORT = 2281


def use_tls(directory, servers, addresses):
    """Gives the servers a port with TLS, and makes every zklock use it."""
    names = ",".join(f"IP:{server.address[0]}" for server in servers)
    subprocess.run(["sh", "-ec", _CERTIFY, "sh", names], cwd=directory, check=True,
                   stderr=subprocess.DEVNULL)
    for server in servers:
        server.add_settings([
            "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
            f"secureClientPort={_TLS_PORT}", f"ssl.keyStore.location={directory}/server.pem",
            f"ssl.trustStore.location={directory}/ca.pem", "ssl.clientAuth=none"])
    os.environ["ZKLOCK_TLS_CA"] = f"{directory}/ca.pem"
    return {key: (host, _TLS_PORT) for key, (host, _) in addresses.items()}


class Site:
    """Hosts, servers, what connects them, and the contenders. `crowd`: arguments of Crowd."""

    def __init__(self, arguments, network, directory, hosts, **crowd):
        os.makedirs(f"{directory}/runs")
        for path in (directory, f"{directory}/runs"):
            os.chmod(path, 0o711)  # some contenders run as another user
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        make = make_namespaces if network == "namespaces" else make_proxies
        self.links, servers, addresses = make(directory, arguments.tick, arguments.settings, hosts)
        if arguments.tls:
            addresses = use_tls(os.path.abspath(directory), servers, addresses)
        self.reaper = Reaper()
        self.ensemble = Ensemble(servers, self.links, self.reaper, arguments.clock)
        self.crowd = Crowd(zklock=arguments.zklock, recorder=arguments.recorder,
                           clock=arguments.clock, hosts=hosts, addresses=addresses, links=self.links,
                           reaper=self.reaper, directory=f"{directory}/runs", seed=arguments.seed,
                           **crowd)

    def end(self, keep=False):
        self.crowd.kill_all()
        try:
            for server in self.ensemble.servers:
                self.ensemble.end(server)
            self.ensemble.remove_disks(keep)
        finally:
            time.sleep(0.3)
            self.reaper.stop()


def source():
    """Returns the source from which the programs were built: git's hash of src/."""
    if subprocess.run(["git", "diff", "--quiet", "HEAD", "--", "src"], check=False).returncode != 0:
        sys.exit("torture: --record: src/ has changes that are not committed")
    return subprocess.run(["git", "rev-parse", "--short=12", "HEAD:src"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


def stop_on_signals():
    def stop(number, _):
        raise KeyboardInterrupt(f"signal {number}")
    # By default, these do not end the first process of a PID namespace.
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, stop)


class Torture:
    def __init__(self, arguments, network, directory):
        self._arguments = arguments
        self._directory = directory
        tick = arguments.tick / 1000
        timeouts = [max(seconds, 2 * tick) for seconds in (4, 5, 6)]
        if tick > 1:
            timeouts = [2 * tick, 3 * tick, 10.0]
        self._longest_timeout = max(timeouts)
        self._site = Site(
            arguments, network, directory, _HOSTS,
            locks=[*_LOCKS, _UNDELETABLE_LOCK], reserved_locks=_RESERVED_LOCKS,
            history_lock=_HISTORY_LOCK, permit_lock=_PERMIT_LOCK,
            pool_locks=_POOL_LOCKS, timeouts=timeouts, slots_per_host=3)
        self._crowd, self._ensemble = self._site.crowd, self._site.ensemble
        self._cgroups = Cgroups(directory, arguments.recorder)
        self._namespaces = network == "namespaces"
        releases = None
        if arguments.other_release:
            server = self._ensemble.servers[1]
            releases = [server.jars, class_path(arguments.other_release)]
            server.jars = releases[1]
        self._looks = []  # (moment, the history of runs then)
        common = {"crowd": self._crowd, "ensemble": self._ensemble, "links": self._site.links,
                  "tick": tick, "namespaces": self._namespaces}
        self._faults = Faults(seed=arguments.seed, releases=releases,
                              cgroups=self._cgroups if self._cgroups.root else None, **common)
        self._beside = [] if arguments.only else [
            Faults(seed=f"{arguments.seed} {number}", beside=self._faults, **common)
            for number in range(_BESIDE)]

    def run(self):
        """Returns the exit status."""
        self._site.reaper.start()
        if self._namespaces:
            try:
                self._ensemble.give_disks()
            except RuntimeError as error:
                say(f"torture: no faults of disks: {error}")
        unknown = set(self._arguments.only or []) - set(self._faults.all_names())
        if unknown:
            say(f"torture: no such fault, or not here: {', '.join(sorted(unknown))}")
            return 64
        if not self._ensemble.make_whole():
            say("torture: the servers did not start")
            return 2
        with self._ensemble.client() as client:
            client.create(_UNDELETABLE_LOCK, makepath=True, acl=[
                ACL(Permissions.ALL & ~Permissions.DELETE, Id("world", "anyone"))])
        began = time.monotonic()
        self._crowd.start()
        over = threading.Event()
        beside = [threading.Thread(target=one.make_until, args=[over.is_set]) for one in self._beside]
        for thread in beside:
            thread.start()
        try:
            found = self._make_faults(began + self._arguments.minutes * 60, began)
            took = time.monotonic() - began
        finally:
            over.set()
            for thread in beside:
                thread.join()
        if self._arguments.mutation:
            return self._report_mutation(found, took)
        self._drain()
        return self._judge()

    def _make_faults(self, until, began):
        """Makes faults until the time is up. With a mutation, returns the first overlaps found."""
        time.sleep(1)
        while time.monotonic() < until:
            name = self._faults.next()
            if self._arguments.only and name not in self._arguments.only:
                continue
            say(f"{time.monotonic() - began:7.1f} s  {name.replace('_', ' ')}")
            if not self._faults.make(name):
                self._faults.broken.append(checker.Violation("servers", "they did not come back",
                                                             histories.now()))
                break
            self._look_at_history()
            found = self._overlaps()
            if found:
                for violation in found:
                    say(f"           {violation}")
                if self._arguments.mutation:
                    return found
        return []

    def _look_at_history(self):
        """Reads the history at most every 30 seconds: it covers a longer time."""
        if self._looks and histories.now() < self._looks[-1][0] + 30:
            return
        moment = histories.now()
        entries = self._crowd.run_history(_HOSTS[0])
        if entries is not None:
            self._looks.append((moment, entries))

    def _overlaps(self):
        """Returns the overlaps among finished runs and runs in progress."""
        runs = [contender.run for contender in self._crowd.over]
        for contender, record in self._crowd.running():
            runs.append(checker.Run(**{**vars(contender.run), "record": record}))
        return checker.overlaps(runs)

    def _report_mutation(self, found, took):
        if found:
            say(f"torture: mutation found after {took:.0f} s (seed {self._arguments.seed})")
        else:
            say(f"torture: mutation NOT found in {took:.0f} s (seed {self._arguments.seed})")
        return 0 if found else 1

    def _drain(self):
        """Waits until every contender has ended, or should have, and all sessions have expired."""
        self._crowd.stop()
        deadline = time.monotonic() + 60
        while self._crowd.snapshot() and time.monotonic() < deadline:
            time.sleep(0.1)
        for contender in self._crowd.snapshot():
            with open(contender.error_path, errors="replace") as file:
                contender.run.messages = file.read()[-2000:]
            contender.read_record()
        # The znode of a killed contender is deleted after its timeout and a tick.
        time.sleep(self._longest_timeout + 2 * self._arguments.tick / 1000 + 1)

    def _judge(self):
        self._ensemble.make_whole()
        self._crowd.read_records_again()
        runs = self._crowd.runs()
        self._looks.append((histories.now(), self._crowd.run_history(_HOSTS[0]) or []))
        for server in self._ensemble.servers:
            self._ensemble.end(server, signal.SIGTERM)
        history = histories.ServerHistory.read([server.logs() for server in self._ensemble.servers],
                                               "/torture/")
        struck = self._faults.struck()
        violations = checker.check(runs, history, struck) + self._faults.broken
        for moment, entries in self._looks:
            violations += checker.run_history(runs, _HISTORY_LOCK, entries, moment, history,
                                              checker.trouble_of(struck))
        violations += [checker.Violation("cgroup", f"{path} is left", 0)
                       for path in self._cgroups.left()]
        made = self._faults.made
        self._write_history(runs, history)
        violations += report.ended_without_need(made, runs)
        for run, tree, following in report.slow_ends(made, runs, history):
            if tree > _LARGEST_TREE_END:
                violations.append(checker.Violation(
                    "slow", f"run {run.number}: its tree was dead only {tree:.3f} s after the KILL",
                    run.last()))
            if following is not None and following > _LARGEST_SUCCESSION:
                violations.append(checker.Violation(
                    "slow", f"run {run.number}: next began only {following:.3f} s after the KILL",
                    run.last()))
        say("")
        rows = report.rows_of(made, runs, history, violations)
        say(report.table(rows))
        remains = report.remains_table(made)
        if remains:
            say("\n" + remains)
        commands = sum(run.record is not None for run in runs)
        say(f"\n{len(runs)} contenders, {commands} commands, {report.count(rows)}, seed"
            f" {self._arguments.seed}, tick {self._arguments.tick} ms")
        half, double = report.long_waits(runs, history)
        say(f"{half} commands began after a wait in the queue of more than T/2, {double} of more"
            " than 2 T")
        states = {entry["token"]: entry["state"] for _, entries in self._looks for entry in entries}
        lost = list(states.values()).count("lost")
        say(f"the history of {_HISTORY_LOCK} showed {len(states)} runs, {lost} of them lost")
        not_made = {name: times for name, times in self._faults.not_made.items() if times}
        if not_made:
            say("drawn and not made: " + ", ".join(f"{name} ({times})"
                                                   for name, times in sorted(not_made.items())))
        if self._arguments.only and not made:
            violations.append(checker.Violation("driver", "no fault was made", 0))
        for server in self._ensemble.servers:
            if server.has_diverged():
                say(f"DIVERGED  {server.name} served other data than the others, by its own log: what it"
                    " served is no evidence against zklock")
        for violation in violations:
            say(f"VIOLATION  {violation}")
        if self._arguments.record:
            with open(self._arguments.record, "a") as file:
                print(json.dumps({
                    "source": self._arguments.source, "seed": self._arguments.seed, "minutes": self._arguments.minutes,
                    "faults": {name: vars(row) for name, row in rows.items()}, "contenders": len(runs),
                    "commands": commands,
                    "violations": collections.Counter(one.kind for one in violations)}), file=file)
        say("torture: " + (f"{len(violations)} violations" if violations else "all promises kept"))
        return 1 if violations else 0

    def _write_history(self, runs, history):
        """Writes the history to a file, to be examined with --keep."""
        with open(f"{self._directory}/history.jsonl", "w") as file:
            for kind, values in (("fault", self._faults.made), ("run", runs),
                                 ("znode", history.znodes.values())):
                for value in values:
                    fields = dataclasses.asdict(value) if kind != "fault" else {
                        **vars(value), "victims": [one.run.number for one in value.victims]}
                    print(json.dumps({"kind": kind, **fields}, default=sorted), file=file)

    def end(self):
        for contender in self._crowd.snapshot():
            if contender.is_alive():
                contender.send("zklock", signal.SIGKILL)
                contender.send("zklock", signal.SIGCONT)
        self._site.end(keep=self._arguments.keep is not None)
        self._cgroups.remove()


def main():
    arguments = parse_arguments()
    if arguments.list:
        faults = Faults(seed=0, crowd=None, ensemble=None, links=None, tick=1, namespaces=True,
                        cgroups=True, releases=[])
        print("\n".join(sorted(faults.all_names())))
        return 0
    if arguments.total:
        with open(arguments.total) as file:
            print(report.total([json.loads(line) for line in file]))
        return 0
    if arguments.record and (arguments.only or arguments.settings or arguments.tls
                             or arguments.other_release or arguments.mutation):
        sys.exit("torture: --record: only runs with all faults, and without other settings, add up")
    arguments.source = arguments.record and source()
    network = enter(arguments)
    if arguments.seed is None:
        arguments.seed = random.SystemRandom().randrange(1_000_000)
    stop_on_signals()
    directory = arguments.keep or tempfile.mkdtemp(prefix="zklock-torture-")
    say(f"torture: seed {arguments.seed}, {arguments.minutes:g} minutes, tick {arguments.tick} ms,"
        f" {network}")
    torture = Torture(arguments, network, directory)
    try:
        return torture.run()
    finally:
        torture.end()
        if not arguments.keep:
            shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
