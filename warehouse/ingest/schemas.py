"""Schemas of the `raw.*` relations, and their files as a source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from warehouse.engine.sources import CsvFiles
from warehouse.formats.base import CsvFormat, Format, RawFile
from warehouse.project.contract import Column
from warehouse.project.model import PARTITIONS

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
    for one in formats:
        for relation in one.relations:
            columns = [
                Column(name, kind, *relation.meanings.get(name, (None, _AS_READ)))
                for name, kind in relation.columns.items()
            ]
            found[relation.full_name] = (
                *columns,
                Column("filename", "VARCHAR", None, "the file it was read from"),
            )
    return found


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
    headers = {file.read_path: file.header for file in ordered if file.header is not None}
    paths = tuple(file.read_path for file in ordered)
    seen = {file.path: file.seen for file in ordered if file.clean_path is None}
    how = (relation.quote, True, headers, relation.forms, relation.whole_lines)
    form = (relation.required, relation.delimiter, relation.encoding, relation.has_header)
    return CsvFiles(relation.columns, paths, *how, seen, *form)


def _sort_key(file: RawFile) -> tuple[str, ...]:
    hour_or_group = str(file.hour_utc or file.file_group or "")
    return (file.cluster or "", hour_or_group, file.switch or "", file.port or "", file.release_path)
