"""Lock of a target on a file system of several machines, on which the kernel's lock may hold on one machine alone.

Each holder has a file of its own in `locks/`, created with O_EXCL, and raises the counter in it. A holder whose counter
does not change for a minute has ended. The minute is counted by the clock of the one who waits: no two clocks are
compared.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from warehouse.base.errors import LockedError
from warehouse.store.origin import has_ended, machine
from warehouse.store.signatures import read_text

FOLDER = "locks"
STALE_SECONDS = 60.0
"""Time without a change after which a holder counts as ended."""
BEAT_SECONDS = 5.0
"""Time between two changes of a holder's counter."""
_LOOK_SECONDS = 0.5
_NETWORK = (
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "ceph", "beegfs", "beegfs_nodev", "9p", "virtiofs"),
    *("afs", "ocfs2", "gfs2", "pvfs2", "wekafs"),
)
"""File systems that other machines may have mounted, too."""
_MOUNTS = Path("/proc/self/mountinfo")


def is_on_network(path: Path, mounts: Path = _MOUNTS) -> bool:
    """Return True if the file system of a folder may be in use by other machines, too. Source: proc(5)."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:  # not Linux
        return False
    real, longest, kind = f"{os.path.realpath(path)}/", "", ""
    for line in lines:
        before, _, after = line.partition(" - ")
        point = before.split()[4].encode().decode("unicode_escape").rstrip("/") + "/"
        if real.startswith(point) and len(point) >= len(longest):
            longest, kind = point, after.split()[0]
    return kind in _NETWORK or kind.startswith("fuse.")


class Holder:
    """File of one holder of a lock.

    Parameters
    ----------
    folder
        The folder of the files of all holders.
    shared
        True for a lock that others may share.
    """

    def __init__(self, folder: Path, *, shared: bool) -> None:
        self._folder = folder
        self._shared = shared
        kind = "share" if shared else "build"
        self._path = folder / f"{kind}-{machine()}-{os.getpid()}-{secrets.token_hex(8)}"
        self._count = 0
        self._stopped = threading.Event()
        self._seen: dict[str, tuple[str, float]] = {}
        self._alive: set[str] = set()

    def take(self) -> bool:
        """Return True if the lock is taken: this holder's file is there, and none that it conflicts with."""
        if self._conflicts():
            return False
        taken = False
        try:
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
            self._beat()
            taken = not self._conflicts()
        finally:
            if not taken:  # also after a full disk: others would wait a minute for a file that does not change
                self._path.unlink(missing_ok=True)
        if taken:
            threading.Thread(target=self._beat_on, name="lock", daemon=True).start()
        return taken

    def _conflicts(self) -> list[Path]:
        """Return the files of others that hold the lock, or may; remove those of ended ones."""
        found = []
        for path in sorted(self._folder.iterdir()):
            if path != self._path and (not self._shared or path.name.startswith("build-")):
                if self._is_stale(path):
                    path.unlink(missing_ok=True)
                else:
                    found.append(path)
        return found

    def _is_stale(self, path: Path) -> bool:
        try:
            text = read_text(path)
        except (OSError, ValueError):
            return False
        with suppress(ValueError, KeyError, TypeError):
            about = json.loads(text)
            if has_ended(str(about["machine"]), int(about["pid"])):
                return True
        now = time.monotonic()
        before, since = self._seen.setdefault(path.name, (text, now))
        if before != text:
            self._seen[path.name] = text, now
            self._alive.add(path.name)
        return before == text and now - since >= STALE_SECONDS

    def is_alive(self) -> Path | None:
        """Return the file of a holder that has raised its counter since the first look; None if none has."""
        return next((path for path in self._conflicts() if path.name in self._alive), None)

    def _beat_on(self) -> None:
        while not self._stopped.wait(BEAT_SECONDS):
            with suppress(OSError):
                self._beat()

    def _beat(self) -> None:
        """Raise the counter. A file that others removed is not made again."""
        self._count += 1
        text = json.dumps({"machine": machine(), "pid": os.getpid(), "count": self._count})
        handle = os.open(self._path, os.O_WRONLY)
        try:
            os.pwrite(handle, text.encode(), 0)
            os.fsync(handle)
        finally:
            os.close(handle)

    def confirm(self) -> None:
        """Raise LockedError if others took this holder for ended: it stood still for a minute."""
        if not self._path.exists():
            raise LockedError(
                "the target's lock was lost: this process stood still for so long that another took it for ended",
                hint="Nothing was published. Build again.",
            )

    def release(self) -> None:
        """Let go."""
        self._stopped.set()
        self._path.unlink(missing_ok=True)


@contextmanager
def hold_on_network(target: Path, *, wait: bool, shared: bool) -> Iterator[Holder]:
    """Hold a target's lock while the block runs. Raises LockedError if another holder lives and `wait` is false."""
    folder = target / FOLDER
    folder.mkdir(exist_ok=True)
    holder = Holder(folder, shared=shared)
    while not holder.take():
        other = None if wait else holder.is_alive()
        if other is not None:
            who = "a share of a build" if other.name.startswith("share-") else "another build"
            raise LockedError(f"{who} holds {target} ({described(other)})", hint="--wait waits until it ends")
        time.sleep(_LOOK_SECONDS * random.uniform(0.5, 1.5))  # noqa: S311
    try:
        yield holder
    finally:
        holder.release()


def described(path: Path) -> str:
    """Return process and host of a holder."""
    try:
        about = json.loads(read_text(path))
        return f"process {about['pid']} on {str(about['machine']).rpartition('~')[0]}"
    except (OSError, ValueError, KeyError, TypeError):
        return "a process that has just ended"
