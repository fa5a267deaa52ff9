"""Find out that a target is up to date, without an engine, a model or, as a rule, a raw file.

The last build has left in the target's state what it was made from: settings, environment, file signatures of raw
files, project and package, and those of its own files. If nothing differs, there is nothing to build; else a build
runs, and finds out if contents differ. A build waits before it reads a file until any later change has another time
(`store/signatures.py`), so that an equal signature means equal content.

A build that is up to date imports this module, and little else. To keep that fast, it imports only light modules.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from warehouse.base.settings import Settings
from warehouse.store.manifest import PUBLISHED, targets_above
from warehouse.store.signatures import Stamp, code_files, stamp, walk
from warehouse.store.state import FOLDER, LAST, NAME, DamagedStateError, State

Json = dict[str, Any]

SETTINGS, PACKAGES, PLACES = "settings", "Python or its packages", "files beside data or target"
CODE, OUTPUTS, DATA = "files of the project", "files of the target", "files of the data folders"
"""What a build is made from, in words for people, in the order of the comparison: the cheapest first."""
_NOTHING = "the last build left no record"


def settings_of(settings: Settings, *, keep: int) -> Json:
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


def packages() -> Json:
    """Return the Python version, its module paths, and the installed packages with their mtimes."""
    installed: dict[str, int] = {}
    # The first is the working folder or that of the script: `python -m` and the command differ in it.
    for folder in sys.path[1:]:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            installed |= {one.path: one.stat().st_mtime_ns for one in entries if one.name.endswith(".dist-info")}
    return {"version": sys.version, "path": sys.path[1:]} | installed


def note(
    state: State,
    settings: Settings,
    keep: int,
    folders: Iterable[Path],
    code: Mapping[str, Stamp],
    markers: Iterable[Path],
    outputs: Mapping[str, Stamp],
    answer: Json,
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
    answer
        The answer to return while everything is up to date.
    """
    own = f"{settings.target.absolute()}/"  # what was unpacked there
    rows = {key: json.loads(row) for key, row in state.texts(FOLDER).items() if not key.startswith(own)}
    last = {
        "folders": [str(folder) for folder in folders],
        "answer": answer,
        SETTINGS: settings_of(settings, keep=keep),
        PACKAGES: packages(),
        # A reader that opens the published file to write leaves a log, which only a build removes.
        PLACES: {str(path): os.path.exists(path) for path in markers} | {f"{own}{PUBLISHED}.wal": False},
        CODE: code,
        OUTPUTS: outputs,
        DATA: {key: row["signature"] for key, row in rows.items()},
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
    return set(last[OUTPUTS]) if last else set()


def unchanged(settings: Settings, *, keep: int) -> tuple[Json | None, str]:
    """Return the summary of the last build if everything is up to date; else None and the first difference."""
    try:
        state = State(settings.target / NAME)
        try:
            last = state.get(LAST, "")
        finally:
            state.close()
        if not last:
            return None, _NOTHING
        for what, now in _now(settings, keep, last):
            if now != last[what]:
                names = [name for name in last[what] | now if last[what].get(name) != now.get(name)]
                return None, f"{what} differ from those of the last build: {min(names)}"
    except (DamagedStateError, OSError, ValueError, KeyError, TypeError, AttributeError):
        return None, _NOTHING
    return last["answer"], ""


def _now(settings: Settings, keep: int, last: Json) -> Iterator[tuple[str, Json]]:
    """Yield what a build would be made from now."""
    yield SETTINGS, settings_of(settings, keep=keep)
    yield PACKAGES, packages()
    yield PLACES, {path: os.path.exists(path) for path in last[PLACES]}
    yield CODE, code_files(last["folders"])
    yield OUTPUTS, {path: stamp(os.stat(path)) for path in last[OUTPUTS] if os.path.exists(path)}
    folders = [root for root in settings.data if str(root.absolute()) not in last[OUTPUTS]]  # these are archives
    left_out = [settings.target.absolute(), *targets_above(settings.target)]
    walked = walk(folders, left_out, follow_links=settings.follow_links)
    yield DATA, {key: folder.signature for key, folder in walked.items()}
