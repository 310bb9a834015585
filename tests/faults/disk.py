"""A small disk, for a server's data."""

import os
import shutil
import time

_DISK_BYTES = 400 << 20
_FILLER = "filler"


class Disk:
    """A separate file system, which can be filled, and stalled for a part of each second. Create it as
    root in a mount namespace."""

    def __init__(self, path, reaper):
        self.path = path
        self._reaper = reaper
        self._image = f"{path}.image"
        with open(self._image, "wb") as file:
            file.truncate(_DISK_BYTES)
        os.makedirs(path, exist_ok=True)
        self._run("mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=1", self._image)
        self._run("mount", "-o", "loop", self._image, path)

    def _run(self, *command):
        if self._reaper.run(command)[0] != 0:
            raise RuntimeError(f"{command[0]} has failed: {self.path}")

    def fill(self):
        with open(f"{self.path}/{_FILLER}", "wb", buffering=0) as file:
            block = bytes(1 << 16)
            while block:
                try:
                    file.write(block)
                except OSError:
                    block = block[:len(block) // 2]

    def empty(self):
        os.unlink(f"{self.path}/{_FILLER}")

    def stall(self, seconds, share=0.9):
        """Blocks all writes for `share` of each second. Returns after `seconds`."""
        for _ in range(int(seconds)):
            try:
                self._run("fsfreeze", "-f", self.path)
                time.sleep(share)
            finally:
                self._run("fsfreeze", "-u", self.path)
            time.sleep(1 - share)

    def unmount(self, keep=False):
        """Unmounts and deletes it. With `keep`, leaves its files where it was mounted."""
        kept = f"{self.path}.kept"
        if keep:
            self._run("cp", "-a", self.path, kept)
        self._run("umount", self.path)
        os.unlink(self._image)
        if keep:
            shutil.rmtree(self.path)
            os.rename(kept, self.path)
