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
import json
import os
import sys

from warehouse.store import signatures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from warehouse.base.settings import Settings
    from warehouse.store.signatures import Stamp

    Said = dict[str, Any]

FORMAT = 2
NAME = "snapshot.json"
FILE = f"cache/{NAME}"


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
    data: signatures.Look,
    sources: signatures.Look,
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
        taken = json.loads(signatures.read_text(f"{asked['target']}/{FILE}"))
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
            return signatures.same_content(path, digests.get(path))

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


def _restored(said: Said) -> signatures.Look:
    """A look that was taken earlier."""
    look = signatures.Look((), said["leave_out"], said["inside"])
    look.places, look.files, look.looked_ns = said["places"], said["files"], said["looked_ns"]
    return look


def _seen(path: str) -> Stamp:
    """Return the stamp of a file that the build left."""
    return signatures.stamp(os.stat(path))


def write(target: str, name: str, value: object) -> None:
    """Write a JSON file of a target's cache, whole or not at all; where that fails, none is there."""
    temporary_path = f"{target}/cache/.{name}.{os.getpid()}"
    try:
        with open(temporary_path, "w", encoding="utf-8") as stream:
            stream.write(json.dumps(value, separators=(",", ":")))
        os.replace(temporary_path, f"{target}/cache/{name}")
    except OSError:  # such a file only saves time
        for path in (temporary_path, f"{target}/cache/{name}"):
            with contextlib.suppress(OSError):
                os.unlink(path)
