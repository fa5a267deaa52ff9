"""Repair of CSV files: a file with bad lines is read from a copy without these lines, kept in the target.

Reasons for copies: docs/adr/README.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from warehouse.base import hashing
from warehouse.base.errors import DataError
from warehouse.base.startup import duckdb
from warehouse.base.text import plural
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.engine.duckdb_errors import EngineError
from warehouse.formats.base import PARTIAL, CsvFormat, Format, RawFile, Rejected
from warehouse.formats.csv_headers import COLUMNS_IGNORED
from warehouse.ingest.schemas import csv_source
from warehouse.store.atomic import temporary_path, write_text
from warehouse.store.signatures import read_text, refuse_changed

Changed = tuple[RawFile, list[Rejected]]
"""File as it is read, and its rejected lines."""


class LineRepair:
    """Repair of CSV files line by line, with cached results.

    Parameters
    ----------
    folder
        The folder of repaired copies and cached results; it may be missing.
    formats
        Formats by name. The format of a repaired file is a CsvFormat.
    paranoid
        True to ignore cached results.
    max_rejected
        The maximum share of bad rows in a file of a relation with a limit.
    """

    def __init__(self, folder: Path, formats: Mapping[str, Format], *, paranoid: bool, max_rejected: float) -> None:
        self._folder = folder
        self._formats = formats
        self._paranoid = paranoid
        self._max_rejected = max_rejected

    def repair(self, file: RawFile) -> Changed:
        """Return the file to read and the rejected lines; the same file without bad lines."""
        clean, lines, changed = self._scan_lines(file)
        if not changed:
            return file, []
        if lines and self._formats[file.format or ""].relations[0].limited:
            with clean.open("rb") as stream:
                rows = len(lines) + sum(1 for _ in stream) - 1  # the header is no row
            refuse_too_many(file, lines, rows, self._max_rejected)
        reason = "its lines do not all end alike: read from a mended copy"
        if lines:
            more = f" and {plural(len(lines) - 1, 'more line')}" if lines[1:] else ""
            reason = f"line {lines[0].line}: {lines[0].reason}{more}"
        _, begin, names = (file.reason or "").partition(COLUMNS_IGNORED)
        reason += f"; {begin}{names}" if begin else ""
        return file.but(status=PARTIAL if lines else file.status, reason=reason, clean_path=clean), lines

    def why_refused(self, file: RawFile, engine: DuckDBEngine) -> str | None:
        """Read a whole file; return the engine's reason if it refuses the file. Raises EngineError for other errors."""
        one = self._formats[file.format or ""]
        assert isinstance(one, CsvFormat)
        relation = one.relations[0].full_name
        try:
            with engine.scratch({relation: csv_source(one, [file])}) as scratch:
                scratch.rows(f"SELECT bit_xor(hash(one)) FROM {relation} AS one")  # a count would not parse the fields
        except EngineError as error:
            if not isinstance(error.__cause__, duckdb.DataError | duckdb.ProgrammingError):
                raise  # memory, disk
            return error.message.replace(str(file.read_path), file.path.name)
        return None

    def _scan_lines(self, file: RawFile) -> tuple[Path, list[Rejected], bool]:
        """Return (copy, bad lines, True if the copy differs); cached, since a large hour takes seconds."""
        one = self._formats[file.format or ""]
        assert isinstance(one, CsvFormat)
        folder = self._folder / f"{file.digest}-{one.version}"
        # The copy is plain, and DuckDB takes a file named .gz as compressed.
        name = file.path.name.removesuffix(file.path.suffix) if file.path.suffix != ".csv" else file.path.name
        clean, noted = folder / name, folder / "lines.json"
        try:
            cached = json.loads(read_text(noted))
            lines = [Rejected(file.release_path, *line) for line in cached["lines"]]
            if not self._paranoid and (clean.is_file() or not cached["changed"]):
                return clean, lines, cached["changed"]
        except (OSError, ValueError, KeyError, TypeError):
            pass  # not cached
        folder.mkdir(parents=True, exist_ok=True)
        repaired = temporary_path(clean)
        try:
            lines = list(one.repair(file, repaired))
            refuse_changed({file.path: file.seen})
            changed = bool(lines) or hashing.of_file(repaired) != file.digest
            if changed:
                repaired.replace(clean)
        finally:
            repaired.unlink(missing_ok=True)
        cached = {"changed": changed, "lines": [(line.line, line.reason, line.text) for line in lines]}
        write_text(noted, json.dumps(cached))
        return clean, lines, changed


def refuse_too_many(file: RawFile, lines: Sequence[Rejected], rows: int, most: float, few: int = 0) -> None:
    """Raise DataError if the share of bad lines in a file exceeds `--max-rejected`, and they are not `few`."""
    if len(lines) > max(most * rows, few):
        raise DataError(
            f"{file.path}: {len(lines):,} of {plural(rows, 'row')} cannot be read, more than --max-rejected allows"
            f" ({most:.3g} of them)",
            details=[f"  line {bad.line}: {bad.reason}" for bad in lines[:3]],
            hint="repair the file, or allow more rejected rows with a larger --max-rejected",
        )
