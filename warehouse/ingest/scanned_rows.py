"""Rows of a raw file that the engine reads by SELECTs, apart from unusual lines, which Python reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from warehouse.engine.base import Engine, EngineError, Parts, Scratch, Select
from warehouse.formats.base import RawFile, Rejected, Scan, ScannedFormat
from warehouse.project.contract import Column
from warehouse.store.atomic import temporary_path

MOST_OTHERS = 200_000
"""Largest number of unusual lines that are held in memory. With more, Python reads the whole file."""
_SCANNED, _ADDED = "raw.scanned", "raw.added"


class ScannedRows:
    """Rows of one file.

    Parameters
    ----------
    one
        The format of the file.
    scan
        The SELECTs that read the file.
    folder
        The folder for temporary files.
    """

    def __init__(self, one: ScannedFormat, file: RawFile, scan: Scan, folder: Path) -> None:
        self._format = one
        self._file = file
        self._scan = scan
        self._folder = folder

    def write(self, columns: Sequence[Column], path: Path, engine: Engine, rejects: list[Rejected]) -> int | None:
        """Write all rows as Parquet, with rejected lines to `rejects`; return their number.

        Return None if Python must read the file: the engine cannot, or most lines are unusual.
        """
        try:
            with engine.scratch({}, one_thread=True) as scratch:  # one thread keeps the order of lines
                count = scratch.write(Select(self._scan.rows, tuple(columns)), path, ())
                if count == self._scan.lines:
                    return count
                lines = scratch.rows(f"{self._scan.others} LIMIT {MOST_OTHERS + 1}")
        except EngineError:  # such as text that is not UTF-8, or a line without end
            return None
        if len(lines) > MOST_OTHERS:
            return None
        numbered = [(int(str(number)), str(text)) for number, text in lines]
        added = list(self._format.read_lines(self._file, numbered, rejects))
        return count + self._add(added, columns, path, engine) if added else count

    def _add(self, rows: Sequence[Mapping[str, object]], columns: Sequence[Column], path: Path, engine: Engine) -> int:
        """Add rows to the written ones, in the order of lines."""
        lines, added, scanned = (temporary_path(self._folder / name) for name in ("rows", "added", "scanned"))
        try:
            with lines.open("wb") as stream:
                stream.writelines(json_lines({**row, "filename": self._file.release_path} for row in rows))
            engine.write_rows({column.name: column.type for column in columns}, lines, added)
            path.replace(scanned)
            sources = {_SCANNED: Parts(tuple(columns), (scanned,)), _ADDED: Parts(tuple(columns), (added,))}
            with engine.scratch(sources) as scratch:
                self._merge(scratch, columns, path)
        finally:
            for one in (lines, added, scanned):
                one.unlink(missing_ok=True)
        return len(rows)

    def _merge(self, scratch: Scratch, columns: Sequence[Column], path: Path) -> None:
        both = f"FROM {_SCANNED} UNION ALL FROM {_ADDED}"
        scratch.write(Select(both, tuple(columns)), path, ["line"])


def json_lines(rows: Iterable[Mapping[str, object]]) -> Iterator[bytes]:
    """Yield rows as JSON lines."""
    import msgspec

    encode = msgspec.json.Encoder(enc_hook=str).encode
    return (encode(row) + b"\n" for row in rows)
