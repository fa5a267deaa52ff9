"""Snapshot of the inputs and outputs of a build, to detect that the target is up to date.

A build writes `cache/snapshot.bin`: its options, the environment, and the file signatures of all inputs (raw files,
project, this package) and all outputs. If nothing differs, there is nothing to build; in doubt, a build runs. The
comparison opens no engine, no model and, as a rule, no raw file.

Raw files and outputs are packed folder by folder, and a folder is compared as a whole. So the comparison costs little
more than the walk over the folders (`python -m bench.listing`).

If the times of a file changed, its content is compared. The same holds for a file that changed so shortly before the
scan that its times would not show another change.

A build that is up to date imports this module, and little else. To keep that fast, it imports only light modules.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import sys

from warehouse.store import outputs_of_build, signatures
from warehouse.store.folders import Folder, Walk, split_names, walk_data
from warehouse.store.layout import targets_above

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from warehouse.base.settings import Settings
    from warehouse.store.signatures import Stamp

    Json = dict[str, Any]

FORMAT = 5
NAME = "snapshot.bin"
FILE = f"cache/{NAME}"
DIGEST_BYTES = 16
_UNKNOWN = bytes(DIGEST_BYTES)
_walks: list[Walk] = []
"""The walk of the last comparison that found a difference."""


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
        "trust_folders": settings.trust_folders,
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
    data: Walk,
    digests_of: Callable[[Folder], bytes],
    code: signatures.FileStates,
    code_digests: Mapping[str, str],
    markers: Iterable[Path],
    outputs: Mapping[str, Stamp],
    summary: Json,
) -> None:
    """Write the snapshot of a build.

    Parameters
    ----------
    request
        Settings and options, from `request_of`.
    data, code
        Scans from before the build read any file.
    digests_of
        Returns the content hashes of a folder's files in order, 16 bytes each. A file without a hash (zeros) counts as
        changed if its signature proves nothing.
    code_digests
        Content hashes of code by path.
    markers
        Paths that decide, by existing or not, which cluster raw files belong to.
    outputs
        The files of the target that readers and the next build need, with their signatures.
    summary
        The summary to return while everything is up to date.
    """
    paths, packed = outputs_of_build.packed(outputs, request["target"])
    header = {
        "format": FORMAT,
        "request": request,
        "environment": environment(),
        "roots": data.roots,
        "leave_out": data.leave_out,
        "inside": data.inside,
        "code": _stored_code(code, code_digests),
        "markers": {str(path): os.path.exists(str(path)) for path in markers},
        "outputs": paths,
        "summary": summary,
    }
    _write(header, [(folder, digests_of(folder)) for folder in data.folders().values()], packed)


def _stored_code(code: signatures.FileStates, digests: Mapping[str, str]) -> Json:
    known = {path: digests[path] for path in code.files if path in digests}
    return {"places": code.places, "looked_ns": code.looked_ns, "files": code.files, "digests": known}


def _write(header: Json, folders: Sequence[tuple[Folder, bytes]], outputs: bytes) -> None:
    """Write the header, a line of JSON that has the sizes of all packed values, and these values."""
    blobs = [blob for folder, digests in folders for blob in (*folder.packed, digests)]
    listed = [
        [folder.key, folder.root, folder.own, folder.looked_ns, *map(len, folder.packed), len(digests)]
        for folder, digests in folders
    ]
    racy = [folder.key for folder, _ in folders if folder.is_racy]
    line = _encoded(header | {"folders": listed, "racy": racy}) + b"\n"
    _write_file(header["request"]["target"], NAME, b"".join([line, *blobs, outputs]))


def _encoded(header: Json) -> bytes:
    """Return JSON; it is written by msgspec, in a tenth of the time, unless a path is not Unicode."""
    import msgspec

    try:
        return msgspec.json.encode(header)
    except UnicodeEncodeError:
        return json.dumps(header, separators=(",", ":")).encode()


def drop(target: Path | str) -> None:
    """Remove the snapshot, so that the next build runs in full."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{target}/{FILE}")


def output_paths(target: Path | str) -> set[str]:
    """Return the outputs in the snapshot; empty if there is none."""
    try:
        taken, _ = _read(target)
        return set(outputs_of_build.paths(taken))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return set()


def recent_walk(settings: Settings) -> Walk:
    """Return the walk of a comparison that has just found a difference, or else a new walk over the same folders."""
    left_out = [settings.target.absolute(), *targets_above(settings.target)]
    wanted = walk_data(settings.data, left_out, follow_links=settings.follow_links)
    wanted.trust = settings.trust_folders
    walk = _walks.pop() if _walks else wanted
    is_recent = 0 <= wanted.looked_ns - walk.ended_ns <= outputs_of_build.FRESH_NS
    return walk if is_recent and walk.is_like(wanted) else wanted


def unchanged(request: Json) -> tuple[Json | None, str]:
    """Return the summary of the last build if everything is up to date; else None and the first difference."""
    _walks.clear()
    outputs_of_build.forget()
    try:
        taken, content = _read(request["target"])
        why = _difference(taken, content, request)
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, struct.error):
        why = "the last build left no snapshot"
    if why:
        return None, why
    _walks.clear()
    outputs_of_build.forget()
    return taken["summary"], ""


def _read(target: Path | str) -> tuple[Json, memoryview]:
    """Return the header of the snapshot, and the packed values."""
    content = signatures.read_bytes(f"{target}/{FILE}")
    end = content.index(b"\n")
    return json.loads(content[:end]), memoryview(content)[end + 1 :]


def _difference(taken: Json, content: memoryview, request: Json) -> str:
    """Return the first difference, checking the cheapest first; an empty text if there is none."""
    if taken["format"] != FORMAT:
        return "the last build left no snapshot"
    others = [name for name in request if taken["request"].get(name) != request[name] and name != "trust_folders"]
    if others:
        return f"the last build had other settings: {', '.join(others)}"
    if taken["environment"] != environment():
        return "Python or an installed package has changed"
    folders = list(_folders(taken, content))
    packed_outputs = content[sum(sum(one[4:]) for one in taken["folders"]) :]
    if why := outputs_of_build.difference(taken, packed_outputs):
        return why
    if os.path.exists(f"{request['target']}/warehouse.duckdb.wal"):
        return "a reader left a .wal file"
    for path, existed in taken["markers"].items():
        if os.path.exists(path) != existed:
            return f"{path} is {'gone' if existed else 'new'}"
    why, looked_again = _data_difference(taken, folders, trust=request["trust_folders"])
    if not why:
        why, code_looked_again = _code_difference(taken["code"])
        if not why and (looked_again or code_looked_again):
            # the content is equal: store the new signatures, so that the next comparison reads no content
            _write(taken, folders, bytes(packed_outputs))
    return why


def _folders(taken: Json, content: memoryview) -> Iterator[tuple[Folder, bytes]]:
    """Yield the folders of raw files in a snapshot, with the content hashes of their files."""
    at = 0
    for key, root, own, looked_ns, *sizes in taken["folders"]:
        blobs = []
        for size in sizes:
            blobs.append(bytes(content[at : at + size]))
            at += size
        yield Folder(key, root, (blobs[0], blobs[1], blobs[2]), tuple(own), looked_ns), blobs[3]


def _data_difference(taken: Json, folders: list[tuple[Folder, bytes]], *, trust: bool) -> tuple[str, bool]:
    """Compare the raw files and update the folders.

    Return the difference, and True if the snapshot should be written again.
    """
    known = {folder.key: (folder, digests) for folder, digests in folders}
    racy = set(taken["racy"])
    before = {key: folder for key, (folder, _) in known.items()}
    walk = Walk(taken["roots"], taken["leave_out"], taken["inside"], before.get, trust=trust)
    _walks.append(walk)
    counts: list[list[str]] = [[], [], []]
    looked_again: list[str] = []
    is_renewed = False  # the next comparison can trust more folders
    for folder in walk:
        old, digests = known.get(folder.key, (None, b""))
        is_renewed |= trust and old is not None and old.looked_ns != folder.looked_ns
        if old is not None and old.packed == folder.packed and folder.key not in racy:
            continue
        hashes = digests_by_name(old, digests) if old else {}

        def same(path: str, hashes: Mapping[str, str] = hashes) -> bool:
            looked_again.append(path)
            return signatures.same_content(path, hashes.get(os.path.basename(path)))

        seen = old.signatures() if old else {}
        looked_ns = old.looked_ns if old else 0
        for found, paths in zip(
            counts, signatures.compare(seen, folder.signatures(), looked_ns, same, times_count=True), strict=True
        ):
            found += paths
    now = walk.folders()
    for key, folder in before.items():
        if key not in now:
            counts[1] += folder.signatures()
    if any(counts):
        return _change_counts(*counts), False
    folders[:] = [(now[key], digests) for key, (_, digests) in known.items()]
    return "", bool(looked_again) or is_renewed


def digests_by_name(folder: Folder, digests: bytes) -> dict[str, str]:
    """Return the known content hashes of a folder's files."""
    parts = (digests[at : at + DIGEST_BYTES] for at in range(0, len(digests), DIGEST_BYTES))
    return {name: one.hex() for name, one in zip(split_names(folder.names), parts, strict=False) if one != _UNKNOWN}


def _code_difference(stored: Json) -> tuple[str, bool]:
    """Compare the code. Return the difference, and True if contents were read; then update the stored signatures."""
    before = signatures.FileStates(())
    before.places, before.files, before.looked_ns = stored["places"], stored["files"], stored["looked_ns"]
    digests, now = stored["digests"], before.rescan()
    compared: list[str] = []

    def same(path: str) -> bool:
        compared.append(path)
        return signatures.same_content(path, digests.get(path))

    changes = before.changes(now, same)
    if any(changes):
        return _change_counts(*changes), False
    stored["files"], stored["looked_ns"] = now.files, now.looked_ns
    return "", bool(compared)


def _change_counts(*files: Sequence[str]) -> str:
    """Return the numbers of changed files and the first path."""
    words = [f"{len(paths):,} {word}" for paths, word in zip(files, ("new", "gone", "changed"), strict=True) if paths]
    return f"files differ: {', '.join(words)}, first {min(path for paths in files for path in paths)}"


def write_cache_file(target: str, name: str, value: object) -> None:
    """Write a JSON file of a target's cache atomically; remove it if that fails."""
    _write_file(target, name, json.dumps(value, separators=(",", ":")).encode())


def _write_file(target: str, name: str, content: bytes) -> None:
    temporary_path = f"{target}/cache/.{name}.{os.getpid()}"
    try:
        with open(temporary_path, "wb") as stream:
            stream.write(content)
        os.replace(temporary_path, f"{target}/cache/{name}")
    except OSError:  # without the file, builds are only slower
        for path in (temporary_path, f"{target}/cache/{name}"):
            with contextlib.suppress(OSError):
                os.unlink(path)
