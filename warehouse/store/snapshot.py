"""Snapshot of the inputs and outputs of a build, to detect that the target is up to date.

A build writes `cache/snapshot.json`: its options, the environment, and the file signatures of all inputs (raw files,
project, this package) and all outputs. If nothing differs, there is nothing to build; in doubt, a build runs. The
comparison opens no engine, no model and, as a rule, no raw file.

If the times of a file changed, its content is compared. The same holds for a file that changed so shortly before the
scan that its times would not show another change.

A build that is up to date imports this module, and little else. To keep that fast, it imports only light modules.
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

    Json = dict[str, Any]

FORMAT = 3
NAME = "snapshot.json"
FILE = f"cache/{NAME}"


def request_of(settings: Settings, *, keep: int, kernels: bool) -> Json:
    """Return the settings and options that affect the outputs of a build."""
    return {
        "data": [str(root.absolute()) for root in settings.data],
        "target": str(settings.target.absolute()),
        "project": str(settings.project.absolute()) if settings.project else None,
        "cluster": settings.cluster,
        "max_rejected": settings.max_rejected,
        "follow_links": settings.follow_links,
        "keep_hours": settings.keep_hours,
        "keep": keep,
        "kernels": kernels,
    }


def environment() -> Json:
    """Return the Python version, its module paths, and the installed packages with their mtimes."""
    installed: dict[str, int] = {}
    for folder in sys.path[1:]:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            installed |= {one.path: one.stat().st_mtime_ns for one in entries if one.name.endswith(".dist-info")}
    return {"python": sys.version, "path": sys.path[1:], "installed": installed}


def take(
    request: Json,
    data: signatures.FileStates,
    sources: signatures.FileStates,
    digests: Mapping[str, str],
    markers: Iterable[Path],
    outputs: Iterable[Path],
    summary: Json,
) -> None:
    """Write the snapshot of a build.

    Parameters
    ----------
    request
        Settings and options, from `request_of`.
    data, sources
        Scans from before the build read any file.
    digests
        Content hashes by path. A file without a hash counts as changed if its signature proves nothing.
    markers
        Paths that decide, by existing or not, which cluster raw files belong to.
    outputs
        The files of the target that readers and the next build need.
    summary
        The summary to return while everything is up to date.
    """
    write_cache_file(
        request["target"],
        NAME,
        {
            "format": FORMAT,
            "request": request,
            "environment": environment(),
            "scans": [
                {
                    "places": scan.places,
                    "leave_out": scan.leave_out,
                    "inside": scan.inside,
                    "times_count": scan is data,
                    "looked_ns": scan.looked_ns,
                    "files": scan.files,
                    "digests": {path: digests[path] for path in scan.files if path in digests},
                }
                for scan in (data, sources)
            ],
            "markers": {str(path): os.path.exists(str(path)) for path in markers},
            "outputs": {str(path): _seen(str(path)) for path in outputs},
            "summary": summary,
        },
    )


def drop(target: Path | str) -> None:
    """Remove the snapshot, so that the next build runs in full."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{target}/{FILE}")


def unchanged(request: Json) -> tuple[Json | None, str]:
    """Return the summary of the last build if everything is up to date; else None and the first difference."""
    try:
        taken = json.loads(signatures.read_text(f"{request['target']}/{FILE}"))
        why = _difference(taken, request)
        return (None, why) if why else (taken["summary"], "")
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None, "the last build left no snapshot"


def _difference(taken: Json, request: Json) -> str:
    """Return the first difference, checking the cheapest first; an empty text if there is none."""
    if taken["format"] != FORMAT:
        return "the last build left no snapshot"
    if taken["request"] != request:
        others = [name for name in request if taken["request"].get(name) != request[name]]
        return f"the last build had other settings: {', '.join(others)}"
    if taken["environment"] != environment():
        return "Python or an installed package has changed"
    other = ""
    for path, seen in taken["outputs"].items():
        if not os.path.exists(path):  # reported first: removing a hard link changes the signature of the other link
            return f"{path} is gone"
        if not other and _seen(path) != seen:
            other = f"{path} has changed"
    if other:
        return other
    if os.path.exists(f"{request['target']}/warehouse.duckdb.wal"):
        return "a reader left a .wal file"
    for path, existed in taken["markers"].items():
        if os.path.exists(path) != existed:
            return f"{path} is {'gone' if existed else 'new'}"
    moved = False
    for stored in taken["scans"]:
        before = _restored(stored)
        digests, now = stored["digests"], before.rescan()
        compared: list[str] = []

        def same(path: str, digests: Json = digests, compared: list[str] = compared) -> bool:
            compared.append(path)
            return signatures.same_content(path, digests.get(path))

        new, gone, changed = before.changes(now, same, times_count=stored["times_count"])
        if new or gone or changed:
            return _change_counts(new, gone, changed)
        stored["files"], stored["looked_ns"] = now.files, now.looked_ns
        moved = moved or bool(compared)
    if moved:  # the content is equal: store the new signatures, so that the next comparison reads no content
        write_cache_file(taken["request"]["target"], NAME, taken)
    return ""


def _change_counts(*files: Sequence[str]) -> str:
    """Return the numbers of changed files and the first path."""
    words = [f"{len(paths):,} {word}" for paths, word in zip(files, ("new", "gone", "changed"), strict=True) if paths]
    return f"files differ: {', '.join(words)}, first {min(path for paths in files for path in paths)}"


def _restored(stored: Json) -> signatures.FileStates:
    """Return the scan that is stored in a snapshot."""
    scan = signatures.FileStates((), stored["leave_out"], stored["inside"], is_code=not stored["times_count"])
    scan.places, scan.files, scan.looked_ns = stored["places"], stored["files"], stored["looked_ns"]
    return scan


def _seen(path: str) -> Stamp:
    """Return the signature of an output file."""
    return signatures.stamp(os.stat(path))


def write_cache_file(target: str, name: str, value: object) -> None:
    """Write a JSON file of a target's cache atomically; remove it if that fails."""
    temporary_path = f"{target}/cache/.{name}.{os.getpid()}"
    try:
        with open(temporary_path, "w", encoding="utf-8") as stream:
            stream.write(json.dumps(value, separators=(",", ":")))
        os.replace(temporary_path, f"{target}/cache/{name}")
    except OSError:  # without the file, builds are only slower
        for path in (temporary_path, f"{target}/cache/{name}"):
            with contextlib.suppress(OSError):
                os.unlink(path)
