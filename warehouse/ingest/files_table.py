"""Table `raw.files` of all raw files: updated from the one of an earlier build, folder by folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from pathlib import Path

from warehouse.base import hashing
from warehouse.base.sql_text import literal
from warehouse.engine.base import Engine, Parts, Select
from warehouse.formats.base import RawFile
from warehouse.ingest.file_index import FileIndex, Section
from warehouse.ingest.python_tables import Tables
from warehouse.ingest.scan import printable
from warehouse.ingest.schemas import FILES, FILES_COLUMNS, file_row
from warehouse.store.atomic import temporary_path
from warehouse.store.layout import ALL
from warehouse.store.part_records import Part
from warehouse.store.parts import Store

_FOLDERS = "folders"
"""Note of a part: hash of the rows of each folder."""
MANY_FILES = 10_000
"""Number of files above which the table is not copied into the catalog, and its rows have no order."""
_MOST_LATER = 1 / 16
"""Largest number of new folders with a part of their own, as a share of all others: it is written with each new one."""
_ORDER = ("release_path", "path")


def files_table(index: FileIndex, store: Store, tables: Tables, engine: Engine) -> Parts:
    """Return the parts with a row for each raw file: one, and perhaps another with the files of new folders.

    If most folders are as in an earlier part, their rows are copied from it, and no file of them is decoded.
    """
    folders = _folders(index)
    earlier = _latest(store) if not index.order else None  # members of archives have an order of their own
    known = earlier.notes[_FOLDERS] if earlier else {}
    assert isinstance(known, dict)
    differing = {name for name in {*known, *folders} if known.get(name) != folders.get(name)}

    def write_all(path: Path) -> int:
        if earlier is not None and len(differing) <= len(known) / 2:
            count = _update(path, earlier, differing, index, tables, engine)
            if count == index.count():
                return count
        return tables.write((file_row(file) for file in index.files(None)), FILES_COLUMNS, path, engine)

    def write_later(path: Path) -> int:
        return tables.write(map(file_row, _files_of(differing, index)), FILES_COLUMNS, path, engine)

    def part(rows: object, write: Callable[[Path], int], notes: dict[str, object]) -> Part:
        fingerprint = hashing.of(rows)
        return store.find(FILES, ALL, fingerprint) or store.write(FILES, ALL, fingerprint, write, notes)

    is_later = differing.isdisjoint(known) and 0 < len(differing) <= _MOST_LATER * len(known)
    if earlier is not None and is_later and index.count() > MANY_FILES:
        new = {name: folders[name] for name in sorted(differing)}
        parts = [earlier, part([earlier.fingerprint, new], write_later, {})]
        if sum(one.rows for one in parts) == index.count():
            return Parts(FILES_COLUMNS, tuple(one.file for one in parts))
    return Parts(FILES_COLUMNS, (part(folders, write_all, {_FOLDERS: folders}).file,))


def _folders(index: FileIndex) -> dict[str, str]:
    """Return the hash of each folder's rows: of names, signatures, what is known of the files, and the columns."""
    columns = hashing.of([(one.name, one.type) for one in FILES_COLUMNS])
    found: dict[str, list[object]] = {}
    for section in index.sections:
        if not section.groups:
            continue
        seen = list(map(hashing.of_bytes, section.record.folder().packed)) if section.record else []
        groups = [(group.digest, index.version(group.format)) for group in section.groups]
        copies = [str(file.clean_path) for file in section.changed or () if file.clean_path]
        found.setdefault(_folder(section), []).append([seen, sorted(groups), copies])
    return {folder: hashing.of([columns, seen]) for folder, seen in sorted(found.items())}


def _folder(section: Section) -> str:
    """Return the folder of a section's files; empty for members of an archive."""
    return printable(section.record.folder().path) if section.record else ""


def _latest(store: Store) -> Part | None:
    """Return the newest intact part that says which folders it lists."""
    paths = sorted((store.folder / FILES / ALL).glob("*.json"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    parts = (store.find(FILES, ALL, path.stem) for path in paths)
    return next((part for part in parts if part is not None and _FOLDERS in part.notes), None)


def _update(path: Path, earlier: Part, differing: Set[str], index: FileIndex, tables: Tables, engine: Engine) -> int:
    """Write the rows of an earlier part, those of differing folders replaced; return the number of rows."""
    added = temporary_path(path.with_name("added.parquet"))
    try:
        tables.write(map(file_row, _files_of(differing, index)), FILES_COLUMNS, added, engine)
        sources = {"raw.earlier": Parts(FILES_COLUMNS, (earlier.file,)), "raw.added": Parts(FILES_COLUMNS, (added,))}
        names = ", ".join(map(literal, sorted(differing))) or "NULL"
        kept = f"SELECT * FROM raw.earlier WHERE parse_dirpath(path, 'forward_slash') NOT IN ({names})"
        all_rows = Select(f"{kept} UNION ALL SELECT * FROM raw.added", FILES_COLUMNS)
        are_many = index.count() > MANY_FILES
        with engine.scratch(sources, one_thread=are_many) as scratch:
            return scratch.write(all_rows, path, () if are_many else _ORDER)
    finally:
        added.unlink(missing_ok=True)


def _files_of(folders: Set[str], index: FileIndex) -> Iterator[RawFile]:
    return (file for section in index.sections if _folder(section) in folders for file in index.files_in(section))
