"""Whether anything has changed since the last build, seen from outside: no engine, no model, no raw file is opened.

A build leaves `cache/snapshot.json`: what it was asked for, the environment it ran in, and size and times of
all that it looked at (raw folders, project, this package) and of all that it left behind. While all of that is
as it was, there is nothing to do. In doubt there is: whatever is new, gone, moved or unreadable means a build.

A file whose times have moved may still hold what it held; then its content is compared. So is that of a file
that changed so shortly before it was looked at that one more change need not show in its times.

This module is what a build with nothing to do costs, hence plain values, `os`, `json`, and nothing else.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from warehouse.base.settings import Settings

    Said = dict[str, Any]
    Stamp = list[int]

FORMAT = 2
NAME = "snapshot.json"
FILE = f"cache/{NAME}"
RACY_NS = 2 * 10**9
"""A time this close to the look says nothing: the coarsest file system counts in steps of two seconds."""


def stamp(about: os.stat_result) -> Stamp:
    """What tells a file from its successor: size, time of the content, time of the entry, inode."""
    return [about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino]


def read_text(path: str | os.PathLike[str], encoding: str = "utf-8") -> str:
    """Return the text of a file; raise OSError for a pipe, socket or device, which could block for ever."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(handle, encoding=encoding) as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "not a file", str(path))
        return stream.read()


_KERNEL = ("/proc", "/sys")


def is_within(path: str, folders: Iterable[str]) -> bool:
    """Return True if a real path is one of these folders, or below one."""
    return any(path == folder or path.startswith(os.path.join(folder, "")) for folder in folders)


def leads_out(link: str, inside: Sequence[str] | None) -> bool:
    """Return True if a link must not be followed.

    Parameters
    ----------
    link
        A symbolic link in a data folder.
    inside
        The real paths of the folders that links may lead to; None for all but those of the kernel.
    """
    real = os.path.realpath(link)
    return is_within(real, _KERNEL) or (inside is not None and not is_within(real, inside))


def kernel_folders() -> set[tuple[int, int]]:
    """Return the identities of /proc and /sys, whose files are never opened."""
    return {_identity(folder) for folder in _KERNEL if os.path.isdir(folder)}


def is_racy(seen: Sequence[int], looked_ns: int) -> bool:
    """Whether a file could have changed again after the look without its stamp showing it."""
    return max(seen[1], seen[2]) > looked_ns - RACY_NS


class Look:
    """All files of some places, as a moment found them.

    Parameters
    ----------
    places
        (path, deep): a folder with all that is below it, or only its own files; or a single file.
    leave_out
        A folder that is none of them, such as a target among data folders.
    inside
        The real paths of the folders that links may lead to; None for all.
    """

    def __init__(
        self,
        places: Iterable[tuple[str, bool]],
        leave_out: str | None = None,
        inside: Sequence[str] | None = None,
    ) -> None:
        self.places = list(places)
        self.leave_out = leave_out
        self.inside = inside
        self.looked_ns = time.time_ns()
        self.files = _files(self.places, leave_out, inside)

    def again(self) -> Look:
        """The same places, now."""
        return Look(self.places, self.leave_out, self.inside)

    def changes(
        self, later: Look, same: Callable[[str], bool], *, times_count: bool = False
    ) -> tuple[list[str], list[str], list[str]]:
        """Files that are new, gone, and changed.

        Parameters
        ----------
        later
            The same places later on.
        same
            Whether the content of a path is what it was, asked where the stamps prove nothing.
        times_count
            Whether another time of the content is a change in itself, as it is where the warehouse lists it.
        """
        new = [path for path in later.files if path not in self.files]
        gone = [path for path in self.files if path not in later.files]
        changed = []
        for path, seen in self.files.items():
            now = later.files.get(path)
            if now is None or (now == seen and not (seen and is_racy(seen, self.looked_ns))):
                continue
            telling = 2 if times_count else 1
            if now[:telling] != seen[:telling] or not same(path):
                changed.append(path)
        return new, gone, changed


def _files(places: Iterable[tuple[str, bool]], leave_out: str | None, inside: Sequence[str] | None) -> dict[str, Stamp]:
    """List files with their stamps. A folder is listed once, so that a loop ends; what cannot be seen has no stamp."""
    found: dict[str, Stamp] = {}
    listed = kernel_folders()
    if leave_out and os.path.isdir(leave_out):
        listed.add(_identity(leave_out))
    for root, deep in places:
        waiting = [root]
        while waiting:
            folder = waiting.pop()
            try:
                identity = _identity(folder)
                if identity in listed:
                    continue
                listed.add(identity)
                below = []
                with os.scandir(folder) as entries:
                    for entry in entries:
                        try:
                            about = entry.stat()
                        except OSError:
                            found[entry.path] = []
                            continue
                        if entry.is_symlink() and leads_out(entry.path, inside):
                            found[entry.path] = []
                        elif stat.S_ISREG(about.st_mode):
                            found[entry.path] = stamp(about)
                        elif not stat.S_ISDIR(about.st_mode):
                            found[entry.path] = []  # a pipe or a device: nobody reads it
                        elif deep and entry.name != "__pycache__":
                            found[entry.path] = []  # the name of an empty folder can mean something, its times cannot
                            below.append(entry.path)
                waiting += sorted(below, reverse=True)
            except NotADirectoryError:
                found[folder] = stamp(os.stat(folder))
            except OSError:
                found[folder] = []
    return found


def _identity(folder: str) -> tuple[int, int]:
    about = os.stat(folder)
    return about.st_dev, about.st_ino


def real_roots(data: Iterable[Path]) -> list[str]:
    """Return the real paths of data folders: links may lead there."""
    return [os.path.realpath(root) for root in data]


def look_at_data(data: Sequence[Path], target: Path, *, follow_links: bool = False) -> Look:
    """The raw files."""
    inside = None if follow_links else real_roots(data)
    return Look([(str(root.absolute()), True) for root in data], str(target), inside)


def look_at_sources(folders: Iterable[Path]) -> Look:
    """The modules of this package, and the files of the project's folders."""
    places = [(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), True)]
    for folder in folders:
        places += [(f"{folder}/models", True), (f"{folder}/sql", True), (f"{folder}/data", False)]
        places.append((f"{folder}/warehouse.toml", False))
    return Look(places)


def asked(settings: Settings, *, keep: int, kernels: bool) -> Said:
    """What a build is asked for, as far as what it leaves depends on it."""
    return {
        "data": [str(root.absolute()) for root in settings.data],
        "target": str(settings.target.absolute()),
        "project": str(settings.project.absolute()) if settings.project else None,
        "cluster": settings.cluster,
        "max_rejected": settings.max_rejected,
        "follow_links": settings.follow_links,
        "keep": keep,
        "kernels": kernels,
    }


def environment() -> Said:
    """The Python that runs, where it looks for modules, and what is installed there, in which version."""
    installed: dict[str, int] = {}
    for folder in sys.path[1:]:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            installed |= {one.path: one.stat().st_mtime_ns for one in entries if one.name.endswith(".dist-info")}
    return {"python": sys.version, "path": sys.path[1:], "installed": installed}


def take(
    asked: Said,
    data: Look,
    sources: Look,
    digests: Mapping[str, str],
    signs: Iterable[Path],
    left: Iterable[Path],
    said: Said,
) -> None:
    """Write the snapshot of a build.

    Parameters
    ----------
    asked
        See `asked`.
    data, sources
        Looks that were taken before the build read anything.
    digests
        The content of files, by path; one without is a change as soon as its stamp says nothing.
    signs
        Paths whose coming or going changes what files are taken for.
    left
        The files that the build left for readers and for the next build.
    said
        What to say of it while nothing changes.
    """
    write(
        asked["target"],
        NAME,
        {
            "format": FORMAT,
            "asked": asked,
            "environment": environment(),
            "looks": [
                {
                    "places": look.places,
                    "leave_out": look.leave_out,
                    "inside": look.inside,
                    "times_count": look is data,
                    "looked_ns": look.looked_ns,
                    "files": look.files,
                    "digests": {path: digests[path] for path in look.files if path in digests},
                }
                for look in (data, sources)
            ],
            "signs": {str(path): os.path.exists(str(path)) for path in signs},
            "left": {str(path): _seen(str(path)) for path in left},
            "said": said,
        },
    )


def drop(target: Path | str) -> None:
    """Forget: the next build looks at everything."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{target}/{FILE}")


def unchanged(asked: Said) -> tuple[Said | None, str]:
    """What the last build says of itself while nothing has changed; else None, and what has."""
    try:
        taken = json.loads(read_text(f"{asked['target']}/{FILE}"))
        why = _difference(taken, asked)
        return (None, why) if why else (taken["said"], "")
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None, "the last build left no snapshot"


def _difference(taken: Said, asked: Said) -> str:
    """The first difference that is found, cheapest first."""
    if taken["format"] != FORMAT:
        return "the last build left no snapshot"
    if taken["asked"] != asked:
        others = [name for name in asked if taken["asked"].get(name) != asked[name]]
        return f"the last build was asked for another {' and '.join(others)}"
    if taken["environment"] != environment():
        return "Python or what is installed beside it has changed"
    other = ""
    for path, seen in taken["left"].items():
        if not os.path.exists(path):  # another name of the same file has changed with it
            return f"{path} is gone"
        if not other and _seen(path) != seen:
            other = f"{path} has changed"
    if other:
        return other
    if os.path.exists(f"{asked['target']}/warehouse.duckdb.wal"):
        return "a reader left a log behind"
    for path, there in taken["signs"].items():
        if os.path.exists(path) != there:
            return f"{path} has {'gone' if there else 'come'}"
    moved = False
    for said in taken["looks"]:
        before = _restored(said)
        digests, now = said["digests"], before.again()
        asked_for: list[str] = []

        def same(path: str, digests: Said = digests, asked_for: list[str] = asked_for) -> bool:
            asked_for.append(path)
            return same_content(path, digests.get(path))

        new, gone, changed = before.changes(now, same, times_count=said["times_count"])
        if new or gone or changed:
            return _counted(new, gone, changed)
        said["files"], said["looked_ns"] = now.files, now.looked_ns
        moved = moved or bool(asked_for)
    if moved:  # equal all the same: the next time stamps alone will tell
        write(taken["asked"]["target"], NAME, taken)
    return ""


def _counted(*files: Sequence[str]) -> str:
    """`files are other: 2 new, 1 changed, first <path>`."""
    words = [f"{len(those):,} {word}" for those, word in zip(files, ("new", "gone", "changed"), strict=True) if those]
    return f"files are other: {', '.join(words)}, first {min(path for those in files for path in those)}"


def _restored(said: Said) -> Look:
    """A look that was taken earlier."""
    look = Look((), said["leave_out"], said["inside"])
    look.places, look.files, look.looked_ns = said["places"], said["files"], said["looked_ns"]
    return look


def same_content(path: str, digest: str | None) -> bool:
    """Whether a file still holds what was hashed; not where nothing was."""
    if digest is None:
        return False
    from pathlib import Path

    from warehouse.store.content_hash import of_content

    try:
        return of_content(Path(path)) == digest
    except OSError:
        return False


def _seen(path: str) -> Stamp:
    """Return the stamp of a file that the build left."""
    return stamp(os.stat(path))


def write(target: str, name: str, value: object) -> None:
    """Write a JSON file of a target's cache, whole or not at all; where that fails, none is there."""
    aside = f"{target}/cache/.{name}.{os.getpid()}"
    try:
        with open(aside, "w", encoding="utf-8") as stream:
            stream.write(json.dumps(value, separators=(",", ":")))
        os.replace(aside, f"{target}/cache/{name}")
    except OSError:  # such a file only saves time
        for path in (aside, f"{target}/cache/{name}"):
            with contextlib.suppress(OSError):
                os.unlink(path)
