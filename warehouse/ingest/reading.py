"""How raw files are read: schemas of the `raw.*` relations, CSV files as a source, rows by Python, repair of CSV files.

A CSV file with bad lines is read from a copy without these lines, kept in the target (why: docs/adr/README.md).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from warehouse.base import hashing
from warehouse.base.errors import DataError
from warehouse.base.startup import duckdb
from warehouse.base.text import plural
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.engine.duckdb_errors import EngineError
from warehouse.engine.sources import CsvFiles
from warehouse.formats.base import PARTIAL, CsvFormat, Format, RawFile, RawRelation, Rejected, TableFormat
from warehouse.formats.named_csv import COLUMNS_IGNORED
from warehouse.project.contract import Column
from warehouse.project.model import PARTITIONS
from warehouse.store.atomic import sync, temporary_path
from warehouse.store.signatures import read_text, refuse_changed

FILES = "raw.files"
REJECTED = "raw.rejected_rows"
FILES_COLUMNS = (
    Column("path", "VARCHAR", None, "where the file lies"),
    Column("release_path", "VARCHAR", None, "its path in its release: from the cluster's, else the data folder on"),
    Column("bytes", "BIGINT", "B", "size as stored"),
    Column("mtime_utc", "TIMESTAMP", None, "when it was last changed"),
    Column("format", "VARCHAR", None, "the format it was recognized as"),
    Column("cluster", "VARCHAR", None, "the folder that holds trafficinfo/, taskinfo/ or the workbook"),
    Column("hour_utc", "TIMESTAMP", None, "the hour that its rows belong to"),
    Column("switch", "VARCHAR", None, "the switch whose rows it holds"),
    Column("device", "VARCHAR", None, "that switch's DeviceName"),
    Column("port", "VARCHAR", None, "the port whose rows it holds"),
    Column("file_group", "VARCHAR", None, "the files that are read together, where not those of an hour"),
    Column("status", "VARCHAR", None, "read, partial, skipped, ignored or unknown"),
    Column("reason", "VARCHAR", None, "why it is not simply read"),
    Column("read_path", "VARCHAR", None, "what is read: the file, or its repaired copy"),
)
REJECTED_COLUMNS = (
    Column("file", "VARCHAR", None, "the file's release path"),
    Column("line", "INTEGER", None, "line number, the header being 1; of a workbook the sheet's row"),
    Column("reason", "VARCHAR", None, "why the line could not be read"),
    Column("text", "VARCHAR", None, "the line, at most 500 characters"),
)
_AS_READ = "as the file has it; the table of staging that reads it says what it means"


def file_row(file: RawFile) -> dict[str, object]:
    """Return a file as a row of `raw.files`."""
    return {
        "path": str(file.path),
        "release_path": file.release_path,
        "bytes": file.bytes,
        "mtime_utc": f"{datetime.fromtimestamp(file.mtime_ns // 10**9, UTC):%Y-%m-%d %H:%M:%S}",
        **{name: getattr(file, name) for name in PARTITIONS},
        "hour_utc": str(file.hour_utc) if file.hour_utc else None,
        "status": file.status,
        "reason": file.reason,
        "read_path": str(file.read_path),
    }


def file_identity(file: RawFile) -> tuple[object, ...]:
    """Return the values of a row of `raw.files` that are part of fingerprints: content and names, no absolute path."""
    # No time: `touch` must not make a table stale.
    return tuple(getattr(file, name) for name in ("release_path", *PARTITIONS, "status", "reason", "digest"))


def source_columns(formats: Sequence[Format]) -> dict[str, tuple[Column, ...]]:
    """Return the columns of each relation of `raw`."""
    found = {FILES: FILES_COLUMNS, REJECTED: REJECTED_COLUMNS}
    return found | {relation.full_name: _columns(relation) for one in formats for relation in one.relations}


def _columns(relation: RawRelation) -> tuple[Column, ...]:
    """Return the columns of a relation, each with its unit and meaning."""
    meanings = {name: relation.meanings.get(name, (None, _AS_READ)) for name in relation.columns}
    columns = (Column(name, kind, *meanings[name]) for name, kind in relation.columns.items())
    return (*columns, Column("filename", "VARCHAR", None, "the file it was read from"))


def abouts(formats: Sequence[Format]) -> dict[str, str]:
    """Return a description of each relation of `raw`."""
    found = {
        FILES: "Every file of the data folders with its format and status.",
        REJECTED: "Lines that could not be read.",
    }
    return found | {relation.full_name: relation.about for one in formats for relation in one.relations}


def csv_source(one: CsvFormat, files: Iterable[RawFile]) -> CsvFiles:
    """Return CSV files as a source. Its rows come file by file, so that rows of consecutive files need no sorting."""
    relation = one.relations[0]
    ordered = sorted(files, key=_sort_key)
    return CsvFiles(
        relation.columns,
        tuple(file.read_path for file in ordered),
        quote=relation.quote,
        headers={file.read_path: file.header for file in ordered if file.header is not None},
        forms=relation.forms,
        whole_lines=relation.whole_lines,
        seen={file.path: file.seen for file in ordered if file.clean_path is None},
        required=relation.required,
        delimiter=relation.delimiter,
        encoding=relation.encoding,
        has_header=relation.has_header,
    )


def _sort_key(file: RawFile) -> tuple[str, ...]:
    hour_or_group = str(file.hour_utc or file.file_group or "")
    return (file.cluster or "", hour_or_group, file.switch or "", file.port or "", file.release_path)


# rows by Python -----------------------------------------------------------------------------------


def json_lines(rows: Iterable[Mapping[str, object]]) -> Iterator[bytes]:
    """Yield rows as JSON lines."""
    encode = msgspec.json.Encoder(enc_hook=str).encode
    return (encode(row) + b"\n" for row in rows)


def rows_of(
    relation: str,
    files: Sequence[RawFile],
    formats: Mapping[str, Format],
    rejects: list[Rejected],
    counts: Counter[str],
) -> Iterator[Mapping[str, object]]:
    """Yield the rows of files that Python reads; add to the bad rows, and to the numbers of good ones by file."""
    for name in sorted({file.format or "" for file in files}):
        one = formats[name]
        assert isinstance(one, TableFormat)
        mine = [file for file in files if file.format == name]
        # The path on this machine would make other bytes elsewhere.
        shown = {str(file.path): file.release_path for file in mine}
        for row in one.read(mine, relation.removeprefix("raw."), rejects):
            path = shown.get(str(row["filename"]), str(row["filename"]))
            counts[path] += 1
            yield {**row, "filename": path}


# repair -------------------------------------------------------------------------------------------

Changed = tuple[RawFile, list[Rejected]]
"""File as it is read, and its rejected lines."""


def repaired(file: RawFile, one: CsvFormat, folder: Path, *, max_rejected: float, paranoid: bool) -> Changed:
    """Return the file to read and the rejected lines; the same file without bad lines.

    Parameters
    ----------
    folder
        The folder of repaired copies and of what was found of other files; it may be missing.
    max_rejected
        The maximum share of bad rows in a file of a relation with a limit.
    paranoid
        True to read the lines again although it is known which are bad.
    """
    clean, lines, changed = _scan_lines(file, one, folder / f"{file.digest}-{one.version}", paranoid=paranoid)
    if not changed:
        return file, []
    if lines and one.relations[0].limited:
        with clean.open("rb") as stream:
            rows = len(lines) + sum(1 for _ in stream) - 1  # the header is no row
        refuse_too_many(file, lines, rows, max_rejected)
    reason = "its lines do not all end alike: read from a mended copy"
    if lines:
        more = f" and {plural(len(lines) - 1, 'more line')}" if lines[1:] else ""
        reason = f"line {lines[0].line}: {lines[0].reason}{more}"
    _, begin, names = (file.reason or "").partition(COLUMNS_IGNORED)
    reason += f"; {begin}{names}" if begin else ""
    return file.but(status=PARTIAL if lines else file.status, reason=reason, clean_path=clean), lines


def _scan_lines(file: RawFile, one: CsvFormat, folder: Path, *, paranoid: bool) -> tuple[Path, list[Rejected], bool]:
    """Return (copy, bad lines, True if the copy differs); cached, since a large hour takes seconds."""
    # The copy is plain, and DuckDB takes a file named .gz as compressed.
    name = file.path.name.removesuffix(file.path.suffix) if file.path.suffix != ".csv" else file.path.name
    clean, noted = folder / name, folder / "lines.json"
    try:
        cached = json.loads(read_text(noted))
        lines = [Rejected(file.release_path, *line) for line in cached["lines"]]
        if not paranoid and (clean.is_file() or not cached["changed"]):
            return clean, lines, cached["changed"]
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not cached
    folder.mkdir(parents=True, exist_ok=True)
    copy = temporary_path(clean)
    try:
        lines = list(one.repair(file, copy))
        refuse_changed({file.path: file.seen})
        changed = bool(lines) or hashing.of_file(copy) != file.digest
        if changed:
            sync(copy)  # from now on, the copy stands for the file
            copy.replace(clean)
    finally:
        copy.unlink(missing_ok=True)
    cached = {"changed": changed, "lines": [(line.line, line.reason, line.text) for line in lines]}
    noted.write_text(json.dumps(cached), encoding="utf-8")
    return clean, lines, changed


def why_refused(file: RawFile, one: CsvFormat, engine: DuckDBEngine) -> str | None:
    """Read a whole file; return the engine's reason if it refuses the file. Raises EngineError for other errors."""
    relation = one.relations[0].full_name
    try:
        with engine.scratch({relation: csv_source(one, [file])}) as scratch:
            scratch.rows(f"SELECT bit_xor(hash(one)) FROM {relation} AS one")  # a count would not parse the fields
    except EngineError as error:
        if not isinstance(error.__cause__, duckdb.DataError | duckdb.ProgrammingError):
            raise  # memory, disk
        return error.message.replace(str(file.read_path), file.path.name)
    return None


def refuse_too_many(file: RawFile, lines: Sequence[Rejected], rows: int, most: float, few: int = 0) -> None:
    """Raise DataError if the share of bad lines in a file exceeds `--max-rejected`, and they are not `few`."""
    if len(lines) > max(most * rows, few):
        raise DataError(
            f"{file.path}: {len(lines):,} of {plural(rows, 'row')} cannot be read, more than --max-rejected allows"
            f" ({most:.3g} of them)",
            details=[f"  line {bad.line}: {bad.reason}" for bad in lines[:3]],
            hint="repair the file, or allow more rejected rows with a larger --max-rejected",
        )
