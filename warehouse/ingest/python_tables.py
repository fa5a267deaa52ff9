"""Parts of `raw` with rows from Python: files that DuckDB cannot read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from warehouse.base import hashing
from warehouse.base.errors import WarehouseError
from warehouse.engine.base import EngineError, Parts, Select, Source
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.formats.base import SCANNED, Format, RawFile, Rejected, Scan, ScannedFormat, TableFormat, repeated
from warehouse.ingest.repair import refuse_too_many
from warehouse.ingest.schemas import source_columns
from warehouse.project.contract import Column
from warehouse.store.atomic import sync
from warehouse.store.manifest import Part
from warehouse.store.parts import Store, Written
from warehouse.store.signatures import refuse_changed

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


_FEW = 10
"""Bad rows that never stop a build: 1 % of a sheet as published, which has 1,012 or 1,040 rows."""


class Tables:
    """Parts of `raw` with rows from Python, and the rejected lines of their files.

    Parameters
    ----------
    store
        The store of the parts.
    formats
        Formats by name.
    max_rejected
        The maximum share of bad rows in a file of a relation with a limit.
    """

    def __init__(self, store: Store, formats: Mapping[str, Format], max_rejected: float) -> None:
        self._max_rejected = max_rejected
        self._store = store
        self._formats = formats
        self._rejected: dict[str, list[Rejected]] = {}

    def parts(self, relation: str, files_of: Mapping[str, list[RawFile]], engine: DuckDBEngine) -> list[Part]:
        """Return the parts of a relation, given the files of each partition: one a scanned file, one of all others."""
        found = []
        for where, files in sorted(files_of.items()):
            scanned = [file for file in files if isinstance(self._formats[file.format or ""], ScannedFormat)]
            others = [file for file in files if file not in scanned]
            groups = (*([file] for file in scanned), *([others] if others else []))
            found += [self._part(relation, where, group, engine) for group in groups]
        return found

    def rejected(self) -> list[Rejected]:
        """Return the rejected lines of all files that were read."""
        return [one for lines in self._rejected.values() for one in lines]

    def _part(self, relation: str, where: str, files: list[RawFile], engine: DuckDBEngine) -> Part:
        one = self._formats[files[0].format or ""]
        columns = source_columns([one])[relation]
        contents = [(f.release_path, f.format, self._formats[f.format or ""].version, f.digest) for f in files]
        fingerprint = hashing.of([relation, contents, [(c.name, c.type) for c in columns]])
        part = self._store.find(relation, where, fingerprint)
        if part is None or "rejected" not in part.notes:
            part = self._write(relation, where, fingerprint, files, columns, engine)
        lines = self._rejected[f"{relation} {where} {fingerprint}"] = [
            Rejected(**one) for one in part.notes["rejected"]
        ]
        for file in files if any(fed.limited for fed in one.relations) else ():
            bad = [one for one in lines if one.file == file.release_path and one.line > 1]  # line 1 stands for the file
            good = cast("Mapping[str, int]", part.notes["read"]).get(file.release_path, 0)
            refuse_too_many(file, bad, good + len(bad), self._max_rejected, _FEW)
        return part

    def _write(
        self,
        relation: str,
        where: str,
        fingerprint: str,
        files: list[RawFile],
        columns: Sequence[Column],
        engine: DuckDBEngine,
    ) -> Part:
        """Read files and write their rows. Raises DataError if one of them changes meanwhile."""
        one, rejects, counts = self._formats[files[0].format or ""], list[Rejected](), Counter[str]()
        path = self._store.temporary("parquet")
        count = None
        try:
            if isinstance(one, ScannedFormat):
                count = ScannedRows(one, files[0], self._store).write(columns, path, engine, rejects)
            if count is None:
                rows = self._rows(relation, files, rejects, counts)
                count = write_rows(rows, columns, path, self._store, engine)
            sync(path)
            refuse_changed({file.path: file.seen for file in files})
            notes = {"rejected": [one._asdict() for one in rejects], "read": dict(counts)}
            written = Written(path, count, hashing.of_file(path))
            return self._store.take_in(relation, where, fingerprint, written, notes)
        finally:
            path.unlink(missing_ok=True)

    def _rows(
        self, relation: str, files: Sequence[RawFile], rejects: list[Rejected], counts: Counter[str]
    ) -> Iterator[Mapping[str, object]]:
        for name in sorted({file.format or "" for file in files}):
            one = self._formats[name]
            assert isinstance(one, TableFormat)
            mine = [file for file in files if file.format == name]
            shown = {str(file.path): file.release_path for file in mine}
            for row in one.read(mine, relation.removeprefix("raw."), rejects):
                name = shown.get(str(row["filename"]), str(row["filename"]))
                counts[name] += 1
                yield {**row, "filename": name}


def write_rows(
    rows: Iterator[Mapping[str, object]], columns: Sequence[Column], path: Path, store: Store, engine: DuckDBEngine
) -> int:
    """Write rows as Parquet; return their number."""
    written = store.temporary("jsonl")
    try:
        with written.open("wb") as stream:
            stream.writelines(json_lines(rows))
        return engine.write_rows(columns, written, path)
    except EngineError as error:
        raise WarehouseError(
            f"{path} cannot be written: {error.message}", hint="if the engine lacks memory, raise --memory"
        ) from error
    finally:
        written.unlink(missing_ok=True)
