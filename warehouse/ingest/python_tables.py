"""Parts of `raw` with rows from Python: files that DuckDB cannot read, and the runner's own lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from warehouse.base import hashing
from warehouse.base.errors import WarehouseError
from warehouse.engine.base import Engine, EngineError, Parts
from warehouse.formats.base import Format, RawFile, Rejected, ScannedFormat, TableFormat
from warehouse.ingest.repair import refuse_too_many
from warehouse.ingest.scanned_rows import ScannedRows, json_lines
from warehouse.ingest.schemas import source_columns
from warehouse.project.contract import Column
from warehouse.store.atomic import temporary_path
from warehouse.store.changed_files import refuse_changed
from warehouse.store.part_records import Part
from warehouse.store.parts import Store

_FEW = 10
"""Bad rows that never stop a build: 1 % of a sheet as published, which has 1,012 or 1,040 rows."""


class Tables:
    """Parts of `raw` with rows from Python, and the rejected lines of their files.

    Parameters
    ----------
    store
        The store of the parts.
    folder
        The folder for temporary JSON files.
    formats
        Formats by name.
    max_rejected
        The maximum share of bad rows in a file of a relation with a limit.
    """

    def __init__(self, store: Store, folder: Path, formats: Mapping[str, Format], max_rejected: float) -> None:
        self._max_rejected = max_rejected
        self._store = store
        self._folder = folder
        self._formats = formats
        self._rejected: dict[tuple[str, str, str], list[Rejected]] = {}

    def parts(self, relation: str, files_of: Mapping[str, list[RawFile]], engine: Engine) -> list[Part]:
        """Return the parts of a relation, given the files of each partition."""
        return [
            part for where, files in sorted(files_of.items()) for part in self._parts(relation, where, files, engine)
        ]

    def rejected(self) -> list[Rejected]:
        """Return the rejected lines of all files that were read."""
        return [one for lines in self._rejected.values() for one in lines]

    def _parts(self, relation: str, where: str, files: list[RawFile], engine: Engine) -> Iterator[Part]:
        """Yield one part for each scanned file, and one for all other files."""
        scanned = [file for file in files if isinstance(self._formats[file.format or ""], ScannedFormat)]
        others = [file for file in files if file not in scanned]
        for group in (*([file] for file in scanned), *([others] if others else [])):
            yield self._part(relation, where, group, engine)

    def _part(self, relation: str, where: str, files: list[RawFile], engine: Engine) -> Part:
        one = self._formats[files[0].format or ""]
        is_limited = any(fed.limited for fed in one.relations)
        columns = source_columns([one])[relation]
        contents = [(f.release_path, f.format, self._formats[f.format or ""].version, f.digest) for f in files]
        fingerprint = hashing.of([relation, contents, [(c.name, c.type) for c in columns]])
        part = self._store.find(relation, where, fingerprint)
        if part is None:
            rejects: list[Rejected] = []
            counts = Counter[str]()
            notes: dict[str, object] = {"read": counts} if is_limited else {}
            rows = self._rows(relation, files, rejects, counts)
            scanned = self._scanned(files)

            def make(path: Path) -> int:
                count = scanned.write(columns, path, engine, rejects) if scanned else None
                if count is None:
                    count = self.write(rows, columns, path, engine)
                notes["rejected"] = [one._asdict() for one in rejects]
                return count

            seen = {file.path: file.seen for file in files}
            part = self._store.write(relation, where, fingerprint, make, notes, lambda: refuse_changed(seen))
        noted = part.notes.get("rejected", [])
        assert isinstance(noted, list)
        lines = self._rejected[relation, where, fingerprint] = [Rejected(**one) for one in noted]
        for file in files if is_limited else ():
            bad = [one for one in lines if one.file == file.release_path and one.line > 1]  # line 1 stands for the file
            good = cast("Mapping[str, int]", part.notes["read"]).get(file.release_path, 0)
            refuse_too_many(file, bad, good + len(bad), self._max_rejected, _FEW)
        return part

    def _scanned(self, files: Sequence[RawFile]) -> ScannedRows | None:
        """Return the reader of a file that the engine reads by SELECTs; None for all others."""
        one = self._formats[files[0].format or ""]
        return ScannedRows(one, files[0], self._folder) if isinstance(one, ScannedFormat) else None

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

    def listing(
        self,
        relation: str,
        partition: str,
        columns: Sequence[Column],
        rows: Iterable[Mapping[str, object]],
        engine: Engine,
    ) -> Parts:
        """Return the part of a list of the runner, such as `raw.files`."""
        lines = b"".join(json_lines(rows))
        fingerprint = hashing.of([hashing.of_bytes(lines), [(column.name, column.type) for column in columns]])
        part = self._store.find(relation, partition, fingerprint)
        if part is None:
            part = self._store.write(
                relation, partition, fingerprint, lambda path: self._write([lines], columns, path, engine)
            )
        return Parts(tuple(columns), (part.file,))

    def write(self, rows: Iterable[Mapping[str, object]], columns: Sequence[Column], path: Path, engine: Engine) -> int:
        """Write rows as Parquet; return their number."""
        return self._write(json_lines(rows), columns, path, engine)

    def _write(self, lines: Iterable[bytes], columns: Sequence[Column], path: Path, engine: Engine) -> int:
        """Write JSON lines as Parquet."""
        written = temporary_path(self._folder / "rows")
        try:
            with written.open("wb") as stream:
                stream.writelines(lines)
            return engine.write_rows({column.name: column.type for column in columns}, written, path)
        except EngineError as error:
            raise WarehouseError(
                f"{path} cannot be written: {error.message}",
                hint="if the engine lacks memory, raise --memory",
            ) from error
        finally:
            written.unlink(missing_ok=True)
