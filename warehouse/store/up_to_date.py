"""Find out that a target is up to date, without an engine, a model or, as a rule, a raw file.

The last build has left in the target's state what it was made from: settings, environment, file signatures of raw
files, project and package, and those of its own files. If nothing differs, there is nothing to build; else a build
runs, and finds out if contents differ. A build waits before it reads a file until any later change has another time
(`store/signatures.py`), so that an equal signature means equal content.

A build that is up to date imports this module, and little else. To keep that fast, it imports only light modules.
"""

from __future__ import annotations

import contextlib
import os
import sys

from warehouse.store import signatures
from warehouse.store.layout import targets_above
from warehouse.store.state import FOLDER, LAST, NAME, DamagedStateError, State, opened
from warehouse.store.walk import code_files, walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path
    from typing import Any

    from warehouse.base.settings import Settings
    from warehouse.store.signatures import Stamp

    Json = dict[str, Any]

_NOTHING = "the last build left no record"


def request_of(settings: Settings, *, keep: int) -> Json:
    """Return the settings and options that affect the outputs of a build."""
    return {
        "data": [str(root.absolute()) for root in settings.data],
        "target": str(settings.target.absolute()),
        "project": str(settings.project.absolute()) if settings.project else None,
        "cluster": settings.cluster,
        "max_rejected": settings.max_rejected,
        "follow_links": settings.follow_links,
        "keep": keep,
    }


def environment() -> Json:
    """Return the Python version, its module paths, and the installed packages with their mtimes."""
    installed: dict[str, int] = {}
    for folder in sys.path[1:]:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            installed |= {one.path: one.stat().st_mtime_ns for one in entries if one.name.endswith(".dist-info")}
    return {"python": sys.version, "path": sys.path[1:], "installed": installed}


def note(
    state: State,
    request: Json,
    folders: Iterable[Path],
    code: Mapping[str, Stamp],
    markers: Iterable[Path],
    outputs: Mapping[str, Stamp],
    summary: Json,
) -> None:
    """Note what a build was made from.

    Parameters
    ----------
    folders
        The project's folders.
    code
        Signatures of the files of package and project from before the build read any of them.
    markers
        Paths that decide, by existing or not, which cluster raw files belong to.
    outputs
        The files of the target that readers and the next build need, and archives that are data, with their signatures.
    summary
        The summary to return while everything is up to date.
    """
    last = {
        "request": request,
        "environment": environment(),
        "folders": [str(folder) for folder in folders],
        "code": code,
        "markers": {str(path): os.path.exists(str(path)) for path in markers},
        "outputs": outputs,
        "data": state.digest(FOLDER),
        "summary": summary,
    }
    state.put(LAST, {"": last})


def forget(target: Path) -> None:
    """Let the next build of a target, whose lock is held, run in full."""
    if not os.path.lexists(target / NAME):  # an empty one would count as whole
        return
    try:
        state = State(target / NAME, create=True)
        state.check()
        state.put(LAST, {}, gone=[""])
        state.close()
    except DamagedStateError:
        from warehouse.store.atomic import quarantine

        quarantine(target, target / NAME)


def outputs_of(state: State | None) -> set[str]:
    """Return the files that the target needs to be up to date."""
    last = state and state.get(LAST, "")
    return set(last["outputs"]) if last else set()


def unchanged(settings: Settings, *, keep: int) -> tuple[Json | None, str]:
    """Return the summary of the last build if everything is up to date; else None and the first difference."""
    request = request_of(settings, keep=keep)
    try:
        state = State(settings.target / NAME)
        try:
            last = state.get(LAST, "")
            why = _difference(last, state, request, settings) if last else _NOTHING
        finally:
            state.close()
    except (DamagedStateError, OSError, ValueError, KeyError, TypeError):
        return None, _NOTHING
    return (None, why) if why else (last["summary"], "")


def _difference(last: Json, state: State, request: Json, settings: Settings) -> str:
    """Return the first difference, checking the cheapest first; an empty text if there is none."""
    others = [name for name in request if last["request"].get(name) != request[name]]
    if others:
        return f"the last build had other settings: {', '.join(others)}"
    if last["environment"] != environment():
        return "Python or an installed package has changed"
    if os.path.exists(f"{request['target']}/warehouse.duckdb.wal"):
        return "a reader left a .wal file"
    for path, existed in last["markers"].items():
        if os.path.exists(path) != existed:
            return f"{path} is {'gone' if existed else 'new'}"
    why = _counted(*_changes(last["code"], code_files(last["folders"])))
    why = why or _output_difference(last["outputs"]) or _data_difference(state, settings, last["outputs"])
    if not why and state.digest(FOLDER) != last["data"]:
        return "a later build that did not end has seen other files"
    return why


def _output_difference(outputs: Mapping[str, Stamp]) -> str:
    """Return the first of these files that is gone, or else changed."""
    changed = ""
    for path, seen in outputs.items():
        try:
            is_same = signatures.stamp(os.stat(path)) == seen
        except (FileNotFoundError, NotADirectoryError):
            # reported first: removing a hard link changes the signature of the other link
            return f"{path} is gone"
        changed = changed or ("" if is_same else f"{path} has changed")
    return changed


def _data_difference(state: State, settings: Settings, archives: Collection[str]) -> str:
    """Compare the raw files with the folders that the last build saw, but not what it unpacked from archives."""
    folders = [root for root in settings.data if str(root.absolute()) not in archives]
    own = f"{settings.target.absolute()}/"
    left_out = [settings.target.absolute(), *targets_above(settings.target)]
    now = walk(folders, left_out, follow_links=settings.follow_links)
    before = {key: row for key, row in state.texts(FOLDER).items() if not key.startswith(own)}
    files: tuple[Json, Json] = ({}, {})
    changed = ""
    for key in sorted({*now, *before}):
        folder, known = now.get(key), opened(FOLDER, key, before.get(key))
        if folder is not None and known is not None and folder.signature == known["signature"]:
            continue
        changed = changed or f"the entries of {key} have changed"
        if known is not None:
            files[0].update({f"{known['path']}/{name}": seen for name, seen, *_ in known["files"]})
        if folder is not None:
            files[1].update({f"{folder.path}/{name}": seen for name, seen in folder.entries().items()})
    return _counted(*_changes(*files)) or changed


def _changes(before: Json, after: Json) -> tuple[list[str], list[str], list[str]]:
    """Return the new, missing and changed files."""
    changed = [path for path, seen in before.items() if path in after and after[path] != seen]
    return [path for path in after if path not in before], [path for path in before if path not in after], changed


def _counted(*files: list[str]) -> str:
    """Return the numbers of changed files and the first path."""
    words = [f"{len(paths):,} {word}" for paths, word in zip(files, ("new", "gone", "changed"), strict=True) if paths]
    return f"files differ: {', '.join(words)}, first {min(path for paths in files for path in paths)}" if words else ""
