"""Rows of a raw file that the engine reads by SELECTs, apart from doubtful lines, which Python reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from warehouse.engine.base import EngineError, Parts, Select, Source
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.formats.base import SCANNED, RawFile, Rejected, Scan, ScannedFormat, repeated
from warehouse.project.contract import Column
from warehouse.store.parts import Store

MOST_DOUBTFUL = 500_000
"""Largest number of line numbers that are held in memory. With more, Python reads the whole file."""
LINES_IN_PASS = 1_000_000
"""Number of lines whose keys are compared at once, which takes about 100 bytes of memory each."""
_ADDED, _LEFT_OUT, _KEYS = "raw.added", "raw.left_out", "raw.keys"
_LINE = Column("line", "BIGINT")
_KEY_COLUMNS = (_LINE, Column("key", "BIGINT"))


class ScannedRows:
    """Rows of one file.

    Parameters
    ----------
    one
        The format of the file.
    store
        The target, which has the temporary files.
    """

    def __init__(self, one: ScannedFormat, file: RawFile, store: Store) -> None:
        self._format = one
        self._file = file
        self._temporary = store.temporary

    def write(self, columns: Sequence[Column], path: Path, engine: DuckDBEngine, rejects: list[Rejected]) -> int | None:
        """Write all rows as Parquet, with rejected lines to `rejects`; return their number.

        A file that the scanner misreads is read from a repaired copy. Return None if Python must read the file.
        """
        copy = self._temporary("copy")
        try:
            for repaired in (None, copy):
                scan = self._format.scan(self._file, repaired)
                if scan and self._is_scanned(scan, columns, path, engine):
                    return self._checked(scan, columns, path, engine, rejects)
        finally:
            copy.unlink(missing_ok=True)
        return None

    def _is_scanned(self, scan: Scan, columns: Sequence[Column], path: Path, engine: DuckDBEngine) -> bool:
        """Write a row for each line. Return False if the scanner misreads the file: not UTF-8, lines without end."""
        try:
            with engine.scratch({}) as scratch:
                return scratch.write(Select(scan.rows, tuple(columns)), path, ()) == scan.lines
        except EngineError:
            return False

    def _checked(
        self, scan: Scan, columns: Sequence[Column], path: Path, engine: DuckDBEngine, rejects: list[Rejected]
    ) -> int | None:
        """Replace the rows of doubtful lines; return the number of rows, None if there are too many such lines."""
        scanned_rows = {SCANNED: Parts(tuple(columns), (path,))}
        with engine.scratch(scanned_rows) as scratch:
            doubtful = scan.doubtful(scratch.rows(scan.tests())[0])
            numbers = _numbers(scratch.rows(f"{doubtful} LIMIT {MOST_DOUBTFUL + 1}"))
        repeats = self._repeats(scan, scanned_rows, engine)
        if not numbers and not repeats:
            return scan.lines
        if len(numbers) + len(repeats) > MOST_DOUBTFUL:
            return None
        read = self._format.read_lines(self._file, numbers, repeats, rejects)
        files = [self._temporary(name) for name in ("rows", "added", "lines", "left_out", "scanned")]
        rows, added, lines, left_out, scanned = files
        try:
            with rows.open("wb") as stream:
                stream.writelines(json_lines({**row, "filename": self._file.release_path} for row in read))
            engine.write_rows(columns, rows, added)
            with lines.open("wb") as stream:
                stream.writelines(b'{"line":%d}\n' % number for number in sorted(numbers | repeats))
            engine.write_rows((_LINE,), lines, left_out)
            path.replace(scanned)
            sources = {
                SCANNED: Parts(tuple(columns), (scanned,)),
                _ADDED: Parts(tuple(columns), (added,)),
                _LEFT_OUT: Parts((_LINE,), (left_out,)),
            }
            kept = f"FROM {SCANNED} WHERE line NOT IN (SELECT line FROM {_LEFT_OUT}) UNION ALL FROM {_ADDED}"
            with engine.scratch(sources) as scratch:  # no sort, which would take memory
                return scratch.write(Select(kept, tuple(columns)), path, ())
        finally:
            for one in files:
                one.unlink(missing_ok=True)

    def _repeats(self, scan: Scan, scanned_rows: Mapping[str, Source], engine: DuckDBEngine) -> set[int]:
        """Return the numbers of the lines with the values of an earlier line; of a long file in several passes."""
        if not scan.identity:
            return set()
        passes = scan.lines // LINES_IN_PASS + 1
        if passes == 1:
            with engine.scratch(scanned_rows) as scratch:
                return _numbers(scratch.rows(f"{repeated(f'({scan.keys()})')} LIMIT {MOST_DOUBTFUL + 1}"))
        keys = self._temporary("keys")
        try:
            with engine.scratch(scanned_rows) as scratch:
                scratch.write(Select(scan.keys(), _KEY_COLUMNS), keys, ())
            found: set[int] = set()
            with engine.scratch({_KEYS: Parts(_KEY_COLUMNS, (keys,))}) as scratch:
                for number in range(passes):
                    found |= _numbers(scratch.rows(f"{repeated(_KEYS, passes, number)} LIMIT {MOST_DOUBTFUL + 1}"))
            return found
        finally:
            keys.unlink(missing_ok=True)


def _numbers(rows: Iterable[Sequence[object]]) -> set[int]:
    return {int(str(number)) for (number,) in rows}


def json_lines(rows: Iterable[Mapping[str, object]]) -> Iterator[bytes]:
    """Yield rows as JSON lines."""
    import msgspec

    encode = msgspec.json.Encoder(enc_hook=str).encode
    return (encode(row) + b"\n" for row in rows)
