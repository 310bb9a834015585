#!/usr/bin/python3
"""Runs the recipes of zklock-recipes(7) as they are printed.

    recipes.py ZKLOCK SERVERS [NAME...]

Without NAME, runs all of them, and the page must have no other. Each recipe has LOCKs below a chroot of its
own. The programs that its commands need are stubs, which record that they ran. A recipe that does not do
what the page says raises an exception.
"""

import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "../../../man/zklock-recipes.7")
CONFLICT = 75
PATIENCE = 60  # seconds
used = set()  # names of blocks

STUB = """#!/bin/sh
echo "$(basename "$0") $*" >>"$RAN"
"""

# Records its run, waits until the file NAME.gate is gone, and exits with the status in NAME.status.
GATED = STUB + """
while [ -e "$0.gate" ]; do sleep 0.02; done
exit "$(cat "$0.status" 2>/dev/null || echo 0)"
"""

PSQL = """#!/usr/bin/python3
import re, sqlite3, sys
variables, file = {}, None
words = iter(sys.argv[1:])
for word in words:
    if word == "-v":
        name, _, value = next(words).partition("=")
        variables[name] = value
    elif word == "-f":
        file = next(words)
sql = re.sub(r":'(\\w+)'", r":\\1", open(file).read())
variables["token"] = int(variables["token"])
with sqlite3.connect("store.db") as store:
    print("UPDATE", store.execute(sql, variables).rowcount)
"""

# Stores an object in the file `object`: its ETag, token and body.
AWS = """#!/usr/bin/python3
import argparse, hashlib, json, os, sys
parser = argparse.ArgumentParser()
for name in ("service", "operation"):
    parser.add_argument(name)
for name in ("bucket", "key", "query", "output", "body", "metadata", "if-match"):
    parser.add_argument("--" + name)
given = parser.parse_args()
stored = json.load(open("object"))
if given.operation == "head-object":
    assert given.query == "[ETag, Metadata.token]" and given.output == "text"
    print(stored["etag"], stored["token"], sep="\\t")
    if os.path.exists("overtaken"):
        stored["etag"] = '"changed-since"'
        json.dump(stored, open("object", "w"))
else:
    if given.if_match != stored["etag"]:
        sys.exit("An error occurred (PreconditionFailed)")
    token = given.metadata.removeprefix("token=")
    json.dump({"etag": '"of-' + token + '"', "token": token}, open("object", "w"))
"""

# Like sudo by default: none of the caller's variables, and the target user's home directory.
SUDO = """#!/bin/sh
exec env -i PATH="$PATH" HOME="$ROOTS_HOME" RAN="$RAN" "$@"
"""


def block(name):
    """Returns the literal block after the mark of `name`, as readers see it."""
    used.add(name)
    with open(PAGE, encoding="utf-8") as page:
        found = re.search(rf'\.\\" recipe: {name}\n\.Bd -literal\n(.*?)\.Ed\n', page.read(), re.S)
    assert found, f"the page has no recipe {name}"
    text = found[1].replace("\\-", "-").replace("\\(aq", "'").replace("\\&", "")
    return text.replace("\\e", "\\")


def jobs(name):
    """Returns the shell lines of each job in a YAML file of GitLab, GitHub or Gitea."""
    document = yaml.safe_load(block(name))
    if "jobs" in document:
        return {job: [step["run"] for step in steps["steps"] if "run" in step]
                for job, steps in document["jobs"].items()}
    return {job: keys["script"] for job, keys in document.items()}


def stages(name):
    """Returns the shell lines of each stage in a Jenkinsfile."""
    lines = re.findall(r"sh '(.*)'", block(name))
    return dict(zip(["reserve", "smoke-test", "release"], [[line] for line in lines]))


def unit(name):
    """Returns the settings of a systemd unit, as lists, since one may occur several times."""
    settings = {}
    for line in block(name).splitlines():
        key, equals, value = line.partition("=")
        if equals:
            settings.setdefault(key, []).append(value)
    return settings


class World:
    """The hosts, the programs in their PATH and the servers of one recipe."""

    def __init__(self, zklock, servers, name):
        self.zklock = os.path.abspath(zklock)
        self.directory = tempfile.mkdtemp(prefix="zklock-recipe.")
        self.bin = os.path.join(self.directory, "bin")
        os.mkdir(self.bin)
        self.servers = f"{servers}/recipe-{name}-{uuid.uuid4()}"
        self.environment = {
            "PATH": f"{self.bin}:{os.path.dirname(self.zklock)}:/usr/bin:/bin",
            "HOME": self.directory, "ZKLOCK_SERVERS": self.servers,
            "RAN": os.path.join(self.directory, "ran"), "ROOTS_HOME": self.directory}
        self.started = []

    def write(self, name, text, mode=0o755):
        # A program whose name contains a slash is created relative to the working directory.
        path = os.path.join(self.bin if "/" not in name and mode == 0o755 else self.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def program(self, name, text=STUB):
        return self.write(name, text)

    def gate(self, name):
        path = self.write(name, GATED)
        open(path + ".gate", "w", encoding="utf-8").close()
        return path

    def start(self, words, **variables):
        argv = ["sh", "-c", words] if isinstance(words, str) else words
        child = subprocess.Popen(argv, cwd=self.directory, text=True, stdin=subprocess.DEVNULL,
                                 env={**self.environment, **variables}, start_new_session=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.started.append(child)
        return child

    def run(self, words, status=0, **variables):
        """Runs the words until they end, and returns the output."""
        return self.end(self.start(words, **variables), status)

    def end(self, child, status=0):
        out, err = child.communicate(timeout=PATIENCE)
        assert child.returncode == status, f"{child.args}: {child.returncode}\n{out}{err}"
        return out + err

    def ran(self):
        try:
            with open(self.environment["RAN"], encoding="utf-8") as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []

    def await_(self, what, condition):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"never: {what}"
            time.sleep(0.02)

    def queue(self, lock):
        """Returns what inspect prints about each contender."""
        # Before the first run, a message says that there is no chroot.
        out, _ = self.start(["zklock", "inspect", "--json", lock]).communicate(timeout=PATIENCE)
        locks = json.loads(out)
        return locks[0]["contenders"] if locks else []

    def await_waiting(self, lock, count=1):
        self.await_(f"{count} wait for {lock}", lambda: sum(
            contender["state"] == "waiting" for contender in self.queue(lock)) == count)

    def await_runs(self, count):
        self.await_(f"{count} commands have run", lambda: len(self.ran()) == count)

    def verify(self, name):
        """Checks that systemd accepts the unit."""
        text = block(name)
        for path in re.findall(r"^ExecStart=(\S+)", text, re.M):
            text = text.replace(path, "/usr/bin/true")
        path = self.write(name + ".service", text, 0o644)
        said = self.run(["systemd-analyze", "verify", "--man=no", path])
        assert name not in said, said

    def exec_line(self, line, host):
        words = shlex.split(line.replace("%m", f"id-of-{host}").replace("%H", host))
        return [os.path.basename(words[0]), *words[1:]]

    def close(self):
        for child in self.started:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.communicate(timeout=PATIENCE)
        shutil.rmtree(self.directory)


def of_cron(line):
    return line.split(None, 5)[5]


def conf(world):
    path = world.write("zklock.conf", block("conf"), 0o644)
    del world.environment["ZKLOCK_SERVERS"]
    out = world.run(["zklock", "--print-config"], ZKLOCK_CONFIG=path)
    assert re.search(r"^servers = zk1:2181,zk2:2181,zk3:2181\b.*zklock.conf", out, re.M), out


def cron(world):
    world.write("./backup.sh", STUB)
    hosts = [world.start(of_cron(block("cron"))) for _ in range(5)]
    said = [world.end(host) for host in hosts] + [world.run(of_cron(block("cron")))]
    assert world.ran() == ["backup.sh "], world.ran()
    assert not any(said), said
    assert world.run(block("cron-check")).startswith("OK - ")


def cron_retry(world):
    report = world.gate("./report.sh")
    os.remove(report + ".gate")
    world.write("./report.sh.status", "1", 0o644)
    world.run(of_cron(block("cron-retry")), 1)
    world.write("./report.sh.status", "0", 0o644)
    for _ in range(3):
        world.run(of_cron(block("cron-retry")))
    assert len(world.ran()) == 2, world.ran()  # the failure, and the success


def pipeline(world, lines, variable, also):
    """Runs two pipelines; `lines` has the shell lines of each job."""
    world.write("./smoke-test.sh", STUB)
    first, second = ({variable: f"pipeline-{n}", **also} for n in (1, 2))
    job = {name: "\n".join(commands) for name, commands in lines.items()}
    world.run(job["reserve"], **first)
    other = world.start(job["reserve"], **second)
    world.await_waiting("/ci/staging")
    world.run(job["smoke-test"], **first)
    world.run(job["smoke-test"], CONFLICT, **second)
    world.run(job["release"], **first)
    world.end(other)
    world.run(job["smoke-test"], CONFLICT, **first)
    world.run(job["release"], **first)
    world.run(job["smoke-test"], **second)
    world.run(job["release"], **second)
    assert len(world.ran()) == 2, world.ran()
    world.run(["zklock", "inspect", "-q", "/ci/staging"])


def gitlab_pipeline(world):
    pipeline(world, jobs("gitlab-pipeline"), "CI_PIPELINE_ID", {"CI_PIPELINE_URL": "https://x/1"})


def github_pipeline(world):
    pipeline(world, jobs("github-pipeline"), "GITHUB_RUN_ID", {"GITHUB_REPOSITORY": "a/b"})


def jenkins_pipeline(world):
    pipeline(world, stages("jenkins-pipeline"), "BUILD_TAG", {"BUILD_URL": "https://x/1"})


def supersede(world, line, status):
    """Checks that the second of three deployments is superseded, and ends with `status`."""
    make = world.gate("make")
    variables = {"CI_JOB_URL": "u", "GITHUB_RUN_ID": "7", "BUILD_URL": "u"}
    running = world.start(line, **variables)
    world.await_runs(1)
    superseded = world.start(line, **variables)
    world.await_waiting("/ci/deploy")
    newest = world.start(line, **variables)
    assert "superseded" in world.end(superseded, status)
    os.remove(make + ".gate")
    world.end(running)
    world.end(newest)
    assert world.ran() == ["make deploy"] * 2, world.ran()


def gitlab_supersede(world):
    job = yaml.safe_load(block("gitlab-supersede"))["deploy"]
    supersede(world, "\n".join(job["script"]), job["allow_failure"]["exit_codes"])


def github_supersede(world):
    supersede(world, "\n".join(jobs("github-supersede")["deploy"]), 0)


def jenkins_supersede(world):
    line, = re.findall(r"script: '(.*)'", block("jenkins-supersede"))
    status, = re.findall(r"status == (\d+)", block("jenkins-supersede"))
    supersede(world, line, int(status))


def freeze(world):
    deploy = "zklock exclusive /ci/deploy -- make deploy"
    make = world.gate("make")
    running = world.start(deploy)
    world.await_runs(1)
    waiting = world.start(deploy)
    world.await_waiting("/ci/deploy")
    frozen = world.start(block("freeze"))
    assert "incident 4711" in world.end(waiting, CONFLICT)
    assert running.poll() is None
    os.remove(make + ".gate")
    world.end(running)
    world.end(frozen)
    later = world.start(deploy)
    world.await_waiting("/ci/deploy")
    until = world.queue("/ci/deploy")[0]["reservation"]["until"]
    time.sleep(0.01)
    world.run(block("freeze"))
    assert world.queue("/ci/deploy")[0]["reservation"]["until"] > until
    assert "incident 4711" in world.run(block("thaw"))
    world.end(later)
    assert len(world.ran()) == 2, world.ran()


def reboot(world):
    world.program("systemctl")
    for name in ("reboot-before", "reboot-after"):
        world.verify(name)
    reserve, down = unit("reboot-before")["ExecStart"]
    done, = unit("reboot-after")["ExecStart"]
    for host in ("db1", "db2"):
        world.run(world.exec_line(reserve, host))
        world.run(world.exec_line(down, host))
    third = world.start(world.exec_line(reserve, "db3"))
    world.await_waiting("/reboot/rack1")
    assert "reboot of db2" in world.run(["zklock", "inspect", "/reboot/rack1"])
    world.run(world.exec_line(done, "db1"))
    world.end(third)
    world.run(world.exec_line(done, "db1"), int(unit("reboot-after")["SuccessExitStatus"][0]))
    assert world.ran() == ["systemctl reboot"] * 2, world.ran()


def daemon(world):
    world.verify("daemon")
    world.gate("example")
    line, = unit("daemon")["ExecStart"]
    line = line.replace("/usr/bin/example", "example")
    first = world.start(world.exec_line(line, "db1"))
    world.await_runs(1)
    second = world.start(world.exec_line(line, "db2"))
    world.await_waiting("/svc/example")
    assert [one["label"] for one in world.queue("/svc/example")] == ["db1", "db2"]
    first.terminate()
    world.end(first, 128 + 15)
    world.await_runs(2)
    second.terminate()
    world.end(second, 128 + 15)


def turns(world):
    world.write("./flash.sh", STUB)
    world.run(block("turn-begin"), SESSION="agent-1")
    until = world.queue("/device/board1")[0]["reservation"]["until"]
    impatient = block("turn-begin").replace("--wait 60s", "--wait 100ms")
    assert "reserved for agent-1" in world.run(impatient, CONFLICT, SESSION="agent-2")
    other = world.start(block("turn-begin"), SESSION="agent-2")
    world.await_waiting("/device/board1")
    world.run(block("turn-command"), SESSION="agent-1")
    assert world.queue("/device/board1")[0]["reservation"]["until"] > until
    world.run(block("turn-end"), SESSION="agent-1")
    world.end(other)
    world.run(block("turn-command"), SESSION="agent-2")
    world.run(block("turn-end"), SESSION="agent-2")
    assert len(world.ran()) == 2, world.ran()
    world.run(block("turn-person") + "zklock inspect --mine -q /device/board1", USER="alice")
    world.await_("the shell's end releases", lambda: not world.queue("/device/board1"))


def readers(world):
    read, write = block("readers").splitlines()
    gate = world.gate("tar")
    world.write("./update-tree.sh", STUB)
    copies = [world.start(read) for _ in range(2)]
    world.await_runs(2)
    writer = world.start(write)
    world.await_waiting("/data/tree")
    later = world.start(read)
    world.await_waiting("/data/tree", 2)
    os.remove(gate + ".gate")
    for child in (*copies, writer, later):
        world.end(child)
    assert [line.split()[0] for line in world.ran()] == ["tar", "tar", "update-tree.sh", "tar"]


def readers_both(world):
    index = world.gate("./build-index.sh")
    build = world.start(block("readers-both"))
    world.await_runs(1)
    world.run("zklock read -n /data/tree -- true")
    world.run("zklock write -n /data/tree -- true", CONFLICT)
    world.run("zklock read -n /data/index -- true", CONFLICT)
    os.remove(index + ".gate")
    world.end(build)


def flock(world):
    """Checks that each row does the same as flock: on a free lock, and on one that another command holds."""
    with open(PAGE, encoding="utf-8") as page:
        rows = re.findall(r"^\.It (flock .*)\n(zklock .*)$", page.read(), re.M)
    assert len(rows) == 5, rows
    world.write("./job", STUB)
    file = world.write("lock", "", 0o644)
    gate = world.gate("hold")
    plain = [[text.replace("\\-", "-").replace("\\(aq", "'").replace("/nfs/lock", file)
              .replace(" 10 ", " 1 ") for text in row] for row in rows]
    for row in plain:
        for line in row:
            world.run(line)
    assert len(world.ran()) == 2 * len(rows), world.ran()
    holders = [world.start(["flock", file, gate]), world.start(["zklock", "write", "/job", "--", gate])]
    world.await_runs(2 * len(rows) + 2)
    for row in plain:
        waits = not re.search(" -[nw] ", row[0])
        children = [world.start(line) for line in row]
        if waits:
            world.await_waiting("/job")
            for child in children:
                assert child.poll() is None
                os.killpg(child.pid, signal.SIGTERM)
                child.communicate(timeout=PATIENCE)
        else:
            for child in children:
                world.end(child, 1)
    assert len(world.ran()) == 2 * len(rows) + 2, world.ran()
    os.remove(gate + ".gate")
    for child in holders:
        world.end(child)
    world.run(block("flock-part"))
    assert len(world.ran()) == 2 * len(rows) + 3, world.ran()


def fence_sql(world):
    world.program("psql", PSQL)
    world.write("publish.sql", block("fence-sql"), 0o644)
    with sqlite3.connect(os.path.join(world.directory, "store.db")) as store:
        store.execute("CREATE TABLE report (id INTEGER, body TEXT, token INTEGER)")
        store.execute("INSERT INTO report VALUES (1, '', 0)")
        store.commit()
        world.run(block("fence-sql-run"))
        (body, token), = store.execute("SELECT body, token FROM report")
        assert body and token > 0, (body, token)
        store.execute("UPDATE report SET body = 'of a later holder', token = ?", (token + 2 ** 40,))
        store.commit()
        world.run(block("fence-sql-run"), 1)
        assert list(store.execute("SELECT body FROM report")) == [("of a later holder",)]


def fence_object(world):
    world.program("aws", AWS)
    world.write("publish.sh", block("fence-object"), 0o644)

    def store(token):
        world.write("object", json.dumps({"etag": f'"of-{token}"', "token": token}), 0o644)

    def stored():
        with open(os.path.join(world.directory, "object"), encoding="utf-8") as file:
            return json.load(file)["token"]

    store("0")
    world.run(block("fence-object-run"))
    token = stored()
    assert int(token) > 0
    for later in (str(int(token) + 2 ** 40), "None"):  # "None": there is no token
        store(later)
        assert world.start(block("fence-object-run")).wait(PATIENCE) != 0
        assert stored() == later
    store("1")
    world.write("overtaken", "", 0o644)
    world.run(block("fence-object-run"), 1)
    assert stored() == "1"


def container(world):
    world.write("./import.sh", "#!/bin/sh\necho pid $$ of $(cat /proc/1/comm) >>\"$RAN\"\n")
    lines = dict(line.split(" ", 1) for line in block("container").splitlines())
    assert lines["ENV"] == "ZKLOCK_SERVERS=zk1:2181,zk2:2181,zk3:2181"
    words = json.loads(lines["ENTRYPOINT"]) + json.loads(lines["CMD"])
    world.run(words)
    namespace = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() == 0:  # the first process of its namespace
        world.run([*namespace, *words])
        assert world.ran()[-1].endswith(" of zklock"), world.ran()


def sudo(world):
    world.program("sudo", SUDO)
    world.write("./backup.sh", STUB)
    os.mkdir(os.path.join(world.directory, ".config"))
    world.write(".config/zklock.conf", f"servers = {world.servers}\n", 0o644)
    world.run(block("sudo"))
    assert world.ran() == ["backup.sh "], world.ran()


def logs(world):
    world.write("./backup.sh", STUB)
    file = os.path.join(world.directory, "zklock.json")
    holder = world.start(block("logs").replace("/var/log/zklock.json", file)
                         .replace("./backup.sh", "sleep 1000"))
    world.await_("it holds", lambda: any(one["state"] == "held" for one in
                                         world.queue("/jobs/backup")))
    world.run(["zklock", "release", "--holders", "--force", "--yes", "/jobs/backup"])
    world.end(holder, 76)
    world.run(block("logs").replace("/var/log/zklock.json", file))
    lost = world.run(block("logs-read").replace("/var/log/zklock.json", file)).splitlines()
    assert len(lost) == 1 and lost[0].endswith("/jobs/backup\tremoved"), lost


RECIPES = {function.__name__.replace("_", "-"): function for function in (
    conf, cron, cron_retry, gitlab_pipeline, github_pipeline, jenkins_pipeline, gitlab_supersede,
    github_supersede, jenkins_supersede, freeze, reboot, daemon, turns, readers, readers_both, flock,
    fence_sql, fence_object, container, sudo, logs)}


def main():
    zklock, servers, *names = sys.argv[1:]
    for name in names or RECIPES:
        world = World(zklock, servers, name)
        try:
            RECIPES[name](world)
        finally:
            world.close()
    with open(PAGE, encoding="utf-8") as page:
        marked = set(re.findall(r'^\.\\" recipe: (.*)$', page.read(), re.M))
    assert names or marked == used, f"not tested: {marked - used}"


if __name__ == "__main__":
    main()
