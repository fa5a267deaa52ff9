"""Atomic replacement of an output folder: write a temporary folder, then rename it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from warehouse.base.errors import QueryError
from warehouse.reader.output import refuse_in_target
from warehouse.store.atomic import sync
from warehouse.store.manifest import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHECKSUMS = "SHA256SUMS"


@contextmanager
def replaced(directory: Path, target: Path, kind: str) -> Iterator[Path]:
    """Yield an empty temporary folder; at the end of the block it replaces `directory`.

    The block must write a `manifest.json`. It contains the `kind` and, under `files`, the `path` of each other file
    except the checksums. Only a folder with such a manifest is ever replaced.

    Raises
    ------
    QueryError
        When the directory lies in the target, contains other files, or cannot be written.
    """
    directory = directory.resolve()
    _check(directory, target, kind)
    # Beside it, as a rename must stay in one file system.
    temporary_path = directory.with_name(f".{directory.name}.{os.getpid()}")
    shutil.rmtree(temporary_path, ignore_errors=True)
    try:
        temporary_path.mkdir(parents=True)
        yield temporary_path
        for path in (*temporary_path.rglob("*"), temporary_path):
            # A rename may reach the disk before the files, and a crash would then leave empty ones.
            sync(path)
        old = temporary_path.with_name(f"{temporary_path.name}.old")
        if directory.exists():
            # A rename onto a folder that has files fails, so the old one steps aside first.
            directory.replace(old)
        temporary_path.replace(directory)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise QueryError(f"{directory} cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(temporary_path, ignore_errors=True)


def sha256(path: Path) -> str:
    """Return the SHA-256 checksum of a file, hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_json(path: Path, content: object) -> None:
    """Write indented JSON, deterministically."""
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")


def write_checksums(folder: Path) -> None:
    """Write `SHA256SUMS` with the checksums of all files of a folder, as `sha256sum -c` reads it."""
    # Sorted, as a listing has any order, and equal exports must have equal bytes.
    names = sorted(path.name for path in folder.iterdir())
    sums = "".join(f"{sha256(folder / name)}  {name}\n" for name in names)
    (folder / CHECKSUMS).write_text(sums, encoding="utf-8", newline="\n")


def _check(directory: Path, target: Path, kind: str) -> None:
    refuse_in_target(directory, target)
    if not directory.exists():
        return
    if not directory.is_dir():
        raise QueryError(f"{directory} is a file", hint="name a folder")
    found = {path.relative_to(directory).as_posix() for path in directory.rglob("*") if not path.is_dir()}
    stray = sorted(found - _written(directory, kind))
    if stray:
        raise QueryError(
            f"{directory} holds files that no {kind.removeprefix('warehouse ')} wrote: {stray[0]}",
            hint="name a new folder",
        )


def _written(directory: Path, kind: str) -> set[str]:
    """Return the files that an earlier command of this kind wrote here."""
    try:
        manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
        if manifest["kind"] == kind:
            return {MANIFEST, CHECKSUMS, *(file["path"] for file in manifest["files"])}
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return set()
