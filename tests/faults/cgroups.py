"""The cgroup that all contenders run in. It requires root and a hierarchy of version 2. The zklocks
create the cgroups of their commands below it."""

import os
import shutil
import stat
import time

NOBODY = 65534


def own_directory():
    """Returns the directory of this process's cgroup, or None."""
    with open("/proc/self/cgroup") as file:
        own = next((line[3:].rstrip("\n") for line in file if line.startswith("0::")), None)
    with open("/proc/self/mountinfo") as file:
        for line in file:
            fields = line.split(" ")
            kind = fields[fields.index("-") + 1]
            if kind == "cgroup2" and fields[3] == "/" and own is not None:
                return fields[4] + own.rstrip("/")
    return None


def remove_tree(root):
    """Kills all processes in a cgroup and in the cgroups below it, and removes these cgroups."""
    with open(f"{root}/cgroup.kill", "w") as file:
        file.write("1")
    for path, _, _ in sorted(os.walk(root), reverse=True):
        for _ in range(100):
            try:
                os.rmdir(path)
                break
            except OSError:
                time.sleep(0.02)



class Cgroups:
    def __init__(self, directory, recorder):
        """`directory`: a place for programs, which every user can enter."""
        self.root = None
        self._foreign_recorder = None
        if os.geteuid() != 0:
            return
        try:
            self._parent = own_directory()
            root = f"{self._parent}/torture-{time.time_ns()}"
            os.mkdir(root)
            os.setxattr(root, "user.delegate", b"1")
            self._enter(root)
        except (OSError, TypeError):
            return
        self.root = root
        # These are for contenders of another user: a cgroup that this user may use, and a recorder that becomes
        # root, as sudo does.
        self._users = f"{root}/nobody"
        os.mkdir(self._users)
        for name in ("", "/cgroup.procs", "/cgroup.threads", "/cgroup.subtree_control"):
            os.chown(self._users + name, NOBODY, NOBODY)
        self._foreign_recorder = f"{directory}/foreign-recorder"
        shutil.copy(recorder, self._foreign_recorder)
        os.chmod(self._foreign_recorder, 0o755 | stat.S_ISUID)

    @staticmethod
    def _enter(path):
        with open(f"{path}/cgroup.procs", "w") as file:
            file.write(str(os.getpid()))

    def as_nobody(self, *, hides):
        """Returns arguments that run a command as another user, in a cgroup of that user; with
        `hides`, where /proc does not show other users' processes."""
        enter = f"echo $$ >{self._users}/cgroup.procs && "
        if hides:
            enter += "mount -t proc -o hidepid=2 proc /proc && "
        become = f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups"
        return [*(["unshare", "--mount"] if hides else []),
                "sh", "-c", f'{enter} HOME=/ exec {become} "$@"', "sh"]

    def foreign_manner(self, kind):
        """Returns an argument of recorder.c. `kind`: "foreign" for a process of root, "hidden" for one below it."""
        return [f"{kind}={self._foreign_recorder}"]

    def left(self):
        """Returns the cgroups of commands that still exist."""
        if self.root is None:
            return []
        return [path for path, _, _ in os.walk(self.root)
                if os.path.basename(path).startswith("zklock-")]

    def remove(self):
        if self.root is None:
            return
        self._enter(self._parent)
        remove_tree(self.root)
