"""List of a build's raw files, stored with the build to detect added, removed and changed files later.

The list consists of lines, a few files of one folder each. The line of an unchanged folder is never decoded: two lists
differ only where their lines differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import msgspec

from warehouse.base import hashing
from warehouse.formats.base import Format, RawFile
from warehouse.ingest.partitions import named, partition_of
from warehouse.ingest.schemas import FILES
from warehouse.project.model import PARTITIONS
from warehouse.store.atomic import write_bytes
from warehouse.store.layout import ALL, RAW_FILES, build_folder
from warehouse.store.signatures import read_bytes

_BEGIN, _END, _BETWEEN = '{{"format":2,"hash":"{}","folders":[\n', "\n]}\n", b",\n"
_CONTENT_LENGTH = 16
"""Digits of a content hash in the list: enough to tell two contents of one path apart."""
_PORT = "port"
"""The column of `raw.files` that differs from file to file."""


class Listed(NamedTuple):
    """Raw file in the list of a build."""

    content: str
    """Begin of the content hash; the status for a file that is not read."""
    feeds: tuple[str, ...]
    """Relations of `raw` that the file has rows for."""
    partitions: tuple[str, ...]
    """Partitions of the file, for each column that can partition a model, sorted."""


class FileList:
    """List of a build's raw files.

    Parameters
    ----------
    lines
        The encoded files.
    older
        The files of a list that an earlier release wrote, which has no lines.
    """

    def __init__(self, lines: Iterable[bytes] = (), older: Mapping[str, Listed] | None = None) -> None:
        self.lines = list(lines)
        self._older = older
        self._compared: tuple[FileList, Mapping[str, tuple[Listed | None, Listed | None]]] | None = None

    @cached_property
    def files(self) -> Mapping[str, Listed]:
        """Files by release path. If two files have the same release path, the one that is read counts."""
        return _decoded(self.lines) if self._older is None else self._older

    def differences(self, after: FileList) -> Mapping[str, tuple[Listed | None, Listed | None]]:
        """Return the files that differ in a later list, before and after."""
        if self._compared is None or self._compared[0] is not after:
            old, new = self.files_beside(after), after.files_beside(self)
            paths = sorted(path for path in {*old, *new} if old.get(path) != new.get(path))
            self._compared = after, {path: (old.get(path), new.get(path)) for path in paths}
        return self._compared[1]

    def files_beside(self, other: FileList) -> Mapping[str, Listed]:
        """Return the files of the lines that another list lacks."""
        if self._older is not None or other._older is not None:
            return self.files
        theirs = set(other.lines)
        return _decoded(line for line in self.lines if line not in theirs)


class FileChange(NamedTuple):
    """Raw file that was added, removed or changed."""

    change: str
    """`added`, `removed` or `changed`."""
    release_path: str
    partitions: frozenset[str]
    """Partitions of the file before and after the change."""

    def is_in(self, partition: str) -> bool:
        """Return True if the change can affect rows of a partition."""
        return partition == ALL or partition in self.partitions


def line_of(files: Iterable[RawFile], formats: Sequence[Format]) -> bytes:
    """Return the line of some files; empty if there are none."""
    relations = {one.name: [FILES, *(relation.full_name for relation in one.relations)] for one in formats}
    found: dict[tuple[object, ...], list[tuple[str, str, str | None]]] = {}
    for file in files:
        where, _, name = file.release_path.rpartition("/")
        columns = (partition_of(file, column) for column in PARTITIONS if column != _PORT)
        key = (
            where,
            file.format if file.is_read else None,
            tuple(sorted(partition for partition in columns if partition)),
            None if file.digest else file.status,
        )
        found.setdefault(key, []).append((name, (file.digest or "")[:_CONTENT_LENGTH], file.port))
    entries = [
        (
            where,
            relations[str(format_)] if format_ else [FILES],
            partitions,
            "/".join(name for name, _, _ in mine),
            "".join(content for _, content, _ in mine) if status is None else [status],
            [port for _, _, port in mine] if any(port for _, _, port in mine) else None,
        )
        for (where, format_, partitions, status), mine in found.items()
    ]
    return msgspec.json.encode(entries) if entries else b""


def _decoded(lines: Iterable[bytes]) -> dict[str, Listed]:
    found: dict[str, Listed] = {}
    for line in lines:
        for where, feeds, partitions, joined, contents, ports in json.loads(line):
            for at, name in enumerate(joined.split("/")):
                begin = at * _CONTENT_LENGTH
                content = contents[begin : begin + _CONTENT_LENGTH] if isinstance(contents, str) else contents[0]
                port = (named(_PORT, ports[at]),) if ports and ports[at] else ()
                path = f"{where}/{name}" if where else name
                if path not in found or len(feeds) > 1:
                    found[path] = Listed(content, tuple(feeds), tuple(sorted((*partitions, *port))))
    return found


def changes(before: FileList, after: FileList, relation: str) -> Iterator[FileChange]:
    """Yield the added, removed and changed files of a relation."""
    for path, both in before.differences(after).items():
        old, new = (one if one and relation in one.feeds else None for one in both)
        if old == new:
            continue
        change = "added" if old is None else "removed" if new is None else "changed"
        yield FileChange(change, path, frozenset((*(old.partitions if old else ()), *(new.partitions if new else ()))))


def write_listing(folder: Path, files: FileList) -> None:
    """Write the list of raw files to a build's folder."""
    lines = _BETWEEN.join(files.lines)
    write_bytes(folder / RAW_FILES, _BEGIN.format(hashing.of_bytes(lines)).encode() + lines + _END.encode())


def read_listing(target: Path, build: str) -> FileList | None:
    """Return the list of raw files of an earlier build; None if it is missing or damaged."""
    try:
        content = read_bytes(build_folder(target, build) / RAW_FILES)
        begin, end = len(_BEGIN.format(hashing.of(""))), -len(_END)
        lines = content[begin:end]
        if content[:begin].decode() == _BEGIN.format(hashing.of_bytes(lines)):
            return FileList(lines.split(_BETWEEN) if lines else ())
        return FileList(older={path: _older(*one) for path, one in json.loads(content).items()})
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def _older(content: object, feeds: Iterable[str], partitions: Iterable[str]) -> Listed:
    """Return a file in the list of an earlier release."""
    return Listed(str(content)[:_CONTENT_LENGTH], tuple(feeds), tuple(sorted(partitions)))
