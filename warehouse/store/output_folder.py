"""Write a folder of files aside and put it in the place of the one that was written before."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from warehouse.base.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EXPORT, SITE = "warehouse export", "warehouse docs"
"""What the manifest of a folder says that it is."""
MANIFEST, CHECKSUMS = "manifest.json", "SHA256SUMS"


@contextmanager
def replaced(directory: Path, target: Path, kind: str) -> Iterator[Path]:
    """Give an empty folder to write to, which then takes the place of `directory` as a whole.

    What is written has to hold a `manifest.json` that says `kind` and lists all other files but the checksums
    under `files`, each with its `path`: only a folder with such a manifest is ever replaced.

    Raises
    ------
    QueryError
        When the directory lies in the target, holds files that this kind of folder would not, or cannot be written.
    """
    directory = directory.resolve()
    _check(directory, target, kind)
    temporary_path = directory.with_name(f".{directory.name}.{os.getpid()}")
    shutil.rmtree(temporary_path, ignore_errors=True)
    try:
        temporary_path.mkdir(parents=True)
        yield temporary_path
        old = temporary_path.with_name(f"{temporary_path.name}.old")
        if directory.exists():
            directory.replace(old)
        temporary_path.replace(directory)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise QueryError(f"{directory} cannot be written: {error.strerror}") from error
    finally:
        shutil.rmtree(temporary_path, ignore_errors=True)


def check_place(place: Path, target: Path) -> None:
    """Refuse to write into a target. Raises QueryError."""
    if place.resolve().is_relative_to(target.resolve()):
        raise QueryError(
            f"{place} lies in the target, which only `warehouse build` writes", hint="choose another place"
        )


def sha256(path: Path) -> str:
    """The hash of a file's bytes, hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_json(path: Path, said: object) -> None:
    """JSON for people, too: the same bytes for the same values."""
    path.write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")


def write_checksums(folder: Path) -> None:
    """`SHA256SUMS` of all files of a folder, as `sha256sum -c` reads it."""
    names = sorted(path.name for path in folder.iterdir())
    sums = "".join(f"{sha256(folder / name)}  {name}\n" for name in names)
    (folder / CHECKSUMS).write_text(sums, encoding="utf-8", newline="\n")


def _check(directory: Path, target: Path, kind: str) -> None:
    check_place(directory, target)
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
    """Name the files that were written here before."""
    try:
        said = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
        if said["kind"] == kind:
            return {MANIFEST, CHECKSUMS, *(file["path"] for file in said["files"])}
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return set()
