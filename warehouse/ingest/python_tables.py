"""Parts of `raw` with rows from Python: files that DuckDB cannot read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from warehouse.base import hashing
from warehouse.base.errors import WarehouseError
from warehouse.engine.duckdb import DuckDBEngine
from warehouse.engine.duckdb_errors import EngineError
from warehouse.formats.base import Format, RawFile, Rejected, TableFormat
from warehouse.ingest.repair import refuse_too_many
from warehouse.ingest.schemas import source_columns
from warehouse.project.contract import Column
from warehouse.store.atomic import sync
from warehouse.store.manifest import Part
from warehouse.store.parts import Store, Written
from warehouse.store.signatures import refuse_changed

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
        """Return the parts of a relation, given the files of each partition."""
        return [self._part(relation, where, files, engine) for where, files in sorted(files_of.items())]

    def rejected(self) -> list[Rejected]:
        """Return the rejected lines of all files that were read."""
        return [one for lines in self._rejected.values() for one in lines]

    def _part(self, relation: str, where: str, files: list[RawFile], engine: DuckDBEngine) -> Part:
        one = self._formats[files[0].format or ""]
        columns = source_columns([one])[relation]
        contents = [(f.release_path, f.format, self._formats[f.format or ""].version, f.digest) for f in files]
        fingerprint = hashing.of([relation, contents, [(c.name, c.type) for c in columns]])
        part = self._store.find(relation, where, fingerprint)
        # A state that was made again from manifests has parts without their rejected lines.
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
        rejects, counts = list[Rejected](), Counter[str]()
        path = self._store.temporary("parquet")
        try:
            count = write_rows(self._rows(relation, files, rejects, counts), columns, path, self._store, engine)
            sync(path)
            # After the last byte was read: a file rewritten in place can end with the bytes that it had.
            refuse_changed({file.path: file.seen for file in files})
            notes = {"rejected": [one._asdict() for one in rejects], "read": dict(counts)}
            written = Written(path, count, hashing.of_file(path))
            return self._store.take_in(relation, where, fingerprint, written, notes)
        except EngineError as error:
            raise WarehouseError(
                f"{path} cannot be written: {error.message}", hint="if the engine lacks memory, raise --memory"
            ) from error
        finally:
            path.unlink(missing_ok=True)

    def _rows(
        self, relation: str, files: Sequence[RawFile], rejects: list[Rejected], counts: Counter[str]
    ) -> Iterator[Mapping[str, object]]:
        for name in sorted({file.format or "" for file in files}):
            one = self._formats[name]
            assert isinstance(one, TableFormat)
            mine = [file for file in files if file.format == name]
            # The path on this machine would make other bytes elsewhere.
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
    finally:
        written.unlink(missing_ok=True)


def json_lines(rows: Iterable[Mapping[str, object]]) -> Iterator[bytes]:
    """Yield rows as JSON lines."""
    import msgspec

    encode = msgspec.json.Encoder(enc_hook=str).encode
    return (encode(row) + b"\n" for row in rows)
