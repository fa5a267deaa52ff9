"""Rows of a raw file that the engine reads by SELECTs, apart from doubtful lines, which Python reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from warehouse.engine.base import Engine, EngineError, Parts, Select
from warehouse.formats.base import SCANNED, RawFile, Rejected, Scan, ScannedFormat
from warehouse.project.contract import Column
from warehouse.store.atomic import temporary_path

MOST_DOUBTFUL = 500_000
"""Largest number of line numbers that are held in memory. With more, Python reads the whole file."""
_ADDED = "raw.added"


class ScannedRows:
    """Rows of one file.

    Parameters
    ----------
    one
        The format of the file.
    folder
        The folder for temporary files.
    """

    def __init__(self, one: ScannedFormat, file: RawFile, folder: Path) -> None:
        self._format = one
        self._file = file
        self._folder = folder

    def write(self, columns: Sequence[Column], path: Path, engine: Engine, rejects: list[Rejected]) -> int | None:
        """Write all rows as Parquet, with rejected lines to `rejects`; return their number.

        A file that the scanner misreads is read from a repaired copy. Return None if Python must read the file.
        """
        copy = temporary_path(self._folder / "copy")
        try:
            for repaired in (None, copy):
                scan = self._format.scan(self._file, repaired)
                if scan and self._is_scanned(scan, columns, path, engine):
                    return self._checked(scan, columns, path, engine, rejects)
        finally:
            copy.unlink(missing_ok=True)
        return None

    def _is_scanned(self, scan: Scan, columns: Sequence[Column], path: Path, engine: Engine) -> bool:
        """Write a row for each line. Return False if the scanner misreads the file: not UTF-8, lines without end."""
        try:
            with engine.scratch({}, one_thread=True) as scratch:  # one thread keeps the order of lines
                return scratch.write(Select(scan.rows, tuple(columns)), path, ()) == scan.lines
        except EngineError:
            return False

    def _checked(
        self, scan: Scan, columns: Sequence[Column], path: Path, engine: Engine, rejects: list[Rejected]
    ) -> int | None:
        """Replace the rows of doubtful lines; return the number of rows, None if there are too many such lines."""
        with engine.scratch({SCANNED: Parts(tuple(columns), (path,))}) as scratch:
            doubtful = scan.doubtful(scratch.rows(scan.tests())[0])
            found = [scratch.rows(f"{one} LIMIT {MOST_DOUBTFUL + 1}") for one in (doubtful, scan.repeated())]
        numbers, repeated = ({int(str(number)) for (number,) in rows} for rows in found)
        if not numbers and not repeated:
            return scan.lines
        if len(numbers) + len(repeated) > MOST_DOUBTFUL:
            return None
        read = self._format.read_lines(self._file, numbers, repeated, rejects)
        lines, added, scanned = (temporary_path(self._folder / name) for name in ("rows", "added", "scanned"))
        try:
            with lines.open("wb") as stream:
                stream.writelines(json_lines({**row, "filename": self._file.release_path} for row in read))
            engine.write_rows({column.name: column.type for column in columns}, lines, added)
            path.replace(scanned)
            sources = {SCANNED: Parts(tuple(columns), (scanned,)), _ADDED: Parts(tuple(columns), (added,))}
            left_out = f"line NOT IN ({doubtful})"
            left_out += f" AND line NOT IN ({scan.repeated()})" if repeated else ""
            rows = f"FROM {SCANNED} WHERE {left_out} UNION ALL FROM {_ADDED}"
            with engine.scratch(sources, one_thread=True) as scratch:  # no sort, which would take memory
                return scratch.write(Select(rows, tuple(columns)), path, ())
        finally:
            for one in (lines, added, scanned):
                one.unlink(missing_ok=True)


def json_lines(rows: Iterable[Mapping[str, object]]) -> Iterator[bytes]:
    """Yield rows as JSON lines."""
    import msgspec

    encode = msgspec.json.Encoder(enc_hook=str).encode
    return (encode(row) + b"\n" for row in rows)
